/*
 * The entries of an instance as text and JSON: pages, holes, the grid and its ends.
 */
#include "cli/entry_map.h"

#include "tests/support/check.h"

TestSuite(entry_map, .fini = test_alloc_expect_none);

static struct model_entry_info entries[] = {
    {.index = 0, .key = RT_BYTES_LITERAL("a"), .bytes_used = 3, .atomic = true},
    {.index = 3, .key = RT_BYTES_LITERAL("b\n"), .bytes_used = 10},
    {.index = 4, .key = RT_BYTES_LITERAL("b\n"), .offset = 10, .bytes_used = 10},
    {.index = 5, .key = RT_BYTES_LITERAL("b\n"), .offset = 20, .bytes_used = 10},
    {.index = 6, .key = RT_BYTES_LITERAL("c"), .bytes_used = 10},
    {.index = 7, .key = RT_BYTES_LITERAL("c"), .offset = 10, .bytes_used = 1},
    {.index = 8, .key = RT_BYTES_LITERAL("d")},
    {.index = 10, .key = RT_BYTES_LITERAL("e"), .atomic = true},
};

/* Two pages, of the first `n` and of the others. */
static void append(enum cli_output output, size_t n, struct rt_buffer *buffer)
{
    struct cli_entry_map *map = cli_entry_map_begin("i1", output, buffer);
    struct model_list_entries_response page = {
        .entries = entries,
        .n_entries = n,
        .more = true,
        .pointer = 4,
        .entries_free = 5,
        .entries_total = 13,
        .entry_size = 10,
    };

    cli_entry_map_add(map, &page);
    page.entries = entries + n;
    page.n_entries = RT_ARRAY_SIZE(entries) - n;
    page.more = false;
    cli_entry_map_add(map, &page);
    cr_assert_null(cli_entry_map_end(map));
}

Test(entry_map, text)
{
    for (size_t n = 0; n <= RT_ARRAY_SIZE(entries); n++) {
        struct rt_buffer buffer = {0};

        append(CLI_OUTPUT_TEXT, n, &buffer);
        cr_assert_str_eq(rt_buffer_string(&buffer),
                         "i1: 13 entries of 10 bytes, 5 free, replacement pointer at 4\n\n"
                         "     0  o..<=><>+.o..\n\n"
                         "INDEX  KEY    OFFSET  BYTES  VALUE\n"
                         "    0  a           0      3  atomic\n"
                         "  1-2  -           -      -  free\n"
                         "    3  b\\x0a       0     10  part\n"
                         "    4  b\\x0a      10     10  part\n"
                         "    5  b\\x0a      20     10  part\n"
                         "    6  c           0     10  part\n"
                         "    7  c          10      1  part\n"
                         "    8  d           0      0  reserved\n"
                         "    9  -           -      -  free\n"
                         "   10  e           0      0  atomic\n"
                         "11-12  -           -      -  free\n",
                         "%zu: %s", n, rt_buffer_string(&buffer));
        rt_buffer_deinit(&buffer);
    }
}

Test(entry_map, json)
{
    struct rt_buffer buffer = {0};
    const char *text;

    append(CLI_OUTPUT_JSON, 1, &buffer);
    text = rt_buffer_string(&buffer);
    cr_assert_eq(strncmp(text,
                         "{\"instance\":\"i1\",\"entries\":[{\"index\":0,\"key\":\"a\","
                         "\"offset\":0,\"bytes\":3,\"atomic\":true},{\"index\":3,",
                         95),
                 0, "%s", text);
    cr_assert_not_null(strstr(text, "],\"pointer\":4,\"free\":5,\"total\":13,\"entry_size\":10}\n"),
                       "%s", text);
    rt_buffer_deinit(&buffer);
}

static void append_empty(uint64_t total, struct rt_buffer *buffer)
{
    struct cli_entry_map *map = cli_entry_map_begin("i1", CLI_OUTPUT_TEXT, buffer);
    struct model_list_entries_response page = {
        .entries_free = total, .entries_total = total, .entry_size = 1};

    cli_entry_map_add(map, &page);
    (void)cli_entry_map_end(map);
}

Test(entry_map, grid_at_its_limit)
{
    struct rt_buffer buffer = {0};

    append_empty(CLI_ENTRY_MAP_GRID_MAX, &buffer);
    cr_assert_not_null(strstr(rt_buffer_string(&buffer), "\n  4032  ......"));
    rt_buffer_reset(&buffer);
    append_empty(CLI_ENTRY_MAP_GRID_MAX + 1, &buffer);
    cr_assert_null(strstr(rt_buffer_string(&buffer), "....."));
    cr_assert_not_null(strstr(rt_buffer_string(&buffer), "0-4096"));
    rt_buffer_deinit(&buffer);
}
