/*
 * Registering, renewing, dying, leaving: the instance as a member, step by step.
 */
#include "tests/unit/instance/driver.h"

TestSuite(registry, .fini = test_alloc_expect_none);

static void refuse_registration(struct driver *driver, enum model_reason reason)
{
    driver_answer_fail(driver, driver_outbound(driver, MODEL_CALL_REGISTER), reason);
}

static void wait_for_retry(struct driver *driver)
{
    uint64_t at = inst_core_next_wakeup_us(driver->core);

    cr_assert_gt(at, driver->env.now_us);
    cr_assert_leq(at, driver->env.now_us + 2000000);
    driver->env.now_us = at;
    driver_tick(driver);
}

Test(registry, serves_only_after_reconcile_and_a_granted_renew)
{
    struct driver *driver = driver_new();

    driver_boot(driver);
    driver_expect(driver, driver_set(driver, "k", "v", 0), MODEL_REASON_NOT_SERVING);
    driver_register(driver);
    cr_assert_not_null(driver_find(driver, "meta"), "durable before anything is served");
    driver_expect(driver, driver_set(driver, "k", "v", 0), MODEL_REASON_NOT_SERVING);
    driver_reconcile(driver);
    cr_assert_not(driver_has_outbound(driver, MODEL_CALL_RENEW), "its heartbeat comes first");
    driver_expect(driver, driver_fence(driver, "k", 9, true), MODEL_REASON_NOT_SERVING);
    driver_place(driver, "k");
    driver_expect(driver, driver_set(driver, "k", "v", 0), MODEL_REASON_NOT_SERVING);
    cr_assert_eq(inst_core_state(driver->core), INST_STATE_STARTING);
    driver_renew(driver);
    cr_assert_eq(inst_core_state(driver->core), INST_STATE_SERVING);
    driver_expect_ok(driver, driver_set(driver, "k", "v", 0));
    driver_free(driver);
}

Test(registry, register_is_tried_again_with_backoff)
{
    struct driver *driver = driver_new();

    driver_boot(driver);
    for (int i = 0; i < 8; i++) {
        refuse_registration(driver, MODEL_REASON_NOT_SERVING);
        cr_assert_not(driver_has_outbound(driver, MODEL_CALL_REGISTER));
        wait_for_retry(driver);
    }
    refuse_registration(driver, MODEL_REASON_NAME_FROZEN);
    wait_for_retry(driver);
    driver_register(driver);
    driver_free(driver);
}

Test(registry, an_answer_that_makes_no_sense_is_a_failure)
{
    struct driver *driver = driver_new();

    driver_boot(driver);
    for (int i = 0; i < 5; i++) {
        struct model_call *call = driver_outbound(driver, MODEL_CALL_REGISTER);
        struct model_register_response *reg = &call->response.reg;

        model_response_ok(&call->response, MODEL_CALL_REGISTER);
        *reg = (struct model_register_response){driver->cluster_id, 100, DRIVER_LEASE_MS, 40};
        if (i == 0)
            reg->incarnation = 0;
        else if (i == 1)
            reg->key_max = MODEL_KEY_MAX + 1;
        else if (i == 2)
            reg->key_max = 0;
        else if (i == 3)
            reg->lease_ms = MODEL_LEASE_MS_MAX + 1;
        else
            reg->cluster_id = (struct model_id){{0}};
        driver_answer(driver, call);
        cr_assert_eq(driver_n_txns(driver), 0);
        wait_for_retry(driver);
    }
    driver_register(driver);
    driver_free(driver);
}

Test(registry, fatal_refusals_stop_with_the_reason)
{
    static const enum model_reason fatal[] = {MODEL_REASON_STORE_BELONGS_TO,
                                              MODEL_REASON_WRONG_CLUSTER, MODEL_REASON_NAME_IN_USE,
                                              MODEL_REASON_INVALID_FIELD};

    for (size_t i = 0; i < RT_ARRAY_SIZE(fatal); i++) {
        struct driver *driver = driver_new();

        driver_boot(driver);
        cr_assert_null(inst_core_failure(driver->core));
        refuse_registration(driver, fatal[i]);
        cr_assert_eq(inst_core_state(driver->core), INST_STATE_STOPPED);
        cr_assert_eq(inst_core_failure(driver->core)->reason, fatal[i]);
        cr_assert_eq(inst_core_next_wakeup_us(driver->core), RT_NEVER);
        driver_free(driver);
    }
}

