/*
 * Deep copies of messages into an arena: see message.h. Every byte string and array of a message is
 * named exactly once here; a field that is added to a message and borrows memory belongs here too.
 */
#include "runtime/model/message.h"

struct copier {
    struct rt_arena *arena;
    bool full;
};

static void copy_bytes(struct copier *copier, struct rt_bytes *bytes)
{
    if (!copier->full && !rt_arena_copy(copier->arena, *bytes, bytes))
        copier->full = true;
}

/* A copy of n items of `size` bytes; NULL for none or when the arena is full. */
static void *copy_array(struct copier *copier, const void *items, size_t n, size_t size)
{
    void *copy;

    if (n == 0 || copier->full)
        return NULL;
    copy = rt_arena_alloc(copier->arena, n * size);
    if (!copy) {
        copier->full = true;
        return NULL;
    }
    memcpy(copy, items, n * size);
    return copy;
}

static void copy_rows(struct copier *copier, struct model_row **rows, size_t n_rows)
{
    *rows = copy_array(copier, *rows, n_rows, sizeof(**rows));
    for (size_t i = 0; *rows && i < n_rows; i++)
        copy_bytes(copier, &(*rows)[i].key);
}

static enum rt_code finish(const struct copier *copier, struct rt_error *err)
{
    if (copier->full)
        return rt_fail(err, RT_RESOURCE_EXHAUSTED, "no memory for a copy of the message");
    return RT_OK;
}

static void copy_data_request(struct copier *copier, struct model_data_request *data)
{
    copy_bytes(copier, &data->header.key);
    copy_bytes(copier, &data->value);
}

static void copy_reconcile_request(struct copier *copier, struct model_reconcile_request *reconcile)
{
    reconcile->rows =
        copy_array(copier, reconcile->rows, reconcile->n_rows, sizeof(*reconcile->rows));
    for (size_t i = 0; reconcile->rows && i < reconcile->n_rows; i++)
        copy_bytes(copier, &reconcile->rows[i].key);
}

static void copy_renew_request(struct copier *copier, struct model_renew_request *renew)
{
    renew->evicted = copy_array(copier, renew->evicted, renew->n_evicted, sizeof(*renew->evicted));
    for (size_t i = 0; renew->evicted && i < renew->n_evicted; i++)
        copy_bytes(copier, &renew->evicted[i].key);
}

static void copy_pull_rows_request(struct copier *copier, struct model_pull_rows_request *pull)
{
    pull->keys = copy_array(copier, pull->keys, pull->n_keys, sizeof(*pull->keys));
    for (size_t i = 0; pull->keys && i < pull->n_keys; i++)
        copy_bytes(copier, &pull->keys[i]);
}

/* A failure of one operation; its fields are plain but for the key. */
static const struct model_error *copy_error(struct copier *copier, const struct model_error *error)
{
    struct model_error *copy = error ? copy_array(copier, error, 1, sizeof(*error)) : NULL;

    if (copy)
        copy_bytes(copier, &copy->key);
    return copy;
}

static void copy_pipeline_request(struct copier *copier, struct model_pipeline_request *pipeline)
{
    pipeline->operations = copy_array(copier, pipeline->operations, pipeline->n_operations,
                                      sizeof(*pipeline->operations));
    for (size_t i = 0; pipeline->operations && i < pipeline->n_operations; i++) {
        struct model_pipeline_operation *operation = &pipeline->operations[i];

        copy_bytes(copier, &operation->key);
        copy_bytes(copier, &operation->value);
        operation->refused = copy_error(copier, operation->refused);
    }
}

static void copy_pipeline_response(struct copier *copier, struct model_pipeline_response *pipeline)
{
    pipeline->results =
        copy_array(copier, pipeline->results, pipeline->n_results, sizeof(*pipeline->results));
    for (size_t i = 0; pipeline->results && i < pipeline->n_results; i++) {
        struct model_pipeline_result *result = &pipeline->results[i];

        copy_bytes(copier, &result->data.value);
        result->error = copy_error(copier, result->error);
    }
}

static void copy_execute_request(struct copier *copier, struct model_execute_request *execute)
{
    copy_bytes(copier, &execute->key);
    copy_bytes(copier, &execute->value);
}

