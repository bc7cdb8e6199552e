/*
 * What handlers ask of a call: see server.h. Everything that is not constant while the user holds
 * the call is read and written under the call's lock; no user code runs from here, but for
 * rpc_call_deliver_cancel(), which is an event (call_event.c).
 */
#include <grpc/byte_buffer.h>
#include <grpc/slice.h>

#include "runtime/rpc/codec.h"
#include "runtime/rpc/server_internal.h"

/* ---- the end ---- */

/* false: there is nothing to send any more. Call lock held. */
static bool take_user_end(struct rpc_call *call)
{
    rt_assert(!call->has_user_end);
    call->has_user_end = true;
    return call->phase == RPC_CALL_OPEN;
}

static void push_trailer(struct rpc_call *call, const char *key, struct rt_bytes value)
{
    grpc_metadata *trailer = &call->trailers[call->n_trailers++];

    trailer->key = grpc_slice_from_copied_string(key);
    trailer->value = grpc_slice_from_copied_buffer((const char *)value.data, value.size);
}

void rpc_call_reply(struct rpc_call *call, const ProtobufCMessage *response)
{
    size_t size;
    grpc_byte_buffer *buffer = rpc_encode(response, &size);
    enum rpc_kind kind = call->method->table.kind;

    rt_assert(kind == RPC_UNARY || kind == RPC_CLIENT_STREAM);
    rpc_call_lock(call);
    if (take_user_end(call)) {
        rpc_outbox_push(&call->outbox, RT_TAKE(buffer), size);
        rpc_call_end_locked(call, RT_OK, NULL, NULL);
        rpc_call_start_send(call);
    }
    rpc_call_unlock(call);
    if (buffer)
        grpc_byte_buffer_destroy(buffer);
}

void rpc_call_fail(struct rpc_call *call, const struct rt_error *err)
{
    rt_assert(err->code != RT_OK);
    rpc_call_lock(call);
    if (take_user_end(call)) {
        if (err->detail.size > 0 && err->detail.size <= RPC_ERROR_DETAIL_MAX)
            push_trailer(call, RPC_DETAIL_KEY, err->detail);
        rpc_call_end_locked(call, err->code, err->reason, err->message);
        rpc_call_start_send(call);
    }
    rpc_call_unlock(call);
}

void rpc_call_finish(struct rpc_call *call, const struct rt_error *err)
{
    if (err) {
        rpc_call_fail(call, err);
        return;
    }
    rt_assert(rpc_call_sends_many(call));
    rpc_call_lock(call);
    if (take_user_end(call)) {
        rpc_call_end_locked(call, RT_OK, NULL, NULL);
        rpc_call_start_send(call);
    }
    rpc_call_unlock(call);
}

/* Core writes a cancelling server's status past flow control. */
void rpc_call_abort_locked(struct rpc_call *call, enum rt_code code, const char *reason,
                           const char *text)
{
    if (!call->core)
        return;
    rpc_outbox_clear(&call->outbox);
    call->phase = RPC_CALL_ENDED;
    call->code = code;
    call->reason = reason;
    call->is_aborted = true;
    (void)grpc_call_cancel_with_status(call->core, (grpc_status_code)code, text, NULL);
}

void rpc_call_abort(struct rpc_call *call, const struct rt_error *err)
{
    rt_assert(rpc_call_sends_many(call) && err->code != RT_OK);
    rpc_call_lock(call);
    if (take_user_end(call))
        rpc_call_abort_locked(call, err->code, err->reason, err->message);
    rpc_call_unlock(call);
}

/* ---- the message ---- */

void rpc_call_take_message(struct rpc_call *call, struct rt_arena *ret_arena)
{
    *ret_arena = call->message_arena;
    call->message_arena = (struct rt_arena){.limit = ret_arena->limit};
}

/* ---- facts about the call ---- */

void *rpc_call_user(struct rpc_call *call)
{
    return call->user;
}

