/*
 * A node's disk: the memory engine of runtime/store, driven by simulated time. Commits happen in
 * order, each after its own latency; what is committed survives a crash, a commit in flight may or
 * may not. Heartbeats are writes beside the engine (in place, preallocated): they need no room but
 * stall with the disk.
 */
#ifndef SIM_DISK_H
#define SIM_DISK_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/store.h"

struct sim_node;
struct sim_disk;

struct sim_disk *sim_disk_new(struct sim_node *node);
struct sim_disk *sim_disk_free(struct sim_disk *disk);

/* The committed rows; valid until the next commit. */
struct store *sim_disk_store(struct sim_disk *disk);

void sim_disk_submit(struct sim_disk *disk, struct store_txn *txn);
void sim_disk_write_heartbeat(struct sim_disk *disk, uint64_t number);

/* The process died: some of the commits in flight still happen, the rest is lost. */
void sim_disk_crash(struct sim_disk *disk);

/* Faults. A stall lasts until the given global time; it hits heartbeats, and commits unless
 * `only_heartbeats`. After an unknown outcome every commit is unknown until the next start. */
void sim_disk_set_full(struct sim_disk *disk, bool is_full);
void sim_disk_stall(struct sim_disk *disk, uint64_t until_us, bool only_heartbeats);
void sim_disk_fail_next(struct sim_disk *disk);
void sim_disk_heal(struct sim_disk *disk);

/* An unknown outcome was given since the last start. */
bool sim_disk_is_failed(const struct sim_disk *disk);

#endif
