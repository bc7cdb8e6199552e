/*
 * Client streams of the three kinds, with a bounded output queue and explicit reads.
 *
 * Invariant: as for server calls, one send and one read are out at a time (busy bits), one thread
 * at a time delivers events without the stream's lock, DONE is the last. The status is received by
 * a batch of its own that core completes after the last message was read. The runtime holds a
 * reference until DONE was delivered.
 */
#include <grpc/byte_buffer.h>
#include <grpc/slice.h>

#include "runtime/base/alloc.h"
#include "runtime/rpc/client_internal.h"
#include "runtime/rpc/codec.h"
#include "runtime/rpc/outbox.h"

enum stream_busy {
    BUSY_STATUS = 1 << 0,
    BUSY_HEADERS = 1 << 1,
    BUSY_SEND = 1 << 2,
    BUSY_READ = 1 << 3,
    BUSY_REFUSED = 1 << 4, /* never started; the loop completes it */
};

enum stream_event {
    EVENT_MESSAGE = 1 << 0,
    EVENT_WRITABLE = 1 << 1,
    EVENT_DONE = 1 << 2,
};

/* What finish_writes() has come to. */
enum stream_writes {
    WRITES_OPEN,
    WRITES_FINISHING, /* half-close follows what is queued */
    WRITES_FINISHED,
};

struct rpc_client_stream {
    struct rpc_op status_op;
    struct rpc_op headers_op;
    struct rpc_op send_op;
    struct rpc_op read_op;
    struct rpc_job refused_job;
    struct rpc_flight flight;
    _Atomic uint32_t refs;
    const ProtobufCMessageDescriptor *type;
    const struct rpc_client_stream_handlers *handlers;
    void *ctx;
    struct rt_arena arena; /* of the current message; the delivering thread's */

    pthread_mutex_t lock; /* guards what follows */
    unsigned busy;        /* enum stream_busy */
    unsigned events;      /* enum stream_event */
    enum stream_writes writes;
    bool is_dispatching;
    bool has_headers;          /* sent */
    bool has_status;           /* received */
    bool is_done;              /* DONE was raised */
    bool is_read_ended;        /* no more messages */
    grpc_byte_buffer *inbox;   /* owned */
    grpc_byte_buffer *sending; /* owned */
    struct rpc_outbox outbox;
};

static void lock_stream(struct rpc_client_stream *stream)
{
    (void)pthread_mutex_lock(&stream->lock);
}

static void unlock_stream(struct rpc_client_stream *stream)
{
    (void)pthread_mutex_unlock(&stream->lock);
}

struct rpc_client_stream *rpc_client_stream_unref(struct rpc_client_stream *stream)
{
    if (stream && atomic_fetch_sub_explicit(&stream->refs, 1, memory_order_acq_rel) == 1) {
        rpc_outbox_deinit(&stream->outbox);
        (void)pthread_mutex_destroy(&stream->lock);
        (void)rt_free(stream);
    }
    return NULL;
}

/* ---- delivering events ---- */

static void deliver_message(struct rpc_client_stream *stream)
{
    struct rt_error err = RT_ERROR_INIT;
    ProtobufCMessage *message = NULL;
    enum rt_code code;

    rt_arena_rewind(&stream->arena);
    code = rpc_decode(stream->inbox, stream->type, &stream->arena, &message, &err);
    grpc_byte_buffer_destroy(RT_TAKE(stream->inbox));
    if (code == RT_OK) {
        if (stream->handlers->on_message)
            stream->handlers->on_message(stream, message, stream->ctx);
        return;
    }
    if (code == RT_INVALID_ARGUMENT)
        err.code = RT_INTERNAL;
    lock_stream(stream);
    stream->is_read_ended = true;
    stream->flight.refusal = err;
    rpc_flight_cancel(&stream->flight);
    unlock_stream(stream);
}

static void deliver_done(struct rpc_client_stream *stream)
{
    struct rt_error err = RT_ERROR_INIT;

    stream->handlers->on_done(stream, rpc_flight_error(&stream->flight, &err), stream->ctx);
    rt_arena_reset(&stream->arena);
    lock_stream(stream);
    grpc_byte_buffer_destroy(RT_TAKE(stream->inbox));
    rpc_flight_end(&stream->flight);
    unlock_stream(stream);
}

