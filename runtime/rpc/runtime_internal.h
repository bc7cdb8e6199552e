/*
 * What the parts of runtime/rpc share of a runtime. Not for others.
 */
#ifndef RPC_RUNTIME_INTERNAL_H
#define RPC_RUNTIME_INTERNAL_H

#include <grpc/grpc.h>
#include <pthread.h>

#include "runtime/rpc/clock.h"
#include "runtime/rpc/runtime.h"

enum {
    RPC_THREADS_MAX = 16,
};

/* In this order only; changed on the loop thread, under the lock. */
enum rpc_runtime_state {
    RPC_RUNTIME_OPEN,
    RPC_RUNTIME_DRAINING_SERVERS,
    RPC_RUNTIME_CLOSING_CHANNELS,
    RPC_RUNTIME_DRAINING_QUEUE,
    RPC_RUNTIME_CLOSING_LOOP,
    RPC_RUNTIME_STOPPED,
};

struct rpc_runtime {
    uv_loop_t loop;
    uv_async_t async;
    struct rpc_clock clock;
    grpc_completion_queue *queue;
    pthread_t threads[RPC_THREADS_MAX];
    unsigned n_threads;
    uint32_t stop_grace_ms;
    _Atomic uintptr_t loop_thread; /* pthread_self() of the thread in run, 0 before */
    struct rpc_job stop_job;
    struct rpc_job advance_job;
    struct rt_list wakeups;    /* loop thread */
    struct rt_list signals;    /* loop thread; owned */
    struct rt_list stop_hooks; /* loop thread; owned */

    pthread_mutex_t lock; /* guards what follows; innermost of all locks */
    enum rpc_runtime_state state;
    struct rpc_job *first_job;
    struct rpc_job *last_job;
    size_t n_jobs;
    unsigned n_live_threads;
    struct rt_list servers;  /* struct rpc_server.link, not yet drained */
    struct rt_list channels; /* struct rpc_channel.link, not yet closed */
    struct rt_list husks;    /* closed by the shutdown, kept until the runtime is freed */
};

/* A server or channel that the shutdown closed, not its user, who still has the pointer. */
struct rpc_husk {
    struct rt_list link;
    void (*free)(struct rpc_husk *husk);
};

/* job.c. close runs what is queued; afterwards nothing may be posted. Loop thread. */
void rpc_jobs_open(struct rpc_runtime *runtime);
void rpc_jobs_close(struct rpc_runtime *runtime);

/* Takes a job back if it is queued. Any thread; its fn may be running if called off the loop. */
void rpc_runtime_unpost(struct rpc_runtime *runtime, struct rpc_job *job);

/* Looks whether the shutdown can make its next step; does nothing before rpc_runtime_stop(). Any
 * thread. */
void rpc_runtime_advance(struct rpc_runtime *runtime);

void rpc_runtime_lock(struct rpc_runtime *runtime);
void rpc_runtime_unlock(struct rpc_runtime *runtime);

/* wakeup.c */
void rpc_wakeup_close_all(struct rpc_runtime *runtime);

/* server.c, channel.c: the shutdown's way to close whatever is still open; idempotent for each. */
void rpc_server_drain_all(struct rpc_runtime *runtime, uint32_t grace_ms);
void rpc_channel_close_all(struct rpc_runtime *runtime);

#endif
