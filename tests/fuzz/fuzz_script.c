/*
 * Script parser and cursor on any bytes, with the extensions and without: it accepts or reports
 * errors, what it accepts has the promised shape, and a run of it as many statements as it says.
 * libFuzzer target; replay_main.c runs the corpus through it as an ordinary test.
 */
#include <stdlib.h>

#include "esi-client/cursor.h"
#include "runtime/base/alloc.h"
#include "runtime/base/json.h"
#include "tests/fuzz/fuzz.h"

enum {
    EXECUTED_MAX = 2000
};

static void check(bool holds)
{
    if (!holds)
        abort();
}

static bool points_into(struct rt_bytes part, const char *text, size_t size)
{
    const char *start = (const char *)part.data;

    return part.size == 0 || (start >= text && start + part.size <= text + size);
}

static void check_statement(const struct esi_script *script, const struct esi_statement *statement,
                            size_t size)
{
    bool has_value = statement->target == ESI_TARGET_EXPECT ||
                     statement->kind == MODEL_STATEMENT_SET ||
                     statement->kind == MODEL_STATEMENT_PUT;

    check((statement->target == ESI_TARGET_COORDINATOR) == (statement->key.size > 0));
    check(has_value == (statement->value.size > 0));
    check(points_into(statement->key, script->text, size));
    check(points_into(statement->value, script->text, size));
}

static void check_script(const struct esi_script *script, size_t size)
{
    size_t depth = 0, n_statements = 0;
    uint32_t line = 0;

    for (size_t i = 0; i < script->n_steps; i++) {
        const struct esi_step *step = &script->steps[i];

        check(step->statement.line > line);
        line = step->statement.line;
        switch (step->kind) {
        case ESI_STEP_STATEMENT:
            check_statement(script, &step->statement, size);
            n_statements++;
            break;
        case ESI_STEP_REPEAT:
            check(++depth <= ESI_SCRIPT_DEPTH_MAX);
            check(step->partner > i + 1 && script->steps[step->partner].partner == i);
            break;
        case ESI_STEP_END:
            check(depth-- > 0);
            break;
        }
    }
    check(depth == 0 && n_statements == script->n_statements);
    check(script->n_executed >= n_statements && script->n_executed <= ESI_SCRIPT_EXECUTED_MAX);
}

/* A run of the script, or the beginning of a long one. */
static void check_cursor(const struct esi_script *script)
{
    struct esi_statement statement;
    struct esi_cursor cursor;
    uint64_t n = 0;

    esi_cursor_init(&cursor, script, script->n_executed);
    while (!esi_cursor_is_done(&cursor) && n < EXECUTED_MAX) {
        check(esi_cursor_next(&cursor, &statement, NULL) == RT_OK);
        if (esi_cursor_is_expanded(&cursor))
            check(statement.key.size + statement.value.size <= script->expanded_max);
        check((statement.target == ESI_TARGET_COORDINATOR) == (statement.key.size > 0));
        n++;
    }
    check(n == (script->n_executed < EXECUTED_MAX ? script->n_executed : EXECUTED_MAX));
    esi_cursor_deinit(&cursor);
}

static void check_errors(const struct esi_script_errors *errors)
{
    struct rt_buffer buffer = {0};
    size_t n_lines = 0;

    check(errors->n_items > 0 && errors->n_items <= errors->n_errors);
    esi_script_errors_format("fuzz", errors, &buffer);
    check(rt_buffer_check(&buffer, NULL) == RT_OK);
    check(rt_json_is_utf8(rt_buffer_bytes(&buffer)));
    for (size_t i = 0; i < buffer.size; i++)
        n_lines += buffer.data[i] == '\n';
    check(n_lines == 3 * errors->n_items + (errors->n_errors > errors->n_items));
    rt_buffer_deinit(&buffer);
}

static void parse(struct rt_bytes text, enum model_dialect dialect)
{
    struct esi_script_errors *errors = rt_xalloc(sizeof(*errors));
    struct esi_script *script = NULL;
    struct rt_error err;

    switch (esi_script_parse("fuzz", text, dialect, &script, errors, &err)) {
    case RT_OK:
        check_script(script, text.size);
        check_cursor(script);
        break;
    case RT_INVALID_ARGUMENT:
        check_errors(errors);
        break;
    default:
        /* Too many rounds in blocks that are each within the limit. */
        check(text.size > ESI_SCRIPT_SIZE_MAX || strstr(err.message, "in all rounds together"));
        break;
    }
    (void)esi_script_free(script);
    (void)rt_free(errors);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    parse(rt_bytes_of(data, size), MODEL_DIALECT_EXTENDED);
    parse(rt_bytes_of(data, size), MODEL_DIALECT_CLASSIC);
    return 0;
}
