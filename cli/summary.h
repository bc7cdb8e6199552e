/*
 * What `dev` says once everything serves. Pure.
 */
#ifndef CLI_SUMMARY_H
#define CLI_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "cli/rules.h"
#include "runtime/base/buffer.h"

struct cli_summary_member {
    const char *name;
    const char *address;
    pid_t pid;
};

/* All borrowed. */
struct cli_summary {
    struct cli_summary_member coordinator;
    const struct cli_summary_member *instances;
    size_t n_instances;
    struct cli_summary_member esi; /* address NULL: none */
    pid_t pid;                     /* of the process that supervises them */
    const char *data_dir;
    bool is_temporary; /* the data directory goes at the end */
    const char *profile;
    const char *distribution;
    struct cli_rule rules[CLI_RULES];
};

/* A box of UTF-8 lines or of + - |. */
void cli_summary_append_box(const struct cli_summary *summary, bool is_utf8,
                            struct rt_buffer *buffer);

/* One JSON object and a newline: coordinator, coordinator_pid, pid, data_dir, instances, each with
 * name, address and pid, esi and esi_pid, which are null without that service, profile,
 * distribution, and rules, each option of theirs with its value. */
void cli_summary_append_json(const struct cli_summary *summary, struct rt_buffer *buffer);

#endif
