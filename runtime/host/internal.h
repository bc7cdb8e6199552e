/*
 * What the files of runtime/host share.
 */
#ifndef HOST_INTERNAL_H
#define HOST_INTERNAL_H

#include <pthread.h>

#include "runtime/host/host.h"
#include "runtime/host/peers.h"
#include "runtime/rpc/server.h"
#include "runtime/wire/request.h"

/* Two locks, never held together: `lock` is the core's, `outbound_lock` guards what outbound calls
 * share. */
struct host {
    struct host_options options;
    pthread_mutex_t lock;
    struct store *store; /* borrowed; NULL when the core makes no transactions, and once dropped */
    bool is_store_dropped;
    struct rt_list lost_txns; /* owned: made after the store was dropped */
    struct rpc_wakeup wakeup;
    struct rt_list inbound;         /* host_inbound.host_link: calls inside the core */
    struct rt_list streams;         /* host_stream.link: open ones */
    struct rt_list ready;           /* batch.c: streams to go on with after the step */
    struct rt_list idle_operations; /* owned; batch.c */
    size_t n_idle_operations;
    size_t n_operations; /* of batches, idle ones included */
    bool is_draining;    /* streams end when they are between two messages */

    pthread_mutex_t outbound_lock;
    bool is_stopping;           /* no outbound call is started any more */
    struct host_peers *peers;   /* owned */
    struct rt_list lanes;       /* owned; lane.c */
    struct rt_list refused;     /* model_call.link: failed before they could be sent */
    struct rpc_job refused_job; /* hands them back on the loop thread */
    struct rpc_wakeup lane_wakeup;
};

/* An inbound call while it is inside the core; embedded in the RPC's user area. */
struct host_inbound {
    struct model_call call;
    struct rt_list host_link;
    /* Encodes and sends the answer and drops the references; any thread, without a lock. */
    void (*answer)(struct host_inbound *inbound);
    /* Instead of `answer`, when set: takes the answer under the core's lock, in the step that gave
     * it. */
    void (*note)(struct host_inbound *inbound);
    bool is_in_core; /* under the core's lock */
};

enum {
    /* For a statement or other message of a stream that names no timeout. */
    HOST_EXCHANGE_TIMEOUT_MS = 10 * 1000,
};

/* When the time of a stream's message ends that came now. */
static inline uint64_t host_exchange_deadline_us(const struct wire_exchange *exchange,
                                                 uint64_t now_us)
{
    uint64_t timeout_ms = exchange->timeout_ms ? exchange->timeout_ms : HOST_EXCHANGE_TIMEOUT_MS;

    return now_us + timeout_ms * 1000;
}

/* An open stream; embedded in the RPC's user area. Under the core's lock. */
struct host_stream {
    struct rt_list link;
    struct rpc_call *rpc;
    bool is_busy;  /* a message was taken and is not answered */
    bool is_ended; /* by whoever set this */
};

/* For the fields above that the core's lock guards. */
void host_lock(struct host *host);
void host_unlock(struct host *host);

/* The end of a step, with the lock held: takes the effects, releases the lock, carries them out. */
void host_step_end(struct host *host);

/* With the lock held. True for one caller: a stream between two messages may be ended by its
 * client, by a drain and by what answered last, at the same moment. */
static inline bool host_stream_claim_end(struct host_stream *stream)
{
    bool is_first = !stream->is_ended;

    stream->is_ended = true;
    return is_first;
}

static inline struct host_inbound *host_inbound_of(struct model_call *call)
{
    return RT_CONTAINER_OF(call, struct host_inbound, call);
}

/* Hands the call to the core and carries out what follows. True when it was answered on the way;
 * in either case `inbound` may be gone. */
bool host_submit(struct host *host, struct host_inbound *inbound);

/* Who answers what does not reach the core. With the lock held. */
void host_responder(const struct host *host, struct model_responder *ret_responder);

/* The failure of a call that does not reach the core. Without a lock. */
void host_refuse(struct host *host, struct model_response *response, const struct rt_error *err);

/* Tells the core unless the call was answered. */
void host_cancel(struct host *host, struct host_inbound *inbound);

/* An outbound call has its response. Not from inside a step. */
void host_call_done(struct host *host, struct model_call *call);

/* Ends the stream with a failure, unless somebody else has ended it. Without a lock. */
void host_stream_finish(struct host *host, struct host_stream *stream, const struct rt_error *err);

/* The end, once claimed, of a stream whose server drains: what is not answered was not taken. */
void host_stream_finish_draining(struct host *host, struct rpc_call *rpc);

/* ---- outbound.c ---- */

/* How long an outbound call may take. */
struct host_time {
    uint64_t deadline_us;
    uint32_t timeout_ms; /* until then, at least 1 */
};

/* Carries out one outbound call. Never completes it from inside. */
void host_outbound_start(struct host *host, struct model_call *call);

/* Fills the response from what arrived: a message, or NULL and the failure. `never_sent`: the
 * request certainly did not leave this process. */
void host_outbound_take(struct model_call *call, const ProtobufCMessage *message,
                        const struct rt_error *err, bool never_sent);

#endif
