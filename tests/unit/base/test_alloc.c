/*
 * Memory, and the allocator of the tests itself.
 */
#include "runtime/base/alloc.h"

#include <signal.h>
#include <stdint.h>
#include <string.h>

#include "tests/support/check.h"

/* Lets malloc fail as it does without AddressSanitizer. */
/* NOLINTNEXTLINE(bugprone-reserved-identifier) */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

TestSuite(alloc, .fini = test_alloc_expect_none);

Test(alloc, xalloc_zeroes)
{
    unsigned char *bytes = rt_xalloc(64);

    for (size_t i = 0; i < 64; i++)
        cr_assert_eq(bytes[i], 0);
    cr_assert_null(rt_free(bytes));
}

Test(alloc, size_zero_gives_a_pointer)
{
    void *a = rt_xalloc(0);
    void *b = rt_alloc(0);
    void *c = rt_xrealloc(NULL, 0);

    cr_assert(a && b && c);
    cr_assert_neq(a, b);
    (void)rt_free(a);
    (void)rt_free(b);
    (void)rt_free(c);
}

Test(alloc, realloc_keeps_the_content)
{
    char *text = rt_xrealloc(NULL, 4);

    memcpy(text, "abc", 4);
    text = rt_xrealloc(text, 4096);
    cr_assert_str_eq(text, "abc");
    cr_assert_eq(test_alloc_live(), 1);
    (void)rt_free(text);
}

Test(alloc, copies)
{
    RT_CLEANUP(rt_freep) char *text = rt_xstrdup("text");
    RT_CLEANUP(rt_freep) char *memory = rt_xmemdup("a\0b", 3);
    RT_CLEANUP(rt_freep) char *nothing = rt_xmemdup(NULL, 0);
    RT_CLEANUP(rt_freep) char *formatted = rt_xasprintf("%s-%d", "x", 7);

    cr_assert_str_eq(text, "text");
    cr_assert_arr_eq(memory, "a\0b", 3);
    cr_assert_not_null(nothing);
    cr_assert_str_eq(formatted, "x-7");
    cr_assert_eq(test_alloc_live(), 4);
}

Test(alloc, free_accepts_null)
{
    cr_assert_null(rt_free(NULL));
    cr_assert_eq(test_alloc_live(), 0);
}

Test(alloc, freep_leaves_null)
{
    char *text = rt_xstrdup("text");

    rt_freep(&text);
    cr_assert_null(text);
}

Test(alloc, take_leaves_null)
{
    char *text = rt_xstrdup("text");
    char *taken = RT_TAKE(text);

    cr_assert_null(text);
    (void)rt_free(taken);
}

Test(alloc, xalloc_aborts_when_memory_is_out, .signal = SIGABRT)
{
    /* volatile: the compiler would refuse the constant. */
    volatile size_t too_much = PTRDIFF_MAX;

    (void)rt_free(rt_xalloc(too_much));
}

Test(alloc, xrealloc_aborts_when_memory_is_out, .signal = SIGABRT)
{
    volatile size_t too_much = PTRDIFF_MAX;

    (void)rt_free(rt_xrealloc(NULL, too_much));
}

Test(alloc, alloc_fails_when_memory_is_out)
{
    volatile size_t too_much = PTRDIFF_MAX;

    cr_assert_null(rt_alloc(too_much));
}

Test(alloc, fault_counts_down_then_repeats_then_ends)
{
    void *first;
    void *last;

    test_alloc_fail_after(1, 2);
    first = rt_alloc(1);
    cr_assert_not_null(first);
    cr_assert_null(rt_alloc(1));
    cr_assert_null(rt_alloc(1));
    last = rt_alloc(1);
    cr_assert_not_null(last);
    cr_assert_eq(test_alloc_failures(), 2);
    cr_assert_eq(test_alloc_total(), 2);
    (void)rt_free(first);
    (void)rt_free(last);
}

Test(alloc, fault_for_ever_until_disarmed)
{
    void *pointer;

    test_alloc_fail_after(0, TEST_ALLOC_FOREVER);
    for (int i = 0; i < 100; i++)
        cr_assert_null(rt_alloc(1));
    test_alloc_fail_never();
    pointer = rt_alloc(1);
    cr_assert_not_null(pointer);
    (void)rt_free(pointer);
}
