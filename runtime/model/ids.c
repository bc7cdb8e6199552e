/*
 * Identities: see ids.h. Pure.
 */
#include "runtime/model/ids.h"

static int compare_u64(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

int model_version_compare(const struct model_version *a, const struct model_version *b)
{
    int order = compare_u64(a->epoch, b->epoch);

    if (order == 0)
        order = compare_u64(a->incarnation, b->incarnation);
    if (order == 0)
        order = compare_u64(a->seq, b->seq);
    return order;
}

void model_id_format(const struct model_id *id, char ret_text[MODEL_ID_TEXT_SIZE])
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < sizeof(id->bytes); i++) {
        ret_text[2 * i] = digits[id->bytes[i] >> 4];
        ret_text[2 * i + 1] = digits[id->bytes[i] & 15];
    }
    ret_text[MODEL_ID_TEXT_SIZE - 1] = '\0';
}

static bool is_name_byte(uint8_t c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

enum rt_code model_name_check(const char *what, struct rt_bytes name, struct rt_error *err)
{
    bool valid = name.size >= 1 && name.size <= MODEL_NAME_MAX;

    for (size_t i = 0; valid && i < name.size; i++)
        valid = is_name_byte(name.data[i]);
    if (!valid)
        return rt_fail(
            err, RT_INVALID_ARGUMENT, "%s '%.*s' must be 1 to %d characters of A-Z a-z 0-9 . _ -",
            what, (int)(name.size > 64 ? 64 : name.size), (const char *)name.data, MODEL_NAME_MAX);
    return RT_OK;
}
