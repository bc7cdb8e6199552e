/*
 * Channels: a connection of their own to one address, and the RPCs in flight on it.
 *
 * Invariant: every flight is in its channel's list from its start until all its batches completed,
 * so a closing channel knows what to cancel and when nothing is left. The list and the state are
 * guarded by the channel's lock; core's channel goes on the loop thread.
 */
#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include <grpc/support/alloc.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/rpc/client_internal.h"
#include "runtime/rpc/codec.h"

/* ---- options ---- */

static uint32_t or_default(uint32_t value, uint32_t fallback)
{
    return value ? value : fallback;
}

static struct rpc_channel_options fill_options(const struct rpc_channel_options *given)
{
    struct rpc_channel_options o = {0};

    if (given)
        o = *given;
    o.max_message_bytes = or_default(o.max_message_bytes, 4 * 1024 * 1024);
    o.max_metadata_bytes = or_default(o.max_metadata_bytes, 64 * 1024);
    o.max_arena_bytes = or_default(o.max_arena_bytes, 32 * 1024 * 1024);
    o.min_backoff_ms = or_default(o.min_backoff_ms, 100);
    o.max_backoff_ms = or_default(o.max_backoff_ms, 2000);
    o.keepalive_ms = or_default(o.keepalive_ms, 5000);
    o.keepalive_timeout_ms = or_default(o.keepalive_timeout_ms, 2000);
    o.queue_messages = or_default(o.queue_messages, 256);
    o.queue_bytes = or_default(o.queue_bytes, 4 * 1024 * 1024);
    return o;
}

static grpc_arg integer_arg(const char *key, uint32_t value)
{
    grpc_arg arg = {.type = GRPC_ARG_INTEGER, .key = (char *)key};

    arg.value.integer = (int)value;
    return arg;
}

static grpc_channel *new_core(const char *address, const struct rpc_channel_options *o)
{
    grpc_channel_credentials *credentials = grpc_insecure_credentials_create();
    grpc_channel *core;
    grpc_arg list[] = {
        integer_arg(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, o->max_message_bytes),
        integer_arg(GRPC_ARG_MAX_METADATA_SIZE, o->max_metadata_bytes),
        integer_arg(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1),
        integer_arg(GRPC_ARG_ENABLE_RETRIES, 0),
        integer_arg(GRPC_ARG_ENABLE_HTTP_PROXY, 0),
        integer_arg(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1),
        integer_arg(GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0),
        integer_arg(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, o->min_backoff_ms),
        integer_arg(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, o->max_backoff_ms),
        /* How long one attempt may take, in spite of its name. */
        integer_arg(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, o->max_backoff_ms),
        integer_arg(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, o->max_backoff_ms),
        integer_arg(GRPC_ARG_KEEPALIVE_TIME_MS, o->keepalive_ms),
        integer_arg(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, o->keepalive_timeout_ms),
        integer_arg(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, o->keepalive_without_calls),
        integer_arg(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0),
    };
    grpc_channel_args args = {.num_args = RT_ARRAY_SIZE(list), .args = list};

    core = grpc_channel_create(address, credentials, &args);
    grpc_channel_credentials_release(credentials);
    return core;
}

/* ---- open and close ---- */

static void lock_channel(struct rpc_channel *channel)
{
    (void)pthread_mutex_lock(&channel->lock);
}

static void unlock_channel(struct rpc_channel *channel)
{
    (void)pthread_mutex_unlock(&channel->lock);
}

struct rpc_channel *rpc_channel_new(struct rpc_runtime *runtime, const char *address,
                                    const struct rpc_channel_options *options)
{
    struct rpc_channel *channel = rt_xalloc(sizeof(*channel));
    enum rpc_runtime_state state;

    channel->runtime = runtime;
    channel->options = fill_options(options);
    channel->address = rt_xstrdup(address);
    channel->core = new_core(address, &channel->options);
    (void)pthread_mutex_init(&channel->lock, NULL);
    rt_list_init(&channel->flights);

    rpc_runtime_lock(runtime);
    state = runtime->state;
    rt_assert(state < RPC_RUNTIME_DRAINING_QUEUE);
    rt_list_push_back(&runtime->channels, &channel->link);
    rpc_runtime_unlock(runtime);
    if (state >= RPC_RUNTIME_CLOSING_CHANNELS)
        rpc_runtime_advance(runtime);
    return channel;
}

const char *rpc_channel_address(const struct rpc_channel *channel)
{
    return channel->address;
}

static void free_channel(struct rpc_channel *channel)
{
    (void)pthread_mutex_destroy(&channel->lock);
    (void)rt_free(channel->address);
    (void)rt_free(channel);
}

