/*
 * How a session reacts to each kind of failed answer on the routed path: one test a row of the
 * table "How a client reacts", then the bounds, then the arithmetic of retry.h.
 */
#include "esi-client/retry.h"

#include "tests/support/check.h"
#include "tests/unit/esi/session_fixture.h"

TestSuite(reactions, .fini = test_alloc_expect_none);

/* A SET under way, its first attempt taken. */
static struct model_call *begin_set(struct session_fixture *f)
{
    session_fixture_open(f);
    session_fixture_execute(f, MODEL_STATEMENT_SET, "k", "v");
    return scripted_take_execute(&f->scripted, MODEL_STATEMENT_SET);
}

/* The retry after the answer just given: same id, not at once, not late. */
static struct model_call *take_retry(struct session_fixture *f, uint64_t seq, uint64_t min_us,
                                     uint64_t max_us)
{
    struct model_call *call;
    uint64_t waited;

    cr_assert_eq(esi_session_state(f->session), ESI_SESSION_BUSY);
    cr_assert_eq(scripted_n_calls(&f->scripted), 0);
    waited = scripted_wake(&f->scripted);
    cr_assert_geq(waited, min_us);
    cr_assert_leq(waited, max_us);
    call = scripted_take_execute(&f->scripted, MODEL_STATEMENT_SET);
    cr_assert_eq(call->request.execute.request_id.seq, seq);
    return call;
}

static void expect_retry_then_success(enum model_reason reason)
{
    struct session_fixture f;
    struct model_call *call = begin_set(&f);
    uint64_t seq = call->request.execute.request_id.seq;

    scripted_fail(&f.scripted, call, reason);
    scripted_done(&f.scripted, take_retry(&f, seq, 10000, 30000), 0, 1);
    session_fixture_expect(&f, ESI_OUTCOME_OK);
    session_fixture_deinit(&f);
}

static void expect_failure_at_once(enum model_reason reason)
{
    struct session_fixture f;
    struct model_call *call = begin_set(&f);

    scripted_fail(&f.scripted, call, reason);
    session_fixture_expect_failure(&f, ESI_OUTCOME_FAILED, reason);
    cr_assert_eq(scripted_n_calls(&f.scripted), 0);
    cr_assert_eq(esi_session_state(f.session), ESI_SESSION_OPEN);
    session_fixture_deinit(&f);
}

/* Fails every attempt alike until the statement ends; returns how many there were. */
static uint32_t fail_all(struct session_fixture *f, struct model_call *call,
                         enum model_reason reason)
{
    uint32_t n = 1;

    scripted_fail(&f->scripted, call, reason);
    while (esi_session_state(f->session) == ESI_SESSION_BUSY) {
        (void)scripted_wake(&f->scripted);
        if (scripted_n_calls(&f->scripted) == 0)
            continue;
        scripted_fail(&f->scripted, scripted_take(&f->scripted, MODEL_CALL_EXECUTE), reason);
        n++;
    }
    return n;
}

Test(reactions, unavailable_not_applied_is_retried)
{
    expect_retry_then_success(MODEL_REASON_MOVING);
    expect_retry_then_success(MODEL_REASON_NOT_SERVING);
    expect_retry_then_success(MODEL_REASON_LEASE_EXPIRED);
    expect_retry_then_success(MODEL_REASON_NO_INSTANCE);
    expect_retry_then_success(MODEL_REASON_OWNER_DOWN);
    expect_retry_then_success(MODEL_REASON_BARRIER);
    expect_retry_then_success(MODEL_REASON_DRAINING);
}

Test(reactions, deadline_and_cancel_not_applied_are_retried)
{
    expect_retry_then_success(MODEL_REASON_DEADLINE_EXCEEDED);
    expect_retry_then_success(MODEL_REASON_CANCELLED);
}

