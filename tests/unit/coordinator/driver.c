/*
 * A coordinator core driven by hand: see driver.h. Invariant: transactions are completed in the
 * order of their submission. The test's thread.
 */
#include "tests/unit/coordinator/driver.h"

#include "coordinator/rows.h"
#include "runtime/base/alloc.h"

/* ---- store ----------------------------------------------------------------------------------- */

static size_t find_row(const struct driver *driver, struct rt_bytes key)
{
    size_t i = 0;

    while (i < driver->n_rows && !rt_bytes_equal(driver->rows[i].key, key))
        i++;
    return i;
}

static void delete_row(struct driver *driver, struct rt_bytes key)
{
    size_t i = find_row(driver, key);

    if (i == driver->n_rows)
        return;
    free((void *)driver->rows[i].key.data);
    free((void *)driver->rows[i].value.data);
    driver->rows[i] = driver->rows[--driver->n_rows];
}

static struct rt_bytes copy_bytes(struct rt_bytes bytes)
{
    void *copy = malloc(bytes.size + 1);

    memcpy(copy, bytes.data, bytes.size);
    return rt_bytes_of(copy, bytes.size);
}

static void apply(struct driver *driver, const struct store_txn *txn)
{
    for (size_t i = 0; i < txn->n_operations; i++) {
        const struct store_operation *operation = &txn->operations[i];

        delete_row(driver, operation->key);
        if (operation->kind != STORE_PUT)
            continue;
        driver->rows = realloc(driver->rows, (driver->n_rows + 1) * sizeof(*driver->rows));
        driver->rows[driver->n_rows++] =
            (struct driver_row){copy_bytes(operation->key), copy_bytes(operation->value)};
    }
}

size_t driver_n_txns(const struct driver *driver)
{
    size_t n = 0;

    rt_list_for_each (node, &driver->txns)
        n++;
    return n;
}

static void complete(struct driver *driver, enum store_outcome outcome)
{
    struct rt_list *node = rt_list_pop_front(&driver->txns);
    struct store_txn *txn;

    cr_assert_not_null(node, "no transaction to complete");
    txn = RT_LIST_ENTRY(node, struct store_txn, link);
    if (outcome == STORE_COMMITTED)
        apply(driver, txn);
    txn->outcome = outcome;
    coord_core_txn_done(driver->core, txn);
}

void driver_commit(struct driver *driver, enum store_outcome outcome)
{
    complete(driver, outcome);
    driver_settle(driver);
}

void driver_forget_rows(struct driver *driver)
{
    struct rt_list *node;

    driver_settle(driver);
    while ((node = rt_list_pop_front(&driver->txns))) {
        struct store_txn *txn = RT_LIST_ENTRY(node, struct store_txn, link);

        txn->outcome = STORE_COMMITTED;
        coord_core_txn_done(driver->core, txn);
        driver_settle(driver);
    }
}

static enum store_outcome next_outcome(struct driver *driver)
{
    enum store_outcome outcome = driver->outcomes[0];

    if (driver->n_outcomes == 0)
        return STORE_COMMITTED;
    driver->n_outcomes--;
    memmove(driver->outcomes, driver->outcomes + 1, driver->n_outcomes * sizeof(outcome));
    return outcome;
}

/* ---- instances ------------------------------------------------------------------------------- */

static struct driver_key *instance_key(struct driver *driver, const char *address,
                                       struct rt_bytes name)
{
    struct driver_key *key = driver->keys;

    while (key < driver->keys + driver->n_keys &&
           (strcmp(key->address, address) != 0 ||
            !rt_bytes_equal(rt_bytes_of_string(key->name), name)))
        key++;
    if (key < driver->keys + driver->n_keys)
        return key;
    cr_assert_lt(driver->n_keys, DRIVER_KEYS_MAX);
    driver->n_keys++;
    *key = (struct driver_key){0};
    (void)snprintf(key->address, sizeof(key->address), "%s", address);
    memcpy(key->name, name.data, name.size);
    return key;
}

