/*
 * One statement of a verb: see statement.h. Invariant: all attempts at one request carry the same
 * request_id, also those before and after a lock that it turned out to need. The client's thread.
 */
#include "cli/statement.h"

#include <stdio.h>

#include "cli/report.h"
#include "esi-client/retry.h"
#include "runtime/model/lease.h"

enum {
    ATTEMPT_MAX_MS = 10 * 1000 /* in a session whose lease is not known */
};

/* All of its attempts carry the same. */
struct request {
    uint64_t seq;
    uint64_t first_version; /* known when an attempt was sent first whose effect is possible */
    bool maybe;             /* an attempt may have had its effect */
};

struct run {
    struct cli_context *context;
    struct cli_client *client;
    const struct cli_statement *statement;
    struct model_id session_id;
    struct model_id client_id;
    struct request request; /* under way */
    uint64_t last_seq;
    uint64_t done_below;             /* lower than all of them */
    uint64_t known_version;          /* highest placement version heard of; at least 1 */
    uint64_t attempt_us;             /* of one attempt, which renews the lease */
    char holder[MODEL_NAME_MAX + 1]; /* the last one that was waited for */
};

/* ---- one request ----------------------------------------------------------------------------- */

static bool may_repeat(const struct run *run, const struct model_response *response,
                       uint32_t n_failed)
{
    uint64_t random = rt_env_random(cli_client_env(run->client));

    return esi_retry_reaction(response->code, &response->error) == ESI_REACTION_RETRY &&
           n_failed < ESI_RETRY_ATTEMPTS_MAX &&
           cli_client_pause(run->client,
                            esi_retry_delay_us(n_failed, response->error.retry_after_ms, random));
}

static void carry_out(struct run *run, struct model_call *call)
{
    uint64_t version;

    (void)!cli_client_call(run->client, call);
    version = call->response.responder.placement_version;
    if (version > run->known_version)
        run->known_version = version;
}

/* Each renews the session's lease, so none may take longer. */
static struct model_call *attempt(struct run *run, enum model_statement_kind kind)
{
    const struct cli_statement *statement = run->statement;
    uint64_t now_us = rt_env_now_us(cli_client_env(run->client));
    struct model_call *sent = model_call_new(MODEL_CALL_EXECUTE);
    struct model_execute_request *execute = &sent->request.execute;

    if (!run->request.maybe)
        run->request.first_version = run->known_version;
    sent->deadline_us = now_us + run->attempt_us;
    *execute = (struct model_execute_request){
        .session_id = run->session_id,
        .request_id = {run->client_id, run->request.seq},
        .done_below = run->done_below,
        .first_version = run->request.maybe ? run->request.first_version : 0,
        .kind = kind,
        .key = statement->key,
    };
    if (kind == statement->kind) {
        execute->value = statement->value;
        execute->has_last_set = statement->has_last_set;
        execute->last_set = statement->last_set;
        execute->has_if_version = statement->has_if_version;
        execute->if_version = statement->if_version;
    }
    carry_out(run, sent);
    return sent;
}

/* An attempt that took its share of the time is the normal course of a long wait. */
static bool goes_on(const struct run *run, const struct model_response *response,
                    uint32_t *n_failed)
{
    if (response->code == RT_DEADLINE_EXCEEDED)
        *n_failed = 0;
    return may_repeat(run, response, ++*n_failed);
}

/* With its retries. No token is sent: the coordinator knows what the session holds. */
static struct model_call *repeat(struct run *run, enum model_statement_kind kind)
{
    uint32_t n_failed = 0;
    struct model_call *sent;

    while ((sent = attempt(run, kind))->response.code != RT_OK) {
        run->request.maybe |= sent->response.error.applied != MODEL_APPLIED_NO;
        if (!goes_on(run, &sent->response, &n_failed))
            break;
        (void)model_call_free(sent);
    }
    if (sent->response.code != RT_OK && run->request.maybe)
        sent->response.error.applied = MODEL_APPLIED_MAYBE;
    return sent;
}

