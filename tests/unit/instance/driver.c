/*
 * Driver of one instance core: see driver.h. Invariant: every call is in one list or with the core.
 */
#include "tests/unit/instance/driver.h"

#include <stdlib.h>

#include "runtime/base/alloc.h"

static uint64_t stepping_now_us(void *ctx)
{
    struct driver *driver = ctx;

    driver->env.now_us += driver->step_us;
    return driver->env.now_us;
}

static uint64_t stepping_random(void *ctx)
{
    struct driver *driver = ctx;

    return rt_env_random(&driver->env.env);
}

struct driver *driver_new(void)
{
    struct driver *driver = calloc(1, sizeof(*driver));

    test_env_init(&driver->env, 1);
    driver->stepping =
        (struct rt_env){.now_us = stepping_now_us, .random = stepping_random, .ctx = driver};
    rt_list_init(&driver->replies);
    rt_list_init(&driver->calls);
    rt_list_init(&driver->txns);
    driver->config = (struct inst_config){
        .name = "a",
        .address = "a:1",
        .coordinator_address = "c:1",
        .store_id = {{1}},
        .boot_id = {{2}},
        .machine_id = {{3}},
        .local_store = true,
        .entries_total = 10,
        .entry_size = 10,
    };
    driver->cluster_id = (struct model_id){{9}};
    driver->client = (struct model_id){{8}};
    driver->term = DRIVER_TERM;
    return driver;
}

static void abandon(struct driver *driver)
{
    struct rt_list *node;

    driver->core = inst_core_free(driver->core);
    rt_list_init(&driver->calls);
    while ((node = rt_list_pop_front(&driver->replies)))
        (void)model_call_free(RT_LIST_ENTRY(node, struct model_call, link));
    while ((node = rt_list_pop_front(&driver->txns)))
        (void)store_txn_free(RT_LIST_ENTRY(node, struct store_txn, link));
}

void driver_free(struct driver *driver)
{
    abandon(driver);
    for (size_t i = 0; i < driver->n_disk; i++)
        free(driver->disk[i].value);
    free(driver);
}

/* ---- disk ---- */

static struct rt_bytes disk_key(const struct driver_row *row)
{
    return rt_bytes_of(row->key, row->key_size);
}

