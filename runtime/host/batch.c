/*
 * Batches: see batch.h. Invariants: an operation that the core answers inside its submission uses
 * the same memory as the one before it; every other one is in its batch's `open` list until it is
 * answered. The core's lock guards batches and streams; encoding and sending happen without it, by
 * one thread a stream (is_sending). Queue and loop thread.
 */
#include "runtime/host/batch.h"

#include "runtime/base/alloc.h"
#include "runtime/model/limits.h"
#include "runtime/wire/request.h"
#include "runtime/wire/response.h"

enum {
    /* Idle operations that keep their memory. */
    KEPT_MAX = 1024,
    /* Of a batch: its operations decoded, its results, a failure for each, and the values. */
    ARENA_MAX = 8 * 1024 * 1024,
};

/* The user area of a stream. */
struct batch_stream {
    struct host_stream stream;
    struct host *host;
    struct rt_list ready_link; /* in a list of streams to go on with */
    struct rt_list batches;    /* batch.link: under way, oldest first */
    size_t n_batches;
    size_t n_bytes; /* of these batches */
    bool is_ready;  /* in such a list, which holds a reference */
    bool is_reading;
    bool is_sending;
    bool is_blocked;  /* the client does not read its answers */
    bool is_writable; /* there is room again, before the refusal was noted */
    bool is_half_closed;
    bool is_over;
};

struct batch {
    struct rt_list link;
    struct batch_stream *stream; /* referenced */
    struct wire_exchange exchange;
    struct rt_arena message; /* owned: of the request, when operations of it are inside the core */
    struct rt_arena arena;   /* owned: the rest */
    struct rt_list open;     /* operation.link */
    size_t n_open;           /* one more while operations are being submitted */
    size_t n_bytes;          /* of its operations and their results, with keys and values */
    size_t n_value_bytes;    /* values read */
    bool has_responder;
    ProtobufCMessage *answer; /* in the arena; NULL until it is encoded */
    struct model_request request;
    struct model_response response;
};

struct operation {
    struct host_inbound inbound;
    struct rt_list link; /* batch.open, or host.idle_operations */
    struct batch *batch;
    struct model_pipeline_result *result;
};

/* ---- operations; under the core's lock ---- */

static void note_answer(struct host_inbound *inbound);

/* NULL past the limit. */
static struct operation *take_operation(struct host *host)
{
    struct rt_list *node = rt_list_pop_front(&host->idle_operations);
    struct operation *operation;

    if (node) {
        host->n_idle_operations--;
        return RT_LIST_ENTRY(node, struct operation, link);
    }
    if (host->n_operations >= HOST_BATCH_OPERATIONS_MAX)
        return NULL;
    operation = rt_alloc(sizeof(*operation));
    if (!operation)
        return NULL;
    model_call_init(&operation->inbound.call, MODEL_CALL_SET);
    operation->inbound.call.response.responder = (struct model_responder){0};
    rt_list_init(&operation->inbound.host_link);
    rt_list_init(&operation->link);
    operation->inbound.note = note_answer;
    operation->inbound.answer = NULL;
    host->n_operations++;
    return operation;
}

static void free_operation(struct host *host, struct operation *operation)
{
    host->n_operations--;
    model_call_deinit(&operation->inbound.call);
    (void)rt_free(operation);
}

/* The one that was used last is used next: it is in the processor's cache. */
static void give_back(struct host *host, struct operation *operation)
{
    rt_list_remove(&operation->link);
    if (host->n_idle_operations >= KEPT_MAX) {
        free_operation(host, operation);
        return;
    }
    rt_arena_rewind(&operation->inbound.call.arena);
    rt_list_push_front(&host->idle_operations, &operation->link);
    host->n_idle_operations++;
}

