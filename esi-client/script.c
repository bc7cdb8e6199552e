/*
 * Script parser: see script.h. Two passes over the text: the first counts steps and collects
 * errors, the second fills an array of exactly that size. Invariant: both see the same lines, and
 * the second no error. Pure.
 */
#include "esi-client/script.h"

#include <stdio.h>

#include "esi-client/text.h"
#include "runtime/base/alloc.h"
#include "runtime/model/template.h"

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

static void add_error(struct esi_script_errors *errors, uint32_t number, struct rt_bytes line,
                      size_t column, const char *expected)
{
    struct esi_script_error *error;

    errors->n_errors++;
    if (errors->n_items == ESI_SCRIPT_ERRORS_MAX)
        return;
    error = &errors->items[errors->n_items++];
    error->line = number;
    error->column = column;
    error->expected = expected;
    quote(error, line);
}

/* ---- checking -------------------------------------------------------------------------------- */

/* A REPEAT whose END has not come; the lowest is the script itself, one round of it. */
struct block {
    struct rt_bytes line;
    uint32_t number;
    size_t column;
    uint64_t rounds;
    uint64_t n_executed; /* statements of one round */
};

struct check {
    struct lines lines;
    struct esi_script_errors *errors;
    struct block blocks[ESI_SCRIPT_DEPTH_MAX + 1];
    size_t depth;            /* of the block that a line belongs to */
    size_t n_too_deep;       /* REPEATs that were refused, with their ENDs still to come */
    struct esi_script found; /* counts and what it has, no memory */
};

static size_t n_digits(uint64_t number)
{
    size_t n = 1;

    while (number >= 10) {
        number /= 10;
        n++;
    }
    return n;
}

/* Of a template without errors, with ${i} up to `rounds`. */
static size_t expanded_size(struct rt_bytes rest, uint64_t rounds)
{
    struct model_template_error error;
    struct model_part part;
    size_t size = 0;

    while (rest.size > 0 && model_template_next(&rest, &part, &error))
        switch (part.kind) {
        case MODEL_PART_TEXT:
            size += part.text.size;
            break;
        case MODEL_PART_ROUND:
            size += n_digits(rounds);
            break;
        case MODEL_PART_RANDOM:
        case MODEL_PART_ZIPF:
            size += n_digits(part.high);
            break;
        }
    return size;
}

static bool is_random(struct rt_bytes rest)
{
    struct model_template_error error;
    struct model_part part;

    while (rest.size > 0 && model_template_next(&rest, &part, &error))
        if (part.kind == MODEL_PART_RANDOM || part.kind == MODEL_PART_ZIPF)
            return true;
    return false;
}

static void refuse(struct check *check, struct rt_bytes line, size_t column, const char *expected)
{
    add_error(check->errors, check->lines.number, line, column, expected);
}

static void check_expansions(struct check *check, struct rt_bytes line,
                             const struct model_statement *statement)
{
    uint64_t rounds = check->blocks[check->depth].rounds;
    size_t size = expanded_size(statement->key, rounds) + expanded_size(statement->value, rounds);

    if (statement->round_column > 0 && check->depth == 0 && check->n_too_deep == 0)
        refuse(check, line, statement->round_column, "a REPEAT around ${i}");
    if (size > ESI_SCRIPT_EXPANDED_MAX)
        refuse(check, line, statement->column,
               "key and value of at most 1048847 bytes together when they are expanded");
    if (size > check->found.expanded_max)
        check->found.expanded_max = size;
    if (is_random(statement->key) || is_random(statement->value))
        check->found.is_random = true;
}

_Static_assert(ESI_SCRIPT_EXPANDED_MAX == 1048847, "the text names the limit");
_Static_assert(ESI_SCRIPT_DEPTH_MAX == 16, "the text names the limit");
_Static_assert(ESI_SCRIPT_EXECUTED_MAX == 100000000, "the text names the limit");

