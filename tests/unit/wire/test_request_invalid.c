/*
 * Every rule of the API that a request can break, at its limit and one past it. A case names a
 * field by its path in the .proto; the messages are changed through their descriptors.
 */
#include "runtime/wire/request.h"

#include "redistinto/v1/coordinator.pb-c.h"
#include "redistinto/v1/registry.pb-c.h"
#include "tests/support/check.h"
#include "tests/unit/wire/rig.h"

TestSuite(request_invalid, .fini = test_alloc_expect_none);

enum change {
    SIZE,   /* bytes or string of `number` bytes 'a' */
    ZEROES, /* bytes: `number` zero bytes */
    TEXT,   /* string */
    NUMBER, /* number or enumeration */
    ABSENT, /* sub-message */
};

struct field_case {
    enum model_call_kind kind;
    const char *path;
    enum change change;
    size_t number;
    const char *text;
    const char *reason;   /* NULL: the request is accepted */
    const char *expected; /* in the message */
};

static uint8_t filling[MODEL_VALUE_MAX + 1];
static const uint8_t zeroes[16];

/* Memory of the field at `path`, and its descriptor. */
static void *find_field(ProtobufCMessage *message, const char *path,
                        const ProtobufCFieldDescriptor **ret_field)
{
    for (;;) {
        char name[64];
        size_t length = strcspn(path, ".");

        cr_assert_lt(length, sizeof(name));
        memcpy(name, path, length);
        name[length] = '\0';
        *ret_field = protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);
        cr_assert_not_null(*ret_field, "no field %s", name);
        if (!path[length])
            return (char *)message + (*ret_field)->offset;
        message = *(ProtobufCMessage **)((char *)message + (*ret_field)->offset);
        cr_assert_not_null(message, "no message at %s", path);
        path += length + 1;
    }
}

static void apply(ProtobufCMessage *message, const struct field_case *test, struct rt_arena *arena)
{
    const ProtobufCFieldDescriptor *field;
    void *memory = find_field(message, test->path, &field);
    struct rt_bytes copy;

    switch (test->change) {
    case SIZE:
        cr_assert(rt_arena_copy(arena, rt_bytes_of(filling, test->number), &copy));
        if (field->type == PROTOBUF_C_TYPE_STRING)
            *(char **)memory = (char *)copy.data;
        else
            *(ProtobufCBinaryData *)memory = (ProtobufCBinaryData){copy.size, (uint8_t *)copy.data};
        break;
    case ZEROES:
        *(ProtobufCBinaryData *)memory = (ProtobufCBinaryData){test->number, (uint8_t *)zeroes};
        break;
    case TEXT:
        *(char **)memory = (char *)test->text;
        break;
    case NUMBER:
        if (field->type == PROTOBUF_C_TYPE_UINT64)
            *(uint64_t *)memory = test->number;
        else
            *(uint32_t *)memory = (uint32_t)test->number;
        break;
    case ABSENT:
        *(void **)memory = NULL;
        break;
    }
}

/* A request with all its optional parts. */
static void complete_request(struct model_request *ret_request, enum model_call_kind kind,
                             const char *path, struct rt_arena *arena)
{
    static const char *const names[] = {"get",  "set",    "store",     "put",
                                        "read", "delete", "await_turn"};

    rig_random_request(ret_request, kind, arena, 11);
    if (kind >= MODEL_CALL_SET && kind <= MODEL_CALL_DELETE)
        ret_request->data.header.request_id = (struct model_request_id){{{1}}, 1};
    if (kind == MODEL_CALL_LOCK)
        ret_request->lock.request_id = (struct model_request_id){{{1}}, 1};
    if (kind == MODEL_CALL_OPEN_SESSION)
        ret_request->open_session.request_id = (struct model_request_id){{{1}}, 1};
    if (kind != MODEL_CALL_EXECUTE)
        return;
    ret_request->execute.request_id = (struct model_request_id){{{1}}, 1};
    ret_request->execute.kind = MODEL_STATEMENT_GET;
    for (size_t i = 0; i < RT_ARRAY_SIZE(names); i++)
        if (strncmp(path, names[i], strlen(names[i])) == 0 && path[strlen(names[i])] == '.')
            ret_request->execute.kind = (enum model_statement_kind)i;
}

