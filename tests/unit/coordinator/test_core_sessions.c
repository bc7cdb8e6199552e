/*
 * Sessions through the whole core: opening, expiry, and what becomes of their locks.
 */
#include "tests/unit/coordinator/driver.h"

TestSuite(core_sessions, .fini = test_alloc_expect_none);

static struct driver d;
static struct driver_session a;
static struct driver_session b;
static uint64_t incarnation;

static void begin(void)
{
    driver_init(&d);
    driver_restart(&d, false);
    incarnation = driver_join(&d, "A", 1);
    a = driver_open(&d, "esi-a");
    b = driver_open(&d, "esi-b");
}

static enum model_reason run(struct driver_session *session, enum model_statement_kind kind,
                             const char *key)
{
    return driver_run(&d, session, kind, key, kind == MODEL_STATEMENT_SET ? "v" : NULL);
}

/* Time passes with `b` and the instance alive. */
static void sleep_ms(uint64_t ms)
{
    for (uint64_t i = 0; i < ms; i += 100) {
        driver_keep_alive(&d, &b);
        driver_expect(driver_renew(&d, "A", incarnation), MODEL_REASON_NONE);
        driver_sleep_ms(&d, 100);
    }
}

static struct model_call *open_call(const char *name, uint8_t client, uint64_t seq)
{
    struct model_call *call = driver_new_call(&d, MODEL_CALL_OPEN_SESSION);

    (void)snprintf(call->request.open_session.name, MODEL_NAME_MAX, "%s", name);
    if (client != 0)
        call->request.open_session.request_id.client = driver_id("client", client);
    call->request.open_session.request_id.seq = seq;
    driver_submit(&d, call);
    return call;
}

static enum model_reason finish(struct model_call *call)
{
    enum model_reason reason = driver_reason(call);

    (void)driver_free_call(call);
    return reason;
}

/* ---- open ------------------------------------------------------------------------------------ */

Test(core_sessions, opening_twice_gives_the_same_session)
{
    struct model_call *first;
    struct model_call *second;

    begin();
    d.auto_commit = false;
    first = open_call("x", 1, 1);
    second = open_call("x", 1, 1);
    cr_assert_eq(driver_n_txns(&d), 1);
    cr_assert_not(driver_is_answered(second));
    driver_commit(&d, STORE_COMMITTED);
    cr_assert(model_id_equal(&first->response.open_session.session_id,
                             &second->response.open_session.session_id));
    cr_assert_eq(first->response.open_session.lease_ms, 3000);
    cr_assert_eq(first->response.open_session.key_max, MODEL_KEY_MAX_CLASSIC);
    cr_assert_eq(first->response.open_session.value_max, MODEL_VALUE_MAX);
    (void)driver_free_call(second);
    d.auto_commit = true;
    driver_restart(&d, false);
    second = open_call("x", 1, 1);
    cr_assert(model_id_equal(&first->response.open_session.session_id,
                             &second->response.open_session.session_id));
    (void)driver_free_call(first);
    (void)driver_free_call(second);
    driver_deinit(&d);
}

Test(core_sessions, an_opening_that_fails_lets_the_one_behind_it_try)
{
    struct model_call *first;
    struct model_call *second;

    begin();
    d.auto_commit = false;
    first = open_call("x", 1, 1);
    second = open_call("x", 1, 1);
    driver_commit(&d, STORE_FULL);
    driver_expect(finish(first), MODEL_REASON_DISK_FULL);
    driver_commit(&d, STORE_COMMITTED);
    driver_expect(finish(second), MODEL_REASON_NONE);
    driver_deinit(&d);
}

Test(core_sessions, open_checks_its_fields)
{
    begin();
    driver_expect(finish(open_call("", 1, 1)), MODEL_REASON_INVALID_FIELD);
    driver_expect(finish(open_call("a/b", 1, 1)), MODEL_REASON_INVALID_FIELD);
    driver_deinit(&d);
}

