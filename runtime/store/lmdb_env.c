/*
 * Environment of the LMDB engine: directory, lock, map size, ranges. Invariants: a directory that
 * once held a store is never taken for a new one (the FORMAT file remembers), LMDB sees no file
 * that lmdb_check.c has not looked at, and the map is resized only while no transaction of this
 * process is open. Any thread, by map_lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/store/file.h"
#include "runtime/store/lmdb_internal.h"

static const char format_name[] = "FORMAT";
#define FORMAT_TEXT "redistinto-lmdb 1\n"

static enum rt_code code_of(int result)
{
    switch (result) {
    case MDB_MAP_FULL:
    case MDB_TXN_FULL:
    case MDB_READERS_FULL:
        return RT_RESOURCE_EXHAUSTED;
    case MDB_CORRUPTED:
    case MDB_INVALID:
    case MDB_PAGE_NOTFOUND:
    case MDB_VERSION_MISMATCH:
        return RT_DATA_LOSS;
    default:
        return RT_INTERNAL;
    }
}

enum rt_code store_lmdb_fail(struct rt_error *err, int result, const char *format, ...)
{
    char text[RT_ERROR_MESSAGE_MAX + 1];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (result > 0)
        return rt_fail_errno(err, result, "%s", text);
    return rt_fail(err, code_of(result), "%s: %s", text, mdb_strerror(result));
}

static enum rt_code open_directory(struct store_lmdb_env *env, struct rt_error *err)
{
    if (mkdir(env->path, 0700) < 0 && errno != EEXIST)
        return rt_fail_errno(err, errno, "making store directory '%s'", env->path);
    env->directory_fd = open(env->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (env->directory_fd < 0)
        return rt_fail_errno(err, errno, "opening store directory '%s'", env->path);
    if (flock(env->directory_fd, LOCK_EX | LOCK_NB) == 0)
        return RT_OK;
    if (errno == EWOULDBLOCK)
        return rt_fail(err, RT_FAILED_PRECONDITION, "store '%s' is open already", env->path);
    return rt_fail_errno(err, errno, "locking store directory '%s'", env->path);
}

/* LMDB makes an empty database from a missing or empty file: not where one was before. */
static enum rt_code check_not_emptied(struct store_lmdb_env *env, struct rt_error *err)
{
    struct stat format;
    struct stat data;

    if (fstatat(env->directory_fd, format_name, &format, 0) < 0)
        return errno == ENOENT
                   ? RT_OK
                   : rt_fail_errno(err, errno, "reading '%s/%s'", env->path, format_name);
    if (fstatat(env->directory_fd, "data.mdb", &data, 0) < 0 || data.st_size == 0)
        return rt_fail(err, RT_DATA_LOSS, "store '%s' has lost its data.mdb", env->path);
    return RT_OK;
}

static enum rt_code check_pages(struct store_lmdb_env *env, struct rt_error *err)
{
    enum rt_code code = store_lmdb_check(env->directory_fd, err);

    return code != RT_OK && err ? rt_wrap(err, "store '%s' is damaged", env->path) : code;
}

static enum rt_code check_format(struct store_lmdb_env *env, struct rt_error *err)
{
    struct rt_bytes expected = RT_BYTES_LITERAL(FORMAT_TEXT);
    char text[sizeof(FORMAT_TEXT)];
    bool exists = false;
    size_t size = 0;
    enum rt_code code =
        store_file_read(env->directory_fd, format_name, text, sizeof(text), &size, &exists, err);

    if (code == RT_OK && !exists)
        code = store_file_replace(env->directory_fd, format_name, expected, err);
    else if (code == RT_OK && !rt_bytes_equal(rt_bytes_of(text, size), expected))
        code = rt_fail(err, RT_DATA_LOSS, "%s names a format that this version cannot read",
                       format_name);
    if (code != RT_OK && err)
        (void)rt_wrap(err, "store '%s'", env->path);
    return code;
}