static void run_case(const struct field_case *test)
{
    struct rt_arena arena = {0};
    struct rt_error err = RT_ERROR_INIT;
    struct model_request request;
    struct model_request got;
    ProtobufCMessage *message;
    enum rt_code code;

    complete_request(&request, test->kind, test->path, &arena);
    cr_assert_eq(wire_request_encode(&request, &arena, &message, NULL), RT_OK);
    apply(message, test, &arena);
    code = wire_request_decode(wire_method_of(test->kind), message, &arena, &got, &err);
    if (!test->reason) {
        cr_assert_eq(code, RT_OK, "%s %s: %s", model_call_kind_name(test->kind), test->path,
                     err.message);
    } else {
        cr_assert_eq(code, RT_INVALID_ARGUMENT, "%s %s was accepted",
                     model_call_kind_name(test->kind), test->path);
        cr_assert_str_eq(err.reason, test->reason);
        cr_assert_not_null(strstr(err.message, test->expected), "'%s' lacks '%s'", err.message,
                           test->expected);
        cr_assert_eq(strncmp(err.message, test->path, strlen(test->path)), 0,
                     "'%s' does not begin with %s", err.message, test->path);
    }
    rt_arena_reset(&arena);
}

static void run_cases(const struct field_case *cases, size_t n)
{
    memset(filling, 'a', sizeof(filling));
    for (size_t i = 0; i < n; i++)
        run_case(&cases[i]);
}

#define FIELD "INVALID_FIELD"

