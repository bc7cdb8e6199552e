/*
 * The direct client: routes, one test a row of the table "How a client reacts", then the bounds.
 */
#include <stdio.h>

#include "tests/support/check.h"
#include "tests/unit/esi/direct_rig.h"

#include "esi-client/retry.h"

TestSuite(direct, .fini = test_alloc_expect_none);

/* The attempt after the answer just given: within the time, with the same id. */
static struct model_call *take_retry(struct direct_rig *rig, const struct model_request_id *id,
                                     enum model_call_kind kind, uint64_t min_us, uint64_t max_us)
{
    uint64_t began = rig->fake.now_us;
    struct model_call *call;

    if (max_us > 0)
        (void)direct_rig_wake(rig);
    cr_assert_geq(rig->fake.now_us - began, min_us);
    cr_assert_leq(rig->fake.now_us - began, max_us);
    call = direct_rig_take(rig, kind);
    cr_assert_eq(call->request.data.header.request_id.seq, id->seq);
    return call;
}

/* ---- routes ---------------------------------------------------------------------------------- */

Test(direct, a_route_is_asked_for_once_and_remembered)
{
    struct direct_rig rig;
    struct model_call *operation, *call;

    direct_rig_init(&rig);
    call = direct_rig_attempt(&rig, MODEL_CALL_SET, &operation);
    cr_assert_str_eq(call->address, "i1:1");
    cr_assert_str_eq(call->request.data.header.owner, "i1");
    cr_assert_eq(call->request.data.header.epoch, 5);
    cr_assert_eq(call->request.data.header.first_epoch, 5);
    cr_assert_eq(call->request.data.header.incarnation, 3);
    cr_assert_eq(call->request.data.header.term, 2);
    cr_assert_eq(call->request.data.header.cluster_id.bytes[0], 0xcc);
    cr_assert_eq(call->request.data.header.request_id.client.bytes[0], 0xc1);
    cr_assert_eq(call->request.data.header.lock_token, 0);
    cr_assert(rt_bytes_equal(call->request.data.value, RT_BYTES_LITERAL("v")));
    direct_rig_ok(&rig, call, 1);
    direct_rig_expect_ok(&rig, operation);
    cr_assert_eq(operation->response.data.version.seq, 1);

    operation = direct_rig_submit(&rig, MODEL_CALL_PUT, "k");
    direct_rig_ok(&rig, direct_rig_take(&rig, MODEL_CALL_PUT), 2);
    direct_rig_expect_ok(&rig, operation);
    cr_assert_eq(direct_rig_n_calls(&rig), 0);
    direct_rig_deinit(&rig);
}

Test(direct, operations_on_one_key_wait_for_one_route)
{
    struct direct_rig rig;
    struct model_call *operations[3];

    direct_rig_init(&rig);
    for (size_t i = 0; i < 3; i++)
        operations[i] = direct_rig_submit(&rig, MODEL_CALL_SET, "k");
    (void)direct_rig_submit(&rig, MODEL_CALL_SET, "other");
    cr_assert_eq(direct_rig_n_calls(&rig), 2);
    direct_rig_route(&rig, "i1", 5, 3);
    for (size_t i = 0; i < 3; i++) {
        direct_rig_ok(&rig, direct_rig_take(&rig, MODEL_CALL_SET), i);
        direct_rig_expect_ok(&rig, operations[i]);
    }
    cr_assert_eq(direct_rig_n_calls(&rig), 1);
    direct_rig_deinit(&rig);
}

Test(direct, the_route_says_what_it_is_for)
{
    struct direct_rig rig;
    struct model_call *call;

    direct_rig_init(&rig);
    (void)direct_rig_submit(&rig, MODEL_CALL_PUT, "k");
    call = direct_rig_take(&rig, MODEL_CALL_ROUTE);
    cr_assert_eq(call->request.route.operation, MODEL_STATEMENT_PUT);
    cr_assert_eq(call->request.route.value_size, 1);
    cr_assert_eq(call->request.route.min_placement_version, 0);
    cr_assert(model_id_is_none(&call->request.route.session_id));
    direct_rig_deinit(&rig);
}

Test(direct, a_route_serves_every_operation)
{
    struct direct_rig rig;
    struct model_call *read, *put, *call;

    direct_rig_init(&rig);
    read = direct_rig_submit(&rig, MODEL_CALL_READ, "k");
    put = direct_rig_submit(&rig, MODEL_CALL_PUT, "k");
    direct_rig_route(&rig, "i1", 5, 3);
    call = direct_rig_take(&rig, MODEL_CALL_READ);
    cr_assert_eq(call->request.data.header.request_id.seq, 0, "a READ needs no id");
    direct_rig_ok(&rig, call, 1);
    direct_rig_expect_ok(&rig, read);
    direct_rig_ok(&rig, direct_rig_take(&rig, MODEL_CALL_PUT), 1);
    direct_rig_expect_ok(&rig, put);
    direct_rig_deinit(&rig);
}

static void answer_unplaced(struct direct_rig *rig)
{
    struct model_call *call = direct_rig_take(rig, MODEL_CALL_ROUTE);

    model_response_ok(&call->response, MODEL_CALL_ROUTE);
    esi_direct_call_done(rig->direct, call);
}

