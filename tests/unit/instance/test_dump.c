/*
 * The periodic dump: which values are written, what waits for it, what it leaves as it was, and
 * what a later process finds. Entries of ten bytes.
 */
#include "instance/limits.h"
#include "instance/state.h"
#include "tests/unit/instance/driver.h"

TestSuite(dump, .fini = test_alloc_expect_none);

enum {
    INTERVAL_US = 500000
};

static struct driver *dumping(uint64_t n_entries, enum inst_policy policy,
                              enum inst_eviction eviction)
{
    struct driver *driver = driver_new();

    driver->config.entries_total = n_entries;
    driver->config.policy = policy;
    driver->config.eviction = eviction;
    driver->config.dump_interval_us = INTERVAL_US;
    driver_serve(driver);
    for (char key[2] = "a"; key[0] <= 'e'; key[0]++)
        driver_place(driver, key);
    return driver;
}

static struct driver *serving(void)
{
    return dumping(10, INST_POLICY_CIRC, INST_EVICTION_SPILL);
}

static void set(struct driver *driver, const char *key, const char *value)
{
    driver_expect_ok(driver, driver_set(driver, key, value, 0));
}

/* The next period begins. */
static void pass(struct driver *driver)
{
    test_env_advance_us(&driver->env, INTERVAL_US);
    driver_tick(driver);
}

static void dump_all(struct driver *driver)
{
    pass(driver);
    driver_commit_all(driver);
}

/* The process ends, and the next one is told these keys. */
static void restart(struct driver *driver, const char *key)
{
    driver_tell(driver, key, DRIVER_EPOCH);
    driver_serve(driver);
}

static void expect_read(struct driver *driver, const char *key, const char *value, bool sets_lost)
{
    struct model_call *call =
        driver_submit(driver, driver_data(driver, MODEL_CALL_READ, key, NULL));
    const struct model_data_response *data = &call->response.data;

    cr_assert_eq(data->sets_lost, sets_lost);
    cr_assert(rt_bytes_equal(data->value, rt_bytes_of_string(value)));
    driver_finish_ok(driver, call);
}

Test(dump, c71_each_value_that_was_set_once_a_period)
{
    struct driver *driver = serving();

    set(driver, "a", "1");
    set(driver, "a", "2");
    set(driver, "b", "3");
    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_PUT, "c", "stored"));
    test_env_advance_us(&driver->env, INTERVAL_US - 1);
    driver_tick(driver);
    cr_assert_eq(driver_n_txns(driver), 0, "it is not time");
    test_env_advance_us(&driver->env, 1);
    driver_tick(driver);
    cr_assert_eq(driver_n_txns(driver), 2);
    driver_commit_all(driver);
    cr_assert_not_null(driver_find(driver, "a/v"));
    cr_assert_not_null(driver_find(driver, "b/v"));
    pass(driver);
    cr_assert_eq(driver_n_txns(driver), 0, "nothing has changed");
    set(driver, "b", "4");
    pass(driver);
    cr_assert_eq(driver_n_txns(driver), 1);
    driver_commit_all(driver);
    driver_expect_value(driver, "b", "4");
    driver_free(driver);
}

Test(dump, off_unless_asked_for)
{
    struct driver *driver = driver_new();

    driver_serve(driver);
    driver_place(driver, "a");
    set(driver, "a", "1");
    test_env_advance_us(&driver->env, INTERVAL_US);
    driver_tick(driver);
    cr_assert_eq(driver_n_txns(driver), 0);
    cr_assert_gt(inst_core_next_wakeup_us(driver->core), driver->env.now_us);
    driver_free(driver);
}

