/*
 * JSON writer: exact text, escapes, UTF-8 or base64, and what jansson reads back.
 */
#include "runtime/base/json.h"

#include <jansson.h>
#include <math.h>
#include <signal.h>

#include "tests/support/check.h"

static struct rt_buffer buffer;
static struct rt_json json;

static void set_up(void)
{
    rt_json_init(&json, &buffer);
}

static void tear_down(void)
{
    rt_buffer_deinit(&buffer);
    test_alloc_expect_none();
}

TestSuite(json, .init = set_up, .fini = tear_down);

static void expect(const char *text)
{
    cr_assert_eq(rt_buffer_check(&buffer, NULL), RT_OK);
    cr_assert_str_eq(rt_buffer_string(&buffer), text);
}

Test(json, every_kind_of_member)
{
    rt_json_object_begin(&json, NULL);
    rt_json_string(&json, "s", "text");
    rt_json_string(&json, "absent", NULL);
    rt_json_u64(&json, "u", UINT64_MAX);
    rt_json_i64(&json, "i", INT64_MIN);
    rt_json_double(&json, "d", 0.25);
    rt_json_bool(&json, "t", true);
    rt_json_bool(&json, "f", false);
    rt_json_null(&json, "n");
    rt_json_object_end(&json);
    expect("{\"s\":\"text\",\"absent\":null,\"u\":18446744073709551615,"
           "\"i\":-9223372036854775808,\"d\":0.25,\"t\":true,\"f\":false,\"n\":null}");
}

Test(json, nests)
{
    rt_json_array_begin(&json, NULL);
    rt_json_array_begin(&json, NULL);
    rt_json_array_end(&json);
    rt_json_object_begin(&json, NULL);
    rt_json_object_begin(&json, "o");
    rt_json_object_end(&json);
    rt_json_array_begin(&json, "a");
    rt_json_u64(&json, NULL, 1);
    rt_json_u64(&json, NULL, 2);
    rt_json_array_end(&json);
    rt_json_u64(&json, "u", 3);
    rt_json_object_end(&json);
    rt_json_u64(&json, NULL, 4);
    rt_json_array_end(&json);
    expect("[[],{\"o\":{},\"a\":[1,2],\"u\":3},4]");
}

Test(json, appends_to_the_buffer)
{
    rt_buffer_append_string(&buffer, "before ");
    rt_json_bool(&json, NULL, true);
    expect("before true");
}

Test(json, escapes)
{
    rt_json_string(&json, NULL, "a\"b\\c\b\f\n\r\t\x01\x1f\x7f/é€");
    expect("\"a\\\"b\\\\c\\b\\f\\n\\r\\t\\u0001\\u001f\\u007f/é€\"");
}

Test(json, names_are_escaped)
{
    rt_json_object_begin(&json, NULL);
    rt_json_null(&json, "a\"b");
    rt_json_object_end(&json);
    expect("{\"a\\\"b\":null}");
}

Test(json, text_that_is_not_utf8_is_replaced)
{
    rt_json_string(&json, NULL,
                   "a\xff"
                   "b\xc3");
    expect("\"a\xef\xbf\xbd"
           "b\xef\xbf\xbd\"");
}

Test(json, data_is_a_string_or_base64)
{
    rt_json_array_begin(&json, NULL);
    rt_json_bytes(&json, NULL, (struct rt_bytes){0});
    rt_json_bytes(&json, NULL, RT_BYTES_LITERAL("a\0b"));
    rt_json_bytes(&json, NULL, RT_BYTES_LITERAL("\xff"));
    rt_json_bytes(&json, NULL, RT_BYTES_LITERAL("\xff\xfe"));
    rt_json_bytes(&json, NULL, RT_BYTES_LITERAL("\xff\xfe\xfd"));
    rt_json_bytes(&json, NULL, RT_BYTES_LITERAL("\x00\x10\x83\xff"));
    rt_json_array_end(&json);
    expect("[\"\",\"a\\u0000b\",{\"base64\":\"/w==\"},{\"base64\":\"//4=\"},{\"base64\":\"//79\"},"
           "{\"base64\":\"ABCD/w==\"}]");
}

