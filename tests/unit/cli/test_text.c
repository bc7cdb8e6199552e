/*
 * Ids and versions that users type.
 */
#include "cli/text.h"

#include "tests/support/check.h"

TestSuite(text, .fini = test_alloc_expect_none);

Test(text, id_of_both_cases)
{
    struct model_id id;

    cr_assert_eq(cli_text_parse_id("000102030405060708090a0B0c0DfeFF", &id, NULL), RT_OK);
    cr_assert_eq(id.bytes[1], 1);
    cr_assert_eq(id.bytes[11], 0x0b);
    cr_assert_eq(id.bytes[15], 0xff);
}

Test(text, what_is_no_id)
{
    static const char *const texts[] = {"",
                                        "0",
                                        "000102030405060708090a0b0c0dfef",
                                        "000102030405060708090a0b0c0dfeff0",
                                        "000102030405060708090a0b0c0dfefg",
                                        "00000000000000000000000000000000"};

    for (size_t i = 0; i < RT_ARRAY_SIZE(texts); i++) {
        struct rt_error err = RT_ERROR_INIT;
        struct model_id id;

        cr_assert_eq(cli_text_parse_id(texts[i], &id, &err), RT_INVALID_ARGUMENT, "%s", texts[i]);
        cr_assert_not_null(strstr(err.message, "32 hexadecimal digits"));
    }
}

Test(text, version)
{
    struct model_version version;

    cr_assert_eq(cli_text_parse_version("18446744073709551615.0.7", &version, NULL), RT_OK);
    cr_assert_eq(version.epoch, UINT64_MAX);
    cr_assert_eq(version.incarnation, 0);
    cr_assert_eq(version.seq, 7);
}

Test(text, what_is_no_version)
{
    static const char *const texts[] = {
        "",      "1",      "1.2",    "1.2.",   "1.2.3.", ".1.2",    "1..2",
        "1,2,3", "-1.2.3", "1.+2.3", "1. 2.3", "1.2.3 ", "0x1.2.3", "18446744073709551616.2.3"};

    for (size_t i = 0; i < RT_ARRAY_SIZE(texts); i++) {
        struct rt_error err = RT_ERROR_INIT;
        struct model_version version;

        cr_assert_eq(cli_text_parse_version(texts[i], &version, &err), RT_INVALID_ARGUMENT, "%s",
                     texts[i]);
        cr_assert_not_null(strstr(err.message, "EPOCH.INCARNATION.SEQ"));
    }
}
