/*
 * Lease arithmetic, for membership and sessions. All times are microseconds of each party's own
 * boot clock; only durations cross the wire. Source: design "Membership lease".
 *
 *   holder   fence_at = t0 + L - early, t0 taken before the Renew was sent
 *   granter  dead_at  = received + L + grace
 *
 * Two clocks that differ by at most `rate_error` never overlap when
 *   (L - early)(1 + rate_error) + longest_commit < (L + grace)(1 - rate_error).
 */
#ifndef MODEL_LEASE_H
#define MODEL_LEASE_H

#include <stdint.h>

#include "runtime/base/error.h"

enum {
    MODEL_LEASE_MS_DEFAULT = 10000,
    MODEL_LEASE_MS_MIN = 1000,
    MODEL_LEASE_MS_MAX = 3600000,
    MODEL_LEASE_RATE_ERROR_PPM = 10000,     /* assumed bound of |clock rate - 1|: 1 % */
    MODEL_LEASE_LONGEST_COMMIT_US = 200000, /* W: a commit that takes longer may be unfenced */
};

struct model_lease {
    uint64_t duration_us; /* L */
    uint64_t early_us;    /* the holder stops this much before L: L/6 */
    uint64_t grace_us;    /* the granter waits this much past L: L/6 */
};

/* early = grace = L/6. INVALID_ARGUMENT outside [MODEL_LEASE_MS_MIN, MODEL_LEASE_MS_MAX] or where
 * the inequality above does not hold. */
RT_MUST_USE enum rt_code model_lease_init(struct model_lease *ret_lease, uint64_t duration_ms,
                                          struct rt_error *err);

/* The inequality for any three durations; false when it does not hold. */
bool model_lease_is_safe(const struct model_lease *lease);

static inline uint64_t model_lease_fence_at(const struct model_lease *lease, uint64_t sent_us)
{
    return sent_us + lease->duration_us - lease->early_us;
}

static inline uint64_t model_lease_dead_at(const struct model_lease *lease, uint64_t granted_us)
{
    return granted_us + lease->duration_us + lease->grace_us;
}

static inline uint64_t model_lease_renew_interval_us(const struct model_lease *lease)
{
    return lease->duration_us / 3;
}

/* Deadline of one Renew: 0.8 of the interval. */
static inline uint64_t model_lease_renew_timeout_us(const struct model_lease *lease)
{
    return model_lease_renew_interval_us(lease) / 5 * 4;
}

#endif
