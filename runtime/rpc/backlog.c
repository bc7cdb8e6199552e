/*
 * The backlog of a server: see server_internal.h. Bytes that calls have not handed to core's
 * transport yet, because their clients do not read, are counted for all calls together.
 *
 * Invariant: a call is in the list exactly while it is charged, and a charged call has a message in
 * its outbox or in core, so the runtime's reference keeps it. The list is in order of progress: at
 * its head is the call that has not sent anything for the longest time, and it goes first. Calls
 * are charged under their own lock and the server's; they are ended from a job, since two calls'
 * locks are never held together.
 */
#include "runtime/rpc/server_internal.h"

/* Server lock held. Who has sent something goes behind the others; who has only got more to send
 * does not. */
static void charge(struct rpc_server *server, struct rpc_call *call, size_t size)
{
    size_t before = atomic_load(&call->backlog_bytes);

    server->backlog_bytes += size - before;
    atomic_store(&call->backlog_bytes, size);
    if (before > 0 && size >= before)
        return;
    rt_list_remove(&call->backlog_link);
    if (size > 0)
        rt_list_push_back(&server->backlog, &call->backlog_link);
}

/* The call that goes first, held and no longer charged, while there is too much; else NULL. */
static struct rpc_call *take_slowest(struct rpc_server *server)
{
    struct rpc_call *call = NULL;

    rpc_server_lock(server);
    if (server->backlog_bytes > server->options.backlog_bytes) {
        call = RT_LIST_ENTRY(server->backlog.next, struct rpc_call, backlog_link);
        charge(server, call, 0);
        rpc_call_hold(call);
    }
    rpc_server_unlock(server);
    return call;
}

static void on_too_much(struct rpc_job *job)
{
    struct rpc_server *server = RT_CONTAINER_OF(job, struct rpc_server, backlog_job);
    struct rpc_call *call;

    while ((call = take_slowest(server))) {
        rpc_call_lock(call);
        rpc_call_abort_locked(call, RT_RESOURCE_EXHAUSTED, NULL, "the client does not read");
        rpc_call_unlock(call);
        rpc_call_release(call);
    }
}

void rpc_backlog_update(struct rpc_call *call)
{
    struct rpc_server *server = call->server;
    size_t unsent = call->outbox.bytes + call->sending_bytes;
    size_t size = unsent > RPC_BACKLOG_FREE_BYTES && !call->is_aborted ? unsent : 0;

    if (size == 0 && atomic_load_explicit(&call->backlog_bytes, memory_order_relaxed) == 0)
        return;
    rpc_server_lock(server);
    charge(server, call, size);
    if (server->backlog_bytes > server->options.backlog_bytes)
        rpc_runtime_post(server->runtime, &server->backlog_job, on_too_much);
    rpc_server_unlock(server);
}

void rpc_backlog_forget(struct rpc_call *call)
{
    charge(call->server, call, 0);
}
