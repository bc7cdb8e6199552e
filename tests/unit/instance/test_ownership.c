/*
 * Fence, Activate, Drop: what becomes durable, what repeats and late arrivals do, and how they
 * interleave with writes.
 */
#include "tests/unit/instance/driver.h"

TestSuite(ownership, .fini = test_alloc_expect_none);

static struct driver *serving(const char *key)
{
    struct driver *driver = driver_new();

    driver_serve(driver);
    driver_place(driver, key);
    return driver;
}

static struct model_call *store(struct driver *driver, uint64_t token)
{
    struct model_call *call = driver_data(driver, MODEL_CALL_STORE, "k", NULL);

    call->request.data.header.lock_token = token;
    return call;
}

/* Boots again with `k` told at its epoch, lock state as given. */
static void restart(struct driver *driver, uint64_t floor, bool locked)
{
    driver->n_told = 0;
    driver_tell(driver, "k", DRIVER_EPOCH);
    driver->told[0].token_floor = floor;
    driver->told[0].locked = locked;
    driver_serve(driver);
}

/* ---- Activate ---- */

Test(ownership, activate_is_durable_before_it_is_acknowledged)
{
    struct driver *driver = driver_new();
    struct model_call *activate;
    struct model_call *set;

    driver_serve(driver);
    activate = driver_submit(driver, driver_activate(driver, "k", DRIVER_EPOCH));
    cr_assert_not(driver_is_answered(driver, activate));
    set = driver_submit(driver, driver_set(driver, "k", "v", 0));
    cr_assert_not(driver_is_answered(driver, set), "waits for the activation");
    cr_assert_null(driver_find(driver, "k/r"));
    driver_commit_all(driver);
    cr_assert_not_null(driver_find(driver, "k/r"));
    driver_finish_ok(driver, activate);
    driver_finish_ok(driver, set);
    driver_free(driver);
}

Test(ownership, a_stale_read_of_an_activating_key_is_moving)
{
    struct driver *driver = driver_new();
    struct model_call *activate;
    struct model_call *read;

    driver_serve(driver);
    activate = driver_submit(driver, driver_activate(driver, "k", DRIVER_EPOCH));
    read = driver_data(driver, MODEL_CALL_READ, "k", NULL);
    read->request.data.consistency = MODEL_READ_STALE_OK;
    (void)driver_submit(driver, read);
    driver_finish(driver, read, MODEL_REASON_MOVING);
    driver_commit_all(driver);
    driver_finish_ok(driver, activate);
    driver_free(driver);
}

Test(ownership, activate_again_is_ok_and_only_raises)
{
    struct driver *driver = serving("k");
    struct model_call *call;

    driver_expect_ok(driver, driver_fence(driver, "k", 60, true));
    call = driver_activate(driver, "k", DRIVER_EPOCH);
    call->request.activate.row.token_floor = 55;
    (void)driver_submit(driver, call);
    cr_assert_eq(driver_n_txns(driver), 0);
    driver_finish_ok(driver, call);
    driver_expect(driver, driver_set(driver, "k", "v", 0), MODEL_REASON_KEY_NOT_LOCKED);
    driver_expect_ok(driver, driver_set(driver, "k", "v", 60));
    call = driver_activate(driver, "k", DRIVER_EPOCH);
    call->request.activate.row.token_floor = 70;
    call->request.activate.row.locked = true;
    driver_expect_ok(driver, call);
    driver_expect(driver, driver_set(driver, "k", "v", 60), MODEL_REASON_LOCK_FENCED);
    driver_expect_ok(driver, driver_set(driver, "k", "v", 70));
    driver_free(driver);
}

