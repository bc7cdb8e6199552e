/*
 * Entries: sizes, first fit, reservations, and random work against a plain array.
 */
#include "instance/entries.h"

#include "tests/support/check.h"
#include "tests/support/property.h"

TestSuite(entries, .fini = test_alloc_expect_none);

static struct inst_entries make(uint64_t total, uint64_t entry_size)
{
    struct inst_entries entries;

    cr_assert_eq(inst_entries_init(&entries, total, entry_size, NULL), RT_OK);
    return entries;
}

Test(entries, sizes_d17_c73_c74)
{
    struct inst_entries entries = make(8, 4);

    cr_assert_eq(inst_entries_needed(&entries, 0), 1);
    cr_assert_eq(inst_entries_needed(&entries, 1), 1);
    cr_assert_eq(inst_entries_needed(&entries, 4), 1, "C74: exactly full is one entry");
    cr_assert_eq(inst_entries_needed(&entries, 5), 2, "C73");
    cr_assert_eq(inst_entries_needed(&entries, 8), 2);
    cr_assert_eq(inst_entries_needed(&entries, 9), 3);
    inst_entries_deinit(&entries);
}

Test(entries, refuses_bad_and_huge_sizes)
{
    struct inst_entries entries;

    cr_assert_eq(inst_entries_init(&entries, 0, 1, NULL), RT_INVALID_ARGUMENT);
    cr_assert_eq(inst_entries_init(&entries, 1, 0, NULL), RT_INVALID_ARGUMENT);
    cr_assert_eq(inst_entries_init(&entries, (uint64_t)UINT32_MAX + 1, 1, NULL),
                 RT_INVALID_ARGUMENT);
    cr_assert_eq(inst_entries_init(&entries, UINT32_MAX, UINT64_MAX / 2, NULL),
                 RT_RESOURCE_EXHAUSTED);
    for (size_t i = 0; i < 3; i++) {
        test_alloc_fail_after(i, 1);
        cr_assert_eq(inst_entries_init(&entries, 10, 10, NULL), RT_RESOURCE_EXHAUSTED);
    }
    test_alloc_fail_never();
}

Test(entries, first_fit_from_index_zero_without_wrap)
{
    struct inst_entries entries = make(10, 1);
    struct inst_run a;
    struct inst_run b;
    struct inst_run c;

    cr_assert(inst_entries_alloc(&entries, 3, &a));
    cr_assert(inst_entries_alloc(&entries, 4, &b));
    cr_assert_eq(a.first, 0);
    cr_assert_eq(b.first, 3);
    inst_entries_release(&entries, &a);
    cr_assert_eq(entries.n_free, 6);
    cr_assert_eq(inst_entries_largest_hole(&entries), 3);
    cr_assert_not(inst_entries_alloc(&entries, 4, &c), "3 at the end and 3 at the start");
    cr_assert(inst_entries_alloc(&entries, 2, &a));
    cr_assert_eq(a.first, 0);
    cr_assert(inst_entries_alloc(&entries, 3, &c));
    cr_assert_eq(c.first, 7);
    cr_assert(inst_entries_alloc(&entries, 1, &c));
    cr_assert_eq(c.first, 2);
    cr_assert_not(inst_entries_fits(&entries, 1));
    cr_assert_eq(inst_entries_largest_hole(&entries), 0);
    inst_entries_deinit(&entries);
}

Test(entries, c51_shrinking_frees_the_tail)
{
    struct inst_entries entries = make(4, 10);
    struct inst_run old;
    struct inst_run run;

    cr_assert(inst_entries_alloc(&entries, 3, &old));
    inst_entries_write(&entries, &old, RT_BYTES_LITERAL("0123456789012345678901234"));
    cr_assert(inst_entries_reserve(&entries, &old, 2, &run));
    cr_assert_eq(run.first, old.first);
    inst_entries_commit(&entries, &old, &run);
    cr_assert_eq(entries.n_free, 2);
    cr_assert(inst_entries_alloc(&entries, 2, &old));
    cr_assert_eq(old.first, 2);
    inst_entries_deinit(&entries);
}

Test(entries, growing_leaves_the_old_value_readable_until_commit)
{
    struct inst_entries entries = make(6, 2);
    struct inst_run hole;
    struct inst_run old;
    struct inst_run run;

    cr_assert(inst_entries_alloc(&entries, 1, &hole));
    cr_assert(inst_entries_alloc(&entries, 2, &old));
    inst_entries_write(&entries, &old, RT_BYTES_LITERAL("abcd"));
    inst_entries_release(&entries, &hole);
    cr_assert(inst_entries_reserve(&entries, &old, 3, &run));
    cr_assert_eq(run.first, 0, "overlaps the old run");
    cr_assert_eq(entries.n_free, 3);
    cr_assert(rt_bytes_equal(inst_entries_read(&entries, &old, 4), RT_BYTES_LITERAL("abcd")));
    inst_entries_cancel(&entries, &old, &run);
    cr_assert_eq(entries.n_free, 4);
    cr_assert(inst_entries_reserve(&entries, &old, 6, &run));
    inst_entries_commit(&entries, &old, &run);
    cr_assert_eq(entries.n_free, 0);
    cr_assert_not(inst_entries_reserve(&entries, &run, 7, &old));
    cr_assert_eq(entries.n_free, 0);
    inst_entries_deinit(&entries);
}

