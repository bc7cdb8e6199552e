/*
 * InstanceService: see codec.h. SET is the hot path: reading a request allocates nothing, writing
 * an answer takes memory from the arena only. Any thread; no state.
 */
#include "runtime/wire/data.h"
#include "runtime/wire/key_response.h"

WIRE_ASSERT_KEY_RESPONSE(Redistinto__V1__InstanceServiceSetResponse);
WIRE_ASSERT_KEY_RESPONSE(Redistinto__V1__InstanceServiceStoreResponse);
WIRE_ASSERT_KEY_RESPONSE(Redistinto__V1__InstanceServicePutResponse);
WIRE_ASSERT_KEY_RESPONSE(Redistinto__V1__InstanceServiceReadResponse);
WIRE_ASSERT_KEY_RESPONSE(Redistinto__V1__InstanceServiceDeleteResponse);
WIRE_ASSERT_UNARY_RESPONSE(Redistinto__V1__InstanceServiceStatusResponse);
WIRE_ASSERT_UNARY_RESPONSE(Redistinto__V1__InstanceServiceListEntriesResponse);

bool wire_fill_key_response(const struct model_response *response, struct rt_arena *arena,
                            void *pointer)
{
    struct wire_key_response *message = pointer;
    struct wire_key_result *result = rt_arena_alloc(arena, sizeof(*result));

    if (!result || !wire_put_key_result(result, &response->data, arena))
        return false;
    message->result = &result->message;
    return true;
}

void wire_take_key_response(struct wire_input *in, const void *pointer,
                            struct model_response *response)
{
    wire_take_key_result(in, ((const struct wire_key_response *)pointer)->result, &response->data);
}

/* ---- requests ---- */

/* All that a request can hold beside its own message. */
struct data_parts {
    Redistinto__V1__OperationHeader header;
    Redistinto__V1__RequestId request_id;
    Redistinto__V1__Version version;
};

/* The header filled; NULL when the arena is full. */
static struct data_parts *put_data(const struct model_data_request *data, struct rt_arena *arena)
{
    const struct model_header *header = &data->header;
    struct data_parts *parts = rt_arena_alloc(arena, sizeof(*parts));
    Redistinto__V1__OperationHeader *message;

    if (!parts)
        return NULL;
    message = &parts->header;
    redistinto__v1__operation_header__init(message);
    message->cluster_id = wire_put_id(&header->cluster_id);
    message->key = wire_put_bytes(header->key);
    message->epoch = header->epoch;
    message->owner = (char *)header->owner;
    message->incarnation = header->incarnation;
    message->request_id = wire_put_request_id(&parts->request_id, &header->request_id);
    message->done_below = header->done_below;
    message->first_epoch = header->first_epoch;
    message->lock_token = header->lock_token;
    message->term = header->term;
    message->no_compaction = header->no_compaction;
    return parts;
}

static Redistinto__V1__Version *put_optional_version(struct data_parts *parts, bool has,
                                                     const struct model_version *version)
{
    if (!has)
        return NULL;
    wire_put_version(&parts->version, version);
    return &parts->version;
}

static void take_header(struct wire_input *in, const Redistinto__V1__OperationHeader *message,
                        struct model_data_request *data)
{
    struct model_header *header = &data->header;

    *data = (struct model_data_request){0};
    if (!message) {
        wire_input_missing(in, "header");
        return;
    }
    wire_take_id(in, "header.cluster_id", &message->cluster_id, WIRE_OPTIONAL, &header->cluster_id);
    wire_take_key(in, "header.key", &message->key, &header->key);
    wire_take_name(in, "header.owner", message->owner, WIRE_REQUIRED, header->owner);
    wire_take_request_id(in, "header.request_id.client_id", "header.request_id.seq",
                         message->request_id, &header->request_id);
    header->epoch = message->epoch;
    header->incarnation = message->incarnation;
    header->done_below = message->done_below;
    header->first_epoch = message->first_epoch;
    header->lock_token = message->lock_token;
    header->term = message->term;
    header->no_compaction = message->no_compaction;
}

