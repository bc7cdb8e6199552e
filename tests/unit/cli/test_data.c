/*
 * The verbs of one key over a scripted coordinator in a process of its own: locks that they take if
 * they must, retries, waiting, what an answer that never came means, sessions that are closed in
 * any case.
 */
#include "cli/data.h"

#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/model/lease.h"
#include "tests/support/check.h"
#include "tests/unit/cli/forked_coordinator.h"
#include "tests/unit/cli/streams.h"

enum {
    ARGUMENTS_MAX = 12,
    LEASE_MS = 3000,
    VERSION = 40, /* placement version */
};

/* ---- the coordinator ------------------------------------------------------------------------- */

/* Keys are scripts: what each does stands where it is looked for. */
struct script {
    struct model_effects effects;
    uint64_t lease_ms;
    unsigned n_sessions; /* open now */
    unsigned n_requests; /* of the key asked for last */
    uint64_t last_seq;   /* of the request before */
    bool is_locked;      /* GET was answered */
    char text[64];
};

static bool is_key(struct rt_bytes key, const char *text)
{
    return rt_bytes_equal(key, rt_bytes_of_string(text));
}

static void fail(struct model_response *response, enum model_reason reason)
{
    model_response_fail(response, reason, "%s", model_reason_meaning(reason));
}

static void say(struct script *script, struct model_response *response, const char *format,
                unsigned number)
{
    struct model_data_response *data = &response->execute.data;

    (void)snprintf(script->text, sizeof(script->text), format, number);
    data->has_value = true;
    data->value = rt_bytes_of_string(script->text);
    data->version = (struct model_version){9, 8, 7};
}

/* true: refuses whatever comes without a lock. */
static bool needs_lock(struct script *script, const struct model_execute_request *request,
                       struct model_response *response)
{
    if (request->kind == MODEL_STATEMENT_GET) {
        script->is_locked = true;
        response->execute.lock_token = 5;
        return true;
    }
    if (!script->is_locked)
        fail(response, is_key(request->key, "new") ? MODEL_REASON_KEY_NOT_IDENTIFIED
                                                   : MODEL_REASON_KEY_NOT_LOCKED);
    return true;
}

/* Another holds it; the turn comes with the fifth request, the AWAITs before it being over. */
static bool queues(struct script *script, const struct model_execute_request *request,
                   struct model_response *response)
{
    struct model_execute_response *execute = &response->execute;

    if (request->kind == MODEL_STATEMENT_AWAIT && is_key(request->key, "held")) {
        fail(response, MODEL_REASON_DEADLINE_EXCEEDED);
    } else if (request->kind == MODEL_STATEMENT_AWAIT) {
        script->is_locked = script->n_requests > 4;
        if (script->is_locked)
            execute->outcome = MODEL_OUTCOME_READY;
        else
            fail(response, MODEL_REASON_DEADLINE_EXCEEDED);
    } else if (request->kind == MODEL_STATEMENT_GET && !script->is_locked) {
        execute->outcome = MODEL_OUTCOME_WAITING;
        (void)snprintf(execute->holder, sizeof(execute->holder), "other");
    } else {
        execute->lock_token = 5;
        say(script, response, "turn %u", script->n_requests);
    }
    return true;
}

/* Fails twice, not applied, then succeeds if it is the same request. */
static void fail_twice(struct script *script, const struct model_execute_request *request,
                       struct model_response *response)
{
    bool is_same = request->request_id.seq == script->last_seq;

    script->last_seq = request->request_id.seq;
    if (script->n_requests <= 2)
        fail(response, MODEL_REASON_MOVING);
    else
        say(script, response, is_same ? "same %u" : "another %u", script->n_requests);
}

/* The first attempt has no answer; meanwhile another session has locked the key, and keeps it
 * unless the key says otherwise. Refuses a later attempt that is not the same request, or does not
 * say that it may have been seen before. */
static bool locks_in_between(struct script *script, const struct model_execute_request *request,
                             struct model_response *response)
{
    bool is_put = request->kind == MODEL_STATEMENT_PUT;
    bool is_repeated =
        request->request_id.seq == script->last_seq && request->first_version == VERSION;

