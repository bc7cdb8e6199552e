/*
 * Ids and versions from text: see text.h. Pure.
 */
#include "cli/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

static unsigned digit(char c)
{
    return isdigit((unsigned char)c) ? (unsigned)(c - '0')
                                     : (unsigned)(tolower((unsigned char)c) - 'a') + 10;
}

enum rt_code cli_text_parse_id(const char *text, struct model_id *ret_id, struct rt_error *err)
{
    struct model_id id;
    size_t size = strspn(text, "0123456789abcdefABCDEF");

    if (size != MODEL_ID_TEXT_SIZE - 1 || text[size] != '\0')
        return rt_fail(err, RT_INVALID_ARGUMENT, "'%s' is no id: valid are 32 hexadecimal digits",
                       text);
    for (size_t i = 0; i < sizeof(id.bytes); i++)
        id.bytes[i] = (uint8_t)(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
    if (model_id_is_none(&id))
        return rt_fail(err, RT_INVALID_ARGUMENT,
                       "'%s' is no id: valid are 32 hexadecimal digits that are not all 0", text);
    *ret_id = id;
    return RT_OK;
}

/* Only digits, at most 64 bits; goes behind them. */
static bool take_number(const char **at, uint64_t *ret_number)
{
    char *end;

    if (!isdigit((unsigned char)**at))
        return false;
    errno = 0;
    *ret_number = strtoull(*at, &end, 10);
    *at = end;
    return errno == 0;
}

static bool take_dot(const char **at)
{
    return *(*at)++ == '.';
}

enum rt_code cli_text_parse_version(const char *text, struct model_version *ret_version,
                                    struct rt_error *err)
{
    const char *at = text;
    struct model_version version;

    if (!take_number(&at, &version.epoch) || !take_dot(&at) ||
        !take_number(&at, &version.incarnation) || !take_dot(&at) ||
        !take_number(&at, &version.seq) || *at != '\0')
        return rt_fail(err, RT_INVALID_ARGUMENT,
                       "'%s' is no version: valid are three numbers, EPOCH.INCARNATION.SEQ", text);
    *ret_version = version;
    return RT_OK;
}
