/*
 * The direct client: sessions, locks, and what is owed when they end.
 */
#include "tests/support/check.h"
#include "tests/unit/esi/direct_rig.h"

#include "esi-client/retry.h"

TestSuite(direct_locks, .fini = test_alloc_expect_none);

/* An operation on "k" whose attempt is answered OK. */
static const struct model_call *run(struct direct_rig *rig, enum model_call_kind kind, uint64_t seq)
{
    struct model_call *operation = direct_rig_submit(rig, kind, "k");

    direct_rig_ok(rig, direct_rig_take(rig, kind), seq);
    return operation;
}

/* With a lock of token 8 on "k" and its route. */
static void init_locked(struct direct_rig *rig)
{
    struct model_call *operation;

    direct_rig_init(rig);
    direct_rig_ok(rig, direct_rig_attempt(rig, MODEL_CALL_READ, &operation), 0);
    direct_rig_lock(rig, "k", 8);
}

static void answer_unlock(struct direct_rig *rig, uint64_t token)
{
    struct model_call *call = direct_rig_take(rig, MODEL_CALL_UNLOCK);

    cr_assert_str_eq(call->address, "coordinator:7400");
    cr_assert_eq(call->request.unlock.lock_token, token);
    cr_assert(rt_bytes_equal(call->request.unlock.key, RT_BYTES_LITERAL("k")));
    direct_rig_ok(rig, call, 0);
}

static uint64_t token_of(struct direct_rig *rig, enum model_call_kind kind)
{
    struct model_call *call;
    uint64_t token;

    (void)direct_rig_submit(rig, kind, "k");
    call = direct_rig_take(rig, kind);
    token = call->request.data.header.lock_token;
    direct_rig_fail(rig, call, MODEL_REASON_KEY_LOST);
    return token;
}

Test(direct_locks, the_first_lock_opens_a_session)
{
    struct direct_rig rig;

    direct_rig_init(&rig);
    direct_rig_lock(&rig, "k", 8);
    direct_rig_lock(&rig, "other", 9);
    cr_assert_eq(direct_rig_n_calls(&rig), 0);
    direct_rig_deinit(&rig);
}

Test(direct_locks, locks_that_come_together_wait_for_one_session)
{
    struct direct_rig rig;
    struct model_call *operation, *call;

    direct_rig_init(&rig);
    operation = direct_rig_submit(&rig, MODEL_CALL_LOCK, "a");
    (void)direct_rig_submit(&rig, MODEL_CALL_LOCK, "b");
    cr_assert_eq(direct_rig_n_calls(&rig), 1);
    call = direct_rig_take(&rig, MODEL_CALL_OPEN_SESSION);
    cr_assert_str_eq(call->request.open_session.name, "direct-1");
    cr_assert_eq(call->request.open_session.request_id.client.bytes[0], 0x51);
    direct_rig_fail(&rig, call, MODEL_REASON_INVALID_FIELD);
    direct_rig_expect_failure(&rig, operation, MODEL_REASON_INVALID_FIELD, MODEL_APPLIED_NO);
    /* The next one tries again. */
    direct_rig_lock(&rig, "a", 8);
    direct_rig_deinit(&rig);
}

/* The lease counts from the request: this one was over before anybody heard of it. */
Test(direct_locks, locks_that_wait_go_on_waiting_for_another_session)
{
    struct direct_rig rig;
    struct model_call *operations[3], *call;

    direct_rig_init(&rig);
    for (size_t i = 0; i < RT_ARRAY_SIZE(operations); i++)
        operations[i] = direct_rig_submit(&rig, MODEL_CALL_LOCK, "k");
    call = direct_rig_take(&rig, MODEL_CALL_OPEN_SESSION);
    rig.fake.now_us += 4000000;
    model_response_ok(&call->response, MODEL_CALL_OPEN_SESSION);
    call->response.open_session.lease_ms = 3000;
    esi_direct_call_done(rig.direct, call);
    for (size_t i = 0; i < RT_ARRAY_SIZE(operations); i++)
        cr_assert_not(direct_rig_is_answered(&rig, operations[i]));
    call = direct_rig_take(&rig, MODEL_CALL_OPEN_SESSION);
    cr_assert_eq(direct_rig_n_calls(&rig), 0);
    model_response_ok(&call->response, MODEL_CALL_OPEN_SESSION);
    call->response.open_session.lease_ms = 3000;
    esi_direct_call_done(rig.direct, call);
    cr_assert_eq(direct_rig_n_calls(&rig), RT_ARRAY_SIZE(operations));
    direct_rig_deinit(&rig);
}

