/*
 * Reports: see report.h. Invariant: one call, one line. Pure.
 */
#include "esi-client/report.h"

#include "esi-client/text.h"
#include "runtime/base/json.h"

/* The owner's answers to writes say that there is a value, without it. */
static bool answers_value(const struct esi_result *result)
{
    return result->statement.target == ESI_TARGET_COORDINATOR && result->response.data.has_value &&
           (result->statement.kind == MODEL_STATEMENT_GET ||
            result->statement.kind == MODEL_STATEMENT_READ);
}

const char *esi_report_outcome_name(enum esi_outcome outcome)
{
    static const char *const names[] = {
        [ESI_OUTCOME_OK] = "ok",
        [ESI_OUTCOME_WAITING] = "waiting",
        [ESI_OUTCOME_FAILED] = "failed",
        [ESI_OUTCOME_UNKNOWN] = "unknown",
    };

    return (size_t)outcome < RT_ARRAY_SIZE(names) ? names[outcome] : "?";
}

/* "" where no structured reason was given. */
static const char *reason_text(enum rt_code code, const struct model_error *error)
{
    return code == RT_OK || error->reason == MODEL_REASON_NONE ? ""
                                                               : model_reason_name(error->reason);
}

static void append_failure(struct rt_buffer *buffer, enum rt_code code,
                           const struct model_error *error)
{
    const char *reason = reason_text(code, error);

    rt_buffer_printf(buffer, " %s", rt_code_name(code));
    if (reason[0] != '\0')
        rt_buffer_printf(buffer, " %s", reason);
    if (error->message[0] == '\0')
        return;
    rt_buffer_append_string(buffer, ": ");
    (void)esi_text_append(buffer, rt_bytes_of_string(error->message));
}

static void append_answer(struct rt_buffer *buffer, const struct esi_result *result)
{
    const struct model_execute_response *response = &result->response;

    if (result->outcome == ESI_OUTCOME_WAITING) {
        rt_buffer_printf(buffer, " for %s", response->holder[0] ? response->holder : "the lock");
        return;
    }
    if (answers_value(result)) {
        rt_buffer_append_byte(buffer, ' ');
        esi_text_append_quoted(buffer, response->data.value, ESI_REPORT_VALUE_MAX);
    }
    if (response->instance[0] != '\0')
        rt_buffer_printf(buffer, " instance=%s epoch=%llu", response->instance,
                         (unsigned long long)response->epoch);
    if (response->data.sets_lost)
        rt_buffer_append_string(buffer, " sets_lost");
    if (response->lock_lost)
        rt_buffer_append_string(buffer, " lock_lost");
}

static void append_duration(struct rt_buffer *buffer, uint64_t us)
{
    rt_buffer_printf(buffer, " %llu.%03u ms", (unsigned long long)(us / 1000),
                     (unsigned int)(us % 1000));
}

void esi_report_statement(const struct esi_statement *statement, struct rt_buffer *buffer)
{
    rt_buffer_printf(buffer, "%s ", esi_statement_name(statement));
    switch (statement->target) {
    case ESI_TARGET_COORDINATOR:
        (void)esi_text_append(buffer, statement->key);
        if (statement->kind != MODEL_STATEMENT_SET && statement->kind != MODEL_STATEMENT_PUT)
            return;
        rt_buffer_append_byte(buffer, ' ');
        esi_text_append_quoted(buffer, statement->value, ESI_REPORT_VALUE_MAX);
        return;
    case ESI_TARGET_EXPECT:
        esi_text_append_quoted(buffer, statement->value, ESI_REPORT_VALUE_MAX);
        return;
    case ESI_TARGET_SLEEP:
        rt_buffer_printf(buffer, "%llu", (unsigned long long)statement->sleep_ms);
        return;
    }
}

void esi_report_text(const char *script, const struct esi_result *result, struct rt_buffer *buffer)
{
    const struct esi_statement *statement = &result->statement;

    (void)esi_text_append(buffer, rt_bytes_of_string(script));
    rt_buffer_printf(buffer, ":%u: ", (unsigned int)statement->line);
    esi_report_statement(statement, buffer);
    rt_buffer_printf(buffer, " %s", esi_report_outcome_name(result->outcome));
    if (result->code != RT_OK)
        append_failure(buffer, result->code, &result->error);
    else if (statement->target == ESI_TARGET_COORDINATOR)
        append_answer(buffer, result);
    if (statement->round > 0)
        rt_buffer_printf(buffer, " round=%llu", (unsigned long long)statement->round);
    if (result->attempts > 1)
        rt_buffer_printf(buffer, " attempts=%u", (unsigned int)result->attempts);
    append_duration(buffer, result->latency_us);
    rt_buffer_append_byte(buffer, '\n');
}

