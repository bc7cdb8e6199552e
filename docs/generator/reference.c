/*
 * Reference pages: see reference.h. One thread.
 */
#include "docs/generator/reference.h"

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
