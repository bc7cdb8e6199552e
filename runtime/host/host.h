/*
 * Runs one core behind gRPC: the shell that all services share.
 *
 * A host owns the core's one lock. It turns RPCs into calls of the core (inbound.h), carries out
 * the calls that the core makes (outbound.h), submits its transactions in order, and wakes it when
 * something is due. Effects are collected under the lock and carried out after it, except that
 * transactions are submitted under it: that keeps their order.
 *
 * Threads: the queue thread and the loop thread both step the core (runtime/rpc/runtime.h).
 */
#ifndef HOST_HOST_H
#define HOST_HOST_H

#include "runtime/base/store.h"
#include "runtime/model/call.h"
#include "runtime/rpc/runtime.h"
#include "runtime/rpc/server.h"

enum {
    HOST_EXPECT_MAX = 16 /* keys that a core is told of before their operations */
};

/* The face that every core has; the pointers get the core. `submit` and `cancel` may be NULL for a
 * core that takes no calls, `txn_done` for one that makes no transactions. `expect` (may be NULL):
 * operations on these 1..HOST_EXPECT_MAX keys are about to be submitted; changes nothing.
 * `responder` (may be NULL): who answers what does not reach the core. */
struct host_core_ops {
    void (*responder)(const void *core, struct model_responder *ret_responder);
    void (*expect)(const void *core, const struct rt_bytes *keys, size_t n_keys);
    void (*submit)(void *core, struct model_call *call);
    void (*cancel)(void *core, struct model_call *call);
    void (*call_done)(void *core, struct model_call *call);
    void (*txn_done)(void *core, struct store_txn *txn);
    void (*tick)(void *core);
    uint64_t (*next_wakeup_us)(const void *core);
    struct model_effects *(*effects)(void *core);
};

struct host_options {
    struct rpc_runtime *runtime;
    const struct host_core_ops *ops;
    void *core;
    /* Runs after each step, under the core's lock, on either thread: looks at the core and notes
     * what to do (posts jobs); must not block or step. May be NULL. */
    void (*after_step)(void *ctx);
    void *ctx;
};

struct host;

/* Loop thread or before run. The core is borrowed: it must live until host_free(). */
struct host *host_new(const struct host_options *options);

/* No outbound call is started any more: what the core still asks for is refused with CANCELLED.
 * To be called before rpc_runtime_stop(). Any thread. */
void host_stop(struct host *host);

/* After rpc_runtime_run() has returned and before rpc_runtime_free(). Inbound calls that the core
 * still holds are released: freeing the core must not touch them. Outbound calls have all come
 * back. Accepts NULL, returns NULL. */
struct host *host_free(struct host *host);

/* Where transactions go; before the first step. The store's on_done must be host_txn_done() with
 * the host as its context. */
void host_set_store(struct host *host, struct store *store);

/* Before the store is closed: transactions that are made from now on go nowhere, as in a crash, and
 * are freed with the host. Those that were submitted still complete. Loop thread. */
void host_drop_store(struct host *host);

void host_txn_done(struct store_txn *txn, void *host);

/* Runs fn(core, argument) as a step: under the lock, effects carried out. Any thread. */
void host_step(struct host *host, void (*fn)(void *core, void *argument), void *argument);

/* Runs fn(core, argument) under the lock without looking for effects: for reading. Any thread. */
void host_read(struct host *host, void (*fn)(void *core, void *argument), void *argument);

#endif
