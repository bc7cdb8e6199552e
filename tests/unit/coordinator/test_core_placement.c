/*
 * Placement through the whole core: the course's cases under equitable load, and what happens when
 * a placement does not work out.
 */
#include "tests/unit/coordinator/driver.h"

TestSuite(core_placement, .fini = test_alloc_expect_none);

static struct driver d;
static struct driver_session s;

static void begin(const char *names)
{
    driver_init(&d);
    driver_restart(&d, false);
    for (const char *name = names; *name; name++) {
        char text[2] = {*name, '\0'};

        (void)driver_join(&d, text, 1);
    }
    s = driver_open(&d, "esi");
}

/* GET and SET. */
static void place(const char *key)
{
    cr_assert_eq(driver_get(&d, &s, key), MODEL_OUTCOME_DONE);
    driver_expect(driver_run(&d, &s, MODEL_STATEMENT_SET, key, "v"), MODEL_REASON_NONE);
}

static void expect_placed(const char *key, const char *owner)
{
    place(key);
    driver_expect_owner(&d, key, owner);
}

Test(core_placement, C1_six_new_keys_go_round)
{
    begin("ABC");
    expect_placed("k1", "A");
    expect_placed("k2", "B");
    expect_placed("k3", "C");
    expect_placed("k4", "A");
    expect_placed("k5", "B");
    expect_placed("k6", "C");
    driver_deinit(&d);
}

Test(core_placement, C2_a_second_set_stays_and_moves_no_cursor)
{
    begin("ABC");
    expect_placed("k1", "A");
    driver_expect(driver_run(&d, &s, MODEL_STATEMENT_SET, "k1", "w"), MODEL_REASON_NONE);
    driver_expect_owner(&d, "k1", "A");
    expect_placed("k2", "B");
    driver_deinit(&d);
}

Test(core_placement, C3_get_moves_no_cursor)
{
    begin("ABC");
    expect_placed("k1", "A");
    cr_assert_eq(driver_get(&d, &s, "x1"), MODEL_OUTCOME_DONE);
    cr_assert_eq(driver_get(&d, &s, "x2"), MODEL_OUTCOME_DONE);
    driver_expect_owner(&d, "x1", "");
    expect_placed("k2", "B");
    driver_deinit(&d);
}

Test(core_placement, C4_C35_a_newcomer_is_appended_and_waits_its_turn)
{
    begin("ABC");
    expect_placed("k1", "A");
    (void)driver_join(&d, "D", 1);
    expect_placed("k2", "B");
    expect_placed("k3", "C");
    expect_placed("k4", "D");
    expect_placed("k5", "A");
    driver_deinit(&d);
}

Test(core_placement, C5_who_has_left_is_skipped_and_keeps_its_place)
{
    uint64_t incarnation;

    begin("A");
    incarnation = driver_join(&d, "B", 1);
    (void)driver_join(&d, "C", 1);
    expect_placed("k1", "A");
    driver_leave(&d, "B", incarnation);
    expect_placed("k2", "C");
    (void)driver_join(&d, "B", 2);
    expect_placed("k3", "A");
    expect_placed("k4", "B");
    driver_deinit(&d);
}

Test(core_placement, C23_status_simulates_and_moves_no_cursor)
{
    begin("ABC");
    expect_placed("k1", "A");
    for (int i = 0; i < 5; i++) {
        struct model_call *call = driver_new_call(&d, MODEL_CALL_KEY_STATUS);

        call->request.key_status.key = RT_BYTES_LITERAL("new");
        driver_submit(&d, call);
        driver_expect(driver_reason(call), MODEL_REASON_NONE);
        cr_assert_not(call->response.key_status.known);
        cr_assert_str_eq(call->response.key_status.would_place, "B");
        (void)driver_free_call(call);
    }
    expect_placed("new", "B");
    driver_deinit(&d);
}

Test(core_placement, C24_without_instances_the_key_stays_unplaced)
{
    begin("");
    cr_assert_eq(driver_get(&d, &s, "k"), MODEL_OUTCOME_DONE);
    driver_expect(driver_run(&d, &s, MODEL_STATEMENT_SET, "k", "v"), MODEL_REASON_NO_INSTANCE);
    driver_expect_owner(&d, "k", "");
    (void)driver_join(&d, "A", 1);
    driver_expect(driver_run(&d, &s, MODEL_STATEMENT_SET, "k", "v"), MODEL_REASON_NONE);
    driver_expect_owner(&d, "k", "A");
    driver_deinit(&d);
}

