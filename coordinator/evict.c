/*
 * Evicted keys: see evict.h. Invariant: a key is deleted only as the ownership that the owner had
 * dropped when it answered; of a newer one the answer says nothing. A key that is left out here
 * (the write was not answered, the disk is full) is in its owner's Renew until it is gone, and is
 * found gone at its next access: see coord_execute_dropped(). Runs under the core's lock.
 *
 * A write waits here for the latches of other keys while it has one. That cannot go round in a
 * circle: whoever has the latch of an evicted key was answered by the owner before the eviction, or
 * will be refused, and so waits only for what came before.
 */
#include "coordinator/evict.h"

#include "coordinator/execute.h"

static void on_deleted(struct coord_core *core, struct coord_task *task)
{
    coord_task_finish(core, task);
}

static void evict(struct coord_core *core, struct coord_task *task)
{
    const struct coord_key *key;

    if (!coord_task_latch(core, task, evict))
        return;
    key = task->latched;
    if (!key->exists || key->phase != COORD_PHASE_ACTIVE || key->epoch != task->epoch ||
        core->mode == COORD_MODE_READ_ONLY) {
        coord_task_finish(core, task);
        return;
    }
    coord_task_delete_row(task);
    coord_task_set_route(task, coord_task_number(core, task));
    coord_task_commit(core, task, on_deleted);
}

static void begin_one(struct coord_core *core, struct coord_task *write, struct rt_bytes name)
{
    const struct coord_key *key =
        name.size >= 1 && name.size <= MODEL_KEY_MAX ? coord_keys_find(&core->keys, name) : NULL;
    struct coord_task *task;

    if (!key || key == write->latched || key->owner != write->member->row.ordinal ||
        key->epoch > write->asked_at)
        return;
    task = coord_task_new(core, NULL, name, evict);
    task->epoch = key->epoch;
    task->evictor = write;
    rt_list_push_back(&write->evictions, &task->evict_link);
    coord_task_ready(core, task, NULL);
}

bool coord_evict_begin(struct coord_core *core, struct coord_task *task, coord_step_fn step)
{
    const struct model_data_response *data = &task->answer->response.data;

    if (task->evicts)
        return false;
    task->evicts = true;
    for (size_t i = 0; i < data->n_evicted; i++)
        begin_one(core, task, data->evicted[i]);
    if (rt_list_is_empty(&task->evictions))
        return false;
    task->sent = true;
    coord_task_wait(core, task, NULL, MODEL_REASON_DEADLINE_EXCEEDED, step);
    return true;
}

/* ---- told again in Renew --------------------------------------------------------------------- */

/* The table still has the very ownership that was dropped. */
static bool is_owned(const struct coord_member *member, const struct coord_key *key, uint64_t epoch)
{
    return key && key->exists && key->owner == member->row.ordinal && key->epoch == epoch;
}

/* Of one that is being placed the owner says by itself, when it is asked, that it is gone. */
static void delete_later(struct coord_core *core, struct coord_member *member,
                         const struct model_evicted *evicted)
{
    struct coord_task *task = coord_task_new(core, NULL, evicted->key, evict);

    task->epoch = evicted->epoch;
    task->renewed = member;
    member->n_evictions++;
    coord_task_ready(core, task, NULL);
}

void coord_evict_renewed(struct coord_core *core, struct coord_member *member,
                         struct model_call *call)
{
    const struct model_renew_request *request = &call->request.renew;
    struct model_renew_response *response = &call->response.renew;
    bool may_begin = member->n_evictions == 0 && core->mode == COORD_MODE_SERVING;

    if (request->n_evicted == 0)
        return;
    response->evicted_epochs =
        rt_arena_alloc(&call->arena, request->n_evicted * sizeof(*response->evicted_epochs));
    if (!response->evicted_epochs)
        return;
    for (size_t i = 0; i < request->n_evicted; i++) {
        const struct model_evicted *evicted = &request->evicted[i];
        const struct coord_key *key = evicted->key.size >= 1 && evicted->key.size <= MODEL_KEY_MAX
                                          ? coord_keys_find(&core->keys, evicted->key)
                                          : NULL;

        if (!is_owned(member, key, evicted->epoch))
            response->evicted_epochs[response->n_evicted_epochs++] = evicted->epoch;
        else if (may_begin)
            delete_later(core, member, evicted);
    }
}
