/*
 * InstanceService.Pipeline: see codec.h. Invariant: an operation with a bad field is marked as
 * refused and changes nothing about the others; only what the batch shares refuses all of it. Any
 * thread; no state.
 */
#include <stdio.h>

#include "runtime/wire/data.h"
#include "runtime/wire/status.h"

WIRE_ASSERT_STREAM(Redistinto__V1__InstanceServicePipelineRequest,
                   Redistinto__V1__InstanceServicePipelineResponse, batch_id,
                   REDISTINTO__V1__INSTANCE_SERVICE_PIPELINE_RESPONSE__OUTCOME);

/* ---- requests, writing ---- */

static Redistinto__V1__PipelineOperationKind put_kind(enum model_call_kind kind)
{
    if (kind == MODEL_CALL_SET)
        return REDISTINTO__V1__PIPELINE_OPERATION_KIND__PIPELINE_OPERATION_KIND_SET;
    if (kind == MODEL_CALL_STORE)
        return REDISTINTO__V1__PIPELINE_OPERATION_KIND__PIPELINE_OPERATION_KIND_STORE;
    if (kind == MODEL_CALL_PUT)
        return REDISTINTO__V1__PIPELINE_OPERATION_KIND__PIPELINE_OPERATION_KIND_PUT;
    if (kind == MODEL_CALL_READ)
        return REDISTINTO__V1__PIPELINE_OPERATION_KIND__PIPELINE_OPERATION_KIND_READ;
    if (kind == MODEL_CALL_DELETE)
        return REDISTINTO__V1__PIPELINE_OPERATION_KIND__PIPELINE_OPERATION_KIND_DELETE;
    return REDISTINTO__V1__PIPELINE_OPERATION_KIND__PIPELINE_OPERATION_KIND_UNSPECIFIED;
}

static bool put_version(struct rt_arena *arena, bool has, const struct model_version *version,
                        Redistinto__V1__Version **ret_message)
{
    if (!has)
        return true;
    *ret_message = rt_arena_alloc(arena, sizeof(**ret_message));
    if (!*ret_message)
        return false;
    wire_put_version(*ret_message, version);
    return true;
}

static bool put_operation(Redistinto__V1__PipelineOperation *message,
                          const struct model_pipeline_operation *operation, struct rt_arena *arena)
{
    message->kind = put_kind(operation->kind);
    message->key = wire_put_bytes(operation->key);
    message->value = wire_put_bytes(operation->value);
    message->epoch = operation->epoch;
    message->seq = operation->seq;
    message->first_epoch = operation->first_epoch;
    message->lock_token = operation->lock_token;
    if (operation->kind == MODEL_CALL_READ)
        message->consistency = wire_put_consistency(operation->consistency);
    return put_version(arena, operation->has_last_set, &operation->last_set, &message->last_set) &&
           put_version(arena, operation->has_if_version, &operation->if_version,
                       &message->if_version);
}

static bool fill_request(const struct model_request *request, struct rt_arena *arena, void *pointer)
{
    const struct model_pipeline_request *pipeline = &request->pipeline;
    Redistinto__V1__InstanceServicePipelineRequest *message = pointer;

    message->cluster_id = wire_put_id(&pipeline->cluster_id);
    message->owner = (char *)pipeline->owner;
    message->incarnation = pipeline->incarnation;
    message->term = pipeline->term;
    message->client_id = wire_put_id(&pipeline->client);
    message->done_below = pipeline->done_below;
    if (pipeline->n_operations == 0)
        return true;
    message->operations = wire_put_list(arena, &redistinto__v1__pipeline_operation__descriptor,
                                        pipeline->n_operations);
    if (!message->operations)
        return false;
    message->n_operations = pipeline->n_operations;
    for (size_t i = 0; i < pipeline->n_operations; i++)
        if (!put_operation(message->operations[i], &pipeline->operations[i], arena))
            return false;
    return true;
}

/* ---- requests, reading ---- */

