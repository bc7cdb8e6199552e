/*
 * Private to runtime/host: RPCs of shape WIRE_WATCH (runtime/wire/method.h). The core gets one call
 * at a time of a stream; the next one carries the cursor of the answer before it. A client that
 * does not read stops its stream: the core hears nothing of it meanwhile, and one answer is kept
 * beside what the stream's output queue holds. A core that drains has to answer the calls it has.
 */
#ifndef HOST_WATCH_H
#define HOST_WATCH_H

#include "runtime/rpc/server.h"

extern const struct rpc_stream_handlers host_watch_handlers;
extern const uint32_t host_watch_user_size;

enum {
    HOST_WATCH_QUEUE_MESSAGES = 4 /* of each stream, so that many that are not read cost little */
};

#endif
