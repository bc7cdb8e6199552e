/*
 * Command lines of the services' processes, as `dev` starts them and as a person would type them.
 * Pure.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stdint.h>

#include "runtime/base/buffer.h"

enum {
    CLI_COMMAND_ARGUMENTS_MAX = 31
};

/* What all processes of one local cluster have in common. All borrowed. */
struct cli_command_options {
    const char *binaries_dir; /* where the programs lie */
    const char *data_dir;     /* each has <data_dir>/<its name> */
    const char *profile;
    const char *distribution;
    const char *key_ranges;
    const char *compaction; /* NULL: as the profile says */
    const char *replacement;
    const char *store;            /* NULL: as the profile says */
    const char *operation_log;    /* NULL: none */
    const char *planner;          /* of the ESI service, as the next three */
    const char *alpha;            /* NULL: as it is there by default */
    const char *initial_estimate; /* the same */
    const char *blocked;          /* NULL: no keys */
    const char *log_level;
    uint64_t lease_ms;
    uint64_t delay_ms;
    uint64_t dump_interval_ms; /* 0: as the profile says */
    uint64_t entries;
    uint64_t entry_size;
};

/* A zeroed struct is a valid empty one. */
struct cli_command {
    char *arguments[CLI_COMMAND_ARGUMENTS_MAX + 1]; /* owned, NULL-terminated */
    size_t n_arguments;
};

void cli_command_init_coordinator(struct cli_command *command,
                                  const struct cli_command_options *options, const char *listen);

void cli_command_init_instance(struct cli_command *command,
                               const struct cli_command_options *options, const char *name,
                               const char *listen, const char *coordinator);

/* The ESI service. */
void cli_command_init_esi(struct cli_command *command, const struct cli_command_options *options,
                          const char *listen, const char *coordinator);

/* Adds what ties a process to the one that started it: --ready-fd and --exit-with-stdin. */
void cli_command_supervise(struct cli_command *command);

void cli_command_deinit(struct cli_command *command);

/* One line for a POSIX shell, without newline; arguments are quoted where they must be. */
void cli_command_append(const struct cli_command *command, struct rt_buffer *buffer);

#endif
