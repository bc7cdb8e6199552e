/*
 * Version and configuration as text and JSON: see option_internal.h. Invariant: the text of a
 * configuration is a file that gives the same values. No state, any thread.
 */
#include <string.h>

#include "runtime/base/json.h"
#include "runtime/base/option_describe.h"
#include "runtime/base/option_internal.h"

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

void rt_option_show_version(const struct rt_option_setup *setup, bool is_json,
                            struct rt_buffer *buffer)
{
    const char *name = setup->command->name;
    char binary[64];
    struct rt_json json;

    /* A verb has the version of its binary. */
    (void)snprintf(binary, sizeof(binary), "%.*s", (int)strcspn(name, " "), name);
    if (!is_json) {
        rt_buffer_printf(buffer, "%s %s\n", binary, setup->version);
        return;
    }
    rt_json_init(&json, buffer);
    rt_json_object_begin(&json, NULL);
    rt_json_string(&json, "name", binary);
    rt_json_string(&json, "version", setup->version);
    rt_json_string(&json, "protocol", REDISTINTO_PROTOCOL);
    rt_json_string(&json, "compiler", COMPILER);
    rt_json_object_end(&json);
    rt_buffer_append_byte(buffer, '\n');
}

enum {
    FILE_SHOWN_MAX = 120 /* bytes of its path in the first line */
};

/* ---- configuration as a file ---- */

static bool is_unset(const struct rt_option_entry *entry)
{
    bool is_text =
        entry->option->type == RT_OPTION_STRING || entry->option->type == RT_OPTION_ADDRESS;

    return !entry->text && (is_text || entry->option->is_required);
}

/* Whether a line of a file gives this text back: blanks around it are dropped, a blank before ';'
 * or '#' begins a comment, and a line has its limit. */
static bool fits_file(const struct rt_option_entry *entry)
{
    const char *text = entry->text ? entry->text : "";
    size_t size = strlen(text);

    for (size_t i = 0; i < size; i++) {
        bool is_after_blank = i == 0 || text[i - 1] == ' ';

        if ((unsigned char)text[i] < ' ' || (is_after_blank && text[i] == ';'))
            return false;
    }
    return strlen(entry->option->name) + strlen(" = ") + size <= RT_OPTION_FILE_LINE_MAX &&
           (size == 0 || (text[0] != ' ' && text[size - 1] != ' '));
}

static void format_origin(const struct rt_options *options, const struct rt_option_entry *entry,
                          struct rt_buffer *buffer)
{
    switch (entry->origin) {
    case RT_OPTION_FROM_DEFAULT:
        rt_buffer_append_string(buffer, !is_unset(entry)             ? "default"
                                        : entry->option->is_required ? "unset (required)"
                                                                     : "unset");
        break;
    case RT_OPTION_FROM_PROFILE:
        rt_buffer_append_string(buffer, "profile");
        break;
    case RT_OPTION_FROM_FILE:
        rt_buffer_printf(buffer, "%s:%d", options->file, entry->line);
        break;
    case RT_OPTION_FROM_ENV:
        rt_buffer_append_string(buffer, "environment ");
        rt_option_format_variable(entry->option, buffer);
        break;
    case RT_OPTION_FROM_FLAG:
        rt_buffer_append_string(buffer, "flag");
        break;
    }
}

static void show_value(const struct rt_option_entry *entry, struct rt_buffer *buffer)
{
    struct rt_json json;

    if (is_unset(entry)) {
        rt_buffer_printf(buffer, "; %s =", entry->option->name);
    } else if (fits_file(entry)) {
        rt_buffer_printf(buffer, "%s = ", entry->option->name);
        rt_option_value_format(entry, buffer);
    } else {
        rt_buffer_printf(buffer, "; no line of a file can hold: %s = ", entry->option->name);
        rt_json_init(&json, buffer);
        rt_json_string(&json, NULL, entry->text);
    }
}

