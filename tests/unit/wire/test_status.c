/*
 * Error details: every reason, sizes, garbage.
 */
#include "runtime/wire/status.h"

#include "google/rpc/error_details.pb-c.h"
#include "google/rpc/status.pb-c.h"
#include "tests/support/check.h"
#include "tests/unit/wire/rig.h"

TestSuite(status, .fini = test_alloc_expect_none);

struct parsed {
    struct rt_arena arena;
    struct model_error error;
    struct model_responder responder;
    bool found;
};

static void parse(struct parsed *ret_parsed, struct rt_bytes bytes)
{
    *ret_parsed = (struct parsed){.error = {.message = "kept"}};
    ret_parsed->found =
        wire_status_parse(bytes, &ret_parsed->arena, &ret_parsed->error, &ret_parsed->responder);
}

static struct rt_bytes build(const struct model_response *response, uint8_t bytes[WIRE_STATUS_MAX])
{
    size_t size = wire_status_build(response, bytes);

    cr_assert_leq(size, WIRE_STATUS_MAX);
    return rt_bytes_of(bytes, size);
}

Test(status, every_reason_arrives)
{
    uint8_t bytes[WIRE_STATUS_MAX];

    for (int reason = 0; reason < MODEL_N_REASONS; reason++) {
        struct model_response response = {0};
        struct parsed parsed;

        model_response_fail(&response, (enum model_reason)reason, "because");
        parse(&parsed, build(&response, bytes));
        cr_assert(parsed.found);
        cr_assert_eq(parsed.error.reason, (enum model_reason)reason);
        cr_assert_eq(parsed.error.applied, model_reason_applied((enum model_reason)reason));
        cr_assert_str_eq(parsed.error.message, "kept");
        rt_arena_reset(&parsed.arena);
    }
}

/* Every field at its limit. */
static void fill_largest(struct model_response *ret_response, uint8_t *key, size_t key_size)
{
    struct model_error *error = &ret_response->error;

    memset(ret_response, 0, sizeof(*ret_response));
    memset(key, 0xff, key_size);
    for (int reason = 0; reason < MODEL_N_REASONS; reason++)
        if (strlen(model_reason_name((enum model_reason)reason)) >
            strlen(model_reason_name(error->reason)))
            error->reason = (enum model_reason)reason;
    ret_response->code = RT_UNAUTHENTICATED;
    error->applied = MODEL_APPLIED_NO;
    memset(error->message, '\xff', MODEL_ERROR_MESSAGE_MAX);
    error->key = rt_bytes_of(key, key_size);
    error->request_epoch = error->current_epoch = error->expires_in_ms = UINT64_MAX;
    error->has_hint = true;
    memset(error->hint.name, 'n', MODEL_NAME_MAX);
    memset(error->hint.address, 'a', MODEL_ADDRESS_MAX);
    error->hint.incarnation = error->hint.epoch = UINT64_MAX;
    error->retry_after_ms = UINT32_MAX;
    error->refresh_required = true;
    memset(ret_response->responder.name, 'r', MODEL_NAME_MAX);
    ret_response->responder.incarnation = UINT64_MAX;
    ret_response->responder.term = UINT64_MAX;
    ret_response->responder.placement_version = UINT64_MAX;
}

Test(status, largest_fits_and_arrives)
{
    uint8_t bytes[WIRE_STATUS_MAX];
    uint8_t key[WIRE_ERROR_KEY_MAX];
    struct model_response response;
    struct parsed parsed;

    fill_largest(&response, key, sizeof(key));
    parse(&parsed, build(&response, bytes));
    cr_assert(parsed.found);
    cr_assert(rt_bytes_equal(parsed.error.key, response.error.key));
    cr_assert_str_eq(parsed.error.hint.address, response.error.hint.address);
    cr_assert_eq(parsed.responder.placement_version, UINT64_MAX);
    rt_arena_reset(&parsed.arena);
}

Test(status, longer_key_is_cut)
{
    static uint8_t key[100000];
    uint8_t bytes[WIRE_STATUS_MAX];
    struct model_response response;
    struct parsed parsed;

    fill_largest(&response, key, sizeof(key));
    parse(&parsed, build(&response, bytes));
    cr_assert(parsed.found);
    cr_assert_eq(parsed.error.key.size, WIRE_ERROR_KEY_MAX);
    rt_arena_reset(&parsed.arena);
}

