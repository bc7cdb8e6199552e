/*
 * Fence, Activate, Drop, Compact: see state.h. Invariant: each is idempotent, none takes a floor or
 * an epoch back, and none is acknowledged before what it changes on disk is durable. Under the
 * core's lock.
 */
#include "instance/state.h"

struct inst_record inst_ownership_begin(const struct inst_core *core, const struct model_row *told)
{
    return (struct inst_record){
        .epoch = told->epoch,
        .incarnation = core->membership.incarnation,
        .floor = told->token_floor,
        .dedup_since = told->epoch,
        .locking = told->locking,
        .locked = told->locked,
        .dirty = told->locked || told->sets_lost,
        .key_lost = told->key_lost,
    };
}

void inst_ownership_merge(struct inst_record *record, const struct model_row *told)
{
    if (told->token_floor <= record->floor)
        return;
    record->floor = told->token_floor;
    record->locked = told->locked;
    record->locking = told->locking;
    record->dirty |= told->locked;
}

/* ---- what all commands are asked ---- */

struct command {
    uint64_t term;
    struct rt_bytes key;
    uint64_t incarnation; /* 0: not named */
    bool needs_lease;
    bool has_no_key;
};

static enum model_reason check_state(const struct inst_core *core, const struct command *command)
{
    enum inst_membership_state state = core->membership.state;
    uint64_t mine = core->membership.incarnation;

    if (state > INST_MEMBERSHIP_SERVING)
        return MODEL_REASON_DRAINING;
    if (state < INST_MEMBERSHIP_LEASING)
        return MODEL_REASON_NOT_SERVING;
    if (command->incarnation != 0 && command->incarnation != mine)
        return command->incarnation < mine ? MODEL_REASON_STALE_INCARNATION
                                           : MODEL_REASON_SUPERSEDED;
    if (state < INST_MEMBERSHIP_SERVING && command->needs_lease)
        return MODEL_REASON_NOT_SERVING;
    if (core->read_only && !command->has_no_key)
        return MODEL_REASON_READ_ONLY;
    return MODEL_REASON_NONE;
}

static enum model_reason check_command(struct inst_core *core, const struct model_call *call,
                                       const struct command *command)
{
    uint64_t now_us = inst_now(core);
    enum model_reason reason;

    if (call->cancelled)
        return MODEL_REASON_CANCELLED;
    if (now_us >= call->deadline_us)
        return MODEL_REASON_DEADLINE_EXCEEDED;
    if (command->key.size == 0 && !command->has_no_key)
        return MODEL_REASON_KEY_EMPTY;
    if (command->key.size > core->key_max)
        return MODEL_REASON_KEY_TOO_LONG;
    if (!inst_registry_note_term(core, command->term))
        return MODEL_REASON_STALE_TERM;
    reason = check_state(core, command);
    if (reason == MODEL_REASON_SUPERSEDED)
        inst_membership_renew_soon(&core->membership, now_us);
    if (reason != MODEL_REASON_NONE)
        return reason;
    if (command->needs_lease && inst_membership_is_fenced(&core->membership, now_us))
        return MODEL_REASON_LEASE_EXPIRED;
    return MODEL_REASON_NONE;
}

/* The coordinator does not pass on what is said here: that SETs were lost is kept for an access. */
static void answer_ok(struct inst_core *core, struct model_call *call, struct inst_row *row)
{
    bool sets_lost = row->sets_lost;

    (void)inst_answer_data(core, call, row);
    row->sets_lost = sets_lost;
    inst_answer_send(core, call);
}

/* ---- Fence ---- */

static enum model_reason check_fence(const struct inst_row *row,
                                     const struct model_fence_request *fence)
{
    const struct inst_record *live = &row->live;

    if (fence->epoch != live->epoch)
        return fence->epoch < live->epoch ? MODEL_REASON_STALE_EPOCH : MODEL_REASON_EPOCH_AHEAD;
    if (!fence->locked)
        return MODEL_REASON_NONE;
    if (live->key_lost)
        return MODEL_REASON_KEY_LOST;
    if (fence->token < live->floor || fence->token <= live->closed ||
        fence->token <= live->released)
        return MODEL_REASON_LOCK_FENCED;
    return MODEL_REASON_NONE;
}

