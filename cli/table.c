/*
 * Tables: see table.h. Cells are kept as text and measured when printed. Pure.
 */
#include "cli/table.h"

#include <inttypes.h>
#include <string.h>

#include "cli/escape.h"
#include "runtime/base/alloc.h"

void cli_table_init(struct cli_table *table, const struct cli_table_column *columns,
                    size_t n_columns)
{
    *table = (struct cli_table){.columns = columns, .n_columns = n_columns};
}

void cli_table_deinit(struct cli_table *table)
{
    for (size_t i = 0; i < table->n_cells; i++)
        rt_free(table->cells[i]);
    rt_free(table->cells);
    *table = (struct cli_table){0};
}

/* Takes the text. */
static void add_owned(struct cli_table *table, char *text)
{
    if (table->n_cells == table->capacity) {
        table->capacity = table->capacity == 0 ? 64 : 2 * table->capacity;
        table->cells = rt_xrealloc(table->cells, table->capacity * sizeof(*table->cells));
    }
    table->cells[table->n_cells++] = text;
}

void cli_table_add(struct cli_table *table, struct rt_bytes text)
{
    struct rt_buffer cell = {0};

    cli_escape_append(text.size == 0 ? RT_BYTES_LITERAL("-") : text, &cell);
    add_owned(table, rt_xstrdup(rt_buffer_string(&cell)));
    rt_buffer_deinit(&cell);
}

void cli_table_add_string(struct cli_table *table, const char *text)
{
    cli_table_add(table, rt_bytes_of_string(text));
}

void cli_table_add_number(struct cli_table *table, uint64_t number)
{
    add_owned(table, rt_xasprintf("%" PRIu64, number));
}

size_t cli_table_width(struct rt_bytes text)
{
    size_t width = 0;

    for (size_t i = 0; i < text.size; i++)
        width += (text.data[i] & 0xc0) != 0x80;
    return width;
}

static size_t string_width(const char *text)
{
    return cli_table_width(rt_bytes_of_string(text));
}

static size_t column_width(const struct cli_table *table, size_t column)
{
    size_t width = string_width(table->columns[column].title);

    for (size_t i = column; i < table->n_cells; i += table->n_columns) {
        size_t cell = string_width(table->cells[i]);

        width = cell > width ? cell : width;
    }
    return width;
}

static void append_cell(const struct cli_table *table, size_t column, const char *text,
                        size_t width, struct rt_buffer *buffer)
{
    int padding = (int)(width - string_width(text));
    bool is_last = column + 1 == table->n_columns;

    if (table->columns[column].is_number)
        rt_buffer_printf(buffer, "%*s%s", padding, "", text);
    else
        rt_buffer_printf(buffer, "%s%*s", text, is_last ? 0 : padding, "");
    rt_buffer_append_string(buffer, is_last ? "\n" : "  ");
}

void cli_table_append(const struct cli_table *table, struct rt_buffer *buffer)
{
    RT_CLEANUP(rt_freep) size_t *widths = rt_xalloc(table->n_columns * sizeof(*widths));

    rt_assert(table->n_cells % table->n_columns == 0);
    for (size_t column = 0; column < table->n_columns; column++) {
        widths[column] = column_width(table, column);
        append_cell(table, column, table->columns[column].title, widths[column], buffer);
    }
    for (size_t i = 0; i < table->n_cells; i++) {
        size_t column = i % table->n_columns;

        append_cell(table, column, table->cells[i], widths[column], buffer);
    }
}
