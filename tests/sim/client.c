/*
 * A client that runs random scripts in sessions, one after the other: lock patterns, writes
 * without a lock, reads, deletes, sessions that end or die while they hold locks. Later the same
 * client verifies: it goes through all keys until each was locked, read, set and stored once.
 * Invariant: `op` is the operation under way and 0 while the session takes a statement. One thread.
 */
#include <stdio.h>

#include "esi-client/session.h"
#include "runtime/base/alloc.h"
#include "tests/sim/world.h"

enum {
    SCRIPT_MAX = 8,
    LATE_US = 100000, /* nothing outlives its deadline by more */
};

struct line {
    enum model_statement_kind kind;
    uint8_t key;
};

struct client {
    struct sim_node *node;
    struct esi_session *session;
    struct line script[SCRIPT_MAX];
    unsigned n_lines;
    unsigned next_line;
    uint32_t op;
    struct line running;
    bool has_waited;
    uint64_t timeout_us;
    uint64_t act_at_us;     /* local: next statement, or next session */
    uint64_t give_up_at_us; /* local: of a wait for a lock */
    uint8_t value[SIM_VALUE_MAX];
    bool is_verifying;
    unsigned n_verified; /* keys */
};

static struct client *client_of(struct sim_node *node)
{
    return node->core;
}

static uint64_t roll(struct client *client, uint64_t bound)
{
    return rt_rng_below(&client->node->world->rng, bound);
}

/* ---- scripts --------------------------------------------------------------------------------- */

static void add(struct client *client, enum model_statement_kind kind, uint8_t key)
{
    client->script[client->n_lines++] = (struct line){kind, key};
}

static void lock_and_write(struct client *client, uint8_t key)
{
    uint64_t n_sets = 1 + roll(client, 3);

    add(client, MODEL_STATEMENT_GET, key);
    for (uint64_t i = 0; i < n_sets; i++)
        add(client, MODEL_STATEMENT_SET, key);
    if (roll(client, 8) > 0)
        add(client, MODEL_STATEMENT_STORE, key);
}

static void lock_two(struct client *client, uint8_t key)
{
    uint8_t other = (uint8_t)roll(client, client->node->world->plan.n_keys);

    add(client, MODEL_STATEMENT_GET, key);
    add(client, MODEL_STATEMENT_SET, key);
    add(client, MODEL_STATEMENT_GET, other);
    add(client, MODEL_STATEMENT_PUT, other);
    add(client, MODEL_STATEMENT_STORE, key);
}

static void write_script(struct client *client)
{
    uint8_t key = (uint8_t)roll(client, client->node->world->plan.n_keys);

    client->n_lines = 0;
    client->next_line = 0;
    switch (roll(client, 12)) {
    case 0:
    case 1:
    case 2:
    case 3:
        lock_and_write(client, key);
        break;
    case 4:
        lock_two(client, key);
        break;
    case 5:
    case 6:
        add(client, MODEL_STATEMENT_PUT, key);
        add(client, MODEL_STATEMENT_READ, key);
        break;
    case 7:
        add(client, MODEL_STATEMENT_SET, key);
        add(client, MODEL_STATEMENT_READ, key);
        break;
    case 8:
        add(client, MODEL_STATEMENT_GET, key);
        add(client, roll(client, 2) ? MODEL_STATEMENT_PUT : MODEL_STATEMENT_DELETE, key);
        break;
    case 9:
        add(client, MODEL_STATEMENT_GET, key);
        break;
    case 10:
        if (roll(client, 2)) {
            add(client, MODEL_STATEMENT_STORE, key);
            break;
        }
        add(client, MODEL_STATEMENT_DELETE, key);
        add(client, MODEL_STATEMENT_PUT, key);
        break;
    default:
        add(client, MODEL_STATEMENT_READ, key);
        add(client, MODEL_STATEMENT_READ, key);
        break;
    }
}

