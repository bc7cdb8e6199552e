/*
 * The network: carries copies of calls between nodes, with delay, loss, one-way cuts and late
 * duplicates. A duplicate is delivered as an inbound call of its own whose answer goes nowhere: a
 * retry or a late packet. What the caller does not hear of ends at its deadline as
 * DEADLINE_EXCEEDED, or as UNAVAILABLE when the connection is seen to break; both without a
 * structured reason.
 */
#ifndef SIM_NETWORK_H
#define SIM_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/list.h"
#include "runtime/model/call.h"

struct sim_node;
struct sim_world;

enum {
    SIM_NODES_MAX = 24
};

/* One direction. */
struct sim_link {
    bool is_cut;
    uint32_t loss_ppm;
    uint32_t duplicate_ppm;
    uint64_t delay_us; /* added to every message */
};

struct sim_network {
    struct sim_world *world;
    struct sim_link links[SIM_NODES_MAX][SIM_NODES_MAX]; /* from, to */
    struct rt_list rpcs;                                 /* every one alive */
    uint64_t next_id;
};

void sim_network_init(struct sim_network *network, struct sim_world *world);

/* After all nodes and the queue are gone. */
void sim_network_deinit(struct sim_network *network);

/* Carries out an outbound call of `from`; gives it back through its call_done exactly once. */
void sim_network_call(struct sim_node *from, struct model_call *call);

/* `call` is an inbound call that `node` has answered. */
void sim_network_reply(struct sim_node *node, struct model_call *call);

/* The node's outbound calls are freed by its core: nothing is given back any more. */
void sim_network_forget_calls(struct sim_network *network, struct sim_node *node);

/* The node's core is gone, with the inbound calls that it had not answered. */
void sim_network_abandon_inbound(struct sim_network *network, struct sim_node *node);

/* Breaks the connections from one node to another: callers learn it soon. */
void sim_network_reset(struct sim_network *network, struct sim_node *from, struct sim_node *to);

/* No cut, no loss, no duplicates, normal delay. */
void sim_network_heal(struct sim_network *network);

/* Inbound calls that `node` has and has not answered. */
unsigned sim_network_n_unanswered(const struct sim_network *network, const struct sim_node *node);

/* Duplicates that are still to come or unanswered may have been applied. */
void sim_network_taint_pending(struct sim_network *network);

#endif
