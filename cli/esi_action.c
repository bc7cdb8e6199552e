/*
 * Actions on ESIs: see esi_action.h. What was typed is understood before anything is asked. One
 * thread.
 */
#include "cli/esi_action.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/client.h"
#include "cli/escape.h"
#include "cli/esi_inspect.h"
#include "cli/file.h"
#include "cli/inspect.h"
#include "cli/report.h"
#include "runtime/base/alloc.h"
#include "runtime/base/json.h"
#include "runtime/model/message.h"

/* Appends what the service answered, as complete lines. */
typedef void (*append_fn)(const struct model_call *call, enum cli_output output,
                          struct rt_buffer *buffer);

static bool is_change(enum model_call_kind kind)
{
    return kind != MODEL_CALL_ESI_LIST && kind != MODEL_CALL_ESI_STATUS &&
           kind != MODEL_CALL_ESI_DEADLOCK && kind != MODEL_CALL_KEY_STATUS;
}

/* Makes the call and prints its answer; the coordinator's when `address` is NULL. */
static enum model_exit ask(const struct cli_esi *esi, const char *address, struct model_call *call,
                           append_fn append)
{
    struct cli_client *client = cli_client_new(esi->context);
    struct rt_buffer buffer = {0};
    enum model_exit result;

    call->address = address;
    if (call->request.kind == MODEL_CALL_ESI_SUBMIT)
        call->request.esi_submit.request_id =
            (struct model_request_id){cli_client_new_id(client), 1};
    if (cli_client_call(client, call)) {
        append(call, esi->context->common.output, &buffer);
        result = cli_report_result(esi->context, &buffer);
    } else if (is_change(call->request.kind)) {
        result = cli_client_report_change(client, &call->response);
    } else {
        result = cli_client_report(client, &call->response);
    }
    rt_buffer_deinit(&buffer);
    (void)cli_client_free(client);
    return result;
}

static enum rt_code take_id(const char *word, uint64_t *ret_id, struct rt_error *err)
{
    char *end = NULL;
    uint64_t id = strtoull(word, &end, 10);

    if (word[strspn(word, "0123456789")] != '\0' || id == 0 || strlen(word) > 19)
        return rt_fail(err, RT_INVALID_ARGUMENT,
                       "'%.64s' is no number of an ESI, valid are 1 to 9999999999999999999", word);
    *ret_id = id;
    return RT_OK;
}

/* ---- answers --------------------------------------------------------------------------------- */

static void append_esi(const struct model_call *call, enum cli_output output,
                       struct rt_buffer *buffer)
{
    cli_esi_inspect_append(&call->response.esi.esi, output, buffer);
}

static void append_submitted(const struct model_call *call, enum cli_output output,
                             struct rt_buffer *buffer)
{
    if (output == CLI_OUTPUT_TEXT)
        rt_buffer_printf(buffer, "%" PRIu64 "\n", call->response.esi.esi.id);
    else
        append_esi(call, output, buffer);
}

static void write_esis(struct rt_json *json, const struct model_esi_list_response *list)
{
    rt_json_array_begin(json, "esis");
    for (size_t i = 0; i < list->n_esis; i++) {
        rt_json_object_begin(json, NULL);
        cli_esi_inspect_write(json, &list->esis[i]);
        rt_json_object_end(json);
    }
    rt_json_array_end(json);
}

static void append_deadlock(const struct model_call *call, enum cli_output output,
                            struct rt_buffer *buffer)
{
    const struct model_esi_list_response *list = &call->response.esi_list;
    struct rt_json json;

    if (output == CLI_OUTPUT_TEXT && list->n_esis == 0) {
        rt_buffer_append_string(buffer, "no deadlock\n");
    } else if (output == CLI_OUTPUT_TEXT) {
        cli_esi_inspect_append_table(list->esis, list->n_esis, buffer);
    } else {
        rt_json_init(&json, buffer);
        rt_json_object_begin(&json, NULL);
        write_esis(&json, list);
        rt_json_object_end(&json);
        rt_buffer_append_byte(buffer, '\n');
    }
}

