/*
 * Limits of a server, each at the limit and one beyond: message bytes, decoded bytes, metadata,
 * calls and streams at once, the deadline of those who send none.
 */
#include <string.h>

#include "runtime/base/alloc.h"
#include "tests/support/check.h"
#include "tests/unit/rpc/rig.h"

TestSuite(limits, .fini = test_alloc_expect_none, .timeout = 50);

static struct rig rig;
static struct answer answer;

/* An Item whose serialized form has exactly `size` bytes. */
static enum rt_code call_of_size(size_t size)
{
    uint8_t *data = rt_xalloc(size);
    Rpctest__V1__Item item;
    size_t packed;
    enum rt_code code;

    item_init(&item, ECHO_REPLY, data, size - 10);
    packed = protobuf_c_message_get_packed_size(&item.base);
    item.data.len += size - packed;
    cr_assert_eq(protobuf_c_message_get_packed_size(&item.base), size);
    code = rig_call(&rig, "Unary", &item, 30000, &answer);
    (void)rt_free(data);
    return code;
}

Test(limits, message_of_4_mib_passes_and_one_byte_more_does_not)
{
    rig_init(&rig, NULL);
    cr_assert_eq(call_of_size(RPC_DEFAULT_MAX_MESSAGE_BYTES), RT_OK, "%s", answer.message);
    cr_assert_gt(answer.data_size, 4000000);
    cr_assert_eq(call_of_size(RPC_DEFAULT_MAX_MESSAGE_BYTES + 1), RT_RESOURCE_EXHAUSTED);
    cr_assert_eq(rig_command(&rig, ECHO_REPLY, "", &answer), RT_OK);
    rig_deinit(&rig);
}

Test(limits, message_limit_is_settable)
{
    struct rpc_server_options options = {.max_message_bytes = 1000};

    rig_init(&rig, &options);
    cr_assert_eq(call_of_size(1000), RT_OK);
    cr_assert_eq(call_of_size(1001), RT_RESOURCE_EXHAUSTED);
    rig_deinit(&rig);
}

static enum rt_code call_with_words(size_t n_words)
{
    ProtobufCBinaryData *words = rt_xalloc(n_words * sizeof(*words));
    Rpctest__V1__Item item;
    enum rt_code code;

    item_init(&item, ECHO_USER, NULL, 0);
    item.words = words;
    item.n_words = n_words;
    code = rig_call(&rig, "Unary", &item, 30000, &answer);
    (void)rt_free(words);
    return code;
}

Test(limits, decoded_form_is_capped)
{
    struct rpc_server_options options = {.max_arena_bytes = 16 * 1024};

    rig_init(&rig, &options);
    cr_assert_eq(call_with_words(100), RT_OK);
    cr_assert_eq(call_with_words(100000), RT_RESOURCE_EXHAUSTED);
    cr_assert_eq(call_with_words(100), RT_OK);
    rig_deinit(&rig);
}

static enum rt_code call_with_metadata(size_t size)
{
    char *value = rt_xalloc(size + 1);
    struct rpc_client_metadata metadata = {"x-large", rt_bytes_of(value, size)};
    struct rpc_client_options options = {
        .timeout_ms = 10000, .metadata = &metadata, .n_metadata = 1};
    struct rpc_client_method method;
    Rpctest__V1__Item item;

    memset(value, 'v', size);
    rpc_client_method_of(&rpctest__v1__echo_service__descriptor, "Unary", &method);
    item_init(&item, ECHO_REPLY, NULL, 0);
    answer_init(&answer, &rig);
    rpc_client_call(rig.channel, &method, &item.base, &options, on_answer, &answer);
    latch_wait(&answer.latch, 1);
    (void)rt_free(value);
    return answer.code;
}

/* The limit counts all headers of the call, core's user-agent too: the edge is found by bisection.
 * A refusal must not cost the connection, which the call that is held would notice. */
