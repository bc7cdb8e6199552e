/*
 * The verb `esi`: one action on the ESI service, or its console.
 */
#ifndef CLI_ESI_H
#define CLI_ESI_H

#include "cli/verb.h"

extern const struct cli_verb cli_esi_verb;

#endif
