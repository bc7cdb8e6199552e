/*
 * Private to runtime/wire: the answer that Fence, Activate and the operations on keys share. See
 * codec.h.
 */
#ifndef WIRE_KEY_RESPONSE_H
#define WIRE_KEY_RESPONSE_H

#include "runtime/wire/codec.h"

struct wire_key_response {
    ProtobufCMessage base;
    Redistinto__V1__Responder *responder;
    Redistinto__V1__KeyResult *result;
};

#define WIRE_ASSERT_KEY_RESPONSE(type)                                                             \
    WIRE_ASSERT_UNARY_RESPONSE(type);                                                              \
    _Static_assert(offsetof(type, result) == offsetof(struct wire_key_response, result), #type)

bool wire_fill_key_response(const struct model_response *response, struct rt_arena *arena,
                            void *message);
void wire_take_key_response(struct wire_input *in, const void *message,
                            struct model_response *response);

#endif
