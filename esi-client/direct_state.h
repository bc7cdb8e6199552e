/*
 * What the files of the direct client share: see direct.h. Private; the core's lock.
 *
 * An unfinished operation is in exactly one of these: a live attempt, the waiters of a fetch, a
 * pause (exchange.send_at_us), or waiting for the session. After a refusal it may pause and wait
 * for a fetch at the same time: it goes on when both are over.
 */
#ifndef ESI_DIRECT_STATE_H
#define ESI_DIRECT_STATE_H

#include "esi-client/direct.h"
#include "esi-client/exchange.h"
#include "esi-client/lease.h"
#include "esi-client/locks.h"
#include "esi-client/retry.h"
#include "esi-client/routes.h"
#include "runtime/base/map.h"

enum {
    ESI_DIRECT_ATTEMPT_US = 5 * 1000 * 1000, /* one attempt */
};

/* Request ids of one client id. Those of owners and those of the coordinator are apart, so that a
 * lock that is waited for does not keep owners from forgetting. */
struct esi_sequence {
    struct model_id client;
    uint64_t last;
    struct rt_list unfinished; /* esi_operation.id_link, ascending */
};

/* One Route with its retries; the operations that wait for it. */
struct esi_fetch {
    UT_hash_handle hh;
    struct rt_bytes key; /* owned */
    struct esi_exchange exchange;
    struct rt_list waiters;    /* esi_operation.fetch_link; never empty */
    struct rt_list queue_link; /* in direct->queued_fetches, or alone */
    /* For what the live attempt asks. */
    enum model_statement_kind statement;
    size_t value_size;
    struct model_id session; /* none unless it showed a lock */
};

struct esi_operation {
    struct rt_list link;       /* in direct->operations */
    struct rt_list id_link;    /* in its sequence; alone when it has no id */
    struct rt_list fetch_link; /* in its fetch; alone when it waits for none */
    struct model_call *call;   /* the caller's */
    struct rt_bytes key;
    struct esi_exchange exchange;
    struct esi_fetch *fetch;
    bool was_asked_for; /* it waited when the fetch's live attempt was made */
    struct model_request_id id;
    uint64_t first_epoch;
    uint64_t lock_token;     /* of the key when the operation began; 0 = none */
    struct model_id session; /* of the last attempt at the coordinator */
    /* Of the last attempt at an owner. */
    char owner[MODEL_NAME_MAX + 1];
    uint64_t epoch;
    uint64_t incarnation;
    bool was_hinted; /* an owner's hint was followed at once */
    bool awaits_session;
    bool is_in_line;   /* a LOCK: its turn had not come when its last attempt was answered */
    bool is_releasing; /* has had its effect; gives its lock back */
    bool is_cleanup;   /* of the core: a LOCK that nobody wants any more; owns its call */
};

struct esi_direct {
    struct esi_direct_config config;
    struct rt_env env;
    struct esi_post post;
    struct esi_routes routes;
    struct esi_locks locks;
    struct esi_lease lease;
    struct esi_retry_budget budget;
    struct model_id cluster_id; /* as the last route said */
    uint64_t term;
    struct esi_sequence owner_ids;
    struct esi_sequence session_ids;
    struct rt_list operations; /* esi_operation.link */
    size_t n_operations;
    size_t n_cleanups;                /* among them */
    struct esi_fetch *fetches;        /* by key */
    struct rt_list queued_fetches;    /* esi_fetch.queue_link */
    size_t n_asking;                  /* fetches that are not queued */
    uint64_t next_us;                 /* nothing is due before it, the lease aside */
    enum esi_lease_state lease_state; /* as it was last followed */
    bool is_closing;
};

static inline uint64_t esi_direct_now_us(const struct esi_direct *direct)
{
    return rt_env_now_us(&direct->env);
}

/* What a data operation is called where it is asked about. */
static inline enum model_statement_kind esi_direct_statement(const struct esi_operation *operation)
{
    static const enum model_statement_kind statements[] = {
        [MODEL_CALL_SET] = MODEL_STATEMENT_SET,       [MODEL_CALL_STORE] = MODEL_STATEMENT_STORE,
        [MODEL_CALL_PUT] = MODEL_STATEMENT_PUT,       [MODEL_CALL_READ] = MODEL_STATEMENT_READ,
        [MODEL_CALL_DELETE] = MODEL_STATEMENT_DELETE,
    };

    return statements[operation->call->request.kind];
}