static void fill_call(struct model_call *call, const struct model_pipeline_request *shared,
                      const struct model_pipeline_operation *from, uint64_t deadline_us)
{
    struct model_data_request *data = &call->request.data;
    struct model_header *header = &data->header;

    call->deadline_us = deadline_us;
    call->cancelled = false;
    call->request.kind = from->kind;
    header->cluster_id = shared->cluster_id;
    header->key = from->key;
    header->epoch = from->epoch;
    memcpy(header->owner, shared->owner, sizeof(header->owner));
    header->incarnation = shared->incarnation;
    header->request_id.client = shared->client;
    header->request_id.seq = from->seq;
    header->done_below = shared->done_below;
    header->first_epoch = from->first_epoch;
    header->lock_token = from->lock_token;
    header->term = shared->term;
    data->value = from->value;
    data->has_last_set = from->has_last_set;
    data->last_set = from->last_set;
    data->has_if_version = from->has_if_version;
    data->if_version = from->if_version;
    data->consistency = from->consistency;
}

/* ---- results; under the core's lock ---- */

static void charge(struct batch *batch, size_t n_bytes)
{
    batch->n_bytes += n_bytes;
    batch->stream->n_bytes += n_bytes;
}

static void set_failure(struct batch *batch, struct model_pipeline_result *result,
                        const struct model_response *response)
{
    struct model_error *error = rt_arena_alloc(&batch->arena, sizeof(*error));

    result->code = response->code;
    result->error = error;
    if (!error)
        return;
    *error = response->error;
    if (!rt_arena_copy(&batch->arena, response->error.key, &error->key))
        error->key = (struct rt_bytes){0};
    charge(batch, sizeof(*error) + error->key.size);
}

static void refuse(struct batch *batch, struct model_pipeline_result *result, const char *text)
{
    struct model_response response;

    model_response_fail(&response, MODEL_REASON_LIMIT_REACHED, "%s", text);
    set_failure(batch, result, &response);
}

static void set_read(struct batch *batch, struct model_pipeline_result *result,
                     const struct model_data_response *data)
{
    struct rt_bytes copy;

    if (data->value.size > MODEL_PIPELINE_VALUES_MAX - batch->n_value_bytes) {
        refuse(batch, result, "the values read by this batch are more than a response may hold");
        return;
    }
    if (!rt_arena_copy(&batch->arena, data->value, &copy)) {
        refuse(batch, result, "no memory for a copy of the value");
        return;
    }
    result->data = *data;
    result->data.value = copy;
    batch->n_value_bytes += copy.size;
    charge(batch, copy.size);
}

/* Keys for which there is no room are left out: their owner tells whoever asks for them. */
static void copy_evicted(struct batch *batch, struct model_data_response *data)
{
    const struct rt_bytes *evicted = data->evicted;
    size_t n = data->n_evicted;
    size_t room = MODEL_PIPELINE_VALUES_MAX - batch->n_value_bytes;

    data->n_evicted = 0;
    if (n == 0)
        return;
    data->evicted = rt_arena_alloc(&batch->arena, n * sizeof(*evicted));
    while (data->evicted && data->n_evicted < n) {
        struct rt_bytes key = evicted[data->n_evicted];

        if (key.size > room || !rt_arena_copy(&batch->arena, key, &data->evicted[data->n_evicted]))
            break;
        data->n_evicted++;
        room -= key.size;
        batch->n_value_bytes += key.size;
        charge(batch, key.size);
    }
}

static void set_result(struct batch *batch, struct model_pipeline_result *result,
                       const struct model_call *call)
{
    const struct model_response *response = &call->response;

    if (!batch->has_responder)
        batch->response.responder = response->responder;
    batch->has_responder = true;
    result->code = response->code;
    result->error = NULL;
    if (response->code != RT_OK) {
        set_failure(batch, result, response);
        return;
    }
    batch->response.pipeline.entries_free = response->data.entries_free;
    if (call->request.kind == MODEL_CALL_READ && response->data.has_value) {
        set_read(batch, result, &response->data);
        return;
    }
    result->data = response->data;
    result->data.has_value = false;
    copy_evicted(batch, &result->data);
}

static void mark_ready(struct batch_stream *stream)
{
    if (stream->is_ready)
        return;
    stream->is_ready = true;
    (void)rpc_call_ref(stream->stream.rpc);
    rt_list_push_back(&stream->host->ready, &stream->ready_link);
}

static void close_one(struct batch *batch)
{
    if (--batch->n_open > 0)
        return;
    if (!batch->has_responder)
        host_responder(batch->stream->host, &batch->response.responder);
    mark_ready(batch->stream);
}