Test(registry, another_cluster_than_the_data_directorys)
{
    struct driver *driver = driver_new();

    driver_serve(driver);
    driver->cluster_id.bytes[0]++;
    driver_boot(driver);
    driver_register(driver);
    cr_assert_eq(inst_core_failure(driver->core)->reason, MODEL_REASON_WRONG_CLUSTER);
    driver_free(driver);
}

Test(registry, disk_full_at_registration_is_tried_again)
{
    struct driver *driver = driver_new();
    struct model_call *call;

    driver_boot(driver);
    call = driver_outbound(driver, MODEL_CALL_REGISTER);
    model_response_ok(&call->response, MODEL_CALL_REGISTER);
    call->response.reg =
        (struct model_register_response){driver->cluster_id, 100, DRIVER_LEASE_MS, 40};
    driver_answer(driver, call);
    driver_commit(driver, STORE_FULL);
    cr_assert_not(driver_has_outbound(driver, MODEL_CALL_RECONCILE));
    wait_for_retry(driver);
    driver_commit(driver, STORE_COMMITTED);
    cr_assert(driver_has_outbound(driver, MODEL_CALL_RECONCILE));
    driver_free(driver);
}

Test(registry, failed_commit_at_registration_stops)
{
    struct driver *driver = driver_new();
    struct model_call *call;

    driver_boot(driver);
    call = driver_outbound(driver, MODEL_CALL_REGISTER);
    model_response_ok(&call->response, MODEL_CALL_REGISTER);
    call->response.reg =
        (struct model_register_response){driver->cluster_id, 100, DRIVER_LEASE_MS, 40};
    driver_answer(driver, call);
    driver_commit(driver, STORE_UNKNOWN);
    cr_assert_eq(inst_core_failure(driver->core)->reason, MODEL_REASON_STORE_ERROR);
    driver_free(driver);
}

Test(registry, the_lease_is_counted_from_sending)
{
    struct driver *driver = driver_new();
    uint64_t sent_us;

    driver_serve(driver);
    driver_place(driver, "k");
    driver_expect_ok(driver, driver_set(driver, "k", "v", 0));
    test_env_advance_ms(&driver->env, 1000);
    driver_tick(driver);
    driver_heartbeat(driver);
    sent_us = driver->env.now_us;
    test_env_advance_ms(&driver->env, 700);
    driver_grant(driver);
    driver->env.now_us = sent_us + DRIVER_FENCE_US - 1;
    driver_expect_ok(driver, driver_set(driver, "k", "w", 0));
    driver->env.now_us = sent_us + DRIVER_FENCE_US;
    driver_expect(driver, driver_set(driver, "k", "x", 0), MODEL_REASON_LEASE_EXPIRED);
    driver_expect(driver, driver_data(driver, MODEL_CALL_READ, "k", NULL),
                  MODEL_REASON_LEASE_EXPIRED);
    driver_expect(driver, driver_fence(driver, "k", 60, true), MODEL_REASON_LEASE_EXPIRED);
    driver_free(driver);
}

Test(registry, stale_reads_go_on_marked_when_fenced)
{
    struct driver *driver = driver_new();

    driver_serve(driver);
    driver_place(driver, "k");
    driver_expect_ok(driver, driver_set(driver, "k", "v", 0));
    for (int fenced = 0; fenced < 2; fenced++) {
        struct model_call *call = driver_data(driver, MODEL_CALL_READ, "k", NULL);

        call->request.data.consistency = MODEL_READ_STALE_OK;
        (void)driver_submit(driver, call);
        cr_assert_eq(call->response.data.stale, fenced == 1);
        cr_assert(rt_bytes_equal(call->response.data.value, RT_BYTES_LITERAL("v")));
        driver_finish_ok(driver, call);
        test_env_advance_us(&driver->env, DRIVER_FENCE_US);
    }
    driver_free(driver);
}

