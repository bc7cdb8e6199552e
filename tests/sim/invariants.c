/*
 * Checks of every answer and call as it leaves a core: see invariants.h. Invariant: what the
 * checker believes comes only from what left a core, never from a core's inside. One thread.
 */
#include "tests/sim/invariants.h"

#include <inttypes.h>

#include "runtime/base/alloc.h"
#include "tests/sim/world.h"

/* The highest term that a process of an instance obeyed. */
struct sim_term {
    uint64_t term;
    uint64_t life;
};

void sim_checker_init(struct sim_checker *checker, struct sim_world *world)
{
    *checker = (struct sim_checker){.world = world};
    checker->terms = rt_xalloc(SIM_NODES_MAX * sizeof(*checker->terms));
}

void sim_checker_deinit(struct sim_checker *checker)
{
    checker->terms = rt_free(checker->terms);
    for (unsigned i = 0; i < SIM_KEYS_MAX; i++)
        checker->keys[i].acks = rt_free(checker->keys[i].acks);
}

/* ---- lives of instances ---------------------------------------------------------------------- */

static struct sim_incarnation *find_incarnation(struct sim_checker *checker, uint64_t incarnation)
{
    for (unsigned i = 0; i < checker->n_incarnations; i++)
        if (checker->incarnations[i].incarnation == incarnation)
            return &checker->incarnations[i];
    return NULL;
}

static struct sim_incarnation *note_incarnation(struct sim_checker *checker, uint64_t incarnation,
                                                uint8_t node)
{
    struct sim_incarnation *known = find_incarnation(checker, incarnation);

    if (known)
        return known;
    rt_assert(checker->n_incarnations < SIM_INCARNATIONS_MAX);
    known = &checker->incarnations[checker->n_incarnations++];
    *known = (struct sim_incarnation){.incarnation = incarnation, .node = node};
    return known;
}

uint64_t sim_checker_incarnation(const struct sim_checker *checker, uint8_t node)
{
    uint64_t highest = 0;

    for (unsigned i = 0; i < checker->n_incarnations; i++)
        if (checker->incarnations[i].node == node && checker->incarnations[i].incarnation > highest)
            highest = checker->incarnations[i].incarnation;
    return highest;
}

/* From now on what was only visible at this owner may be gone. */
static void revert_keys(struct sim_checker *checker, uint8_t node)
{
    struct sim_world *world = checker->world;
    enum sim_op_kind kind =
        world->plan.owner_down == COORD_OWNER_DOWN_FORGET ? SIM_OP_FORGET : SIM_OP_REVERT;

    for (uint8_t key = 0; key < world->plan.n_keys; key++) {
        const struct sim_key_state *state = &checker->keys[key];

        if (state->activated_epoch == 0 || state->activated_node != node)
            continue;
        (void)sim_history_invoke(&world->history, SIM_NO_NODE, key, SIM_OP_REVERT, world->now_us);
        if (kind == SIM_OP_FORGET)
            (void)sim_history_invoke(&world->history, SIM_NO_NODE, key, kind, world->now_us);
    }
}

static void end_incarnation(struct sim_checker *checker, struct sim_incarnation *ended)
{
    if (ended->is_dead)
        return;
    ended->is_dead = true;
    checker->world->stats.n_deaths++;
    revert_keys(checker, ended->node);
}

void sim_checker_on_crash(struct sim_checker *checker, struct sim_node *node)
{
    if (node->kind == SIM_NODE_COORDINATOR)
        checker->n_compacting = 0;
    if (node->kind != SIM_NODE_INSTANCE)
        return;
    revert_keys(checker, node->index);
    for (unsigned i = 0; i < SIM_KEYS_MAX; i++)
        checker->keys[i].n_durable[node->index] = 0;
}

static void on_member(struct sim_checker *checker, const struct model_instance_info *info)
{
    struct sim_world *world = checker->world;
    const struct sim_node *node = sim_world_node_at(world, info->address);
    struct sim_incarnation *known = note_incarnation(checker, info->incarnation, node->index);
    bool is_dead = info->state == MODEL_MEMBER_DEAD || info->state == MODEL_MEMBER_LEFT;

    for (unsigned i = 0; i < checker->n_incarnations; i++)
        if (checker->incarnations[i].node == node->index &&
            checker->incarnations[i].incarnation < info->incarnation)
            end_incarnation(checker, &checker->incarnations[i]);
    if (known->is_dead && !is_dead)
        sim_world_violation(world, "I11", SIM_NO_KEY, "incarnation %" PRIu64 " of %s lives again",
                            info->incarnation, node->name);
    if (is_dead && !known->is_dead) {
        sim_world_trace(world, SIM_TRACE_MEMBER, node, SIM_NO_KEY, info->incarnation);
        end_incarnation(checker, known);
    }
}

