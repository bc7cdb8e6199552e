/*
 * Records: see codec.h. Invariant: a reader never touches a byte outside the record it was given.
 * No state of its own, any thread.
 */
#include "runtime/base/codec.h"

static void put_number(struct rt_buffer *buffer, uint64_t value, size_t width)
{
    uint8_t bytes[sizeof(value)];

    for (size_t i = 0; i < width; i++)
        bytes[i] = (uint8_t)(value >> (8 * (width - 1 - i)));
    rt_buffer_append(buffer, rt_bytes_of(bytes, width));
}

void rt_codec_put_u8(struct rt_buffer *buffer, uint8_t value)
{
    put_number(buffer, value, sizeof(value));
}

void rt_codec_put_u16(struct rt_buffer *buffer, uint16_t value)
{
    put_number(buffer, value, sizeof(value));
}

void rt_codec_put_u32(struct rt_buffer *buffer, uint32_t value)
{
    put_number(buffer, value, sizeof(value));
}

void rt_codec_put_u64(struct rt_buffer *buffer, uint64_t value)
{
    put_number(buffer, value, sizeof(value));
}

void rt_codec_put_bytes(struct rt_buffer *buffer, struct rt_bytes bytes)
{
    if (bytes.size > UINT32_MAX) {
        buffer->failed = true;
        return;
    }
    rt_codec_put_u32(buffer, (uint32_t)bytes.size);
    rt_buffer_append(buffer, bytes);
}

void rt_codec_put_raw(struct rt_buffer *buffer, struct rt_bytes bytes)
{
    rt_buffer_append(buffer, bytes);
}

struct rt_bytes rt_codec_get_raw(struct rt_codec_reader *reader, size_t size)
{
    struct rt_bytes bytes;

    if (reader->failed || size > reader->rest.size) {
        reader->failed = true;
        return (struct rt_bytes){0};
    }
    if (size == 0)
        return (struct rt_bytes){0};
    bytes = rt_bytes_of(reader->rest.data, size);
    reader->rest = rt_bytes_of(reader->rest.data + size, reader->rest.size - size);
    return bytes;
}

static uint64_t get_number(struct rt_codec_reader *reader, size_t width)
{
    struct rt_bytes bytes = rt_codec_get_raw(reader, width);
    uint64_t value = 0;

    for (size_t i = 0; i < bytes.size; i++)
        value = value << 8 | bytes.data[i];
    return value;
}

uint8_t rt_codec_get_u8(struct rt_codec_reader *reader)
{
    return (uint8_t)get_number(reader, sizeof(uint8_t));
}

uint16_t rt_codec_get_u16(struct rt_codec_reader *reader)
{
    return (uint16_t)get_number(reader, sizeof(uint16_t));
}

uint32_t rt_codec_get_u32(struct rt_codec_reader *reader)
{
    return (uint32_t)get_number(reader, sizeof(uint32_t));
}

uint64_t rt_codec_get_u64(struct rt_codec_reader *reader)
{
    return get_number(reader, sizeof(uint64_t));
}

struct rt_bytes rt_codec_get_bytes(struct rt_codec_reader *reader)
{
    uint32_t size = rt_codec_get_u32(reader);

    return rt_codec_get_raw(reader, size);
}

struct rt_bytes rt_codec_get_rest(struct rt_codec_reader *reader)
{
    return rt_codec_get_raw(reader, reader->rest.size);
}

enum rt_code rt_codec_finish(const struct rt_codec_reader *reader, const char *what,
                             struct rt_error *err)
{
    if (reader->failed)
        return rt_fail(err, RT_DATA_LOSS, "%s is truncated", what);
    if (reader->rest.size > 0)
        return rt_fail(err, RT_DATA_LOSS, "%s has %zu bytes too many", what, reader->rest.size);
    return RT_OK;
}
