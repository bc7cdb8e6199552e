/*
 * Script parser: see script.h. Two passes over the text: the first counts statements and collects
 * errors, the second fills an array of exactly that size. Invariant: both see the same lines. Pure.
 */
#include "esi-client/script.h"

#include <stdio.h>

#include "esi-client/text.h"
#include "runtime/base/alloc.h"
#include "runtime/model/statement.h"

struct lines {
    struct rt_bytes rest;
    uint32_t number; /* of the line taken last */
};

static bool next_line(struct lines *lines, struct rt_bytes *ret_line)
{
    const uint8_t *newline;
    size_t size, taken;

    if (lines->rest.size == 0)
        return false;
    newline = memchr(lines->rest.data, '\n', lines->rest.size);
    size = newline ? (size_t)(newline - lines->rest.data) : lines->rest.size;
    taken = newline ? size + 1 : size;
    *ret_line = rt_bytes_of(lines->rest.data, size);
    lines->rest = rt_bytes_of(lines->rest.data + taken, lines->rest.size - taken);
    lines->number++;
    return true;
}

static void quote(struct esi_script_error *error, struct rt_bytes line)
{
    size_t at = error->column - 1;
    size_t start = at > ESI_SCRIPT_QUOTE_MAX * 2 / 3 ? at - ESI_SCRIPT_QUOTE_MAX * 2 / 3 : 0;
    size_t size;

    if (line.size > 0 && line.data[line.size - 1] == '\r')
        line.size--;
    size = line.size - start < ESI_SCRIPT_QUOTE_MAX ? line.size - start : ESI_SCRIPT_QUOTE_MAX;
    if (size > 0)
        memcpy(error->quote, line.data + start, size);
    error->quote_size = size;
    error->quote_at = at - start;
    error->cut_before = start > 0;
    error->cut_behind = start + size < line.size;
}

static void add_error(struct esi_script_errors *errors, const struct lines *lines,
                      struct rt_bytes line, const struct model_statement_error *problem)
{
    struct esi_script_error *error;

    errors->n_errors++;
    if (errors->n_items == ESI_SCRIPT_ERRORS_MAX)
        return;
    error = &errors->items[errors->n_items++];
    error->line = lines->number;
    error->column = problem->column;
    error->expected = problem->expected;
    quote(error, line);
}

static size_t check(struct rt_bytes text, struct esi_script_errors *errors)
{
    struct lines lines = {.rest = text};
    struct model_statement statement;
    struct model_statement_error problem;
    struct rt_bytes line;
    size_t n_statements = 0;

    while (next_line(&lines, &line))
        switch (model_statement_parse(line, &statement, &problem)) {
        case MODEL_LINE_EMPTY:
            break;
        case MODEL_LINE_STATEMENT:
            n_statements++;
            break;
        case MODEL_LINE_ERROR:
            add_error(errors, &lines, line, &problem);
            break;
        }
    return n_statements;
}

static enum rt_code check_limits(const char *name, struct rt_bytes text, size_t n_statements,
                                 struct rt_error *err)
{
    if (text.size > ESI_SCRIPT_SIZE_MAX)
        return rt_fail(err, RT_RESOURCE_EXHAUSTED,
                       "%s: the script has %zu bytes; 0 to %d are accepted", name, text.size,
                       ESI_SCRIPT_SIZE_MAX);
    if (n_statements > ESI_SCRIPT_STATEMENTS_MAX)
        return rt_fail(err, RT_RESOURCE_EXHAUSTED,
                       "%s: the script has %zu statements; 0 to %d are accepted", name,
                       n_statements, ESI_SCRIPT_STATEMENTS_MAX);
    return RT_OK;
}

static void fill(struct esi_script *script, size_t text_size)
{
    struct lines lines = {.rest = rt_bytes_of(script->text, text_size)};
    struct model_statement statement;
    struct model_statement_error problem;
    struct rt_bytes line;

    while (next_line(&lines, &line))
        if (model_statement_parse(line, &statement, &problem) == MODEL_LINE_STATEMENT)
            script->statements[script->n_statements++] =
                (struct esi_statement){.kind = statement.kind,
                                       .key = statement.key,
                                       .value = statement.value,
                                       .line = lines.number};
}

static enum rt_code build(const char *name, struct rt_bytes text, size_t n_statements,
                          struct esi_script **ret_script, struct rt_error *err)
{
    struct esi_script *script = rt_xalloc(sizeof(*script));

    (void)snprintf(script->name, sizeof(script->name), "%s", name);
    script->text = rt_alloc(text.size + 1);
    script->statements = rt_alloc((n_statements + 1) * sizeof(*script->statements));
    if (!script->text || !script->statements) {
        (void)esi_script_free(script);
        return rt_fail(err, RT_RESOURCE_EXHAUSTED, "%s: no memory for %zu statements", name,
                       n_statements);
    }
    if (text.size > 0)
        memcpy(script->text, text.data, text.size);
    fill(script, text.size);
    *ret_script = script;
    return RT_OK;
}

enum rt_code esi_script_parse(const char *name, struct rt_bytes text,
                              struct esi_script **ret_script, struct esi_script_errors *ret_errors,
                              struct rt_error *err)
{
    size_t n_statements;
    enum rt_code code;

    ret_errors->n_items = 0;
    ret_errors->n_errors = 0;
    code = check_limits(name, text, 0, err);
    if (code != RT_OK)
        return code;
    n_statements = check(text, ret_errors);
    if (ret_errors->n_errors > 0)
        return rt_fail(err, RT_INVALID_ARGUMENT, "%s:%u:%zu: expected %s", name,
                       (unsigned int)ret_errors->items[0].line, ret_errors->items[0].column,
                       ret_errors->items[0].expected);
    code = check_limits(name, text, n_statements, err);
    if (code != RT_OK)
        return code;
    return build(name, text, n_statements, ret_script, err);
}

struct esi_script *esi_script_free(struct esi_script *script)
{
    if (!script)
        return NULL;
    (void)rt_free(script->statements);
    (void)rt_free(script->text);
    return rt_free(script);
}

void esi_script_error_format(const char *name, const struct esi_script_error *error,
                             struct rt_buffer *buffer)
{
    size_t columns = 0;

    rt_buffer_printf(buffer, "%s:%u:%zu: expected %s\n    ", name, (unsigned int)error->line,
                     error->column, error->expected);
    if (error->cut_before) {
        rt_buffer_append_string(buffer, "…");
        columns++;
    }
    columns += esi_text_append(buffer, rt_bytes_of(error->quote, error->quote_at));
    (void)esi_text_append(
        buffer, rt_bytes_of(error->quote + error->quote_at, error->quote_size - error->quote_at));
    if (error->cut_behind)
        rt_buffer_append_string(buffer, "…");
    rt_buffer_printf(buffer, "\n    %*s^\n", (int)columns, "");
}

void esi_script_errors_format(const char *name, const struct esi_script_errors *errors,
                              struct rt_buffer *buffer)
{
    for (size_t i = 0; i < errors->n_items; i++)
        esi_script_error_format(name, &errors->items[i], buffer);
    if (errors->n_errors > errors->n_items)
        rt_buffer_printf(buffer, "%s: %zu errors in all; the first %zu are shown\n", name,
                         errors->n_errors, errors->n_items);
}
