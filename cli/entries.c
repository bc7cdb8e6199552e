/*
 * The verb entries: see query.h. Asks the coordinator where the instance is, and the instance for
 * its entries, a page at a time; prints nothing before all of the answer is there. One thread.
 */
#include <string.h>

#include "cli/client.h"
#include "cli/entry_map.h"
#include "cli/query.h"
#include "cli/report.h"

/* As for other lists: far more entries than anybody reads. */
#define RESULT_MAX ((size_t)1024 * 1024 * 1024)

static const struct model_instance_info *find(const struct model_list_instances_response *page,
                                              const char *name)
{
    for (size_t i = 0; i < page->n_instances; i++)
        if (strcmp(page->instances[i].name, name) == 0)
            return &page->instances[i];
    return NULL;
}

static enum model_exit report_unknown(struct cli_context *context, const char *name)
{
    struct rt_error err = RT_ERROR_INIT;

    (void)rt_fail(&err, RT_NOT_FOUND, "the coordinator knows no instance '%s'", name);
    return cli_report_error(context, &err);
}

/* Fills ret_address, or reports. */
static enum model_exit locate(struct cli_context *context, struct cli_client *client,
                              const char *name, char ret_address[MODEL_ADDRESS_MAX + 1])
{
    char after[MODEL_NAME_MAX + 1] = "";
    enum model_exit result = MODEL_EXIT_OK;
    bool is_more = true;
    bool is_found = false;

    while (is_more && !is_found && result == MODEL_EXIT_OK) {
        struct model_call *call = model_call_new(MODEL_CALL_LIST_INSTANCES);
        const struct model_list_instances_response *page = &call->response.list_instances;

        call->request.page.after = rt_bytes_of_string(after);
        if (cli_client_call(client, call)) {
            const struct model_instance_info *info = find(page, name);

            is_found = info != NULL;
            is_more = page->more && page->n_instances > 0;
            if (is_found)
                memcpy(ret_address, info->address, sizeof(info->address));
            if (is_more)
                memcpy(after, page->instances[page->n_instances - 1].name, sizeof(after));
        } else {
            result = cli_client_report(client, &call->response);
        }
        (void)model_call_free(call);
    }
    if (result == MODEL_EXIT_OK && !is_found)
        result = report_unknown(context, name);
    return result;
}

static enum model_exit ask_pages(struct cli_client *client, const char *address,
                                 struct cli_entry_map *map)
{
    enum model_exit result = MODEL_EXIT_OK;
    uint32_t first = 0;
    bool is_more = true;

    while (is_more) {
        struct model_call *call = model_call_new(MODEL_CALL_LIST_ENTRIES);
        const struct model_list_entries_response *page = &call->response.list_entries;

        call->address = address;
        call->request.list_entries.first_index = first;
        is_more = false;
        if (cli_client_call(client, call)) {
            cli_entry_map_add(map, page);
            is_more = page->more && page->n_entries > 0 &&
                      page->entries[page->n_entries - 1].index < UINT32_MAX;
            if (is_more)
                first = page->entries[page->n_entries - 1].index + 1;
        } else {
            result = cli_client_report(client, &call->response);
        }
        (void)model_call_free(call);
    }
    return result;
}

static enum model_exit run_entries(struct cli_context *context, const char *const *arguments,
                                   const void *config)
{
    struct cli_client *client = cli_client_new(context);
    struct rt_buffer buffer = {.limit = RESULT_MAX};
    char address[MODEL_ADDRESS_MAX + 1];
    enum model_exit result = locate(context, client, arguments[0], address);

    (void)config;
    if (result == MODEL_EXIT_OK) {
        struct cli_entry_map *map =
            cli_entry_map_begin(arguments[0], context->common.output, &buffer);

        result = ask_pages(client, address, map);
        (void)cli_entry_map_end(map);
    }
    if (result == MODEL_EXIT_OK)
        result = cli_report_result(context, &buffer);
    rt_buffer_deinit(&buffer);
    (void)cli_client_free(client);
    return result;
}

static const char *const entries_examples[] = {
    "redistinto entries instance-1",
    "redistinto entries instance-1 -o json",
    NULL,
};

const struct cli_verb cli_entries_verb = {
    .name = "entries",
    .arguments = "INSTANCE",
    .n_arguments = 1,
    .summary = "show which value is in which entry of an instance",
    .description =
        "Shows the entries of an instance's memory: for each one in use its key, where that part "
        "begins in the value and how many bytes of it are used, whether the value takes this one "
        "entry (atomic) and so may be replaced, the free ones, and where the search for the next "
        "value to be replaced begins. Up to 4096 entries are drawn too: o an atomic value, < = > a "
        "longer one, + one that is being written, . free. Values that are in the instance's store "
        "only take no entries. Changes "
        "nothing and counts as no use of a value.",
    .examples = entries_examples,
    .run = run_entries,
};
