/*
 * Transactions: see state.h. Invariant: a row has at most one in flight, which compares the row as
 * it was last committed; memory changes when it has committed, never before. Under the core's lock.
 */
#include "instance/limits.h"
#include "instance/state.h"
#include "runtime/base/alloc.h"

enum {
    PRUNE_DELAY_US = 1000000,
    META_RETRY_US = 1000000,
};

struct inst_op *inst_op_new(struct inst_core *core, enum inst_op_kind kind, struct inst_row *row,
                            struct model_call *call)
{
    struct store_txn *txn = store_txn_new();
    struct inst_op *op = rt_arena_alloc(&txn->arena, sizeof(*op));

    rt_assert(op);
    *op = (struct inst_op){.kind = kind, .txn = txn, .rank = INST_REPLACEMENT_NONE};
    txn->ctx = op;
    op->row = row;
    op->call = call;
    op->incarnation = core->membership.incarnation;
    if (row) {
        op->after = row->live;
        op->after.incarnation = op->incarnation;
        op->phase_before = row->phase;
    }
    return op;
}

void inst_op_keep_value(const struct inst_core *core, struct inst_op *op)
{
    op->version = op->row->version;
    op->value = inst_value_view(core, op->row);
    op->writes_value = true;
    op->after.has_value = true;
    op->after.dirty = op->row->sets_lost;
}

struct inst_op *inst_op_abandon(struct inst_core *core, struct inst_op *op)
{
    if (op->has_run)
        inst_value_cancel(core, op->row, &op->run);
    (void)store_txn_free(op->txn);
    return NULL;
}

/* ---- building ---- */

static struct rt_bytes name_of(enum inst_record_kind kind, const struct inst_row *row,
                               struct inst_record_key *key)
{
    struct inst_record_name name = {.kind = kind,
                                    .key = row ? inst_row_key(row) : rt_bytes_of(NULL, 0)};

    return inst_record_format_name(&name, key);
}

static void put(struct store_txn *txn, struct rt_bytes name, struct rt_buffer *buffer)
{
    rt_assert(rt_buffer_check(buffer, NULL) == RT_OK);
    store_txn_put(txn, name, rt_buffer_bytes(buffer));
    rt_buffer_reset(buffer);
}

static void add_dedup(struct store_txn *txn, const struct inst_row *row,
                      const struct model_request_id *id, const struct inst_dedup_result *result,
                      struct rt_buffer *buffer)
{
    struct inst_record_name name = {
        .kind = INST_RECORD_DEDUP, .key = inst_row_key(row), .request_id = *id};
    struct inst_record_key key;

    inst_record_encode_dedup(buffer, result);
    put(txn, inst_record_format_name(&name, &key), buffer);
}

static void add_remembered(struct inst_op *op, struct rt_buffer *buffer)
{
    if (inst_op_drops(op) || op->replaces)
        return;
    rt_list_for_each (node, &op->row->dedup_volatile) {
        const struct inst_dedup_entry *entry =
            RT_LIST_ENTRY(node, struct inst_dedup_entry, row_link);

        add_dedup(op->txn, op->row, &entry->id, &entry->result, buffer);
    }
    inst_dedup_row_written(op->row);
    if (op->entry)
        add_dedup(op->txn, op->row, &op->call->request.data.header.request_id, &op->result, buffer);
}

static void add_row(struct inst_op *op, struct rt_buffer *buffer)
{
    const struct inst_row *row = op->row;
    struct inst_record_key key;
    struct rt_bytes name = name_of(INST_RECORD_ROW, row, &key);

    if (row->on_disk) {
        inst_record_encode_row(buffer, &row->durable);
        rt_assert(rt_buffer_check(buffer, NULL) == RT_OK);
        store_txn_compare(op->txn, name, rt_buffer_bytes(buffer));
        rt_buffer_reset(buffer);
    } else if (!row->row_corrupt) {
        store_txn_compare_absent(op->txn, name);
    }
    if (inst_op_drops(op)) {
        store_txn_delete(op->txn, name);
        return;
    }
    inst_record_encode_row(buffer, &op->after);
    put(op->txn, name, buffer);
}

