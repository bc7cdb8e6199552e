/*
 * Session: opening, lease, the course of statements, locks, closing. The reactions to failures are
 * in test_reactions.c.
 */
#include "esi-client/session.h"

#include "tests/support/check.h"
#include "tests/unit/esi/session_fixture.h"

TestSuite(session, .fini = test_alloc_expect_none);

Test(session, opens_with_name_and_request_id)
{
    struct session_fixture f;
    struct model_call *call;

    session_fixture_init(&f);
    cr_assert_eq(esi_session_state(f.session), ESI_SESSION_OPENING);
    esi_session_open(f.session);
    call = scripted_take(&f.scripted, MODEL_CALL_OPEN_SESSION);
    cr_assert_str_eq(call->request.open_session.name, "esi-1");
    cr_assert_eq(call->request.open_session.request_id.client.bytes[0], 0xc1);
    cr_assert_geq(call->request.open_session.request_id.seq, 1);
    cr_assert_eq(call->deadline_us, f.scripted.fake.now_us + 5000000);
    model_response_ok(&call->response, MODEL_CALL_OPEN_SESSION);
    call->response.open_session.lease_ms = SCRIPTED_LEASE_MS;
    esi_session_call_done(f.session, call);
    cr_assert_eq(esi_session_state(f.session), ESI_SESSION_OPEN);
    cr_assert_null(esi_session_failure(f.session));
    cr_assert_eq(esi_session_failure_code(f.session), RT_OK);
    session_fixture_deinit(&f);
}

Test(session, open_is_retried_with_the_same_id_and_then_renewed_at_once)
{
    struct session_fixture f;
    struct model_call *call;
    uint64_t seq;

    session_fixture_init(&f);
    f.scripted.answer_keep_alives = false;
    esi_session_open(f.session);
    call = scripted_take(&f.scripted, MODEL_CALL_OPEN_SESSION);
    seq = call->request.open_session.request_id.seq;
    scripted_fail_plain(&f.scripted, call, RT_UNAVAILABLE);
    cr_assert_eq(scripted_n_calls(&f.scripted), 0);
    (void)scripted_wake(&f.scripted);
    call = scripted_take(&f.scripted, MODEL_CALL_OPEN_SESSION);
    cr_assert_eq(call->request.open_session.request_id.seq, seq);
    model_response_ok(&call->response, MODEL_CALL_OPEN_SESSION);
    call->response.open_session.lease_ms = SCRIPTED_LEASE_MS;
    esi_session_call_done(f.session, call);
    scripted_ok(&f.scripted, scripted_take(&f.scripted, MODEL_CALL_KEEP_ALIVE));
    cr_assert_eq(esi_session_state(f.session), ESI_SESSION_OPEN);
    session_fixture_deinit(&f);
}

Test(session, open_ends_with_the_statement_timeout)
{
    struct session_fixture f;
    uint64_t began;

    session_fixture_init(&f);
    began = f.scripted.fake.now_us;
    esi_session_open(f.session);
    while (esi_session_state(f.session) == ESI_SESSION_OPENING) {
        scripted_fail_plain(&f.scripted, scripted_take(&f.scripted, MODEL_CALL_OPEN_SESSION),
                            RT_UNAVAILABLE);
        if (esi_session_state(f.session) == ESI_SESSION_OPENING)
            (void)scripted_wake(&f.scripted);
    }
    cr_assert_eq(esi_session_state(f.session), ESI_SESSION_CLOSED);
    cr_assert_eq(esi_session_failure_code(f.session), RT_UNAVAILABLE);
    cr_assert_str_eq(esi_session_failure(f.session)->message, "connection reset");
    cr_assert_leq(f.scripted.fake.now_us, began + SESSION_FIXTURE_TIMEOUT_US);
    cr_assert_geq(f.scripted.fake.now_us, began + SESSION_FIXTURE_TIMEOUT_US - 1000000);
    cr_assert_eq(esi_session_next_wakeup_us(f.session), RT_NEVER);
    session_fixture_deinit(&f);
}

Test(session, open_without_any_answer_is_a_deadline)
{
    struct session_fixture f;

    session_fixture_init(&f);
    esi_session_open(f.session);
    while (esi_session_state(f.session) == ESI_SESSION_OPENING)
        (void)scripted_wake(&f.scripted);
    cr_assert_eq(esi_session_failure_code(f.session), RT_DEADLINE_EXCEEDED);
    cr_assert_not_null(strstr(esi_session_failure(f.session)->message, "coordinator:7400"));
    session_fixture_deinit(&f);
}

