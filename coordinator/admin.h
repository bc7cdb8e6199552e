/*
 * Inspection: LIST_INSTANCES, LIST_KEYS (admin_keys.c), KEY_STATUS. Nothing here changes anything,
 * waits for a lock or a latch, or counts as access. All are steps of tasks.
 */
#ifndef COORD_ADMIN_H
#define COORD_ADMIN_H

#include "coordinator/tasks.h"

void coord_admin_list_instances(struct coord_core *core, struct coord_task *task);
void coord_admin_list_keys(struct coord_core *core, struct coord_task *task);
void coord_admin_key_status(struct coord_core *core, struct coord_task *task);

/* ---- what they share --------------------------------------------------------------------------*/

/* false: the task has ended with the error. */
bool coord_admin_check_page(struct coord_core *core, struct coord_task *task, size_t *ret_size);

/* The length of the key in request.key_status, which may be from a time when more was allowed than
 * config.key_max; false: the task has ended with the error. */
bool coord_admin_check_key(struct coord_core *core, struct coord_task *task);

/* Answers that memory is out, and finishes. */
void coord_admin_fail_memory(struct coord_core *core, struct coord_task *task);

/* `target` has MODEL_NAME_MAX + 1 bytes. */
void coord_admin_copy_name(char *target, const char *name);

#endif
