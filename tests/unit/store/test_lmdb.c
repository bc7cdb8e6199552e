/*
 * What only the LMDB engine has: files, the map, threads, and disks that fail.
 */
#include "runtime/store/lmdb.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/rng.h"
#include "tests/support/check.h"
#include "tests/support/disk_faults.h"
#include "tests/unit/store/process.h"
#include "tests/unit/store/temporary.h"

enum {
    N_MAX = 2048
};

#define MEBIBYTE ((size_t)1 << 20)

static uv_loop_t loop;
static struct store *store;
static char outcomes[N_MAX];
static size_t n_submitted;
static size_t n_done;
static bool is_closed;
static struct rt_error err;
static struct store_lmdb_options options;

static void on_done(struct store_txn *txn, void *ctx)
{
    outcomes[n_done++] = "CFU?"[txn->outcome];
    (void)store_txn_free(txn);
}

static enum rt_code try_open(void)
{
    err = (struct rt_error)RT_ERROR_INIT;
    return store_lmdb_open(&options, on_done, NULL, &store, &err);
}

static void reopen(void)
{
    cr_assert_eq(try_open(), RT_OK, "%s", err.message);
}

static void set_up(void)
{
    cr_assert_eq(uv_loop_init(&loop), 0);
    options = (struct store_lmdb_options){.path = temporary_path("store"), .loop = &loop};
}

static void on_closed(void *ctx)
{
    is_closed = true;
    store = NULL;
}

static void close_store(void)
{
    is_closed = false;
    store_close(store, on_closed, NULL);
    while (!is_closed)
        (void)uv_run(&loop, UV_RUN_ONCE);
}

static void tear_down(void)
{
    test_disk_heal();
    if (store)
        close_store();
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    cr_assert_eq(uv_loop_close(&loop), 0);
    temporary_remove();
    test_alloc_expect_none();
}

TestSuite(lmdb, .init = set_up, .fini = tear_down);

static void submit(const char *key, struct rt_bytes value)
{
    struct store_txn *txn = store_txn_new();

    store_txn_put(txn, rt_bytes_of_string(key), value);
    n_submitted++;
    store_submit(store, txn);
}

/* Outcomes of everything since the last call. */
static const char *settle(void)
{
    while (n_done < n_submitted)
        (void)uv_run(&loop, UV_RUN_ONCE);
    outcomes[n_done] = 0;
    n_done = 0;
    n_submitted = 0;
    return outcomes;
}

static const char *put(const char *key, const char *value)
{
    submit(key, rt_bytes_of_string(value));
    return settle();
}

/* Submits a transaction that only reads. */
static const char *read_row(const char *key)
{
    struct store_txn *txn = store_txn_new();

    store_txn_read(txn, rt_bytes_of_string(key));
    n_submitted++;
    store_submit(store, txn);
    return settle();
}

struct walk {
    size_t n_rows;
    size_t n_corrupt;
    size_t n_bytes;
};

static bool on_row(struct rt_bytes key, struct rt_bytes value, void *ctx)
{
    struct walk *walk = ctx;

    walk->n_rows++;
    walk->n_bytes += value.size;
    return true;
}

static bool on_corrupt(struct rt_bytes key, struct rt_bytes value, void *ctx)
{
    ((struct walk *)ctx)->n_corrupt++;
    return true;
}

static enum rt_code walk(const char *prefix, struct walk *ret_walk)
{
    *ret_walk = (struct walk){0};
    return store_range(store, rt_bytes_of_string(prefix), on_row, on_corrupt, ret_walk, &err);
}

static bool has(const char *key)
{
    struct walk found;

    cr_assert_eq(walk(key, &found), RT_OK, "%s", err.message);
    return found.n_rows > 0;
}

Test(lmdb, makes_its_directory_for_the_owner_only)
{
    struct stat status;

    reopen();
    cr_assert_eq(stat(options.path, &status), 0);
    cr_assert_eq(status.st_mode & 0777, 0700);
    cr_assert_eq(stat(temporary_path("store/data.mdb"), &status), 0);
    cr_assert_eq(status.st_mode & 0777, 0600);
}

