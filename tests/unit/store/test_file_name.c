/*
 * Names of files that belong to keys.
 */
#include "runtime/store/file_name.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/rng.h"
#include "tests/support/property.h"

static const char *name_of(struct rt_bytes key)
{
    static char name[STORE_FILE_NAME_MAX + 1];

    cr_assert_eq(store_file_name(key, name), strlen(name));
    return name;
}

static const char *name_of_text(const char *key)
{
    return name_of(rt_bytes_of_string(key));
}

Test(file_name, what_is_plain_stays)
{
    cr_assert_str_eq(name_of_text("sony:consola:ps3"), "sony:consola:ps3");
    cr_assert_str_eq(name_of_text("a.b..c"), "a.b..c");
    cr_assert_str_eq(name_of_text("ca\xc3\xb1"
                                  "a"),
                     "ca\xc3\xb1"
                     "a");
    cr_assert_str_eq(name_of_text("~ $x"), "~ $x");
}

Test(file_name, what_is_not_is_escaped)
{
    cr_assert_str_eq(name_of_text("."), "%2E");
    cr_assert_str_eq(name_of_text(".."), "%2E.");
    cr_assert_str_eq(name_of_text(".hidden"), "%2Ehidden");
    cr_assert_str_eq(name_of_text("../../etc/passwd"), "%2E.%2F..%2Fetc%2Fpasswd");
    cr_assert_str_eq(name_of_text("/"), "%2F");
    cr_assert_str_eq(name_of_text("100%"), "100%25");
    cr_assert_str_eq(name_of_text("%2F"), "%252F");
    cr_assert_str_eq(name_of_text("a\n\x7f\x1f"), "a%0A%7F%1F");
    cr_assert_str_eq(name_of(rt_bytes_of("a\0b", 3)), "a%00b");
}

/* At the longest part, and one past it. */
Test(file_name, long_names_are_cut_into_directories)
{
    uint8_t key[STORE_KEY_MAX];
    const char *name;

    memset(key, 'x', sizeof(key));
    name = name_of(rt_bytes_of(key, STORE_FILE_PART_MAX));
    cr_assert_eq(strlen(name), STORE_FILE_PART_MAX);
    cr_assert_null(strchr(name, '/'));
    key[254] = '.';
    name = name_of(rt_bytes_of(key, STORE_FILE_PART_MAX + 1));
    cr_assert_str_eq(name + 253, "x%/%2Ex", "a part does not begin with a dot");
    memset(key, '/', sizeof(key));
    name = name_of(rt_bytes_of(key, 85));
    cr_assert_eq(strlen(name), STORE_FILE_PART_MAX);
    name = name_of(rt_bytes_of(key, 86));
    cr_assert_str_eq(name + (size_t)84 * 3, "%/%2F%2F");
    cr_assert_leq(strlen(name_of(rt_bytes_of(key, STORE_KEY_MAX))), STORE_FILE_NAME_MAX);
}

static bool is_part(const char *part, size_t size)
{
    return size > 0 && size <= STORE_FILE_PART_MAX && part[0] != '.';
}

static int digit(char c)
{
    return c >= 'A' ? c - 'A' + 10 : c - '0';
}

/* Reads the key back; false when that is no name. */
static bool read_back(const char *name, uint8_t *ret_key, size_t *ret_size)
{
    const char *part = name;
    size_t size = 0;

    for (const char *c = name; *c; c++) {
        if (*c == '%' && c[1] == '/') {
            if (!is_part(part, (size_t)(c + 1 - part)))
                return false;
            part = ++c + 1;
        } else if (*c == '%') {
            if (!isxdigit((unsigned char)c[1]) || !isxdigit((unsigned char)c[2]))
                return false;
            ret_key[size++] = (uint8_t)(digit(c[1]) << 4 | digit(c[2]));
            c += 2;
        } else if ((unsigned char)*c < 0x20 || *c == 0x7f || *c == '/') {
            return false;
        } else {
            ret_key[size++] = (uint8_t)*c;
        }
    }
    *ret_size = size;
    return is_part(part, strlen(part));
}

/* A key can be read back from its name, so no two have the same. */
static bool name_can_be_read_back(const uint64_t *steps, size_t n_steps)
{
    static const uint8_t special[] = {0, '.', '/', '%', '2', 'F', 0x7f, 0x80, 0xff, '\n'};
    uint8_t key[STORE_KEY_MAX];
    uint8_t back[STORE_FILE_NAME_MAX];
    size_t size = n_steps < STORE_KEY_MAX ? n_steps : STORE_KEY_MAX;
    size_t back_size = 0;

    for (size_t i = 0; i < size; i++)
        key[i] = steps[i] % 3 == 0 ? (uint8_t)(steps[i] >> 8)
                                   : special[(steps[i] >> 8) % sizeof(special)];
    return read_back(name_of(rt_bytes_of(key, size)), back, &back_size) &&
           rt_bytes_equal(rt_bytes_of(back, back_size), rt_bytes_of(key, size));
}

Test(file_name, no_two_keys_have_the_same)
{
    const char *failing = test_property_fails(name_can_be_read_back, 20, 3000);

    cr_assert_null(failing, "%s", failing);
}
