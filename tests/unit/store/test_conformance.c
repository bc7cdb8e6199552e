/*
 * What runtime/base/store.h promises, of every engine. Compiled once, linked with each.
 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "runtime/base/alloc.h"
#include "runtime/base/rng.h"
#include "tests/unit/store/harness.h"

TestSuite(store, .init = harness_open, .fini = harness_close);
TestSuite(small_store, .init = harness_open_small, .fini = harness_close);

Test(store, new_one_is_empty)
{
    cr_assert_str_eq(harness_rows(""), "");
}

Test(store, puts_and_deletes)
{
    cr_assert_eq(harness_run(and_put(put("b", "2"), "a", "1")), STORE_COMMITTED);
    cr_assert_str_eq(harness_rows(""), "a=1 b=2");
    cr_assert_eq(harness_run(put("a", "one")), STORE_COMMITTED);
    cr_assert_eq(harness_run(erase("b")), STORE_COMMITTED);
    cr_assert_str_eq(harness_rows(""), "a=one");
}

Test(store, transaction_without_operations_commits)
{
    cr_assert_eq(harness_run(store_txn_new()), STORE_COMMITTED);
}

Test(store, deleting_an_absent_row_is_no_error)
{
    cr_assert_eq(harness_run(and_put(erase("nothing"), "a", "1")), STORE_COMMITTED);
    cr_assert_str_eq(harness_rows(""), "a=1");
}

Test(store, operations_run_in_order)
{
    struct store_txn *txn = and_put(put("a", "1"), "a", "2");

    cr_assert_eq(harness_run(and_put(and_erase(and_put(txn, "b", "1"), "b"), "c", "3")),
                 STORE_COMMITTED);
    cr_assert_str_eq(harness_rows(""), "a=2 c=3");
    cr_assert_eq(harness_run(and_put(erase("a"), "a", "3")), STORE_COMMITTED);
    cr_assert_str_eq(harness_rows(""), "a=3 c=3");
}

Test(store, compares)
{
    (void)harness_run(put("a", "1"));
    cr_assert_eq(harness_run(when(put("x", "1"), "a", "1")), STORE_COMMITTED);
    cr_assert_eq(harness_run(when(put("x", "2"), "a", "2")), STORE_COMPARE_FAILED);
    cr_assert_eq(harness_run(when(put("x", "2"), "a", "11")), STORE_COMPARE_FAILED);
    cr_assert_eq(harness_run(when(put("x", "2"), "a", "")), STORE_COMPARE_FAILED);
    cr_assert_eq(harness_run(when(put("x", "2"), "none", "1")), STORE_COMPARE_FAILED);
    cr_assert_eq(harness_run(when(put("x", "2"), "none", "")), STORE_COMPARE_FAILED);
    cr_assert_eq(harness_run(when_absent(put("x", "2"), "a")), STORE_COMPARE_FAILED);
    cr_assert_str_eq(harness_rows("x"), "x=1");
    cr_assert_eq(harness_run(when_absent(put("x", "2"), "none")), STORE_COMMITTED);
    cr_assert_str_eq(harness_rows("x"), "x=2");
}

Test(store, all_compares_must_hold)
{
    (void)harness_run(and_put(put("a", "1"), "b", "2"));
    cr_assert_eq(harness_run(when(when(put("x", "1"), "a", "1"), "b", "0")), STORE_COMPARE_FAILED);
    cr_assert_eq(harness_run(when(when(put("x", "1"), "a", "0"), "b", "2")), STORE_COMPARE_FAILED);
    cr_assert_eq(harness_run(when_absent(when(put("x", "1"), "a", "1"), "b")),
                 STORE_COMPARE_FAILED);
    cr_assert_str_eq(harness_rows("x"), "");
    cr_assert_eq(harness_run(when(when(put("x", "1"), "a", "1"), "b", "2")), STORE_COMMITTED);
}

Test(store, compares_run_before_operations_added_earlier)
{
    cr_assert_eq(harness_run(when_absent(put("a", "1"), "a")), STORE_COMMITTED);
    cr_assert_eq(harness_run(when(put("a", "2"), "a", "2")), STORE_COMPARE_FAILED);
    cr_assert_eq(harness_run(when(erase("a"), "a", "1")), STORE_COMMITTED);
    cr_assert_str_eq(harness_rows(""), "");
}

Test(store, failed_compare_applies_nothing)
{
    (void)harness_run(put("a", "1"));
    cr_assert_eq(harness_run(when(and_erase(and_put(put("b", "1"), "a", "2"), "a"), "a", "9")),
                 STORE_COMPARE_FAILED);
    cr_assert_str_eq(harness_rows(""), "a=1");
}

Test(store, later_transactions_see_earlier_ones)
{
    harness_submit(put("a", "1"));
    harness_submit(when(put("a", "2"), "a", "1"));
    harness_submit(when(put("a", "3"), "a", "1"));
    harness_submit(when(and_put(put("b", "1"), "a", "4"), "a", "2"));
    harness_submit(when_absent(put("b", "2"), "b"));
    cr_assert_str_eq(harness_settle_all(), "CCFCF");
    cr_assert_str_eq(harness_rows(""), "a=4 b=1");
}

static struct store_txn *put_bytes(struct rt_bytes key, struct rt_bytes value)
{
    struct store_txn *txn = store_txn_new();

    store_txn_put(txn, key, value);
    return txn;
}

Test(store, rows_are_ordered_by_unsigned_bytes)
{
    harness_submit(put_bytes(RT_BYTES_LITERAL("\xff\xff"), RT_BYTES_LITERAL("7")));
    harness_submit(put_bytes(RT_BYTES_LITERAL("\xff"), RT_BYTES_LITERAL("6")));
    harness_submit(put_bytes(RT_BYTES_LITERAL("\x00"), RT_BYTES_LITERAL("1")));
    harness_submit(put_bytes(RT_BYTES_LITERAL("\x00\x00"), RT_BYTES_LITERAL("2")));
    harness_submit(put_bytes(RT_BYTES_LITERAL("a\x00z"), RT_BYTES_LITERAL("4")));
    harness_submit(put_bytes(RT_BYTES_LITERAL("a"), RT_BYTES_LITERAL("3")));
    harness_submit(put_bytes(RT_BYTES_LITERAL("\x80"), RT_BYTES_LITERAL("5")));
    cr_assert_str_eq(harness_settle_all(), "CCCCCCC");
    cr_assert_str_eq(harness_rows(""), "\\00=1 \\00\\00=2 a=3 a\\00z=4 \\80=5 \\ff=6 \\ff\\ff=7");
    cr_assert_str_eq(harness_rows("\xff"), "\\ff=6 \\ff\\ff=7");
    cr_assert_str_eq(harness_rows("a"), "a=3 a\\00z=4");
}

Test(store, ranges_have_exactly_the_prefix)
{
    harness_submit(and_put(and_put(put("k", "0"), "k/", "1"), "k/a", "2"));
    harness_submit(and_put(and_put(put("k0", "3"), "j/z", "4"), "k/a/b", "5"));
    (void)harness_settle();
    cr_assert_str_eq(harness_rows("k/"), "k/=1 k/a=2 k/a/b=5");
    cr_assert_str_eq(harness_rows("k/a"), "k/a=2 k/a/b=5");
    cr_assert_str_eq(harness_rows("k/a/b"), "k/a/b=5");
    cr_assert_str_eq(harness_rows("k/a/b/c"), "");
    cr_assert_str_eq(harness_rows("l"), "");
    cr_assert_str_eq(harness_rows("i"), "");
}

static bool count_two(struct rt_bytes key, struct rt_bytes value, void *ctx)
{
    size_t *n = ctx;

    return ++*n < 2;
}

Test(store, range_stops_when_told)
{
    size_t n = 0;

    (void)harness_run(and_put(and_put(put("a", "1"), "b", "2"), "c", "3"));
    cr_assert_eq(store_range(harness_store(), (struct rt_bytes){0}, count_two, NULL, &n, NULL),
                 RT_OK);
    cr_assert_eq(n, 2);
}

Test(store, range_sees_committed_rows_only)
{
    harness_submit(put("a", "1"));
    (void)harness_settle();
    harness_submit(when(put("a", "2"), "a", "9"));
    (void)harness_settle();
    cr_assert_str_eq(harness_rows(""), "a=1");
}

static size_t n_resubmitted;

static void resubmit(void)
{
    if (n_resubmitted < 5) {
        n_resubmitted++;
        harness_submit(put("again", "x"));
    }
}

Test(store, callbacks_may_submit)
{
    harness_on_done(resubmit);
    (void)harness_run(put("a", "1"));
    cr_assert_eq(n_resubmitted, 5);
    cr_assert_str_eq(harness_rows(""), "a=1 again=x");
}

Test(store, completes_many_in_order)
{
    char key[16];

    for (int i = 0; i < 1000; i++) {
        (void)snprintf(key, sizeof(key), "%03d", i % 100);
        harness_submit(i % 7 == 0 ? when(put(key, "x"), "none", "x") : put(key, "x"));
    }
    (void)harness_settle();
    cr_assert_eq(strlen(harness_rows("")), 100 * 6 - 1);
}

Test(store, survives_reopening)
{
    (void)harness_run(and_put(put("a", "1"), "b", "2"));
    (void)harness_run(erase("b"));
    harness_reopen();
    cr_assert_str_eq(harness_rows(""), "a=1");
    cr_assert_eq(harness_run(when(put("a", "2"), "a", "1")), STORE_COMMITTED);
    harness_reopen();
    cr_assert_str_eq(harness_rows(""), "a=2");
}

Test(store, values_from_nothing_to_a_mebibyte)
{
    static const size_t sizes[] = {0, 1, 15, 2000, 4096, 65536, 1 << 20};
    RT_CLEANUP(rt_freep) uint8_t *bytes = rt_xalloc(1 << 20);

    memset(bytes, 'v', 1 << 20);
    for (size_t i = 0; i < RT_ARRAY_SIZE(sizes); i++) {
        struct rt_bytes value = rt_bytes_of(bytes, sizes[i]);
        struct store_txn *same = put("same", "1");
        struct store_txn *shorter = put("same", "0");

        cr_assert_eq(harness_run(put_bytes(RT_BYTES_LITERAL("k"), value)), STORE_COMMITTED);
        store_txn_compare(same, RT_BYTES_LITERAL("k"), value);
        cr_assert_eq(harness_run(same), STORE_COMMITTED, "size %zu", sizes[i]);
        store_txn_compare(shorter, RT_BYTES_LITERAL("k"),
                          rt_bytes_of(bytes, sizes[i] > 0 ? sizes[i] - 1 : 1));
        cr_assert_eq(harness_run(shorter), STORE_COMPARE_FAILED);
    }
    cr_assert_str_eq(harness_rows("k"), "k=vvvvvvvvvvvvvvvv…");
}

Test(store, empty_value_is_not_absent)
{
    (void)harness_run(put("a", ""));
    cr_assert_eq(harness_run(when(put("x", "1"), "a", "")), STORE_COMMITTED);
    cr_assert_eq(harness_run(when_absent(put("x", "2"), "a")), STORE_COMPARE_FAILED);
}

Test(store, longest_key)
{
    char key[STORE_KEY_MAX + 2];

    memset(key, 'k', sizeof(key));
    key[STORE_KEY_MAX + 1] = 0;
    cr_assert_str_eq(harness_rows(key), "", "a prefix longer than any key");
    key[STORE_KEY_MAX] = 0;
    cr_assert_eq(harness_run(put(key, "1")), STORE_COMMITTED);
    cr_assert_eq(strlen(harness_rows(key)), STORE_KEY_MAX + 2);
    cr_assert_eq(harness_run(when(erase(key), key, "1")), STORE_COMMITTED);
    cr_assert_str_eq(harness_rows(""), "");
}

Test(store, largest_transaction)
{
    struct store_txn *txn = store_txn_new();
    char key[16];
    size_t n = 0;

    for (int i = 0; i < STORE_TXN_OPERATIONS_MAX; i++) {
        (void)snprintf(key, sizeof(key), "%05d", i);
        (void)and_put(txn, key, "v");
    }
    cr_assert_eq(harness_run(txn), STORE_COMMITTED);
    n = strlen(harness_rows(""));
    cr_assert_eq(n, (size_t)STORE_TXN_OPERATIONS_MAX * 8 - 1);
}

Test(store, corrupt_rows_are_reported_and_match_nothing)
{
    (void)harness_run(and_put(and_put(put("a", "1"), "b", "2"), "c", "3"));
    harness_corrupt("b");
    cr_assert_str_eq(harness_rows(""), "a=1 !b c=3");
    cr_assert_eq(harness_run(when(put("x", "1"), "b", "2")), STORE_COMPARE_FAILED);
    cr_assert_eq(harness_run(when_absent(put("x", "1"), "b")), STORE_COMPARE_FAILED);
    cr_assert_eq(harness_run(put("b", "4")), STORE_COMMITTED);
    cr_assert_str_eq(harness_rows(""), "a=1 b=4 c=3");
    harness_corrupt("c");
    cr_assert_eq(harness_run(erase("c")), STORE_COMMITTED);
    cr_assert_str_eq(harness_rows(""), "a=1 b=4");
}

Test(store, reads)
{
    (void)harness_run(and_put(and_put(put("a", "1"), "b", ""), "c", "3"));
    cr_assert_str_eq(harness_read(and_read(and_read(store_txn_new(), "b"), "a")), "b= a=1");
    cr_assert_str_eq(harness_read(and_read(store_txn_new(), "none")), "!none");
    cr_assert_str_eq(harness_read(and_read(and_put(and_read(store_txn_new(), "a"), "a", "2"), "a")),
                     "a=1 a=2", "in the order of the operations");
    harness_corrupt("c");
    cr_assert_str_eq(harness_read(and_read(and_read(store_txn_new(), "c"), "a")), "!c a=2");
    cr_assert_str_eq(harness_rows(""), "a=2 b= !c");
}

Test(store, a_read_sees_what_was_submitted_before_it)
{
    harness_submit(put("a", "1"));
    harness_submit(put("a", "2"));
    cr_assert_str_eq(harness_read(and_read(store_txn_new(), "a")), "a=2");
}

Test(small_store, reads_when_full)
{
    RT_CLEANUP(rt_freep) uint8_t *bytes = rt_xalloc(SMALL_STORE_VALUE);
    char key[16];
    int n = 0;

    memset(bytes, 'v', SMALL_STORE_VALUE);
    do
        (void)snprintf(key, sizeof(key), "%05d", n++);
    while (harness_run(put_bytes(rt_bytes_of_string(key), rt_bytes_of(bytes, SMALL_STORE_VALUE))) ==
           STORE_COMMITTED);
    cr_assert_eq(harness_settle(), STORE_FULL);
    cr_assert_str_eq(harness_read(and_read(store_txn_new(), "00000")), "00000=vvvvvvvvvvvvvvvv…");
}

static bool count(struct rt_bytes key, struct rt_bytes value, void *ctx)
{
    ++*(size_t *)ctx;
    return true;
}

static bool stop(struct rt_bytes key, struct rt_bytes value, void *ctx)
{
    return false;
}

Test(store, corrupt_rows_are_skipped_or_stop_the_walk)
{
    size_t n = 0;

    (void)harness_run(and_put(put("a", "1"), "b", "2"));
    harness_corrupt("a");
    cr_assert_eq(store_range(harness_store(), (struct rt_bytes){0}, count, NULL, &n, NULL), RT_OK);
    cr_assert_eq(n, 1);
    cr_assert_eq(store_range(harness_store(), (struct rt_bytes){0}, count, stop, &n, NULL), RT_OK);
    cr_assert_eq(n, 1);
}

Test(store, close_completes_what_is_queued)
{
    for (int i = 0; i < 50; i++)
        harness_submit(put("a", "1"));
    cr_assert_eq(harness_close_at_once(), 50);
}

Test(store, close_of_an_idle_store)
{
    cr_assert_eq(harness_close_at_once(), 0);
}

/* Eight keys, values of one letter; what the rows should be, as text. */
struct model {
    char values[8];
};

