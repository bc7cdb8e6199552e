/*
 * RegistryService: see codec.h. Any thread; no state.
 */
#include "redistinto/v1/registry.pb-c.h"
#include "runtime/wire/codec.h"

WIRE_ASSERT_UNARY_RESPONSE(Redistinto__V1__RegisterResponse);
WIRE_ASSERT_UNARY_RESPONSE(Redistinto__V1__RenewResponse);
WIRE_ASSERT_UNARY_RESPONSE(Redistinto__V1__LeaveResponse);
WIRE_ASSERT_UNARY_RESPONSE(Redistinto__V1__PullRowsResponse);
WIRE_ASSERT_STREAM(Redistinto__V1__ReconcileRequest, Redistinto__V1__ReconcileResponse, exchange_id,
                   REDISTINTO__V1__RECONCILE_RESPONSE__OUTCOME);

/* ---- Register ---- */

static bool fill_register_request(const struct model_request *request, struct rt_arena *arena,
                                  void *pointer)
{
    const struct model_register_request *reg = &request->reg;
    Redistinto__V1__RegisterRequest *message = pointer;

    (void)arena;
    message->name = (char *)reg->name;
    message->address = (char *)reg->address;
    message->cluster_id = wire_put_id(&reg->cluster_id);
    message->store_id = wire_put_id(&reg->store_id);
    message->boot_id = wire_put_id(&reg->boot_id);
    message->machine_id = wire_put_id(&reg->machine_id);
    message->local_store = reg->local_store;
    message->entries_total = reg->entries_total;
    message->entry_size = reg->entry_size;
    return true;
}

static void take_register_request(struct wire_input *in, const void *pointer,
                                  struct model_request *request)
{
    const Redistinto__V1__RegisterRequest *message = pointer;
    struct model_register_request *reg = &request->reg;

    wire_take_name(in, "name", message->name, WIRE_REQUIRED, reg->name);
    wire_take_address(in, "address", message->address, reg->address);
    wire_take_id(in, "cluster_id", &message->cluster_id, WIRE_OPTIONAL, &reg->cluster_id);
    wire_take_id(in, "store_id", &message->store_id, WIRE_REQUIRED, &reg->store_id);
    wire_take_id(in, "boot_id", &message->boot_id, WIRE_REQUIRED, &reg->boot_id);
    wire_take_id(in, "machine_id", &message->machine_id, WIRE_OPTIONAL, &reg->machine_id);
    reg->local_store = message->local_store;
    reg->entries_total = message->entries_total;
    reg->entry_size = message->entry_size;
}

static bool fill_register_response(const struct model_response *response, struct rt_arena *arena,
                                   void *pointer)
{
    Redistinto__V1__RegisterResponse *message = pointer;

    (void)arena;
    message->cluster_id = wire_put_id(&response->reg.cluster_id);
    message->incarnation = response->reg.incarnation;
    message->lease_ms = response->reg.lease_ms;
    message->key_max = response->reg.key_max;
    return true;
}

static void take_register_response(struct wire_input *in, const void *pointer,
                                   struct model_response *response)
{
    const Redistinto__V1__RegisterResponse *message = pointer;

    wire_take_id(in, "cluster_id", &message->cluster_id, WIRE_REQUIRED, &response->reg.cluster_id);
    response->reg.incarnation = message->incarnation;
    response->reg.lease_ms = message->lease_ms;
    response->reg.key_max = message->key_max;
}

/* ---- Reconcile ---- */

struct held_row {
    Redistinto__V1__HeldRow message;
    Redistinto__V1__Version version;
};

static void put_held_row(struct held_row *ret_row, const struct model_held_row *row)
{
    redistinto__v1__held_row__init(&ret_row->message);
    ret_row->message.key = wire_put_bytes(row->key);
    ret_row->message.epoch = row->epoch;
    if (!row->has_value)
        return;
    wire_put_version(&ret_row->version, &row->version);
    ret_row->message.version = &ret_row->version;
}

static bool put_held_rows(Redistinto__V1__ReconcileRequest *message,
                          const struct model_reconcile_request *reconcile, struct rt_arena *arena)
{
    size_t n = reconcile->n_rows;
    struct held_row *rows = rt_arena_alloc(arena, n * sizeof(*rows));

    message->rows = rt_arena_alloc(arena, n * sizeof(void *));
    if (!rows || !message->rows)
        return false;
    for (size_t i = 0; i < n; i++) {
        put_held_row(&rows[i], &reconcile->rows[i]);
        message->rows[i] = &rows[i].message;
    }
    message->n_rows = n;
    return true;
}

static bool fill_reconcile_request(const struct model_request *request, struct rt_arena *arena,
                                   void *pointer)
{
    Redistinto__V1__ReconcileRequest *message = pointer;

    message->name = (char *)request->reconcile.name;
    message->incarnation = request->reconcile.incarnation;
    message->part = request->reconcile.part;
    message->last = request->reconcile.last;
    return request->reconcile.n_rows == 0 || put_held_rows(message, &request->reconcile, arena);
}

