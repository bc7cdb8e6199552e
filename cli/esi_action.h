/*
 * What a person can ask of the ESI service: one table for the verb `esi` and its console. The words
 * of the course system are aliases.
 */
#ifndef CLI_ESI_ACTION_H
#define CLI_ESI_ACTION_H

#include "cli/context.h"
#include "runtime/base/bytes.h"
#include "runtime/base/error.h"
#include "runtime/model/exit.h"

/* Where and how actions run. */
struct cli_esi {
    struct cli_context *context;
    const char *address; /* of the ESI service */
    bool is_escaped;     /* how keys are written */
};

struct cli_esi_action {
    const char *name;
    const char *alias;     /* NULL: none */
    const char *arguments; /* for the help: "KEY ID", or "" */
    size_t n_arguments;    /* that must be there */
    size_t n_optional;     /* that may follow */
    const char *summary;
    /* Has reported whatever went wrong. `arguments` end with NULL. */
    enum model_exit (*run)(const struct cli_esi *esi, const char *const *arguments);
};

extern const struct cli_esi_action cli_esi_actions[];
extern const size_t cli_esi_n_actions;

/* By name or alias; NULL when there is none. */
const struct cli_esi_action *cli_esi_action_find(const char *name);

/* Finds the action of words[0] and runs it with the rest; `words` end with NULL. The words being
 * wrong is reported as usage. */
enum model_exit cli_esi_action_run(const struct cli_esi *esi, const char *const *words);

/* "submit SCRIPT   summary" for each, lines. */
struct rt_buffer;
void cli_esi_action_append_help(struct rt_buffer *buffer);

#endif
