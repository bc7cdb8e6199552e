/*
 * Property tests: a random sequence of steps against a naive model, and the shortest sequence that
 * still fails when one does. A property reads each step as it likes: any number must mean some
 * step, so that every part of a sequence is a sequence. One thread.
 */
#ifndef TESTS_SUPPORT_PROPERTY_H
#define TESTS_SUPPORT_PROPERTY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TEST_PROPERTY_STEPS_MAX = 512
};

/* Carries the steps out from a fresh start; false when model and code disagree. Leaves nothing
 * allocated, whatever it returns. */
typedef bool (*test_property_fn)(const uint64_t *steps, size_t n_steps);

/* Runs `n_cases` sequences of 1..TEST_PROPERTY_STEPS_MAX random steps. NULL when all hold, else the
 * shortened sequence as text, valid until the next call. */
const char *test_property_fails(test_property_fn property, uint64_t seed, size_t n_cases);

/* Makes a failing sequence shorter and its numbers smaller, as far as it goes on failing. */
size_t test_property_shrink(test_property_fn property, uint64_t *steps, size_t n_steps);

#endif
