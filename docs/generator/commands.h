/*
 * All commands of the suite: the four binaries, and the verbs of `redistinto`.
 */
#ifndef DOCS_COMMANDS_H
#define DOCS_COMMANDS_H

#include "runtime/base/option_describe.h"

/* The binaries; `redistinto` is the first. */
enum {
    DOCS_N_BINARIES = 4
};
extern const struct rt_option_command *const docs_commands_binaries[DOCS_N_BINARIES];

/* NULL when there is none of this name. */
const struct rt_option_command *docs_commands_find(const char *name);

/* Calls `take` for each binary and each verb; `name` is as it is typed: "redistinto dev". */
void docs_commands_each(void (*take)(const struct rt_option_command *command, void *ctx),
                        void *ctx);

#endif
