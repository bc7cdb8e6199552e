/*
 * Answers as text and JSON: see inspect.h. Pure.
 */
#include "cli/inspect.h"

#include <inttypes.h>

#include "cli/escape.h"
#include "cli/table.h"
#include "runtime/base/alloc.h"

/* ---- pieces ---------------------------------------------------------------------------------- */

/* null when empty. */
static void write_name(struct rt_json *json, const char *member, const char *name)
{
    rt_json_string(json, member, *name == '\0' ? NULL : name);
}

/* null when 0, which no epoch and no token is. */
static void write_number(struct rt_json *json, const char *member, uint64_t number)
{
    if (number == 0)
        rt_json_null(json, member);
    else
        rt_json_u64(json, member, number);
}

static void write_value(struct rt_json *json, bool has_value, struct rt_bytes value)
{
    if (has_value)
        rt_json_bytes(json, "value", value);
    else
        rt_json_null(json, "value");
}

/* null when the key has no value. */
static void write_version(struct rt_json *json, const struct model_version *version)
{
    if (version->epoch == 0) {
        rt_json_null(json, "version");
        return;
    }
    rt_json_object_begin(json, "version");
    rt_json_u64(json, "epoch", version->epoch);
    rt_json_u64(json, "incarnation", version->incarnation);
    rt_json_u64(json, "seq", version->seq);
    rt_json_object_end(json);
}

static void append_label(struct rt_buffer *buffer, const char *label)
{
    rt_buffer_printf(buffer, "%-13s", label);
}

static void append_name_line(struct rt_buffer *buffer, const char *label, const char *name,
                             const char *none)
{
    append_label(buffer, label);
    rt_buffer_printf(buffer, "%s\n", *name == '\0' ? none : name);
}

/* ---- status ---------------------------------------------------------------------------------- */

static void write_status(struct rt_bytes key, const struct model_key_status_response *status,
                         struct rt_buffer *buffer)
{
    struct rt_json json;

    rt_json_init(&json, buffer);
    rt_json_object_begin(&json, NULL);
    rt_json_bytes(&json, "key", key);
    rt_json_bool(&json, "known", status->known);
    write_value(&json, status->has_value, status->value);
    rt_json_bool(&json, "stored", status->stored);
    write_version(&json, &status->version);
    write_name(&json, "owner", status->owner);
    write_name(&json, "owner_state",
               *status->owner == '\0' ? "" : model_member_state_name(status->owner_state));
    write_number(&json, "epoch", status->epoch);
    write_name(&json, "would_place", status->would_place);
    write_name(&json, "holder", status->holder);
    rt_json_array_begin(&json, "waiters");
    for (size_t i = 0; i < status->n_waiters; i++) {
        RT_CLEANUP(rt_freep)
        char *name = rt_xasprintf("%.*s", (int)status->waiters[i].size, status->waiters[i].data);

        rt_json_string(&json, NULL, name);
    }
    rt_json_array_end(&json);
    rt_json_bool(&json, "value_unavailable", status->value_unavailable);
    rt_json_object_end(&json);
    rt_buffer_append_byte(buffer, '\n');
}

static void append_value_line(const struct model_key_status_response *status,
                              struct rt_buffer *buffer)
{
    struct rt_bytes shown = status->value;

    append_label(buffer, "value");
    if (status->value_unavailable) {
        rt_buffer_append_string(buffer, "(unknown: the owner could not be asked)\n");
        return;
    }
    if (!status->has_value) {
        rt_buffer_append_string(buffer, "(none)\n");
        return;
    }
    if (shown.size > CLI_INSPECT_VALUE_MAX)
        shown.size = CLI_INSPECT_VALUE_MAX;
    cli_escape_append(shown, buffer);
    if (shown.size < status->value.size)
        rt_buffer_printf(buffer, "... (%zu bytes)", status->value.size);
    rt_buffer_append_string(buffer, status->stored ? "\n" : "  (not stored)\n");
}

static void append_status(struct rt_bytes key, const struct model_key_status_response *status,
                          struct rt_buffer *buffer)
{
    append_label(buffer, "key");
    cli_escape_append(key, buffer);
    rt_buffer_append_string(buffer, status->known ? "\n" : "  (unknown)\n");
    append_value_line(status, buffer);
    append_label(buffer, "owner");
    if (*status->owner == '\0')
        rt_buffer_append_string(buffer, "(none)\n");
    else
        rt_buffer_printf(buffer, "%s, %s, epoch %llu\n", status->owner,
                         model_member_state_name(status->owner_state),
                         (unsigned long long)status->epoch);
    if (*status->owner == '\0')
        append_name_line(buffer, "would go to", status->would_place, "(no instance)");
    append_name_line(buffer, "locked by", status->holder, "(nobody)");
    append_label(buffer, "waiting");
    for (size_t i = 0; i < status->n_waiters; i++) {
        rt_buffer_append_string(buffer, i == 0 ? "" : ", ");
        cli_escape_append(status->waiters[i], buffer);
    }
    rt_buffer_append_string(buffer, status->n_waiters == 0 ? "(nobody)\n" : "\n");
}

