/*
 * Disk faults: see disk_faults.h. Invariant: a call that is not made to fail does exactly what the
 * kernel does. One mutex guards everything; any thread.
 */
#include "tests/support/disk_faults.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

struct fault {
    int errno_value;
    size_t countdown;
    size_t repeat;
    size_t n_calls;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct fault faults[TEST_DISK_N_CALLS];
static size_t room = TEST_DISK_FOREVER;
static bool is_stalling;
static size_t n_stalled;
static bool has_no_threads;
static size_t calls_left = TEST_DISK_FOREVER;
static bool has_stopped;

void test_disk_fail_after(enum test_disk_call call, int errno_value, size_t countdown,
                          size_t repeat)
{
    (void)pthread_mutex_lock(&lock);
    faults[call].errno_value = errno_value;
    faults[call].countdown = countdown;
    faults[call].repeat = repeat;
    (void)pthread_mutex_unlock(&lock);
}

void test_disk_set_room(size_t size)
{
    (void)pthread_mutex_lock(&lock);
    room = size;
    (void)pthread_mutex_unlock(&lock);
}

void test_disk_stop_after(size_t n_calls)
{
    (void)pthread_mutex_lock(&lock);
    calls_left = n_calls;
    has_stopped = false;
    (void)pthread_mutex_unlock(&lock);
}

bool test_disk_has_stopped(void)
{
    bool result;

    (void)pthread_mutex_lock(&lock);
    result = has_stopped;
    (void)pthread_mutex_unlock(&lock);
    return result;
}

void test_disk_heal(void)
{
    test_disk_set_room(TEST_DISK_FOREVER);
    test_disk_stop_after(TEST_DISK_FOREVER);
    for (int call = 0; call < TEST_DISK_N_CALLS; call++)
        test_disk_fail_after((enum test_disk_call)call, 0, 0, 0);
}

size_t test_disk_calls(enum test_disk_call call)
{
    size_t n_calls;

    (void)pthread_mutex_lock(&lock);
    n_calls = faults[call].n_calls;
    (void)pthread_mutex_unlock(&lock);
    return n_calls;
}

static void set_stalling(bool stalling)
{
    (void)pthread_mutex_lock(&lock);
    is_stalling = stalling;
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&lock);
}

void test_disk_stall(void)
{
    set_stalling(true);
}

void test_disk_release(void)
{
    set_stalling(false);
}

void test_disk_wait_for_stalled(void)
{
    (void)pthread_mutex_lock(&lock);
    while (n_stalled == 0)
        (void)pthread_cond_wait(&changed, &lock);
    (void)pthread_mutex_unlock(&lock);
}

static bool is_file(int fd)
{
    struct stat status;
    int saved = errno;
    bool is_regular = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);

    errno = saved;
    return is_regular;
}

/* With the lock held. */
static bool stops(enum test_disk_call call)
{
    if (call == TEST_DISK_MAP || calls_left == TEST_DISK_FOREVER)
        return false;
    has_stopped |= calls_left == 0;
    calls_left -= calls_left > 0;
    return has_stopped;
}

/* 0, or the errno to fail with. Hangs while the disk stalls. */
static int pass(enum test_disk_call call)
{
    struct fault *fault = &faults[call];
    int errno_value = 0;

    (void)pthread_mutex_lock(&lock);
    fault->n_calls++;
    while (call == TEST_DISK_SYNC && is_stalling) {
        n_stalled++;
        (void)pthread_cond_broadcast(&changed);
        (void)pthread_cond_wait(&changed, &lock);
        n_stalled--;
    }
    if (fault->repeat > 0 && fault->countdown > 0) {
        fault->countdown--;
    } else if (fault->repeat > 0) {
        errno_value = fault->errno_value;
        if (fault->repeat != TEST_DISK_FOREVER)
            fault->repeat--;
    }
    if (stops(call))
        errno_value = EIO;
    (void)pthread_mutex_unlock(&lock);
    return errno_value;
}

static bool call_fails(enum test_disk_call call)
{
    int errno_value = pass(call);

    if (errno_value != 0)
        errno = errno_value;
    return errno_value != 0;
}

static bool fails(enum test_disk_call call, int fd)
{
    return is_file(fd) && call_fails(call);
}

/* Cuts *size to the room that is left; false with ENOSPC when there is none. */
static bool take_room(int fd, size_t *size)
{
    bool is_left;

    if (!is_file(fd))
        return true;
    (void)pthread_mutex_lock(&lock);
    is_left = room > 0 || *size == 0;
    if (room != TEST_DISK_FOREVER) {
        *size = *size < room ? *size : room;
        room -= *size;
    }
    (void)pthread_mutex_unlock(&lock);
    if (!is_left)
        errno = ENOSPC;
    return is_left;
}

ssize_t write(int fd, const void *data, size_t size)
{
    return fails(TEST_DISK_WRITE, fd) || !take_room(fd, &size) ? -1
                                                               : syscall(SYS_write, fd, data, size);
}

static ssize_t write_at(int fd, const void *data, size_t size, int64_t offset)
{
    return fails(TEST_DISK_WRITE, fd) || !take_room(fd, &size)
               ? -1
               : syscall(SYS_pwrite64, fd, data, size, offset);
}

/* The header redirects pwrite to pwrite64 where off_t is 64 bits wide; LMDB calls the plain one. */
ssize_t plain_pwrite(int fd, const void *data, size_t size, int64_t offset) __asm__("pwrite");
ssize_t plain_pwrite(int fd, const void *data, size_t size, int64_t offset)
{
    return write_at(fd, data, size, offset);
}