static bool fill_set_request(const struct model_request *request, struct rt_arena *arena,
                             void *pointer)
{
    Redistinto__V1__InstanceServiceSetRequest *message = pointer;
    struct data_parts *parts = put_data(&request->data, arena);

    if (!parts)
        return false;
    message->header = &parts->header;
    message->value = wire_put_bytes(request->data.value);
    return true;
}

static void take_set_request(struct wire_input *in, const void *pointer,
                             struct model_request *request)
{
    const Redistinto__V1__InstanceServiceSetRequest *message = pointer;

    take_header(in, message->header, &request->data);
    wire_take_value(in, "value", &message->value, &request->data.value);
}

static bool fill_store_request(const struct model_request *request, struct rt_arena *arena,
                               void *pointer)
{
    Redistinto__V1__InstanceServiceStoreRequest *message = pointer;
    struct data_parts *parts = put_data(&request->data, arena);

    if (!parts)
        return false;
    message->header = &parts->header;
    message->last_set =
        put_optional_version(parts, request->data.has_last_set, &request->data.last_set);
    return true;
}

static void take_store_request(struct wire_input *in, const void *pointer,
                               struct model_request *request)
{
    const Redistinto__V1__InstanceServiceStoreRequest *message = pointer;

    take_header(in, message->header, &request->data);
    request->data.has_last_set = wire_take_version(message->last_set, &request->data.last_set);
}

static bool fill_put_request(const struct model_request *request, struct rt_arena *arena,
                             void *pointer)
{
    Redistinto__V1__InstanceServicePutRequest *message = pointer;
    struct data_parts *parts = put_data(&request->data, arena);

    if (!parts)
        return false;
    message->header = &parts->header;
    message->value = wire_put_bytes(request->data.value);
    message->if_version =
        put_optional_version(parts, request->data.has_if_version, &request->data.if_version);
    return true;
}

static void take_put_request(struct wire_input *in, const void *pointer,
                             struct model_request *request)
{
    const Redistinto__V1__InstanceServicePutRequest *message = pointer;
    struct model_data_request *data = &request->data;

    take_header(in, message->header, data);
    wire_take_value(in, "value", &message->value, &data->value);
    data->has_if_version = wire_take_version(message->if_version, &data->if_version);
}

Redistinto__V1__Consistency wire_put_consistency(enum model_consistency consistency)
{
    switch (consistency) {
    case MODEL_READ_LINEARIZABLE:
        return REDISTINTO__V1__CONSISTENCY__CONSISTENCY_LINEARIZABLE;
    case MODEL_READ_STALE_OK:
        return REDISTINTO__V1__CONSISTENCY__CONSISTENCY_STALE_OK;
    }
    return REDISTINTO__V1__CONSISTENCY__CONSISTENCY_UNSPECIFIED;
}

enum model_consistency wire_take_consistency(struct wire_input *in,
                                             Redistinto__V1__Consistency consistency)
{
    switch ((int)consistency) {
    case REDISTINTO__V1__CONSISTENCY__CONSISTENCY_UNSPECIFIED:
    case REDISTINTO__V1__CONSISTENCY__CONSISTENCY_LINEARIZABLE:
        return MODEL_READ_LINEARIZABLE;
    case REDISTINTO__V1__CONSISTENCY__CONSISTENCY_STALE_OK:
        return MODEL_READ_STALE_OK;
    }
    wire_input_fail(in, MODEL_REASON_INVALID_FIELD, "consistency", "is %d, valid are 0 to 2",
                    (int)consistency);
    return MODEL_READ_LINEARIZABLE;
}

static bool fill_read_request(const struct model_request *request, struct rt_arena *arena,
                              void *pointer)
{
    Redistinto__V1__InstanceServiceReadRequest *message = pointer;
    struct data_parts *parts = put_data(&request->data, arena);

    if (!parts)
        return false;
    message->header = &parts->header;
    message->consistency = wire_put_consistency(request->data.consistency);
    return true;
}

