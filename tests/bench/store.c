/*
 * Durable writes of one storage engine: groups of so many, each group on disk before the next one
 * begins. Prints one JSON object.
 *
 *   bench_store lmdb|rocksdb DIRECTORY GROUP SECONDS
 *
 * A write is what a PUT costs an instance: its row is read and compared, then the row (60 bytes)
 * and the value (100 bytes) are written; 100,000 keys in random order, all there before. LMDB is
 * the engine of runtime/store with its thread and its checksums, one transaction a group; RocksDB
 * is called from here, one synchronous batch a group, without compression. The directory must not
 * exist.
 *
 * One thread, and those of the engines.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uv.h>

#include "runtime/base/alloc.h"
#include "runtime/store/lmdb.h"

#ifdef BENCH_ROCKSDB
#include <rocksdb/c.h>
#endif

enum {
    N_KEYS = 100000,
    PREPARED_GROUP = 1000,
    ROW_SIZE = 60,
    VALUE_SIZE = 100,
    KEY_SIZE = 17, /* 16, and 'r' or 'v': a key's rows are neighbours, as an instance has them */
    GROUP_MAX = 4096,
    SECONDS_MAX = 600,
};

struct engine {
    const char *name;
    void (*open)(const char *path);
    /* Writes these keys; returns when they are durable. */
    void (*write)(const uint32_t *keys, size_t n, bool compares);
    void (*close)(void);
};

static uint8_t row[ROW_SIZE];
static uint8_t value[VALUE_SIZE];

static uint64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

RT_NORETURN static void fail(const char *what)
{
    (void)fprintf(stderr, "bench_store: %s\n", what);
    exit(1);
}

static void name_key(char *ret_key, uint32_t key, char kind)
{
    (void)snprintf(ret_key, KEY_SIZE + 1, "key-%012" PRIu32 "%c", key, kind);
}

/* ---- LMDB ------------------------------------------------------------------------------------ */

static uv_loop_t loop;
static struct store *store;
static bool is_pending;

static void on_done(struct store_txn *txn, void *ctx)
{
    (void)ctx;
    if (txn->outcome != STORE_COMMITTED)
        fail("LMDB: a write was not committed");
    is_pending = false;
    (void)store_txn_free(txn);
}

static void open_lmdb(const char *path)
{
    struct store_lmdb_options options = {.path = path, .loop = &loop};
    struct rt_error err = RT_ERROR_INIT;

    if (uv_loop_init(&loop) != 0 || store_lmdb_open(&options, on_done, NULL, &store, &err) != RT_OK)
        fail(err.message);
}

static void write_lmdb(const uint32_t *keys, size_t n, bool compares)
{
    struct store_txn *txn = store_txn_new();
    char key[KEY_SIZE + 1];

    for (size_t i = 0; i < n; i++) {
        name_key(key, keys[i], 'r');
        if (compares)
            store_txn_compare(txn, rt_bytes_of(key, KEY_SIZE), rt_bytes_of(row, sizeof(row)));
        store_txn_put(txn, rt_bytes_of(key, KEY_SIZE), rt_bytes_of(row, sizeof(row)));
        key[KEY_SIZE - 1] = 'v';
        store_txn_put(txn, rt_bytes_of(key, KEY_SIZE), rt_bytes_of(value, sizeof(value)));
    }
    is_pending = true;
    store_submit(store, txn);
    while (is_pending)
        (void)uv_run(&loop, UV_RUN_ONCE);
}

static void on_closed(void *ctx)
{
    (void)ctx;
}

static void close_lmdb(void)
{
    store_close(store, on_closed, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&loop);
}

/* ---- RocksDB --------------------------------------------------------------------------------- */

#ifdef BENCH_ROCKSDB

static rocksdb_t *database;
static rocksdb_options_t *database_options;
static rocksdb_writeoptions_t *synchronous;
static rocksdb_readoptions_t *plain;
static rocksdb_writebatch_t *batch;

static void check_rocksdb(char *message)
{
    if (message != NULL)
        fail(message);
}

static void open_rocksdb(const char *path)
{
    char *message = NULL;

    database_options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(database_options, 1);
    rocksdb_options_set_compression(database_options, rocksdb_no_compression);
    synchronous = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(synchronous, 1);
    plain = rocksdb_readoptions_create();
    batch = rocksdb_writebatch_create();
    database = rocksdb_open(database_options, path, &message);
    check_rocksdb(message);
}

