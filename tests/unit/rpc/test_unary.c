/*
 * Unary calls, both ends: answers now and later, errors with details, deadlines, cancellation,
 * metadata, many calls.
 */
#include <stdio.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "tests/support/check.h"
#include "tests/unit/rpc/rig.h"

TestSuite(unary, .fini = test_alloc_expect_none, .timeout = 50);

static struct rig rig;
static struct answer answer;

static void setup(void)
{
    rig_init(&rig, NULL);
}

static void teardown(void)
{
    rig_deinit(&rig);
}

Test(unary, echoes_a_message)
{
    setup();
    cr_assert_eq(rig_command(&rig, ECHO_REPLY, "hello", &answer), RT_OK, "%s", answer.message);
    cr_assert_eq(answer.data_size, 5);
    cr_assert_arr_eq(answer.data, "hello", 5);
    cr_assert_not(answer.was_loop_thread);
    teardown();
}

Test(unary, reply_may_come_from_the_loop_thread)
{
    setup();
    cr_assert_eq(rig_command(&rig, ECHO_LATER, "later", &answer), RT_OK);
    cr_assert_arr_eq(answer.data, "later", 5);
    teardown();
}

Test(unary, rich_error_comes_back_with_its_bytes_and_is_reported_once)
{
    setup();
    cr_assert_eq(rig_command(&rig, ECHO_FAIL, "\x08\x05 detail", &answer), RT_NOT_FOUND);
    cr_assert_str_eq(answer.message, "failed as asked");
    cr_assert_eq(answer.detail_size, 9);
    cr_assert_arr_eq(answer.detail, "\x08\x05 detail", 9);
    cr_assert_not(answer.never_sent);
    latch_wait(&rig.failures, 1);
    cr_assert_eq(rig.last_failure.code, RT_NOT_FOUND);
    cr_assert(rig.last_failure.has_reason);
    cr_assert(rig.last_failure.has_peer);
    cr_assert_str_eq(rig.last_failure.method, "/rpctest.v1.EchoService/Unary");
    cr_assert_eq(rig_command(&rig, ECHO_REPLY, "", &answer), RT_OK);
    teardown();
    cr_assert_eq(latch_count(&rig.failures), 1);
}

Test(unary, detail_is_kept_up_to_its_limit_and_left_out_above)
{
    Rpctest__V1__Item item;
    uint8_t *detail = rt_xalloc(RPC_ERROR_DETAIL_MAX + 1);

    setup();
    memset(detail, 0xa5, RPC_ERROR_DETAIL_MAX + 1);
    item_init(&item, ECHO_FAIL, detail, RPC_ERROR_DETAIL_MAX);
    cr_assert_eq(rig_call(&rig, "Unary", &item, 10000, &answer), RT_NOT_FOUND);
    cr_assert_eq(answer.detail_size, RPC_ERROR_DETAIL_MAX);
    cr_assert_arr_eq(answer.detail, detail, RPC_ERROR_DETAIL_MAX);
    item_init(&item, ECHO_FAIL, detail, RPC_ERROR_DETAIL_MAX + 1);
    cr_assert_eq(rig_call(&rig, "Unary", &item, 10000, &answer), RT_NOT_FOUND);
    cr_assert_eq(answer.detail_size, 0);
    teardown();
    (void)rt_free(detail);
}

Test(unary, forgotten_answer_is_internal)
{
    setup();
    cr_assert_eq(rig_command(&rig, ECHO_FORGET, "", &answer), RT_INTERNAL);
    teardown();
}

Test(unary, dropping_the_last_reference_ends_the_call)
{
    struct rpc_client_options options = {.timeout_ms = 10000};
    struct rpc_client_method method;
    Rpctest__V1__Item item;

    setup();
    rpc_client_method_of(&rpctest__v1__echo_service__descriptor, "Unary", &method);
    item_init(&item, ECHO_HOLD, NULL, 0);
    answer_init(&answer, &rig);
    rpc_client_call(rig.channel, &method, &item.base, &options, on_answer, &answer);
    latch_wait(&rig.echo.holds, 1);
    rig.echo.n_held = 0;
    (void)rpc_call_unref(rig.echo.held[0]);
    latch_wait(&answer.latch, 1);
    cr_assert_eq(answer.code, RT_INTERNAL);
    teardown();
}

Test(unary, user_area_is_zeroed_for_each_call)
{
    setup();
    for (int i = 0; i < 20; i++) {
        cr_assert_eq(rig_command(&rig, ECHO_USER, "", &answer), RT_OK);
        cr_assert_eq(answer.number, 0);
    }
    teardown();
}

Test(unary, server_sees_the_callers_deadline)
{
    Rpctest__V1__Item item;

    setup();
    item_init(&item, ECHO_DEADLINE, NULL, 0);
    cr_assert_eq(rig_call(&rig, "Unary", &item, 30000, &answer), RT_OK);
    /* The wire rounds a timeout up. */
    cr_assert_leq(answer.number, 31000);
    cr_assert_gt(answer.number, 20000);
    teardown();
}