static void free_husk(struct rpc_husk *husk)
{
    free_channel(RT_CONTAINER_OF(husk, struct rpc_channel, husk));
}

static void on_closed(struct rpc_job *job)
{
    struct rpc_channel *channel = RT_CONTAINER_OF(job, struct rpc_channel, closed_job);
    struct rpc_runtime *runtime = channel->runtime;
    void (*cb)(void *ctx);

    lock_channel(channel);
    channel->state = RPC_CHANNEL_CLOSED;
    cb = RT_TAKE(channel->on_closed);
    unlock_channel(channel);
    grpc_channel_destroy(RT_TAKE(channel->core));
    if (cb)
        cb(channel->on_closed_ctx);

    rpc_runtime_lock(runtime);
    rt_list_remove(&channel->link);
    channel->husk.free = free_husk;
    if (channel->is_husk)
        rt_list_push_back(&runtime->husks, &channel->husk.link);
    rpc_runtime_unlock(runtime);
    if (!channel->is_husk)
        free_channel(channel);
    rpc_runtime_advance(runtime);
}

/* The shutdown had closed it before its user asked. */
static void on_closed_late(struct rpc_job *job)
{
    struct rpc_channel *channel = RT_CONTAINER_OF(job, struct rpc_channel, closed_job);

    if (channel->on_closed)
        channel->on_closed(channel->on_closed_ctx);
}

/* Channel lock held. */
static void close_if_empty(struct rpc_channel *channel)
{
    if (channel->state != RPC_CHANNEL_CLOSING || !rt_list_is_empty(&channel->flights))
        return;
    rpc_runtime_post(channel->runtime, &channel->closed_job, on_closed);
}

/* Channel lock held. */
static void begin_close(struct rpc_channel *channel)
{
    channel->state = RPC_CHANNEL_CLOSING;
    rt_list_for_each (node, &channel->flights) {
        struct rpc_flight *flight = RT_LIST_ENTRY(node, struct rpc_flight, link);

        rpc_flight_cancel(flight);
    }
    close_if_empty(channel);
}

void rpc_channel_close(struct rpc_channel *channel, void (*cb)(void *ctx), void *ctx)
{
    lock_channel(channel);
    rt_assert(!channel->is_close_asked);
    channel->is_close_asked = true;
    channel->on_closed = cb;
    channel->on_closed_ctx = ctx;
    if (channel->state == RPC_CHANNEL_OPEN)
        begin_close(channel);
    else if (channel->state == RPC_CHANNEL_CLOSED)
        rpc_runtime_post(channel->runtime, &channel->closed_job, on_closed_late);
    unlock_channel(channel);
}

/* Any open channel; channels leave the list on the loop thread only, so it stays valid there. */
static struct rpc_channel *find_open(struct rpc_runtime *runtime)
{
    struct rpc_channel *found = NULL;

    rpc_runtime_lock(runtime);
    rt_list_for_each (node, &runtime->channels) {
        struct rpc_channel *channel = RT_LIST_ENTRY(node, struct rpc_channel, link);

        if (!channel->is_swept) {
            channel->is_swept = true;
            found = channel;
            break;
        }
    }
    rpc_runtime_unlock(runtime);
    return found;
}

void rpc_channel_close_all(struct rpc_runtime *runtime)
{
    struct rpc_channel *channel;

    while ((channel = find_open(runtime))) {
        lock_channel(channel);
        if (channel->state == RPC_CHANNEL_OPEN) {
            channel->is_husk = true;
            begin_close(channel);
        }
        unlock_channel(channel);
    }
}

/* ---- flights ---- */

static void refuse(struct rpc_flight *flight, enum rt_code code, const char *message)
{
    (void)rt_fail(&flight->refusal, code, "%s", message);
}

static void copy_metadata(struct rpc_flight *flight, const struct rpc_client_options *options)
{
    rt_assert(options->n_metadata <= RPC_CLIENT_METADATA_MAX);
    for (size_t i = 0; i < options->n_metadata; i++) {
        const struct rpc_client_metadata *given = &options->metadata[i];
        grpc_metadata *copy = &flight->metadata[flight->n_metadata];

        if (rpc_metadata_check(given->key, given->value, &flight->refusal) != RT_OK)
            return;
        copy->key = grpc_slice_from_copied_string(given->key);
        copy->value =
            grpc_slice_from_copied_buffer((const char *)given->value.data, given->value.size);
        flight->n_metadata++;
    }
}

