/*
 * Deep copies: every kind of request and response is filled, copied and compared after the source's
 * memory was overwritten; an arena that is too small refuses at every step.
 */
#include "runtime/model/message.h"

#include <stdlib.h>

#include "tests/support/check.h"

TestSuite(copy, .fini = test_alloc_expect_none);

enum {
    N_ITEMS = 3,
    MAX_VIEWS = 9,
};

/* Everything that a source message borrows. */
struct source {
    char text[MAX_VIEWS][8];
    size_t n_text;
    union {
        struct model_row rows[N_ITEMS];
        struct model_held_row held[N_ITEMS];
        struct rt_bytes views[N_ITEMS];
        struct model_instance_info instances[N_ITEMS];
        struct model_key_info keys[N_ITEMS];
        struct model_entry_info entries[N_ITEMS];
        struct model_esi_info esis[N_ITEMS];
        struct model_pipeline_operation operations[N_ITEMS];
        struct model_pipeline_result results[N_ITEMS];
        struct model_evicted evicted[N_ITEMS];
        uint64_t epochs[N_ITEMS];
        struct {
            struct model_watched_instance instances[N_ITEMS];
            struct model_watched_key keys[N_ITEMS];
        } watched;
    };
    struct model_error errors[N_ITEMS];
};

/* "text0", "text1", … in the order of the calls. */
static struct rt_bytes view(struct source *source)
{
    int size =
        snprintf(source->text[source->n_text], sizeof(source->text[0]), "text%zu", source->n_text);

    return rt_bytes_of(source->text[source->n_text++], (size_t)size);
}

static struct model_row *fill_rows(struct source *source)
{
    for (size_t i = 0; i < N_ITEMS; i++)
        source->rows[i] = (struct model_row){.key = view(source), .epoch = 100 + i, .locked = true};
    return source->rows;
}

static struct rt_bytes *fill_views(struct source *source)
{
    for (size_t i = 0; i < N_ITEMS; i++)
        source->views[i] = view(source);
    return source->views;
}

static const struct model_error *fill_error(struct source *source, size_t i)
{
    source->errors[i] = (struct model_error){.key = view(source), .request_epoch = 500 + i};
    return &source->errors[i];
}

static struct model_pipeline_operation *fill_operations(struct source *source)
{
    for (size_t i = 0; i < N_ITEMS; i++) {
        struct model_pipeline_operation *operation = &source->operations[i];

        *operation = (struct model_pipeline_operation){.seq = 600 + i};
        operation->key = view(source);
        operation->value = view(source);
        operation->refused = i == 0 ? NULL : fill_error(source, i);
    }
    return source->operations;
}

static struct model_pipeline_result *fill_results(struct source *source)
{
    for (size_t i = 0; i < N_ITEMS; i++) {
        source->results[i] = (struct model_pipeline_result){.data.value = view(source)};
        source->results[i].error = i == 0 ? NULL : fill_error(source, i);
    }
    return source->results;
}

