/*
 * Memory: see alloc.h. No state of its own, any thread.
 */
#include "runtime/base/alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static RT_NORETURN void out_of_memory(size_t size)
{
    (void)fprintf(stderr, "out of memory: %zu bytes\n", size);
    abort();
}

void *rt_xalloc(size_t size)
{
    void *pointer = calloc(1, size == 0 ? 1 : size);

    if (!pointer)
        out_of_memory(size);
    return pointer;
}

void *rt_xrealloc(void *pointer, size_t size)
{
    void *moved = realloc(pointer, size == 0 ? 1 : size);

    if (!moved)
        out_of_memory(size);
    return moved;
}

void *rt_alloc(size_t size)
{
    return malloc(size == 0 ? 1 : size);
}

void *rt_xmemdup(const void *data, size_t size)
{
    void *copy = rt_xalloc(size);

    if (size > 0)
        memcpy(copy, data, size);
    return copy;
}

char *rt_xstrdup(const char *text)
{
    return rt_xmemdup(text, strlen(text) + 1);
}

char *rt_xasprintf(const char *format, ...)
{
    va_list arguments;
    char *text = NULL;
    int size;

    va_start(arguments, format);
    size = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (size < 0)
        out_of_memory(0);
    return text;
}

void *rt_free(void *pointer)
{
    free(pointer);
    return NULL;
}

void rt_freep(void *pointer_to_pointer)
{
    void **pointer = pointer_to_pointer;

    *pointer = rt_free(*pointer);
}
