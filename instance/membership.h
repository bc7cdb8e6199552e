/*
 * The life of an instance as a member: which state it is in, which moves there are, until when its
 * lease holds, when the next Renew, heartbeat or retry is due. Decides; sends nothing.
 *
 *   REGISTERING → RECORDING → RECONCILING → LEASING → SERVING → LEAVING → STOPPED
 *
 * A declared-dead incarnation goes back to REGISTERING from anywhere between; nothing leads out of
 * STOPPED. Renewing never stops by itself: an attempt that fails in any way is followed by another.
 * The lease is counted from the sending of the Renew whose answer grants it.
 *
 * Not thread safe; belongs to one core.
 */
#ifndef INST_MEMBERSHIP_H
#define INST_MEMBERSHIP_H

#include <stdbool.h>

#include "runtime/base/env.h"
#include "runtime/model/lease.h"

enum inst_membership_state {
    INST_MEMBERSHIP_NEW,
    INST_MEMBERSHIP_REGISTERING, /* Register is out, or waits for its retry */
    INST_MEMBERSHIP_RECORDING,   /* cluster and incarnation are being made durable */
    INST_MEMBERSHIP_RECONCILING, /* commits of an earlier life drain, then Reconcile parts */
    INST_MEMBERSHIP_LEASING,     /* reconciled; no Renew granted yet */
    INST_MEMBERSHIP_SERVING,     /* the lease may have run out all the same */
    INST_MEMBERSHIP_LEAVING,     /* commits in flight finish, then Leave */
    INST_MEMBERSHIP_STOPPED,

    INST_N_MEMBERSHIP_STATES
};

enum inst_heartbeat {
    INST_HEARTBEAT_IDLE,
    INST_HEARTBEAT_WANTED, /* a Renew is due and waits for it */
    INST_HEARTBEAT_TAKEN,  /* on its way to the disk */
};

struct inst_membership {
    enum inst_membership_state state;
    uint64_t incarnation; /* 0 while not registered */
    bool was_registered;  /* once in this process */
    struct model_lease lease;
    uint64_t fence_at_us;   /* fenced at and after it; 0 = no lease */
    uint64_t renew_at_us;   /* when the next Renew is due; RT_NEVER while none is wanted */
    uint64_t renewed_at_us; /* when the last Renew was sent; 0 = never */
    enum inst_heartbeat heartbeat;
    uint64_t heartbeat_number;
    uint64_t retry_at_us; /* when the waiting call of this state is made again; RT_NEVER = none */
    unsigned n_failures;  /* in a row */
};

void inst_membership_init(struct inst_membership *membership);

/* Asserts that the move is in the table. Moving to REGISTERING ends the incarnation and with it the
 * lease; to LEASING makes the first Renew due. */
void inst_membership_move(struct inst_membership *membership, enum inst_membership_state to,
                          uint64_t now_us);

/* The lease holds: strictly before fence_at. */
static inline bool inst_membership_is_fenced(const struct inst_membership *membership,
                                             uint64_t now_us)
{
    return now_us >= membership->fence_at_us;
}

/* Another attempt after 100 ms · 2ⁿ, at most 2 s, of which the upper half is random. */
void inst_membership_retry_later(struct inst_membership *membership, const struct rt_env *env);
void inst_membership_succeeded(struct inst_membership *membership);

/* A Renew is due now rather than later; not more often than every 100 ms. */
void inst_membership_renew_soon(struct inst_membership *membership, uint64_t now_us);

/* Whether the heartbeat of a due Renew shall be written now; starts wanting it. */
void inst_membership_tick(struct inst_membership *membership, uint64_t now_us);

/* true once for each wanted heartbeat. */
bool inst_membership_take_heartbeat(struct inst_membership *membership, uint64_t *ret_number);

/* Whether Renew shall be sent now. Numbers that were not taken last are ignored. */
bool inst_membership_heartbeat_done(struct inst_membership *membership, uint64_t number,
                                    bool durable, uint64_t now_us);

/* A Renew leaves at now_us; the next is due L/3 later. */
void inst_membership_renew_sent(struct inst_membership *membership, uint64_t now_us);

/* A Renew sent at sent_us was granted for `lease`, of which the later fence counts. */
void inst_membership_renew_granted(struct inst_membership *membership,
                                   const struct model_lease *lease, uint64_t sent_us);
void inst_membership_renew_failed(struct inst_membership *membership, uint64_t now_us);

/* When something is due; RT_NEVER when nothing is. */
uint64_t inst_membership_next_wakeup_us(const struct inst_membership *membership);

#endif
