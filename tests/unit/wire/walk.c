/*
 * See walk.h. Invariant: a field of the model that crosses the wire for a kind is visited here, so
 * a field that is forgotten in runtime/wire shows as a difference. One thread.
 */
#include "tests/unit/wire/walk.h"

#include "tests/unit/wire/walk_visit.h"

/* ---- requests ---- */

static void visit_register_request(struct walk *walk, struct model_register_request *reg)
{
    visit_name(walk, "name", reg->name, 1);
    visit_address(walk, "address", reg->address);
    visit_id(walk, "cluster_id", &reg->cluster_id, false);
    visit_id(walk, "store_id", &reg->store_id, true);
    visit_id(walk, "boot_id", &reg->boot_id, true);
    visit_id(walk, "machine_id", &reg->machine_id, false);
    visit_bool(walk, "local_store", &reg->local_store);
    visit_u64(walk, "entries_total", &reg->entries_total);
    visit_u64(walk, "entry_size", &reg->entry_size);
}

static void visit_reconcile_request(struct walk *walk, struct model_reconcile_request *reconcile)
{
    visit_name(walk, "name", reconcile->name, 1);
    visit_u64(walk, "incarnation", &reconcile->incarnation);
    visit_u64(walk, "part", &reconcile->part);
    visit_bool(walk, "last", &reconcile->last);
    visit_list(walk, "rows", (void **)&reconcile->rows, &reconcile->n_rows,
               sizeof(*reconcile->rows));
    for (size_t i = 0; i < reconcile->n_rows; i++) {
        struct model_held_row *row = &reconcile->rows[i];

        visit_key(walk, &row->key);
        visit_u64(walk, "epoch", &row->epoch);
        visit_optional_version(walk, "has_value", &row->has_value, &row->version);
    }
}

static void visit_renew_request(struct walk *walk, struct model_renew_request *renew)
{
    visit_name(walk, "name", renew->name, 1);
    visit_u64(walk, "incarnation", &renew->incarnation);
    visit_id(walk, "boot_id", &renew->boot_id, true);
    visit_id(walk, "store_id", &renew->store_id, true);
    visit_u64(walk, "entries_free", &renew->entries_free);
    visit_u64(walk, "entries_total", &renew->entries_total);
    visit_u64(walk, "n_keys", &renew->n_keys);
    visit_u64(walk, "n_operations", &renew->n_operations);
    visit_list(walk, "evicted", (void **)&renew->evicted, &renew->n_evicted,
               sizeof(*renew->evicted));
    for (size_t i = 0; i < renew->n_evicted; i++) {
        visit_key(walk, &renew->evicted[i].key);
        visit_u64(walk, "epoch", &renew->evicted[i].epoch);
    }
}

static void visit_pull_rows_request(struct walk *walk, struct model_pull_rows_request *pull)
{
    visit_name(walk, "name", pull->name, 1);
    visit_u64(walk, "incarnation", &pull->incarnation);
    visit_list(walk, "keys", (void **)&pull->keys, &pull->n_keys, sizeof(*pull->keys));
    for (size_t i = 0; i < pull->n_keys; i++)
        visit_key(walk, &pull->keys[i]);
}

static void visit_fence_request(struct walk *walk, struct model_fence_request *fence)
{
    visit_u64(walk, "term", &fence->term);
    visit_key(walk, &fence->key);
    visit_u64(walk, "epoch", &fence->epoch);
    visit_u64(walk, "incarnation", &fence->incarnation);
    visit_u64(walk, "token", &fence->token);
    visit_bool(walk, "locked", &fence->locked);
}

static void visit_data_request(struct walk *walk, enum model_call_kind kind,
                               struct model_data_request *data)
{
    struct model_header *header = &data->header;