Test(request_invalid, ids)
{
    static const struct field_case cases[] = {
        {MODEL_CALL_REGISTER, "cluster_id", SIZE, 0, NULL, NULL, NULL},
        {MODEL_CALL_REGISTER, "cluster_id", SIZE, 15, NULL, FIELD,
         "has 15 bytes, valid are 0 and 16"},
        {MODEL_CALL_REGISTER, "cluster_id", SIZE, 17, NULL, FIELD,
         "has 17 bytes, valid are 0 and 16"},
        {MODEL_CALL_REGISTER, "cluster_id", ZEROES, 16, NULL, NULL, NULL},
        {MODEL_CALL_REGISTER, "store_id", SIZE, 0, NULL, FIELD, "has 0 bytes, valid are 16"},
        {MODEL_CALL_REGISTER, "store_id", SIZE, 16, NULL, NULL, NULL},
        {MODEL_CALL_REGISTER, "store_id", ZEROES, 16, NULL, FIELD, "is all zero"},
        {MODEL_CALL_REGISTER, "boot_id", SIZE, 17, NULL, FIELD, "has 17 bytes, valid are 16"},
        {MODEL_CALL_REGISTER, "machine_id", SIZE, 0, NULL, NULL, NULL},
        {MODEL_CALL_REGISTER, "machine_id", SIZE, 1, NULL, FIELD, "has 1 bytes"},
        {MODEL_CALL_RENEW, "boot_id", SIZE, 0, NULL, FIELD, "has 0 bytes"},
        {MODEL_CALL_RENEW, "store_id", SIZE, 15, NULL, FIELD, "has 15 bytes"},
        {MODEL_CALL_SET, "header.cluster_id", SIZE, 0, NULL, NULL, NULL},
        {MODEL_CALL_SET, "header.cluster_id", SIZE, 32, NULL, FIELD, "has 32 bytes"},
        {MODEL_CALL_SET, "header.request_id.client_id", SIZE, 0, NULL, FIELD, "has 0 bytes"},
        {MODEL_CALL_SET, "header.request_id.client_id", ZEROES, 16, NULL, FIELD, "is all zero"},
        {MODEL_CALL_SET, "header.request_id.seq", NUMBER, 0, NULL, FIELD,
         "is 0, valid are 1 and above"},
        {MODEL_CALL_SET, "header.request_id", ABSENT, 0, NULL, NULL, NULL},
        {MODEL_CALL_OPEN_SESSION, "request_id.client_id", SIZE, 3, NULL, FIELD, "has 3 bytes"},
        {MODEL_CALL_OPEN_SESSION, "request_id", ABSENT, 0, NULL, NULL, NULL},
        {MODEL_CALL_KEEP_ALIVE, "session_id", SIZE, 0, NULL, FIELD, "has 0 bytes"},
        {MODEL_CALL_CLOSE_SESSION, "session_id", SIZE, 15, NULL, FIELD, "has 15 bytes"},
        {MODEL_CALL_EXECUTE, "session_id", SIZE, 0, NULL, FIELD, "has 0 bytes"},
        {MODEL_CALL_EXECUTE, "request_id.seq", NUMBER, 0, NULL, FIELD, "is 0"},
        {MODEL_CALL_EXECUTE, "request_id", ABSENT, 0, NULL, NULL, NULL},
        {MODEL_CALL_LOCK, "session_id", SIZE, 15, NULL, FIELD, "has 15 bytes, valid are 16"},
        {MODEL_CALL_LOCK, "request_id.seq", NUMBER, 0, NULL, FIELD, "request_id.seq is 0"},
        {MODEL_CALL_LOCK, "request_id.client_id", SIZE, 1, NULL, FIELD,
         "request_id.client_id has 1 bytes"},
        {MODEL_CALL_LOCK, "request_id", ABSENT, 0, NULL, NULL, NULL},
        {MODEL_CALL_UNLOCK, "session_id", SIZE, 0, NULL, FIELD, "has 0 bytes, valid are 16"},
        {MODEL_CALL_ROUTE, "session_id", SIZE, 0, NULL, NULL, NULL},
        {MODEL_CALL_ROUTE, "session_id", SIZE, 17, NULL, FIELD, "has 17 bytes, valid are 0 and 16"},
    };

    run_cases(cases, RT_ARRAY_SIZE(cases));
}

Test(request_invalid, names_and_addresses)
{
    static const struct field_case cases[] = {
        {MODEL_CALL_REGISTER, "name", SIZE, 0, NULL, FIELD, "'' is no name"},
        {MODEL_CALL_REGISTER, "name", SIZE, 63, NULL, NULL, NULL},
        {MODEL_CALL_REGISTER, "name", SIZE, 64, NULL, FIELD, "valid are 1 to 63 characters"},
        {MODEL_CALL_REGISTER, "name", TEXT, 0, "a b", FIELD, "'a b' is no name"},
        {MODEL_CALL_REGISTER, "name", TEXT, 0, "a\n\xff", FIELD, "'a\?\?' is no name"},
        {MODEL_CALL_REGISTER, "address", SIZE, 0, NULL, FIELD, "'' is no address"},
        {MODEL_CALL_REGISTER, "address", SIZE, 255, NULL, NULL, NULL},
        {MODEL_CALL_REGISTER, "address", SIZE, 256, NULL, FIELD, "valid are 1 to 255"},
        {MODEL_CALL_REGISTER, "address", TEXT, 0, "host :1", FIELD, "'host :1' is no address"},
        {MODEL_CALL_REGISTER, "address", TEXT, 0, "h\xc3\xb6st:1", FIELD, "'h\?\?st:1'"},
        {MODEL_CALL_RECONCILE, "name", SIZE, 0, NULL, FIELD, "is no name"},
        {MODEL_CALL_RENEW, "name", SIZE, 64, NULL, FIELD, "is no name"},
        {MODEL_CALL_LEAVE, "name", TEXT, 0, "/", FIELD, "'/' is no name"},
        {MODEL_CALL_PULL_ROWS, "name", TEXT, 0, "", FIELD, "is no name"},
        {MODEL_CALL_OPEN_SESSION, "name", SIZE, 64, NULL, FIELD, "is no name"},
        {MODEL_CALL_SET, "header.owner", SIZE, 0, NULL, FIELD, "is no name"},
        {MODEL_CALL_READ, "header.owner", SIZE, 64, NULL, FIELD, "is no name"},
        {MODEL_CALL_LIST_INSTANCES, "after", SIZE, 0, NULL, NULL, NULL},
        {MODEL_CALL_LIST_INSTANCES, "after", SIZE, 63, NULL, NULL, NULL},
        {MODEL_CALL_LIST_INSTANCES, "after", SIZE, 64, NULL, FIELD, "is no name"},
    };

    run_cases(cases, RT_ARRAY_SIZE(cases));
}