static void add_value(struct inst_op *op, struct rt_buffer *buffer)
{
    const struct inst_row *row = op->row;
    bool may_exist = row->durable.has_value || row->value_corrupt || row->row_corrupt;
    struct inst_record_key key;
    struct rt_bytes name = name_of(INST_RECORD_VALUE, row, &key);

    if (op->writes_value) {
        inst_record_encode_value(buffer, &op->version, op->value);
        put(op->txn, name, buffer);
    } else if (may_exist && (inst_op_drops(op) || !op->after.has_value)) {
        store_txn_delete(op->txn, name);
    }
}

/* The value that is in the store only, or what is left of one. */
static void add_spill(struct inst_op *op, struct rt_buffer *buffer)
{
    const struct inst_row *row = op->row;
    bool is_needed = row->has_value && row->run.n == 0 && !op->writes_value &&
                     op->kind != INST_OP_DELETE && !inst_op_drops(op) && !op->replaces;
    struct inst_record_key key;
    struct rt_bytes name = name_of(INST_RECORD_SPILL, row, &key);

    if (op->kind == INST_OP_SPILL && !op->writes_value) {
        inst_record_encode_value(buffer, &op->version, op->value);
        put(op->txn, name, buffer);
    } else if (row->has_spill && !is_needed) {
        store_txn_delete(op->txn, name);
        op->deletes_spill = true;
    }
}

/* What was dropped to make room is remembered, as much of it as in memory. */
static void add_evicted(struct inst_core *core, struct inst_op *op, struct rt_buffer *buffer)
{
    const struct inst_evicted *oldest =
        op->kind == INST_OP_EVICT ? inst_evicted_oldest(core, core->n_leaving - 1) : NULL;
    struct inst_record_name old = {.kind = INST_RECORD_EVICTED};
    struct inst_record_key key;

    if (oldest) {
        old.key = rt_bytes_of(oldest->key, oldest->key_size);
        store_txn_delete(op->txn, inst_record_format_name(&old, &key));
    }
    if (op->kind == INST_OP_EVICT) {
        inst_record_encode_evicted(buffer, op->row->live.epoch);
        put(op->txn, name_of(INST_RECORD_EVICTED, op->row, &key), buffer);
    } else if (core->n_evicted > 0 && op->kind == INST_OP_ACTIVATE &&
               inst_evicted_find(core, inst_row_key(op->row))) {
        store_txn_delete(op->txn, name_of(INST_RECORD_EVICTED, op->row, &key));
    }
}

static void add_meta(struct inst_core *core, struct inst_op *op, struct rt_buffer *buffer)
{
    struct inst_record_key key;

    inst_record_encode_meta(buffer, &core->meta);
    put(op->txn, name_of(INST_RECORD_META, NULL, &key), buffer);
    op->has_meta = true;
    core->meta_dirty = false;
}

static bool writes_row(const struct inst_op *op)
{
    return op->row && op->kind != INST_OP_READBACK;
}

void inst_op_submit(struct inst_core *core, struct inst_op *op)
{
    struct rt_buffer buffer = {0};

    if (op->row) {
        rt_assert(!op->row->op);
        if (op->kind != INST_OP_DUMP)
            inst_value_hold(core, op);
        op->row->op = op;
        core->n_in_flight++;
    }
    if (writes_row(op)) {
        add_row(op, &buffer);
        add_value(op, &buffer);
        add_spill(op, &buffer);
        add_evicted(core, op, &buffer);
        add_remembered(op, &buffer);
    }
    if (op->kind == INST_OP_META || (writes_row(op) && core->meta_dirty))
        add_meta(core, op, &buffer);
    rt_buffer_deinit(&buffer);
    rt_list_push_back(&core->effects.txns, &op->txn->link);
}

void inst_commit_meta(struct inst_core *core)
{
    if (core->meta_in_flight)
        return;
    core->meta_in_flight = true;
    inst_op_submit(core, inst_op_new(core, INST_OP_META, NULL, NULL));
}