    visit_id(walk, "cluster_id", &header->cluster_id, false);
    visit_key(walk, &header->key);
    visit_u64(walk, "epoch", &header->epoch);
    visit_name(walk, "owner", header->owner, 1);
    visit_u64(walk, "incarnation", &header->incarnation);
    visit_request_id(walk, &header->request_id);
    visit_u64(walk, "done_below", &header->done_below);
    visit_u64(walk, "first_epoch", &header->first_epoch);
    visit_u64(walk, "lock_token", &header->lock_token);
    visit_u64(walk, "term", &header->term);
    visit_bool(walk, "no_compaction", &header->no_compaction);
    if (kind == MODEL_CALL_SET || kind == MODEL_CALL_PUT)
        visit_value(walk, &data->value);
    if (kind == MODEL_CALL_STORE)
        visit_optional_version(walk, "has_last_set", &data->has_last_set, &data->last_set);
    if (kind == MODEL_CALL_PUT || kind == MODEL_CALL_DELETE)
        visit_optional_version(walk, "has_if_version", &data->has_if_version, &data->if_version);
    if (kind == MODEL_CALL_READ)
        visit_choice(walk, "consistency", (int *)&data->consistency, MODEL_READ_STALE_OK + 1);
}

static void visit_operation(struct walk *walk, struct model_pipeline_operation *operation)
{
    int kind = (int)operation->kind - MODEL_CALL_SET;

    visit_choice(walk, "kind", &kind, MODEL_CALL_DELETE - MODEL_CALL_SET + 1);
    operation->kind = (enum model_call_kind)(kind + MODEL_CALL_SET);
    visit_key(walk, &operation->key);
    visit_value(walk, &operation->value);
    visit_u64(walk, "epoch", &operation->epoch);
    visit_u64(walk, "seq", &operation->seq);
    visit_u64(walk, "first_epoch", &operation->first_epoch);
    visit_u64(walk, "lock_token", &operation->lock_token);
    visit_optional_version(walk, "has_last_set", &operation->has_last_set, &operation->last_set);
    visit_optional_version(walk, "has_if_version", &operation->has_if_version,
                           &operation->if_version);
    if (operation->kind == MODEL_CALL_READ)
        visit_choice(walk, "consistency", (int *)&operation->consistency, MODEL_READ_STALE_OK + 1);
}

static void visit_pipeline_request(struct walk *walk, struct model_pipeline_request *pipeline)
{
    visit_id(walk, "cluster_id", &pipeline->cluster_id, false);
    visit_name(walk, "owner", pipeline->owner, 1);
    visit_u64(walk, "incarnation", &pipeline->incarnation);
    visit_u64(walk, "term", &pipeline->term);
    visit_id(walk, "client", &pipeline->client, true);
    visit_u64(walk, "done_below", &pipeline->done_below);
    visit_list(walk, "operations", (void **)&pipeline->operations, &pipeline->n_operations,
               sizeof(*pipeline->operations));
    for (size_t i = 0; i < pipeline->n_operations; i++)
        visit_operation(walk, &pipeline->operations[i]);
}

static void visit_execute_request(struct walk *walk, struct model_execute_request *execute)
{
    enum model_statement_kind kind;

    visit_id(walk, "session_id", &execute->session_id, true);
    visit_request_id(walk, &execute->request_id);
    visit_u64(walk, "done_below", &execute->done_below);
    visit_u64(walk, "first_version", &execute->first_version);
    visit_choice(walk, "kind", (int *)&execute->kind, MODEL_STATEMENT_AWAIT + 1);
    kind = execute->kind;
    visit_key(walk, &execute->key);
    if (kind == MODEL_STATEMENT_SET || kind == MODEL_STATEMENT_PUT)
        visit_value(walk, &execute->value);
    if (kind == MODEL_STATEMENT_SET || kind == MODEL_STATEMENT_STORE ||
        kind == MODEL_STATEMENT_PUT || kind == MODEL_STATEMENT_DELETE)
        visit_u64(walk, "lock_token", &execute->lock_token);
    if (kind == MODEL_STATEMENT_STORE)
        visit_optional_version(walk, "has_last_set", &execute->has_last_set, &execute->last_set);
    if (kind == MODEL_STATEMENT_PUT || kind == MODEL_STATEMENT_DELETE)
        visit_optional_version(walk, "has_if_version", &execute->has_if_version,
                               &execute->if_version);
}

static void visit_lock_request(struct walk *walk, struct model_lock_request *lock)
{
    visit_id(walk, "session_id", &lock->session_id, true);
    visit_request_id(walk, &lock->request_id);
    visit_u64(walk, "done_below", &lock->done_below);
    visit_key(walk, &lock->key);
    visit_bool(walk, "no_wait", &lock->no_wait);
}

