/*
 * What a run did, as numbers that add up over runs.
 */
#ifndef SIM_STATS_H
#define SIM_STATS_H

#include <stdint.h>

/* SIM_FAULT(name, JSON field) */
#define SIM_FAULTS(FAULT)                                                                          \
    FAULT(LOSS, "message_loss")                                                                    \
    FAULT(DELAY, "slow_link")                                                                      \
    FAULT(DUPLICATE, "late_duplicate")                                                             \
    FAULT(RESET, "connection_reset")                                                               \
    FAULT(CUT, "one_way_cut")                                                                      \
    FAULT(PARTITION, "partition")                                                                  \
    FAULT(PAUSE, "pause")                                                                          \
    FAULT(COMMIT_PAUSE, "pause_after_commit")                                                      \
    FAULT(RENEW_PAUSE, "pause_before_renew_answer")                                                \
    FAULT(INSTANCE_CRASH, "instance_crash")                                                        \
    FAULT(COORDINATOR_CRASH, "coordinator_crash")                                                  \
    FAULT(COORDINATOR_PAUSE, "coordinator_pause")                                                  \
    FAULT(CLIENT_CRASH, "client_crash")                                                            \
    FAULT(DISK_FULL, "disk_full")                                                                  \
    FAULT(DISK_STALL, "disk_stall")                                                                \
    FAULT(DISK_UNKNOWN, "fsync_unknown")                                                           \
    FAULT(HEARTBEAT_STALL, "heartbeat_stall")                                                      \
    FAULT(ISOLATION, "owner_cut_from_coordinator")

enum sim_fault {
#define SIM_FAULT_ENUMERATOR(name, field) SIM_FAULT_##name,
    SIM_FAULTS(SIM_FAULT_ENUMERATOR)
#undef SIM_FAULT_ENUMERATOR
    SIM_N_FAULTS
};

struct sim_stats {
    uint64_t n_seeds;
    uint64_t n_events;
    uint64_t n_statements;   /* of sessions and direct clients */
    uint64_t n_acknowledged; /* writes */
    uint64_t n_refused;      /* promised: not applied */
    uint64_t n_unknown;
    uint64_t n_calls;
    uint64_t n_lost;
    uint64_t n_commits;
    uint64_t n_spills;              /* values that left an instance's memory for its disk */
    uint64_t n_dumps;               /* values that an instance stored unasked */
    uint64_t n_drops;               /* keys that instances dropped */
    uint64_t n_readbacks;           /* values that were fetched from it */
    uint64_t n_compactions;         /* that instances were asked for and said they carried out */
    uint64_t n_post_check_failures; /* OUTCOME_UNKNOWN answers of instances */
    uint64_t n_deaths;              /* incarnations declared dead */
    uint64_t n_sets_lost;           /* answers that said so */
    uint64_t n_replayed;
    uint64_t n_routes;    /* given out by Route and Lock */
    uint64_t n_histories; /* keys */
    uint64_t n_undecided;
    uint64_t n_violations;
    uint64_t faults[SIM_N_FAULTS];
};

static inline void sim_stats_fault(struct sim_stats *stats, enum sim_fault fault)
{
    stats->faults[fault]++;
}

const char *sim_fault_field(enum sim_fault fault);

void sim_stats_add(struct sim_stats *total, const struct sim_stats *other);

#endif
