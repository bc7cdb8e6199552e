/*
 * Verbs of one key: get, set, store, put, read, del.
 */
#ifndef CLI_DATA_H
#define CLI_DATA_H

#include "cli/verb.h"

extern const struct cli_verb cli_get_verb;
extern const struct cli_verb cli_set_verb;
extern const struct cli_verb cli_store_verb;
extern const struct cli_verb cli_put_verb;
extern const struct cli_verb cli_read_verb;
extern const struct cli_verb cli_del_verb;

#endif
