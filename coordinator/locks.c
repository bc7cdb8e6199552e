/*
 * Locks: see locks.h. Invariant: extra->turn is one of extra->waiters or NULL, and NULL while the
 * key is held. Runs under the core's lock.
 */
#include "coordinator/locks.h"

#include "coordinator/tasks.h"

enum {
    /* A client that waits in pieces asks again after its first back-off; on a busy machine too. */
    BACK_WITHIN_US = 250000,
};

static struct coord_lock_check refuse(enum model_reason reason)
{
    return (struct coord_lock_check){.reason = reason};
}

static struct coord_lock_check check_token(const struct coord_key *key, bool is_holder,
                                           uint64_t lock_token)
{
    if (!key || !key->exists)
        return refuse(MODEL_REASON_KEY_NOT_IDENTIFIED);
    if (is_holder && key->extra->token == lock_token)
        return (struct coord_lock_check){.token = lock_token, .is_holder = true};
    return refuse(lock_token < key->newest_token ? MODEL_REASON_LOCK_FENCED
                                                 : MODEL_REASON_KEY_NOT_LOCKED);
}

struct coord_lock_check coord_locks_check(enum model_locking locking, const struct coord_key *key,
                                          const struct coord_session *session,
                                          enum model_statement_kind kind, uint64_t lock_token)
{
    bool exists = key && key->exists;
    const struct coord_session *holder = exists ? coord_key_holder(key) : NULL;
    bool is_holder = holder && holder == session;
    bool creates = kind == MODEL_STATEMENT_PUT
                       ? locking != MODEL_LOCKING_REQUIRED
                       : kind == MODEL_STATEMENT_SET && locking == MODEL_LOCKING_NONE;

    if (lock_token != 0)
        return check_token(key, is_holder, lock_token);
    if (is_holder)
        return (struct coord_lock_check){.token = key->extra->token, .is_holder = true};
    if (!exists)
        return refuse(creates ? MODEL_REASON_NONE : MODEL_REASON_KEY_NOT_IDENTIFIED);
    if (locking == MODEL_LOCKING_REQUIRED || (locking == MODEL_LOCKING_OPTIONAL && holder))
        return refuse(MODEL_REASON_KEY_NOT_LOCKED);
    return (struct coord_lock_check){0};
}

bool coord_locks_is_free_for(const struct coord_key *key, const struct coord_session *session)
{
    const struct coord_key_extra *extra = key->extra;

    if (!extra)
        return true;
    return !extra->holder && (!extra->turn || extra->turn->session == session);
}

struct coord_waiter *coord_locks_find_waiter(const struct coord_key *key,
                                             const struct coord_session *session)
{
    if (!key || !key->extra)
        return NULL;
    rt_list_for_each (node, &key->extra->waiters) {
        struct coord_waiter *waiter = RT_LIST_ENTRY(node, struct coord_waiter, key_link);

        if (waiter->session == session)
            return waiter;
    }
    return NULL;
}

bool coord_locks_has_gone(const struct coord_core *core, const struct coord_waiter *waiter)
{
    return coord_now_us(core) >= waiter->back_by_us;
}

static void free_waiter(struct coord_waiter *waiter)
{
    rt_list_remove(&waiter->key_link);
    rt_list_remove(&waiter->session_link);
    waiter->key->extra->n_waiters--;
    (void)rt_free(waiter);
}

/* It has no turn, and no call waits with it. */
static void remove_one_that_has_gone(struct coord_core *core, struct coord_key_extra *extra)
{
    rt_list_for_each (node, &extra->waiters) {
        struct coord_waiter *waiter = RT_LIST_ENTRY(node, struct coord_waiter, key_link);

        if (waiter == extra->turn || !coord_locks_has_gone(core, waiter))
            continue;
        free_waiter(waiter);
        return;
    }
}

struct coord_waiter *coord_locks_add_waiter(struct coord_core *core, struct coord_key *key,
                                            struct coord_session *session)
{
    struct coord_key_extra *extra = coord_keys_obtain_extra(key);
    struct coord_waiter *waiter;

    if (extra->n_waiters >= MODEL_WAITERS_MAX)
        remove_one_that_has_gone(core, extra);
    if (extra->n_waiters >= MODEL_WAITERS_MAX)
        return NULL;
    waiter = rt_xalloc(sizeof(*waiter));
    waiter->key = key;
    waiter->session = session;
    waiter->back_by_us = RT_NEVER;
    rt_list_init(&waiter->awaits);
    rt_list_push_back(&extra->waiters, &waiter->key_link);
    rt_list_push_back(&session->waits, &waiter->session_link);
    extra->n_waiters++;
    return waiter;
}

