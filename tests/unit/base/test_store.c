/*
 * Building transactions: copies, limits.
 */
#include "runtime/base/store.h"

#include <signal.h>
#include <stdio.h>

#include "tests/support/check.h"

TestSuite(store_txn, .fini = test_alloc_expect_none);

Test(store_txn, copies_what_it_is_given)
{
    struct store_txn *txn = store_txn_new();
    char key[] = "key";
    char value[] = "value";

    store_txn_put(txn, rt_bytes_of_string(key), rt_bytes_of_string(value));
    key[0] = 'X';
    value[0] = 'X';
    cr_assert_eq(txn->n_operations, 1);
    cr_assert(rt_bytes_equal(txn->operations[0].key, RT_BYTES_LITERAL("key")));
    cr_assert(rt_bytes_equal(txn->operations[0].value, RT_BYTES_LITERAL("value")));
    cr_assert_null(store_txn_free(txn));
}

Test(store_txn, keeps_the_order_and_kinds)
{
    struct store_txn *txn = store_txn_new();

    store_txn_compare(txn, RT_BYTES_LITERAL("a"), RT_BYTES_LITERAL("1"));
    store_txn_compare_absent(txn, RT_BYTES_LITERAL("b"));
    store_txn_put(txn, RT_BYTES_LITERAL("c"), (struct rt_bytes){0});
    store_txn_delete(txn, RT_BYTES_LITERAL("d"));
    store_txn_put(txn, RT_BYTES_LITERAL("e"), RT_BYTES_LITERAL("5"));
    cr_assert_eq(txn->n_operations, 5);
    cr_assert_eq(txn->operations[0].kind, STORE_COMPARE);
    cr_assert_eq(txn->operations[1].kind, STORE_COMPARE_ABSENT);
    cr_assert_eq(txn->operations[2].kind, STORE_PUT);
    cr_assert_eq(txn->operations[2].value.size, 0);
    cr_assert_eq(txn->operations[3].kind, STORE_DELETE);
    cr_assert_eq(txn->operations[4].kind, STORE_PUT);
    (void)store_txn_free(txn);
}

Test(store_txn, free_accepts_null_and_nothing_done)
{
    cr_assert_null(store_txn_free(NULL));
    cr_assert_null(store_txn_free(store_txn_new()));
}

/* A PUT of the instance: one row compared, two written. */
Test(store_txn, a_small_one_is_two_allocations)
{
    static const uint8_t value[160];
    long n_live = test_alloc_live();
    struct store_txn *txn = store_txn_new();

    for (int i = 0; i < STORE_TXN_FIRST_OPERATIONS; i++)
        store_txn_put(txn, RT_BYTES_LITERAL("key"), rt_bytes_of(value, sizeof(value)));
    cr_assert_eq(test_alloc_live(), n_live + 2);
    store_txn_put(txn, RT_BYTES_LITERAL("one more"), (struct rt_bytes){0});
    cr_assert_eq(test_alloc_live(), n_live + 3);
    cr_assert(rt_bytes_equal(txn->operations[0].key, RT_BYTES_LITERAL("key")));
    cr_assert(rt_bytes_equal(txn->operations[STORE_TXN_FIRST_OPERATIONS].key,
                             RT_BYTES_LITERAL("one more")));
    (void)store_txn_free(txn);
}

Test(store_txn, most_operations)
{
    struct store_txn *txn = store_txn_new();

    for (int i = 0; i < STORE_TXN_OPERATIONS_MAX; i++)
        store_txn_delete(txn, RT_BYTES_LITERAL("k"));
    cr_assert_eq(txn->n_operations, STORE_TXN_OPERATIONS_MAX);
    (void)store_txn_free(txn);
}

Test(store_txn, one_operation_too_many, .signal = SIGABRT)
{
    struct store_txn *txn = store_txn_new();

    for (int i = 0; i <= STORE_TXN_OPERATIONS_MAX; i++)
        store_txn_delete(txn, RT_BYTES_LITERAL("k"));
}

Test(store_txn, longest_key)
{
    static const uint8_t key[STORE_KEY_MAX];
    struct store_txn *txn = store_txn_new();

    store_txn_delete(txn, rt_bytes_of(key, sizeof(key)));
    cr_assert_eq(txn->operations[0].key.size, STORE_KEY_MAX);
    (void)store_txn_free(txn);
}

Test(store_txn, key_too_long, .signal = SIGABRT)
{
    static const uint8_t key[STORE_KEY_MAX + 1];

    store_txn_delete(store_txn_new(), rt_bytes_of(key, sizeof(key)));
}

Test(store_txn, empty_key, .signal = SIGABRT)
{
    store_txn_delete(store_txn_new(), (struct rt_bytes){0});
}

Test(store_txn, no_memory_for_a_copy, .signal = SIGABRT)
{
    test_alloc_fail_after(0, 1);
    store_txn_delete(store_txn_new(), RT_BYTES_LITERAL("k"));
}