/* The session is closed first; those that come meanwhile wait for that, and fail with the rest. */
Test(direct_locks, locks_of_a_session_with_a_malformed_lease_fail)
{
    struct direct_rig rig;
    struct model_call *operations[2], *call;

    direct_rig_init(&rig);
    operations[0] = direct_rig_submit(&rig, MODEL_CALL_LOCK, "a");
    call = direct_rig_take(&rig, MODEL_CALL_OPEN_SESSION);
    model_response_ok(&call->response, MODEL_CALL_OPEN_SESSION);
    call->response.open_session.lease_ms = 999;
    esi_direct_call_done(rig.direct, call);
    call = direct_rig_take(&rig, MODEL_CALL_CLOSE_SESSION);
    operations[1] = direct_rig_submit(&rig, MODEL_CALL_LOCK, "b");
    cr_assert_eq(direct_rig_n_calls(&rig), 0);
    direct_rig_ok(&rig, call, 0);
    for (size_t i = 0; i < RT_ARRAY_SIZE(operations); i++) {
        direct_rig_expect_failure(&rig, operations[i], MODEL_REASON_NONE, MODEL_APPLIED_NO);
        cr_assert_eq(operations[i]->response.code, RT_INTERNAL);
    }
    direct_rig_lock(&rig, "a", 8);
    direct_rig_deinit(&rig);
}

Test(direct_locks, a_lock_brings_its_route)
{
    struct direct_rig rig;
    struct model_call *operation, *call;

    direct_rig_init(&rig);
    direct_rig_lock(&rig, "other", 7);
    operation = direct_rig_submit(&rig, MODEL_CALL_LOCK, "k");
    call = direct_rig_take(&rig, MODEL_CALL_LOCK);
    cr_assert_eq(call->request.lock.session_id.bytes[0], 2);
    cr_assert_eq(call->request.lock.request_id.client.bytes[0], 0x51);
    cr_assert_eq(call->request.lock.request_id.seq, 3);
    cr_assert_eq(call->request.lock.done_below, 3);
    cr_assert_not(call->request.lock.no_wait);
    model_response_ok(&call->response, MODEL_CALL_LOCK);
    call->response.lock = (struct model_lock_response){
        .lock_token = 8,
        .data = {.has_value = true, .value = RT_BYTES_LITERAL("there")},
        .has_route = true,
        .route = {.owner = "i1", .address = "i1:1", .epoch = 5, .incarnation = 3},
    };
    esi_direct_call_done(rig.direct, call);
    direct_rig_expect_ok(&rig, operation);
    cr_assert(rt_bytes_equal(operation->response.lock.data.value, RT_BYTES_LITERAL("there")));
    direct_rig_expect_ok(&rig, run(&rig, MODEL_CALL_SET, 1));
    cr_assert_eq(direct_rig_n_calls(&rig), 0);
    direct_rig_deinit(&rig);
}

Test(direct_locks, operations_carry_the_token_and_the_route_request_too)
{
    struct direct_rig rig;
    struct model_call *call;

    init_locked(&rig);
    cr_assert_eq(token_of(&rig, MODEL_CALL_SET), 8);
    cr_assert_eq(token_of(&rig, MODEL_CALL_STORE), 8);
    cr_assert_eq(token_of(&rig, MODEL_CALL_PUT), 8);
    cr_assert_eq(token_of(&rig, MODEL_CALL_DELETE), 8);
    cr_assert_eq(token_of(&rig, MODEL_CALL_READ), 0);
    direct_rig_lock(&rig, "unrouted", 9);
    (void)direct_rig_submit(&rig, MODEL_CALL_SET, "unrouted");
    call = direct_rig_take(&rig, MODEL_CALL_ROUTE);
    cr_assert_eq(call->request.route.lock_token, 9);
    cr_assert_eq(call->request.route.session_id.bytes[0], 2);
    direct_rig_deinit(&rig);
}

