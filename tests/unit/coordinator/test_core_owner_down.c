/*
 * What becomes of keys whose instance is down: the course's cases (FORGET) and the default (KEEP).
 */
#include "tests/unit/coordinator/driver.h"

TestSuite(core_owner_down, .fini = test_alloc_expect_none);

static struct driver d;
static struct driver_session a;
static struct driver_session b;
static uint64_t incarnation_a;

static void begin(enum coord_owner_down owner_down)
{
    driver_init(&d);
    d.config.owner_down = owner_down;
    d.config.session_lease.duration_us = 3600000000;
    driver_restart(&d, false);
    incarnation_a = driver_join(&d, "A", 1);
    a = driver_open(&d, "esi-a");
    b = driver_open(&d, "esi-b");
}

static enum model_reason run(struct driver_session *session, enum model_statement_kind kind,
                             const char *key)
{
    return driver_run(&d, session, kind, key, kind == MODEL_STATEMENT_SET ? "v" : NULL);
}

static void make_key(const char *key, bool stores)
{
    driver_expect(run(&a, MODEL_STATEMENT_GET, key), MODEL_REASON_NONE);
    driver_expect(run(&a, MODEL_STATEMENT_SET, key), MODEL_REASON_NONE);
    if (stores)
        driver_expect(run(&a, MODEL_STATEMENT_STORE, key), MODEL_REASON_NONE);
}

/* A's lease runs out; `other` goes on renewing. */
static void kill_a(const char *other, uint64_t incarnation)
{
    for (int i = 0; i < 37; i++) {
        driver_sleep_ms(&d, 100);
        if (other)
            driver_expect(driver_renew(&d, other, incarnation), MODEL_REASON_NONE);
    }
}