static void write_verification(struct client *client)
{
    uint8_t key = (uint8_t)client->n_verified;

    client->n_lines = 0;
    client->next_line = 0;
    add(client, MODEL_STATEMENT_GET, key);
    add(client, MODEL_STATEMENT_READ, key);
    add(client, MODEL_STATEMENT_SET, key);
    add(client, MODEL_STATEMENT_STORE, key);
}

/* ---- sessions -------------------------------------------------------------------------------- */

static void open_session(struct client *client)
{
    struct sim_node *node = client->node;
    struct esi_session_config config = {.statement_timeout_us = client->timeout_us};

    (void)snprintf(config.name, sizeof(config.name), "%s", node->name);
    (void)snprintf(config.coordinator_address, sizeof(config.coordinator_address), "%s",
                   sim_world_coordinator(node->world)->name);
    sim_world_random_id(node->world, &config.client_id);
    client->session = esi_session_new(&config, &node->env);
    client->give_up_at_us = RT_NEVER;
    client->n_lines = 0;
    esi_session_open(client->session);
    sim_world_trace(node->world, SIM_TRACE_SESSION, node, SIM_NO_KEY, 1);
}

static void client_create(struct sim_node *node)
{
    struct client *client = rt_xalloc(sizeof(*client));

    client->node = node;
    client->timeout_us = 300000 + roll(client, 2000000);
    client->act_at_us = sim_node_now_us(node);
    node->core = client;
    open_session(client);
}

static void end_op(struct client *client, enum sim_result result)
{
    struct sim_world *world = client->node->world;
    uint32_t number = client->op;

    if (number == 0)
        return;
    client->op = 0;
    sim_history_return(&world->history, number, result, world->now_us);
    sim_world_note_result(world, client->node, sim_history_op(&world->history, number));
}

static void client_destroy(struct sim_node *node)
{
    struct client *client = client_of(node);

    end_op(client, SIM_RESULT_MAYBE);
    client->session = esi_session_free(client->session);
    (void)rt_free(client);
}

static void replace_session(struct client *client)
{
    sim_network_forget_calls(&client->node->world->network, client->node);
    client->session = esi_session_free(client->session);
    open_session(client);
}

/* ---- results --------------------------------------------------------------------------------- */

static void learn_route(struct client *client, const struct model_execute_response *answer)
{
    struct sim_world *world = client->node->world;
    struct sim_node *owner;
    struct sim_route *route;
    uint8_t key = client->running.key;

    if (answer->instance[0] == '\0' || answer->epoch == 0)
        return;
    owner = sim_world_node_at(world, answer->instance);
    route = &world->routes[key][world->n_routes[key]++ % SIM_ROUTES_MAX];
    *route = (struct sim_route){
        .node = owner->index,
        .epoch = answer->epoch,
        .incarnation = answer->data.version.epoch == answer->epoch
                           ? answer->data.version.incarnation
                           : sim_checker_incarnation(&world->checker, owner->index),
        .token = answer->lock_token,
        .may_store = client->running.kind == MODEL_STATEMENT_STORE ||
                     client->running.kind == MODEL_STATEMENT_PUT,
    };
    for (unsigned i = 0; i < SIM_ROUTES_MAX; i++)
        route->may_store |=
            world->routes[key][i].epoch == route->epoch && world->routes[key][i].may_store;
}

static enum sim_result on_ok(struct client *client, const struct model_execute_response *answer)
{
    struct sim_op *op = sim_history_op(&client->node->world->history, client->op);

    learn_route(client, answer);
    op->has_version = answer->data.version.seq != 0;
    op->version = answer->data.version;
    op->token = answer->lock_token;
    if (op->kind != SIM_OP_READ)
        return SIM_RESULT_OK;
    op->value = answer->data.has_value ? sim_value_decode(answer->data.value) : 0;
    return answer->data.stale ? SIM_RESULT_MAYBE : SIM_RESULT_OK;
}

