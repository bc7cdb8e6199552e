/*
 * What only the memory engine has: the owner decides when and how a commit happens.
 */
#include "runtime/store/memory.h"

#include <signal.h>
#include <stdio.h>

#include "tests/support/check.h"

enum {
    N_MAX = 64
};

static struct store *store;
static char outcomes[N_MAX];
static size_t n_done;
static char rows[256];
static bool is_closed;

static void on_done(struct store_txn *txn, void *ctx)
{
    outcomes[n_done++] = "CFU?"[txn->outcome];
    outcomes[n_done] = 0;
    (void)store_txn_free(txn);
}

static void set_up(void)
{
    store = store_memory_new(on_done, NULL);
}

static void tear_down(void)
{
    store = store_memory_free(store);
    test_alloc_expect_none();
}

TestSuite(memory, .init = set_up, .fini = tear_down);

static void submit(const char *key, const char *value)
{
    struct store_txn *txn = store_txn_new();

    store_txn_put(txn, rt_bytes_of_string(key), rt_bytes_of_string(value));
    store_submit(store, txn);
}

static bool on_row(struct rt_bytes key, struct rt_bytes value, void *ctx)
{
    size_t used = strlen(rows);

    (void)snprintf(rows + used, sizeof(rows) - used, "%s%.*s=%.*s", used > 0 ? " " : "",
                   (int)key.size, key.data, (int)value.size, value.data);
    return true;
}

static const char *rows_of(struct store *other)
{
    rows[0] = 0;
    cr_assert_eq(store_range(other, (struct rt_bytes){0}, on_row, NULL, NULL, NULL), RT_OK);
    return rows;
}

Test(memory, nothing_happens_by_itself)
{
    submit("a", "1");
    submit("b", "2");
    cr_assert_eq(store_memory_n_queued(store), 2);
    cr_assert_str_eq(rows_of(store), "");
    cr_assert_eq(store_memory_step(store, 1), 1);
    cr_assert_str_eq(rows_of(store), "a=1");
    cr_assert_eq(store_memory_step(store, 5), 1);
    cr_assert_eq(store_memory_step(store, 5), 0);
    cr_assert_str_eq(outcomes, "CC");
}

Test(memory, commit_and_deliver_are_two_moments)
{
    submit("a", "1");
    submit("b", "2");
    cr_assert_eq(store_memory_deliver(store, STORE_MEMORY_ALL), 0);
    cr_assert_eq(store_memory_commit(store, 1), 1);
    cr_assert_str_eq(rows_of(store), "a=1");
    cr_assert_eq(n_done, 0);
    cr_assert_eq(store_memory_n_undelivered(store), 1);
    cr_assert_eq(store_memory_commit(store, STORE_MEMORY_ALL), 1);
    cr_assert_eq(store_memory_deliver(store, 1), 1);
    cr_assert_eq(store_memory_run(store), 1);
    cr_assert_str_eq(outcomes, "CC");
}

Test(memory, full_strikes_after_the_countdown)
{
    store_memory_fail_after(store, STORE_MEMORY_FULL, 1, 2);
    submit("a", "1");
    submit("b", "2");
    submit("c", "3");
    submit("d", "4");
    (void)store_memory_run(store);
    cr_assert_str_eq(outcomes, "CUUC");
    cr_assert_str_eq(rows_of(store), "a=1 d=4");
}

Test(memory, failed_compare_comes_before_full)
{
    struct store_txn *txn = store_txn_new();

    store_memory_fail_after(store, STORE_MEMORY_FULL, 0, 1);
    store_txn_compare(txn, RT_BYTES_LITERAL("none"), RT_BYTES_LITERAL("x"));
    store_submit(store, txn);
    (void)store_memory_run(store);
    cr_assert_str_eq(outcomes, "F");
}

Test(memory, unknown_not_applied_poisons)
{
    store_memory_fail_after(store, STORE_MEMORY_UNKNOWN_NOT_APPLIED, 1, 1);
    submit("a", "1");
    submit("b", "2");
    submit("c", "3");
    (void)store_memory_run(store);
    cr_assert_str_eq(outcomes, "C??");
    cr_assert_str_eq(rows_of(store), "a=1");
    store_memory_crash(store);
    submit("d", "4");
    (void)store_memory_run(store);
    cr_assert_str_eq(outcomes, "C??C");
}

