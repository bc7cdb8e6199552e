/*
 * The rules of distribution through the whole core: what instances report, what is on its way to
 * them, who joins, and the rule that an operator changes while it runs.
 */
#include "tests/unit/coordinator/driver.h"

TestSuite(core_distribution, .fini = test_alloc_expect_none);

static struct driver d;
static struct driver_session s;

static void begin(enum model_distribution distribution, const char *names)
{
    driver_init(&d);
    d.config.distribution = distribution;
    driver_restart(&d, false);
    for (const char *name = names; *name; name++) {
        char text[2] = {*name, '\0'};

        (void)driver_join(&d, text, 1);
    }
    s = driver_open(&d, "esi");
}

static void set(const char *key, const char *value)
{
    cr_assert_eq(driver_get(&d, &s, key), MODEL_OUTCOME_DONE);
    driver_expect(driver_run(&d, &s, MODEL_STATEMENT_SET, key, value), MODEL_REASON_NONE);
}

static void expect_placed(const char *key, const char *value, const char *owner)
{
    set(key, value);
    driver_expect_owner(&d, key, owner);
}

static void expect_would_place(const char *key, const char *name)
{
    struct model_call *call = driver_new_call(&d, MODEL_CALL_KEY_STATUS);

    call->request.key_status.key = rt_bytes_of_string(key);
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    cr_assert_str_eq(call->response.key_status.would_place, name);
    (void)driver_free_call(call);
}

static struct model_call *say(enum model_distribution distribution)
{
    struct model_call *call = driver_new_call(&d, MODEL_CALL_SET_DISTRIBUTION);

    call->request.distribution.distribution = distribution;
    driver_submit(&d, call);
    return call;
}

static enum model_reason change(enum model_distribution distribution)
{
    struct model_call *call = say(distribution);
    enum model_reason reason = driver_reason(call);

    if (reason == MODEL_REASON_NONE)
        cr_assert_eq(call->response.distribution.distribution, distribution);
    (void)driver_free_call(call);
    return reason;
}

static void expect_holds(enum model_distribution distribution)
{
    struct model_call *call = driver_new_call(&d, MODEL_CALL_GET_DISTRIBUTION);

    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    cr_assert_eq(call->response.distribution.distribution, distribution);
    cr_assert_eq(call->response.distribution.configured, d.config.distribution);
    (void)driver_free_call(call);
}

#define BYTES_30 "123456789 123456789 123456789 "
#define BYTES_50 BYTES_30 "123456789 123456789 "

/* ---- least space used ------------------------------------------------------------------------ */

Test(core_distribution, C7_free_entries_5_9_7)
{
    begin(MODEL_DISTRIBUTION_EQUITABLE_LOAD, "");
    d.entries_total = 10;
    (void)driver_join(&d, "A", 1);
    (void)driver_join(&d, "B", 1);
    (void)driver_join(&d, "C", 1);
    expect_placed("a", BYTES_50, "A");
    expect_placed("b", "1", "B");
    expect_placed("c", BYTES_30, "C");
    driver_expect(change(MODEL_DISTRIBUTION_LEAST_SPACE_USED), MODEL_REASON_NONE);
    expect_would_place("new", "B");
    expect_placed("new", "1", "B");
    expect_placed("newer", "1", "B");
    driver_deinit(&d);
}

Test(core_distribution, C8_all_empty_then_one_entry_each)
{
    begin(MODEL_DISTRIBUTION_LEAST_SPACE_USED, "ABC");
    expect_placed("k1", "1", "A");
    expect_placed("k2", "1", "B");
    expect_placed("k3", "1", "C");
    expect_placed("k4", "1", "A");
    driver_deinit(&d);
}

Test(core_distribution, C9_all_full_goes_round)
{
    begin(MODEL_DISTRIBUTION_LEAST_SPACE_USED, "");
    d.entries_total = 1;
    (void)driver_join(&d, "A", 1);
    (void)driver_join(&d, "B", 1);
    expect_placed("k1", "1", "A");
    expect_placed("k2", "1", "B");
    expect_placed("k3", "1", "A");
    expect_placed("k4", "1", "B");
    driver_deinit(&d);
}

