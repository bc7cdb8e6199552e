/*
 * Mirror of rows in files: see files.h. Invariants: a name of a key only ever appears by renaming a
 * file that is whole and on disk; every open is relative to a directory that was opened without
 * following a link. The caller's thread, blocking.
 */
#include "runtime/store/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/buffer.h"
#include "runtime/store/file_name.h"

enum {
    TEMPORARY_MAX = 24,
    CHUNK = 16384,
};

static const char deletes_name[] = "deletes";

struct store_files {
    char *mount; /* owned */
    store_files_row_fn row;
    int mount_fd;
    int prepared_fd;
    unsigned long long first; /* number of the first prepared value */
    unsigned long long next;  /* numbers are never used again in this life */
    struct rt_buffer deletes; /* of what is prepared */
};

/* ---- opening ---- */

static enum rt_code check_reserved(const struct store_files_options *options,
                                   const struct store_files *files, struct rt_error *err)
{
    struct stat mount;
    struct stat reserved;

    if (fstat(files->mount_fd, &mount) < 0)
        return rt_fail_errno(err, errno, "reading mount point '%s'", files->mount);
    for (size_t i = 0; i < RT_ARRAY_SIZE(options->reserved); i++)
        if (options->reserved[i] && stat(options->reserved[i], &reserved) == 0 &&
            reserved.st_dev == mount.st_dev && reserved.st_ino == mount.st_ino)
            return rt_fail(err, RT_FAILED_PRECONDITION,
                           "mount point '%s' is where the store itself keeps its files",
                           files->mount);
    return RT_OK;
}

