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

/* The Renew that is due names so many dropped keys; `epochs` are what its answer names. */
static void renew(struct driver *driver, const char *first, size_t n, uint64_t *epochs,
                  size_t n_epochs)
{
    const struct model_renew_request *request;
    struct model_call *call;

    driver_heartbeat(driver);
    call = driver_outbound(driver, MODEL_CALL_RENEW);
    request = &call->request.renew;
    cr_assert_eq(request->n_evicted, n);
    if (n > 0) {
        cr_assert(rt_bytes_equal(request->evicted[0].key, rt_bytes_of_string(first)));
        cr_assert_eq(request->evicted[0].epoch, DRIVER_EPOCH);
    }
    model_response_ok(&call->response, MODEL_CALL_RENEW);
    call->response.renew = (struct model_renew_response){
        .lease_ms = DRIVER_LEASE_MS, .evicted_epochs = epochs, .n_evicted_epochs = n_epochs};
    if (!epochs && n_epochs > 0)
        model_response_fail(&call->response, MODEL_REASON_DEADLINE_EXCEEDED, "scripted");
    driver_answer(driver, call);
}

static void pass(struct driver *driver)
{
    test_env_advance_ms(&driver->env, DRIVER_LEASE_MS / 3);
    driver_tick(driver);
}

Test(evicted, d8_renew_repeats_a_dropped_key_until_the_coordinator_knows)
{
    struct driver *driver = dropping(1);
    uint64_t epochs[] = {DRIVER_EPOCH + 7, DRIVER_EPOCH};

    pass(driver);
    renew(driver, NULL, 0, NULL, 0);
    put(driver, "a", "1");
    put(driver, "b", "2"); /* its answer says that a was dropped, and gets lost */
    pass(driver);
    renew(driver, "a", 1, NULL, 1);
    pass(driver);
    renew(driver, "a", 1, epochs, 1);
    pass(driver);
    renew(driver, "a", 1, epochs, 2);
    pass(driver);
    renew(driver, NULL, 0, NULL, 0);
    driver_free(driver);
}

Test(evicted, d8_what_the_coordinator_knows_is_left_out_and_the_rest_goes_on)
{
    struct driver *driver = dropping(1);
    uint64_t known[] = {DRIVER_EPOCH + 1, DRIVER_EPOCH + 3};

    for (unsigned i = 0; i < 4; i++) {
        char key[2] = {(char)('p' + i), 0};

        inst_evicted_add(driver->core, rt_bytes_of_string(key), DRIVER_EPOCH + i, true);
    }
    pass(driver);
    renew(driver, "p", 4, known, 2);
    pass(driver);
    renew(driver, "p", 2, NULL, 0);
    inst_evicted_forget(driver->core, RT_BYTES_LITERAL("p"));
    inst_evicted_forget(driver->core, RT_BYTES_LITERAL("q"));
    cr_assert_eq(driver->core->n_unknown, 1);
    driver_free(driver);
}

Test(evicted, d8_a_new_process_repeats_what_is_on_disk)
{
    struct driver *driver = dropping(1);

    put(driver, "a", "1");
    put(driver, "b", "2");
    driver_tell(driver, "b", DRIVER_EPOCH);
    driver_boot(driver);
    driver_register(driver);
    driver_reconcile(driver);
    renew(driver, "a", 1, NULL, 0);
    driver_free(driver);
}

Test(evicted, a_renew_names_as_many_as_there_may_be)
{
    struct driver *driver = dropping(1);

    for (unsigned i = 0; i <= MODEL_EVICTED_MAX; i++)
        evicted(driver, i);
    pass(driver);
    renew(driver, "e0001", MODEL_EVICTED_MAX, NULL, 0);
    driver_free(driver);
}

Test(evicted, a_renew_without_memory_for_dropped_keys_is_a_renew)
{
    struct driver *driver = dropping(1);
    struct model_call *call = model_call_new(MODEL_CALL_RENEW);

    evicted(driver, 1);
    call->request.renew = (struct model_renew_request){0};
    call->arena.limit = 1;
    inst_evicted_repeat(driver->core, call);
    cr_assert_eq(call->request.renew.n_evicted, 0);
    (void)model_call_free(call);
    driver_free(driver);
}
