/*
 * The RPCs of the public API, one row for each kind of call: what a shell that serves or makes all
 * of them in the same few lines has to know. Constant data; any thread.
 *
 *   serve     wire_service_methods() names the RPCs of a service; a request says by its type which
 *             of them it is for (wire_method_of_request), wire_request_decode() turns it into a
 *             model_request, wire_response_encode() turns the answer back.
 *   call      wire_method_of(kind) names service and RPC, wire_request_encode() and
 *             wire_response_decode() do the rest.
 */
#ifndef WIRE_METHOD_H
#define WIRE_METHOD_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>

#include "runtime/model/message.h"

struct wire_codec;

/* How calls of a kind lie in an RPC. */
enum wire_shape {
    WIRE_UNARY,    /* one call; a failure is the RPC's status */
    WIRE_EXCHANGE, /* bidirectional: each message is one call, failures travel in the response */
    WIRE_BATCH,    /* the same on the wire; a server takes the call apart into its operations */
    /* Server stream: one call after the other, each going on where the answer before it ended; a
     * failure is the RPC's status. */
    WIRE_WATCH,
};

/* Whether messages carry an exchange (request.h), and failures travel in the response. */
static inline bool wire_shape_has_exchange(enum wire_shape shape)
{
    return shape == WIRE_EXCHANGE || shape == WIRE_BATCH;
}

struct wire_method {
    enum model_call_kind kind;
    enum wire_shape shape;
    const ProtobufCServiceDescriptor *service;
    const char *name; /* "Set" */
    /* Each message type belongs to exactly one method. */
    const ProtobufCMessageDescriptor *request;
    const ProtobufCMessageDescriptor *response;
    const struct wire_codec *codec; /* private */
};

enum {
    WIRE_SERVICE_METHODS_MAX = 12 /* no service has more */
};

/* `kind` < MODEL_N_CALL_KINDS. */
const struct wire_method *wire_method_of(enum model_call_kind kind);

/* NULL when the type is no request of ours. */
const struct wire_method *wire_method_of_request(const ProtobufCMessageDescriptor *request);

/* The methods of one service, in the order of model_call_kind; returns how many. */
size_t wire_service_methods(const ProtobufCServiceDescriptor *service,
                            const struct wire_method *ret_methods[WIRE_SERVICE_METHODS_MAX]);

#endif
