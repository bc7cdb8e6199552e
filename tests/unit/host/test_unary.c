/*
 * Unary calls into a core: answered inline, later, never; refused before they reach it; cancelled;
 * over when the service ends.
 */
#include "redistinto/v1/coordinator.pb-c.h"
#include "redistinto/v1/instance.pb-c.h"
#include "tests/support/check.h"
#include "tests/unit/host/rig.h"

TestSuite(unary, .fini = test_alloc_expect_none, .timeout = 50);

static struct host_rig rig;
static struct host_node *const node = &rig.nodes[0];

static void set_up(enum fake_mode mode)
{
    host_rig_init(&rig, 1);
    node->core.mode = mode;
}

static void tear_down(void)
{
    host_rig_stop(&rig);
    host_rig_deinit(&rig);
}

Test(unary, is_answered_inline)
{
    set_up(FAKE_NOW);
    for (uint64_t tag = 1; tag <= 20; tag++)
        cr_assert_eq(client_call_now(&rig, MODEL_CALL_SET, tag), RT_OK);
    cr_assert_eq(latch_count(&node->core.submits), 20);
    cr_assert_eq(latch_count(&node->core.cancels), 0);
    tear_down();
}

Test(unary, is_answered_later_from_another_thread)
{
    struct client_call calls[3];

    set_up(FAKE_HOLD);
    for (unsigned i = 0; i < 3; i++)
        client_call_start(&rig, &calls[i], MODEL_CALL_READ, i + 1, 20000);
    latch_wait(&node->core.submits, 3);
    cr_assert_eq(latch_count(&calls[0].done), 0);
    host_node_step(node, fake_answer_all, NULL);
    for (unsigned i = 0; i < 3; i++) {
        client_call_wait(&calls[i]);
        cr_assert_eq(calls[i].response.code, RT_OK);
        cr_assert_eq(calls[i].response.data.version.seq, i + 1);
        client_call_deinit(&calls[i]);
    }
    cr_assert_eq(latch_count(&node->core.cancels), 0);
    tear_down();
}

Test(unary, is_answered_later_from_the_loop)
{
    set_up(FAKE_TICK);
    for (uint64_t tag = 1; tag <= 5; tag++)
        cr_assert_eq(client_call_now(&rig, MODEL_CALL_SET, tag), RT_OK);
    cr_assert_geq(latch_count(&node->core.ticks), 1);
    tear_down();
}

Test(unary, a_failure_arrives_with_its_details)
{
    struct client_call call;

    set_up(FAKE_NOW);
    node->core.fails = true;
    client_call_start(&rig, &call, MODEL_CALL_SET, 1, 20000);
    client_call_wait(&call);
    cr_assert_eq(call.response.code, RT_FAILED_PRECONDITION);
    cr_assert_eq(call.response.error.reason, MODEL_REASON_KEY_LOST);
    cr_assert_eq(call.response.error.applied, MODEL_APPLIED_NO);
    cr_assert_eq(call.response.error.current_epoch, 7);
    cr_assert(call.response.error.has_hint);
    cr_assert_str_eq(call.response.error.hint.name, "i2");
    client_call_deinit(&call);
    tear_down();
}

Test(unary, an_invalid_request_is_refused_with_details)
{
    Redistinto__V1__InstanceServiceSetRequest empty;
    struct client_call call;

    set_up(FAKE_NOW);
    redistinto__v1__instance_service_set_request__init(&empty);
    client_call_send(&rig, &call, MODEL_CALL_SET, &empty.base, 20000);
    client_call_wait(&call);
    cr_assert_eq(call.response.code, RT_INVALID_ARGUMENT);
    cr_assert_eq(call.response.error.reason, MODEL_REASON_INVALID_FIELD);
    cr_assert_eq(call.response.error.applied, MODEL_APPLIED_NO);
    cr_assert_str_eq(call.response.responder.name, FAKE_NAME);
    cr_assert_eq(call.response.responder.term, 4);
    client_call_deinit(&call);
    cr_assert_eq(client_call_now(&rig, MODEL_CALL_SET, 1), RT_OK);
    cr_assert_eq(latch_count(&node->core.submits), 1);
    tear_down();
}

Test(unary, an_undecodable_request_is_refused)
{
    Redistinto__V1__OpenSessionRequest other;
    struct client_call call;

    set_up(FAKE_NOW);
    redistinto__v1__open_session_request__init(&other);
    other.name = (char *)"\xff\xff"; /* where SET has a message */
    client_call_send(&rig, &call, MODEL_CALL_SET, &other.base, 20000);
    client_call_wait(&call);
    cr_assert_eq(call.response.code, RT_INVALID_ARGUMENT);
    client_call_deinit(&call);
    cr_assert_eq(latch_count(&node->core.submits), 0);
    tear_down();
}

Test(unary, the_deadline_reaches_the_core)
{
    uint64_t before;
    struct client_call call;

    set_up(FAKE_NOW);
    before = rt_env_now_us(node->core.env);
    client_call_start(&rig, &call, MODEL_CALL_SET, 1, 15000);
    client_call_wait(&call);
    cr_assert_gt(node->core.last_deadline_us, before + 10000000);
    /* The wire rounds a timeout up. */
    cr_assert_leq(node->core.last_deadline_us, rt_env_now_us(node->core.env) + 15200000);
    client_call_deinit(&call);
    tear_down();
}