static void append_paused(const struct model_call *call, enum cli_output output,
                          struct rt_buffer *buffer)
{
    bool is_paused = call->request.kind == MODEL_CALL_ESI_PAUSE;

    if (output == CLI_OUTPUT_TEXT)
        rt_buffer_append_string(buffer, is_paused ? "paused\n" : "running\n");
    else
        rt_buffer_printf(buffer, "{\"paused\":%s}\n", is_paused ? "true" : "false");
}

static void append_blocked(const struct model_call *call, enum cli_output output,
                           struct rt_buffer *buffer)
{
    const struct model_esi_info *esi = &call->response.esi.esi;

    if (output == CLI_OUTPUT_JSON) {
        append_esi(call, output, buffer);
        return;
    }
    rt_buffer_printf(buffer, "%" PRIu64 " %s %s ", esi->id, esi->name,
                     esi->state == MODEL_ESI_BLOCKED ? "waits for" : "holds");
    cli_escape_append(call->request.esi.key, buffer);
    rt_buffer_append_byte(buffer, '\n');
}

static void append_unblocked(const struct model_call *call, enum cli_output output,
                             struct rt_buffer *buffer)
{
    const struct model_esi_unblock_response *unblock = &call->response.esi_unblock;
    struct rt_json json;

    if (output == CLI_OUTPUT_JSON) {
        rt_json_init(&json, buffer);
        rt_json_object_begin(&json, NULL);
        rt_json_bytes(&json, "key", call->request.esi.key);
        if (unblock->woken == 0)
            rt_json_null(&json, "woken");
        else
            rt_json_u64(&json, "woken", unblock->woken);
        rt_json_u64(&json, "waiting", unblock->n_waiting);
        rt_json_object_end(&json);
    } else if (unblock->woken > 0) {
        rt_buffer_printf(buffer, "%" PRIu64 " is ready, %" PRIu64 " more wait", unblock->woken,
                         unblock->n_waiting);
    } else {
        cli_escape_append(call->request.esi.key, buffer);
        rt_buffer_append_string(buffer, " is free");
    }
    rt_buffer_append_byte(buffer, '\n');
}

static void append_key_status(const struct model_call *call, enum cli_output output,
                              struct rt_buffer *buffer)
{
    cli_inspect_append_status(call->request.key_status.key, &call->response.key_status, output,
                              buffer);
}

/* ---- submit ---------------------------------------------------------------------------------- */

/* The file's name, with what a session name may not have replaced. */
static void take_name(const char *path, char ret_name[MODEL_NAME_MAX + 1])
{
    const char *slash = strrchr(path, '/');
    const char *base = slash == NULL ? path : slash + 1;
    size_t size = strnlen(base, MODEL_NAME_MAX);

    for (size_t i = 0; i < size; i++) {
        bool is_valid = model_name_check("", rt_bytes_of(base + i, 1), NULL) == RT_OK;

        ret_name[i] = '_';
        if (is_valid)
            ret_name[i] = base[i];
    }
    ret_name[size] = '\0';
}

static enum model_exit run_submit(const struct cli_esi *esi, const char *const *arguments)
{
    struct model_call *call = model_call_new(MODEL_CALL_ESI_SUBMIT);
    struct model_esi_submit_request *submit = &call->request.esi_submit;
    struct rt_buffer script = {0};
    struct rt_error err = RT_ERROR_INIT;
    enum model_exit result;

    *submit = (struct model_esi_submit_request){0};
    take_name(arguments[0], submit->name);
    if (cli_file_read(arguments[0], MODEL_ESI_SCRIPT_MAX, &script, &err) != RT_OK) {
        result = cli_report_usage(esi->context, &err);
    } else if (script.size == 0) {
        (void)rt_fail(&err, RT_INVALID_ARGUMENT, "%s is empty", arguments[0]);
        result = cli_report_usage(esi->context, &err);
    } else {
        submit->script = rt_buffer_bytes(&script);
        result = ask(esi, esi->address, call, append_submitted);
    }
    rt_buffer_deinit(&script);
    (void)model_call_free(call);
    return result;
}