static void copy_page_request(struct copier *copier, struct model_page_request *page)
{
    copy_bytes(copier, &page->prefix);
    copy_bytes(copier, &page->after);
}

/* The byte string of a request that has one and nothing else that is deep; else NULL. */
static struct rt_bytes *only_bytes_of(struct model_request *request)
{
    switch ((int)request->kind) {
    case MODEL_CALL_FENCE:
        return &request->fence.key;
    case MODEL_CALL_ACTIVATE:
        return &request->activate.row.key;
    case MODEL_CALL_DROP:
        return &request->drop.key;
    case MODEL_CALL_LOCK:
        return &request->lock.key;
    case MODEL_CALL_UNLOCK:
        return &request->unlock.key;
    case MODEL_CALL_ROUTE:
        return &request->route.key;
    case MODEL_CALL_WATCH_ROUTES:
        return &request->watch_routes.prefix;
    case MODEL_CALL_KEY_STATUS:
    case MODEL_CALL_FREE_LOCK:
        return &request->key_status.key;
    case MODEL_CALL_ESI_SUBMIT:
        return &request->esi_submit.script;
    case MODEL_CALL_ESI_BLOCK:
    case MODEL_CALL_ESI_UNBLOCK:
        return &request->esi.key;
    case MODEL_CALL_ESI_LIST:
        return &request->esi_list.waits_for;
    default:
        return NULL;
    }
}

static void copy_registry_request(struct copier *copier, struct model_request *copy)
{
    if (copy->kind == MODEL_CALL_RECONCILE)
        copy_reconcile_request(copier, &copy->reconcile);
    else if (copy->kind == MODEL_CALL_RENEW)
        copy_renew_request(copier, &copy->renew);
    else
        copy_pull_rows_request(copier, &copy->pull_rows);
}

static void copy_request(struct copier *copier, struct model_request *copy)
{
    switch (copy->kind) {
    case MODEL_CALL_RECONCILE:
    case MODEL_CALL_RENEW:
    case MODEL_CALL_PULL_ROWS:
        copy_registry_request(copier, copy);
        break;
    case MODEL_CALL_SET:
    case MODEL_CALL_STORE:
    case MODEL_CALL_PUT:
    case MODEL_CALL_READ:
    case MODEL_CALL_DELETE:
        copy_data_request(copier, &copy->data);
        break;
    case MODEL_CALL_PIPELINE:
        copy_pipeline_request(copier, &copy->pipeline);
        break;
    case MODEL_CALL_EXECUTE:
        copy_execute_request(copier, &copy->execute);
        break;
    case MODEL_CALL_LIST_INSTANCES:
    case MODEL_CALL_LIST_KEYS:
        copy_page_request(copier, &copy->page);
        break;
    case MODEL_CALL_FENCE:
    case MODEL_CALL_ACTIVATE:
    case MODEL_CALL_DROP:
    case MODEL_CALL_LOCK:
    case MODEL_CALL_UNLOCK:
    case MODEL_CALL_ROUTE:
    case MODEL_CALL_WATCH_ROUTES:
    case MODEL_CALL_KEY_STATUS:
    case MODEL_CALL_FREE_LOCK:
    case MODEL_CALL_ESI_SUBMIT:
    case MODEL_CALL_ESI_BLOCK:
    case MODEL_CALL_ESI_UNBLOCK:
    case MODEL_CALL_ESI_LIST:
        copy_bytes(copier, only_bytes_of(copy));
        break;
    case MODEL_CALL_REGISTER:
    case MODEL_CALL_LEAVE:
    case MODEL_CALL_COMPACT:
    case MODEL_CALL_INSTANCE_STATUS:
    case MODEL_CALL_LIST_ENTRIES:
    case MODEL_CALL_OPEN_SESSION:
    case MODEL_CALL_KEEP_ALIVE:
    case MODEL_CALL_CLOSE_SESSION:
    case MODEL_CALL_GET_DISTRIBUTION:
    case MODEL_CALL_SET_DISTRIBUTION:
    case MODEL_CALL_ESI_STATUS:
    case MODEL_CALL_ESI_KILL:
    case MODEL_CALL_ESI_PAUSE:
    case MODEL_CALL_ESI_RESUME:
    case MODEL_CALL_ESI_DEADLOCK:
    case MODEL_N_CALL_KINDS:
        break;
    }
}

