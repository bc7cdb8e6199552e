/*
 * The file of the operation log. Lines are taken from the core under its lock, with the time of day
 * in front, and written by a worker of the loop; a file that cannot be written loses lines and
 * never holds up an operation. Appended to, never read or rotated: whoever rotates it copies and
 * truncates.
 *
 *   2026-03-01T09:15:02.123456Z esi=fargo statement=SET key=a:b bytes=3 instance=one result=OK
 */
#ifndef COORD_OPERATION_LOG_H
#define COORD_OPERATION_LOG_H

#include "coordinator/core.h"
#include "runtime/host/host.h"

struct coord_operation_log;

/* Creates the file if it is absent. INVALID_ARGUMENT: it cannot be opened. Runtime and host, whose
 * core is the coordinator's, are borrowed. Before the runtime runs. */
RT_MUST_USE enum rt_code coord_operation_log_open(struct rpc_runtime *runtime, struct host *host,
                                                  const char *path,
                                                  struct coord_operation_log **ret_log,
                                                  struct rt_error *err);

/* Writes what is left and closes the file. After rpc_runtime_run() has returned. Accepts NULL,
 * returns NULL. */
struct coord_operation_log *coord_operation_log_close(struct coord_operation_log *log);

/* Takes what the core has. Under the core's lock, any thread. */
void coord_operation_log_take(struct coord_operation_log *log, struct coord_core *core);

#endif
