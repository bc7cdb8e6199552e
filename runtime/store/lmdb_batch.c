/*
 * Group commit: see lmdb.h. Invariants: outcomes are set in the order of submission, a transaction
 * whose compare fails has no effect, and one outcome other than STORE_UNKNOWN is only given when
 * it is certain. The worker thread.
 */
#include <errno.h>
#include <lmdb.h>
#include <string.h>
#include <xxhash.h>

#include "runtime/store/file.h"
#include "runtime/store/lmdb_internal.h"

enum {
    CHECKSUM_SIZE = 8,
    /* A transaction that deletes and puts at most this much may use the reserve. */
    SMALL_PUTS = 4096,
    RESERVE = 256 * 1024,
    /* A disk without room for this is why a write was cut short. */
    ROOM = 1024 * 1024,
};

/* What one attempt at a batch came to. */
enum attempt {
    ATTEMPT_DONE,
    ATTEMPT_MAP_FULL, /* nothing applied; a larger map would help */
    ATTEMPT_NO_ROOM,  /* nothing applied; disk full, or too many pages for one transaction */
    ATTEMPT_UNKNOWN,
};

static void checksum_of(struct rt_bytes key, struct rt_bytes value, uint8_t *ret_checksum)
{
    XXH64_hash_t seed = XXH3_64bits(key.data, key.size);
    XXH64_canonical_t canonical;

    XXH64_canonicalFromHash(&canonical, XXH3_64bits_withSeed(value.data, value.size, seed));
    memcpy(ret_checksum, canonical.digest, CHECKSUM_SIZE);
}

bool store_lmdb_unseal(struct rt_bytes key, struct rt_bytes stored, struct rt_bytes *ret_value)
{
    uint8_t expected[CHECKSUM_SIZE];
    struct rt_bytes value;

    if (stored.size < CHECKSUM_SIZE)
        return false;
    value = rt_bytes_of(stored.data + CHECKSUM_SIZE, stored.size - CHECKSUM_SIZE);
    checksum_of(key, value, expected);
    if (memcmp(expected, stored.data, CHECKSUM_SIZE) != 0)
        return false;
    *ret_value = value;
    return true;
}

static MDB_val key_of(const struct store_operation *operation)
{
    return (MDB_val){.mv_size = operation->key.size, .mv_data = (void *)operation->key.data};
}

/* Sets *ret_holds; an LMDB result. */
static int compare(const struct store_lmdb_env *env, MDB_txn *txn,
                   const struct store_operation *operation, bool *ret_holds)
{
    MDB_val key = key_of(operation);
    MDB_val data;
    struct rt_bytes value;
    int result = mdb_get(txn, env->dbi, &key, &data);

    if (result != 0 && result != MDB_NOTFOUND)
        return result;
    if (operation->kind == STORE_COMPARE_ABSENT)
        *ret_holds = result == MDB_NOTFOUND;
    else
        *ret_holds =
            result == 0 &&
            store_lmdb_unseal(operation->key, rt_bytes_of(data.mv_data, data.mv_size), &value) &&
            rt_bytes_equal(value, operation->value);
    return 0;
}

static int put(const struct store_lmdb_env *env, MDB_txn *txn,
               const struct store_operation *operation)
{
    MDB_val key = key_of(operation);
    MDB_val data = {.mv_size = CHECKSUM_SIZE + operation->value.size};
    uint8_t *stored;
    int result = mdb_put(txn, env->dbi, &key, &data, MDB_RESERVE);

    if (result != 0)
        return result;
    stored = data.mv_data;
    checksum_of(operation->key, operation->value, stored);
    if (operation->value.size > 0)
        memcpy(stored + CHECKSUM_SIZE, operation->value.data, operation->value.size);
    return 0;
}

static int erase(const struct store_lmdb_env *env, MDB_txn *txn,
                 const struct store_operation *operation)
{
    MDB_val key = key_of(operation);
    int result = mdb_del(txn, env->dbi, &key, NULL);

    return result == MDB_NOTFOUND ? 0 : result;
}

