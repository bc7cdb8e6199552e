/*
 * Error details: see status.h. Invariants: what is built is valid protobuf with valid UTF-8 and
 * never larger than WIRE_STATUS_MAX; what is read never decides more than it says. Any thread; no
 * state.
 */
#include "runtime/wire/status.h"

#include <stdio.h>

#include "google/rpc/error_details.pb-c.h"
#include "google/rpc/status.pb-c.h"
#include "runtime/wire/convert.h"
#include "runtime/wire/text.h"

enum {
    /* Largest serialized forms, checked by a unit test that fills every field to its limit. */
    ROUTING_MAX = 1024,
    ERROR_INFO_MAX = 96,
    RETRY_INFO_MAX = 32,
    READ_MEMORY_MAX = 512 * 1024, /* decoded form of WIRE_STATUS_READ_MAX bytes */
};

static const char routing_url[] = "type.googleapis.com/redistinto.v1.RoutingError";
static const char error_info_url[] = "type.googleapis.com/google.rpc.ErrorInfo";
static const char retry_info_url[] = "type.googleapis.com/google.rpc.RetryInfo";

/* Memory of one RoutingError; the filled message borrows from error, responder and from here. */
struct routing {
    Redistinto__V1__RoutingError message;
    Redistinto__V1__Responder responder;
    Redistinto__V1__Hint hint;
};

static void fill_routing(struct routing *ret_routing, const struct model_error *error,
                         const struct model_responder *responder)
{
    Redistinto__V1__RoutingError *message = &ret_routing->message;
    struct rt_bytes key = error->key;

    if (key.size > WIRE_ERROR_KEY_MAX)
        key.size = WIRE_ERROR_KEY_MAX;
    redistinto__v1__routing_error__init(message);
    message->reason = (char *)model_reason_name(error->reason);
    message->applied = error->applied == MODEL_APPLIED_NO ? REDISTINTO__V1__APPLIED__APPLIED_NO
                                                          : REDISTINTO__V1__APPLIED__APPLIED_MAYBE;
    message->key = wire_put_bytes(key);
    message->request_epoch = error->request_epoch;
    message->current_epoch = error->current_epoch;
    wire_put_responder(&ret_routing->responder, responder);
    message->responder = &ret_routing->responder;
    message->retry_after_ms = error->retry_after_ms;
    message->refresh_required = error->refresh_required;
    message->expires_in_ms = error->expires_in_ms;
    if (!error->has_hint)
        return;
    redistinto__v1__hint__init(&ret_routing->hint);
    ret_routing->hint.name = (char *)error->hint.name;
    ret_routing->hint.address = (char *)error->hint.address;
    ret_routing->hint.incarnation = error->hint.incarnation;
    ret_routing->hint.epoch = error->hint.epoch;
    message->hint = &ret_routing->hint;
}

/* ---- building ---- */

struct details {
    Google__Protobuf__Any items[3];
    Google__Protobuf__Any *pointers[3];
    size_t n;
};

static void add_detail(struct details *details, const char *url, const ProtobufCMessage *message,
                       uint8_t *bytes, size_t capacity)
{
    Google__Protobuf__Any *item = &details->items[details->n];

    rt_assert(protobuf_c_message_get_packed_size(message) <= capacity);
    google__protobuf__any__init(item);
    item->type_url = (char *)url;
    item->value.data = bytes;
    item->value.len = protobuf_c_message_pack(message, bytes);
    details->pointers[details->n++] = item;
}

static void add_error_info(struct details *details, const struct model_error *error,
                           uint8_t bytes[ERROR_INFO_MAX])
{
    Google__Rpc__ErrorInfo info;

    google__rpc__error_info__init(&info);
    info.reason = (char *)model_reason_name(error->reason);
    info.domain = (char *)WIRE_ERROR_DOMAIN;
    add_detail(details, error_info_url, &info.base, bytes, ERROR_INFO_MAX);
}

static void add_retry_info(struct details *details, const struct model_error *error,
                           uint8_t bytes[RETRY_INFO_MAX])
{
    Google__Rpc__RetryInfo info;
    Google__Protobuf__Duration delay;

    google__rpc__retry_info__init(&info);
    google__protobuf__duration__init(&delay);
    delay.seconds = error->retry_after_ms / 1000;
    delay.nanos = (int32_t)(error->retry_after_ms % 1000 * 1000000);
    info.retry_delay = &delay;
    add_detail(details, retry_info_url, &info.base, bytes, RETRY_INFO_MAX);
}

size_t wire_status_build(const struct model_response *response, uint8_t ret_bytes[WIRE_STATUS_MAX])
{
    uint8_t error_info_bytes[ERROR_INFO_MAX];
    uint8_t retry_info_bytes[RETRY_INFO_MAX];
    uint8_t routing_bytes[ROUTING_MAX];
    char text[MODEL_ERROR_MESSAGE_MAX + 1];
    struct details details = {.n = 0};
    struct routing routing;
    Google__Rpc__Status status;

    add_error_info(&details, &response->error, error_info_bytes);
    if (response->error.retry_after_ms > 0)
        add_retry_info(&details, &response->error, retry_info_bytes);
    fill_routing(&routing, &response->error, &response->responder);
    add_detail(&details, routing_url, &routing.message.base, routing_bytes, ROUTING_MAX);

    (void)snprintf(text, sizeof(text), "%s", response->error.message);
    wire_text_clean(text);
    google__rpc__status__init(&status);
    status.code = (int32_t)response->code;
    status.message = text;
    status.n_details = details.n;
    status.details = details.pointers;
    rt_assert(protobuf_c_message_get_packed_size(&status.base) <= WIRE_STATUS_MAX);
    return protobuf_c_message_pack(&status.base, ret_bytes);
}

