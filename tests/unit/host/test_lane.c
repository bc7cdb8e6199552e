/*
 * Calls of streaming kinds that a core makes: matched answers on one stream to each address,
 * deadlines, peers that restart, misbehave or do not read.
 */
#include <stdatomic.h>
#include <stdio.h>

#include "redistinto/v1/coordinator.pb-c.h"
#include "runtime/host/internal.h"
#include "runtime/model/limits.h"
#include "tests/support/check.h"
#include "tests/unit/host/rig.h"

TestSuite(lane, .fini = test_alloc_expect_none, .timeout = 50);

static struct host_rig rig;
static struct host_node *const node = &rig.nodes[0];
static struct host_node *const peer = &rig.nodes[1];
static struct fake_order order;

static void set_up(enum fake_mode mode)
{
    host_rig_init(&rig, 2);
    peer->core.mode = mode;
    order = (struct fake_order){.kind = MODEL_CALL_EXECUTE, .address = peer->address, .tag = 1};
}

static void tear_down(void)
{
    host_rig_stop(&rig);
    host_rig_deinit(&rig);
}

static void make_calls(unsigned n)
{
    for (unsigned i = 1; i <= n; i++) {
        order.tag = i;
        host_node_step(node, fake_make_call, &order);
    }
}

Test(lane, many_calls_share_one_stream)
{
    set_up(FAKE_TICK);
    make_calls(100);
    latch_wait(&node->core.dones, 100);
    cr_assert_eq(rpc_server_n_streams(peer->server), 1);
    host_node_settle(node);
    for (unsigned i = 0; i < 100; i++) {
        cr_assert_eq(node->core.results[i].code, RT_OK);
        cr_assert_eq(node->core.results[i].tag, node->core.results[i].id);
        cr_assert_eq(peer->core.tags[i], i + 1);
    }
    tear_down();
}

Test(lane, each_kind_and_address_has_its_own)
{
    set_up(FAKE_NOW);
    cr_assert_eq(host_node_call(node, &order).code, RT_OK);
    order.kind = MODEL_CALL_KEEP_ALIVE;
    cr_assert_eq(host_node_call(node, &order).code, RT_OK);
    order.kind = MODEL_CALL_RECONCILE;
    cr_assert_eq(host_node_call(node, &order).code, RT_OK);
    cr_assert_eq(rpc_server_n_streams(peer->server), 3);
    order.address = node->address;
    cr_assert_eq(host_node_call(node, &order).code, RT_OK);
    cr_assert_eq(rpc_server_n_streams(node->server), 1);
    tear_down();
}

Test(lane, a_failure_keeps_its_details_and_the_stream_goes_on)
{
    struct fake_result result;

    set_up(FAKE_NOW);
    peer->core.fails = true;
    result = host_node_call(node, &order);
    cr_assert_eq(result.code, RT_FAILED_PRECONDITION);
    cr_assert_eq(result.error.reason, MODEL_REASON_KEY_LOST);
    cr_assert_eq(result.error.applied, MODEL_APPLIED_NO);
    cr_assert_eq(result.error.current_epoch, 7);
    cr_assert_str_eq(result.error.hint.name, "i2");
    result = host_node_call(node, &order);
    cr_assert_eq(result.code, RT_FAILED_PRECONDITION);
    cr_assert_eq(rpc_server_n_streams(peer->server), 1);
    tear_down();
}

/* The late answer finds nobody, and the next call uses the same stream. */
Test(lane, a_call_that_is_not_answered_in_time_fails)
{
    struct fake_result result;

    set_up(FAKE_HOLD);
    order.timeout_us = 50000;
    result = host_node_call(node, &order);
    cr_assert_eq(result.code, RT_DEADLINE_EXCEEDED);
    cr_assert_eq(result.error.applied, MODEL_APPLIED_MAYBE);
    cr_assert(result.was_loop_thread);
    host_node_step(peer, fake_answer_one, NULL);
    peer->core.mode = FAKE_NOW;
    order.timeout_us = 0;
    order.tag = 2;
    result = host_node_call(node, &order);
    cr_assert_eq(result.code, RT_OK);
    cr_assert_eq(result.tag, 2);
    cr_assert_eq(rpc_server_n_streams(peer->server), 1);
    cr_assert_eq(node->core.n_results, 2);
    tear_down();
}

