/*
 * The instance's shell: its core behind gRPC, LMDB and a heartbeat on disk.
 */
#ifndef INST_SERVER_H
#define INST_SERVER_H

#include "instance/options.h"

/* Serves until it is told to stop or the coordinator refuses it; returns the exit code of the
 * process. */
int inst_server_run(const struct inst_options *options, const struct host_service_config *service);

#endif
