/*
 * What a client does with a failed answer: whether the same request may be sent again, after how
 * long, whether it still has the right to, and whether its route is still good. Source: design "How
 * a client reacts"; every retry carries the same request_id.
 *
 * Pure functions over their arguments; re-entrant.
 */
#ifndef ESI_RETRY_H
#define ESI_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/model/message.h"

enum {
    ESI_RETRY_ATTEMPTS_MAX = 8, /* of one request_id */
    ESI_RETRY_BACKOFF_FIRST_US = 20 * 1000,
    ESI_RETRY_BACKOFF_MAX_US = 1000 * 1000,
    ESI_RETRY_AFTER_MAX_MS = 30 * 1000, /* a peer may not ask for a longer pause */
};

enum esi_reaction {
    ESI_REACTION_RETRY,        /* the same request_id again, after a pause */
    ESI_REACTION_FAIL,         /* sending it again cannot change the answer */
    ESI_REACTION_SESSION_LOST, /* nothing of this session can succeed any more */
};

/* `code` is not RT_OK. */
enum esi_reaction esi_retry_reaction(enum rt_code code, const struct model_error *error);

/* What a failed answer of an owner says about the route that led to it. */
enum esi_retry_route {
    ESI_RETRY_ROUTE_KEEP,    /* good: the state that refused the request passes by itself */
    ESI_RETRY_ROUTE_REFRESH, /* of no use for this key */
    ESI_RETRY_ROUTE_SUSPECT, /* nobody may be there: of no use for any key of this owner */
};

/* `code` is not RT_OK, and the reaction is RETRY. */
enum esi_retry_route esi_retry_route(enum rt_code code, const struct model_error *error);

/* Pause before the retry after `n_failed` ≥ 1 attempts: 20 ms·2ⁿ ± 50 %, at most 1 s, and at least
 * what the server asked for. `random` is uniform. */
uint64_t esi_retry_delay_us(uint32_t n_failed, uint32_t retry_after_ms, uint64_t random);

/* Retries are 20 % of the requests, so that clients of a sick cluster do not multiply its load.
 * Ten at first, and one more a second up to ten, so that a short script can retry at all. */
struct esi_retry_budget {
    uint64_t credit; /* in parts of a retry */
    uint64_t refilled_us;
};

void esi_retry_budget_init(struct esi_retry_budget *budget, uint64_t now_us);

/* One request is sent for the first time. */
void esi_retry_budget_earn(struct esi_retry_budget *budget);

/* false: no retry now. */
bool esi_retry_budget_spend(struct esi_retry_budget *budget, uint64_t now_us);

#endif
