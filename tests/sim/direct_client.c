/*
 * A client that speaks to instances itself. It gets its routes by Route, which places keys, and by
 * Lock; it also uses those that sessions learned some time ago: current ones, old ones, and
 * sometimes at an instance that is not the owner. It retries an unclear outcome with the same
 * request_id. Under a lock it writes with the lock's token, then gives the lock back, or leaves it
 * to the end of its session, which nobody keeps alive. Invariant: at most one call is outside. One
 * thread.
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
    enum model_call_kind kind; /* of the operation */
    uint64_t first_epoch;      /* 0 until it was sent to an owner */
    uint64_t token;
    uint64_t placement_version; /* highest that an answer said */
    struct model_id session_id; /* none: it has no session */
    uint8_t locked_key;
    uint64_t lock_token; /* 0 = it holds no lock */
    unsigned n_locked;   /* operations to come under the lock */
    uint64_t act_at_us;  /* local */
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
    direct->is_unclear = false;
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

static void send(struct direct *direct, struct model_call *call, const struct sim_node *target)
{
    call->address = target->name;
    call->deadline_us = sim_node_now_us(direct->node) + 50000 + roll(direct, 1000000);
    direct->outside = call;
    rt_list_push_back(&direct->effects.calls, &call->link);
}

static void ask(struct direct *direct, struct model_call *call)
{
    send(direct, call, sim_world_coordinator(direct->node->world));
}

/* The route allows nothing durable. */
static void become_set(struct direct *direct)
{
    struct sim_op *op = sim_history_op(&direct->node->world->history, direct->op);

    direct->kind = MODEL_CALL_SET;
    op->kind = SIM_OP_SET;
    op->value = op->number;
}

static void attempt(struct direct *direct, const struct sim_route *route)
{
    const struct sim_node *target = draw_target(direct, route);
    struct model_call *call;

    if (!route->may_store && direct->first_epoch == 0 && direct->kind != MODEL_CALL_READ)
        become_set(direct);
    if (direct->first_epoch == 0)
        direct->first_epoch = route->epoch;
    call = model_call_new(direct->kind);
    direct->n_attempts++;
    fill(direct, call, route);
    send(direct, call, target);
}

static enum model_statement_kind statement_of(enum model_call_kind kind)
{
    if (kind == MODEL_CALL_SET)
        return MODEL_STATEMENT_SET;
    if (kind == MODEL_CALL_PUT)
        return MODEL_STATEMENT_PUT;
    if (kind == MODEL_CALL_STORE)
        return MODEL_STATEMENT_STORE;
    return kind == MODEL_CALL_DELETE ? MODEL_STATEMENT_DELETE : MODEL_STATEMENT_READ;
}

static void ask_route(struct direct *direct)
{
    struct model_call *call = model_call_new(MODEL_CALL_ROUTE);

    direct->n_attempts++;
    call->request.route = (struct model_route_request){
        .key = sim_world_key(direct->key),
        .operation = statement_of(direct->kind),
        .value_size = SIM_VALUE_MAX,
        .min_placement_version = roll(direct, 2) ? direct->placement_version : 0,
    };
    if (direct->token != 0) {
        call->request.route.session_id = direct->session_id;
        call->request.route.lock_token = direct->token;
    }
    ask(direct, call);
}

/* ---- what it does next ----------------------------------------------------------------------- */

static void invoke(struct direct *direct, uint8_t key, enum sim_op_kind kind)
{
    struct sim_world *world = direct->node->world;

    direct->key = key;
    direct->op = sim_history_invoke(&world->history, direct->node->index, key, kind, world->now_us);
    direct->last_seq++;
    direct->n_attempts = 0;
    direct->first_epoch = 0;
    sim_history_identify(&world->history, direct->op,
                         &(struct model_request_id){direct->client_id, direct->last_seq});
    sim_world_trace(world, SIM_TRACE_INVOKE, direct->node, key, direct->op);
}

static void begin_operation(struct direct *direct, uint8_t key, uint64_t token)
{
    const struct sim_route *route;

    direct->kind = draw_kind(direct);
    invoke(direct, key, sim_op_kind_of_call(direct->kind));
    route = draw_route(direct);
    direct->token = token;
    if (token == 0 && route && roll(direct, 4) > 0)
        direct->token = route->token;
    if (route && roll(direct, 3) > 0)
        attempt(direct, route);
    else
        ask_route(direct);
}

