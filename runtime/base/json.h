/*
 * JSON writer. Own code although jansson is used for reading: jansson builds a tree, refuses
 * strings that are not UTF-8 and has no unsigned 64-bit numbers, and keys, values, epochs and
 * tokens are exactly that.
 *
 * Writes into an rt_buffer, whose failure rule applies: check the buffer at the end. `name` is the
 * member's name inside an object, NULL inside an array and at the top. Not thread safe.
 */
#ifndef RT_BASE_JSON_H
#define RT_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/buffer.h"
#include "runtime/base/bytes.h"

enum {
    RT_JSON_DEPTH_MAX = 32
};

struct rt_json {
    struct rt_buffer *buffer; /* borrowed */
    unsigned int depth;
    uint32_t has_members; /* a bit for each open level */
    uint32_t is_object;
};

/* Appends to what is in the buffer. */
void rt_json_init(struct rt_json *json, struct rt_buffer *buffer);

/* More than RT_JSON_DEPTH_MAX open at once, or an end that does not match, is a programmer error.
 */
void rt_json_object_begin(struct rt_json *json, const char *name);
void rt_json_object_end(struct rt_json *json);
void rt_json_array_begin(struct rt_json *json, const char *name);
void rt_json_array_end(struct rt_json *json);

/* For text that people read (names, messages): bytes that are not UTF-8 become U+FFFD. NULL writes
 * null. */
void rt_json_string(struct rt_json *json, const char *name, const char *text);

/* For data that must come back unchanged (keys, values): a string when it is UTF-8, else
 * {"base64": "…"} in the standard alphabet with padding. */
void rt_json_bytes(struct rt_json *json, const char *name, struct rt_bytes bytes);

/* All 64 bits, as a number. */
void rt_json_u64(struct rt_json *json, const char *name, uint64_t value);
void rt_json_i64(struct rt_json *json, const char *name, int64_t value);
/* 15 significant digits; null when it is not finite. Expects the C locale. */
void rt_json_double(struct rt_json *json, const char *name, double value);
void rt_json_bool(struct rt_json *json, const char *name, bool value);
void rt_json_null(struct rt_json *json, const char *name);

/* Whether the bytes are well-formed UTF-8 (no overlong forms, no surrogates). */
bool rt_json_is_utf8(struct rt_bytes bytes);

#endif
