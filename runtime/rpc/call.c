/*
 * Life of a server call: posted to core, served, ended, over, back to its pool.
 *
 * Invariant: the runtime holds one reference from the request until the event OVER was delivered;
 * all users together hold another. The memory is reused when both are gone. Phases only move
 * forward (enum rpc_call_phase), under the call's lock.
 */
#include <grpc/byte_buffer.h>
#include <grpc/slice.h>
#include <grpc/support/alloc.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/log.h"
#include "runtime/rpc/server_internal.h"

void rpc_call_lock(struct rpc_call *call)
{
    (void)pthread_mutex_lock(&call->lock);
}

void rpc_call_unlock(struct rpc_call *call)
{
    (void)pthread_mutex_unlock(&call->lock);
}

bool rpc_call_is_stream(const struct rpc_call *call)
{
    return call->method->table.kind != RPC_UNARY;
}

bool rpc_call_sends_many(const struct rpc_call *call)
{
    return call->method->table.kind == RPC_SERVER_STREAM || call->method->table.kind == RPC_BIDI;
}

/* ---- objects and their pool ---- */

static void on_requested(struct rpc_op *op, bool ok);

static struct rpc_call *new_call(struct rpc_server_method *method)
{
    const struct rpc_server_options *options = &method->server->options;
    struct rpc_call *call = rt_xalloc(sizeof(*call) + method->table.user_size);

    rt_list_init(&call->link);
    rt_list_init(&call->backlog_link);
    call->server = method->server;
    call->method = method;
    (void)pthread_mutex_init(&call->lock, NULL);
    grpc_metadata_array_init(&call->metadata);
    grpc_call_details_init(&call->details);
    rpc_op_init(&call->request_op, on_requested);
    rpc_call_init_io(call);
    call->arena.limit = options->max_arena_bytes;
    call->message_arena.limit = options->max_arena_bytes;
    call->outbox.max_count =
        method->table.queue_messages ? method->table.queue_messages : options->queue_messages;
    call->outbox.max_bytes = options->queue_bytes;
    rpc_server_ref(method->server);
    return call;
}

void rpc_call_free(struct rpc_call *call)
{
    struct rpc_server *server = call->server;

    rt_arena_reset(&call->arena);
    rt_arena_reset(&call->message_arena);
    rpc_outbox_deinit(&call->outbox);
    grpc_metadata_array_destroy(&call->metadata);
    grpc_call_details_destroy(&call->details);
    gpr_free(call->peer);
    (void)pthread_mutex_destroy(&call->lock);
    (void)rt_free(call);
    rpc_server_unref(server);
}

/* Back to what new_call() made, but with memory that is worth keeping. */
static void clear_call(struct rpc_call *call)
{
    rt_arena_rewind(&call->arena);
    rt_arena_rewind(&call->message_arena);
    gpr_free(RT_TAKE(call->peer));
    atomic_store_explicit(&call->is_cancelled, false, memory_order_relaxed);
    call->phase = RPC_CALL_POSTED;
    call->events = 0;
    call->is_opened = false;
    call->has_headers = false;
    call->is_closed = false;
    call->has_user_end = false;
    call->has_late_cancel = false;
    call->is_half_closed = false;
    call->is_sent_ok = false;
    call->is_aborted = false;
    call->close_cancelled = 0;
    call->code = RT_OK;
    call->reason = NULL;
    call->on_cancel = NULL;
    memset(call->user, 0, call->method->table.user_size);
}

static void recycle_call(struct rpc_call *call)
{
    struct rpc_server *server = call->server;
    struct rpc_server_method *method = call->method;
    bool is_kept;

    clear_call(call);
    rpc_server_lock(server);
    is_kept = server->state == RPC_SERVER_STARTED && method->n_pool < RPC_POOL_MAX;
    if (is_kept) {
        rt_list_push_front(&method->pool, &call->link);
        method->n_pool++;
    }
    rpc_server_unlock(server);
    if (!is_kept)
        rpc_call_free(call);
}

/* Server lock held. */
static struct rpc_call *take_call(struct rpc_server_method *method)
{
    struct rt_list *node = rt_list_pop_front(&method->pool);

    if (!node)
        return new_call(method);
    method->n_pool--;
    return RT_LIST_ENTRY(node, struct rpc_call, link);
}

/* ---- references ---- */

void rpc_call_hold(struct rpc_call *call)
{
    (void)atomic_fetch_add_explicit(&call->refs, 1, memory_order_relaxed);
}

void rpc_call_release(struct rpc_call *call)
{
    if (atomic_fetch_sub_explicit(&call->refs, 1, memory_order_acq_rel) == 1)
        recycle_call(call);
}

struct rpc_call *rpc_call_ref(struct rpc_call *call)
{
    uint32_t before = atomic_fetch_add_explicit(&call->user_refs, 1, memory_order_relaxed);

    rt_assert(before > 0);
    return call;
}

static void end_abandoned(struct rpc_call *call)
{
    rpc_call_lock(call);
    if (!call->has_user_end && call->phase == RPC_CALL_OPEN) {
        rt_log(RT_LOG_DEBUG, "event=call_without_answer method=%s", call->method->path);
        rpc_call_end_locked(call, RT_INTERNAL, NULL, "the handler gave no answer");
        rpc_call_start_send(call);
    }
    rpc_call_unlock(call);
}

