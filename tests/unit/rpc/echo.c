/*
 * The echo service of the tests: see rig.h. Handlers run on the queue thread.
 */
#include <stdio.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "tests/unit/rpc/rig.h"

/* ---- unary ---- */

struct later {
    struct rpc_job job;
    struct rpc_call *call;
    const ProtobufCMessage *request;
};

static void reply_number(struct rpc_call *call, uint32_t number, struct rt_bytes data)
{
    Rpctest__V1__Item item;

    item_init(&item, number, data.data, data.size);
    rpc_call_reply(call, &item.base);
}

static void on_cancelled(struct rpc_call *call, void *ctx)
{
    struct echo *echo = ctx;

    (void)call;
    latch_add(&echo->cancels);
}

static void hold(struct rpc_call *call, struct echo *echo)
{
    (void)pthread_mutex_lock(&echo->lock);
    rt_assert(echo->n_held < ECHO_HELD_MAX);
    echo->held[echo->n_held++] = rpc_call_ref(call);
    (void)pthread_mutex_unlock(&echo->lock);
    rpc_call_set_cancel(call, on_cancelled, echo);
    latch_add(&echo->holds);
}

static void fail(struct rpc_call *call, struct rt_bytes detail)
{
    struct rt_error err = RT_ERROR_INIT;

    (void)rt_fail_reason(&err, RT_NOT_FOUND, "TESTED", "failed as asked");
    err.detail = detail;
    rpc_call_fail(call, &err);
}

static void on_later(struct rpc_job *job)
{
    struct later *later = RT_CONTAINER_OF(job, struct later, job);

    rpc_call_reply(later->call, later->request);
    (void)rpc_call_unref(later->call);
    (void)rt_free(later);
}

static void reply_later(struct rpc_call *call, const ProtobufCMessage *request, struct echo *echo)
{
    struct later *later = rt_xalloc(sizeof(*later));

    later->call = rpc_call_ref(call);
    later->request = request;
    rpc_runtime_post(echo->runtime, &later->job, on_later);
}

static void reply_metadata(struct rpc_call *call, const Rpctest__V1__Item *item)
{
    char key[64];
    struct rt_bytes value = {0};
    bool is_found;

    (void)snprintf(key, sizeof(key), "%.*s", (int)item->data.len, (const char *)item->data.data);
    is_found = rpc_call_metadata(call, key, &value);
    reply_number(call, is_found && strncmp(rpc_call_peer(call), "ipv4:127.0.0.1:", 15) == 0, value);
}

static void fail_with_trailers(struct rpc_call *call)
{
    struct rt_error err = RT_ERROR_INIT;
    struct rt_error refusal = RT_ERROR_INIT;
    unsigned n = 0;

    if (rpc_call_add_trailing(call, "Upper", RT_BYTES_LITERAL("x"), &refusal) !=
        RT_INVALID_ARGUMENT)
        n = 1000;
    while (rpc_call_add_trailing(call, "x-trailer", RT_BYTES_LITERAL("t"), &refusal) == RT_OK)
        n++;
    (void)rt_fail(&err, RT_ABORTED, "%u %s", n, rt_code_name(refusal.code));
    rpc_call_fail(call, &err);
}

static void on_unary(struct rpc_call *call, const ProtobufCMessage *request, void *ctx)
{
    const Rpctest__V1__Item *item = (const Rpctest__V1__Item *)request;
    struct rt_bytes data = rt_bytes_of(item->data.data, item->data.len);
    uint32_t *user = rpc_call_user(call);

    switch ((enum echo_command)item->number) {
    case ECHO_REPLY:
        rpc_call_reply(call, request);
        break;
    case ECHO_FAIL:
        fail(call, data);
        break;
    case ECHO_HOLD:
        hold(call, ctx);
        break;
    case ECHO_FORGET:
        break;
    case ECHO_LATER:
        reply_later(call, request, ctx);
        break;
    case ECHO_METADATA:
        reply_metadata(call, item);
        break;
    case ECHO_TRAILERS:
        fail_with_trailers(call);
        break;
    case ECHO_DEADLINE:
        reply_number(call, rpc_call_remaining_ms(call), data);
        break;
    case ECHO_USER:
        reply_number(call, *user, data);
        *user = 7;
        break;
    }
}

/* ---- streams ---- */

/* The user area of a stream. */
struct flow {
    uint32_t left; /* Expand: answers to send */
    uint32_t sum;
    size_t size;
};

static void on_done(struct rpc_call *call, void *ctx)
{
    struct echo *echo = ctx;

    (void)pthread_mutex_lock(&echo->lock);
    echo->was_cancelled = rpc_call_is_cancelled(call);
    (void)pthread_mutex_unlock(&echo->lock);
    latch_add(&echo->done);
}

