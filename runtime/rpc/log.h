/*
 * Routes the log of gRPC core to rt_log. Internal to runtime/rpc.
 */
#ifndef RPC_LOG_H
#define RPC_LOG_H

/* Process-wide and idempotent; after rt_log_init, before grpc_init. */
void rpc_log_route(void);

#endif
