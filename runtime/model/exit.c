/*
 * Exit codes: see exit.h. Pure, one switch.
 */
#include "runtime/model/exit.h"

enum model_exit model_exit_of(enum rt_code code, enum model_reason reason)
{
    if (reason == MODEL_REASON_OUTCOME_UNKNOWN)
        return MODEL_EXIT_UNKNOWN_OUTCOME;
    switch (code) {
    case RT_OK:
        return MODEL_EXIT_OK;
    case RT_INVALID_ARGUMENT:
    case RT_OUT_OF_RANGE:
        return MODEL_EXIT_USAGE;
    case RT_NOT_FOUND:
        return MODEL_EXIT_NOT_FOUND;
    case RT_ALREADY_EXISTS:
    case RT_FAILED_PRECONDITION:
    case RT_ABORTED:
        return MODEL_EXIT_PRECONDITION;
    case RT_UNAVAILABLE:
    case RT_DEADLINE_EXCEEDED:
        return MODEL_EXIT_UNAVAILABLE;
    case RT_PERMISSION_DENIED:
    case RT_UNAUTHENTICATED:
        return MODEL_EXIT_AUTHENTICATION;
    case RT_RESOURCE_EXHAUSTED:
        return MODEL_EXIT_EXHAUSTED;
    case RT_CANCELLED:
    case RT_UNIMPLEMENTED:
        return MODEL_EXIT_FAILED;
    case RT_UNKNOWN:
    case RT_INTERNAL:
    case RT_DATA_LOSS:
        return MODEL_EXIT_INTERNAL;
    }
    return MODEL_EXIT_INTERNAL;
}
