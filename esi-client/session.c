/*
 * Session machine: see session.h.
 *
 * Two exchanges run side by side: `main` carries OPEN_SESSION, then the statements one at a time,
 * then CLOSE_SESSION; `keep_alive` renews the lease. An exchange is one request with its retries.
 * Invariant: an exchange has at most one live attempt, and waits for its answer, for its retry time
 * or for nothing; every attempt of one exchange carries the same request_id. The session's lock.
 */
#include "esi-client/session.h"

#include "esi-client/exchange.h"
#include "esi-client/locks.h"
#include "esi-client/retry.h"
#include "runtime/base/alloc.h"
#include "runtime/model/lease.h"

enum {
    ATTEMPT_TIMEOUT_US = 5 * 1000 * 1000,
    CLOSE_TIMEOUT_US = 2 * 1000 * 1000,
};

struct run {
    struct esi_statement statement;
    bool awaiting; /* the exchange is an AWAIT, not the statement itself */
    uint64_t seq;  /* of the exchange */
    uint64_t started_us;
};

struct esi_session {
    struct esi_session_config config;
    struct rt_env env;
    enum esi_session_state state;
    struct esi_post post;
    struct rt_list results; /* esi_result.link */
    struct esi_retry_budget budget;
    struct esi_locks locks;
    struct model_id id; /* of the session, as the coordinator gave it */
    struct model_lease lease;
    uint64_t fence_at_us; /* from here on the session claims nothing */
    uint64_t last_seq;
    struct esi_exchange main;
    struct esi_exchange keep_alive;
    struct run run; /* while BUSY */
    enum rt_code failure_code;
    struct model_error failure; /* when failure_code is not RT_OK */
};

