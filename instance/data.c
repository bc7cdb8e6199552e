/*
 * SET, STORE, PUT, READ, DELETE: see state.h. Invariant: whatever may refuse an operation is asked
 * before anything changes, and no OK leaves before its post-check. Under the core's lock.
 */
#include "instance/limits.h"
#include "instance/state.h"

static const struct model_header *header_of(const struct model_call *call)
{
    return &call->request.data.header;
}

static bool wants_dedup(const struct model_call *call)
{
    return header_of(call)->request_id.seq != 0;
}

static struct model_version next_version(const struct inst_core *core, const struct inst_row *row)
{
    return (struct model_version){row->live.epoch, core->membership.incarnation, row->live.seq + 1};
}

/* ---- SET ---- */

/* Nothing durable says yet that SETs may be lost with this process, or too much would be forgotten
 * with it. */
static bool must_mark_dirty(const struct inst_row *row)
{
    return !inst_row_is_on_disk_as_live(row) || !row->durable.dirty ||
           row->n_volatile >= INST_DEDUP_VOLATILE_MAX;
}

static void mark_dirty(struct inst_core *core, struct inst_row *row, struct model_call *call)
{
    struct inst_op *op = inst_op_new(core, INST_OP_MARK_DIRTY, row, call);

    op->after.dirty = true;
    inst_op_submit(core, op);
}

static void remember_set(struct inst_core *core, struct inst_row *row, struct model_call *call,
                         struct inst_dedup_entry *entry)
{
    struct inst_dedup_result result = {
        .version = row->version,
        .has_value = true,
        .sets_lost = row->sets_lost,
    };

    inst_dedup_record(&core->dedup, entry, row, &header_of(call)->request_id, &result, false);
}

static void set(struct inst_core *core, struct inst_row *row, struct model_call *call)
{
    struct rt_bytes value = call->request.data.value;
    struct inst_dedup_entry *entry = NULL;
    struct inst_run run;

    if (must_mark_dirty(row)) {
        mark_dirty(core, row, call);
        return;
    }
    if (wants_dedup(call) && !(entry = inst_dedup_prepare(&core->dedup))) {
        inst_answer_refuse(core, call, row, MODEL_REASON_LIMIT_REACHED);
        return;
    }
    if (inst_space_reserve(core, row, call, &run) != INST_SPACE_RESERVED) {
        if (entry)
            inst_dedup_discard(&core->dedup, entry);
        return;
    }
    row->version = next_version(core, row);
    row->live.seq = row->version.seq;
    inst_value_put(core, row, &run, value, true);
    inst_dump_note(core, row);
    if (entry)
        remember_set(core, row, call, entry);
    if (!inst_checks_post(&core->membership, core->membership.incarnation, inst_now(core))) {
        inst_answer_refuse(core, call, row, MODEL_REASON_OUTCOME_UNKNOWN);
        return;
    }
    (void)inst_answer_data(core, call, row);
    inst_evicted_tell(core, call);
    inst_answer_send(core, call);
}

/* ---- STORE, PUT, DELETE ---- */

/* Whether the value in memory is, or is newer than, the version that the caller SET last. */
static bool has_last_set(const struct inst_core *core, const struct inst_row *row,
                         const struct model_version *last)
{
    if (last->epoch != row->live.epoch)
        return false;
    if (last->incarnation == core->membership.incarnation)
        return last->seq <= row->live.seq;
    return row->has_value && row->version.incarnation == last->incarnation &&
           last->seq <= row->version.seq;
}

static bool has_if_version(const struct inst_row *row, const struct model_data_request *data)
{
    return !data->has_if_version || model_version_compare(&row->version, &data->if_version) == 0;
}

/* The token is spent; an unlocked key's last token is too. */
static void close_token(struct inst_record *after, const struct inst_row *row, uint64_t token)
{
    if (token == 0 && !inst_row_is_locked(row))
        token = after->floor;
    if (token > after->closed)
        after->closed = token;
}