uint64_t rpc_call_deadline_us(const struct rpc_call *call)
{
    return call->deadline_us;
}

uint32_t rpc_call_remaining_ms(const struct rpc_call *call)
{
    uint64_t now_us = rpc_clock_now_us();
    uint64_t left_ms;

    if (call->deadline_us == RT_NEVER)
        return UINT32_MAX;
    if (call->deadline_us <= now_us)
        return 0;
    left_ms = (call->deadline_us - now_us) / 1000;
    return left_ms < UINT32_MAX ? (uint32_t)left_ms : UINT32_MAX;
}

const char *rpc_call_peer(struct rpc_call *call)
{
    const char *peer;

    rpc_call_lock(call);
    if (!call->peer && call->core)
        call->peer = grpc_call_get_peer(call->core);
    peer = call->peer ? call->peer : "unknown";
    rpc_call_unlock(call);
    return peer;
}

bool rpc_call_metadata(struct rpc_call *call, const char *key, struct rt_bytes *ret_value)
{
    struct rt_bytes view;
    bool is_found;

    rpc_call_lock(call);
    is_found = rpc_metadata_find(&call->metadata, key, &view) &&
               rt_arena_copy(&call->arena, view, ret_value);
    rpc_call_unlock(call);
    return is_found;
}

enum rt_code rpc_call_add_trailing(struct rpc_call *call, const char *key, struct rt_bytes value,
                                   struct rt_error *err)
{
    enum rt_code code = rpc_metadata_check(key, value, err);

    if (code != RT_OK)
        return code;
    rpc_call_lock(call);
    if (call->phase != RPC_CALL_OPEN)
        code = rt_fail(err, RT_FAILED_PRECONDITION, "the call has ended");
    else if (call->n_trailers >= RPC_TRAILERS_MAX)
        code = rt_fail(err, RT_RESOURCE_EXHAUSTED, "more than %d trailers", RPC_TRAILERS_MAX);
    else
        push_trailer(call, key, value);
    rpc_call_unlock(call);
    return code;
}

/* ---- cancellation ---- */

bool rpc_call_is_cancelled(const struct rpc_call *call)
{
    return atomic_load(&call->is_cancelled);
}

static void on_late_cancel(struct rpc_job *job)
{
    struct rpc_call *call = RT_CONTAINER_OF(job, struct rpc_call, cancel_job);

    rpc_call_lock(call);
    rpc_call_raise_and_unlock(call, RPC_EVENT_CANCEL);
    rpc_call_release(call);
}

void rpc_call_set_cancel(struct rpc_call *call, void (*cb)(struct rpc_call *call, void *ctx),
                         void *ctx)
{
    rt_assert(!rpc_call_is_stream(call));
    rpc_call_lock(call);
    call->on_cancel = cb;
    call->on_cancel_ctx = ctx;
    if (cb && atomic_load(&call->is_cancelled) && !call->has_user_end && !call->has_late_cancel) {
        call->has_late_cancel = true;
        rpc_call_hold(call);
        rpc_runtime_post(call->server->runtime, &call->cancel_job, on_late_cancel);
    }
    rpc_call_unlock(call);
}

/* The users' reference, if there still is one. */
static bool hold_for_user(struct rpc_call *call)
{
    uint32_t refs = atomic_load(&call->user_refs);

    do {
        if (refs == 0)
            return false;
    } while (!atomic_compare_exchange_weak(&call->user_refs, &refs, refs + 1));
    return true;
}

void rpc_call_deliver_cancel(struct rpc_call *call)
{
    void (*cb)(struct rpc_call *, void *);
    void *ctx;

    rpc_call_lock(call);
    cb = RT_TAKE(call->on_cancel);
    ctx = call->on_cancel_ctx;
    rpc_call_unlock(call);
    if (!cb || !hold_for_user(call))
        return;
    cb(call, ctx);
    (void)rpc_call_unref(call);
}
