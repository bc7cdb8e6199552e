/*
 * Reconcile: quarantine, verdicts, batches, and beginning again; and the pulling of single rows.
 */
#include <stdio.h>

#include "instance/limits.h"
#include "tests/unit/instance/driver.h"

TestSuite(reconcile, .fini = test_alloc_expect_none);

static struct driver *serving(const char *key)
{
    struct driver *driver = driver_new();

    driver_serve(driver);
    driver_place(driver, key);
    return driver;
}

Test(reconcile, what_is_not_named_is_kept_and_not_served)
{
    struct driver *driver = serving("k");
    struct model_call *call;

    driver_place(driver, "other");
    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_PUT, "k", "v"));
    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_PUT, "other", "w"));
    driver_tell(driver, "k", DRIVER_EPOCH);
    driver_serve(driver);
    cr_assert_eq(driver->n_held, 2);
    driver_expect_value(driver, "k", "v");
    call = driver_data(driver, MODEL_CALL_READ, "other", NULL);
    call->request.data.consistency = MODEL_READ_STALE_OK;
    driver_expect(driver, call, MODEL_REASON_NOT_OWNER);
    call = driver_submit(driver, model_call_new(MODEL_CALL_INSTANCE_STATUS));
    cr_assert_eq(call->response.instance_status.n_quarantined, 1);
    cr_assert_eq(call->response.instance_status.entries_free, 9, "its entries are free again");
    driver_finish_ok(driver, call);
    cr_assert_not_null(driver_find(driver, "other/v"));
    driver_tell(driver, "other", DRIVER_EPOCH);
    driver_serve(driver);
    driver_expect_value(driver, "other", "w");
    driver_free(driver);
}

Test(reconcile, rows_told_but_not_held)
{
    struct driver *driver = driver_new();
    struct model_call *call;

    driver_tell(driver, "lost", DRIVER_EPOCH);
    driver->told[0].key_lost = true;
    driver_tell(driver, "sets", DRIVER_EPOCH);
    driver->told[1].sets_lost = true;
    driver_tell(driver, "new", DRIVER_EPOCH);
    driver_serve(driver);
    driver_expect(driver, driver_data(driver, MODEL_CALL_READ, "lost", NULL),
                  MODEL_REASON_KEY_LOST);
    call = driver_submit(driver, driver_data(driver, MODEL_CALL_READ, "sets", NULL));
    cr_assert(call->response.data.sets_lost);
    driver_finish_ok(driver, call);
    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_PUT, "new", "v"));
    cr_assert_not_null(driver_find(driver, "new/r"));
    driver_free(driver);
}

Test(reconcile, a_row_told_but_not_held_is_held_at_the_next_start)
{
    struct driver *driver = driver_new();
    struct model_call *call;

    driver_tell(driver, "k", DRIVER_EPOCH);
    driver->told[0].sets_lost = true;
    driver_serve(driver);
    driver->told[0].sets_lost = false;
    driver_serve(driver);
    cr_assert_eq(driver->n_held, 1);
    call = driver_submit(driver, driver_data(driver, MODEL_CALL_READ, "k", NULL));
    cr_assert(call->response.data.sets_lost, "nobody was told yet");
    driver_finish_ok(driver, call);
    driver_free(driver);
}

Test(reconcile, a_told_row_is_served_also_when_it_cannot_be_written_yet)
{
    struct driver *driver = driver_new();
    struct model_call *call;

    driver_boot(driver);
    driver_register(driver);
    driver_tell(driver, "k", DRIVER_EPOCH);
    driver->told[0].sets_lost = true;
    call = driver_outbound(driver, MODEL_CALL_RECONCILE);
    model_response_ok(&call->response, MODEL_CALL_RECONCILE);
    call->response.reconcile.rows = driver->told;
    call->response.reconcile.n_rows = 1;
    call->response.reconcile.done = true;
    driver_answer(driver, call);
    driver_commit(driver, STORE_FULL);
    driver_renew(driver);
    call = driver_submit(driver, driver_data(driver, MODEL_CALL_READ, "k", NULL));
    cr_assert(call->response.data.sets_lost);
    driver_finish_ok(driver, call);
    driver_expect_ok(driver, driver_set(driver, "k", "v", 0));
    driver_free(driver);
}

Test(reconcile, a_lost_key_stays_lost_through_a_release_and_a_restart)
{
    struct driver *driver = driver_new();

    driver_tell(driver, "k", DRIVER_EPOCH);
    driver->told[0].key_lost = true;
    driver_serve(driver);
    driver_expect_ok(driver, driver_fence(driver, "k", 60, false));
    driver->told[0].key_lost = false;
    driver_serve(driver);
    cr_assert_eq(driver->n_held, 1);
    driver_expect(driver, driver_data(driver, MODEL_CALL_READ, "k", NULL), MODEL_REASON_KEY_LOST);
    driver_free(driver);
}