Test(ownership, activate_at_a_fresh_epoch_drops_the_old_value)
{
    struct driver *driver = serving("k");
    struct model_call *call = driver_data(driver, MODEL_CALL_PUT, "k", "old");

    call->request.data.header.request_id = (struct model_request_id){driver->client, 1};
    driver_expect_ok(driver, call);
    driver_expect_ok(driver, driver_activate(driver, "k", DRIVER_EPOCH + 1));
    cr_assert_null(driver_find(driver, "k/v"));
    driver_expect(driver, driver_activate(driver, "k", DRIVER_EPOCH), MODEL_REASON_STALE_EPOCH);
    driver_expect(driver, driver_data(driver, MODEL_CALL_READ, "k", NULL),
                  MODEL_REASON_STALE_EPOCH);
    call = driver_data(driver, MODEL_CALL_READ, "k", NULL);
    call->request.data.header.epoch = DRIVER_EPOCH + 1;
    (void)driver_submit(driver, call);
    cr_assert_not(call->response.data.has_value);
    cr_assert_eq(call->response.data.entries_free, 10);
    driver_finish_ok(driver, call);
    call = driver_data(driver, MODEL_CALL_PUT, "k", "old");
    call->request.data.header.request_id = (struct model_request_id){driver->client, 1};
    call->request.data.header.epoch = DRIVER_EPOCH + 1;
    call->request.data.header.first_epoch = DRIVER_EPOCH;
    driver_expect(driver, call, MODEL_REASON_OUTCOME_UNKNOWN);
    driver_free(driver);
}

Test(ownership, activate_refuses_other_lives_and_what_does_not_fit)
{
    struct driver *driver = driver_new();
    struct model_call *call;

    driver_serve(driver);
    call = driver_activate(driver, "k", DRIVER_EPOCH);
    call->request.activate.incarnation--;
    driver_expect(driver, call, MODEL_REASON_STALE_INCARNATION);
    call = driver_activate(driver, "k", DRIVER_EPOCH);
    call->request.activate.incarnation++;
    driver_expect(driver, call, MODEL_REASON_SUPERSEDED);
    call = driver_activate(driver, "k", DRIVER_EPOCH);
    call->request.activate.value_size = 101;
    driver_expect(driver, call, MODEL_REASON_NO_ENTRIES);
    call = driver_activate(driver, "k", DRIVER_EPOCH);
    call->request.activate.value_size = MODEL_VALUE_MAX + 1;
    driver_expect(driver, call, MODEL_REASON_VALUE_TOO_LARGE);
    driver_expect(driver, driver_activate(driver, "k", 0), MODEL_REASON_INVALID_FIELD);
    driver_expect(driver, driver_activate(driver, "", DRIVER_EPOCH), MODEL_REASON_KEY_EMPTY);
    driver_expect(driver, driver_activate(driver, "12345678901234567890123456789012345678901", 5),
                  MODEL_REASON_KEY_TOO_LONG);
    test_alloc_fail_after(0, 1);
    driver_expect(driver, driver_activate(driver, "k", 5), MODEL_REASON_LIMIT_REACHED);
    test_alloc_fail_never();
    call = driver_activate(driver, "k", DRIVER_EPOCH);
    call->request.activate.value_size = 100;
    driver_expect_ok(driver, call);
    driver_free(driver);
}

Test(ownership, activate_that_is_not_committed_leaves_no_row)
{
    struct driver *driver = driver_new();
    struct model_call *call;

    driver_serve(driver);
    call = driver_submit(driver, driver_activate(driver, "k", DRIVER_EPOCH));
    driver_commit(driver, STORE_FULL);
    driver_finish(driver, call, MODEL_REASON_DISK_FULL);
    driver_expect(driver, driver_set(driver, "k", "v", 0), MODEL_REASON_NOT_OWNER);
    driver_place(driver, "k");
    driver_free(driver);
}

/* ---- Fence ---- */

