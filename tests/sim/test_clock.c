#include "tests/sim/clock.h"

#include <criterion/criterion.h>

#include "runtime/base/env.h"
#include "runtime/base/rng.h"
#include "tests/support/check.h"

TestSuite(clock, .fini = test_alloc_expect_none);

Test(clock, runs_fast_and_slow)
{
    struct sim_clock fast = {.offset_us = 500, .rate_ppm = 10000};
    struct sim_clock slow = {.offset_us = 500, .rate_ppm = -10000};

    cr_expect_eq(sim_clock_local(&fast, 1000000), 1010500);
    cr_expect_eq(sim_clock_local(&slow, 1000000), 990500);
    cr_expect_eq(sim_clock_global(&fast, 400), 0);
    cr_expect_eq(sim_clock_global(&fast, RT_NEVER), RT_NEVER);
}

Test(clock, global_is_the_first_time_that_shows_local)
{
    struct rt_rng rng = {7};

    for (unsigned i = 0; i < 10000; i++) {
        struct sim_clock clock = {.offset_us = rt_rng_below(&rng, 1000000000),
                                  .rate_ppm = (int64_t)rt_rng_below(&rng, 20001) - 10000};
        uint64_t local_us = clock.offset_us + 1 + rt_rng_below(&rng, 100000000);
        uint64_t global_us = sim_clock_global(&clock, local_us);

        cr_assert_geq(sim_clock_local(&clock, global_us), local_us);
        cr_assert(global_us == 0 || sim_clock_local(&clock, global_us - 1) < local_us);
    }
}