Test(request_invalid, keys_and_values)
{
    static const struct field_case cases[] = {
        {MODEL_CALL_SET, "header.key", SIZE, 0, NULL, "KEY_EMPTY", "is empty, valid are 1 to 255"},
        {MODEL_CALL_SET, "header.key", SIZE, 1, NULL, NULL, NULL},
        {MODEL_CALL_SET, "header.key", SIZE, 255, NULL, NULL, NULL},
        {MODEL_CALL_SET, "header.key", SIZE, 256, NULL, "KEY_TOO_LONG",
         "has 256 bytes, valid are 1 to 255"},
        {MODEL_CALL_SET, "value", SIZE, 0, NULL, NULL, NULL},
        {MODEL_CALL_SET, "value", SIZE, MODEL_VALUE_MAX, NULL, NULL, NULL},
        {MODEL_CALL_SET, "value", SIZE, MODEL_VALUE_MAX + 1, NULL, "VALUE_TOO_LARGE",
         "has 1048577 bytes, valid are 0 to 1048576"},
        {MODEL_CALL_PUT, "value", SIZE, MODEL_VALUE_MAX + 1, NULL, "VALUE_TOO_LARGE", "1048577"},
        {MODEL_CALL_STORE, "header.key", SIZE, 256, NULL, "KEY_TOO_LONG", "256"},
        {MODEL_CALL_PUT, "header.key", SIZE, 0, NULL, "KEY_EMPTY", "is empty"},
        {MODEL_CALL_READ, "header.key", SIZE, 0, NULL, "KEY_EMPTY", "is empty"},
        {MODEL_CALL_DELETE, "header.key", SIZE, 0, NULL, "KEY_EMPTY", "is empty"},
        {MODEL_CALL_FENCE, "key", SIZE, 0, NULL, "KEY_EMPTY", "is empty"},
        {MODEL_CALL_FENCE, "key", SIZE, 256, NULL, "KEY_TOO_LONG", "256"},
        {MODEL_CALL_DROP, "key", SIZE, 256, NULL, "KEY_TOO_LONG", "256"},
        {MODEL_CALL_KEY_STATUS, "key", SIZE, 0, NULL, "KEY_EMPTY", "is empty"},
        {MODEL_CALL_ESI_BLOCK, "key", SIZE, 0, NULL, "KEY_EMPTY", "is empty"},
        {MODEL_CALL_ESI_UNBLOCK, "key", SIZE, 256, NULL, "KEY_TOO_LONG", "valid are 1 to 255"},
        {MODEL_CALL_ESI_LIST, "waits_for", SIZE, 256, NULL, "KEY_TOO_LONG", "valid are 0 to 255"},
        {MODEL_CALL_LIST_KEYS, "prefix", SIZE, 0, NULL, NULL, NULL},
        {MODEL_CALL_LIST_KEYS, "prefix", SIZE, 255, NULL, NULL, NULL},
        {MODEL_CALL_LIST_KEYS, "prefix", SIZE, 256, NULL, "KEY_TOO_LONG", "valid are 0 to 255"},
        {MODEL_CALL_LIST_KEYS, "after", SIZE, 256, NULL, "KEY_TOO_LONG", "valid are 0 to 255"},
        {MODEL_CALL_EXECUTE, "get.key", SIZE, 0, NULL, "KEY_EMPTY", "is empty"},
        {MODEL_CALL_EXECUTE, "get.key", SIZE, 255, NULL, NULL, NULL},
        {MODEL_CALL_EXECUTE, "set.key", SIZE, 256, NULL, "KEY_TOO_LONG", "256"},
        {MODEL_CALL_EXECUTE, "set.value", SIZE, MODEL_VALUE_MAX, NULL, NULL, NULL},
        {MODEL_CALL_EXECUTE, "set.value", SIZE, MODEL_VALUE_MAX + 1, NULL, "VALUE_TOO_LARGE",
         "1048577"},
        {MODEL_CALL_EXECUTE, "store.key", SIZE, 0, NULL, "KEY_EMPTY", "is empty"},
        {MODEL_CALL_EXECUTE, "put.key", SIZE, 256, NULL, "KEY_TOO_LONG", "256"},
        {MODEL_CALL_EXECUTE, "put.value", SIZE, MODEL_VALUE_MAX + 1, NULL, "VALUE_TOO_LARGE",
         "1048577"},
        {MODEL_CALL_EXECUTE, "read.key", SIZE, 0, NULL, "KEY_EMPTY", "is empty"},
        {MODEL_CALL_EXECUTE, "delete.key", SIZE, 256, NULL, "KEY_TOO_LONG", "256"},
        {MODEL_CALL_EXECUTE, "await_turn.key", SIZE, 0, NULL, "KEY_EMPTY", "is empty"},
        {MODEL_CALL_LOCK, "key", SIZE, 0, NULL, "KEY_EMPTY", "is empty"},
        {MODEL_CALL_LOCK, "key", SIZE, 255, NULL, NULL, NULL},
        {MODEL_CALL_LOCK, "key", SIZE, 256, NULL, "KEY_TOO_LONG", "256"},
        {MODEL_CALL_UNLOCK, "key", SIZE, 256, NULL, "KEY_TOO_LONG", "256"},
        {MODEL_CALL_ROUTE, "key", SIZE, 0, NULL, "KEY_EMPTY", "is empty"},
        {MODEL_CALL_ROUTE, "key", SIZE, 256, NULL, "KEY_TOO_LONG", "256"},
        {MODEL_CALL_ROUTE, "value_size", NUMBER, MODEL_VALUE_MAX, NULL, NULL, NULL},
        {MODEL_CALL_ROUTE, "value_size", NUMBER, MODEL_VALUE_MAX + 1, NULL, "VALUE_TOO_LARGE",
         "is 1048577 bytes, valid are 0 to 1048576"},
        {MODEL_CALL_WATCH_ROUTES, "prefix", SIZE, 0, NULL, NULL, NULL},
        {MODEL_CALL_WATCH_ROUTES, "prefix", SIZE, 255, NULL, NULL, NULL},
        {MODEL_CALL_WATCH_ROUTES, "prefix", SIZE, 256, NULL, "KEY_TOO_LONG", "valid are 0 to 255"},
    };

    run_cases(cases, RT_ARRAY_SIZE(cases));
}

