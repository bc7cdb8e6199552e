/*
 * Memory engine: see memory.h. Invariant: a transaction is in exactly one of the two lists, queued
 * or committed, both in submission order, and leaves through deliver() or crash(). The owner's
 * thread.
 */
#include "runtime/store/memory.h"

#include "runtime/base/alloc.h"
#include "runtime/store/rows.h"

struct fault {
    size_t countdown;
    size_t repeat;
};

struct memory {
    struct store base;
    struct store_rows rows;
    struct rt_list queued;    /* owned transactions */
    struct rt_list committed; /* owned, outcome set */
    size_t n_queued;
    size_t n_committed;
    struct fault faults[STORE_MEMORY_N_FAULTS];
    size_t capacity;
    bool poisoned;
    bool closing;
    bool delivering; /* a callback runs: closing waits for the outermost call */
    void (*on_closed)(void *ctx);
    void *closed_ctx;
};

static const struct store_ops memory_ops;

static struct memory *memory_of(const struct store *store)
{
    rt_assert(store->ops == &memory_ops);
    return RT_CONTAINER_OF(store, struct memory, base);
}

static bool strikes(struct memory *memory, enum store_memory_fault kind)
{
    struct fault *fault = &memory->faults[kind];

    if (fault->repeat == 0)
        return false;
    if (fault->countdown > 0) {
        fault->countdown--;
        return false;
    }
    if (fault->repeat != STORE_MEMORY_FOREVER)
        fault->repeat--;
    return true;
}

static bool compare_holds(const struct store_rows *rows, const struct store_operation *operation)
{
    const struct store_row *row = store_rows_find(rows, operation->key);

    if (operation->kind == STORE_COMPARE_ABSENT)
        return !row;
    return row && !row->corrupt && rt_bytes_equal(row->value, operation->value);
}

static bool compares_hold(const struct store_rows *rows, const struct store_txn *txn)
{
    for (size_t i = 0; i < txn->n_operations; i++) {
        const struct store_operation *operation = &txn->operations[i];

        if ((operation->kind == STORE_COMPARE || operation->kind == STORE_COMPARE_ABSENT) &&
            !compare_holds(rows, operation))
            return false;
    }
    return true;
}

static void read_row(const struct store_rows *rows, struct store_txn *txn,
                     struct store_operation *operation)
{
    const struct store_row *row = store_rows_find(rows, operation->key);

    if (row && !row->corrupt)
        store_operation_found(txn, operation, row->value);
}

static void apply(struct store_rows *rows, struct store_txn *txn)
{
    for (size_t i = 0; i < txn->n_operations; i++) {
        struct store_operation *operation = &txn->operations[i];

        if (operation->kind == STORE_PUT)
            store_rows_put(rows, operation->key, operation->value);
        else if (operation->kind == STORE_DELETE)
            (void)store_rows_delete(rows, operation->key);
        else if (operation->kind == STORE_READ)
            read_row(rows, txn, operation);
    }
}

static bool fits(const struct memory *memory, const struct store_txn *txn)
{
    size_t added = 0;

    if (memory->capacity == 0)
        return true;
    for (size_t i = 0; i < txn->n_operations; i++)
        if (txn->operations[i].kind == STORE_PUT)
            added += txn->operations[i].key.size + txn->operations[i].value.size;
    return added == 0 || memory->rows.n_bytes + added <= memory->capacity;
}

static enum store_outcome change(struct memory *memory, struct store_txn *txn)
{
    bool is_full = strikes(memory, STORE_MEMORY_FULL);
    bool is_lost = strikes(memory, STORE_MEMORY_UNKNOWN_NOT_APPLIED);
    bool is_unsure = strikes(memory, STORE_MEMORY_UNKNOWN_APPLIED);

    if (memory->poisoned || is_lost) {
        memory->poisoned = true;
        return STORE_UNKNOWN;
    }
    if (is_unsure) {
        memory->poisoned = true;
        if (compares_hold(&memory->rows, txn))
            apply(&memory->rows, txn);
        return STORE_UNKNOWN;
    }
    if (!compares_hold(&memory->rows, txn))
        return STORE_COMPARE_FAILED;
    if (is_full || !fits(memory, txn))
        return STORE_FULL;
    apply(&memory->rows, txn);
    return STORE_COMMITTED;
}

static enum store_outcome execute(struct memory *memory, struct store_txn *txn)
{
    if (!store_txn_only_reads(txn))
        return change(memory, txn);
    apply(&memory->rows, txn);
    return STORE_COMMITTED;
}

size_t store_memory_commit(struct store *store, size_t n)
{
    struct memory *memory = memory_of(store);
    size_t n_done = 0;

    while (n_done < n && memory->n_queued > 0 && !strikes(memory, STORE_MEMORY_STALL)) {
        struct rt_list *node = rt_list_pop_front(&memory->queued);
        struct store_txn *txn = RT_LIST_ENTRY(node, struct store_txn, link);

        txn->outcome = execute(memory, txn);
        rt_list_push_back(&memory->committed, node);
        memory->n_queued--;
        memory->n_committed++;
        n_done++;
    }
    return n_done;
}