/* The time that was given, and not what the last attempt got of it. */
Test(session, no_answer_is_told_with_the_time_that_was_given)
{
    struct session_fixture f;
    struct model_call *call;
    uint64_t began;

    session_fixture_init(&f);
    began = f.scripted.fake.now_us;
    esi_session_open(f.session);
    scripted_fail_plain(&f.scripted, scripted_take(&f.scripted, MODEL_CALL_OPEN_SESSION),
                        RT_UNAVAILABLE);
    (void)scripted_wake(&f.scripted);
    call = scripted_take(&f.scripted, MODEL_CALL_OPEN_SESSION);
    f.scripted.fake.now_us = began + SESSION_FIXTURE_TIMEOUT_US - 200000;
    scripted_fail_plain(&f.scripted, call, RT_UNAVAILABLE);
    while (esi_session_state(f.session) == ESI_SESSION_OPENING)
        (void)scripted_wake(&f.scripted);
    cr_assert_not_null(strstr(esi_session_failure(f.session)->message, "within 8000 ms"), "%s",
                       esi_session_failure(f.session)->message);
    session_fixture_deinit(&f);
}

Test(session, open_refused_fails_at_once)
{
    struct session_fixture f;

    session_fixture_init(&f);
    esi_session_open(f.session);
    scripted_fail_plain(&f.scripted, scripted_take(&f.scripted, MODEL_CALL_OPEN_SESSION),
                        RT_UNAUTHENTICATED);
    cr_assert_eq(esi_session_state(f.session), ESI_SESSION_CLOSED);
    cr_assert_eq(esi_session_failure_code(f.session), RT_UNAUTHENTICATED);
    session_fixture_deinit(&f);
}

/* The coordinator believes that it is open: it is closed there before the failure is told. */
Test(session, open_with_a_nonsensical_lease_fails_and_closes)
{
    struct session_fixture f;
    struct model_call *call;

    session_fixture_init(&f);
    esi_session_open(f.session);
    call = scripted_take(&f.scripted, MODEL_CALL_OPEN_SESSION);
    model_response_ok(&call->response, MODEL_CALL_OPEN_SESSION);
    call->response.open_session.session_id.bytes[0] = 7;
    call->response.open_session.lease_ms = 1;
    esi_session_call_done(f.session, call);
    cr_assert_eq(esi_session_state(f.session), ESI_SESSION_OPENING);
    call = scripted_take(&f.scripted, MODEL_CALL_CLOSE_SESSION);
    cr_assert_eq(call->request.session.session_id.bytes[0], 7);
    scripted_ok(&f.scripted, call);
    cr_assert_eq(esi_session_state(f.session), ESI_SESSION_CLOSED);
    cr_assert_eq(esi_session_failure_code(f.session), RT_INTERNAL);
    cr_assert_not_null(strstr(esi_session_failure(f.session)->message, "lease of 1 ms"));
    cr_assert_eq(esi_session_next_wakeup_us(f.session), RT_NEVER);
    session_fixture_deinit(&f);
}

Test(session, a_nonsensical_lease_is_told_when_its_close_is_not_answered)
{
    struct session_fixture f;
    struct model_call *call;

    session_fixture_init(&f);
    esi_session_open(f.session);
    call = scripted_take(&f.scripted, MODEL_CALL_OPEN_SESSION);
    model_response_ok(&call->response, MODEL_CALL_OPEN_SESSION);
    call->response.open_session.lease_ms = 1;
    esi_session_call_done(f.session, call);
    while (esi_session_state(f.session) != ESI_SESSION_CLOSED)
        (void)scripted_wake(&f.scripted);
    cr_assert_not_null(strstr(esi_session_failure(f.session)->message, "lease of 1 ms"));
    session_fixture_deinit(&f);
}

Test(session, keep_alive_every_third_of_the_lease)
{
    struct session_fixture f;
    struct model_call *call;

    session_fixture_open(&f);
    f.scripted.answer_keep_alives = false;
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(scripted_wake(&f.scripted), 3000000);
        call = scripted_take(&f.scripted, MODEL_CALL_KEEP_ALIVE);
        cr_assert_eq(call->request.session.session_id.bytes[0], 0x5e);
        cr_assert_eq(call->deadline_us, f.scripted.fake.now_us + 2400000);
        scripted_ok(&f.scripted, call);
    }
    session_fixture_deinit(&f);
}