static struct model_call *request(struct run *run, enum model_statement_kind kind)
{
    run->request = (struct request){.seq = ++run->last_seq};
    return repeat(run, kind);
}

/* ---- locks ----------------------------------------------------------------------------------- */

static bool is_waiting(const struct model_response *response)
{
    return response->code == RT_OK && response->execute.outcome == MODEL_OUTCOME_WAITING;
}

static void tell_waiting(struct run *run, const char *holder)
{
    bool is_news = strcmp(run->holder, holder) != 0;

    memcpy(run->holder, holder, sizeof(run->holder));
    if (is_news && run->context->common.output == CLI_OUTPUT_TEXT) {
        (void)fprintf(run->context->err, "redistinto: %s: waiting for the lock that '%s' holds\n",
                      run->context->verb, holder);
        (void)fflush(run->context->err);
    }
}

/* Until it is the session's turn. NULL, or the call with the failure. */
static struct model_call *await_turn(struct run *run)
{
    uint32_t n_failed = 0;

    for (;;) {
        struct model_call *sent;

        run->request = (struct request){.seq = ++run->last_seq};
        sent = attempt(run, MODEL_STATEMENT_AWAIT);
        if (sent->response.code == RT_OK)
            return model_call_free(sent);
        if (!goes_on(run, &sent->response, &n_failed))
            return sent;
        (void)model_call_free(sent);
    }
}

static void refuse_to_wait(const struct run *run, struct model_response *response)
{
    model_response_fail(response, MODEL_REASON_KEY_NOT_LOCKED, "'%s' holds the key's lock",
                        run->holder);
}

/* GET, until the lock is the session's. */
static struct model_call *lock(struct run *run)
{
    for (;;) {
        struct model_call *call = request(run, MODEL_STATEMENT_GET);
        struct model_call *failed;

        if (!is_waiting(&call->response))
            return call;
        if (run->statement->must_not_wait) {
            memcpy(run->holder, call->response.execute.holder, sizeof(run->holder));
            refuse_to_wait(run, &call->response);
            return call;
        }
        tell_waiting(run, call->response.execute.holder);
        (void)model_call_free(call);
        failed = await_turn(run);
        if (failed == NULL)
            continue;
        if (failed->response.code == RT_DEADLINE_EXCEEDED)
            model_response_fail(&failed->response, MODEL_REASON_DEADLINE_EXCEEDED,
                                "'%s' still holds the key's lock", run->holder);
        return failed;
    }
}

/* ---- the statement --------------------------------------------------------------------------- */

static bool lacks_lock(const struct cli_statement *statement, const struct model_response *response)
{
    enum model_reason reason = response->code == RT_OK ? MODEL_REASON_NONE : response->error.reason;
    bool creates = statement->kind == MODEL_STATEMENT_SET || statement->kind == MODEL_STATEMENT_PUT;

    return reason == MODEL_REASON_KEY_NOT_LOCKED ||
           (creates && reason == MODEL_REASON_KEY_NOT_IDENTIFIED);
}

/* In a session of its own: with the lock if it must. An attempt before the one that was refused for
 * want of it may have had its effect, so the request stays the same. */
static struct model_call *write_alone(struct run *run)
{
    struct model_call *sent = request(run, run->statement->kind);
    struct request write = run->request;
    struct model_call *locked;

    if (!lacks_lock(run->statement, &sent->response))
        return sent;
    (void)model_call_free(sent);
    locked = lock(run);
    if (locked->response.code != RT_OK) {
        locked->response.error.applied = write.maybe ? MODEL_APPLIED_MAYBE : MODEL_APPLIED_NO;
        return locked;
    }
    (void)model_call_free(locked);
    run->request = write;
    return repeat(run, run->statement->kind);
}

/* READ asks first, since GET would create the key. */
static struct model_call *get_alone(struct run *run)
{
    struct model_call *call = request(run, MODEL_STATEMENT_READ);