static void add_answer(struct rt_json *json, const struct esi_result *result)
{
    const struct model_execute_response *response = &result->response;

    if (result->outcome == ESI_OUTCOME_WAITING) {
        rt_json_string(json, "holder", response->holder);
        return;
    }
    if (answers_value(result))
        rt_json_bytes(json, "value", response->data.value);
    if (result->statement.kind == MODEL_STATEMENT_GET)
        rt_json_u64(json, "lock_token", response->lock_token);
    if (response->data.sets_lost)
        rt_json_bool(json, "sets_lost", true);
    if (response->lock_lost)
        rt_json_bool(json, "lock_lost", true);
}

void esi_report_json(const char *script, const struct esi_result *result, struct rt_buffer *buffer)
{
    const struct esi_statement *statement = &result->statement;
    bool answered = result->code == RT_OK;
    struct rt_json json;

    rt_json_init(&json, buffer);
    rt_json_object_begin(&json, NULL);
    rt_json_string(&json, "script", script);
    rt_json_u64(&json, "line", statement->line);
    rt_json_string(&json, "statement", esi_statement_name(statement));
    rt_json_bytes(&json, "key", statement->key);
    rt_json_string(&json, "outcome", esi_report_outcome_name(result->outcome));
    rt_json_string(&json, "code", rt_code_name(result->code));
    rt_json_string(&json, "reason", reason_text(result->code, &result->error));
    rt_json_string(&json, "instance", answered ? result->response.instance : "");
    rt_json_u64(&json, "epoch", answered ? result->response.epoch : result->error.current_epoch);
    rt_json_u64(&json, "latency_us", result->latency_us);
    rt_json_u64(&json, "attempts", result->attempts);
    if (statement->round > 0)
        rt_json_u64(&json, "round", statement->round);
    if (statement->target == ESI_TARGET_SLEEP)
        rt_json_u64(&json, "sleep_ms", statement->sleep_ms);
    if (statement->target == ESI_TARGET_EXPECT)
        rt_json_bytes(&json, "expected", statement->value);
    if (answered && statement->target == ESI_TARGET_COORDINATOR)
        add_answer(&json, result);
    else if (!answered)
        rt_json_string(&json, "message", result->error.message);
    rt_json_object_end(&json);
    rt_buffer_append_byte(buffer, '\n');
}

void esi_report_summary_text(const char *script, const struct esi_summary *summary,
                             const uint64_t *seed, struct rt_buffer *buffer)
{
    (void)esi_text_append(buffer, rt_bytes_of_string(script));
    rt_buffer_printf(buffer, ": %s, %llu of %llu statements",
                     summary->state == ESI_SCRIPT_SESSION_LOST
                         ? "session lost"
                         : esi_script_state_name(summary->state),
                     (unsigned long long)summary->n_ok, (unsigned long long)summary->n_statements);
    if (summary->n_waits > 0)
        rt_buffer_printf(buffer, ", waits=%llu", (unsigned long long)summary->n_waits);
    if (summary->n_sets_lost > 0)
        rt_buffer_printf(buffer, ", sets_lost=%llu", (unsigned long long)summary->n_sets_lost);
    if (seed)
        rt_buffer_printf(buffer, ", seed=%llu", (unsigned long long)*seed);
    append_duration(buffer, summary->duration_us);
    if (summary->line > 0)
        rt_buffer_printf(buffer, "; ended at line %u", (unsigned int)summary->line);
    if (summary->line > 0 && summary->round > 0)
        rt_buffer_printf(buffer, " in round %llu", (unsigned long long)summary->round);
    if (summary->lock_lost)
        rt_buffer_append_string(buffer, ", stored, but its lock had been lost");
    if (summary->code != RT_OK) {
        rt_buffer_append_byte(buffer, ';');
        append_failure(buffer, summary->code, &summary->error);
    }
    rt_buffer_append_byte(buffer, '\n');
}

