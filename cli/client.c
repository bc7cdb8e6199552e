/*
 * Blocking client: see client.h. The runtime's loop runs on a helper thread; the verb's thread
 * starts a call and waits for its completion, which always comes, by the call's deadline at the
 * latest. What both sides touch is under `lock`; a call is started under it, so its completion
 * waits until the start has returned.
 */
#include "cli/client.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "cli/condition.h"
#include "cli/report.h"
#include "runtime/base/alloc.h"
#include "runtime/base/list.h"
#include "runtime/rpc/client.h"
#include "runtime/rpc/health.pb-c.h"
#include "runtime/wire/request.h"
#include "runtime/wire/response.h"

enum {
    EXCHANGE_ID = 1 /* each stream carries one exchange */
};

struct channel {
    struct rt_list link;
    struct rpc_channel *rpc;
    char *address; /* owned */
};

/* The call under way; one at a time. */
struct exchange {
    struct model_call *call; /* NULL for a health check */
    bool has_response;       /* of a stream */
    bool is_done;
    enum rt_code code; /* of a health check */
    bool is_serving;
    struct rt_error *err;
    struct rpc_client_call *rpc;
    struct rpc_client_stream *stream;
};

struct cli_client {
    struct cli_context *context;
    struct rpc_runtime *runtime;
    uint64_t deadline_us;
    pthread_t loop_thread;
    struct rt_list channels; /* struct channel */
    pthread_mutex_t lock;
    pthread_cond_t done;
    struct exchange exchange;
    atomic_bool is_interrupted; /* ever; written under the lock, read also without */
    bool is_refusing;           /* since then, until winding up begins */
};

/* ---- completion ------------------------------------------------------------------------------ */

static void finish(struct cli_client *client)
{
    client->exchange.is_done = true;
    (void)pthread_cond_signal(&client->done);
}

static const char *address_of(const struct cli_client *client, const struct model_call *call)
{
    return call->address == NULL ? client->context->common.coordinator : call->address;
}

/* The message goes with the callback, so the response is copied. */
static void take_response(struct cli_client *client, const ProtobufCMessage *message,
                          const struct rt_error *err, bool never_sent)
{
    struct model_call *call = client->exchange.call;
    enum model_call_kind kind = call->request.kind;
    struct model_response response;
    struct rt_error copy_error = RT_ERROR_INIT;
    struct rt_error named;

    /* What the transport says does not tell where to. */
    if (err != NULL && err->detail.size == 0) {
        named = *err;
        (void)rt_wrap(&named, "%s", address_of(client, call));
        err = &named;
    }
    wire_response_decode(kind, message, err, &call->arena, &response);
    if (err != NULL && response.error.reason == MODEL_REASON_NONE && never_sent)
        response.error.applied = MODEL_APPLIED_NO;
    if (model_response_copy(&call->response, &response, kind, &call->arena, &copy_error) != RT_OK)
        model_response_fail(&call->response, MODEL_REASON_LIMIT_REACHED, "%s", copy_error.message);
}

static void on_unary(struct rpc_client_call *rpc, const ProtobufCMessage *response,
                     const struct rt_error *err, void *ctx)
{
    struct cli_client *client = ctx;

    (void)pthread_mutex_lock(&client->lock);
    take_response(client, response, err, err != NULL && rpc_client_call_never_sent(rpc));
    finish(client);
    (void)pthread_mutex_unlock(&client->lock);
}

static void on_stream_message(struct rpc_client_stream *stream, const ProtobufCMessage *message,
                              void *ctx)
{
    struct cli_client *client = ctx;

    (void)pthread_mutex_lock(&client->lock);
    take_response(client, message, NULL, false);
    client->exchange.has_response = true;
    (void)pthread_mutex_unlock(&client->lock);
    rpc_client_stream_finish_writes(stream);
    rpc_client_stream_read_next(stream);
}

static void on_stream_done(struct rpc_client_stream *stream, const struct rt_error *err, void *ctx)
{
    static const struct rt_error no_answer = {
        .code = RT_INTERNAL,
        .message = "the stream ended without an answer",
    };
    struct cli_client *client = ctx;

    (void)pthread_mutex_lock(&client->lock);
    if (!client->exchange.has_response)
        take_response(client, NULL, err == NULL ? &no_answer : err,
                      err != NULL && rpc_client_stream_never_sent(stream));
    finish(client);
    (void)pthread_mutex_unlock(&client->lock);
}

static const struct rpc_client_stream_handlers stream_handlers = {
    .on_message = on_stream_message,
    .on_done = on_stream_done,
};

