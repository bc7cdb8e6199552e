/*
 * The shell: see shell.h. Each line is answered before the next one is read. Invariant: no
 * statement runs in another session than the user believes: the end of a session is told, and from
 * a pipe it ends the shell. One thread.
 */
#include "cli/shell.h"

#include <signal.h>

#include "cli/escape.h"
#include "cli/inspect.h"
#include "cli/report.h"
#include "cli/session.h"
#include "cli/shell_input.h"
#include "cli/shell_line.h"
#include "esi-client/report.h"
#include "runtime/base/alloc.h"

struct config {
    const char *name;
    bool is_escaped;
};

struct shell {
    struct cli_context *context;
    const struct config *config;
    struct cli_shell_input *input; /* owned */
    struct cli_session *session;   /* owned */
    struct cli_shell_line line;
    uint64_t n_lines;
    bool has_told_end; /* of the session */
    bool has_failed;   /* a line */
    bool is_over;
    enum model_exit result;
};

static bool is_typed(const struct shell *shell)
{
    return cli_shell_input_is_terminal(shell->input);
}

static bool is_json(const struct shell *shell)
{
    return shell->context->common.output == CLI_OUTPUT_JSON;
}

static void end(struct shell *shell, enum model_exit result)
{
    shell->is_over = true;
    shell->result = result;
}

/* ---- output ---------------------------------------------------------------------------------- */

/* An answer to a line. */
static void print(struct shell *shell, struct rt_buffer *buffer)
{
    enum model_exit result = cli_report_result(shell->context, buffer);

    if (result != MODEL_EXIT_OK)
        end(shell, result);
    rt_buffer_deinit(buffer);
}

/* What happened otherwise. */
static void tell(struct shell *shell, const char *text)
{
    struct rt_buffer shown = {0};

    cli_escape_append_message(rt_bytes_of_string(text), &shown);
    (void)fprintf(shell->context->err, "redistinto: shell: %s\n", rt_buffer_string(&shown));
    (void)fflush(shell->context->err);
    rt_buffer_deinit(&shown);
}

/* A person sees what was typed; whoever reads the answers to a pipe needs to know to which. */
static void append_line_number(const struct shell *shell, struct rt_buffer *buffer)
{
    if (!is_typed(shell))
        rt_buffer_printf(buffer, "%llu: ", (unsigned long long)shell->n_lines);
}

static void begin_json(const struct shell *shell, struct rt_json *json, struct rt_buffer *buffer)
{
    rt_json_init(json, buffer);
    rt_json_object_begin(json, NULL);
    rt_json_u64(json, "line", shell->n_lines);
}

static void end_json(struct rt_json *json)
{
    rt_json_object_end(json);
    rt_buffer_append_byte(json->buffer, '\n');
}

static void append_value(const struct esi_result *result, struct rt_buffer *buffer)
{
    enum model_statement_kind kind = result->statement.kind;

    if (kind != MODEL_STATEMENT_GET && kind != MODEL_STATEMENT_READ)
        return;
    if (!result->response.data.has_value) {
        rt_buffer_append_string(buffer, " no value");
        return;
    }
    rt_buffer_append_string(buffer, " value=");
    cli_escape_append(result->response.data.value, buffer);
}

static void append_text(const struct esi_result *result, struct rt_buffer *buffer)
{
    rt_buffer_append_string(buffer, esi_report_outcome_name(result->outcome));
    if (result->code == RT_OK) {
        rt_buffer_append_byte(buffer, ' ');
        cli_inspect_append_result(result->statement.kind, &result->response, buffer);
        append_value(result, buffer);
    } else {
        rt_buffer_append_string(buffer, ": ");
        cli_escape_append_message(rt_bytes_of_string(result->error.message), buffer);
        rt_buffer_printf(buffer, " (%s", rt_code_name(result->code));
        if (result->error.reason != MODEL_REASON_NONE)
            rt_buffer_printf(buffer, " %s", model_reason_name(result->error.reason));
        rt_buffer_append_byte(buffer, ')');
    }
    rt_buffer_append_byte(buffer, '\n');
}

