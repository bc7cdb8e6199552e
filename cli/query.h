/*
 * Verbs that look and change nothing: status, keys, instances, entries, health.
 */
#ifndef CLI_QUERY_H
#define CLI_QUERY_H

#include "cli/verb.h"

extern const struct cli_verb cli_status_verb;
extern const struct cli_verb cli_keys_verb;
extern const struct cli_verb cli_instances_verb;
extern const struct cli_verb cli_health_verb;
extern const struct cli_verb cli_entries_verb;

#endif
