/*
 * Manual pages: see manual.h. Invariant: text of the tables is escaped, so it never is a request.
 * One thread.
 */
#include "docs/generator/manual.h"

#include <ctype.h>
#include <string.h>

#include "cli/verb.h"
#include "docs/generator/commands.h"
#include "runtime/base/alloc.h"
#include "runtime/model/exit.h"

/* ---- text ------------------------------------------------------------------------------------ */

static void append_text(const char *text, struct rt_buffer *page)
{
    if (*text == '.')
        rt_buffer_append_string(page, "\\&");
    for (; *text; text++) {
        if (*text == '-')
            rt_buffer_append_string(page, "\\-");
        else if (*text == '\\')
            rt_buffer_append_string(page, "\\e");
        else if (*text == '\'')
            rt_buffer_append_string(page, "\\(aq");
        else
            rt_buffer_append_byte(page, (uint8_t)*text);
    }
}

static void append_line(const char *text, struct rt_buffer *page)
{
    append_text(text, page);
    rt_buffer_append_byte(page, '\n');
}

static void append_bold(const char *text, struct rt_buffer *page)
{
    rt_buffer_append_string(page, "\\fB");
    append_text(text, page);
    rt_buffer_append_string(page, "\\fR");
}

static void append_italic(const char *text, struct rt_buffer *page)
{
    rt_buffer_append_string(page, "\\fI");
    append_text(text, page);
    rt_buffer_append_string(page, "\\fR");
}

/* ---- options --------------------------------------------------------------------------------- */

static void append_option(const struct rt_option *option, struct rt_buffer *page)
{
    const char *argument = rt_option_argument(option);
    const char letter[] = {'-', option->letter, '\0'};
    RT_CLEANUP(rt_freep) char *name = rt_xasprintf("--%s", option->name);
    struct rt_buffer facts = {0};

    rt_buffer_append_string(page, ".TP\n");
    if (option->letter) {
        append_bold(letter, page);
        rt_buffer_append_string(page, ", ");
    }
    append_bold(name, page);
    if (*argument) {
        rt_buffer_append_byte(page, ' ');
        append_italic(argument, page);
    }
    rt_buffer_append_byte(page, '\n');
    append_line(option->help, page);
    rt_option_format_facts(option, &facts);
    if (facts.size > 0) {
        rt_buffer_append_byte(page, '[');
        append_text(rt_buffer_string(&facts), page);
        rt_buffer_append_string(page, "]\n");
    }
    rt_buffer_deinit(&facts);
}

static void append_options(const struct rt_option_command *command, struct rt_buffer *page)
{
    const struct rt_option *list[RT_OPTION_COMMAND_OPTIONS_MAX];
    size_t n_list = rt_option_command_list(command, list);

    rt_buffer_append_string(page, ".SH OPTIONS\n");
    for (size_t i = 0; i < n_list; i++) {
        if (!rt_option_begins_group(list, i))
            continue;
        rt_buffer_printf(page, ".SS \"%s\"\n", rt_option_group(list[i]));
        for (size_t k = i; k < n_list; k++)
            if (strcmp(rt_option_group(list[k]), rt_option_group(list[i])) == 0)
                append_option(list[k], page);
    }
}

static void append_example_lines(const char *const *examples, struct rt_buffer *page)
{
    rt_buffer_append_string(page, ".nf\n");
    for (; *examples != NULL; examples++)
        append_line(*examples, page);
    rt_buffer_append_string(page, ".fi\n");
}

static void append_verb(const struct cli_verb *verb, struct rt_buffer *page)
{
    rt_buffer_append_string(page, ".SS \"");
    append_text(verb->name, page);
    if (*verb->arguments) {
        rt_buffer_append_byte(page, ' ');
        append_text(verb->arguments, page);
    }
    rt_buffer_append_string(page, "\"\n");
    append_line(verb->description, page);
    for (size_t i = 0; i < verb->n_options; i++)
        append_option(&verb->options[i], page);
    rt_buffer_append_string(page, ".TP\nExamples:\n");
    append_example_lines(verb->examples, page);
}

static void append_verbs(struct rt_buffer *page)
{
    rt_buffer_append_string(page, ".SH VERBS\n"
                                  "Options of a verb stand behind it; the common ones below may "
                                  "stand on either side.\n");
    for (size_t i = 0; i < cli_n_verbs; i++)
        append_verb(cli_verbs[i], page);
}

/* ---- the rest of a page ---------------------------------------------------------------------- */

enum {
    OF_SERVICE = 1,
    OF_ESI = 2,
    OF_CLI = 4,
};

static unsigned kind_of(const struct rt_option_command *command)
{
    if (strcmp(command->section, "cli") == 0)
        return OF_CLI;
    return strcmp(command->section, "esi") == 0 ? OF_ESI : OF_SERVICE;
}