static void open_session(struct direct *direct)
{
    struct model_call *call = model_call_new(MODEL_CALL_OPEN_SESSION);

    call->request.open_session = (struct model_open_session_request){
        .request_id = {direct->client_id, direct->last_seq + 1},
    };
    (void)snprintf(call->request.open_session.name, sizeof(call->request.open_session.name), "%s",
                   direct->node->name);
    ask(direct, call);
}

static void lock(struct direct *direct, uint8_t key)
{
    struct model_call *call = model_call_new(MODEL_CALL_LOCK);

    invoke(direct, key, SIM_OP_READ);
    call->request.lock = (struct model_lock_request){
        .session_id = direct->session_id,
        .request_id = {direct->client_id, direct->last_seq},
        .done_below = direct->last_seq,
        .key = sim_world_key(key),
        .no_wait = roll(direct, 3) == 0,
    };
    ask(direct, call);
}

static void unlock(struct direct *direct)
{
    struct model_call *call = model_call_new(MODEL_CALL_UNLOCK);

    call->request.unlock = (struct model_unlock_request){
        .session_id = direct->session_id,
        .key = sim_world_key(direct->locked_key),
        .lock_token = direct->lock_token,
    };
    ask(direct, call);
}

static void act(struct direct *direct)
{
    uint8_t key = (uint8_t)roll(direct, direct->node->world->plan.n_keys);

    direct->act_at_us =
        sim_node_now_us(direct->node) + 1 + roll(direct, direct->node->world->plan.think_us);
    if (direct->lock_token != 0 && direct->n_locked > 0) {
        direct->n_locked--;
        begin_operation(direct, direct->locked_key, direct->lock_token);
    } else if (direct->lock_token != 0 && roll(direct, 4) > 0) {
        unlock(direct);
    } else if (direct->lock_token != 0) {
        direct->lock_token = 0;
        direct->session_id = (struct model_id){0};
    } else if (roll(direct, 3) > 0) {
        begin_operation(direct, key, 0);
    } else if (model_id_is_none(&direct->session_id)) {
        open_session(direct);
    } else {
        lock(direct, key);
    }
}

/* ---- answers --------------------------------------------------------------------------------- */

