/*
 * The invariants of the design's section 12 that are visible from outside, checked at the moment an
 * answer or a call leaves a core, on global simulated time.
 *
 * I1  one (instance, incarnation) acknowledges writes of a key at an epoch; epochs never fall
 * I3  a SET that was lost with its owner's process is said at the first access of the next life
 * I4  an acknowledged write has the epoch and incarnation that its route named
 * I6  tokens of acknowledged writes never fall along a key's versions
 * I7  after GET(t) was answered no write with a lower token, or without one, is accepted
 * I8  what was refused as "not applied" is never seen
 * I9  one request_id, one version
 * I10 no OK leaves an instance once the coordinator activated another owner or declared it dead
 * I11 a dead incarnation gets no lease; a lower term changes nothing
 * rule 18 a stalled disk costs the lease: a heartbeat is on disk before each Renew
 * I13 nothing outlives its deadline by 100 ms
 *
 * The rest of I3, and I5, need the whole history: final.c.
 */
#ifndef SIM_INVARIANTS_H
#define SIM_INVARIANTS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/model/call.h"
#include "tests/sim/history.h"

struct sim_node;
struct sim_world;

enum {
    SIM_INCARNATIONS_MAX = 256,
    SIM_ROUTES_MAX = 8,
    SIM_INSTANCES_MAX = 8,
};

/* One life of an instance as the coordinator knows it. */
struct sim_incarnation {
    uint64_t incarnation;
    uint8_t node;
    bool is_dead;
};

/* One acknowledged write. */
struct sim_ack {
    struct model_version version;
    uint64_t token;
    struct model_request_id request_id;
};

struct sim_key_state {
    uint64_t activated_epoch; /* highest that the coordinator sent an Activate for */
    uint8_t activated_node;
    uint64_t acked_epoch; /* of the last acknowledged write or linearizable read */
    uint64_t acked_incarnation;
    uint8_t acked_node;
    uint64_t granted_token; /* highest that a GET was answered with */
    uint64_t locked_epoch;  /* the owner at this epoch acknowledged a grant and no release yet */
    uint64_t locked_token;
    uint64_t released_token;           /* highest that the coordinator has released */
    uint64_t closing_token;            /* highest of a durable write that has reached an owner */
    struct model_version volatile_set; /* newest acknowledged SET that no durable write followed */
    uint16_t n_durable[SIM_INSTANCES_MAX]; /* durable writes inside each instance, by node */
    struct sim_ack *acks;                  /* owned, in order of acknowledgement */
    size_t n_acks;
    size_t capacity;
};

struct sim_checker {
    struct sim_world *world;
    struct sim_key_state keys[SIM_KEYS_MAX];
    struct sim_incarnation incarnations[SIM_INCARNATIONS_MAX];
    unsigned n_incarnations;
    struct sim_term *terms; /* owned; highest term each instance process has obeyed */
    unsigned n_compacting;  /* instances that the coordinator has asked to compact, unanswered */
};

void sim_checker_init(struct sim_checker *checker, struct sim_world *world);
void sim_checker_deinit(struct sim_checker *checker);

/* `from` is about to send the request. */
void sim_checker_on_call(struct sim_checker *checker, struct sim_node *from, struct sim_node *to,
                         const struct model_request *request);
/* `from` is about to hear what became of it: an answer, or that there is none. */
void sim_checker_on_done(struct sim_checker *checker, const struct sim_node *from,
                         const struct model_request *request);
/* The request is about to be submitted to `node`. */
void sim_checker_on_request(struct sim_checker *checker, struct sim_node *node,
                            const struct model_request *request);
/* The answer was taken out of the core of `node`. */
void sim_checker_on_reply(struct sim_checker *checker, struct sim_node *node,
                          struct sim_node *caller, const struct model_call *call);
void sim_checker_on_crash(struct sim_checker *checker, struct sim_node *node);
/* The coordinator's view of the members, as committed. */
void sim_checker_on_members(struct sim_checker *checker,
                            const struct model_list_instances_response *members);

/* The highest incarnation known under this node; 0 = none. */
uint64_t sim_checker_incarnation(const struct sim_checker *checker, uint8_t node);

#endif