static enum rt_code open_mount(struct store_files *files, struct rt_error *err)
{
    if (mkdir(files->mount, 0700) < 0 && errno != EEXIST)
        return rt_fail_errno(err, errno, "making mount point '%s'", files->mount);
    files->mount_fd = open(files->mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (files->mount_fd < 0)
        return rt_fail_errno(err, errno, "opening mount point '%s'", files->mount);
    return RT_OK;
}

static enum rt_code lock_mount(const struct store_files *files, struct rt_error *err)
{
    if (flock(files->mount_fd, LOCK_EX | LOCK_NB) == 0)
        return RT_OK;
    if (errno == EWOULDBLOCK)
        return rt_fail(err, RT_FAILED_PRECONDITION, "mount point '%s' is in use", files->mount);
    return rt_fail_errno(err, errno, "locking mount point '%s'", files->mount);
}

static int open_directory_at(int fd, const char *name, bool makes)
{
    if (makes && mkdirat(fd, name, 0700) < 0 && errno != EEXIST)
        return -1;
    return openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static enum rt_code open_prepared(struct store_files *files, const char *id, struct rt_error *err)
{
    char name[STORE_FILES_ID_MAX + 16];

    (void)snprintf(name, sizeof(name), ".redistinto-%s", id);
    files->prepared_fd = open_directory_at(files->mount_fd, name, true);
    if (files->prepared_fd < 0)
        return rt_fail_errno(err, errno, "opening '%s/%s'", files->mount, name);
    return RT_OK;
}

enum rt_code store_files_open(const struct store_files_options *options,
                              struct store_files **ret_files, struct rt_error *err)
{
    struct store_files *files = rt_xalloc(sizeof(*files));
    enum rt_code code;

    rt_assert(options->id[0] != 0 && strlen(options->id) <= STORE_FILES_ID_MAX);
    *files = (struct store_files){.mount = rt_xstrdup(options->mount),
                                  .row = options->row,
                                  .mount_fd = -1,
                                  .prepared_fd = -1};
    code = open_mount(files, err);
    if (code == RT_OK)
        code = check_reserved(options, files, err);
    if (code == RT_OK)
        code = lock_mount(files, err);
    if (code == RT_OK)
        code = open_prepared(files, options->id, err);
    if (code != RT_OK)
        (void)store_files_free(files);
    else
        *ret_files = files;
    return code;
}

struct store_files *store_files_free(struct store_files *files)
{
    if (!files)
        return NULL;
    if (files->prepared_fd >= 0)
        (void)close(files->prepared_fd);
    if (files->mount_fd >= 0)
        (void)close(files->mount_fd);
    rt_buffer_deinit(&files->deletes);
    (void)rt_free(files->mount);
    return rt_free(files);
}

/* ---- places of files ---- */

/* Where a name is: the directory of its last part. */
struct place {
    char name[STORE_FILE_NAME_MAX + 1];
    int directory_fd; /* to be closed unless it is the mount's */
    const char *last; /* in `name` */
};

static void leave(const struct store_files *files, struct place *place)
{
    if (place->directory_fd >= 0 && place->directory_fd != files->mount_fd)
        (void)close(place->directory_fd);
    place->directory_fd = -1;
}

/* false with errno. */
static bool find(const struct store_files *files, struct rt_bytes key, bool makes,
                 struct place *ret_place)
{
    struct place *place = ret_place;
    char *slash;

    (void)store_file_name(key, place->name);
    place->directory_fd = files->mount_fd;
    place->last = place->name;
    while ((slash = strchr(place->last, '/')) != NULL) {
        int fd;
        int saved;

        *slash = 0;
        fd = open_directory_at(place->directory_fd, place->last, makes);
        saved = errno;
        if (fd >= 0 && makes && fsync(place->directory_fd) < 0) {
            saved = errno;
            (void)close(fd);
            fd = -1;
        }
        *slash = '/';
        leave(files, place);
        if (fd < 0) {
            errno = saved;
            return false;
        }
        place->directory_fd = fd;
        place->last = slash + 1;
    }
    return true;
}

/* Directories that a long name needed, as far as they are empty. */
static void prune(const struct store_files *files, struct place *place)
{
    char *slash;

    while ((slash = strrchr(place->name, '/')) != NULL) {
        *slash = 0;
        if (unlinkat(files->mount_fd, place->name, AT_REMOVEDIR) < 0)
            return;
    }
}

/* ---- prepared files ---- */

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

/* false with errno, and then there is no such file. */
static bool write_prepared(const struct store_files *files, const char *name,
                           struct rt_bytes content)
{
    int fd = openat(files->prepared_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                    0600);
    bool is_written;
    int saved;

    if (fd < 0)
        return false;
    is_written = write_all(fd, content) && fsync(fd) == 0;
    saved = errno;
    (void)close(fd);
    if (!is_written)
        (void)unlinkat(files->prepared_fd, name, 0);
    errno = saved;
    return is_written;
}

static void name_prepared(unsigned long long number, char name[TEMPORARY_MAX])
{
    (void)snprintf(name, TEMPORARY_MAX, "p%llu", number);
}

static bool prepare_value(struct store_files *files, struct rt_bytes content)
{
    char name[TEMPORARY_MAX];

    name_prepared(files->next, name);
    if (!write_prepared(files, name, content))
        return false;
    files->next++;
    return true;
}

static bool move_in(const struct store_files *files, unsigned long long number,
                    const struct place *place)
{
    char name[TEMPORARY_MAX];

    name_prepared(number, name);
    return renameat(files->prepared_fd, name, place->directory_fd, place->last) == 0;
}

/* A directory cannot be replaced by a file. */
static bool is_way_free(const struct place *place)
{
    struct stat status;

    if (fstatat(place->directory_fd, place->last, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT;
    if (S_ISDIR(status.st_mode)) {
        errno = EISDIR;
        return false;
    }
    return true;
}

/* ---- at the start ---- */

static bool holds(int fd, struct rt_bytes content)
{
    uint8_t chunk[CHUNK];
    size_t size = 0;
    struct stat status;

    if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) ||
        (size_t)status.st_size != content.size)
        return false;
    while (size < content.size) {
        ssize_t part = read(fd, chunk, sizeof(chunk));

        if (part < 0 && errno == EINTR)
            continue;
        if (part <= 0 || (size_t)part > content.size - size ||
            memcmp(chunk, content.data + size, (size_t)part) != 0)
            return false;
        size += (size_t)part;
    }
    return true;
}

static bool is_right(const struct place *place, struct rt_bytes content)
{
    int fd =
        openat(place->directory_fd, place->last, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool is_same;

    if (fd < 0)
        return false;
    is_same = holds(fd, content);
    (void)close(fd);
    return is_same;
}

static bool replace(struct store_files *files, const struct place *place, struct rt_bytes content)
{
    return is_way_free(place) && prepare_value(files, content) &&
           move_in(files, files->next - 1, place) && fsync(place->directory_fd) == 0;
}

static enum rt_code fail_file(const struct store_files *files, const struct place *place,
                              struct rt_error *err)
{
    if (errno == EISDIR || errno == ENOTDIR || errno == ELOOP)
        return rt_fail(err, RT_FAILED_PRECONDITION,
                       "the value of a key belongs into '%s/%s', where something else is",
                       files->mount, place->name);
    return rt_fail_errno(err, errno, "writing '%s/%s'", files->mount, place->name);
}

enum rt_code store_files_put_right(struct store_files *files, struct rt_bytes row,
                                   struct rt_bytes value, struct rt_error *err)
{
    enum rt_code code = RT_OK;
    struct rt_bytes key;
    struct rt_bytes content;
    struct place place;

    if (!files->row(row, value, &key, &content))
        return RT_OK;
    if (!find(files, key, true, &place))
        return fail_file(files, &place, err);
    if (!is_right(&place, content) && !replace(files, &place, content))
        code = fail_file(files, &place, err);
    leave(files, &place);
    return code;
}

/* 0, or an errno. There is none when nobody had to delete anything. */
static int erase(const struct store_files *files, struct rt_bytes row)
{
    int result = 0;
    struct rt_bytes key;
    struct rt_bytes content;
    struct place place;

    if (!files->row(row, (struct rt_bytes){0}, &key, &content))
        return 0;
    if (!find(files, key, false, &place))
        return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : errno;
    if ((unlinkat(place.directory_fd, place.last, 0) < 0 && errno != ENOENT && errno != EISDIR) ||
        (place.directory_fd != files->mount_fd && fsync(place.directory_fd) < 0))
        result = errno;
    leave(files, &place);
    if (result == 0 && place.last != place.name)
        prune(files, &place);
    return result;
}

/* What is missing at the end was never synced, so never committed either. */
static enum rt_code erase_listed(struct store_files *files, store_files_has_row_fn has_row,
                                 void *ctx, struct rt_error *err)
{
    struct rt_bytes rest = rt_buffer_bytes(&files->deletes);

    while (rest.size > 2) {
        size_t size = (size_t)rest.data[0] << 8 | rest.data[1];
        struct rt_bytes row = rt_bytes_of(rest.data + 2, size);
        bool has = false;
        enum rt_code code;
        int result;

        if (size == 0 || size > STORE_KEY_MAX || size > rest.size - 2)
            break;
        code = has_row(ctx, row, &has, err);
        if (code != RT_OK)
            return code;
        result = has ? 0 : erase(files, row);
        if (result != 0)
            return rt_fail_errno(err, result, "deleting a file in '%s'", files->mount);
        rest = rt_bytes_of(rest.data + 2 + size, rest.size - 2 - size);
    }
    return RT_OK;
}

/* There is no list when the last process had nothing to delete. */
static enum rt_code read_deletes(struct store_files *files, struct rt_error *err)
{
    int fd = openat(files->prepared_fd, deletes_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    uint8_t chunk[CHUNK];
    ssize_t part = 0;
    int saved;

    rt_buffer_reset(&files->deletes);
    if (fd < 0)
        return errno == ENOENT
                   ? RT_OK
                   : rt_fail_errno(err, errno, "reading what to delete in '%s'", files->mount);
    while ((part = read(fd, chunk, sizeof(chunk))) > 0 || (part < 0 && errno == EINTR))
        if (part > 0)
            rt_buffer_append(&files->deletes, rt_bytes_of(chunk, (size_t)part));
    saved = errno;
    (void)close(fd);
    if (part < 0)
        return rt_fail_errno(err, saved, "reading what to delete in '%s'", files->mount);
    return rt_buffer_check(&files->deletes, err);
}

static enum rt_code remove_prepared(struct store_files *files, struct rt_error *err)
{
    int fd = openat(files->prepared_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    enum rt_code code = RT_OK;
    struct dirent *entry;

    if (!directory) {
        code = rt_fail_errno(err, errno, "listing what was prepared in '%s'", files->mount);
        if (fd >= 0)
            (void)close(fd);
        return code;
    }
    while (code == RT_OK && (entry = readdir(directory)) != NULL)
        if (entry->d_name[0] != '.' && unlinkat(files->prepared_fd, entry->d_name, 0) < 0)
            code = rt_fail_errno(err, errno, "deleting what was prepared in '%s'", files->mount);
    (void)closedir(directory);
    return code;
}

enum rt_code store_files_clean_up(struct store_files *files, store_files_has_row_fn has_row,
                                  void *ctx, struct rt_error *err)
{
    enum rt_code code = read_deletes(files, err);

    if (code == RT_OK)
        code = erase_listed(files, has_row, ctx, err);
    if (code == RT_OK)
        code = store_files_sync(files, err);
    if (code == RT_OK)
        code = remove_prepared(files, err);
    rt_buffer_deinit(&files->deletes);
    return code;
}

enum rt_code store_files_sync(struct store_files *files, struct rt_error *err)
{
    if (fsync(files->mount_fd) < 0)
        return rt_fail_errno(err, errno, "syncing mount point '%s'", files->mount);
    return RT_OK;
}

/* ---- beside a transaction ---- */

static void list_delete(struct store_files *files, struct rt_bytes row)
{
    rt_buffer_append_byte(&files->deletes, (uint8_t)(row.size >> 8));
    rt_buffer_append_byte(&files->deletes, (uint8_t)row.size);
    rt_buffer_append(&files->deletes, row);
}

static bool prepare_one(struct store_files *files, const struct store_operation *operation)
{
    struct rt_bytes key;
    struct rt_bytes content;
    struct place place;
    bool is_free;
    int saved;

    if (!files->row(operation->key, operation->value, &key, &content))
        return true;
    if (operation->kind == STORE_DELETE) {
        list_delete(files, operation->key);
        return true;
    }
    if (!find(files, key, true, &place))
        return false;
    is_free = is_way_free(&place);
    saved = errno;
    leave(files, &place);
    errno = saved;
    return is_free && prepare_value(files, content);
}

static bool changes(const struct store_operation *operation)
{
    return operation->kind == STORE_PUT || operation->kind == STORE_DELETE;
}

static bool prepare_txn(struct store_files *files, const struct store_txn *txn)
{
    bool is_prepared = true;

    for (size_t i = 0; i < txn->n_operations && is_prepared; i++)
        if (changes(&txn->operations[i]))
            is_prepared = prepare_one(files, &txn->operations[i]);
    return is_prepared;
}

static bool seal(struct store_files *files)
{
    if (files->next == files->first && files->deletes.size == 0)
        return true;
    if (rt_buffer_check(&files->deletes, NULL) != RT_OK) {
        errno = ENOSPC;
        return false;
    }
    return (files->deletes.size == 0 ||
            write_prepared(files, deletes_name, rt_buffer_bytes(&files->deletes))) &&
           fsync(files->prepared_fd) == 0;
}

/* What stands in the way of one file, or passes, is no reason to stop the others. */
static enum store_files_result judge(int errno_value)
{
    switch (errno_value) {
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case EISDIR:
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case EILSEQ:
        return STORE_FILES_NO_ROOM;
    default:
        return STORE_FILES_FAILED;
    }
}

enum store_files_result store_files_prepare(struct store_files *files,
                                            struct store_txn *const *batch, size_t n)
{
    enum store_files_result result;
    bool is_prepared = true;

    files->first = files->next;
    rt_buffer_reset(&files->deletes);
    for (size_t i = 0; i < n && is_prepared; i++)
        if (batch[i]->outcome == STORE_COMMITTED)
            is_prepared = prepare_txn(files, batch[i]);
    if (is_prepared && seal(files))
        return STORE_FILES_DONE;
    result = judge(errno);
    store_files_abandon(files);
    return result;
}

void store_files_abandon(struct store_files *files)
{
    char name[TEMPORARY_MAX];

    for (; files->first < files->next; files->first++) {
        name_prepared(files->first, name);
        (void)unlinkat(files->prepared_fd, name, 0);
    }
    if (files->deletes.size > 0)
        (void)unlinkat(files->prepared_fd, deletes_name, 0);
    rt_buffer_reset(&files->deletes);
}

static bool finish_put(struct store_files *files, struct rt_bytes key)
{
    struct place place;
    bool is_moved;

    if (!find(files, key, true, &place))
        return false;
    is_moved = move_in(files, files->first, &place);
    if (is_moved && place.directory_fd != files->mount_fd)
        is_moved = fsync(place.directory_fd) == 0;
    leave(files, &place);
    files->first++;
    return is_moved;
}

static bool finish_txn(struct store_files *files, const struct store_txn *txn)
{
    struct rt_bytes key;
    struct rt_bytes content;

    for (size_t i = 0; i < txn->n_operations; i++) {
        const struct store_operation *operation = &txn->operations[i];

        if (!changes(operation) || !files->row(operation->key, operation->value, &key, &content))
            continue;
        if (operation->kind == STORE_PUT ? !finish_put(files, key)
                                         : erase(files, operation->key) != 0)
            return false;
    }
    return true;
}

enum store_files_result store_files_finish(struct store_files *files,
                                           struct store_txn *const *batch, size_t n)
{
    bool has_deletes = files->deletes.size > 0;

    if (files->next == files->first && !has_deletes)
        return STORE_FILES_DONE;
    for (size_t i = 0; i < n; i++)
        if (batch[i]->outcome == STORE_COMMITTED && !finish_txn(files, batch[i]))
            return STORE_FILES_FAILED;
    if (fsync(files->mount_fd) < 0)
        return STORE_FILES_FAILED;
    if (has_deletes && unlinkat(files->prepared_fd, deletes_name, 0) < 0)
        return STORE_FILES_FAILED;
    rt_buffer_reset(&files->deletes);
    return STORE_FILES_DONE;
}
