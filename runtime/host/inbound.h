/*
 * RPCs that a host serves: every method of a service, unary or stream, becomes calls of the core.
 *
 * A stream's messages run one at a time, in the order in which they were sent: the next one is read
 * when the one before is answered. A failure of one travels in its response; the stream goes on. It
 * ends when an answer cannot be built, and when the client has left too many of them unread. Server
 * streams: watch.h. Streams of batches: batch.h.
 */
#ifndef HOST_INBOUND_H
#define HOST_INBOUND_H

#include "runtime/host/host.h"
#include "runtime/rpc/server.h"

/* Serves all RPCs of `service` with this host's core. Fails as rpc_server_add_service(). */
RT_MUST_USE enum rt_code host_serve(struct host *host, struct rpc_server *server,
                                    const ProtobufCServiceDescriptor *service,
                                    struct rt_error *err);

/* Ends every stream, at once or after the answer to the message that it is at; a stream that comes
 * later is ended too. For a server that is about to drain: streams do not end by themselves. They
 * end with UNAVAILABLE, DRAINING, NO: what came and is not answered had no effect. Any thread,
 * once. */
void host_end_streams(struct host *host);

#endif
