/*
 * grpc.health.v1: Check and Watch, changes, drain.
 */
#include <string.h>

#include "health.pb-c.h"
#include "runtime/rpc/server_internal.h"
#include "tests/support/check.h"
#include "tests/unit/rpc/rig.h"

TestSuite(health, .fini = test_alloc_expect_none, .timeout = 50);

enum {
    UNKNOWN = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVICE_UNKNOWN,
    SERVING = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING,
    NOT_SERVING = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__NOT_SERVING,
    FAILED = 1000, /* plus the code */
};

static struct rig rig;

struct checked {
    struct latch latch;
    int status;
};

static void on_checked(struct rpc_client_call *call, const ProtobufCMessage *response,
                       const struct rt_error *err, void *ctx)
{
    struct checked *checked = ctx;

    (void)call;
    checked->status = err ? FAILED + (int)err->code
                          : (int)((const Grpc__Health__V1__HealthCheckResponse *)response)->status;
    latch_add(&checked->latch);
}

static int check(const char *service)
{
    struct rpc_client_options options = {.timeout_ms = 10000};
    struct rpc_client_method method;
    Grpc__Health__V1__HealthCheckRequest request;
    struct checked checked;

    latch_init(&checked.latch);
    rpc_client_method_of(&grpc__health__v1__health__descriptor, "Check", &method);
    grpc__health__v1__health_check_request__init(&request);
    request.service = (char *)service;
    rpc_client_call(rig.channel, &method, &request.base, &options, on_checked, &checked);
    latch_wait(&checked.latch, 1);
    return checked.status;
}

Test(health, check_tells_what_was_set)
{
    rig_init(&rig, NULL);
    cr_assert_eq(check(""), NOT_SERVING);
    cr_assert_eq(check("rpctest.v1.EchoService"), NOT_SERVING);
    cr_assert_eq(check("unheard.of"), FAILED + RT_NOT_FOUND);
    rpc_server_set_health(rig.server, "", true);
    rpc_server_set_health(rig.server, "rpctest.v1.EchoService", true);
    cr_assert_eq(check(""), SERVING);
    cr_assert_eq(check("rpctest.v1.EchoService"), SERVING);
    rpc_server_set_health(rig.server, "", false);
    cr_assert_eq(check(""), NOT_SERVING);
    cr_assert_eq(check("rpctest.v1.EchoService"), SERVING);
    rig_deinit(&rig);
}

Test(health, length_of_a_name_has_a_limit)
{
    enum {
        FRAME = 3 /* tag and length */
    };
    char name[RPC_SMALL_REQUEST_MAX] = "";

    rig_init(&rig, NULL);
    memset(name, 'x', RPC_SMALL_REQUEST_MAX - FRAME);
    cr_assert_eq(check(name), FAILED + RT_NOT_FOUND);
    name[RPC_SMALL_REQUEST_MAX - FRAME] = 'x';
    cr_assert_eq(check(name), FAILED + RT_RESOURCE_EXHAUSTED);
    rig_deinit(&rig);
}

struct watched {
    struct latch statuses;
    struct latch done;
    int last;
    enum rt_code code;
};

static void on_status(struct rpc_client_stream *stream, const ProtobufCMessage *message, void *ctx)
{
    struct watched *watched = ctx;

    watched->last = (int)((const Grpc__Health__V1__HealthCheckResponse *)message)->status;
    latch_add(&watched->statuses);
    rpc_client_stream_read_next(stream);
}

static void on_watch_done(struct rpc_client_stream *stream, const struct rt_error *err, void *ctx)
{
    struct watched *watched = ctx;

    (void)stream;
    watched->code = err ? err->code : RT_OK;
    latch_add(&watched->done);
}

static const struct rpc_client_stream_handlers watch_handlers = {
    .on_message = on_status,
    .on_done = on_watch_done,
};

static struct rpc_client_stream *watch(const char *service, struct watched *ret_watched)
{
    struct rpc_client_options options = {.timeout_ms = RPC_NO_TIMEOUT};
    struct rpc_client_method method;
    struct rpc_client_stream *stream;
    Grpc__Health__V1__HealthCheckRequest request;