static int read_row(const struct store_lmdb_env *env, MDB_txn *txn, struct store_txn *work,
                    struct store_operation *operation)
{
    MDB_val key = key_of(operation);
    MDB_val data;
    struct rt_bytes value;
    int result = mdb_get(txn, env->dbi, &key, &data);

    operation->is_found = false; /* an attempt before this one may have found something */
    if (result == MDB_NOTFOUND)
        return 0;
    if (result == 0 &&
        store_lmdb_unseal(operation->key, rt_bytes_of(data.mv_data, data.mv_size), &value))
        store_operation_found(work, operation, value);
    return result;
}

static bool is_compare(const struct store_operation *operation)
{
    return operation->kind == STORE_COMPARE || operation->kind == STORE_COMPARE_ABSENT;
}

/* Compares first, then the rest; an LMDB result. */
static int run_one(const struct store_lmdb_env *env, MDB_txn *txn, struct store_txn *work)
{
    bool holds = true;
    int result = 0;

    for (size_t i = 0; i < work->n_operations && holds && result == 0; i++)
        if (is_compare(&work->operations[i]))
            result = compare(env, txn, &work->operations[i], &holds);
    work->outcome = holds ? STORE_COMMITTED : STORE_COMPARE_FAILED;

    for (size_t i = 0; i < work->n_operations && holds && result == 0; i++) {
        if (work->operations[i].kind == STORE_PUT)
            result = put(env, txn, &work->operations[i]);
        else if (work->operations[i].kind == STORE_DELETE)
            result = erase(env, txn, &work->operations[i]);
        else if (work->operations[i].kind == STORE_READ)
            result = read_row(env, txn, work, &work->operations[i]);
    }
    return result;
}

/* A disk that is full stops LMDB before it writes the meta page, so nothing was applied; but if it
 * was that page, LMDB has given up on the environment. */
static enum attempt judge_full_disk(struct store_lmdb_env *env)
{
    MDB_txn *txn;

    if (store_lmdb_env_begin(env, 0, &txn) != 0)
        return ATTEMPT_UNKNOWN;
    mdb_txn_abort(txn);
    store_lmdb_env_end(env);
    return ATTEMPT_NO_ROOM;
}

static enum attempt judge(struct store_lmdb_env *env, int result)
{
    switch (result) {
    case 0:
        return ATTEMPT_DONE;
    case MDB_MAP_FULL:
        return ATTEMPT_MAP_FULL;
    case MDB_TXN_FULL:
        return ATTEMPT_NO_ROOM;
    case ENOSPC:
    case EDQUOT:
        return judge_full_disk(env);
    case EIO:
        /* Also what LMDB says of a write that was cut short, as the last one before a disk is full
         * is. What it wrote belongs to no committed page. */
        return store_file_disk_is_full(env->directory_fd, ROOM) ? judge_full_disk(env)
                                                                : ATTEMPT_UNKNOWN;
    default:
        return ATTEMPT_UNKNOWN;
    }
}

static enum store_files_result prepare_files(struct store_lmdb_env *env, struct store_txn **batch,
                                             size_t n)
{
    return env->files ? store_files_prepare(env->files, batch, n) : STORE_FILES_DONE;
}

/* What the transaction came to becomes true of the files as well. */
static enum attempt conclude(struct store_lmdb_env *env, struct store_txn **batch, size_t n,
                             int result)
{
    enum attempt outcome = judge(env, result);

    /* A deleted file takes writes without a complaint, and nobody will ever read them. */
    if (result == 0 && !store_lmdb_env_is_linked(env))
        return ATTEMPT_UNKNOWN;
    if (!env->files || outcome == ATTEMPT_UNKNOWN)
        return outcome;
    if (outcome == ATTEMPT_DONE)
        return store_files_finish(env->files, batch, n) == STORE_FILES_DONE ? ATTEMPT_DONE
                                                                            : ATTEMPT_UNKNOWN;
    store_files_abandon(env->files);
    return outcome;
}

