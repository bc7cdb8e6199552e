/*
 * The verb read: see query.h. A session of its own carries the one statement; it is closed in any
 * case. One thread.
 */
#include <stdio.h>

#include "cli/client.h"
#include "cli/inspect.h"
#include "cli/query.h"
#include "cli/report.h"

struct no_config {
    char unused;
};

static enum model_exit report_no_value(struct cli_context *context, const char *key)
{
    struct rt_error err = RT_ERROR_INIT;

    (void)rt_fail(&err, RT_NOT_FOUND, "key '%s' has no value", key);
    return cli_report_error(context, &err);
}

static enum model_exit print_value(struct cli_context *context, const char *key,
                                   const struct model_execute_response *response)
{
    struct rt_buffer buffer = {0};
    enum model_exit result;

    if (!response->data.has_value)
        return report_no_value(context, key);
    if (response->data.sets_lost && context->common.output == CLI_OUTPUT_TEXT)
        (void)fprintf(context->err, "redistinto: read: SETs of this key were lost with an earlier "
                                    "process of its owner\n");
    cli_inspect_append_value(rt_bytes_of_string(key), response, context->common.output,
                             context->out_is_terminal, &buffer);
    result = cli_report_result(context, &buffer);
    rt_buffer_deinit(&buffer);
    return result;
}

static enum model_exit read_in_session(struct cli_context *context, struct cli_client *client,
                                       const struct model_id *session_id,
                                       const struct model_request_id *request_id, const char *key)
{
    struct model_call *call = model_call_new(MODEL_CALL_EXECUTE);
    enum model_exit result;

    call->request.execute.session_id = *session_id;
    call->request.execute.request_id = *request_id;
    call->request.execute.done_below = request_id->seq;
    call->request.execute.kind = MODEL_STATEMENT_READ;
    call->request.execute.key = rt_bytes_of_string(key);
    if (cli_client_call(client, call))
        result = print_value(context, key, &call->response.execute);
    else
        result = cli_client_report(client, &call->response);
    (void)model_call_free(call);
    return result;
}

/* What becomes of it matters to nobody: an open session ends by itself. */
static void close_session(struct cli_client *client, const struct model_id *session_id)
{
    struct model_call *call = model_call_new(MODEL_CALL_CLOSE_SESSION);

    call->request.session.session_id = *session_id;
    (void)!cli_client_call(client, call);
    (void)model_call_free(call);
}

static enum model_exit run_read(struct cli_context *context, const char *const *arguments,
                                const void *config)
{
    struct cli_client *client = cli_client_new(context);
    struct model_call *call = model_call_new(MODEL_CALL_OPEN_SESSION);
    struct model_request_id request_id = {.client = cli_client_new_id(client), .seq = 1};
    enum model_exit result;

    (void)config;
    (void)snprintf(call->request.open_session.name, sizeof(call->request.open_session.name),
                   "redistinto-read");
    call->request.open_session.request_id = request_id;
    if (cli_client_call(client, call)) {
        const struct model_id *session_id = &call->response.open_session.session_id;

        request_id.seq++;
        result = read_in_session(context, client, session_id, &request_id, arguments[0]);
        close_session(client, session_id);
    } else {
        result = cli_client_report(client, &call->response);
    }
    (void)model_call_free(call);
    (void)cli_client_free(client);
    return result;
}

const struct cli_verb cli_read_verb = {
    .name = "read",
    .arguments = "KEY",
    .n_arguments = 1,
    .summary = "print a key's value without locking it",
    .description =
        "Prints the value as its owner has it now. In text form its bytes are printed as "
        "they are, with a newline behind them only on a terminal; JSON has a string, or "
        "{\"base64\": ...} where the bytes are no UTF-8. A key that is unknown or has no "
        "value: exit code 3.",
    .config_size = sizeof(struct no_config),
    .run = run_read,
};
