/*
 * Bytes as people read and type them: printable UTF-8 as it is, the backslash as \\, every other
 * byte as \xNN with two hexadecimal digits. What is written here is read here again, so a key that
 * was shown can be typed. Pure, re-entrant.
 */
#ifndef CLI_ESCAPE_H
#define CLI_ESCAPE_H

#include "runtime/base/buffer.h"
#include "runtime/base/bytes.h"
#include "runtime/base/error.h"

void cli_escape_append(struct rt_bytes bytes, struct rt_buffer *buffer);

/* The same, but a backslash stays one: for text that nobody types again, such as messages. */
void cli_escape_append_message(struct rt_bytes text, struct rt_buffer *buffer);

/* Appends the bytes that an escaped text stands for. INVALID_ARGUMENT: a backslash that begins
 * neither \\ nor \xNN, named by its position. The buffer's failure rule applies. */
RT_MUST_USE enum rt_code cli_escape_parse(struct rt_bytes text, struct rt_buffer *buffer,
                                          struct rt_error *err);

/* What a word of the command line stands for: the bytes that it escapes, or the word as it is. */
RT_MUST_USE enum rt_code cli_escape_take_word(const char *word, bool is_escaped,
                                              struct rt_buffer *buffer, struct rt_error *err);

#endif
