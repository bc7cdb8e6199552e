/*
 * The verb shell: statements typed or piped, over one session that is kept alive meanwhile.
 */
#ifndef CLI_SHELL_H
#define CLI_SHELL_H

#include "cli/verb.h"

extern const struct cli_verb cli_shell_verb;

#endif