Test(status, has_what_other_clients_look_for)
{
    uint8_t bytes[WIRE_STATUS_MAX];
    struct rt_arena arena = {0};
    struct model_response response = {0};
    Google__Rpc__Status *status;
    Google__Rpc__ErrorInfo *info;
    Google__Rpc__RetryInfo *retry;
    Google__Protobuf__Any **items;

    model_response_fail(&response, MODEL_REASON_NOT_SERVING, "caf\xc3\xa9\n");
    response.error.retry_after_ms = 1250;
    status = (Google__Rpc__Status *)rig_unpack(&google__rpc__status__descriptor,
                                               build(&response, bytes), &arena);
    cr_assert_eq(status->code, RT_UNAVAILABLE);
    cr_assert_str_eq(status->message, "caf\?\?\?");
    cr_assert_eq(status->n_details, 3);
    items = status->details;
    cr_assert_str_eq(items[0]->type_url, "type.googleapis.com/google.rpc.ErrorInfo");
    info = (Google__Rpc__ErrorInfo *)rig_unpack(
        &google__rpc__error_info__descriptor,
        rt_bytes_of(items[0]->value.data, items[0]->value.len), &arena);
    cr_assert_str_eq(info->reason, "NOT_SERVING");
    cr_assert_str_eq(info->domain, "redistinto");
    cr_assert_str_eq(items[1]->type_url, "type.googleapis.com/google.rpc.RetryInfo");
    retry = (Google__Rpc__RetryInfo *)rig_unpack(
        &google__rpc__retry_info__descriptor,
        rt_bytes_of(items[1]->value.data, items[1]->value.len), &arena);
    cr_assert_eq(retry->retry_delay->seconds, 1);
    cr_assert_eq(retry->retry_delay->nanos, 250000000);
    cr_assert_str_eq(items[2]->type_url, "type.googleapis.com/redistinto.v1.RoutingError");
    rt_arena_reset(&arena);
}

Test(status, no_retry_info_without_advice)
{
    uint8_t bytes[WIRE_STATUS_MAX];
    struct rt_arena arena = {0};
    struct model_response response = {0};
    Google__Rpc__Status *status;

    model_response_fail(&response, MODEL_REASON_NOT_OWNER, "no");
    status = (Google__Rpc__Status *)rig_unpack(&google__rpc__status__descriptor,
                                               build(&response, bytes), &arena);
    cr_assert_eq(status->n_details, 2);
    rt_arena_reset(&arena);
}

/* ---- what a peer may send ---- */

static void expect_ignored(struct rt_bytes bytes)
{
    struct parsed parsed;

    parse(&parsed, bytes);
    cr_assert(!parsed.found);
    cr_assert_eq(parsed.error.reason, MODEL_REASON_NONE);
    cr_assert_eq(parsed.error.applied, MODEL_APPLIED_MAYBE);
    cr_assert_str_eq(parsed.error.message, "kept");
    cr_assert_eq(parsed.arena.used, 0);
}

/* A Status around one Any. */
static struct rt_bytes wrap(const char *url, struct rt_bytes value, struct rt_arena *arena)
{
    Google__Protobuf__Any any;
    Google__Protobuf__Any *details[] = {&any};
    Google__Rpc__Status status;

    google__protobuf__any__init(&any);
    google__rpc__status__init(&status);
    any.type_url = (char *)url;
    any.value = (ProtobufCBinaryData){value.size, (uint8_t *)value.data};
    status.n_details = 1;
    status.details = details;
    return rig_pack(&status.base, arena);
}

static const char url[] = "type.googleapis.com/redistinto.v1.RoutingError";

Test(status, nothing_empty_foreign_and_garbled_are_ignored)
{
    struct rt_arena arena = {0};

    expect_ignored((struct rt_bytes){0});
    expect_ignored(RT_BYTES_LITERAL("\xff\xff\xff\xff"));
    expect_ignored(wrap("type.googleapis.com/other.Thing", RT_BYTES_LITERAL(""), &arena));
    expect_ignored(wrap(url, RT_BYTES_LITERAL("\x0a\x7f"), &arena));
    rt_arena_reset(&arena);
}

Test(status, size_limit)
{
    static uint8_t padding[WIRE_STATUS_READ_MAX];
    struct rt_arena arena = {0};
    Redistinto__V1__RoutingError routing;
    Google__Rpc__Status status;
    Google__Protobuf__Any any[2];
    Google__Protobuf__Any *details[] = {&any[0], &any[1]};
    struct rt_bytes value;
    struct rt_bytes bytes;
    struct parsed parsed;

    redistinto__v1__routing_error__init(&routing);
    routing.reason = (char *)"MOVING";
    value = rig_pack(&routing.base, &arena);
    google__rpc__status__init(&status);
    google__protobuf__any__init(&any[0]);
    google__protobuf__any__init(&any[1]);
    any[0].value = (ProtobufCBinaryData){sizeof(padding) - 100, padding};
    any[1].type_url = (char *)url;
    any[1].value = (ProtobufCBinaryData){value.size, (uint8_t *)value.data};
    status.n_details = 2;
    status.details = details;
    any[0].value.len += WIRE_STATUS_READ_MAX - protobuf_c_message_get_packed_size(&status.base);
    bytes = rig_pack(&status.base, &arena);
    cr_assert_eq(bytes.size, WIRE_STATUS_READ_MAX);
    parse(&parsed, bytes);
    cr_assert(parsed.found);
    cr_assert_eq(parsed.error.reason, MODEL_REASON_MOVING);
    rt_arena_reset(&parsed.arena);

    any[0].value.len++;
    expect_ignored(rig_pack(&status.base, &arena));
    rt_arena_reset(&arena);
}

