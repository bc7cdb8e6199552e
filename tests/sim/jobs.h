/*
 * Many seeds, spread over processes.
 */
#ifndef SIM_JOBS_H
#define SIM_JOBS_H

#include <stdint.h>
#include <stdio.h>

#include "tests/sim/options.h"
#include "tests/sim/stats.h"

enum {
    SIM_FAILED_SEEDS_MAX = 16
};

struct sim_outcome {
    struct sim_stats stats;
    uint64_t failed_seeds[SIM_FAILED_SEEDS_MAX]; /* the first ones, ascending */
    uint64_t n_failed_seeds;                     /* that are listed */
    double seconds;
};

/* `program` is for replay commands. Violations are printed to `out` as they are found. INTERNAL
 * when a process could not be started or died. */
RT_MUST_USE enum rt_code sim_jobs_run(const struct sim_cli *cli, const char *program, FILE *out,
                                      struct sim_outcome *ret_outcome, struct rt_error *err);

/* One line a figure, or one JSON object. */
void sim_jobs_print(const struct sim_cli *cli, const struct sim_outcome *outcome, FILE *out);

#endif