static size_t lower_bound(struct driver *driver, struct rt_bytes key)
{
    size_t low = 0;
    size_t high = driver->n_disk;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (rt_bytes_compare(disk_key(&driver->disk[middle]), key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct driver_row *find(struct driver *driver, struct rt_bytes key)
{
    size_t at = lower_bound(driver, key);

    if (at < driver->n_disk && rt_bytes_equal(disk_key(&driver->disk[at]), key))
        return &driver->disk[at];
    return NULL;
}

struct driver_row *driver_find(struct driver *driver, const char *key)
{
    return find(driver, rt_bytes_of_string(key));
}

bool driver_row_ends_with(const struct driver_row *row, const char *suffix)
{
    size_t size = strlen(suffix);

    return row->key_size >= size && memcmp(row->key + row->key_size - size, suffix, size) == 0;
}

size_t driver_count(struct driver *driver, const char *suffix)
{
    size_t n = 0;

    for (size_t i = 0; i < driver->n_disk; i++)
        n += driver_row_ends_with(&driver->disk[i], suffix);
    return n;
}

static void disk_put(struct driver *driver, struct rt_bytes key, struct rt_bytes value)
{
    struct driver_row *row = find(driver, key);

    if (!row) {
        size_t at = lower_bound(driver, key);

        cr_assert_lt(driver->n_disk, DRIVER_DISK_MAX);
        row = &driver->disk[at];
        memmove(row + 1, row, (driver->n_disk - at) * sizeof(*row));
        driver->n_disk++;
        *row = (struct driver_row){.key_size = key.size};
        memcpy(row->key, key.data, key.size);
    }
    free(row->value);
    row->value = malloc(value.size + 1);
    row->value_size = value.size;
    row->corrupt = false;
    if (value.size > 0)
        memcpy(row->value, value.data, value.size);
}

static void disk_delete(struct driver *driver, struct rt_bytes key)
{
    struct driver_row *row = find(driver, key);

    if (!row)
        return;
    free(row->value);
    driver->n_disk--;
    memmove(row, row + 1, (size_t)(&driver->disk[driver->n_disk] - row) * sizeof(*row));
}

static bool compares_hold(struct driver *driver, const struct store_txn *txn)
{
    for (size_t i = 0; i < txn->n_operations; i++) {
        const struct store_operation *operation = &txn->operations[i];
        const struct driver_row *row = find(driver, operation->key);

        if (operation->kind == STORE_COMPARE_ABSENT && row)
            return false;
        if (operation->kind == STORE_COMPARE &&
            (!row || !rt_bytes_equal(rt_bytes_of(row->value, row->value_size), operation->value)))
            return false;
    }
    return true;
}

static void read_row(struct driver *driver, struct store_txn *txn,
                     struct store_operation *operation)
{
    const struct driver_row *row = find(driver, operation->key);

    if (row && !row->corrupt)
        store_operation_found(txn, operation, rt_bytes_of(row->value, row->value_size));
}

static void apply(struct driver *driver, struct store_txn *txn)
{
    for (size_t i = 0; i < txn->n_operations; i++) {
        struct store_operation *operation = &txn->operations[i];

        if (operation->kind == STORE_PUT)
            disk_put(driver, operation->key, operation->value);
        else if (operation->kind == STORE_DELETE)
            disk_delete(driver, operation->key);
        else if (operation->kind == STORE_READ)
            read_row(driver, txn, operation);
    }
}

void driver_commit(struct driver *driver, enum store_outcome outcome)
{
    struct rt_list *node = rt_list_pop_front(&driver->txns);
    struct store_txn *txn;

    cr_assert_not_null(node, "no transaction");
    txn = RT_LIST_ENTRY(node, struct store_txn, link);
    txn->outcome = outcome;
    if (outcome == STORE_COMMITTED && !compares_hold(driver, txn))
        txn->outcome = STORE_COMPARE_FAILED;
    if (txn->outcome == STORE_COMMITTED)
        apply(driver, txn);
    inst_core_txn_done(driver->core, txn);
    driver_take(driver);
}

void driver_commit_all(struct driver *driver)
{
    while (!rt_list_is_empty(&driver->txns))
        driver_commit(driver, STORE_COMMITTED);
}

size_t driver_n_txns(const struct driver *driver)
{
    size_t n = 0;

    rt_list_for_each (node, &driver->txns)
        n++;
    return n;
}

/* ---- steps ---- */

void driver_take(struct driver *driver)
{
    struct model_effects taken;

    model_effects_take(inst_core_effects(driver->core), &taken);
    for (size_t i = 0; i < taken.n_events; i++)
        driver->events[driver->n_events++ % DRIVER_EVENTS_MAX] = taken.events[i];
    rt_list_splice_back(&driver->replies, &taken.replies);
    rt_list_splice_back(&driver->calls, &taken.calls);
    rt_list_splice_back(&driver->txns, &taken.txns);
}

size_t driver_n_events(const struct driver *driver, enum rt_log_level level, const char *text)
{
    size_t n = 0;

    for (size_t i = 0; i < driver->n_events && i < DRIVER_EVENTS_MAX; i++)
        if (driver->events[i].level == level && strcmp(driver->events[i].text, text) == 0)
            n++;
    return n;
}

void driver_tick(struct driver *driver)
{
    inst_core_tick(driver->core);
    driver_take(driver);
}

void driver_boot(struct driver *driver)
{
    abandon(driver);
    driver->incarnation += DRIVER_INCARNATION;
    cr_assert_eq(inst_core_new(&driver->config, &driver->stepping, &driver->core, NULL), RT_OK);
    for (size_t i = 0; i < driver->n_disk; i++) {
        const struct driver_row *row = &driver->disk[i];

        if (row->corrupt)
            inst_core_load_corrupt(driver->core, disk_key(row));
        else
            cr_assert_eq(inst_core_load(driver->core, disk_key(row),
                                        rt_bytes_of(row->value, row->value_size), NULL),
                         RT_OK);
    }
    inst_core_start(driver->core);
    driver_take(driver);
}

static struct model_call *outbound(struct driver *driver, enum model_call_kind kind)
{
    rt_list_for_each (node, &driver->calls) {
        struct model_call *call = RT_LIST_ENTRY(node, struct model_call, link);

        if (call->request.kind == kind)
            return call;
    }
    return NULL;
}

struct model_call *driver_outbound(struct driver *driver, enum model_call_kind kind)
{
    struct model_call *call = outbound(driver, kind);

    cr_assert_not_null(call, "no outbound %s", model_call_kind_name(kind));
    rt_list_remove(&call->link);
    return call;
}

bool driver_has_outbound(struct driver *driver, enum model_call_kind kind)
{
    return outbound(driver, kind) != NULL;
}

void driver_answer(struct driver *driver, struct model_call *call)
{
    if (call->response.responder.term == 0)
        call->response.responder.term = driver->term;
    inst_core_call_done(driver->core, call);
    driver_take(driver);
}

void driver_answer_fail(struct driver *driver, struct model_call *call, enum model_reason reason)
{
    model_response_fail(&call->response, reason, "scripted");
    driver_answer(driver, call);
}

void driver_register(struct driver *driver)
{
    struct model_call *call = driver_outbound(driver, MODEL_CALL_REGISTER);

    model_response_ok(&call->response, MODEL_CALL_REGISTER);
    call->response.reg = (struct model_register_response){
        .cluster_id = driver->cluster_id,
        .incarnation = driver->incarnation,
        .lease_ms = DRIVER_LEASE_MS,
        .key_max = 40,
    };
    driver_answer(driver, call);
    driver_commit_all(driver);
}

static void note_held(struct driver *driver, const struct model_reconcile_request *request)
{
    for (size_t i = 0; i < request->n_rows && driver->n_held < RT_ARRAY_SIZE(driver->held); i++) {
        char *key = driver->held_keys[driver->n_held];

        memcpy(key, request->rows[i].key.data, request->rows[i].key.size);
        key[request->rows[i].key.size] = '\0';
        driver->held[driver->n_held] = request->rows[i];
        driver->held[driver->n_held].key = rt_bytes_of_string(key);
        driver->n_held++;
    }
}

void driver_reconcile(struct driver *driver)
{
    bool last = false;

    driver->n_held = 0;
    while (!last) {
        struct model_call *call = driver_outbound(driver, MODEL_CALL_RECONCILE);

        note_held(driver, &call->request.reconcile);
        last = call->request.reconcile.last;
        model_response_ok(&call->response, MODEL_CALL_RECONCILE);
        if (last) {
            call->response.reconcile.rows = driver->told;
            call->response.reconcile.n_rows = driver->n_told;
            call->response.reconcile.done = true;
        }
        driver_answer(driver, call);
    }
    driver_commit_all(driver);
}

void driver_heartbeat(struct driver *driver)
{
    uint64_t number;

    cr_assert(inst_core_take_heartbeat(driver->core, &number));
    inst_core_heartbeat_done(driver->core, number, true);
    driver_take(driver);
}

void driver_grant(struct driver *driver)
{
    struct model_call *call = driver_outbound(driver, MODEL_CALL_RENEW);

    model_response_ok(&call->response, MODEL_CALL_RENEW);
    call->response.renew.lease_ms = DRIVER_LEASE_MS;
    driver_answer(driver, call);
}

void driver_renew(struct driver *driver)
{
    driver_heartbeat(driver);
    driver_grant(driver);
}

void driver_serve(struct driver *driver)
{
    driver_boot(driver);
    driver_register(driver);
    driver_reconcile(driver);
    driver_renew(driver);
    cr_assert_eq(inst_core_state(driver->core), INST_STATE_SERVING);
}

void driver_tell(struct driver *driver, const char *key, uint64_t epoch)
{
    driver->told[driver->n_told++] =
        (struct model_row){.key = rt_bytes_of_string(key), .epoch = epoch};
}

/* ---- inbound calls ---- */

struct model_call *driver_data(struct driver *driver, enum model_call_kind kind, const char *key,
                               const char *value)
{
    struct model_call *call = model_call_new(kind);
    struct model_header *header = &call->request.data.header;

    header->cluster_id = driver->cluster_id;
    header->key = rt_bytes_of_string(key);
    header->epoch = DRIVER_EPOCH;
    header->owner[0] = 'a';
    header->incarnation = driver->incarnation;
    if (value)
        call->request.data.value = rt_bytes_of_string(value);
    return call;
}

struct model_call *driver_set(struct driver *driver, const char *key, const char *value,
                              uint64_t token)
{
    struct model_call *call = driver_data(driver, MODEL_CALL_SET, key, value);

    call->request.data.header.lock_token = token;
    return call;
}

struct model_call *driver_fence(struct driver *driver, const char *key, uint64_t token, bool locked)
{
    struct model_call *call = model_call_new(MODEL_CALL_FENCE);

    call->request.fence = (struct model_fence_request){
        .term = driver->term,
        .key = rt_bytes_of_string(key),
        .epoch = DRIVER_EPOCH,
        .incarnation = driver->incarnation,
        .token = token,
        .locked = locked,
    };
    return call;
}

struct model_call *driver_activate(struct driver *driver, const char *key, uint64_t epoch)
{
    struct model_call *call = model_call_new(MODEL_CALL_ACTIVATE);

    call->request.activate = (struct model_activate_request){
        .term = driver->term,
        .incarnation = driver->incarnation,
        .row = {.key = rt_bytes_of_string(key), .epoch = epoch},
    };
    return call;
}

struct model_call *driver_drop(struct driver *driver, const char *key, uint64_t epoch)
{
    struct model_call *call = model_call_new(MODEL_CALL_DROP);

    call->request.drop = (struct model_drop_request){
        .term = driver->term,
        .key = rt_bytes_of_string(key),
        .epoch = epoch,
    };
    return call;
}

struct model_call *driver_submit(struct driver *driver, struct model_call *call)
{
    inst_core_submit(driver->core, call);
    driver_take(driver);
    return call;
}

bool driver_is_answered(struct driver *driver, const struct model_call *call)
{
    rt_list_for_each (node, &driver->replies)
        if (node == &call->link)
            return true;
    return false;
}

void driver_end(struct driver *driver, struct model_call *call)
{
    cr_assert(driver_is_answered(driver, call), "%s is not answered",
              model_call_kind_name(call->request.kind));
    rt_list_remove(&call->link);
    (void)model_call_free(call);
}

void driver_finish_ok(struct driver *driver, struct model_call *call)
{
    cr_assert(driver_is_answered(driver, call), "%s is not answered",
              model_call_kind_name(call->request.kind));
    cr_assert_eq(call->response.code, RT_OK, "%s: %s",
                 model_reason_name(call->response.error.reason), call->response.error.message);
    cr_assert_str_eq(call->response.responder.name, "a");
    driver_end(driver, call);
}

void driver_finish(struct driver *driver, struct model_call *call, enum model_reason reason)
{
    cr_assert(driver_is_answered(driver, call), "%s is not answered",
              model_call_kind_name(call->request.kind));
    cr_assert_neq(call->response.code, RT_OK, "OK instead of %s", model_reason_name(reason));
    cr_assert_eq(call->response.error.reason, reason, "%s instead of %s: %s",
                 model_reason_name(call->response.error.reason), model_reason_name(reason),
                 call->response.error.message);
    cr_assert_str_eq(call->response.responder.name, "a");
    driver_end(driver, call);
}

void driver_expect_ok(struct driver *driver, struct model_call *call)
{
    (void)driver_submit(driver, call);
    driver_commit_all(driver);
    driver_finish_ok(driver, call);
}

void driver_expect(struct driver *driver, struct model_call *call, enum model_reason reason)
{
    (void)driver_submit(driver, call);
    driver_commit_all(driver);
    driver_finish(driver, call, reason);
}

void driver_expect_value(struct driver *driver, const char *key, const char *value)
{
    struct model_call *call = driver_data(driver, MODEL_CALL_READ, key, NULL);

    (void)driver_submit(driver, call);
    if (!driver_is_answered(driver, call))
        driver_commit_all(driver); /* it is in the store only */
    cr_assert(driver_is_answered(driver, call));
    cr_assert_eq(call->response.code, RT_OK, "%s", model_reason_name(call->response.error.reason));
    cr_assert_eq(call->response.data.has_value, value != NULL);
    if (value)
        cr_assert(rt_bytes_equal(call->response.data.value, rt_bytes_of_string(value)));
    driver_end(driver, call);
}

void driver_place(struct driver *driver, const char *key)
{
    driver_expect_ok(driver, driver_activate(driver, key, DRIVER_EPOCH));
}