Test(direct, a_key_that_no_instance_has_has_no_value)
{
    static const enum model_call_kind kinds[] = {MODEL_CALL_READ, MODEL_CALL_DELETE,
                                                 MODEL_CALL_STORE};
    struct direct_rig rig;

    direct_rig_init(&rig);
    for (size_t i = 0; i < RT_ARRAY_SIZE(kinds); i++) {
        struct model_call *operation = direct_rig_submit(&rig, kinds[i], "k");
        struct model_call *put = direct_rig_submit(&rig, MODEL_CALL_PUT, "k");

        answer_unplaced(&rig);
        direct_rig_expect_ok(&rig, operation);
        cr_assert_not(operation->response.data.has_value);
        /* It would be placed for a PUT: that asks for itself. */
        direct_rig_fail(&rig, direct_rig_take(&rig, MODEL_CALL_ROUTE), MODEL_REASON_KEY_LOST);
        direct_rig_expect_failure(&rig, put, MODEL_REASON_KEY_LOST, MODEL_APPLIED_NO);
    }
    direct_rig_deinit(&rig);
}

/* The first attempt ends without an answer: the next one asks for everybody who waits by then. */
static void ask_again(struct direct_rig *rig)
{
    direct_rig_fail_plain(rig, direct_rig_take(rig, MODEL_CALL_ROUTE), RT_UNAVAILABLE);
    direct_rig_pass(rig, 100000);
}

Test(direct, a_refusal_of_the_route_counts_for_those_that_asked_the_same)
{
    struct direct_rig rig;
    struct model_call *put, *put_again, *read;

    direct_rig_init(&rig);
    put = direct_rig_submit(&rig, MODEL_CALL_PUT, "k");
    put_again = direct_rig_submit(&rig, MODEL_CALL_PUT, "k");
    read = direct_rig_submit(&rig, MODEL_CALL_READ, "k");
    ask_again(&rig);
    direct_rig_fail(&rig, direct_rig_take(&rig, MODEL_CALL_ROUTE), MODEL_REASON_NO_ENTRIES);
    direct_rig_expect_failure(&rig, put, MODEL_REASON_NO_ENTRIES, MODEL_APPLIED_NO);
    direct_rig_expect_failure(&rig, put_again, MODEL_REASON_NO_ENTRIES, MODEL_APPLIED_NO);
    cr_assert(rt_bytes_equal(put->response.error.key, RT_BYTES_LITERAL("k")));
    direct_rig_fail(&rig, direct_rig_take(&rig, MODEL_CALL_ROUTE), MODEL_REASON_KEY_NOT_IDENTIFIED);
    direct_rig_expect_failure(&rig, read, MODEL_REASON_KEY_NOT_IDENTIFIED, MODEL_APPLIED_NO);
    direct_rig_deinit(&rig);
}

/* What it says may be older than an operation that came after the question. */
Test(direct, an_answer_without_a_route_does_not_count_for_those_that_came_later)
{
    static const enum model_call_kind kinds[] = {MODEL_CALL_READ, MODEL_CALL_DELETE,
                                                 MODEL_CALL_STORE};

    for (size_t i = 0; i < RT_ARRAY_SIZE(kinds); i++) {
        struct direct_rig rig;
        struct model_call *early, *late;

        direct_rig_init(&rig);
        early = direct_rig_submit(&rig, kinds[i], "k");
        late = direct_rig_submit(&rig, kinds[i], "k");
        answer_unplaced(&rig);
        direct_rig_expect_ok(&rig, early);
        cr_assert_not(direct_rig_is_answered(&rig, late));
        direct_rig_route(&rig, "i1", 5, 3);
        direct_rig_ok(&rig, direct_rig_take(&rig, kinds[i]), 1);
        direct_rig_expect_ok(&rig, late);
        cr_assert_eq(late->response.data.version.seq, 1);
        direct_rig_deinit(&rig);
    }
}

Test(direct, a_refusal_does_not_count_for_those_that_came_later)
{
    struct direct_rig rig;
    struct model_call *early, *late;

    direct_rig_init(&rig);
    early = direct_rig_submit(&rig, MODEL_CALL_READ, "k");
    late = direct_rig_submit(&rig, MODEL_CALL_READ, "k");
    direct_rig_fail(&rig, direct_rig_take(&rig, MODEL_CALL_ROUTE), MODEL_REASON_KEY_NOT_IDENTIFIED);
    direct_rig_expect_failure(&rig, early, MODEL_REASON_KEY_NOT_IDENTIFIED, MODEL_APPLIED_NO);
    cr_assert_not(direct_rig_is_answered(&rig, late));
    direct_rig_route(&rig, "i1", 5, 3);
    direct_rig_ok(&rig, direct_rig_take(&rig, MODEL_CALL_READ), 1);
    direct_rig_expect_ok(&rig, late);
    direct_rig_deinit(&rig);
}

Test(direct, a_smaller_value_is_not_refused_with_a_larger_one)
{
    struct direct_rig rig;
    struct model_call *large, *small;

    direct_rig_init(&rig);
    large = direct_rig_submit(&rig, MODEL_CALL_PUT, "k");
    small = model_call_new(MODEL_CALL_PUT);
    small->request.data.header.key = RT_BYTES_LITERAL("k");
    esi_direct_submit(rig.direct, small);
    ask_again(&rig);
    direct_rig_fail(&rig, direct_rig_take(&rig, MODEL_CALL_ROUTE), MODEL_REASON_NO_ENTRIES);
    direct_rig_expect_failure(&rig, large, MODEL_REASON_NO_ENTRIES, MODEL_APPLIED_NO);
    cr_assert_not(direct_rig_is_answered(&rig, small));
    cr_assert_eq(direct_rig_take(&rig, MODEL_CALL_ROUTE)->request.route.value_size, 0);
    direct_rig_deinit(&rig);
}

