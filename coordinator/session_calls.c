/*
 * Sessions: see session_calls.h. Invariant: from the moment the deletion of a session's row is
 * submitted nothing is granted to it; what it holds is released once that has committed. Runs under
 * the core's lock.
 */
#include "coordinator/session_calls.h"

#include "coordinator/locks.h"

enum {
    RELEASE_WAIT_US = 500000 /* how long CloseSession's answer waits for the locks to be free */
};

static uint64_t may_end_at(const struct coord_core *core, const struct coord_session *session)
{
    uint64_t at_us = model_lease_dead_at(&core->config.session_lease, session->last_grant_us);

    return at_us < core->grace_until_us ? core->grace_until_us : at_us;
}

static void on_session_timer(struct coord_core *core, struct coord_timer *timer);

static void grant(struct coord_core *core, struct coord_session *session)
{
    session->last_grant_us = coord_now_us(core);
    if (!coord_timer_is_set(&session->timer)) {
        session->timer.on_due = on_session_timer;
        coord_timers_set(&core->timers, &session->timer, may_end_at(core, session));
    }
}

struct coord_session *coord_session_touch(struct coord_core *core, const struct model_id *id)
{
    struct coord_session *session = coord_sessions_find(&core->sessions, id);

    if (!session || session->state != COORD_SESSION_OPEN)
        return NULL;
    grant(core, session);
    return session;
}

/* ---- open ------------------------------------------------------------------------------------ */

static void reply_opened(struct coord_core *core, struct coord_task *task,
                         struct coord_session *session)
{
    struct model_response *response = &task->call->response;

    grant(core, session);
    model_response_ok(response, MODEL_CALL_OPEN_SESSION);
    response->open_session = (struct model_open_session_response){
        .session_id = session->id,
        .cluster_id = core->meta.cluster_id,
        .lease_ms = core->config.session_lease.duration_us / 1000,
        .key_max = core->config.key_max,
        .value_max = MODEL_VALUE_MAX,
    };
    coord_task_reply(core, task);
    coord_task_finish(core, task);
}

static void on_opened(struct coord_core *core, struct coord_task *task)
{
    struct coord_session *session = task->session;

    if (task->outcome == STORE_COMMITTED) {
        session->state = COORD_SESSION_OPEN;
        coord_tasks_wake(core, &session->calls);
        reply_opened(core, task, session);
        return;
    }
    session->state = COORD_SESSION_ENDED;
    coord_sessions_hide(&core->sessions, session);
    coord_tasks_wake(core, &session->calls);
    coord_task_fail_commit(core, task);
    coord_task_finish(core, task);
}

static struct model_id random_id(struct coord_core *core)
{
    uint64_t words[2] = {rt_env_random(&core->env), rt_env_random(&core->env)};
    struct model_id id;

    memcpy(id.bytes, words, sizeof(id.bytes));
    return id;
}

static void open_new(struct coord_core *core, struct coord_task *task)
{
    const struct model_open_session_request *request = &task->call->request.open_session;
    struct coord_session_row row = {.client = request->request_id.client};
    struct model_id id = random_id(core);
    struct coord_session *session;

    while (model_id_is_none(&id) || coord_sessions_find(&core->sessions, &id))
        id = random_id(core);
    /* Nobody can ask for this session a second time. */
    if (model_id_is_none(&row.client))
        row.client = id;
    memcpy(row.name, request->name, sizeof(row.name));
    session = coord_sessions_add(&core->sessions, &id);
    session->state = COORD_SESSION_OPENING;
    coord_sessions_set_row(&core->sessions, session, &row);
    coord_task_set_session(task, session);
    coord_rows_put_session(coord_task_txn(task), &id, &row);
    coord_task_commit(core, task, on_opened);
}

