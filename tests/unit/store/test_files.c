/*
 * The mirror of an LMDB store in files: what stands in the mount point, disks that fail, and
 * processes that die, at every step.
 */
#include "runtime/store/files.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/store/file_name.h"
#include "runtime/store/lmdb.h"
#include "tests/support/check.h"
#include "tests/support/disk_faults.h"
#include "tests/unit/store/mirror.h"
#include "tests/unit/store/process.h"
#include "tests/unit/store/temporary.h"

enum {
    N_MAX = 256
};

static uv_loop_t loop;
static struct store *store;
static struct store_lmdb_options options;
static char outcomes[N_MAX];
static size_t n_submitted;
static size_t n_done;
static bool is_closed;
static struct rt_error err;

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
    static char path[512];

    (void)snprintf(path, sizeof(path), "%s", temporary_path("store"));
    cr_assert_eq(uv_loop_init(&loop), 0);
    options = (struct store_lmdb_options){.path = path, .loop = &loop, .files = mirror_options()};
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

TestSuite(files, .init = set_up, .fini = tear_down);

static void submit(struct store_txn *txn)
{
    n_submitted++;
    store_submit(store, txn);
}

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
    struct store_txn *txn = store_txn_new();

    store_txn_put(txn, rt_bytes_of_string(key), rt_bytes_of_string(value));
    submit(txn);
    return settle();
}

static const char *erase(const char *key)
{
    struct store_txn *txn = store_txn_new();

    store_txn_delete(txn, rt_bytes_of_string(key));
    submit(txn);
    return settle();
}

static const char *mount_path(const char *name)
{
    static char paths[4][STORE_FILE_NAME_MAX + 512];
    static size_t next;
    char *path = paths[next++ % 4];

    (void)snprintf(path, sizeof(paths[0]), "%.400s/%s", mirror_options()->mount, name);
    return path;
}

/* "" also for no such file. */
static const char *content(const char *name)
{
    static char text[64];
    FILE *file = fopen(mount_path(name), "r");
    size_t size = 0;

    if (file) {
        size = fread(text, 1, sizeof(text) - 1, file);
        (void)fclose(file);
    }
    text[size] = 0;
    return text;
}

static bool exists(const char *name)
{
    struct stat status;

    return lstat(mount_path(name), &status) == 0;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    cr_assert_not_null(file);
    (void)fputs(text, file);
    cr_assert_eq(fclose(file), 0);
}

static void expect_same(size_t n_others)
{
    const char *difference = mirror_differs(store, n_others);

    cr_assert_null(difference, "%s", difference);
}

Test(files, c47_file_holds_exactly_the_value)
{
    struct stat status;

    reopen();
    cr_assert_str_eq(put("sony:consola:ps3", "TLOU 2"), "C");
    cr_assert_str_eq(content("sony:consola:ps3"), "TLOU 2");
    cr_assert_eq(stat(mount_path("sony:consola:ps3"), &status), 0);
    cr_assert_eq(status.st_mode & 0777, 0600);
    cr_assert_str_eq(put("sony:consola:ps3", ""), "C");
    cr_assert(exists("sony:consola:ps3"));
    cr_assert_str_eq(content("sony:consola:ps3"), "");
    cr_assert_str_eq(erase("sony:consola:ps3"), "C");
    cr_assert_not(exists("sony:consola:ps3"));
    expect_same(0);
}

Test(files, nothing_outside_of_the_mount_point_is_written)
{
    write_file(temporary_path("outside"), "mine");
    reopen();
    cr_assert_str_eq(put("../outside", "x"), "C");
    cr_assert_eq(symlink("../outside", mount_path("link")), 0);
    cr_assert_str_eq(put("link", "y"), "C");
    cr_assert_str_eq(content("link"), "y");
    cr_assert_str_eq(content("../outside"), "mine");
    cr_assert_str_eq(content("%2E.%2Foutside"), "x");
    expect_same(0);
}

/* A directory on the way of a long name that is a link is not entered. */
Test(files, links_on_the_way_are_not_followed)
{
    char key[STORE_FILE_PART_MAX + 2];
    char name[STORE_FILE_NAME_MAX + 1];

    memset(key, 'x', sizeof(key) - 1);
    key[sizeof(key) - 1] = 0;
    (void)store_file_name(rt_bytes_of_string(key), name);
    *strchr(name, '/') = 0;
    cr_assert_eq(mkdir(temporary_path("elsewhere"), 0700), 0);
    reopen();
    cr_assert_eq(symlink("../elsewhere", mount_path(name)), 0);
    cr_assert_str_eq(put(key, "x"), "U");
    cr_assert_eq(rmdir(temporary_path("elsewhere")), 0, "it is empty");
    cr_assert_eq(unlink(mount_path(name)), 0);
    cr_assert_str_eq(put(key, "x"), "C");
    expect_same(0);
    cr_assert_str_eq(erase(key), "C");
    cr_assert_not(exists(name), "the directory goes with its last file");
}

