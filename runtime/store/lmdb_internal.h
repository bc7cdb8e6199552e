/*
 * Shared by the parts of the LMDB engine only: lmdb.c (life, queue, thread), lmdb_env.c (files,
 * map, ranges), lmdb_check.c (pages at start), lmdb_files.c (the mirror at start) and lmdb_batch.c
 * (inside a write transaction).
 */
#ifndef STORE_LMDB_INTERNAL_H
#define STORE_LMDB_INTERNAL_H

#include <lmdb.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/store.h"
#include "runtime/store/files.h"

/* The opened environment. A transaction holds map_lock for reading; whoever changes the size of the
 * map holds it for writing, because LMDB allows that only while this process has no transaction. */
struct store_lmdb_env {
    MDB_env *env; /* owned */
    MDB_dbi dbi;
    char *path;       /* owned */
    int directory_fd; /* owned, flock'ed; -1 when closed */
    size_t map_limit;
    size_t map_size;  /* under map_lock */
    bool is_unmapped; /* a resize failed: LMDB must not be touched any more */
    pthread_rwlock_t map_lock;
    struct store_files *files; /* owned; NULL without a mirror. The worker's once there is one */
};

RT_MUST_USE enum rt_code store_lmdb_env_open(struct store_lmdb_env *env, const char *path,
                                             size_t map_size, size_t map_limit,
                                             struct rt_error *err);
/* Accepts what a failed open left behind. */
void store_lmdb_env_close(struct store_lmdb_env *env);

RT_MUST_USE enum rt_code store_lmdb_env_range(struct store_lmdb_env *env, struct rt_bytes prefix,
                                              store_row_fn on_row, store_row_fn on_corrupt,
                                              void *ctx, struct rt_error *err);

/* Begins a transaction (flags: 0 or MDB_RDONLY) and keeps the map as it is until end(); follows a
 * map that another process has grown. An LMDB result; after a failure there is nothing to end. */
int store_lmdb_env_begin(struct store_lmdb_env *env, unsigned int flags, MDB_txn **ret_txn);

/* After mdb_txn_commit or mdb_txn_abort. */
void store_lmdb_env_end(struct store_lmdb_env *env);

/* Whether data.mdb is still in a directory. */
bool store_lmdb_env_is_linked(const struct store_lmdb_env *env);

/* Doubles the map, up to its limit. false when it kept its size. Waits for transactions to end. */
bool store_lmdb_env_grow(struct store_lmdb_env *env);

/* Makes the map larger than its limit by `reserve` bytes, or takes them back as far as they are
 * not used. false when it kept its size. */
bool store_lmdb_env_set_reserve(struct store_lmdb_env *env, size_t reserve);

/* Fills err from a result of LMDB, which is an errno when positive. */
enum rt_code store_lmdb_fail(struct rt_error *err, int result, const char *format, ...)
    RT_PRINTF(3, 4);

/* Reads the structure, not the values, of data.mdb if there is one. DATA_LOSS when LMDB could not
 * work with it. */
RT_MUST_USE enum rt_code store_lmdb_check(int directory_fd, struct rt_error *err);

/* Opens the mirror and makes it what the rows say. What it leaves behind is closed with env. */
RT_MUST_USE enum rt_code store_lmdb_files_open(struct store_lmdb_env *env,
                                               const struct store_files_options *options,
                                               struct rt_error *err);

/* Checks the stored form; false when it is not what store_lmdb_seal() wrote for this key. */
bool store_lmdb_unseal(struct rt_bytes key, struct rt_bytes stored, struct rt_bytes *ret_value);

/* Runs and commits the n ≥ 1 transactions of `batch`, in order, and sets their outcomes. *poisoned
 * is read and set: once true nothing is tried any more. The worker thread. */
void store_lmdb_batch_run(struct store_lmdb_env *env, struct store_txn **batch, size_t n,
                          bool *poisoned);

#endif
