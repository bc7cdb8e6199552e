/*
 * AdminService: see codec.h. Any thread; no state.
 */
#include "redistinto/v1/admin.pb-c.h"
#include "runtime/wire/codec.h"

WIRE_ASSERT_UNARY_RESPONSE(Redistinto__V1__AdminServiceListInstancesResponse);
WIRE_ASSERT_UNARY_RESPONSE(Redistinto__V1__AdminServiceKeyStatusResponse);
WIRE_ASSERT_UNARY_RESPONSE(Redistinto__V1__AdminServiceListKeysResponse);
WIRE_ASSERT_UNARY_RESPONSE(Redistinto__V1__AdminServiceGetDistributionResponse);
WIRE_ASSERT_UNARY_RESPONSE(Redistinto__V1__AdminServiceSetDistributionResponse);
WIRE_ASSERT_UNARY_RESPONSE(Redistinto__V1__AdminServiceFreeLockResponse);

static void take_page_size(struct wire_input *in, uint32_t page_size,
                           struct model_page_request *page)
{
    if (page_size > MODEL_PAGE_MAX)
        wire_input_fail(in, MODEL_REASON_INVALID_FIELD, "page_size", "is %u, valid are 0 to %d",
                        page_size, MODEL_PAGE_MAX);
    page->page_size = page_size;
}

/* ---- ListInstances ---- */

static bool fill_list_instances_request(const struct model_request *request, struct rt_arena *arena,
                                        void *pointer)
{
    Redistinto__V1__AdminServiceListInstancesRequest *message = pointer;
    struct rt_bytes after;

    if (!rt_arena_copy(arena, request->page.after, &after))
        return false;
    message->after = (char *)after.data;
    message->page_size = request->page.page_size;
    return true;
}

static void take_list_instances_request(struct wire_input *in, const void *pointer,
                                        struct model_request *request)
{
    const Redistinto__V1__AdminServiceListInstancesRequest *message = pointer;
    char name[MODEL_NAME_MAX + 1];

    request->page = (struct model_page_request){0};
    wire_take_name(in, "after", message->after, WIRE_OPTIONAL, name);
    if (name[0])
        request->page.after = rt_bytes_of_string(message->after);
    take_page_size(in, message->page_size, &request->page);
}

static void put_instance(Redistinto__V1__InstanceInfo *ret_message,
                         const struct model_instance_info *info)
{
    ret_message->name = (char *)info->name;
    ret_message->address = (char *)info->address;
    ret_message->state = wire_put_member_state(info->state);
    ret_message->incarnation = info->incarnation;
    ret_message->ordinal = info->ordinal;
    ret_message->entries_free = info->entries_free;
    ret_message->entries_total = info->entries_total;
    ret_message->n_keys = info->n_keys;
    ret_message->last_renew_age_ms = info->last_renew_age_ms;
}

static bool fill_list_instances_response(const struct model_response *response,
                                         struct rt_arena *arena, void *pointer)
{
    const struct model_list_instances_response *list = &response->list_instances;
    Redistinto__V1__AdminServiceListInstancesResponse *message = pointer;

    message->more = list->more;
    if (list->n_instances == 0)
        return true;
    message->instances =
        wire_put_list(arena, &redistinto__v1__instance_info__descriptor, list->n_instances);
    if (!message->instances)
        return false;
    message->n_instances = list->n_instances;
    for (size_t i = 0; i < list->n_instances; i++)
        put_instance(message->instances[i], &list->instances[i]);
    return true;
}

static void take_instance(struct wire_input *in, const Redistinto__V1__InstanceInfo *message,
                          struct model_instance_info *ret_info)
{
    wire_take_name(in, "name", message->name, WIRE_REQUIRED, ret_info->name);
    wire_take_address(in, "address", message->address, ret_info->address);
    ret_info->state = wire_take_member_state(in, "state", message->state);
    ret_info->incarnation = message->incarnation;
    ret_info->ordinal = message->ordinal;
    ret_info->entries_free = message->entries_free;
    ret_info->entries_total = message->entries_total;
    ret_info->n_keys = message->n_keys;
    ret_info->last_renew_age_ms = message->last_renew_age_ms;
}

static void take_list_instances_response(struct wire_input *in, const void *pointer,
                                         struct model_response *response)
{
    const Redistinto__V1__AdminServiceListInstancesResponse *message = pointer;
    struct model_list_instances_response *list = &response->list_instances;

    list->more = message->more;
    list->instances = wire_list_begin(in, "instances", message->n_instances, MODEL_PAGE_MAX,
                                      sizeof(*list->instances));
    list->n_instances = list->instances ? message->n_instances : 0;
    for (in->index = 0; in->index < list->n_instances; in->index++)
        take_instance(in, message->instances[in->index], &list->instances[in->index]);
    wire_list_end(in);
}