static void begin_block(struct check *check, struct rt_bytes line,
                        const struct model_statement *statement)
{
    if (check->depth == ESI_SCRIPT_DEPTH_MAX) {
        refuse(check, line, statement->column, "at most 16 REPEATs within each other");
        check->n_too_deep++;
        return;
    }
    check->blocks[++check->depth] = (struct block){.line = line,
                                                   .number = check->lines.number,
                                                   .column = statement->column,
                                                   .rounds = statement->number};
}

static void end_block(struct check *check, struct rt_bytes line,
                      const struct model_statement *statement)
{
    struct block *block = &check->blocks[check->depth];
    uint64_t n_executed;

    if (check->n_too_deep > 0) {
        check->n_too_deep--;
        return;
    }
    if (check->depth == 0) {
        refuse(check, line, statement->column, "a REPEAT before END");
        return;
    }
    if (block->n_executed == 0)
        refuse(check, line, statement->column, "a statement between REPEAT and END");
    n_executed = block->n_executed * block->rounds;
    if (n_executed > ESI_SCRIPT_EXECUTED_MAX) {
        add_error(check->errors, block->number, block->line, block->column,
                  "at most 100000000 statements in all rounds together");
        n_executed = block->n_executed;
    }
    check->blocks[--check->depth].n_executed += n_executed;
}

static void check_line(struct check *check, struct rt_bytes line, enum model_dialect dialect)
{
    struct model_statement statement;
    struct model_statement_error problem;
    enum model_line kind = model_statement_parse(line, dialect, &statement, &problem);

    switch (kind) {
    case MODEL_LINE_EMPTY:
        return;
    case MODEL_LINE_ERROR:
        refuse(check, line, problem.column, problem.expected);
        /* One error is enough: its block is not empty. */
        check->blocks[check->depth].n_executed++;
        return;
    case MODEL_LINE_REPEAT:
        begin_block(check, line, &statement);
        break;
    case MODEL_LINE_END:
        end_block(check, line, &statement);
        break;
    case MODEL_LINE_STATEMENT:
    case MODEL_LINE_EXPECT:
    case MODEL_LINE_SLEEP:
        if (statement.has_expansions)
            check_expansions(check, line, &statement);
        if (kind == MODEL_LINE_EXPECT)
            check->found.has_expect = true;
        check->blocks[check->depth].n_executed++;
        check->found.n_statements++;
        break;
    }
    check->found.n_steps++;
}

static struct esi_script check_text(struct rt_bytes text, enum model_dialect dialect,
                                    struct esi_script_errors *errors)
{
    struct check check = {.lines = {.rest = text}, .errors = errors, .blocks = {{.rounds = 1}}};
    struct rt_bytes line;

    while (next_line(&check.lines, &line))
        check_line(&check, line, dialect);
    for (; check.depth > 0; check.depth--) {
        const struct block *block = &check.blocks[check.depth];

        add_error(errors, block->number, block->line, block->column, "an END behind this REPEAT");
    }
    check.found.n_executed = check.blocks[0].n_executed;
    return check.found;
}

static enum rt_code check_limits(const char *name, const struct esi_script *found,
                                 struct rt_error *err)
{
    if (found->n_steps > ESI_SCRIPT_STEPS_MAX)
        return rt_fail(err, RT_RESOURCE_EXHAUSTED,
                       "%s: the script has %zu statements; 0 to %d are accepted", name,
                       found->n_steps, ESI_SCRIPT_STEPS_MAX);
    if (found->n_executed > ESI_SCRIPT_EXECUTED_MAX)
        return rt_fail(err, RT_RESOURCE_EXHAUSTED,
                       "%s: the script has %llu statements in all rounds together; 0 to %d are "
                       "accepted",
                       name, (unsigned long long)found->n_executed, ESI_SCRIPT_EXECUTED_MAX);
    return RT_OK;
}

/* ---- building -------------------------------------------------------------------------------- */

struct fill {
    struct esi_script *script;
    size_t n_steps;
    uint32_t open[ESI_SCRIPT_DEPTH_MAX]; /* REPEATs */
    size_t depth;
};

