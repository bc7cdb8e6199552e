/*
 * Clock: see clock.h. CLOCK_BOOTTIME keeps counting in suspend, so that leases do; gRPC's deadlines
 * are CLOCK_MONOTONIC. Any thread: the random state is one atomic counter.
 */
#include "runtime/rpc/clock.h"

#include <sys/random.h>
#include <time.h>

#include "runtime/base/compiler.h"
#include "runtime/base/rng.h"

enum {
    US_PER_S = 1000 * 1000,
    NS_PER_US = 1000,
};

/* Weyl step of splitmix64: consecutive states of one generator are this far apart. */
static const uint64_t RANDOM_STEP = 0x9e3779b97f4a7c15u;

uint64_t rpc_clock_now_us(void)
{
    struct timespec now;
    int result = clock_gettime(CLOCK_BOOTTIME, &now);

    rt_assert(result == 0);
    return (uint64_t)now.tv_sec * US_PER_S + (uint64_t)now.tv_nsec / NS_PER_US;
}

static uint64_t env_now_us(void *ctx)
{
    (void)ctx;
    return rpc_clock_now_us();
}

static uint64_t env_random(void *ctx)
{
    struct rpc_clock *clock = ctx;
    struct rt_rng rng;

    rt_rng_seed(&rng, atomic_fetch_add(&clock->random_state, RANDOM_STEP));
    return rt_rng_next(&rng);
}

void rpc_clock_init(struct rpc_clock *clock)
{
    uint64_t seed = 0;
    ssize_t size = getrandom(&seed, sizeof(seed), 0);

    rt_assert(size == sizeof(seed));
    atomic_init(&clock->random_state, seed);
    clock->env = (struct rt_env){.now_us = env_now_us, .random = env_random, .ctx = clock};
}

gpr_timespec rpc_deadline_in_ms(uint32_t timeout_ms)
{
    if (timeout_ms == UINT32_MAX)
        return gpr_inf_future(GPR_CLOCK_MONOTONIC);
    return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                        gpr_time_from_millis(timeout_ms, GPR_TIMESPAN));
}

uint64_t rpc_deadline_to_us(gpr_timespec deadline, uint64_t now_us)
{
    gpr_timespec infinite = gpr_inf_future(deadline.clock_type);
    gpr_timespec left;

    if (gpr_time_cmp(deadline, infinite) == 0)
        return RT_NEVER;
    left = gpr_time_sub(deadline, gpr_now(deadline.clock_type));
    if (left.tv_sec < 0)
        return now_us;
    return now_us + (uint64_t)left.tv_sec * US_PER_S + (uint64_t)left.tv_nsec / NS_PER_US;
}
