/*
 * Counts and fails allocations of the code under test. A binary that links dep_test_support has
 * every call to runtime/base/alloc.h redirected here by the linker (--wrap), so production code
 * needs no hook. Memory taken inside alloc.c itself and by libraries is not seen.
 *
 * Any thread. Counters belong to the process; Criterion runs each test in a process of its own, so
 * a test starts with none live and nothing armed.
 */
#ifndef TESTS_SUPPORT_ALLOC_COUNT_H
#define TESTS_SUPPORT_ALLOC_COUNT_H

#include <stddef.h>

/* For `repeat`: fail until test_alloc_fail_never(). */
#define TEST_ALLOC_FOREVER ((size_t)-1)

/* Blocks allocated and not yet freed; negative when something foreign went to rt_free. */
long test_alloc_live(void);

/* Allocations so far by any of the functions. */
size_t test_alloc_total(void);

/* rt_alloc succeeds `countdown` more times, then returns NULL `repeat` times, then succeeds again.
 * The rt_x functions never fail. Replaces what was armed before. */
void test_alloc_fail_after(size_t countdown, size_t repeat);
void test_alloc_fail_never(void);

/* How many rt_alloc calls were made to fail since the process started: lets a test that walks
 * countdown = 0, 1, 2, … see that it is past the last allocation. */
size_t test_alloc_failures(void);

#endif