static enum rt_code open_database(struct store_lmdb_env *env, struct rt_error *err)
{
    MDB_txn *txn;
    int result = mdb_txn_begin(env->env, NULL, MDB_RDONLY, &txn);

    if (result != 0)
        return store_lmdb_fail(err, result, "reading store '%s'", env->path);
    result = mdb_dbi_open(txn, NULL, 0, &env->dbi);
    if (result == 0)
        result = mdb_txn_commit(txn);
    else
        mdb_txn_abort(txn);
    return result == 0 ? RT_OK : store_lmdb_fail(err, result, "reading store '%s'", env->path);
}

/* LMDB makes room for what is there already, whatever the options say. */
static void take_map_size(struct store_lmdb_env *env)
{
    MDB_envinfo info;

    (void)mdb_env_info(env->env, &info);
    env->map_size = info.me_mapsize;
    if (env->map_limit < env->map_size)
        env->map_limit = env->map_size;
}

static enum rt_code open_env(struct store_lmdb_env *env, size_t map_size, struct rt_error *err)
{
    int result = mdb_env_create(&env->env);

    if (result == 0)
        result = mdb_env_set_mapsize(env->env, map_size);
    if (result == 0)
        result = mdb_env_open(env->env, env->path, MDB_NOTLS, 0600);
    return result == 0 ? RT_OK : store_lmdb_fail(err, result, "opening store '%s'", env->path);
}

enum rt_code store_lmdb_env_open(struct store_lmdb_env *env, const char *path, size_t map_size,
                                 size_t map_limit, struct rt_error *err)
{
    enum rt_code code;

    *env = (struct store_lmdb_env){.path = rt_xstrdup(path), .directory_fd = -1};
    env->map_limit = map_limit;
    (void)pthread_rwlock_init(&env->map_lock, NULL);

    code = open_directory(env, err);
    if (code == RT_OK)
        code = check_not_emptied(env, err);
    if (code == RT_OK)
        code = check_pages(env, err);
    if (code == RT_OK)
        code = open_env(env, map_size, err);
    if (code == RT_OK)
        code = open_database(env, err);
    if (code == RT_OK)
        code = check_format(env, err);
    if (code == RT_OK)
        take_map_size(env);
    return code;
}

void store_lmdb_env_close(struct store_lmdb_env *env)
{
    env->files = store_files_free(env->files);
    if (env->env)
        mdb_env_close(env->env);
    env->env = NULL;
    if (env->directory_fd >= 0)
        (void)close(env->directory_fd);
    env->directory_fd = -1;
    (void)pthread_rwlock_destroy(&env->map_lock);
    rt_freep(&env->path);
}