Test(direct_locks, store_shows_the_newest_set_and_gives_the_lock_back)
{
    struct direct_rig rig;
    struct model_call *operation, *calls[2];

    init_locked(&rig);
    for (int i = 0; i < 2; i++) {
        (void)direct_rig_submit(&rig, MODEL_CALL_SET, "k");
        calls[i] = direct_rig_take(&rig, MODEL_CALL_SET);
    }
    direct_rig_ok(&rig, calls[1], 2);
    direct_rig_ok(&rig, calls[0], 1);
    operation = direct_rig_submit(&rig, MODEL_CALL_STORE, "k");
    calls[0] = direct_rig_take(&rig, MODEL_CALL_STORE);
    cr_assert(calls[0]->request.data.has_last_set);
    cr_assert_eq(calls[0]->request.data.last_set.seq, 2);
    direct_rig_ok(&rig, calls[0], 3);
    cr_assert_not(direct_rig_is_answered(&rig, operation), "the lock comes first");
    answer_unlock(&rig, 8);
    direct_rig_expect_ok(&rig, operation);
    cr_assert_eq(operation->response.data.version.seq, 3);
    cr_assert_eq(token_of(&rig, MODEL_CALL_SET), 0);
    direct_rig_deinit(&rig);
}

Test(direct_locks, put_gives_the_lock_back_and_delete_does_not)
{
    struct direct_rig rig;
    const struct model_call *operation;

    init_locked(&rig);
    direct_rig_expect_ok(&rig, run(&rig, MODEL_CALL_DELETE, 1));
    operation = run(&rig, MODEL_CALL_PUT, 2);
    answer_unlock(&rig, 8);
    direct_rig_expect_ok(&rig, operation);
    direct_rig_deinit(&rig);
}

Test(direct_locks, a_store_is_ok_though_its_lock_could_not_be_given_back)
{
    struct direct_rig rig;
    const struct model_call *operation;

    init_locked(&rig);
    operation = run(&rig, MODEL_CALL_STORE, 1);
    direct_rig_fail_plain(&rig, direct_rig_take(&rig, MODEL_CALL_UNLOCK), RT_UNAVAILABLE);
    direct_rig_pass(&rig, 100000);
    direct_rig_fail(&rig, direct_rig_take(&rig, MODEL_CALL_UNLOCK), MODEL_REASON_INVALID_FIELD);
    direct_rig_expect_ok(&rig, operation);
    /* Once more, and not again after that refusal. */
    direct_rig_fail(&rig, direct_rig_take(&rig, MODEL_CALL_UNLOCK), MODEL_REASON_INVALID_FIELD);
    direct_rig_pass(&rig, ESI_RETRY_BACKOFF_MAX_US);
    cr_assert_eq(direct_rig_n_calls(&rig), 0);
    direct_rig_deinit(&rig);
}

/* A STORE that is answered without having given its lock of token 8 back; the attempt after it. */
static struct model_call *store_without_unlock(struct direct_rig *rig)
{
    const struct model_call *operation;

    init_locked(rig);
    operation = run(rig, MODEL_CALL_STORE, 1);
    while (!direct_rig_is_answered(rig, operation))
        (void)direct_rig_wake(rig);
    direct_rig_expect_ok(rig, operation);
    for (size_t n = direct_rig_n_calls(rig); n > 1; n--)
        direct_rig_ok(rig, direct_rig_take(rig, MODEL_CALL_UNLOCK), 0);
    return direct_rig_take(rig, MODEL_CALL_UNLOCK);
}

