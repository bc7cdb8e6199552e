/*
 * Members through the whole core: registration, leases, death, the restart barrier, reconcile.
 * Lease 3 s: a member is dead 3.5 s after its last Renew.
 */
#include "tests/unit/coordinator/driver.h"

TestSuite(core_membership, .fini = test_alloc_expect_none);

static struct driver d;
static struct driver_session s;

static void begin(void)
{
    driver_init(&d);
    driver_restart(&d, false);
}

static enum model_reason finish(struct model_call *call)
{
    enum model_reason reason = driver_reason(call);

    (void)driver_free_call(call);
    return reason;
}

static enum model_member_state state_of(const char *name)
{
    struct model_call *call = driver_new_call(&d, MODEL_CALL_LIST_INSTANCES);
    enum model_member_state state = MODEL_MEMBER_JOINING;
    bool found = false;

    driver_submit(&d, call);
    for (size_t i = 0; i < call->response.list_instances.n_instances; i++) {
        const struct model_instance_info *info = &call->response.list_instances.instances[i];

        if (strcmp(info->name, name) != 0)
            continue;
        state = info->state;
        found = true;
    }
    cr_assert(found);
    (void)driver_free_call(call);
    return state;
}

/* Time passes with the session alive. */
static void sleep_ms(uint64_t ms)
{
    for (uint64_t i = 0; i < ms; i += 100) {
        driver_keep_alive(&d, &s);
        driver_sleep_ms(&d, 100);
    }
}

/* ---- Register -------------------------------------------------------------------------------- */

Test(core_membership, registering_again_with_the_same_boot_gives_the_same_answer)
{
    struct model_call *call;
    uint64_t incarnation;

    begin();
    call = driver_register(&d, "A", "A", 1);
    incarnation = call->response.reg.incarnation;
    cr_assert_eq(call->response.reg.lease_ms, 3000);
    cr_assert_eq(call->response.reg.key_max, MODEL_KEY_MAX_CLASSIC);
    cr_assert(model_id_equal(&call->response.reg.cluster_id, coord_core_cluster_id(d.core)));
    cr_assert_neq(call->response.responder.term, 0);
    (void)driver_free_call(call);
    call = driver_register(&d, "A", "A", 1);
    cr_assert_eq(call->response.reg.incarnation, incarnation);
    (void)driver_free_call(call);
    driver_restart(&d, false);
    call = driver_register(&d, "A", "A", 1);
    cr_assert_eq(call->response.reg.incarnation, incarnation);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_membership, C36_a_used_name_is_refused_and_the_first_is_untouched)
{
    struct model_call *call;
    uint64_t incarnation;

    begin();
    incarnation = driver_join(&d, "A", 1);
    call = driver_register(&d, "A", "other", 1);
    driver_expect(driver_reason(call), MODEL_REASON_NAME_IN_USE);
    cr_assert_eq(call->response.code, RT_ALREADY_EXISTS);
    cr_assert_geq(call->response.error.expires_in_ms, 3500);
    cr_assert_leq(call->response.error.expires_in_ms, 3501);
    (void)driver_free_call(call);
    driver_expect(driver_renew(&d, "A", incarnation), MODEL_REASON_NONE);
    cr_assert_eq(state_of("A"), MODEL_MEMBER_ALIVE);
    driver_deinit(&d);
}

/* A process or a data directory that was copied goes on as if nothing had happened. */
Test(core_membership, a_renew_of_another_process_or_store_is_refused)
{
    uint64_t incarnation;

    begin();
    incarnation = driver_join(&d, "A", 1);
    for (int i = 0; i < 2; i++) {
        struct model_call *call = driver_new_call(&d, MODEL_CALL_RENEW);
        struct model_renew_request *request = &call->request.renew;

        driver_renew_begin(&d, "A", incarnation, request);
        (i == 0 ? &request->boot_id : &request->store_id)->bytes[0] ^= 1;
        driver_submit(&d, call);
        driver_expect(finish(call), MODEL_REASON_INCARNATION_DEAD);
    }
    driver_expect(driver_renew(&d, "A", incarnation), MODEL_REASON_NONE);
    driver_deinit(&d);
}