static void take_read_request(struct wire_input *in, const void *pointer,
                              struct model_request *request)
{
    const Redistinto__V1__InstanceServiceReadRequest *message = pointer;

    take_header(in, message->header, &request->data);
    request->data.consistency = wire_take_consistency(in, message->consistency);
}

static bool fill_delete_request(const struct model_request *request, struct rt_arena *arena,
                                void *pointer)
{
    Redistinto__V1__InstanceServiceDeleteRequest *message = pointer;
    struct data_parts *parts = put_data(&request->data, arena);

    if (!parts)
        return false;
    message->header = &parts->header;
    message->if_version =
        put_optional_version(parts, request->data.has_if_version, &request->data.if_version);
    return true;
}

static void take_delete_request(struct wire_input *in, const void *pointer,
                                struct model_request *request)
{
    const Redistinto__V1__InstanceServiceDeleteRequest *message = pointer;
    struct model_data_request *data = &request->data;

    take_header(in, message->header, data);
    data->has_if_version = wire_take_version(message->if_version, &data->if_version);
}

/* ---- Status ---- */

static bool fill_status_response(const struct model_response *response, struct rt_arena *arena,
                                 void *pointer)
{
    const struct model_instance_status_response *status = &response->instance_status;
    Redistinto__V1__InstanceServiceStatusResponse *message = pointer;

    (void)arena;
    message->name = (char *)status->name;
    message->cluster_id = wire_put_id(&status->cluster_id);
    message->serving = status->serving;
    message->fence_in_ms = status->fence_in_ms;
    message->n_keys = status->n_keys;
    message->n_quarantined = status->n_quarantined;
    message->entries_free = status->entries_free;
    message->entries_total = status->entries_total;
    message->entry_size = status->entry_size;
    message->n_operations = status->n_operations;
    message->n_compactions = status->n_compactions;
    return true;
}

static void take_status_response(struct wire_input *in, const void *pointer,
                                 struct model_response *response)
{
    const Redistinto__V1__InstanceServiceStatusResponse *message = pointer;
    struct model_instance_status_response *status = &response->instance_status;

    wire_take_name(in, "name", message->name, WIRE_REQUIRED, status->name);
    wire_take_id(in, "cluster_id", &message->cluster_id, WIRE_OPTIONAL, &status->cluster_id);
    status->serving = message->serving;
    status->fence_in_ms = message->fence_in_ms;
    status->n_keys = message->n_keys;
    status->n_quarantined = message->n_quarantined;
    status->entries_free = message->entries_free;
    status->entries_total = message->entries_total;
    status->entry_size = message->entry_size;
    status->n_operations = message->n_operations;
    status->n_compactions = message->n_compactions;
}

/* ---- ListEntries ---- */

static bool fill_list_entries_request(const struct model_request *request, struct rt_arena *arena,
                                      void *pointer)
{
    Redistinto__V1__InstanceServiceListEntriesRequest *message = pointer;

    (void)arena;
    message->first_index = request->list_entries.first_index;
    message->page_size = request->list_entries.page_size;
    return true;
}

static void take_list_entries_request(struct wire_input *in, const void *pointer,
                                      struct model_request *request)
{
    const Redistinto__V1__InstanceServiceListEntriesRequest *message = pointer;

    if (message->page_size > MODEL_PAGE_MAX)
        wire_input_fail(in, MODEL_REASON_INVALID_FIELD, "page_size", "is %u, valid are 0 to %d",
                        message->page_size, MODEL_PAGE_MAX);
    request->list_entries.first_index = message->first_index;
    request->list_entries.page_size = message->page_size;
}

static bool fill_list_entries_response(const struct model_response *response,
                                       struct rt_arena *arena, void *pointer)
{
    const struct model_list_entries_response *list = &response->list_entries;
    Redistinto__V1__InstanceServiceListEntriesResponse *message = pointer;

