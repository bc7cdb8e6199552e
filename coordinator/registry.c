/*
 * Register, Renew, Leave and death. See registry.h. Invariant: from the moment the end of an
 * incarnation is submitted (`ending`) nothing is granted to it any more, and only one transaction
 * about a member is under way at a time (`busy`). Runs under the core's lock.
 */
#include "coordinator/registry.h"

#include "coordinator/evict.h"
#include "coordinator/watch.h"

static uint64_t dead_at(const struct coord_core *core, const struct coord_member *member)
{
    return model_lease_dead_at(&core->config.member_lease, member->last_grant_us);
}

/* Also where the restart barrier and a stop of the core itself allow it. */
static uint64_t may_die_at(const struct coord_core *core, const struct coord_member *member)
{
    uint64_t at_us = dead_at(core, member);

    if (at_us < core->barrier_us)
        at_us = core->barrier_us;
    return at_us < core->grace_until_us ? core->grace_until_us : at_us;
}

struct coord_member *coord_registry_current(struct coord_core *core, const char *name,
                                            uint64_t incarnation)
{
    struct coord_member *member = coord_members_find(&core->members, name);

    if (!member || !coord_member_is_live(member) || member->ending ||
        member->row.incarnation != incarnation)
        return NULL;
    return member;
}

void coord_registry_refuse(struct coord_core *core, struct coord_task *task, const char *name,
                           uint64_t incarnation)
{
    const struct coord_member *member = coord_members_find(&core->members, name);

    if (member && member->ending && coord_member_is_live(member) &&
        member->row.incarnation == incarnation)
        coord_task_fail(core, task, MODEL_REASON_NOT_SERVING,
                        "the end of this incarnation of '%s' is being decided", name);
    else
        coord_task_fail(core, task, MODEL_REASON_INCARNATION_DEAD,
                        "this is not the current incarnation of '%s'", name);
}

static void on_member_timer(struct coord_core *core, struct coord_timer *timer);

void coord_registry_changed(struct coord_core *core, struct coord_member *member)
{
    member->timer.on_due = on_member_timer;
    if (coord_member_is_live(member) && !member->ending)
        coord_timers_set(&core->timers, &member->timer, may_die_at(core, member));
    else
        coord_timers_cancel(&core->timers, &member->timer);
    coord_members_refresh(&core->members);
    coord_watch_member_changed(core, member);
    coord_tasks_wake(core, &member->parked);
}

void coord_registry_start(struct coord_core *core)
{
    for (uint32_t ordinal = 1; ordinal <= core->members.last_ordinal; ordinal++) {
        struct coord_member *member = coord_members_at(&core->members, ordinal);

        if (!member)
            continue;
        member->last_grant_us = coord_now_us(core);
        coord_registry_changed(core, member);
    }
}

/* ---- the end of an incarnation --------------------------------------------------------------- */

/* DEAD or LEFT has its outcome. */
static void on_ended(struct coord_core *core, struct coord_task *task)
{
    struct coord_member *member = task->member;

    member->busy = false;
    if (task->outcome == STORE_COMMITTED) {
        member->row = *task->member_row;
        member->ending = false;
        model_effects_tell(&core->effects, RT_LOG_INFO, "event=member_%s name=%s incarnation=%llu",
                           model_member_state_name(member->row.state), member->name,
                           (unsigned long long)member->row.incarnation);
    } else if (task->outcome == STORE_FULL) {
        member->ending = false;
    }
    coord_registry_changed(core, member);
    if (task->outcome == STORE_FULL && !task->call)
        coord_timers_set(&core->timers, &member->timer, coord_now_us(core) + 1000000);
    if (task->outcome != STORE_COMMITTED) {
        coord_task_fail_commit(core, task);
    } else if (task->call) {
        model_response_ok(&task->call->response, MODEL_CALL_LEAVE);
        coord_task_reply(core, task);
    }
    coord_task_finish(core, task);
}

