/*
 * Zipfian ranks: shares against their known probabilities. Seeds are fixed, so a share that holds
 * once holds always.
 */
#include "runtime/base/zipf.h"

#include <math.h>

#include "runtime/base/compiler.h"
#include "tests/support/check.h"

TestSuite(zipf, .fini = test_alloc_expect_none);

enum {
    N_DRAWS = 400000,
    N_RANKS = 1000,
};

/* Each rank within five standard deviations of what its probability gives. */
static void assert_shares(double s, uint64_t n)
{
    struct rt_zipf zipf;
    struct rt_rng rng;
    uint64_t counts[N_RANKS + 1] = {0};
    double sum = 0;

    rt_rng_seed(&rng, 7);
    rt_zipf_init(&zipf, n, s);
    for (uint64_t i = 0; i < N_DRAWS; i++) {
        uint64_t rank = rt_zipf_draw(&zipf, &rng);

        cr_assert(rank >= 1 && rank <= n);
        counts[rank]++;
    }
    for (uint64_t i = 1; i <= n; i++)
        sum += pow((double)i, -s);
    for (uint64_t i = 1; i <= n; i++) {
        double probability = pow((double)i, -s) / sum;
        double expected = N_DRAWS * probability;
        double deviation = sqrt(expected * (1 - probability));

        cr_assert_leq(fabs((double)counts[i] - expected), 5 * deviation + 1,
                      "s %g, n %llu, rank %llu: %llu draws where %.1f were expected", s,
                      (unsigned long long)n, (unsigned long long)i, (unsigned long long)counts[i],
                      expected);
    }
}

Test(zipf, ranks_have_their_shares)
{
    assert_shares(RT_ZIPF_S_DEFAULT, N_RANKS);
    assert_shares(1, N_RANKS);
    assert_shares(1 + 1e-12, N_RANKS);
    assert_shares(0.01, N_RANKS);
    assert_shares(2.5, N_RANKS);
    assert_shares(RT_ZIPF_S_MAX, N_RANKS);
    assert_shares(RT_ZIPF_S_DEFAULT, 2);
    assert_shares(RT_ZIPF_S_DEFAULT, 1);
}

Test(zipf, very_many_ranks_stay_within_them)
{
    static const uint64_t ns[] = {UINT32_MAX, UINT64_C(1) << 53};

    for (size_t k = 0; k < RT_ARRAY_SIZE(ns); k++) {
        struct rt_zipf zipf;
        struct rt_rng rng;
        uint64_t n_upper_half = 0;

        rt_rng_seed(&rng, 3);
        rt_zipf_init(&zipf, ns[k], 0.5);
        for (size_t i = 0; i < 10000; i++) {
            uint64_t rank = rt_zipf_draw(&zipf, &rng);

            cr_assert(rank >= 1 && rank <= ns[k]);
            n_upper_half += rank > ns[k] / 2;
        }
        /* 1 - sqrt(1/2) of them. */
        cr_assert(n_upper_half > 2600 && n_upper_half < 3300);
    }
}

Test(zipf, equal_generators_give_equal_ranks)
{
    struct rt_zipf zipf;
    struct rt_rng a;
    struct rt_rng b;

    rt_rng_seed(&a, 5);
    rt_rng_seed(&b, 5);
    rt_zipf_init(&zipf, 1000000, RT_ZIPF_S_DEFAULT);
    for (size_t i = 0; i < 100; i++)
        cr_assert_eq(rt_zipf_draw(&zipf, &a), rt_zipf_draw(&zipf, &b));
}
