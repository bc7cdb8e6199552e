/*
 * Files of commands: made, replaced, removed, and their ends quoted.
 */
#include "cli/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "tests/support/check.h"

static char *directory;

static void set_up(void)
{
    cr_assert_eq(cli_file_make_temporary_directory("/tmp", &directory, NULL), RT_OK);
}

static void tear_down(void)
{
    cr_assert_eq(cli_file_remove_directory(directory, NULL), RT_OK);
    directory = rt_free(directory);
    test_alloc_expect_none();
}

TestSuite(file, .init = set_up, .fini = tear_down);

static char *below(const char *name)
{
    return rt_xasprintf("%s/%s", directory, name);
}

static void expect_content(const char *path, const char *expected)
{
    char content[256] = "";
    int fd = open(path, O_RDONLY);

    cr_assert_geq(fd, 0);
    cr_assert_geq(read(fd, content, sizeof(content) - 1), 0);
    cr_assert_str_eq(content, expected);
    (void)close(fd);
}

Test(file, temporary_directory_is_private_and_new)
{
    struct stat status;
    char *other = NULL;

    cr_assert_eq(stat(directory, &status), 0);
    cr_assert(S_ISDIR(status.st_mode));
    cr_assert_eq(status.st_mode & 0777, 0700);
    cr_assert_eq(cli_file_make_temporary_directory("/tmp", &other, NULL), RT_OK);
    cr_assert_str_neq(other, directory);
    cr_assert_eq(cli_file_remove_directory(other, NULL), RT_OK);
    rt_free(other);
}

Test(file, temporary_directory_below_nothing)
{
    struct rt_error err = RT_ERROR_INIT;
    char *path = below("absent");
    char *made = NULL;

    cr_assert_eq(cli_file_make_temporary_directory(path, &made, &err), RT_NOT_FOUND);
    cr_assert_null(made);
    cr_assert_not_null(strstr(err.message, "absent"));
    rt_free(path);
}

Test(file, make_directory)
{
    struct rt_error err = RT_ERROR_INIT;
    char *path = below("d");
    char *nested = below("absent/d");
    char *file = below("f");

    cr_assert_eq(cli_file_make_directory(path, NULL), RT_OK);
    cr_assert_eq(cli_file_make_directory(path, NULL), RT_OK);
    cr_assert_eq(cli_file_make_directory(nested, NULL), RT_NOT_FOUND);
    cr_assert_eq(cli_file_replace(file, RT_BYTES_LITERAL("x"), NULL), RT_OK);
    cr_assert_eq(cli_file_make_directory(file, &err), RT_FAILED_PRECONDITION);
    cr_assert_not_null(strstr(err.message, "not a directory"));
    rt_free(path);
    rt_free(nested);
    rt_free(file);
}

Test(file, remove_takes_all_but_follows_no_link)
{
    char *inner = below("d");
    char *deep = below("d/e");
    char *link_path = below("d/e/link");
    char *outside = NULL;

    cr_assert_eq(cli_file_make_temporary_directory("/tmp", &outside, NULL), RT_OK);
    cr_assert_eq(cli_file_make_directory(inner, NULL), RT_OK);
    cr_assert_eq(cli_file_make_directory(deep, NULL), RT_OK);
    cr_assert_eq(symlink(outside, link_path), 0);
    cr_assert_eq(cli_file_remove_directory(inner, NULL), RT_OK);
    cr_assert_neq(access(inner, F_OK), 0);
    cr_assert_eq(access(outside, F_OK), 0);
    cr_assert_eq(cli_file_remove_directory(outside, NULL), RT_OK);
    cr_assert_eq(cli_file_remove_directory(outside, NULL), RT_NOT_FOUND);
    rt_free(inner);
    rt_free(deep);
    rt_free(link_path);
    rt_free(outside);
}

Test(file, replace_leaves_no_temporary)
{
    char *path = below("ready.json");
    struct rt_error err = RT_ERROR_INIT;
    char *absent = below("absent/ready.json");

    cr_assert_eq(cli_file_replace(path, RT_BYTES_LITERAL("one"), NULL), RT_OK);
    expect_content(path, "one");
    cr_assert_eq(cli_file_replace(path, RT_BYTES_LITERAL(""), NULL), RT_OK);
    expect_content(path, "");
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(rmdir(directory), 0, "something was left behind");
    cr_assert_eq(mkdir(directory, 0700), 0);
    cr_assert_eq(cli_file_replace(absent, RT_BYTES_LITERAL("x"), &err), RT_NOT_FOUND);
    cr_assert_not_null(strstr(err.message, absent));
    rt_free(absent);
    rt_free(path);
}

