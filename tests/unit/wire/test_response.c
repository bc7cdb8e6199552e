/*
 * Answers there and back: results, failures of both sorts, answers that break the rules.
 */
#include "runtime/wire/response.h"

#include "redistinto/v1/admin.pb-c.h"
#include "redistinto/v1/coordinator.pb-c.h"
#include "redistinto/v1/instance.pb-c.h"
#include "redistinto/v1/registry.pb-c.h"
#include "tests/support/check.h"
#include "tests/unit/wire/rig.h"

enum {
    ROUNDS = 100
};

TestSuite(response, .fini = test_alloc_expect_none);

static bool is_exchange(int kind)
{
    return wire_shape_has_exchange(wire_method_of(kind)->shape);
}

/* What the caller sees of `sent`. */
static void exchange(int kind, const struct model_response *sent, struct rt_arena *arena,
                     struct model_response *ret_got)
{
    struct rt_error err = RT_ERROR_INIT;
    ProtobufCMessage *message = NULL;
    enum rt_code code = wire_response_encode(kind, sent, arena, &message, &err);

    memset(ret_got, 0xa5, sizeof(*ret_got));
    if (code == RT_OK) {
        wire_response_decode(kind, rig_transfer(message, arena), NULL, arena, ret_got);
        return;
    }
    cr_assert(!is_exchange(kind));
    cr_assert_eq(code, sent->code);
    cr_assert_eq(err.code, sent->code);
    wire_response_decode(kind, NULL, &err, arena, ret_got);
}

static void expect_same(int kind, enum rt_code code, uint64_t seed)
{
    struct rt_arena arena = {0};
    struct model_response sent;
    struct model_response got;

    rig_random_response(&sent, kind, code, &arena, seed);
    exchange(kind, &sent, &arena, &got);
    cr_assert_eq(got.code, sent.code, "%s: %s", model_call_kind_name(kind), got.error.message);
    cr_assert_str_eq(rig_response_text(&got, kind, &arena), rig_response_text(&sent, kind, &arena));
    rt_arena_reset(&arena);
}

Test(response, every_result_arrives_as_it_was)
{
    for (int kind = 0; kind < MODEL_N_CALL_KINDS; kind++)
        for (uint64_t seed = 0; seed < ROUNDS; seed++)
            expect_same(kind, RT_OK, seed);
}

Test(response, every_failure_arrives_as_it_was)
{
    for (int kind = 0; kind < MODEL_N_CALL_KINDS; kind++)
        for (int code = RT_CANCELLED; code <= RT_UNAUTHENTICATED; code++)
            expect_same(kind, (enum rt_code)code, (uint64_t)code);
}

Test(response, streams_repeat_the_number)
{
    for (int kind = 0; kind < MODEL_N_CALL_KINDS; kind++) {
        struct rt_arena arena = {0};
        struct model_response response;
        ProtobufCMessage *message;

        if (!is_exchange(kind))
            continue;
        rig_random_response(&response, kind, RT_ABORTED, &arena, 1);
        cr_assert_eq(wire_response_encode(kind, &response, &arena, &message, NULL), RT_OK);
        wire_response_set_exchange_id(message, UINT64_MAX - 1);
        cr_assert_eq(wire_response_exchange_id(rig_transfer(message, &arena)), UINT64_MAX - 1);
        rt_arena_reset(&arena);
    }
}

static void encode_in_every_arena(int kind, enum rt_code code, uint64_t seed)
{
    struct rt_arena source = {0};
    struct model_response response;
    bool done = false;

    rig_random_response(&response, kind, code, &source, seed);
    for (size_t limit = 1; !done; limit += 16) {
        struct rt_arena arena = {.limit = limit};
        struct rt_error err = RT_ERROR_INIT;
        ProtobufCMessage *message = NULL;
        enum rt_code result = wire_response_encode(kind, &response, &arena, &message, &err);

        if (code != RT_OK && !is_exchange(kind)) {
            cr_assert_eq(result, code);
            done = err.detail.size > 0;
        } else {
            cr_assert(result == RT_OK || result == RT_RESOURCE_EXHAUSTED);
            cr_assert_eq(err.detail.size, 0, "the caller has to see MAYBE");
            done = result == RT_OK;
            cr_assert_eq(done, message != NULL);
        }
        rt_arena_reset(&arena);
        cr_assert_lt(limit, 1u << 20);
    }
    rt_arena_reset(&source);
}

Test(response, full_arena_while_encoding)
{
    for (int kind = 0; kind < MODEL_N_CALL_KINDS; kind++)
        for (uint64_t seed = 0; seed < 5; seed++) {
            encode_in_every_arena(kind, RT_OK, seed);
            encode_in_every_arena(kind, RT_UNAVAILABLE, seed);
        }
}