Test(session, lease_is_counted_from_sending)
{
    struct session_fixture f;
    struct model_call *call;
    uint64_t sent;

    session_fixture_open(&f);
    f.scripted.answer_keep_alives = false;
    (void)scripted_wake(&f.scripted);
    sent = f.scripted.fake.now_us;
    call = scripted_take(&f.scripted, MODEL_CALL_KEEP_ALIVE);
    test_env_advance_ms(&f.scripted.fake, 2000);
    scripted_ok(&f.scripted, call);
    /* The next ones are lost: the fence is 7.5 s after the sending, not after the answer. */
    while (esi_session_state(f.session) == ESI_SESSION_OPEN)
        (void)scripted_wake(&f.scripted);
    cr_assert_eq(f.scripted.fake.now_us, sent + 7500000);
    cr_assert_eq(esi_session_failure(f.session)->reason, MODEL_REASON_SESSION_UNKNOWN);
    cr_assert_eq(esi_session_failure_code(f.session), RT_FAILED_PRECONDITION);
    session_fixture_deinit(&f);
}

Test(session, failed_keep_alives_are_repeated_within_the_lease)
{
    struct session_fixture f;
    uint64_t opened;

    session_fixture_open(&f);
    opened = f.scripted.fake.now_us;
    f.scripted.answer_keep_alives = false;
    for (int i = 0; i < 4; i++) {
        (void)scripted_wake(&f.scripted);
        scripted_fail_plain(&f.scripted, scripted_take(&f.scripted, MODEL_CALL_KEEP_ALIVE),
                            RT_UNAVAILABLE);
    }
    cr_assert_lt(f.scripted.fake.now_us, opened + 4000000);
    (void)scripted_wake(&f.scripted);
    scripted_ok(&f.scripted, scripted_take(&f.scripted, MODEL_CALL_KEEP_ALIVE));
    f.scripted.answer_keep_alives = true;
    scripted_pass(&f.scripted, 60000000);
    cr_assert_eq(esi_session_state(f.session), ESI_SESSION_OPEN);
    session_fixture_deinit(&f);
}

Test(session, keep_alive_to_an_unknown_session_closes_it)
{
    struct session_fixture f;

    session_fixture_open(&f);
    f.scripted.answer_keep_alives = false;
    (void)scripted_wake(&f.scripted);
    scripted_fail(&f.scripted, scripted_take(&f.scripted, MODEL_CALL_KEEP_ALIVE),
                  MODEL_REASON_SESSION_UNKNOWN);
    cr_assert_eq(esi_session_state(f.session), ESI_SESSION_CLOSED);
    cr_assert_eq(esi_session_failure(f.session)->reason, MODEL_REASON_SESSION_UNKNOWN);
    cr_assert_eq(scripted_n_calls(&f.scripted), 0);
    cr_assert(esi_session_is_over(f.session));
    session_fixture_deinit(&f);
}

Test(session, lease_runs_out_before_the_statement_is_sent)
{
    struct session_fixture f;

    session_fixture_open(&f);
    f.scripted.answer_keep_alives = false;
    test_env_advance_ms(&f.scripted.fake, 7500);
    session_fixture_execute(&f, MODEL_STATEMENT_SET, "k", "v");
    session_fixture_expect_failure(&f, ESI_OUTCOME_FAILED, MODEL_REASON_SESSION_UNKNOWN);
    cr_assert_eq(esi_session_state(f.session), ESI_SESSION_CLOSED);
    cr_assert_eq(scripted_n_calls(&f.scripted), 0);
    cr_assert_not(esi_session_is_over(f.session));
    session_fixture_deinit(&f);
}

Test(session, lease_runs_out_with_a_statement_under_way)
{
    struct session_fixture f;

    session_fixture_open(&f);
    f.scripted.answer_keep_alives = false;
    session_fixture_execute(&f, MODEL_STATEMENT_SET, "k", "v");
    while (esi_session_state(f.session) == ESI_SESSION_BUSY)
        (void)scripted_wake(&f.scripted);
    session_fixture_expect_failure(&f, ESI_OUTCOME_UNKNOWN, MODEL_REASON_SESSION_UNKNOWN);
    cr_assert_eq(esi_session_state(f.session), ESI_SESSION_CLOSED);
    session_fixture_deinit(&f);
}

Test(session, lease_runs_out_with_only_refused_attempts)
{
    struct session_fixture f;

    session_fixture_open(&f);
    f.scripted.answer_keep_alives = false;
    session_fixture_execute(&f, MODEL_STATEMENT_SET, "k", "v");
    test_env_advance_ms(&f.scripted.fake, 7490);
    scripted_fail(&f.scripted, scripted_take_execute(&f.scripted, MODEL_STATEMENT_SET),
                  MODEL_REASON_MOVING);
    test_env_advance_ms(&f.scripted.fake, 10);
    esi_session_tick(f.session);
    session_fixture_expect_failure(&f, ESI_OUTCOME_FAILED, MODEL_REASON_SESSION_UNKNOWN);
    session_fixture_deinit(&f);
}

