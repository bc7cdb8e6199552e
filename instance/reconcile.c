/*
 * Reconcile: what was found in the store goes up, what is to be served comes down. See state.h.
 * Invariant: a row is served only when the coordinator named it in this reconcile; what it did not
 * name stays on disk. Under the core's lock.
 */
#include "instance/state.h"

enum {
    CALL_TIMEOUT_US = 2000000,
    PART_ATTEMPTS = 5, /* of one part, then from Register on */
    POLL_DELAY_US = 100000,
};

/* Nothing is served before its reconcile answer. */
static void quarantine_all(struct inst_core *core)
{
    rt_list_for_each_safe (node, &core->rows.all) {
        struct inst_row *row = RT_LIST_ENTRY(node, struct inst_row, link);

        if (row->on_disk || row->row_corrupt) {
            row->live = row->durable;
            inst_rows_set_phase(&core->rows, row, INST_ROW_QUARANTINED);
        } else {
            row->live = (struct inst_record){0};
            row->sets_lost = false;
            inst_rows_set_phase(&core->rows, row, INST_ROW_ABSENT);
            inst_rows_reap(&core->rows, row);
        }
    }
}

static bool is_held(const struct inst_row *row)
{
    return row->on_disk && !row->value_unloaded;
}

static void fill_part(struct inst_core *core, struct model_call *call)
{
    struct model_reconcile_request *request = &call->request.reconcile;
    struct inst_reconcile *reconcile = &core->reconcile;
    struct rt_list *node = reconcile->cursor;

    request->rows = rt_arena_alloc(&call->arena, MODEL_RECONCILE_ROWS_MAX * sizeof(*request->rows));
    rt_assert(request->rows);
    for (; node != &core->rows.all && request->n_rows < MODEL_RECONCILE_ROWS_MAX;
         node = node->next) {
        const struct inst_row *row = RT_LIST_ENTRY(node, struct inst_row, link);
        struct model_held_row *held = &request->rows[request->n_rows];

        if (!is_held(row))
            continue;
        *held = (struct model_held_row){.epoch = row->durable.epoch};
        held->has_value = row->durable.has_value && !row->value_corrupt;
        if (held->has_value)
            held->version = row->stored_version;
        if (!rt_arena_copy(&call->arena, inst_row_key(row), &held->key))
            rt_assert(false);
        request->n_rows++;
    }
    reconcile->next = node;
}

void inst_reconcile_send(struct inst_core *core)
{
    struct model_reconcile_request *request;
    struct model_call *call;

    core->attempt++;
    core->membership.retry_at_us = RT_NEVER;
    call = inst_registry_new_call(core, MODEL_CALL_RECONCILE, CALL_TIMEOUT_US);
    request = &call->request.reconcile;
    *request = (struct model_reconcile_request){
        .incarnation = core->membership.incarnation,
        .part = core->reconcile.part,
    };
    inst_registry_copy_name(core, request->name);
    if (!core->reconcile.last_sent)
        fill_part(core, call);
    request->last = core->reconcile.last_sent || core->reconcile.next == &core->rows.all;
}

void inst_reconcile_begin(struct inst_core *core)
{
    core->reconcile.begun = true;
    quarantine_all(core);
    core->reconcile.cursor = core->rows.all.next;
    inst_reconcile_send(core);
}

/* Held at the told epoch: served as it is, with the coordinator's word on locks. */
static void accept_held(struct inst_core *core, struct inst_row *row, const struct model_row *told)
{
    row->live = row->durable;
    if (told->token_floor >= row->live.floor) {
        row->live.floor = told->token_floor;
        row->live.locked = told->locked;
    }
    row->live.locking = told->locking;
    row->live.key_lost |= told->key_lost || inst_row_misses_value(row);
    row->sets_lost |= told->sets_lost;
    inst_rows_set_phase(&core->rows, row, INST_ROW_ACTIVE);
}

/* Written at once where nothing on disk would be lost by it: a row that is missing at the next
 * reconcile reads as a lost key. */
static void write_told(struct inst_core *core, struct inst_row *row)
{
    struct inst_op *op;

    if (row->on_disk || row->row_corrupt || row->value_corrupt)
        return;
    op = inst_op_new(core, INST_OP_ACTIVATE, row, NULL);
    op->result.sets_lost = row->sets_lost;
    inst_rows_set_phase(&core->rows, row, INST_ROW_ACTIVATING);
    inst_op_submit(core, op);
}

