/*
 * A client that speaks to instances itself, with routes {owner, epoch, incarnation, token} that
 * sessions learned some time ago: current ones, old ones, and sometimes at an instance that is not
 * the owner. It retries an unclear outcome with the same request_id. Invariant: at most one call
 * is outside. One thread.
 */
#include <stdio.h>

#include "runtime/base/alloc.h"
#include "tests/sim/world.h"

enum {
    ATTEMPTS_MAX = 4
};

struct direct {
    struct sim_node *node;
    struct model_effects effects;
    struct model_call *outside; /* ours again when it comes back; owned */
    struct model_id client_id;
    uint64_t last_seq;
    uint32_t op;
    unsigned n_attempts;
    bool is_unclear; /* some attempt of this operation may have been applied */
    uint8_t key;
    uint64_t first_epoch;
    uint64_t token;
    uint64_t act_at_us; /* local */
    uint8_t value[SIM_VALUE_MAX];
};

static struct direct *direct_of(struct sim_node *node)
{
    return node->core;
}

static uint64_t roll(struct direct *direct, uint64_t bound)
{
    return rt_rng_below(&direct->node->world->rng, bound);
}

static void direct_create(struct sim_node *node)
{
    struct direct *direct = rt_xalloc(sizeof(*direct));

    direct->node = node;
    model_effects_init(&direct->effects);
    sim_world_random_id(node->world, &direct->client_id);
    direct->act_at_us = sim_node_now_us(node);
    node->core = direct;
}

static void end_op(struct direct *direct, enum sim_result result)
{
    struct sim_world *world = direct->node->world;
    uint32_t number = direct->op;

    if (number == 0)
        return;
    direct->op = 0;
    if (result == SIM_RESULT_NO && direct->is_unclear)
        result = SIM_RESULT_MAYBE;
    sim_history_return(&world->history, number, result, world->now_us);
    sim_world_note_result(world, direct->node, sim_history_op(&world->history, number));
    direct->act_at_us = sim_node_now_us(direct->node) + roll(direct, world->plan.think_us);
}

static void direct_destroy(struct sim_node *node)
{
    struct direct *direct = direct_of(node);

    end_op(direct, SIM_RESULT_MAYBE);
    direct->outside = model_call_free(direct->outside);
    (void)rt_free(direct);
}

/* ---- requests -------------------------------------------------------------------------------- */

static enum model_call_kind draw_kind(struct direct *direct)
{
    uint64_t kind = roll(direct, 20);

    if (kind < 8)
        return MODEL_CALL_SET;
    if (kind < 14)
        return MODEL_CALL_PUT;
    if (kind < 16)
        return MODEL_CALL_STORE;
    return kind < 19 ? MODEL_CALL_READ : MODEL_CALL_DELETE;
}

static enum sim_op_kind op_kind(enum model_call_kind kind)
{
    if (kind == MODEL_CALL_SET)
        return SIM_OP_SET;
    if (kind == MODEL_CALL_PUT)
        return SIM_OP_PUT;
    if (kind == MODEL_CALL_STORE)
        return SIM_OP_STORE;
    return kind == MODEL_CALL_DELETE ? SIM_OP_DELETE : SIM_OP_READ;
}

static const struct sim_route *draw_route(struct direct *direct)
{
    const struct sim_world *world = direct->node->world;
    unsigned n = world->n_routes[direct->key];
    unsigned n_known = n < SIM_ROUTES_MAX ? n : SIM_ROUTES_MAX;
    unsigned back = 1;

    if (n_known == 0)
        return NULL;
    if (roll(direct, 10) < 3)
        back = 1 + (unsigned)roll(direct, n_known);
    return &world->routes[direct->key][(n - back) % SIM_ROUTES_MAX];
}

static const struct sim_node *draw_target(struct direct *direct, const struct sim_route *route)
{
    struct sim_world *world = direct->node->world;
    struct sim_node *node = &world->nodes[roll(direct, world->n_nodes)];

    if (roll(direct, 10) == 0 && node->kind == SIM_NODE_INSTANCE)
        return node;
    return &world->nodes[route->node];
}

static void fill(struct direct *direct, struct model_call *call, const struct sim_route *route)
{
    struct sim_world *world = direct->node->world;
    struct model_data_request *data = &call->request.data;

    *data = (struct model_data_request){0};
    data->header = (struct model_header){
        .cluster_id = world->cluster_id,
        .key = sim_world_key(direct->key),
        .epoch = route->epoch,
        .incarnation = route->incarnation,
        .request_id = {direct->client_id, direct->last_seq},
        .done_below = direct->last_seq,
        .first_epoch = direct->first_epoch,
        .lock_token = direct->token,
    };
    (void)snprintf(data->header.owner, sizeof(data->header.owner), "%s",
                   world->nodes[route->node].name);
    if (call->request.kind == MODEL_CALL_SET || call->request.kind == MODEL_CALL_PUT)
        data->value = sim_value_encode(direct->op, direct->value);
}