Test(core_membership, a_new_process_on_the_same_store_takes_over_at_once)
{
    uint64_t first;
    uint64_t second;

    begin();
    first = driver_join(&d, "A", 1);
    second = driver_join(&d, "A", 2);
    cr_assert_gt(second, first);
    driver_expect(driver_renew(&d, "A", first), MODEL_REASON_INCARNATION_DEAD);
    driver_expect(driver_renew(&d, "A", second), MODEL_REASON_NONE);
    driver_deinit(&d);
}

Test(core_membership, rule10_two_takeovers_within_one_lease_freeze_the_name)
{
    struct model_call *call;

    begin();
    s = driver_open(&d, "esi");
    (void)driver_join(&d, "A", 1);
    (void)driver_join(&d, "A", 2);
    call = driver_register(&d, "A", "A", 3);
    driver_expect(driver_reason(call), MODEL_REASON_NAME_FROZEN);
    cr_assert_eq(call->response.error.expires_in_ms, 3001);
    (void)driver_free_call(call);
    (void)driver_free_call(driver_register(&d, "A", "A", 3));
    cr_assert_eq(driver_n_events(&d, RT_LOG_ERROR, "name_frozen"), 1);
    cr_assert_eq(driver_n_events(&d, RT_LOG_INFO, "registered"), 2);
    sleep_ms(3000);
    (void)driver_join(&d, "A", 3);
    driver_deinit(&d);
}

Test(core_membership, rule10_takeover_needs_the_same_machine_and_a_local_store)
{
    struct model_call *call;

    begin();
    (void)driver_join(&d, "A", 1);
    call = driver_register(&d, "A", "A", 2);
    (void)driver_free_call(call);
    call = driver_new_call(&d, MODEL_CALL_REGISTER);
    call->request.reg = (struct model_register_request){
        .name = "A",
        .address = "A",
        .store_id = driver_id("A", 1),
        .boot_id = driver_id("A", 9),
        .machine_id = driver_id("elsewhere", 0),
        .local_store = true,
        .entries_total = 1,
        .entry_size = 1,
    };
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_NAME_IN_USE);
    call->context = NULL;
    call->request.reg.machine_id = driver_id("machine", 0);
    call->request.reg.local_store = false;
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_NAME_IN_USE);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_membership, a_store_belongs_to_its_first_name)
{
    begin();
    (void)driver_join(&d, "A", 1);
    driver_expect(finish(driver_register(&d, "B", "A", 2)), MODEL_REASON_STORE_BELONGS_TO);
    driver_deinit(&d);
}

static enum model_reason register_with(void (*change)(struct model_register_request *request))
{
    struct model_call *call = driver_new_call(&d, MODEL_CALL_REGISTER);

    call->request.reg = (struct model_register_request){
        .name = "X",
        .address = "host:1",
        .store_id = driver_id("X", 1),
        .boot_id = driver_id("X", 1),
        .entries_total = 1,
        .entry_size = 1,
    };
    change(&call->request.reg);
    driver_submit(&d, call);
    return finish(call);
}

static void no_name(struct model_register_request *request)
{
    request->name[0] = '\0';
}

static void bad_name(struct model_register_request *request)
{
    request->name[0] = '/';
}

static void no_address(struct model_register_request *request)
{
    request->address[0] = '\0';
}

static void bad_address(struct model_register_request *request)
{
    request->address[2] = '\n';
}

static void no_store(struct model_register_request *request)
{
    request->store_id = (struct model_id){{0}};
}

static void no_boot(struct model_register_request *request)
{
    request->boot_id = (struct model_id){{0}};
}

static void no_entries(struct model_register_request *request)
{
    request->entries_total = 0;
}

static void no_entry_size(struct model_register_request *request)
{
    request->entry_size = 0;
}

