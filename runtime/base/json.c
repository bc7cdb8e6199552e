/*
 * JSON writer: see json.h. Invariant: what is written is valid JSON up to the open levels. The
 * caller's thread.
 */
#include "runtime/base/json.h"

#include <math.h>
#include <string.h>

void rt_json_init(struct rt_json *json, struct rt_buffer *buffer)
{
    *json = (struct rt_json){.buffer = buffer};
}

/* Length of the well-formed UTF-8 sequence that `text` begins with; 0 when there is none. */
static size_t sequence_length(const uint8_t *text, size_t size)
{
    uint8_t first = text[0];
    uint8_t low = 0x80;
    uint8_t high = 0xbf;
    size_t length;

    if (first < 0x80)
        return 1;
    if (first < 0xc2 || first > 0xf4)
        return 0;
    length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    /* The second byte rules out overlong forms, surrogates and what is past U+10FFFF. */
    if (first == 0xe0)
        low = 0xa0;
    else if (first == 0xed)
        high = 0x9f;
    else if (first == 0xf0)
        low = 0x90;
    else if (first == 0xf4)
        high = 0x8f;
    if (size < length || text[1] < low || text[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

bool rt_json_is_utf8(struct rt_bytes bytes)
{
    size_t length;

    for (size_t i = 0; i < bytes.size; i += length) {
        length = sequence_length(bytes.data + i, bytes.size - i);
        if (length == 0)
            return false;
    }
    return true;
}

static bool needs_escape(uint8_t byte)
{
    return byte < 0x20 || byte == '"' || byte == '\\' || byte == 0x7f;
}

static void append_escaped(struct rt_buffer *buffer, uint8_t byte)
{
    static const char letters[] = "\bb\ff\nn\rr\tt\"\"\\\\";

    for (size_t i = 0; i + 1 < sizeof(letters); i += 2) {
        if ((uint8_t)letters[i] == byte) {
            rt_buffer_append_byte(buffer, '\\');
            rt_buffer_append_byte(buffer, (uint8_t)letters[i + 1]);
            return;
        }
    }
    rt_buffer_printf(buffer, "\\u%04x", byte);
}

static void append_string(struct rt_buffer *buffer, struct rt_bytes text)
{
    size_t done = 0;
    size_t i = 0;

    rt_buffer_append_byte(buffer, '"');
    while (i < text.size) {
        size_t length = sequence_length(text.data + i, text.size - i);

        if (length > 0 && !needs_escape(text.data[i])) {
            i += length;
            continue;
        }
        rt_buffer_append(buffer, rt_bytes_of(text.data + done, i - done));
        if (length > 0)
            append_escaped(buffer, text.data[i]);
        else
            rt_buffer_append_string(buffer, "\xef\xbf\xbd");
        done = ++i;
    }
    if (i > done)
        rt_buffer_append(buffer, rt_bytes_of(text.data + done, i - done));
    rt_buffer_append_byte(buffer, '"');
}

/* The comma and the name before a value. */
static void begin_value(struct rt_json *json, const char *name)
{
    uint32_t level = json->depth > 0 ? (uint32_t)1 << (json->depth - 1) : 0;

    rt_assert((name != NULL) == ((json->is_object & level) != 0));
    if (json->has_members & level)
        rt_buffer_append_byte(json->buffer, ',');
    json->has_members |= level;
    if (name) {
        append_string(json->buffer, rt_bytes_of_string(name));
        rt_buffer_append_byte(json->buffer, ':');
    }
}

static void begin_level(struct rt_json *json, const char *name, bool is_object)
{
    uint32_t level;

    begin_value(json, name);
    rt_assert(json->depth < RT_JSON_DEPTH_MAX);
    level = (uint32_t)1 << json->depth++;
    json->has_members &= ~level;
    json->is_object = is_object ? json->is_object | level : json->is_object & ~level;
    rt_buffer_append_byte(json->buffer, is_object ? '{' : '[');
}

static void end_level(struct rt_json *json, bool is_object)
{
    uint32_t level;

    rt_assert(json->depth > 0);
    level = (uint32_t)1 << --json->depth;
    rt_assert(((json->is_object & level) != 0) == is_object);
    rt_buffer_append_byte(json->buffer, is_object ? '}' : ']');
}

void rt_json_object_begin(struct rt_json *json, const char *name)
{
    begin_level(json, name, true);
}

void rt_json_object_end(struct rt_json *json)
{
    end_level(json, true);
}

void rt_json_array_begin(struct rt_json *json, const char *name)
{
    begin_level(json, name, false);
}

void rt_json_array_end(struct rt_json *json)
{
    end_level(json, false);
}

void rt_json_string(struct rt_json *json, const char *name, const char *text)
{
    if (!text) {
        rt_json_null(json, name);
        return;
    }
    begin_value(json, name);
    append_string(json->buffer, rt_bytes_of_string(text));
}

static void append_base64(struct rt_buffer *buffer, struct rt_bytes bytes)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < bytes.size; i += 3) {
        size_t n = bytes.size - i < 3 ? bytes.size - i : 3;
        uint32_t group = (uint32_t)bytes.data[i] << 16;

        group |= n > 1 ? (uint32_t)bytes.data[i + 1] << 8 : 0;
        group |= n > 2 ? bytes.data[i + 2] : 0;
        for (size_t k = 0; k < 4; k++)
            rt_buffer_append_byte(buffer,
                                  k <= n ? (uint8_t)alphabet[group >> (18 - 6 * k) & 63] : '=');
    }
}

void rt_json_bytes(struct rt_json *json, const char *name, struct rt_bytes bytes)
{
    begin_value(json, name);
    if (rt_json_is_utf8(bytes)) {
        append_string(json->buffer, bytes);
        return;
    }
    rt_buffer_append_string(json->buffer, "{\"base64\":\"");
    append_base64(json->buffer, bytes);
    rt_buffer_append_string(json->buffer, "\"}");
}

void rt_json_u64(struct rt_json *json, const char *name, uint64_t value)
{
    begin_value(json, name);
    rt_buffer_printf(json->buffer, "%llu", (unsigned long long)value);
}

void rt_json_i64(struct rt_json *json, const char *name, int64_t value)
{
    begin_value(json, name);
    rt_buffer_printf(json->buffer, "%lld", (long long)value);
}

void rt_json_double(struct rt_json *json, const char *name, double value)
{
    if (!isfinite(value)) {
        rt_json_null(json, name);
        return;
    }
    begin_value(json, name);
    rt_buffer_printf(json->buffer, "%.15g", value);
}

void rt_json_bool(struct rt_json *json, const char *name, bool value)
{
    begin_value(json, name);
    rt_buffer_append_string(json->buffer, value ? "true" : "false");
}

void rt_json_null(struct rt_json *json, const char *name)
{
    begin_value(json, name);
    rt_buffer_append_string(json->buffer, "null");
}
