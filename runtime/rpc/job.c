/*
 * Jobs: the one door into the loop. uv_async sends coalesce, so each wake-up runs everything that
 * was queued when it began; what is queued meanwhile gets a wake-up of its own, so that a job that
 * posts itself cannot starve the loop.
 *
 * Invariant: is_queued is true exactly for jobs in the list. A job is popped under the lock before
 * its fn runs, so that it may be taken back, freed or posted again at any moment.
 */
#include "runtime/rpc/runtime_internal.h"

/* *ret_fn is read under the lock: the job may be posted again before it runs. */
static struct rpc_job *pop_job(struct rpc_runtime *runtime, rpc_job_fn *ret_fn)
{
    struct rpc_job *job;

    rpc_runtime_lock(runtime);
    job = runtime->first_job;
    if (job) {
        *ret_fn = job->fn;
        runtime->first_job = job->next;
        if (!job->next)
            runtime->last_job = NULL;
        job->next = NULL;
        job->is_queued = false;
        runtime->n_jobs--;
    }
    rpc_runtime_unlock(runtime);
    return job;
}

static void on_async(uv_async_t *async)
{
    struct rpc_runtime *runtime = RT_CONTAINER_OF(async, struct rpc_runtime, async);
    struct rpc_job *job;
    rpc_job_fn fn;
    size_t n_due, n_left;

    rpc_runtime_lock(runtime);
    n_due = runtime->n_jobs;
    rpc_runtime_unlock(runtime);

    for (; n_due > 0; n_due--) {
        job = pop_job(runtime, &fn);
        if (!job)
            break;
        fn(job);
    }

    rpc_runtime_lock(runtime);
    n_left = runtime->n_jobs;
    rpc_runtime_unlock(runtime);
    if (n_left > 0)
        (void)uv_async_send(async);
}

void rpc_jobs_open(struct rpc_runtime *runtime)
{
    int result = uv_async_init(&runtime->loop, &runtime->async, on_async);

    rt_assert(result == 0);
}

void rpc_jobs_close(struct rpc_runtime *runtime)
{
    struct rpc_job *job;
    rpc_job_fn fn;

    while ((job = pop_job(runtime, &fn)))
        fn(job);
    uv_close((uv_handle_t *)&runtime->async, NULL);
}

void rpc_runtime_post(struct rpc_runtime *runtime, struct rpc_job *job, rpc_job_fn fn)
{
    bool was_empty;

    rpc_runtime_lock(runtime);
    if (job->is_queued) {
        rpc_runtime_unlock(runtime);
        return;
    }
    job->fn = fn;
    job->next = NULL;
    job->is_queued = true;
    was_empty = runtime->n_jobs == 0;
    if (was_empty)
        runtime->first_job = job;
    else
        runtime->last_job->next = job;
    runtime->last_job = job;
    runtime->n_jobs++;
    /* Inside the lock: once the last queue thread has left it the handle may be closed. */
    if (was_empty)
        (void)uv_async_send(&runtime->async);
    rpc_runtime_unlock(runtime);
}

void rpc_runtime_unpost(struct rpc_runtime *runtime, struct rpc_job *job)
{
    struct rpc_job *previous = NULL;

    rpc_runtime_lock(runtime);
    if (job->is_queued) {
        struct rpc_job **slot = &runtime->first_job;

        while (*slot != job) {
            previous = *slot;
            slot = &previous->next;
        }
        *slot = job->next;
        if (runtime->last_job == job)
            runtime->last_job = previous;
        job->next = NULL;
        job->is_queued = false;
        runtime->n_jobs--;
    }
    rpc_runtime_unlock(runtime);
}