static void read_unless_paused(struct rpc_call *call, struct echo *echo)
{
    bool is_paused;

    (void)pthread_mutex_lock(&echo->lock);
    is_paused = echo->is_reading_paused;
    (void)pthread_mutex_unlock(&echo->lock);
    if (!is_paused)
        rpc_call_read_next(call);
}

static void on_open(struct rpc_call *call, const ProtobufCMessage *request, void *ctx)
{
    struct echo *echo = ctx;

    rt_assert(!request);
    latch_add(&echo->opened);
    read_unless_paused(call, echo);
}

static void on_collect_message(struct rpc_call *call, const ProtobufCMessage *message, void *ctx)
{
    struct echo *echo = ctx;
    struct flow *flow = rpc_call_user(call);

    flow->sum += ((const Rpctest__V1__Item *)message)->number;
    latch_add(&echo->messages);
    read_unless_paused(call, echo);
}

static void on_collect_half_close(struct rpc_call *call, void *ctx)
{
    struct echo *echo = ctx;
    struct flow *flow = rpc_call_user(call);

    latch_add(&echo->half_closes);
    reply_number(call, flow->sum, rt_bytes_of(NULL, 0));
}

static void abort_expand(struct rpc_call *call)
{
    struct rt_error err = RT_ERROR_INIT;

    (void)rt_fail_reason(&err, RT_RESOURCE_EXHAUSTED, "TESTED", "nobody reads");
    rpc_call_abort(call, &err);
}

/* Sends until the count is reached or the queue is full. */
static void expand(struct rpc_call *call, struct echo *echo)
{
    struct flow *flow = rpc_call_user(call);
    Rpctest__V1__Item item;
    uint8_t *data = rt_xalloc(flow->size);
    enum rt_code code = RT_OK;

    while (flow->left > 0 && code == RT_OK) {
        item_init(&item, flow->left, data, flow->size);
        code = rpc_call_send(call, &item.base);
        if (code == RT_OK)
            flow->left--;
    }
    (void)rt_free(data);
    if (code == RT_RESOURCE_EXHAUSTED) {
        latch_add(&echo->refusals);
        if (echo->aborts_expand)
            abort_expand(call);
    } else if (code == RT_OK) {
        rpc_call_finish(call, NULL);
    }
}

static void on_expand_open(struct rpc_call *call, const ProtobufCMessage *request, void *ctx)
{
    const Rpctest__V1__Item *item = (const Rpctest__V1__Item *)request;
    struct echo *echo = ctx;
    struct flow *flow = rpc_call_user(call);

    latch_add(&echo->opened);
    flow->left = item->number;
    flow->size = item->data.len;
    expand(call, echo);
}

static void on_expand_writable(struct rpc_call *call, void *ctx)
{
    expand(call, ctx);
}

static void on_chat_message(struct rpc_call *call, const ProtobufCMessage *message, void *ctx)
{
    struct echo *echo = ctx;

    latch_add(&echo->messages);
    if (((const Rpctest__V1__Item *)message)->number == UINT32_MAX)
        fail(call, RT_BYTES_LITERAL("chat"));
    else if (rpc_call_send(call, message) == RT_RESOURCE_EXHAUSTED)
        latch_add(&echo->refusals);
    read_unless_paused(call, echo);
}

static void on_chat_half_close(struct rpc_call *call, void *ctx)
{
    struct echo *echo = ctx;

    latch_add(&echo->half_closes);
    rpc_call_finish(call, NULL);
}

static const struct rpc_stream_handlers collect_handlers = {
    .on_open = on_open,
    .on_message = on_collect_message,
    .on_half_close = on_collect_half_close,
    .on_done = on_done,
};

static const struct rpc_stream_handlers expand_handlers = {
    .on_open = on_expand_open,
    .on_writable = on_expand_writable,
    .on_done = on_done,
};

static const struct rpc_stream_handlers chat_handlers = {
    .on_open = on_open,
    .on_message = on_chat_message,
    .on_half_close = on_chat_half_close,
    .on_done = on_done,
};

const struct rpc_method echo_methods[5] = {
    {"Unary", RPC_UNARY, .on_call = on_unary, .user_size = sizeof(uint32_t)},
    {"Patient", RPC_UNARY, .on_call = on_unary, .flags = RPC_NO_DEADLINE,
     .user_size = sizeof(uint32_t)},
    {"Collect", RPC_CLIENT_STREAM, .stream = &collect_handlers, .user_size = sizeof(struct flow)},
    {"Expand", RPC_SERVER_STREAM, .stream = &expand_handlers, .user_size = sizeof(struct flow)},
    {"Chat", RPC_BIDI, .stream = &chat_handlers},
};