void cli_inspect_append_status(struct rt_bytes key, const struct model_key_status_response *status,
                               enum cli_output output, struct rt_buffer *buffer)
{
    if (output == CLI_OUTPUT_JSON)
        write_status(key, status, buffer);
    else
        append_status(key, status, buffer);
}

/* ---- statements ------------------------------------------------------------------------------ */

/* Only these answer the value itself. */
static bool has_value_member(enum model_statement_kind kind)
{
    return kind == MODEL_STATEMENT_GET || kind == MODEL_STATEMENT_READ;
}

static bool may_lose_lock(enum model_statement_kind kind)
{
    return kind == MODEL_STATEMENT_STORE || kind == MODEL_STATEMENT_PUT;
}

static bool takes_entries(enum model_statement_kind kind)
{
    return kind == MODEL_STATEMENT_SET || kind == MODEL_STATEMENT_PUT;
}

static void write_evicted(struct rt_json *json, const struct model_data_response *data)
{
    rt_json_array_begin(json, "evicted");
    for (size_t i = 0; i < data->n_evicted; i++)
        rt_json_bytes(json, NULL, data->evicted[i]);
    rt_json_array_end(json);
}

void cli_inspect_write_result(struct rt_json *json, enum model_statement_kind kind,
                              const struct model_execute_response *response)
{
    const struct model_data_response *data = &response->data;

    if (has_value_member(kind))
        write_value(json, data->has_value, data->value);
    write_version(json, &data->version);
    rt_json_bool(json, "stored", data->stored);
    if (kind == MODEL_STATEMENT_READ)
        rt_json_bool(json, "stale", data->stale);
    rt_json_bool(json, "sets_lost", data->sets_lost);
    write_name(json, "owner", response->instance);
    write_number(json, "epoch", response->epoch);
    if (kind == MODEL_STATEMENT_GET)
        write_number(json, "lock_token", response->lock_token);
    if (may_lose_lock(kind))
        rt_json_bool(json, "lock_lost", response->lock_lost);
    if (takes_entries(kind))
        write_evicted(json, data);
}

void cli_inspect_append_result(enum model_statement_kind kind,
                               const struct model_execute_response *response,
                               struct rt_buffer *buffer)
{
    const struct model_version *version = &response->data.version;

    if (version->epoch == 0)
        rt_buffer_append_string(buffer, "version=none");
    else
        rt_buffer_printf(buffer, "version=%" PRIu64 ".%" PRIu64 ".%" PRIu64 " stored=%s",
                         version->epoch, version->incarnation, version->seq,
                         response->data.stored ? "yes" : "no");
    if (*response->instance == '\0')
        rt_buffer_append_string(buffer, " owner=none");
    else
        rt_buffer_printf(buffer, " owner=%s epoch=%" PRIu64, response->instance, response->epoch);
    if (kind == MODEL_STATEMENT_GET && response->lock_token != 0)
        rt_buffer_printf(buffer, " lock_token=%" PRIu64, response->lock_token);
    if (response->data.stale)
        rt_buffer_append_string(buffer, " stale");
    if (response->data.sets_lost)
        rt_buffer_append_string(buffer, " sets_lost");
    if (response->lock_lost)
        rt_buffer_append_string(buffer, " lock_lost");
    for (size_t i = 0; i < response->data.n_evicted; i++) {
        rt_buffer_append_string(buffer, i == 0 ? " evicted=" : ",");
        cli_escape_append(response->data.evicted[i], buffer);
    }
}

/* ---- lists ----------------------------------------------------------------------------------- */

struct cli_inspect_list {
    enum cli_output output;
    struct rt_buffer *buffer; /* borrowed */
    struct rt_json json;
    bool is_array_open;
    struct cli_table table;
};

static struct cli_inspect_list *begin(enum cli_output output, struct rt_buffer *buffer,
                                      const char *member, const struct cli_table_column *columns,
                                      size_t n_columns)
{
    struct cli_inspect_list *list = rt_xalloc(sizeof(*list));

    list->output = output;
    list->buffer = buffer;
    cli_table_init(&list->table, columns, n_columns);
    if (output == CLI_OUTPUT_TEXT)
        return list;
    rt_json_init(&list->json, buffer);
    rt_json_object_begin(&list->json, NULL);
    rt_json_array_begin(&list->json, member);
    list->is_array_open = true;
    return list;
}

static void end_array(struct cli_inspect_list *list)
{
    if (list->is_array_open)
        rt_json_array_end(&list->json);
    list->is_array_open = false;
}

struct cli_inspect_list *cli_inspect_list_end(struct cli_inspect_list *list)
{
    if (list->output == CLI_OUTPUT_TEXT) {
        cli_table_append(&list->table, list->buffer);
    } else {
        end_array(list);
        rt_json_object_end(&list->json);
        rt_buffer_append_byte(list->buffer, '\n');
    }
    cli_table_deinit(&list->table);
    return rt_free(list);
}

