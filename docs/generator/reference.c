/*
 * Reference pages: see reference.h. One thread.
 */
#include "docs/generator/reference.h"

#include "runtime/model/limits.h"
#include "runtime/model/reason.h"

void docs_reference_append_reasons(struct rt_buffer *page)
{
    rt_buffer_append_string(
        page, "# Reasons\n\n| reason | code | applied | meaning |\n|---|---|---|---|\n");
    for (int i = MODEL_REASON_NONE + 1; i < MODEL_N_REASONS; i++) {
        enum model_reason reason = (enum model_reason)i;

        rt_buffer_printf(page, "| %s | %s | %s | %s |\n", model_reason_name(reason),
                         rt_code_name(model_reason_code(reason)),
                         model_reason_applied(reason) == MODEL_APPLIED_NO ? "NO" : "MAYBE",
                         model_reason_meaning(reason));
    }
}

void docs_reference_append_limits(struct rt_buffer *page)
{
    static const struct {
        const char *what;
        unsigned value;
        const char *unit;
    } limits[] = {
        {"key", MODEL_KEY_MAX, "bytes"},
        {"key, classic profile", MODEL_KEY_MAX_CLASSIC, "bytes"},
        {"value", MODEL_VALUE_MAX, "bytes"},
        {"name of an instance or session", MODEL_NAME_MAX, "bytes"},
        {"address", MODEL_ADDRESS_MAX, "bytes"},
        {"instances that are remembered", MODEL_MEMBERS_MAX, ""},
        {"sessions alive at once", MODEL_SESSIONS_MAX, ""},
        {"sessions waiting for one key", MODEL_WAITERS_MAX, ""},
        {"items of one page of a listing", MODEL_PAGE_MAX, ""},
        {"rows of one Reconcile message", MODEL_RECONCILE_ROWS_MAX, ""},
    };

    rt_buffer_append_string(page, "# Limits\n\n| what | at most |\n|---|---|\n");
    for (size_t i = 0; i < RT_ARRAY_SIZE(limits); i++)
        rt_buffer_printf(page, "| %s | %u %s |\n", limits[i].what, limits[i].value, limits[i].unit);
}
