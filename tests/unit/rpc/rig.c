/*
 * The stack under test: see rig.h. The runtime's loop has a thread of its own, the test's thread
 * waits on latches.
 */
#include "tests/unit/rpc/rig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/base/log.h"
#include "test_descriptors.h"

enum {
    PATIENCE_S = 40
};

/* ---- latches ---- */

void latch_init(struct latch *latch)
{
    (void)pthread_mutex_init(&latch->lock, NULL);
    (void)pthread_cond_init(&latch->changed, NULL);
    latch->count = 0;
}

void latch_add(struct latch *latch)
{
    (void)pthread_mutex_lock(&latch->lock);
    latch->count++;
    (void)pthread_cond_broadcast(&latch->changed);
    (void)pthread_mutex_unlock(&latch->lock);
}

void latch_wait(struct latch *latch, unsigned count)
{
    struct timespec until;
    int result = 0;

    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    (void)pthread_mutex_lock(&latch->lock);
    while (latch->count < count && result == 0)
        result = pthread_cond_timedwait(&latch->changed, &latch->lock, &until);
    if (latch->count < count) {
        (void)fprintf(stderr, "waited for %u, have %u\n", count, latch->count);
        abort();
    }
    (void)pthread_mutex_unlock(&latch->lock);
}

unsigned latch_count(struct latch *latch)
{
    unsigned count;

    (void)pthread_mutex_lock(&latch->lock);
    count = latch->count;
    (void)pthread_mutex_unlock(&latch->lock);
    return count;
}

/* ---- the rig ---- */

static void *loop_main(void *ctx)
{
    rpc_runtime_run(ctx);
    return NULL;
}

static void on_failed(const struct rpc_failure *failure, void *ctx)
{
    struct rig *rig = ctx;

    (void)pthread_mutex_lock(&rig->echo.lock);
    rig->last_failure.code = failure->code;
    rig->last_failure.has_reason = failure->reason && strcmp(failure->reason, "TESTED") == 0;
    rig->last_failure.has_peer = strncmp(failure->peer, "ipv4:127.0.0.1:", 15) == 0;
    (void)snprintf(rig->last_failure.method, sizeof(rig->last_failure.method), "%s",
                   failure->method);
    (void)pthread_mutex_unlock(&rig->echo.lock);
    latch_add(&rig->failures);
}

static void echo_init(struct echo *echo, struct rpc_runtime *runtime)
{
    echo->runtime = runtime;
    (void)pthread_mutex_init(&echo->lock, NULL);
    latch_init(&echo->holds);
    latch_init(&echo->cancels);
    latch_init(&echo->opened);
    latch_init(&echo->done);
    latch_init(&echo->messages);
    latch_init(&echo->half_closes);
    latch_init(&echo->refusals);
}

static void start_server(struct rig *rig, const struct rpc_server_options *given)
{
    struct rpc_server_options options = {0};
    struct rt_error err = RT_ERROR_INIT;
    enum rt_code code;

    if (given)
        options = *given;
    options.on_failed = on_failed;
    options.on_failed_ctx = rig;
    rig->server = rpc_server_new(rig->runtime, &options);
    code = rpc_server_add_service(rig->server, &rpctest__v1__echo_service__descriptor, echo_methods,
                                  RT_ARRAY_SIZE(echo_methods), &rig->echo, &err);
    rt_assert(code == RT_OK);
    code = rpc_server_add_descriptors(
        rig->server, rt_bytes_of(test_descriptor_set, sizeof(test_descriptor_set)), &err);
    rt_assert(code == RT_OK);
    code = rpc_server_listen(rig->server, rig->address, &rig->port, &err);
    if (code != RT_OK)
        (void)fprintf(stderr, "%s\n", err.message);
    rt_assert(code == RT_OK);
    rpc_server_start(rig->server);
}

void rig_init(struct rig *rig, const struct rpc_server_options *options)
{
    struct rpc_runtime_options runtime_options = {.n_threads = rig->n_threads, .stop_grace_ms = 1};

    rig->runtime = rpc_runtime_new(&runtime_options);
    echo_init(&rig->echo, rig->runtime);
    latch_init(&rig->failures);
    if (rig->address[0] != '\0') {
        start_server(rig, options);
    } else {
        (void)snprintf(rig->address, sizeof(rig->address), "127.0.0.1:0");
        start_server(rig, options);
        (void)snprintf(rig->address, sizeof(rig->address), "127.0.0.1:%u", rig->port);
    }
    rig->channel = rpc_channel_new(rig->runtime, rig->address, NULL);
    (void)pthread_create(&rig->thread, NULL, loop_main, rig->runtime);
}

void rig_deinit(struct rig *rig)
{
    rpc_runtime_stop(rig->runtime);
    (void)pthread_join(rig->thread, NULL);
    for (unsigned i = 0; i < rig->echo.n_held; i++)
        (void)rpc_call_unref(rig->echo.held[i]);
    (void)rpc_runtime_free(rig->runtime);
}

