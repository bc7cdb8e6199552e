/*
 * Towards a key whose owner serves it: owner up or down, placement, activation. See execute.h.
 * Invariant: a key is placed anew only at a fresh epoch, and only when no owner holds the old one:
 * it is down, or it has refused. Runs under the core's lock.
 */
#include "coordinator/execute.h"
#include "coordinator/registry.h"

enum {
    ATTEMPT_US = 1000000 /* one Activate */
};

/* ---- the owner is down ----------------------------------------------------------------------- */

static void on_forgotten(struct coord_core *core, struct coord_task *task)
{
    if (task->outcome != STORE_COMMITTED) {
        coord_task_fail_commit(core, task);
    } else {
        struct coord_waiter *waiter = coord_locks_find_waiter(task->latched, task->session);

        if (waiter)
            coord_locks_remove_waiter(core, waiter);
        coord_task_fail(core, task, MODEL_REASON_KEY_INACCESSIBLE, "%s",
                        model_reason_meaning(MODEL_REASON_KEY_INACCESSIBLE));
    }
    coord_task_finish(core, task);
}

static void on_unplaced(struct coord_core *core, struct coord_task *task)
{
    if (task->outcome == STORE_COMMITTED) {
        coord_execute_run(core, task);
        return;
    }
    coord_task_fail_commit(core, task);
    coord_task_finish(core, task);
}

static void unplace(struct coord_core *core, struct coord_task *task, coord_step_fn step)
{
    task->row = coord_key_row_of(task->latched);
    task->row.phase = COORD_PHASE_UNPLACED;
    task->row.owner = 0;
    task->row.epoch = 0;
    task->row.release_pending = false;
    task->row.dropping = false;
    coord_task_put_row(task);
    coord_task_set_route(task, coord_task_number(core, task));
    coord_task_commit(core, task, step);
}

/* The answer comes from the life of the owner that would hold the key, and it has no row of it. */
static bool is_gone(const struct coord_task *task, const struct coord_key *key)
{
    const struct model_response *response = &task->answer->response;

    return key && key->exists && key->epoch == task->epoch &&
           response->error.reason == MODEL_REASON_NOT_OWNER &&
           response->responder.incarnation == task->member->row.incarnation;
}

static bool is_dropped(const struct coord_task *task, const struct coord_key *key)
{
    return is_gone(task, key) && key->dropping;
}

/* Without a Drop: the owner made room for another value, and this was not heard here. What must be
 * kept is never evicted so. */
static bool is_evicted(const struct coord_core *core, const struct coord_task *task,
                       const struct coord_key *key)
{
    return is_gone(task, key) && task->was_active && key->phase == COORD_PHASE_ACTIVE &&
           (core->config.owner_down == COORD_OWNER_DOWN_FORGET || !key->maybe_stored);
}

static void place_anew(struct coord_core *core, struct coord_task *task)
{
    if (!coord_task_latch(core, task, place_anew))
        return;
    if (is_dropped(task, task->latched)) {
        unplace(core, task, on_unplaced);
    } else if (is_evicted(core, task, task->latched)) {
        coord_task_delete_row(task);
        coord_task_set_route(task, coord_task_number(core, task));
        coord_task_commit(core, task, on_unplaced);
    } else {
        coord_execute_run(core, task);
    }
}

bool coord_execute_dropped(struct coord_core *core, struct coord_task *task)
{
    const struct coord_key *key = coord_keys_find(&core->keys, coord_task_name(task));

    if (!is_dropped(task, key) && !is_evicted(core, task, key))
        return false;
    place_anew(core, task);
    return true;
}