Test(direct_locks, a_lock_that_a_store_could_not_give_back_in_time_is_given_back_later)
{
    struct direct_rig rig;
    struct model_call *call = store_without_unlock(&rig);

    cr_assert_eq(token_of(&rig, MODEL_CALL_SET), 0, "it is of no use any more");
    for (int i = 0; i < 2 * ESI_RETRY_ATTEMPTS_MAX; i++) {
        direct_rig_fail_plain(&rig, call, RT_UNAVAILABLE);
        direct_rig_pass(&rig, ESI_RETRY_BACKOFF_MAX_US);
        call = direct_rig_take(&rig, MODEL_CALL_UNLOCK);
        cr_assert_eq(call->request.unlock.lock_token, 8);
    }
    direct_rig_ok(&rig, call, 0);
    direct_rig_pass(&rig, ESI_RETRY_BACKOFF_MAX_US);
    cr_assert_eq(direct_rig_n_calls(&rig), 0);
    direct_rig_deinit(&rig);
}

Test(direct_locks, a_new_lock_waits_for_the_one_that_is_given_back_later)
{
    struct direct_rig rig;
    struct model_call *call = store_without_unlock(&rig);
    struct model_call *operation = direct_rig_submit(&rig, MODEL_CALL_LOCK, "k");

    direct_rig_pass(&rig, 100000);
    cr_assert_eq(direct_rig_n_calls(&rig), 0);
    direct_rig_ok(&rig, call, 0);
    direct_rig_pass(&rig, 20000);
    call = direct_rig_take(&rig, MODEL_CALL_LOCK);
    model_response_ok(&call->response, MODEL_CALL_LOCK);
    call->response.lock.lock_token = 9;
    esi_direct_call_done(rig.direct, call);
    direct_rig_expect_ok(&rig, operation);
    cr_assert_eq(token_of(&rig, MODEL_CALL_SET), 9);
    direct_rig_deinit(&rig);
}

Test(direct_locks, the_end_of_the_session_ends_what_is_given_back_later)
{
    struct direct_rig rig;

    direct_rig_fail(&rig, store_without_unlock(&rig), MODEL_REASON_SESSION_UNKNOWN);
    direct_rig_pass(&rig, ESI_RETRY_BACKOFF_MAX_US);
    cr_assert_eq(direct_rig_n_calls(&rig), 0);
    direct_rig_deinit(&rig);
}

Test(direct_locks, store_of_a_key_that_no_instance_has_gives_the_lock_back)
{
    struct direct_rig rig;
    struct model_call *operation, *call;

    direct_rig_init(&rig);
    direct_rig_lock(&rig, "k", 8);
    operation = direct_rig_submit(&rig, MODEL_CALL_STORE, "k");
    call = direct_rig_take(&rig, MODEL_CALL_ROUTE);
    model_response_ok(&call->response, MODEL_CALL_ROUTE);
    esi_direct_call_done(rig.direct, call);
    answer_unlock(&rig, 8);
    direct_rig_expect_ok(&rig, operation);
    direct_rig_deinit(&rig);
}

Test(direct_locks, unlock_is_repeated_and_forgets_the_lock)
{
    struct direct_rig rig;
    struct model_call *operation;

    init_locked(&rig);
    operation = direct_rig_submit(&rig, MODEL_CALL_UNLOCK, "k");
    direct_rig_fail(&rig, direct_rig_take(&rig, MODEL_CALL_UNLOCK), MODEL_REASON_DRAINING);
    direct_rig_pass(&rig, 100000);
    answer_unlock(&rig, 8);
    direct_rig_expect_ok(&rig, operation);
    cr_assert_eq(token_of(&rig, MODEL_CALL_SET), 0);
    direct_rig_expect_ok(&rig, direct_rig_submit(&rig, MODEL_CALL_UNLOCK, "k"));
    direct_rig_deinit(&rig);
}

Test(direct_locks, unlock_that_nobody_answers_is_unclear_and_keeps_the_lock)
{
    struct direct_rig rig;
    struct model_call *operation;

    init_locked(&rig);
    operation = direct_rig_submit(&rig, MODEL_CALL_UNLOCK, "k");
    while (!direct_rig_is_answered(&rig, operation))
        (void)direct_rig_wake(&rig);
    direct_rig_expect_failure(&rig, operation, MODEL_REASON_DEADLINE_EXCEEDED, MODEL_APPLIED_MAYBE);
    cr_assert_eq(token_of(&rig, MODEL_CALL_SET), 8);
    direct_rig_deinit(&rig);
}

