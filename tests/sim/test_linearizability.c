/* The checker is fed with histories that are right and with the same ones made wrong. */
#include "tests/sim/linearizability.h"

#include <criterion/criterion.h>

#include "runtime/base/rng.h"
#include "tests/support/check.h"

TestSuite(linearizability, .fini = test_alloc_expect_none);

enum {
    CAP = 100000,
    N_OPS = 60,
};

static struct sim_op op(enum sim_op_kind kind, uint32_t value, uint64_t invoke_us,
                        uint64_t return_us)
{
    return (struct sim_op){.kind = kind,
                           .value = value,
                           .result = SIM_RESULT_OK,
                           .invoke_us = invoke_us,
                           .return_us = return_us};
}

static enum sim_verdict check(struct sim_op *ops, size_t n_ops)
{
    for (size_t i = 0; i < n_ops; i++)
        ops[i].number = (uint32_t)i + 1;
    return sim_linearizability_check(ops, n_ops, 0, CAP, NULL);
}

#define EXPECT(ops, verdict) cr_expect_eq(check(ops, RT_ARRAY_SIZE(ops)), SIM_VERDICT_##verdict)

Test(linearizability, an_empty_history_and_an_empty_key)
{
    struct sim_op ops[] = {op(SIM_OP_READ, 0, 1, 2)};

    cr_expect_eq(check(NULL, 0), SIM_VERDICT_LINEARIZABLE);
    EXPECT(ops, LINEARIZABLE);
}

Test(linearizability, read_of_the_last_value)
{
    struct sim_op ops[] = {op(SIM_OP_PUT, 7, 1, 2), op(SIM_OP_SET, 8, 3, 4),
                           op(SIM_OP_READ, 8, 5, 6)};

    EXPECT(ops, LINEARIZABLE);
    ops[2].value = 7;
    EXPECT(ops, VIOLATED);
    ops[2].value = 0;
    EXPECT(ops, VIOLATED);
}

Test(linearizability, overlapping_operations_have_a_choice)
{
    struct sim_op ops[] = {op(SIM_OP_SET, 1, 1, 10), op(SIM_OP_SET, 2, 2, 9),
                           op(SIM_OP_READ, 1, 11, 12)};

    EXPECT(ops, LINEARIZABLE);
    ops[2].value = 2;
    EXPECT(ops, LINEARIZABLE);
    ops[1].invoke_us = 11;
    ops[1].return_us = 12;
    ops[2] = op(SIM_OP_READ, 1, 13, 14);
    EXPECT(ops, VIOLATED);
}

Test(linearizability, a_value_does_not_come_back)
{
    struct sim_op ops[] = {op(SIM_OP_SET, 1, 1, 2), op(SIM_OP_READ, 1, 3, 4),
                           op(SIM_OP_SET, 2, 3, 20), op(SIM_OP_READ, 2, 5, 6),
                           op(SIM_OP_READ, 1, 7, 8)};

    EXPECT(ops, VIOLATED);
    ops[4].value = 2;
    EXPECT(ops, LINEARIZABLE);
}

Test(linearizability, maybe_writes_happen_late_or_never)
{
    struct sim_op ops[] = {op(SIM_OP_PUT, 1, 1, 2), op(SIM_OP_PUT, 2, 3, 4),
                           op(SIM_OP_READ, 1, 5, 6), op(SIM_OP_READ, 2, 7, 8)};

    EXPECT(ops, VIOLATED);
    ops[1].result = SIM_RESULT_MAYBE;
    EXPECT(ops, LINEARIZABLE);
    ops[3].value = 1;
    EXPECT(ops, LINEARIZABLE);
    ops[1].invoke_us = 9;
    ops[3].value = 2;
    EXPECT(ops, VIOLATED);
}

Test(linearizability, refused_writes_do_not_happen_unless_tainted)
{
    struct sim_op ops[] = {op(SIM_OP_SET, 1, 1, 2), op(SIM_OP_READ, 1, 3, 4)};

    ops[0].result = SIM_RESULT_NO;
    EXPECT(ops, VIOLATED);
    ops[0].tainted = true;
    EXPECT(ops, LINEARIZABLE);
}

Test(linearizability, a_revert_loses_sets_but_no_stores)
{
    struct sim_op ops[] = {op(SIM_OP_PUT, 1, 1, 2), op(SIM_OP_SET, 2, 3, 4),
                           op(SIM_OP_REVERT, 0, 5, UINT64_MAX), op(SIM_OP_READ, 1, 6, 7)};

    ops[2].result = SIM_RESULT_PENDING;
    EXPECT(ops, LINEARIZABLE);
    ops[3].value = 2;
    EXPECT(ops, LINEARIZABLE);
    ops[3].value = 0;
    EXPECT(ops, VIOLATED);
    ops[1].kind = SIM_OP_PUT;
    ops[3].value = 1;
    EXPECT(ops, VIOLATED);
    ops[2].kind = SIM_OP_FORGET;
    ops[3].value = 0;
    EXPECT(ops, LINEARIZABLE);
}

Test(linearizability, a_store_makes_the_visible_value_durable)
{
    struct sim_op ops[] = {op(SIM_OP_SET, 1, 1, 2), op(SIM_OP_STORE, 0, 3, 4),
                           op(SIM_OP_REVERT, 0, 5, UINT64_MAX), op(SIM_OP_READ, 0, 6, 7)};

    ops[2].result = SIM_RESULT_PENDING;
    EXPECT(ops, VIOLATED);
    ops[3].value = 1;
    EXPECT(ops, LINEARIZABLE);
    ops[1].result = SIM_RESULT_MAYBE;
    ops[3].value = 0;
    EXPECT(ops, LINEARIZABLE);
}