Test(ownership, fence_answers_the_value_after_it_is_durable)
{
    struct driver *driver = serving("k");
    struct model_call *put;
    struct model_call *fence;

    put = driver_submit(driver, driver_data(driver, MODEL_CALL_PUT, "k", "v"));
    fence = driver_submit(driver, driver_fence(driver, "k", 60, true));
    driver_commit(driver, STORE_COMMITTED);
    driver_finish_ok(driver, put);
    cr_assert_not(driver_is_answered(driver, fence));
    driver_commit(driver, STORE_COMMITTED);
    cr_assert(rt_bytes_equal(fence->response.data.value, RT_BYTES_LITERAL("v")));
    cr_assert(fence->response.data.stored);
    driver_finish_ok(driver, fence);
    driver_free(driver);
}

Test(ownership, rule_8_the_floor_rises_on_receipt)
{
    struct driver *driver = serving("k");
    struct model_call *in_flight;
    struct model_call *waiting;
    struct model_call *fence;

    driver_expect_ok(driver, driver_fence(driver, "k", 60, true));
    driver_expect_ok(driver, driver_set(driver, "k", "v", 60));
    in_flight = driver_submit(driver, store(driver, 60));
    waiting = driver_submit(driver, driver_set(driver, "k", "late", 60));
    fence = driver_submit(driver, driver_fence(driver, "k", 70, true));
    driver_commit(driver, STORE_COMMITTED);
    driver_finish_ok(driver, in_flight);
    driver_finish(driver, waiting, MODEL_REASON_KEY_NOT_LOCKED);
    driver_commit(driver, STORE_COMMITTED);
    cr_assert(rt_bytes_equal(fence->response.data.value, RT_BYTES_LITERAL("v")));
    driver_finish_ok(driver, fence);
    driver_free(driver);
}

Test(ownership, rule_8_a_waiting_write_of_the_old_holder_is_fenced)
{
    struct driver *driver = serving("k");
    struct model_call *first;
    struct model_call *waiting;
    struct model_call *fence;

    driver_expect_ok(driver, driver_fence(driver, "k", 60, true));
    first = driver_data(driver, MODEL_CALL_DELETE, "k", NULL);
    first->request.data.header.lock_token = 60;
    (void)driver_submit(driver, first);
    waiting = driver_submit(driver, driver_set(driver, "k", "late", 60));
    fence = driver_submit(driver, driver_fence(driver, "k", 70, true));
    driver_commit(driver, STORE_COMMITTED);
    driver_finish_ok(driver, first);
    driver_finish(driver, waiting, MODEL_REASON_LOCK_FENCED);
    driver_commit_all(driver);
    cr_assert_not(fence->response.data.has_value);
    driver_finish_ok(driver, fence);
    driver_expect(driver, driver_set(driver, "k", "v", 60), MODEL_REASON_LOCK_FENCED);
    driver_expect_ok(driver, driver_set(driver, "k", "v", 70));
    driver_free(driver);
}

Test(ownership, post_check_of_fence)
{
    struct driver *driver = serving("k");
    struct model_call *fence = driver_submit(driver, driver_fence(driver, "k", 60, true));

    test_env_advance_us(&driver->env, DRIVER_FENCE_US);
    driver_commit(driver, STORE_COMMITTED);
    driver_finish(driver, fence, MODEL_REASON_OUTCOME_UNKNOWN);
    driver_free(driver);
}

Test(ownership, fence_again_and_late_fences)
{
    struct driver *driver = serving("k");
    struct model_call *call;

    driver_expect_ok(driver, driver_fence(driver, "k", 60, true));
    call = driver_submit(driver, driver_fence(driver, "k", 60, true));
    cr_assert_eq(driver_n_txns(driver), 0, "nothing new to write");
    driver_finish_ok(driver, call);
    driver_expect_ok(driver, driver_fence(driver, "k", 70, true));
    driver_expect(driver, driver_fence(driver, "k", 60, true), MODEL_REASON_LOCK_FENCED);
    driver_expect_ok(driver, driver_fence(driver, "k", 60, false));
    driver_expect_ok(driver, driver_set(driver, "k", "v", 70));
    driver_expect_ok(driver, driver_fence(driver, "k", 70, false));
    driver_expect_ok(driver, driver_fence(driver, "k", 70, false));
    driver_expect(driver, driver_fence(driver, "k", 70, true), MODEL_REASON_LOCK_FENCED);
    driver_expect(driver, driver_set(driver, "k", "v", 70), MODEL_REASON_KEY_NOT_LOCKED);
    driver_expect_ok(driver, driver_set(driver, "k", "v", 0));
    driver_free(driver);
}

