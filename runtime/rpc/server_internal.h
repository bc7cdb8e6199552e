/*
 * What the parts of a server share. Not for others.
 *
 * Locks: a call's lock is taken before its server's lock, the server's before the runtime's. None
 * is held while a callback of the user runs.
 */
#ifndef RPC_SERVER_INTERNAL_H
#define RPC_SERVER_INTERNAL_H

#include <pthread.h>

#include "runtime/rpc/op.h"
#include "runtime/rpc/outbox.h"
#include "runtime/rpc/runtime_internal.h"
#include "runtime/rpc/server.h"

struct rpc_health;
struct rpc_reflection;

enum {
    RPC_METADATA_ENTRY_BYTES = 32,
    /* Core ends the whole connection over its limit, so that one is well above ours. */
    RPC_CORE_METADATA_BYTES = 64 * 1024,
    RPC_POOL_MAX = 128,       /* idle call objects kept for each method */
    RPC_PATH_SHOWN_MAX = 255, /* of an unknown method's path */
    RPC_POSTED_UNARY = 8,     /* requests that wait in core for each method */
    RPC_POSTED_STREAM = 2,    /* the same for streams, and for methods that are unknown */
};

enum {
    /* Streams of both versions at once; they may be as idle as their clients like. */
    RPC_REFLECTION_STREAMS_MAX = 256,
    /* Bytes; of health and reflection, whose streams keep it as long as they are open. */
    RPC_SMALL_REQUEST_MAX = 1024,
};

/* One method of one service, or (descriptor NULL) all unknown ones. */
struct rpc_server_method {
    struct rpc_server *server;
    const ProtobufCMethodDescriptor *descriptor;
    struct rpc_method table;
    void *ctx;
    char *path;          /* owned */
    void *registered;    /* core's handle */
    struct rt_list pool; /* idle struct rpc_call, under the server's lock */
    uint32_t n_pool;
};

struct rpc_server_service {
    struct rt_list link;
    const ProtobufCServiceDescriptor *descriptor;
    struct rpc_server_method *methods; /* owned */
    size_t n_methods;
};

enum rpc_server_state {
    RPC_SERVER_NEW,
    RPC_SERVER_STARTED,
    RPC_SERVER_DRAINING,
    RPC_SERVER_DRAINED,
};

struct rpc_server_waiter {
    struct rt_list link;
    void (*cb)(void *ctx);
    void *ctx;
};

/* Where the server listens. */
struct rpc_server_address {
    struct rt_list link;
    uint16_t port; /* 0: unix */
    char *path;    /* owned; NULL unless unix */
};

struct rpc_server {
    struct rpc_husk husk;
    struct rt_list link; /* in the runtime's servers */
    struct rpc_runtime *runtime;
    struct rpc_server_options options; /* defaults filled in */
    grpc_server *core;
    struct rpc_health *health;         /* owned */
    struct rpc_reflection *reflection; /* owned */
    struct rt_list services;           /* owned; const after start */
    struct rpc_server_method unknown;
    struct rpc_op drained_op;
    struct rpc_job drained_job;
    struct rpc_job backlog_job;
    struct rpc_wakeup wakeup; /* default deadlines and the drain's grace */
    struct rt_list waiters;   /* loop thread; owned */
    struct rt_list addresses; /* owned; const after start */
    /* loop thread; RT_NEVER while not running */
    uint64_t grace_end_us;  /* calls are cancelled */
    uint64_t linger_end_us; /* connections without calls are closed */
    uint64_t sever_at_us;   /* their sockets are shut down */
    bool is_husk;           /* drained by the shutdown: memory stays until the runtime goes */
    _Atomic uint32_t n_calls;
    _Atomic uint32_t n_streams;
    _Atomic uint32_t n_refs; /* the server itself and each call object */

