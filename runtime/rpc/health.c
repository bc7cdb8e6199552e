/*
 * grpc.health.v1 on the same tables as every other service: Check answers from a list, Watch sends
 * each change of one name until the client goes or the server drains.
 *
 * Invariant: a watch that is in the list is open (it leaves the list in on_done), so sending under
 * the health lock is safe; sends take the call's lock, which is never held while calling into here.
 * A slow watcher misses intermediate states, never the last one. Any thread.
 */
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/rpc/health.pb-c.h"
#include "runtime/rpc/server_internal.h"

/* One of the few names that a server knows. */
struct health_entry {
    struct rt_list link;
    char *name; /* owned */
    bool is_serving;
};

/* The user area of a Watch call. */
struct health_watch {
    struct rt_list link;
    struct rpc_call *call;
    const char *name; /* in the request */
    int last_sent;    /* -1: nothing yet */
};

struct rpc_health {
    pthread_mutex_t lock;
    struct rt_list entries; /* owned */
    struct rt_list watches;
    bool is_draining;
};

static void lock_health(struct rpc_health *health)
{
    (void)pthread_mutex_lock(&health->lock);
}

static void unlock_health(struct rpc_health *health)
{
    (void)pthread_mutex_unlock(&health->lock);
}

static struct health_entry *find_entry(const struct rpc_health *health, const char *name)
{
    rt_list_for_each (node, &health->entries) {
        struct health_entry *entry = RT_LIST_ENTRY(node, struct health_entry, link);

        if (strcmp(entry->name, name) == 0)
            return entry;
    }
    return NULL;
}

static int status_of(const struct rpc_health *health, const char *name)
{
    const struct health_entry *entry = find_entry(health, name);

    if (!entry)
        return GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVICE_UNKNOWN;
    return entry->is_serving ? GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING
                             : GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__NOT_SERVING;
}

static const char *name_in(const ProtobufCMessage *request)
{
    return ((const Grpc__Health__V1__HealthCheckRequest *)request)->service;
}

/* ---- Check ---- */

static void on_check(struct rpc_call *call, const ProtobufCMessage *request, void *ctx)
{
    struct rpc_health *health = ctx;
    Grpc__Health__V1__HealthCheckResponse response;
    struct rt_error err = RT_ERROR_INIT;
    int status;

    lock_health(health);
    status = status_of(health, name_in(request));
    unlock_health(health);
    if (status == GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVICE_UNKNOWN) {
        (void)rt_fail(&err, RT_NOT_FOUND, "no such service");
        rpc_call_fail(call, &err);
        return;
    }
    grpc__health__v1__health_check_response__init(&response);
    response.status = status;
    rpc_call_reply(call, &response.base);
}

/* ---- Watch; health lock held ---- */

static void end_watch(struct rpc_call *call)
{
    struct rt_error err = RT_ERROR_INIT;

    (void)rt_fail(&err, RT_UNAVAILABLE, "the server is going down");
    rpc_call_finish(call, &err);
}

/* A refused send is repeated by on_watch_writable(). */
static void send_status(const struct rpc_health *health, struct health_watch *watch)
{
    Grpc__Health__V1__HealthCheckResponse response;
    int status = status_of(health, watch->name);

    if (status == watch->last_sent)
        return;
    grpc__health__v1__health_check_response__init(&response);
    response.status = status;
    if (rpc_call_send(watch->call, &response.base) == RT_OK)
        watch->last_sent = status;
}

static void on_watch_open(struct rpc_call *call, const ProtobufCMessage *request, void *ctx)
{
    struct rpc_health *health = ctx;
    struct health_watch *watch = rpc_call_user(call);

    watch->call = call;
    watch->name = name_in(request);
    watch->last_sent = -1;
    rt_list_init(&watch->link);
    lock_health(health);
    if (health->is_draining) {
        end_watch(call);
    } else {
        rt_list_push_back(&health->watches, &watch->link);
        send_status(health, watch);
    }
    unlock_health(health);
}

static void on_watch_writable(struct rpc_call *call, void *ctx)
{
    struct rpc_health *health = ctx;

    lock_health(health);
    send_status(health, rpc_call_user(call));
    unlock_health(health);
}

static void on_watch_done(struct rpc_call *call, void *ctx)
{
    struct rpc_health *health = ctx;
    struct health_watch *watch = rpc_call_user(call);

    lock_health(health);
    rt_list_remove(&watch->link);
    unlock_health(health);
}

static const struct rpc_stream_handlers watch_handlers = {
    .on_open = on_watch_open,
    .on_writable = on_watch_writable,
    .on_done = on_watch_done,
};

static const struct rpc_method health_methods[] = {
    {"Check", RPC_UNARY, .on_call = on_check, .max_message_bytes = RPC_SMALL_REQUEST_MAX},
    {"Watch", RPC_SERVER_STREAM, .stream = &watch_handlers,
     .max_message_bytes = RPC_SMALL_REQUEST_MAX, .user_size = sizeof(struct health_watch)},
};

/* ---- for the server ---- */

struct rpc_health *rpc_health_new(struct rpc_server *server)
{
    struct rpc_health *health = rt_xalloc(sizeof(*health));
    enum rt_code code;

    (void)pthread_mutex_init(&health->lock, NULL);
    rt_list_init(&health->entries);
    rt_list_init(&health->watches);
    code = rpc_server_add_service(server, &grpc__health__v1__health__descriptor, health_methods,
                                  RT_ARRAY_SIZE(health_methods), health, NULL);
    rt_assert(code == RT_OK);
    rpc_health_set(health, "", false);
    return health;
}

struct rpc_health *rpc_health_free(struct rpc_health *health)
{
    struct rt_list *node;

    while ((node = rt_list_pop_front(&health->entries))) {
        struct health_entry *entry = RT_LIST_ENTRY(node, struct health_entry, link);

        (void)rt_free(entry->name);
        (void)rt_free(entry);
    }
    (void)pthread_mutex_destroy(&health->lock);
    return rt_free(health);
}

void rpc_health_set(struct rpc_health *health, const char *service, bool is_serving)
{
    struct health_entry *entry;

    lock_health(health);
    entry = find_entry(health, service);
    if (!entry) {
        entry = rt_xalloc(sizeof(*entry));
        entry->name = rt_xstrdup(service);
        rt_list_push_back(&health->entries, &entry->link);
    }
    entry->is_serving = is_serving && !health->is_draining;
    rt_list_for_each (node, &health->watches)
        send_status(health, RT_LIST_ENTRY(node, struct health_watch, link));
    unlock_health(health);
}

void rpc_health_drain(struct rpc_health *health)
{
    struct rt_list *first;

    lock_health(health);
    health->is_draining = true;
    rt_list_for_each (node, &health->entries)
        RT_LIST_ENTRY(node, struct health_entry, link)->is_serving = false;
    while ((first = rt_list_pop_front(&health->watches))) {
        struct health_watch *watch = RT_LIST_ENTRY(first, struct health_watch, link);

        send_status(health, watch);
        end_watch(watch->call);
    }
    unlock_health(health);
}
