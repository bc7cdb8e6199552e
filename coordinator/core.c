/*
 * The coordinator core: life cycle, loading, dispatch. See core.h. Invariant: between two calls
 * from outside no task is ready; whatever entered has been carried as far as it can go. All under
 * the one lock of the core's user.
 */
#include "coordinator/core.h"

#include "coordinator/admin.h"
#include "coordinator/compaction.h"
#include "coordinator/distribution.h"
#include "coordinator/execute.h"
#include "coordinator/locks.h"
#include "coordinator/registry.h"
#include "coordinator/session_calls.h"
#include "coordinator/watch.h"
#include "runtime/base/alloc.h"

struct coord_core *coord_core_new(const struct coord_config *config, const struct rt_env *env)
{
    struct coord_core *core = rt_xalloc(sizeof(*core));

    rt_assert(config->key_max >= 1 && config->key_max <= MODEL_KEY_MAX);
    core->config = *config;
    core->distribution = config->distribution;
    core->env = *env;
    rt_rng_seed(&core->rng, rt_env_random(env));
    coord_keys_init(&core->keys, rt_env_random(env));
    coord_watch_init(&core->watch);
    model_effects_init(&core->effects);
    rt_list_init(&core->tasks);
    rt_list_init(&core->ready);
    rt_list_init(&core->early);
    rt_list_init(&core->placing);
    rt_list_init(&core->registrars);
    coord_compaction_init(core);
    return core;
}

struct coord_core *coord_core_free(struct coord_core *core)
{
    struct rt_list *node;

    if (!core)
        return NULL;
    while ((node = rt_list_pop_front(&core->effects.txns)))
        (void)store_txn_free(RT_LIST_ENTRY(node, struct store_txn, link));
    coord_tasks_deinit(core);
    coord_locks_deinit(core);
    coord_keys_deinit(&core->keys);
    coord_watch_deinit(&core->watch);
    coord_sessions_deinit(&core->sessions);
    coord_members_deinit(&core->members);
    coord_timers_deinit(&core->timers);
    rt_buffer_deinit(&core->operations);
    return rt_free(core);
}

struct model_effects *coord_core_effects(struct coord_core *core)
{
    return &core->effects;
}

bool coord_core_is_serving(const struct coord_core *core)
{
    return core->mode == COORD_MODE_SERVING && !core->draining;
}

const struct model_id *coord_core_cluster_id(const struct coord_core *core)
{
    return &core->meta.cluster_id;
}

/* Waiting may take as long as a deadline: the client repeats the request at the next process. */
static bool only_waits(const struct coord_task *task)
{
    if (!task->call || task->sent || task->granted ||
        (task->state != COORD_TASK_QUEUED && task->state != COORD_TASK_WAITING))
        return false;
    return task->call->request.kind >= MODEL_CALL_EXECUTE &&
           task->call->request.kind <= MODEL_CALL_WATCH_ROUTES;
}

void coord_core_drain(struct coord_core *core)
{
    core->draining = true;
    rt_list_for_each_safe (node, &core->tasks) {
        struct coord_task *task = RT_LIST_ENTRY(node, struct coord_task, link);

        if (!only_waits(task))
            continue;
        coord_task_fail(core, task, MODEL_REASON_DRAINING, "the coordinator is shutting down");
        coord_task_finish(core, task);
    }
    coord_tasks_run(core);
}

/* ---- loading --------------------------------------------------------------------------------- */

/* No number of the counter that a row mentions is ever given out again. */
static void saw_number(struct coord_core *core, uint64_t number)
{
    if (number > core->stored_counter)
        core->stored_counter = number;
}

static enum rt_code load_member(struct coord_core *core, struct rt_bytes name,
                                struct rt_bytes value, struct rt_error *err)
{
    struct coord_member_row row;
    struct coord_member *member;
    char text[MODEL_NAME_MAX + 1] = {0};
    enum rt_code code = model_name_check("instance name", name, err);

    if (code == RT_OK)
        code = coord_rows_get_member(value, &row, err);
    if (code != RT_OK)
        return RT_DATA_LOSS;
    memcpy(text, name.data, name.size);
    if (coord_members_at(&core->members, row.ordinal) || coord_members_find(&core->members, text))
        return rt_fail(err, RT_DATA_LOSS, "member row '%s' is there twice", text);
    member = coord_members_add(&core->members, text, row.ordinal);
    member->row = row;
    member->entries_free = row.entries_total;
    saw_number(core, row.incarnation);
    return RT_OK;
}

