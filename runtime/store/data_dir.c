/*
 * Data directory: see data_dir.h. Invariants: nothing in the directory is touched before LOCK is
 * held, and STORE_ID never changes once it exists. The caller's thread, blocking.
 */
#include "runtime/store/data_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/store/file.h"

enum {
    ID_TEXT_SIZE = 2 * STORE_ID_SIZE + 1, /* with the newline */
    HEARTBEAT_SIZE = 4096,
    PLACE_OFFSET = 512,
    PLACE_SIZE = 21, /* 20 digits and a newline */
    PID_TEXT_MAX = 32,
};

static enum rt_code open_directory(struct store_data_dir *dir, struct rt_error *err)
{
    if (mkdir(dir->path, 0700) < 0 && errno != EEXIST)
        return rt_fail_errno(err, errno, "making data directory '%s'", dir->path);
    dir->directory_fd = open(dir->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir->directory_fd < 0)
        return rt_fail_errno(err, errno, "opening data directory '%s'", dir->path);
    return RT_OK;
}

static enum rt_code fail_in_use(const struct store_data_dir *dir, struct rt_error *err)
{
    char text[PID_TEXT_MAX];
    ssize_t size = pread(dir->lock_fd, text, sizeof(text) - 1, 0);
    size_t n_digits;

    text[size > 0 ? size : 0] = 0;
    n_digits = strspn(text, "0123456789");
    return rt_fail_reason(err, RT_FAILED_PRECONDITION, "DATA_DIR_IN_USE",
                          "data directory '%s' is in use%s%.*s", dir->path,
                          n_digits > 0 ? " by process " : "", (int)n_digits, text);
}

static enum rt_code lock(struct store_data_dir *dir, struct rt_error *err)
{
    char text[PID_TEXT_MAX];
    int size;

