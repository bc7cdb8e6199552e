/*
 * Batches of a server call: sending, reading, and noticing that the client is gone.
 *
 * Invariant: core allows one outstanding send and one outstanding read for a call, so the busy bits
 * say which are out; everything else waits in the outbox. Batches are started under the call's
 * lock. RECV_CLOSE is a batch of its own for calls that outlive their handler (inside the last
 * batch it would tell nothing meanwhile) and rides in the last batch for the others, which saves
 * the fast path an event.
 */
#include <grpc/byte_buffer.h>
#include <grpc/slice.h>

#include "runtime/rpc/codec.h"
#include "runtime/rpc/server_internal.h"

enum {
    MAX_PARTS = 4,
    DEADLINE_SLACK_US = 2000, /* core's timers have milliseconds */
};

void rpc_call_end_locked(struct rpc_call *call, enum rt_code code, const char *reason,
                         const char *text)
{
    if (call->phase != RPC_CALL_OPEN)
        return;
    call->phase = RPC_CALL_ENDING;
    call->code = code;
    call->reason = reason;
    call->text = text && *text ? grpc_slice_from_copied_string(text) : grpc_empty_slice();
}

/* ---- the client is gone ---- */

static void mark_cancelled(struct rpc_call *call)
{
    atomic_store(&call->is_cancelled, true);
    rpc_outbox_clear(&call->outbox);
    if (call->phase == RPC_CALL_OPEN)
        rpc_call_end_locked(call, RT_CANCELLED, NULL, NULL);
    if (call->phase == RPC_CALL_ENDING)
        call->phase = RPC_CALL_ENDED;
    if (call->is_sent_ok)
        return;
    call->code = rpc_clock_now_us() + DEADLINE_SLACK_US >= call->deadline_us ? RT_DEADLINE_EXCEEDED
                                                                             : RT_CANCELLED;
    call->reason = NULL;
}

/* Core has told whether the call ended by itself. */
static void take_close(struct rpc_call *call)
{
    call->busy &= ~(unsigned)RPC_BUSY_CLOSE;
    call->is_closed = true;
    if (call->close_cancelled && !call->is_aborted)
        mark_cancelled(call);
}

static void on_closed(struct rpc_op *op, bool ok)
{
    struct rpc_call *call = RT_CONTAINER_OF(op, struct rpc_call, close_op);

    (void)ok;
    rpc_call_lock(call);
    take_close(call);
    rpc_call_raise_and_unlock(call, call->close_cancelled ? RPC_EVENT_CANCEL : 0);
}

static void add_close_part(struct rpc_call *call, grpc_op *part)
{
    part->op = GRPC_OP_RECV_CLOSE_ON_SERVER;
    part->data.recv_close_on_server.cancelled = &call->close_cancelled;
    call->busy |= RPC_BUSY_CLOSE;
}

void rpc_call_start_close(struct rpc_call *call)
{
    grpc_op part = {0};
    bool is_started;

    add_close_part(call, &part);
    is_started = rpc_op_start(&call->close_op, call->core, &part, 1);
    rt_assert(is_started);
}

/* ---- sending ---- */

static void add_status_part(struct rpc_call *call, grpc_op *part)
{
    part->op = GRPC_OP_SEND_STATUS_FROM_SERVER;
    part->data.send_status_from_server.status = (grpc_status_code)call->code;
    part->data.send_status_from_server.status_details = &call->text;
    part->data.send_status_from_server.trailing_metadata = call->trailers;
    part->data.send_status_from_server.trailing_metadata_count = call->n_trailers;
    call->phase = RPC_CALL_ENDED;
    call->send_parts |= RPC_SEND_STATUS;
}

static void start_batch(struct rpc_call *call, grpc_byte_buffer *message, bool with_status)
{
    grpc_op parts[MAX_PARTS] = {0};
    size_t n_parts = 0;
    bool is_started;

    call->send_parts = 0;
    call->sending = message;
    call->sending_bytes = message ? grpc_byte_buffer_length(message) : 0;
    if (!call->has_headers) {
        parts[n_parts++].op = GRPC_OP_SEND_INITIAL_METADATA;
        call->has_headers = true;
    }
    if (message) {
        parts[n_parts].op = GRPC_OP_SEND_MESSAGE;
        parts[n_parts++].data.send_message.send_message = message;
    }
    if (with_status)
        add_status_part(call, &parts[n_parts++]);
    if (with_status && !call->is_closed && !(call->busy & RPC_BUSY_CLOSE)) {
        add_close_part(call, &parts[n_parts++]);
        call->send_parts |= RPC_SEND_CLOSE;
    }

    call->busy |= RPC_BUSY_SEND;
    is_started = rpc_op_start(&call->send_op, call->core, parts, n_parts);
    rt_assert(is_started);
}