Test(core_sessions, opening_without_a_request_id_opens_another_each_time)
{
    struct model_call *calls[2];

    begin();
    for (int i = 0; i < 2; i++) {
        calls[i] = open_call("x", 0, 0);
        driver_expect(driver_reason(calls[i]), MODEL_REASON_NONE);
    }
    cr_assert_not(model_id_equal(&calls[0]->response.open_session.session_id,
                                 &calls[1]->response.open_session.session_id));
    driver_restart(&d, false);
    for (int i = 0; i < 2; i++) {
        struct model_call *call = driver_new_call(&d, MODEL_CALL_KEEP_ALIVE);

        call->request.session.session_id = calls[i]->response.open_session.session_id;
        driver_submit(&d, call);
        driver_expect(finish(call), MODEL_REASON_NONE);
        (void)driver_free_call(calls[i]);
    }
    driver_deinit(&d);
}

Test(core_sessions, sessions_at_the_limit_and_one_more)
{
    struct model_call *call = NULL;

    driver_init(&d);
    d.config.session_lease.duration_us = 3600000000;
    driver_restart(&d, false);
    d.auto_commit = false;
    for (uint32_t i = 0; i <= MODEL_SESSIONS_MAX; i++) {
        call = driver_new_call(&d, MODEL_CALL_OPEN_SESSION);
        (void)snprintf(call->request.open_session.name, MODEL_NAME_MAX, "x");
        memcpy(call->request.open_session.request_id.client.bytes, &i, sizeof(i));
        call->request.open_session.request_id.client.bytes[15] = 1;
        coord_core_submit(d.core, call);
        driver_forget_rows(&d);
        if (i < MODEL_SESSIONS_MAX)
            driver_expect(finish(call), MODEL_REASON_NONE);
    }
    driver_expect(finish(call), MODEL_REASON_LIMIT_REACHED);
    driver_deinit(&d);
}

/* ---- the end --------------------------------------------------------------------------------- */