Test(session, a_lock_granted_after_the_lease_is_not_claimed)
{
    struct session_fixture f;
    struct model_call *call;

    session_fixture_open(&f);
    f.scripted.answer_keep_alives = false;
    session_fixture_execute(&f, MODEL_STATEMENT_GET, "k", "");
    call = scripted_take_execute(&f.scripted, MODEL_STATEMENT_GET);
    test_env_advance_ms(&f.scripted.fake, 7500);
    scripted_done(&f.scripted, call, 7, 0);
    session_fixture_expect_failure(&f, ESI_OUTCOME_UNKNOWN, MODEL_REASON_SESSION_UNKNOWN);
    cr_assert_eq(esi_session_state(f.session), ESI_SESSION_CLOSED);
    session_fixture_deinit(&f);
}

Test(session, a_write_acknowledged_after_the_lease_is_still_acknowledged)
{
    struct session_fixture f;
    struct model_call *call;

    session_fixture_open(&f);
    f.scripted.answer_keep_alives = false;
    session_fixture_execute(&f, MODEL_STATEMENT_SET, "k", "v");
    call = scripted_take_execute(&f.scripted, MODEL_STATEMENT_SET);
    test_env_advance_ms(&f.scripted.fake, 7500);
    scripted_done(&f.scripted, call, 0, 1);
    session_fixture_expect(&f, ESI_OUTCOME_OK);
    cr_assert_eq(esi_session_state(f.session), ESI_SESSION_CLOSED);
    session_fixture_deinit(&f);
}

Test(session, statements_carry_rising_ids_and_what_is_done)
{
    struct session_fixture f;
    struct model_call *call;
    uint64_t previous = 0;

    session_fixture_open(&f);
    for (int i = 0; i < 3; i++) {
        session_fixture_execute(&f, MODEL_STATEMENT_GET, "k", "");
        cr_assert_eq(esi_session_state(f.session), ESI_SESSION_BUSY);
        call = scripted_take_execute(&f.scripted, MODEL_STATEMENT_GET);
        cr_assert_gt(call->request.execute.request_id.seq, previous);
        previous = call->request.execute.request_id.seq;
        cr_assert_eq(call->request.execute.request_id.client.bytes[0], 0xc1);
        cr_assert_eq(call->request.execute.done_below, previous);
        cr_assert_eq(call->request.execute.session_id.bytes[0], 0x5e);
        cr_assert(rt_bytes_equal(call->request.execute.key, RT_BYTES_LITERAL("k")));
        scripted_done(&f.scripted, call, 7, 0);
        session_fixture_expect(&f, ESI_OUTCOME_OK);
        cr_assert_eq(esi_session_state(f.session), ESI_SESSION_OPEN);
    }
    session_fixture_deinit(&f);
}

Test(session, result_keeps_the_value_the_latency_and_the_attempts)
{
    struct session_fixture f;
    struct model_call *call;
    struct esi_result *result;

    session_fixture_open(&f);
    session_fixture_execute(&f, MODEL_STATEMENT_GET, "k", "");
    call = scripted_take_execute(&f.scripted, MODEL_STATEMENT_GET);
    test_env_advance_us(&f.scripted.fake, 1234);
    cr_assert(
        rt_arena_copy(&call->arena, RT_BYTES_LITERAL("value"), &call->response.execute.data.value));
    call->response.code = RT_OK;
    call->response.execute = (struct model_execute_response){
        .data = {.has_value = true, .value = call->response.execute.data.value}, .lock_token = 9};
    esi_session_call_done(f.session, call);
    result = esi_session_take_result(f.session);
    cr_assert_eq(result->outcome, ESI_OUTCOME_OK);
    cr_assert(rt_bytes_equal(result->response.data.value, RT_BYTES_LITERAL("value")));
    cr_assert_eq(result->latency_us, 1234);
    cr_assert_eq(result->attempts, 1);
    cr_assert_eq(result->statement.line, 1);
    cr_assert_null(esi_session_take_result(f.session));
    (void)esi_result_free(result);
    cr_assert_null(esi_result_free(NULL));
    session_fixture_deinit(&f);
}

Test(session, set_and_store_show_the_token_and_the_last_set)
{
    struct session_fixture f;
    struct model_call *call;

    session_fixture_open(&f);
    session_fixture_run(&f, MODEL_STATEMENT_GET, 7, 0);
    session_fixture_execute(&f, MODEL_STATEMENT_SET, "k", "v");
    call = scripted_take_execute(&f.scripted, MODEL_STATEMENT_SET);
    cr_assert_eq(call->request.execute.lock_token, 7);
    cr_assert(rt_bytes_equal(call->request.execute.value, RT_BYTES_LITERAL("v")));
    cr_assert_not(call->request.execute.has_last_set);
    scripted_done(&f.scripted, call, 0, 4);
    session_fixture_expect(&f, ESI_OUTCOME_OK);

    session_fixture_execute(&f, MODEL_STATEMENT_STORE, "k", "");
    call = scripted_take_execute(&f.scripted, MODEL_STATEMENT_STORE);
    cr_assert_eq(call->request.execute.lock_token, 7);
    cr_assert(call->request.execute.has_last_set);
    cr_assert_eq(call->request.execute.last_set.seq, 4);
    scripted_done(&f.scripted, call, 0, 5);
    session_fixture_expect(&f, ESI_OUTCOME_OK);
    session_fixture_deinit(&f);
}

