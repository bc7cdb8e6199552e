/*
 * The verb session: holds one open for other commands, or closes one.
 */
#ifndef CLI_SESSION_VERB_H
#define CLI_SESSION_VERB_H

#include "cli/verb.h"

extern const struct cli_verb cli_session_verb;

#endif
