/*
 * The inside of one instance core, shared by the modules that make it up (core, answer, commit,
 * data, ownership, registry, load). Nobody else includes it.
 */
#ifndef INST_STATE_H
#define INST_STATE_H

#include "instance/checks.h"
#include "instance/core.h"
#include "instance/dedup.h"
#include "instance/entries.h"
#include "instance/membership.h"
#include "instance/rows.h"

/* A call that waits: for its key's transaction, or for an answer about its key. */
struct inst_wait {
    struct rt_list link;     /* inst_row.waits or inst_pull.waits */
    struct rt_list all_link; /* inst_core.waits */
    struct model_call *call; /* its `state` points back here */
    struct inst_row *row;    /* NULL in a pull */
    bool pulled;
};

struct inst_outbound;

/* The coordinator is being asked about one key. */
struct inst_pull {
    struct rt_list link;            /* inst_core.pulls, by due_us */
    struct rt_list waits;           /* inst_wait.link */
    struct inst_outbound *outbound; /* borrowed from the call that is out */
    uint64_t due_us;                /* then the waiting calls go on without an answer */
    size_t key_size;
    uint8_t key[MODEL_KEY_MAX];
};

/* model_call.state of an outbound call, in its arena. */
struct inst_outbound {
    struct rt_list link;     /* inst_core.outbounds */
    struct model_call *call; /* it is part of */
    uint64_t sent_us;
    uint64_t incarnation;
    uint64_t attempt; /* REGISTER RECONCILE LEAVE: answers to earlier attempts are ignored */
    struct inst_pull *pull;
};

enum inst_op_kind {
    INST_OP_META,
    INST_OP_PRUNE,
    INST_OP_MARK_DIRTY, /* before the first SET after a durable write; the call then runs again */
    INST_OP_SPACE,      /* never submitted: waits for entries; the call then runs again */
    INST_OP_SPILL,      /* the value is on its way out of memory */
    INST_OP_DUMP,       /* a SET value is being stored, unasked */
    INST_OP_EVICT,      /* the key is on its way out altogether */
    INST_OP_READBACK,   /* the value is only in the store; the call then runs again */
    INST_OP_STORE,
    INST_OP_PUT,
    INST_OP_DELETE,
    INST_OP_FENCE,
    INST_OP_ACTIVATE,
    INST_OP_DROP,
};

/* One transaction in flight; in that transaction's arena. */
struct inst_op {
    enum inst_op_kind kind;
    struct store_txn *txn;   /* owned until submitted */
    struct inst_row *row;    /* NULL for META and PRUNE */
    struct model_call *call; /* to be answered; NULL for the instance's own */
    uint64_t incarnation;    /* under which the checks passed */
    bool has_meta;           /* the transaction also writes `meta` */
    struct inst_record after;
    bool replaces; /* ACTIVATE: the old value goes */
    enum inst_row_phase phase_before;
    bool writes_value; /* STORE PUT DUMP; SPILL where there are dumps */
    bool deletes_spill;
    bool is_held; /* the value was taken from the candidates; counted in inst_core.n_held */
    struct rt_bytes value;
    struct model_version version;
    bool has_run; /* PUT: entries are reserved for the new value */
    struct inst_run run;
    uint64_t rank;             /* of the row's value among the candidates, until the op is done */
    struct rt_list space_link; /* SPACE: inst_core.space */
    uint64_t n_wanted;         /* SPACE: free entries that it waits for */
    struct inst_dedup_entry *entry; /* prepared; NULL without a request id */
    struct inst_dedup_result result;
};

static inline bool inst_op_drops(const struct inst_op *op)
{
    return op->kind == INST_OP_DROP || op->kind == INST_OP_EVICT;
}

static inline bool inst_op_evicts(const struct inst_op *op)
{
    return op->kind == INST_OP_SPILL || op->kind == INST_OP_EVICT;
}

