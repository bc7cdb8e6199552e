/*
 * Inspection: LIST_INSTANCES, LIST_KEYS, KEY_STATUS. Nothing here changes anything, waits for a
 * lock or a latch, or counts as access. All are steps of tasks.
 */
#ifndef COORD_ADMIN_H
#define COORD_ADMIN_H

#include "coordinator/tasks.h"

void coord_admin_list_instances(struct coord_core *core, struct coord_task *task);
void coord_admin_list_keys(struct coord_core *core, struct coord_task *task);
void coord_admin_key_status(struct coord_core *core, struct coord_task *task);

#endif
