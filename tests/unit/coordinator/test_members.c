/*
 * The table of members: order, places, candidates.
 */
#include "coordinator/members.h"

#include "tests/support/check.h"

TestSuite(members, .fini = test_alloc_expect_none);

static void set_state(struct coord_members *members, struct coord_member *member,
                      enum model_member_state state)
{
    member->row.state = state;
    coord_members_refresh(members);
}

Test(members, are_found_by_name_ordinal_and_store)
{
    static struct coord_members members;
    struct coord_member *a = coord_members_add(&members, "a", 1);
    struct coord_member *b = coord_members_add(&members, "b", 2);

    b->row.store_id.bytes[0] = 9;
    cr_assert_eq(coord_members_find(&members, "a"), a);
    cr_assert_eq(coord_members_at(&members, 2), b);
    cr_assert_eq(coord_members_find_store(&members, &b->row.store_id), b);
    cr_assert_null(coord_members_find(&members, "c"));
    cr_assert_null(coord_members_at(&members, 0));
    cr_assert_null(coord_members_at(&members, 3));
    cr_assert_null(coord_members_at(&members, MODEL_MEMBERS_MAX + 1));
    coord_members_remove(&members, b);
    cr_assert_null(coord_members_find(&members, "b"));
    cr_assert_null(coord_members_at(&members, 2));
    cr_assert_eq(members.last_ordinal, 1);
    coord_members_deinit(&members);
}

Test(members, candidates_are_the_alive_ones_in_order)
{
    static struct coord_members members;
    struct coord_member *c = coord_members_add(&members, "c", 3);
    struct coord_member *a = coord_members_add(&members, "a", 1);

    coord_members_refresh(&members);
    cr_assert_eq(members.n_candidates, 0);
    set_state(&members, c, MODEL_MEMBER_ALIVE);
    set_state(&members, a, MODEL_MEMBER_ALIVE);
    cr_assert_eq(members.n_candidates, 2);
    cr_assert_eq(members.candidates[0].ordinal, 1);
    cr_assert_eq(members.candidates[1].ordinal, 3);
    a->ending = true;
    coord_members_refresh(&members);
    cr_assert_eq(members.n_candidates, 1);
    set_state(&members, c, MODEL_MEMBER_JOINING);
    cr_assert_eq(members.n_candidates, 0);
    cr_assert(coord_member_is_live(c));
    coord_members_deinit(&members);
}

Test(members, candidates_have_what_will_be_left)
{
    static struct coord_members members;
    struct coord_member *a = coord_members_add(&members, "a", 1);
    struct coord_member *b = coord_members_add(&members, "b", 2);

    set_state(&members, b, MODEL_MEMBER_ALIVE);
    coord_members_set_free(&members, a, 7);
    coord_members_set_free(&members, b, 5);
    cr_assert_eq(members.candidates[0].entries_free, 5);
    coord_members_expect(&members, b, 2);
    coord_members_expect(&members, b, 4);
    cr_assert_eq(members.candidates[0].entries_free, 0, "more than there are");
    coord_members_expect_less(&members, b, 2);
    cr_assert_eq(members.candidates[0].entries_free, 1);
    set_state(&members, a, MODEL_MEMBER_ALIVE);
    cr_assert_eq(members.candidates[0].entries_free, 7);
    cr_assert_eq(members.candidates[1].entries_free, 1);
    set_state(&members, b, MODEL_MEMBER_DEAD);
    coord_members_expect_less(&members, b, 4);
    coord_members_set_free(&members, b, 9);
    cr_assert_eq(members.n_candidates, 1);
    set_state(&members, b, MODEL_MEMBER_ALIVE);
    cr_assert_eq(members.candidates[1].entries_free, 9);
    coord_members_deinit(&members);
}

Test(members, as_many_as_the_limit)
{
    static struct coord_members members;
    char name[8];

    for (uint32_t i = 1; i <= MODEL_MEMBERS_MAX; i++) {
        (void)snprintf(name, sizeof(name), "n%u", (unsigned)i);
        coord_members_add(&members, name, i)->row.state = MODEL_MEMBER_ALIVE;
    }
    coord_members_refresh(&members);
    cr_assert_eq(members.n_candidates, MODEL_MEMBERS_MAX);
    coord_members_deinit(&members);
}