Test(ownership, a_grant_after_store_does_not_come_back)
{
    struct driver *driver = serving("k");

    driver_expect_ok(driver, driver_fence(driver, "k", 60, true));
    driver_expect_ok(driver, store(driver, 60));
    driver_expect(driver, driver_fence(driver, "k", 60, true), MODEL_REASON_LOCK_FENCED);
    driver_expect_ok(driver, driver_set(driver, "k", "v", 0));
    driver_free(driver);
}

Test(ownership, fence_refuses_other_epochs_lives_and_keys)
{
    struct driver *driver = serving("k");
    struct model_call *call = driver_fence(driver, "k", 60, true);

    call->request.fence.epoch--;
    driver_expect(driver, call, MODEL_REASON_STALE_EPOCH);
    call = driver_fence(driver, "k", 60, true);
    call->request.fence.epoch++;
    driver_expect(driver, call, MODEL_REASON_EPOCH_AHEAD);
    call = driver_fence(driver, "k", 60, true);
    call->request.fence.incarnation--;
    driver_expect(driver, call, MODEL_REASON_STALE_INCARNATION);
    driver_expect(driver, driver_fence(driver, "other", 60, true), MODEL_REASON_NOT_OWNER);
    driver_expect(driver, driver_fence(driver, "k", 0, true), MODEL_REASON_INVALID_FIELD);
    call = driver_fence(driver, "k", 60, true);
    call->deadline_us = driver->env.now_us;
    driver_expect(driver, call, MODEL_REASON_DEADLINE_EXCEEDED);
    driver_expect_ok(driver, driver_set(driver, "k", "v", 0));
    driver_free(driver);
}

Test(ownership, rule_12_a_lock_survives_the_restart_as_the_coordinator_says)
{
    struct driver *driver = serving("k");

    driver_expect_ok(driver, driver_fence(driver, "k", 60, true));
    restart(driver, 60, true);
    driver_expect(driver, driver_set(driver, "k", "v", 0), MODEL_REASON_KEY_NOT_LOCKED);
    driver_expect_ok(driver, driver_set(driver, "k", "v", 60));
    restart(driver, 60, false);
    driver_expect(driver, driver_set(driver, "k", "v", 60), MODEL_REASON_KEY_NOT_LOCKED);
    driver_expect_ok(driver, driver_set(driver, "k", "v", 0));
    driver_free(driver);
}

Test(ownership, rule_13_floor_without_closed_says_sets_lost_after_a_restart)
{
    for (int stored = 0; stored < 2; stored++) {
        struct driver *driver = serving("k");
        struct model_call *call;

        driver_expect_ok(driver, driver_fence(driver, "k", 60, true));
        driver_expect_ok(driver, driver_set(driver, "k", "v", 60));
        if (stored)
            driver_expect_ok(driver, store(driver, 60));
        restart(driver, 70, true);
        call = driver_submit(driver, driver_fence(driver, "k", 70, true));
        driver_commit_all(driver);
        cr_assert_eq(call->response.data.sets_lost, !stored);
        cr_assert_eq(call->response.data.has_value, stored);
        driver_finish_ok(driver, call);
        driver_free(driver);
    }
}