static void expect_found(struct store_txn *txn, void *ctx)
{
    cr_assert_eq(txn->outcome, STORE_COMMITTED);
    cr_assert(txn->operations[0].is_found);
    (void)store_txn_free(txn);
    ++*(int *)ctx;
}

Test(memory, what_only_reads_is_answered_after_an_unknown_outcome)
{
    struct store_txn *txn = store_txn_new();
    int n_found = 0;

    submit("a", "1");
    (void)store_memory_run(store);
    store_memory_fail_after(store, STORE_MEMORY_UNKNOWN_NOT_APPLIED, 0, 1);
    submit("b", "2");
    (void)store_memory_run(store);
    store_txn_read(txn, RT_BYTES_LITERAL("a"));
    store_memory_set_done(store, expect_found, &n_found);
    store_submit(store, txn);
    (void)store_memory_run(store);
    cr_assert_eq(n_found, 1);
}

Test(memory, unknown_applied_shows_up)
{
    struct store_txn *txn = store_txn_new();

    store_memory_fail_after(store, STORE_MEMORY_UNKNOWN_APPLIED, 0, 1);
    submit("a", "1");
    submit("b", "2");
    (void)store_memory_run(store);
    cr_assert_str_eq(outcomes, "??");
    cr_assert_str_eq(rows_of(store), "a=1");

    store_memory_crash(store);
    store_memory_fail_after(store, STORE_MEMORY_UNKNOWN_APPLIED, 0, 1);
    store_txn_compare_absent(txn, RT_BYTES_LITERAL("a"));
    store_txn_put(txn, RT_BYTES_LITERAL("c"), RT_BYTES_LITERAL("3"));
    store_submit(store, txn);
    (void)store_memory_run(store);
    cr_assert_str_eq(outcomes, "???");
    cr_assert_str_eq(rows_of(store), "a=1", "a failed compare has no effect, known or not");
}

Test(memory, stall_holds_attempts_back)
{
    store_memory_fail_after(store, STORE_MEMORY_STALL, 1, 2);
    submit("a", "1");
    submit("b", "2");
    cr_assert_eq(store_memory_run(store), 1);
    cr_assert_eq(store_memory_run(store), 0);
    cr_assert_eq(store_memory_n_queued(store), 1);
    cr_assert_eq(store_memory_run(store), 1);
    cr_assert_str_eq(outcomes, "CC");
}

Test(memory, stall_for_ever_until_disarmed)
{
    store_memory_fail_after(store, STORE_MEMORY_STALL, 0, STORE_MEMORY_FOREVER);
    submit("a", "1");
    for (int i = 0; i < 100; i++)
        cr_assert_eq(store_memory_step(store, 1), 0);
    store_memory_fail_after(store, STORE_MEMORY_STALL, 0, 0);
    cr_assert_eq(store_memory_step(store, 1), 1);
}

Test(memory, crash_keeps_what_was_committed)
{
    submit("a", "1");
    submit("b", "2");
    submit("c", "3");
    (void)store_memory_step(store, 1);
    (void)store_memory_commit(store, 1);
    store_memory_fail_after(store, STORE_MEMORY_STALL, 0, STORE_MEMORY_FOREVER);
    store_memory_crash(store);
    cr_assert_str_eq(outcomes, "C");
    cr_assert_str_eq(rows_of(store), "a=1 b=2");
    cr_assert_eq(store_memory_n_queued(store) + store_memory_n_undelivered(store), 0);
    submit("d", "4");
    cr_assert_eq(store_memory_run(store), 1);
}

static void crash_now(struct store_txn *txn, void *ctx)
{
    n_done++;
    (void)store_txn_free(txn);
    store_memory_crash(store);
}

Test(memory, crash_inside_a_completion)
{
    store_memory_set_done(store, crash_now, NULL);
    submit("a", "1");
    submit("b", "2");
    cr_assert_eq(store_memory_run(store), 1);
    cr_assert_eq(n_done, 1);
    cr_assert_str_eq(rows_of(store), "a=1");
}

