/*
 * How a server ends: calls in flight finish or lose the grace, then the connections go.
 *
 * Invariant: each stage has a bound. Calls have the grace, then core cancels them. Connections
 * without a call have LINGER_US for the client's answer to core's goodbye; a peer that gives none
 * would cost core's own patience of 15 s. A socket that cannot be written to keeps core's transport
 * even then, so in the end it is shut down under it. Loop thread, except where noted.
 */
#include "runtime/base/alloc.h"
#include "runtime/rpc/server_internal.h"

enum {
    LINGER_US = 100 * 1000,
};

static void free_pool(struct rpc_server_method *method)
{
    struct rt_list *node;

    while ((node = rt_list_pop_front(&method->pool)))
        rpc_call_free(RT_LIST_ENTRY(node, struct rpc_call, link));
}

static void free_pools(struct rpc_server *server)
{
    free_pool(&server->unknown);
    rt_list_for_each (node, &server->services) {
        struct rpc_server_service *service = RT_LIST_ENTRY(node, struct rpc_server_service, link);

        for (size_t i = 0; i < service->n_methods; i++)
            free_pool(&service->methods[i]);
    }
}

static void free_husk(struct rpc_husk *husk)
{
    rpc_server_unref(RT_CONTAINER_OF(husk, struct rpc_server, husk));
}

static void on_wakeup_closed(struct rpc_wakeup *wakeup, void *ctx)
{
    struct rpc_server *server = ctx;
    struct rpc_runtime *runtime = server->runtime;
    struct rt_list *node;

    (void)wakeup;
    free_pools(server);
    while ((node = rt_list_pop_front(&server->waiters))) {
        struct rpc_server_waiter *waiter = RT_LIST_ENTRY(node, struct rpc_server_waiter, link);

        if (waiter->cb)
            waiter->cb(waiter->ctx);
        (void)rt_free(waiter);
    }
    rpc_runtime_lock(runtime);
    rt_list_remove(&server->link);
    server->husk.free = free_husk;
    if (server->is_husk)
        rt_list_push_back(&runtime->husks, &server->husk.link);
    rpc_runtime_unlock(runtime);
    if (!server->is_husk)
        rpc_server_unref(server);
    rpc_runtime_advance(runtime);
}

static bool is_quiet(struct rpc_server *server)
{
    return atomic_load(&server->n_calls) == 0 && atomic_load(&server->n_streams) == 0;
}

/* What is left are connections. Well-behaved peers close them when they have read the goodbye. */
static void start_linger(struct rpc_server *server)
{
    if (!server->core || server->linger_end_us != RT_NEVER || !is_quiet(server))
        return;
    server->linger_end_us = rpc_clock_now_us() + LINGER_US;
    rpc_wakeup_at(&server->wakeup, server->linger_end_us);
}

static void cancel_all(struct rpc_server *server, uint64_t now_us)
{
    server->grace_end_us = RT_NEVER;
    server->sever_at_us = now_us + LINGER_US;
    grpc_server_cancel_all_calls(server->core);
}

void rpc_server_drain_due(struct rpc_server *server, uint64_t now_us)
{
    if (!server->core)
        return;
    if (server->sever_at_us <= now_us) {
        server->sever_at_us = RT_NEVER;
        rpc_server_sever(server);
    }
    if (server->linger_end_us <= now_us) {
        server->linger_end_us = RT_NEVER;
        if (is_quiet(server))
            cancel_all(server, now_us);
    }
    if (server->grace_end_us <= now_us)
        cancel_all(server, now_us);
    rpc_wakeup_at(&server->wakeup, server->sever_at_us);
    rpc_wakeup_at(&server->wakeup, server->linger_end_us);
    rpc_wakeup_at(&server->wakeup, server->grace_end_us);
}

static bool take_drained(struct rpc_server *server)
{
    bool is_drained;

    rpc_server_lock(server);
    is_drained =
        server->state == RPC_SERVER_DRAINING && server->is_core_drained && is_quiet(server);
    if (is_drained)
        server->state = RPC_SERVER_DRAINED;
    rpc_server_unlock(server);
    return is_drained;
}

static void on_maybe_drained(struct rpc_job *job)
{
    struct rpc_server *server = RT_CONTAINER_OF(job, struct rpc_server, drained_job);

    if (!take_drained(server)) {
        start_linger(server);
        return;
    }
    grpc_server_destroy(RT_TAKE(server->core));
    rpc_wakeup_close(&server->wakeup, on_wakeup_closed);
}

static void on_drained_op(struct rpc_op *op, bool ok)
{
    struct rpc_server *server = RT_CONTAINER_OF(op, struct rpc_server, drained_op);

    (void)ok;
    rpc_server_lock(server);
    server->is_core_drained = true;
    rpc_runtime_post(server->runtime, &server->drained_job, on_maybe_drained);
    rpc_server_unlock(server);
}

void rpc_server_forget(struct rpc_server *server, struct rpc_call *call)
{
    rpc_server_lock(server);
    rt_list_remove(&call->link);
    rpc_backlog_forget(call);
    (void)atomic_fetch_sub(rpc_call_is_stream(call) ? &server->n_streams : &server->n_calls, 1);
    if (server->state == RPC_SERVER_DRAINING)
        rpc_runtime_post(server->runtime, &server->drained_job, on_maybe_drained);
    rpc_server_unlock(server);
}

void rpc_server_init_drain(struct rpc_server *server)
{
    rt_list_init(&server->waiters);
    server->grace_end_us = RT_NEVER;
    server->linger_end_us = RT_NEVER;
    server->sever_at_us = RT_NEVER;
    rpc_op_init(&server->drained_op, on_drained_op);
}

static bool begin_drain(struct rpc_server *server)
{
    bool is_first;

    rpc_server_lock(server);
    is_first = server->state < RPC_SERVER_DRAINING;
    if (is_first)
        server->state = RPC_SERVER_DRAINING;
    rpc_server_unlock(server);
    return is_first;
}

void rpc_server_drain(struct rpc_server *server, uint32_t grace_ms, void (*cb)(void *ctx),
                      void *ctx)
{
    struct rpc_server_waiter *waiter = rt_xalloc(sizeof(*waiter));
    uint64_t end_us = rpc_clock_now_us() + (uint64_t)grace_ms * 1000;

    waiter->cb = cb;
    waiter->ctx = ctx;
    rt_list_push_back(&server->waiters, &waiter->link);
    if (begin_drain(server)) {
        rpc_health_drain(server->health);
        rpc_reflection_drain(server->reflection);
        rpc_op_arm(&server->drained_op);
        grpc_server_shutdown_and_notify(server->core, server->runtime->queue, &server->drained_op);
        start_linger(server);
    }
    if (end_us < server->grace_end_us)
        server->grace_end_us = end_us;
    rpc_wakeup_at(&server->wakeup, end_us);
}

void rpc_server_drain_all(struct rpc_runtime *runtime, uint32_t grace_ms)
{
    rt_list_for_each_safe (node, &runtime->servers) {
        struct rpc_server *server = RT_LIST_ENTRY(node, struct rpc_server, link);

        if (server->state < RPC_SERVER_DRAINING)
            server->is_husk = true;
        if (server->state < RPC_SERVER_DRAINED)
            rpc_server_drain(server, grace_ms, NULL, NULL);
    }
}
