/*
 * A service's data directory: who may use it, which one it is, and whether its disk still takes
 * writes. Everything here blocks: at start-up, or in a uv_queue_work job.
 *
 *   LOCK       flock'ed while the directory is in use; holds the pid of the last holder
 *   STORE_ID   32 hexadecimal digits, written once; a copy of the directory has the same
 *   HEARTBEAT  one block, rewritten in place; it names the inode it was made with, so that a copy
 *              of the directory is known as one
 */
#ifndef STORE_DATA_DIR_H
#define STORE_DATA_DIR_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/compiler.h"
#include "runtime/base/error.h"

enum {
    STORE_ID_SIZE = 16,
    STORE_MACHINE_ID_MAX = 63,
};

/* Read by the owner, written by this module only. */
struct store_data_dir {
    char *path; /* owned */
    int directory_fd;
    int lock_fd;
    int heartbeat_fd;
    uint8_t store_id[STORE_ID_SIZE];
    /* /etc/machine-id, else the boot id, else empty (never equal to another machine's). */
    char machine_id[STORE_MACHINE_ID_MAX + 1];
    bool is_local; /* not on a network or user-space file system, as far as known */
    /* Copied or restored from elsewhere: the lock says nothing about who uses the original. */
    bool is_copy;
    unsigned long long place; /* private */
};

/* Makes the directory (0700) if it is absent; its parent must exist. Locks it until free().
 * FAILED_PRECONDITION with reason DATA_DIR_IN_USE: another process, named if known, or this one has
 * it open. DATA_LOSS: STORE_ID is damaged or has vanished. Else what the system said, with path. */
RT_MUST_USE enum rt_code store_data_dir_new(const char *path, struct store_data_dir **ret_dir,
                                            struct rt_error *err);

/* From now on a copy counts as an original: it has become the one that is used. */
RT_MUST_USE enum rt_code store_data_dir_adopt(struct store_data_dir *dir, struct rt_error *err);

/* Unlocks. No heartbeat may be running. NULL is fine; returns NULL. */
struct store_data_dir *store_data_dir_free(struct store_data_dir *dir);

/* Overwrites the heartbeat block with `value` and waits for the disk. Allocates nothing, so a full
 * disk does not fail it; a stalled one blocks it and a failing one makes it fail. DATA_LOSS: it was
 * written to a file that has been deleted. One at a time. */
RT_MUST_USE enum rt_code store_data_dir_heartbeat(struct store_data_dir *dir, uint64_t value,
                                                  struct rt_error *err);

/* Whether a file system of this statfs(2) f_type is on a disk of this machine. */
bool store_data_dir_type_is_local(unsigned long type);

#endif