    if (script->n_requests == 1) {
        script->last_seq = request->request_id.seq;
        fail(response, request->first_version == 0 ? MODEL_REASON_OWNER_UNREACHABLE
                                                   : MODEL_REASON_INVALID_FIELD);
    } else if (is_put != is_repeated) {
        fail(response, MODEL_REASON_INVALID_FIELD);
    } else if (is_put && script->is_locked && is_key(request->key, "between-changed")) {
        fail(response, MODEL_REASON_VERSION_MISMATCH);
    } else if (!is_put && is_key(request->key, "between-held")) {
        fail(response, MODEL_REASON_LIMIT_REACHED);
    } else {
        return needs_lock(script, request, response);
    }
    return true;
}

static bool answer_statement(struct script *script, const struct model_execute_request *request,
                             struct model_response *response)
{
    (void)snprintf(response->execute.instance, MODEL_NAME_MAX, "i");
    response->execute.epoch = 9;
    script->n_requests++;
    if (is_key(request->key, "lock") || is_key(request->key, "new"))
        return needs_lock(script, request, response);
    if (is_key(request->key, "queue") || is_key(request->key, "held"))
        return queues(script, request, response);
    if (is_key(request->key, "hold") || (is_key(request->key, "late") && script->n_requests <= 2))
        return false;
    if (rt_bytes_has_prefix(request->key, RT_BYTES_LITERAL("between")))
        return locks_in_between(script, request, response);
    if (is_key(request->key, "flaky"))
        fail_twice(script, request, response);
    else if (is_key(request->key, "sick"))
        fail(response, MODEL_REASON_MOVING);
    else if (is_key(request->key, "unclear"))
        fail(response, MODEL_REASON_OWNER_UNREACHABLE);
    else if (is_key(request->key, "store-error"))
        fail(response, MODEL_REASON_STORE_ERROR);
    else if (is_key(request->key, "full"))
        fail(response, MODEL_REASON_DISK_FULL);
    else if (is_key(request->key, "fenced"))
        fail(response, MODEL_REASON_LOCK_FENCED);
    else if (is_key(request->key, "lost"))
        response->execute.lock_lost = response->execute.data.sets_lost = true;
    else if (is_key(request->key, "versions"))
        say(script, response,
            request->has_last_set && request->last_set.seq == 3         ? "last set"
            : request->has_if_version && request->if_version.epoch == 1 ? "if version"
                                                                        : "none",
            0);
    else if (!is_key(request->key, "none"))
        say(script, response, "request %u", script->n_requests);
    return true;
}

static bool answer(struct script *script, struct model_call *call)
{
    const struct model_request *request = &call->request;
    struct model_response *response = &call->response;

    model_response_ok(response, request->kind);
    response->responder = (struct model_responder){.placement_version = VERSION};
    switch ((int)request->kind) {
    case MODEL_CALL_KEY_STATUS:
        model_response_fail(response, MODEL_REASON_READ_ONLY, "%u open", script->n_sessions);
        break;
    case MODEL_CALL_OPEN_SESSION:
        script->n_sessions++;
        script->n_requests = 0;
        script->is_locked = false;
        response->open_session.session_id.bytes[0] = 1;
        response->open_session.cluster_id.bytes[0] = 2;
        response->open_session.lease_ms = script->lease_ms;
        response->open_session.key_max = 255;
        response->open_session.value_max = 1000;
        break;
    case MODEL_CALL_CLOSE_SESSION:
        script->n_sessions--;
        break;
    case MODEL_CALL_EXECUTE:
        return answer_statement(script, &request->execute, response);
    default:
        fail(response, MODEL_REASON_INVALID_FIELD);
        break;
    }
    return true;
}

