/*
 * Lease arithmetic: the boundary of the safety inequality, and the range of durations.
 */
#include "runtime/model/lease.h"

#include "tests/support/check.h"

TestSuite(lease, .fini = test_alloc_expect_none);

Test(lease, default_lease)
{
    struct model_lease lease;

    cr_assert_eq(model_lease_init(&lease, MODEL_LEASE_MS_DEFAULT, NULL), RT_OK);
    cr_assert_eq(lease.duration_us, 10000000);
    cr_assert_eq(lease.early_us, 1666666);
    cr_assert_eq(lease.grace_us, 1666666);
    cr_assert_eq(model_lease_fence_at(&lease, 5), 5 + 10000000 - 1666666);
    cr_assert_eq(model_lease_dead_at(&lease, 5), 5 + 10000000 + 1666666);
    cr_assert_eq(model_lease_renew_interval_us(&lease), 3333333);
    cr_assert_eq(model_lease_renew_timeout_us(&lease), 2666664);
}

Test(lease, duration_at_the_limits_and_past_them)
{
    struct model_lease lease = {.duration_us = 42};
    struct rt_error err;

    cr_assert_eq(model_lease_init(&lease, MODEL_LEASE_MS_MIN - 1, &err), RT_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(err.message, "1000..3600000"));
    cr_assert_eq(model_lease_init(&lease, MODEL_LEASE_MS_MAX + 1, NULL), RT_INVALID_ARGUMENT);
    cr_assert_eq(model_lease_init(&lease, 0, NULL), RT_INVALID_ARGUMENT);
    cr_assert_eq(model_lease_init(&lease, UINT64_MAX, NULL), RT_INVALID_ARGUMENT);
    cr_assert_eq(lease.duration_us, 42);
    cr_assert_eq(model_lease_init(&lease, MODEL_LEASE_MS_MIN, NULL), RT_OK);
    cr_assert_eq(model_lease_init(&lease, MODEL_LEASE_MS_MAX, NULL), RT_OK);
}

/* With L = 1 s, early = 0 and grace g in microseconds:
 * 1,010,001 + 200,000 < (1,000,000 + g) * 0.99 - 1 holds from g = 222,225 on. */
Test(lease, inequality_at_its_boundary)
{
    struct model_lease lease = {.duration_us = 1000000, .early_us = 0, .grace_us = 222225};

    cr_assert(model_lease_is_safe(&lease));
    lease.grace_us--;
    cr_assert_not(model_lease_is_safe(&lease));
    /* What the grace lacks, stopping earlier can give. */
    lease.early_us = 1;
    cr_assert(model_lease_is_safe(&lease));
}

Test(lease, no_margin_is_never_safe)
{
    struct model_lease lease = {.duration_us = 3600000000u};

    cr_assert_not(model_lease_is_safe(&lease));
    lease.early_us = lease.duration_us + 1;
    cr_assert_not(model_lease_is_safe(&lease));
}

/* The point of it all: no pair of clocks within the assumed rate error overlaps. */
Test(lease, holder_stops_before_granter_acts)
{
    for (uint64_t ms = MODEL_LEASE_MS_MIN; ms <= 60000; ms += 250) {
        struct model_lease lease;
        double slow_holder, fast_granter;

        cr_assert_eq(model_lease_init(&lease, ms, NULL), RT_OK);
        slow_holder = (double)model_lease_fence_at(&lease, 0) * 1.01;
        fast_granter = (double)model_lease_dead_at(&lease, 0) * 0.99;
        cr_assert_lt(slow_holder + MODEL_LEASE_LONGEST_COMMIT_US, fast_granter);
    }
}