Test(direct_locks, a_fenced_lock_stays_fenced_until_it_is_locked_again)
{
    struct direct_rig rig;
    struct model_call *operation;

    init_locked(&rig);
    operation = direct_rig_submit(&rig, MODEL_CALL_SET, "k");
    direct_rig_fail(&rig, direct_rig_take(&rig, MODEL_CALL_SET), MODEL_REASON_LOCK_FENCED);
    direct_rig_expect_failure(&rig, operation, MODEL_REASON_LOCK_FENCED, MODEL_APPLIED_NO);
    cr_assert_eq(direct_rig_n_calls(&rig), 0, "nothing is locked again by itself");
    cr_assert_eq(token_of(&rig, MODEL_CALL_SET), 8);
    direct_rig_lock(&rig, "k", 12);
    cr_assert_eq(token_of(&rig, MODEL_CALL_SET), 12);
    direct_rig_deinit(&rig);
}

/* ---- the end of a session -------------------------------------------------------------------- */

static void expect_lost(struct direct_rig *rig)
{
    struct model_call *operation = direct_rig_submit(rig, MODEL_CALL_SET, "k");

    direct_rig_expect_failure(rig, operation, MODEL_REASON_SESSION_UNKNOWN, MODEL_APPLIED_NO);
    cr_assert_eq(direct_rig_n_calls(rig), 0);
}

Test(direct_locks, a_lost_session_takes_its_locks_along)
{
    struct direct_rig rig;

    init_locked(&rig);
    rig.answer_keep_alives = false;
    direct_rig_pass(&rig, 3100000);
    direct_rig_fail(&rig, direct_rig_take(&rig, MODEL_CALL_KEEP_ALIVE),
                    MODEL_REASON_SESSION_UNKNOWN);
    expect_lost(&rig);
    rig.answer_keep_alives = true;
    /* Another session does not bring it back. */
    direct_rig_lock(&rig, "other", 11);
    expect_lost(&rig);
    direct_rig_lock(&rig, "k", 12);
    cr_assert_eq(token_of(&rig, MODEL_CALL_SET), 12);
    direct_rig_deinit(&rig);
}

Test(direct_locks, unlock_of_a_lost_lock_lets_go_on)
{
    struct direct_rig rig;

    init_locked(&rig);
    rig.answer_keep_alives = false;
    direct_rig_pass(&rig, 3100000);
    direct_rig_fail(&rig, direct_rig_take(&rig, MODEL_CALL_KEEP_ALIVE),
                    MODEL_REASON_SESSION_UNKNOWN);
    expect_lost(&rig);
    direct_rig_expect_ok(&rig, direct_rig_submit(&rig, MODEL_CALL_UNLOCK, "k"));
    cr_assert_eq(token_of(&rig, MODEL_CALL_SET), 0);
    direct_rig_deinit(&rig);
}

Test(direct_locks, a_lease_that_ran_out_claims_nothing)
{
    struct direct_rig rig;
    struct model_call *operation, *call;

    init_locked(&rig);
    operation = direct_rig_submit(&rig, MODEL_CALL_SET, "k");
    call = direct_rig_take(&rig, MODEL_CALL_SET);
    rig.answer_keep_alives = false;
    /* No tick comes in between: the clock alone decides. */
    rig.fake.now_us += 7500000;
    expect_lost(&rig);
    direct_rig_fail(&rig, call, MODEL_REASON_MOVING);
    direct_rig_pass(&rig, 30000);
    direct_rig_expect_failure(&rig, operation, MODEL_REASON_SESSION_UNKNOWN, MODEL_APPLIED_NO);
    direct_rig_deinit(&rig);
}

Test(direct_locks, a_lock_granted_too_late_is_not_claimed)
{
    struct direct_rig rig;
    struct model_call *operation, *call;

    direct_rig_init(&rig);
    direct_rig_lock(&rig, "other", 7);
    operation = direct_rig_submit(&rig, MODEL_CALL_LOCK, "k");
    call = direct_rig_take(&rig, MODEL_CALL_LOCK);
    rig.fake.now_us += 7500000;
    direct_rig_ok(&rig, call, 0);
    direct_rig_expect_failure(&rig, operation, MODEL_REASON_SESSION_UNKNOWN, MODEL_APPLIED_MAYBE);
    direct_rig_deinit(&rig);
}

