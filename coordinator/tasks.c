/*
 * Tasks: waits, transactions and outbound calls. See tasks.h. Invariant: a task that is
 * not running is reachable from exactly one place that will bring it back: a list, its timer, an
 * outbound call or a transaction. Runs under the core's lock.
 */
#include "coordinator/tasks.h"

#include "coordinator/compaction.h"
#include "coordinator/locks.h"
#include "runtime/base/alloc.h"

enum {
    DEADLINE_DEFAULT_US = 10000000, /* for calls that come without one */
    REPLY_MARGIN_US = 50000,        /* so that the answer is there before the caller gives up */
    BACK_OFF_FIRST_US = 20000,
    BACK_OFF_MAX_US = 500000,
    PAUSE_US = 1000000,
    QUEUE_MAX = MODEL_WAITERS_MAX, /* operations that wait for one key's latch */
};

static void on_task_timer(struct coord_core *core, struct coord_timer *timer)
{
    struct coord_task *task = RT_CONTAINER_OF(timer, struct coord_task, timer);

    if (timer->due_us < task->deadline_us) {
        coord_task_ready(core, task, NULL);
        return;
    }
    coord_locks_give_up(core, task, task->late, "the deadline passed while the call was waiting");
}

static bool waits_for_others(const struct model_request *request)
{
    if (request->kind == MODEL_CALL_EXECUTE)
        return request->execute.kind == MODEL_STATEMENT_AWAIT;
    return request->kind == MODEL_CALL_WATCH_ROUTES;
}

static uint64_t deadline_of(const struct coord_core *core, const struct model_call *call)
{
    uint64_t now_us = coord_now_us(core);
    uint64_t remaining_us = model_call_remaining_us(call, now_us);
    uint64_t margin_us = remaining_us / 10;

    if (remaining_us == RT_NEVER)
        return waits_for_others(&call->request) ? RT_NEVER : now_us + DEADLINE_DEFAULT_US;
    return now_us + remaining_us - (margin_us < REPLY_MARGIN_US ? margin_us : REPLY_MARGIN_US);
}

struct coord_task *coord_task_new(struct coord_core *core, struct model_call *call,
                                  struct rt_bytes key, coord_step_fn step)
{
    struct coord_task *task = rt_xalloc(sizeof(*task) + key.size);

    rt_assert(key.size <= MODEL_KEY_MAX);
    rt_list_push_back(&core->tasks, &task->link);
    rt_list_init(&task->wait_link);
    rt_list_init(&task->session_link);
    rt_list_init(&task->placing_link);
    rt_list_init(&task->evictions);
    rt_list_init(&task->evict_link);
    task->timer.on_due = on_task_timer;
    task->step = step;
    task->call = call;
    task->deadline_us = call ? deadline_of(core, call) : RT_NEVER;
    task->key_size = (uint8_t)key.size;
    if (key.size > 0)
        memcpy(task->key, key.data, key.size);
    if (call)
        call->state = task;
    return task;
}

static void leave_wait(struct coord_core *core, struct coord_task *task)
{
    if (task->state == COORD_TASK_QUEUED) {
        struct coord_key *key = coord_keys_find(&core->keys, coord_task_name(task));

        key->extra->n_queue--;
    }
    rt_list_remove(&task->wait_link);
    coord_timers_cancel(&core->timers, &task->timer);
    task->state = COORD_TASK_RUNNING;
}

static void free_task(struct coord_task *task)
{
    rt_list_for_each_safe (node, &task->evictions) {
        RT_LIST_ENTRY(node, struct coord_task, evict_link)->evictor = NULL;
        rt_list_remove(node);
    }
    rt_list_remove(&task->evict_link);
    rt_list_remove(&task->link);
    rt_list_remove(&task->session_link);
    rt_list_remove(&task->placing_link);
    (void)store_txn_free(task->txn);
    (void)model_call_free(task->answer);
    (void)rt_free(task->member_row);
    (void)rt_free(task);
}

void coord_task_expect(struct coord_core *core, struct coord_task *task,
                       struct coord_member *member)
{
    uint64_t entry_size;

    if (task->expected != 0)
        coord_members_expect_less(&core->members, task->expected_at, task->expected);
    task->expected = 0;
    if (!member)
        return;
    entry_size = member->row.entry_size;
    if (entry_size > 0)
        task->expected = (task->value_size + entry_size - 1) / entry_size;
    if (task->expected == 0)
        task->expected = 1;
    task->expected_at = member;
    coord_members_expect(&core->members, member, task->expected);
}

