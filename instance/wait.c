/*
 * Calls that wait: see state.h. Invariant: a waiting call's `state` is its wait, which is in one
 * list of what it waits for and in the core's list of all. Under the core's lock.
 */
#include "instance/limits.h"
#include "instance/state.h"
#include "runtime/base/alloc.h"

struct inst_wait *inst_wait_new(struct inst_core *core, struct model_call *call, bool pulled)
{
    struct inst_wait *wait;

    if (core->n_waits >= INST_WAITS_MAX)
        return NULL;
    wait = rt_alloc(sizeof(*wait));
    if (!wait)
        return NULL;
    *wait = (struct inst_wait){.call = call, .pulled = pulled};
    rt_list_init(&wait->link);
    rt_list_push_back(&core->waits, &wait->all_link);
    core->n_waits++;
    call->state = wait;
    if (call->deadline_us < core->waits_due_us)
        core->waits_due_us = call->deadline_us;
    return wait;
}

struct model_call *inst_wait_end(struct inst_core *core, struct inst_wait *wait)
{
    struct model_call *call = wait->call;

    rt_list_remove(&wait->link);
    rt_list_remove(&wait->all_link);
    core->n_waits--;
    if (wait->row)
        wait->row->n_waits--;
    call->state = NULL;
    (void)rt_free(wait);
    return call;
}

void inst_wait_for_row(struct inst_core *core, struct inst_row *row, struct model_call *call,
                       bool pulled)
{
    struct inst_wait *wait = NULL;

    if (row->n_waits < INST_WAITS_PER_KEY_MAX)
        wait = inst_wait_new(core, call, pulled);
    if (!wait) {
        inst_answer_fail(core, call, row, MODEL_REASON_LIMIT_REACHED,
                         "%zu calls wait for this key, %zu in all", row->n_waits, core->n_waits);
        inst_answer_send(core, call);
        return;
    }
    wait->row = row;
    row->n_waits++;
    rt_list_push_back(&row->waits, &wait->link);
}

void inst_wait_drain(struct inst_core *core, struct inst_row *row)
{
    inst_dump_row_is_free(core, row);
    while (!row->op && !rt_list_is_empty(&row->waits)) {
        struct inst_wait *wait = RT_LIST_ENTRY(row->waits.next, struct inst_wait, link);
        bool pulled = wait->pulled;

        inst_dispatch(core, inst_wait_end(core, wait), pulled);
    }
    inst_rows_reap(&core->rows, row);
}

void inst_waits_expire(struct inst_core *core, uint64_t now_us)
{
    if (now_us < core->waits_due_us)
        return;
    core->waits_due_us = RT_NEVER;
    rt_list_for_each_safe (node, &core->waits) {
        struct inst_wait *wait = RT_LIST_ENTRY(node, struct inst_wait, all_link);

        if (now_us >= wait->call->deadline_us)
            inst_answer_refuse(core, inst_wait_end(core, wait), NULL,
                               MODEL_REASON_DEADLINE_EXCEEDED);
        else if (wait->call->deadline_us < core->waits_due_us)
            core->waits_due_us = wait->call->deadline_us;
    }
}