Test(direct, a_route_that_is_older_than_the_one_known_is_asked_for_again)
{
    struct direct_rig rig;
    struct model_call *operation;

    direct_rig_init(&rig);
    direct_rig_fail(&rig, direct_rig_attempt(&rig, MODEL_CALL_SET, &operation),
                    MODEL_REASON_NOT_OWNER);
    direct_rig_route(&rig, "i2", 4, 9);
    cr_assert_eq(direct_rig_n_calls(&rig), 0);
    direct_rig_pass(&rig, 100000);
    direct_rig_route(&rig, "i2", 6, 9);
    cr_assert_str_eq(direct_rig_take(&rig, MODEL_CALL_SET)->address, "i2:1");
    direct_rig_deinit(&rig);
}

/* ---- the table ------------------------------------------------------------------------------- */

Test(direct, a_newer_hint_is_followed_at_once)
{
    struct direct_rig rig;
    struct model_call *operation, *call;
    struct model_request_id id;

    direct_rig_init(&rig);
    call = direct_rig_attempt(&rig, MODEL_CALL_SET, &operation);
    id = call->request.data.header.request_id;
    direct_rig_hint(&rig, call, MODEL_REASON_NOT_OWNER, "i2", 7, 4);
    call = take_retry(&rig, &id, MODEL_CALL_SET, 0, 0);
    cr_assert_str_eq(call->address, "i2:1");
    cr_assert_str_eq(call->request.data.header.owner, "i2");
    cr_assert_eq(call->request.data.header.epoch, 7);
    cr_assert_eq(call->request.data.header.incarnation, 4);
    cr_assert_eq(call->request.data.header.first_epoch, 5, "as it was sent first");
    /* Once: the next one leads somewhere too, but not at once. */
    direct_rig_hint(&rig, call, MODEL_REASON_NOT_OWNER, "i3", 8, 4);
    cr_assert_eq(direct_rig_n_calls(&rig), 0);
    call = take_retry(&rig, &id, MODEL_CALL_SET, 20000, 60000);
    cr_assert_str_eq(call->address, "i3:1");
    direct_rig_ok(&rig, call, 1);
    direct_rig_expect_ok(&rig, operation);
    direct_rig_deinit(&rig);
}

Test(direct, a_hint_at_the_responder_is_taken_but_not_followed_at_once)
{
    struct direct_rig rig;
    struct model_call *operation, *call;
    struct model_request_id id;

    direct_rig_init(&rig);
    call = direct_rig_attempt(&rig, MODEL_CALL_PUT, &operation);
    id = call->request.data.header.request_id;
    direct_rig_hint(&rig, call, MODEL_REASON_STALE_INCARNATION, "i1", 5, 4);
    cr_assert_eq(direct_rig_n_calls(&rig), 0);
    call = take_retry(&rig, &id, MODEL_CALL_PUT, 10000, 30000);
    cr_assert_str_eq(call->address, "i1:1");
    cr_assert_eq(call->request.data.header.incarnation, 4);
    direct_rig_ok(&rig, call, 1);
    direct_rig_expect_ok(&rig, operation);
    direct_rig_deinit(&rig);
}

Test(direct, what_stores_asks_the_coordinator_for_a_hinted_epoch)
{
    static const enum model_call_kind kinds[] = {MODEL_CALL_PUT, MODEL_CALL_STORE,
                                                 MODEL_CALL_DELETE};

    for (size_t i = 0; i < RT_ARRAY_SIZE(kinds); i++) {
        struct direct_rig rig;
        struct model_call *operation, *call;
        struct model_request_id id;

        direct_rig_init(&rig);
        call = direct_rig_attempt(&rig, kinds[i], &operation);
        id = call->request.data.header.request_id;
        direct_rig_hint(&rig, call, MODEL_REASON_NOT_OWNER, "i2", 7, 4);
        cr_assert_eq(direct_rig_n_calls(&rig), 1);
        direct_rig_route(&rig, "i2", 7, 4);
        call = take_retry(&rig, &id, kinds[i], 0, 0);
        cr_assert_str_eq(call->address, "i2:1");
        direct_rig_deinit(&rig);
    }
}

static void expect_refresh_and_retry(enum model_reason reason, const char *hint, uint64_t epoch,
                                     uint64_t incarnation)
{
    struct direct_rig rig;
    struct model_call *operation, *other, *call;
    struct model_request_id id;

    direct_rig_init(&rig);
    call = direct_rig_attempt(&rig, MODEL_CALL_SET, &operation);
    id = call->request.data.header.request_id;
    if (hint)
        direct_rig_hint(&rig, call, reason, hint, epoch, incarnation);
    else
        direct_rig_fail(&rig, call, reason);
    other = direct_rig_submit(&rig, MODEL_CALL_SET, "k");
    cr_assert_eq(direct_rig_n_calls(&rig), 1, "one refresh a key");
    call = direct_rig_take(&rig, MODEL_CALL_ROUTE);
    cr_assert_eq(call->request.route.min_placement_version, 5);
    rt_list_push_back(&rig.calls, &call->link);
    direct_rig_route(&rig, "i2", 7, 4);
    /* Who had not been refused need not pause. */
    direct_rig_ok(&rig, direct_rig_take(&rig, MODEL_CALL_SET), 1);
    direct_rig_expect_ok(&rig, other);
    call = take_retry(&rig, &id, MODEL_CALL_SET, 10000, 30000);
    cr_assert_str_eq(call->address, "i2:1");
    direct_rig_ok(&rig, call, 2);
    direct_rig_expect_ok(&rig, operation);
    direct_rig_deinit(&rig);
}