static void visit_unlock_request(struct walk *walk, struct model_unlock_request *unlock)
{
    visit_id(walk, "session_id", &unlock->session_id, true);
    visit_key(walk, &unlock->key);
    visit_u64(walk, "lock_token", &unlock->lock_token);
    unlock->lock_token += unlock->lock_token == 0;
}

static void visit_route_request(struct walk *walk, struct model_route_request *route)
{
    static const enum model_statement_kind operations[] = {
        MODEL_STATEMENT_READ, MODEL_STATEMENT_SET, MODEL_STATEMENT_STORE, MODEL_STATEMENT_PUT,
        MODEL_STATEMENT_DELETE};

    visit_key(walk, &route->key);
    visit_choice(walk, "operation", (int *)&route->operation, RT_ARRAY_SIZE(operations));
    if (walk->mode == WALK_FILL)
        route->operation = operations[route->operation];
    visit_u64(walk, "value_size", &route->value_size);
    if (walk->mode == WALK_FILL)
        route->value_size %= MODEL_VALUE_MAX + 1;
    visit_id(walk, "session_id", &route->session_id, false);
    visit_u64(walk, "lock_token", &route->lock_token);
    visit_u64(walk, "min_placement_version", &route->min_placement_version);
}

static void visit_page_size(struct walk *walk, uint32_t *size)
{
    visit_choice(walk, "page_size", (int *)size, MODEL_PAGE_MAX + 1);
}

static void visit_esi_request(struct walk *walk, enum model_call_kind kind,
                              struct model_esi_request *esi)
{
    if (kind == MODEL_CALL_ESI_BLOCK || kind == MODEL_CALL_ESI_UNBLOCK)
        visit_key(walk, &esi->key);
    if (kind == MODEL_CALL_ESI_STATUS)
        visit_bool(walk, "wait", &esi->wait);
    if (kind == MODEL_CALL_ESI_UNBLOCK)
        return;
    visit_u64(walk, "id", &esi->id);
    esi->id += esi->id == 0;
}