Test(ownership, a_release_without_sets_leaves_nothing_to_lose)
{
    for (int set = 0; set < 2; set++) {
        struct driver *driver = serving("k");
        struct model_call *call;

        driver_expect_ok(driver, driver_fence(driver, "k", 60, true));
        if (set)
            driver_expect_ok(driver, driver_set(driver, "k", "v", 60));
        driver_expect_ok(driver, driver_fence(driver, "k", 60, false));
        restart(driver, 60, false);
        call = driver_submit(driver, driver_data(driver, MODEL_CALL_READ, "k", NULL));
        cr_assert_eq(call->response.data.sets_lost, set);
        driver_finish_ok(driver, call);
        driver_free(driver);
    }
}

Test(ownership, rule_13_only_an_access_uses_up_what_was_lost)
{
    struct driver *driver = serving("k");
    struct model_call *call;

    driver_expect_ok(driver, driver_fence(driver, "k", 60, true));
    driver_expect_ok(driver, driver_set(driver, "k", "v", 60));
    restart(driver, 60, true);
    driver_expect_ok(driver, driver_fence(driver, "k", 60, false));
    restart(driver, 60, false);
    driver_expect_ok(driver, driver_fence(driver, "k", 61, false));
    call = driver_submit(driver, driver_data(driver, MODEL_CALL_READ, "k", NULL));
    cr_assert(call->response.data.sets_lost, "the release did not use it up, nor did a restart");
    driver_finish_ok(driver, call);
    driver_free(driver);
}

/* Commits the call, whose answer then dies with the process. */
static void commit_and_crash(struct driver *driver, struct model_call *call)
{
    (void)driver_submit(driver, call);
    driver_commit_all(driver);
    restart(driver, 70, false);
}

Test(ownership, lost_sets_are_said_although_a_crash_swallowed_the_answer_that_said_it)
{
    for (int kind = 0; kind < 4; kind++) {
        struct driver *driver = serving("k");
        struct model_call *call;

        driver_expect_ok(driver, driver_set(driver, "k", "v", 0));
        restart(driver, 60, false);
        commit_and_crash(driver, kind == 0   ? driver_fence(driver, "k", 60, false)
                                 : kind == 1 ? driver_data(driver, MODEL_CALL_PUT, "k", "w")
                                 : kind == 2 ? driver_data(driver, MODEL_CALL_STORE, "k", NULL)
                                             : driver_data(driver, MODEL_CALL_DELETE, "k", NULL));
        call = driver_submit(driver, driver_data(driver, MODEL_CALL_READ, "k", NULL));
        cr_assert(call->response.data.sets_lost, "kind %d", kind);
        driver_finish_ok(driver, call);
        driver_free(driver);
    }
}

Test(ownership, no_memory_for_the_value_of_a_fence)
{
    struct driver *driver = serving("k");
    struct model_call *call;

    driver_expect_ok(driver, driver_set(driver, "k", "v", 0));
    call = driver_submit(driver, driver_fence(driver, "k", 60, true));
    test_alloc_fail_after(0, 1);
    driver_commit(driver, STORE_COMMITTED);
    test_alloc_fail_never();
    driver_finish(driver, call, MODEL_REASON_LIMIT_REACHED);
    driver_free(driver);
}

Test(ownership, i11_a_command_whose_coordinator_was_replaced_meanwhile_is_unknown)
{
    for (int kind = 0; kind < 3; kind++) {
        struct driver *driver = serving("k");
        struct model_call *call = kind == 0   ? driver_fence(driver, "k", 60, true)
                                  : kind == 1 ? driver_activate(driver, "k", DRIVER_EPOCH + 1)
                                              : driver_drop(driver, "k", DRIVER_EPOCH);

        (void)driver_submit(driver, call);
        driver->term++;
        driver_finish(driver, driver_submit(driver, driver_fence(driver, "other", 1, true)),
                      MODEL_REASON_NOT_OWNER);
        driver_commit_all(driver);
        driver_finish(driver, call, MODEL_REASON_OUTCOME_UNKNOWN);
        driver_free(driver);
    }
}

/* ---- Drop ---- */