void sim_checker_on_members(struct sim_checker *checker,
                            const struct model_list_instances_response *members)
{
    for (size_t i = 0; i < members->n_instances; i++)
        on_member(checker, &members->instances[i]);
}

/* ---- calls and requests ---------------------------------------------------------------------- */

static void on_activate(struct sim_checker *checker, struct sim_node *to,
                        const struct model_activate_request *activate)
{
    uint8_t key = sim_world_key_index(activate->row.key);
    struct sim_key_state *state = &checker->keys[key];

    (void)note_incarnation(checker, activate->incarnation, to->index);
    if (activate->row.epoch < state->activated_epoch)
        sim_world_violation(checker->world, "I1", key,
                            "Activate of epoch %" PRIu64 " after epoch %" PRIu64,
                            activate->row.epoch, state->activated_epoch);
    if (activate->row.epoch == state->activated_epoch && state->activated_node != to->index)
        sim_world_violation(checker->world, "I1", key, "epoch %" PRIu64 " activated at two owners",
                            activate->row.epoch);
    state->activated_epoch = activate->row.epoch;
    state->activated_node = to->index;
}

static void on_release(struct sim_checker *checker, const struct model_fence_request *fence)
{
    uint8_t key = sim_world_key_index(fence->key);
    struct sim_key_state *state = &checker->keys[key];

    if (fence->token > state->released_token)
        state->released_token = fence->token;
    if (state->locked_epoch == fence->epoch && fence->token >= state->locked_token)
        state->locked_token = 0;
}

static bool is_write(enum model_call_kind kind)
{
    return kind == MODEL_CALL_SET || kind == MODEL_CALL_STORE || kind == MODEL_CALL_PUT ||
           kind == MODEL_CALL_DELETE;
}

/* C68: no statement goes to an instance while instances compact together. */
static void check_compaction(struct sim_checker *checker, const struct model_request *request)
{
    if (request->kind == MODEL_CALL_COMPACT)
        checker->n_compacting++;
    if (checker->n_compacting > 0 && is_write(request->kind))
        sim_world_violation(checker->world, "C68", sim_world_key_index(request->data.header.key),
                            "%s is sent while %u instances compact",
                            model_call_kind_name(request->kind), checker->n_compacting);
}

void sim_checker_on_done(struct sim_checker *checker, const struct sim_node *from,
                         const struct model_request *request)
{
    if (from->kind == SIM_NODE_COORDINATOR && request->kind == MODEL_CALL_COMPACT)
        checker->n_compacting--;
}

void sim_checker_on_call(struct sim_checker *checker, struct sim_node *from, struct sim_node *to,
                         const struct model_request *request)
{
    if (request->kind == MODEL_CALL_RENEW && ++from->n_renews > from->n_heartbeats)
        sim_world_violation(checker->world, "heartbeat", SIM_NO_KEY,
                            "%s asks for its lease before its heartbeat is on disk", from->name);
    if (from->kind != SIM_NODE_COORDINATOR)
        return;
    check_compaction(checker, request);
    if (request->kind == MODEL_CALL_ACTIVATE)
        on_activate(checker, to, &request->activate);
    if (request->kind == MODEL_CALL_FENCE && !request->fence.locked)
        on_release(checker, &request->fence);
}

/* A durable write with the token of a grant ends it at the owner. */
void sim_checker_on_request(struct sim_checker *checker, struct sim_node *node,
                            const struct model_request *request)
{
    uint8_t key = sim_world_key_index(sim_request_key(request));
    struct sim_key_state *state;

    if (node->kind != SIM_NODE_INSTANCE || key == SIM_NO_KEY || !sim_request_is_mutating(request) ||
        request->kind == MODEL_CALL_SET)
        return;
    state = &checker->keys[key];
    /* It may be overwritten, whatever is answered; SETs that are answered meanwhile too. */
    state->volatile_set = (struct model_version){0};
    state->n_durable[node->index]++;
    if (request->data.header.lock_token > state->closing_token)
        state->closing_token = request->data.header.lock_token;
}

/* ---- answers of instances -------------------------------------------------------------------- */

static void remember_ack(struct sim_key_state *state, const struct model_data_request *data,
                         const struct model_data_response *answer)
{
    if (state->n_acks == state->capacity) {
        state->capacity = state->capacity ? state->capacity * 2 : 64;
        state->acks = rt_xrealloc(state->acks, state->capacity * sizeof(*state->acks));
    }
    state->acks[state->n_acks++] = (struct sim_ack){
        .version = answer->version,
        .token = data->header.lock_token,
        .request_id = data->header.request_id,
    };
}