enum rt_code model_request_copy(struct model_request *ret_copy, const struct model_request *source,
                                struct rt_arena *arena, struct rt_error *err)
{
    struct copier copier = {.arena = arena};

    *ret_copy = *source;
    copy_request(&copier, ret_copy);
    return finish(&copier, err);
}

static void copy_data(struct copier *copier, struct model_data_response *data)
{
    copy_bytes(copier, &data->value);
    data->evicted = copy_array(copier, data->evicted, data->n_evicted, sizeof(struct rt_bytes));
    for (size_t i = 0; data->evicted && i < data->n_evicted; i++)
        copy_bytes(copier, &data->evicted[i]);
}

static void copy_key_status(struct copier *copier, struct model_key_status_response *status)
{
    copy_bytes(copier, &status->value);
    status->waiters =
        copy_array(copier, status->waiters, status->n_waiters, sizeof(*status->waiters));
    for (size_t i = 0; status->waiters && i < status->n_waiters; i++)
        copy_bytes(copier, &status->waiters[i]);
}

static void copy_watch_routes(struct copier *copier, struct model_watch_routes_response *watch)
{
    watch->instances =
        copy_array(copier, watch->instances, watch->n_instances, sizeof(*watch->instances));
    watch->keys = copy_array(copier, watch->keys, watch->n_keys, sizeof(*watch->keys));
    for (size_t i = 0; watch->keys && i < watch->n_keys; i++)
        copy_bytes(copier, &watch->keys[i].key);
}

static void copy_renew(struct copier *copier, struct model_renew_response *renew)
{
    renew->evicted_epochs =
        copy_array(copier, renew->evicted_epochs, renew->n_evicted_epochs, sizeof(uint64_t));
}

static void copy_list_instances(struct copier *copier, struct model_list_instances_response *list)
{
    list->instances =
        copy_array(copier, list->instances, list->n_instances, sizeof(*list->instances));
}

static void copy_list_keys(struct copier *copier, struct model_list_keys_response *list)
{
    list->keys = copy_array(copier, list->keys, list->n_keys, sizeof(*list->keys));
    for (size_t i = 0; list->keys && i < list->n_keys; i++)
        copy_bytes(copier, &list->keys[i].key);
}

static void copy_list_entries(struct copier *copier, struct model_list_entries_response *list)
{
    list->entries = copy_array(copier, list->entries, list->n_entries, sizeof(*list->entries));
    for (size_t i = 0; list->entries && i < list->n_entries; i++)
        copy_bytes(copier, &list->entries[i].key);
}

static void copy_esi(struct copier *copier, struct model_esi_info *esi)
{
    copy_bytes(copier, &esi->waits_for);
    copy_bytes(copier, &esi->message);
}

static void copy_esi_list(struct copier *copier, struct model_esi_list_response *list)
{
    list->esis = copy_array(copier, list->esis, list->n_esis, sizeof(*list->esis));
    for (size_t i = 0; list->esis && i < list->n_esis; i++)
        copy_esi(copier, &list->esis[i]);
}

/* What people look at. */
static void copy_inspection(struct copier *copier, struct model_response *copy,
                            enum model_call_kind kind)
{
    switch ((int)kind) {
    case MODEL_CALL_LIST_INSTANCES:
        copy_list_instances(copier, &copy->list_instances);
        break;
    case MODEL_CALL_KEY_STATUS:
        copy_key_status(copier, &copy->key_status);
        break;
    case MODEL_CALL_LIST_KEYS:
        copy_list_keys(copier, &copy->list_keys);
        break;
    case MODEL_CALL_LIST_ENTRIES:
        copy_list_entries(copier, &copy->list_entries);
        break;
    case MODEL_CALL_ESI_SUBMIT:
    case MODEL_CALL_ESI_STATUS:
    case MODEL_CALL_ESI_KILL:
    case MODEL_CALL_ESI_BLOCK:
        copy_esi(copier, &copy->esi.esi);
        break;
    case MODEL_CALL_ESI_LIST:
    case MODEL_CALL_ESI_DEADLOCK:
        copy_esi_list(copier, &copy->esi_list);
        break;
    }
}