Test(request_invalid, numbers_and_parts)
{
    static const struct field_case cases[] = {
        {MODEL_CALL_SET, "header", ABSENT, 0, NULL, FIELD, "is missing"},
        {MODEL_CALL_STORE, "header", ABSENT, 0, NULL, FIELD, "is missing"},
        {MODEL_CALL_PUT, "header", ABSENT, 0, NULL, FIELD, "is missing"},
        {MODEL_CALL_READ, "header", ABSENT, 0, NULL, FIELD, "is missing"},
        {MODEL_CALL_DELETE, "header", ABSENT, 0, NULL, FIELD, "is missing"},
        {MODEL_CALL_ACTIVATE, "row", ABSENT, 0, NULL, FIELD, "is missing"},
        {MODEL_CALL_READ, "consistency", NUMBER, 0, NULL, NULL, NULL},
        {MODEL_CALL_READ, "consistency", NUMBER, 2, NULL, NULL, NULL},
        {MODEL_CALL_READ, "consistency", NUMBER, 3, NULL, FIELD, "is 3, valid are 0 to 2"},
        {MODEL_CALL_ROUTE, "operation", NUMBER, 0, NULL, FIELD, "is 0, valid are 1 to 5"},
        {MODEL_CALL_ROUTE, "operation", NUMBER, 1, NULL, NULL, NULL},
        {MODEL_CALL_ROUTE, "operation", NUMBER, 5, NULL, NULL, NULL},
        {MODEL_CALL_ROUTE, "operation", NUMBER, 6, NULL, FIELD, "is 6, valid are 1 to 5"},
        {MODEL_CALL_UNLOCK, "lock_token", NUMBER, 0, NULL, FIELD, "is 0, valid are 1 and above"},
        {MODEL_CALL_UNLOCK, "lock_token", NUMBER, 1, NULL, NULL, NULL},
        {MODEL_CALL_LIST_KEYS, "page_size", NUMBER, 1000, NULL, NULL, NULL},
        {MODEL_CALL_LIST_KEYS, "page_size", NUMBER, 1001, NULL, FIELD,
         "is 1001, valid are 0 to 1000"},
        {MODEL_CALL_LIST_INSTANCES, "page_size", NUMBER, 1001, NULL, FIELD, "is 1001"},
        {MODEL_CALL_SET_DISTRIBUTION, "distribution", NUMBER, 0, NULL, FIELD,
         "is 0, valid are 1 to 3"},
        {MODEL_CALL_SET_DISTRIBUTION, "distribution", NUMBER, 1, NULL, NULL, NULL},
        {MODEL_CALL_SET_DISTRIBUTION, "distribution", NUMBER, 3, NULL, NULL, NULL},
        {MODEL_CALL_SET_DISTRIBUTION, "distribution", NUMBER, 4, NULL, FIELD,
         "is 4, valid are 1 to 3"},
        {MODEL_CALL_ESI_LIST, "page_size", NUMBER, 1000, NULL, NULL, NULL},
        {MODEL_CALL_ESI_LIST, "page_size", NUMBER, 1001, NULL, FIELD, "is 1001"},
        {MODEL_CALL_ESI_STATUS, "id", NUMBER, 0, NULL, FIELD, "is 0, valid are 1 and above"},
        {MODEL_CALL_ESI_STATUS, "id", NUMBER, 1, NULL, NULL, NULL},
        {MODEL_CALL_ESI_KILL, "id", NUMBER, 0, NULL, FIELD, "is 0, valid are 1 and above"},
        {MODEL_CALL_ESI_BLOCK, "id", NUMBER, 0, NULL, FIELD, "is 0, valid are 1 and above"},
        {MODEL_CALL_ESI_SUBMIT, "script", SIZE, 0, NULL, FIELD,
         "has 0 bytes, valid are 1 to 1048576"},
        {MODEL_CALL_ESI_SUBMIT, "script", SIZE, MODEL_ESI_SCRIPT_MAX, NULL, NULL, NULL},
        {MODEL_CALL_ESI_SUBMIT, "script", SIZE, MODEL_ESI_SCRIPT_MAX + 1, NULL, FIELD,
         "has 1048577 bytes"},
        {MODEL_CALL_LIST_ENTRIES, "page_size", NUMBER, 1000, NULL, NULL, NULL},
        {MODEL_CALL_LIST_ENTRIES, "page_size", NUMBER, 1001, NULL, FIELD, "is 1001"},
    };

    run_cases(cases, RT_ARRAY_SIZE(cases));
}