/* I9: the answer to a request is the same version each time, within one life of the owner. */
static void check_once(struct sim_checker *checker, uint8_t key,
                       const struct model_data_request *data,
                       const struct model_data_response *answer)
{
    const struct sim_key_state *state = &checker->keys[key];

    for (size_t i = 0; i < state->n_acks; i++) {
        const struct sim_ack *ack = &state->acks[i];

        if (!model_id_equal(&ack->request_id.client, &data->header.request_id.client) ||
            ack->request_id.seq != data->header.request_id.seq)
            continue;
        if (ack->version.incarnation == answer->version.incarnation &&
            model_version_compare(&ack->version, &answer->version) != 0)
            sim_world_violation(checker->world, "I9", key,
                                "one request became version seq %" PRIu64 " and seq %" PRIu64,
                                ack->version.seq, answer->version.seq);
    }
}

/* I7, at the owner: a grant is a door that closes for everybody else. */
static void check_token(struct sim_checker *checker, uint8_t key, const struct model_header *header)
{
    struct sim_key_state *state = &checker->keys[key];
    struct sim_world *world = checker->world;

    if (world->plan.locking == MODEL_LOCKING_NONE)
        return;
    if (header->lock_token != 0 && header->lock_token < state->granted_token)
        sim_world_violation(world, "I7", key,
                            "write with token %" PRIu64 " accepted after token %" PRIu64
                            " was granted",
                            header->lock_token, state->granted_token);
    if (header->lock_token == 0 && state->locked_token != 0 &&
        state->closing_token < state->locked_token && state->locked_epoch == header->epoch)
        sim_world_violation(world, "I7", key,
                            "write without a token accepted while token %" PRIu64 " holds the key",
                            state->locked_token);
}

/* I1, I10: who may say OK at this moment. */
static void check_owner(struct sim_checker *checker, struct sim_node *node, uint8_t key,
                        uint64_t epoch, uint64_t incarnation)
{
    struct sim_key_state *state = &checker->keys[key];
    const struct sim_incarnation *life = find_incarnation(checker, incarnation);
    struct sim_world *world = checker->world;

    if (life && life->is_dead)
        sim_world_violation(world, "I10", key,
                            "%s answers OK as incarnation %" PRIu64 ", which is dead", node->name,
                            incarnation);
    if (epoch < state->activated_epoch)
        sim_world_violation(world, "I10", key,
                            "%s answers OK at epoch %" PRIu64 ", epoch %" PRIu64 " is activated",
                            node->name, epoch, state->activated_epoch);
    if (epoch < state->acked_epoch ||
        (epoch == state->acked_epoch && incarnation < state->acked_incarnation))
        sim_world_violation(world, "I1", key,
                            "OK at (%" PRIu64 ", %" PRIu64 ") after (%" PRIu64 ", %" PRIu64 ")",
                            epoch, incarnation, state->acked_epoch, state->acked_incarnation);
    if (epoch == state->acked_epoch && node->index != state->acked_node)
        sim_world_violation(world, "I1", key, "two owners answer OK at epoch %" PRIu64, epoch);
    /* The owner has the row from a Reconcile: no Activate was needed. */
    if (epoch > state->activated_epoch) {
        state->activated_epoch = epoch;
        state->activated_node = node->index;
    }
    state->acked_epoch = epoch;
    state->acked_incarnation = incarnation;
    state->acked_node = node->index;
}

/* Does an access by the owner's next life say that SETs are gone? Writes need not: what they answer
 * is newer than anything that was lost. */
static void check_sets_lost(struct sim_checker *checker, uint8_t key, uint64_t epoch,
                            const struct model_call *call)
{
    struct sim_key_state *state = &checker->keys[key];
    const struct model_version *lost = &state->volatile_set;
    const struct model_data_response *answer = &call->response.data;
    uint64_t incarnation = call->response.responder.incarnation;

    if (lost->seq == 0 || lost->epoch != epoch || incarnation <= lost->incarnation)
        return;
    if ((call->request.kind == MODEL_CALL_READ || call->request.kind == MODEL_CALL_FENCE) &&
        !answer->sets_lost && model_version_compare(&answer->version, lost) < 0)
        sim_world_violation(checker->world, "I3", key,
                            "the SET of version seq %" PRIu64 " is gone, and the answer of "
                            "incarnation %" PRIu64 " does not say so",
                            lost->seq, incarnation);
    state->volatile_set = (struct model_version){0};
}

