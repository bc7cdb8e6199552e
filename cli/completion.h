/*
 * The verb `completion`: prints a script for the shell.
 */
#ifndef CLI_COMPLETION_H
#define CLI_COMPLETION_H

#include "cli/verb.h"

extern const struct cli_verb cli_completion_verb;

/* The scripts, each for all binaries. Made at build from their option tables, this verb's among
 * them; so they are not part of the library, and a verb gets them through its context. */
extern const char cli_completion_bash[];
extern const char cli_completion_zsh[];
extern const char cli_completion_fish[];

#endif
