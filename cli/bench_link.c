/*
 * Calls of the load generator: see bench_link.h. Invariant: a slot has at most one call, and each
 * of its streams carries at most one message that is not answered. Callbacks come on the queue
 * thread or, for what could not be started, on the loop thread; both take the lock first.
 */
#include "cli/bench_link.h"

#include <string.h>

#include "cli/condition.h"
#include "runtime/base/alloc.h"
#include "runtime/rpc/client.h"
#include "runtime/wire/request.h"
#include "runtime/wire/response.h"

enum {
    EXCHANGE_ID = 1 /* a stream carries one exchange at a time */
};

/* One address. */
struct peer {
    struct rt_list link;
    char *address;                 /* owned */
    struct rpc_channel **channels; /* owned array, one a connection, made when first used */
};

struct stream {
    struct rt_list link;
    struct cli_link_slot *slot;
    const struct peer *peer;
    enum model_call_kind kind;
    struct rpc_client_stream *rpc; /* NULL when it is not open */
    bool is_awaited;               /* the slot's call was sent on it */
};

struct cli_link {
    struct cli_link_options options;
    struct rpc_runtime *runtime;
    pthread_t loop_thread;
    pthread_mutex_t lock;
    pthread_cond_t woken;
    struct rt_list peers; /* owned */
};

void cli_link_lock(struct cli_link *link)
{
    (void)pthread_mutex_lock(&link->lock);
}

void cli_link_unlock(struct cli_link *link)
{
    (void)pthread_mutex_unlock(&link->lock);
}

const struct rt_env *cli_link_env(const struct cli_link *link)
{
    return rpc_runtime_env(link->runtime);
}

uint64_t cli_link_now_us(const struct cli_link *link)
{
    return rt_env_now_us(cli_link_env(link));
}

/* ---- answers --------------------------------------------------------------------------------- */

static void finish(struct cli_link_slot *slot, const ProtobufCMessage *message,
                   const struct rt_error *err)
{
    struct model_call *call = RT_TAKE(slot->call);
    struct rt_error named;

    /* What the transport says does not tell where to. */
    if (err != NULL && err->detail.size == 0) {
        named = *err;
        (void)rt_wrap(&named, "%s", call->address);
        err = &named;
    }
    wire_response_decode(call->request.kind, message, err, &call->arena, &call->response);
    slot->on_done(slot, call);
}

static void on_unary(struct rpc_client_call *rpc, const ProtobufCMessage *response,
                     const struct rt_error *err, void *ctx)
{
    struct cli_link_slot *slot = ctx;

    (void)rpc;
    cli_link_lock(slot->link);
    finish(slot, response, err);
    cli_link_unlock(slot->link);
}

static void on_message(struct rpc_client_stream *rpc, const ProtobufCMessage *message, void *ctx)
{
    struct stream *stream = ctx;
    struct cli_link_slot *slot = stream->slot;

    (void)rpc;
    cli_link_lock(slot->link);
    if (stream->is_awaited) {
        stream->is_awaited = false;
        finish(slot, message, NULL);
    }
    cli_link_unlock(slot->link);
}

static void on_stream_done(struct rpc_client_stream *rpc, const struct rt_error *err, void *ctx)
{
    static const struct rt_error ended = {
        .code = RT_UNAVAILABLE,
        .message = "the stream was ended",
    };
    struct stream *stream = ctx;
    struct cli_link_slot *slot = stream->slot;

    cli_link_lock(slot->link);
    stream->rpc = rpc_client_stream_unref(rpc);
    if (stream->is_awaited) {
        stream->is_awaited = false;
        finish(slot, NULL, err == NULL ? &ended : err);
    }
    cli_link_unlock(slot->link);
}

static const struct rpc_client_stream_handlers stream_handlers = {
    .on_message = on_message,
    .on_done = on_stream_done,
};

/* ---- requests -------------------------------------------------------------------------------- */

static struct peer *peer_at(struct cli_link *link, const char *address)
{
    struct peer *peer;

    rt_list_for_each (node, &link->peers) {
        peer = RT_LIST_ENTRY(node, struct peer, link);
        if (strcmp(peer->address, address) == 0)
            return peer;
    }
    peer = rt_xalloc(sizeof(*peer));
    peer->address = rt_xstrdup(address);
    peer->channels = rt_xalloc(link->options.n_connections * sizeof(struct rpc_channel *));
    rt_list_push_back(&link->peers, &peer->link);
    return peer;
}

static struct rpc_channel *channel_of(struct cli_link *link, const struct peer *peer,
                                      unsigned connection)
{
    struct rpc_channel **channel = &peer->channels[connection];

    if (*channel == NULL)
        *channel = rpc_channel_new(link->runtime, peer->address, NULL);
    return *channel;
}

static struct stream *stream_to(struct cli_link_slot *slot, const struct peer *peer,
                                enum model_call_kind kind)
{
    struct stream *stream;

    rt_list_for_each (node, &slot->streams) {
        stream = RT_LIST_ENTRY(node, struct stream, link);
        if (stream->peer == peer && stream->kind == kind)
            return stream;
    }
    stream = rt_xalloc(sizeof(*stream));
    stream->slot = slot;
    stream->peer = peer;
    stream->kind = kind;
    rt_list_push_back(&slot->streams, &stream->link);
    return stream;
}