Test(reconcile, a_row_told_at_another_epoch_begins_anew)
{
    struct driver *driver = serving("k");
    struct model_call *call;

    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_PUT, "k", "old"));
    driver_tell(driver, "k", DRIVER_EPOCH + 1);
    driver_serve(driver);
    driver_expect(driver, driver_data(driver, MODEL_CALL_READ, "k", NULL),
                  MODEL_REASON_STALE_EPOCH);
    call = driver_data(driver, MODEL_CALL_READ, "k", NULL);
    call->request.data.header.epoch = DRIVER_EPOCH + 1;
    (void)driver_submit(driver, call);
    cr_assert_not(call->response.data.has_value);
    driver_finish_ok(driver, call);
    call = driver_set(driver, "k", "new", 0);
    call->request.data.header.epoch = DRIVER_EPOCH + 1;
    driver_expect_ok(driver, call);
    cr_assert_null(driver_find(driver, "k/v"));
    driver_free(driver);
}

/* The row on disk is of the earlier epoch: that it is dirty says nothing about the new one. */
Test(reconcile, a_set_under_another_epoch_is_marked_under_that_epoch)
{
    struct driver *driver = serving("k");
    struct model_call *call;

    driver_expect_ok(driver, driver_set(driver, "k", "old", 0));
    driver_tell(driver, "k", DRIVER_EPOCH + 1);
    driver_serve(driver);
    call = driver_set(driver, "k", "new", 0);
    call->request.data.header.epoch = DRIVER_EPOCH + 1;
    (void)driver_submit(driver, call);
    cr_assert_not(driver_is_answered(driver, call));
    cr_assert_eq(driver_n_txns(driver), 1);
    driver_commit_all(driver);
    driver_finish_ok(driver, call);

    driver_boot(driver);
    driver_serve(driver);
    call = driver_data(driver, MODEL_CALL_READ, "k", NULL);
    call->request.data.header.epoch = DRIVER_EPOCH + 1;
    (void)driver_submit(driver, call);
    cr_assert(call->response.data.sets_lost);
    driver_finish_ok(driver, call);
    driver_free(driver);
}

Test(reconcile, locks_are_as_told)
{
    struct driver *driver = serving("k");

    driver_tell(driver, "k", DRIVER_EPOCH);
    driver->told[0].locking = MODEL_LOCKING_REQUIRED;
    driver->told[0].token_floor = 77;
    driver->told[0].locked = true;
    driver_serve(driver);
    driver_expect(driver, driver_set(driver, "k", "v", 0), MODEL_REASON_KEY_NOT_LOCKED);
    driver_expect(driver, driver_set(driver, "k", "v", 76), MODEL_REASON_LOCK_FENCED);
    driver_expect_ok(driver, driver_set(driver, "k", "v", 77));
    driver_free(driver);
}

/* ---- batches ---- */

static void answer_part(struct driver *driver, uint64_t part, size_t n_rows, bool last, bool done)
{
    struct model_call *call = driver_outbound(driver, MODEL_CALL_RECONCILE);

    cr_assert_eq(call->request.reconcile.part, part);
    cr_assert_eq(call->request.reconcile.n_rows, n_rows);
    cr_assert_eq(call->request.reconcile.last, last);
    model_response_ok(&call->response, MODEL_CALL_RECONCILE);
    call->response.reconcile.done = done;
    driver_answer(driver, call);
}

static struct driver *with_keys(int n)
{
    struct driver *driver = driver_new();
    char key[16];

    driver_serve(driver);
    for (int i = 0; i < n; i++) {
        (void)snprintf(key, sizeof(key), "k%d", i);
        driver_place(driver, key);
    }
    driver_boot(driver);
    driver_register(driver);
    return driver;
}

Test(reconcile, one_part_holds_512_rows)
{
    struct driver *driver = with_keys(512);

    answer_part(driver, 0, 512, true, true);
    driver_renew(driver);
    driver_free(driver);
}

Test(reconcile, row_513_needs_another_part)
{
    struct driver *driver = with_keys(513);

    answer_part(driver, 0, 512, false, false);
    answer_part(driver, 1, 1, true, false);
    cr_assert_not(driver_has_outbound(driver, MODEL_CALL_RECONCILE), "no rows came: not at once");
    driver->env.now_us = inst_core_next_wakeup_us(driver->core);
    driver_tick(driver);
    answer_part(driver, 2, 0, true, true);
    driver_renew(driver);
    driver_free(driver);
}

