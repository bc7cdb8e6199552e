/*
 * The verb health: see query.h. Asks grpc.health.v1 of the coordinator and of each instance that it
 * lists; a member that cannot be asked does not serve. One thread.
 */
#include "cli/client.h"
#include "cli/inspect.h"
#include "cli/query.h"
#include "cli/report.h"

struct survey {
    struct cli_context *context;
    struct cli_client *client;
    struct cli_inspect_list *list;
    bool all_serve;
};

static void check(struct survey *survey, struct cli_inspect_health health, size_t n_left)
{
    struct rt_error err = RT_ERROR_INIT;

    if (cli_client_check_health(survey->client, health.address, n_left, &health.is_serving, &err) !=
        RT_OK)
        health.message = err.message;
    survey->all_serve &= health.is_serving;
    cli_inspect_health_add(survey->list, &health);
}

static void add_coordinator(struct survey *survey)
{
    struct cli_inspect_health health = {
        .name = "coordinator",
        .address = survey->context->common.coordinator,
    };

    check(survey, health, 2);
}

/* One that said goodbye is shown, but nobody expects it to serve. */
static void add_instance(struct survey *survey, const struct model_instance_info *instance,
                         size_t n_left)
{
    struct cli_inspect_health health = {
        .name = instance->name,
        .address = instance->address,
        .state = model_member_state_name(instance->state),
    };

    if (instance->state == MODEL_MEMBER_LEFT)
        cli_inspect_health_add(survey->list, &health);
    else
        check(survey, health, n_left);
}

/* MODEL_MEMBERS_MAX fits into a few pages; they are asked for one by one. */
static enum model_exit add_instances(struct survey *survey)
{
    struct model_call *previous = NULL;
    struct rt_bytes last = {0};
    enum model_exit result = MODEL_EXIT_OK;
    bool is_more = true;

    while (is_more) {
        struct model_call *call = model_call_new(MODEL_CALL_LIST_INSTANCES);
        const struct model_list_instances_response *page = &call->response.list_instances;

        call->request.page.after = last;
        is_more = false;
        if (cli_client_call(survey->client, call)) {
            for (size_t i = 0; i < page->n_instances; i++)
                add_instance(survey, &page->instances[i], page->n_instances - i + page->more);
            is_more = page->more && page->n_instances > 0;
        } else {
            result = cli_client_report(survey->client, &call->response);
        }
        if (is_more)
            last = rt_bytes_of_string(page->instances[page->n_instances - 1].name);
        (void)model_call_free(previous);
        previous = call;
    }
    (void)model_call_free(previous);
    return result;
}

static enum model_exit conclude(struct survey *survey, struct rt_buffer *buffer)
{
    enum model_exit result;

    cli_inspect_health_sum(survey->list, survey->all_serve);
    survey->list = cli_inspect_list_end(survey->list);
    result = cli_report_result(survey->context, buffer);
    if (cli_client_is_interrupted(survey->client))
        return MODEL_EXIT_INTERRUPTED;
    if (result == MODEL_EXIT_OK && !survey->all_serve)
        result = MODEL_EXIT_UNAVAILABLE;
    return result;
}

static enum model_exit run_health(struct cli_context *context, const char *const *arguments,
                                  const void *config)
{
    struct rt_buffer buffer = {0};
    struct survey survey = {.context = context, .all_serve = true};
    enum model_exit result = MODEL_EXIT_OK;

    (void)arguments;
    (void)config;
    survey.client = cli_client_new(context);
    survey.list = cli_inspect_health_begin(context->common.output, &buffer);
    add_coordinator(&survey);
    /* Without the coordinator nobody knows the instances; its row tells why. */
    if (survey.all_serve)
        result = add_instances(&survey);
    if (result == MODEL_EXIT_OK)
        result = conclude(&survey, &buffer);
    else
        (void)cli_inspect_list_end(survey.list);
    rt_buffer_deinit(&buffer);
    (void)cli_client_free(survey.client);
    return result;
}

static const char *const health_examples[] = {
    "redistinto health",
    "redistinto health --timeout 1s -o json",
    NULL,
};

const struct cli_verb cli_health_verb = {
    .name = "health",
    .arguments = "",
    .summary = "ask the coordinator and every instance whether they serve",
    .description = "Asks the health service of the coordinator and of each instance that it lists; "
                   "instances that left are only shown. Exit code 5 when any does not serve.",
    .examples = health_examples,
    .run = run_health,
};