static void attempt(struct direct *direct, enum model_call_kind kind, const struct sim_route *route)
{
    const struct sim_node *target = draw_target(direct, route);
    struct model_call *call = model_call_new(kind);

    direct->n_attempts++;
    fill(direct, call, route);
    call->address = target->name;
    call->deadline_us = sim_node_now_us(direct->node) + 50000 + roll(direct, 1000000);
    direct->outside = call;
    rt_list_push_back(&direct->effects.calls, &call->link);
}

static void begin(struct direct *direct)
{
    struct sim_world *world = direct->node->world;
    enum model_call_kind kind = draw_kind(direct);
    const struct sim_route *route;

    direct->key = (uint8_t)roll(direct, world->plan.n_keys);
    direct->act_at_us = sim_node_now_us(direct->node) + 1 + roll(direct, world->plan.think_us);
    route = draw_route(direct);
    if (!route)
        return;
    if (!route->may_store && kind != MODEL_CALL_READ)
        kind = MODEL_CALL_SET;
    direct->op = sim_history_invoke(&world->history, direct->node->index, direct->key,
                                    op_kind(kind), world->now_us);
    direct->last_seq++;
    direct->n_attempts = 0;
    direct->is_unclear = false;
    direct->first_epoch = route->epoch;
    direct->token = roll(direct, 4) == 0 ? 0 : route->token;
    sim_history_identify(&world->history, direct->op,
                         &(struct model_request_id){direct->client_id, direct->last_seq});
    sim_world_trace(world, SIM_TRACE_INVOKE, direct->node, direct->key, direct->op);
    attempt(direct, kind, route);
}

/* ---- answers --------------------------------------------------------------------------------- */

static enum sim_result on_ok(struct direct *direct, const struct model_call *call)
{
    const struct model_data_response *answer = &call->response.data;
    struct sim_op *op = sim_history_op(&direct->node->world->history, direct->op);

    op->has_version = answer->version.seq != 0;
    op->version = answer->version;
    op->token = direct->token;
    if (op->kind != SIM_OP_READ)
        return SIM_RESULT_OK;
    op->value = answer->has_value ? sim_value_decode(answer->value) : 0;
    return answer->stale ? SIM_RESULT_MAYBE : SIM_RESULT_OK;
}

/* A hint is as good as a route; some clients do not look at it. */
static void take_hint(struct direct *direct, const struct model_error *error)
{
    struct sim_world *world = direct->node->world;
    const struct sim_route *last = draw_route(direct);
    struct sim_route *route;

    if (!error->has_hint || !last || roll(direct, 2) == 0)
        return;
    route = &world->routes[direct->key][world->n_routes[direct->key]++ % SIM_ROUTES_MAX];
    *route = (struct sim_route){
        .node = sim_world_node_at(world, error->hint.address)->index,
        .epoch = error->hint.epoch,
        .incarnation = error->hint.incarnation,
        .token = last->token,
        .may_store = last->may_store && last->epoch == error->hint.epoch,
    };
}

static void direct_call_done(struct sim_node *node, struct model_call *call)
{
    struct direct *direct = direct_of(node);
    enum model_call_kind kind = call->request.kind;
    bool is_no = call->response.code != RT_OK && call->response.error.applied == MODEL_APPLIED_NO;
    const struct sim_route *route;

    direct->outside = NULL;
    if (call->response.code != RT_OK)
        take_hint(direct, &call->response.error);
    route = draw_route(direct);
    if (call->response.code == RT_OK) {
        end_op(direct, on_ok(direct, call));
    } else {
        direct->is_unclear |= !is_no;
        if (route && (route->may_store || kind == MODEL_CALL_SET || kind == MODEL_CALL_READ) &&
            direct->n_attempts < ATTEMPTS_MAX && roll(direct, 3) > 0)
            attempt(direct, kind, route);
        else
            end_op(direct, SIM_RESULT_NO);
    }
    (void)model_call_free(call);
}

static void direct_tick(struct sim_node *node)
{
    struct direct *direct = direct_of(node);

    if (direct->op == 0 && !node->world->is_stopping && sim_node_now_us(node) >= direct->act_at_us)
        begin(direct);
}

static uint64_t direct_next_wakeup_us(struct sim_node *node)
{
    const struct direct *direct = direct_of(node);

    return direct->op == 0 && !node->world->is_stopping ? direct->act_at_us : RT_NEVER;
}

static struct model_effects *direct_effects(struct sim_node *node)
{
    return &direct_of(node)->effects;
}

bool sim_direct_is_idle(const struct sim_node *node)
{
    const struct direct *direct = node->core;

    return direct->op == 0;
}

const struct sim_core_ops sim_direct_ops = {
    .create = direct_create,
    .destroy = direct_destroy,
    .call_done = direct_call_done,
    .tick = direct_tick,
    .next_wakeup_us = direct_next_wakeup_us,
    .effects = direct_effects,
};