Test(response, full_arena_while_decoding_a_list)
{
    struct rt_arena arena = {0};
    struct rt_arena small = {.limit = 1};
    struct model_row row = {.key = RT_BYTES_LITERAL("k")};
    struct model_response response = {.code = RT_OK, .pull_rows = {&row, 1}};
    ProtobufCMessage *message;

    cr_assert_eq(wire_response_encode(MODEL_CALL_PULL_ROWS, &response, &arena, &message, NULL),
                 RT_OK);
    wire_response_decode(MODEL_CALL_PULL_ROWS, message, NULL, &small, &response);
    cr_assert_eq(response.code, RT_INTERNAL);
    cr_assert_eq(response.error.applied, MODEL_APPLIED_MAYBE);
    rt_arena_reset(&arena);
}

Test(response, answer_to_an_operation_needs_no_memory_but_the_arena)
{
    struct rt_arena source = {0};
    struct rt_arena arena = {0};
    struct model_response response;
    ProtobufCMessage *message;
    size_t before;

    rig_random_response(&response, MODEL_CALL_SET, RT_OK, &source, 1);
    cr_assert_not_null(rt_arena_alloc(&arena, 1024), "the decoded request");
    before = test_alloc_total();
    cr_assert_eq(wire_response_encode(MODEL_CALL_SET, &response, &arena, &message, NULL), RT_OK);
    cr_assert_eq(test_alloc_total(), before);
    rt_arena_reset(&arena);
    rt_arena_reset(&source);
}

/* ---- failures ---- */

Test(response, failure_without_details_is_maybe)
{
    struct rt_arena arena = {0};
    struct rt_error err = {.code = RT_UNAVAILABLE, .reason = "NOT_OWNER", .message = "applied NO"};
    struct model_response got;

    wire_response_decode(MODEL_CALL_SET, NULL, &err, &arena, &got);
    cr_assert_eq(got.code, RT_UNAVAILABLE);
    cr_assert_eq(got.error.reason, MODEL_REASON_NONE);
    cr_assert_eq(got.error.applied, MODEL_APPLIED_MAYBE);
    cr_assert_str_eq(got.error.message, "applied NO");
    cr_assert_eq(got.responder.name[0], '\0');
    rt_arena_reset(&arena);
}

Test(response, code_without_meaning_is_unknown)
{
    static const int codes[] = {RT_OK, 17, -1};
    struct rt_arena arena = {0};

    for (size_t i = 0; i < RT_ARRAY_SIZE(codes); i++) {
        struct rt_error err = {.code = (enum rt_code)codes[i]};
        struct model_response got;

        wire_response_decode(MODEL_CALL_SET, NULL, &err, &arena, &got);
        cr_assert_eq(got.code, RT_UNKNOWN);
        cr_assert_eq(got.error.applied, MODEL_APPLIED_MAYBE);
    }
    rt_arena_reset(&arena);
}

Test(response, reason_reaches_the_status)
{
    struct rt_arena arena = {0};
    struct rt_error err = RT_ERROR_INIT;
    struct model_response response = {0};
    ProtobufCMessage *message;

    model_response_fail(&response, MODEL_REASON_NOT_OWNER, "not %s", "mine");
    cr_assert_eq(wire_response_encode(MODEL_CALL_SET, &response, &arena, &message, &err),
                 RT_FAILED_PRECONDITION);
    cr_assert_str_eq(err.reason, "NOT_OWNER");
    cr_assert_str_eq(err.message, "not mine");
    cr_assert_gt(err.detail.size, 0);
    model_response_fail(&response, MODEL_REASON_NONE, "?");
    cr_assert_eq(wire_response_encode(MODEL_CALL_SET, &response, &arena, &message, &err),
                 RT_INTERNAL);
    cr_assert_null(err.reason);
    cr_assert_eq(wire_response_encode(MODEL_CALL_SET, &response, &arena, &message, NULL),
                 RT_INTERNAL);
    rt_arena_reset(&arena);
}

