/*
 * Output files: nothing under the final name before the end, no trace of what failed.
 */
#include "esi-client/output.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/check.h"

static char directory[64];
static char path[96];
static struct esi_output output;
static struct rt_error err;

static void set_up(void)
{
    (void)snprintf(directory, sizeof(directory), "/tmp/redistinto-output-XXXXXX");
    cr_assert_not_null(mkdtemp(directory));
    (void)snprintf(path, sizeof(path), "%s/report", directory);
}

/* Empties the directory; returns how many files were in it. */
static size_t sweep(void)
{
    DIR *dir = opendir(directory);
    struct dirent *entry;
    size_t n = 0;

    while ((entry = readdir(dir)) != NULL) {
        char name[400];

        if (entry->d_name[0] == '.')
            continue;
        n++;
        (void)snprintf(name, sizeof(name), "%s/%s", directory, entry->d_name);
        (void)remove(name);
    }
    (void)closedir(dir);
    return n;
}

static void tear_down(void)
{
    (void)sweep();
    (void)rmdir(directory);
    test_alloc_expect_none();
}

TestSuite(output, .init = set_up, .fini = tear_down);

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");

    cr_assert_not_null(file);
    (void)fputs(text, file);
    (void)fclose(file);
}

static void expect_file(const char *name, const char *text)
{
    char content[64] = "";
    FILE *file = fopen(name, "r");

    cr_assert_not_null(file);
    cr_assert_eq(fread(content, 1, sizeof(content) - 1, file), strlen(text));
    (void)fclose(file);
    cr_assert_str_eq(content, text);
}

static void open_ok(const char *name)
{
    cr_assert_eq(esi_output_open(&output, name, &err), RT_OK, "%s", err.message);
    cr_assert(esi_output_is_open(&output));
}

Test(output, takes_its_name_at_the_end)
{
    struct stat status;
    mode_t mask = umask(027);

    write_file(path, "old");
    (void)chmod(path, 0600);
    open_ok(path);
    cr_assert_eq(esi_output_write(&output, RT_BYTES_LITERAL("new"), &err), RT_OK);
    cr_assert_eq(esi_output_write(&output, RT_BYTES_LITERAL("er"), &err), RT_OK);
    expect_file(path, "old");
    cr_assert_eq(esi_output_commit(&output, &err), RT_OK);
    cr_assert_not(esi_output_is_open(&output));
    expect_file(path, "newer");
    cr_assert_eq(stat(path, &status), 0);
    cr_assert_eq(status.st_mode & 0777, 0640);
    cr_assert_eq(sweep(), 1);
    (void)umask(mask);
}

Test(output, discarded_leaves_no_trace)
{
    write_file(path, "old");
    open_ok(path);
    cr_assert_eq(esi_output_write(&output, RT_BYTES_LITERAL("new"), &err), RT_OK);
    esi_output_discard(&output);
    esi_output_discard(&output);
    expect_file(path, "old");
    cr_assert_eq(sweep(), 1);
}

Test(output, what_a_killed_process_left_is_no_obstacle)
{
    char left[160];

    (void)snprintf(left, sizeof(left), "%s.%ld-0.tmp", path, (long)getpid());
    write_file(left, "a part");
    open_ok(path);
    cr_assert_eq(esi_output_commit(&output, &err), RT_OK);
    expect_file(left, "a part");
    expect_file(path, "");
}

static void refuse(const char *name, const char *said)
{
    cr_assert_neq(esi_output_open(&output, name, &err), RT_OK, "%s", name);
    cr_assert_not_null(strstr(err.message, said), "%s", err.message);
    cr_assert_not(esi_output_is_open(&output));
}

Test(output, names_that_cannot_be_written)
{
    char name[160];

    refuse("", "at least one byte");
    refuse(directory, "is a directory");
    refuse("/dev/null", "is no regular file");
    (void)snprintf(name, sizeof(name), "%s/absent/report", directory);
    refuse(name, "absent");
    write_file(path, "old");
    (void)snprintf(name, sizeof(name), "%s/report", path);
    refuse(name, "report");
    cr_assert_eq(sweep(), 1);
}

Test(output, a_rename_that_fails)
{
    open_ok(path);
    cr_assert_eq(mkdir(path, 0700), 0);
    cr_assert_neq(esi_output_commit(&output, &err), RT_OK);
    cr_assert_not_null(strstr(err.message, path));
    cr_assert_not(esi_output_is_open(&output));
    cr_assert_eq(sweep(), 1);
}