static void answer_value(const struct driver_key *key, struct model_call *call)
{
    struct model_data_response *data = &call->response.data;

    model_response_ok(&call->response, call->request.kind);
    if (!key->has_value)
        return;
    data->has_value = true;
    data->version = (struct model_version){key->epoch, 1, key->seq};
    data->stored = key->stored;
    data->value = rt_bytes_of_string(key->value);
}

static void answer_fence(struct driver_key *key, struct model_call *call)
{
    const struct model_fence_request *fence = &call->request.fence;

    if (key->epoch == 0)
        model_response_fail(&call->response, MODEL_REASON_NOT_OWNER, "no row");
    else if (fence->epoch != key->epoch)
        model_response_fail(&call->response, MODEL_REASON_STALE_EPOCH, "epoch");
    else if (fence->locked && (fence->token < key->floor || fence->token <= key->closed))
        model_response_fail(&call->response, MODEL_REASON_LOCK_FENCED, "token");
    else {
        if (fence->token >= key->floor) {
            key->floor = fence->token;
            key->locked = fence->locked;
        }
        answer_value(key, call);
    }
}

static void answer_activate(struct driver_key *key, struct model_call *call)
{
    const struct model_row *row = &call->request.activate.row;

    if (call->request.activate.value_size > 60) {
        model_response_fail(&call->response, MODEL_REASON_NO_ENTRIES, "too large");
        return;
    }
    if (key->epoch != row->epoch)
        key->has_value = false;
    key->epoch = row->epoch;
    key->floor = row->token_floor;
    key->locked = row->locked;
    answer_value(key, call);
}

static enum model_reason check_write(const struct driver_key *key,
                                     const struct model_header *header)
{
    if (key->epoch == 0)
        return MODEL_REASON_NOT_OWNER;
    if (header->epoch != key->epoch)
        return MODEL_REASON_STALE_EPOCH;
    if (header->lock_token == 0)
        return key->locked ? MODEL_REASON_KEY_NOT_LOCKED : MODEL_REASON_NONE;
    if (header->lock_token <= key->closed)
        return MODEL_REASON_KEY_NOT_LOCKED;
    return header->lock_token < key->floor ? MODEL_REASON_LOCK_FENCED : MODEL_REASON_NONE;
}

static void do_write(struct driver_key *key, struct model_call *call)
{
    const struct model_data_request *data = &call->request.data;
    enum model_call_kind kind = call->request.kind;

    key->last_id = data->header.request_id;
    key->seq++;
    if (kind == MODEL_CALL_SET || kind == MODEL_CALL_PUT) {
        cr_assert_lt(data->value.size, sizeof(key->value));
        memset(key->value, 0, sizeof(key->value));
        memcpy(key->value, data->value.data, data->value.size);
        key->has_value = true;
    }
    if (kind == MODEL_CALL_DELETE)
        key->has_value = false;
    key->stored = kind != MODEL_CALL_SET;
    if (data->header.lock_token != 0 && (kind == MODEL_CALL_STORE || kind == MODEL_CALL_PUT)) {
        key->closed = data->header.lock_token;
        key->locked = false;
    }
    answer_value(key, call);
}

static void answer_write(struct driver_key *key, struct model_call *call)
{
    const struct model_header *header = &call->request.data.header;
    enum model_reason reason = check_write(key, header);

    if (header->epoch == key->epoch && header->request_id.seq != 0 &&
        header->request_id.seq == key->last_id.seq &&
        model_id_equal(&header->request_id.client, &key->last_id.client)) {
        answer_value(key, call);
        call->response.data.replayed = true;
    } else if (reason != MODEL_REASON_NONE) {
        model_response_fail(&call->response, reason, "refused");
    } else {
        do_write(key, call);
    }
}

/* The life of the instance that the store knows of. */
static uint64_t incarnation_at(const struct driver *driver, const char *address)
{
    for (size_t i = 0; i < driver->n_rows; i++) {
        struct coord_member_row row;
        enum coord_row_kind kind;
        struct rt_bytes name;

        cr_assert_eq(coord_rows_parse_key(driver->rows[i].key, &kind, &name, NULL), RT_OK);
        if (kind != COORD_ROW_MEMBER)
            continue;
        cr_assert_eq(coord_rows_get_member(driver->rows[i].value, &row, NULL), RT_OK);
        if (strcmp(row.address, address) == 0)
            return row.incarnation;
    }
    return 0;
}