Test(direct_locks, a_session_that_the_coordinator_forgot_is_lost)
{
    static const enum model_call_kind kinds[] = {MODEL_CALL_LOCK, MODEL_CALL_UNLOCK};

    for (size_t i = 0; i < RT_ARRAY_SIZE(kinds); i++) {
        struct direct_rig rig;
        struct model_call *operation;

        init_locked(&rig);
        operation = direct_rig_submit(&rig, kinds[i], "k");
        direct_rig_fail(&rig, direct_rig_take(&rig, kinds[i]), MODEL_REASON_SESSION_UNKNOWN);
        if (kinds[i] == MODEL_CALL_UNLOCK) {
            direct_rig_expect_ok(&rig, operation);
        } else {
            direct_rig_expect_failure(&rig, operation, MODEL_REASON_SESSION_UNKNOWN,
                                      MODEL_APPLIED_NO);
            expect_lost(&rig);
        }
        direct_rig_deinit(&rig);
    }
}

Test(direct_locks, a_route_request_tells_of_a_lost_session)
{
    struct direct_rig rig;
    struct model_call *operation;

    direct_rig_init(&rig);
    direct_rig_lock(&rig, "k", 8);
    operation = direct_rig_submit(&rig, MODEL_CALL_SET, "k");
    direct_rig_fail(&rig, direct_rig_take(&rig, MODEL_CALL_ROUTE), MODEL_REASON_SESSION_UNKNOWN);
    direct_rig_expect_failure(&rig, operation, MODEL_REASON_SESSION_UNKNOWN, MODEL_APPLIED_NO);
    expect_lost(&rig);
    direct_rig_deinit(&rig);
}

Test(direct_locks, close_ends_the_session)
{
    struct direct_rig rig;

    init_locked(&rig);
    esi_direct_close(rig.direct);
    cr_assert_not(esi_direct_is_closed(rig.direct));
    direct_rig_ok(&rig, direct_rig_take(&rig, MODEL_CALL_CLOSE_SESSION), 0);
    cr_assert(esi_direct_is_closed(rig.direct));
    direct_rig_deinit(&rig);
}

Test(direct_locks, close_waits_two_seconds_at_most)
{
    struct direct_rig rig;

    init_locked(&rig);
    esi_direct_close(rig.direct);
    direct_rig_pass(&rig, 2000000);
    cr_assert(esi_direct_is_closed(rig.direct));
    direct_rig_deinit(&rig);
}

/* ---- waiting for a lock ---------------------------------------------------------------------- */

/* More than the retries that failures have. */
Test(direct_locks, many_long_waits_are_no_failures)
{
    struct direct_rig rig;
    struct model_call *operations[200];

    direct_rig_init(&rig);
    direct_rig_lock(&rig, "other", 7);
    for (size_t i = 0; i < RT_ARRAY_SIZE(operations); i++)
        operations[i] = direct_rig_submit(&rig, MODEL_CALL_LOCK, "k");
    for (int round = 0; round < 3; round++) {
        cr_assert_eq(direct_rig_n_calls(&rig), RT_ARRAY_SIZE(operations));
        for (size_t i = 0; i < RT_ARRAY_SIZE(operations); i++)
            direct_rig_fail(&rig, direct_rig_take(&rig, MODEL_CALL_LOCK),
                            MODEL_REASON_DEADLINE_EXCEEDED);
        direct_rig_pass(&rig, 100000);
    }
    for (size_t i = 0; i < RT_ARRAY_SIZE(operations); i++)
        cr_assert_not(direct_rig_is_answered(&rig, operations[i]));
    direct_rig_deinit(&rig);
}

