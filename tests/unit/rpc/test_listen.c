/*
 * Start-up of a server: tables against descriptors, addresses.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/check.h"
#include "tests/unit/rpc/rig.h"

TestSuite(listen, .fini = test_alloc_expect_none, .timeout = 50);

static struct rpc_runtime *runtime;
static struct rpc_server *server;
static struct rt_error err;

static void setup(void)
{
    runtime = rpc_runtime_new(NULL);
    server = rpc_server_new(runtime, NULL);
}

static void teardown(void)
{
    (void)rpc_runtime_free(runtime);
}

static enum rt_code add(const struct rpc_method *methods, size_t n_methods)
{
    err = (struct rt_error)RT_ERROR_INIT;
    return rpc_server_add_service(server, &rpctest__v1__echo_service__descriptor, methods,
                                  n_methods, NULL, &err);
}

Test(listen, table_has_to_match_the_descriptor)
{
    struct rpc_method methods[6];

    setup();
    memcpy(methods, echo_methods, sizeof(echo_methods));
    cr_assert_eq(add(methods, 4), RT_FAILED_PRECONDITION);
    cr_assert(strstr(err.message, "missing Chat"), "%s", err.message);
    cr_assert(strstr(err.message, "rpctest.v1.EchoService"));

    methods[5] = methods[0];
    methods[5].name = "Shout";
    cr_assert_eq(add(methods, 6), RT_FAILED_PRECONDITION);
    cr_assert(strstr(err.message, "unknown Shout"), "%s", err.message);

    methods[5] = methods[0];
    cr_assert_eq(add(methods, 6), RT_FAILED_PRECONDITION);
    cr_assert(strstr(err.message, "repeated Unary"), "%s", err.message);

    methods[0].name = "Shout";
    cr_assert_eq(add(methods, 5), RT_FAILED_PRECONDITION);
    cr_assert(strstr(err.message, "missing Unary, unknown Shout"), "%s", err.message);

    cr_assert_eq(add(echo_methods, 5), RT_OK);
    cr_assert_eq(add(echo_methods, 5), RT_ALREADY_EXISTS);
    teardown();
}

Test(listen, handlers_have_to_match_the_kind)
{
    struct rpc_stream_handlers without_done = {0};
    struct rpc_method methods[5];

    setup();
    memcpy(methods, echo_methods, sizeof(echo_methods));
    methods[0].on_call = NULL;
    cr_assert_eq(add(methods, 5), RT_FAILED_PRECONDITION);
    cr_assert(strstr(err.message, "wrong handlers for Unary"), "%s", err.message);
    methods[0] = echo_methods[0];
    methods[4].stream = &without_done;
    cr_assert_eq(add(methods, 5), RT_FAILED_PRECONDITION);
    cr_assert(strstr(err.message, "wrong handlers for Chat"), "%s", err.message);
    methods[4] = echo_methods[4];
    methods[4].on_call = methods[0].on_call;
    cr_assert_eq(add(methods, 5), RT_FAILED_PRECONDITION);
    teardown();
}

Test(listen, second_server_on_a_port_is_refused)
{
    struct rpc_server *second;
    char address[32];
    uint16_t port;

    setup();
    cr_assert_eq(rpc_server_listen(server, "127.0.0.1:0", &port, &err), RT_OK);
    cr_assert_gt(port, 0);
    rpc_server_start(server);
    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", port);
    second = rpc_server_new(runtime, NULL);
    cr_assert_eq(rpc_server_listen(second, address, NULL, &err), RT_ALREADY_EXISTS);
    cr_assert(strstr(err.message, address), "%s", err.message);
    teardown();
}

/* What core has to say about it goes where every log line goes. */
Test(listen, core_logs_through_ours)
{
    struct rpc_server *second;
    char address[32];
    char text[8192] = "";
    int log_pipe[2];
    int standard_error;
    uint16_t port;
    ssize_t size;

    setup();
    cr_assert_eq(rpc_server_listen(server, "127.0.0.1:0", &port, &err), RT_OK);
    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", port);
    second = rpc_server_new(runtime, NULL);
    cr_assert_eq(pipe(log_pipe), 0);
    standard_error = dup(STDERR_FILENO);
    (void)dup2(log_pipe[1], STDERR_FILENO);
    cr_expect_eq(rpc_server_listen(second, address, NULL, &err), RT_ALREADY_EXISTS);
    (void)dup2(standard_error, STDERR_FILENO);
    (void)close(log_pipe[1]);
    size = read(log_pipe[0], text, sizeof(text) - 1);
    cr_assert_gt(size, 0);
    cr_assert(strstr(text, "level=warning"), "%s", text);
    cr_assert(strstr(text, "event=grpc_core"), "%s", text);
    (void)close(log_pipe[0]);
    (void)close(standard_error);
    teardown();
}

Test(listen, addresses_that_make_no_sense)
{
    static const char *const addresses[] = {"nonsense",    "127.0.0.1:99999", "127.0.0.1:port",
                                            "300.1.1.1:0", "192.0.2.77:0",    ""};

    setup();
    for (size_t i = 0; i < RT_ARRAY_SIZE(addresses); i++) {
        err = (struct rt_error)RT_ERROR_INIT;
        cr_assert_neq(rpc_server_listen(server, addresses[i], NULL, &err), RT_OK, "%s",
                      addresses[i]);
        cr_assert_neq(err.code, RT_ALREADY_EXISTS);
    }
    teardown();
}

Test(listen, unix_socket_serves_and_is_not_stolen)
{
    char folder[] = "/tmp/rpc-listen-XXXXXX";
    struct rpc_server *second;
    struct rig rig = {0};
    struct answer answer;

    cr_assert(mkdtemp(folder));
    rig_init(&rig, NULL);
    rig_drain(&rig, 0);
    rig_close_channel(&rig);
    (void)snprintf(rig.address, sizeof(rig.address), "unix:%s/socket", folder);
    rig_restart_server(&rig);
    rig.channel = rpc_channel_new(rig.runtime, rig.address, NULL);
    cr_assert_eq(rig_command(&rig, ECHO_REPLY, "unix", &answer), RT_OK, "%s", answer.message);
    rig_deinit(&rig);

    setup();
    cr_assert_eq(rpc_server_listen(server, rig.address, NULL, &err), RT_OK);
    rpc_server_start(server);
    second = rpc_server_new(runtime, NULL);
    cr_assert_eq(rpc_server_listen(second, rig.address, NULL, &err), RT_ALREADY_EXISTS);
    cr_assert_eq(rpc_server_listen(second, "unix:/nonexistent/folder/socket", NULL, &err),
                 RT_INVALID_ARGUMENT);
    teardown();
    (void)unlink(rig.address + 5);
    (void)rmdir(folder);
}
