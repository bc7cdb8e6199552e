/*
 * Exit codes of the `redistinto` command. Pure.
 */
#ifndef CLI_EXIT_H
#define CLI_EXIT_H

#include "runtime/base/error.h"
#include "runtime/model/reason.h"

enum cli_exit {
    CLI_EXIT_OK = 0,
    CLI_EXIT_FAILED = 1, /* a script or operation failed */
    CLI_EXIT_USAGE = 2,  /* usage, parse or configuration error */
    CLI_EXIT_NOT_FOUND = 3,
    CLI_EXIT_PRECONDITION = 4, /* not locked, stale, conflict */
    CLI_EXIT_UNAVAILABLE = 5,  /* or timed out */
    CLI_EXIT_AUTHENTICATION = 6,
    CLI_EXIT_EXHAUSTED = 7,
    CLI_EXIT_UNKNOWN_OUTCOME = 8,
    CLI_EXIT_INTERNAL = 9,
    CLI_EXIT_INTERRUPTED = 130,
};

/* What a failure with this code and reason (MODEL_REASON_NONE: none was given) ends with. */
enum cli_exit cli_exit_of(enum rt_code code, enum model_reason reason);

#endif
