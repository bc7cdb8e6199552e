/*
 * A cluster of real processes on this machine: one coordinator, then its instances one after the
 * other, so that they register in the order of their names, then the ESI service, if there is one.
 * Stopped in the other order: all instances and the ESI service first, which say goodbye, then the
 * coordinator.
 *
 * Not thread safe: everything on the loop's thread. Callbacks are never called from inside a
 * function of this header.
 */
#ifndef CLI_CLUSTER_H
#define CLI_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "cli/command.h"
#include "cli/process.h"
#include "runtime/base/buffer.h"
#include "runtime/base/error.h"

enum {
    CLI_CLUSTER_INSTANCES_MAX = 60,  /* their ports stay below the ESI service's, 7470 */
    CLI_CLUSTER_FIRST_INSTANCE = 10, /* base_port + this is the port of instance-1 */
    CLI_CLUSTER_ESI = 70,            /* and of the ESI service */
    CLI_CLUSTER_BASE_PORT_MAX = 65535 - CLI_CLUSTER_FIRST_INSTANCE - CLI_CLUSTER_INSTANCES_MAX,
    CLI_CLUSTER_START_TIMEOUT_MS = 30 * 1000, /* for all processes together */
    CLI_CLUSTER_STOP_TIMEOUT_MS = 10 * 1000,  /* for the instances and again for the coordinator */
    CLI_CLUSTER_LOG_TAIL_LINES = 20,
};

struct cli_cluster;

/* One process of the cluster, borrowed from it. */
struct cli_cluster_member {
    const char *name;
    const char *address;        /* NULL until it served */
    pid_t pid;                  /* 0 before it was started */
    struct cli_command command; /* without supervision */
};

struct cli_cluster_options {
    struct cli_command_options command; /* borrowed strings, alive as long as the cluster */
    char *const *environment;           /* of the processes; borrowed; NULL: this process's */
    unsigned n_instances;               /* 1..CLI_CLUSTER_INSTANCES_MAX */
    bool has_esi;                       /* with an ESI service */
    uint16_t base_port; /* of the coordinator; a port that is taken gives way to any free one; 0:
                           any free ports */
    uint32_t start_timeout_ms;
    uint32_t stop_timeout_ms; /* of each of the two steps; then SIGKILL */
    /* Every process serves. At most once. */
    void (*on_serving)(struct cli_cluster *cluster, void *ctx);
    /* A process ended though nobody asked it to, while the cluster served. */
    void (*on_lost)(struct cli_cluster *cluster, const struct cli_cluster_member *member,
                    const struct cli_process *process, void *ctx);
    /* No process is left. Exactly once, after cli_cluster_start(); the last callback. */
    void (*on_stopped)(struct cli_cluster *cluster, void *ctx);
    void *ctx;
};

struct cli_cluster *cli_cluster_new(uv_loop_t *loop, const struct cli_cluster_options *options);

/* Before cli_cluster_start(), or after the loop has ended. Accepts NULL, returns NULL. */
struct cli_cluster *cli_cluster_free(struct cli_cluster *cluster);

/* Once. */
void cli_cluster_start(struct cli_cluster *cluster);

/* Starts the stop; the second call, and every later one, kills what is left. */
void cli_cluster_stop(struct cli_cluster *cluster);

bool cli_cluster_has_served(const struct cli_cluster *cluster);

/* Member 0 is the coordinator; the ESI service, if there is one, is the last. */
size_t cli_cluster_n_members(const struct cli_cluster *cluster);
const struct cli_cluster_member *cli_cluster_member(const struct cli_cluster *cluster, size_t i);

/* Why it did not start (INVALID_ARGUMENT or FAILED_PRECONDITION when a process refused with exit
 * status 2 or 4, else UNAVAILABLE, DEADLINE_EXCEEDED or what starting it reported) or, after it has
 * served, ABORTED: not all processes stopped cleanly. RT_OK otherwise. */
const struct rt_error *cli_cluster_error(const struct cli_cluster *cluster);

/* End of the log of the process that kept the cluster from starting; may be empty. */
struct rt_bytes cli_cluster_log_tail(const struct cli_cluster *cluster);

#endif
