/*
 * A client that speaks to owners directly: it asks the coordinator where a key lives, remembers the
 * answer, and reacts to what owners say as the design's "How a client reacts" has it.
 *
 * A core like the others: one lock, no I/O, no clock but the environment's. An operation enters
 * with esi_direct_submit() as a call without a route and leaves, answered exactly once, among the
 * effects' replies; what the core sends leaves among the effects' calls and comes back with
 * esi_direct_call_done(). Any number of operations run at the same time, and in no particular
 * order, also on one key: who needs an order waits for the answer.
 *
 *   SET STORE PUT READ DELETE   request.data: header.key, value, if_version, consistency; the core
 *                               fills in the rest of the header and last_set
 *   LOCK UNLOCK                 request.lock, request.unlock: key; the core fills in the rest
 *
 * Locks. The first LOCK opens a session, which is kept until esi_direct_close(). Operations on a
 * key that is locked here carry its token by themselves. A LOCK that ends without its lock leaves
 * none behind: the core goes on until it can give it back. STORE and PUT give theirs back: they are
 * answered after that, or OK at their deadline, and the core goes on with it. A lock whose session
 * was lost stays lost: operations on its key fail with SESSION_UNKNOWN until the key is locked
 * again or UNLOCK says that nobody relies on it.
 *
 * Failures. error.applied is NO only when the operation had and will have no effect; else it may
 * have been applied. A hint of an owner serves READ and SET at once; STORE, PUT and DELETE ask the
 * coordinator for a higher epoch, because it forgets a key of which it did not know that something
 * is stored there.
 *
 * Bounds: 8 attempts an operation, never past its deadline; retries are 20 % of the traffic; one
 * Route a key and ESI_DIRECT_FETCHES_MAX in all under way; ESI_DIRECT_OPERATIONS_MAX operations
 * unfinished.
 */
#ifndef ESI_DIRECT_H
#define ESI_DIRECT_H

#include "runtime/base/env.h"
#include "runtime/model/call.h"

enum {
    ESI_DIRECT_OPERATIONS_MAX = 16384, /* the next one is refused with LIMIT_REACHED */
    ESI_DIRECT_ROUTES_MAX = 100000,    /* keys remembered when the configuration says nothing */
    ESI_DIRECT_FETCHES_MAX = 1024,     /* well below the calls that a coordinator takes at once */
};

struct esi_direct_config {
    char name[MODEL_NAME_MAX + 1]; /* of the session, shown as the holder of locks */
    char coordinator_address[MODEL_ADDRESS_MAX + 1];
    struct model_id client_id;         /* random, of requests to owners */
    struct model_id session_client_id; /* random, of requests for sessions and locks */
    size_t n_routes_max;               /* 0 = ESI_DIRECT_ROUTES_MAX */
};

struct esi_direct;

/* `config` and `env` are copied; env->ctx must outlive the core. */
struct esi_direct *esi_direct_new(const struct esi_direct_config *config, const struct rt_env *env);

/* Frees every call that the core made, also those that have not come back. Operations that are not
 * answered stay the caller's. Accepts NULL, returns NULL. */
struct esi_direct *esi_direct_free(struct esi_direct *direct);

/* Key and value stay alive until the answer. call->deadline_us is the operation's. */
void esi_direct_submit(struct esi_direct *direct, struct model_call *call);

/* The operation is answered now: CANCELLED. It has not been answered yet. */
void esi_direct_cancel(struct esi_direct *direct, struct model_call *call);

/* Cancels what is unfinished and ends the session: done when esi_direct_is_closed(). What is
 * submitted later is answered with CANCELLED. */
void esi_direct_close(struct esi_direct *direct);
bool esi_direct_is_closed(const struct esi_direct *direct);

/* As those of the other cores. */
void esi_direct_call_done(struct esi_direct *direct, struct model_call *call);
void esi_direct_tick(struct esi_direct *direct);
uint64_t esi_direct_next_wakeup_us(const struct esi_direct *direct);
struct model_effects *esi_direct_effects(struct esi_direct *direct);

#endif
