/*
 * CoordinatorService: see codec.h. Any thread; no state.
 */
#include "redistinto/v1/coordinator.pb-c.h"
#include "runtime/wire/codec.h"
#include "runtime/wire/outcome.h"

WIRE_ASSERT_UNARY_RESPONSE(Redistinto__V1__OpenSessionResponse);
WIRE_ASSERT_UNARY_RESPONSE(Redistinto__V1__CloseSessionResponse);
WIRE_ASSERT_STREAM(Redistinto__V1__KeepAliveRequest, Redistinto__V1__KeepAliveResponse, exchange_id,
                   REDISTINTO__V1__KEEP_ALIVE_RESPONSE__OUTCOME);
WIRE_ASSERT_STREAM(Redistinto__V1__ExecuteRequest, Redistinto__V1__ExecuteResponse, statement_id,
                   REDISTINTO__V1__EXECUTE_RESPONSE__OUTCOME);

/* ---- sessions ---- */

static bool fill_open_session_request(const struct model_request *request, struct rt_arena *arena,
                                      void *pointer)
{
    Redistinto__V1__OpenSessionRequest *message = pointer;
    Redistinto__V1__RequestId *request_id = rt_arena_alloc(arena, sizeof(*request_id));

    if (!request_id)
        return false;
    message->name = (char *)request->open_session.name;
    message->request_id = wire_put_request_id(request_id, &request->open_session.request_id);
    return true;
}

static void take_open_session_request(struct wire_input *in, const void *pointer,
                                      struct model_request *request)
{
    const Redistinto__V1__OpenSessionRequest *message = pointer;
    struct model_open_session_request *open = &request->open_session;

    wire_take_name(in, "name", message->name, WIRE_REQUIRED, open->name);
    wire_take_request_id(in, "request_id.client_id", "request_id.seq", message->request_id,
                         &open->request_id);
}

static bool fill_open_session_response(const struct model_response *response,
                                       struct rt_arena *arena, void *pointer)
{
    const struct model_open_session_response *open = &response->open_session;
    Redistinto__V1__OpenSessionResponse *message = pointer;

    (void)arena;
    message->session_id = wire_put_id(&open->session_id);
    message->cluster_id = wire_put_id(&open->cluster_id);
    message->lease_ms = open->lease_ms;
    message->key_max = open->key_max;
    message->value_max = open->value_max;
    return true;
}

static void take_open_session_response(struct wire_input *in, const void *pointer,
                                       struct model_response *response)
{
    const Redistinto__V1__OpenSessionResponse *message = pointer;
    struct model_open_session_response *open = &response->open_session;

    wire_take_id(in, "session_id", &message->session_id, WIRE_REQUIRED, &open->session_id);
    wire_take_id(in, "cluster_id", &message->cluster_id, WIRE_REQUIRED, &open->cluster_id);
    open->lease_ms = message->lease_ms;
    open->key_max = message->key_max;
    open->value_max = message->value_max;
}

static bool fill_keep_alive_request(const struct model_request *request, struct rt_arena *arena,
                                    void *pointer)
{
    Redistinto__V1__KeepAliveRequest *message = pointer;

    (void)arena;
    message->session_id = wire_put_id(&request->session.session_id);
    return true;
}

static void take_keep_alive_request(struct wire_input *in, const void *pointer,
                                    struct model_request *request)
{
    const Redistinto__V1__KeepAliveRequest *message = pointer;

    wire_take_id(in, "session_id", &message->session_id, WIRE_REQUIRED,
                 &request->session.session_id);
}

static bool fill_keep_alive_response(const struct model_response *response, struct rt_arena *arena,
                                     void *pointer)
{
    Redistinto__V1__KeepAliveResponse *message = pointer;

    message->result = wire_message_new(&redistinto__v1__keep_alive_result__descriptor, arena);
    if (!message->result)
        return false;
    message->result->lease_ms = response->keep_alive.lease_ms;
    return true;
}

static void take_keep_alive_response(struct wire_input *in, const void *pointer,
                                     struct model_response *response)
{
    const Redistinto__V1__KeepAliveResponse *message = pointer;

    (void)in;
    response->keep_alive.lease_ms = message->result->lease_ms;
}

static bool fill_close_session_request(const struct model_request *request, struct rt_arena *arena,
                                       void *pointer)
{
    Redistinto__V1__CloseSessionRequest *message = pointer;

    (void)arena;
    message->session_id = wire_put_id(&request->session.session_id);
    return true;
}

static void take_close_session_request(struct wire_input *in, const void *pointer,
                                       struct model_request *request)
{
    const Redistinto__V1__CloseSessionRequest *message = pointer;

