/*
 * Escaping for people: see text.h. Invariant: what is appended is valid UTF-8 and moves no cursor
 * and changes no colour of a terminal. Pure.
 */
#include "esi-client/text.h"

#include "runtime/base/json.h"

/* Of a sequence that is well-formed UTF-8. */
static uint32_t decode(const uint8_t *data, size_t size)
{
    uint32_t code = size == 1 ? data[0] : data[0] & (0x7fu >> size);

    for (size_t i = 1; i < size; i++)
        code = code << 6 | (data[i] & 0x3f);
    return code;
}

static bool is_printable(uint32_t code)
{
    if (code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0xad)
        return false;
    /* Zero width, line and paragraph separators, direction marks, byte order mark. */
    return !(code >= 0x200b && code <= 0x200f) && !(code >= 0x2028 && code <= 0x202e) &&
           !(code >= 0x2060 && code <= 0x206f) && code != 0x061c && code != 0xfeff;
}

static size_t sequence_size(uint8_t first)
{
    if (first < 0xc2)
        return 1;
    if (first < 0xe0)
        return 2;
    return first < 0xf0 ? 3 : 4;
}

struct esi_text_unit esi_text_next(struct rt_bytes bytes)
{
    size_t size = sequence_size(bytes.data[0]);

    if (size > bytes.size || !rt_json_is_utf8(rt_bytes_of(bytes.data, size)))
        return (struct esi_text_unit){1, false};
    if (!is_printable(decode(bytes.data, size)))
        return (struct esi_text_unit){1, false};
    return (struct esi_text_unit){size, true};
}

static size_t append_escape(struct rt_buffer *buffer, uint8_t byte)
{
    static const char short_forms[256] = {
        ['\t'] = 't', ['\n'] = 'n', ['\r'] = 'r', ['\\'] = '\\', ['"'] = '"'};

    if (short_forms[byte]) {
        rt_buffer_append_byte(buffer, '\\');
        rt_buffer_append_byte(buffer, (uint8_t)short_forms[byte]);
        return 2;
    }
    rt_buffer_printf(buffer, "\\x%02x", byte);
    return 4;
}

static size_t append_unit(struct rt_buffer *buffer, struct rt_bytes *rest, bool in_quotes)
{
    struct esi_text_unit unit = esi_text_next(*rest);
    uint8_t first = rest->data[0];
    size_t columns = 1;

    if (!unit.printable || first == '\\' || (in_quotes && first == '"'))
        columns = append_escape(buffer, first);
    else
        rt_buffer_append(buffer, rt_bytes_of(rest->data, unit.size));
    *rest = rt_bytes_of(rest->data + unit.size, rest->size - unit.size);
    return columns;
}

size_t esi_text_append(struct rt_buffer *buffer, struct rt_bytes bytes)
{
    size_t columns = 0;

    while (bytes.size > 0)
        columns += append_unit(buffer, &bytes, false);
    return columns;
}

void esi_text_append_quoted(struct rt_buffer *buffer, struct rt_bytes bytes, size_t max)
{
    size_t size;

    rt_buffer_append_byte(buffer, '"');
    while (bytes.size > 0 && (size = esi_text_next(bytes).size) <= max) {
        (void)append_unit(buffer, &bytes, true);
        max -= size;
    }
    rt_buffer_append_byte(buffer, '"');
    if (bytes.size > 0)
        rt_buffer_append_string(buffer, "…");
}

static const char *entity_of(uint8_t byte)
{
    switch (byte) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&apos;";
    default:
        return NULL;
    }
}

/* U+FFFE and U+FFFF are UTF-8, and no characters of XML. */
static bool is_no_character(struct rt_bytes unit)
{
    return unit.size == 3 && unit.data[0] == 0xef && unit.data[1] == 0xbf && unit.data[2] >= 0xbe;
}

void esi_text_append_xml(struct rt_buffer *buffer, struct rt_bytes bytes)
{
    while (bytes.size > 0) {
        struct esi_text_unit unit = esi_text_next(bytes);
        struct rt_bytes taken = rt_bytes_of(bytes.data, unit.size);
        const char *entity = unit.printable ? entity_of(bytes.data[0]) : NULL;

        if (entity)
            rt_buffer_append_string(buffer, entity);
        else if (unit.printable && !is_no_character(taken))
            rt_buffer_append(buffer, taken);
        else
            for (size_t i = 0; i < unit.size; i++)
                rt_buffer_printf(buffer, "\\x%02x", bytes.data[i]);
        bytes = rt_bytes_of(bytes.data + unit.size, bytes.size - unit.size);
    }
}
