/*
 * The life of a service process: opening and what may be in the way, readiness and health, the ways
 * to stop, and what is on disk afterwards. The service runs on the test's thread, a driver beside
 * it plays clients and supervisor.
 */
#include "runtime/host/service.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "health.pb-c.h"
#include "redistinto/v1/instance.pb-c.h"
#include "runtime/store/lmdb.h"
#include "tests/support/check.h"
#include "tests/unit/host/rig.h"
#include "tests/unit/store/temporary.h"

TestSuite(service, .fini = test_alloc_expect_none, .timeout = 55);

enum {
    SERVING = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING,
    NOT_SERVING = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__NOT_SERVING,
    FAILED = 1000, /* plus the code */
};

static struct host_service service;
static struct host_service_config config;
static struct fake_core core;
static struct rt_error err;
static struct latch stops;     /* on_stop has run */
static struct host_rig client; /* only what the clients of the rig need */

/* ---- the service ---- */

static void set_config(void)
{
    config = (struct host_service_config){
        .listen = "127.0.0.1:0",
        .data_dir = temporary_path("data"),
        .log_level = RT_LOG_ERROR,
        .drain_ms = 5000,
        .store_limit = (uint64_t)1 << 30,
    };
}

static enum rt_code attach(void)
{
    struct host_options options = {
        .runtime = service.runtime, .ops = &fake_core_ops, .core = &core};
    enum rt_code code;

    fake_core_init(&core, service.runtime);
    code = host_service_attach(&service, &options, &err);
    if (code == RT_OK)
        code = host_service_serve(&service, &redistinto__v1__instance_service__descriptor, &err);
    return code;
}

static void set_up(void)
{
    latch_init(&stops);
    cr_assert_eq(host_service_open(&service, "test", &config, &err), RT_OK, "%s", err.message);
    cr_assert_eq(attach(), RT_OK, "%s", err.message);
    client.runtime = service.runtime;
    client.channel = rpc_channel_new(service.runtime, service.address, NULL);
}

static void tear_down(void)
{
    host_service_close(&service);
    if (core.runtime)
        fake_core_deinit(&core);
    temporary_remove();
}

static void note_stop(void *ctx)
{
    (void)ctx;
    latch_add(&stops);
}

static void note_stop_and_finish(void *ctx)
{
    latch_add(&stops);
    host_service_finish(ctx);
}

static void *drive(void *ctx)
{
    void (*script)(void) = *(void (**)(void))ctx;

    script();
    return NULL;
}

static int run_beside(void (*script)(void), void (*on_stop)(void *ctx))
{
    pthread_t thread;
    int exit_code;

    cr_assert_eq(pthread_create(&thread, NULL, drive, &script), 0);
    exit_code = host_service_run(&service, on_stop, &service);
    (void)pthread_join(thread, NULL);
    return exit_code;
}

static void signal_myself(int signum)
{
    rt_assert(kill(getpid(), signum) == 0);
}

/* ---- clients ---- */

struct checked {
    struct latch latch;
    int status;
};

static void on_checked(struct rpc_client_call *call, const ProtobufCMessage *response,
                       const struct rt_error *error, void *ctx)
{
    struct checked *checked = ctx;

    (void)call;
    checked->status = error
                          ? FAILED + (int)error->code
                          : (int)((const Grpc__Health__V1__HealthCheckResponse *)response)->status;
    latch_add(&checked->latch);
}

static int health(const char *name)
{
    struct rpc_client_options options = {.timeout_ms = 20000};
    struct rpc_client_method method;
    Grpc__Health__V1__HealthCheckRequest request;
    struct checked checked;

    latch_init(&checked.latch);
    rpc_client_method_of(&grpc__health__v1__health__descriptor, "Check", &method);
    grpc__health__v1__health_check_request__init(&request);
    request.service = (char *)name;
    rpc_client_call(client.channel, &method, &request.base, &options, on_checked, &checked);
    latch_wait(&checked.latch, 1);
    return checked.status;
}

static void check_health(int status)
{
    rt_assert(health("") == status);
    rt_assert(health("redistinto.v1.InstanceService") == status);
}

static void call_once(void)
{
    rt_assert(client_call_now(&client, MODEL_CALL_SET, 1) == RT_OK);
}

/* ---- what is on disk ---- */

static bool count_row(struct rt_bytes key, struct rt_bytes value, void *ctx)
{
    (void)key;
    (void)value;
    (*(unsigned *)ctx)++;
    return true;
}

