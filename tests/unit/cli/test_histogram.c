/*
 * Histograms: exact where they promise it, within 1/128 elsewhere, at the ends of both.
 */
#include "cli/histogram.h"

#include "runtime/base/alloc.h"
#include "tests/support/check.h"

TestSuite(histogram, .fini = test_alloc_expect_none);

enum {
    MEDIAN = 500000,
    ALL = 1000000,
};

static struct cli_histogram *of_one(uint64_t value)
{
    struct cli_histogram *histogram = rt_xalloc(sizeof(*histogram));

    cli_histogram_record(histogram, value);
    return histogram;
}

/* What a histogram says of `value` when something larger is in it too, so that max helps nothing.
 */
static uint64_t told(uint64_t value)
{
    struct cli_histogram *histogram = of_one(value);
    uint64_t result;

    cli_histogram_record(histogram, UINT64_MAX);
    result = cli_histogram_percentile(histogram, MEDIAN);
    (void)rt_free(histogram);
    return result;
}

Test(histogram, empty_has_zeros)
{
    struct cli_histogram *histogram = rt_xalloc(sizeof(*histogram));

    cr_assert_eq(cli_histogram_percentile(histogram, MEDIAN), 0);
    cr_assert_eq(cli_histogram_percentile(histogram, ALL), 0);
    (void)rt_free(histogram);
}

Test(histogram, is_exact_below_256)
{
    for (uint64_t value = 0; value < 256; value++)
        cr_assert_eq(told(value), value);
    cr_assert_eq(told(256), 257, "the first bucket of two");
    cr_assert_eq(told(257), 257);
    cr_assert_eq(told(258), 259);
}

Test(histogram, is_never_below_and_within_a_128th_above)
{
    for (uint64_t value = 256; value < (uint64_t)1 << CLI_HISTOGRAM_VALUE_BITS;
         value += value / 97 + 1) {
        cr_assert_geq(told(value), value);
        cr_assert_leq(told(value) - value, value / 128);
    }
}

Test(histogram, one_value_is_its_own_maximum)
{
    struct cli_histogram *histogram = of_one(1000);

    cr_assert_eq(cli_histogram_percentile(histogram, 1), 1000);
    cr_assert_eq(cli_histogram_percentile(histogram, ALL), 1000);
    (void)rt_free(histogram);
}

Test(histogram, largest_bucket_and_past_it)
{
    uint64_t largest = ((uint64_t)1 << CLI_HISTOGRAM_VALUE_BITS) - 1;
    struct cli_histogram *histogram = of_one(UINT64_MAX);

    cr_assert_eq(told(largest), largest);
    cr_assert_eq(told(largest + 1), largest);
    cr_assert_eq(cli_histogram_percentile(histogram, ALL), largest);
    cr_assert_eq(histogram->max, UINT64_MAX);
    (void)rt_free(histogram);
}

Test(histogram, percentiles_count_from_below)
{
    struct cli_histogram *histogram = rt_xalloc(sizeof(*histogram));

    for (uint64_t value = 1; value <= 200; value++)
        cli_histogram_record(histogram, value);
    cr_assert_eq(cli_histogram_percentile(histogram, 0), 1);
    cr_assert_eq(cli_histogram_percentile(histogram, MEDIAN), 100);
    cr_assert_eq(cli_histogram_percentile(histogram, MEDIAN + 1), 101);
    cr_assert_eq(cli_histogram_percentile(histogram, 990000), 198);
    cr_assert_eq(cli_histogram_percentile(histogram, 999000), 200);
    (void)rt_free(histogram);
}

Test(histogram, adds_up)
{
    struct cli_histogram *sum = of_one(10);
    struct cli_histogram *other = of_one(3000);

    cli_histogram_add(sum, other);
    cr_assert_eq(sum->n, 2);
    cr_assert_eq(sum->max, 3000);
    cr_assert_eq(cli_histogram_percentile(sum, MEDIAN), 10);
    cr_assert_eq(cli_histogram_percentile(sum, ALL), 3000);
    (void)rt_free(sum);
    (void)rt_free(other);
}
