/*
 * Channels by address: see peers.h. A peer is dropped only when no call uses it, so a channel is
 * closed at most once and never under a call.
 */
#include "runtime/host/peers.h"

#include <pthread.h>

#include "runtime/base/alloc.h"
#include "runtime/base/map.h"

struct peer {
    char *address; /* owned; the map's key */
    struct rpc_channel *channel;
    unsigned n_users;
    uint64_t idle_since_us; /* while n_users is 0 */
    UT_hash_handle hh;
};

struct host_peers {
    struct rpc_runtime *runtime;
    const struct rt_env *env;
    pthread_mutex_t lock;
    struct peer *by_address; /* owned */
};

struct host_peers *host_peers_new(struct rpc_runtime *runtime, const struct rt_env *env)
{
    struct host_peers *peers = rt_xalloc(sizeof(*peers));
    int result = pthread_mutex_init(&peers->lock, NULL);

    rt_assert(result == 0);
    peers->runtime = runtime;
    peers->env = env;
    return peers;
}

static void forget(struct host_peers *peers, struct peer *peer)
{
    HASH_DEL(peers->by_address, peer);
    (void)rt_free(peer->address);
    (void)rt_free(peer);
}

struct host_peers *host_peers_free(struct host_peers *peers)
{
    struct peer *peer;
    struct peer *next;

    if (!peers)
        return NULL;
    HASH_ITER (hh, peers->by_address, peer, next)
        forget(peers, peer);
    (void)pthread_mutex_destroy(&peers->lock);
    return rt_free(peers);
}

static void drop_idle(struct host_peers *peers, uint64_t now_us)
{
    struct peer *peer;
    struct peer *next;

    if (HASH_COUNT(peers->by_address) < HOST_PEERS_KEPT)
        return;
    HASH_ITER (hh, peers->by_address, peer, next) {
        if (peer->n_users == 0 && now_us - peer->idle_since_us >= HOST_PEERS_IDLE_US) {
            rpc_channel_close(peer->channel, NULL, NULL);
            forget(peers, peer);
        }
    }
}

static struct peer *add(struct host_peers *peers, const char *address)
{
    struct peer *peer = rt_xalloc(sizeof(*peer));

    peer->address = rt_xstrdup(address);
    peer->channel = rpc_channel_new(peers->runtime, address, NULL);
    HASH_ADD_KEYPTR(hh, peers->by_address, peer->address, strlen(peer->address), peer);
    return peer;
}

struct rpc_channel *host_peers_acquire(struct host_peers *peers, const char *address)
{
    struct peer *peer;

    (void)pthread_mutex_lock(&peers->lock);
    HASH_FIND_STR(peers->by_address, address, peer);
    if (!peer) {
        drop_idle(peers, rt_env_now_us(peers->env));
        peer = add(peers, address);
    }
    peer->n_users++;
    (void)pthread_mutex_unlock(&peers->lock);
    return peer->channel;
}

void host_peers_release(struct host_peers *peers, const char *address)
{
    struct peer *peer;

    (void)pthread_mutex_lock(&peers->lock);
    HASH_FIND_STR(peers->by_address, address, peer);
    rt_assert(peer && peer->n_users > 0);
    peer->n_users--;
    peer->idle_since_us = rt_env_now_us(peers->env);
    (void)pthread_mutex_unlock(&peers->lock);
}