static void other_cluster(struct model_register_request *request)
{
    request->cluster_id = driver_id("other", 1);
}

static void this_cluster(struct model_register_request *request)
{
    request->cluster_id = *coord_core_cluster_id(d.core);
}

Test(core_membership, register_checks_its_fields)
{
    begin();
    driver_expect(register_with(no_name), MODEL_REASON_INVALID_FIELD);
    driver_expect(register_with(bad_name), MODEL_REASON_INVALID_FIELD);
    driver_expect(register_with(no_address), MODEL_REASON_INVALID_FIELD);
    driver_expect(register_with(bad_address), MODEL_REASON_INVALID_FIELD);
    driver_expect(register_with(no_store), MODEL_REASON_INVALID_FIELD);
    driver_expect(register_with(no_boot), MODEL_REASON_INVALID_FIELD);
    driver_expect(register_with(no_entries), MODEL_REASON_INVALID_FIELD);
    driver_expect(register_with(no_entry_size), MODEL_REASON_INVALID_FIELD);
    driver_expect(register_with(other_cluster), MODEL_REASON_WRONG_CLUSTER);
    driver_expect(register_with(this_cluster), MODEL_REASON_NONE);
    driver_deinit(&d);
}

Test(core_membership, names_at_the_limit_and_one_more)
{
    char name[16];

    begin();
    for (int i = 0; i < MODEL_MEMBERS_MAX; i++) {
        (void)snprintf(name, sizeof(name), "n%d", i);
        driver_expect(finish(driver_register(&d, name, name, 1)), MODEL_REASON_NONE);
    }
    driver_expect(finish(driver_register(&d, "more", "more", 1)), MODEL_REASON_LIMIT_REACHED);
    driver_expect(finish(driver_register(&d, "n5", "n5", 2)), MODEL_REASON_NONE);
    driver_deinit(&d);
}

Test(core_membership, new_names_register_one_after_the_other)
{
    struct model_call *first;
    struct model_call *second;

    begin();
    d.auto_commit = false;
    first = driver_register(&d, "A", "A", 1);
    second = driver_register(&d, "B", "B", 1);
    cr_assert_eq(driver_n_txns(&d), 1);
    driver_commit(&d, STORE_FULL);
    driver_expect(finish(first), MODEL_REASON_DISK_FULL);
    cr_assert_not(driver_is_answered(second));
    driver_commit(&d, STORE_COMMITTED);
    driver_expect(finish(second), MODEL_REASON_NONE);
    d.auto_commit = true;
    driver_expect(finish(driver_register(&d, "A", "A", 1)), MODEL_REASON_NONE);
    driver_deinit(&d);
}

/* ---- leases ---------------------------------------------------------------------------------- */

Test(core_membership, dead_only_after_lease_and_grace)
{
    uint64_t incarnation;

    begin();
    s = driver_open(&d, "esi");
    incarnation = driver_join(&d, "A", 1);
    sleep_ms(3400);
    cr_assert_eq(state_of("A"), MODEL_MEMBER_ALIVE);
    driver_expect(driver_renew(&d, "A", incarnation), MODEL_REASON_NONE);
    sleep_ms(3400);
    cr_assert_eq(state_of("A"), MODEL_MEMBER_ALIVE);
    sleep_ms(200);
    cr_assert_eq(state_of("A"), MODEL_MEMBER_DEAD);
    driver_expect(driver_renew(&d, "A", incarnation), MODEL_REASON_INCARNATION_DEAD);
    driver_deinit(&d);
}

Test(core_membership, I11_a_dead_incarnation_never_lives_again)
{
    uint64_t incarnation;

    begin();
    s = driver_open(&d, "esi");
    incarnation = driver_join(&d, "A", 1);
    sleep_ms(3600);
    driver_restart(&d, false);
    driver_expect(driver_renew(&d, "A", incarnation), MODEL_REASON_INCARNATION_DEAD);
    cr_assert_gt(driver_join(&d, "A", 1), incarnation);
    driver_deinit(&d);
}