/* ---- one ESI --------------------------------------------------------------------------------- */

static enum model_exit ask_about(const struct cli_esi *esi, enum model_call_kind kind,
                                 const char *word, enum model_esi_end *ret_end)
{
    struct model_call *call = model_call_new(kind);
    struct rt_error err = RT_ERROR_INIT;
    enum model_exit result;

    call->request.esi = (struct model_esi_request){.wait = true};
    if (take_id(word, &call->request.esi.id, &err) == RT_OK) {
        result = ask(esi, esi->address, call, append_esi);
        if (result == MODEL_EXIT_OK)
            *ret_end = call->response.esi.esi.end;
    } else {
        result = cli_report_usage(esi->context, &err);
    }
    (void)model_call_free(call);
    return result;
}

static enum model_exit run_wait(const struct cli_esi *esi, const char *const *arguments)
{
    enum model_esi_end end = MODEL_ESI_END_NONE;
    enum model_exit result = ask_about(esi, MODEL_CALL_ESI_STATUS, arguments[0], &end);

    if (result == MODEL_EXIT_OK && end != MODEL_ESI_END_OK)
        result = MODEL_EXIT_FAILED;
    return result;
}

static enum model_exit run_kill(const struct cli_esi *esi, const char *const *arguments)
{
    enum model_esi_end end = MODEL_ESI_END_NONE;

    return ask_about(esi, MODEL_CALL_ESI_KILL, arguments[0], &end);
}

/* ---- list ------------------------------------------------------------------------------------ */

struct listing {
    struct model_esi_info *esis; /* owned; text only, what it borrows is in the pages */
    size_t n_esis;
    struct model_call **pages; /* owned */
    size_t n_pages;
};

static void add_page(struct listing *listing, struct model_call *call)
{
    const struct model_esi_list_response *list = &call->response.esi_list;

    listing->pages =
        rt_xrealloc(listing->pages, (listing->n_pages + 1) * sizeof(struct model_call *));
    listing->pages[listing->n_pages++] = call;
    if (list->n_esis == 0)
        return;
    listing->esis = rt_xrealloc(listing->esis,
                                (listing->n_esis + list->n_esis) * sizeof(struct model_esi_info));
    memcpy(listing->esis + listing->n_esis, list->esis,
           list->n_esis * sizeof(struct model_esi_info));
    listing->n_esis += list->n_esis;
}

/* The last page tells how the planner is. */
static enum model_exit print_listing(const struct cli_esi *esi, const struct listing *listing)
{
    const struct model_esi_list_response *last =
        &listing->pages[listing->n_pages - 1]->response.esi_list;
    const struct model_esi_list_response all = {.esis = listing->esis, .n_esis = listing->n_esis};
    struct rt_buffer buffer = {0};
    struct rt_json json;
    enum model_exit result;

    if (esi->context->common.output == CLI_OUTPUT_TEXT) {
        cli_esi_inspect_append_table(all.esis, all.n_esis, &buffer);
        rt_buffer_printf(&buffer, "planner %s%s\n", last->planner, last->paused ? ", paused" : "");
    } else {
        rt_json_init(&json, &buffer);
        rt_json_object_begin(&json, NULL);
        rt_json_string(&json, "planner", last->planner);
        rt_json_bool(&json, "paused", last->paused);
        write_esis(&json, &all);
        rt_json_object_end(&json);
        rt_buffer_append_byte(&buffer, '\n');
    }
    result = cli_report_result(esi->context, &buffer);
    rt_buffer_deinit(&buffer);
    return result;
}

static enum model_exit ask_pages(const struct cli_esi *esi, struct rt_bytes key,
                                 struct listing *listing)
{
    struct cli_client *client = cli_client_new(esi->context);
    enum model_exit result = MODEL_EXIT_OK;
    bool is_more = true;

