/*
 * By which rule new keys are placed: the coordinator's option, or what an operator said since.
 * Everything here runs under the core's lock.
 */
#ifndef COORD_DISTRIBUTION_H
#define COORD_DISTRIBUTION_H

#include "coordinator/tasks.h"

/* The row of an earlier term; before coord_distribution_start(). */
RT_MUST_USE enum rt_code coord_distribution_load(struct coord_core *core, struct rt_bytes value,
                                                 struct rt_error *err);

/* An operator's word holds as long as the option is what it was when it was said: who has changed
 * the option since has said something newer. */
void coord_distribution_start(struct coord_core *core);

/* GET_DISTRIBUTION, SET_DISTRIBUTION */
void coord_distribution_get(struct coord_core *core, struct coord_task *task);
void coord_distribution_set(struct coord_core *core, struct coord_task *task);

#endif
