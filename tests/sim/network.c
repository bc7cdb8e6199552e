/*
 * The simulated network: see network.h. Invariant: an rpc lives while an event, its caller or its
 * server refers to it; `call` is set exactly while the caller waits, `is_inside` exactly while the
 * server has to answer. One thread.
 */
#include "tests/sim/network.h"

#include "runtime/base/alloc.h"
#include "tests/sim/world.h"

struct rpc {
    struct rt_list link;
    struct sim_network *network;
    struct sim_node *from;
    struct sim_node *to;
    uint64_t from_life; /* in which the request was made */
    uint64_t to_life;
    uint64_t id;
    unsigned n_refs;
    struct model_call *call;   /* the caller's; NULL once it has its answer or is gone */
    struct model_call inbound; /* what the server holds */
    uint64_t timeout_us;       /* as the request says; RT_NEVER = none */
    bool is_inside;
    bool is_duplicate;
    bool is_mutating;
};

static void trace(const struct rpc *rpc, enum sim_trace_event event, const struct sim_node *node,
                  const struct sim_node *peer, const struct model_response *response)
{
    sim_world_trace_call(node->world, event, node, peer, rpc->id, &rpc->inbound.request, response);
}

static struct rpc *rpc_ref(struct rpc *rpc)
{
    rpc->n_refs++;
    return rpc;
}

static void rpc_unref(void *ctx)
{
    struct rpc *rpc = ctx;

    if (--rpc->n_refs > 0)
        return;
    rt_list_remove(&rpc->link);
    model_call_deinit(&rpc->inbound);
    (void)rt_free(rpc);
}

static uint64_t delay_us(const struct rpc *rpc, const struct sim_node *from,
                         const struct sim_node *to)
{
    struct sim_world *world = rpc->network->world;
    uint64_t delay = 30 + rt_rng_below(&world->rng, world->plan.delay_us);

    if (!world->is_healed && sim_world_chance(world, world->plan.straggler_ppm))
        delay += rt_rng_below(&world->rng, 2 * world->plan.member_lease.duration_us);
    return delay + rpc->network->links[from->index][to->index].delay_us;
}

static bool is_lost(const struct rpc *rpc, const struct sim_node *from, const struct sim_node *to)
{
    struct sim_world *world = rpc->network->world;
    const struct sim_link *link = &rpc->network->links[from->index][to->index];

    if (link->is_cut || sim_world_chance(world, link->loss_ppm)) {
        world->stats.n_lost++;
        return true;
    }
    return false;
}

/* ---- the caller's side ----------------------------------------------------------------------- */

/* Gives the call back; `response` NULL = nothing was heard. */
static void finish(struct rpc *rpc, const struct model_response *response, enum rt_code code)
{
    struct model_call *call = RT_TAKE(rpc->call);
    enum rt_code copied;

    if (response) {
        copied =
            model_response_copy(&call->response, response, call->request.kind, &call->arena, NULL);
        rt_assert(copied == RT_OK);
    } else {
        model_response_fail(&call->response, MODEL_REASON_NONE, "%s",
                            code == RT_UNAVAILABLE ? "connection lost" : "no answer in time");
        call->response.code = code;
        call->response.error.applied = MODEL_APPLIED_MAYBE;
    }
    sim_checker_on_done(&rpc->from->world->checker, rpc->from, &call->request);
    rpc->from->ops->call_done(rpc->from, call);
    rpc_unref(rpc);
}

static void on_answer(void *ctx)
{
    struct rpc *rpc = ctx;

    if (rpc->call) {
        trace(rpc, SIM_TRACE_ANSWER, rpc->from, rpc->to, &rpc->inbound.response);
        finish(rpc, &rpc->inbound.response, RT_OK);
    }
    rpc_unref(rpc);
}

static void on_answer_arrives(void *ctx)
{
    struct rpc *rpc = ctx;
    struct sim_world *world = rpc->network->world;

    /* The lease counts from the sending, however late its holder gets to know of it. */
    if (rpc->inbound.request.kind == MODEL_CALL_RENEW && !world->is_healed &&
        sim_world_chance(world, world->plan.renew_pause_ppm)) {
        sim_stats_fault(&world->stats, SIM_FAULT_RENEW_PAUSE);
        sim_node_pause(rpc->from, sim_world_pause_us(world));
    }
    sim_node_happen(rpc->from, on_answer, rpc_unref, rpc);
}