/* ---- KeyStatus ---- */

static bool fill_key_status_request(const struct model_request *request, struct rt_arena *arena,
                                    void *pointer)
{
    Redistinto__V1__AdminServiceKeyStatusRequest *message = pointer;

    (void)arena;
    message->key = wire_put_bytes(request->key_status.key);
    return true;
}

static void take_key_status_request(struct wire_input *in, const void *pointer,
                                    struct model_request *request)
{
    const Redistinto__V1__AdminServiceKeyStatusRequest *message = pointer;

    wire_take_key(in, "key", &message->key, &request->key_status.key);
}

static bool put_waiters(Redistinto__V1__AdminServiceKeyStatusResponse *message,
                        const struct model_key_status_response *status, struct rt_arena *arena)
{
    if (status->n_waiters == 0)
        return true;
    message->waiters = rt_arena_alloc(arena, status->n_waiters * sizeof(*message->waiters));
    if (!message->waiters)
        return false;
    message->n_waiters = status->n_waiters;
    for (size_t i = 0; i < status->n_waiters; i++) {
        struct rt_bytes name;

        if (!rt_arena_copy(arena, status->waiters[i], &name))
            return false;
        message->waiters[i] = (char *)name.data;
    }
    return true;
}

static bool fill_key_status_response(const struct model_response *response, struct rt_arena *arena,
                                     void *pointer)
{
    static const struct model_version none;
    const struct model_key_status_response *status = &response->key_status;
    Redistinto__V1__AdminServiceKeyStatusResponse *message = pointer;

    message->known = status->known;
    if (status->has_value) {
        message->optional_value_case =
            REDISTINTO__V1__ADMIN_SERVICE_KEY_STATUS_RESPONSE__OPTIONAL_VALUE_VALUE;
        message->value = wire_put_bytes(status->value);
    }
    if (model_version_compare(&status->version, &none) != 0) {
        message->version = rt_arena_alloc(arena, sizeof(*message->version));
        if (!message->version)
            return false;
        wire_put_version(message->version, &status->version);
    }
    message->stored = status->stored;
    message->owner = (char *)status->owner;
    if (status->owner[0])
        message->owner_state = wire_put_member_state(status->owner_state);
    message->epoch = status->epoch;
    message->would_place = (char *)status->would_place;
    message->holder = (char *)status->holder;
    message->value_unavailable = status->value_unavailable;
    return put_waiters(message, status, arena);
}

static void take_waiters(struct wire_input *in,
                         const Redistinto__V1__AdminServiceKeyStatusResponse *message,
                         struct model_key_status_response *status)
{
    status->waiters = wire_list_begin(in, "waiters", message->n_waiters, MODEL_WAITERS_MAX,
                                      sizeof(*status->waiters));
    status->n_waiters = status->waiters ? message->n_waiters : 0;
    for (in->index = 0; in->index < status->n_waiters; in->index++) {
        char name[MODEL_NAME_MAX + 1];

        wire_take_name(in, "", message->waiters[in->index], WIRE_REQUIRED, name);
        if (name[0])
            status->waiters[in->index] = rt_bytes_of_string(message->waiters[in->index]);
    }
    wire_list_end(in);
}

static void take_key_status_response(struct wire_input *in, const void *pointer,
                                     struct model_response *response)
{
    const Redistinto__V1__AdminServiceKeyStatusResponse *message = pointer;
    struct model_key_status_response *status = &response->key_status;

    status->known = message->known;
    if (message->optional_value_case ==
        REDISTINTO__V1__ADMIN_SERVICE_KEY_STATUS_RESPONSE__OPTIONAL_VALUE_VALUE) {
        status->has_value = true;
        wire_take_value(in, "value", &message->value, &status->value);
    }
    (void)wire_take_version(message->version, &status->version);
    status->stored = message->stored;
    wire_take_name(in, "owner", message->owner, WIRE_OPTIONAL, status->owner);
    if (status->owner[0])
        status->owner_state = wire_take_member_state(in, "owner_state", message->owner_state);
    status->epoch = message->epoch;
    wire_take_name(in, "would_place", message->would_place, WIRE_OPTIONAL, status->would_place);
    wire_take_name(in, "holder", message->holder, WIRE_OPTIONAL, status->holder);
    status->value_unavailable = message->value_unavailable;
    take_waiters(in, message, status);
}

/* ---- ListKeys ---- */

static bool fill_list_keys_request(const struct model_request *request, struct rt_arena *arena,
                                   void *pointer)
{
    Redistinto__V1__AdminServiceListKeysRequest *message = pointer;

    (void)arena;
    message->prefix = wire_put_bytes(request->page.prefix);
    message->after = wire_put_bytes(request->page.after);
    message->page_size = request->page.page_size;
    return true;
}

