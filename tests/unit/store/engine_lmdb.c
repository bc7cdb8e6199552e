/*
 * The LMDB engine for the conformance suite, in a temporary directory. With STORE_TEST_FILES all of
 * its rows are mirrored in files, and whenever it is closed these are what the rows say.
 */
#include <criterion/criterion.h>
#include <lmdb.h>
#include <uv.h>

#include "runtime/store/lmdb.h"
#include "tests/unit/store/harness.h"
#include "tests/unit/store/temporary.h"

#ifdef STORE_TEST_FILES
#include "tests/unit/store/mirror.h"
#endif

static uv_loop_t loop;
static bool is_open;
static bool is_small_store;
static store_done_cb saved_on_done;
static void *saved_ctx;

static void drive(struct store *store)
{
    (void)uv_run(&loop, UV_RUN_ONCE);
}

static void on_closed(void *ctx)
{
    *(bool *)ctx = true;
}

static void close_now(struct store *store)
{
    bool is_closed = false;

    store_close(store, on_closed, &is_closed);
    while (!is_closed)
        drive(store);
}

static struct store *open_with(struct store_lmdb_options options)
{
    struct rt_error err = RT_ERROR_INIT;
    struct store *store = NULL;

    options.path = temporary_path("store");
    options.loop = &loop;
    if (is_small_store)
        options.map_limit_bytes = SMALL_STORE_BYTES;
    cr_assert_eq(store_lmdb_open(&options, saved_on_done, saved_ctx, &store, &err), RT_OK, "%s",
                 err.message);
    return store;
}

#ifdef STORE_TEST_FILES

/* An engine without a mirror changes no file. */
static void check_files(void)
{
    struct store *store = open_with((struct store_lmdb_options){0});
    const char *difference = mirror_differs(store, 0);

    close_now(store);
    cr_assert_null(difference, "%s", difference);
}

static struct store *open_engine(void)
{
    return open_with((struct store_lmdb_options){.files = mirror_options()});
}

#else

static void check_files(void)
{
}

static struct store *open_engine(void)
{
    return open_with((struct store_lmdb_options){0});
}

#endif

static struct store *reopen(store_done_cb on_done, void *ctx)
{
    saved_on_done = on_done;
    saved_ctx = ctx;
    check_files();
    return open_engine();
}

static struct store *open_lmdb(store_done_cb on_done, void *ctx, bool is_small)
{
    cr_assert_eq(uv_loop_init(&loop), 0);
    is_open = true;
    is_small_store = is_small;
    saved_on_done = on_done;
    saved_ctx = ctx;
    return open_engine();
}

/* Flips a bit of the last byte, through LMDB itself. */
static void flip(struct rt_bytes name)
{
    MDB_val key = {.mv_size = name.size, .mv_data = (void *)name.data};
    MDB_val data;
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    uint8_t copy[256];

    cr_assert_eq(mdb_env_create(&env), 0);
    cr_assert_eq(mdb_env_open(env, temporary_path("store"), 0, 0600), 0);
    cr_assert_eq(mdb_txn_begin(env, NULL, 0, &txn), 0);
    cr_assert_eq(mdb_dbi_open(txn, NULL, 0, &dbi), 0);
    cr_assert_eq(mdb_get(txn, dbi, &key, &data), 0);
    cr_assert_leq(data.mv_size, sizeof(copy));
    memcpy(copy, data.mv_data, data.mv_size);
    copy[data.mv_size - 1] ^= 1;
    data.mv_data = copy;
    cr_assert_eq(mdb_put(txn, dbi, &key, &data, 0), 0);
    cr_assert_eq(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
}

static struct store *corrupt(struct store *store, struct rt_bytes key)
{
    close_now(store);
    flip(key);
    return reopen(saved_on_done, saved_ctx);
}

static void clean_up(void)
{
    if (is_open) {
        check_files();
        cr_assert_eq(uv_loop_close(&loop), 0, "handles left on the loop");
    }
    is_open = false;
    temporary_remove();
}

const struct engine engine = {
    .is_durable = true,
    .open = open_lmdb,
    .drive = drive,
    .reopen = reopen,
    .corrupt = corrupt,
    .clean_up = clean_up,
};
