/*
 * Whether a mount point holds what the rows of a store say, for a mirror of nearly every row.
 */
#ifndef TESTS_STORE_MIRROR_H
#define TESTS_STORE_MIRROR_H

#include "runtime/base/store.h"
#include "runtime/store/files.h"

/* Each row has a file of its own name, but for most of those that are named by five digits. */
bool mirror_row(struct rt_bytes row, struct rt_bytes value, struct rt_bytes *ret_key,
                struct rt_bytes *ret_content);

/* Options of a mirror at temporary_path("mount"), of a store at temporary_path("store"). */
const struct store_files_options *mirror_options(void);

/* NULL: each sound row has its file, there are `n_others` files besides, and nothing is prepared.
 * Else what is wrong, valid until the next call. */
const char *mirror_differs(struct store *store, size_t n_others);

#endif
