/*
 * Aligned columns for people. Widths count characters of UTF-8 text, one column each. Cells are
 * escaped (escape.h). Pure.
 */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/buffer.h"
#include "runtime/base/bytes.h"

struct cli_table_column {
    const char *title; /* static */
    bool is_number;    /* right-aligned */
};

/* Initialise with cli_table_init(). */
struct cli_table {
    const struct cli_table_column *columns; /* borrowed */
    size_t n_columns;
    char **cells; /* owned, row by row */
    size_t n_cells;
    size_t capacity;
};

void cli_table_init(struct cli_table *table, const struct cli_table_column *columns,
                    size_t n_columns);
void cli_table_deinit(struct cli_table *table);

/* The next cell, row by row; copied. Empty text is shown as "-". */
void cli_table_add(struct cli_table *table, struct rt_bytes text);
void cli_table_add_string(struct cli_table *table, const char *text);
void cli_table_add_number(struct cli_table *table, uint64_t number);

/* Titles, then the rows; two blanks between columns, none at the end of a line. All rows must be
 * complete. */
void cli_table_append(const struct cli_table *table, struct rt_buffer *buffer);

/* Characters of UTF-8 text; a stray continuation byte counts as none. */
size_t cli_table_width(struct rt_bytes text);

#endif
