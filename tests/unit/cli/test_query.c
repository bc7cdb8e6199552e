/*
 * The verbs that look, over a scripted coordinator in a process of its own: pages, failures of each
 * step, sessions that are closed in any case, members that do not serve.
 */
#include "cli/query.h"

#include "cli/admin.h"
#include "cli/data.h"
#include "runtime/base/alloc.h"
#include "tests/support/check.h"
#include "tests/unit/cli/forked_coordinator.h"
#include "tests/unit/cli/streams.h"

/* ---- the coordinator ------------------------------------------------------------------------- */

struct script {
    struct model_effects effects;
    struct model_call *held; /* answered never */
    enum model_distribution distribution;
    unsigned n_sessions; /* open now */
    char own_address[FORKED_COORDINATOR_ADDRESS_SIZE];
    char n_text[16];
};

static bool is_key(struct rt_bytes key, const char *text)
{
    return rt_bytes_equal(key, rt_bytes_of_string(text));
}

/* "fail" fails, "hold" is never answered, "sessions" has the number of open ones as its value. */
static bool answer_status(struct script *script, struct rt_bytes key,
                          struct model_response *response)
{
    struct model_key_status_response *status = &response->key_status;

    if (is_key(key, "hold"))
        return false;
    if (is_key(key, "fail")) {
        model_response_fail(response, MODEL_REASON_READ_ONLY, "no writes");
        return true;
    }
    status->known = true;
    (void)snprintf(status->owner, sizeof(status->owner), "i");
    status->owner_state = MODEL_MEMBER_ALIVE;
    status->epoch = 9;
    status->has_value = true;
    status->version = (struct model_version){9, 8, 7};
    (void)snprintf(script->n_text, sizeof(script->n_text), "%u", script->n_sessions);
    status->value = rt_bytes_of_string(script->n_text);
    return true;
}

/* Two pages of one key each; under the prefix "broken" the second fails. */
static void answer_keys(const struct model_page_request *request, struct model_response *response)
{
    static struct model_key_info keys[] = {
        {RT_BYTES_LITERAL("a"), "i", 9, "me"},
        {RT_BYTES_LITERAL("b"), "", 0, ""},
    };
    bool is_second = is_key(request->after, "a");

    if (is_second && is_key(request->prefix, "broken")) {
        model_response_fail(response, MODEL_REASON_DRAINING, "going");
        return;
    }
    response->list_keys.keys = &keys[is_second];
    response->list_keys.n_keys = 1;
    response->list_keys.more = !is_second;
}

/* Two pages: one that serves, then one that left and a dead one. */
static void answer_instances(struct script *script, const struct model_page_request *request,
                             struct model_response *response)
{
    static struct model_instance_info instances[] = {
        {.name = "i", .state = MODEL_MEMBER_ALIVE, .incarnation = 5},
        {.name = "l", .address = "127.0.0.1:1", .state = MODEL_MEMBER_LEFT, .incarnation = 6},
        {.name = "d", .address = "127.0.0.1:1", .state = MODEL_MEMBER_DEAD, .incarnation = 7},
    };
    bool is_second = is_key(request->after, "i");

    memcpy(instances[0].address, script->own_address, sizeof(script->own_address));
    response->list_instances.instances = &instances[is_second];
    response->list_instances.n_instances = is_second ? 2 : 1;
    response->list_instances.more = !is_second;
}

static void answer_statement(const struct model_execute_request *request,
                             struct model_response *response)
{
    struct model_execute_response *execute = &response->execute;

    if (is_key(request->key, "fail")) {
        model_response_fail(response, MODEL_REASON_OUTCOME_UNKNOWN, "who knows");
        return;
    }
    (void)snprintf(execute->instance, sizeof(execute->instance), "i");
    execute->epoch = 9;
    execute->data.sets_lost = is_key(request->key, "lost");
    execute->data.has_value = !is_key(request->key, "none");
    if (execute->data.has_value) {
        execute->data.version = (struct model_version){9, 8, 7};
        execute->data.value = RT_BYTES_LITERAL("v");
    }
}

