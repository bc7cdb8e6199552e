/*
 * Reasons: see reason.h. Pure, one constant table.
 */
#include "runtime/model/reason.h"

struct reason_row {
    const char *name;
    enum rt_code code;
    enum model_applied applied;
    const char *meaning;
};

static const struct reason_row rows[] = {
#define REASON_ROW(name, code, applied, meaning) {#name, code, MODEL_APPLIED_##applied, meaning},
    MODEL_REASONS(REASON_ROW)
#undef REASON_ROW
};

static const struct reason_row *row_of(enum model_reason reason)
{
    return &rows[(size_t)reason < RT_ARRAY_SIZE(rows) ? reason : MODEL_REASON_NONE];
}

const char *model_reason_name(enum model_reason reason)
{
    return row_of(reason)->name;
}

enum rt_code model_reason_code(enum model_reason reason)
{
    return row_of(reason)->code;
}

enum model_applied model_reason_applied(enum model_reason reason)
{
    return row_of(reason)->applied;
}

const char *model_reason_meaning(enum model_reason reason)
{
    return row_of(reason)->meaning;
}

enum model_reason model_reason_parse(struct rt_bytes name)
{
    for (size_t i = 0; i < RT_ARRAY_SIZE(rows); i++)
        if (rt_bytes_equal(name, rt_bytes_of_string(rows[i].name)))
            return (enum model_reason)i;
    return MODEL_REASON_NONE;
}
