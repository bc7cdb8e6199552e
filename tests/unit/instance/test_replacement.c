/*
 * Replacement: the three policies, the pointer, ties, and random work against a plain array.
 */
#include "instance/replacement.h"

#include "tests/support/check.h"
#include "tests/support/property.h"

TestSuite(replacement, .fini = test_alloc_expect_none);

static struct inst_replacement make(enum inst_policy policy, uint64_t total)
{
    struct inst_replacement replacement;

    cr_assert_eq(inst_replacement_init(&replacement, policy, total, NULL), RT_OK);
    return replacement;
}

/* Takes the next victim; the number of entries when there is none. */
static uint64_t evict(struct inst_replacement *replacement)
{
    uint32_t index;

    if (!inst_replacement_choose(replacement, &index))
        return replacement->total;
    inst_replacement_evict(replacement, index);
    return index;
}

Test(replacement, refuses_without_memory)
{
    struct inst_replacement replacement;

    test_alloc_fail_after(0, 1);
    cr_assert_eq(inst_replacement_init(&replacement, INST_POLICY_LRU, 8, NULL),
                 RT_RESOURCE_EXHAUSTED);
    test_alloc_fail_never();
}

Test(replacement, names)
{
    cr_assert_str_eq(inst_policy_name(INST_POLICY_CIRC), "CIRC");
    cr_assert_str_eq(inst_policy_name(INST_POLICY_LRU), "LRU");
    cr_assert_str_eq(inst_policy_name(INST_POLICY_BSU), "BSU");
}

Test(replacement, d14_circ_goes_around_and_skips)
{
    struct inst_replacement circ = make(INST_POLICY_CIRC, 5);

    cr_assert_eq(evict(&circ), 5, "nothing to evict");
    inst_replacement_use(&circ, 1, 1);
    inst_replacement_use(&circ, 4, 1);
    cr_assert_eq(evict(&circ), 1);
    cr_assert_eq(circ.pointer, 2);
    inst_replacement_use(&circ, 1, 1);
    cr_assert_eq(evict(&circ), 4, "1 is before the pointer");
    cr_assert_eq(circ.pointer, 0, "around the end");
    cr_assert_eq(evict(&circ), 1);
    cr_assert_eq(evict(&circ), 5);
    cr_assert_eq(circ.pointer, 2, "no victim, no move");
    inst_replacement_deinit(&circ);
}

Test(replacement, c64_a_plain_placement_does_not_move_the_pointer)
{
    struct inst_replacement circ = make(INST_POLICY_CIRC, 8);

    for (uint32_t i = 0; i < 8; i++)
        inst_replacement_use(&circ, i, 1);
    cr_assert_eq(evict(&circ), 0);
    inst_replacement_use(&circ, 0, 1);
    cr_assert_eq(circ.pointer, 1);
    inst_replacement_take(&circ, 5);
    inst_replacement_use(&circ, 5, 3);
    cr_assert_eq(circ.pointer, 1);
    inst_replacement_deinit(&circ);
}

Test(replacement, c74_c60_two_victims_one_at_a_time)
{
    struct inst_replacement circ = make(INST_POLICY_CIRC, 4);

    for (uint32_t i = 0; i < 4; i++)
        inst_replacement_use(&circ, i, 10);
    cr_assert_eq(circ.n_candidates, 4);
    cr_assert_eq(evict(&circ), 0);
    cr_assert_eq(evict(&circ), 1);
    cr_assert_eq(circ.n_candidates, 2);
    inst_replacement_deinit(&circ);
}

Test(replacement, c65_lru_goes_by_set_and_store_only)
{
    struct inst_replacement lru = make(INST_POLICY_LRU, 40);
    uint32_t index;

    inst_replacement_use(&lru, 30, 1);
    inst_replacement_use(&lru, 2, 1);
    inst_replacement_use(&lru, 17, 1);
    cr_assert(inst_replacement_choose(&lru, &index));
    cr_assert_eq(index, 30);
    cr_assert(inst_replacement_choose(&lru, &index), "looking is no use");
    cr_assert_eq(index, 30);
    inst_replacement_use(&lru, 30, 1);
    cr_assert_eq(evict(&lru), 2);
    cr_assert_eq(lru.pointer, 0, "only ties go by the pointer");
    inst_replacement_give_back(&lru, 1, inst_replacement_take(&lru, 17));
    cr_assert_eq(evict(&lru), 1, "a compaction does not refresh");
    cr_assert_eq(evict(&lru), 30);
    inst_replacement_deinit(&lru);
}

Test(replacement, lru_values_that_were_not_used_go_first_in_the_pointers_order)
{
    struct inst_replacement lru = make(INST_POLICY_LRU, 40);

    inst_replacement_use(&lru, 3, 1);
    inst_replacement_add(&lru, 20, 1);
    inst_replacement_add(&lru, 10, 1);
    inst_replacement_add(&lru, 30, 1);
    lru.pointer = 15;
    cr_assert_eq(evict(&lru), 20);
    cr_assert_eq(lru.pointer, 21, "a tie");
    cr_assert_eq(evict(&lru), 30);
    cr_assert_eq(lru.pointer, 31);
    cr_assert_eq(evict(&lru), 10);
    cr_assert_eq(lru.pointer, 31, "no tie any more");
    cr_assert_eq(evict(&lru), 3);
    inst_replacement_deinit(&lru);
}