/* What operations on keys came to. */
static void copy_operation(struct copier *copier, struct model_response *copy,
                           enum model_call_kind kind)
{
    switch ((int)kind) {
    case MODEL_CALL_FENCE:
    case MODEL_CALL_ACTIVATE:
    case MODEL_CALL_SET:
    case MODEL_CALL_STORE:
    case MODEL_CALL_PUT:
    case MODEL_CALL_READ:
    case MODEL_CALL_DELETE:
        copy_data(copier, &copy->data);
        break;
    case MODEL_CALL_PIPELINE:
        copy_pipeline_response(copier, &copy->pipeline);
        break;
    case MODEL_CALL_EXECUTE:
        copy_data(copier, &copy->execute.data);
        break;
    case MODEL_CALL_LOCK:
        copy_data(copier, &copy->lock.data);
        break;
    case MODEL_CALL_WATCH_ROUTES:
        copy_watch_routes(copier, &copy->watch_routes);
        break;
    }
}

static void copy_response(struct copier *copier, struct model_response *copy,
                          enum model_call_kind kind)
{
    switch (kind) {
    case MODEL_CALL_RECONCILE:
        copy_rows(copier, &copy->reconcile.rows, copy->reconcile.n_rows);
        break;
    case MODEL_CALL_RENEW:
        copy_renew(copier, &copy->renew);
        break;
    case MODEL_CALL_PULL_ROWS:
        copy_rows(copier, &copy->pull_rows.rows, copy->pull_rows.n_rows);
        break;
    case MODEL_CALL_FENCE:
    case MODEL_CALL_ACTIVATE:
    case MODEL_CALL_SET:
    case MODEL_CALL_STORE:
    case MODEL_CALL_PUT:
    case MODEL_CALL_READ:
    case MODEL_CALL_DELETE:
    case MODEL_CALL_PIPELINE:
    case MODEL_CALL_EXECUTE:
    case MODEL_CALL_LOCK:
    case MODEL_CALL_WATCH_ROUTES:
        copy_operation(copier, copy, kind);
        break;
    case MODEL_CALL_LIST_INSTANCES:
    case MODEL_CALL_KEY_STATUS:
    case MODEL_CALL_LIST_KEYS:
    case MODEL_CALL_LIST_ENTRIES:
    case MODEL_CALL_ESI_SUBMIT:
    case MODEL_CALL_ESI_STATUS:
    case MODEL_CALL_ESI_KILL:
    case MODEL_CALL_ESI_BLOCK:
    case MODEL_CALL_ESI_LIST:
    case MODEL_CALL_ESI_DEADLOCK:
        copy_inspection(copier, copy, kind);
        break;
    case MODEL_CALL_REGISTER:
    case MODEL_CALL_LEAVE:
    case MODEL_CALL_COMPACT:
    case MODEL_CALL_DROP:
    case MODEL_CALL_INSTANCE_STATUS:
    case MODEL_CALL_OPEN_SESSION:
    case MODEL_CALL_KEEP_ALIVE:
    case MODEL_CALL_CLOSE_SESSION:
    case MODEL_CALL_UNLOCK:
    case MODEL_CALL_ROUTE:
    case MODEL_CALL_GET_DISTRIBUTION:
    case MODEL_CALL_SET_DISTRIBUTION:
    case MODEL_CALL_FREE_LOCK:
    case MODEL_CALL_ESI_PAUSE:
    case MODEL_CALL_ESI_RESUME:
    case MODEL_CALL_ESI_UNBLOCK:
    case MODEL_N_CALL_KINDS:
        break;
    }
}

enum rt_code model_response_copy(struct model_response *ret_copy,
                                 const struct model_response *source, enum model_call_kind kind,
                                 struct rt_arena *arena, struct rt_error *err)
{
    struct copier copier = {.arena = arena};

    *ret_copy = *source;
    if (source->code != RT_OK) {
        copy_bytes(&copier, &ret_copy->error.key);
        return finish(&copier, err);
    }
    copy_response(&copier, ret_copy, kind);
    return finish(&copier, err);
}
