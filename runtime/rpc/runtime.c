/*
 * The runtime object: start, run, and the one shutdown order (see advance()).
 *
 * Invariant: the state only moves forward and only on the loop thread; the queue is shut down when
 * no server and no channel can start work on it any more. Jobs have their own file.
 */
#include "runtime/rpc/runtime.h"

#include <signal.h>

#include "runtime/base/alloc.h"
#include "runtime/rpc/log.h"
#include "runtime/rpc/op.h"
#include "runtime/rpc/runtime_internal.h"

enum {
    DEFAULT_STOP_GRACE_MS = 5000
};

struct stop_hook {
    struct rt_list link;
    void (*fn)(void *ctx);
    void *ctx;
};

struct signal_watch {
    uv_signal_t handle;
    struct rt_list link;
    rpc_signal_fn fn;
    void *ctx;
};

void rpc_runtime_lock(struct rpc_runtime *runtime)
{
    (void)pthread_mutex_lock(&runtime->lock);
}

void rpc_runtime_unlock(struct rpc_runtime *runtime)
{
    (void)pthread_mutex_unlock(&runtime->lock);
}

/* ---- queue threads ---- */

static void *queue_main(void *ctx)
{
    struct rpc_runtime *runtime = ctx;
    grpc_event event;

    for (;;) {
        event =
            grpc_completion_queue_next(runtime->queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
        if (event.type == GRPC_QUEUE_SHUTDOWN)
            break;
        rpc_op_complete(event.tag, event.success != 0);
    }

    rpc_runtime_lock(runtime);
    runtime->n_live_threads--;
    rpc_runtime_unlock(runtime);
    rpc_runtime_advance(runtime);
    return NULL;
}

/* Signals are the loop thread's. */
static void start_threads(struct rpc_runtime *runtime)
{
    sigset_t all;
    sigset_t before;
    int result;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    runtime->n_live_threads = runtime->n_threads;
    for (unsigned i = 0; i < runtime->n_threads; i++) {
        result = pthread_create(&runtime->threads[i], NULL, queue_main, runtime);
        rt_assert(result == 0);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- new and free ---- */

struct rpc_runtime *rpc_runtime_new(const struct rpc_runtime_options *options)
{
    struct rpc_runtime *runtime = rt_xalloc(sizeof(*runtime));
    int result;

    runtime->n_threads = options && options->n_threads ? options->n_threads : 1;
    rt_assert(runtime->n_threads <= RPC_THREADS_MAX);
    runtime->stop_grace_ms =
        options && options->stop_grace_ms ? options->stop_grace_ms : DEFAULT_STOP_GRACE_MS;
    rt_list_init(&runtime->wakeups);
    rt_list_init(&runtime->signals);
    rt_list_init(&runtime->stop_hooks);
    rt_list_init(&runtime->servers);
    rt_list_init(&runtime->channels);
    rt_list_init(&runtime->husks);
    (void)pthread_mutex_init(&runtime->lock, NULL);
    rpc_clock_init(&runtime->clock);

    result = uv_loop_init(&runtime->loop);
    rt_assert(result == 0);
    rpc_jobs_open(runtime);

    rpc_log_route();
    grpc_init();
    runtime->queue = grpc_completion_queue_create_for_next(NULL);
    start_threads(runtime);
    return runtime;
}

struct rpc_runtime *rpc_runtime_free(struct rpc_runtime *runtime)
{
    struct rt_list *node;

    if (!runtime)
        return NULL;
    if (runtime->state != RPC_RUNTIME_STOPPED) {
        rpc_runtime_stop(runtime);
        rpc_runtime_run(runtime);
    }
    while ((node = rt_list_pop_front(&runtime->husks))) {
        struct rpc_husk *husk = RT_LIST_ENTRY(node, struct rpc_husk, link);

        husk->free(husk);
    }
    grpc_shutdown_blocking();
    (void)pthread_mutex_destroy(&runtime->lock);
    return rt_free(runtime);
}

void rpc_runtime_run(struct rpc_runtime *runtime)
{
    int result;

    rt_assert(atomic_load(&runtime->loop_thread) == 0);
    atomic_store(&runtime->loop_thread, (uintptr_t)pthread_self());
    (void)uv_run(&runtime->loop, UV_RUN_DEFAULT);
    rpc_jobs_close(runtime);
    (void)uv_run(&runtime->loop, UV_RUN_DEFAULT);
    result = uv_loop_close(&runtime->loop);
    rt_assert(result == 0);
    rt_assert(runtime->state == RPC_RUNTIME_CLOSING_LOOP);
    runtime->state = RPC_RUNTIME_STOPPED;
}

uv_loop_t *rpc_runtime_loop(struct rpc_runtime *runtime)
{
    return &runtime->loop;
}

const struct rt_env *rpc_runtime_env(const struct rpc_runtime *runtime)
{
    return &runtime->clock.env;
}

bool rpc_runtime_is_loop_thread(const struct rpc_runtime *runtime)
{
    return atomic_load(&runtime->loop_thread) == (uintptr_t)pthread_self();
}

/* ---- shutdown ---- */

static void join_threads(struct rpc_runtime *runtime)
{
    for (unsigned i = 0; i < runtime->n_threads; i++)
        (void)pthread_join(runtime->threads[i], NULL);
    grpc_completion_queue_destroy(runtime->queue);
}

static void run_stop_hooks(struct rpc_runtime *runtime)
{
    struct rt_list *node;

    while ((node = rt_list_pop_front(&runtime->stop_hooks))) {
        struct stop_hook *hook = RT_LIST_ENTRY(node, struct stop_hook, link);

        hook->fn(hook->ctx);
        (void)rt_free(hook);
    }
}

static void on_signal_closed(uv_handle_t *handle)
{
    (void)rt_free(RT_CONTAINER_OF(handle, struct signal_watch, handle));
}

static void close_handles(struct rpc_runtime *runtime)
{
    struct rt_list *node;

    while ((node = rt_list_pop_front(&runtime->signals))) {
        struct signal_watch *watch = RT_LIST_ENTRY(node, struct signal_watch, link);

        uv_close((uv_handle_t *)&watch->handle, on_signal_closed);
    }
    rpc_wakeup_close_all(runtime);
    /* Jobs go on as long as anything else keeps the loop alive. */
    uv_unref((uv_handle_t *)&runtime->async);
}

/* One step if its condition holds; true when the next one may be due as well. */
static bool step(struct rpc_runtime *runtime)
{
    enum rpc_runtime_state state;
    bool servers_gone, channels_gone, threads_gone;

    rpc_runtime_lock(runtime);
    state = runtime->state;
    servers_gone = rt_list_is_empty(&runtime->servers);
    channels_gone = rt_list_is_empty(&runtime->channels);
    threads_gone = runtime->n_live_threads == 0;
    if ((state == RPC_RUNTIME_DRAINING_SERVERS && servers_gone) ||
        (state == RPC_RUNTIME_CLOSING_CHANNELS && channels_gone) ||
        (state == RPC_RUNTIME_DRAINING_QUEUE && threads_gone))
        runtime->state++;
    else
        state = RPC_RUNTIME_STOPPED;
    rpc_runtime_unlock(runtime);

    /* Channels may still have been made by callbacks of the last calls. */
    if (!channels_gone && runtime->state == RPC_RUNTIME_CLOSING_CHANNELS)
        rpc_channel_close_all(runtime);
    switch (state) {
    case RPC_RUNTIME_DRAINING_SERVERS:
        return true;
    case RPC_RUNTIME_CLOSING_CHANNELS:
        grpc_completion_queue_shutdown(runtime->queue);
        return true;
    case RPC_RUNTIME_DRAINING_QUEUE:
        join_threads(runtime);
        run_stop_hooks(runtime);
        close_handles(runtime);
        return false;
    case RPC_RUNTIME_OPEN:
    case RPC_RUNTIME_CLOSING_LOOP:
    case RPC_RUNTIME_STOPPED:
        return false;
    }
    return false;
}

static void on_advance(struct rpc_job *job)
{
    struct rpc_runtime *runtime = RT_CONTAINER_OF(job, struct rpc_runtime, advance_job);

    while (step(runtime))
        ;
}

void rpc_runtime_advance(struct rpc_runtime *runtime)
{
    rpc_runtime_post(runtime, &runtime->advance_job, on_advance);
}

static void on_stop(struct rpc_job *job)
{
    struct rpc_runtime *runtime = RT_CONTAINER_OF(job, struct rpc_runtime, stop_job);
    bool is_first;

    rpc_runtime_lock(runtime);
    is_first = runtime->state == RPC_RUNTIME_OPEN;
    if (is_first)
        runtime->state = RPC_RUNTIME_DRAINING_SERVERS;
    rpc_runtime_unlock(runtime);
    if (!is_first)
        return;
    rpc_server_drain_all(runtime, runtime->stop_grace_ms);
    rpc_runtime_advance(runtime);
}

void rpc_runtime_stop(struct rpc_runtime *runtime)
{
    rpc_runtime_post(runtime, &runtime->stop_job, on_stop);
}

void rpc_runtime_on_stop(struct rpc_runtime *runtime, void (*fn)(void *ctx), void *ctx)
{
    struct stop_hook *hook = rt_xalloc(sizeof(*hook));

    hook->fn = fn;
    hook->ctx = ctx;
    rt_list_push_back(&runtime->stop_hooks, &hook->link);
}

/* ---- signals ---- */

static void on_signal(uv_signal_t *handle, int signum)
{
    struct signal_watch *watch = RT_CONTAINER_OF(handle, struct signal_watch, handle);

    watch->fn(signum, watch->ctx);
}

enum rt_code rpc_runtime_on_signal(struct rpc_runtime *runtime, int signum, rpc_signal_fn fn,
                                   void *ctx, struct rt_error *err)
{
    struct signal_watch *watch = rt_xalloc(sizeof(*watch));
    int result = uv_signal_init(&runtime->loop, &watch->handle);

    rt_assert(result == 0);
    watch->fn = fn;
    watch->ctx = ctx;
    result = uv_signal_start(&watch->handle, on_signal, signum);
    if (result < 0) {
        uv_close((uv_handle_t *)&watch->handle, on_signal_closed);
        return rt_fail_uv(err, result, "watching signal %d", signum);
    }
    rt_list_push_back(&runtime->signals, &watch->link);
    return RT_OK;
}

static bool is_ignored(int signum)
{
    struct sigaction action;

    return sigaction(signum, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

enum rt_code rpc_runtime_on_interrupt(struct rpc_runtime *runtime, rpc_signal_fn fn, void *ctx,
                                      struct rt_error *err)
{
    enum rt_code code = rpc_runtime_on_signal(runtime, SIGINT, fn, ctx, err);

    if (code == RT_OK)
        code = rpc_runtime_on_signal(runtime, SIGTERM, fn, ctx, err);
    if (code == RT_OK && !is_ignored(SIGHUP))
        code = rpc_runtime_on_signal(runtime, SIGHUP, fn, ctx, err);
    return code;
}
