/*
 * Requests there and back, memory and its limits.
 */
#include "runtime/wire/request.h"

#include "tests/support/check.h"
#include "tests/unit/wire/rig.h"

enum {
    ROUNDS = 100
};

TestSuite(request, .fini = test_alloc_expect_none);

Test(request, every_kind_arrives_as_it_was)
{
    for (int kind = 0; kind < MODEL_N_CALL_KINDS; kind++)
        for (uint64_t seed = 0; seed < ROUNDS; seed++) {
            struct rt_arena arena = {0};
            struct rt_error err = RT_ERROR_INIT;
            struct model_request sent;
            struct model_request got;
            ProtobufCMessage *message;

            rig_random_request(&sent, kind, &arena, seed);
            cr_assert_eq(wire_request_encode(&sent, &arena, &message, &err), RT_OK);
            cr_assert_eq(message->descriptor, wire_method_of(kind)->request);
            memset(&got, 0xa5, sizeof(got));
            cr_assert_eq(wire_request_decode(wire_method_of(kind), rig_transfer(message, &arena),
                                             &arena, &got, &err),
                         RT_OK, "%s, seed %llu: %s", model_call_kind_name(kind),
                         (unsigned long long)seed, err.message);
            cr_assert_eq(got.kind, (enum model_call_kind)kind);
            cr_assert_str_eq(rig_request_text(&got, &arena), rig_request_text(&sent, &arena));
            rt_arena_reset(&arena);
        }
}

Test(request, statement_keeps_its_number_and_time)
{
    static const int kinds[] = {MODEL_CALL_EXECUTE, MODEL_CALL_KEEP_ALIVE, MODEL_CALL_RECONCILE};
    struct wire_exchange exchange = {.id = UINT64_MAX, .timeout_ms = UINT32_MAX};
    struct rt_arena arena = {0};

    for (size_t i = 0; i < RT_ARRAY_SIZE(kinds); i++) {
        struct model_request request;
        ProtobufCMessage *message;
        struct wire_exchange got;

        rig_random_request(&request, kinds[i], &arena, 1);
        cr_assert_eq(wire_request_encode(&request, &arena, &message, NULL), RT_OK);
        wire_request_set_exchange(message, &exchange);
        got = wire_request_exchange(rig_transfer(message, &arena));
        cr_assert_eq(got.id, exchange.id);
        cr_assert_eq(got.timeout_ms, exchange.timeout_ms);
    }
    rt_arena_reset(&arena);
}

/* Encodes into arenas that grow by one allocation unit until it works. */
static void encode_in_every_arena(enum model_call_kind kind, uint64_t seed)
{
    struct rt_arena source = {0};
    struct model_request request;
    enum rt_code code = RT_RESOURCE_EXHAUSTED;

    rig_random_request(&request, kind, &source, seed);
    for (size_t limit = 1; code != RT_OK; limit += 16) {
        struct rt_arena arena = {.limit = limit};
        struct rt_error err = RT_ERROR_INIT;
        ProtobufCMessage *message = NULL;

        code = wire_request_encode(&request, &arena, &message, &err);
        cr_assert(code == RT_OK || code == RT_RESOURCE_EXHAUSTED);
        cr_assert_eq(code == RT_OK, message != NULL);
        cr_assert_eq(code, err.code);
        rt_arena_reset(&arena);
        cr_assert_lt(limit, 1u << 20);
    }
    rt_arena_reset(&source);
}

Test(request, full_arena_while_encoding)
{
    for (int kind = 0; kind < MODEL_N_CALL_KINDS; kind++)
        for (uint64_t seed = 0; seed < 5; seed++)
            encode_in_every_arena(kind, seed);
}

