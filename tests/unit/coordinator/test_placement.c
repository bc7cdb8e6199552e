/*
 * The three rules as pure functions, by the numbers of the course's cases. The cases that need a
 * cluster are in test_core_placement.c and test_core_distribution.c.
 */
#include "coordinator/placement.h"

#include "runtime/model/limits.h"
#include "tests/support/check.h"

TestSuite(placement, .fini = test_alloc_expect_none);

static uint32_t choose_in(const struct coord_view *view, const char *key)
{
    struct coord_request request = {.key = rt_bytes_of_string(key)};
    struct coord_choice choice;
    struct rt_rng rng = {1};

    cr_assert_eq(coord_placement_choose(view, &request, &rng, &choice, NULL), RT_OK);
    cr_assert_eq(rng.state, 1, "no random number is used");
    return choice.ordinal;
}

/* ---- equitable load -------------------------------------------------------------------------- */

static uint32_t choose(const struct coord_candidate *candidates, size_t n, uint32_t cursor)
{
    struct coord_view view = {.candidates = candidates, .n_candidates = n, .cursor = cursor};

    return choose_in(&view, "k");
}

Test(placement, C1_goes_round_in_registration_order)
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
    for (int i = 0; i < MODEL_N_DISTRIBUTIONS; i++) {
        struct coord_view view = {.distribution = (enum model_distribution)i};
        struct coord_request request = {.key = RT_BYTES_LITERAL("k")};
        struct coord_choice choice = {7};
        struct rt_rng rng = {1};
        struct rt_error err = RT_ERROR_INIT;

        cr_assert_eq(coord_placement_choose(&view, &request, &rng, &choice, &err), RT_UNAVAILABLE);
        cr_assert_str_eq(err.reason, "NO_INSTANCE");
        cr_assert_eq(choice.ordinal, 7);
    }
}

/* ---- least space used ------------------------------------------------------------------------ */

static uint32_t choose_free(uint64_t a, uint64_t b, uint64_t c, uint32_t cursor)
{
    const struct coord_candidate three[] = {{1, a}, {2, b}, {3, c}};
    const struct coord_view view = {.distribution = MODEL_DISTRIBUTION_LEAST_SPACE_USED,
                                    .candidates = three,
                                    .n_candidates = 3,
                                    .cursor = cursor};

    return choose_in(&view, "k");
}

Test(placement, C7_the_one_with_most_free_entries)
{
    for (uint32_t cursor = 0; cursor <= 4; cursor++) {
        cr_assert_eq(choose_free(5, 9, 7, cursor), 2);
        cr_assert_eq(choose_free(9, 5, 7, cursor), 1);
        cr_assert_eq(choose_free(5, 7, 9, cursor), 3);
    }
}

Test(placement, C8_all_empty_is_equitable_load)
{
    cr_assert_eq(choose_free(20, 20, 20, 0), 1);
    cr_assert_eq(choose_free(19, 20, 20, 1), 2);
    cr_assert_eq(choose_free(19, 19, 20, 2), 3);
    cr_assert_eq(choose_free(19, 19, 19, 3), 1);
}

Test(placement, C9_all_full_is_equitable_load)
{
    cr_assert_eq(choose_free(0, 0, 0, 0), 1);
    cr_assert_eq(choose_free(0, 0, 0, 1), 2);
    cr_assert_eq(choose_free(0, 0, 0, 2), 3);
    cr_assert_eq(choose_free(0, 0, 0, 3), 1);
}

Test(placement, LSU_ties_are_among_the_tied_only)
{
    cr_assert_eq(choose_free(8, 3, 8, 1), 3, "behind the cursor, not the first");
    cr_assert_eq(choose_free(8, 3, 8, 3), 1);
    cr_assert_eq(choose_free(8, 8, 3, 2), 1);
    cr_assert_eq(choose_free(3, 8, 8, 2), 3);
    cr_assert_eq(choose_free(3, 8, 8, 3), 2);
}

/* Ten values of one byte, or one of ninety bytes in one entry of a hundred: twenty entries each. */
Test(placement, C11_entries_count_and_not_bytes)
{
    static const struct coord_candidate two[] = {{1, 20 - 10}, {2, 20 - 1}};
    const struct coord_view view = {.distribution = MODEL_DISTRIBUTION_LEAST_SPACE_USED,
                                    .candidates = two,
                                    .n_candidates = 2,
                                    .cursor = 1};

    cr_assert_eq(choose_in(&view, "k"), 2);
}

/* ---- key explicit ---------------------------------------------------------------------------- */

static uint32_t by_key_in(size_t n, enum coord_ranges ranges, uint32_t cursor, const char *key)
{
    static struct coord_candidate all[MODEL_MEMBERS_MAX];
    const struct coord_view view = {.distribution = MODEL_DISTRIBUTION_KEY_EXPLICIT,
                                    .ranges = ranges,
                                    .candidates = all,
                                    .n_candidates = n,
                                    .cursor = cursor};

    for (uint32_t i = 0; i < n; i++)
        all[i].ordinal = i + 1;
    return choose_in(&view, key);
}