static void end_member(struct coord_core *core, struct coord_task *task,
                       struct coord_member *member, enum model_member_state state)
{
    task->member = member;
    task->member_row = rt_xmemdup(&member->row, sizeof(member->row));
    task->member_row->state = state;
    member->ending = true;
    member->busy = true;
    coord_members_refresh(&core->members);
    coord_rows_put_member(coord_task_txn(task), member->name, task->member_row);
    coord_task_set_route(task, coord_task_number(core, task));
    coord_task_commit(core, task, on_ended);
}

static void on_member_timer(struct coord_core *core, struct coord_timer *timer)
{
    struct coord_member *member = RT_CONTAINER_OF(timer, struct coord_member, timer);
    uint64_t at_us = may_die_at(core, member);

    if (member->busy || core->mode == COORD_MODE_READ_ONLY)
        return;
    if (coord_now_us(core) < at_us) {
        coord_timers_set(&core->timers, timer, at_us);
        return;
    }
    end_member(core, coord_task_new(core, NULL, (struct rt_bytes){0}, on_ended), member,
               MODEL_MEMBER_DEAD);
}

void coord_registry_leave(struct coord_core *core, struct coord_task *task)
{
    const struct model_leave_request *request = &task->call->request.leave;
    struct coord_member *member = coord_members_find(&core->members, request->name);
    bool is_current = member && member->row.incarnation == request->incarnation;

    if (member && member->busy) {
        coord_task_wait(core, task, &member->parked, MODEL_REASON_DEADLINE_EXCEEDED,
                        coord_registry_leave);
        return;
    }
    if (is_current && member->row.state == MODEL_MEMBER_LEFT) {
        model_response_ok(&task->call->response, MODEL_CALL_LEAVE);
        coord_task_reply(core, task);
    } else if (!is_current || !coord_member_is_live(member) || member->ending) {
        coord_registry_refuse(core, task, request->name, request->incarnation);
    } else if (core->mode == COORD_MODE_READ_ONLY) {
        coord_task_fail(core, task, MODEL_REASON_READ_ONLY, "an earlier commit failed");
    } else {
        end_member(core, task, member, MODEL_MEMBER_LEFT);
        return;
    }
    coord_task_finish(core, task);
}

/* Of the process that this incarnation was given to, and not of a copy of it. */
static bool is_registered(const struct coord_member *member,
                          const struct model_renew_request *request)
{
    return model_id_equal(&member->row.boot_id, &request->boot_id) &&
           model_id_equal(&member->row.store_id, &request->store_id);
}

void coord_registry_renew(struct coord_core *core, struct coord_task *task)
{
    const struct model_renew_request *request = &task->call->request.renew;
    struct coord_member *member = coord_registry_current(core, request->name, request->incarnation);
    struct model_response *response = &task->call->response;

    if (!member) {
        coord_registry_refuse(core, task, request->name, request->incarnation);
    } else if (!is_registered(member, request)) {
        coord_task_fail(core, task, MODEL_REASON_INCARNATION_DEAD,
                        "another process is this incarnation of '%s'", request->name);
    } else {
        member->last_grant_us = coord_now_us(core);
        coord_members_set_free(&core->members, member, request->entries_free);
        model_response_ok(response, MODEL_CALL_RENEW);
        response->renew.lease_ms = core->config.member_lease.duration_us / 1000;
        coord_evict_renewed(core, member, task->call);
        coord_task_reply(core, task);
    }
    coord_task_finish(core, task);
}

/* ---- register -------------------------------------------------------------------------------- */

/* Ends the task with the refusal. */
static void refuse_name(struct coord_core *core, struct coord_task *task,
                        const struct coord_member *member, enum model_reason reason,
                        uint64_t free_at_us, const char *why)
{
    uint64_t now_us = coord_now_us(core);
    struct model_call *call = task->call;
    uint64_t expires_in_ms = free_at_us > now_us ? (free_at_us - now_us) / 1000 + 1 : 0;

    coord_task_fail(core, task, reason, "instance name '%s': %s", member->name, why);
    call->response.error.expires_in_ms = expires_in_ms;
    call->response.error.retry_after_ms = (uint32_t)expires_in_ms;
    coord_task_finish(core, task);
}

