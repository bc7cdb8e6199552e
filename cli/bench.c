/*
 * The verb bench: its options, and what they mean together. One thread; the run has more.
 */
#include "cli/bench.h"

#include <unistd.h>

#include "cli/bench_run.h"
#include "cli/pace.h"
#include "cli/report.h"
#include "runtime/base/alloc.h"
#include "runtime/model/limits.h"

#define OPERATIONS_MAX UINT64_C(1000000000000)

enum operation {
    OPERATION_SET,
    OPERATION_PUT,
};

struct config {
    enum cli_bench_path path;
    enum operation operation;
    uint64_t reads;
    enum cli_distribution distribution;
    const char *zipf_s;
    uint64_t keys;
    const char *key_prefix;
    const char *value_size;
    uint64_t batch;
    uint64_t concurrency;
    uint64_t connections;
    uint64_t rate;
    uint64_t operations;
    uint64_t duration_ms;
    uint64_t warmup_ms;
    uint64_t seed;
};

static const char *const paths[] = {"routed", "direct", "pipelined", NULL};
static const char *const operations[] = {"set", "put", NULL};
static const char *const distributions[] = {"uniform", "zipfian", NULL};

static const struct rt_option options[] = {
    {.name = "path",
     .type = RT_OPTION_ENUM,
     .group = "Requests",
     .help = "Through the coordinator, straight to the owners, or to them in batches.",
     .names = paths,
     .initial = "direct",
     .offset = offsetof(struct config, path)},
    {.name = "batch",
     .type = RT_OPTION_U64,
     .group = "Requests",
     .help = "Operations of a request on the pipelined path.",
     .initial = "64",
     .min = 1,
     .max = MODEL_PIPELINE_OPERATIONS_MAX,
     .offset = offsetof(struct config, batch)},
    {.name = "concurrency",
     .type = RT_OPTION_U64,
     .group = "Requests",
     .help = "Requests under way at a time.",
     .initial = "64",
     .min = 1,
     .max = CLI_BENCH_CONCURRENCY_MAX,
     .offset = offsetof(struct config, concurrency)},
    {.name = "connections",
     .type = RT_OPTION_U64,
     .group = "Requests",
     .help = "Connections to each server; requests are spread over them.",
     .initial = "1",
     .min = 1,
     .max = CLI_BENCH_CONNECTIONS_MAX,
     .offset = offsetof(struct config, connections)},
    {.name = "rate",
     .type = RT_OPTION_U64,
     .group = "Requests",
     .help = "Operations a second, each with its time, from which its latency counts; 0 = each "
             "request follows an answer.",
     .initial = "0",
     .max = CLI_PACE_RATE_MAX,
     .offset = offsetof(struct config, rate)},
    {.name = "reads",
     .type = RT_OPTION_U64,
     .group = "Operations",
     .help = "Percentage of reads; the others are updates.",
     .argument = "PERCENT",
     .initial = "50",
     .max = 100,
     .offset = offsetof(struct config, reads)},
    {.name = "operation",
     .type = RT_OPTION_ENUM,
     .group = "Operations",
     .help = "How updates are written: visible, or durable.",
     .names = operations,
     .initial = "set",
     .offset = offsetof(struct config, operation)},
    {.name = "keys",
     .type = RT_OPTION_U64,
     .group = "Operations",
     .help = "Number of keys. Each is PUT once before the load begins.",
     .initial = "10000",
     .min = 1,
     .max = CLI_BENCH_KEYS_MAX,
     .offset = offsetof(struct config, keys)},
    {.name = "key-prefix",
     .type = RT_OPTION_STRING,
     .group = "Operations",
     .help = "What the names of the keys begin with, at most 30 bytes; ten digits follow.",
     .initial = "bench-",
     .offset = offsetof(struct config, key_prefix)},
    {.name = "distribution",
     .type = RT_OPTION_ENUM,
     .group = "Operations",
     .help = "How often each key is used: all alike, or the first ones most.",
     .names = distributions,
     .initial = "uniform",
     .offset = offsetof(struct config, distribution)},
    {.name = "zipf-s",
     .type = RT_OPTION_STRING,
     .group = "Operations",
     .help = "Exponent of the zipfian distribution, above 0, at most 10.",
     .argument = "S",
     .initial = "0.99",
     .offset = offsetof(struct config, zipf_s)},
    {.name = "value-size",
     .type = RT_OPTION_STRING,
     .group = "Operations",
     .help = "Bytes of a value: one size, or a range of which every size is equally likely.",
     .argument = "N|MIN-MAX",
     .initial = "100",
     .offset = offsetof(struct config, value_size)},
    {.name = "seed",
     .type = RT_OPTION_U64,
     .group = "Operations",
     .help = "Equal seeds draw equal operations.",
     .initial = "1",
     .max = UINT64_MAX,
     .offset = offsetof(struct config, seed)},
    {.name = "duration",
     .type = RT_OPTION_DURATION,
     .group = "Length",
     .help = "How long to measure.",
     .initial = "10s",
     .min = 1,
     .max = 86400000,
     .offset = offsetof(struct config, duration_ms)},
    {.name = "operations",
     .type = RT_OPTION_U64,
     .group = "Length",
     .help = "End after so many operations, if the duration is not over before; 0 = no limit.",
     .initial = "0",
     .max = OPERATIONS_MAX,
     .offset = offsetof(struct config, operations)},
    {.name = "warmup",
     .type = RT_OPTION_DURATION,
     .group = "Length",
     .help = "Load that is not measured, before the duration.",
     .initial = "0",
     .max = 3600000,
     .offset = offsetof(struct config, warmup_ms)},
};

