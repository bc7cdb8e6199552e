/*
 * Lease arithmetic: see lease.h. Pure.
 */
#include "runtime/model/lease.h"

enum {
    MILLION = 1000000
};

bool model_lease_is_safe(const struct model_lease *lease)
{
    uint64_t held = lease->duration_us - lease->early_us;
    uint64_t waited = lease->duration_us + lease->grace_us;

    if (lease->early_us > lease->duration_us)
        return false;
    held += held / MILLION * MODEL_LEASE_RATE_ERROR_PPM +
            held % MILLION * MODEL_LEASE_RATE_ERROR_PPM / MILLION + 1;
    waited -= waited / MILLION * MODEL_LEASE_RATE_ERROR_PPM +
              waited % MILLION * MODEL_LEASE_RATE_ERROR_PPM / MILLION + 1;
    return held + MODEL_LEASE_LONGEST_COMMIT_US < waited;
}

enum rt_code model_lease_init(struct model_lease *ret_lease, uint64_t duration_ms,
                              struct rt_error *err)
{
    struct model_lease lease;

    if (duration_ms < MODEL_LEASE_MS_MIN || duration_ms > MODEL_LEASE_MS_MAX)
        return rt_fail(err, RT_INVALID_ARGUMENT, "lease of %llu ms is outside %d..%d ms",
                       (unsigned long long)duration_ms, MODEL_LEASE_MS_MIN, MODEL_LEASE_MS_MAX);

    lease.duration_us = duration_ms * 1000;
    lease.early_us = lease.duration_us / 6;
    lease.grace_us = lease.duration_us / 6;
    if (!model_lease_is_safe(&lease))
        return rt_fail(err, RT_INVALID_ARGUMENT,
                       "lease of %llu ms leaves no room for a commit of %d ms",
                       (unsigned long long)duration_ms, MODEL_LEASE_LONGEST_COMMIT_US / 1000);
    *ret_lease = lease;
    return RT_OK;
}