Test(core_membership, rule1_no_renew_once_death_is_submitted_even_if_it_is_unknown)
{
    uint64_t incarnation;

    begin();
    s = driver_open(&d, "esi");
    incarnation = driver_join(&d, "A", 1);
    sleep_ms(3400);
    d.auto_commit = false;
    driver_sleep_ms(&d, 200);
    cr_assert_eq(driver_n_txns(&d), 1);
    cr_assert_eq(state_of("A"), MODEL_MEMBER_ALIVE, "messages say what is committed");
    driver_expect(driver_renew(&d, "A", incarnation), MODEL_REASON_NOT_SERVING);
    driver_commit(&d, STORE_UNKNOWN);
    driver_expect(driver_renew(&d, "A", incarnation), MODEL_REASON_NOT_SERVING);
    driver_deinit(&d);
}

Test(core_membership, rule1_holds_for_takeover_and_leave)
{
    struct model_call *call;
    uint64_t a;
    uint64_t b;

    begin();
    a = driver_join(&d, "A", 1);
    b = driver_join(&d, "B", 1);
    d.auto_commit = false;
    call = driver_register(&d, "A", "A", 2);
    driver_expect(driver_renew(&d, "A", a), MODEL_REASON_NOT_SERVING);
    driver_commit(&d, STORE_COMMITTED);
    driver_expect(finish(call), MODEL_REASON_NONE);
    driver_expect(driver_renew(&d, "A", a), MODEL_REASON_INCARNATION_DEAD);
    call = driver_new_call(&d, MODEL_CALL_LEAVE);
    (void)snprintf(call->request.leave.name, sizeof(call->request.leave.name), "B");
    call->request.leave.incarnation = b;
    driver_submit(&d, call);
    driver_expect(driver_renew(&d, "B", b), MODEL_REASON_NOT_SERVING);
    driver_commit(&d, STORE_FULL);
    driver_expect(finish(call), MODEL_REASON_DISK_FULL);
    driver_expect(driver_renew(&d, "B", b), MODEL_REASON_NONE);
    driver_deinit(&d);
}

Test(core_membership, a_death_that_finds_the_disk_full_is_tried_again)
{
    uint64_t incarnation;

    begin();
    s = driver_open(&d, "esi");
    incarnation = driver_join(&d, "A", 1);
    sleep_ms(3400);
    d.outcomes[0] = STORE_FULL;
    d.n_outcomes = 1;
    sleep_ms(200);
    cr_assert_eq(state_of("A"), MODEL_MEMBER_ALIVE);
    sleep_ms(1200);
    cr_assert_eq(state_of("A"), MODEL_MEMBER_DEAD);
    driver_expect(driver_renew(&d, "A", incarnation), MODEL_REASON_INCARNATION_DEAD);
    driver_deinit(&d);
}

Test(core_membership, E1_a_core_that_was_stopped_declares_nobody_dead_at_once)
{
    uint64_t incarnation;

    begin();
    incarnation = driver_join(&d, "A", 1);
    s = driver_open(&d, "esi");
    test_env_advance_ms(&d.env, 6000);
    coord_core_tick(d.core);
    driver_settle(&d);
    driver_expect(driver_renew(&d, "A", incarnation), MODEL_REASON_NONE);
    driver_keep_alive(&d, &s);
    sleep_ms(1200);
    cr_assert_eq(state_of("A"), MODEL_MEMBER_ALIVE);
    driver_deinit(&d);
}

Test(core_membership, E1_who_is_really_gone_dies_one_renewal_later)
{
    begin();
    (void)driver_join(&d, "A", 1);
    test_env_advance_ms(&d.env, 6000);
    coord_core_tick(d.core);
    driver_settle(&d);
    driver_sleep_ms(&d, 900);
    cr_assert_eq(state_of("A"), MODEL_MEMBER_ALIVE);
    driver_sleep_ms(&d, 200);
    cr_assert_eq(state_of("A"), MODEL_MEMBER_DEAD);
    driver_deinit(&d);
}

