/*
 * Scripts from files: what is read, how large it may be, and what is said when it is none.
 */
#include "esi-client/script_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/check.h"

static char path[64];
static struct esi_script *script;
static struct rt_buffer said;

static void set_up(void)
{
    int fd;

    (void)snprintf(path, sizeof(path), "/tmp/redistinto-script-XXXXXX");
    fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    (void)close(fd);
}

static void tear_down(void)
{
    (void)unlink(path);
    script = esi_script_free(script);
    rt_buffer_deinit(&said);
    test_alloc_expect_none();
}

TestSuite(script_file, .init = set_up, .fini = tear_down);

static void write_text(const char *text, size_t size)
{
    FILE *file = fopen(path, "w");

    cr_assert_not_null(file);
    cr_assert_eq(fwrite(text, 1, size, file), size);
    cr_assert_eq(fclose(file), 0);
}

static enum rt_code load(const char *name, enum model_dialect dialect)
{
    return esi_script_file_load(name, dialect, &script, &said);
}

static void expect_said(const char *format, const char *name)
{
    char expected[256];

    (void)snprintf(expected, sizeof(expected), format, name);
    cr_assert_not_null(strstr(rt_buffer_string(&said), expected), "%s", rt_buffer_string(&said));
    cr_assert_eq(said.data[said.size - 1], '\n');
}

Test(script_file, is_read_and_parsed)
{
    write_text("GET k\nSTORE k\n", 14);
    cr_assert_eq(load(path, MODEL_DIALECT_CLASSIC), RT_OK);
    cr_assert_str_eq(script->name, path);
    cr_assert_eq(said.size, 0);
}

Test(script_file, standard_input)
{
    int fd;

    write_text("GET k\n", 6);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    cr_assert_geq(fd, 0);
    cr_assert_eq(dup2(fd, STDIN_FILENO), STDIN_FILENO);
    (void)close(fd);
    cr_assert_eq(load("-", MODEL_DIALECT_EXTENDED), RT_OK);
    cr_assert_eq(lseek(STDIN_FILENO, 0, SEEK_CUR), 6, "read, and not closed");
}

Test(script_file, each_error_has_a_place)
{
    write_text("GET\nREAD k\n", 11);
    cr_assert_eq(load(path, MODEL_DIALECT_CLASSIC), RT_INVALID_ARGUMENT);
    expect_said("%s:1:", path);
    expect_said("%s:2:", path);
}

Test(script_file, what_the_system_says)
{
    cr_assert_eq(load("/nowhere/at-all.esi", MODEL_DIALECT_EXTENDED), RT_NOT_FOUND);
    expect_said("redistinto-esi: %s: No such file or directory\n", "/nowhere/at-all.esi");
}

Test(script_file, a_directory_is_opened_and_cannot_be_read)
{
    cr_assert_neq(load("/tmp", MODEL_DIALECT_EXTENDED), RT_OK);
    expect_said("redistinto-esi: reading %s: Is a directory\n", "/tmp");
}

Test(script_file, size_at_the_limit_and_past_it)
{
    char *text = malloc(ESI_SCRIPT_SIZE_MAX + 1);

    cr_assert_not_null(text);
    memset(text, '#', ESI_SCRIPT_SIZE_MAX + 1);
    write_text(text, ESI_SCRIPT_SIZE_MAX);
    cr_assert_eq(load(path, MODEL_DIALECT_EXTENDED), RT_OK);
    write_text(text, ESI_SCRIPT_SIZE_MAX + 1);
    free(text);
    script = esi_script_free(script);
    cr_assert_eq(load(path, MODEL_DIALECT_EXTENDED), RT_INVALID_ARGUMENT);
    expect_said("redistinto-esi: %s is larger than 16777216 bytes\n", path);
}