Test(json, numbers_that_are_not_finite_are_null)
{
    rt_json_array_begin(&json, NULL);
    rt_json_double(&json, NULL, NAN);
    rt_json_double(&json, NULL, INFINITY);
    rt_json_double(&json, NULL, -INFINITY);
    rt_json_double(&json, NULL, 1e300);
    rt_json_array_end(&json);
    expect("[null,null,null,1e+300]");
}

Test(json, utf8_at_the_borders)
{
    static const char *const good[] = {"",
                                       "a",
                                       "\xc2\x80",
                                       "\xdf\xbf",
                                       "\xe0\xa0\x80",
                                       "\xed\x9f\xbf",
                                       "\xee\x80\x80",
                                       "\xef\xbf\xbf",
                                       "\xf0\x90\x80\x80",
                                       "\xf4\x8f\xbf\xbf"};
    static const char *const bad[] = {"\x80",
                                      "\xbf",
                                      "\xc0\x80",
                                      "\xc1\xbf",
                                      "\xe0\x9f\xbf",
                                      "\xed\xa0\x80",
                                      "\xed\xbf\xbf",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xff",
                                      "\xc2",
                                      "\xe1\x80",
                                      "\xf1\x80\x80",
                                      "\xe1\x80z",
                                      "\xf1\x80\x80z",
                                      "\xc2z",
                                      "\xe1zz"};

    for (size_t i = 0; i < RT_ARRAY_SIZE(good); i++)
        cr_assert(rt_json_is_utf8(rt_bytes_of_string(good[i])), "good %zu", i);
    for (size_t i = 0; i < RT_ARRAY_SIZE(bad); i++)
        cr_assert_not(rt_json_is_utf8(rt_bytes_of_string(bad[i])), "bad %zu", i);
}

Test(json, every_pair_of_bytes_reads_back)
{
    for (unsigned int pair = 0; pair < 0x10000; pair++) {
        uint8_t bytes[] = {(uint8_t)(pair >> 8), (uint8_t)pair};
        struct rt_bytes data = rt_bytes_of(bytes, 2);
        json_error_t problem;
        json_t *value;

        rt_buffer_reset(&buffer);
        rt_json_init(&json, &buffer);
        rt_json_bytes(&json, NULL, data);
        value = json_loadb((const char *)buffer.data, buffer.size, JSON_DECODE_ANY | JSON_ALLOW_NUL,
                           &problem);
        cr_assert_not_null(value, "%04x: %s", pair, problem.text);
        cr_assert_eq(json_is_string(value), rt_json_is_utf8(data));
        if (json_is_string(value))
            cr_assert(rt_bytes_equal(
                data, rt_bytes_of(json_string_value(value), json_string_length(value))));
        json_decref(value);
    }
}

Test(json, depth_limit)
{
    for (int i = 0; i < RT_JSON_DEPTH_MAX; i++)
        rt_json_array_begin(&json, NULL);
    rt_json_u64(&json, NULL, 1);
    for (int i = 0; i < RT_JSON_DEPTH_MAX; i++)
        rt_json_array_end(&json);
    expect("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]");
}

Test(json_misuse, deeper_than_the_limit, .signal = SIGABRT)
{
    set_up();
    for (int i = 0; i <= RT_JSON_DEPTH_MAX; i++)
        rt_json_array_begin(&json, NULL);
}

Test(json_misuse, member_without_name, .signal = SIGABRT)
{
    set_up();
    rt_json_object_begin(&json, NULL);
    rt_json_null(&json, NULL);
}

Test(json_misuse, name_in_an_array, .signal = SIGABRT)
{
    set_up();
    rt_json_array_begin(&json, NULL);
    rt_json_null(&json, "name");
}

Test(json_misuse, wrong_end, .signal = SIGABRT)
{
    set_up();
    rt_json_array_begin(&json, NULL);
    rt_json_object_end(&json);
}

Test(json_misuse, end_too_many, .signal = SIGABRT)
{
    set_up();
    rt_json_object_end(&json);
}

Test(json, failure_of_the_buffer_is_kept)
{
    buffer.limit = 8;
    rt_json_string(&json, NULL, "longer than that");
    cr_assert_eq(rt_buffer_check(&buffer, NULL), RT_RESOURCE_EXHAUSTED);
}
