/*
 * A mirror of rows in files: one file a key, which holds the value and nothing else, for people and
 * tools that read files. The rows decide: the files are written beside a transaction of the engine,
 * put right from the rows at the start, and never read back.
 *
 *   MOUNT/              flock'ed while open; made with mode 0700 if absent
 *     NAME              of file_name.h: the value of a key
 *     .redistinto-ID/   what a transaction has prepared, of the store with this id
 *       pN              a value on its way to its name
 *       deletes         rows whose files are to go: each behind two bytes of size
 *
 * One transaction group: prepare() writes and syncs the new values and the list of what goes;
 * the engine commits; finish() renames and deletes. A process that dies before the commit leaves
 * things that nobody looks at, one that dies after it leaves what the next open() puts right. Files
 * that belong to no row are left alone.
 *
 * Nothing is ever written outside of the mount point: no name leads out of it, and no symbolic link
 * below it is followed.
 *
 * Blocking; one thread at a time.
 */
#ifndef STORE_FILES_H
#define STORE_FILES_H

#include "runtime/base/store.h"

/* Whether the row has a file; then the key that this is named after (1..STORE_KEY_MAX bytes) and
 * what it holds. `value` is empty, and *ret_content of no interest, for a row that is deleted. */
typedef bool (*store_files_row_fn)(struct rt_bytes row, struct rt_bytes value,
                                   struct rt_bytes *ret_key, struct rt_bytes *ret_content);

enum {
    STORE_FILES_ID_MAX = 64
};

struct store_files_options {
    const char *mount;       /* its parent must exist */
    const char *id;          /* of the store: 1..STORE_FILES_ID_MAX of [0-9a-z] */
    const char *reserved[2]; /* directories that are no mount point; NULL for none */
    store_files_row_fn row;
};

struct store_files;

/* FAILED_PRECONDITION: a mirror, here or in another process, has the mount point, or it is one of
 * the reserved directories. Else what the system said. */
RT_MUST_USE enum rt_code store_files_open(const struct store_files_options *options,
                                          struct store_files **ret_files, struct rt_error *err);

/* Accepts NULL, returns NULL. */
struct store_files *store_files_free(struct store_files *files);

/* ---- at the start ---- */

/* Makes the row's file, if it has one, what the row says. FAILED_PRECONDITION: there is a directory
 * in its place. */
RT_MUST_USE enum rt_code store_files_put_right(struct store_files *files, struct rt_bytes row,
                                               struct rt_bytes value, struct rt_error *err);

/* Whether there is such a row; an error ends the start. */
typedef enum rt_code (*store_files_has_row_fn)(void *ctx, struct rt_bytes row, bool *ret_has,
                                               struct rt_error *err);

/* Deletes the files that an earlier process had no time to delete, and everything it had prepared.
 * To be called before put_right(). */
RT_MUST_USE enum rt_code store_files_clean_up(struct store_files *files,
                                              store_files_has_row_fn has_row, void *ctx,
                                              struct rt_error *err);

/* Makes durable what put_right() did. */
RT_MUST_USE enum rt_code store_files_sync(struct store_files *files, struct rt_error *err);

/* ---- beside a transaction ---- */

enum store_files_result {
    STORE_FILES_DONE,
    STORE_FILES_NO_ROOM, /* for one of the files: the disk is full, a directory is in its place, or
                            the file system does not take its name; others may succeed */
    STORE_FILES_FAILED,  /* the disk */
};

/* For the puts and deletes of those of the n transactions whose outcome is STORE_COMMITTED. Unless
 * it says DONE nothing is prepared. */
RT_MUST_USE enum store_files_result store_files_prepare(struct store_files *files,
                                                        struct store_txn *const *batch, size_t n);

/* They were committed. FAILED: open() has to put it right. */
RT_MUST_USE enum store_files_result store_files_finish(struct store_files *files,
                                                       struct store_txn *const *batch, size_t n);

/* They were not. */
void store_files_abandon(struct store_files *files);

#endif