Test(core_placement, the_cursor_survives_a_restart)
{
    begin("ABC");
    expect_placed("k1", "A");
    driver_restart(&d, false);
    expect_placed("k2", "B");
    driver_deinit(&d);
}

Test(core_placement, placements_under_way_are_spread_too)
{
    struct model_call *calls[3];
    struct driver_session others[3];

    begin("ABC");
    d.auto_answer = false;
    for (int i = 0; i < 3; i++) {
        char name[3] = {'k', (char)('0' + i), '\0'};

        others[i] = driver_open(&d, name);
        cr_assert_eq(driver_get(&d, &others[i], name), MODEL_OUTCOME_DONE);
        calls[i] = driver_execute(&d, &others[i], MODEL_STATEMENT_SET, name, "v");
        cr_assert_not(driver_is_answered(calls[i]));
    }
    d.auto_answer = true;
    driver_settle(&d);
    for (int i = 0; i < 3; i++) {
        char owner[2] = {(char)('A' + i), '\0'};

        driver_expect(driver_reason(calls[i]), MODEL_REASON_NONE);
        cr_assert_str_eq(calls[i]->response.execute.instance, owner);
        (void)driver_free_call(calls[i]);
    }
    driver_deinit(&d);
}

/* The later of two ends first: the next key goes behind it, not again behind the earlier one. */
Test(core_placement, placements_that_end_out_of_order_are_spread_too)
{
    struct driver_session other;
    struct model_call *late;

    begin("ABC");
    other = driver_open(&d, "other");
    cr_assert_eq(driver_get(&d, &other, "k1"), MODEL_OUTCOME_DONE);
    d.silent = "A";
    late = driver_execute(&d, &other, MODEL_STATEMENT_SET, "k1", "v");
    expect_placed("k2", "B");
    cr_assert_not(driver_is_answered(late));
    expect_placed("k3", "C");
    d.silent = NULL;
    driver_sleep_ms(&d, 2000);
    driver_expect(driver_reason(late), MODEL_REASON_NONE);
    driver_expect_owner(&d, "k1", "A");
    expect_placed("k4", "A");
    (void)driver_free_call(late);
    driver_deinit(&d);
}

/* ---- rule 20: first placement and size ------------------------------------------------------- */

static const char big[] = "a value of more than sixty bytes that does not fit into any instance";

Test(core_placement, rule20_no_entries_leaves_the_key_unplaced_and_the_cursor)
{
    begin("AB");
    cr_assert_eq(driver_get(&d, &s, "k"), MODEL_OUTCOME_DONE);
    driver_expect(driver_run(&d, &s, MODEL_STATEMENT_SET, "k", big), MODEL_REASON_NO_ENTRIES);
    driver_expect_owner(&d, "k", "");
    cr_assert_eq(driver_get(&d, &s, "k"), MODEL_OUTCOME_DONE, "still locked by the caller");
    expect_placed("k2", "A");
    driver_deinit(&d);
}

Test(core_placement, rule20_no_entries_leaves_no_key_that_was_not_there)
{
    driver_init(&d);
    d.config.locking = MODEL_LOCKING_NONE;
    driver_restart(&d, false);
    (void)driver_join(&d, "A", 1);
    s = driver_open(&d, "esi");
    driver_expect(driver_run(&d, &s, MODEL_STATEMENT_PUT, "k", big), MODEL_REASON_NO_ENTRIES);
    driver_expect_owner(&d, "k", "?");
    driver_expect(driver_run(&d, &s, MODEL_STATEMENT_SET, "k", "v"), MODEL_REASON_NONE);
    driver_expect_owner(&d, "k", "A");
    driver_deinit(&d);
}

/* ---- rule 6: Activate that is not acked ------------------------------------------------------ */

