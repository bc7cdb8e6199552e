/*
 * Zipfian ranks: see zipf.h. Drawn by rejection-inversion (Hörmann and Derflinger, "Rejection-
 * inversion to generate variates from monotone discrete distributions", 1996). Invariant: a draw is
 * within 1..n, whatever rounding does at the ends. Pure.
 */
#include "runtime/base/zipf.h"

#include <math.h>

/* Uniform in [0, 1). */
static double unit(struct rt_rng *rng)
{
    return (double)(rt_rng_next(rng) >> 11) * 0x1p-53;
}

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

void rt_zipf_init(struct rt_zipf *zipf, uint64_t n, double s)
{
    zipf->n = (double)n;
    zipf->s = s;
    zipf->area_first = area(1.5, s) - 1;
    zipf->area_last = area(zipf->n + 0.5, s);
    zipf->always = 2 - inverse_area(area(2.5, s) - weight(2, s), s);
}

uint64_t rt_zipf_draw(const struct rt_zipf *zipf, struct rt_rng *rng)
{
    for (;;) {
        double a = zipf->area_last + unit(rng) * (zipf->area_first - zipf->area_last);
        double x = inverse_area(a, zipf->s);
        double rank = floor(x + 0.5);

        rank = rank < 1 ? 1 : rank > zipf->n ? zipf->n : rank;
        if (rank - x <= zipf->always || a >= area(rank + 0.5, zipf->s) - weight(rank, zipf->s))
            return (uint64_t)rank;
    }
}