Test(core_distribution, C10_store_changes_no_free_entries)
{
    begin(MODEL_DISTRIBUTION_LEAST_SPACE_USED, "AB");
    expect_placed("k1", "1", "A");
    driver_expect(driver_run(&d, &s, MODEL_STATEMENT_STORE, "k1", NULL), MODEL_REASON_NONE);
    expect_would_place("new", "B");
    expect_placed("k2", "1", "B");
    driver_expect(driver_run(&d, &s, MODEL_STATEMENT_STORE, "k2", NULL), MODEL_REASON_NONE);
    expect_would_place("new", "A");
    driver_deinit(&d);
}

Test(core_distribution, LSU_every_answer_reports)
{
    begin(MODEL_DISTRIBUTION_LEAST_SPACE_USED, "AB");
    expect_placed("k1", "1", "A");
    expect_placed("k2", "1", "B");
    driver_expect(driver_run(&d, &s, MODEL_STATEMENT_SET, "k1", BYTES_50), MODEL_REASON_NONE);
    expect_would_place("new", "B");
    driver_expect(driver_run(&d, &s, MODEL_STATEMENT_SET, "k1", "1"), MODEL_REASON_NONE);
    driver_expect(driver_run(&d, &s, MODEL_STATEMENT_SET, "k2", BYTES_30), MODEL_REASON_NONE);
    expect_would_place("new", "A");
    driver_deinit(&d);
}

/* What an instance said in an earlier life counts for nothing. */
Test(core_distribution, LSU_a_late_answer_of_an_earlier_life_reports_nothing)
{
    struct model_call *late;

    begin(MODEL_DISTRIBUTION_LEAST_SPACE_USED, "AB");
    expect_placed("k1", "1", "A");
    d.auto_answer = false;
    late = driver_execute(&d, &s, MODEL_STATEMENT_SET, "k1", BYTES_50);
    cr_assert_not_null(driver_find_call(&d, MODEL_CALL_SET));
    d.keys[0].value[0] = '\0';
    (void)driver_join(&d, "A", 2);
    cr_assert_eq(d.keys[0].has_value, true);
    {
        struct model_call *call = driver_find_call(&d, MODEL_CALL_SET);

        model_response_ok(&call->response, MODEL_CALL_SET);
        call->response.responder.incarnation = 1;
        rt_list_remove(&call->link);
        coord_core_call_done(d.core, call);
        driver_settle(&d);
    }
    expect_would_place("new", "B");
    (void)driver_free_call(late);
    driver_deinit(&d);
}

/* Of placements under way each counts with its size, so that they do not all go to one place. */
Test(core_distribution, LSU_values_on_their_way_count)
{
    struct driver_session others[3];
    struct model_call *calls[3];
    static const char *const values[] = {BYTES_50, "1", "1"};

    begin(MODEL_DISTRIBUTION_LEAST_SPACE_USED, "AB");
    d.auto_answer = false;
    for (int i = 0; i < 3; i++) {
        char name[3] = {'k', (char)('1' + i), '\0'};

        others[i] = driver_open(&d, name);
        cr_assert_eq(driver_get(&d, &others[i], name), MODEL_OUTCOME_DONE);
        calls[i] = driver_execute(&d, &others[i], MODEL_STATEMENT_SET, name, values[i]);
    }
    d.auto_answer = true;
    driver_settle(&d);
    driver_expect_owner(&d, "k1", "A");
    driver_expect_owner(&d, "k2", "B");
    driver_expect_owner(&d, "k3", "B");
    for (int i = 0; i < 3; i++) {
        driver_expect(driver_reason(calls[i]), MODEL_REASON_NONE);
        (void)driver_free_call(calls[i]);
    }
    driver_deinit(&d);
}

Test(core_distribution, LSU_a_placement_that_fails_counts_no_more)
{
    struct model_call *call;

    begin(MODEL_DISTRIBUTION_LEAST_SPACE_USED, "AB");
    cr_assert_eq(driver_get(&d, &s, "k"), MODEL_OUTCOME_DONE);
    d.auto_answer = false;
    call = driver_execute(&d, &s, MODEL_STATEMENT_SET, "k", BYTES_50);
    expect_would_place("new", "B");
    driver_refuse(&d, driver_find_call(&d, MODEL_CALL_ACTIVATE), MODEL_REASON_NO_ENTRIES);
    driver_expect(driver_reason(call), MODEL_REASON_NO_ENTRIES);
    expect_would_place("new", "A");
    (void)driver_free_call(call);
    driver_deinit(&d);
}

