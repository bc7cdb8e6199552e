/*
 * Names, failures and deep copies of messages: see message.h. Pure.
 */
#include "runtime/model/message.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *model_call_kind_name(enum model_call_kind kind)
{
    static const char *const names[MODEL_N_CALL_KINDS] = {
        [MODEL_CALL_REGISTER] = "REGISTER",
        [MODEL_CALL_RECONCILE] = "RECONCILE",
        [MODEL_CALL_RENEW] = "RENEW",
        [MODEL_CALL_LEAVE] = "LEAVE",
        [MODEL_CALL_PULL_ROWS] = "PULL_ROWS",
        [MODEL_CALL_COMPACT] = "COMPACT",
        [MODEL_CALL_FENCE] = "FENCE",
        [MODEL_CALL_ACTIVATE] = "ACTIVATE",
        [MODEL_CALL_DROP] = "DROP",
        [MODEL_CALL_SET] = "SET",
        [MODEL_CALL_STORE] = "STORE",
        [MODEL_CALL_PUT] = "PUT",
        [MODEL_CALL_READ] = "READ",
        [MODEL_CALL_DELETE] = "DELETE",
        [MODEL_CALL_PIPELINE] = "PIPELINE",
        [MODEL_CALL_INSTANCE_STATUS] = "INSTANCE_STATUS",
        [MODEL_CALL_LIST_ENTRIES] = "LIST_ENTRIES",
        [MODEL_CALL_OPEN_SESSION] = "OPEN_SESSION",
        [MODEL_CALL_KEEP_ALIVE] = "KEEP_ALIVE",
        [MODEL_CALL_CLOSE_SESSION] = "CLOSE_SESSION",
        [MODEL_CALL_EXECUTE] = "EXECUTE",
        [MODEL_CALL_LOCK] = "LOCK",
        [MODEL_CALL_UNLOCK] = "UNLOCK",
        [MODEL_CALL_ROUTE] = "ROUTE",
        [MODEL_CALL_WATCH_ROUTES] = "WATCH_ROUTES",
        [MODEL_CALL_LIST_INSTANCES] = "LIST_INSTANCES",
        [MODEL_CALL_KEY_STATUS] = "KEY_STATUS",
        [MODEL_CALL_LIST_KEYS] = "LIST_KEYS",
        [MODEL_CALL_GET_DISTRIBUTION] = "GET_DISTRIBUTION",
        [MODEL_CALL_SET_DISTRIBUTION] = "SET_DISTRIBUTION",
        [MODEL_CALL_FREE_LOCK] = "FREE_LOCK",
        [MODEL_CALL_ESI_SUBMIT] = "ESI_SUBMIT",
        [MODEL_CALL_ESI_STATUS] = "ESI_STATUS",
        [MODEL_CALL_ESI_LIST] = "ESI_LIST",
        [MODEL_CALL_ESI_KILL] = "ESI_KILL",
        [MODEL_CALL_ESI_PAUSE] = "ESI_PAUSE",
        [MODEL_CALL_ESI_RESUME] = "ESI_RESUME",
        [MODEL_CALL_ESI_BLOCK] = "ESI_BLOCK",
        [MODEL_CALL_ESI_UNBLOCK] = "ESI_UNBLOCK",
        [MODEL_CALL_ESI_DEADLOCK] = "ESI_DEADLOCK",
    };

    return (size_t)kind < RT_ARRAY_SIZE(names) ? names[kind] : "?";
}

const char *const model_distribution_names[MODEL_N_DISTRIBUTIONS + 1] = {
    [MODEL_DISTRIBUTION_EQUITABLE_LOAD] = "equitable-load",
    [MODEL_DISTRIBUTION_LEAST_SPACE_USED] = "least-space-used",
    [MODEL_DISTRIBUTION_KEY_EXPLICIT] = "key-explicit",
};

const char *model_member_state_name(enum model_member_state state)
{
    static const char *const names[] = {
        [MODEL_MEMBER_JOINING] = "joining",
        [MODEL_MEMBER_ALIVE] = "alive",
        [MODEL_MEMBER_DEAD] = "dead",
        [MODEL_MEMBER_LEFT] = "left",
    };

    return (size_t)state < RT_ARRAY_SIZE(names) ? names[state] : "?";
}

const char *model_statement_kind_name(enum model_statement_kind kind)
{
    static const char *const names[] = {
        [MODEL_STATEMENT_GET] = "GET",     [MODEL_STATEMENT_SET] = "SET",
        [MODEL_STATEMENT_STORE] = "STORE", [MODEL_STATEMENT_PUT] = "PUT",
        [MODEL_STATEMENT_READ] = "READ",   [MODEL_STATEMENT_DELETE] = "DELETE",
        [MODEL_STATEMENT_AWAIT] = "AWAIT",
    };

    return (size_t)kind < RT_ARRAY_SIZE(names) ? names[kind] : "?";
}