/* Rows come in any order: a lock may name its session before the session's row is seen. */
static struct coord_session *load_named_session(struct coord_core *core, const struct model_id *id)
{
    struct coord_session *session = coord_sessions_find(&core->sessions, id);

    return session ? session : coord_sessions_add(&core->sessions, id);
}

static enum rt_code load_key(struct coord_core *core, struct rt_bytes name, struct rt_bytes value,
                             struct rt_error *err)
{
    struct coord_key_row row;
    struct coord_key *key;
    enum rt_code code = coord_rows_get_key(value, &row, err);

    if (code != RT_OK)
        return code;
    key = coord_keys_obtain(&core->keys, name);
    if (!key)
        return rt_fail(err, RT_RESOURCE_EXHAUSTED, "no memory for %zu keys", core->keys.n_keys);
    if (row.locked)
        (void)load_named_session(core, &row.session_id);
    coord_key_apply(core, key, &row);
    saw_number(core, row.epoch);
    saw_number(core, row.newest_token);
    return RT_OK;
}

static enum rt_code load_session(struct coord_core *core, struct rt_bytes name,
                                 struct rt_bytes value, struct rt_error *err)
{
    struct coord_session_row row;
    struct coord_session *session;
    struct model_id id;
    enum rt_code code = coord_rows_get_session(value, &row, err);

    if (code != RT_OK)
        return code;
    memcpy(id.bytes, name.data, sizeof(id.bytes));
    session = load_named_session(core, &id);
    session->state = row.has_ended ? COORD_SESSION_ENDED : COORD_SESSION_OPEN;
    coord_sessions_set_row(&core->sessions, session, &row);
    if (row.has_ended)
        coord_sessions_hide(&core->sessions, session);
    return RT_OK;
}

enum rt_code coord_core_load(struct coord_core *core, struct rt_bytes key, struct rt_bytes value,
                             struct rt_error *err)
{
    enum coord_row_kind kind;
    struct rt_bytes name;
    uint64_t number = 0;
    enum rt_code code = coord_rows_parse_key(key, &kind, &name, err);

    if (code != RT_OK)
        return code;
    switch (kind) {
    case COORD_ROW_META:
        return coord_rows_get_meta(value, &core->meta, err);
    case COORD_ROW_COUNTER:
        code = coord_rows_get_number(value, &number, err);
        saw_number(core, number);
        return code;
    case COORD_ROW_CURSOR:
        code = coord_rows_get_number(value, &number, err);
        core->cursor = (uint32_t)number;
        return code;
    case COORD_ROW_ROUTE:
        code = coord_rows_get_number(value, &number, err);
        core->route = number;
        core->route_submitted = number;
        saw_number(core, number);
        return code;
    case COORD_ROW_DISTRIBUTION:
        return coord_distribution_load(core, value, err);
    case COORD_ROW_MEMBER:
        return load_member(core, name, value, err);
    case COORD_ROW_KEY:
        return load_key(core, name, value, err);
    case COORD_ROW_SESSION:
        return load_session(core, name, value, err);
    }
    rt_assert(false);
}

/* ---- start ----------------------------------------------------------------------------------- */

static uint64_t pulse_us(const struct coord_core *core)
{
    uint64_t members_us = core->config.member_lease.duration_us;
    uint64_t sessions_us = core->config.session_lease.duration_us;

    return (members_us < sessions_us ? members_us : sessions_us) / 4;
}

static void on_pulse(struct coord_core *core, struct coord_timer *timer)
{
    coord_timers_set(&core->timers, timer, coord_now_us(core) + pulse_us(core));
}

static void begin_pulse(struct coord_core *core)
{
    core->last_step_us = coord_now_us(core);
    core->pulse.on_due = on_pulse;
    on_pulse(core, &core->pulse);
}

