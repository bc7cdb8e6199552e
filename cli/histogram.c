/*
 * Log-linear histogram: see histogram.h. Invariant: the buckets add up to n. Pure.
 */
#include "cli/histogram.h"

#include "runtime/base/compiler.h"

enum {
    N_LINEAR = 2 << CLI_HISTOGRAM_PRECISION_BITS, /* buckets of width one */
};

static const uint64_t largest = ((uint64_t)1 << CLI_HISTOGRAM_VALUE_BITS) - 1;

/* Bits that the bucket of this number leaves out. */
static unsigned shift_of(uint64_t value)
{
    return value < N_LINEAR ? 0
                            : 63 - (unsigned)__builtin_clzll(value) - CLI_HISTOGRAM_PRECISION_BITS;
}

static size_t bucket_of(uint64_t value)
{
    unsigned shift;

    if (value > largest)
        value = largest;
    shift = shift_of(value);
    return ((size_t)shift << CLI_HISTOGRAM_PRECISION_BITS) + (size_t)(value >> shift);
}

static uint64_t highest_of(size_t bucket)
{
    unsigned shift;
    uint64_t top;

    if (bucket < N_LINEAR)
        return bucket;
    shift = (unsigned)(bucket >> CLI_HISTOGRAM_PRECISION_BITS) - 1;
    top = bucket - ((size_t)shift << CLI_HISTOGRAM_PRECISION_BITS);
    return ((top + 1) << shift) - 1;
}

void cli_histogram_record(struct cli_histogram *histogram, uint64_t value)
{
    histogram->buckets[bucket_of(value)]++;
    histogram->n++;
    if (value > histogram->max)
        histogram->max = value;
}

void cli_histogram_add(struct cli_histogram *histogram, const struct cli_histogram *other)
{
    for (size_t i = 0; i < RT_ARRAY_SIZE(histogram->buckets); i++)
        histogram->buckets[i] += other->buckets[i];
    histogram->n += other->n;
    if (other->max > histogram->max)
        histogram->max = other->max;
}

/* Rounded up, and at least the first. */
static uint64_t rank_of(uint64_t n, uint32_t per_million)
{
    uint64_t whole = n / 1000000 * per_million;
    uint64_t rest = (n % 1000000 * per_million + 999999) / 1000000;

    return whole + rest == 0 ? 1 : whole + rest;
}

uint64_t cli_histogram_percentile(const struct cli_histogram *histogram, uint32_t per_million)
{
    uint64_t rank = rank_of(histogram->n, per_million);
    uint64_t seen = 0;

    for (size_t i = 0; i < RT_ARRAY_SIZE(histogram->buckets); i++) {
        seen += histogram->buckets[i];
        if (seen >= rank) {
            uint64_t highest = highest_of(i);

            return highest < histogram->max ? highest : histogram->max;
        }
    }
    return histogram->max;
}
