/*
 * Inspection: see admin.h. Invariant: answers hold copies, since the table goes on changing while
 * they are on their way. Runs under the core's lock.
 */
#include "coordinator/admin.h"

#include "coordinator/execute.h"

enum {
    STATUS_READ_US = 1000000 /* how long KEY_STATUS waits for the owner */
};

bool coord_admin_check_page(struct coord_core *core, struct coord_task *task, size_t *ret_size)
{
    const struct model_page_request *request = &task->call->request.page;

    *ret_size = request->page_size == 0 ? MODEL_PAGE_MAX : request->page_size;
    if (*ret_size <= MODEL_PAGE_MAX && request->prefix.size <= MODEL_KEY_MAX &&
        request->after.size <= MODEL_KEY_MAX)
        return true;
    coord_task_fail(core, task, MODEL_REASON_INVALID_FIELD, "page size, prefix or start too large");
    coord_task_finish(core, task);
    return false;
}

void coord_admin_fail_memory(struct coord_core *core, struct coord_task *task)
{
    coord_task_fail(core, task, MODEL_REASON_LIMIT_REACHED, "out of memory");
    coord_task_finish(core, task);
}

void coord_admin_copy_name(char *target, const char *name)
{
    memset(target, 0, MODEL_NAME_MAX + 1);
    memcpy(target, name, strnlen(name, MODEL_NAME_MAX));
}

/* ---- instances ------------------------------------------------------------------------------- */

static void describe_instance(const struct coord_core *core, const struct coord_member *member,
                              struct model_instance_info *info)
{
    *info = (struct model_instance_info){
        .state = member->row.state,
        .incarnation = member->row.incarnation,
        .ordinal = member->row.ordinal,
        .entries_free = member->entries_free,
        .entries_total = member->row.entries_total,
        .n_keys = member->n_keys,
        .last_renew_age_ms = (coord_now_us(core) - member->last_grant_us) / 1000,
    };
    memcpy(info->name, member->name, sizeof(info->name));
    memcpy(info->address, member->row.address, sizeof(info->address));
}

/* Ordinal of the member to start behind; UINT32_MAX for a name that nobody has. */
static uint32_t ordinal_of(const struct coord_core *core, struct rt_bytes name)
{
    char text[MODEL_NAME_MAX + 1] = {0};
    const struct coord_member *member;

    if (name.size == 0)
        return 0;
    if (name.size > MODEL_NAME_MAX)
        return UINT32_MAX;
    memcpy(text, name.data, name.size);
    member = coord_members_find(&core->members, text);
    return member ? member->row.ordinal : UINT32_MAX;
}

void coord_admin_list_instances(struct coord_core *core, struct coord_task *task)
{
    struct model_list_instances_response *list = &task->call->response.list_instances;
    uint32_t after = ordinal_of(core, task->call->request.page.after);
    struct model_instance_info *instances;
    size_t page_size;

    if (!coord_admin_check_page(core, task, &page_size))
        return;
    instances = rt_arena_alloc(&task->call->arena, page_size * sizeof(*instances));
    if (after == UINT32_MAX) {
        coord_task_fail(core, task, MODEL_REASON_INVALID_FIELD, "no instance of that name");
        coord_task_finish(core, task);
        return;
    }
    if (!instances) {
        coord_admin_fail_memory(core, task);
        return;
    }
    model_response_ok(&task->call->response, MODEL_CALL_LIST_INSTANCES);
    list->instances = instances;
    for (uint32_t i = after + 1; i <= core->members.last_ordinal; i++) {
        const struct coord_member *member = coord_members_at(&core->members, i);

        if (!member || member->row.incarnation == 0)
            continue;
        if (list->n_instances == page_size) {
            list->more = true;
            break;
        }
        describe_instance(core, member, &instances[list->n_instances++]);
    }
    coord_task_reply(core, task);
    coord_task_finish(core, task);
}

/* ---- one key --------------------------------------------------------------------------------- */

static void simulate_placement(struct coord_core *core, struct model_key_status_response *status,
                               struct rt_bytes name)
{
    struct coord_view view = coord_execute_view(core);
    struct coord_request request = {.key = name};
    struct rt_rng rng = core->rng;
    struct coord_choice choice;

    if (coord_placement_choose(&view, &request, &rng, &choice, NULL) == RT_OK)
        coord_admin_copy_name(status->would_place,
                              coord_members_at(&core->members, choice.ordinal)->name);
}

