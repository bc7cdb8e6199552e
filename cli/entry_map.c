/*
 * Entries as text and JSON: see entry_map.h. Invariant: `next` is the first index that is not told
 * yet, so that what is left out between two entries is told as a hole. Pure.
 */
#include "cli/entry_map.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/table.h"
#include "runtime/base/alloc.h"
#include "runtime/base/json.h"

struct cli_entry_map {
    const char *instance;
    enum cli_output output;
    struct rt_buffer *buffer;
    struct rt_json json;
    struct cli_table table;
    char grid[CLI_ENTRY_MAP_GRID_MAX];
    uint64_t next;
    struct model_list_entries_response figures; /* of the latest page, without its entries */
};

static const struct cli_table_column columns[] = {
    {.title = "INDEX", .is_number = true},
    {.title = "KEY"},
    {.title = "OFFSET", .is_number = true},
    {.title = "BYTES", .is_number = true},
    {.title = "VALUE"},
};

struct cli_entry_map *cli_entry_map_begin(const char *instance, enum cli_output output,
                                          struct rt_buffer *buffer)
{
    struct cli_entry_map *map = rt_xalloc(sizeof(*map));

    map->instance = instance;
    map->output = output;
    map->buffer = buffer;
    memset(map->grid, '.', sizeof(map->grid));
    cli_table_init(&map->table, columns, RT_ARRAY_SIZE(columns));
    if (output == CLI_OUTPUT_TEXT)
        return map;
    rt_json_init(&map->json, buffer);
    rt_json_object_begin(&map->json, NULL);
    rt_json_string(&map->json, "instance", instance);
    rt_json_array_begin(&map->json, "entries");
    return map;
}

/* ---- text ---- */

/* Entries `map->next` … `end` - 1 are free. */
static void add_hole(struct cli_entry_map *map, uint64_t end)
{
    char range[48];

    if (map->next >= end)
        return;
    if (end - map->next == 1)
        (void)snprintf(range, sizeof(range), "%" PRIu64, map->next);
    else
        (void)snprintf(range, sizeof(range), "%" PRIu64 "-%" PRIu64, map->next, end - 1);
    cli_table_add_string(&map->table, range);
    cli_table_add_string(&map->table, "");
    cli_table_add_string(&map->table, "");
    cli_table_add_string(&map->table, "");
    cli_table_add_string(&map->table, "free");
}

/* For a value that is being written. */
static bool is_reserved(const struct model_entry_info *entry)
{
    return !entry->atomic && entry->bytes_used == 0;
}

static char sign_of(const struct model_entry_info *entry, uint64_t entry_size)
{
    if (entry->atomic)
        return 'o';
    if (is_reserved(entry))
        return '+';
    if (entry->offset == 0)
        return '<';
    return entry->bytes_used < entry_size ? '>' : '=';
}

static void add_row(struct cli_entry_map *map, const struct model_entry_info *entry)
{
    add_hole(map, entry->index);
    cli_table_add_number(&map->table, entry->index);
    cli_table_add(&map->table, entry->key);
    cli_table_add_number(&map->table, entry->offset);
    cli_table_add_number(&map->table, entry->bytes_used);
    cli_table_add_string(&map->table, entry->atomic        ? "atomic"
                                      : is_reserved(entry) ? "reserved"
                                                           : "part");
    map->next = entry->index + (uint64_t)1;
}

/* The last part of a value can be full: it ends where the next entry begins another one. */
static void draw(struct cli_entry_map *map, const struct model_entry_info *entry)
{
    uint64_t at = entry->index;

    if (at >= CLI_ENTRY_MAP_GRID_MAX)
        return;
    map->grid[at] = sign_of(entry, map->figures.entry_size);
    if (at > 0 && entry->offset == 0 && map->grid[at - 1] == '=')
        map->grid[at - 1] = '>';
}

static void append_grid(struct cli_entry_map *map)
{
    uint64_t total = map->figures.entries_total;

    if (total > CLI_ENTRY_MAP_GRID_MAX)
        return;
    for (uint64_t at = 0; at < total; at++) {
        bool ends = map->grid[at] == '=' && (at + 1 == total || map->grid[at + 1] == '.');

        if (at % CLI_ENTRY_MAP_GRID_WIDTH == 0)
            rt_buffer_printf(map->buffer, "%s%6" PRIu64 "  ", at == 0 ? "" : "\n", at);
        rt_buffer_append_byte(map->buffer, (uint8_t)(ends ? '>' : map->grid[at]));
    }
    rt_buffer_append_string(map->buffer, "\n\n");
}

static void append_text(struct cli_entry_map *map)
{
    const struct model_list_entries_response *figures = &map->figures;

    add_hole(map, figures->entries_total);
    rt_buffer_printf(map->buffer,
                     "%s: %" PRIu64 " entries of %" PRIu64 " bytes, %" PRIu64
                     " free, replacement pointer at %" PRIu32 "\n\n",
                     map->instance, figures->entries_total, figures->entry_size,
                     figures->entries_free, figures->pointer);
    append_grid(map);
    cli_table_append(&map->table, map->buffer);
}

/* ---- JSON ---- */

static void write_entry(struct rt_json *json, const struct model_entry_info *entry)
{
    rt_json_object_begin(json, NULL);
    rt_json_u64(json, "index", entry->index);
    rt_json_bytes(json, "key", entry->key);
    rt_json_u64(json, "offset", entry->offset);
    rt_json_u64(json, "bytes", entry->bytes_used);
    rt_json_bool(json, "atomic", entry->atomic);
    rt_json_object_end(json);
}

static void end_json(struct cli_entry_map *map)
{
    rt_json_array_end(&map->json);
    rt_json_u64(&map->json, "pointer", map->figures.pointer);
    rt_json_u64(&map->json, "free", map->figures.entries_free);
    rt_json_u64(&map->json, "total", map->figures.entries_total);
    rt_json_u64(&map->json, "entry_size", map->figures.entry_size);
    rt_json_object_end(&map->json);
    rt_buffer_append_byte(map->buffer, '\n');
}

/* ---- both ---- */

void cli_entry_map_add(struct cli_entry_map *map, const struct model_list_entries_response *page)
{
    map->figures = *page;
    map->figures.entries = NULL;
    for (size_t i = 0; i < page->n_entries; i++) {
        if (map->output == CLI_OUTPUT_JSON) {
            write_entry(&map->json, &page->entries[i]);
            continue;
        }
        draw(map, &page->entries[i]);
        add_row(map, &page->entries[i]);
    }
}

struct cli_entry_map *cli_entry_map_end(struct cli_entry_map *map)
{
    if (map->output == CLI_OUTPUT_JSON)
        end_json(map);
    else
        append_text(map);
    cli_table_deinit(&map->table);
    return rt_free(map);
}