static void on_server_cancel(void *ctx)
{
    struct rpc *rpc = ctx;

    if (rpc->is_inside && !rpc->inbound.cancelled) {
        trace(rpc, SIM_TRACE_CANCEL, rpc->to, rpc->from, NULL);
        rpc->inbound.cancelled = true;
        rpc->to->ops->cancel(rpc->to, &rpc->inbound);
    }
    rpc_unref(rpc);
}

static void on_cancel_arrives(void *ctx)
{
    struct rpc *rpc = ctx;

    sim_node_happen(rpc->to, on_server_cancel, rpc_unref, rpc);
}

static void tell_server(struct rpc *rpc)
{
    struct sim_world *world = rpc->network->world;

    if (!rpc->is_inside || is_lost(rpc, rpc->from, rpc->to))
        return;
    sim_queue_push(&world->queue, world->now_us + delay_us(rpc, rpc->from, rpc->to),
                   on_cancel_arrives, rpc_unref, rpc_ref(rpc));
}

static void give_up(struct rpc *rpc, enum rt_code code)
{
    struct model_response told = {.code = code};

    if (rpc->call) {
        trace(rpc, SIM_TRACE_TIMEOUT, rpc->from, rpc->to, &told);
        tell_server(rpc);
        finish(rpc, NULL, code);
    }
    rpc_unref(rpc);
}

static void on_deadline(void *ctx)
{
    give_up(ctx, RT_DEADLINE_EXCEEDED);
}

static void on_broken(void *ctx)
{
    give_up(ctx, RT_UNAVAILABLE);
}

static void break_later(struct rpc *rpc, uint64_t in_us)
{
    if (rpc->call)
        sim_node_later(rpc->from, rpc->network->world->now_us + in_us, on_broken, rpc_unref,
                       rpc_ref(rpc));
}

/* Keepalive finds a dead connection in seconds; a call without a deadline has nothing else. */
static void note_loss(struct rpc *rpc)
{
    struct sim_world *world = rpc->network->world;

    trace(rpc, SIM_TRACE_LOST, rpc->from, rpc->to, NULL);
    if (rpc->timeout_us == RT_NEVER || sim_world_chance(world, 300000))
        break_later(rpc, 1000 + rt_rng_below(&world->rng, 3000000));
}

/* ---- the server's side ----------------------------------------------------------------------- */

static void on_server_deadline(void *ctx)
{
    on_server_cancel(ctx);
}

static void on_deliver(void *ctx)
{
    struct rpc *rpc = ctx;
    struct sim_node *node = rpc->to;

    trace(rpc, SIM_TRACE_ARRIVE, node, rpc->from, NULL);
    rpc->is_inside = true;
    rpc->inbound.context = rpc_ref(rpc);
    if (rpc->timeout_us != RT_NEVER) {
        rpc->inbound.deadline_us = sim_node_now_us(node) + rpc->timeout_us;
        sim_node_later(node, sim_clock_global(&node->clock, rpc->inbound.deadline_us),
                       on_server_deadline, rpc_unref, rpc_ref(rpc));
    }
    sim_checker_on_request(&node->world->checker, node, &rpc->inbound.request);
    node->ops->submit(node, &rpc->inbound);
    rpc_unref(rpc);
}

/* The server died with the request in its inbox. */
static void drop_delivery(void *ctx)
{
    struct rpc *rpc = ctx;

    break_later(rpc, delay_us(rpc, rpc->to, rpc->from));
    rpc_unref(rpc);
}

/* A connection ends with either process: for most requests it is a harder test when a copy comes
 * through nevertheless. Not for what registers a process that is gone, and not for the copy of a
 * statement, which says only as a retry that it is not the first. */
static bool is_orphan(const struct rpc *rpc)
{
    switch (rpc->inbound.request.kind) {
    case MODEL_CALL_REGISTER:
        return rpc->from_life != rpc->from->life;
    case MODEL_CALL_EXECUTE:
        return rpc->is_duplicate && rpc->to_life != rpc->to->life;
    default:
        return false;
    }
}

