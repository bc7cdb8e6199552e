/*
 * Transactions and those who wait: order within a key, freedom between keys, every outcome,
 * deadlines and cancellation behind a transaction, limits.
 */
#include "instance/limits.h"

#include <stdio.h>

#include "tests/unit/instance/driver.h"

TestSuite(commit, .fini = test_alloc_expect_none);

static struct driver *serving(const char *key)
{
    struct driver *driver = driver_new();

    driver_serve(driver);
    driver_place(driver, key);
    return driver;
}

Test(commit, one_transaction_a_key_many_keys_at_once)
{
    struct driver *driver = serving("k");
    struct model_call *first;
    struct model_call *second;
    struct model_call *other;

    driver_place(driver, "l");
    first = driver_submit(driver, driver_data(driver, MODEL_CALL_PUT, "k", "1"));
    second = driver_submit(driver, driver_data(driver, MODEL_CALL_PUT, "k", "2"));
    other = driver_submit(driver, driver_data(driver, MODEL_CALL_PUT, "l", "3"));
    cr_assert_eq(driver_n_txns(driver), 2);
    driver_commit_all(driver);
    cr_assert_eq(first->response.data.version.seq, 1);
    cr_assert_eq(second->response.data.version.seq, 2);
    driver_finish_ok(driver, first);
    driver_finish_ok(driver, second);
    driver_finish_ok(driver, other);
    driver_expect_value(driver, "k", "2");
    driver_free(driver);
}

Test(commit, disk_full_changes_nothing_and_passes)
{
    struct driver *driver = serving("k");
    static const enum model_call_kind kinds[] = {MODEL_CALL_SET, MODEL_CALL_STORE, MODEL_CALL_PUT,
                                                 MODEL_CALL_DELETE};

    for (size_t i = 0; i < RT_ARRAY_SIZE(kinds); i++) {
        struct model_call *call = driver_submit(driver, driver_data(driver, kinds[i], "k", "v"));

        driver_commit(driver, STORE_FULL);
        cr_assert_eq(call->response.error.applied, MODEL_APPLIED_NO);
        driver_finish(driver, call, MODEL_REASON_DISK_FULL);
        driver_expect_value(driver, "k", NULL);
    }
    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_PUT, "k", "v"));
    driver_free(driver);
}

Test(commit, an_unknown_outcome_is_maybe_and_ends_all_writes)
{
    struct driver *driver = serving("k");
    struct model_call *put;
    struct model_call *waiting;
    uint64_t number;

    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_PUT, "k", "v"));
    put = driver_submit(driver, driver_data(driver, MODEL_CALL_PUT, "k", "w"));
    waiting = driver_submit(driver, driver_data(driver, MODEL_CALL_PUT, "k", "x"));
    driver_commit(driver, STORE_UNKNOWN);
    cr_assert_eq(put->response.code, RT_INTERNAL);
    cr_assert_eq(put->response.error.applied, MODEL_APPLIED_MAYBE);
    cr_assert_eq(driver_n_events(driver, RT_LOG_ERROR, "event=read_only reason=STORE_ERROR"), 1);
    driver_finish(driver, put, MODEL_REASON_STORE_ERROR);
    driver_finish(driver, waiting, MODEL_REASON_READ_ONLY);
    driver_expect(driver, driver_set(driver, "k", "x", 0), MODEL_REASON_READ_ONLY);
    driver_expect(driver, driver_fence(driver, "k", 60, true), MODEL_REASON_READ_ONLY);
    driver_expect_value(driver, "k", "v");
    test_env_advance_ms(&driver->env, 1000);
    driver_tick(driver);
    cr_assert_not(inst_core_take_heartbeat(driver->core, &number), "the lease shall run out");
    driver_free(driver);
}

Test(commit, an_unknown_outcome_of_a_preparation_is_not_applied)
{
    struct driver *driver = serving("k");
    struct model_call *set = driver_submit(driver, driver_set(driver, "k", "v", 0));

    driver_commit(driver, STORE_UNKNOWN);
    cr_assert_eq(set->response.error.applied, MODEL_APPLIED_NO);
    driver_finish(driver, set, MODEL_REASON_STORE_ERROR);
    driver_free(driver);
}

Test(commit, a_compare_that_fails_is_an_internal_error_and_not_applied)
{
    struct driver *driver = serving("k");
    struct model_call *put = driver_submit(driver, driver_data(driver, MODEL_CALL_PUT, "k", "v"));

    driver_find(driver, "k/r")->value[1]++;
    driver_commit(driver, STORE_COMMITTED);
    cr_assert_eq(put->response.code, RT_INTERNAL);
    cr_assert_eq(put->response.error.applied, MODEL_APPLIED_NO);
    driver_finish(driver, put, MODEL_REASON_NONE);
    driver_expect_value(driver, "k", NULL);
    driver_free(driver);
}