static void expect_refused(enum model_call_kind kind, const ProtobufCMessage *message,
                           const char *reason, const char *text)
{
    struct rt_arena arena = {0};
    struct rt_error err = RT_ERROR_INIT;
    struct model_request request;

    cr_assert_eq(wire_request_decode(wire_method_of(kind), message, &arena, &request, &err),
                 RT_INVALID_ARGUMENT);
    cr_assert_str_eq(err.reason, reason);
    cr_assert_str_eq(err.message, text);
    rt_arena_reset(&arena);
}

Test(request_invalid, row_of_activate)
{
    struct rt_arena arena = {0};
    struct model_request request;
    ProtobufCMessage *message;
    const ProtobufCFieldDescriptor *field;
    Redistinto__V1__OwnershipRow *row;

    rig_random_request(&request, MODEL_CALL_ACTIVATE, &arena, 1);
    cr_assert_eq(wire_request_encode(&request, &arena, &message, NULL), RT_OK);
    row = *(Redistinto__V1__OwnershipRow **)find_field(message, "row", &field);
    row->locking = 4;
    expect_refused(MODEL_CALL_ACTIVATE, message, FIELD, "row.locking is 4, valid are 0 to 3");
    row->locking = 0;
    row->key.len = 0;
    expect_refused(MODEL_CALL_ACTIVATE, message, "KEY_EMPTY",
                   "row.key is empty, valid are 1 to 255 bytes");
    rt_arena_reset(&arena);
}

