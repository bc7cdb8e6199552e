/*
 * Server object: memory, start, default deadlines. How it ends is in server_drain.c.
 *
 * Invariant: call objects are posted to core only in the state STARTED and under the server's lock,
 * so nothing is posted after a drain began. The server's memory goes with its last reference: its
 * own, which the drain drops, and one of each call object. Loop thread, except where server.h says
 * otherwise.
 */
#include "runtime/rpc/server.h"

#include "runtime/base/alloc.h"
#include "runtime/rpc/server_internal.h"

static void on_wakeup(struct rpc_wakeup *wakeup, void *ctx);

void rpc_server_lock(struct rpc_server *server)
{
    (void)pthread_mutex_lock(&server->lock);
}

void rpc_server_unlock(struct rpc_server *server)
{
    (void)pthread_mutex_unlock(&server->lock);
}

/* ---- memory ---- */

static uint32_t or_default(uint32_t value, uint32_t fallback)
{
    return value ? value : fallback;
}

static struct rpc_server_options fill_options(const struct rpc_server_options *given)
{
    struct rpc_server_options o = {0};

    if (given)
        o = *given;
    o.max_message_bytes = or_default(o.max_message_bytes, RPC_DEFAULT_MAX_MESSAGE_BYTES);
    o.max_metadata_bytes = or_default(o.max_metadata_bytes, RPC_DEFAULT_MAX_METADATA_BYTES);
    o.max_arena_bytes = or_default(o.max_arena_bytes, RPC_DEFAULT_MAX_ARENA_BYTES);
    o.unary_deadline_ms = or_default(o.unary_deadline_ms, RPC_DEFAULT_UNARY_DEADLINE_MS);
    o.max_calls = or_default(o.max_calls, RPC_DEFAULT_MAX_CALLS);
    o.max_streams = or_default(o.max_streams, RPC_DEFAULT_MAX_STREAMS);
    o.queue_messages = or_default(o.queue_messages, RPC_DEFAULT_QUEUE_MESSAGES);
    o.queue_bytes = or_default(o.queue_bytes, RPC_DEFAULT_QUEUE_BYTES);
    o.backlog_bytes = or_default(o.backlog_bytes, RPC_DEFAULT_BACKLOG_BYTES);
    o.keepalive_permit_ms = or_default(o.keepalive_permit_ms, RPC_DEFAULT_KEEPALIVE_PERMIT_MS);
    return o;
}

struct rpc_server *rpc_server_new(struct rpc_runtime *runtime,
                                  const struct rpc_server_options *options)
{
    struct rpc_server *server = rt_xalloc(sizeof(*server));

    server->runtime = runtime;
    server->options = fill_options(options);
    (void)pthread_mutex_init(&server->lock, NULL);
    rt_list_init(&server->services);
    rt_list_init(&server->expiring);
    rt_list_init(&server->backlog);
    rt_list_init(&server->addresses);
    server->unknown.server = server;
    rt_list_init(&server->unknown.pool);
    atomic_init(&server->n_refs, 1);
    rpc_server_init_drain(server);
    rpc_wakeup_init(&server->wakeup, runtime, on_wakeup, server);

    server->core = rpc_server_core_new(&server->options);
    grpc_server_register_completion_queue(server->core, runtime->queue, NULL);
    server->reflection = rpc_reflection_new(server);
    server->health = rpc_health_new(server);

    rpc_runtime_lock(runtime);
    rt_assert(runtime->state == RPC_RUNTIME_OPEN);
    rt_list_push_back(&runtime->servers, &server->link);
    rpc_runtime_unlock(runtime);
    return server;
}

static void free_server(struct rpc_server *server)
{
    struct rt_list *node;

    while ((node = rt_list_pop_front(&server->services))) {
        struct rpc_server_service *service = RT_LIST_ENTRY(node, struct rpc_server_service, link);

        for (size_t i = 0; i < service->n_methods; i++)
            (void)rt_free(service->methods[i].path);
        (void)rt_free(service->methods);
        (void)rt_free(service);
    }
    rpc_server_free_addresses(server);
    (void)rpc_health_free(server->health);
    (void)rpc_reflection_free(server->reflection);
    (void)pthread_mutex_destroy(&server->lock);
    (void)rt_free(server);
}

void rpc_server_ref(struct rpc_server *server)
{
    (void)atomic_fetch_add_explicit(&server->n_refs, 1, memory_order_relaxed);
}

void rpc_server_unref(struct rpc_server *server)
{
    if (atomic_fetch_sub_explicit(&server->n_refs, 1, memory_order_acq_rel) == 1)
        free_server(server);
}

/* ---- start ---- */

static void post_method(struct rpc_server_method *method)
{
    unsigned n_posted = method->registered && method->table.kind == RPC_UNARY ? RPC_POSTED_UNARY
                                                                              : RPC_POSTED_STREAM;

    for (unsigned i = 0; i < n_posted; i++)
        rpc_call_post(method);
}

void rpc_server_start(struct rpc_server *server)
{
    rpc_server_lock(server);
    rt_assert(server->state == RPC_SERVER_NEW);
    server->state = RPC_SERVER_STARTED;
    rpc_server_unlock(server);

    grpc_server_start(server->core);
    post_method(&server->unknown);
    rt_list_for_each (node, &server->services) {
        struct rpc_server_service *service = RT_LIST_ENTRY(node, struct rpc_server_service, link);

        for (size_t i = 0; i < service->n_methods; i++)
            post_method(&service->methods[i]);
    }
}

uint32_t rpc_server_n_calls(const struct rpc_server *server)
{
    return atomic_load(&server->n_calls);
}

uint32_t rpc_server_n_streams(const struct rpc_server *server)
{
    return atomic_load(&server->n_streams);
}

void rpc_server_set_health(struct rpc_server *server, const char *service, bool is_serving)
{
    rpc_health_set(server->health, service, is_serving);
}

/* ---- default deadlines ---- */

/* The oldest call whose time is up, held; else NULL and the time of the next one. */
static struct rpc_call *take_expired(struct rpc_server *server, uint64_t now_us,
                                     uint64_t *ret_next_us)
{
    struct rpc_call *call = NULL;

    *ret_next_us = RT_NEVER;
    rpc_server_lock(server);
    if (!rt_list_is_empty(&server->expiring)) {
        call = RT_LIST_ENTRY(server->expiring.next, struct rpc_call, link);
        if (call->deadline_us > now_us) {
            *ret_next_us = call->deadline_us;
            call = NULL;
        } else {
            rt_list_remove(&call->link);
            rpc_call_hold(call);
        }
    }
    rpc_server_unlock(server);
    return call;
}

static void on_wakeup(struct rpc_wakeup *wakeup, void *ctx)
{
    struct rpc_server *server = ctx;
    uint64_t now_us = rpc_clock_now_us();
    struct rpc_call *call;
    uint64_t next_us;

    while ((call = take_expired(server, now_us, &next_us))) {
        rpc_call_expire(call);
        rpc_call_release(call);
    }
    rpc_wakeup_at(wakeup, next_us);
    rpc_server_drain_due(server, now_us);
}