/* A key that was dropped to make room. It is remembered after an answer told it, on disk too: where
 * that answer got lost the coordinator takes the key for ours. */
struct inst_evicted {
    struct rt_list link; /* inst_core.evicted */
    uint64_t epoch;
    bool is_told;  /* in the answer to a write */
    bool is_known; /* the coordinator says that it does not take the key for ours */
    size_t key_size;
    uint8_t key[];
};

struct inst_reconcile {
    bool begun; /* commits of an earlier life have drained */
    uint64_t part;
    struct rt_list *cursor; /* first row of this part, in inst_rows.all */
    struct rt_list *next;   /* first row of the next part */
    bool last_sent;
    uint64_t term;     /* of the coordinator that answered Register */
    unsigned n_failed; /* attempts of this part */
};

struct inst_core {
    struct inst_config config;
    struct rt_env env;
    struct model_effects effects;
    struct rt_list outbounds; /* inst_outbound.link: calls not come back; owned with their calls */
    uint64_t now_us;          /* latest reading: the clock is never taken to go back */

    struct inst_membership membership;
    struct inst_meta meta;
    bool meta_corrupt;
    bool meta_dirty;
    bool meta_in_flight;
    uint64_t meta_retry_at_us;
    uint64_t placement_version;
    uint64_t earlier_term; /* of the earlier coordinator that was told of; 0 = none */
    bool lease_lost;       /* was told of */
    uint32_t key_max;
    uint64_t attempt;
    struct inst_reconcile reconcile;
    uint64_t leave_by_us; /* RT_NEVER unless leaving */
    bool leave_sent;
    bool read_only;         /* a commit failed */
    bool dump_failed;       /* in this period, and that was told */
    bool has_turn;          /* the call that runs has waited for its entries */
    uint64_t dropped_epoch; /* highest that was dropped by this process: no Activate up to it */
    bool has_failure;
    struct model_error failure;

    struct inst_entries entries;
    struct inst_replacement replacement;
    struct inst_row **owners; /* owned; borrowed rows by the first entry of their runs */
    struct rt_list space;     /* inst_op.space_link: who waits for entries, first come first */
    uint64_t n_wanted;        /* entries that these wait for */
    uint64_t n_leaving;     /* entries that are free when their value is in the store, or dropped */
    uint64_t n_held;        /* that hold candidates, but for a transaction in flight */
    struct rt_list evicted; /* inst_evicted.link: owned; oldest first, at most MODEL_EVICTED_MAX */
    size_t n_evicted;
    size_t n_untold;
    size_t n_unknown;
    struct rt_list sets; /* inst_row.dump_link: rows that were SET, for the next dump */
    struct rt_list due;  /* inst_row.dump_link: of the dump that is under way */
    size_t n_dumping;    /* transactions */
    uint64_t dump_at_us;
    const struct inst_row *loaded_row; /* its value was read back, while its call runs */
    struct rt_bytes loaded;            /* valid with loaded_row */
    struct inst_rows rows;
    struct inst_dedup dedup;
    struct rt_list waits; /* inst_wait.all_link */
    size_t n_waits;
    uint64_t waits_due_us; /* not later than the first deadline among `waits` */
    struct rt_list pulls;
    size_t n_pulls;
    size_t n_in_flight; /* transactions of rows */
    bool prune_in_flight;
    uint64_t prune_at_us;
    uint64_t n_operations;
    uint64_t n_compactions;
    uint64_t compacted_term; /* round that the coordinator asked for last */
    uint64_t compacted_round;
};

/* A fresh reading. */
static inline uint64_t inst_now(struct inst_core *core)
{
    uint64_t now_us = rt_env_now_us(&core->env);

    if (now_us > core->now_us)
        core->now_us = now_us;
    return core->now_us;
}

/* ---- answer.c: ends calls ---- */

/* Fills the failure of an inbound call, with key, epochs, hint and advice; `row` may be NULL. The
 * caller may change the error before inst_answer_send(). */
