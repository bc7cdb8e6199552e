/*
 * The verb distribution: shows by which rule new keys are placed, or changes it.
 */
#ifndef CLI_DISTRIBUTION_H
#define CLI_DISTRIBUTION_H

#include "cli/verb.h"

extern const struct cli_verb cli_distribution_verb;

#endif
