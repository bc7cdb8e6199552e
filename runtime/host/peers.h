/*
 * The addresses that a host talks to: one channel each, made when first needed. Idle ones are
 * closed when many are known, so that members which come back under new addresses leave nothing
 * behind. Any thread, except as said.
 */
#ifndef HOST_PEERS_H
#define HOST_PEERS_H

#include "runtime/rpc/client.h"
#include "runtime/rpc/runtime.h"

enum {
    /* With this many addresses, those idle for so long are closed before another is added. */
    HOST_PEERS_KEPT = 64,
    HOST_PEERS_IDLE_US = 60 * 1000 * 1000,
};

struct host_peers;

/* `env` is borrowed: how long is idle. */
struct host_peers *host_peers_new(struct rpc_runtime *runtime, const struct rt_env *env);

/* After the runtime has ended, which closed the channels. */
struct host_peers *host_peers_free(struct host_peers *peers);

/* The channel to this address; handed back with host_peers_release() once the call that uses it
 * is over. */
struct rpc_channel *host_peers_acquire(struct host_peers *peers, const char *address);
void host_peers_release(struct host_peers *peers, const char *address);

#endif
