/*
 * Boot clocks: see clock.h. Invariant: sim_clock_local() never falls as global time rises, and
 * sim_clock_global() is its exact lower inverse. Pure.
 */
#include "tests/sim/clock.h"

#include "runtime/base/env.h"

enum {
    MILLION = 1000000
};

uint64_t sim_clock_local(const struct sim_clock *clock, uint64_t global_us)
{
    int64_t drift = (int64_t)global_us * clock->rate_ppm / MILLION;

    return clock->offset_us + (uint64_t)((int64_t)global_us + drift);
}

uint64_t sim_clock_global(const struct sim_clock *clock, uint64_t local_us)
{
    uint64_t guess;

    if (local_us == RT_NEVER)
        return RT_NEVER;
    if (local_us <= clock->offset_us)
        return 0;
    guess = (local_us - clock->offset_us) * MILLION / (uint64_t)(MILLION + clock->rate_ppm);
    while (guess > 0 && sim_clock_local(clock, guess - 1) >= local_us)
        guess--;
    while (sim_clock_local(clock, guess) < local_us)
        guess++;
    return guess;
}
