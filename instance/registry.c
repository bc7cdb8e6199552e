/*
 * Calls to the coordinator: see state.h. Invariant: an answer counts only while it belongs to the
 * current attempt (Register, Reconcile, Leave) or incarnation (Renew), and never from a lower term;
 * whatever else happens to a call, another is made. Under the core's lock.
 */
#include <stdarg.h>
#include <stdio.h>

#include "instance/limits.h"
#include "instance/state.h"
#include "runtime/base/alloc.h"

enum {
    CALL_TIMEOUT_US = 2000000,
    PULL_TIMEOUT_US = 50000,
    LEAVE_TIMEOUT_US = 2000000,
    PART_ATTEMPTS = 5, /* of one part, then from Register on */
    POLL_DELAY_US = 100000,
};

static void send_register(struct inst_core *core);
static void send_part(struct inst_core *core);

/* ---- calls
 * --------------------------------------------------------------------------------------- */

static struct model_call *new_call(struct inst_core *core, enum model_call_kind kind,
                                   uint64_t timeout_us)
{
    struct model_call *call = model_call_new(kind);
    struct inst_outbound *outbound = rt_arena_alloc(&call->arena, sizeof(*outbound));
    struct rt_bytes address = {0};

    rt_assert(outbound);
    if (!rt_arena_copy(&call->arena, rt_bytes_of_string(core->config.coordinator_address),
                       &address))
        rt_assert(false);
    *outbound = (struct inst_outbound){
        .sent_us = inst_now(core),
        .incarnation = core->membership.incarnation,
        .attempt = core->attempt,
    };
    call->address = (const char *)address.data;
    call->state = outbound;
    call->deadline_us = outbound->sent_us + timeout_us;
    rt_list_push_back(&core->effects.calls, &call->link);
    return call;
}

static void copy_name(const struct inst_core *core, char name[MODEL_NAME_MAX + 1])
{
    memcpy(name, core->config.name, MODEL_NAME_MAX + 1);
}

bool inst_registry_note_term(struct inst_core *core, uint64_t term)
{
    if (term > core->meta.term) {
        core->meta.term = term;
        core->meta_dirty = true;
    }
    return term == core->meta.term;
}

/* false when the answer is to be ignored as an earlier coordinator's. */
static bool note_responder(struct inst_core *core, const struct model_response *response)
{
    const struct model_responder *responder = &response->responder;

    if (responder->placement_version > core->placement_version)
        core->placement_version = responder->placement_version;
    if (response->code != RT_OK && responder->term == 0)
        return true;
    return inst_registry_note_term(core, responder->term);
}

void inst_registry_stop(struct inst_core *core, enum model_reason reason, const char *format, ...)
{
    struct model_response response;
    va_list arguments;
    char message[MODEL_ERROR_MESSAGE_MAX + 1];

    va_start(arguments, format);
    (void)vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    model_response_fail(&response, reason, "%s", message);
    core->failure = response.error;
    core->has_failure = true;
    core->attempt++;
    inst_membership_move(&core->membership, INST_MEMBERSHIP_STOPPED, core->now_us);
}

/* ---- Register
 * ------------------------------------------------------------------------------------ */

static void send_register(struct inst_core *core)
{
    struct model_register_request *request;

    core->attempt++;
    core->membership.retry_at_us = RT_NEVER;
    request = &new_call(core, MODEL_CALL_REGISTER, CALL_TIMEOUT_US)->request.reg;
    *request = (struct model_register_request){
        .cluster_id = core->meta.cluster_id,
        .store_id = core->config.store_id,
        .boot_id = core->config.boot_id,
        .machine_id = core->config.machine_id,
        .local_store = core->config.local_store,
        .entries_total = core->config.entries_total,
        .entry_size = core->config.entry_size,
    };
    copy_name(core, request->name);
    memcpy(request->address, core->config.address, sizeof(request->address));
}

void inst_registry_start(struct inst_core *core)
{
    inst_membership_move(&core->membership, INST_MEMBERSHIP_REGISTERING, inst_now(core));
    send_register(core);
}

/* This life is over, or its beginning has to be made again. */
static void register_again(struct inst_core *core)
{
    inst_membership_move(&core->membership, INST_MEMBERSHIP_REGISTERING, inst_now(core));
}

static void write_meta(struct inst_core *core)
{
    core->membership.retry_at_us = RT_NEVER;
    inst_commit_meta(core);
}

