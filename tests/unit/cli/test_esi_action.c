/*
 * The verb esi over a scripted service: what each action asks and prints, words that are wrong,
 * failures, lines of the console.
 */
#include "cli/esi_action.h"

#include <stdlib.h>
#include <unistd.h>

#include "cli/esi.h"
#include "cli/esi_console.h"
#include "runtime/base/alloc.h"
#include "tests/support/check.h"
#include "tests/unit/cli/forked_coordinator.h"
#include "tests/unit/cli/streams.h"

/* ---- the service ----------------------------------------------------------------------------- */

struct script {
    struct model_effects effects;
    struct model_call *held; /* answered never */
    struct model_esi_info esis[2];
};

static void set_esi(struct model_esi_info *ret_esi, uint64_t id, enum model_esi_state state)
{
    *ret_esi = (struct model_esi_info){.id = id, .state = state, .n_statements = 4, .n_ok = 1};
    (void)snprintf(ret_esi->name, sizeof(ret_esi->name), "e%llu.esi", (unsigned long long)id);
}

/* ESI 1 is ready, 2 waits for k, 3 has failed, 4 is unknown, 5 never ends. */
static bool answer_esi(const struct model_esi_request *request, enum model_call_kind kind,
                       struct model_response *response)
{
    struct model_esi_info *esi = &response->esi.esi;

    if (request->id == 5 && request->wait)
        return false;
    if (request->id == 4) {
        model_response_fail(response, MODEL_REASON_ESI_UNKNOWN, "no ESI has the number 4");
        return true;
    }
    set_esi(esi, request->id, MODEL_ESI_FINISHED);
    esi->end = kind == MODEL_CALL_ESI_KILL ? MODEL_ESI_END_KILLED : MODEL_ESI_END_OK;
    if (request->id == 3) {
        esi->end = MODEL_ESI_END_FAILED;
        esi->line = 2;
        esi->reason = MODEL_REASON_KEY_NOT_LOCKED;
        esi->message = rt_bytes_of_string("not yours");
    }
    if (kind == MODEL_CALL_ESI_BLOCK) {
        set_esi(esi, request->id, request->id == 1 ? MODEL_ESI_READY : MODEL_ESI_BLOCKED);
        if (esi->state == MODEL_ESI_BLOCKED)
            esi->waits_for = request->key;
    }
    return true;
}

/* Two pages of one ESI each. */
static void answer_list(struct script *script, const struct model_esi_list_request *request,
                        struct model_response *response)
{
    struct model_esi_list_response *list = &response->esi_list;
    size_t first = request->after == 1 ? 1 : 0;

    set_esi(&script->esis[0], 1, MODEL_ESI_READY);
    script->esis[0].estimate_milli = 2500;
    set_esi(&script->esis[1], 2, MODEL_ESI_BLOCKED);
    script->esis[1].line = 3;
    script->esis[1].waits_for = RT_BYTES_LITERAL("k");
    if (request->waits_for.size > 0)
        first = rt_bytes_equal(request->waits_for, RT_BYTES_LITERAL("k")) ? 1 : 2;
    list->esis = &script->esis[first];
    list->n_esis = first < 2 ? 1 : 0;
    list->more = first == 0;
    list->paused = true;
    (void)snprintf(list->planner, sizeof(list->planner), "sjf-cd");
}

