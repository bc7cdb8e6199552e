/*
 * Hosts and their clients: see rig.h.
 */
#include "tests/unit/host/rig.h"

#include <stdio.h>
#include <string.h>

#include "redistinto/v1/coordinator.pb-c.h"
#include "redistinto/v1/instance.pb-c.h"
#include "redistinto/v1/registry.pb-c.h"
#include "runtime/host/inbound.h"
#include "runtime/wire/request.h"
#include "runtime/wire/response.h"

/* ---- nodes ---- */

static void start_server(struct host_node *node)
{
    static const ProtobufCServiceDescriptor *const services[] = {
        &redistinto__v1__coordinator_service__descriptor,
        &redistinto__v1__instance_service__descriptor,
        &redistinto__v1__registry_service__descriptor,
    };
    struct rpc_server_options options = {.queue_messages = node->rig->queue_messages};
    uint16_t port;
    enum rt_code code;

    node->server = rpc_server_new(node->rig->runtime, &options);
    for (size_t i = 0; i < RT_ARRAY_SIZE(services); i++) {
        code = host_serve(node->host, node->server, services[i], NULL);
        rt_assert(code == RT_OK);
    }
    code = rpc_server_listen(node->server, node->address, &port, NULL);
    rt_assert(code == RT_OK);
    (void)snprintf(node->address, sizeof(node->address), "127.0.0.1:%u", port);
    rpc_server_start(node->server);
}

static void after_step(void *ctx)
{
    struct host_node *node = ctx;

    rt_assert(!node->core.is_in_step);
    latch_add(&node->steps);
}

static void node_init(struct host_rig *rig, struct host_node *node)
{
    struct host_options options = {
        .runtime = rig->runtime,
        .ops = &fake_core_ops,
        .core = &node->core,
        .after_step = after_step,
        .ctx = node,
    };

    node->rig = rig;
    latch_init(&node->steps);
    fake_core_init(&node->core, rig->runtime);
    node->host = host_new(&options);
    (void)snprintf(node->address, sizeof(node->address), "127.0.0.1:0");
    start_server(node);
}

static void *loop_main(void *ctx)
{
    rpc_runtime_run(ctx);
    return NULL;
}

void host_rig_init(struct host_rig *rig, unsigned n_nodes)
{
    struct rpc_runtime_options options = {.n_threads = rig->n_threads, .stop_grace_ms = 1};
    int result;

    rig->runtime = rpc_runtime_new(&options);
    rig->n_nodes = n_nodes;
    for (unsigned i = 0; i < n_nodes; i++)
        node_init(rig, &rig->nodes[i]);
    rig->channel = rpc_channel_new(rig->runtime, rig->nodes[0].address, NULL);
    result = pthread_create(&rig->thread, NULL, loop_main, rig->runtime);
    rt_assert(result == 0);
}

void host_rig_stop(struct host_rig *rig)
{
    for (unsigned i = 0; i < rig->n_nodes; i++)
        host_stop(rig->nodes[i].host);
    rpc_runtime_stop(rig->runtime);
    (void)pthread_join(rig->thread, NULL);
}

void host_rig_deinit(struct host_rig *rig)
{
    for (unsigned i = 0; i < rig->n_nodes; i++) {
        rig->nodes[i].host = host_free(rig->nodes[i].host);
        fake_core_deinit(&rig->nodes[i].core);
    }
    rig->runtime = rpc_runtime_free(rig->runtime);
}

struct errand {
    struct rpc_job job;
    void (*fn)(void *ctx);
    void *ctx;
    struct latch latch;
};

static void on_errand(struct rpc_job *job)
{
    struct errand *errand = RT_CONTAINER_OF(job, struct errand, job);

    errand->fn(errand->ctx);
    latch_add(&errand->latch);
}

void host_rig_on_loop(struct host_rig *rig, void (*fn)(void *ctx), void *ctx)
{
    struct errand errand = {.fn = fn, .ctx = ctx};

    latch_init(&errand.latch);
    rpc_runtime_post(rig->runtime, &errand.job, on_errand);
    latch_wait(&errand.latch, 1);
}

struct drain {
    struct rpc_server *server;
    uint32_t grace_ms;
    struct latch latch;
};

static void on_drained(void *ctx)
{
    latch_add(ctx);
}

static void drain(void *ctx)
{
    struct drain *drain = ctx;

    rpc_server_drain(drain->server, drain->grace_ms, on_drained, &drain->latch);
}

void host_node_down(struct host_node *node, uint32_t grace_ms)
{
    struct drain order = {.server = node->server, .grace_ms = grace_ms};

    latch_init(&order.latch);
    host_rig_on_loop(node->rig, drain, &order);
    latch_wait(&order.latch, 1);
    node->server = NULL;
}

static void start_again(void *ctx)
{
    start_server(ctx);
}

void host_node_up(struct host_node *node)
{
    host_rig_on_loop(node->rig, start_again, node);
}

static void look(void *core, void *argument)
{
    (void)core;
    (void)argument;
}

void host_node_settle(struct host_node *node)
{
    host_read(node->host, look, NULL);
}

struct find_result {
    unsigned id;
    struct fake_result *ret_result;
    bool is_found;
};

static void find_result(void *pointer, void *argument)
{
    struct fake_core *core = pointer;
    struct find_result *find = argument;

    for (unsigned i = 0; i < core->n_results && i < FAKE_LOG_MAX; i++) {
        if (core->results[i].id == find->id) {
            *find->ret_result = core->results[i];
            find->is_found = true;
        }
    }
}

struct fake_result host_node_call(struct host_node *node, struct fake_order *order)
{
    struct fake_result result;
    struct find_result find = {.ret_result = &result};
    unsigned n_done = latch_count(&node->core.dones);

