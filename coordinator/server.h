/*
 * The coordinator's shell: its core behind gRPC and LMDB.
 */
#ifndef COORD_SERVER_H
#define COORD_SERVER_H

#include "coordinator/core.h"
#include "runtime/host/service.h"

/* Serves until it is told to stop; returns the exit code of the process. */
int coord_server_run(const struct coord_config *core, const struct host_service_config *service);

#endif
