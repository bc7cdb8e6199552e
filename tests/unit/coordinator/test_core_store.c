/*
 * The core and its store: commit, then speak; a full disk; a commit that failed; restarts.
 */
#include "coordinator/rows.h"
#include "tests/unit/coordinator/driver.h"

TestSuite(core_store, .fini = test_alloc_expect_none);

static struct driver d;
static struct driver_session s;

static void begin(void)
{
    driver_init(&d);
    driver_restart(&d, false);
    (void)driver_join(&d, "A", 1);
    s = driver_open(&d, "esi");
}

static enum model_reason run(enum model_statement_kind kind, const char *key)
{
    return driver_run(&d, &s, kind, key, kind == MODEL_STATEMENT_SET ? "v" : NULL);
}

static void next_commit(enum store_outcome outcome)
{
    d.outcomes[0] = outcome;
    d.n_outcomes = 1;
}

/* ---- start ----------------------------------------------------------------------------------- */

/* As every answer says. */
static uint64_t term(void)
{
    struct model_call *call = driver_new_call(&d, MODEL_CALL_LIST_INSTANCES);
    uint64_t said;

    driver_submit(&d, call);
    cr_assert(driver_is_answered(call));
    said = call->response.responder.term;
    (void)driver_free_call(call);
    return said;
}

Test(core_store, the_first_start_makes_a_cluster_and_every_start_a_term)
{
    struct model_id cluster;

    driver_init(&d);
    driver_restart(&d, false);
    cluster = *coord_core_cluster_id(d.core);
    cr_assert_not(model_id_is_none(&cluster));
    cr_assert_eq(term(), 1);
    driver_restart(&d, false);
    cr_assert(model_id_equal(&cluster, coord_core_cluster_id(d.core)));
    cr_assert_eq(term(), 2);
    driver_deinit(&d);
}

Test(core_store, calls_wait_for_the_term)
{
    struct model_call *first;
    struct model_call *second;

    driver_init(&d);
    d.auto_commit = false;
    driver_restart(&d, false);
    cr_assert_not(coord_core_is_serving(d.core));
    first = driver_new_call(&d, MODEL_CALL_LIST_INSTANCES);
    second = driver_new_call(&d, MODEL_CALL_LIST_INSTANCES);
    driver_submit(&d, first);
    driver_submit(&d, second);
    cr_assert_not(driver_is_answered(first));
    coord_core_cancel(d.core, second);
    driver_settle(&d);
    driver_expect(driver_reason(second), MODEL_REASON_CANCELLED);
    driver_commit(&d, STORE_COMMITTED);
    cr_assert(coord_core_is_serving(d.core));
    driver_expect(driver_reason(first), MODEL_REASON_NONE);
    cr_assert_eq(first->response.responder.term, 1);
    (void)driver_free_call(first);
    (void)driver_free_call(second);
    driver_deinit(&d);
}

Test(core_store, a_start_on_a_full_disk_is_tried_again)
{
    struct model_call *call;

    driver_init(&d);
    next_commit(STORE_FULL);
    driver_restart(&d, false);
    call = driver_new_call(&d, MODEL_CALL_LIST_INSTANCES);
    driver_submit(&d, call);
    cr_assert_not(coord_core_is_serving(d.core));
    driver_sleep_ms(&d, 1000);
    cr_assert(coord_core_is_serving(d.core));
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_store, a_start_whose_commit_fails_serves_nobody)
{
    struct model_call *early;
    struct model_call *late;

    driver_init(&d);
    d.auto_commit = false;
    driver_restart(&d, false);
    early = driver_new_call(&d, MODEL_CALL_LIST_INSTANCES);
    late = driver_new_call(&d, MODEL_CALL_LIST_INSTANCES);
    driver_submit(&d, early);
    driver_commit(&d, STORE_UNKNOWN);
    driver_submit(&d, late);
    driver_expect(driver_reason(early), MODEL_REASON_READ_ONLY);
    driver_expect(driver_reason(late), MODEL_REASON_READ_ONLY);
    cr_assert_not(coord_core_is_serving(d.core));
    cr_assert_eq(driver_n_events(&d, RT_LOG_ERROR, "read_only"), 1);
    (void)driver_free_call(early);
    (void)driver_free_call(late);
    driver_deinit(&d);
}