static void append_exit_status(const struct rt_option_command *command, struct rt_buffer *page)
{
    static const struct {
        enum model_exit code;
        unsigned of;
        const char *meaning;
    } rows[] = {
        {MODEL_EXIT_OK, OF_SERVICE | OF_ESI | OF_CLI, "Success."},
        {MODEL_EXIT_FAILED, OF_ESI | OF_CLI, "A script or operation failed."},
        {MODEL_EXIT_USAGE, OF_SERVICE | OF_ESI | OF_CLI,
         "Wrong usage, a parse error, or a wrong configuration."},
        {MODEL_EXIT_NOT_FOUND, OF_CLI, "There is no such key, value or other thing."},
        {MODEL_EXIT_PRECONDITION, OF_SERVICE | OF_CLI,
         "Refused as things are: not locked, stale, in conflict, or in use."},
        {MODEL_EXIT_UNAVAILABLE, OF_SERVICE | OF_ESI | OF_CLI,
         "Unavailable, or not within the timeout."},
        {MODEL_EXIT_AUTHENTICATION, OF_ESI | OF_CLI, "Not allowed."},
        {MODEL_EXIT_EXHAUSTED, OF_SERVICE | OF_CLI, "A limit was reached, or a disk is full."},
        {MODEL_EXIT_UNKNOWN_OUTCOME, OF_CLI, "It may or may not have been done."},
        {MODEL_EXIT_INTERNAL, OF_SERVICE | OF_CLI, "An internal error, or damaged data."},
        {MODEL_EXIT_INTERRUPTED, OF_ESI | OF_CLI, "Interrupted by a signal."},
    };

    rt_buffer_append_string(page, ".SH \"EXIT STATUS\"\n");
    for (size_t i = 0; i < RT_ARRAY_SIZE(rows); i++)
        if (rows[i].of & kind_of(command))
            rt_buffer_printf(page, ".TP\n.B %d\n%s\n", (int)rows[i].code, rows[i].meaning);
}

static void append_environment(const struct rt_option_command *command, struct rt_buffer *page)
{
    rt_buffer_append_string(
        page, ".SH ENVIRONMENT\n"
              "Each option that can be set by a variable names it in brackets. An empty variable "
              "counts as unset. The command line wins over it.\n"
              ".TP\n.B XDG_CONFIG_HOME, HOME\n"
              "Where the user's configuration file is looked for.\n");
    if (kind_of(command) == OF_CLI)
        rt_buffer_append_string(page, ".TP\n.B TMPDIR\nWhere temporary directories are made.\n");
}

static void append_files(const struct rt_option_command *command, struct rt_buffer *page)
{
    rt_buffer_append_string(page,
                            ".SH FILES\n"
                            ".TP\n\\fI$XDG_CONFIG_HOME/redistinto/redistinto.ini\\fR, "
                            "\\fI" RT_OPTION_SYSTEM_FILE "\\fR\n"
                            "The configuration file: the first that there is, unless "
                            "\\fB\\-\\-config\\fR or \\fBREDISTINTO_CONFIG\\fR names another. "
                            "Without the variable, \\fI$HOME/.config\\fR is looked into. "
                            "An option is a line \\fIname\\fR = \\fIvalue\\fR of the section ");
    rt_buffer_printf(page, "\\fB[%s]\\fR", command->section);
    if (kind_of(command) == OF_CLI)
        rt_buffer_append_string(page, ", or \\fB[cli.\\fIVERB\\fB]\\fR for a verb's own,");
    rt_buffer_append_string(page, " or of \\fB[common]\\fR, which is for coordinator, "
                                  "drain\\-timeout, log\\-level, output, store\\-limit and timeout "
                                  "of all binaries. "
                                  "Environment and command line win over it.\n");
    rt_buffer_printf(page,
                     "A line has at most %d bytes; what follows a blank and a semicolon is a "
                     "comment.\n",
                     RT_OPTION_FILE_LINE_MAX);
}

static void append_examples(const struct rt_option_command *command, struct rt_buffer *page)
{
    if (command->examples == NULL)
        return;
    rt_buffer_append_string(page, ".SH EXAMPLES\n");
    append_example_lines(command->examples, page);
}

static void append_see_also(const struct rt_option_command *command, struct rt_buffer *page)
{
    const char *separator = "";

    rt_buffer_append_string(page, ".SH \"SEE ALSO\"\n");
    for (size_t i = 0; i < DOCS_N_BINARIES; i++) {
        if (docs_commands_binaries[i] == command)
            continue;
        rt_buffer_append_string(page, separator);
        append_bold(docs_commands_binaries[i]->name, page);
        rt_buffer_append_string(page, "(1)");
        separator = ",\n";
    }
    rt_buffer_append_byte(page, '\n');
}

static void append_title(const struct rt_option_command *command, struct rt_buffer *page)
{
    rt_buffer_append_string(page, ".\\\" Made from the option tables.\n.TH ");
    for (const char *c = command->name; *c; c++) {
        const char letter[] = {(char)toupper((unsigned char)*c), '\0'};

        append_text(letter, page);
    }
    rt_buffer_append_string(page, " 1 \"\" \"Redistinto " REDISTINTO_VERSION "\" \"Redistinto\"\n"
                                  ".nh\n.ad l\n.SH NAME\n");
    append_text(command->name, page);
    rt_buffer_append_string(page, " \\- ");
    append_line(command->summary, page);
}

void docs_manual_append(const struct rt_option_command *command, struct rt_buffer *page)
{
    append_title(command, page);
    rt_buffer_append_string(page, ".SH SYNOPSIS\n");
    append_bold(command->name, page);
    rt_buffer_append_string(page, " [\\fIOPTION\\fR...] ");
    append_line(command->usage, page);
    rt_buffer_append_string(page, ".SH DESCRIPTION\n");
    append_line(command->description, page);
    if (kind_of(command) == OF_CLI)
        append_verbs(page);
    append_options(command, page);
    append_exit_status(command, page);
    append_environment(command, page);
    append_files(command, page);
    append_examples(command, page);
    append_see_also(command, page);
}
