/*
 * Ends inbound calls: see state.h. Invariant: every answer says who answered; a failure says what
 * the caller may do about it. Under the core's lock.
 */
#include <stdarg.h>
#include <stdio.h>

#include "instance/state.h"

enum {
    RETRY_SOON_MS = 100, /* a state that ends with the next answer of the coordinator */
};

static struct rt_bytes key_of(const struct model_request *request)
{
    if (request->kind == MODEL_CALL_FENCE)
        return request->fence.key;
    if (request->kind == MODEL_CALL_ACTIVATE)
        return request->activate.row.key;
    if (request->kind == MODEL_CALL_DROP)
        return request->drop.key;
    return request->data.header.key;
}

static uint64_t epoch_of(const struct model_request *request)
{
    if (request->kind == MODEL_CALL_FENCE)
        return request->fence.epoch;
    if (request->kind == MODEL_CALL_ACTIVATE)
        return request->activate.row.epoch;
    if (request->kind == MODEL_CALL_DROP)
        return request->drop.epoch;
    return request->data.header.epoch;
}

static bool is_about_a_key(enum model_call_kind kind)
{
    return kind >= MODEL_CALL_FENCE && kind <= MODEL_CALL_DELETE;
}

static void hint_at_me(const struct inst_core *core, const struct inst_row *row,
                       struct model_error *error)
{
    error->has_hint = true;
    error->hint.incarnation = core->membership.incarnation;
    error->hint.epoch = row->live.epoch;
    (void)snprintf(error->hint.name, sizeof(error->hint.name), "%s", core->config.name);
    (void)snprintf(error->hint.address, sizeof(error->hint.address), "%s", core->config.address);
}

static void advise(const struct inst_core *core, const struct inst_row *row,
                   struct model_error *error)
{
    enum model_reason reason = error->reason;

    if (model_reason_code(reason) == RT_UNAVAILABLE)
        error->retry_after_ms = RETRY_SOON_MS;
    if (reason == MODEL_REASON_NOT_OWNER || reason == MODEL_REASON_STALE_INCARNATION ||
        reason == MODEL_REASON_SUPERSEDED || reason == MODEL_REASON_STALE_EPOCH)
        error->refresh_required = true;
    if (!row || row->phase != INST_ROW_ACTIVE)
        return;
    error->current_epoch = row->live.epoch;
    if (reason == MODEL_REASON_STALE_INCARNATION || reason == MODEL_REASON_STALE_EPOCH)
        hint_at_me(core, row, error);
}

void inst_answer_fail(struct inst_core *core, struct model_call *call, const struct inst_row *row,
                      enum model_reason reason, const char *format, ...)
{
    char message[MODEL_ERROR_MESSAGE_MAX + 1];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    model_response_fail(&call->response, reason, "%s", message);
    if (is_about_a_key(call->request.kind)) {
        call->response.error.key = key_of(&call->request);
        call->response.error.request_epoch = epoch_of(&call->request);
    }
    advise(core, row, &call->response.error);
}

void inst_answer_refuse(struct inst_core *core, struct model_call *call, const struct inst_row *row,
                        enum model_reason reason)
{
    inst_answer_fail(core, call, row, reason, "%s", model_reason_meaning(reason));
    inst_answer_send(core, call);
}

void inst_core_responder(const struct inst_core *core, struct model_responder *ret_responder)
{
    memcpy(ret_responder->name, core->config.name, sizeof(ret_responder->name));
    ret_responder->incarnation = core->membership.incarnation;
    ret_responder->term = core->meta.term;
    ret_responder->placement_version = core->placement_version;
}

void inst_answer_send(struct inst_core *core, struct model_call *call)
{
    inst_core_responder(core, &call->response.responder);
    call->state = NULL;
    rt_list_push_back(&core->effects.replies, &call->link);
}

struct model_data_response *inst_answer_data(struct inst_core *core, struct model_call *call,
                                             struct inst_row *row)
{
    struct model_data_response *data = &call->response.data;

    model_response_ok(&call->response, call->request.kind);
    data->has_value = row->has_value;
    data->version = row->version;
    data->stored = row->has_value && row->durable.has_value &&
                   model_version_compare(&row->version, &row->stored_version) == 0;
    data->sets_lost = row->sets_lost;
    data->entries_free = core->entries.n_free;
    row->sets_lost = false;
    return data;
}

bool inst_answer_value(struct inst_core *core, struct model_call *call, struct inst_row *row)
{
    struct rt_bytes copy = {0};

    if (row->has_value && !rt_arena_copy(&call->arena, inst_value_view(core, row), &copy)) {
        inst_answer_fail(core, call, row, MODEL_REASON_LIMIT_REACHED,
                         "no memory for a copy of %u bytes", row->size);
        return false;
    }
    inst_answer_data(core, call, row)->value = copy;
    return true;
}

void inst_answer_recorded(struct inst_core *core, struct model_call *call,
                          const struct inst_dedup_result *result)
{
    struct model_data_response *data = &call->response.data;

    model_response_ok(&call->response, call->request.kind);
    if (result->has_value)
        data->version = result->version;
    data->has_value = result->has_value;
    data->stored = result->stored;
    data->sets_lost = result->sets_lost;
    data->replayed = true;
    data->entries_free = core->entries.n_free;
    inst_answer_send(core, call);
}

void inst_answer_no_entries(struct inst_core *core, struct model_call *call,
                            const struct inst_row *row, uint64_t size)
{
    inst_answer_fail(core, call, row, MODEL_REASON_NO_ENTRIES,
                     "%llu entries needed of %llu, %llu free, %llu that could be evicted",
                     (unsigned long long)inst_entries_needed(&core->entries, size),
                     (unsigned long long)core->entries.total,
                     (unsigned long long)core->entries.n_free,
                     (unsigned long long)core->replacement.n_candidates);
    inst_answer_send(core, call);
}
