/*
 * Byte strings. Keys and values are bytes, never C strings.
 */
#ifndef RT_BASE_BYTES_H
#define RT_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A borrowed view; `data` may be NULL only when size is 0. */
struct rt_bytes {
    const uint8_t *data;
    size_t size;
};

#define RT_BYTES_LITERAL(text) ((struct rt_bytes){(const uint8_t *)(text), sizeof(text) - 1})

static inline struct rt_bytes rt_bytes_of(const void *data, size_t size)
{
    return (struct rt_bytes){data, size};
}

static inline struct rt_bytes rt_bytes_of_string(const char *text)
{
    return (struct rt_bytes){(const uint8_t *)text, strlen(text)};
}

static inline bool rt_bytes_equal(struct rt_bytes a, struct rt_bytes b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* Unsigned bytewise order, a shorter prefix first; <0, 0, >0. */
static inline int rt_bytes_compare(struct rt_bytes a, struct rt_bytes b)
{
    size_t common = a.size < b.size ? a.size : b.size;
    int order = common == 0 ? 0 : memcmp(a.data, b.data, common);

    if (order != 0)
        return order;
    return a.size < b.size ? -1 : a.size > b.size;
}

static inline bool rt_bytes_has_prefix(struct rt_bytes bytes, struct rt_bytes prefix)
{
    return bytes.size >= prefix.size &&
           (prefix.size == 0 || memcmp(bytes.data, prefix.data, prefix.size) == 0);
}

#endif
