/*
 * Arena: alignment, limit, failure of the allocator below.
 */
#include "runtime/base/arena.h"

#include <string.h>

#include "tests/support/check.h"

TestSuite(arena, .fini = test_alloc_expect_none);

Test(arena, pointers_are_aligned_and_distinct)
{
    struct rt_arena arena = {0};
    unsigned char *previous = NULL;

    for (size_t size = 0; size < 300; size++) {
        unsigned char *pointer = rt_arena_alloc(&arena, size);

        cr_assert_not_null(pointer);
        cr_assert_eq((uintptr_t)pointer % 16, 0);
        cr_assert_neq(pointer, previous);
        memset(pointer, 0xaa, size);
        previous = pointer;
    }
    rt_arena_reset(&arena);
    cr_assert_eq(arena.used, 0);
}

Test(arena, limit_and_limit_plus_one)
{
    struct rt_arena arena = {.limit = 1024};

    cr_assert_not_null(rt_arena_alloc(&arena, 1024));
    cr_assert_null(rt_arena_alloc(&arena, 1));
    rt_arena_reset(&arena);
    cr_assert_eq(arena.limit, 1024);
    cr_assert_null(rt_arena_alloc(&arena, 1025));
    cr_assert_not_null(rt_arena_alloc(&arena, 1008));
    cr_assert_not_null(rt_arena_alloc(&arena, 16));
    cr_assert_null(rt_arena_alloc(&arena, 0));
    rt_arena_reset(&arena);
}

Test(arena, rounding_up_does_not_pass_the_limit)
{
    struct rt_arena arena = {.limit = 1020};

    cr_assert_null(rt_arena_alloc(&arena, 1020), "rounds to 1024");
    cr_assert_not_null(rt_arena_alloc(&arena, 1008));
    rt_arena_reset(&arena);
}

Test(arena, huge_size_does_not_wrap)
{
    struct rt_arena arena = {.limit = SIZE_MAX};

    cr_assert_null(rt_arena_alloc(&arena, SIZE_MAX));
    cr_assert_null(rt_arena_alloc(&arena, SIZE_MAX - 8));
    rt_arena_reset(&arena);
}

Test(arena, default_limit)
{
    struct rt_arena arena = {0};

    cr_assert_null(rt_arena_alloc(&arena, (size_t)RT_ARENA_DEFAULT_LIMIT + 1));
    cr_assert_not_null(rt_arena_alloc(&arena, RT_ARENA_DEFAULT_LIMIT));
    rt_arena_reset(&arena);
}

Test(arena, blocks_grow_and_large_requests_get_their_own)
{
    struct rt_arena arena = {0};

    for (size_t i = 0; i < 4096; i++)
        cr_assert_not_null(rt_arena_alloc(&arena, 64));
    cr_assert_leq(test_alloc_live(), 8);
    cr_assert_not_null(rt_arena_alloc(&arena, 1 << 20));
    rt_arena_reset(&arena);
}

/* Blocks double, so what fits says how large the first one was. */
Test(arena, a_first_block_of_another_size)
{
    struct rt_arena arena = {.first_block = 256};
    long n_live = test_alloc_live();

    for (size_t i = 0; i < 256 / 16; i++)
        cr_assert_not_null(rt_arena_alloc(&arena, 16));
    cr_assert_eq(test_alloc_live(), n_live + 1);
    rt_arena_rewind(&arena);
    cr_assert_eq(test_alloc_live(), n_live + 1, "is kept");
    for (size_t i = 0; i < 256 / 16 + 1; i++)
        cr_assert_not_null(rt_arena_alloc(&arena, 16));
    cr_assert_eq(test_alloc_live(), n_live + 2);
    for (size_t i = 1; i < 512 / 16; i++)
        cr_assert_not_null(rt_arena_alloc(&arena, 16));
    cr_assert_eq(test_alloc_live(), n_live + 2);
    rt_arena_reset(&arena);
    cr_assert_eq(test_alloc_live(), n_live);
}

Test(arena, copy_adds_a_nul)
{
    struct rt_arena arena = {0};
    struct rt_bytes copy;
    struct rt_bytes empty;

    cr_assert(rt_arena_copy(&arena, RT_BYTES_LITERAL("a\0b"), &copy));
    cr_assert_eq(copy.size, 3);
    cr_assert_arr_eq(copy.data, "a\0b\0", 4);
    cr_assert(rt_arena_copy(&arena, (struct rt_bytes){0}, &empty));
    cr_assert_eq(empty.size, 0);
    cr_assert_eq(empty.data[0], 0);
    rt_arena_reset(&arena);
}

Test(arena, failures_leave_the_output_alone)
{
    struct rt_arena arena = {.limit = 16};
    struct rt_bytes copy = RT_BYTES_LITERAL("old");

    cr_assert_not(rt_arena_copy(&arena, RT_BYTES_LITERAL("0123456789abcdef"), &copy));
    cr_assert_eq(copy.size, 3);

    test_alloc_fail_after(0, 1);
    cr_assert_null(rt_arena_alloc(&arena, 1));
    cr_assert_eq(arena.used, 0);
    cr_assert_not_null(rt_arena_alloc(&arena, 1), "usable after a failure");
    rt_arena_reset(&arena);
}