Test(entries, holes_across_words_and_parts)
{
    struct inst_entries entries = make(1000, 1);
    struct inst_run all;
    struct inst_run run = {.first = 60, .n = 140};

    cr_assert(inst_entries_alloc(&entries, 1000, &all));
    cr_assert_eq(inst_entries_largest_hole(&entries), 0);
    cr_assert_not(inst_entries_fits(&entries, 1));
    inst_entries_release(&entries, &run);
    cr_assert_eq(inst_entries_largest_hole(&entries), 140);
    cr_assert_not(inst_entries_alloc(&entries, 141, &run));
    cr_assert(inst_entries_alloc(&entries, 140, &run));
    cr_assert_eq(run.first, 60);
    run = (struct inst_run){.first = 999, .n = 1};
    inst_entries_release(&entries, &run);
    cr_assert_eq(inst_entries_largest_hole(&entries), 1, "nothing behind the last entry is free");
    inst_entries_deinit(&entries);
}

/* ---- against a plain array ---- */

enum {
    N_MODEL = 300,
    N_RUNS = 24,
};

/* What the bitmap should say: the owner of each entry, or -1. */
struct model {
    int owner[N_MODEL];
};

static int model_fit(const struct model *model, int self, uint64_t n)
{
    uint64_t length = 0;

    for (int i = 0; i < N_MODEL; i++) {
        length = model->owner[i] == -1 || model->owner[i] == self ? length + 1 : 0;
        if (length == n)
            return i + 1 - (int)n;
    }
    return -1;
}

static uint64_t model_largest_hole(const struct model *model)
{
    uint64_t longest = 0;
    uint64_t length = 0;

    for (int i = 0; i < N_MODEL; i++) {
        length = model->owner[i] == -1 ? length + 1 : 0;
        longest = length > longest ? length : longest;
    }
    return longest;
}

static void model_set(struct model *model, const struct inst_run *run, int owner)
{
    for (uint32_t i = 0; i < run->n; i++)
        model->owner[run->first + i] = owner;
}

static uint64_t model_free(const struct model *model)
{
    uint64_t n = 0;

    for (int i = 0; i < N_MODEL; i++)
        n += model->owner[i] == -1;
    return n;
}

static bool change(struct inst_entries *entries, struct model *model, struct inst_run *run,
                   int self, uint64_t step)
{
    uint64_t n = 1 + step % 100;
    int expected = n <= run->n ? (int)run->first : model_fit(model, self, n);
    struct inst_run reserved;

    if (!inst_entries_reserve(entries, run, n, &reserved))
        return expected == -1;
    if ((int)reserved.first != expected || reserved.n != n)
        return false;
    if (step / 100 % 4 == 0) {
        inst_entries_cancel(entries, run, &reserved);
        return true;
    }
    inst_entries_commit(entries, run, &reserved);
    model_set(model, run, -1);
    model_set(model, &reserved, self);
    *run = reserved;
    return true;
}

static bool step_agrees(struct inst_entries *entries, struct model *model, struct inst_run *runs,
                        uint64_t step)
{
    int self = (int)(step % N_RUNS);

    step /= N_RUNS;
    if (step % 4 == 0) {
        model_set(model, &runs[self], -1);
        inst_entries_release(entries, &runs[self]);
    } else if (!change(entries, model, &runs[self], self, step / 4)) {
        return false;
    }
    return entries->n_free == model_free(model) &&
           inst_entries_largest_hole(entries) == model_largest_hole(model);
}

static bool agrees_with_a_plain_array(const uint64_t *steps, size_t n_steps)
{
    struct inst_entries entries = make(N_MODEL, 3);
    struct inst_run runs[N_RUNS] = {0};
    struct model model;
    bool agrees = true;

    memset(model.owner, 0xff, sizeof(model.owner));
    for (size_t i = 0; i < n_steps && agrees; i++)
        agrees = step_agrees(&entries, &model, runs, steps[i]);
    inst_entries_deinit(&entries);
    return agrees;
}

static void expect_holds(test_property_fn property, uint64_t seed, size_t n_cases)
{
    const char *failed = test_property_fails(property, seed, n_cases);

    cr_assert_null(failed, "%s", failed);
}

Test(entries, random_work_agrees_with_a_plain_array)
{
    expect_holds(agrees_with_a_plain_array, 42, 200);
}

/* The helper itself: a sequence with two odd numbers in it fails, and two ones are the shortest. */
static bool has_fewer_than_two_odd_steps(const uint64_t *steps, size_t n_steps)
{
    size_t n_odd = 0;

    for (size_t i = 0; i < n_steps; i++)
        n_odd += steps[i] % 2;
    return n_odd < 2;
}

Test(entries, a_failing_sequence_is_shortened)
{
    uint64_t steps[] = {4, 7, 1000, 2, 9999, 35, 8};
    size_t n_steps =
        test_property_shrink(has_fewer_than_two_odd_steps, steps, sizeof(steps) / sizeof(steps[0]));

    cr_assert_eq(n_steps, 2);
    cr_assert_eq(steps[0], 1);
    cr_assert_eq(steps[1], 1);
    cr_assert(strstr(test_property_fails(has_fewer_than_two_odd_steps, 1, 50), "shortened: 1 1"));
}