static struct inst_record after_fence(const struct inst_row *row,
                                      const struct model_fence_request *fence)
{
    struct inst_record after = row->live;

    if (fence->locked) {
        after.floor = fence->token;
        after.locked = true;
        after.dirty = true;
        return after;
    }
    if (fence->token > after.released)
        after.released = fence->token;
    if (fence->token < after.floor)
        return after;
    after.floor = fence->token;
    after.locked = false;
    after.dirty =
        row->sets_lost || row->has_value != after.has_value ||
        (row->has_value && model_version_compare(&row->version, &row->stored_version) != 0);
    return after;
}

/* The floor is durable, or was already: the value is read only now. */
static void finish_fence(struct inst_core *core, struct inst_row *row, struct model_call *call,
                         uint64_t incarnation)
{
    if (!inst_checks_post(&core->membership, incarnation, inst_now(core))) {
        inst_answer_refuse(core, call, row, MODEL_REASON_OUTCOME_UNKNOWN);
        return;
    }
    if (call->request.fence.locked && !inst_value_is_at_hand(core, row)) {
        inst_readback_begin(core, row, call);
        return;
    }
    if (call->request.fence.locked && row->live.key_lost) {
        inst_answer_fail(core, call, row, MODEL_REASON_KEY_LOST, "%s",
                         model_reason_meaning(MODEL_REASON_KEY_LOST));
        call->response.error.applied = MODEL_APPLIED_MAYBE;
        inst_answer_send(core, call);
        return;
    }
    if (call->request.fence.locked) {
        (void)inst_answer_value(core, call, row);
        inst_answer_send(core, call);
        return;
    }
    answer_ok(core, call, row);
}

static bool is_durable(const struct inst_row *row, const struct inst_record *after)
{
    struct inst_record same = *after;

    same.incarnation = row->durable.incarnation;
    return row->on_disk && inst_record_equal(&same, &row->durable);
}

/* From now on calls that wait with an older token are refused, whatever becomes of this one. */
static void raise_floor(struct inst_row *row, const struct model_fence_request *fence)
{
    if (row->phase == INST_ROW_ACTIVE && fence->locked && fence->epoch == row->live.epoch &&
        fence->token > row->live.floor)
        row->live.floor = fence->token;
}

static void fence(struct inst_core *core, struct model_call *call)
{
    const struct model_fence_request *request = &call->request.fence;
    struct command command = {request->term, request->key, request->incarnation, true};
    enum model_reason reason = check_command(core, call, &command);
    struct inst_row *row =
        reason == MODEL_REASON_NONE ? inst_rows_find(&core->rows, request->key) : NULL;
    struct inst_record after;
    struct inst_op *op;

    if (reason == MODEL_REASON_NONE && request->token == 0)
        reason = MODEL_REASON_INVALID_FIELD;
    if (reason == MODEL_REASON_NONE && row)
        raise_floor(row, request);
    if (reason == MODEL_REASON_NONE && row && row->op) {
        inst_wait_for_row(core, row, call, false);
        return;
    }
    if (reason == MODEL_REASON_NONE && (!row || row->phase != INST_ROW_ACTIVE))
        reason = MODEL_REASON_NOT_OWNER;
    if (reason == MODEL_REASON_NONE)
        reason = check_fence(row, request);
    if (reason != MODEL_REASON_NONE) {
        inst_answer_refuse(core, call, row, reason);
        return;
    }
    after = after_fence(row, request);
    if (is_durable(row, &after)) {
        row->live = row->durable;
        finish_fence(core, row, call, core->membership.incarnation);
        return;
    }
    op = inst_op_new(core, INST_OP_FENCE, row, call);
    after.incarnation = op->incarnation;
    op->after = after;
    inst_op_submit(core, op);
}

/* ---- Activate ---- */

