/*
 * The entries of an instance as text for people and as JSON for programs, page by page. Pure.
 *
 * JSON: instance, entries (index, key, offset, bytes, atomic), pointer, free, total, entry_size.
 *
 * Text: one line of figures, a grid with a sign for each entry where there are not too many, and a
 * row for each entry in use and each hole:
 *
 *   o value of one entry   < = >  begin, middle and end of a longer one   + reserved   . free
 */
#ifndef CLI_ENTRY_MAP_H
#define CLI_ENTRY_MAP_H

#include "cli/context.h"
#include "runtime/base/buffer.h"
#include "runtime/model/message.h"

enum {
    CLI_ENTRY_MAP_GRID_MAX = 4096, /* entries that are drawn */
    CLI_ENTRY_MAP_GRID_WIDTH = 64,
};

struct cli_entry_map;

/* `instance` is a name, borrowed like the buffer until the end. */
struct cli_entry_map *cli_entry_map_begin(const char *instance, enum cli_output output,
                                          struct rt_buffer *buffer);

/* The next page. */
void cli_entry_map_add(struct cli_entry_map *map, const struct model_list_entries_response *page);

/* Completes the output with the figures of the last page, if there was one, and frees the map;
 * returns NULL. */
struct cli_entry_map *cli_entry_map_end(struct cli_entry_map *map);

#endif
