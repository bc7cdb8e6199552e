/*
 * The parts that messages share: see convert.h. Invariant: what a take function leaves behind obeys
 * the limits of runtime/model/limits.h, whatever came. Any thread; no state.
 */
#include "runtime/wire/convert.h"

#include <stdio.h>

#include "runtime/wire/text.h"

void wire_input_fail(struct wire_input *in, enum model_reason reason, const char *field,
                     const char *format, ...)
{
    char what[RT_ERROR_MESSAGE_MAX + 1];
    char where[96] = "";
    va_list arguments;

    if (in->code != RT_OK)
        return;
    va_start(arguments, format);
    (void)vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    wire_text_clean(what);
    if (in->list)
        (void)snprintf(where, sizeof(where), "%s[%zu]%s", in->list, in->index, *field ? "." : "");
    in->code = rt_fail_reason(in->err, model_reason_code(reason), model_reason_name(reason),
                              "%s%s %s", where, field, what);
}

void wire_input_missing(struct wire_input *in, const char *field)
{
    wire_input_fail(in, MODEL_REASON_INVALID_FIELD, field, "is missing");
}

void wire_take_id(struct wire_input *in, const char *field, const ProtobufCBinaryData *data,
                  enum wire_presence presence, struct model_id *ret_id)
{
    *ret_id = (struct model_id){0};
    if (data->len == sizeof(ret_id->bytes)) {
        memcpy(ret_id->bytes, data->data, sizeof(ret_id->bytes));
        if (presence == WIRE_REQUIRED && model_id_is_none(ret_id))
            wire_input_fail(in, MODEL_REASON_INVALID_FIELD, field,
                            "is all zero, valid are other 16 bytes");
        return;
    }
    if (data->len > 0 || presence == WIRE_REQUIRED)
        wire_input_fail(in, MODEL_REASON_INVALID_FIELD, field, "has %zu bytes, valid are %s16",
                        data->len, presence == WIRE_REQUIRED ? "" : "0 and ");
}

void wire_take_name(struct wire_input *in, const char *field, const char *text,
                    enum wire_presence presence, char ret_name[MODEL_NAME_MAX + 1])
{
    struct rt_bytes name = rt_bytes_of_string(text ? text : "");

    ret_name[0] = '\0';
    if (name.size == 0 && presence == WIRE_OPTIONAL)
        return;
    if (model_name_check(field, name, NULL) != RT_OK) {
        wire_input_fail(in, MODEL_REASON_INVALID_FIELD, field,
                        "'%.64s' is no name, valid are 1 to %d characters of A-Z a-z 0-9 . _ -",
                        name.size > 0 ? text : "", MODEL_NAME_MAX);
        return;
    }
    memcpy(ret_name, name.data, name.size + 1);
}

void wire_take_address(struct wire_input *in, const char *field, const char *text,
                       char ret_address[MODEL_ADDRESS_MAX + 1])
{
    size_t length = text ? strlen(text) : 0;
    bool valid = length >= 1 && length <= MODEL_ADDRESS_MAX;

    ret_address[0] = '\0';
    for (size_t i = 0; valid && i < length; i++)
        valid = text[i] > ' ' && text[i] <= '~';
    if (!valid) {
        wire_input_fail(in, MODEL_REASON_INVALID_FIELD, field,
                        "'%.64s' is no address, valid are 1 to %d printable ASCII characters "
                        "without space",
                        length > 0 ? text : "", MODEL_ADDRESS_MAX);
        return;
    }
    memcpy(ret_address, text, length + 1);
}

void wire_take_key(struct wire_input *in, const char *field, const ProtobufCBinaryData *data,
                   struct rt_bytes *ret_key)
{
    *ret_key = (struct rt_bytes){0};
    if (data->len == 0)
        wire_input_fail(in, MODEL_REASON_KEY_EMPTY, field, "is empty, valid are 1 to %d bytes",
                        MODEL_KEY_MAX);
    else if (data->len > MODEL_KEY_MAX)
        wire_input_fail(in, MODEL_REASON_KEY_TOO_LONG, field, "has %zu bytes, valid are 1 to %d",
                        data->len, MODEL_KEY_MAX);
    else
        *ret_key = rt_bytes_of(data->data, data->len);
}

