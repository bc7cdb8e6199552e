/*
 * Locks and routes of CoordinatorService: see codec.h. Any thread; no state.
 */
#include "redistinto/v1/coordinator.pb-c.h"
#include "runtime/wire/codec.h"
#include "runtime/wire/outcome.h"

WIRE_ASSERT_UNARY_RESPONSE(Redistinto__V1__LockResponse);
WIRE_ASSERT_UNARY_RESPONSE(Redistinto__V1__UnlockResponse);
WIRE_ASSERT_UNARY_RESPONSE(Redistinto__V1__RouteResponse);
WIRE_ASSERT_UNARY_RESPONSE(Redistinto__V1__WatchRoutesResponse);

/* ---- a route ---- */

static void put_route(Redistinto__V1__Route *ret_message, const struct model_route *route)
{
    redistinto__v1__route__init(ret_message);
    ret_message->cluster_id = wire_put_id(&route->cluster_id);
    ret_message->owner = (char *)route->owner;
    ret_message->address = (char *)route->address;
    ret_message->incarnation = route->incarnation;
    ret_message->epoch = route->epoch;
}

/* False when absent. */
static bool take_route(struct wire_input *in, const Redistinto__V1__Route *message,
                       struct model_route *ret_route)
{
    if (!message)
        return false;
    wire_take_id(in, "route.cluster_id", &message->cluster_id, WIRE_REQUIRED,
                 &ret_route->cluster_id);
    wire_take_name(in, "route.owner", message->owner, WIRE_REQUIRED, ret_route->owner);
    wire_take_address(in, "route.address", message->address, ret_route->address);
    ret_route->incarnation = message->incarnation;
    ret_route->epoch = message->epoch;
    return true;
}

/* ---- Lock ---- */

static bool fill_lock_request(const struct model_request *request, struct rt_arena *arena,
                              void *pointer)
{
    Redistinto__V1__LockRequest *message = pointer;
    Redistinto__V1__RequestId *request_id = rt_arena_alloc(arena, sizeof(*request_id));

    if (!request_id)
        return false;
    message->session_id = wire_put_id(&request->lock.session_id);
    message->request_id = wire_put_request_id(request_id, &request->lock.request_id);
    message->done_below = request->lock.done_below;
    message->key = wire_put_bytes(request->lock.key);
    message->no_wait = request->lock.no_wait;
    return true;
}

static void take_lock_request(struct wire_input *in, const void *pointer,
                              struct model_request *request)
{
    const Redistinto__V1__LockRequest *message = pointer;
    struct model_lock_request *lock = &request->lock;

    wire_take_id(in, "session_id", &message->session_id, WIRE_REQUIRED, &lock->session_id);
    wire_take_request_id(in, "request_id.client_id", "request_id.seq", message->request_id,
                         &lock->request_id);
    wire_take_key(in, "key", &message->key, &lock->key);
    lock->done_below = message->done_below;
    lock->no_wait = message->no_wait;
}

struct lock_parts {
    struct wire_key_result key;
    Redistinto__V1__Route route;
};

static bool fill_lock_response(const struct model_response *response, struct rt_arena *arena,
                               void *pointer)
{
    const struct model_lock_response *lock = &response->lock;
    Redistinto__V1__LockResponse *message = pointer;
    struct lock_parts *parts = rt_arena_alloc(arena, sizeof(*parts));

    if (!parts || !wire_put_key_result(&parts->key, &lock->data, arena))
        return false;
    message->outcome = wire_put_outcome(lock->outcome);
    message->key = &parts->key.message;
    message->lock_token = lock->lock_token;
    message->holder = (char *)lock->holder;
    if (lock->has_route) {
        put_route(&parts->route, &lock->route);
        message->route = &parts->route;
    }
    return true;
}

static void take_lock_response(struct wire_input *in, const void *pointer,
                               struct model_response *response)
{
    const Redistinto__V1__LockResponse *message = pointer;
    struct model_lock_response *lock = &response->lock;

