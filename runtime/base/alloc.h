/*
 * Two ways to get memory.
 *
 * rt_xalloc is for control structures: it aborts when memory is out, as gRPC core does.
 * rt_alloc is for whatever a peer sizes: it returns NULL and the caller answers
 * RESOURCE_EXHAUSTED. Everything is released with rt_free. Any thread. Tests count and fail
 * allocations by wrapping these symbols at link time (tests/support).
 */
#ifndef RT_BASE_ALLOC_H
#define RT_BASE_ALLOC_H

#include <stddef.h>

#include "runtime/base/compiler.h"

/* Zeroed memory; never NULL. size 0 gives a unique pointer. */
void *rt_xalloc(size_t size);

/* Grows or shrinks like realloc; new bytes are not zeroed; never NULL. */
void *rt_xrealloc(void *pointer, size_t size);

/* Not zeroed; NULL when memory is out. */
RT_MUST_USE void *rt_alloc(size_t size);

/* Copies of C strings and memory; abort when memory is out. */
char *rt_xstrdup(const char *text);
void *rt_xmemdup(const void *data, size_t size);
char *rt_xasprintf(const char *format, ...) RT_PRINTF(1, 2);

/* Accepts NULL, returns NULL: p = rt_free(p). */
void *rt_free(void *pointer);

/* For RT_CLEANUP on a `T *` local. */
void rt_freep(void *pointer_to_pointer);

#endif
