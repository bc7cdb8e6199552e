/*
 * Reasons: the table answers for every word, and promises "not applied" only where it should.
 */
#include "runtime/model/reason.h"

#include "tests/support/check.h"

TestSuite(reason, .fini = test_alloc_expect_none);

Test(reason, every_word_comes_back)
{
    for (int i = 0; i < MODEL_N_REASONS; i++) {
        enum model_reason reason = (enum model_reason)i;
        const char *name = model_reason_name(reason);

        cr_assert_eq(model_reason_parse(rt_bytes_of_string(name)), reason, "%s", name);
        cr_assert_neq(model_reason_code(reason), RT_OK);
        cr_assert_neq(model_reason_code(reason), RT_UNKNOWN);
        cr_assert_gt(strlen(model_reason_meaning(reason)), 5);
    }
}

Test(reason, unknown_words_are_none)
{
    cr_assert_eq(model_reason_parse(RT_BYTES_LITERAL("")), MODEL_REASON_NONE);
    cr_assert_eq(model_reason_parse(RT_BYTES_LITERAL("key_empty")), MODEL_REASON_NONE);
    cr_assert_eq(model_reason_parse(RT_BYTES_LITERAL("KEY_EMPTY\0")), MODEL_REASON_NONE);
    cr_assert_str_eq(model_reason_name(MODEL_N_REASONS), "NONE");
    cr_assert_str_eq(model_reason_name((enum model_reason) - 1), "NONE");
    cr_assert_eq(model_reason_applied((enum model_reason)1000), MODEL_APPLIED_MAYBE);
}

Test(reason, maybe_is_said_where_an_effect_is_possible)
{
    static const enum model_reason maybe[] = {MODEL_REASON_NONE, MODEL_REASON_OWNER_UNREACHABLE,
                                              MODEL_REASON_STORE_ERROR,
                                              MODEL_REASON_OUTCOME_UNKNOWN};
    size_t n_maybe = 0;

    for (int i = 0; i < MODEL_N_REASONS; i++)
        n_maybe += model_reason_applied((enum model_reason)i) == MODEL_APPLIED_MAYBE;
    cr_assert_eq(n_maybe, RT_ARRAY_SIZE(maybe));
    for (size_t i = 0; i < RT_ARRAY_SIZE(maybe); i++)
        cr_assert_eq(model_reason_applied(maybe[i]), MODEL_APPLIED_MAYBE);
}

Test(reason, codes_as_the_design_says)
{
    cr_assert_eq(model_reason_code(MODEL_REASON_KEY_TOO_LONG), RT_INVALID_ARGUMENT);
    cr_assert_eq(model_reason_code(MODEL_REASON_KEY_NOT_IDENTIFIED), RT_NOT_FOUND);
    cr_assert_eq(model_reason_code(MODEL_REASON_KEY_NOT_LOCKED), RT_FAILED_PRECONDITION);
    cr_assert_eq(model_reason_code(MODEL_REASON_LOCK_FENCED), RT_ABORTED);
    cr_assert_eq(model_reason_code(MODEL_REASON_EPOCH_AHEAD), RT_UNAVAILABLE);
    cr_assert_eq(model_reason_code(MODEL_REASON_OUTCOME_UNKNOWN), RT_ABORTED);
    cr_assert_eq(model_reason_code(MODEL_REASON_DISK_FULL), RT_RESOURCE_EXHAUSTED);
    cr_assert_eq(model_reason_code(MODEL_REASON_NAME_IN_USE), RT_ALREADY_EXISTS);
}
