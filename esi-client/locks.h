/*
 * What a session remembers of the keys it has locked: the newest token and the version of its last
 * acknowledged SET. Single owner, not thread safe; aborts when memory is out (a few words a key
 * that the coordinator has granted).
 *
 * After STORE or PUT the token stays: a later SET still shows it, and the owner answers
 * KEY_NOT_LOCKED because that token is closed.
 */
#ifndef ESI_LOCKS_H
#define ESI_LOCKS_H

#include "runtime/model/message.h"

struct esi_lock;

/* Zeroed is empty. */
struct esi_locks {
    struct esi_lock *by_key; /* owned */
};

struct esi_lock_state {
    uint64_t token; /* 0 = the key was never locked here */
    bool held;
    bool has_last_set;
    struct model_version last_set;
};

void esi_locks_deinit(struct esi_locks *locks);

/* All zero for a key that was never locked here. */
struct esi_lock_state esi_locks_find(const struct esi_locks *locks, struct rt_bytes key);

/* What an acknowledged statement means for its key; AWAIT and READ mean nothing. */
void esi_locks_note(struct esi_locks *locks, const struct model_execute_request *request,
                    const struct model_execute_response *response);

#endif