    lock->outcome = wire_take_outcome(in, message->outcome);
    wire_take_key_result(in, message->key, &lock->data);
    lock->lock_token = message->lock_token;
    lock->has_route = take_route(in, message->route, &lock->route);
    wire_take_name(in, "holder", message->holder, WIRE_OPTIONAL, lock->holder);
}

/* ---- Unlock ---- */

static bool fill_unlock_request(const struct model_request *request, struct rt_arena *arena,
                                void *pointer)
{
    Redistinto__V1__UnlockRequest *message = pointer;

    (void)arena;
    message->session_id = wire_put_id(&request->unlock.session_id);
    message->key = wire_put_bytes(request->unlock.key);
    message->lock_token = request->unlock.lock_token;
    return true;
}

static void take_unlock_request(struct wire_input *in, const void *pointer,
                                struct model_request *request)
{
    const Redistinto__V1__UnlockRequest *message = pointer;
    struct model_unlock_request *unlock = &request->unlock;

    wire_take_id(in, "session_id", &message->session_id, WIRE_REQUIRED, &unlock->session_id);
    wire_take_key(in, "key", &message->key, &unlock->key);
    if (message->lock_token == 0)
        wire_input_fail(in, MODEL_REASON_INVALID_FIELD, "lock_token",
                        "is 0, valid are 1 and above");
    unlock->lock_token = message->lock_token;
}

/* ---- Route ---- */

static Redistinto__V1__RouteOperation put_operation(enum model_statement_kind operation)
{
    switch (operation) {
    case MODEL_STATEMENT_READ:
        return REDISTINTO__V1__ROUTE_OPERATION__ROUTE_OPERATION_READ;
    case MODEL_STATEMENT_SET:
        return REDISTINTO__V1__ROUTE_OPERATION__ROUTE_OPERATION_SET;
    case MODEL_STATEMENT_STORE:
        return REDISTINTO__V1__ROUTE_OPERATION__ROUTE_OPERATION_STORE;
    case MODEL_STATEMENT_PUT:
        return REDISTINTO__V1__ROUTE_OPERATION__ROUTE_OPERATION_PUT;
    case MODEL_STATEMENT_DELETE:
        return REDISTINTO__V1__ROUTE_OPERATION__ROUTE_OPERATION_DELETE;
    case MODEL_STATEMENT_GET:
    case MODEL_STATEMENT_AWAIT:
        break;
    }
    return REDISTINTO__V1__ROUTE_OPERATION__ROUTE_OPERATION_UNSPECIFIED;
}

static enum model_statement_kind take_operation(struct wire_input *in,
                                                Redistinto__V1__RouteOperation operation)
{
    switch ((int)operation) {
    case REDISTINTO__V1__ROUTE_OPERATION__ROUTE_OPERATION_READ:
        return MODEL_STATEMENT_READ;
    case REDISTINTO__V1__ROUTE_OPERATION__ROUTE_OPERATION_SET:
        return MODEL_STATEMENT_SET;
    case REDISTINTO__V1__ROUTE_OPERATION__ROUTE_OPERATION_STORE:
        return MODEL_STATEMENT_STORE;
    case REDISTINTO__V1__ROUTE_OPERATION__ROUTE_OPERATION_PUT:
        return MODEL_STATEMENT_PUT;
    case REDISTINTO__V1__ROUTE_OPERATION__ROUTE_OPERATION_DELETE:
        return MODEL_STATEMENT_DELETE;
    }
    wire_input_fail(in, MODEL_REASON_INVALID_FIELD, "operation", "is %d, valid are 1 to 5",
                    (int)operation);
    return MODEL_STATEMENT_READ;
}