void wire_take_key_part(struct wire_input *in, const char *field, const ProtobufCBinaryData *data,
                        struct rt_bytes *ret_part)
{
    *ret_part = (struct rt_bytes){0};
    if (data->len > MODEL_KEY_MAX)
        wire_input_fail(in, MODEL_REASON_KEY_TOO_LONG, field, "has %zu bytes, valid are 0 to %d",
                        data->len, MODEL_KEY_MAX);
    else
        *ret_part = rt_bytes_of(data->data, data->len);
}

void wire_take_value(struct wire_input *in, const char *field, const ProtobufCBinaryData *data,
                     struct rt_bytes *ret_value)
{
    *ret_value = (struct rt_bytes){0};
    if (data->len > MODEL_VALUE_MAX)
        wire_input_fail(in, MODEL_REASON_VALUE_TOO_LARGE, field, "has %zu bytes, valid are 0 to %d",
                        data->len, MODEL_VALUE_MAX);
    else
        *ret_value = rt_bytes_of(data->data, data->len);
}

bool wire_take_version(const Redistinto__V1__Version *message, struct model_version *ret_version)
{
    *ret_version = (struct model_version){0};
    if (!message)
        return false;
    *ret_version = (struct model_version){message->epoch, message->incarnation, message->seq};
    return true;
}

void wire_take_request_id(struct wire_input *in, const char *client_field, const char *seq_field,
                          const Redistinto__V1__RequestId *message, struct model_request_id *ret_id)
{
    *ret_id = (struct model_request_id){0};
    if (!message)
        return;
    wire_take_id(in, client_field, &message->client_id, WIRE_REQUIRED, &ret_id->client);
    if (message->seq == 0)
        wire_input_fail(in, MODEL_REASON_INVALID_FIELD, seq_field, "is 0, valid are 1 and above");
    ret_id->seq = message->seq;
}

static enum model_locking take_locking(struct wire_input *in, const char *field,
                                       Redistinto__V1__Locking locking)
{
    switch ((int)locking) {
    case REDISTINTO__V1__LOCKING__LOCKING_UNSPECIFIED:
    case REDISTINTO__V1__LOCKING__LOCKING_OPTIONAL:
        return MODEL_LOCKING_OPTIONAL;
    case REDISTINTO__V1__LOCKING__LOCKING_REQUIRED:
        return MODEL_LOCKING_REQUIRED;
    case REDISTINTO__V1__LOCKING__LOCKING_NONE:
        return MODEL_LOCKING_NONE;
    }
    wire_input_fail(in, MODEL_REASON_INVALID_FIELD, field, "is %d, valid are 0 to 3", (int)locking);
    return MODEL_LOCKING_REQUIRED;
}

void wire_take_row(struct wire_input *in, const Redistinto__V1__OwnershipRow *message,
                   struct model_row *ret_row)
{
    *ret_row = (struct model_row){
        .epoch = message->epoch,
        .token_floor = message->token_floor,
        .locked = message->locked,
        .locking = take_locking(in, in->list ? "locking" : "row.locking", message->locking),
        .key_lost = message->key_lost,
        .sets_lost = message->sets_lost,
    };
    wire_take_key(in, in->list ? "key" : "row.key", &message->key, &ret_row->key);
}

void wire_take_evicted(struct wire_input *in, size_t n, const ProtobufCBinaryData *messages,
                       struct model_data_response *ret_data)
{
    const char *list = in->list;
    size_t index = in->index;

    ret_data->evicted =
        wire_list_begin(in, "evicted", n, MODEL_EVICTED_MAX, sizeof(*ret_data->evicted));
    ret_data->n_evicted = ret_data->evicted ? n : 0;
    for (in->index = 0; in->index < ret_data->n_evicted; in->index++)
        wire_take_key(in, "", &messages[in->index], &ret_data->evicted[in->index]);
    wire_list_end(in);
    in->list = list;
    in->index = index;
}

void wire_take_key_result(struct wire_input *in, const Redistinto__V1__KeyResult *message,
                          struct model_data_response *ret_data)
{
    *ret_data = (struct model_data_response){0};
    if (!message)
        return;
    (void)wire_take_version(message->version, &ret_data->version);
    ret_data->stored = message->stored;
    ret_data->sets_lost = message->sets_lost;
    ret_data->replayed = message->replayed;
    ret_data->stale = message->stale;
    ret_data->entries_free = message->entries_free;
    wire_take_evicted(in, message->n_evicted, message->evicted, ret_data);
    if (message->optional_value_case == REDISTINTO__V1__KEY_RESULT__OPTIONAL_VALUE_VALUE) {
        ret_data->has_value = true;
        wire_take_value(in, "value", &message->value, &ret_data->value);
    }
}