void rpc_call_start_send(struct rpc_call *call)
{
    grpc_byte_buffer *message;
    bool with_status;

    if (!(call->busy & RPC_BUSY_SEND) &&
        (call->phase == RPC_CALL_OPEN || call->phase == RPC_CALL_ENDING)) {
        message = rpc_outbox_pop(&call->outbox);
        with_status = call->phase == RPC_CALL_ENDING && call->outbox.count == 0;
        if (message || with_status)
            start_batch(call, message, with_status);
    }
    rpc_backlog_update(call);
}

void rpc_call_start_headers(struct rpc_call *call)
{
    if (!call->has_headers && !(call->busy & RPC_BUSY_SEND) && call->phase == RPC_CALL_OPEN)
        start_batch(call, NULL, false);
}

static void on_sent(struct rpc_op *op, bool ok)
{
    struct rpc_call *call = RT_CONTAINER_OF(op, struct rpc_call, send_op);
    unsigned events = 0;

    rpc_call_lock(call);
    call->busy &= ~(unsigned)RPC_BUSY_SEND;
    grpc_byte_buffer_destroy(RT_TAKE(call->sending));
    call->sending_bytes = 0;
    if (call->send_parts & RPC_SEND_STATUS)
        call->is_sent_ok = ok;
    if (call->send_parts & RPC_SEND_CLOSE)
        take_close(call);
    if (!ok)
        rpc_outbox_clear(&call->outbox);
    else if (rpc_outbox_take_writable(&call->outbox))
        events |= RPC_EVENT_WRITABLE;
    rpc_call_start_send(call);
    rpc_call_raise_and_unlock(call, events);
}

enum rt_code rpc_call_send(struct rpc_call *call, const ProtobufCMessage *message)
{
    enum rt_code code = RT_OK;
    size_t size;
    grpc_byte_buffer *buffer = rpc_encode(message, &size);

    rt_assert(rpc_call_sends_many(call));
    rpc_call_lock(call);
    if (call->phase != RPC_CALL_OPEN)
        code = RT_CANCELLED;
    else if (!rpc_outbox_has_room(&call->outbox, size))
        code = RT_RESOURCE_EXHAUSTED;
    else
        rpc_outbox_push(&call->outbox, RT_TAKE(buffer), size);
    rpc_call_start_send(call);
    rpc_call_unlock(call);
    grpc_byte_buffer_destroy(buffer);
    return code;
}

/* ---- reading ---- */

/*
 * No message means that the client is done or gone; RECV_CLOSE may tell which only later. Core does
 * know: a stream that was cut "failed before" this read, one that was half-closed did not.
 */
static bool is_clean_end(const struct rpc_call *call, bool ok)
{
    return ok && !grpc_call_failed_before_recv_message(call->core);
}

static void on_read(struct rpc_op *op, bool ok)
{
    struct rpc_call *call = RT_CONTAINER_OF(op, struct rpc_call, read_op);

    rpc_call_lock(call);
    call->busy &= ~(unsigned)RPC_BUSY_READ;
    if (ok && call->inbox) {
        rpc_call_raise_and_unlock(call, RPC_EVENT_MESSAGE);
        return;
    }
    call->is_half_closed = true;
    rpc_call_raise_and_unlock(call, is_clean_end(call, ok) ? RPC_EVENT_HALF_CLOSE : 0);
}

static bool may_read(const struct rpc_call *call)
{
    enum rpc_kind kind = call->method->table.kind;

    return (kind == RPC_CLIENT_STREAM || kind == RPC_BIDI) && call->phase == RPC_CALL_OPEN &&
           !(call->busy & RPC_BUSY_READ) && !(call->events & RPC_EVENT_MESSAGE) &&
           !call->is_half_closed;
}

void rpc_call_read_next(struct rpc_call *call)
{
    grpc_op part = {0};
    bool is_started;

    rpc_call_lock(call);
    if (may_read(call)) {
        part.op = GRPC_OP_RECV_MESSAGE;
        part.data.recv_message.recv_message = &call->inbox;
        call->busy |= RPC_BUSY_READ;
        is_started = rpc_op_start(&call->read_op, call->core, &part, 1);
        rt_assert(is_started);
    }
    rpc_call_unlock(call);
}

void rpc_call_init_io(struct rpc_call *call)
{
    rpc_op_init(&call->close_op, on_closed);
    rpc_op_init(&call->send_op, on_sent);
    rpc_op_init(&call->read_op, on_read);
}