static bool address_is_valid(const char *address)
{
    for (const char *c = address; *c; c++) {
        if (*c <= ' ' || *c > '~')
            return false;
    }
    return *address != '\0';
}

/* false: the task has ended with the error. */
static bool check_register(struct coord_core *core, struct coord_task *task)
{
    const struct model_register_request *request = &task->call->request.reg;
    struct rt_error err = RT_ERROR_INIT;
    enum model_reason reason = MODEL_REASON_INVALID_FIELD;
    const char *what = NULL;

    if (model_name_check("instance name", rt_bytes_of_string(request->name), &err) != RT_OK)
        what = err.message;
    else if (!address_is_valid(request->address))
        what = "the address must be printable and not empty";
    else if (model_id_is_none(&request->store_id) || model_id_is_none(&request->boot_id))
        what = "store id and boot id must be set";
    else if (request->entries_total == 0 || request->entry_size == 0)
        what = "entries and their size must be at least 1";
    else if (!model_id_is_none(&request->cluster_id) &&
             !model_id_equal(&request->cluster_id, &core->meta.cluster_id)) {
        reason = MODEL_REASON_WRONG_CLUSTER;
        what = "the data directory belongs to another cluster";
    } else if (core->mode == COORD_MODE_READ_ONLY) {
        reason = MODEL_REASON_READ_ONLY;
        what = "an earlier commit failed";
    }
    if (!what)
        return true;
    coord_task_fail(core, task, reason, "%s", what);
    coord_task_finish(core, task);
    return false;
}

static void reply_registered(struct coord_core *core, struct coord_task *task,
                             const struct coord_member *member)
{
    struct model_response *response;

    if (task->call) {
        response = &task->call->response;
        model_response_ok(response, MODEL_CALL_REGISTER);
        response->reg.cluster_id = core->meta.cluster_id;
        response->reg.incarnation = member->row.incarnation;
        response->reg.lease_ms = core->config.member_lease.duration_us / 1000;
        response->reg.key_max = core->config.key_max;
    }
    coord_task_reply(core, task);
    coord_task_finish(core, task);
}

static void begin_incarnation(struct coord_core *core, struct coord_task *task)
{
    struct coord_member *member = task->member;

    member->is_frozen = false;
    if (coord_member_is_live(member))
        member->takeover_us = coord_now_us(core);
    member->row = *task->member_row;
    member->ending = false;
    member->last_grant_us = coord_now_us(core);
    member->entries_free = member->row.entries_total;
    member->reconcile.next_part = 0;
    member->reconcile.listed = false;
    model_effects_tell(&core->effects, RT_LOG_INFO,
                       "event=registered name=%s incarnation=%llu address=%s", member->name,
                       (unsigned long long)member->row.incarnation, member->row.address);
}

static void on_registered(struct coord_core *core, struct coord_task *task)
{
    struct coord_member *member = task->member;
    bool is_new = member->row.incarnation == 0;

    member->busy = false;
    if (is_new) {
        core->registering = false;
        coord_tasks_wake(core, &core->registrars);
    }
    if (task->outcome == STORE_COMMITTED) {
        begin_incarnation(core, task);
        coord_registry_changed(core, member);
        reply_registered(core, task, member);
        return;
    }
    if (task->outcome == STORE_FULL)
        member->ending = false;
    coord_registry_changed(core, member);
    if (is_new && task->outcome == STORE_FULL) {
        rt_assert(rt_list_is_empty(&member->parked));
        coord_members_remove(&core->members, member);
    }
    coord_task_fail_commit(core, task);
    coord_task_finish(core, task);
}