/* Prepares the record of the request and hands the transaction out. Takes the op. */
static void submit_write(struct inst_core *core, struct inst_op *op)
{
    const struct inst_row *row = op->row;

    op->after.dirty = row->sets_lost;
    op->after.seq = op->version.seq;
    op->result = (struct inst_dedup_result){
        .version =
            op->after.has_value ? op->version : (struct model_version){.epoch = op->after.epoch},
        .has_value = op->after.has_value,
        .stored = op->after.has_value,
        .sets_lost = row->sets_lost,
    };
    if (wants_dedup(op->call) && !(op->entry = inst_dedup_prepare(&core->dedup))) {
        inst_answer_refuse(core, op->call, row, MODEL_REASON_LIMIT_REACHED);
        (void)inst_op_abandon(core, op);
        return;
    }
    inst_op_submit(core, op);
}

static void store(struct inst_core *core, struct inst_row *row, struct model_call *call)
{
    const struct model_data_request *data = &call->request.data;
    struct inst_op *op;

    if (data->has_last_set && !has_last_set(core, row, &data->last_set)) {
        inst_answer_refuse(core, call, row, MODEL_REASON_SET_LOST);
        return;
    }
    if (!inst_value_is_at_hand(core, row)) {
        inst_readback_begin(core, row, call);
        return;
    }
    op = inst_op_new(core, INST_OP_STORE, row, call);
    close_token(&op->after, row, data->header.lock_token);
    op->version = row->version;
    op->version.seq = row->live.seq;
    if (row->has_value) {
        op->version = next_version(core, row);
        op->writes_value = true;
        op->value = inst_value_view(core, row);
    }
    op->after.has_value = row->has_value;
    submit_write(core, op);
}

static void put(struct inst_core *core, struct inst_row *row, struct model_call *call)
{
    const struct model_data_request *data = &call->request.data;
    struct inst_run run;
    struct inst_op *op;

    if (!has_if_version(row, data)) {
        inst_answer_refuse(core, call, row, MODEL_REASON_VERSION_MISMATCH);
        return;
    }
    if (inst_space_reserve(core, row, call, &run) != INST_SPACE_RESERVED)
        return;
    op = inst_op_new(core, INST_OP_PUT, row, call);
    op->run = run;
    op->has_run = true;
    close_token(&op->after, row, data->header.lock_token);
    op->version = next_version(core, row);
    op->writes_value = true;
    op->value = data->value;
    op->after.has_value = true;
    submit_write(core, op);
}

static void delete_value(struct inst_core *core, struct inst_row *row, struct model_call *call)
{
    struct inst_op *op;

    if (!has_if_version(row, &call->request.data)) {
        inst_answer_refuse(core, call, row, MODEL_REASON_VERSION_MISMATCH);
        return;
    }
    op = inst_op_new(core, INST_OP_DELETE, row, call);
    op->version = next_version(core, row);
    op->after.has_value = false;
    op->after.key_lost = false;
    submit_write(core, op);
}

void inst_data_committed(struct inst_core *core, struct inst_op *op)
{
    if (!inst_checks_post(&core->membership, op->incarnation, inst_now(core))) {
        inst_answer_refuse(core, op->call, op->row, MODEL_REASON_OUTCOME_UNKNOWN);
        return;
    }
    (void)inst_answer_data(core, op->call, op->row);
    if (op->kind == INST_OP_PUT)
        inst_evicted_tell(core, op->call);
    inst_answer_send(core, op->call);
}

/* ---- READ ---- */

static void read_value(struct inst_core *core, struct inst_row *row, struct model_call *call,
                       enum inst_access access)
{
    bool sets_lost = row->sets_lost;
    bool answered;
    bool holds;