Test(core_membership, section8_after_a_restart_everybody_has_a_full_new_lease)
{
    uint64_t incarnation;

    begin();
    s = driver_open(&d, "esi");
    incarnation = driver_join(&d, "A", 1);
    sleep_ms(3400);
    driver_restart(&d, false);
    sleep_ms(3400);
    cr_assert_eq(state_of("A"), MODEL_MEMBER_ALIVE);
    driver_expect(driver_renew(&d, "A", incarnation), MODEL_REASON_NONE);
    driver_deinit(&d);
}

Test(core_membership, E5_a_dead_member_dies_in_bounded_time_although_the_core_restarts)
{
    begin();
    (void)driver_join(&d, "A", 1);
    for (int i = 0; i < 3; i++) {
        driver_sleep_ms(&d, 1500);
        driver_restart(&d, false);
    }
    driver_sleep_ms(&d, 3600);
    cr_assert_eq(state_of("A"), MODEL_MEMBER_DEAD);
    driver_deinit(&d);
}

/* The barrier is as long as the longest lease there ever was, whatever the lease is now. */
Test(core_membership, section8_barrier_counts_the_longest_lease_ever)
{
    uint64_t incarnation;

    driver_init(&d);
    cr_assert_eq(model_lease_init(&d.config.member_lease, 6000, NULL), RT_OK);
    driver_restart(&d, false);
    incarnation = driver_join(&d, "A", 1);
    cr_assert_eq(model_lease_init(&d.config.member_lease, 3000, NULL), RT_OK);
    driver_restart(&d, false);
    driver_sleep_ms(&d, 6900);
    cr_assert_eq(state_of("A"), MODEL_MEMBER_ALIVE);
    driver_sleep_ms(&d, 200);
    cr_assert_eq(state_of("A"), MODEL_MEMBER_DEAD);
    driver_expect(driver_renew(&d, "A", incarnation), MODEL_REASON_INCARNATION_DEAD);
    driver_deinit(&d);
}

Test(core_membership, leave_is_idempotent_and_needs_the_current_incarnation)
{
    struct model_call *call;
    uint64_t incarnation;

    begin();
    incarnation = driver_join(&d, "A", 1);
    call = driver_new_call(&d, MODEL_CALL_LEAVE);
    (void)snprintf(call->request.leave.name, sizeof(call->request.leave.name), "A");
    call->request.leave.incarnation = incarnation + 1;
    driver_submit(&d, call);
    driver_expect(finish(call), MODEL_REASON_INCARNATION_DEAD);
    driver_leave(&d, "A", incarnation);
    driver_leave(&d, "A", incarnation);
    cr_assert_eq(state_of("A"), MODEL_MEMBER_LEFT);
    driver_deinit(&d);
}

/* ---- reconcile ------------------------------------------------------------------------------- */

static uint64_t register_only(uint8_t boot)
{
    struct model_call *call = driver_register(&d, "A", "A", boot);
    uint64_t incarnation;

    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    incarnation = call->response.reg.incarnation;
    (void)driver_free_call(call);
    return incarnation;
}

static struct model_call *part(uint64_t incarnation, uint64_t number, bool last,
                               struct model_held_row *rows, size_t n_rows)
{
    struct model_call *call = driver_new_call(&d, MODEL_CALL_RECONCILE);

    call->request.reconcile = (struct model_reconcile_request){
        .name = "A",
        .incarnation = incarnation,
        .part = number,
        .rows = rows,
        .n_rows = n_rows,
        .last = last,
    };
    driver_submit(&d, call);
    return call;
}

/* GET, SET, and STORE when `stores`; the epoch. */
static uint64_t make_key(const char *key, bool stores)
{
    struct model_call *call;
    uint64_t epoch;

    cr_assert_eq(driver_get(&d, &s, key), MODEL_OUTCOME_DONE);
    call = driver_execute(&d, &s, MODEL_STATEMENT_SET, key, "v");
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    epoch = call->response.execute.epoch;
    (void)driver_free_call(call);
    if (stores)
        driver_expect(driver_run(&d, &s, MODEL_STATEMENT_STORE, key, NULL), MODEL_REASON_NONE);
    return epoch;
}

