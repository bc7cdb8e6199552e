/*
 * Workloads: shares of keys against their known probabilities, the mix, sizes at their ends. Seeds
 * are fixed, so a share that holds once holds always.
 */
#include "cli/workload.h"

#include <math.h>

#include "runtime/base/alloc.h"
#include "runtime/model/limits.h"
#include "tests/support/check.h"

TestSuite(workload, .fini = test_alloc_expect_none);

enum {
    N_DRAWS = 400000,
    N_KEYS = 1000,
};

static void count_keys(const struct cli_workload_options *options, uint64_t counts[N_KEYS])
{
    struct cli_workload workload;
    struct cli_operation operation;

    cli_workload_init(&workload, options);
    for (uint64_t i = 0; i < N_DRAWS; i++) {
        cli_workload_next(&workload, &operation);
        cr_assert_lt(operation.key, options->n_keys);
        counts[operation.key]++;
    }
}

/* Within five standard deviations of what this probability gives. */
static void assert_share(uint64_t count, double probability)
{
    double expected = N_DRAWS * probability;
    double deviation = sqrt(expected * (1 - probability));

    cr_assert_leq(fabs((double)count - expected), 5 * deviation + 1,
                  "%llu draws where %.1f were expected", (unsigned long long)count, expected);
}

Test(workload, uniform_keys_have_equal_shares)
{
    struct cli_workload_options options = {.n_keys = N_KEYS, .seed = 1};
    uint64_t counts[N_KEYS] = {0};

    count_keys(&options, counts);
    for (size_t i = 0; i < N_KEYS; i++)
        assert_share(counts[i], 1.0 / N_KEYS);
}

/* How the ranks are drawn is tested with their module: here, that rank 1 is key 0. */
Test(workload, zipfian_keys_have_their_shares)
{
    struct cli_workload_options options = {
        .n_keys = 3, .distribution = CLI_DISTRIBUTION_ZIPFIAN, .zipf_s = 1, .seed = 7};
    uint64_t counts[N_KEYS] = {0};

    count_keys(&options, counts);
    for (uint64_t i = 0; i < options.n_keys; i++)
        assert_share(counts[i], 6.0 / 11 / (double)(i + 1));
}

static uint64_t count_reads(uint32_t percent)
{
    struct cli_workload_options options = {
        .n_keys = 10, .reads_percent = percent, .value_min = 1, .value_max = 1, .seed = 5};
    struct cli_workload workload;
    struct cli_operation operation;
    uint64_t n_reads = 0;

    cli_workload_init(&workload, &options);
    for (size_t i = 0; i < N_DRAWS; i++) {
        cli_workload_next(&workload, &operation);
        cr_assert_eq(operation.value_size, operation.is_read ? 0 : 1);
        n_reads += operation.is_read;
    }
    return n_reads;
}

Test(workload, mix)
{
    cr_assert_eq(count_reads(0), 0);
    cr_assert_eq(count_reads(100), N_DRAWS);
    assert_share(count_reads(1), 0.01);
    assert_share(count_reads(50), 0.5);
}

Test(workload, sizes_reach_both_ends)
{
    struct cli_workload_options options = {.n_keys = 1, .value_min = 3, .value_max = 6, .seed = 2};
    struct cli_workload workload;
    uint64_t counts[8] = {0};

    cli_workload_init(&workload, &options);
    for (size_t i = 0; i < N_DRAWS; i++)
        counts[cli_workload_value_size(&workload)]++;
    for (size_t i = 0; i < RT_ARRAY_SIZE(counts); i++)
        assert_share(counts[i], i >= 3 && i <= 6 ? 0.25 : 0);
}

Test(workload, equal_seeds_give_equal_sequences)
{
    struct cli_workload_options options = {
        .n_keys = 1000000, .reads_percent = 50, .value_max = 100, .seed = 11};
    struct cli_workload a;
    struct cli_workload b;
    bool differs = false;

    cli_workload_init(&a, &options);
    cli_workload_init(&b, &options);
    for (size_t i = 0; i < 100; i++) {
        struct cli_operation of_a;
        struct cli_operation of_b;

        cli_workload_next(&a, &of_a);
        cli_workload_next(&b, &of_b);
        cr_assert_eq(of_a.key, of_b.key);
        cr_assert_eq(of_a.is_read, of_b.is_read);
        cr_assert_eq(of_a.value_size, of_b.value_size);
    }
    options.seed = 12;
    cli_workload_init(&a, &options);
    for (size_t i = 0; i < 100; i++) {
        struct cli_operation of_a;
        struct cli_operation of_b;

        cli_workload_next(&a, &of_a);
        cli_workload_next(&b, &of_b);
        differs = differs || of_a.key != of_b.key;
    }
    cr_assert(differs);
}

static void assert_sizes(const char *text, uint32_t min, uint32_t max)
{
    uint32_t got_min = 77;
    uint32_t got_max = 77;

    cr_assert_eq(cli_workload_parse_sizes(text, &got_min, &got_max, NULL), RT_OK, "%s", text);
    cr_assert_eq(got_min, min);
    cr_assert_eq(got_max, max);
}

Test(workload, parses_sizes)
{
    static const char *const wrong[] = {"",      "-",           "1-",  "-1",      "2-1",
                                        "1-2-3", "1k",          " 1",  "1048577", "0-1048577",
                                        "+1",    "99999999999", "1 -2"};

    assert_sizes("0", 0, 0);
    assert_sizes("100", 100, 100);
    assert_sizes("0-1048576", 0, MODEL_VALUE_MAX);
    assert_sizes("1048576", MODEL_VALUE_MAX, MODEL_VALUE_MAX);
    for (size_t i = 0; i < RT_ARRAY_SIZE(wrong); i++) {
        struct rt_error err = RT_ERROR_INIT;
        uint32_t min;
        uint32_t max;

        cr_assert_eq(cli_workload_parse_sizes(wrong[i], &min, &max, &err), RT_INVALID_ARGUMENT,
                     "%s", wrong[i]);
        cr_assert_not_null(strstr(err.message, "1048576"));
    }
}

Test(workload, parses_exponents)
{
    static const char *const wrong[] = {"", "0", "-1", "10.01", "nan", "inf", "1x"};
    double s = 0;

    cr_assert_eq(cli_workload_parse_zipf_s("0.99", &s, NULL), RT_OK);
    cr_assert_float_eq(s, 0.99, 1e-12);
    cr_assert_eq(cli_workload_parse_zipf_s("10", &s, NULL), RT_OK);
    for (size_t i = 0; i < RT_ARRAY_SIZE(wrong); i++)
        cr_assert_eq(cli_workload_parse_zipf_s(wrong[i], &s, NULL), RT_INVALID_ARGUMENT, "%s",
                     wrong[i]);
}