static enum sim_result on_error(struct client *client, const struct esi_result *result)
{
    const struct sim_op *op = sim_history_op(&client->node->world->history, client->op);

    if (result->error.reason == MODEL_REASON_KEY_LOST)
        sim_world_violation(client->node->world, "I3", op->key, "KEY_LOST without a lost disk");
    client->n_lines = 0;
    if (result->outcome == ESI_OUTCOME_UNKNOWN)
        return SIM_RESULT_MAYBE;
    if (op->kind == SIM_OP_READ && result->error.reason == MODEL_REASON_KEY_NOT_IDENTIFIED)
        return SIM_RESULT_OK; /* nothing there: the value is 0 */
    return SIM_RESULT_NO;
}

static void check_duration(struct client *client, const struct esi_result *result)
{
    if (!client->has_waited && result->latency_us > client->timeout_us + LATE_US)
        sim_world_violation(client->node->world, "I13", client->running.key,
                            "a statement took %llu us, its limit is %llu us",
                            (unsigned long long)result->latency_us,
                            (unsigned long long)client->timeout_us);
}

static void on_result(struct client *client, const struct esi_result *result)
{
    struct sim_world *world = client->node->world;
    uint64_t now_us = sim_node_now_us(client->node);

    if (result->outcome == ESI_OUTCOME_WAITING) {
        client->has_waited = true;
        client->give_up_at_us =
            now_us + 1000 + roll(client, 3 * world->plan.session_lease.duration_us);
        return;
    }
    check_duration(client, result);
    client->give_up_at_us = RT_NEVER;
    end_op(client, result->outcome == ESI_OUTCOME_OK ? on_ok(client, &result->response)
                                                     : on_error(client, result));
    client->act_at_us = now_us + (client->is_verifying ? 0 : roll(client, world->plan.think_us));
    if (result->outcome != ESI_OUTCOME_OK && roll(client, 2) == 0)
        esi_session_close(client->session);
    if (result->outcome != ESI_OUTCOME_OK && client->is_verifying)
        client->act_at_us = now_us + 50000;
    if (client->is_verifying && result->outcome == ESI_OUTCOME_OK &&
        client->running.kind == MODEL_STATEMENT_STORE)
        client->n_verified++;
}

static void take_results(struct client *client)
{
    struct esi_result *result;

    while ((result = esi_session_take_result(client->session)) != NULL) {
        on_result(client, result);
        (void)esi_result_free(result);
    }
}

/* ---- what it does next ----------------------------------------------------------------------- */

static enum sim_op_kind op_kind(enum model_statement_kind kind)
{
    switch (kind) {
    case MODEL_STATEMENT_SET:
        return SIM_OP_SET;
    case MODEL_STATEMENT_STORE:
        return SIM_OP_STORE;
    case MODEL_STATEMENT_PUT:
        return SIM_OP_PUT;
    case MODEL_STATEMENT_DELETE:
        return SIM_OP_DELETE;
    case MODEL_STATEMENT_GET:
    case MODEL_STATEMENT_READ:
    case MODEL_STATEMENT_AWAIT:
        break;
    }
    return SIM_OP_READ;
}

static void run_line(struct client *client)
{
    struct sim_world *world = client->node->world;
    struct line line = client->script[client->next_line++];
    struct esi_statement statement = {.kind = line.kind, .key = sim_world_key(line.key)};

    client->running = line;
    client->has_waited = false;
    client->op = sim_history_invoke(&world->history, client->node->index, line.key,
                                    op_kind(line.kind), world->now_us);
    if (line.kind == MODEL_STATEMENT_SET || line.kind == MODEL_STATEMENT_PUT)
        statement.value = sim_value_encode(client->op, client->value);
    sim_world_trace(world, SIM_TRACE_INVOKE, client->node, line.key, client->op);
    esi_session_execute(client->session, &statement);
}

static bool is_over(const struct client *client)
{
    if (client->is_verifying)
        return client->n_verified == client->node->world->plan.n_keys;
    return client->node->world->is_stopping;
}

