/*
 * D16: locks of aborted sessions, released or kept; and the operator who frees them.
 */
#include "tests/unit/coordinator/driver.h"

TestSuite(core_kept_locks, .fini = test_alloc_expect_none);

static struct driver d;
static struct driver_session a;
static struct driver_session b;

static void begin(bool keeps)
{
    driver_init(&d);
    d.config.keep_locks = keeps;
    driver_restart(&d, false);
    (void)driver_join(&d, "A", 1);
    a = driver_open(&d, "esi-a");
    b = driver_open(&d, "esi-b");
}

static void lock(const char *key)
{
    cr_assert_eq(driver_get(&d, &a, key), MODEL_OUTCOME_DONE);
}

/* a's last statement fails. */
static void fail(void)
{
    driver_expect(driver_run(&d, &a, MODEL_STATEMENT_SET, "unknown", "v"),
                  MODEL_REASON_KEY_NOT_IDENTIFIED);
}

/* Who holds the key according to KEY_STATUS. */
static void expect_holder(const char *key, const char *name)
{
    struct model_call *call = driver_new_call(&d, MODEL_CALL_KEY_STATUS);

    call->request.key_status.key = rt_bytes_of_string(key);
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    cr_assert_str_eq(call->response.key_status.holder, name, "holder of %s: %s", key,
                     call->response.key_status.holder);
    (void)driver_free_call(call);
}

static void free_lock(const char *key, const char *expected_holder)
{
    struct model_call *call = driver_new_call(&d, MODEL_CALL_FREE_LOCK);

    call->request.key_status.key = rt_bytes_of_string(key);
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    cr_assert_str_eq(call->response.free_lock.holder, expected_holder);
    (void)driver_free_call(call);
}

static size_t n_sessions_stored(void)
{
    size_t n = 0;

    for (size_t i = 0; i < d.n_rows; i++)
        n += rt_bytes_has_prefix(d.rows[i].key, RT_BYTES_LITERAL("s/"));
    return n;
}

Test(core_kept_locks, D16_released_unless_told_otherwise)
{
    begin(false);
    lock("k");
    fail();
    driver_close(&d, &a);
    expect_holder("k", "");
    driver_deinit(&d);
}

Test(core_kept_locks, D16_kept_when_the_last_statement_failed)
{
    begin(true);
    lock("k1");
    lock("k2");
    fail();
    driver_close(&d, &a);
    expect_holder("k1", "esi-a");
    expect_holder("k2", "esi-a");
    cr_assert_eq(driver_get(&d, &b, "k1"), MODEL_OUTCOME_WAITING);
    driver_expect(driver_run(&d, &a, MODEL_STATEMENT_SET, "k1", "v"), MODEL_REASON_SESSION_UNKNOWN);
    cr_assert_eq(driver_n_events(&d, RT_LOG_WARNING, "locks_kept"), 1);
    driver_deinit(&d);
}

Test(core_kept_locks, D16_a_good_end_releases)
{
    begin(true);
    lock("k");
    fail();
    lock("k2");
    driver_close(&d, &a);
    expect_holder("k", "");
    expect_holder("k2", "");
    cr_assert_eq(n_sessions_stored(), 1);
    driver_deinit(&d);
}

Test(core_kept_locks, D16_C38_a_lease_that_runs_out_is_an_abort)
{
    begin(true);
    lock("k");
    for (int i = 0; i < 40; i++) {
        driver_sleep_ms(&d, 100);
        driver_keep_alive(&d, &b);
    }
    expect_holder("k", "esi-a");
    driver_deinit(&d);
}

Test(core_kept_locks, D16_an_aborted_session_without_locks_leaves_nothing)
{
    begin(true);
    fail();
    driver_close(&d, &a);
    cr_assert_eq(n_sessions_stored(), 1);
    driver_deinit(&d);
}

Test(core_kept_locks, D16_kept_across_restarts_until_freed)
{
    begin(true);
    lock("k1");
    lock("k2");
    fail();
    driver_close(&d, &a);
    driver_restart(&d, false);
    expect_holder("k1", "esi-a");
    free_lock("k1", "esi-a");
    expect_holder("k1", "");
    expect_holder("k2", "esi-a");
    cr_assert_eq(n_sessions_stored(), 2);
    free_lock("k2", "esi-a");
    expect_holder("k2", "");
    cr_assert_eq(n_sessions_stored(), 1);
    driver_restart(&d, false);
    cr_assert_eq(driver_get(&d, &b, "k1"), MODEL_OUTCOME_DONE);
    driver_deinit(&d);
}

