/*
 * Room for a value: see state.h. Invariants: nothing is evicted for a value that cannot fit; a
 * value leaves memory only when the store has it; whoever waits for entries is served in the order
 * of arrival, and something is under way for the first of them. Under the core's lock.
 *
 * Candidates (instance/replacement.h) are the values of one entry whose row has no transaction in
 * flight: such a row's value is held back, and may be evicted when the transaction is done. A value
 * that is being dumped stays a candidate, and its eviction waits.
 */
#include "instance/state.h"
#include "runtime/base/alloc.h"

/* ---- the value in memory ---- */

static void take_candidate(struct inst_core *core, const struct inst_row *row)
{
    if (row->run.n == 1)
        (void)inst_replacement_take(&core->replacement, row->run.first);
}

void inst_value_hold(struct inst_core *core, struct inst_op *op)
{
    if (op->row->run.n != 1 || op->rank != INST_REPLACEMENT_NONE)
        return;
    op->rank = inst_replacement_take(&core->replacement, op->row->run.first);
    op->is_held = op->rank != INST_REPLACEMENT_NONE;
    core->n_held += op->is_held;
}

void inst_value_give_back(struct inst_core *core, struct inst_op *op)
{
    core->n_held -= op->is_held;
    op->is_held = false;
    if (op->row->run.n == 1)
        inst_replacement_give_back(&core->replacement, op->row->run.first, op->rank);
    op->rank = INST_REPLACEMENT_NONE;
}

static bool reserve(struct inst_core *core, struct inst_row *row, uint64_t n,
                    struct inst_run *ret_run)
{
    if (!inst_entries_reserve(&core->entries, &row->run, n, ret_run))
        return false;
    if (row->run.n == 0 || row->run.first != ret_run->first)
        core->owners[ret_run->first] = row;
    return true;
}

void inst_value_cancel(struct inst_core *core, struct inst_row *row, const struct inst_run *run)
{
    inst_entries_cancel(&core->entries, &row->run, run);
    if (row->run.n == 0 || row->run.first != run->first)
        core->owners[run->first] = NULL;
}

static void move_in(struct inst_core *core, struct inst_row *row, const struct inst_run *run)
{
    inst_entries_commit(&core->entries, &row->run, run);
    take_candidate(core, row);
    if (row->run.n > 0 && row->run.first != run->first)
        core->owners[row->run.first] = NULL;
    row->run = *run;
    if (run->n == 1)
        inst_replacement_add(&core->replacement, run->first, row->size);
}

void inst_value_put(struct inst_core *core, struct inst_row *row, const struct inst_run *run,
                    struct rt_bytes value, bool is_used)
{
    row->size = (uint32_t)value.size;
    row->has_value = true;
    if (row->run.n != run->n || row->run.first != run->first)
        move_in(core, row, run);
    inst_entries_write(&core->entries, run, value);
    /* A circle does not look at uses: a value that stays where it is costs nothing there. */
    if (run->n == 1 && is_used && core->config.policy != INST_POLICY_CIRC)
        inst_replacement_use(&core->replacement, run->first, value.size);
}

bool inst_value_put_if_free(struct inst_core *core, struct inst_row *row, struct rt_bytes value)
{
    struct inst_run run;

    if (!rt_list_is_empty(&core->space) ||
        !reserve(core, row, inst_entries_needed(&core->entries, value.size), &run))
        return false;
    inst_value_put(core, row, &run, value, false);
    return true;
}

void inst_value_unload(struct inst_core *core, struct inst_row *row)
{
    if (row->run.n == 0)
        return;
    take_candidate(core, row);
    core->owners[row->run.first] = NULL;
    inst_entries_release(&core->entries, &row->run);
}

void inst_value_release(struct inst_core *core, struct inst_row *row)
{
    inst_value_unload(core, row);
    row->has_value = false;
    row->size = 0;
    row->version = (struct model_version){0};
}

struct rt_bytes inst_value_view(const struct inst_core *core, const struct inst_row *row)
{
    rt_assert(inst_value_is_at_hand(core, row));
    if (row->run.n > 0)
        return inst_entries_read(&core->entries, &row->run, row->size);
    return core->loaded;
}

/* ---- eviction ---- */

