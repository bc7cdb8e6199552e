/*
 * The runtime of one process: gRPC core, one completion queue with its thread, and the libuv loop.
 *
 * Threads. The queue's thread ("queue thread") runs RPC handlers and client callbacks inline. The
 * thread that calls rpc_runtime_run() ("loop thread") runs jobs, wake-ups and signals. Functions
 * say which thread may call them; "any thread" includes both and every callback of this runtime.
 *
 * Shutdown order is written in one place, runtime.c, and started by rpc_runtime_stop():
 * servers drained, channels closed, queue shut down and drained, its threads joined, on_stop hooks,
 * uv handles closed, uv_loop_close() == 0.
 */
#ifndef RPC_RUNTIME_H
#define RPC_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "runtime/base/env.h"
#include "runtime/base/error.h"
#include "runtime/base/list.h"

struct rpc_runtime;

/* A zeroed struct means the defaults. */
struct rpc_runtime_options {
    unsigned n_threads;     /* queue threads; 0 = 1; more make handlers of one server concurrent */
    uint32_t stop_grace_ms; /* for servers that rpc_runtime_stop() has to drain; 0 = 5000 */
};

/* Starts gRPC core and the queue thread. NULL options = defaults. Fork only before this. */
struct rpc_runtime *rpc_runtime_new(const struct rpc_runtime_options *options);

/* Stops the runtime first if it is not stopped (runs the loop for that). Accepts NULL, returns
 * NULL. Loop thread, not from a callback. */
struct rpc_runtime *rpc_runtime_free(struct rpc_runtime *runtime);

/* Runs the loop until rpc_runtime_stop() has completed the shutdown. Call it once. */
void rpc_runtime_run(struct rpc_runtime *runtime);

/* Starts the shutdown; idempotent; any thread, not a signal handler. In-flight RPCs get
 * stop_grace_ms, what is left is cancelled. Servers and channels are released on the way: their
 * pointers are dead once rpc_runtime_run() has returned. */
void rpc_runtime_stop(struct rpc_runtime *runtime);

/* `fn` runs on the loop thread after the queue threads are joined and before the loop ends: the
 * place to close own uv handles. In order of registration. Loop thread or before run. */
void rpc_runtime_on_stop(struct rpc_runtime *runtime, void (*fn)(void *ctx), void *ctx);

/* Loop thread, or before run. */
uv_loop_t *rpc_runtime_loop(struct rpc_runtime *runtime);

/* The real clock and randomness; valid as long as the runtime; its functions: any thread. */
const struct rt_env *rpc_runtime_env(const struct rpc_runtime *runtime);

bool rpc_runtime_is_loop_thread(const struct rpc_runtime *runtime);

/* ---- jobs: the one thread-safe door into the loop ---- */

struct rpc_job;
typedef void (*rpc_job_fn)(struct rpc_job *job);

/* Embedded in the caller's object; zeroed before its first use; owned by the loop from post until
 * `fn` is entered (inside fn it may be posted again or freed). */
struct rpc_job {
    struct rpc_job *next;
    rpc_job_fn fn;
    bool is_queued; /* guarded by the runtime */
};

/* Runs fn(job) on the loop thread, in order of posting, never from inside this call. Posting a job
 * that is still queued changes nothing: it runs once, after this call. Any thread, until
 * rpc_runtime_run() has returned. */
void rpc_runtime_post(struct rpc_runtime *runtime, struct rpc_job *job, rpc_job_fn fn);

/* ---- wake-ups: "call me at this boot-clock microsecond" ---- */

struct rpc_wakeup;
typedef void (*rpc_wakeup_fn)(struct rpc_wakeup *wakeup, void *ctx);

/* Embedded in the caller's object, never on the stack. Fields are private. */
struct rpc_wakeup {
    uv_timer_t timer;
    struct rpc_runtime *runtime;
    struct rt_list link;
    struct rpc_job job;
    _Atomic uint64_t armed_us; /* RT_NEVER when nothing is due */
    rpc_wakeup_fn on_due;
    rpc_wakeup_fn on_closed;
    void *ctx;
};

/* Loop thread, or before run. */
void rpc_wakeup_init(struct rpc_wakeup *wakeup, struct rpc_runtime *runtime, rpc_wakeup_fn on_due,
                     void *ctx);

/* on_due runs once on the loop thread at or after the earliest time asked for since it last ran;
 * then nothing is armed until the next call. A later time than the one armed costs one atomic load
 * and keeps the earlier one (on_due may find nothing to do and asks again). RT_NEVER is ignored.
 * Any thread, also from on_due. */
void rpc_wakeup_at(struct rpc_wakeup *wakeup, uint64_t when_us);

/* on_closed (may be NULL) runs on the loop thread, the memory may go then; no on_due after this
 * call. Loop thread; no rpc_wakeup_at may run or follow. What is open when the runtime ends its
 * loop is closed there, without on_closed; then rpc_wakeup_at on the loop thread does nothing. */
void rpc_wakeup_close(struct rpc_wakeup *wakeup, rpc_wakeup_fn on_closed);

/* ---- signals ---- */

typedef void (*rpc_signal_fn)(int signum, void *ctx);

/* Runs fn on the loop thread for each delivery until the runtime ends. Loop thread or before run.
 * Fails with what uv_signal_start reports (INVALID_ARGUMENT for SIGKILL). */
RT_MUST_USE enum rt_code rpc_runtime_on_signal(struct rpc_runtime *runtime, int signum,
                                               rpc_signal_fn fn, void *ctx, struct rt_error *err);

/* The same for what ends a command that a person started: SIGINT, SIGTERM, and SIGHUP unless the
 * process was started to survive its terminal (nohup). */
RT_MUST_USE enum rt_code rpc_runtime_on_interrupt(struct rpc_runtime *runtime, rpc_signal_fn fn,
                                                  void *ctx, struct rt_error *err);

#endif
