/*
 * Wake-ups: never early, earliest time wins, re-arming, closing.
 */
#include <pthread.h>

#include "tests/support/check.h"
#include "tests/unit/rpc/rig.h"

TestSuite(wakeup, .fini = test_alloc_expect_none, .timeout = 50);

struct clock {
    struct rpc_wakeup wakeup;
    struct rpc_runtime *runtime;
    uint64_t due_us;
    uint64_t ran_us;
    unsigned n_run;
    unsigned n_wanted;
    unsigned n_closed;
};

static struct clock timer;
static struct rpc_runtime *runtime;

static void on_due(struct rpc_wakeup *wakeup, void *ctx)
{
    struct clock *c = ctx;

    cr_assert_eq(wakeup, &c->wakeup);
    c->ran_us = rt_env_now_us(rpc_runtime_env(c->runtime));
    if (++c->n_run >= c->n_wanted)
        rpc_runtime_stop(c->runtime);
    else
        rpc_wakeup_at(wakeup, c->ran_us + 2000);
}

static uint64_t now_us(void)
{
    return rt_env_now_us(rpc_runtime_env(runtime));
}

static void setup(unsigned n_wanted)
{
    runtime = rpc_runtime_new(NULL);
    timer.runtime = runtime;
    timer.n_wanted = n_wanted;
    rpc_wakeup_init(&timer.wakeup, runtime, on_due, &timer);
}

static void run(void)
{
    rpc_runtime_run(runtime);
    (void)rpc_runtime_free(runtime);
}

Test(wakeup, is_never_early)
{
    for (unsigned i = 0; i < 5; i++) {
        timer = (struct clock){0};
        setup(1);
        timer.due_us = now_us() + 3000 + (uint64_t)i * 777;
        rpc_wakeup_at(&timer.wakeup, timer.due_us);
        run();
        cr_assert_geq(timer.ran_us, timer.due_us);
        cr_assert_eq(timer.n_run, 1);
    }
}

Test(wakeup, time_in_the_past_is_due_now)
{
    setup(1);
    rpc_wakeup_at(&timer.wakeup, 1);
    run();
    cr_assert_eq(timer.n_run, 1);
}

Test(wakeup, earliest_time_wins)
{
    uint64_t start_us;

    setup(1);
    start_us = now_us();
    rpc_wakeup_at(&timer.wakeup, start_us + 3600ull * 1000 * 1000);
    rpc_wakeup_at(&timer.wakeup, start_us + 5000);
    rpc_wakeup_at(&timer.wakeup, start_us + 7200ull * 1000 * 1000);
    rpc_wakeup_at(&timer.wakeup, RT_NEVER);
    run();
    cr_assert_geq(timer.ran_us, start_us + 5000);
    cr_assert_lt(timer.ran_us, start_us + 20ull * 1000 * 1000);
}

Test(wakeup, longer_than_the_longest_single_wait)
{
    setup(1);
    timer.due_us = now_us() + 1100000;
    rpc_wakeup_at(&timer.wakeup, timer.due_us);
    run();
    cr_assert_eq(timer.n_run, 1);
    cr_assert_geq(timer.ran_us, timer.due_us);
}

Test(wakeup, callback_arms_it_again)
{
    setup(10);
    rpc_wakeup_at(&timer.wakeup, now_us());
    run();
    cr_assert_eq(timer.n_run, 10);
}

static void *loop_main(void *ctx)
{
    rpc_runtime_run(ctx);
    return NULL;
}

Test(wakeup, another_thread_makes_it_earlier_while_the_loop_sleeps)
{
    pthread_t thread;

    setup(1);
    rpc_wakeup_at(&timer.wakeup, now_us() + 3600ull * 1000 * 1000);
    (void)pthread_create(&thread, NULL, loop_main, runtime);
    timer.due_us = now_us() + 20000;
    rpc_wakeup_at(&timer.wakeup, timer.due_us);
    (void)pthread_join(thread, NULL);
    cr_assert_geq(timer.ran_us, timer.due_us);
    cr_assert_lt(timer.ran_us, timer.due_us + 20ull * 1000 * 1000);
    (void)rpc_runtime_free(runtime);
}

static void on_closed(struct rpc_wakeup *wakeup, void *ctx)
{
    struct clock *c = ctx;

    (void)wakeup;
    c->n_closed++;
    rpc_runtime_stop(c->runtime);
}

/* Armed off the loop and due at once, but closed before the loop runs: its job is taken back. */
Test(wakeup, nothing_runs_after_close)
{
    setup(1);
    rpc_wakeup_at(&timer.wakeup, 1);
    rpc_wakeup_close(&timer.wakeup, on_closed);
    run();
    cr_assert_eq(timer.n_run, 0);
    cr_assert_eq(timer.n_closed, 1);
}

Test(wakeup, what_is_open_at_the_end_is_closed_with_the_loop)
{
    setup(1);
    rpc_wakeup_at(&timer.wakeup, now_us() + 3600ull * 1000 * 1000);
    rpc_runtime_stop(runtime);
    run();
    cr_assert_eq(timer.n_run, 0);
}
