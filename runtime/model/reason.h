/*
 * Why a call failed: the machine-readable word of ErrorInfo and RoutingError, its gRPC code, and
 * whether the operation may have been applied. One table; everything else asks it. Source: design
 * "What the Instance checks" and "Errors on the wire".
 *
 * applied: NO is a promise (the operation had and will have no effect). Everything else is MAYBE.
 */
#ifndef MODEL_REASON_H
#define MODEL_REASON_H

#include <stdbool.h>

#include "runtime/base/error.h"

enum model_applied {
    MODEL_APPLIED_MAYBE, /* zero: unset means MAYBE */
    MODEL_APPLIED_NO,
};

/* REASON(name, code, applied, meaning for the reference documentation) */
#define MODEL_REASONS(REASON)                                                                      \
    REASON(NONE, RT_INTERNAL, MAYBE, "no structured reason was given")                             \
    REASON(DEADLINE_EXCEEDED, RT_DEADLINE_EXCEEDED, NO,                                            \
           "the deadline passed before anything was done")                                         \
    REASON(CANCELLED, RT_CANCELLED, NO, "the caller went away before anything was done")           \
    REASON(INVALID_FIELD, RT_INVALID_ARGUMENT, NO,                                                 \
           "a field is missing, malformed or out of range")                                        \
    REASON(KEY_EMPTY, RT_INVALID_ARGUMENT, NO, "keys have at least one byte")                      \
    REASON(KEY_TOO_LONG, RT_INVALID_ARGUMENT, NO, "the key is longer than the profile allows")     \
    REASON(VALUE_TOO_LARGE, RT_INVALID_ARGUMENT, NO, "the value is larger than the limit")         \
    REASON(WRONG_CLUSTER, RT_FAILED_PRECONDITION, NO, "the request names another cluster")         \
    REASON(NOT_OWNER, RT_FAILED_PRECONDITION, NO, "the responder does not own the key")            \
    REASON(STALE_INCARNATION, RT_FAILED_PRECONDITION, NO,                                          \
           "the route names an earlier life of the owner")                                         \
    REASON(SUPERSEDED, RT_FAILED_PRECONDITION, NO, "the route names a later life of the owner")    \
    REASON(STALE_EPOCH, RT_FAILED_PRECONDITION, NO, "the route is older than the owner's")         \
    REASON(STALE_TERM, RT_FAILED_PRECONDITION, NO,                                                 \
           "the command comes from an earlier coordinator")                                        \
    REASON(EPOCH_AHEAD, RT_UNAVAILABLE, NO, "the route is newer than the responder knows")         \
    REASON(TOKEN_AHEAD, RT_UNAVAILABLE, NO, "the lock token is newer than the responder knows")    \
    REASON(NOT_SERVING, RT_UNAVAILABLE, NO, "the responder is starting, reconciling or leaving")   \
    REASON(LEASE_EXPIRED, RT_UNAVAILABLE, NO, "the owner's membership lease has run out")          \
    REASON(MOVING, RT_UNAVAILABLE, NO, "the key is being placed or moved")                         \
    REASON(COMPACTION_NEEDED, RT_UNAVAILABLE, NO,                                                  \
           "the value fits in when others are moved, and the request does not allow that")         \
    REASON(LOCK_FENCED, RT_ABORTED, NO, "the lock was lost: a newer grant exists")                 \
    REASON(KEY_NOT_LOCKED, RT_FAILED_PRECONDITION, NO, "the caller does not hold the key's lock")  \
    REASON(KEY_NOT_IDENTIFIED, RT_NOT_FOUND, NO, "the key is unknown")                             \
    REASON(KEY_INACCESSIBLE, RT_FAILED_PRECONDITION, NO,                                           \
           "the key's instance is down; the key was forgotten")                                    \
    REASON(KEY_LOST, RT_FAILED_PRECONDITION, NO,                                                   \
           "a stored value is gone from its instance's disk")                                      \
    REASON(OWNER_DOWN, RT_UNAVAILABLE, NO, "the key is kept for its instance, which is down")      \
    REASON(OWNER_UNREACHABLE, RT_UNAVAILABLE, MAYBE, "the owner did not answer")                   \
    REASON(SET_LOST, RT_FAILED_PRECONDITION, NO,                                                   \
           "the owner lost the caller's last SET with its process")                                \
    REASON(VERSION_MISMATCH, RT_FAILED_PRECONDITION, NO, "if_version does not hold")               \
    REASON(EXPECTATION_FAILED, RT_FAILED_PRECONDITION, NO, "an EXPECT of a script does not hold")  \
    REASON(NO_ENTRIES, RT_RESOURCE_EXHAUSTED, NO,                                                  \
           "the value does not fit into the instance's entries")                                   \
    REASON(DISK_FULL, RT_RESOURCE_EXHAUSTED, NO, "no room on disk; reads go on")                   \
    REASON(LIMIT_REACHED, RT_RESOURCE_EXHAUSTED, NO, "a limit of the service is reached")          \
    REASON(STORE_ERROR, RT_INTERNAL, MAYBE,                                                        \
           "a commit failed; the service is read-only until restarted")                            \
    REASON(READ_ONLY, RT_UNAVAILABLE, NO, "an earlier commit failed; writes wait for a restart")   \
    REASON(OUTCOME_UNKNOWN, RT_ABORTED, MAYBE, "applied or not: ownership ran out meanwhile")      \
    REASON(NO_INSTANCE, RT_UNAVAILABLE, NO, "no instance can take the key")                        \
    REASON(BARRIER, RT_UNAVAILABLE, NO, "the coordinator restarted and reassigns nothing yet")     \
    REASON(SESSION_UNKNOWN, RT_FAILED_PRECONDITION, NO, "the session ended or never was")          \
    REASON(DRAINING, RT_UNAVAILABLE, NO, "the service is shutting down")                           \
    REASON(NAME_IN_USE, RT_ALREADY_EXISTS, NO, "a live instance has this name")                    \
    REASON(NAME_FROZEN, RT_FAILED_PRECONDITION, NO, "two takeovers of this name within one lease") \
    REASON(STORE_BELONGS_TO, RT_FAILED_PRECONDITION, NO,                                           \
           "the data directory is another instance's")                                             \
    REASON(INCARNATION_DEAD, RT_FAILED_PRECONDITION, NO,                                           \
           "this life of the instance was declared dead")                                          \
    REASON(ESI_UNKNOWN, RT_NOT_FOUND, NO, "no ESI has this number, or it ended long ago")          \
    REASON(ESI_STATE, RT_FAILED_PRECONDITION, NO, "the ESI is in no state for that")

enum model_reason {
#define MODEL_REASON_ENUMERATOR(name, code, applied, meaning) MODEL_REASON_##name,
    MODEL_REASONS(MODEL_REASON_ENUMERATOR)
#undef MODEL_REASON_ENUMERATOR
    MODEL_N_REASONS
};

const char *model_reason_name(enum model_reason reason);
enum rt_code model_reason_code(enum model_reason reason);
enum model_applied model_reason_applied(enum model_reason reason);
const char *model_reason_meaning(enum model_reason reason);

/* MODEL_REASON_NONE for a word that is not in the table. */
enum model_reason model_reason_parse(struct rt_bytes name);

#endif
