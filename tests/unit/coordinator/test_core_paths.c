/*
 * Ways through the core that need something unusual: no memory, a store that has failed, an owner
 * that goes in the middle, answers that were lost.
 */
#include "coordinator/rows.h"
#include "tests/unit/coordinator/driver.h"

TestSuite(core_paths, .fini = test_alloc_expect_none);

static struct driver d;
static struct driver_session s;

static void begin(enum model_locking locking, enum coord_owner_down owner_down)
{
    driver_init(&d);
    d.config.locking = locking;
    d.config.owner_down = owner_down;
    d.config.session_lease.duration_us = 3600000000;
    driver_restart(&d, false);
    (void)driver_join(&d, "A", 1);
    s = driver_open(&d, "esi");
}

static enum model_reason run(enum model_statement_kind kind, const char *key)
{
    bool writes = kind == MODEL_STATEMENT_SET || kind == MODEL_STATEMENT_PUT;

    return driver_run(&d, &s, kind, key, writes ? "v" : NULL);
}

static enum model_reason finish(struct model_call *call)
{
    enum model_reason reason = driver_reason(call);

    (void)driver_free_call(call);
    return reason;
}

/* ---- no memory ------------------------------------------------------------------------------- */

static void fill(struct model_call *call, enum model_statement_kind kind)
{
    struct model_execute_request *request = &call->request.execute;

    request->session_id = s.id;
    request->request_id = (struct model_request_id){s.client, ++s.seq};
    request->kind = kind;
    request->key = RT_BYTES_LITERAL("k");
    if (kind == MODEL_STATEMENT_SET || kind == MODEL_STATEMENT_PUT)
        request->value = RT_BYTES_LITERAL("v");
}

/* Each allocation that may fail does once; the statement says so and works when repeated. (Those of
 * a transaction abort, as all control structures do.) */
