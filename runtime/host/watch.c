/*
 * Server streams: one call of the core after the other, each going on where the answer before it
 * ended. See inbound.h. Invariant: the call is in the core, or with one thread that carries its
 * answer on (the pump), or keeps an answer that the client has no room for. The queue thread and
 * whichever thread steps the core.
 */
#include "runtime/host/watch.h"

#include "runtime/host/internal.h"
#include "runtime/wire/request.h"
#include "runtime/wire/response.h"

enum watch_state {
    WATCH_IN_CORE,
    WATCH_PUMPING,
    WATCH_ANSWERED, /* while it was being pumped */
    WATCH_BLOCKED,  /* the answer waits until the client reads */
    WATCH_OVER,
};

/* The user area of a server stream. */
struct watch {
    struct host_inbound inbound;
    struct host_stream stream; /* busy unless it is blocked */
    struct host *host;
    enum watch_state state; /* under the core's lock, as what follows */
    bool is_done;           /* the RPC is over */
    bool is_writable;       /* there is room again, before the refusal was noted */
};

const uint32_t host_watch_user_size = sizeof(struct watch);

static void set_state(struct watch *watch, enum watch_state state)
{
    watch->state = state;
    watch->stream.is_busy = state != WATCH_BLOCKED;
}

static void end(struct watch *watch, const struct rt_error *err)
{
    bool is_first;

    host_lock(watch->host);
    set_state(watch, WATCH_OVER);
    is_first = host_stream_claim_end(&watch->stream);
    host_unlock(watch->host);
    if (is_first)
        rpc_call_finish(watch->stream.rpc, err);
    model_call_deinit(&watch->inbound.call);
}

/* The next call begins where this answer ended. */
static void prepare_next(struct watch *watch)
{
    struct model_call *call = &watch->inbound.call;
    struct model_watch_routes_request request = call->request.watch_routes;

    request.cursor = call->response.watch_routes.next;
    model_call_deinit(call);
    model_call_init(call, MODEL_CALL_WATCH_ROUTES);
    call->request.watch_routes = request;
}

/* False: there is room again, or the RPC is over. After true another thread may be the pump. */
static bool block(struct watch *watch)
{
    bool blocks;

    host_lock(watch->host);
    blocks = !watch->is_writable && !watch->is_done;
    watch->is_writable = false;
    if (blocks)
        set_state(watch, WATCH_BLOCKED);
    host_unlock(watch->host);
    return blocks;
}

/* True when the answer is on its way and the next call may begin. */
static bool send_answer(struct watch *watch)
{
    struct model_call *call = &watch->inbound.call;
    struct rt_error err = RT_ERROR_INIT;
    ProtobufCMessage *message;
    enum rt_code code;

    code = wire_response_encode(call->request.kind, &call->response, &call->arena, &message, &err);
    if (code != RT_OK) {
        end(watch, &err);
        return false;
    }
    do
        code = rpc_call_send(watch->stream.rpc, message);
    while (code == RT_RESOURCE_EXHAUSTED && !block(watch));
    if (code == RT_RESOURCE_EXHAUSTED)
        return false;
    if (code != RT_OK) {
        end(watch, NULL);
        return false;
    }
    prepare_next(watch);
    return true;
}

/* Submits; true when the answer is here already. */
static bool submit(struct watch *watch)
{
    bool is_answered;
    bool is_done;

    (void)rpc_call_ref(watch->stream.rpc);
    (void)host_submit(watch->host, &watch->inbound);
    host_lock(watch->host);
    is_answered = watch->state == WATCH_ANSWERED;
    set_state(watch, is_answered ? WATCH_PUMPING : WATCH_IN_CORE);
    is_done = watch->is_done;
    host_unlock(watch->host);
    /* It may have ended while it was between two calls, when there was nothing to cancel. */
    if (!is_answered && is_done)
        host_cancel(watch->host, &watch->inbound);
    return is_answered;
}

/* Carries on an answer, as long as the core answers at once; the caller has a reference. Not by
 * recursion: a long listing would use up the stack. */
static void pump(struct watch *watch)
{
    bool goes_on;

    do
        goes_on = send_answer(watch) && submit(watch);
    while (goes_on);
}

static void answer(struct host_inbound *inbound)
{
    struct watch *watch = RT_CONTAINER_OF(inbound, struct watch, inbound);
    struct rpc_call *rpc = watch->stream.rpc;
    bool is_pumped;

    host_lock(watch->host);
    is_pumped = watch->state == WATCH_PUMPING;
    set_state(watch, is_pumped ? WATCH_ANSWERED : WATCH_PUMPING);
    host_unlock(watch->host);
    if (!is_pumped)
        pump(watch);
    (void)rpc_call_unref(rpc);
}

static void on_open(struct rpc_call *rpc, const ProtobufCMessage *request, void *ctx)
{
    const struct wire_method *method = wire_method_of_request(request->descriptor);
    struct watch *watch = rpc_call_user(rpc);
    struct model_call *call = &watch->inbound.call;
    struct rt_error err = RT_ERROR_INIT;

    watch->host = ctx;
    watch->stream.rpc = rpc;
    watch->inbound.answer = answer;
    rt_list_init(&watch->inbound.host_link);
    model_call_init(call, method->kind);
    call->response.responder = (struct model_responder){0};
    host_lock(watch->host);
    rt_list_push_back(&watch->host->streams, &watch->stream.link);
    set_state(watch, WATCH_PUMPING);
    host_unlock(watch->host);

    if (wire_request_decode(method, request, &call->arena, &call->request, &err) != RT_OK) {
        host_refuse(watch->host, &call->response, &err);
        (void)send_answer(watch);
    } else if (submit(watch)) {
        pump(watch);
    }
}

static void on_writable(struct rpc_call *rpc, void *ctx)
{
    struct watch *watch = rpc_call_user(rpc);
    bool resumes;

    (void)ctx;
    host_lock(watch->host);
    resumes = watch->state == WATCH_BLOCKED;
    watch->is_writable = !resumes;
    if (resumes)
        set_state(watch, WATCH_PUMPING);
    host_unlock(watch->host);
    if (resumes)
        pump(watch);
}

static void on_done(struct rpc_call *rpc, void *ctx)
{
    struct watch *watch = rpc_call_user(rpc);
    bool is_blocked;

    (void)ctx;
    host_lock(watch->host);
    rt_list_remove(&watch->stream.link);
    watch->is_done = true;
    is_blocked = watch->state == WATCH_BLOCKED;
    host_unlock(watch->host);
    if (is_blocked)
        end(watch, NULL);
    host_cancel(watch->host, &watch->inbound);
}

const struct rpc_stream_handlers host_watch_handlers = {
    .on_open = on_open,
    .on_writable = on_writable,
    .on_done = on_done,
};
