/*
 * What `dev` says: see summary.h. Pure.
 */
#include "cli/summary.h"

#include <string.h>

#include "cli/table.h"
#include "runtime/base/json.h"

enum {
    LABEL_WIDTH = 14,
    RULES_PER_LINE = 2
};

struct box_style {
    const char *horizontal;
    const char *vertical;
    const char *corners[4]; /* top left and right, bottom left and right */
};

static const struct box_style ascii_style = {"-", "|", {"+", "+", "+", "+"}};
static const struct box_style utf8_style = {"─", "│", {"┌", "┐", "└", "┘"}};

static void append_member(const struct cli_summary_member *member, struct rt_buffer *lines)
{
    rt_buffer_printf(lines, "%-*s%-23s pid %ld\n", LABEL_WIDTH, member->name, member->address,
                     (long)member->pid);
}

static void append_rules(const struct cli_summary *summary, struct rt_buffer *lines)
{
    for (size_t i = 0; i < CLI_RULES; i++) {
        const struct cli_rule *rule = &summary->rules[i];
        bool is_last = i + 1 == CLI_RULES;

        if (i % RULES_PER_LINE == 0)
            rt_buffer_printf(lines, "%-*s", LABEL_WIDTH, i == 0 ? "rules" : "");
        rt_buffer_printf(lines, "%s %s%s", rule->name, rule->value, is_last ? "\n" : ",");
        if (!is_last)
            rt_buffer_append_byte(lines, (i + 1) % RULES_PER_LINE == 0 ? '\n' : ' ');
    }
}

static void append_lines(const struct cli_summary *summary, struct rt_buffer *lines)
{
    rt_buffer_append_string(lines, "Redistinto: a development cluster, not for production\n\n");
    append_member(&summary->coordinator, lines);
    for (size_t i = 0; i < summary->n_instances; i++)
        append_member(&summary->instances[i], lines);
    if (summary->esi.address)
        append_member(&summary->esi, lines);
    rt_buffer_printf(lines, "\n%-*s%s, distribution %s\n", LABEL_WIDTH, "profile", summary->profile,
                     summary->distribution);
    append_rules(summary, lines);
    rt_buffer_printf(lines, "%-*s%s%s\n", LABEL_WIDTH, "data", summary->data_dir,
                     summary->is_temporary ? " (removed at the end)" : "");
    rt_buffer_printf(lines, "%-*sredistinto --coordinator %s health\n", LABEL_WIDTH, "try",
                     summary->coordinator.address);
    rt_buffer_append_string(lines, "\nCtrl-C stops all of it.\n");
}

static size_t longest_line(const char *lines)
{
    size_t longest = 0;

    while (*lines != '\0') {
        size_t length = strcspn(lines, "\n");
        size_t width = cli_table_width(rt_bytes_of(lines, length));

        longest = width > longest ? width : longest;
        lines += length + 1;
    }
    return longest;
}

static void append_edge(const struct box_style *style, size_t side, size_t width,
                        struct rt_buffer *buffer)
{
    rt_buffer_append_string(buffer, style->corners[side]);
    for (size_t i = 0; i < width + 2; i++)
        rt_buffer_append_string(buffer, style->horizontal);
    rt_buffer_printf(buffer, "%s\n", style->corners[side + 1]);
}

void cli_summary_append_box(const struct cli_summary *summary, bool is_utf8,
                            struct rt_buffer *buffer)
{
    const struct box_style *style = is_utf8 ? &utf8_style : &ascii_style;
    struct rt_buffer text = {0};
    const char *line;
    size_t width;

    append_lines(summary, &text);
    line = rt_buffer_string(&text);
    width = longest_line(line);
    append_edge(style, 0, width, buffer);
    while (*line != '\0') {
        size_t length = strcspn(line, "\n");
        size_t padding = width - cli_table_width(rt_bytes_of(line, length));

        rt_buffer_printf(buffer, "%s %.*s%*s %s\n", style->vertical, (int)length, line,
                         (int)padding, "", style->vertical);
        line += length + 1;
    }
    append_edge(style, 2, width, buffer);
    rt_buffer_deinit(&text);
}

static void write_member(struct rt_json *json, const struct cli_summary_member *member)
{
    rt_json_object_begin(json, NULL);
    rt_json_string(json, "name", member->name);
    rt_json_string(json, "address", member->address);
    rt_json_i64(json, "pid", member->pid);
    rt_json_object_end(json);
}

void cli_summary_append_json(const struct cli_summary *summary, struct rt_buffer *buffer)
{
    struct rt_json json;

    rt_json_init(&json, buffer);
    rt_json_object_begin(&json, NULL);
    rt_json_string(&json, "coordinator", summary->coordinator.address);
    rt_json_i64(&json, "coordinator_pid", summary->coordinator.pid);
    rt_json_i64(&json, "pid", summary->pid);
    rt_json_string(&json, "data_dir", summary->data_dir);
    rt_json_array_begin(&json, "instances");
    for (size_t i = 0; i < summary->n_instances; i++)
        write_member(&json, &summary->instances[i]);
    rt_json_array_end(&json);
    rt_json_string(&json, "esi", summary->esi.address);
    if (summary->esi.address)
        rt_json_i64(&json, "esi_pid", summary->esi.pid);
    else
        rt_json_null(&json, "esi_pid");
    rt_json_string(&json, "profile", summary->profile);
    rt_json_string(&json, "distribution", summary->distribution);
    rt_json_object_begin(&json, "rules");
    for (size_t i = 0; i < CLI_RULES; i++)
        rt_json_string(&json, summary->rules[i].name, summary->rules[i].value);
    rt_json_object_end(&json);
    rt_json_object_end(&json);
    rt_buffer_append_byte(buffer, '\n');
}
