/*
 * Unary calls that a core makes: answers, failures with and without details, deadlines, peers that
 * are not there, and what is asked for when it is too late.
 */
#include "tests/support/check.h"
#include "tests/unit/host/rig.h"

TestSuite(outbound, .fini = test_alloc_expect_none, .timeout = 50);

static struct host_rig rig;
static struct host_node *const node = &rig.nodes[0];
static struct host_node *const peer = &rig.nodes[1];
static struct fake_order order;

static void set_up(enum fake_mode mode)
{
    host_rig_init(&rig, 2);
    peer->core.mode = mode;
    order = (struct fake_order){.kind = MODEL_CALL_SET, .address = peer->address, .tag = 1};
}

static void tear_down(void)
{
    host_rig_stop(&rig);
    host_rig_deinit(&rig);
}

Test(outbound, is_answered)
{
    struct fake_result result;

    set_up(FAKE_NOW);
    for (order.tag = 1; order.tag <= 20; order.tag++) {
        result = host_node_call(node, &order);
        cr_assert_eq(result.code, RT_OK);
        cr_assert_eq(result.tag, order.tag);
        cr_assert_not(result.was_loop_thread);
    }
    tear_down();
}

Test(outbound, a_call_may_be_relayed)
{
    set_up(FAKE_TICK);
    node->core.mode = FAKE_RELAY;
    node->core.relay_address = peer->address;
    for (uint64_t tag = 1; tag <= 5; tag++)
        cr_assert_eq(client_call_now(&rig, MODEL_CALL_SET, tag), RT_OK);
    peer->core.fails = true;
    cr_assert_eq(client_call_now(&rig, MODEL_CALL_SET, 6), RT_FAILED_PRECONDITION);
    tear_down();
}

Test(outbound, a_failure_keeps_its_details)
{
    struct fake_result result;

    set_up(FAKE_NOW);
    peer->core.fails = true;
    result = host_node_call(node, &order);
    cr_assert_eq(result.code, RT_FAILED_PRECONDITION);
    cr_assert_eq(result.error.reason, MODEL_REASON_KEY_LOST);
    cr_assert_eq(result.error.applied, MODEL_APPLIED_NO);
    cr_assert_eq(result.error.current_epoch, 7);
    cr_assert(result.error.has_hint);
    cr_assert_str_eq(result.error.hint.address, "h:1");
    tear_down();
}

Test(outbound, without_a_deadline_gets_one)
{
    uint64_t now_us;

    set_up(FAKE_NOW);
    cr_assert_eq(host_node_call(node, &order).code, RT_OK);
    now_us = rt_env_now_us(peer->core.env);
    cr_assert_lt(peer->core.last_deadline_us, now_us + 11000000);
    cr_assert_gt(peer->core.last_deadline_us, now_us + 1000000);
    tear_down();
}

Test(outbound, keeps_its_deadline)
{
    uint64_t now_us;

    set_up(FAKE_NOW);
    order.timeout_us = 30000000;
    cr_assert_eq(host_node_call(node, &order).code, RT_OK);
    now_us = rt_env_now_us(peer->core.env);
    cr_assert_lt(peer->core.last_deadline_us, now_us + 31000000);
    cr_assert_gt(peer->core.last_deadline_us, now_us + 20000000);
    tear_down();
}

Test(outbound, a_deadline_far_away_is_cut_to_about_a_day)
{
    uint64_t now_us;

    set_up(FAKE_NOW);
    order.timeout_us = (uint64_t)(UINT32_MAX + UINT64_C(1)) * 1000; /* 0 ms in 32 bits */
    cr_assert_eq(host_node_call(node, &order).code, RT_OK);
    order.timeout_us = RT_NEVER / 2;
    cr_assert_eq(host_node_call(node, &order).code, RT_OK);
    now_us = rt_env_now_us(peer->core.env);
    cr_assert_leq(peer->core.last_deadline_us,
                  now_us + UINT64_C(2) * 86400 * 1000000); /* gRPC rounds */
    cr_assert_gt(peer->core.last_deadline_us, now_us + UINT64_C(86000) * 1000000);
    tear_down();
}

Test(outbound, a_deadline_that_passes_leaves_it_open_whether_it_was_applied)
{
    struct fake_result result;

    set_up(FAKE_HOLD);
    order.timeout_us = 50000;
    result = host_node_call(node, &order);
    cr_assert_eq(result.code, RT_DEADLINE_EXCEEDED);
    cr_assert_eq(result.error.applied, MODEL_APPLIED_MAYBE);
    latch_wait(&peer->core.cancels, 1);
    tear_down();
}