static bool fill_route_request(const struct model_request *request, struct rt_arena *arena,
                               void *pointer)
{
    const struct model_route_request *route = &request->route;
    Redistinto__V1__RouteRequest *message = pointer;

    (void)arena;
    message->key = wire_put_bytes(route->key);
    message->operation = put_operation(route->operation);
    message->value_size = route->value_size;
    message->session_id = wire_put_id(&route->session_id);
    message->lock_token = route->lock_token;
    message->min_placement_version = route->min_placement_version;
    return true;
}

static void take_route_request(struct wire_input *in, const void *pointer,
                               struct model_request *request)
{
    const Redistinto__V1__RouteRequest *message = pointer;
    struct model_route_request *route = &request->route;

    wire_take_key(in, "key", &message->key, &route->key);
    route->operation = take_operation(in, message->operation);
    if (message->value_size > MODEL_VALUE_MAX)
        wire_input_fail(in, MODEL_REASON_VALUE_TOO_LARGE, "value_size",
                        "is %llu bytes, valid are 0 to %d", (unsigned long long)message->value_size,
                        MODEL_VALUE_MAX);
    route->value_size = message->value_size;
    wire_take_id(in, "session_id", &message->session_id, WIRE_OPTIONAL, &route->session_id);
    route->lock_token = message->lock_token;
    route->min_placement_version = message->min_placement_version;
}

static bool fill_route_response(const struct model_response *response, struct rt_arena *arena,
                                void *pointer)
{
    Redistinto__V1__RouteResponse *message = pointer;

    if (!response->route.has_route)
        return true;
    message->route = rt_arena_alloc(arena, sizeof(*message->route));
    if (!message->route)
        return false;
    put_route(message->route, &response->route.route);
    return true;
}

static void take_route_response(struct wire_input *in, const void *pointer,
                                struct model_response *response)
{
    const Redistinto__V1__RouteResponse *message = pointer;

    response->route.has_route = take_route(in, message->route, &response->route.route);
}

/* ---- WatchRoutes ---- */

static bool fill_watch_request(const struct model_request *request, struct rt_arena *arena,
                               void *pointer)
{
    Redistinto__V1__WatchRoutesRequest *message = pointer;

    (void)arena;
    message->prefix = wire_put_bytes(request->watch_routes.prefix);
    message->after_version = request->watch_routes.after_version;
    return true;
}

static void take_watch_request(struct wire_input *in, const void *pointer,
                               struct model_request *request)
{
    const Redistinto__V1__WatchRoutesRequest *message = pointer;

    request->watch_routes =
        (struct model_watch_routes_request){.after_version = message->after_version};
    wire_take_key_part(in, "prefix", &message->prefix, &request->watch_routes.prefix);
}

static bool fill_instances(const struct model_watch_routes_response *watch, struct rt_arena *arena,
                           Redistinto__V1__WatchRoutesResponse *message)
{
    if (watch->n_instances == 0)
        return true;
    message->instances =
        wire_put_list(arena, &redistinto__v1__watched_instance__descriptor, watch->n_instances);
    if (!message->instances)
        return false;
    message->n_instances = watch->n_instances;
    for (size_t i = 0; i < watch->n_instances; i++) {
        const struct model_watched_instance *instance = &watch->instances[i];

        message->instances[i]->name = (char *)instance->name;
        message->instances[i]->address = (char *)instance->address;
        message->instances[i]->incarnation = instance->incarnation;
        message->instances[i]->state = wire_put_member_state(instance->state);
    }
    return true;
}

static bool fill_keys(const struct model_watch_routes_response *watch, struct rt_arena *arena,
                      Redistinto__V1__WatchRoutesResponse *message)
{
    if (watch->n_keys == 0)
        return true;
    message->keys = wire_put_list(arena, &redistinto__v1__watched_key__descriptor, watch->n_keys);
    if (!message->keys)
        return false;
    message->n_keys = watch->n_keys;
    for (size_t i = 0; i < watch->n_keys; i++) {
        message->keys[i]->key = wire_put_bytes(watch->keys[i].key);
        message->keys[i]->owner = (char *)watch->keys[i].owner;
        message->keys[i]->epoch = watch->keys[i].epoch;
    }
    return true;
}