static void on_arrive(void *ctx)
{
    struct rpc *rpc = ctx;

    if (is_orphan(rpc)) {
        rpc_unref(rpc);
        return;
    }
    if (rpc->to->is_up) {
        sim_node_happen(rpc->to, on_deliver, drop_delivery, rpc);
        return;
    }
    trace(rpc, SIM_TRACE_REFUSE, rpc->to, rpc->from, NULL);
    if (!is_lost(rpc, rpc->to, rpc->from))
        break_later(rpc, delay_us(rpc, rpc->to, rpc->from));
    else
        note_loss(rpc);
    rpc_unref(rpc);
}

/* A copy of the request that the client does not know of did not get a plain "not applied". */
static void taint(struct rpc *rpc)
{
    struct sim_history *history = &rpc->network->world->history;
    uint32_t number;

    if (!rpc->is_duplicate || !rpc->is_mutating)
        return;
    number = sim_history_find(history, sim_request_id_of(&rpc->inbound.request));
    if (number != 0)
        sim_history_op(history, number)->tainted = true;
}

void sim_network_reply(struct sim_node *node, struct model_call *call)
{
    struct rpc *rpc = call->context;
    struct sim_world *world = node->world;

    if (!rpc) {
        sim_coordinator_probed(node, call);
        return;
    }
    rt_assert(rpc->is_inside && rpc->to == node);
    rpc->is_inside = false;
    trace(rpc, SIM_TRACE_REPLY, node, rpc->from, &call->response);
    sim_checker_on_reply(&world->checker, node, rpc->from, call);
    if (call->response.code == RT_OK || call->response.error.applied != MODEL_APPLIED_NO)
        taint(rpc);
    if (!rpc->is_duplicate && is_lost(rpc, node, rpc->from))
        note_loss(rpc);
    else if (!rpc->is_duplicate)
        sim_queue_push(&world->queue, world->now_us + delay_us(rpc, node, rpc->from),
                       on_answer_arrives, rpc_unref, rpc_ref(rpc));
    rpc_unref(rpc);
}

/* ---- sending --------------------------------------------------------------------------------- */

static struct rpc *rpc_new(struct sim_node *from, struct sim_node *to,
                           const struct model_request *request, uint64_t timeout_us)
{
    struct rpc *rpc = rt_xalloc(sizeof(*rpc));
    enum rt_code code;

    rpc->network = &from->world->network;
    rpc->from = from;
    rpc->to = to;
    rpc->from_life = from->life;
    rpc->to_life = to->life;
    rpc->id = ++rpc->network->next_id;
    rpc->timeout_us = timeout_us;
    rpc->is_mutating = sim_request_is_mutating(request);
    model_call_init(&rpc->inbound, request->kind);
    code = model_request_copy(&rpc->inbound.request, request, &rpc->inbound.arena, NULL);
    rt_assert(code == RT_OK);
    rt_list_push_back(&rpc->network->rpcs, &rpc->link);
    return rpc;
}

static void travel(struct rpc *rpc, uint64_t in_us)
{
    struct sim_world *world = rpc->network->world;

    sim_queue_push(&world->queue, world->now_us + in_us, on_arrive, rpc_unref, rpc_ref(rpc));
}

/* Most copies come soon, some after every lease that was alive when the request was made; those of
 * a placement are late enough for a drop more often than not. */
static uint64_t lateness_us(struct sim_world *world, enum model_call_kind kind)
{
    uint64_t range = rt_rng_below(&world->rng, kind == MODEL_CALL_ACTIVATE ? 5 : 10);
    uint64_t range_us = range >= 4  ? 20000
                        : range < 2 ? 2 * world->plan.member_lease.duration_us
                                    : 4 * world->plan.session_lease.duration_us;

    return 30 + rt_rng_below(&world->rng, range_us);
}

/* Placements are few among the calls, and what a copy of one breaks takes a drop and another
 * placement besides. */
static uint32_t duplicate_ppm(const struct sim_link *link, enum model_call_kind kind)
{
    return kind == MODEL_CALL_ACTIVATE ? 10 * link->duplicate_ppm : link->duplicate_ppm;
}

