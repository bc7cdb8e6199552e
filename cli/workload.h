/*
 * What a load generator does next: which key, read or write, how large a value. Equal options give
 * equal sequences. Pure; one thread a workload.
 */
#ifndef CLI_WORKLOAD_H
#define CLI_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/error.h"
#include "runtime/base/rng.h"
#include "runtime/base/zipf.h"

enum cli_distribution {
    CLI_DISTRIBUTION_UNIFORM,
    CLI_DISTRIBUTION_ZIPFIAN, /* key i is drawn with a probability ~ 1 / (i + 1)^s */
};

struct cli_workload_options {
    uint64_t n_keys; /* >= 1 */
    enum cli_distribution distribution;
    double zipf_s;          /* above 0, at most RT_ZIPF_S_MAX */
    uint32_t reads_percent; /* 0..100 */
    uint32_t value_min;     /* bytes; sizes are uniform from here */
    uint32_t value_max;     /* to here */
    uint64_t seed;
};

struct cli_operation {
    uint64_t key; /* < n_keys */
    bool is_read;
    uint32_t value_size; /* of a write */
};

/* Fields are private. */
struct cli_workload {
    struct cli_workload_options options;
    struct rt_rng rng;
    struct rt_zipf zipf; /* of a zipfian distribution */
};

void cli_workload_init(struct cli_workload *workload, const struct cli_workload_options *options);

void cli_workload_next(struct cli_workload *workload, struct cli_operation *ret_operation);

/* The size of one more value. */
uint32_t cli_workload_value_size(struct cli_workload *workload);

/* What users write: "100" or "16-1024", at most MODEL_VALUE_MAX; "0.99". INVALID_ARGUMENT says
 * what is valid. */
RT_MUST_USE enum rt_code cli_workload_parse_sizes(const char *text, uint32_t *ret_min,
                                                  uint32_t *ret_max, struct rt_error *err);
RT_MUST_USE enum rt_code cli_workload_parse_zipf_s(const char *text, double *ret_s,
                                                   struct rt_error *err);

#endif