static const struct model_row *find_row(const struct model_call *call, const char *key)
{
    for (size_t i = 0; i < call->response.reconcile.n_rows; i++) {
        const struct model_row *row = &call->response.reconcile.rows[i];

        if (rt_bytes_equal(row->key, rt_bytes_of_string(key)))
            return row;
    }
    return NULL;
}

Test(core_membership, C27_reconcile_gives_back_what_is_equal_and_tells_what_is_missing)
{
    struct model_held_row held[4] = {
        {.key = RT_BYTES_LITERAL("same")},
        {.key = RT_BYTES_LITERAL("older")},
        {.key = RT_BYTES_LITERAL("unknown"), .epoch = 3},
        {.key = RT_BYTES_LITERAL("newer")},
    };
    struct model_call *call;
    uint64_t incarnation;

    begin();
    s = driver_open(&d, "esi");
    (void)driver_join(&d, "A", 1);
    held[0].epoch = make_key("same", true);
    held[1].epoch = make_key("older", true) - 1;
    held[3].epoch = make_key("newer", false) + 100;
    (void)make_key("lost", true);
    (void)make_key("volatile", false);
    incarnation = register_only(2);
    call = part(incarnation, 0, true, held, 4);
    cr_assert(call->response.reconcile.done);
    cr_assert_eq(call->response.reconcile.n_rows, 5);
    cr_assert(!find_row(call, "same")->key_lost && !find_row(call, "same")->locked);
    cr_assert(find_row(call, "older")->key_lost, "an older row is none");
    cr_assert(find_row(call, "lost")->key_lost);
    cr_assert(!find_row(call, "newer")->key_lost && find_row(call, "newer")->sets_lost);
    cr_assert(find_row(call, "volatile")->sets_lost && find_row(call, "volatile")->locked);
    cr_assert_null(find_row(call, "unknown"));
    cr_assert_eq(find_row(call, "same")->locking, MODEL_LOCKING_REQUIRED);
    (void)driver_free_call(call);
    cr_assert_eq(state_of("A"), MODEL_MEMBER_ALIVE);
    driver_deinit(&d);
}

Test(core_membership, rule11_a_lost_key_stays_lost_over_restarts_until_delete)
{
    struct model_call *call;
    uint64_t incarnation;

    begin();
    s = driver_open(&d, "esi");
    (void)driver_join(&d, "A", 1);
    (void)make_key("k", true);
    (void)driver_join(&d, "A", 2);
    driver_restart(&d, false);
    driver_sleep_ms(&d, 1000);
    incarnation = register_only(3);
    call = part(incarnation, 0, true, NULL, 0);
    cr_assert(find_row(call, "k")->key_lost);
    (void)driver_free_call(call);
    driver_keep_alive(&d, &s);
    cr_assert_eq(driver_get(&d, &s, "k"), MODEL_OUTCOME_DONE);
    driver_expect(driver_run(&d, &s, MODEL_STATEMENT_DELETE, "k", NULL), MODEL_REASON_NONE);
    call = driver_new_call(&d, MODEL_CALL_PULL_ROWS);
    (void)snprintf(call->request.pull_rows.name, sizeof(call->request.pull_rows.name), "A");
    call->request.pull_rows.incarnation = incarnation;
    call->request.pull_rows.keys = &(struct rt_bytes){(const uint8_t *)"k", 1};
    call->request.pull_rows.n_keys = 1;
    driver_submit(&d, call);
    cr_assert_eq(call->response.pull_rows.n_rows, 1);
    cr_assert_not(call->response.pull_rows.rows[0].key_lost);
    cr_assert(call->response.pull_rows.rows[0].locked);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_membership, a_late_copy_of_a_reconcile_calls_nothing_lost)
{
    struct model_call *call;
    uint64_t incarnation;

    begin();
    s = driver_open(&d, "esi");
    incarnation = driver_join(&d, "A", 1);
    (void)make_key("k", true);
    call = part(incarnation, 0, true, NULL, 0);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    cr_assert(call->response.reconcile.done);
    cr_assert_not(find_row(call, "k")->key_lost);
    (void)driver_free_call(call);
    cr_assert_eq(state_of("A"), MODEL_MEMBER_ALIVE);
    driver_deinit(&d);
}