void coord_session_open(struct coord_core *core, struct coord_task *task)
{
    const struct model_open_session_request *request = &task->call->request.open_session;
    struct rt_error err = RT_ERROR_INIT;
    struct coord_session *session =
        coord_sessions_find_client(&core->sessions, &request->request_id.client);

    if (model_name_check("session name", rt_bytes_of_string(request->name), &err) != RT_OK) {
        coord_task_fail(core, task, MODEL_REASON_INVALID_FIELD, "%s", err.message);
    } else if (session && session->state == COORD_SESSION_OPEN) {
        reply_opened(core, task, session);
        return;
    } else if (core->mode == COORD_MODE_READ_ONLY) {
        coord_task_fail(core, task, MODEL_REASON_READ_ONLY, "an earlier commit failed");
    } else if (session) {
        coord_task_wait(core, task, &session->calls, MODEL_REASON_DEADLINE_EXCEEDED,
                        coord_session_open);
        return;
    } else if (core->sessions.n_sessions >= MODEL_SESSIONS_MAX) {
        coord_task_fail(core, task, MODEL_REASON_LIMIT_REACHED, "%d sessions are open",
                        MODEL_SESSIONS_MAX);
    } else {
        open_new(core, task);
        return;
    }
    coord_task_finish(core, task);
}