Test(request_invalid, statement_is_missing)
{
    Redistinto__V1__ExecuteRequest message;
    uint8_t id[16] = {1};

    redistinto__v1__execute_request__init(&message);
    message.session_id = (ProtobufCBinaryData){sizeof(id), id};
    expect_refused(
        MODEL_CALL_EXECUTE, &message.base, FIELD,
        "statement is missing, valid are get, set, store, put, read, delete, await_turn");
}

enum {
    ROWS = MODEL_RECONCILE_ROWS_MAX
};

static enum rt_code decode_reconcile(size_t n, size_t n_bytes_of_third, struct rt_error *err)
{
    static Redistinto__V1__HeldRow rows[ROWS + 1];
    static Redistinto__V1__HeldRow *pointers[ROWS + 1];
    static uint8_t key[MODEL_KEY_MAX + 1];
    Redistinto__V1__ReconcileRequest message;
    struct rt_arena arena = {0};
    struct model_request request;
    enum rt_code code;

    redistinto__v1__reconcile_request__init(&message);
    message.name = (char *)"i1";
    for (size_t i = 0; i < n; i++) {
        redistinto__v1__held_row__init(&rows[i]);
        rows[i].key = (ProtobufCBinaryData){i == 3 ? n_bytes_of_third : 1, key};
        pointers[i] = &rows[i];
    }
    message.n_rows = n;
    message.rows = pointers;
    code = wire_request_decode(wire_method_of(MODEL_CALL_RECONCILE), &message.base, &arena,
                               &request, err);
    if (code == RT_OK)
        cr_assert_eq(request.reconcile.n_rows, n);
    rt_arena_reset(&arena);
    return code;
}

Test(request_invalid, rows_of_reconcile)
{
    struct rt_error err = RT_ERROR_INIT;

    cr_assert_eq(decode_reconcile(ROWS, 255, &err), RT_OK);
    cr_assert_eq(decode_reconcile(ROWS + 1, 255, &err), RT_INVALID_ARGUMENT);
    cr_assert_str_eq(err.message, "rows has 513 items, valid are 0 to 512");
    cr_assert_eq(decode_reconcile(ROWS, 256, &err), RT_INVALID_ARGUMENT);
    cr_assert_str_eq(err.message, "rows[3].key has 256 bytes, valid are 1 to 255");
}