Test(reconcile, a_part_that_fails_is_sent_again_then_registration)
{
    struct driver *driver = with_keys(1);

    for (int i = 0; i < 5; i++) {
        driver_answer_fail(driver, driver_outbound(driver, MODEL_CALL_RECONCILE),
                           MODEL_REASON_NOT_SERVING);
        driver->env.now_us = inst_core_next_wakeup_us(driver->core);
        driver_tick(driver);
    }
    driver_register(driver);
    answer_part(driver, 0, 1, true, true);
    driver_renew(driver);
    driver_free(driver);
}

Test(reconcile, a_refused_part_or_a_new_term_begins_again)
{
    struct driver *driver = with_keys(1);
    struct model_call *call;

    driver_answer_fail(driver, driver_outbound(driver, MODEL_CALL_RECONCILE),
                       MODEL_REASON_INVALID_FIELD);
    driver->env.now_us = inst_core_next_wakeup_us(driver->core);
    driver_tick(driver);
    driver_register(driver);
    driver->term++;
    call = driver_outbound(driver, MODEL_CALL_RECONCILE);
    model_response_ok(&call->response, MODEL_CALL_RECONCILE);
    call->response.reconcile.done = true;
    driver_answer(driver, call);
    driver_register(driver);
    answer_part(driver, 0, 1, true, true);
    driver_renew(driver);
    driver_free(driver);
}

Test(reconcile, an_answer_to_an_earlier_attempt_is_ignored)
{
    struct driver *driver = with_keys(1);
    struct model_call *late = driver_outbound(driver, MODEL_CALL_RECONCILE);

    inst_core_leave(driver->core);
    driver_take(driver);
    model_response_ok(&late->response, MODEL_CALL_RECONCILE);
    late->response.reconcile.done = true;
    driver_answer(driver, late);
    cr_assert_eq(inst_core_state(driver->core), INST_STATE_LEAVING);
    driver_free(driver);
}

Test(reconcile, no_memory_for_a_told_row)
{
    struct driver *driver = driver_new();
    struct model_call *call;

    driver_boot(driver);
    driver_register(driver);
    driver_tell(driver, "k", DRIVER_EPOCH);
    call = driver_outbound(driver, MODEL_CALL_RECONCILE);
    model_response_ok(&call->response, MODEL_CALL_RECONCILE);
    call->response.reconcile.rows = driver->told;
    call->response.reconcile.n_rows = 1;
    call->response.reconcile.done = true;
    test_alloc_fail_after(0, 1);
    driver_answer(driver, call);
    test_alloc_fail_never();
    cr_assert_eq(inst_core_state(driver->core), INST_STATE_STARTING);
    driver->env.now_us = inst_core_next_wakeup_us(driver->core);
    driver_tick(driver);
    driver_reconcile(driver);
    driver_renew(driver);
    driver_expect_value(driver, "k", NULL);
    driver_free(driver);
}

/* ---- pulls ---- */

static void answer_pull(struct driver *driver, struct model_row *rows, size_t n_rows)
{
    struct model_call *call = driver_outbound(driver, MODEL_CALL_PULL_ROWS);

    cr_assert_eq(call->request.pull_rows.n_keys, 1);
    model_response_ok(&call->response, MODEL_CALL_PULL_ROWS);
    call->response.pull_rows.rows = rows;
    call->response.pull_rows.n_rows = n_rows;
    driver_answer(driver, call);
}

Test(reconcile, a_newer_epoch_is_asked_for_once)
{
    struct driver *driver = serving("k");
    struct model_row row = {.key = RT_BYTES_LITERAL("k"), .epoch = DRIVER_EPOCH + 1};
    struct model_call *first = driver_set(driver, "k", "v", 0);
    struct model_call *second = driver_set(driver, "k", "w", 0);

    first->request.data.header.epoch = DRIVER_EPOCH + 1;
    second->request.data.header.epoch = DRIVER_EPOCH + 2;
    (void)driver_submit(driver, first);
    (void)driver_submit(driver, second);
    answer_pull(driver, &row, 1);
    cr_assert_not(driver_has_outbound(driver, MODEL_CALL_PULL_ROWS));
    driver_commit_all(driver);
    driver_finish_ok(driver, first);
    driver_finish(driver, second, MODEL_REASON_EPOCH_AHEAD);
    driver_free(driver);
}

