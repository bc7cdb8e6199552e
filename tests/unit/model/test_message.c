/*
 * Messages: names of every enumerator, filling answers.
 */
#include "runtime/model/message.h"

#include "tests/support/check.h"

TestSuite(message, .fini = test_alloc_expect_none);

Test(message, every_kind_has_a_name_of_its_own)
{
    for (int i = 0; i < MODEL_N_CALL_KINDS; i++) {
        cr_assert_neq(model_call_kind_name((enum model_call_kind)i)[0], '?');
        for (int j = 0; j < i; j++)
            cr_assert_str_neq(model_call_kind_name((enum model_call_kind)i),
                              model_call_kind_name((enum model_call_kind)j));
    }
    cr_assert_str_eq(model_call_kind_name(MODEL_N_CALL_KINDS), "?");
}

Test(message, names_of_states_and_statements)
{
    cr_assert_str_eq(model_member_state_name(MODEL_MEMBER_JOINING), "joining");
    cr_assert_str_eq(model_member_state_name(MODEL_MEMBER_LEFT), "left");
    cr_assert_str_eq(model_member_state_name((enum model_member_state)99), "?");
    cr_assert_str_eq(model_distribution_names[MODEL_DISTRIBUTION_KEY_EXPLICIT], "key-explicit");
    cr_assert_null(model_distribution_names[MODEL_N_DISTRIBUTIONS]);
    cr_assert_str_eq(model_statement_kind_name(MODEL_STATEMENT_GET), "GET");
    cr_assert_str_eq(model_statement_kind_name(MODEL_STATEMENT_AWAIT), "AWAIT");
    cr_assert_str_eq(model_statement_kind_name((enum model_statement_kind)99), "?");
}

Test(message, fail_fills_from_the_reason)
{
    struct model_response response;

    memset(&response, 0xff, sizeof(response));
    model_response_fail(&response, MODEL_REASON_KEY_NOT_LOCKED, "key '%s'", "k");
    cr_assert_eq(response.code, RT_FAILED_PRECONDITION);
    cr_assert_eq(response.error.reason, MODEL_REASON_KEY_NOT_LOCKED);
    cr_assert_eq(response.error.applied, MODEL_APPLIED_NO);
    cr_assert_str_eq(response.error.message, "key 'k'");
    cr_assert_eq(response.error.retry_after_ms, 0);
    cr_assert_not(response.error.has_hint);
    cr_assert_eq(response.error.key.size, 0);
}

Test(message, fail_cuts_an_overlong_message)
{
    struct model_response response;
    char text[MODEL_ERROR_MESSAGE_MAX + 2];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    model_response_fail(&response, MODEL_REASON_NONE, "%s", text);
    cr_assert_eq(strlen(response.error.message), MODEL_ERROR_MESSAGE_MAX);
    model_response_fail(&response, MODEL_REASON_NONE, "%s", text + 1);
    cr_assert_str_eq(response.error.message, text + 1);
}

Test(message, ok_zeroes_the_member_of_the_kind)
{
    for (int i = 0; i < MODEL_N_CALL_KINDS; i++) {
        struct model_response response;

        memset(&response, 0xff, sizeof(response));
        model_response_ok(&response, (enum model_call_kind)i);
        cr_assert_eq(response.code, RT_OK);
        if (i == MODEL_CALL_EXECUTE)
            cr_assert_eq(response.execute.outcome, MODEL_OUTCOME_DONE);
        if (i == MODEL_CALL_RENEW)
            cr_assert_eq(response.renew.lease_ms, 0);
        if (i == MODEL_CALL_LIST_KEYS)
            cr_assert_null(response.list_keys.keys);
        if (i == MODEL_CALL_FENCE)
            cr_assert_not(response.data.has_value);
    }
}