static void count_done(struct store_txn *txn, void *ctx)
{
    ++*(size_t *)ctx;
    (void)store_txn_free(txn);
}

Test(memory, set_done_moves_completions)
{
    size_t n_others = 0;

    submit("a", "1");
    store_memory_set_done(store, count_done, &n_others);
    (void)store_memory_run(store);
    cr_assert_eq(n_done, 0);
    cr_assert_eq(n_others, 1);
}

Test(memory, clone_has_committed_rows_and_a_life_of_its_own)
{
    struct store *clone;

    submit("a", "1");
    submit("b", "2");
    (void)store_memory_run(store);
    cr_assert(store_memory_corrupt(store, RT_BYTES_LITERAL("b")));
    submit("c", "3");
    clone = store_memory_clone(store, on_done, NULL);
    cr_assert_str_eq(rows_of(clone), "a=1", "corruption is copied, the queue is not");
    (void)store_memory_run(store);
    cr_assert_str_eq(rows_of(clone), "a=1");
    cr_assert_str_eq(rows_of(store), "a=1 c=3");
    (void)store_memory_free(clone);
}

Test(memory, corrupt_of_an_absent_row)
{
    cr_assert_not(store_memory_corrupt(store, RT_BYTES_LITERAL("none")));
}

Test(memory, capacity_at_the_limit_and_one_more)
{
    store_memory_set_capacity(store, 8);
    submit("k", "1234567");
    submit("x", "");
    (void)store_memory_run(store);
    cr_assert_str_eq(outcomes, "CU");
    store_memory_set_capacity(store, 0);
    submit("x", "1");
    (void)store_memory_run(store);
    cr_assert_str_eq(outcomes, "CUC");
}

static void on_closed(void *ctx)
{
    is_closed = true;
    store = NULL;
}

Test(memory, close_waits_for_the_owner)
{
    submit("a", "1");
    store_close(store, on_closed, NULL);
    cr_assert_not(is_closed);
    (void)store_memory_commit(store, STORE_MEMORY_ALL);
    cr_assert_not(is_closed);
    (void)store_memory_deliver(store, STORE_MEMORY_ALL);
    cr_assert(is_closed);
    cr_assert_str_eq(outcomes, "C");
}

static void close_now(struct store_txn *txn, void *ctx)
{
    n_done++;
    (void)store_txn_free(txn);
    if (n_done == 1)
        store_close(store, on_closed, NULL);
}

Test(memory, close_inside_a_completion)
{
    store_memory_set_done(store, close_now, NULL);
    submit("a", "1");
    submit("b", "2");
    cr_assert_eq(store_memory_run(store), 2);
    cr_assert(is_closed);
}

Test(memory, submit_after_close, .signal = SIGABRT)
{
    store_close(store, on_closed, NULL);
    submit("a", "1");
}

static void on_other_range(struct store *other)
{
    (void)store_memory_n_queued(other);
}

Test(memory, other_engines_are_refused, .signal = SIGABRT)
{
    static const struct store_ops ops;
    struct store other = {.ops = &ops};

    on_other_range(&other);
}

Test(memory, free_accepts_null)
{
    cr_assert_null(store_memory_free(NULL));
}

Test(memory, many_rows_in_any_order)
{
    char key[16];
    char value[16];

    for (int i = 0; i < 5000; i++) {
        (void)snprintf(key, sizeof(key), "%04d", i * 7919 % 5000);
        (void)snprintf(value, sizeof(value), "%d", i);
        submit(key, value);
        n_done = 0;
        (void)store_memory_run(store);
    }
    for (int i = 0; i < 5000; i += 2) {
        struct store_txn *txn = store_txn_new();

        (void)snprintf(key, sizeof(key), "%04d", i);
        store_txn_delete(txn, rt_bytes_of_string(key));
        store_submit(store, txn);
        n_done = 0;
        (void)store_memory_run(store);
    }
    rows[0] = 0;
    cr_assert_eq(store_range(store, RT_BYTES_LITERAL("000"), on_row, NULL, NULL, NULL), RT_OK);
    cr_assert_eq(strncmp(rows, "0001=", 5), 0);
    cr_assert_not_null(strstr(rows, " 0003="));
    cr_assert_null(strstr(rows, " 0004="));
}