Test(core_store, rows_that_cannot_be_decoded_are_named)
{
    struct rt_error err = RT_ERROR_INIT;
    struct store_txn *txn = store_txn_new();
    struct coord_member_row row = {.ordinal = 1};
    static const char *const bad[] = {"meta", "counter", "cursor", "route",
                                      "m/x",  "k/x",     "x",      "s/0123456789abcdef"};

    driver_init(&d);
    driver_restart(&d, false);
    for (size_t i = 0; i < RT_ARRAY_SIZE(bad); i++) {
        err = (struct rt_error)RT_ERROR_INIT;
        cr_assert_eq(
            coord_core_load(d.core, rt_bytes_of_string(bad[i]), RT_BYTES_LITERAL("\1z"), &err),
            RT_DATA_LOSS, "%s", bad[i]);
        cr_assert_neq(err.message[0], '\0');
    }
    coord_rows_put_member(txn, "one", &row);
    coord_rows_put_member(txn, "two", &row);
    coord_rows_put_member(txn, "bad/name", &row);
    cr_assert_eq(coord_core_load(d.core, txn->operations[0].key, txn->operations[0].value, &err),
                 RT_OK);
    cr_assert_eq(coord_core_load(d.core, txn->operations[1].key, txn->operations[1].value, &err),
                 RT_DATA_LOSS, "one ordinal twice");
    cr_assert_eq(coord_core_load(d.core, txn->operations[2].key, txn->operations[2].value, &err),
                 RT_DATA_LOSS);
    (void)store_txn_free(txn);
    driver_deinit(&d);
}

Test(core_store, a_key_whose_owner_has_no_row_counts_as_down)
{
    struct coord_key_row row = {.phase = COORD_PHASE_ACTIVE, .owner = 7, .epoch = 5};
    struct store_txn *txn = store_txn_new();

    driver_init(&d);
    d.core = coord_core_new(&d.config, &d.env.env);
    coord_rows_put_key(txn, RT_BYTES_LITERAL("k"), &row);
    cr_assert_eq(coord_core_load(d.core, txn->operations[0].key, txn->operations[0].value, NULL),
                 RT_OK);
    (void)store_txn_free(txn);
    coord_core_start(d.core);
    driver_settle(&d);
    s = driver_open(&d, "esi");
    driver_expect(run(MODEL_STATEMENT_GET, "k"), MODEL_REASON_KEY_INACCESSIBLE);
    driver_deinit(&d);
}

/* ---- commit, then speak ---------------------------------------------------------------------- */

Test(core_store, no_answer_before_its_transaction)
{
    struct model_call *calls[3];

    begin();
    d.auto_commit = false;
    calls[0] = driver_register(&d, "B", "B", 1);
    calls[1] = driver_execute(&d, &s, MODEL_STATEMENT_GET, "k", NULL);
    calls[2] = driver_new_call(&d, MODEL_CALL_OPEN_SESSION);
    (void)snprintf(calls[2]->request.open_session.name, MODEL_NAME_MAX, "other");
    calls[2]->request.open_session.request_id.client = driver_id("other", 1);
    driver_submit(&d, calls[2]);
    for (int i = 0; i < 3; i++) {
        cr_assert_not(driver_is_answered(calls[i]));
        driver_commit(&d, STORE_COMMITTED);
        driver_expect(driver_reason(calls[i]), MODEL_REASON_NONE);
        (void)driver_free_call(calls[i]);
    }
    cr_assert_eq(driver_n_txns(&d), 0);
    driver_deinit(&d);
}

