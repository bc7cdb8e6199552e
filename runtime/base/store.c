/*
 * Building transactions: see store.h. Engines are in runtime/store.
 */
#include "runtime/base/store.h"

#include "runtime/base/alloc.h"

enum {
    /* Thousands may be in flight, most of them with one small row and its value. */
    FIRST_BLOCK = 960,
};

struct store_txn *store_txn_new(void)
{
    struct store_txn *txn = rt_xalloc(sizeof(*txn));

    rt_list_init(&txn->link);
    txn->arena.first_block = FIRST_BLOCK;
    txn->operations = txn->first;
    txn->capacity = STORE_TXN_FIRST_OPERATIONS;
    return txn;
}

static void free_operations(struct store_txn *txn)
{
    if (txn->operations != txn->first)
        (void)rt_free(txn->operations);
}

static void grow(struct store_txn *txn)
{
    size_t capacity = txn->capacity * 2;
    struct store_operation *operations = rt_xalloc(capacity * sizeof(*operations));

    memcpy(operations, txn->operations, txn->n_operations * sizeof(*operations));
    free_operations(txn);
    txn->operations = operations;
    txn->capacity = capacity;
}

struct store_txn *store_txn_free(struct store_txn *txn)
{
    if (!txn)
        return NULL;
    rt_arena_reset(&txn->arena);
    free_operations(txn);
    return rt_free(txn);
}

static void add(struct store_txn *txn, enum store_operation_kind kind, struct rt_bytes key,
                struct rt_bytes value)
{
    struct store_operation *operation;

    rt_assert(key.size >= 1 && key.size <= STORE_KEY_MAX);
    rt_assert(txn->n_operations < STORE_TXN_OPERATIONS_MAX);
    if (txn->n_operations == txn->capacity)
        grow(txn);
    operation = &txn->operations[txn->n_operations];
    *operation = (struct store_operation){.kind = kind};
    if (!rt_arena_copy(&txn->arena, key, &operation->key) ||
        !rt_arena_copy(&txn->arena, value, &operation->value))
        rt_assert(false);
    txn->n_operations++;
}

void store_txn_compare(struct store_txn *txn, struct rt_bytes key, struct rt_bytes value)
{
    add(txn, STORE_COMPARE, key, value);
}

void store_txn_compare_absent(struct store_txn *txn, struct rt_bytes key)
{
    add(txn, STORE_COMPARE_ABSENT, key, (struct rt_bytes){0});
}

void store_txn_put(struct store_txn *txn, struct rt_bytes key, struct rt_bytes value)
{
    add(txn, STORE_PUT, key, value);
}

void store_txn_delete(struct store_txn *txn, struct rt_bytes key)
{
    add(txn, STORE_DELETE, key, (struct rt_bytes){0});
}

void store_txn_read(struct store_txn *txn, struct rt_bytes key)
{
    add(txn, STORE_READ, key, (struct rt_bytes){0});
}

bool store_txn_only_reads(const struct store_txn *txn)
{
    for (size_t i = 0; i < txn->n_operations; i++)
        if (txn->operations[i].kind != STORE_READ)
            return false;
    return txn->n_operations > 0;
}

void store_operation_found(struct store_txn *txn, struct store_operation *operation,
                           struct rt_bytes value)
{
    bool copied = rt_arena_copy(&txn->arena, value, &operation->value);

    rt_assert(copied);
    operation->is_found = true;
}