void coord_session_keep_alive(struct coord_core *core, struct coord_task *task)
{
    const struct model_session_request *request = &task->call->request.session;
    struct model_response *response = &task->call->response;

    if (coord_session_touch(core, &request->session_id)) {
        model_response_ok(response, MODEL_CALL_KEEP_ALIVE);
        response->keep_alive.lease_ms = core->config.session_lease.duration_us / 1000;
        coord_task_reply(core, task);
    } else {
        coord_task_fail(core, task, MODEL_REASON_SESSION_UNKNOWN, "no such session");
    }
    coord_task_finish(core, task);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Statements that wait for something run again, and find that their session is over. */
static void interrupt_statements(struct coord_core *core, struct coord_session *session)
{
    rt_list_for_each_safe (node, &session->tasks) {
        struct coord_task *task = RT_LIST_ENTRY(node, struct coord_task, session_link);

        if (task->call && !task->sent &&
            (task->state == COORD_TASK_QUEUED || task->state == COORD_TASK_WAITING))
            coord_task_ready(core, task, NULL);
    }
}

static void clean_up(struct coord_core *core, struct coord_session *session, bool keeps_locks)
{
    session->state = COORD_SESSION_ENDED;
    coord_sessions_hide(&core->sessions, session);
    interrupt_statements(core, session);
    while (!rt_list_is_empty(&session->waits))
        coord_locks_remove_waiter(
            core, RT_LIST_ENTRY(session->waits.next, struct coord_waiter, session_link));
    if (keeps_locks)
        model_effects_tell(&core->effects, RT_LOG_WARNING, "event=locks_kept name=%s",
                           session->row.name);
    rt_list_for_each (node, &session->held) {
        if (!keeps_locks)
            coord_release_begin(core, RT_LIST_ENTRY(node, struct coord_key_extra, held_link)->key);
    }
    coord_tasks_wake(core, &session->calls);
}

static void reply_closed(struct coord_core *core, struct coord_task *task)
{
    model_response_ok(&task->call->response, MODEL_CALL_CLOSE_SESSION);
    coord_task_reply(core, task);
    coord_task_finish(core, task);
}

/* The session of the task has ended. */
static void reply_when_released(struct coord_core *core, struct coord_task *task)
{
    struct coord_session *session = task->session;
    uint64_t wake_us = coord_now_us(core) + RELEASE_WAIT_US;

    if (session->row.has_ended || rt_list_is_empty(&session->held)) {
        reply_closed(core, task);
        return;
    }
    /* What was asked for is done: a deadline ends the wait, and is not missed. */
    if (wake_us >= task->deadline_us)
        wake_us = task->deadline_us - 1;
    coord_task_wait_until(core, task, &session->calls, MODEL_REASON_DEADLINE_EXCEEDED, wake_us,
                          reply_closed);
}

static void end_session(struct coord_core *core, struct coord_task *task);

static void on_session_ended(struct coord_core *core, struct coord_task *task)
{
    struct coord_session *session = task->session;

    if (task->outcome == STORE_COMMITTED) {
        session->row.has_ended = session->keeps_locks;
        clean_up(core, session, session->keeps_locks);
        if (task->call) {
            reply_when_released(core, task);
            return;
        }
    } else if (task->outcome == STORE_FULL && !task->call) {
        coord_task_pause(core, task, end_session);
        return;
    } else {
        if (task->outcome == STORE_FULL) {
            session->state = COORD_SESSION_OPEN;
            grant(core, session);
            coord_tasks_wake(core, &session->calls);
        }
        coord_task_fail_commit(core, task);
    }
    coord_task_finish(core, task);
}

static void end_session(struct coord_core *core, struct coord_task *task)
{
    struct coord_session *session = task->session;

    session->state = COORD_SESSION_ENDING;
    coord_timers_cancel(&core->timers, &session->timer);
    session->keeps_locks =
        core->config.keep_locks && session->is_aborted && !rt_list_is_empty(&session->held);
    if (session->keeps_locks) {
        struct coord_session_row row = session->row;

        row.has_ended = true;
        coord_rows_put_session(coord_task_txn(task), &session->id, &row);
    } else {
        coord_rows_delete_session(coord_task_txn(task), &session->id);
    }
    coord_task_commit(core, task, on_session_ended);
}

static void on_session_timer(struct coord_core *core, struct coord_timer *timer)
{
    struct coord_session *session = RT_CONTAINER_OF(timer, struct coord_session, timer);
    uint64_t at_us = may_end_at(core, session);
    struct coord_task *task;

    if (coord_now_us(core) < at_us) {
        coord_timers_set(&core->timers, timer, at_us);
        return;
    }
    if (core->mode == COORD_MODE_READ_ONLY)
        return;
    model_effects_tell(&core->effects, RT_LOG_INFO, "event=session_expired name=%s",
                       session->row.name);
    session->is_aborted = true;
    task = coord_task_new(core, NULL, (struct rt_bytes){0}, end_session);
    coord_task_set_session(task, session);
    end_session(core, task);
}

void coord_session_close(struct coord_core *core, struct coord_task *task)
{
    const struct model_session_request *request = &task->call->request.session;
    struct coord_session *session = coord_sessions_find(&core->sessions, &request->session_id);

    if (session && session->state == COORD_SESSION_ENDING) {
        coord_task_wait(core, task, &session->calls, MODEL_REASON_DEADLINE_EXCEEDED,
                        coord_session_close);
        return;
    }
    if (!session || session->state == COORD_SESSION_OPENING) {
        reply_closed(core, task);
        return;
    }
    if (session->state == COORD_SESSION_ENDED) {
        coord_task_set_session(task, session);
        reply_when_released(core, task);
        return;
    }
    if (core->mode == COORD_MODE_READ_ONLY) {
        coord_task_fail(core, task, MODEL_REASON_READ_ONLY, "an earlier commit failed");
        coord_task_finish(core, task);
        return;
    }
    coord_task_set_session(task, session);
    end_session(core, task);
}

static void on_forgotten(struct coord_core *core, struct coord_task *task)
{
    coord_task_finish(core, task);
}

/* Over, and nothing is kept of it any more. */
static void forget(struct coord_core *core, struct coord_session *session)
{
    struct coord_task *task = coord_task_new(core, NULL, (struct rt_bytes){0}, on_forgotten);

    coord_task_set_session(task, session);
    coord_rows_delete_session(coord_task_txn(task), &session->id);
    coord_task_commit(core, task, on_forgotten);
}

/* Of an earlier term. */
static void settle_ended(struct coord_core *core, struct coord_session *session)
{
    bool keeps_locks = core->config.keep_locks && session->row.has_ended;

    if (session->row.has_ended && rt_list_is_empty(&session->held)) {
        forget(core, session);
        return;
    }
    if (!keeps_locks)
        model_effects_tell(&core->effects, RT_LOG_WARNING, "event=orphaned_locks_released");
    clean_up(core, session, keeps_locks);
    coord_sessions_tidy(&core->sessions, session);
}

void coord_session_start(struct coord_core *core)
{
    struct coord_session *session;
    struct coord_session *next;

    HASH_ITER (hh_id, core->sessions.by_id, session, next) {
        if (session->state == COORD_SESSION_OPEN)
            grant(core, session);
        else
            settle_ended(core, session);
    }
}