static void fill_request(struct model_request *request, enum model_call_kind kind,
                         struct source *source)
{
    memset(request, 0, sizeof(*request));
    request->kind = kind;
    switch (kind) {
    case MODEL_CALL_RECONCILE:
        for (size_t i = 0; i < N_ITEMS; i++)
            source->held[i] = (struct model_held_row){.key = view(source), .epoch = 200 + i};
        request->reconcile.rows = source->held;
        request->reconcile.n_rows = N_ITEMS;
        request->reconcile.part = 9;
        break;
    case MODEL_CALL_PULL_ROWS:
        request->pull_rows.keys = fill_views(source);
        request->pull_rows.n_keys = N_ITEMS;
        break;
    case MODEL_CALL_FENCE:
        request->fence.key = view(source);
        request->fence.token = 11;
        break;
    case MODEL_CALL_ACTIVATE:
        request->activate.row.key = view(source);
        request->activate.value_size = 12;
        break;
    case MODEL_CALL_DROP:
        request->drop.key = view(source);
        request->drop.epoch = 13;
        break;
    case MODEL_CALL_SET:
    case MODEL_CALL_STORE:
    case MODEL_CALL_PUT:
    case MODEL_CALL_READ:
    case MODEL_CALL_DELETE:
        request->data.header.key = view(source);
        request->data.header.lock_token = 14;
        request->data.value = view(source);
        break;
    case MODEL_CALL_PIPELINE:
        request->pipeline.operations = fill_operations(source);
        request->pipeline.n_operations = N_ITEMS;
        request->pipeline.term = 28;
        break;
    case MODEL_CALL_EXECUTE:
        request->execute.key = view(source);
        request->execute.value = view(source);
        request->execute.lock_token = 15;
        break;
    case MODEL_CALL_LOCK:
        request->lock.key = view(source);
        request->lock.done_below = 28;
        break;
    case MODEL_CALL_UNLOCK:
        request->unlock.key = view(source);
        request->unlock.lock_token = 29;
        break;
    case MODEL_CALL_ROUTE:
        request->route.key = view(source);
        request->route.value_size = 30;
        break;
    case MODEL_CALL_WATCH_ROUTES:
        request->watch_routes.prefix = view(source);
        request->watch_routes.cursor.change = 31;
        break;
    case MODEL_CALL_LIST_INSTANCES:
    case MODEL_CALL_LIST_KEYS:
        request->page.prefix = view(source);
        request->page.after = view(source);
        request->page.page_size = 16;
        break;
    case MODEL_CALL_KEY_STATUS:
    case MODEL_CALL_FREE_LOCK:
        request->key_status.key = view(source);
        break;
    case MODEL_CALL_REGISTER:
        memcpy(request->reg.name, "i1", 3);
        break;
    case MODEL_CALL_RENEW:
        for (size_t i = 0; i < N_ITEMS; i++)
            source->evicted[i] = (struct model_evicted){.key = view(source), .epoch = 800 + i};
        request->renew.evicted = source->evicted;
        request->renew.n_evicted = N_ITEMS;
        request->renew.n_keys = 17;
        break;
    case MODEL_CALL_LEAVE:
        request->leave.incarnation = 18;
        break;
    case MODEL_CALL_COMPACT:
        request->compact.round = 35;
        break;
    case MODEL_CALL_OPEN_SESSION:
        request->open_session.request_id.seq = 19;
        break;
    case MODEL_CALL_KEEP_ALIVE:
    case MODEL_CALL_CLOSE_SESSION:
        request->session.session_id.bytes[3] = 20;
        break;
    case MODEL_CALL_LIST_ENTRIES:
        request->list_entries.first_index = 35;
        break;
    case MODEL_CALL_ESI_SUBMIT:
        request->esi_submit.script = view(source);
        request->esi_submit.request_id.seq = 36;
        break;
    case MODEL_CALL_ESI_BLOCK:
    case MODEL_CALL_ESI_UNBLOCK:
        request->esi.key = view(source);
        request->esi.id = 37;
        break;
    case MODEL_CALL_ESI_LIST:
        request->esi_list.waits_for = view(source);
        request->esi_list.after = 38;
        break;
    case MODEL_CALL_ESI_STATUS:
    case MODEL_CALL_ESI_KILL:
        request->esi.id = 39;
        break;
    case MODEL_CALL_INSTANCE_STATUS:
    case MODEL_CALL_GET_DISTRIBUTION:
    case MODEL_CALL_SET_DISTRIBUTION:
    case MODEL_CALL_ESI_PAUSE:
    case MODEL_CALL_ESI_RESUME:
    case MODEL_CALL_ESI_DEADLOCK:
    case MODEL_N_CALL_KINDS:
        break;
    }
}

static void fill_esi(struct model_esi_info *esi, struct source *source, size_t i)
{
    *esi = (struct model_esi_info){.id = 800 + i};
    esi->waits_for = view(source);
    esi->message = view(source);
}

static void fill_watch(struct model_watch_routes_response *watch, struct source *source)
{
    for (size_t i = 0; i < N_ITEMS; i++) {
        source->watched.instances[i] = (struct model_watched_instance){.incarnation = 500 + i};
        source->watched.keys[i] = (struct model_watched_key){.key = view(source), .epoch = 600 + i};
    }
    *watch = (struct model_watch_routes_response){
        .instances = source->watched.instances,
        .n_instances = N_ITEMS,
        .keys = source->watched.keys,
        .n_keys = N_ITEMS,
        .next.position = 34,
    };
}

