/*
 * Runs the user's code for a server call.
 *
 * Invariant: one thread at a time delivers the events of a call (is_dispatching), without the
 * call's lock, in the order of the bits in enum rpc_call_event; whoever raises one while another
 * thread delivers leaves it to that thread. OVER is the last one that is raised.
 */
#include <grpc/byte_buffer.h>
#include <grpc/slice.h>
#include <stdio.h>

#include "runtime/rpc/codec.h"
#include "runtime/rpc/server_internal.h"

/* ---- which event is next; call lock held ---- */

static bool wants_cancel(const struct rpc_call *call)
{
    return call->on_cancel && atomic_load(&call->is_cancelled) && !call->has_user_end;
}

static unsigned next_event(struct rpc_call *call)
{
    unsigned stale = 0;
    unsigned event;

    if (call->phase != RPC_CALL_OPEN)
        stale |= RPC_EVENT_MESSAGE | RPC_EVENT_HALF_CLOSE | RPC_EVENT_WRITABLE;
    if (!wants_cancel(call))
        stale |= RPC_EVENT_CANCEL;
    call->events &= ~stale;
    event = call->events & -call->events;
    call->events &= ~event;
    return event;
}

static void note_over(struct rpc_call *call)
{
    if (call->phase != RPC_CALL_ENDED || !call->is_closed || call->busy != 0)
        return;
    call->phase = RPC_CALL_OVER;
    call->events |= RPC_EVENT_OVER;
}

/* ---- deliveries; call lock not held ---- */

static void end_with(struct rpc_call *call, const struct rt_error *err)
{
    rpc_call_lock(call);
    rpc_call_end_locked(call, err->code, err->reason, err->message);
    rpc_call_start_send(call);
    rpc_call_unlock(call);
}

static enum rt_code decode(const struct rpc_call *call, struct rt_arena *arena,
                           ProtobufCMessage **ret_message, struct rt_error *err)
{
    const struct rpc_server_method *method = call->method;
    uint32_t limit = method->table.max_message_bytes;

    if (limit != 0 && call->inbox && grpc_byte_buffer_length(call->inbox) > limit)
        return rt_fail(err, RT_RESOURCE_EXHAUSTED, "message is over %u bytes", limit);
    return rpc_decode(call->inbox, method->descriptor->input, arena, ret_message, err);
}

/* NULL: the call was ended for it. */
static ProtobufCMessage *decode_inbox(struct rpc_call *call, struct rt_arena *arena)
{
    struct rt_error err = RT_ERROR_INIT;
    ProtobufCMessage *message = NULL;
    enum rt_code code = decode(call, arena, &message, &err);

    if (call->inbox)
        grpc_byte_buffer_destroy(RT_TAKE(call->inbox));
    if (code != RT_OK)
        end_with(call, &err);
    return message;
}

/* A call that outlives its handler: learn when the client goes, and when time is up. */
static void settle(struct rpc_call *call)
{
    struct rpc_server *server = call->server;

    rpc_call_lock(call);
    if (call->phase == RPC_CALL_OPEN) {
        rpc_call_start_close(call);
        if (call->has_default_deadline) {
            rpc_server_lock(server);
            rt_list_push_back(&server->expiring, &call->link);
            rpc_server_unlock(server);
            rpc_wakeup_at(&server->wakeup, call->deadline_us);
        }
    }
    rpc_call_unlock(call);
}

static void deliver_unary(struct rpc_call *call, bool is_open)
{
    ProtobufCMessage *request = is_open ? decode_inbox(call, &call->arena) : NULL;

    if (request)
        call->method->table.on_call(call, request, call->method->ctx);
    (void)rpc_call_unref(call);
    settle(call);
}

static void deliver_stream_open(struct rpc_call *call)
{
    const struct rpc_method *table = &call->method->table;
    ProtobufCMessage *request = NULL;

    if (table->kind == RPC_SERVER_STREAM) {
        request = decode_inbox(call, &call->arena);
        if (!request)
            return;
    }
    call->is_opened = true;
    if (table->stream->on_open)
        table->stream->on_open(call, request, call->method->ctx);
    rpc_call_lock(call);
    rpc_call_start_headers(call);
    rpc_call_unlock(call);
}