Test(dump, c72_what_comes_after_it_on_that_key_waits_and_nothing_else)
{
    struct driver *driver = serving();
    struct model_call *read;
    struct model_call *write;

    set(driver, "a", "1");
    set(driver, "b", "1");
    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_STORE, "b", NULL));
    set(driver, "b", "2");
    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_STORE, "b", NULL));
    pass(driver);
    cr_assert_eq(driver_n_txns(driver), 1);
    read = driver_submit(driver, driver_data(driver, MODEL_CALL_READ, "a", NULL));
    write = driver_submit(driver, driver_set(driver, "a", "2", 0));
    cr_assert_not(driver_is_answered(driver, read));
    cr_assert_not(driver_is_answered(driver, write));
    expect_read(driver, "b", "2", false);
    driver_commit(driver, STORE_COMMITTED);
    cr_assert(rt_bytes_equal(read->response.data.value, RT_BYTES_LITERAL("1")));
    driver_finish_ok(driver, read);
    driver_commit_all(driver);
    driver_finish_ok(driver, write);
    driver_expect_value(driver, "a", "2");
    driver_free(driver);
}

/* Somebody's transaction is under way when it is time: the dump follows it, before what waits. */
Test(dump, a_busy_key_is_dumped_when_it_is_free)
{
    struct driver *driver = serving();
    struct model_call *fence;
    struct model_call *write;

    set(driver, "a", "1");
    fence = driver_submit(driver, driver_fence(driver, "a", 7, true));
    cr_assert_eq(driver_n_txns(driver), 1);
    pass(driver);
    cr_assert_eq(driver_n_txns(driver), 1);
    write = driver_submit(driver, driver_set(driver, "a", "2", 7));
    driver_commit(driver, STORE_COMMITTED);
    driver_finish_ok(driver, fence);
    cr_assert_eq(driver_n_txns(driver), 1);
    cr_assert_not_null(inst_rows_find(&driver->core->rows, RT_BYTES_LITERAL("a"))->op);
    cr_assert_not(driver_is_answered(driver, write));
    driver_commit(driver, STORE_COMMITTED);
    cr_assert_not_null(driver_find(driver, "a/v"));
    driver_commit_all(driver);
    driver_finish_ok(driver, write);
    driver_free(driver);
}

/* A late copy of its Activate is under way when it is time. */
Test(dump, a_key_that_is_activated_again_is_dumped_when_it_is_free)
{
    struct driver *driver = serving();
    struct model_call *activate = driver_activate(driver, "a", DRIVER_EPOCH);

    set(driver, "a", "1");
    activate->request.activate.row.token_floor = 7;
    activate = driver_submit(driver, activate);
    cr_assert_eq(driver_n_txns(driver), 1);
    pass(driver);
    cr_assert_eq(driver_n_txns(driver), 1);
    driver_commit_all(driver);
    driver_finish_ok(driver, activate);
    cr_assert_not_null(driver_find(driver, "a/v"));
    driver_free(driver);
}

Test(dump, c27_a_dumped_value_outlives_the_process_and_a_later_one_does_not)
{
    struct driver *driver = serving();
    struct model_version dumped = {DRIVER_EPOCH, driver->incarnation, 1};
    struct model_call *call;

    set(driver, "a", "dumped");
    dump_all(driver);
    restart(driver, "a");
    expect_read(driver, "a", "dumped", false);
    call = driver_data(driver, MODEL_CALL_STORE, "a", NULL);
    call->request.data.has_last_set = true;
    call->request.data.last_set = dumped;
    driver_expect_ok(driver, call);
    set(driver, "a", "dumped 2");
    dump_all(driver);
    set(driver, "a", "lost");
    restart(driver, "a");
    expect_read(driver, "a", "dumped 2", true);
    call = driver_data(driver, MODEL_CALL_STORE, "a", NULL);
    call->request.data.has_last_set = true;
    call->request.data.last_set =
        (struct model_version){DRIVER_EPOCH, driver->incarnation - DRIVER_INCARNATION, 9};
    driver_expect(driver, call, MODEL_REASON_SET_LOST);
    driver_free(driver);
}