    host_node_step(node, fake_make_call, order);
    find.id = order->ret_id;
    while (!find.is_found) {
        latch_wait(&node->core.dones, ++n_done);
        host_read(node->host, find_result, &find);
    }
    return result;
}

/* ---- unary clients ---- */

static void on_response(struct rpc_client_call *rpc, const ProtobufCMessage *message,
                        const struct rt_error *err, void *ctx)
{
    struct client_call *call = ctx;
    struct model_response response = {0};
    enum rt_code code;

    (void)rpc;
    wire_response_decode(call->kind, message, err, &call->arena, &response);
    code = model_response_copy(&call->response, &response, call->kind, &call->arena, NULL);
    rt_assert(code == RT_OK);
    latch_add(&call->done);
}

void client_call_send(struct host_rig *rig, struct client_call *call, enum model_call_kind kind,
                      const ProtobufCMessage *message, uint32_t timeout_ms)
{
    const struct wire_method *method = wire_method_of(kind);
    struct rpc_client_options options = {.timeout_ms = timeout_ms};
    struct rpc_client_method target;

    memset(call, 0, sizeof(*call));
    call->kind = kind;
    latch_init(&call->done);
    rpc_client_method_of(method->service, method->name, &target);
    call->rpc =
        rpc_client_call_cancellable(rig->channel, &target, message, &options, on_response, call);
}

void client_call_start(struct host_rig *rig, struct client_call *call, enum model_call_kind kind,
                       uint64_t tag, uint32_t timeout_ms)
{
    struct rt_arena arena = {0};
    struct model_request request;
    ProtobufCMessage *message;
    enum rt_code code;

    fake_request(&request, kind, tag, 16, &arena);
    code = wire_request_encode(&request, &arena, &message, NULL);
    rt_assert(code == RT_OK);
    client_call_send(rig, call, kind, message, timeout_ms);
    rt_arena_reset(&arena);
}

void client_call_cancel(struct client_call *call)
{
    rpc_client_call_cancel(call->rpc);
}

void client_call_wait(struct client_call *call)
{
    latch_wait(&call->done, 1);
}

void client_call_deinit(struct client_call *call)
{
    call->rpc = rpc_client_call_unref(call->rpc);
    rt_arena_reset(&call->arena);
}

enum rt_code client_call_now(struct host_rig *rig, enum model_call_kind kind, uint64_t tag)
{
    struct client_call call;
    enum rt_code code;

    client_call_start(rig, &call, kind, tag, 20000);
    client_call_wait(&call);
    code = call.response.code;
    if (code == RT_OK)
        rt_assert(fake_tag_of_response(&call.response, kind) == tag);
    client_call_deinit(&call);
    return code;
}

/* ---- streams ---- */

static void on_message(struct rpc_client_stream *rpc, const ProtobufCMessage *message, void *ctx)
{
    struct client_stream *stream = ctx;
    struct client_answer *answer = &stream->answers[stream->n_answers++ % FAKE_LOG_MAX];
    struct rt_arena arena = {0};
    struct model_response response = {0};

    wire_response_decode(stream->kind, message, NULL, &arena, &response);
    *answer = (struct client_answer){
        .id = wire_response_exchange_id(message),
        .code = response.code,
    };
    if (response.code == RT_OK)
        answer->tag = fake_tag_of_response(&response, stream->kind);
    else
        answer->reason = response.error.reason;
    rt_arena_reset(&arena);
    rpc_client_stream_read_next(rpc);
    latch_add(&stream->messages);
}

static void on_done(struct rpc_client_stream *rpc, const struct rt_error *err, void *ctx)
{
    struct client_stream *stream = ctx;
    struct rt_arena arena = {0};
    struct model_response response = {0};

    (void)rpc;
    stream->code = err ? err->code : RT_OK;
    if (err)
        wire_response_decode(stream->kind, NULL, err, &arena, &response);
    stream->reason = response.error.reason;
    stream->applied = response.error.applied;
    rt_arena_reset(&arena);
    latch_add(&stream->done);
}

static const struct rpc_client_stream_handlers handlers = {
    .on_message = on_message,
    .on_done = on_done,
};

void client_stream_open(struct host_rig *rig, struct client_stream *stream,
                        enum model_call_kind kind)
{
    const struct wire_method *method = wire_method_of(kind);
    struct rpc_client_options options = {.timeout_ms = RPC_NO_TIMEOUT};
    struct rpc_client_method target;

    stream->kind = kind;
    latch_init(&stream->messages);
    latch_init(&stream->done);
    rpc_client_method_of(method->service, method->name, &target);
    stream->rpc = rpc_client_stream_open(rig->channel, &target, &options, &handlers, stream);
    if (!stream->is_reading_paused)
        rpc_client_stream_read_next(stream->rpc);
}

enum rt_code client_stream_send(struct client_stream *stream, uint64_t id, uint64_t tag,
                                uint32_t timeout_ms, uint32_t value_size)
{
    struct wire_exchange header = {.id = id, .timeout_ms = timeout_ms};
    struct rt_arena arena = {0};
    struct model_request request;
    ProtobufCMessage *message;
    enum rt_code code;

    fake_request(&request, stream->kind, tag, value_size, &arena);
    code = wire_request_encode(&request, &arena, &message, NULL);
    rt_assert(code == RT_OK);
    wire_request_set_exchange(message, &header);
    code = rpc_client_stream_send(stream->rpc, message);
    rt_arena_reset(&arena);
    return code;
}

void client_stream_deinit(struct client_stream *stream)
{
    stream->rpc = rpc_client_stream_unref(stream->rpc);
}
