/*
 * Help and configuration as text: see option_internal.h. Invariant: no line of the help is longer
 * than 100 columns unless a single word is. No state, any thread.
 */
#include <string.h>

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

static const char *argument_of(const struct rt_option *option)
{
    if (option->argument)
        return option->argument;
    switch (option->type) {
    case RT_OPTION_STRING:
        return "TEXT";
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
    const char *argument = argument_of(option);
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

/* "[required; 1..10]", "[default 5; 1..10]" or nothing. */
static void format_facts(const struct rt_option_entry *entry, struct rt_buffer *facts)
{
    const struct rt_option *option = entry->option;
    bool is_off = option->type == RT_OPTION_FLAG && !*(const bool *)entry->field;
    struct rt_buffer range = {0};

    rt_option_value_format_range(option, &range);
    if (option->is_required)
        rt_buffer_append_string(facts, "[required");
    else if (option->initial && !is_off)
        rt_buffer_printf(facts, "[default %s", option->initial);
    if (range.size > 0)
        rt_buffer_printf(facts, "%s%s", facts->size > 0 ? "; " : "[", rt_buffer_string(&range));
    if (facts->size > 0)
        rt_buffer_append_byte(facts, ']');
    rt_buffer_deinit(&range);
}

static void format_option(const struct rt_option_entry *entry, struct rt_buffer *buffer)
{
    struct rt_buffer facts = {0};
    size_t column = format_name(entry->option, buffer);

    wrap(buffer, entry->option->help, HELP_COLUMN, &column);
    format_facts(entry, &facts);
    wrap(buffer, rt_buffer_string(&facts), HELP_COLUMN, &column);
    rt_buffer_append_byte(buffer, '\n');
    rt_buffer_deinit(&facts);
}

static const char *group_of(const struct rt_option *option)
{
    return option->group ? option->group : "Options";
}

/* Whether an entry before this one has its group. */
static bool has_group_before(const struct rt_options *options, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (strcmp(group_of(options->entries[i].option),
                   group_of(options->entries[index].option)) == 0)
            return true;
    return false;
}

static void format_group(const struct rt_options *options, size_t first, struct rt_buffer *buffer)
{
    const char *group = group_of(options->entries[first].option);

    rt_buffer_printf(buffer, "\n%s:\n", group);
    for (size_t i = first; i < options->n_entries; i++)
        if (strcmp(group_of(options->entries[i].option), group) == 0)
            format_option(&options->entries[i], buffer);
}

void rt_option_help_format(const struct rt_option_setup *setup, const struct rt_options *options,
                           struct rt_buffer *buffer)
{
    size_t column = 0;

    rt_buffer_printf(buffer, "Usage: %s [OPTION...]%s%s\n\n", setup->program,
                     *setup->usage ? " " : "", setup->usage);
    wrap(buffer, setup->description, 0, &column);
    rt_buffer_append_byte(buffer, '\n');
    for (size_t i = 0; i < options->n_entries; i++)
        if (!has_group_before(options, i))
            format_group(options, i, buffer);
    column = 0;
    rt_buffer_append_byte(buffer, '\n');
    wrap(buffer,
         "Every option can also be set as REDISTINTO_NAME in the environment (dashes become "
         "underscores) or as name = value in the configuration file. The command line wins over "
         "the environment, the environment over the file.",
         0, &column);
    rt_buffer_append_byte(buffer, '\n');
}

static const char *origin_name(enum rt_option_origin origin)
{
    switch (origin) {
    case RT_OPTION_FROM_DEFAULT:
        return "default";
    case RT_OPTION_FROM_PROFILE:
        return "profile";
    case RT_OPTION_FROM_FILE:
        return "file";
    case RT_OPTION_FROM_ENV:
        return "env";
    case RT_OPTION_FROM_FLAG:
        return "flag";
    }
    return "";
}

void rt_option_help_format_config(const struct rt_options *options, struct rt_buffer *buffer)
{
    for (size_t i = 0; i < options->n_entries; i++) {
        const struct rt_option_entry *entry = &options->entries[i];

        if (entry->is_builtin)
            continue;
        if (entry->option->type == RT_OPTION_STRING && !entry->text)
            rt_buffer_append_string(buffer, "; ");
        rt_buffer_printf(buffer, "%s = ", entry->option->name);
        rt_option_value_format(entry, buffer);
        rt_buffer_printf(buffer, " ; %s\n", origin_name(entry->origin));
    }
}
