/*
 * Tables: alignment, characters that do not print, UTF-8 widths.
 */
#include "cli/table.h"

#include "tests/support/check.h"

TestSuite(table, .fini = test_alloc_expect_none);

static const struct cli_table_column columns[] = {
    {.title = "NAME"},
    {.title = "N", .is_number = true},
    {.title = "HOLDER"},
};

Test(table, titles_only)
{
    struct cli_table table;
    struct rt_buffer buffer = {0};

    cli_table_init(&table, columns, RT_ARRAY_SIZE(columns));
    cli_table_append(&table, &buffer);
    cr_assert_str_eq(rt_buffer_string(&buffer), "NAME  N  HOLDER\n");
    rt_buffer_deinit(&buffer);
    cli_table_deinit(&table);
    cli_table_deinit(&table);
}

Test(table, aligns_text_left_and_numbers_right)
{
    struct cli_table table;
    struct rt_buffer buffer = {0};

    cli_table_init(&table, columns, RT_ARRAY_SIZE(columns));
    cli_table_add_string(&table, "a");
    cli_table_add_number(&table, UINT64_MAX);
    cli_table_add_string(&table, "");
    cli_table_add_string(&table, "caña-x");
    cli_table_add_number(&table, 7);
    cli_table_add_string(&table, "me");
    cli_table_append(&table, &buffer);
    cr_assert_str_eq(rt_buffer_string(&buffer), "NAME                       N  HOLDER\n"
                                                "a       18446744073709551615  -\n"
                                                "caña-x                     7  me\n");
    rt_buffer_deinit(&buffer);
    cli_table_deinit(&table);
}

Test(table, many_rows)
{
    struct cli_table table;
    struct rt_buffer buffer = {0};
    size_t n_lines = 0;

    cli_table_init(&table, columns, RT_ARRAY_SIZE(columns));
    for (unsigned i = 0; i < 1000; i++) {
        cli_table_add_string(&table, "key");
        cli_table_add_number(&table, i);
        cli_table_add_string(&table, "");
    }
    cli_table_append(&table, &buffer);
    for (const char *text = rt_buffer_string(&buffer); *text != '\0'; text++)
        n_lines += *text == '\n';
    cr_assert_eq(n_lines, 1001);
    rt_buffer_deinit(&buffer);
    cli_table_deinit(&table);
}

Test(table, printable)
{
    static const struct {
        struct rt_bytes text;
        const char *shown;
    } rows[] = {
        {RT_BYTES_LITERAL(""), ""},
        {RT_BYTES_LITERAL("plain ~"), "plain ~"},
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
        struct rt_buffer buffer = {0};

        cli_table_append_printable(rows[i].text, &buffer);
        cr_assert_str_eq(rt_buffer_string(&buffer), rows[i].shown, "row %zu", i);
        rt_buffer_deinit(&buffer);
    }
}

Test(table, width_counts_characters)
{
    cr_assert_eq(cli_table_width(RT_BYTES_LITERAL("")), 0);
    cr_assert_eq(cli_table_width(RT_BYTES_LITERAL("abc")), 3);
    cr_assert_eq(cli_table_width(RT_BYTES_LITERAL("ñ€😀")), 3);
}