void walk_request(struct walk *walk, struct model_request *request)
{
    switch (request->kind) {
    case MODEL_CALL_REGISTER:
        visit_register_request(walk, &request->reg);
        break;
    case MODEL_CALL_RECONCILE:
        visit_reconcile_request(walk, &request->reconcile);
        break;
    case MODEL_CALL_RENEW:
        visit_renew_request(walk, &request->renew);
        break;
    case MODEL_CALL_LEAVE:
        visit_name(walk, "name", request->leave.name, 1);
        visit_u64(walk, "incarnation", &request->leave.incarnation);
        break;
    case MODEL_CALL_PULL_ROWS:
        visit_pull_rows_request(walk, &request->pull_rows);
        break;
    case MODEL_CALL_FENCE:
        visit_fence_request(walk, &request->fence);
        break;
    case MODEL_CALL_ACTIVATE:
        visit_u64(walk, "term", &request->activate.term);
        visit_u64(walk, "incarnation", &request->activate.incarnation);
        visit_row(walk, &request->activate.row);
        visit_u64(walk, "value_size", &request->activate.value_size);
        break;
    case MODEL_CALL_DROP:
        visit_u64(walk, "term", &request->drop.term);
        visit_key(walk, &request->drop.key);
        visit_u64(walk, "epoch", &request->drop.epoch);
        break;
    case MODEL_CALL_COMPACT:
        visit_u64(walk, "term", &request->compact.term);
        visit_u64(walk, "incarnation", &request->compact.incarnation);
        visit_u64(walk, "round", &request->compact.round);
        break;
    case MODEL_CALL_SET:
    case MODEL_CALL_STORE:
    case MODEL_CALL_PUT:
    case MODEL_CALL_READ:
    case MODEL_CALL_DELETE:
        visit_data_request(walk, request->kind, &request->data);
        break;
    case MODEL_CALL_PIPELINE:
        visit_pipeline_request(walk, &request->pipeline);
        break;
    case MODEL_CALL_OPEN_SESSION:
        visit_name(walk, "name", request->open_session.name, 1);
        visit_request_id(walk, &request->open_session.request_id);
        break;
    case MODEL_CALL_KEEP_ALIVE:
    case MODEL_CALL_CLOSE_SESSION:
        visit_id(walk, "session_id", &request->session.session_id, true);
        break;
    case MODEL_CALL_EXECUTE:
        visit_execute_request(walk, &request->execute);
        break;
    case MODEL_CALL_LOCK:
        visit_lock_request(walk, &request->lock);
        break;
    case MODEL_CALL_UNLOCK:
        visit_unlock_request(walk, &request->unlock);
        break;
    case MODEL_CALL_ROUTE:
        visit_route_request(walk, &request->route);
        break;
    case MODEL_CALL_WATCH_ROUTES:
        visit_bytes(walk, "prefix", &request->watch_routes.prefix, 0, MODEL_KEY_MAX);
        visit_u64(walk, "after_version", &request->watch_routes.after_version);
        break;
    case MODEL_CALL_LIST_INSTANCES:
        visit_name_bytes(walk, "after", &request->page.after, 0);
        visit_page_size(walk, &request->page.page_size);
        break;
    case MODEL_CALL_KEY_STATUS:
    case MODEL_CALL_FREE_LOCK:
        visit_key(walk, &request->key_status.key);
        break;
    case MODEL_CALL_LIST_KEYS:
        visit_bytes(walk, "prefix", &request->page.prefix, 0, MODEL_KEY_MAX);
        visit_bytes(walk, "after", &request->page.after, 0, MODEL_KEY_MAX);
        visit_page_size(walk, &request->page.page_size);
        break;
    case MODEL_CALL_SET_DISTRIBUTION:
        visit_choice(walk, "distribution", (int *)&request->distribution.distribution,
                     MODEL_N_DISTRIBUTIONS);
        break;
    case MODEL_CALL_LIST_ENTRIES:
        visit_u32(walk, "first_index", &request->list_entries.first_index);
        visit_page_size(walk, &request->list_entries.page_size);
        break;
    case MODEL_CALL_ESI_SUBMIT:
        visit_name(walk, "name", request->esi_submit.name, 1);
        visit_bytes(walk, "script", &request->esi_submit.script, 1, 2000);
        visit_request_id(walk, &request->esi_submit.request_id);
        break;
    case MODEL_CALL_ESI_STATUS:
    case MODEL_CALL_ESI_KILL:
    case MODEL_CALL_ESI_BLOCK:
    case MODEL_CALL_ESI_UNBLOCK:
        visit_esi_request(walk, request->kind, &request->esi);
        break;
    case MODEL_CALL_ESI_LIST:
        visit_bytes(walk, "waits_for", &request->esi_list.waits_for, 0, MODEL_KEY_MAX);
        visit_u64(walk, "after", &request->esi_list.after);
        visit_page_size(walk, &request->esi_list.page_size);
        break;
    case MODEL_CALL_INSTANCE_STATUS:
    case MODEL_CALL_GET_DISTRIBUTION:
    case MODEL_CALL_ESI_PAUSE:
    case MODEL_CALL_ESI_RESUME:
    case MODEL_CALL_ESI_DEADLOCK:
    case MODEL_N_CALL_KINDS:
        break;
    }
}

/* ---- responses ---- */

/* Without what a batch has once. */
static void visit_pipeline_data(struct walk *walk, struct model_data_response *data)
{
    visit_version(walk, &data->version);
    visit_bool(walk, "has_value", &data->has_value);
    if (data->has_value)
        visit_value(walk, &data->value);
    visit_bool(walk, "stored", &data->stored);
    visit_bool(walk, "sets_lost", &data->sets_lost);
    visit_bool(walk, "replayed", &data->replayed);
    visit_bool(walk, "stale", &data->stale);
    visit_list(walk, "evicted", (void **)&data->evicted, &data->n_evicted, sizeof(*data->evicted));
    for (size_t i = 0; i < data->n_evicted; i++)
        visit_key(walk, &data->evicted[i]);
}

static void visit_data(struct walk *walk, struct model_data_response *data)
{
    visit_pipeline_data(walk, data);
    visit_u64(walk, "entries_free", &data->entries_free);
}