static void note_durability(struct sim_key_state *state, uint8_t node,
                            const struct model_call *call)
{
    const struct model_version *version = &call->response.data.version;

    if (call->request.kind != MODEL_CALL_SET)
        state->volatile_set = (struct model_version){0};
    else if (state->n_durable[node] == 0 &&
             model_version_compare(version, &state->volatile_set) > 0)
        state->volatile_set = *version;
}

static void on_write_ok(struct sim_checker *checker, struct sim_node *node, uint8_t key,
                        const struct model_call *call)
{
    const struct model_data_request *data = &call->request.data;
    const struct model_data_response *answer = &call->response.data;
    struct sim_key_state *state = &checker->keys[key];
    const struct model_header *header = &data->header;

    if (header->epoch == 0 || header->incarnation != call->response.responder.incarnation)
        sim_world_violation(checker->world, "I4", key,
                            "%s accepted a route to incarnation %" PRIu64 " as %" PRIu64,
                            node->name, header->incarnation, call->response.responder.incarnation);
    check_once(checker, key, data, answer);
    if (answer->replayed) {
        checker->world->stats.n_replayed++;
        return;
    }
    if (answer->version.seq != 0 && (answer->version.epoch != header->epoch ||
                                     answer->version.incarnation != header->incarnation))
        sim_world_violation(
            checker->world, "I4", key,
            "write for (%" PRIu64 ", %" PRIu64 ") became (%" PRIu64 ", %" PRIu64 ")", header->epoch,
            header->incarnation, answer->version.epoch, answer->version.incarnation);
    check_owner(checker, node, key, header->epoch, header->incarnation);
    check_token(checker, key, header);
    remember_ack(state, data, answer);
    note_durability(state, node->index, call);
}

static void on_data_reply(struct sim_checker *checker, struct sim_node *node,
                          const struct model_call *call)
{
    const struct model_data_request *data = &call->request.data;
    const struct model_data_response *answer = &call->response.data;
    uint8_t key = sim_world_key_index(data->header.key);

    if (key == SIM_NO_KEY)
        return;
    if (call->request.kind != MODEL_CALL_SET && call->request.kind != MODEL_CALL_READ)
        checker->keys[key].n_durable[node->index]--;
    if (call->response.code == RT_ABORTED &&
        call->response.error.reason == MODEL_REASON_OUTCOME_UNKNOWN)
        checker->world->stats.n_post_check_failures++;
    if (call->response.code != RT_OK && call->response.error.reason == MODEL_REASON_SET_LOST)
        checker->keys[key].volatile_set = (struct model_version){0};
    if (call->response.code != RT_OK)
        return;
    if (answer->sets_lost)
        checker->world->stats.n_sets_lost++;
    check_sets_lost(checker, key, data->header.epoch, call);
    if (call->request.kind != MODEL_CALL_READ)
        on_write_ok(checker, node, key, call);
    else if (data->consistency == MODEL_READ_LINEARIZABLE && !answer->stale)
        check_owner(checker, node, key, data->header.epoch, call->response.responder.incarnation);
}

static void on_fence_ok(struct sim_checker *checker, const struct model_call *call)
{
    const struct model_fence_request *fence = &call->request.fence;
    uint8_t key = sim_world_key_index(fence->key);
    struct sim_key_state *state = &checker->keys[key];

    if (!fence->locked)
        return;
    if (call->response.data.sets_lost)
        checker->world->stats.n_sets_lost++;
    check_sets_lost(checker, key, fence->epoch, call);
    if (fence->token < state->locked_token || fence->token <= state->released_token)
        return;
    state->locked_epoch = fence->epoch;
    state->locked_token = fence->token;
}

/* I11: a command of an earlier term after one of a later term was obeyed. */
static void check_term(struct sim_checker *checker, struct sim_node *node, uint64_t term)
{
    struct sim_term *obeyed = &checker->terms[node->index];

    if (obeyed->life == node->life && term < obeyed->term)
        sim_world_violation(checker->world, "I11", SIM_NO_KEY,
                            "%s obeyed term %" PRIu64 " after term %" PRIu64, node->name, term,
                            obeyed->term);
    if (obeyed->life != node->life || term > obeyed->term)
        *obeyed = (struct sim_term){.term = term, .life = node->life};
}

