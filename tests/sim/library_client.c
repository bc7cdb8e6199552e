/*
 * A client with the shipped core of the client library: several operations at the same time, routes
 * that it remembers, locks that it takes, gives back, or leaves to the end of its session.
 * Sometimes it ends and another one begins. Invariant: a slot's `op` is its operation in the
 * history and 0 for UNLOCK; every answer ends one slot. One thread.
 */
#include <stdio.h>

#include "esi-client/direct.h"
#include "runtime/base/alloc.h"
#include "tests/sim/world.h"

enum {
    SLOTS_MAX = 3,
    LATE_US = 100000, /* nothing outlives its deadline by more */
};

struct slot {
    struct model_call call;
    bool is_busy;
    uint8_t key;
    uint32_t op;
    uint8_t value[SIM_VALUE_MAX];
};

struct library {
    struct sim_node *node;
    struct esi_direct *direct; /* owned */
    struct rt_list answered;   /* model_call.link, of slots */
    struct slot slots[SLOTS_MAX];
    unsigned n_slots;
    bool is_held[SIM_KEYS_MAX]; /* as far as it was told */
    bool is_closing;
    uint64_t act_at_us; /* local */
};

static struct library *library_of(struct sim_node *node)
{
    return node->core;
}

static uint64_t roll(struct library *library, uint64_t bound)
{
    return rt_rng_below(&library->node->world->rng, bound);
}

/* ---- lives ----------------------------------------------------------------------------------- */

static void begin(struct library *library)
{
    struct sim_node *node = library->node;
    struct esi_direct_config config = {.n_routes_max = 1 + roll(library, SIM_KEYS_MAX)};

    (void)snprintf(config.name, sizeof(config.name), "%s", node->name);
    (void)snprintf(config.coordinator_address, sizeof(config.coordinator_address), "%s",
                   sim_world_coordinator(node->world)->name);
    sim_world_random_id(node->world, &config.client_id);
    sim_world_random_id(node->world, &config.session_client_id);
    library->direct = esi_direct_new(&config, &node->env);
    library->is_closing = false;
    memset(library->is_held, 0, sizeof(library->is_held));
    sim_world_trace(node->world, SIM_TRACE_SESSION, node, SIM_NO_KEY, 1);
}

static void library_create(struct sim_node *node)
{
    struct library *library = rt_xalloc(sizeof(*library));

    library->node = node;
    library->n_slots = 1 + (unsigned)roll(library, SLOTS_MAX);
    library->act_at_us = sim_node_now_us(node);
    rt_list_init(&library->answered);
    node->core = library;
    begin(library);
}

static void end_op(struct library *library, struct slot *slot, enum sim_result result)
{
    struct sim_world *world = library->node->world;

    model_call_deinit(&slot->call);
    slot->is_busy = false;
    if (slot->op == 0)
        return;
    sim_history_return(&world->history, slot->op, result, world->now_us);
    sim_world_note_result(world, library->node, sim_history_op(&world->history, slot->op));
}

static void library_destroy(struct sim_node *node)
{
    struct library *library = library_of(node);

    for (unsigned i = 0; i < library->n_slots; i++)
        if (library->slots[i].is_busy)
            end_op(library, &library->slots[i], SIM_RESULT_MAYBE);
    library->direct = esi_direct_free(library->direct);
    (void)rt_free(library);
}

/* ---- what leaves the core -------------------------------------------------------------------- */

/* Of STORE and DELETE a key has one at a time; what is written names its operation. */
static struct slot *slot_of(struct library *library, const struct model_request *request)
{
    bool has_value = request->kind == MODEL_CALL_SET || request->kind == MODEL_CALL_PUT;

    for (unsigned i = 0; i < library->n_slots; i++) {
        struct slot *slot = &library->slots[i];

        if (slot->is_busy && slot->call.request.kind == request->kind &&
            slot->key == sim_world_key_index(request->data.header.key) &&
            (!has_value || slot->op == sim_value_decode(request->data.value)))
            return slot;
    }
    rt_assert(!"an operation of this client");
    return NULL;
}

/* The core numbers its requests itself: read the number off what leaves it. */
static void identify(struct library *library, const struct model_request *request)
{
    struct sim_world *world = library->node->world;
    const struct model_header *header = &request->data.header;
    struct sim_op *op = sim_history_op(&world->history, slot_of(library, request)->op);

    op->token = header->lock_token;
    if (op->request_id.seq == 0)
        sim_history_identify(&world->history, op->number, &header->request_id);
    else if (op->request_id.seq != header->request_id.seq ||
             !model_id_equal(&op->request_id.client, &header->request_id.client))
        sim_world_violation(world, "I9", op->key, "a retry of operation %u has another id",
                            op->number);
}

