/*
 * Errors: see error.h. No state, any thread.
 */
#include "runtime/base/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rt_assert_failed(const char *condition, const char *file, int line)
{
    (void)fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, condition);
    abort();
}

static void set_message(struct rt_error *err, const char *format, va_list arguments)
{
    (void)vsnprintf(err->message, sizeof(err->message), format, arguments);
}

static enum rt_code fail(struct rt_error *err, enum rt_code code, const char *reason,
                         const char *format, va_list arguments)
{
    rt_assert(code != RT_OK);
    if (!err)
        return code;

    err->code = code;
    err->reason = reason;
    err->detail = (struct rt_bytes){0};
    set_message(err, format, arguments);
    return code;
}

enum rt_code rt_fail(struct rt_error *err, enum rt_code code, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)fail(err, code, NULL, format, arguments);
    va_end(arguments);
    return code;
}

enum rt_code rt_fail_reason(struct rt_error *err, enum rt_code code, const char *reason,
                            const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)fail(err, code, reason, format, arguments);
    va_end(arguments);
    return code;
}

enum rt_code rt_wrap(struct rt_error *err, const char *format, ...)
{
    char message[sizeof(err->message)];
    size_t used;
    va_list arguments;

    if (!err)
        return RT_INTERNAL;
    rt_assert(err->code != RT_OK);

    memcpy(message, err->message, sizeof(message));
    va_start(arguments, format);
    set_message(err, format, arguments);
    va_end(arguments);

    used = strlen(err->message);
    (void)snprintf(err->message + used, sizeof(err->message) - used, ": %s", message);
    return err->code;
}

static enum rt_code code_of_errno(int errno_value)
{
    switch (errno_value) {
    case ENOENT:
        return RT_NOT_FOUND;
    case EEXIST:
    case EADDRINUSE:
        return RT_ALREADY_EXISTS;
    case EACCES:
    case EPERM:
    case EROFS:
        return RT_PERMISSION_DENIED;
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
        return RT_RESOURCE_EXHAUSTED;
    case EINVAL:
    case ENAMETOOLONG:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case EADDRNOTAVAIL:
        return RT_INVALID_ARGUMENT;
    case EAGAIN:
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
    case ETIMEDOUT:
        return RT_UNAVAILABLE;
    default:
        return RT_INTERNAL;
    }
}

static enum rt_code fail_errno(struct rt_error *err, int errno_value, const char *format,
                               va_list arguments)
{
    enum rt_code code = code_of_errno(errno_value);
    size_t used;

    if (!err)
        return code;
    (void)fail(err, code, NULL, format, arguments);
    used = strlen(err->message);
    (void)snprintf(err->message + used, sizeof(err->message) - used, ": %s", strerror(errno_value));
    return code;
}

enum rt_code rt_fail_errno(struct rt_error *err, int errno_value, const char *format, ...)
{
    va_list arguments;
    enum rt_code code;

    va_start(arguments, format);
    code = fail_errno(err, errno_value, format, arguments);
    va_end(arguments);
    return code;
}

enum rt_code rt_fail_uv(struct rt_error *err, int uv_result, const char *format, ...)
{
    va_list arguments;
    enum rt_code code;

    va_start(arguments, format);
    code = fail_errno(err, -uv_result, format, arguments);
    va_end(arguments);
    return code;
}

const char *rt_code_name(enum rt_code code)
{
    static const char *const names[] = {
        [RT_OK] = "OK",
        [RT_CANCELLED] = "CANCELLED",
        [RT_UNKNOWN] = "UNKNOWN",
        [RT_INVALID_ARGUMENT] = "INVALID_ARGUMENT",
        [RT_DEADLINE_EXCEEDED] = "DEADLINE_EXCEEDED",
        [RT_NOT_FOUND] = "NOT_FOUND",
        [RT_ALREADY_EXISTS] = "ALREADY_EXISTS",
        [RT_PERMISSION_DENIED] = "PERMISSION_DENIED",
        [RT_RESOURCE_EXHAUSTED] = "RESOURCE_EXHAUSTED",
        [RT_FAILED_PRECONDITION] = "FAILED_PRECONDITION",
        [RT_ABORTED] = "ABORTED",
        [RT_OUT_OF_RANGE] = "OUT_OF_RANGE",
        [RT_UNIMPLEMENTED] = "UNIMPLEMENTED",
        [RT_INTERNAL] = "INTERNAL",
        [RT_UNAVAILABLE] = "UNAVAILABLE",
        [RT_DATA_LOSS] = "DATA_LOSS",
        [RT_UNAUTHENTICATED] = "UNAUTHENTICATED",
    };

    return (size_t)code < RT_ARRAY_SIZE(names) ? names[code] : "UNKNOWN";
}