Test(request, full_arena_while_decoding_a_list)
{
    static const int kinds[] = {MODEL_CALL_RECONCILE, MODEL_CALL_PULL_ROWS};
    struct rt_arena arena = {0};

    for (size_t i = 0; i < RT_ARRAY_SIZE(kinds); i++) {
        struct rt_arena small = {.limit = 1};
        struct rt_error err = RT_ERROR_INIT;
        struct model_request request;
        struct model_request got;
        ProtobufCMessage *message;
        uint64_t seed = 0;

        do
            rig_random_request(&request, kinds[i], &arena, seed++);
        while (request.kind == MODEL_CALL_RECONCILE ? request.reconcile.n_rows == 0
                                                    : request.pull_rows.n_keys == 0);
        cr_assert_eq(wire_request_encode(&request, &arena, &message, NULL), RT_OK);
        cr_assert_eq(wire_request_decode(wire_method_of(kinds[i]), message, &small, &got, &err),
                     RT_RESOURCE_EXHAUSTED);
        cr_assert_str_eq(err.reason, "LIMIT_REACHED");
    }
    rt_arena_reset(&arena);
}

Test(request, operations_on_keys_are_decoded_without_memory)
{
    static const int kinds[] = {MODEL_CALL_SET,    MODEL_CALL_STORE,  MODEL_CALL_PUT,
                                MODEL_CALL_READ,   MODEL_CALL_DELETE, MODEL_CALL_FENCE,
                                MODEL_CALL_EXECUTE};
    struct rt_arena arena = {0};

    for (size_t i = 0; i < RT_ARRAY_SIZE(kinds); i++) {
        struct rt_arena untouched = {0};
        struct model_request request;
        struct model_request got;
        ProtobufCMessage *message;
        size_t before;

        rig_random_request(&request, kinds[i], &arena, 7);
        cr_assert_eq(wire_request_encode(&request, &arena, &message, NULL), RT_OK);
        before = test_alloc_total();
        cr_assert_eq(wire_request_decode(wire_method_of(kinds[i]), message, &untouched, &got, NULL),
                     RT_OK);
        cr_assert_eq(test_alloc_total(), before);
        cr_assert_eq(untouched.used, 0);
    }
    rt_arena_reset(&arena);
}

Test(request, value_is_borrowed_from_the_message)
{
    struct rt_arena arena = {0};
    struct model_request request;
    struct model_request got;
    ProtobufCMessage *message;

    rig_random_request(&request, MODEL_CALL_SET, &arena, 3);
    cr_assert_eq(wire_request_encode(&request, &arena, &message, NULL), RT_OK);
    cr_assert_eq(wire_request_decode(wire_method_of(MODEL_CALL_SET), message, &arena, &got, NULL),
                 RT_OK);
    cr_assert_eq(got.data.value.data, request.data.value.data);
    cr_assert_eq(got.data.header.key.data, request.data.header.key.data);
    rt_arena_reset(&arena);
}

/* Bytes of peers: decoding never fails in another way than it says, and what it accepts can be
 * encoded again. */
static void decode_mutated(enum model_call_kind kind, uint64_t seed)
{
    struct rt_arena arena = {0};
    struct rt_error err = RT_ERROR_INIT;
    struct rt_rng rng;
    struct model_request request;
    ProtobufCMessage *message;
    struct rt_bytes bytes;
    enum rt_code code;

    rt_rng_seed(&rng, seed);
    rig_random_request(&request, kind, &arena, seed);
    cr_assert_eq(wire_request_encode(&request, &arena, &message, NULL), RT_OK);
    bytes = rig_pack(message, &arena);
    rig_damage(bytes, &rng);
    message = rig_unpack(wire_method_of(kind)->request, bytes, &arena);
    if (message) {
        code = wire_request_decode(wire_method_of(kind), message, &arena, &request, &err);
        cr_assert(code == RT_OK || code == RT_INVALID_ARGUMENT);
        if (code == RT_OK)
            cr_assert_eq(wire_request_encode(&request, &arena, &message, NULL), RT_OK);
        else
            cr_assert_not_null(err.reason);
    }
    rt_arena_reset(&arena);
}

Test(request, mutated_bytes)
{
    for (int kind = 0; kind < MODEL_N_CALL_KINDS; kind++)
        for (uint64_t seed = 0; seed < 500; seed++)
            decode_mutated(kind, seed);
}