    latch_init(&ret_watched->statuses);
    latch_init(&ret_watched->done);
    rpc_client_method_of(&grpc__health__v1__health__descriptor, "Watch", &method);
    grpc__health__v1__health_check_request__init(&request);
    request.service = (char *)service;
    stream = rpc_client_stream_open(rig.channel, &method, &options, &watch_handlers, ret_watched);
    cr_assert_eq(rpc_client_stream_send(stream, &request.base), RT_OK);
    rpc_client_stream_finish_writes(stream);
    rpc_client_stream_read_next(stream);
    return stream;
}

Test(health, watch_follows_changes_until_the_client_goes)
{
    struct rpc_client_stream *stream;
    struct watched watched;

    rig_init(&rig, NULL);
    stream = watch("late", &watched);
    latch_wait(&watched.statuses, 1);
    cr_assert_eq(watched.last, UNKNOWN);
    rpc_server_set_health(rig.server, "late", true);
    latch_wait(&watched.statuses, 2);
    cr_assert_eq(watched.last, SERVING);
    rpc_server_set_health(rig.server, "late", true);
    rpc_server_set_health(rig.server, "other", true);
    rpc_server_set_health(rig.server, "late", false);
    latch_wait(&watched.statuses, 3);
    cr_assert_eq(watched.last, NOT_SERVING);
    rpc_client_stream_cancel(stream);
    latch_wait(&watched.done, 1);
    cr_assert_eq(watched.code, RT_CANCELLED);
    (void)rpc_client_stream_unref(stream);
    rig_deinit(&rig);
    cr_assert_eq(latch_count(&watched.statuses), 3);
}

Test(health, drain_says_not_serving_and_ends_the_watch)
{
    struct rpc_client_stream *stream;
    struct watched watched;

    rig_init(&rig, NULL);
    rpc_server_set_health(rig.server, "", true);
    stream = watch("", &watched);
    latch_wait(&watched.statuses, 1);
    cr_assert_eq(watched.last, SERVING);
    rig_drain(&rig, 60000);
    latch_wait(&watched.done, 1);
    cr_assert_eq(watched.last, NOT_SERVING);
    cr_assert_eq(watched.code, RT_UNAVAILABLE);
    (void)rpc_client_stream_unref(stream);
    rig_deinit(&rig);
}

Test(health, each_name_is_watched_by_itself)
{
    struct rpc_client_stream *streams[3];
    struct watched watched[3];

    rig_init(&rig, NULL);
    rpc_server_set_health(rig.server, "", true);
    streams[0] = watch("", &watched[0]);
    streams[1] = watch("rpctest.v1.EchoService", &watched[1]);
    streams[2] = watch("rpctest.v1.EchoService", &watched[2]);
    for (int i = 0; i < 3; i++)
        latch_wait(&watched[i].statuses, 1);
    cr_assert_eq(watched[0].last, SERVING);
    cr_assert_eq(watched[1].last, NOT_SERVING);
    rpc_server_set_health(rig.server, "rpctest.v1.EchoService", true);
    latch_wait(&watched[1].statuses, 2);
    latch_wait(&watched[2].statuses, 2);
    cr_assert_eq(watched[1].last, SERVING);
    cr_assert_eq(watched[2].last, SERVING);
    rig_drain(&rig, 60000);
    for (int i = 0; i < 3; i++) {
        latch_wait(&watched[i].done, 1);
        cr_assert_eq(watched[i].last, NOT_SERVING);
        (void)rpc_client_stream_unref(streams[i]);
    }
    cr_assert_eq(latch_count(&watched[0].statuses), 2);
    rig_deinit(&rig);
}

/* The watcher misses what happens while its queue is full, never the last state. */
Test(health, slow_watcher_gets_the_last_state)
{
    struct rpc_server_options options = {.queue_messages = 1};
    struct rpc_client_stream *stream;
    struct watched watched;

    rig_init(&rig, &options);
    stream = watch("", &watched);
    latch_wait(&watched.statuses, 1);
    for (int i = 0; i < 1000; i++)
        rpc_server_set_health(rig.server, "", i % 2 == 0);
    rpc_server_set_health(rig.server, "", true);
    for (unsigned n = 2; watched.last != SERVING; n++)
        latch_wait(&watched.statuses, n);
    (void)check("");
    cr_assert_eq(check(""), SERVING);
    rig_deinit(&rig);
    cr_assert_eq(latch_count(&watched.done), 1);
    (void)rpc_client_stream_unref(stream);
}
