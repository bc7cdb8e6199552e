/*
 * What happens to keys without a call that waits for it: locks of ended sessions, keys whose value
 * was deleted. See session_calls.h. Invariant: these tasks look at the key anew each time and give
 * up when somebody else has taken it over. Runs under the core's lock.
 */
#include "coordinator/admin.h"
#include "coordinator/execute.h"
#include "coordinator/session_calls.h"

enum {
    ATTEMPT_US = 1000000 /* one Fence or Drop */
};

/* ---- release --------------------------------------------------------------------------------- */

/* The lock is free, whatever its owner knows: the caller need not wait for the rest. */
static void reply_unlocked(struct coord_core *core, struct coord_task *task)
{
    if (task->call) {
        struct model_response *response = &task->call->response;

        model_response_ok(response, task->call->request.kind);
        if (task->call->request.kind == MODEL_CALL_FREE_LOCK && task->session)
            memcpy(response->free_lock.holder, task->session->row.name,
                   sizeof(response->free_lock.holder));
    }
    coord_task_reply(core, task);
    task->deadline_us = RT_NEVER;
}

static void tell_owner(struct coord_core *core, struct coord_task *task);

static void on_told(struct coord_core *core, struct coord_task *task)
{
    enum coord_answer answer = coord_answer_of(&task->answer->response);
    struct coord_key *key = coord_keys_find(&core->keys, coord_task_name(task));

    if (answer == COORD_ANSWER_OK && key && key->newest_token == task->token)
        key->release_pending = false;
    reply_unlocked(core, task);
    if (answer == COORD_ANSWER_OK || answer == COORD_ANSWER_FINAL ||
        !coord_task_back_off(core, task, tell_owner))
        coord_task_finish(core, task);
}

/* Without the latch: a newer grant tells the owner more. */
static void tell_owner(struct coord_core *core, struct coord_task *task)
{
    struct coord_key *key = coord_keys_find(&core->keys, coord_task_name(task));
    struct coord_member *member = key ? coord_members_at(&core->members, key->owner) : NULL;
    struct model_call *call;

    if (!key || !key->exists || key->epoch != task->epoch || key->newest_token != task->token ||
        coord_key_holder(key) || !member || !coord_member_is_live(member)) {
        reply_unlocked(core, task);
        coord_task_finish(core, task);
        return;
    }
    if (member->row.state != MODEL_MEMBER_ALIVE || member->ending) {
        reply_unlocked(core, task);
        coord_task_wait(core, task, &member->parked, MODEL_REASON_NONE, tell_owner);
        return;
    }
    call = coord_execute_fence(core, key, task->token, false);
    if (call) {
        coord_task_call(core, task, call, member, ATTEMPT_US, on_told);
        return;
    }
    reply_unlocked(core, task);
    coord_task_pause(core, task, tell_owner);
}

static void release(struct coord_core *core, struct coord_task *task);

static void on_released(struct coord_core *core, struct coord_task *task)
{
    struct coord_key *key = task->latched;

    if (task->outcome == STORE_FULL && !task->call) {
        coord_task_unlatch(core, task);
        coord_task_pause(core, task, release);
        return;
    }
    if (task->outcome != STORE_COMMITTED) {
        coord_task_fail_commit(core, task);
        coord_task_finish(core, task);
        return;
    }
    task->token = key->newest_token;
    task->epoch = key->epoch;
    if (key->deleted)
        coord_drop_begin(core, key);
    coord_task_unlatch(core, task);
    tell_owner(core, task);
}

static bool has_one_lock(const struct coord_session *session)
{
    return session->held.next == session->held.previous;
}

static void release(struct coord_core *core, struct coord_task *task)
{
    struct coord_key *key;

    if (!coord_task_latch(core, task, release))
        return;
    key = task->latched;
    if (coord_key_holder(key) != task->session || key->extra->token != task->token) {
        reply_unlocked(core, task);
        coord_task_finish(core, task);
        return;
    }
    task->row = coord_key_row_of(key);
    task->row.locked = false;
    task->row.newest_token = coord_task_number(core, task);
    task->row.release_pending = key->phase != COORD_PHASE_UNPLACED;
    coord_task_put_row(task);
    if (task->session->row.has_ended && has_one_lock(task->session))
        coord_rows_delete_session(coord_task_txn(task), &task->session->id);
    coord_task_commit(core, task, on_released);
}

void coord_release_begin(struct coord_core *core, struct coord_key *key)
{
    struct coord_task *task = coord_task_new(core, NULL, coord_key_name(key), release);

    coord_task_set_session(task, key->extra->holder);
    task->token = key->extra->token;
    coord_task_ready(core, task, NULL);
}

void coord_release_unlock(struct coord_core *core, struct coord_task *task)
{
    const struct model_unlock_request *request = &task->call->request.unlock;
    struct coord_session *session = coord_session_touch(core, &request->session_id);

    if (!coord_execute_check_key(core, task, request->key))
        return;
    if (!session) {
        reply_unlocked(core, task);
        coord_task_finish(core, task);
        return;
    }
    coord_task_set_session(task, session);
    task->token = request->lock_token;
    release(core, task);
}

void coord_release_free(struct coord_core *core, struct coord_task *task)
{
    const struct coord_key *key;
    struct coord_session *holder;

    if (!coord_admin_check_key(core, task))
        return;
    key = coord_keys_find(&core->keys, coord_task_name(task));
    holder = key ? coord_key_holder(key) : NULL;
    if (!holder) {
        reply_unlocked(core, task);
        coord_task_finish(core, task);
        return;
    }
    coord_task_set_session(task, holder);
    task->token = key->extra->token;
    release(core, task);
}