static void note_answer(struct host_inbound *inbound)
{
    struct operation *operation = RT_CONTAINER_OF(inbound, struct operation, inbound);
    struct batch *batch = operation->batch;

    set_result(batch, operation->result, &inbound->call);
    give_back(batch->stream->host, operation);
    close_one(batch);
}

/* ---- submitting; under the core's lock ---- */

static bool take_reply(struct model_effects *effects, struct model_call *call)
{
    if (effects->replies.previous != &call->link)
        return false;
    rt_list_remove(&call->link);
    return true;
}

static void submit_one(struct batch *batch, struct model_effects *effects,
                       const struct model_pipeline_operation *from,
                       struct model_pipeline_result *result, uint64_t deadline_us)
{
    struct host *host = batch->stream->host;
    struct operation *operation = from->refused ? NULL : take_operation(host);

    if (from->refused) {
        result->code = model_reason_code(from->refused->reason);
        result->error = from->refused;
        return;
    }
    if (!operation) {
        refuse(batch, result, "too many operations of batches are under way");
        return;
    }
    operation->batch = batch;
    operation->result = result;
    batch->n_open++;
    fill_call(&operation->inbound.call, &batch->request.pipeline, from, deadline_us);
    host->options.ops->submit(host->options.core, &operation->inbound.call);
    if (take_reply(effects, &operation->inbound.call)) {
        note_answer(&operation->inbound);
        return;
    }
    operation->inbound.is_in_core = true;
    rt_list_push_back(&host->inbound, &operation->inbound.host_link);
    rt_list_push_back(&batch->open, &operation->link);
}

/* Keys are scattered over memory: asked for one by one, each would be waited for. */
static void expect(const struct host *host, const struct model_pipeline_operation *operations,
                   size_t n)
{
    struct rt_bytes keys[HOST_EXPECT_MAX];
    size_t n_keys = n < HOST_EXPECT_MAX ? n : HOST_EXPECT_MAX;

    if (!host->options.ops->expect)
        return;
    for (size_t i = 0; i < n_keys; i++)
        keys[i] = operations[i].key;
    host->options.ops->expect(host->options.core, keys, n_keys);
}

static void submit_all(struct batch *batch)
{
    const struct model_pipeline_request *request = &batch->request.pipeline;
    struct host *host = batch->stream->host;
    struct model_effects *effects = host->options.ops->effects(host->options.core);
    uint64_t now_us = rt_env_now_us(rpc_runtime_env(host->options.runtime));
    uint64_t deadline_us = host_exchange_deadline_us(&batch->exchange, now_us);

    for (size_t i = 0; i < request->n_operations; i++) {
        if (i % HOST_EXPECT_MAX == 0)
            expect(host, &request->operations[i], request->n_operations - i);
        submit_one(batch, effects, &request->operations[i], &batch->response.pipeline.results[i],
                   deadline_us);
    }
}

/* ---- batches ---- */

/* What it takes whatever comes of it: small operations are larger in memory than on the wire. */
static size_t bytes_of(const struct model_pipeline_request *request)
{
    size_t n = request->n_operations *
               (sizeof(struct model_pipeline_operation) + sizeof(struct model_pipeline_result));

    for (size_t i = 0; i < request->n_operations; i++) {
        const struct model_pipeline_operation *operation = &request->operations[i];

        n += operation->key.size + operation->value.size;
        if (operation->refused)
            n += sizeof(*operation->refused);
    }
    return n;
}

/* Decodes it and makes room for its results; false when it is refused as a whole. */
static bool prepare(struct batch *batch, const ProtobufCMessage *message)
{
    struct model_pipeline_response *answer = &batch->response.pipeline;
    struct rt_error err = RT_ERROR_INIT;
    enum rt_code code = wire_request_decode(wire_method_of(MODEL_CALL_PIPELINE), message,
                                            &batch->arena, &batch->request, &err);
    size_t n = batch->request.pipeline.n_operations;

    if (code == RT_OK && n > 0) {
        answer->results = rt_arena_alloc(&batch->arena, n * sizeof(*answer->results));
        if (!answer->results)
            code = rt_fail_reason(&err, RT_RESOURCE_EXHAUSTED,
                                  model_reason_name(MODEL_REASON_LIMIT_REACHED),
                                  "no memory for %zu results", n);
    }
    if (code != RT_OK) {
        wire_response_refuse(&batch->response, &err);
        return false;
    }
    answer->n_results = n;
    batch->n_bytes = bytes_of(&batch->request.pipeline);
    return true;
}