static void maybe_duplicate(struct sim_node *from, struct sim_node *to,
                            const struct model_request *request, uint64_t timeout_us)
{
    struct sim_world *world = from->world;
    struct rpc *rpc;

    if (!sim_world_chance(
            world, duplicate_ppm(&world->network.links[from->index][to->index], request->kind)))
        return;
    rpc = rpc_new(from, to, request, timeout_us);
    rpc->is_duplicate = true;
    sim_stats_fault(&world->stats, SIM_FAULT_DUPLICATE);
    travel(rpc_ref(rpc), lateness_us(world, request->kind));
    rpc_unref(rpc);
}

void sim_network_call(struct sim_node *from, struct model_call *call)
{
    struct sim_world *world = from->world;
    struct sim_node *to = sim_world_node_at(world, call->address);
    uint64_t timeout_us = model_call_remaining_us(call, sim_node_now_us(from));
    struct rpc *rpc = rpc_new(from, to, &call->request, timeout_us);

    rpc->call = call;
    rpc->n_refs = 1; /* the caller's, until finish() or forget */
    world->stats.n_calls++;
    trace(rpc, SIM_TRACE_SEND, from, to, NULL);
    sim_checker_on_call(&world->checker, from, to, &call->request);
    if (timeout_us != RT_NEVER)
        sim_node_later(from, sim_clock_global(&from->clock, call->deadline_us) + 1, on_deadline,
                       rpc_unref, rpc_ref(rpc));
    if (is_lost(rpc, from, to))
        note_loss(rpc);
    else
        travel(rpc, delay_us(rpc, from, to));
    maybe_duplicate(from, to, &call->request, timeout_us);
}

/* ---- ends of lives --------------------------------------------------------------------------- */

void sim_network_forget_calls(struct sim_network *network, struct sim_node *node)
{
    rt_list_for_each_safe (link, &network->rpcs) {
        struct rpc *rpc = RT_LIST_ENTRY(link, struct rpc, link);

        if (rpc->from != node || !rpc->call)
            continue;
        rpc->call = NULL;
        tell_server(rpc);
        rpc_unref(rpc);
    }
}

void sim_network_abandon_inbound(struct sim_network *network, struct sim_node *node)
{
    rt_list_for_each_safe (link, &network->rpcs) {
        struct rpc *rpc = RT_LIST_ENTRY(link, struct rpc, link);

        if (rpc->to != node || !rpc->is_inside)
            continue;
        rpc->is_inside = false;
        taint(rpc);
        if (!rpc->is_duplicate && !is_lost(rpc, node, rpc->from))
            break_later(rpc, delay_us(rpc, node, rpc->from));
        else if (!rpc->is_duplicate)
            note_loss(rpc);
        rpc_unref(rpc);
    }
}

void sim_network_reset(struct sim_network *network, struct sim_node *from, struct sim_node *to)
{
    rt_list_for_each (link, &network->rpcs) {
        struct rpc *rpc = RT_LIST_ENTRY(link, struct rpc, link);

        if (rpc->from == from && rpc->to == to)
            break_later(rpc, 1);
    }
}

void sim_network_heal(struct sim_network *network)
{
    memset(network->links, 0, sizeof(network->links));
}

unsigned sim_network_n_unanswered(const struct sim_network *network, const struct sim_node *node)
{
    unsigned n = 0;

    rt_list_for_each (link, &network->rpcs) {
        const struct rpc *rpc = RT_LIST_ENTRY(link, struct rpc, link);

        n += rpc->is_inside && rpc->to == node;
    }
    return n;
}

void sim_network_taint_pending(struct sim_network *network)
{
    rt_list_for_each (link, &network->rpcs) {
        struct rpc *rpc = RT_LIST_ENTRY(link, struct rpc, link);

        if (rpc->is_inside)
            taint(rpc);
    }
}

void sim_network_init(struct sim_network *network, struct sim_world *world)
{
    *network = (struct sim_network){.world = world};
    rt_list_init(&network->rpcs);
}

void sim_network_deinit(struct sim_network *network)
{
    rt_assert(rt_list_is_empty(&network->rpcs));
}
