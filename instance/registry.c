/*
 * Calls to the coordinator: see state.h. Invariant: an answer counts only while it belongs to the
 * current attempt (Register, Reconcile, Leave) or incarnation (Renew), and never from a lower term;
 * whatever else happens to a call, another is made. Under the core's lock.
 */
#include <stdarg.h>
#include <stdio.h>

#include "instance/state.h"

enum {
    CALL_TIMEOUT_US = 2000000,
    LEAVE_TIMEOUT_US = 2000000,
};

/* ---- calls ---- */

struct model_call *inst_registry_new_call(struct inst_core *core, enum model_call_kind kind,
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
    outbound->call = call;
    rt_list_push_back(&core->outbounds, &outbound->link);
    call->address = (const char *)address.data;
    call->state = outbound;
    call->deadline_us = outbound->sent_us + timeout_us;
    rt_list_push_back(&core->effects.calls, &call->link);
    return call;
}

void inst_registry_copy_name(const struct inst_core *core, char name[MODEL_NAME_MAX + 1])
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

/* One line a term: it may answer ten times a second, for as long as its operator does nothing. */
static void tell_of_earlier(struct inst_core *core, uint64_t term)
{
    if (term == core->earlier_term)
        return;
    core->earlier_term = term;
    model_effects_tell(&core->effects, RT_LOG_WARNING,
                       "event=earlier_coordinator term=%llu seen=%llu", (unsigned long long)term,
                       (unsigned long long)core->meta.term);
}

/* false when the answer is to be ignored as an earlier coordinator's. Terms of two clusters cannot
 * be compared, and one that says that it is another cluster is believed: it only stops us. */
