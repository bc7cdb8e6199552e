/*
 * Byte strings: equality, order, prefixes.
 */
#include "runtime/base/bytes.h"

#include "runtime/base/compiler.h"
#include "tests/support/check.h"

TestSuite(bytes, .fini = test_alloc_expect_none);

static const struct rt_bytes none;

Test(bytes, views)
{
    cr_assert_eq(RT_BYTES_LITERAL("a\0b").size, 3);
    cr_assert_eq(rt_bytes_of_string("ab").size, 2);
    cr_assert_eq(rt_bytes_of("abc", 2).size, 2);
}

Test(bytes, equality)
{
    cr_assert(rt_bytes_equal(none, none));
    cr_assert(rt_bytes_equal(none, RT_BYTES_LITERAL("")));
    cr_assert(rt_bytes_equal(RT_BYTES_LITERAL("a\0b"), RT_BYTES_LITERAL("a\0b")));
    cr_assert_not(rt_bytes_equal(RT_BYTES_LITERAL("a\0b"), RT_BYTES_LITERAL("a\0c")));
    cr_assert_not(rt_bytes_equal(RT_BYTES_LITERAL("a"), RT_BYTES_LITERAL("ab")));
    cr_assert_not(rt_bytes_equal(RT_BYTES_LITERAL("a"), none));
}

Test(bytes, order_is_unsigned_and_shorter_first)
{
    const struct rt_bytes ordered[] = {
        none,
        RT_BYTES_LITERAL("\x00"),
        RT_BYTES_LITERAL("\x00\x00"),
        RT_BYTES_LITERAL("\x00\x01"),
        RT_BYTES_LITERAL("a"),
        RT_BYTES_LITERAL("a\x00"),
        RT_BYTES_LITERAL("b"),
        RT_BYTES_LITERAL("\x80"),
        RT_BYTES_LITERAL("\xff"),
        RT_BYTES_LITERAL("\xff\xff"),
    };

    for (size_t i = 0; i < RT_ARRAY_SIZE(ordered); i++) {
        for (size_t k = 0; k < RT_ARRAY_SIZE(ordered); k++) {
            int order = rt_bytes_compare(ordered[i], ordered[k]);

            cr_assert_eq(order < 0, i < k);
            cr_assert_eq(order > 0, i > k);
        }
    }
}

Test(bytes, prefixes)
{
    cr_assert(rt_bytes_has_prefix(RT_BYTES_LITERAL("abc"), RT_BYTES_LITERAL("ab")));
    cr_assert(rt_bytes_has_prefix(RT_BYTES_LITERAL("ab"), RT_BYTES_LITERAL("ab")));
    cr_assert(rt_bytes_has_prefix(RT_BYTES_LITERAL("ab"), none));
    cr_assert(rt_bytes_has_prefix(none, none));
    cr_assert_not(rt_bytes_has_prefix(RT_BYTES_LITERAL("a"), RT_BYTES_LITERAL("ab")));
    cr_assert_not(rt_bytes_has_prefix(RT_BYTES_LITERAL("ac"), RT_BYTES_LITERAL("ab")));
    cr_assert_not(rt_bytes_has_prefix(none, RT_BYTES_LITERAL("a")));
}