static void deliver(struct rpc_client_stream *stream, enum stream_event event)
{
    switch (event) {
    case EVENT_MESSAGE:
        deliver_message(stream);
        break;
    case EVENT_WRITABLE:
        if (stream->handlers->on_writable)
            stream->handlers->on_writable(stream, stream->ctx);
        break;
    case EVENT_DONE:
        deliver_done(stream);
        break;
    }
}

static unsigned next_event(struct rpc_client_stream *stream)
{
    unsigned event;

    if (stream->has_status && stream->busy == 0 && !stream->is_done) {
        stream->is_done = true;
        stream->events |= EVENT_DONE;
    }
    if (stream->has_status)
        stream->events &= ~(unsigned)EVENT_WRITABLE;
    event = stream->events & -stream->events;
    stream->events &= ~event;
    return event;
}

/* Takes the held lock, leaves it released; the stream may be gone afterwards. */
static void raise_and_unlock(struct rpc_client_stream *stream, unsigned events)
{
    bool is_done = false;
    unsigned event;

    stream->events |= events;
    if (stream->is_dispatching) {
        unlock_stream(stream);
        return;
    }
    stream->is_dispatching = true;
    while ((event = next_event(stream)) != 0) {
        unlock_stream(stream);
        deliver(stream, event);
        is_done |= event == EVENT_DONE;
        lock_stream(stream);
    }
    stream->is_dispatching = false;
    unlock_stream(stream);
    if (is_done)
        (void)rpc_client_stream_unref(stream);
}

/* ---- sending; lock held ---- */

static void start_send(struct rpc_client_stream *stream)
{
    grpc_op parts[3] = {0};
    size_t n_parts = 0;
    bool is_started;

    if ((stream->busy & BUSY_SEND) || stream->has_status || !stream->flight.core)
        return;
    if (!stream->has_headers)
        rpc_flight_add_headers(&stream->flight, &parts[n_parts++]);
    stream->has_headers = true;
    stream->sending = rpc_outbox_pop(&stream->outbox);
    if (stream->sending) {
        parts[n_parts].op = GRPC_OP_SEND_MESSAGE;
        parts[n_parts++].data.send_message.send_message = stream->sending;
    }
    if (stream->writes == WRITES_FINISHING && stream->outbox.count == 0) {
        parts[n_parts++].op = GRPC_OP_SEND_CLOSE_FROM_CLIENT;
        stream->writes = WRITES_FINISHED;
    }
    if (n_parts == 0)
        return;
    stream->busy |= BUSY_SEND;
    is_started = rpc_op_start(&stream->send_op, stream->flight.core, parts, n_parts);
    rt_assert(is_started);
}

static void on_sent(struct rpc_op *op, bool ok)
{
    struct rpc_client_stream *stream = RT_CONTAINER_OF(op, struct rpc_client_stream, send_op);
    unsigned events = 0;

    lock_stream(stream);
    stream->busy &= ~(unsigned)BUSY_SEND;
    grpc_byte_buffer_destroy(RT_TAKE(stream->sending));
    if (!ok)
        rpc_outbox_clear(&stream->outbox);
    else if (rpc_outbox_take_writable(&stream->outbox))
        events |= EVENT_WRITABLE;
    if (ok)
        start_send(stream);
    raise_and_unlock(stream, events);
}

enum rt_code rpc_client_stream_send(struct rpc_client_stream *stream,
                                    const ProtobufCMessage *message)
{
    enum rt_code code = RT_OK;
    size_t size;
    grpc_byte_buffer *buffer = rpc_encode(message, &size);

    lock_stream(stream);
    if (stream->has_status || !stream->flight.core)
        code = RT_CANCELLED;
    else if (stream->writes != WRITES_OPEN)
        code = RT_FAILED_PRECONDITION;
    else if (!rpc_outbox_has_room(&stream->outbox, size))
        code = RT_RESOURCE_EXHAUSTED;
    else
        rpc_outbox_push(&stream->outbox, RT_TAKE(buffer), size);
    start_send(stream);
    unlock_stream(stream);
    grpc_byte_buffer_destroy(buffer);
    return code;
}

void rpc_client_stream_finish_writes(struct rpc_client_stream *stream)
{
    lock_stream(stream);
    if (stream->writes == WRITES_OPEN) {
        stream->writes = WRITES_FINISHING;
        start_send(stream);
    }
    unlock_stream(stream);
}

/* ---- receiving ---- */