static void append_json(const struct shell *shell, const struct esi_result *result,
                        struct rt_buffer *buffer)
{
    struct rt_json json;

    begin_json(shell, &json, buffer);
    rt_json_string(&json, "statement", model_statement_kind_name(result->statement.kind));
    rt_json_string(&json, "outcome", esi_report_outcome_name(result->outcome));
    rt_json_bytes(&json, "key", result->statement.key);
    if (result->code == RT_OK)
        cli_inspect_write_result(&json, result->statement.kind, &result->response);
    else
        cli_report_write_failure(&json, result->code, &result->error);
    end_json(&json);
}

static void print_result(struct shell *shell, const struct esi_result *result)
{
    struct rt_buffer buffer = {0};

    if (is_json(shell)) {
        append_json(shell, result, &buffer);
    } else {
        append_line_number(shell, &buffer);
        append_text(result, &buffer);
    }
    print(shell, &buffer);
}

static void print_refusal(struct shell *shell, const struct rt_error *err)
{
    struct model_error error = {.applied = MODEL_APPLIED_NO};
    struct rt_buffer buffer = {0};
    struct rt_json json;

    shell->has_failed = true;
    if (is_json(shell)) {
        (void)snprintf(error.message, sizeof(error.message), "%.*s", MODEL_ERROR_MESSAGE_MAX,
                       err->message);
        begin_json(shell, &json, &buffer);
        cli_report_write_failure(&json, err->code, &error);
        end_json(&json);
    } else {
        append_line_number(shell, &buffer);
        rt_buffer_printf(&buffer, "failed: %s (%s)\n", err->message, rt_code_name(err->code));
    }
    print(shell, &buffer);
}

/* ---- the session ----------------------------------------------------------------------------- */

/* Free only where the coordinator has said that the session is over. */
static char *text_of_locks(struct shell *shell)
{
    if (cli_session_is_over(shell->session))
        return rt_xstrdup("its locks are free");
    return rt_xasprintf("the coordinator has not confirmed that, so its locks may be held until "
                        "the lease of %llu ms has run out there",
                        (unsigned long long)cli_session_lease_ms(shell->session));
}

/* Once for each session. From a pipe nothing runs any more. */
static void tell_end(struct shell *shell)
{
    enum cli_session_end how = cli_session_end(shell->session);
    struct model_response failure = cli_session_failure(shell->session);
    RT_CLEANUP(rt_freep) char *text = NULL;
    RT_CLEANUP(rt_freep) char *locks = NULL;

    if (how == CLI_SESSION_LIVES || shell->has_told_end)
        return;
    shell->has_told_end = true;
    locks = text_of_locks(shell);
    text =
        rt_xasprintf("%s%s; %s, and %s",
                     how == CLI_SESSION_LOST ? "the session was lost: " : "the session was closed",
                     how == CLI_SESSION_LOST ? failure.error.message : "", locks,
                     is_typed(shell) ? "the next statement begins a new one"
                                     : "the remaining lines are not run");
    tell(shell, text);
    if (!is_typed(shell))
        end(shell, MODEL_EXIT_FAILED);
}

/* true: a session is open. Else it was reported, and a pipe's shell is over. */
static bool open_session(struct shell *shell)
{
    struct model_response failure;
    enum model_exit result;

    shell->session = cli_session_new(shell->context, shell->config->name);
    shell->has_told_end = true; /* of one that never was */
    if (cli_session_wait_open(shell->session)) {
        shell->has_told_end = false;
        return true;
    }
    if (cli_session_take_interrupt(shell->session) != 0) {
        end(shell, MODEL_EXIT_INTERRUPTED);
        return false;
    }
    failure = cli_session_failure(shell->session);
    result = cli_report_failure(shell->context, &failure);
    if (!is_typed(shell) || shell->n_lines == 0)
        end(shell, result);
    return false;
}

/* Ends it when SIGTERM or SIGHUP, or anything that reads a pipe is interrupted; else ^C is for the
 * line. */
