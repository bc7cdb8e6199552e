/*
 * What the conformance suite needs of an engine, and a store to test with it. One test program per
 * engine links one engine_*.c. Each test has a process and a store of its own; single threaded.
 */
#ifndef TESTS_STORE_HARNESS_H
#define TESTS_STORE_HARNESS_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/buffer.h"
#include "runtime/base/store.h"

/* Rows to fill a small store need: room for some, not for many, values of this size. */
enum {
    SMALL_STORE_BYTES = 512 * 1024,
    SMALL_STORE_VALUE = 16 * 1024,
};

struct engine {
    bool is_durable; /* reopen() loads from files */
    struct store *(*open)(store_done_cb on_done, void *ctx, bool is_small);
    /* Lets something complete; the harness calls it until it has what it waits for. */
    void (*drive)(struct store *store);
    /* `store` has been closed; opens its data again. */
    struct store *(*reopen)(store_done_cb on_done, void *ctx);
    /* Damages a stored value; may close and reopen. */
    struct store *(*corrupt)(struct store *store, struct rt_bytes key);
    /* After the last close. */
    void (*clean_up)(void);
};

extern const struct engine engine;

/* .init and .fini of suites; the second also checks that nothing is left allocated. */
void harness_open(void);
void harness_open_small(void);
void harness_close(void);

struct store *harness_store(void);

/* Submits and checks that nothing completes meanwhile. */
void harness_submit(struct store_txn *txn);
/* Waits for everything submitted; returns the outcome of the last. */
enum store_outcome harness_settle(void);
/* Outcomes of what was submitted since the last harness_settle_all(), in order, as one letter each:
 * Committed, compare Failed, fUll → "C", "F", "U", unknown → "?". Valid until the next call. */
const char *harness_settle_all(void);
/* Both. */
enum store_outcome harness_run(struct store_txn *txn);

/* Runs a transaction that must commit: what it read, as harness_rows() says it; ! is not found. */
const char *harness_read(struct store_txn *txn);

/* Called with every completion before it is checked off; NULL for none. */
void harness_on_done(void (*callback)(void));

void harness_reopen(void);
void harness_corrupt(const char *key);
/* Closes without waiting first; returns how many completions came before on_closed. */
size_t harness_close_at_once(void);

/* "a=1 b=2 !c" for the rows with this prefix; ! is corrupt, \xx what is not printable, … the rest
 * of a value over 16 bytes. Valid until the next call. */
const char *harness_rows(const char *prefix);

/* Shorthand for text keys and values. */
struct store_txn *put(const char *key, const char *value);
struct store_txn *erase(const char *key);
struct store_txn *and_put(struct store_txn *txn, const char *key, const char *value);
struct store_txn *and_erase(struct store_txn *txn, const char *key);
struct store_txn *and_read(struct store_txn *txn, const char *key);
struct store_txn *when(struct store_txn *txn, const char *key, const char *value);
struct store_txn *when_absent(struct store_txn *txn, const char *key);

#endif
