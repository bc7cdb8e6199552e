/*
 * RPCs into calls: see inbound.h. A call lives in the RPC's user area; the RPC is referenced from
 * submission to answer. The queue thread submits; the answer leaves on whichever thread steps the
 * core.
 */
#include "runtime/host/inbound.h"

#include "runtime/base/alloc.h"
#include "runtime/host/batch.h"
#include "runtime/host/watch.h"
#include "runtime/wire/response.h"
#include "runtime/wire/status.h"

/* The user area of unary calls and streams alike. */
struct served {
    struct host_inbound inbound;
    struct rpc_call *rpc;
    struct host_stream stream;
    struct host *host;    /* streams */
    uint64_t exchange_id; /* streams: of the message under way */
};

static struct served *served_of(struct host_inbound *inbound)
{
    return RT_CONTAINER_OF(inbound, struct served, inbound);
}

/* Prepares the call and decodes the request; on failure the response is filled. */
static bool begin(struct host *host, struct served *served, const ProtobufCMessage *request,
                  void (*answer)(struct host_inbound *inbound))
{
    const struct wire_method *method = wire_method_of_request(request->descriptor);
    struct model_call *call = &served->inbound.call;
    struct rt_error err = RT_ERROR_INIT;

    (void)rpc_call_ref(served->rpc);
    served->inbound.answer = answer;
    rt_list_init(&served->inbound.host_link);
    model_call_init(call, method->kind);
    call->response.responder = (struct model_responder){0};
    if (wire_request_decode(method, request, &call->arena, &call->request, &err) == RT_OK)
        return true;
    host_refuse(host, &call->response, &err);
    return false;
}

/* ---- unary ---- */

static void answer_unary(struct host_inbound *inbound)
{
    struct served *served = served_of(inbound);
    struct model_call *call = &inbound->call;
    struct rpc_call *rpc = served->rpc;
    struct rt_error err = RT_ERROR_INIT;
    ProtobufCMessage *message;

    if (wire_response_encode(call->request.kind, &call->response, &call->arena, &message, &err) ==
        RT_OK)
        rpc_call_reply(rpc, message);
    else
        rpc_call_fail(rpc, &err);
    model_call_deinit(call);
    (void)rpc_call_unref(rpc);
}

static void on_cancel(struct rpc_call *rpc, void *ctx)
{
    struct served *served = rpc_call_user(rpc);

    host_cancel(ctx, &served->inbound);
}

static void on_unary(struct rpc_call *rpc, const ProtobufCMessage *request, void *ctx)
{
    struct host *host = ctx;
    struct served *served = rpc_call_user(rpc);

    served->rpc = rpc;
    if (!begin(host, served, request, answer_unary)) {
        answer_unary(&served->inbound);
        return;
    }
    served->inbound.call.deadline_us = rpc_call_deadline_us(rpc);
    if (host_submit(host, &served->inbound))
        return;

    /* The answer may drop its reference meanwhile. */
    (void)rpc_call_ref(rpc);
    rpc_call_set_cancel(rpc, on_cancel, host);
    (void)rpc_call_unref(rpc);
}

/* ---- streams ---- */

/* False: the stream is at its end. */
static bool send_answer(struct served *served)
{
    struct model_call *call = &served->inbound.call;
    struct rt_error err = RT_ERROR_INIT;
    ProtobufCMessage *message;
    enum rt_code code;

    code = wire_response_encode(call->request.kind, &call->response, &call->arena, &message, &err);
    if (code != RT_OK) {
        rpc_call_finish(served->rpc, &err);
        return false;
    }
    wire_response_set_exchange_id(message, served->exchange_id);
    code = rpc_call_send(served->rpc, message);
    if (code == RT_RESOURCE_EXHAUSTED) {
        (void)rt_fail(&err, code, "the client does not read its answers");
        rpc_call_abort(served->rpc, &err);
    }
    return code == RT_OK;
}

void host_stream_finish(struct host *host, struct host_stream *stream, const struct rt_error *err)
{
    bool ends;

    host_lock(host);
    ends = host_stream_claim_end(stream);
    host_unlock(host);
    if (ends)
        rpc_call_finish(stream->rpc, err);
}

void host_stream_finish_draining(struct host *host, struct rpc_call *rpc)
{
    struct model_response response = {0};
    struct rt_error err = RT_ERROR_INIT;
    uint8_t detail[WIRE_STATUS_MAX];

    (void)rt_fail_reason(&err, model_reason_code(MODEL_REASON_DRAINING),
                         model_reason_name(MODEL_REASON_DRAINING), "%s",
                         model_reason_meaning(MODEL_REASON_DRAINING));
    host_refuse(host, &response, &err);
    err.detail = rt_bytes_of(detail, wire_status_build(&response, detail));
    rpc_call_finish(rpc, &err);
}