Test(direct_locks, a_long_wait_is_no_failure)
{
    struct direct_rig rig;
    struct model_call *operation, *call;
    uint64_t seq = 0;

    direct_rig_init(&rig);
    direct_rig_lock(&rig, "other", 7);
    operation = model_call_new(MODEL_CALL_LOCK);
    operation->request.lock.key = RT_BYTES_LITERAL("k");
    operation->deadline_us = rig.fake.now_us + 600000000;
    esi_direct_submit(rig.direct, operation);
    for (int i = 0; i < 30; i++) {
        call = direct_rig_take(&rig, MODEL_CALL_LOCK);
        cr_assert(seq == 0 || call->request.lock.request_id.seq == seq);
        seq = call->request.lock.request_id.seq;
        direct_rig_pass(&rig, 5000000);
        direct_rig_fail(&rig, call, MODEL_REASON_DEADLINE_EXCEEDED);
        direct_rig_pass(&rig, 40000);
    }
    direct_rig_ok(&rig, direct_rig_take(&rig, MODEL_CALL_LOCK), 0);
    direct_rig_expect_ok(&rig, operation);
    direct_rig_deinit(&rig);
}

/* A LOCK of "k" that is under way, its deadline passed. */
static struct model_call *give_up_lock(struct direct_rig *rig)
{
    struct model_call *operation, *call;

    direct_rig_init(rig);
    direct_rig_lock(rig, "other", 7);
    operation = direct_rig_submit(rig, MODEL_CALL_LOCK, "k");
    call = direct_rig_take(rig, MODEL_CALL_LOCK);
    esi_direct_cancel(rig->direct, operation);
    direct_rig_expect_failure(rig, operation, MODEL_REASON_CANCELLED, MODEL_APPLIED_MAYBE);
    return call;
}

static void grant(struct direct_rig *rig, struct model_call *call, uint64_t token)
{
    model_response_ok(&call->response, MODEL_CALL_LOCK);
    call->response.lock.lock_token = token;
    esi_direct_call_done(rig->direct, call);
}

Test(direct_locks, a_lock_that_nobody_waits_for_any_more_is_given_back)
{
    struct direct_rig rig;
    struct model_call *call;

    (void)give_up_lock(&rig);
    call = direct_rig_take(&rig, MODEL_CALL_LOCK);
    for (int i = 0; i < 2 * ESI_RETRY_ATTEMPTS_MAX; i++) {
        direct_rig_fail_plain(&rig, call, RT_UNAVAILABLE);
        direct_rig_pass(&rig, ESI_RETRY_BACKOFF_MAX_US);
        call = direct_rig_take(&rig, MODEL_CALL_LOCK);
    }
    grant(&rig, call, 8);
    answer_unlock(&rig, 8);
    cr_assert_eq(direct_rig_n_calls(&rig), 0);
    direct_rig_deinit(&rig);
}

Test(direct_locks, who_wants_the_lock_again_gets_it)
{
    struct direct_rig rig;
    struct model_call *operation, *cleanup;

    (void)give_up_lock(&rig);
    cleanup = direct_rig_take(&rig, MODEL_CALL_LOCK);
    operation = direct_rig_submit(&rig, MODEL_CALL_LOCK, "k");
    grant(&rig, cleanup, 8);
    cr_assert_eq(direct_rig_n_calls(&rig), 1, "it is not given back");
    grant(&rig, direct_rig_take(&rig, MODEL_CALL_LOCK), 8);
    direct_rig_expect_ok(&rig, operation);
    direct_rig_pass(&rig, 1000);
    cr_assert_eq(direct_rig_n_calls(&rig), 0);
    direct_rig_deinit(&rig);
}

Test(direct_locks, who_wants_the_lock_while_it_is_given_back_waits_for_that)
{
    struct direct_rig rig;
    struct model_call *operation;

    (void)give_up_lock(&rig);
    grant(&rig, direct_rig_take(&rig, MODEL_CALL_LOCK), 8);
    operation = direct_rig_submit(&rig, MODEL_CALL_LOCK, "k");
    direct_rig_pass(&rig, 100000);
    cr_assert_eq(direct_rig_n_calls(&rig), 1);
    answer_unlock(&rig, 8);
    direct_rig_pass(&rig, 20000);
    grant(&rig, direct_rig_take(&rig, MODEL_CALL_LOCK), 9);
    direct_rig_expect_ok(&rig, operation);
    direct_rig_deinit(&rig);
}

