/*
 * Exit codes: every code of the currency has its own, and an unknown outcome beats its code.
 */
#include "runtime/model/exit.h"

#include "tests/support/check.h"

TestSuite(exit, .fini = test_alloc_expect_none);

Test(exit, every_code)
{
    static const struct {
        enum rt_code code;
        int expected;
    } rows[] = {
        {RT_OK, 0},
        {RT_CANCELLED, 1},
        {RT_UNKNOWN, 9},
        {RT_INVALID_ARGUMENT, 2},
        {RT_DEADLINE_EXCEEDED, 5},
        {RT_NOT_FOUND, 3},
        {RT_ALREADY_EXISTS, 4},
        {RT_PERMISSION_DENIED, 6},
        {RT_RESOURCE_EXHAUSTED, 7},
        {RT_FAILED_PRECONDITION, 4},
        {RT_ABORTED, 4},
        {RT_OUT_OF_RANGE, 2},
        {RT_UNIMPLEMENTED, 1},
        {RT_INTERNAL, 9},
        {RT_UNAVAILABLE, 5},
        {RT_DATA_LOSS, 9},
        {RT_UNAUTHENTICATED, 6},
    };

    cr_assert_eq(RT_ARRAY_SIZE(rows), RT_UNAUTHENTICATED + 1);
    for (size_t i = 0; i < RT_ARRAY_SIZE(rows); i++) {
        cr_assert_eq(rows[i].code, i);
        cr_assert_eq((int)model_exit_of(rows[i].code, MODEL_REASON_NONE), rows[i].expected, "%s",
                     rt_code_name(rows[i].code));
    }
}

Test(exit, reasons_follow_their_code)
{
    for (int reason = 0; reason < MODEL_N_REASONS; reason++) {
        enum rt_code code = model_reason_code((enum model_reason)reason);
        int expected = (int)model_exit_of(code, MODEL_REASON_NONE);

        if (reason == MODEL_REASON_OUTCOME_UNKNOWN)
            expected = 8;
        cr_assert_eq((int)model_exit_of(code, (enum model_reason)reason), expected, "%s",
                     model_reason_name((enum model_reason)reason));
    }
}