static void visit_status(struct walk *walk, struct model_instance_status_response *status)
{
    visit_name(walk, "name", status->name, 1);
    visit_id(walk, "cluster_id", &status->cluster_id, false);
    visit_bool(walk, "serving", &status->serving);
    visit_u64(walk, "fence_in_ms", &status->fence_in_ms);
    visit_u64(walk, "n_keys", &status->n_keys);
    visit_u64(walk, "n_quarantined", &status->n_quarantined);
    visit_u64(walk, "entries_free", &status->entries_free);
    visit_u64(walk, "entries_total", &status->entries_total);
    visit_u64(walk, "entry_size", &status->entry_size);
    visit_u64(walk, "n_operations", &status->n_operations);
    visit_u64(walk, "n_compactions", &status->n_compactions);
}

static void visit_open_session(struct walk *walk, struct model_open_session_response *open)
{
    visit_id(walk, "session_id", &open->session_id, true);
    visit_id(walk, "cluster_id", &open->cluster_id, true);
    visit_u64(walk, "lease_ms", &open->lease_ms);
    visit_u32(walk, "key_max", &open->key_max);
    visit_u32(walk, "value_max", &open->value_max);
}

static void visit_execute(struct walk *walk, struct model_execute_response *execute)
{
    visit_choice(walk, "outcome", (int *)&execute->outcome, MODEL_OUTCOME_READY + 1);
    visit_data(walk, &execute->data);
    visit_name(walk, "instance", execute->instance, 0);
    visit_u64(walk, "epoch", &execute->epoch);
    visit_u64(walk, "lock_token", &execute->lock_token);
    visit_name(walk, "holder", execute->holder, 0);
    visit_bool(walk, "lock_lost", &execute->lock_lost);
}

static void visit_optional_route(struct walk *walk, bool *has, struct model_route *route)
{
    visit_bool(walk, "has_route", has);
    if (!*has)
        return;
    visit_id(walk, "route.cluster_id", &route->cluster_id, true);
    visit_name(walk, "route.owner", route->owner, 1);
    visit_address(walk, "route.address", route->address);
    visit_u64(walk, "route.incarnation", &route->incarnation);
    visit_u64(walk, "route.epoch", &route->epoch);
}

static void visit_lock(struct walk *walk, struct model_lock_response *lock)
{
    visit_choice(walk, "outcome", (int *)&lock->outcome, MODEL_OUTCOME_READY + 1);
    visit_data(walk, &lock->data);
    visit_u64(walk, "lock_token", &lock->lock_token);
    visit_optional_route(walk, &lock->has_route, &lock->route);
    visit_name(walk, "holder", lock->holder, 0);
}

static void visit_watch(struct walk *walk, struct model_watch_routes_response *watch)
{
    visit_bool(walk, "reset", &watch->reset);
    visit_bool(walk, "more", &watch->more);
    visit_u64(walk, "version", &watch->version);
    visit_list(walk, "instances", (void **)&watch->instances, &watch->n_instances,
               sizeof(*watch->instances));
    for (size_t i = 0; i < watch->n_instances; i++) {
        visit_name(walk, "name", watch->instances[i].name, 1);
        visit_address(walk, "address", watch->instances[i].address);
        visit_u64(walk, "incarnation", &watch->instances[i].incarnation);
        visit_choice(walk, "state", (int *)&watch->instances[i].state, MODEL_MEMBER_LEFT + 1);
    }
    visit_list(walk, "keys", (void **)&watch->keys, &watch->n_keys, sizeof(*watch->keys));
    for (size_t i = 0; i < watch->n_keys; i++) {
        visit_key(walk, &watch->keys[i].key);
        visit_name(walk, "owner", watch->keys[i].owner, 0);
        visit_u64(walk, "epoch", &watch->keys[i].epoch);
    }
}

