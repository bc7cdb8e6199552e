/*
 * Output files: see output.h. Invariant: an open output has a temporary file of its own, in the
 * directory of the final one. The caller's thread.
 */
#include "esi-client/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/alloc.h"

enum {
    NAMES_MAX = 100 /* temporary ones that are tried */
};

static enum rt_code check_name(const char *path, struct rt_error *err)
{
    struct stat status;

    if (path[0] == '\0')
        return rt_fail(err, RT_INVALID_ARGUMENT, "the name of a file has at least one byte");
    if (stat(path, &status) != 0)
        return errno == ENOENT ? RT_OK : rt_fail_errno(err, errno, "%s", path);
    if (!S_ISREG(status.st_mode))
        return rt_fail(err, RT_INVALID_ARGUMENT, "%s: %s; a regular file or a new name is expected",
                       path, S_ISDIR(status.st_mode) ? "is a directory" : "is no regular file");
    return RT_OK;
}

/* Not mkstemp(): the file gets the mode that the user's mask gives any new file. */
static int create(struct esi_output *output, size_t size)
{
    for (int i = 0; i < NAMES_MAX; i++) {
        int fd;

        (void)snprintf(output->temporary, size, "%s.%ld-%d.tmp", output->path, (long)getpid(), i);
        fd = open(output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

enum rt_code esi_output_open(struct esi_output *output, const char *path, struct rt_error *err)
{
    size_t size = strlen(path) + 32;
    enum rt_code code = check_name(path, err);

    if (code != RT_OK)
        return code;
    *output = (struct esi_output){.path = rt_xalloc(size), .temporary = rt_xalloc(size)};
    (void)snprintf(output->path, size, "%s", path);
    output->fd = create(output, size);
    if (output->fd >= 0)
        return RT_OK;
    code = rt_fail_errno(err, errno, "%s", output->temporary);
    output->path = rt_free(output->path);
    output->temporary = rt_free(output->temporary);
    return code;
}

enum rt_code esi_output_write(struct esi_output *output, struct rt_bytes bytes,
                              struct rt_error *err)
{
    while (bytes.size > 0) {
        ssize_t n = write(output->fd, bytes.data, bytes.size);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return rt_fail_errno(err, errno, "writing %s", output->path);
        bytes = rt_bytes_of(bytes.data + n, bytes.size - (size_t)n);
    }
    return RT_OK;
}

static void forget(struct esi_output *output)
{
    output->path = rt_free(output->path);
    output->temporary = rt_free(output->temporary);
}

enum rt_code esi_output_commit(struct esi_output *output, struct rt_error *err)
{
    enum rt_code code = RT_OK;

    /* Where there is no room is known at the latest now. */
    if (fsync(output->fd) != 0)
        code = rt_fail_errno(err, errno, "writing %s", output->path);
    (void)close(output->fd);
    if (code == RT_OK && rename(output->temporary, output->path) != 0)
        code = rt_fail_errno(err, errno, "renaming to %s", output->path);
    if (code != RT_OK)
        (void)unlink(output->temporary);
    forget(output);
    return code;
}

void esi_output_discard(struct esi_output *output)
{
    if (!esi_output_is_open(output))
        return;
    (void)close(output->fd);
    (void)unlink(output->temporary);
    forget(output);
}

bool esi_output_is_open(const struct esi_output *output)
{
    return output->path != NULL;
}