Test(lmdb, errors_name_the_path)
{
    options.path = temporary_path("no/store");
    cr_assert_eq(try_open(), RT_NOT_FOUND);
    cr_assert_not_null(strstr(err.message, options.path), "%s", err.message);

    options.path = temporary_path("file");
    (void)close(open(options.path, O_CREAT | O_WRONLY, 0600));
    cr_assert_eq(try_open(), RT_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(err.message, options.path), "%s", err.message);
    cr_assert_eq(store_lmdb_open(&options, on_done, NULL, &store, NULL), RT_INVALID_ARGUMENT);
}

Test(lmdb, map_sizes_at_their_limits)
{
    options.map_size_bytes = STORE_LMDB_MAP_SIZE_MIN - 1;
    cr_assert_eq(try_open(), RT_INVALID_ARGUMENT);
    options.map_size_bytes = STORE_LMDB_MAP_SIZE_MIN;
    options.map_limit_bytes = STORE_LMDB_MAP_SIZE_MIN - 1;
    cr_assert_eq(try_open(), RT_INVALID_ARGUMENT);
    options.map_limit_bytes = STORE_LMDB_MAP_SIZE_MIN;
    reopen();
    close_store();
    options.map_size_bytes = STORE_LMDB_MAP_LIMIT_DEFAULT + 1;
    options.map_limit_bytes = 0;
    reopen();
}

Test(lmdb, second_opener_is_refused)
{
    struct store *first;

    reopen();
    first = store;
    cr_assert_eq(try_open(), RT_FAILED_PRECONDITION);
    cr_assert_not_null(strstr(err.message, options.path));
    cr_assert_eq(store, first);
    close_store();
    reopen();
}

Test(lmdb, map_grows_up_to_its_limit)
{
    RT_CLEANUP(rt_freep) uint8_t *large = rt_xalloc(MEBIBYTE);
    char key[8];

    options.map_size_bytes = STORE_LMDB_MAP_SIZE_MIN;
    options.map_limit_bytes = 16 * MEBIBYTE;
    reopen();
    for (int i = 0; i < 20; i++) {
        (void)snprintf(key, sizeof(key), "%02d", i);
        submit(key, rt_bytes_of(large, MEBIBYTE));
    }
    (void)settle();
    cr_assert_eq(strncmp(outcomes, "CCCCCCCCCC", 10), 0, "%s", outcomes);
    cr_assert_eq(outcomes[19], 'U');
    close_store();

    options.map_limit_bytes = 64 * MEBIBYTE;
    reopen();
    submit("19", rt_bytes_of(large, MEBIBYTE));
    cr_assert_str_eq(settle(), "C", "after the limit was raised");
    close_store();

    options.map_size_bytes = STORE_LMDB_MAP_SIZE_MIN;
    options.map_limit_bytes = STORE_LMDB_MAP_SIZE_MIN;
    reopen();
    cr_assert(has("19"), "what is there stays readable under a lower limit");
}

Test(lmdb, map_that_cannot_grow_is_full)
{
    RT_CLEANUP(rt_freep) uint8_t *large = rt_xalloc(MEBIBYTE);

    options.map_size_bytes = STORE_LMDB_MAP_SIZE_MIN;
    reopen();
    test_disk_fail_after(TEST_DISK_MAP, ENOMEM, 0, 1);
    submit("k", rt_bytes_of(large, MEBIBYTE));
    cr_assert_str_eq(settle(), "U");
    cr_assert_str_eq(put("k", "small"), "C");
    submit("k", rt_bytes_of(large, MEBIBYTE));
    cr_assert_str_eq(settle(), "C");
}

Test(lmdb, map_that_is_lost_is_not_touched)
{
    RT_CLEANUP(rt_freep) uint8_t *large = rt_xalloc(MEBIBYTE);
    struct walk found;

    options.map_size_bytes = STORE_LMDB_MAP_SIZE_MIN;
    reopen();
    cr_assert_str_eq(put("a", "1"), "C");
    /* The first map is a trial. */
    test_disk_fail_after(TEST_DISK_MAP, ENOMEM, 1, 1);
    submit("k", rt_bytes_of(large, MEBIBYTE));
    cr_assert_str_eq(settle(), "U");
    cr_assert_str_eq(put("b", "2"), "?");
    cr_assert_str_eq(read_row("a"), "?");
    cr_assert_eq(walk("", &found), RT_INTERNAL);
    close_store();
    test_disk_heal();
    reopen();
    cr_assert(has("a"));
    cr_assert_not(has("b"));
}