static void fill_response(struct model_response *response, enum model_call_kind kind,
                          struct source *source)
{
    memset(response, 0, sizeof(*response));
    switch (kind) {
    case MODEL_CALL_RECONCILE:
        response->reconcile.rows = fill_rows(source);
        response->reconcile.n_rows = N_ITEMS;
        response->reconcile.done = true;
        break;
    case MODEL_CALL_PULL_ROWS:
        response->pull_rows.rows = fill_rows(source);
        response->pull_rows.n_rows = N_ITEMS;
        break;
    case MODEL_CALL_FENCE:
    case MODEL_CALL_ACTIVATE:
    case MODEL_CALL_SET:
    case MODEL_CALL_STORE:
    case MODEL_CALL_PUT:
    case MODEL_CALL_READ:
    case MODEL_CALL_DELETE:
        response->data.value = view(source);
        response->data.version.seq = 21;
        response->data.evicted = fill_views(source);
        response->data.n_evicted = N_ITEMS;
        break;
    case MODEL_CALL_PIPELINE:
        response->pipeline.results = fill_results(source);
        response->pipeline.n_results = N_ITEMS;
        response->pipeline.entries_free = 29;
        break;
    case MODEL_CALL_EXECUTE:
        response->execute.data.value = view(source);
        response->execute.lock_token = 22;
        break;
    case MODEL_CALL_LOCK:
        response->lock.data.value = view(source);
        response->lock.route.epoch = 32;
        break;
    case MODEL_CALL_ROUTE:
        response->route.route.epoch = 33;
        break;
    case MODEL_CALL_WATCH_ROUTES:
        fill_watch(&response->watch_routes, source);
        break;
    case MODEL_CALL_LIST_INSTANCES:
        for (size_t i = 0; i < N_ITEMS; i++)
            source->instances[i] = (struct model_instance_info){.ordinal = 300 + i};
        response->list_instances.instances = source->instances;
        response->list_instances.n_instances = N_ITEMS;
        break;
    case MODEL_CALL_KEY_STATUS:
        response->key_status.value = view(source);
        response->key_status.waiters = fill_views(source);
        response->key_status.n_waiters = N_ITEMS;
        break;
    case MODEL_CALL_LIST_KEYS:
        for (size_t i = 0; i < N_ITEMS; i++)
            source->keys[i] = (struct model_key_info){.key = view(source), .epoch = 400 + i};
        response->list_keys.keys = source->keys;
        response->list_keys.n_keys = N_ITEMS;
        break;
    case MODEL_CALL_RENEW:
        for (size_t i = 0; i < N_ITEMS; i++)
            source->epochs[i] = 900 + i;
        response->renew.evicted_epochs = source->epochs;
        response->renew.n_evicted_epochs = N_ITEMS;
        response->renew.lease_ms = 23;
        break;
    case MODEL_CALL_KEEP_ALIVE:
        response->keep_alive.lease_ms = 24;
        break;
    case MODEL_CALL_OPEN_SESSION:
        response->open_session.key_max = 25;
        break;
    case MODEL_CALL_REGISTER:
        response->reg.incarnation = 26;
        break;
    case MODEL_CALL_LIST_ENTRIES:
        for (size_t i = 0; i < N_ITEMS; i++)
            source->entries[i] = (struct model_entry_info){.key = view(source), .offset = 700 + i};
        response->list_entries.entries = source->entries;
        response->list_entries.n_entries = N_ITEMS;
        break;
    case MODEL_CALL_INSTANCE_STATUS:
        response->instance_status.n_keys = 27;
        break;
    case MODEL_CALL_LEAVE:
    case MODEL_CALL_DROP:
    case MODEL_CALL_COMPACT:
    case MODEL_CALL_CLOSE_SESSION:
    case MODEL_CALL_UNLOCK:
    case MODEL_CALL_GET_DISTRIBUTION:
    case MODEL_CALL_SET_DISTRIBUTION:
    case MODEL_CALL_FREE_LOCK:
    case MODEL_CALL_ESI_PAUSE:
    case MODEL_CALL_ESI_RESUME:
    case MODEL_N_CALL_KINDS:
        break;
    case MODEL_CALL_ESI_UNBLOCK:
        response->esi_unblock.woken = 40;
        break;
    case MODEL_CALL_ESI_SUBMIT:
    case MODEL_CALL_ESI_STATUS:
    case MODEL_CALL_ESI_KILL:
    case MODEL_CALL_ESI_BLOCK:
        fill_esi(&response->esi.esi, source, 0);
        break;
    case MODEL_CALL_ESI_LIST:
    case MODEL_CALL_ESI_DEADLOCK:
        for (size_t i = 0; i < N_ITEMS; i++)
            fill_esi(&source->esis[i], source, i);
        response->esi_list.esis = source->esis;
        response->esi_list.n_esis = N_ITEMS;
        break;
    }
}