static void tell_evictor(struct coord_core *core, struct coord_task *task)
{
    struct coord_task *evictor = task->evictor;

    if (task->renewed)
        task->renewed->n_evictions--;
    if (!evictor)
        return;
    rt_list_remove(&task->evict_link);
    if (rt_list_is_empty(&evictor->evictions))
        coord_task_ready(core, evictor, NULL);
}

void coord_task_finish(struct coord_core *core, struct coord_task *task)
{
    struct coord_session *session = task->session;

    rt_assert(!task->call);
    coord_task_expect(core, task, NULL);
    tell_evictor(core, task);
    leave_wait(core, task);
    coord_task_unlatch(core, task);
    free_task(task);
    if (session)
        coord_sessions_tidy(&core->sessions, session);
}

void coord_tasks_deinit(struct coord_core *core)
{
    rt_list_for_each_safe (node, &core->tasks)
        free_task(RT_LIST_ENTRY(node, struct coord_task, link));
}

void coord_tasks_run(struct coord_core *core)
{
    struct rt_list *node;

    do {
        while ((node = rt_list_pop_front(&core->ready))) {
            struct coord_task *task = RT_LIST_ENTRY(node, struct coord_task, wait_link);

            task->step(core, task);
        }
    } while (coord_compaction_settle(core));
}

/* A statement that something is done for outside of the core. */
static void leave_core(struct coord_core *core, struct coord_task *task,
                       enum coord_task_state state)
{
    task->state = state;
    core->n_under_way += task->run != NULL;
}

static void return_to_core(struct coord_core *core, struct coord_task *task)
{
    core->n_under_way -= task->run != NULL;
    coord_task_ready(core, task, NULL);
}

void coord_task_ready(struct coord_core *core, struct coord_task *task, coord_step_fn step)
{
    leave_wait(core, task);
    if (step)
        task->step = step;
    rt_list_push_back(&core->ready, &task->wait_link);
}

void coord_tasks_wake(struct coord_core *core, struct rt_list *list)
{
    rt_list_for_each_safe (node, list)
        coord_task_ready(core, RT_LIST_ENTRY(node, struct coord_task, wait_link), NULL);
}

void coord_task_set_session(struct coord_task *task, struct coord_session *session)
{
    task->session = session;
    rt_list_push_back(&session->tasks, &task->session_link);
}

/* ---- waits ----------------------------------------------------------------------------------- */

static bool may_latch(const struct coord_key_extra *extra, bool shared)
{
    if (extra->latch)
        return false;
    return shared ? extra->n_queue == 0 : extra->n_shared == 0;
}

static void take_latch(struct coord_key *key, struct coord_task *task)
{
    task->latched = key;
    if (task->shared)
        key->extra->n_shared++;
    else
        key->extra->latch = task;
}

static void queue_for_latch(struct coord_core *core, struct coord_key_extra *extra,
                            struct coord_task *task, coord_step_fn step)
{
    task->step = step;
    task->state = COORD_TASK_QUEUED;
    task->late = MODEL_REASON_DEADLINE_EXCEEDED;
    rt_list_push_back(&extra->queue, &task->wait_link);
    extra->n_queue++;
    if (task->deadline_us != RT_NEVER)
        coord_timers_set(&core->timers, &task->timer, task->deadline_us);
}

static bool latch(struct coord_core *core, struct coord_task *task, bool shared, coord_step_fn step)
{
    struct coord_key *key;
    bool free;

    if (task->latched && task->shared == shared)
        return true;
    coord_task_unlatch(core, task);
    task->shared = shared;
    key = coord_keys_obtain(&core->keys, coord_task_name(task));
    if (!key) {
        coord_task_fail(core, task, MODEL_REASON_LIMIT_REACHED, "out of memory");
        coord_task_finish(core, task);
        return false;
    }
    free = may_latch(coord_keys_obtain_extra(key), shared);
    if (!free && task->call && key->extra->n_queue >= QUEUE_MAX) {
        coord_task_fail(core, task, MODEL_REASON_LIMIT_REACHED, "%d operations wait for this key",
                        QUEUE_MAX);
        coord_task_finish(core, task);
        return false;
    }
    if (free)
        take_latch(key, task);
    else
        queue_for_latch(core, key->extra, task, step);
    return free;
}

bool coord_task_latch(struct coord_core *core, struct coord_task *task, coord_step_fn step)
{
    return latch(core, task, false, step);
}

bool coord_task_latch_shared(struct coord_core *core, struct coord_task *task, coord_step_fn step)
{
    return latch(core, task, true, step);
}

