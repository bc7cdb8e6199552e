/*
 * The verb session: see session_verb.h. A session lives while somebody keeps it alive, so `open`
 * stays in the foreground. One thread.
 */
#include "cli/session_verb.h"

#include "cli/client.h"
#include "cli/report.h"
#include "cli/session.h"
#include "cli/text.h"
#include "runtime/base/json.h"

#define TTL_MAX_MS (30 * UINT64_C(86400000))

struct config {
    const char *name;
    uint64_t ttl_ms;
};

static const struct rt_option options[] = {
    {.name = "name",
     .type = RT_OPTION_STRING,
     .help = "With open: name of the session, shown as the holder of its locks.",
     .argument = "NAME",
     .initial = "redistinto-session",
     .offset = offsetof(struct config, name)},
    {.name = "ttl",
     .type = RT_OPTION_DURATION,
     .help = "With open: close the session after this long; 0 = when interrupted.",
     .initial = "0",
     .max = TTL_MAX_MS,
     .offset = offsetof(struct config, ttl_ms)},
};

/* `name` NULL: only which one it was. */
static void append_json(const char *id, const char *name, uint64_t lease_ms,
                        struct rt_buffer *buffer)
{
    struct rt_json json;

    rt_json_init(&json, buffer);
    rt_json_object_begin(&json, NULL);
    rt_json_string(&json, "session_id", id);
    if (name != NULL) {
        rt_json_string(&json, "name", name);
        rt_json_u64(&json, "lease_ms", lease_ms);
    }
    rt_json_object_end(&json);
    rt_buffer_append_byte(buffer, '\n');
}

static enum model_exit print_session(struct cli_context *context, const struct model_id *id,
                                     const char *name, uint64_t lease_ms)
{
    char text[MODEL_ID_TEXT_SIZE];
    struct rt_buffer buffer = {0};
    enum model_exit result;

    model_id_format(id, text);
    if (context->common.output == CLI_OUTPUT_JSON)
        append_json(text, name, lease_ms, &buffer);
    else
        rt_buffer_printf(&buffer, "%s\n", text);
    result = cli_report_result(context, &buffer);
    rt_buffer_deinit(&buffer);
    return result;
}

/* ---- open ------------------------------------------------------------------------------------ */

static enum model_exit report_lost(struct cli_context *context, struct cli_session *session)
{
    struct model_response failure = cli_session_failure(session);

    return cli_report_failure(context, &failure);
}

static enum model_exit hold(struct cli_context *context, struct cli_session *session,
                            const struct config *config)
{
    struct model_id id = cli_session_id(session);
    enum model_exit result =
        print_session(context, &id, config->name, cli_session_lease_ms(session));

    if (result != MODEL_EXIT_OK)
        return result;
    cli_session_wait(session, config->ttl_ms);
    return cli_session_end(session) == CLI_SESSION_LOST ? report_lost(context, session)
                                                        : MODEL_EXIT_OK;
}

static enum model_exit run_open(struct cli_context *context, const struct config *config)
{
    struct cli_session *session = cli_session_new(context, config->name);
    enum model_exit result = MODEL_EXIT_INTERRUPTED;

    if (cli_session_wait_open(session))
        result = hold(context, session, config);
    else if (cli_session_end(session) == CLI_SESSION_LOST)
        result = report_lost(context, session);
    (void)cli_session_free(session);
    return result;
}

/* ---- close ----------------------------------------------------------------------------------- */

static enum model_exit close_session(struct cli_context *context, const struct model_id *id)
{
    struct cli_client *client = cli_client_new(context);
    struct model_call *call = model_call_new(MODEL_CALL_CLOSE_SESSION);
    enum model_exit result = MODEL_EXIT_OK;

    call->request.session.session_id = *id;
    if (!cli_client_call(client, call))
        result = cli_client_report_change(client, &call->response);
    else if (context->common.output == CLI_OUTPUT_JSON)
        result = print_session(context, id, NULL, 0);
    (void)model_call_free(call);
    (void)cli_client_free(client);
    return result;
}

/* ---- the verb -------------------------------------------------------------------------------- */

static enum rt_code check_open(const char *id, const struct config *config, struct rt_error *err)
{
    if (id != NULL)
        return rt_fail(err, RT_INVALID_ARGUMENT,
                       "unexpected argument '%s': open takes no ID, the coordinator makes one", id);
    return model_name_check("--name", rt_bytes_of_string(config->name), err);
}

static enum rt_code check_close(const char *id, struct model_id *ret_id, struct rt_error *err)
{
    if (id == NULL)
        return rt_fail(err, RT_INVALID_ARGUMENT, "the ID of the session to close is missing");
    return cli_text_parse_id(id, ret_id, err);
}

static enum model_exit run_session(struct cli_context *context, const char *const *arguments,
                                   const void *config)
{
    struct rt_error err = RT_ERROR_INIT;
    struct model_id id;

    if (strcmp(arguments[0], "open") == 0) {
        if (check_open(arguments[1], config, &err) == RT_OK)
            return run_open(context, config);
    } else if (strcmp(arguments[0], "close") == 0) {
        if (check_close(arguments[1], &id, &err) == RT_OK)
            return close_session(context, &id);
    } else {
        (void)rt_fail(&err, RT_INVALID_ARGUMENT,
                      "unknown argument '%s': there are session open, session close ID",
                      arguments[0]);
    }
    return cli_report_usage(context, &err);
}

static const char *const session_examples[] = {
    "redistinto session open --name cashier --ttl 10m",
    "redistinto session close 0123456789abcdef0123456789abcdef",
    NULL,
};

const struct cli_verb cli_session_verb = {
    .name = "session",
    .arguments = "open|close [ID]",
    .n_arguments = 1,
    .n_optional = 1,
    .summary = "hold a session open for other commands, or close one",
    .description =
        "open: prints the id of a new session and keeps it alive until it is interrupted or --ttl "
        "is over, then closes it; other commands use it with --session ID or REDISTINTO_SESSION. "
        "Locks that they take stay until they are stored or the session ends. Exit code 4 when "
        "the session ended otherwise. close ID: ends a session and frees its locks, whoever keeps "
        "it alive; one that has ended is no error.",
    .examples = session_examples,
    .options = options,
    .n_options = RT_ARRAY_SIZE(options),
    .config_size = sizeof(struct config),
    .run = run_session,
};
