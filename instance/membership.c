/*
 * Membership: see membership.h. Invariant: fence_at is never later than the sending of a granted
 * Renew of this incarnation plus L minus its early margin. Under the lock of the core that owns it.
 */
#include "instance/membership.h"

#include "runtime/base/compiler.h"

enum {
    FIRST_RETRY_US = 100000,
    LONGEST_RETRY_US = 2000000,
    LARGEST_SHIFT = 5,
    RENEW_GAP_US = 100000, /* between Renews that are asked for or retried */
};

#define TO(state) (1u << INST_MEMBERSHIP_##state)

static const unsigned moves[INST_N_MEMBERSHIP_STATES] = {
    [INST_MEMBERSHIP_NEW] = TO(REGISTERING) | TO(STOPPED),
    [INST_MEMBERSHIP_REGISTERING] = TO(RECORDING) | TO(STOPPED),
    [INST_MEMBERSHIP_RECORDING] = TO(REGISTERING) | TO(RECONCILING) | TO(LEAVING) | TO(STOPPED),
    [INST_MEMBERSHIP_RECONCILING] = TO(REGISTERING) | TO(LEASING) | TO(LEAVING) | TO(STOPPED),
    [INST_MEMBERSHIP_LEASING] = TO(REGISTERING) | TO(SERVING) | TO(LEAVING) | TO(STOPPED),
    [INST_MEMBERSHIP_SERVING] = TO(REGISTERING) | TO(LEAVING) | TO(STOPPED),
    [INST_MEMBERSHIP_LEAVING] = TO(STOPPED),
    [INST_MEMBERSHIP_STOPPED] = 0,
};

void inst_membership_init(struct inst_membership *membership)
{
    *membership = (struct inst_membership){
        .renew_at_us = RT_NEVER,
        .retry_at_us = RT_NEVER,
    };
}

static bool is_renewing(const struct inst_membership *membership)
{
    return membership->state == INST_MEMBERSHIP_LEASING ||
           membership->state == INST_MEMBERSHIP_SERVING;
}

void inst_membership_move(struct inst_membership *membership, enum inst_membership_state to,
                          uint64_t now_us)
{
    rt_assert(moves[membership->state] & (1u << to));
    membership->state = to;
    membership->retry_at_us = RT_NEVER;
    membership->n_failures = 0;
    if (to == INST_MEMBERSHIP_REGISTERING) {
        membership->incarnation = 0;
        membership->fence_at_us = 0;
    }
    if (to == INST_MEMBERSHIP_LEASING)
        membership->renew_at_us = now_us;
    if (!is_renewing(membership))
        membership->renew_at_us = RT_NEVER;
}

void inst_membership_retry_later(struct inst_membership *membership, const struct rt_env *env)
{
    unsigned shift =
        membership->n_failures < LARGEST_SHIFT ? membership->n_failures : LARGEST_SHIFT;
    uint64_t delay = (uint64_t)FIRST_RETRY_US << shift;

    if (delay > LONGEST_RETRY_US)
        delay = LONGEST_RETRY_US;
    membership->n_failures++;
    membership->retry_at_us = rt_env_now_us(env) + delay / 2 + rt_env_random(env) % (delay / 2 + 1);
}

void inst_membership_succeeded(struct inst_membership *membership)
{
    membership->n_failures = 0;
    membership->retry_at_us = RT_NEVER;
}

void inst_membership_renew_soon(struct inst_membership *membership, uint64_t now_us)
{
    uint64_t at = now_us;

    if (!is_renewing(membership))
        return;
    if (membership->renewed_at_us != 0 && membership->renewed_at_us + RENEW_GAP_US > at)
        at = membership->renewed_at_us + RENEW_GAP_US;
    if (at < membership->renew_at_us)
        membership->renew_at_us = at;
}

void inst_membership_tick(struct inst_membership *membership, uint64_t now_us)
{
    if (now_us >= membership->renew_at_us && membership->heartbeat == INST_HEARTBEAT_IDLE)
        membership->heartbeat = INST_HEARTBEAT_WANTED;
}

bool inst_membership_take_heartbeat(struct inst_membership *membership, uint64_t *ret_number)
{
    if (membership->heartbeat != INST_HEARTBEAT_WANTED)
        return false;
    membership->heartbeat = INST_HEARTBEAT_TAKEN;
    *ret_number = ++membership->heartbeat_number;
    return true;
}

bool inst_membership_heartbeat_done(struct inst_membership *membership, uint64_t number,
                                    bool durable, uint64_t now_us)
{
    if (membership->heartbeat != INST_HEARTBEAT_TAKEN || number != membership->heartbeat_number)
        return false;
    membership->heartbeat = INST_HEARTBEAT_IDLE;
    if (!is_renewing(membership))
        return false;
    if (!durable)
        membership->renew_at_us = now_us + model_lease_renew_interval_us(&membership->lease);
    return durable;
}

void inst_membership_renew_sent(struct inst_membership *membership, uint64_t now_us)
{
    membership->renewed_at_us = now_us;
    membership->renew_at_us = now_us + model_lease_renew_interval_us(&membership->lease);
}

void inst_membership_renew_granted(struct inst_membership *membership,
                                   const struct model_lease *lease, uint64_t sent_us)
{
    uint64_t fence_at_us = model_lease_fence_at(lease, sent_us);

    membership->lease = *lease;
    if (fence_at_us > membership->fence_at_us)
        membership->fence_at_us = fence_at_us;
}

void inst_membership_renew_failed(struct inst_membership *membership, uint64_t now_us)
{
    inst_membership_renew_soon(membership, now_us + RENEW_GAP_US);
}

uint64_t inst_membership_next_wakeup_us(const struct inst_membership *membership)
{
    uint64_t at = membership->retry_at_us;

    if (membership->heartbeat == INST_HEARTBEAT_IDLE && membership->renew_at_us < at)
        at = membership->renew_at_us;
    return at;
}