    wire_take_id(in, "session_id", &message->session_id, WIRE_REQUIRED,
                 &request->session.session_id);
}

/* ---- Execute: requests ---- */

/* All that a statement can hold. */
struct statement_parts {
    union {
        Redistinto__V1__GetStatement get;
        Redistinto__V1__SetStatement set;
        Redistinto__V1__StoreStatement store;
        Redistinto__V1__PutStatement put;
        Redistinto__V1__ReadStatement read;
        Redistinto__V1__DeleteStatement delete;
        Redistinto__V1__AwaitStatement await_turn;
    };
    Redistinto__V1__Version version;
    Redistinto__V1__RequestId request_id;
};

static Redistinto__V1__Version *put_optional_version(struct statement_parts *parts, bool has,
                                                     const struct model_version *version)
{
    if (!has)
        return NULL;
    wire_put_version(&parts->version, version);
    return &parts->version;
}

static void put_store(Redistinto__V1__ExecuteRequest *message, struct statement_parts *parts,
                      const struct model_execute_request *execute)
{
    redistinto__v1__store_statement__init(&parts->store);
    parts->store.key = wire_put_bytes(execute->key);
    parts->store.lock_token = execute->lock_token;
    parts->store.last_set = put_optional_version(parts, execute->has_last_set, &execute->last_set);
    message->store = &parts->store;
    message->statement_case = REDISTINTO__V1__EXECUTE_REQUEST__STATEMENT_STORE;
}

static void put_put(Redistinto__V1__ExecuteRequest *message, struct statement_parts *parts,
                    const struct model_execute_request *execute)
{
    redistinto__v1__put_statement__init(&parts->put);
    parts->put.key = wire_put_bytes(execute->key);
    parts->put.value = wire_put_bytes(execute->value);
    parts->put.lock_token = execute->lock_token;
    parts->put.if_version =
        put_optional_version(parts, execute->has_if_version, &execute->if_version);
    message->put = &parts->put;
    message->statement_case = REDISTINTO__V1__EXECUTE_REQUEST__STATEMENT_PUT;
}

static void put_delete(Redistinto__V1__ExecuteRequest *message, struct statement_parts *parts,
                       const struct model_execute_request *execute)
{
    redistinto__v1__delete_statement__init(&parts->delete);
    parts->delete.key = wire_put_bytes(execute->key);
    parts->delete.lock_token = execute->lock_token;
    parts->delete.if_version =
        put_optional_version(parts, execute->has_if_version, &execute->if_version);
    message->delete_ = &parts->delete;
    message->statement_case = REDISTINTO__V1__EXECUTE_REQUEST__STATEMENT_DELETE;
}

static void put_statement(Redistinto__V1__ExecuteRequest *message, struct statement_parts *parts,
                          const struct model_execute_request *execute)
{
    switch (execute->kind) {
    case MODEL_STATEMENT_GET:
        redistinto__v1__get_statement__init(&parts->get);
        parts->get.key = wire_put_bytes(execute->key);
        message->get = &parts->get;
        message->statement_case = REDISTINTO__V1__EXECUTE_REQUEST__STATEMENT_GET;
        break;
    case MODEL_STATEMENT_SET:
        redistinto__v1__set_statement__init(&parts->set);
        parts->set.key = wire_put_bytes(execute->key);
        parts->set.value = wire_put_bytes(execute->value);
        parts->set.lock_token = execute->lock_token;
        message->set = &parts->set;
        message->statement_case = REDISTINTO__V1__EXECUTE_REQUEST__STATEMENT_SET;
        break;
    case MODEL_STATEMENT_STORE:
        put_store(message, parts, execute);
        break;
    case MODEL_STATEMENT_PUT:
        put_put(message, parts, execute);
        break;
    case MODEL_STATEMENT_READ:
        redistinto__v1__read_statement__init(&parts->read);
        parts->read.key = wire_put_bytes(execute->key);
        message->read = &parts->read;
        message->statement_case = REDISTINTO__V1__EXECUTE_REQUEST__STATEMENT_READ;
        break;
    case MODEL_STATEMENT_DELETE:
        put_delete(message, parts, execute);
        break;
    case MODEL_STATEMENT_AWAIT:
        redistinto__v1__await_statement__init(&parts->await_turn);
        parts->await_turn.key = wire_put_bytes(execute->key);
        message->await_turn = &parts->await_turn;
        message->statement_case = REDISTINTO__V1__EXECUTE_REQUEST__STATEMENT_AWAIT_TURN;
        break;
    }
}

