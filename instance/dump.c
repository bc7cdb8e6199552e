/*
 * The periodic dump: every period each SET value that is newer than the stored one is written to
 * the store, unasked, with its version and its lock as they are: see state.h. Invariants: a row
 * that needs it is in `sets`, in `due`, or marked `dump_due`; at most INST_DUMP_IN_FLIGHT_MAX are
 * under way. What comes after it on that key waits; nothing else does. Under the core's lock.
 */
#include "instance/limits.h"
#include "instance/state.h"

static bool is_on(const struct inst_core *core)
{
    return core->config.dump_interval_us > 0;
}

static bool may_dump(const struct inst_core *core)
{
    return is_on(core) && !core->read_only && core->membership.state == INST_MEMBERSHIP_SERVING;
}

static bool needs_dump(const struct inst_row *row)
{
    return row->phase == INST_ROW_ACTIVE && row->has_value && row->run.n > 0 &&
           !inst_value_is_clean(row);
}

void inst_dump_note(struct inst_core *core, struct inst_row *row)
{
    if (is_on(core) && !row->dump_due && rt_list_is_empty(&row->dump_link))
        rt_list_push_back(&core->sets, &row->dump_link);
}

static void dump(struct inst_core *core, struct inst_row *row)
{
    struct inst_op *op = inst_op_new(core, INST_OP_DUMP, row, NULL);

    inst_op_keep_value(core, op);
    core->n_dumping++;
    inst_op_submit(core, op);
}

/* Until nothing is due, or enough is under way. */
static void dump_next(struct inst_core *core)
{
    while (core->n_dumping < INST_DUMP_IN_FLIGHT_MAX && !rt_list_is_empty(&core->due)) {
        struct inst_row *row =
            RT_LIST_ENTRY(rt_list_pop_front(&core->due), struct inst_row, dump_link);

        rt_list_init(&row->dump_link);
        /* What it needs then is not known before its transaction is done. */
        if (row->op)
            row->dump_due = true;
        else if (!needs_dump(row))
            continue;
        else if (may_dump(core))
            dump(core, row);
        else
            inst_dump_note(core, row);
    }
}

void inst_dump_tick(struct inst_core *core, uint64_t now_us)
{
    if (now_us < core->dump_at_us || !may_dump(core))
        return;
    core->dump_at_us = now_us + core->config.dump_interval_us;
    core->dump_failed = false;
    rt_list_splice_back(&core->due, &core->sets);
    dump_next(core);
}

uint64_t inst_dump_next_wakeup_us(const struct inst_core *core)
{
    return may_dump(core) ? core->dump_at_us : RT_NEVER;
}

void inst_dump_row_is_free(struct inst_core *core, struct inst_row *row)
{
    if (!row->dump_due || row->op)
        return;
    row->dump_due = false;
    if (!needs_dump(row))
        return;
    rt_list_push_front(&core->due, &row->dump_link);
    dump_next(core);
}

void inst_dump_done(struct inst_core *core, struct inst_row *row, enum store_outcome outcome)
{
    core->n_dumping--;
    if (outcome != STORE_COMMITTED) {
        inst_dump_note(core, row);
        if (!core->dump_failed)
            model_effects_tell(&core->effects, RT_LOG_WARNING, "event=dump_failed reason=%s",
                               outcome == STORE_FULL ? "DISK_FULL" : "STORE_ERROR");
        core->dump_failed = true;
    }
    dump_next(core);
}
