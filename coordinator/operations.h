/*
 * What ESIs did, one line an operation: who, what, what came of it. Kept as text for the shell,
 * which writes it to the operation log; never a value. Everything here runs under the core's lock.
 */
#ifndef COORD_OPERATIONS_H
#define COORD_OPERATIONS_H

#include "coordinator/tasks.h"

enum {
    COORD_OPERATIONS_MAX = 4 * 1024 * 1024 /* bytes that wait for the shell; then lines are lost */
};

/* The task's call was answered and is about to leave. Only statements and Lock are operations. */
void coord_operations_note(struct coord_core *core, const struct coord_task *task);

#endif
