/*
 * Reports: exact lines, one line each whatever they contain, exit codes.
 */
#include "esi-client/report.h"

#include <jansson.h>

#include "runtime/base/alloc.h"
#include "tests/support/check.h"

TestSuite(report, .fini = test_alloc_expect_none);

static struct esi_result result_of(enum model_statement_kind kind, const char *key,
                                   const char *value)
{
    return (struct esi_result){.statement = {.kind = kind,
                                             .key = rt_bytes_of_string(key),
                                             .value = rt_bytes_of_string(value),
                                             .line = 3},
                               .latency_us = 1234,
                               .attempts = 1};
}

static struct esi_result failed(enum esi_outcome outcome, enum model_reason reason)
{
    struct esi_result result = result_of(MODEL_STATEMENT_SET, "k", "v");
    struct model_response response;

    model_response_fail(&response, reason, "held by\n'other'");
    result.outcome = outcome;
    result.code = response.code;
    result.error = response.error;
    return result;
}

static void expect_text(const struct esi_result *result, const char *expected)
{
    struct rt_buffer buffer = {0};

    esi_report_text("a.esi", result, &buffer);
    cr_assert_str_eq(rt_buffer_string(&buffer), expected);
    rt_buffer_deinit(&buffer);
}

/* Parses back what was written; the caller drops the reference. */
static json_t *json_of(const struct esi_result *result)
{
    struct rt_buffer buffer = {0};
    json_t *parsed;
    const char *text;

    esi_report_json("a.esi", result, &buffer);
    text = rt_buffer_string(&buffer);
    cr_assert_eq(strchr(text, '\n'), text + strlen(text) - 1, "one line");
    parsed = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    cr_assert_not_null(parsed, "%s", text);
    rt_buffer_deinit(&buffer);
    return parsed;
}

static const char *string_of(json_t *object, const char *name)
{
    json_t *member = json_object_get(object, name);

    cr_assert(json_is_string(member), "%s", name);
    return json_string_value(member);
}

static json_int_t number_of(json_t *object, const char *name)
{
    json_t *member = json_object_get(object, name);

    cr_assert(json_is_integer(member), "%s", name);
    return json_integer_value(member);
}

Test(report, text_of_success)
{
    struct esi_result result = result_of(MODEL_STATEMENT_SET, "k", "a b");

    memcpy(result.response.instance, "i1", 3);
    result.response.epoch = 5;
    expect_text(&result, "a.esi:3: SET k \"a b\" ok instance=i1 epoch=5 1.234 ms\n");

    result = result_of(MODEL_STATEMENT_GET, "k", "");
    result.response.lock_token = 9;
    expect_text(&result, "a.esi:3: GET k ok 1.234 ms\n");

    result.response.data.has_value = true;
    result.response.data.value = RT_BYTES_LITERAL("two\nlines");
    result.response.data.sets_lost = true;
    result.attempts = 2;
    expect_text(&result, "a.esi:3: GET k ok \"two\\nlines\" sets_lost attempts=2 1.234 ms\n");

    result = result_of(MODEL_STATEMENT_STORE, "k", "");
    result.response.lock_lost = true;
    result.response.data.has_value = true;
    result.latency_us = 7;
    expect_text(&result, "a.esi:3: STORE k ok lock_lost 0.007 ms\n");
}

Test(report, text_shows_a_cut_value)
{
    struct esi_result result = result_of(MODEL_STATEMENT_GET, "k", "");
    uint8_t value[ESI_REPORT_VALUE_MAX + 1];
    struct rt_buffer buffer = {0};

    memset(value, 'v', sizeof(value));
    result.response.data.has_value = true;
    result.response.data.value = rt_bytes_of(value, ESI_REPORT_VALUE_MAX);
    esi_report_text("a", &result, &buffer);
    cr_assert_null(strstr(rt_buffer_string(&buffer), "…"));
    rt_buffer_reset(&buffer);
    result.response.data.value.size++;
    esi_report_text("a", &result, &buffer);
    cr_assert_not_null(strstr(rt_buffer_string(&buffer), "v\"…"));
    rt_buffer_deinit(&buffer);
}

Test(report, text_of_waiting)
{
    struct esi_result result = result_of(MODEL_STATEMENT_GET, "k", "");

    result.outcome = ESI_OUTCOME_WAITING;
    expect_text(&result, "a.esi:3: GET k waiting for the lock 1.234 ms\n");
    memcpy(result.response.holder, "other", 6);
    expect_text(&result, "a.esi:3: GET k waiting for other 1.234 ms\n");
}

