/*
 * What coordinator and instance processes have in common around their host: options, data
 * directory, store, server, signals, readiness, and the order in which all of it starts and stops.
 *
 * Start: host_service_open() → the caller makes its core → host_service_attach() →
 * host_service_load() → host_service_serve() for each service, the caller starts its core →
 * host_service_run().
 * Stop (SIGTERM, SIGINT, or the end of standard input if asked for): on_stop, the server is
 * drained, the runtime ends, transactions that are queued are committed.
 */
#ifndef HOST_SERVICE_H
#define HOST_SERVICE_H

#include <stdatomic.h>

#include "runtime/base/log.h"
#include "runtime/base/option.h"
#include "runtime/host/host.h"
#include "runtime/store/data_dir.h"
#include "runtime/store/files.h"

struct host_service_config {
    const char *listen;
    const char *data_dir; /* NULL: the service keeps nothing, its core makes no transactions */
    enum rt_log_level log_level;
    uint64_t drain_ms;
    uint64_t store_limit; /* bytes */
    uint64_t ready_fd;    /* 0 = none */
    bool exit_with_stdin;
    /* Not of the options below. */
    const char *mount; /* of a mirror of the store in files; NULL for none */
    store_files_row_fn file_of_row;
};

enum {
    HOST_SERVICE_N_OPTIONS = 6,           /* without listen, whose default differs */
    HOST_SERVICE_FIRST_PROCESS_OPTION = 3 /* from here on they are for any process that serves */
};
extern const struct rt_option host_service_options[HOST_SERVICE_N_OPTIONS];

/* Says on standard error why the process ends; returns its exit code. */
int host_service_fail(const char *name, const struct rt_error *err);

enum {
    HOST_SERVICE_SERVICES_MAX = 8
};

struct host_service {
    const char *name; /* of the binary */
    struct host_service_config config;
    struct rpc_runtime *runtime;     /* owned */
    struct rpc_server *server;       /* owned by the runtime */
    struct store_data_dir *data_dir; /* owned; NULL without one */
    struct store *store;             /* owned; NULL until attached, once closed, without data_dir */
    struct host *host;               /* owned; NULL until attached */
    char address[256];               /* as bound: "host:port" or "unix:path" */
    const char *services[HOST_SERVICE_SERVICES_MAX]; /* full names, for health */
    size_t n_services;
    uv_pipe_t input;
    struct rpc_job ready_job;
    struct rpc_job stop_job;
    struct rpc_job finish_job;
    void (*on_stop)(void *ctx);
    /* To be set between opening and running, may be NULL: on the loop thread once the server is
     * drained, before the runtime ends: stops hosts of the caller's own. */
    void (*on_end)(void *ctx);
    void *ctx;
    bool is_input_open;
    bool is_ready;
    bool is_stopping;
    bool is_finishing;
    bool has_run;
    _Atomic int exit_code;
    char ignored_input[256];
};

/* Opens runtime and data directory, makes the server and listens; nothing is served yet. After a
 * failure host_service_close() is still to be called. INVALID_ARGUMENT: an option is wrong for this
 * process (ready-fd is not open, standard input is no pipe) or this machine (there is no such
 * directory or address, or it is not for us); else as store_data_dir_new() and
 * rpc_server_listen(). */
RT_MUST_USE enum rt_code host_service_open(struct host_service *service, const char *name,
                                           const struct host_service_config *config,
                                           struct rt_error *err);

/* Makes the host of this core and, with a data_dir, opens the store behind it. INVALID_ARGUMENT:
 * there can be no such mount point; else as store_lmdb_open(). */
RT_MUST_USE enum rt_code host_service_attach(struct host_service *service,
                                             const struct host_options *options,
                                             struct rt_error *err);

/* How a core takes the rows of its store; the pointers get the core. Not under its lock: nothing is
 * served yet. */
struct host_core_loader {
    enum rt_code (*row)(void *core, struct rt_bytes key, struct rt_bytes value,
                        struct rt_error *err);
    /* The checksum does not hold. An error refuses the start. */
    enum rt_code (*corrupt_row)(void *core, struct rt_bytes key, struct rt_error *err);
};

/* With a data_dir: gives the core every row of the store; stops at its first error and returns it.
 * Else fails as store_range(). */
RT_MUST_USE enum rt_code host_service_load(struct host_service *service,
                                           const struct host_core_loader *loader, void *core,
                                           struct rt_error *err);

/* Serves all RPCs of this service with the attached core. Fails as rpc_server_add_service(). */
RT_MUST_USE enum rt_code host_service_serve(struct host_service *service,
                                            const ProtobufCServiceDescriptor *descriptor,
                                            struct rt_error *err);

/* Tells once, from the loop thread, that the service serves: health, log, ready descriptor. Any
 * thread, also under the core's lock. */
void host_service_ready(struct host_service *service);

/* Begins to stop, as a signal does; the process will exit with this code, unless an earlier one was
 * not 0. Any thread. */
void host_service_stop(struct host_service *service, int exit_code);

/* Drains the server and ends the runtime; the second half of stopping. Any thread. */
void host_service_finish(struct host_service *service);

/* Serves until it is stopped and returns the exit code. on_stop (may be NULL) runs once on the loop
 * thread when stopping begins; with it the caller calls host_service_finish() when its core is
 * ready for the end. A second signal does not wait for that. */
int host_service_run(struct host_service *service, void (*on_stop)(void *ctx), void *ctx);

/* Frees everything but the core, which must live until here. */
void host_service_close(struct host_service *service);

#endif