    dir->lock_fd = openat(dir->directory_fd, "LOCK", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (dir->lock_fd < 0)
        return rt_fail_errno(err, errno, "opening '%s/LOCK'", dir->path);
    if (flock(dir->lock_fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK
                   ? fail_in_use(dir, err)
                   : rt_fail_errno(err, errno, "locking data directory '%s'", dir->path);

    /* Only for the message above: a full disk does not matter. */
    size = snprintf(text, sizeof(text), "%d\n", (int)getpid());
    if (ftruncate(dir->lock_fd, 0) == 0)
        (void)!pwrite(dir->lock_fd, text, (size_t)size, 0);
    return RT_OK;
}

static int digit_of(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

static bool parse_id(const char *text, size_t size, uint8_t *ret_id)
{
    if (size != ID_TEXT_SIZE || text[size - 1] != '\n')
        return false;
    for (size_t i = 0; i < STORE_ID_SIZE; i++) {
        int high = digit_of(text[2 * i]);
        int low = digit_of(text[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        ret_id[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static enum rt_code make_id(struct store_data_dir *dir, struct rt_error *err)
{
    char text[ID_TEXT_SIZE + 1];

    if (faccessat(dir->directory_fd, "HEARTBEAT", F_OK, 0) == 0)
        return rt_fail(err, RT_DATA_LOSS, "STORE_ID has vanished from a directory in use");
    if (getrandom(dir->store_id, STORE_ID_SIZE, 0) != STORE_ID_SIZE)
        return rt_fail_errno(err, errno, "choosing a store id");
    for (size_t i = 0; i < STORE_ID_SIZE; i++)
        (void)snprintf(text + 2 * i, 4, "%02x\n", dir->store_id[i]);
    return store_file_replace(dir->directory_fd, "STORE_ID", rt_bytes_of(text, ID_TEXT_SIZE), err);
}

static enum rt_code load_id(struct store_data_dir *dir, struct rt_error *err)
{
    char text[ID_TEXT_SIZE + 1];
    bool exists = false;
    size_t size = 0;
    enum rt_code code =
        store_file_read(dir->directory_fd, "STORE_ID", text, sizeof(text), &size, &exists, err);

    if (code == RT_OK && !exists)
        code = make_id(dir, err);
    else if (code == RT_OK && !parse_id(text, size, dir->store_id))
        code = rt_fail(err, RT_DATA_LOSS, "STORE_ID is damaged");
    return code;
}

/* The block names its own inode: a copy of the directory still names that of the original. */
static enum rt_code write_place(struct store_data_dir *dir, struct rt_error *err)
{
    char text[PLACE_SIZE + 1];

    (void)snprintf(text, sizeof(text), "%020llu\n", dir->place);
    if (pwrite(dir->heartbeat_fd, text, PLACE_SIZE, PLACE_OFFSET) != PLACE_SIZE ||
        fsync(dir->heartbeat_fd) < 0)
        return rt_fail_errno(err, errno, "writing HEARTBEAT");
    dir->is_copy = false;
    return RT_OK;
}

static enum rt_code read_place(struct store_data_dir *dir, struct rt_error *err)
{
    char text[PLACE_SIZE + 1] = {0};

    if (pread(dir->heartbeat_fd, text, PLACE_SIZE, PLACE_OFFSET) != PLACE_SIZE)
        return rt_fail_errno(err, errno, "reading HEARTBEAT");
    dir->is_copy = strtoull(text, NULL, 10) != dir->place;
    return RT_OK;
}

/* Every block is written once and synced, so later writes need no room. */
static enum rt_code prepare_heartbeat(struct store_data_dir *dir, struct rt_error *err)
{
    static const char zeros[HEARTBEAT_SIZE];
    struct stat file;

    if (fstat(dir->heartbeat_fd, &file) < 0)
        return rt_fail_errno(err, errno, "reading HEARTBEAT");
    dir->place = (unsigned long long)file.st_ino;
    if (file.st_size == HEARTBEAT_SIZE)
        return read_place(dir, err);
    if (pwrite(dir->heartbeat_fd, zeros, sizeof(zeros), 0) != (ssize_t)sizeof(zeros))
        return rt_fail_errno(err, errno, "preallocating HEARTBEAT");
    return write_place(dir, err);
}

static enum rt_code open_heartbeat(struct store_data_dir *dir, struct rt_error *err)
{
    enum rt_code code;

    dir->heartbeat_fd = openat(dir->directory_fd, "HEARTBEAT", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (dir->heartbeat_fd < 0)
        return rt_fail_errno(err, errno, "opening HEARTBEAT");
    code = prepare_heartbeat(dir, err);
    if (code == RT_OK && fsync(dir->directory_fd) < 0)
        code = rt_fail_errno(err, errno, "syncing the directory");
    return code;
}

/* The first word of the file; false when there is none or it says "uninitialized". */
static bool read_machine_id(const char *path, char *ret_id)
{
    size_t size = 0;
    bool exists = false;

    if (store_file_read(AT_FDCWD, path, ret_id, STORE_MACHINE_ID_MAX, &size, &exists, NULL) !=
        RT_OK)
        size = 0;
    ret_id[size] = 0;
    ret_id[strcspn(ret_id, " \t\r\n")] = 0;
    if (strcmp(ret_id, "uninitialized") == 0)
        ret_id[0] = 0;
    return ret_id[0] != 0;
}

bool store_data_dir_type_is_local(unsigned long type)
{
    /* Of linux/magic.h where it has them; statfs(2) has the others. */
    static const unsigned long remote[] = {
        NFS_SUPER_MAGIC,         SMB_SUPER_MAGIC,       CIFS_SUPER_MAGIC,
        SMB2_SUPER_MAGIC,        FUSE_SUPER_MAGIC,      V9FS_MAGIC,
        CEPH_SUPER_MAGIC,        AFS_SUPER_MAGIC,       AFS_FS_MAGIC,
        CODA_SUPER_MAGIC,        NCP_SUPER_MAGIC,       OCFS2_SUPER_MAGIC,
        0x0bd00bd0 /* Lustre */, 0x01161970 /* GFS2 */, 0x47504653 /* GPFS */,
    };

    for (size_t i = 0; i < RT_ARRAY_SIZE(remote); i++)
        if (remote[i] == (type & 0xffffffff))
            return false;
    return true;
}

static enum rt_code look_at_machine(struct store_data_dir *dir, struct rt_error *err)
{
    struct statfs system;

    if (fstatfs(dir->directory_fd, &system) < 0)
        return rt_fail_errno(err, errno, "reading the kind of file system");
    dir->is_local = store_data_dir_type_is_local((unsigned long)system.f_type);
    if (!read_machine_id("/etc/machine-id", dir->machine_id))
        (void)read_machine_id("/proc/sys/kernel/random/boot_id", dir->machine_id);
    return RT_OK;
}

enum rt_code store_data_dir_new(const char *path, struct store_data_dir **ret_dir,
                                struct rt_error *err)
{
    struct store_data_dir *dir = rt_xalloc(sizeof(*dir));
    enum rt_code code;

    *dir = (struct store_data_dir){
        .path = rt_xstrdup(path), .directory_fd = -1, .lock_fd = -1, .heartbeat_fd = -1};
    code = open_directory(dir, err);
    if (code == RT_OK)
        code = lock(dir, err);
    if (code != RT_OK) {
        (void)store_data_dir_free(dir);
        return code;
    }

    code = load_id(dir, err);
    if (code == RT_OK)
        code = open_heartbeat(dir, err);
    if (code == RT_OK)
        code = look_at_machine(dir, err);
    if (code != RT_OK) {
        if (err)
            (void)rt_wrap(err, "data directory '%s'", path);
        (void)store_data_dir_free(dir);
        return code;
    }
    *ret_dir = dir;
    return RT_OK;
}

static void close_fd(int fd)
{
    if (fd >= 0)
        (void)close(fd);
}

struct store_data_dir *store_data_dir_free(struct store_data_dir *dir)
{
    if (!dir)
        return NULL;
    close_fd(dir->heartbeat_fd);
    close_fd(dir->lock_fd);
    close_fd(dir->directory_fd);
    (void)rt_free(dir->path);
    return rt_free(dir);
}

enum rt_code store_data_dir_heartbeat(struct store_data_dir *dir, uint64_t value,
                                      struct rt_error *err)
{
    char text[32];
    int size = snprintf(text, sizeof(text), "%020llu\n", (unsigned long long)value);
    ssize_t written = pwrite(dir->heartbeat_fd, text, (size_t)size, 0);

    if (written < 0)
        return rt_fail_errno(err, errno, "writing '%s/HEARTBEAT'", dir->path);
    if (written != size)
        return rt_fail(err, RT_INTERNAL, "writing '%s/HEARTBEAT': %zd of %d bytes", dir->path,
                       written, size);
    if (fdatasync(dir->heartbeat_fd) < 0)
        return rt_fail_errno(err, errno, "syncing '%s/HEARTBEAT'", dir->path);
    if (!store_file_is_linked(dir->heartbeat_fd))
        return rt_fail(err, RT_DATA_LOSS, "data directory '%s' has been deleted", dir->path);
    return RT_OK;
}

enum rt_code store_data_dir_adopt(struct store_data_dir *dir, struct rt_error *err)
{
    if (!dir->is_copy)
        return RT_OK;
    if (write_place(dir, err) != RT_OK)
        return rt_wrap(err, "data directory '%s'", dir->path);
    return RT_OK;
}
