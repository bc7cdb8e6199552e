/*
 * What a world says about itself: trace records, results, violations. Invariant: a run reports at
 * most one violation, the first. One thread.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "tests/sim/world.h"

enum {
    HISTORY_LINES = 80
};

static struct sim_trace_record blank(const struct sim_world *world, enum sim_trace_event event,
                                     const struct sim_node *node, uint8_t key, uint64_t id)
{
    return (struct sim_trace_record){
        .at_us = world->now_us,
        .number = world->stats.n_events,
        .event = (uint8_t)event,
        .node = node ? node->index : SIM_NO_NODE,
        .peer = SIM_NO_NODE,
        .key = key,
        .id = id,
    };
}

void sim_world_trace(struct sim_world *world, enum sim_trace_event event,
                     const struct sim_node *node, uint8_t key, uint64_t id)
{
    struct sim_trace_record record = blank(world, event, node, key, id);

    sim_trace_add(&world->trace, &record);
}

static void describe_request(struct sim_trace_record *record, const struct model_request *request)
{
    if (sim_request_is_data(request->kind)) {
        record->epoch = request->data.header.epoch;
        record->incarnation = request->data.header.incarnation;
        record->token = request->data.header.lock_token;
        record->value = request->data.value.size ? sim_value_decode(request->data.value) : 0;
    } else if (request->kind == MODEL_CALL_EXECUTE) {
        record->seq = request->execute.request_id.seq;
        record->token = request->execute.lock_token;
        record->value = request->execute.value.size ? sim_value_decode(request->execute.value) : 0;
        record->statement = (uint8_t)(1 + request->execute.kind);
    } else if (request->kind == MODEL_CALL_LOCK) {
        record->seq = request->lock.request_id.seq;
    } else if (request->kind == MODEL_CALL_UNLOCK) {
        record->token = request->unlock.lock_token;
    } else if (request->kind == MODEL_CALL_ROUTE) {
        record->token = request->route.lock_token;
        record->statement = (uint8_t)(1 + request->route.operation);
    } else if (request->kind == MODEL_CALL_FENCE) {
        record->epoch = request->fence.epoch;
        record->incarnation = request->fence.incarnation;
        record->token = request->fence.token;
        record->seq = request->fence.locked;
    } else if (request->kind == MODEL_CALL_ACTIVATE) {
        record->epoch = request->activate.row.epoch;
        record->incarnation = request->activate.incarnation;
        record->token = request->activate.row.token_floor;
    } else if (request->kind == MODEL_CALL_DROP) {
        record->epoch = request->drop.epoch;
    } else if (request->kind == MODEL_CALL_COMPACT) {
        record->incarnation = request->compact.incarnation;
        record->seq = request->compact.round;
    } else if (request->kind == MODEL_CALL_RENEW) {
        record->incarnation = request->renew.incarnation;
    }
}

static void describe_data(struct sim_trace_record *record, const struct model_data_response *data)
{
    record->epoch = data->version.epoch;
    record->incarnation = data->version.incarnation;
    record->seq = data->version.seq;
    record->value = data->has_value && data->value.size ? sim_value_decode(data->value) : 0;
}

static void describe_response(struct sim_trace_record *record, enum model_call_kind kind,
                              const struct model_response *response)
{
    record->code = (uint8_t)response->code;
    if (response->code != RT_OK) {
        record->reason = (uint8_t)response->error.reason;
    } else if (kind == MODEL_CALL_EXECUTE) {
        describe_data(record, &response->execute.data);
        record->token = response->execute.lock_token;
        record->outcome = (uint8_t)response->execute.outcome;
    } else if (kind == MODEL_CALL_LOCK) {
        describe_data(record, &response->lock.data);
        record->token = response->lock.lock_token;
        record->outcome = (uint8_t)response->lock.outcome;
    } else if (kind == MODEL_CALL_ROUTE) {
        record->epoch = response->route.route.epoch;
        record->incarnation = response->route.route.incarnation;
    } else if (sim_request_is_data(kind) || kind == MODEL_CALL_FENCE ||
               kind == MODEL_CALL_ACTIVATE) {
        describe_data(record, &response->data);
    } else if (kind == MODEL_CALL_REGISTER) {
        record->incarnation = response->reg.incarnation;
    }
}

void sim_world_trace_call(struct sim_world *world, enum sim_trace_event event,
                          const struct sim_node *node, const struct sim_node *peer, uint64_t id,
                          const struct model_request *request,
                          const struct model_response *response)
{
    struct sim_trace_record record =
        blank(world, event, node, sim_world_key_index(sim_request_key(request)), id);

    record.peer = peer->index;
    record.has_call = true;
    record.call = (uint8_t)request->kind;
    describe_request(&record, request);
    if (response)
        describe_response(&record, request->kind, response);
    sim_trace_add(&world->trace, &record);
}

void sim_world_note_result(struct sim_world *world, const struct sim_node *node,
                           const struct sim_op *op)
{
    struct sim_trace_record record = blank(world, SIM_TRACE_RETURN, node, op->key, op->number);

    record.value = op->value;
    record.code = op->result == SIM_RESULT_OK      ? RT_OK
                  : op->result == SIM_RESULT_NO    ? RT_FAILED_PRECONDITION
                  : op->result == SIM_RESULT_MAYBE ? RT_UNKNOWN
                                                   : RT_CANCELLED;
    sim_trace_add(&world->trace, &record);
    world->stats.n_statements++;
    if (op->result == SIM_RESULT_OK && op->kind != SIM_OP_READ)
        world->stats.n_acknowledged++;
    world->stats.n_refused += op->result == SIM_RESULT_NO;
    world->stats.n_unknown += op->result == SIM_RESULT_MAYBE;
}

void sim_world_violation(struct sim_world *world, const char *invariant, uint8_t key,
                         const char *format, ...)
{
    FILE *out = world->options.out;
    va_list arguments;

    if (world->is_failed)
        return;
    world->is_failed = true;
    world->stats.n_violations++;
    sim_world_trace(world, SIM_TRACE_VIOLATION, NULL, key, 0);
    if (!out)
        return;
    (void)fprintf(out, "violated %s, seed %" PRIu64 ", event %" PRIu64 ", at %.6f s", invariant,
                  world->options.seed, world->stats.n_events, (double)world->now_us / 1e6);
    if (key != SIM_NO_KEY)
        (void)fprintf(out, ", key k%u", key);
    (void)fprintf(out, "\n  ");
    va_start(arguments, format);
    (void)vfprintf(out, format, arguments);
    va_end(arguments);
    (void)fprintf(out, "\n  replay: %s --seed %" PRIu64 " --trace\n  before it:\n",
                  world->options.program, world->options.seed);
    sim_trace_print(&world->trace, out, key, HISTORY_LINES);
}
