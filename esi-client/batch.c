/*
 * Batches: see batch.h. Invariant: a batch's calls are in the order of its operations, and alive as
 * long as it is under way, since its request borrows from theirs. The core's lock.
 */
#include "esi-client/batch.h"

#include <stdio.h>

#include "runtime/base/alloc.h"

struct batch {
    struct rt_list link;
    struct rt_list members; /* model_call.link, in the order of the operations */
    size_t n_members;
    size_t n_bytes;
    /* Once it is sent; owned. */
    struct model_call *call;
    struct model_pipeline_operation *operations;
    char address[MODEL_ADDRESS_MAX + 1];
};

void esi_batches_init(struct esi_batches *batches)
{
    rt_list_init(&batches->under_way);
}

static void free_batch(struct batch *batch)
{
    rt_list_remove(&batch->link);
    (void)model_call_free(batch->call);
    (void)rt_free(batch->operations);
    (void)rt_free(batch);
}

void esi_batches_deinit(struct esi_batches *batches)
{
    rt_list_for_each_safe (node, &batches->under_way)
        free_batch(RT_LIST_ENTRY(node, struct batch, link));
}

static struct model_call *call_of(struct rt_list *node)
{
    return RT_LIST_ENTRY(node, struct model_call, link);
}

/* ---- gathering ------------------------------------------------------------------------------- */

static bool fits_a_batch(const struct model_call *call)
{
    enum model_call_kind kind = call->request.kind;

    return kind >= MODEL_CALL_SET && kind <= MODEL_CALL_DELETE;
}

static size_t size_of(const struct model_call *call)
{
    return call->request.data.header.key.size + call->request.data.value.size;
}

static bool is_for(const struct batch *batch, const struct model_call *call)
{
    const struct model_call *first = call_of(batch->members.next);
    const struct model_header *a = &first->request.data.header;
    const struct model_header *b = &call->request.data.header;

    return first->deadline_us == call->deadline_us && a->incarnation == b->incarnation &&
           a->term == b->term && strcmp(a->owner, b->owner) == 0 &&
           model_id_equal(&a->cluster_id, &b->cluster_id) &&
           strcmp(first->address, call->address) == 0;
}

static bool has_room(const struct batch *batch, const struct model_call *call)
{
    return batch->n_members < MODEL_PIPELINE_OPERATIONS_MAX &&
           batch->n_bytes + size_of(call) <= ESI_BATCH_BYTES_MAX;
}

/* Only the newest batch of an owner takes more: an older one is ahead of it. */
static struct batch *find(struct rt_list *open, const struct model_call *call)
{
    for (struct rt_list *node = open->previous; node != open; node = node->previous) {
        struct batch *batch = RT_LIST_ENTRY(node, struct batch, link);

        if (is_for(batch, call))
            return has_room(batch, call) ? batch : NULL;
    }
    return NULL;
}

static void join(struct rt_list *open, struct model_call *call)
{
    struct batch *batch = find(open, call);

    if (!batch) {
        batch = rt_xalloc(sizeof(*batch));
        rt_list_init(&batch->members);
        rt_list_push_back(open, &batch->link);
    }
    rt_list_push_back(&batch->members, &call->link);
    batch->n_members++;
    batch->n_bytes += size_of(call);
}

static void fill_operation(const struct model_call *call, struct model_pipeline_operation *ret)
{
    const struct model_data_request *data = &call->request.data;

    *ret = (struct model_pipeline_operation){
        .kind = call->request.kind,
        .key = data->header.key,
        .value = data->value,
        .epoch = data->header.epoch,
        .seq = data->header.request_id.seq,
        .first_epoch = data->header.first_epoch,
        .lock_token = data->header.lock_token,
        .has_last_set = data->has_last_set,
        .last_set = data->last_set,
        .has_if_version = data->has_if_version,
        .if_version = data->if_version,
        .consistency = data->consistency,
    };
}

/* The client is that of any operation with a request id; what it has finished is the lowest that
 * one of them says. */
static void share(const struct model_header *header, struct model_pipeline_request *pipeline)
{
    if (header->request_id.seq == 0)
        return;
    if (model_id_is_none(&pipeline->client) || header->done_below < pipeline->done_below)
        pipeline->done_below = header->done_below;
    pipeline->client = header->request_id.client;
}