Test(limits, metadata_up_to_8_kib)
{
    struct rpc_client_options options = {.timeout_ms = 30000};
    struct rpc_client_method method;
    struct answer held;
    Rpctest__V1__Item item;
    size_t passes = 7168;
    size_t fails = 8192;

    rig_init(&rig, NULL);
    rpc_client_method_of(&rpctest__v1__echo_service__descriptor, "Unary", &method);
    item_init(&item, ECHO_HOLD, NULL, 0);
    answer_init(&held, &rig);
    rpc_client_call(rig.channel, &method, &item.base, &options, on_answer, &held);
    cr_assert_eq(call_with_metadata(passes), RT_OK, "%s", answer.message);
    cr_assert_eq(call_with_metadata(fails), RT_RESOURCE_EXHAUSTED, "%s", answer.message);
    while (fails - passes > 1) {
        size_t middle = (passes + fails) / 2;

        if (call_with_metadata(middle) == RT_OK)
            passes = middle;
        else
            fails = middle;
        cr_assert(answer.code == RT_OK || answer.code == RT_RESOURCE_EXHAUSTED, "%s",
                  answer.message);
    }
    /* x-large is 7 bytes, two headers at least cost 64. */
    cr_assert_leq(passes, 8192u - 7 - 64);
    for (int i = 0; i < 20; i++) {
        cr_assert_eq(call_with_metadata(passes), RT_OK, "%s", answer.message);
        cr_assert_eq(call_with_metadata(fails), RT_RESOURCE_EXHAUSTED, "%s", answer.message);
    }
    cr_assert_eq(call_with_metadata(61440), RT_RESOURCE_EXHAUSTED, "%s", answer.message);
    latch_wait(&rig.echo.holds, 1);
    rig_answer_held(&rig);
    latch_wait(&held.latch, 1);
    cr_assert_eq(held.code, RT_OK, "%s", held.message);
    rig_deinit(&rig);
}

static void start_call(const char *name, enum echo_command command, struct answer *ret_answer)
{
    struct rpc_client_options options = {.timeout_ms = 30000};
    struct rpc_client_method method;
    Rpctest__V1__Item item;

    rpc_client_method_of(&rpctest__v1__echo_service__descriptor, name, &method);
    item_init(&item, command, NULL, 0);
    answer_init(ret_answer, &rig);
    rpc_client_call(rig.channel, &method, &item.base, &options, on_answer, ret_answer);
}

Test(limits, calls_at_once)
{
    struct rpc_server_options options = {.max_calls = 2};
    struct answer held[2];

    rig_init(&rig, &options);
    for (unsigned i = 0; i < 2; i++)
        start_call("Unary", ECHO_HOLD, &held[i]);
    latch_wait(&rig.echo.holds, 2);
    cr_assert_eq(rig_command(&rig, ECHO_REPLY, "", &answer), RT_RESOURCE_EXHAUSTED);
    latch_wait(&rig.failures, 1);
    rig_answer_held(&rig);
    for (unsigned i = 0; i < 2; i++) {
        latch_wait(&held[i].latch, 1);
        cr_assert_eq(held[i].code, RT_OK);
    }
    rig_deinit(&rig);
}

static void on_stream_done(struct rpc_client_stream *stream, const struct rt_error *err, void *ctx)
{
    struct answer *ret = ctx;

    (void)stream;
    ret->code = err ? err->code : RT_OK;
    latch_add(&ret->latch);
}

static const struct rpc_client_stream_handlers handlers = {.on_done = on_stream_done};

static struct rpc_client_stream *open_stream(struct answer *ret_answer)
{
    struct rpc_client_options options = {.timeout_ms = 30000};
    struct rpc_client_method method;

    rpc_client_method_of(&rpctest__v1__echo_service__descriptor, "Chat", &method);
    answer_init(ret_answer, &rig);
    return rpc_client_stream_open(rig.channel, &method, &options, &handlers, ret_answer);
}

Test(limits, streams_at_once)
{
    struct rpc_server_options options = {.max_streams = 1};
    struct rpc_client_stream *first;
    struct rpc_client_stream *second;
    struct answer end;

    rig_init(&rig, &options);
    first = open_stream(&end);
    latch_wait(&rig.echo.opened, 1);
    cr_assert_eq(rpc_server_n_streams(rig.server), 1);
    second = open_stream(&answer);
    latch_wait(&answer.latch, 1);
    cr_assert_eq(answer.code, RT_RESOURCE_EXHAUSTED);
    second = rpc_client_stream_unref(second);
    cr_assert_eq(rig_command(&rig, ECHO_REPLY, "", &answer), RT_OK);
    rpc_client_stream_finish_writes(first);
    latch_wait(&end.latch, 1);
    cr_assert_eq(end.code, RT_OK);
    first = rpc_client_stream_unref(first);
    cr_assert_null(first);
    cr_assert_null(second);
    rig_deinit(&rig);
    cr_assert_eq(latch_count(&rig.echo.opened), 1);
}

