/*
 * Locks: see locks.h. Invariant: extra->turn is one of extra->waiters or NULL, and NULL while the
 * key is held. Runs under the core's lock.
 */
#include "coordinator/locks.h"

#include "coordinator/tasks.h"

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

struct coord_waiter *coord_locks_add_waiter(struct coord_key *key, struct coord_session *session)
{
    struct coord_key_extra *extra = coord_keys_obtain_extra(key);
    struct coord_waiter *waiter;

    if (extra->n_waiters >= MODEL_WAITERS_MAX)
        return NULL;
    waiter = rt_xalloc(sizeof(*waiter));
    waiter->key = key;
    waiter->session = session;
    rt_list_init(&waiter->awaits);
    rt_list_push_back(&extra->waiters, &waiter->key_link);
    rt_list_push_back(&session->waits, &waiter->session_link);
    extra->n_waiters++;
    return waiter;
}

static void on_turn_timer(struct coord_core *core, struct coord_timer *timer);

/* The first waiter that did not have its turn yet; without one nobody has it. */
static void give_turn(struct coord_core *core, struct coord_key_extra *extra)
{
    extra->turn = NULL;
    coord_timers_cancel(&core->timers, &extra->turn_timer);
    rt_list_for_each (node, &extra->waiters) {
        struct coord_waiter *waiter = RT_LIST_ENTRY(node, struct coord_waiter, key_link);

        if (waiter->passed)
            continue;
        extra->turn = waiter;
        extra->turn_timer.on_due = on_turn_timer;
        coord_timers_set(&core->timers, &extra->turn_timer,
                         coord_now_us(core) + core->config.wake_hold_us);
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
    rt_list_remove(&waiter->key_link);
    rt_list_remove(&waiter->session_link);
    extra->n_waiters--;
    (void)rt_free(waiter);
    if (had_turn)
        give_turn(core, extra);
    coord_keys_tidy(&core->keys, key);
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