Test(core_membership, reconcile_is_paged_both_ways)
{
    enum {
        N = 2 * MODEL_RECONCILE_ROWS_MAX + 10
    };
    static bool seen[N];
    struct model_call *call;
    uint64_t incarnation;
    uint64_t number = 0;
    size_t n_rows = 0;
    bool done = false;

    driver_init(&d);
    d.config.locking = MODEL_LOCKING_NONE;
    d.config.session_lease.duration_us = 3600000000;
    driver_restart(&d, false);
    s = driver_open(&d, "esi");
    (void)driver_join(&d, "A", 1);
    for (int i = 0; i < N; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "%d", i);
        d.n_keys = 0;
        driver_expect(driver_run(&d, &s, MODEL_STATEMENT_SET, key, "v"), MODEL_REASON_NONE);
    }
    incarnation = register_only(2);
    while (!done) {
        call = part(incarnation, number++, true, NULL, 0);
        driver_expect(driver_reason(call), MODEL_REASON_NONE);
        cr_assert_leq(call->response.reconcile.n_rows, MODEL_RECONCILE_ROWS_MAX);
        for (size_t i = 0; i < call->response.reconcile.n_rows; i++) {
            char text[16] = {0};
            const struct model_row *row = &call->response.reconcile.rows[i];

            memcpy(text, row->key.data, row->key.size);
            cr_assert_not(seen[atoi(text)]);
            seen[atoi(text)] = true;
            n_rows++;
        }
        done = call->response.reconcile.done;
        (void)driver_free_call(call);
    }
    cr_assert_eq(n_rows, N);
    cr_assert_geq(number, 3);
    driver_deinit(&d);
}

Test(core_membership, reconcile_parts_in_order_or_from_the_start)
{
    struct model_held_row rows[MODEL_RECONCILE_ROWS_MAX + 1];
    uint64_t incarnation;

    begin();
    for (size_t i = 0; i <= MODEL_RECONCILE_ROWS_MAX; i++)
        rows[i] = (struct model_held_row){.key = RT_BYTES_LITERAL("k"), .epoch = 1};
    incarnation = register_only(1);
    driver_expect(finish(part(incarnation, 1, false, NULL, 0)), MODEL_REASON_INVALID_FIELD);
    driver_expect(finish(part(incarnation, 0, false, NULL, 0)), MODEL_REASON_NONE);
    driver_expect(finish(part(incarnation, 2, false, NULL, 0)), MODEL_REASON_INVALID_FIELD);
    driver_expect(finish(part(incarnation, 1, false, rows, MODEL_RECONCILE_ROWS_MAX)),
                  MODEL_REASON_NONE);
    driver_expect(finish(part(incarnation, 1, false, NULL, 0)), MODEL_REASON_INVALID_FIELD);
    driver_expect(finish(part(incarnation, 2, false, rows, MODEL_RECONCILE_ROWS_MAX + 1)),
                  MODEL_REASON_INVALID_FIELD);
    rows[0].key.size = 0;
    driver_expect(finish(part(incarnation, 2, false, rows, 1)), MODEL_REASON_INVALID_FIELD);
    rows[0].key.size = MODEL_KEY_MAX + 1;
    driver_expect(finish(part(incarnation, 2, false, rows, 1)), MODEL_REASON_INVALID_FIELD);
    driver_expect(finish(part(incarnation + 1, 0, true, NULL, 0)), MODEL_REASON_INCARNATION_DEAD);
    driver_expect(finish(part(incarnation, 0, true, NULL, 0)), MODEL_REASON_NONE);
    cr_assert_eq(state_of("A"), MODEL_MEMBER_ALIVE);
    driver_expect(finish(part(incarnation, 1, true, rows + 1, 1)), MODEL_REASON_INVALID_FIELD);
    driver_expect(finish(part(incarnation, 0, true, NULL, 0)), MODEL_REASON_NONE);
    driver_deinit(&d);
}