static void deliver_open(struct rpc_call *call)
{
    bool is_open;

    rpc_call_lock(call);
    is_open = call->phase == RPC_CALL_OPEN;
    rpc_call_unlock(call);
    if (!rpc_call_is_stream(call))
        deliver_unary(call, is_open);
    else if (is_open)
        deliver_stream_open(call);
}

static void deliver_message(struct rpc_call *call)
{
    const struct rpc_stream_handlers *stream = call->method->table.stream;
    ProtobufCMessage *message;

    rt_arena_rewind(&call->message_arena);
    message = decode_inbox(call, &call->message_arena);
    if (message && stream->on_message)
        stream->on_message(call, message, call->method->ctx);
}

static void report_failure(struct rpc_call *call, enum rt_code code, const char *reason)
{
    const struct rpc_server_options *options = &call->server->options;
    struct rpc_failure failure = {
        .method = call->method->path,
        .peer = call->peer ? call->peer : "unknown",
        .code = code,
        .reason = reason,
        .duration_us = rpc_clock_now_us() - call->started_us,
    };
    struct rt_bytes path = rpc_bytes_of_slice(&call->details.method);
    char unknown[RPC_PATH_SHOWN_MAX + 1];

    if (!call->method->registered) {
        (void)snprintf(unknown, sizeof(unknown), "%.*s", (int)path.size, (const char *)path.data);
        failure.method = unknown;
    }
    options->on_failed(&failure, options->on_failed_ctx);
}

/* What belongs to core goes now, whoever still holds the call. */
static void release_core(struct rpc_call *call)
{
    grpc_call *core = RT_TAKE(call->core);

    call->metadata.count = 0;
    if (call->code != RT_OK && call->server->options.on_failed && !call->peer)
        call->peer = grpc_call_get_peer(core);
    if (call->inbox)
        grpc_byte_buffer_destroy(RT_TAKE(call->inbox));
    rpc_outbox_clear(&call->outbox);
    for (; call->n_trailers > 0; call->n_trailers--) {
        grpc_slice_unref(call->trailers[call->n_trailers - 1].key);
        grpc_slice_unref(call->trailers[call->n_trailers - 1].value);
    }
    grpc_slice_unref(call->text);
    call->text = grpc_empty_slice();
    grpc_call_unref(core);
}

static void deliver_over(struct rpc_call *call)
{
    enum rt_code code;
    const char *reason;

    if (call->is_opened)
        call->method->table.stream->on_done(call, call->method->ctx);
    rpc_call_lock(call);
    release_core(call);
    code = call->code;
    reason = call->reason;
    rpc_call_unlock(call);
    if (code != RT_OK && call->server->options.on_failed)
        report_failure(call, code, reason);
    if (!call->method->registered) {
        grpc_call_details_destroy(&call->details);
        grpc_call_details_init(&call->details);
    }
    rpc_server_forget(call->server, call);
}

static void deliver(struct rpc_call *call, enum rpc_call_event event)
{
    const struct rpc_stream_handlers *stream = call->method->table.stream;

    switch (event) {
    case RPC_EVENT_OPEN:
        deliver_open(call);
        break;
    case RPC_EVENT_MESSAGE:
        deliver_message(call);
        break;
    case RPC_EVENT_HALF_CLOSE:
        if (stream->on_half_close)
            stream->on_half_close(call, call->method->ctx);
        break;
    case RPC_EVENT_WRITABLE:
        if (stream->on_writable)
            stream->on_writable(call, call->method->ctx);
        break;
    case RPC_EVENT_CANCEL:
        rpc_call_deliver_cancel(call);
        break;
    case RPC_EVENT_OVER:
        deliver_over(call);
        break;
    }
}

void rpc_call_deliver_all_and_unlock(struct rpc_call *call)
{
    bool is_over = false;
    unsigned event;

    call->is_dispatching = true;
    for (note_over(call); (event = next_event(call)) != 0; note_over(call)) {
        rpc_call_unlock(call);
        deliver(call, event);
        is_over |= event == RPC_EVENT_OVER;
        rpc_call_lock(call);
    }
    call->is_dispatching = false;
    rpc_call_unlock(call);

    if (!is_over)
        return;
    if (rpc_call_is_stream(call))
        (void)rpc_call_unref(call);
    rpc_call_release(call);
}

void rpc_call_raise_and_unlock(struct rpc_call *call, unsigned event)
{
    call->events |= event;
    if (call->is_dispatching)
        rpc_call_unlock(call);
    else
        rpc_call_deliver_all_and_unlock(call);
}