/* The earlier deadline of a later call, behind one that can wait. */
Test(lane, deadlines_are_met_in_their_own_order)
{
    struct fake_result result;

    set_up(FAKE_HOLD);
    order.timeout_us = 20000000;
    host_node_step(node, fake_make_call, &order);
    order.timeout_us = 60000;
    host_node_step(node, fake_make_call, &order);
    order.timeout_us = 30000;
    result = host_node_call(node, &order);
    cr_assert_eq(result.code, RT_DEADLINE_EXCEEDED);
    latch_wait(&node->core.dones, 2);
    host_node_settle(node);
    cr_assert_eq(node->core.results[0].id, 3);
    cr_assert_eq(node->core.results[1].id, 2);
    host_node_step(peer, fake_answer_one, NULL);
    latch_wait(&node->core.dones, 3);
    host_node_settle(node);
    cr_assert_eq(node->core.results[2].id, 1);
    cr_assert_eq(node->core.results[2].code, RT_OK);
    tear_down();
}

Test(lane, a_call_without_a_deadline_gets_one)
{
    uint64_t before;
    uint64_t armed_us;

    set_up(FAKE_HOLD);
    before = rt_env_now_us(node->core.env);
    host_node_step(node, fake_make_call, &order);
    armed_us = atomic_load(&node->host->lane_wakeup.armed_us);
    cr_assert_geq(armed_us, before + 10000000);
    cr_assert_leq(armed_us, rt_env_now_us(node->core.env) + 10000000);
    latch_wait(&peer->core.submits, 1);
    host_node_settle(peer);
    cr_assert_leq(peer->core.last_deadline_us, rt_env_now_us(node->core.env) + 10000000);
    tear_down();
}

Test(lane, whose_request_does_not_fit_is_not_sent)
{
    struct fake_result result;

    set_up(FAKE_NOW);
    order.arena_limit = 1;
    result = host_node_call(node, &order);
    cr_assert_eq(result.code, RT_RESOURCE_EXHAUSTED);
    cr_assert_eq(result.error.applied, MODEL_APPLIED_NO);
    cr_assert(result.was_loop_thread);
    order.arena_limit = 0;
    cr_assert_eq(host_node_call(node, &order).code, RT_OK);
    tear_down();
}

Test(lane, to_nobody_was_certainly_not_applied)
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

Test(lane, a_peer_that_restarts_fails_what_it_had_and_gets_a_new_stream)
{
    struct fake_result result;

    set_up(FAKE_HOLD);
    make_calls(3);
    latch_wait(&peer->core.submits, 1);
    host_node_down(peer, 1);
    latch_wait(&node->core.dones, 3);
    host_node_settle(node);
    for (unsigned i = 0; i < 3; i++) {
        cr_assert_neq(node->core.results[i].code, RT_OK);
        cr_assert_eq(node->core.results[i].error.applied, MODEL_APPLIED_MAYBE);
    }
    host_node_step(peer, fake_answer_all, NULL);
    peer->core.mode = FAKE_NOW;
    host_node_up(peer);
    do
        result = host_node_call(node, &order);
    while (result.code == RT_UNAVAILABLE && result.error.applied == MODEL_APPLIED_NO);
    cr_assert_eq(result.code, RT_OK);
    tear_down();
}

Test(lane, what_the_stream_has_no_room_for_waits_in_its_order)
{
    set_up(FAKE_NOW);
    order.value_size = MODEL_VALUE_MAX;
    order.timeout_us = 40000000;
    make_calls(64);
    latch_wait(&node->core.dones, 64);
    host_node_settle(node);
    for (unsigned i = 0; i < 64; i++) {
        cr_assert_eq(node->core.results[i].code, RT_OK);
        cr_assert_eq(peer->core.tags[i], i + 1);
    }
    cr_assert_eq(rpc_server_n_streams(peer->server), 1);
    tear_down();
}

