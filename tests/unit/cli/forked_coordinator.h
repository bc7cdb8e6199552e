/*
 * A coordinator of the test's making in a process of its own: the verbs start a gRPC runtime, and a
 * process has one at a time.
 */
#ifndef TESTS_UNIT_CLI_FORKED_COORDINATOR_H
#define TESTS_UNIT_CLI_FORKED_COORDINATOR_H

#include "runtime/host/host.h"

enum {
    FORKED_COORDINATOR_ADDRESS_SIZE = 64
};

struct forked_coordinator {
    pid_t pid; /* 0: none */
    char address[FORKED_COORDINATOR_ADDRESS_SIZE];
};

/* Serves AdminService, CoordinatorService, EsiService and health from this core, which lives on in
 * the child; there `own_address` (may be NULL) gets the address before the first call. Fails the
 * test when that does not work. */
void forked_coordinator_start(struct forked_coordinator *coordinator,
                              const struct host_core_ops *ops, void *core,
                              char own_address[FORKED_COORDINATOR_ADDRESS_SIZE]);

/* SIGKILL; again is fine. */
void forked_coordinator_end(struct forked_coordinator *coordinator);

#endif