static void check_refused(const struct fake_result *result, enum rt_code code)
{
    cr_assert_eq(result->code, code);
    cr_assert_eq(result->error.reason, MODEL_REASON_NONE);
    cr_assert_eq(result->error.applied, MODEL_APPLIED_NO);
    cr_assert(result->was_loop_thread);
}

/* The core aborts when a completion comes inside the step that made the call. */
Test(outbound, whose_deadline_has_passed_is_not_made)
{
    struct fake_result result;

    set_up(FAKE_NOW);
    order.is_late = true;
    result = host_node_call(node, &order);
    check_refused(&result, RT_DEADLINE_EXCEEDED);
    tear_down();
    cr_assert_eq(latch_count(&peer->core.submits), 0);
}

Test(outbound, with_less_than_a_millisecond_left_is_not_made)
{
    struct fake_result result;

    set_up(FAKE_NOW);
    order.timeout_us = 999;
    result = host_node_call(node, &order);
    check_refused(&result, RT_DEADLINE_EXCEEDED);
    tear_down();
}

Test(outbound, whose_request_does_not_fit_its_arena_is_not_made)
{
    struct fake_result result;

    set_up(FAKE_NOW);
    order.arena_limit = 1;
    result = host_node_call(node, &order);
    check_refused(&result, RT_RESOURCE_EXHAUSTED);
    tear_down();
    cr_assert_eq(latch_count(&peer->core.submits), 0);
}

Test(outbound, whose_answer_does_not_fit_its_arena_may_have_been_applied)
{
    struct fake_result result;

    set_up(FAKE_NOW);
    order.arena_limit = 2000; /* enough for the request's message */
    order.kind = MODEL_CALL_EXECUTE;
    peer->core.value_size = 100000;
    result = host_node_call(node, &order);
    cr_assert_eq(result.code, RT_RESOURCE_EXHAUSTED);
    cr_assert_eq(result.error.applied, MODEL_APPLIED_MAYBE);
    tear_down();
    cr_assert_eq(latch_count(&peer->core.submits), 1);
}

Test(outbound, to_nobody_was_certainly_not_applied)
{
    struct fake_result result;

    set_up(FAKE_NOW);
    host_node_down(peer, 1);
    result = host_node_call(node, &order);
    cr_assert_eq(result.code, RT_UNAVAILABLE);
    cr_assert_eq(result.error.applied, MODEL_APPLIED_NO);
    host_node_up(peer);
    do
        result = host_node_call(node, &order);
    while (result.code == RT_UNAVAILABLE && result.error.applied == MODEL_APPLIED_NO);
    cr_assert_eq(result.code, RT_OK);
    tear_down();
}

Test(outbound, to_no_address_at_all_fails)
{
    struct fake_result result;

    set_up(FAKE_NOW);
    order.address = "nowhere.invalid:x:y";
    order.timeout_us = 2000000;
    result = host_node_call(node, &order);
    cr_assert_neq(result.code, RT_OK);
    tear_down();
}

Test(outbound, cut_by_a_dying_peer_may_have_been_applied)
{
    struct fake_result result;
    unsigned n_done;

    set_up(FAKE_HOLD);
    n_done = latch_count(&node->core.dones);
    host_node_step(node, fake_make_call, &order);
    latch_wait(&peer->core.submits, 1);
    host_node_down(peer, 1);
    latch_wait(&node->core.dones, n_done + 1);
    host_node_settle(node);
    result = node->core.results[0];
    cr_assert_neq(result.code, RT_OK);
    cr_assert_eq(result.error.applied, MODEL_APPLIED_MAYBE);
    tear_down();
}

Test(outbound, after_the_stop_is_refused)
{
    struct fake_result result;

    set_up(FAKE_NOW);
    cr_assert_eq(host_node_call(node, &order).code, RT_OK);
    host_stop(node->host);
    result = host_node_call(node, &order);
    check_refused(&result, RT_CANCELLED);
    order.kind = MODEL_CALL_EXECUTE;
    result = host_node_call(node, &order);
    check_refused(&result, RT_CANCELLED);
    tear_down();
    cr_assert_eq(latch_count(&peer->core.submits), 1);
}

/* What is under way at the end comes back before the loop has ended. */
Test(outbound, under_way_at_the_end_comes_back)
{
    set_up(FAKE_HOLD);
    for (unsigned i = 0; i < 5; i++)
        host_node_step(node, fake_make_call, &order);
    latch_wait(&peer->core.submits, 5);
    host_rig_stop(&rig);
    cr_assert_eq(latch_count(&node->core.dones), 5);
    for (unsigned i = 0; i < 5; i++) {
        cr_assert_neq(node->core.results[i].code, RT_OK);
        cr_assert_eq(node->core.results[i].error.applied, MODEL_APPLIED_MAYBE);
    }
    host_rig_deinit(&rig);
}