static void deliver_one(struct memory *memory)
{
    struct rt_list *node = rt_list_pop_front(&memory->committed);
    bool outer = memory->delivering;

    memory->n_committed--;
    memory->delivering = true;
    memory->base.on_done(RT_LIST_ENTRY(node, struct store_txn, link), memory->base.ctx);
    memory->delivering = outer;
}

static void finish_close(struct memory *memory)
{
    void (*on_closed)(void *ctx) = memory->on_closed;
    void *ctx = memory->closed_ctx;

    if (!memory->closing || memory->delivering || memory->n_queued > 0 || memory->n_committed > 0)
        return;
    (void)store_memory_free(&memory->base);
    on_closed(ctx);
}

size_t store_memory_deliver(struct store *store, size_t n)
{
    struct memory *memory = memory_of(store);
    size_t n_done = 0;

    for (; n_done < n && memory->n_committed > 0; n_done++)
        deliver_one(memory);
    finish_close(memory);
    return n_done;
}

size_t store_memory_step(struct store *store, size_t n)
{
    struct memory *memory = memory_of(store);
    size_t n_done = 0;

    for (; n_done < n; n_done++) {
        if (memory->n_committed == 0 && store_memory_commit(store, 1) == 0)
            break;
        deliver_one(memory);
    }
    finish_close(memory);
    return n_done;
}

size_t store_memory_run(struct store *store)
{
    return store_memory_step(store, STORE_MEMORY_ALL);
}

size_t store_memory_n_queued(const struct store *store)
{
    return memory_of(store)->n_queued;
}

size_t store_memory_n_undelivered(const struct store *store)
{
    return memory_of(store)->n_committed;
}

void store_memory_fail_after(struct store *store, enum store_memory_fault fault, size_t countdown,
                             size_t repeat)
{
    memory_of(store)->faults[fault] = (struct fault){.countdown = countdown, .repeat = repeat};
}

void store_memory_set_capacity(struct store *store, size_t bytes)
{
    memory_of(store)->capacity = bytes;
}

static void drop_all(struct rt_list *list)
{
    struct rt_list *node;

    while ((node = rt_list_pop_front(list)) != NULL)
        (void)store_txn_free(RT_LIST_ENTRY(node, struct store_txn, link));
}

void store_memory_crash(struct store *store)
{
    struct memory *memory = memory_of(store);

    drop_all(&memory->queued);
    drop_all(&memory->committed);
    memory->n_queued = 0;
    memory->n_committed = 0;
    memory->poisoned = false;
    for (size_t i = 0; i < STORE_MEMORY_N_FAULTS; i++)
        memory->faults[i] = (struct fault){0};
}

void store_memory_set_done(struct store *store, store_done_cb on_done, void *ctx)
{
    store->on_done = on_done;
    store->ctx = ctx;
}

struct store *store_memory_clone(const struct store *store, store_done_cb on_done, void *ctx)
{
    struct store *clone = store_memory_new(on_done, ctx);

    store_rows_copy(&memory_of(clone)->rows, &memory_of(store)->rows);
    memory_of(clone)->capacity = memory_of(store)->capacity;
    return clone;
}

bool store_memory_corrupt(struct store *store, struct rt_bytes key)
{
    struct store_row *row = store_rows_find(&memory_of(store)->rows, key);

    if (row)
        row->corrupt = true;
    return row != NULL;
}

static void memory_submit(struct store *store, struct store_txn *txn)
{
    struct memory *memory = memory_of(store);

    rt_assert(!memory->closing);
    rt_list_push_back(&memory->queued, &txn->link);
    memory->n_queued++;
}

static enum rt_code memory_range(struct store *store, struct rt_bytes prefix, store_row_fn on_row,
                                 store_row_fn on_corrupt, void *ctx, struct rt_error *err)
{
    const struct store_row *row = store_rows_seek(&memory_of(store)->rows, prefix);

    (void)err;
    for (; row && rt_bytes_has_prefix(row->key, prefix); row = row->next[0]) {
        store_row_fn report = row->corrupt ? on_corrupt : on_row;

        if (report && !report(row->key, row->value, ctx))
            break;
    }
    return RT_OK;
}

static void memory_close(struct store *store, void (*on_closed)(void *ctx), void *ctx)
{
    struct memory *memory = memory_of(store);

    rt_assert(!memory->closing);
    memory->closing = true;
    memory->on_closed = on_closed;
    memory->closed_ctx = ctx;
}

static const struct store_ops memory_ops = {
    .submit = memory_submit,
    .range = memory_range,
    .close = memory_close,
};

struct store *store_memory_new(store_done_cb on_done, void *ctx)
{
    struct memory *memory = rt_xalloc(sizeof(*memory));

    memory->base = (struct store){.ops = &memory_ops, .on_done = on_done, .ctx = ctx};
    store_rows_init(&memory->rows);
    rt_list_init(&memory->queued);
    rt_list_init(&memory->committed);
    return &memory->base;
}

struct store *store_memory_free(struct store *store)
{
    if (!store)
        return NULL;
    store_memory_crash(store);
    store_rows_deinit(&memory_of(store)->rows);
    return rt_free(memory_of(store));
}
