/*
 * Results and failures: see report.h. Whatever a peer said is printed without control characters.
 * One thread.
 */
#include "cli/report.h"

#include <errno.h>

#include "cli/escape.h"
#include "runtime/base/json.h"

struct failure {
    enum rt_code code;
    const char *reason; /* NULL: none */
    const char *message;
    enum model_applied applied;
};

static void write_json(const struct failure *failure, struct rt_json *json)
{
    rt_json_object_begin(json, "error");
    rt_json_string(json, "code", rt_code_name(failure->code));
    rt_json_string(json, "reason", failure->reason);
    rt_json_string(json, "message", failure->message);
    rt_json_string(json, "applied", failure->applied == MODEL_APPLIED_NO ? "NO" : "MAYBE");
    rt_json_object_end(json);
}

static void append_json(const struct failure *failure, struct rt_buffer *buffer)
{
    struct rt_json json;

    rt_json_init(&json, buffer);
    rt_json_object_begin(&json, NULL);
    write_json(failure, &json);
    rt_json_object_end(&json);
    rt_buffer_append_byte(buffer, '\n');
}

static void append_text(const struct cli_context *context, const struct failure *failure,
                        struct rt_buffer *buffer)
{
    rt_buffer_append_string(buffer, "redistinto: ");
    if (context->verb != NULL)
        rt_buffer_printf(buffer, "%s: ", context->verb);
    cli_escape_append_message(rt_bytes_of_string(failure->message), buffer);
    rt_buffer_printf(buffer, " (%s", rt_code_name(failure->code));
    if (failure->reason != NULL)
        rt_buffer_printf(buffer, " %s", failure->reason);
    rt_buffer_append_string(buffer, ")\n");
}

/* There is nobody left to tell when this fails. */
static void report(struct cli_context *context, const struct failure *failure)
{
    bool is_json = context->common.output == CLI_OUTPUT_JSON;
    FILE *stream = is_json ? context->out : context->err;
    struct rt_buffer buffer = {0};

    if (is_json)
        append_json(failure, &buffer);
    else
        append_text(context, failure, &buffer);
    (void)fwrite(buffer.data, 1, buffer.size, stream);
    (void)fflush(stream);
    rt_buffer_deinit(&buffer);
}

static void report_own(struct cli_context *context, const struct rt_error *err)
{
    struct failure failure = {
        .code = err->code,
        .reason = err->reason,
        .message = err->message,
        .applied = MODEL_APPLIED_NO,
    };

    report(context, &failure);
}

enum model_exit cli_report_error(struct cli_context *context, const struct rt_error *err)
{
    report_own(context, err);
    return model_exit_of(err->code, MODEL_REASON_NONE);
}

enum model_exit cli_report_usage(struct cli_context *context, const struct rt_error *err)
{
    report_own(context, err);
    return MODEL_EXIT_USAGE;
}

static struct failure failure_of(enum rt_code code, const struct model_error *error)
{
    return (struct failure){
        .code = code,
        .reason = error->reason == MODEL_REASON_NONE ? NULL : model_reason_name(error->reason),
        .message = error->message,
        .applied = error->applied,
    };
}

enum model_exit cli_report_failure(struct cli_context *context,
                                   const struct model_response *response)
{
    struct failure failure = failure_of(response->code, &response->error);

    report(context, &failure);
    return model_exit_of(response->code, response->error.reason);
}

void cli_report_write_failure(struct rt_json *json, enum rt_code code,
                              const struct model_error *error)
{
    struct failure failure = failure_of(code, error);

    write_json(&failure, json);
}

static bool write_all(FILE *stream, struct rt_bytes bytes)
{
    if (bytes.size > 0 && fwrite(bytes.data, 1, bytes.size, stream) != bytes.size)
        return false;
    return fflush(stream) == 0;
}

enum model_exit cli_report_result(struct cli_context *context, const struct rt_buffer *buffer)
{
    struct rt_error err = RT_ERROR_INIT;

    if (rt_buffer_check(buffer, &err) != RT_OK)
        return cli_report_error(context, &err);
    if (write_all(context->out, rt_buffer_bytes(buffer)))
        return MODEL_EXIT_OK;
    (void)rt_fail_errno(&err, errno, "writing the result");
    /* Standard output is what failed. */
    context->common.output = CLI_OUTPUT_TEXT;
    report_own(context, &err);
    return MODEL_EXIT_FAILED;
}
