/*
 * Channels: nobody there, reconnecting, what was never sent, closing with work in flight.
 */
#include <stdio.h>

#include "runtime/base/alloc.h"
#include "tests/support/check.h"
#include "tests/unit/rpc/rig.h"

TestSuite(client, .fini = test_alloc_expect_none, .timeout = 50);

static struct rig rig;
static struct answer answer;

static void start_call(enum echo_command command, const struct rpc_client_options *options)
{
    struct rpc_client_method method;
    Rpctest__V1__Item item;

    rpc_client_method_of(&rpctest__v1__echo_service__descriptor, "Unary", &method);
    item_init(&item, command, NULL, 0);
    answer_init(&answer, &rig);
    rpc_client_call(rig.channel, &method, &item.base, options, on_answer, &answer);
}

Test(client, call_without_a_server_was_never_sent)
{
    rig_init(&rig, NULL);
    rig_drain(&rig, 0);
    cr_assert_eq(rig_command(&rig, ECHO_REPLY, "", &answer), RT_UNAVAILABLE);
    cr_assert(answer.never_sent);
    rig_deinit(&rig);
}

Test(client, call_that_the_server_had_is_not_known_to_be_unsent)
{
    struct rpc_client_options options = {.timeout_ms = 20000};

    rig_init(&rig, NULL);
    start_call(ECHO_HOLD, &options);
    latch_wait(&rig.echo.holds, 1);
    rig_drain(&rig, 0);
    latch_wait(&answer.latch, 1);
    cr_assert_neq(answer.code, RT_OK);
    cr_assert_not(answer.never_sent);
    rig_answer_held(&rig);
    rig_deinit(&rig);
}

Test(client, call_that_was_too_late_is_not_known_to_be_unsent)
{
    struct rpc_client_options options = {.timeout_ms = 50};

    rig_init(&rig, NULL);
    /* A busy machine may let a deadline pass before the call is at the server. */
    for (; latch_count(&rig.echo.holds) == 0; options.timeout_ms *= 4) {
        start_call(ECHO_HOLD, &options);
        latch_wait(&answer.latch, 1);
        cr_assert_eq(answer.code, RT_DEADLINE_EXCEEDED);
        cr_assert_not(answer.never_sent);
    }
    rig_answer_held(&rig);
    rig_deinit(&rig);
}

Test(client, call_that_was_cancelled_is_not_known_to_be_unsent)
{
    struct rpc_client_options options = {.timeout_ms = 20000};
    struct rpc_client_method method;
    struct rpc_client_call *call;
    Rpctest__V1__Item item;

    rig_init(&rig, NULL);
    rpc_client_method_of(&rpctest__v1__echo_service__descriptor, "Unary", &method);
    item_init(&item, ECHO_HOLD, NULL, 0);
    answer_init(&answer, &rig);
    call =
        rpc_client_call_cancellable(rig.channel, &method, &item.base, &options, on_answer, &answer);
    latch_wait(&rig.echo.holds, 1);
    rpc_client_call_cancel(call);
    latch_wait(&answer.latch, 1);
    cr_assert_eq(answer.code, RT_CANCELLED);
    cr_assert_not(answer.never_sent);
    (void)rpc_client_call_unref(call);
    rig_answer_held(&rig);
    rig_deinit(&rig);
}

/* Waits until the backoff has grown, then for the connection. */
Test(client, reconnects_soon_after_the_server_is_back)
{
    struct rpc_client_options brief = {.timeout_ms = 500, .wait_for_ready = true};
    struct rpc_client_options patient = {.timeout_ms = 20000, .wait_for_ready = true};
    const struct rt_env *env;
    uint64_t start_us;

    rig_init(&rig, NULL);
    env = rpc_runtime_env(rig.runtime);
    cr_assert_eq(rig_command(&rig, ECHO_REPLY, "", &answer), RT_OK);
    rig_drain(&rig, 0);
    for (int i = 0; i < 4; i++) {
        start_call(ECHO_REPLY, &brief);
        latch_wait(&answer.latch, 1);
        cr_assert_eq(answer.code, RT_DEADLINE_EXCEEDED);
    }
    rig_restart_server(&rig);
    start_us = rt_env_now_us(env);
    start_call(ECHO_REPLY, &patient);
    latch_wait(&answer.latch, 1);
    cr_assert_eq(answer.code, RT_OK);
    cr_assert_lt(rt_env_now_us(env) - start_us, 2500000, "took %lu us",
                 (unsigned long)(rt_env_now_us(env) - start_us));
    rig_deinit(&rig);
}