static bool note_responder(struct inst_core *core, const struct model_response *response)
{
    const struct model_responder *responder = &response->responder;

    if (responder->placement_version > core->placement_version)
        core->placement_version = responder->placement_version;
    if (response->code != RT_OK && responder->term == 0)
        return true;
    if (inst_registry_note_term(core, responder->term))
        return true;
    tell_of_earlier(core, responder->term);
    return response->code != RT_OK && response->error.reason == MODEL_REASON_WRONG_CLUSTER;
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

/* ---- Register ---- */

static void send_register(struct inst_core *core)
{
    struct model_register_request *request;

    core->attempt++;
    core->membership.retry_at_us = RT_NEVER;
    request = &inst_registry_new_call(core, MODEL_CALL_REGISTER, CALL_TIMEOUT_US)->request.reg;
    *request = (struct model_register_request){
        .cluster_id = core->meta.cluster_id,
        .store_id = core->config.store_id,
        .boot_id = core->config.boot_id,
        .machine_id = core->config.machine_id,
        .local_store = core->config.local_store,
        .entries_total = core->config.entries_total,
        .entry_size = core->config.entry_size,
    };
    inst_registry_copy_name(core, request->name);
    memcpy(request->address, core->config.address, sizeof(request->address));
}

void inst_registry_start(struct inst_core *core)
{
    inst_membership_move(&core->membership, INST_MEMBERSHIP_REGISTERING, inst_now(core));
    send_register(core);
}

void inst_registry_register_again(struct inst_core *core, bool at_once)
{
    model_effects_tell(&core->effects, RT_LOG_WARNING, "event=registering_again incarnation=%llu",
                       (unsigned long long)core->membership.incarnation);
    core->lease_lost = false;
    inst_membership_move(&core->membership, INST_MEMBERSHIP_REGISTERING, inst_now(core));
    core->attempt++;
    if (at_once)
        send_register(core);
    else
        inst_membership_retry_later(&core->membership, &core->env);
}

static void write_meta(struct inst_core *core)
{
    core->membership.retry_at_us = RT_NEVER;
    inst_commit_meta(core);
}

static bool is_fatal(const struct inst_core *core, const struct model_response *response)
{
    enum model_reason reason = response->error.reason;

    if (reason == MODEL_REASON_NAME_IN_USE)
        return !core->membership.was_registered;
    return reason == MODEL_REASON_STORE_BELONGS_TO || reason == MODEL_REASON_WRONG_CLUSTER ||
           response->code == RT_INVALID_ARGUMENT;
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
    model_effects_tell(&core->effects, RT_LOG_INFO, "event=registered incarnation=%llu term=%llu",
                       (unsigned long long)reg->incarnation, (unsigned long long)core->meta.term);
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
            inst_reconcile_begin(core);
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

/* ---- Renew ---- */

void inst_registry_renew(struct inst_core *core)
{
    struct model_call *call = inst_registry_new_call(
        core, MODEL_CALL_RENEW, model_lease_renew_timeout_us(&core->membership.lease));
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
    inst_registry_copy_name(core, request->name);
    inst_evicted_repeat(core, call);
    inst_membership_renew_sent(&core->membership, core->now_us);
}

/* Between the end of a lease that was served under, and its coming back. */
static bool must_tell_of_lease(const struct inst_core *core)
{
    return core->membership.state == INST_MEMBERSHIP_SERVING && !core->lease_lost;
}

static void tell_of_lease(struct inst_core *core, uint64_t now_us)
{
    if (!must_tell_of_lease(core) || !inst_membership_is_fenced(&core->membership, now_us))
        return;
    core->lease_lost = true;
    model_effects_tell(&core->effects, RT_LOG_WARNING, "event=lease_lost incarnation=%llu",
                       (unsigned long long)core->membership.incarnation);
}

static void tell_of_grant(struct inst_core *core)
{
    if (!core->lease_lost || inst_membership_is_fenced(&core->membership, inst_now(core)))
        return;
    core->lease_lost = false;
    model_effects_tell(&core->effects, RT_LOG_INFO, "event=lease_regained incarnation=%llu",
                       (unsigned long long)core->membership.incarnation);
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
    inst_evicted_known(core, response->renew.evicted_epochs, response->renew.n_evicted_epochs);
    tell_of_grant(core);
    if (state == INST_MEMBERSHIP_LEASING)
        inst_membership_move(&core->membership, INST_MEMBERSHIP_SERVING, inst_now(core));
}

/* ---- Leave ---- */

void inst_registry_leave(struct inst_core *core)
{
    struct model_leave_request *request;

    if (core->leave_sent || core->n_in_flight > 0)
        return;
    core->leave_sent = true;
    core->attempt++;
    core->leave_by_us = inst_now(core) + LEAVE_TIMEOUT_US;
    request = &inst_registry_new_call(core, MODEL_CALL_LEAVE, LEAVE_TIMEOUT_US)->request.leave;
    *request = (struct model_leave_request){.incarnation = core->membership.incarnation};
    inst_registry_copy_name(core, request->name);
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

void inst_registry_drained(struct inst_core *core)
{
    if (core->membership.state == INST_MEMBERSHIP_LEAVING)
        inst_registry_leave(core);
    else if (core->membership.state == INST_MEMBERSHIP_RECONCILING && !core->reconcile.begun)
        inst_reconcile_begin(core);
}

static void left(struct inst_core *core)
{
    core->leave_by_us = RT_NEVER;
    inst_membership_move(&core->membership, INST_MEMBERSHIP_STOPPED, inst_now(core));
}

/* ---- answers and time ---- */

static bool says_dead(const struct inst_core *core, const struct model_response *response,
                      const struct inst_outbound *outbound)
{
    enum inst_membership_state state = core->membership.state;

    return response->code != RT_OK && response->error.reason == MODEL_REASON_INCARNATION_DEAD &&
           outbound->incarnation == core->membership.incarnation &&
           state >= INST_MEMBERSHIP_RECORDING && state <= INST_MEMBERSHIP_SERVING;
}

static void on_reconcile(struct inst_core *core, const struct model_response *response,
                         bool is_current)
{
    if (is_current && core->membership.state == INST_MEMBERSHIP_RECONCILING)
        inst_reconcile_answered(core, response);
}

static void on_leave(struct inst_core *core, bool is_current)
{
    if (is_current && core->membership.state == INST_MEMBERSHIP_LEAVING)
        left(core);
}

void inst_registry_call_done(struct inst_core *core, struct model_call *call)
{
    struct inst_outbound *outbound = call->state;
    bool is_current = outbound->attempt == core->attempt;
    bool is_believed = note_responder(core, &call->response);

    rt_list_remove(&outbound->link);
    if (!is_believed)
        model_response_fail(&call->response, MODEL_REASON_STALE_TERM, "%s",
                            model_reason_meaning(MODEL_REASON_STALE_TERM));
    if (says_dead(core, &call->response, outbound))
        inst_registry_register_again(core, true);
    if (call->request.kind == MODEL_CALL_REGISTER)
        on_register(core, &call->response, is_current);
    else if (call->request.kind == MODEL_CALL_RECONCILE)
        on_reconcile(core, &call->response, is_current);
    else if (call->request.kind == MODEL_CALL_RENEW)
        on_renew(core, &call->response, outbound);
    else if (call->request.kind == MODEL_CALL_LEAVE)
        on_leave(core, is_current);
    else
        inst_pull_answered(core, &call->response, outbound);
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
        inst_reconcile_send(core);
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
    tell_of_lease(core, now_us);
    inst_pull_expire(core, now_us);
    if (now_us >= core->leave_by_us)
        left(core);
}

uint64_t inst_registry_next_wakeup_us(const struct inst_core *core)
{
    uint64_t at = inst_membership_next_wakeup_us(&core->membership);

    if (core->leave_by_us < at)
        at = core->leave_by_us;
    if (must_tell_of_lease(core) && core->membership.fence_at_us < at)
        at = core->membership.fence_at_us;
    return at;
}
