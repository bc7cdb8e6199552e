/*
 * Sessions: see sessions.h. Invariant: by_client is a part of by_id. Runs under the core's lock.
 */
#include "coordinator/sessions.h"

/* NOLINTNEXTLINE(readability-function-size): the macros of uthash nest */
void coord_sessions_deinit(struct coord_sessions *sessions)
{
    struct coord_session *session;
    struct coord_session *next;

    HASH_CLEAR(hh_client, sessions->by_client);
    HASH_ITER (hh_id, sessions->by_id, session, next) {
        HASH_DELETE(hh_id, sessions->by_id, session);
        (void)rt_free(session);
    }
    *sessions = (struct coord_sessions){0};
}

/* NOLINTNEXTLINE(readability-function-size): the macros of uthash nest */
struct coord_session *coord_sessions_find(const struct coord_sessions *sessions,
                                          const struct model_id *id)
{
    struct coord_session *session;

    HASH_FIND(hh_id, sessions->by_id, id, sizeof(*id), session);
    return session;
}

/* NOLINTNEXTLINE(readability-function-size): the macros of uthash nest */
struct coord_session *coord_sessions_find_client(const struct coord_sessions *sessions,
                                                 const struct model_id *client)
{
    struct coord_session *session;

    HASH_FIND(hh_client, sessions->by_client, client, sizeof(*client), session);
    return session;
}

/* NOLINTNEXTLINE(readability-function-size): the macros of uthash nest */
struct coord_session *coord_sessions_add(struct coord_sessions *sessions, const struct model_id *id)
{
    struct coord_session *session = rt_xalloc(sizeof(*session));

    session->id = *id;
    session->state = COORD_SESSION_ENDED;
    rt_list_init(&session->held);
    rt_list_init(&session->waits);
    rt_list_init(&session->tasks);
    rt_list_init(&session->calls);
    HASH_ADD(hh_id, sessions->by_id, id, sizeof(session->id), session);
    sessions->n_sessions++;
    return session;
}

/* NOLINTNEXTLINE(readability-function-size): the macros of uthash nest */
void coord_sessions_set_row(struct coord_sessions *sessions, struct coord_session *session,
                            const struct coord_session_row *row)
{
    coord_sessions_hide(sessions, session);
    session->row = *row;
    if (row->done_below > session->done_below)
        session->done_below = row->done_below;
    if (!coord_sessions_find_client(sessions, &row->client))
        HASH_ADD(hh_client, sessions->by_client, row.client, sizeof(row->client), session);
}

/* NOLINTNEXTLINE(readability-function-size): the macros of uthash nest */
void coord_sessions_hide(struct coord_sessions *sessions, struct coord_session *session)
{
    if (coord_sessions_find_client(sessions, &session->row.client) == session)
        HASH_DELETE(hh_client, sessions->by_client, session);
}

/* NOLINTNEXTLINE(readability-function-size): the macros of uthash nest */
void coord_sessions_tidy(struct coord_sessions *sessions, struct coord_session *session)
{
    if (session->state != COORD_SESSION_ENDED || !rt_list_is_empty(&session->held) ||
        !rt_list_is_empty(&session->waits) || !rt_list_is_empty(&session->tasks) ||
        !rt_list_is_empty(&session->calls) || coord_timer_is_set(&session->timer))
        return;
    coord_sessions_hide(sessions, session);
    HASH_DELETE(hh_id, sessions->by_id, session);
    sessions->n_sessions--;
    (void)rt_free(session);
}

const struct coord_done *coord_session_done(const struct coord_session *session,
                                            const struct model_request_id *request_id)
{
    if (request_id->seq == 0 || !model_id_equal(&request_id->client, &session->row.client))
        return NULL;
    for (size_t i = 0; i < COORD_DONE_MAX; i++) {
        if (session->row.done[i].seq == request_id->seq)
            return &session->row.done[i];
    }
    return NULL;
}

void coord_session_add_done(struct coord_session_row *row, const struct coord_done *done,
                            uint64_t done_below)
{
    struct coord_done kept[COORD_DONE_MAX] = {0};
    size_t n_kept = 0;

    kept[n_kept++] = *done;
    for (size_t i = 0; i < COORD_DONE_MAX && n_kept < COORD_DONE_MAX; i++) {
        uint64_t seq = row->done[i].seq;

        if (seq != 0 && seq >= done_below && seq != done->seq)
            kept[n_kept++] = row->done[i];
    }
    memcpy(row->done, kept, sizeof(kept));
    if (done_below > row->done_below)
        row->done_below = done_below;
}

const struct coord_attempt *coord_session_attempt(const struct coord_session *session, uint64_t seq)
{
    for (size_t i = 0; seq != 0 && i < COORD_DONE_MAX; i++) {
        if (session->attempts[i].seq == seq)
            return &session->attempts[i];
    }
    return NULL;
}

bool coord_session_add_attempt(struct coord_session *session, const struct coord_attempt *attempt)
{
    if (attempt->seq == 0 || coord_session_attempt(session, attempt->seq))
        return false;
    session->attempts[session->next_attempt] = *attempt;
    session->next_attempt = (session->next_attempt + 1) % COORD_DONE_MAX;
    return true;
}

void coord_session_drop_attempt(struct coord_session *session, uint64_t seq)
{
    for (size_t i = 0; i < COORD_DONE_MAX; i++) {
        if (session->attempts[i].seq == seq)
            session->attempts[i] = (struct coord_attempt){0};
    }
}