static void set_kind(struct fill *fill, struct esi_step *step, enum model_line kind,
                     const struct model_statement *statement)
{
    uint32_t index = (uint32_t)fill->n_steps;

    switch (kind) {
    case MODEL_LINE_EMPTY:
    case MODEL_LINE_ERROR:
    case MODEL_LINE_STATEMENT:
        return;
    case MODEL_LINE_EXPECT:
        step->statement.target = ESI_TARGET_EXPECT;
        return;
    case MODEL_LINE_SLEEP:
        step->statement.target = ESI_TARGET_SLEEP;
        step->statement.sleep_ms = statement->number;
        return;
    case MODEL_LINE_REPEAT:
        step->kind = ESI_STEP_REPEAT;
        step->rounds = (uint32_t)statement->number;
        fill->open[fill->depth++] = index;
        return;
    case MODEL_LINE_END:
        step->kind = ESI_STEP_END;
        step->partner = fill->open[--fill->depth];
        fill->script->steps[step->partner].partner = index;
        return;
    }
}

static void fill_steps(struct esi_script *script, size_t text_size, enum model_dialect dialect)
{
    struct lines lines = {.rest = rt_bytes_of(script->text, text_size)};
    struct fill fill = {.script = script};
    struct rt_bytes line;

    while (next_line(&lines, &line)) {
        struct model_statement statement = {0};
        struct model_statement_error problem;
        enum model_line kind = model_statement_parse(line, dialect, &statement, &problem);
        struct esi_step *step = &script->steps[fill.n_steps];

        if (kind == MODEL_LINE_EMPTY)
            continue;
        *step = (struct esi_step){
            .has_expansions = statement.has_expansions,
            .statement = {.kind = statement.kind,
                          .key = statement.key,
                          .value = statement.value,
                          .line = lines.number},
        };
        set_kind(&fill, step, kind, &statement);
        fill.n_steps++;
    }
}

static enum rt_code build(const char *name, struct rt_bytes text, enum model_dialect dialect,
                          const struct esi_script *found, struct esi_script **ret_script,
                          struct rt_error *err)
{
    struct esi_script *script = rt_xalloc(sizeof(*script));

    *script = *found;
    (void)snprintf(script->name, sizeof(script->name), "%s", name);
    script->text = rt_alloc(text.size + 1);
    script->steps = rt_alloc((found->n_steps + 1) * sizeof(*script->steps));
    if (!script->text || !script->steps) {
        (void)esi_script_free(script);
        return rt_fail(err, RT_RESOURCE_EXHAUSTED, "%s: no memory for %zu statements", name,
                       found->n_steps);
    }
    if (text.size > 0)
        memcpy(script->text, text.data, text.size);
    fill_steps(script, text.size, dialect);
    *ret_script = script;
    return RT_OK;
}

enum rt_code esi_script_parse(const char *name, struct rt_bytes text, enum model_dialect dialect,
                              struct esi_script **ret_script, struct esi_script_errors *ret_errors,
                              struct rt_error *err)
{
    struct esi_script found;
    enum rt_code code;

    ret_errors->n_items = 0;
    ret_errors->n_errors = 0;
    if (text.size > ESI_SCRIPT_SIZE_MAX)
        return rt_fail(err, RT_RESOURCE_EXHAUSTED,
                       "%s: the script has %zu bytes; 0 to %d are accepted", name, text.size,
                       ESI_SCRIPT_SIZE_MAX);
    found = check_text(text, dialect, ret_errors);
    if (ret_errors->n_errors > 0)
        return rt_fail(err, RT_INVALID_ARGUMENT, "%s:%u:%zu: expected %s", name,
                       (unsigned int)ret_errors->items[0].line, ret_errors->items[0].column,
                       ret_errors->items[0].expected);
    code = check_limits(name, &found, err);
    return code == RT_OK ? build(name, text, dialect, &found, ret_script, err) : code;
}

struct esi_script *esi_script_free(struct esi_script *script)
{
    if (!script)
        return NULL;
    (void)rt_free(script->steps);
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