    while (is_more && result == MODEL_EXIT_OK) {
        struct model_call *call = model_call_new(MODEL_CALL_ESI_LIST);

        call->address = esi->address;
        call->request.esi_list = (struct model_esi_list_request){
            .waits_for = key,
            .after = listing->n_esis > 0 ? listing->esis[listing->n_esis - 1].id : 0,
        };
        if (cli_client_call(client, call)) {
            is_more = call->response.esi_list.more;
            add_page(listing, call);
        } else {
            result = cli_client_report(client, &call->response);
            (void)model_call_free(call);
        }
    }
    (void)cli_client_free(client);
    return result;
}

static enum model_exit run_list(const struct cli_esi *esi, const char *const *arguments)
{
    struct listing listing = {0};
    struct rt_buffer key = {0};
    struct rt_error err = RT_ERROR_INIT;
    enum model_exit result;

    if (arguments[0] != NULL &&
        cli_escape_take_word(arguments[0], esi->is_escaped, &key, &err) != RT_OK) {
        result = cli_report_usage(esi->context, &err);
    } else {
        result = ask_pages(esi, rt_buffer_bytes(&key), &listing);
        if (result == MODEL_EXIT_OK)
            result = print_listing(esi, &listing);
    }
    for (size_t i = 0; i < listing.n_pages; i++)
        (void)model_call_free(listing.pages[i]);
    rt_free(listing.pages);
    rt_free(listing.esis);
    rt_buffer_deinit(&key);
    return result;
}

/* ---- the planner ----------------------------------------------------------------------------- */

static enum model_exit ask_nothing(const struct cli_esi *esi, enum model_call_kind kind,
                                   append_fn append)
{
    struct model_call *call = model_call_new(kind);
    enum model_exit result = ask(esi, esi->address, call, append);

    (void)model_call_free(call);
    return result;
}

static enum model_exit run_pause(const struct cli_esi *esi, const char *const *arguments)
{
    (void)arguments;
    return ask_nothing(esi, MODEL_CALL_ESI_PAUSE, append_paused);
}

static enum model_exit run_continue(const struct cli_esi *esi, const char *const *arguments)
{
    (void)arguments;
    return ask_nothing(esi, MODEL_CALL_ESI_RESUME, append_paused);
}

static enum model_exit run_deadlock(const struct cli_esi *esi, const char *const *arguments)
{
    (void)arguments;
    return ask_nothing(esi, MODEL_CALL_ESI_DEADLOCK, append_deadlock);
}

/* ---- keys ------------------------------------------------------------------------------------ */

static enum model_exit run_block(const struct cli_esi *esi, const char *const *arguments)
{
    struct model_call *call = model_call_new(MODEL_CALL_ESI_BLOCK);
    struct rt_buffer key = {0};
    struct rt_error err = RT_ERROR_INIT;
    enum model_exit result;

    call->request.esi = (struct model_esi_request){0};
    if (cli_escape_take_word(arguments[0], esi->is_escaped, &key, &err) == RT_OK &&
        take_id(arguments[1], &call->request.esi.id, &err) == RT_OK) {
        call->request.esi.key = rt_buffer_bytes(&key);
        result = ask(esi, esi->address, call, append_blocked);
    } else {
        result = cli_report_usage(esi->context, &err);
    }
    rt_buffer_deinit(&key);
    (void)model_call_free(call);
    return result;
}

static enum model_exit run_unblock(const struct cli_esi *esi, const char *const *arguments)
{
    struct model_call *call = model_call_new(MODEL_CALL_ESI_UNBLOCK);
    struct rt_buffer key = {0};
    struct rt_error err = RT_ERROR_INIT;
    enum model_exit result;

    call->request.esi = (struct model_esi_request){0};
    if (cli_escape_take_word(arguments[0], esi->is_escaped, &key, &err) == RT_OK) {
        call->request.esi.key = rt_buffer_bytes(&key);
        result = ask(esi, esi->address, call, append_unblocked);
    } else {
        result = cli_report_usage(esi->context, &err);
    }
    rt_buffer_deinit(&key);
    (void)model_call_free(call);
    return result;
}