Test(response, refusal_of_a_request)
{
    struct rt_error err = RT_ERROR_INIT;
    struct model_response response = {.responder = {.name = "i1"}};

    (void)rt_fail_reason(&err, RT_INVALID_ARGUMENT, "KEY_EMPTY", "key is empty");
    wire_response_refuse(&response, &err);
    cr_assert_eq(response.code, RT_INVALID_ARGUMENT);
    cr_assert_eq(response.error.reason, MODEL_REASON_KEY_EMPTY);
    cr_assert_eq(response.error.applied, MODEL_APPLIED_NO);
    cr_assert_str_eq(response.error.message, "key is empty");
    cr_assert_str_eq(response.responder.name, "i1");

    (void)rt_fail(&err, RT_UNAVAILABLE, "no reason");
    wire_response_refuse(&response, &err);
    cr_assert_eq(response.code, RT_UNAVAILABLE);
    cr_assert_eq(response.error.reason, MODEL_REASON_NONE);
    cr_assert_eq(response.error.applied, MODEL_APPLIED_MAYBE);
}

Test(response, stream_error_without_routing_is_maybe)
{
    struct rt_arena arena = {0};
    Redistinto__V1__ExecuteResponse message;
    Redistinto__V1__Responder responder;
    Redistinto__V1__Error error;
    struct model_response got;

    redistinto__v1__execute_response__init(&message);
    redistinto__v1__responder__init(&responder);
    redistinto__v1__error__init(&error);
    responder.name = (char *)"i7";
    error.code = RT_ABORTED;
    error.message = (char *)"m\xff";
    message.responder = &responder;
    message.outcome_case = REDISTINTO__V1__EXECUTE_RESPONSE__OUTCOME_ERROR;
    message.error = &error;
    wire_response_decode(MODEL_CALL_EXECUTE, &message.base, NULL, &arena, &got);
    cr_assert_eq(got.code, RT_ABORTED);
    cr_assert_eq(got.error.applied, MODEL_APPLIED_MAYBE);
    cr_assert_str_eq(got.error.message, "m?");
    cr_assert_str_eq(got.responder.name, "i7");
    rt_arena_reset(&arena);
}

Test(response, responder_outside_of_routing_is_kept)
{
    struct rt_arena arena = {0};
    struct model_response sent = {.responder = {.name = "i7", .term = 3}};
    struct model_response got;
    ProtobufCMessage *message;

    model_response_fail(&sent, MODEL_REASON_MOVING, "wait");
    cr_assert_eq(wire_response_encode(MODEL_CALL_EXECUTE, &sent, &arena, &message, NULL), RT_OK);
    ((Redistinto__V1__ExecuteResponse *)message)->error->routing->responder = NULL;
    wire_response_decode(MODEL_CALL_EXECUTE, message, NULL, &arena, &got);
    cr_assert_eq(got.error.reason, MODEL_REASON_MOVING);
    cr_assert_str_eq(got.responder.name, "i7");
    cr_assert_eq(got.responder.term, 3);
    rt_arena_reset(&arena);
}

/* ---- answers that break the rules ---- */

static void expect_malformed(int kind, const ProtobufCMessage *message, const char *text)
{
    struct rt_arena arena = {0};
    struct model_response got;

    wire_response_decode(kind, message, NULL, &arena, &got);
    cr_assert_eq(got.code, RT_INTERNAL);
    cr_assert_eq(got.error.reason, MODEL_REASON_NONE);
    cr_assert_eq(got.error.applied, MODEL_APPLIED_MAYBE);
    cr_assert_not_null(strstr(got.error.message, text), "'%s' lacks '%s'", got.error.message, text);
    rt_arena_reset(&arena);
}

Test(response, stream_without_outcome)
{
    Redistinto__V1__ExecuteResponse execute;
    Redistinto__V1__KeepAliveResponse keep_alive;
    Redistinto__V1__ReconcileResponse reconcile;

    redistinto__v1__execute_response__init(&execute);
    redistinto__v1__keep_alive_response__init(&keep_alive);
    redistinto__v1__reconcile_response__init(&reconcile);
    expect_malformed(MODEL_CALL_EXECUTE, &execute.base, "Execute: outcome is missing");
    expect_malformed(MODEL_CALL_KEEP_ALIVE, &keep_alive.base, "outcome is missing");
    expect_malformed(MODEL_CALL_RECONCILE, &reconcile.base, "outcome is missing");
}

Test(response, statement_outcomes_out_of_range)
{
    static const int outcomes[] = {0, 4};
    Redistinto__V1__ExecuteResponse message;
    Redistinto__V1__StatementResult result;

    redistinto__v1__execute_response__init(&message);
    redistinto__v1__statement_result__init(&result);
    message.outcome_case = REDISTINTO__V1__EXECUTE_RESPONSE__OUTCOME_RESULT;
    message.result = &result;
    for (size_t i = 0; i < RT_ARRAY_SIZE(outcomes); i++) {
        result.outcome = (Redistinto__V1__StatementOutcome)outcomes[i];
        expect_malformed(MODEL_CALL_EXECUTE, &message.base, "valid are 1 to 3");
    }
    result.outcome = REDISTINTO__V1__STATEMENT_OUTCOME__STATEMENT_OUTCOME_DONE;
    result.instance = (char *)"a b";
    expect_malformed(MODEL_CALL_EXECUTE, &message.base, "instance 'a b' is no name");
}

