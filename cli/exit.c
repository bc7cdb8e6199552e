/*
 * Exit codes: see exit.h. Pure, one switch.
 */
#include "cli/exit.h"

enum cli_exit cli_exit_of(enum rt_code code, enum model_reason reason)
{
    if (reason == MODEL_REASON_OUTCOME_UNKNOWN)
        return CLI_EXIT_UNKNOWN_OUTCOME;
    switch (code) {
    case RT_OK:
        return CLI_EXIT_OK;
    case RT_INVALID_ARGUMENT:
    case RT_OUT_OF_RANGE:
        return CLI_EXIT_USAGE;
    case RT_NOT_FOUND:
        return CLI_EXIT_NOT_FOUND;
    case RT_ALREADY_EXISTS:
    case RT_FAILED_PRECONDITION:
    case RT_ABORTED:
        return CLI_EXIT_PRECONDITION;
    case RT_UNAVAILABLE:
    case RT_DEADLINE_EXCEEDED:
        return CLI_EXIT_UNAVAILABLE;
    case RT_PERMISSION_DENIED:
    case RT_UNAUTHENTICATED:
        return CLI_EXIT_AUTHENTICATION;
    case RT_RESOURCE_EXHAUSTED:
        return CLI_EXIT_EXHAUSTED;
    case RT_CANCELLED:
    case RT_UNIMPLEMENTED:
        return CLI_EXIT_FAILED;
    case RT_UNKNOWN:
    case RT_INTERNAL:
    case RT_DATA_LOSS:
        return CLI_EXIT_INTERNAL;
    }
    return CLI_EXIT_INTERNAL;
}
