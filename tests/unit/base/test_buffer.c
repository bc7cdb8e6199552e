/*
 * Growable buffer: content, limit, failure that sticks.
 */
#include "runtime/base/buffer.h"

#include "tests/support/check.h"

TestSuite(buffer, .fini = test_alloc_expect_none);

Test(buffer, appends_in_order)
{
    struct rt_buffer buffer = {0};

    rt_buffer_append(&buffer, RT_BYTES_LITERAL("a\0b"));
    rt_buffer_append_byte(&buffer, 0xff);
    rt_buffer_append_string(&buffer, "text");
    rt_buffer_append(&buffer, (struct rt_bytes){0});
    rt_buffer_printf(&buffer, "-%d", 42);
    cr_assert(rt_bytes_equal(rt_buffer_bytes(&buffer), RT_BYTES_LITERAL("a\0b\xfftext-42")));
    cr_assert_eq(rt_buffer_check(&buffer, NULL), RT_OK);
    rt_buffer_deinit(&buffer);
}

Test(buffer, empty_is_a_string)
{
    struct rt_buffer buffer = {0};

    cr_assert_eq(rt_buffer_bytes(&buffer).size, 0);
    cr_assert_str_eq(rt_buffer_string(&buffer), "");
    cr_assert_eq(buffer.size, 0);
    rt_buffer_deinit(&buffer);
    rt_buffer_deinit(&buffer);
}

Test(buffer, string_at_every_size_across_growth)
{
    struct rt_buffer buffer = {0};

    for (size_t size = 1; size <= 300; size++) {
        rt_buffer_append_byte(&buffer, 'x');
        cr_assert_eq(strlen(rt_buffer_string(&buffer)), size);
        cr_assert_eq(buffer.size, size);
    }
    rt_buffer_deinit(&buffer);
}

Test(buffer, printf_at_every_size_across_growth)
{
    for (int size = 0; size <= 300; size++) {
        struct rt_buffer buffer = {0};

        rt_buffer_printf(&buffer, "%*s", size, "");
        cr_assert_eq(buffer.size, (size_t)size);
        cr_assert_eq(strspn(rt_buffer_string(&buffer), " "), (size_t)size);
        rt_buffer_deinit(&buffer);
    }
}

Test(buffer, limit_and_limit_plus_one)
{
    struct rt_buffer buffer = {.limit = 8};
    struct rt_error err = RT_ERROR_INIT;

    rt_buffer_append_string(&buffer, "12345678");
    cr_assert_eq(rt_buffer_check(&buffer, NULL), RT_OK);
    cr_assert_str_eq(rt_buffer_string(&buffer), "12345678");
    rt_buffer_append_byte(&buffer, '9');
    cr_assert_eq(rt_buffer_check(&buffer, &err), RT_RESOURCE_EXHAUSTED);
    cr_assert_not_null(strstr(err.message, "limit 8 bytes"));
    cr_assert_eq(buffer.size, 8);
    rt_buffer_deinit(&buffer);
    cr_assert_eq(buffer.limit, 8);
}

Test(buffer, printf_up_to_the_limit)
{
    struct rt_buffer buffer = {.limit = 8};

    rt_buffer_printf(&buffer, "%s", "12345678");
    cr_assert_not(buffer.failed);
    rt_buffer_reset(&buffer);
    rt_buffer_printf(&buffer, "%s", "123456789");
    cr_assert(buffer.failed);
    cr_assert_eq(buffer.size, 0);
    rt_buffer_deinit(&buffer);
}

Test(buffer, failure_sticks_until_reset)
{
    struct rt_buffer buffer = {.limit = 4};

    rt_buffer_append_string(&buffer, "12345");
    rt_buffer_append_byte(&buffer, '1');
    rt_buffer_printf(&buffer, "1");
    cr_assert_eq(buffer.size, 0);
    rt_buffer_reset(&buffer);
    rt_buffer_append_byte(&buffer, '1');
    cr_assert_not(buffer.failed);
    cr_assert_eq(buffer.size, 1);
    rt_buffer_deinit(&buffer);
}

/* Nothing is read of bytes for which there is no room. */
Test(buffer, huge_sizes_do_not_wrap)
{
    static const uint8_t byte;
    struct rt_buffer buffer = {.limit = SIZE_MAX};

    rt_buffer_append_byte(&buffer, 'x');
    rt_buffer_append(&buffer, rt_bytes_of(&byte, SIZE_MAX));
    cr_assert(buffer.failed);
    rt_buffer_deinit(&buffer);
}

static void fill(struct rt_buffer *buffer)
{
    for (int i = 0; i < 40; i++)
        rt_buffer_append_string(buffer, "0123456789");
    rt_buffer_printf(buffer, "%0600d", 1);
    (void)rt_buffer_string(buffer);
}

Test(buffer, every_allocation_may_fail)
{
    size_t failures = 0;

    for (size_t countdown = 0;; countdown++) {
        struct rt_buffer buffer = {0};

        test_alloc_fail_after(countdown, 1);
        fill(&buffer);
        cr_assert_eq(buffer.failed, test_alloc_failures() > failures);
        rt_buffer_deinit(&buffer);
        if (test_alloc_failures() == failures)
            break;
        failures = test_alloc_failures();
    }
    cr_assert_geq(failures, 4);
}

Test(buffer, string_without_memory_fails_the_buffer)
{
    struct rt_buffer buffer = {0};

    test_alloc_fail_after(0, 1);
    cr_assert_str_eq(rt_buffer_string(&buffer), "");
    cr_assert(buffer.failed);
    rt_buffer_deinit(&buffer);
}
