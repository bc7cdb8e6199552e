/*
 * Measurements: see bench_stats.h. Invariant: every failure is counted once by side and once by
 * reason or code. Pure.
 */
#include "cli/bench_stats.h"

#include "cli/table.h"
#include "runtime/base/alloc.h"
#include "runtime/base/json.h"

static const struct {
    const char *json;
    const char *title;
    uint32_t per_million;
} percentiles[] = {
    {"p50", "P50", 500000},
    {"p90", "P90", 900000},
    {"p99", "P99", 990000},
    {"p999", "P99.9", 999000},
};

static const char *const side_names[] = {"read", "update"};

void cli_bench_stats_succeed(struct cli_bench_stats *stats, enum cli_bench_side side,
                             uint64_t latency_us)
{
    cli_histogram_record(&stats->latency_us[side], latency_us);
}

void cli_bench_stats_fail(struct cli_bench_stats *stats, enum cli_bench_side side,
                          enum rt_code code, enum model_reason reason)
{
    stats->n_failed[side]++;
    if (reason != MODEL_REASON_NONE)
        stats->reasons[reason]++;
    else
        stats->codes[(size_t)code < RT_ARRAY_SIZE(stats->codes) ? code : RT_UNKNOWN]++;
}

uint64_t cli_bench_stats_n_failed(const struct cli_bench_stats *stats)
{
    return stats->n_failed[CLI_BENCH_READS] + stats->n_failed[CLI_BENCH_UPDATES];
}

uint64_t cli_bench_stats_n_done(const struct cli_bench_stats *stats)
{
    return stats->latency_us[CLI_BENCH_READS].n + stats->latency_us[CLI_BENCH_UPDATES].n;
}

double cli_bench_stats_rate(const struct cli_bench_stats *stats)
{
    if (stats->elapsed_us == 0)
        return 0;
    return (double)cli_bench_stats_n_done(stats) * 1e6 / (double)stats->elapsed_us;
}

/* ---- by reason ------------------------------------------------------------------------------- */

/* The i-th kind of failure: how often it was, and its name. False past the last. */
static bool nth_failure(const struct cli_bench_stats *stats, size_t i, uint64_t *ret_n,
                        const char **ret_name)
{
    if (i < MODEL_N_REASONS) {
        *ret_n = stats->reasons[i];
        *ret_name = model_reason_name((enum model_reason)i);
        return true;
    }
    i -= MODEL_N_REASONS;
    if (i >= RT_ARRAY_SIZE(stats->codes))
        return false;
    *ret_n = stats->codes[i];
    *ret_name = rt_code_name((enum rt_code)i);
    return true;
}

/* A reason and a code may have the same name. */
static uint64_t count_of(const struct cli_bench_stats *stats, const char *name, size_t from)
{
    const char *other;
    uint64_t sum = 0;
    uint64_t n;

    for (size_t i = from; nth_failure(stats, i, &n, &other); i++)
        if (strcmp(name, other) == 0)
            sum += n;
    return sum;
}

