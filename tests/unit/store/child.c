/*
 * Helper processes of the store tests: what has to happen in another process.
 *
 *   commit PATH   commits rising counters for ever and prints each once it is durable
 *   mirror PATH   the same with a mirror of all rows at the mount point beside PATH, and deletes
 *                 every third counter again
 *   grow PATH     makes the map of an open store larger, as a tool of LMDB would
 *   hold PATH     holds a data directory until standard input ends
 */
#include <lmdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "runtime/store/data_dir.h"
#include "runtime/store/lmdb.h"

enum {
    IN_FLIGHT = 32,
    GROWN_SIZE = 64 * 1024 * 1024,
    GROWN_VALUE = 4 * 1024 * 1024,
};

static struct store *store;
static unsigned long long counter;
static bool deletes;

static void submit_next(void)
{
    struct store_txn *txn = store_txn_new();
    char key[32];

    (void)snprintf(key, sizeof(key), "%020llu", ++counter);
    store_txn_put(txn, rt_bytes_of_string(key), RT_BYTES_LITERAL("value"));
    if (deletes && counter > IN_FLIGHT && counter % 3 == 0) {
        (void)snprintf(key, sizeof(key), "%020llu", counter - IN_FLIGHT);
        store_txn_delete(txn, rt_bytes_of_string(key));
    }
    store_submit(store, txn);
}

static void on_done(struct store_txn *txn, void *ctx)
{
    (void)ctx;
    if (txn->outcome == STORE_COMMITTED) {
        (void)!write(STDOUT_FILENO, txn->operations[0].key.data, txn->operations[0].key.size);
        (void)!write(STDOUT_FILENO, "\n", 1);
    }
    (void)store_txn_free(txn);
    submit_next();
}

static bool mirror_row(struct rt_bytes row, struct rt_bytes value, struct rt_bytes *ret_key,
                       struct rt_bytes *ret_content)
{
    *ret_key = row;
    *ret_content = value;
    return true;
}

static int commit(const char *path, const struct store_files_options *files)
{
    struct store_lmdb_options options = {.path = path, .loop = uv_default_loop(), .files = files};
    struct rt_error err = RT_ERROR_INIT;

    if (store_lmdb_open(&options, on_done, NULL, &store, &err) != RT_OK) {
        (void)fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    for (int i = 0; i < IN_FLIGHT; i++)
        submit_next();
    return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}

static int mirror(const char *path)
{
    char mount[512];
    struct store_files_options files = {
        .mount = mount, .id = "0123456789abcdef", .row = mirror_row};

    (void)snprintf(mount, sizeof(mount), "%.400s/../mount", path);
    deletes = true;
    return commit(path, &files);
}

static int grow(const char *path)
{
    static char value[GROWN_VALUE];
    MDB_val key = {.mv_size = 5, .mv_data = (char[]){"grown"}};
    MDB_val data = {.mv_size = sizeof(value), .mv_data = value};
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;

    if (mdb_env_create(&env) != 0 || mdb_env_set_mapsize(env, GROWN_SIZE) != 0 ||
        mdb_env_open(env, path, 0, 0600) != 0 || mdb_txn_begin(env, NULL, 0, &txn) != 0 ||
        mdb_dbi_open(txn, NULL, 0, &dbi) != 0 || mdb_put(txn, dbi, &key, &data, 0) != 0 ||
        mdb_txn_commit(txn) != 0)
        return 1;
    mdb_env_close(env);
    return 0;
}

static int hold(const char *path)
{
    struct rt_error err = RT_ERROR_INIT;
    struct store_data_dir *dir;
    char byte;

    if (store_data_dir_new(path, &dir, &err) != RT_OK) {
        (void)fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    (void)printf("%d\n", (int)getpid());
    (void)fflush(stdout);
    (void)!read(STDIN_FILENO, &byte, 1);
    (void)store_data_dir_free(dir);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "commit") == 0)
        return commit(argv[2], NULL);
    if (argc == 3 && strcmp(argv[1], "mirror") == 0)
        return mirror(argv[2]);
    if (argc == 3 && strcmp(argv[1], "grow") == 0)
        return grow(argv[2]);
    if (argc == 3 && strcmp(argv[1], "hold") == 0)
        return hold(argv[2]);
    return 2;
}