Test(registry, e7_e13_renewing_goes_on_through_every_failure_and_unfences)
{
    static const enum model_reason reasons[] = {
        MODEL_REASON_NONE, MODEL_REASON_NOT_SERVING, MODEL_REASON_DEADLINE_EXCEEDED,
        MODEL_REASON_WRONG_CLUSTER, MODEL_REASON_INVALID_FIELD};
    struct driver *driver = driver_new();

    driver_serve(driver);
    driver_place(driver, "k");
    for (size_t i = 0; i < 4 * RT_ARRAY_SIZE(reasons); i++) {
        driver->env.now_us = inst_core_next_wakeup_us(driver->core);
        driver_tick(driver);
        driver_heartbeat(driver);
        driver_answer_fail(driver, driver_outbound(driver, MODEL_CALL_RENEW),
                           reasons[i % RT_ARRAY_SIZE(reasons)]);
    }
    test_env_advance_us(&driver->env, DRIVER_FENCE_US);
    driver_expect(driver, driver_set(driver, "k", "v", 0), MODEL_REASON_LEASE_EXPIRED);
    driver_tick(driver);
    driver_renew(driver);
    driver_expect_ok(driver, driver_set(driver, "k", "v", 0));
    driver_free(driver);
}

Test(registry, a_lost_lease_is_told_of_once_and_so_is_its_return)
{
    static const char lost[] = "event=lease_lost incarnation=100";
    static const char regained[] = "event=lease_regained incarnation=100";
    struct driver *driver = driver_new();

    driver_serve(driver);
    driver_place(driver, "k");
    for (size_t i = 1; i <= 2; i++) {
        uint64_t fence_at_us = driver->env.now_us + DRIVER_FENCE_US;

        test_env_advance_ms(&driver->env, 1000);
        driver_tick(driver);
        driver_heartbeat(driver);
        while (driver->env.now_us < fence_at_us) {
            cr_assert_eq(driver_n_events(driver, RT_LOG_WARNING, lost), i - 1);
            driver->env.now_us = inst_core_next_wakeup_us(driver->core);
            cr_assert_leq(driver->env.now_us, fence_at_us, "woken at the end of the lease");
            driver_tick(driver);
        }
        for (int k = 0; k < 3; k++)
            driver_tick(driver);
        cr_assert_eq(driver_n_events(driver, RT_LOG_WARNING, lost), i);
        cr_assert_eq(driver_n_events(driver, RT_LOG_INFO, regained), i - 1);
        driver_answer_fail(driver, driver_outbound(driver, MODEL_CALL_RENEW),
                           MODEL_REASON_DEADLINE_EXCEEDED);
        test_env_advance_ms(&driver->env, 1000);
        driver_tick(driver);
        driver_renew(driver);
        cr_assert_eq(driver_n_events(driver, RT_LOG_INFO, regained), i);
    }
    driver_free(driver);
}

Test(registry, no_answers_at_all_fence_by_clock_and_another_renew_goes_out)
{
    struct driver *driver = driver_new();
    struct model_call *lost;

    driver_serve(driver);
    test_env_advance_ms(&driver->env, 1000);
    driver_tick(driver);
    driver_heartbeat(driver);
    lost = driver_outbound(driver, MODEL_CALL_RENEW);
    cr_assert_eq(lost->deadline_us, driver->env.now_us + 800000);
    test_env_advance_ms(&driver->env, 1000);
    driver_tick(driver);
    driver_renew(driver);
    driver_answer_fail(driver, lost, MODEL_REASON_DEADLINE_EXCEEDED);
    driver_free(driver);
}

Test(registry, a_lower_terms_grant_counts_for_nothing)
{
    struct driver *driver = driver_new();
    struct model_call *call;

    driver_serve(driver);
    driver_place(driver, "k");
    test_env_advance_ms(&driver->env, 1000);
    driver_tick(driver);
    driver_heartbeat(driver);
    call = driver_outbound(driver, MODEL_CALL_RENEW);
    model_response_ok(&call->response, MODEL_CALL_RENEW);
    call->response.renew.lease_ms = DRIVER_LEASE_MS;
    call->response.responder.term = DRIVER_TERM - 1;
    driver_answer(driver, call);
    test_env_advance_ms(&driver->env, 1600);
    driver_expect(driver, driver_set(driver, "k", "v", 0), MODEL_REASON_LEASE_EXPIRED);
    driver_free(driver);
}

Test(registry, a_lower_term_cannot_declare_dead)
{
    struct driver *driver = driver_new();
    struct model_call *call;

    driver_serve(driver);
    test_env_advance_ms(&driver->env, 1000);
    driver_tick(driver);
    driver_heartbeat(driver);
    call = driver_outbound(driver, MODEL_CALL_RENEW);
    call->response.responder.term = DRIVER_TERM - 1;
    driver_answer_fail(driver, call, MODEL_REASON_INCARNATION_DEAD);
    cr_assert_eq(inst_core_state(driver->core), INST_STATE_SERVING);
    driver_free(driver);
}