static void take_reconcile_request(struct wire_input *in, const void *pointer,
                                   struct model_request *request)
{
    const Redistinto__V1__ReconcileRequest *message = pointer;
    struct model_reconcile_request *reconcile = &request->reconcile;

    wire_take_name(in, "name", message->name, WIRE_REQUIRED, reconcile->name);
    reconcile->incarnation = message->incarnation;
    reconcile->part = message->part;
    reconcile->last = message->last;
    reconcile->rows = wire_list_begin(in, "rows", message->n_rows, MODEL_RECONCILE_ROWS_MAX,
                                      sizeof(*reconcile->rows));
    reconcile->n_rows = reconcile->rows ? message->n_rows : 0;
    for (in->index = 0; in->index < reconcile->n_rows; in->index++) {
        const Redistinto__V1__HeldRow *held = message->rows[in->index];
        struct model_held_row *row = &reconcile->rows[in->index];

        wire_take_key(in, "key", &held->key, &row->key);
        row->epoch = held->epoch;
        row->has_value = wire_take_version(held->version, &row->version);
    }
    wire_list_end(in);
}

static bool fill_reconcile_response(const struct model_response *response, struct rt_arena *arena,
                                    void *pointer)
{
    Redistinto__V1__ReconcileResponse *message = pointer;
    Redistinto__V1__ReconcileResult *result =
        wire_message_new(&redistinto__v1__reconcile_result__descriptor, arena);

    if (!result)
        return false;
    message->result = result;
    result->done = response->reconcile.done;
    return wire_put_rows(arena, response->reconcile.rows, response->reconcile.n_rows,
                         &result->n_rows, &result->rows);
}

static void take_reconcile_response(struct wire_input *in, const void *pointer,
                                    struct model_response *response)
{
    const Redistinto__V1__ReconcileResult *result =
        ((const Redistinto__V1__ReconcileResponse *)pointer)->result;

    response->reconcile.done = result->done;
    wire_take_rows(in, result->n_rows, result->rows, &response->reconcile.rows,
                   &response->reconcile.n_rows);
}

/* ---- Renew ---- */

static bool put_evicted_keys(Redistinto__V1__RenewRequest *message,
                             const struct model_renew_request *renew, struct rt_arena *arena)
{
    if (renew->n_evicted == 0)
        return true;
    message->evicted =
        wire_put_list(arena, &redistinto__v1__evicted_key__descriptor, renew->n_evicted);
    if (!message->evicted)
        return false;
    message->n_evicted = renew->n_evicted;
    for (size_t i = 0; i < renew->n_evicted; i++) {
        message->evicted[i]->key = wire_put_bytes(renew->evicted[i].key);
        message->evicted[i]->epoch = renew->evicted[i].epoch;
    }
    return true;
}

static bool fill_renew_request(const struct model_request *request, struct rt_arena *arena,
                               void *pointer)
{
    const struct model_renew_request *renew = &request->renew;
    Redistinto__V1__RenewRequest *message = pointer;

    message->name = (char *)renew->name;
    message->incarnation = renew->incarnation;
    message->boot_id = wire_put_id(&renew->boot_id);
    message->store_id = wire_put_id(&renew->store_id);
    message->entries_free = renew->entries_free;
    message->entries_total = renew->entries_total;
    message->n_keys = renew->n_keys;
    message->n_operations = renew->n_operations;
    return put_evicted_keys(message, renew, arena);
}

static void take_evicted_keys(struct wire_input *in, const Redistinto__V1__RenewRequest *message,
                              struct model_renew_request *renew)
{
    renew->evicted = wire_list_begin(in, "evicted", message->n_evicted, MODEL_EVICTED_MAX,
                                     sizeof(*renew->evicted));
    renew->n_evicted = renew->evicted ? message->n_evicted : 0;
    for (in->index = 0; in->index < renew->n_evicted; in->index++) {
        wire_take_key(in, "key", &message->evicted[in->index]->key, &renew->evicted[in->index].key);
        renew->evicted[in->index].epoch = message->evicted[in->index]->epoch;
    }
    wire_list_end(in);
}

static void take_renew_request(struct wire_input *in, const void *pointer,
                               struct model_request *request)
{
    const Redistinto__V1__RenewRequest *message = pointer;
    struct model_renew_request *renew = &request->renew;

    wire_take_name(in, "name", message->name, WIRE_REQUIRED, renew->name);
    wire_take_id(in, "boot_id", &message->boot_id, WIRE_REQUIRED, &renew->boot_id);
    wire_take_id(in, "store_id", &message->store_id, WIRE_REQUIRED, &renew->store_id);
    renew->incarnation = message->incarnation;
    renew->entries_free = message->entries_free;
    renew->entries_total = message->entries_total;
    renew->n_keys = message->n_keys;
    renew->n_operations = message->n_operations;
    take_evicted_keys(in, message, renew);
}

static bool fill_renew_response(const struct model_response *response, struct rt_arena *arena,
                                void *pointer)
{
    const struct model_renew_response *renew = &response->renew;
    Redistinto__V1__RenewResponse *message = pointer;

    (void)arena;
    message->lease_ms = renew->lease_ms;
    message->n_evicted_epochs = renew->n_evicted_epochs;
    message->evicted_epochs = renew->evicted_epochs;
    return true;
}

