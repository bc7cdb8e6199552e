/*
 * The verbs status, keys and instances: see query.h. Each asks the coordinator's AdminService and
 * prints nothing before all of the answer is there. One thread.
 */
#include "cli/query.h"

#include "cli/client.h"
#include "cli/escape.h"
#include "cli/inspect.h"
#include "cli/report.h"

/* Whole lists in one buffer: far more keys than anybody reads. */
#define RESULT_MAX ((size_t)1024 * 1024 * 1024)

/* ---- status ---------------------------------------------------------------------------------- */

static enum model_exit ask_status(struct cli_context *context, struct cli_client *client,
                                  struct rt_bytes key)
{
    struct model_call *call = model_call_new(MODEL_CALL_KEY_STATUS);
    struct rt_buffer buffer = {0};
    enum model_exit result;

    call->request.key_status.key = key;
    if (cli_client_call(client, call)) {
        cli_inspect_append_status(key, &call->response.key_status, context->common.output, &buffer);
        result = cli_report_result(context, &buffer);
    } else {
        result = cli_client_report(client, &call->response);
    }
    rt_buffer_deinit(&buffer);
    (void)model_call_free(call);
    return result;
}

struct status_config {
    bool is_escaped;
};

static const struct rt_option status_options[] = {
    {.name = "escaped",
     .letter = 'e',
     .type = RT_OPTION_FLAG,
     .help = "In KEY \\xNN stands for a byte and \\\\ for a backslash, as keys are shown.",
     .offset = offsetof(struct status_config, is_escaped)},
};

static enum model_exit run_status(struct cli_context *context, const char *const *arguments,
                                  const void *config)
{
    const struct status_config *status = config;
    struct rt_buffer key = {0};
    struct rt_error err = RT_ERROR_INIT;
    struct cli_client *client;
    enum model_exit result;

    if (cli_escape_take_word(arguments[0], status->is_escaped, &key, &err) == RT_OK) {
        client = cli_client_new(context);
        result = ask_status(context, client, rt_buffer_bytes(&key));
        (void)cli_client_free(client);
    } else {
        result = cli_report_usage(context, &err);
    }
    rt_buffer_deinit(&key);
    return result;
}

static const char *const status_examples[] = {
    "redistinto status orders/17",
    "redistinto status -e 'key\\x00with\\x00nul' -o json",
    NULL,
};

const struct cli_verb cli_status_verb = {
    .name = "status",
    .arguments = "KEY",
    .n_arguments = 1,
    .summary = "show everything about one key",
    .description =
        "Shows a key's value, owner, lock and waiters, and for a key without owner where "
        "its first SET would place it. Changes nothing, and asks nothing of whoever holds "
        "the key. An unknown key is an answer like any other.",
    .examples = status_examples,
    .options = status_options,
    .n_options = RT_ARRAY_SIZE(status_options),
    .config_size = sizeof(struct status_config),
    .run = run_status,
};

/* ---- lists ----------------------------------------------------------------------------------- */

/* Adds a page to the list; returns the last name or key of it, and whether more follows. */
typedef bool (*page_fn)(struct cli_inspect_list *list, const struct model_response *response,
                        struct rt_bytes *ret_last);

/* All pages, one call after the other; the one before keeps the place. */
static enum model_exit ask_pages(struct cli_client *client, enum model_call_kind kind,
                                 struct rt_bytes prefix, page_fn add, struct cli_inspect_list *list)
{
    struct model_call *previous = NULL;
    struct rt_bytes last = {0};
    enum model_exit result = MODEL_EXIT_OK;
    bool is_more = true;

    while (is_more) {
        struct model_call *call = model_call_new(kind);

        call->request.page.prefix = prefix;
        call->request.page.after = last;
        is_more = cli_client_call(client, call);
        if (is_more)
            is_more = add(list, &call->response, &last);
        else
            result = cli_client_report(client, &call->response);
        (void)model_call_free(previous);
        previous = call;
    }
    (void)model_call_free(previous);
    return result;
}

static enum model_exit print_list(struct cli_context *context, struct cli_inspect_list *list,
                                  const struct rt_buffer *buffer, enum model_exit asked)
{
    (void)cli_inspect_list_end(list);
    return asked == MODEL_EXIT_OK ? cli_report_result(context, buffer) : asked;
}

