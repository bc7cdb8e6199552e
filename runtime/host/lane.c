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
    struct rt_list unsent;            /* exchange.link: the stream has no room yet */
    struct rt_list waiting;           /* exchange.link: sent, not answered */
    uint64_t last_id;
};

struct exchange {
    struct rt_list link;
    uint64_t id;
    uint64_t deadline_us;
    struct model_call *call;
    ProtobufCMessage *message; /* in the call's memory */
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
    rt_list_init(&lane->unsent);
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

/* Takes all of them out, failed. */
static void fail_all(struct rt_list *exchanges, const struct rt_error *err, bool never_sent,
                     struct rt_list *failed)
{
    while (!rt_list_is_empty(exchanges)) {
        struct model_call *call =
            end_exchange(RT_LIST_ENTRY(exchanges->next, struct exchange, link));

        host_outbound_take(call, NULL, err, never_sent);
        rt_list_push_back(failed, &call->link);
    }
}

static uint64_t now_us(const struct host *host)
{
    return rt_env_now_us(rpc_runtime_env(host->options.runtime));
}

/* False: the stream has no room, or has ended. */
static bool try_send(const struct lane *lane, const struct exchange *exchange)
{
    uint64_t at_us = now_us(lane->host);
    uint64_t left_ms = exchange->deadline_us > at_us ? (exchange->deadline_us - at_us) / 1000 : 0;
    struct wire_exchange header = {
        .id = exchange->id,
        .timeout_ms = left_ms == 0 ? 1 : (uint32_t)left_ms,
    };

    wire_request_set_exchange(exchange->message, &header);
    return rpc_client_stream_send(lane->stream, exchange->message) == RT_OK;
}

static void send_unsent(struct lane *lane)
{
    while (!rt_list_is_empty(&lane->unsent)) {
        struct exchange *exchange = RT_LIST_ENTRY(lane->unsent.next, struct exchange, link);

        if (!try_send(lane, exchange))
            return;
        rt_list_remove(&exchange->link);
        rt_list_push_back(&lane->waiting, &exchange->link);
    }
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

static void on_writable(struct rpc_client_stream *stream, void *ctx)
{
    struct lane *lane = ctx;
    struct host *host = lane->host;

    (void)pthread_mutex_lock(&host->outbound_lock);
    if (lane->stream == stream)
        send_unsent(lane);
    (void)pthread_mutex_unlock(&host->outbound_lock);
}

static void on_done(struct rpc_client_stream *stream, const struct rt_error *err, void *ctx)
{
    struct lane *lane = ctx;
    struct host *host = lane->host;
    bool never_sent = err && rpc_client_stream_never_sent(stream);
    struct rt_list failed = RT_LIST_INIT(failed);
    struct rt_error closed = RT_ERROR_INIT;

    (void)rt_fail(&closed, RT_UNAVAILABLE, "the stream was ended");
    (void)pthread_mutex_lock(&host->outbound_lock);
    if (lane->stream == stream) {
        lane->stream = NULL;
        fail_all(&lane->waiting, err ? err : &closed, never_sent, &failed);
        fail_all(&lane->unsent, &closed, true, &failed);
        (void)rpc_client_stream_unref(stream);
        host_peers_release(host->peers, lane->address);
    }
    (void)pthread_mutex_unlock(&host->outbound_lock);
    complete_all(host, &failed);
}

static const struct rpc_client_stream_handlers handlers = {
    .on_message = on_message,
    .on_writable = on_writable,
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

/* The first that does not fit makes the others wait behind it, until on_writable(). One that finds
 * an ended stream waits for on_done(). */
enum rt_code host_lane_start(struct host *host, struct model_call *call,
                             const struct host_time *time, struct rt_error *err)
{
    struct lane *lane = find_or_add(host, wire_method_of(call->request.kind), call->address);
    struct exchange *exchange;
    ProtobufCMessage *message;
    enum rt_code code;
    bool is_first;

    code = wire_request_encode(&call->request, &call->arena, &message, err);
    if (code != RT_OK)
        return code;
    exchange = rt_xalloc(sizeof(*exchange));
    exchange->id = ++lane->last_id;
    exchange->deadline_us = time->deadline_us;
    exchange->call = call;
    exchange->message = message;
    is_first = rt_list_is_empty(&lane->unsent);
    rt_list_push_back(&lane->unsent, &exchange->link);
    if (!lane->stream)
        open_stream(lane);
    if (is_first)
        send_unsent(lane);
    return RT_OK;
}

/* Under the lock; fails those that are due, and returns the earliest deadline of the others. */
static uint64_t expire(struct rt_list *exchanges, uint64_t at_us, bool never_sent,
                       struct rt_list *expired)
{
    uint64_t next_us = RT_NEVER;
    struct rt_error err = RT_ERROR_INIT;
    struct rt_list due = RT_LIST_INIT(due);

    (void)rt_fail(&err, RT_DEADLINE_EXCEEDED, "no answer before the deadline");
    rt_list_for_each_safe (node, exchanges) {
        const struct exchange *exchange = RT_LIST_ENTRY(node, struct exchange, link);

        if (exchange->deadline_us <= at_us) {
            rt_list_remove(node);
            rt_list_push_back(&due, node);
        } else if (exchange->deadline_us < next_us) {
            next_us = exchange->deadline_us;
        }
    }
    fail_all(&due, &err, never_sent, expired);
    return next_us;
}

static uint64_t expire_lane(struct lane *lane, uint64_t at_us, struct rt_list *expired)
{
    uint64_t waiting_us = expire(&lane->waiting, at_us, false, expired);
    uint64_t unsent_us = expire(&lane->unsent, at_us, true, expired);

    return waiting_us < unsent_us ? waiting_us : unsent_us;
}

uint64_t host_lane_expire(struct host *host, uint64_t at_us)
{
    struct rt_list expired = RT_LIST_INIT(expired);
    uint64_t next_us = RT_NEVER;

    (void)pthread_mutex_lock(&host->outbound_lock);
    rt_list_for_each (node, &host->lanes) {
        uint64_t lane_us = expire_lane(RT_LIST_ENTRY(node, struct lane, link), at_us, &expired);

        if (lane_us < next_us)
            next_us = lane_us;
    }
    (void)pthread_mutex_unlock(&host->outbound_lock);
    complete_all(host, &expired);
    return next_us;
}

void host_lane_free_all(struct host *host)
{
    struct rt_list *node;

    while ((node = rt_list_pop_front(&host->lanes))) {
        struct lane *lane = RT_LIST_ENTRY(node, struct lane, link);

        rt_assert(rt_list_is_empty(&lane->waiting) && rt_list_is_empty(&lane->unsent) &&
                  !lane->stream);
        (void)rt_free(lane->address);
        (void)rt_free(lane);
    }
}
