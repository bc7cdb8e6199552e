/*
 * Data directory: who holds it, which one it is, heartbeat, faults of the disk.
 */
#include "runtime/store/data_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/check.h"
#include "tests/support/disk_faults.h"
#include "tests/unit/store/process.h"
#include "tests/unit/store/temporary.h"

static struct store_data_dir *dir;
static struct rt_error err;
static const char *path;

static void set_up(void)
{
    path = temporary_path("data");
}

static void tear_down(void)
{
    test_disk_heal();
    dir = store_data_dir_free(dir);
    temporary_remove();
    test_alloc_expect_none();
}

TestSuite(data_dir, .init = set_up, .fini = tear_down);

static void reopen(void)
{
    err = (struct rt_error)RT_ERROR_INIT;
    dir = store_data_dir_free(dir);
    cr_assert_eq(store_data_dir_new(path, &dir, &err), RT_OK, "%s", err.message);
}

static const char *read_file(const char *name)
{
    static char content[8192];
    FILE *file = fopen(temporary_path(name), "r");
    size_t size;

    cr_assert_not_null(file);
    size = fread(content, 1, sizeof(content) - 1, file);
    content[size] = 0;
    (void)fclose(file);
    return content;
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(temporary_path(name), "w");

    cr_assert_not_null(file);
    (void)fputs(text, file);
    (void)fclose(file);
}

Test(data_dir, is_made_for_the_owner_only)
{
    struct stat status;

    reopen();
    cr_assert_eq(stat(path, &status), 0);
    cr_assert_eq(status.st_mode & 0777, 0700);
    cr_assert_str_eq(dir->path, path);
    cr_assert_neq(dir->machine_id[0], 0);
}

Test(data_dir, id_is_random_and_stays)
{
    uint8_t id[STORE_ID_SIZE];
    char text[2 * STORE_ID_SIZE + 2];
    struct store_data_dir *other = NULL;

    reopen();
    memcpy(id, dir->store_id, sizeof(id));
    for (size_t i = 0; i < STORE_ID_SIZE; i++)
        (void)snprintf(text + 2 * i, 4, "%02x\n", id[i]);
    cr_assert_str_eq(read_file("data/STORE_ID"), text);
    reopen();
    cr_assert_arr_eq(dir->store_id, id, sizeof(id));
    cr_assert_eq(store_data_dir_new(temporary_path("other"), &other, NULL), RT_OK);
    cr_assert_arr_neq(other->store_id, id, sizeof(id));
    (void)store_data_dir_free(other);
}

Test(data_dir, second_opener_in_this_process_is_refused)
{
    struct store_data_dir *second = NULL;
    char expected[256];

    reopen();
    cr_assert_eq(store_data_dir_new(path, &second, &err), RT_FAILED_PRECONDITION);
    cr_assert_null(second);
    cr_assert_str_eq(err.reason, "DATA_DIR_IN_USE");
    (void)snprintf(expected, sizeof(expected), "data directory '%s' is in use by process %d", path,
                   (int)getpid());
    cr_assert_str_eq(err.message, expected);
    cr_assert_eq(store_data_dir_new(path, &second, NULL), RT_FAILED_PRECONDITION);
}

Test(data_dir, other_process_is_named)
{
    struct process holder;
    char line[32] = "";
    char expected[64];

    process_start(&holder, "hold", path);
    cr_assert_not_null(fgets(line, sizeof(line), holder.out));
    line[strcspn(line, "\n")] = 0;
    cr_assert_eq(store_data_dir_new(path, &dir, &err), RT_FAILED_PRECONDITION);
    (void)snprintf(expected, sizeof(expected), "by process %s", line);
    cr_assert_not_null(strstr(err.message, expected), "%s", err.message);
    cr_assert_eq(process_finish(&holder), 0);
    reopen();
}

Test(data_dir, holder_is_not_named_when_unknown)
{
    struct store_data_dir *second = NULL;

    reopen();
    write_file("data/LOCK", "nonsense");
    cr_assert_eq(store_data_dir_new(path, &second, &err), RT_FAILED_PRECONDITION);
    cr_assert_null(strstr(err.message, "process"), "%s", err.message);
}