static struct model_effects *library_effects(struct sim_node *node)
{
    struct library *library = library_of(node);
    struct model_effects *effects = esi_direct_effects(library->direct);

    rt_list_for_each (link, &effects->calls) {
        const struct model_call *call = RT_LIST_ENTRY(link, struct model_call, link);

        if (sim_request_is_data(call->request.kind) && call->request.kind != MODEL_CALL_READ)
            identify(library, &call->request);
    }
    rt_list_splice_back(&library->answered, &effects->replies);
    return effects;
}

/* ---- answers --------------------------------------------------------------------------------- */

static enum sim_result on_data(struct sim_op *op, const struct model_data_response *answer)
{
    op->has_version = answer->version.seq != 0;
    op->version = answer->version;
    if (op->kind != SIM_OP_READ)
        return SIM_RESULT_OK;
    op->value = answer->has_value ? sim_value_decode(answer->value) : 0;
    return answer->stale ? SIM_RESULT_MAYBE : SIM_RESULT_OK;
}

static enum sim_result on_failure(struct library *library, struct sim_op *op,
                                  const struct model_error *error)
{
    if (error->reason == MODEL_REASON_KEY_LOST)
        sim_world_violation(library->node->world, "I3", op->key, "KEY_LOST without a lost disk");
    if (op->kind == SIM_OP_READ && error->reason == MODEL_REASON_KEY_NOT_IDENTIFIED)
        return SIM_RESULT_OK; /* nothing there: the value is 0 */
    return error->applied == MODEL_APPLIED_NO ? SIM_RESULT_NO : SIM_RESULT_MAYBE;
}

static void note_lock(struct library *library, const struct slot *slot)
{
    enum model_call_kind kind = slot->call.request.kind;

    if (kind == MODEL_CALL_LOCK && slot->call.response.code == RT_OK)
        library->is_held[slot->key] = true;
    else if (kind == MODEL_CALL_STORE || kind == MODEL_CALL_PUT || kind == MODEL_CALL_UNLOCK)
        library->is_held[slot->key] = false;
}

static void on_answer(struct library *library, struct slot *slot)
{
    struct sim_world *world = library->node->world;
    const struct model_response *response = &slot->call.response;
    struct sim_op *op = slot->op == 0 ? NULL : sim_history_op(&world->history, slot->op);
    enum sim_result result = SIM_RESULT_OK;

    if (sim_node_now_us(library->node) > slot->call.deadline_us + LATE_US)
        sim_world_violation(world, "I13", slot->key, "an operation outlived its deadline");
    note_lock(library, slot);
    if (op && response->code != RT_OK)
        result = on_failure(library, op, &response->error);
    else if (op)
        result = on_data(op, slot->call.request.kind == MODEL_CALL_LOCK ? &response->lock.data
                                                                        : &response->data);
    end_op(library, slot, result);
}

static void take_answers(struct library *library)
{
    struct rt_list *link;

    while ((link = rt_list_pop_front(&library->answered)) != NULL)
        on_answer(library,
                  RT_CONTAINER_OF(RT_LIST_ENTRY(link, struct model_call, link), struct slot, call));
}

/* ---- what it does next ----------------------------------------------------------------------- */

static enum model_call_kind draw_kind(struct library *library, uint8_t key)
{
    static const enum model_call_kind kinds[] = {
        MODEL_CALL_SET,  MODEL_CALL_SET,   MODEL_CALL_SET,    MODEL_CALL_PUT,    MODEL_CALL_PUT,
        MODEL_CALL_READ, MODEL_CALL_READ,  MODEL_CALL_READ,   MODEL_CALL_LOCK,   MODEL_CALL_LOCK,
        MODEL_CALL_LOCK, MODEL_CALL_STORE, MODEL_CALL_UNLOCK, MODEL_CALL_DELETE,
    };
    enum model_call_kind kind = kinds[roll(library, RT_ARRAY_SIZE(kinds))];

    for (unsigned i = 0; i < library->n_slots; i++)
        if (library->slots[i].is_busy && library->slots[i].key == key &&
            library->slots[i].call.request.kind == kind && kind != MODEL_CALL_SET &&
            kind != MODEL_CALL_PUT)
            return MODEL_CALL_READ;
    return kind;
}

