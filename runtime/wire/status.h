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

/* A failure inside a message; it is in `arena` and borrows from `error` and `responder`. NULL when
 * the arena is full. */
Redistinto__V1__Error *wire_put_error(enum rt_code code, const struct model_error *error,
                                      const struct model_responder *responder,
                                      struct rt_arena *arena);

/* Fills the error and returns its code, never RT_OK. Without a usable RoutingError it is of reason
 * NONE and applied MAYBE. The key borrows from `message`; a responder that it does not name is left
 * alone. */
enum rt_code wire_take_error(const Redistinto__V1__Error *message, struct model_error *ret_error,
                             struct model_responder *ret_responder);

/* A failure with nothing but code and text, which is cut and cleaned: NONE, MAYBE. Returns the
 * code, RT_UNKNOWN for a number that is none. */
enum rt_code wire_take_plain_error(int code, const char *text, struct model_error *ret_error);

#endif