static enum model_exit run_status(const struct cli_esi *esi, const char *const *arguments)
{
    struct model_call *call = model_call_new(MODEL_CALL_KEY_STATUS);
    struct rt_buffer key = {0};
    struct rt_error err = RT_ERROR_INIT;
    enum model_exit result;

    if (cli_escape_take_word(arguments[0], esi->is_escaped, &key, &err) == RT_OK) {
        call->request.key_status.key = rt_buffer_bytes(&key);
        result = ask(esi, NULL, call, append_key_status);
    } else {
        result = cli_report_usage(esi->context, &err);
    }
    rt_buffer_deinit(&key);
    (void)model_call_free(call);
    return result;
}

/* ---- the table ------------------------------------------------------------------------------- */

const struct cli_esi_action cli_esi_actions[] = {
    {"submit", NULL, "SCRIPT", 1, 0, "hand a script over, and tell its number", run_submit},
    {"wait", NULL, "ID", 1, 0, "wait until an ESI has ended", run_wait},
    {"list", "listar", "[KEY]", 0, 1, "the ESIs, or those that wait for KEY", run_list},
    {"pause", "pausar", "", 0, 0, "begin no further line", run_pause},
    {"continue", "continuar", "", 0, 0, "begin lines again", run_continue},
    {"block", "bloquear", "KEY ID", 2, 0, "make an ESI take KEY, or wait for it", run_block},
    {"unblock", "desbloquear", "KEY", 1, 0, "make the first that waits for KEY ready", run_unblock},
    {"kill", NULL, "ID", 1, 0, "end an ESI and free its locks", run_kill},
    {"status", NULL, "KEY", 1, 0, "value, instance and lock of KEY", run_status},
    {"deadlock", NULL, "", 0, 0, "the ESIs that wait for each other", run_deadlock},
};
const size_t cli_esi_n_actions = RT_ARRAY_SIZE(cli_esi_actions);

const struct cli_esi_action *cli_esi_action_find(const char *name)
{
    for (size_t i = 0; i < cli_esi_n_actions; i++) {
        const struct cli_esi_action *action = &cli_esi_actions[i];

        if (strcmp(action->name, name) == 0 ||
            (action->alias != NULL && strcmp(action->alias, name) == 0))
            return action;
    }
    return NULL;
}

/* NULL when the words are wrong. */
static const struct cli_esi_action *check_words(const char *const *words, struct rt_error *err)
{
    const struct cli_esi_action *action = cli_esi_action_find(words[0]);
    size_t n = 0;

    if (action == NULL) {
        (void)rt_fail(err, RT_INVALID_ARGUMENT, "unknown action '%.64s' (see --help)", words[0]);
        return NULL;
    }
    while (words[1 + n] != NULL)
        n++;
    if (n >= action->n_arguments && n <= action->n_arguments + action->n_optional)
        return action;
    if (n < action->n_arguments)
        (void)rt_fail(err, RT_INVALID_ARGUMENT, "%s needs %s", words[0], action->arguments);
    else
        (void)rt_fail(err, RT_INVALID_ARGUMENT, "unexpected argument '%.64s' of %s",
                      words[1 + action->n_arguments + action->n_optional], words[0]);
    return NULL;
}

enum model_exit cli_esi_action_run(const struct cli_esi *esi, const char *const *words)
{
    struct rt_error err = RT_ERROR_INIT;
    const struct cli_esi_action *action = check_words(words, &err);

    return action == NULL ? cli_report_usage(esi->context, &err) : action->run(esi, words + 1);
}

void cli_esi_action_append_help(struct rt_buffer *buffer)
{
    for (size_t i = 0; i < cli_esi_n_actions; i++) {
        const struct cli_esi_action *action = &cli_esi_actions[i];
        RT_CLEANUP(rt_freep)
        char *usage = rt_xasprintf("%s%s%s %s", action->name, action->alias ? "|" : "",
                                   action->alias ? action->alias : "", action->arguments);

        rt_buffer_printf(buffer, "%-27s %s\n", usage, action->summary);
    }
}
