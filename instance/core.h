/*
 * The instance's decisions: am I alive, do I own this key, may this write happen.
 *
 * Pure: no I/O, no thread, no clock but the environment's. All functions of one core are called
 * under one lock; none blocks; none calls back. Work enters as calls (runtime/model/call.h) and
 * leaves as effects. Every write runs through the checks of instance/checks.h, in their order, and
 * no OK leaves before its post-check.
 *
 * Start: inst_core_new() → inst_core_load() for every stored row → inst_core_start(), which
 * registers with the coordinator and goes on by itself.
 */
#ifndef INST_CORE_H
#define INST_CORE_H

#include "instance/replacement.h"
#include "runtime/base/env.h"
#include "runtime/model/call.h"
#include "runtime/model/lease.h"

enum inst_growth {
    INST_GROWTH_RELOCATE, /* a value that needs more entries than before gets other ones */
    INST_GROWTH_REJECT,   /* it is refused, and the old one stays */
};

enum inst_eviction {
    INST_EVICTION_SPILL, /* the value is read back from the store when it is wanted */
    INST_EVICTION_DROP,  /* the key is gone, as with Drop, and the write that took its entries says
                            so */
};

struct inst_config {
    char name[MODEL_NAME_MAX + 1];
    char address[MODEL_ADDRESS_MAX + 1]; /* given to the coordinator */
    char coordinator_address[MODEL_ADDRESS_MAX + 1];
    struct model_id store_id;
    struct model_id boot_id;
    struct model_id machine_id;
    bool local_store;
    uint64_t entries_total; /* 1..2^32-1 */
    uint64_t entry_size;    /* bytes, 1..MODEL_VALUE_MAX */
    enum inst_policy policy;
    enum inst_growth growth;
    enum inst_eviction eviction;
    uint64_t dump_interval_us; /* between dumps of SET values; 0 = none */
};

enum inst_state {
    INST_STATE_STARTING, /* registering or reconciling, or declared dead and registering again */
    INST_STATE_SERVING,
    INST_STATE_LEAVING, /* writes stopped, Leave under way */
    INST_STATE_STOPPED, /* left, or refused for good: see inst_core_failure() */
};

struct inst_core;

/* `config` and `env` are copied. RESOURCE_EXHAUSTED when the entries do not fit into memory. */
RT_MUST_USE enum rt_code inst_core_new(const struct inst_config *config, const struct rt_env *env,
                                       struct inst_core **ret_core, struct rt_error *err);

/* Frees the core and every call it made. Inbound calls still inside are abandoned by their owner,
 * transactions still at the store are the store's. Accepts NULL, returns NULL. */
struct inst_core *inst_core_free(struct inst_core *core);

/* One row of the store. DATA_LOSS names the row when it cannot be decoded. */
RT_MUST_USE enum rt_code inst_core_load(struct inst_core *core, struct rt_bytes key,
                                        struct rt_bytes value, struct rt_error *err);

/* A row whose checksum did not hold: its key is refused, never served as a healthy empty one. */
void inst_core_load_corrupt(struct inst_core *core, struct rt_bytes key);

void inst_core_start(struct inst_core *core);

enum {
    INST_CORE_EXPECT_MAX = 16
};

/* Operations on these at most INST_CORE_EXPECT_MAX keys are about to be submitted: fetches what
 * they will look at. Changes nothing. */
void inst_core_expect(const struct inst_core *core, const struct rt_bytes *keys, size_t n_keys);

/* Who answers, for what is refused without the core. */
void inst_core_responder(const struct inst_core *core, struct model_responder *ret_responder);

/* Inbound calls of OwnershipService and InstanceService kinds. */
void inst_core_submit(struct inst_core *core, struct model_call *call);
void inst_core_cancel(struct inst_core *core, struct model_call *call);
void inst_core_call_done(struct inst_core *core, struct model_call *call);
void inst_core_txn_done(struct inst_core *core, struct store_txn *txn);
void inst_core_tick(struct inst_core *core);
uint64_t inst_core_next_wakeup_us(const struct inst_core *core);
struct model_effects *inst_core_effects(struct inst_core *core);

/* The heartbeat that must be on disk before the next Renew is sent: true once for each, with the
 * number to write. Answer with inst_core_heartbeat_done(); a heartbeat that stalls or fails costs
 * the lease. */
bool inst_core_take_heartbeat(struct inst_core *core, uint64_t *ret_number);
void inst_core_heartbeat_done(struct inst_core *core, uint64_t number, bool durable);

/* Stops writes at once, lets commits in flight finish, sends Leave, ends STOPPED. */
void inst_core_leave(struct inst_core *core);

enum inst_state inst_core_state(const struct inst_core *core);

/* Why a STOPPED instance was refused (name in use, other cluster, …); NULL when it left. */
const struct model_error *inst_core_failure(const struct inst_core *core);

#endif
