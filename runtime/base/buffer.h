/*
 * Growable byte buffer, for records, JSON and other text. Appending never returns an error: the
 * first append that would pass the limit, or finds no memory, marks the buffer as failed, and it
 * and all later ones change nothing. Check once at the end with rt_buffer_check(). What is in a
 * buffer may thus be sized by a peer.
 *
 * A zeroed struct is a valid empty buffer whose limit is RT_BUFFER_DEFAULT_LIMIT. Not thread safe.
 */
#ifndef RT_BASE_BUFFER_H
#define RT_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/bytes.h"
#include "runtime/base/compiler.h"
#include "runtime/base/error.h"

enum {
    RT_BUFFER_DEFAULT_LIMIT = 64 * 1024 * 1024
};

struct rt_buffer {
    uint8_t *data; /* owned */
    size_t size;
    size_t capacity;
    size_t limit; /* largest size in bytes; 0 = RT_BUFFER_DEFAULT_LIMIT */
    bool failed;
};

/* Frees the content; the buffer is empty, not failed, and usable again, its limit kept. */
void rt_buffer_deinit(struct rt_buffer *buffer);

/* Empties it, clears the failure and keeps the memory. */
void rt_buffer_reset(struct rt_buffer *buffer);

/* `bytes` must not point into this buffer. */
void rt_buffer_append(struct rt_buffer *buffer, struct rt_bytes bytes);
void rt_buffer_append_string(struct rt_buffer *buffer, const char *text);
void rt_buffer_append_byte(struct rt_buffer *buffer, uint8_t byte);
void rt_buffer_printf(struct rt_buffer *buffer, const char *format, ...) RT_PRINTF(2, 3);

/* RT_OK, or RT_RESOURCE_EXHAUSTED when an append failed. */
RT_MUST_USE enum rt_code rt_buffer_check(const struct rt_buffer *buffer, struct rt_error *err);

/* Valid until the next append. */
static inline struct rt_bytes rt_buffer_bytes(const struct rt_buffer *buffer)
{
    return (struct rt_bytes){buffer->data, buffer->size};
}

/* The content as a C string, valid until the next append; "" when there is no memory for the NUL,
 * and then the buffer is failed. Bytes past an embedded NUL are not seen. */
const char *rt_buffer_string(struct rt_buffer *buffer);

#endif