Test(unary, deadline_expires_on_both_ends)
{
    Rpctest__V1__Item item;

    setup();
    item_init(&item, ECHO_HOLD, NULL, 0);
    /* A busy machine may let a deadline pass before the call is at the server. */
    for (uint32_t timeout_ms = 100; latch_count(&rig.echo.holds) == 0; timeout_ms *= 4)
        cr_assert_eq(rig_call(&rig, "Unary", &item, timeout_ms, &answer), RT_DEADLINE_EXCEEDED);
    latch_wait(&rig.echo.cancels, 1);
    cr_assert(rpc_call_is_cancelled(rig.echo.held[0]));
    latch_wait(&rig.failures, 1);
    rig_answer_held(&rig);
    teardown();
    cr_assert_eq(latch_count(&rig.echo.cancels), latch_count(&rig.echo.holds));
}

Test(unary, client_cancel_is_seen_by_the_server)
{
    struct rpc_client_options options = {.timeout_ms = 30000};
    struct rpc_client_method method;
    struct rpc_client_call *call;
    Rpctest__V1__Item item;

    setup();
    rpc_client_method_of(&rpctest__v1__echo_service__descriptor, "Unary", &method);
    item_init(&item, ECHO_HOLD, NULL, 0);
    answer_init(&answer, &rig);
    call =
        rpc_client_call_cancellable(rig.channel, &method, &item.base, &options, on_answer, &answer);
    latch_wait(&rig.echo.holds, 1);
    cr_assert_not(rpc_call_is_cancelled(rig.echo.held[0]));
    rpc_client_call_cancel(call);
    latch_wait(&answer.latch, 1);
    cr_assert_eq(answer.code, RT_CANCELLED);
    rpc_client_call_cancel(call);
    (void)rpc_client_call_unref(call);
    latch_wait(&rig.echo.cancels, 1);
    latch_wait(&rig.failures, 1);
    cr_assert_eq(rig.last_failure.code, RT_CANCELLED);
    rig_answer_held(&rig);
    teardown();
}

static void on_late_cancel(struct rpc_call *call, void *ctx)
{
    (void)call;
    latch_add(ctx);
}

Test(unary, cancel_callback_that_is_set_late_still_runs)
{
    Rpctest__V1__Item item;
    struct latch late;

    setup();
    latch_init(&late);
    item_init(&item, ECHO_HOLD, NULL, 0);
    cr_assert_eq(rig_call(&rig, "Unary", &item, 50, &answer), RT_DEADLINE_EXCEEDED);
    latch_wait(&rig.echo.cancels, 1);
    rpc_call_set_cancel(rig.echo.held[0], on_late_cancel, &late);
    latch_wait(&late, 1);
    rig_answer_held(&rig);
    teardown();
}

Test(unary, request_and_facts_stay_readable_while_referenced)
{
    Rpctest__V1__Item item;
    struct rt_bytes value;

    setup();
    item_init(&item, ECHO_HOLD, "stays", 5);
    cr_assert_eq(rig_call(&rig, "Unary", &item, 50, &answer), RT_DEADLINE_EXCEEDED);
    latch_wait(&rig.failures, 1);
    cr_assert_leq(rpc_call_remaining_ms(rig.echo.held[0]), 1000);
    cr_assert_not(rpc_call_metadata(rig.echo.held[0], "user-agent", &value));
    cr_assert_eq(rpc_call_add_trailing(rig.echo.held[0], "a", RT_BYTES_LITERAL("b"), NULL),
                 RT_FAILED_PRECONDITION);
    cr_assert_eq(rpc_call_peer(rig.echo.held[0])[0], 'i');
    rig_answer_held(&rig);
    teardown();
}

static enum rt_code call_with_header(const char *key, struct rt_bytes value)
{
    struct rpc_client_metadata metadata = {key, value};
    struct rpc_client_options options = {
        .timeout_ms = 10000, .metadata = &metadata, .n_metadata = 1};
    struct rpc_client_method method;
    Rpctest__V1__Item item;

    rpc_client_method_of(&rpctest__v1__echo_service__descriptor, "Unary", &method);
    item_init(&item, ECHO_METADATA, key, strlen(key));
    answer_init(&answer, &rig);
    rpc_client_call(rig.channel, &method, &item.base, &options, on_answer, &answer);
    latch_wait(&answer.latch, 1);
    return answer.code;
}

Test(unary, metadata_reaches_the_handler)
{
    setup();
    cr_assert_eq(call_with_header("x-test", RT_BYTES_LITERAL("value")), RT_OK);
    cr_assert_eq(answer.number, 1);
    cr_assert_arr_eq(answer.data, "value", 5);
    cr_assert_eq(call_with_header("x-test-bin", RT_BYTES_LITERAL("\x00\xff")), RT_OK);
    cr_assert_eq(answer.data_size, 2);
    cr_assert_eq(rig_command(&rig, ECHO_METADATA, "x-absent", &answer), RT_OK);
    cr_assert_eq(answer.number, 0);
    teardown();
}

