/*
 * SET, STORE, PUT and DELETE. See execute.h. Invariant: a write goes to the owner of a key that is
 * ACTIVE, under a latch (shared where the statement leaves the key's row alone), so that nothing
 * about the key changes before its outcome is known; a durable write goes only to an owner whose
 * row says maybe_stored. Runs under the core's lock.
 */
#include "coordinator/evict.h"
#include "coordinator/execute.h"
#include "coordinator/session_calls.h"

/* ---- SET, and PUT without a lock ------------------------------------------------------------- */

static void on_written(struct coord_core *core, struct coord_task *task)
{
    if (task->answer->response.code != RT_OK) {
        coord_execute_not_ok(core, task, true);
        return;
    }
    if (coord_evict_begin(core, task, on_written))
        return;
    coord_execute_reply_data(core, task);
    coord_task_finish(core, task);
}

bool coord_execute_row_stays(const struct coord_key *key, bool stores)
{
    if (!key || !key->exists || key->phase != COORD_PHASE_ACTIVE)
        return false;
    return !stores || key->maybe_stored;
}

/* An expected version can only be that of no value. */
static bool expects_a_value(const struct model_execute_request *request)
{
    static const struct model_version none;

    return request->has_if_version && model_version_compare(&request->if_version, &none) != 0;
}

/* true: the key is ACTIVE at an owner that serves it. false: the step towards that is under way, or
 * the task was answered. */
static bool reach(struct coord_core *core, struct coord_task *task, bool stores)
{
    switch (coord_execute_owner(core, task, task->latched)) {
    case COORD_OWNER_HANDLED:
        return false;
    case COORD_OWNER_NONE:
        if (expects_a_value(coord_execute_request(task)))
            coord_execute_refuse(core, task, MODEL_REASON_VERSION_MISMATCH);
        else
            coord_execute_place(core, task);
        return false;
    case COORD_OWNER_READY:
        break;
    }
    return coord_execute_prepare(core, task, stores);
}

bool coord_execute_latch(struct coord_core *core, struct coord_task *task, bool stays)
{
    if (task->latched && (!task->shared || stays))
        return true;
    return stays ? coord_task_latch_shared(core, task, coord_execute_run)
                 : coord_task_latch(core, task, coord_execute_run);
}

/* An earlier attempt may have been seen, and lost with the owner's process since: a second time it
 * would be a second effect. */
static bool may_be_lost(const struct coord_task *task)
{
    const struct model_execute_request *request = coord_execute_request(task);
    const struct coord_attempt *attempt =
        coord_session_attempt(task->session, request->request_id.seq);

    if (attempt)
        return attempt->incarnation != task->member->row.incarnation;
    return request->first_version != 0 && task->member->row.incarnation > request->first_version;
}

void coord_execute_set(struct coord_core *core, struct coord_task *task)
{
    bool stays =
        coord_execute_row_stays(coord_keys_find(&core->keys, coord_task_name(task)), false);
    struct coord_lock_check check;

    if (!coord_execute_latch(core, task, stays) ||
        !coord_execute_may(core, task, task->latched, &check) || !reach(core, task, false))
        return;
    if (!may_be_lost(task)) {
        coord_execute_forward(core, task, task->latched, MODEL_CALL_SET, check.token, on_written);
        return;
    }
    coord_task_fail(core, task, MODEL_REASON_OUTCOME_UNKNOWN,
                    "an earlier attempt may have been lost with an earlier process of the owner");
    coord_task_finish(core, task);
}

/* ---- STORE, PUT ------------------------------------------------------------------------------ */

/* Durable at the owner: the caller's lock ends with it. */
static void on_stored(struct coord_core *core, struct coord_task *task)
{
    const struct model_data_response *data = &task->answer->response.data;
    const struct coord_key *key = task->latched;

    if (task->answer->response.code != RT_OK) {
        coord_execute_not_ok(core, task, true);
        return;
    }
    if (coord_evict_begin(core, task, on_stored))
        return;
    task->sent = true;
    task->done = (struct coord_done){
        .epoch = task->epoch,
        .version = data->version,
        .stored = data->stored,
    };
    if (coord_key_holder(key) == task->session && key->extra->token == task->token) {
        coord_execute_release(core, task);
        return;
    }
    task->done.lock_lost = task->token != 0;
    coord_execute_reply_data(core, task);
    coord_task_finish(core, task);
}

