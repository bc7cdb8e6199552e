/*
 * Scripts that run as a planner decides: what their runners came to goes in, whose next statement
 * is to begin comes out.
 *
 * Pure, same rules as the other cores: one lock, no I/O, no clock but the environment's. It makes
 * no calls itself. Planning begins when every script has its session or has ended, and, where keys
 * are blocked at the start, when those are locked; so the order of lines is the same each time.
 *
 * Blocked keys have no console here: when every script that is left waits, those of them that are
 * waited for are given back at once, in the order in which they were named, and the first waiter of
 * each becomes ready.
 *
 * A line that is ordered for a script whose GET waits at the coordinator runs it again when the
 * coordinator says that the lock may be had. While the planner knows of a holder, or when that word
 * does not come in ESI_DRIVE_TURN_US (a session that is none of these has the lock), the script is
 * blocked again without asking: others want to run.
 */
#ifndef ESI_DRIVE_H
#define ESI_DRIVE_H

#include "esi-client/planner.h"
#include "esi-client/runner.h"

enum {
    ESI_DRIVE_TURN_US = 10 * 1000 * 1000
};

struct esi_drive_config {
    struct esi_planner_config planner;
    size_t n_scripts;               /* 1..ESI_PLANNER_LIVE_MAX */
    const struct rt_bytes *blocked; /* borrowed; at most MODEL_KEY_MAX bytes each, no two alike */
    size_t n_blocked;
};

enum esi_drive_order_kind {
    ESI_DRIVE_GRANT,  /* esi_runner_grant() of script `number` */
    ESI_DRIVE_UNLOCK, /* the blocked key `number` is given back */
};

struct esi_drive_order {
    struct rt_list link;
    enum esi_drive_order_kind kind;
    size_t number; /* from 0 */
};

/* What steps of a script's runner came to. */
struct esi_drive_note {
    bool is_open;                  /* there is, or was, a session */
    bool has_turn;                 /* esi_runner_has_turn() */
    bool is_last;                  /* the runner has left RUNNING */
    bool is_done;                  /* its session is closed */
    const struct rt_list *results; /* esi_result.link; stay the caller's */
};

struct esi_drive;

/* `config` and `env` are copied, but for the names of keys; env->ctx must outlive the drive. */
struct esi_drive *esi_drive_new(const struct esi_drive_config *config, const struct rt_env *env);

/* Accepts NULL, returns NULL. */
struct esi_drive *esi_drive_free(struct esi_drive *drive);

/* The keys that are blocked at the start are locked. Once, also without any. */
void esi_drive_begin(struct esi_drive *drive);

/* Of each step of each runner, in their order; none after the one that is done. */
void esi_drive_take_note(struct esi_drive *drive, size_t number, const struct esi_drive_note *note);

void esi_drive_tick(struct esi_drive *drive);
uint64_t esi_drive_next_wakeup_us(const struct esi_drive *drive);
struct model_effects *esi_drive_effects(struct esi_drive *drive);

/* To be carried out in their order; NULL when there is none. The caller frees it with rt_free(). */
struct esi_drive_order *esi_drive_take_order(struct esi_drive *drive);

/* As esi_planner_take_event(); script `number` has id number + 1. */
struct esi_event *esi_drive_take_event(struct esi_drive *drive);

/* Numbers of the scripts in cycles, as soon as every script that is left waits and nothing but a
 * person can help; each time there are new ones. Returns how many; `numbers` has room for all. */
size_t esi_drive_take_deadlock(struct esi_drive *drive, size_t *numbers);

#endif