static bool answer(struct script *script, struct model_call *call)
{
    struct model_response *response = &call->response;
    const struct model_request *request = &call->request;

    model_response_ok(response, request->kind);
    switch ((int)request->kind) {
    case MODEL_CALL_KEY_STATUS:
        return answer_status(script, request->key_status.key, response);
    case MODEL_CALL_LIST_KEYS:
        answer_keys(&request->page, response);
        break;
    case MODEL_CALL_LIST_INSTANCES:
        answer_instances(script, &request->page, response);
        break;
    case MODEL_CALL_OPEN_SESSION:
        script->n_sessions++;
        response->open_session.session_id.bytes[0] = 1;
        response->open_session.cluster_id.bytes[0] = 2;
        response->open_session.lease_ms = 10000;
        response->open_session.key_max = 255;
        response->open_session.value_max = 1000;
        break;
    case MODEL_CALL_CLOSE_SESSION:
        script->n_sessions--;
        break;
    case MODEL_CALL_SET_DISTRIBUTION:
        script->distribution = request->distribution.distribution;
        response->distribution.distribution = script->distribution;
        break;
    case MODEL_CALL_FREE_LOCK:
        if (is_key(request->key_status.key, "doubt"))
            model_response_fail(response, MODEL_REASON_STORE_ERROR, "on disk or not");
        else if (is_key(request->key_status.key, "held"))
            (void)snprintf(response->free_lock.holder, sizeof(response->free_lock.holder), "esi");
        break;
    case MODEL_CALL_GET_DISTRIBUTION:
        response->distribution.distribution = script->distribution;
        break;
    case MODEL_CALL_EXECUTE:
        answer_statement(&request->execute, response);
        break;
    default:
        model_response_fail(response, MODEL_REASON_INVALID_FIELD, "not expected");
        break;
    }
    return true;
}

static void core_submit(void *core, struct model_call *call)
{
    struct script *script = core;

    if (answer(script, call))
        rt_list_push_back(&script->effects.replies, &call->link);
    else
        script->held = call;
}

static void core_cancel(void *core, struct model_call *call)
{
    struct script *script = core;

    model_response_fail(&call->response, MODEL_REASON_CANCELLED, "gone");
    rt_list_push_back(&script->effects.replies, &call->link);
}

static uint64_t core_next_wakeup_us(const void *core)
{
    (void)core;
    return RT_NEVER;
}

static struct model_effects *core_effects(void *core)
{
    return &((struct script *)core)->effects;
}

static const struct host_core_ops core_ops = {
    .submit = core_submit,
    .cancel = core_cancel,
    .next_wakeup_us = core_next_wakeup_us,
    .effects = core_effects,
};

static struct forked_coordinator coordinator;

static void set_up(void)
{
    static struct script script;

    model_effects_init(&script.effects);
    forked_coordinator_start(&coordinator, &core_ops, &script, script.own_address);
}

static void tear_down(void)
{
    forked_coordinator_end(&coordinator);
    test_alloc_expect_none();
}

TestSuite(query, .init = set_up, .fini = tear_down, .timeout = 20);

/* ---- the verbs ------------------------------------------------------------------------------- */

static enum model_exit ask(struct streams *streams, const struct cli_verb *verb,
                           enum cli_output output, const char *argument, const void *config)
{
    const char *const arguments[] = {argument, NULL};
    RT_CLEANUP(rt_freep) void *defaults = rt_xalloc(verb->config_size);
    enum model_exit result;

    streams_open(streams);
    streams->context.verb = verb->name;
    streams->context.common.coordinator = coordinator.address;
    streams->context.common.output = output;
    streams->context.common.timeout_ms = 10000;
    result = verb->run(&streams->context, arguments, config == NULL ? defaults : config);
    streams_flush(streams);
    return result;
}

static void expect(const struct cli_verb *verb, enum cli_output output, const char *argument,
                   enum model_exit expected, const char *out, const char *err)
{
    struct streams streams;

    cr_assert_eq(ask(&streams, verb, output, argument, NULL), expected);
    cr_assert_str_eq(streams.out, out);
    cr_assert_str_eq(streams.err, err);
    streams_close(&streams);
}

