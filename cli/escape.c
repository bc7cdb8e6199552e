/*
 * Escaping: see escape.h. Invariant: what is appended moves no cursor and changes no colour of a
 * terminal. Pure.
 */
#include "cli/escape.h"

#include "esi-client/text.h"

enum {
    HEX_ESCAPE_SIZE = 4 /* \xNN */
};

static void append(struct rt_bytes bytes, bool doubles_backslash, struct rt_buffer *buffer)
{
    while (bytes.size > 0) {
        struct esi_text_unit unit = esi_text_next(bytes);

        if (!unit.printable)
            rt_buffer_printf(buffer, "\\x%02x", bytes.data[0]);
        else if (bytes.data[0] == '\\' && doubles_backslash)
            rt_buffer_append_string(buffer, "\\\\");
        else
            rt_buffer_append(buffer, rt_bytes_of(bytes.data, unit.size));
        bytes = rt_bytes_of(bytes.data + unit.size, bytes.size - unit.size);
    }
}

void cli_escape_append(struct rt_bytes bytes, struct rt_buffer *buffer)
{
    append(bytes, true, buffer);
}

void cli_escape_append_message(struct rt_bytes text, struct rt_buffer *buffer)
{
    append(text, false, buffer);
}

/* 16 when it is none. */
static unsigned digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 16;
}

/* `at` is at a backslash. How many bytes the escape takes; 0 when it is none. */
static size_t take_escape(const uint8_t *at, size_t size, uint8_t *ret_byte)
{
    if (size >= 2 && at[1] == '\\') {
        *ret_byte = '\\';
        return 2;
    }
    if (size < HEX_ESCAPE_SIZE || at[1] != 'x' || digit(at[2]) > 15 || digit(at[3]) > 15)
        return 0;
    *ret_byte = (uint8_t)(digit(at[2]) << 4 | digit(at[3]));
    return HEX_ESCAPE_SIZE;
}

enum rt_code cli_escape_parse(struct rt_bytes text, struct rt_buffer *buffer, struct rt_error *err)
{
    size_t at = 0;

    while (at < text.size) {
        uint8_t byte = text.data[at];
        size_t size = byte == '\\' ? take_escape(text.data + at, text.size - at, &byte) : 1;

        if (size == 0)
            return rt_fail(err, RT_INVALID_ARGUMENT,
                           "the backslash at byte %zu begins neither \\\\ nor \\xNN", at + 1);
        rt_buffer_append_byte(buffer, byte);
        at += size;
    }
    return RT_OK;
}

enum rt_code cli_escape_take_word(const char *word, bool is_escaped, struct rt_buffer *buffer,
                                  struct rt_error *err)
{
    if (is_escaped)
        return cli_escape_parse(rt_bytes_of_string(word), buffer, err);
    rt_buffer_append_string(buffer, word);
    return RT_OK;
}