    pthread_mutex_t lock; /* guards what follows, and the pools */
    enum rpc_server_state state;
    bool is_core_drained;
    struct rt_list expiring; /* unary calls with the default deadline, oldest first */
    struct rt_list backlog;  /* rpc_call.backlog_link, those without progress first */
    size_t backlog_bytes;
};

/* A call object serves one RPC at a time and goes back to its method's pool. */
enum rpc_call_phase {
    RPC_CALL_POSTED, /* waits in core for a request */
    RPC_CALL_OPEN,
    RPC_CALL_ENDING, /* status known; goes out after what is queued */
    RPC_CALL_ENDED,  /* status handed to core, or not worth sending */
    RPC_CALL_OVER,   /* core is done with it */
};

enum rpc_call_busy {
    RPC_BUSY_CLOSE = 1 << 0,
    RPC_BUSY_SEND = 1 << 1,
    RPC_BUSY_READ = 1 << 2,
};

/* What a send batch holds besides a message. */
enum rpc_send_part {
    RPC_SEND_HEADERS = 1 << 0,
    RPC_SEND_STATUS = 1 << 1,
    RPC_SEND_CLOSE = 1 << 2, /* RECV_CLOSE rides along */
};

enum rpc_call_event {
    RPC_EVENT_OPEN = 1 << 0,
    RPC_EVENT_MESSAGE = 1 << 1,
    RPC_EVENT_HALF_CLOSE = 1 << 2,
    RPC_EVENT_WRITABLE = 1 << 3,
    RPC_EVENT_CANCEL = 1 << 4,
    RPC_EVENT_OVER = 1 << 5,
};

struct rpc_call {
    struct rt_list link;          /* pool or expiring, under the server's lock */
    struct rt_list backlog_link;  /* under the server's lock */
    _Atomic size_t backlog_bytes; /* charged; raised under both locks */
    struct rpc_server *server;
    struct rpc_server_method *method;
    _Atomic uint32_t refs;      /* the runtime's and one for all users together */
    _Atomic uint32_t user_refs; /* handlers and rpc_call_ref() */
    atomic_bool is_cancelled;
    struct rpc_op request_op;
    struct rpc_op close_op;
    struct rpc_op send_op;
    struct rpc_op read_op;
    struct rpc_job cancel_job;

    /* written before the call is known to others */
    grpc_metadata_array metadata;
    grpc_call_details details; /* unknown methods only */
    gpr_timespec core_deadline;
    uint64_t started_us;
    uint64_t deadline_us;
    bool has_default_deadline;
    struct rt_arena arena;
    struct rt_arena message_arena;

    pthread_mutex_t lock; /* guards what follows */
    enum rpc_call_phase phase;
    unsigned busy;             /* enum rpc_call_busy: batches in core */
    unsigned events;           /* enum rpc_call_event: not yet delivered */
    bool is_dispatching;       /* some thread delivers events */
    bool is_opened;            /* the user's code knows it */
    bool has_headers;          /* initial metadata handed to core */
    bool is_closed;            /* RECV_CLOSE has completed */
    bool has_user_end;         /* the user has ended it */
    bool has_late_cancel;      /* its job was posted */
    bool is_half_closed;       /* nothing more to read */
    bool is_sent_ok;           /* core took the status */
    bool is_aborted;           /* by rpc_call_abort() */
    unsigned send_parts;       /* enum rpc_send_part: of the batch in core */
    int close_cancelled;       /* core's answer */
    grpc_call *core;           /* owned until over */
    grpc_byte_buffer *inbox;   /* owned: request or message not yet decoded */
    grpc_byte_buffer *sending; /* owned: in core */
    size_t sending_bytes;      /* of it, as core empties the buffer */
    struct rpc_outbox outbox;
    enum rt_code code;
    const char *reason;
    grpc_slice text;                              /* owned: status message */
    grpc_metadata trailers[RPC_TRAILERS_MAX + 1]; /* owned slices; one more for the detail */
    size_t n_trailers;
    char *peer; /* gpr's; owned */
    void (*on_cancel)(struct rpc_call *call, void *ctx);
    void *on_cancel_ctx;