static void on_interrupt(struct shell *shell, int signum)
{
    if (signum != SIGINT || !is_typed(shell)) {
        end(shell, MODEL_EXIT_INTERRUPTED);
        return;
    }
    cli_shell_input_discard(shell->input);
    (void)fputs("^C\n", shell->context->out);
    (void)fflush(shell->context->out);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void on_waiting(const char *holder, void *ctx)
{
    RT_CLEANUP(rt_freep) char *text = rt_xasprintf("waiting for the lock that '%s' holds", holder);

    tell(ctx, text);
}

static void execute(struct shell *shell)
{
    struct esi_statement statement = {
        .kind = shell->line.statement,
        .key = shell->line.key,
        .value = shell->line.value,
    };
    struct esi_result *result;
    int signum;

    if (cli_session_end(shell->session) != CLI_SESSION_LIVES) {
        shell->session = cli_session_free(shell->session);
        if (!open_session(shell))
            return;
    }
    result = cli_session_execute(shell->session, &statement, on_waiting, shell);
    if (result != NULL) {
        shell->has_failed |= result->outcome != ESI_OUTCOME_OK;
        print_result(shell, result);
    }
    (void)esi_result_free(result);
    signum = cli_session_take_interrupt(shell->session);
    tell_end(shell);
    if (signum != 0)
        on_interrupt(shell, signum);
}

static void print_session(struct shell *shell)
{
    struct model_id id = cli_session_id(shell->session);
    uint64_t lease_ms = cli_session_lease_ms(shell->session);
    bool is_alive = cli_session_end(shell->session) == CLI_SESSION_LIVES;
    char text[MODEL_ID_TEXT_SIZE];
    struct rt_buffer buffer = {0};
    struct rt_json json;

    model_id_format(&id, text);
    if (is_json(shell)) {
        begin_json(shell, &json, &buffer);
        rt_json_string(&json, "session_id", text);
        rt_json_string(&json, "name", shell->config->name);
        rt_json_u64(&json, "lease_ms", lease_ms);
        rt_json_bool(&json, "alive", is_alive);
        end_json(&json);
    } else {
        append_line_number(shell, &buffer);
        rt_buffer_printf(&buffer, "session %s name=%s lease=%llums%s\n", text, shell->config->name,
                         (unsigned long long)lease_ms, is_alive ? "" : " ended");
    }
    print(shell, &buffer);
}

static const char help[] =
    "GET key         lock the key, and read its value; waits for another's lock\n"
    "SET key value   write it; lives as long as the owner's process\n"
    "STORE key       make the value durable, and release the lock\n"
    "READ key        read the value without a lock\n"
    "PUT key value   SET and STORE in one\n"
    "DEL key         remove the value, durably\n"
    "session         the session that holds the locks: its id is for --session\n"
    "help            this\n"
    "quit            end the session, which frees its locks\n";

static void print_help(struct shell *shell)
{
    struct rt_buffer buffer = {0};
    struct rt_json json;

    if (is_json(shell)) {
        begin_json(shell, &json, &buffer);
        rt_json_string(&json, "help", help);
        end_json(&json);
    } else {
        rt_buffer_append_string(&buffer, help);
    }
    print(shell, &buffer);
}

static void on_line(struct shell *shell, struct rt_bytes text)
{
    struct rt_error err = RT_ERROR_INIT;

    if (cli_shell_line_parse(&shell->line, text, shell->config->is_escaped, &err) != RT_OK) {
        print_refusal(shell, &err);
        return;
    }
    switch (shell->line.kind) {
    case CLI_SHELL_LINE_EMPTY:
        return;
    case CLI_SHELL_LINE_STATEMENT:
        execute(shell);
        return;
    case CLI_SHELL_LINE_SESSION:
        print_session(shell);
        return;
    case CLI_SHELL_LINE_HELP:
        print_help(shell);
        return;
    case CLI_SHELL_LINE_QUIT:
        shell->is_over = true;
        return;
    }
}

static void on_too_long(struct shell *shell)
{
    struct rt_error err = RT_ERROR_INIT;

    (void)rt_fail(&err, RT_INVALID_ARGUMENT, "a line has at most %d bytes", CLI_SHELL_LINE_MAX);
    print_refusal(shell, &err);
}

static void on_news(struct shell *shell)
{
    int signum = cli_session_take_interrupt(shell->session);

    if (is_typed(shell) && signum == 0)
        (void)fputc('\n', shell->context->err);
    tell_end(shell);
    if (signum != 0)
        on_interrupt(shell, signum);
}

static void next(struct shell *shell)
{
    struct rt_error err = RT_ERROR_INIT;
    struct rt_bytes line;

    switch (cli_shell_input_next(shell->input, cli_session_news_fd(shell->session), &line, &err)) {
    case CLI_SHELL_LINE:
        shell->n_lines++;
        on_line(shell, line);
        return;
    case CLI_SHELL_TOO_LONG:
        shell->n_lines++;
        on_too_long(shell);
        return;
    case CLI_SHELL_NEWS:
        on_news(shell);
        return;
    case CLI_SHELL_END:
        if (is_typed(shell))
            (void)fputc('\n', shell->context->out);
        shell->is_over = true;
        return;
    case CLI_SHELL_FAILED:
        end(shell, cli_report_error(shell->context, &err));
        return;
    }
}

/* ---- the verb -------------------------------------------------------------------------------- */

static const struct cli_shell_input_options input_options = {
    .prompt = "redistinto> ",
    .history = "history",
    .complete = cli_shell_line_complete,
    .is_caseless = true,
};

static enum model_exit run_shell(struct cli_context *context, const char *const *arguments,
                                 const void *config)
{
    struct shell shell = {.context = context, .config = config};
    struct rt_error err = RT_ERROR_INIT;

    (void)arguments;
    if (model_name_check("--name", rt_bytes_of_string(shell.config->name), &err) != RT_OK)
        return cli_report_usage(context, &err);
    shell.input = cli_shell_input_new(context, &input_options);
    if (open_session(&shell))
        while (!shell.is_over)
            next(&shell);
    if (shell.result == MODEL_EXIT_OK && shell.has_failed && !is_typed(&shell))
        shell.result = MODEL_EXIT_FAILED;
    shell.session = cli_session_free(shell.session);
    shell.input = cli_shell_input_free(shell.input);
    cli_shell_line_deinit(&shell.line);
    return shell.result;
}

static const struct rt_option options[] = {
    {.name = "name",
     .type = RT_OPTION_STRING,
     .help = "Name of the session, shown as the holder of its locks.",
     .argument = "NAME",
     .initial = "redistinto-shell",
     .offset = offsetof(struct config, name)},
    {.name = "escaped",
     .letter = 'e',
     .type = RT_OPTION_FLAG,
     .help = "In keys and values \\xNN stands for a byte and \\\\ for a backslash, as they are "
             "shown.",
     .offset = offsetof(struct config, is_escaped)},
};

static const char *const shell_examples[] = {
    "redistinto shell --name cashier",
    "redistinto shell -o json <statements.txt    # exit code 1 when one failed",
    NULL,
};

const struct cli_verb cli_shell_verb = {
    .name = "shell",
    .arguments = "",
    .summary = "run statements as they are typed, in one session",
    .description =
        "Reads GET, SET, STORE, READ, PUT and DEL, in the language of scripts, from the terminal "
        "or from a pipe, and prints for each line what it came to, where, and under which epoch "
        "and token. The session is kept alive meanwhile; other commands may use it (session tells "
        "its id). On a terminal, Ctrl-C while a statement runs gives it up and closes the session, "
        "so that nothing stays locked. From a pipe every line is answered with its number; a line "
        "that fails does not keep the next from running, but the end of the session does. Exit "
        "codes: 1 when a line of a pipe failed, 5 when no session could be opened, 130 "
        "interrupted.",
    .examples = shell_examples,
    .options = options,
    .n_options = RT_ARRAY_SIZE(options),
    .config_size = sizeof(struct config),
    .run = run_shell,
};
