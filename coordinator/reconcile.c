/*
 * Reconcile and PullRows: what an instance that starts shall serve. See registry.h. Invariant: a
 * key that the table attributes to the instance is either named in an answer or its row is being
 * changed, and then the walk comes back to it. Runs under the core's lock.
 */
#include "coordinator/registry.h"

enum {
    WALK_SLOTS_MAX = 65536 /* of the key table, in one part */
};

struct model_row coord_reconcile_row(const struct coord_core *core, const struct coord_key *key)
{
    bool locked = coord_key_holder(key) != NULL;
    uint64_t floor = key->newest_token > key->epoch ? key->newest_token : key->epoch;

    return (struct model_row){
        .key = coord_key_name(key),
        .epoch = key->epoch,
        .token_floor = locked ? key->extra->token : floor,
        .locked = locked,
        .locking = core->config.locking,
        .key_lost = key->key_lost,
    };
}

/* The rows of one answer, in the call's arena. */
struct answer {
    struct model_call *call;
    struct model_row *rows;
    size_t n_rows;
    bool full; /* the arena */
};

static void add_row(const struct coord_core *core, struct answer *answer,
                    const struct coord_key *key, bool sets_lost)
{
    struct model_row row = coord_reconcile_row(core, key);

    row.sets_lost = sets_lost;
    if (!rt_arena_copy(&answer->call->arena, row.key, &row.key))
        answer->full = true;
    else
        answer->rows[answer->n_rows++] = row;
}

static bool begin_answer(struct coord_core *core, struct coord_task *task, struct answer *answer)
{
    *answer = (struct answer){.call = task->call};
    answer->rows =
        rt_arena_alloc(&task->call->arena, MODEL_RECONCILE_ROWS_MAX * sizeof(struct model_row));
    if (answer->rows)
        return true;
    coord_task_fail(core, task, MODEL_REASON_LIMIT_REACHED, "out of memory");
    coord_task_finish(core, task);
    return false;
}

static bool keys_are_valid(const struct model_reconcile_request *request)
{
    for (size_t i = 0; i < request->n_rows; i++) {
        if (request->rows[i].key.size < 1 || request->rows[i].key.size > MODEL_KEY_MAX)
            return false;
    }
    return true;
}

/* NULL, or what is wrong with the part. */
static const char *check_part(const struct coord_reconcile *reconcile,
                              const struct model_reconcile_request *request)
{
    if (request->n_rows > MODEL_RECONCILE_ROWS_MAX)
        return "too many rows in one part";
    if (!keys_are_valid(request))
        return "a key is empty or too long";
    if (request->part != 0 && request->part != reconcile->next_part)
        return "parts are out of order: start over";
    if (request->part != 0 && reconcile->listed && request->n_rows > 0)
        return "rows after the last part: start over";
    return NULL;
}

static bool any_row_is_changing(struct coord_core *core,
                                const struct model_reconcile_request *request)
{
    for (size_t i = 0; i < request->n_rows; i++) {
        const struct coord_key *key = coord_keys_find(&core->keys, request->rows[i].key);

        if (key && key->extra && key->extra->committing)
            return true;
    }
    return false;
}

static void judge_held(struct coord_core *core, struct coord_member *member,
                       const struct model_reconcile_request *request, struct answer *answer)
{
    for (size_t i = 0; i < request->n_rows; i++) {
        const struct model_held_row *held = &request->rows[i];
        struct coord_key *key = coord_keys_find(&core->keys, held->key);

        if (!key || !key->exists)
            continue;
        if (key->owner == member->row.ordinal && key->epoch == held->epoch) {
            key->reconcile_mark = member->reconcile.round;
            add_row(core, answer, key, false);
        } else if (held->epoch > key->epoch && key->epoch != 0) {
            model_effects_tell(&core->effects, RT_LOG_ERROR,
                               "event=held_row_newer name=%s held=%llu table=%llu", member->name,
                               (unsigned long long)held->epoch, (unsigned long long)key->epoch);
        }
    }
}

/* The key is the member's, which did not report it. What an ALIVE member says here is a copy of
 * what it said while it was JOINING: it is answered again and changes nothing. */
static void judge_missing(struct coord_core *core, struct coord_task *task,
                          struct coord_member *member, struct coord_key *key, struct answer *answer)
{
    struct coord_key_row row;

    if (member->row.state == MODEL_MEMBER_JOINING && key->maybe_stored && !key->key_lost &&
        !key->dropping) {
        key->key_lost = true;
        row = coord_key_row_of(key);
        coord_rows_put_key(coord_task_txn(task), coord_key_name(key), &row);
    }
    key->reconcile_mark = member->reconcile.round;
    add_row(core, answer, key,
            !key->maybe_stored && !key->dropping && key->phase == COORD_PHASE_ACTIVE);
}

/* Goes on through the key table; true when all of it has been seen. */
static bool walk(struct coord_core *core, struct coord_task *task, struct coord_member *member,
                 struct answer *answer)
{
    struct coord_reconcile *reconcile = &member->reconcile;
    size_t start;

    if (reconcile->layout != core->keys.layout || reconcile->position == 0) {
        reconcile->layout = core->keys.layout;
        reconcile->position = 0;
        reconcile->skipped = false;
    }
    start = reconcile->position;
    while (answer->n_rows < MODEL_RECONCILE_ROWS_MAX && !answer->full &&
           reconcile->position - start < WALK_SLOTS_MAX) {
        struct coord_key *key = coord_keys_next(&core->keys, &reconcile->position,
                                                WALK_SLOTS_MAX - (reconcile->position - start));

        if (!key)
            break;
        if (!key->exists || key->owner != member->row.ordinal ||
            key->reconcile_mark == reconcile->round)
            continue;
        if (key->extra && key->extra->committing)
            reconcile->skipped = true;
        else
            judge_missing(core, task, member, key, answer);
    }
    if (reconcile->position < core->keys.n_slots)
        return false;
    reconcile->position = 0;
    return !reconcile->skipped;
}

