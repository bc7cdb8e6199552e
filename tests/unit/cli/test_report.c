/*
 * Results and failures: form, stream and exit code.
 */
#include "cli/report.h"

#include "tests/support/check.h"
#include "tests/unit/cli/streams.h"

TestSuite(report, .fini = test_alloc_expect_none);

static void fail_not_locked(struct model_response *response)
{
    model_response_fail(response, MODEL_REASON_KEY_NOT_LOCKED, "key 'a' is free");
}

Test(report, failure_as_text)
{
    struct streams streams;
    struct model_response response = {0};

    streams_open(&streams);
    streams.context.verb = "status";
    fail_not_locked(&response);
    cr_assert_eq(cli_report_failure(&streams.context, &response), MODEL_EXIT_PRECONDITION);
    streams_flush(&streams);
    cr_assert_str_eq(streams.err,
                     "redistinto: status: key 'a' is free (FAILED_PRECONDITION KEY_NOT_LOCKED)\n");
    cr_assert_str_eq(streams.out, "");
    streams_close(&streams);
}

Test(report, failure_as_json)
{
    struct streams streams;
    struct model_response response = {0};

    streams_open(&streams);
    streams.context.common.output = CLI_OUTPUT_JSON;
    fail_not_locked(&response);
    cr_assert_eq(cli_report_failure(&streams.context, &response), MODEL_EXIT_PRECONDITION);
    streams_flush(&streams);
    cr_assert_str_eq(streams.out,
                     "{\"error\":{\"code\":\"FAILED_PRECONDITION\",\"reason\":\"KEY_NOT_LOCKED\","
                     "\"message\":\"key 'a' is free\",\"applied\":\"NO\"}}\n");
    cr_assert_str_eq(streams.err, "");
    streams_close(&streams);
}

Test(report, failure_beside_other_members)
{
    struct model_response response = {0};
    struct rt_buffer buffer = {0};
    struct rt_json json;

    fail_not_locked(&response);
    rt_json_init(&json, &buffer);
    rt_json_object_begin(&json, NULL);
    rt_json_u64(&json, "line", 7);
    cli_report_write_failure(&json, response.code, &response.error);
    rt_json_object_end(&json);
    cr_assert_str_eq(
        rt_buffer_string(&buffer),
        "{\"line\":7,\"error\":{\"code\":\"FAILED_PRECONDITION\",\"reason\":\"KEY_NOT_LOCKED\","
        "\"message\":\"key 'a' is free\",\"applied\":\"NO\"}}");
    rt_buffer_deinit(&buffer);
}

Test(report, failure_without_reason)
{
    struct streams streams;
    struct model_response response = {.code = RT_UNAVAILABLE, .error.message = "no\033[1m route"};

    streams_open(&streams);
    cr_assert_eq(cli_report_failure(&streams.context, &response), MODEL_EXIT_UNAVAILABLE);
    streams.context.common.output = CLI_OUTPUT_JSON;
    cr_assert_eq(cli_report_failure(&streams.context, &response), MODEL_EXIT_UNAVAILABLE);
    streams_flush(&streams);
    cr_assert_str_eq(streams.err, "redistinto: no\\x1b[1m route (UNAVAILABLE)\n");
    cr_assert_str_eq(streams.out, "{\"error\":{\"code\":\"UNAVAILABLE\",\"reason\":null,"
                                  "\"message\":\"no\\u001b[1m route\",\"applied\":\"MAYBE\"}}\n");
    streams_close(&streams);
}

Test(report, own_error)
{
    struct streams streams;
    struct rt_error err = RT_ERROR_INIT;

    streams_open(&streams);
    streams.context.verb = "dev";
    (void)rt_fail_reason(&err, RT_NOT_FOUND, "DIR", "gone");
    cr_assert_eq(cli_report_error(&streams.context, &err), MODEL_EXIT_NOT_FOUND);
    cr_assert_eq(cli_report_usage(&streams.context, &err), MODEL_EXIT_USAGE);
    streams_flush(&streams);
    cr_assert_str_eq(streams.err, "redistinto: dev: gone (NOT_FOUND DIR)\n"
                                  "redistinto: dev: gone (NOT_FOUND DIR)\n");
    streams_close(&streams);
}

Test(report, result)
{
    struct streams streams;
    struct rt_buffer buffer = {0};

    streams_open(&streams);
    rt_buffer_append(&buffer, RT_BYTES_LITERAL("a\0b"));
    cr_assert_eq(cli_report_result(&streams.context, &buffer), MODEL_EXIT_OK);
    streams_flush(&streams);
    cr_assert_eq(streams.n_out, 3);
    cr_assert_eq(memcmp(streams.out, "a\0b", 3), 0);
    rt_buffer_deinit(&buffer);
    streams_close(&streams);
}

Test(report, empty_result)
{
    struct streams streams;
    struct rt_buffer buffer = {0};

    streams_open(&streams);
    cr_assert_eq(cli_report_result(&streams.context, &buffer), MODEL_EXIT_OK);
    streams_flush(&streams);
    cr_assert_eq(streams.n_out, 0);
    streams_close(&streams);
}

Test(report, result_too_large)
{
    struct streams streams;
    struct rt_buffer buffer = {.limit = 1};

    streams_open(&streams);
    rt_buffer_append_string(&buffer, "ab");
    cr_assert_eq(cli_report_result(&streams.context, &buffer), MODEL_EXIT_EXHAUSTED);
    streams_flush(&streams);
    cr_assert_neq(streams.n_err, 0);
    rt_buffer_deinit(&buffer);
    streams_close(&streams);
}

Test(report, result_that_cannot_be_written)
{
    struct streams streams;
    struct rt_buffer buffer = {0};
    FILE *memory;

    streams_open(&streams);
    memory = streams.context.out;
    streams.context.out = fopen("/dev/full", "we");
    cr_assert_not_null(streams.context.out);
    streams.context.common.output = CLI_OUTPUT_JSON;
    rt_buffer_append_string(&buffer, "x");
    cr_assert_eq(cli_report_result(&streams.context, &buffer), MODEL_EXIT_FAILED);
    streams_flush(&streams);
    cr_assert_not_null(strstr(streams.err, "writing the result: No space left"));
    (void)fclose(streams.context.out);
    streams.context.out = memory;
    rt_buffer_deinit(&buffer);
    streams_close(&streams);
}