/* Whether `copy` says the same as `expected` without sharing memory with it. */
static bool views_match(const struct rt_bytes *copy, const struct rt_bytes *expected)
{
    return rt_bytes_equal(*copy, *expected) &&
           (expected->size == 0 || copy->data != expected->data);
}

static bool rows_match(const struct model_row *copy, const struct model_row *expected, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!views_match(&copy[i].key, &expected[i].key) || copy[i].epoch != expected[i].epoch ||
            copy[i].locked != expected[i].locked)
            return false;
    return copy != expected;
}

static bool bytes_arrays_match(const struct rt_bytes *copy, const struct rt_bytes *expected,
                               size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!views_match(&copy[i], &expected[i]))
            return false;
    return copy != expected;
}

static bool errors_match(const struct model_error *copy, const struct model_error *expected)
{
    if (!expected)
        return !copy;
    return copy != expected && views_match(&copy->key, &expected->key) &&
           copy->request_epoch == expected->request_epoch;
}

static bool operations_match(const struct model_pipeline_request *copy,
                             const struct model_pipeline_request *expected)
{
    for (size_t i = 0; i < N_ITEMS; i++)
        if (!views_match(&copy->operations[i].key, &expected->operations[i].key) ||
            !views_match(&copy->operations[i].value, &expected->operations[i].value) ||
            !errors_match(copy->operations[i].refused, expected->operations[i].refused) ||
            copy->operations[i].seq != 600 + i)
            return false;
    return copy->n_operations == N_ITEMS && copy->term == 28;
}

static bool results_match(const struct model_pipeline_response *copy,
                          const struct model_pipeline_response *expected)
{
    for (size_t i = 0; i < N_ITEMS; i++)
        if (!views_match(&copy->results[i].data.value, &expected->results[i].data.value) ||
            !errors_match(copy->results[i].error, expected->results[i].error))
            return false;
    return copy->n_results == N_ITEMS && copy->entries_free == 29;
}

