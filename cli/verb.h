/*
 * The verbs of `redistinto` and how one is found and run. One table drives the list, the help and
 * the dispatch.
 */
#ifndef CLI_VERB_H
#define CLI_VERB_H

#include <stddef.h>

#include "cli/context.h"
#include "runtime/base/option.h"
#include "runtime/model/exit.h"

/* `arguments` are the words after the verb, as many as the table says, and NULL behind them;
 * `config` is of the verb's own type. Has reported whatever went wrong. */
typedef enum model_exit (*cli_verb_fn)(struct cli_context *context, const char *const *arguments,
                                       const void *config);

struct cli_verb {
    const char *name;
    const char *arguments;           /* for the help: "KEY", or "" */
    size_t n_arguments;              /* that must be there */
    size_t n_optional;               /* that may follow */
    const char *summary;             /* one line for the list, without full stop */
    const char *description;         /* paragraph for the help */
    const char *const *examples;     /* command lines, "# why" may follow; NULL-terminated */
    const struct rt_option *options; /* of its own; there may be none */
    size_t n_options;
    size_t config_size; /* of what their offsets count from */
    cli_verb_fn run;
};

/* In the order of the list. */
extern const struct cli_verb *const cli_verbs[];
extern const size_t cli_n_verbs;

/* What the command takes without a verb: the options that all verbs have. */
extern const struct rt_option_command cli_verb_common;

/* A verb with all of its options, for the parser, the manual and completion. Refers to itself:
 * stays where it was filled. */
struct cli_verb_command {
    struct rt_option_command command;
    struct rt_option_table tables[2];
    char name[64];
    char section[64];
};

void cli_verb_describe(const struct cli_verb *verb, struct cli_verb_command *ret_command);

/* NULL when there is none of this name. */
const struct cli_verb *cli_verb_find(const char *name);

/* The whole command: finds the verb, reads the options before and after it, runs it. argv ends with
 * NULL; its order may be changed. Call before threads start. */
enum model_exit cli_verb_run(struct cli_context *context, int argc, char **argv);

#endif
