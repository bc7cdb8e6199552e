/*
 * Streams of the three kinds, both ends: order, half-close, flow control against a peer that does
 * not read, cancellation, deadlines, errors in the middle.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "tests/support/check.h"
#include "tests/unit/rpc/rig.h"

TestSuite(stream, .fini = test_alloc_expect_none, .timeout = 50);

/* What a client stream has seen. */
struct seen {
    struct latch messages;
    struct latch writable;
    struct latch done;
    enum rt_code code;
    uint8_t detail[16];
    size_t detail_size;
    bool never_sent;
    uint32_t last;
    uint32_t sum;
    unsigned n_out_of_order; /* numbers that did not step by one */
    bool reads_on;
};

static struct rig rig;
static struct seen seen;
static struct rpc_client_stream *stream;

static void on_message(struct rpc_client_stream *from, const ProtobufCMessage *message, void *ctx)
{
    struct seen *s = ctx;
    uint32_t number = ((const Rpctest__V1__Item *)message)->number;

    if (s->last != 0 && number != s->last + 1 && number + 1 != s->last)
        s->n_out_of_order++;
    s->last = number;
    s->sum += number;
    latch_add(&s->messages);
    if (s->reads_on)
        rpc_client_stream_read_next(from);
}

static void on_writable(struct rpc_client_stream *from, void *ctx)
{
    struct seen *s = ctx;

    (void)from;
    latch_add(&s->writable);
}

static void on_done(struct rpc_client_stream *from, const struct rt_error *err, void *ctx)
{
    struct seen *s = ctx;

    s->code = err ? err->code : RT_OK;
    if (err && err->detail.size > 0 && err->detail.size <= sizeof(s->detail)) {
        memcpy(s->detail, err->detail.data, err->detail.size);
        s->detail_size = err->detail.size;
    }
    s->never_sent = rpc_client_stream_never_sent(from);
    latch_add(&s->done);
}

static const struct rpc_client_stream_handlers handlers = {
    .on_message = on_message,
    .on_writable = on_writable,
    .on_done = on_done,
};

static void seen_init(bool reads_on)
{
    memset(&seen, 0, sizeof(seen));
    latch_init(&seen.messages);
    latch_init(&seen.writable);
    latch_init(&seen.done);
    seen.reads_on = reads_on;
}

static void open_stream(const char *name, uint32_t timeout_ms, bool reads_on)
{
    struct rpc_client_options options = {.timeout_ms = timeout_ms};
    struct rpc_client_method method;

    seen_init(reads_on);
    rpc_client_method_of(&rpctest__v1__echo_service__descriptor, name, &method);
    stream = rpc_client_stream_open(rig.channel, &method, &options, &handlers, &seen);
}

static enum rt_code send_item(uint32_t number, size_t size)
{
    uint8_t *data = rt_xalloc(size);
    Rpctest__V1__Item item;
    enum rt_code code;

    item_init(&item, number, data, size);
    code = rpc_client_stream_send(stream, &item.base);
    (void)rt_free(data);
    return code;
}

static void close_stream(void)
{
    latch_wait(&seen.done, 1);
    stream = rpc_client_stream_unref(stream);
}

Test(stream, client_stream_collects_and_answers)
{
    rig_init(&rig, NULL);
    open_stream("Collect", 20000, true);
    rpc_client_stream_read_next(stream);
    for (uint32_t i = 1; i <= 100; i++)
        cr_assert_eq(send_item(i, 0), RT_OK);
    rpc_client_stream_finish_writes(stream);
    rpc_client_stream_finish_writes(stream);
    cr_assert_eq(send_item(1, 0), RT_FAILED_PRECONDITION);
    close_stream();
    cr_assert_eq(seen.code, RT_OK);
    cr_assert_eq(seen.sum, 5050);
    cr_assert_eq(latch_count(&seen.messages), 1);
    latch_wait(&rig.echo.done, 1);
    cr_assert_not(rig.echo.was_cancelled);
    rig_deinit(&rig);
}

Test(stream, client_stream_without_messages)
{
    rig_init(&rig, NULL);
    open_stream("Collect", 20000, true);
    rpc_client_stream_finish_writes(stream);
    rpc_client_stream_read_next(stream);
    close_stream();
    cr_assert_eq(seen.code, RT_OK);
    cr_assert_eq(latch_count(&rig.echo.messages), 0);
    rig_deinit(&rig);
}

Test(stream, server_stream_arrives_whole_and_in_order)
{
    rig_init(&rig, NULL);
    open_stream("Expand", 20000, true);
    cr_assert_eq(send_item(5000, 10), RT_OK);
    rpc_client_stream_finish_writes(stream);
    rpc_client_stream_read_next(stream);
    close_stream();
    cr_assert_eq(seen.code, RT_OK);
    cr_assert_eq(latch_count(&seen.messages), 5000);
    cr_assert_eq(seen.n_out_of_order, 0);
    cr_assert_geq(latch_count(&rig.echo.refusals), 1);
    rig_deinit(&rig);
}

