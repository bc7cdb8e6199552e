/*
 * Ordered rows in memory: a skip list, because the simulator wants the same cost for ten rows and
 * for a million, inserts in any order, cheap walks from a prefix, and no rebalancing to get wrong.
 * uthash has no order, and a sorted array moves half its pointers at every insert. Heights come
 * from a fixed seed: equal histories give equal lists.
 *
 * Not thread safe. Memory is taken with rt_xalloc: tests and simulation only.
 */
#ifndef STORE_ROWS_H
#define STORE_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/bytes.h"
#include "runtime/base/rng.h"

enum {
    STORE_ROWS_HEIGHT_MAX = 20
};

struct store_row {
    struct rt_bytes key;   /* in the row's own block */
    struct rt_bytes value; /* owned */
    bool corrupt;          /* set by tests, cleared by the next put */
    struct store_row *next[];
};

struct store_rows {
    struct store_row *first[STORE_ROWS_HEIGHT_MAX]; /* owned */
    size_t n_rows;
    size_t n_bytes; /* keys and values */
    struct rt_rng rng;
};

void store_rows_init(struct store_rows *rows);
void store_rows_deinit(struct store_rows *rows);

/* `target` must be initialized and empty. */
void store_rows_copy(struct store_rows *target, const struct store_rows *source);

/* NULL when there is none. The row may change at the next put or delete of its key. */
struct store_row *store_rows_find(const struct store_rows *rows, struct rt_bytes key);

/* The first row whose key is not less than `key`; follow next[0]. */
struct store_row *store_rows_seek(const struct store_rows *rows, struct rt_bytes key);

/* Copies both. Replaces an existing row's value. */
void store_rows_put(struct store_rows *rows, struct rt_bytes key, struct rt_bytes value);

/* false when there was none. */
bool store_rows_delete(struct store_rows *rows, struct rt_bytes key);

#endif