Test(core_owner_down, C25_C26_store_by_the_holder_then_the_key_begins_anew_elsewhere)
{
    uint64_t incarnation_b;

    begin(COORD_OWNER_DOWN_FORGET);
    make_key("k", false);
    incarnation_b = driver_join(&d, "B", 1);
    kill_a("B", incarnation_b);
    driver_expect(run(&a, MODEL_STATEMENT_STORE, "k"), MODEL_REASON_KEY_INACCESSIBLE);
    driver_expect_owner(&d, "k", "?");
    driver_expect(run(&b, MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    driver_expect_owner(&d, "k", "");
    driver_expect(run(&b, MODEL_STATEMENT_SET, "k"), MODEL_REASON_NONE);
    driver_expect_owner(&d, "k", "B");
    driver_expect(run(&a, MODEL_STATEMENT_SET, "k"), MODEL_REASON_KEY_NOT_LOCKED);
    driver_deinit(&d);
}

Test(core_owner_down, C27_back_before_any_access)
{
    begin(COORD_OWNER_DOWN_FORGET);
    make_key("k", false);
    kill_a(NULL, 0);
    (void)driver_join(&d, "A", 2);
    driver_expect(run(&a, MODEL_STATEMENT_SET, "k"), MODEL_REASON_NONE);
    driver_expect(run(&a, MODEL_STATEMENT_STORE, "k"), MODEL_REASON_NONE);
    driver_expect_owner(&d, "k", "A");
    driver_deinit(&d);
}

Test(core_owner_down, C28_keys_of_others_are_unaffected)
{
    uint64_t incarnation_b;

    begin(COORD_OWNER_DOWN_FORGET);
    make_key("ka", false);
    incarnation_b = driver_join(&d, "B", 1);
    make_key("kb", false);
    driver_expect_owner(&d, "kb", "B");
    kill_a("B", incarnation_b);
    driver_expect(run(&a, MODEL_STATEMENT_SET, "kb"), MODEL_REASON_NONE);
    driver_expect(run(&a, MODEL_STATEMENT_STORE, "kb"), MODEL_REASON_NONE);
    driver_deinit(&d);
}

Test(core_owner_down, C29_get_of_a_free_key)
{
    begin(COORD_OWNER_DOWN_FORGET);
    make_key("k", true);
    kill_a(NULL, 0);
    driver_expect(run(&b, MODEL_STATEMENT_GET, "k"), MODEL_REASON_KEY_INACCESSIBLE);
    driver_expect_owner(&d, "k", "?");
    driver_deinit(&d);
}

Test(core_owner_down, C30_get_of_a_key_that_another_holds_waits)
{
    struct model_call *await;

    begin(COORD_OWNER_DOWN_FORGET);
    make_key("k", false);
    kill_a(NULL, 0);
    cr_assert_eq(driver_get(&d, &b, "k"), MODEL_OUTCOME_WAITING);
    await = driver_execute(&d, &b, MODEL_STATEMENT_AWAIT, "k", NULL);
    cr_assert_not(driver_is_answered(await));
    driver_expect_owner(&d, "k", "A");
    driver_expect(run(&a, MODEL_STATEMENT_SET, "k"), MODEL_REASON_KEY_INACCESSIBLE);
    cr_assert(driver_is_answered(await));
    cr_assert_eq(driver_get(&d, &b, "k"), MODEL_OUTCOME_DONE);
    (void)driver_free_call(await);
    driver_deinit(&d);
}

Test(core_owner_down, status_is_no_access)
{
    struct model_call *call;

    begin(COORD_OWNER_DOWN_FORGET);
    make_key("k", true);
    kill_a(NULL, 0);
    call = driver_new_call(&d, MODEL_CALL_KEY_STATUS);
    call->request.key_status.key = RT_BYTES_LITERAL("k");
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    cr_assert(call->response.key_status.value_unavailable);
    cr_assert_eq(call->response.key_status.owner_state, MODEL_MEMBER_DEAD);
    (void)driver_free_call(call);
    driver_expect_owner(&d, "k", "A");
    driver_deinit(&d);
}

Test(core_owner_down, read_and_delete_are_access)
{
    begin(COORD_OWNER_DOWN_FORGET);
    make_key("k1", true);
    make_key("k2", false);
    driver_leave(&d, "A", incarnation_a);
    driver_expect(run(&b, MODEL_STATEMENT_READ, "k1"), MODEL_REASON_KEY_INACCESSIBLE);
    driver_expect(run(&a, MODEL_STATEMENT_DELETE, "k2"), MODEL_REASON_KEY_INACCESSIBLE);
    driver_expect_owner(&d, "k1", "?");
    driver_expect_owner(&d, "k2", "?");
    driver_deinit(&d);
}

Test(core_owner_down, forgetting_is_durable_before_it_is_said)
{
    struct model_call *call;

    begin(COORD_OWNER_DOWN_FORGET);
    make_key("k", true);
    driver_leave(&d, "A", incarnation_a);
    d.auto_commit = false;
    call = driver_execute(&d, &b, MODEL_STATEMENT_GET, "k", NULL);
    cr_assert_not(driver_is_answered(call));
    driver_commit(&d, STORE_FULL);
    driver_expect(driver_reason(call), MODEL_REASON_DISK_FULL);
    driver_expect_owner(&d, "k", "A");
    d.auto_commit = true;
    driver_expect(run(&b, MODEL_STATEMENT_GET, "k"), MODEL_REASON_KEY_INACCESSIBLE);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

/* ---- rule 4: the restart barrier ------------------------------------------------------------- */

Test(core_owner_down, rule4_forgetting_obeys_the_restart_barrier)
{
    struct model_call *call;

    begin(COORD_OWNER_DOWN_FORGET);
    make_key("k", true);
    kill_a(NULL, 0);
    driver_restart(&d, false);
    call = driver_execute(&d, &b, MODEL_STATEMENT_GET, "k", NULL);
    call->deadline_us = 0;
    driver_sleep_ms(&d, 3400);
    cr_assert_not(driver_is_answered(call));
    driver_sleep_ms(&d, 200);
    driver_expect(driver_reason(call), MODEL_REASON_KEY_INACCESSIBLE);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_owner_down, rule4_within_the_barrier_a_short_deadline_gets_unavailable_no)
{
    struct model_call *call;

    begin(COORD_OWNER_DOWN_FORGET);
    make_key("k", true);
    kill_a(NULL, 0);
    driver_restart(&d, false);
    call = driver_new_call(&d, MODEL_CALL_EXECUTE);
    call->deadline_us = d.env.now_us + 1000000;
    call->request.execute.session_id = b.id;
    call->request.execute.kind = MODEL_STATEMENT_GET;
    call->request.execute.key = RT_BYTES_LITERAL("k");
    driver_submit(&d, call);
    driver_sleep_ms(&d, 1000);
    driver_expect(driver_reason(call), MODEL_REASON_BARRIER);
    cr_assert_eq(call->response.error.applied, MODEL_APPLIED_NO);
    cr_assert_gt(call->response.error.retry_after_ms, 2000);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_owner_down, rule4_who_left_is_exempt_from_the_barrier)
{
    begin(COORD_OWNER_DOWN_FORGET);
    make_key("k", true);
    driver_leave(&d, "A", incarnation_a);
    driver_restart(&d, false);
    driver_expect(run(&b, MODEL_STATEMENT_GET, "k"), MODEL_REASON_KEY_INACCESSIBLE);
    driver_deinit(&d);
}

Test(core_owner_down, rule4_no_connection_is_not_down)
{
    struct model_call *call;

    begin(COORD_OWNER_DOWN_FORGET);
    make_key("k", true);
    d.silent = "A";
    call = driver_execute(&d, &b, MODEL_STATEMENT_READ, "k", NULL);
    for (int i = 0; i < 50; i++) {
        driver_expect(driver_renew(&d, "A", incarnation_a), MODEL_REASON_NONE);
        driver_sleep_ms(&d, 100);
    }
    driver_expect(driver_reason(call), MODEL_REASON_OWNER_UNREACHABLE);
    cr_assert_eq(call->response.code, RT_UNAVAILABLE);
    cr_assert_eq(call->response.error.applied, MODEL_APPLIED_NO);
    driver_expect_owner(&d, "k", "A");
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_owner_down, an_access_waits_while_its_owner_joins)
{
    struct model_call *call;
    struct model_call *part;
    struct model_call *reg;

    begin(COORD_OWNER_DOWN_FORGET);
    make_key("k", false);
    reg = driver_register(&d, "A", "A", 2);
    call = driver_execute(&d, &a, MODEL_STATEMENT_SET, "k", "w");
    cr_assert_not(driver_is_answered(call));
    part = driver_new_call(&d, MODEL_CALL_RECONCILE);
    (void)snprintf(part->request.reconcile.name, sizeof(part->request.reconcile.name), "A");
    part->request.reconcile.incarnation = reg->response.reg.incarnation;
    part->request.reconcile.last = true;
    driver_submit(&d, part);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    (void)driver_free_call(call);
    (void)driver_free_call(part);
    (void)driver_free_call(reg);
    driver_deinit(&d);
}

Test(core_owner_down, a_read_that_waits_outlives_its_session)
{
    struct model_call *call;

    begin(COORD_OWNER_DOWN_KEEP);
    make_key("k", true);
    kill_a(NULL, 0);
    d.config.session_lease.duration_us = 3000000;
    driver_restart(&d, false);
    a = driver_open(&d, "esi-a");
    call = driver_new_call(&d, MODEL_CALL_EXECUTE);
    call->request.execute.session_id = a.id;
    call->request.execute.kind = MODEL_STATEMENT_READ;
    call->request.execute.key = RT_BYTES_LITERAL("k");
    driver_submit(&d, call);
    driver_sleep_ms(&d, 4000);
    cr_assert_not(driver_is_answered(call));
    driver_sleep_ms(&d, 1000);
    driver_expect(driver_reason(call), MODEL_REASON_OWNER_DOWN);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

/* ---- a write that nobody answered ------------------------------------------------------------ */

Test(core_owner_down, a_write_without_an_answer_may_have_happened_and_is_decided_by_its_retry)
{
    struct model_call *call;
    struct model_call *write;

    begin(COORD_OWNER_DOWN_FORGET);
    make_key("k", false);
    d.auto_answer = false;
    call = driver_execute(&d, &a, MODEL_STATEMENT_SET, "k", "w");
    write = driver_find_call(&d, MODEL_CALL_SET);
    driver_lose(&d, write);
    driver_expect(driver_reason(call), MODEL_REASON_OWNER_UNREACHABLE);
    cr_assert_eq(call->response.error.applied, MODEL_APPLIED_MAYBE);
    call->context = NULL;
    d.auto_answer = true;
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_owner_down, I9_a_set_that_may_have_been_lost_with_its_process_is_not_done_twice)
{
    struct model_call *call;

    begin(COORD_OWNER_DOWN_FORGET);
    make_key("k", false);
    d.auto_answer = false;
    call = driver_execute(&d, &a, MODEL_STATEMENT_SET, "k", "w");
    driver_lose(&d, driver_find_call(&d, MODEL_CALL_SET));
    driver_expect(driver_reason(call), MODEL_REASON_OWNER_UNREACHABLE);
    d.auto_answer = true;
    (void)driver_join(&d, "A", 2);
    call->context = NULL;
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_OUTCOME_UNKNOWN);
    cr_assert_eq(call->response.error.applied, MODEL_APPLIED_MAYBE);
    driver_expect(run(&a, MODEL_STATEMENT_SET, "k"), MODEL_REASON_NONE);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_owner_down, I9_a_set_that_was_refused_may_go_to_the_next_process)
{
    struct model_call *call;

    begin(COORD_OWNER_DOWN_FORGET);
    make_key("k", false);
    d.auto_answer = false;
    call = driver_execute(&d, &a, MODEL_STATEMENT_SET, "k", "w");
    driver_refuse(&d, driver_find_call(&d, MODEL_CALL_SET), MODEL_REASON_NOT_SERVING);
    (void)driver_join(&d, "A", 2);
    driver_sleep_ms(&d, 50);
    driver_answer(&d, driver_find_call(&d, MODEL_CALL_SET));
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_owner_down, an_owner_that_cannot_yet_is_asked_again)
{
    struct model_call *call;

    begin(COORD_OWNER_DOWN_FORGET);
    make_key("k", false);
    d.auto_answer = false;
    call = driver_execute(&d, &a, MODEL_STATEMENT_SET, "k", "w");
    driver_refuse(&d, driver_find_call(&d, MODEL_CALL_SET), MODEL_REASON_NOT_SERVING);
    driver_sleep_ms(&d, 20);
    driver_refuse(&d, driver_find_call(&d, MODEL_CALL_SET), MODEL_REASON_STALE_INCARNATION);
    driver_sleep_ms(&d, 30);
    cr_assert_null(driver_find_call(&d, MODEL_CALL_SET), "backs off 40 ms");
    driver_sleep_ms(&d, 10);
    driver_answer(&d, driver_find_call(&d, MODEL_CALL_SET));
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_owner_down, an_error_of_the_owner_is_returned_unchanged)
{
    struct model_call *call;

    begin(COORD_OWNER_DOWN_FORGET);
    make_key("k", false);
    d.auto_answer = false;
    call = driver_execute(&d, &a, MODEL_STATEMENT_STORE, "k", NULL);
    driver_refuse(&d, driver_find_call(&d, MODEL_CALL_STORE), MODEL_REASON_SET_LOST);
    driver_expect(driver_reason(call), MODEL_REASON_SET_LOST);
    cr_assert_eq(call->response.error.applied, MODEL_APPLIED_NO);
    cr_assert(rt_bytes_equal(call->response.error.key, RT_BYTES_LITERAL("k")));
    cr_assert_neq(call->response.error.current_epoch, 0);
    d.auto_answer = true;
    driver_expect(run(&a, MODEL_STATEMENT_SET, "k"), MODEL_REASON_NONE);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

/* ---- KEEP ------------------------------------------------------------------------------------ */

Test(core_owner_down, keep_waits_for_the_owner_and_goes_on)
{
    struct model_call *call;

    begin(COORD_OWNER_DOWN_KEEP);
    make_key("k", true);
    kill_a(NULL, 0);
    call = driver_execute(&d, &b, MODEL_STATEMENT_GET, "k", NULL);
    driver_sleep_ms(&d, 1000);
    cr_assert_not(driver_is_answered(call));
    (void)driver_join(&d, "A", 2);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    cr_assert(call->response.execute.data.has_value);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_owner_down, keep_answers_owner_down_in_time)
{
    struct model_call *call;

    begin(COORD_OWNER_DOWN_KEEP);
    make_key("k", true);
    kill_a(NULL, 0);
    call = driver_execute(&d, &b, MODEL_STATEMENT_READ, "k", NULL);
    driver_sleep_ms(&d, 4940);
    cr_assert_not(driver_is_answered(call));
    driver_sleep_ms(&d, 10);
    driver_expect(driver_reason(call), MODEL_REASON_OWNER_DOWN);
    cr_assert_eq(call->response.error.applied, MODEL_APPLIED_NO);
    cr_assert_neq(call->response.error.retry_after_ms, 0);
    driver_expect_owner(&d, "k", "A");
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_owner_down, rule3_keep_forgets_what_was_never_stored)
{
    begin(COORD_OWNER_DOWN_KEEP);
    make_key("k", false);
    kill_a(NULL, 0);
    driver_expect(run(&a, MODEL_STATEMENT_SET, "k"), MODEL_REASON_KEY_INACCESSIBLE);
    driver_expect_owner(&d, "k", "?");
    driver_deinit(&d);
}

/* ---- DELETE and rule 7 ----------------------------------------------------------------------- */

Test(core_owner_down, rule7_a_key_is_unplaced_only_after_its_owner_dropped_it)
{
    struct model_call *call;

    driver_init(&d);
    d.config.locking = MODEL_LOCKING_OPTIONAL;
    driver_restart(&d, false);
    (void)driver_join(&d, "A", 1);
    a = driver_open(&d, "esi");
    driver_expect(driver_run(&d, &a, MODEL_STATEMENT_PUT, "k", "v"), MODEL_REASON_NONE);
    d.auto_answer = false;
    call = driver_execute(&d, &a, MODEL_STATEMENT_DELETE, "k", NULL);
    driver_answer(&d, driver_find_call(&d, MODEL_CALL_DELETE));
    cr_assert_not(driver_is_answered(call));
    driver_lose(&d, driver_find_call(&d, MODEL_CALL_DROP));
    driver_sleep_ms(&d, 30);
    driver_answer(&d, driver_find_call(&d, MODEL_CALL_DROP));
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    driver_expect_owner(&d, "k", "?");
    call->context = NULL;
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    cr_assert(call->response.execute.data.replayed);
    driver_restart(&d, false);
    call->context = NULL;
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_owner_down, rule7_a_deleted_key_that_is_locked_is_dropped_when_it_is_free)
{
    begin(COORD_OWNER_DOWN_FORGET);
    make_key("k", true);
    driver_expect(run(&a, MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    driver_expect(run(&a, MODEL_STATEMENT_DELETE, "k"), MODEL_REASON_NONE);
    driver_expect_owner(&d, "k", "A");
    cr_assert_eq(d.n_sent[MODEL_CALL_DROP], 0);
    driver_close(&d, &a);
    cr_assert_eq(d.n_sent[MODEL_CALL_DROP], 1);
    driver_expect_owner(&d, "k", "?");
    driver_deinit(&d);
}

Test(core_owner_down, rule7_a_deleted_key_that_is_set_again_is_not_dropped)
{
    begin(COORD_OWNER_DOWN_FORGET);
    make_key("k", true);
    driver_expect(run(&a, MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    driver_expect(run(&a, MODEL_STATEMENT_DELETE, "k"), MODEL_REASON_NONE);
    driver_expect(run(&a, MODEL_STATEMENT_SET, "k"), MODEL_REASON_NONE);
    driver_close(&d, &a);
    cr_assert_eq(d.n_sent[MODEL_CALL_DROP], 0);
    driver_expect_owner(&d, "k", "A");
    driver_deinit(&d);
}

Test(core_owner_down, rule7_a_delete_whose_owner_is_silent_is_done_and_the_drop_goes_on)
{
    struct model_call *call;

    driver_init(&d);
    d.config.locking = MODEL_LOCKING_OPTIONAL;
    driver_restart(&d, false);
    incarnation_a = driver_join(&d, "A", 1);
    a = driver_open(&d, "esi");
    driver_expect(driver_run(&d, &a, MODEL_STATEMENT_PUT, "k", "v"), MODEL_REASON_NONE);
    d.auto_answer = false;
    call = driver_execute(&d, &a, MODEL_STATEMENT_DELETE, "k", NULL);
    driver_answer(&d, driver_find_call(&d, MODEL_CALL_DELETE));
    d.auto_answer = true;
    d.silent = "A";
    for (int i = 0; i < 52; i++) {
        driver_keep_alive(&d, &a);
        driver_expect(driver_renew(&d, "A", incarnation_a), MODEL_REASON_NONE);
        driver_sleep_ms(&d, 100);
    }
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    driver_expect_owner(&d, "k", "A");
    d.silent = NULL;
    driver_sleep_ms(&d, 2000);
    driver_expect_owner(&d, "k", "?");
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_owner_down, delete_of_a_key_without_a_value)
{
    struct model_call *call;

    begin(COORD_OWNER_DOWN_FORGET);
    driver_expect(run(&a, MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    driver_expect(run(&a, MODEL_STATEMENT_DELETE, "k"), MODEL_REASON_NONE);
    driver_expect_owner(&d, "k", "");
    call = driver_new_call(&d, MODEL_CALL_EXECUTE);
    call->request.execute = (struct model_execute_request){
        .session_id = a.id,
        .kind = MODEL_STATEMENT_DELETE,
        .key = RT_BYTES_LITERAL("k"),
        .has_if_version = true,
        .if_version = {1, 1, 1},
    };
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_VERSION_MISMATCH);
    (void)driver_free_call(call);
    driver_deinit(&d);
}