static void on_part_committed(struct coord_core *core, struct coord_task *task)
{
    struct coord_member *member = task->member;

    member->busy = false;
    if (task->outcome == STORE_COMMITTED) {
        if (task->member_row) {
            member->row = *task->member_row;
            model_effects_tell(&core->effects, RT_LOG_INFO, "event=member_alive name=%s",
                               member->name);
        }
        coord_task_reply(core, task);
    } else {
        coord_task_fail_commit(core, task);
    }
    coord_registry_changed(core, member);
    coord_task_finish(core, task);
}

static void answer_part(struct coord_core *core, struct coord_task *task,
                        struct coord_member *member, const struct answer *answer, bool done)
{
    struct model_response *response = &task->call->response;

    if (answer->full) {
        coord_task_fail(core, task, MODEL_REASON_LIMIT_REACHED, "out of memory");
        coord_task_finish(core, task);
        return;
    }
    model_response_ok(response, MODEL_CALL_RECONCILE);
    response->reconcile.rows = answer->rows;
    response->reconcile.n_rows = answer->n_rows;
    response->reconcile.done = done;
    if (done && member->row.state == MODEL_MEMBER_JOINING) {
        task->member_row = rt_xmemdup(&member->row, sizeof(member->row));
        task->member_row->state = MODEL_MEMBER_ALIVE;
        coord_rows_put_member(coord_task_txn(task), member->name, task->member_row);
        coord_task_set_route(task, coord_task_number(core, task));
    }
    if (!task->txn) {
        coord_task_reply(core, task);
        coord_task_finish(core, task);
        return;
    }
    task->member = member;
    member->busy = true;
    coord_task_commit(core, task, on_part_committed);
}

static void take_part(struct coord_core *core, struct coord_task *task, struct coord_member *member)
{
    const struct model_reconcile_request *request = &task->call->request.reconcile;
    struct coord_reconcile *reconcile = &member->reconcile;
    struct answer answer;
    bool done = false;

    if (!begin_answer(core, task, &answer))
        return;
    if (request->part == 0) {
        reconcile->round++;
        reconcile->listed = false;
        reconcile->position = 0;
    }
    reconcile->next_part = request->part + 1;
    judge_held(core, member, request, &answer);
    if (request->last)
        reconcile->listed = true;
    if (reconcile->listed)
        done = walk(core, task, member, &answer);
    answer_part(core, task, member, &answer, done);
}

void coord_reconcile_part(struct coord_core *core, struct coord_task *task)
{
    const struct model_reconcile_request *request = &task->call->request.reconcile;
    struct coord_member *member = coord_registry_current(core, request->name, request->incarnation);
    const char *wrong = member ? check_part(&member->reconcile, request) : NULL;

    if (!member) {
        coord_registry_refuse(core, task, request->name, request->incarnation);
    } else if (wrong) {
        coord_task_fail(core, task, MODEL_REASON_INVALID_FIELD, "reconcile: %s", wrong);
    } else if (core->mode == COORD_MODE_READ_ONLY) {
        coord_task_fail(core, task, MODEL_REASON_READ_ONLY, "an earlier commit failed");
    } else if (member->busy) {
        coord_task_wait(core, task, &member->parked, MODEL_REASON_DEADLINE_EXCEEDED,
                        coord_reconcile_part);
        return;
    } else if (!any_row_is_changing(core, request)) {
        take_part(core, task, member);
        return;
    } else if (coord_task_back_off(core, task, coord_reconcile_part)) {
        return;
    } else {
        coord_task_fail(core, task, MODEL_REASON_DEADLINE_EXCEEDED, "rows are being changed");
    }
    coord_task_finish(core, task);
}

static void pull(struct coord_core *core, struct coord_task *task,
                 const struct coord_member *member)
{
    const struct model_pull_rows_request *request = &task->call->request.pull_rows;
    struct model_response *response = &task->call->response;
    struct answer answer;

    if (!begin_answer(core, task, &answer))
        return;
    for (size_t i = 0; i < request->n_keys && !answer.full; i++) {
        const struct coord_key *key = coord_keys_find(&core->keys, request->keys[i]);

        if (key && key->exists && key->owner == member->row.ordinal)
            add_row(core, &answer, key, false);
    }
    if (answer.full) {
        coord_task_fail(core, task, MODEL_REASON_LIMIT_REACHED, "out of memory");
    } else {
        model_response_ok(response, MODEL_CALL_PULL_ROWS);
        response->pull_rows.rows = answer.rows;
        response->pull_rows.n_rows = answer.n_rows;
        coord_task_reply(core, task);
    }
    coord_task_finish(core, task);
}

void coord_reconcile_pull(struct coord_core *core, struct coord_task *task)
{
    const struct model_pull_rows_request *request = &task->call->request.pull_rows;
    struct coord_member *member = coord_registry_current(core, request->name, request->incarnation);

    if (member && request->n_keys <= MODEL_RECONCILE_ROWS_MAX) {
        pull(core, task, member);
        return;
    }
    if (!member)
        coord_registry_refuse(core, task, request->name, request->incarnation);
    else
        coord_task_fail(core, task, MODEL_REASON_INVALID_FIELD, "at most %d keys in one request",
                        MODEL_RECONCILE_ROWS_MAX);
    coord_task_finish(core, task);
}
