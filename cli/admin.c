/*
 * Verbs that change: see admin.h. What was typed is understood before anything is asked of the
 * coordinator. One thread.
 */
#include "cli/admin.h"

#include <string.h>

#include "cli/client.h"
#include "cli/escape.h"
#include "cli/report.h"
#include "runtime/base/json.h"
#include "runtime/model/message.h"

/* Appends what the coordinator answered, as complete lines. */
typedef void (*append_fn)(const struct model_call *call, enum cli_output output,
                          struct rt_buffer *buffer);

static enum model_exit ask(struct cli_context *context, struct model_call *call, append_fn append)
{
    struct cli_client *client = cli_client_new(context);
    struct rt_buffer buffer = {0};
    enum model_exit result;

    if (cli_client_call(client, call)) {
        append(call, context->common.output, &buffer);
        result = cli_report_result(context, &buffer);
    } else if (call->request.kind == MODEL_CALL_GET_DISTRIBUTION) {
        result = cli_client_report(client, &call->response);
    } else {
        result = cli_client_report_change(client, &call->response);
    }
    rt_buffer_deinit(&buffer);
    (void)cli_client_free(client);
    return result;
}

/* ---- distribution ---------------------------------------------------------------------------- */

static void append_distribution(const struct model_call *call, enum cli_output output,
                                struct rt_buffer *buffer)
{
    const struct model_distribution_response *answer = &call->response.distribution;
    const char *name = model_distribution_names[answer->distribution];
    const char *configured = model_distribution_names[answer->configured];
    struct rt_json json;

    if (output == CLI_OUTPUT_TEXT) {
        rt_buffer_append_string(buffer, name);
        if (answer->distribution != answer->configured)
            rt_buffer_printf(buffer, "  (the coordinator's option says %s)", configured);
    } else {
        rt_json_init(&json, buffer);
        rt_json_object_begin(&json, NULL);
        rt_json_string(&json, "distribution", name);
        rt_json_string(&json, "configured", configured);
        rt_json_object_end(&json);
    }
    rt_buffer_append_byte(buffer, '\n');
}

/* `name` NULL: it stays as it is. */
static enum rt_code take_name(const char *name, struct model_request *request, struct rt_error *err)
{
    request->kind = MODEL_CALL_GET_DISTRIBUTION;
    if (name == NULL)
        return RT_OK;
    request->kind = MODEL_CALL_SET_DISTRIBUTION;
    for (int i = 0; i < MODEL_N_DISTRIBUTIONS; i++) {
        if (strcmp(name, model_distribution_names[i]) != 0)
            continue;
        request->distribution.distribution = (enum model_distribution)i;
        return RT_OK;
    }
    return rt_fail(
        err, RT_INVALID_ARGUMENT, "there is no distribution '%s', valid are %s, %s and %s", name,
        model_distribution_names[0], model_distribution_names[1], model_distribution_names[2]);
}

static enum model_exit run_distribution(struct cli_context *context, const char *const *arguments,
                                        const void *config)
{
    struct model_call *call = model_call_new(MODEL_CALL_GET_DISTRIBUTION);
    struct rt_error err = RT_ERROR_INIT;
    enum model_exit result;

    (void)config;
    if (take_name(arguments[0], &call->request, &err) == RT_OK)
        result = ask(context, call, append_distribution);
    else
        result = cli_report_usage(context, &err);
    (void)model_call_free(call);
    return result;
}

static const char *const distribution_examples[] = {
    "redistinto distribution                    # as it is now",
    "redistinto distribution least-space-used",
    NULL,
};

const struct cli_verb cli_distribution_verb = {
    .name = "distribution",
    .arguments = "[NAME]",
    .n_optional = 1,
    .summary = "show or change how the instances of new keys are chosen",
    .description = "Without NAME shows the rule that holds now. With NAME, which is "
                   "equitable-load, least-space-used or key-explicit, changes it, durably: until "
                   "it is changed again, or the coordinator is started with another value of "
                   "--distribution than it had then. Keys that have an instance stay there.",
    .examples = distribution_examples,
    .run = run_distribution,
};

/* ---- unlock ---------------------------------------------------------------------------------- */

struct unlock_config {
    bool is_escaped;
};

static const struct rt_option unlock_options[] = {
    {.name = "escaped",
     .letter = 'e',
     .type = RT_OPTION_FLAG,
     .help = "In KEY \\xNN stands for a byte and \\\\ for a backslash, as keys are shown.",
     .offset = offsetof(struct unlock_config, is_escaped)},
};

static void append_unlocked(const struct model_call *call, enum cli_output output,
                            struct rt_buffer *buffer)
{
    const char *holder = call->response.free_lock.holder;
    struct rt_json json;

    if (output == CLI_OUTPUT_TEXT) {
        rt_buffer_printf(buffer, "%s\n", *holder == '\0' ? "(nobody held it)" : holder);
        return;
    }
    rt_json_init(&json, buffer);
    rt_json_object_begin(&json, NULL);
    rt_json_bytes(&json, "key", call->request.key_status.key);
    rt_json_string(&json, "holder", *holder == '\0' ? NULL : holder);
    rt_json_object_end(&json);
    rt_buffer_append_byte(buffer, '\n');
}

static enum model_exit run_unlock(struct cli_context *context, const char *const *arguments,
                                  const void *config)
{
    const struct unlock_config *unlock = config;
    struct model_call *call = model_call_new(MODEL_CALL_FREE_LOCK);
    struct rt_buffer key = {0};
    struct rt_error err = RT_ERROR_INIT;
    enum model_exit result;

    if (cli_escape_take_word(arguments[0], unlock->is_escaped, &key, &err) == RT_OK) {
        call->request.key_status.key = rt_buffer_bytes(&key);
        result = ask(context, call, append_unlocked);
    } else {
        result = cli_report_usage(context, &err);
    }
    rt_buffer_deinit(&key);
    (void)model_call_free(call);
    return result;
}

static const char *const unlock_examples[] = {
    "redistinto unlock orders/17",
    "redistinto unlock -e 'key\\x00with\\x00nul' -o json",
    NULL,
};

const struct cli_verb cli_unlock_verb = {
    .name = "unlock",
    .arguments = "KEY",
    .n_arguments = 1,
    .summary = "free the lock of a key, whoever holds it",
    .description = "Frees the lock, wakes the first session that waits for it, and says who held "
                   "it. What the holder still does under its lock is refused. For locks that "
                   "--keep-locks-on-abort of the coordinator has kept, and for holders that hang.",
    .examples = unlock_examples,
    .options = unlock_options,
    .n_options = RT_ARRAY_SIZE(unlock_options),
    .config_size = sizeof(struct unlock_config),
    .run = run_unlock,
};
