/*
 * Hosts with scripted cores on a runtime of their own, each behind a server on 127.0.0.1:0, and
 * clients that speak to them through runtime/rpc and runtime/wire. The loop has a thread of its
 * own, the test's thread waits on latches. Waiting for what does not come aborts.
 */
#ifndef TESTS_UNIT_HOST_RIG_H
#define TESTS_UNIT_HOST_RIG_H

#include "runtime/rpc/client.h"
#include "tests/unit/host/fake_core.h"

enum {
    HOST_RIG_NODES_MAX = 3,
};

struct host_node {
    struct host_rig *rig;
    struct fake_core core;
    struct host *host;
    struct rpc_server *server; /* NULL while down */
    char address[64];
    struct latch steps; /* after_step has run */
};

struct host_rig {
    struct rpc_runtime *runtime;
    pthread_t thread;
    struct host_node nodes[HOST_RIG_NODES_MAX];
    unsigned n_nodes;
    struct rpc_channel *channel; /* to nodes[0] */
    /* Set before host_rig_init(); 0 = default. */
    unsigned n_threads;
    uint32_t queue_messages; /* of the servers' streams */
};

/* `rig` zeroed but for the options, not moved afterwards. */
void host_rig_init(struct host_rig *rig, unsigned n_nodes);
/* The two halves of the end: hosts and runtime stop; then all is freed. */
void host_rig_stop(struct host_rig *rig);
void host_rig_deinit(struct host_rig *rig);

void host_rig_on_loop(struct host_rig *rig, void (*fn)(void *ctx), void *ctx);

/* Drains the node's server and waits; then another at the same address. */
void host_node_down(struct host_node *node, uint32_t grace_ms);
void host_node_up(struct host_node *node);

static inline void host_node_step(struct host_node *node, void (*fn)(void *core, void *argument),
                                  void *argument)
{
    host_step(node->host, fn, argument);
}

/* Waits for a step that is going on. */
void host_node_settle(struct host_node *node);

/* Makes the call, waits until it came back, returns what came. */
struct fake_result host_node_call(struct host_node *node, struct fake_order *order);

/* ---- clients ---- */

/* One unary call and its answer. */
struct client_call {
    enum model_call_kind kind;
    struct rpc_client_call *rpc; /* owned */
    struct latch done;
    struct rt_arena arena;
    struct model_response response;
};

void client_call_start(struct host_rig *rig, struct client_call *call, enum model_call_kind kind,
                       uint64_t tag, uint32_t timeout_ms);
/* The same with any message, also a wrong one. */
void client_call_send(struct host_rig *rig, struct client_call *call, enum model_call_kind kind,
                      const ProtobufCMessage *message, uint32_t timeout_ms);
void client_call_cancel(struct client_call *call);
void client_call_wait(struct client_call *call);
void client_call_deinit(struct client_call *call);
/* All of it; the code of the answer. */
enum rt_code client_call_now(struct host_rig *rig, enum model_call_kind kind, uint64_t tag);

/* One answer of a stream. */
struct client_answer {
    uint64_t id;
    enum rt_code code;
    enum model_reason reason;
    uint64_t tag;
};

struct client_stream {
    enum model_call_kind kind;
    struct rpc_client_stream *rpc; /* owned */
    struct latch messages;
    struct latch done;
    struct client_answer answers[FAKE_LOG_MAX];
    unsigned n_answers;
    enum rt_code code; /* of its end, and what that says */
    enum model_reason reason;
    enum model_applied applied;
    bool is_reading_paused; /* set before open */
};

void client_stream_open(struct host_rig *rig, struct client_stream *stream,
                        enum model_call_kind kind);
enum rt_code client_stream_send(struct client_stream *stream, uint64_t id, uint64_t tag,
                                uint32_t timeout_ms, uint32_t value_size);
void client_stream_deinit(struct client_stream *stream);

#endif