static void visit_instances(struct walk *walk, struct model_list_instances_response *list)
{
    visit_list(walk, "instances", (void **)&list->instances, &list->n_instances,
               sizeof(*list->instances));
    visit_bool(walk, "more", &list->more);
    for (size_t i = 0; i < list->n_instances; i++) {
        struct model_instance_info *info = &list->instances[i];

        visit_name(walk, "name", info->name, 1);
        visit_address(walk, "address", info->address);
        visit_choice(walk, "state", (int *)&info->state, MODEL_MEMBER_LEFT + 1);
        visit_u64(walk, "incarnation", &info->incarnation);
        visit_u64(walk, "ordinal", &info->ordinal);
        visit_u64(walk, "entries_free", &info->entries_free);
        visit_u64(walk, "entries_total", &info->entries_total);
        visit_u64(walk, "n_keys", &info->n_keys);
        visit_u64(walk, "last_renew_age_ms", &info->last_renew_age_ms);
    }
}

static void visit_key_status(struct walk *walk, struct model_key_status_response *status)
{
    visit_bool(walk, "known", &status->known);
    visit_bool(walk, "has_value", &status->has_value);
    if (status->has_value)
        visit_value(walk, &status->value);
    visit_version(walk, &status->version);
    visit_bool(walk, "stored", &status->stored);
    visit_name(walk, "owner", status->owner, 0);
    if (status->owner[0])
        visit_choice(walk, "owner_state", (int *)&status->owner_state, MODEL_MEMBER_LEFT + 1);
    visit_u64(walk, "epoch", &status->epoch);
    visit_name(walk, "would_place", status->would_place, 0);
    visit_name(walk, "holder", status->holder, 0);
    visit_list(walk, "waiters", (void **)&status->waiters, &status->n_waiters,
               sizeof(*status->waiters));
    for (size_t i = 0; i < status->n_waiters; i++)
        visit_name_bytes(walk, "waiter", &status->waiters[i], 1);
    visit_bool(walk, "value_unavailable", &status->value_unavailable);
}

static void visit_entries(struct walk *walk, struct model_list_entries_response *list)
{
    visit_bool(walk, "more", &list->more);
    visit_u32(walk, "pointer", &list->pointer);
    visit_u64(walk, "entries_free", &list->entries_free);
    visit_u64(walk, "entries_total", &list->entries_total);
    visit_u64(walk, "entry_size", &list->entry_size);
    visit_list(walk, "entries", (void **)&list->entries, &list->n_entries, sizeof(*list->entries));
    for (size_t i = 0; i < list->n_entries; i++) {
        visit_u32(walk, "index", &list->entries[i].index);
        visit_key(walk, &list->entries[i].key);
        visit_u64(walk, "offset", &list->entries[i].offset);
        visit_u64(walk, "bytes_used", &list->entries[i].bytes_used);
        visit_bool(walk, "atomic", &list->entries[i].atomic);
    }
}

static void visit_keys(struct walk *walk, struct model_list_keys_response *list)
{
    visit_list(walk, "keys", (void **)&list->keys, &list->n_keys, sizeof(*list->keys));
    visit_bool(walk, "more", &list->more);
    for (size_t i = 0; i < list->n_keys; i++) {
        visit_key(walk, &list->keys[i].key);
        visit_name(walk, "owner", list->keys[i].owner, 0);
        visit_u64(walk, "epoch", &list->keys[i].epoch);
        visit_name(walk, "holder", list->keys[i].holder, 0);
    }
}

static void visit_error(struct walk *walk, struct model_error *error)
{
    visit_choice(walk, "reason", (int *)&error->reason, MODEL_N_REASONS);
    visit_choice(walk, "applied", (int *)&error->applied, MODEL_APPLIED_NO + 1);
    visit_text(walk, "message", error->message, "abc XYZ'%=", 0, MODEL_ERROR_MESSAGE_MAX);
    visit_bytes(walk, "key", &error->key, 0, 256);
    visit_u64(walk, "request_epoch", &error->request_epoch);
    visit_u64(walk, "current_epoch", &error->current_epoch);
    visit_bool(walk, "has_hint", &error->has_hint);
    if (error->has_hint) {
        visit_name(walk, "hint.name", error->hint.name, 1);
        visit_address(walk, "hint.address", error->hint.address);
        visit_u64(walk, "hint.incarnation", &error->hint.incarnation);
        visit_u64(walk, "hint.epoch", &error->hint.epoch);
    }
    visit_u32(walk, "retry_after_ms", &error->retry_after_ms);
    visit_bool(walk, "refresh_required", &error->refresh_required);
    visit_u64(walk, "expires_in_ms", &error->expires_in_ms);
}