    if (call->response.code != RT_OK)
        return call;
    (void)model_call_free(call);
    return lock(run);
}

static struct model_call *run_alone(struct run *run)
{
    switch (run->statement->kind) {
    case MODEL_STATEMENT_GET:
        return get_alone(run);
    case MODEL_STATEMENT_SET:
    case MODEL_STATEMENT_STORE:
    case MODEL_STATEMENT_PUT:
    case MODEL_STATEMENT_DELETE:
        return write_alone(run);
    case MODEL_STATEMENT_READ:
    case MODEL_STATEMENT_AWAIT:
        break;
    }
    return request(run, run->statement->kind);
}

static struct model_call *run_in_given(struct run *run)
{
    if (run->statement->kind == MODEL_STATEMENT_GET)
        return lock(run);
    return request(run, run->statement->kind);
}

/* ---- a session of its own -------------------------------------------------------------------- */

/* Fails the response when no lease is like that. */
static void take_session(struct run *run, struct model_response *response)
{
    struct model_lease lease;
    struct rt_error err;

    run->session_id = response->open_session.session_id;
    if (model_lease_init(&lease, response->open_session.lease_ms, &err) == RT_OK)
        run->attempt_us = model_lease_renew_interval_us(&lease);
    else
        model_response_fail(response, MODEL_REASON_NONE, "malformed answer of OpenSession: %s",
                            err.message);
}

static struct model_call *open_session(struct run *run)
{
    struct model_call *opening = model_call_new(MODEL_CALL_OPEN_SESSION);
    struct model_open_session_request *open = &opening->request.open_session;

    (void)snprintf(open->name, sizeof(open->name), "redistinto-%s", run->context->verb);
    open->request_id = (struct model_request_id){run->client_id, run->last_seq};
    carry_out(run, opening);
    if (opening->response.code == RT_OK)
        take_session(run, &opening->response);
    if (opening->response.code != RT_OK)
        opening->response.error.applied = MODEL_APPLIED_NO; /* the statement */
    return opening;
}

/* What becomes of it matters to nobody: an open session ends by itself. */
static void close_session(struct run *run)
{
    struct model_call *call = model_call_new(MODEL_CALL_CLOSE_SESSION);

    cli_client_wind_up(run->client);
    call->request.session.session_id = run->session_id;
    (void)!cli_client_call(run->client, call);
    (void)model_call_free(call);
}

/* Other commands use the same session with ids of their own, so the numbers begin anywhere. */
static struct run begin(struct cli_context *context, struct cli_client *client,
                        const struct cli_statement *statement)
{
    uint64_t first_seq = 1 + (rt_env_random(cli_client_env(client)) >> 2);

    return (struct run){
        .context = context,
        .client = client,
        .statement = statement,
        .client_id = cli_client_new_id(client),
        .last_seq = first_seq,
        .done_below = first_seq,
        .known_version = 1,
        .attempt_us = (uint64_t)ATTEMPT_MAX_MS * 1000,
    };
}

struct model_call *cli_statement_run(struct cli_context *context, struct cli_client *client,
                                     const struct cli_statement *statement)
{
    struct run run = begin(context, client, statement);
    struct model_call *call;

    if (statement->session_id != NULL) {
        run.session_id = *statement->session_id;
        return run_in_given(&run);
    }
    call = open_session(&run);
    if (call->response.code == RT_OK) {
        (void)model_call_free(call);
        call = run_alone(&run);
    }
    if (!model_id_is_none(&run.session_id))
        close_session(&run);
    return call;
}

enum model_exit cli_statement_report(const struct cli_client *client,
                                     const struct cli_statement *statement,
                                     const struct model_response *response)
{
    if (statement->kind == MODEL_STATEMENT_GET || statement->kind == MODEL_STATEMENT_READ)
        return cli_client_report(client, response);
    return cli_client_report_change(client, response);
}