static bool is_fatal(const struct inst_core *core, const struct model_response *response)
{
    switch (response->error.reason) {
    case MODEL_REASON_STORE_BELONGS_TO:
    case MODEL_REASON_WRONG_CLUSTER:
        return true;
    case MODEL_REASON_NAME_IN_USE:
        return !core->membership.was_registered;
    case MODEL_REASON_NAME_FROZEN:
        return false;
    default:
        return response->code == RT_INVALID_ARGUMENT;
    }
}

static void registered(struct inst_core *core, const struct model_register_response *reg,
                       const struct model_lease *lease)
{
    core->membership.lease = *lease;
    core->membership.was_registered = true;
    core->key_max = reg->key_max;
    core->reconcile = (struct inst_reconcile){.term = core->meta.term};
    core->meta.cluster_id = reg->cluster_id;
    core->meta.incarnation = reg->incarnation;
    core->meta_dirty = true;
    inst_membership_move(&core->membership, INST_MEMBERSHIP_RECORDING, core->now_us);
    core->membership.incarnation = reg->incarnation;
    write_meta(core);
}

static void on_register(struct inst_core *core, const struct model_response *response,
                        bool is_current)
{
    const struct model_register_response *reg = &response->reg;
    struct model_lease lease;

    if (!is_current || core->membership.state != INST_MEMBERSHIP_REGISTERING)
        return;
    if (response->code != RT_OK && is_fatal(core, response)) {
        inst_registry_stop(core, response->error.reason, "%s", response->error.message);
        core->failure = response->error;
        core->failure.key = (struct rt_bytes){0};
        return;
    }
    if (response->code != RT_OK || reg->incarnation == 0 || reg->key_max < 1 ||
        reg->key_max > MODEL_KEY_MAX || model_id_is_none(&reg->cluster_id) ||
        model_lease_init(&lease, reg->lease_ms, NULL) != RT_OK) {
        inst_membership_retry_later(&core->membership, &core->env);
        return;
    }
    if (!model_id_is_none(&core->meta.cluster_id) &&
        !model_id_equal(&core->meta.cluster_id, &reg->cluster_id)) {
        inst_registry_stop(core, MODEL_REASON_WRONG_CLUSTER,
                           "the data directory belongs to another cluster than %s",
                           core->config.coordinator_address);
        return;
    }
    registered(core, reg, &lease);
}

void inst_registry_meta_done(struct inst_core *core, enum store_outcome outcome)
{
    if (core->membership.state != INST_MEMBERSHIP_RECORDING)
        return;
    switch (outcome) {
    case STORE_COMMITTED:
        if (core->meta_dirty) {
            write_meta(core);
            return;
        }
        inst_membership_move(&core->membership, INST_MEMBERSHIP_RECONCILING, inst_now(core));
        if (core->n_in_flight == 0)
            inst_registry_drained(core);
        break;
    case STORE_FULL:
        inst_membership_retry_later(&core->membership, &core->env);
        break;
    case STORE_COMPARE_FAILED:
    case STORE_UNKNOWN:
        inst_registry_stop(core, MODEL_REASON_STORE_ERROR, "the membership could not be written");
        break;
    }
}

/* ---- Reconcile
 * ----------------------------------------------------------------------------------- */

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

static void send_part(struct inst_core *core)
{
    struct model_reconcile_request *request;
    struct model_call *call;

    core->attempt++;
    core->membership.retry_at_us = RT_NEVER;
    call = new_call(core, MODEL_CALL_RECONCILE, CALL_TIMEOUT_US);
    request = &call->request.reconcile;
    *request = (struct model_reconcile_request){
        .incarnation = core->membership.incarnation,
        .part = core->reconcile.part,
    };
    copy_name(core, request->name);
    if (!core->reconcile.last_sent)
        fill_part(core, call);
    request->last = core->reconcile.last_sent || core->reconcile.next == &core->rows.all;
}

void inst_registry_drained(struct inst_core *core)
{
    struct inst_reconcile *reconcile = &core->reconcile;

    if (core->membership.state == INST_MEMBERSHIP_LEAVING) {
        inst_registry_leave(core);
        return;
    }
    if (core->membership.state != INST_MEMBERSHIP_RECONCILING || reconcile->begun)
        return;
    reconcile->begun = true;
    quarantine_all(core);
    reconcile->cursor = core->rows.all.next;
    send_part(core);
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
    row->live.key_lost |= told->key_lost || row->value_corrupt;
    row->sets_lost |= told->sets_lost;
    inst_rows_set_phase(&core->rows, row, INST_ROW_ACTIVE);
}