Test(direct, without_a_newer_hint_the_route_is_refreshed)
{
    expect_refresh_and_retry(MODEL_REASON_NOT_OWNER, NULL, 0, 0);
    expect_refresh_and_retry(MODEL_REASON_STALE_EPOCH, NULL, 0, 0);
    expect_refresh_and_retry(MODEL_REASON_STALE_INCARNATION, NULL, 0, 0);
    expect_refresh_and_retry(MODEL_REASON_SUPERSEDED, NULL, 0, 0);
    expect_refresh_and_retry(MODEL_REASON_NOT_OWNER, "i3", 4, 9);
    expect_refresh_and_retry(MODEL_REASON_NOT_OWNER, "i1", 5, 3);
    expect_refresh_and_retry(MODEL_REASON_OUTCOME_UNKNOWN, NULL, 0, 0);
    expect_refresh_and_retry(MODEL_REASON_STORE_ERROR, NULL, 0, 0);
}

Test(direct, a_pause_and_a_refresh_must_both_be_over)
{
    struct direct_rig rig;
    struct model_call *operation;

    direct_rig_init(&rig);
    direct_rig_fail(&rig, direct_rig_attempt(&rig, MODEL_CALL_SET, &operation),
                    MODEL_REASON_NOT_OWNER);
    direct_rig_pass(&rig, 1000000);
    cr_assert_eq(direct_rig_n_calls(&rig), 1);
    direct_rig_route(&rig, "i2", 7, 4);
    direct_rig_ok(&rig, direct_rig_take(&rig, MODEL_CALL_SET), 1);
    direct_rig_expect_ok(&rig, operation);
    direct_rig_deinit(&rig);
}

static void expect_retry_with_the_same_route(enum model_reason reason)
{
    struct direct_rig rig;
    struct model_call *operation, *call;
    struct model_request_id id;

    direct_rig_init(&rig);
    call = direct_rig_attempt(&rig, MODEL_CALL_PUT, &operation);
    id = call->request.data.header.request_id;
    direct_rig_fail(&rig, call, reason);
    cr_assert_eq(direct_rig_n_calls(&rig), 0, "nothing is asked of the coordinator");
    call = take_retry(&rig, &id, MODEL_CALL_PUT, 10000, 30000);
    cr_assert_str_eq(call->address, "i1:1");
    cr_assert_eq(call->request.data.header.epoch, 5);
    direct_rig_ok(&rig, call, 1);
    direct_rig_expect_ok(&rig, operation);
    direct_rig_deinit(&rig);
}

Test(direct, unavailable_and_not_applied_is_repeated_there)
{
    expect_retry_with_the_same_route(MODEL_REASON_MOVING);
    expect_retry_with_the_same_route(MODEL_REASON_NOT_SERVING);
    expect_retry_with_the_same_route(MODEL_REASON_LEASE_EXPIRED);
    expect_retry_with_the_same_route(MODEL_REASON_DRAINING);
    expect_retry_with_the_same_route(MODEL_REASON_READ_ONLY);
    expect_retry_with_the_same_route(MODEL_REASON_DEADLINE_EXCEEDED);
    expect_retry_with_the_same_route(MODEL_REASON_CANCELLED);
}

Test(direct, an_owner_that_is_behind_leaves_the_cache_alone)
{
    expect_retry_with_the_same_route(MODEL_REASON_EPOCH_AHEAD);
    expect_retry_with_the_same_route(MODEL_REASON_TOKEN_AHEAD);
}

Test(direct, retry_after_is_obeyed)
{
    struct direct_rig rig;
    struct model_call *operation, *call;
    struct model_request_id id;

    direct_rig_init(&rig);
    call = direct_rig_attempt(&rig, MODEL_CALL_SET, &operation);
    id = call->request.data.header.request_id;
    model_response_fail(&call->response, MODEL_REASON_NOT_SERVING, "starting");
    call->response.error.retry_after_ms = 1500;
    esi_direct_call_done(rig.direct, call);
    call = take_retry(&rig, &id, MODEL_CALL_SET, 1500000, 1500000);
    direct_rig_ok(&rig, call, 1);
    direct_rig_expect_ok(&rig, operation);
    direct_rig_deinit(&rig);
}

