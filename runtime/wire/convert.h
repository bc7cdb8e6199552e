/*
 * Private to runtime/wire: the parts that messages share, in both directions.
 *
 * Reading: a wire_input goes through a message; the first field that breaks a rule is kept, later
 * ones change nothing, and every target is left zeroed. Names of fields are as in the .proto.
 * Writing: wire_put_… borrow from the model structure.
 */
#ifndef WIRE_CONVERT_H
#define WIRE_CONVERT_H

#include "redistinto/v1/common.pb-c.h"
#include "runtime/base/arena.h"
#include "runtime/model/message.h"

struct wire_input {
    struct rt_arena *arena;
    struct rt_error *err;
    enum rt_code code; /* RT_OK until the first failure */
    const char *list;  /* the repeated field whose items are being read; NULL outside of any */
    size_t index;      /* of the item */
};

enum wire_presence {
    WIRE_OPTIONAL,
    WIRE_REQUIRED,
};

/* ---- reading ---- */

/* "FIELD format…", with the list and index in front of the field. */
void wire_input_fail(struct wire_input *in, enum model_reason reason, const char *field,
                     const char *format, ...) RT_PRINTF(4, 5);
void wire_input_missing(struct wire_input *in, const char *field);

/* Exactly 16 bytes; WIRE_OPTIONAL: or none. */
void wire_take_id(struct wire_input *in, const char *field, const ProtobufCBinaryData *data,
                  enum wire_presence presence, struct model_id *ret_id);
void wire_take_name(struct wire_input *in, const char *field, const char *text,
                    enum wire_presence presence, char ret_name[MODEL_NAME_MAX + 1]);
/* 1..MODEL_ADDRESS_MAX printable ASCII characters without space. */
void wire_take_address(struct wire_input *in, const char *field, const char *text,
                       char ret_address[MODEL_ADDRESS_MAX + 1]);
void wire_take_key(struct wire_input *in, const char *field, const ProtobufCBinaryData *data,
                   struct rt_bytes *ret_key);
/* 0..MODEL_KEY_MAX bytes. */
void wire_take_key_part(struct wire_input *in, const char *field, const ProtobufCBinaryData *data,
                        struct rt_bytes *ret_part);
void wire_take_value(struct wire_input *in, const char *field, const ProtobufCBinaryData *data,
                     struct rt_bytes *ret_value);
/* False when absent. */
bool wire_take_version(const Redistinto__V1__Version *message, struct model_version *ret_version);
/* Absent: none. */
void wire_take_request_id(struct wire_input *in, const char *client_field, const char *seq_field,
                          const Redistinto__V1__RequestId *message,
                          struct model_request_id *ret_id);
/* Inside of a list, or else the field "row". */
void wire_take_row(struct wire_input *in, const Redistinto__V1__OwnershipRow *message,
                   struct model_row *ret_row);
void wire_take_key_result(struct wire_input *in, const Redistinto__V1__KeyResult *message,
                          struct model_data_response *ret_data);
void wire_take_responder(struct wire_input *in, const Redistinto__V1__Responder *message,
                         struct model_responder *ret_responder);
enum model_member_state wire_take_member_state(struct wire_input *in, const char *field,
                                               Redistinto__V1__MemberState state);

/* Zeroed memory for the items of a list; NULL when there are none, they are more than `max`, or the
 * arena is full. Sets in->list; wire_list_end() resets it. */
void *wire_list_begin(struct wire_input *in, const char *field, size_t n, size_t max,
                      size_t item_size);
void wire_list_end(struct wire_input *in);

/* The whole list "rows". */
void wire_take_rows(struct wire_input *in, size_t n, Redistinto__V1__OwnershipRow *const *messages,
                    struct model_row **ret_rows, size_t *ret_n_rows);

/* ---- writing ---- */

static inline ProtobufCBinaryData wire_put_bytes(struct rt_bytes bytes)
{
    return (ProtobufCBinaryData){bytes.size, (uint8_t *)bytes.data};
}

/* Empty for "none". */
static inline ProtobufCBinaryData wire_put_id(const struct model_id *id)
{
    if (model_id_is_none(id))
        return (ProtobufCBinaryData){0, NULL};
    return (ProtobufCBinaryData){sizeof(id->bytes), (uint8_t *)id->bytes};
}

void wire_put_version(Redistinto__V1__Version *ret_message, const struct model_version *version);
void wire_put_responder(Redistinto__V1__Responder *ret_message,
                        const struct model_responder *responder);
Redistinto__V1__MemberState wire_put_member_state(enum model_member_state state);
void wire_put_row(Redistinto__V1__OwnershipRow *ret_message, const struct model_row *row);
/* NULL when the id is none; else `memory` filled. */
Redistinto__V1__RequestId *wire_put_request_id(Redistinto__V1__RequestId *memory,
                                               const struct model_request_id *id);

struct wire_key_result {
    Redistinto__V1__KeyResult message;
    Redistinto__V1__Version version;
};

/* False when the arena is full. */
bool wire_put_key_result(struct wire_key_result *ret_result, const struct model_data_response *data,
                         struct rt_arena *arena);

/* The evicted keys of an answer. False when the arena is full. */
bool wire_put_evicted(struct rt_arena *arena, const struct model_data_response *data, size_t *ret_n,
                      ProtobufCBinaryData **ret_messages);
void wire_take_evicted(struct wire_input *in, size_t n, const ProtobufCBinaryData *messages,
                       struct model_data_response *ret_data);

/* n ≥ 1 fresh messages of `type` behind an array of pointers, as repeated fields want them; NULL
 * when the arena is full. */
void *wire_put_list(struct rt_arena *arena, const ProtobufCMessageDescriptor *type, size_t n);

/* False when the arena is full. */
bool wire_put_rows(struct rt_arena *arena, const struct model_row *rows, size_t n_rows,
                   size_t *ret_n, Redistinto__V1__OwnershipRow ***ret_messages);

#endif
