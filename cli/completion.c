/*
 * The verb `completion`: see completion.h. One thread.
 */
#include "cli/completion.h"

#include <string.h>

#include "cli/report.h"
#include "runtime/base/json.h"

/* NULL when there is none for this shell. */
static const char *find(const struct cli_context *context, const char *shell)
{
    const struct {
        const char *shell;
        const char *script;
    } scripts[] = {
        {"bash", context->completion_bash},
        {"zsh", context->completion_zsh},
        {"fish", context->completion_fish},
    };

    for (size_t i = 0; i < RT_ARRAY_SIZE(scripts); i++)
        if (strcmp(scripts[i].shell, shell) == 0)
            return scripts[i].script;
    return NULL;
}

static void append(const struct cli_context *context, const char *shell, const char *script,
                   struct rt_buffer *buffer)
{
    struct rt_json json;

    if (context->common.output == CLI_OUTPUT_TEXT) {
        rt_buffer_append_string(buffer, script);
        return;
    }
    rt_json_init(&json, buffer);
    rt_json_object_begin(&json, NULL);
    rt_json_string(&json, "shell", shell);
    rt_json_string(&json, "script", script);
    rt_json_object_end(&json);
    rt_buffer_append_byte(buffer, '\n');
}

static enum model_exit run(struct cli_context *context, const char *const *arguments,
                           const void *config)
{
    struct rt_error err = RT_ERROR_INIT;
    struct rt_buffer buffer = {0};
    const char *script = find(context, arguments[0]);
    enum model_exit result;

    (void)config;
    if (script == NULL) {
        (void)rt_fail(&err, RT_INVALID_ARGUMENT, "there is no script for '%s' (bash, zsh, fish)",
                      arguments[0]);
        return cli_report_usage(context, &err);
    }
    append(context, arguments[0], script, &buffer);
    result = cli_report_result(context, &buffer);
    rt_buffer_deinit(&buffer);
    return result;
}

static const char *const completion_examples[] = {
    "redistinto completion bash >~/.local/share/bash-completion/completions/redistinto",
    "redistinto completion fish >~/.config/fish/completions/redistinto.fish",
    NULL,
};

const struct cli_verb cli_completion_verb = {
    .name = "completion",
    .arguments = "bash|zsh|fish",
    .n_arguments = 1,
    .summary = "print a script that makes the shell complete verbs, options and values",
    .description =
        "Prints the completion script for all commands of the suite. It is installed "
        "where the shell looks for it; where it is not, a line in ~/.bashrc, or in ~/.zshrc "
        "behind compinit, does it: source <(redistinto completion bash); in "
        "~/.config/fish/config.fish: redistinto completion fish | source.",
    .examples = completion_examples,
    .run = run,
};