    if (!inst_value_is_at_hand(core, row)) {
        if (row->op)
            inst_wait_for_row(core, row, call, false);
        else
            inst_readback_begin(core, row, call);
        return;
    }
    answered = inst_answer_value(core, call, row);
    holds = inst_checks_post(&core->membership, core->membership.incarnation, inst_now(core));
    /* To look is no access: who accesses the key next is told as well. */
    if (answered && (access == INST_ACCESS_STALE_READ || !holds))
        row->sets_lost = sets_lost;
    if (answered && access == INST_ACCESS_STALE_READ) {
        call->response.data.stale = !holds;
    } else if (answered && !holds) {
        inst_answer_fail(core, call, row, MODEL_REASON_LEASE_EXPIRED, "%s",
                         model_reason_meaning(MODEL_REASON_LEASE_EXPIRED));
    }
    inst_answer_send(core, call);
}

/* ---- dispatch ---- */

static void apply(struct inst_core *core, struct inst_row *row, struct model_call *call,
                  enum inst_access access)
{
    const struct model_header *header = header_of(call);

    rt_assert(row);
    if (access == INST_ACCESS_WRITE && wants_dedup(call))
        inst_dedup_done_below(&core->dedup, &header->request_id.client, header->done_below);
    if (call->request.kind == MODEL_CALL_SET)
        set(core, row, call);
    else if (call->request.kind == MODEL_CALL_STORE)
        store(core, row, call);
    else if (call->request.kind == MODEL_CALL_PUT)
        put(core, row, call);
    else if (call->request.kind == MODEL_CALL_DELETE)
        delete_value(core, row, call);
    else
        read_value(core, row, call, access);
}

/* Check 7: the request id was used before, and its answer is not there to be given again. */
static void refuse_repeated(struct inst_core *core, const struct inst_row *row,
                            struct model_call *call)
{
    inst_answer_fail(core, call, row, MODEL_REASON_OUTCOME_UNKNOWN,
                     "request %llu of this client may have been carried out before, and what came "
                     "of it is not remembered",
                     (unsigned long long)header_of(call)->request_id.seq);
    inst_answer_send(core, call);
}

static void decide(struct inst_core *core, struct inst_row *row, struct model_call *call,
                   const struct inst_verdict *verdict, enum inst_access access)
{
    if (verdict->renew_now)
        inst_membership_renew_soon(&core->membership, core->now_us);
    switch (verdict->result) {
    case INST_CHECK_PASS:
        apply(core, row, call, access);
        break;
    case INST_CHECK_REFUSE:
        if (verdict->reason == MODEL_REASON_OUTCOME_UNKNOWN)
            refuse_repeated(core, row, call);
        else
            inst_answer_refuse(core, call, row, verdict->reason);
        break;
    case INST_CHECK_PULL:
        inst_pull_wait(core, call, row, verdict->reason);
        break;
    case INST_CHECK_REPLAY:
        inst_answer_recorded(core, call, &verdict->recorded);
        break;
    }
}

void inst_data_dispatch(struct inst_core *core, struct model_call *call, bool pulled)
{
    enum inst_access access = inst_checks_access(&call->request);
    struct inst_row *row = inst_rows_find(&core->rows, header_of(call)->key);
    struct inst_view view = {
        .call = call,
        .name = core->config.name,
        .cluster_id = &core->meta.cluster_id,
        .membership = &core->membership,
        .row = row,
        .dedup = &core->dedup,
        .now_us = inst_now(core),
        .key_max = core->key_max,
        .access = access,
        .read_only = core->read_only,
        .pulled = pulled,
    };
    struct inst_verdict verdict;

    inst_checks_run(&view, INST_CHECK_FIRST, INST_CHECK_LEASE, &verdict);
    if (verdict.result == INST_CHECK_PASS && row && row->op && access != INST_ACCESS_STALE_READ) {
        inst_wait_for_row(core, row, call, pulled);
        return;
    }
    if (verdict.result == INST_CHECK_PASS)
        inst_checks_run(&view, INST_CHECK_ROW, INST_CHECK_LAST, &verdict);
    decide(core, row, call, &verdict, access);
}
