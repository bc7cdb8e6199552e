/*
 * A whole RPC stack in one process for tests: a runtime on a thread of its own, a server with the
 * echo service on an ephemeral port, a channel to it, and blocking calls for the test's thread.
 * Waiting for something that does not come aborts after a generous time.
 */
#ifndef TESTS_UNIT_RPC_RIG_H
#define TESTS_UNIT_RPC_RIG_H

#include <pthread.h>

#include "echo.pb-c.h"
#include "runtime/rpc/client.h"
#include "runtime/rpc/runtime.h"
#include "runtime/rpc/server.h"

/* A counter that can be waited for. */
struct latch {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned count;
};

void latch_init(struct latch *latch);
void latch_add(struct latch *latch);
void latch_wait(struct latch *latch, unsigned count);
unsigned latch_count(struct latch *latch);

/* What Unary is to do, in Item.number. Patient does the same but is exempt from the default
 * deadline. */
enum echo_command {
    ECHO_REPLY,
    ECHO_FAIL,     /* NOT_FOUND with reason TESTED and Item.data as detail */
    ECHO_HOLD,     /* keep it in echo.held */
    ECHO_FORGET,   /* return without an answer */
    ECHO_LATER,    /* reply from the loop thread */
    ECHO_METADATA, /* reply with the value of the header named in Item.data; number = found */
    ECHO_TRAILERS, /* fail with trailers until they are refused; the message tells how many */
    ECHO_DEADLINE, /* reply with the milliseconds left */
    ECHO_USER,     /* reply with the first word of the user area, then change it */
};

enum {
    ECHO_HELD_MAX = 2000
};

/* The service's state; its handlers get it as ctx. */
struct echo {
    struct rpc_runtime *runtime;
    pthread_mutex_t lock;
    struct rpc_call *held[ECHO_HELD_MAX]; /* referenced */
    unsigned n_held;
    bool aborts_expand; /* Expand aborts when its queue is full */
    struct latch holds; /* calls held */
    struct latch cancels;
    struct latch opened; /* streams */
    struct latch done;
    struct latch messages; /* received by streams */
    struct latch half_closes;
    struct latch refusals;  /* sends refused because the queue was full */
    bool is_reading_paused; /* Chat and Collect do not ask for messages */
    bool was_cancelled;     /* the last stream that was done */
};

extern const struct rpc_method echo_methods[5];

struct rig_failure {
    enum rt_code code;
    bool has_reason;
    char method[128];
    bool has_peer;
};

struct rig {
    struct rpc_runtime *runtime;
    pthread_t thread;
    struct echo echo;
    struct rpc_server *server;
    struct rpc_channel *channel;
    char address[64]; /* set before rig_init, if not a free port of 127.0.0.1 */
    uint16_t port;
    struct latch failures; /* calls of on_failed */
    struct rig_failure last_failure;
    unsigned n_threads; /* set before rig_init; 0 = 1 */
};

/* NULL options = defaults. `rig` zeroed, not moved afterwards. */
void rig_init(struct rig *rig, const struct rpc_server_options *options);
/* Stops the runtime with what is in flight, waits, frees. */
void rig_deinit(struct rig *rig);
/* Runs fn on the loop thread and waits for it. */
void rig_on_loop(struct rig *rig, void (*fn)(void *ctx), void *ctx);
/* Drains the server and waits; rig->server is NULL then. */
void rig_drain(struct rig *rig, uint32_t grace_ms);
/* Another server at the rig's address. */
void rig_restart_server(struct rig *rig);
/* Closes the channel and waits. */
void rig_close_channel(struct rig *rig);

/* A unary call and what came of it. */
struct answer {
    struct latch latch; /* 1 when the callback ran */
    enum rt_code code;
    char message[512];
    uint8_t detail[8192];
    size_t detail_size;
    uint32_t number;
    uint8_t data[256];
    size_t data_size; /* whole size, data holds what fits */
    bool never_sent;
    bool was_loop_thread;
    struct rpc_runtime *runtime;
};

void item_init(Rpctest__V1__Item *item, uint32_t number, const void *data, size_t size);
void answer_init(struct answer *answer, struct rig *rig);
/* rpc_client_cb; ctx = struct answer. */
void on_answer(struct rpc_client_call *call, const ProtobufCMessage *response,
               const struct rt_error *err, void *ctx);
/* EchoService.<method> with this request; waits. Returns answer->code. */
enum rt_code rig_call(struct rig *rig, const char *method, const Rpctest__V1__Item *item,
                      uint32_t timeout_ms, struct answer *answer);
/* Unary with a command and data, 10 s. */
enum rt_code rig_command(struct rig *rig, enum echo_command command, const char *data,
                         struct answer *answer);
/* Ends the calls that are held by replying; drops the references. */
void rig_answer_held(struct rig *rig);

#endif
