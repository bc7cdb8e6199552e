/*
 * Requests of the load generator: operations as calls. Each is encoded before its start returns, so
 * names, values and the operations of a batch are made in memory that all slots share. Under the
 * link's lock.
 */
#include "cli/bench_internal.h"

static struct rt_bytes name_of(const struct cli_bench *bench, uint32_t key, size_t i)
{
    char *name = bench->names[i];
    size_t prefix = strlen(bench->options->key_prefix);

    memcpy(name, bench->options->key_prefix, prefix);
    for (size_t digit = 10; digit > 0; digit--, key /= 10)
        name[prefix + digit - 1] = (char)('0' + key % 10);
    return rt_bytes_of(name, prefix + 10);
}

static struct rt_bytes value_of(const struct cli_bench *bench,
                                const struct cli_bench_operation *operation)
{
    return rt_bytes_of(bench->value, operation->value_size);
}

/* Only a PUT makes a key that nobody knows. */
static bool is_put(const struct cli_bench *bench)
{
    return bench->options->is_durable || bench->phase == CLI_BENCH_PREPARE;
}

static enum model_call_kind kind_of(const struct cli_bench *bench,
                                    const struct cli_bench_operation *operation)
{
    if (operation->is_read)
        return MODEL_CALL_READ;
    return is_put(bench) ? MODEL_CALL_PUT : MODEL_CALL_SET;
}

static enum model_statement_kind statement_of(const struct cli_bench *bench,
                                              const struct cli_bench_operation *operation)
{
    if (operation->is_read)
        return MODEL_STATEMENT_READ;
    return is_put(bench) ? MODEL_STATEMENT_PUT : MODEL_STATEMENT_SET;
}

static void start(struct cli_bench_slot *slot, const char *address)
{
    slot->call.address = address;
    slot->bench->n_active++;
    cli_link_start(&slot->link, &slot->call);
}

void cli_bench_ask_route(struct cli_bench_slot *slot)
{
    struct cli_bench *bench = slot->bench;
    const struct cli_bench_operation *operation = &slot->operations[0];

    slot->call.request.kind = MODEL_CALL_ROUTE;
    slot->call.request.route = (struct model_route_request){
        .key = name_of(bench, operation->key, 0),
        .operation = statement_of(bench, operation),
        .value_size = operation->value_size,
    };
    start(slot, bench->options->coordinator);
}

void cli_bench_send_statement(struct cli_bench_slot *slot)
{
    struct cli_bench *bench = slot->bench;
    const struct cli_bench_operation *operation = &slot->operations[0];

    slot->call.request.kind = MODEL_CALL_EXECUTE;
    slot->call.request.execute = (struct model_execute_request){
        .session_id = bench->session.id,
        .kind = statement_of(bench, operation),
        .key = name_of(bench, operation->key, 0),
        .value = value_of(bench, operation),
    };
    start(slot, bench->options->coordinator);
}

static void fill_single(struct cli_bench_slot *slot, const struct model_route *route)
{
    struct cli_bench *bench = slot->bench;
    const struct cli_bench_operation *operation = &slot->operations[0];
    struct model_header *header = &slot->call.request.data.header;

    slot->call.request.kind = kind_of(bench, operation);
    slot->call.request.data = (struct model_data_request){.value = value_of(bench, operation)};
    header->cluster_id = route->cluster_id;
    header->key = name_of(bench, operation->key, 0);
    header->epoch = operation->epoch;
    memcpy(header->owner, route->owner, sizeof(header->owner));
    header->incarnation = route->incarnation;
}

static void fill_batch(struct cli_bench_slot *slot, const struct model_route *route)
{
    struct cli_bench *bench = slot->bench;
    struct model_pipeline_request *request = &slot->call.request.pipeline;

    for (uint32_t i = 0; i < slot->n_operations; i++) {
        const struct cli_bench_operation *operation = &slot->operations[i];

        bench->pipelined[i] = (struct model_pipeline_operation){
            .kind = kind_of(bench, operation),
            .key = name_of(bench, operation->key, i),
            .value = value_of(bench, operation),
            .epoch = operation->epoch,
        };
    }
    slot->call.request.kind = MODEL_CALL_PIPELINE;
    *request = (struct model_pipeline_request){
        .cluster_id = route->cluster_id,
        .incarnation = route->incarnation,
        .operations = bench->pipelined,
        .n_operations = slot->n_operations,
    };
    memcpy(request->owner, route->owner, sizeof(request->owner));
}

void cli_bench_send_to(struct cli_bench_slot *slot, const struct cli_bench_owner *owner)
{
    if (slot->bench->options->path == CLI_BENCH_PIPELINED)
        fill_batch(slot, &owner->route);
    else
        fill_single(slot, &owner->route);
    start(slot, owner->route.address);
}