/* The value goes to the owner directly: until the owner speaks it counts as there. */
Test(core_distribution, LSU_a_route_given_out_counts)
{
    struct model_call *call;
    uint64_t incarnation;

    driver_init(&d);
    d.config.distribution = MODEL_DISTRIBUTION_LEAST_SPACE_USED;
    d.config.locking = MODEL_LOCKING_NONE;
    driver_restart(&d, false);
    incarnation = driver_join(&d, "A", 1);
    (void)driver_join(&d, "B", 1);
    call = driver_new_call(&d, MODEL_CALL_ROUTE);
    call->request.route.key = RT_BYTES_LITERAL("k");
    call->request.route.operation = MODEL_STATEMENT_PUT;
    call->request.route.value_size = 50;
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    cr_assert_str_eq(call->response.route.route.owner, "A");
    (void)driver_free_call(call);
    s = driver_open(&d, "esi");
    expect_placed("k1", "1", "B");
    expect_would_place("k2", "B");
    driver_expect(driver_renew(&d, "A", incarnation), MODEL_REASON_NONE);
    expect_would_place("k2", "A");
    driver_deinit(&d);
}

/* ---- key explicit ---------------------------------------------------------------------------- */

Test(core_distribution, C13_C16_C17_four_instances)
{
    static const char *const keys[] = {"a", "g", "h", "m", "n", "t", "u", "z"};
    static const char *const owners[] = {"A", "A", "B", "B", "C", "C", "D", "D"};

    begin(MODEL_DISTRIBUTION_KEY_EXPLICIT, "ABCD");
    for (size_t i = 0; i < RT_ARRAY_SIZE(keys); i++)
        expect_placed(keys[i], "v", owners[i]);
    expect_placed("Zeta", "v", "D");
    driver_expect_owner(&d, "zeta", "?");
    expect_placed("9x", "v", "A");
    expect_placed("\xc3\xb1u", "v", "D");
    driver_deinit(&d);
}

Test(core_distribution, C19_a_third_instance_moves_nothing)
{
    begin(MODEL_DISTRIBUTION_KEY_EXPLICIT, "AB");
    expect_placed("k", "v", "A");
    driver_expect(driver_run(&d, &s, MODEL_STATEMENT_STORE, "k", NULL), MODEL_REASON_NONE);
    (void)driver_join(&d, "C", 1);
    expect_placed("k", "w", "A");
    driver_expect(driver_run(&d, &s, MODEL_STATEMENT_STORE, "k", NULL), MODEL_REASON_NONE);
    expect_placed("kk", "v", "B");
    driver_deinit(&d);
}

Test(core_distribution, KE_who_has_left_has_no_range)
{
    uint64_t incarnation;

    begin(MODEL_DISTRIBUTION_KEY_EXPLICIT, "A");
    incarnation = driver_join(&d, "B", 1);
    (void)driver_join(&d, "C", 1);
    expect_placed("k1", "v", "B");
    driver_leave(&d, "B", incarnation);
    expect_placed("k2", "v", "A");
    (void)driver_join(&d, "B", 2);
    expect_placed("k3", "v", "B");
    driver_deinit(&d);
}

Test(core_distribution, KE_ceil_is_an_option)
{
    driver_init(&d);
    d.config.distribution = MODEL_DISTRIBUTION_KEY_EXPLICIT;
    d.config.ranges = COORD_RANGES_CEIL;
    driver_restart(&d, false);
    (void)driver_join(&d, "A", 1);
    (void)driver_join(&d, "B", 1);
    (void)driver_join(&d, "C", 1);
    (void)driver_join(&d, "D", 1);
    s = driver_open(&d, "esi");
    expect_placed("n", "v", "B");
    driver_deinit(&d);
}

/* D4: whatever the rule is, a placement moves the one cursor. */
Test(core_distribution, D4_one_cursor_for_all_rules)
{
    begin(MODEL_DISTRIBUTION_KEY_EXPLICIT, "ABC");
    expect_placed("k", "v", "B");
    driver_expect(change(MODEL_DISTRIBUTION_EQUITABLE_LOAD), MODEL_REASON_NONE);
    expect_placed("l", "v", "C");
    driver_expect(change(MODEL_DISTRIBUTION_LEAST_SPACE_USED), MODEL_REASON_NONE);
    expect_placed("m", "v", "A");
    driver_expect(change(MODEL_DISTRIBUTION_EQUITABLE_LOAD), MODEL_REASON_NONE);
    expect_placed("o", "v", "B");
    driver_deinit(&d);
}

