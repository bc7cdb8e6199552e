/*
 * Escaping for people: what is shown as it is, what is not, and cuts.
 */
#include "esi-client/text.h"

#include "tests/support/check.h"

TestSuite(text, .fini = test_alloc_expect_none);

static void expect(struct rt_bytes input, const char *expected, size_t columns)
{
    struct rt_buffer buffer = {0};

    cr_assert_eq(esi_text_append(&buffer, input), columns, "columns of %s", expected);
    cr_assert_str_eq(rt_buffer_string(&buffer), expected);
    rt_buffer_deinit(&buffer);
}

static void expect_quoted(struct rt_bytes input, size_t max, const char *expected)
{
    struct rt_buffer buffer = {0};

    esi_text_append_quoted(&buffer, input, max);
    cr_assert_str_eq(rt_buffer_string(&buffer), expected);
    rt_buffer_deinit(&buffer);
}

#define IN RT_BYTES_LITERAL

Test(text, printable_text_stays)
{
    expect(IN(""), "", 0);
    expect(IN("GET a:b \"c\""), "GET a:b \"c\"", 11);
    expect(IN("ca\xc3\xb1"
              "a \xe2\x82\xac \xf0\x9f\x8d\x95"),
           "ca\xc3\xb1"
           "a \xe2\x82\xac \xf0\x9f\x8d\x95",
           8);
}

Test(text, controls_are_escaped)
{
    expect(IN("a\tb\nc\rd\\e"), "a\\tb\\nc\\rd\\\\e", 13);
    expect(IN("\0\x1b[31m\x7f"), "\\x00\\x1b[31m\\x7f", 16);
    /* C1 controls, soft hyphen, direction override, zero width, byte order mark. */
    expect(IN("\xc2\x9b"), "\\xc2\\x9b", 8);
    expect(IN("\xc2\xad"), "\\xc2\\xad", 8);
    expect(IN("\xe2\x80\xae"), "\\xe2\\x80\\xae", 12);
    expect(IN("\xe2\x80\x8b"), "\\xe2\\x80\\x8b", 12);
    expect(IN("\xe2\x81\xa6"), "\\xe2\\x81\\xa6", 12);
    expect(IN("\xd8\x9c"), "\\xd8\\x9c", 8);
    expect(IN("\xef\xbb\xbf"), "\\xef\\xbb\\xbf", 12);
}

Test(text, malformed_utf8_is_escaped_byte_by_byte)
{
    expect(IN("\xff\xfe"), "\\xff\\xfe", 8);
    expect(IN("\xc3"), "\\xc3", 4);
    expect(IN("\xc3("), "\\xc3(", 5);
    expect(IN("\xc0\xaf"), "\\xc0\\xaf", 8);
    expect(IN("\xed\xa0\x80"), "\\xed\\xa0\\x80", 12);
    expect(IN("\xf5\x80\x80\x80"), "\\xf5\\x80\\x80\\x80", 16);
    expect(IN("\xe2\x82"), "\\xe2\\x82", 8);
}

Test(text, quotes_are_escaped_inside_quotes)
{
    expect_quoted(IN(""), 10, "\"\"");
    expect_quoted(IN("say \"hi\""), 10, "\"say \\\"hi\\\"\"");
}

Test(text, quoted_at_the_limit_and_past_it)
{
    expect_quoted(IN("12345"), 5, "\"12345\"");
    expect_quoted(IN("123456"), 5, "\"12345\"…");
    /* A character that would be cut is left out. */
    expect_quoted(IN("1234\xc3\xb1"), 5, "\"1234\"…");
    expect_quoted(IN("1234\xc3\xb1"), 6, "\"1234\xc3\xb1\"");
    expect_quoted(IN("x"), 0, "\"\"…");
}

Test(text, for_xml)
{
    struct rt_buffer buffer = {0};

    esi_text_append_xml(&buffer,
                        RT_BYTES_LITERAL("a<b>&\"'\\ \t\xff\xc3\xb1\xef\xbf\xbf\xef\xbf\xbd"));
    cr_assert_str_eq(rt_buffer_string(&buffer),
                     "a&lt;b&gt;&amp;&quot;&apos;\\ \\x09\\xff\xc3\xb1\\xef\\xbf\\xbf\xef\xbf\xbd");
    rt_buffer_deinit(&buffer);
}