Test(query, status)
{
    struct streams streams;

    cr_assert_eq(ask(&streams, &cli_status_verb, CLI_OUTPUT_JSON, "k", NULL), MODEL_EXIT_OK);
    cr_assert_not_null(
        strstr(streams.out, "\"owner\":\"i\",\"owner_state\":\"alive\",\"epoch\":9"));
    streams_close(&streams);
    expect(&cli_status_verb, CLI_OUTPUT_TEXT, "fail", MODEL_EXIT_UNAVAILABLE, "",
           "redistinto: status: no writes (UNAVAILABLE READ_ONLY)\n");
}

Test(query, status_that_is_not_answered_in_time)
{
    const char *const arguments[] = {"hold", NULL};
    const bool is_escaped = false;
    struct streams streams;

    streams_open(&streams);
    streams.context.common.coordinator = coordinator.address;
    streams.context.common.timeout_ms = 100;
    cr_assert_eq(cli_status_verb.run(&streams.context, arguments, &is_escaped),
                 MODEL_EXIT_UNAVAILABLE);
    streams_flush(&streams);
    cr_assert_not_null(strstr(streams.err, "DEADLINE_EXCEEDED"), "%s", streams.err);
    streams_close(&streams);
}

static void expect_keys(const char *prefix, enum model_exit expected, const char *out,
                        const char *err)
{
    const struct {
        const char *prefix;
        bool is_escaped;
    } config = {prefix, false};
    struct streams streams;

    cr_assert_eq(ask(&streams, &cli_keys_verb, CLI_OUTPUT_TEXT, NULL, &config), expected);
    cr_assert_str_eq(streams.out, out);
    cr_assert_str_eq(streams.err, err);
    streams_close(&streams);
}

Test(query, keys_of_all_pages)
{
    expect_keys(NULL, MODEL_EXIT_OK,
                "KEY  OWNER  EPOCH  LOCKED BY\n"
                "a    i          9  me\n"
                "b    -          -  -\n",
                "");
}

Test(query, keys_are_all_or_none)
{
    expect_keys("broken", MODEL_EXIT_UNAVAILABLE, "",
                "redistinto: keys: going (UNAVAILABLE DRAINING)\n");
}

Test(query, instances_of_all_pages)
{
    struct streams streams;
    const char *first;
    const char *last;

    cr_assert_eq(ask(&streams, &cli_instances_verb, CLI_OUTPUT_JSON, NULL, NULL), MODEL_EXIT_OK);
    first = strstr(streams.out, "{\"name\":\"i\",");
    last = strstr(streams.out, "{\"name\":\"d\",\"address\":\"127.0.0.1:1\",\"state\":\"dead\",");
    cr_assert(first != NULL && last != NULL && first < last, "%s", streams.out);
    streams_close(&streams);
}

Test(query, health_asks_whoever_has_not_left)
{
    struct streams streams;

    cr_assert_eq(ask(&streams, &cli_health_verb, CLI_OUTPUT_JSON, NULL, NULL),
                 MODEL_EXIT_UNAVAILABLE);
    cr_assert_not_null(strstr(streams.out, "\"state\":\"alive\",\"serving\":true,"
                                           "\"message\":null"));
    cr_assert_not_null(strstr(streams.out, "\"state\":\"left\",\"serving\":false,"
                                           "\"message\":null"));
    cr_assert_not_null(strstr(streams.out, "\"state\":\"dead\",\"serving\":false,\"message\":\""));
    cr_assert_not_null(strstr(streams.out, "],\"serving\":false}\n"));
    streams_close(&streams);
}

Test(query, distribution)
{
    expect(&cli_distribution_verb, CLI_OUTPUT_TEXT, NULL, MODEL_EXIT_OK, "equitable-load\n", "");
    expect(&cli_distribution_verb, CLI_OUTPUT_JSON, "key-explicit", MODEL_EXIT_OK,
           "{\"distribution\":\"key-explicit\",\"configured\":\"equitable-load\"}\n", "");
    expect(&cli_distribution_verb, CLI_OUTPUT_TEXT, NULL, MODEL_EXIT_OK,
           "key-explicit  (the coordinator's option says equitable-load)\n", "");
    expect(&cli_distribution_verb, CLI_OUTPUT_TEXT, "round-robin", MODEL_EXIT_USAGE, "",
           "redistinto: distribution: there is no distribution 'round-robin', valid are "
           "equitable-load, least-space-used and key-explicit (INVALID_ARGUMENT)\n");
}