Test(session, store_without_a_set_names_none)
{
    struct session_fixture f;
    struct model_call *call;

    session_fixture_open(&f);
    session_fixture_run(&f, MODEL_STATEMENT_GET, 7, 0);
    session_fixture_execute(&f, MODEL_STATEMENT_STORE, "k", "");
    call = scripted_take_execute(&f.scripted, MODEL_STATEMENT_STORE);
    cr_assert_not(call->request.execute.has_last_set);
    scripted_done(&f.scripted, call, 0, 0);
    session_fixture_deinit(&f);
}

Test(session, c42_set_after_store_shows_the_old_token_and_is_not_locked)
{
    struct session_fixture f;
    struct model_call *call;

    session_fixture_open(&f);
    session_fixture_run(&f, MODEL_STATEMENT_GET, 7, 0);
    session_fixture_run(&f, MODEL_STATEMENT_SET, 0, 1);
    session_fixture_run(&f, MODEL_STATEMENT_STORE, 0, 2);
    session_fixture_execute(&f, MODEL_STATEMENT_SET, "k", "again");
    call = scripted_take_execute(&f.scripted, MODEL_STATEMENT_SET);
    cr_assert_eq(call->request.execute.lock_token, 7);
    scripted_fail(&f.scripted, call, MODEL_REASON_KEY_NOT_LOCKED);
    session_fixture_expect_failure(&f, ESI_OUTCOME_FAILED, MODEL_REASON_KEY_NOT_LOCKED);

    /* A STORE now would owe nothing: the earlier SET was stored. */
    session_fixture_execute(&f, MODEL_STATEMENT_STORE, "k", "");
    call = scripted_take_execute(&f.scripted, MODEL_STATEMENT_STORE);
    cr_assert_not(call->request.execute.has_last_set);
    scripted_fail(&f.scripted, call, MODEL_REASON_KEY_NOT_LOCKED);
    session_fixture_deinit(&f);
}

Test(session, put_and_delete_show_the_token_get_and_read_claim_none)
{
    static const struct {
        enum model_statement_kind kind;
        uint64_t token;
    } expected[] = {{MODEL_STATEMENT_GET, 0},
                    {MODEL_STATEMENT_READ, 0},
                    {MODEL_STATEMENT_DELETE, 7},
                    {MODEL_STATEMENT_PUT, 7}};
    struct session_fixture f;

    session_fixture_open(&f);
    session_fixture_run(&f, MODEL_STATEMENT_GET, 7, 0);
    for (size_t i = 0; i < RT_ARRAY_SIZE(expected); i++) {
        struct model_call *call;

        session_fixture_execute(&f, expected[i].kind, "k", "");
        call = scripted_take_execute(&f.scripted, expected[i].kind);
        cr_assert_eq(call->request.execute.lock_token, expected[i].token);
        scripted_done(&f.scripted, call, 7, 0);
        session_fixture_expect(&f, ESI_OUTCOME_OK);
    }
    session_fixture_deinit(&f);
}

Test(session, a_set_before_a_delete_is_not_owed_to_the_store)
{
    struct session_fixture f;
    struct model_call *call;

    session_fixture_open(&f);
    session_fixture_run(&f, MODEL_STATEMENT_GET, 7, 0);
    session_fixture_run(&f, MODEL_STATEMENT_SET, 0, 1);
    session_fixture_run(&f, MODEL_STATEMENT_DELETE, 0, 2);
    session_fixture_execute(&f, MODEL_STATEMENT_STORE, "k", "");
    call = scripted_take_execute(&f.scripted, MODEL_STATEMENT_STORE);
    cr_assert_not(call->request.execute.has_last_set);
    scripted_done(&f.scripted, call, 0, 2);
    session_fixture_deinit(&f);
}