static bool requests_match(const struct model_request *copy, const struct model_request *expected)
{
    switch (expected->kind) {
    case MODEL_CALL_RECONCILE:
        for (size_t i = 0; i < N_ITEMS; i++)
            if (!views_match(&copy->reconcile.rows[i].key, &expected->reconcile.rows[i].key) ||
                copy->reconcile.rows[i].epoch != 200 + i)
                return false;
        return copy->reconcile.n_rows == N_ITEMS && copy->reconcile.part == 9;
    case MODEL_CALL_RENEW:
        for (size_t i = 0; i < N_ITEMS; i++)
            if (!views_match(&copy->renew.evicted[i].key, &expected->renew.evicted[i].key) ||
                copy->renew.evicted[i].epoch != 800 + i)
                return false;
        return copy->renew.n_evicted == N_ITEMS && copy->renew.n_keys == 17;
    case MODEL_CALL_PULL_ROWS:
        return copy->pull_rows.n_keys == N_ITEMS &&
               bytes_arrays_match(copy->pull_rows.keys, expected->pull_rows.keys, N_ITEMS);
    case MODEL_CALL_FENCE:
        return views_match(&copy->fence.key, &expected->fence.key) && copy->fence.token == 11;
    case MODEL_CALL_ACTIVATE:
        return views_match(&copy->activate.row.key, &expected->activate.row.key) &&
               copy->activate.value_size == 12;
    case MODEL_CALL_DROP:
        return views_match(&copy->drop.key, &expected->drop.key) && copy->drop.epoch == 13;
    case MODEL_CALL_SET:
    case MODEL_CALL_STORE:
    case MODEL_CALL_PUT:
    case MODEL_CALL_READ:
    case MODEL_CALL_DELETE:
        return views_match(&copy->data.header.key, &expected->data.header.key) &&
               views_match(&copy->data.value, &expected->data.value) &&
               copy->data.header.lock_token == 14;
    case MODEL_CALL_PIPELINE:
        return operations_match(&copy->pipeline, &expected->pipeline);
    case MODEL_CALL_EXECUTE:
        return views_match(&copy->execute.key, &expected->execute.key) &&
               views_match(&copy->execute.value, &expected->execute.value) &&
               copy->execute.lock_token == 15;
    case MODEL_CALL_LOCK:
        return views_match(&copy->lock.key, &expected->lock.key) && copy->lock.done_below == 28;
    case MODEL_CALL_UNLOCK:
        return views_match(&copy->unlock.key, &expected->unlock.key) &&
               copy->unlock.lock_token == 29;
    case MODEL_CALL_ROUTE:
        return views_match(&copy->route.key, &expected->route.key) && copy->route.value_size == 30;
    case MODEL_CALL_WATCH_ROUTES:
        return views_match(&copy->watch_routes.prefix, &expected->watch_routes.prefix) &&
               copy->watch_routes.cursor.change == 31;
    case MODEL_CALL_LIST_INSTANCES:
    case MODEL_CALL_LIST_KEYS:
        return views_match(&copy->page.prefix, &expected->page.prefix) &&
               views_match(&copy->page.after, &expected->page.after) && copy->page.page_size == 16;
    case MODEL_CALL_ESI_SUBMIT:
        return views_match(&copy->esi_submit.script, &expected->esi_submit.script) &&
               copy->esi_submit.request_id.seq == 36;
    case MODEL_CALL_ESI_BLOCK:
    case MODEL_CALL_ESI_UNBLOCK:
        return views_match(&copy->esi.key, &expected->esi.key) && copy->esi.id == 37;
    case MODEL_CALL_ESI_LIST:
        return views_match(&copy->esi_list.waits_for, &expected->esi_list.waits_for) &&
               copy->esi_list.after == 38;
    case MODEL_CALL_KEY_STATUS:
    case MODEL_CALL_FREE_LOCK:
        return views_match(&copy->key_status.key, &expected->key_status.key);
    case MODEL_CALL_REGISTER:
    case MODEL_CALL_LEAVE:
    case MODEL_CALL_COMPACT:
    case MODEL_CALL_LIST_ENTRIES:
    case MODEL_CALL_INSTANCE_STATUS:
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
        return memcmp(copy, expected, sizeof(*copy)) == 0;
    }
    return false;
}

static bool watches_match(const struct model_watch_routes_response *copy,
                          const struct model_watch_routes_response *expected)
{
    for (size_t i = 0; i < N_ITEMS; i++)
        if (copy->instances[i].incarnation != 500 + i || copy->keys[i].epoch != 600 + i ||
            !views_match(&copy->keys[i].key, &expected->keys[i].key))
            return false;
    return copy->instances != expected->instances && copy->keys != expected->keys &&
           copy->n_instances == N_ITEMS && copy->n_keys == N_ITEMS && copy->next.position == 34;
}

static bool esi_matches(const struct model_esi_info *copy, const struct model_esi_info *expected,
                        size_t i)
{
    return views_match(&copy->waits_for, &expected->waits_for) &&
           views_match(&copy->message, &expected->message) && copy->id == 800 + i;
}

