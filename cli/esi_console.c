/*
 * The console: see esi_console.h. Each line is answered before the next one is read. SIGINT,
 * SIGTERM and SIGHUP arrive by a descriptor while a line is awaited, and end the call under way
 * while an action runs. One thread.
 */
#include "cli/esi_console.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/report.h"
#include "cli/shell_input.h"
#include "runtime/base/alloc.h"

struct console {
    const struct cli_esi *esi;
    struct cli_shell_input *input; /* owned */
    sigset_t signals;
    int signal_fd;
    bool has_failed; /* a line */
    bool is_over;
    enum model_exit result;
};

static const char *const own_words[] = {"help", "quit"};

static bool is_own(const char *word)
{
    return strcmp(word, own_words[0]) == 0 || strcmp(word, own_words[1]) == 0;
}

static bool is_typed(const struct console *console)
{
    return cli_shell_input_is_terminal(console->input);
}

static void end(struct console *console, enum model_exit result)
{
    console->is_over = true;
    console->result = result;
}

size_t cli_esi_console_cut(char *line, const char *ret_words[CLI_ESI_CONSOLE_WORDS_MAX + 2])
{
    static const char blanks[] = " \t\r";
    size_t n = 0;

    line += strspn(line, blanks);
    while (*line != '\0' && n <= CLI_ESI_CONSOLE_WORDS_MAX) {
        size_t size = strcspn(line, blanks);

        ret_words[n++] = line;
        line += size;
        if (*line != '\0')
            *line++ = '\0';
        line += strspn(line, blanks);
    }
    ret_words[n] = NULL;
    return n;
}

static void complete(struct rt_bytes beginning, void (*add)(const char *word, void *ctx), void *ctx)
{
    const char *words[3];

    for (size_t i = 0; i < cli_esi_n_actions + RT_ARRAY_SIZE(own_words); i++) {
        bool is_own = i >= cli_esi_n_actions;

        words[0] = is_own ? own_words[i - cli_esi_n_actions] : cli_esi_actions[i].name;
        words[1] = is_own ? NULL : cli_esi_actions[i].alias;
        words[2] = NULL;
        for (const char **word = words; *word != NULL; word++)
            if (strncmp(*word, (const char *)beginning.data, beginning.size) == 0)
                add(*word, ctx);
    }
}

static void print_help(struct console *console)
{
    struct rt_buffer buffer = {0};
    struct rt_buffer text = {0};
    struct rt_json json;
    enum model_exit result;

    cli_esi_action_append_help(&text);
    rt_buffer_append_string(&text, "help                        this\n"
                                   "quit                        leave the console\n");
    if (console->esi->context->common.output == CLI_OUTPUT_JSON) {
        rt_json_init(&json, &buffer);
        rt_json_object_begin(&json, NULL);
        rt_json_string(&json, "help", rt_buffer_string(&text));
        rt_json_object_end(&json);
        rt_buffer_append_byte(&buffer, '\n');
    } else {
        rt_buffer_append(&buffer, rt_buffer_bytes(&text));
    }
    result = cli_report_result(console->esi->context, &buffer);
    if (result != MODEL_EXIT_OK)
        end(console, result);
    rt_buffer_deinit(&text);
    rt_buffer_deinit(&buffer);
}

/* ---- signals --------------------------------------------------------------------------------- */

/* While a line is awaited they wait at the descriptor; an action handles them itself. */
static void hold_signals(struct console *console, bool holds)
{
    (void)pthread_sigmask(holds ? SIG_BLOCK : SIG_UNBLOCK, &console->signals, NULL);
}

/* 0: none came. */
static int take_signal(const struct console *console)
{
    struct signalfd_siginfo info;
    ssize_t n;

    do
        n = read(console->signal_fd, &info, sizeof(info));
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof(info) ? (int)info.ssi_signo : 0;
}