Test(session, a_set_without_the_lock_is_not_owed_to_the_store)
{
    struct session_fixture f;
    struct model_call *call;

    session_fixture_open(&f);
    session_fixture_run(&f, MODEL_STATEMENT_GET, 7, 0);
    session_fixture_run(&f, MODEL_STATEMENT_STORE, 0, 1);
    session_fixture_run(&f, MODEL_STATEMENT_SET, 0, 2);
    session_fixture_execute(&f, MODEL_STATEMENT_STORE, "k", "");
    call = scripted_take_execute(&f.scripted, MODEL_STATEMENT_STORE);
    cr_assert_not(call->request.execute.has_last_set);
    scripted_done(&f.scripted, call, 0, 2);
    session_fixture_deinit(&f);
}

Test(session, c43_second_get_by_the_holder_keeps_the_last_set)
{
    struct session_fixture f;
    struct model_call *call;

    session_fixture_open(&f);
    session_fixture_run(&f, MODEL_STATEMENT_GET, 7, 0);
    session_fixture_run(&f, MODEL_STATEMENT_SET, 0, 4);
    session_fixture_run(&f, MODEL_STATEMENT_GET, 7, 4);
    session_fixture_execute(&f, MODEL_STATEMENT_STORE, "k", "");
    call = scripted_take_execute(&f.scripted, MODEL_STATEMENT_STORE);
    cr_assert(call->request.execute.has_last_set);
    cr_assert_eq(call->request.execute.last_set.seq, 4);
    scripted_done(&f.scripted, call, 0, 5);
    session_fixture_deinit(&f);
}

Test(session, waiting_is_an_event_then_await_then_get_again)
{
    struct session_fixture f;
    struct model_call *call;
    struct esi_result *result;
    uint64_t first_seq;

    session_fixture_open(&f);
    session_fixture_execute(&f, MODEL_STATEMENT_GET, "k", "");
    call = scripted_take_execute(&f.scripted, MODEL_STATEMENT_GET);
    first_seq = call->request.execute.request_id.seq;
    session_fixture_answer_waiting(&f, call, "other");
    result = esi_session_take_result(f.session);
    cr_assert_eq(result->outcome, ESI_OUTCOME_WAITING);
    cr_assert_eq(result->code, RT_OK);
    cr_assert_str_eq(result->response.holder, "other");
    (void)esi_result_free(result);
    cr_assert_eq(esi_session_state(f.session), ESI_SESSION_BUSY);

    call = scripted_take_execute(&f.scripted, MODEL_STATEMENT_AWAIT);
    cr_assert(rt_bytes_equal(call->request.execute.key, RT_BYTES_LITERAL("k")));
    cr_assert_gt(call->request.execute.request_id.seq, first_seq);
    session_fixture_answer_ready(&f, call);

    call = scripted_take_execute(&f.scripted, MODEL_STATEMENT_GET);
    cr_assert_gt(call->request.execute.request_id.seq, first_seq + 1);
    scripted_done(&f.scripted, call, 8, 0);
    session_fixture_expect(&f, ESI_OUTCOME_OK);
    session_fixture_deinit(&f);
}

Test(session, waiting_has_no_deadline_and_the_get_after_it_has_a_fresh_one)
{
    struct session_fixture f;
    struct model_call *call;

    session_fixture_open(&f);
    session_fixture_execute(&f, MODEL_STATEMENT_GET, "k", "");
    session_fixture_answer_waiting(&f, scripted_take_execute(&f.scripted, MODEL_STATEMENT_GET),
                                   "other");
    session_fixture_expect(&f, ESI_OUTCOME_WAITING);
    for (int i = 0; i < 100; i++) {
        call = scripted_take_execute(&f.scripted, MODEL_STATEMENT_AWAIT);
        cr_assert_eq(call->deadline_us, f.scripted.fake.now_us + 5000000);
        while (scripted_n_calls(&f.scripted) == 0)
            (void)scripted_wake(&f.scripted);
        cr_assert_geq(f.scripted.fake.now_us, call->deadline_us + 10000);
        cr_assert_leq(f.scripted.fake.now_us, call->deadline_us + 30000);
        scripted_fail_plain(&f.scripted, call, RT_DEADLINE_EXCEEDED);
        cr_assert_eq(esi_session_state(f.session), ESI_SESSION_BUSY);
    }
    session_fixture_answer_ready(&f, scripted_take_execute(&f.scripted, MODEL_STATEMENT_AWAIT));
    call = scripted_take_execute(&f.scripted, MODEL_STATEMENT_GET);
    cr_assert_eq(call->deadline_us, f.scripted.fake.now_us + 5000000);
    scripted_fail(&f.scripted, call, MODEL_REASON_MOVING);
    cr_assert_eq(esi_session_state(f.session), ESI_SESSION_BUSY);
    (void)scripted_wake(&f.scripted);
    scripted_done(&f.scripted, scripted_take_execute(&f.scripted, MODEL_STATEMENT_GET), 8, 0);
    session_fixture_expect(&f, ESI_OUTCOME_OK);
    session_fixture_deinit(&f);
}

