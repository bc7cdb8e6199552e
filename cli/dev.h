/*
 * The verb `dev`: a cluster of real processes in one command, until a signal ends it.
 */
#ifndef CLI_DEV_H
#define CLI_DEV_H

#include "cli/verb.h"

extern const struct cli_verb cli_dev_verb;

#endif
