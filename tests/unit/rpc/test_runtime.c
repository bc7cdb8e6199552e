/*
 * The runtime object: jobs, signals, environment, its life and end.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "tests/support/check.h"
#include "tests/unit/rpc/rig.h"

TestSuite(runtime, .fini = test_alloc_expect_none, .timeout = 50);

static struct rpc_runtime *runtime;

struct task {
    struct rpc_job job;
    unsigned *n_run;
    unsigned order;
    unsigned ran_as;
    bool was_on_loop;
};

static void on_task(struct rpc_job *job)
{
    struct task *task = RT_CONTAINER_OF(job, struct task, job);

    task->ran_as = ++*task->n_run;
    task->was_on_loop = rpc_runtime_is_loop_thread(runtime);
}

static void on_stop_task(struct rpc_job *job)
{
    (void)job;
    rpc_runtime_stop(runtime);
}

Test(runtime, free_without_run)
{
    runtime = rpc_runtime_new(NULL);
    cr_assert_null(rpc_runtime_free(runtime));
    cr_assert_null(rpc_runtime_free(NULL));
}

Test(runtime, stop_is_idempotent)
{
    runtime = rpc_runtime_new(NULL);
    rpc_runtime_stop(runtime);
    rpc_runtime_stop(runtime);
    rpc_runtime_run(runtime);
    (void)rpc_runtime_free(runtime);
}

Test(runtime, two_runtimes_one_after_the_other_and_side_by_side)
{
    struct rpc_runtime_options options = {.n_threads = 3};
    struct rpc_runtime *other;

    runtime = rpc_runtime_new(&options);
    other = rpc_runtime_new(NULL);
    (void)rpc_runtime_free(runtime);
    runtime = rpc_runtime_new(NULL);
    (void)rpc_runtime_free(other);
    (void)rpc_runtime_free(runtime);
}

Test(runtime, jobs_run_in_order_on_the_loop_thread)
{
    struct task tasks[100] = {0};
    struct rpc_job stop = {0};
    unsigned n_run = 0;

    runtime = rpc_runtime_new(NULL);
    cr_assert_not(rpc_runtime_is_loop_thread(runtime));
    for (unsigned i = 0; i < RT_ARRAY_SIZE(tasks); i++) {
        tasks[i].n_run = &n_run;
        rpc_runtime_post(runtime, &tasks[i].job, on_task);
    }
    rpc_runtime_post(runtime, &stop, on_stop_task);
    cr_assert_eq(n_run, 0);
    rpc_runtime_run(runtime);
    for (unsigned i = 0; i < RT_ARRAY_SIZE(tasks); i++) {
        cr_assert_eq(tasks[i].ran_as, i + 1);
        cr_assert(tasks[i].was_on_loop);
    }
    (void)rpc_runtime_free(runtime);
}

Test(runtime, job_that_is_queued_already_runs_once)
{
    struct task task = {0};
    unsigned n_run = 0;

    runtime = rpc_runtime_new(NULL);
    task.n_run = &n_run;
    rpc_runtime_post(runtime, &task.job, on_task);
    rpc_runtime_post(runtime, &task.job, on_task);
    (void)rpc_runtime_free(runtime);
    cr_assert_eq(n_run, 1);
}

static void on_due(struct rpc_wakeup *wakeup, void *ctx)
{
    (void)wakeup;
    *(bool *)ctx = true;
    rpc_runtime_stop(runtime);
}

static void on_repeat_until(struct rpc_job *job)
{
    struct task *task = RT_CONTAINER_OF(job, struct task, job);

    if (++*task->n_run < 1000)
        rpc_runtime_post(runtime, job, on_repeat_until);
}

/* And does not keep the loop from its timers meanwhile. */
Test(runtime, job_may_post_itself_again)
{
    struct task task = {0};
    struct rpc_wakeup wakeup;
    bool was_due = false;
    unsigned n_run = 0;

    runtime = rpc_runtime_new(NULL);
    task.n_run = &n_run;
    rpc_wakeup_init(&wakeup, runtime, on_due, &was_due);
    rpc_wakeup_at(&wakeup, 0);
    rpc_runtime_post(runtime, &task.job, on_repeat_until);
    rpc_runtime_run(runtime);
    cr_assert(was_due);
    cr_assert_eq(n_run, 1000);
    (void)rpc_runtime_free(runtime);
}

