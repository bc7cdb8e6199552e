/*
 * Calls that a core makes: see host.h. Each is encoded, sent over the channel of its address (or a
 * lane, for streaming kinds), and handed back with its response. Nothing completes from inside the
 * step that made the call: what fails at once comes back from the loop.
 */
#include "runtime/base/alloc.h"
#include "runtime/host/internal.h"
#include "runtime/host/lane.h"
#include "runtime/rpc/client.h"
#include "runtime/wire/request.h"
#include "runtime/wire/response.h"

enum {
    /* For a call whose core set no deadline. */
    DEFAULT_TIMEOUT_MS = 10 * 1000,
    /* A longer one is cut: no call waits that long, and it fits everywhere. */
    TIMEOUT_MS_MAX = 24 * 3600 * 1000,
};

struct unary {
    struct host *host;
    struct model_call *call;
};

void host_outbound_take(struct model_call *call, const ProtobufCMessage *message,
                        const struct rt_error *err, bool never_sent)
{
    struct model_response response;
    struct rt_error copy_error = RT_ERROR_INIT;
    struct rt_error named;

    /* What the transport says does not tell where to. */
    if (err && err->detail.size == 0) {
        named = *err;
        (void)rt_wrap(&named, "%s", call->address);
        err = &named;
    }
    wire_response_decode(call->request.kind, message, err, &call->arena, &response);
    if (err && response.error.reason == MODEL_REASON_NONE && never_sent)
        response.error.applied = MODEL_APPLIED_NO;
    if (model_response_copy(&call->response, &response, call->request.kind, &call->arena,
                            &copy_error) == RT_OK)
        return;

    /* A failure needs memory for nothing but its key. */
    call->response = response;
    call->response.error.key = (struct rt_bytes){0};
    if (response.code != RT_OK)
        return;
    model_response_fail(&call->response, MODEL_REASON_NONE, "%s", copy_error.message);
    call->response.code = copy_error.code;
}

static void return_refused(struct rpc_job *job)
{
    struct host *host = RT_CONTAINER_OF(job, struct host, refused_job);
    struct rt_list refused = RT_LIST_INIT(refused);
    struct rt_list *node;

    (void)pthread_mutex_lock(&host->outbound_lock);
    rt_list_splice_back(&refused, &host->refused);
    (void)pthread_mutex_unlock(&host->outbound_lock);
    while ((node = rt_list_pop_front(&refused)))
        host_call_done(host, RT_LIST_ENTRY(node, struct model_call, link));
}

/* Completes the call on the loop thread with a failure: it was never sent. */
static void refuse(struct host *host, struct model_call *call, const struct rt_error *err)
{
    host_outbound_take(call, NULL, err, true);
    (void)pthread_mutex_lock(&host->outbound_lock);
    rt_list_push_back(&host->refused, &call->link);
    (void)pthread_mutex_unlock(&host->outbound_lock);
    rpc_runtime_post(host->options.runtime, &host->refused_job, return_refused);
}

static void on_response(struct rpc_client_call *rpc, const ProtobufCMessage *response,
                        const struct rt_error *err, void *ctx)
{
    struct unary *unary = ctx;
    struct host *host = unary->host;
    struct model_call *call = unary->call;

    (void)rt_free(unary);
    host_peers_release(host->peers, call->address);
    host_outbound_take(call, response, err, err && rpc_client_call_never_sent(rpc));
    host_call_done(host, call);
}

/* Under the outbound lock, so that none is on its way when host_stop() has returned. */
static enum rt_code start_unary(struct host *host, struct model_call *call, uint32_t timeout_ms,
                                struct rt_error *err)
{
    const struct wire_method *method = wire_method_of(call->request.kind);
    struct rpc_client_options options = {.timeout_ms = timeout_ms};
    struct rpc_client_method target;
    ProtobufCMessage *message;
    struct unary *unary;
    enum rt_code code;

    code = wire_request_encode(&call->request, &call->arena, &message, err);
    if (code != RT_OK)
        return code;
    unary = rt_xalloc(sizeof(*unary));
    unary->host = host;
    unary->call = call;
    rpc_client_method_of(method->service, method->name, &target);
    rpc_client_call(host_peers_acquire(host->peers, call->address), &target, message, &options,
                    on_response, unary);
    return RT_OK;
}

static struct host_time time_of(const struct host *host, const struct model_call *call)
{
    uint64_t now_us = rt_env_now_us(rpc_runtime_env(host->options.runtime));
    uint64_t timeout_ms = DEFAULT_TIMEOUT_MS;

    if (call->deadline_us != RT_NEVER)
        timeout_ms = model_call_remaining_us(call, now_us) / 1000;
    if (timeout_ms > TIMEOUT_MS_MAX)
        timeout_ms = TIMEOUT_MS_MAX;
    return (struct host_time){
        .deadline_us = now_us + timeout_ms * 1000,
        .timeout_ms = (uint32_t)timeout_ms,
    };
}

static enum rt_code start(struct host *host, struct model_call *call, const struct host_time *time,
                          struct rt_error *err)
{
    if (time->timeout_ms == 0)
        return rt_fail(err, RT_DEADLINE_EXCEEDED, "no time is left");
    if (host->is_stopping)
        return rt_fail(err, RT_CANCELLED, "the service is stopping");
    if (wire_shape_has_exchange(wire_method_of(call->request.kind)->shape))
        return host_lane_start(host, call, time, err);
    return start_unary(host, call, time->timeout_ms, err);
}

void host_outbound_start(struct host *host, struct model_call *call)
{
    struct host_time time = time_of(host, call);
    bool has_exchange = wire_shape_has_exchange(wire_method_of(call->request.kind)->shape);
    struct rt_error err = RT_ERROR_INIT;
    enum rt_code code;

    (void)pthread_mutex_lock(&host->outbound_lock);
    code = start(host, call, &time, &err);
    (void)pthread_mutex_unlock(&host->outbound_lock);

    if (code != RT_OK)
        refuse(host, call, &err);
    else if (has_exchange)
        rpc_wakeup_at(&host->lane_wakeup, time.deadline_us);
}