Test(stream, bidi_echoes_in_order)
{
    rig_init(&rig, NULL);
    open_stream("Chat", RPC_NO_TIMEOUT, true);
    rpc_client_stream_read_next(stream);
    for (uint32_t i = 1; i <= 200; i++)
        cr_assert_eq(send_item(i, 100), RT_OK);
    latch_wait(&seen.messages, 200);
    rpc_client_stream_finish_writes(stream);
    close_stream();
    cr_assert_eq(seen.code, RT_OK);
    cr_assert_eq(seen.n_out_of_order, 0);
    cr_assert_eq(seen.last, 200);
    cr_assert_eq(latch_count(&rig.echo.half_closes), 1);
    rig_deinit(&rig);
}

Test(stream, two_queue_threads_keep_a_stream_in_order)
{
    rig.n_threads = 2;
    rig_init(&rig, NULL);
    for (int round = 0; round < 20; round++) {
        open_stream("Chat", 20000, true);
        rpc_client_stream_read_next(stream);
        for (uint32_t i = 1; i <= 100; i++)
            cr_assert_eq(send_item(i, 10), RT_OK);
        rpc_client_stream_finish_writes(stream);
        close_stream();
        cr_assert_eq(seen.code, RT_OK);
        cr_assert_eq(seen.last, 100);
        cr_assert_eq(seen.n_out_of_order, 0);
    }
    rig_deinit(&rig);
}

Test(stream, reads_happen_only_when_asked_for)
{
    struct answer answer;

    rig_init(&rig, NULL);
    open_stream("Chat", 20000, false);
    /* Twice before anything came is once. */
    rpc_client_stream_read_next(stream);
    rpc_client_stream_read_next(stream);
    for (uint32_t i = 1; i <= 3; i++)
        cr_assert_eq(send_item(i, 0), RT_OK);
    latch_wait(&rig.echo.messages, 3);
    latch_wait(&seen.messages, 1);
    cr_assert_eq(rig_command(&rig, ECHO_REPLY, "", &answer), RT_OK);
    cr_assert_eq(latch_count(&seen.messages), 1);
    cr_assert_eq(seen.last, 1);
    rpc_client_stream_read_next(stream);
    latch_wait(&seen.messages, 2);
    rpc_client_stream_finish_writes(stream);
    rpc_client_stream_read_next(stream);
    latch_wait(&seen.messages, 3);
    rpc_client_stream_read_next(stream);
    close_stream();
    cr_assert_eq(seen.code, RT_OK);
    rig_deinit(&rig);
}

Test(stream, error_in_the_middle_carries_its_detail)
{
    rig_init(&rig, NULL);
    open_stream("Chat", 20000, true);
    rpc_client_stream_read_next(stream);
    cr_assert_eq(send_item(1, 0), RT_OK);
    cr_assert_eq(send_item(UINT32_MAX, 0), RT_OK);
    close_stream();
    cr_assert_eq(seen.code, RT_NOT_FOUND);
    cr_assert_eq(seen.detail_size, 4);
    cr_assert_arr_eq(seen.detail, "chat", 4);
    cr_assert_eq(latch_count(&seen.messages), 1);
    latch_wait(&rig.failures, 1);
    cr_assert_eq(rig.last_failure.code, RT_NOT_FOUND);
    rig_deinit(&rig);
}

Test(stream, undecodable_message_ends_the_stream)
{
    Rpctest__V1__NotAnItem bad;

    rig_init(&rig, NULL);
    rpctest__v1__not_an_item__init(&bad);
    bad.data = 1;
    open_stream("Chat", 20000, true);
    cr_assert_eq(rpc_client_stream_send(stream, &bad.base), RT_OK);
    close_stream();
    cr_assert_eq(seen.code, RT_INVALID_ARGUMENT);
    latch_wait(&rig.echo.done, 1);
    open_stream("Expand", 20000, true);
    cr_assert_eq(rpc_client_stream_send(stream, &bad.base), RT_OK);
    rpc_client_stream_finish_writes(stream);
    close_stream();
    cr_assert_eq(seen.code, RT_INVALID_ARGUMENT);
    cr_assert_eq(latch_count(&rig.echo.opened), 1);
    rig_deinit(&rig);
}

Test(stream, undecodable_answer_ends_the_stream)
{
    struct rpc_client_options options = {.timeout_ms = 20000};
    struct rpc_client_method method;

    rig_init(&rig, NULL);
    seen_init(true);
    rpc_client_method_of(&rpctest__v1__echo_service__descriptor, "Chat", &method);
    method.response = &rpctest__v1__not_an_item__descriptor;
    stream = rpc_client_stream_open(rig.channel, &method, &options, &handlers, &seen);
    cr_assert_eq(send_item(1, 5), RT_OK);
    rpc_client_stream_read_next(stream);
    close_stream();
    cr_assert_eq(seen.code, RT_INTERNAL);
    rig_deinit(&rig);
}

