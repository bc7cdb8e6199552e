/*
 * LMDB engine: see lmdb.h. This file: life, the queue and the worker thread. Invariants: a
 * transaction is in `queued`, in the worker's hands or in `done`, always in submission order, and
 * is delivered only on the loop's thread; the worker never calls out.
 */
#include "runtime/store/lmdb.h"

#include <signal.h>

#include "runtime/base/alloc.h"
#include "runtime/store/lmdb_internal.h"

enum {
    BATCH_OPERATIONS_MAX = 65536,
    BATCH_BYTES_MAX = 64 * 1024 * 1024,
};

struct lmdb {
    struct store base;
    struct store_lmdb_env env; /* the worker writes, ranges read */
    uv_async_t wake;           /* worker → loop; closed last */
    pthread_t worker;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t work_ready;
    struct rt_list queued; /* owned */
    struct rt_list done;   /* owned */
    bool stopping;
    bool stopped; /* the worker has left its loop and touches nothing any more */

    bool joined;                  /* loop thread only, like what follows */
    void (*on_closed)(void *ctx); /* set by close() */
    void *closed_ctx;
};

static const struct store_ops lmdb_ops;

static struct lmdb *lmdb_of(struct store *store)
{
    rt_assert(store->ops == &lmdb_ops);
    return RT_CONTAINER_OF(store, struct lmdb, base);
}

static void lmdb_submit(struct store *store, struct store_txn *txn)
{
    struct lmdb *lmdb = lmdb_of(store);
    bool was_empty;

    (void)pthread_mutex_lock(&lmdb->lock);
    rt_assert(!lmdb->stopping);
    was_empty = rt_list_is_empty(&lmdb->queued);
    rt_list_push_back(&lmdb->queued, &txn->link);
    if (was_empty)
        (void)pthread_cond_signal(&lmdb->work_ready);
    (void)pthread_mutex_unlock(&lmdb->lock);
}

/* Owned by the worker. */
struct batch {
    struct store_txn **txns; /* owned array */
    size_t n;
    size_t capacity;
};

/* Moves what one commit may hold, at least one transaction. */
static void take_batch(struct rt_list *queued, struct batch *batch)
{
    size_t n_operations = 0;
    size_t n_bytes = 0;

    batch->n = 0;
    while (!rt_list_is_empty(queued) && n_operations < BATCH_OPERATIONS_MAX &&
           n_bytes < BATCH_BYTES_MAX) {
        struct rt_list *node = rt_list_pop_front(queued);
        struct store_txn *txn = RT_LIST_ENTRY(node, struct store_txn, link);

        if (batch->n == batch->capacity) {
            batch->capacity = batch->capacity == 0 ? 64 : batch->capacity * 2;
            batch->txns = rt_xrealloc(batch->txns, batch->capacity * sizeof(struct store_txn *));
        }
        batch->txns[batch->n++] = txn;
        n_operations += txn->n_operations;
        n_bytes += txn->arena.used;
    }
}

static void *work(void *ctx)
{
    struct lmdb *lmdb = ctx;
    struct batch batch = {0};
    bool poisoned = false;

    (void)pthread_mutex_lock(&lmdb->lock);
    for (;;) {
        while (rt_list_is_empty(&lmdb->queued) && !lmdb->stopping)
            (void)pthread_cond_wait(&lmdb->work_ready, &lmdb->lock);
        if (rt_list_is_empty(&lmdb->queued))
            break;
        take_batch(&lmdb->queued, &batch);
        (void)pthread_mutex_unlock(&lmdb->lock);

        store_lmdb_batch_run(&lmdb->env, batch.txns, batch.n, &poisoned);

        (void)pthread_mutex_lock(&lmdb->lock);
        for (size_t i = 0; i < batch.n; i++)
            rt_list_push_back(&lmdb->done, &batch.txns[i]->link);
        (void)uv_async_send(&lmdb->wake);
    }
    lmdb->stopped = true;
    (void)uv_async_send(&lmdb->wake);
    (void)pthread_mutex_unlock(&lmdb->lock);
    (void)rt_free(batch.txns);
    return NULL;
}

static void deinit(struct lmdb *lmdb)
{
    store_lmdb_env_close(&lmdb->env);
    (void)pthread_mutex_destroy(&lmdb->lock);
    (void)pthread_cond_destroy(&lmdb->work_ready);
}

static void on_wake_closed(uv_handle_t *handle)
{
    struct lmdb *lmdb = handle->data;
    void (*on_closed)(void *ctx) = lmdb->on_closed;
    void *ctx = lmdb->closed_ctx;

    deinit(lmdb);
    (void)rt_free(lmdb);
    on_closed(ctx);
}

static void on_wake(uv_async_t *wake)
{
    struct lmdb *lmdb = wake->data;
    struct rt_list done = RT_LIST_INIT(done);
    struct rt_list *node;
    bool stopped;

    (void)pthread_mutex_lock(&lmdb->lock);
    rt_list_splice_back(&done, &lmdb->done);
    stopped = lmdb->stopped;
    (void)pthread_mutex_unlock(&lmdb->lock);

    while ((node = rt_list_pop_front(&done)) != NULL)
        lmdb->base.on_done(RT_LIST_ENTRY(node, struct store_txn, link), lmdb->base.ctx);

    /* Once stopped nothing is added to `done`, and this call has delivered all of it. */
    if (stopped && !lmdb->joined) {
        lmdb->joined = true;
        (void)pthread_join(lmdb->worker, NULL);
        uv_close((uv_handle_t *)&lmdb->wake, on_wake_closed);
    }
}

