/*
 * Eviction that drops: the order of drop and answer, who hears of it, and what is remembered.
 */
#include "instance/state.h"
#include "tests/unit/instance/driver.h"

TestSuite(evicted, .fini = test_alloc_expect_none);

static struct driver *dropping(uint64_t n_entries)
{
    struct driver *driver = driver_new();

    driver->config.entries_total = n_entries;
    driver->config.eviction = INST_EVICTION_DROP;
    driver_serve(driver);
    for (char key[2] = "a"; key[0] <= 'j'; key[0]++)
        driver_place(driver, key);
    return driver;
}

static void set(struct driver *driver, const char *key, const char *value)
{
    driver_expect_ok(driver, driver_set(driver, key, value, 0));
}

static void put(struct driver *driver, const char *key, const char *value)
{
    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_PUT, key, value));
}

Test(evicted, d8_c54_c70_a_dropped_key_is_said_and_gone)
{
    struct driver *driver = dropping(2);
    struct model_call *call;

    put(driver, "a", "1");
    set(driver, "b", "2");
    call = driver_submit(driver, driver_set(driver, "c", "0123456789abc", 0));
    driver_commit_all(driver);
    cr_assert_eq(call->response.data.n_evicted, 2);
    cr_assert(rt_bytes_equal(call->response.data.evicted[0], RT_BYTES_LITERAL("a")));
    cr_assert(rt_bytes_equal(call->response.data.evicted[1], RT_BYTES_LITERAL("b")));
    driver_finish_ok(driver, call);
    cr_assert_null(driver_find(driver, "a/r"));
    cr_assert_null(driver_find(driver, "a/v"), "C70");
    cr_assert_null(driver_find(driver, "b/r"));
    driver_expect(driver, driver_set(driver, "a", "x", 0), MODEL_REASON_NOT_OWNER);
    call = driver_submit(driver, driver_set(driver, "c", "said once", 0));
    cr_assert_eq(call->response.data.n_evicted, 0);
    driver_finish_ok(driver, call);
    driver_free(driver);
}

Test(evicted, d8_nothing_is_answered_before_the_drop_is_durable)
{
    struct driver *driver = dropping(1);
    struct model_call *write;
    struct model_call *read;

    set(driver, "b", "0");
    put(driver, "a", "1"); /* b is dropped */
    driver_expect_ok(driver, driver_activate(driver, "b", DRIVER_EPOCH + 1));
    write = driver_data(driver, MODEL_CALL_PUT, "b", "2");
    write->request.data.header.epoch = DRIVER_EPOCH + 1;
    (void)driver_submit(driver, write);
    read = driver_submit(driver, driver_data(driver, MODEL_CALL_READ, "a", NULL));
    cr_assert_not(driver_is_answered(driver, write));
    cr_assert_not(driver_is_answered(driver, read));
    driver_commit(driver, STORE_COMMITTED);
    driver_finish(driver, read, MODEL_REASON_NOT_OWNER);
    driver_commit_all(driver);
    cr_assert_eq(write->response.data.n_evicted, 1);
    driver_finish_ok(driver, write);
    driver_expect(driver, driver_activate(driver, "a", DRIVER_EPOCH), MODEL_REASON_STALE_EPOCH);
    driver_free(driver);
}

Test(evicted, d8_a_drop_that_fails_evicts_nothing)
{
    struct driver *driver = dropping(1);
    struct model_call *call;

    put(driver, "a", "1");
    call = driver_submit(driver, driver_data(driver, MODEL_CALL_PUT, "b", "2"));
    driver_commit(driver, STORE_FULL);
    driver_finish(driver, call, MODEL_REASON_DISK_FULL);
    driver_expect_value(driver, "a", "1");
    driver_free(driver);
}

/* The write that made room was refused in the end: the next one says it. */
Test(evicted, d8_the_next_answer_says_what_no_answer_said)
{
    struct driver *driver = dropping(1);
    struct model_call *gone;
    struct model_call *call;

    put(driver, "a", "1");
    gone = driver_submit(driver, driver_data(driver, MODEL_CALL_PUT, "b", "2"));
    inst_core_cancel(driver->core, gone);
    driver_commit_all(driver);
    driver_finish(driver, gone, MODEL_REASON_CANCELLED);
    call = driver_submit(driver, driver_data(driver, MODEL_CALL_PUT, "c", "3"));
    driver_commit_all(driver);
    cr_assert_eq(call->response.data.n_evicted, 1);
    cr_assert(rt_bytes_equal(call->response.data.evicted[0], RT_BYTES_LITERAL("a")));
    driver_finish_ok(driver, call);
    driver_free(driver);
}

