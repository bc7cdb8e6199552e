/*
 * What the suites of runtime/wire share: bytes and back, and texts of messages. Everything lives in
 * the given arena; texts are freed by the caller.
 */
#ifndef TESTS_UNIT_WIRE_RIG_H
#define TESTS_UNIT_WIRE_RIG_H

#include <protobuf-c/protobuf-c.h>

#include "runtime/base/arena.h"
#include "runtime/base/rng.h"
#include "runtime/model/message.h"

struct rt_bytes rig_pack(const ProtobufCMessage *message, struct rt_arena *arena);

/* NULL when the bytes are no such message. */
ProtobufCMessage *rig_unpack(const ProtobufCMessageDescriptor *type, struct rt_bytes bytes,
                             struct rt_arena *arena);

/* Through bytes; never NULL. */
ProtobufCMessage *rig_transfer(const ProtobufCMessage *message, struct rt_arena *arena);

/* Overwrites one to four bytes of `bytes`, which may be empty. */
void rig_damage(struct rt_bytes bytes, struct rt_rng *rng);

/* Random valid content. */
void rig_random_request(struct model_request *ret_request, enum model_call_kind kind,
                        struct rt_arena *arena, uint64_t seed);
void rig_random_response(struct model_response *ret_response, enum model_call_kind kind,
                         enum rt_code code, struct rt_arena *arena, uint64_t seed);

/* All fields as text, in the arena. */
const char *rig_request_text(struct model_request *request, struct rt_arena *arena);
const char *rig_response_text(struct model_response *response, enum model_call_kind kind,
                              struct rt_arena *arena);

#endif
