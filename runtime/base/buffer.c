/*
 * Growable buffer: see buffer.h. Invariants: size ≤ capacity, size ≤ limit, and after a failure the
 * content is exactly what was appended before it. No state of its own, any thread.
 */
#include "runtime/base/buffer.h"

#include <stdarg.h>
#include <stdio.h>

#include "runtime/base/alloc.h"

enum {
    FIRST_CAPACITY = 64
};

void rt_buffer_deinit(struct rt_buffer *buffer)
{
    (void)rt_free(buffer->data);
    *buffer = (struct rt_buffer){.limit = buffer->limit};
}

void rt_buffer_reset(struct rt_buffer *buffer)
{
    buffer->size = 0;
    buffer->failed = false;
}

static size_t limit_of(const struct rt_buffer *buffer)
{
    return buffer->limit ? buffer->limit : RT_BUFFER_DEFAULT_LIMIT;
}

/* Room for `needed` bytes in all; the caller has checked the limit. */
static bool grow(struct rt_buffer *buffer, size_t needed)
{
    size_t capacity = buffer->capacity ? buffer->capacity : FIRST_CAPACITY;
    uint8_t *data;

    while (capacity < needed)
        capacity = capacity > SIZE_MAX / 2 ? needed : capacity * 2;
    data = rt_alloc(capacity);
    if (!data)
        return false;
    if (buffer->size > 0)
        memcpy(data, buffer->data, buffer->size);
    (void)rt_free(buffer->data);
    buffer->data = data;
    buffer->capacity = capacity;
    return true;
}

static bool reserve(struct rt_buffer *buffer, size_t size)
{
    size_t limit = limit_of(buffer);

    if (buffer->failed)
        return false;
    if (size > limit || buffer->size > limit - size ||
        (buffer->size + size > buffer->capacity && !grow(buffer, buffer->size + size))) {
        buffer->failed = true;
        return false;
    }
    return true;
}

/* The NUL behind a text is not part of the content and may lie past the limit. */
static bool has_room_for_nul(struct rt_buffer *buffer, size_t text_size)
{
    if (buffer->size + text_size < buffer->capacity || grow(buffer, buffer->size + text_size + 1))
        return true;
    buffer->failed = true;
    return false;
}

void rt_buffer_append(struct rt_buffer *buffer, struct rt_bytes bytes)
{
    if (bytes.size == 0 || !reserve(buffer, bytes.size))
        return;
    memcpy(buffer->data + buffer->size, bytes.data, bytes.size);
    buffer->size += bytes.size;
}

void rt_buffer_append_string(struct rt_buffer *buffer, const char *text)
{
    rt_buffer_append(buffer, rt_bytes_of_string(text));
}

void rt_buffer_append_byte(struct rt_buffer *buffer, uint8_t byte)
{
    rt_buffer_append(buffer, rt_bytes_of(&byte, 1));
}

void rt_buffer_printf(struct rt_buffer *buffer, const char *format, ...)
{
    va_list arguments;
    int size;

    va_start(arguments, format);
    size = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    rt_assert(size >= 0);

    if (!reserve(buffer, (size_t)size) || !has_room_for_nul(buffer, (size_t)size))
        return;
    va_start(arguments, format);
    (void)vsnprintf((char *)buffer->data + buffer->size, (size_t)size + 1, format, arguments);
    va_end(arguments);
    buffer->size += (size_t)size;
}

enum rt_code rt_buffer_check(const struct rt_buffer *buffer, struct rt_error *err)
{
    if (!buffer->failed)
        return RT_OK;
    return rt_fail(err, RT_RESOURCE_EXHAUSTED,
                   "output stopped after %zu bytes (limit %zu bytes, or out of memory)",
                   buffer->size, limit_of(buffer));
}

const char *rt_buffer_string(struct rt_buffer *buffer)
{
    if (!has_room_for_nul(buffer, 0))
        return "";
    buffer->data[buffer->size] = 0;
    return (const char *)buffer->data;
}