Test(lmdb, failed_fsync_is_unknown_and_so_is_the_rest)
{
    reopen();
    cr_assert_str_eq(put("a", "1"), "C");
    test_disk_fail_after(TEST_DISK_SYNC, EIO, 0, 1);
    cr_assert_str_eq(put("b", "2"), "?");
    cr_assert_str_eq(put("c", "3"), "?", "poisoned");
    cr_assert(has("a"), "reads go on");
    cr_assert_str_eq(read_row("a"), "C");
    cr_assert_not(has("c"));
    close_store();
    reopen();
    cr_assert(has("a"));
    cr_assert_str_eq(put("d", "4"), "C");
}

Test(lmdb, commit_into_a_deleted_file_is_unknown_and_so_is_the_rest)
{
    reopen();
    cr_assert_str_eq(put("a", "1"), "C");
    cr_assert_eq(unlink(temporary_path("store/data.mdb")), 0);
    cr_assert_str_eq(put("b", "2"), "?");
    cr_assert_eq(close(open(temporary_path("store/data.mdb"), O_CREAT | O_WRONLY, 0600)), 0);
    cr_assert_str_eq(put("c", "3"), "?", "another file of that name is not this one");
}

Test(lmdb, commit_into_a_directory_that_was_moved_counts)
{
    char moved[512];

    (void)snprintf(moved, sizeof(moved), "%s", temporary_path("moved"));
    reopen();
    cr_assert_eq(rename(temporary_path("store"), moved), 0);
    cr_assert_str_eq(put("a", "1"), "C");
    close_store();
    options.path = moved;
    reopen();
    cr_assert(has("a"));
}

/* Fails one write after `countdown` others, then opens the store again. What was acknowledged must
 * be there, what was refused must not. Returns false when the fault was past the last write. */
static bool check_write_fault(int errno_value, size_t countdown)
{
    size_t before;
    char first;
    char second;

    reopen();
    (void)put("first", "0");
    (void)put("second", "0");
    before = test_disk_calls(TEST_DISK_WRITE);
    test_disk_fail_after(TEST_DISK_WRITE, errno_value, countdown, 1);
    first = *put("first", "1");
    test_disk_heal();
    second = *put("second", "1");
    before = test_disk_calls(TEST_DISK_WRITE) - before;
    close_store();

    reopen();
    cr_assert(has("first") && has("second"));
    if (first == 'C') {
        struct store_txn *txn = store_txn_new();

        store_txn_compare(txn, RT_BYTES_LITERAL("first"), RT_BYTES_LITERAL("1"));
        n_submitted++;
        store_submit(store, txn);
        cr_assert_str_eq(settle(), "C");
        cr_assert_eq(second, 'C');
    } else if (first == 'U') {
        cr_assert_eq(second, 'C', "later ones may succeed");
    } else {
        cr_assert_eq(first, '?');
        cr_assert_eq(second, '?');
    }
    close_store();
    return countdown < before;
}

Test(lmdb, every_write_may_find_the_disk_full)
{
    size_t countdown = 0;

    while (check_write_fault(ENOSPC, countdown))
        countdown++;
    cr_assert_geq(countdown, 2);
}

Test(lmdb, every_write_may_fail)
{
    size_t countdown = 0;

    while (check_write_fault(EIO, countdown))
        countdown++;
    cr_assert_geq(countdown, 2);
}

Test(lmdb, full_disk_refuses_and_recovers)
{
    reopen();
    cr_assert_str_eq(put("a", "1"), "C");
    test_disk_fail_after(TEST_DISK_WRITE, ENOSPC, 0, TEST_DISK_FOREVER);
    for (int i = 0; i < 5; i++)
        submit("b", RT_BYTES_LITERAL("2"));
    cr_assert_str_eq(settle(), "UUUUU");
    cr_assert(has("a"));
    test_disk_heal();
    cr_assert_str_eq(put("b", "3"), "C");
    close_store();
    reopen();
    cr_assert(has("b"));
}

