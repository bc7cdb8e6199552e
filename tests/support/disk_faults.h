/*
 * A machine whose disk fails, fills up or hangs, or that has no threads left: definitions of the
 * calls in front of the C library's, also for shared libraries such as LMDB. Only calls on regular
 * files and on what is in directories are touched. Link dep_test_disk_faults.
 *
 * Any thread. Nothing is armed at first.
 */
#ifndef TESTS_SUPPORT_DISK_FAULTS_H
#define TESTS_SUPPORT_DISK_FAULTS_H

#include <stdbool.h>
#include <stddef.h>

#define TEST_DISK_FOREVER ((size_t)-1)

enum test_disk_call {
    TEST_DISK_WRITE, /* write, pwrite, writev, ftruncate */
    TEST_DISK_SYNC,  /* fsync, fdatasync */
    TEST_DISK_MAP,   /* mmap of a file */
    TEST_DISK_MAKE,  /* openat with O_CREAT, mkdirat */
    TEST_DISK_RENAME,
    TEST_DISK_UNLINK,         /* unlinkat */
    TEST_DISK_SYNC_DIRECTORY, /* fsync of one */
    TEST_DISK_N_CALLS,
};

/* The call succeeds `countdown` more times, then fails `repeat` times with this errno. Replaces
 * what was armed for that kind of call. */
void test_disk_fail_after(enum test_disk_call call, int errno_value, size_t countdown,
                          size_t repeat);

/* The disk has room for this many more bytes: a write beyond them is cut short, the next one and an
 * allocation of more than is left fail with ENOSPC. TEST_DISK_FOREVER: no end of it. */
void test_disk_set_room(size_t size);

/* After that many more of the calls above, mmap aside, whatever their kind, all of them fail with
 * EIO and change nothing: to the disk it is as if the process had been killed there. */
void test_disk_stop_after(size_t n_calls);

/* Whether a call has failed for that reason. */
bool test_disk_has_stopped(void);

/* Nothing fails any more. */
void test_disk_heal(void);

/* Calls so far, failed ones included. */
size_t test_disk_calls(enum test_disk_call call);

/* The next pthread_create() fails with EAGAIN. */
void test_thread_fail_once(void);

/* fsync and fdatasync hang until released. */
void test_disk_stall(void);
/* Waits until a call hangs. */
void test_disk_wait_for_stalled(void);
void test_disk_release(void);

#endif