/* The front of the queue, as far as it may have the latch together. */
static void give_latch(struct coord_core *core, struct coord_key *key)
{
    struct coord_key_extra *extra = key->extra;

    while (extra->n_queue > 0 && !extra->latch) {
        struct coord_task *next = RT_LIST_ENTRY(extra->queue.next, struct coord_task, wait_link);

        if (!next->shared && extra->n_shared > 0)
            return;
        coord_task_ready(core, next, NULL);
        take_latch(key, next);
    }
}

void coord_task_unlatch(struct coord_core *core, struct coord_task *task)
{
    struct coord_key *key = task->latched;

    if (!key)
        return;
    task->latched = NULL;
    if (task->shared)
        key->extra->n_shared--;
    else
        key->extra->latch = NULL;
    give_latch(core, key);
    coord_keys_tidy(&core->keys, key);
}

void coord_task_wait_until(struct coord_core *core, struct coord_task *task, struct rt_list *list,
                           enum model_reason late, uint64_t wake_us, coord_step_fn step)
{
    uint64_t due_us = wake_us < task->deadline_us ? wake_us : task->deadline_us;

    task->step = step;
    task->state = COORD_TASK_WAITING;
    task->late = late;
    if (list)
        rt_list_push_back(list, &task->wait_link);
    if (due_us != RT_NEVER)
        coord_timers_set(&core->timers, &task->timer, due_us);
}

void coord_task_wait(struct coord_core *core, struct coord_task *task, struct rt_list *list,
                     enum model_reason late, coord_step_fn step)
{
    coord_task_wait_until(core, task, list, late, RT_NEVER, step);
}

bool coord_task_back_off(struct coord_core *core, struct coord_task *task, coord_step_fn step)
{
    uint64_t delay_us = BACK_OFF_MAX_US;
    uint64_t wake_us;

    if (task->attempt < 5)
        delay_us = (uint64_t)BACK_OFF_FIRST_US << task->attempt;
    wake_us = coord_now_us(core) + delay_us;
    if (wake_us >= task->deadline_us)
        return false;
    task->attempt++;
    coord_task_wait_until(core, task, NULL, MODEL_REASON_OWNER_UNREACHABLE, wake_us, step);
    return true;
}

void coord_task_pause(struct coord_core *core, struct coord_task *task, coord_step_fn step)
{
    coord_task_wait_until(core, task, NULL, MODEL_REASON_DEADLINE_EXCEEDED,
                          coord_now_us(core) + PAUSE_US, step);
}

/* ---- transactions ---------------------------------------------------------------------------- */

struct store_txn *coord_task_txn(struct coord_task *task)
{
    if (!task->txn)
        task->txn = store_txn_new();
    return task->txn;
}

uint64_t coord_task_number(struct coord_core *core, struct coord_task *task)
{
    task->txn_number = coord_counter_take(&core->counter);
    return task->txn_number;
}

void coord_task_set_route(struct coord_task *task, uint64_t number)
{
    task->txn_route = number;
}

void coord_task_put_row(struct coord_task *task)
{
    coord_rows_put_key(coord_task_txn(task), coord_task_name(task), &task->row);
    task->change = COORD_ROW_PUT;
}

void coord_task_delete_row(struct coord_task *task)
{
    coord_rows_delete_key(coord_task_txn(task), coord_task_name(task));
    task->change = COORD_ROW_DELETE;
}

void coord_task_put_done(struct coord_task *task)
{
    struct coord_session_row row = task->session->row;

    coord_session_add_done(&row, &task->done, task->done_below);
    coord_rows_put_session(coord_task_txn(task), &task->session->id, &row);
    task->done_written = true;
}

static void put_numbers(struct coord_core *core, struct coord_task *task)
{
    task->txn_mark = coord_counter_mark(&core->counter, task->txn_number);
    if (task->txn_mark != 0)
        coord_rows_put_number(task->txn, COORD_ROW_COUNTER, task->txn_mark);
    if (task->txn_route == 0)
        return;
    if (task->txn_route < core->route_submitted)
        task->txn_route = core->route_submitted;
    core->route_submitted = task->txn_route;
    coord_rows_put_number(task->txn, COORD_ROW_ROUTE, task->txn_route);
}

void coord_task_commit(struct coord_core *core, struct coord_task *task, coord_step_fn step)
{
    task->step = step;
    if (core->mode == COORD_MODE_READ_ONLY) {
        task->txn = store_txn_free(task->txn);
        task->done_written = false;
        task->outcome = STORE_UNKNOWN;
        task->refused = true;
        task->change = COORD_ROW_UNCHANGED;
        coord_task_ready(core, task, step);
        return;
    }
    put_numbers(core, task);
    if (task->change != COORD_ROW_UNCHANGED)
        task->latched->extra->committing = true;
    leave_core(core, task, COORD_TASK_COMMITTING);
    task->txn->ctx = task;
    rt_list_push_back(&core->effects.txns, &task->txn->link);
    task->txn = NULL;
}