static bool fill_watch_response(const struct model_response *response, struct rt_arena *arena,
                                void *pointer)
{
    const struct model_watch_routes_response *watch = &response->watch_routes;
    Redistinto__V1__WatchRoutesResponse *message = pointer;

    message->reset = watch->reset;
    message->more = watch->more;
    message->version = watch->version;
    return fill_instances(watch, arena, message) && fill_keys(watch, arena, message);
}

static void take_instances(struct wire_input *in,
                           const Redistinto__V1__WatchRoutesResponse *message,
                           struct model_watch_routes_response *watch)
{
    watch->instances = wire_list_begin(in, "instances", message->n_instances, MODEL_MEMBERS_MAX,
                                       sizeof(*watch->instances));
    watch->n_instances = watch->instances ? message->n_instances : 0;
    for (in->index = 0; in->index < watch->n_instances; in->index++) {
        const Redistinto__V1__WatchedInstance *source = message->instances[in->index];
        struct model_watched_instance *instance = &watch->instances[in->index];

        wire_take_name(in, "name", source->name, WIRE_REQUIRED, instance->name);
        wire_take_address(in, "address", source->address, instance->address);
        instance->incarnation = source->incarnation;
        instance->state = wire_take_member_state(in, "state", source->state);
    }
    wire_list_end(in);
}

static void take_keys(struct wire_input *in, const Redistinto__V1__WatchRoutesResponse *message,
                      struct model_watch_routes_response *watch)
{
    watch->keys =
        wire_list_begin(in, "keys", message->n_keys, MODEL_WATCH_KEYS_MAX, sizeof(*watch->keys));
    watch->n_keys = watch->keys ? message->n_keys : 0;
    for (in->index = 0; in->index < watch->n_keys; in->index++) {
        const Redistinto__V1__WatchedKey *source = message->keys[in->index];
        struct model_watched_key *key = &watch->keys[in->index];

        wire_take_key(in, "key", &source->key, &key->key);
        wire_take_name(in, "owner", source->owner, WIRE_OPTIONAL, key->owner);
        key->epoch = source->epoch;
    }
    wire_list_end(in);
}

static void take_watch_response(struct wire_input *in, const void *pointer,
                                struct model_response *response)
{
    const Redistinto__V1__WatchRoutesResponse *message = pointer;
    struct model_watch_routes_response *watch = &response->watch_routes;

    watch->reset = message->reset;
    watch->more = message->more;
    watch->version = message->version;
    take_instances(in, message, watch);
    take_keys(in, message, watch);
}

static const struct wire_codec lock_codec = {fill_lock_request, take_lock_request,
                                             fill_lock_response, take_lock_response};
static const struct wire_codec unlock_codec = {fill_unlock_request, take_unlock_request, NULL,
                                               NULL};
static const struct wire_codec route_codec = {fill_route_request, take_route_request,
                                              fill_route_response, take_route_response};
static const struct wire_codec watch_codec = {fill_watch_request, take_watch_request,
                                              fill_watch_response, take_watch_response};

const struct wire_method wire_route_methods[4] = {
    WIRE_METHOD(MODEL_CALL_LOCK, coordinator_service, "Lock", lock, WIRE_UNARY, &lock_codec),
    WIRE_METHOD(MODEL_CALL_UNLOCK, coordinator_service, "Unlock", unlock, WIRE_UNARY,
                &unlock_codec),
    WIRE_METHOD(MODEL_CALL_ROUTE, coordinator_service, "Route", route, WIRE_UNARY, &route_codec),
    WIRE_METHOD(MODEL_CALL_WATCH_ROUTES, coordinator_service, "WatchRoutes", watch_routes,
                WIRE_WATCH, &watch_codec),
};
