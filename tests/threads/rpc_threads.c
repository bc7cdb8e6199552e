/*
 * Hammers runtime/rpc from several threads at once: unary calls answered inline and from the loop,
 * cancellation racing with answers, bidi streams, jobs, wake-ups, and a shutdown in the middle of
 * it. A plain main(): Criterion does not run under ThreadSanitizer. Exit code 0 when every callback
 * came exactly once with a plausible code.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/rpc/rig.h"

enum {
    N_THREADS = 4,
    N_ROUNDS = 150,
    N_CHAT = 10,
    N_DANGLING = 20, /* calls left in flight for the shutdown */
};

/* Aborts with the line; alive in every build. */
#define check(condition) rt_assert(condition)

static struct rig rig;
static struct rpc_wakeup wakeup;
static _Atomic unsigned n_jobs_run;
static _Atomic unsigned n_wakeups;

static void method_of(const char *name, struct rpc_client_method *ret_method)
{
    rpc_client_method_of(&rpctest__v1__echo_service__descriptor, name, ret_method);
}

/* ---- unary ---- */

static void call_and_wait(enum echo_command command)
{
    struct answer answer;

    check(rig_command(&rig, command, "data", &answer) == RT_OK);
    check(answer.data_size == 4 && memcmp(answer.data, "data", 4) == 0);
}

/* The cancellation races with the request, the handler and rig_answer_held() of all threads. */
static void cancel_race(unsigned round)
{
    struct rpc_client_options options = {.timeout_ms = 20000};
    struct rpc_client_method method;
    struct rpc_client_call *call;
    struct answer answer;
    Rpctest__V1__Item item;

    method_of("Unary", &method);
    item_init(&item, ECHO_HOLD, NULL, 0);
    answer_init(&answer, &rig);
    call =
        rpc_client_call_cancellable(rig.channel, &method, &item.base, &options, on_answer, &answer);
    if (round % 2)
        rig_answer_held(&rig);
    rpc_client_call_cancel(call);
    rig_answer_held(&rig);
    latch_wait(&answer.latch, 1);
    check(answer.code == RT_CANCELLED || answer.code == RT_OK);
    (void)rpc_client_call_unref(call);
}

/* ---- streams ---- */

struct chat {
    struct latch messages;
    struct latch done;
    unsigned n_done;
    enum rt_code code;
};

static void on_message(struct rpc_client_stream *stream, const ProtobufCMessage *message, void *ctx)
{
    struct chat *chat = ctx;

    check(((const Rpctest__V1__Item *)message)->data.len == 3);
    latch_add(&chat->messages);
    rpc_client_stream_read_next(stream);
}

static void on_done(struct rpc_client_stream *stream, const struct rt_error *err, void *ctx)
{
    struct chat *chat = ctx;

    (void)stream;
    chat->n_done++;
    chat->code = err ? err->code : RT_OK;
    latch_add(&chat->done);
}

static const struct rpc_client_stream_handlers handlers = {
    .on_message = on_message,
    .on_done = on_done,
};

static void chat_once(bool is_cut)
{
    struct rpc_client_options options = {.timeout_ms = 20000};
    struct rpc_client_method method;
    struct rpc_client_stream *stream;
    struct chat chat = {0};
    Rpctest__V1__Item item;

    latch_init(&chat.messages);
    latch_init(&chat.done);
    method_of("Chat", &method);
    stream = rpc_client_stream_open(rig.channel, &method, &options, &handlers, &chat);
    rpc_client_stream_read_next(stream);
    for (uint32_t i = 1; i <= N_CHAT; i++) {
        item_init(&item, i, "abc", 3);
        check(rpc_client_stream_send(stream, &item.base) == RT_OK);
    }
    latch_wait(&chat.messages, is_cut ? N_CHAT / 2 : N_CHAT);
    if (is_cut)
        rpc_client_stream_cancel(stream);
    else
        rpc_client_stream_finish_writes(stream);
    latch_wait(&chat.done, 1);
    check(chat.n_done == 1);
    check(chat.code == (is_cut ? RT_CANCELLED : RT_OK));
    (void)rpc_client_stream_unref(stream);
}

/* ---- jobs and wake-ups ---- */

static void on_job(void *ctx)
{
    (void)ctx;
    (void)atomic_fetch_add(&n_jobs_run, 1);
}

static void on_due(struct rpc_wakeup *due, void *ctx)
{
    (void)due;
    (void)ctx;
    (void)atomic_fetch_add(&n_wakeups, 1);
}

/* ---- all of it ---- */

static void *hammer(void *ctx)
{
    const struct rt_env *env = rpc_runtime_env(rig.runtime);

    (void)ctx;
    for (unsigned round = 0; round < N_ROUNDS; round++) {
        call_and_wait(ECHO_REPLY);
        call_and_wait(ECHO_LATER);
        cancel_race(round);
        chat_once(round % 3 == 0);
        rpc_wakeup_at(&wakeup, rt_env_now_us(env) + rt_env_random(env) % 5000);
        rig_on_loop(&rig, on_job, NULL);
        rpc_server_set_health(rig.server, "", round % 2 == 0);
    }
    return NULL;
}

static void start_dangling(struct answer *answers)
{
    struct rpc_client_options options = {.timeout_ms = 20000};
    struct rpc_client_method method;
    Rpctest__V1__Item item;

    method_of("Unary", &method);
    item_init(&item, ECHO_HOLD, NULL, 0);
    for (unsigned i = 0; i < N_DANGLING; i++) {
        answer_init(&answers[i], &rig);
        rpc_client_call(rig.channel, &method, &item.base, &options, on_answer, &answers[i]);
    }
}

int main(void)
{
    static struct answer answers[N_DANGLING];
    pthread_t threads[N_THREADS];

    rig.n_threads = 2;
    rig_init(&rig, NULL);
    rpc_wakeup_init(&wakeup, rig.runtime, on_due, NULL);
    for (unsigned i = 0; i < N_THREADS; i++)
        check(pthread_create(&threads[i], NULL, hammer, NULL) == 0);
    for (unsigned i = 0; i < N_THREADS; i++)
        check(pthread_join(threads[i], NULL) == 0);
    check(atomic_load(&n_jobs_run) == N_THREADS * N_ROUNDS);

    rig_answer_held(&rig);
    start_dangling(answers);
    rig_deinit(&rig);
    for (unsigned i = 0; i < N_DANGLING; i++)
        check(latch_count(&answers[i].latch) == 1);
    (void)printf("%u jobs, %u wake-ups\n", atomic_load(&n_jobs_run), atomic_load(&n_wakeups));
    return 0;
}