Test(reactions, a_retry_says_what_was_known_before_an_attempt_without_a_plain_no)
{
    struct session_fixture f;
    struct model_call *call = begin_set(&f);
    uint64_t seq = call->request.execute.request_id.seq;

    cr_assert_eq(call->request.execute.first_version, 0);
    call->response.responder.placement_version = 41;
    scripted_fail(&f.scripted, call, MODEL_REASON_MOVING);
    call = take_retry(&f, seq, 10000, 30000);
    cr_assert_eq(call->request.execute.first_version, 0, "nothing can have happened yet");
    call->response.responder.placement_version = 42;
    scripted_fail_plain(&f.scripted, call, RT_UNAVAILABLE);
    call = take_retry(&f, seq, 20000, 60000);
    cr_assert_eq(call->request.execute.first_version, 41);
    call->response.responder.placement_version = 43;
    scripted_fail(&f.scripted, call, MODEL_REASON_MOVING);
    call = take_retry(&f, seq, 40000, 120000);
    cr_assert_eq(call->request.execute.first_version, 41);
    scripted_done(&f.scripted, call, 0, 1);
    session_fixture_expect(&f, ESI_OUTCOME_OK);
    session_fixture_deinit(&f);
}

Test(reactions, unavailable_not_applied_ends_failed)
{
    struct session_fixture f;
    struct model_call *call = begin_set(&f);

    cr_assert_eq(fail_all(&f, call, MODEL_REASON_MOVING), ESI_RETRY_ATTEMPTS_MAX);
    session_fixture_expect_failure(&f, ESI_OUTCOME_FAILED, MODEL_REASON_MOVING);
    session_fixture_deinit(&f);
}

Test(reactions, retry_after_is_obeyed)
{
    struct session_fixture f;
    struct model_call *call = begin_set(&f);
    uint64_t seq = call->request.execute.request_id.seq;

    model_response_fail(&call->response, MODEL_REASON_NOT_SERVING, "starting");
    call->response.error.retry_after_ms = 1500;
    esi_session_call_done(f.session, call);
    scripted_done(&f.scripted, take_retry(&f, seq, 1500000, 1500000), 0, 1);
    session_fixture_expect(&f, ESI_OUTCOME_OK);
    session_fixture_deinit(&f);
}

Test(reactions, retry_after_past_the_deadline_ends_at_once)
{
    struct session_fixture f;
    struct model_call *call = begin_set(&f);

    model_response_fail(&call->response, MODEL_REASON_NOT_SERVING, "starting");
    call->response.error.retry_after_ms = SESSION_FIXTURE_TIMEOUT_US / 1000;
    esi_session_call_done(f.session, call);
    session_fixture_expect_failure(&f, ESI_OUTCOME_FAILED, MODEL_REASON_NOT_SERVING);
    session_fixture_deinit(&f);
}

Test(reactions, epoch_ahead_and_token_ahead_back_off)
{
    expect_retry_then_success(MODEL_REASON_EPOCH_AHEAD);
    expect_retry_then_success(MODEL_REASON_TOKEN_AHEAD);
}

static void expect_maybe_plain(enum rt_code code)
{
    struct session_fixture f;
    struct model_call *call = begin_set(&f);
    uint64_t seq = call->request.execute.request_id.seq;

    scripted_fail_plain(&f.scripted, call, code);
    call = take_retry(&f, seq, 10000, 30000);
    /* Refused now, but the first attempt may still land: not FAILED. */
    scripted_fail(&f.scripted, call, MODEL_REASON_KEY_NOT_LOCKED);
    session_fixture_expect_failure(&f, ESI_OUTCOME_UNKNOWN, MODEL_REASON_KEY_NOT_LOCKED);
    session_fixture_deinit(&f);
}

Test(reactions, plain_unavailable_is_maybe)
{
    expect_maybe_plain(RT_UNAVAILABLE);
}

Test(reactions, plain_deadline_is_maybe)
{
    expect_maybe_plain(RT_DEADLINE_EXCEEDED);
}

Test(reactions, plain_cancelled_is_maybe)
{
    expect_maybe_plain(RT_CANCELLED);
}

Test(reactions, plain_reset_is_maybe)
{
    expect_maybe_plain(RT_INTERNAL);
    expect_maybe_plain(RT_UNKNOWN);
}

Test(reactions, plain_unavailable_ends_unknown_within_the_deadline)
{
    struct session_fixture f;
    struct model_call *call = begin_set(&f);
    uint64_t began = f.scripted.fake.now_us;
    uint32_t n = 1;

    scripted_fail_plain(&f.scripted, call, RT_UNAVAILABLE);
    while (esi_session_state(f.session) == ESI_SESSION_BUSY) {
        (void)scripted_wake(&f.scripted);
        if (scripted_n_calls(&f.scripted) == 0)
            continue;
        scripted_fail_plain(&f.scripted, scripted_take(&f.scripted, MODEL_CALL_EXECUTE),
                            RT_UNAVAILABLE);
        n++;
    }
    cr_assert_eq(n, ESI_RETRY_ATTEMPTS_MAX);
    cr_assert_leq(f.scripted.fake.now_us, began + SESSION_FIXTURE_TIMEOUT_US);
    session_fixture_expect_failure(&f, ESI_OUTCOME_UNKNOWN, MODEL_REASON_NONE);
    session_fixture_deinit(&f);
}

