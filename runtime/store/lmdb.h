/*
 * LMDB engine: one environment in one directory, for one process.
 *
 * submit() appends under a mutex of its own and returns; any thread. A worker thread takes
 * everything that is queued, runs it in order inside one LMDB transaction, commits with fsync
 * (group commit) and hands the results to the libuv loop, on whose thread on_done is called in
 * submission order. range() blocks, works on a snapshot, and may be called from any thread,
 * several at a time; its callbacks must not wait for a transaction to complete.
 *
 * No MDB_WRITEMAP (a full disk would be a SIGBUS) and no MDB_NOSYNC (a crash would tear the tree).
 * Each value is stored behind a checksum of key and value; a row that fails it is reported by
 * range() and fails every compare, until it is put again or deleted.
 *
 * At start the structure of all pages is checked (a page a microsecond, from the page cache), so
 * that a damaged or cut off file is a DATA_LOSS and not the end of the process.
 *
 * Full: the map grows by itself up to map_limit_bytes. What then does not fit, or does not fit on
 * the disk, gets STORE_FULL, alone: the rest of its group is committed. A transaction that deletes
 * something and puts little may use a reserve past the limit, so a full store can be emptied.
 *
 * A commit that fails otherwise (EIO, say), or into a data.mdb that has been deleted, gives
 * STORE_UNKNOWN, to it and to everything later.
 *
 * With `files` some of the rows are mirrored in files (files.h): a transaction is completed when
 * its files are in their places too. It gets STORE_FULL when one of them finds no room, and
 * STORE_UNKNOWN when the disk fails with one of them.
 */
#ifndef STORE_LMDB_H
#define STORE_LMDB_H

#include <stddef.h>
#include <uv.h>

#include "runtime/base/store.h"
#include "runtime/store/files.h"

#define STORE_LMDB_MAP_SIZE_DEFAULT  ((size_t)1 << 30)
#define STORE_LMDB_MAP_LIMIT_DEFAULT ((size_t)1 << 36)
#define STORE_LMDB_MAP_SIZE_MIN      ((size_t)1 << 16)

struct store_lmdb_options {
    const char *path;       /* directory; made with mode 0700 if absent, its parent must exist */
    size_t map_size_bytes;  /* address space to begin with; 0 = default */
    size_t map_limit_bytes; /* it grows up to this; 0 = default or map_size_bytes if larger */
    uv_loop_t *loop;        /* outlives the store; an open store keeps it running */
    const struct store_files_options *files; /* NULL: no mirror */
};

/* Call on the loop's thread; blocks on the disk. On failure nothing is left open.
 * FAILED_PRECONDITION: another store, here or in another process, has the directory.
 * DATA_LOSS: the files are not what a store wrote (wrong format, cut off, emptied).
 * INVALID_ARGUMENT: sizes below the minimum or limit below size. As store_files_open(). Else what
 * the system said. */
RT_MUST_USE enum rt_code store_lmdb_open(const struct store_lmdb_options *options,
                                         store_done_cb on_done, void *ctx, struct store **ret_store,
                                         struct rt_error *err);

#endif