Test(session, a_woken_get_may_have_to_wait_again)
{
    struct session_fixture f;

    session_fixture_open(&f);
    session_fixture_execute(&f, MODEL_STATEMENT_GET, "k", "");
    for (int i = 0; i < 3; i++) {
        session_fixture_answer_waiting(&f, scripted_take_execute(&f.scripted, MODEL_STATEMENT_GET),
                                       "other");
        session_fixture_expect(&f, ESI_OUTCOME_WAITING);
        session_fixture_answer_ready(&f, scripted_take_execute(&f.scripted, MODEL_STATEMENT_AWAIT));
    }
    scripted_done(&f.scripted, scripted_take_execute(&f.scripted, MODEL_STATEMENT_GET), 8, 0);
    session_fixture_expect(&f, ESI_OUTCOME_OK);
    session_fixture_deinit(&f);
}

Test(session, lost_lease_while_waiting_is_a_failure_without_effect)
{
    struct session_fixture f;

    session_fixture_open(&f);
    session_fixture_execute(&f, MODEL_STATEMENT_GET, "k", "");
    session_fixture_answer_waiting(&f, scripted_take_execute(&f.scripted, MODEL_STATEMENT_GET),
                                   "other");
    session_fixture_expect(&f, ESI_OUTCOME_WAITING);
    f.scripted.answer_keep_alives = false;
    while (esi_session_state(f.session) == ESI_SESSION_BUSY)
        (void)scripted_wake(&f.scripted);
    session_fixture_expect_failure(&f, ESI_OUTCOME_FAILED, MODEL_REASON_SESSION_UNKNOWN);
    session_fixture_deinit(&f);
}

Test(session, an_outcome_that_does_not_belong_is_unknown)
{
    struct session_fixture f;

    session_fixture_open(&f);
    session_fixture_execute(&f, MODEL_STATEMENT_SET, "k", "v");
    session_fixture_answer_waiting(&f, scripted_take_execute(&f.scripted, MODEL_STATEMENT_SET),
                                   "other");
    session_fixture_expect_failure(&f, ESI_OUTCOME_UNKNOWN, MODEL_REASON_NONE);

    session_fixture_execute(&f, MODEL_STATEMENT_GET, "k", "");
    session_fixture_answer_waiting(&f, scripted_take_execute(&f.scripted, MODEL_STATEMENT_GET),
                                   "other");
    session_fixture_expect(&f, ESI_OUTCOME_WAITING);
    scripted_done(&f.scripted, scripted_take_execute(&f.scripted, MODEL_STATEMENT_AWAIT), 0, 0);
    session_fixture_expect_failure(&f, ESI_OUTCOME_FAILED, MODEL_REASON_NONE);
    cr_assert_eq(esi_session_state(f.session), ESI_SESSION_OPEN);
    session_fixture_deinit(&f);
}

Test(session, close_ends_the_session_at_the_coordinator)
{
    struct session_fixture f;
    struct model_call *call;

    session_fixture_open(&f);
    esi_session_close(f.session);
    cr_assert_eq(esi_session_state(f.session), ESI_SESSION_CLOSING);
    esi_session_close(f.session);
    call = scripted_take(&f.scripted, MODEL_CALL_CLOSE_SESSION);
    cr_assert_eq(call->request.session.session_id.bytes[0], 0x5e);
    cr_assert_eq(call->deadline_us, f.scripted.fake.now_us + 2000000);
    scripted_ok(&f.scripted, call);
    cr_assert_eq(esi_session_state(f.session), ESI_SESSION_CLOSED);
    cr_assert_null(esi_session_failure(f.session));
    esi_session_close(f.session);
    cr_assert_eq(scripted_n_calls(&f.scripted), 0);
    cr_assert(esi_session_is_over(f.session));
    session_fixture_deinit(&f);
}

Test(session, close_is_tried_for_two_seconds)
{
    struct session_fixture f;
    uint64_t began;
    size_t n = 0;

    session_fixture_open(&f);
    began = f.scripted.fake.now_us;
    esi_session_close(f.session);
    while (esi_session_state(f.session) == ESI_SESSION_CLOSING) {
        n++;
        scripted_fail_plain(&f.scripted, scripted_take(&f.scripted, MODEL_CALL_CLOSE_SESSION),
                            RT_UNAVAILABLE);
        if (esi_session_state(f.session) == ESI_SESSION_CLOSING)
            (void)scripted_wake(&f.scripted);
    }
    cr_assert_gt(n, 3);
    cr_assert_leq(f.scripted.fake.now_us, began + 2000000);
    cr_assert_null(esi_session_failure(f.session));
    cr_assert_not(esi_session_is_over(f.session));
    session_fixture_deinit(&f);
}