static enum rt_code lmdb_range(struct store *store, struct rt_bytes prefix, store_row_fn on_row,
                               store_row_fn on_corrupt, void *ctx, struct rt_error *err)
{
    return store_lmdb_env_range(&lmdb_of(store)->env, prefix, on_row, on_corrupt, ctx, err);
}

static void lmdb_close(struct store *store, void (*on_closed)(void *ctx), void *ctx)
{
    struct lmdb *lmdb = lmdb_of(store);

    rt_assert(!lmdb->on_closed);
    lmdb->on_closed = on_closed;
    lmdb->closed_ctx = ctx;
    (void)pthread_mutex_lock(&lmdb->lock);
    lmdb->stopping = true;
    (void)pthread_cond_signal(&lmdb->work_ready);
    (void)pthread_mutex_unlock(&lmdb->lock);
}

static const struct store_ops lmdb_ops = {
    .submit = lmdb_submit,
    .range = lmdb_range,
    .close = lmdb_close,
};

/* With all signals blocked, which the thread inherits: libuv's handlers belong to other threads. */
static int start_worker(struct lmdb *lmdb)
{
    sigset_t all;
    sigset_t before;
    int result;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    result = pthread_create(&lmdb->worker, NULL, work, lmdb);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result;
}

static void on_start_failed(uv_handle_t *handle)
{
    (void)rt_free(handle->data);
}

/* Takes lmdb on failure. The handle comes first because the worker uses it; when there is then no
 * worker, the loop releases the handle's memory. */
static enum rt_code start(struct lmdb *lmdb, uv_loop_t *loop, struct rt_error *err)
{
    int result = uv_async_init(loop, &lmdb->wake, on_wake);
    enum rt_code code;

    if (result < 0) {
        code = rt_fail_uv(err, result, "starting store '%s'", lmdb->env.path);
        deinit(lmdb);
        (void)rt_free(lmdb);
        return code;
    }
    lmdb->wake.data = lmdb;
    result = start_worker(lmdb);
    if (result != 0) {
        code = rt_fail_errno(err, result, "starting store '%s'", lmdb->env.path);
        deinit(lmdb);
        uv_close((uv_handle_t *)&lmdb->wake, on_start_failed);
        return code;
    }
    return RT_OK;
}

/* The map consists of whole pages of the system. */
static size_t round_up(size_t size)
{
    size_t unit = STORE_LMDB_MAP_SIZE_MIN;

    return size > SIZE_MAX - unit ? SIZE_MAX / unit * unit : (size + unit - 1) / unit * unit;
}

static enum rt_code choose_sizes(const struct store_lmdb_options *options, size_t *ret_size,
                                 size_t *ret_limit, struct rt_error *err)
{
    size_t size = options->map_size_bytes;
    size_t limit = options->map_limit_bytes;

    if (size == 0 && limit > 0 && limit < STORE_LMDB_MAP_SIZE_DEFAULT)
        size = limit;
    else if (size == 0)
        size = STORE_LMDB_MAP_SIZE_DEFAULT;
    if (limit == 0)
        limit = size > STORE_LMDB_MAP_LIMIT_DEFAULT ? size : STORE_LMDB_MAP_LIMIT_DEFAULT;
    if (size < STORE_LMDB_MAP_SIZE_MIN || limit < size)
        return rt_fail(err, RT_INVALID_ARGUMENT,
                       "store '%s': map size %zu must be at least %zu and at most the limit %zu",
                       options->path, size, STORE_LMDB_MAP_SIZE_MIN, limit);
    *ret_size = round_up(size);
    *ret_limit = round_up(limit);
    return RT_OK;
}

enum rt_code store_lmdb_open(const struct store_lmdb_options *options, store_done_cb on_done,
                             void *ctx, struct store **ret_store, struct rt_error *err)
{
    struct lmdb *lmdb;
    size_t map_size = 0;
    size_t map_limit = 0;
    enum rt_code code = choose_sizes(options, &map_size, &map_limit, err);

    if (code != RT_OK)
        return code;
    lmdb = rt_xalloc(sizeof(*lmdb));
    code = store_lmdb_env_open(&lmdb->env, options->path, map_size, map_limit, err);
    if (code == RT_OK && options->files)
        code = store_lmdb_files_open(&lmdb->env, options->files, err);
    if (code != RT_OK) {
        store_lmdb_env_close(&lmdb->env);
        (void)rt_free(lmdb);
        return code;
    }
    lmdb->base = (struct store){.ops = &lmdb_ops, .on_done = on_done, .ctx = ctx};
    (void)pthread_mutex_init(&lmdb->lock, NULL);
    (void)pthread_cond_init(&lmdb->work_ready, NULL);
    rt_list_init(&lmdb->queued);
    rt_list_init(&lmdb->done);

    code = start(lmdb, options->loop, err);
    if (code == RT_OK)
        *ret_store = &lmdb->base;
    return code;
}