/* Of a stream: code, message and RoutingError inside the response. */
struct stream_error {
    Redistinto__V1__Error message;
    struct routing routing;
    char text[MODEL_ERROR_MESSAGE_MAX + 1];
};

Redistinto__V1__Error *wire_put_error(enum rt_code code, const struct model_error *error,
                                      const struct model_responder *responder,
                                      struct rt_arena *arena)
{
    struct stream_error *memory = rt_arena_alloc(arena, sizeof(*memory));

    if (!memory)
        return NULL;
    (void)snprintf(memory->text, sizeof(memory->text), "%s", error->message);
    wire_text_clean(memory->text);
    fill_routing(&memory->routing, error, responder);
    redistinto__v1__error__init(&memory->message);
    memory->message.code = (int32_t)code;
    memory->message.message = memory->text;
    memory->message.routing = &memory->routing.message;
    return &memory->message;
}

/* ---- reading ---- */

/* The responder is left alone when none is named; false, and all untouched, when a rule of the API
 * is broken. */
static bool read_routing(const Redistinto__V1__RoutingError *message, struct model_error *ret_error,
                         struct model_responder *ret_responder)
{
    struct wire_input in = {.code = RT_OK};
    struct model_error error = {.applied = MODEL_APPLIED_MAYBE};
    struct model_responder responder;

    if (message->key.len > WIRE_ERROR_KEY_MAX)
        return false;
    error.reason = model_reason_parse(rt_bytes_of_string(message->reason));
    if (message->applied == REDISTINTO__V1__APPLIED__APPLIED_NO)
        error.applied = MODEL_APPLIED_NO;
    error.key = rt_bytes_of(message->key.data, message->key.len);
    error.request_epoch = message->request_epoch;
    error.current_epoch = message->current_epoch;
    error.retry_after_ms = message->retry_after_ms;
    error.refresh_required = message->refresh_required;
    error.expires_in_ms = message->expires_in_ms;
    wire_take_responder(&in, message->responder, &responder);
    if (message->hint) {
        error.has_hint = true;
        wire_take_name(&in, "hint.name", message->hint->name, WIRE_REQUIRED, error.hint.name);
        wire_take_address(&in, "hint.address", message->hint->address, error.hint.address);
        error.hint.incarnation = message->hint->incarnation;
        error.hint.epoch = message->hint->epoch;
    }
    if (in.code != RT_OK)
        return false;
    memcpy(error.message, ret_error->message, sizeof(error.message));
    *ret_error = error;
    if (message->responder)
        *ret_responder = responder;
    return true;
}

enum rt_code wire_take_plain_error(int code, const char *text, struct model_error *ret_error)
{
    bool known = code > RT_OK && code <= RT_UNAUTHENTICATED;

    *ret_error = (struct model_error){.reason = MODEL_REASON_NONE, .applied = MODEL_APPLIED_MAYBE};
    (void)snprintf(ret_error->message, sizeof(ret_error->message), "%s", text ? text : "");
    wire_text_clean(ret_error->message);
    return known ? (enum rt_code)code : RT_UNKNOWN;
}

enum rt_code wire_take_error(const Redistinto__V1__Error *message, struct model_error *ret_error,
                             struct model_responder *ret_responder)
{
    enum rt_code code = wire_take_plain_error(message->code, message->message, ret_error);

    if (message->routing)
        (void)read_routing(message->routing, ret_error, ret_responder);
    return code;
}

static void *arena_alloc(void *ctx, size_t size)
{
    return rt_arena_alloc(ctx, size);
}

static void arena_free(void *ctx, void *pointer)
{
    (void)ctx;
    (void)pointer;
}

static const Redistinto__V1__RoutingError *find_routing(struct rt_bytes detail,
                                                        struct rt_arena *memory)
{
    ProtobufCAllocator allocator = {arena_alloc, arena_free, memory};
    Google__Rpc__Status *status = google__rpc__status__unpack(&allocator, detail.size, detail.data);

    for (size_t i = 0; status && i < status->n_details; i++) {
        const Google__Protobuf__Any *item = status->details[i];

        if (strcmp(item->type_url, routing_url) == 0)
            return redistinto__v1__routing_error__unpack(&allocator, item->value.len,
                                                         item->value.data);
    }
    return NULL;
}

bool wire_status_parse(struct rt_bytes detail, struct rt_arena *arena,
                       struct model_error *ret_error, struct model_responder *ret_responder)
{
    struct rt_arena memory = {.limit = READ_MEMORY_MAX};
    const Redistinto__V1__RoutingError *message;
    struct model_error error;
    struct model_responder responder = *ret_responder;
    bool valid;

    if (detail.size == 0 || detail.size > WIRE_STATUS_READ_MAX)
        return false;
    error = *ret_error;
    message = find_routing(detail, &memory);
    valid = message && read_routing(message, &error, &responder) &&
            rt_arena_copy(arena, error.key, &error.key);
    rt_arena_reset(&memory);
    if (!valid)
        return false;
    *ret_error = error;
    *ret_responder = responder;
    return true;
}