static void on_health(struct rpc_client_call *rpc, const ProtobufCMessage *response,
                      const struct rt_error *err, void *ctx)
{
    struct cli_client *client = ctx;
    struct exchange *exchange = &client->exchange;

    (void)rpc;
    (void)pthread_mutex_lock(&client->lock);
    if (err != NULL) {
        exchange->code = rt_fail(exchange->err, err->code, "%s", err->message);
    } else {
        const Grpc__Health__V1__HealthCheckResponse *message = (const void *)response;

        exchange->code = RT_OK;
        exchange->is_serving =
            message->status == GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING;
    }
    finish(client);
    (void)pthread_mutex_unlock(&client->lock);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void cancel(struct cli_client *client)
{
    if (client->exchange.rpc != NULL)
        rpc_client_call_cancel(client->exchange.rpc);
    if (client->exchange.stream != NULL)
        rpc_client_stream_cancel(client->exchange.stream);
}

static void on_signal(int signum, void *ctx)
{
    struct cli_client *client = ctx;

    (void)signum;
    (void)pthread_mutex_lock(&client->lock);
    atomic_store(&client->is_interrupted, true);
    client->is_refusing = true;
    cancel(client);
    (void)pthread_cond_signal(&client->done);
    (void)pthread_mutex_unlock(&client->lock);
}

/* Under the lock, after the start. */
static void wait_done(struct cli_client *client)
{
    struct exchange *exchange = &client->exchange;

    while (!exchange->is_done)
        (void)pthread_cond_wait(&client->done, &client->lock);
    exchange->rpc = exchange->rpc == NULL ? NULL : rpc_client_call_unref(exchange->rpc);
    exchange->stream = exchange->stream == NULL ? NULL : rpc_client_stream_unref(exchange->stream);
}

static uint64_t now_us(const struct cli_client *client)
{
    return rt_env_now_us(rpc_runtime_env(client->runtime));
}

/* Milliseconds of the n-th part of what is left until then, or until the client's own deadline; at
 * least one while anything is left. Fails when there is no point in starting. */
static enum rt_code share_of_time(const struct cli_client *client, uint64_t deadline_us, size_t n,
                                  uint32_t *ret_ms, struct rt_error *err)
{
    uint64_t begin_us = now_us(client);
    uint64_t left_ms;

    if (client->is_refusing)
        return rt_fail_reason(err, RT_CANCELLED, "CANCELLED", "interrupted");
    if (deadline_us > client->deadline_us)
        deadline_us = client->deadline_us;
    if (begin_us >= deadline_us)
        return rt_fail_reason(err, RT_DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED",
                              "no time is left for it");
    left_ms = (deadline_us - begin_us) / 1000 / n;
    *ret_ms = left_ms == 0 ? 1 : (uint32_t)left_ms;
    return RT_OK;
}

static struct rpc_channel *channel_to(struct cli_client *client, const char *address)
{
    struct channel *channel;

    rt_list_for_each (node, &client->channels) {
        channel = RT_LIST_ENTRY(node, struct channel, link);
        if (strcmp(channel->address, address) == 0)
            return channel->rpc;
    }
    channel = rt_xalloc(sizeof(*channel));
    channel->address = rt_xstrdup(address);
    channel->rpc = rpc_channel_new(client->runtime, address, NULL);
    rt_list_push_back(&client->channels, &channel->link);
    return channel->rpc;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static enum rt_code start_stream(struct cli_client *client, struct rpc_channel *channel,
                                 const struct rpc_client_method *method, ProtobufCMessage *message,
                                 uint32_t timeout_ms)
{
    struct wire_exchange ids = {.id = EXCHANGE_ID, .timeout_ms = timeout_ms};
    struct rpc_client_options options = {.timeout_ms = timeout_ms};
    struct rpc_client_stream *stream;
    enum rt_code code;

    wire_request_set_exchange(message, &ids);
    stream = rpc_client_stream_open(channel, method, &options, &stream_handlers, client);
    client->exchange.stream = stream;
    code = rpc_client_stream_send(stream, message);
    if (code == RT_OK)
        rpc_client_stream_read_next(stream);
    else
        rpc_client_stream_cancel(stream);
    return code;
}

static enum rt_code start(struct cli_client *client, struct model_call *call, struct rt_error *err)
{
    const struct wire_method *method = wire_method_of(call->request.kind);
    const char *address = address_of(client, call);
    struct rpc_client_options options = {0};
    struct rpc_client_method target;
    ProtobufCMessage *message;
    enum rt_code code = share_of_time(client, call->deadline_us, 1, &options.timeout_ms, err);

    if (code == RT_OK)
        code = wire_request_encode(&call->request, &call->arena, &message, err);
    if (code != RT_OK)
        return code;
    rpc_client_method_of(method->service, method->name, &target);
    if (method->shape != WIRE_UNARY)
        (void)start_stream(client, channel_to(client, address), &target, message,
                           options.timeout_ms);
    else
        client->exchange.rpc = rpc_client_call_cancellable(channel_to(client, address), &target,
                                                           message, &options, on_unary, client);
    return RT_OK;
}

bool cli_client_call(struct cli_client *client, struct model_call *call)
{
    struct rt_error err = RT_ERROR_INIT;

    (void)pthread_mutex_lock(&client->lock);
    client->exchange = (struct exchange){.call = call};
    if (start(client, call, &err) == RT_OK)
        wait_done(client);
    else
        wire_response_refuse(&call->response, &err);
    (void)pthread_mutex_unlock(&client->lock);
    return call->response.code == RT_OK;
}

enum rt_code cli_client_check_health(struct cli_client *client, const char *address, size_t n_left,
                                     bool *ret_is_serving, struct rt_error *err)
{
    struct rpc_client_options options = {0};
    struct rpc_client_method method;
    Grpc__Health__V1__HealthCheckRequest request;
    enum rt_code code;

    grpc__health__v1__health_check_request__init(&request);
    rpc_client_method_of(&grpc__health__v1__health__descriptor, "Check", &method);
    (void)pthread_mutex_lock(&client->lock);
    code = share_of_time(client, RT_NEVER, n_left, &options.timeout_ms, err);
    if (code == RT_OK) {
        client->exchange = (struct exchange){.err = err};
        client->exchange.rpc = rpc_client_call_cancellable(
            channel_to(client, address), &method, &request.base, &options, on_health, client);
        wait_done(client);
        code = client->exchange.code;
    }
    if (code == RT_OK)
        *ret_is_serving = client->exchange.is_serving;
    (void)pthread_mutex_unlock(&client->lock);
    return code;
}

/* ---- time ------------------------------------------------------------------------------------ */

bool cli_client_pause(struct cli_client *client, uint64_t duration_us)
{
    struct timespec until = cli_condition_time_in(duration_us);
    int result = 0;
    bool is_over;

    if (now_us(client) + duration_us >= client->deadline_us)
        return false;
    (void)pthread_mutex_lock(&client->lock);
    while (!client->is_refusing && result == 0)
        result = pthread_cond_timedwait(&client->done, &client->lock, &until);
    is_over = !client->is_refusing;
    (void)pthread_mutex_unlock(&client->lock);
    return is_over;
}

void cli_client_wind_up(struct cli_client *client)
{
    (void)pthread_mutex_lock(&client->lock);
    client->is_refusing = false;
    client->deadline_us = now_us(client) + (uint64_t)CLI_CLIENT_WIND_UP_MS * 1000;
    (void)pthread_mutex_unlock(&client->lock);
}

const struct rt_env *cli_client_env(const struct cli_client *client)
{
    return rpc_runtime_env(client->runtime);
}

enum model_exit cli_client_report(const struct cli_client *client,
                                  const struct model_response *response)
{
    enum model_exit result = cli_report_failure(client->context, response);

    return cli_client_is_interrupted(client) ? MODEL_EXIT_INTERRUPTED : result;
}

enum model_exit cli_client_report_change(const struct cli_client *client,
                                         const struct model_response *response)
{
    enum model_exit result = cli_client_report(client, response);

    if (response->error.applied != MODEL_APPLIED_NO && result != MODEL_EXIT_INTERRUPTED)
        return MODEL_EXIT_UNKNOWN_OUTCOME;
    return result;
}

/* ---- the object ------------------------------------------------------------------------------ */

static void *run_loop(void *ctx)
{
    struct cli_client *client = ctx;

    rpc_runtime_run(client->runtime);
    return NULL;
}

struct cli_client *cli_client_new(struct cli_context *context)
{
    struct cli_client *client = rt_xalloc(sizeof(*client));
    int result;

    client->context = context;
    client->runtime = rpc_runtime_new(NULL);
    client->deadline_us = now_us(client) + context->common.timeout_ms * 1000;
    rt_list_init(&client->channels);
    (void)pthread_mutex_init(&client->lock, NULL);
    cli_condition_init(&client->done);
    if (rpc_runtime_on_interrupt(client->runtime, on_signal, client, NULL) != RT_OK)
        rt_assert(!"these signals can be caught");
    result = pthread_create(&client->loop_thread, NULL, run_loop, client);
    rt_assert(result == 0);
    return client;
}

struct cli_client *cli_client_free(struct cli_client *client)
{
    struct rt_list *node;

    if (client == NULL)
        return NULL;
    rpc_runtime_stop(client->runtime);
    (void)pthread_join(client->loop_thread, NULL);
    client->runtime = rpc_runtime_free(client->runtime);
    while ((node = rt_list_pop_front(&client->channels)) != NULL) {
        struct channel *channel = RT_LIST_ENTRY(node, struct channel, link);

        rt_free(channel->address);
        rt_free(channel);
    }
    (void)pthread_cond_destroy(&client->done);
    (void)pthread_mutex_destroy(&client->lock);
    return rt_free(client);
}

struct model_id cli_client_new_id(const struct cli_client *client)
{
    const struct rt_env *env = rpc_runtime_env(client->runtime);
    struct model_id id;

    for (size_t i = 0; i < sizeof(id.bytes); i += sizeof(uint64_t)) {
        uint64_t random = rt_env_random(env);

        memcpy(id.bytes + i, &random, sizeof(random));
    }
    return id;
}

bool cli_client_is_interrupted(const struct cli_client *client)
{
    return atomic_load(&client->is_interrupted);
}
