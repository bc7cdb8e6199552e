/*
 * GET, AWAIT and READ. See execute.h. Invariant: the answer to a GET is given only after the grant
 * is durable here and its token at the owner. Runs under the core's lock.
 */
#include "coordinator/execute.h"
#include "coordinator/session_calls.h"

enum {
    ATTEMPT_US = 1000000 /* one Fence */
};

/* ---- GET ------------------------------------------------------------------------------------- */

static void lock(struct coord_core *core, struct coord_task *task);

static void on_fenced(struct coord_core *core, struct coord_task *task)
{
    const struct model_response *response = &task->answer->response;

    if (response->code != RT_OK) {
        /* The token was spent by a STORE whose release was never written here. */
        if (response->error.reason == MODEL_REASON_LOCK_FENCED && !task->granted)
            lock(core, task);
        else
            coord_execute_not_ok(core, task, false);
        return;
    }
    task->latched->release_pending = false;
    coord_execute_reply_data(core, task);
    coord_task_finish(core, task);
}

static void on_locked(struct coord_core *core, struct coord_task *task)
{
    struct coord_key *key = task->latched;
    struct coord_waiter *waiter;

    if (task->outcome != STORE_COMMITTED) {
        coord_task_fail_commit(core, task);
        coord_task_finish(core, task);
        return;
    }
    task->granted = true;
    waiter = coord_locks_find_waiter(key, task->session);
    if (waiter)
        coord_locks_remove_waiter(core, waiter);
    if (task->session->state == COORD_SESSION_ENDED)
        coord_release_begin(core, key);
    coord_execute_run(core, task);
}

static void lock(struct coord_core *core, struct coord_task *task)
{
    task->row = coord_key_row_of(task->latched);
    task->row.locked = true;
    task->row.session_id = task->session->id;
    task->row.token = coord_task_number(core, task);
    task->row.newest_token = task->row.token;
    task->row.release_pending = false;
    if (coord_execute_gives_route(task) && task->row.phase == COORD_PHASE_ACTIVE)
        task->row.maybe_stored = true;
    coord_task_put_row(task);
    coord_task_commit(core, task, on_locked);
}

static bool waits_for_turn(const struct coord_task *task)
{
    return task->call->request.kind == MODEL_CALL_LOCK && !task->call->request.lock.no_wait;
}

/* Another session holds the key, or it is another's turn. */
static void wait_in_line(struct coord_core *core, struct coord_task *task, struct coord_key *key)
{
    const struct coord_session *ahead =
        key->extra->holder ? key->extra->holder : key->extra->turn->session;
    struct coord_waiter *waiter = coord_locks_find_waiter(key, task->session);
    struct model_execute_response *execute;

    if (!waiter)
        waiter = coord_locks_add_waiter(core, key, task->session);
    if (!waiter) {
        coord_execute_refuse(core, task, MODEL_REASON_LIMIT_REACHED);
        return;
    }
    coord_locks_come_back(core, waiter);
    if (waits_for_turn(task)) {
        coord_task_wait(core, task, &waiter->awaits, MODEL_REASON_DEADLINE_EXCEEDED,
                        coord_execute_run);
        return;
    }
    execute = coord_execute_answer(task);
    execute->outcome = MODEL_OUTCOME_WAITING;
    memcpy(execute->holder, ahead->row.name, sizeof(execute->holder));
    coord_execute_reply(core, task);
    coord_task_finish(core, task);
}

/* The caller holds the key, which its owner serves or nobody does. */
static void answer_holder(struct coord_core *core, struct coord_task *task, enum coord_owner owner)
{
    struct coord_key *key = task->latched;
    struct model_call *call;

    task->token = key->extra->token;
    task->epoch = key->epoch;
    if (owner == COORD_OWNER_NONE) {
        coord_execute_answer(task)->lock_token = task->token;
        coord_execute_reply(core, task);
        coord_task_finish(core, task);
        return;
    }
    if (!coord_execute_prepare(core, task, false))
        return;
    call = coord_execute_fence(core, key, task->token, true);
    task->was_active = true;
    if (call)
        coord_task_call(core, task, call, task->member, ATTEMPT_US, on_fenced);
    else
        coord_execute_refuse(core, task, MODEL_REASON_LIMIT_REACHED);
}