Test(core_membership, alive_only_when_that_is_durable)
{
    struct model_call *call;
    uint64_t incarnation;

    begin();
    incarnation = register_only(1);
    d.auto_commit = false;
    call = part(incarnation, 0, true, NULL, 0);
    cr_assert_not(driver_is_answered(call));
    driver_commit(&d, STORE_FULL);
    driver_expect(finish(call), MODEL_REASON_DISK_FULL);
    cr_assert_eq(state_of("A"), MODEL_MEMBER_JOINING);
    d.auto_commit = true;
    driver_expect(finish(part(incarnation, 0, true, NULL, 0)), MODEL_REASON_NONE);
    cr_assert_eq(state_of("A"), MODEL_MEMBER_ALIVE);
    driver_deinit(&d);
}

Test(core_membership, reconcile_passes_by_rows_that_are_being_changed_and_comes_back)
{
    struct model_call *store;
    struct model_call *call;
    uint64_t incarnation;

    begin();
    s = driver_open(&d, "esi");
    (void)driver_join(&d, "A", 1);
    (void)make_key("k", false);
    d.auto_answer = false;
    store = driver_execute(&d, &s, MODEL_STATEMENT_STORE, "k", NULL);
    incarnation = register_only(2);
    d.auto_commit = false;
    driver_answer(&d, driver_find_call(&d, MODEL_CALL_STORE));
    cr_assert_eq(driver_n_txns(&d), 1, "the release");
    call = part(incarnation, 0, true, NULL, 0);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    cr_assert_not(call->response.reconcile.done);
    cr_assert_eq(call->response.reconcile.n_rows, 0);
    (void)driver_free_call(call);
    driver_commit(&d, STORE_COMMITTED);
    d.auto_commit = true;
    call = part(incarnation, 1, true, NULL, 0);
    cr_assert(call->response.reconcile.done);
    cr_assert(find_row(call, "k")->key_lost);
    (void)driver_free_call(call);
    driver_expect(finish(store), MODEL_REASON_NONE);
    driver_deinit(&d);
}

Test(core_membership, pull_rows_names_what_the_caller_owns)
{
    struct rt_bytes keys[3] = {RT_BYTES_LITERAL("mine"), RT_BYTES_LITERAL("other"),
                               RT_BYTES_LITERAL("none")};
    struct model_call *call;
    uint64_t incarnation;

    begin();
    s = driver_open(&d, "esi");
    incarnation = driver_join(&d, "A", 1);
    (void)driver_join(&d, "B", 1);
    (void)make_key("mine", false);
    (void)make_key("other", false);
    call = driver_new_call(&d, MODEL_CALL_PULL_ROWS);
    (void)snprintf(call->request.pull_rows.name, sizeof(call->request.pull_rows.name), "A");
    call->request.pull_rows.incarnation = incarnation;
    call->request.pull_rows.keys = keys;
    call->request.pull_rows.n_keys = 3;
    driver_submit(&d, call);
    cr_assert_eq(call->response.pull_rows.n_rows, 1);
    cr_assert(rt_bytes_equal(call->response.pull_rows.rows[0].key, keys[0]));
    call->context = NULL;
    call->request.pull_rows.n_keys = MODEL_RECONCILE_ROWS_MAX + 1;
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_INVALID_FIELD);
    call->context = NULL;
    call->request.pull_rows.incarnation++;
    driver_submit(&d, call);
    driver_expect(finish(call), MODEL_REASON_INCARNATION_DEAD);
    driver_deinit(&d);
}