static void renew_at_term(struct driver *driver, uint64_t term)
{
    struct model_call *call;

    test_env_advance_ms(&driver->env, 1000);
    driver_tick(driver);
    driver_heartbeat(driver);
    call = driver_outbound(driver, MODEL_CALL_RENEW);
    call->response.responder.term = term;
    driver_answer_fail(driver, call, MODEL_REASON_INCARNATION_DEAD);
}

Test(registry, an_earlier_coordinator_is_told_of_once)
{
    static const char told[] = "event=earlier_coordinator term=6 seen=7";
    struct driver *driver = driver_new();

    driver_serve(driver);
    for (int i = 0; i < 4; i++)
        renew_at_term(driver, DRIVER_TERM - 1);
    cr_assert_eq(driver_n_events(driver, RT_LOG_WARNING, told), 1);
    renew_at_term(driver, DRIVER_TERM - 2);
    cr_assert_eq(driver_n_events(driver, RT_LOG_WARNING, told), 1);
    cr_assert_eq(driver_n_events(driver, RT_LOG_WARNING, "event=earlier_coordinator term=5 seen=7"),
                 1);
    driver_free(driver);
}

Test(registry, another_cluster_refuses_at_any_term)
{
    struct driver *driver = driver_new();
    struct model_call *call;

    driver_serve(driver);
    driver_boot(driver);
    call = driver_outbound(driver, MODEL_CALL_REGISTER);
    call->response.responder.term = DRIVER_TERM - 1;
    driver_answer_fail(driver, call, MODEL_REASON_WRONG_CLUSTER);
    cr_assert_eq(inst_core_failure(driver->core)->reason, MODEL_REASON_WRONG_CLUSTER);
    driver_free(driver);
}

static void declare_dead(struct driver *driver)
{
    test_env_advance_ms(&driver->env, 1000);
    driver_tick(driver);
    driver_heartbeat(driver);
    driver_answer_fail(driver, driver_outbound(driver, MODEL_CALL_RENEW),
                       MODEL_REASON_INCARNATION_DEAD);
    cr_assert_eq(inst_core_state(driver->core), INST_STATE_STARTING);
    driver->incarnation += DRIVER_INCARNATION;
}

Test(registry, k1_a_dead_incarnation_serves_nothing_and_registers_again)
{
    static const struct {
        enum rt_log_level level;
        const char *text;
    } told[] = {
        {RT_LOG_INFO, "event=registered incarnation=100 term=7"},
        {RT_LOG_WARNING, "event=registering_again incarnation=100"},
        {RT_LOG_INFO, "event=registered incarnation=200 term=7"},
        {RT_LOG_WARNING, "event=keys_quarantined n=1"},
    };
    struct driver *driver = driver_new();

    driver_serve(driver);
    driver_place(driver, "k");
    driver_place(driver, "gone");
    driver_expect_ok(driver, driver_set(driver, "k", "v", 0));
    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_PUT, "gone", "w"));
    declare_dead(driver);
    driver_expect(driver, driver_set(driver, "k", "x", 0), MODEL_REASON_NOT_SERVING);
    driver_register(driver);
    driver_tell(driver, "k", DRIVER_EPOCH);
    driver_reconcile(driver);
    cr_assert_eq(driver->n_held, 2);
    driver_renew(driver);
    driver_expect_value(driver, "k", "v");
    driver_expect(driver, driver_data(driver, MODEL_CALL_READ, "gone", NULL),
                  MODEL_REASON_NOT_OWNER);
    cr_assert_not_null(driver_find(driver, "gone/v"), "kept on disk");
    for (size_t i = 0; i < RT_ARRAY_SIZE(told); i++)
        cr_assert_eq(driver_n_events(driver, told[i].level, told[i].text), 1, "%s", told[i].text);
    cr_assert_eq(driver->n_events, RT_ARRAY_SIZE(told));
    driver_free(driver);
}

static void lose_k_by_death(struct driver *driver)
{
    driver_serve(driver);
    driver_place(driver, "k");
    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_PUT, "k", "old"));
    declare_dead(driver);
    driver_register(driver);
    driver_reconcile(driver);
    driver_renew(driver);
    declare_dead(driver);
    driver_register(driver);
}