/* Not held, or only an earlier epoch's: the row begins anew; its next transaction writes it. */
static void begin_told(struct inst_core *core, struct inst_row *row, const struct model_row *told)
{
    bool damaged = row->row_corrupt || row->value_corrupt ||
                   (row->value_unloaded && row->durable.epoch == told->epoch);

    inst_value_release(core, row);
    inst_dedup_forget_row(&core->dedup, row);
    row->live = inst_ownership_begin(core, told);
    row->live.dirty = false;
    row->live.key_lost |= damaged;
    row->sets_lost = told->sets_lost;
    inst_rows_set_phase(&core->rows, row, INST_ROW_ACTIVE);
}

static bool apply_told(struct inst_core *core, const struct model_row *told)
{
    struct inst_row *row;

    if (told->key.size < 1 || told->key.size > MODEL_KEY_MAX || told->epoch == 0)
        return true;
    row = inst_rows_get(&core->rows, told->key);
    if (!row)
        return false;
    if (row->phase == INST_ROW_ACTIVE && row->live.epoch == told->epoch)
        return true;
    if (is_held(row) && row->durable.epoch == told->epoch)
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
        row->value_unloaded = true;
    }
}

static void reconciled(struct inst_core *core)
{
    unload_quarantined(core);
    inst_membership_move(&core->membership, INST_MEMBERSHIP_LEASING, inst_now(core));
    inst_membership_tick(&core->membership, core->now_us);
}

static void next_part(struct inst_core *core, const struct model_reconcile_response *answer)
{
    struct inst_reconcile *reconcile = &core->reconcile;
    bool was_last = reconcile->last_sent || reconcile->next == &core->rows.all;

    inst_membership_succeeded(&core->membership);
    reconcile->n_failed = 0;
    reconcile->part++;
    reconcile->cursor = reconcile->next;
    reconcile->last_sent = was_last;
    if (was_last && answer->done)
        reconciled(core);
    else if (was_last && answer->n_rows == 0)
        core->membership.retry_at_us = inst_now(core) + POLL_DELAY_US;
    else
        send_part(core);
}

static void part_failed(struct inst_core *core, enum rt_code code)
{
    bool restart = ++core->reconcile.n_failed >= PART_ATTEMPTS;

    if (code == RT_FAILED_PRECONDITION || code == RT_ABORTED || code == RT_INVALID_ARGUMENT ||
        code == RT_NOT_FOUND)
        restart = true;
    if (restart)
        register_again(core);
    inst_membership_retry_later(&core->membership, &core->env);
}

