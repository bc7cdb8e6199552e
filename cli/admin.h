/*
 * Verbs that change what the coordinator does: distribution (shows or changes by which rule new
 * keys are placed), unlock (frees a lock, whoever holds it).
 */
#ifndef CLI_ADMIN_H
#define CLI_ADMIN_H

#include "cli/verb.h"

extern const struct cli_verb cli_distribution_verb;
extern const struct cli_verb cli_unlock_verb;

#endif