/* What could not be decided while rows were still missing. */
static void settle_keys(struct coord_core *core)
{
    struct coord_key *key;
    size_t position = 0;

    for (uint32_t i = 1; i <= core->members.last_ordinal; i++) {
        if (coord_members_at(&core->members, i))
            coord_members_at(&core->members, i)->n_keys = 0;
    }
    while ((key = coord_keys_next(&core->keys, &position, SIZE_MAX))) {
        struct coord_member *owner = coord_members_at(&core->members, key->owner);

        if (owner)
            owner->n_keys++;
        else if (key->owner != 0)
            model_effects_tell(&core->effects, RT_LOG_ERROR, "event=key_without_owner ordinal=%u",
                               (unsigned)key->owner);
        if (!key->exists)
            continue;
        if (key->release_pending && !coord_key_holder(key))
            coord_release_resume(core, key);
        key->deleted = key->dropping;
        if (key->dropping && !coord_key_holder(key))
            coord_drop_begin(core, key);
    }
}

static void begin_term(struct coord_core *core, struct coord_task *task);

static void on_term_durable(struct coord_core *core, struct coord_task *task)
{
    switch (task->outcome) {
    case STORE_COMMITTED:
        core->mode = COORD_MODE_SERVING;
        core->term_is_durable = true;
        begin_pulse(core);
        settle_keys(core);
        coord_distribution_start(core);
        coord_registry_start(core);
        coord_session_start(core);
        model_effects_tell(&core->effects, RT_LOG_INFO, "event=term_begun term=%llu",
                           (unsigned long long)core->meta.term);
        break;
    case STORE_FULL:
        model_effects_tell(&core->effects, RT_LOG_ERROR, "event=disk_full during=start");
        coord_task_pause(core, task, begin_term);
        return;
    case STORE_COMPARE_FAILED:
    case STORE_UNKNOWN:
        model_effects_tell(&core->effects, RT_LOG_ERROR, "event=start_failed");
        break;
    }
    coord_tasks_wake(core, &core->early);
    coord_task_finish(core, task);
}

static void begin_term(struct coord_core *core, struct coord_task *task)
{
    coord_rows_put_meta(coord_task_txn(task), &core->meta);
    coord_task_commit(core, task, on_term_durable);
}

