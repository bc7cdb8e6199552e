/*
 * Exit codes of every binary of the suite. Source: design "Command line".
 */
#ifndef MODEL_EXIT_H
#define MODEL_EXIT_H

#include "runtime/base/error.h"
#include "runtime/model/reason.h"

enum model_exit {
    MODEL_EXIT_OK = 0,
    MODEL_EXIT_FAILED = 1, /* a script or operation failed */
    MODEL_EXIT_USAGE = 2,  /* usage, parse or configuration error */
    MODEL_EXIT_NOT_FOUND = 3,
    MODEL_EXIT_PRECONDITION = 4, /* not locked, stale, conflict */
    MODEL_EXIT_UNAVAILABLE = 5,  /* or timed out */
    MODEL_EXIT_AUTHENTICATION = 6,
    MODEL_EXIT_EXHAUSTED = 7,
    MODEL_EXIT_UNKNOWN_OUTCOME = 8,
    MODEL_EXIT_INTERNAL = 9,
    MODEL_EXIT_INTERRUPTED = 130,
};

/* What a failure with this code and reason (MODEL_REASON_NONE: none was given) ends with. */
enum model_exit model_exit_of(enum rt_code code, enum model_reason reason);

#endif