Test(dump, the_lock_stays_as_it_is)
{
    struct driver *driver = serving();

    driver_expect_ok(driver, driver_fence(driver, "a", 7, true));
    driver_expect_ok(driver, driver_set(driver, "a", "1", 7));
    dump_all(driver);
    driver_expect(driver, driver_set(driver, "a", "2", 0), MODEL_REASON_KEY_NOT_LOCKED);
    driver_expect_ok(driver, driver_set(driver, "a", "2", 7));
    dump_all(driver);
    restart(driver, "a");
    driver_expect_ok(driver, driver_set(driver, "a", "3", 7));
    driver_free(driver);
}

static struct model_call *set_with_id(struct driver *driver, const char *key, uint64_t seq)
{
    struct model_call *call = driver_set(driver, key, "v", 0);

    call->request.data.header.request_id =
        (struct model_request_id){.client = driver->client, .seq = seq};
    call->request.data.header.done_below = 1;
    return call;
}

Test(dump, remembered_requests_go_along)
{
    struct driver *driver = serving();
    struct model_call *call;

    driver_expect_ok(driver, set_with_id(driver, "a", 1));
    dump_all(driver);
    cr_assert_eq(driver_count(driver, "/d"), 1);
    restart(driver, "a");
    call = driver_submit(driver, set_with_id(driver, "a", 1));
    cr_assert(call->response.data.replayed);
    cr_assert_eq(call->response.data.version.incarnation, driver->incarnation - DRIVER_INCARNATION);
    driver_finish_ok(driver, call);
    driver_free(driver);
}

/* LRU would take "b" first if the dump of "a", or its order, counted as a use. */
Test(dump, c65_replacement_does_not_notice)
{
    struct driver *driver = dumping(2, INST_POLICY_LRU, INST_EVICTION_DROP);

    set(driver, "b", "1");
    set(driver, "a", "2");
    set(driver, "b", "3");
    dump_all(driver);
    set(driver, "c", "4");
    cr_assert_null(driver_find(driver, "a/r"), "the oldest");
    cr_assert_not_null(driver_find(driver, "b/r"));
    driver_free(driver);
}

/* The victim is being dumped: it is waited for, nobody goes in its place, and its file goes too. */
Test(dump, c70_a_victim_that_is_being_dumped)
{
    struct driver *driver = dumping(2, INST_POLICY_CIRC, INST_EVICTION_DROP);
    struct model_call *call;

    set(driver, "a", "1");
    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_PUT, "b", "2"));
    driver_expect_ok(driver, driver_set(driver, "c", "x", 0));
    cr_assert_null(driver_find(driver, "a/r"));
    driver_expect_ok(driver, driver_set(driver, "b", "again", 0));
    pass(driver);
    cr_assert_eq(driver_n_txns(driver), 2);
    call = driver_submit(driver, driver_set(driver, "d", "3", 0));
    driver_commit(driver, STORE_COMMITTED);
    cr_assert_not(driver_is_answered(driver, call));
    driver_commit_all(driver);
    cr_assert_eq(call->response.data.n_evicted, 1);
    cr_assert(rt_bytes_equal(call->response.data.evicted[0], RT_BYTES_LITERAL("b")),
              "in the order of CIRC");
    driver_finish_ok(driver, call);
    cr_assert_null(driver_find(driver, "b/v"), "C70");
    cr_assert_not_null(driver_find(driver, "c/v"));
    driver_free(driver);
}

/* The dump of the victim fails: the write that waits for its entry goes on. */
Test(dump, a_victim_whose_dump_fails)
{
    struct driver *driver = dumping(1, INST_POLICY_CIRC, INST_EVICTION_DROP);
    struct model_call *call;

    set(driver, "a", "1");
    pass(driver);
    call = driver_submit(driver, driver_set(driver, "b", "2", 0));
    cr_assert_not(driver_is_answered(driver, call));
    driver_commit(driver, STORE_COMPARE_FAILED);
    driver_commit_all(driver);
    driver_finish_ok(driver, call);
    cr_assert_null(driver_find(driver, "a/r"));
    driver_free(driver);
}