bool inst_value_is_clean(const struct inst_row *row)
{
    return inst_row_is_on_disk_as_live(row) && row->durable.has_value && !row->value_corrupt &&
           model_version_compare(&row->version, &row->stored_version) == 0;
}

/* A late copy of its Activate must not bring it back. */
static void drop(struct inst_core *core, struct inst_row *row, uint64_t rank)
{
    struct inst_op *op = inst_op_new(core, INST_OP_EVICT, row, NULL);

    op->rank = rank;
    if (row->live.epoch > core->dropped_epoch)
        core->dropped_epoch = row->live.epoch;
    core->n_leaving++;
    inst_op_submit(core, op);
}

static void spill(struct inst_core *core, struct inst_row *row, uint64_t rank)
{
    struct inst_op *op = inst_op_new(core, INST_OP_SPILL, row, NULL);

    op->rank = rank;
    op->version = row->version;
    op->value = inst_entries_read(&core->entries, &row->run, row->size);
    if (core->config.dump_interval_us > 0)
        inst_op_keep_value(core, op);
    core->n_leaving++;
    inst_op_submit(core, op);
}

/* A dump does not change who goes next: the victim's has to be waited for. */
static bool is_next_dumped(const struct inst_core *core)
{
    uint32_t index;

    return inst_replacement_choose(&core->replacement, &index) && core->owners[index]->op;
}

/* Sets the next victim on its way out; false when there is none, or not yet. */
static bool evict(struct inst_core *core)
{
    struct inst_row *row;
    uint32_t index;
    uint64_t rank;

    if (!inst_replacement_choose(&core->replacement, &index) || core->owners[index]->op)
        return false;
    row = core->owners[index];
    rank = inst_replacement_evict(&core->replacement, index);
    if (core->config.eviction == INST_EVICTION_DROP)
        drop(core, row, rank);
    else if (inst_value_is_clean(row))
        inst_value_unload(core, row);
    else
        spill(core, row, rank);
    return true;
}

/* ---- who waits ---- */

static bool could_have(const struct inst_core *core, uint64_t n)
{
    return n <=
           core->entries.n_free + core->n_leaving + core->replacement.n_candidates + core->n_held;
}

bool inst_space_could_fit(const struct inst_core *core, uint64_t size)
{
    uint64_t n = inst_entries_needed(&core->entries, size);

    return n <= core->entries.total && could_have(core, core->n_wanted + n);
}

static void evict_for_waiting(struct inst_core *core)
{
    while (core->entries.n_free + core->n_leaving < core->n_wanted && evict(core))
        ;
}

static void wait_for_entries(struct inst_core *core, struct inst_row *row, struct model_call *call,
                             uint64_t n, uint64_t rank)
{
    struct inst_op *op = inst_op_new(core, INST_OP_SPACE, row, call);

    op->rank = rank;
    op->n_wanted = n;
    rt_list_push_back(&core->space, &op->space_link);
    core->n_wanted += n;
    row->op = op;
    core->n_in_flight++;
    evict_for_waiting(core);
}

/* Ends the wait; the call is the caller's again, and the row has nothing in flight. */
static struct model_call *end_wait(struct inst_core *core, struct inst_op *op)
{
    struct model_call *call = op->call;

    rt_list_remove(&op->space_link);
    core->n_wanted -= op->n_wanted;
    core->n_in_flight--;
    op->row->op = NULL;
    inst_value_give_back(core, op);
    (void)store_txn_free(op->txn);
    return call;
}

static void run_first(struct inst_core *core, struct inst_op *op)
{
    struct inst_row *row = op->row;
    struct model_call *call = end_wait(core, op);

    core->has_turn = true;
    inst_dispatch(core, call, false);
    core->has_turn = false;
    inst_wait_drain(core, row);
}

void inst_space_settle(struct inst_core *core)
{
    while (!rt_list_is_empty(&core->space)) {
        struct inst_op *op = RT_LIST_ENTRY(core->space.next, struct inst_op, space_link);

        evict_for_waiting(core);
        if (core->entries.n_free < op->n_wanted &&
            (core->n_leaving + core->n_held > 0 || is_next_dumped(core)))
            return;
        run_first(core, op);
    }
}