static void ignore_txn(struct store_txn *txn, void *ctx)
{
    (void)txn;
    (void)ctx;
}

static void on_closed(void *ctx)
{
    (void)ctx;
}

static unsigned n_rows_on_disk(void)
{
    uv_loop_t loop;
    struct store_lmdb_options options = {.path = temporary_path("data/store"), .loop = &loop};
    struct store *store;
    unsigned n = 0;

    cr_assert_eq(uv_loop_init(&loop), 0);
    cr_assert_eq(store_lmdb_open(&options, ignore_txn, NULL, &store, &err), RT_OK, "%s",
                 err.message);
    cr_assert_eq(store_range(store, (struct rt_bytes){0}, count_row, NULL, &n, &err), RT_OK);
    store_close(store, on_closed, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    cr_assert_eq(uv_loop_close(&loop), 0);
    return n;
}

/* ---- readiness ---- */

static int ready_pipe[2];

static void read_ready_line(void)
{
    char line[300] = "";
    char expected[300];
    size_t size = 0;
    ssize_t n_read;

    /* Up to the end: the service closes its side. */
    while ((n_read = read(ready_pipe[0], line + size, sizeof(line) - 1 - size)) > 0)
        size += (size_t)n_read;
    rt_assert(n_read == 0);
    (void)snprintf(expected, sizeof(expected), "ready %s\n", service.address);
    rt_assert(strcmp(line, expected) == 0);
}

static void be_ready_then_stop(void)
{
    check_health(NOT_SERVING);
    host_service_ready(&service);
    host_service_ready(&service);
    read_ready_line();
    check_health(SERVING);
    host_service_ready(&service);
    call_once();
    signal_myself(SIGTERM);
}

Test(service, tells_when_it_is_ready_and_stops_at_a_signal)
{
    set_config();
    cr_assert_eq(pipe(ready_pipe), 0);
    config.ready_fd = (uint64_t)ready_pipe[1];
    set_up();
    cr_assert_eq(strncmp(service.address, "127.0.0.1:", 10), 0);
    cr_assert_str_neq(service.address, "127.0.0.1:0");
    cr_assert_eq(run_beside(be_ready_then_stop, NULL), 0);
    tear_down();
}

Test(service, without_a_data_directory_keeps_nothing)
{
    set_config();
    config.data_dir = NULL;
    cr_assert_eq(pipe(ready_pipe), 0);
    config.ready_fd = (uint64_t)ready_pipe[1];
    set_up();
    cr_assert_null(service.store);
    cr_assert_eq(run_beside(be_ready_then_stop, NULL), 0);
    tear_down();
}

/* Nothing tells when the loop has done it; each question is a call over the wire. */
static void ask_until_serving(void)
{
    for (int i = 0; i < 20000 && health("redistinto.v1.InstanceService") != SERVING; i++)
        call_once();
    check_health(SERVING);
}

static void be_ready_to_nobody(void)
{
    host_service_ready(&service);
    ask_until_serving();
    signal_myself(SIGINT);
}

Test(service, goes_on_when_nobody_reads_that_it_is_ready)
{
    set_config();
    cr_assert_eq(pipe(ready_pipe), 0);
    (void)close(ready_pipe[0]);
    config.ready_fd = (uint64_t)ready_pipe[1];
    set_up();
    cr_assert_eq(run_beside(be_ready_to_nobody, NULL), 0);
    tear_down();
}

Test(service, does_not_close_a_standard_stream)
{
    set_config();
    config.ready_fd = STDERR_FILENO;
    set_up();
    cr_assert_eq(run_beside(be_ready_to_nobody, NULL), 0);
    cr_assert_geq(fcntl(STDERR_FILENO, F_GETFD), 0);
    tear_down();
}

static void be_ready_too_late(void)
{
    host_service_stop(&service, 0);
    latch_wait(&stops, 1);
    host_service_ready(&service);
    check_health(NOT_SERVING);
    host_service_finish(&service);
}

Test(service, is_not_ready_any_more_once_it_stops)
{
    set_config();
    cr_assert_eq(pipe(ready_pipe), 0);
    config.ready_fd = (uint64_t)ready_pipe[1];
    set_up();
    cr_assert_eq(run_beside(be_ready_too_late, note_stop), 0);
    (void)close(ready_pipe[1]);
    cr_assert_eq(read(ready_pipe[0], ready_pipe, 1), 0);
    tear_down();
}

/* ---- stopping ---- */

static void stop_in_two_steps(void)
{
    host_service_ready(&service);
    ask_until_serving();
    signal_myself(SIGTERM);
    latch_wait(&stops, 1);
    check_health(NOT_SERVING);
    call_once(); /* it still serves */
    host_service_finish(&service);
    host_service_finish(&service);
}

Test(service, serves_on_until_its_core_is_ready_for_the_end)
{
    set_config();
    set_up();
    cr_assert_eq(run_beside(stop_in_two_steps, note_stop), 0);
    cr_assert_eq(latch_count(&stops), 1);
    tear_down();
}

static void signal_twice(void)
{
    signal_myself(SIGTERM);
    latch_wait(&stops, 1);
    signal_myself(SIGINT);
}

Test(service, does_not_wait_for_its_core_after_a_second_signal)
{
    set_config();
    set_up();
    cr_assert_eq(run_beside(signal_twice, note_stop), 0);
    cr_assert_eq(latch_count(&stops), 1);
    tear_down();
}

static void stop_three_times(void)
{
    host_service_stop(&service, 0);
    host_service_stop(&service, 4);
    host_service_stop(&service, 5);
    latch_wait(&stops, 1);
    host_service_finish(&service);
}

Test(service, exits_with_the_first_code_that_is_not_0)
{
    set_config();
    set_up();
    cr_assert_eq(run_beside(stop_three_times, note_stop), 4);
    cr_assert_eq(latch_count(&stops), 1);
    tear_down();
}

static struct client_call held;

static void stop_with_a_call_inside(void)
{
    client_call_start(&client, &held, MODEL_CALL_SET, 1, 20000);
    latch_wait(&core.submits, 1);
    signal_myself(SIGTERM);
    client_call_wait(&held);
}

Test(service, cancels_calls_that_outlast_the_drain)
{
    set_config();
    config.drain_ms = 30;
    set_up();
    core.mode = FAKE_HOLD;
    cr_assert_eq(run_beside(stop_with_a_call_inside, note_stop_and_finish), 0);
    cr_assert_neq(held.response.code, RT_OK);
    cr_assert_eq(latch_count(&core.cancels), 1);
    client_call_deinit(&held);
    tear_down();
}

/* ---- standard input ---- */

static int input_pipe[2];

static void end_the_input(void)
{
    call_once();
    rt_assert(write(input_pipe[1], "ignored\n", 8) == 8);
    call_once();
    (void)close(input_pipe[1]);
}

Test(service, stops_when_its_input_ends)
{
    set_config();
    cr_assert_eq(pipe2(input_pipe, O_CLOEXEC), 0);
    cr_assert_eq(dup2(input_pipe[0], STDIN_FILENO), STDIN_FILENO);
    config.exit_with_stdin = true;
    set_up();
    cr_assert_eq(run_beside(end_the_input, NULL), 0);
    tear_down();
}

static void check_input_refused(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    cr_assert_geq(fd, 0);
    cr_assert_eq(dup2(fd, STDIN_FILENO), STDIN_FILENO);
    set_config();
    config.exit_with_stdin = true;
    cr_assert_eq(host_service_open(&service, "test", &config, &err), RT_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(err.message, "--exit-with-stdin"));
    host_service_close(&service);
}

Test(service, does_not_watch_an_input_that_is_no_pipe)
{
    check_input_refused("/dev/null");
    check_input_refused(temporary_path("file"));
    (void)close(STDIN_FILENO);
    cr_assert_eq(host_service_open(&service, "test", &config, &err), RT_INVALID_ARGUMENT);
    tear_down();
}

/* ---- what may be in the way ---- */

Test(service, refuses_a_ready_fd_that_is_not_open)
{
    set_config();
    config.ready_fd = 1023;
    cr_assert_eq(host_service_open(&service, "test", &config, &err), RT_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(err.message, "--ready-fd"));
    cr_assert_neq(access(config.data_dir, F_OK), 0);
    tear_down();
}

Test(service, refuses_a_data_directory_that_is_in_use)
{
    static struct host_service second;

    set_config();
    set_up();
    cr_assert_eq(host_service_open(&second, "test", &config, &err), RT_FAILED_PRECONDITION);
    cr_assert_str_eq(err.reason, "DATA_DIR_IN_USE");
    host_service_close(&second);
    host_service_close(&service);
    /* Free again. */
    set_up();
    tear_down();
}

Test(service, refuses_a_port_that_is_in_use)
{
    static struct host_service second;
    char address[sizeof(service.address)];

    set_config();
    set_up();
    (void)snprintf(address, sizeof(address), "%s", service.address);
    config.listen = address;
    config.data_dir = temporary_path("other");
    cr_assert_eq(host_service_open(&second, "test", &config, &err), RT_ALREADY_EXISTS);
    cr_assert_not_null(strstr(err.message, address));
    host_service_close(&second);
    config.listen = "127.0.0.1:0";
    cr_assert_eq(host_service_open(&second, "test", &config, &err), RT_OK);
    host_service_close(&second);
    tear_down();
}

Test(service, refuses_an_address_without_a_port)
{
    set_config();
    config.listen = "localhost";
    cr_assert_eq(host_service_open(&service, "test", &config, &err), RT_INVALID_ARGUMENT);
    tear_down();
}

Test(service, fails_to_attach_without_a_store)
{
    int fd;

    set_config();
    cr_assert_eq(host_service_open(&service, "test", &config, &err), RT_OK);
    fd = open(temporary_path("data/store"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    cr_assert_geq(fd, 0);
    (void)close(fd);
    cr_assert_neq(attach(), RT_OK);
    cr_assert_null(service.store);
    tear_down();
}

Test(service, listens_on_a_unix_socket)
{
    char address[300];

    set_config();
    (void)snprintf(address, sizeof(address), "unix:%s", temporary_path("socket"));
    config.listen = address;
    set_up();
    cr_assert_str_eq(service.address, address);
    cr_assert_eq(run_beside(be_ready_to_nobody, NULL), 0);
    tear_down();
}

Test(service, that_was_never_opened_may_be_closed)
{
    host_service_close(&service);
}

/* ---- transactions at the end ---- */

/* A start that failed after the core made its first transactions and calls. */
Test(service, that_never_ran_commits_and_returns_what_was_made)
{
    struct fake_order order = {.kind = MODEL_CALL_SET, .tag = 1};

    set_config();
    set_up();
    order.address = service.address;
    for (unsigned i = 0; i < 5; i++)
        host_step(service.host, fake_make_txn, NULL);
    host_step(service.host, fake_make_call, &order);
    host_service_close(&service);
    cr_assert_eq(core.n_committed, 5);
    cr_assert_eq(latch_count(&core.dones), 1);
    cr_assert_eq(n_rows_on_disk(), 5);
    tear_down();
}

static void make_transactions_then_stop(void)
{
    for (unsigned i = 0; i < 50; i++)
        host_step(service.host, fake_make_txn, NULL);
    signal_myself(SIGTERM);
}

/* Each completed one makes another, on and on: the store closes all the same, and what it took is
 * there. */
Test(service, commits_what_is_queued_at_the_end)
{
    set_config();
    set_up();
    core.n_chained_txns = UINT32_MAX;
    cr_assert_eq(run_beside(make_transactions_then_stop, note_stop_and_finish), 0);
    host_service_close(&service);
    cr_assert_geq(core.n_committed, 50);
    cr_assert_eq(core.n_not_committed, 0);
    cr_assert_eq(n_rows_on_disk(), core.n_committed);
    cr_assert_gt(core.n_txn_rows, core.n_committed);
    tear_down();
}

/* A completion after the runtime's end asks for a wake-up and a call: neither does harm. */
static void call_at_each_tick(void)
{
    struct fake_order order = {.kind = MODEL_CALL_SET, .tag = 1, .address = service.address};
    uint64_t now_us = rt_env_now_us(core.env);

    for (unsigned i = 0; i < 20; i++) {
        host_step(service.host, fake_make_call, &order);
        host_step(service.host, fake_make_txn, NULL);
        host_step(service.host, fake_wake_at, &now_us);
    }
    host_service_stop(&service, 0);
}

Test(service, ends_in_the_middle_of_calls_and_wakeups)
{
    set_config();
    set_up();
    core.n_chained_txns = UINT32_MAX;
    cr_assert_eq(run_beside(call_at_each_tick, NULL), 0);
    host_service_close(&service);
    cr_assert_eq(latch_count(&core.dones), 20);
    tear_down();
}

Test(service, says_why_it_ends)
{
    (void)rt_fail(&err, RT_INVALID_ARGUMENT, "because");
    cr_assert_eq(host_service_fail("test", &err), 2);
    (void)rt_fail(&err, RT_UNAVAILABLE, "because");
    cr_assert_eq(host_service_fail("test", &err), 5);
}