/* What is in the way of one key's file costs that key only. */
Test(files, directory_in_the_place_of_a_file)
{
    reopen();
    cr_assert_eq(mkdir(mount_path("a"), 0700), 0);
    cr_assert_str_eq(put("a", "1"), "U");
    cr_assert_str_eq(put("b", "2"), "C");
    cr_assert_eq(rmdir(mount_path("a")), 0);
    cr_assert_str_eq(put("a", "1"), "C");
    close_store();
    cr_assert_eq(unlink(mount_path("a")), 0);
    cr_assert_eq(mkdir(mount_path("a"), 0700), 0);
    cr_assert_eq(try_open(), RT_FAILED_PRECONDITION);
    cr_assert_not_null(strstr(err.message, "/a', where something else is"), "%s", err.message);
}

/* The rows decide: what was changed, deleted or replaced is put right, what is nobody's stays. */
Test(files, c34_files_are_not_read_back)
{
    reopen();
    cr_assert_str_eq(put("changed", "1"), "C");
    cr_assert_str_eq(put("same size", "2"), "C");
    cr_assert_str_eq(put("deleted", "3"), "C");
    cr_assert_str_eq(put("fifo", "4"), "C");
    close_store();
    write_file(mount_path("changed"), "other");
    write_file(mount_path("same size"), "x");
    cr_assert_eq(unlink(mount_path("deleted")), 0);
    cr_assert_eq(unlink(mount_path("fifo")), 0);
    cr_assert_eq(mkfifo(mount_path("fifo"), 0600), 0);
    write_file(mount_path("old"), "of somebody else");
    reopen();
    expect_same(1);
    cr_assert_str_eq(content("changed"), "1");
    cr_assert_str_eq(content("old"), "of somebody else");
}