static enum model_call_kind take_kind(struct wire_input *in,
                                      Redistinto__V1__PipelineOperationKind kind)
{
    switch ((int)kind) {
    case REDISTINTO__V1__PIPELINE_OPERATION_KIND__PIPELINE_OPERATION_KIND_SET:
        return MODEL_CALL_SET;
    case REDISTINTO__V1__PIPELINE_OPERATION_KIND__PIPELINE_OPERATION_KIND_STORE:
        return MODEL_CALL_STORE;
    case REDISTINTO__V1__PIPELINE_OPERATION_KIND__PIPELINE_OPERATION_KIND_PUT:
        return MODEL_CALL_PUT;
    case REDISTINTO__V1__PIPELINE_OPERATION_KIND__PIPELINE_OPERATION_KIND_READ:
        return MODEL_CALL_READ;
    case REDISTINTO__V1__PIPELINE_OPERATION_KIND__PIPELINE_OPERATION_KIND_DELETE:
        return MODEL_CALL_DELETE;
    }
    wire_input_fail(in, MODEL_REASON_INVALID_FIELD, "kind", "is %d, valid are 1 to 5", (int)kind);
    return MODEL_N_CALL_KINDS;
}

static void take_operation(struct wire_input *in, const Redistinto__V1__PipelineOperation *message,
                           bool has_client, struct model_pipeline_operation *operation)
{
    operation->kind = take_kind(in, message->kind);
    wire_take_key(in, "key", &message->key, &operation->key);
    wire_take_value(in, "value", &message->value, &operation->value);
    operation->epoch = message->epoch;
    operation->seq = message->seq;
    operation->first_epoch = message->first_epoch;
    operation->lock_token = message->lock_token;
    operation->has_last_set = wire_take_version(message->last_set, &operation->last_set);
    operation->has_if_version = wire_take_version(message->if_version, &operation->if_version);
    operation->consistency = MODEL_READ_LINEARIZABLE;
    if (operation->kind == MODEL_CALL_READ)
        operation->consistency = wire_take_consistency(in, message->consistency);
    if (message->seq != 0 && !has_client)
        wire_input_fail(in, MODEL_REASON_INVALID_FIELD, "seq",
                        "is set, and the batch has no client_id");
    operation->refused = NULL;
}

/* NULL when the arena is full. */
static const struct model_error *refusal(struct rt_arena *arena, const struct rt_error *err)
{
    struct model_error *error = rt_arena_alloc(arena, sizeof(*error));

    if (!error)
        return NULL;
    *error = (struct model_error){
        .reason = model_reason_parse(rt_bytes_of_string(err->reason)),
        .applied = MODEL_APPLIED_NO,
    };
    (void)snprintf(error->message, sizeof(error->message), "%.*s", MODEL_ERROR_MESSAGE_MAX,
                   err->message);
    return error;
}

static void take_operations(struct wire_input *in,
                            const Redistinto__V1__InstanceServicePipelineRequest *message,
                            struct model_pipeline_request *pipeline)
{
    bool has_client = message->client_id.len > 0;
    struct rt_error problem = RT_ERROR_INIT;
    struct wire_input one = {.arena = in->arena, .err = &problem, .list = "operations"};

    pipeline->operations =
        wire_list_begin(in, "operations", message->n_operations, MODEL_PIPELINE_OPERATIONS_MAX,
                        sizeof(*pipeline->operations));
    wire_list_end(in);
    pipeline->n_operations = pipeline->operations ? message->n_operations : 0;
    for (one.index = 0; one.index < pipeline->n_operations; one.index++) {
        struct model_pipeline_operation *operation = &pipeline->operations[one.index];

        one.code = RT_OK;
        take_operation(&one, message->operations[one.index], has_client, operation);
        if (one.code == RT_OK)
            continue;
        operation->refused = refusal(in->arena, &problem);
        if (!operation->refused)
            wire_input_fail(in, MODEL_REASON_LIMIT_REACHED, "operations",
                            "has no room in the call's memory");
    }
}

static void take_request(struct wire_input *in, const void *pointer, struct model_request *request)
{
    const Redistinto__V1__InstanceServicePipelineRequest *message = pointer;
    struct model_pipeline_request *pipeline = &request->pipeline;

    pipeline->incarnation = message->incarnation;
    pipeline->term = message->term;
    pipeline->done_below = message->done_below;
    wire_take_id(in, "cluster_id", &message->cluster_id, WIRE_OPTIONAL, &pipeline->cluster_id);
    wire_take_name(in, "owner", message->owner, WIRE_REQUIRED, pipeline->owner);
    wire_take_id(in, "client_id", &message->client_id, WIRE_OPTIONAL, &pipeline->client);
    if (message->n_operations > MODEL_PIPELINE_OPERATIONS_MAX)
        wire_input_fail(in, MODEL_REASON_LIMIT_REACHED, "operations",
                        "has %zu items, valid are 0 to %d", message->n_operations,
                        MODEL_PIPELINE_OPERATIONS_MAX);
    take_operations(in, message, pipeline);
}