Test(core_store, a_plain_set_needs_no_commit)
{
    uint64_t n_txns;

    begin();
    driver_expect(run(MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    driver_expect(run(MODEL_STATEMENT_SET, "k"), MODEL_REASON_NONE);
    n_txns = d.n_txns;
    driver_expect(run(MODEL_STATEMENT_SET, "k"), MODEL_REASON_NONE);
    driver_expect(run(MODEL_STATEMENT_READ, "k"), MODEL_REASON_NONE);
    cr_assert_eq(d.n_txns, n_txns);
    driver_deinit(&d);
}

/* ---- full disk ------------------------------------------------------------------------------- */

Test(core_store, disk_full_changes_nothing_and_ends_by_itself)
{
    struct model_call *call;

    begin();
    next_commit(STORE_FULL);
    call = driver_execute(&d, &s, MODEL_STATEMENT_GET, "k", NULL);
    driver_expect(driver_reason(call), MODEL_REASON_DISK_FULL);
    cr_assert_eq(call->response.code, RT_RESOURCE_EXHAUSTED);
    cr_assert_eq(call->response.error.applied, MODEL_APPLIED_NO);
    (void)driver_free_call(call);
    driver_expect_owner(&d, "k", "?");
    driver_expect(run(MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    next_commit(STORE_FULL);
    driver_expect(run(MODEL_STATEMENT_SET, "k"), MODEL_REASON_DISK_FULL);
    driver_expect_owner(&d, "k", "");
    driver_expect(run(MODEL_STATEMENT_SET, "k"), MODEL_REASON_NONE);
    next_commit(STORE_FULL);
    driver_expect(run(MODEL_STATEMENT_STORE, "k"), MODEL_REASON_DISK_FULL);
    driver_expect(run(MODEL_STATEMENT_STORE, "k"), MODEL_REASON_NONE);
    driver_deinit(&d);
}

Test(core_store, disk_full_at_each_commit_of_each_statement_recovers)
{
    static const enum model_statement_kind kinds[] = {
        MODEL_STATEMENT_GET, MODEL_STATEMENT_SET, MODEL_STATEMENT_STORE,  MODEL_STATEMENT_GET,
        MODEL_STATEMENT_PUT, MODEL_STATEMENT_GET, MODEL_STATEMENT_DELETE, MODEL_STATEMENT_STORE,
    };

    for (size_t failing = 0; failing < 4; failing++) {
        begin();
        for (size_t i = 0; i < RT_ARRAY_SIZE(kinds); i++) {
            struct model_call *call;

            for (size_t j = 0; j < failing; j++)
                d.outcomes[j] = STORE_COMMITTED;
            d.outcomes[failing] = STORE_FULL;
            d.n_outcomes = failing + 1;
            call = driver_execute(
                &d, &s, kinds[i], "k",
                kinds[i] == MODEL_STATEMENT_SET || kinds[i] == MODEL_STATEMENT_PUT ? "v" : NULL);
            d.n_outcomes = 0;
            if (driver_reason(call) != MODEL_REASON_NONE) {
                driver_expect(driver_reason(call), MODEL_REASON_DISK_FULL);
                call->context = NULL;
                driver_submit(&d, call);
                driver_expect(driver_reason(call), MODEL_REASON_NONE);
            }
            (void)driver_free_call(call);
        }
        driver_deinit(&d);
    }
}

Test(core_store, a_store_that_is_durable_is_not_said_to_have_failed)
{
    struct model_call *call;

    begin();
    driver_expect(run(MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    driver_expect(run(MODEL_STATEMENT_SET, "k"), MODEL_REASON_NONE);
    d.outcomes[0] = STORE_COMMITTED;
    d.outcomes[1] = STORE_FULL;
    d.n_outcomes = 2;
    call = driver_execute(&d, &s, MODEL_STATEMENT_STORE, "k", NULL);
    driver_expect(driver_reason(call), MODEL_REASON_DISK_FULL);
    cr_assert_eq(call->response.error.applied, MODEL_APPLIED_MAYBE);
    call->context = NULL;
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    cr_assert(call->response.execute.data.replayed, "by the owner");
    driver_expect(run(MODEL_STATEMENT_SET, "k"), MODEL_REASON_KEY_NOT_LOCKED);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

/* ---- a commit that failed -------------------------------------------------------------------- */

Test(core_store, an_unknown_outcome_makes_the_core_read_only)
{
    struct model_call *call;
    uint64_t incarnation;

    begin();
    incarnation = driver_join(&d, "B", 1);
    driver_expect(run(MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    driver_expect(run(MODEL_STATEMENT_SET, "k"), MODEL_REASON_NONE);
    next_commit(STORE_UNKNOWN);
    call = driver_execute(&d, &s, MODEL_STATEMENT_GET, "k2", NULL);
    driver_expect(driver_reason(call), MODEL_REASON_STORE_ERROR);
    cr_assert_eq(call->response.error.applied, MODEL_APPLIED_MAYBE);
    (void)driver_free_call(call);
    cr_assert_not(coord_core_is_serving(d.core));

    call = driver_execute(&d, &s, MODEL_STATEMENT_SET, "k", "w");
    driver_expect(driver_reason(call), MODEL_REASON_READ_ONLY);
    cr_assert_eq(call->response.error.applied, MODEL_APPLIED_NO);
    (void)driver_free_call(call);
    call = driver_register(&d, "C", "C", 1);
    driver_expect(driver_reason(call), MODEL_REASON_READ_ONLY);
    (void)driver_free_call(call);
    driver_expect(run(MODEL_STATEMENT_READ, "k"), MODEL_REASON_NONE);
    driver_expect(driver_renew(&d, "B", incarnation), MODEL_REASON_NONE);
    driver_keep_alive(&d, &s);
    driver_expect_owner(&d, "k", "A");
    driver_sleep_ms(&d, 5000);
    cr_assert_eq(driver_n_txns(&d), 0, "nobody is declared dead");
    driver_restart(&d, false);
    driver_expect(run(MODEL_STATEMENT_SET, "k"), MODEL_REASON_NONE);
    driver_deinit(&d);
}

Test(core_store, an_operation_under_way_when_the_core_turns_read_only_may_have_happened)
{
    struct model_call *call;
    struct model_call *other;

    begin();
    driver_expect(run(MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    driver_expect(run(MODEL_STATEMENT_SET, "k"), MODEL_REASON_NONE);
    d.auto_answer = false;
    call = driver_execute(&d, &s, MODEL_STATEMENT_STORE, "k", NULL);
    next_commit(STORE_UNKNOWN);
    other = driver_execute(&d, &s, MODEL_STATEMENT_GET, "k2", NULL);
    driver_answer(&d, driver_find_call(&d, MODEL_CALL_STORE));
    cr_assert(driver_is_answered(call));
    cr_assert_eq(call->response.error.applied, MODEL_APPLIED_MAYBE);
    (void)driver_free_call(call);
    (void)driver_free_call(other);
    driver_deinit(&d);
}

/* ---- counter --------------------------------------------------------------------------------- */

Test(core_store, rule16_numbers_are_never_used_again_after_a_restart)
{
    uint64_t newest = 0;

    begin();
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 30; i++) {
            struct model_call *call = driver_execute(&d, &s, MODEL_STATEMENT_GET, "k", NULL);
            uint64_t token = call->response.execute.lock_token;

            driver_expect(driver_reason(call), MODEL_REASON_NONE);
            cr_assert_gt(token, newest);
            newest = token;
            (void)driver_free_call(call);
            driver_expect(run(MODEL_STATEMENT_STORE, "k"), MODEL_REASON_NONE);
        }
        driver_restart(&d, round % 2 == 0);
    }
    cr_assert_gt(newest, 3000, "each term begins a new block");
    driver_deinit(&d);
}

Test(core_store, rule16_whether_or_not_the_transaction_in_flight_was_applied)
{
    for (int applied = 0; applied < 2; applied++) {
        struct model_call *call;
        struct model_call *again;
        uint64_t first;

        begin();
        driver_expect(run(MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
        driver_expect(run(MODEL_STATEMENT_SET, "k"), MODEL_REASON_NONE);
        driver_expect(run(MODEL_STATEMENT_STORE, "k"), MODEL_REASON_NONE);
        first = d.keys[0].floor;
        d.auto_commit = false;
        call = driver_execute(&d, &s, MODEL_STATEMENT_GET, "k", NULL);
        cr_assert_eq(d.n_sent[MODEL_CALL_FENCE], 0, "no number leaves before it is durable");
        driver_restart(&d, applied);
        d.auto_commit = true;
        driver_settle(&d);
        again = driver_execute(&d, &s, MODEL_STATEMENT_GET, "k", NULL);
        driver_expect(driver_reason(again), MODEL_REASON_NONE);
        cr_assert_gt(again->response.execute.lock_token, first);
        cr_assert_eq(again->response.execute.lock_token > 1000, !applied);
        driver_deinit(&d);
        (void)driver_free_call(call);
        (void)driver_free_call(again);
    }
}

Test(core_store, the_placement_version_never_falls)
{
    uint64_t newest = 0;

    begin();
    for (int i = 0; i < 10; i++) {
        char key[4] = {'k', (char)('0' + i), '\0'};
        struct model_call *call;

        driver_expect(run(MODEL_STATEMENT_GET, key), MODEL_REASON_NONE);
        call = driver_execute(&d, &s, MODEL_STATEMENT_SET, key, "v");
        cr_assert_gt(call->response.responder.placement_version, newest);
        newest = call->response.responder.placement_version;
        (void)driver_free_call(call);
        call = driver_new_call(&d, MODEL_CALL_LIST_INSTANCES);
        driver_restart(&d, false);
        driver_submit(&d, call);
        cr_assert_eq(call->response.responder.placement_version, newest);
        (void)driver_free_call(call);
    }
    driver_deinit(&d);
}

/* ---- restart --------------------------------------------------------------------------------- */

Test(core_store, locks_and_values_survive_a_restart)
{
    struct driver_session other;

    begin();
    driver_expect(run(MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    driver_expect(run(MODEL_STATEMENT_SET, "k"), MODEL_REASON_NONE);
    driver_restart(&d, false);
    other = driver_open(&d, "other");
    cr_assert_eq(driver_get(&d, &other, "k"), MODEL_OUTCOME_WAITING);
    driver_expect(run(MODEL_STATEMENT_SET, "k"), MODEL_REASON_NONE);
    driver_expect(run(MODEL_STATEMENT_STORE, "k"), MODEL_REASON_NONE);
    cr_assert_eq(driver_get(&d, &other, "k"), MODEL_OUTCOME_DONE);
    driver_deinit(&d);
}

/* Every commit of a script is once the last before a crash; then the script goes on. */
Test(core_store, a_crash_after_any_commit_is_finished_by_the_retry)
{
    static const enum model_statement_kind kinds[] = {
        MODEL_STATEMENT_GET, MODEL_STATEMENT_SET,   MODEL_STATEMENT_STORE, MODEL_STATEMENT_GET,
        MODEL_STATEMENT_PUT, MODEL_STATEMENT_STORE, MODEL_STATEMENT_GET,   MODEL_STATEMENT_DELETE,
    };

    for (size_t crash_at = 0; crash_at < 16; crash_at++) {
        size_t n_commits = 0;

        begin();
        d.auto_commit = false;
        for (size_t i = 0; i < RT_ARRAY_SIZE(kinds); i++) {
            bool writes = kinds[i] == MODEL_STATEMENT_SET || kinds[i] == MODEL_STATEMENT_PUT;
            struct model_call *call;

            call = driver_execute(&d, &s, kinds[i], "k", writes ? "v" : NULL);
            while (!driver_is_answered(call)) {
                bool crashes = n_commits++ == crash_at;

                driver_commit(&d, STORE_COMMITTED);
                if (!crashes || driver_is_answered(call))
                    continue;
                driver_restart(&d, false);
                driver_commit(&d, STORE_COMMITTED);
                call->state = NULL;
                driver_submit(&d, call);
            }
            if (kinds[i] != MODEL_STATEMENT_STORE || i < 5)
                driver_expect(driver_reason(call), MODEL_REASON_NONE);
            (void)driver_free_call(call);
        }
        driver_deinit(&d);
    }
}

Test(core_store, freeing_a_core_in_the_middle_leaves_nothing)
{
    struct model_call *calls[4];
    struct driver_session other;

    begin();
    other = driver_open(&d, "other");
    driver_expect(run(MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    driver_expect(run(MODEL_STATEMENT_SET, "k"), MODEL_REASON_NONE);
    cr_assert_eq(driver_get(&d, &other, "k"), MODEL_OUTCOME_WAITING);
    calls[0] = driver_execute(&d, &other, MODEL_STATEMENT_AWAIT, "k", NULL);
    d.auto_answer = false;
    d.auto_commit = false;
    calls[1] = driver_execute(&d, &s, MODEL_STATEMENT_READ, "k", NULL);
    calls[2] = driver_execute(&d, &s, MODEL_STATEMENT_STORE, "k", NULL);
    calls[3] = driver_execute(&d, &s, MODEL_STATEMENT_GET, "k", NULL);
    driver_deinit(&d);
    for (int i = 0; i < 4; i++)
        (void)driver_free_call(calls[i]);
}

Test(core_store, a_draining_core_lets_go_and_takes_nothing_new)
{
    struct model_call *call;
    uint64_t incarnation;

    begin();
    incarnation = driver_join(&d, "B", 1);
    coord_core_drain(d.core);
    cr_assert_not(coord_core_is_serving(d.core));
    driver_expect(run(MODEL_STATEMENT_GET, "k"), MODEL_REASON_DRAINING);
    call = driver_register(&d, "C", "C", 1);
    driver_expect(driver_reason(call), MODEL_REASON_DRAINING);
    (void)driver_free_call(call);
    driver_expect(driver_renew(&d, "B", incarnation), MODEL_REASON_NONE);
    driver_leave(&d, "B", incarnation);
    driver_close(&d, &s);
    driver_deinit(&d);
}

Test(core_store, a_call_for_an_instance_is_refused)
{
    struct model_call *call;

    begin();
    call = driver_new_call(&d, MODEL_CALL_FENCE);
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_INVALID_FIELD);
    (void)driver_free_call(call);
    driver_deinit(&d);
}