static struct batch *batch_new(struct batch_stream *stream, const ProtobufCMessage *message)
{
    struct batch *batch = rt_xalloc(sizeof(*batch));

    batch->stream = stream;
    batch->exchange = wire_request_exchange(message);
    batch->arena.limit = ARENA_MAX;
    batch->n_open = 1;
    rt_list_init(&batch->link);
    rt_list_init(&batch->open);
    (void)rpc_call_ref(stream->stream.rpc);
    return batch;
}

static void batch_free(struct batch *batch)
{
    (void)rpc_call_unref(batch->stream->stream.rpc);
    rt_arena_reset(&batch->message);
    rt_arena_reset(&batch->arena);
    (void)rt_free(batch);
}

enum send_outcome {
    SEND_DONE,    /* sent, or there is nobody to send it to */
    SEND_BLOCKED, /* the client does not read */
};

static enum send_outcome send_answer(struct batch *batch)
{
    struct rpc_call *rpc = batch->stream->stream.rpc;
    struct rt_error err = RT_ERROR_INIT;

    if (!batch->answer) {
        if (wire_response_encode(MODEL_CALL_PIPELINE, &batch->response, &batch->arena,
                                 &batch->answer, &err) != RT_OK) {
            host_stream_finish(batch->stream->host, &batch->stream->stream, &err);
            return SEND_DONE;
        }
        wire_response_set_exchange_id(batch->answer, batch->exchange.id);
    }
    return rpc_call_send(rpc, batch->answer) == RT_RESOURCE_EXHAUSTED ? SEND_BLOCKED : SEND_DONE;
}

/* ---- streams ---- */

/* The core's lock held. */
static struct batch *take_answered(struct batch_stream *stream)
{
    struct batch *batch;

    if (stream->is_blocked || rt_list_is_empty(&stream->batches))
        return NULL;
    batch = RT_LIST_ENTRY(stream->batches.next, struct batch, link);
    if (batch->n_open > 0)
        return NULL;
    rt_list_remove(&batch->link);
    return batch;
}

/* The core's lock held; released while a batch is sent. */
static void send_answered(struct batch_stream *stream)
{
    struct batch *batch;

    if (stream->is_sending)
        return;
    stream->is_sending = true;
    while ((batch = take_answered(stream))) {
        enum send_outcome outcome;
        size_t n_bytes = batch->n_bytes;

        host_unlock(stream->host);
        outcome = send_answer(batch);
        if (outcome == SEND_DONE)
            batch_free(batch);
        host_lock(stream->host);
        if (outcome == SEND_BLOCKED) {
            rt_list_push_front(&stream->batches, &batch->link);
            stream->is_blocked = !stream->is_writable && !stream->is_over;
            stream->is_writable = false;
        } else {
            stream->n_batches--;
            stream->n_bytes -= n_bytes;
        }
    }
    stream->is_sending = false;
    stream->stream.is_busy = stream->n_batches > 0;
}

/* The core's lock held. */
static bool takes_read(struct batch_stream *stream)
{
    if (stream->is_reading || stream->is_half_closed || stream->is_over ||
        stream->stream.is_ended || stream->host->is_draining ||
        stream->n_batches >= MODEL_PIPELINE_BATCHES_MAX ||
        stream->n_bytes >= MODEL_PIPELINE_BYTES_MAX)
        return false;
    stream->is_reading = true;
    return true;
}

/* Sends what is answered, and then reads the next batch or ends the stream. */
static void go_on(struct batch_stream *stream)
{
    struct host *host = stream->host;
    struct rpc_call *rpc = stream->stream.rpc;
    bool is_draining;
    bool reads;
    bool ends;

    host_lock(host);
    send_answered(stream);
    is_draining = host->is_draining;
    ends = (is_draining || stream->is_half_closed) && stream->n_batches == 0 && !stream->is_over &&
           host_stream_claim_end(&stream->stream);
    reads = !ends && takes_read(stream);
    host_unlock(host);
    if (ends && is_draining)
        host_stream_finish_draining(host, rpc);
    else if (ends)
        rpc_call_finish(rpc, NULL);
    else if (reads)
        rpc_call_read_next(rpc);
}