struct rpc_call *rpc_call_unref(struct rpc_call *call)
{
    if (call && atomic_fetch_sub_explicit(&call->user_refs, 1, memory_order_acq_rel) == 1) {
        end_abandoned(call);
        rpc_call_release(call);
    }
    return NULL;
}

/* ---- requests ---- */

static void post_registered(struct rpc_server_method *method, struct rpc_call *call)
{
    bool reads_request = method->table.kind == RPC_UNARY || method->table.kind == RPC_SERVER_STREAM;
    grpc_completion_queue *queue = method->server->runtime->queue;
    grpc_call_error result = grpc_server_request_registered_call(
        method->server->core, method->registered, &call->core, &call->core_deadline,
        &call->metadata, reads_request ? &call->inbox : NULL, queue, queue, &call->request_op);

    rt_assert(result == GRPC_CALL_OK);
}

static void post_unknown(struct rpc_server_method *method, struct rpc_call *call)
{
    grpc_completion_queue *queue = method->server->runtime->queue;
    grpc_call_error result =
        grpc_server_request_call(method->server->core, &call->core, &call->details, &call->metadata,
                                 queue, queue, &call->request_op);

    rt_assert(result == GRPC_CALL_OK);
}

void rpc_call_post(struct rpc_server_method *method)
{
    struct rpc_server *server = method->server;
    struct rpc_call *call;

    rpc_server_lock(server);
    if (server->state == RPC_SERVER_STARTED) {
        call = take_call(method);
        rpc_op_arm(&call->request_op);
        if (method->registered)
            post_registered(method, call);
        else
            post_unknown(method, call);
    }
    rpc_server_unlock(server);
}

static void set_deadline(struct rpc_call *call)
{
    const struct rpc_method *table = &call->method->table;
    gpr_timespec deadline = call->method->registered ? call->core_deadline : call->details.deadline;

    call->started_us = rpc_clock_now_us();
    call->deadline_us = rpc_deadline_to_us(deadline, call->started_us);
    call->has_default_deadline = call->deadline_us == RT_NEVER && table->kind == RPC_UNARY &&
                                 !(table->flags & RPC_NO_DEADLINE);
    if (call->has_default_deadline)
        call->deadline_us =
            call->started_us + (uint64_t)call->server->options.unary_deadline_ms * 1000;
}

/* As HTTP/2 counts it. */
static size_t metadata_size(const struct rpc_call *call)
{
    size_t size = 0;

    for (size_t i = 0; i < call->metadata.count; i++)
        size += GRPC_SLICE_LENGTH(call->metadata.metadata[i].key) +
                GRPC_SLICE_LENGTH(call->metadata.metadata[i].value) + RPC_METADATA_ENTRY_BYTES;
    return size;
}

/* Call lock held. Counts the call in any case; deliver_over() counts it out. */
static void admit(struct rpc_call *call)
{
    struct rpc_server *server = call->server;
    bool is_stream = rpc_call_is_stream(call);
    uint32_t limit = is_stream ? server->options.max_streams : server->options.max_calls;
    uint32_t before = atomic_fetch_add(is_stream ? &server->n_streams : &server->n_calls, 1);

    if (!call->method->registered)
        rpc_call_end_locked(call, RT_UNIMPLEMENTED, NULL, "unknown method");
    else if (before >= limit)
        rpc_call_end_locked(call, RT_RESOURCE_EXHAUSTED, NULL,
                            is_stream ? "too many streams" : "too many calls");
    else if (metadata_size(call) > server->options.max_metadata_bytes)
        rpc_call_end_locked(call, RT_RESOURCE_EXHAUSTED, NULL, "too much metadata");
}

static void on_requested(struct rpc_op *op, bool ok)
{
    struct rpc_call *call = RT_CONTAINER_OF(op, struct rpc_call, request_op);

    if (!ok) {
        rpc_call_free(call);
        return;
    }
    rpc_call_post(call->method);

    atomic_store_explicit(&call->refs, 2, memory_order_relaxed);
    atomic_store_explicit(&call->user_refs, 1, memory_order_relaxed);
    set_deadline(call);
    rpc_call_lock(call);
    call->phase = RPC_CALL_OPEN;
    admit(call);
    if (call->phase != RPC_CALL_OPEN)
        rpc_call_start_send(call);
    else if (rpc_call_is_stream(call))
        rpc_call_start_close(call);
    call->events |= RPC_EVENT_OPEN;
    rpc_call_deliver_all_and_unlock(call);
}

void rpc_call_expire(struct rpc_call *call)
{
    rpc_call_lock(call);
    if (call->phase == RPC_CALL_OPEN) {
        rpc_call_end_locked(call, RT_DEADLINE_EXCEEDED, NULL, "the server's deadline has passed");
        atomic_store(&call->is_cancelled, true);
        rpc_call_start_send(call);
        rpc_call_raise_and_unlock(call, RPC_EVENT_CANCEL);
        return;
    }
    rpc_call_unlock(call);
}