Test(report, text_of_failure_stays_one_line)
{
    struct esi_result result = failed(ESI_OUTCOME_FAILED, MODEL_REASON_KEY_NOT_LOCKED);

    expect_text(&result, "a.esi:3: SET k \"v\" failed FAILED_PRECONDITION KEY_NOT_LOCKED: "
                         "held by\\n'other' 1.234 ms\n");
    result = failed(ESI_OUTCOME_UNKNOWN, MODEL_REASON_NONE);
    result.code = RT_UNAVAILABLE;
    result.error.message[0] = '\0';
    expect_text(&result, "a.esi:3: SET k \"v\" unknown UNAVAILABLE 1.234 ms\n");
}

Test(report, json_has_every_field)
{
    struct esi_result result = result_of(MODEL_STATEMENT_GET, "k", "");
    json_t *json;

    memcpy(result.response.instance, "i1", 3);
    result.response.epoch = 5;
    result.response.lock_token = 9;
    result.response.data.has_value = true;
    result.response.data.value = RT_BYTES_LITERAL("value");
    json = json_of(&result);
    cr_assert_str_eq(string_of(json, "script"), "a.esi");
    cr_assert_eq(number_of(json, "line"), 3);
    cr_assert_str_eq(string_of(json, "statement"), "GET");
    cr_assert_str_eq(string_of(json, "key"), "k");
    cr_assert_str_eq(string_of(json, "outcome"), "ok");
    cr_assert_str_eq(string_of(json, "code"), "OK");
    cr_assert_str_eq(string_of(json, "reason"), "");
    cr_assert_str_eq(string_of(json, "instance"), "i1");
    cr_assert_eq(number_of(json, "epoch"), 5);
    cr_assert_eq(number_of(json, "latency_us"), 1234);
    cr_assert_eq(number_of(json, "attempts"), 1);
    cr_assert_str_eq(string_of(json, "value"), "value");
    cr_assert_eq(number_of(json, "lock_token"), 9);
    cr_assert_eq(json_object_size(json), 13);
    json_decref(json);
}

Test(report, json_of_other_outcomes)
{
    struct esi_result result = failed(ESI_OUTCOME_FAILED, MODEL_REASON_STALE_EPOCH);
    json_t *json;

    result.error.current_epoch = 77;
    json = json_of(&result);
    cr_assert_str_eq(string_of(json, "outcome"), "failed");
    cr_assert_str_eq(string_of(json, "code"), "FAILED_PRECONDITION");
    cr_assert_str_eq(string_of(json, "reason"), "STALE_EPOCH");
    cr_assert_str_eq(string_of(json, "message"), "held by\n'other'");
    cr_assert_str_eq(string_of(json, "instance"), "");
    cr_assert_eq(number_of(json, "epoch"), 77);
    json_decref(json);

    result = failed(ESI_OUTCOME_UNKNOWN, MODEL_REASON_NONE);
    json = json_of(&result);
    cr_assert_str_eq(string_of(json, "outcome"), "unknown");
    cr_assert_str_eq(string_of(json, "reason"), "");
    json_decref(json);

    result = result_of(MODEL_STATEMENT_GET, "k", "");
    result.outcome = ESI_OUTCOME_WAITING;
    memcpy(result.response.holder, "other", 6);
    json = json_of(&result);
    cr_assert_str_eq(string_of(json, "outcome"), "waiting");
    cr_assert_str_eq(string_of(json, "holder"), "other");
    cr_assert_null(json_object_get(json, "lock_token"));
    json_decref(json);

    result = result_of(MODEL_STATEMENT_STORE, "k", "");
    result.response.lock_lost = true;
    result.response.data.sets_lost = true;
    json = json_of(&result);
    cr_assert(json_is_true(json_object_get(json, "lock_lost")));
    cr_assert(json_is_true(json_object_get(json, "sets_lost")));
    json_decref(json);
}

Test(report, json_keeps_the_key_as_given)
{
    struct esi_result result = result_of(MODEL_STATEMENT_GET, "\xff\"\n", "");
    json_t *json = json_of(&result);

    cr_assert_str_eq(json_string_value(json_object_get(json_object_get(json, "key"), "base64")),
                     "/yIK");
    json_decref(json);
}