Test(registry, a_value_unloaded_at_one_death_is_lost_only_at_its_own_epoch)
{
    for (uint64_t later = 0; later < 2; later++) {
        struct driver *driver = driver_new();
        struct model_call *call;

        lose_k_by_death(driver);
        driver_tell(driver, "k", DRIVER_EPOCH + later);
        driver_reconcile(driver);
        cr_assert_eq(driver->n_held, 0);
        driver_renew(driver);
        driver_expect_ok(driver, driver_activate(driver, "k", DRIVER_EPOCH + later));
        call = driver_data(driver, MODEL_CALL_READ, "k", NULL);
        call->request.data.header.epoch = DRIVER_EPOCH + later;
        if (later)
            driver_expect_ok(driver, call);
        else
            driver_expect(driver, call, MODEL_REASON_KEY_LOST);
        cr_assert_eq(driver_find(driver, "k/v") != NULL, later == 0, "kept for whoever looks");
        driver_free(driver);
    }
}

Test(registry, name_in_use_after_death_is_waited_out)
{
    struct driver *driver = driver_new();

    driver_serve(driver);
    declare_dead(driver);
    refuse_registration(driver, MODEL_REASON_NAME_IN_USE);
    cr_assert_eq(inst_core_state(driver->core), INST_STATE_STARTING);
    wait_for_retry(driver);
    driver_register(driver);
    driver_free(driver);
}

Test(registry, commits_of_the_dead_life_end_before_reconcile_and_are_unknown)
{
    struct driver *driver = driver_new();
    struct model_call *put;

    driver_serve(driver);
    driver_place(driver, "k");
    put = driver_submit(driver, driver_data(driver, MODEL_CALL_PUT, "k", "v"));
    declare_dead(driver);
    {
        struct model_call *call = driver_outbound(driver, MODEL_CALL_REGISTER);
        struct rt_list *held = rt_list_pop_front(&driver->txns);

        model_response_ok(&call->response, MODEL_CALL_REGISTER);
        call->response.reg = (struct model_register_response){
            driver->cluster_id, driver->incarnation, DRIVER_LEASE_MS, 40};
        driver_answer(driver, call);
        driver_commit_all(driver);
        cr_assert_not(driver_has_outbound(driver, MODEL_CALL_RECONCILE));
        rt_list_push_back(&driver->txns, held);
    }
    driver_commit_all(driver);
    driver_finish(driver, put, MODEL_REASON_OUTCOME_UNKNOWN);
    driver_tell(driver, "k", DRIVER_EPOCH);
    driver_reconcile(driver);
    cr_assert(driver->held[0].has_value);
    driver_renew(driver);
    driver_expect_value(driver, "k", "v");
    driver_free(driver);
}

Test(registry, superseded_renews_at_once)
{
    struct driver *driver = driver_new();
    struct model_call *call;

    driver_serve(driver);
    test_env_advance_ms(&driver->env, 200);
    call = driver_set(driver, "k", "v", 0);
    call->request.data.header.incarnation = driver->incarnation + 1;
    driver_expect(driver, call, MODEL_REASON_SUPERSEDED);
    cr_assert_leq(inst_core_next_wakeup_us(driver->core), driver->env.now_us);
    driver_tick(driver);
    driver_renew(driver);
    driver_free(driver);
}

Test(registry, a_stalled_heartbeat_costs_the_lease)
{
    struct driver *driver = driver_new();
    uint64_t number;

    driver_serve(driver);
    test_env_advance_ms(&driver->env, 1000);
    driver_tick(driver);
    cr_assert(inst_core_take_heartbeat(driver->core, &number));
    test_env_advance_ms(&driver->env, 5000);
    driver_tick(driver);
    cr_assert_not(driver_has_outbound(driver, MODEL_CALL_RENEW));
    inst_core_heartbeat_done(driver->core, number, false);
    driver_take(driver);
    cr_assert_not(driver_has_outbound(driver, MODEL_CALL_RENEW));
    test_env_advance_ms(&driver->env, 1000);
    driver_tick(driver);
    driver_renew(driver);
    driver_free(driver);
}