void coord_release_resume(struct coord_core *core, struct coord_key *key)
{
    struct coord_task *task = coord_task_new(core, NULL, coord_key_name(key), tell_owner);

    task->token = key->newest_token;
    task->epoch = key->epoch;
    coord_task_ready(core, task, NULL);
}

/* ---- drop ------------------------------------------------------------------------------------ */

/* The deletion itself is durable at the owner: the caller need not wait for the rest. */
static void reply_deleted(struct coord_core *core, struct coord_task *task)
{
    if (task->call)
        coord_execute_reply_done(core, task, &task->done);
    task->deadline_us = RT_NEVER;
}

static void on_row_deleted(struct coord_core *core, struct coord_task *task)
{
    bool again = task->outcome == STORE_FULL;

    reply_deleted(core, task);
    coord_task_unlatch(core, task);
    if (again)
        coord_task_pause(core, task, coord_drop_run);
    else
        coord_task_finish(core, task);
}

static void delete_row(struct coord_core *core, struct coord_task *task)
{
    coord_task_delete_row(task);
    coord_task_set_route(task, coord_task_number(core, task));
    if (task->done.seq != 0 && task->session->state == COORD_SESSION_OPEN)
        coord_task_put_done(task);
    coord_task_commit(core, task, on_row_deleted);
}

/* From now on "no such row" from the owner means that the Drop was carried out, also to a
 * coordinator that has not heard of the answer. */
static void on_drop_marked(struct coord_core *core, struct coord_task *task)
{
    if (task->outcome == STORE_COMMITTED) {
        coord_drop_run(core, task);
        return;
    }
    reply_deleted(core, task);
    coord_task_unlatch(core, task);
    if (task->outcome == STORE_FULL)
        coord_task_pause(core, task, coord_drop_run);
    else
        coord_task_finish(core, task);
}

static void mark_dropping(struct coord_core *core, struct coord_task *task)
{
    task->row = coord_key_row_of(task->latched);
    task->row.dropping = true;
    coord_task_put_row(task);
    coord_task_commit(core, task, on_drop_marked);
}

static void on_dropped(struct coord_core *core, struct coord_task *task)
{
    const struct model_response *response = &task->answer->response;
    enum coord_answer answer = coord_answer_of(response);

    if (answer == COORD_ANSWER_OK || response->error.reason == MODEL_REASON_NOT_OWNER) {
        delete_row(core, task);
        return;
    }
    if (response->error.reason == MODEL_REASON_VERSION_MISMATCH)
        task->latched->deleted = false; /* it has a value again */
    if (answer != COORD_ANSWER_FINAL && coord_task_back_off(core, task, coord_drop_run))
        return;
    reply_deleted(core, task);
    coord_task_unlatch(core, task);
    if (answer == COORD_ANSWER_FINAL || !coord_task_back_off(core, task, coord_drop_run))
        coord_task_finish(core, task);
}

/* The owner cannot be told now. */
static void drop_later(struct coord_core *core, struct coord_task *task,
                       struct coord_member *member, uint64_t wake_us)
{
    reply_deleted(core, task);
    coord_task_unlatch(core, task);
    coord_task_wait_until(core, task, &member->parked, MODEL_REASON_NONE, wake_us, coord_drop_run);
}

static void send_drop(struct coord_core *core, struct coord_task *task, struct coord_member *member)
{
    const struct coord_key *key = task->latched;
    struct model_call *call = model_call_new(MODEL_CALL_DROP);

    if (!rt_arena_copy(&call->arena, coord_key_name(key), &call->request.drop.key)) {
        (void)model_call_free(call);
        drop_later(core, task, member, coord_now_us(core) + ATTEMPT_US);
        return;
    }
    call->request.drop.term = core->meta.term;
    call->request.drop.epoch = key->epoch;
    coord_task_call(core, task, call, member, ATTEMPT_US, on_dropped);
}

/* A value that came after the deletion may be stored at an owner that is down: only the owner can
 * say that there is none. */
static void drop_at(struct coord_core *core, struct coord_task *task, struct coord_member *member)
{
    const struct coord_key *key = task->latched;
    bool is_down = !member || !coord_member_is_live(member);
    bool keeps = core->config.owner_down == COORD_OWNER_DOWN_KEEP && key->maybe_stored;
    bool barrier =
        member && member->row.state == MODEL_MEMBER_DEAD && coord_now_us(core) < core->barrier_us;

    if (!member || (is_down && !barrier && !keeps))
        delete_row(core, task);
    else if (is_down)
        drop_later(core, task, member, barrier && !keeps ? core->barrier_us : RT_NEVER);
    else if (member->row.state != MODEL_MEMBER_ALIVE || member->ending)
        drop_later(core, task, member, coord_now_us(core) + ATTEMPT_US);
    else if (!key->dropping)
        mark_dropping(core, task);
    else
        send_drop(core, task, member);
}

void coord_drop_run(struct coord_core *core, struct coord_task *task)
{
    struct coord_key *key;

    if (!coord_task_latch(core, task, coord_drop_run))
        return;
    key = task->latched;
    if (!key->exists || !key->deleted || coord_key_holder(key) ||
        core->mode == COORD_MODE_READ_ONLY) {
        reply_deleted(core, task);
        coord_task_finish(core, task);
        return;
    }
    drop_at(core, task, coord_members_at(&core->members, key->owner));
}

void coord_drop_begin(struct coord_core *core, struct coord_key *key)
{
    coord_task_ready(core, coord_task_new(core, NULL, coord_key_name(key), coord_drop_run), NULL);
}