static void act_open(struct client *client)
{
    if (client->next_line >= client->n_lines && is_over(client)) {
        esi_session_close(client->session);
        return;
    }
    if (client->next_line >= client->n_lines) {
        /* Between scripts a session sometimes ends, with what it has locked. */
        if (!client->is_verifying && roll(client, 6) == 0) {
            esi_session_close(client->session);
            return;
        }
        if (client->is_verifying)
            write_verification(client);
        else
            write_script(client);
    }
    run_line(client);
}

static void act(struct client *client)
{
    uint64_t now_us = sim_node_now_us(client->node);

    if (now_us >= client->give_up_at_us) {
        client->give_up_at_us = RT_NEVER;
        esi_session_close(client->session);
        take_results(client);
    }
    if (now_us < client->act_at_us)
        return;
    switch (esi_session_state(client->session)) {
    case ESI_SESSION_OPEN:
        act_open(client);
        break;
    case ESI_SESSION_CLOSED:
        if (!is_over(client)) {
            replace_session(client);
            client->act_at_us = now_us + roll(client, 50000);
        }
        break;
    case ESI_SESSION_OPENING:
    case ESI_SESSION_BUSY:
    case ESI_SESSION_CLOSING:
        break;
    }
}

/* The session numbers its requests itself: read the number off what leaves it. */
static void identify(struct client *client)
{
    rt_list_for_each (link, &esi_session_effects(client->session)->calls) {
        const struct model_call *call = RT_LIST_ENTRY(link, struct model_call, link);
        const struct model_execute_request *execute = &call->request.execute;

        if (call->request.kind == MODEL_CALL_EXECUTE && client->op != 0 &&
            execute->kind == client->running.kind)
            sim_history_identify(&client->node->world->history, client->op, &execute->request_id);
    }
}

static void client_settled(struct sim_node *node)
{
    struct client *client = client_of(node);

    take_results(client);
    act(client);
    take_results(client);
    identify(client);
}

static void client_call_done(struct sim_node *node, struct model_call *call)
{
    esi_session_call_done(client_of(node)->session, call);
    identify(client_of(node));
}

static void client_tick(struct sim_node *node)
{
    esi_session_tick(client_of(node)->session);
    identify(client_of(node));
}

static uint64_t client_next_wakeup_us(struct sim_node *node)
{
    const struct client *client = client_of(node);
    uint64_t at_us = esi_session_next_wakeup_us(client->session);
    enum esi_session_state state = esi_session_state(client->session);

    if (client->give_up_at_us < at_us)
        at_us = client->give_up_at_us;
    if ((state == ESI_SESSION_OPEN || (state == ESI_SESSION_CLOSED && !is_over(client))) &&
        client->act_at_us < at_us)
        at_us = client->act_at_us;
    return at_us;
}

static struct model_effects *client_effects(struct sim_node *node)
{
    return esi_session_effects(client_of(node)->session);
}

bool sim_client_is_idle(const struct sim_node *node)
{
    const struct client *client = node->core;

    return client->op == 0 && esi_session_state(client->session) == ESI_SESSION_CLOSED;
}

void sim_client_verify(struct sim_node *node)
{
    struct client *client = client_of(node);

    client->is_verifying = true;
    client->n_lines = 0;
    client->timeout_us = 2000000;
    client->act_at_us = sim_node_now_us(node);
    sim_node_settle(node);
}

bool sim_client_is_verified(const struct sim_node *node)
{
    const struct client *client = node->core;

    return client->n_verified == node->world->plan.n_keys && sim_client_is_idle(node);
}

const struct sim_core_ops sim_client_ops = {
    .create = client_create,
    .destroy = client_destroy,
    .call_done = client_call_done,
    .tick = client_tick,
    .next_wakeup_us = client_next_wakeup_us,
    .effects = client_effects,
    .settled = client_settled,
};