/* ---- responses ---- */

static bool put_result(Redistinto__V1__PipelineResult *message,
                       const struct model_pipeline_result *result,
                       const struct model_responder *responder, struct rt_arena *arena)
{
    const struct model_data_response *data = &result->data;

    if (result->code != RT_OK) {
        if (result->error)
            message->error = wire_put_error(result->code, result->error, responder, arena);
        return message->error != NULL;
    }
    message->epoch = data->version.epoch;
    message->incarnation = data->version.incarnation;
    message->seq = data->version.seq;
    if (data->has_value) {
        message->optional_value_case = REDISTINTO__V1__PIPELINE_RESULT__OPTIONAL_VALUE_VALUE;
        message->value = wire_put_bytes(data->value);
    }
    message->stored = data->stored;
    message->sets_lost = data->sets_lost;
    message->replayed = data->replayed;
    message->stale = data->stale;
    return wire_put_evicted(arena, data, &message->n_evicted, &message->evicted);
}

static bool fill_response(const struct model_response *response, struct rt_arena *arena,
                          void *pointer)
{
    const struct model_pipeline_response *pipeline = &response->pipeline;
    Redistinto__V1__InstanceServicePipelineResponse *message = pointer;
    Redistinto__V1__PipelineResults *results =
        wire_message_new(&redistinto__v1__pipeline_results__descriptor, arena);

    if (!results)
        return false;
    message->result = results;
    results->entries_free = pipeline->entries_free;
    if (pipeline->n_results == 0)
        return true;
    results->results =
        wire_put_list(arena, &redistinto__v1__pipeline_result__descriptor, pipeline->n_results);
    if (!results->results)
        return false;
    results->n_results = pipeline->n_results;
    for (size_t i = 0; i < pipeline->n_results; i++)
        if (!put_result(results->results[i], &pipeline->results[i], &response->responder, arena))
            return false;
    return true;
}

static void take_error(struct wire_input *in, const Redistinto__V1__Error *message,
                       struct model_pipeline_result *result)
{
    struct model_error *error = rt_arena_alloc(in->arena, sizeof(*error));
    struct model_responder responder = {0};

    if (!error) {
        wire_input_fail(in, MODEL_REASON_LIMIT_REACHED, "error",
                        "has no room in the call's memory");
        return;
    }
    result->code = wire_take_error(message, error, &responder);
    result->error = error;
}

static void take_result(struct wire_input *in, const Redistinto__V1__PipelineResult *message,
                        struct model_pipeline_result *result)
{
    struct model_data_response *data = &result->data;

    if (message->error) {
        take_error(in, message->error, result);
        return;
    }
    data->version = (struct model_version){message->epoch, message->incarnation, message->seq};
    data->stored = message->stored;
    data->sets_lost = message->sets_lost;
    data->replayed = message->replayed;
    data->stale = message->stale;
    wire_take_evicted(in, message->n_evicted, message->evicted, data);
    if (message->optional_value_case == REDISTINTO__V1__PIPELINE_RESULT__OPTIONAL_VALUE_VALUE) {
        data->has_value = true;
        wire_take_value(in, "value", &message->value, &data->value);
    }
}

static void take_response(struct wire_input *in, const void *pointer,
                          struct model_response *response)
{
    const Redistinto__V1__PipelineResults *message =
        ((const Redistinto__V1__InstanceServicePipelineResponse *)pointer)->result;
    struct model_pipeline_response *pipeline = &response->pipeline;

    pipeline->entries_free = message->entries_free;
    pipeline->results = wire_list_begin(in, "results", message->n_results,
                                        MODEL_PIPELINE_OPERATIONS_MAX, sizeof(*pipeline->results));
    pipeline->n_results = pipeline->results ? message->n_results : 0;
    for (in->index = 0; in->index < pipeline->n_results; in->index++)
        take_result(in, message->results[in->index], &pipeline->results[in->index]);
    wire_list_end(in);
}

const struct wire_codec wire_pipeline_codec = {fill_request, take_request, fill_response,
                                               take_response};