static void on_reconcile(struct inst_core *core, const struct model_response *response,
                         bool is_current)
{
    if (!is_current || core->membership.state != INST_MEMBERSHIP_RECONCILING)
        return;
    if (response->code != RT_OK) {
        part_failed(core, response->code);
        return;
    }
    if (response->responder.term != core->reconcile.term) {
        register_again(core);
        send_register(core);
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

/* ---- Renew
 * --------------------------------------------------------------------------------------- */

void inst_registry_renew(struct inst_core *core)
{
    struct model_call *call =
        new_call(core, MODEL_CALL_RENEW, model_lease_renew_timeout_us(&core->membership.lease));
    struct model_renew_request *request = &call->request.renew;

    *request = (struct model_renew_request){
        .incarnation = core->membership.incarnation,
        .boot_id = core->config.boot_id,
        .store_id = core->config.store_id,
        .entries_free = core->entries.n_free,
        .entries_total = core->entries.total,
        .n_keys = core->rows.n[INST_ROW_ACTIVE],
        .n_operations = core->n_operations,
    };
    copy_name(core, request->name);
    inst_membership_renew_sent(&core->membership, core->now_us);
}

static void on_renew(struct inst_core *core, const struct model_response *response,
                     const struct inst_outbound *outbound)
{
    enum inst_membership_state state = core->membership.state;
    struct model_lease lease;

    if (outbound->incarnation != core->membership.incarnation ||
        (state != INST_MEMBERSHIP_LEASING && state != INST_MEMBERSHIP_SERVING))
        return;
    if (response->code != RT_OK ||
        model_lease_init(&lease, response->renew.lease_ms, NULL) != RT_OK) {
        inst_membership_renew_failed(&core->membership, inst_now(core));
        return;
    }
    inst_membership_renew_granted(&core->membership, &lease, outbound->sent_us);
    if (state == INST_MEMBERSHIP_LEASING)
        inst_membership_move(&core->membership, INST_MEMBERSHIP_SERVING, inst_now(core));
}

/* ---- Leave
 * --------------------------------------------------------------------------------------- */

void inst_registry_leave(struct inst_core *core)
{
    struct model_leave_request *request;

    if (core->leave_sent || core->n_in_flight > 0)
        return;
    core->leave_sent = true;
    core->attempt++;
    core->leave_by_us = inst_now(core) + LEAVE_TIMEOUT_US;
    request = &new_call(core, MODEL_CALL_LEAVE, LEAVE_TIMEOUT_US)->request.leave;
    *request = (struct model_leave_request){.incarnation = core->membership.incarnation};
    copy_name(core, request->name);
}

void inst_core_leave(struct inst_core *core)
{
    enum inst_membership_state state = core->membership.state;

    if (state == INST_MEMBERSHIP_LEAVING || state == INST_MEMBERSHIP_STOPPED)
        return;
    core->attempt++;
    if (core->membership.incarnation == 0) {
        inst_membership_move(&core->membership, INST_MEMBERSHIP_STOPPED, inst_now(core));
        return;
    }
    inst_membership_move(&core->membership, INST_MEMBERSHIP_LEAVING, inst_now(core));
    core->leave_by_us = core->now_us + LEAVE_TIMEOUT_US;
    inst_registry_leave(core);
}

static void left(struct inst_core *core)
{
    core->leave_by_us = RT_NEVER;
    inst_membership_move(&core->membership, INST_MEMBERSHIP_STOPPED, inst_now(core));
}

/* ---- PullRows
 * ------------------------------------------------------------------------------------ */

static struct inst_pull *find_pull(struct inst_core *core, struct rt_bytes key)
{
    rt_list_for_each (node, &core->pulls) {
        struct inst_pull *pull = RT_LIST_ENTRY(node, struct inst_pull, link);

        if (rt_bytes_equal(rt_bytes_of(pull->key, pull->key_size), key))
            return pull;
    }
    return NULL;
}

static struct inst_pull *start_pull(struct inst_core *core, struct rt_bytes key)
{
    struct inst_pull *pull;
    struct model_pull_rows_request *request;
    struct model_call *call;

    if (core->n_pulls >= INST_PULLS_MAX)
        return NULL;
    pull = rt_xalloc(sizeof(*pull));
    call = new_call(core, MODEL_CALL_PULL_ROWS, PULL_TIMEOUT_US);
    request = &call->request.pull_rows;
    *request = (struct model_pull_rows_request){
        .incarnation = core->membership.incarnation,
        .keys = rt_arena_alloc(&call->arena, sizeof(*request->keys)),
        .n_keys = 1,
    };
    copy_name(core, request->name);
    if (!request->keys || !rt_arena_copy(&call->arena, key, request->keys))
        rt_assert(false);
    rt_list_init(&pull->waits);
    pull->outbound = call->state;
    pull->outbound->pull = pull;
    pull->due_us = call->deadline_us;
    pull->key_size = key.size;
    memcpy(pull->key, key.data, key.size);
    rt_list_push_back(&core->pulls, &pull->link);
    core->n_pulls++;
    return pull;
}

void inst_registry_pull(struct inst_core *core, struct model_call *call, const struct inst_row *row,
                        enum model_reason reason)
{
    struct rt_bytes key = call->request.data.header.key;
    struct inst_wait *wait = inst_wait_new(core, call, true);
    struct inst_pull *pull = wait ? find_pull(core, key) : NULL;

    if (wait && !pull)
        pull = start_pull(core, key);
    if (pull) {
        rt_list_push_back(&pull->waits, &wait->link);
        return;
    }
    if (wait)
        call = inst_wait_end(core, wait);
    inst_answer_refuse(core, call, row, reason);
}

/* Those who waited go on with what is known now. */
static void end_pull(struct inst_core *core, struct inst_pull *pull)
{
    pull->outbound->pull = NULL;
    rt_list_remove(&pull->link);
    core->n_pulls--;
    while (!rt_list_is_empty(&pull->waits)) {
        struct inst_wait *wait = RT_LIST_ENTRY(pull->waits.next, struct inst_wait, link);

        inst_dispatch(core, inst_wait_end(core, wait), true);
    }
    (void)rt_free(pull);
}

static void expire_pulls(struct inst_core *core, uint64_t now_us)
{
    while (!rt_list_is_empty(&core->pulls)) {
        struct inst_pull *pull = RT_LIST_ENTRY(core->pulls.next, struct inst_pull, link);

        if (now_us < pull->due_us)
            return;
        end_pull(core, pull);
    }
}

static void on_pull_rows(struct inst_core *core, const struct model_response *response,
                         const struct inst_outbound *outbound, bool is_believed)
{
    if (is_believed && response->code == RT_OK &&
        outbound->incarnation == core->membership.incarnation)
        for (size_t i = 0; i < response->pull_rows.n_rows; i++)
            inst_ownership_learn(core, &response->pull_rows.rows[i]);
    if (outbound->pull)
        end_pull(core, outbound->pull);
}

/* ---- answers and time
 * ---------------------------------------------------------------------------- */

static bool says_dead(const struct inst_core *core, const struct model_response *response,
                      const struct inst_outbound *outbound)
{
    enum inst_membership_state state = core->membership.state;

    return response->code != RT_OK && response->error.reason == MODEL_REASON_INCARNATION_DEAD &&
           outbound->incarnation == core->membership.incarnation &&
           state >= INST_MEMBERSHIP_RECORDING && state <= INST_MEMBERSHIP_SERVING;
}

void inst_registry_call_done(struct inst_core *core, struct model_call *call)
{
    const struct inst_outbound *outbound = call->state;
    bool is_current = outbound->attempt == core->attempt;
    bool is_believed = note_responder(core, &call->response);

    if (!is_believed)
        model_response_fail(&call->response, MODEL_REASON_STALE_TERM, "%s",
                            model_reason_meaning(MODEL_REASON_STALE_TERM));
    if (says_dead(core, &call->response, outbound)) {
        register_again(core);
        send_register(core);
    }
    switch (call->request.kind) {
    case MODEL_CALL_REGISTER:
        on_register(core, &call->response, is_current);
        break;
    case MODEL_CALL_RECONCILE:
        on_reconcile(core, &call->response, is_current);
        break;
    case MODEL_CALL_RENEW:
        on_renew(core, &call->response, outbound);
        break;
    case MODEL_CALL_LEAVE:
        if (is_current && core->membership.state == INST_MEMBERSHIP_LEAVING)
            left(core);
        break;
    case MODEL_CALL_PULL_ROWS:
        on_pull_rows(core, &call->response, outbound, is_believed);
        break;
    default:
        rt_assert(false);
    }
    (void)model_call_free(call);
}

static void retry(struct inst_core *core)
{
    switch (core->membership.state) {
    case INST_MEMBERSHIP_REGISTERING:
        send_register(core);
        break;
    case INST_MEMBERSHIP_RECORDING:
        write_meta(core);
        break;
    case INST_MEMBERSHIP_RECONCILING:
        send_part(core);
        break;
    case INST_MEMBERSHIP_NEW:
    case INST_MEMBERSHIP_LEASING:
    case INST_MEMBERSHIP_SERVING:
    case INST_MEMBERSHIP_LEAVING:
    case INST_MEMBERSHIP_STOPPED:
    case INST_N_MEMBERSHIP_STATES:
        break;
    }
}

void inst_registry_tick(struct inst_core *core, uint64_t now_us)
{
    if (now_us >= core->membership.retry_at_us)
        retry(core);
    inst_membership_tick(&core->membership, now_us);
    expire_pulls(core, now_us);
    if (now_us >= core->leave_by_us)
        left(core);
}

uint64_t inst_registry_next_wakeup_us(const struct inst_core *core)
{
    uint64_t at = inst_membership_next_wakeup_us(&core->membership);

    if (core->leave_by_us < at)
        at = core->leave_by_us;
    if (!rt_list_is_empty(&core->pulls)) {
        uint64_t due = RT_LIST_ENTRY(core->pulls.next, struct inst_pull, link)->due_us;

        at = due < at ? due : at;
    }
    return at;
}
