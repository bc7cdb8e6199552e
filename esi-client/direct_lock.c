/*
 * LOCK, UNLOCK and the session behind them: see direct_state.h. Invariant: a token is claimed only
 * while the session that got it is held, by the client's own clock. The core's lock.
 */
#include "esi-client/direct_state.h"

enum {
    OPEN_TIMEOUT_US = 10 * 1000 * 1000
};

/* ---- the session ----------------------------------------------------------------------------- */

static void open_session(struct esi_direct *direct)
{
    struct model_request_id id = {direct->session_ids.client, ++direct->session_ids.last};

    esi_locks_lose_all(&direct->locks);
    esi_lease_open(&direct->lease, &id, OPEN_TIMEOUT_US);
    direct->lease_state = ESI_LEASE_OPENING;
}

void esi_direct_lose_session(struct esi_direct *direct, const struct model_id *session,
                             const struct model_response *failure)
{
    if (direct->lease.state == ESI_LEASE_HELD && model_id_equal(session, &direct->lease.id))
        esi_lease_lose(&direct->lease, failure);
}

static void end_wait(struct esi_direct *direct, struct esi_operation *operation)
{
    struct model_response failure;

    operation->awaits_session = false;
    if (direct->lease.state == ESI_LEASE_HELD) {
        esi_direct_go_on(direct, operation);
        return;
    }
    failure.responder = (struct model_responder){0};
    failure.code = direct->lease.failure_code;
    failure.error = direct->lease.failure;
    esi_direct_fail(direct, operation, &failure);
}

void esi_direct_follow_lease(struct esi_direct *direct)
{
    enum esi_lease_state state = direct->lease.state;

    if (state == direct->lease_state)
        return;
    direct->lease_state = state;
    if (state == ESI_LEASE_ENDED)
        esi_locks_lose_all(&direct->locks);
    if (state != ESI_LEASE_HELD && state != ESI_LEASE_ENDED)
        return;
    rt_list_for_each_safe (node, &direct->operations) {
        struct esi_operation *operation = RT_LIST_ENTRY(node, struct esi_operation, link);

        /* One that goes on may find the session over and open another: the rest wait for that. */
        if (operation->awaits_session && direct->lease_state == state)
            end_wait(direct, operation);
    }
}

/* ---- LOCK ------------------------------------------------------------------------------------ */

static void send_lock(struct esi_direct *direct, struct esi_operation *operation)
{
    struct model_request request = {.kind = MODEL_CALL_LOCK};

    operation->session = direct->lease.id;
    request.lock = (struct model_lock_request){
        .session_id = direct->lease.id,
        .request_id = operation->id,
        .done_below = esi_sequence_done_below(&direct->session_ids),
        .key = operation->key,
    };
    esi_direct_send(direct, operation, &request);
}

/* Another LOCK of the same key that goes on: the core's own, or not. */
static struct esi_operation *find_lock(const struct esi_direct *direct,
                                       const struct esi_operation *but, bool is_cleanup)
{
    rt_list_for_each (node, &direct->operations) {
        struct esi_operation *operation = RT_LIST_ENTRY(node, struct esi_operation, link);

        if (operation != but && operation->call->request.kind == MODEL_CALL_LOCK &&
            operation->is_cleanup == is_cleanup && operation->exchange.deadline_us != 0 &&
            rt_bytes_equal(operation->key, but->key))
            return operation;
    }
    return NULL;
}

/* The core's own LOCK of the key would give back what this one gets: it ends with the next tick.
 * False: it is giving it back already. */
static bool end_cleanup(struct esi_direct *direct, const struct esi_operation *operation)
{
    struct esi_operation *cleanup =
        direct->n_cleanups == 0 ? NULL : find_lock(direct, operation, true);

    if (!cleanup)
        return true;
    if (cleanup->is_releasing)
        return false;
    esi_exchange_give_up(&cleanup->exchange);
    cleanup->exchange.deadline_us = 0;
    esi_direct_arm(direct, 0);
    return true;
}

