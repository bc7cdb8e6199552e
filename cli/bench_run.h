/*
 * One run of the load generator: every key is PUT once, which places it; then operations are
 * drawn from the workload and carried out, so many requests at a time.
 */
#ifndef CLI_BENCH_RUN_H
#define CLI_BENCH_RUN_H

#include "cli/bench_stats.h"
#include "cli/workload.h"
#include "runtime/model/message.h"

enum cli_bench_path {
    CLI_BENCH_ROUTED,    /* Execute: the coordinator carries each statement to the owner */
    CLI_BENCH_DIRECT,    /* Route once, then single calls to the owner */
    CLI_BENCH_PIPELINED, /* the same in batches */
};

enum {
    CLI_BENCH_KEYS_MAX = 10 * 1000 * 1000,
    CLI_BENCH_CONCURRENCY_MAX = 1024,
    CLI_BENCH_CONNECTIONS_MAX = 256,
    CLI_BENCH_PREFIX_MAX = 30, /* bytes; ten digits follow, and classic keys have at most 40 */
};

/* Strings are borrowed. */
struct cli_bench_options {
    const char *coordinator;
    enum cli_bench_path path;
    struct cli_workload_options workload;
    const char *key_prefix;
    bool is_durable;      /* PUT instead of SET */
    uint32_t batch;       /* operations of a request: 1 but for PIPELINED */
    uint32_t concurrency; /* requests under way */
    uint32_t n_connections;
    uint64_t rate;         /* operations a second; 0 = as fast as answers come */
    uint64_t n_operations; /* measured ones; 0 = until the time is over */
    uint64_t warmup_us;    /* not measured, before the duration */
    uint64_t duration_us;
    uint32_t timeout_ms; /* of each request */
    FILE *progress;      /* a terminal; NULL = none */
};

/* Fills the statistics, zeroed by the caller, also with what an interrupted run had measured. False
 * when the run could not begin, or its session was lost: *ret_failure says why. */
RT_MUST_USE bool cli_bench_run(const struct cli_bench_options *options,
                               struct cli_bench_stats *stats, struct model_response *ret_failure);

#endif
