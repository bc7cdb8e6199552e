/*
 * Harness: see harness.h. Invariant: completions arrive in the order of submission, never inside
 * submit(); every test checks that by using it.
 */
#include "tests/unit/store/harness.h"

#include <criterion/criterion.h>
#include <ctype.h>

#include "tests/support/check.h"

enum {
    N_OUTCOMES = 4096
};

static struct {
    struct store *store;
    struct rt_buffer rows;
    char outcomes[N_OUTCOMES];
    char positions[N_OUTCOMES]; /* a transaction's ctx points to its place */
    char reported[N_OUTCOMES];
    size_t n_reported; /* outcomes[] since the last report */
    size_t n_submitted;
    size_t n_done;
    enum store_outcome last;
    bool is_submitting;
    bool is_closed;
    bool is_reading;
    void (*callback)(void);
} harness;

static void note_reads(const struct store_txn *txn);

static void on_done(struct store_txn *txn, void *ctx)
{
    cr_assert_eq(ctx, &harness);
    cr_assert_not(harness.is_submitting, "completed inside submit()");
    cr_assert_not(harness.is_closed, "completed after on_closed");
    cr_assert_eq(txn->ctx, &harness.positions[harness.n_done % N_OUTCOMES], "out of order");
    harness.n_done++;
    harness.last = txn->outcome;
    if (harness.n_reported < N_OUTCOMES - 1)
        harness.outcomes[harness.n_reported++] = "CFU?"[txn->outcome];
    note_reads(txn);
    (void)store_txn_free(txn);
    if (harness.callback)
        harness.callback();
}

static void on_closed(void *ctx)
{
    cr_assert_eq(ctx, &harness);
    cr_assert_not(harness.is_closed, "closed twice");
    harness.is_closed = true;
}

void harness_open(void)
{
    harness.store = engine.open(on_done, &harness, false);
}

void harness_open_small(void)
{
    harness.store = engine.open(on_done, &harness, true);
}

struct store *harness_store(void)
{
    return harness.store;
}

void harness_submit(struct store_txn *txn)
{
    bool outer = harness.is_submitting;

    txn->ctx = &harness.positions[harness.n_submitted++ % N_OUTCOMES];
    harness.is_submitting = true;
    store_submit(harness.store, txn);
    harness.is_submitting = outer;
}

enum store_outcome harness_settle(void)
{
    while (harness.n_done < harness.n_submitted)
        engine.drive(harness.store);
    return harness.last;
}

const char *harness_settle_all(void)
{
    (void)harness_settle();
    memcpy(harness.reported, harness.outcomes, harness.n_reported);
    harness.reported[harness.n_reported] = 0;
    harness.n_reported = 0;
    return harness.reported;
}

enum store_outcome harness_run(struct store_txn *txn)
{
    harness_submit(txn);
    return harness_settle();
}

void harness_on_done(void (*callback)(void))
{
    harness.callback = callback;
}

size_t harness_close_at_once(void)
{
    size_t before = harness.n_done;

    harness.is_closed = false;
    store_close(harness.store, on_closed, &harness);
    cr_assert_not(harness.is_closed, "on_closed inside close()");
    while (!harness.is_closed)
        engine.drive(harness.store);
    harness.store = NULL;
    harness.is_closed = false;
    return harness.n_done - before;
}

void harness_reopen(void)
{
    cr_assert_eq(harness_close_at_once(), 0);
    harness.store = engine.reopen(on_done, &harness);
}

void harness_corrupt(const char *key)
{
    harness.store = engine.corrupt(harness.store, rt_bytes_of_string(key));
}

void harness_close(void)
{
    if (harness.store)
        (void)harness_close_at_once();
    engine.clean_up();
    rt_buffer_deinit(&harness.rows);
    test_alloc_expect_none();
}

static void append(struct rt_bytes bytes, size_t max)
{
    for (size_t i = 0; i < bytes.size && i < max; i++) {
        if (isalnum(bytes.data[i]) || ispunct(bytes.data[i]))
            rt_buffer_append_byte(&harness.rows, bytes.data[i]);
        else
            rt_buffer_printf(&harness.rows, "\\%02x", bytes.data[i]);
    }
    if (bytes.size > max)
        rt_buffer_append_string(&harness.rows, "…");
}

static void append_separator(void)
{
    if (harness.rows.size > 0)
        rt_buffer_append_byte(&harness.rows, ' ');
}

static bool on_row(struct rt_bytes key, struct rt_bytes value, void *ctx)
{
    append_separator();
    append(key, SIZE_MAX);
    rt_buffer_append_byte(&harness.rows, '=');
    append(value, 16);
    return true;
}

static bool on_corrupt(struct rt_bytes key, struct rt_bytes value, void *ctx)
{
    append_separator();
    rt_buffer_append_byte(&harness.rows, '!');
    append(key, SIZE_MAX);
    return true;
}

const char *harness_rows(const char *prefix)
{
    struct rt_error err = RT_ERROR_INIT;

    rt_buffer_reset(&harness.rows);
    cr_assert_eq(
        store_range(harness.store, rt_bytes_of_string(prefix), on_row, on_corrupt, NULL, &err),
        RT_OK, "%s", err.message);
    return rt_buffer_string(&harness.rows);
}

static void note_reads(const struct store_txn *txn)
{
    for (size_t i = 0; i < txn->n_operations && harness.is_reading; i++) {
        const struct store_operation *operation = &txn->operations[i];

        if (operation->kind == STORE_READ && operation->is_found)
            (void)on_row(operation->key, operation->value, NULL);
        else if (operation->kind == STORE_READ)
            (void)on_corrupt(operation->key, operation->value, NULL);
    }
}

const char *harness_read(struct store_txn *txn)
{
    rt_buffer_reset(&harness.rows);
    harness.is_reading = true;
    cr_assert_eq(harness_run(txn), STORE_COMMITTED);
    harness.is_reading = false;
    return rt_buffer_string(&harness.rows);
}

struct store_txn *and_put(struct store_txn *txn, const char *key, const char *value)
{
    store_txn_put(txn, rt_bytes_of_string(key), rt_bytes_of_string(value));
    return txn;
}

struct store_txn *and_erase(struct store_txn *txn, const char *key)
{
    store_txn_delete(txn, rt_bytes_of_string(key));
    return txn;
}

struct store_txn *and_read(struct store_txn *txn, const char *key)
{
    store_txn_read(txn, rt_bytes_of_string(key));
    return txn;
}

struct store_txn *put(const char *key, const char *value)
{
    return and_put(store_txn_new(), key, value);
}

struct store_txn *erase(const char *key)
{
    return and_erase(store_txn_new(), key);
}

struct store_txn *when(struct store_txn *txn, const char *key, const char *value)
{
    store_txn_compare(txn, rt_bytes_of_string(key), rt_bytes_of_string(value));
    return txn;
}

struct store_txn *when_absent(struct store_txn *txn, const char *key)
{
    store_txn_compare_absent(txn, rt_bytes_of_string(key));
    return txn;
}