static void fill(struct batch *batch, struct model_pipeline_request *pipeline)
{
    const struct model_header *header = &call_of(batch->members.next)->request.data.header;

    *pipeline = (struct model_pipeline_request){
        .cluster_id = header->cluster_id,
        .incarnation = header->incarnation,
        .term = header->term,
        .operations = rt_xalloc(batch->n_members * sizeof(*batch->operations)),
    };
    batch->operations = pipeline->operations;
    memcpy(pipeline->owner, header->owner, sizeof(pipeline->owner));
    rt_list_for_each (node, &batch->members) {
        share(&call_of(node)->request.data.header, pipeline);
        fill_operation(call_of(node), &pipeline->operations[pipeline->n_operations++]);
    }
}

static void make_call(struct batch *batch)
{
    const struct model_call *first = call_of(batch->members.next);

    batch->call = model_call_new(MODEL_CALL_PIPELINE);
    (void)snprintf(batch->address, sizeof(batch->address), "%s", first->address);
    batch->call->address = batch->address;
    batch->call->deadline_us = first->deadline_us;
    batch->call->state = batch;
    fill(batch, &batch->call->request.pipeline);
}

static void send(struct esi_batches *batches, struct batch *batch, struct rt_list *calls)
{
    if (batch->n_members == 1) {
        rt_list_splice_back(calls, &batch->members);
        (void)rt_free(batch);
        return;
    }
    make_call(batch);
    rt_list_push_back(&batches->under_way, &batch->link);
    rt_list_push_back(calls, &batch->call->link);
}

void esi_batches_gather(struct esi_batches *batches, struct rt_list *calls)
{
    struct rt_list open = RT_LIST_INIT(open);
    struct rt_list *node;

    rt_list_for_each_safe (taken, calls) {
        if (!fits_a_batch(call_of(taken)))
            continue;
        rt_list_remove(taken);
        join(&open, call_of(taken));
    }
    while ((node = rt_list_pop_front(&open)))
        send(batches, RT_LIST_ENTRY(node, struct batch, link), calls);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void fail_all(struct batch *batch, const struct model_response *failure,
                     struct rt_list *ret_done)
{
    rt_list_for_each (node, &batch->members) {
        struct model_response *response = &call_of(node)->response;

        response->code = failure->code;
        response->responder = failure->responder;
        response->error = failure->error;
        response->error.key = call_of(node)->request.data.header.key;
    }
    rt_list_splice_back(ret_done, &batch->members);
}

static void take_result(struct model_call *call, const struct model_response *answer,
                        const struct model_pipeline_result *result)
{
    struct model_response response;
    struct rt_error err;

    response.code = result->code;
    response.responder = answer->responder;
    if (result->code == RT_OK) {
        response.data = result->data;
        response.data.entries_free = answer->pipeline.entries_free;
    } else {
        response.error = *result->error;
        response.error.key = (struct rt_bytes){0};
    }
    if (model_response_copy(&call->response, &response, call->request.kind, &call->arena, &err) ==
        RT_OK)
        return;
    model_response_fail(&call->response, MODEL_REASON_NONE, "%s", err.message);
    call->response.code = err.code;
    call->response.responder = answer->responder;
}

static bool had_no_room(const struct model_call *call, const struct model_pipeline_result *result)
{
    return call->request.kind == MODEL_CALL_READ && result->code != RT_OK &&
           result->error->reason == MODEL_REASON_LIMIT_REACHED;
}

/* False: there was no room for anything. */
static bool take_results(struct batch *batch, const struct model_response *answer,
                         struct rt_list *ret_done, struct rt_list *ret_again)
{
    const struct model_pipeline_result *result = answer->pipeline.results;
    bool had_room = false;
    struct rt_list *node;

    for (; (node = rt_list_pop_front(&batch->members)); result++) {
        if (had_no_room(call_of(node), result)) {
            rt_list_push_back(ret_again, node);
            continue;
        }
        had_room = true;
        take_result(call_of(node), answer, result);
        rt_list_push_back(ret_done, node);
    }
    return had_room;
}

void esi_batches_scatter(struct model_call *call, struct rt_list *ret_done,
                         struct rt_list *ret_again, struct rt_list *ret_alone)
{
    struct batch *batch = call->state;
    struct model_response *answer = &call->response;
    struct rt_list again = RT_LIST_INIT(again);

    if (answer->code == RT_OK && answer->pipeline.n_results != batch->n_members)
        model_response_fail(answer, MODEL_REASON_NONE, "%zu results for %zu operations",
                            answer->pipeline.n_results, batch->n_members);
    if (answer->code != RT_OK)
        fail_all(batch, answer, ret_done);
    else if (take_results(batch, answer, ret_done, &again))
        rt_list_splice_back(ret_again, &again);
    else
        rt_list_splice_back(ret_alone, &again);
    free_batch(batch);
}
