/*
 * What the parts of a client share. Not for others.
 *
 * Locks: a call's or stream's lock before its channel's, that before the runtime's. None is held
 * while a callback of the user runs.
 */
#ifndef RPC_CLIENT_INTERNAL_H
#define RPC_CLIENT_INTERNAL_H

#include <pthread.h>

#include "runtime/rpc/client.h"
#include "runtime/rpc/op.h"
#include "runtime/rpc/runtime_internal.h"

enum rpc_channel_state {
    RPC_CHANNEL_OPEN,
    RPC_CHANNEL_CLOSING,
    RPC_CHANNEL_CLOSED,
};

struct rpc_channel {
    struct rpc_husk husk;
    struct rt_list link; /* in the runtime's channels */
    struct rpc_runtime *runtime;
    struct rpc_channel_options options; /* defaults filled in */
    char *address;                      /* owned */
    grpc_channel *core;
    struct rpc_job closed_job;
    bool is_husk;        /* closed by the shutdown: memory stays until the runtime goes */
    bool is_swept;       /* under the runtime's lock: the shutdown has seen it */
    bool is_close_asked; /* by the user */
    void (*on_closed)(void *ctx);
    void *on_closed_ctx;

    pthread_mutex_t lock; /* guards what follows */
    enum rpc_channel_state state;
    struct rt_list flights; /* struct rpc_flight.link */
};

/* One RPC in flight on a channel: what unary calls and streams have in common. */
struct rpc_flight {
    struct rt_list link; /* in the channel's flights, under its lock */
    struct rpc_channel *channel;
    grpc_call *core;          /* owned until the end */
    atomic_bool is_cancelled; /* on this side */
    grpc_metadata metadata[RPC_CLIENT_METADATA_MAX];
    size_t n_metadata;
    uint32_t header_flags;
    grpc_metadata_array headers;
    grpc_metadata_array trailers;
    grpc_status_code status;
    grpc_slice text;
    struct rt_error refusal; /* code != RT_OK: it was never started */
};

/* Creates core's call and enters it into the channel. On failure flight->refusal is set: the
 * caller completes it on the loop thread. */
void rpc_flight_begin(struct rpc_flight *flight, struct rpc_channel *channel,
                      const struct rpc_client_method *method,
                      const struct rpc_client_options *options);

/* Releases what belongs to core and leaves the channel, which may close then. */
void rpc_flight_end(struct rpc_flight *flight);

/* The part of a batch that sends the headers, and the one that receives the status. */
void rpc_flight_add_headers(struct rpc_flight *flight, grpc_op *part);
void rpc_flight_add_status(struct rpc_flight *flight, grpc_op *part);

/* Any thread, as long as the flight has not ended. */
void rpc_flight_cancel(struct rpc_flight *flight);

/* NULL for OK; otherwise *ret_err filled in. */
const struct rt_error *rpc_flight_error(const struct rpc_flight *flight, struct rt_error *ret_err);

/* Before rpc_flight_end(). */
bool rpc_flight_never_sent(const struct rpc_flight *flight);

#endif
