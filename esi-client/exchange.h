/*
 * One request with its retries (an exchange), and the calls that a core has made and not got back
 * (its post). An exchange has at most one live attempt; the calls of attempts that were given up
 * stay in the post until they come back or the core ends.
 *
 * Not thread safe; the core's lock.
 */
#ifndef ESI_EXCHANGE_H
#define ESI_EXCHANGE_H

#include "runtime/model/call.h"

struct esi_attempt;

struct esi_exchange {
    const char *address;         /* borrowed; of the next attempt */
    struct esi_attempt *attempt; /* live; NULL between attempts */
    uint64_t deadline_us;        /* no attempt begins or lasts past it */
    uint64_t begun_us;           /* when its first attempt was sent */
    uint64_t send_at_us;         /* next attempt; RT_NEVER while one is live or none is wanted */
    uint32_t n_attempts;
    bool maybe; /* an attempt that has ended may have, or get, an effect */
};

struct esi_post {
    struct model_effects effects;
    struct rt_list attempts;
};

void esi_post_init(struct esi_post *post);

/* Frees every call that has not come back. */
void esi_post_deinit(struct esi_post *post);

/* Begins an attempt that ends at now + timeout or at the exchange's deadline. The request is
 * copied, so the attempt outlives whatever it borrows; RESOURCE_EXHAUSTED when there is no memory
 * for the copy, and then nothing was sent. A request without byte strings cannot fail. */
RT_MUST_USE enum rt_code esi_post_send(struct esi_post *post, struct esi_exchange *exchange,
                                       const struct model_request *request, uint64_t now_us,
                                       uint64_t timeout_us, struct rt_error *err);

/* The call is back. Its exchange, which has no live attempt any more, and when it was sent; NULL
 * when the attempt had been given up. The call is the caller's. */
struct esi_exchange *esi_post_take_back(struct model_call *call, uint64_t *ret_sent_us);

struct esi_exchange esi_exchange_begin(const char *address, uint64_t deadline_us);

/* No more attempts. A live one may still have its effect, and its answer is of no interest. */
void esi_exchange_give_up(struct esi_exchange *exchange);

/* Whether the live attempt has reached its deadline: it is given up then, with the failure that an
 * answer would have said. */
bool esi_exchange_expire(struct esi_exchange *exchange, uint64_t now_us,
                         struct model_response *ret_failure);

/* When something is due; RT_NEVER when nothing is. */
uint64_t esi_exchange_wakeup_us(const struct esi_exchange *exchange);

#endif
