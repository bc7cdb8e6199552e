/*
 * Scripts under a planner: the drive and the keeper of the blocked keys, each behind a host of its
 * own. The scripts' runners are the caller's.
 *
 * Loop thread, but for what comments say otherwise.
 */
#ifndef ESI_PLANNED_H
#define ESI_PLANNED_H

#include "esi-client/drive.h"
#include "esi-client/options.h"
#include "runtime/host/host.h"

struct esi_planned_setup {
    const struct esi_options *options;
    struct rpc_runtime *runtime;
    /* Any thread: esi_planned_work() is to be called. */
    void (*wake)(void *ctx);
    /* From esi_planned_work(): esi_runner_grant() of script `number`. */
    void (*grant)(void *ctx, size_t number);
    void *ctx;
};

enum esi_planned_state {
    ESI_PLANNED_LOCKING, /* the blocked keys are being locked */
    ESI_PLANNED_READY,   /* the scripts may open their sessions */
    ESI_PLANNED_LOST,    /* the blocked keys could not be locked, or are not held any more */
    ESI_PLANNED_ENDED,   /* esi_planned_end(), and nothing is held */
};

struct esi_planned;

/* `setup` is copied; what it points to outlives the rest. */
struct esi_planned *esi_planned_new(const struct esi_planned_setup *setup);

/* After rpc_runtime_run(). Accepts NULL, returns NULL. */
struct esi_planned *esi_planned_free(struct esi_planned *planned);

/* Of each step of each runner. */
void esi_planned_note(struct esi_planned *planned, size_t number,
                      const struct esi_drive_note *note);

/* Carries out what is to be done. */
void esi_planned_work(struct esi_planned *planned);

enum esi_planned_state esi_planned_state(struct esi_planned *planned);

/* Why it is LOST; valid until it is freed. */
const char *esi_planned_failure(const struct esi_planned *planned);

/* As those of the drive. */
struct esi_event *esi_planned_take_event(struct esi_planned *planned);
size_t esi_planned_take_deadlock(struct esi_planned *planned, size_t *numbers);

/* Gives the blocked keys back; wakes when it has ENDED. */
void esi_planned_end(struct esi_planned *planned);

/* Before rpc_runtime_stop(). */
void esi_planned_halt(struct esi_planned *planned);

#endif
