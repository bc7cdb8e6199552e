/*
 * Commands: see commands.h. One thread.
 */
#include "docs/generator/commands.h"

#include <string.h>

#include "cli/verb.h"
#include "coordinator/options.h"
#include "esi-client/options.h"
#include "instance/options.h"

const struct rt_option_command *const docs_commands_binaries[DOCS_N_BINARIES] = {
    &cli_verb_common,
    &coord_options_command,
    &inst_options_command,
    &esi_options_command,
};

const struct rt_option_command *docs_commands_find(const char *name)
{
    for (size_t i = 0; i < DOCS_N_BINARIES; i++)
        if (strcmp(docs_commands_binaries[i]->name, name) == 0)
            return docs_commands_binaries[i];
    return NULL;
}

void docs_commands_each(void (*take)(const struct rt_option_command *command, void *ctx), void *ctx)
{
    for (size_t i = 0; i < DOCS_N_BINARIES; i++)
        take(docs_commands_binaries[i], ctx);
    for (size_t i = 0; i < cli_n_verbs; i++) {
        struct cli_verb_command verb;

        cli_verb_describe(cli_verbs[i], &verb);
        take(&verb.command, ctx);
    }
}