Test(core_sessions, C38_a_session_that_ends_frees_its_locks_and_wakes_the_next)
{
    struct model_call *await;

    begin();
    driver_expect(run(&a, MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    driver_expect(run(&a, MODEL_STATEMENT_SET, "k"), MODEL_REASON_NONE);
    cr_assert_eq(driver_get(&d, &b, "k"), MODEL_OUTCOME_WAITING);
    await = driver_execute(&d, &b, MODEL_STATEMENT_AWAIT, "k", NULL);
    sleep_ms(3400);
    cr_assert_not(driver_is_answered(await));
    sleep_ms(200);
    cr_assert(driver_is_answered(await));
    cr_assert_eq(await->response.execute.outcome, MODEL_OUTCOME_READY);
    cr_assert_eq(driver_get(&d, &b, "k"), MODEL_OUTCOME_DONE);
    driver_expect(run(&a, MODEL_STATEMENT_SET, "k"), MODEL_REASON_SESSION_UNKNOWN);
    (void)driver_free_call(await);
    driver_deinit(&d);
}

static struct model_call *start_closing_a(void)
{
    struct model_call *close = driver_new_call(&d, MODEL_CALL_CLOSE_SESSION);

    close->request.session.session_id = a.id;
    driver_submit(&d, close);
    return close;
}

Test(core_sessions, a_close_is_answered_when_the_locks_are_free)
{
    struct model_call *close;
    struct model_call *again;

    begin();
    driver_expect(run(&a, MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    driver_expect(run(&a, MODEL_STATEMENT_GET, "l"), MODEL_REASON_NONE);
    d.auto_commit = false;
    close = start_closing_a();
    driver_commit(&d, STORE_COMMITTED); /* its row */
    again = start_closing_a();
    driver_commit(&d, STORE_COMMITTED); /* one lock */
    cr_assert_not(driver_is_answered(close));
    cr_assert_not(driver_is_answered(again));
    driver_commit(&d, STORE_COMMITTED); /* the other */
    driver_expect(finish(close), MODEL_REASON_NONE);
    driver_expect(finish(again), MODEL_REASON_NONE);
    d.auto_commit = true;
    cr_assert_eq(driver_get(&d, &b, "k"), MODEL_OUTCOME_DONE);
    cr_assert_eq(driver_get(&d, &b, "l"), MODEL_OUTCOME_DONE);
    driver_deinit(&d);
}

Test(core_sessions, a_close_does_not_wait_for_ever_for_a_lock_to_be_free)
{
    struct model_call *close;

    begin();
    driver_expect(run(&a, MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    d.auto_commit = false;
    close = start_closing_a();
    driver_commit(&d, STORE_COMMITTED);
    driver_sleep_ms(&d, 490);
    cr_assert_not(driver_is_answered(close));
    driver_sleep_ms(&d, 10);
    driver_expect(finish(close), MODEL_REASON_NONE);
    driver_commit(&d, STORE_COMMITTED);
    d.auto_commit = true;
    cr_assert_eq(driver_get(&d, &b, "k"), MODEL_OUTCOME_DONE);
    driver_deinit(&d);
}

/* Its session is over, whatever becomes of the lock: no deadline is to be reported of that. */
Test(core_sessions, a_close_with_a_short_deadline_is_answered_before_it)
{
    struct model_call *close;

    begin();
    driver_expect(run(&a, MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    d.auto_commit = false;
    close = driver_new_call(&d, MODEL_CALL_CLOSE_SESSION);
    close->request.session.session_id = a.id;
    close->deadline_us = d.env.now_us + 100000;
    driver_submit(&d, close);
    driver_commit(&d, STORE_COMMITTED);
    driver_sleep_ms(&d, 80);
    cr_assert_not(driver_is_answered(close));
    driver_sleep_ms(&d, 10);
    driver_expect(finish(close), MODEL_REASON_NONE);
    driver_commit(&d, STORE_COMMITTED);
    d.auto_commit = true;
    cr_assert_eq(driver_get(&d, &b, "k"), MODEL_OUTCOME_DONE);
    driver_deinit(&d);
}

Test(core_sessions, a_late_set_of_a_session_that_ended_is_fenced)
{
    struct model_call *call;
    uint64_t token;

    begin();
    call = driver_execute(&d, &a, MODEL_STATEMENT_GET, "k", NULL);
    token = call->response.execute.lock_token;
    (void)driver_free_call(call);
    driver_close(&d, &a);
    call = driver_new_call(&d, MODEL_CALL_EXECUTE);
    call->request.execute = (struct model_execute_request){
        .session_id = a.id,
        .kind = MODEL_STATEMENT_SET,
        .key = RT_BYTES_LITERAL("k"),
        .lock_token = token,
    };
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_LOCK_FENCED);
    cr_assert_eq(call->response.code, RT_ABORTED);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_sessions, statements_and_keep_alive_extend_the_lease)
{
    begin();
    for (int i = 0; i < 3; i++) {
        sleep_ms(3000);
        driver_expect(run(&a, MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
        sleep_ms(3000);
        driver_keep_alive(&d, &a);
    }
    sleep_ms(3600);
    driver_expect(run(&a, MODEL_STATEMENT_GET, "k"), MODEL_REASON_SESSION_UNKNOWN);
    driver_deinit(&d);
}

Test(core_sessions, rule4_sessions_have_a_full_new_lease_after_a_restart)
{
    begin();
    driver_expect(run(&a, MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    sleep_ms(3400);
    driver_restart(&d, false);
    sleep_ms(3400);
    driver_expect(run(&a, MODEL_STATEMENT_SET, "k"), MODEL_REASON_NONE);
    driver_deinit(&d);
}

Test(core_sessions, rule1_nothing_is_granted_once_the_end_is_submitted)
{
    struct model_call *close;
    struct model_call *again;

    begin();
    d.auto_commit = false;
    close = start_closing_a();
    driver_expect(run(&a, MODEL_STATEMENT_GET, "k"), MODEL_REASON_SESSION_UNKNOWN);
    again = start_closing_a();
    cr_assert_not(driver_is_answered(again));
    driver_commit(&d, STORE_COMMITTED);
    driver_expect(finish(close), MODEL_REASON_NONE);
    driver_expect(finish(again), MODEL_REASON_NONE);
    d.auto_commit = true;
    driver_close(&d, &a);
    driver_deinit(&d);
}

Test(core_sessions, a_close_that_finds_the_disk_full_changes_nothing)
{
    struct model_call *close;

    begin();
    driver_expect(run(&a, MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    d.auto_commit = false;
    close = start_closing_a();
    driver_commit(&d, STORE_FULL);
    driver_expect(finish(close), MODEL_REASON_DISK_FULL);
    d.auto_commit = true;
    driver_expect(run(&a, MODEL_STATEMENT_SET, "k"), MODEL_REASON_NONE);
    driver_deinit(&d);
}

Test(core_sessions, an_expiry_or_release_that_finds_the_disk_full_is_tried_again)
{
    begin();
    driver_expect(run(&a, MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    sleep_ms(3400);
    d.outcomes[0] = STORE_FULL;
    d.outcomes[1] = STORE_COMMITTED;
    d.outcomes[2] = STORE_FULL;
    d.n_outcomes = 3;
    sleep_ms(200);
    cr_assert_eq(d.n_outcomes, 2);
    cr_assert_eq(driver_get(&d, &b, "k"), MODEL_OUTCOME_WAITING);
    sleep_ms(1100);
    cr_assert_eq(d.n_outcomes, 0);
    sleep_ms(1100);
    cr_assert_eq(driver_get(&d, &b, "k"), MODEL_OUTCOME_DONE);
    driver_deinit(&d);
}

Test(core_sessions, E3_a_lock_granted_to_a_session_that_ended_meanwhile_is_released)
{
    struct model_call *get;
    struct model_call *close;

    begin();
    d.auto_commit = false;
    close = driver_new_call(&d, MODEL_CALL_CLOSE_SESSION);
    close->request.session.session_id = a.id;
    get = driver_execute(&d, &a, MODEL_STATEMENT_GET, "k", NULL);
    driver_submit(&d, close);
    cr_assert_eq(driver_n_txns(&d), 2);
    driver_commit(&d, STORE_COMMITTED);
    driver_expect(driver_reason(get), MODEL_REASON_SESSION_UNKNOWN);
    cr_assert_eq(get->response.error.applied, MODEL_APPLIED_MAYBE);
    d.auto_commit = true;
    driver_settle(&d);
    driver_expect(finish(close), MODEL_REASON_NONE);
    cr_assert_eq(driver_get(&d, &b, "k"), MODEL_OUTCOME_DONE);
    (void)driver_free_call(get);
    driver_deinit(&d);
}

Test(core_sessions, statements_that_wait_learn_that_their_session_is_over)
{
    struct model_call *await;

    begin();
    driver_expect(run(&b, MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    cr_assert_eq(driver_get(&d, &a, "k"), MODEL_OUTCOME_WAITING);
    await = driver_execute(&d, &a, MODEL_STATEMENT_AWAIT, "k", NULL);
    driver_close(&d, &a);
    driver_expect(finish(await), MODEL_REASON_SESSION_UNKNOWN);
    driver_expect(run(&b, MODEL_STATEMENT_STORE, "k"), MODEL_REASON_NONE);
    driver_expect(run(&b, MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    driver_deinit(&d);
}

/* ---- the owner is told ----------------------------------------------------------------------- */

Test(core_sessions, the_owner_of_a_released_key_is_told_until_it_knows)
{
    begin();
    driver_expect(run(&a, MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    driver_expect(run(&a, MODEL_STATEMENT_SET, "k"), MODEL_REASON_NONE);
    d.silent = "A";
    driver_close(&d, &a);
    sleep_ms(2500);
    cr_assert_not(d.keys[0].locked == false);
    d.silent = NULL;
    sleep_ms(1500);
    cr_assert_not(d.keys[0].locked);
    driver_deinit(&d);
}

Test(core_sessions, the_owner_is_told_after_a_restart_too)
{
    begin();
    driver_expect(run(&a, MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    driver_expect(run(&a, MODEL_STATEMENT_SET, "k"), MODEL_REASON_NONE);
    d.silent = "A";
    driver_close(&d, &a);
    d.silent = NULL;
    cr_assert(d.keys[0].locked);
    driver_restart(&d, false);
    cr_assert_not(d.keys[0].locked);
    driver_deinit(&d);
}

Test(core_sessions, a_newer_grant_makes_the_release_needless)
{
    struct model_call *fence;
    struct model_call *get;

    begin();
    driver_expect(run(&a, MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    driver_expect(run(&a, MODEL_STATEMENT_SET, "k"), MODEL_REASON_NONE);
    d.auto_answer = false;
    driver_close(&d, &a);
    fence = driver_find_call(&d, MODEL_CALL_FENCE);
    cr_assert_not(fence->request.fence.locked);
    driver_lose(&d, fence);
    get = driver_execute(&d, &b, MODEL_STATEMENT_GET, "k", NULL);
    fence = driver_find_call(&d, MODEL_CALL_FENCE);
    cr_assert(fence->request.fence.locked);
    driver_answer(&d, fence);
    driver_expect(finish(get), MODEL_REASON_NONE);
    sleep_ms(1000);
    cr_assert_null(driver_find_call(&d, MODEL_CALL_FENCE));
    driver_deinit(&d);
}

Test(core_sessions, E12_a_lock_whose_session_has_no_row_is_released_at_the_start)
{
    begin();
    driver_expect(run(&a, MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    driver_expect(run(&a, MODEL_STATEMENT_SET, "k"), MODEL_REASON_NONE);
    d.auto_commit = false;
    {
        struct model_call *close = driver_new_call(&d, MODEL_CALL_CLOSE_SESSION);

        close->request.session.session_id = a.id;
        driver_submit(&d, close);
        driver_commit(&d, STORE_COMMITTED);
        driver_restart(&d, false);
        (void)driver_free_call(close);
    }
    d.auto_commit = true;
    driver_settle(&d);
    cr_assert_eq(driver_get(&d, &b, "k"), MODEL_OUTCOME_DONE);
    driver_deinit(&d);
}

Test(core_sessions, E6_ten_thousand_short_sessions_leave_nothing)
{
    size_t n_rows;

    begin();
    n_rows = d.n_rows;
    for (int i = 0; i < 10000; i++) {
        char name[16];
        struct driver_session session;

        (void)snprintf(name, sizeof(name), "e%d", i);
        session = driver_open(&d, name);
        if (i % 100 == 0)
            driver_expect(run(&session, MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
        driver_close(&d, &session);
    }
    cr_assert_leq(d.n_rows, n_rows + 1, "the key");
    driver_deinit(&d);
}

/* ---- answers that were lost ------------------------------------------------------------------ */

Test(core_sessions, a_store_that_is_repeated_after_its_release_is_still_done)
{
    struct model_call *call;

    begin();
    driver_expect(run(&a, MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    driver_expect(run(&a, MODEL_STATEMENT_SET, "k"), MODEL_REASON_NONE);
    call = driver_execute(&d, &a, MODEL_STATEMENT_STORE, "k", NULL);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    cr_assert_eq(driver_get(&d, &b, "k"), MODEL_OUTCOME_DONE);
    driver_restart(&d, false);
    call->context = NULL;
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    cr_assert(call->response.execute.data.replayed && call->response.execute.data.stored);
    cr_assert_not(call->response.execute.lock_lost);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_sessions, D10_a_store_of_nothing_that_is_repeated_is_still_done)
{
    struct model_call *call;

    begin();
    driver_expect(run(&a, MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    call = driver_execute(&d, &a, MODEL_STATEMENT_STORE, "k", NULL);
    call->context = NULL;
    driver_submit(&d, call);
    driver_expect(finish(call), MODEL_REASON_NONE);
    driver_deinit(&d);
}