/* Not held, or only an earlier epoch's: the row begins anew. What is left of it on disk goes with
 * its next transaction. */
static void begin_told(struct inst_core *core, struct inst_row *row, const struct model_row *told)
{
    inst_value_release(core, row);
    inst_dedup_forget_row(&core->dedup, row);
    inst_evicted_forget(core, inst_row_key(row));
    row->live = inst_ownership_begin(core, told);
    row->live.dirty = told->sets_lost;
    row->live.key_lost |= row->row_corrupt || (row->value_corrupt && !row->on_disk);
    row->sets_lost = told->sets_lost;
    inst_rows_set_phase(&core->rows, row, INST_ROW_ACTIVE);
    write_told(core, row);
}

/* The coordinator has not heard that this ownership was dropped. It is not served, so that the next
 * access of the key tells. */
static bool was_evicted(const struct inst_core *core, const struct model_row *told)
{
    const struct inst_evicted *evicted =
        core->n_evicted > 0 ? inst_evicted_find(core, told->key) : NULL;

    return evicted && evicted->epoch == told->epoch;
}

static bool apply_told(struct inst_core *core, const struct model_row *told)
{
    struct inst_row *row;

    if (told->key.size < 1 || told->key.size > MODEL_KEY_MAX || told->epoch == 0)
        return true;
    if (was_evicted(core, told))
        return true;
    row = inst_rows_get(&core->rows, told->key);
    if (!row)
        return false;
    if (row->op || (row->phase == INST_ROW_ACTIVE && row->live.epoch == told->epoch))
        return true;
    if (row->on_disk && row->durable.epoch == told->epoch)
        accept_held(core, row, told);
    else
        begin_told(core, row, told);
    return true;
}

/* What the coordinator did not ask for stays on disk and gives its entries back. */
static void unload_quarantined(struct inst_core *core)
{
    rt_list_for_each (node, &core->rows.all) {
        struct inst_row *row = RT_LIST_ENTRY(node, struct inst_row, link);

        if (row->phase != INST_ROW_QUARANTINED || !row->has_value)
            continue;
        inst_value_release(core, row);
        row->value_unloaded = row->durable.has_value;
        row->sets_lost |= row->durable.dirty;
    }
}

static void tell_of_quarantined(struct inst_core *core)
{
    size_t n = core->rows.n[INST_ROW_QUARANTINED];

    if (n > 0)
        model_effects_tell(&core->effects, RT_LOG_WARNING, "event=keys_quarantined n=%zu", n);
}

static void reconciled(struct inst_core *core)
{
    unload_quarantined(core);
    tell_of_quarantined(core);
    inst_membership_move(&core->membership, INST_MEMBERSHIP_LEASING, inst_now(core));
    inst_membership_tick(&core->membership, core->now_us);
}

static void next_part(struct inst_core *core, const struct model_reconcile_response *answer)
{
    struct inst_reconcile *reconcile = &core->reconcile;

    inst_membership_succeeded(&core->membership);
    reconcile->n_failed = 0;
    reconcile->part++;
    reconcile->cursor = reconcile->next;
    if (reconcile->last_sent && answer->done)
        reconciled(core);
    else if (reconcile->last_sent && answer->n_rows == 0)
        core->membership.retry_at_us = inst_now(core) + POLL_DELAY_US;
    else
        inst_reconcile_send(core);
}

static void part_failed(struct inst_core *core, enum rt_code code)
{
    bool restart = ++core->reconcile.n_failed >= PART_ATTEMPTS;

    if (code == RT_FAILED_PRECONDITION || code == RT_ABORTED || code == RT_INVALID_ARGUMENT ||
        code == RT_NOT_FOUND)
        restart = true;
    if (restart)
        inst_registry_register_again(core, false);
    else
        inst_membership_retry_later(&core->membership, &core->env);
}

void inst_reconcile_answered(struct inst_core *core, const struct model_response *response)
{
    if (response->code != RT_OK) {
        part_failed(core, response->code);
        return;
    }
    if (response->responder.term != core->reconcile.term) {
        inst_registry_register_again(core, true);
        return;
    }
    /* The list's end moves when rows are added, so the last part must be known before. */
    if (core->reconcile.next == &core->rows.all)
        core->reconcile.last_sent = true;
    for (size_t i = 0; i < response->reconcile.n_rows; i++) {
        if (!apply_told(core, &response->reconcile.rows[i])) {
            part_failed(core, RT_RESOURCE_EXHAUSTED);
            return;
        }
    }
    next_part(core, &response->reconcile);
}