Test(stream, a_client_that_never_reads_is_bounded)
{
    struct rpc_server_options options = {.queue_messages = 16, .queue_bytes = 64 * 1024};

    rig_init(&rig, &options);
    open_stream("Expand", 20000, true);
    cr_assert_eq(send_item(100000, 4000), RT_OK);
    rpc_client_stream_finish_writes(stream);
    latch_wait(&rig.echo.refusals, 1);
    /* 100,000 answers are 400 MB; what is queued is at most 64 KiB and what core had taken. The
     * stream stays refused, until the client starts to read. */
    cr_assert_eq(latch_count(&seen.messages), 0);
    rpc_client_stream_read_next(stream);
    latch_wait(&seen.messages, 1000);
    rpc_client_stream_cancel(stream);
    close_stream();
    cr_assert_eq(seen.code, RT_CANCELLED);
    latch_wait(&rig.echo.done, 1);
    cr_assert(rig.echo.was_cancelled);
    rig_deinit(&rig);
}

/* Its call is over at the server although it reads nothing, and it is told why when it looks. */
Test(stream, a_client_that_never_reads_can_be_ended)
{
    rig_init(&rig, NULL);
    rig.echo.aborts_expand = true;
    open_stream("Expand", 20000, true);
    cr_assert_eq(send_item(100000, 4000), RT_OK);
    rpc_client_stream_finish_writes(stream);
    latch_wait(&rig.echo.done, 1);
    cr_assert_not(rig.echo.was_cancelled);
    latch_wait(&rig.failures, 1);
    cr_assert_eq(rig.last_failure.code, RT_RESOURCE_EXHAUSTED);
    rpc_client_stream_read_next(stream);
    close_stream();
    cr_assert_eq(seen.code, RT_RESOURCE_EXHAUSTED);
    rig_deinit(&rig);
}

Test(stream, a_server_that_never_reads_is_bounded)
{
    enum {
        SIZE = 100 * 1000
    };
    unsigned n_sent = 0;
    enum rt_code code;

    rig_init(&rig, NULL);
    rig.echo.is_reading_paused = true;
    open_stream("Collect", 20000, true);
    while ((code = send_item(1, SIZE)) == RT_OK)
        n_sent++;
    cr_assert_eq(code, RT_RESOURCE_EXHAUSTED);
    cr_assert_leq(n_sent, 300);
    cr_assert_eq(latch_count(&rig.echo.messages), 0);
    rpc_client_stream_cancel(stream);
    latch_wait(&seen.done, 1);
    cr_assert_eq(seen.code, RT_CANCELLED);
    cr_assert_eq(send_item(1, 1), RT_CANCELLED);
    close_stream();
    rig_deinit(&rig);
}

Test(stream, client_hears_when_its_queue_has_room_again)
{
    enum rt_code code = RT_OK;
    uint32_t n_sent = 0;

    rig_init(&rig, NULL);
    open_stream("Collect", 20000, true);
    rpc_client_stream_read_next(stream);
    for (unsigned refusals = 0; refusals < 3;) {
        code = send_item(1, 50000);
        n_sent += code == RT_OK;
        if (code == RT_RESOURCE_EXHAUSTED)
            latch_wait(&seen.writable, ++refusals);
    }
    rpc_client_stream_finish_writes(stream);
    close_stream();
    cr_assert_eq(seen.code, RT_OK);
    cr_assert_eq(seen.sum, n_sent);
    rig_deinit(&rig);
}

Test(stream, message_larger_than_the_queue_passes_when_it_is_empty)
{
    struct rpc_server_options options = {.queue_messages = 1, .queue_bytes = 10};

    rig_init(&rig, &options);
    open_stream("Expand", 20000, true);
    cr_assert_eq(send_item(20, 1000), RT_OK);
    rpc_client_stream_finish_writes(stream);
    rpc_client_stream_read_next(stream);
    close_stream();
    cr_assert_eq(seen.code, RT_OK);
    cr_assert_eq(latch_count(&seen.messages), 20);
    rig_deinit(&rig);
}

/* A cut stream must never look like a finished one. */
Test(stream, cancelled_upload_is_no_half_close)
{
    rig_init(&rig, NULL);
    for (unsigned i = 1; i <= 200; i++) {
        open_stream(i % 2 ? "Collect" : "Chat", 20000, true);
        cr_assert_eq(send_item(1, 10), RT_OK);
        latch_wait(&rig.echo.messages, i);
        rpc_client_stream_cancel(stream);
        close_stream();
        cr_assert_eq(seen.code, RT_CANCELLED);
        latch_wait(&rig.echo.done, i);
        cr_assert(rig.echo.was_cancelled);
    }
    cr_assert_eq(latch_count(&rig.echo.half_closes), 0);
    latch_wait(&rig.failures, 200);
    cr_assert_eq(rig.last_failure.code, RT_CANCELLED);
    rig_deinit(&rig);
}

