/*
 * The durable counter: marks, restarts, generations.
 */
#include "coordinator/counter.h"

#include "runtime/model/ids.h"
#include "tests/support/check.h"

TestSuite(counter, .fini = test_alloc_expect_none);

Test(counter, first_number_is_one_and_needs_a_mark)
{
    struct coord_counter counter;

    coord_counter_start(&counter, 0, 0);
    cr_assert_eq(coord_counter_take(&counter), 1);
    cr_assert_eq(coord_counter_mark(&counter, 1), COORD_COUNTER_BLOCK);
}

Test(counter, mark_is_needed_until_it_is_durable_and_at_the_end_of_a_block)
{
    struct coord_counter counter;

    coord_counter_start(&counter, 0, 0);
    cr_assert_eq(coord_counter_mark(&counter, 2), COORD_COUNTER_BLOCK);
    coord_counter_marked(&counter, COORD_COUNTER_BLOCK);
    cr_assert_eq(coord_counter_mark(&counter, 2), 0);
    cr_assert_eq(coord_counter_mark(&counter, COORD_COUNTER_BLOCK), 0);
    cr_assert_eq(coord_counter_mark(&counter, COORD_COUNTER_BLOCK + 1), 2 * COORD_COUNTER_BLOCK);
    coord_counter_marked(&counter, 0);
    cr_assert_eq(coord_counter_mark(&counter, 2), 0, "a mark never falls");
}

Test(counter, restart_goes_on_behind_the_mark)
{
    struct coord_counter counter;

    coord_counter_start(&counter, 3000, 0);
    cr_assert_eq(coord_counter_take(&counter), 3001);
    cr_assert_eq(coord_counter_mark(&counter, 3001), 4000);
}

Test(counter, a_raised_generation_is_above_everything_before)
{
    struct coord_counter counter;

    coord_counter_start(&counter, 3000, 2);
    cr_assert_eq(coord_counter_take(&counter), model_counter_first(2) + 1);
    cr_assert_gt(coord_counter_mark(&counter, model_counter_first(2) + 1), model_counter_first(2));
    cr_assert_lt(coord_counter_mark(&counter, model_counter_first(2) + 1), model_counter_first(3));
}