/* Filled: every other one is a failure. */
static void visit_pipeline_result(struct walk *walk, struct model_pipeline_result *result,
                                  size_t index)
{
    struct model_error *error = (struct model_error *)result->error;
    int code = (int)result->code;

    if (walk->mode == WALK_FILL && index % 2 == 1) {
        code = RT_ABORTED;
        error = rt_arena_alloc(walk->arena, sizeof(*error));
        rt_assert(error);
        *error = (struct model_error){0};
    }
    if (walk->mode == WALK_DUMP)
        visit_choice(walk, "code", &code, 0);
    result->code = (enum rt_code)code;
    result->error = error;
    if (error)
        visit_error(walk, error);
    else
        visit_pipeline_data(walk, &result->data);
}

static void visit_pipeline(struct walk *walk, struct model_pipeline_response *pipeline)
{
    visit_u64(walk, "entries_free", &pipeline->entries_free);
    visit_list(walk, "results", (void **)&pipeline->results, &pipeline->n_results,
               sizeof(*pipeline->results));
    for (size_t i = 0; i < pipeline->n_results; i++)
        visit_pipeline_result(walk, &pipeline->results[i], i);
}

static void visit_renew(struct walk *walk, struct model_renew_response *renew)
{
    visit_u64(walk, "lease_ms", &renew->lease_ms);
    visit_list(walk, "evicted_epochs", (void **)&renew->evicted_epochs, &renew->n_evicted_epochs,
               sizeof(*renew->evicted_epochs));
    for (size_t i = 0; i < renew->n_evicted_epochs; i++)
        visit_u64(walk, "epoch", &renew->evicted_epochs[i]);
}

static void visit_esi(struct walk *walk, struct model_esi_info *esi)
{
    char text[MODEL_ESI_MESSAGE_MAX + 1];

    visit_u64(walk, "id", &esi->id);
    visit_name(walk, "name", esi->name, 1);
    visit_choice(walk, "state", (int *)&esi->state, MODEL_N_ESI_STATES);
    visit_choice(walk, "end", (int *)&esi->end, MODEL_N_ESI_ENDS);
    visit_u32(walk, "line", &esi->line);
    visit_u64(walk, "n_statements", &esi->n_statements);
    visit_u64(walk, "n_ok", &esi->n_ok);
    visit_u64(walk, "estimate_milli", &esi->estimate_milli);
    visit_bytes(walk, "waits_for", &esi->waits_for, 0, MODEL_KEY_MAX);
    visit_choice(walk, "reason", (int *)&esi->reason, MODEL_N_REASONS);
    if (walk->mode == WALK_DUMP) {
        visit_bytes(walk, "message", &esi->message, 0, 0);
        return;
    }
    visit_text(walk, "message", text, "abc XYZ'%=", 0, MODEL_ESI_MESSAGE_MAX);
    rt_assert(rt_arena_copy(walk->arena, rt_bytes_of_string(text), &esi->message));
}

static void visit_esis(struct walk *walk, struct model_esi_list_response *list)
{
    visit_list(walk, "esis", (void **)&list->esis, &list->n_esis, sizeof(*list->esis));
    for (size_t i = 0; i < list->n_esis; i++)
        visit_esi(walk, &list->esis[i]);
}

