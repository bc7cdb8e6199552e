/*
 * Help: see option_internal.h and option_describe.h. Invariant: no line of the help is longer
 * than 100 columns unless a single word is. No state, any thread.
 */
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/option_describe.h"
#include "runtime/base/option_internal.h"

enum {
    COLUMNS = 100,
    HELP_COLUMN = 34, /* where the texts begin */
    TEXT_MIN = 2,     /* between an option and its text */
};

/* Appends the words of `text`, breaking lines before COLUMNS; *column is where the line is. */
static void wrap(struct rt_buffer *buffer, const char *text, size_t indent, size_t *column)
{
    while (*text) {
        size_t length = strcspn(text, " ");
        bool is_first = *column == indent;

        if (!is_first && *column + 1 + length > COLUMNS) {
            rt_buffer_printf(buffer, "\n%*s", (int)indent, "");
            *column = indent;
            is_first = true;
        }
        rt_buffer_printf(buffer, "%s%.*s", is_first ? "" : " ", (int)length, text);
        *column += length + (is_first ? 0 : 1);
        text += length;
        text += strspn(text, " ");
    }
}

const char *rt_option_argument(const struct rt_option *option)
{
    if (option->argument)
        return option->argument;
    switch (option->type) {
    case RT_OPTION_STRING:
        return "TEXT";
    case RT_OPTION_ADDRESS:
        return "ADDRESS";
    case RT_OPTION_ENUM:
        return "NAME";
    case RT_OPTION_FLAG:
        return "";
    case RT_OPTION_U64:
        return "N";
    case RT_OPTION_DURATION:
        return "TIME";
    case RT_OPTION_SIZE:
        return "SIZE";
    }
    return "";
}

/* "  -e, --entry-size SIZE", padded to the column of the texts. */
static size_t format_name(const struct rt_option *option, struct rt_buffer *buffer)
{
    const char *argument = rt_option_argument(option);
    size_t start = buffer->size;
    size_t used;

    if (option->letter)
        rt_buffer_printf(buffer, "  -%c, ", option->letter);
    else
        rt_buffer_append_string(buffer, "      ");
    rt_buffer_printf(buffer, "--%s%s%s", option->name, *argument ? " " : "", argument);

    used = buffer->size - start;
    if (used + TEXT_MIN > HELP_COLUMN) {
        rt_buffer_append_byte(buffer, '\n');
        used = 0;
    }
    rt_buffer_printf(buffer, "%*s", (int)(HELP_COLUMN - used), "");
    return HELP_COLUMN;
}

bool rt_option_has_variable(const struct rt_option *option)
{
    bool is_general =
        option >= rt_option_general && option < rt_option_general + RT_OPTION_N_GENERAL;

    return !is_general || option->type != RT_OPTION_FLAG;
}

void rt_option_format_variable(const struct rt_option *option, struct rt_buffer *buffer)
{
    rt_buffer_append_string(buffer, "REDISTINTO_");
    for (const char *c = option->name; *c; c++) {
        bool is_lower = *c >= 'a' && *c <= 'z';

        rt_buffer_append_byte(buffer, (uint8_t)(*c == '-' ? '_' : is_lower ? *c ^ 0x20 : *c));
    }
}

void rt_option_format_facts(const struct rt_option *option, struct rt_buffer *buffer)
{
    size_t start = buffer->size;
    struct rt_buffer range = {0};

    rt_option_format_range(option, &range);
    if (option->is_required)
        rt_buffer_append_string(buffer, "required; ");
    else if (option->initial)
        rt_buffer_printf(buffer, "default %s; ", option->initial);
    if (range.size > 0)
        rt_buffer_printf(buffer, "%s; ", rt_buffer_string(&range));
    rt_buffer_deinit(&range);
    if (rt_option_has_variable(option))
        rt_option_format_variable(option, buffer);
    else if (buffer->size > start)
        buffer->size -= strlen("; ");
}

