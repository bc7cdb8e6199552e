/*
 * Fake environment: see fake_env.h. Invariant: time moves only when the test moves it. The test's
 * thread.
 */
#include "tests/support/fake_env.h"

enum {
    START_US = 1000000
};

static uint64_t fake_now_us(void *ctx)
{
    const struct test_env *fake = ctx;

    return fake->now_us;
}

static uint64_t fake_random(void *ctx)
{
    struct test_env *fake = ctx;

    return rt_rng_next(&fake->rng);
}

void test_env_init(struct test_env *fake, uint64_t seed)
{
    *fake = (struct test_env){.env = {.now_us = fake_now_us, .random = fake_random, .ctx = fake},
                              .now_us = START_US};
    rt_rng_seed(&fake->rng, seed);
}

void test_env_advance_us(struct test_env *fake, uint64_t us)
{
    fake->now_us += us;
}

void test_env_advance_ms(struct test_env *fake, uint64_t ms)
{
    test_env_advance_us(fake, ms * 1000);
}