static void on_turn_timer(struct coord_core *core, struct coord_timer *timer);

/* Its turn lasts so long from now on. */
static void time_turn(struct coord_core *core, struct coord_key_extra *extra)
{
    uint64_t until_us = coord_now_us(core) + core->config.wake_hold_us;

    if (extra->turn->back_by_us < until_us)
        until_us = extra->turn->back_by_us;
    extra->turn_timer.on_due = on_turn_timer;
    coord_timers_set(&core->timers, &extra->turn_timer, until_us);
}

/* The first waiter that did not have its turn yet; without one nobody has it. */
static void give_turn(struct coord_core *core, struct coord_key_extra *extra)
{
    extra->turn = NULL;
    coord_timers_cancel(&core->timers, &extra->turn_timer);
    rt_list_for_each (node, &extra->waiters) {
        struct coord_waiter *waiter = RT_LIST_ENTRY(node, struct coord_waiter, key_link);

        if (waiter->passed || coord_locks_has_gone(core, waiter))
            continue;
        extra->turn = waiter;
        time_turn(core, extra);
        coord_tasks_wake(core, &waiter->awaits);
        return;
    }
    rt_list_for_each (node, &extra->waiters)
        coord_tasks_wake(core, &RT_LIST_ENTRY(node, struct coord_waiter, key_link)->awaits);
}

static void on_turn_timer(struct coord_core *core, struct coord_timer *timer)
{
    struct coord_key_extra *extra = RT_CONTAINER_OF(timer, struct coord_key_extra, turn_timer);
    struct coord_key *key = extra->key;

    extra->turn->passed = true;
    give_turn(core, extra);
    coord_keys_tidy(&core->keys, key);
}

void coord_locks_wake(struct coord_core *core, struct coord_key *key)
{
    struct coord_key_extra *extra = key->extra;

    if (!extra)
        return;
    if (extra->holder) {
        extra->turn = NULL;
        coord_timers_cancel(&core->timers, &extra->turn_timer);
        rt_list_for_each (node, &extra->waiters)
            RT_LIST_ENTRY(node, struct coord_waiter, key_link)->passed = false;
        return;
    }
    if (!extra->turn)
        give_turn(core, extra);
}

void coord_locks_remove_waiter(struct coord_core *core, struct coord_waiter *waiter)
{
    struct coord_key *key = waiter->key;
    struct coord_key_extra *extra = key->extra;
    bool had_turn = extra->turn == waiter;

    coord_tasks_wake(core, &waiter->awaits);
    free_waiter(waiter);
    if (had_turn)
        give_turn(core, extra);
    coord_keys_tidy(&core->keys, key);
}

void coord_locks_come_back(struct coord_core *core, struct coord_waiter *waiter)
{
    struct coord_key_extra *extra = waiter->key->extra;

    if (waiter->back_by_us == RT_NEVER)
        return;
    waiter->back_by_us = RT_NEVER;
    if (extra->turn == waiter)
        time_turn(core, extra);
}

static struct coord_waiter *waiter_of(const struct coord_core *core, const struct coord_task *task)
{
    enum model_call_kind kind = task->call ? task->call->request.kind : MODEL_N_CALL_KINDS;

    if (!task->session || (kind != MODEL_CALL_LOCK && kind != MODEL_CALL_EXECUTE))
        return NULL;
    if (task->statement->kind != MODEL_STATEMENT_GET &&
        task->statement->kind != MODEL_STATEMENT_AWAIT)
        return NULL;
    return coord_locks_find_waiter(coord_keys_find(&core->keys, coord_task_name(task)),
                                   task->session);
}

void coord_locks_give_up(struct coord_core *core, struct coord_task *task, enum model_reason reason,
                         const char *message)
{
    struct coord_waiter *waiter = waiter_of(core, task);
    struct coord_key_extra *extra;

    coord_task_fail(core, task, reason, "%s", message);
    coord_task_finish(core, task);
    if (!waiter || !rt_list_is_empty(&waiter->awaits))
        return;
    extra = waiter->key->extra;
    waiter->back_by_us = coord_now_us(core) + BACK_WITHIN_US;
    if (extra->turn == waiter)
        time_turn(core, extra);
}

void coord_locks_deinit(struct coord_core *core)
{
    size_t position = 0;
    struct coord_key *key;

    while ((key = coord_keys_next(&core->keys, &position, SIZE_MAX))) {
        struct rt_list *node;

        while (key->extra && (node = rt_list_pop_front(&key->extra->waiters)))
            (void)rt_free(RT_LIST_ENTRY(node, struct coord_waiter, key_link));
    }
}