static bool takes_over(const struct inst_row *row, const struct model_row *told)
{
    bool held = row->phase == INST_ROW_ACTIVE || (row->on_disk && !row->row_corrupt);

    return held && row->live.epoch == told->epoch;
}

void inst_ownership_activate(struct inst_core *core, struct inst_row *row,
                             const struct model_row *told, struct model_call *call)
{
    struct inst_op *op = inst_op_new(core, INST_OP_ACTIVATE, row, call);

    if (takes_over(row, told)) {
        inst_ownership_merge(&op->after, told);
        op->after.dirty |= told->sets_lost;
        op->after.key_lost |= told->key_lost || inst_row_misses_value(row);
    } else {
        op->after = inst_ownership_begin(core, told);
        op->replaces = true;
    }
    op->result.sets_lost = told->sets_lost;
    inst_rows_set_phase(&core->rows, row, INST_ROW_ACTIVATING);
    inst_op_submit(core, op);
}

static void activate_again(struct inst_core *core, struct inst_row *row, struct model_call *call)
{
    struct inst_record after = row->live;

    inst_ownership_merge(&after, &call->request.activate.row);
    if (is_durable(row, &after))
        answer_ok(core, call, row);
    else
        inst_ownership_activate(core, row, &call->request.activate.row, call);
}

/* A late copy of an Activate must not bring back a key that was dropped since. */
static bool is_dropped(const struct inst_core *core, const struct inst_row *row,
                       const struct model_activate_request *request)
{
    bool held = row->phase == INST_ROW_ACTIVE || row->on_disk;

    return request->row.epoch <= core->dropped_epoch &&
           !(held && row->live.epoch == request->row.epoch);
}

static void activate_row(struct inst_core *core, struct inst_row *row, struct model_call *call)
{
    const struct model_activate_request *request = &call->request.activate;
    bool held = row->phase == INST_ROW_ACTIVE || row->on_disk;

    if ((held && row->live.epoch > request->row.epoch) || is_dropped(core, row, request)) {
        inst_answer_refuse(core, call, row, MODEL_REASON_STALE_EPOCH);
        return;
    }
    if (row->phase == INST_ROW_ACTIVE && row->live.epoch == request->row.epoch) {
        activate_again(core, row, call);
        return;
    }
    if (!inst_space_could_fit(core, request->value_size)) {
        inst_answer_no_entries(core, call, row, request->value_size);
        return;
    }
    inst_ownership_activate(core, row, &request->row, call);
}

static void activate(struct inst_core *core, struct model_call *call)
{
    const struct model_activate_request *request = &call->request.activate;
    struct command command = {request->term, request->row.key, request->incarnation, false};
    enum model_reason reason = check_command(core, call, &command);
    struct inst_row *row = NULL;

    if (reason == MODEL_REASON_NONE && request->value_size > MODEL_VALUE_MAX)
        reason = MODEL_REASON_VALUE_TOO_LARGE;
    if (reason == MODEL_REASON_NONE && request->row.epoch == 0)
        reason = MODEL_REASON_INVALID_FIELD;
    if (reason == MODEL_REASON_NONE && !(row = inst_rows_get(&core->rows, request->row.key)))
        reason = MODEL_REASON_LIMIT_REACHED;
    if (reason != MODEL_REASON_NONE)
        inst_answer_refuse(core, call, row, reason);
    else if (row->op)
        inst_wait_for_row(core, row, call, false);
    else
        activate_row(core, row, call);
}

/* ---- Drop ---- */

static void answer_dropped(struct inst_core *core, struct model_call *call)
{
    model_response_ok(&call->response, MODEL_CALL_DROP);
    inst_answer_send(core, call);
}

/* A row that was never written has no one to tell but memory. */
static void drop_in_memory(struct inst_core *core, struct inst_row *row)
{
    rt_assert(!row->has_value);
    row->live = (struct inst_record){0};
    row->sets_lost = false;
    inst_dedup_forget_row(&core->dedup, row);
    inst_rows_set_phase(&core->rows, row, INST_ROW_ABSENT);
}

