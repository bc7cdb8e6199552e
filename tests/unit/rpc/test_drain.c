/*
 * Draining: in flight finishes, new is refused, grace ends what hangs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/check.h"
#include "tests/unit/rpc/raw_peer.h"
#include "tests/unit/rpc/rig.h"

TestSuite(drain, .fini = test_alloc_expect_none, .timeout = 50);

static struct rig rig;
static struct answer answer;
static struct answer second;

static void start_call(enum echo_command command, struct answer *ret_answer)
{
    struct rpc_client_options options = {.timeout_ms = 30000};
    struct rpc_client_method method;
    Rpctest__V1__Item item;

    rpc_client_method_of(&rpctest__v1__echo_service__descriptor, "Unary", &method);
    item_init(&item, command, NULL, 0);
    answer_init(ret_answer, &rig);
    rpc_client_call(rig.channel, &method, &item.base, &options, on_answer, ret_answer);
}

struct drains {
    uint32_t grace_ms;
    struct latch done;
};

static void on_drained(void *ctx)
{
    latch_add(ctx);
}

static void drain(void *ctx)
{
    struct drains *drains = ctx;

    rpc_server_drain(rig.server, drains->grace_ms, on_drained, &drains->done);
}

Test(drain, in_flight_finishes_and_new_is_refused)
{
    struct drains drains = {.grace_ms = 60000};

    latch_init(&drains.done);
    rig_init(&rig, NULL);
    start_call(ECHO_HOLD, &answer);
    latch_wait(&rig.echo.holds, 1);
    rig_on_loop(&rig, drain, &drains);
    /* The client learns from the connection; until then a call may still reach the server. */
    do {
        start_call(ECHO_REPLY, &second);
        latch_wait(&second.latch, 1);
    } while (second.code == RT_OK);
    cr_assert_eq(second.code, RT_UNAVAILABLE, "%d %s", second.code, second.message);
    cr_assert_eq(latch_count(&drains.done), 0);
    cr_assert_eq(latch_count(&answer.latch), 0);
    rig_answer_held(&rig);
    latch_wait(&answer.latch, 1);
    cr_assert_eq(answer.code, RT_OK);
    latch_wait(&drains.done, 1);
    rig_deinit(&rig);
}

Test(drain, grace_ends_a_hung_call)
{
    struct drains drains = {.grace_ms = 100};

    latch_init(&drains.done);
    rig_init(&rig, NULL);
    start_call(ECHO_HOLD, &answer);
    latch_wait(&rig.echo.holds, 1);
    rig_on_loop(&rig, drain, &drains);
    latch_wait(&rig.echo.cancels, 1);
    latch_wait(&drains.done, 1);
    latch_wait(&answer.latch, 1);
    cr_assert_neq(answer.code, RT_OK);
    /* Still referenced: the answer goes nowhere and harms nobody. */
    rig_answer_held(&rig);
    rig_deinit(&rig);
}

Test(drain, reference_may_outlive_the_runtime)
{
    struct rpc_call *call;

    rig_init(&rig, NULL);
    start_call(ECHO_HOLD, &answer);
    latch_wait(&rig.echo.holds, 1);
    call = rig.echo.held[0];
    rig.echo.n_held = 0;
    rig_deinit(&rig);
    cr_assert(rpc_call_is_cancelled(call));
    (void)rpc_call_unref(call);
}

Test(drain, second_drain_shortens_the_grace_and_is_answered)
{
    struct drains first = {.grace_ms = 60000};
    struct drains hurry = {.grace_ms = 0};

    latch_init(&first.done);
    latch_init(&hurry.done);
    rig_init(&rig, NULL);
    start_call(ECHO_HOLD, &answer);
    latch_wait(&rig.echo.holds, 1);
    rig_on_loop(&rig, drain, &first);
    cr_assert_eq(latch_count(&first.done), 0);
    rig_on_loop(&rig, drain, &hurry);
    latch_wait(&first.done, 1);
    latch_wait(&hurry.done, 1);
    rig_answer_held(&rig);
    rig_deinit(&rig);
}