void inst_answer_fail(struct inst_core *core, struct model_call *call, const struct inst_row *row,
                      enum model_reason reason, const char *format, ...) RT_PRINTF(5, 6);

/* Fail with the reason's own text, and send. */
void inst_answer_refuse(struct inst_core *core, struct model_call *call, const struct inst_row *row,
                        enum model_reason reason);

/* Fills responder and puts the call among the replies. */
void inst_answer_send(struct inst_core *core, struct model_call *call);

/* OK with the state of the row; says lost SETs and takes note that it did. Not sent yet. */
struct model_data_response *inst_answer_data(struct inst_core *core, struct model_call *call,
                                             struct inst_row *row);

/* inst_answer_data() with a copy of the value. false when memory is out; then the failure is
 * filled instead. */
bool inst_answer_value(struct inst_core *core, struct model_call *call, struct inst_row *row);

/* The answer that was recorded for the same request, and send. */
void inst_answer_recorded(struct inst_core *core, struct model_call *call,
                          const struct inst_dedup_result *result);

/* ---- commit.c, wait.c: one transaction a key, and who waits behind it ---- */

struct inst_op *inst_op_new(struct inst_core *core, enum inst_op_kind kind, struct inst_row *row,
                            struct model_call *call);

/* The op makes the row's value durable as it is, with its version. */
void inst_op_keep_value(const struct inst_core *core, struct inst_op *op);

/* Gives reserved entries back and frees the op, before it is submitted. */
struct inst_op *inst_op_abandon(struct inst_core *core, struct inst_op *op);

/* Builds the transaction and hands it out; the row must have none in flight. Takes the op. */
void inst_op_submit(struct inst_core *core, struct inst_op *op);

/* Writes `meta` by itself, unless it is being written. */
void inst_commit_meta(struct inst_core *core);

/* Deletes /d rows of condemned requests when it is time. */
void inst_commit_prune(struct inst_core *core, uint64_t now_us);

/* Puts the call behind the row's transaction; refused past the limits. */
void inst_wait_for_row(struct inst_core *core, struct inst_row *row, struct model_call *call,
                       bool pulled);

/* NULL past the limits, and then the call is still the caller's. */
struct inst_wait *inst_wait_new(struct inst_core *core, struct model_call *call, bool pulled);

/* Takes the wait out of its lists and frees it; the call is the caller's again. */
struct model_call *inst_wait_end(struct inst_core *core, struct inst_wait *wait);

/* Answers waiting calls whose time is up. */
void inst_waits_expire(struct inst_core *core, uint64_t now_us);

/* Runs what waits for the row until something is in flight again; may reap the row. */
void inst_wait_drain(struct inst_core *core, struct inst_row *row);

/* ---- core.c, data.c, ownership.c: inbound calls ---- */

/* What follows every step: rows of `meta` and of condemned requests that have to be written. */
void inst_core_settle(struct inst_core *core);

/* Any inbound call, from check 0. `pulled`: the coordinator was asked on its behalf. */
void inst_dispatch(struct inst_core *core, struct model_call *call, bool pulled);
void inst_data_dispatch(struct inst_core *core, struct model_call *call, bool pulled);
void inst_ownership_dispatch(struct inst_core *core, struct model_call *call);

/* ---- space.c: the value in memory, and room for it ---- */

/* The reserved run holds the value from now on. Not used: loaded or read back. */
void inst_value_put(struct inst_core *core, struct inst_row *row, const struct inst_run *run,
                    struct rt_bytes value, bool is_used);

/* Where there is a hole and nobody waits for entries. */
bool inst_value_put_if_free(struct inst_core *core, struct inst_row *row, struct rt_bytes value);

/* Gives back what was reserved and not put. */
void inst_value_cancel(struct inst_core *core, struct inst_row *row, const struct inst_run *run);

