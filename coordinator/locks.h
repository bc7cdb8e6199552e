/*
 * Who may have a key's lock: its holder, the sessions that wait for it, and the rules by which a
 * statement may touch the key. Waiters are in memory only; a client that is told READY tries again.
 *
 * A woken waiter has its turn for config.wake_hold_us: nobody else gets the lock meanwhile. It
 * stays queued until its GET succeeds or its session ends; if it lets its turn pass, the next one
 * is woken, and it gets another turn after the next release.
 *
 * A waiter whose call ended without an answer has given up: unless it is back soon, as one that
 * only waits in pieces is, it is passed over and holds up nobody. Its place is kept for it while
 * there is room.
 */
#ifndef COORD_LOCKS_H
#define COORD_LOCKS_H

#include "coordinator/state.h"

struct coord_waiter {
    struct rt_list key_link;
    struct rt_list session_link;
    struct coord_key *key;
    struct coord_session *session;
    struct rt_list awaits; /* coord_task.wait_link: its AWAIT statements */
    bool passed;           /* had its turn since the last release */
    uint64_t back_by_us;   /* it gave up, and gets no turn from then on; RT_NEVER: it waits */
};

/* What a statement with this token, of this session, may do to the key. */
struct coord_lock_check {
    enum model_reason reason; /* NONE: it may go on */
    uint64_t token;           /* to send to the owner; 0 = none */
    bool is_holder;
};

/* `key` may be NULL or not exist. `kind` is one of SET, STORE, PUT, DELETE. Pure. */
struct coord_lock_check coord_locks_check(enum model_locking locking, const struct coord_key *key,
                                          const struct coord_session *session,
                                          enum model_statement_kind kind, uint64_t lock_token);

/* true when the lock is free for this session: nobody holds it and it is nobody else's turn. */
bool coord_locks_is_free_for(const struct coord_key *key, const struct coord_session *session);

struct coord_waiter *coord_locks_find_waiter(const struct coord_key *key,
                                             const struct coord_session *session);

/* It waits, again perhaps. */
void coord_locks_come_back(struct coord_core *core, struct coord_waiter *waiter);

/* Fails and finishes a call whose time is over or whose caller is gone: its session gives up the
 * place in the queue in which the call waited. */
void coord_locks_give_up(struct coord_core *core, struct coord_task *task, enum model_reason reason,
                         const char *message);

/* It gave up, and did not come back in time. */
bool coord_locks_has_gone(const struct coord_core *core, const struct coord_waiter *waiter);

/* In the place of one that has gone when MODEL_WAITERS_MAX sessions wait; NULL: none has. */
struct coord_waiter *coord_locks_add_waiter(struct coord_core *core, struct coord_key *key,
                                            struct coord_session *session);

/* Frees it; its AWAIT statements run again; a turn it had goes to the next. */
void coord_locks_remove_waiter(struct coord_core *core, struct coord_waiter *waiter);

/* If the key is free: gives the turn to the first waiter, unless somebody has it. */
void coord_locks_wake(struct coord_core *core, struct coord_key *key);

/* core_free() only. */
void coord_locks_deinit(struct coord_core *core);

#endif