static void take_list_keys_request(struct wire_input *in, const void *pointer,
                                   struct model_request *request)
{
    const Redistinto__V1__AdminServiceListKeysRequest *message = pointer;

    wire_take_key_part(in, "prefix", &message->prefix, &request->page.prefix);
    wire_take_key_part(in, "after", &message->after, &request->page.after);
    take_page_size(in, message->page_size, &request->page);
}

static bool fill_list_keys_response(const struct model_response *response, struct rt_arena *arena,
                                    void *pointer)
{
    const struct model_list_keys_response *list = &response->list_keys;
    Redistinto__V1__AdminServiceListKeysResponse *message = pointer;

    message->more = list->more;
    if (list->n_keys == 0)
        return true;
    message->keys = wire_put_list(arena, &redistinto__v1__key_info__descriptor, list->n_keys);
    if (!message->keys)
        return false;
    message->n_keys = list->n_keys;
    for (size_t i = 0; i < list->n_keys; i++) {
        message->keys[i]->key = wire_put_bytes(list->keys[i].key);
        message->keys[i]->owner = (char *)list->keys[i].owner;
        message->keys[i]->epoch = list->keys[i].epoch;
        message->keys[i]->holder = (char *)list->keys[i].holder;
    }
    return true;
}

static void take_list_keys_response(struct wire_input *in, const void *pointer,
                                    struct model_response *response)
{
    const Redistinto__V1__AdminServiceListKeysResponse *message = pointer;
    struct model_list_keys_response *list = &response->list_keys;

    list->more = message->more;
    list->keys = wire_list_begin(in, "keys", message->n_keys, MODEL_PAGE_MAX, sizeof(*list->keys));
    list->n_keys = list->keys ? message->n_keys : 0;
    for (in->index = 0; in->index < list->n_keys; in->index++) {
        const Redistinto__V1__KeyInfo *info = message->keys[in->index];
        struct model_key_info *key = &list->keys[in->index];

        wire_take_key(in, "key", &info->key, &key->key);
        wire_take_name(in, "owner", info->owner, WIRE_OPTIONAL, key->owner);
        key->epoch = info->epoch;
        wire_take_name(in, "holder", info->holder, WIRE_OPTIONAL, key->holder);
    }
    wire_list_end(in);
}

/* ---- GetDistribution, SetDistribution ---- */

static Redistinto__V1__Distribution put_distribution(enum model_distribution distribution)
{
    switch (distribution) {
    case MODEL_DISTRIBUTION_EQUITABLE_LOAD:
        return REDISTINTO__V1__DISTRIBUTION__DISTRIBUTION_EQUITABLE_LOAD;
    case MODEL_DISTRIBUTION_LEAST_SPACE_USED:
        return REDISTINTO__V1__DISTRIBUTION__DISTRIBUTION_LEAST_SPACE_USED;
    case MODEL_DISTRIBUTION_KEY_EXPLICIT:
        return REDISTINTO__V1__DISTRIBUTION__DISTRIBUTION_KEY_EXPLICIT;
    case MODEL_N_DISTRIBUTIONS:
        break;
    }
    return REDISTINTO__V1__DISTRIBUTION__DISTRIBUTION_UNSPECIFIED;
}

static enum model_distribution take_distribution(struct wire_input *in, const char *field,
                                                 Redistinto__V1__Distribution distribution)
{
    switch ((int)distribution) {
    case REDISTINTO__V1__DISTRIBUTION__DISTRIBUTION_EQUITABLE_LOAD:
        return MODEL_DISTRIBUTION_EQUITABLE_LOAD;
    case REDISTINTO__V1__DISTRIBUTION__DISTRIBUTION_LEAST_SPACE_USED:
        return MODEL_DISTRIBUTION_LEAST_SPACE_USED;
    case REDISTINTO__V1__DISTRIBUTION__DISTRIBUTION_KEY_EXPLICIT:
        return MODEL_DISTRIBUTION_KEY_EXPLICIT;
    }
    wire_input_fail(in, MODEL_REASON_INVALID_FIELD, field, "is %d, valid are 1 to %d",
                    (int)distribution, MODEL_N_DISTRIBUTIONS);
    return MODEL_DISTRIBUTION_EQUITABLE_LOAD;
}

/* The two answers say the same. */
_Static_assert(sizeof(Redistinto__V1__AdminServiceGetDistributionResponse) ==
                       sizeof(Redistinto__V1__AdminServiceSetDistributionResponse) &&
                   offsetof(Redistinto__V1__AdminServiceGetDistributionResponse, configured) ==
                       offsetof(Redistinto__V1__AdminServiceSetDistributionResponse, configured),
               "distribution");

