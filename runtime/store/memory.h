/*
 * Memory engine: for tests and the simulator, which decide when a commit happens and how it fails.
 *
 * Nothing happens by itself: submit() queues, and the owner drives the two halves of a commit,
 * store_memory_commit() (rows change; what a crash keeps) and store_memory_deliver() (the
 * completion callback), or both with store_memory_step(). Completions run inside those calls and
 * may submit again. Not thread safe. Every function takes the `struct store` that
 * store_memory_new() made.
 */
#ifndef STORE_MEMORY_H
#define STORE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/store.h"

#define STORE_MEMORY_ALL     ((size_t)-1) /* for n: until nothing is left */
#define STORE_MEMORY_FOREVER ((size_t)-1) /* for repeat: until disarmed */

enum store_memory_fault {
    STORE_MEMORY_FULL,                /* STORE_FULL, unless a compare fails first */
    STORE_MEMORY_UNKNOWN_APPLIED,     /* STORE_UNKNOWN, the operations took effect */
    STORE_MEMORY_UNKNOWN_NOT_APPLIED, /* STORE_UNKNOWN, they did not */
    STORE_MEMORY_STALL,               /* the disk hangs: an attempt to commit does nothing */
    STORE_MEMORY_N_FAULTS,
};

/* An empty store. Free with store_memory_free() or close it. */
struct store *store_memory_new(store_done_cb on_done, void *ctx);

/* Frees queued and undelivered transactions without a callback. NULL is fine; returns NULL. */
struct store *store_memory_free(struct store *store);

/* store_close() frees the store, and calls on_closed, at the end of the next deliver, step or run
 * that leaves nothing to do; the pointer is dead then. */

/* Commits up to n queued transactions; returns how many. Stops early at a stall. */
size_t store_memory_commit(struct store *store, size_t n);
/* Delivers up to n committed ones; returns how many. */
size_t store_memory_deliver(struct store *store, size_t n);
/* Delivers up to n, committing as needed; returns how many. */
size_t store_memory_step(struct store *store, size_t n);
/* Steps until nothing is left, what callbacks submit included, or the store stalls. */
size_t store_memory_run(struct store *store);

/* Transactions queued, and committed but not delivered. */
size_t store_memory_n_queued(const struct store *store);
size_t store_memory_n_undelivered(const struct store *store);

/* The fault strikes after `countdown` more transactions, `repeat` times. For a stall each attempt
 * to commit counts as a strike. repeat 0 disarms. */
void store_memory_fail_after(struct store *store, enum store_memory_fault fault, size_t countdown,
                             size_t repeat);

/* Room for keys and values together; 0 = no limit. Like a copy-on-write engine it needs room for
 * new rows beside the ones they replace; a transaction without puts always fits. */
void store_memory_set_capacity(struct store *store, size_t bytes);

/* The process died: transactions that are not delivered are freed without a callback, committed
 * rows stay. Faults, stall and the poison of an unknown outcome are gone, as after a reopen. */
void store_memory_crash(struct store *store);

/* Who gets completions from now on: the new core after a crash. */
void store_memory_set_done(struct store *store, store_done_cb on_done, void *ctx);

/* A new store with a copy of the committed rows: a copied data directory. */
struct store *store_memory_clone(const struct store *store, store_done_cb on_done, void *ctx);

/* range() reports the row as corrupt and compares with it fail, until it is put again. false when
 * there is no such row. */
bool store_memory_corrupt(struct store *store, struct rt_bytes key);

#endif
