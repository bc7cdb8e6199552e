/*
 * Compaction of all instances together (--compaction global). A write that its owner refused with
 * COMPACTION_NEEDED begins a round: statements are held, those that are under way end, every
 * connected instance compacts once, and when all have answered the statements go on, the one that
 * asked first. Sessions, status and everything that is no statement are served meanwhile.
 *
 * No round lasts longer than a membership lease. Who has not answered then, or is dead, is left
 * out, and statements that have not ended in half of it are not waited for. A round is forgotten
 * with the coordinator's process. Everything here runs under the core's lock.
 */
#ifndef COORD_COMPACTION_H
#define COORD_COMPACTION_H

#include "coordinator/tasks.h"

void coord_compaction_init(struct coord_core *core);

/* The statement may not go on now: true, and it runs again when it may. */
bool coord_compaction_holds(struct coord_core *core, struct coord_task *task);

/* task->answer is the owner's COMPACTION_NEEDED: the statement runs again after a round. It asks
 * for one only once: its next attempt allows its owner to compact alone. */
void coord_compaction_ask(struct coord_core *core, struct coord_task *task);

/* To be called when no step is left to run; true: there may be again. */
bool coord_compaction_settle(struct coord_core *core);

#endif
