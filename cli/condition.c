/*
 * Condition variables: see condition.h. No state, any thread.
 */
#include "cli/condition.h"

#include "runtime/base/compiler.h"

enum {
    US_PER_S = 1000 * 1000,
    NS_PER_US = 1000,
    NS_PER_S = 1000 * 1000 * 1000,
};

void cli_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    int result = pthread_condattr_init(&attributes);

    rt_assert(result == 0);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    result = pthread_cond_init(condition, &attributes);
    rt_assert(result == 0);
    (void)pthread_condattr_destroy(&attributes);
}

struct timespec cli_condition_time_in(uint64_t duration_us)
{
    struct timespec at;

    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_nsec += (long)(duration_us % US_PER_S) * NS_PER_US;
    at.tv_sec += (time_t)(duration_us / US_PER_S) + at.tv_nsec / NS_PER_S;
    at.tv_nsec %= NS_PER_S;
    return at;
}
