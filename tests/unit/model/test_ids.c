/*
 * Identities: order of versions, text form of ids, names.
 */
#include "runtime/model/ids.h"

#include "tests/support/check.h"

TestSuite(ids, .fini = test_alloc_expect_none);

Test(ids, versions_compare_field_by_field)
{
    static const struct model_version rising[] = {
        {0, 0, 0}, {0, 0, 1},          {0, 1, 0},
        {0, 1, 9}, {1, 0, 0},          {1, 0, 5},
        {2, 0, 0}, {UINT64_MAX, 0, 0}, {UINT64_MAX, UINT64_MAX, UINT64_MAX},
    };

    for (size_t i = 0; i < RT_ARRAY_SIZE(rising); i++)
        for (size_t j = 0; j < RT_ARRAY_SIZE(rising); j++) {
            int order = model_version_compare(&rising[i], &rising[j]);

            cr_assert_eq(order < 0, i < j);
            cr_assert_eq(order > 0, i > j);
        }
}

Test(ids, generation_stands_in_the_top_bits)
{
    cr_assert_eq(model_counter_first(0), 0);
    cr_assert_eq(model_counter_first(1), UINT64_C(1) << 48);
    cr_assert_eq(model_counter_first(UINT16_MAX), UINT64_C(0xffff) << 48);
}

Test(ids, are_written_in_lower_case_hexadecimal)
{
    struct model_id id = {.bytes = {0x00, 0x1f, 0xab, [15] = 0xff}};
    char text[MODEL_ID_TEXT_SIZE];

    model_id_format(&id, text);
    cr_assert_str_eq(text, "001fab000000000000000000000000ff");
}

Test(ids, none_is_all_zero)
{
    struct model_id id = {0};

    cr_assert(model_id_is_none(&id));
    id.bytes[15] = 1;
    cr_assert_not(model_id_is_none(&id));
}

Test(ids, names_at_the_limit_and_past_it)
{
    char name[MODEL_NAME_MAX + 1];

    memset(name, 'a', sizeof(name));
    cr_assert_eq(model_name_check("name", rt_bytes_of(name, 1), NULL), RT_OK);
    cr_assert_eq(model_name_check("name", rt_bytes_of(name, MODEL_NAME_MAX), NULL), RT_OK);
    cr_assert_eq(model_name_check("name", rt_bytes_of(name, MODEL_NAME_MAX + 1), NULL),
                 RT_INVALID_ARGUMENT);
    cr_assert_eq(model_name_check("name", (struct rt_bytes){0}, NULL), RT_INVALID_ARGUMENT);
}

Test(ids, names_have_few_characters)
{
    struct rt_error err;

    cr_assert_eq(model_name_check("instance", RT_BYTES_LITERAL("Az09._-"), NULL), RT_OK);
    for (unsigned int c = 0; c < 256; c++) {
        uint8_t byte = (uint8_t)c;
        bool valid = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                     (byte >= '0' && byte <= '9') || (byte != 0 && strchr("._-", byte));

        cr_assert_eq(model_name_check("instance", rt_bytes_of(&byte, 1), NULL) == RT_OK, valid,
                     "byte %u", c);
    }
    cr_assert_neq(model_name_check("instance", RT_BYTES_LITERAL("a b"), &err), RT_OK);
    cr_assert_not_null(strstr(err.message, "instance 'a b'"));
}