/* Between two messages: reads the next one, or ends the stream when all of them do. */
static void go_on(struct host *host, struct host_stream *stream)
{
    struct rpc_call *rpc = stream->rpc;
    bool is_draining;
    bool ends;

    host_lock(host);
    stream->is_busy = false;
    is_draining = host->is_draining;
    ends = is_draining && host_stream_claim_end(stream);
    host_unlock(host);
    /* From here on the next message may be under way in the same memory. */
    if (ends)
        host_stream_finish_draining(host, rpc);
    else if (!is_draining)
        rpc_call_read_next(rpc);
}

static void answer_message(struct host_inbound *inbound)
{
    struct served *served = served_of(inbound);
    struct rpc_call *rpc = served->rpc;
    bool goes_on = send_answer(served);

    model_call_deinit(&inbound->call);
    if (goes_on)
        go_on(served->host, &served->stream);
    (void)rpc_call_unref(rpc);
}

static void on_open(struct rpc_call *rpc, const ProtobufCMessage *request, void *ctx)
{
    struct host *host = ctx;
    struct served *served = rpc_call_user(rpc);

    (void)request;
    served->host = host;
    served->stream.rpc = rpc;
    host_lock(host);
    rt_list_push_back(&host->streams, &served->stream.link);
    host_unlock(host);
    go_on(host, &served->stream);
}

/* False: the stream was ended before the message came. */
static bool take_message(struct host *host, struct host_stream *stream)
{
    bool takes;

    host_lock(host);
    takes = !host->is_draining;
    stream->is_busy = takes;
    host_unlock(host);
    return takes;
}

static void on_message(struct rpc_call *rpc, const ProtobufCMessage *message, void *ctx)
{
    struct host *host = ctx;
    struct served *served = rpc_call_user(rpc);
    struct wire_exchange exchange = wire_request_exchange(message);

    if (!take_message(host, &served->stream))
        return;
    served->rpc = rpc;
    served->exchange_id = exchange.id;
    if (!begin(host, served, message, answer_message)) {
        answer_message(&served->inbound);
        return;
    }
    served->inbound.call.deadline_us =
        host_exchange_deadline_us(&exchange, rt_env_now_us(rpc_runtime_env(host->options.runtime)));
    (void)host_submit(host, &served->inbound);
}

static void on_half_close(struct rpc_call *rpc, void *ctx)
{
    struct host *host = ctx;
    struct served *served = rpc_call_user(rpc);
    bool ends;

    host_lock(host);
    ends = host_stream_claim_end(&served->stream);
    host_unlock(host);
    if (ends)
        rpc_call_finish(rpc, NULL);
}

static void on_done(struct rpc_call *rpc, void *ctx)
{
    struct host *host = ctx;
    struct served *served = rpc_call_user(rpc);

    host_lock(host);
    rt_list_remove(&served->stream.link);
    host_unlock(host);
    host_cancel(host, &served->inbound);
}

void host_end_streams(struct host *host)
{
    struct rpc_call **idle;
    size_t n_idle = 0;
    size_t n_streams = 0;

    host_lock(host);
    host->is_draining = true;
    rt_list_for_each (node, &host->streams)
        n_streams++;
    idle = rt_xalloc((n_streams + 1) * sizeof(struct rpc_call *));
    rt_list_for_each (node, &host->streams) {
        struct host_stream *stream = RT_LIST_ENTRY(node, struct host_stream, link);

        if (!stream->is_busy && host_stream_claim_end(stream))
            idle[n_idle++] = rpc_call_ref(stream->rpc);
    }
    host_unlock(host);

    for (size_t i = 0; i < n_idle; i++) {
        host_stream_finish_draining(host, idle[i]);
        (void)rpc_call_unref(idle[i]);
    }
    (void)rt_free(idle);
}

static const struct rpc_stream_handlers stream_handlers = {
    .on_open = on_open,
    .on_message = on_message,
    .on_half_close = on_half_close,
    .on_done = on_done,
};

static struct rpc_method method_of(const struct wire_method *method)
{
    struct rpc_method row = {.name = method->name, .user_size = sizeof(struct served)};

    switch (method->shape) {
    case WIRE_UNARY:
        row.kind = RPC_UNARY;
        row.on_call = on_unary;
        break;
    case WIRE_EXCHANGE:
        row.kind = RPC_BIDI;
        row.stream = &stream_handlers;
        break;
    case WIRE_BATCH:
        row.kind = RPC_BIDI;
        row.stream = &host_batch_handlers;
        row.user_size = host_batch_user_size;
        break;
    case WIRE_WATCH:
        row.kind = RPC_SERVER_STREAM;
        row.stream = &host_watch_handlers;
        row.user_size = host_watch_user_size;
        row.queue_messages = HOST_WATCH_QUEUE_MESSAGES;
        break;
    }
    return row;
}

enum rt_code host_serve(struct host *host, struct rpc_server *server,
                        const ProtobufCServiceDescriptor *service, struct rt_error *err)
{
    const struct wire_method *methods[WIRE_SERVICE_METHODS_MAX];
    struct rpc_method table[WIRE_SERVICE_METHODS_MAX];
    size_t n_methods = wire_service_methods(service, methods);

    for (size_t i = 0; i < n_methods; i++)
        table[i] = method_of(methods[i]);
    return rpc_server_add_service(server, service, table, n_methods, host, err);
}