static struct store_txn *random_txn(struct rt_rng *rng, struct model *model, char *ret_outcome)
{
    struct store_txn *txn = store_txn_new();
    struct model after = *model;
    bool holds = true;

    for (uint64_t n = rt_rng_below(rng, 6); n > 0; n--) {
        size_t k = rt_rng_below(rng, RT_ARRAY_SIZE(model->values));
        char key[] = {(char)('a' + k), 0};
        char value[] = {(char)('0' + rt_rng_below(rng, 2)), 0};

        switch (rt_rng_below(rng, 6)) {
        case 0:
            (void)when(txn, key, value);
            holds &= model->values[k] == value[0];
            break;
        case 1:
            (void)when_absent(txn, key);
            holds &= model->values[k] == 0;
            break;
        case 2:
            (void)and_erase(txn, key);
            after.values[k] = 0;
            break;
        default:
            (void)and_put(txn, key, value);
            after.values[k] = value[0];
            break;
        }
    }
    *ret_outcome = holds ? 'C' : 'F';
    if (holds)
        *model = after;
    return txn;
}

static void check_against(const struct model *model)
{
    char expected[64] = "";
    size_t used = 0;

    for (size_t k = 0; k < RT_ARRAY_SIZE(model->values); k++)
        if (model->values[k])
            used += (size_t)snprintf(expected + used, sizeof(expected) - used, "%s%c=%c",
                                     used > 0 ? " " : "", (char)('a' + k), model->values[k]);
    cr_assert_str_eq(harness_rows(""), expected);
}

