/*
 * Streams of batches (InstanceService.Pipeline): the host takes a batch apart, and the core sees
 * one call for each operation.
 *
 * All operations of a batch enter the core under one lock, in their order. A batch's answer leaves
 * when all of them are answered; batches of a stream are under way at once and are answered in the
 * order in which they came. A stream is read while it has room (MODEL_PIPELINE_BATCHES_MAX and
 * …_BYTES_MAX of runtime/model/limits.h); answers that a client does not read take room, so it
 * costs no more than that.
 */
#ifndef HOST_BATCH_H
#define HOST_BATCH_H

#include "runtime/host/internal.h"
#include "runtime/rpc/server.h"

enum {
    /* Operations of all streams that are inside the core; past that they are refused. */
    HOST_BATCH_OPERATIONS_MAX = 32768,
};

extern const struct rpc_stream_handlers host_batch_handlers;
extern const uint32_t host_batch_user_size;

/* Goes on with the streams that host_step_end() found in host.ready. Without a lock. */
void host_batch_go_on(struct rt_list *ready);

/* Frees what is kept for later operations. */
void host_batch_free_all(struct host *host);

#endif
