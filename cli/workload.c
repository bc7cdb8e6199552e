/*
 * Workloads: see workload.h. Ranks of the zipfian distribution are drawn by rejection-inversion
 * (Hörmann and Derflinger, "Rejection-inversion to generate variates from monotone discrete
 * distributions", 1996): no table, a constant number of steps for any number of keys. Pure.
 */
#include "cli/workload.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/model/limits.h"

/* Uniform in [0, 1). */
static double unit(struct rt_rng *rng)
{
    return (double)(rt_rng_next(rng) >> 11) * 0x1p-53;
}

/* ---- zipfian --------------------------------------------------------------------------------- */

/* x^-s, its integral from 1, and the inverse of that; near s = 1 the quotients of the general form
 * lose all digits. */
static double weight(double x, double s)
{
    return pow(x, -s);
}

static double area(double x, double s)
{
    double log_x = log(x);
    double power = (1 - s) * log_x;

    return fabs(power) < 1e-8 ? log_x * (1 + power / 2) : expm1(power) / (1 - s);
}

static double inverse_area(double a, double s)
{
    double power = a * (1 - s);

    return fabs(power) < 1e-8 ? exp(a * (1 - power / 2)) : exp(log1p(power) / (1 - s));
}

static void prepare_zipf(struct cli_workload *workload)
{
    double s = workload->options.zipf_s;

    workload->area_first = area(1.5, s) - 1;
    workload->area_last = area((double)workload->options.n_keys + 0.5, s);
    workload->always = 2 - inverse_area(area(2.5, s) - weight(2, s), s);
}

/* 0 is the most frequent one. */
static uint64_t draw_rank(struct cli_workload *workload)
{
    double n = (double)workload->options.n_keys;
    double s = workload->options.zipf_s;

    for (;;) {
        double a = workload->area_last +
                   unit(&workload->rng) * (workload->area_first - workload->area_last);
        double x = inverse_area(a, s);
        double rank = floor(x + 0.5);

        rank = rank < 1 ? 1 : rank > n ? n : rank;
        if (rank - x <= workload->always || a >= area(rank + 0.5, s) - weight(rank, s))
            return (uint64_t)rank - 1;
    }
}

/* ---- operations ------------------------------------------------------------------------------ */

void cli_workload_init(struct cli_workload *workload, const struct cli_workload_options *options)
{
    *workload = (struct cli_workload){.options = *options};
    rt_rng_seed(&workload->rng, options->seed);
    if (options->distribution == CLI_DISTRIBUTION_ZIPFIAN)
        prepare_zipf(workload);
}

uint32_t cli_workload_value_size(struct cli_workload *workload)
{
    const struct cli_workload_options *options = &workload->options;
    uint32_t range = options->value_max - options->value_min;

    return range == 0 ? options->value_min
                      : options->value_min + (uint32_t)rt_rng_below(&workload->rng, range + 1);
}

void cli_workload_next(struct cli_workload *workload, struct cli_operation *ret_operation)
{
    const struct cli_workload_options *options = &workload->options;

    ret_operation->key = options->distribution == CLI_DISTRIBUTION_ZIPFIAN
                             ? draw_rank(workload)
                             : rt_rng_below(&workload->rng, options->n_keys);
    ret_operation->is_read =
        options->reads_percent > 0 && rt_rng_below(&workload->rng, 100) < options->reads_percent;
    ret_operation->value_size = ret_operation->is_read ? 0 : cli_workload_value_size(workload);
}

/* ---- what users write ------------------------------------------------------------------------ */

/* A size in decimal digits; NULL when there is none, else what follows. */
static const char *parse_size(const char *text, uint32_t *ret_size)
{
    size_t n = strspn(text, "0123456789");
    unsigned long size;

    if (n == 0 || n > 7)
        return NULL;
    size = strtoul(text, NULL, 10);
    if (size > MODEL_VALUE_MAX)
        return NULL;
    *ret_size = (uint32_t)size;
    return text + n;
}

enum rt_code cli_workload_parse_sizes(const char *text, uint32_t *ret_min, uint32_t *ret_max,
                                      struct rt_error *err)
{
    uint32_t min;
    uint32_t max;
    const char *rest = parse_size(text, &min);

    max = rest == NULL ? 0 : min;
    if (rest != NULL && *rest == '-')
        rest = parse_size(rest + 1, &max);
    if (rest == NULL || *rest != '\0' || max < min)
        return rt_fail(err, RT_INVALID_ARGUMENT,
                       "value-size '%s': N or MIN-MAX in bytes, at most %d", text, MODEL_VALUE_MAX);
    *ret_min = min;
    *ret_max = max;
    return RT_OK;
}

enum rt_code cli_workload_parse_zipf_s(const char *text, double *ret_s, struct rt_error *err)
{
    char *end;
    double s = strtod(text, &end);

    if (end == text || *end != '\0' || !(s > 0 && s <= CLI_WORKLOAD_ZIPF_S_MAX))
        return rt_fail(err, RT_INVALID_ARGUMENT, "zipf-s '%s': a number above 0, at most %g", text,
                       CLI_WORKLOAD_ZIPF_S_MAX);
    *ret_s = s;
    return RT_OK;
}