static void take_renew_response(struct wire_input *in, const void *pointer,
                                struct model_response *response)
{
    const Redistinto__V1__RenewResponse *message = pointer;
    struct model_renew_response *renew = &response->renew;

    renew->lease_ms = message->lease_ms;
    renew->evicted_epochs = wire_list_begin(in, "evicted_epochs", message->n_evicted_epochs,
                                            MODEL_EVICTED_MAX, sizeof(*renew->evicted_epochs));
    renew->n_evicted_epochs = renew->evicted_epochs ? message->n_evicted_epochs : 0;
    for (size_t i = 0; i < renew->n_evicted_epochs; i++)
        renew->evicted_epochs[i] = message->evicted_epochs[i];
    wire_list_end(in);
}

/* ---- Leave ---- */

static bool fill_leave_request(const struct model_request *request, struct rt_arena *arena,
                               void *pointer)
{
    Redistinto__V1__LeaveRequest *message = pointer;

    (void)arena;
    message->name = (char *)request->leave.name;
    message->incarnation = request->leave.incarnation;
    return true;
}

static void take_leave_request(struct wire_input *in, const void *pointer,
                               struct model_request *request)
{
    const Redistinto__V1__LeaveRequest *message = pointer;

    wire_take_name(in, "name", message->name, WIRE_REQUIRED, request->leave.name);
    request->leave.incarnation = message->incarnation;
}

/* ---- PullRows ---- */

static bool fill_pull_rows_request(const struct model_request *request, struct rt_arena *arena,
                                   void *pointer)
{
    const struct model_pull_rows_request *pull = &request->pull_rows;
    Redistinto__V1__PullRowsRequest *message = pointer;

    message->name = (char *)pull->name;
    message->incarnation = pull->incarnation;
    if (pull->n_keys == 0)
        return true;
    message->keys = rt_arena_alloc(arena, pull->n_keys * sizeof(*message->keys));
    if (!message->keys)
        return false;
    message->n_keys = pull->n_keys;
    for (size_t i = 0; i < pull->n_keys; i++)
        message->keys[i] = wire_put_bytes(pull->keys[i]);
    return true;
}

static void take_pull_rows_request(struct wire_input *in, const void *pointer,
                                   struct model_request *request)
{
    const Redistinto__V1__PullRowsRequest *message = pointer;
    struct model_pull_rows_request *pull = &request->pull_rows;

    wire_take_name(in, "name", message->name, WIRE_REQUIRED, pull->name);
    pull->incarnation = message->incarnation;
    pull->keys =
        wire_list_begin(in, "keys", message->n_keys, MODEL_RECONCILE_ROWS_MAX, sizeof(*pull->keys));
    pull->n_keys = pull->keys ? message->n_keys : 0;
    for (in->index = 0; in->index < pull->n_keys; in->index++)
        wire_take_key(in, "", &message->keys[in->index], &pull->keys[in->index]);
    wire_list_end(in);
}

static bool fill_pull_rows_response(const struct model_response *response, struct rt_arena *arena,
                                    void *pointer)
{
    Redistinto__V1__PullRowsResponse *message = pointer;

    return wire_put_rows(arena, response->pull_rows.rows, response->pull_rows.n_rows,
                         &message->n_rows, &message->rows);
}

static void take_pull_rows_response(struct wire_input *in, const void *pointer,
                                    struct model_response *response)
{
    const Redistinto__V1__PullRowsResponse *message = pointer;

    wire_take_rows(in, message->n_rows, message->rows, &response->pull_rows.rows,
                   &response->pull_rows.n_rows);
}

static const struct wire_codec register_codec = {fill_register_request, take_register_request,
                                                 fill_register_response, take_register_response};
static const struct wire_codec reconcile_codec = {fill_reconcile_request, take_reconcile_request,
                                                  fill_reconcile_response, take_reconcile_response};
static const struct wire_codec renew_codec = {fill_renew_request, take_renew_request,
                                              fill_renew_response, take_renew_response};
static const struct wire_codec leave_codec = {fill_leave_request, take_leave_request, NULL, NULL};
static const struct wire_codec pull_rows_codec = {fill_pull_rows_request, take_pull_rows_request,
                                                  fill_pull_rows_response, take_pull_rows_response};

const struct wire_method wire_registry_methods[5] = {
    WIRE_METHOD(MODEL_CALL_REGISTER, registry_service, "Register", register, WIRE_UNARY,
                &register_codec),
    WIRE_METHOD(MODEL_CALL_RECONCILE, registry_service, "Reconcile", reconcile, WIRE_EXCHANGE,
                &reconcile_codec),
    WIRE_METHOD(MODEL_CALL_RENEW, registry_service, "Renew", renew, WIRE_UNARY, &renew_codec),
    WIRE_METHOD(MODEL_CALL_LEAVE, registry_service, "Leave", leave, WIRE_UNARY, &leave_codec),
    WIRE_METHOD(MODEL_CALL_PULL_ROWS, registry_service, "PullRows", pull_rows, WIRE_UNARY,
                &pull_rows_codec),
};
