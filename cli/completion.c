/*
 * The verb `completion`: see completion.h. One thread.
 */
#include "cli/completion.h"

#include <string.h>

#include "cli/report.h"
#include "runtime/base/json.h"

static void append(const struct cli_context *context, const char *shell, struct rt_buffer *buffer)
{
    struct rt_json json;

    if (context->common.output == CLI_OUTPUT_TEXT) {
        rt_buffer_append_string(buffer, context->completion_bash);
        return;
    }
    rt_json_init(&json, buffer);
    rt_json_object_begin(&json, NULL);
    rt_json_string(&json, "shell", shell);
    rt_json_string(&json, "script", context->completion_bash);
    rt_json_object_end(&json);
    rt_buffer_append_byte(buffer, '\n');
}

static enum model_exit run(struct cli_context *context, const char *const *arguments,
                           const void *config)
{
    struct rt_error err = RT_ERROR_INIT;
    struct rt_buffer buffer = {0};
    enum model_exit result;

    (void)config;
    if (strcmp(arguments[0], "bash") != 0) {
        (void)rt_fail(&err, RT_INVALID_ARGUMENT, "there is no script for '%s' (bash)",
                      arguments[0]);
        return cli_report_usage(context, &err);
    }
    append(context, arguments[0], &buffer);
    result = cli_report_result(context, &buffer);
    rt_buffer_deinit(&buffer);
    return result;
}

static const char *const completion_examples[] = {
    "redistinto completion bash >~/.local/share/bash-completion/completions/redistinto",
    NULL,
};

const struct cli_verb cli_completion_verb = {
    .name = "completion",
    .arguments = "bash",
    .n_arguments = 1,
    .summary = "print a script that makes the shell complete verbs, options and values",
    .description = "Prints the completion script for all commands of the suite. It is installed "
                   "where bash looks for it; where it is not, this line in ~/.bashrc does it: "
                   "source <(redistinto completion bash).",
    .examples = completion_examples,
    .run = run,
};