Test(session, no_keep_alive_follows_a_close)
{
    struct session_fixture f;

    session_fixture_open(&f);
    f.scripted.answer_keep_alives = false;
    scripted_pass(&f.scripted, 2000000);
    esi_session_close(f.session);
    (void)scripted_take(&f.scripted, MODEL_CALL_CLOSE_SESSION);
    scripted_pass(&f.scripted, 1900000);
    cr_assert_eq(scripted_n_calls(&f.scripted), 0);
    session_fixture_deinit(&f);
}

Test(session, close_without_an_answer_ends_after_two_seconds)
{
    struct session_fixture f;
    uint64_t began;

    session_fixture_open(&f);
    began = f.scripted.fake.now_us;
    esi_session_close(f.session);
    while (esi_session_state(f.session) == ESI_SESSION_CLOSING)
        (void)scripted_wake(&f.scripted);
    cr_assert_eq(f.scripted.fake.now_us, began + 2000000);
    cr_assert_not(esi_session_is_over(f.session));
    session_fixture_deinit(&f);
}

Test(session, close_gives_up_a_statement_that_was_sent)
{
    struct session_fixture f;
    struct model_call *late;

    session_fixture_open(&f);
    session_fixture_execute(&f, MODEL_STATEMENT_SET, "k", "v");
    late = scripted_take_execute(&f.scripted, MODEL_STATEMENT_SET);
    esi_session_close(f.session);
    session_fixture_expect_failure(&f, ESI_OUTCOME_UNKNOWN, MODEL_REASON_CANCELLED);
    scripted_done(&f.scripted, late, 0, 1);
    cr_assert_null(esi_session_take_result(f.session));
    cr_assert_eq(esi_session_state(f.session), ESI_SESSION_CLOSING);
    session_fixture_deinit(&f);
}

Test(session, close_gives_up_a_statement_that_waits_or_was_refused)
{
    struct session_fixture f;

    session_fixture_open(&f);
    session_fixture_execute(&f, MODEL_STATEMENT_GET, "k", "");
    scripted_fail(&f.scripted, scripted_take_execute(&f.scripted, MODEL_STATEMENT_GET),
                  MODEL_REASON_MOVING);
    esi_session_close(f.session);
    session_fixture_expect_failure(&f, ESI_OUTCOME_FAILED, MODEL_REASON_CANCELLED);
    session_fixture_deinit(&f);

    session_fixture_open(&f);
    session_fixture_execute(&f, MODEL_STATEMENT_GET, "k", "");
    session_fixture_answer_waiting(&f, scripted_take_execute(&f.scripted, MODEL_STATEMENT_GET),
                                   "other");
    session_fixture_expect(&f, ESI_OUTCOME_WAITING);
    esi_session_close(f.session);
    session_fixture_expect_failure(&f, ESI_OUTCOME_FAILED, MODEL_REASON_CANCELLED);
    session_fixture_deinit(&f);
}

Test(session, close_while_opening_is_immediate)
{
    struct session_fixture f;
    struct model_call *late;

    session_fixture_init(&f);
    esi_session_open(f.session);
    late = scripted_take(&f.scripted, MODEL_CALL_OPEN_SESSION);
    esi_session_close(f.session);
    cr_assert_eq(esi_session_state(f.session), ESI_SESSION_CLOSED);
    cr_assert_null(esi_session_failure(f.session));
    scripted_ok(&f.scripted, late);
    cr_assert_eq(esi_session_state(f.session), ESI_SESSION_CLOSED);
    session_fixture_deinit(&f);
}

Test(session, free_releases_calls_that_never_came_back)
{
    struct session_fixture f;

    session_fixture_open(&f);
    session_fixture_execute(&f, MODEL_STATEMENT_SET, "k", "v");
    (void)scripted_take_execute(&f.scripted, MODEL_STATEMENT_SET);
    session_fixture_deinit(&f);
    cr_assert_null(esi_session_free(NULL));
}

Test(session, no_memory_for_the_request_fails_the_statement_without_effect)
{
    struct session_fixture f;

    session_fixture_open(&f);
    test_alloc_fail_after(0, TEST_ALLOC_FOREVER);
    session_fixture_execute(&f, MODEL_STATEMENT_SET, "k", "v");
    test_alloc_fail_never();
    cr_assert_gt(test_alloc_failures(), 0);
    session_fixture_expect_failure(&f, ESI_OUTCOME_FAILED, MODEL_REASON_LIMIT_REACHED);
    cr_assert_eq(scripted_n_calls(&f.scripted), 0);
    session_fixture_run(&f, MODEL_STATEMENT_SET, 0, 1);
    session_fixture_deinit(&f);
}
