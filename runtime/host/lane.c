/*
 * Lanes: see lane.h. Everything is guarded by the host's outbound lock; functions of runtime/rpc
 * never call back from inside, so they may be called under it. Calls that end are collected under
 * the lock and completed after it.
 */
#include "runtime/host/lane.h"

#include "runtime/base/alloc.h"
#include "runtime/rpc/client.h"
#include "runtime/wire/request.h"
#include "runtime/wire/response.h"

struct lane {
    struct rt_list link; /* host.lanes */
    struct host *host;
    const struct wire_method *method;
    char *address;                    /* owned */
    struct rpc_client_stream *stream; /* owned reference; NULL while closed */
    struct rt_list waiting;           /* exchange.link: sent, not answered */
    uint64_t last_id;
};

struct exchange {
    struct rt_list link;
    uint64_t id;
    uint64_t deadline_us;
    struct model_call *call;
};

static struct lane *find_or_add(struct host *host, const struct wire_method *method,
                                const char *address)
{
    struct lane *lane;

    rt_list_for_each (node, &host->lanes) {
        lane = RT_LIST_ENTRY(node, struct lane, link);
        if (lane->method == method && strcmp(lane->address, address) == 0)
            return lane;
    }
    lane = rt_xalloc(sizeof(*lane));
    lane->host = host;
    lane->method = method;
    lane->address = rt_xstrdup(address);
    rt_list_init(&lane->waiting);
    rt_list_push_back(&host->lanes, &lane->link);
    return lane;
}

/* Takes the call out of its exchange, which is freed. */
static struct model_call *end_exchange(struct exchange *exchange)
{
    struct model_call *call = exchange->call;

    rt_list_remove(&exchange->link);
    (void)rt_free(exchange);
    return call;
}

static struct model_call *take_by_id(struct lane *lane, uint64_t id)
{
    rt_list_for_each (node, &lane->waiting) {
        struct exchange *exchange = RT_LIST_ENTRY(node, struct exchange, link);

        if (exchange->id == id)
            return end_exchange(exchange);
    }
    return NULL;
}

static void complete_all(struct host *host, struct rt_list *calls)
{
    struct rt_list *node;

    while ((node = rt_list_pop_front(calls)))
        host_call_done(host, RT_LIST_ENTRY(node, struct model_call, link));
}

static void on_message(struct rpc_client_stream *stream, const ProtobufCMessage *message, void *ctx)
{
    struct lane *lane = ctx;
    struct host *host = lane->host;
    struct model_call *call;

    (void)pthread_mutex_lock(&host->outbound_lock);
    call = take_by_id(lane, wire_response_exchange_id(message));
    (void)pthread_mutex_unlock(&host->outbound_lock);

    if (call)
        host_outbound_take(call, message, NULL, false);
    rpc_client_stream_read_next(stream);
    if (call)
        host_call_done(host, call);
}

static void on_done(struct rpc_client_stream *stream, const struct rt_error *err, void *ctx)
{
    struct lane *lane = ctx;
    struct host *host = lane->host;
    bool never_sent = err && rpc_client_stream_never_sent(stream);
    struct rt_list failed = RT_LIST_INIT(failed);
    struct rt_error closed = RT_ERROR_INIT;
    struct rt_list *node;

    if (!err) {
        (void)rt_fail(&closed, RT_UNAVAILABLE, "%s ended the stream", lane->address);
        err = &closed;
    }
    (void)pthread_mutex_lock(&host->outbound_lock);
    if (lane->stream == stream) {
        lane->stream = NULL;
        while ((node = lane->waiting.next) != &lane->waiting) {
            struct model_call *call = end_exchange(RT_LIST_ENTRY(node, struct exchange, link));

            host_outbound_take(call, NULL, err, never_sent);
            rt_list_push_back(&failed, &call->link);
        }
        (void)rpc_client_stream_unref(stream);
        host_peers_release(host->peers, lane->address);
    }
    (void)pthread_mutex_unlock(&host->outbound_lock);
    complete_all(host, &failed);
}

static const struct rpc_client_stream_handlers handlers = {
    .on_message = on_message,
    .on_done = on_done,
};

static void open_stream(struct lane *lane)
{
    struct rpc_client_options options = {.timeout_ms = RPC_NO_TIMEOUT};
    struct rpc_client_method method;

    rpc_client_method_of(lane->method->service, lane->method->name, &method);
    lane->stream = rpc_client_stream_open(host_peers_acquire(lane->host->peers, lane->address),
                                          &method, &options, &handlers, lane);
    rpc_client_stream_read_next(lane->stream);
}

enum rt_code host_lane_start(struct host *host, struct model_call *call,
                             const struct host_time *time, struct rt_error *err)
{
    struct lane *lane = find_or_add(host, wire_method_of(call->request.kind), call->address);
    struct wire_exchange header = {.id = ++lane->last_id, .timeout_ms = time->timeout_ms};
    struct exchange *exchange;
    ProtobufCMessage *message;
    enum rt_code code;

    code = wire_request_encode(&call->request, &call->arena, &message, err);
    if (code != RT_OK)
        return code;
    wire_request_set_exchange(message, &header);
    if (!lane->stream)
        open_stream(lane);
    code = rpc_client_stream_send(lane->stream, message);
    if (code != RT_OK)
        return rt_fail(err, RT_UNAVAILABLE, "the stream to %s takes nothing (%s)", lane->address,
                       rt_code_name(code));

    exchange = rt_xalloc(sizeof(*exchange));
    exchange->id = header.id;
    exchange->deadline_us = time->deadline_us;
    exchange->call = call;
    rt_list_push_back(&lane->waiting, &exchange->link);
    return RT_OK;
}

/* Under the lock; the earliest deadline that is still ahead. */
static uint64_t expire_lane(struct lane *lane, uint64_t now_us, struct rt_list *expired)
{
    uint64_t next_us = RT_NEVER;

    rt_list_for_each_safe (node, &lane->waiting) {
        struct exchange *exchange = RT_LIST_ENTRY(node, struct exchange, link);

        if (exchange->deadline_us <= now_us)
            rt_list_push_back(expired, &end_exchange(exchange)->link);
        else if (exchange->deadline_us < next_us)
            next_us = exchange->deadline_us;
    }
    return next_us;
}

uint64_t host_lane_expire(struct host *host, uint64_t now_us)
{
    struct rt_list expired = RT_LIST_INIT(expired);
    uint64_t next_us = RT_NEVER;
    struct rt_error err = RT_ERROR_INIT;

    (void)rt_fail(&err, RT_DEADLINE_EXCEEDED, "no answer before the deadline");
    (void)pthread_mutex_lock(&host->outbound_lock);
    rt_list_for_each (node, &host->lanes) {
        uint64_t lane_us = expire_lane(RT_LIST_ENTRY(node, struct lane, link), now_us, &expired);

        if (lane_us < next_us)
            next_us = lane_us;
    }
    (void)pthread_mutex_unlock(&host->outbound_lock);

    rt_list_for_each (node, &expired)
        host_outbound_take(RT_LIST_ENTRY(node, struct model_call, link), NULL, &err, false);
    complete_all(host, &expired);
    return next_us;
}

void host_lane_free_all(struct host *host)
{
    struct rt_list *node;

    while ((node = rt_list_pop_front(&host->lanes))) {
        struct lane *lane = RT_LIST_ENTRY(node, struct lane, link);

        rt_assert(rt_list_is_empty(&lane->waiting) && !lane->stream);
        (void)rt_free(lane->address);
        (void)rt_free(lane);
    }
}