void inst_space_fail(struct inst_core *core, enum model_reason reason)
{
    struct rt_list failed = RT_LIST_INIT(failed);
    struct rt_list *node;

    rt_list_splice_back(&failed, &core->space);
    while ((node = rt_list_pop_front(&failed))) {
        struct inst_op *op = RT_LIST_ENTRY(node, struct inst_op, space_link);
        struct inst_row *row = op->row;
        struct model_call *call = end_wait(core, op);

        inst_answer_fail(core, call, row, reason,
                         "entries are needed, and that a value leaves them could not be written to "
                         "the store");
        call->response.error.applied = MODEL_APPLIED_NO;
        inst_answer_send(core, call);
        inst_wait_drain(core, row);
    }
}

/* ---- reserving ---- */

static bool may_grow(const struct inst_core *core, const struct inst_row *row, uint64_t n)
{
    return core->config.growth == INST_GROWTH_RELOCATE || !row->has_value ||
           n <= inst_entries_needed(&core->entries, row->size);
}

/* There are enough free entries, those of a SET's old value among them. */
static enum inst_space reserve_or_compact(struct inst_core *core, struct inst_row *row,
                                          struct model_call *call, uint64_t n,
                                          struct inst_run *ret_run)
{
    bool reserved = reserve(core, row, n, ret_run);

    if (reserved)
        return INST_SPACE_RESERVED;
    if (call->request.data.header.no_compaction) {
        inst_answer_refuse(core, call, row, MODEL_REASON_COMPACTION_NEEDED);
        return INST_SPACE_REFUSED;
    }
    if (core->entries.n_free < n)
        inst_value_unload(core, row);
    inst_compact(core);
    reserved = reserve(core, row, n, ret_run);
    rt_assert(reserved);
    return INST_SPACE_RESERVED;
}

static bool next_is_clean(const struct inst_core *core)
{
    uint32_t index;

    return core->config.eviction == INST_EVICTION_SPILL &&
           inst_replacement_choose(&core->replacement, &index) &&
           inst_value_is_clean(core->owners[index]) && !core->owners[index]->op;
}

static void refuse_growth(struct inst_core *core, struct inst_row *row, struct model_call *call,
                          uint64_t n)
{
    inst_answer_fail(core, call, row, MODEL_REASON_NO_ENTRIES,
                     "the value needs %llu entries, the key has %llu, and values may not grow here",
                     (unsigned long long)n,
                     (unsigned long long)inst_entries_needed(&core->entries, row->size));
    inst_answer_send(core, call);
}

/* No hole is large enough. */
static enum inst_space make_room(struct inst_core *core, struct inst_row *row,
                                 struct model_call *call, uint64_t n, struct inst_run *ret_run)
{
    /* A SET is done at once, so that its old value's entries are as good as free. */
    bool counts_own = call->request.kind == MODEL_CALL_SET;
    uint64_t n_more = counts_own ? n - row->run.n : n;
    bool has_turn = core->has_turn || rt_list_is_empty(&core->space);
    uint64_t rank = INST_REPLACEMENT_NONE;

    if (row->run.n == 1)
        rank = inst_replacement_take(&core->replacement, row->run.first);
    if (n <= core->entries.total && could_have(core, (has_turn ? 0 : core->n_wanted) + n_more)) {
        while (has_turn && core->entries.n_free < n_more && next_is_clean(core))
            (void)evict(core);
        if (!has_turn || core->entries.n_free < n_more) {
            wait_for_entries(core, row, call, n_more, rank);
            return INST_SPACE_WAITS;
        }
        inst_replacement_give_back(&core->replacement, row->run.first, rank);
        return reserve_or_compact(core, row, call, n, ret_run);
    }
    inst_replacement_give_back(&core->replacement, row->run.first, rank);
    inst_answer_no_entries(core, call, row, call->request.data.value.size);
    return INST_SPACE_REFUSED;
}

enum inst_space inst_space_reserve(struct inst_core *core, struct inst_row *row,
                                   struct model_call *call, struct inst_run *ret_run)
{
    uint64_t n = inst_entries_needed(&core->entries, call->request.data.value.size);
    bool has_turn = core->has_turn || rt_list_is_empty(&core->space);

    if (!may_grow(core, row, n)) {
        refuse_growth(core, row, call, n);
        return INST_SPACE_REFUSED;
    }
    if ((n <= row->run.n || has_turn) && reserve(core, row, n, ret_run))
        return INST_SPACE_RESERVED;
    return make_room(core, row, call, n, ret_run);
}
