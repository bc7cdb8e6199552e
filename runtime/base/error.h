/*
 * One currency for failures, from the store to the wire and back.
 *
 * A fallible function returns `enum rt_code` and takes `struct rt_error *err` last. `err` may be
 * NULL and is written only on failure. Outcomes that a caller is expected to branch on are values
 * in the result, not errors.
 *
 *   raise        return rt_fail(err, RT_NOT_FOUND, "key '%s' unknown", key);
 *   add context  return rt_wrap(err, "loading %s", path);
 *   convert      return rt_fail_errno(err, errno, "open %s", path);
 */
#ifndef RT_BASE_ERROR_H
#define RT_BASE_ERROR_H

#include <stdarg.h>

#include "runtime/base/bytes.h"
#include "runtime/base/compiler.h"

/* The gRPC status codes, by number. RT_UNKNOWN is never raised here; a peer may send it. */
enum rt_code {
    RT_OK = 0,
    RT_CANCELLED = 1,
    RT_UNKNOWN = 2,
    RT_INVALID_ARGUMENT = 3,
    RT_DEADLINE_EXCEEDED = 4,
    RT_NOT_FOUND = 5,
    RT_ALREADY_EXISTS = 6,
    RT_PERMISSION_DENIED = 7,
    RT_RESOURCE_EXHAUSTED = 8,
    RT_FAILED_PRECONDITION = 9,
    RT_ABORTED = 10,
    RT_OUT_OF_RANGE = 11,
    RT_UNIMPLEMENTED = 12,
    RT_INTERNAL = 13,
    RT_UNAVAILABLE = 14,
    RT_DATA_LOSS = 15,
    RT_UNAUTHENTICATED = 16,
};

enum {
    RT_ERROR_MESSAGE_MAX = 511
};

struct rt_error {
    enum rt_code code;
    const char *reason;     /* static upper-case word, NULL when there is none */
    struct rt_bytes detail; /* serialized google.rpc.Status, borrowed; empty when there is none */
    char message[RT_ERROR_MESSAGE_MAX + 1];
};

#define RT_ERROR_INIT                                                                              \
    {                                                                                              \
        .code = RT_OK                                                                              \
    }

/* Each fills err (when not NULL), cuts an overlong message, and returns the code. */
enum rt_code rt_fail(struct rt_error *err, enum rt_code code, const char *format, ...)
    RT_PRINTF(3, 4);
enum rt_code rt_fail_reason(struct rt_error *err, enum rt_code code, const char *reason,
                            const char *format, ...) RT_PRINTF(4, 5);

/* Puts "context: " before the message of an error that is already set; returns its code. With err
 * NULL the code is lost, so wrap only where err is not NULL or return the code yourself. */
enum rt_code rt_wrap(struct rt_error *err, const char *format, ...) RT_PRINTF(2, 3);

/* errno_value > 0. Message ends with ": <strerror>". ENOENT → NOT_FOUND, EEXIST and EADDRINUSE →
 * ALREADY_EXISTS, EACCES/EPERM/EROFS → PERMISSION_DENIED, ENOSPC/EDQUOT/ENOMEM/EMFILE/ENFILE →
 * RESOURCE_EXHAUSTED, EINVAL, wrong paths and EADDRNOTAVAIL → INVALID_ARGUMENT,
 * EAGAIN/ECONN*, EPIPE, ETIMEDOUT → UNAVAILABLE, anything else INTERNAL. */
enum rt_code rt_fail_errno(struct rt_error *err, int errno_value, const char *format, ...)
    RT_PRINTF(3, 4);

/* uv_result < 0 as libuv returns it (a negated errno on Linux). */
enum rt_code rt_fail_uv(struct rt_error *err, int uv_result, const char *format, ...)
    RT_PRINTF(3, 4);

/* "NOT_FOUND" for RT_NOT_FOUND; "UNKNOWN" also for a number that is no code. */
const char *rt_code_name(enum rt_code code);

#endif
