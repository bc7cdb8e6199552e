/*
 * What a client remembers of the keys it has locked: the newest token and the version of its last
 * acknowledged SET. Single owner, not thread safe; aborts when memory is out (a few words a key
 * that the coordinator has granted).
 *
 * After STORE or PUT the token stays: a later SET still shows it, and the owner answers
 * KEY_NOT_LOCKED because that token is closed. Of the keys that were released the last
 * ESI_LOCKS_RELEASED_MAX are remembered, so that a client may go through any number of them.
 */
#ifndef ESI_LOCKS_H
#define ESI_LOCKS_H

#include "runtime/base/list.h"
#include "runtime/model/message.h"

enum {
    ESI_LOCKS_RELEASED_MAX = 16384
};

struct esi_lock;

/* Zeroed is empty; not to be moved. */
struct esi_locks {
    struct esi_lock *by_key; /* owned */
    struct rt_list released; /* esi_lock.released, the oldest first; once there is one */
    size_t n_released;
};

struct esi_lock_state {
    uint64_t token; /* 0 = the key was never locked here */
    bool held;
    bool lost; /* it ended with its session */
    bool has_last_set;
    struct model_version last_set;
};

void esi_locks_deinit(struct esi_locks *locks);

/* All zero for a key that was never locked here, or is forgotten. */
struct esi_lock_state esi_locks_find(const struct esi_locks *locks, struct rt_bytes key);

/* What an acknowledged statement means for its key; AWAIT and READ mean nothing. `token` is that of
 * a GET, `version` that of a SET: of several the highest counts, answers may come in any order. */
void esi_locks_note(struct esi_locks *locks, enum model_statement_kind kind, struct rt_bytes key,
                    uint64_t token, const struct model_version *version);

/* The session is gone, and every lock with it. */
void esi_locks_lose_all(struct esi_locks *locks);

/* Nobody relies on this grant any more. Nothing when the key has been locked again since. */
void esi_locks_forget(struct esi_locks *locks, struct rt_bytes key, uint64_t token);

#endif