void inst_commit_prune(struct inst_core *core, uint64_t now_us)
{
    struct model_request_id id;
    struct inst_row *row;
    struct inst_op *op;

    if (core->dedup.n_condemned == 0 || core->prune_in_flight)
        return;
    if (core->prune_at_us == RT_NEVER)
        core->prune_at_us = now_us + PRUNE_DELAY_US;
    if (core->dedup.n_condemned < INST_DEDUP_PRUNE_MAX && now_us < core->prune_at_us)
        return;
    core->prune_at_us = RT_NEVER;
    core->prune_in_flight = true;
    op = inst_op_new(core, INST_OP_PRUNE, NULL, NULL);
    while (op->txn->n_operations < INST_DEDUP_PRUNE_MAX &&
           inst_dedup_take_condemned(&core->dedup, &row, &id)) {
        struct inst_record_name name = {
            .kind = INST_RECORD_DEDUP, .key = inst_row_key(row), .request_id = id};
        struct inst_record_key key;

        store_txn_delete(op->txn, inst_record_format_name(&name, &key));
        inst_rows_reap(&core->rows, row);
    }
    inst_op_submit(core, op);
}

/* ---- completion ---- */

static void apply_value(struct inst_core *core, struct inst_op *op)
{
    struct inst_row *row = op->row;

    if (op->has_run) {
        inst_value_put(core, row, &op->run, op->value, true);
        op->has_run = false;
    } else if (op->kind == INST_OP_STORE && row->run.n == 1) {
        inst_replacement_use(&core->replacement, row->run.first, row->size);
    }
    if (op->kind == INST_OP_SPILL)
        inst_value_unload(core, row);
    row->has_spill =
        (row->has_spill && !op->deletes_spill) || (op->kind == INST_OP_SPILL && !op->writes_value);
    if (op->writes_value) {
        row->version = op->version;
        row->stored_version = op->version;
        row->value_corrupt = false;
        row->value_unloaded = false;
    }
    if (op->kind == INST_OP_DELETE || inst_op_drops(op) || op->replaces)
        inst_value_release(core, row);
    if (inst_op_drops(op) || !op->after.has_value) {
        row->value_corrupt = false;
        row->value_unloaded = false;
    }
}

static void apply_ownership(struct inst_core *core, struct inst_op *op)
{
    struct inst_row *row = op->row;
    uint64_t floor = row->live.floor;
    bool same_epoch = row->live.epoch == op->after.epoch;

    row->on_disk = !inst_op_drops(op);
    row->row_corrupt = false;
    if (op->kind == INST_OP_EVICT)
        inst_evicted_add(core, inst_row_key(row), row->live.epoch, false);
    if (op->kind == INST_OP_ACTIVATE)
        inst_evicted_forget(core, inst_row_key(row));
    if (inst_op_drops(op) || op->replaces)
        inst_dedup_forget_row(&core->dedup, row);
    if (inst_op_drops(op)) {
        row->sets_lost = false;
        row->live = (struct inst_record){0};
        row->durable = row->live;
        inst_rows_set_phase(&core->rows, row, INST_ROW_ABSENT);
        return;
    }
    row->durable = op->after;
    row->live = op->after;
    if (same_epoch && floor > row->live.floor)
        row->live.floor = floor;
    if (op->kind == INST_OP_ACTIVATE) {
        row->sets_lost = (row->sets_lost && !op->replaces) || op->result.sets_lost;
        inst_rows_set_phase(&core->rows, row, INST_ROW_ACTIVE);
    }
    inst_dedup_row_committed(row);
}

static void committed(struct inst_core *core, struct inst_op *op)
{
    apply_value(core, op);
    apply_ownership(core, op);
    if (op->entry)
        inst_dedup_record(&core->dedup, RT_TAKE(op->entry), op->row,
                          &op->call->request.data.header.request_id, &op->result, true);
    if (inst_op_evicts(op) || op->kind == INST_OP_DUMP)
        return;
    if (op->kind == INST_OP_MARK_DIRTY)
        inst_dispatch(core, op->call, false);
    else if (op->kind >= INST_OP_FENCE)
        inst_ownership_committed(core, op);
    else
        inst_data_committed(core, op);
}

/* The store disagrees with memory. Whoever changed it, the caller learns what memory says now. */
static void answer_mismatch(struct inst_core *core, const struct inst_op *op)
{
    inst_answer_fail(core, op->call, op->row, MODEL_REASON_NONE,
                     "the stored row is not the one that this instance wrote");
    op->call->response.error.applied = MODEL_APPLIED_NO;
    inst_answer_send(core, op->call);
}

