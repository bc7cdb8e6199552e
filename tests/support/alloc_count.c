/*
 * Link-time wrappers of the allocator: see alloc_count.h. Invariant: every block handed out is
 * counted exactly once and uncounted when freed. Counters are atomic, the fault is under a mutex;
 * any thread.
 */
#include "tests/support/alloc_count.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#include "runtime/base/alloc.h"

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's --wrap prescribes these names. */
void *__real_rt_xalloc(size_t size);
void *__real_rt_xrealloc(void *pointer, size_t size);
void *__real_rt_alloc(size_t size);
void *__real_rt_xmemdup(const void *data, size_t size);
char *__real_rt_xstrdup(const char *text);
void *__real_rt_free(void *pointer);

void *__wrap_rt_xalloc(size_t size);
void *__wrap_rt_xrealloc(void *pointer, size_t size);
void *__wrap_rt_alloc(size_t size);
void *__wrap_rt_xmemdup(const void *data, size_t size);
char *__wrap_rt_xstrdup(const char *text);
char *__wrap_rt_xasprintf(const char *format, ...) RT_PRINTF(1, 2);
void *__wrap_rt_free(void *pointer);
void __wrap_rt_freep(void *pointer_to_pointer);

static atomic_long n_live;
static atomic_size_t n_total;
static atomic_size_t n_failures;

static pthread_mutex_t fault_lock = PTHREAD_MUTEX_INITIALIZER;
static size_t fault_countdown;
static size_t fault_repeat;

long test_alloc_live(void)
{
    return atomic_load(&n_live);
}

size_t test_alloc_total(void)
{
    return atomic_load(&n_total);
}

size_t test_alloc_failures(void)
{
    return atomic_load(&n_failures);
}

void test_alloc_fail_after(size_t countdown, size_t repeat)
{
    (void)pthread_mutex_lock(&fault_lock);
    fault_countdown = countdown;
    fault_repeat = repeat;
    (void)pthread_mutex_unlock(&fault_lock);
}

void test_alloc_fail_never(void)
{
    test_alloc_fail_after(0, 0);
}

static bool fault_strikes(void)
{
    bool strikes = false;

    (void)pthread_mutex_lock(&fault_lock);
    if (fault_repeat > 0 && fault_countdown > 0) {
        fault_countdown--;
    } else if (fault_repeat > 0) {
        strikes = true;
        if (fault_repeat != TEST_ALLOC_FOREVER)
            fault_repeat--;
    }
    (void)pthread_mutex_unlock(&fault_lock);
    return strikes;
}

static void *counted(void *pointer)
{
    if (pointer) {
        atomic_fetch_add(&n_live, 1);
        atomic_fetch_add(&n_total, 1);
    }
    return pointer;
}

void *__wrap_rt_xalloc(size_t size)
{
    return counted(__real_rt_xalloc(size));
}

void *__wrap_rt_xrealloc(void *pointer, size_t size)
{
    if (!pointer)
        return counted(__real_rt_xrealloc(NULL, size));
    return __real_rt_xrealloc(pointer, size);
}

void *__wrap_rt_alloc(size_t size)
{
    if (fault_strikes()) {
        atomic_fetch_add(&n_failures, 1);
        return NULL;
    }
    return counted(__real_rt_alloc(size));
}

void *__wrap_rt_xmemdup(const void *data, size_t size)
{
    return counted(__real_rt_xmemdup(data, size));
}

char *__wrap_rt_xstrdup(const char *text)
{
    return counted(__real_rt_xstrdup(text));
}

/* The original takes no va_list, so the text is formatted here. */
char *__wrap_rt_xasprintf(const char *format, ...)
{
    va_list arguments;
    char *text = NULL;
    int size;

    va_start(arguments, format);
    size = vasprintf(&text, format, arguments);
    va_end(arguments);
    rt_assert(size >= 0);
    return counted(text);
}

void *__wrap_rt_free(void *pointer)
{
    if (pointer)
        atomic_fetch_sub(&n_live, 1);
    return __real_rt_free(pointer);
}

void __wrap_rt_freep(void *pointer_to_pointer)
{
    void **pointer = pointer_to_pointer;

    *pointer = __wrap_rt_free(*pointer);
}
/* NOLINTEND(bugprone-reserved-identifier) */
