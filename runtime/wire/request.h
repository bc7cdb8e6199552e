/*
 * Requests: protobuf ⇄ model. Re-entrant; nothing is allocated but in the arena that is passed.
 */
#ifndef WIRE_REQUEST_H
#define WIRE_REQUEST_H

#include <protobuf-c/protobuf-c.h>
#include <stdint.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/wire/method.h"

/* Byte strings borrow from `message`, arrays are in `arena`. Whatever does not depend on a profile
 * or on state is checked here: sizes of ids, names, keys, values and arrays, numbers of
 * enumerations, required parts. INVALID_ARGUMENT names field, value and what is valid, with
 * err->reason INVALID_FIELD, KEY_EMPTY, KEY_TOO_LONG or VALUE_TOO_LARGE; RESOURCE_EXHAUSTED
 * (LIMIT_REACHED) when the arena is full. *ret_request is unspecified after a failure. */
RT_MUST_USE enum rt_code wire_request_decode(const struct wire_method *method,
                                             const ProtobufCMessage *message,
                                             struct rt_arena *arena,
                                             struct model_request *ret_request,
                                             struct rt_error *err);

/* The message is in `arena` and borrows byte strings and names from `request`.
 * RESOURCE_EXHAUSTED when the arena is full. */
RT_MUST_USE enum rt_code wire_request_encode(const struct model_request *request,
                                             struct rt_arena *arena, ProtobufCMessage **ret_message,
                                             struct rt_error *err);

/* What a message of a stream carries beside the request. */
struct wire_exchange {
    uint64_t id;         /* chosen by the caller, repeated by the response */
    uint32_t timeout_ms; /* remaining time; 0 = the server's default */
};

/* Only where wire_shape_has_exchange(). */
struct wire_exchange wire_request_exchange(const ProtobufCMessage *request);
void wire_request_set_exchange(ProtobufCMessage *request, const struct wire_exchange *exchange);

#endif