/* LMDB unmaps the old map first and does not survive a failure, so the new one is tried before. */
static bool can_map(struct store_lmdb_env *env, size_t map_size)
{
    mdb_filehandle_t fd;
    void *map;

    (void)mdb_env_get_fd(env->env, &fd);
    map = mmap(NULL, map_size, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return false;
    (void)munmap(map, map_size);
    return true;
}

/* With map_lock held for writing. Size 0 takes the size that another process has set. */
static bool set_map_size(struct store_lmdb_env *env, size_t map_size)
{
    MDB_envinfo info;

    if (map_size > 0 && !can_map(env, map_size))
        return false;
    if (mdb_env_set_mapsize(env->env, map_size) != 0) {
        env->is_unmapped = true;
        return false;
    }
    (void)mdb_env_info(env->env, &info);
    env->map_size = info.me_mapsize;
    return true;
}

bool store_lmdb_env_grow(struct store_lmdb_env *env)
{
    bool has_grown = false;

    (void)pthread_rwlock_wrlock(&env->map_lock);
    if (!env->is_unmapped && env->map_size < env->map_limit)
        has_grown = set_map_size(env, env->map_size > env->map_limit / 2 ? env->map_limit
                                                                         : env->map_size * 2);
    (void)pthread_rwlock_unlock(&env->map_lock);
    return has_grown;
}

bool store_lmdb_env_set_reserve(struct store_lmdb_env *env, size_t reserve)
{
    bool is_set;

    (void)pthread_rwlock_wrlock(&env->map_lock);
    is_set = !env->is_unmapped && set_map_size(env, env->map_limit + reserve);
    (void)pthread_rwlock_unlock(&env->map_lock);
    return is_set;
}

static void follow_map(struct store_lmdb_env *env)
{
    (void)pthread_rwlock_wrlock(&env->map_lock);
    if (!env->is_unmapped)
        (void)set_map_size(env, 0);
    (void)pthread_rwlock_unlock(&env->map_lock);
}

int store_lmdb_env_begin(struct store_lmdb_env *env, unsigned int flags, MDB_txn **ret_txn)
{
    int result = MDB_MAP_RESIZED;

    for (int attempt = 0; attempt < 2 && result == MDB_MAP_RESIZED; attempt++) {
        if (attempt > 0)
            follow_map(env);
        (void)pthread_rwlock_rdlock(&env->map_lock);
        result = env->is_unmapped ? MDB_PANIC : mdb_txn_begin(env->env, NULL, flags, ret_txn);
        if (result != 0)
            (void)pthread_rwlock_unlock(&env->map_lock);
    }
    return result;
}

void store_lmdb_env_end(struct store_lmdb_env *env)
{
    (void)pthread_rwlock_unlock(&env->map_lock);
}

bool store_lmdb_env_is_linked(const struct store_lmdb_env *env)
{
    mdb_filehandle_t fd;

    (void)mdb_env_get_fd(env->env, &fd);
    return store_file_is_linked(fd);
}

static bool report(const MDB_val *key, const MDB_val *data, store_row_fn on_row,
                   store_row_fn on_corrupt, void *ctx)
{
    struct rt_bytes name = rt_bytes_of(key->mv_data, key->mv_size);
    struct rt_bytes stored = rt_bytes_of(data->mv_data, data->mv_size);
    struct rt_bytes value;

    if (store_lmdb_unseal(name, stored, &value))
        return on_row(name, value, ctx);
    return !on_corrupt || on_corrupt(name, stored, ctx);
}

static int walk(MDB_cursor *cursor, struct rt_bytes prefix, store_row_fn on_row,
                store_row_fn on_corrupt, void *ctx)
{
    MDB_val key = {.mv_size = prefix.size, .mv_data = (void *)prefix.data};
    MDB_val data;
    int result = mdb_cursor_get(cursor, &key, &data, prefix.size > 0 ? MDB_SET_RANGE : MDB_FIRST);

    while (result == 0 && rt_bytes_has_prefix(rt_bytes_of(key.mv_data, key.mv_size), prefix)) {
        if (!report(&key, &data, on_row, on_corrupt, ctx))
            return 0;
        result = mdb_cursor_get(cursor, &key, &data, MDB_NEXT);
    }
    return result == MDB_NOTFOUND ? 0 : result;
}

enum rt_code store_lmdb_env_range(struct store_lmdb_env *env, struct rt_bytes prefix,
                                  store_row_fn on_row, store_row_fn on_corrupt, void *ctx,
                                  struct rt_error *err)
{
    MDB_cursor *cursor;
    MDB_txn *txn;
    int result;

    /* No key is that long, and LMDB refuses to look for it. */
    if (prefix.size > STORE_KEY_MAX)
        return RT_OK;
    result = store_lmdb_env_begin(env, MDB_RDONLY, &txn);
    if (result != 0)
        return store_lmdb_fail(err, result, "reading store '%s'", env->path);
    result = mdb_cursor_open(txn, env->dbi, &cursor);
    if (result == 0) {
        result = walk(cursor, prefix, on_row, on_corrupt, ctx);
        mdb_cursor_close(cursor);
    }
    mdb_txn_abort(txn);
    store_lmdb_env_end(env);
    return result == 0 ? RT_OK : store_lmdb_fail(err, result, "reading store '%s'", env->path);
}