static bool responses_match(const struct model_response *copy,
                            const struct model_response *expected, enum model_call_kind kind)
{
    switch (kind) {
    case MODEL_CALL_RECONCILE:
        return copy->reconcile.done && copy->reconcile.n_rows == N_ITEMS &&
               rows_match(copy->reconcile.rows, expected->reconcile.rows, N_ITEMS);
    case MODEL_CALL_RENEW:
        return copy->renew.evicted_epochs != expected->renew.evicted_epochs &&
               memcmp(copy->renew.evicted_epochs, expected->renew.evicted_epochs,
                      N_ITEMS * sizeof(uint64_t)) == 0 &&
               copy->renew.n_evicted_epochs == N_ITEMS && copy->renew.lease_ms == 23;
    case MODEL_CALL_PULL_ROWS:
        return copy->pull_rows.n_rows == N_ITEMS &&
               rows_match(copy->pull_rows.rows, expected->pull_rows.rows, N_ITEMS);
    case MODEL_CALL_FENCE:
    case MODEL_CALL_ACTIVATE:
    case MODEL_CALL_SET:
    case MODEL_CALL_STORE:
    case MODEL_CALL_PUT:
    case MODEL_CALL_READ:
    case MODEL_CALL_DELETE:
        return views_match(&copy->data.value, &expected->data.value) &&
               bytes_arrays_match(copy->data.evicted, expected->data.evicted, N_ITEMS) &&
               copy->data.version.seq == 21;
    case MODEL_CALL_PIPELINE:
        return results_match(&copy->pipeline, &expected->pipeline);
    case MODEL_CALL_EXECUTE:
        return views_match(&copy->execute.data.value, &expected->execute.data.value) &&
               copy->execute.lock_token == 22;
    case MODEL_CALL_LOCK:
        return views_match(&copy->lock.data.value, &expected->lock.data.value) &&
               copy->lock.route.epoch == 32;
    case MODEL_CALL_WATCH_ROUTES:
        return watches_match(&copy->watch_routes, &expected->watch_routes);
    case MODEL_CALL_LIST_INSTANCES:
        return copy->list_instances.instances != expected->list_instances.instances &&
               memcmp(copy->list_instances.instances, expected->list_instances.instances,
                      N_ITEMS * sizeof(struct model_instance_info)) == 0;
    case MODEL_CALL_KEY_STATUS:
        return views_match(&copy->key_status.value, &expected->key_status.value) &&
               bytes_arrays_match(copy->key_status.waiters, expected->key_status.waiters, N_ITEMS);
    case MODEL_CALL_LIST_KEYS:
        for (size_t i = 0; i < N_ITEMS; i++)
            if (!views_match(&copy->list_keys.keys[i].key, &expected->list_keys.keys[i].key) ||
                copy->list_keys.keys[i].epoch != 400 + i)
                return false;
        return copy->list_keys.n_keys == N_ITEMS;
    case MODEL_CALL_ESI_SUBMIT:
    case MODEL_CALL_ESI_STATUS:
    case MODEL_CALL_ESI_KILL:
    case MODEL_CALL_ESI_BLOCK:
        return esi_matches(&copy->esi.esi, &expected->esi.esi, 0);
    case MODEL_CALL_ESI_LIST:
    case MODEL_CALL_ESI_DEADLOCK:
        for (size_t i = 0; i < N_ITEMS; i++)
            if (!esi_matches(&copy->esi_list.esis[i], &expected->esi_list.esis[i], i))
                return false;
        return copy->esi_list.n_esis == N_ITEMS;
    case MODEL_CALL_LIST_ENTRIES:
        for (size_t i = 0; i < N_ITEMS; i++)
            if (!views_match(&copy->list_entries.entries[i].key,
                             &expected->list_entries.entries[i].key) ||
                copy->list_entries.entries[i].offset != 700 + i)
                return false;
        return copy->list_entries.n_entries == N_ITEMS;
    case MODEL_CALL_REGISTER:
    case MODEL_CALL_LEAVE:
    case MODEL_CALL_DROP:
    case MODEL_CALL_COMPACT:
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
        return memcmp(copy, expected, sizeof(*copy)) == 0;
    }
    return false;
}

Test(copy, every_request_is_deep)
{
    for (int i = 0; i < MODEL_N_CALL_KINDS; i++) {
        enum model_call_kind kind = (enum model_call_kind)i;
        struct source *source = calloc(1, sizeof(*source));
        struct source again = {0};
        struct model_request request, expected, copied;
        struct rt_arena arena = {0};

        fill_request(&request, kind, source);
        fill_request(&expected, kind, &again);
        cr_assert_eq(model_request_copy(&copied, &request, &arena, NULL), RT_OK);
        memset(source, 0xee, sizeof(*source));
        free(source);
        cr_assert_eq(copied.kind, kind);
        cr_assert(requests_match(&copied, &expected), "%s", model_call_kind_name(kind));
        rt_arena_reset(&arena);
    }
}

Test(copy, every_response_is_deep)
{
    for (int i = 0; i < MODEL_N_CALL_KINDS; i++) {
        enum model_call_kind kind = (enum model_call_kind)i;
        struct source *source = calloc(1, sizeof(*source));
        struct source again = {0};
        struct model_response response, expected, copied;
        struct rt_arena arena = {0};

        fill_response(&response, kind, source);
        fill_response(&expected, kind, &again);
        cr_assert_eq(model_response_copy(&copied, &response, kind, &arena, NULL), RT_OK);
        memset(source, 0xee, sizeof(*source));
        free(source);
        cr_assert(responses_match(&copied, &expected, kind), "%s", model_call_kind_name(kind));
        rt_arena_reset(&arena);
    }
}