/* ---- at run time ----------------------------------------------------------------------------- */

Test(core_distribution, an_operators_word_survives_restarts)
{
    begin(MODEL_DISTRIBUTION_EQUITABLE_LOAD, "AB");
    expect_holds(MODEL_DISTRIBUTION_EQUITABLE_LOAD);
    driver_expect(change(MODEL_DISTRIBUTION_KEY_EXPLICIT), MODEL_REASON_NONE);
    expect_holds(MODEL_DISTRIBUTION_KEY_EXPLICIT);
    driver_restart(&d, false);
    expect_holds(MODEL_DISTRIBUTION_KEY_EXPLICIT);
    cr_assert_geq(driver_n_events(&d, RT_LOG_INFO, "distribution"), 2);
    driver_deinit(&d);
}

Test(core_distribution, an_option_that_was_changed_since_is_newer)
{
    begin(MODEL_DISTRIBUTION_EQUITABLE_LOAD, "");
    driver_expect(change(MODEL_DISTRIBUTION_KEY_EXPLICIT), MODEL_REASON_NONE);
    d.config.distribution = MODEL_DISTRIBUTION_LEAST_SPACE_USED;
    driver_restart(&d, false);
    expect_holds(MODEL_DISTRIBUTION_LEAST_SPACE_USED);
    driver_deinit(&d);
}

Test(core_distribution, a_change_that_does_not_commit_does_not_hold)
{
    struct model_call *call;

    begin(MODEL_DISTRIBUTION_EQUITABLE_LOAD, "");
    d.auto_commit = false;
    call = say(MODEL_DISTRIBUTION_KEY_EXPLICIT);
    cr_assert_not(driver_is_answered(call));
    expect_holds(MODEL_DISTRIBUTION_EQUITABLE_LOAD);
    driver_commit(&d, STORE_FULL);
    driver_expect(driver_reason(call), MODEL_REASON_DISK_FULL);
    (void)driver_free_call(call);
    call = say(MODEL_DISTRIBUTION_KEY_EXPLICIT);
    driver_commit(&d, STORE_UNKNOWN);
    driver_expect(driver_reason(call), MODEL_REASON_STORE_ERROR);
    (void)driver_free_call(call);
    expect_holds(MODEL_DISTRIBUTION_EQUITABLE_LOAD);
    driver_expect(change(MODEL_DISTRIBUTION_KEY_EXPLICIT), MODEL_REASON_READ_ONLY);
    driver_deinit(&d);
}

/* The caller is gone before the commit: it holds all the same, nobody is told. */
Test(core_distribution, a_caller_that_goes_away)
{
    struct model_call *call;

    begin(MODEL_DISTRIBUTION_EQUITABLE_LOAD, "");
    d.auto_commit = false;
    call = say(MODEL_DISTRIBUTION_KEY_EXPLICIT);
    coord_core_cancel(d.core, call);
    d.auto_commit = true;
    driver_settle(&d);
    expect_holds(MODEL_DISTRIBUTION_KEY_EXPLICIT);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_distribution, what_no_rule_is_is_refused)
{
    begin(MODEL_DISTRIBUTION_EQUITABLE_LOAD, "");
    driver_expect(change(MODEL_N_DISTRIBUTIONS), MODEL_REASON_INVALID_FIELD);
    driver_deinit(&d);
}

Test(core_distribution, a_row_that_makes_no_sense_is_data_loss)
{
    static const uint8_t names[] = "distribution";
    struct rt_error err = RT_ERROR_INIT;
    uint8_t number[9] = {1};
    struct coord_core *core;

    driver_init(&d);
    core = coord_core_new(&d.config, &d.env.env);
    for (int i = 1; i <= 8; i++) {
        memset(number + 1, 0, 8);
        number[i] = MODEL_N_DISTRIBUTIONS;
        cr_assert_eq(coord_core_load(core, rt_bytes_of(names, sizeof(names) - 1),
                                     rt_bytes_of(number, sizeof(number)), &err),
                     RT_DATA_LOSS, "byte %d", i);
    }
    (void)coord_core_free(core);
    driver_deinit(&d);
}
