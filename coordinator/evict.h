/*
 * Keys whose values their owner has dropped to make room for another one, as its answer to the
 * write says: they leave the table before that answer goes on, whoever holds them. See evict.c for
 * those of which no answer arrived. Everything here runs under the core's lock.
 */
#ifndef COORD_EVICT_H
#define COORD_EVICT_H

#include "coordinator/tasks.h"

/* task->answer is the owner's answer to a write. true: keys that it names are being deleted, and
 * `step` runs when they are; the next call for this answer gives false. false: there are none. */
bool coord_evict_begin(struct coord_core *core, struct coord_task *task, coord_step_fn step);

#endif
