/*
 * Session fixture: see session_fixture.h. The test's thread.
 */
#include "tests/unit/esi/session_fixture.h"

#include <criterion/criterion.h>

static struct model_effects *session_effects(void *object)
{
    return esi_session_effects(object);
}

static void session_call_done(void *object, struct model_call *call)
{
    esi_session_call_done(object, call);
}

static void session_tick(void *object)
{
    esi_session_tick(object);
}

static uint64_t session_next_wakeup_us(void *object)
{
    return esi_session_next_wakeup_us(object);
}

void session_fixture_init(struct session_fixture *fixture)
{
    struct esi_session_config config = {
        .name = "esi-1",
        .coordinator_address = "coordinator:7400",
        .client_id = {.bytes = {0xc1}},
        .statement_timeout_us = SESSION_FIXTURE_TIMEOUT_US,
    };

    scripted_init(&fixture->scripted);
    fixture->session = esi_session_new(&config, &fixture->scripted.fake.env);
    fixture->scripted.object = fixture->session;
    fixture->scripted.effects = session_effects;
    fixture->scripted.call_done = session_call_done;
    fixture->scripted.tick = session_tick;
    fixture->scripted.next_wakeup_us = session_next_wakeup_us;
}

void session_fixture_open(struct session_fixture *fixture)
{
    session_fixture_init(fixture);
    esi_session_open(fixture->session);
    scripted_open(&fixture->scripted);
    cr_assert_eq(esi_session_state(fixture->session), ESI_SESSION_OPEN);
}

void session_fixture_deinit(struct session_fixture *fixture)
{
    fixture->session = esi_session_free(fixture->session);
}

void session_fixture_execute(struct session_fixture *fixture, enum model_statement_kind kind,
                             const char *key, const char *value)
{
    struct esi_statement statement = {
        .kind = kind,
        .key = rt_bytes_of_string(key),
        .value = rt_bytes_of_string(value),
        .line = 1,
    };

    esi_session_execute(fixture->session, &statement);
}

void session_fixture_run(struct session_fixture *fixture, enum model_statement_kind kind,
                         uint64_t lock_token, uint64_t seq)
{
    session_fixture_execute(fixture, kind, "k", kind == MODEL_STATEMENT_SET ? "v" : "");
    scripted_done(&fixture->scripted, scripted_take_execute(&fixture->scripted, kind), lock_token,
                  seq);
    session_fixture_expect(fixture, ESI_OUTCOME_OK);
}

void session_fixture_answer_waiting(struct session_fixture *fixture, struct model_call *call,
                                    const char *holder)
{
    model_response_ok(&call->response, MODEL_CALL_EXECUTE);
    call->response.execute.outcome = MODEL_OUTCOME_WAITING;
    (void)strncpy(call->response.execute.holder, holder, MODEL_NAME_MAX);
    esi_session_call_done(fixture->session, call);
}

void session_fixture_answer_ready(struct session_fixture *fixture, struct model_call *call)
{
    model_response_ok(&call->response, MODEL_CALL_EXECUTE);
    call->response.execute.outcome = MODEL_OUTCOME_READY;
    esi_session_call_done(fixture->session, call);
}

void session_fixture_expect(struct session_fixture *fixture, enum esi_outcome outcome)
{
    struct esi_result *result = esi_session_take_result(fixture->session);

    cr_assert_not_null(result, "there is no result");
    cr_assert_eq(result->outcome, outcome);
    (void)esi_result_free(result);
}

void session_fixture_expect_failure(struct session_fixture *fixture, enum esi_outcome outcome,
                                    enum model_reason reason)
{
    struct esi_result *result = esi_session_take_result(fixture->session);

    cr_assert_not_null(result, "there is no result");
    cr_assert_eq(result->outcome, outcome);
    cr_assert_neq(result->code, RT_OK);
    cr_assert_str_eq(model_reason_name(result->error.reason), model_reason_name(reason));
    cr_assert_eq(result->error.applied,
                 outcome == ESI_OUTCOME_FAILED ? MODEL_APPLIED_NO : MODEL_APPLIED_MAYBE);
    cr_assert(rt_bytes_equal(result->error.key, result->statement.key));
    (void)esi_result_free(result);
}
