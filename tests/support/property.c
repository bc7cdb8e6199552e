/*
 * Property tests: see property.h. Invariant: what shrink() returns fails, as what it was given did.
 */
#include "tests/support/property.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/rng.h"

/* Without the `n` steps from `at` on. */
static size_t without(const uint64_t *steps, size_t n_steps, size_t at, size_t n,
                      uint64_t *ret_shorter)
{
    memcpy(ret_shorter, steps, at * sizeof(*steps));
    memcpy(ret_shorter + at, steps + at + n, (n_steps - at - n) * sizeof(*steps));
    return n_steps - n;
}

static size_t drop_steps(test_property_fn property, uint64_t *steps, size_t n_steps)
{
    uint64_t shorter[TEST_PROPERTY_STEPS_MAX];

    for (size_t n = n_steps; n > 0; n /= 2) {
        for (size_t at = 0; at + n <= n_steps;) {
            size_t n_shorter = without(steps, n_steps, at, n, shorter);

            if (property(shorter, n_shorter)) {
                at += n;
                continue;
            }
            memcpy(steps, shorter, n_shorter * sizeof(*steps));
            n_steps = n_shorter;
        }
    }
    return n_steps;
}

enum {
    N_SMALL = 16,
    N_SMALLER = N_SMALL + 4
};

/* Smaller numbers than `number`, most of them: the smallest first, then parts of it. */
static uint64_t smaller(uint64_t number, unsigned i)
{
    if (i < N_SMALL)
        return i;
    return i == N_SMALL ? number / 2 : number & (UINT64_MAX >> (64 - (i - N_SMALL) * 12));
}

static bool make_smaller(test_property_fn property, uint64_t *steps, size_t n_steps)
{
    bool changed = false;

    for (size_t i = 0; i < n_steps; i++) {
        for (unsigned k = 0; k < N_SMALLER; k++) {
            uint64_t before = steps[i];

            if (smaller(before, k) >= before)
                continue;
            steps[i] = smaller(before, k);
            if (property(steps, n_steps))
                steps[i] = before;
            else
                changed = true;
        }
    }
    return changed;
}

size_t test_property_shrink(test_property_fn property, uint64_t *steps, size_t n_steps)
{
    do
        n_steps = drop_steps(property, steps, n_steps);
    while (make_smaller(property, steps, n_steps));
    return n_steps;
}

static const char *report(uint64_t seed, size_t number, const uint64_t *steps, size_t n_steps)
{
    static char text[4096];
    size_t size = (size_t)snprintf(text, sizeof(text),
                                   "seed %" PRIu64 ", case %zu, shortened:", seed, number);

    for (size_t i = 0; i < n_steps && size < sizeof(text); i++)
        size += (size_t)snprintf(text + size, sizeof(text) - size, " %" PRIu64, steps[i]);
    return text;
}

const char *test_property_fails(test_property_fn property, uint64_t seed, size_t n_cases)
{
    uint64_t steps[TEST_PROPERTY_STEPS_MAX];
    struct rt_rng rng;

    rt_rng_seed(&rng, seed);
    for (size_t number = 0; number < n_cases; number++) {
        size_t n_steps = 1 + (size_t)rt_rng_below(&rng, TEST_PROPERTY_STEPS_MAX);

        for (size_t i = 0; i < n_steps; i++)
            steps[i] = rt_rng_next(&rng);
        if (!property(steps, n_steps))
            return report(seed, number, steps, test_property_shrink(property, steps, n_steps));
    }
    return NULL;
}