static void lock_go_on(struct esi_direct *direct, struct esi_operation *operation)
{
    if (!esi_lease_check(&direct->lease)) {
        operation->awaits_session = true;
        /* One that opened with a malformed lease is being closed, and then fails those that wait.
         */
        if (direct->lease.state != ESI_LEASE_OPENING && direct->lease.state != ESI_LEASE_CLOSING)
            open_session(direct);
    } else if (end_cleanup(direct, operation)) {
        send_lock(direct, operation);
    } else {
        operation->exchange.send_at_us = esi_direct_now_us(direct) + ESI_RETRY_BACKOFF_FIRST_US;
        esi_direct_arm(direct, operation->exchange.send_at_us);
    }
}

static bool is_of_session(struct esi_direct *direct, const struct esi_operation *operation)
{
    return esi_lease_check(&direct->lease) &&
           model_id_equal(&operation->session, &direct->lease.id);
}

void esi_direct_lock_go_on(struct esi_direct *direct, struct esi_operation *operation)
{
    if (!operation->is_cleanup)
        lock_go_on(direct, operation);
    else if (is_of_session(direct, operation))
        send_lock(direct, operation);
    else
        esi_direct_answer(direct, operation);
}

/* A LOCK of the core's own on the operation's key, in its session; NULL without memory. */
static struct esi_operation *begin_cleanup(struct esi_direct *direct,
                                           const struct esi_operation *operation)
{
    struct model_call *call = model_call_new(MODEL_CALL_LOCK);
    struct esi_operation *cleanup;

    if (!rt_arena_copy(&call->arena, operation->key, &call->request.lock.key)) {
        (void)model_call_free(call);
        return NULL;
    }
    direct->n_cleanups++;
    cleanup = esi_direct_begin(direct, call);
    cleanup->is_cleanup = true;
    cleanup->session = operation->session;
    return cleanup;
}

void esi_direct_abandon(struct esi_direct *direct, const struct esi_operation *operation)
{
    struct esi_operation *cleanup;

    if (operation->is_cleanup || direct->is_closing || !is_of_session(direct, operation) ||
        esi_locks_find(&direct->locks, operation->key).held || find_lock(direct, operation, false))
        return;
    cleanup = begin_cleanup(direct, operation);
    if (cleanup)
        send_lock(direct, cleanup);
}

static void on_session_over(struct esi_direct *direct, struct esi_operation *operation)
{
    struct model_response failure;

    operation->exchange.maybe = true;
    failure.responder = (struct model_responder){0};
    model_response_fail(&failure, MODEL_REASON_SESSION_UNKNOWN,
                        "the session was over when its lock was granted");
    esi_direct_fail(direct, operation, &failure);
}

static void on_granted(struct esi_direct *direct, struct esi_operation *operation,
                       const struct model_response *response)
{
    const struct model_lock_response *lock = &response->lock;
    struct model_call *call = operation->call;
    struct model_response failure;
    struct rt_error err;

    if (lock->has_route)
        esi_direct_learn(direct, operation->key, &lock->route, response->responder.term);
    if (operation->is_cleanup) {
        operation->lock_token = lock->lock_token;
        esi_direct_release(direct, operation);
        return;
    }
    if (model_response_copy(&call->response, response, MODEL_CALL_LOCK, &call->arena, &err) ==
        RT_OK) {
        esi_locks_note(&direct->locks, MODEL_STATEMENT_GET, operation->key, lock->lock_token, NULL);
        esi_direct_answer(direct, operation);
        return;
    }
    operation->exchange.maybe = true;
    failure.responder = response->responder;
    model_response_fail(&failure, MODEL_REASON_LIMIT_REACHED, "%s", err.message);
    esi_direct_fail(direct, operation, &failure);
}