Test(reconcile, a_pull_that_knows_nothing_or_fails)
{
    struct driver *driver = serving("k");

    for (int fails = 0; fails < 2; fails++) {
        struct model_call *call = driver_set(driver, "k", "v", 0);

        call->request.data.header.epoch = DRIVER_EPOCH + 1;
        (void)driver_submit(driver, call);
        if (fails)
            driver_answer_fail(driver, driver_outbound(driver, MODEL_CALL_PULL_ROWS),
                               MODEL_REASON_NOT_SERVING);
        else
            answer_pull(driver, NULL, 0);
        cr_assert_eq(call->response.error.current_epoch, DRIVER_EPOCH);
        cr_assert_gt(call->response.error.retry_after_ms, 0);
        driver_finish(driver, call, MODEL_REASON_EPOCH_AHEAD);
    }
    driver_free(driver);
}

Test(reconcile, a_pull_is_waited_for_50_ms_and_its_late_answer_still_counts)
{
    struct driver *driver = serving("k");
    struct model_row row = {
        .key = RT_BYTES_LITERAL("k"), .epoch = DRIVER_EPOCH, .token_floor = 60, .locked = true};
    struct model_call *call = driver_submit(driver, driver_set(driver, "k", "v", 60));

    cr_assert_eq(inst_core_next_wakeup_us(driver->core), driver->env.now_us + 50000);
    test_env_advance_us(&driver->env, 49999);
    driver_tick(driver);
    cr_assert_not(driver_is_answered(driver, call));
    test_env_advance_us(&driver->env, 1);
    driver_tick(driver);
    driver_finish(driver, call, MODEL_REASON_TOKEN_AHEAD);
    answer_pull(driver, &row, 1);
    driver_expect_ok(driver, driver_set(driver, "k", "v", 60));
    driver_expect(driver, driver_set(driver, "k", "v", 0), MODEL_REASON_KEY_NOT_LOCKED);
    driver_free(driver);
}

Test(reconcile, cancelled_and_late_while_pulling)
{
    struct driver *driver = serving("k");
    struct model_call *cancelled = driver_submit(driver, driver_set(driver, "k", "v", 60));
    struct model_call *late = driver_set(driver, "k", "v", 60);

    late->deadline_us = driver->env.now_us + 10;
    (void)driver_submit(driver, late);
    inst_core_cancel(driver->core, cancelled);
    driver_take(driver);
    driver_finish(driver, cancelled, MODEL_REASON_CANCELLED);
    test_env_advance_us(&driver->env, 10);
    driver_tick(driver);
    driver_finish(driver, late, MODEL_REASON_DEADLINE_EXCEEDED);
    answer_pull(driver, NULL, 0);
    driver_free(driver);
}

Test(reconcile, pulls_at_the_limit_and_one_past_it)
{
    struct driver *driver = driver_new();
    static char keys[INST_PULLS_MAX + 1][8];
    static struct model_call *calls[INST_PULLS_MAX];

    driver_serve(driver);
    for (size_t i = 0; i <= INST_PULLS_MAX; i++) {
        struct model_call *call;

        (void)snprintf(keys[i], sizeof(keys[i]), "k%zu", i);
        driver_place(driver, keys[i]);
        call = driver_submit(driver, driver_set(driver, keys[i], "v", 60));
        cr_assert_eq(driver_is_answered(driver, call), i == INST_PULLS_MAX);
        if (i == INST_PULLS_MAX)
            driver_finish(driver, call, MODEL_REASON_TOKEN_AHEAD);
        else
            calls[i] = call;
    }
    test_env_advance_us(&driver->env, 50000);
    driver_tick(driver);
    for (size_t i = 0; i < INST_PULLS_MAX; i++)
        driver_finish(driver, calls[i], MODEL_REASON_TOKEN_AHEAD);
    driver_free(driver);
}

Test(reconcile, no_memory_to_wait_for_a_pull)
{
    struct driver *driver = serving("k");

    test_alloc_fail_after(0, 1);
    driver_expect(driver, driver_set(driver, "k", "v", 60), MODEL_REASON_TOKEN_AHEAD);
    test_alloc_fail_never();
    driver_free(driver);
}

Test(reconcile, a_core_that_is_freed_leaves_only_the_callers_calls)
{
    struct driver *driver = serving("k");
    struct model_call *put;
    struct model_call *waiting;
    struct model_call *pulling;

    driver_place(driver, "l");
    pulling = driver_submit(driver, driver_set(driver, "l", "v", 60));
    put = driver_submit(driver, driver_data(driver, MODEL_CALL_PUT, "k", "v"));
    waiting = driver_submit(driver, driver_set(driver, "k", "v", 0));
    driver_free(driver);
    (void)model_call_free(pulling);
    (void)model_call_free(put);
    (void)model_call_free(waiting);
    cr_assert_null(inst_core_free(NULL));
}
