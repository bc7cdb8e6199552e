/*
 * JUnit's XML: see junit.h. Invariant: the counts of a suite are those of the testcases that are
 * written for it, as both ask verdict_of(). Pure.
 */
#include "esi-client/junit.h"

#include <stdio.h>

#include "esi-client/report.h"
#include "esi-client/text.h"
#include "runtime/base/alloc.h"

enum verdict {
    VERDICT_OK,
    VERDICT_FAILURE,
    VERDICT_ERROR,
    VERDICT_SKIPPED,
};

enum rt_code esi_tally_init(struct esi_tally *tally, const struct esi_script *script,
                            struct rt_error *err)
{
    size_t size = (script->n_steps + 1) * sizeof(*tally->steps);
    struct esi_tally_step *steps = rt_alloc(size);

    if (!steps)
        return rt_fail(err, RT_RESOURCE_EXHAUSTED,
                       "%s: no memory for the results of %zu statements", script->name,
                       script->n_statements);
    memset(steps, 0, size);
    *tally = (struct esi_tally){.script = script, .steps = steps};
    return RT_OK;
}

void esi_tally_deinit(struct esi_tally *tally)
{
    tally->steps = rt_free(tally->steps);
}

/* Lines rise with the steps. */
static size_t find_step(const struct esi_script *script, uint32_t line)
{
    size_t low = 0, high = script->n_steps;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (script->steps[middle].statement.line < line)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void esi_tally_add(struct esi_tally *tally, const struct esi_result *result)
{
    struct esi_tally_step *step = &tally->steps[find_step(tally->script, result->statement.line)];

    /* Of a WAITING one the result that follows has all of the time. */
    if (result->outcome == ESI_OUTCOME_WAITING || result->statement.line == 0)
        return;
    step->latency_us += result->latency_us;
    if (result->outcome == ESI_OUTCOME_OK)
        step->n_ok++;
}

static enum verdict verdict_of_end(const struct esi_summary *summary)
{
    switch (summary->state) {
    case ESI_SCRIPT_OK:
        return VERDICT_OK;
    case ESI_SCRIPT_FAILED:
        return VERDICT_FAILURE;
    case ESI_SCRIPT_RUNNING:
    case ESI_SCRIPT_UNKNOWN:
    case ESI_SCRIPT_ABORTED:
    case ESI_SCRIPT_SESSION_LOST:
        return VERDICT_ERROR;
    }
    return VERDICT_ERROR;
}

static enum verdict verdict_of(const struct esi_tally *tally, size_t step,
                               const struct esi_summary *summary)
{
    if (tally->script->steps[step].statement.line == summary->line)
        return verdict_of_end(summary);
    return tally->steps[step].n_ok > 0 ? VERDICT_OK : VERDICT_SKIPPED;
}

/* It ended, and no statement of it is to blame. */
static bool ended_between(const struct esi_summary *summary)
{
    return summary->line == 0 && summary->state != ESI_SCRIPT_OK;
}

static void count(struct esi_junit_counts *counts, enum verdict verdict)
{
    counts->n_tests++;
    counts->n_failures += verdict == VERDICT_FAILURE;
    counts->n_errors += verdict == VERDICT_ERROR;
    counts->n_skipped += verdict == VERDICT_SKIPPED;
}

struct esi_junit_counts esi_junit_count(const struct esi_tally *tally,
                                        const struct esi_summary *summary)
{
    struct esi_junit_counts counts = {0};

    for (size_t i = 0; i < tally->script->n_steps; i++)
        if (tally->script->steps[i].kind == ESI_STEP_STATEMENT)
            count(&counts, verdict_of(tally, i, summary));
    if (ended_between(summary))
        count(&counts, verdict_of_end(summary));
    return counts;
}

/* ---- XML ------------------------------------------------------------------------------------- */

static void append_attribute(struct rt_buffer *buffer, const char *name, struct rt_bytes value)
{
    rt_buffer_printf(buffer, " %s=\"", name);
    esi_text_append_xml(buffer, value);
    rt_buffer_append_byte(buffer, '"');
}

static void append_text_attribute(struct rt_buffer *buffer, const char *name, const char *value)
{
    append_attribute(buffer, name, rt_bytes_of_string(value));
}

static void append_time(struct rt_buffer *buffer, uint64_t us)
{
    rt_buffer_printf(buffer, " time=\"%llu.%06llu\"", (unsigned long long)us / 1000000,
                     (unsigned long long)us % 1000000);
}

static void append_counts(struct rt_buffer *buffer, const struct esi_junit_counts *counts)
{
    rt_buffer_printf(buffer, " tests=\"%llu\" failures=\"%llu\" errors=\"%llu\" skipped=\"%llu\"",
                     (unsigned long long)counts->n_tests, (unsigned long long)counts->n_failures,
                     (unsigned long long)counts->n_errors, (unsigned long long)counts->n_skipped);
}

void esi_junit_begin(const struct esi_junit_counts *counts, uint64_t duration_us,
                     struct rt_buffer *buffer)
{
    rt_buffer_append_string(buffer, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                                    "<testsuites name=\"redistinto-esi\"");
    append_counts(buffer, counts);
    append_time(buffer, duration_us);
    rt_buffer_append_string(buffer, ">\n");
}

void esi_junit_end(struct rt_buffer *buffer)
{
    rt_buffer_append_string(buffer, "</testsuites>\n");
}

/* "CODE REASON", or what else ended it. */
static void append_type(struct rt_buffer *buffer, const struct esi_summary *summary)
{
    char type[128];

    if (summary->lock_lost)
        (void)snprintf(type, sizeof(type), "LOCK_LOST");
    else if (summary->code == RT_OK)
        (void)snprintf(type, sizeof(type), "%s", esi_script_state_name(summary->state));
    else if (summary->error.reason == MODEL_REASON_NONE)
        (void)snprintf(type, sizeof(type), "%s", rt_code_name(summary->code));
    else
        (void)snprintf(type, sizeof(type), "%s %s", rt_code_name(summary->code),
                       model_reason_name(summary->error.reason));
    append_text_attribute(buffer, "type", type);
}

static void append_end(struct rt_buffer *buffer, enum verdict verdict,
                       const struct esi_summary *summary)
{
    const char *element = verdict == VERDICT_FAILURE ? "failure" : "error";
    struct rt_buffer text = {0};

    if (summary->lock_lost)
        rt_buffer_append_string(&text, "stored, but its lock had been lost");
    else if (summary->code == RT_OK)
        rt_buffer_append_string(&text, "the script was stopped");
    else
        rt_buffer_append_string(&text, summary->error.message);
    if (summary->round > 0)
        rt_buffer_printf(&text, " (round %llu)", (unsigned long long)summary->round);
    rt_buffer_printf(buffer, "      <%s", element);
    append_type(buffer, summary);
    append_attribute(buffer, "message", rt_buffer_bytes(&text));
    rt_buffer_append_string(buffer, "/>\n");
    rt_buffer_deinit(&text);
}

static void append_case(struct rt_buffer *buffer, const char *suite, struct rt_bytes name,
                        const struct esi_tally_step *step, enum verdict verdict,
                        const struct esi_summary *summary)
{
    rt_buffer_append_string(buffer, "    <testcase");
    append_attribute(buffer, "name", name);
    append_text_attribute(buffer, "classname", suite);
    append_time(buffer, step->latency_us);
    switch (verdict) {
    case VERDICT_OK:
        rt_buffer_append_string(buffer, "/>\n");
        return;
    case VERDICT_SKIPPED:
        rt_buffer_append_string(buffer, ">\n      <skipped/>\n");
        break;
    case VERDICT_FAILURE:
    case VERDICT_ERROR:
        rt_buffer_append_string(buffer, ">\n");
        append_end(buffer, verdict, summary);
        break;
    }
    rt_buffer_append_string(buffer, "    </testcase>\n");
}

static void append_step(struct rt_buffer *buffer, const struct esi_tally *tally, size_t i,
                        const struct esi_summary *summary)
{
    const struct esi_statement *statement = &tally->script->steps[i].statement;
    struct rt_buffer name = {0};

    rt_buffer_printf(&name, "%u: ", (unsigned int)statement->line);
    esi_report_statement(statement, &name);
    append_case(buffer, tally->script->name, rt_buffer_bytes(&name), &tally->steps[i],
                verdict_of(tally, i, summary), summary);
    rt_buffer_deinit(&name);
}

void esi_junit_suite(const struct esi_tally *tally, const struct esi_summary *summary,
                     uint64_t seed, struct rt_buffer *buffer)
{
    const struct esi_script *script = tally->script;
    struct esi_junit_counts counts = esi_junit_count(tally, summary);

    rt_buffer_append_string(buffer, "  <testsuite");
    append_text_attribute(buffer, "name", script->name);
    append_counts(buffer, &counts);
    append_time(buffer, summary->duration_us);
    rt_buffer_printf(buffer,
                     ">\n    <properties>\n      <property name=\"seed\" value=\"%llu\"/>\n"
                     "      <property name=\"state\" value=\"%s\"/>\n    </properties>\n",
                     (unsigned long long)seed, esi_script_state_name(summary->state));
    for (size_t i = 0; i < script->n_steps; i++)
        if (script->steps[i].kind == ESI_STEP_STATEMENT)
            append_step(buffer, tally, i, summary);
    if (ended_between(summary))
        append_case(buffer, script->name, rt_bytes_of_string("session"),
                    &(struct esi_tally_step){0}, verdict_of_end(summary), summary);
    rt_buffer_append_string(buffer, "  </testsuite>\n");
}