Test(response, value_too_large)
{
    static uint8_t bytes[MODEL_VALUE_MAX + 1];
    Redistinto__V1__InstanceServiceReadResponse message;
    Redistinto__V1__KeyResult result;

    redistinto__v1__instance_service_read_response__init(&message);
    redistinto__v1__key_result__init(&result);
    message.result = &result;
    result.optional_value_case = REDISTINTO__V1__KEY_RESULT__OPTIONAL_VALUE_VALUE;
    result.value = (ProtobufCBinaryData){sizeof(bytes), bytes};
    expect_malformed(MODEL_CALL_READ, &message.base, "value has 1048577 bytes");
}

Test(response, answer_without_its_parts_is_empty)
{
    struct rt_arena arena = {0};
    Redistinto__V1__InstanceServiceReadResponse message;
    struct model_response got;

    redistinto__v1__instance_service_read_response__init(&message);
    wire_response_decode(MODEL_CALL_READ, &message.base, NULL, &arena, &got);
    cr_assert_eq(got.code, RT_OK);
    cr_assert(!got.data.has_value);
    cr_assert_eq(got.responder.name[0], '\0');
    rt_arena_reset(&arena);
}

Test(response, instance_state_out_of_range)
{
    Redistinto__V1__AdminServiceListInstancesResponse message;
    Redistinto__V1__InstanceInfo info;
    Redistinto__V1__InstanceInfo *instances[] = {&info};

    redistinto__v1__admin_service_list_instances_response__init(&message);
    redistinto__v1__instance_info__init(&info);
    info.name = (char *)"i1";
    info.address = (char *)"h:1";
    message.n_instances = 1;
    message.instances = instances;
    expect_malformed(MODEL_CALL_LIST_INSTANCES, &message.base,
                     "instances[0].state is 0, valid are 1 to 4");
    info.state = 5;
    expect_malformed(MODEL_CALL_LIST_INSTANCES, &message.base, "instances[0].state is 5");
}

Test(response, lists_over_their_limits)
{
    Redistinto__V1__AdminServiceKeyStatusResponse status;
    Redistinto__V1__AdminServiceListKeysResponse keys;
    Redistinto__V1__PullRowsResponse rows;
    Redistinto__V1__RenewResponse renew;
    Redistinto__V1__WatchRoutesResponse watch;
    Redistinto__V1__InstanceServiceSetResponse set;
    Redistinto__V1__KeyResult result;

    redistinto__v1__instance_service_set_response__init(&set);
    redistinto__v1__key_result__init(&result);
    set.result = &result;
    result.n_evicted = MODEL_EVICTED_MAX + 1;
    expect_malformed(MODEL_CALL_SET, &set.base, "evicted has 1025 items");
    redistinto__v1__admin_service_key_status_response__init(&status);
    redistinto__v1__admin_service_list_keys_response__init(&keys);
    redistinto__v1__pull_rows_response__init(&rows);
    status.n_waiters = MODEL_WAITERS_MAX + 1;
    keys.n_keys = MODEL_PAGE_MAX + 1;
    rows.n_rows = MODEL_RECONCILE_ROWS_MAX + 1;
    expect_malformed(MODEL_CALL_KEY_STATUS, &status.base, "waiters has 1025 items");
    expect_malformed(MODEL_CALL_LIST_KEYS, &keys.base, "keys has 1001 items");
    expect_malformed(MODEL_CALL_PULL_ROWS, &rows.base, "rows has 513 items");
    redistinto__v1__renew_response__init(&renew);
    renew.n_evicted_epochs = MODEL_EVICTED_MAX + 1;
    expect_malformed(MODEL_CALL_RENEW, &renew.base, "evicted_epochs has 1025 items");

    redistinto__v1__watch_routes_response__init(&watch);
    watch.n_keys = MODEL_WATCH_KEYS_MAX + 1;
    expect_malformed(MODEL_CALL_WATCH_ROUTES, &watch.base, "keys has 513 items");
    watch.n_instances = MODEL_MEMBERS_MAX + 1;
    expect_malformed(MODEL_CALL_WATCH_ROUTES, &watch.base, "instances has 1025 items");
}

