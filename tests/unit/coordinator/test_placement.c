/*
 * Equitable load as a pure function. The cases that need a cluster are in test_core_placement.c.
 */
#include "coordinator/placement.h"

#include "runtime/model/limits.h"
#include "tests/support/check.h"

TestSuite(placement, .fini = test_alloc_expect_none);

static uint32_t choose(const struct coord_candidate *candidates, size_t n, uint32_t cursor)
{
    struct coord_view view = {candidates, n, cursor};
    struct coord_request request = {.key = RT_BYTES_LITERAL("k")};
    struct coord_choice choice;
    struct rt_rng rng = {1};

    cr_assert_eq(coord_placement_choose(&view, &request, &rng, &choice, NULL), RT_OK);
    cr_assert_eq(rng.state, 1, "no random number is used");
    return choice.ordinal;
}

Test(placement, goes_round_in_registration_order)
{
    static const struct coord_candidate three[] = {{1, 0}, {2, 0}, {3, 0}};

    cr_assert_eq(choose(three, 3, 0), 1);
    cr_assert_eq(choose(three, 3, 1), 2);
    cr_assert_eq(choose(three, 3, 2), 3);
    cr_assert_eq(choose(three, 3, 3), 1);
}

Test(placement, C5_skips_who_is_not_there)
{
    static const struct coord_candidate gaps[] = {{2, 0}, {5, 0}, {9, 0}};

    cr_assert_eq(choose(gaps, 3, 2), 5);
    cr_assert_eq(choose(gaps, 3, 3), 5);
    cr_assert_eq(choose(gaps, 3, 5), 9);
    cr_assert_eq(choose(gaps, 3, 9), 2);
    cr_assert_eq(choose(gaps, 3, 10), 2, "the cursor's instance is gone");
    cr_assert_eq(choose(gaps, 1, 2), 2, "the only one");
}

Test(placement, every_cursor_of_a_full_table)
{
    static struct coord_candidate all[MODEL_MEMBERS_MAX];

    for (uint32_t i = 0; i < MODEL_MEMBERS_MAX; i++)
        all[i].ordinal = i + 1;
    for (uint32_t cursor = 0; cursor < MODEL_MEMBERS_MAX; cursor++)
        cr_assert_eq(choose(all, MODEL_MEMBERS_MAX, cursor), cursor + 1);
    cr_assert_eq(choose(all, MODEL_MEMBERS_MAX, MODEL_MEMBERS_MAX), 1);
}

Test(placement, C24_without_candidates_says_so)
{
    struct coord_view view = {0};
    struct coord_request request = {0};
    struct coord_choice choice = {7};
    struct rt_rng rng = {1};
    struct rt_error err = RT_ERROR_INIT;

    cr_assert_eq(coord_placement_choose(&view, &request, &rng, &choice, &err), RT_UNAVAILABLE);
    cr_assert_str_eq(err.reason, "NO_INSTANCE");
    cr_assert_eq(choice.ordinal, 7);
}