Test(linearizability, a_dump_makes_its_value_durable)
{
    struct sim_op ops[] = {op(SIM_OP_SET, 1, 1, 2), op(SIM_OP_DUMP, 1, 3, UINT64_MAX),
                           op(SIM_OP_SET, 2, 4, 5), op(SIM_OP_REVERT, 0, 6, UINT64_MAX),
                           op(SIM_OP_READ, 1, 7, 8)};

    ops[1].result = SIM_RESULT_PENDING;
    ops[3].result = SIM_RESULT_PENDING;
    EXPECT(ops, LINEARIZABLE);
    ops[4].value = 0;
    EXPECT(ops, LINEARIZABLE);
    ops[4].value = 1;
    ops[1].value = 2;
    EXPECT(ops, VIOLATED);
    ops[1].value = 1;
    ops[1].kind = SIM_OP_REVERT;
    EXPECT(ops, VIOLATED);
}

Test(linearizability, a_delete_leaves_nothing)
{
    struct sim_op ops[] = {op(SIM_OP_PUT, 1, 1, 2), op(SIM_OP_DELETE, 0, 3, 4),
                           op(SIM_OP_READ, 0, 5, 6)};

    EXPECT(ops, LINEARIZABLE);
    ops[2].value = 1;
    EXPECT(ops, VIOLATED);
}

Test(linearizability, other_keys_do_not_matter)
{
    struct sim_op ops[] = {op(SIM_OP_PUT, 1, 1, 2), op(SIM_OP_READ, 1, 3, 4),
                           op(SIM_OP_READ, 9, 3, 4)};

    ops[2].key = 3;
    EXPECT(ops, LINEARIZABLE);
}

Test(linearizability, says_undecided_at_the_cap)
{
    struct sim_op ops[] = {op(SIM_OP_PUT, 1, 1, 2), op(SIM_OP_READ, 1, 3, 4)};

    ops[0].number = 1;
    ops[1].number = 2;
    cr_expect_eq(sim_linearizability_check(ops, 2, 0, 1, NULL), SIM_VERDICT_UNDECIDED);
    cr_expect_eq(sim_linearizability_check(ops, 2, 0, 2, NULL), SIM_VERDICT_LINEARIZABLE);
}

Test(linearizability, names_where_it_got_stuck)
{
    struct sim_op ops[] = {op(SIM_OP_PUT, 1, 1, 2), op(SIM_OP_READ, 5, 3, 4)};
    uint32_t blocked = 0;

    ops[0].number = 1;
    ops[1].number = 2;
    cr_expect_eq(sim_linearizability_check(ops, 2, 0, CAP, &blocked), SIM_VERDICT_VIOLATED);
    cr_expect_eq(blocked, 2);
}

/* A right history of N_OPS overlapping operations; the effect of each is at its middle. */
static void generate(struct rt_rng *rng, struct sim_op *ops)
{
    uint32_t visible = 0;

    for (uint32_t i = 0; i < N_OPS; i++) {
        uint64_t middle_us = 100 * ((uint64_t)i + 1);
        bool is_read = rt_rng_below(rng, 2) == 0;
        uint64_t before_us = 1 + rt_rng_below(rng, 250);

        ops[i] = op(is_read ? SIM_OP_READ : SIM_OP_SET, is_read ? visible : i + 1,
                    middle_us > before_us ? middle_us - before_us : 0,
                    middle_us + 1 + rt_rng_below(rng, 250));
        if (!is_read)
            visible = i + 1;
    }
}

/* Makes one read return a value that had been overwritten, for certain, before it began. */
static bool make_stale(struct sim_op *ops, struct rt_rng *rng)
{
    size_t i = (size_t)rt_rng_below(rng, N_OPS);

    if (ops[i].kind != SIM_OP_READ)
        return false;
    for (size_t newer = 0; newer < i; newer++)
        for (size_t older = 0; older < newer; older++)
            if (ops[older].kind == SIM_OP_SET && ops[newer].kind == SIM_OP_SET &&
                ops[older].return_us < ops[newer].invoke_us &&
                ops[newer].return_us < ops[i].invoke_us) {
                ops[i].value = ops[older].value;
                return true;
            }
    return false;
}

Test(linearizability, random_histories_and_stale_mutants)
{
    struct rt_rng rng = {11};
    struct sim_op ops[N_OPS];
    unsigned n_mutants = 0;

    for (unsigned round = 0; round < 200; round++) {
        generate(&rng, ops);
        cr_assert_eq(check(ops, N_OPS), SIM_VERDICT_LINEARIZABLE, "round %u", round);
        if (!make_stale(ops, &rng))
            continue;
        n_mutants++;
        cr_assert_eq(check(ops, N_OPS), SIM_VERDICT_VIOLATED, "round %u", round);
    }
    cr_expect_gt(n_mutants, 20);
}

Test(linearizability, a_lost_acknowledged_write_is_found)
{
    struct rt_rng rng = {12};
    struct sim_op ops[N_OPS + 1];

    for (unsigned round = 0; round < 100; round++) {
        generate(&rng, ops);
        /* At the end something is read that was never the last value. */
        ops[N_OPS] = op(SIM_OP_READ, 0, 100000, 100001);
        cr_assert_eq(check(ops, N_OPS + 1), SIM_VERDICT_VIOLATED, "round %u", round);
    }
}
