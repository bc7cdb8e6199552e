/*
 * See compaction.h. Invariant: while instances are asked to compact no statement is at an instance
 * or at the store, but one that did not end in time. Runs under the core's lock.
 */
#include "coordinator/compaction.h"

#include "coordinator/execute.h"
#include "coordinator/locks.h"

enum {
    ATTEMPT_US = 1000000
};

static uint64_t phase_us(const struct coord_core *core)
{
    return core->config.member_lease.duration_us / 2;
}

static void on_timer(struct coord_core *core, struct coord_timer *timer);

void coord_compaction_init(struct coord_core *core)
{
    core->compaction.timer.on_due = on_timer;
    rt_list_init(&core->compaction.askers);
    rt_list_init(&core->compaction.held);
}

/* ---- statements ------------------------------------------------------------------------------ */

/* A GET that is held waits for its key, too. */
static void keep_place(struct coord_core *core, const struct coord_task *task)
{
    struct coord_waiter *waiter = NULL;

    if (task->session && coord_execute_request(task)->kind == MODEL_STATEMENT_GET)
        waiter = coord_locks_find_waiter(coord_keys_find(&core->keys, coord_task_name(task)),
                                         task->session);
    if (waiter)
        coord_locks_come_back(core, waiter);
}

bool coord_compaction_holds(struct coord_core *core, struct coord_task *task)
{
    if (core->compaction.state == COORD_COMPACTION_IDLE ||
        coord_execute_request(task)->kind == MODEL_STATEMENT_AWAIT)
        return false;
    keep_place(core, task);
    coord_task_wait(core, task, &core->compaction.held, MODEL_REASON_DEADLINE_EXCEEDED,
                    coord_execute_run);
    return true;
}

void coord_compaction_ask(struct coord_core *core, struct coord_task *task)
{
    struct coord_compaction *compaction = &core->compaction;

    task->may_compact = true;
    coord_task_wait(core, task, &compaction->askers, MODEL_REASON_DEADLINE_EXCEEDED,
                    coord_execute_run);
    if (compaction->state != COORD_COMPACTION_IDLE)
        return;
    compaction->state = COORD_COMPACTION_DRAINING;
    coord_timers_set(&core->timers, &compaction->timer, coord_now_us(core) + phase_us(core));
}

/* ---- instances ------------------------------------------------------------------------------- */

static void end_round(struct coord_core *core)
{
    struct coord_compaction *compaction = &core->compaction;

    model_effects_tell(
        &core->effects, RT_LOG_INFO, "event=compacted round=%llu instances=%zu left_out=%zu",
        (unsigned long long)compaction->round, compaction->n_compacted, compaction->n_left_out);
    compaction->state = COORD_COMPACTION_IDLE;
    coord_tasks_wake(core, &compaction->askers);
    coord_tasks_wake(core, &compaction->held);
}

static void finish_one(struct coord_core *core, struct coord_task *task, bool has_compacted)
{
    core->compaction.n_compacted += has_compacted;
    core->compaction.n_left_out += !has_compacted;
    coord_task_finish(core, task);
    if (--core->compaction.n_asked == 0)
        end_round(core);
}

/* The life of the instance that was connected when the round began. */
static bool is_connected(const struct coord_task *task)
{
    const struct coord_member *member = task->member;

    return member->row.state == MODEL_MEMBER_ALIVE && !member->ending &&
           member->row.incarnation == task->incarnation;
}

static void ask(struct coord_core *core, struct coord_task *task);

static void on_answer(struct coord_core *core, struct coord_task *task)
{
    enum coord_answer answer = coord_answer_of(&task->answer->response);
    bool again = answer == COORD_ANSWER_RETRY || answer == COORD_ANSWER_SILENT;

    if (!again || !coord_task_back_off(core, task, ask))
        finish_one(core, task, answer == COORD_ANSWER_OK);
}

static void ask(struct coord_core *core, struct coord_task *task)
{
    struct model_call *call;

    if (!is_connected(task)) {
        finish_one(core, task, false);
        return;
    }
    call = model_call_new(MODEL_CALL_COMPACT);
    call->request.compact = (struct model_compact_request){
        .term = core->meta.term,
        .incarnation = task->incarnation,
        .round = core->compaction.round,
    };
    coord_task_call(core, task, call, task->member, ATTEMPT_US, on_answer);
}

static void begin_asking(struct coord_core *core, struct coord_member *member)
{
    struct coord_task *task = coord_task_new(core, NULL, (struct rt_bytes){0}, ask);

    task->member = member;
    task->incarnation = member->row.incarnation;
    task->deadline_us = coord_now_us(core) + phase_us(core);
    core->compaction.n_asked++;
    coord_task_ready(core, task, NULL);
}

static void compact_all(struct coord_core *core)
{
    struct coord_compaction *compaction = &core->compaction;

    coord_timers_cancel(&core->timers, &compaction->timer);
    compaction->state = COORD_COMPACTION_RUNNING;
    compaction->round++;
    compaction->n_asked = 0;
    compaction->n_compacted = 0;
    compaction->n_left_out = 0;
    for (uint32_t ordinal = 1; ordinal <= core->members.last_ordinal; ordinal++) {
        struct coord_member *member = coord_members_at(&core->members, ordinal);

        if (member && member->row.state == MODEL_MEMBER_ALIVE && !member->ending)
            begin_asking(core, member);
    }
    if (compaction->n_asked == 0)
        end_round(core);
}

static void on_timer(struct coord_core *core, struct coord_timer *timer)
{
    (void)timer;
    if (core->compaction.state == COORD_COMPACTION_DRAINING)
        compact_all(core);
}

bool coord_compaction_settle(struct coord_core *core)
{
    if (core->compaction.state != COORD_COMPACTION_DRAINING || core->n_under_way > 0)
        return false;
    compact_all(core);
    return true;
}
