/*
 * Random numbers: the published sequence, bounds, no bias; and the fake environment built on them.
 */
#include "runtime/base/rng.h"

#include "runtime/base/compiler.h"
#include "tests/support/check.h"
#include "tests/support/fake_env.h"

TestSuite(rng, .fini = test_alloc_expect_none);

Test(rng, splitmix64_of_seed_1234567)
{
    static const uint64_t expected[] = {6457827717110365317u, 3203168211198807973u,
                                        9817491932198370423u, 4593380528125082431u,
                                        16408922859458223821u};
    struct rt_rng rng;

    rt_rng_seed(&rng, 1234567);
    for (size_t i = 0; i < RT_ARRAY_SIZE(expected); i++)
        cr_assert_eq(rt_rng_next(&rng), expected[i]);
}

Test(rng, equal_seeds_give_equal_numbers)
{
    struct rt_rng a;
    struct rt_rng b;

    rt_rng_seed(&a, 7);
    rt_rng_seed(&b, 7);
    for (int i = 0; i < 100; i++)
        cr_assert_eq(rt_rng_below(&a, 1000), rt_rng_below(&b, 1000));
}

Test(rng, below_reaches_every_value_and_no_more)
{
    size_t counts[7] = {0};
    struct rt_rng rng;

    rt_rng_seed(&rng, 1);
    for (int i = 0; i < 70000; i++)
        counts[rt_rng_below(&rng, RT_ARRAY_SIZE(counts))]++;
    for (size_t i = 0; i < RT_ARRAY_SIZE(counts); i++) {
        cr_assert_gt(counts[i], 9500);
        cr_assert_lt(counts[i], 10500);
    }
}

Test(rng, below_at_its_bounds)
{
    struct rt_rng rng;
    size_t n_high = 0;

    rt_rng_seed(&rng, 1);
    cr_assert_eq(rt_rng_below(&rng, 1), 0);
    for (int i = 0; i < 1000; i++) {
        /* Without rejection half of the values would be below a third of the bound. */
        n_high += rt_rng_below(&rng, 3ull << 62) >= 1ull << 62;
        (void)rt_rng_below(&rng, UINT64_MAX);
    }
    cr_assert_gt(n_high, 600);
    cr_assert_lt(n_high, 730);
}

Test(rng, fake_environment)
{
    struct test_env fake;
    struct rt_rng rng;

    test_env_init(&fake, 9);
    rt_rng_seed(&rng, 9);
    cr_assert_eq(rt_env_random(&fake.env), rt_rng_next(&rng));
    cr_assert_eq(rt_env_now_us(&fake.env), 1000000);
    cr_assert_eq(rt_env_now_us(&fake.env), 1000000, "stands still");
    test_env_advance_us(&fake, 5);
    test_env_advance_ms(&fake, 2);
    cr_assert_eq(rt_env_now_us(&fake.env), 1002005);
    fake.now_us = 3;
    cr_assert_eq(rt_env_now_us(&fake.env), 3);
}
