/*
 * Tables: alignment, escaped cells, UTF-8 widths.
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

Test(table, cells_are_escaped)
{
    struct cli_table table;
    struct rt_buffer buffer = {0};

    cli_table_init(&table, columns, 1);
    cli_table_add(&table, RT_BYTES_LITERAL("a\\b\0"));
    cli_table_append(&table, &buffer);
    cr_assert_str_eq(rt_buffer_string(&buffer), "NAME\na\\\\b\\x00\n");
    rt_buffer_deinit(&buffer);
    cli_table_deinit(&table);
}

Test(table, width_counts_characters)
{
    cr_assert_eq(cli_table_width(RT_BYTES_LITERAL("")), 0);
    cr_assert_eq(cli_table_width(RT_BYTES_LITERAL("abc")), 3);
    cr_assert_eq(cli_table_width(RT_BYTES_LITERAL("ñ€😀")), 3);
}