Test(file, replace_does_not_rename_over_a_directory)
{
    char *path = below("d");

    cr_assert_eq(cli_file_make_directory(path, NULL), RT_OK);
    cr_assert_neq(cli_file_replace(path, RT_BYTES_LITERAL("x"), NULL), RT_OK);
    cr_assert_eq(rmdir(path), 0);
    cr_assert_eq(rmdir(directory), 0, "the temporary file was left behind");
    cr_assert_eq(mkdir(directory, 0700), 0);
    rt_free(path);
}

static void expect_read(const char *path, size_t max, enum rt_code code, const char *expected)
{
    struct rt_buffer buffer = {0};
    struct rt_error err = RT_ERROR_INIT;

    cr_assert_eq(cli_file_read(path, max, &buffer, &err), code, "%s", err.message);
    if (code == RT_OK)
        cr_assert_str_eq(rt_buffer_string(&buffer), expected);
    else
        cr_assert_not_null(strstr(err.message, expected), "%s", err.message);
    rt_buffer_deinit(&buffer);
}

Test(file, read_up_to_the_limit_and_past_it)
{
    char *path = below("value");

    expect_read(path, 4, RT_NOT_FOUND, path);
    cr_assert_eq(cli_file_replace(path, RT_BYTES_LITERAL("four"), NULL), RT_OK);
    expect_read(path, 4, RT_OK, "four");
    expect_read(path, 3, RT_OUT_OF_RANGE, "value: there are more than 3 bytes");
    expect_read("/dev/zero", 100000, RT_OUT_OF_RANGE, "/dev/zero: there are more than 100000");
    expect_read("/dev/null", 0, RT_OK, "");
    expect_read(directory, 4, RT_INVALID_ARGUMENT, directory);
    rt_free(path);
}

Test(file, read_standard_input)
{
    char *path = below("value");
    int fd;

    cr_assert_eq(cli_file_replace(path, RT_BYTES_LITERAL("four"), NULL), RT_OK);
    fd = open(path, O_RDONLY);
    cr_assert_eq(dup2(fd, STDIN_FILENO), STDIN_FILENO);
    expect_read("-", 4, RT_OK, "four");
    cr_assert_eq(lseek(fd, 0, SEEK_SET), 0);
    expect_read("-", 3, RT_OUT_OF_RANGE, "standard input: there are more than 3 bytes");
    (void)close(fd);
    rt_free(path);
}

static void expect_tail(const char *content, off_t offset, unsigned n_lines, const char *expected)
{
    struct rt_buffer buffer = {0};
    char *path = below("log");

    cr_assert_eq(cli_file_replace(path, rt_bytes_of_string(content), NULL), RT_OK);
    cli_file_append_tail(path, offset, n_lines, &buffer);
    cr_assert_str_eq(rt_buffer_string(&buffer), expected, "%s", content);
    rt_buffer_deinit(&buffer);
    rt_free(path);
}

Test(file, tail)
{
    expect_tail("a\nb\nc\n", 0, 2, "  b\n  c\n");
    expect_tail("a\nb\nc\n", 0, 3, "  a\n  b\n  c\n");
    expect_tail("a\nb\nc\n", 0, 4, "  a\n  b\n  c\n");
    expect_tail("a\nb\nc", 0, 1, "  c\n");
    expect_tail("a\n\n\n", 0, 2, "  \n  \n");
    expect_tail("old\nnew\n", 4, 20, "  new\n");
}

Test(file, tail_of_nothing)
{
    struct rt_buffer buffer = {0};
    char *path = below("absent");

    cli_file_append_tail(path, 0, 20, &buffer);
    cr_assert_not_null(strstr(rt_buffer_string(&buffer), "(nothing in "));
    rt_buffer_deinit(&buffer);
    rt_free(path);
}

Test(file, tail_of_a_long_line_is_cut)
{
    struct rt_buffer content = {0};
    struct rt_buffer buffer = {0};
    char *path = below("log");

    for (int i = 0; i < 100000; i++)
        rt_buffer_append_byte(&content, 'x');
    rt_buffer_append_string(&content, "END\n");
    cr_assert_eq(cli_file_replace(path, rt_buffer_bytes(&content), NULL), RT_OK);
    cli_file_append_tail(path, 0, 1, &buffer);
    cr_assert_lt(buffer.size, 20000);
    cr_assert_not_null(strstr(rt_buffer_string(&buffer), "xEND\n"));
    rt_buffer_deinit(&buffer);
    rt_buffer_deinit(&content);
    rt_free(path);
}