Test(core_placement, rule6_an_unanswered_activate_is_repeated_at_the_same_epoch)
{
    struct model_call *call;
    struct model_call *activate;
    uint64_t epoch;

    begin("AB");
    cr_assert_eq(driver_get(&d, &s, "k"), MODEL_OUTCOME_DONE);
    d.auto_answer = false;
    call = driver_execute(&d, &s, MODEL_STATEMENT_SET, "k", "v");
    activate = driver_find_call(&d, MODEL_CALL_ACTIVATE);
    epoch = activate->request.activate.row.epoch;
    cr_assert_str_eq(activate->address, "A");
    cr_assert(activate->request.activate.row.locked);
    cr_assert_eq(activate->request.activate.value_size, 1);
    driver_lose(&d, activate);
    driver_sleep_ms(&d, 30);
    activate = driver_find_call(&d, MODEL_CALL_ACTIVATE);
    cr_assert_eq(activate->request.activate.row.epoch, epoch);
    cr_assert_str_eq(activate->address, "A");
    d.auto_answer = true;
    driver_settle(&d);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    cr_assert_eq(call->response.execute.epoch, epoch);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_placement, rule6_out_of_time_nothing_was_applied_and_the_next_statement_goes_on)
{
    struct model_call *call;

    begin("AB");
    cr_assert_eq(driver_get(&d, &s, "k"), MODEL_OUTCOME_DONE);
    d.silent = "A";
    call = driver_execute(&d, &s, MODEL_STATEMENT_SET, "k", "v");
    for (int i = 0; i < 500 && !driver_is_answered(call); i++) {
        driver_keep_alive(&d, &s);
        for (uint64_t incarnation = 1; incarnation < 8; incarnation++) {
            (void)driver_renew(&d, "A", incarnation);
            (void)driver_renew(&d, "B", incarnation);
        }
        driver_sleep_ms(&d, 10);
    }
    driver_expect(driver_reason(call), MODEL_REASON_OWNER_UNREACHABLE);
    cr_assert_eq(call->response.error.applied, MODEL_APPLIED_NO);
    (void)driver_free_call(call);
    d.silent = NULL;
    driver_expect(driver_run(&d, &s, MODEL_STATEMENT_SET, "k", "v"), MODEL_REASON_NONE);
    driver_expect_owner(&d, "k", "A");
    driver_deinit(&d);
}

Test(core_placement, rule6_a_dead_owner_of_a_placing_key_is_replaced_at_a_fresh_epoch)
{
    struct model_call *call;
    struct model_call *activate;
    uint64_t epoch;
    uint64_t incarnation;

    begin("");
    incarnation = driver_join(&d, "A", 1);
    (void)driver_join(&d, "B", 1);
    cr_assert_eq(driver_get(&d, &s, "k"), MODEL_OUTCOME_DONE);
    d.auto_answer = false;
    call = driver_execute(&d, &s, MODEL_STATEMENT_SET, "k", "v");
    activate = driver_find_call(&d, MODEL_CALL_ACTIVATE);
    epoch = activate->request.activate.row.epoch;
    driver_leave(&d, "A", incarnation);
    driver_lose(&d, activate);
    d.auto_answer = true;
    driver_sleep_ms(&d, 30);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    cr_assert_gt(call->response.execute.epoch, epoch);
    cr_assert_str_eq(call->response.execute.instance, "B");
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_placement, a_placing_row_is_activated_again_after_a_restart)
{
    struct model_call *call;

    begin("AB");
    cr_assert_eq(driver_get(&d, &s, "k"), MODEL_OUTCOME_DONE);
    d.auto_answer = false;
    call = driver_execute(&d, &s, MODEL_STATEMENT_SET, "k", "v");
    cr_assert_not_null(driver_find_call(&d, MODEL_CALL_ACTIVATE));
    driver_restart(&d, false);
    d.auto_answer = true;
    d.n_sent[MODEL_CALL_ACTIVATE] = 0;
    cr_assert_eq(driver_get(&d, &s, "k"), MODEL_OUTCOME_DONE);
    cr_assert_eq(d.n_sent[MODEL_CALL_ACTIVATE], 1);
    cr_assert_eq(d.n_sent[MODEL_CALL_FENCE], 1);
    driver_expect(driver_run(&d, &s, MODEL_STATEMENT_SET, "k", "v"), MODEL_REASON_NONE);
    driver_expect_owner(&d, "k", "A");
    (void)driver_free_call(call);
    driver_deinit(&d);
}

/* ---- rule 3: what may be forgotten ----------------------------------------------------------- */

Test(core_placement, rule3_maybe_stored_is_durable_before_a_store_is_forwarded)
{
    struct model_call *call;

    begin("A");
    place("k");
    d.auto_commit = false;
    call = driver_execute(&d, &s, MODEL_STATEMENT_STORE, "k", NULL);
    cr_assert_eq(d.n_sent[MODEL_CALL_STORE], 0);
    driver_commit(&d, STORE_COMMITTED);
    cr_assert_eq(d.n_sent[MODEL_CALL_STORE], 1);
    cr_assert_not(driver_is_answered(call), "the release is not durable");
    driver_commit(&d, STORE_COMMITTED);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    cr_assert(call->response.execute.data.stored);
    cr_assert_eq(driver_n_txns(&d), 0);
    (void)driver_free_call(call);
    driver_deinit(&d);
}
