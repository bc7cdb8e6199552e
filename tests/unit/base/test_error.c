/*
 * Errors: what is written when, cutting, conversion of system results.
 */
#include "runtime/base/error.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "tests/support/check.h"

TestSuite(error, .fini = test_alloc_expect_none);

static struct rt_error err;

Test(error, fail_fills_everything)
{
    err = (struct rt_error){.reason = "OLD", .detail = RT_BYTES_LITERAL("old")};
    cr_assert_eq(rt_fail(&err, RT_NOT_FOUND, "key '%s' unknown", "k"), RT_NOT_FOUND);
    cr_assert_eq(err.code, RT_NOT_FOUND);
    cr_assert_null(err.reason);
    cr_assert_eq(err.detail.size, 0);
    cr_assert_str_eq(err.message, "key 'k' unknown");
}

Test(error, fail_with_a_reason)
{
    cr_assert_eq(rt_fail_reason(&err, RT_ABORTED, "LOCK_FENCED", "token %d", 3), RT_ABORTED);
    cr_assert_str_eq(err.reason, "LOCK_FENCED");
    cr_assert_str_eq(err.message, "token 3");
}

Test(error, works_without_an_error)
{
    cr_assert_eq(rt_fail(NULL, RT_NOT_FOUND, "%s", "x"), RT_NOT_FOUND);
    cr_assert_eq(rt_fail_reason(NULL, RT_ABORTED, "R", "x"), RT_ABORTED);
    cr_assert_eq(rt_fail_errno(NULL, ENOENT, "x"), RT_NOT_FOUND);
    cr_assert_eq(rt_fail_uv(NULL, -EACCES, "x"), RT_PERMISSION_DENIED);
    cr_assert_eq(rt_wrap(NULL, "x"), RT_INTERNAL);
}

Test(error, wrap_puts_context_before)
{
    (void)rt_fail_reason(&err, RT_DATA_LOSS, "R", "inner");
    cr_assert_eq(rt_wrap(&err, "loading %s", "file"), RT_DATA_LOSS);
    cr_assert_eq(rt_wrap(&err, "starting"), RT_DATA_LOSS);
    cr_assert_str_eq(err.message, "starting: loading file: inner");
    cr_assert_str_eq(err.reason, "R");
}

Test(error, long_messages_are_cut)
{
    char text[2 * RT_ERROR_MESSAGE_MAX];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    (void)rt_fail(&err, RT_INTERNAL, "%s", text);
    cr_assert_eq(strlen(err.message), RT_ERROR_MESSAGE_MAX);
    (void)rt_wrap(&err, "context");
    cr_assert_eq(strlen(err.message), RT_ERROR_MESSAGE_MAX);
    cr_assert_eq(strncmp(err.message, "context: xxx", 12), 0);
    (void)rt_wrap(&err, "%s", text);
    cr_assert_eq(strlen(err.message), RT_ERROR_MESSAGE_MAX);
    (void)rt_fail_errno(&err, ENOENT, "%s", text);
    cr_assert_eq(strlen(err.message), RT_ERROR_MESSAGE_MAX);
}

Test(error, message_at_the_limit_and_one_more)
{
    char text[RT_ERROR_MESSAGE_MAX + 2];

    memset(text, 'x', sizeof(text));
    text[RT_ERROR_MESSAGE_MAX] = 0;
    (void)rt_fail(&err, RT_INTERNAL, "%s", text);
    cr_assert_str_eq(err.message, text);
    text[RT_ERROR_MESSAGE_MAX] = 'y';
    text[RT_ERROR_MESSAGE_MAX + 1] = 0;
    (void)rt_fail(&err, RT_INTERNAL, "%s", text);
    cr_assert_null(strchr(err.message, 'y'));
}

Test(error, system_errors)
{
    static const struct {
        int errno_value;
        enum rt_code code;
    } cases[] = {
        {ENOENT, RT_NOT_FOUND},
        {EEXIST, RT_ALREADY_EXISTS},
        {EADDRINUSE, RT_ALREADY_EXISTS},
        {EACCES, RT_PERMISSION_DENIED},
        {EPERM, RT_PERMISSION_DENIED},
        {ENOSPC, RT_RESOURCE_EXHAUSTED},
        {EDQUOT, RT_RESOURCE_EXHAUSTED},
        {ENOMEM, RT_RESOURCE_EXHAUSTED},
        {EMFILE, RT_RESOURCE_EXHAUSTED},
        {ENFILE, RT_RESOURCE_EXHAUSTED},
        {EINVAL, RT_INVALID_ARGUMENT},
        {EAGAIN, RT_UNAVAILABLE},
        {ECONNREFUSED, RT_UNAVAILABLE},
        {ECONNRESET, RT_UNAVAILABLE},
        {ECONNABORTED, RT_UNAVAILABLE},
        {EPIPE, RT_UNAVAILABLE},
        {ETIMEDOUT, RT_UNAVAILABLE},
        {EIO, RT_INTERNAL},
        {EROFS, RT_PERMISSION_DENIED},
        {ELOOP, RT_INVALID_ARGUMENT},
        {EADDRNOTAVAIL, RT_INVALID_ARGUMENT},
    };

    for (size_t i = 0; i < RT_ARRAY_SIZE(cases); i++) {
        cr_assert_eq(rt_fail_errno(&err, cases[i].errno_value, "open %s", "f"), cases[i].code);
        cr_assert_eq(err.code, cases[i].code);
        cr_assert_eq(rt_fail_uv(&err, -cases[i].errno_value, "open %s", "f"), cases[i].code);
    }
    (void)rt_fail_errno(&err, ENOENT, "open %s", "f");
    cr_assert_str_eq(err.message, "open f: No such file or directory");
}

Test(error, names_of_codes)
{
    cr_assert_str_eq(rt_code_name(RT_OK), "OK");
    cr_assert_str_eq(rt_code_name(RT_UNAUTHENTICATED), "UNAUTHENTICATED");
    cr_assert_str_eq(rt_code_name((enum rt_code)17), "UNKNOWN");
    cr_assert_str_eq(rt_code_name((enum rt_code) - 1), "UNKNOWN");
    for (int code = 0; code <= 16; code++)
        cr_assert_not_null(rt_code_name((enum rt_code)code));
}

Test(error, ok_is_no_failure, .signal = SIGABRT)
{
    (void)rt_fail(&err, RT_OK, "x");
}

Test(error, wrap_needs_an_error, .signal = SIGABRT)
{
    (void)rt_wrap(&err, "x");
}
