/*
 * The world of a core under test: a clock that stands still until it is set and a seeded random
 * generator. Owned by the test; pass &fake.env. Not thread safe.
 */
#ifndef TESTS_SUPPORT_FAKE_ENV_H
#define TESTS_SUPPORT_FAKE_ENV_H

#include <stdint.h>

#include "runtime/base/env.h"
#include "runtime/base/rng.h"

struct test_env {
    struct rt_env env;
    uint64_t now_us; /* may be written directly, backwards too */
    struct rt_rng rng;
};

/* The clock starts at one second, so that "now - something" does not wrap by accident. The
 * structure must not move afterwards: env.ctx points to it. */
void test_env_init(struct test_env *fake, uint64_t seed);

void test_env_advance_us(struct test_env *fake, uint64_t us);
void test_env_advance_ms(struct test_env *fake, uint64_t ms);

#endif