static uint64_t entries_free(const struct driver *driver, const char *address)
{
    uint64_t n_used = 0;

    for (size_t i = 0; i < driver->n_keys; i++) {
        const struct driver_key *key = &driver->keys[i];
        size_t size = strlen(key->value);

        if (strcmp(key->address, address) == 0 && key->epoch != 0 && key->has_value)
            n_used += size == 0 ? 1 : (size + 9) / 10;
    }
    return driver->entries_total > n_used ? driver->entries_total - n_used : 0;
}

static void answer_call(struct driver *driver, struct model_call *call)
{
    enum model_call_kind kind = call->request.kind;
    struct driver_key *key;

    if (kind == MODEL_CALL_FENCE) {
        key = instance_key(driver, call->address, call->request.fence.key);
        answer_fence(key, call);
    } else if (kind == MODEL_CALL_ACTIVATE) {
        key = instance_key(driver, call->address, call->request.activate.row.key);
        answer_activate(key, call);
    } else if (kind == MODEL_CALL_DROP) {
        key = instance_key(driver, call->address, call->request.drop.key);
        if (key->epoch == call->request.drop.epoch)
            key->epoch = 0;
        model_response_ok(&call->response, kind);
    } else if (kind == MODEL_CALL_COMPACT) {
        model_response_ok(&call->response, kind);
    } else if (kind == MODEL_CALL_READ) {
        key = instance_key(driver, call->address, call->request.data.header.key);
        if (key->epoch == call->request.data.header.epoch)
            answer_value(key, call);
        else
            model_response_fail(&call->response,
                                key->epoch == 0 ? MODEL_REASON_NOT_OWNER : MODEL_REASON_STALE_EPOCH,
                                "epoch");
    } else {
        key = instance_key(driver, call->address, call->request.data.header.key);
        answer_write(key, call);
    }
}

static void play_instance(struct driver *driver, struct model_call *call)
{
    answer_call(driver, call);
    call->response.responder.incarnation = incarnation_at(driver, call->address);
    if (call->response.code == RT_OK && call->request.kind != MODEL_CALL_DROP &&
        call->request.kind != MODEL_CALL_COMPACT)
        call->response.data.entries_free = entries_free(driver, call->address);
    if (call->response.code == RT_OK &&
        (call->request.kind == MODEL_CALL_SET || call->request.kind == MODEL_CALL_PUT)) {
        call->response.data.evicted = driver->evicted;
        call->response.data.n_evicted = driver->n_evicted;
        driver->n_evicted = 0;
    }
}

struct model_call *driver_find_call(struct driver *driver, enum model_call_kind kind)
{
    rt_list_for_each (node, &driver->calls) {
        struct model_call *call = RT_LIST_ENTRY(node, struct model_call, link);

        if (call->request.kind == kind)
            return call;
    }
    return NULL;
}

static void hand_back(struct driver *driver, struct model_call *call)
{
    rt_list_remove(&call->link);
    coord_core_call_done(driver->core, call);
    driver_settle(driver);
}

void driver_answer(struct driver *driver, struct model_call *call)
{
    play_instance(driver, call);
    hand_back(driver, call);
}

void driver_lose(struct driver *driver, struct model_call *call)
{
    model_response_fail(&call->response, MODEL_REASON_NONE, "nobody answered");
    call->response.code = RT_UNAVAILABLE;
    hand_back(driver, call);
}

