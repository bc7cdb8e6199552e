/*
 * One simulated cluster and its life: a plan drawn from the seed, nodes, a network, faults, then
 * healing, rest, and the final checks. Everything random comes from the seed; equal seeds give
 * equal traces.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "coordinator/core.h"
#include "instance/core.h"
#include "runtime/base/rng.h"
#include "tests/sim/history.h"
#include "tests/sim/invariants.h"
#include "tests/sim/network.h"
#include "tests/sim/node.h"
#include "tests/sim/queue.h"
#include "tests/sim/stats.h"
#include "tests/sim/trace.h"

/* What a seed stands for. */
struct sim_plan {
    unsigned n_instances;
    unsigned n_clients;
    unsigned n_directs;
    unsigned n_libraries;
    uint8_t n_keys;
    uint64_t n_entries; /* of each instance */
    uint64_t entry_size;
    enum inst_policy policy;
    enum inst_eviction eviction; /* drop only where keys are forgotten anyway */
    uint64_t dump_us;            /* between dumps of an instance; 0 = none */
    struct model_lease member_lease;
    struct model_lease
        other_lease; /* some starts of the coordinator are configured with this one */
    struct model_lease session_lease;
    enum model_locking locking;
    enum coord_owner_down owner_down;
    enum coord_compaction_mode compaction;
    enum model_distribution distribution;
    enum coord_ranges ranges;
    uint64_t fault_phase_us;
    uint64_t fault_gap_us;    /* mean time between two faults */
    uint64_t think_us;        /* longest time between two statements of a client */
    uint64_t delay_us;        /* longest ordinary delay of a message */
    uint64_t commit_us;       /* longest ordinary commit */
    uint64_t clock_error_ppm; /* bound of each clock's rate error */
    uint32_t straggler_ppm;   /* messages that are delayed by up to two leases */
    uint32_t loss_ppm;
    uint32_t duplicate_ppm;
    uint32_t renew_pause_ppm;  /* pauses between the arrival of a Renew's answer and its reading */
    uint32_t commit_pause_ppm; /* pauses between a commit and its completion */
};

/* Where sessions learned that a key is: what a direct client may remember. */
struct sim_route {
    uint8_t node;
    uint64_t epoch;
    uint64_t incarnation;
    uint64_t token;
    bool may_store; /* the coordinator knows that durable values may come to be there */
};

struct sim_options {
    uint64_t seed;
    bool trace;          /* print every record */
    FILE *out;           /* trace and violations */
    const char *program; /* for the replay command */
};

struct sim_world {
    struct sim_options options;
    struct sim_plan plan;
    struct rt_rng rng;
    uint64_t now_us;
    struct sim_queue queue;
    struct sim_trace trace;
    struct sim_stats stats;
    struct sim_history history;
    struct sim_checker checker;
    struct sim_network network;
    struct sim_node nodes[SIM_NODES_MAX];
    uint8_t n_nodes;
    struct model_id cluster_id;                            /* as the coordinator last said */
    struct sim_route routes[SIM_KEYS_MAX][SIM_ROUTES_MAX]; /* rings */
    unsigned n_routes[SIM_KEYS_MAX];
    bool is_healed;   /* no faults any more */
    bool is_stopping; /* clients begin nothing new */
    bool is_failed;   /* an invariant broke: the run ends */
};

/* Runs one seed from start to end. The statistics say whether an invariant broke; the trace hash
 * is for comparing runs. */
void sim_world_run(const struct sim_options *options, struct sim_stats *ret_stats,
                   uint64_t *ret_hash);

/* ---- for the parts of the simulator ---------------------------------------------------------- */

bool sim_world_chance(struct sim_world *world, uint32_t ppm);
void sim_world_random_id(struct sim_world *world, struct model_id *ret_id);

/* Some are a moment, some are longer than a lease. */
uint64_t sim_world_pause_us(struct sim_world *world);

struct sim_node *sim_world_coordinator(struct sim_world *world);
struct sim_node *sim_world_node_at(struct sim_world *world, const char *address);

/* SIM_NO_KEY when it is none of the simulation's keys. */
uint8_t sim_world_key_index(struct rt_bytes key);
/* Lives as long as the program. */
struct rt_bytes sim_world_key(uint8_t index);

void sim_world_trace(struct sim_world *world, enum sim_trace_event event,
                     const struct sim_node *node, uint8_t key, uint64_t id);
void sim_world_trace_call(struct sim_world *world, enum sim_trace_event event,
                          const struct sim_node *node, const struct sim_node *peer, uint64_t id,
                          const struct model_request *request,
                          const struct model_response *response);

/* Counts and traces an operation that has just returned. */
void sim_world_note_result(struct sim_world *world, const struct sim_node *node,
                           const struct sim_op *op);

/* Reports a broken invariant once, with the key's recent history and how to replay it. */
void sim_world_violation(struct sim_world *world, const char *invariant, uint8_t key,
                         const char *format, ...) RT_PRINTF(4, 5);

/* ---- what a request is about (request.c) ----------------------------------------------------- */

/* Empty when the kind has no key. */
struct rt_bytes sim_request_key(const struct model_request *request);
const struct model_request_id *sim_request_id_of(const struct model_request *request);
bool sim_request_is_data(enum model_call_kind kind);
enum sim_op_kind sim_op_kind_of_call(enum model_call_kind kind); /* others are reads */
/* SET, STORE, PUT, DELETE, and statements that become them. */
bool sim_request_is_mutating(const struct model_request *request);

/* ---- parts with their own file --------------------------------------------------------------- */

/* After the last event: order of acknowledged writes, values seen, linearizability of each key. */
void sim_final_check(struct sim_world *world);

void sim_plan_draw(struct sim_plan *ret_plan, struct rt_rng *rng);

/* Queues the first fault; each queues the next until the world is healed. */
void sim_faults_start(struct sim_world *world);
/* Ends every fault; nodes that are down start again. */
void sim_faults_heal(struct sim_world *world);

/* An answer that the simulator asked the coordinator for: who is alive, or how a key is. */
void sim_coordinator_probed(struct sim_node *node, struct model_call *call);

/* Asks for the status of every key, once everybody has recovered; checks the answers. */
void sim_coordinator_look(struct sim_node *node);
bool sim_coordinator_has_looked(struct sim_node *node);

/* Client has no statement under way and no session to close. */
bool sim_client_is_idle(const struct sim_node *node);
bool sim_direct_is_idle(const struct sim_node *node);
bool sim_library_is_idle(const struct sim_node *node);

/* From now on this client goes through all keys, one after the other: GET, READ, SET, STORE, and
 * again until each was done once. */
void sim_client_verify(struct sim_node *node);
bool sim_client_is_verified(const struct sim_node *node);

#endif