size_t rt_option_command_list(const struct rt_option_command *command,
                              const struct rt_option *ret_list[RT_OPTION_COMMAND_OPTIONS_MAX])
{
    bool has_output = false;
    size_t n = 0;

    for (size_t i = 0; i < command->n_tables; i++) {
        for (size_t k = 0; k < command->tables[i].n_options; k++) {
            rt_assert(n < RT_OPTION_COMMAND_OPTIONS_MAX - RT_OPTION_N_GENERAL);
            ret_list[n] = &command->tables[i].options[k];
            has_output |= strcmp(ret_list[n++]->name, "output") == 0;
        }
    }
    for (size_t i = 0; i < RT_OPTION_N_GENERAL; i++)
        if (!has_output || strcmp(rt_option_general[i].name, "output") != 0)
            ret_list[n++] = &rt_option_general[i];
    return n;
}

/* "[cli.dev], [cli] or [common]." */
static void format_sections(const struct rt_option_command *command, struct rt_buffer *buffer,
                            size_t *column)
{
    const char *last = "";

    for (size_t i = 0; i < command->n_tables; i++) {
        const struct rt_option_table *table = &command->tables[i];
        const char *section = table->section ? table->section : command->section;
        RT_CLEANUP(rt_freep) char *word = rt_xasprintf("[%s],", section);

        if (table->n_options > 0 && strcmp(section, last) != 0)
            wrap(buffer, word, 0, column);
        last = section;
    }
    wrap(buffer, "or [common] for what several binaries have.", 0, column);
}

static void format_option(const struct rt_option *option, struct rt_buffer *buffer)
{
    struct rt_buffer facts = {0};
    size_t column = format_name(option, buffer);

    wrap(buffer, option->help, HELP_COLUMN, &column);
    rt_option_format_facts(option, &facts);
    if (facts.size > 0) {
        RT_CLEANUP(rt_freep) char *bracketed = rt_xasprintf("[%s]", rt_buffer_string(&facts));

        wrap(buffer, bracketed, HELP_COLUMN, &column);
    }
    rt_buffer_append_byte(buffer, '\n');
    rt_buffer_deinit(&facts);
}

const char *rt_option_group(const struct rt_option *option)
{
    return option->group ? option->group : "Options";
}

bool rt_option_begins_group(const struct rt_option *const *list, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (strcmp(rt_option_group(list[i]), rt_option_group(list[index])) == 0)
            return false;
    return true;
}

static void format_group(const struct rt_option *const *list, size_t n_list, size_t first,
                         struct rt_buffer *buffer)
{
    const char *group = rt_option_group(list[first]);

    rt_buffer_printf(buffer, "\n%s:\n", group);
    for (size_t i = first; i < n_list; i++)
        if (strcmp(rt_option_group(list[i]), group) == 0)
            format_option(list[i], buffer);
}

static void format_examples(const struct rt_option_command *command, struct rt_buffer *buffer)
{
    if (command->examples == NULL)
        return;
    rt_buffer_append_string(buffer, "\nExamples:\n");
    for (const char *const *line = command->examples; *line != NULL; line++)
        rt_buffer_printf(buffer, "  %s\n", *line);
}

void rt_option_help_format(const struct rt_option_command *command, struct rt_buffer *buffer)
{
    const struct rt_option *list[RT_OPTION_COMMAND_OPTIONS_MAX];
    size_t n_list = rt_option_command_list(command, list);
    size_t column = 0;

    rt_buffer_printf(buffer, "Usage: %s [OPTION...]%s%s\n\n", command->name,
                     *command->usage ? " " : "", command->usage);
    wrap(buffer, command->description, 0, &column);
    rt_buffer_append_byte(buffer, '\n');
    format_examples(command, buffer);
    for (size_t i = 0; i < n_list; i++)
        if (rt_option_begins_group(list, i))
            format_group(list, n_list, i, buffer);
    column = 0;
    rt_buffer_append_byte(buffer, '\n');
    wrap(buffer,
         "The command line wins over the environment variable that each option names, and that "
         "over the configuration file, where options stand as name = value in a section:",
         0, &column);
    format_sections(command, buffer, &column);
    rt_buffer_append_byte(buffer, '\n');
}