    _Alignas(16) unsigned char user[];
};

/* ---- server.c ---- */
void rpc_server_lock(struct rpc_server *server);
void rpc_server_unlock(struct rpc_server *server);
void rpc_server_ref(struct rpc_server *server);
void rpc_server_unref(struct rpc_server *server);

/* ---- server_drain.c ---- */
void rpc_server_init_drain(struct rpc_server *server);
/* Carries out what is due of a drain, and asks for the next wake-up. Loop thread. */
void rpc_server_drain_due(struct rpc_server *server, uint64_t now_us);
/* The call is over: out of the lists and counts. Any thread. */
void rpc_server_forget(struct rpc_server *server, struct rpc_call *call);

/* ---- call.c: life of a call ---- */

/* Hands one more call object to core, unless the server drains. */
void rpc_call_post(struct rpc_server_method *method);
void rpc_call_free(struct rpc_call *call);
/* Gives the call the status, if it has none yet; call lock held. */
void rpc_call_end_locked(struct rpc_call *call, enum rt_code code, const char *reason,
                         const char *text);
/* Marks an event; if nobody else delivers, delivers all there are. Takes the held call lock and
 * leaves it released; the call may be gone afterwards. */
void rpc_call_raise_and_unlock(struct rpc_call *call, unsigned event);
/* The deadline that the server gave has passed. Any thread; the caller holds a reference. */
void rpc_call_expire(struct rpc_call *call);
void rpc_call_lock(struct rpc_call *call);
void rpc_call_unlock(struct rpc_call *call);
void rpc_call_hold(struct rpc_call *call);
void rpc_call_release(struct rpc_call *call);
bool rpc_call_is_stream(const struct rpc_call *call);
bool rpc_call_sends_many(const struct rpc_call *call);

/* ---- call_api.c ---- */
/* The end without waiting for the client to read what is queued; call lock held. */
void rpc_call_abort_locked(struct rpc_call *call, enum rt_code code, const char *reason,
                           const char *text);
void rpc_call_deliver_cancel(struct rpc_call *call);

/* ---- call_event.c: what runs the user's code ---- */
/* Delivers what there is, as the only thread that does. Call lock held, released on return. */
void rpc_call_deliver_all_and_unlock(struct rpc_call *call);

/* ---- call_io.c: batches; call lock held ---- */
void rpc_call_init_io(struct rpc_call *call);
void rpc_call_start_close(struct rpc_call *call);
void rpc_call_start_send(struct rpc_call *call);
void rpc_call_start_headers(struct rpc_call *call);

/* ---- backlog.c: what clients do not read ---- */
/* After the call's unsent bytes have changed; call lock held. */
void rpc_backlog_update(struct rpc_call *call);
/* The call is over; server lock held. */
void rpc_backlog_forget(struct rpc_call *call);

/* ---- server_listen.c ---- */
/* Core's arguments for these options. */
grpc_server *rpc_server_core_new(const struct rpc_server_options *options);
/* Shuts down every connection that was accepted at the server's addresses: core then notices that
 * its peers are gone, also where it waits to write. */
void rpc_server_sever(struct rpc_server *server);
void rpc_server_free_addresses(struct rpc_server *server);

/* ---- health.c ---- */
struct rpc_health *rpc_health_new(struct rpc_server *server);
struct rpc_health *rpc_health_free(struct rpc_health *health);
void rpc_health_set(struct rpc_health *health, const char *service, bool is_serving);
/* NOT_SERVING for all, watches end. */
void rpc_health_drain(struct rpc_health *health);

/* ---- reflection.c ---- */
struct rpc_reflection *rpc_reflection_new(struct rpc_server *server);
struct rpc_reflection *rpc_reflection_free(struct rpc_reflection *reflection);
/* Its streams end. */
void rpc_reflection_drain(struct rpc_reflection *reflection);

#endif