static enum rt_code check_prefix(const char *prefix, struct rt_error *err)
{
    if (strlen(prefix) > CLI_BENCH_PREFIX_MAX)
        return rt_fail(err, RT_INVALID_ARGUMENT, "key-prefix '%s': at most %d bytes", prefix,
                       CLI_BENCH_PREFIX_MAX);
    return RT_OK;
}

/* Requests and answers of a batch have limits of their own. */
static enum rt_code check_batch(const struct cli_bench_options *run, struct rt_error *err)
{
    uint64_t bytes = (uint64_t)run->batch * run->workload.value_max;

    if (bytes > MODEL_PIPELINE_VALUES_MAX)
        return rt_fail(err, RT_INVALID_ARGUMENT,
                       "batch %u of values of %u bytes: at most %d bytes together", run->batch,
                       run->workload.value_max, MODEL_PIPELINE_VALUES_MAX);
    return RT_OK;
}

static enum rt_code understand(const struct cli_context *context, const struct config *config,
                               struct cli_bench_options *ret_run, struct rt_error *err)
{
    bool is_pipelined = config->path == CLI_BENCH_PIPELINED;
    enum rt_code code;

    *ret_run = (struct cli_bench_options){
        .coordinator = context->common.coordinator,
        .path = config->path,
        .workload = {.n_keys = config->keys,
                     .distribution = config->distribution,
                     .reads_percent = (uint32_t)config->reads,
                     .seed = config->seed},
        .key_prefix = config->key_prefix,
        .is_durable = config->operation == OPERATION_PUT,
        .batch = is_pipelined ? (uint32_t)config->batch : 1,
        .concurrency = (uint32_t)config->concurrency,
        .n_connections = (uint32_t)config->connections,
        .rate = config->rate,
        .n_operations = config->operations,
        .warmup_us = config->warmup_ms * 1000,
        .duration_us = config->duration_ms * 1000,
        .timeout_ms = (uint32_t)context->common.timeout_ms,
        .progress = isatty(fileno(context->err)) ? context->err : NULL,
    };
    code = check_prefix(config->key_prefix, err);
    if (code == RT_OK)
        code = cli_workload_parse_zipf_s(config->zipf_s, &ret_run->workload.zipf_s, err);
    if (code == RT_OK)
        code = cli_workload_parse_sizes(config->value_size, &ret_run->workload.value_min,
                                        &ret_run->workload.value_max, err);
    return code == RT_OK ? check_batch(ret_run, err) : code;
}

static enum model_exit print(struct cli_context *context, const struct cli_bench_stats *stats)
{
    struct rt_buffer buffer = {0};
    enum model_exit result;

    cli_bench_stats_append(stats, context->common.output, &buffer);
    result = cli_report_result(context, &buffer);
    rt_buffer_deinit(&buffer);
    if (result != MODEL_EXIT_OK)
        return result;
    if (stats->is_interrupted)
        return MODEL_EXIT_INTERRUPTED;
    return cli_bench_stats_n_failed(stats) > 0 ? MODEL_EXIT_FAILED : MODEL_EXIT_OK;
}

static enum model_exit run_bench(struct cli_context *context, const char *const *arguments,
                                 const void *config)
{
    RT_CLEANUP(rt_freep) struct cli_bench_stats *stats = rt_xalloc(sizeof(*stats));
    RT_CLEANUP(rt_freep) struct model_response *failure = rt_xalloc(sizeof(*failure));
    struct cli_bench_options run;
    struct rt_error err = RT_ERROR_INIT;

    (void)arguments;
    if (understand(context, config, &run, &err) != RT_OK)
        return cli_report_usage(context, &err);
    if (!cli_bench_run(&run, stats, failure))
        return cli_report_failure(context, failure);
    return print(context, stats);
}

static const char *const bench_examples[] = {
    "redistinto bench --path pipelined --reads 50 --distribution zipfian",
    "redistinto bench --path routed --operation put --concurrency 16 --duration 30s -o json",
    "redistinto bench --rate 5000 --value-size 100-1000    # at a pace, not as fast as it goes",
    NULL,
};

const struct cli_verb cli_bench_verb = {
    .name = "bench",
    .arguments = "",
    .summary = "make load and measure how it is carried out",
    .description =
        "Puts every key once, which places it, then carries out reads and updates and prints "
        "how many a second, and how long they took: percentiles within 1 %, failures by reason. "
        "--timeout is for each request. Locked keys, and clusters that require locks, refuse the "
        "updates. No operation is repeated. An interrupt prints what was measured so far. Exit "
        "code 1: some operations failed.",
    .examples = bench_examples,
    .options = options,
    .n_options = RT_ARRAY_SIZE(options),
    .config_size = sizeof(struct config),
    .run = run_bench,
};