Test(core_kept_locks, D16_without_the_option_a_restart_releases_them)
{
    begin(true);
    lock("k1");
    lock("k2");
    fail();
    driver_close(&d, &a);
    d.config.keep_locks = false;
    driver_restart(&d, false);
    expect_holder("k1", "");
    expect_holder("k2", "");
    driver_restart(&d, false);
    cr_assert_eq(n_sessions_stored(), 1);
    driver_deinit(&d);
}

/* Both locks are freed at the same time: neither is the last one when it is submitted. */
Test(core_kept_locks, a_row_that_nothing_is_kept_of_goes_with_the_next_start)
{
    struct model_call *calls[2];
    static const char *const keys[] = {"k1", "k2"};

    begin(true);
    lock("k1");
    lock("k2");
    fail();
    driver_close(&d, &a);
    d.auto_commit = false;
    for (int i = 0; i < 2; i++) {
        calls[i] = driver_new_call(&d, MODEL_CALL_FREE_LOCK);
        calls[i]->request.key_status.key = rt_bytes_of_string(keys[i]);
        driver_submit(&d, calls[i]);
    }
    d.auto_commit = true;
    driver_settle(&d);
    for (int i = 0; i < 2; i++) {
        driver_expect(driver_reason(calls[i]), MODEL_REASON_NONE);
        (void)driver_free_call(calls[i]);
    }
    cr_assert_eq(n_sessions_stored(), 2);
    driver_restart(&d, false);
    cr_assert_eq(n_sessions_stored(), 1);
    driver_deinit(&d);
}

/* The same client may begin again beside what was kept of it. */
Test(core_kept_locks, the_client_opens_another_session)
{
    begin(true);
    lock("k");
    fail();
    driver_close(&d, &a);
    a = driver_open(&d, "esi-a");
    cr_assert_eq(driver_get(&d, &a, "k"), MODEL_OUTCOME_WAITING);
    free_lock("k", "esi-a");
    cr_assert_eq(driver_get(&d, &a, "k"), MODEL_OUTCOME_DONE);
    driver_deinit(&d);
}

/* ---- an operator frees locks ----------------------------------------------------------------- */

Test(core_kept_locks, free_takes_the_lock_of_a_session_that_lives)
{
    struct model_call *await;

    begin(false);
    lock("k");
    driver_expect(driver_run(&d, &a, MODEL_STATEMENT_SET, "k", "v"), MODEL_REASON_NONE);
    cr_assert_eq(driver_get(&d, &b, "k"), MODEL_OUTCOME_WAITING);
    await = driver_execute(&d, &b, MODEL_STATEMENT_AWAIT, "k", NULL);
    free_lock("k", "esi-a");
    driver_expect(driver_reason(await), MODEL_REASON_NONE);
    driver_expect(driver_run(&d, &a, MODEL_STATEMENT_SET, "k", "w"), MODEL_REASON_KEY_NOT_LOCKED);
    cr_assert_eq(driver_get(&d, &b, "k"), MODEL_OUTCOME_DONE);
    (void)driver_free_call(await);
    driver_deinit(&d);
}

Test(core_kept_locks, free_of_what_is_free)
{
    begin(false);
    free_lock("unknown", "");
    lock("k");
    driver_close(&d, &a);
    free_lock("k", "");
    driver_deinit(&d);
}

Test(core_kept_locks, free_checks_its_key)
{
    static const uint8_t bytes[MODEL_KEY_MAX + 1];
    struct model_call *call;

    begin(false);
    call = driver_new_call(&d, MODEL_CALL_FREE_LOCK);
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_KEY_EMPTY);
    call->context = NULL;
    call->request.key_status.key = rt_bytes_of(bytes, sizeof(bytes));
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_KEY_TOO_LONG);
    cr_assert_str_eq(call->response.error.message, "key has 256 bytes, valid are 1 to 255");
    call->context = NULL;
    call->request.key_status.key.size--;
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_kept_locks, free_that_does_not_commit)
{
    struct model_call *call;

    begin(false);
    lock("k");
    d.auto_commit = false;
    call = driver_new_call(&d, MODEL_CALL_FREE_LOCK);
    call->request.key_status.key = RT_BYTES_LITERAL("k");
    driver_submit(&d, call);
    driver_commit(&d, STORE_FULL);
    driver_expect(driver_reason(call), MODEL_REASON_DISK_FULL);
    expect_holder("k", "esi-a");
    (void)driver_free_call(call);
    driver_deinit(&d);
}
