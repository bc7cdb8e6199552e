/*
 * Session machine: see session.h.
 *
 * The lease (lease.h) opens, renews and closes the session at the coordinator; `main` carries the
 * statements, one at a time. Invariant: an exchange has at most one live attempt, and waits for its
 * answer, for its retry time or for nothing; every attempt of one exchange carries the same
 * request_id; once the lease has ended the session is CLOSED. The session's lock.
 */
#include "esi-client/session.h"

#include "esi-client/lease.h"
#include "esi-client/locks.h"
#include "esi-client/retry.h"
#include "runtime/base/alloc.h"

enum {
    ATTEMPT_TIMEOUT_US = 5 * 1000 * 1000
};

struct run {
    struct esi_statement statement;
    bool awaiting;          /* the exchange is an AWAIT, not the statement itself */
    bool has_turn;          /* the AWAIT was answered, and the caller has not gone on */
    uint64_t seq;           /* of the exchange */
    uint64_t first_version; /* known when the exchange was first sent with a possible effect */
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
    struct esi_lease lease;
    uint64_t last_seq;
    uint64_t known_version; /* highest placement version heard of; at least 1 */
    struct esi_exchange main;
    struct run run; /* while BUSY */
};

static uint64_t now_us(const struct esi_session *session)
{
    return rt_env_now_us(&session->env);
}

const char *esi_statement_name(const struct esi_statement *statement)
{
    switch (statement->target) {
    case ESI_TARGET_COORDINATOR:
        return statement->kind == MODEL_STATEMENT_DELETE
                   ? "DEL"
                   : model_statement_kind_name(statement->kind);
    case ESI_TARGET_EXPECT:
        return "EXPECT";
    case ESI_TARGET_SLEEP:
        return "SLEEP";
    }
    return "?";
}

/* ---- requests -------------------------------------------------------------------------------- */

