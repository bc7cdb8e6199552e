/*
 * The sessions: leases of clients, which hold locks. Only the table; opening, closing and expiry
 * are in session_calls.c.
 *
 * A session lives until it has ended, holds no key, waits for none and no task works for it. Not
 * thread safe.
 */
#ifndef COORD_SESSIONS_H
#define COORD_SESSIONS_H

#include "coordinator/rows.h"
#include "coordinator/timers.h"
#include "runtime/base/list.h"
#include "runtime/base/map.h"

enum coord_session_state {
    COORD_SESSION_OPENING, /* its row is being written */
    COORD_SESSION_OPEN,
    COORD_SESSION_ENDING, /* the deletion of its row was submitted */
    COORD_SESSION_ENDED,  /* its locks are being released, or kept: then it has a row */
};

/* The first time that a write was sent to an owner and may have had an effect there. */
struct coord_attempt {
    uint64_t seq; /* 0 = none */
    uint64_t epoch;
    uint64_t incarnation;
    uint64_t key_hash; /* of the key that it writes */
};

struct coord_session {
    UT_hash_handle hh_id;
    UT_hash_handle hh_client;
    struct model_id id;
    struct coord_session_row row; /* as committed */
    bool is_aborted;              /* its last statement failed, or its lease ran out */
    bool keeps_locks;             /* so its end was submitted */
    enum coord_session_state state;
    uint64_t done_below; /* highest that the client has said in this term; see the row */
    uint64_t last_grant_us;
    struct coord_timer timer;
    struct rt_list held;  /* coord_key_extra.held_link */
    struct rt_list waits; /* coord_waiter.session_link */
    struct rt_list tasks; /* coord_task.session_link: work for it under way */
    struct rt_list calls; /* coord_task.wait_link: calls that wait for its row or its locks */
    struct coord_attempt attempts[COORD_DONE_MAX];
    size_t next_attempt;
};

struct coord_sessions {
    struct coord_session *by_id;     /* uthash, owned */
    struct coord_session *by_client; /* uthash; not those that end */
    size_t n_sessions;
};

/* Frees all of them; nothing may refer to them any more. */
void coord_sessions_deinit(struct coord_sessions *sessions);

struct coord_session *coord_sessions_find(const struct coord_sessions *sessions,
                                          const struct model_id *id);

/* NULL as well when the client's session has ended. */
struct coord_session *coord_sessions_find_client(const struct coord_sessions *sessions,
                                                 const struct model_id *client);

/* `id` is not taken. The state is ENDED until the caller says otherwise. */
struct coord_session *coord_sessions_add(struct coord_sessions *sessions,
                                         const struct model_id *id);

/* Names and client of a session that was added; its client finds it from now on. */
void coord_sessions_set_row(struct coord_sessions *sessions, struct coord_session *session,
                            const struct coord_session_row *row);

/* The client does not find it any more, and may open another. */
void coord_sessions_hide(struct coord_sessions *sessions, struct coord_session *session);

/* Frees it if it has ended and nothing refers to it. */
void coord_sessions_tidy(struct coord_sessions *sessions, struct coord_session *session);

/* NULL when the statement is not known to have been carried out. */
const struct coord_done *coord_session_done(const struct coord_session *session,
                                            const struct model_request_id *request_id);

/* Adds `done` to a copy of the session's records, dropping those that the client has finished with,
 * else the oldest. */
void coord_session_add_done(struct coord_session_row *row, const struct coord_done *done,
                            uint64_t done_below);

/* NULL unless one of the last COORD_DONE_MAX writes had this number (which is not 0). */
const struct coord_attempt *coord_session_attempt(const struct coord_session *session,
                                                  uint64_t seq);

/* false: there was an earlier one, which stays. Nothing is kept for seq 0. */
bool coord_session_add_attempt(struct coord_session *session, const struct coord_attempt *attempt);

/* It turned out to have had no effect. */
void coord_session_drop_attempt(struct coord_session *session, uint64_t seq);

#endif