static enum attempt attempt(struct store_lmdb_env *env, struct store_txn **batch, size_t n)
{
    enum store_files_result prepared = STORE_FILES_DONE;
    MDB_txn *txn;
    int result = store_lmdb_env_begin(env, 0, &txn);

    if (result != 0)
        return ATTEMPT_UNKNOWN;
    for (size_t i = 0; i < n && result == 0; i++)
        result = run_one(env, txn, batch[i]);
    if (result == 0)
        prepared = prepare_files(env, batch, n);
    if (result == 0 && prepared == STORE_FILES_DONE)
        result = mdb_txn_commit(txn);
    else
        mdb_txn_abort(txn);
    store_lmdb_env_end(env);
    if (prepared != STORE_FILES_DONE)
        return prepared == STORE_FILES_NO_ROOM ? ATTEMPT_NO_ROOM : ATTEMPT_UNKNOWN;
    return conclude(env, batch, n, result);
}

static bool may_use_reserve(const struct store_txn *work)
{
    bool deletes = false;
    size_t put_size = 0;

    for (size_t i = 0; i < work->n_operations; i++) {
        if (work->operations[i].kind == STORE_PUT)
            put_size += work->operations[i].key.size + work->operations[i].value.size;
        deletes |= work->operations[i].kind == STORE_DELETE;
    }
    return deletes && put_size <= SMALL_PUTS;
}

/* For one transaction that did not fit into the largest map. */
static enum attempt attempt_with_reserve(struct store_lmdb_env *env, struct store_txn **txn)
{
    enum attempt outcome;

    if (!may_use_reserve(*txn) || !store_lmdb_env_set_reserve(env, RESERVE))
        return ATTEMPT_MAP_FULL;
    outcome = attempt(env, txn, 1);
    (void)store_lmdb_env_set_reserve(env, 0);
    return outcome;
}

static enum attempt attempt_in_larger_maps(struct store_lmdb_env *env, struct store_txn **batch,
                                           size_t n)
{
    enum attempt outcome = attempt(env, batch, n);

    while (outcome == ATTEMPT_MAP_FULL && store_lmdb_env_grow(env))
        outcome = attempt(env, batch, n);
    if (outcome == ATTEMPT_MAP_FULL && n == 1)
        outcome = attempt_with_reserve(env, batch);
    return outcome;
}

static bool read_only(struct store_lmdb_env *env, struct store_txn *work)
{
    MDB_txn *txn;
    int result;

    if (store_lmdb_env_begin(env, MDB_RDONLY, &txn) != 0)
        return false;
    result = run_one(env, txn, work);
    mdb_txn_abort(txn);
    store_lmdb_env_end(env);
    return result == 0;
}

/* Nothing is written any more. What only reads is answered as long as that works. */
static void run_poisoned(struct store_lmdb_env *env, struct store_txn **batch, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!store_txn_only_reads(batch[i]) || !read_only(env, batch[i]))
            batch[i]->outcome = STORE_UNKNOWN;
}

/* The halves of a batch that does not fit are tried on their own: few fsyncs when few do not fit,
 * and a depth that is the logarithm of the batch. */
void store_lmdb_batch_run(struct store_lmdb_env *env, struct store_txn **batch, size_t n,
                          bool *poisoned)
{
    switch (*poisoned ? ATTEMPT_UNKNOWN : attempt_in_larger_maps(env, batch, n)) {
    case ATTEMPT_DONE:
        break;
    case ATTEMPT_MAP_FULL:
    case ATTEMPT_NO_ROOM:
        if (n == 1) {
            batch[0]->outcome = STORE_FULL;
        } else {
            store_lmdb_batch_run(env, batch, n / 2, poisoned);
            store_lmdb_batch_run(env, batch + n / 2, n - n / 2, poisoned);
        }
        break;
    case ATTEMPT_UNKNOWN:
        *poisoned = true;
        run_poisoned(env, batch, n);
        break;
    }
}
