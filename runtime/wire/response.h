/*
 * Answers: model ⇄ protobuf, failures included. Re-entrant; nothing is allocated but in the arena
 * that is passed (decoding a failure uses memory of its own meanwhile).
 */
#ifndef WIRE_RESPONSE_H
#define WIRE_RESPONSE_H

#include <protobuf-c/protobuf-c.h>
#include <stdint.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/wire/method.h"

/* RT_OK: *ret_message is to be sent; it is in `arena` and borrows from `response`. A stream's
 * message may carry a failure.
 * Anything else is the failure of a unary call: err has code, reason, message and detail
 * (grpc-status-details-bin, in `arena`) for the status. The same when the arena is full:
 * RESOURCE_EXHAUSTED without detail, which tells the caller that the call may have been applied. */
RT_MUST_USE enum rt_code wire_response_encode(enum model_call_kind kind,
                                              const struct model_response *response,
                                              struct rt_arena *arena,
                                              ProtobufCMessage **ret_message, struct rt_error *err);

/* The answer that came: `message`, or NULL and the failure `err`. Byte strings borrow from
 * `message`, or are in `arena` after a failure; arrays are in `arena`. Never fails itself: without
 * usable details a failure keeps its code, with reason NONE and applied MAYBE; an answer that
 * breaks the rules of the API becomes INTERNAL, MAYBE. Message text decides nothing. */
void wire_response_decode(enum model_call_kind kind, const ProtobufCMessage *message,
                          const struct rt_error *err, struct rt_arena *arena,
                          struct model_response *ret_response);

/* The answer to a request that wire_request_decode() refused: code, reason and message of `err`.
 * The responder is left alone. */
void wire_response_refuse(struct model_response *response, const struct rt_error *err);

/* Only where wire_shape_has_exchange(). */
uint64_t wire_response_exchange_id(const ProtobufCMessage *response);
void wire_response_set_exchange_id(ProtobufCMessage *response, uint64_t id);

#endif
