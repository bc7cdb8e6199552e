/*
 * Names of files: see file_name.h. Invariant: the key can be read back from its name. Pure.
 */
#include "runtime/store/file_name.h"

#include <stdbool.h>

#include "runtime/base/compiler.h"

enum {
    ESCAPED_SIZE = 3,
    CUT_PART_MAX = STORE_FILE_PART_MAX - 1, /* before its '%' */
};

static bool is_plain(uint8_t byte, bool is_first)
{
    return byte >= 0x20 && byte != 0x7f && byte != '/' && byte != '%' && !(is_first && byte == '.');
}

static size_t size_of(uint8_t byte, bool is_first)
{
    return is_plain(byte, is_first) ? 1 : ESCAPED_SIZE;
}

static size_t append(char *name, uint8_t byte, bool is_first)
{
    static const char digits[] = "0123456789ABCDEF";

    if (is_plain(byte, is_first)) {
        name[0] = (char)byte;
        return 1;
    }
    name[0] = '%';
    name[1] = digits[byte >> 4];
    name[2] = digits[byte & 15];
    return ESCAPED_SIZE;
}

size_t store_file_name(struct rt_bytes key, char ret_name[STORE_FILE_NAME_MAX + 1])
{
    size_t total = 0;
    size_t part = 0; /* bytes of the present one */
    size_t size = 0;

    rt_assert(key.size > 0 && key.size <= STORE_KEY_MAX);
    for (size_t i = 0; i < key.size; i++)
        total += size_of(key.data[i], i == 0);
    for (size_t i = 0; i < key.size; i++) {
        size_t added;

        if (total > STORE_FILE_PART_MAX && part + size_of(key.data[i], false) > CUT_PART_MAX) {
            ret_name[size++] = '%';
            ret_name[size++] = '/';
            part = 0;
        }
        added = append(ret_name + size, key.data[i], part == 0);
        part += added;
        size += added;
    }
    rt_assert(size <= STORE_FILE_NAME_MAX);
    ret_name[size] = 0;
    return size;
}