/* Most of 64 large calls were never sent, which is certain; the others may have been. */
static void expect_flood_ended(void)
{
    unsigned n_unsent = 0;

    cr_assert_eq(latch_count(&node->core.dones), 64);
    for (unsigned i = 0; i < 64; i++) {
        cr_assert_neq(node->core.results[i].code, RT_OK);
        n_unsent += node->core.results[i].error.applied == MODEL_APPLIED_NO;
    }
    cr_assert_geq(n_unsent, 32);
    cr_assert_leq(n_unsent, 63);
}

Test(lane, a_peer_that_does_not_read_is_not_flooded)
{
    set_up(FAKE_HOLD);
    order.value_size = MODEL_VALUE_MAX;
    order.timeout_us = 40000000;
    make_calls(64);
    latch_wait(&peer->core.submits, 1);
    host_rig_stop(&rig);
    expect_flood_ended();
    host_rig_deinit(&rig);
}

Test(lane, what_waits_for_room_ends_at_its_deadline)
{
    set_up(FAKE_HOLD);
    order.value_size = MODEL_VALUE_MAX;
    order.timeout_us = 2000000;
    make_calls(64);
    latch_wait(&node->core.dones, 64);
    host_node_settle(node);
    expect_flood_ended();
    for (unsigned i = 0; i < 64; i++)
        cr_assert_eq(node->core.results[i].code, RT_DEADLINE_EXCEEDED);
    tear_down();
}

Test(lane, under_way_at_the_end_comes_back)
{
    set_up(FAKE_HOLD);
    make_calls(5);
    latch_wait(&peer->core.submits, 1);
    host_rig_stop(&rig);
    cr_assert_eq(latch_count(&node->core.dones), 5);
    for (unsigned i = 0; i < 5; i++)
        cr_assert_eq(node->core.results[i].error.applied, MODEL_APPLIED_MAYBE);
    host_rig_deinit(&rig);
}

/* ---- a peer with a will of its own ---- */

static enum odd_behaviour {
    ODD_ENDS_WELL,   /* ends the stream with OK instead of an answer */
    ODD_NO_OUTCOME,  /* an answer that breaks the rules */
    ODD_UNASKED,     /* the same, after one to an exchange that nobody began */
    ODD_UNDECODABLE, /* bytes that are no answer */
} odd;

static struct latch odd_messages;

static void odd_unary(struct rpc_call *call, const ProtobufCMessage *request, void *ctx)
{
    struct rt_error err = RT_ERROR_INIT;

    (void)request;
    (void)ctx;
    (void)rt_fail(&err, RT_INTERNAL, "not here");
    rpc_call_fail(call, &err);
}

static void odd_open(struct rpc_call *call, const ProtobufCMessage *request, void *ctx)
{
    (void)request;
    (void)ctx;
    rpc_call_read_next(call);
}

/* Without an outcome. */
static void odd_send(struct rpc_call *call, uint64_t id)
{
    Redistinto__V1__ExecuteResponse response;
    enum rt_code code;

    redistinto__v1__execute_response__init(&response);
    response.statement_id = id;
    code = rpc_call_send(call, &response.base);
    rt_assert(code == RT_OK);
}

static void odd_message(struct rpc_call *call, const ProtobufCMessage *message, void *ctx)
{
    uint64_t id = ((const Redistinto__V1__ExecuteRequest *)message)->statement_id;
    Redistinto__V1__OpenSessionRequest garbage;
    enum rt_code code;

    (void)ctx;
    latch_add(&odd_messages);
    switch (odd) {
    case ODD_ENDS_WELL:
        rpc_call_finish(call, NULL);
        return;
    case ODD_UNASKED:
        odd_send(call, id + 1000);
        odd_send(call, id);
        break;
    case ODD_NO_OUTCOME:
        odd_send(call, id);
        break;
    case ODD_UNDECODABLE:
        redistinto__v1__open_session_request__init(&garbage);
        garbage.name = (char *)"where a number is expected";
        code = rpc_call_send(call, &garbage.base);
        rt_assert(code == RT_OK);
        break;
    }
    rpc_call_read_next(call);
}