void esi_report_run(const struct esi_report_script *scripts, size_t n_scripts, uint64_t seed,
                    struct rt_buffer *buffer)
{
    struct rt_json json;

    rt_json_init(&json, buffer);
    rt_json_object_begin(&json, NULL);
    rt_json_array_begin(&json, "scripts");
    for (size_t i = 0; i < n_scripts; i++) {
        const struct esi_summary *summary = scripts[i].summary;

        rt_json_object_begin(&json, NULL);
        rt_json_string(&json, "name", scripts[i].name);
        rt_json_string(&json, "state", esi_script_state_name(summary->state));
        rt_json_u64(&json, "statements", summary->n_statements);
        rt_json_u64(&json, "ok", summary->n_ok);
        rt_json_u64(&json, "waits", summary->n_waits);
        rt_json_u64(&json, "sets_lost", summary->n_sets_lost);
        rt_json_u64(&json, "attempts", summary->n_attempts);
        rt_json_u64(&json, "line", summary->line);
        rt_json_u64(&json, "round", summary->round);
        rt_json_string(&json, "code", rt_code_name(summary->code));
        rt_json_string(&json, "reason", reason_text(summary->code, &summary->error));
        rt_json_string(&json, "message", summary->code == RT_OK ? "" : summary->error.message);
        rt_json_bool(&json, "lock_lost", summary->lock_lost);
        rt_json_u64(&json, "duration_us", summary->duration_us);
        rt_json_u64(&json, "seed", seed);
        rt_json_object_end(&json);
    }
    rt_json_array_end(&json);
    rt_json_object_end(&json);
    rt_buffer_append_byte(buffer, '\n');
}

void esi_report_event_text(const char *script, const struct esi_event *event,
                           struct rt_buffer *buffer)
{
    rt_buffer_printf(buffer, "planner %llu: ", (unsigned long long)event->clock);
    (void)esi_text_append(buffer, rt_bytes_of_string(script));
    rt_buffer_printf(buffer, " %s", esi_event_kind_name(event->kind));
    if (event->kind == ESI_EVENT_BLOCKED) {
        rt_buffer_append_string(buffer, " on ");
        (void)esi_text_append(buffer, event->key);
    }
    rt_buffer_printf(buffer, " estimate=%g\n", event->estimate);
}

void esi_report_event_json(const char *script, const struct esi_event *event,
                           struct rt_buffer *buffer)
{
    struct rt_json json;

    rt_json_init(&json, buffer);
    rt_json_object_begin(&json, NULL);
    rt_json_string(&json, "event", esi_event_kind_name(event->kind));
    rt_json_string(&json, "script", script);
    rt_json_u64(&json, "clock", event->clock);
    rt_json_double(&json, "estimate", event->estimate);
    if (event->kind == ESI_EVENT_BLOCKED)
        rt_json_bytes(&json, "key", event->key);
    rt_json_object_end(&json);
    rt_buffer_append_byte(buffer, '\n');
}

enum model_exit esi_report_exit(const struct esi_summary *summary)
{
    if (summary->state == ESI_SCRIPT_OK)
        return MODEL_EXIT_OK;
    if (summary->state == ESI_SCRIPT_ABORTED)
        return MODEL_EXIT_INTERRUPTED;
    if (model_exit_of(summary->code, MODEL_REASON_NONE) == MODEL_EXIT_AUTHENTICATION)
        return MODEL_EXIT_AUTHENTICATION;
    if (summary->state == ESI_SCRIPT_SESSION_LOST && !summary->opened)
        return MODEL_EXIT_UNAVAILABLE;
    return MODEL_EXIT_FAILED;
}

static int weight(enum model_exit code)
{
    static const enum model_exit rising[] = {MODEL_EXIT_OK,          MODEL_EXIT_FAILED,
                                             MODEL_EXIT_UNAVAILABLE, MODEL_EXIT_AUTHENTICATION,
                                             MODEL_EXIT_USAGE,       MODEL_EXIT_INTERRUPTED};

    for (size_t i = 0; i < RT_ARRAY_SIZE(rising); i++)
        if (rising[i] == code)
            return (int)i;
    return 1;
}

enum model_exit esi_report_exit_worse(enum model_exit a, enum model_exit b)
{
    return weight(b) > weight(a) ? b : a;
}