/* Something is due then. */
static inline void esi_direct_arm(struct esi_direct *direct, uint64_t at_us)
{
    if (at_us < direct->next_us)
        direct->next_us = at_us;
}

static inline uint64_t esi_sequence_done_below(const struct esi_sequence *sequence)
{
    if (rt_list_is_empty(&sequence->unfinished))
        return sequence->last + 1;
    return RT_LIST_ENTRY(sequence->unfinished.next, struct esi_operation, id_link)->id.seq;
}

/* ---- direct.c ---- */

/* A new one for this call. */
struct esi_operation *esi_direct_begin(struct esi_direct *direct, struct model_call *call);

/* Takes the next step of an operation that is in none of its places. */
void esi_direct_go_on(struct esi_direct *direct, struct esi_operation *operation);

/* Answers it: call->response is filled. The operation is gone. */
void esi_direct_answer(struct esi_direct *direct, struct esi_operation *operation);

/* Answers it with this failure, of which `applied` is decided by all attempts. */
void esi_direct_fail(struct esi_direct *direct, struct esi_operation *operation,
                     const struct model_response *failure);

/* Sends the request to exchange.address; a refusal for lack of memory is the answer. */
void esi_direct_send(struct esi_direct *direct, struct esi_operation *operation,
                     const struct model_request *request);

/* Pauses before the next attempt, or not at all; false when the bounds allow none. */
RT_MUST_USE bool esi_direct_pause(struct esi_direct *direct, struct esi_operation *operation,
                                  const struct model_error *error, bool at_once);

/* ---- direct_fetch.c: where does the key live ---- */

/* Waits for the key's route; one fetch a key. */
void esi_direct_fetch(struct esi_direct *direct, struct esi_operation *operation);

/* The operation waits no longer; a fetch without waiters ends. */
void esi_direct_leave_fetch(struct esi_direct *direct, struct esi_operation *operation);

void esi_direct_fetch_answer(struct esi_direct *direct, struct esi_fetch *fetch,
                             const struct model_response *response);
void esi_direct_fetch_tick(struct esi_direct *direct);
void esi_direct_free_fetches(struct esi_direct *direct);

/* What the coordinator says. */
void esi_direct_learn(struct esi_direct *direct, struct rt_bytes key,
                      const struct model_route *told, uint64_t term);

/* ---- direct_data.c: SET STORE PUT READ DELETE ---- */

void esi_direct_data_go_on(struct esi_direct *direct, struct esi_operation *operation);
void esi_direct_data_answer(struct esi_direct *direct, struct esi_operation *operation,
                            const struct model_response *response);

/* The coordinator says that no instance has the key. */
void esi_direct_data_unplaced(struct esi_direct *direct, struct esi_operation *operation);

/* ---- direct_lock.c: LOCK, UNLOCK, the session ---- */

void esi_direct_lock_go_on(struct esi_direct *direct, struct esi_operation *operation);
void esi_direct_unlock_go_on(struct esi_direct *direct, struct esi_operation *operation);
void esi_direct_lock_answer(struct esi_direct *direct, struct esi_operation *operation,
                            const struct model_response *response);
void esi_direct_unlock_answer(struct esi_direct *direct, struct esi_operation *operation,
                              const struct model_response *response);

/* A LOCK ends without having been granted, as far as is known: its place in the queue, or the lock,
 * is given back. Before it is answered. */
void esi_direct_abandon(struct esi_direct *direct, const struct esi_operation *operation);

/* The operation is done at its owner: gives its lock back before it is answered. */
void esi_direct_release(struct esi_direct *direct, struct esi_operation *operation);

/* It will be answered without that: the core goes on with it for as long as the session lives. */
void esi_direct_release_later(struct esi_direct *direct, const struct esi_operation *operation);

/* The coordinator does not know this session any more. */
void esi_direct_lose_session(struct esi_direct *direct, const struct model_id *session,
                             const struct model_response *failure);

/* After every step of the lease. */
void esi_direct_follow_lease(struct esi_direct *direct);

#endif