/* A long value leaves no room for its origin on the line. */
static void show_entry(const struct rt_options *options, const struct rt_option_entry *entry,
                       struct rt_buffer *buffer)
{
    struct rt_buffer origin = {0};
    size_t start = buffer->size;

    format_origin(options, entry, &origin);
    show_value(entry, buffer);
    if (buffer->size - start + strlen(" ; ") + origin.size <= RT_OPTION_FILE_LINE_MAX)
        rt_buffer_printf(buffer, " ; %s", rt_buffer_string(&origin));
    rt_buffer_append_byte(buffer, '\n');
    rt_buffer_deinit(&origin);
}

static void show_text(const struct rt_option_setup *setup, const struct rt_options *options,
                      struct rt_buffer *buffer)
{
    const char *section = "";

    rt_buffer_printf(buffer, "; %s %s, configuration file: %.*s\n", setup->command->name,
                     setup->version, FILE_SHOWN_MAX, options->file ? options->file : "none");
    for (size_t i = 0; i < options->n_entries; i++) {
        const struct rt_option_entry *entry = &options->entries[i];

        if (entry->is_general)
            continue;
        if (strcmp(section, entry->section) != 0)
            rt_buffer_printf(buffer, "\n[%s]\n", entry->section);
        section = entry->section;
        show_entry(options, entry, buffer);
    }
}

/* ---- configuration as JSON ---- */

static const char *origin_name(const struct rt_option_entry *entry)
{
    switch (entry->origin) {
    case RT_OPTION_FROM_DEFAULT:
        return is_unset(entry) ? "unset" : "default";
    case RT_OPTION_FROM_PROFILE:
        return "profile";
    case RT_OPTION_FROM_FILE:
        return "file";
    case RT_OPTION_FROM_ENV:
        return "environment";
    case RT_OPTION_FROM_FLAG:
        return "flag";
    }
    return "";
}

static void show_entry_json(const struct rt_options *options, const struct rt_option_entry *entry,
                            struct rt_json *json)
{
    struct rt_buffer text = {0};

    rt_json_object_begin(json, NULL);
    rt_json_string(json, "section", entry->section);
    rt_json_string(json, "name", entry->option->name);
    rt_option_value_format(entry, &text);
    rt_json_string(json, "value", is_unset(entry) ? NULL : rt_buffer_string(&text));
    rt_json_bool(json, "required", entry->option->is_required);
    rt_json_string(json, "origin", origin_name(entry));
    if (entry->origin == RT_OPTION_FROM_ENV) {
        rt_buffer_reset(&text);
        rt_option_format_variable(entry->option, &text);
        rt_json_string(json, "variable", rt_buffer_string(&text));
    }
    if (entry->origin == RT_OPTION_FROM_FILE) {
        rt_json_string(json, "file", options->file);
        rt_json_u64(json, "line", (uint64_t)entry->line);
    }
    rt_json_object_end(json);
    rt_buffer_deinit(&text);
}

static void show_json(const struct rt_option_setup *setup, const struct rt_options *options,
                      struct rt_buffer *buffer)
{
    struct rt_json json;

    rt_json_init(&json, buffer);
    rt_json_object_begin(&json, NULL);
    rt_json_string(&json, "name", setup->command->name);
    rt_json_string(&json, "config_file", options->file);
    rt_json_array_begin(&json, "options");
    for (size_t i = 0; i < options->n_entries; i++)
        if (!options->entries[i].is_general)
            show_entry_json(options, &options->entries[i], &json);
    rt_json_array_end(&json);
    rt_json_object_end(&json);
    rt_buffer_append_byte(buffer, '\n');
}

void rt_option_show_config(const struct rt_option_setup *setup, const struct rt_options *options,
                           bool is_json, struct rt_buffer *buffer)
{
    if (is_json)
        show_json(setup, options, buffer);
    else
        show_text(setup, options, buffer);
}
