/*
 * The entry point that every fuzz target defines, as libFuzzer names it.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Aborts when a promise is broken; returns 0. `data` is not NULL. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