Test(reactions, no_answer_at_all_ends_unknown_at_the_deadline)
{
    struct session_fixture f;
    struct model_call *first = begin_set(&f);
    struct model_call *second;
    uint64_t began = f.scripted.fake.now_us;

    cr_assert_eq(first->deadline_us, began + 5000000);
    scripted_pass(&f.scripted, 5050000);
    second = scripted_take_execute(&f.scripted, MODEL_STATEMENT_SET);
    cr_assert_eq(second->request.execute.request_id.seq, first->request.execute.request_id.seq);
    cr_assert_eq(second->deadline_us, began + SESSION_FIXTURE_TIMEOUT_US);
    while (esi_session_state(f.session) == ESI_SESSION_BUSY)
        (void)scripted_wake(&f.scripted);
    cr_assert_eq(f.scripted.fake.now_us, began + SESSION_FIXTURE_TIMEOUT_US);
    session_fixture_expect_failure(&f, ESI_OUTCOME_UNKNOWN, MODEL_REASON_NONE);

    /* Late answers are of no interest any more. */
    scripted_done(&f.scripted, first, 0, 1);
    scripted_fail(&f.scripted, second, MODEL_REASON_SESSION_UNKNOWN);
    cr_assert_null(esi_session_take_result(f.session));
    cr_assert_eq(esi_session_state(f.session), ESI_SESSION_OPEN);
    session_fixture_deinit(&f);
}

Test(reactions, applied_maybe_is_retried_with_the_same_id)
{
    expect_retry_then_success(MODEL_REASON_OWNER_UNREACHABLE);
    expect_retry_then_success(MODEL_REASON_STORE_ERROR);
}

Test(reactions, outcome_unknown_is_retried_with_the_same_id)
{
    expect_retry_then_success(MODEL_REASON_OUTCOME_UNKNOWN);
}

Test(reactions, outcome_unknown_ends_unknown)
{
    struct session_fixture f;
    struct model_call *call = begin_set(&f);

    cr_assert_eq(fail_all(&f, call, MODEL_REASON_OUTCOME_UNKNOWN), ESI_RETRY_ATTEMPTS_MAX);
    session_fixture_expect_failure(&f, ESI_OUTCOME_UNKNOWN, MODEL_REASON_OUTCOME_UNKNOWN);
    session_fixture_deinit(&f);
}

Test(reactions, lock_fenced_fails_without_a_new_get)
{
    expect_failure_at_once(MODEL_REASON_LOCK_FENCED);
}

Test(reactions, lock_fenced_is_not_repeated_even_when_applied_is_unset)
{
    struct session_fixture f;
    struct model_call *call = begin_set(&f);

    model_response_fail(&call->response, MODEL_REASON_LOCK_FENCED, "fenced");
    call->response.error.applied = MODEL_APPLIED_MAYBE;
    esi_session_call_done(f.session, call);
    session_fixture_expect_failure(&f, ESI_OUTCOME_UNKNOWN, MODEL_REASON_LOCK_FENCED);
    cr_assert_eq(scripted_n_calls(&f.scripted), 0);
    session_fixture_deinit(&f);
}

Test(reactions, failed_precondition_fails_at_once)
{
    expect_failure_at_once(MODEL_REASON_KEY_NOT_LOCKED);
    expect_failure_at_once(MODEL_REASON_KEY_INACCESSIBLE);
    expect_failure_at_once(MODEL_REASON_KEY_LOST);
    expect_failure_at_once(MODEL_REASON_SET_LOST);
    expect_failure_at_once(MODEL_REASON_VERSION_MISMATCH);
}

Test(reactions, not_found_invalid_argument_and_exhausted_fail_at_once)
{
    expect_failure_at_once(MODEL_REASON_KEY_NOT_IDENTIFIED);
    expect_failure_at_once(MODEL_REASON_KEY_TOO_LONG);
    expect_failure_at_once(MODEL_REASON_VALUE_TOO_LARGE);
    expect_failure_at_once(MODEL_REASON_INVALID_FIELD);
    expect_failure_at_once(MODEL_REASON_NO_ENTRIES);
    expect_failure_at_once(MODEL_REASON_DISK_FULL);
    expect_failure_at_once(MODEL_REASON_LIMIT_REACHED);
}

