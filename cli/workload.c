/*
 * Workloads: see workload.h. Invariant: a key is below n_keys, a size within its range. Pure.
 */
#include "cli/workload.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/model/limits.h"

/* ---- operations ------------------------------------------------------------------------------ */

void cli_workload_init(struct cli_workload *workload, const struct cli_workload_options *options)
{
    *workload = (struct cli_workload){.options = *options};
    rt_rng_seed(&workload->rng, options->seed);
    if (options->distribution == CLI_DISTRIBUTION_ZIPFIAN)
        rt_zipf_init(&workload->zipf, options->n_keys, options->zipf_s);
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
                             ? rt_zipf_draw(&workload->zipf, &workload->rng) - 1
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

    if (end == text || *end != '\0' || !(s > 0 && s <= RT_ZIPF_S_MAX))
        return rt_fail(err, RT_INVALID_ARGUMENT, "zipf-s '%s': a number above 0, at most %g", text,
                       RT_ZIPF_S_MAX);
    *ret_s = s;
    return RT_OK;
}