void wire_take_responder(struct wire_input *in, const Redistinto__V1__Responder *message,
                         struct model_responder *ret_responder)
{
    *ret_responder = (struct model_responder){0};
    if (!message)
        return;
    wire_take_name(in, "responder.name", message->name, WIRE_OPTIONAL, ret_responder->name);
    ret_responder->incarnation = message->incarnation;
    ret_responder->term = message->term;
    ret_responder->placement_version = message->placement_version;
}

enum model_member_state wire_take_member_state(struct wire_input *in, const char *field,
                                               Redistinto__V1__MemberState state)
{
    switch ((int)state) {
    case REDISTINTO__V1__MEMBER_STATE__MEMBER_STATE_JOINING:
        return MODEL_MEMBER_JOINING;
    case REDISTINTO__V1__MEMBER_STATE__MEMBER_STATE_ALIVE:
        return MODEL_MEMBER_ALIVE;
    case REDISTINTO__V1__MEMBER_STATE__MEMBER_STATE_DEAD:
        return MODEL_MEMBER_DEAD;
    case REDISTINTO__V1__MEMBER_STATE__MEMBER_STATE_LEFT:
        return MODEL_MEMBER_LEFT;
    }
    wire_input_fail(in, MODEL_REASON_INVALID_FIELD, field, "is %d, valid are 1 to 4", (int)state);
    return MODEL_MEMBER_JOINING;
}

void *wire_list_begin(struct wire_input *in, const char *field, size_t n, size_t max,
                      size_t item_size)
{
    void *items;

    if (n == 0 || in->code != RT_OK)
        return NULL;
    if (n > max) {
        wire_input_fail(in, MODEL_REASON_INVALID_FIELD, field, "has %zu items, valid are 0 to %zu",
                        n, max);
        return NULL;
    }
    items = rt_arena_alloc(in->arena, n * item_size);
    if (!items) {
        wire_input_fail(in, MODEL_REASON_LIMIT_REACHED, field, "has no room in the call's memory");
        return NULL;
    }
    memset(items, 0, n * item_size);
    in->list = field;
    in->index = 0;
    return items;
}

void wire_list_end(struct wire_input *in)
{
    in->list = NULL;
}

void wire_take_rows(struct wire_input *in, size_t n, Redistinto__V1__OwnershipRow *const *messages,
                    struct model_row **ret_rows, size_t *ret_n_rows)
{
    *ret_rows = wire_list_begin(in, "rows", n, MODEL_RECONCILE_ROWS_MAX, sizeof(**ret_rows));
    *ret_n_rows = *ret_rows ? n : 0;
    for (in->index = 0; in->index < *ret_n_rows; in->index++)
        wire_take_row(in, messages[in->index], &(*ret_rows)[in->index]);
    wire_list_end(in);
}

void wire_put_version(Redistinto__V1__Version *ret_message, const struct model_version *version)
{
    redistinto__v1__version__init(ret_message);
    ret_message->epoch = version->epoch;
    ret_message->incarnation = version->incarnation;
    ret_message->seq = version->seq;
}

void wire_put_responder(Redistinto__V1__Responder *ret_message,
                        const struct model_responder *responder)
{
    redistinto__v1__responder__init(ret_message);
    ret_message->name = (char *)responder->name;
    ret_message->incarnation = responder->incarnation;
    ret_message->term = responder->term;
    ret_message->placement_version = responder->placement_version;
}

static Redistinto__V1__Locking put_locking(enum model_locking locking)
{
    switch (locking) {
    case MODEL_LOCKING_OPTIONAL:
        return REDISTINTO__V1__LOCKING__LOCKING_OPTIONAL;
    case MODEL_LOCKING_REQUIRED:
        return REDISTINTO__V1__LOCKING__LOCKING_REQUIRED;
    case MODEL_LOCKING_NONE:
        return REDISTINTO__V1__LOCKING__LOCKING_NONE;
    }
    return REDISTINTO__V1__LOCKING__LOCKING_UNSPECIFIED;
}

