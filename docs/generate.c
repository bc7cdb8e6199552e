/*
 * Prints the reference pages that come from the code's own tables: reasons and limits, as Markdown.
 */
#include <stdio.h>
#include <string.h>

#include "runtime/model/limits.h"
#include "runtime/model/reason.h"

static void print_reasons(void)
{
    (void)puts("# Reasons\n\n| reason | code | applied | meaning |\n|---|---|---|---|");
    for (int i = MODEL_REASON_NONE + 1; i < MODEL_N_REASONS; i++) {
        enum model_reason reason = (enum model_reason)i;

        (void)printf("| %s | %s | %s | %s |\n", model_reason_name(reason),
                     rt_code_name(model_reason_code(reason)),
                     model_reason_applied(reason) == MODEL_APPLIED_NO ? "NO" : "MAYBE",
                     model_reason_meaning(reason));
    }
}

static void print_limits(void)
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

    (void)puts("# Limits\n\n| what | at most |\n|---|---|");
    for (size_t i = 0; i < RT_ARRAY_SIZE(limits); i++)
        (void)printf("| %s | %u %s |\n", limits[i].what, limits[i].value, limits[i].unit);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "reasons") == 0)
        print_reasons();
    else if (argc == 2 && strcmp(argv[1], "limits") == 0)
        print_limits();
    else
        return 2;
    return 0;
}