/* The value is in the store only. */
void inst_value_unload(struct inst_core *core, struct inst_row *row);

/* There is no value any more. */
void inst_value_release(struct inst_core *core, struct inst_row *row);

/* The value in memory is the stored one. */
bool inst_value_is_clean(const struct inst_row *row);

/* There is none, or it can be looked at now. */
static inline bool inst_value_is_at_hand(const struct inst_core *core, const struct inst_row *row)
{
    return !row->has_value || row->run.n > 0 || core->loaded_row == row;
}

/* The value at hand; valid until anything changes. */
struct rt_bytes inst_value_view(const struct inst_core *core, const struct inst_row *row);

/* Nobody evicts the row's value while the op is under way. */
void inst_value_hold(struct inst_core *core, struct inst_op *op);
void inst_value_give_back(struct inst_core *core, struct inst_op *op);

enum inst_space {
    INST_SPACE_RESERVED,
    INST_SPACE_WAITS,   /* the call runs again from check 0 when there may be room */
    INST_SPACE_REFUSED, /* it is answered, and nothing has changed */
};

/* Entries for the value of a SET or PUT. Others may be moved, unless its header says no. The row
 * has nothing in flight. */
enum inst_space inst_space_reserve(struct inst_core *core, struct inst_row *row,
                                   struct model_call *call, struct inst_run *ret_run);

/* Whether a value of that size would find room, if need be by evicting others. */
bool inst_space_could_fit(const struct inst_core *core, uint64_t size);

/* ---- compact.c ---- */

/* Moves all values to the lowest entries, in their order. */
void inst_compact(struct inst_core *core);

/* The same for a round that the coordinator asks for; false when it was carried out before. */
bool inst_compact_round(struct inst_core *core, uint64_t term, uint64_t round);

/* ---- evicted.c: keys that were dropped to make room ---- */

/* Remembers it, in the place of an earlier one of that key, or of the oldest past the limit. The
 * next answer to a SET or PUT says so, unless it `is_told`. */
void inst_evicted_add(struct inst_core *core, struct rt_bytes key, uint64_t epoch, bool is_told);

/* NULL when it is not among them. */
struct inst_evicted *inst_evicted_find(const struct inst_core *core, struct rt_bytes key);

/* The one that is forgotten when `n_before` other keys and then one more are added; NULL when there
 * is room for them. */
const struct inst_evicted *inst_evicted_oldest(const struct inst_core *core, size_t n_before);

/* The key is owned again, or nobody asks any more. */
void inst_evicted_forget(struct inst_core *core, struct rt_bytes key);
void inst_evicted_forget_all(struct inst_core *core);

/* Adds those that are not told yet to the answer to a SET or PUT. */
void inst_evicted_tell(struct inst_core *core, struct model_call *call);

/* Adds those that the coordinator may not know of to a Renew. */
void inst_evicted_repeat(const struct inst_core *core, struct model_call *call);

/* The answer to a Renew names these of them: they are not repeated. */
void inst_evicted_known(struct inst_core *core, const uint64_t *epochs, size_t n_epochs);

/* ---- space.c, again ---- */

/* Runs whoever waits for entries and can have them now. To be called when an op of a row is done.
 */
void inst_space_settle(struct inst_core *core);

/* Refuses whoever waits for entries. */
void inst_space_fail(struct inst_core *core, enum model_reason reason);

/* ---- dump.c ---- */

/* The row was SET. */
void inst_dump_note(struct inst_core *core, struct inst_row *row);

void inst_dump_tick(struct inst_core *core, uint64_t now_us);
uint64_t inst_dump_next_wakeup_us(const struct inst_core *core);

/* The row's transaction is done; before what waits for the row runs. */
void inst_dump_row_is_free(struct inst_core *core, struct inst_row *row);

/* A dump's transaction came back. */
void inst_dump_done(struct inst_core *core, struct inst_row *row, enum store_outcome outcome);