/* Rather one whose lock it holds. */
static uint8_t draw_key(struct library *library)
{
    unsigned n_keys = library->node->world->plan.n_keys;
    uint8_t key = (uint8_t)roll(library, n_keys);

    for (unsigned i = 0; i < n_keys && roll(library, 2) == 0; i++)
        if (library->is_held[(key + i) % n_keys])
            return (uint8_t)((key + i) % n_keys);
    return key;
}

static void fill(struct slot *slot, enum model_call_kind kind)
{
    struct model_request *request = &slot->call.request;

    if (kind == MODEL_CALL_LOCK) {
        request->lock = (struct model_lock_request){.key = sim_world_key(slot->key)};
        return;
    }
    if (kind == MODEL_CALL_UNLOCK) {
        request->unlock = (struct model_unlock_request){.key = sim_world_key(slot->key)};
        return;
    }
    request->data = (struct model_data_request){.header.key = sim_world_key(slot->key)};
    if (kind == MODEL_CALL_SET || kind == MODEL_CALL_PUT)
        request->data.value = sim_value_encode(slot->op, slot->value);
}

static void invoke(struct library *library, struct slot *slot)
{
    struct sim_world *world = library->node->world;
    uint8_t key = draw_key(library);
    enum model_call_kind kind = draw_kind(library, key);

    slot->key = key;
    slot->op = kind == MODEL_CALL_UNLOCK
                   ? 0
                   : sim_history_invoke(&world->history, library->node->index, key,
                                        sim_op_kind_of_call(kind), world->now_us);
    sim_world_trace(world, SIM_TRACE_INVOKE, library->node, key, slot->op);
    slot->is_busy = true;
    model_call_init(&slot->call, kind);
    slot->call.deadline_us = sim_node_now_us(library->node) + 100000 + roll(library, 2000000);
    fill(slot, kind);
    esi_direct_submit(library->direct, &slot->call);
}

static struct slot *free_slot(struct library *library)
{
    for (unsigned i = 0; i < library->n_slots; i++)
        if (!library->slots[i].is_busy)
            return &library->slots[i];
    return NULL;
}

static bool is_idle(const struct library *library)
{
    for (unsigned i = 0; i < library->n_slots; i++)
        if (library->slots[i].is_busy)
            return false;
    return true;
}

static void close_client(struct library *library)
{
    library->is_closing = true;
    esi_direct_close(library->direct);
}

static void replace(struct library *library)
{
    sim_network_forget_calls(&library->node->world->network, library->node);
    library->direct = esi_direct_free(library->direct);
    begin(library);
}

static void act(struct library *library)
{
    struct sim_world *world = library->node->world;
    uint64_t now_us = sim_node_now_us(library->node);
    struct slot *slot = free_slot(library);

    if (library->is_closing) {
        if (esi_direct_is_closed(library->direct) && is_idle(library) && !world->is_stopping)
            replace(library);
        return;
    }
    if (world->is_stopping) {
        if (is_idle(library))
            close_client(library);
        return;
    }
    if (now_us < library->act_at_us || !slot)
        return;
    library->act_at_us = now_us + 1 + roll(library, world->plan.think_us);
    if (roll(library, 50) == 0)
        close_client(library);
    else
        invoke(library, slot);
}

/* Some operations are answered at once. */
static void library_settled(struct sim_node *node)
{
    struct library *library = library_of(node);

    do {
        take_answers(library);
        act(library);
        (void)library_effects(node);
    } while (!rt_list_is_empty(&library->answered));
}

static void library_call_done(struct sim_node *node, struct model_call *call)
{
    esi_direct_call_done(library_of(node)->direct, call);
}

static void library_tick(struct sim_node *node)
{
    esi_direct_tick(library_of(node)->direct);
}

static uint64_t library_next_wakeup_us(struct sim_node *node)
{
    struct library *library = library_of(node);
    uint64_t at_us = esi_direct_next_wakeup_us(library->direct);

    if (!library->is_closing && !node->world->is_stopping && free_slot(library) &&
        library->act_at_us < at_us)
        return library->act_at_us;
    return at_us;
}

bool sim_library_is_idle(const struct sim_node *node)
{
    const struct library *library = node->core;

    return is_idle(library) && esi_direct_is_closed(library->direct);
}

const struct sim_core_ops sim_library_ops = {
    .create = library_create,
    .destroy = library_destroy,
    .call_done = library_call_done,
    .tick = library_tick,
    .next_wakeup_us = library_next_wakeup_us,
    .effects = library_effects,
    .settled = library_settled,
};