/* What leaves memory between dumps is dumped on its way. */
Test(dump, a_value_that_is_spilled_is_stored)
{
    struct driver *driver = dumping(1, INST_POLICY_CIRC, INST_EVICTION_SPILL);

    set(driver, "a", "1");
    set(driver, "b", "2");
    cr_assert_null(driver_find(driver, "a/s"));
    cr_assert_not_null(driver_find(driver, "a/v"));
    driver_expect_value(driver, "a", "1");
    pass(driver);
    cr_assert_eq(driver_n_txns(driver), 1, "only b is newer");
    driver_commit_all(driver);
    restart(driver, "a");
    driver_expect_value(driver, "a", "1");
    driver_free(driver);
}

/* At the limit, and one past it. */
Test(dump, at_most_so_many_are_under_way)
{
    struct driver *driver =
        dumping(INST_DUMP_IN_FLIGHT_MAX + 1, INST_POLICY_CIRC, INST_EVICTION_SPILL);
    char key[16];

    for (int i = 0; i <= INST_DUMP_IN_FLIGHT_MAX; i++) {
        (void)snprintf(key, sizeof(key), "k%d", i);
        driver_place(driver, key);
        set(driver, key, "v");
    }
    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_STORE, key, NULL));
    pass(driver);
    cr_assert_eq(driver_n_txns(driver), INST_DUMP_IN_FLIGHT_MAX);
    driver_commit_all(driver);
    for (int i = 0; i <= INST_DUMP_IN_FLIGHT_MAX; i++) {
        (void)snprintf(key, sizeof(key), "k%d", i);
        set(driver, key, "w");
    }
    pass(driver);
    cr_assert_eq(driver_n_txns(driver), INST_DUMP_IN_FLIGHT_MAX);
    driver_commit(driver, STORE_COMMITTED);
    cr_assert_eq(driver_n_txns(driver), INST_DUMP_IN_FLIGHT_MAX, "the last one has begun");
    driver_commit_all(driver);
    pass(driver);
    cr_assert_eq(driver_n_txns(driver), 0);
    driver_free(driver);
}

Test(dump, a_full_disk_is_said_once_a_period_and_tried_again)
{
    static const char said[] = "event=dump_failed reason=DISK_FULL";
    struct driver *driver = serving();

    set(driver, "a", "1");
    set(driver, "b", "2");
    pass(driver);
    driver_commit(driver, STORE_FULL);
    driver_commit(driver, STORE_FULL);
    cr_assert_eq(driver_n_events(driver, RT_LOG_WARNING, said), 1);
    cr_assert_eq(driver_n_txns(driver), 0);
    driver_expect_value(driver, "a", "1");
    pass(driver);
    cr_assert_eq(driver_n_txns(driver), 2);
    driver_commit(driver, STORE_FULL);
    cr_assert_eq(driver_n_events(driver, RT_LOG_WARNING, said), 2);
    driver_commit_all(driver);
    pass(driver);
    cr_assert_eq(driver_n_txns(driver), 1);
    driver_commit_all(driver);
    driver_free(driver);
}

Test(dump, a_read_only_instance_does_not)
{
    struct driver *driver = serving();

    set(driver, "a", "1");
    set(driver, "b", "2");
    pass(driver);
    driver_commit(driver, STORE_UNKNOWN);
    driver_commit(driver, STORE_UNKNOWN);
    pass(driver);
    cr_assert_eq(driver_n_txns(driver), 0);
    cr_assert_gt(inst_core_next_wakeup_us(driver->core), driver->env.now_us);
    driver_free(driver);
}

Test(dump, an_instance_that_leaves_does_not)
{
    struct driver *driver = serving();

    set(driver, "a", "1");
    inst_core_leave(driver->core);
    driver_take(driver);
    pass(driver);
    cr_assert_eq(driver_n_txns(driver), 0);
    driver_free(driver);
}