Test(client, wait_for_ready_waits_for_the_server)
{
    struct rpc_client_options options = {.timeout_ms = 30000, .wait_for_ready = true};

    rig_init(&rig, NULL);
    rig_drain(&rig, 0);
    start_call(ECHO_REPLY, &options);
    rig_restart_server(&rig);
    latch_wait(&answer.latch, 1);
    cr_assert_eq(answer.code, RT_OK);
    rig_deinit(&rig);
}

Test(client, wait_for_ready_ends_with_its_deadline)
{
    struct rpc_client_options options = {.timeout_ms = 100, .wait_for_ready = true};

    rig_init(&rig, NULL);
    rig_drain(&rig, 0);
    start_call(ECHO_REPLY, &options);
    latch_wait(&answer.latch, 1);
    cr_assert_eq(answer.code, RT_DEADLINE_EXCEEDED);
    rig_deinit(&rig);
}

Test(client, closing_cancels_what_is_in_flight)
{
    struct rpc_client_options options = {.timeout_ms = 20000};

    rig_init(&rig, NULL);
    start_call(ECHO_HOLD, &options);
    latch_wait(&rig.echo.holds, 1);
    rig_close_channel(&rig);
    cr_assert_eq(latch_count(&answer.latch), 1);
    cr_assert_eq(answer.code, RT_CANCELLED);
    latch_wait(&rig.echo.cancels, 1);
    rig_answer_held(&rig);
    rig_deinit(&rig);
}

Test(client, closing_an_idle_channel)
{
    rig_init(&rig, NULL);
    cr_assert_str_eq(rpc_channel_address(rig.channel), rig.address);
    rig_close_channel(&rig);
    rig_deinit(&rig);
}

Test(client, stopping_with_calls_in_flight_completes_them)
{
    struct rpc_client_options options = {.timeout_ms = 20000};

    rig_init(&rig, NULL);
    start_call(ECHO_HOLD, &options);
    latch_wait(&rig.echo.holds, 1);
    rig_deinit(&rig);
    cr_assert_eq(latch_count(&answer.latch), 1);
    cr_assert_neq(answer.code, RT_OK);
}

static void call_after_close(void *ctx)
{
    struct rpc_client_options options = {.timeout_ms = 20000};

    (void)ctx;
    start_call(ECHO_REPLY, &options);
    cr_assert_eq(latch_count(&answer.latch), 0);
}

/* The shutdown closed the channel under its user, who has not heard of it yet. */
Test(client, call_on_a_channel_that_the_shutdown_closed_fails)
{
    rig_init(&rig, NULL);
    rpc_runtime_on_stop(rig.runtime, call_after_close, NULL);
    rig_deinit(&rig);
    cr_assert_eq(latch_count(&answer.latch), 1);
    cr_assert_eq(answer.code, RT_UNAVAILABLE);
    cr_assert(answer.never_sent);
    cr_assert(answer.was_loop_thread);
}

static void close_late(void *ctx)
{
    rpc_channel_close(rig.channel, (void (*)(void *))latch_add, ctx);
}

Test(client, closing_after_the_shutdown_did_is_answered)
{
    struct latch latch;

    latch_init(&latch);
    rig_init(&rig, NULL);
    rpc_runtime_on_stop(rig.runtime, close_late, &latch);
    rig_deinit(&rig);
    cr_assert_eq(latch_count(&latch), 1);
}

Test(client, callback_may_start_the_next_call)
{
    rig_init(&rig, NULL);
    for (int i = 0; i < 50; i++) {
        cr_assert_eq(rig_command(&rig, ECHO_REPLY, "x", &answer), RT_OK);
        cr_assert_eq(rig_command(&rig, ECHO_LATER, "x", &answer), RT_OK);
    }
    rig_deinit(&rig);
}