/* STORE of a key that nobody ever SET: nothing is written anywhere. */
static void store_nothing(struct coord_core *core, struct coord_task *task, bool is_holder)
{
    if (is_holder) {
        coord_execute_release(core, task);
        return;
    }
    coord_execute_reply_done(core, task, &task->done);
    coord_task_finish(core, task);
}

void coord_execute_store(struct coord_core *core, struct coord_task *task)
{
    struct coord_lock_check check;

    if (!coord_task_latch(core, task, coord_execute_run) ||
        !coord_execute_may(core, task, task->latched, &check))
        return;
    if (!task->latched->exists || task->latched->phase == COORD_PHASE_UNPLACED)
        store_nothing(core, task, check.is_holder);
    else if (reach(core, task, true))
        coord_execute_forward(core, task, task->latched, MODEL_CALL_STORE, check.token, on_stored);
}

void coord_execute_put(struct coord_core *core, struct coord_task *task)
{
    struct coord_key *key = coord_keys_find(&core->keys, coord_task_name(task));
    bool holds = key && coord_key_holder(key) == task->session;
    struct coord_lock_check check;

    if (!coord_execute_latch(core, task, !holds && coord_execute_row_stays(key, true)) ||
        !coord_execute_may(core, task, task->latched, &check) || !reach(core, task, true))
        return;
    coord_execute_forward(core, task, task->latched, MODEL_CALL_PUT, check.token,
                          check.is_holder ? on_stored : on_written);
}

/* ---- DELETE ---------------------------------------------------------------------------------- */

static void on_key_found(struct coord_core *core, struct coord_task *task)
{
    if (task->outcome == STORE_COMMITTED)
        coord_execute_reply_data(core, task);
    else
        coord_task_fail_commit(core, task);
    coord_task_finish(core, task);
}

/* The value is gone at the owner. A locked key keeps its row until it is unlocked. */
static void on_deleted(struct coord_core *core, struct coord_task *task)
{
    struct coord_key *key = task->latched;

    if (task->answer->response.code != RT_OK) {
        coord_execute_not_ok(core, task, true);
        return;
    }
    task->sent = true;
    key->deleted = true;
    task->done.epoch = task->epoch;
    task->done.version = task->answer->response.data.version;
    task->done.stored = task->answer->response.data.stored;
    coord_execute_name_done(task);
    if (!coord_key_holder(key)) {
        coord_drop_run(core, task);
    } else if (key->key_lost) {
        task->row = coord_key_row_of(key);
        task->row.key_lost = false;
        coord_task_put_row(task);
        coord_task_commit(core, task, on_key_found);
    } else {
        coord_execute_reply_data(core, task);
        coord_task_finish(core, task);
    }
}

static void on_unplaced_deleted(struct coord_core *core, struct coord_task *task)
{
    if (task->outcome == STORE_COMMITTED)
        coord_execute_reply_done(core, task, &task->done);
    else
        coord_task_fail_commit(core, task);
    coord_task_finish(core, task);
}

/* There is no value to delete; without a lock there is no reason to keep the row. A late copy of
 * the request must not find a value that was written since. */
static void delete_unplaced(struct coord_core *core, struct coord_task *task)
{
    bool is_held = coord_key_holder(task->latched) != NULL;

    if (expects_a_value(coord_execute_request(task))) {
        coord_execute_refuse(core, task, MODEL_REASON_VERSION_MISMATCH);
        return;
    }
    coord_execute_name_done(task);
    if (is_held && task->done.seq == 0) {
        coord_execute_reply_done(core, task, &task->done);
        coord_task_finish(core, task);
        return;
    }
    if (!is_held)
        coord_task_delete_row(task);
    if (task->done.seq != 0)
        coord_task_put_done(task);
    coord_task_commit(core, task, on_unplaced_deleted);
}

void coord_execute_delete(struct coord_core *core, struct coord_task *task)
{
    struct coord_lock_check check;

    if (!coord_task_latch(core, task, coord_execute_run) ||
        !coord_execute_may(core, task, task->latched, &check))
        return;
    switch (coord_execute_owner(core, task, task->latched)) {
    case COORD_OWNER_HANDLED:
        return;
    case COORD_OWNER_NONE:
        delete_unplaced(core, task);
        return;
    case COORD_OWNER_READY:
        if (task->latched->phase == COORD_PHASE_PLACING)
            coord_execute_activate(core, task);
        else
            coord_execute_forward(core, task, task->latched, MODEL_CALL_DELETE, check.token,
                                  on_deleted);
    }
}
