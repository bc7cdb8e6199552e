/*
 * The registry's decisions: who is a member, under which incarnation, and until when. All functions
 * that take a task are its steps: they answer its call, at once or later.
 */
#ifndef COORD_REGISTRY_H
#define COORD_REGISTRY_H

#include "coordinator/tasks.h"

void coord_registry_register(struct coord_core *core, struct coord_task *task);
void coord_registry_renew(struct coord_core *core, struct coord_task *task);
void coord_registry_leave(struct coord_core *core, struct coord_task *task);

/* The member whose current incarnation this is, and which is not at its end; NULL otherwise. */
struct coord_member *coord_registry_current(struct coord_core *core, const char *name,
                                            uint64_t incarnation);

/* Fails the task, whose instance is not the current one: INCARNATION_DEAD when that is committed,
 * NOT_SERVING as long as its end is only submitted. The task goes on. */
void coord_registry_refuse(struct coord_core *core, struct coord_task *task, const char *name,
                           uint64_t incarnation);

/* The committed state of a member has changed, or its transaction has ended. */
void coord_registry_changed(struct coord_core *core, struct coord_member *member);

/* A new term has begun: whoever was live has a full new lease. */
void coord_registry_start(struct coord_core *core);

/* ---- reconcile.c ------------------------------------------------------------------------------*/

void coord_reconcile_part(struct coord_core *core, struct coord_task *task);
void coord_reconcile_pull(struct coord_core *core, struct coord_task *task);

/* How the owner shall hold the key; the name is borrowed from the table. */
struct model_row coord_reconcile_row(const struct coord_core *core, const struct coord_key *key);

#endif
