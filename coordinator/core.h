/*
 * The coordinator's decisions: who is alive, where keys live, who holds their locks.
 *
 * Pure: no I/O, no thread, no clock but the environment's. All functions of one core are called
 * under one lock; none blocks; none calls back. Work enters as calls (runtime/model/call.h) and
 * leaves as effects. Commit, then speak: an answer that depends on a transaction is given after
 * that transaction was handed back as committed.
 *
 * Start: coord_core_new() → coord_core_load() for every stored row → coord_core_start(). The core
 * answers once the transaction of the new term has committed; calls that come earlier wait.
 */
#ifndef COORD_CORE_H
#define COORD_CORE_H

#include "coordinator/placement.h"
#include "runtime/base/buffer.h"
#include "runtime/base/env.h"
#include "runtime/model/call.h"
#include "runtime/model/lease.h"

/* What becomes of a key when it is accessed and its owner is dead or left. */
enum coord_owner_down {
    COORD_OWNER_DOWN_FORGET, /* KEY_INACCESSIBLE, the key leaves the table (classic) */
    COORD_OWNER_DOWN_KEEP,   /* OWNER_DOWN while it may be stored there; never stored: forgotten */
};

/* Who compacts when a value fits in only after that. */
enum coord_compaction_mode {
    COORD_COMPACT_LOCAL,  /* the instance that needs it, by itself */
    COORD_COMPACT_GLOBAL, /* every connected one, while no statement runs (classic) */
};

struct coord_config {
    struct model_lease member_lease;
    struct model_lease session_lease;
    uint32_t key_max; /* bytes, 1..MODEL_KEY_MAX */
    enum model_locking locking;
    enum coord_owner_down owner_down;
    enum coord_compaction_mode compaction;
    enum model_distribution distribution; /* unless an operator said otherwise */
    enum coord_ranges ranges;
    bool keep_locks;           /* of a session that was aborted, until an operator frees them */
    uint64_t delay_us;         /* every statement and Lock waits this long before it begins */
    const char *profile;       /* its name, for the log */
    const char *operation_log; /* file of its shell; NULL: no operations are kept for it */
    uint64_t wake_hold_us; /* a woken waiter keeps its turn this long before the next is woken */
};

struct coord_core;

/* `config` and `env` are copied; env->ctx and the strings of `config` must outlive the core. */
struct coord_core *coord_core_new(const struct coord_config *config, const struct rt_env *env);

/* Frees the core and every call it made. Inbound calls still inside must have been answered or are
 * abandoned by their owner. Accepts NULL, returns NULL. */
struct coord_core *coord_core_free(struct coord_core *core);

/* One row of the store. DATA_LOSS names the row when it cannot be decoded. */
RT_MUST_USE enum rt_code coord_core_load(struct coord_core *core, struct rt_bytes key,
                                         struct rt_bytes value, struct rt_error *err);

/* Begins a new term. */
void coord_core_start(struct coord_core *core);

/* Who answers, for what is refused without the core. */
void coord_core_responder(const struct coord_core *core, struct model_responder *ret_responder);

/* Inbound calls of RegistryService, CoordinatorService and AdminService kinds. */
void coord_core_submit(struct coord_core *core, struct model_call *call);

/* The caller went away: an unanswered call is answered soon (CANCELLED or whatever it came to). */
void coord_core_cancel(struct coord_core *core, struct model_call *call);

/* An outbound call has its response. Takes it back. */
void coord_core_call_done(struct coord_core *core, struct model_call *call);

/* A transaction has its outcome. Takes it back. */
void coord_core_txn_done(struct coord_core *core, struct store_txn *txn);

/* Runs what is due now; what that makes due later waits for the next tick. */
void coord_core_tick(struct coord_core *core);

/* When coord_core_tick() wants to be called next; RT_NEVER when nothing is due. */
uint64_t coord_core_next_wakeup_us(const struct coord_core *core);

/* To be taken after every step. */
struct model_effects *coord_core_effects(struct coord_core *core);

/* Moves the lines of what ESIs did since the last time, each "esi=NAME statement=… key=… result=…",
 * to `ret_lines` (initialised here, to be freed by the caller); to be called after every step where
 * config.operation_log is set. How many lines were lost because that did not happen. */
size_t coord_core_take_operations(struct coord_core *core, struct rt_buffer *ret_lines);

/* From now on every new call but Leave, Renew and CloseSession is refused with DRAINING, and so are
 * statements that only wait. */
void coord_core_drain(struct coord_core *core);

bool coord_core_is_serving(const struct coord_core *core);
const struct model_id *coord_core_cluster_id(const struct coord_core *core);

#endif
