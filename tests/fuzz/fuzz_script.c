/*
 * Script parser on any bytes: it accepts or reports errors, and what it accepts has the promised
 * shape. libFuzzer target; replay_main.c runs the corpus through it as an ordinary test.
 */
#include <stdlib.h>

#include "esi-client/script.h"
#include "runtime/base/alloc.h"
#include "runtime/base/json.h"
#include "tests/fuzz/fuzz.h"

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

static void check_script(const struct esi_script *script, size_t size)
{
    uint32_t line = 0;

    for (size_t i = 0; i < script->n_statements; i++) {
        const struct esi_statement *statement = &script->statements[i];

        check(statement->line > line);
        line = statement->line;
        check(statement->key.size > 0);
        check(!memchr(statement->key.data, ' ', statement->key.size));
        check((statement->kind == MODEL_STATEMENT_SET) == (statement->value.size > 0));
        check(points_into(statement->key, script->text, size));
        check(points_into(statement->value, script->text, size));
    }
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct esi_script_errors *errors = rt_xalloc(sizeof(*errors));
    struct esi_script *script = NULL;

    switch (esi_script_parse("fuzz", rt_bytes_of(data, size), &script, errors, NULL)) {
    case RT_OK:
        check_script(script, size);
        break;
    case RT_INVALID_ARGUMENT:
        check_errors(errors);
        break;
    default:
        check(size > ESI_SCRIPT_SIZE_MAX);
        break;
    }
    (void)esi_script_free(script);
    (void)rt_free(errors);
    return 0;
}
