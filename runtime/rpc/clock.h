/*
 * The real clock and randomness, and the only maker of gRPC deadlines. Any thread. Internal to
 * runtime/rpc; others use rpc_runtime_env().
 */
#ifndef RPC_CLOCK_H
#define RPC_CLOCK_H

#include <grpc/support/time.h>
#include <stdatomic.h>
#include <stdint.h>

#include "runtime/base/env.h"

struct rpc_clock {
    struct rt_env env;
    _Atomic uint64_t random_state;
};

/* Seeds from getrandom(2). `clock` must not move afterwards: env points into it. */
void rpc_clock_init(struct rpc_clock *clock);

/* Microseconds of CLOCK_BOOTTIME. */
uint64_t rpc_clock_now_us(void);

/* Monotonic; UINT32_MAX is the infinite future. */
gpr_timespec rpc_deadline_in_ms(uint32_t timeout_ms);

/* The boot-clock time of a deadline that core reports; RT_NEVER for the infinite future. */
uint64_t rpc_deadline_to_us(gpr_timespec deadline, uint64_t now_us);

#endif
