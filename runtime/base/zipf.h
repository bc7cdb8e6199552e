/*
 * Zipfian ranks: rank k of 1..n is drawn with a probability ~ 1 / k^s. No table, a constant number
 * of steps for any n. Equal generators give equal sequences. Pure, re-entrant.
 */
#ifndef RT_BASE_ZIPF_H
#define RT_BASE_ZIPF_H

#include "runtime/base/rng.h"

#define RT_ZIPF_S_MAX     10.0
#define RT_ZIPF_S_DEFAULT 0.99 /* what load generators have made the custom */

/* Fields are private. */
struct rt_zipf {
    double n;
    double s;
    double area_first; /* bounds of the area that is drawn from, */
    double area_last;
    double always; /* and how near to a rank its draw needs no test */
};

/* n from 1 to 2^53; s above 0, at most RT_ZIPF_S_MAX. */
void rt_zipf_init(struct rt_zipf *zipf, uint64_t n, double s);

/* 1..n, 1 the most frequent one. */
uint64_t rt_zipf_draw(const struct rt_zipf *zipf, struct rt_rng *rng);

#endif