static void drop(struct inst_core *core, struct model_call *call)
{
    const struct model_drop_request *request = &call->request.drop;
    struct command command = {request->term, request->key, 0, false};
    enum model_reason reason = check_command(core, call, &command);
    struct inst_row *row;

    if (reason != MODEL_REASON_NONE) {
        inst_answer_refuse(core, call, NULL, reason);
        return;
    }
    row = inst_rows_find(&core->rows, request->key);
    if (row && row->op) {
        inst_wait_for_row(core, row, call, false);
        return;
    }
    if (row && row->live.epoch <= request->epoch &&
        (row->has_value || row->sets_lost || inst_row_misses_value(row))) {
        inst_answer_refuse(core, call, row, MODEL_REASON_VERSION_MISMATCH);
        return;
    }
    if (request->epoch > core->dropped_epoch)
        core->dropped_epoch = request->epoch;
    if (!row || row->live.epoch > request->epoch) {
        answer_dropped(core, call);
        return;
    }
    if (row->on_disk || row->row_corrupt || row->value_corrupt) {
        inst_op_submit(core, inst_op_new(core, INST_OP_DROP, row, call));
        return;
    }
    drop_in_memory(core, row);
    answer_dropped(core, call);
}

/* ---- Compact ---- */

static void compact(struct inst_core *core, struct model_call *call)
{
    const struct model_compact_request *request = &call->request.compact;
    struct command command = {
        .term = request->term, .incarnation = request->incarnation, .has_no_key = true};
    enum model_reason reason = check_command(core, call, &command);

    if (reason == MODEL_REASON_NONE && (request->incarnation == 0 || request->round == 0))
        reason = MODEL_REASON_INVALID_FIELD;
    if (reason != MODEL_REASON_NONE) {
        inst_answer_refuse(core, call, NULL, reason);
        return;
    }
    (void)inst_compact_round(core, request->term, request->round);
    model_response_ok(&call->response, MODEL_CALL_COMPACT);
    inst_answer_send(core, call);
}

/* ---- the rest ---- */

static uint64_t term_of(const struct model_request *request)
{
    if (request->kind == MODEL_CALL_FENCE)
        return request->fence.term;
    if (request->kind == MODEL_CALL_ACTIVATE)
        return request->activate.term;
    return request->drop.term;
}

/* The life and the coordinator under which the command was taken are still the current ones. */
static bool is_still_told(const struct inst_core *core, const struct inst_op *op)
{
    bool same_life = op->kind == INST_OP_DROP || op->incarnation == core->membership.incarnation;

    return same_life && term_of(&op->call->request) == core->meta.term;
}

void inst_ownership_committed(struct inst_core *core, struct inst_op *op)
{
    if (!op->call)
        return;
    if (!is_still_told(core, op))
        inst_answer_refuse(core, op->call, op->row, MODEL_REASON_OUTCOME_UNKNOWN);
    else if (op->kind == INST_OP_FENCE || op->kind == INST_OP_READBACK)
        finish_fence(core, op->row, op->call, op->incarnation);
    else if (op->kind == INST_OP_ACTIVATE)
        answer_ok(core, op->call, op->row);
    else
        answer_dropped(core, op->call);
}

void inst_ownership_learn(struct inst_core *core, const struct model_row *told)
{
    struct inst_row *row = inst_rows_find(&core->rows, told->key);

    if (!row || row->phase != INST_ROW_ACTIVE || row->op)
        return;
    if (told->epoch == row->live.epoch)
        inst_ownership_merge(&row->live, told);
    else if (told->epoch > row->live.epoch)
        inst_ownership_activate(core, row, told, NULL);
}

void inst_ownership_dispatch(struct inst_core *core, struct model_call *call)
{
    if (call->request.kind == MODEL_CALL_FENCE)
        fence(core, call);
    else if (call->request.kind == MODEL_CALL_ACTIVATE)
        activate(core, call);
    else if (call->request.kind == MODEL_CALL_DROP)
        drop(core, call);
    else
        compact(core, call);
}
