/*
 * One simulated process: a core, its clock, its disk, its life. A node that is paused keeps
 * everything that happens to it in an inbox and works it off when it resumes; a crash bumps `life`,
 * and what was meant for an earlier life is dropped.
 */
#ifndef SIM_NODE_H
#define SIM_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/env.h"
#include "runtime/base/list.h"
#include "runtime/base/rng.h"
#include "runtime/model/call.h"
#include "tests/sim/clock.h"
#include "tests/sim/disk.h"
#include "tests/sim/queue.h"

struct sim_node;
struct sim_world;

enum sim_node_kind {
    SIM_NODE_COORDINATOR,
    SIM_NODE_INSTANCE,
    SIM_NODE_CLIENT,  /* runs statements in sessions */
    SIM_NODE_DIRECT,  /* writes to instances with remembered routes */
    SIM_NODE_LIBRARY, /* has the core of the client library */
};

/* How to step the core of a node. All but submit and cancel are present. */
struct sim_core_ops {
    void (*create)(struct sim_node *node); /* a new process; node->disk is open */
    void (*destroy)(struct sim_node *node);
    void (*submit)(struct sim_node *node, struct model_call *call);
    void (*cancel)(struct sim_node *node, struct model_call *call);
    void (*call_done)(struct sim_node *node, struct model_call *call);
    void (*txn_done)(struct sim_node *node, struct store_txn *txn);
    void (*tick)(struct sim_node *node);
    uint64_t (*next_wakeup_us)(struct sim_node *node);
    struct model_effects *(*effects)(struct sim_node *node);
    void (*settled)(struct sim_node *node); /* after effects were taken; may be NULL */
};

extern const struct sim_core_ops sim_coordinator_ops;
extern const struct sim_core_ops sim_instance_ops;
extern const struct sim_core_ops sim_client_ops;
extern const struct sim_core_ops sim_direct_ops;
extern const struct sim_core_ops sim_library_ops;

enum {
    SIM_NAME_MAX = 15
};

struct sim_node {
    struct sim_world *world;
    const struct sim_core_ops *ops;
    enum sim_node_kind kind;
    uint8_t index;
    char name[SIM_NAME_MAX + 1]; /* address too */
    struct sim_clock clock;
    struct rt_rng rng;
    struct rt_env env;
    bool is_up;
    bool is_paused;
    uint64_t tick_window_us; /* global: when the ticks below began to be counted */
    uint64_t n_ticks;        /* since then */
    uint64_t n_heartbeats;   /* that reached the disk in this life */
    uint64_t n_renews;       /* sent in this life */
    bool is_doomed;          /* its supervisor will restart it */
    uint64_t pause_until_us; /* global */
    uint64_t life;
    struct rt_list inbox;  /* struct work, while paused */
    uint64_t wake_at_us;   /* global time of the next tick that is queued */
    struct sim_disk *disk; /* owned; NULL for clients */
    struct model_id store_id;
    void *core; /* owned through ops */
};

void sim_node_init(struct sim_node *node, struct sim_world *world, enum sim_node_kind kind,
                   unsigned ordinal);
/* Crashes it if it is up. */
void sim_node_deinit(struct sim_node *node);

uint64_t sim_node_now_us(const struct sim_node *node);

void sim_node_start(struct sim_node *node);
void sim_node_crash(struct sim_node *node);

/* Its supervisor restarts it in a while, once for each life. */
void sim_node_restart_soon(struct sim_node *node);

/* Extends a pause under way. */
void sim_node_pause(struct sim_node *node, uint64_t duration_us);

/* Ends every pause at once. */
void sim_node_resume(struct sim_node *node);

/* Something happens to the node now: runs it and settles, or keeps it while paused, or drops it
 * when the node is down. Exactly one of run and drop is called. */
void sim_node_happen(struct sim_node *node, sim_event_fn run, sim_event_fn drop, void *ctx);

/* The same at a later global time, for the present life only. */
void sim_node_later(struct sim_node *node, uint64_t at_us, sim_event_fn run, sim_event_fn drop,
                    void *ctx);

/* Carries out effects and asks for the next wake-up. */
void sim_node_settle(struct sim_node *node);

#endif