enum {
    N_CUT = 50
};

/* A client process that uploads to the port it reads and then waits to be killed. */
static void run_victim(int port_pipe)
{
    char address[64] = "";
    struct rpc_client_options options = {.timeout_ms = RPC_NO_TIMEOUT};
    struct rpc_client_method method;
    struct rpc_runtime *runtime = rpc_runtime_new(NULL);
    struct rpc_channel *channel;

    if (read(port_pipe, address, sizeof(address) - 1) <= 0)
        _exit(1);
    channel = rpc_channel_new(runtime, address, NULL);
    seen_init(true);
    rpc_client_method_of(&rpctest__v1__echo_service__descriptor, "Collect", &method);
    for (int i = 0; i < N_CUT; i++) {
        stream = rpc_client_stream_open(channel, &method, &options, &handlers, &seen);
        (void)send_item(1, 10);
    }
    for (;;)
        (void)pause();
}

/* Nor one whose client died. */
Test(stream, upload_of_a_killed_process_is_no_half_close)
{
    int port_pipe[2];
    pid_t victim;

    cr_assert_eq(pipe(port_pipe), 0);
    victim = fork();
    cr_assert_geq(victim, 0);
    if (victim == 0)
        run_victim(port_pipe[0]);
    rig.n_threads = 2;
    rig_init(&rig, NULL);
    cr_assert_gt(write(port_pipe[1], rig.address, strlen(rig.address)), 0);
    latch_wait(&rig.echo.messages, N_CUT);
    (void)kill(victim, SIGKILL);
    (void)waitpid(victim, NULL, 0);
    latch_wait(&rig.echo.done, N_CUT);
    cr_assert(rig.echo.was_cancelled);
    cr_assert_eq(latch_count(&rig.echo.half_closes), 0);
    rig_deinit(&rig);
    (void)close(port_pipe[0]);
    (void)close(port_pipe[1]);
}

Test(stream, deadline_ends_a_stream_on_both_ends)
{
    rig_init(&rig, NULL);
    /* A busy machine may let a deadline pass before the stream is at the server. */
    for (uint32_t timeout_ms = 100, n_messages = 0; n_messages == 0; timeout_ms *= 4) {
        open_stream("Chat", timeout_ms, true);
        rpc_client_stream_read_next(stream);
        (void)send_item(1, 10); /* refused when the deadline has passed already */
        latch_wait(&seen.done, 1);
        n_messages = latch_count(&seen.messages);
        close_stream();
        cr_assert_eq(seen.code, RT_DEADLINE_EXCEEDED);
    }
    latch_wait(&rig.echo.done, 1);
    cr_assert(rig.echo.was_cancelled);
    latch_wait(&rig.failures, 1);
    rig_deinit(&rig);
}

Test(stream, closing_the_channel_ends_its_streams)
{
    rig_init(&rig, NULL);
    open_stream("Chat", RPC_NO_TIMEOUT, true);
    rpc_client_stream_read_next(stream);
    cr_assert_eq(send_item(1, 10), RT_OK);
    latch_wait(&seen.messages, 1);
    rig_close_channel(&rig);
    cr_assert_eq(latch_count(&seen.done), 1);
    close_stream();
    cr_assert_eq(seen.code, RT_CANCELLED);
    rig_deinit(&rig);
}

Test(stream, unknown_method_is_refused)
{
    struct rpc_client_options options = {.timeout_ms = 30000};
    struct rpc_client_method method;

    rig_init(&rig, NULL);
    seen_init(true);
    rpc_client_method_of(&rpctest__v1__echo_service__descriptor, "Chat", &method);
    (void)snprintf(method.path, sizeof(method.path), "/rpctest.v1.EchoService/Nothing");
    stream = rpc_client_stream_open(rig.channel, &method, &options, &handlers, &seen);
    close_stream();
    cr_assert_eq(seen.code, RT_UNIMPLEMENTED);
    rig_deinit(&rig);
}

Test(stream, stopping_with_streams_open_ends_them)
{
    rig_init(&rig, NULL);
    open_stream("Chat", RPC_NO_TIMEOUT, true);
    rpc_client_stream_read_next(stream);
    cr_assert_eq(send_item(1, 10), RT_OK);
    latch_wait(&seen.messages, 1);
    rig_deinit(&rig);
    cr_assert_eq(latch_count(&seen.done), 1);
    cr_assert_neq(seen.code, RT_OK);
    stream = rpc_client_stream_unref(stream);
}