Test(reactions, stale_route_is_retried_where_a_refresh_helps)
{
    struct session_fixture f;
    struct model_call *call = begin_set(&f);
    uint64_t seq = call->request.execute.request_id.seq;

    model_response_fail(&call->response, MODEL_REASON_STALE_EPOCH, "the owner moved on");
    call->response.error.refresh_required = true;
    esi_session_call_done(f.session, call);
    scripted_done(&f.scripted, take_retry(&f, seq, 10000, 30000), 0, 1);
    session_fixture_expect(&f, ESI_OUTCOME_OK);
    session_fixture_deinit(&f);
}

Test(reactions, session_unknown_closes_the_session)
{
    struct session_fixture f;
    struct model_call *call = begin_set(&f);

    scripted_fail(&f.scripted, call, MODEL_REASON_SESSION_UNKNOWN);
    session_fixture_expect_failure(&f, ESI_OUTCOME_FAILED, MODEL_REASON_SESSION_UNKNOWN);
    cr_assert_eq(esi_session_state(f.session), ESI_SESSION_CLOSED);
    cr_assert_eq(esi_session_failure(f.session)->reason, MODEL_REASON_SESSION_UNKNOWN);
    cr_assert_eq(scripted_n_calls(&f.scripted), 0);
    session_fixture_deinit(&f);
}

Test(reactions, plain_refusals_are_not_repeated_and_stay_maybe)
{
    static const enum rt_code codes[] = {
        RT_INVALID_ARGUMENT,   RT_NOT_FOUND,           RT_ALREADY_EXISTS, RT_PERMISSION_DENIED,
        RT_RESOURCE_EXHAUSTED, RT_FAILED_PRECONDITION, RT_OUT_OF_RANGE,   RT_UNIMPLEMENTED,
        RT_DATA_LOSS,          RT_UNAUTHENTICATED};

    for (size_t i = 0; i < RT_ARRAY_SIZE(codes); i++) {
        struct session_fixture f;
        struct model_call *call = begin_set(&f);

        scripted_fail_plain(&f.scripted, call, codes[i]);
        session_fixture_expect_failure(&f, ESI_OUTCOME_UNKNOWN, MODEL_REASON_NONE);
        cr_assert_eq(scripted_n_calls(&f.scripted), 0);
        session_fixture_deinit(&f);
    }
}

Test(reactions, await_is_repeated_through_an_outage)
{
    struct session_fixture f;

    session_fixture_open(&f);
    session_fixture_execute(&f, MODEL_STATEMENT_GET, "k", "");
    session_fixture_answer_waiting(&f, scripted_take_execute(&f.scripted, MODEL_STATEMENT_GET),
                                   "other");
    session_fixture_expect(&f, ESI_OUTCOME_WAITING);
    for (int i = 0; i < 30; i++) {
        scripted_fail_plain(&f.scripted, scripted_take_execute(&f.scripted, MODEL_STATEMENT_AWAIT),
                            RT_UNAVAILABLE);
        scripted_pass(&f.scripted, ESI_RETRY_BACKOFF_MAX_US);
    }
    session_fixture_answer_ready(&f, scripted_take_execute(&f.scripted, MODEL_STATEMENT_AWAIT));
    scripted_done(&f.scripted, scripted_take_execute(&f.scripted, MODEL_STATEMENT_GET), 8, 0);
    session_fixture_expect(&f, ESI_OUTCOME_OK);
    session_fixture_deinit(&f);
}

Test(reactions, budget_stops_retries_of_a_client_that_only_fails)
{
    struct session_fixture f;
    uint32_t n_requests = 0, n_statements = 20;

    session_fixture_open(&f);
    for (uint32_t i = 0; i < n_statements; i++) {
        session_fixture_execute(&f, MODEL_STATEMENT_SET, "k", "v");
        n_requests += fail_all(&f, scripted_take_execute(&f.scripted, MODEL_STATEMENT_SET),
                               MODEL_REASON_MOVING);
        session_fixture_expect_failure(&f, ESI_OUTCOME_FAILED, MODEL_REASON_MOVING);
    }
    /* 20 % of the statements, ten at first, and one a second of the time that passed. */
    cr_assert_leq(n_requests - n_statements,
                  n_statements / 5 + 10 + (uint32_t)(f.scripted.fake.now_us / 1000000));
    cr_assert_geq(n_requests - n_statements, 10);
    session_fixture_deinit(&f);
}