Test(direct, a_plain_failure_is_maybe_and_makes_the_owner_suspect)
{
    static const enum rt_code codes[] = {RT_UNAVAILABLE, RT_DEADLINE_EXCEEDED, RT_CANCELLED,
                                         RT_INTERNAL, RT_UNKNOWN};

    for (size_t i = 0; i < RT_ARRAY_SIZE(codes); i++) {
        struct direct_rig rig;
        struct model_call *operation, *other, *call;
        struct model_request_id id;

        direct_rig_init(&rig);
        other = direct_rig_submit(&rig, MODEL_CALL_SET, "other");
        direct_rig_route(&rig, "i1", 6, 3);
        direct_rig_ok(&rig, direct_rig_take(&rig, MODEL_CALL_SET), 1);
        direct_rig_expect_ok(&rig, other);
        call = direct_rig_attempt(&rig, MODEL_CALL_SET, &operation);
        id = call->request.data.header.request_id;
        direct_rig_fail_plain(&rig, call, codes[i]);
        (void)direct_rig_submit(&rig, MODEL_CALL_SET, "other");
        cr_assert_eq(direct_rig_n_calls(&rig), 2, "both keys of that owner are asked for");
        direct_rig_route(&rig, "i1", 5, 3);
        /* Refused now, but the first attempt may still land. */
        direct_rig_fail(&rig, take_retry(&rig, &id, MODEL_CALL_SET, 10000, 30000),
                        MODEL_REASON_KEY_NOT_LOCKED);
        direct_rig_expect_failure(&rig, operation, MODEL_REASON_KEY_NOT_LOCKED,
                                  MODEL_APPLIED_MAYBE);
        direct_rig_deinit(&rig);
    }
}

Test(direct, what_never_left_is_not_applied)
{
    struct direct_rig rig;
    struct model_call *operation, *call;

    direct_rig_init(&rig);
    call = direct_rig_attempt(&rig, MODEL_CALL_SET, &operation);
    call->response.responder = (struct model_responder){0};
    call->response.code = RT_UNAVAILABLE;
    call->response.error = (struct model_error){.applied = MODEL_APPLIED_NO};
    esi_direct_call_done(rig.direct, call);
    direct_rig_fail(&rig, direct_rig_take(&rig, MODEL_CALL_ROUTE), MODEL_REASON_KEY_INACCESSIBLE);
    direct_rig_expect_failure(&rig, operation, MODEL_REASON_KEY_INACCESSIBLE, MODEL_APPLIED_NO);
    direct_rig_deinit(&rig);
}

Test(direct, a_read_is_never_unclear)
{
    struct direct_rig rig;
    struct model_call *operation, *call;

    direct_rig_init(&rig);
    call = direct_rig_attempt(&rig, MODEL_CALL_READ, &operation);
    direct_rig_fail_plain(&rig, call, RT_UNAVAILABLE);
    direct_rig_fail(&rig, direct_rig_take(&rig, MODEL_CALL_ROUTE), MODEL_REASON_KEY_LOST);
    direct_rig_expect_failure(&rig, operation, MODEL_REASON_KEY_LOST, MODEL_APPLIED_NO);
    direct_rig_deinit(&rig);
}

static void expect_failure_at_once(enum model_reason reason, enum model_applied applied)
{
    struct direct_rig rig;
    struct model_call *operation, *call;

    direct_rig_init(&rig);
    call = direct_rig_attempt(&rig, MODEL_CALL_PUT, &operation);
    model_response_fail(&call->response, reason, "as the test says");
    call->response.error.applied = applied;
    call->response.responder = (struct model_responder){.name = "i1", .incarnation = 3};
    esi_direct_call_done(rig.direct, call);
    direct_rig_expect_failure(&rig, operation, reason, applied);
    cr_assert_str_eq(operation->response.responder.name, "i1");
    cr_assert_eq(direct_rig_n_calls(&rig), 0);
    direct_rig_deinit(&rig);
}

Test(direct, a_fenced_lock_is_final)
{
    expect_failure_at_once(MODEL_REASON_LOCK_FENCED, MODEL_APPLIED_NO);
    expect_failure_at_once(MODEL_REASON_LOCK_FENCED, MODEL_APPLIED_MAYBE);
}