static enum rt_code decode_pull(size_t n, size_t n_bytes_of_third, struct rt_error *err)
{
    static ProtobufCBinaryData keys[ROWS + 1];
    static uint8_t key[MODEL_KEY_MAX + 1];
    Redistinto__V1__PullRowsRequest message;
    struct rt_arena arena = {0};
    struct model_request request;
    enum rt_code code;

    redistinto__v1__pull_rows_request__init(&message);
    message.name = (char *)"i1";
    for (size_t i = 0; i < n; i++)
        keys[i] = (ProtobufCBinaryData){i == 3 ? n_bytes_of_third : 1, key};
    message.n_keys = n;
    message.keys = keys;
    code = wire_request_decode(wire_method_of(MODEL_CALL_PULL_ROWS), &message.base, &arena,
                               &request, err);
    rt_arena_reset(&arena);
    return code;
}

Test(request_invalid, keys_of_pull_rows)
{
    struct rt_error err = RT_ERROR_INIT;

    cr_assert_eq(decode_pull(ROWS, 255, &err), RT_OK);
    cr_assert_eq(decode_pull(ROWS + 1, 255, &err), RT_INVALID_ARGUMENT);
    cr_assert_str_eq(err.message, "keys has 513 items, valid are 0 to 512");
    cr_assert_eq(decode_pull(4, 0, &err), RT_INVALID_ARGUMENT);
    cr_assert_str_eq(err.message, "keys[3] is empty, valid are 1 to 255 bytes");
}

static enum rt_code decode_renew(size_t n, size_t n_bytes_of_third, struct rt_error *err)
{
    static Redistinto__V1__EvictedKey keys[MODEL_EVICTED_MAX + 1];
    static Redistinto__V1__EvictedKey *pointers[MODEL_EVICTED_MAX + 1];
    static uint8_t key[MODEL_KEY_MAX + 1];
    static uint8_t id[16] = {1};
    Redistinto__V1__RenewRequest message;
    struct rt_arena arena = {0};
    struct model_request request;
    enum rt_code code;

    redistinto__v1__renew_request__init(&message);
    message.name = (char *)"i1";
    message.boot_id = (ProtobufCBinaryData){sizeof(id), id};
    message.store_id = message.boot_id;
    for (size_t i = 0; i < n; i++) {
        redistinto__v1__evicted_key__init(&keys[i]);
        keys[i].key = (ProtobufCBinaryData){i == 3 ? n_bytes_of_third : 1, key};
        pointers[i] = &keys[i];
    }
    message.n_evicted = n;
    message.evicted = pointers;
    code =
        wire_request_decode(wire_method_of(MODEL_CALL_RENEW), &message.base, &arena, &request, err);
    if (code == RT_OK)
        cr_assert_eq(request.renew.n_evicted, n);
    rt_arena_reset(&arena);
    return code;
}

Test(request_invalid, evicted_keys_of_renew)
{
    struct rt_error err = RT_ERROR_INIT;

    cr_assert_eq(decode_renew(MODEL_EVICTED_MAX, 255, &err), RT_OK);
    cr_assert_eq(decode_renew(MODEL_EVICTED_MAX + 1, 255, &err), RT_INVALID_ARGUMENT);
    cr_assert_str_eq(err.message, "evicted has 1025 items, valid are 0 to 1024");
    cr_assert_eq(decode_renew(4, 256, &err), RT_INVALID_ARGUMENT);
    cr_assert_str_eq(err.message, "evicted[3].key has 256 bytes, valid are 1 to 255");
}

Test(request_invalid, error_may_be_null)
{
    Redistinto__V1__LeaveRequest message;
    struct rt_arena arena = {0};
    struct model_request request;

    redistinto__v1__leave_request__init(&message);
    cr_assert_eq(wire_request_decode(wire_method_of(MODEL_CALL_LEAVE), &message.base, &arena,
                                     &request, NULL),
                 RT_INVALID_ARGUMENT);
    rt_arena_reset(&arena);
}