static void on_locked(struct esi_direct *direct, struct esi_operation *operation,
                      const struct model_response *response)
{
    struct model_response failure;

    if (!is_of_session(direct, operation)) {
        on_session_over(direct, operation);
    } else if (response->lock.outcome == MODEL_OUTCOME_DONE) {
        on_granted(direct, operation, response);
    } else {
        operation->exchange.maybe = true;
        failure.responder = response->responder;
        model_response_fail(&failure, MODEL_REASON_NONE, "the answer is none to a LOCK");
        esi_direct_fail(direct, operation, &failure);
    }
}

void esi_direct_lock_answer(struct esi_direct *direct, struct esi_operation *operation,
                            const struct model_response *response)
{
    enum esi_reaction reaction;

    if (response->code == RT_OK) {
        on_locked(direct, operation, response);
        return;
    }
    if (response->error.applied != MODEL_APPLIED_NO)
        operation->exchange.maybe = true;
    /* A lock that was not granted in time is the normal course of a long wait. */
    if (response->code == RT_DEADLINE_EXCEEDED)
        operation->exchange.n_attempts = 1;
    operation->is_in_line = response->error.reason == MODEL_REASON_DEADLINE_EXCEEDED;
    reaction = esi_retry_reaction(response->code, &response->error);
    if (reaction == ESI_REACTION_SESSION_LOST)
        esi_direct_lose_session(direct, &operation->session, response);
    if (reaction != ESI_REACTION_RETRY ||
        !esi_direct_pause(direct, operation, &response->error, false))
        esi_direct_fail(direct, operation, response);
}

/* ---- UNLOCK, and the end of STORE and PUT ---------------------------------------------------- */

static void finish_unlock(struct esi_direct *direct, struct esi_operation *operation)
{
    esi_locks_forget(&direct->locks, operation->key, operation->lock_token);
    if (!operation->is_releasing)
        model_response_ok(&operation->call->response, MODEL_CALL_UNLOCK);
    esi_direct_answer(direct, operation);
}

void esi_direct_unlock_go_on(struct esi_direct *direct, struct esi_operation *operation)
{
    struct model_request request = {.kind = MODEL_CALL_UNLOCK};

    if (operation->lock_token == 0 || !esi_lease_check(&direct->lease) ||
        esi_locks_find(&direct->locks, operation->key).lost) {
        finish_unlock(direct, operation);
        return;
    }
    operation->session = direct->lease.id;
    request.unlock = (struct model_unlock_request){
        .session_id = direct->lease.id,
        .key = operation->key,
        .lock_token = operation->lock_token,
    };
    operation->exchange.address = direct->config.coordinator_address;
    esi_direct_send(direct, operation, &request);
}

void esi_direct_release(struct esi_direct *direct, struct esi_operation *operation)
{
    operation->is_releasing = true;
    operation->exchange =
        esi_exchange_begin(direct->config.coordinator_address, operation->exchange.deadline_us);
    esi_direct_unlock_go_on(direct, operation);
}

void esi_direct_release_later(struct esi_direct *direct, const struct esi_operation *operation)
{
    struct esi_operation *cleanup;

    if (operation->is_cleanup || direct->is_closing || !is_of_session(direct, operation))
        return;
    cleanup = begin_cleanup(direct, operation);
    if (!cleanup)
        return;
    cleanup->lock_token = operation->lock_token;
    esi_locks_forget(&direct->locks, operation->key, operation->lock_token);
    esi_direct_release(direct, cleanup);
}

void esi_direct_unlock_answer(struct esi_direct *direct, struct esi_operation *operation,
                              const struct model_response *response)
{
    enum esi_reaction reaction;

    if (response->code == RT_OK) {
        finish_unlock(direct, operation);
        return;
    }
    if (response->error.applied != MODEL_APPLIED_NO)
        operation->exchange.maybe = true;
    reaction = esi_retry_reaction(response->code, &response->error);
    if (reaction == ESI_REACTION_SESSION_LOST) {
        esi_direct_lose_session(direct, &operation->session, response);
        finish_unlock(direct, operation);
    } else if (reaction != ESI_REACTION_RETRY ||
               !esi_direct_pause(direct, operation, &response->error, false)) {
        esi_direct_fail(direct, operation, response);
    }
}
