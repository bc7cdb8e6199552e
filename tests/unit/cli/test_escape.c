/*
 * Escaping: what prints and what does not, and that it can be typed again.
 */
#include "cli/escape.h"

#include "tests/support/check.h"

TestSuite(escape, .fini = test_alloc_expect_none);

/* Each is shown as that, and that is read as it again. */
Test(escape, shows_and_reads)
{
    static const struct {
        struct rt_bytes text;
        const char *shown;
    } rows[] = {
        {RT_BYTES_LITERAL(""), ""},
        {RT_BYTES_LITERAL("plain ~"), "plain ~"},
        {RT_BYTES_LITERAL("a\\b\\x00"), "a\\\\b\\\\x00"},
        {RT_BYTES_LITERAL("\xe2\x80\xae\xef\xbb\xbf"), "\\xe2\\x80\\xae\\xef\\xbb\\xbf"},
        {RT_BYTES_LITERAL("a\0b\x1f\x7f"), "a\\x00b\\x1f\\x7f"},
        {RT_BYTES_LITERAL("ñ€😀"), "ñ€😀"},
        {RT_BYTES_LITERAL("\xc3"), "\\xc3"},
        {RT_BYTES_LITERAL("\xe2\x82"), "\\xe2\\x82"},
        {RT_BYTES_LITERAL("\xc3(\xff"), "\\xc3(\\xff"},
        {RT_BYTES_LITERAL("\xc0\xaf"), "\\xc0\\xaf"},
        {RT_BYTES_LITERAL("\xc2\x9f\xc2\xa0"), "\\xc2\\x9f\xc2\xa0"},
        {RT_BYTES_LITERAL("\xe0\x9f\xbf\xe0\xa0\x80"), "\\xe0\\x9f\\xbf\xe0\xa0\x80"},
        {RT_BYTES_LITERAL("\xed\xa0\x80\xed\x9f\xbf"), "\\xed\\xa0\\x80\xed\x9f\xbf"},
        {RT_BYTES_LITERAL("\xf0\x8f\xbf\xbf\xf0\x90\x80\x80"),
         "\\xf0\\x8f\\xbf\\xbf\xf0\x90\x80\x80"},
        {RT_BYTES_LITERAL("\xf4\x90\x80\x80\xf4\x8f\xbf\xbf"),
         "\\xf4\\x90\\x80\\x80\xf4\x8f\xbf\xbf"},
        {RT_BYTES_LITERAL("\xf5\x80\x80\x80"), "\\xf5\\x80\\x80\\x80"},
    };

    for (size_t i = 0; i < RT_ARRAY_SIZE(rows); i++) {
        struct rt_buffer shown = {0};
        struct rt_buffer read = {0};

        cli_escape_append(rows[i].text, &shown);
        cr_assert_str_eq(rt_buffer_string(&shown), rows[i].shown, "row %zu", i);
        cr_assert_eq(cli_escape_parse(rt_buffer_bytes(&shown), &read, NULL), RT_OK);
        cr_assert(rt_bytes_equal(rt_buffer_bytes(&read), rows[i].text), "row %zu", i);
        rt_buffer_deinit(&shown);
        rt_buffer_deinit(&read);
    }
}

Test(escape, message_keeps_its_backslashes)
{
    struct rt_buffer buffer = {0};

    cli_escape_append_message(RT_BYTES_LITERAL("a\\b\n"), &buffer);
    cr_assert_str_eq(rt_buffer_string(&buffer), "a\\b\\x0a");
    rt_buffer_deinit(&buffer);
}

Test(escape, reads_digits_of_both_cases)
{
    struct rt_buffer buffer = {0};

    cr_assert_eq(cli_escape_parse(RT_BYTES_LITERAL("\\xfF\\xA0\\x09"), &buffer, NULL), RT_OK);
    cr_assert(rt_bytes_equal(rt_buffer_bytes(&buffer), RT_BYTES_LITERAL("\xff\xa0\x09")));
    rt_buffer_deinit(&buffer);
}

Test(escape, names_what_is_no_escape)
{
    static const char *const texts[] = {"ab\\",    "ab\\n",   "ab\\x",   "ab\\x1",
                                        "ab\\x1g", "ab\\xg1", "ab\\X11", "ab\\101"};

    for (size_t i = 0; i < RT_ARRAY_SIZE(texts); i++) {
        struct rt_buffer buffer = {0};
        struct rt_error err = RT_ERROR_INIT;

        cr_assert_eq(cli_escape_parse(rt_bytes_of_string(texts[i]), &buffer, &err),
                     RT_INVALID_ARGUMENT, "%s", texts[i]);
        cr_assert_not_null(strstr(err.message, "at byte 3 "), "%s", err.message);
        rt_buffer_deinit(&buffer);
    }
}
