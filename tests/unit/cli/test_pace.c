/*
 * Paces: closed loops never wait, open loops keep their plan however late it is asked for.
 */
#include "cli/pace.h"

#include "tests/support/check.h"

TestSuite(pace, .fini = test_alloc_expect_none);

enum {
    START_US = 1000000
};

Test(pace, closed_loop_begins_whenever_asked)
{
    struct cli_pace pace;
    uint64_t intended_us = 0;

    cli_pace_init(&pace, START_US, 0);
    cr_assert_eq(cli_pace_next_us(&pace), 0);
    for (uint64_t now_us = START_US; now_us < START_US + 5; now_us++) {
        cr_assert(cli_pace_take(&pace, now_us, &intended_us));
        cr_assert_eq(intended_us, now_us);
    }
}

Test(pace, open_loop_waits_for_each_time)
{
    struct cli_pace pace;
    uint64_t intended_us = 0;

    cli_pace_init(&pace, START_US, 1000);
    cr_assert(!cli_pace_take(&pace, START_US - 1, &intended_us));
    for (uint64_t i = 0; i < 5000; i++) {
        uint64_t at_us = START_US + i * 1000;

        cr_assert_eq(cli_pace_next_us(&pace), at_us);
        cr_assert(!cli_pace_take(&pace, at_us - 1, &intended_us));
        cr_assert(cli_pace_take(&pace, at_us, &intended_us));
        cr_assert_eq(intended_us, at_us);
    }
}

/* What starts late counts from when it should have started. */
Test(pace, open_loop_leaves_no_wait_out)
{
    struct cli_pace pace;
    uint64_t intended_us = 0;

    cli_pace_init(&pace, START_US, 100);
    for (uint64_t i = 0; i < 100; i++) {
        cr_assert(cli_pace_take(&pace, START_US + 10000000, &intended_us));
        cr_assert_eq(intended_us, START_US + i * 10000);
    }
}

Test(pace, uneven_rates_drift_nowhere)
{
    struct cli_pace pace;
    uint64_t intended_us = 0;

    cli_pace_init(&pace, START_US, 3);
    for (uint64_t i = 0; i < 3000; i++)
        cr_assert(cli_pace_take(&pace, UINT64_MAX, &intended_us));
    cr_assert_eq(cli_pace_next_us(&pace), START_US + 1000000000);
    cr_assert_eq(intended_us, START_US + 999666666);
}

Test(pace, highest_rate)
{
    struct cli_pace pace;
    uint64_t intended_us = 0;

    cli_pace_init(&pace, START_US, CLI_PACE_RATE_MAX);
    for (uint64_t i = 0; i < 250; i++)
        cr_assert(cli_pace_take(&pace, START_US + 2, &intended_us));
    cr_assert_eq(intended_us, START_US + 2);
    cr_assert_eq(cli_pace_next_us(&pace), START_US + 2);
}

Test(pace, counts_what_is_due)
{
    struct cli_pace pace;
    uint64_t intended_us = 0;

    cli_pace_init(&pace, START_US, 3);
    cr_assert_eq(cli_pace_n_due(&pace, START_US), 0);
    for (uint64_t i = 0; i < 1000; i++) {
        cr_assert_eq(cli_pace_n_due(&pace, cli_pace_next_us(&pace)), i);
        cr_assert_eq(cli_pace_n_due(&pace, cli_pace_next_us(&pace) + 1), i + 1);
        cr_assert(cli_pace_take(&pace, UINT64_MAX, &intended_us));
    }
}