void driver_refuse(struct driver *driver, struct model_call *call, enum model_reason reason)
{
    model_response_fail(&call->response, reason, "refused by the test");
    hand_back(driver, call);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void start_core(struct driver *driver)
{
    driver->core = coord_core_new(&driver->config, &driver->env.env);
    for (size_t i = 0; i < driver->n_rows; i++) {
        struct rt_error err = RT_ERROR_INIT;

        cr_assert_eq(
            coord_core_load(driver->core, driver->rows[i].key, driver->rows[i].value, &err), RT_OK,
            "%s", err.message);
    }
    coord_core_start(driver->core);
    driver_settle(driver);
}

void driver_init(struct driver *driver)
{
    struct coord_config config = {
        .key_max = MODEL_KEY_MAX_CLASSIC,
        .locking = MODEL_LOCKING_REQUIRED,
        .owner_down = COORD_OWNER_DOWN_FORGET,
        .distribution = MODEL_DISTRIBUTION_EQUITABLE_LOAD,
        .wake_hold_us = 1000000,
    };

    cr_assert_eq(model_lease_init(&config.member_lease, 3000, NULL), RT_OK);
    cr_assert_eq(model_lease_init(&config.session_lease, 3000, NULL), RT_OK);
    *driver = (struct driver){
        .config = config, .auto_commit = true, .auto_answer = true, .entries_total = 100};
    test_env_init(&driver->env, 1);
    rt_list_init(&driver->txns);
    rt_list_init(&driver->calls);
}

static void drop_core(struct driver *driver, bool apply_in_flight)
{
    struct rt_list *node;

    rt_list_init(&driver->calls);
    while ((node = rt_list_pop_front(&driver->txns))) {
        struct store_txn *txn = RT_LIST_ENTRY(node, struct store_txn, link);

        if (apply_in_flight)
            apply(driver, txn);
        (void)store_txn_free(txn);
    }
    driver->core = coord_core_free(driver->core);
}

void driver_restart(struct driver *driver, bool apply_in_flight)
{
    if (driver->core)
        drop_core(driver, apply_in_flight);
    start_core(driver);
}

void driver_deinit(struct driver *driver)
{
    drop_core(driver, false);
    while (driver->n_rows > 0)
        delete_row(driver, driver->rows[0].key);
    free(driver->rows);
}

static void keep_events(struct driver *driver, const struct model_effects *taken)
{
    for (size_t i = 0; i < taken->n_events; i++)
        driver->events[driver->n_events++ % DRIVER_EVENTS_MAX] = taken->events[i];
}

/* One round; false when there was nothing to do. */
static bool step(struct driver *driver)
{
    struct model_effects taken;
    struct rt_list *node;
    bool busy = false;

    model_effects_take(coord_core_effects(driver->core), &taken);
    keep_events(driver, &taken);
    while ((node = rt_list_pop_front(&taken.replies))) {
        struct model_call *call = RT_LIST_ENTRY(node, struct model_call, link);

        cr_assert_null(call->context, "answered twice");
        call->context = call;
    }
    while ((node = rt_list_pop_front(&taken.calls))) {
        driver->n_sent[RT_LIST_ENTRY(node, struct model_call, link)->request.kind]++;
        rt_list_push_back(&driver->calls, node);
    }
    while ((node = rt_list_pop_front(&taken.txns))) {
        driver->n_txns++;
        rt_list_push_back(&driver->txns, node);
    }
    while (driver->auto_commit && !rt_list_is_empty(&driver->txns)) {
        complete(driver, next_outcome(driver));
        busy = true;
    }
    rt_list_for_each_safe (call_node, &driver->calls) {
        struct model_call *call = RT_LIST_ENTRY(call_node, struct model_call, link);

        if (!driver->auto_answer || (driver->silent && strcmp(call->address, driver->silent) == 0))
            continue;
        rt_list_remove(&call->link);
        play_instance(driver, call);
        coord_core_call_done(driver->core, call);
        busy = true;
    }
    return busy;
}

void driver_settle(struct driver *driver)
{
    while (step(driver) || !model_effects_is_empty(coord_core_effects(driver->core)))
        continue;
}

size_t driver_n_events(struct driver *driver, enum rt_log_level level, const char *word)
{
    size_t n = 0;
    char begin[64];

    (void)snprintf(begin, sizeof(begin), "event=%s ", word);
    driver_settle(driver);
    for (size_t i = 0; i < driver->n_events && i < DRIVER_EVENTS_MAX; i++) {
        if (driver->events[i].level == level &&
            strncmp(driver->events[i].text, begin, strlen(begin)) == 0)
            n++;
    }
    return n;
}

/* Calls to silent instances end at their deadline, as a transport ends them. */
static void end_calls(struct driver *driver)
{
    rt_list_for_each_safe (node, &driver->calls) {
        struct model_call *call = RT_LIST_ENTRY(node, struct model_call, link);

        if (call->deadline_us > driver->env.now_us)
            continue;
        driver_lose(driver, call);
        return;
    }
}

void driver_sleep_ms(struct driver *driver, uint64_t ms)
{
    for (uint64_t i = 0; i < ms; i += 10) {
        test_env_advance_ms(&driver->env, 10);
        end_calls(driver);
        if (coord_core_next_wakeup_us(driver->core) <= driver->env.now_us)
            coord_core_tick(driver->core);
        driver_settle(driver);
    }
}

/* ---- calls ----------------------------------------------------------------------------------- */

struct model_call *driver_new_call(struct driver *driver, enum model_call_kind kind)
{
    struct model_call *call = model_call_new(kind);

    memset(&call->request, 0, sizeof(call->request));
    call->request.kind = kind;
    call->deadline_us = driver->env.now_us + 5000000;
    return call;
}

void driver_submit(struct driver *driver, struct model_call *call)
{
    coord_core_submit(driver->core, call);
    driver_settle(driver);
}

bool driver_is_answered(const struct model_call *call)
{
    return call->context != NULL;
}

struct model_call *driver_free_call(struct model_call *call)
{
    return model_call_free(call);
}

enum model_reason driver_reason(const struct model_call *call)
{
    cr_assert(driver_is_answered(call), "not answered");
    return call->response.code == RT_OK ? MODEL_REASON_NONE : call->response.error.reason;
}

struct model_id driver_id(const char *text, uint8_t number)
{
    struct model_id id = {{0}};

    (void)snprintf((char *)id.bytes, sizeof(id.bytes) - 1, "%s", text);
    id.bytes[15] = number;
    return id;
}

/* ---- members --------------------------------------------------------------------------------- */

struct model_call *driver_register(struct driver *driver, const char *name, const char *store,
                                   uint8_t boot)
{
    struct model_call *call = driver_new_call(driver, MODEL_CALL_REGISTER);
    struct model_register_request *request = &call->request.reg;

    (void)snprintf(request->name, sizeof(request->name), "%s", name);
    (void)snprintf(request->address, sizeof(request->address), "%s", name);
    request->store_id = driver_id(store, 1);
    request->boot_id = driver_id(store, boot);
    request->machine_id = driver_id("machine", 0);
    request->local_store = true;
    request->entries_total = driver->entries_total;
    request->entry_size = 10;
    driver_submit(driver, call);
    return call;
}

uint64_t driver_join(struct driver *driver, const char *name, uint8_t boot)
{
    struct model_call *call = driver_register(driver, name, name, boot);
    struct model_call *part = driver_new_call(driver, MODEL_CALL_RECONCILE);
    uint64_t incarnation;

    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    incarnation = call->response.reg.incarnation;
    (void)driver_free_call(call);
    (void)snprintf(part->request.reconcile.name, sizeof(part->request.reconcile.name), "%s", name);
    part->request.reconcile.incarnation = incarnation;
    part->request.reconcile.last = true;
    driver_submit(driver, part);
    driver_expect(driver_reason(part), MODEL_REASON_NONE);
    cr_assert(part->response.reconcile.done);
    (void)driver_free_call(part);
    return incarnation;
}

/* The process of that name that the store knows of. */
static void identify(const struct driver *driver, struct model_renew_request *request)
{
    for (size_t i = 0; i < driver->n_rows; i++) {
        struct coord_member_row row;
        enum coord_row_kind kind;
        struct rt_bytes name;

        cr_assert_eq(coord_rows_parse_key(driver->rows[i].key, &kind, &name, NULL), RT_OK);
        if (kind != COORD_ROW_MEMBER || !rt_bytes_equal(name, rt_bytes_of_string(request->name)))
            continue;
        cr_assert_eq(coord_rows_get_member(driver->rows[i].value, &row, NULL), RT_OK);
        request->store_id = row.store_id;
        request->boot_id = row.boot_id;
    }
}

void driver_renew_begin(struct driver *driver, const char *name, uint64_t incarnation,
                        struct model_renew_request *ret_request)
{
    *ret_request = (struct model_renew_request){.incarnation = incarnation,
                                                .entries_free = entries_free(driver, name)};
    (void)snprintf(ret_request->name, sizeof(ret_request->name), "%s", name);
    identify(driver, ret_request);
}

enum model_reason driver_renew(struct driver *driver, const char *name, uint64_t incarnation)
{
    struct model_call *call = driver_new_call(driver, MODEL_CALL_RENEW);
    enum model_reason reason;

    driver_renew_begin(driver, name, incarnation, &call->request.renew);
    driver_submit(driver, call);
    reason = driver_reason(call);
    (void)driver_free_call(call);
    return reason;
}

void driver_leave(struct driver *driver, const char *name, uint64_t incarnation)
{
    struct model_call *call = driver_new_call(driver, MODEL_CALL_LEAVE);

    (void)snprintf(call->request.leave.name, sizeof(call->request.leave.name), "%s", name);
    call->request.leave.incarnation = incarnation;
    driver_submit(driver, call);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    (void)driver_free_call(call);
}

/* ---- sessions and statements ----------------------------------------------------------------- */

struct driver_session driver_open(struct driver *driver, const char *name)
{
    struct model_call *call = driver_new_call(driver, MODEL_CALL_OPEN_SESSION);
    struct driver_session session = {.client = driver_id(name, 7)};

    (void)snprintf(call->request.open_session.name, sizeof(call->request.open_session.name), "%s",
                   name);
    call->request.open_session.request_id = (struct model_request_id){session.client, 1};
    driver_submit(driver, call);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    session.id = call->response.open_session.session_id;
    session.seq = 1;
    (void)driver_free_call(call);
    return session;
}

void driver_close(struct driver *driver, const struct driver_session *session)
{
    struct model_call *call = driver_new_call(driver, MODEL_CALL_CLOSE_SESSION);

    call->request.session.session_id = session->id;
    driver_submit(driver, call);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    (void)driver_free_call(call);
}

void driver_keep_alive(struct driver *driver, const struct driver_session *session)
{
    struct model_call *call = driver_new_call(driver, MODEL_CALL_KEEP_ALIVE);

    call->request.session.session_id = session->id;
    driver_submit(driver, call);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    (void)driver_free_call(call);
}

struct model_call *driver_execute(struct driver *driver, struct driver_session *session,
                                  enum model_statement_kind kind, const char *key,
                                  const char *value)
{
    struct model_call *call = driver_new_call(driver, MODEL_CALL_EXECUTE);
    struct model_execute_request *request = &call->request.execute;

    request->session_id = session->id;
    request->request_id = (struct model_request_id){session->client, ++session->seq};
    request->kind = kind;
    cr_assert(rt_arena_copy(&call->arena, rt_bytes_of_string(key), &request->key));
    if (value)
        cr_assert(rt_arena_copy(&call->arena, rt_bytes_of_string(value), &request->value));
    driver_submit(driver, call);
    return call;
}

enum model_reason driver_run(struct driver *driver, struct driver_session *session,
                             enum model_statement_kind kind, const char *key, const char *value)
{
    struct model_call *call = driver_execute(driver, session, kind, key, value);
    enum model_reason reason = driver_reason(call);

    (void)driver_free_call(call);
    return reason;
}

enum model_outcome driver_get(struct driver *driver, struct driver_session *session,
                              const char *key)
{
    struct model_call *call = driver_execute(driver, session, MODEL_STATEMENT_GET, key, NULL);
    enum model_outcome outcome;

    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    outcome = call->response.execute.outcome;
    (void)driver_free_call(call);
    return outcome;
}

void driver_owner(struct driver *driver, const char *key, char ret_name[MODEL_NAME_MAX + 1])
{
    struct model_call *call = driver_new_call(driver, MODEL_CALL_KEY_STATUS);

    cr_assert(rt_arena_copy(&call->arena, rt_bytes_of_string(key), &call->request.key_status.key));
    driver_submit(driver, call);
    while (!driver_is_answered(call))
        driver_sleep_ms(driver, 10);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    (void)snprintf(ret_name, MODEL_NAME_MAX + 1, "%s",
                   call->response.key_status.known ? call->response.key_status.owner : "?");
    (void)driver_free_call(call);
}