static void *post_many(void *ctx)
{
    struct task *tasks = ctx;

    for (unsigned i = 0; i < 1000; i++)
        rpc_runtime_post(runtime, &tasks[i].job, on_task);
    return NULL;
}

Test(runtime, posting_from_several_threads_loses_nothing)
{
    struct task *tasks = rt_xalloc(3000 * sizeof(*tasks));
    pthread_t threads[3];
    struct rpc_job stop = {0};
    unsigned n_run = 0;

    runtime = rpc_runtime_new(NULL);
    for (unsigned i = 0; i < 3000; i++)
        tasks[i].n_run = &n_run;
    for (unsigned i = 0; i < 3; i++)
        (void)pthread_create(&threads[i], NULL, post_many, &tasks[(size_t)i * 1000]);
    for (unsigned i = 0; i < 3; i++)
        (void)pthread_join(threads[i], NULL);
    rpc_runtime_post(runtime, &stop, on_stop_task);
    rpc_runtime_run(runtime);
    cr_assert_eq(n_run, 3000);
    (void)rpc_runtime_free(runtime);
    (void)rt_free(tasks);
}

static void note_hook(void *ctx)
{
    unsigned *n_run = ctx;

    *n_run = *n_run * 10 + 1;
}

static void note_other_hook(void *ctx)
{
    unsigned *n_run = ctx;

    *n_run = *n_run * 10 + 2;
}

Test(runtime, stop_hooks_run_in_order)
{
    unsigned trace = 0;

    runtime = rpc_runtime_new(NULL);
    rpc_runtime_on_stop(runtime, note_hook, &trace);
    rpc_runtime_on_stop(runtime, note_other_hook, &trace);
    (void)rpc_runtime_free(runtime);
    cr_assert_eq(trace, 12);
}

static void on_signal(int signum, void *ctx)
{
    *(int *)ctx = signum;
    rpc_runtime_stop(runtime);
}

Test(runtime, signals_arrive_on_the_loop)
{
    struct rt_error err = RT_ERROR_INIT;
    int seen = 0;

    runtime = rpc_runtime_new(NULL);
    cr_assert_eq(rpc_runtime_on_signal(runtime, SIGUSR1, on_signal, &seen, &err), RT_OK);
    cr_assert_eq(rpc_runtime_on_signal(runtime, SIGUSR2, on_signal, &seen, &err), RT_OK);
    (void)kill(getpid(), SIGUSR1);
    rpc_runtime_run(runtime);
    cr_assert_eq(seen, SIGUSR1);
    (void)rpc_runtime_free(runtime);
}

Test(runtime, signal_that_cannot_be_watched_is_an_error)
{
    struct rt_error err = RT_ERROR_INIT;
    int seen = 0;

    runtime = rpc_runtime_new(NULL);
    cr_assert_eq(rpc_runtime_on_signal(runtime, SIGKILL, on_signal, &seen, &err),
                 RT_INVALID_ARGUMENT, "%s", err.message);
    cr_assert_eq(rpc_runtime_on_signal(runtime, SIGSTOP, on_signal, &seen, NULL),
                 RT_INVALID_ARGUMENT);
    (void)rpc_runtime_free(runtime);
}

Test(runtime, environment_is_the_real_one)
{
    const struct rt_env *env;
    uint64_t first_us;
    uint64_t first;

    runtime = rpc_runtime_new(NULL);
    env = rpc_runtime_env(runtime);
    first_us = rt_env_now_us(env);
    cr_assert_gt(first_us, 0);
    cr_assert_geq(rt_env_now_us(env), first_us);
    first = rt_env_random(env);
    cr_assert_neq(rt_env_random(env), first);
    cr_assert_eq(rpc_runtime_loop(runtime), rpc_runtime_loop(runtime));
    (void)rpc_runtime_free(runtime);
}

static void on_own_timer_closed(uv_handle_t *handle)
{
    handle->data = NULL;
}

static void close_own_timer(void *ctx)
{
    uv_close(ctx, on_own_timer_closed);
}

Test(runtime, own_handles_are_closed_in_a_stop_hook)
{
    uv_timer_t timer;

    runtime = rpc_runtime_new(NULL);
    (void)uv_timer_init(rpc_runtime_loop(runtime), &timer);
    timer.data = &timer;
    rpc_runtime_on_stop(runtime, close_own_timer, &timer);
    (void)rpc_runtime_free(runtime);
    cr_assert_null(timer.data);
}