static void visit_result(struct walk *walk, enum model_call_kind kind,
                         struct model_response *response)
{
    switch (kind) {
    case MODEL_CALL_REGISTER:
        visit_id(walk, "cluster_id", &response->reg.cluster_id, true);
        visit_u64(walk, "incarnation", &response->reg.incarnation);
        visit_u64(walk, "lease_ms", &response->reg.lease_ms);
        visit_u32(walk, "key_max", &response->reg.key_max);
        break;
    case MODEL_CALL_RECONCILE:
        visit_rows(walk, &response->reconcile.rows, &response->reconcile.n_rows);
        visit_bool(walk, "done", &response->reconcile.done);
        break;
    case MODEL_CALL_RENEW:
        visit_renew(walk, &response->renew);
        break;
    case MODEL_CALL_PULL_ROWS:
        visit_rows(walk, &response->pull_rows.rows, &response->pull_rows.n_rows);
        break;
    case MODEL_CALL_FENCE:
    case MODEL_CALL_ACTIVATE:
    case MODEL_CALL_SET:
    case MODEL_CALL_STORE:
    case MODEL_CALL_PUT:
    case MODEL_CALL_READ:
    case MODEL_CALL_DELETE:
        visit_data(walk, &response->data);
        break;
    case MODEL_CALL_PIPELINE:
        visit_pipeline(walk, &response->pipeline);
        break;
    case MODEL_CALL_INSTANCE_STATUS:
        visit_status(walk, &response->instance_status);
        break;
    case MODEL_CALL_LIST_ENTRIES:
        visit_entries(walk, &response->list_entries);
        break;
    case MODEL_CALL_OPEN_SESSION:
        visit_open_session(walk, &response->open_session);
        break;
    case MODEL_CALL_KEEP_ALIVE:
        visit_u64(walk, "lease_ms", &response->keep_alive.lease_ms);
        break;
    case MODEL_CALL_EXECUTE:
        visit_execute(walk, &response->execute);
        break;
    case MODEL_CALL_LOCK:
        visit_lock(walk, &response->lock);
        break;
    case MODEL_CALL_ROUTE:
        visit_optional_route(walk, &response->route.has_route, &response->route.route);
        break;
    case MODEL_CALL_WATCH_ROUTES:
        visit_watch(walk, &response->watch_routes);
        break;
    case MODEL_CALL_LIST_INSTANCES:
        visit_instances(walk, &response->list_instances);
        break;
    case MODEL_CALL_KEY_STATUS:
        visit_key_status(walk, &response->key_status);
        break;
    case MODEL_CALL_LIST_KEYS:
        visit_keys(walk, &response->list_keys);
        break;
    case MODEL_CALL_GET_DISTRIBUTION:
    case MODEL_CALL_SET_DISTRIBUTION:
        visit_choice(walk, "distribution", (int *)&response->distribution.distribution,
                     MODEL_N_DISTRIBUTIONS);
        visit_choice(walk, "configured", (int *)&response->distribution.configured,
                     MODEL_N_DISTRIBUTIONS);
        break;
    case MODEL_CALL_FREE_LOCK:
        visit_name(walk, "holder", response->free_lock.holder, 0);
        break;
    case MODEL_CALL_ESI_SUBMIT:
    case MODEL_CALL_ESI_STATUS:
    case MODEL_CALL_ESI_KILL:
    case MODEL_CALL_ESI_BLOCK:
        visit_esi(walk, &response->esi.esi);
        break;
    case MODEL_CALL_ESI_LIST:
        visit_bool(walk, "more", &response->esi_list.more);
        visit_name(walk, "planner", response->esi_list.planner, 1);
        visit_bool(walk, "paused", &response->esi_list.paused);
        visit_esis(walk, &response->esi_list);
        break;
    case MODEL_CALL_ESI_DEADLOCK:
        visit_esis(walk, &response->esi_list);
        break;
    case MODEL_CALL_ESI_UNBLOCK:
        visit_u64(walk, "woken", &response->esi_unblock.woken);
        visit_u64(walk, "n_waiting", &response->esi_unblock.n_waiting);
        break;
    case MODEL_CALL_LEAVE:
    case MODEL_CALL_DROP:
    case MODEL_CALL_COMPACT:
    case MODEL_CALL_CLOSE_SESSION:
    case MODEL_CALL_UNLOCK:
    case MODEL_CALL_ESI_PAUSE:
    case MODEL_CALL_ESI_RESUME:
    case MODEL_N_CALL_KINDS:
        break;
    }
}

void walk_response(struct walk *walk, enum model_call_kind kind, struct model_response *response)
{
    int code = (int)response->code;

    visit_name(walk, "responder.name", response->responder.name, 0);
    visit_u64(walk, "responder.incarnation", &response->responder.incarnation);
    visit_u64(walk, "responder.term", &response->responder.term);
    visit_u64(walk, "responder.placement_version", &response->responder.placement_version);
    if (walk->mode == WALK_DUMP)
        visit_choice(walk, "code", &code, 0);
    if (code == RT_OK)
        visit_result(walk, kind, response);
    else
        visit_error(walk, &response->error);
}
