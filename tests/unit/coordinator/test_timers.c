/*
 * Timers: order against a plain array, moving, cancelling.
 */
#include "coordinator/timers.h"

#include "runtime/base/rng.h"
#include "tests/support/check.h"

TestSuite(timers, .fini = test_alloc_expect_none);

enum {
    N_TIMERS = 200,
    N_STEPS = 20000
};

/* The earliest of those that are set; UINT64_MAX without any. */
static uint64_t earliest(const struct coord_timer *timers)
{
    uint64_t due_us = UINT64_MAX;

    for (size_t i = 0; i < N_TIMERS; i++) {
        if (coord_timer_is_set(&timers[i]) && timers[i].due_us < due_us)
            due_us = timers[i].due_us;
    }
    return due_us;
}

Test(timers, agree_with_a_plain_search)
{
    static struct coord_timer timers[N_TIMERS];
    struct coord_timers heap = {0};
    struct rt_rng rng;

    rt_rng_seed(&rng, 1);
    for (size_t i = 0; i < N_STEPS; i++) {
        struct coord_timer *timer = &timers[rt_rng_below(&rng, N_TIMERS)];
        uint64_t first = earliest(timers);

        cr_assert_eq(coord_timers_next_us(&heap), first);
        switch (rt_rng_below(&rng, 4)) {
        case 0:
            coord_timers_cancel(&heap, timer);
            cr_assert_not(coord_timer_is_set(timer));
            break;
        case 1:
            timer = coord_timers_pop_due(&heap, first);
            cr_assert_eq(timer == NULL, first == UINT64_MAX);
            cr_assert(!timer || (timer->due_us == first && !coord_timer_is_set(timer)));
            break;
        default:
            coord_timers_set(&heap, timer, rt_rng_below(&rng, 1000));
            break;
        }
    }
    coord_timers_deinit(&heap);
}

Test(timers, are_due_at_their_time_and_not_before)
{
    struct coord_timer timer = {0};
    struct coord_timers heap = {0};

    cr_assert_null(coord_timers_pop_due(&heap, UINT64_MAX));
    coord_timers_set(&heap, &timer, 100);
    cr_assert_null(coord_timers_pop_due(&heap, 99));
    cr_assert_eq(coord_timers_pop_due(&heap, 100), &timer);
    cr_assert_null(coord_timers_pop_due(&heap, 100));
    coord_timers_cancel(&heap, &timer);
    coord_timers_deinit(&heap);
}
