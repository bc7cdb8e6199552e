/*
 * What a core may ask of the world: the boot clock and randomness. Everything else that a core
 * wants (sends, commits, answers) leaves it as data (runtime/model/call.h).
 *
 * The server passes the real clock (runtime/rpc), the simulator a simulated one.
 */
#ifndef RT_BASE_ENV_H
#define RT_BASE_ENV_H

#include <stdint.h>

struct rt_env {
    /* Microseconds of CLOCK_BOOTTIME: only differences mean anything. */
    uint64_t (*now_us)(void *ctx);
    /* Uniform 64 bits. */
    uint64_t (*random)(void *ctx);
    void *ctx;
};

static inline uint64_t rt_env_now_us(const struct rt_env *env)
{
    return env->now_us(env->ctx);
}

static inline uint64_t rt_env_random(const struct rt_env *env)
{
    return env->random(env->ctx);
}

/* No wake-up wanted: what a core's next_wakeup_us() says when nothing is due. */
#define RT_NEVER UINT64_MAX

#endif