/* The last write before a disk is full is a short one, which LMDB calls EIO. */
Test(lmdb, write_cut_short_by_a_full_disk_refuses_and_recovers)
{
    RT_CLEANUP(rt_freep) uint8_t *large = rt_xalloc(MEBIBYTE);

    reopen();
    cr_assert_str_eq(put("a", "1"), "C");
    for (size_t room = 1; room < MEBIBYTE; room = room * 5 + 1) {
        test_disk_set_room(room);
        submit("b", rt_bytes_of(large, MEBIBYTE));
        cr_assert_str_eq(settle(), "U", "room for %zu bytes", room);
        cr_assert(has("a") && !has("b"), "reads go on");
    }
    test_disk_heal();
    close_store();
    reopen();
    cr_assert(has("a") && !has("b"));
    submit("b", rt_bytes_of(large, MEBIBYTE));
    cr_assert_str_eq(settle(), "C");
}

Test(lmdb, write_cut_short_by_a_full_disk_needs_no_restart)
{
    RT_CLEANUP(rt_freep) uint8_t *large = rt_xalloc(MEBIBYTE);

    reopen();
    test_disk_set_room(MEBIBYTE / 2);
    submit("b", rt_bytes_of(large, MEBIBYTE));
    cr_assert_str_eq(settle(), "U");
    test_disk_heal();
    submit("b", rt_bytes_of(large, MEBIBYTE));
    cr_assert_str_eq(settle(), "C");
    close_store();
    reopen();
    cr_assert(has("b"));
}

/* What is submitted from here on waits and becomes one group. */
static void begin_group(void)
{
    test_disk_stall();
    submit("first", RT_BYTES_LITERAL("x"));
    test_disk_wait_for_stalled();
}

Test(lmdb, disk_full_for_a_moment_costs_nothing)
{
    reopen();
    begin_group();
    for (int i = 0; i < 10; i++)
        submit("a", RT_BYTES_LITERAL("x"));
    /* The meta page of the first commit is still to be written. */
    test_disk_fail_after(TEST_DISK_WRITE, ENOSPC, 1, 1);
    test_disk_release();
    cr_assert_str_eq(settle(), "CCCCCCCCCCC");
}

Test(lmdb, group_loses_only_what_does_not_fit)
{
    RT_CLEANUP(rt_freep) uint8_t *large = rt_xalloc(2 * MEBIBYTE);
    struct store_txn *fails = store_txn_new();

    options.map_size_bytes = STORE_LMDB_MAP_SIZE_MIN;
    options.map_limit_bytes = MEBIBYTE;
    reopen();
    begin_group();
    submit("a", RT_BYTES_LITERAL("1"));
    submit("b", rt_bytes_of(large, 2 * MEBIBYTE));
    submit("c", RT_BYTES_LITERAL("3"));
    store_txn_compare(fails, RT_BYTES_LITERAL("b"), RT_BYTES_LITERAL("x"));
    n_submitted++;
    store_submit(store, fails);
    submit("d", rt_bytes_of(large, 2 * MEBIBYTE));
    submit("e", rt_bytes_of(large, MEBIBYTE / 2));
    test_disk_release();
    cr_assert_str_eq(settle(), "CCUCFUC");
    cr_assert(has("a") && has("c") && has("e"));
    cr_assert_not(has("b") || has("d"));
}

Test(lmdb, stalled_disk_does_not_hold_submitters_and_commits_are_shared)
{
    size_t before;

    reopen();
    begin_group();
    before = test_disk_calls(TEST_DISK_SYNC);
    for (int i = 0; i < 1000; i++)
        submit("k", RT_BYTES_LITERAL("x"));
    test_disk_release();
    cr_assert_eq(strspn(settle(), "C"), 1001);
    cr_assert_leq(test_disk_calls(TEST_DISK_SYNC) - before, 2, "one commit for all that waited");
}

Test(lmdb, thread_that_cannot_start)
{
    struct store *none = NULL;

    store = NULL;
    test_thread_fail_once();
    cr_assert_eq(store_lmdb_open(&options, on_done, NULL, &none, &err), RT_UNAVAILABLE);
    cr_assert_null(none);
    cr_assert_not_null(strstr(err.message, options.path));
    reopen();
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    cr_assert_not_null(file);
    (void)fputs(text, file);
    (void)fclose(file);
}