static void on_instance_reply(struct sim_checker *checker, struct sim_node *node,
                              const struct model_call *call)
{
    if (sim_request_is_data(call->request.kind)) {
        on_data_reply(checker, node, call);
        return;
    }
    if (call->response.code != RT_OK)
        return;
    if (call->request.kind == MODEL_CALL_FENCE) {
        check_term(checker, node, call->request.fence.term);
        on_fence_ok(checker, call);
    }
    if (call->request.kind == MODEL_CALL_ACTIVATE)
        check_term(checker, node, call->request.activate.term);
    if (call->request.kind == MODEL_CALL_DROP)
        check_term(checker, node, call->request.drop.term);
    if (call->request.kind == MODEL_CALL_COMPACT) {
        check_term(checker, node, call->request.compact.term);
        checker->world->stats.n_compactions++;
    }
}

/* ---- answers of the coordinator -------------------------------------------------------------- */

/* I1: no other route is given out than that of the ownership which was activated last. */
static void check_route(struct sim_checker *checker, struct rt_bytes name,
                        const struct model_route *route)
{
    uint8_t key = sim_world_key_index(name);
    const struct sim_key_state *state = &checker->keys[key];

    checker->world->stats.n_routes++;
    if (route->epoch != state->activated_epoch ||
        sim_world_node_at(checker->world, route->address)->index != state->activated_node)
        sim_world_violation(checker->world, "I1", key,
                            "a route names epoch %" PRIu64 ", epoch %" PRIu64 " is activated",
                            route->epoch, state->activated_epoch);
}

static void on_execute_reply(struct sim_checker *checker, const struct model_call *call)
{
    const struct model_execute_response *answer = &call->response.execute;
    uint8_t key = sim_world_key_index(call->request.execute.key);
    struct sim_key_state *state;

    if (call->response.code != RT_OK || key == SIM_NO_KEY)
        return;
    state = &checker->keys[key];
    if (call->request.execute.kind != MODEL_STATEMENT_GET || answer->outcome != MODEL_OUTCOME_DONE)
        return;
    if (answer->lock_token > state->granted_token)
        state->granted_token = answer->lock_token;
}

static void on_lock_reply(struct sim_checker *checker, const struct model_call *call)
{
    const struct model_lock_response *answer = &call->response.lock;
    struct sim_key_state *state = &checker->keys[sim_world_key_index(call->request.lock.key)];

    if (answer->outcome == MODEL_OUTCOME_DONE && answer->lock_token > state->granted_token)
        state->granted_token = answer->lock_token;
    if (answer->has_route)
        check_route(checker, call->request.lock.key, &answer->route);
}

/* The coordinator tells an owner otherwise than by Fence that a grant is over. */
static void on_told_rows(struct sim_checker *checker, const struct model_row *rows, size_t n_rows)
{
    for (size_t i = 0; i < n_rows; i++) {
        struct sim_key_state *state = &checker->keys[sim_world_key_index(rows[i].key)];

        if (!rows[i].locked && rows[i].epoch == state->locked_epoch &&
            rows[i].token_floor >= state->locked_token)
            state->locked_token = 0;
    }
}

static void on_coordinator_reply(struct sim_checker *checker, struct sim_node *caller,
                                 const struct model_call *call)
{
    const struct sim_incarnation *life;

    if (call->request.kind == MODEL_CALL_EXECUTE)
        on_execute_reply(checker, call);
    if (call->response.code != RT_OK)
        return;
    if (call->request.kind == MODEL_CALL_LOCK)
        on_lock_reply(checker, call);
    if (call->request.kind == MODEL_CALL_ROUTE && call->response.route.has_route)
        check_route(checker, call->request.route.key, &call->response.route.route);
    if (call->request.kind == MODEL_CALL_RECONCILE)
        on_told_rows(checker, call->response.reconcile.rows, call->response.reconcile.n_rows);
    if (call->request.kind == MODEL_CALL_PULL_ROWS)
        on_told_rows(checker, call->response.pull_rows.rows, call->response.pull_rows.n_rows);
    if (call->request.kind == MODEL_CALL_REGISTER)
        (void)note_incarnation(checker, call->response.reg.incarnation, caller->index);
    if (call->request.kind != MODEL_CALL_RENEW)
        return;
    life = find_incarnation(checker, call->request.renew.incarnation);
    if (life && life->is_dead)
        sim_world_violation(checker->world, "I11", SIM_NO_KEY,
                            "lease granted to dead incarnation %" PRIu64 " of %s",
                            life->incarnation, caller->name);
}

void sim_checker_on_reply(struct sim_checker *checker, struct sim_node *node,
                          struct sim_node *caller, const struct model_call *call)
{
    if (node->kind == SIM_NODE_INSTANCE)
        on_instance_reply(checker, node, call);
    if (node->kind == SIM_NODE_COORDINATOR)
        on_coordinator_reply(checker, caller, call);
}