Test(registry, commands_of_a_lower_term_are_refused_also_after_a_restart)
{
    struct driver *driver = driver_new();
    struct model_call *call;

    driver_serve(driver);
    driver->term = DRIVER_TERM + 5;
    driver_place(driver, "k");
    driver->term = DRIVER_TERM;
    driver_expect(driver, driver_activate(driver, "x", 60), MODEL_REASON_STALE_TERM);
    driver_expect(driver, driver_fence(driver, "k", 60, true), MODEL_REASON_STALE_TERM);
    driver_expect(driver, driver_drop(driver, "k", 60), MODEL_REASON_STALE_TERM);

    driver_boot(driver);
    call = driver_outbound(driver, MODEL_CALL_REGISTER);
    model_response_ok(&call->response, MODEL_CALL_REGISTER);
    call->response.reg =
        (struct model_register_response){driver->cluster_id, 200, DRIVER_LEASE_MS, 40};
    driver_answer(driver, call);
    cr_assert_eq(driver_n_txns(driver), 0, "the highest term is durable");
    driver_free(driver);
}

Test(registry, a_higher_term_is_written_also_without_a_command)
{
    struct driver *driver = driver_new();
    struct model_call *call;

    driver_serve(driver);
    driver->term++;
    for (int i = 0; i < 2; i++) {
        test_env_advance_ms(&driver->env, 1000);
        driver_tick(driver);
        if (driver_n_txns(driver) == 0)
            driver_renew(driver);
        cr_assert_eq(driver_n_txns(driver), 1);
        driver_commit(driver, i == 0 ? STORE_FULL : STORE_COMMITTED);
        cr_assert_eq(driver_n_txns(driver), 0, "not at once again");
    }
    call = driver_submit(driver, model_call_new(MODEL_CALL_INSTANCE_STATUS));
    cr_assert_eq(call->response.responder.term, DRIVER_TERM + 1);
    driver_finish_ok(driver, call);
    driver_free(driver);
}

Test(registry, the_placement_version_never_falls)
{
    static const uint64_t heard[] = {900, 950, 940};
    struct driver *driver = driver_new();
    struct model_call *call;

    driver_serve(driver);
    for (size_t i = 0; i < RT_ARRAY_SIZE(heard); i++) {
        test_env_advance_ms(&driver->env, 1000);
        driver_tick(driver);
        driver_heartbeat(driver);
        call = driver_outbound(driver, MODEL_CALL_RENEW);
        model_response_ok(&call->response, MODEL_CALL_RENEW);
        call->response.renew.lease_ms = DRIVER_LEASE_MS;
        call->response.responder.placement_version = heard[i];
        driver_answer(driver, call);
    }
    call = driver_submit(driver, model_call_new(MODEL_CALL_INSTANCE_STATUS));
    cr_assert_eq(call->response.responder.placement_version, 950);
    driver_finish_ok(driver, call);
    driver_free(driver);
}

Test(registry, an_activate_of_the_dead_life_is_unknown)
{
    struct driver *driver = driver_new();
    struct model_call *activate;

    driver_serve(driver);
    activate = driver_submit(driver, driver_activate(driver, "k", DRIVER_EPOCH));
    declare_dead(driver);
    driver_commit(driver, STORE_COMMITTED);
    driver_finish(driver, activate, MODEL_REASON_OUTCOME_UNKNOWN);
    driver_register(driver);
    driver_reconcile(driver);
    cr_assert_eq(driver->n_held, 1);
    driver_free(driver);
}

Test(registry, leave_waits_for_commits_and_then_says_goodbye)
{
    struct driver *driver = driver_new();
    struct model_call *activate;
    struct model_call *put;
    struct model_call *leave;

    driver_serve(driver);
    driver_place(driver, "k");
    put = driver_submit(driver, driver_data(driver, MODEL_CALL_PUT, "k", "v"));
    inst_core_leave(driver->core);
    inst_core_leave(driver->core);
    driver_take(driver);
    cr_assert_eq(inst_core_state(driver->core), INST_STATE_LEAVING);
    cr_assert_not(driver_has_outbound(driver, MODEL_CALL_LEAVE));
    activate = driver_submit(driver, driver_activate(driver, "x", 60));
    driver_finish(driver, activate, MODEL_REASON_DRAINING);
    driver_commit(driver, STORE_COMMITTED);
    driver_finish_ok(driver, put);
    driver_expect(driver, driver_set(driver, "k", "w", 0), MODEL_REASON_DRAINING);
    leave = driver_outbound(driver, MODEL_CALL_LEAVE);
    cr_assert_eq(leave->request.leave.incarnation, driver->incarnation);
    model_response_ok(&leave->response, MODEL_CALL_LEAVE);
    driver_answer(driver, leave);
    cr_assert_eq(inst_core_state(driver->core), INST_STATE_STOPPED);
    cr_assert_null(inst_core_failure(driver->core));
    driver_free(driver);
}