struct cli_inspect_list *cli_inspect_instances_begin(enum cli_output output,
                                                     struct rt_buffer *buffer)
{
    static const struct cli_table_column columns[] = {
        {.title = "NAME"},
        {.title = "ADDRESS"},
        {.title = "STATE"},
        {.title = "INCARNATION", .is_number = true},
        {.title = "KEYS", .is_number = true},
        {.title = "FREE", .is_number = true},
        {.title = "ENTRIES", .is_number = true},
        {.title = "RENEWED MS AGO", .is_number = true},
    };

    return begin(output, buffer, "instances", columns, RT_ARRAY_SIZE(columns));
}

static void write_instance(struct rt_json *json, const struct model_instance_info *instance)
{
    rt_json_object_begin(json, NULL);
    rt_json_string(json, "name", instance->name);
    rt_json_string(json, "address", instance->address);
    rt_json_string(json, "state", model_member_state_name(instance->state));
    rt_json_u64(json, "incarnation", instance->incarnation);
    rt_json_u64(json, "keys", instance->n_keys);
    rt_json_u64(json, "entries_free", instance->entries_free);
    rt_json_u64(json, "entries_total", instance->entries_total);
    rt_json_u64(json, "last_renew_ms", instance->last_renew_age_ms);
    rt_json_object_end(json);
}

static void add_instance_row(struct cli_table *table, const struct model_instance_info *instance)
{
    cli_table_add_string(table, instance->name);
    cli_table_add_string(table, instance->address);
    cli_table_add_string(table, model_member_state_name(instance->state));
    cli_table_add_number(table, instance->incarnation);
    cli_table_add_number(table, instance->n_keys);
    cli_table_add_number(table, instance->entries_free);
    cli_table_add_number(table, instance->entries_total);
    cli_table_add_number(table, instance->last_renew_age_ms);
}

void cli_inspect_instances_add(struct cli_inspect_list *list,
                               const struct model_list_instances_response *page)
{
    for (size_t i = 0; i < page->n_instances; i++) {
        if (list->output == CLI_OUTPUT_JSON)
            write_instance(&list->json, &page->instances[i]);
        else
            add_instance_row(&list->table, &page->instances[i]);
    }
}

struct cli_inspect_list *cli_inspect_keys_begin(enum cli_output output, struct rt_buffer *buffer)
{
    static const struct cli_table_column columns[] = {
        {.title = "KEY"},
        {.title = "OWNER"},
        {.title = "EPOCH", .is_number = true},
        {.title = "LOCKED BY"},
    };

    return begin(output, buffer, "keys", columns, RT_ARRAY_SIZE(columns));
}

static void write_key(struct rt_json *json, const struct model_key_info *key)
{
    rt_json_object_begin(json, NULL);
    rt_json_bytes(json, "key", key->key);
    write_name(json, "owner", key->owner);
    write_number(json, "epoch", key->epoch);
    write_name(json, "holder", key->holder);
    rt_json_object_end(json);
}

static void add_key_row(struct cli_table *table, const struct model_key_info *key)
{
    cli_table_add(table, key->key);
    cli_table_add_string(table, key->owner);
    if (key->epoch == 0)
        cli_table_add_string(table, "");
    else
        cli_table_add_number(table, key->epoch);
    cli_table_add_string(table, key->holder);
}

void cli_inspect_keys_add(struct cli_inspect_list *list,
                          const struct model_list_keys_response *page)
{
    for (size_t i = 0; i < page->n_keys; i++) {
        if (list->output == CLI_OUTPUT_JSON)
            write_key(&list->json, &page->keys[i]);
        else
            add_key_row(&list->table, &page->keys[i]);
    }
}

/* ---- health ---------------------------------------------------------------------------------- */

struct cli_inspect_list *cli_inspect_health_begin(enum cli_output output, struct rt_buffer *buffer)
{
    static const struct cli_table_column columns[] = {
        {.title = "NAME"},    {.title = "ADDRESS"}, {.title = "STATE"},
        {.title = "SERVING"}, {.title = "MESSAGE"},
    };

    return begin(output, buffer, "members", columns, RT_ARRAY_SIZE(columns));
}

void cli_inspect_health_add(struct cli_inspect_list *list, const struct cli_inspect_health *health)
{
    if (list->output == CLI_OUTPUT_JSON) {
        rt_json_object_begin(&list->json, NULL);
        rt_json_string(&list->json, "name", health->name);
        rt_json_string(&list->json, "address", health->address);
        rt_json_string(&list->json, "state", health->state);
        rt_json_bool(&list->json, "serving", health->is_serving);
        rt_json_string(&list->json, "message", health->message);
        rt_json_object_end(&list->json);
        return;
    }
    cli_table_add_string(&list->table, health->name);
    cli_table_add_string(&list->table, health->address);
    cli_table_add_string(&list->table, health->state == NULL ? "" : health->state);
    cli_table_add_string(&list->table, health->is_serving ? "yes" : "no");
    cli_table_add_string(&list->table, health->message == NULL ? "" : health->message);
}

void cli_inspect_health_sum(struct cli_inspect_list *list, bool is_serving)
{
    if (list->output == CLI_OUTPUT_TEXT)
        return;
    end_array(list);
    rt_json_bool(&list->json, "serving", is_serving);
}