Test(replacement, bsu_takes_the_largest_and_ties_by_the_pointer)
{
    struct inst_replacement bsu = make(INST_POLICY_BSU, 20);

    inst_replacement_use(&bsu, 1, 3);
    inst_replacement_use(&bsu, 5, 9);
    inst_replacement_use(&bsu, 6, 0);
    inst_replacement_use(&bsu, 18, 9);
    cr_assert_eq(evict(&bsu), 5);
    cr_assert_eq(bsu.pointer, 6, "18 has as many");
    inst_replacement_use(&bsu, 2, 9);
    cr_assert_eq(evict(&bsu), 18);
    cr_assert_eq(bsu.pointer, 19);
    cr_assert_eq(evict(&bsu), 2);
    cr_assert_eq(evict(&bsu), 1);
    cr_assert_eq(evict(&bsu), 6, "an empty value is a candidate");
    cr_assert_eq(bsu.pointer, 19);
    inst_replacement_deinit(&bsu);
}

Test(replacement, giving_back_what_was_not_taken_changes_nothing)
{
    struct inst_replacement circ = make(INST_POLICY_CIRC, 3);

    inst_replacement_give_back(&circ, 1, inst_replacement_take(&circ, 0));
    cr_assert_eq(circ.n_candidates, 0);
    cr_assert_not(inst_replacement_is_candidate(&circ, 1));
    inst_replacement_deinit(&circ);
}

/* ---- against a plain array ---- */

enum {
    N_MODEL = 600 /* three levels of 16, the last groups not full */
};

struct model {
    bool is_candidate[N_MODEL];
    uint64_t bytes[N_MODEL];
    uint64_t use[N_MODEL];
    uint64_t clock;
    uint64_t pointer;
};

static uint64_t score(const struct model *model, enum inst_policy policy, uint64_t i)
{
    if (policy == INST_POLICY_LRU)
        return model->use[i];
    return policy == INST_POLICY_BSU ? 1000 - model->bytes[i] : 0;
}

static uint64_t model_evict(struct model *model, enum inst_policy policy)
{
    uint64_t victim = N_MODEL;
    size_t n_equal = 0;

    for (uint64_t n = 0; n < N_MODEL; n++) {
        uint64_t i = (model->pointer + n) % N_MODEL;

        if (!model->is_candidate[i])
            continue;
        if (victim == N_MODEL || score(model, policy, i) < score(model, policy, victim)) {
            victim = i;
            n_equal = 0;
        }
        n_equal += score(model, policy, i) == score(model, policy, victim);
    }
    if (victim == N_MODEL)
        return victim;
    model->is_candidate[victim] = false;
    if (policy == INST_POLICY_CIRC || n_equal > 1)
        model->pointer = (victim + 1) % N_MODEL;
    return victim;
}

static bool step_agrees(struct inst_replacement *replacement, struct model *model, uint64_t step)
{
    uint32_t index = (uint32_t)(step % N_MODEL);
    uint64_t kind = step / N_MODEL % 8;

    if (kind < 2)
        return evict(replacement) == model_evict(model, replacement->policy) &&
               replacement->pointer == model->pointer;
    if (kind == 2) {
        inst_replacement_take(replacement, index);
        model->is_candidate[index] = false;
        return true;
    }
    model->is_candidate[index] = true;
    model->bytes[index] = step / N_MODEL / 8 % 5;
    if (kind == 3) {
        inst_replacement_add(replacement, index, model->bytes[index]);
        model->use[index] = 0;
    } else {
        inst_replacement_use(replacement, index, model->bytes[index]);
        model->use[index] = ++model->clock;
    }
    return inst_replacement_is_candidate(replacement, index);
}

static bool agrees(enum inst_policy policy, const uint64_t *steps, size_t n_steps)
{
    struct inst_replacement replacement = make(policy, N_MODEL);
    struct model model = {0};
    bool result = true;

    for (size_t i = 0; i < n_steps && result; i++)
        result = step_agrees(&replacement, &model, steps[i]);
    inst_replacement_deinit(&replacement);
    return result;
}

static bool circ_agrees(const uint64_t *steps, size_t n_steps)
{
    return agrees(INST_POLICY_CIRC, steps, n_steps);
}

static bool lru_agrees(const uint64_t *steps, size_t n_steps)
{
    return agrees(INST_POLICY_LRU, steps, n_steps);
}

static bool bsu_agrees(const uint64_t *steps, size_t n_steps)
{
    return agrees(INST_POLICY_BSU, steps, n_steps);
}

static void expect_holds(test_property_fn property, uint64_t seed, size_t n_cases)
{
    const char *failed = test_property_fails(property, seed, n_cases);

    cr_assert_null(failed, "%s", failed);
}

Test(replacement, random_work_agrees_with_a_plain_array)
{
    expect_holds(circ_agrees, 1, 100);
    expect_holds(lru_agrees, 2, 100);
    expect_holds(bsu_agrees, 3, 100);
}
