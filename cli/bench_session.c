/*
 * The session of a routed load: opened before it, kept by a KeepAlive each third of its lease,
 * closed behind it. Its calls use a slot of their own, one at a time. Under the link's lock.
 */
#include "cli/bench_internal.h"

enum {
    AGAIN_US = 200 * 1000, /* after a KeepAlive that failed for now */
};

static void on_open_answer(struct cli_bench *bench, const struct model_response *response)
{
    struct cli_bench_session *session = &bench->session;
    struct model_response failure;
    struct rt_error err;

    if (response->code != RT_OK) {
        cli_bench_give_up(bench, response->code, &response->error);
        return;
    }
    session->id = response->open_session.session_id;
    session->is_open = true;
    if (model_lease_init(&session->lease, response->open_session.lease_ms, &err) != RT_OK) {
        model_response_fail(&failure, MODEL_REASON_NONE, "malformed answer of OpenSession: %s",
                            err.message);
        cli_bench_give_up(bench, failure.code, &failure.error);
        session->renew_us = RT_NEVER;
        return;
    }
    session->renew_us =
        cli_link_now_us(bench->link) + model_lease_renew_interval_us(&session->lease);
}

/* The lease may have another length by now; nonsense changes nothing. */
static void on_keep_alive_answer(struct cli_bench *bench, const struct model_response *response)
{
    struct cli_bench_session *session = &bench->session;
    uint64_t now_us = cli_link_now_us(bench->link);

    if (response->code != RT_OK) {
        if (response->error.reason == MODEL_REASON_SESSION_UNKNOWN)
            cli_bench_give_up(bench, response->code, &response->error);
        session->renew_us = now_us + AGAIN_US;
        return;
    }
    (void)!model_lease_init(&session->lease, response->keep_alive.lease_ms, NULL);
    session->renew_us = now_us + model_lease_renew_interval_us(&session->lease);
}

static void on_done(struct cli_link_slot *slot, struct model_call *call)
{
    struct cli_bench *bench = RT_CONTAINER_OF(slot, struct cli_bench, session.link);

    bench->session.is_busy = false;
    if (call->request.kind == MODEL_CALL_OPEN_SESSION)
        on_open_answer(bench, &call->response);
    else if (call->request.kind == MODEL_CALL_KEEP_ALIVE)
        on_keep_alive_answer(bench, &call->response);
    cli_link_wake(bench->link);
}

static void start(struct cli_bench *bench, enum model_call_kind kind)
{
    struct cli_bench_session *session = &bench->session;

    session->call.request.kind = kind;
    session->call.address = bench->options->coordinator;
    session->is_busy = true;
    cli_link_start(&session->link, &session->call);
}

/* A unary call ends by its timeout. A KeepAlive has a stream, which has none: it is waited for as
 * long. The user may not wait at all. */
static void await(struct cli_bench *bench, unsigned n_interrupts)
{
    uint64_t timeout_us = (uint64_t)bench->options->timeout_ms * 1000;
    uint64_t until_us = cli_link_now_us(bench->link) + timeout_us + CLI_BENCH_MARGIN_US;

    while (bench->session.is_busy && bench->n_interrupts < n_interrupts &&
           cli_link_now_us(bench->link) < until_us)
        cli_link_wait_until(bench->link, until_us);
}

void cli_bench_session_init(struct cli_bench *bench)
{
    model_call_init(&bench->session.call, MODEL_CALL_OPEN_SESSION);
    cli_link_slot_init(&bench->session.link, bench->link, 0, on_done);
}

void cli_bench_session_open(struct cli_bench *bench)
{
    struct model_open_session_request *request = &bench->session.call.request.open_session;

    *request = (struct model_open_session_request){.name = "redistinto-bench"};
    request->request_id.seq = 1;
    for (size_t i = 0; i < sizeof(request->request_id.client.bytes); i += sizeof(uint64_t)) {
        uint64_t random = rt_env_random(cli_link_env(bench->link));

        memcpy(request->request_id.client.bytes + i, &random, sizeof(random));
    }
    start(bench, MODEL_CALL_OPEN_SESSION);
    await(bench, 1);
}

void cli_bench_session_keep(struct cli_bench *bench)
{
    struct cli_bench_session *session = &bench->session;

    if (!session->is_open || session->is_busy || bench->now_us < session->renew_us)
        return;
    session->call.request.session.session_id = session->id;
    start(bench, MODEL_CALL_KEEP_ALIVE);
}

void cli_bench_session_close(struct cli_bench *bench)
{
    struct cli_bench_session *session = &bench->session;

    await(bench, 2);
    if (!session->is_open || session->is_busy)
        return;
    session->call.request.session.session_id = session->id;
    start(bench, MODEL_CALL_CLOSE_SESSION);
    await(bench, 2);
}