static void expect_data_loss(void)
{
    store = NULL;
    cr_assert_eq(try_open(), RT_DATA_LOSS, "%s", err.message);
    cr_assert_not_null(strstr(err.message, options.path), "%s", err.message);
}

Test(lmdb, emptied_store_is_never_a_new_one)
{
    reopen();
    cr_assert_str_eq(put("a", "1"), "C");
    close_store();
    cr_assert_eq(truncate(temporary_path("store/data.mdb"), 0), 0);
    expect_data_loss();
    cr_assert_eq(unlink(temporary_path("store/data.mdb")), 0);
    expect_data_loss();
}

Test(lmdb, foreign_files_are_refused)
{
    char garbage[4096];

    reopen();
    close_store();
    write_file(temporary_path("store/FORMAT"), "redistinto-lmdb 2\n");
    expect_data_loss();
    write_file(temporary_path("store/FORMAT"), "redistinto-lmdb 1\n");
    reopen();
    close_store();
    memset(garbage, 'x', sizeof(garbage) - 1);
    garbage[sizeof(garbage) - 1] = 0;
    write_file(temporary_path("store/data.mdb"), garbage);
    expect_data_loss();
}

/* The bytes of a file. */
struct content {
    uint8_t *bytes; /* owned */
    size_t size;
};

static struct content read_content(const char *path)
{
    struct content content;
    struct stat status;
    FILE *file = fopen(path, "r");

    cr_assert_not_null(file);
    cr_assert_eq(fstat(fileno(file), &status), 0);
    content.size = (size_t)status.st_size;
    content.bytes = rt_xalloc(content.size);
    cr_assert_eq(fread(content.bytes, 1, content.size, file), content.size);
    (void)fclose(file);
    return content;
}

static void write_content(const char *path, const struct content *content, size_t size)
{
    FILE *file = fopen(path, "w");

    cr_assert_not_null(file);
    cr_assert_eq(fwrite(content->bytes, 1, size, file), size);
    (void)fclose(file);
}

enum {
    N_ROWS = 200,
    N_LARGE = 10,
};

/* Branches, leaves, values on pages of their own, free pages and lists of them. */
static struct content make_store(const char *path)
{
    static char value[6000];
    char key[16];

    memset(value, 'v', sizeof(value) - 1);
    reopen();
    for (int i = 0; i < 2 * N_ROWS; i++) {
        struct store_txn *txn = store_txn_new();

        (void)snprintf(key, sizeof(key), "%06d", i / 2);
        store_txn_put(txn, rt_bytes_of_string(key),
                      rt_bytes_of(value, i / 2 < N_LARGE ? sizeof(value) - 1 : 300));
        (void)snprintf(key, sizeof(key), "gone%04d", i % 50);
        if (i % 3 == 0)
            store_txn_delete(txn, rt_bytes_of_string(key));
        else
            store_txn_put(txn, rt_bytes_of_string(key), rt_bytes_of(value, 2500));
        n_submitted++;
        store_submit(store, txn);
        if (i % 10 == 0)
            (void)settle();
    }
    (void)settle();
    for (int i = 0; i < 50; i++) {
        struct store_txn *txn = store_txn_new();

        (void)snprintf(key, sizeof(key), "gone%04d", i);
        store_txn_delete(txn, rt_bytes_of_string(key));
        n_submitted++;
        store_submit(store, txn);
    }
    (void)settle();
    close_store();
    return read_content(path);
}

/* Opens what is there, reads it and writes to it. Returns false when it was refused. What is
 * served must be what was written; what is missing must have been reported. */
static bool use_damaged_store(const char *what, size_t where)
{
    struct walk found = {0};
    enum rt_code code;

    store = NULL;
    code = try_open();
    if (code != RT_OK) {
        cr_assert_eq(code, RT_DATA_LOSS, "%s at %zu: %s", what, where, err.message);
        return false;
    }
    code = walk("", &found);
    cr_assert_eq(code, RT_OK, "%s at %zu: %s", what, where, err.message);
    cr_assert_eq(found.n_rows + found.n_corrupt, N_ROWS, "%s at %zu", what, where);
    cr_assert_eq(strspn(put("new", "row"), "C"), 1, "%s at %zu", what, where);
    cr_assert(has("new"));
    close_store();
    return true;
}