Test(copy, a_failure_is_deep_and_its_union_is_not_touched)
{
    struct model_response response, copied;
    struct rt_arena arena = {0};
    char key[] = "key";

    memset(&response, 0xff, sizeof(response));
    model_response_fail(&response, MODEL_REASON_KEY_NOT_LOCKED, "no");
    response.error.key = rt_bytes_of(key, 3);
    cr_assert_eq(model_response_copy(&copied, &response, MODEL_CALL_LIST_KEYS, &arena, NULL),
                 RT_OK);
    memset(key, 'x', 3);
    cr_assert(rt_bytes_equal(copied.error.key, RT_BYTES_LITERAL("key")));
    cr_assert_eq(copied.error.reason, MODEL_REASON_KEY_NOT_LOCKED);
    rt_arena_reset(&arena);
}

Test(copy, empty_arrays_become_null)
{
    struct model_request request = {.kind = MODEL_CALL_PULL_ROWS}, copied;
    struct model_response response = {.code = RT_OK}, copied_response;
    struct rt_bytes none[1];
    struct rt_arena arena = {0};

    request.pull_rows.keys = none;
    cr_assert_eq(model_request_copy(&copied, &request, &arena, NULL), RT_OK);
    cr_assert_null(copied.pull_rows.keys);
    cr_assert_eq(
        model_response_copy(&copied_response, &response, MODEL_CALL_RECONCILE, &arena, NULL),
        RT_OK);
    cr_assert_null(copied_response.reconcile.rows);
    rt_arena_reset(&arena);
}

/* Raises the limit until the copy fits; it must have been refused before if it needs anything. */
static size_t smallest_limit(enum rt_code (*copy)(enum model_call_kind, struct rt_arena *),
                             enum model_call_kind kind)
{
    for (size_t limit = 1;; limit++) {
        struct rt_arena arena = {.limit = limit};
        enum rt_code code = copy(kind, &arena);

        rt_arena_reset(&arena);
        if (code == RT_OK)
            return limit;
        cr_assert_eq(code, RT_RESOURCE_EXHAUSTED);
        cr_assert_lt(limit, 65536);
    }
}

static enum rt_code copy_request(enum model_call_kind kind, struct rt_arena *arena)
{
    struct source source = {0};
    struct model_request request, copied;
    struct rt_error err;

    fill_request(&request, kind, &source);
    return model_request_copy(&copied, &request, arena, &err);
}

static enum rt_code copy_response(enum model_call_kind kind, struct rt_arena *arena)
{
    struct source source = {0};
    struct model_response response, copied;
    struct rt_error err;

    fill_response(&response, kind, &source);
    return model_response_copy(&copied, &response, kind, arena, &err);
}

Test(copy, an_arena_too_small_is_exhausted)
{
    for (int i = 0; i < MODEL_N_CALL_KINDS; i++) {
        enum model_call_kind kind = (enum model_call_kind)i;
        struct source request_source = {0}, response_source = {0};
        struct model_request request;
        struct model_response response;

        fill_request(&request, kind, &request_source);
        fill_response(&response, kind, &response_source);
        cr_assert_eq(smallest_limit(copy_request, kind) > 1, request_source.n_text > 0, "%s",
                     model_call_kind_name(kind));
        cr_assert_eq(smallest_limit(copy_response, kind) > 1,
                     response_source.n_text > 0 || kind == MODEL_CALL_LIST_INSTANCES ||
                         kind == MODEL_CALL_RENEW,
                     "%s", model_call_kind_name(kind));
    }
}

Test(copy, no_memory_is_exhausted)
{
    struct rt_arena arena = {0};

    test_alloc_fail_after(0, TEST_ALLOC_FOREVER);
    cr_assert_eq(copy_request(MODEL_CALL_EXECUTE, &arena), RT_RESOURCE_EXHAUSTED);
    cr_assert_eq(copy_response(MODEL_CALL_LIST_KEYS, &arena), RT_RESOURCE_EXHAUSTED);
    test_alloc_fail_never();
    rt_arena_reset(&arena);
}
