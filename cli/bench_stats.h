/*
 * What a load generator has measured, reads and updates apart, and how it is told. Pure; one
 * thread at a time.
 */
#ifndef CLI_BENCH_STATS_H
#define CLI_BENCH_STATS_H

#include "cli/context.h"
#include "cli/histogram.h"
#include "runtime/base/buffer.h"
#include "runtime/model/reason.h"

enum cli_bench_side {
    CLI_BENCH_READS,
    CLI_BENCH_UPDATES,
    CLI_BENCH_N_SIDES,
};

enum {
    CLI_BENCH_N_CODES = RT_UNAUTHENTICATED + 1
};

/* About 70 kB: on the heap, zeroed. */
struct cli_bench_stats {
    struct cli_histogram latency_us[CLI_BENCH_N_SIDES]; /* of what succeeded */
    uint64_t n_failed[CLI_BENCH_N_SIDES];
    uint64_t reasons[MODEL_N_REASONS]; /* failures by reason, */
    uint64_t codes[CLI_BENCH_N_CODES]; /* and those without one by code */
    uint64_t n_empty;                  /* reads that found no value; they succeeded */
    uint64_t n_not_begun;              /* open loop: due in time, but never anybody free for it */
    uint64_t elapsed_us;
    bool is_interrupted;
};

void cli_bench_stats_succeed(struct cli_bench_stats *stats, enum cli_bench_side side,
                             uint64_t latency_us);
void cli_bench_stats_fail(struct cli_bench_stats *stats, enum cli_bench_side side,
                          enum rt_code code, enum model_reason reason);

uint64_t cli_bench_stats_n_failed(const struct cli_bench_stats *stats);
uint64_t cli_bench_stats_n_done(const struct cli_bench_stats *stats);

/* Successes a second. */
double cli_bench_stats_rate(const struct cli_bench_stats *stats);

/* Complete lines. JSON: operations, rate, seconds, interrupted, not_begun, empty_reads, errors (by
 * reason), latency_us {p50, p90, p99, p999, max}, and operations, failed, latency_us of read and
 * update. */
void cli_bench_stats_append(const struct cli_bench_stats *stats, enum cli_output output,
                            struct rt_buffer *buffer);

#endif
