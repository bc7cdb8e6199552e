/*
 * A session's lease: see lease.h. Invariant: the fence counts from the sending of a request that
 * was granted, so a late answer only shortens; after the fence the lease is never HELD. The core's
 * lock.
 */
#include "esi-client/lease.h"

#include <stdio.h>

#include "esi-client/retry.h"

enum {
    ATTEMPT_TIMEOUT_US = 5 * 1000 * 1000,
    CLOSE_TIMEOUT_US = 2 * 1000 * 1000,
};

static uint64_t now_us(const struct esi_lease *lease)
{
    return rt_env_now_us(&lease->env);
}

void esi_lease_init(struct esi_lease *lease, struct esi_post *post, const struct rt_env *env,
                    const char *name, const char *address)
{
    *lease = (struct esi_lease){.env = *env, .post = post, .address = address};
    (void)snprintf(lease->name, sizeof(lease->name), "%s", name);
    lease->door = esi_exchange_begin(address, RT_NEVER);
    lease->keep_alive = esi_exchange_begin(address, RT_NEVER);
}

static void end(struct esi_lease *lease)
{
    esi_exchange_give_up(&lease->door);
    esi_exchange_give_up(&lease->keep_alive);
    lease->state = ESI_LEASE_ENDED;
}

static void note_failure(struct esi_lease *lease, const struct model_response *failure)
{
    lease->failure_code = failure->code;
    lease->failure = failure->error;
    lease->failure.key = (struct rt_bytes){0};
}

static void fail(struct esi_lease *lease, const struct model_response *failure)
{
    note_failure(lease, failure);
    end(lease);
}

void esi_lease_lose(struct esi_lease *lease, const struct model_response *failure)
{
    lease->is_over = true;
    fail(lease, failure);
}

