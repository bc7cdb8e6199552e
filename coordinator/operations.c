/*
 * The lines of the operation log: see operations.h. Invariant: only whole lines are in the buffer.
 * Runs under the core's lock.
 */
#include "coordinator/operations.h"

enum {
    LINE_MAX_BYTES =
        4 * MODEL_KEY_MAX + 4 * MODEL_NAME_MAX + 256 /* every byte of the key escaped */
};

static void append_key(struct rt_buffer *buffer, struct rt_bytes key)
{
    for (size_t i = 0; i < key.size; i++) {
        if (key.data[i] > ' ' && key.data[i] <= '~' && key.data[i] != '\\')
            rt_buffer_append_byte(buffer, key.data[i]);
        else
            rt_buffer_printf(buffer, "\\x%02x", (unsigned)key.data[i]);
    }
}

static const char *result_of(const struct model_call *call)
{
    enum model_outcome outcome = call->request.kind == MODEL_CALL_LOCK
                                     ? call->response.lock.outcome
                                     : call->response.execute.outcome;

    if (call->response.code != RT_OK)
        return call->response.error.reason == MODEL_REASON_NONE
                   ? rt_code_name(call->response.code)
                   : model_reason_name(call->response.error.reason);
    return outcome == MODEL_OUTCOME_WAITING ? "WAITING" : "OK";
}

static const char *instance_of(const struct model_call *call)
{
    if (call->response.code != RT_OK)
        return "";
    return call->request.kind == MODEL_CALL_LOCK ? call->response.lock.route.owner
                                                 : call->response.execute.instance;
}

static bool is_operation(const struct coord_task *task)
{
    enum model_call_kind kind = task->call->request.kind;

    if (kind == MODEL_CALL_EXECUTE)
        return task->call->request.execute.kind != MODEL_STATEMENT_AWAIT;
    return kind == MODEL_CALL_LOCK;
}

static void append_line(struct rt_buffer *buffer, const struct coord_task *task)
{
    const struct model_call *call = task->call;
    bool is_lock = call->request.kind == MODEL_CALL_LOCK;
    enum model_statement_kind kind = is_lock ? MODEL_STATEMENT_GET : call->request.execute.kind;
    const char *instance = instance_of(call);

    rt_buffer_printf(buffer,
                     "esi=%s statement=%s key=", task->session ? task->session->row.name : "-",
                     model_statement_kind_name(kind));
    append_key(buffer, coord_task_name(task));
    if (kind == MODEL_STATEMENT_SET || kind == MODEL_STATEMENT_PUT)
        rt_buffer_printf(buffer, " bytes=%zu", call->request.execute.value.size);
    if (*instance != '\0')
        rt_buffer_printf(buffer, " instance=%s", instance);
    rt_buffer_printf(buffer, " result=%s\n", result_of(call));
}

void coord_operations_note(struct coord_core *core, const struct coord_task *task)
{
    if (!core->config.operation_log || !is_operation(task))
        return;
    if (core->operations.size + LINE_MAX_BYTES > COORD_OPERATIONS_MAX)
        core->n_operations_lost++;
    else
        append_line(&core->operations, task);
}

size_t coord_core_take_operations(struct coord_core *core, struct rt_buffer *ret_lines)
{
    size_t n_lost = core->n_operations_lost;

    *ret_lines = core->operations;
    core->operations = (struct rt_buffer){0};
    core->n_operations_lost = 0;
    return n_lost;
}