static uint64_t now_us(const struct esi_session *session)
{
    return rt_env_now_us(&session->env);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static bool has_lease(const struct esi_session *session)
{
    return session->state == ESI_SESSION_OPEN || session->state == ESI_SESSION_BUSY;
}

/* ---- requests -------------------------------------------------------------------------------- */

static void fill_execute(const struct esi_session *session, struct model_execute_request *execute)
{
    const struct esi_statement *statement = &session->run.statement;
    struct esi_lock_state lock = esi_locks_find(&session->locks, statement->key);

    *execute = (struct model_execute_request){
        .session_id = session->id,
        .request_id = {session->config.client_id, session->run.seq},
        .done_below = session->run.seq,
        .kind = session->run.awaiting ? MODEL_STATEMENT_AWAIT : statement->kind,
        .key = statement->key,
        .value = session->run.awaiting ? (struct rt_bytes){0} : statement->value,
    };
    /* Those that ask for a lock, or need none, claim none. */
    if (execute->kind != MODEL_STATEMENT_GET && execute->kind != MODEL_STATEMENT_READ &&
        execute->kind != MODEL_STATEMENT_AWAIT)
        execute->lock_token = lock.token;
    if (execute->kind == MODEL_STATEMENT_STORE) {
        execute->has_last_set = lock.has_last_set;
        execute->last_set = lock.last_set;
    }
}

static void fill_main(const struct esi_session *session, struct model_request *request)
{
    switch (session->state) {
    case ESI_SESSION_OPENING:
        request->kind = MODEL_CALL_OPEN_SESSION;
        request->open_session = (struct model_open_session_request){
            .request_id = {session->config.client_id, session->run.seq}};
        memcpy(request->open_session.name, session->config.name, sizeof(session->config.name));
        break;
    case ESI_SESSION_BUSY:
        request->kind = MODEL_CALL_EXECUTE;
        fill_execute(session, &request->execute);
        break;
    case ESI_SESSION_CLOSING:
        request->kind = MODEL_CALL_CLOSE_SESSION;
        request->session = (struct model_session_request){session->id};
        break;
    case ESI_SESSION_OPEN:
    case ESI_SESSION_CLOSED:
        rt_assert(!"an exchange under way");
    }
}

/* ---- results --------------------------------------------------------------------------------- */

static struct esi_result *push_result(struct esi_session *session, enum esi_outcome outcome)
{
    struct esi_result *result = rt_xalloc(sizeof(*result));

    result->statement = session->run.statement;
    result->outcome = outcome;
    result->latency_us = now_us(session) - session->run.started_us;
    result->attempts = session->main.n_attempts;
    rt_list_push_back(&session->results, &result->link);
    return result;
}

/* Takes the call's arena: what the response borrows lives on in the result. */
static void push_response(struct esi_session *session, enum esi_outcome outcome,
                          struct model_call *call)
{
    struct esi_result *result = push_result(session, outcome);

    result->code = RT_OK;
    result->response = call->response.execute;
    result->arena = call->arena;
    call->arena = (struct rt_arena){0};
}

/* The statement ends without success; the session is OPEN again unless it is being ended. */
static void finish_failed(struct esi_session *session, const struct model_response *failure)
{
    struct esi_result *result;
    bool maybe;

    esi_exchange_give_up(&session->main);
    maybe = session->main.maybe && !session->run.awaiting;
    result = push_result(session, maybe ? ESI_OUTCOME_UNKNOWN : ESI_OUTCOME_FAILED);
    result->code = failure->code;
    result->error = failure->error;
    result->error.key = session->run.statement.key;
    /* What the statement as a whole came to, not its last attempt. */
    result->error.applied = maybe ? MODEL_APPLIED_MAYBE : MODEL_APPLIED_NO;
    session->state = ESI_SESSION_OPEN;
}

static void become_closed(struct esi_session *session)
{
    esi_exchange_give_up(&session->main);
    esi_exchange_give_up(&session->keep_alive);
    session->state = ESI_SESSION_CLOSED;
}

static void lose(struct esi_session *session, const struct model_response *failure)
{
    if (session->state == ESI_SESSION_BUSY)
        finish_failed(session, failure);
    session->failure_code = failure->code;
    session->failure = failure->error;
    session->failure.key = (struct rt_bytes){0};
    become_closed(session);
}

static bool lose_if_expired(struct esi_session *session)
{
    struct model_response failure;

    if (!has_lease(session) || now_us(session) < session->fence_at_us)
        return false;
    model_response_fail(&failure, MODEL_REASON_SESSION_UNKNOWN,
                        "the session's lease of %llu ms ran out without an answer to a KeepAlive",
                        (unsigned long long)(session->lease.duration_us / 1000));
    lose(session, &failure);
    return true;
}

/* ---- retries --------------------------------------------------------------------------------- */

/* Waiting for a lock and opening are bounded by the lease and by time alone. */
static bool may_retry(struct esi_session *session, uint64_t at_us)
{
    struct esi_exchange *exchange = &session->main;

    if (at_us >= exchange->deadline_us)
        return false;
    if (session->state != ESI_SESSION_BUSY || session->run.awaiting)
        return true;
    return exchange->n_attempts < ESI_RETRY_ATTEMPTS_MAX &&
           esi_retry_budget_spend(&session->budget, now_us(session));
}

static bool schedule_retry(struct esi_session *session, const struct model_error *error)
{
    uint64_t at_us =
        now_us(session) + esi_retry_delay_us(session->main.n_attempts, error->retry_after_ms,
                                             rt_env_random(&session->env));

    if (!may_retry(session, at_us))
        return false;
    session->main.send_at_us = at_us;
    return true;
}

static void end_main(struct esi_session *session, const struct model_response *failure)
{
    switch (session->state) {
    case ESI_SESSION_OPENING:
        lose(session, failure);
        break;
    case ESI_SESSION_BUSY:
        finish_failed(session, failure);
        break;
    case ESI_SESSION_CLOSING:
        become_closed(session);
        break;
    case ESI_SESSION_OPEN:
    case ESI_SESSION_CLOSED:
        break;
    }
}

static void on_main_failure(struct esi_session *session, const struct model_response *failure)
{
    if (failure->error.applied != MODEL_APPLIED_NO)
        session->main.maybe = true;
    /* An AWAIT that was not answered in time is the normal course of a long wait. */
    if (session->run.awaiting && failure->code == RT_DEADLINE_EXCEEDED)
        session->main.n_attempts = 1;

    switch (esi_retry_reaction(failure->code, &failure->error)) {
    case ESI_REACTION_SESSION_LOST:
        if (has_lease(session))
            lose(session, failure);
        else
            end_main(session, failure);
        break;
    case ESI_REACTION_RETRY:
        if (!schedule_retry(session, &failure->error))
            end_main(session, failure);
        break;
    case ESI_REACTION_FAIL:
        end_main(session, failure);
        break;
    }
}

static void send_main(struct esi_session *session)
{
    struct model_request request;
    struct model_response failure;
    struct rt_error err;

    fill_main(session, &request);
    if (esi_post_send(&session->post, &session->main, &request, now_us(session), ATTEMPT_TIMEOUT_US,
                      &err) == RT_OK)
        return;
    model_response_fail(&failure, MODEL_REASON_LIMIT_REACHED, "%s", err.message);
    on_main_failure(session, &failure);
}

/* ---- lease ----------------------------------------------------------------------------------- */

static void send_keep_alive(struct esi_session *session)
{
    struct model_request request = {.kind = MODEL_CALL_KEEP_ALIVE, .session = {session->id}};

    (void)!esi_post_send(&session->post, &session->keep_alive, &request, now_us(session),
                         model_lease_renew_timeout_us(&session->lease), NULL);
}

/* Counted from sending, so a late answer can only shorten. */
static void extend_lease(struct esi_session *session, uint64_t sent_us)
{
    uint64_t fence_at_us = model_lease_fence_at(&session->lease, sent_us);

    if (fence_at_us > session->fence_at_us)
        session->fence_at_us = fence_at_us;
    session->keep_alive.send_at_us = sent_us + model_lease_renew_interval_us(&session->lease);
}

static void on_keep_alive_failure(struct esi_session *session, const struct model_response *failure)
{
    if (esi_retry_reaction(failure->code, &failure->error) == ESI_REACTION_SESSION_LOST) {
        lose(session, failure);
        return;
    }
    session->keep_alive.send_at_us =
        now_us(session) +
        esi_retry_delay_us(session->keep_alive.n_attempts, 0, rt_env_random(&session->env));
}

static void on_keep_alive_answer(struct esi_session *session, const struct model_call *call,
                                 uint64_t sent_us)
{
    if (call->response.code != RT_OK) {
        on_keep_alive_failure(session, &call->response);
        return;
    }
    /* A coordinator with a new configuration may say another length; nonsense changes nothing. */
    if (call->response.keep_alive.lease_ms != session->lease.duration_us / 1000)
        (void)!model_lease_init(&session->lease, call->response.keep_alive.lease_ms, NULL);
    session->keep_alive.n_attempts = 0;
    extend_lease(session, sent_us);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void on_opened(struct esi_session *session, const struct model_open_session_response *opened,
                      uint64_t sent_us)
{
    bool retried = session->main.n_attempts > 1;
    struct model_response failure;
    struct rt_error err;

    if (model_lease_init(&session->lease, opened->lease_ms, &err) != RT_OK) {
        model_response_fail(&failure, MODEL_REASON_INVALID_FIELD, "the coordinator's answer: %s",
                            err.message);
        lose(session, &failure);
        return;
    }
    session->id = opened->session_id;
    session->state = ESI_SESSION_OPEN;
    session->keep_alive = esi_exchange_begin(RT_NEVER);
    extend_lease(session, sent_us);
    /* An earlier attempt may have begun the lease that this answer repeats: renew it now. */
    if (retried)
        send_keep_alive(session);
}

static void begin_execute(struct esi_session *session, bool awaiting)
{
    session->run.awaiting = awaiting;
    session->run.seq = ++session->last_seq;
    session->main = esi_exchange_begin(
        awaiting ? RT_NEVER : now_us(session) + session->config.statement_timeout_us);
    if (!awaiting)
        esi_retry_budget_earn(&session->budget);
    send_main(session);
}

static void on_protocol_error(struct esi_session *session)
{
    enum model_statement_kind kind =
        session->run.awaiting ? MODEL_STATEMENT_AWAIT : session->run.statement.kind;
    struct model_response failure;

    model_response_fail(&failure, MODEL_REASON_NONE, "the answer's outcome does not belong to a %s",
                        model_statement_kind_name(kind));
    session->main.maybe = true;
    finish_failed(session, &failure);
}

static void on_executed(struct esi_session *session, struct model_call *call)
{
    const struct model_execute_response *response = &call->response.execute;
    bool is_get = call->request.execute.kind == MODEL_STATEMENT_GET;

    if (session->run.awaiting) {
        if (response->outcome == MODEL_OUTCOME_READY)
            begin_execute(session, false);
        else
            on_protocol_error(session);
    } else if (response->outcome == MODEL_OUTCOME_WAITING && is_get) {
        push_response(session, ESI_OUTCOME_WAITING, call);
        begin_execute(session, true);
    } else if (response->outcome != MODEL_OUTCOME_DONE) {
        on_protocol_error(session);
    } else if (is_get && now_us(session) >= session->fence_at_us) {
        /* Too late to claim the lock. */
        session->main.maybe = true;
        (void)lose_if_expired(session);
    } else {
        esi_locks_note(&session->locks, &call->request.execute, response);
        push_response(session, ESI_OUTCOME_OK, call);
        session->state = ESI_SESSION_OPEN;
    }
}

static void on_main_answer(struct esi_session *session, struct model_call *call, uint64_t sent_us)
{
    if (call->response.code != RT_OK)
        on_main_failure(session, &call->response);
    else if (session->state == ESI_SESSION_OPENING)
        on_opened(session, &call->response.open_session, sent_us);
    else if (session->state == ESI_SESSION_BUSY)
        on_executed(session, call);
    else if (session->state == ESI_SESSION_CLOSING)
        become_closed(session);
}

/* The attempt's time is over and its call has not come back. */
static void expire_attempt(struct esi_session *session, struct esi_exchange *exchange)
{
    struct model_response failure;

    if (!esi_exchange_is_overdue(exchange, now_us(session)))
        return;
    model_response_fail(&failure, MODEL_REASON_NONE, "no answer from %.200s within %llu ms",
                        session->config.coordinator_address,
                        (unsigned long long)(now_us(session) - esi_exchange_sent_us(exchange)) /
                            1000);
    failure.code = RT_DEADLINE_EXCEEDED;
    esi_exchange_give_up(exchange);
    if (exchange == &session->keep_alive)
        on_keep_alive_failure(session, &failure);
    else
        on_main_failure(session, &failure);
}

/* ---- public ---------------------------------------------------------------------------------- */

struct esi_session *esi_session_new(const struct esi_session_config *config,
                                    const struct rt_env *env)
{
    struct esi_session *session = rt_xalloc(sizeof(*session));

    rt_assert(config->statement_timeout_us > 0);
    session->config = *config;
    session->env = *env;
    session->state = ESI_SESSION_OPENING;
    esi_post_init(&session->post, session->config.coordinator_address);
    rt_list_init(&session->results);
    session->main = esi_exchange_begin(RT_NEVER);
    session->keep_alive = esi_exchange_begin(RT_NEVER);
    return session;
}

struct esi_session *esi_session_free(struct esi_session *session)
{
    struct esi_result *result;

    if (!session)
        return NULL;
    while ((result = esi_session_take_result(session)) != NULL)
        (void)esi_result_free(result);
    esi_post_deinit(&session->post);
    esi_locks_deinit(&session->locks);
    return rt_free(session);
}

void esi_session_open(struct esi_session *session)
{
    rt_assert(session->state == ESI_SESSION_OPENING && session->last_seq == 0);
    esi_retry_budget_init(&session->budget, now_us(session));
    session->run.seq = ++session->last_seq;
    session->main = esi_exchange_begin(now_us(session) + session->config.statement_timeout_us);
    send_main(session);
}

void esi_session_execute(struct esi_session *session, const struct esi_statement *statement)
{
    rt_assert(session->state == ESI_SESSION_OPEN);
    rt_assert(statement->kind != MODEL_STATEMENT_AWAIT);
    session->run = (struct run){.statement = *statement, .started_us = now_us(session)};
    session->main = esi_exchange_begin(RT_NEVER);
    session->state = ESI_SESSION_BUSY;
    if (!lose_if_expired(session))
        begin_execute(session, false);
}

void esi_session_close(struct esi_session *session)
{
    if (session->state == ESI_SESSION_CLOSING || session->state == ESI_SESSION_CLOSED)
        return;
    if (session->state == ESI_SESSION_OPENING) {
        become_closed(session);
        return;
    }
    if (session->state == ESI_SESSION_BUSY) {
        struct model_response failure;

        model_response_fail(&failure, MODEL_REASON_CANCELLED, "the statement was given up");
        finish_failed(session, &failure);
    }
    esi_exchange_give_up(&session->keep_alive);
    session->run.awaiting = false;
    session->state = ESI_SESSION_CLOSING;
    session->main = esi_exchange_begin(now_us(session) + CLOSE_TIMEOUT_US);
    send_main(session);
}

void esi_session_call_done(struct esi_session *session, struct model_call *call)
{
    uint64_t sent_us;
    struct esi_exchange *exchange = esi_post_take_back(call, &sent_us);

    if (exchange == &session->keep_alive)
        on_keep_alive_answer(session, call, sent_us);
    else if (exchange == &session->main)
        on_main_answer(session, call, sent_us);
    (void)model_call_free(call);
    (void)lose_if_expired(session);
}

void esi_session_tick(struct esi_session *session)
{
    expire_attempt(session, &session->keep_alive);
    expire_attempt(session, &session->main);
    if (lose_if_expired(session))
        return;
    if (session->keep_alive.send_at_us <= now_us(session))
        send_keep_alive(session);
    if (session->main.send_at_us <= now_us(session))
        send_main(session);
}

uint64_t esi_session_next_wakeup_us(const struct esi_session *session)
{
    uint64_t next = earlier(esi_exchange_wakeup_us(&session->main),
                            esi_exchange_wakeup_us(&session->keep_alive));

    return has_lease(session) ? earlier(next, session->fence_at_us) : next;
}

struct model_effects *esi_session_effects(struct esi_session *session)
{
    return &session->post.effects;
}

struct esi_result *esi_session_take_result(struct esi_session *session)
{
    struct rt_list *node = rt_list_pop_front(&session->results);

    return node ? RT_LIST_ENTRY(node, struct esi_result, link) : NULL;
}

struct esi_result *esi_result_free(struct esi_result *result)
{
    if (!result)
        return NULL;
    rt_arena_reset(&result->arena);
    return rt_free(result);
}

enum esi_session_state esi_session_state(const struct esi_session *session)
{
    return session->state;
}

const struct model_error *esi_session_failure(const struct esi_session *session)
{
    return session->failure_code == RT_OK ? NULL : &session->failure;
}

enum rt_code esi_session_failure_code(const struct esi_session *session)
{
    return session->failure_code;
}