    message->more = list->more;
    message->pointer = list->pointer;
    message->entries_free = list->entries_free;
    message->entries_total = list->entries_total;
    message->entry_size = list->entry_size;
    if (list->n_entries == 0)
        return true;
    message->entries =
        wire_put_list(arena, &redistinto__v1__entry_info__descriptor, list->n_entries);
    if (!message->entries)
        return false;
    message->n_entries = list->n_entries;
    for (size_t i = 0; i < list->n_entries; i++) {
        const struct model_entry_info *entry = &list->entries[i];

        message->entries[i]->index = entry->index;
        message->entries[i]->key = wire_put_bytes(entry->key);
        message->entries[i]->offset = entry->offset;
        message->entries[i]->bytes_used = entry->bytes_used;
        message->entries[i]->atomic = entry->atomic;
    }
    return true;
}

static void take_entry(struct wire_input *in, const Redistinto__V1__EntryInfo *message,
                       struct model_entry_info *entry)
{
    entry->index = message->index;
    wire_take_key(in, "key", &message->key, &entry->key);
    entry->offset = message->offset;
    entry->bytes_used = message->bytes_used;
    entry->atomic = message->atomic;
}

static void take_list_entries_response(struct wire_input *in, const void *pointer,
                                       struct model_response *response)
{
    const Redistinto__V1__InstanceServiceListEntriesResponse *message = pointer;
    struct model_list_entries_response *list = &response->list_entries;

    list->more = message->more;
    list->pointer = message->pointer;
    list->entries_free = message->entries_free;
    list->entries_total = message->entries_total;
    list->entry_size = message->entry_size;
    list->entries =
        wire_list_begin(in, "entries", message->n_entries, MODEL_PAGE_MAX, sizeof(*list->entries));
    list->n_entries = list->entries ? message->n_entries : 0;
    for (in->index = 0; in->index < list->n_entries; in->index++)
        take_entry(in, message->entries[in->index], &list->entries[in->index]);
    wire_list_end(in);
}

static const struct wire_codec set_codec = {fill_set_request, take_set_request,
                                            wire_fill_key_response, wire_take_key_response};
static const struct wire_codec store_codec = {fill_store_request, take_store_request,
                                              wire_fill_key_response, wire_take_key_response};
static const struct wire_codec put_codec = {fill_put_request, take_put_request,
                                            wire_fill_key_response, wire_take_key_response};
static const struct wire_codec read_codec = {fill_read_request, take_read_request,
                                             wire_fill_key_response, wire_take_key_response};
static const struct wire_codec delete_codec = {fill_delete_request, take_delete_request,
                                               wire_fill_key_response, wire_take_key_response};
static const struct wire_codec status_codec = {NULL, NULL, fill_status_response,
                                               take_status_response};
static const struct wire_codec list_entries_codec = {
    fill_list_entries_request, take_list_entries_request, fill_list_entries_response,
    take_list_entries_response};

const struct wire_method wire_instance_methods[8] = {
    WIRE_METHOD(MODEL_CALL_SET, instance_service, "Set", instance_service_set, WIRE_UNARY,
                &set_codec),
    WIRE_METHOD(MODEL_CALL_STORE, instance_service, "Store", instance_service_store, WIRE_UNARY,
                &store_codec),
    WIRE_METHOD(MODEL_CALL_PUT, instance_service, "Put", instance_service_put, WIRE_UNARY,
                &put_codec),
    WIRE_METHOD(MODEL_CALL_READ, instance_service, "Read", instance_service_read, WIRE_UNARY,
                &read_codec),
    WIRE_METHOD(MODEL_CALL_DELETE, instance_service, "Delete", instance_service_delete, WIRE_UNARY,
                &delete_codec),
    WIRE_METHOD(MODEL_CALL_PIPELINE, instance_service, "Pipeline", instance_service_pipeline,
                WIRE_BATCH, &wire_pipeline_codec),
    WIRE_METHOD(MODEL_CALL_INSTANCE_STATUS, instance_service, "Status", instance_service_status,
                WIRE_UNARY, &status_codec),
    WIRE_METHOD(MODEL_CALL_LIST_ENTRIES, instance_service, "ListEntries",
                instance_service_list_entries, WIRE_UNARY, &list_entries_codec),
};
