/*
 * gRPC clients: channels, unary calls, streams of the three kinds.
 *
 * Callbacks run on the queue thread (runtime.h), never from inside the call that started the work;
 * another thread than the starter may see them before the starting call has returned.
 */
#ifndef RPC_CLIENT_H
#define RPC_CLIENT_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/bytes.h"
#include "runtime/base/error.h"
#include "runtime/rpc/runtime.h"

struct rpc_channel;
struct rpc_client_call;
struct rpc_client_stream;

enum {
    RPC_METHOD_PATH_MAX = 255,
    RPC_CLIENT_METADATA_MAX = 16,
};

/* Long-lived streams only. */
#define RPC_NO_TIMEOUT UINT32_MAX

/* Zero means the default. */
struct rpc_channel_options {
    uint32_t max_message_bytes;    /* 4 MiB */
    uint32_t max_metadata_bytes;   /* 64 KiB; a server over it loses the connection */
    uint32_t max_arena_bytes;      /* 32 MiB, decoded form of one message */
    uint32_t min_backoff_ms;       /* 100 */
    uint32_t max_backoff_ms;       /* 2000 */
    uint32_t keepalive_ms;         /* 5000 */
    uint32_t keepalive_timeout_ms; /* 2000 */
    bool keepalive_without_calls;  /* only where a dead peer must be noticed while idle */
    uint32_t queue_messages;       /* 256, output queue of a stream */
    uint32_t queue_bytes;          /* 4 MiB */
};

/* "host:port" or "unix:/path". Connects at the first call, reconnects by itself. Owned by the
 * runtime until rpc_channel_close() or its shutdown. Any thread. NULL options = defaults. */
struct rpc_channel *rpc_channel_new(struct rpc_runtime *runtime, const char *address,
                                    const struct rpc_channel_options *options);

/* Cancels what is in flight (it completes with CANCELLED); `cb` (may be NULL) runs on the loop
 * thread after the last completion; the channel is released then. Any thread, once; no call may
 * be started on it any more. */
void rpc_channel_close(struct rpc_channel *channel, void (*cb)(void *ctx), void *ctx);

const char *rpc_channel_address(const struct rpc_channel *channel);

/* ---- methods ---- */

struct rpc_client_method {
    char path[RPC_METHOD_PATH_MAX + 1]; /* "/package.Service/Method" */
    const ProtobufCMessageDescriptor *response;
};

/* Aborts when the service has no such method or the path is too long: both are fixed at build
 * time. */
void rpc_client_method_of(const ProtobufCServiceDescriptor *service, const char *name,
                          struct rpc_client_method *ret_method);

struct rpc_client_metadata {
    const char *key; /* lower case; "-bin" for binary values */
    struct rt_bytes value;
};

struct rpc_client_options {
    uint32_t timeout_ms; /* mandatory, never 0; RPC_NO_TIMEOUT for streams only */
    bool wait_for_ready; /* wait for a connection, not UNAVAILABLE at once */
    const struct rpc_client_metadata *metadata; /* borrowed during the starting call */
    size_t n_metadata;                          /* <= RPC_CLIENT_METADATA_MAX */
};

/* ---- unary ---- */

/* Exactly once. `response` is NULL on failure and valid during the callback; `err` is NULL on
 * success. err->detail holds the grpc-status-details-bin trailer, valid during the callback. */
typedef void (*rpc_client_cb)(struct rpc_client_call *call, const ProtobufCMessage *response,
                              const struct rt_error *err, void *ctx);

/* Nothing is kept of the arguments but the method's descriptor. Failures of any kind arrive in
 * cb: INVALID_ARGUMENT for illegal metadata, INTERNAL for an undecodable response, UNAVAILABLE when
 * the server cut the call. A call that could not be started completes on the loop thread. Any
 * thread. */
void rpc_client_call(struct rpc_channel *channel, const struct rpc_client_method *method,
                     const ProtobufCMessage *request, const struct rpc_client_options *options,
                     rpc_client_cb cb, void *ctx);

/* The same; the caller owns the returned reference and drops it with rpc_client_call_unref(). */
RT_MUST_USE struct rpc_client_call *rpc_client_call_cancellable(
    struct rpc_channel *channel, const struct rpc_client_method *method,
    const ProtobufCMessage *request, const struct rpc_client_options *options, rpc_client_cb cb,
    void *ctx);

/* cb comes with CANCELLED unless the call was already over. Any thread, idempotent. */
void rpc_client_call_cancel(struct rpc_client_call *call);
struct rpc_client_call *rpc_client_call_unref(struct rpc_client_call *call);

/* Inside cb of a failed call: true when the request certainly never left this process (no
 * connection was there to take it), so that repeating it is safe; false when that is not known, as
 * always for unix: addresses and for calls that were cancelled or whose deadline has passed. */
bool rpc_client_call_never_sent(struct rpc_client_call *call);

/* ---- streams ---- */

/* Callbacks of one stream are never concurrent and never nested; on_done is the last and always
 * comes. Members may be NULL except on_done. */
struct rpc_client_stream_handlers {
    /* One message after each rpc_client_stream_read_next(); valid until the next read_next. The
     * response of a client stream arrives here too. */
    void (*on_message)(struct rpc_client_stream *stream, const ProtobufCMessage *message,
                       void *ctx);
    /* rpc_client_stream_send() had refused, and half of the queue is free again. */
    void (*on_writable)(struct rpc_client_stream *stream, void *ctx);
    /* err is NULL for OK; err->detail as in rpc_client_cb. Comes after all messages were read, or
     * at once when the call failed. */
    void (*on_done)(struct rpc_client_stream *stream, const struct rt_error *err, void *ctx);
};

/* Opens a stream of any kind; for a server stream send one message and finish_writes. The caller
 * owns the returned reference. Handlers and ctx must live until on_done returned. */
RT_MUST_USE struct rpc_client_stream *rpc_client_stream_open(
    struct rpc_channel *channel, const struct rpc_client_method *method,
    const struct rpc_client_options *options, const struct rpc_client_stream_handlers *handlers,
    void *ctx);

/* All below: any thread, while holding a reference. */

/* RESOURCE_EXHAUSTED when the queue is full (on_writable follows), CANCELLED when the stream is
 * over, FAILED_PRECONDITION after finish_writes. An empty queue takes any message. */
RT_MUST_USE enum rt_code rpc_client_stream_send(struct rpc_client_stream *stream,
                                                const ProtobufCMessage *message);
/* Half-close, after everything queued; idempotent. */
void rpc_client_stream_finish_writes(struct rpc_client_stream *stream);
/* Asks for one message; invalidates the one before. Does nothing while one is asked for or when no
 * more will come. */
void rpc_client_stream_read_next(struct rpc_client_stream *stream);
void rpc_client_stream_cancel(struct rpc_client_stream *stream);
struct rpc_client_stream *rpc_client_stream_unref(struct rpc_client_stream *stream);
/* Inside on_done: as rpc_client_call_never_sent(). */
bool rpc_client_stream_never_sent(struct rpc_client_stream *stream);

#endif