Test(reactions, statements_earn_retries)
{
    struct session_fixture f;

    session_fixture_open(&f);
    for (int i = 0; i < 2; i++) {
        session_fixture_execute(&f, MODEL_STATEMENT_SET, "k", "v");
        (void)fail_all(&f, scripted_take_execute(&f.scripted, MODEL_STATEMENT_SET),
                       MODEL_REASON_MOVING);
        session_fixture_expect_failure(&f, ESI_OUTCOME_FAILED, MODEL_REASON_MOVING);
    }
    session_fixture_execute(&f, MODEL_STATEMENT_SET, "k", "v");
    cr_assert_lt(
        fail_all(&f, scripted_take_execute(&f.scripted, MODEL_STATEMENT_SET), MODEL_REASON_MOVING),
        ESI_RETRY_ATTEMPTS_MAX);
    session_fixture_expect_failure(&f, ESI_OUTCOME_FAILED, MODEL_REASON_MOVING);
    for (int i = 0; i < 5 * ESI_RETRY_ATTEMPTS_MAX; i++)
        session_fixture_run(&f, MODEL_STATEMENT_SET, 0, 1);
    session_fixture_execute(&f, MODEL_STATEMENT_SET, "k", "v");
    cr_assert_eq(
        fail_all(&f, scripted_take_execute(&f.scripted, MODEL_STATEMENT_SET), MODEL_REASON_MOVING),
        ESI_RETRY_ATTEMPTS_MAX);
    session_fixture_deinit(&f);
}

Test(reactions, budget_arithmetic)
{
    struct esi_retry_budget budget;
    uint32_t n = 0;

    esi_retry_budget_init(&budget, 1000000);
    for (n = 0; esi_retry_budget_spend(&budget, 1000000); n++)
        ;
    cr_assert_eq(n, 10);
    for (int i = 0; i < 5; i++) {
        cr_assert_not(esi_retry_budget_spend(&budget, 1000000));
        esi_retry_budget_earn(&budget);
    }
    cr_assert(esi_retry_budget_spend(&budget, 1000000));
    cr_assert_not(esi_retry_budget_spend(&budget, 1999000));
    cr_assert(esi_retry_budget_spend(&budget, 2000000));
    /* Time alone never gives more than the ten; a clock that goes back gives nothing. */
    for (n = 0; esi_retry_budget_spend(&budget, 3600000000u); n++)
        ;
    cr_assert_eq(n, 10);
    cr_assert_not(esi_retry_budget_spend(&budget, 5000000));
    for (int i = 0; i < 10000; i++)
        esi_retry_budget_earn(&budget);
    for (n = 0; esi_retry_budget_spend(&budget, 3600000000u); n++)
        ;
    cr_assert_eq(n, 100);
}

Test(reactions, backoff_doubles_with_jitter_up_to_a_second)
{
    static const uint64_t middles_us[] = {20000, 40000, 80000, 160000, 320000, 640000, 1000000};

    for (uint32_t i = 0; i < RT_ARRAY_SIZE(middles_us); i++) {
        uint64_t highest = middles_us[i] * 3 / 2 < 1000000 ? middles_us[i] * 3 / 2 : 1000000;
        uint64_t span = highest - middles_us[i] / 2;

        cr_assert_eq(esi_retry_delay_us(i + 1, 0, 0), middles_us[i] / 2);
        cr_assert_eq(esi_retry_delay_us(i + 1, 0, span), highest);
        cr_assert_eq(esi_retry_delay_us(i + 1, 0, span + 1), middles_us[i] / 2);
    }
    cr_assert_leq(esi_retry_delay_us(UINT32_MAX, 0, UINT64_MAX), 1000000);
}

Test(reactions, retry_after_at_the_limit_and_past_it)
{
    cr_assert_eq(esi_retry_delay_us(1, ESI_RETRY_AFTER_MAX_MS, 0), 30000000);
    cr_assert_eq(esi_retry_delay_us(1, ESI_RETRY_AFTER_MAX_MS + 1, 0), 30000000);
    cr_assert_eq(esi_retry_delay_us(1, 5, 0), 10000);
}