/* The lock decides first, and without the latch: whoever has to wait says so at once, whatever is
 * under way for the holder. */
void coord_execute_get(struct coord_core *core, struct coord_task *task)
{
    struct coord_key *key = coord_keys_find(&core->keys, coord_task_name(task));
    bool is_holder = key && coord_key_holder(key) == task->session;
    enum coord_owner owner;

    if (key && !is_holder && !coord_locks_is_free_for(key, task->session)) {
        wait_in_line(core, task, key);
        return;
    }
    if (!coord_task_latch(core, task, coord_execute_run))
        return;
    owner = coord_execute_owner(core, task, task->latched);
    if (owner == COORD_OWNER_HANDLED)
        return;
    if (is_holder)
        answer_holder(core, task, owner);
    else
        lock(core, task);
}

/* ---- AWAIT ----------------------------------------------------------------------------------- */

void coord_execute_await(struct coord_core *core, struct coord_task *task)
{
    const struct coord_key *key = coord_keys_find(&core->keys, coord_task_name(task));
    struct coord_waiter *waiter = coord_locks_find_waiter(key, task->session);

    if (waiter)
        coord_locks_come_back(core, waiter);
    if (waiter && !coord_locks_is_free_for(key, task->session)) {
        coord_task_wait(core, task, &waiter->awaits, MODEL_REASON_DEADLINE_EXCEEDED,
                        coord_execute_run);
        return;
    }
    coord_execute_answer(task)->outcome = MODEL_OUTCOME_READY;
    coord_execute_reply(core, task);
    coord_task_finish(core, task);
}

/* ---- READ ------------------------------------------------------------------------------------ */

static void answer_nothing(struct coord_core *core, struct coord_task *task)
{
    (void)coord_execute_answer(task);
    coord_execute_reply(core, task);
    coord_task_finish(core, task);
}

/* The Activate has not reached the owner: there is no value yet. */
static bool is_not_activated(struct coord_core *core, const struct coord_task *task)
{
    const struct coord_key *key = coord_keys_find(&core->keys, coord_task_name(task));
    const struct model_response *response = &task->answer->response;

    return key && key->phase == COORD_PHASE_PLACING && key->epoch == task->epoch &&
           response->responder.incarnation == task->member->row.incarnation &&
           (response->error.reason == MODEL_REASON_NOT_OWNER ||
            response->error.reason == MODEL_REASON_EPOCH_AHEAD);
}

static void on_read(struct coord_core *core, struct coord_task *task)
{
    if (task->answer->response.code == RT_OK) {
        coord_execute_reply_data(core, task);
        coord_task_finish(core, task);
    } else if (is_not_activated(core, task)) {
        answer_nothing(core, task);
    } else {
        coord_execute_not_ok(core, task, false);
    }
}

/* Without the latch: the owner judges, also while the key is being placed: it may serve before its
 * acknowledgement is durable here, and tell others so. */
void coord_execute_read(struct coord_core *core, struct coord_task *task)
{
    struct coord_key *key = coord_keys_find(&core->keys, coord_task_name(task));

    if (!key || !key->exists) {
        coord_execute_refuse(core, task, MODEL_REASON_KEY_NOT_IDENTIFIED);
        return;
    }
    switch (coord_execute_owner(core, task, key)) {
    case COORD_OWNER_HANDLED:
        return;
    case COORD_OWNER_READY:
        coord_execute_forward(core, task, key, MODEL_CALL_READ, 0, on_read);
        return;
    case COORD_OWNER_NONE:
        answer_nothing(core, task);
        return;
    }
}
