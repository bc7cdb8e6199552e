/*
 * `redistinto-esi run`: scripts from files, each in a session of its own, all at the same time.
 */
#ifndef ESI_RUN_H
#define ESI_RUN_H

#include "esi-client/options.h"

/* Reads and parses every script first: an error in one stops all. Returns the exit code. */
int esi_run(const struct esi_options *options);

#endif