Test(direct_locks, a_lock_that_another_operation_waits_for_is_not_given_back)
{
    struct direct_rig rig;
    struct model_call *first, *second, *call;

    direct_rig_init(&rig);
    direct_rig_lock(&rig, "other", 7);
    first = direct_rig_submit(&rig, MODEL_CALL_LOCK, "k");
    (void)direct_rig_take(&rig, MODEL_CALL_LOCK);
    second = direct_rig_submit(&rig, MODEL_CALL_LOCK, "k");
    call = direct_rig_take(&rig, MODEL_CALL_LOCK);
    esi_direct_cancel(rig.direct, first);
    cr_assert_eq(direct_rig_n_calls(&rig), 0);
    grant(&rig, call, 8);
    direct_rig_expect_ok(&rig, second);
    /* Nor one that is held. */
    first = direct_rig_submit(&rig, MODEL_CALL_LOCK, "k");
    (void)direct_rig_take(&rig, MODEL_CALL_LOCK);
    esi_direct_cancel(rig.direct, first);
    cr_assert_eq(direct_rig_n_calls(&rig), 0);
    direct_rig_deinit(&rig);
}

Test(direct_locks, the_end_of_the_session_gives_everything_back)
{
    struct direct_rig rig;

    (void)give_up_lock(&rig);
    direct_rig_fail(&rig, direct_rig_take(&rig, MODEL_CALL_LOCK), MODEL_REASON_SESSION_UNKNOWN);
    cr_assert_eq(direct_rig_n_calls(&rig), 0);
    direct_rig_pass(&rig, 10000000);
    cr_assert_eq(direct_rig_n_calls(&rig), 0);
    direct_rig_deinit(&rig);
}

Test(direct_locks, an_answer_that_is_none_is_unclear)
{
    struct direct_rig rig;
    struct model_call *operation, *call;

    direct_rig_init(&rig);
    direct_rig_lock(&rig, "other", 7);
    operation = direct_rig_submit(&rig, MODEL_CALL_LOCK, "k");
    call = direct_rig_take(&rig, MODEL_CALL_LOCK);
    model_response_ok(&call->response, MODEL_CALL_LOCK);
    call->response.lock.outcome = MODEL_OUTCOME_WAITING;
    esi_direct_call_done(rig.direct, call);
    direct_rig_expect_failure(&rig, operation, MODEL_REASON_NONE, MODEL_APPLIED_MAYBE);
    grant(&rig, direct_rig_take(&rig, MODEL_CALL_LOCK), 8);
    answer_unlock(&rig, 8);
    direct_rig_deinit(&rig);
}

Test(direct_locks, without_memory_for_the_value_the_lock_is_given_back)
{
    struct direct_rig rig;
    struct model_call *operation, *call;

    direct_rig_init(&rig);
    direct_rig_lock(&rig, "other", 7);
    operation = direct_rig_submit(&rig, MODEL_CALL_LOCK, "k");
    call = direct_rig_take(&rig, MODEL_CALL_LOCK);
    model_response_ok(&call->response, MODEL_CALL_LOCK);
    call->response.lock.lock_token = 8;
    call->response.lock.data.has_value = true;
    call->response.lock.data.value = RT_BYTES_LITERAL("there");
    test_alloc_fail_after(0, 1);
    esi_direct_call_done(rig.direct, call);
    test_alloc_fail_never();
    direct_rig_expect_failure(&rig, operation, MODEL_REASON_LIMIT_REACHED, MODEL_APPLIED_MAYBE);
    grant(&rig, direct_rig_take(&rig, MODEL_CALL_LOCK), 8);
    answer_unlock(&rig, 8);
    direct_rig_deinit(&rig);
}

Test(direct_locks, without_any_memory_the_end_of_the_session_does_it)
{
    struct direct_rig rig;
    struct model_call *operation;

    direct_rig_init(&rig);
    direct_rig_lock(&rig, "other", 7);
    operation = direct_rig_submit(&rig, MODEL_CALL_LOCK, "k");
    (void)direct_rig_take(&rig, MODEL_CALL_LOCK);
    test_alloc_fail_after(0, TEST_ALLOC_FOREVER);
    esi_direct_cancel(rig.direct, operation);
    test_alloc_fail_never();
    cr_assert_eq(direct_rig_n_calls(&rig), 0);
    direct_rig_deinit(&rig);
}
