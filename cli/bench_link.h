/*
 * How a load generator talks: many calls at a time over a number of connections, each call on a
 * slot, which carries one at a time. Calls of streaming kinds go over streams of the slot's own,
 * one an address and kind, opened when needed and again after they broke.
 *
 * One lock for everything: cli_link_lock() before any function that says so, and callbacks run
 * under it, on a thread of the runtime. A callback never runs inside the call that caused it.
 */
#ifndef CLI_BENCH_LINK_H
#define CLI_BENCH_LINK_H

#include <pthread.h>

#include "runtime/base/list.h"
#include "runtime/model/call.h"

struct cli_link;

struct cli_link_options {
    unsigned n_connections; /* to each address; at least 1 */
    uint32_t timeout_ms;    /* of each call */
    /* SIGINT or SIGTERM, each time; on the loop thread, under the lock. */
    void (*on_signal)(void *ctx);
    void *ctx;
};

/* Embedded in the caller's object; initialised by cli_link_slot_init(). Fields are private. */
struct cli_link_slot {
    struct cli_link *link;
    unsigned connection;
    struct rt_list streams;  /* owned */
    struct model_call *call; /* under way; NULL when there is none */
    /* The answer is in call->response; what it borrows is valid during the callback. A new call
     * may be started on the slot. */
    void (*on_done)(struct cli_link_slot *slot, struct model_call *call);
};

/* Starts the runtime. A process can have one at a time. */
struct cli_link *cli_link_new(const struct cli_link_options *options);

/* Ends the runtime: calls under way complete with CANCELLED before it returns. Without the lock.
 * Accepts NULL, returns NULL. */
struct cli_link *cli_link_free(struct cli_link *link);

void cli_link_lock(struct cli_link *link);
void cli_link_unlock(struct cli_link *link);

/* Waits, with the lock released meanwhile, until cli_link_wake() or this time of the boot clock;
 * may return early. Under the lock. */
void cli_link_wait_until(struct cli_link *link, uint64_t until_us);
void cli_link_wake(struct cli_link *link);

/* Boot clock. Any thread. */
uint64_t cli_link_now_us(const struct cli_link *link);
const struct rt_env *cli_link_env(const struct cli_link *link);

/* Slots are spread over the connections by their number. */
void cli_link_slot_init(struct cli_link_slot *slot, struct cli_link *link, size_t number,
                        void (*on_done)(struct cli_link_slot *slot, struct model_call *call));

/* After cli_link_free(). */
void cli_link_slot_deinit(struct cli_link_slot *slot);

/* Sends call->request to call->address and answers through on_done. The call must stay until then;
 * its request may go at once. Under the lock. */
void cli_link_start(struct cli_link_slot *slot, struct model_call *call);

#endif
