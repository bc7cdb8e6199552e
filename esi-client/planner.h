/*
 * Decides which ESI (a script that runs) executes its next line, and keeps who waits for which key.
 *
 * Lines are the unit and the clock. An ESI is NEW until its session is open, then READY, RUNNING or
 * BLOCKED, in the end FINISHED. One runs at a time, but under PARALLEL, where all that can run do.
 * Among those that are READY the policy chooses, ties in the order in which they became ready:
 *
 *   fifo      the order in which they became ready
 *   sjf-sd    the least estimate; it runs until it blocks or ends
 *   sjf-cd    the same, and at each boundary of a line one with an estimate below the remainder of
 *             the one that runs takes its place
 *   hrrn      the greatest (S + W) / S: estimate S, lines W of others since it became ready
 *
 * An ESI enters READY with the initial estimate; when it comes from BLOCKED the estimate becomes
 * alpha * burst + (1 - alpha) * estimate, where the burst counts the lines since the estimate was
 * made, a GET that blocked among them (and again when it is run a second time). One whose place was
 * taken goes on with its remainder (estimate - burst) and the same burst.
 *
 * The locks are those of the coordinator; the planner follows them: it is told which line got,
 * freed or waited for which key, and makes the first waiter ready as soon as a key is free, so that
 * the order of lines does not depend on when the coordinator's word arrives. A waiter that blocks
 * on the same key again keeps its place.
 *
 * The caller takes orders (esi_planner_next), carries them out and tells what came of them.
 * Choosing takes O(n) of the at most ESI_PLANNER_LIVE_MAX live ESIs. Pure; one thread.
 */
#ifndef ESI_PLANNER_H
#define ESI_PLANNER_H

#include <stdbool.h>

#include "runtime/base/error.h"
#include "runtime/base/list.h"

enum {
    ESI_PLANNER_LIVE_MAX = 1000, /* ESIs that have not finished */
    ESI_PLANNER_SYSTEM = 0,      /* holds the keys that are blocked at start; no ESI's id */
};

enum esi_policy {
    ESI_POLICY_PARALLEL,
    ESI_POLICY_FIFO,
    ESI_POLICY_SJF_SD,
    ESI_POLICY_SJF_CD,
    ESI_POLICY_HRRN,
};

/* "parallel", "fifo", "sjf-sd", "sjf-cd", "hrrn", then NULL. */
extern const char *const esi_policy_names[];

enum esi_plan_state {
    ESI_PLAN_NEW,
    ESI_PLAN_READY,
    ESI_PLAN_RUNNING,
    ESI_PLAN_BLOCKED,
    ESI_PLAN_FINISHED,
};

/* "new", "ready", "running", "blocked", "finished" */
const char *esi_plan_state_name(enum esi_plan_state state);

struct esi_planner_config {
    enum esi_policy policy;
    double alpha;            /* 0..1 */
    double initial_estimate; /* lines, ≥ 0 */
};

/* What is known of one ESI. */
struct esi_plan {
    uint32_t id;
    enum esi_plan_state state;
    bool is_ending;      /* killed, or its last line was run: its end is awaited */
    double estimate;     /* lines of its burst */
    uint64_t burst;      /* lines since the estimate was made */
    uint64_t lines;      /* in all */
    uint64_t waited;     /* lines of others since it became READY */
    bool is_waiting;     /* for `key` */
    struct rt_bytes key; /* borrowed until the next change */
};

enum esi_order_kind {
    ESI_ORDER_LINE, /* run the next line, or the GET that blocked again */
    ESI_ORDER_END,  /* killed: end it, and give its locks back */
};

struct esi_order {
    enum esi_order_kind kind;
    uint32_t id;
};

enum esi_line_kind {
    ESI_LINE_DONE,    /* nothing about locks */
    ESI_LINE_GOT,     /* `key` is its own now */
    ESI_LINE_FREED,   /* `key` is free */
    ESI_LINE_BLOCKED, /* it waits for `key`, which another has */
};

/* What came of a line. */
struct esi_line {
    enum esi_line_kind kind;
    struct rt_bytes key; /* but for DONE */
    bool is_last;        /* the ESI ends by itself now, of success or failure; not for BLOCKED */
};

enum esi_event_kind {
    ESI_EVENT_READY,     /* with its estimate */
    ESI_EVENT_RUNNING,   /* with its remainder */
    ESI_EVENT_PREEMPTED, /* with its remainder: ready again */
    ESI_EVENT_BLOCKED,   /* on `key` */
    ESI_EVENT_FINISHED,
};

/* "ready", "running", "preempted", "blocked", "finished" */
const char *esi_event_kind_name(enum esi_event_kind kind);

/* A change of state. Owned by whoever took it. */
struct esi_event {
    struct rt_list link;
    enum esi_event_kind kind;
    uint32_t id;
    uint64_t clock;      /* lines run so far, of all */
    double estimate;     /* what is left of it */
    struct rt_bytes key; /* BLOCKED; inside the event */
};