Test(registry, leave_ends_also_without_an_answer_or_a_commit)
{
    for (int with_commit = 0; with_commit < 2; with_commit++) {
        struct driver *driver = driver_new();
        struct model_call *put = NULL;

        driver_serve(driver);
        driver_place(driver, "k");
        if (with_commit)
            put = driver_submit(driver, driver_data(driver, MODEL_CALL_PUT, "k", "v"));
        inst_core_leave(driver->core);
        driver_take(driver);
        cr_assert_eq(driver_has_outbound(driver, MODEL_CALL_LEAVE), !with_commit);
        test_env_advance_ms(&driver->env, 2000);
        cr_assert_leq(inst_core_next_wakeup_us(driver->core), driver->env.now_us);
        driver_tick(driver);
        cr_assert_eq(inst_core_state(driver->core), INST_STATE_STOPPED);
        if (put) {
            driver_commit_all(driver);
            driver_finish(driver, put, MODEL_REASON_OUTCOME_UNKNOWN);
        }
        driver_free(driver);
    }
}

Test(registry, leave_before_registration_stops_at_once)
{
    struct driver *driver = driver_new();

    driver_boot(driver);
    inst_core_leave(driver->core);
    driver_take(driver);
    cr_assert_eq(inst_core_state(driver->core), INST_STATE_STOPPED);
    driver_register(driver);
    cr_assert_eq(inst_core_state(driver->core), INST_STATE_STOPPED);
    driver_free(driver);
}

Test(registry, t10_a_clock_that_steps_back_extends_nothing)
{
    struct driver *driver = driver_new();

    driver_serve(driver);
    driver_place(driver, "k");
    test_env_advance_us(&driver->env, DRIVER_FENCE_US);
    driver_expect(driver, driver_set(driver, "k", "v", 0), MODEL_REASON_LEASE_EXPIRED);
    driver->env.now_us -= 1000000;
    driver_expect(driver, driver_set(driver, "k", "v", 0), MODEL_REASON_LEASE_EXPIRED);
    driver_free(driver);
}

Test(registry, status_and_foreign_calls)
{
    struct driver *driver = driver_new();
    struct model_call *call;

    driver_serve(driver);
    driver_place(driver, "k");
    driver_expect_ok(driver, driver_set(driver, "k", "v", 0));
    call = driver_submit(driver, model_call_new(MODEL_CALL_INSTANCE_STATUS));
    cr_assert(call->response.instance_status.serving);
    cr_assert_eq(call->response.instance_status.fence_in_ms, DRIVER_FENCE_US / 1000);
    cr_assert_eq(call->response.instance_status.n_keys, 1);
    cr_assert_eq(call->response.instance_status.entries_free, 9);
    cr_assert_eq(call->response.instance_status.n_operations, 1);
    driver_finish_ok(driver, call);
    driver_expect(driver, model_call_new(MODEL_CALL_EXECUTE), MODEL_REASON_INVALID_FIELD);
    driver_free(driver);
}

/* 0 is said only once the lease has run out. */
Test(registry, status_of_the_last_microsecond_of_a_lease)
{
    struct driver *driver = driver_new();
    struct model_call *call;

    driver_serve(driver);
    test_env_advance_us(&driver->env, DRIVER_FENCE_US - 1);
    call = driver_submit(driver, model_call_new(MODEL_CALL_INSTANCE_STATUS));
    cr_assert(call->response.instance_status.serving);
    cr_assert_eq(call->response.instance_status.fence_in_ms, 1);
    driver_finish_ok(driver, call);
    test_env_advance_us(&driver->env, 1);
    call = driver_submit(driver, model_call_new(MODEL_CALL_INSTANCE_STATUS));
    cr_assert_not(call->response.instance_status.serving);
    cr_assert_eq(call->response.instance_status.fence_in_ms, 0);
    driver_finish_ok(driver, call);
    driver_free(driver);
}