Test(unary, a_client_that_cancels_is_told_to_the_core_once)
{
    struct client_call call;

    set_up(FAKE_HOLD);
    client_call_start(&rig, &call, MODEL_CALL_SET, 1, 20000);
    latch_wait(&node->core.submits, 1);
    client_call_cancel(&call);
    client_call_wait(&call);
    cr_assert_eq(call.response.code, RT_CANCELLED);
    latch_wait(&node->core.cancels, 1);
    /* The answer that comes now goes nowhere. */
    host_node_step(node, fake_answer_all, NULL);
    client_call_deinit(&call);
    node->core.mode = FAKE_NOW;
    cr_assert_eq(client_call_now(&rig, MODEL_CALL_SET, 2), RT_OK);
    cr_assert_eq(latch_count(&node->core.cancels), 1);
    tear_down();
}

/* A busy machine may let a deadline pass before the call is at the server: then a longer one. */
static void let_a_held_call_time_out(void)
{
    struct client_call call;

    for (uint32_t timeout_ms = 50; latch_count(&node->core.submits) == 0; timeout_ms *= 4) {
        client_call_start(&rig, &call, MODEL_CALL_SET, 1, timeout_ms);
        client_call_wait(&call);
        cr_assert_eq(call.response.code, RT_DEADLINE_EXCEEDED);
        cr_assert_eq(call.response.error.applied, MODEL_APPLIED_MAYBE);
        client_call_deinit(&call);
    }
}

Test(unary, a_deadline_is_told_to_the_core_once)
{
    set_up(FAKE_HOLD);
    let_a_held_call_time_out();
    latch_wait(&node->core.cancels, 1);
    host_node_step(node, fake_answer_all, NULL);
    tear_down();
    cr_assert_eq(latch_count(&node->core.cancels), latch_count(&node->core.submits));
}

Test(unary, may_be_answered_inside_the_cancellation)
{
    struct client_call call;

    set_up(FAKE_HOLD);
    node->core.answers_cancelled = true;
    client_call_start(&rig, &call, MODEL_CALL_SET, 1, 20000);
    latch_wait(&node->core.submits, 1);
    client_call_cancel(&call);
    latch_wait(&node->core.answers, 1);
    client_call_wait(&call);
    client_call_deinit(&call);
    tear_down();
    cr_assert_eq(latch_count(&node->core.cancels), 1);
}

/* The answer and the cancellation race; whoever comes second finds nothing to do. */
Test(unary, cancellations_race_with_answers)
{
    struct client_call call;

    set_up(FAKE_HOLD);
    for (unsigned round = 1; round <= 200; round++) {
        client_call_start(&rig, &call, MODEL_CALL_SET, round, 20000);
        latch_wait(&node->core.submits, round);
        client_call_cancel(&call);
        host_node_step(node, fake_answer_all, NULL);
        client_call_wait(&call);
        client_call_deinit(&call);
    }
    tear_down();
    cr_assert_eq(node->core.n_inside, 0);
}

Test(unary, a_cancellation_after_the_answer_is_not_told)
{
    struct client_call call;

    set_up(FAKE_NOW);
    client_call_start(&rig, &call, MODEL_CALL_SET, 1, 20000);
    client_call_wait(&call);
    client_call_cancel(&call);
    client_call_deinit(&call);
    tear_down();
    cr_assert_eq(latch_count(&node->core.cancels), 0);
}

/* A drain waits for calls, then cancels them; the core still answers. */
Test(unary, a_drain_cancels_what_stays_and_refuses_what_comes)
{
    struct client_call call;

    set_up(FAKE_HOLD);
    client_call_start(&rig, &call, MODEL_CALL_SET, 1, 20000);
    latch_wait(&node->core.submits, 1);
    host_node_down(node, 1);
    latch_wait(&node->core.cancels, 1);
    client_call_wait(&call);
    cr_assert_neq(call.response.code, RT_OK);
    client_call_deinit(&call);
    cr_assert_eq(client_call_now(&rig, MODEL_CALL_SET, 2), RT_UNAVAILABLE);
    host_node_step(node, fake_answer_all, NULL);
    tear_down();
    cr_assert_eq(latch_count(&node->core.submits), 1);
}

Test(unary, what_the_core_never_answers_is_released_at_the_end)
{
    struct client_call calls[2];

    set_up(FAKE_HOLD);
    for (unsigned i = 0; i < 2; i++)
        client_call_start(&rig, &calls[i], MODEL_CALL_SET, i, 20000);
    latch_wait(&node->core.submits, 2);
    tear_down();
    for (unsigned i = 0; i < 2; i++) {
        cr_assert_neq(calls[i].response.code, RT_OK);
        client_call_deinit(&calls[i]);
    }
    cr_assert_eq(latch_count(&node->core.cancels), 2);
}

Test(unary, an_answer_that_does_not_fit_its_arena_fails)
{
    struct client_call call;

    set_up(FAKE_NOW);
    node->core.fills_arena = true;
    client_call_start(&rig, &call, MODEL_CALL_SET, 1, 20000);
    client_call_wait(&call);
    cr_assert_eq(call.response.code, RT_RESOURCE_EXHAUSTED);
    cr_assert_eq(call.response.error.applied, MODEL_APPLIED_MAYBE);
    client_call_deinit(&call);
    tear_down();
}