static void fill_execute(const struct esi_session *session, struct model_execute_request *execute)
{
    const struct esi_statement *statement = &session->run.statement;
    struct esi_lock_state lock = esi_locks_find(&session->locks, statement->key);

    *execute = (struct model_execute_request){
        .session_id = session->lease.id,
        .request_id = {session->config.client_id, session->run.seq},
        .done_below = session->run.seq,
        .first_version = session->main.maybe ? session->run.first_version : 0,
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

/* After every step of the lease. */
static void follow_lease(struct esi_session *session)
{
    struct model_response failure = {.code = session->lease.failure_code,
                                     .error = session->lease.failure};

    if (session->state == ESI_SESSION_OPENING && session->lease.state == ESI_LEASE_HELD)
        session->state = ESI_SESSION_OPEN;
    if (session->lease.state != ESI_LEASE_ENDED)
        return;
    if (session->state == ESI_SESSION_BUSY)
        finish_failed(session, &failure);
    session->state = ESI_SESSION_CLOSED;
}

static bool has_expired(struct esi_session *session)
{
    if (esi_lease_check(&session->lease))
        return false;
    follow_lease(session);
    return true;
}

/* ---- retries --------------------------------------------------------------------------------- */

/* Waiting for a lock is bounded by the lease alone. */
static bool may_retry(struct esi_session *session, uint64_t at_us)
{
    struct esi_exchange *exchange = &session->main;

    if (at_us >= exchange->deadline_us)
        return false;
    if (session->run.awaiting)
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

static void on_main_failure(struct esi_session *session, const struct model_response *failure)
{
    if (failure->error.applied != MODEL_APPLIED_NO)
        session->main.maybe = true;
    /* An AWAIT that was not answered in time is the normal course of a long wait. */
    if (session->run.awaiting && failure->code == RT_DEADLINE_EXCEEDED)
        session->main.n_attempts = 1;

    switch (esi_retry_reaction(failure->code, &failure->error)) {
    case ESI_REACTION_SESSION_LOST:
        esi_lease_lose(&session->lease, failure);
        follow_lease(session);
        break;
    case ESI_REACTION_RETRY:
        if (!schedule_retry(session, &failure->error))
            finish_failed(session, failure);
        break;
    case ESI_REACTION_FAIL:
        finish_failed(session, failure);
        break;
    }
}

static void send_main(struct esi_session *session)
{
    struct model_request request = {.kind = MODEL_CALL_EXECUTE};
    struct model_response failure;
    struct rt_error err;

    if (!session->main.maybe)
        session->run.first_version = session->known_version;
    fill_execute(session, &request.execute);
    if (esi_post_send(&session->post, &session->main, &request, now_us(session), ATTEMPT_TIMEOUT_US,
                      &err) == RT_OK)
        return;
    model_response_fail(&failure, MODEL_REASON_LIMIT_REACHED, "%s", err.message);
    on_main_failure(session, &failure);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void begin_execute(struct esi_session *session, bool awaiting)
{
    session->run.awaiting = awaiting;
    session->run.seq = ++session->last_seq;
    session->main = esi_exchange_begin(
        session->config.coordinator_address,
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
        if (response->outcome == MODEL_OUTCOME_READY && session->config.holds_turn)
            session->run.has_turn = true;
        else if (response->outcome == MODEL_OUTCOME_READY)
            begin_execute(session, false);
        else
            on_protocol_error(session);
    } else if (response->outcome == MODEL_OUTCOME_WAITING && is_get) {
        push_response(session, ESI_OUTCOME_WAITING, call);
        begin_execute(session, true);
    } else if (response->outcome != MODEL_OUTCOME_DONE) {
        on_protocol_error(session);
    } else if (is_get && now_us(session) >= session->lease.fence_at_us) {
        /* Too late to claim the lock. */
        session->main.maybe = true;
        (void)has_expired(session);
    } else {
        esi_locks_note(&session->locks, call->request.execute.kind, call->request.execute.key,
                       response->lock_token, &response->data.version);
        push_response(session, ESI_OUTCOME_OK, call);
        session->state = ESI_SESSION_OPEN;
    }
}

static void expire_attempt(struct esi_session *session)
{
    struct model_response failure;

    if (esi_exchange_expire(&session->main, now_us(session), &failure))
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
    session->known_version = 1;
    esi_post_init(&session->post);
    rt_list_init(&session->results);
    esi_lease_init(&session->lease, &session->post, env, session->config.name,
                   session->config.coordinator_address);
    session->main = esi_exchange_begin(session->config.coordinator_address, RT_NEVER);
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
    esi_lease_open(&session->lease,
                   &(struct model_request_id){session->config.client_id, ++session->last_seq},
                   session->config.statement_timeout_us);
}

void esi_session_execute(struct esi_session *session, const struct esi_statement *statement)
{
    rt_assert(session->state == ESI_SESSION_OPEN);
    rt_assert(statement->target == ESI_TARGET_COORDINATOR);
    rt_assert(statement->kind != MODEL_STATEMENT_AWAIT);
    session->run = (struct run){.statement = *statement, .started_us = now_us(session)};
    session->main = esi_exchange_begin(session->config.coordinator_address, RT_NEVER);
    session->state = ESI_SESSION_BUSY;
    if (!has_expired(session))
        begin_execute(session, false);
}

bool esi_session_has_turn(const struct esi_session *session)
{
    return session->state == ESI_SESSION_BUSY && session->run.has_turn;
}

void esi_session_go_on(struct esi_session *session)
{
    rt_assert(esi_session_has_turn(session));
    session->run.has_turn = false;
    if (!has_expired(session))
        begin_execute(session, false);
}

void esi_session_close(struct esi_session *session)
{
    if (session->state == ESI_SESSION_CLOSING || session->state == ESI_SESSION_CLOSED)
        return;
    if (session->state == ESI_SESSION_BUSY) {
        struct model_response failure;

        model_response_fail(&failure, MODEL_REASON_CANCELLED, "the statement was given up");
        finish_failed(session, &failure);
    }
    session->state = ESI_SESSION_CLOSING;
    esi_lease_close(&session->lease);
    follow_lease(session);
}

void esi_session_call_done(struct esi_session *session, struct model_call *call)
{
    uint64_t sent_us;
    struct esi_exchange *exchange = esi_post_take_back(call, &sent_us);

    if (call->response.responder.placement_version > session->known_version)
        session->known_version = call->response.responder.placement_version;
    (void)esi_lease_take(&session->lease, exchange, call, sent_us);
    if (exchange == &session->main && call->response.code != RT_OK)
        on_main_failure(session, &call->response);
    else if (exchange == &session->main)
        on_executed(session, call);
    (void)model_call_free(call);
    (void)esi_lease_check(&session->lease);
    follow_lease(session);
}

void esi_session_tick(struct esi_session *session)
{
    expire_attempt(session);
    esi_lease_tick(&session->lease);
    follow_lease(session);
    if (session->main.send_at_us <= now_us(session))
        send_main(session);
}

uint64_t esi_session_next_wakeup_us(const struct esi_session *session)
{
    uint64_t main_us = esi_exchange_wakeup_us(&session->main);
    uint64_t lease_us = esi_lease_wakeup_us(&session->lease);

    return main_us < lease_us ? main_us : lease_us;
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

bool esi_session_is_quiet(const struct esi_session *session)
{
    return rt_list_is_empty(&session->post.attempts);
}

const struct model_error *esi_session_failure(const struct esi_session *session)
{
    return session->lease.failure_code == RT_OK ? NULL : &session->lease.failure;
}

bool esi_session_is_over(const struct esi_session *session)
{
    return session->lease.is_over;
}

enum rt_code esi_session_failure_code(const struct esi_session *session)
{
    return session->lease.failure_code;
}
