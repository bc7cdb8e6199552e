/*
 * The lines of the operation log, and the delay of operations.
 */
#include "coordinator/operations.h"
#include "tests/unit/coordinator/driver.h"

TestSuite(core_operations, .fini = test_alloc_expect_none);

static struct driver d;
static struct driver_session s;

static void begin(const char *log, uint64_t delay_ms)
{
    driver_init(&d);
    d.config.operation_log = log;
    d.config.delay_us = delay_ms * 1000;
    driver_restart(&d, false);
    (void)driver_join(&d, "A", 1);
    s = driver_open(&d, "esi");
}

static void expect_lines(const char *expected)
{
    struct rt_buffer lines;

    cr_assert_eq(coord_core_take_operations(d.core, &lines), 0);
    cr_assert_str_eq(rt_buffer_string(&lines), expected);
    rt_buffer_deinit(&lines);
}

static enum model_reason run(enum model_statement_kind kind, const char *key)
{
    return driver_run(&d, &s, kind, key, kind == MODEL_STATEMENT_SET ? "secret" : NULL);
}

Test(core_operations, a_line_an_operation_and_never_a_value)
{
    begin("file", 0);
    driver_expect(run(MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    driver_expect(run(MODEL_STATEMENT_SET, "k"), MODEL_REASON_NONE);
    driver_expect(run(MODEL_STATEMENT_STORE, "k"), MODEL_REASON_NONE);
    expect_lines("esi=esi statement=GET key=k result=OK\n"
                 "esi=esi statement=SET key=k bytes=6 instance=A result=OK\n"
                 "esi=esi statement=STORE key=k instance=A result=OK\n");
    expect_lines("");
    driver_deinit(&d);
}

Test(core_operations, C94_a_failed_operation_has_its_error)
{
    begin("file", 0);
    driver_expect(run(MODEL_STATEMENT_SET, "k"), MODEL_REASON_KEY_NOT_IDENTIFIED);
    driver_expect(run(MODEL_STATEMENT_GET, "12345678901234567890123456789012345678901"),
                  MODEL_REASON_KEY_TOO_LONG);
    s.id = driver_id("nobody", 1);
    driver_expect(run(MODEL_STATEMENT_GET, "k"), MODEL_REASON_SESSION_UNKNOWN);
    expect_lines("esi=esi statement=SET key=k bytes=6 result=KEY_NOT_IDENTIFIED\n"
                 "esi=- statement=GET key=12345678901234567890123456789012345678901 "
                 "result=KEY_TOO_LONG\n"
                 "esi=- statement=GET key=k result=SESSION_UNKNOWN\n");
    driver_deinit(&d);
}

/* The wait is the GET's, which runs again. */
Test(core_operations, a_get_that_waits_and_runs_again)
{
    struct driver_session other;
    struct model_call *await;

    begin("file", 0);
    other = driver_open(&d, "other");
    driver_expect(run(MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    cr_assert_eq(driver_get(&d, &other, "k"), MODEL_OUTCOME_WAITING);
    await = driver_execute(&d, &other, MODEL_STATEMENT_AWAIT, "k", NULL);
    driver_close(&d, &s);
    driver_expect(driver_reason(await), MODEL_REASON_NONE);
    cr_assert_eq(driver_get(&d, &other, "k"), MODEL_OUTCOME_DONE);
    expect_lines("esi=esi statement=GET key=k result=OK\n"
                 "esi=other statement=GET key=k result=WAITING\n"
                 "esi=other statement=GET key=k result=OK\n");
    (void)driver_free_call(await);
    driver_deinit(&d);
}

Test(core_operations, a_lock_is_a_get)
{
    struct model_call *call;

    begin("file", 0);
    call = driver_new_call(&d, MODEL_CALL_LOCK);
    call->request.lock.session_id = s.id;
    call->request.lock.key = RT_BYTES_LITERAL("k");
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    (void)driver_free_call(call);
    driver_expect(run(MODEL_STATEMENT_SET, "k"), MODEL_REASON_NONE);
    expect_lines("esi=esi statement=GET key=k result=OK\n"
                 "esi=esi statement=SET key=k bytes=6 instance=A result=OK\n");
    driver_deinit(&d);
}

Test(core_operations, bytes_that_do_not_print)
{
    begin("file", 0);
    driver_expect(run(MODEL_STATEMENT_GET, "a b\\\n\xc3\xb1~"), MODEL_REASON_NONE);
    expect_lines("esi=esi statement=GET key=a\\x20b\\x5c\\x0a\\xc3\\xb1~ result=OK\n");
    driver_deinit(&d);
}

Test(core_operations, nothing_is_kept_without_a_log)
{
    begin(NULL, 0);
    driver_expect(run(MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    expect_lines("");
    driver_deinit(&d);
}

/* A shell that does not take them: whole lines up to the limit, the rest is counted. */
Test(core_operations, lines_are_lost_at_the_limit)
{
    struct rt_buffer lines;
    size_t n_lost;
    size_t n = 0;

    begin("file", 0);
    for (; n < COORD_OPERATIONS_MAX / 36 + 200; n++)
        driver_expect(run(MODEL_STATEMENT_SET, "k"), MODEL_REASON_KEY_NOT_IDENTIFIED);
    n_lost = coord_core_take_operations(d.core, &lines);
    cr_assert_gt(n_lost, 0);
    cr_assert_leq(lines.size, COORD_OPERATIONS_MAX);
    cr_assert_eq(lines.size % (n - n_lost), 0, "whole lines");
    cr_assert_eq(lines.data[lines.size - 1], '\n');
    rt_buffer_deinit(&lines);
    driver_expect(run(MODEL_STATEMENT_GET, "k"), MODEL_REASON_NONE);
    expect_lines("esi=esi statement=GET key=k result=OK\n");
    driver_deinit(&d);
}

/* ---- the delay ------------------------------------------------------------------------------- */

Test(core_operations, C83_every_operation_waits_and_status_does_not)
{
    struct model_call *get;

    begin(NULL, 200);
    get = driver_execute(&d, &s, MODEL_STATEMENT_GET, "k", NULL);
    driver_expect_owner(&d, "k", "?");
    driver_sleep_ms(&d, 190);
    cr_assert_not(driver_is_answered(get));
    driver_sleep_ms(&d, 10);
    driver_expect(driver_reason(get), MODEL_REASON_NONE);
    driver_expect_owner(&d, "k", "");
    (void)driver_free_call(get);
    driver_deinit(&d);
}

Test(core_operations, operations_wait_side_by_side)
{
    struct driver_session other;
    struct model_call *calls[2];

    begin(NULL, 200);
    other = driver_open(&d, "other");
    calls[0] = driver_execute(&d, &s, MODEL_STATEMENT_GET, "k1", NULL);
    calls[1] = driver_execute(&d, &other, MODEL_STATEMENT_GET, "k2", NULL);
    driver_sleep_ms(&d, 200);
    for (int i = 0; i < 2; i++) {
        driver_expect(driver_reason(calls[i]), MODEL_REASON_NONE);
        (void)driver_free_call(calls[i]);
    }
    driver_deinit(&d);
}

Test(core_operations, await_is_part_of_the_get)
{
    struct driver_session other;
    struct model_call *calls[3];

    begin(NULL, 200);
    other = driver_open(&d, "other");
    calls[0] = driver_execute(&d, &s, MODEL_STATEMENT_GET, "k", NULL);
    driver_sleep_ms(&d, 200);
    calls[1] = driver_execute(&d, &other, MODEL_STATEMENT_GET, "k", NULL);
    driver_sleep_ms(&d, 200);
    cr_assert_eq(calls[1]->response.execute.outcome, MODEL_OUTCOME_WAITING);
    driver_close(&d, &s);
    calls[2] = driver_execute(&d, &other, MODEL_STATEMENT_AWAIT, "k", NULL);
    driver_expect(driver_reason(calls[2]), MODEL_REASON_NONE);
    for (int i = 0; i < 3; i++)
        (void)driver_free_call(calls[i]);
    driver_deinit(&d);
}

Test(core_operations, a_deadline_before_the_end_of_the_delay)
{
    struct model_call *call;

    begin(NULL, 10000);
    call = driver_execute(&d, &s, MODEL_STATEMENT_GET, "k", NULL);
    driver_sleep_ms(&d, 5000);
    driver_expect(driver_reason(call), MODEL_REASON_DEADLINE_EXCEEDED);
    cr_assert_eq(call->response.error.applied, MODEL_APPLIED_NO);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_operations, a_caller_that_goes_away_during_the_delay)
{
    struct model_call *call;

    begin(NULL, 200);
    call = driver_execute(&d, &s, MODEL_STATEMENT_GET, "k", NULL);
    coord_core_cancel(d.core, call);
    driver_settle(&d);
    driver_expect(driver_reason(call), MODEL_REASON_CANCELLED);
    driver_sleep_ms(&d, 300);
    driver_expect_owner(&d, "k", "?");
    (void)driver_free_call(call);
    driver_deinit(&d);
}
