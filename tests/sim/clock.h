/*
 * A node's boot clock: an offset and a constant rate error against global simulated time. It runs
 * on while the node is paused, as CLOCK_BOOTTIME does.
 */
#ifndef SIM_CLOCK_H
#define SIM_CLOCK_H

#include <stdint.h>

struct sim_clock {
    uint64_t offset_us;
    int64_t rate_ppm; /* error of the rate: +10000 runs 1 % fast */
};

uint64_t sim_clock_local(const struct sim_clock *clock, uint64_t global_us);

/* The first global time at which the clock shows at least local_us; RT_NEVER stays. */
uint64_t sim_clock_global(const struct sim_clock *clock, uint64_t local_us);

#endif
