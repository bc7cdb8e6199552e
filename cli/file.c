/*
 * Files of commands: see file.h. Nothing is ever left half-written under its final name. Any
 * thread.
 */
#include "cli/file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/alloc.h"

enum {
    TAIL_BYTES_MAX = 16 * 1024,
    WALK_DESCRIPTORS = 16,
};

enum rt_code cli_file_make_directory(const char *path, struct rt_error *err)
{
    struct stat status;

    if (mkdir(path, 0700) == 0)
        return RT_OK;
    if (errno != EEXIST)
        return rt_fail_errno(err, errno, "making directory %s", path);
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return RT_OK;
    return rt_fail(err, RT_FAILED_PRECONDITION, "%s is not a directory", path);
}

enum rt_code cli_file_make_temporary_directory(const char *parent, char **ret_path,
                                               struct rt_error *err)
{
    char *path = rt_xasprintf("%s/redistinto-XXXXXX", parent);

    if (mkdtemp(path) == NULL) {
        enum rt_code code = rt_fail_errno(err, errno, "making a directory below %s", parent);

        rt_free(path);
        return code;
    }
    *ret_path = path;
    return RT_OK;
}

static int on_entry(const char *path, const struct stat *status, int type, struct FTW *position)
{
    (void)status;
    (void)type;
    (void)position;
    return remove(path);
}

enum rt_code cli_file_remove_directory(const char *path, struct rt_error *err)
{
    if (nftw(path, on_entry, WALK_DESCRIPTORS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) != 0)
        return rt_fail_errno(err, errno, "removing %s", path);
    return RT_OK;
}

static enum rt_code write_whole(const char *path, struct rt_bytes content, struct rt_error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    size_t done = 0;
    enum rt_code code = RT_OK;

    if (fd < 0)
        return rt_fail_errno(err, errno, "opening %s", path);
    while (code == RT_OK && done < content.size) {
        ssize_t n_written = write(fd, content.data + done, content.size - done);

        if (n_written >= 0)
            done += (size_t)n_written;
        else if (errno != EINTR)
            code = rt_fail_errno(err, errno, "writing %s", path);
    }
    if (close(fd) != 0 && code == RT_OK)
        code = rt_fail_errno(err, errno, "closing %s", path);
    return code;
}

enum rt_code cli_file_replace(const char *path, struct rt_bytes content, struct rt_error *err)
{
    RT_CLEANUP(rt_freep) char *temporary = rt_xasprintf("%s.%ld.tmp", path, (long)getpid());
    enum rt_code code = write_whole(temporary, content, err);

    if (code == RT_OK && rename(temporary, path) != 0)
        code = rt_fail_errno(err, errno, "renaming to %s", path);
    if (code != RT_OK)
        (void)unlink(temporary);
    return code;
}

enum rt_code cli_file_resolve(const char *path, char **ret_path, struct rt_error *err)
{
    char *resolved = realpath(path, NULL);

    if (resolved == NULL)
        return rt_fail_errno(err, errno, "resolving %s", path);
    *ret_path = rt_xstrdup(resolved);
    free(resolved);
    return RT_OK;
}

static enum rt_code read_all(int fd, size_t max, struct rt_buffer *buffer, struct rt_error *err)
{
    char chunk[16384];
    size_t n_read = 0;

    for (;;) {
        size_t n_left = max + 1 - n_read;
        ssize_t n = read(fd, chunk, n_left < sizeof(chunk) ? n_left : sizeof(chunk));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return rt_fail_errno(err, errno, "reading it");
        if (n == 0)
            return rt_buffer_check(buffer, err);
        n_read += (size_t)n;
        if (n_read > max)
            return rt_fail(err, RT_OUT_OF_RANGE, "there are more than %zu bytes", max);
        rt_buffer_append(buffer, rt_bytes_of(chunk, (size_t)n));
    }
}

enum rt_code cli_file_read(const char *path, size_t max, struct rt_buffer *buffer,
                           struct rt_error *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    enum rt_code code;

    if (fd < 0)
        return rt_fail_errno(err, errno, "%s", path);
    code = read_all(fd, max, buffer, err);
    if (!is_stdin)
        (void)close(fd);
    return code == RT_OK ? RT_OK : rt_wrap(err, "%s", is_stdin ? "standard input" : path);
}

enum rt_code cli_file_program_dir(char **ret_path, struct rt_error *err)
{
    enum rt_code code = cli_file_resolve("/proc/self/exe", ret_path, err);

    if (code == RT_OK)
        *strrchr(*ret_path, '/') = '\0';
    return code;
}

/* Reads the end of the file, TAIL_BYTES_MAX at most; returns the size, 0 on failure too. */
static size_t read_end(const char *path, off_t offset, char *content)
{
    struct stat status;
    ssize_t n_read = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return 0;
    if (fstat(fd, &status) == 0) {
        if (status.st_size - offset > TAIL_BYTES_MAX)
            offset = status.st_size - TAIL_BYTES_MAX;
        n_read = pread(fd, content, TAIL_BYTES_MAX, offset);
    }
    (void)close(fd);
    return n_read > 0 ? (size_t)n_read : 0;
}

/* Where the last n_lines lines begin; a newline at the very end belongs to the last line. */
static size_t tail_begin(const char *content, size_t size, unsigned n_lines)
{
    size_t begin = size;

    while (begin > 0) {
        bool is_line_start = begin < size && content[begin - 1] == '\n';

        if (is_line_start && --n_lines == 0)
            break;
        begin--;
    }
    return begin;
}

void cli_file_append_tail(const char *path, off_t offset, unsigned n_lines,
                          struct rt_buffer *buffer)
{
    RT_CLEANUP(rt_freep) char *content = rt_xalloc(TAIL_BYTES_MAX);
    size_t size = read_end(path, offset, content);
    bool at_line_start = true;

    if (size == 0) {
        rt_buffer_printf(buffer, "  (nothing in %s)\n", path);
        return;
    }
    for (size_t i = tail_begin(content, size, n_lines); i < size; i++) {
        if (at_line_start)
            rt_buffer_append_string(buffer, "  ");
        rt_buffer_append_byte(buffer, (uint8_t)content[i]);
        at_line_start = content[i] == '\n';
    }
    if (!at_line_start)
        rt_buffer_append_byte(buffer, '\n');
}