static void on_signal(struct console *console)
{
    struct cli_context *context = console->esi->context;
    int signum = take_signal(console);

    if (signum == 0)
        return;
    if (signum != SIGINT || !is_typed(console)) {
        end(console, MODEL_EXIT_INTERRUPTED);
        return;
    }
    cli_shell_input_discard(console->input);
    (void)fputs("^C\n", context->out);
    (void)fflush(context->out);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void run_action(struct console *console, const char *const *words)
{
    enum model_exit result;

    hold_signals(console, false);
    result = cli_esi_action_run(console->esi, words);
    hold_signals(console, true);
    console->has_failed |= result != MODEL_EXIT_OK;
    if (result == MODEL_EXIT_INTERRUPTED && !is_typed(console))
        end(console, result);
}

static void refuse(struct console *console, const char *what)
{
    struct rt_error err = RT_ERROR_INIT;

    console->has_failed = true;
    (void)rt_fail(&err, RT_INVALID_ARGUMENT, "%s", what);
    (void)cli_report_usage(console->esi->context, &err);
}

static void on_line(struct console *console, struct rt_bytes line)
{
    const char *words[CLI_ESI_CONSOLE_WORDS_MAX + 2];
    RT_CLEANUP(rt_freep) char *text = NULL;
    size_t n;

    if (memchr(line.data, '\0', line.size) != NULL) {
        refuse(console, "a line has no NUL");
        return;
    }
    text = rt_xasprintf("%.*s", (int)line.size, (const char *)line.data);
    n = cli_esi_console_cut(text, words);
    if (n == 0 || words[0][0] == '#')
        return;
    if (n > CLI_ESI_CONSOLE_WORDS_MAX)
        refuse(console, "a line has at most 8 words");
    else if (is_own(words[0]) && n > 1)
        refuse(console, "nothing comes behind help or quit");
    else if (strcmp(words[0], "help") == 0)
        print_help(console);
    else if (strcmp(words[0], "quit") == 0)
        console->is_over = true;
    else
        run_action(console, words);
}

static void next(struct console *console)
{
    struct cli_context *context = console->esi->context;
    struct rt_error err = RT_ERROR_INIT;
    struct rt_bytes line;

    switch (cli_shell_input_next(console->input, console->signal_fd, &line, &err)) {
    case CLI_SHELL_LINE:
        if (line.size > 0)
            on_line(console, line);
        return;
    case CLI_SHELL_TOO_LONG:
        refuse(console, "the line is too long");
        return;
    case CLI_SHELL_NEWS:
        on_signal(console);
        return;
    case CLI_SHELL_END:
        if (is_typed(console))
            (void)fputc('\n', context->out);
        console->is_over = true;
        return;
    case CLI_SHELL_FAILED:
        end(console, cli_report_error(context, &err));
        return;
    }
}

enum model_exit cli_esi_console_run(const struct cli_esi *esi)
{
    const struct cli_shell_input_options options = {
        .prompt = "esi> ", .history = "esi-history", .complete = complete};
    struct console console = {.esi = esi};
    struct rt_error err = RT_ERROR_INIT;

    (void)sigemptyset(&console.signals);
    (void)sigaddset(&console.signals, SIGINT);
    (void)sigaddset(&console.signals, SIGTERM);
    (void)sigaddset(&console.signals, SIGHUP);
    hold_signals(&console, true);
    console.signal_fd = signalfd(-1, &console.signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (console.signal_fd < 0) {
        (void)rt_fail_errno(&err, errno, "waiting for signals");
        return cli_report_error(esi->context, &err);
    }
    console.input = cli_shell_input_new(esi->context, &options);
    while (!console.is_over)
        next(&console);
    if (console.result == MODEL_EXIT_OK && console.has_failed && !is_typed(&console))
        console.result = MODEL_EXIT_FAILED;
    console.input = cli_shell_input_free(console.input);
    (void)close(console.signal_fd);
    hold_signals(&console, false);
    return console.result;
}