static bool fill_execute_request(const struct model_request *request, struct rt_arena *arena,
                                 void *pointer)
{
    const struct model_execute_request *execute = &request->execute;
    Redistinto__V1__ExecuteRequest *message = pointer;
    struct statement_parts *parts = rt_arena_alloc(arena, sizeof(*parts));

    if (!parts)
        return false;
    message->session_id = wire_put_id(&execute->session_id);
    message->request_id = wire_put_request_id(&parts->request_id, &execute->request_id);
    message->done_below = execute->done_below;
    message->first_version = execute->first_version;
    put_statement(message, parts, execute);
    return true;
}

static void take_set(struct wire_input *in, const Redistinto__V1__SetStatement *set,
                     struct model_execute_request *execute)
{
    execute->kind = MODEL_STATEMENT_SET;
    execute->lock_token = set->lock_token;
    wire_take_key(in, "set.key", &set->key, &execute->key);
    wire_take_value(in, "set.value", &set->value, &execute->value);
}

static void take_store(struct wire_input *in, const Redistinto__V1__StoreStatement *store,
                       struct model_execute_request *execute)
{
    execute->kind = MODEL_STATEMENT_STORE;
    execute->lock_token = store->lock_token;
    execute->has_last_set = wire_take_version(store->last_set, &execute->last_set);
    wire_take_key(in, "store.key", &store->key, &execute->key);
}

static void take_put(struct wire_input *in, const Redistinto__V1__PutStatement *put,
                     struct model_execute_request *execute)
{
    execute->kind = MODEL_STATEMENT_PUT;
    execute->lock_token = put->lock_token;
    execute->has_if_version = wire_take_version(put->if_version, &execute->if_version);
    wire_take_key(in, "put.key", &put->key, &execute->key);
    wire_take_value(in, "put.value", &put->value, &execute->value);
}

static void take_delete(struct wire_input *in, const Redistinto__V1__DeleteStatement *delete,
                        struct model_execute_request *execute)
{
    execute->kind = MODEL_STATEMENT_DELETE;
    execute->lock_token = delete->lock_token;
    execute->has_if_version = wire_take_version(delete->if_version, &execute->if_version);
    wire_take_key(in, "delete.key", &delete->key, &execute->key);
}

static void take_statement(struct wire_input *in, const Redistinto__V1__ExecuteRequest *message,
                           struct model_execute_request *execute)
{
    switch (message->statement_case) {
    case REDISTINTO__V1__EXECUTE_REQUEST__STATEMENT_GET:
        execute->kind = MODEL_STATEMENT_GET;
        wire_take_key(in, "get.key", &message->get->key, &execute->key);
        return;
    case REDISTINTO__V1__EXECUTE_REQUEST__STATEMENT_SET:
        take_set(in, message->set, execute);
        return;
    case REDISTINTO__V1__EXECUTE_REQUEST__STATEMENT_STORE:
        take_store(in, message->store, execute);
        return;
    case REDISTINTO__V1__EXECUTE_REQUEST__STATEMENT_PUT:
        take_put(in, message->put, execute);
        return;
    case REDISTINTO__V1__EXECUTE_REQUEST__STATEMENT_READ:
        execute->kind = MODEL_STATEMENT_READ;
        wire_take_key(in, "read.key", &message->read->key, &execute->key);
        return;
    case REDISTINTO__V1__EXECUTE_REQUEST__STATEMENT_DELETE:
        take_delete(in, message->delete_, execute);
        return;
    case REDISTINTO__V1__EXECUTE_REQUEST__STATEMENT_AWAIT_TURN:
        execute->kind = MODEL_STATEMENT_AWAIT;
        wire_take_key(in, "await_turn.key", &message->await_turn->key, &execute->key);
        return;
    case REDISTINTO__V1__EXECUTE_REQUEST__STATEMENT__NOT_SET:
    case _REDISTINTO__V1__EXECUTE_REQUEST__STATEMENT__CASE_IS_INT_SIZE:
        break;
    }
    wire_input_fail(in, MODEL_REASON_INVALID_FIELD, "statement",
                    "is missing, valid are get, set, store, put, read, delete, await_turn");
}

static void take_execute_request(struct wire_input *in, const void *pointer,
                                 struct model_request *request)
{
    const Redistinto__V1__ExecuteRequest *message = pointer;
    struct model_execute_request *execute = &request->execute;

    *execute = (struct model_execute_request){
        .done_below = message->done_below,
        .first_version = message->first_version,
    };
    wire_take_id(in, "session_id", &message->session_id, WIRE_REQUIRED, &execute->session_id);
    wire_take_request_id(in, "request_id.client_id", "request_id.seq", message->request_id,
                         &execute->request_id);
    take_statement(in, message, execute);
}

/* ---- Execute: responses ---- */

