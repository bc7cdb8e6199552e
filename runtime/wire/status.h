/*
 * Errors ⇄ grpc-status-details-bin: google.rpc.Status with ErrorInfo, RetryInfo where waiting
 * helps, and RoutingError. Re-entrant.
 *
 * Only RoutingError is read back: ErrorInfo and RetryInfo repeat it for clients that know nothing
 * of this project.
 */
#ifndef WIRE_STATUS_H
#define WIRE_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redistinto/v1/common.pb-c.h"
#include "runtime/base/arena.h"
#include "runtime/model/message.h"

enum {
    WIRE_STATUS_MAX = 2048,      /* bytes that are ever built */
    WIRE_STATUS_READ_MAX = 8192, /* larger details are not looked at */
    WIRE_ERROR_KEY_MAX = 256,    /* the key in an error is cut here */
};

#define WIRE_ERROR_DOMAIN "redistinto"

/* Serializes the failure; `response->code` is not RT_OK. Returns the number of bytes. */
size_t wire_status_build(const struct model_response *response, uint8_t ret_bytes[WIRE_STATUS_MAX]);

/* Fills error (but not its message) and responder, and copies the key into `arena`. False, and both
 * untouched, when the bytes are no Status, hold no RoutingError, or that breaks a rule of the API.
 */
bool wire_status_parse(struct rt_bytes detail, struct rt_arena *arena,
                       struct model_error *ret_error, struct model_responder *ret_responder);

/* ---- the same without the envelope, for streams ---- */

/* Memory of one RoutingError; filled messages borrow from the response and from here. */
struct wire_routing {
    Redistinto__V1__RoutingError message;
    Redistinto__V1__Responder responder;
    Redistinto__V1__Hint hint;
};

void wire_routing_fill(struct wire_routing *ret_routing, const struct model_response *response);

/* As wire_status_parse; the key borrows from `message`, and a responder that it does not name is
 * left alone. */
bool wire_routing_read(const Redistinto__V1__RoutingError *message, struct model_error *ret_error,
                       struct model_responder *ret_responder);

#endif
