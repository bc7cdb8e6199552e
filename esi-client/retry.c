/*
 * Reactions to failed answers: see retry.h. Invariant: what is retried goes out with the same
 * request_id, so a wrong guess here costs time, never a second effect. Pure.
 */
#include "esi-client/retry.h"

enum {
    PARTS_PER_RETRY = 1000, /* so that a second's refill can be counted in milliseconds */
    PARTS_PER_REQUEST = PARTS_PER_RETRY / 5,
    FLOOR_PARTS = 10 * PARTS_PER_RETRY,
    CEILING_PARTS = 100 * PARTS_PER_RETRY,
};

/* Codes that a transport, a proxy or a dying server gives without having refused the request. */
static bool is_transient(enum rt_code code)
{
    return code == RT_UNAVAILABLE || code == RT_DEADLINE_EXCEEDED || code == RT_CANCELLED ||
           code == RT_ABORTED || code == RT_INTERNAL || code == RT_UNKNOWN;
}

/* Not applied: worth another try only where the state that refused it passes by itself. */
static bool passes_by_itself(enum rt_code code, const struct model_error *error)
{
    return code == RT_UNAVAILABLE || code == RT_DEADLINE_EXCEEDED || code == RT_CANCELLED ||
           error->refresh_required;
}

enum esi_reaction esi_retry_reaction(enum rt_code code, const struct model_error *error)
{
    bool retry;

    if (error->reason == MODEL_REASON_SESSION_UNKNOWN)
        return ESI_REACTION_SESSION_LOST;
    if (error->reason == MODEL_REASON_LOCK_FENCED)
        return ESI_REACTION_FAIL;
    if (error->applied == MODEL_APPLIED_NO)
        retry = passes_by_itself(code, error);
    else
        retry = error->reason != MODEL_REASON_NONE || is_transient(code);
    return retry ? ESI_REACTION_RETRY : ESI_REACTION_FAIL;
}

enum esi_retry_route esi_retry_route(enum rt_code code, const struct model_error *error)
{
    if (error->reason == MODEL_REASON_NONE)
        return ESI_RETRY_ROUTE_SUSPECT;
    if (error->applied == MODEL_APPLIED_NO && !error->refresh_required &&
        passes_by_itself(code, error))
        return ESI_RETRY_ROUTE_KEEP;
    return ESI_RETRY_ROUTE_REFRESH;
}

uint64_t esi_retry_delay_us(uint32_t n_failed, uint32_t retry_after_ms, uint64_t random)
{
    uint64_t middle = ESI_RETRY_BACKOFF_FIRST_US;
    uint64_t lowest, highest, delay, asked;

    for (uint32_t i = 1; i < n_failed && middle < ESI_RETRY_BACKOFF_MAX_US; i++)
        middle *= 2;
    if (middle > ESI_RETRY_BACKOFF_MAX_US)
        middle = ESI_RETRY_BACKOFF_MAX_US;
    lowest = middle / 2;
    highest = middle + middle / 2;
    if (highest > ESI_RETRY_BACKOFF_MAX_US)
        highest = ESI_RETRY_BACKOFF_MAX_US;
    delay = lowest + random % (highest - lowest + 1);

    if (retry_after_ms > ESI_RETRY_AFTER_MAX_MS)
        retry_after_ms = ESI_RETRY_AFTER_MAX_MS;
    asked = (uint64_t)retry_after_ms * 1000;
    return asked > delay ? asked : delay;
}

void esi_retry_budget_init(struct esi_retry_budget *budget, uint64_t now_us)
{
    budget->credit = FLOOR_PARTS;
    budget->refilled_us = now_us;
}

void esi_retry_budget_earn(struct esi_retry_budget *budget)
{
    if (budget->credit < CEILING_PARTS)
        budget->credit += PARTS_PER_REQUEST;
}

static void refill(struct esi_retry_budget *budget, uint64_t now_us)
{
    uint64_t passed_ms = now_us > budget->refilled_us ? (now_us - budget->refilled_us) / 1000 : 0;

    budget->refilled_us += passed_ms * 1000;
    if (budget->credit >= FLOOR_PARTS)
        return;
    budget->credit = passed_ms < FLOOR_PARTS - budget->credit ? budget->credit + passed_ms
                                                              : (uint64_t)FLOOR_PARTS;
}

bool esi_retry_budget_spend(struct esi_retry_budget *budget, uint64_t now_us)
{
    refill(budget, now_us);
    if (budget->credit < PARTS_PER_RETRY)
        return false;
    budget->credit -= PARTS_PER_RETRY;
    return true;
}