static void odd_half_close(struct rpc_call *call, void *ctx)
{
    (void)ctx;
    rpc_call_finish(call, NULL);
}

static void odd_done(struct rpc_call *call, void *ctx)
{
    (void)call;
    (void)ctx;
}

static const struct rpc_stream_handlers odd_stream = {
    .on_open = odd_open,
    .on_message = odd_message,
    .on_half_close = odd_half_close,
    .on_done = odd_done,
};
static const struct rpc_method odd_methods[] = {
    {.name = "OpenSession", .kind = RPC_UNARY, .on_call = odd_unary},
    {.name = "KeepAlive", .kind = RPC_BIDI, .stream = &odd_stream},
    {.name = "CloseSession", .kind = RPC_UNARY, .on_call = odd_unary},
    {.name = "Execute", .kind = RPC_BIDI, .stream = &odd_stream},
    {.name = "Lock", .kind = RPC_UNARY, .on_call = odd_unary},
    {.name = "Unlock", .kind = RPC_UNARY, .on_call = odd_unary},
    {.name = "Route", .kind = RPC_UNARY, .on_call = odd_unary},
    {.name = "WatchRoutes", .kind = RPC_SERVER_STREAM, .stream = &odd_stream},
};

static void start_odd_server(void *ctx)
{
    struct rpc_server *server = rpc_server_new(rig.runtime, NULL);
    enum rt_code code;
    uint16_t port;

    code = rpc_server_add_service(server, &redistinto__v1__coordinator_service__descriptor,
                                  odd_methods, RT_ARRAY_SIZE(odd_methods), NULL, NULL);
    rt_assert(code == RT_OK);
    code = rpc_server_listen(server, "127.0.0.1:0", &port, NULL);
    rt_assert(code == RT_OK);
    rpc_server_start(server);
    *(uint16_t *)ctx = port;
}

static struct fake_result call_odd_peer(enum odd_behaviour behaviour)
{
    static char address[32];
    uint16_t port;

    odd = behaviour;
    latch_init(&odd_messages);
    set_up(FAKE_NOW);
    host_rig_on_loop(&rig, start_odd_server, &port);
    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", port);
    order.address = address;
    return host_node_call(node, &order);
}

Test(lane, a_peer_that_ends_the_stream_well_has_not_answered)
{
    struct fake_result result = call_odd_peer(ODD_ENDS_WELL);

    cr_assert_eq(result.code, RT_UNAVAILABLE);
    cr_assert_eq(result.error.applied, MODEL_APPLIED_MAYBE);
    result = host_node_call(node, &order);
    cr_assert_eq(result.code, RT_UNAVAILABLE);
    cr_assert_eq(latch_count(&odd_messages), 2);
    tear_down();
}

Test(lane, answers_that_nobody_asked_for_are_dropped)
{
    struct fake_result result = call_odd_peer(ODD_UNASKED);

    cr_assert_eq(result.code, RT_INTERNAL);
    cr_assert_eq(node->core.n_results, 1);
    tear_down();
}

Test(lane, an_answer_that_breaks_the_rules_is_a_failure)
{
    struct fake_result result = call_odd_peer(ODD_NO_OUTCOME);

    cr_assert_eq(result.code, RT_INTERNAL);
    cr_assert_eq(result.error.applied, MODEL_APPLIED_MAYBE);
    tear_down();
}

Test(lane, an_undecodable_answer_ends_the_stream)
{
    struct fake_result result = call_odd_peer(ODD_UNDECODABLE);

    cr_assert_eq(result.code, RT_INTERNAL);
    cr_assert_eq(result.error.applied, MODEL_APPLIED_MAYBE);
    tear_down();
}