Test(report, text_and_json_of_extensions)
{
    struct esi_result result = result_of(MODEL_STATEMENT_DELETE, "k", "");
    struct model_response response;
    json_t *json;

    result.statement.round = 12;
    expect_text(&result, "a.esi:3: DEL k ok round=12 1.234 ms\n");
    json = json_of(&result);
    cr_assert_str_eq(json_string_value(json_object_get(json, "statement")), "DEL");
    cr_assert_eq(json_integer_value(json_object_get(json, "round")), 12);
    json_decref(json);

    result = result_of(MODEL_STATEMENT_GET, "", "");
    result.statement.target = ESI_TARGET_SLEEP;
    result.statement.sleep_ms = 250;
    expect_text(&result, "a.esi:3: SLEEP 250 ok 1.234 ms\n");
    json = json_of(&result);
    cr_assert_str_eq(json_string_value(json_object_get(json, "statement")), "SLEEP");
    cr_assert_eq(json_integer_value(json_object_get(json, "sleep_ms")), 250);
    cr_assert_null(json_object_get(json, "lock_token"));
    cr_assert_null(json_object_get(json, "round"));
    json_decref(json);

    result = result_of(MODEL_STATEMENT_GET, "", "a \n");
    result.statement.target = ESI_TARGET_EXPECT;
    result.outcome = ESI_OUTCOME_FAILED;
    model_response_fail(&response, MODEL_REASON_EXPECTATION_FAILED, "expected another");
    result.code = response.code;
    result.error = response.error;
    expect_text(&result, "a.esi:3: EXPECT \"a \\n\" failed FAILED_PRECONDITION "
                         "EXPECTATION_FAILED: expected another 1.234 ms\n");
    json = json_of(&result);
    cr_assert_str_eq(json_string_value(json_object_get(json, "expected")), "a \n");
    cr_assert_str_eq(json_string_value(json_object_get(json, "reason")), "EXPECTATION_FAILED");
    json_decref(json);
}

static void expect_summary(const struct esi_summary *summary, const char *expected)
{
    struct rt_buffer buffer = {0};

    esi_report_summary_text("a.esi", summary, NULL, &buffer);
    cr_assert_str_eq(rt_buffer_string(&buffer), expected);
    rt_buffer_deinit(&buffer);
}

Test(report, summaries)
{
    struct esi_summary summary = {
        .state = ESI_SCRIPT_OK, .n_statements = 3, .n_ok = 3, .duration_us = 2500};
    struct model_response response;

    expect_summary(&summary, "a.esi: ok, 3 of 3 statements 2.500 ms\n");
    summary.n_waits = 2;
    summary.n_sets_lost = 1;
    summary.lock_lost = true;
    summary.line = 3;
    summary.state = ESI_SCRIPT_FAILED;
    expect_summary(&summary, "a.esi: failed, 3 of 3 statements, waits=2, sets_lost=1 2.500 ms; "
                             "ended at line 3, stored, but its lock had been lost\n");
    model_response_fail(&response, MODEL_REASON_SESSION_UNKNOWN, "gone");
    summary = (struct esi_summary){.state = ESI_SCRIPT_SESSION_LOST,
                                   .n_statements = 3,
                                   .n_ok = 1,
                                   .line = 2,
                                   .code = response.code,
                                   .error = response.error};
    expect_summary(&summary, "a.esi: session lost, 1 of 3 statements 0.000 ms; ended at line 2; "
                             "FAILED_PRECONDITION SESSION_UNKNOWN: gone\n");
}

Test(report, a_summary_with_seed_and_round)
{
    struct esi_summary summary = {
        .state = ESI_SCRIPT_ABORTED, .n_statements = 100000000, .n_ok = 5, .line = 2, .round = 6};
    struct rt_buffer buffer = {0};
    uint64_t seed = 77;

    esi_report_summary_text("a.esi", &summary, &seed, &buffer);
    cr_assert_str_eq(rt_buffer_string(&buffer),
                     "a.esi: aborted, 5 of 100000000 statements, seed=77 0.000 ms; ended at line 2 "
                     "in round 6\n");
    rt_buffer_deinit(&buffer);
}

Test(report, the_report_of_a_run)
{
    struct model_response response;
    struct esi_summary ok = {.state = ESI_SCRIPT_OK,
                             .n_statements = 3,
                             .n_ok = 3,
                             .n_waits = 1,
                             .n_sets_lost = 2,
                             .n_attempts = 4,
                             .duration_us = 2500};
    struct esi_summary failed = {
        .state = ESI_SCRIPT_FAILED, .n_statements = 9, .line = 4, .round = 2};
    struct esi_report_script scripts[] = {{"a.esi", &ok}, {"b\"\xff", &failed}};
    struct rt_buffer buffer = {0};

    model_response_fail(&response, MODEL_REASON_KEY_NOT_LOCKED, "not locked");
    failed.code = response.code;
    failed.error = response.error;
    esi_report_run(scripts, 2, 77, &buffer);
    cr_assert_str_eq(
        rt_buffer_string(&buffer),
        "{\"scripts\":[{\"name\":\"a.esi\",\"state\":\"ok\",\"statements\":3,\"ok\":3,\"waits\":1,"
        "\"sets_lost\":2,\"attempts\":4,\"line\":0,\"round\":0,\"code\":\"OK\",\"reason\":\"\","
        "\"message\":\"\",\"lock_lost\":false,\"duration_us\":2500,\"seed\":77},"
        "{\"name\":\"b\\\"\xef\xbf\xbd\",\"state\":\"failed\",\"statements\":9,\"ok\":0,\"waits\":"
        "0,"
        "\"sets_lost\":0,\"attempts\":0,\"line\":4,\"round\":2,\"code\":\"FAILED_PRECONDITION\","
        "\"reason\":\"KEY_NOT_LOCKED\",\"message\":\"not locked\",\"lock_lost\":false,"
        "\"duration_us\":0,\"seed\":77}]}\n");
    rt_buffer_deinit(&buffer);
}

