/*
 * Requests, their attempts and the calls under way: see exchange.h. Invariant: attempt->exchange
 * and exchange->attempt point at each other, or the attempt was given up. The core's lock.
 */
#include "esi-client/exchange.h"

#include <stdio.h>

#include "runtime/base/alloc.h"

struct esi_attempt {
    struct rt_list link;           /* in post->attempts */
    struct model_call *call;       /* with whoever carries it out, until it comes back */
    struct esi_exchange *exchange; /* NULL once given up */
    uint64_t sent_us;
    uint64_t deadline_us;
    char address[MODEL_ADDRESS_MAX + 1]; /* the call's */
};

void esi_post_init(struct esi_post *post)
{
    model_effects_init(&post->effects);
    rt_list_init(&post->attempts);
}

void esi_post_deinit(struct esi_post *post)
{
    rt_list_for_each_safe (node, &post->attempts) {
        struct esi_attempt *attempt = RT_LIST_ENTRY(node, struct esi_attempt, link);

        (void)model_call_free(attempt->call);
        (void)rt_free(attempt);
    }
}

enum rt_code esi_post_send(struct esi_post *post, struct esi_exchange *exchange,
                           const struct model_request *request, uint64_t now_us,
                           uint64_t timeout_us, struct rt_error *err)
{
    struct model_call *call = model_call_new(request->kind);
    struct esi_attempt *attempt;
    enum rt_code code;

    exchange->send_at_us = RT_NEVER;
    if (exchange->n_attempts++ == 0)
        exchange->begun_us = now_us;
    code = model_request_copy(&call->request, request, &call->arena, err);
    if (code != RT_OK) {
        (void)model_call_free(call);
        return code;
    }
    attempt = rt_xalloc(sizeof(*attempt));
    *attempt = (struct esi_attempt){.call = call, .exchange = exchange, .sent_us = now_us};
    attempt->deadline_us =
        now_us + timeout_us < exchange->deadline_us ? now_us + timeout_us : exchange->deadline_us;
    (void)snprintf(attempt->address, sizeof(attempt->address), "%s", exchange->address);
    call->address = attempt->address;
    call->deadline_us = attempt->deadline_us;
    call->state = attempt;
    exchange->attempt = attempt;
    rt_list_push_back(&post->attempts, &attempt->link);
    rt_list_push_back(&post->effects.calls, &call->link);
    return RT_OK;
}

struct esi_exchange *esi_post_take_back(struct model_call *call, uint64_t *ret_sent_us)
{
    struct esi_attempt *attempt = call->state;
    struct esi_exchange *exchange = attempt->exchange;

    if (exchange)
        exchange->attempt = NULL;
    *ret_sent_us = attempt->sent_us;
    rt_list_remove(&attempt->link);
    (void)rt_free(attempt);
    return exchange;
}

struct esi_exchange esi_exchange_begin(const char *address, uint64_t deadline_us)
{
    return (struct esi_exchange){
        .address = address, .deadline_us = deadline_us, .send_at_us = RT_NEVER};
}

void esi_exchange_give_up(struct esi_exchange *exchange)
{
    exchange->send_at_us = RT_NEVER;
    if (!exchange->attempt)
        return;
    exchange->attempt->exchange = NULL;
    exchange->attempt = NULL;
    exchange->maybe = true;
}

/* Of the exchange: its last attempt may have had next to nothing. A part of one counts as one. */
static uint64_t waited_ms(const struct esi_exchange *exchange, uint64_t now_us)
{
    return (now_us - exchange->begun_us + 999) / 1000;
}

bool esi_exchange_expire(struct esi_exchange *exchange, uint64_t now_us,
                         struct model_response *ret_failure)
{
    const struct esi_attempt *attempt = exchange->attempt;

    if (!attempt || now_us < attempt->deadline_us)
        return false;
    model_response_fail(ret_failure, MODEL_REASON_NONE, "no answer from %.200s within %llu ms",
                        attempt->address, (unsigned long long)waited_ms(exchange, now_us));
    ret_failure->code = RT_DEADLINE_EXCEEDED;
    esi_exchange_give_up(exchange);
    return true;
}

uint64_t esi_exchange_wakeup_us(const struct esi_exchange *exchange)
{
    return exchange->attempt ? exchange->attempt->deadline_us : exchange->send_at_us;
}
