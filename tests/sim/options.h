/*
 * What the simulator binary was asked to do.
 */
#ifndef SIM_OPTIONS_H
#define SIM_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/error.h"

enum sim_format {
    SIM_FORMAT_TEXT,
    SIM_FORMAT_JSON,
};

struct sim_cli {
    uint64_t first_seed;
    uint64_t n_seeds;
    uint64_t n_jobs;
    enum sim_format format;
    bool trace;
    bool until_violation; /* stop at the first; with more than one job each stops at its own */
    bool twice;           /* run each seed twice and compare the hashes */
    bool hash;            /* print each seed's hash */
    bool help;
};

/* INVALID_ARGUMENT names the argument. */
RT_MUST_USE enum rt_code sim_options_parse(int argc, char **argv, struct sim_cli *ret_cli,
                                           struct rt_error *err);

extern const char sim_options_help[];

#endif
