#include "tests/sim/history.h"

#include <criterion/criterion.h>

#include "tests/support/check.h"

TestSuite(history, .fini = test_alloc_expect_none);

Test(history, numbers_and_finds_operations)
{
    struct sim_history history;
    struct model_request_id id = {.client = {{1}}, .seq = 4};
    struct model_request_id other = {.client = {{1}}, .seq = 5};

    sim_history_init(&history);
    for (uint32_t i = 1; i <= 1000; i++)
        cr_assert_eq(sim_history_invoke(&history, 1, 0, SIM_OP_SET, i), i);
    sim_history_identify(&history, 700, &id);
    sim_history_identify(&history, 700, &id);
    cr_expect_eq(sim_history_find(&history, &id), 700);
    cr_expect_eq(sim_history_find(&history, &other), 0);
    cr_expect_eq(sim_history_op(&history, 700)->value, 700);
    cr_expect_eq(sim_history_op(&history, 700)->return_us, UINT64_MAX);
    sim_history_return(&history, 700, SIM_RESULT_OK, 99);
    cr_expect_eq(sim_history_op(&history, 700)->return_us, 99);
    sim_history_deinit(&history);
}

Test(history, a_read_writes_nothing)
{
    struct sim_history history;

    sim_history_init(&history);
    cr_expect_eq(
        sim_history_op(&history, sim_history_invoke(&history, 0, 0, SIM_OP_READ, 1))->value, 0);
    cr_expect_eq(
        sim_history_op(&history, sim_history_invoke(&history, 0, 0, SIM_OP_DELETE, 1))->value, 0);
    sim_history_deinit(&history);
}

Test(history, a_copy_that_was_not_refused_makes_no_unclear)
{
    struct sim_op op = {.result = SIM_RESULT_NO};

    cr_expect_eq(sim_op_effective_result(&op), SIM_RESULT_NO);
    op.tainted = true;
    cr_expect_eq(sim_op_effective_result(&op), SIM_RESULT_MAYBE);
    op.result = SIM_RESULT_OK;
    cr_expect_eq(sim_op_effective_result(&op), SIM_RESULT_OK);
    op.result = SIM_RESULT_PENDING;
    cr_expect_eq(sim_op_effective_result(&op), SIM_RESULT_MAYBE);
}

Test(history, values_come_back_and_foreign_ones_are_seen)
{
    uint8_t buffer[SIM_VALUE_MAX];

    for (uint32_t number = 1; number < 5000; number++)
        cr_assert_eq(sim_value_decode(sim_value_encode(number, buffer)), number);
    cr_expect_eq(sim_value_decode(RT_BYTES_LITERAL("")), SIM_VALUE_FOREIGN);
    cr_expect_eq(sim_value_decode(RT_BYTES_LITERAL("not a value")), SIM_VALUE_FOREIGN);
    (void)sim_value_encode(77, buffer);
    cr_expect_eq(sim_value_decode(rt_bytes_of(buffer, 8 + 77 * 7 % 56 - 1)), SIM_VALUE_FOREIGN);
}