Test(status, thousands_of_empty_details_stay_within_the_memory_limit)
{
    static uint8_t bytes[WIRE_STATUS_READ_MAX];

    for (size_t i = 0; i < sizeof(bytes); i += 2)
        bytes[i] = 0x1a; /* field 3, length 0 */
    expect_ignored(rt_bytes_of(bytes, sizeof(bytes)));
}

Test(status, unknown_reason_keeps_the_promise)
{
    struct rt_arena arena = {0};
    Redistinto__V1__RoutingError routing;
    struct parsed parsed;

    redistinto__v1__routing_error__init(&routing);
    routing.reason = (char *)"INVENTED_LATER";
    routing.applied = REDISTINTO__V1__APPLIED__APPLIED_NO;
    parse(&parsed, wrap(url, rig_pack(&routing.base, &arena), &arena));
    cr_assert(parsed.found);
    cr_assert_eq(parsed.error.reason, MODEL_REASON_NONE);
    cr_assert_eq(parsed.error.applied, MODEL_APPLIED_NO);
    rt_arena_reset(&parsed.arena);
    rt_arena_reset(&arena);
}

Test(status, only_no_means_no)
{
    static const int values[] = {0, 2, 3, -1};
    struct rt_arena arena = {0};

    for (size_t i = 0; i < RT_ARRAY_SIZE(values); i++) {
        Redistinto__V1__RoutingError routing;
        struct parsed parsed;

        redistinto__v1__routing_error__init(&routing);
        routing.reason = (char *)"NOT_OWNER";
        routing.applied = (Redistinto__V1__Applied)values[i];
        parse(&parsed, wrap(url, rig_pack(&routing.base, &arena), &arena));
        cr_assert(parsed.found);
        cr_assert_eq(parsed.error.applied, MODEL_APPLIED_MAYBE);
        rt_arena_reset(&parsed.arena);
    }
    rt_arena_reset(&arena);
}

Test(status, broken_parts_spoil_the_whole)
{
    static uint8_t key[WIRE_ERROR_KEY_MAX + 1];
    struct rt_arena arena = {0};
    Redistinto__V1__RoutingError routing;
    Redistinto__V1__Responder responder;
    Redistinto__V1__Hint hint;

    redistinto__v1__routing_error__init(&routing);
    redistinto__v1__responder__init(&responder);
    redistinto__v1__hint__init(&hint);
    routing.applied = REDISTINTO__V1__APPLIED__APPLIED_NO;
    routing.key = (ProtobufCBinaryData){sizeof(key), key};
    expect_ignored(wrap(url, rig_pack(&routing.base, &arena), &arena));
    routing.key.len = 0;

    routing.responder = &responder;
    responder.name = (char *)"a b";
    expect_ignored(wrap(url, rig_pack(&routing.base, &arena), &arena));
    routing.responder = NULL;

    routing.hint = &hint;
    hint.address = (char *)"h:1";
    expect_ignored(wrap(url, rig_pack(&routing.base, &arena), &arena));
    hint.name = (char *)"i1";
    hint.address = (char *)"";
    expect_ignored(wrap(url, rig_pack(&routing.base, &arena), &arena));
    rt_arena_reset(&arena);
}

Test(status, no_memory_is_no_details)
{
    uint8_t bytes[WIRE_STATUS_MAX];
    struct model_response response = {0};
    struct rt_bytes detail;
    size_t countdown = 0;
    size_t failures;

    model_response_fail(&response, MODEL_REASON_MOVING, "wait");
    detail = build(&response, bytes);
    do {
        struct parsed parsed;

        failures = test_alloc_failures();
        test_alloc_fail_after(countdown++, 1);
        parse(&parsed, detail);
        test_alloc_fail_never();
        cr_assert_eq(parsed.found, test_alloc_failures() == failures);
        rt_arena_reset(&parsed.arena);
    } while (test_alloc_failures() > failures);
    cr_assert_gt(countdown, 2);
}

Test(status, garbage)
{
    uint8_t bytes[WIRE_STATUS_MAX];
    struct rt_rng rng;

    rt_rng_seed(&rng, 20260101);
    for (unsigned round = 0; round < 20000; round++) {
        struct rt_arena arena = {0};
        struct model_response response;
        struct parsed parsed;
        size_t size;

        rig_random_response(&response, MODEL_CALL_SET, RT_ABORTED, &arena, round);
        size = wire_status_build(&response, bytes);
        rig_damage(rt_bytes_of(bytes, size), &rng);
        if (rt_rng_below(&rng, 4) == 0)
            size = rt_rng_below(&rng, size);
        parse(&parsed, rt_bytes_of(bytes, size));
        if (parsed.found) {
            cr_assert_leq(parsed.error.key.size, WIRE_ERROR_KEY_MAX);
            cr_assert_lt(parsed.error.reason, MODEL_N_REASONS);
            response.error = parsed.error;
            response.responder = parsed.responder;
            cr_assert_leq(wire_status_build(&response, bytes), WIRE_STATUS_MAX);
        }
        rt_arena_reset(&parsed.arena);
        rt_arena_reset(&arena);
    }
}
