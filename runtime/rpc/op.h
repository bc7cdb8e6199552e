/*
 * A completion-queue tag. Embedded in the object that starts the batch; used for one batch at a
 * time. `armed` is the release/acquire pair that carries everything the starter wrote over to the
 * queue thread. ThreadSanitizer cannot see core's own ordering, which comes before the first look
 * at `armed`, so it is told of the hand-over as well. Internal to runtime/rpc.
 */
#ifndef RPC_OP_H
#define RPC_OP_H

#include <grpc/grpc.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "runtime/base/compiler.h"

#if defined(__SANITIZE_THREAD__)
#define RPC_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RPC_TSAN 1
#endif
#endif
#ifdef RPC_TSAN
#include <sanitizer/tsan_interface.h>
#define rpc_tsan_acquire(pointer) __tsan_acquire(pointer)
#define rpc_tsan_release(pointer) __tsan_release(pointer)
#else
#define rpc_tsan_acquire(pointer) ((void)(pointer))
#define rpc_tsan_release(pointer) ((void)(pointer))
#endif

struct rpc_op;
typedef void (*rpc_op_fn)(struct rpc_op *op, bool ok);

struct rpc_op {
    rpc_op_fn on_complete; /* queue thread; ok == false is a normal event */
    atomic_bool armed;
};

static inline void rpc_op_init(struct rpc_op *op, rpc_op_fn on_complete)
{
    op->on_complete = on_complete;
    atomic_init(&op->armed, false);
}

/* Right before the op is handed to core. */
static inline void rpc_op_arm(struct rpc_op *op)
{
    atomic_store_explicit(&op->armed, true, memory_order_release);
    rpc_tsan_release(op);
}

static inline void rpc_op_complete(struct rpc_op *op, bool ok)
{
    bool was_armed;

    rpc_tsan_acquire(op);
    was_armed = atomic_exchange_explicit(&op->armed, false, memory_order_acq_rel);
    rt_assert(was_armed);
    op->on_complete(op, ok);
}

/* Batches of one call are started under that call's lock. false: nothing was started. */
static inline bool rpc_op_start(struct rpc_op *op, grpc_call *call, const grpc_op *batch,
                                size_t n_batch)
{
    rpc_op_arm(op);
    if (grpc_call_start_batch(call, batch, n_batch, op, NULL) == GRPC_CALL_OK)
        return true;
    atomic_store_explicit(&op->armed, false, memory_order_relaxed);
    return false;
}

#endif
