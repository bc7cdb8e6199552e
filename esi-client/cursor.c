/*
 * Cursor: see cursor.h. Invariant: `at` is a statement or the end, never a REPEAT or END; `loops`
 * are the REPEATs around it, outermost first. Pure.
 */
#include "esi-client/cursor.h"

#include <inttypes.h>

#include "runtime/base/zipf.h"
#include "runtime/model/template.h"

uint64_t esi_cursor_seed(uint64_t run_seed, size_t n)
{
    struct rt_rng rng;

    rt_rng_seed(&rng, run_seed);
    for (size_t i = 0; i < n; i++)
        (void)rt_rng_next(&rng);
    return rt_rng_next(&rng);
}

/* Passes over what is no statement. Each block has one, so that this ends. */
static void settle(struct esi_cursor *cursor)
{
    while (cursor->at < cursor->script->n_steps) {
        const struct esi_step *step = &cursor->script->steps[cursor->at];
        struct esi_loop *loop;

        switch (step->kind) {
        case ESI_STEP_STATEMENT:
            return;
        case ESI_STEP_REPEAT:
            cursor->loops[cursor->depth++] = (struct esi_loop){(uint32_t)cursor->at, 1};
            cursor->at++;
            break;
        case ESI_STEP_END:
            loop = &cursor->loops[cursor->depth - 1];
            if (loop->round < cursor->script->steps[loop->repeat].rounds) {
                loop->round++;
                cursor->at = loop->repeat + 1;
            } else {
                cursor->depth--;
                cursor->at++;
            }
            break;
        }
    }
}

void esi_cursor_init(struct esi_cursor *cursor, const struct esi_script *script, uint64_t seed)
{
    *cursor = (struct esi_cursor){.script = script};
    rt_rng_seed(&cursor->rng, seed);
    settle(cursor);
}

void esi_cursor_deinit(struct esi_cursor *cursor)
{
    rt_buffer_deinit(&cursor->text);
}

bool esi_cursor_is_done(const struct esi_cursor *cursor)
{
    return cursor->at == cursor->script->n_steps;
}

static uint64_t round_of(const struct esi_cursor *cursor)
{
    return cursor->depth > 0 ? cursor->loops[cursor->depth - 1].round : 0;
}

static uint64_t number_of(struct esi_cursor *cursor, const struct model_part *part)
{
    struct rt_zipf zipf;

    if (part->kind == MODEL_PART_ROUND)
        return round_of(cursor);
    if (part->kind == MODEL_PART_RANDOM)
        return part->low + rt_rng_below(&cursor->rng, part->high - part->low + 1);
    rt_zipf_init(&zipf, part->high, RT_ZIPF_S_DEFAULT);
    return rt_zipf_draw(&zipf, &cursor->rng);
}

static void expand(struct esi_cursor *cursor, struct rt_bytes rest)
{
    struct model_template_error error;
    struct model_part part;

    while (rest.size > 0 && model_template_next(&rest, &part, &error))
        if (part.kind == MODEL_PART_TEXT)
            rt_buffer_append(&cursor->text, part.text);
        else
            rt_buffer_printf(&cursor->text, "%" PRIu64, number_of(cursor, &part));
}

enum rt_code esi_cursor_next(struct esi_cursor *cursor, struct esi_statement *ret_statement,
                             struct rt_error *err)
{
    const struct esi_step *step = &cursor->script->steps[cursor->at];
    struct esi_statement statement = step->statement;
    struct rt_rng before = cursor->rng;
    size_t key_size;
    enum rt_code code;

    rt_assert(!esi_cursor_is_done(cursor));
    rt_buffer_reset(&cursor->text);
    statement.round = round_of(cursor);
    if (step->has_expansions) {
        expand(cursor, statement.key);
        key_size = cursor->text.size;
        expand(cursor, statement.value);
        code = rt_buffer_check(&cursor->text, err);
        if (code != RT_OK) {
            cursor->rng = before;
            return code;
        }
        statement.key = rt_bytes_of(cursor->text.data, key_size);
        statement.value = rt_bytes_of(cursor->text.data + key_size, cursor->text.size - key_size);
    }
    cursor->last = cursor->at++;
    settle(cursor);
    *ret_statement = statement;
    return RT_OK;
}

bool esi_cursor_is_expanded(const struct esi_cursor *cursor)
{
    return cursor->text.size > 0;
}

const struct esi_statement *esi_cursor_as_written(const struct esi_cursor *cursor)
{
    return &cursor->script->steps[cursor->last].statement;
}