/* Lists as long as allowed. */
Test(response, lists_at_their_limits)
{
    static struct model_key_info keys[MODEL_PAGE_MAX];
    static struct rt_bytes waiters[MODEL_WAITERS_MAX];
    struct rt_arena arena = {0};
    struct model_response sent = {.code = RT_OK, .list_keys = {keys, MODEL_PAGE_MAX, true}};
    struct model_response got;

    for (size_t i = 0; i < MODEL_PAGE_MAX; i++)
        keys[i].key = RT_BYTES_LITERAL("k");
    exchange(MODEL_CALL_LIST_KEYS, &sent, &arena, &got);
    cr_assert_eq(got.code, RT_OK);
    cr_assert_eq(got.list_keys.n_keys, MODEL_PAGE_MAX);

    for (size_t i = 0; i < MODEL_WAITERS_MAX; i++)
        waiters[i] = RT_BYTES_LITERAL("s");
    sent = (struct model_response){
        .code = RT_OK, .key_status = {.waiters = waiters, .n_waiters = MODEL_WAITERS_MAX}};
    exchange(MODEL_CALL_KEY_STATUS, &sent, &arena, &got);
    cr_assert_eq(got.code, RT_OK);
    cr_assert_eq(got.key_status.n_waiters, MODEL_WAITERS_MAX);

    sent = (struct model_response){.code = RT_OK,
                                   .data = {.evicted = waiters, .n_evicted = MODEL_EVICTED_MAX}};
    exchange(MODEL_CALL_SET, &sent, &arena, &got);
    cr_assert_eq(got.code, RT_OK);
    cr_assert_eq(got.data.n_evicted, MODEL_EVICTED_MAX);
    rt_arena_reset(&arena);
}

Test(response, watch_at_its_limits)
{
    static struct model_watched_instance instances[MODEL_MEMBERS_MAX];
    static struct model_watched_key keys[MODEL_WATCH_KEYS_MAX];
    struct rt_arena arena = {0};
    struct model_response sent = {.code = RT_OK,
                                  .watch_routes = {.instances = instances,
                                                   .n_instances = MODEL_MEMBERS_MAX,
                                                   .keys = keys,
                                                   .n_keys = MODEL_WATCH_KEYS_MAX}};
    struct model_response got;

    for (size_t i = 0; i < MODEL_MEMBERS_MAX; i++) {
        memset(instances[i].name, 'n', MODEL_NAME_MAX);
        memset(instances[i].address, 'a', MODEL_ADDRESS_MAX);
    }
    for (size_t i = 0; i < MODEL_WATCH_KEYS_MAX; i++)
        keys[i].key = RT_BYTES_LITERAL("k");
    exchange(MODEL_CALL_WATCH_ROUTES, &sent, &arena, &got);
    cr_assert_eq(got.code, RT_OK, "%s", got.error.message);
    cr_assert_eq(got.watch_routes.n_instances, MODEL_MEMBERS_MAX);
    cr_assert_eq(got.watch_routes.n_keys, MODEL_WATCH_KEYS_MAX);
    rt_arena_reset(&arena);
}

Test(response, bad_waiter)
{
    char *waiters[] = {(char *)"ok", (char *)""};
    Redistinto__V1__AdminServiceKeyStatusResponse message;

    redistinto__v1__admin_service_key_status_response__init(&message);
    message.n_waiters = 2;
    message.waiters = waiters;
    expect_malformed(MODEL_CALL_KEY_STATUS, &message.base, "waiters[1] '' is no name");
}

/* Whatever bytes come, the answer obeys the limits: it can be encoded again. */
static void decode_mutated(int kind, enum rt_code code, uint64_t seed)
{
    struct rt_arena arena = {0};
    struct model_response response;
    struct model_response again;
    struct rt_rng rng;
    struct rt_bytes bytes;
    ProtobufCMessage *message;

    rt_rng_seed(&rng, seed);
    rig_random_response(&response, kind, code, &arena, seed);
    cr_assert_eq(wire_response_encode(kind, &response, &arena, &message, NULL), RT_OK);
    bytes = rig_pack(message, &arena);
    rig_damage(bytes, &rng);
    message = rig_unpack(wire_method_of(kind)->response, bytes, &arena);
    if (message) {
        wire_response_decode(kind, message, NULL, &arena, &response);
        exchange(kind, &response, &arena, &again);
        cr_assert_eq(again.code, response.code);
    }
    rt_arena_reset(&arena);
}

Test(response, mutated_bytes)
{
    for (int kind = 0; kind < MODEL_N_CALL_KINDS; kind++)
        for (uint64_t seed = 0; seed < 300; seed++) {
            decode_mutated(kind, RT_OK, seed);
            if (is_exchange(kind))
                decode_mutated(kind, RT_ABORTED, seed);
        }
}
