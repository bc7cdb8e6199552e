/*
 * gRPC servers: services from tables of handlers, unary and streaming calls, health, reflection,
 * drain.
 *
 * Handlers run on the queue thread (runtime.h), one at a time for each call; with one queue thread
 * one at a time for the whole process. They must not block. Functions on a call may be used from
 * any thread while the caller holds a reference (inside a callback the runtime holds one) and never
 * call back synchronously.
 */
#ifndef RPC_SERVER_H
#define RPC_SERVER_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/arena.h"
#include "runtime/base/bytes.h"
#include "runtime/base/error.h"
#include "runtime/rpc/runtime.h"

struct rpc_server;
struct rpc_call;

enum {
    RPC_DEFAULT_MAX_MESSAGE_BYTES = 4 * 1024 * 1024,
    RPC_DEFAULT_MAX_METADATA_BYTES = 8 * 1024,
    RPC_DEFAULT_MAX_ARENA_BYTES = 32 * 1024 * 1024,
    RPC_DEFAULT_UNARY_DEADLINE_MS = 10 * 1000,
    RPC_DEFAULT_MAX_CALLS = 10 * 1000,
    RPC_DEFAULT_MAX_STREAMS = 10 * 1000,
    RPC_DEFAULT_QUEUE_MESSAGES = 256,
    RPC_DEFAULT_QUEUE_BYTES = 4 * 1024 * 1024,
    RPC_DEFAULT_BACKLOG_BYTES = 256 * 1024 * 1024,
    RPC_DEFAULT_KEEPALIVE_PERMIT_MS = 1000,
    RPC_BACKLOG_FREE_BYTES = 4 * 1024, /* of one call that the backlog does not count */
    RPC_ERROR_DETAIL_MAX = 4 * 1024,   /* a larger err->detail is left out of the answer */
    RPC_TRAILERS_MAX = 8,
};

/* One RPC that ended with another code than OK, exactly once for each, also for refused ones.
 * `method` is the full path, `reason` err->reason or NULL, both borrowed. */
struct rpc_failure {
    const char *method;
    const char *peer;
    enum rt_code code;
    const char *reason;
    uint64_t duration_us;
};

/* Zero means the default of the same name. */
struct rpc_server_options {
    uint32_t max_message_bytes;
    uint32_t max_metadata_bytes; /* of a call's headers, 32 bytes added for each */
    uint32_t max_arena_bytes;    /* decoded form of one message */
    uint32_t unary_deadline_ms;  /* given to unary calls that come without a deadline */
    uint32_t max_calls;          /* unary calls at once, else RESOURCE_EXHAUSTED */
    uint32_t max_streams;        /* streams at once, else RESOURCE_EXHAUSTED */
    uint32_t queue_messages;     /* output queue of a stream */
    uint32_t queue_bytes;
    /* Answers of all calls that clients have not taken, those of up to RPC_BACKLOG_FREE_BYTES
     * aside. Past it the calls whose clients have read nothing for the longest time end with
     * RESOURCE_EXHAUSTED. */
    uint32_t backlog_bytes;
    uint32_t keepalive_permit_ms; /* clients may ping this often */
    void (*on_failed)(const struct rpc_failure *failure, void *ctx); /* queue or loop thread */
    void *on_failed_ctx;
};

/* ---- service tables ---- */

enum rpc_kind {
    RPC_UNARY,
    RPC_CLIENT_STREAM,
    RPC_SERVER_STREAM,
    RPC_BIDI,
};

enum rpc_method_flags {
    RPC_NO_DEADLINE = 1 << 0, /* unary_deadline_ms does not apply */
};

/* The request lives in the call's arena until the call has ended and is unreferenced. To answer
 * later keep rpc_call_ref(call). A handler that returns without having ended the call and without
 * a reference is a bug: the caller gets INTERNAL. */
typedef void (*rpc_unary_fn)(struct rpc_call *call, const ProtobufCMessage *request, void *ctx);