static void submit_incarnation(struct coord_core *core, struct coord_task *task,
                               struct coord_member *member)
{
    const struct model_register_request *request = &task->call->request.reg;
    struct coord_member_row row = {
        .ordinal = member->row.ordinal,
        .state = MODEL_MEMBER_JOINING,
        .incarnation = coord_task_number(core, task),
        .store_id = request->store_id,
        .boot_id = request->boot_id,
        .machine_id = request->machine_id,
        .local_store = request->local_store,
        .entries_total = request->entries_total,
        .entry_size = request->entry_size,
    };

    memcpy(row.address, request->address, sizeof(row.address));
    task->member = member;
    task->member_row = rt_xmemdup(&row, sizeof(row));
    member->busy = true;
    if (coord_member_is_live(member))
        member->ending = true;
    coord_members_refresh(&core->members);
    coord_rows_put_member(coord_task_txn(task), member->name, &row);
    coord_task_set_route(task, row.incarnation);
    coord_task_commit(core, task, on_registered);
}

static void register_new(struct coord_core *core, struct coord_task *task)
{
    const char *name = task->call->request.reg.name;

    if (core->registering) {
        coord_task_wait(core, task, &core->registrars, MODEL_REASON_DEADLINE_EXCEEDED,
                        coord_registry_register);
        return;
    }
    if (core->members.last_ordinal >= MODEL_MEMBERS_MAX) {
        coord_task_fail(core, task, MODEL_REASON_LIMIT_REACHED, "%d instance names are known",
                        MODEL_MEMBERS_MAX);
        coord_task_finish(core, task);
        return;
    }
    core->registering = true;
    submit_incarnation(core, task,
                       coord_members_add(&core->members, name, core->members.last_ordinal + 1));
}

/* A live member of this name registers, or something that calls itself so. */
static void register_live(struct coord_core *core, struct coord_task *task,
                          struct coord_member *member)
{
    const struct model_register_request *request = &task->call->request.reg;
    const struct coord_member_row *row = &member->row;
    uint64_t thaws_us = member->takeover_us + core->config.member_lease.duration_us;
    bool same_store = model_id_equal(&row->store_id, &request->store_id);
    bool same_machine = model_id_equal(&row->machine_id, &request->machine_id) &&
                        !model_id_is_none(&row->machine_id);

    if (same_store && !member->ending && model_id_equal(&row->boot_id, &request->boot_id)) {
        reply_registered(core, task, member);
    } else if (!same_store) {
        refuse_name(core, task, member, MODEL_REASON_NAME_IN_USE, may_die_at(core, member),
                    "a live instance has it");
    } else if (!same_machine || !row->local_store || !request->local_store) {
        refuse_name(core, task, member, MODEL_REASON_NAME_IN_USE, may_die_at(core, member),
                    "its earlier process may still run elsewhere");
    } else if (member->takeover_us != 0 && coord_now_us(core) < thaws_us) {
        if (!member->is_frozen)
            model_effects_tell(&core->effects, RT_LOG_ERROR, "event=name_frozen name=%s",
                               member->name);
        member->is_frozen = true;
        refuse_name(core, task, member, MODEL_REASON_NAME_FROZEN, thaws_us,
                    "two takeovers within one lease");
    } else {
        submit_incarnation(core, task, member);
    }
}

void coord_registry_register(struct coord_core *core, struct coord_task *task)
{
    const struct model_register_request *request = &task->call->request.reg;
    struct coord_member *member;
    struct coord_member *keeper;

    if (!check_register(core, task))
        return;
    member = coord_members_find(&core->members, request->name);
    keeper = coord_members_find_store(&core->members, &request->store_id);
    if (member && member->busy)
        coord_task_wait(core, task,
                        member->row.incarnation == 0 ? &core->registrars : &member->parked,
                        MODEL_REASON_DEADLINE_EXCEEDED, coord_registry_register);
    else if (keeper && keeper != member)
        refuse_name(core, task, keeper, MODEL_REASON_STORE_BELONGS_TO, 0,
                    "the data directory is this instance's");
    else if (!member)
        register_new(core, task);
    else if (coord_member_is_live(member))
        register_live(core, task, member);
    else
        submit_incarnation(core, task, member);
}