static uint32_t by_key(size_t n, const char *key)
{
    return by_key_in(n, COORD_RANGES_EVEN, 0, key);
}

/* The instances of a, b, c … z as digits and letters. */
static void expect_alphabet(size_t n, enum coord_ranges ranges, const char *expected)
{
    for (int i = 0; i < 26; i++) {
        char key[] = {(char)('a' + i), '\0'};
        char upper[] = {(char)('A' + i), 'x', '\0'};

        cr_assert_eq("0123456789ABCDEFGHIJKLMNOPQRSTUV"[by_key_in(n, ranges, 0, key)], expected[i],
                     "%s of %zu", key, n);
        cr_assert_eq(by_key_in(n, ranges, 0, upper), by_key_in(n, ranges, 0, key));
    }
}

Test(placement, C13_four_instances)
{
    cr_assert_eq(by_key(4, "a"), 1);
    cr_assert_eq(by_key(4, "g"), 1);
    cr_assert_eq(by_key(4, "h"), 2);
    cr_assert_eq(by_key(4, "m"), 2);
    cr_assert_eq(by_key(4, "n"), 3);
    cr_assert_eq(by_key(4, "t"), 3);
    cr_assert_eq(by_key(4, "u"), 4);
    cr_assert_eq(by_key(4, "z"), 4);
    expect_alphabet(4, COORD_RANGES_EVEN, "11111112222223333333444444");
}

Test(placement, C14_two_instances)
{
    cr_assert_eq(by_key(2, "m"), 1);
    cr_assert_eq(by_key(2, "n"), 2);
    expect_alphabet(2, COORD_RANGES_EVEN, "11111111111112222222222222");
}

Test(placement, C15_keys_as_in_the_course)
{
    cr_assert_eq(by_key(2, "bebida13"), 1);
    cr_assert_eq(by_key(2, "microsoft:consola:xbox"), 1);
    cr_assert_eq(by_key(2, "nintendo:consola:wiiu"), 2);
    cr_assert_eq(by_key(2, "sony:consola:ps3"), 2);
}

Test(placement, C16_upper_case_is_the_same_letter)
{
    cr_assert_eq(by_key(4, "Zeta"), 4);
    cr_assert_eq(by_key(4, "zeta"), 4);
    cr_assert_eq(by_key(4, "Alfa"), 1);
}

Test(placement, C17_what_is_no_letter_is_clamped)
{
    static const char *const first[] = {"9x", ":x", "_x", "@", "[", "`", "\x01"};
    static const char *const last[] = {"\xc3\xb1u", "{", "~", "\x7f", "\xff"};

    for (size_t i = 0; i < RT_ARRAY_SIZE(first); i++)
        cr_assert_eq(by_key(4, first[i]), 1, "%s", first[i]);
    for (size_t i = 0; i < RT_ARRAY_SIZE(last); i++)
        cr_assert_eq(by_key(4, last[i]), 4, "%s", last[i]);
}

Test(placement, C18_one_instance_has_everything)
{
    expect_alphabet(1, COORD_RANGES_EVEN, "11111111111111111111111111");
    expect_alphabet(1, COORD_RANGES_CEIL, "11111111111111111111111111");
    cr_assert_eq(by_key(1, "9"), 1);
    cr_assert_eq(by_key(1, "\xff"), 1);
}

Test(placement, C19_three_instances_after_two)
{
    cr_assert_eq(by_key(2, "k"), 1);
    cr_assert_eq(by_key(3, "kk"), 2);
    expect_alphabet(3, COORD_RANGES_EVEN, "11111111122222222233333333");
}

Test(placement, C22_the_cursor_is_not_consulted)
{
    for (uint32_t cursor = 0; cursor <= 5; cursor++)
        cr_assert_eq(by_key_in(4, COORD_RANGES_EVEN, cursor, "h"), 2);
}

/* D1: chunks of ceil(26/n). */
Test(placement, KE_ceil_leaves_some_without)
{
    expect_alphabet(4, COORD_RANGES_CEIL, "11111112222222333333344444");
    expect_alphabet(8, COORD_RANGES_CEIL, "11112222333344445555666677");
    expect_alphabet(8, COORD_RANGES_EVEN, "11112223334445555666777888");
    cr_assert_eq(by_key_in(8, COORD_RANGES_CEIL, 0, "~"), 8);
}

Test(placement, KE_more_instances_than_letters)
{
    expect_alphabet(26, COORD_RANGES_EVEN, "123456789ABCDEFGHIJKLMNOPQ");
    expect_alphabet(26, COORD_RANGES_CEIL, "123456789ABCDEFGHIJKLMNOPQ");
    cr_assert_eq(by_key(27, "z"), 26);
    cr_assert_eq(by_key_in(27, COORD_RANGES_CEIL, 0, "z"), 26);
    cr_assert_eq(by_key(MODEL_MEMBERS_MAX, "z"), 25 * MODEL_MEMBERS_MAX / 26 + 1);
    cr_assert_eq(by_key(MODEL_MEMBERS_MAX, "~"), MODEL_MEMBERS_MAX);
}
