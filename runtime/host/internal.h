/*
 * What the files of runtime/host share.
 */
#ifndef HOST_INTERNAL_H
#define HOST_INTERNAL_H

#include <pthread.h>

#include "runtime/host/host.h"
#include "runtime/host/peers.h"

/* Two locks, never held together: `lock` is the core's, `outbound_lock` guards what outbound calls
 * share. */
struct host {
    struct host_options options;
    pthread_mutex_t lock;
    struct store *store; /* borrowed; NULL when the core makes no transactions, and once dropped */
    bool is_store_dropped;
    struct rt_list lost_txns; /* owned: made after the store was dropped */
    struct rpc_wakeup wakeup;
    struct rt_list inbound; /* host_inbound.host_link: calls inside the core */
    struct rt_list streams; /* host_stream.link: open ones */
    bool is_draining;       /* streams end when they are between two messages */

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
    bool is_in_core; /* under the core's lock */
};

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

static inline struct host_inbound *host_inbound_of(struct model_call *call)
{
    return RT_CONTAINER_OF(call, struct host_inbound, call);
}

/* Hands the call to the core and carries out what follows. True when it was answered on the way;
 * in either case `inbound` may be gone. */
bool host_submit(struct host *host, struct host_inbound *inbound);

/* Tells the core unless the call was answered. */
void host_cancel(struct host *host, struct host_inbound *inbound);

/* An outbound call has its response. Not from inside a step. */
void host_call_done(struct host *host, struct model_call *call);

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