Test(unary, illegal_metadata_is_refused_before_it_leaves)
{
    setup();
    cr_assert_eq(call_with_header("Upper", RT_BYTES_LITERAL("x")), RT_INVALID_ARGUMENT);
    cr_assert(answer.never_sent);
    cr_assert(answer.was_loop_thread);
    cr_assert_eq(call_with_header("x-text", RT_BYTES_LITERAL("\x01")), RT_INVALID_ARGUMENT);
    teardown();
}

Test(unary, trailers_have_a_limit)
{
    setup();
    cr_assert_eq(rig_command(&rig, ECHO_TRAILERS, "", &answer), RT_ABORTED);
    cr_assert_str_eq(answer.message, "8 RESOURCE_EXHAUSTED");
    teardown();
}

Test(unary, unknown_methods_and_services_are_refused_fast)
{
    static const char *const paths[] = {"/rpctest.v1.EchoService/Nothing",
                                        "/rpctest.v1.AbsentService/Unary", "/x"};
    struct rpc_client_options options = {.timeout_ms = 30000};
    struct rpc_client_method method;
    Rpctest__V1__Item item;
    const struct rt_env *env;
    uint64_t start_us;

    setup();
    env = rpc_runtime_env(rig.runtime);
    item_init(&item, 0, NULL, 0);
    rpc_client_method_of(&rpctest__v1__echo_service__descriptor, "Unary", &method);
    for (unsigned i = 0; i < 30; i++) {
        (void)snprintf(method.path, sizeof(method.path), "%s", paths[i % 3]);
        start_us = rt_env_now_us(env);
        answer_init(&answer, &rig);
        rpc_client_call(rig.channel, &method, &item.base, &options, on_answer, &answer);
        latch_wait(&answer.latch, 1);
        cr_assert_eq(answer.code, RT_UNIMPLEMENTED);
        cr_assert_lt(rt_env_now_us(env) - start_us, 5000000);
    }
    latch_wait(&rig.failures, 30);
    cr_assert_str_eq(rig.last_failure.method, "/x");
    teardown();
}

Test(unary, undecodable_request_is_an_invalid_argument)
{
    struct rpc_client_options options = {.timeout_ms = 10000};
    Rpctest__V1__NotAnItem bad;
    struct rpc_client_method method;

    setup();
    rpctest__v1__not_an_item__init(&bad);
    bad.data = 77;
    rpc_client_method_of(&rpctest__v1__echo_service__descriptor, "Unary", &method);
    answer_init(&answer, &rig);
    rpc_client_call(rig.channel, &method, &bad.base, &options, on_answer, &answer);
    latch_wait(&answer.latch, 1);
    cr_assert_eq(answer.code, RT_INVALID_ARGUMENT);
    teardown();
}

Test(unary, undecodable_response_is_internal)
{
    struct rpc_client_options options = {.timeout_ms = 10000};
    struct rpc_client_method method;
    Rpctest__V1__Item item;

    setup();
    item_init(&item, ECHO_REPLY, "abc", 3);
    rpc_client_method_of(&rpctest__v1__echo_service__descriptor, "Unary", &method);
    method.response = &rpctest__v1__not_an_item__descriptor;
    answer_init(&answer, &rig);
    rpc_client_call(rig.channel, &method, &item.base, &options, on_answer, &answer);
    latch_wait(&answer.latch, 1);
    cr_assert_eq(answer.code, RT_INTERNAL);
    teardown();
}

Test(unary, ten_thousand_one_after_the_other)
{
    setup();
    for (int i = 0; i < 10000; i++)
        cr_assert_eq(rig_command(&rig, ECHO_REPLY, "again", &answer), RT_OK);
    teardown();
}

Test(unary, a_thousand_at_once)
{
    enum {
        N_CALLS = 1000
    };
    struct rpc_client_options options = {.timeout_ms = 30000};
    struct answer *answers = rt_xalloc(N_CALLS * sizeof(*answers));
    struct rpc_client_method method;
    Rpctest__V1__Item item;

    setup();
    rpc_client_method_of(&rpctest__v1__echo_service__descriptor, "Unary", &method);
    item_init(&item, ECHO_HOLD, NULL, 0);
    for (unsigned i = 0; i < N_CALLS; i++) {
        answer_init(&answers[i], &rig);
        rpc_client_call(rig.channel, &method, &item.base, &options, on_answer, &answers[i]);
    }
    latch_wait(&rig.echo.holds, N_CALLS);
    cr_assert_eq(rpc_server_n_calls(rig.server), N_CALLS);
    rig_answer_held(&rig);
    for (unsigned i = 0; i < N_CALLS; i++) {
        latch_wait(&answers[i].latch, 1);
        cr_assert_eq(answers[i].code, RT_OK);
    }
    teardown();
    (void)rt_free(answers);
}