static void evicted(struct driver *driver, unsigned number)
{
    char key[16];

    (void)snprintf(key, sizeof(key), "e%04u", number);
    inst_evicted_add(driver->core, rt_bytes_of_string(key), DRIVER_EPOCH, false);
}

Test(evicted, no_more_than_the_limit_of_evicted_keys_is_kept)
{
    struct driver *driver = dropping(2);
    struct model_call *call;

    for (unsigned i = 0; i <= MODEL_EVICTED_MAX; i++)
        evicted(driver, i);
    evicted(driver, 7);
    cr_assert_eq(driver->core->n_evicted, MODEL_EVICTED_MAX);
    call = driver_submit(driver, driver_data(driver, MODEL_CALL_PUT, "c", "3"));
    driver_commit_all(driver);
    cr_assert_eq(call->response.data.n_evicted, MODEL_EVICTED_MAX);
    cr_assert(rt_bytes_equal(call->response.data.evicted[0], RT_BYTES_LITERAL("e0001")));
    cr_assert(rt_bytes_equal(call->response.data.evicted[MODEL_EVICTED_MAX - 1],
                             RT_BYTES_LITERAL("e0007")));
    driver_finish_ok(driver, call);
    test_alloc_fail_after(0, 1);
    evicted(driver, 5000);
    test_alloc_fail_never();
    cr_assert_null(inst_evicted_find(driver->core, RT_BYTES_LITERAL("e5000")));
    driver_free(driver);
}

Test(evicted, the_oldest_evicted_key_leaves_the_disk_too)
{
    struct driver *driver = dropping(1);

    put(driver, "a", "1");
    put(driver, "b", "2");
    cr_assert_not_null(driver_find(driver, "a/e"));
    for (unsigned i = 1; i < MODEL_EVICTED_MAX; i++)
        evicted(driver, i);
    put(driver, "c", "3");
    cr_assert_null(driver_find(driver, "a/e"));
    cr_assert_not_null(driver_find(driver, "b/e"));
    driver_free(driver);
}

/* The answer that said so got lost, and then the process. */
Test(evicted, a_key_that_was_dropped_is_not_taken_for_a_lost_one)
{
    struct driver *driver = dropping(1);
    struct model_call *call;

    put(driver, "a", "1");
    put(driver, "b", "2");
    driver->told[driver->n_told++] =
        (struct model_row){.key = RT_BYTES_LITERAL("a"), .epoch = DRIVER_EPOCH, .key_lost = true};
    driver_tell(driver, "b", DRIVER_EPOCH);
    driver_serve(driver);
    driver_expect(driver, driver_set(driver, "a", "x", 0), MODEL_REASON_NOT_OWNER);
    driver_expect_value(driver, "b", "2");
    driver_expect_ok(driver, driver_activate(driver, "a", DRIVER_EPOCH + 100));
    cr_assert_null(driver_find(driver, "a/e"));
    call = driver_data(driver, MODEL_CALL_PUT, "a", "again");
    call->request.data.header.epoch = DRIVER_EPOCH + 100;
    (void)driver_submit(driver, call);
    driver_commit_all(driver);
    cr_assert_eq(call->response.data.n_evicted, 1);
    cr_assert(rt_bytes_equal(call->response.data.evicted[0], RT_BYTES_LITERAL("b")));
    driver_finish_ok(driver, call);
    driver_free(driver);
}

/* The coordinator has learned of it otherwise, and placed the key anew: it must not hear it late.
 */
Test(evicted, a_key_that_is_owned_again_is_not_said_to_be_evicted)
{
    struct driver *driver = dropping(1);
    struct model_call *gone;
    struct model_call *call;

    put(driver, "a", "1");
    gone = driver_submit(driver, driver_data(driver, MODEL_CALL_PUT, "b", "2"));
    inst_core_cancel(driver->core, gone);
    driver_commit_all(driver);
    driver_finish(driver, gone, MODEL_REASON_CANCELLED);
    driver_expect_ok(driver, driver_activate(driver, "a", DRIVER_EPOCH + 100));
    call = driver_submit(driver, driver_data(driver, MODEL_CALL_PUT, "b", "3"));
    driver_commit_all(driver);
    cr_assert_eq(call->response.data.n_evicted, 0);
    driver_finish_ok(driver, call);
    driver_free(driver);
}