Test(report, exit_codes)
{
    struct esi_summary summary = {.state = ESI_SCRIPT_OK};

    cr_assert_eq(esi_report_exit(&summary), MODEL_EXIT_OK);
    summary.state = ESI_SCRIPT_FAILED;
    summary.code = RT_NOT_FOUND;
    cr_assert_eq(esi_report_exit(&summary), MODEL_EXIT_FAILED);
    summary.state = ESI_SCRIPT_UNKNOWN;
    cr_assert_eq(esi_report_exit(&summary), MODEL_EXIT_FAILED);
    summary.state = ESI_SCRIPT_SESSION_LOST;
    summary.code = RT_UNAVAILABLE;
    cr_assert_eq(esi_report_exit(&summary), MODEL_EXIT_UNAVAILABLE);
    summary.opened = true;
    cr_assert_eq(esi_report_exit(&summary), MODEL_EXIT_FAILED);
    summary.code = RT_UNAUTHENTICATED;
    cr_assert_eq(esi_report_exit(&summary), MODEL_EXIT_AUTHENTICATION);
    summary.opened = false;
    summary.code = RT_PERMISSION_DENIED;
    cr_assert_eq(esi_report_exit(&summary), MODEL_EXIT_AUTHENTICATION);
    summary.state = ESI_SCRIPT_ABORTED;
    cr_assert_eq(esi_report_exit(&summary), MODEL_EXIT_INTERRUPTED);
}

Test(report, the_worse_exit_code_wins)
{
    static const enum model_exit rising[] = {MODEL_EXIT_OK,          MODEL_EXIT_FAILED,
                                             MODEL_EXIT_UNAVAILABLE, MODEL_EXIT_AUTHENTICATION,
                                             MODEL_EXIT_USAGE,       MODEL_EXIT_INTERRUPTED};

    for (size_t i = 0; i < RT_ARRAY_SIZE(rising); i++)
        for (size_t j = 0; j < RT_ARRAY_SIZE(rising); j++)
            cr_assert_eq(esi_report_exit_worse(rising[i], rising[j]), rising[i > j ? i : j]);
    cr_assert_eq(esi_report_exit_worse(MODEL_EXIT_OK, MODEL_EXIT_INTERNAL), MODEL_EXIT_INTERNAL);
}

Test(report, outcome_names)
{
    cr_assert_str_eq(esi_report_outcome_name(ESI_OUTCOME_UNKNOWN), "unknown");
    cr_assert_str_eq(esi_report_outcome_name((enum esi_outcome)99), "?");
}

static const char *event_line(enum esi_event_kind kind, bool is_json)
{
    static struct rt_buffer buffer;
    static char text[256];
    const struct esi_event event = {
        .kind = kind, .id = 1, .clock = 7, .estimate = 2.5, .key = RT_BYTES_LITERAL("a key\n")};

    if (is_json)
        esi_report_event_json("a.esi", &event, &buffer);
    else
        esi_report_event_text("a.esi", &event, &buffer);
    cr_assert_eq(rt_buffer_check(&buffer, NULL), RT_OK);
    (void)snprintf(text, sizeof(text), "%s", rt_buffer_string(&buffer));
    rt_buffer_deinit(&buffer);
    return text;
}

Test(report, events_of_the_planner)
{
    cr_expect_str_eq(event_line(ESI_EVENT_READY, false), "planner 7: a.esi ready estimate=2.5\n");
    cr_expect_str_eq(event_line(ESI_EVENT_BLOCKED, false),
                     "planner 7: a.esi blocked on a key\\n estimate=2.5\n");
    cr_expect_str_eq(event_line(ESI_EVENT_PREEMPTED, true),
                     "{\"event\":\"preempted\",\"script\":\"a.esi\",\"clock\":7,"
                     "\"estimate\":2.5}\n");
    cr_expect_str_eq(event_line(ESI_EVENT_BLOCKED, true),
                     "{\"event\":\"blocked\",\"script\":\"a.esi\",\"clock\":7,"
                     "\"estimate\":2.5,\"key\":\"a key\\n\"}\n");
}
