/*
 * Seeded pseudo-random numbers (splitmix64): equal seeds give equal sequences on every machine.
 * Not for secrets.
 */
#ifndef RT_BASE_RNG_H
#define RT_BASE_RNG_H

#include <stdint.h>

struct rt_rng {
    uint64_t state;
};

static inline void rt_rng_seed(struct rt_rng *rng, uint64_t seed)
{
    rng->state = seed;
}

/* Uniform 64 bits. Constants: Steele, Lea and Flood, "Fast splittable pseudorandom number
 * generators", 2014. */
static inline uint64_t rt_rng_next(struct rt_rng *rng)
{
    uint64_t z = (rng->state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Uniform in [0, bound), bound >= 1, without modulo bias (multiply and reject). */
static inline uint64_t rt_rng_below(struct rt_rng *rng, uint64_t bound)
{
    uint64_t threshold = -bound % bound;
    uint64_t value;

    do
        value = rt_rng_next(rng);
    while (value < threshold);
    return value % bound;
}

#endif
