/*
 * Wake-ups over uv timers. The armed time only ever gets earlier until it fires, by
 * compare-and-swap from any thread; whoever made it earlier sees to it that the loop thread
 * (re)starts the timer. Everything else happens on the loop thread.
 *
 * uv timers count CLOCK_MONOTONIC, which stops in suspend: no wait is longer than LONGEST_WAIT_MS,
 * so that a wake-up is at most that late after one.
 */
#include "runtime/base/compiler.h"
#include "runtime/rpc/runtime_internal.h"

enum {
    LONGEST_WAIT_MS = 1000,
    US_PER_MS = 1000,
};

static void on_timer(uv_timer_t *timer);

static void start_timer(struct rpc_wakeup *wakeup)
{
    uint64_t armed_us = atomic_load(&wakeup->armed_us);
    uint64_t now_us = rpc_clock_now_us();
    uint64_t wait_ms = 0;

    if (armed_us == RT_NEVER)
        return;
    if (armed_us > now_us)
        wait_ms = (armed_us - now_us + US_PER_MS - 1) / US_PER_MS;
    if (wait_ms > LONGEST_WAIT_MS)
        wait_ms = LONGEST_WAIT_MS;
    uv_update_time(&wakeup->runtime->loop);
    (void)uv_timer_start(&wakeup->timer, on_timer, wait_ms, 0);
}

static void on_timer(uv_timer_t *timer)
{
    struct rpc_wakeup *wakeup = RT_CONTAINER_OF(timer, struct rpc_wakeup, timer);

    if (atomic_load(&wakeup->armed_us) > rpc_clock_now_us()) {
        start_timer(wakeup);
        return;
    }
    atomic_store(&wakeup->armed_us, RT_NEVER);
    wakeup->on_due(wakeup, wakeup->ctx);
}

static void on_arm(struct rpc_job *job)
{
    start_timer(RT_CONTAINER_OF(job, struct rpc_wakeup, job));
}

void rpc_wakeup_init(struct rpc_wakeup *wakeup, struct rpc_runtime *runtime, rpc_wakeup_fn on_due,
                     void *ctx)
{
    int result = uv_timer_init(&runtime->loop, &wakeup->timer);

    rt_assert(result == 0);
    wakeup->runtime = runtime;
    wakeup->job = (struct rpc_job){0};
    atomic_init(&wakeup->armed_us, RT_NEVER);
    wakeup->on_due = on_due;
    wakeup->on_closed = NULL;
    wakeup->ctx = ctx;
    rt_list_push_back(&runtime->wakeups, &wakeup->link);
}

void rpc_wakeup_at(struct rpc_wakeup *wakeup, uint64_t when_us)
{
    uint64_t armed_us = atomic_load(&wakeup->armed_us);

    do {
        if (when_us >= armed_us)
            return;
    } while (!atomic_compare_exchange_weak(&wakeup->armed_us, &armed_us, when_us));

    if (rpc_runtime_is_loop_thread(wakeup->runtime))
        start_timer(wakeup);
    else
        rpc_runtime_post(wakeup->runtime, &wakeup->job, on_arm);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct rpc_wakeup *wakeup = RT_CONTAINER_OF(handle, struct rpc_wakeup, timer);

    if (wakeup->on_closed)
        wakeup->on_closed(wakeup, wakeup->ctx);
}

void rpc_wakeup_close(struct rpc_wakeup *wakeup, rpc_wakeup_fn on_closed)
{
    rpc_runtime_unpost(wakeup->runtime, &wakeup->job);
    rt_list_remove(&wakeup->link);
    wakeup->on_closed = on_closed;
    uv_close((uv_handle_t *)&wakeup->timer, on_timer_closed);
}

void rpc_wakeup_close_all(struct rpc_runtime *runtime)
{
    rt_list_for_each_safe (node, &runtime->wakeups)
        rpc_wakeup_close(RT_LIST_ENTRY(node, struct rpc_wakeup, link), NULL);
}
