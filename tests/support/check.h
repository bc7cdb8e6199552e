/*
 * Checks for Criterion suites. Programs without Criterion (simulator, thread programs) use
 * alloc_count.h directly.
 */
#ifndef TESTS_SUPPORT_CHECK_H
#define TESTS_SUPPORT_CHECK_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/alloc_count.h"

/* TestSuite(name, .fini = test_alloc_expect_none): a test that leaves something allocated crashes
 * and the binary exits 1. It aborts because Criterion 2.4.1 prints an assertion that fails in a
 * fini but passes the test. */
static inline void test_alloc_expect_none(void)
{
    if (test_alloc_live() == 0)
        return;
    (void)fprintf(stderr, "%ld allocations left behind\n", test_alloc_live());
    abort();
}

#endif