Test(data_dir, errors_name_the_path)
{
    path = temporary_path("no/data");
    cr_assert_eq(store_data_dir_new(path, &dir, &err), RT_NOT_FOUND);
    cr_assert_not_null(strstr(err.message, path), "%s", err.message);
    write_file("file", "");
    path = temporary_path("file");
    cr_assert_eq(store_data_dir_new(path, &dir, &err), RT_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(err.message, path), "%s", err.message);
    cr_assert_eq(mkdir(temporary_path("odd"), 0700), 0);
    cr_assert_eq(mkdir(temporary_path("odd/LOCK"), 0700), 0);
    path = temporary_path("odd");
    cr_assert_eq(store_data_dir_new(path, &dir, &err), RT_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(err.message, "LOCK"), "%s", err.message);
}

static void expect_data_loss(const char *message)
{
    dir = store_data_dir_free(dir);
    cr_assert_eq(store_data_dir_new(path, &dir, &err), RT_DATA_LOSS);
    cr_assert_not_null(strstr(err.message, message), "%s", err.message);
    cr_assert_not_null(strstr(err.message, path), "%s", err.message);
    cr_assert_eq(store_data_dir_new(path, &dir, NULL), RT_DATA_LOSS);
}

Test(data_dir, damaged_id_is_refused)
{
    static const char *const damaged[] = {
        "",
        "0123456789abcdef0123456789abcdef",
        "0123456789abcdef0123456789abcdef\n\n",
        "0123456789abcdef0123456789abcde\n",
        "0123456789abcdef0123456789abcdeg\n",
        "0123456789ABCDEF0123456789abcdef\n",
    };

    reopen();
    dir = store_data_dir_free(dir);
    for (size_t i = 0; i < RT_ARRAY_SIZE(damaged); i++) {
        write_file("data/STORE_ID", damaged[i]);
        expect_data_loss("STORE_ID is damaged");
    }
    write_file("data/STORE_ID", "0123456789abcdef0123456789abcdef\n");
    reopen();
    cr_assert_eq(dir->store_id[0], 0x01);
    cr_assert_eq(dir->store_id[15], 0xef);
}

Test(data_dir, vanished_id_is_not_replaced)
{
    reopen();
    cr_assert_eq(unlink(temporary_path("data/STORE_ID")), 0);
    expect_data_loss("STORE_ID has vanished");
}

Test(data_dir, heartbeat_is_written_in_place)
{
    struct stat before;
    struct stat after;

    reopen();
    cr_assert_eq(stat(temporary_path("data/HEARTBEAT"), &before), 0);
    cr_assert_eq(before.st_size, 4096);
    cr_assert_eq(store_data_dir_heartbeat(dir, 42, &err), RT_OK);
    cr_assert_str_eq(read_file("data/HEARTBEAT"), "00000000000000000042\n");
    cr_assert_eq(store_data_dir_heartbeat(dir, UINT64_MAX, &err), RT_OK);
    cr_assert_str_eq(read_file("data/HEARTBEAT"), "18446744073709551615\n");
    cr_assert_eq(stat(temporary_path("data/HEARTBEAT"), &after), 0);
    cr_assert_eq(after.st_ino, before.st_ino);
    cr_assert_eq(after.st_size, before.st_size);
    cr_assert_eq(after.st_blocks, before.st_blocks);
}

Test(data_dir, heartbeat_fails_with_the_disk)
{
    size_t before;

    reopen();
    test_disk_fail_after(TEST_DISK_SYNC, EIO, 0, 1);
    cr_assert_eq(store_data_dir_heartbeat(dir, 1, &err), RT_INTERNAL);
    cr_assert_not_null(strstr(err.message, "HEARTBEAT"), "%s", err.message);
    test_disk_fail_after(TEST_DISK_WRITE, EIO, 0, 1);
    cr_assert_eq(store_data_dir_heartbeat(dir, 2, &err), RT_INTERNAL);
    before = test_disk_calls(TEST_DISK_SYNC);
    cr_assert_eq(store_data_dir_heartbeat(dir, 3, &err), RT_OK);
    cr_assert_eq(test_disk_calls(TEST_DISK_SYNC) - before, 1);
}

Test(data_dir, heartbeat_fails_in_a_deleted_directory)
{
    reopen();
    cr_assert_eq(store_data_dir_heartbeat(dir, 1, &err), RT_OK);
    cr_assert_eq(unlink(temporary_path("data/HEARTBEAT")), 0);
    cr_assert_eq(store_data_dir_heartbeat(dir, 2, &err), RT_DATA_LOSS);
    cr_assert_not_null(strstr(err.message, path), "%s", err.message);
}