static void core_submit(void *core, struct model_call *call)
{
    struct script *script = core;

    if (answer(script, call))
        rt_list_push_back(&script->effects.replies, &call->link);
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

static void start(uint64_t lease_ms)
{
    static struct script script;

    script.lease_ms = lease_ms;
    model_effects_init(&script.effects);
    forked_coordinator_start(&coordinator, &core_ops, &script, NULL);
}

static void set_up(void)
{
    start(LEASE_MS);
}

static void tear_down(void)
{
    forked_coordinator_end(&coordinator);
    test_alloc_expect_none();
}

TestSuite(data, .init = set_up, .fini = tear_down, .timeout = 30);

/* ---- the verbs ------------------------------------------------------------------------------- */

/* The whole command line after `redistinto`. */
static enum model_exit run(struct streams *streams, const char *line)
{
    char *words = rt_xasprintf("redistinto --coordinator %s %s", coordinator.address, line);
    char *argv[ARGUMENTS_MAX + 1];
    enum model_exit result;
    int argc = 0;

    for (char *word = strtok(words, " "); word != NULL; word = strtok(NULL, " "))
        argv[argc++] = word;
    argv[argc] = NULL;
    streams_open(streams);
    result = cli_verb_run(&streams->context, argc, argv);
    streams_flush(streams);
    rt_free(words);
    return result;
}

static void expect(const char *line, enum model_exit expected, const char *out, const char *err)
{
    struct streams streams;
    enum model_exit result = run(&streams, line);

    cr_assert_str_eq(streams.err, err);
    cr_assert_str_eq(streams.out, out);
    cr_assert_eq(result, expected, "%s: %d", line, (int)result);
    streams_close(&streams);
}

/* What begins and goes on in ways that do not matter. */
static void expect_part(const char *line, enum model_exit expected, const char *part)
{
    struct streams streams;
    enum model_exit result = run(&streams, line);

    cr_assert(strstr(streams.out, part) != NULL || strstr(streams.err, part) != NULL, "%s%s",
              streams.out, streams.err);
    cr_assert_eq(result, expected, "%s: %d", line, (int)result);
    streams_close(&streams);
}

static void expect_open_sessions(const char *said)
{
    expect_part("status any", MODEL_EXIT_UNAVAILABLE, said);
}

#define DETAILS      "version=9.8.7 stored=no owner=i epoch=9\n"
#define NO_VERSION   "version=none owner=i epoch=9\n"
#define SOME_SESSION " --session 01000000000000000000000000000000"

Test(data, each_statement)
{
    expect("read k", MODEL_EXIT_OK, "request 1", "");
    expect("set k v", MODEL_EXIT_OK, DETAILS, "");
    expect("store k", MODEL_EXIT_OK, DETAILS, "");
    expect("put k v", MODEL_EXIT_OK, DETAILS, "");
    expect("del k", MODEL_EXIT_OK, DETAILS, "");
    expect("get k", MODEL_EXIT_OK, "request 2", "");
    expect_open_sessions("0 open");
}

Test(data, takes_the_lock_if_it_must)
{
    expect("set lock v", MODEL_EXIT_OK, NO_VERSION, "");
    expect("store lock", MODEL_EXIT_OK, NO_VERSION, "");
    expect("put lock v", MODEL_EXIT_OK, NO_VERSION, "");
    expect("del lock", MODEL_EXIT_OK, NO_VERSION, "");
    expect("set new v", MODEL_EXIT_OK, NO_VERSION, "");
    expect("put new v", MODEL_EXIT_OK, NO_VERSION, "");
    expect("store new", MODEL_EXIT_NOT_FOUND, "",
           "redistinto: store: the key is unknown (NOT_FOUND KEY_NOT_IDENTIFIED)\n");
    expect("get new", MODEL_EXIT_NOT_FOUND, "",
           "redistinto: get: the key is unknown (NOT_FOUND KEY_NOT_IDENTIFIED)\n");
    expect_open_sessions("0 open");
}

Test(data, takes_no_lock_for_a_session_of_somebody_else)
{
    expect("set lock v" SOME_SESSION, MODEL_EXIT_PRECONDITION, "",
           "redistinto: set: the caller does not hold the key's lock (FAILED_PRECONDITION "
           "KEY_NOT_LOCKED)\n");
    expect("get lock" SOME_SESSION, MODEL_EXIT_OK, "",
           "redistinto: get: locked version=none owner=i epoch=9 lock_token=5\n");
    expect("set lock v" SOME_SESSION, MODEL_EXIT_OK, NO_VERSION, "");
    expect_open_sessions("0 open");
}

Test(data, waits_for_its_turn)
{
    expect("get queue", MODEL_EXIT_OK, "turn 6",
           "redistinto: get: waiting for the lock that 'other' holds\n");
    expect_open_sessions("0 open");
}

Test(data, waits_for_its_turn_in_a_session_of_somebody_else)
{
    expect("get queue" SOME_SESSION, MODEL_EXIT_OK, "turn 6",
           "redistinto: get: waiting for the lock that 'other' holds\n"
           "redistinto: get: locked version=9.8.7 stored=no owner=i epoch=9 lock_token=5\n");
}

Test(data, waits_no_longer_than_it_may)
{
    expect("get held --timeout 300ms" SOME_SESSION, MODEL_EXIT_UNAVAILABLE, "",
           "redistinto: get: waiting for the lock that 'other' holds\n"
           "redistinto: get: 'other' still holds the key's lock (DEADLINE_EXCEEDED "
           "DEADLINE_EXCEEDED)\n");
    expect("get held --no-wait" SOME_SESSION, MODEL_EXIT_PRECONDITION, "",
           "redistinto: get: 'other' holds the key's lock (FAILED_PRECONDITION KEY_NOT_LOCKED)\n");
}

/* Of a coordinator with such leases; nobody else has been asked yet. The session is closed,
 * whatever its lease. */
static void expect_with_lease(uint64_t lease_ms, enum model_exit expected, const char *part)
{
    forked_coordinator_end(&coordinator);
    start(lease_ms);
    expect_part("put k v", expected, part);
    expect_open_sessions("0 open");
}

Test(data, shortest_lease)
{
    expect_with_lease(MODEL_LEASE_MS_MIN, MODEL_EXIT_OK, DETAILS);
}

Test(data, lease_too_short)
{
    expect_with_lease(MODEL_LEASE_MS_MIN - 1, MODEL_EXIT_INTERNAL,
                      "malformed answer of OpenSession: lease of 999 ms");
}

Test(data, longest_lease)
{
    expect_with_lease(MODEL_LEASE_MS_MAX, MODEL_EXIT_OK, DETAILS);
}

Test(data, lease_too_long)
{
    expect_with_lease(MODEL_LEASE_MS_MAX + 1, MODEL_EXIT_INTERNAL,
                      "malformed answer of OpenSession: lease of 3600001 ms");
}

Test(data, bench_closes_a_session_whose_lease_is_malformed)
{
    forked_coordinator_end(&coordinator);
    start(MODEL_LEASE_MS_MIN - 1);
    expect_part("bench --path routed", MODEL_EXIT_INTERNAL,
                "malformed answer of OpenSession: lease of 999 ms");
    expect_open_sessions("0 open");
}

Test(data, repeats_the_same_request)
{
    expect("read flaky", MODEL_EXIT_OK, "same 3", "");
    expect("set sick v --timeout 200ms", MODEL_EXIT_UNAVAILABLE, "",
           "redistinto: set: the key is being placed or moved (UNAVAILABLE MOVING)\n");
    expect_open_sessions("0 open");
}

Test(data, a_write_without_an_answer_may_have_been_applied)
{
    expect_part("set hold v --timeout 200ms", MODEL_EXIT_UNKNOWN_OUTCOME, "DEADLINE_EXCEEDED");
    expect_part("set unclear v --timeout 200ms", MODEL_EXIT_UNKNOWN_OUTCOME, "OWNER_UNREACHABLE");
    expect_part("put store-error v --timeout 200ms", MODEL_EXIT_UNKNOWN_OUTCOME, "STORE_ERROR");
    expect_part("read hold --timeout 200ms", MODEL_EXIT_UNAVAILABLE, "DEADLINE_EXCEEDED");
    expect_part("set unclear v -o json --timeout 200ms", MODEL_EXIT_UNKNOWN_OUTCOME,
                "\"applied\":\"MAYBE\"");
    expect_open_sessions("0 open");
}

/* No attempt takes longer than the session lives without hearing of it. */
Test(data, goes_on_asking_while_there_is_time)
{
    expect("set late v --timeout 20s", MODEL_EXIT_OK, DETAILS, "");
    expect("read late --timeout 20s", MODEL_EXIT_OK, "request 3", "");
    expect_open_sessions("0 open");
}

Test(data, a_write_that_needs_a_lock_after_all_stays_the_same_request)
{
    expect("put between v", MODEL_EXIT_OK, NO_VERSION, "");
    expect_part("put between-changed v", MODEL_EXIT_UNKNOWN_OUTCOME, "VERSION_MISMATCH");
    expect_part("put between-held v", MODEL_EXIT_UNKNOWN_OUTCOME, "LIMIT_REACHED");
    expect_part("put between-held v -o json", MODEL_EXIT_UNKNOWN_OUTCOME, "\"applied\":\"MAYBE\"");
    expect_open_sessions("0 open");
}

Test(data, exit_codes)
{
    expect_part("put full v", MODEL_EXIT_EXHAUSTED, "DISK_FULL");
    expect_part("set fenced v", MODEL_EXIT_PRECONDITION, "LOCK_FENCED");
    expect("read none", MODEL_EXIT_NOT_FOUND, "",
           "redistinto: read: key 'none' has no value (NOT_FOUND)\n");
    expect("get none" SOME_SESSION, MODEL_EXIT_OK, "",
           "redistinto: get: locked version=none owner=i epoch=9\n");
    forked_coordinator_end(&coordinator);
    expect_part("set k v", MODEL_EXIT_UNAVAILABLE, "(UNAVAILABLE)");
    expect_part("set k v -o json", MODEL_EXIT_UNAVAILABLE, "\"applied\":\"NO\"");
}

Test(data, remarks)
{
    expect("put lost v", MODEL_EXIT_OK, "version=none owner=i epoch=9 sets_lost lock_lost\n",
           "redistinto: put: SETs of this key were lost with an earlier process of its owner\n"
           "redistinto: put: stored, but the lock had gone to another session\n");
}

Test(data, json)
{
    expect("put k v -o json", MODEL_EXIT_OK,
           "{\"statement\":\"PUT\",\"outcome\":\"ok\",\"key\":\"k\",\"version\":{\"epoch\":9,"
           "\"incarnation\":8,\"seq\":7},\"stored\":false,\"sets_lost\":false,\"owner\":\"i\","
           "\"epoch\":9,\"lock_lost\":false,\"evicted\":[]}\n",
           "");
    expect("get k -o json" SOME_SESSION, MODEL_EXIT_OK,
           "{\"statement\":\"GET\",\"outcome\":\"ok\",\"key\":\"k\",\"value\":\"request 2\","
           "\"version\":{\"epoch\":9,\"incarnation\":8,\"seq\":7},\"stored\":false,"
           "\"sets_lost\":false,\"owner\":\"i\",\"epoch\":9,\"lock_token\":null}\n",
           "");
}

Test(data, versions)
{
    expect("read versions", MODEL_EXIT_OK, "none", "");
    expect("store versions --last-set 1.2.3", MODEL_EXIT_OK, DETAILS, "");
    expect("put versions v --if-version 1.2.3", MODEL_EXIT_OK, DETAILS, "");
    expect("del versions --if-version 1.2.3", MODEL_EXIT_OK, DETAILS, "");
}

/* A file of this size that takes no room, as the value. */
static void expect_value_of(off_t size, enum model_exit expected, const char *part)
{
    char path[] = "/tmp/redistinto-XXXXXX";
    int fd = mkstemp(path);
    char *line = rt_xasprintf("put k --value-file %s -o json", path);

    cr_assert_geq(fd, 0);
    cr_assert_eq(ftruncate(fd, size), 0);
    expect_part(line, expected, part);
    (void)close(fd);
    (void)unlink(path);
    rt_free(line);
}

Test(data, values_at_the_limit_and_past_it)
{
    expect_value_of(MODEL_VALUE_MAX, MODEL_EXIT_OK, "\"outcome\":\"ok\"");
    expect_value_of(MODEL_VALUE_MAX + 1, MODEL_EXIT_USAGE,
                    "\"code\":\"INVALID_ARGUMENT\",\"reason\":\"VALUE_TOO_LARGE\"");
    expect_open_sessions("0 open");
}

Test(data, usage)
{
    expect_part("set k", MODEL_EXIT_USAGE, "VALUE or --value-file is missing");
    expect_part("set k v --value-file f", MODEL_EXIT_USAGE, "exclude each other");
    expect_part("set k --value-file /nonexistent/f", MODEL_EXIT_USAGE, "/nonexistent/f");
    expect_part("set k v w", MODEL_EXIT_USAGE, "unexpected argument 'w'");
    expect_part("set -e k\\ v", MODEL_EXIT_USAGE, "the backslash at byte 2");
    expect_part("set -e k v\\xg1", MODEL_EXIT_USAGE, "the backslash at byte 2");
    expect_part("del k --if-version 1.2", MODEL_EXIT_USAGE, "EPOCH.INCARNATION.SEQ");
    expect_part("store k --last-set x", MODEL_EXIT_USAGE, "EPOCH.INCARNATION.SEQ");
    expect_part("get k --session 1", MODEL_EXIT_USAGE, "32 hexadecimal digits");
    expect_part("get k --if-version 1.2.3", MODEL_EXIT_USAGE, "--if-version");
    expect_open_sessions("0 open");
}
