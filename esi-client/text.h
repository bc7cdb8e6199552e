/*
 * Bytes for people: escaped, on one line, cut.
 *
 * Pure, re-entrant; appending follows the buffer's failure rule.
 */
#ifndef ESI_TEXT_H
#define ESI_TEXT_H

#include "runtime/base/buffer.h"

/* One character of UTF-8 that a terminal shows in one place as it is, or one byte to be escaped. */
struct esi_text_unit {
    size_t size; /* bytes it takes of the input, ≥ 1 */
    bool printable;
};

/* `bytes` is not empty. Control, format and direction characters count as not printable. */
struct esi_text_unit esi_text_next(struct rt_bytes bytes);

/* Appends printable text as it is, and every other byte, and the backslash, as \t, \n, \r, \\ or
 * \xNN. Returns how many columns it appended. */
size_t esi_text_append(struct rt_buffer *buffer, struct rt_bytes bytes);

/* The same in double quotes (escaped too), at most `max` bytes of input and then "…" outside the
 * quotes; never cuts a character. */
void esi_text_append_quoted(struct rt_buffer *buffer, struct rt_bytes bytes, size_t max);

/* For XML, in attributes and between tags: printable text with what is markup as an entity, every
 * other byte as \xNN. A backslash stays one, so that text that is escaped already may be given. */
void esi_text_append_xml(struct rt_buffer *buffer, struct rt_bytes bytes);

#endif
