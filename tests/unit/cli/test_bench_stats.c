/*
 * What a load generator tells: counts by side and reason, rates, the JSON object and the table.
 */
#include "cli/bench_stats.h"

#include <jansson.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "tests/support/check.h"

TestSuite(bench_stats, .fini = test_alloc_expect_none);

static struct cli_bench_stats *stats;
static struct rt_buffer buffer;

static void begin(void)
{
    stats = rt_xalloc(sizeof(*stats));
}

static void end(void)
{
    stats = rt_free(stats);
    rt_buffer_deinit(&buffer);
}

static const char *told(enum cli_output output)
{
    cli_bench_stats_append(stats, output, &buffer);
    return rt_buffer_string(&buffer);
}

static json_t *told_json(void)
{
    json_t *root = json_loads(told(CLI_OUTPUT_JSON), 0, NULL);

    cr_assert_not_null(root);
    return root;
}

static long long number(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    cr_assert(json_is_integer(value), "%s is missing", name);
    return json_integer_value(value);
}

Test(bench_stats, nothing_measured)
{
    json_t *root;

    begin();
    root = told_json();
    cr_assert_eq(number(root, "operations"), 0);
    cr_assert_eq(json_number_value(json_object_get(root, "rate")), 0);
    cr_assert_eq(json_object_size(json_object_get(root, "errors")), 0);
    cr_assert_eq(number(json_object_get(root, "latency_us"), "max"), 0);
    json_decref(root);
    end();
}

Test(bench_stats, rates_count_successes)
{
    begin();
    for (int i = 0; i < 300; i++)
        cli_bench_stats_succeed(stats, i % 2, 10);
    cli_bench_stats_fail(stats, CLI_BENCH_READS, RT_UNAVAILABLE, MODEL_REASON_NONE);
    stats->elapsed_us = 2000000;
    cr_assert_eq(cli_bench_stats_n_done(stats), 300);
    cr_assert_eq(cli_bench_stats_n_failed(stats), 1);
    cr_assert_float_eq(cli_bench_stats_rate(stats), 150, 1e-9);
    end();
}

Test(bench_stats, json_has_both_sides_and_their_sum)
{
    json_t *root;
    json_t *all;
    json_t *read;
    json_t *update;

    begin();
    for (int i = 0; i < 9; i++)
        cli_bench_stats_succeed(stats, CLI_BENCH_READS, 10);
    cli_bench_stats_succeed(stats, CLI_BENCH_UPDATES, 200);
    cli_bench_stats_fail(stats, CLI_BENCH_UPDATES, RT_FAILED_PRECONDITION,
                         MODEL_REASON_LOCK_FENCED);
    stats->elapsed_us = 500000;
    stats->n_empty = 3;
    stats->n_not_begun = 4;
    stats->is_interrupted = true;
    root = told_json();
    all = json_object_get(root, "latency_us");
    read = json_object_get(root, "read");
    update = json_object_get(root, "update");
    cr_assert_eq(number(root, "operations"), 10);
    cr_assert_float_eq(json_number_value(json_object_get(root, "rate")), 20, 1e-6);
    cr_assert_float_eq(json_number_value(json_object_get(root, "seconds")), 0.5, 1e-6);
    cr_assert(json_is_true(json_object_get(root, "interrupted")));
    cr_assert_eq(number(root, "not_begun"), 4);
    cr_assert_eq(number(root, "empty_reads"), 3);
    cr_assert_eq(number(all, "p50"), 10);
    cr_assert_eq(number(all, "p90"), 10);
    cr_assert_eq(number(all, "p99"), 200);
    cr_assert_eq(number(all, "p999"), 200);
    cr_assert_eq(number(all, "max"), 200);
    cr_assert_eq(number(read, "operations"), 9);
    cr_assert_eq(number(read, "failed"), 0);
    cr_assert_eq(number(json_object_get(read, "latency_us"), "max"), 10);
    cr_assert_eq(number(update, "operations"), 1);
    cr_assert_eq(number(update, "failed"), 1);
    cr_assert_eq(number(json_object_get(root, "errors"), "LOCK_FENCED"), 1);
    json_decref(root);
    end();
}

/* Some reasons are named as the code that stands in where there is none. */
Test(bench_stats, one_name_is_one_member)
{
    json_t *errors;
    json_t *root;

    begin();
    cli_bench_stats_fail(stats, CLI_BENCH_READS, RT_DEADLINE_EXCEEDED,
                         MODEL_REASON_DEADLINE_EXCEEDED);
    cli_bench_stats_fail(stats, CLI_BENCH_READS, RT_DEADLINE_EXCEEDED, MODEL_REASON_NONE);
    cli_bench_stats_fail(stats, CLI_BENCH_READS, RT_UNAVAILABLE, MODEL_REASON_NONE);
    root = told_json();
    errors = json_object_get(root, "errors");
    cr_assert_eq(json_object_size(errors), 2);
    cr_assert_eq(number(errors, "DEADLINE_EXCEEDED"), 2);
    cr_assert_eq(number(errors, "UNAVAILABLE"), 1);
    json_decref(root);
    end();
}

Test(bench_stats, codes_past_the_last_are_unknown)
{
    begin();
    cli_bench_stats_fail(stats, CLI_BENCH_READS, RT_UNAUTHENTICATED, MODEL_REASON_NONE);
    cli_bench_stats_fail(stats, CLI_BENCH_READS, (enum rt_code)(RT_UNAUTHENTICATED + 1),
                         MODEL_REASON_NONE);
    cr_assert_eq(stats->codes[RT_UNAUTHENTICATED], 1);
    cr_assert_eq(stats->codes[RT_UNKNOWN], 1);
    end();
}

Test(bench_stats, text)
{
    begin();
    cli_bench_stats_succeed(stats, CLI_BENCH_UPDATES, 200);
    cli_bench_stats_fail(stats, CLI_BENCH_UPDATES, RT_FAILED_PRECONDITION,
                         MODEL_REASON_LOCK_FENCED);
    stats->elapsed_us = 500000;
    stats->n_not_begun = 4;
    cr_assert_str_eq(told(CLI_OUTPUT_TEXT),
                     "2.0 operations/s for 0.50 s\n"
                     "\n"
                     "OPERATION  DONE  FAILED  P50  P90  P99  P99.9  MAX (us)\n"
                     "update        1       1  200  200  200    200       200\n"
                     "all           1       1  200  200  200    200       200\n"
                     "\n"
                     "failed with LOCK_FENCED: 1\n"
                     "\n"
                     "the rate was not reached: 4 operations were due and never began\n");
    end();
}