Test(data_dir, a_copy_is_known_until_it_is_adopted)
{
    struct store_data_dir *copy = NULL;
    char command[1024];
    char original[512];

    reopen();
    cr_assert_not(dir->is_copy);
    cr_assert_eq(store_data_dir_adopt(dir, &err), RT_OK);
    (void)snprintf(original, sizeof(original), "%s", path);
    (void)snprintf(command, sizeof(command), "cp -a '%s' '%s'", original, temporary_path("copy"));
    cr_assert_eq(system(command), 0);

    cr_assert_eq(store_data_dir_new(temporary_path("copy"), &copy, &err), RT_OK, "%s", err.message);
    cr_assert(copy->is_copy);
    cr_assert_arr_eq(copy->store_id, dir->store_id, STORE_ID_SIZE);
    copy = store_data_dir_free(copy);
    cr_assert_eq(store_data_dir_new(temporary_path("copy"), &copy, &err), RT_OK);
    cr_assert(copy->is_copy);
    test_disk_fail_after(TEST_DISK_SYNC, EIO, 0, 1);
    cr_assert_eq(store_data_dir_adopt(copy, &err), RT_INTERNAL);
    cr_assert(copy->is_copy);
    test_disk_heal();
    cr_assert_eq(store_data_dir_adopt(copy, &err), RT_OK);
    copy = store_data_dir_free(copy);
    cr_assert_eq(store_data_dir_new(temporary_path("copy"), &copy, &err), RT_OK);
    cr_assert_not(copy->is_copy);
    copy = store_data_dir_free(copy);
    path = original;
    reopen();
    cr_assert_not(dir->is_copy);
}

/* Fails one call while a new directory is made. Returns false when the fault came too late. */
static bool check_fault(enum test_disk_call call, size_t countdown)
{
    char name[32];
    uint8_t id[STORE_ID_SIZE];
    size_t before = test_disk_calls(call);
    enum rt_code code;

    (void)snprintf(name, sizeof(name), "new-%d-%zu", (int)call, countdown);
    path = temporary_path(name);
    test_disk_fail_after(call, ENOSPC, countdown, 1);
    code = store_data_dir_new(path, &dir, &err);
    before = test_disk_calls(call) - before;
    test_disk_heal();
    cr_assert(code == RT_OK || strstr(err.message, path), "%s", err.message);
    reopen();
    memcpy(id, dir->store_id, sizeof(id));
    reopen();
    cr_assert_arr_eq(dir->store_id, id, sizeof(id));
    dir = store_data_dir_free(dir);
    return countdown < before;
}

Test(data_dir, every_write_and_sync_may_fail)
{
    size_t n_writes = 0;
    size_t n_syncs = 0;

    while (check_fault(TEST_DISK_WRITE, n_writes))
        n_writes++;
    while (check_fault(TEST_DISK_SYNC, n_syncs))
        n_syncs++;
    cr_assert_geq(n_writes, 3);
    cr_assert_geq(n_syncs, 2);
}

Test(data_dir, kinds_of_file_systems)
{
    static const unsigned long local[] = {EXT4_SUPER_MAGIC,      XFS_SUPER_MAGIC,
                                          BTRFS_SUPER_MAGIC,     TMPFS_MAGIC,
                                          OVERLAYFS_SUPER_MAGIC, 0x2fc12fc1 /* ZFS */};
    static const unsigned long remote[] = {NFS_SUPER_MAGIC,  SMB_SUPER_MAGIC,  CIFS_SUPER_MAGIC,
                                           SMB2_SUPER_MAGIC, FUSE_SUPER_MAGIC, V9FS_MAGIC,
                                           CEPH_SUPER_MAGIC, 0x0bd00bd0};

    for (size_t i = 0; i < RT_ARRAY_SIZE(local); i++)
        cr_assert(store_data_dir_type_is_local(local[i]));
    for (size_t i = 0; i < RT_ARRAY_SIZE(remote); i++)
        cr_assert_not(store_data_dir_type_is_local(remote[i]));
    /* As a signed 32-bit f_type would arrive. */
    cr_assert_not(store_data_dir_type_is_local(0xffffffffff534d42ul));
}

Test(data_dir, free_accepts_null)
{
    cr_assert_null(store_data_dir_free(NULL));
}