Redistinto__V1__MemberState wire_put_member_state(enum model_member_state state)
{
    switch (state) {
    case MODEL_MEMBER_JOINING:
        return REDISTINTO__V1__MEMBER_STATE__MEMBER_STATE_JOINING;
    case MODEL_MEMBER_ALIVE:
        return REDISTINTO__V1__MEMBER_STATE__MEMBER_STATE_ALIVE;
    case MODEL_MEMBER_DEAD:
        return REDISTINTO__V1__MEMBER_STATE__MEMBER_STATE_DEAD;
    case MODEL_MEMBER_LEFT:
        return REDISTINTO__V1__MEMBER_STATE__MEMBER_STATE_LEFT;
    }
    return REDISTINTO__V1__MEMBER_STATE__MEMBER_STATE_UNSPECIFIED;
}

void wire_put_row(Redistinto__V1__OwnershipRow *ret_message, const struct model_row *row)
{
    redistinto__v1__ownership_row__init(ret_message);
    ret_message->key = wire_put_bytes(row->key);
    ret_message->epoch = row->epoch;
    ret_message->token_floor = row->token_floor;
    ret_message->locked = row->locked;
    ret_message->locking = put_locking(row->locking);
    ret_message->key_lost = row->key_lost;
    ret_message->sets_lost = row->sets_lost;
}

Redistinto__V1__RequestId *wire_put_request_id(Redistinto__V1__RequestId *memory,
                                               const struct model_request_id *id)
{
    if (id->seq == 0)
        return NULL;
    redistinto__v1__request_id__init(memory);
    memory->client_id = wire_put_id(&id->client);
    memory->seq = id->seq;
    return memory;
}

bool wire_put_evicted(struct rt_arena *arena, const struct model_data_response *data, size_t *ret_n,
                      ProtobufCBinaryData **ret_messages)
{
    ProtobufCBinaryData *messages;

    if (data->n_evicted == 0)
        return true;
    messages = rt_arena_alloc(arena, data->n_evicted * sizeof(*messages));
    if (!messages)
        return false;
    for (size_t i = 0; i < data->n_evicted; i++)
        messages[i] = wire_put_bytes(data->evicted[i]);
    *ret_n = data->n_evicted;
    *ret_messages = messages;
    return true;
}

bool wire_put_key_result(struct wire_key_result *ret_result, const struct model_data_response *data,
                         struct rt_arena *arena)
{
    static const struct model_version none;
    Redistinto__V1__KeyResult *message = &ret_result->message;

    redistinto__v1__key_result__init(message);
    if (model_version_compare(&data->version, &none) != 0) {
        wire_put_version(&ret_result->version, &data->version);
        message->version = &ret_result->version;
    }
    if (data->has_value) {
        message->optional_value_case = REDISTINTO__V1__KEY_RESULT__OPTIONAL_VALUE_VALUE;
        message->value = wire_put_bytes(data->value);
    }
    message->stored = data->stored;
    message->sets_lost = data->sets_lost;
    message->replayed = data->replayed;
    message->stale = data->stale;
    message->entries_free = data->entries_free;
    return wire_put_evicted(arena, data, &message->n_evicted, &message->evicted);
}

void *wire_put_list(struct rt_arena *arena, const ProtobufCMessageDescriptor *type, size_t n)
{
    size_t size = type->sizeof_message;
    void **pointers = rt_arena_alloc(arena, n * sizeof(*pointers));
    uint8_t *messages = rt_arena_alloc(arena, n * size);

    if (!pointers || !messages)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        pointers[i] = messages + i * size;
        type->message_init(pointers[i]);
    }
    return pointers;
}

bool wire_put_rows(struct rt_arena *arena, const struct model_row *rows, size_t n_rows,
                   size_t *ret_n, Redistinto__V1__OwnershipRow ***ret_messages)
{
    if (n_rows == 0)
        return true;
    *ret_messages = wire_put_list(arena, &redistinto__v1__ownership_row__descriptor, n_rows);
    if (!*ret_messages)
        return false;
    *ret_n = n_rows;
    for (size_t i = 0; i < n_rows; i++)
        wire_put_row((*ret_messages)[i], &rows[i]);
    return true;
}