static bool fill_distribution_response(const struct model_response *response,
                                       struct rt_arena *arena, void *pointer)
{
    Redistinto__V1__AdminServiceGetDistributionResponse *message = pointer;

    (void)arena;
    message->distribution = put_distribution(response->distribution.distribution);
    message->configured = put_distribution(response->distribution.configured);
    return true;
}

static void take_distribution_response(struct wire_input *in, const void *pointer,
                                       struct model_response *response)
{
    const Redistinto__V1__AdminServiceGetDistributionResponse *message = pointer;
    struct model_distribution_response *distribution = &response->distribution;

    distribution->distribution = take_distribution(in, "distribution", message->distribution);
    distribution->configured = take_distribution(in, "configured", message->configured);
}

static bool fill_distribution_request(const struct model_request *request, struct rt_arena *arena,
                                      void *pointer)
{
    Redistinto__V1__AdminServiceSetDistributionRequest *message = pointer;

    (void)arena;
    message->distribution = put_distribution(request->distribution.distribution);
    return true;
}

static void take_distribution_request(struct wire_input *in, const void *pointer,
                                      struct model_request *request)
{
    const Redistinto__V1__AdminServiceSetDistributionRequest *message = pointer;

    request->distribution.distribution =
        take_distribution(in, "distribution", message->distribution);
}

/* ---- FreeLock ---- */

static bool fill_free_lock_request(const struct model_request *request, struct rt_arena *arena,
                                   void *pointer)
{
    Redistinto__V1__AdminServiceFreeLockRequest *message = pointer;

    (void)arena;
    message->key = wire_put_bytes(request->key_status.key);
    return true;
}

static void take_free_lock_request(struct wire_input *in, const void *pointer,
                                   struct model_request *request)
{
    const Redistinto__V1__AdminServiceFreeLockRequest *message = pointer;

    wire_take_key(in, "key", &message->key, &request->key_status.key);
}

static bool fill_free_lock_response(const struct model_response *response, struct rt_arena *arena,
                                    void *pointer)
{
    Redistinto__V1__AdminServiceFreeLockResponse *message = pointer;

    (void)arena;
    message->holder = (char *)response->free_lock.holder;
    return true;
}

static void take_free_lock_response(struct wire_input *in, const void *pointer,
                                    struct model_response *response)
{
    const Redistinto__V1__AdminServiceFreeLockResponse *message = pointer;

    wire_take_name(in, "holder", message->holder, WIRE_OPTIONAL, response->free_lock.holder);
}

static const struct wire_codec list_instances_codec = {
    fill_list_instances_request, take_list_instances_request, fill_list_instances_response,
    take_list_instances_response};
static const struct wire_codec key_status_codec = {fill_key_status_request, take_key_status_request,
                                                   fill_key_status_response,
                                                   take_key_status_response};
static const struct wire_codec list_keys_codec = {fill_list_keys_request, take_list_keys_request,
                                                  fill_list_keys_response, take_list_keys_response};
static const struct wire_codec get_distribution_codec = {
    .fill_response = fill_distribution_response, .take_response = take_distribution_response};
static const struct wire_codec set_distribution_codec = {
    fill_distribution_request, take_distribution_request, fill_distribution_response,
    take_distribution_response};
static const struct wire_codec free_lock_codec = {fill_free_lock_request, take_free_lock_request,
                                                  fill_free_lock_response, take_free_lock_response};

const struct wire_method wire_admin_methods[6] = {
    WIRE_METHOD(MODEL_CALL_LIST_INSTANCES, admin_service, "ListInstances",
                admin_service_list_instances, WIRE_UNARY, &list_instances_codec),
    WIRE_METHOD(MODEL_CALL_KEY_STATUS, admin_service, "KeyStatus", admin_service_key_status,
                WIRE_UNARY, &key_status_codec),
    WIRE_METHOD(MODEL_CALL_LIST_KEYS, admin_service, "ListKeys", admin_service_list_keys,
                WIRE_UNARY, &list_keys_codec),
    WIRE_METHOD(MODEL_CALL_GET_DISTRIBUTION, admin_service, "GetDistribution",
                admin_service_get_distribution, WIRE_UNARY, &get_distribution_codec),
    WIRE_METHOD(MODEL_CALL_SET_DISTRIBUTION, admin_service, "SetDistribution",
                admin_service_set_distribution, WIRE_UNARY, &set_distribution_codec),
    WIRE_METHOD(MODEL_CALL_FREE_LOCK, admin_service, "FreeLock", admin_service_free_lock,
                WIRE_UNARY, &free_lock_codec),
};