Test(ownership, drop_removes_everything_and_repeats)
{
    struct driver *driver = serving("k");
    struct model_call *call = driver_data(driver, MODEL_CALL_PUT, "k", "v");

    call->request.data.header.request_id = (struct model_request_id){driver->client, 1};
    driver_expect_ok(driver, call);
    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_DELETE, "k", NULL));
    driver_expect_ok(driver, driver_drop(driver, "k", DRIVER_EPOCH));
    cr_assert_null(driver_find(driver, "k/r"));
    driver_expect(driver, driver_data(driver, MODEL_CALL_READ, "k", NULL), MODEL_REASON_NOT_OWNER);
    driver_expect_ok(driver, driver_drop(driver, "k", DRIVER_EPOCH));
    test_env_advance_ms(&driver->env, 1000);
    driver_tick(driver);
    driver_commit_all(driver);
    cr_assert_eq(driver->n_disk, 1, "meta only");
    driver_expect(driver, driver_activate(driver, "k", DRIVER_EPOCH), MODEL_REASON_STALE_EPOCH);
    driver_expect_ok(driver, driver_activate(driver, "k", DRIVER_EPOCH + 1));
    driver_free(driver);
}

Test(ownership, a_value_put_after_the_delete_is_not_dropped)
{
    struct driver *driver = serving("k");
    struct model_call *put;
    struct model_call *drop;

    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_DELETE, "k", NULL));
    put = driver_submit(driver, driver_data(driver, MODEL_CALL_PUT, "k", "v"));
    drop = driver_submit(driver, driver_drop(driver, "k", DRIVER_EPOCH));
    driver_commit_all(driver);
    driver_finish_ok(driver, put);
    driver_finish(driver, drop, MODEL_REASON_VERSION_MISMATCH);
    driver_expect_value(driver, "k", "v");
    driver_free(driver);
}

Test(ownership, lost_sets_that_nobody_was_told_of_are_not_dropped)
{
    struct driver *driver = serving("k");
    struct model_call *drop;
    struct model_call *call;

    driver_expect_ok(driver, driver_set(driver, "k", "v", 0));
    restart(driver, DRIVER_EPOCH, false);
    drop = driver_submit(driver, driver_drop(driver, "k", DRIVER_EPOCH));
    driver_finish(driver, drop, MODEL_REASON_VERSION_MISMATCH);
    call = driver_submit(driver, driver_data(driver, MODEL_CALL_READ, "k", NULL));
    cr_assert(call->response.data.sets_lost);
    driver_finish_ok(driver, call);
    driver_expect_ok(driver, driver_drop(driver, "k", DRIVER_EPOCH));
    driver_free(driver);
}

Test(ownership, drop_of_an_older_epoch_leaves_the_newer_row)
{
    struct driver *driver = serving("k");

    driver_expect_ok(driver, driver_set(driver, "k", "v", 0));
    driver_expect_ok(driver, driver_drop(driver, "k", DRIVER_EPOCH - 1));
    driver_expect_value(driver, "k", "v");
    driver_free(driver);
}

Test(ownership, writes_behind_a_drop_find_no_owner_and_an_activate_behind_it_does)
{
    struct driver *driver = serving("k");
    struct model_call *drop = driver_submit(driver, driver_drop(driver, "k", DRIVER_EPOCH));
    struct model_call *set = driver_submit(driver, driver_set(driver, "k", "v", 0));
    struct model_call *activate =
        driver_submit(driver, driver_activate(driver, "k", DRIVER_EPOCH + 1));
    struct model_call *put = driver_data(driver, MODEL_CALL_PUT, "k", "w");

    put->request.data.header.epoch = DRIVER_EPOCH + 1;
    (void)driver_submit(driver, put);
    driver_commit(driver, STORE_COMMITTED);
    driver_finish_ok(driver, drop);
    driver_finish(driver, set, MODEL_REASON_NOT_OWNER);
    driver_commit_all(driver);
    driver_finish_ok(driver, activate);
    driver_finish_ok(driver, put);
    driver_free(driver);
}