Test(query, unlock)
{
    expect(&cli_unlock_verb, CLI_OUTPUT_TEXT, "held", MODEL_EXIT_OK, "esi\n", "");
    expect(&cli_unlock_verb, CLI_OUTPUT_TEXT, "free", MODEL_EXIT_OK, "(nobody held it)\n", "");
    expect(&cli_unlock_verb, CLI_OUTPUT_JSON, "held", MODEL_EXIT_OK,
           "{\"key\":\"held\",\"holder\":\"esi\"}\n", "");
    expect(&cli_unlock_verb, CLI_OUTPUT_JSON, "free", MODEL_EXIT_OK,
           "{\"key\":\"free\",\"holder\":null}\n", "");
}

Test(query, a_change_that_may_have_been_made)
{
    expect(&cli_unlock_verb, CLI_OUTPUT_TEXT, "doubt", MODEL_EXIT_UNKNOWN_OUTCOME, "",
           "redistinto: unlock: on disk or not (INTERNAL STORE_ERROR)\n");
}

Test(query, distribution_without_a_coordinator)
{
    struct streams streams;

    forked_coordinator_end(&coordinator);
    cr_assert_eq(ask(&streams, &cli_distribution_verb, CLI_OUTPUT_TEXT, NULL, NULL),
                 MODEL_EXIT_UNAVAILABLE);
    cr_assert_not_null(strstr(streams.err, coordinator.address), "%s", streams.err);
    streams_close(&streams);
}

static void expect_open_sessions(const char *number)
{
    struct streams streams;
    char expected[32];

    (void)snprintf(expected, sizeof(expected), "\"value\":\"%s\"", number);
    cr_assert_eq(ask(&streams, &cli_status_verb, CLI_OUTPUT_JSON, "sessions", NULL), MODEL_EXIT_OK);
    cr_assert_not_null(strstr(streams.out, expected), "%s", streams.out);
    streams_close(&streams);
}

Test(query, read)
{
    expect(&cli_read_verb, CLI_OUTPUT_TEXT, "k", MODEL_EXIT_OK, "v", "");
    expect(&cli_read_verb, CLI_OUTPUT_JSON, "k", MODEL_EXIT_OK,
           "{\"statement\":\"READ\",\"outcome\":\"ok\",\"key\":\"k\",\"value\":\"v\",\"version\":{"
           "\"epoch\":9,\"incarnation\":8,\"seq\":7},"
           "\"stored\":false,\"stale\":false,\"sets_lost\":false,\"owner\":\"i\",\"epoch\":9}\n",
           "");
    expect_open_sessions("0");
}

Test(query, read_says_that_sets_were_lost)
{
    expect(&cli_read_verb, CLI_OUTPUT_TEXT, "lost", MODEL_EXIT_OK, "v",
           "redistinto: read: SETs of this key were lost with an earlier process of its owner\n");
}

Test(query, read_that_fails_closes_its_session_too)
{
    expect(&cli_read_verb, CLI_OUTPUT_TEXT, "fail", MODEL_EXIT_UNKNOWN_OUTCOME, "",
           "redistinto: read: who knows (ABORTED OUTCOME_UNKNOWN)\n");
    expect(&cli_read_verb, CLI_OUTPUT_TEXT, "none", MODEL_EXIT_NOT_FOUND, "",
           "redistinto: read: key 'none' has no value (NOT_FOUND)\n");
    expect_open_sessions("0");
}

Test(query, read_without_a_session)
{
    struct streams streams;

    forked_coordinator_end(&coordinator);
    cr_assert_eq(ask(&streams, &cli_read_verb, CLI_OUTPUT_TEXT, "k", NULL), MODEL_EXIT_UNAVAILABLE);
    cr_assert_not_null(strstr(streams.err, coordinator.address), "%s", streams.err);
    streams_close(&streams);
}