Test(drain, idle_server_is_drained_at_once)
{
    rig_init(&rig, NULL);
    rig_drain(&rig, 60000);
    rig_deinit(&rig);
}

/* Left alone, core waits 15 s for an answer to its goodbye, and 5 s for a socket that is full. */
enum {
    IMPATIENCE_US = 4 * 1000 * 1000
};

static uint64_t now_us(void)
{
    const struct rt_env *env = rpc_runtime_env(rig.runtime);

    return env->now_us(env->ctx);
}

/* Drains with this grace; whatever the peers do, that takes less than core's own patience. */
static void expect_swift_drain(uint32_t grace_ms)
{
    uint64_t started_us = now_us();

    rig_drain(&rig, grace_ms);
    cr_assert_lt(now_us() - started_us, IMPATIENCE_US);
}

/* A call that is answered makes sure that the server has seen the connections made before. */
static void serve_one(void)
{
    cr_assert_eq(rig_command(&rig, ECHO_REPLY, "", &answer), RT_OK);
}

Test(drain, peers_without_calls_are_not_waited_for)
{
    int silent, greeter;

    rig_init(&rig, NULL);
    silent = raw_peer_connect(rig.address);
    greeter = raw_peer_connect(rig.address);
    raw_peer_greet(greeter);
    serve_one();
    expect_swift_drain(60000);
    (void)close(silent);
    (void)close(greeter);
    rig_deinit(&rig);
}

Test(drain, peers_without_calls_do_not_cut_the_calls_of_others)
{
    struct drains drains = {.grace_ms = 60000};
    int greeter;

    latch_init(&drains.done);
    rig_init(&rig, NULL);
    greeter = raw_peer_connect(rig.address);
    raw_peer_greet(greeter);
    start_call(ECHO_HOLD, &answer);
    latch_wait(&rig.echo.holds, 1);
    rig_on_loop(&rig, drain, &drains);
    rig_answer_held(&rig);
    latch_wait(&answer.latch, 1);
    cr_assert_eq(answer.code, RT_OK);
    latch_wait(&drains.done, 1);
    (void)close(greeter);
    rig_deinit(&rig);
}

static void drain_with_a_deaf_peer(void)
{
    int fd;

    rig_init(&rig, NULL);
    fd = raw_peer_connect(rig.address);
    raw_peer_greet(fd);
    raw_peer_expand(fd, 100000, 16000);
    latch_wait(&rig.echo.refusals, 1);
    expect_swift_drain(100);
    (void)close(fd);
    rig_deinit(&rig);
}

Test(drain, peer_that_does_not_read_gets_the_grace_and_no_more)
{
    drain_with_a_deaf_peer();
}

Test(drain, peer_that_does_not_read_a_unix_socket)
{
    char directory[] = "/tmp/redistinto-test-XXXXXX";

    cr_assert(mkdtemp(directory));
    (void)snprintf(rig.address, sizeof(rig.address), "unix:%s/socket", directory);
    drain_with_a_deaf_peer();
    (void)unlink(rig.address + strlen("unix:"));
    (void)rmdir(directory);
}

Test(drain, server_that_was_never_started)
{
    struct rpc_runtime *runtime = rpc_runtime_new(NULL);
    struct rpc_server *server = rpc_server_new(runtime, NULL);
    struct latch done;

    latch_init(&done);
    rpc_server_drain(server, 60000, on_drained, &done);
    (void)rpc_runtime_free(runtime);
    cr_assert_eq(latch_count(&done), 1);
}

Test(drain, server_restarts_on_its_port)
{
    rig_init(&rig, NULL);
    for (int i = 0; i < 3; i++) {
        rig_drain(&rig, 0);
        rig_restart_server(&rig);
    }
    rig_deinit(&rig);
}

Test(drain, set_health_after_the_shutdown_began_is_harmless)
{
    struct rpc_server *server;

    rig_init(&rig, NULL);
    server = rig.server;
    rpc_runtime_stop(rig.runtime);
    (void)pthread_join(rig.thread, NULL);
    rpc_server_set_health(server, "", true);
    (void)rpc_runtime_free(rig.runtime);
}
