/*
 * ESIs as text and JSON: see esi_inspect.h. Pure.
 */
#include "cli/esi_inspect.h"

#include <inttypes.h>

#include "cli/escape.h"
#include "cli/table.h"

static void write_optional_bytes(struct rt_json *json, const char *member, struct rt_bytes bytes)
{
    if (bytes.size == 0)
        rt_json_null(json, member);
    else
        rt_json_bytes(json, member, bytes);
}

void cli_esi_inspect_write(struct rt_json *json, const struct model_esi_info *esi)
{
    bool has_failed = esi->reason != MODEL_REASON_NONE;

    rt_json_u64(json, "id", esi->id);
    rt_json_string(json, "name", esi->name);
    rt_json_string(json, "state", model_esi_state_name(esi->state));
    rt_json_string(json, "end",
                   esi->end == MODEL_ESI_END_NONE ? NULL : model_esi_end_name(esi->end));
    if (esi->line == 0)
        rt_json_null(json, "line");
    else
        rt_json_u64(json, "line", esi->line);
    rt_json_u64(json, "statements", esi->n_statements);
    rt_json_u64(json, "ok", esi->n_ok);
    if (esi->estimate_milli == 0)
        rt_json_null(json, "estimate");
    else
        rt_json_double(json, "estimate", (double)esi->estimate_milli / 1000);
    write_optional_bytes(json, "waits_for", esi->waits_for);
    rt_json_string(json, "reason", has_failed ? model_reason_name(esi->reason) : NULL);
    write_optional_bytes(json, "message", esi->message);
}

static void append_end(const struct model_esi_info *esi, struct rt_buffer *buffer)
{
    if (esi->end == MODEL_ESI_END_NONE)
        return;
    rt_buffer_printf(buffer, ": %s", model_esi_end_name(esi->end));
    if (esi->line > 0)
        rt_buffer_printf(buffer, " at line %" PRIu32, esi->line);
}

static void append_failure(const struct model_esi_info *esi, struct rt_buffer *buffer)
{
    if (esi->message.size == 0)
        return;
    rt_buffer_append_string(buffer, "; ");
    cli_escape_append_message(esi->message, buffer);
    if (esi->reason != MODEL_REASON_NONE)
        rt_buffer_printf(buffer, " (%s)", model_reason_name(esi->reason));
}

static void append_text(const struct model_esi_info *esi, struct rt_buffer *buffer)
{
    rt_buffer_printf(buffer, "%" PRIu64 " %s %s", esi->id, esi->name,
                     model_esi_state_name(esi->state));
    append_end(esi, buffer);
    rt_buffer_printf(buffer, ", %" PRIu64 " of %" PRIu64 " statements", esi->n_ok,
                     esi->n_statements);
    if (esi->waits_for.size > 0) {
        rt_buffer_append_string(buffer, ", waits for ");
        cli_escape_append(esi->waits_for, buffer);
    }
    append_failure(esi, buffer);
    rt_buffer_append_byte(buffer, '\n');
}

void cli_esi_inspect_append(const struct model_esi_info *esi, enum cli_output output,
                            struct rt_buffer *buffer)
{
    struct rt_json json;

    if (output == CLI_OUTPUT_TEXT) {
        append_text(esi, buffer);
        return;
    }
    rt_json_init(&json, buffer);
    rt_json_object_begin(&json, NULL);
    cli_esi_inspect_write(&json, esi);
    rt_json_object_end(&json);
    rt_buffer_append_byte(buffer, '\n');
}

/* A number, or nothing, which the table shows as "-". */
static void add_optional_number(struct cli_table *table, uint64_t number)
{
    if (number == 0)
        cli_table_add_string(table, "");
    else
        cli_table_add_number(table, number);
}

static void add_row(struct cli_table *table, const struct model_esi_info *esi)
{
    struct rt_buffer text = {0};

    cli_table_add_number(table, esi->id);
    cli_table_add_string(table, esi->name);
    cli_table_add_string(table, model_esi_state_name(esi->state));
    cli_table_add_string(table, esi->end == MODEL_ESI_END_NONE ? "" : model_esi_end_name(esi->end));
    add_optional_number(table, esi->line);
    rt_buffer_printf(&text, "%" PRIu64 "/%" PRIu64, esi->n_ok, esi->n_statements);
    cli_table_add(table, rt_buffer_bytes(&text));
    rt_buffer_reset(&text);
    if (esi->estimate_milli > 0)
        rt_buffer_printf(&text, "%.3g", (double)esi->estimate_milli / 1000);
    cli_table_add(table, rt_buffer_bytes(&text));
    cli_table_add(table, esi->waits_for);
    rt_buffer_deinit(&text);
}

void cli_esi_inspect_append_table(const struct model_esi_info *esis, size_t n_esis,
                                  struct rt_buffer *buffer)
{
    static const struct cli_table_column columns[] = {
        {"ID", true},   {"NAME", false}, {"STATE", false},   {"END", false},
        {"LINE", true}, {"DONE", true},  {"ESTIMATE", true}, {"WAITS FOR", false},
    };
    struct cli_table table;

    cli_table_init(&table, columns, RT_ARRAY_SIZE(columns));
    for (size_t i = 0; i < n_esis; i++)
        add_row(&table, &esis[i]);
    cli_table_append(&table, buffer);
    cli_table_deinit(&table);
}