struct errand {
    struct rpc_job job;
    void (*fn)(void *ctx);
    void *ctx;
    struct latch latch;
};

static void on_errand(struct rpc_job *job)
{
    struct errand *errand = RT_CONTAINER_OF(job, struct errand, job);

    errand->fn(errand->ctx);
    latch_add(&errand->latch);
}

void rig_on_loop(struct rig *rig, void (*fn)(void *ctx), void *ctx)
{
    struct errand errand = {.fn = fn, .ctx = ctx};

    latch_init(&errand.latch);
    rpc_runtime_post(rig->runtime, &errand.job, on_errand);
    latch_wait(&errand.latch, 1);
}

struct drain {
    struct rig *rig;
    uint32_t grace_ms;
    struct latch latch;
};

static void on_latch(void *ctx)
{
    latch_add(ctx);
}

static void begin_drain(void *ctx)
{
    struct drain *drain = ctx;

    rpc_server_drain(drain->rig->server, drain->grace_ms, on_latch, &drain->latch);
}

void rig_drain(struct rig *rig, uint32_t grace_ms)
{
    struct drain drain = {.rig = rig, .grace_ms = grace_ms};

    latch_init(&drain.latch);
    rig_on_loop(rig, begin_drain, &drain);
    latch_wait(&drain.latch, 1);
    rig->server = NULL;
}

static void restart(void *ctx)
{
    start_server(ctx, NULL);
}

void rig_restart_server(struct rig *rig)
{
    rig_on_loop(rig, restart, rig);
}

void rig_close_channel(struct rig *rig)
{
    struct latch latch;

    latch_init(&latch);
    rpc_channel_close(rig->channel, on_latch, &latch);
    latch_wait(&latch, 1);
    rig->channel = NULL;
}

/* ---- calls ---- */

void item_init(Rpctest__V1__Item *item, uint32_t number, const void *data, size_t size)
{
    rpctest__v1__item__init(item);
    item->number = number;
    item->data.data = (uint8_t *)data;
    item->data.len = size;
}

void answer_init(struct answer *answer, struct rig *rig)
{
    memset(answer, 0, sizeof(*answer));
    latch_init(&answer->latch);
    answer->runtime = rig->runtime;
}

void on_answer(struct rpc_client_call *call, const ProtobufCMessage *response,
               const struct rt_error *err, void *ctx)
{
    const Rpctest__V1__Item *item = (const Rpctest__V1__Item *)response;
    struct answer *answer = ctx;

    rt_assert((response == NULL) == (err != NULL));
    answer->was_loop_thread = rpc_runtime_is_loop_thread(answer->runtime);
    if (err) {
        answer->code = err->code;
        (void)snprintf(answer->message, sizeof(answer->message), "%s", err->message);
        rt_assert(err->detail.size <= sizeof(answer->detail));
        if (err->detail.size > 0)
            memcpy(answer->detail, err->detail.data, err->detail.size);
        answer->detail_size = err->detail.size;
        answer->never_sent = rpc_client_call_never_sent(call);
    } else {
        answer->code = RT_OK;
        answer->number = item->number;
        answer->data_size = item->data.len;
        if (item->data.len > 0)
            memcpy(answer->data, item->data.data,
                   item->data.len < sizeof(answer->data) ? item->data.len : sizeof(answer->data));
    }
    latch_add(&answer->latch);
}

enum rt_code rig_call(struct rig *rig, const char *method, const Rpctest__V1__Item *item,
                      uint32_t timeout_ms, struct answer *answer)
{
    struct rpc_client_options options = {.timeout_ms = timeout_ms};
    struct rpc_client_method client_method;

    rpc_client_method_of(&rpctest__v1__echo_service__descriptor, method, &client_method);
    answer_init(answer, rig);
    rpc_client_call(rig->channel, &client_method, &item->base, &options, on_answer, answer);
    latch_wait(&answer->latch, 1);
    return answer->code;
}

enum rt_code rig_command(struct rig *rig, enum echo_command command, const char *data,
                         struct answer *answer)
{
    Rpctest__V1__Item item;

    item_init(&item, command, data, strlen(data));
    return rig_call(rig, "Unary", &item, 10000, answer);
}

void rig_answer_held(struct rig *rig)
{
    struct rpc_call *call;
    Rpctest__V1__Item item;

    item_init(&item, 1, NULL, 0);
    for (;;) {
        (void)pthread_mutex_lock(&rig->echo.lock);
        call = rig->echo.n_held > 0 ? rig->echo.held[--rig->echo.n_held] : NULL;
        (void)pthread_mutex_unlock(&rig->echo.lock);
        if (!call)
            return;
        rpc_call_reply(call, &item.base);
        (void)rpc_call_unref(call);
    }
}