/* Callbacks of one stream are never concurrent and never nested; on_done is the last and always
 * comes. Members may be NULL except on_done. */
struct rpc_stream_handlers {
    /* `request` is NULL for client streams and bidi; for server streams as in rpc_unary_fn. */
    void (*on_open)(struct rpc_call *call, const ProtobufCMessage *request, void *ctx);
    /* One message after each rpc_call_read_next(); valid until the next read_next, and after
     * on_done as long as the call is referenced. */
    void (*on_message)(struct rpc_call *call, const ProtobufCMessage *message, void *ctx);
    /* The client will send no more (found by a read_next). */
    void (*on_half_close)(struct rpc_call *call, void *ctx);
    /* rpc_call_send() had refused, and half of the queue is free again. */
    void (*on_writable)(struct rpc_call *call, void *ctx);
    /* Finished, or rpc_call_is_cancelled(). Afterwards only own references keep the call. */
    void (*on_done)(struct rpc_call *call, void *ctx);
};

struct rpc_method {
    const char *name; /* as in the descriptor: "Put" */
    enum rpc_kind kind;
    unsigned flags;                           /* enum rpc_method_flags */
    rpc_unary_fn on_call;                     /* RPC_UNARY only */
    uint32_t user_size;                       /* bytes of rpc_call_user() */
    uint32_t queue_messages;                  /* output queue of its streams; 0 = the server's */
    const struct rpc_stream_handlers *stream; /* the other kinds; must outlive the server */
    uint32_t max_message_bytes;               /* else RESOURCE_EXHAUSTED; 0 = the server's */
};

/* ---- servers ---- */

/* NULL options = defaults. Owned by the runtime: rpc_server_drain() or the runtime's shutdown
 * releases it. Carries grpc.health.v1 and grpc.reflection, v1 and v1alpha, from the start. Loop
 * thread or before run. */
struct rpc_server *rpc_server_new(struct rpc_runtime *runtime,
                                  const struct rpc_server_options *options);

/* The table must name exactly the descriptor's methods, else FAILED_PRECONDITION naming those that
 * differ; ALREADY_EXISTS when the service is there. Names and ctx must outlive the server. Before
 * rpc_server_start. */
RT_MUST_USE enum rt_code rpc_server_add_service(struct rpc_server *server,
                                                const ProtobufCServiceDescriptor *service,
                                                const struct rpc_method *methods, size_t n_methods,
                                                void *ctx, struct rt_error *err);

/* What reflection tells of the services that are added: a serialized FileDescriptorSet with all
 * imports (protoc --include_imports --descriptor_set_out); several sets may share files. Copied.
 * INVALID_ARGUMENT: no such set, or an import is missing; ALREADY_EXISTS: another file has the name
 * of one of these; RESOURCE_EXHAUSTED: more than 64 files in all. Before rpc_server_start. */
RT_MUST_USE enum rt_code rpc_server_add_descriptors(struct rpc_server *server, struct rt_bytes set,
                                                    struct rt_error *err);

/* "host:port" (port 0 chooses one) or "unix:/path". *ret_port (may be NULL) is 1 for unix.
 * ALREADY_EXISTS with the address when it is taken, INVALID_ARGUMENT when it cannot be parsed or
 * bound. Before rpc_server_start; several addresses may be listened to. */
RT_MUST_USE enum rt_code rpc_server_listen(struct rpc_server *server, const char *address,
                                           uint16_t *ret_port, struct rt_error *err);

void rpc_server_start(struct rpc_server *server);

/* Stops accepting (new calls: UNAVAILABLE), ends health watches and reflection, lets calls in
 * flight finish; after grace_ms cancels those left. Connections are not waited for: one without a
 * call is closed within 200 ms. `cb` (may be NULL) runs on the loop thread when none is left; the
 * server is released after it. Calls that are still referenced keep their memory, answers to them
 * go nowhere. A second drain only shortens the grace (its cb is called as well). Loop thread.
 */
void rpc_server_drain(struct rpc_server *server, uint32_t grace_ms, void (*cb)(void *ctx),
                      void *ctx);