static bool add_instances(struct cli_inspect_list *list, const struct model_response *response,
                          struct rt_bytes *ret_last)
{
    const struct model_list_instances_response *page = &response->list_instances;

    cli_inspect_instances_add(list, page);
    if (page->n_instances > 0)
        *ret_last = rt_bytes_of_string(page->instances[page->n_instances - 1].name);
    return page->more && page->n_instances > 0;
}

static enum model_exit run_instances(struct cli_context *context, const char *const *arguments,
                                     const void *config)
{
    struct cli_client *client = cli_client_new(context);
    struct rt_buffer buffer = {.limit = RESULT_MAX};
    struct cli_inspect_list *list = cli_inspect_instances_begin(context->common.output, &buffer);
    enum model_exit result =
        ask_pages(client, MODEL_CALL_LIST_INSTANCES, (struct rt_bytes){0}, add_instances, list);

    (void)arguments;
    (void)config;
    result = print_list(context, list, &buffer, result);
    rt_buffer_deinit(&buffer);
    (void)cli_client_free(client);
    return result;
}

static const char *const instances_examples[] = {
    "redistinto instances",
    "redistinto instances -o json",
    NULL,
};

const struct cli_verb cli_instances_verb = {
    .name = "instances",
    .arguments = "",
    .summary = "list the instances that the coordinator remembers",
    .description =
        "Lists instances in the order of their first registration, dead and departed ones "
        "too.",
    .examples = instances_examples,
    .run = run_instances,
};

struct keys_config {
    const char *prefix;
    bool is_escaped;
};

static const struct rt_option keys_options[] = {
    {.name = "prefix",
     .type = RT_OPTION_STRING,
     .help = "Only keys that begin with this.",
     .argument = "TEXT",
     .offset = offsetof(struct keys_config, prefix)},
    {.name = "escaped",
     .letter = 'e',
     .type = RT_OPTION_FLAG,
     .help = "In --prefix \\xNN stands for a byte and \\\\ for a backslash, as keys are shown.",
     .offset = offsetof(struct keys_config, is_escaped)},
};

static bool add_keys(struct cli_inspect_list *list, const struct model_response *response,
                     struct rt_bytes *ret_last)
{
    const struct model_list_keys_response *page = &response->list_keys;

    cli_inspect_keys_add(list, page);
    if (page->n_keys > 0)
        *ret_last = page->keys[page->n_keys - 1].key;
    return page->more && page->n_keys > 0;
}

static enum model_exit list_keys(struct cli_context *context, struct rt_bytes prefix)
{
    struct cli_client *client = cli_client_new(context);
    struct rt_buffer buffer = {.limit = RESULT_MAX};
    struct cli_inspect_list *list = cli_inspect_keys_begin(context->common.output, &buffer);
    enum model_exit result = ask_pages(client, MODEL_CALL_LIST_KEYS, prefix, add_keys, list);

    result = print_list(context, list, &buffer, result);
    rt_buffer_deinit(&buffer);
    (void)cli_client_free(client);
    return result;
}

static enum model_exit run_keys(struct cli_context *context, const char *const *arguments,
                                const void *config)
{
    const struct keys_config *keys = config;
    const char *word = keys->prefix == NULL ? "" : keys->prefix;
    struct rt_buffer prefix = {0};
    struct rt_error err = RT_ERROR_INIT;
    enum model_exit result;

    (void)arguments;
    if (cli_escape_take_word(word, keys->is_escaped, &prefix, &err) == RT_OK)
        result = list_keys(context, rt_buffer_bytes(&prefix));
    else
        result = cli_report_usage(context, &err);
    rt_buffer_deinit(&prefix);
    return result;
}

static const char *const keys_examples[] = {
    "redistinto keys",
    "redistinto keys --prefix orders/ -o json",
    NULL,
};

const struct cli_verb cli_keys_verb = {
    .name = "keys",
    .arguments = "",
    .summary = "list keys, their owners and who holds them",
    .description = "Lists known keys in ascending order of their bytes. Keys that come or go "
                   "meanwhile may or may not be listed. Bytes that do not print are shown as \\xNN "
                   "and a backslash as \\\\: verbs read that again with --escaped.",
    .examples = keys_examples,
    .options = keys_options,
    .n_options = RT_ARRAY_SIZE(keys_options),
    .config_size = sizeof(struct keys_config),
    .run = run_keys,
};