ssize_t wide_pwrite(int fd, const void *data, size_t size, int64_t offset) __asm__("pwrite64");
ssize_t wide_pwrite(int fd, const void *data, size_t size, int64_t offset)
{
    return write_at(fd, data, size, offset);
}

/* A write that is cut short ends in its first part at the latest. */
ssize_t writev(int fd, const struct iovec *parts, int n_parts)
{
    size_t total = 0;
    size_t size;

    for (int i = 0; i < n_parts; i++)
        total += parts[i].iov_len;
    size = total;
    if (fails(TEST_DISK_WRITE, fd) || !take_room(fd, &size))
        return -1;
    if (size == total)
        return syscall(SYS_writev, fd, parts, n_parts);
    size = size < parts[0].iov_len ? size : parts[0].iov_len;
    return syscall(SYS_write, fd, parts[0].iov_base, size);
}

static int allocate(int fd, int64_t offset, int64_t size)
{
    bool is_left;

    (void)pthread_mutex_lock(&lock);
    is_left = (size_t)size <= room;
    (void)pthread_mutex_unlock(&lock);
    if (!is_left)
        return ENOSPC;
    return syscall(SYS_fallocate, fd, 0, offset, size) == 0 ? 0 : errno;
}

int plain_allocate(int fd, int64_t offset, int64_t size) __asm__("posix_fallocate");
int plain_allocate(int fd, int64_t offset, int64_t size)
{
    return allocate(fd, offset, size);
}

int wide_allocate(int fd, int64_t offset, int64_t size) __asm__("posix_fallocate64");
int wide_allocate(int fd, int64_t offset, int64_t size)
{
    return allocate(fd, offset, size);
}

static int truncate_to(int fd, int64_t size)
{
    return fails(TEST_DISK_WRITE, fd) ? -1 : (int)syscall(SYS_ftruncate, fd, size);
}

int plain_ftruncate(int fd, int64_t size) __asm__("ftruncate");
int plain_ftruncate(int fd, int64_t size)
{
    return truncate_to(fd, size);
}

int wide_ftruncate(int fd, int64_t size) __asm__("ftruncate64");
int wide_ftruncate(int fd, int64_t size)
{
    return truncate_to(fd, size);
}

static bool is_directory(int fd)
{
    struct stat status;
    int saved = errno;
    bool result = fstat(fd, &status) == 0 && S_ISDIR(status.st_mode);

    errno = saved;
    return result;
}

int fsync(int fd)
{
    if (is_directory(fd) ? call_fails(TEST_DISK_SYNC_DIRECTORY) : fails(TEST_DISK_SYNC, fd))
        return -1;
    return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    return fails(TEST_DISK_SYNC, fd) ? -1 : (int)syscall(SYS_fdatasync, fd);
}

static int open_at(int fd, const char *path, int flags, va_list arguments)
{
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;

    if ((flags & O_CREAT) && call_fails(TEST_DISK_MAKE))
        return -1;
    return (int)syscall(SYS_openat, fd, path, flags, mode);
}

int plain_openat(int fd, const char *path, int flags, ...) __asm__("openat");
int plain_openat(int fd, const char *path, int flags, ...)
{
    va_list arguments;
    int result;

    va_start(arguments, flags);
    result = open_at(fd, path, flags, arguments);
    va_end(arguments);
    return result;
}

int wide_openat(int fd, const char *path, int flags, ...) __asm__("openat64");
int wide_openat(int fd, const char *path, int flags, ...)
{
    va_list arguments;
    int result;

    va_start(arguments, flags);
    result = open_at(fd, path, flags, arguments);
    va_end(arguments);
    return result;
}

int mkdirat(int fd, const char *path, mode_t mode)
{
    return call_fails(TEST_DISK_MAKE) ? -1 : (int)syscall(SYS_mkdirat, fd, path, mode);
}

int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    return call_fails(TEST_DISK_RENAME) ? -1 : (int)syscall(SYS_renameat, from_fd, from, to_fd, to);
}

int unlinkat(int fd, const char *path, int flags)
{
    return call_fails(TEST_DISK_UNLINK) ? -1 : (int)syscall(SYS_unlinkat, fd, path, flags);
}

static void *map(void *address, size_t size, int protection, int flags, int fd, int64_t offset)
{
    if (fd >= 0 && fails(TEST_DISK_MAP, fd))
        return MAP_FAILED;
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): what the system call returns. */
    return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
}

void *plain_mmap(void *address, size_t size, int protection, int flags, int fd,
                 int64_t offset) __asm__("mmap");
void *plain_mmap(void *address, size_t size, int protection, int flags, int fd, int64_t offset)
{
    return map(address, size, protection, flags, fd, offset);
}

void *wide_mmap(void *address, size_t size, int protection, int flags, int fd,
                int64_t offset) __asm__("mmap64");
void *wide_mmap(void *address, size_t size, int protection, int flags, int fd, int64_t offset)
{
    return map(address, size, protection, flags, fd, offset);
}

void test_thread_fail_once(void)
{
    (void)pthread_mutex_lock(&lock);
    has_no_threads = true;
    (void)pthread_mutex_unlock(&lock);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument)
{
    static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    bool fails_now;

    (void)pthread_mutex_lock(&lock);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
    fails_now = has_no_threads;
    has_no_threads = false;
    (void)pthread_mutex_unlock(&lock);
    return fails_now ? EAGAIN : next(thread, attributes, run, argument);
}