void rpc_flight_begin(struct rpc_flight *flight, struct rpc_channel *channel,
                      const struct rpc_client_method *method,
                      const struct rpc_client_options *options)
{
    grpc_slice path = grpc_slice_from_copied_string(method->path);

    flight->channel = channel;
    rt_list_init(&flight->link);
    grpc_metadata_array_init(&flight->headers);
    grpc_metadata_array_init(&flight->trailers);
    if (options->wait_for_ready)
        flight->header_flags = GRPC_INITIAL_METADATA_WAIT_FOR_READY |
                               GRPC_INITIAL_METADATA_WAIT_FOR_READY_EXPLICITLY_SET;
    copy_metadata(flight, options);

    lock_channel(channel);
    if (channel->state != RPC_CHANNEL_OPEN)
        refuse(flight, RT_UNAVAILABLE, "the channel is closed");
    if (flight->refusal.code == RT_OK) {
        flight->core = grpc_channel_create_call(channel->core, NULL, GRPC_PROPAGATE_DEFAULTS,
                                                channel->runtime->queue, path, NULL,
                                                rpc_deadline_in_ms(options->timeout_ms), NULL);
        rt_list_push_back(&channel->flights, &flight->link);
    }
    unlock_channel(channel);
    grpc_slice_unref(path);
}

void rpc_flight_end(struct rpc_flight *flight)
{
    struct rpc_channel *channel = flight->channel;

    for (; flight->n_metadata > 0; flight->n_metadata--) {
        grpc_slice_unref(flight->metadata[flight->n_metadata - 1].key);
        grpc_slice_unref(flight->metadata[flight->n_metadata - 1].value);
    }
    grpc_metadata_array_destroy(&flight->headers);
    grpc_metadata_array_destroy(&flight->trailers);
    grpc_slice_unref(flight->text);
    if (!flight->core)
        return;
    lock_channel(channel);
    rt_list_remove(&flight->link);
    grpc_call_unref(RT_TAKE(flight->core));
    close_if_empty(channel);
    unlock_channel(channel);
}

void rpc_flight_add_headers(struct rpc_flight *flight, grpc_op *part)
{
    part->op = GRPC_OP_SEND_INITIAL_METADATA;
    part->flags = flight->header_flags;
    part->data.send_initial_metadata.count = flight->n_metadata;
    part->data.send_initial_metadata.metadata = flight->metadata;
}

void rpc_flight_add_status(struct rpc_flight *flight, grpc_op *part)
{
    part->op = GRPC_OP_RECV_STATUS_ON_CLIENT;
    part->data.recv_status_on_client.trailing_metadata = &flight->trailers;
    part->data.recv_status_on_client.status = &flight->status;
    part->data.recv_status_on_client.status_details = &flight->text;
}

void rpc_flight_cancel(struct rpc_flight *flight)
{
    if (!flight->core)
        return;
    atomic_store(&flight->is_cancelled, true);
    (void)grpc_call_cancel(flight->core, NULL);
}

/* A server that goes away cuts calls that it has not looked at yet: core ends their streams or
 * sends CANCELLED with a text of its own, which is that word. */
static bool was_cut(const struct rpc_flight *flight)
{
    return flight->status == GRPC_STATUS_CANCELLED && !atomic_load(&flight->is_cancelled) &&
           (grpc_call_failed_before_recv_message(flight->core) ||
            grpc_slice_str_cmp(flight->text, "CANCELLED") == 0);
}

const struct rt_error *rpc_flight_error(const struct rpc_flight *flight, struct rt_error *ret_err)
{
    if (flight->refusal.code != RT_OK)
        return &flight->refusal;
    if (flight->status == GRPC_STATUS_OK)
        return NULL;
    if (was_cut(flight))
        (void)rt_fail(ret_err, RT_UNAVAILABLE, "the server cut the call");
    else
        rpc_error_of_status(flight->status, flight->text, &flight->trailers, ret_err);
    return ret_err;
}

/* Targets that look like a peer, which has one of these in front. */
static bool looks_like_peer(const char *target)
{
    return strncmp(target, "ipv4:", 5) == 0 || strncmp(target, "ipv6:", 5) == 0 ||
           strncmp(target, "unix:", 5) == 0;
}

/* Core tells the peer of a call once a transport has ended it, and the channel's target before. A
 * call that this side ended, also by its deadline, may well have left. */
bool rpc_flight_never_sent(const struct rpc_flight *flight)
{
    char *peer;
    char *target;
    bool is_same;

    if (!flight->core)
        return true;
    if (atomic_load(&flight->is_cancelled) || flight->status != GRPC_STATUS_UNAVAILABLE)
        return false;
    peer = grpc_call_get_peer(flight->core);
    target = grpc_channel_get_target(flight->channel->core);
    is_same = strcmp(peer, target) == 0 && !looks_like_peer(target);
    gpr_free(peer);
    gpr_free(target);
    return is_same;
}