static bool describe_waiters(const struct coord_core *core, struct model_call *call,
                             const struct coord_key *key, struct model_key_status_response *status)
{
    size_t n_waiters = key->extra ? key->extra->n_waiters : 0;

    if (n_waiters == 0)
        return true;
    status->waiters = rt_arena_alloc(&call->arena, n_waiters * sizeof(*status->waiters));
    if (!status->waiters)
        return false;
    rt_list_for_each (node, &key->extra->waiters) {
        const struct coord_waiter *waiter = RT_LIST_ENTRY(node, struct coord_waiter, key_link);

        if (coord_locks_has_gone(core, waiter))
            continue;
        if (!rt_arena_copy(&call->arena, rt_bytes_of_string(waiter->session->row.name),
                           &status->waiters[status->n_waiters]))
            return false;
        status->n_waiters++;
    }
    return true;
}

/* All but the value; false when memory is out. */
static bool describe_status(struct coord_core *core, struct coord_task *task,
                            const struct coord_key *key)
{
    struct model_key_status_response *status = &task->call->response.key_status;
    const struct coord_member *owner;
    const struct coord_session *holder;

    model_response_ok(&task->call->response, MODEL_CALL_KEY_STATUS);
    simulate_placement(core, status, coord_task_name(task));
    if (!key)
        return true;
    owner = coord_members_at(&core->members, key->owner);
    holder = coord_key_holder(key);
    status->known = key->exists;
    status->epoch = key->epoch;
    if (owner) {
        coord_admin_copy_name(status->owner, owner->name);
        status->owner_state = owner->row.state;
    }
    if (holder)
        coord_admin_copy_name(status->holder, holder->row.name);
    return describe_waiters(core, task->call, key, status);
}

static void reply_status(struct coord_core *core, struct coord_task *task)
{
    const struct coord_key *key = coord_keys_find(&core->keys, coord_task_name(task));
    struct model_key_status_response *status = &task->call->response.key_status;
    const struct model_response *answer = task->answer ? &task->answer->response : NULL;

    if (!describe_status(core, task, key)) {
        coord_admin_fail_memory(core, task);
        return;
    }
    status->value_unavailable = key && key->phase == COORD_PHASE_ACTIVE;
    if (answer && answer->code == RT_OK && key && key->epoch == task->epoch) {
        status->value_unavailable = false;
        status->has_value = answer->data.has_value;
        status->version = answer->data.version;
        status->stored = answer->data.stored;
        if (!rt_arena_copy(&task->call->arena, answer->data.value, &status->value)) {
            coord_admin_fail_memory(core, task);
            return;
        }
    }
    coord_task_reply(core, task);
    coord_task_finish(core, task);
}

/* false: the owner cannot be asked. */
static bool ask_owner(struct coord_core *core, struct coord_task *task, const struct coord_key *key)
{
    struct coord_member *member = coord_members_at(&core->members, key->owner);
    struct model_data_request *data;
    struct model_call *call;

    if (key->phase != COORD_PHASE_ACTIVE || !member || member->row.state != MODEL_MEMBER_ALIVE)
        return false;
    call = model_call_new(MODEL_CALL_READ);
    data = &call->request.data;
    *data = (struct model_data_request){
        .header = {.cluster_id = core->meta.cluster_id,
                   .epoch = key->epoch,
                   .incarnation = member->row.incarnation,
                   .first_epoch = key->epoch,
                   .term = core->meta.term},
        .consistency = MODEL_READ_STALE_OK,
    };
    coord_admin_copy_name(data->header.owner, member->name);
    if (!rt_arena_copy(&call->arena, coord_key_name(key), &data->header.key)) {
        (void)model_call_free(call);
        return false;
    }
    task->epoch = key->epoch;
    coord_task_call(core, task, call, member, STATUS_READ_US, reply_status);
    return true;
}

bool coord_admin_check_key(struct coord_core *core, struct coord_task *task)
{
    size_t size = task->call->request.key_status.key.size;

    if (size >= 1 && size <= MODEL_KEY_MAX)
        return true;
    coord_task_fail(core, task, size == 0 ? MODEL_REASON_KEY_EMPTY : MODEL_REASON_KEY_TOO_LONG,
                    "key has %zu bytes, valid are 1 to %d", size, MODEL_KEY_MAX);
    coord_task_finish(core, task);
    return false;
}

void coord_admin_key_status(struct coord_core *core, struct coord_task *task)
{
    const struct coord_key *key;

    if (!coord_admin_check_key(core, task))
        return;
    key = coord_keys_find(&core->keys, coord_task_name(task));
    if (!key || !ask_owner(core, task, key))
        reply_status(core, task);
}
