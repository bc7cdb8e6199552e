/*
 * Command lines for suites of option tables: words from one string, and what a program prints.
 */
#ifndef TESTS_SUPPORT_COMMAND_LINE_H
#define TESTS_SUPPORT_COMMAND_LINE_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    TEST_WORDS_MAX = 24,
};

/* Owned by the test; the words point into `text`. */
struct test_words {
    char text[1024];
    char *argv[TEST_WORDS_MAX + 1];
    int argc;
};

/* Splits at single blanks; the first word is the program. */
static inline void test_words_init(struct test_words *words, const char *line)
{
    char *save = NULL;
    int size = snprintf(words->text, sizeof(words->text), "program %s", line);

    cr_assert_lt((size_t)size, sizeof(words->text));
    words->argc = 0;
    for (char *word = strtok_r(words->text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        cr_assert_lt(words->argc, TEST_WORDS_MAX);
        words->argv[words->argc++] = word;
    }
    words->argv[words->argc] = NULL;
}

/* Standard output goes to a file until test_output_end(), which returns what was written; the
 * caller frees it with free(). */
struct test_output {
    FILE *file;
    int saved_fd;
};

static inline void test_output_begin(struct test_output *output)
{
    (void)fflush(stdout);
    output->file = tmpfile();
    cr_assert_not_null(output->file);
    output->saved_fd = dup(STDOUT_FILENO);
    cr_assert_geq(dup2(fileno(output->file), STDOUT_FILENO), 0);
}

static inline char *test_output_end(struct test_output *output)
{
    char *text;
    long size;

    (void)fflush(stdout);
    cr_assert_geq(dup2(output->saved_fd, STDOUT_FILENO), 0);
    (void)close(output->saved_fd);
    cr_assert_eq(fseek(output->file, 0, SEEK_END), 0);
    size = ftell(output->file);
    text = calloc(1, (size_t)size + 1);
    cr_assert_not_null(text);
    rewind(output->file);
    cr_assert_eq(fread(text, 1, (size_t)size, output->file), (size_t)size);
    (void)fclose(output->file);
    return text;
}

/* A file with this text in it; its path, valid until the next call. Removed by the caller. */
static inline const char *test_file(const char *text)
{
    static char path[64];
    int fd;

    (void)snprintf(path, sizeof(path), "/tmp/redistinto-test-XXXXXX");
    fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    (void)close(fd);
    return path;
}

#endif