enum esi_block {
    ESI_BLOCK_ASSIGNED,    /* the key is the ESI's own, now or since before: its session locks it */
    ESI_BLOCK_QUEUED,      /* the ESI waits for it now */
    ESI_BLOCK_AT_BOUNDARY, /* it will when its line is done */
};

struct esi_planner;

/* The configuration is copied; its ranges are the caller's to check. */
struct esi_planner *esi_planner_new(const struct esi_planner_config *config);

/* Accepts NULL, returns NULL. */
struct esi_planner *esi_planner_free(struct esi_planner *planner);

/* A NEW ESI; ids rise from 1. RESOURCE_EXHAUSTED: ESI_PLANNER_LIVE_MAX are live. */
RT_MUST_USE enum rt_code esi_planner_add(struct esi_planner *planner, uint32_t *ret_id,
                                         struct rt_error *err);

/* Its session is open: READY, unless it has left NEW already. */
void esi_planner_opened(struct esi_planner *planner, uint32_t id);

/* The next order, each once; false: there is none for now. To be asked after every change. */
bool esi_planner_next(struct esi_planner *planner, struct esi_order *ret_order);

/* What came of the line that was ordered. */
void esi_planner_line_done(struct esi_planner *planner, uint32_t id, const struct esi_line *line);

/* The coordinator says that the key this ESI waits for may be had. Ignored unless it waits for one,
 * and while the key is for another who was woken first; kept for later while the line of its holder
 * that must have freed it is not done, so that it does not matter which of the two comes first. */
void esi_planner_woken(struct esi_planner *planner, uint32_t id);

/* Its session is closed, of whatever reason: FINISHED, its keys are free. */
void esi_planner_ended(struct esi_planner *planner, uint32_t id);

/* A FINISHED one is not known any more; all stay until then. */
void esi_planner_forget(struct esi_planner *planner, uint32_t id);

/* ---- what a person orders -------------------------------------------------------------------- */

/* No line is begun from now on. */
void esi_planner_pause(struct esi_planner *planner, bool is_paused);
bool esi_planner_is_paused(const struct esi_planner *planner);

/* Its end is ordered now, or when its line is done. NOT_FOUND: no such ESI; FAILED_PRECONDITION: it
 * has finished or is ending. */
RT_MUST_USE enum rt_code esi_planner_kill(struct esi_planner *planner, uint32_t id,
                                          struct rt_error *err);

/* Makes the ESI wait for the key as if a line of it had asked, or gives it the key when that is
 * free; its own it keeps. It goes on behind the line where it was when it is woken. NOT_FOUND: no
 * such ESI; FAILED_PRECONDITION: it has finished, is ending or waits already. */
RT_MUST_USE enum rt_code esi_planner_block(struct esi_planner *planner, struct rt_bytes key,
                                           uint32_t id, enum esi_block *ret_effect,
                                           struct rt_error *err);

/* The system owner holds the key. FAILED_PRECONDITION: somebody holds it already. */
RT_MUST_USE enum rt_code esi_planner_block_at_start(struct esi_planner *planner,
                                                    struct rt_bytes key, struct rt_error *err);

/* The first waiter becomes READY and the key stays held; without waiters a key of the system owner
 * becomes free, and *ret_id is ESI_PLANNER_SYSTEM: its session has to unlock it. NOT_FOUND: nobody
 * waits for the key, and it was not blocked at start. */
RT_MUST_USE enum rt_code esi_planner_unblock(struct esi_planner *planner, struct rt_bytes key,
                                             uint32_t *ret_id, struct rt_error *err);

/* The system owner frees its key as a STORE would: the first waiter becomes READY. Does nothing
 * when somebody else holds it, or nobody. */
void esi_planner_give_back(struct esi_planner *planner, struct rt_bytes key);

/* ---- looking --------------------------------------------------------------------------------- */

/* false: no such ESI. */
bool esi_planner_find(const struct esi_planner *planner, uint32_t id, struct esi_plan *ret_plan);

/* Ids in the order in which they were added, up to `max` of them; returns how many there are. */
size_t esi_planner_list(const struct esi_planner *planner, uint32_t *ids, size_t max);

/* Ids of those that wait for the key, first first; as esi_planner_list(). */
size_t esi_planner_waiters(const struct esi_planner *planner, struct rt_bytes key, uint32_t *ids,
                           size_t max);

/* Who holds the key, as far as the planner knows; false: nobody. */
bool esi_planner_holder(const struct esi_planner *planner, struct rt_bytes key, uint32_t *ret_id);

/* Ids of exactly those that wait, over any number of others, for themselves; in the order in which
 * they were added; as esi_planner_list(). O(n). */
size_t esi_planner_deadlock(const struct esi_planner *planner, uint32_t *ids, size_t max);

/* Lines run so far, of all ESIs. */
uint64_t esi_planner_clock(const struct esi_planner *planner);

/* The next event, NULL when there is none; the caller frees it with rt_free(). */
struct esi_event *esi_planner_take_event(struct esi_planner *planner);

#endif