Test(core_paths, no_memory_for_what_is_sent_to_the_owner)
{
    static const enum model_statement_kind kinds[] = {
        MODEL_STATEMENT_GET,
        MODEL_STATEMENT_SET,
        MODEL_STATEMENT_READ,
    };

    begin(MODEL_LOCKING_REQUIRED, COORD_OWNER_DOWN_FORGET);
    driver_expect(run(MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    driver_expect(run(MODEL_STATEMENT_SET, "k"), MODEL_REASON_NONE);
    for (size_t i = 0; i < RT_ARRAY_SIZE(kinds); i++) {
        size_t n_refused = 0;
        bool failed = true;

        for (size_t countdown = 0; failed; countdown++) {
            struct model_call *call = driver_new_call(&d, MODEL_CALL_EXECUTE);
            size_t failures = test_alloc_failures();

            fill(call, kinds[i]);
            test_alloc_fail_after(countdown, 1);
            driver_submit(&d, call);
            failed = test_alloc_failures() > failures;
            test_alloc_fail_never();
            if (failed) {
                driver_expect(driver_reason(call), MODEL_REASON_LIMIT_REACHED);
                cr_assert_eq(call->response.code, RT_RESOURCE_EXHAUSTED);
                n_refused++;
            }
            (void)driver_free_call(call);
        }
        cr_assert_geq(n_refused, 1);
    }
    driver_expect(run(MODEL_STATEMENT_STORE, "k"), MODEL_REASON_NONE);
    driver_deinit(&d);
}

Test(core_paths, no_memory_for_reconcile_pull_and_status)
{
    static const enum model_call_kind kinds[] = {MODEL_CALL_RECONCILE, MODEL_CALL_PULL_ROWS};
    struct model_held_row held = {.key = RT_BYTES_LITERAL("k")};
    struct model_call *call;
    struct model_call *set;

    begin(MODEL_LOCKING_NONE, COORD_OWNER_DOWN_FORGET);
    set = driver_execute(&d, &s, MODEL_STATEMENT_SET, "k", "v");
    held.epoch = set->response.execute.epoch;
    (void)driver_free_call(set);
    for (size_t i = 0; i < RT_ARRAY_SIZE(kinds); i++) {
        call = driver_new_call(&d, kinds[i]);
        if (kinds[i] == MODEL_CALL_RECONCILE)
            call->request.reconcile = (struct model_reconcile_request){
                .name = "A", .incarnation = 1, .rows = &held, .n_rows = 1, .last = true};
        else
            call->request.pull_rows = (struct model_pull_rows_request){
                .name = "A", .incarnation = 1, .keys = &held.key, .n_keys = 1};
        test_alloc_fail_after(0, 1);
        driver_submit(&d, call);
        test_alloc_fail_never();
        driver_expect(finish(call), MODEL_REASON_LIMIT_REACHED);
    }
    call = driver_new_call(&d, MODEL_CALL_KEY_STATUS);
    call->request.key_status.key = RT_BYTES_LITERAL("k");
    test_alloc_fail_after(0, 1);
    driver_submit(&d, call);
    test_alloc_fail_never();
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    cr_assert(call->response.key_status.value_unavailable, "the question could not be asked");
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_paths, no_memory_while_loading)
{
    struct coord_key_row row = {.phase = COORD_PHASE_UNPLACED};
    struct store_txn *txn = store_txn_new();

    coord_rows_put_key(txn, RT_BYTES_LITERAL("k"), &row);
    driver_init(&d);
    d.core = coord_core_new(&d.config, &d.env.env);
    test_alloc_fail_after(0, 1);
    cr_assert_eq(coord_core_load(d.core, txn->operations[0].key, txn->operations[0].value, NULL),
                 RT_RESOURCE_EXHAUSTED);
    test_alloc_fail_never();
    (void)store_txn_free(txn);
    driver_deinit(&d);
    cr_assert_null(coord_core_free(NULL));
}

/* ---- read-only ------------------------------------------------------------------------------- */

Test(core_paths, a_read_only_core_refuses_what_would_change_it)
{
    struct model_call *call;

    begin(MODEL_LOCKING_REQUIRED, COORD_OWNER_DOWN_FORGET);
    d.outcomes[0] = STORE_UNKNOWN;
    d.n_outcomes = 1;
    driver_expect(run(MODEL_STATEMENT_GET, "k"), MODEL_REASON_STORE_ERROR);
    call = driver_new_call(&d, MODEL_CALL_OPEN_SESSION);
    (void)snprintf(call->request.open_session.name, MODEL_NAME_MAX, "x");
    call->request.open_session.request_id.client = driver_id("x", 1);
    driver_submit(&d, call);
    driver_expect(finish(call), MODEL_REASON_READ_ONLY);
    call = driver_new_call(&d, MODEL_CALL_CLOSE_SESSION);
    call->request.session.session_id = s.id;
    driver_submit(&d, call);
    driver_expect(finish(call), MODEL_REASON_READ_ONLY);
    call = driver_new_call(&d, MODEL_CALL_LEAVE);
    (void)snprintf(call->request.leave.name, MODEL_NAME_MAX, "A");
    call->request.leave.incarnation = 1;
    driver_submit(&d, call);
    driver_expect(finish(call), MODEL_REASON_READ_ONLY);
    call = driver_new_call(&d, MODEL_CALL_RECONCILE);
    (void)snprintf(call->request.reconcile.name, MODEL_NAME_MAX, "A");
    call->request.reconcile.incarnation = 1;
    driver_submit(&d, call);
    driver_expect(finish(call), MODEL_REASON_READ_ONLY);
    driver_sleep_ms(&d, 10000);
    cr_assert_eq(driver_n_txns(&d), 0);
    driver_deinit(&d);
}

Test(core_paths, a_read_of_a_key_to_forget_in_a_read_only_core)
{
    begin(MODEL_LOCKING_NONE, COORD_OWNER_DOWN_FORGET);
    driver_expect(run(MODEL_STATEMENT_PUT, "k"), MODEL_REASON_NONE);
    driver_leave(&d, "A", 1);
    d.outcomes[0] = STORE_UNKNOWN;
    d.n_outcomes = 1;
    driver_expect(run(MODEL_STATEMENT_GET, "x"), MODEL_REASON_STORE_ERROR);
    driver_expect(run(MODEL_STATEMENT_READ, "k"), MODEL_REASON_READ_ONLY);
    driver_deinit(&d);
}

/* ---- sessions -------------------------------------------------------------------------------- */

Test(core_paths, keep_alive_of_an_unknown_session)
{
    struct model_call *call;

    begin(MODEL_LOCKING_REQUIRED, COORD_OWNER_DOWN_FORGET);
    call = driver_new_call(&d, MODEL_CALL_KEEP_ALIVE);
    driver_submit(&d, call);
    driver_expect(finish(call), MODEL_REASON_SESSION_UNKNOWN);
    driver_deinit(&d);
}

Test(core_paths, a_late_copy_of_a_finished_write_has_no_effect)
{
    struct model_call *late;
    struct model_call *next;

    begin(MODEL_LOCKING_NONE, COORD_OWNER_DOWN_FORGET);
    late = driver_execute(&d, &s, MODEL_STATEMENT_SET, "k", "old");
    driver_expect(driver_reason(late), MODEL_REASON_NONE);
    next = driver_new_call(&d, MODEL_CALL_EXECUTE);
    fill(next, MODEL_STATEMENT_SET);
    next->request.execute.done_below = s.seq;
    driver_submit(&d, next);
    driver_expect(finish(next), MODEL_REASON_NONE);
    late->context = NULL;
    driver_submit(&d, late);
    driver_expect(finish(late), MODEL_REASON_OUTCOME_UNKNOWN);
    cr_assert_eq(d.n_sent[MODEL_CALL_SET], 2);
    driver_deinit(&d);
}

Test(core_paths, a_late_copy_of_a_delete_that_found_nothing_has_no_effect)
{
    struct model_call *late;

    begin(MODEL_LOCKING_NONE, COORD_OWNER_DOWN_FORGET);
    driver_expect(run(MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    late = driver_execute(&d, &s, MODEL_STATEMENT_DELETE, "k", NULL);
    driver_expect(driver_reason(late), MODEL_REASON_NONE);
    driver_expect(run(MODEL_STATEMENT_PUT, "k"), MODEL_REASON_NONE);
    late->context = NULL;
    driver_submit(&d, late);
    cr_assert(late->response.execute.data.replayed);
    driver_expect(finish(late), MODEL_REASON_NONE);
    cr_assert_eq(d.n_sent[MODEL_CALL_DELETE], 0);
    driver_deinit(&d);
}

/* A SET whose first attempt went through an earlier coordinator: first_epoch as the owner hears it,
 * 0 when it is not asked. */
static uint64_t first_epoch_of_retry(uint64_t first_version, enum model_reason *ret_reason)
{
    struct model_call *call = driver_new_call(&d, MODEL_CALL_EXECUTE);
    struct model_call *sent;
    uint64_t first_epoch;

    fill(call, MODEL_STATEMENT_SET);
    call->request.execute.first_version = first_version;
    d.auto_answer = false;
    driver_submit(&d, call);
    sent = driver_find_call(&d, MODEL_CALL_SET);
    first_epoch = sent ? sent->request.data.header.first_epoch : 0;
    if (sent)
        driver_answer(&d, sent);
    d.auto_answer = true;
    *ret_reason = finish(call);
    return first_epoch;
}

Test(core_paths, a_retry_from_before_a_restart_is_not_a_new_request)
{
    enum model_reason reason;
    uint64_t incarnation;
    uint64_t epoch;

    begin(MODEL_LOCKING_NONE, COORD_OWNER_DOWN_KEEP);
    driver_expect(run(MODEL_STATEMENT_PUT, "k"), MODEL_REASON_NONE);
    driver_restart(&d, false);
    incarnation = driver_join(&d, "A", 1);
    epoch = first_epoch_of_retry(0, &reason);
    driver_expect(reason, MODEL_REASON_NONE);
    cr_assert_gt(epoch, incarnation);

    cr_assert_eq(first_epoch_of_retry(epoch, &reason), epoch);
    driver_expect(reason, MODEL_REASON_NONE);
    cr_assert_eq(first_epoch_of_retry(epoch - 1, &reason), epoch - 1);
    cr_assert_eq(first_epoch_of_retry(incarnation, &reason), incarnation);

    incarnation = driver_join(&d, "A", 2);
    cr_assert_eq(first_epoch_of_retry(incarnation, &reason), epoch);
    driver_expect(reason, MODEL_REASON_NONE);
    cr_assert_eq(first_epoch_of_retry(incarnation - 1, &reason), 0);
    driver_expect(reason, MODEL_REASON_OUTCOME_UNKNOWN);
    driver_deinit(&d);
}

Test(core_paths, a_call_without_a_deadline_has_ten_seconds)
{
    struct model_call *call;

    begin(MODEL_LOCKING_NONE, COORD_OWNER_DOWN_KEEP);
    driver_expect(run(MODEL_STATEMENT_PUT, "k"), MODEL_REASON_NONE);
    driver_leave(&d, "A", 1);
    call = driver_new_call(&d, MODEL_CALL_EXECUTE);
    call->deadline_us = RT_NEVER;
    fill(call, MODEL_STATEMENT_READ);
    driver_submit(&d, call);
    driver_sleep_ms(&d, 9900);
    cr_assert_not(driver_is_answered(call));
    driver_sleep_ms(&d, 200);
    driver_expect(finish(call), MODEL_REASON_OWNER_DOWN);
    driver_deinit(&d);
}

Test(core_paths, an_await_without_a_deadline_waits_on)
{
    struct driver_session other;
    struct model_call *call;

    begin(MODEL_LOCKING_REQUIRED, COORD_OWNER_DOWN_FORGET);
    other = driver_open(&d, "other");
    driver_expect(run(MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    cr_assert_eq(driver_get(&d, &other, "k"), MODEL_OUTCOME_WAITING);
    call = driver_new_call(&d, MODEL_CALL_EXECUTE);
    fill(call, MODEL_STATEMENT_AWAIT);
    call->request.execute.session_id = other.id;
    call->deadline_us = RT_NEVER;
    driver_submit(&d, call);
    driver_sleep_ms(&d, 20000);
    cr_assert_not(driver_is_answered(call));
    driver_expect(run(MODEL_STATEMENT_STORE, "k"), MODEL_REASON_NONE);
    driver_expect(finish(call), MODEL_REASON_NONE);
    driver_deinit(&d);
}

/* ---- keys without a value -------------------------------------------------------------------- */

Test(core_paths, an_unplaced_unlocked_key_is_deleted_at_once)
{
    struct model_call *call;

    begin(MODEL_LOCKING_OPTIONAL, COORD_OWNER_DOWN_FORGET);
    driver_expect(run(MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    driver_expect(run(MODEL_STATEMENT_STORE, "k"), MODEL_REASON_NONE);
    driver_expect(run(MODEL_STATEMENT_STORE, "k"), MODEL_REASON_NONE);
    d.outcomes[0] = STORE_FULL;
    d.n_outcomes = 1;
    call = driver_execute(&d, &s, MODEL_STATEMENT_DELETE, "k", NULL);
    driver_expect(driver_reason(call), MODEL_REASON_DISK_FULL);
    for (int i = 0; i < 2; i++) {
        call->context = NULL;
        driver_submit(&d, call);
        driver_expect(driver_reason(call), MODEL_REASON_NONE);
        driver_expect_owner(&d, "k", "?");
    }
    driver_expect(finish(call), MODEL_REASON_NONE);
    driver_deinit(&d);
}

Test(core_paths, a_version_that_cannot_be_there)
{
    struct model_call *call;

    begin(MODEL_LOCKING_OPTIONAL, COORD_OWNER_DOWN_FORGET);
    call = driver_new_call(&d, MODEL_CALL_EXECUTE);
    fill(call, MODEL_STATEMENT_PUT);
    call->request.execute.has_if_version = true;
    call->request.execute.if_version = (struct model_version){1, 1, 1};
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_VERSION_MISMATCH);
    driver_expect_owner(&d, "k", "?");
    call->context = NULL;
    call->request.execute.if_version = (struct model_version){0, 0, 0};
    driver_submit(&d, call);
    driver_expect(finish(call), MODEL_REASON_NONE);
    driver_deinit(&d);
}

/* ---- drop ------------------------------------------------------------------------------------ */

/* PUT, then DELETE up to its Drop, which is held back. */
static struct model_call *delete_until_drop(void)
{
    struct model_call *call;

    driver_expect(run(MODEL_STATEMENT_PUT, "k"), MODEL_REASON_NONE);
    d.auto_answer = false;
    call = driver_execute(&d, &s, MODEL_STATEMENT_DELETE, "k", NULL);
    driver_answer(&d, driver_find_call(&d, MODEL_CALL_DELETE));
    cr_assert_not_null(driver_find_call(&d, MODEL_CALL_DROP));
    return call;
}

Test(core_paths, a_drop_goes_on_after_a_restart)
{
    struct model_call *call;

    begin(MODEL_LOCKING_OPTIONAL, COORD_OWNER_DOWN_FORGET);
    call = delete_until_drop();
    driver_restart(&d, false);
    d.auto_answer = true;
    driver_settle(&d);
    driver_expect_owner(&d, "k", "?");
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_paths, a_drop_waits_while_its_owner_joins_and_ends_with_it)
{
    struct model_call *call;
    struct model_call *reg;

    begin(MODEL_LOCKING_OPTIONAL, COORD_OWNER_DOWN_FORGET);
    call = delete_until_drop();
    reg = driver_register(&d, "A", "A", 2);
    driver_lose(&d, driver_find_call(&d, MODEL_CALL_DROP));
    driver_sleep_ms(&d, 100);
    driver_expect(finish(call), MODEL_REASON_NONE);
    driver_leave(&d, "A", reg->response.reg.incarnation);
    driver_expect_owner(&d, "k", "?");
    (void)driver_free_call(reg);
    driver_deinit(&d);
}

Test(core_paths, keep_waits_with_a_drop_for_an_owner_that_is_down)
{
    struct model_call *call;

    begin(MODEL_LOCKING_OPTIONAL, COORD_OWNER_DOWN_KEEP);
    call = delete_until_drop();
    driver_leave(&d, "A", 1);
    driver_lose(&d, driver_find_call(&d, MODEL_CALL_DROP));
    driver_sleep_ms(&d, 5000);
    driver_expect(finish(call), MODEL_REASON_NONE);
    d.auto_answer = true;
    driver_expect_owner(&d, "k", "A");
    (void)driver_join(&d, "A", 2);
    driver_expect_owner(&d, "k", "?");
    driver_deinit(&d);
}

Test(core_paths, an_owner_that_refuses_a_drop_keeps_the_key)
{
    struct model_call *call;

    begin(MODEL_LOCKING_OPTIONAL, COORD_OWNER_DOWN_FORGET);
    call = delete_until_drop();
    driver_refuse(&d, driver_find_call(&d, MODEL_CALL_DROP), MODEL_REASON_VERSION_MISMATCH);
    driver_sleep_ms(&d, 600);
    driver_expect(finish(call), MODEL_REASON_NONE);
    d.auto_answer = true;
    driver_expect_owner(&d, "k", "A");
    driver_expect(run(MODEL_STATEMENT_PUT, "k"), MODEL_REASON_NONE);
    driver_deinit(&d);
}

Test(core_paths, a_drop_on_a_full_disk_is_finished_later)
{
    struct model_call *call;

    begin(MODEL_LOCKING_OPTIONAL, COORD_OWNER_DOWN_FORGET);
    for (size_t failing = 0; failing < 2; failing++) {
        driver_expect(run(MODEL_STATEMENT_PUT, "k"), MODEL_REASON_NONE);
        d.outcomes[0] = failing == 0 ? STORE_FULL : STORE_COMMITTED;
        d.outcomes[1] = STORE_FULL;
        d.n_outcomes = failing + 1;
        call = driver_execute(&d, &s, MODEL_STATEMENT_DELETE, "k", NULL);
        driver_expect(finish(call), MODEL_REASON_NONE);
        driver_expect_owner(&d, "k", "A");
        driver_sleep_ms(&d, 1100);
        driver_expect_owner(&d, "k", "?");
        driver_expect(driver_renew(&d, "A", 1), MODEL_REASON_NONE);
    }
    driver_deinit(&d);
}

Test(core_paths, a_drop_that_an_earlier_term_sent_leads_to_a_new_place)
{
    struct model_call *call;
    struct model_call *sent;
    struct model_call *set;

    begin(MODEL_LOCKING_NONE, COORD_OWNER_DOWN_FORGET);
    call = delete_until_drop();
    driver_refuse(&d, driver_find_call(&d, MODEL_CALL_DROP), MODEL_REASON_LIMIT_REACHED);
    set = driver_execute(&d, &s, MODEL_STATEMENT_SET, "k", "w");
    sent = driver_find_call(&d, MODEL_CALL_SET);
    if (!sent) {
        driver_sleep_ms(&d, 600);
        sent = driver_find_call(&d, MODEL_CALL_SET);
    }
    cr_assert_not_null(sent);
    sent->response.responder.incarnation = 1;
    d.auto_answer = true;
    driver_refuse(&d, sent, MODEL_REASON_NOT_OWNER);
    driver_expect(finish(set), MODEL_REASON_NONE);
    driver_expect(finish(call), MODEL_REASON_NONE);
    driver_expect_owner(&d, "k", "A");
    driver_deinit(&d);
}

/* ---- reconcile ------------------------------------------------------------------------------- */

Test(core_paths, a_part_with_rows_that_are_being_changed_waits)
{
    struct model_held_row held = {.key = RT_BYTES_LITERAL("k")};
    struct model_call *call;
    struct model_call *store;
    struct model_call *reg;

    begin(MODEL_LOCKING_REQUIRED, COORD_OWNER_DOWN_FORGET);
    driver_expect(run(MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    call = driver_execute(&d, &s, MODEL_STATEMENT_SET, "k", "v");
    held.epoch = call->response.execute.epoch;
    (void)driver_free_call(call);
    d.auto_answer = false;
    store = driver_execute(&d, &s, MODEL_STATEMENT_STORE, "k", NULL);
    reg = driver_register(&d, "A", "A", 2);
    d.auto_commit = false;
    driver_answer(&d, driver_find_call(&d, MODEL_CALL_STORE));
    cr_assert_eq(driver_n_txns(&d), 1);
    for (int i = 0; i < 2; i++) {
        call = driver_new_call(&d, MODEL_CALL_RECONCILE);
        call->request.reconcile = (struct model_reconcile_request){
            .name = "A",
            .incarnation = reg->response.reg.incarnation,
            .rows = &held,
            .n_rows = 1,
            .last = true,
        };
        driver_submit(&d, call);
        cr_assert_not(driver_is_answered(call));
        if (i == 1)
            break;
        d.env.now_us += 5000000;
        coord_core_tick(d.core);
        driver_settle(&d);
        driver_expect(finish(call), MODEL_REASON_DEADLINE_EXCEEDED);
    }
    d.auto_commit = true;
    driver_settle(&d);
    driver_sleep_ms(&d, 100);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    cr_assert_eq(call->response.reconcile.n_rows, 1);
    cr_assert_not(call->response.reconcile.rows[0].key_lost);
    (void)driver_free_call(call);
    (void)driver_free_call(reg);
    driver_expect(finish(store), MODEL_REASON_NONE);
    driver_deinit(&d);
}

Test(core_paths, parts_registrations_and_leaves_wait_for_each_other)
{
    struct model_call *reg;
    struct model_call *again;
    struct model_call *part;
    struct model_call *leave;

    begin(MODEL_LOCKING_REQUIRED, COORD_OWNER_DOWN_FORGET);
    d.auto_commit = false;
    reg = driver_register(&d, "A", "A", 2);
    again = driver_register(&d, "A", "A", 2);
    cr_assert_eq(driver_n_txns(&d), 1);
    driver_commit(&d, STORE_COMMITTED);
    cr_assert_eq(reg->response.reg.incarnation, again->response.reg.incarnation);
    part = driver_new_call(&d, MODEL_CALL_RECONCILE);
    part->request.reconcile = (struct model_reconcile_request){
        .name = "A", .incarnation = reg->response.reg.incarnation, .last = true};
    driver_submit(&d, part);
    leave = driver_new_call(&d, MODEL_CALL_LEAVE);
    (void)snprintf(leave->request.leave.name, MODEL_NAME_MAX, "A");
    leave->request.leave.incarnation = reg->response.reg.incarnation;
    driver_submit(&d, leave);
    cr_assert_eq(driver_n_txns(&d), 1);
    driver_commit(&d, STORE_COMMITTED);
    driver_expect(finish(part), MODEL_REASON_NONE);
    driver_commit(&d, STORE_COMMITTED);
    driver_expect(finish(leave), MODEL_REASON_NONE);
    (void)driver_free_call(reg);
    (void)driver_free_call(again);
    driver_deinit(&d);
}

Test(core_paths, the_free_entries_of_a_renewal_are_shown)
{
    struct model_call *call;

    begin(MODEL_LOCKING_REQUIRED, COORD_OWNER_DOWN_FORGET);
    call = driver_new_call(&d, MODEL_CALL_RENEW);
    driver_renew_begin(&d, "A", 1, &call->request.renew);
    call->request.renew.entries_free = 42;
    driver_submit(&d, call);
    driver_expect(finish(call), MODEL_REASON_NONE);
    call = driver_new_call(&d, MODEL_CALL_LIST_INSTANCES);
    driver_submit(&d, call);
    cr_assert_eq(call->response.list_instances.instances[0].entries_free, 42);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

/* ---- ids of requests ------------------------------------------------------------------------- */

static enum model_reason run_with_seq(enum model_statement_kind kind, const char *key, uint64_t seq)
{
    struct model_call *call = driver_new_call(&d, MODEL_CALL_EXECUTE);

    fill(call, kind);
    call->request.execute.key = rt_bytes_of_string(key);
    call->request.execute.request_id.seq = seq;
    driver_submit(&d, call);
    cr_assert(driver_is_answered(call));
    return finish(call);
}

/* It would be answered with what became of the other key, or be taken for its repetition. */
Test(core_paths, an_id_belongs_to_one_key)
{
    begin(MODEL_LOCKING_REQUIRED, COORD_OWNER_DOWN_FORGET);
    driver_expect(run(MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    driver_expect(run(MODEL_STATEMENT_GET, "other"), MODEL_REASON_NONE);
    driver_expect(run_with_seq(MODEL_STATEMENT_SET, "k", 100), MODEL_REASON_NONE);
    driver_expect(run_with_seq(MODEL_STATEMENT_SET, "other", 100), MODEL_REASON_INVALID_FIELD);
    driver_expect(run_with_seq(MODEL_STATEMENT_STORE, "k", 101), MODEL_REASON_NONE);
    driver_restart(&d, false);
    (void)driver_join(&d, "A", 2);
    driver_expect(run_with_seq(MODEL_STATEMENT_STORE, "other", 101), MODEL_REASON_INVALID_FIELD);
    driver_expect(run_with_seq(MODEL_STATEMENT_GET, "third", 101), MODEL_REASON_INVALID_FIELD);
    driver_expect(run_with_seq(MODEL_STATEMENT_STORE, "k", 101), MODEL_REASON_NONE);
    driver_expect(run_with_seq(MODEL_STATEMENT_READ, "k", 101), MODEL_REASON_NONE);
    driver_deinit(&d);
}

Test(core_paths, an_id_of_a_delete_belongs_to_one_key_too)
{
    begin(MODEL_LOCKING_NONE, COORD_OWNER_DOWN_FORGET);
    driver_expect(run(MODEL_STATEMENT_PUT, "k"), MODEL_REASON_NONE);
    driver_expect(run(MODEL_STATEMENT_PUT, "other"), MODEL_REASON_NONE);
    driver_expect(run(MODEL_STATEMENT_GET, "unplaced"), MODEL_REASON_NONE);
    driver_expect(run_with_seq(MODEL_STATEMENT_DELETE, "k", 100), MODEL_REASON_NONE);
    driver_expect(run_with_seq(MODEL_STATEMENT_DELETE, "unplaced", 101), MODEL_REASON_NONE);
    driver_restart(&d, false);
    (void)driver_join(&d, "A", 2);
    driver_expect(run_with_seq(MODEL_STATEMENT_PUT, "other", 100), MODEL_REASON_INVALID_FIELD);
    driver_expect(run_with_seq(MODEL_STATEMENT_PUT, "other", 101), MODEL_REASON_INVALID_FIELD);
    driver_expect(run_with_seq(MODEL_STATEMENT_DELETE, "k", 100), MODEL_REASON_NONE);
    driver_deinit(&d);
}
