/*
 * What a planner consists of, and the moves of one ESI between its states and keys. Private to
 * planner*.c.
 *
 * Invariants: an ESI is in `ready` when it is READY and not ending, in `idle` when it is RUNNING,
 * not ending and has no line under way; only under PARALLEL is more than one RUNNING; a key that is
 * free and has waiters is for one who was woken and has not run yet, or somebody holds it whom the
 * planner does not know. Pure; one thread.
 */
#ifndef ESI_PLANNER_STATE_H
#define ESI_PLANNER_STATE_H

#include "esi-client/planner.h"
#include "esi-client/planner_keys.h"

struct esi {
    UT_hash_handle hh;
    struct esi_plan plan;
    struct rt_list place; /* in `ready`, `idle` or `to_end` */
    struct rt_list held;  /* esi_key.held, in the order in which it got them */
    struct esi_wait wait;
    bool waits_by_line;   /* not by a person's order */
    bool is_called;       /* the coordinator's word came while the holder's line is under way */
    bool repeats;         /* its next line is the GET that blocked */
    uint64_t line_ticket; /* of that GET */
    struct esi_key *woken_for; /* NULL: for none */
    bool has_line;             /* ordered and not done */
    bool ends;                 /* ordered to, or by itself */
    uint64_t ready_at;         /* clock */
    size_t visit;              /* in the search for cycles; 0 = none */
    bool is_in_cycle;
};

struct esi_planner {
    struct esi_planner_config config;
    struct esi *by_id; /* uthash in the order of ids, owned */
    size_t n_live;
    uint32_t last_id;
    uint64_t clock;
    uint64_t last_ticket;
    bool is_paused;
    struct esi *running;   /* but under PARALLEL */
    struct rt_list ready;  /* esi.place: first come first */
    struct rt_list idle;   /* esi.place */
    struct rt_list to_end; /* esi.place: killed, END not ordered yet */
    struct rt_list events; /* esi_event.link */
    struct esi_keys keys;
};

/* NULL when there is none. */
struct esi *esi_plan_find(const struct esi_planner *planner, uint32_t id);

/* What is left of its estimate; below 0 when it took longer. */
double esi_plan_remainder(const struct esi *esi);

/* ---- states: each with its event --------------------------------------------------------------
 */

/* READY or PREEMPTED. */
void esi_plan_enter_ready(struct esi_planner *planner, struct esi *esi, enum esi_event_kind kind);
void esi_plan_enter_running(struct esi_planner *planner, struct esi *esi);

/* It waits for a key already. */
void esi_plan_enter_blocked(struct esi_planner *planner, struct esi *esi);
void esi_plan_tell(struct esi_planner *planner, const struct esi *esi, enum esi_event_kind kind);

/* ---- waiting ----------------------------------------------------------------------------------
 */

/* by_line: a GET, which will be run again; else by a person's order. */
void esi_plan_wait_for(struct esi_planner *planner, struct esi_key *key, struct esi *esi,
                       bool by_line);

/* The key of its wait may be had: it asks for it again, or goes on when a person had made it wait.
 * The caller tidies the key. */
void esi_plan_wake(struct esi_planner *planner, struct esi *esi);

/* It waits no longer; the caller tidies the key. */
void esi_plan_end_wait(struct esi *esi);

/* The same where it may not be waiting; tidies the key. */
void esi_plan_drop_wait(struct esi_planner *planner, struct esi *esi);

/* It was woken for a key and has asked for it, or will not. */
void esi_plan_forget_woken(struct esi *esi);

/* It will not: the key is for the next one. */
void esi_plan_pass_on(struct esi_planner *planner, struct esi *esi);

/* ---- keys -------------------------------------------------------------------------------------
 */

/* `held`: the holder's list; NULL where it has none. */
void esi_plan_set_holder(struct esi_key *key, uint32_t id, struct rt_list *held);

void esi_plan_take_key(struct esi_planner *planner, struct esi_key *key, struct esi *esi);

/* It is for its first waiter. The key may be gone afterwards. */
void esi_plan_free_key(struct esi_planner *planner, struct esi_key *key);

#endif
