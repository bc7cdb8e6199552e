/*
 * Counts of whole numbers (microseconds, say) in buckets whose width grows with the number: exact
 * below 256, from there on within 1/128 of it. Its size is fixed, so recording never allocates and
 * histograms add up. Own code: Debian has no C library for it.
 *
 * A zeroed struct is an empty histogram; 35 kB, so not for the stack. Not thread safe.
 */
#ifndef CLI_HISTOGRAM_H
#define CLI_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum {
    CLI_HISTOGRAM_PRECISION_BITS = 7, /* buckets of each power of two: 2^7 */
    CLI_HISTOGRAM_VALUE_BITS = 40,    /* what needs more counts as the largest of these */
    CLI_HISTOGRAM_N_BUCKETS = (CLI_HISTOGRAM_VALUE_BITS - CLI_HISTOGRAM_PRECISION_BITS + 1)
                              << CLI_HISTOGRAM_PRECISION_BITS,
};

struct cli_histogram {
    uint64_t n;
    uint64_t max; /* exact, also of what is over the largest bucket */
    uint64_t buckets[CLI_HISTOGRAM_N_BUCKETS];
};

void cli_histogram_record(struct cli_histogram *histogram, uint64_t value);

void cli_histogram_add(struct cli_histogram *histogram, const struct cli_histogram *other);

/* The least number that at least `per_million` of all recorded ones do not exceed, up to the width
 * of its bucket; never more than max. 0 when nothing was recorded. per_million: 0..1,000,000. */
uint64_t cli_histogram_percentile(const struct cli_histogram *histogram, uint32_t per_million);

#endif
