/*
 * Small files: see file.h. Invariant: no descriptor outlives a call. No state, any thread.
 */
#include "runtime/store/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    NAME_MAX_BYTES = 64
};

static ssize_t read_all(int fd, uint8_t *content, size_t capacity)
{
    size_t size = 0;

    while (size < capacity) {
        ssize_t part = read(fd, content + size, capacity - size);

        if (part < 0 && errno == EINTR)
            continue;
        if (part < 0)
            return -1;
        if (part == 0)
            break;
        size += (size_t)part;
    }
    return (ssize_t)size;
}

enum rt_code store_file_read(int directory_fd, const char *name, void *ret_content, size_t capacity,
                             size_t *ret_size, bool *ret_exists, struct rt_error *err)
{
    int fd = openat(directory_fd, name, O_RDONLY | O_CLOEXEC);
    ssize_t size;
    int saved;

    if (fd < 0 && errno != ENOENT)
        return rt_fail_errno(err, errno, "opening %s", name);
    *ret_exists = fd >= 0;
    *ret_size = 0;
    if (fd < 0)
        return RT_OK;
    size = read_all(fd, ret_content, capacity);
    saved = errno;
    (void)close(fd);
    if (size < 0)
        return rt_fail_errno(err, saved, "reading %s", name);
    *ret_size = (size_t)size;
    return RT_OK;
}

static bool write_all(int fd, struct rt_bytes content)
{
    size_t written = 0;

    while (written < content.size) {
        ssize_t part = write(fd, content.data + written, content.size - written);

        if (part < 0 && errno == EINTR)
            continue;
        if (part < 0)
            return false;
        written += (size_t)part;
    }
    return true;
}

static enum rt_code write_synced(int directory_fd, const char *name, struct rt_bytes content,
                                 struct rt_error *err)
{
    int fd = openat(directory_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool is_written;
    int saved;

    if (fd < 0)
        return rt_fail_errno(err, errno, "making %s", name);
    is_written = write_all(fd, content) && fsync(fd) == 0;
    saved = errno;
    (void)close(fd);
    return is_written ? RT_OK : rt_fail_errno(err, saved, "writing %s", name);
}

enum rt_code store_file_replace(int directory_fd, const char *name, struct rt_bytes content,
                                struct rt_error *err)
{
    char temporary[NAME_MAX_BYTES];
    enum rt_code code;
    int length = snprintf(temporary, sizeof(temporary), "%s.tmp", name);

    rt_assert(length > 0 && (size_t)length < sizeof(temporary));
    code = write_synced(directory_fd, temporary, content, err);
    if (code == RT_OK && renameat(directory_fd, temporary, directory_fd, name) < 0)
        code = rt_fail_errno(err, errno, "renaming %s to %s", temporary, name);
    if (code != RT_OK) {
        (void)unlinkat(directory_fd, temporary, 0);
        return code;
    }
    if (fsync(directory_fd) < 0)
        return rt_fail_errno(err, errno, "syncing the directory of %s", name);
    return RT_OK;
}

static bool means_full(int errno_value)
{
    return errno_value == ENOSPC || errno_value == EDQUOT;
}

bool store_file_disk_is_full(int directory_fd, size_t size)
{
    int fd = openat(directory_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    bool is_full;

    if (fd < 0)
        return means_full(errno);
    is_full = means_full(posix_fallocate(fd, 0, (off_t)size));
    (void)close(fd);
    return is_full;
}

bool store_file_is_linked(int fd)
{
    struct stat file;

    return fstat(fd, &file) == 0 && file.st_nlink > 0;
}