const char *model_esi_state_name(enum model_esi_state state)
{
    static const char *const names[MODEL_N_ESI_STATES] = {
        [MODEL_ESI_NEW] = "new",         [MODEL_ESI_READY] = "ready",
        [MODEL_ESI_RUNNING] = "running", [MODEL_ESI_BLOCKED] = "blocked",
        [MODEL_ESI_ENDING] = "ending",   [MODEL_ESI_FINISHED] = "finished",
    };

    return (size_t)state < RT_ARRAY_SIZE(names) ? names[state] : "?";
}

const char *model_esi_end_name(enum model_esi_end end)
{
    static const char *const names[MODEL_N_ESI_ENDS] = {
        [MODEL_ESI_END_NONE] = "none",     [MODEL_ESI_END_OK] = "ok",
        [MODEL_ESI_END_FAILED] = "failed", [MODEL_ESI_END_UNKNOWN] = "unknown",
        [MODEL_ESI_END_KILLED] = "killed", [MODEL_ESI_END_SESSION_LOST] = "session_lost",
    };

    return (size_t)end < RT_ARRAY_SIZE(names) ? names[end] : "?";
}

void model_response_fail(struct model_response *response, enum model_reason reason,
                         const char *format, ...)
{
    struct model_error *error = &response->error;
    va_list arguments;

    *error = (struct model_error){
        .reason = reason,
        .applied = model_reason_applied(reason),
    };
    response->code = model_reason_code(reason);
    va_start(arguments, format);
    (void)vsnprintf(error->message, sizeof(error->message), format, arguments);
    va_end(arguments);
}

/* The members of the union begin at one address. */
void model_response_ok(struct model_response *response, enum model_call_kind kind)
{
    static const size_t sizes[MODEL_N_CALL_KINDS] = {
        [MODEL_CALL_REGISTER] = sizeof(struct model_register_response),
        [MODEL_CALL_RECONCILE] = sizeof(struct model_reconcile_response),
        [MODEL_CALL_RENEW] = sizeof(struct model_renew_response),
        [MODEL_CALL_PULL_ROWS] = sizeof(struct model_pull_rows_response),
        [MODEL_CALL_FENCE] = sizeof(struct model_data_response),
        [MODEL_CALL_ACTIVATE] = sizeof(struct model_data_response),
        [MODEL_CALL_SET] = sizeof(struct model_data_response),
        [MODEL_CALL_STORE] = sizeof(struct model_data_response),
        [MODEL_CALL_PUT] = sizeof(struct model_data_response),
        [MODEL_CALL_READ] = sizeof(struct model_data_response),
        [MODEL_CALL_DELETE] = sizeof(struct model_data_response),
        [MODEL_CALL_PIPELINE] = sizeof(struct model_pipeline_response),
        [MODEL_CALL_INSTANCE_STATUS] = sizeof(struct model_instance_status_response),
        [MODEL_CALL_LIST_ENTRIES] = sizeof(struct model_list_entries_response),
        [MODEL_CALL_OPEN_SESSION] = sizeof(struct model_open_session_response),
        [MODEL_CALL_KEEP_ALIVE] = sizeof(struct model_keep_alive_response),
        [MODEL_CALL_EXECUTE] = sizeof(struct model_execute_response),
        [MODEL_CALL_LOCK] = sizeof(struct model_lock_response),
        [MODEL_CALL_ROUTE] = sizeof(struct model_route_response),
        [MODEL_CALL_WATCH_ROUTES] = sizeof(struct model_watch_routes_response),
        [MODEL_CALL_LIST_INSTANCES] = sizeof(struct model_list_instances_response),
        [MODEL_CALL_KEY_STATUS] = sizeof(struct model_key_status_response),
        [MODEL_CALL_LIST_KEYS] = sizeof(struct model_list_keys_response),
        [MODEL_CALL_GET_DISTRIBUTION] = sizeof(struct model_distribution_response),
        [MODEL_CALL_SET_DISTRIBUTION] = sizeof(struct model_distribution_response),
        [MODEL_CALL_FREE_LOCK] = sizeof(struct model_free_lock_response),
        [MODEL_CALL_ESI_SUBMIT] = sizeof(struct model_esi_response),
        [MODEL_CALL_ESI_STATUS] = sizeof(struct model_esi_response),
        [MODEL_CALL_ESI_LIST] = sizeof(struct model_esi_list_response),
        [MODEL_CALL_ESI_KILL] = sizeof(struct model_esi_response),
        [MODEL_CALL_ESI_BLOCK] = sizeof(struct model_esi_response),
        [MODEL_CALL_ESI_UNBLOCK] = sizeof(struct model_esi_unblock_response),
        [MODEL_CALL_ESI_DEADLOCK] = sizeof(struct model_esi_list_response),
    };

    rt_assert(kind < MODEL_N_CALL_KINDS);
    response->code = RT_OK;
    memset(&response->data, 0, sizes[kind]);
}
