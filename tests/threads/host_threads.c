/*
 * Hammers a host from several threads at once: unary calls and streams that its core relays to a
 * second host (which answers from its loop), clients that cancel while answers are on their way,
 * steps and readers from outside, wake-ups, and an end in the middle of it. A plain main():
 * Criterion does not run under ThreadSanitizer. The scripted core aborts when the host breaks a
 * promise; exit code 0 when every call came to an end, too.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/host/rig.h"

enum {
    N_THREADS = 3,
    N_ROUNDS = 100,
    N_CHAT = 8,
    N_DANGLING = 20, /* calls left in flight for the end */
};

static struct host_rig rig;
static struct host_node *const front = &rig.nodes[0];
static struct host_node *const back = &rig.nodes[1];

/* ---- unary ---- */

static void call_and_cancel(uint64_t tag)
{
    struct client_call call;

    client_call_start(&rig, &call, MODEL_CALL_SET, tag, 20000);
    client_call_cancel(&call);
    client_call_wait(&call);
    rt_assert(call.response.code == RT_OK || call.response.code == RT_CANCELLED);
    client_call_deinit(&call);
}

static void call_in_no_time(uint64_t tag)
{
    struct client_call call;

    client_call_start(&rig, &call, MODEL_CALL_READ, tag, 2);
    client_call_wait(&call);
    rt_assert(call.response.code == RT_OK || call.response.code == RT_DEADLINE_EXCEEDED);
    client_call_deinit(&call);
}

/* ---- streams ---- */

static void chat(enum model_call_kind kind, bool is_cut)
{
    struct client_stream *stream = calloc(1, sizeof(*stream));
    enum rt_code code;

    rt_assert(stream);
    client_stream_open(&rig, stream, kind);
    for (unsigned i = 1; i <= N_CHAT; i++) {
        code = client_stream_send(stream, i, i, 20000, 32);
        rt_assert(code == RT_OK);
    }
    latch_wait(&stream->messages, is_cut ? 1 : N_CHAT);
    if (is_cut)
        rpc_client_stream_cancel(stream->rpc);
    else
        rpc_client_stream_finish_writes(stream->rpc);
    latch_wait(&stream->done, 1);
    rt_assert(stream->code == (is_cut ? RT_CANCELLED : RT_OK));
    for (unsigned i = 0; i < stream->n_answers; i++)
        rt_assert(stream->answers[i].id == i + 1 && stream->answers[i].code == RT_OK);
    client_stream_deinit(stream);
    free(stream);
}

/* ---- all of it ---- */

static void look(void *core, void *argument)
{
    *(unsigned *)argument += ((const struct fake_core *)core)->n_inside;
}

static void poke(unsigned round)
{
    struct fake_order order = {.kind = round % 2 ? MODEL_CALL_SET : MODEL_CALL_KEEP_ALIVE,
                               .address = back->address,
                               .tag = 1,
                               .timeout_us = round % 5 ? 0 : 3000};
    uint64_t soon_us = rt_env_now_us(front->core.env) + 500;
    unsigned n_inside = 0;

    host_node_step(front, fake_wake_at, &soon_us);
    host_node_step(front, fake_make_call, &order);
    host_read(back->host, look, &n_inside);
}

static void *hammer(void *ctx)
{
    for (unsigned round = 0; round < N_ROUNDS; round++) {
        rt_assert(client_call_now(&rig, MODEL_CALL_SET, round) == RT_OK);
        call_and_cancel(round);
        call_in_no_time(round);
        chat(round % 2 ? MODEL_CALL_EXECUTE : MODEL_CALL_KEEP_ALIVE, round % 3 == 0);
        poke(round);
    }
    return ctx;
}

static void start_dangling(struct client_call *calls)
{
    struct fake_order order = {.kind = MODEL_CALL_EXECUTE, .address = back->address, .tag = 1};

    for (unsigned i = 0; i < N_DANGLING; i++) {
        client_call_start(&rig, &calls[i], MODEL_CALL_SET, i, 20000);
        host_node_step(front, fake_make_call, &order);
    }
}

/* Under the lock, so that the queue threads see it. */
static void relay_to(void *pointer, void *address)
{
    static char copy[sizeof(back->address)];
    struct fake_core *core = pointer;

    (void)snprintf(copy, sizeof(copy), "%s", (const char *)address);
    core->relay_address = copy;
    core->mode = FAKE_RELAY;
}

static void answer_from_ticks(void *pointer, void *argument)
{
    struct fake_core *core = pointer;

    (void)argument;
    core->mode = FAKE_TICK;
}

int main(void)
{
    static struct client_call calls[N_DANGLING];
    pthread_t threads[N_THREADS];

    rig.n_threads = 2;
    host_rig_init(&rig, 2);
    host_node_step(front, relay_to, back->address);
    host_node_step(back, answer_from_ticks, NULL);
    for (unsigned i = 0; i < N_THREADS; i++)
        rt_assert(pthread_create(&threads[i], NULL, hammer, NULL) == 0);
    for (unsigned i = 0; i < N_THREADS; i++)
        rt_assert(pthread_join(threads[i], NULL) == 0);

    start_dangling(calls);
    host_rig_stop(&rig);
    for (unsigned i = 0; i < N_DANGLING; i++) {
        rt_assert(latch_count(&calls[i].done) == 1);
        client_call_deinit(&calls[i]);
    }
    rt_assert(rt_list_is_empty(&front->core.out));
    (void)printf("%u calls in, %u out, %u cancelled, %u ticks\n", latch_count(&front->core.submits),
                 latch_count(&front->core.dones), latch_count(&front->core.cancels),
                 latch_count(&back->core.ticks));
    host_rig_deinit(&rig);
    return 0;
}