/* `service` is a full name or "" for the server as a whole. Unset names answer NOT_FOUND; added
 * services and "" are NOT_SERVING until set. Any thread. */
void rpc_server_set_health(struct rpc_server *server, const char *service, bool is_serving);

/* Unary calls and streams that are not over yet. Any thread. */
uint32_t rpc_server_n_calls(const struct rpc_server *server);
uint32_t rpc_server_n_streams(const struct rpc_server *server);

/* ---- calls ---- */

/* A reference keeps the call, its request, arena and user area. */
struct rpc_call *rpc_call_ref(struct rpc_call *call);
/* Accepts NULL, returns NULL. Dropping the last one of a call that has not ended ends it with
 * INTERNAL. */
struct rpc_call *rpc_call_unref(struct rpc_call *call);

/* The end, exactly once, by one of reply (unary and client streams), fail (any), finish (server
 * streams and bidi; err NULL = OK, after everything queued was sent). Nothing is kept of the
 * arguments. On a call that was cancelled they do nothing. err->code must not be RT_OK. */
void rpc_call_reply(struct rpc_call *call, const ProtobufCMessage *response);
void rpc_call_fail(struct rpc_call *call, const struct rt_error *err);
void rpc_call_finish(struct rpc_call *call, const struct rt_error *err);

/* The end of a server stream or bidi whose client does not read: finish would wait for it. At once,
 * what is queued is dropped, err->detail does not go out. Instead of finish; err->code must not be
 * RT_OK. */
void rpc_call_abort(struct rpc_call *call, const struct rt_error *err);

/* Queues a message to the client (server streams and bidi). RESOURCE_EXHAUSTED when the peer does
 * not read and the queue is full (then on_writable follows), CANCELLED when the call is cancelled
 * or ended. An empty queue takes any message. */
RT_MUST_USE enum rt_code rpc_call_send(struct rpc_call *call, const ProtobufCMessage *message);

/* Asks for one message (client streams and bidi); invalidates the one before. Does nothing while
 * an earlier request is open or after half-close. */
void rpc_call_read_next(struct rpc_call *call);

/* Inside on_message: moves the memory of its message to the caller, for whom it then lives until
 * rt_arena_reset(); the next read_next does not end it. */
void rpc_call_take_message(struct rpc_call *call, struct rt_arena *ret_arena);

/* Zeroed memory of the method's user_size, as long as the call. */
void *rpc_call_user(struct rpc_call *call);
/* Boot clock; RT_NEVER when there is no deadline. */
uint64_t rpc_call_deadline_us(const struct rpc_call *call);
/* 0 when past; UINT32_MAX when there is no deadline. */
uint32_t rpc_call_remaining_ms(const struct rpc_call *call);
/* "ipv4:127.0.0.1:40000"; as long as the call; "unknown" once the call is over. */
const char *rpc_call_peer(struct rpc_call *call);
/* First value under a lower-case key, copied into the arena; false when absent or the call is
 * over. */
bool rpc_call_metadata(struct rpc_call *call, const char *key, struct rt_bytes *ret_value);
/* Copied; sent with the status. INVALID_ARGUMENT for an illegal key or value, RESOURCE_EXHAUSTED
 * past RPC_TRAILERS_MAX, FAILED_PRECONDITION after the end. */
RT_MUST_USE enum rt_code rpc_call_add_trailing(struct rpc_call *call, const char *key,
                                               struct rt_bytes value, struct rt_error *err);

/* Unary calls: runs once when the client is gone, the deadline has passed or a drain lost its
 * patience, unless the call ended before; queue or loop thread; inside it the call is referenced.
 * Needs an own reference; that one is still to be dropped. Set late it still runs, never from
 * inside this function. */
void rpc_call_set_cancel(struct rpc_call *call, void (*cb)(struct rpc_call *call, void *ctx),
                         void *ctx);
bool rpc_call_is_cancelled(const struct rpc_call *call);

#endif