Test(direct, what_does_not_pass_by_itself_is_final)
{
    expect_failure_at_once(MODEL_REASON_KEY_NOT_LOCKED, MODEL_APPLIED_NO);
    expect_failure_at_once(MODEL_REASON_KEY_LOST, MODEL_APPLIED_NO);
    expect_failure_at_once(MODEL_REASON_SET_LOST, MODEL_APPLIED_NO);
    expect_failure_at_once(MODEL_REASON_VERSION_MISMATCH, MODEL_APPLIED_NO);
    expect_failure_at_once(MODEL_REASON_INVALID_FIELD, MODEL_APPLIED_NO);
    expect_failure_at_once(MODEL_REASON_NO_ENTRIES, MODEL_APPLIED_NO);
    expect_failure_at_once(MODEL_REASON_DISK_FULL, MODEL_APPLIED_NO);
    expect_failure_at_once(MODEL_REASON_LIMIT_REACHED, MODEL_APPLIED_NO);
    expect_failure_at_once(MODEL_REASON_WRONG_CLUSTER, MODEL_APPLIED_NO);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

/* Fails every attempt alike, and confirms the route, until the operation ends. */
static uint32_t fail_all(struct direct_rig *rig, const struct model_call *operation,
                         enum rt_code code)
{
    uint32_t n = 0;

    while (!direct_rig_is_answered(rig, operation)) {
        struct model_call *call;

        if (rt_list_is_empty(&rig->calls)) {
            (void)direct_rig_wake(rig);
            continue;
        }
        call = RT_LIST_ENTRY(rig->calls.next, struct model_call, link);
        if (call->request.kind == MODEL_CALL_ROUTE) {
            direct_rig_route(rig, "i1", 5, 3);
            continue;
        }
        rt_list_remove(&call->link);
        direct_rig_fail_plain(rig, call, code);
        n++;
    }
    return n;
}

/* So that they fit into one message, whatever the clock says between them. */
Test(direct, attempts_that_begin_together_end_together)
{
    struct direct_rig rig;
    struct model_call *operation, *calls[2];

    direct_rig_init(&rig);
    direct_rig_ok(&rig, direct_rig_attempt(&rig, MODEL_CALL_SET, &operation), 1);
    rig.fake.now_us = 100 * 64 * 1024;
    for (size_t i = 0; i < RT_ARRAY_SIZE(calls); i++) {
        (void)direct_rig_submit(&rig, MODEL_CALL_SET, "k");
        calls[i] = direct_rig_take(&rig, MODEL_CALL_SET);
        rig.fake.now_us += 30000;
    }
    cr_assert_eq(calls[0]->deadline_us, calls[1]->deadline_us);
    for (size_t i = 0; i < RT_ARRAY_SIZE(calls); i++)
        direct_rig_ok(&rig, calls[i], 2 + i);
    direct_rig_deinit(&rig);
}

Test(direct, eight_attempts_and_then_unknown)
{
    struct direct_rig rig;
    struct model_call *operation;
    uint64_t began;

    direct_rig_init(&rig);
    began = rig.fake.now_us;
    operation = direct_rig_submit(&rig, MODEL_CALL_SET, "k");
    cr_assert_eq(fail_all(&rig, operation, RT_UNAVAILABLE), ESI_RETRY_ATTEMPTS_MAX);
    direct_rig_expect_failure(&rig, operation, MODEL_REASON_NONE, MODEL_APPLIED_MAYBE);
    cr_assert_leq(rig.fake.now_us - began, DIRECT_RIG_TIMEOUT_US);
    direct_rig_deinit(&rig);
}

Test(direct, eight_attempts_for_a_route)
{
    struct direct_rig rig;
    struct model_call *operation, *other;
    uint32_t n = 0;

    direct_rig_init(&rig);
    operation = direct_rig_submit(&rig, MODEL_CALL_SET, "k");
    other = direct_rig_submit(&rig, MODEL_CALL_READ, "k");
    while (!direct_rig_is_answered(&rig, operation)) {
        if (rt_list_is_empty(&rig.calls)) {
            (void)direct_rig_wake(&rig);
            continue;
        }
        direct_rig_fail_plain(&rig, direct_rig_take(&rig, MODEL_CALL_ROUTE), RT_UNAVAILABLE);
        n++;
    }
    cr_assert_eq(n, ESI_RETRY_ATTEMPTS_MAX);
    direct_rig_expect_failure(&rig, operation, MODEL_REASON_NONE, MODEL_APPLIED_NO);
    direct_rig_expect_failure(&rig, other, MODEL_REASON_NONE, MODEL_APPLIED_NO);
    direct_rig_deinit(&rig);
}

Test(direct, no_answer_at_all_ends_at_the_deadline)
{
    struct direct_rig rig;
    struct model_call *operation, *first, *second;
    uint64_t began;

    direct_rig_init(&rig);
    began = rig.fake.now_us;
    first = direct_rig_attempt(&rig, MODEL_CALL_SET, &operation);
    cr_assert_leq(first->deadline_us, began + 5000000);
    cr_assert_gt(first->deadline_us, began + 4900000);
    direct_rig_pass(&rig, 5050000);
    direct_rig_route(&rig, "i1", 5, 3);
    direct_rig_pass(&rig, 50000);
    second = direct_rig_take(&rig, MODEL_CALL_SET);
    cr_assert_eq(second->request.data.header.request_id.seq,
                 first->request.data.header.request_id.seq);
    cr_assert_eq(second->deadline_us, began + DIRECT_RIG_TIMEOUT_US);
    while (!direct_rig_is_answered(&rig, operation))
        (void)direct_rig_wake(&rig);
    cr_assert_eq(rig.fake.now_us, began + DIRECT_RIG_TIMEOUT_US);
    direct_rig_expect_failure(&rig, operation, MODEL_REASON_DEADLINE_EXCEEDED, MODEL_APPLIED_MAYBE);
    /* Late answers are of no interest any more. */
    direct_rig_ok(&rig, first, 1);
    direct_rig_fail(&rig, second, MODEL_REASON_NOT_OWNER);
    cr_assert_eq(direct_rig_n_calls(&rig), 0);
    direct_rig_deinit(&rig);
}

Test(direct, no_route_at_all_ends_at_the_deadline)
{
    struct direct_rig rig;
    struct model_call *operation;
    uint64_t began;

    direct_rig_init(&rig);
    began = rig.fake.now_us;
    operation = direct_rig_submit(&rig, MODEL_CALL_SET, "k");
    while (!direct_rig_is_answered(&rig, operation))
        (void)direct_rig_wake(&rig);
    cr_assert_eq(rig.fake.now_us, began + DIRECT_RIG_TIMEOUT_US);
    direct_rig_expect_failure(&rig, operation, MODEL_REASON_DEADLINE_EXCEEDED, MODEL_APPLIED_NO);
    cr_assert_eq(esi_direct_next_wakeup_us(rig.direct), RT_NEVER, "nobody waits for the route");
    direct_rig_deinit(&rig);
}

Test(direct, a_pause_past_the_deadline_ends_at_once)
{
    struct direct_rig rig;
    struct model_call *operation, *call;

    direct_rig_init(&rig);
    call = direct_rig_attempt(&rig, MODEL_CALL_SET, &operation);
    model_response_fail(&call->response, MODEL_REASON_NOT_SERVING, "starting");
    call->response.error.retry_after_ms = DIRECT_RIG_TIMEOUT_US / 1000;
    esi_direct_call_done(rig.direct, call);
    direct_rig_expect_failure(&rig, operation, MODEL_REASON_NOT_SERVING, MODEL_APPLIED_NO);
    direct_rig_deinit(&rig);
}

Test(direct, retries_are_a_fifth_of_the_traffic)
{
    struct direct_rig rig;
    uint32_t n_operations = 40, n_requests = 0;

    direct_rig_init(&rig);
    for (uint32_t i = 0; i < n_operations; i++)
        n_requests += fail_all(&rig, direct_rig_submit(&rig, MODEL_CALL_SET, "k"), RT_UNAVAILABLE);
    cr_assert_leq(n_requests - n_operations,
                  n_operations / 5 + 10 + (uint32_t)(rig.fake.now_us / 1000000));
    cr_assert_geq(n_requests - n_operations, 10);
    direct_rig_deinit(&rig);
}

Test(direct, what_is_finished_is_told_while_others_run)
{
    struct direct_rig rig;
    struct model_call *operations[3], *calls[3], *call;

    direct_rig_init(&rig);
    calls[0] = direct_rig_attempt(&rig, MODEL_CALL_SET, &operations[0]);
    for (int i = 1; i < 3; i++) {
        operations[i] = direct_rig_submit(&rig, MODEL_CALL_SET, "k");
        calls[i] = direct_rig_take(&rig, MODEL_CALL_SET);
    }
    for (uint64_t i = 0; i < 3; i++) {
        cr_assert_eq(calls[i]->request.data.header.request_id.seq, i + 1);
        cr_assert_eq(calls[i]->request.data.header.done_below, 1);
    }
    direct_rig_ok(&rig, calls[1], 2);
    direct_rig_fail(&rig, calls[2], MODEL_REASON_MOVING);
    (void)direct_rig_wake(&rig);
    calls[2] = direct_rig_take(&rig, MODEL_CALL_SET);
    cr_assert_eq(calls[2]->request.data.header.done_below, 1, "the first one is under way");
    direct_rig_ok(&rig, calls[0], 1);
    (void)direct_rig_submit(&rig, MODEL_CALL_SET, "k");
    call = direct_rig_take(&rig, MODEL_CALL_SET);
    cr_assert_eq(call->request.data.header.request_id.seq, 4);
    cr_assert_eq(call->request.data.header.done_below, 3);
    direct_rig_ok(&rig, calls[2], 3);
    direct_rig_ok(&rig, call, 4);
    (void)direct_rig_submit(&rig, MODEL_CALL_SET, "k");
    call = direct_rig_take(&rig, MODEL_CALL_SET);
    cr_assert_eq(call->request.data.header.done_below, 5);
    direct_rig_deinit(&rig);
}

static void submit_sizes(struct direct_rig *rig, size_t key_size, size_t value_size,
                         struct model_call **ret_call)
{
    static const uint8_t zeros[MODEL_VALUE_MAX + 1];
    struct model_call *call = model_call_new(MODEL_CALL_PUT);

    call->request.data.header.key = rt_bytes_of(zeros, key_size);
    call->request.data.value = rt_bytes_of(zeros, value_size);
    esi_direct_submit(rig->direct, call);
    *ret_call = call;
}

Test(direct, keys_and_values_at_the_limit_and_past_it)
{
    struct direct_rig rig;
    struct model_call *call;

    direct_rig_init(&rig);
    submit_sizes(&rig, 0, 1, &call);
    direct_rig_expect_failure(&rig, call, MODEL_REASON_KEY_EMPTY, MODEL_APPLIED_NO);
    submit_sizes(&rig, MODEL_KEY_MAX + 1, 1, &call);
    direct_rig_expect_failure(&rig, call, MODEL_REASON_KEY_TOO_LONG, MODEL_APPLIED_NO);
    submit_sizes(&rig, 1, MODEL_VALUE_MAX + 1, &call);
    direct_rig_expect_failure(&rig, call, MODEL_REASON_VALUE_TOO_LARGE, MODEL_APPLIED_NO);
    cr_assert_eq(direct_rig_n_calls(&rig), 0);
    submit_sizes(&rig, MODEL_KEY_MAX, MODEL_VALUE_MAX, &call);
    cr_assert_not(direct_rig_is_answered(&rig, call));
    direct_rig_deinit(&rig);
}

/* Those past the limit wait for one before them to end. */
Test(direct, routes_under_way_at_the_limit_and_past_it)
{
    static char keys[ESI_DIRECT_FETCHES_MAX + 3][8];
    struct model_call *operations[RT_ARRAY_SIZE(keys)];
    struct direct_rig rig;

    direct_rig_init(&rig);
    for (size_t i = 0; i < RT_ARRAY_SIZE(keys); i++) {
        (void)snprintf(keys[i], sizeof(keys[i]), "%zu", i);
        operations[i] = direct_rig_submit(&rig, MODEL_CALL_READ, keys[i]);
    }
    cr_assert_eq(direct_rig_n_calls(&rig), ESI_DIRECT_FETCHES_MAX);
    direct_rig_fail(&rig, direct_rig_take(&rig, MODEL_CALL_ROUTE), MODEL_REASON_KEY_NOT_IDENTIFIED);
    cr_assert_eq(direct_rig_n_calls(&rig), ESI_DIRECT_FETCHES_MAX);
    esi_direct_cancel(rig.direct, operations[ESI_DIRECT_FETCHES_MAX + 1]);
    cr_assert_eq(direct_rig_n_calls(&rig), ESI_DIRECT_FETCHES_MAX);
    for (size_t i = 0; i < ESI_DIRECT_FETCHES_MAX + 1; i++)
        direct_rig_fail(&rig, direct_rig_take(&rig, MODEL_CALL_ROUTE),
                        MODEL_REASON_KEY_NOT_IDENTIFIED);
    cr_assert_eq(direct_rig_n_calls(&rig), 0);
    for (size_t i = 0; i < RT_ARRAY_SIZE(keys); i++)
        cr_assert(direct_rig_is_answered(&rig, operations[i]));
    direct_rig_deinit(&rig);
}

Test(direct, operations_at_the_limit_and_past_it)
{
    struct direct_rig rig;
    struct model_call *call, *last;

    direct_rig_init(&rig);
    for (size_t i = 0; i + 1 < ESI_DIRECT_OPERATIONS_MAX; i++)
        (void)direct_rig_submit(&rig, MODEL_CALL_SET, "k");
    last = direct_rig_submit(&rig, MODEL_CALL_SET, "k");
    cr_assert_not(direct_rig_is_answered(&rig, last));
    call = direct_rig_submit(&rig, MODEL_CALL_SET, "k");
    direct_rig_expect_failure(&rig, call, MODEL_REASON_LIMIT_REACHED, MODEL_APPLIED_NO);
    esi_direct_cancel(rig.direct, last);
    direct_rig_expect_failure(&rig, last, MODEL_REASON_CANCELLED, MODEL_APPLIED_NO);
    call = direct_rig_submit(&rig, MODEL_CALL_SET, "k");
    cr_assert_not(direct_rig_is_answered(&rig, call));
    direct_rig_deinit(&rig);
}

Test(direct, a_cancelled_operation_may_have_been_applied_once_it_was_sent)
{
    struct direct_rig rig;
    struct model_call *operation, *call;

    direct_rig_init(&rig);
    operation = direct_rig_submit(&rig, MODEL_CALL_SET, "k");
    esi_direct_cancel(rig.direct, operation);
    direct_rig_expect_failure(&rig, operation, MODEL_REASON_CANCELLED, MODEL_APPLIED_NO);
    (void)direct_rig_take(&rig, MODEL_CALL_ROUTE);
    call = direct_rig_attempt(&rig, MODEL_CALL_SET, &operation);
    esi_direct_cancel(rig.direct, operation);
    direct_rig_expect_failure(&rig, operation, MODEL_REASON_CANCELLED, MODEL_APPLIED_MAYBE);
    direct_rig_ok(&rig, call, 1);
    direct_rig_deinit(&rig);
}

Test(direct, nothing_is_taken_after_close)
{
    struct direct_rig rig;
    struct model_call *operation, *late;

    direct_rig_init(&rig);
    operation = direct_rig_submit(&rig, MODEL_CALL_SET, "k");
    esi_direct_close(rig.direct);
    direct_rig_expect_failure(&rig, operation, MODEL_REASON_CANCELLED, MODEL_APPLIED_NO);
    cr_assert(esi_direct_is_closed(rig.direct));
    late = direct_rig_submit(&rig, MODEL_CALL_LOCK, "k");
    direct_rig_expect_failure(&rig, late, MODEL_REASON_CANCELLED, MODEL_APPLIED_NO);
    direct_rig_deinit(&rig);
}

Test(direct, without_memory_for_a_request_it_was_not_sent)
{
    struct direct_rig rig;
    struct model_call *operation;

    direct_rig_init(&rig);
    operation = direct_rig_submit(&rig, MODEL_CALL_SET, "k");
    (void)direct_rig_n_calls(&rig);
    test_alloc_fail_after(0, 1);
    direct_rig_route(&rig, "i1", 5, 3);
    test_alloc_fail_never();
    direct_rig_expect_failure(&rig, operation, MODEL_REASON_LIMIT_REACHED, MODEL_APPLIED_NO);

    test_alloc_fail_after(0, 1);
    operation = direct_rig_submit(&rig, MODEL_CALL_SET, "other");
    test_alloc_fail_never();
    cr_assert_eq(direct_rig_n_calls(&rig), 0);
    (void)direct_rig_wake(&rig);
    direct_rig_route(&rig, "i1", 6, 3);
    direct_rig_ok(&rig, direct_rig_take(&rig, MODEL_CALL_SET), 1);
    direct_rig_expect_ok(&rig, operation);
    direct_rig_deinit(&rig);
}

Test(direct, without_memory_for_an_answer_a_read_fails)
{
    struct direct_rig rig;
    struct model_call *operation, *call;

    direct_rig_init(&rig);
    call = direct_rig_attempt(&rig, MODEL_CALL_READ, &operation);
    model_response_ok(&call->response, MODEL_CALL_READ);
    call->response.data.has_value = true;
    call->response.data.value = RT_BYTES_LITERAL("there");
    test_alloc_fail_after(0, 1);
    esi_direct_call_done(rig.direct, call);
    test_alloc_fail_never();
    direct_rig_expect_failure(&rig, operation, MODEL_REASON_LIMIT_REACHED, MODEL_APPLIED_NO);
    direct_rig_deinit(&rig);
}