/* How many pages at the end of the file are free depends on how commits were shared. */
Test(lmdb, store_that_was_cut_off_is_refused)
{
    const size_t n_row_bytes = N_LARGE * 6000 + (N_ROWS - N_LARGE) * 300;
    const char *path = temporary_path("store/data.mdb");
    struct content whole = make_store(path);
    bool was_used = false;

    for (size_t size = 4096; size < whole.size; size += 4096) {
        bool is_used;

        write_content(path, &whole, size);
        is_used = use_damaged_store("cut", size);
        cr_assert(!is_used || size > n_row_bytes, "rows are missing at %zu", size);
        cr_assert(is_used || !was_used, "cut at %zu refused, further in front not", size);
        was_used = is_used;
    }
    write_content(path, &whole, whole.size);
    cr_assert(use_damaged_store("whole", whole.size));
    (void)rt_free(whole.bytes);
}

Test(lmdb, flipped_bits_never_crash_and_never_lose_rows_silently)
{
    const char *path = temporary_path("store/data.mdb");
    struct content whole = make_store(path);
    size_t n_refused = 0;
    struct rt_rng rng;

    rt_rng_seed(&rng, 1);
    for (int i = 0; i < 300; i++) {
        /* The first half in the headers of pages, where it hurts. */
        size_t where = rt_rng_below(&rng, whole.size);
        uint8_t bit = (uint8_t)(1 << rt_rng_below(&rng, 8));

        if (i % 2 == 0)
            where = where / 4096 * 4096 + where % 64;
        whole.bytes[where] ^= bit;
        write_content(path, &whole, whole.size);
        n_refused += !use_damaged_store("flip", where);
        whole.bytes[where] ^= bit;
    }
    cr_assert_gt(n_refused, 10);
    (void)rt_free(whole.bytes);
}

Test(lmdb, flipped_bit_in_a_value_is_found)
{
    static char file_content[65536];
    const char *path = temporary_path("store/data.mdb");
    struct walk found;
    size_t size;
    char *needle;
    FILE *file;

    reopen();
    (void)put("a", "plain");
    (void)put("b", "needle-in-the-file");
    close_store();
    file = fopen(path, "r+");
    size = fread(file_content, 1, sizeof(file_content), file);
    for (char *at = file_content;
         (needle = memmem(at, size - (size_t)(at - file_content), "needle-in-the-file", 18));
         at = needle + 1) {
        (void)fseek(file, needle - file_content, SEEK_SET);
        (void)fputc('N', file);
    }
    (void)fclose(file);
    reopen();
    cr_assert_eq(walk("", &found), RT_OK);
    cr_assert_eq(found.n_rows, 1);
    cr_assert_eq(found.n_corrupt, 1);
}

Test(lmdb, follows_a_map_that_another_process_has_grown)
{
    struct process tool;
    struct walk found;

    options.map_size_bytes = STORE_LMDB_MAP_SIZE_MIN;
    reopen();
    cr_assert_str_eq(put("a", "1"), "C");
    process_start(&tool, "grow", options.path);
    cr_assert_eq(process_finish(&tool), 0);
    cr_assert_eq(walk("", &found), RT_OK, "%s", err.message);
    cr_assert_eq(found.n_rows, 1);
    cr_assert_eq(found.n_corrupt, 1, "the tool knows no checksums");
    process_start(&tool, "grow", options.path);
    cr_assert_eq(process_finish(&tool), 0);
    cr_assert_str_eq(put("b", "2"), "C");
}

static bool walk_again(struct rt_bytes key, struct rt_bytes value, void *ctx)
{
    struct walk inner = {0};

    cr_assert_eq(store_range(store, key, on_row, NULL, &inner, NULL), RT_OK);
    *(size_t *)ctx += inner.n_rows;
    return true;
}

