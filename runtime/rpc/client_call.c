/*
 * Unary client calls: one batch, one completion, one callback.
 *
 * Invariant: the runtime holds a reference until the callback returned; core's call may be
 * cancelled from any thread until then, under the call's lock.
 */
#include <grpc/byte_buffer.h>
#include <stdio.h>

#include "runtime/base/alloc.h"
#include "runtime/rpc/client_internal.h"
#include "runtime/rpc/codec.h"

struct rpc_client_call {
    struct rpc_op op;
    struct rpc_job refused_job;
    struct rpc_flight flight;
    _Atomic uint32_t refs;
    const ProtobufCMessageDescriptor *type;
    grpc_byte_buffer *request;  /* owned */
    grpc_byte_buffer *response; /* owned */
    struct rt_arena arena;
    rpc_client_cb cb;
    void *ctx;
    pthread_mutex_t lock; /* guards is_over */
    bool is_over;
};

void rpc_client_method_of(const ProtobufCServiceDescriptor *service, const char *name,
                          struct rpc_client_method *ret_method)
{
    const ProtobufCMethodDescriptor *method =
        protobuf_c_service_descriptor_get_method_by_name(service, name);
    int size;

    rt_assert(method);
    size = snprintf(ret_method->path, sizeof(ret_method->path), "/%s/%s", service->name, name);
    rt_assert(size > 0 && (size_t)size < sizeof(ret_method->path));
    ret_method->response = method->output;
}

struct rpc_client_call *rpc_client_call_unref(struct rpc_client_call *call)
{
    if (call && atomic_fetch_sub_explicit(&call->refs, 1, memory_order_acq_rel) == 1) {
        (void)pthread_mutex_destroy(&call->lock);
        (void)rt_free(call);
    }
    return NULL;
}

/* ---- completion ---- */

static const struct rt_error *decode_response(struct rpc_client_call *call,
                                              ProtobufCMessage **ret_response, struct rt_error *err)
{
    const struct rt_error *failure = rpc_flight_error(&call->flight, err);

    if (failure)
        return failure;
    call->arena.limit = call->flight.channel->options.max_arena_bytes;
    if (rpc_decode(call->response, call->type, &call->arena, ret_response, err) == RT_OK)
        return NULL;
    if (err->code == RT_INVALID_ARGUMENT)
        err->code = RT_INTERNAL;
    return err;
}

static void complete(struct rpc_client_call *call)
{
    struct rt_error err = RT_ERROR_INIT;
    ProtobufCMessage *response = NULL;
    const struct rt_error *failure = decode_response(call, &response, &err);

    grpc_byte_buffer_destroy(RT_TAKE(call->request));
    grpc_byte_buffer_destroy(RT_TAKE(call->response));
    call->cb(call, failure ? NULL : response, failure, call->ctx);

    (void)pthread_mutex_lock(&call->lock);
    call->is_over = true;
    (void)pthread_mutex_unlock(&call->lock);
    rt_arena_reset(&call->arena);
    rpc_flight_end(&call->flight);
    (void)rpc_client_call_unref(call);
}

static void on_complete(struct rpc_op *op, bool ok)
{
    (void)ok;
    complete(RT_CONTAINER_OF(op, struct rpc_client_call, op));
}

static void on_refused(struct rpc_job *job)
{
    complete(RT_CONTAINER_OF(job, struct rpc_client_call, refused_job));
}

/* ---- start ---- */

static void start(struct rpc_client_call *call)
{
    grpc_op parts[6] = {0};
    bool is_started;

    rpc_flight_add_headers(&call->flight, &parts[0]);
    parts[1].op = GRPC_OP_SEND_MESSAGE;
    parts[1].data.send_message.send_message = call->request;
    parts[2].op = GRPC_OP_SEND_CLOSE_FROM_CLIENT;
    parts[3].op = GRPC_OP_RECV_INITIAL_METADATA;
    parts[3].data.recv_initial_metadata.recv_initial_metadata = &call->flight.headers;
    parts[4].op = GRPC_OP_RECV_MESSAGE;
    parts[4].data.recv_message.recv_message = &call->response;
    rpc_flight_add_status(&call->flight, &parts[5]);
    is_started = rpc_op_start(&call->op, call->flight.core, parts, RT_ARRAY_SIZE(parts));
    rt_assert(is_started);
}

struct rpc_client_call *rpc_client_call_cancellable(struct rpc_channel *channel,
                                                    const struct rpc_client_method *method,
                                                    const ProtobufCMessage *request,
                                                    const struct rpc_client_options *options,
                                                    rpc_client_cb cb, void *ctx)
{
    struct rpc_client_call *call = rt_xalloc(sizeof(*call));

    rt_assert(options->timeout_ms != 0 && options->timeout_ms != RPC_NO_TIMEOUT);
    rpc_op_init(&call->op, on_complete);
    atomic_init(&call->refs, 2);
    (void)pthread_mutex_init(&call->lock, NULL);
    call->type = method->response;
    call->cb = cb;
    call->ctx = ctx;
    call->request = rpc_encode(request, NULL);
    rpc_flight_begin(&call->flight, channel, method, options);
    if (call->flight.core)
        start(call);
    else
        rpc_runtime_post(channel->runtime, &call->refused_job, on_refused);
    return call;
}

void rpc_client_call(struct rpc_channel *channel, const struct rpc_client_method *method,
                     const ProtobufCMessage *request, const struct rpc_client_options *options,
                     rpc_client_cb cb, void *ctx)
{
    (void)rpc_client_call_unref(
        rpc_client_call_cancellable(channel, method, request, options, cb, ctx));
}

void rpc_client_call_cancel(struct rpc_client_call *call)
{
    (void)pthread_mutex_lock(&call->lock);
    if (!call->is_over)
        rpc_flight_cancel(&call->flight);
    (void)pthread_mutex_unlock(&call->lock);
}

bool rpc_client_call_never_sent(struct rpc_client_call *call)
{
    return rpc_flight_never_sent(&call->flight);
}