static bool answer(struct script *script, struct model_call *call)
{
    const struct model_request *request = &call->request;
    struct model_response *response = &call->response;

    model_response_ok(response, request->kind);
    switch ((int)request->kind) {
    case MODEL_CALL_ESI_SUBMIT:
        set_esi(&response->esi.esi, 7, MODEL_ESI_NEW);
        memcpy(response->esi.esi.name, request->esi_submit.name, sizeof(response->esi.esi.name));
        response->esi.esi.n_statements = request->esi_submit.script.size;
        break;
    case MODEL_CALL_ESI_STATUS:
    case MODEL_CALL_ESI_KILL:
    case MODEL_CALL_ESI_BLOCK:
        return answer_esi(&request->esi, request->kind, response);
    case MODEL_CALL_ESI_LIST:
        answer_list(script, &request->esi_list, response);
        break;
    case MODEL_CALL_ESI_DEADLOCK:
    case MODEL_CALL_ESI_PAUSE:
    case MODEL_CALL_ESI_RESUME:
        break;
    case MODEL_CALL_ESI_UNBLOCK:
        response->esi_unblock.woken =
            rt_bytes_equal(request->esi.key, RT_BYTES_LITERAL("k")) ? 2 : 0;
        response->esi_unblock.n_waiting = 1;
        break;
    case MODEL_CALL_KEY_STATUS:
        response->key_status.known = true;
        break;
    default:
        model_response_fail(response, MODEL_REASON_INVALID_FIELD, "not expected");
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

static struct forked_coordinator service;

static void set_up(void)
{
    static struct script script;

    model_effects_init(&script.effects);
    forked_coordinator_start(&service, &core_ops, &script, NULL);
}

static void tear_down(void)
{
    forked_coordinator_end(&service);
    test_alloc_expect_none();
}

TestSuite(esi_action, .init = set_up, .fini = tear_down, .timeout = 30);

/* ---- the verb -------------------------------------------------------------------------------- */

struct config { /* of the verb */
    const char *address;
    bool is_escaped;
};

static enum model_exit ask(struct streams *streams, enum cli_output output, uint64_t timeout_ms,
                           const char *words)
{
    const struct config config = {service.address, true};
    const char *cut[CLI_ESI_CONSOLE_WORDS_MAX + 2];
    RT_CLEANUP(rt_freep) char *copy = rt_xstrdup(words);
    enum model_exit result;

    (void)cli_esi_console_cut(copy, cut);
    streams_open(streams);
    streams->context.verb = "esi";
    streams->context.common.coordinator = service.address;
    streams->context.common.output = output;
    streams->context.common.timeout_ms = timeout_ms;
    result = cli_esi_verb.run(&streams->context, cut, &config);
    streams_flush(streams);
    return result;
}

static void expect(enum cli_output output, const char *words, enum model_exit expected,
                   const char *out, const char *err)
{
    struct streams streams;

    cr_assert_eq(ask(&streams, output, 20000, words), expected, "%s", words);
    cr_assert_str_eq(streams.out, out);
    cr_assert_str_eq(streams.err, err);
    streams_close(&streams);
}

Test(esi_action, list)
{
    expect(CLI_OUTPUT_TEXT, "list", MODEL_EXIT_OK,
           "ID  NAME    STATE    END  LINE  DONE  ESTIMATE  WAITS FOR\n"
           " 1  e1.esi  ready    -       -   1/4       2.5  -\n"
           " 2  e2.esi  blocked  -       3   1/4         -  k\n"
           "planner sjf-cd, paused\n",
           "");
    expect(CLI_OUTPUT_JSON, "listar \\x6b", MODEL_EXIT_OK,
           "{\"planner\":\"sjf-cd\",\"paused\":true,\"esis\":[{\"id\":2,\"name\":\"e2.esi\","
           "\"state\":\"blocked\",\"end\":null,\"line\":3,\"statements\":4,\"ok\":1,"
           "\"estimate\":null,\"waits_for\":\"k\",\"reason\":null,\"message\":null}]}\n",
           "");
    expect(CLI_OUTPUT_JSON, "list other", MODEL_EXIT_OK,
           "{\"planner\":\"sjf-cd\",\"paused\":true,\"esis\":[]}\n", "");
}

Test(esi_action, wait_tells_how_it_ended)
{
    expect(CLI_OUTPUT_TEXT, "wait 1", MODEL_EXIT_OK, "1 e1.esi finished: ok, 1 of 4 statements\n",
           "");
    expect(CLI_OUTPUT_TEXT, "wait 3", MODEL_EXIT_FAILED,
           "3 e3.esi finished: failed at line 2, 1 of 4 statements; not yours (KEY_NOT_LOCKED)\n",
           "");
    expect(CLI_OUTPUT_TEXT, "wait 4", MODEL_EXIT_NOT_FOUND, "",
           "redistinto: esi: no ESI has the number 4 (NOT_FOUND ESI_UNKNOWN)\n");
}

Test(esi_action, wait_within_the_timeout)
{
    struct streams streams;

    cr_assert_eq(ask(&streams, CLI_OUTPUT_TEXT, 100, "wait 5"), MODEL_EXIT_UNAVAILABLE);
    cr_assert_not_null(strstr(streams.err, "DEADLINE_EXCEEDED"), "%s", streams.err);
    streams_close(&streams);
}

Test(esi_action, kill)
{
    expect(CLI_OUTPUT_TEXT, "kill 1", MODEL_EXIT_OK,
           "1 e1.esi finished: killed, 1 of 4 statements\n", "");
    expect(CLI_OUTPUT_TEXT, "kill 4", MODEL_EXIT_NOT_FOUND, "",
           "redistinto: esi: no ESI has the number 4 (NOT_FOUND ESI_UNKNOWN)\n");
}

Test(esi_action, planner)
{
    expect(CLI_OUTPUT_TEXT, "pausar", MODEL_EXIT_OK, "paused\n", "");
    expect(CLI_OUTPUT_JSON, "pause", MODEL_EXIT_OK, "{\"paused\":true}\n", "");
    expect(CLI_OUTPUT_TEXT, "continue", MODEL_EXIT_OK, "running\n", "");
    expect(CLI_OUTPUT_JSON, "continuar", MODEL_EXIT_OK, "{\"paused\":false}\n", "");
    expect(CLI_OUTPUT_TEXT, "deadlock", MODEL_EXIT_OK, "no deadlock\n", "");
    expect(CLI_OUTPUT_JSON, "deadlock", MODEL_EXIT_OK, "{\"esis\":[]}\n", "");
}

Test(esi_action, keys)
{
    expect(CLI_OUTPUT_TEXT, "block k 1", MODEL_EXIT_OK, "1 e1.esi holds k\n", "");
    expect(CLI_OUTPUT_TEXT, "bloquear a\\x00b 2", MODEL_EXIT_OK, "2 e2.esi waits for a\\x00b\n",
           "");
    expect(CLI_OUTPUT_TEXT, "unblock k", MODEL_EXIT_OK, "2 is ready, 1 more wait\n", "");
    expect(CLI_OUTPUT_TEXT, "desbloquear j", MODEL_EXIT_OK, "j is free\n", "");
    expect(CLI_OUTPUT_JSON, "unblock j", MODEL_EXIT_OK,
           "{\"key\":\"j\",\"woken\":null,\"waiting\":1}\n", "");
    expect(CLI_OUTPUT_JSON, "status j", MODEL_EXIT_OK,
           "{\"key\":\"j\",\"known\":true,\"value\":null,\"stored\":false,\"version\":null,"
           "\"owner\":null,\"owner_state\":null,\"epoch\":null,\"would_place\":null,"
           "\"holder\":null,\"waiters\":[],\"value_unavailable\":false}\n",
           "");
}

/* A file of `size` bytes; the path is the caller's. */
static char *make_file(size_t size)
{
    char *path = rt_xstrdup("/tmp/redistinto+esi-XXXXXX");
    int fd = mkstemp(path);

    cr_assert_geq(fd, 0);
    cr_assert_eq(ftruncate(fd, (off_t)size), 0);
    (void)close(fd);
    return path;
}

static void submit(size_t size, enum model_exit expected, const char *out, const char *err)
{
    RT_CLEANUP(rt_freep) char *path = make_file(size);
    RT_CLEANUP(rt_freep) char *words = rt_xasprintf("submit %s", path);
    struct streams streams;

    cr_assert_eq(ask(&streams, CLI_OUTPUT_JSON, 20000, words), expected);
    cr_assert_not_null(strstr(streams.out, out), "%s", streams.out);
    cr_assert_not_null(strstr(streams.out, err), "%s", streams.out);
    streams_close(&streams);
    (void)unlink(path);
}

Test(esi_action, submit_names_the_esi_after_the_file)
{
    submit(5, MODEL_EXIT_OK, "{\"id\":7,\"name\":\"redistinto_esi-", "\"statements\":5,");
}

Test(esi_action, submit_at_the_limit_and_past_it)
{
    submit(MODEL_ESI_SCRIPT_MAX, MODEL_EXIT_OK, "{\"id\":7,", "\"statements\":1048576,");
    submit(MODEL_ESI_SCRIPT_MAX + 1, MODEL_EXIT_USAGE, "{\"error\":{", "1048576");
    submit(0, MODEL_EXIT_USAGE, "{\"error\":{", "is empty");
    expect(CLI_OUTPUT_TEXT, "submit /nonexistent/a", MODEL_EXIT_USAGE, "",
           "redistinto: esi: /nonexistent/a: No such file or directory (NOT_FOUND)\n");
}

Test(esi_action, words_that_are_wrong)
{
    expect(CLI_OUTPUT_TEXT, "fly 1", MODEL_EXIT_USAGE, "",
           "redistinto: esi: unknown action 'fly' (see --help) (INVALID_ARGUMENT)\n");
    expect(CLI_OUTPUT_TEXT, "block k", MODEL_EXIT_USAGE, "",
           "redistinto: esi: block needs KEY ID (INVALID_ARGUMENT)\n");
    expect(CLI_OUTPUT_TEXT, "pause now", MODEL_EXIT_USAGE, "",
           "redistinto: esi: unexpected argument 'now' of pause (INVALID_ARGUMENT)\n");
    expect(CLI_OUTPUT_TEXT, "console now", MODEL_EXIT_USAGE, "",
           "redistinto: esi: unexpected argument 'now' of console (INVALID_ARGUMENT)\n");
    expect(CLI_OUTPUT_TEXT, "unblock \\q", MODEL_EXIT_USAGE, "",
           "redistinto: esi: the backslash at byte 1 begins neither \\\\ nor \\xNN "
           "(INVALID_ARGUMENT)\n");
    for (size_t i = 0; i < 4; i++) {
        static const char *const numbers[] = {"0", "-1", "1x", "18446744073709551616"};
        RT_CLEANUP(rt_freep) char *words = rt_xasprintf("kill %s", numbers[i]);
        struct streams streams;

        cr_assert_eq(ask(&streams, CLI_OUTPUT_TEXT, 20000, words), MODEL_EXIT_USAGE);
        cr_assert_not_null(strstr(streams.err, "is no number of an ESI"), "%s", streams.err);
        streams_close(&streams);
    }
}

Test(esi_action, every_action_is_described_by_the_verb)
{
    for (size_t i = 0; i < cli_esi_n_actions; i++) {
        const struct cli_esi_action *action = &cli_esi_actions[i];
        const char *names[] = {action->name, action->alias, NULL};

        for (const char **name = names; *name != NULL; name++) {
            cr_assert_eq(cli_esi_action_find(*name), action);
            cr_assert_not_null(strstr(cli_esi_verb.description, *name), "%s", *name);
        }
        cr_assert_leq(action->n_arguments + action->n_optional, cli_esi_verb.n_optional);
    }
    cr_assert_null(cli_esi_action_find("console"));
}

Test(esi_action, lines_of_the_console)
{
    char line[] = " \tblock  k 3\r";
    char longest[] = "1 2 3 4 5 6 7 8";
    char too_long[] = "1 2 3 4 5 6 7 8 9 10";
    char empty[] = "  ";
    const char *words[CLI_ESI_CONSOLE_WORDS_MAX + 2];

    cr_assert_eq(cli_esi_console_cut(line, words), 3);
    cr_assert_str_eq(words[0], "block");
    cr_assert_str_eq(words[1], "k");
    cr_assert_str_eq(words[2], "3");
    cr_assert_null(words[3]);
    cr_assert_eq(cli_esi_console_cut(longest, words), 8);
    cr_assert_eq(cli_esi_console_cut(too_long, words), 9);
    cr_assert_eq(cli_esi_console_cut(empty, words), 0);
    cr_assert_null(words[0]);
}
