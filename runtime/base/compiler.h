/*
 * Compiler attributes and the few macros that the whole project shares.
 */
#ifndef RT_BASE_COMPILER_H
#define RT_BASE_COMPILER_H

#include <stddef.h>

/* The caller has to look at the result. */
#define RT_MUST_USE __attribute__((warn_unused_result))
#define RT_PRINTF(format_index, first_index)                                                       \
    __attribute__((format(printf, format_index, first_index)))
#define RT_NORETURN __attribute__((noreturn))

/* Runs f(&variable) when the variable leaves its scope. */
#define RT_CLEANUP(f) __attribute__((cleanup(f)))

/* Hands the pointer over and leaves NULL behind. */
#define RT_TAKE(p)                                                                                 \
    __extension__({                                                                                \
        __typeof__(p) rt_taken_ = (p);                                                             \
        (p) = NULL;                                                                                \
        rt_taken_;                                                                                 \
    })

#define RT_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* The structure that embeds `member` at `pointer`. */
#define RT_CONTAINER_OF(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

/* Aborts with file and line. For programmer errors only; never compiled out, never with a side
 * effect in the condition. */
#define rt_assert(condition)                                                                       \
    ((condition) ? (void)0 : rt_assert_failed(#condition, __FILE__, __LINE__))

RT_NORETURN void rt_assert_failed(const char *condition, const char *file, int line);

#endif