static void compare_rocksdb(const char *key)
{
    char *message = NULL;
    size_t size = 0;
    rocksdb_pinnableslice_t *found = rocksdb_get_pinned(database, plain, key, KEY_SIZE, &message);
    const char *bytes = found == NULL ? NULL : rocksdb_pinnableslice_value(found, &size);

    check_rocksdb(message);
    if (bytes == NULL || size != sizeof(row) || memcmp(bytes, row, sizeof(row)) != 0)
        fail("RocksDB: a row is not what was written");
    rocksdb_pinnableslice_destroy(found);
}

static void write_rocksdb(const uint32_t *keys, size_t n, bool compares)
{
    char key[KEY_SIZE + 1];
    char *message = NULL;

    for (size_t i = 0; i < n; i++) {
        name_key(key, keys[i], 'r');
        if (compares)
            compare_rocksdb(key);
        rocksdb_writebatch_put(batch, key, KEY_SIZE, (const char *)row, sizeof(row));
        key[KEY_SIZE - 1] = 'v';
        rocksdb_writebatch_put(batch, key, KEY_SIZE, (const char *)value, sizeof(value));
    }
    rocksdb_write(database, synchronous, batch, &message);
    check_rocksdb(message);
    rocksdb_writebatch_clear(batch);
}

static void close_rocksdb(void)
{
    rocksdb_writebatch_destroy(batch);
    rocksdb_close(database);
    rocksdb_readoptions_destroy(plain);
    rocksdb_writeoptions_destroy(synchronous);
    rocksdb_options_destroy(database_options);
}

#endif

/* ---- the load -------------------------------------------------------------------------------- */

static const struct engine engines[] = {
    {"lmdb", open_lmdb, write_lmdb, close_lmdb},
#ifdef BENCH_ROCKSDB
    {"rocksdb", open_rocksdb, write_rocksdb, close_rocksdb},
#endif
};

static const struct engine *find_engine(const char *name)
{
    for (size_t i = 0; i < RT_ARRAY_SIZE(engines); i++)
        if (strcmp(engines[i].name, name) == 0)
            return &engines[i];
    if (strcmp(name, "rocksdb") == 0)
        fail("built without RocksDB: install librocksdb-dev, then meson setup --reconfigure");
    fail("no such engine");
}

static void prepare(const struct engine *engine)
{
    uint32_t keys[PREPARED_GROUP];

    for (uint32_t key = 0; key < N_KEYS; key += PREPARED_GROUP) {
        for (uint32_t i = 0; i < PREPARED_GROUP; i++)
            keys[i] = key + i;
        engine->write(keys, PREPARED_GROUP, false);
    }
}

/* Writes a second. The keys of a group differ: the stride has no factor in common with N_KEYS. */
static double measure(const struct engine *engine, size_t group, double seconds)
{
    static uint32_t keys[GROUP_MAX];
    uint64_t begin_ns = now_ns();
    uint64_t end_ns = begin_ns + (uint64_t)(seconds * 1e9);
    uint64_t at_ns = begin_ns;
    uint64_t n = 0;

    while (at_ns < end_ns) {
        for (size_t i = 0; i < group; i++)
            keys[i] = (uint32_t)((n + i) * 61803 % N_KEYS);
        engine->write(keys, group, true);
        n += group;
        at_ns = now_ns();
    }
    return (double)n * 1e9 / (double)(at_ns - begin_ns);
}

int main(int argc, char **argv)
{
    const struct engine *engine;
    long group = argc == 5 ? strtol(argv[3], NULL, 10) : 0;
    double seconds = argc == 5 ? strtod(argv[4], NULL) : 0;

    if (argc != 5)
        fail("lmdb|rocksdb DIRECTORY GROUP SECONDS");
    if (group < 1 || group > GROUP_MAX)
        fail("writes of a group: 1..4096");
    if (!(seconds > 0 && seconds <= SECONDS_MAX))
        fail("seconds: above 0, at most 600");
    engine = find_engine(argv[1]);
    memset(row, 'r', sizeof(row));
    memset(value, 'v', sizeof(value));
    engine->open(argv[2]);
    prepare(engine);
    (void)printf("{\"rate\": %.1f}\n", measure(engine, (size_t)group, seconds));
    engine->close();
    return 0;
}