/* Dead or left; `member` is NULL when the table lost it. */
static void access_down(struct coord_core *core, struct coord_task *task,
                        const struct coord_key *key, struct coord_member *member)
{
    bool reassignable =
        !member || member->row.state == MODEL_MEMBER_LEFT || coord_now_us(core) >= core->barrier_us;
    struct rt_list *parked = member ? &member->parked : NULL;

    if (core->config.owner_down == COORD_OWNER_DOWN_KEEP && key->maybe_stored) {
        coord_task_wait(core, task, parked, MODEL_REASON_OWNER_DOWN, coord_execute_run);
    } else if (!reassignable) {
        coord_task_wait_until(core, task, parked, MODEL_REASON_BARRIER, core->barrier_us,
                              coord_execute_run);
    } else if (core->mode == COORD_MODE_READ_ONLY) {
        coord_execute_refuse(core, task, MODEL_REASON_READ_ONLY);
    } else if (coord_task_latch(core, task, coord_execute_run)) {
        if (key->phase == COORD_PHASE_PLACING) {
            unplace(core, task, on_unplaced);
            return;
        }
        coord_task_delete_row(task);
        coord_task_set_route(task, coord_task_number(core, task));
        coord_task_commit(core, task, on_forgotten);
    }
}

enum coord_owner coord_execute_owner(struct coord_core *core, struct coord_task *task,
                                     const struct coord_key *key)
{
    struct coord_member *member;

    if (!key || !key->exists || key->phase == COORD_PHASE_UNPLACED)
        return COORD_OWNER_NONE;
    member = coord_members_at(&core->members, key->owner);
    task->member = member;
    if (!member || !coord_member_is_live(member)) {
        access_down(core, task, key, member);
        return COORD_OWNER_HANDLED;
    }
    if (member->row.state == MODEL_MEMBER_ALIVE && !member->ending)
        return COORD_OWNER_READY;
    coord_task_wait(core, task, &member->parked, MODEL_REASON_OWNER_UNREACHABLE, coord_execute_run);
    return COORD_OWNER_HANDLED;
}

/* ---- placement ------------------------------------------------------------------------------- */

struct coord_view coord_execute_view(const struct coord_core *core)
{
    struct coord_view view = {
        .distribution = core->distribution,
        .ranges = core->config.ranges,
        .candidates = core->members.candidates,
        .n_candidates = core->members.n_candidates,
        .cursor = core->cursor,
    };
    const struct coord_task *newest;

    if (rt_list_is_empty(&core->placing))
        return view;
    /* The newest choice counts, whether it has been committed or is under way. */
    newest = RT_LIST_ENTRY(core->placing.previous, const struct coord_task, placing_link);
    if (newest->choice > core->cursor_choice)
        view.cursor = newest->placing;
    return view;
}

static void on_placed(struct coord_core *core, struct coord_task *task)
{
    if (task->outcome == STORE_COMMITTED) {
        coord_execute_run(core, task);
        return;
    }
    coord_task_fail_commit(core, task);
    coord_task_finish(core, task);
}

void coord_execute_place(struct coord_core *core, struct coord_task *task)
{
    const struct model_execute_request *request = coord_execute_request(task);
    struct coord_request asked = {.key = request->key, .value_size = task->value_size};
    struct coord_view view = coord_execute_view(core);
    struct coord_choice choice;

    if (coord_placement_choose(&view, &asked, &core->rng, &choice, NULL) != RT_OK) {
        coord_execute_refuse(core, task, MODEL_REASON_NO_INSTANCE);
        return;
    }
    task->created |= !task->latched->exists;
    task->choice = ++core->n_choices;
    task->placing = choice.ordinal;
    coord_task_expect(core, task, coord_members_at(&core->members, choice.ordinal));
    rt_list_remove(&task->placing_link);
    rt_list_push_back(&core->placing, &task->placing_link);
    task->row = coord_key_row_of(task->latched);
    task->row.phase = COORD_PHASE_PLACING;
    task->row.owner = choice.ordinal;
    task->row.epoch = coord_task_number(core, task);
    task->row.maybe_stored = false;
    task->row.key_lost = false;
    task->row.dropping = false;
    coord_task_put_row(task);
    coord_task_commit(core, task, on_placed);
}

/* ---- activation ------------------------------------------------------------------------------ */