bool esi_lease_check(struct esi_lease *lease)
{
    struct model_response failure;

    if (lease->state != ESI_LEASE_HELD)
        return false;
    if (now_us(lease) < lease->fence_at_us)
        return true;
    model_response_fail(&failure, MODEL_REASON_SESSION_UNKNOWN,
                        "the session's lease of %llu ms ran out without an answer to a KeepAlive",
                        (unsigned long long)(lease->terms.duration_us / 1000));
    fail(lease, &failure);
    return false;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* None of these requests has byte strings, so none needs memory that could be missing. */
static void send_door(struct esi_lease *lease)
{
    struct model_request request = {.kind = MODEL_CALL_CLOSE_SESSION, .session = {lease->id}};

    if (lease->state == ESI_LEASE_OPENING) {
        request = (struct model_request){
            .kind = MODEL_CALL_OPEN_SESSION,
            .open_session = {.request_id = lease->request_id},
        };
        memcpy(request.open_session.name, lease->name, sizeof(lease->name));
    }
    (void)!esi_post_send(lease->post, &lease->door, &request, now_us(lease), ATTEMPT_TIMEOUT_US,
                         NULL);
}

static void send_keep_alive(struct esi_lease *lease)
{
    struct model_request request = {.kind = MODEL_CALL_KEEP_ALIVE, .session = {lease->id}};

    (void)!esi_post_send(lease->post, &lease->keep_alive, &request, now_us(lease),
                         model_lease_renew_timeout_us(&lease->terms), NULL);
}

void esi_lease_open(struct esi_lease *lease, const struct model_request_id *request_id,
                    uint64_t timeout_us)
{
    rt_assert(lease->state == ESI_LEASE_NONE || lease->state == ESI_LEASE_ENDED);
    lease->state = ESI_LEASE_OPENING;
    lease->failure_code = RT_OK;
    lease->is_over = false;
    lease->request_id = *request_id;
    lease->door = esi_exchange_begin(lease->address, now_us(lease) + timeout_us);
    send_door(lease);
}

void esi_lease_close(struct esi_lease *lease)
{
    switch (lease->state) {
    case ESI_LEASE_NONE:
    case ESI_LEASE_OPENING:
        end(lease);
        break;
    case ESI_LEASE_HELD:
        esi_exchange_give_up(&lease->keep_alive);
        lease->state = ESI_LEASE_CLOSING;
        lease->door = esi_exchange_begin(lease->address, now_us(lease) + CLOSE_TIMEOUT_US);
        send_door(lease);
        break;
    case ESI_LEASE_CLOSING:
    case ESI_LEASE_ENDED:
        break;
    }
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Counted from sending, so a late answer can only shorten. */
static void extend(struct esi_lease *lease, uint64_t sent_us)
{
    uint64_t fence_at_us = model_lease_fence_at(&lease->terms, sent_us);

    if (fence_at_us > lease->fence_at_us)
        lease->fence_at_us = fence_at_us;
    lease->keep_alive.send_at_us = sent_us + model_lease_renew_interval_us(&lease->terms);
}

static void on_opened(struct esi_lease *lease, const struct model_open_session_response *opened,
                      uint64_t sent_us)
{
    bool retried = lease->door.n_attempts > 1;
    struct model_response failure;
    struct rt_error err;

    lease->id = opened->session_id;
    lease->state = ESI_LEASE_HELD;
    if (model_lease_init(&lease->terms, opened->lease_ms, &err) != RT_OK) {
        model_response_fail(&failure, MODEL_REASON_NONE, "malformed answer of OpenSession: %s",
                            err.message);
        note_failure(lease, &failure);
        esi_lease_close(lease);
        return;
    }
    lease->fence_at_us = 0;
    lease->keep_alive = esi_exchange_begin(lease->address, RT_NEVER);
    extend(lease, sent_us);
    /* An earlier attempt may have begun the lease that this answer repeats: renew it now. */
    if (retried)
        send_keep_alive(lease);
}

static void end_closed(struct esi_lease *lease, bool is_over)
{
    lease->is_over = is_over;
    end(lease);
}

/* Opening and closing are bounded by their time alone. */
static void on_door_failure(struct esi_lease *lease, const struct model_response *failure)
{
    uint64_t at_us =
        now_us(lease) + esi_retry_delay_us(lease->door.n_attempts, failure->error.retry_after_ms,
                                           rt_env_random(&lease->env));

    if (esi_retry_reaction(failure->code, &failure->error) == ESI_REACTION_RETRY &&
        at_us < lease->door.deadline_us)
        lease->door.send_at_us = at_us;
    else if (lease->state == ESI_LEASE_OPENING)
        fail(lease, failure);
    else
        end_closed(lease,
                   esi_retry_reaction(failure->code, &failure->error) == ESI_REACTION_SESSION_LOST);
}

static void on_door_answer(struct esi_lease *lease, const struct model_call *call, uint64_t sent_us)
{
    if (call->response.code != RT_OK)
        on_door_failure(lease, &call->response);
    else if (lease->state == ESI_LEASE_OPENING)
        on_opened(lease, &call->response.open_session, sent_us);
    else
        end_closed(lease, true);
}

static void on_keep_alive_failure(struct esi_lease *lease, const struct model_response *failure)
{
    if (esi_retry_reaction(failure->code, &failure->error) == ESI_REACTION_SESSION_LOST) {
        esi_lease_lose(lease, failure);
        return;
    }
    lease->keep_alive.send_at_us =
        now_us(lease) +
        esi_retry_delay_us(lease->keep_alive.n_attempts, 0, rt_env_random(&lease->env));
}

static void on_keep_alive_answer(struct esi_lease *lease, const struct model_call *call,
                                 uint64_t sent_us)
{
    if (call->response.code != RT_OK) {
        on_keep_alive_failure(lease, &call->response);
        return;
    }
    /* A coordinator with a new configuration may say another length; nonsense changes nothing. */
    if (call->response.keep_alive.lease_ms != lease->terms.duration_us / 1000)
        (void)!model_lease_init(&lease->terms, call->response.keep_alive.lease_ms, NULL);
    lease->keep_alive.n_attempts = 0;
    extend(lease, sent_us);
}

bool esi_lease_take(struct esi_lease *lease, const struct esi_exchange *exchange,
                    const struct model_call *call, uint64_t sent_us)
{
    if (exchange == &lease->keep_alive)
        on_keep_alive_answer(lease, call, sent_us);
    else if (exchange == &lease->door)
        on_door_answer(lease, call, sent_us);
    else
        return false;
    return true;
}

/* ---- time ------------------------------------------------------------------------------------ */

void esi_lease_tick(struct esi_lease *lease)
{
    struct model_response failure;

    if (esi_exchange_expire(&lease->keep_alive, now_us(lease), &failure))
        on_keep_alive_failure(lease, &failure);
    if (esi_exchange_expire(&lease->door, now_us(lease), &failure))
        on_door_failure(lease, &failure);
    (void)esi_lease_check(lease);
    if (lease->keep_alive.send_at_us <= now_us(lease))
        send_keep_alive(lease);
    if (lease->door.send_at_us <= now_us(lease))
        send_door(lease);
}

uint64_t esi_lease_wakeup_us(const struct esi_lease *lease)
{
    uint64_t door_us = esi_exchange_wakeup_us(&lease->door);
    uint64_t keep_alive_us = esi_exchange_wakeup_us(&lease->keep_alive);
    uint64_t next_us = door_us < keep_alive_us ? door_us : keep_alive_us;

    if (lease->state == ESI_LEASE_HELD && lease->fence_at_us < next_us)
        return lease->fence_at_us;
    return next_us;
}