void coord_core_start(struct coord_core *core)
{
    const struct model_lease *lease = &core->config.member_lease;
    uint64_t hold_us = lease->duration_us + lease->grace_us;
    bool is_first = model_id_is_none(&core->meta.cluster_id);

    rt_assert(core->mode == COORD_MODE_LOADING);
    core->mode = COORD_MODE_STARTING;
    core->started_us = coord_now_us(core);
    if (hold_us > core->meta.longest_hold_us)
        core->meta.longest_hold_us = hold_us;
    core->barrier_us = core->started_us + (is_first ? 0 : core->meta.longest_hold_us);
    core->meta.term++;
    while (model_id_is_none(&core->meta.cluster_id)) {
        uint64_t words[2] = {rt_env_random(&core->env), rt_env_random(&core->env)};

        memcpy(core->meta.cluster_id.bytes, words, sizeof(words));
    }
    coord_counter_start(&core->counter, core->stored_counter, core->meta.generation);
    begin_term(core, coord_task_new(core, NULL, (struct rt_bytes){0}, begin_term));
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Not of a kind that a coordinator answers: the shell let something through. */
static void refuse_kind(struct coord_core *core, struct coord_task *task)
{
    coord_task_fail(core, task, MODEL_REASON_INVALID_FIELD, "not a call for a coordinator");
    coord_task_finish(core, task);
}

static coord_step_fn step_of(const struct model_call *call)
{
    static const coord_step_fn steps[MODEL_N_CALL_KINDS] = {
        [MODEL_CALL_REGISTER] = coord_registry_register,
        [MODEL_CALL_RECONCILE] = coord_reconcile_part,
        [MODEL_CALL_RENEW] = coord_registry_renew,
        [MODEL_CALL_LEAVE] = coord_registry_leave,
        [MODEL_CALL_PULL_ROWS] = coord_reconcile_pull,
        [MODEL_CALL_OPEN_SESSION] = coord_session_open,
        [MODEL_CALL_KEEP_ALIVE] = coord_session_keep_alive,
        [MODEL_CALL_CLOSE_SESSION] = coord_session_close,
        [MODEL_CALL_EXECUTE] = coord_execute_start,
        [MODEL_CALL_LOCK] = coord_execute_start_lock,
        [MODEL_CALL_UNLOCK] = coord_release_unlock,
        [MODEL_CALL_ROUTE] = coord_execute_start_route,
        [MODEL_CALL_WATCH_ROUTES] = coord_watch_routes,
        [MODEL_CALL_LIST_INSTANCES] = coord_admin_list_instances,
        [MODEL_CALL_KEY_STATUS] = coord_admin_key_status,
        [MODEL_CALL_LIST_KEYS] = coord_admin_list_keys,
        [MODEL_CALL_GET_DISTRIBUTION] = coord_distribution_get,
        [MODEL_CALL_SET_DISTRIBUTION] = coord_distribution_set,
        [MODEL_CALL_FREE_LOCK] = coord_release_free,
    };
    size_t kind = (size_t)call->request.kind;

    return kind < MODEL_N_CALL_KINDS && steps[kind] ? steps[kind] : refuse_kind;
}

static struct rt_bytes key_of(const struct model_call *call)
{
    struct rt_bytes key = coord_call_key(call);

    return key.size <= MODEL_KEY_MAX ? key : (struct rt_bytes){0};
}

static bool is_goodbye(const struct model_call *call)
{
    return call->request.kind == MODEL_CALL_LEAVE || call->request.kind == MODEL_CALL_RENEW ||
           call->request.kind == MODEL_CALL_CLOSE_SESSION;
}

/* A call that came while the term was not durable yet. */
static void run_early(struct coord_core *core, struct coord_task *task)
{
    if (core->term_is_durable) {
        task->step = step_of(task->call);
        task->step(core, task);
        return;
    }
    coord_task_fail(core, task, MODEL_REASON_READ_ONLY, "the store failed at the start");
    coord_task_finish(core, task);
}

void coord_core_submit(struct coord_core *core, struct model_call *call)
{
    struct coord_task *task = coord_task_new(core, call, key_of(call), step_of(call));

    rt_list_init(&call->link);
    if (core->draining && !is_goodbye(call)) {
        coord_task_fail(core, task, MODEL_REASON_DRAINING, "the coordinator is shutting down");
        coord_task_finish(core, task);
    } else if (core->term_is_durable) {
        task->step(core, task);
    } else if (core->mode == COORD_MODE_READ_ONLY) {
        run_early(core, task);
    } else {
        coord_task_wait(core, task, &core->early, MODEL_REASON_DEADLINE_EXCEEDED, run_early);
    }
    coord_tasks_run(core);
}

void coord_core_cancel(struct coord_core *core, struct model_call *call)
{
    struct coord_task *task = call->state;

    call->cancelled = true;
    if (!task || task->sent ||
        (task->state != COORD_TASK_QUEUED && task->state != COORD_TASK_WAITING))
        return;
    coord_locks_give_up(core, task, MODEL_REASON_CANCELLED, "the caller went away");
    coord_tasks_run(core);
}

/* ---- time ------------------------------------------------------------------------------------ */

/* A core that was stopped has not heard what came meanwhile: give everybody time to be heard. */
static void notice_stop(struct coord_core *core)
{
    uint64_t now_us = coord_now_us(core);
    uint64_t members_us = model_lease_renew_interval_us(&core->config.member_lease);
    uint64_t sessions_us = model_lease_renew_interval_us(&core->config.session_lease);

    if (core->term_is_durable && now_us > core->last_step_us + pulse_us(core) * 4 / 3) {
        core->grace_until_us = now_us + (members_us > sessions_us ? members_us : sessions_us);
        model_effects_tell(&core->effects, RT_LOG_WARNING, "event=core_was_stopped for_ms=%llu",
                           (unsigned long long)(now_us - core->last_step_us) / 1000);
    }
    core->last_step_us = now_us;
}

void coord_core_tick(struct coord_core *core)
{
    uint64_t now_us = coord_now_us(core);
    struct coord_timer *timer;

    notice_stop(core);
    while ((timer = coord_timers_pop_due(&core->timers, now_us))) {
        timer->on_due(core, timer);
        coord_tasks_run(core);
    }
}

uint64_t coord_core_next_wakeup_us(const struct coord_core *core)
{
    return coord_timers_next_us(&core->timers);
}