static enum sim_result on_ok(struct direct *direct, const struct model_data_response *answer,
                             uint64_t token)
{
    struct sim_op *op = sim_history_op(&direct->node->world->history, direct->op);

    op->has_version = answer->version.seq != 0;
    op->version = answer->version;
    op->token = token;
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

/* A route of the coordinator's may be used for everything. */
static void learn(struct direct *direct, uint8_t key, const struct model_route *route,
                  uint64_t token)
{
    struct sim_world *world = direct->node->world;
    struct sim_route *learned = &world->routes[key][world->n_routes[key]++ % SIM_ROUTES_MAX];

    *learned = (struct sim_route){
        .node = sim_world_node_at(world, route->address)->index,
        .epoch = route->epoch,
        .incarnation = route->incarnation,
        .token = token,
        .may_store = true,
    };
}

static void lose_lock(struct direct *direct, enum model_reason reason)
{
    if (reason == MODEL_REASON_SESSION_UNKNOWN)
        direct->session_id = (struct model_id){0};
    if (reason == MODEL_REASON_SESSION_UNKNOWN || reason == MODEL_REASON_LOCK_FENCED ||
        reason == MODEL_REASON_KEY_NOT_LOCKED)
        direct->lock_token = 0;
}

/* An attempt that failed: another one, with a route that is remembered or a fresh one. */
static void try_again(struct direct *direct)
{
    const struct sim_route *route = draw_route(direct);
    bool is_plain = direct->kind == MODEL_CALL_SET || direct->kind == MODEL_CALL_READ;

    if (direct->n_attempts >= ATTEMPTS_MAX || roll(direct, 4) == 0)
        end_op(direct, SIM_RESULT_NO);
    else if (route && (route->may_store || is_plain) && roll(direct, 2) == 0)
        attempt(direct, route);
    else
        ask_route(direct);
}

static void on_data(struct direct *direct, const struct model_call *call)
{
    if (call->response.code == RT_OK) {
        end_op(direct, on_ok(direct, &call->response.data, direct->token));
        return;
    }
    if (direct->token != 0 && direct->token == direct->lock_token)
        lose_lock(direct, call->response.error.reason);
    take_hint(direct, &call->response.error);
    direct->is_unclear |= call->response.error.applied != MODEL_APPLIED_NO;
    try_again(direct);
}

/* Known without an owner: there is no value, and nothing to store or to delete. */
static void on_route(struct direct *direct, const struct model_call *call)
{
    const struct model_route_response *answer = &call->response.route;
    struct sim_op *op = sim_history_op(&direct->node->world->history, direct->op);
    bool is_nothing = call->response.code == RT_OK
                          ? !answer->has_route
                          : call->response.error.reason == MODEL_REASON_KEY_NOT_IDENTIFIED;

    if (call->response.code == RT_OK && answer->has_route) {
        learn(direct, direct->key, &answer->route, direct->token);
        attempt(direct,
                &direct->node->world
                     ->routes[direct->key]
                             [(direct->node->world->n_routes[direct->key] - 1) % SIM_ROUTES_MAX]);
        return;
    }
    if (is_nothing && op->kind == SIM_OP_READ) {
        op->value = 0;
        end_op(direct, SIM_RESULT_OK);
        return;
    }
    if (call->response.code != RT_OK && direct->token != 0 && direct->token == direct->lock_token)
        lose_lock(direct, call->response.error.reason);
    if (is_nothing)
        end_op(direct, SIM_RESULT_NO);
    else
        try_again(direct);
}

static void on_lock(struct direct *direct, const struct model_call *call)
{
    const struct model_lock_response *answer = &call->response.lock;

    if (call->response.code != RT_OK || answer->outcome != MODEL_OUTCOME_DONE) {
        if (call->response.code != RT_OK)
            lose_lock(direct, call->response.error.reason);
        end_op(direct, SIM_RESULT_NO);
        return;
    }
    direct->locked_key = direct->key;
    direct->lock_token = answer->lock_token;
    direct->n_locked = (unsigned)roll(direct, 4);
    if (answer->has_route)
        learn(direct, direct->key, &answer->route, answer->lock_token);
    end_op(direct, on_ok(direct, &answer->data, answer->lock_token));
}

static void direct_call_done(struct sim_node *node, struct model_call *call)
{
    struct direct *direct = direct_of(node);
    uint64_t version = call->response.responder.placement_version;

    direct->outside = NULL;
    if (call->response.code == RT_OK && version > direct->placement_version)
        direct->placement_version = version;
    if (sim_request_is_data(call->request.kind))
        on_data(direct, call);
    else if (call->request.kind == MODEL_CALL_ROUTE)
        on_route(direct, call);
    else if (call->request.kind == MODEL_CALL_LOCK)
        on_lock(direct, call);
    else if (call->request.kind == MODEL_CALL_UNLOCK && call->response.code == RT_OK)
        direct->lock_token = 0;
    else if (call->request.kind == MODEL_CALL_OPEN_SESSION && call->response.code == RT_OK)
        direct->session_id = call->response.open_session.session_id;
    (void)model_call_free(call);
}

static bool is_waiting(const struct direct *direct)
{
    return direct->op == 0 && !direct->outside;
}

static void direct_tick(struct sim_node *node)
{
    struct direct *direct = direct_of(node);

    if (is_waiting(direct) && !node->world->is_stopping &&
        sim_node_now_us(node) >= direct->act_at_us)
        act(direct);
}

static uint64_t direct_next_wakeup_us(struct sim_node *node)
{
    const struct direct *direct = direct_of(node);

    return is_waiting(direct) && !node->world->is_stopping ? direct->act_at_us : RT_NEVER;
}

static struct model_effects *direct_effects(struct sim_node *node)
{
    return &direct_of(node)->effects;
}

bool sim_direct_is_idle(const struct sim_node *node)
{
    const struct direct *direct = node->core;

    return is_waiting(direct);
}

const struct sim_core_ops sim_direct_ops = {
    .create = direct_create,
    .destroy = direct_destroy,
    .call_done = direct_call_done,
    .tick = direct_tick,
    .next_wakeup_us = direct_next_wakeup_us,
    .effects = direct_effects,
};