static void on_active(struct coord_core *core, struct coord_task *task)
{
    if (task->outcome != STORE_COMMITTED) {
        coord_task_fail_commit(core, task);
        coord_task_finish(core, task);
        return;
    }
    if (task->choice == 0 || task->choice > core->cursor_choice) {
        core->cursor = task->latched->owner;
        if (task->choice != 0)
            core->cursor_choice = task->choice;
    }
    rt_list_remove(&task->placing_link);
    coord_execute_run(core, task);
}

static void on_refused(struct coord_core *core, struct coord_task *task)
{
    if (task->outcome == STORE_COMMITTED)
        coord_task_fail_answer(core, task);
    else
        coord_task_fail_commit(core, task);
    coord_task_finish(core, task);
}

/* The value does not fit there: as if the key had never been placed. */
static void take_back(struct coord_core *core, struct coord_task *task)
{
    if (!task->created || coord_key_holder(task->latched)) {
        unplace(core, task, on_refused);
        return;
    }
    coord_task_delete_row(task);
    coord_task_set_route(task, coord_task_number(core, task));
    coord_task_commit(core, task, on_refused);
}

static void on_activated(struct coord_core *core, struct coord_task *task)
{
    const struct model_response *response = &task->answer->response;

    if (response->code != RT_OK) {
        if (response->error.reason == MODEL_REASON_NO_ENTRIES)
            take_back(core, task);
        else if (response->error.reason == MODEL_REASON_STALE_EPOCH)
            unplace(core, task, on_unplaced);
        else
            coord_execute_not_ok(core, task, false);
        return;
    }
    task->attempt = 0;
    task->row = coord_key_row_of(task->latched);
    task->row.phase = COORD_PHASE_ACTIVE;
    task->row.release_pending = false;
    if (coord_execute_request(task)->kind == MODEL_STATEMENT_PUT || coord_execute_gives_route(task))
        task->row.maybe_stored = true;
    coord_task_put_row(task);
    if (task->choice == 0 || task->choice > core->cursor_choice)
        coord_rows_put_number(coord_task_txn(task), COORD_ROW_CURSOR, task->row.owner);
    coord_task_set_route(task, task->row.epoch);
    coord_task_commit(core, task, on_active);
}

void coord_execute_activate(struct coord_core *core, struct coord_task *task)
{
    struct model_call *call = model_call_new(MODEL_CALL_ACTIVATE);
    struct model_activate_request *activate = &call->request.activate;

    *activate = (struct model_activate_request){
        .term = core->meta.term,
        .incarnation = task->member->row.incarnation,
        .row = coord_reconcile_row(core, task->latched),
        .value_size = task->value_size,
    };
    if (!rt_arena_copy(&call->arena, activate->row.key, &activate->row.key)) {
        (void)model_call_free(call);
        coord_execute_refuse(core, task, MODEL_REASON_LIMIT_REACHED);
        return;
    }
    task->was_active = false;
    coord_task_call(core, task, call, task->member, ATTEMPT_US, on_activated);
}

/* ---- ready for the statement ----------------------------------------------------------------- */

static void on_marked(struct coord_core *core, struct coord_task *task)
{
    if (task->outcome == STORE_COMMITTED) {
        coord_execute_run(core, task);
        return;
    }
    coord_task_fail_commit(core, task);
    coord_task_finish(core, task);
}

static void mark_stored(struct coord_core *core, struct coord_task *task)
{
    task->row = coord_key_row_of(task->latched);
    task->row.maybe_stored = true;
    coord_task_put_row(task);
    coord_task_commit(core, task, on_marked);
}

bool coord_execute_prepare(struct coord_core *core, struct coord_task *task, bool stores)
{
    if (task->latched->phase == COORD_PHASE_PLACING) {
        coord_execute_activate(core, task);
        return false;
    }
    if ((stores || coord_execute_gives_route(task)) && !task->latched->maybe_stored) {
        mark_stored(core, task);
        return false;
    }
    return true;
}