void host_batch_go_on(struct rt_list *ready)
{
    struct rt_list *node;

    while ((node = rt_list_pop_front(ready))) {
        struct batch_stream *stream = RT_LIST_ENTRY(node, struct batch_stream, ready_link);

        host_lock(stream->host);
        stream->is_ready = false;
        host_unlock(stream->host);
        go_on(stream);
        (void)rpc_call_unref(stream->stream.rpc);
    }
}

static void on_open(struct rpc_call *rpc, const ProtobufCMessage *request, void *ctx)
{
    struct host *host = ctx;
    struct batch_stream *stream = rpc_call_user(rpc);

    (void)request;
    stream->host = host;
    stream->stream.rpc = rpc;
    rt_list_init(&stream->batches);
    rt_list_init(&stream->ready_link);
    host_lock(host);
    rt_list_push_back(&host->streams, &stream->stream.link);
    host_unlock(host);
    go_on(stream);
}

static void on_message(struct rpc_call *rpc, const ProtobufCMessage *message, void *ctx)
{
    struct host *host = ctx;
    struct batch_stream *stream = rpc_call_user(rpc);
    struct batch *batch = batch_new(stream, message);
    bool submits = prepare(batch, message);

    host_lock(host);
    stream->is_reading = false;
    if (host->is_draining || stream->is_over) {
        host_unlock(host);
        batch_free(batch);
        return;
    }
    rt_list_push_back(&stream->batches, &batch->link);
    stream->n_batches++;
    stream->n_bytes += batch->n_bytes;
    stream->stream.is_busy = true;
    if (submits)
        submit_all(batch);
    if (batch->n_open > 1)
        rpc_call_take_message(rpc, &batch->message);
    close_one(batch);
    /* Whatever became of the batch, the stream may have room for another. */
    mark_ready(stream);
    host_step_end(host);
}

static void on_half_close(struct rpc_call *rpc, void *ctx)
{
    struct host *host = ctx;
    struct batch_stream *stream = rpc_call_user(rpc);

    host_lock(host);
    stream->is_reading = false;
    stream->is_half_closed = true;
    host_unlock(host);
    go_on(stream);
}

static void on_writable(struct rpc_call *rpc, void *ctx)
{
    struct host *host = ctx;
    struct batch_stream *stream = rpc_call_user(rpc);

    host_lock(host);
    stream->is_writable = !stream->is_blocked;
    stream->is_blocked = false;
    host_unlock(host);
    go_on(stream);
}

/* The core's lock held. */
static void cancel_all(struct batch_stream *stream)
{
    const struct host *host = stream->host;

    rt_list_for_each (link, &stream->batches) {
        struct batch *batch = RT_LIST_ENTRY(link, struct batch, link);

        rt_list_for_each (node, &batch->open) {
            struct model_call *call = &RT_LIST_ENTRY(node, struct operation, link)->inbound.call;

            call->cancelled = true;
            host->options.ops->cancel(host->options.core, call);
        }
    }
}

static void on_done(struct rpc_call *rpc, void *ctx)
{
    struct host *host = ctx;
    struct batch_stream *stream = rpc_call_user(rpc);

    host_lock(host);
    rt_list_remove(&stream->stream.link);
    stream->is_over = true;
    stream->is_blocked = false;
    cancel_all(stream);
    mark_ready(stream);
    host_step_end(host);
}

const struct rpc_stream_handlers host_batch_handlers = {
    .on_open = on_open,
    .on_message = on_message,
    .on_half_close = on_half_close,
    .on_writable = on_writable,
    .on_done = on_done,
};

const uint32_t host_batch_user_size = sizeof(struct batch_stream);

void host_batch_free_all(struct host *host)
{
    struct rt_list *node;

    while ((node = rt_list_pop_front(&host->idle_operations)))
        free_operation(host, RT_LIST_ENTRY(node, struct operation, link));
    rt_assert(host->n_operations == 0);
}