Test(store, random_transactions_match_a_model)
{
    struct model model = {0};
    struct rt_rng rng;
    char expected[33];

    rt_rng_seed(&rng, 20240917);
    for (int round = 0; round < 60; round++) {
        size_t n = rt_rng_below(&rng, sizeof(expected));

        for (size_t i = 0; i < n; i++)
            harness_submit(random_txn(&rng, &model, &expected[i]));
        expected[n] = 0;
        cr_assert_str_eq(harness_settle_all(), expected, "round %d", round);
        check_against(&model);
    }
}

static struct store_txn *put_large(int i)
{
    static char value[SMALL_STORE_VALUE + 1];
    char key[16];

    memset(value, 'v', SMALL_STORE_VALUE);
    (void)snprintf(key, sizeof(key), "large%03d", i);
    return put(key, value);
}

static int fill(void)
{
    int n = 0;

    while (harness_run(put_large(n)) == STORE_COMMITTED) {
        n++;
        cr_assert_lt(n, 1000, "never full");
    }
    return n;
}

Test(small_store, full_applies_nothing_and_says_so)
{
    int n = fill();

    cr_assert_gt(n, 5);
    cr_assert_eq(harness_run(and_put(put_large(n), "small", "1")), STORE_FULL);
    cr_assert_str_eq(harness_rows("small"), "");
    cr_assert_eq(strlen(harness_rows("large")), (size_t)n * 29 - 1);
}

Test(small_store, deleting_makes_room)
{
    int n = fill();

    for (int i = 0; i < n; i += 2) {
        char key[24];

        (void)snprintf(key, sizeof(key), "large%03d", i);
        cr_assert_eq(harness_run(erase(key)), STORE_COMMITTED, "%s", key);
    }
    cr_assert_eq(harness_run(put_large(0)), STORE_COMMITTED);
}

Test(small_store, only_what_does_not_fit_is_refused)
{
    int n = fill();

    harness_submit(when(put("s0", "1"), "none", "1"));
    harness_submit(erase("large000"));
    harness_submit(erase("large001"));
    harness_submit(erase("large002"));
    (void)harness_settle_all();
    harness_submit(put("s1", "1"));
    for (int i = 0; i < n; i++)
        harness_submit(put_large(1000 + i));
    harness_submit(put("s2", "1"));
    harness_submit(when(put("s3", "1"), "s1", "0"));
    (void)harness_settle();
    cr_assert_str_eq(harness_rows("s"), "s1=1 s2=1");
    harness_reopen();
    cr_assert_str_eq(harness_rows("s"), "s1=1 s2=1");
}