static void apply_commit(struct coord_core *core, struct coord_task *task)
{
    coord_counter_marked(&core->counter, task->txn_mark);
    if (task->txn_route > core->route)
        core->route = task->txn_route;
    if (task->done_written)
        coord_session_add_done(&task->session->row, &task->done, task->done_below);
    if (task->change != COORD_ROW_UNCHANGED)
        coord_key_apply(core, task->latched, task->change == COORD_ROW_PUT ? &task->row : NULL);
}

static void become_read_only(struct coord_core *core)
{
    if (core->mode != COORD_MODE_READ_ONLY)
        model_effects_tell(&core->effects, RT_LOG_ERROR, "event=read_only reason=STORE_ERROR");
    core->mode = COORD_MODE_READ_ONLY;
}

void coord_core_txn_done(struct coord_core *core, struct store_txn *txn)
{
    struct coord_task *task = txn->ctx;

    task->outcome = txn->outcome;
    (void)store_txn_free(txn);
    if (task->change != COORD_ROW_UNCHANGED)
        task->latched->extra->committing = false;
    if (task->outcome == STORE_COMMITTED)
        apply_commit(core, task);
    else if (task->outcome == STORE_UNKNOWN)
        become_read_only(core);
    task->change = COORD_ROW_UNCHANGED;
    task->done_written = false;
    task->txn_number = 0;
    task->txn_mark = 0;
    task->txn_route = 0;
    return_to_core(core, task);
    coord_tasks_run(core);
}

/* ---- outbound calls -------------------------------------------------------------------------- */

void coord_task_call(struct coord_core *core, struct coord_task *task, struct model_call *call,
                     struct coord_member *member, uint64_t timeout_us, coord_step_fn step)
{
    uint64_t now_us = coord_now_us(core);
    struct rt_bytes address;

    call->deadline_us = task->deadline_us;
    if (timeout_us != RT_NEVER && now_us + timeout_us < task->deadline_us)
        call->deadline_us = now_us + timeout_us;
    if (rt_arena_copy(&call->arena, rt_bytes_of_string(member->row.address), &address))
        call->address = (const char *)address.data;
    rt_assert(call->address);
    call->state = task;
    task->answer = model_call_free(task->answer);
    task->answer = call;
    task->asked = member;
    task->asked_at = core->counter.last;
    task->evicts = false;
    leave_core(core, task, COORD_TASK_CALLING);
    task->step = step;
    rt_list_push_back(&core->effects.calls, &call->link);
}

/* Every answer about a key says how many entries are left. */
static void note_entries(struct coord_core *core, struct coord_task *task)
{
    const struct model_call *call = task->answer;
    enum model_call_kind kind = call->request.kind;
    bool says_it = kind == MODEL_CALL_FENCE || kind == MODEL_CALL_ACTIVATE ||
                   (kind >= MODEL_CALL_SET && kind <= MODEL_CALL_DELETE);

    if (!says_it || call->response.code != RT_OK ||
        call->response.responder.incarnation != task->asked->row.incarnation)
        return;
    if (kind == MODEL_CALL_SET || kind == MODEL_CALL_PUT)
        coord_task_expect(core, task, NULL);
    coord_members_set_free(&core->members, task->asked, call->response.data.entries_free);
}

void coord_core_call_done(struct coord_core *core, struct model_call *call)
{
    struct coord_task *task = call->state;

    note_entries(core, task);
    rt_list_init(&call->link);
    return_to_core(core, task);
    coord_tasks_run(core);
}

enum coord_answer coord_answer_of(const struct model_response *response)
{
    if (response->code == RT_OK)
        return COORD_ANSWER_OK;
    if (response->error.reason == MODEL_REASON_NONE ||
        response->error.reason == MODEL_REASON_DEADLINE_EXCEEDED)
        return COORD_ANSWER_SILENT;
    if (response->error.applied != MODEL_APPLIED_NO)
        return response->error.reason == MODEL_REASON_OWNER_UNREACHABLE ? COORD_ANSWER_SILENT
                                                                        : COORD_ANSWER_FINAL;
    if (response->code == RT_UNAVAILABLE ||
        response->error.reason == MODEL_REASON_STALE_INCARNATION)
        return COORD_ANSWER_RETRY;
    return COORD_ANSWER_FINAL;
}