struct statement_result {
    Redistinto__V1__StatementResult message;
    struct wire_key_result key;
};

Redistinto__V1__StatementOutcome wire_put_outcome(enum model_outcome outcome)
{
    switch (outcome) {
    case MODEL_OUTCOME_DONE:
        return REDISTINTO__V1__STATEMENT_OUTCOME__STATEMENT_OUTCOME_DONE;
    case MODEL_OUTCOME_WAITING:
        return REDISTINTO__V1__STATEMENT_OUTCOME__STATEMENT_OUTCOME_WAITING;
    case MODEL_OUTCOME_READY:
        return REDISTINTO__V1__STATEMENT_OUTCOME__STATEMENT_OUTCOME_READY;
    }
    return REDISTINTO__V1__STATEMENT_OUTCOME__STATEMENT_OUTCOME_UNSPECIFIED;
}

enum model_outcome wire_take_outcome(struct wire_input *in,
                                     Redistinto__V1__StatementOutcome outcome)
{
    switch ((int)outcome) {
    case REDISTINTO__V1__STATEMENT_OUTCOME__STATEMENT_OUTCOME_DONE:
        return MODEL_OUTCOME_DONE;
    case REDISTINTO__V1__STATEMENT_OUTCOME__STATEMENT_OUTCOME_WAITING:
        return MODEL_OUTCOME_WAITING;
    case REDISTINTO__V1__STATEMENT_OUTCOME__STATEMENT_OUTCOME_READY:
        return MODEL_OUTCOME_READY;
    }
    wire_input_fail(in, MODEL_REASON_INVALID_FIELD, "outcome", "is %d, valid are 1 to 3",
                    (int)outcome);
    return MODEL_OUTCOME_DONE;
}

static bool fill_execute_response(const struct model_response *response, struct rt_arena *arena,
                                  void *pointer)
{
    const struct model_execute_response *execute = &response->execute;
    struct statement_result *result = rt_arena_alloc(arena, sizeof(*result));
    Redistinto__V1__StatementResult *message;

    if (!result || !wire_put_key_result(&result->key, &execute->data, arena))
        return false;
    message = &result->message;
    redistinto__v1__statement_result__init(message);
    message->outcome = wire_put_outcome(execute->outcome);
    message->key = &result->key.message;
    message->instance = (char *)execute->instance;
    message->epoch = execute->epoch;
    message->lock_token = execute->lock_token;
    message->holder = (char *)execute->holder;
    message->lock_lost = execute->lock_lost;
    ((Redistinto__V1__ExecuteResponse *)pointer)->result = message;
    return true;
}

static void take_execute_response(struct wire_input *in, const void *pointer,
                                  struct model_response *response)
{
    const Redistinto__V1__StatementResult *message =
        ((const Redistinto__V1__ExecuteResponse *)pointer)->result;
    struct model_execute_response *execute = &response->execute;

    execute->outcome = wire_take_outcome(in, message->outcome);
    wire_take_key_result(in, message->key, &execute->data);
    wire_take_name(in, "instance", message->instance, WIRE_OPTIONAL, execute->instance);
    execute->epoch = message->epoch;
    execute->lock_token = message->lock_token;
    wire_take_name(in, "holder", message->holder, WIRE_OPTIONAL, execute->holder);
    execute->lock_lost = message->lock_lost;
}

static const struct wire_codec open_session_codec = {
    fill_open_session_request, take_open_session_request, fill_open_session_response,
    take_open_session_response};
static const struct wire_codec keep_alive_codec = {fill_keep_alive_request, take_keep_alive_request,
                                                   fill_keep_alive_response,
                                                   take_keep_alive_response};
static const struct wire_codec close_session_codec = {fill_close_session_request,
                                                      take_close_session_request, NULL, NULL};
static const struct wire_codec execute_codec = {fill_execute_request, take_execute_request,
                                                fill_execute_response, take_execute_response};

const struct wire_method wire_coordinator_methods[4] = {
    WIRE_METHOD(MODEL_CALL_OPEN_SESSION, coordinator_service, "OpenSession", open_session,
                WIRE_UNARY, &open_session_codec),
    WIRE_METHOD(MODEL_CALL_KEEP_ALIVE, coordinator_service, "KeepAlive", keep_alive, WIRE_EXCHANGE,
                &keep_alive_codec),
    WIRE_METHOD(MODEL_CALL_CLOSE_SESSION, coordinator_service, "CloseSession", close_session,
                WIRE_UNARY, &close_session_codec),
    WIRE_METHOD(MODEL_CALL_EXECUTE, coordinator_service, "Execute", execute, WIRE_EXCHANGE,
                &execute_codec),
};
