/*
 * Keys whose values their owner has dropped to make room for another one, as its answer to the
 * write says: they leave the table before that answer goes on, whoever holds them. Those of which
 * no answer arrived are told again in Renew. Everything here runs under the core's lock.
 */
#ifndef COORD_EVICT_H
#define COORD_EVICT_H

#include "coordinator/tasks.h"

/* task->answer is the owner's answer to a write. true: keys that it names are being deleted, and
 * `step` runs when they are; the next call for this answer gives false. false: there are none. */
bool coord_evict_begin(struct coord_core *core, struct coord_task *task, coord_step_fn step);

/* The member's Renew, whose call is unanswered: begins to delete the keys that it says it dropped,
 * and says in the response which of them are gone. */
void coord_evict_renewed(struct coord_core *core, struct coord_member *member,
                         struct model_call *call);

#endif
