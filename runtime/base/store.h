/*
 * The store interface: ordered key-value rows behind transactions. Engines live in runtime/store.
 *
 * A core creates transactions as data; a shell (or the simulator) submits them to an engine, which
 * completes each exactly once, in the order of submission, never before submit() returned.
 *
 * Guarantees of every engine:
 *   - STORE_COMMITTED: all compares held, all operations are applied and durable (fsync).
 *   - STORE_COMPARE_FAILED: some compare did not hold; nothing was applied.
 *   - STORE_FULL: no room (disk or configured size); nothing was applied; later ones may succeed.
 *   - STORE_UNKNOWN: the commit failed or its outcome is not known; it may show up later. After a
 *     local engine said this every later transaction says it too, until it is opened again.
 *   - a transaction sees the effects of all committed ones submitted before it.
 *   - a transaction that only reads never says STORE_FULL, and goes on being answered after an
 *     STORE_UNKNOWN as long as the engine can read: a disk that takes no writes is no reason not to
 *     know what is on it.
 */
#ifndef RT_BASE_STORE_H
#define RT_BASE_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/arena.h"
#include "runtime/base/bytes.h"
#include "runtime/base/error.h"
#include "runtime/base/list.h"

enum {
    STORE_KEY_MAX = 511, /* bytes; LMDB's limit */
    STORE_TXN_OPERATIONS_MAX = 16384,
};

enum store_outcome {
    STORE_COMMITTED,
    STORE_COMPARE_FAILED,
    STORE_FULL,
    STORE_UNKNOWN,
};

enum store_operation_kind {
    STORE_COMPARE,        /* the row exists and has exactly this value */
    STORE_COMPARE_ABSENT, /* there is no such row */
    STORE_PUT,
    STORE_DELETE, /* deleting an absent row is no error */
    STORE_READ,   /* the engine fills is_found and value */
};

struct store_operation {
    enum store_operation_kind kind;
    struct rt_bytes key;   /* 1..STORE_KEY_MAX bytes, in the transaction's arena */
    struct rt_bytes value; /* COMPARE, PUT, a READ that was committed: in the transaction's arena */
    bool is_found;         /* READ: there is such a row, and it passes its checksum */
};

enum {
    STORE_TXN_FIRST_OPERATIONS = 4 /* for which no memory of their own is needed */
};

/* Owned by whoever created it until submitted, then by the engine until its completion. */
struct store_txn {
    struct rt_list link; /* free for the current owner's queues */
    struct rt_arena arena;
    struct store_operation *operations; /* `first`, or owned */
    size_t n_operations;
    size_t capacity;
    struct store_operation first[STORE_TXN_FIRST_OPERATIONS];
    enum store_outcome outcome; /* set by the engine before completion */
    void *ctx;                  /* for the creator */
};

struct store_txn *store_txn_new(void);
struct store_txn *store_txn_free(struct store_txn *txn);

/* Compares run before any put or delete, whatever the order of the calls. Key and value are
 * copied. Aborts past STORE_TXN_OPERATIONS_MAX or STORE_KEY_MAX: callers check their limits. */
void store_txn_compare(struct store_txn *txn, struct rt_bytes key, struct rt_bytes value);
void store_txn_compare_absent(struct store_txn *txn, struct rt_bytes key);
void store_txn_put(struct store_txn *txn, struct rt_bytes key, struct rt_bytes value);
void store_txn_delete(struct store_txn *txn, struct rt_bytes key);
void store_txn_read(struct store_txn *txn, struct rt_bytes key);

/* It has operations, and all of them read. */
bool store_txn_only_reads(const struct store_txn *txn);

/* For engines: what the READ found. Copied. */
void store_operation_found(struct store_txn *txn, struct store_operation *operation,
                           struct rt_bytes value);

/* false stops the walk. Views are valid during the call only. */
typedef bool (*store_row_fn)(struct rt_bytes key, struct rt_bytes value, void *ctx);
/* One completed transaction; ownership goes back to the receiver. */
typedef void (*store_done_cb)(struct store_txn *txn, void *ctx);

struct store;

struct store_ops {
    /* Takes the transaction. May be called from any thread that steps the core. */
    void (*submit)(struct store *store, struct store_txn *txn);
    /* Committed rows with this prefix in key order; blocks; meant for start-up and inspection. A
     * row that fails its checksum is reported to `on_corrupt` (may be NULL) instead. */
    enum rt_code (*range)(struct store *store, struct rt_bytes prefix, store_row_fn on_row,
                          store_row_fn on_corrupt, void *ctx, struct rt_error *err);
    /* All submitted transactions are completed, then the store is freed, then on_closed. */
    void (*close)(struct store *store, void (*on_closed)(void *ctx), void *ctx);
};

/* Embedded first in each engine. Completions are delivered on the thread the engine documents. */
struct store {
    const struct store_ops *ops;
    store_done_cb on_done;
    void *ctx; /* of on_done */
};

static inline void store_submit(struct store *store, struct store_txn *txn)
{
    store->ops->submit(store, txn);
}

RT_MUST_USE static inline enum rt_code store_range(struct store *store, struct rt_bytes prefix,
                                                   store_row_fn on_row, store_row_fn on_corrupt,
                                                   void *ctx, struct rt_error *err)
{
    return store->ops->range(store, prefix, on_row, on_corrupt, ctx, err);
}

static inline void store_close(struct store *store, void (*on_closed)(void *ctx), void *ctx)
{
    store->ops->close(store, on_closed, ctx);
}

#endif