/* ---- readback.c ---- */

/* Fetches the row's value from the store for a call that needs it at hand. */
void inst_readback_begin(struct inst_core *core, struct inst_row *row, struct model_call *call);
void inst_readback_done(struct inst_core *core, struct inst_op *op, const struct store_txn *txn);

/* A value of that size does not fit: fails the call and sends it. */
void inst_answer_no_entries(struct inst_core *core, struct model_call *call,
                            const struct inst_row *row, uint64_t size);

/* The committed op's answer. */
void inst_data_committed(struct inst_core *core, struct inst_op *op);
void inst_ownership_committed(struct inst_core *core, struct inst_op *op);

/* News of a row that arrived otherwise than by Fence or Activate. */
void inst_ownership_learn(struct inst_core *core, const struct model_row *told);

/* Begins to make the told ownership durable; the row must have nothing in flight. */
void inst_ownership_activate(struct inst_core *core, struct inst_row *row,
                             const struct model_row *told, struct model_call *call);

/* The record of a row that begins at the told epoch. */
struct inst_record inst_ownership_begin(const struct inst_core *core, const struct model_row *told);

/* Floor and lock of the told row, where they are newer than the record's. */
void inst_ownership_merge(struct inst_record *record, const struct model_row *told);

/* ---- registry.c: calls to the coordinator ---- */

void inst_registry_start(struct inst_core *core);
void inst_registry_tick(struct inst_core *core, uint64_t now_us);
void inst_registry_call_done(struct inst_core *core, struct model_call *call);
void inst_registry_renew(struct inst_core *core);
void inst_registry_leave(struct inst_core *core);
uint64_t inst_registry_next_wakeup_us(const struct inst_core *core);

/* This life is over, or its beginning has to be made again. */
void inst_registry_register_again(struct inst_core *core, bool at_once);

/* `meta` was written, or not. */
void inst_registry_meta_done(struct inst_core *core, enum store_outcome outcome);

/* No transaction of a row is in flight any more. */
void inst_registry_drained(struct inst_core *core);

/* A term heard of; false when it is lower than one heard of before. */
bool inst_registry_note_term(struct inst_core *core, uint64_t term);

/* For good: STOPPED, with the failure. */
void inst_registry_stop(struct inst_core *core, enum model_reason reason, const char *format, ...)
    RT_PRINTF(3, 4);

/* An outbound call of the current incarnation and attempt, on its way; its request is to fill. */
struct model_call *inst_registry_new_call(struct inst_core *core, enum model_call_kind kind,
                                          uint64_t timeout_us);
void inst_registry_copy_name(const struct inst_core *core, char name[MODEL_NAME_MAX + 1]);

/* ---- reconcile.c ---- */

/* Puts every row into quarantine and sends part 0; no transaction of a row may be in flight. */
void inst_reconcile_begin(struct inst_core *core);

/* Sends the part that is due, maybe again. */
void inst_reconcile_send(struct inst_core *core);
void inst_reconcile_answered(struct inst_core *core, const struct model_response *response);

/* ---- pull.c ---- */

/* Lets the call wait for an answer about its key; refused with `reason` when that cannot be. */
void inst_pull_wait(struct inst_core *core, struct model_call *call, const struct inst_row *row,
                    enum model_reason reason);
void inst_pull_answered(struct inst_core *core, const struct model_response *response,
                        const struct inst_outbound *outbound);
void inst_pull_expire(struct inst_core *core, uint64_t now_us);
uint64_t inst_pull_next_wakeup_us(const struct inst_core *core);

/* ---- listing.c ---- */

void inst_listing_answer(struct inst_core *core, struct model_call *call);

/* ---- load.c ---- */

/* Every stored row was loaded: rows are put into quarantine and judged. false when the instance
 * must not start, and then it is stopped. */
RT_MUST_USE bool inst_load_finish(struct inst_core *core);

#endif
