/*
 * Values that are in the store only: see state.h. Invariant: a call that needs one is answered with
 * the version that the row tells, or not at all. Under the core's lock.
 */
#include "instance/state.h"

/* Which row of the store has the value. */
static bool is_spilled(const struct inst_row *row)
{
    return !row->durable.has_value || !inst_row_is_on_disk_as_live(row) ||
           model_version_compare(&row->version, &row->stored_version) != 0;
}

void inst_readback_begin(struct inst_core *core, struct inst_row *row, struct model_call *call)
{
    struct inst_op *op = inst_op_new(core, INST_OP_READBACK, row, call);
    struct inst_record_name name = {
        .kind = is_spilled(row) ? INST_RECORD_SPILL : INST_RECORD_VALUE,
        .key = inst_row_key(row),
    };
    struct inst_record_key key;

    op->version = row->version;
    store_txn_read(op->txn, inst_record_format_name(&name, &key));
    inst_op_submit(core, op);
}

static bool decode(const struct inst_op *op, const struct store_operation *read,
                   struct rt_bytes *ret_value)
{
    struct model_version version;

    return read->is_found &&
           inst_record_decode_value(read->value, &version, ret_value, NULL) == RT_OK &&
           model_version_compare(&version, &op->version) == 0;
}

/* A SET value is lost as if with its process; a durable one makes the key lost. */
static void lose_value(struct inst_core *core, struct inst_row *row)
{
    bool was_spilled = is_spilled(row);

    inst_value_release(core, row);
    if (!was_spilled) {
        row->value_corrupt = true;
        row->live.key_lost = true;
        return;
    }
    row->sets_lost = true;
    row->has_value = inst_row_is_on_disk_as_live(row) && row->durable.has_value;
    if (row->has_value)
        row->version = row->stored_version;
}

static void go_on(struct inst_core *core, struct inst_op *op)
{
    if (op->call->request.kind == MODEL_CALL_FENCE)
        inst_ownership_committed(core, op);
    else
        inst_dispatch(core, op->call, false);
}

/* After an unknown outcome the store may hold what nobody was told: neither old nor new. */
static void refuse_unknown(struct inst_core *core, const struct inst_op *op)
{
    struct model_call *call = op->call;

    inst_answer_fail(core, call, op->row, MODEL_REASON_STORE_ERROR,
                     "the value is in the store only, whose state is not known since a commit "
                     "failed");
    if (call->request.kind != MODEL_CALL_FENCE)
        call->response.error.applied = MODEL_APPLIED_NO;
    inst_answer_send(core, call);
}

void inst_readback_done(struct inst_core *core, struct inst_op *op, const struct store_txn *txn)
{
    struct inst_row *row = op->row;
    struct rt_bytes value;

    if (!decode(op, &txn->operations[0], &value)) {
        if (core->read_only) {
            refuse_unknown(core, op);
            return;
        }
        lose_value(core, row);
    } else if (!inst_value_put_if_free(core, row, value)) {
        core->loaded_row = row;
        core->loaded = value;
    }
    go_on(core, op);
    core->loaded_row = NULL;
}