Test(commit, deadlines_end_behind_a_transaction)
{
    struct driver *driver = serving("k");
    struct model_call *put = driver_submit(driver, driver_data(driver, MODEL_CALL_PUT, "k", "v"));
    struct model_call *sooner = driver_set(driver, "k", "w", 0);
    struct model_call *later = driver_set(driver, "k", "x", 0);

    later->deadline_us = driver->env.now_us + 200;
    sooner->deadline_us = driver->env.now_us + 100;
    (void)driver_submit(driver, later);
    (void)driver_submit(driver, sooner);
    cr_assert_eq(inst_core_next_wakeup_us(driver->core), sooner->deadline_us);
    test_env_advance_us(&driver->env, 99);
    driver_tick(driver);
    cr_assert_not(driver_is_answered(driver, sooner));
    test_env_advance_us(&driver->env, 1);
    driver_tick(driver);
    driver_finish(driver, sooner, MODEL_REASON_DEADLINE_EXCEEDED);
    cr_assert_eq(inst_core_next_wakeup_us(driver->core), later->deadline_us);
    test_env_advance_us(&driver->env, 100);
    driver_commit(driver, STORE_COMMITTED);
    driver_finish_ok(driver, put);
    driver_finish(driver, later, MODEL_REASON_DEADLINE_EXCEEDED);
    driver_expect_value(driver, "k", "v");
    driver_free(driver);
}

Test(commit, a_cancelled_call_leaves_the_queue_and_one_in_flight_does_not)
{
    struct driver *driver = serving("k");
    struct model_call *put = driver_submit(driver, driver_data(driver, MODEL_CALL_PUT, "k", "v"));
    struct model_call *waiting = driver_submit(driver, driver_set(driver, "k", "w", 0));

    inst_core_cancel(driver->core, waiting);
    inst_core_cancel(driver->core, put);
    driver_take(driver);
    driver_finish(driver, waiting, MODEL_REASON_CANCELLED);
    cr_assert_not(driver_is_answered(driver, put));
    driver_commit(driver, STORE_COMMITTED);
    driver_finish_ok(driver, put);
    driver_expect_value(driver, "k", "v");
    driver_free(driver);
}

Test(commit, a_cancelled_set_is_not_applied_after_its_preparation)
{
    struct driver *driver = serving("k");
    struct model_call *set = driver_submit(driver, driver_set(driver, "k", "v", 0));

    inst_core_cancel(driver->core, set);
    driver_commit(driver, STORE_COMMITTED);
    driver_finish(driver, set, MODEL_REASON_CANCELLED);
    driver_expect_value(driver, "k", NULL);
    driver_free(driver);
}

static void expect_limit(struct driver *driver, const char *key)
{
    struct model_call *call =
        driver_submit(driver, driver_data(driver, MODEL_CALL_READ, key, NULL));

    driver_finish(driver, call, MODEL_REASON_LIMIT_REACHED);
}

Test(commit, waiting_calls_of_a_key_at_the_limit_and_one_past_it)
{
    struct driver *driver = serving("k");
    struct model_call *put = driver_submit(driver, driver_data(driver, MODEL_CALL_PUT, "k", "v"));
    static struct model_call *waiting[INST_WAITS_PER_KEY_MAX];

    for (size_t i = 0; i < INST_WAITS_PER_KEY_MAX; i++)
        waiting[i] = driver_submit(driver, driver_data(driver, MODEL_CALL_READ, "k", NULL));
    expect_limit(driver, "k");
    driver_commit(driver, STORE_COMMITTED);
    driver_finish_ok(driver, put);
    for (size_t i = 0; i < INST_WAITS_PER_KEY_MAX; i++)
        driver_finish_ok(driver, waiting[i]);
    driver_free(driver);
}

static void fill_keys(struct driver *driver, char keys[][8])
{
    for (int i = 0; i < INST_WAITS_MAX / INST_WAITS_PER_KEY_MAX; i++) {
        (void)snprintf(keys[i], sizeof(keys[i]), "k%d", i);
        driver_expect_ok(driver, driver_activate(driver, keys[i], DRIVER_EPOCH));
    }
    for (int i = 0; i < INST_WAITS_MAX / INST_WAITS_PER_KEY_MAX; i++) {
        for (int j = 0; j <= INST_WAITS_PER_KEY_MAX; j++) {
            struct model_call *call =
                driver_data(driver, j == 0 ? MODEL_CALL_DELETE : MODEL_CALL_READ, keys[i], NULL);

            inst_core_submit(driver->core, call);
        }
    }
    driver_take(driver);
}

Test(commit, waiting_calls_in_all_at_the_limit_and_one_past_it)
{
    static char keys[INST_WAITS_MAX / INST_WAITS_PER_KEY_MAX][8];
    struct driver *driver = driver_new();
    struct rt_list *node;
    size_t n_ok = 0;

    driver_serve(driver);
    driver_expect_ok(driver, driver_activate(driver, "one", DRIVER_EPOCH));
    fill_keys(driver, keys);
    cr_assert(rt_list_is_empty(&driver->replies));
    {
        struct model_call *put =
            driver_submit(driver, driver_data(driver, MODEL_CALL_PUT, "one", "v"));

        expect_limit(driver, "one");
        driver_commit_all(driver);
        driver_finish_ok(driver, put);
    }
    while ((node = rt_list_pop_front(&driver->replies))) {
        n_ok += RT_LIST_ENTRY(node, struct model_call, link)->response.code == RT_OK;
        (void)model_call_free(RT_LIST_ENTRY(node, struct model_call, link));
    }
    cr_assert_eq(n_ok, INST_WAITS_MAX + INST_WAITS_MAX / INST_WAITS_PER_KEY_MAX);
    driver_free(driver);
}

Test(commit, no_memory_to_wait)
{
    struct driver *driver = serving("k");
    struct model_call *put = driver_submit(driver, driver_data(driver, MODEL_CALL_PUT, "k", "v"));

    test_alloc_fail_after(0, 1);
    expect_limit(driver, "k");
    test_alloc_fail_never();
    driver_commit(driver, STORE_COMMITTED);
    driver_finish_ok(driver, put);
    driver_free(driver);
}
