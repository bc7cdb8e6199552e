/*
 * The verb `bench`: a load generator.
 */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "cli/verb.h"

extern const struct cli_verb cli_bench_verb;

#endif