Test(lmdb, ranges_nest)
{
    size_t n = 0;

    reopen();
    (void)put("a", "1");
    (void)put("b", "2");
    cr_assert_eq(store_range(store, (struct rt_bytes){0}, walk_again, NULL, &n, NULL), RT_OK);
    cr_assert_eq(n, 2);
}

/* Both rows always change together. */
static bool compare_rows(struct rt_bytes key, struct rt_bytes value, void *ctx)
{
    char *seen = ctx;

    if (seen[0] && memcmp(seen, value.data, value.size) != 0)
        seen[31] = 1;
    memcpy(seen, value.data, value.size);
    return true;
}

static void *read_snapshots(void *ctx)
{
    size_t *n_torn = ctx;

    for (int i = 0; i < 500; i++) {
        char seen[32] = "";

        if (store_range(store, RT_BYTES_LITERAL("pair"), compare_rows, NULL, seen, NULL) != RT_OK ||
            seen[31])
            ++*n_torn;
    }
    return NULL;
}

Test(lmdb, readers_on_other_threads_see_snapshots_while_the_map_grows)
{
    RT_CLEANUP(rt_freep) uint8_t *large = rt_xalloc(MEBIBYTE);
    pthread_t threads[2];
    size_t n_torn[2] = {0};

    options.map_size_bytes = STORE_LMDB_MAP_SIZE_MIN;
    reopen();
    for (size_t i = 0; i < 2; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, read_snapshots, &n_torn[i]), 0);
    for (int i = 0; i < 200; i++) {
        struct store_txn *txn = store_txn_new();
        char value[16];

        (void)snprintf(value, sizeof(value), "%08d", i);
        store_txn_put(txn, RT_BYTES_LITERAL("pair1"), rt_bytes_of_string(value));
        store_txn_put(txn, RT_BYTES_LITERAL("pair2"), rt_bytes_of_string(value));
        store_txn_put(txn, rt_bytes_of_string(value), rt_bytes_of(large, 32768));
        n_submitted++;
        store_submit(store, txn);
    }
    cr_assert_eq(strspn(settle(), "C"), 200);
    for (size_t i = 0; i < 2; i++) {
        cr_assert_eq(pthread_join(threads[i], NULL), 0);
        cr_assert_eq(n_torn[i], 0);
    }
}

static void *submit_many(void *ctx)
{
    for (int i = 0; i < 200; i++) {
        struct store_txn *txn = store_txn_new();

        store_txn_put(txn, rt_bytes_of_string(ctx), RT_BYTES_LITERAL("x"));
        store_submit(store, txn);
    }
    return NULL;
}

Test(lmdb, any_thread_may_submit)
{
    static char names[4][2] = {"a", "b", "c", "d"};
    pthread_t threads[4];

    reopen();
    n_submitted = 800;
    for (size_t i = 0; i < 4; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, submit_many, names[i]), 0);
    cr_assert_eq(strspn(settle(), "C"), 800);
    for (size_t i = 0; i < 4; i++)
        cr_assert_eq(pthread_join(threads[i], NULL), 0);
}

/* Kills a process that commits; returns the last counter it has acknowledged. */
static unsigned long long kill_committer(unsigned long long at_least)
{
    unsigned long long last = 0;
    struct process child;
    char line[64];

    process_start(&child, "commit", options.path);
    while (fgets(line, sizeof(line), child.out)) {
        if (!strchr(line, '\n'))
            break;
        last = strtoull(line, NULL, 10);
        if (last == at_least)
            cr_assert_eq(kill(child.pid, SIGKILL), 0);
    }
    cr_assert_eq(process_finish(&child), -SIGKILL);
    cr_assert_geq(last, at_least);
    return last;
}

Test(lmdb, killed_process_loses_nothing_acknowledged)
{
    for (unsigned long long at_least = 1; at_least <= 1000; at_least *= 10) {
        unsigned long long last = kill_committer(at_least);
        struct walk found;
        char key[32];

        reopen();
        for (unsigned long long i = 1; i <= last; i++) {
            (void)snprintf(key, sizeof(key), "%020llu", i);
            cr_assert(has(key), "%llu of %llu is lost", i, last);
        }
        cr_assert_eq(walk("", &found), RT_OK);
        cr_assert_eq(found.n_corrupt, 0);
        close_store();
    }
}