static void answer_not_committed(struct inst_core *core, const struct inst_op *op,
                                 enum store_outcome outcome)
{
    if (!op->call)
        return;
    switch (outcome) {
    case STORE_COMMITTED:
        break;
    case STORE_COMPARE_FAILED:
        answer_mismatch(core, op);
        break;
    case STORE_FULL:
        inst_answer_refuse(core, op->call, op->row, MODEL_REASON_DISK_FULL);
        break;
    case STORE_UNKNOWN:
        inst_answer_fail(core, op->call, op->row, MODEL_REASON_STORE_ERROR, "%s",
                         model_reason_meaning(MODEL_REASON_STORE_ERROR));
        if (op->kind == INST_OP_MARK_DIRTY ||
            (op->kind == INST_OP_READBACK && op->call->request.kind != MODEL_CALL_FENCE))
            op->call->response.error.applied = MODEL_APPLIED_NO;
        inst_answer_send(core, op->call);
        break;
    }
}

static void not_committed(struct inst_core *core, struct inst_op *op, enum store_outcome outcome)
{
    if (op->has_run)
        inst_value_cancel(core, op->row, &op->run);
    if (op->entry)
        inst_dedup_discard(&core->dedup, RT_TAKE(op->entry));
    if (op->kind == INST_OP_ACTIVATE)
        inst_rows_set_phase(&core->rows, op->row, op->phase_before);
    answer_not_committed(core, op, outcome);
}

static void row_done(struct inst_core *core, struct inst_op *op, const struct store_txn *txn)
{
    struct inst_row *row = op->row;
    bool is_committed = txn->outcome == STORE_COMMITTED;

    row->op = NULL;
    core->n_in_flight--;
    core->n_leaving -= inst_op_evicts(op);
    if (!inst_op_evicts(op) || !is_committed)
        inst_value_give_back(core, op);
    if (is_committed && op->kind == INST_OP_READBACK)
        inst_readback_done(core, op, txn);
    else if (is_committed)
        committed(core, op);
    else
        not_committed(core, op, txn->outcome);
    if (inst_op_evicts(op) && !is_committed)
        inst_space_fail(core, txn->outcome == STORE_FULL ? MODEL_REASON_DISK_FULL
                                                         : MODEL_REASON_STORE_ERROR);
    if (op->kind == INST_OP_DUMP)
        inst_dump_done(core, row, txn->outcome);
    inst_space_settle(core);
    inst_wait_drain(core, row);
    if (core->n_in_flight == 0)
        inst_registry_drained(core);
}

static void become_read_only(struct inst_core *core)
{
    if (!core->read_only)
        model_effects_tell(&core->effects, RT_LOG_ERROR, "event=read_only reason=STORE_ERROR");
    core->read_only = true;
}

void inst_core_txn_done(struct inst_core *core, struct store_txn *txn)
{
    struct inst_op *op = txn->ctx;
    enum store_outcome outcome = txn->outcome;

    if (outcome == STORE_UNKNOWN)
        become_read_only(core);
    if (op->has_meta && outcome != STORE_COMMITTED) {
        core->meta_dirty = true;
        core->meta_retry_at_us = inst_now(core) + META_RETRY_US;
    }
    switch (op->kind) {
    case INST_OP_META:
        core->meta_in_flight = false;
        inst_registry_meta_done(core, outcome);
        break;
    case INST_OP_PRUNE:
        core->prune_in_flight = false;
        break;
    case INST_OP_SPACE:
        break;
    case INST_OP_MARK_DIRTY:
    case INST_OP_SPILL:
    case INST_OP_DUMP:
    case INST_OP_EVICT:
    case INST_OP_READBACK:
    case INST_OP_STORE:
    case INST_OP_PUT:
    case INST_OP_DELETE:
    case INST_OP_FENCE:
    case INST_OP_ACTIVATE:
    case INST_OP_DROP:
        row_done(core, op, txn);
        break;
    }
    (void)store_txn_free(txn);
    inst_core_settle(core);
}
