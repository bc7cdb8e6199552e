/*
 * Condition variables: times that are reached, and what they carry over.
 */
#include "cli/condition.h"

#include <errno.h>

#include "runtime/base/compiler.h"
#include "tests/support/check.h"

TestSuite(condition, .fini = test_alloc_expect_none, .timeout = 20);

enum {
    NS_PER_S = 1000 * 1000 * 1000
};

static int64_t ns_of(const struct timespec *at)
{
    return (int64_t)at->tv_sec * NS_PER_S + at->tv_nsec;
}

/* Between the clock before and the clock behind. */
static void expect_in(uint64_t duration_us)
{
    struct timespec before, at, after;

    (void)clock_gettime(CLOCK_MONOTONIC, &before);
    at = cli_condition_time_in(duration_us);
    (void)clock_gettime(CLOCK_MONOTONIC, &after);
    cr_assert_geq(ns_of(&at) - ns_of(&before), (int64_t)duration_us * 1000);
    cr_assert_leq(ns_of(&at) - ns_of(&after), (int64_t)duration_us * 1000);
    cr_assert(at.tv_nsec >= 0 && at.tv_nsec < NS_PER_S, "%ld", at.tv_nsec);
}

Test(condition, times_carry_into_seconds)
{
    static const uint64_t durations_us[] = {0,       1,       999999,     1000000,
                                            1000001, 1999999, UINT32_MAX, 86400000000};

    for (size_t i = 0; i < RT_ARRAY_SIZE(durations_us); i++)
        expect_in(durations_us[i]);
}

Test(condition, waits_by_the_monotonic_clock)
{
    struct timespec at = cli_condition_time_in(1000);
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition;
    struct timespec after;
    int result = 0;

    cli_condition_init(&condition);
    (void)pthread_mutex_lock(&lock);
    while (result == 0)
        result = pthread_cond_timedwait(&condition, &lock, &at);
    (void)pthread_mutex_unlock(&lock);
    (void)clock_gettime(CLOCK_MONOTONIC, &after);
    cr_assert_eq(result, ETIMEDOUT);
    cr_assert_geq(ns_of(&after), ns_of(&at));
    (void)pthread_cond_destroy(&condition);
    (void)pthread_mutex_destroy(&lock);
}