/* A send that fails finds a stream that has ended: on_done is still to come and ends the call. */
static void send_on_stream(struct cli_link_slot *slot, const struct peer *peer,
                           const struct wire_method *method, ProtobufCMessage *message)
{
    struct rpc_client_options options = {.timeout_ms = RPC_NO_TIMEOUT};
    struct wire_exchange exchange = {EXCHANGE_ID, slot->link->options.timeout_ms};
    struct stream *stream = stream_to(slot, peer, method->kind);
    struct rpc_client_method target;

    wire_request_set_exchange(message, &exchange);
    if (stream->rpc == NULL) {
        rpc_client_method_of(method->service, method->name, &target);
        stream->rpc = rpc_client_stream_open(channel_of(slot->link, peer, slot->connection),
                                             &target, &options, &stream_handlers, stream);
    }
    stream->is_awaited = true;
    if (rpc_client_stream_send(stream->rpc, message) == RT_OK)
        rpc_client_stream_read_next(stream->rpc);
}

static void send_unary(struct cli_link_slot *slot, const struct peer *peer,
                       const struct wire_method *method, const ProtobufCMessage *message)
{
    struct rpc_client_options options = {.timeout_ms = slot->link->options.timeout_ms};
    struct rpc_client_method target;

    rpc_client_method_of(method->service, method->name, &target);
    rpc_client_call(channel_of(slot->link, peer, slot->connection), &target, message, &options,
                    on_unary, slot);
}

void cli_link_start(struct cli_link_slot *slot, struct model_call *call)
{
    const struct wire_method *method = wire_method_of(call->request.kind);
    const struct peer *peer = peer_at(slot->link, call->address);
    ProtobufCMessage *message;
    enum rt_code code;

    rt_assert(slot->call == NULL);
    slot->call = call;
    rt_arena_rewind(&call->arena);
    code = wire_request_encode(&call->request, &call->arena, &message, NULL);
    rt_assert(code == RT_OK);
    if (wire_shape_has_exchange(method->shape))
        send_on_stream(slot, peer, method, message);
    else
        send_unary(slot, peer, method, message);
}

/* ---- waiting --------------------------------------------------------------------------------- */

void cli_link_wait_until(struct cli_link *link, uint64_t until_us)
{
    uint64_t now_us = cli_link_now_us(link);
    struct timespec at;

    if (until_us <= now_us)
        return;
    at = cli_condition_time_in(until_us - now_us);
    (void)pthread_cond_timedwait(&link->woken, &link->lock, &at);
}

void cli_link_wake(struct cli_link *link)
{
    (void)pthread_cond_signal(&link->woken);
}

static void on_signal(int signum, void *ctx)
{
    struct cli_link *link = ctx;

    (void)signum;
    cli_link_lock(link);
    link->options.on_signal(link->options.ctx);
    cli_link_unlock(link);
}

/* ---- the objects ----------------------------------------------------------------------------- */

static void *run_loop(void *ctx)
{
    struct cli_link *link = ctx;

    rpc_runtime_run(link->runtime);
    return NULL;
}

struct cli_link *cli_link_new(const struct cli_link_options *options)
{
    struct cli_link *link = rt_xalloc(sizeof(*link));
    int result;

    link->options = *options;
    rt_list_init(&link->peers);
    (void)pthread_mutex_init(&link->lock, NULL);
    cli_condition_init(&link->woken);
    link->runtime = rpc_runtime_new(NULL);
    if (rpc_runtime_on_interrupt(link->runtime, on_signal, link, NULL) != RT_OK)
        rt_assert(!"these signals can be caught");
    result = pthread_create(&link->loop_thread, NULL, run_loop, link);
    rt_assert(result == 0);
    return link;
}

struct cli_link *cli_link_free(struct cli_link *link)
{
    struct rt_list *node;

    if (link == NULL)
        return NULL;
    rpc_runtime_stop(link->runtime);
    (void)pthread_join(link->loop_thread, NULL);
    link->runtime = rpc_runtime_free(link->runtime);
    while ((node = rt_list_pop_front(&link->peers)) != NULL) {
        struct peer *peer = RT_LIST_ENTRY(node, struct peer, link);

        (void)rt_free(peer->address);
        (void)rt_free(peer->channels);
        (void)rt_free(peer);
    }
    (void)pthread_cond_destroy(&link->woken);
    (void)pthread_mutex_destroy(&link->lock);
    return rt_free(link);
}

void cli_link_slot_init(struct cli_link_slot *slot, struct cli_link *link, size_t number,
                        void (*on_done)(struct cli_link_slot *slot, struct model_call *call))
{
    *slot = (struct cli_link_slot){
        .link = link,
        .connection = (unsigned)(number % link->options.n_connections),
        .on_done = on_done,
    };
    rt_list_init(&slot->streams);
}

void cli_link_slot_deinit(struct cli_link_slot *slot)
{
    struct rt_list *node;

    while ((node = rt_list_pop_front(&slot->streams)) != NULL)
        (void)rt_free(RT_LIST_ENTRY(node, struct stream, link));
}