/* core's client always sends a deadline when it has one; without one the call is open-ended. */
static struct rpc_client_stream *call_without_deadline(const char *name, struct answer *ret_answer)
{
    struct rpc_client_options options = {.timeout_ms = RPC_NO_TIMEOUT};
    struct rpc_client_stream *stream;
    struct rpc_client_method method;
    Rpctest__V1__Item item;

    rpc_client_method_of(&rpctest__v1__echo_service__descriptor, name, &method);
    answer_init(ret_answer, &rig);
    item_init(&item, ECHO_HOLD, NULL, 0);
    stream = rpc_client_stream_open(rig.channel, &method, &options, &handlers, ret_answer);
    cr_assert_eq(rpc_client_stream_send(stream, &item.base), RT_OK);
    rpc_client_stream_finish_writes(stream);
    rpc_client_stream_read_next(stream);
    return stream;
}

Test(limits, call_without_a_deadline_gets_the_default)
{
    struct rpc_server_options options = {.unary_deadline_ms = 200};
    struct rpc_client_stream *first;
    struct rpc_client_stream *second;
    struct answer late;
    const struct rt_env *env;
    uint64_t start_us;

    rig_init(&rig, &options);
    env = rpc_runtime_env(rig.runtime);
    start_us = rt_env_now_us(env);
    first = call_without_deadline("Unary", &answer);
    second = call_without_deadline("Unary", &late);
    latch_wait(&answer.latch, 1);
    latch_wait(&late.latch, 1);
    cr_assert_eq(answer.code, RT_DEADLINE_EXCEEDED);
    cr_assert_eq(late.code, RT_DEADLINE_EXCEEDED);
    cr_assert_geq(rt_env_now_us(env) - start_us, 200000);
    latch_wait(&rig.echo.cancels, 2);
    latch_wait(&rig.failures, 2);
    cr_assert_eq(rig.last_failure.code, RT_DEADLINE_EXCEEDED);
    rig_answer_held(&rig);
    (void)rpc_client_stream_unref(first);
    (void)rpc_client_stream_unref(second);
    rig_deinit(&rig);
}

Test(limits, exempt_method_has_no_deadline)
{
    struct rpc_server_options options = {.unary_deadline_ms = 1};
    struct rpc_client_stream *stream;
    struct rpc_client_stream *other;
    struct answer end;

    rig_init(&rig, &options);
    stream = call_without_deadline("Patient", &answer);
    latch_wait(&rig.echo.holds, 1);
    cr_assert_eq(rpc_call_deadline_us(rig.echo.held[0]), RT_NEVER);
    cr_assert_eq(rpc_call_remaining_ms(rig.echo.held[0]), UINT32_MAX);
    /* A call with the default that starts later is long over, the exempt one is not. */
    other = call_without_deadline("Unary", &end);
    latch_wait(&end.latch, 1);
    cr_assert_eq(end.code, RT_DEADLINE_EXCEEDED);
    cr_assert_eq(latch_count(&answer.latch), 0);
    rig_answer_held(&rig);
    latch_wait(&answer.latch, 1);
    cr_assert_eq(answer.code, RT_OK);
    (void)rpc_client_stream_unref(stream);
    (void)rpc_client_stream_unref(other);
    rig_deinit(&rig);
}

Test(limits, exempt_method_keeps_the_callers_deadline)
{
    Rpctest__V1__Item item;

    rig_init(&rig, NULL);
    item_init(&item, ECHO_HOLD, NULL, 0);
    cr_assert_eq(rig_call(&rig, "Patient", &item, 100, &answer), RT_DEADLINE_EXCEEDED);
    latch_wait(&rig.echo.cancels, 1);
    rig_answer_held(&rig);
    rig_deinit(&rig);
}