static void on_read(struct rpc_op *op, bool ok)
{
    struct rpc_client_stream *stream = RT_CONTAINER_OF(op, struct rpc_client_stream, read_op);
    bool has_message;

    lock_stream(stream);
    stream->busy &= ~(unsigned)BUSY_READ;
    has_message = ok && stream->inbox;
    if (!has_message)
        stream->is_read_ended = true;
    raise_and_unlock(stream, has_message ? EVENT_MESSAGE : 0);
}

void rpc_client_stream_read_next(struct rpc_client_stream *stream)
{
    grpc_op part = {.op = GRPC_OP_RECV_MESSAGE};
    bool is_started;

    lock_stream(stream);
    if (!(stream->busy & BUSY_READ) && !(stream->events & EVENT_MESSAGE) &&
        !stream->is_read_ended && !stream->has_status && stream->flight.core) {
        part.data.recv_message.recv_message = &stream->inbox;
        stream->busy |= BUSY_READ;
        is_started = rpc_op_start(&stream->read_op, stream->flight.core, &part, 1);
        rt_assert(is_started);
    }
    unlock_stream(stream);
}

static void on_headers(struct rpc_op *op, bool ok)
{
    struct rpc_client_stream *stream = RT_CONTAINER_OF(op, struct rpc_client_stream, headers_op);

    (void)ok;
    lock_stream(stream);
    stream->busy &= ~(unsigned)BUSY_HEADERS;
    raise_and_unlock(stream, 0);
}

static void take_status(struct rpc_client_stream *stream, unsigned busy)
{
    lock_stream(stream);
    stream->busy &= ~busy;
    stream->has_status = true;
    rpc_outbox_clear(&stream->outbox);
    raise_and_unlock(stream, 0);
}

static void on_status(struct rpc_op *op, bool ok)
{
    (void)ok;
    take_status(RT_CONTAINER_OF(op, struct rpc_client_stream, status_op), BUSY_STATUS);
}

static void on_refused(struct rpc_job *job)
{
    take_status(RT_CONTAINER_OF(job, struct rpc_client_stream, refused_job), BUSY_REFUSED);
}

/* ---- open and cancel ---- */

/* Lock held. */
static void start(struct rpc_client_stream *stream)
{
    grpc_op part = {0};
    bool is_started;

    rpc_flight_add_status(&stream->flight, &part);
    stream->busy |= BUSY_STATUS;
    is_started = rpc_op_start(&stream->status_op, stream->flight.core, &part, 1);
    rt_assert(is_started);

    start_send(stream);

    part = (grpc_op){.op = GRPC_OP_RECV_INITIAL_METADATA};
    part.data.recv_initial_metadata.recv_initial_metadata = &stream->flight.headers;
    stream->busy |= BUSY_HEADERS;
    is_started = rpc_op_start(&stream->headers_op, stream->flight.core, &part, 1);
    rt_assert(is_started);
}

struct rpc_client_stream *rpc_client_stream_open(struct rpc_channel *channel,
                                                 const struct rpc_client_method *method,
                                                 const struct rpc_client_options *options,
                                                 const struct rpc_client_stream_handlers *handlers,
                                                 void *ctx)
{
    struct rpc_client_stream *stream = rt_xalloc(sizeof(*stream));

    rt_assert(options->timeout_ms != 0 && handlers->on_done);
    rpc_op_init(&stream->status_op, on_status);
    rpc_op_init(&stream->headers_op, on_headers);
    rpc_op_init(&stream->send_op, on_sent);
    rpc_op_init(&stream->read_op, on_read);
    atomic_init(&stream->refs, 2);
    (void)pthread_mutex_init(&stream->lock, NULL);
    stream->type = method->response;
    stream->handlers = handlers;
    stream->ctx = ctx;
    stream->arena.limit = channel->options.max_arena_bytes;
    stream->outbox.max_count = channel->options.queue_messages;
    stream->outbox.max_bytes = channel->options.queue_bytes;
    rpc_flight_begin(&stream->flight, channel, method, options);

    lock_stream(stream);
    if (stream->flight.core) {
        start(stream);
    } else {
        stream->busy |= BUSY_REFUSED;
        rpc_runtime_post(channel->runtime, &stream->refused_job, on_refused);
    }
    unlock_stream(stream);
    return stream;
}

void rpc_client_stream_cancel(struct rpc_client_stream *stream)
{
    lock_stream(stream);
    rpc_flight_cancel(&stream->flight);
    unlock_stream(stream);
}

bool rpc_client_stream_never_sent(struct rpc_client_stream *stream)
{
    return rpc_flight_never_sent(&stream->flight);
}