static bool is_first(const struct cli_bench_stats *stats, const char *name, size_t before)
{
    const char *other;
    uint64_t n;

    for (size_t i = 0; i < before && nth_failure(stats, i, &n, &other); i++)
        if (n > 0 && strcmp(name, other) == 0)
            return false;
    return true;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void append_json_latency(struct rt_json *json, const struct cli_histogram *histogram)
{
    rt_json_object_begin(json, "latency_us");
    for (size_t i = 0; i < RT_ARRAY_SIZE(percentiles); i++)
        rt_json_u64(json, percentiles[i].json,
                    cli_histogram_percentile(histogram, percentiles[i].per_million));
    rt_json_u64(json, "max", histogram->max);
    rt_json_object_end(json);
}

static void append_json(const struct cli_bench_stats *stats, const struct cli_histogram *all,
                        struct rt_buffer *buffer)
{
    struct rt_json json;
    const char *name;
    uint64_t n;

    rt_json_init(&json, buffer);
    rt_json_object_begin(&json, NULL);
    rt_json_u64(&json, "operations", all->n);
    rt_json_double(&json, "rate", cli_bench_stats_rate(stats));
    rt_json_double(&json, "seconds", (double)stats->elapsed_us / 1e6);
    rt_json_bool(&json, "interrupted", stats->is_interrupted);
    rt_json_u64(&json, "not_begun", stats->n_not_begun);
    rt_json_u64(&json, "empty_reads", stats->n_empty);
    rt_json_object_begin(&json, "errors");
    for (size_t i = 0; nth_failure(stats, i, &n, &name); i++)
        if (n > 0 && is_first(stats, name, i))
            rt_json_u64(&json, name, count_of(stats, name, i));
    rt_json_object_end(&json);
    append_json_latency(&json, all);
    for (int side = 0; side < CLI_BENCH_N_SIDES; side++) {
        rt_json_object_begin(&json, side_names[side]);
        rt_json_u64(&json, "operations", stats->latency_us[side].n);
        rt_json_u64(&json, "failed", stats->n_failed[side]);
        append_json_latency(&json, &stats->latency_us[side]);
        rt_json_object_end(&json);
    }
    rt_json_object_end(&json);
    rt_buffer_append_byte(buffer, '\n');
}

/* ---- text ------------------------------------------------------------------------------------ */

static void add_row(struct cli_table *table, const char *name, uint64_t n_failed,
                    const struct cli_histogram *histogram)
{
    cli_table_add_string(table, name);
    cli_table_add_number(table, histogram->n);
    cli_table_add_number(table, n_failed);
    for (size_t i = 0; i < RT_ARRAY_SIZE(percentiles); i++)
        cli_table_add_number(table,
                             cli_histogram_percentile(histogram, percentiles[i].per_million));
    cli_table_add_number(table, histogram->max);
}

static void append_table(const struct cli_bench_stats *stats, const struct cli_histogram *all,
                         struct rt_buffer *buffer)
{
    struct cli_table_column columns[4 + RT_ARRAY_SIZE(percentiles)] = {
        {.title = "OPERATION"},
        {.title = "DONE", .is_number = true},
        {.title = "FAILED", .is_number = true},
    };
    struct cli_table table;

    for (size_t i = 0; i < RT_ARRAY_SIZE(percentiles); i++)
        columns[3 + i] = (struct cli_table_column){percentiles[i].title, true};
    columns[3 + RT_ARRAY_SIZE(percentiles)] = (struct cli_table_column){"MAX (us)", true};
    cli_table_init(&table, columns, RT_ARRAY_SIZE(columns));
    for (int side = 0; side < CLI_BENCH_N_SIDES; side++)
        if (stats->latency_us[side].n + stats->n_failed[side] > 0)
            add_row(&table, side_names[side], stats->n_failed[side], &stats->latency_us[side]);
    add_row(&table, "all", cli_bench_stats_n_failed(stats), all);
    cli_table_append(&table, buffer);
    cli_table_deinit(&table);
}

static void append_text(const struct cli_bench_stats *stats, const struct cli_histogram *all,
                        struct rt_buffer *buffer)
{
    const char *name;
    uint64_t n;

    rt_buffer_printf(buffer, "%.1f operations/s for %.2f s%s\n\n", cli_bench_stats_rate(stats),
                     (double)stats->elapsed_us / 1e6, stats->is_interrupted ? ", interrupted" : "");
    append_table(stats, all, buffer);
    if (cli_bench_stats_n_failed(stats) > 0)
        rt_buffer_append_byte(buffer, '\n');
    for (size_t i = 0; nth_failure(stats, i, &n, &name); i++)
        if (n > 0 && is_first(stats, name, i))
            rt_buffer_printf(buffer, "failed with %s: %llu\n", name,
                             (unsigned long long)count_of(stats, name, i));
    if (stats->n_empty > 0)
        rt_buffer_printf(buffer, "\nreads that found no value: %llu\n",
                         (unsigned long long)stats->n_empty);
    if (stats->n_not_begun > 0)
        rt_buffer_printf(buffer,
                         "\nthe rate was not reached: %llu operations were due and never began\n",
                         (unsigned long long)stats->n_not_begun);
}

void cli_bench_stats_append(const struct cli_bench_stats *stats, enum cli_output output,
                            struct rt_buffer *buffer)
{
    struct cli_histogram *all = rt_xalloc(sizeof(*all));

    for (int side = 0; side < CLI_BENCH_N_SIDES; side++)
        cli_histogram_add(all, &stats->latency_us[side]);
    if (output == CLI_OUTPUT_JSON)
        append_json(stats, all, buffer);
    else
        append_text(stats, all, buffer);
    (void)rt_free(all);
}