Test(files, mount_point_is_in_use)
{
    int fd;

    reopen();
    close_store();
    fd = open(mirror_options()->mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cr_assert_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
    cr_assert_eq(try_open(), RT_FAILED_PRECONDITION);
    cr_assert_not_null(strstr(err.message, "is in use"), "%s", err.message);
    (void)close(fd);
    reopen();
}

Test(files, mount_points_that_are_refused)
{
    struct store_files_options bad = *mirror_options();

    options.files = &bad;
    bad.mount = temporary_path("store");
    cr_assert_eq(try_open(), RT_FAILED_PRECONDITION);
    cr_assert_not_null(strstr(err.message, "where the store itself keeps"), "%s", err.message);
    bad.mount = temporary_path("no/such");
    cr_assert_eq(try_open(), RT_NOT_FOUND);
    bad.mount = temporary_path("file");
    write_file(bad.mount, "");
    cr_assert_neq(try_open(), RT_OK);
    cr_assert_not_null(strstr(err.message, "opening mount point"), "%s", err.message);
}

/* A disk that fills up: refused whole, and good again when there is room. */
Test(files, disk_full_for_a_file)
{
    RT_CLEANUP(rt_freep) char *large = rt_xalloc(100001);

    memset(large, 'x', 100000);
    large[100000] = 0;
    reopen();
    cr_assert_str_eq(put("a", "old"), "C");
    for (size_t room = 0; room < 100000; room = room * 7 + 1) {
        test_disk_set_room(room);
        cr_assert_str_eq(put("a", large), "U", "room for %zu bytes", room);
        test_disk_heal();
        expect_same(0);
        cr_assert_str_eq(content("a"), "old");
    }
    test_disk_fail_after(TEST_DISK_MAKE, ENOSPC, 0, 1);
    cr_assert_str_eq(put("a", "new"), "U");
    cr_assert_str_eq(put("a", "new"), "C");
    expect_same(0);
}

/* As on a file system with shorter names, or one that does not take such bytes: what one client
 * calls its key stops nobody else. */
Test(files, name_that_the_file_system_does_not_take)
{
    static const int refusals[] = {ENAMETOOLONG, EILSEQ};
    char key[STORE_FILE_PART_MAX + 2];

    memset(key, 'x', sizeof(key) - 1);
    key[sizeof(key) - 1] = 0;
    reopen();
    for (size_t i = 0; i < RT_ARRAY_SIZE(refusals); i++) {
        test_disk_fail_after(TEST_DISK_MAKE, refusals[i], 0, 1); /* its directory */
        cr_assert_str_eq(put(key, "1"), "U", "%s", strerror(refusals[i]));
        cr_assert_str_eq(put("b", "2"), "C");
        expect_same(0);
    }
}

/* The next store puts right what a failed one left. */
static void expect_failure(enum test_disk_call call, size_t countdown, const char *when)
{
    test_disk_fail_after(call, EIO, countdown, TEST_DISK_FOREVER);
    cr_assert_str_eq(put("a", "new"), "?", "%s", when);
    cr_assert_str_eq(put("b", "new"), "?", "%s: nothing is written after that", when);
    close_store();
    test_disk_heal();
    reopen();
    expect_same(0);
    cr_assert_str_eq(put("a", "old"), "C");
}

Test(files, disk_that_fails_never_says_committed)
{
    reopen();
    cr_assert_str_eq(put("a", "old"), "C");
    expect_failure(TEST_DISK_MAKE, 0, "making the file");
    expect_failure(TEST_DISK_WRITE, 0, "writing it");
    expect_failure(TEST_DISK_SYNC, 0, "syncing it");
    expect_failure(TEST_DISK_SYNC_DIRECTORY, 0, "syncing what is prepared");
    expect_failure(TEST_DISK_RENAME, 0, "renaming");
    expect_failure(TEST_DISK_SYNC_DIRECTORY, 1, "syncing the mount point");
    test_disk_fail_after(TEST_DISK_UNLINK, EIO, 0, TEST_DISK_FOREVER);
    cr_assert_str_eq(erase("a"), "?");
    close_store();
    test_disk_heal();
    reopen();
    expect_same(0);
    cr_assert_not(exists("a"), "its row is gone");
}

static struct store_txn *mixed(void)
{
    struct store_txn *txn = store_txn_new();
    char name[STORE_KEY_MAX + 1];

    memset(name, '/', 300);
    name[300] = 0;
    store_txn_put(txn, RT_BYTES_LITERAL("new"), RT_BYTES_LITERAL("1"));
    store_txn_put(txn, RT_BYTES_LITERAL("kept"), RT_BYTES_LITERAL("2"));
    store_txn_put(txn, rt_bytes_of_string(name), RT_BYTES_LITERAL("3"));
    store_txn_delete(txn, RT_BYTES_LITERAL("gone"));
    return txn;
}

/* Dies after n calls that change the disk; true when the work was done before. */
static bool dies_after(size_t n_calls)
{
    const char *outcome;
    bool has_died;

    cr_assert_str_eq(erase("new"), "C");
    cr_assert_str_eq(put("kept", "old"), "C");
    cr_assert_str_eq(put("gone", "old"), "C");
    test_disk_stop_after(n_calls);
    submit(mixed());
    outcome = settle();
    has_died = test_disk_has_stopped();
    close_store();
    test_disk_heal();
    reopen();
    expect_same(0);
    cr_assert_str_eq(outcome, has_died ? "?" : "C", "after %zu calls", n_calls);
    cr_assert_eq(exists("new"), !exists("gone"), "all or nothing, after %zu calls", n_calls);
    cr_assert_str_eq(content("kept"), exists("new") ? "2" : "old", "after %zu calls", n_calls);
    return !has_died;
}

/* Also dies while the next open puts things right. */
Test(files, process_that_dies_at_any_step_leaves_what_the_rows_say)
{
    size_t n_calls = 0;

    reopen();
    while (!dies_after(n_calls))
        n_calls++;
    cr_assert_geq(n_calls, 12, "only %zu calls were there to fail", n_calls);
}

Test(files, process_that_dies_while_it_puts_things_right)
{
    bool has_opened = false;

    for (size_t n_calls = 0; !has_opened; n_calls++) {
        reopen();
        cr_assert_str_eq(put("gone", "old"), "C");
        cr_assert_str_eq(erase("new"), "C");
        test_disk_fail_after(TEST_DISK_RENAME, EIO, 0, TEST_DISK_FOREVER);
        submit(mixed());
        cr_assert_str_eq(settle(), "?");
        close_store();
        test_disk_heal();
        test_disk_stop_after(n_calls);
        has_opened = try_open() == RT_OK && !test_disk_has_stopped();
        if (store)
            close_store();
        (void)uv_run(&loop, UV_RUN_DEFAULT);
        test_disk_heal();
        reopen();
        expect_same(0);
        cr_assert(exists("new") && !exists("gone"), "after %zu calls", n_calls);
        close_store();
    }
    reopen();
}

static void kill_after(unsigned long long at_least)
{
    struct process child;
    char line[64];

    process_start(&child, "mirror", options.path);
    while (fgets(line, sizeof(line), child.out))
        if (strtoull(line, NULL, 10) == at_least)
            cr_assert_eq(kill(child.pid, SIGKILL), 0);
    cr_assert_eq(process_finish(&child), -SIGKILL);
}

Test(files, killed_process_leaves_what_the_rows_say)
{
    for (unsigned long long at_least = 1; at_least <= 300; at_least *= 7) {
        kill_after(at_least);
        reopen();
        expect_same(0);
        close_store();
    }
}
