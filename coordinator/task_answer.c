/*
 * Answers of tasks: see tasks.h. Invariant: an inbound call is answered once, and an error says
 * "not applied" only while the task has granted and sent nothing. Runs under the core's lock.
 */
#include "coordinator/operations.h"
#include "coordinator/tasks.h"

#include <stdarg.h>
#include <stdio.h>

struct rt_bytes coord_call_key(const struct model_call *call)
{
    const struct model_request *request = &call->request;

    if (request->kind == MODEL_CALL_EXECUTE)
        return request->execute.key;
    if (request->kind == MODEL_CALL_LOCK)
        return request->lock.key;
    if (request->kind == MODEL_CALL_UNLOCK)
        return request->unlock.key;
    if (request->kind == MODEL_CALL_ROUTE)
        return request->route.key;
    if (request->kind == MODEL_CALL_KEY_STATUS || request->kind == MODEL_CALL_FREE_LOCK)
        return request->key_status.key;
    return (struct rt_bytes){0};
}

void coord_core_responder(const struct coord_core *core, struct model_responder *ret_responder)
{
    *ret_responder = (struct model_responder){
        .term = core->meta.term,
        .placement_version = core->route,
    };
}

void coord_task_reply(struct coord_core *core, struct coord_task *task)
{
    struct model_call *call = task->call;

    if (!call)
        return;
    coord_core_responder(core, &call->response.responder);
    if (task->session &&
        (call->request.kind == MODEL_CALL_EXECUTE || call->request.kind == MODEL_CALL_LOCK))
        task->session->is_aborted = call->response.code != RT_OK;
    coord_operations_note(core, task);
    call->state = NULL;
    task->call = NULL;
    rt_list_push_back(&core->effects.replies, &call->link);
}

/* What every error of a statement says about its key. */
static void describe_key(struct coord_core *core, const struct coord_task *task)
{
    struct model_error *error = &task->call->response.error;
    const struct coord_key *key;

    if (task->key_size == 0)
        return;
    key = coord_keys_find(&core->keys, coord_task_name(task));
    error->key = coord_call_key(task->call);
    error->current_epoch = key ? key->epoch : 0;
}

void coord_task_fail(struct coord_core *core, struct coord_task *task, enum model_reason reason,
                     const char *format, ...)
{
    char message[MODEL_ERROR_MESSAGE_MAX + 1];
    va_list arguments;

    if (!task->call)
        return;
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    model_response_fail(&task->call->response, reason, "%s", message);
    if (reason == MODEL_REASON_OWNER_UNREACHABLE)
        task->call->response.error.applied = MODEL_APPLIED_NO;
    if (task->granted || task->sent)
        task->call->response.error.applied = MODEL_APPLIED_MAYBE;
    describe_key(core, task);
    if (reason == MODEL_REASON_BARRIER && core->barrier_us > coord_now_us(core))
        task->call->response.error.retry_after_ms =
            (uint32_t)((core->barrier_us - coord_now_us(core)) / 1000 + 1);
    if (reason == MODEL_REASON_OWNER_DOWN)
        task->call->response.error.retry_after_ms =
            (uint32_t)(model_lease_renew_interval_us(&core->config.member_lease) / 1000);
    coord_task_reply(core, task);
}

void coord_task_fail_commit(struct coord_core *core, struct coord_task *task)
{
    switch (task->outcome) {
    case STORE_COMMITTED:
    case STORE_COMPARE_FAILED:
        rt_assert(false);
    case STORE_FULL:
        coord_task_fail(core, task, MODEL_REASON_DISK_FULL, "the coordinator's disk is full");
        return;
    case STORE_UNKNOWN:
        if (task->refused)
            coord_task_fail(core, task, MODEL_REASON_READ_ONLY, "an earlier commit failed");
        else
            coord_task_fail(core, task, MODEL_REASON_STORE_ERROR, "the commit failed");
        return;
    }
}

void coord_task_fail_answer(struct coord_core *core, struct coord_task *task)
{
    const struct model_response *response = &task->answer->response;
    struct model_response *reply;

    if (!task->call)
        return;
    if (response->error.reason == MODEL_REASON_NONE) {
        coord_task_fail(core, task, MODEL_REASON_OWNER_UNREACHABLE, "the owner did not answer");
        return;
    }
    reply = &task->call->response;
    reply->code = response->code;
    reply->error = response->error;
    if (task->granted || task->sent)
        reply->error.applied = MODEL_APPLIED_MAYBE;
    describe_key(core, task);
    coord_task_reply(core, task);
}
