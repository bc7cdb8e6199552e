/*
 * Runner: order, the rules that end a script, counts.
 */
#include "esi-client/runner.h"

#include "tests/support/check.h"
#include "tests/unit/esi/scripted_coordinator.h"

TestSuite(runner, .fini = test_alloc_expect_none);

struct fixture {
    struct scripted_coordinator scripted;
    struct esi_script_errors errors;
    struct esi_script *script;
    struct esi_runner *runner;
};

static struct model_effects *runner_effects(void *object)
{
    return esi_runner_effects(object);
}

static void runner_call_done(void *object, struct model_call *call)
{
    esi_runner_call_done(object, call);
}

static void runner_tick(void *object)
{
    esi_runner_tick(object);
}

static uint64_t runner_next_wakeup_us(void *object)
{
    return esi_runner_next_wakeup_us(object);
}

static void start(struct fixture *f, const char *text)
{
    struct esi_session_config config = {
        .name = "esi-1",
        .coordinator_address = "coordinator:7400",
        .client_id = {.bytes = {0xc1}},
        .statement_timeout_us = 8000000,
    };

    scripted_init(&f->scripted);
    cr_assert_eq(esi_script_parse("a.esi", rt_bytes_of_string(text), &f->script, &f->errors, NULL),
                 RT_OK);
    f->runner = esi_runner_new(f->script, &config, &f->scripted.fake.env);
    f->scripted.object = f->runner;
    f->scripted.effects = runner_effects;
    f->scripted.call_done = runner_call_done;
    f->scripted.tick = runner_tick;
    f->scripted.next_wakeup_us = runner_next_wakeup_us;
    esi_runner_start(f->runner);
}

static void finish(struct fixture *f)
{
    f->runner = esi_runner_free(f->runner);
    f->script = esi_script_free(f->script);
}

static void expect_result(struct fixture *f, uint32_t line, enum esi_outcome outcome)
{
    struct esi_result *result = esi_runner_take_result(f->runner);

    cr_assert_not_null(result, "no result for line %u", line);
    cr_assert_eq(result->statement.line, line);
    cr_assert_eq(result->outcome, outcome);
    (void)esi_result_free(result);
}

/* The script has ended so, and its session is closed. */
static const struct esi_summary *expect_end(struct fixture *f, enum esi_script_state state)
{
    const struct esi_summary *summary = esi_runner_summary(f->runner);

    if (!esi_runner_is_done(f->runner))
        scripted_ok(&f->scripted, scripted_take(&f->scripted, MODEL_CALL_CLOSE_SESSION));
    cr_assert(esi_runner_is_done(f->runner));
    cr_assert_str_eq(esi_script_state_name(summary->state), esi_script_state_name(state));
    cr_assert_null(esi_runner_take_result(f->runner));
    cr_assert_eq(scripted_n_calls(&f->scripted), 0);
    cr_assert_eq(esi_runner_next_wakeup_us(f->runner), RT_NEVER);
    return summary;
}

static struct model_call *take(struct fixture *f, enum model_statement_kind kind)
{
    return scripted_take_execute(&f->scripted, kind);
}

Test(runner, runs_statements_in_order_and_closes)
{
    struct fixture f;
    const struct esi_summary *summary;

    start(&f, "GET k\n# comment\nSET k v w\nSTORE k\n");
    cr_assert_eq(esi_runner_summary(f.runner)->state, ESI_SCRIPT_RUNNING);
    scripted_open(&f.scripted);
    scripted_done(&f.scripted, take(&f, MODEL_STATEMENT_GET), 7, 0);
    cr_assert_eq(scripted_n_calls(&f.scripted), 1);
    test_env_advance_us(&f.scripted.fake, 500);
    scripted_done(&f.scripted, take(&f, MODEL_STATEMENT_SET), 0, 1);
    scripted_done(&f.scripted, take(&f, MODEL_STATEMENT_STORE), 0, 2);
    cr_assert_not(esi_runner_is_done(f.runner));
    expect_result(&f, 1, ESI_OUTCOME_OK);
    expect_result(&f, 3, ESI_OUTCOME_OK);
    expect_result(&f, 4, ESI_OUTCOME_OK);
    summary = expect_end(&f, ESI_SCRIPT_OK);
    cr_assert_eq(summary->n_statements, 3);
    cr_assert_eq(summary->n_ok, 3);
    cr_assert_eq(summary->n_attempts, 3);
    cr_assert_eq(summary->line, 0);
    cr_assert_eq(summary->code, RT_OK);
    cr_assert_eq(summary->duration_us, 500);
    cr_assert(summary->opened);
    finish(&f);
}

Test(runner, a_script_without_statements_opens_and_closes)
{
    struct fixture f;

    start(&f, "# nothing\n");
    scripted_open(&f.scripted);
    (void)expect_end(&f, ESI_SCRIPT_OK);
    finish(&f);
}

Test(runner, a_failed_statement_ends_the_script)
{
    struct fixture f;
    const struct esi_summary *summary;

    start(&f, "GET k\nSET other v\nSTORE k\n");
    scripted_open(&f.scripted);
    scripted_done(&f.scripted, take(&f, MODEL_STATEMENT_GET), 7, 0);
    scripted_fail(&f.scripted, take(&f, MODEL_STATEMENT_SET), MODEL_REASON_KEY_NOT_IDENTIFIED);
    expect_result(&f, 1, ESI_OUTCOME_OK);
    expect_result(&f, 2, ESI_OUTCOME_FAILED);
    summary = expect_end(&f, ESI_SCRIPT_FAILED);
    cr_assert_eq(summary->n_ok, 1);
    cr_assert_eq(summary->line, 2);
    cr_assert_eq(summary->code, RT_NOT_FOUND);
    cr_assert_eq(summary->error.reason, MODEL_REASON_KEY_NOT_IDENTIFIED);
    cr_assert_eq(summary->error.key.size, 0);
    finish(&f);
}

Test(runner, an_unknown_statement_ends_the_script)
{
    struct fixture f;

    start(&f, "SET k v\nSET k w\n");
    scripted_open(&f.scripted);
    scripted_fail_plain(&f.scripted, take(&f, MODEL_STATEMENT_SET), RT_UNIMPLEMENTED);
    expect_result(&f, 1, ESI_OUTCOME_UNKNOWN);
    cr_assert_eq(expect_end(&f, ESI_SCRIPT_UNKNOWN)->line, 1);
    finish(&f);
}

Test(runner, waiting_is_reported_before_the_result)
{
    struct fixture f;
    struct model_call *call;

    start(&f, "GET k\n");
    scripted_open(&f.scripted);
    call = take(&f, MODEL_STATEMENT_GET);
    model_response_ok(&call->response, MODEL_CALL_EXECUTE);
    call->response.execute.outcome = MODEL_OUTCOME_WAITING;
    esi_runner_call_done(f.runner, call);
    expect_result(&f, 1, ESI_OUTCOME_WAITING);
    call = take(&f, MODEL_STATEMENT_AWAIT);
    model_response_ok(&call->response, MODEL_CALL_EXECUTE);
    call->response.execute.outcome = MODEL_OUTCOME_READY;
    esi_runner_call_done(f.runner, call);
    scripted_done(&f.scripted, take(&f, MODEL_STATEMENT_GET), 7, 0);
    expect_result(&f, 1, ESI_OUTCOME_OK);
    cr_assert_eq(expect_end(&f, ESI_SCRIPT_OK)->n_waits, 1);
    finish(&f);
}

Test(runner, lock_lost_is_durable_and_stops_the_script)
{
    struct fixture f;
    struct model_call *call;
    const struct esi_summary *summary;

    start(&f, "GET k\nSTORE k\nGET k\n");
    scripted_open(&f.scripted);
    scripted_done(&f.scripted, take(&f, MODEL_STATEMENT_GET), 7, 0);
    call = take(&f, MODEL_STATEMENT_STORE);
    model_response_ok(&call->response, MODEL_CALL_EXECUTE);
    call->response.execute.lock_lost = true;
    esi_runner_call_done(f.runner, call);
    expect_result(&f, 1, ESI_OUTCOME_OK);
    expect_result(&f, 2, ESI_OUTCOME_OK);
    summary = expect_end(&f, ESI_SCRIPT_FAILED);
    cr_assert(summary->lock_lost);
    cr_assert_eq(summary->line, 2);
    cr_assert_eq(summary->n_ok, 2);
    cr_assert_eq(summary->code, RT_OK);
    finish(&f);
}

Test(runner, sets_lost_is_counted_and_the_script_goes_on)
{
    struct fixture f;
    struct model_call *call;

    start(&f, "GET k\nSET k v\n");
    scripted_open(&f.scripted);
    call = take(&f, MODEL_STATEMENT_GET);
    model_response_ok(&call->response, MODEL_CALL_EXECUTE);
    call->response.execute.lock_token = 7;
    call->response.execute.data.sets_lost = true;
    esi_runner_call_done(f.runner, call);
    scripted_done(&f.scripted, take(&f, MODEL_STATEMENT_SET), 0, 1);
    expect_result(&f, 1, ESI_OUTCOME_OK);
    expect_result(&f, 2, ESI_OUTCOME_OK);
    cr_assert_eq(expect_end(&f, ESI_SCRIPT_OK)->n_sets_lost, 1);
    finish(&f);
}

Test(runner, the_scripts_own_lost_set_stops_it_at_the_store)
{
    struct fixture f;

    start(&f, "GET k\nSET k v\nSTORE k\nGET k\n");
    scripted_open(&f.scripted);
    scripted_done(&f.scripted, take(&f, MODEL_STATEMENT_GET), 7, 0);
    scripted_done(&f.scripted, take(&f, MODEL_STATEMENT_SET), 0, 1);
    scripted_fail(&f.scripted, take(&f, MODEL_STATEMENT_STORE), MODEL_REASON_SET_LOST);
    for (uint32_t line = 1; line <= 3; line++)
        expect_result(&f, line, line < 3 ? ESI_OUTCOME_OK : ESI_OUTCOME_FAILED);
    cr_assert_eq(expect_end(&f, ESI_SCRIPT_FAILED)->line, 3);
    finish(&f);
}

Test(runner, a_session_that_never_opens)
{
    struct fixture f;
    const struct esi_summary *summary;

    start(&f, "GET k\n");
    while (!esi_runner_is_done(f.runner))
        (void)scripted_wake(&f.scripted);
    while (scripted_n_calls(&f.scripted) > 0)
        scripted_fail_plain(&f.scripted, scripted_take(&f.scripted, MODEL_CALL_OPEN_SESSION),
                            RT_DEADLINE_EXCEEDED);
    summary = expect_end(&f, ESI_SCRIPT_SESSION_LOST);
    cr_assert_not(summary->opened);
    cr_assert_eq(summary->code, RT_DEADLINE_EXCEEDED);
    cr_assert_eq(summary->line, 0);
    cr_assert_eq(summary->duration_us, 8000000);
    finish(&f);
}

Test(runner, a_session_lost_between_and_during_statements)
{
    struct fixture f;
    const struct esi_summary *summary;

    start(&f, "GET k\nSET k v\n");
    scripted_open(&f.scripted);
    scripted_done(&f.scripted, take(&f, MODEL_STATEMENT_GET), 7, 0);
    scripted_fail(&f.scripted, take(&f, MODEL_STATEMENT_SET), MODEL_REASON_SESSION_UNKNOWN);
    expect_result(&f, 1, ESI_OUTCOME_OK);
    expect_result(&f, 2, ESI_OUTCOME_FAILED);
    summary = expect_end(&f, ESI_SCRIPT_SESSION_LOST);
    cr_assert(summary->opened);
    cr_assert_eq(summary->line, 2);
    cr_assert_eq(summary->error.reason, MODEL_REASON_SESSION_UNKNOWN);
    finish(&f);
}

Test(runner, stop_gives_up_the_statement_and_closes)
{
    struct fixture f;
    const struct esi_summary *summary;

    start(&f, "GET k\nSET k v\n");
    scripted_open(&f.scripted);
    scripted_done(&f.scripted, take(&f, MODEL_STATEMENT_GET), 7, 0);
    esi_runner_stop(f.runner);
    expect_result(&f, 1, ESI_OUTCOME_OK);
    expect_result(&f, 2, ESI_OUTCOME_UNKNOWN);
    scripted_done(&f.scripted, take(&f, MODEL_STATEMENT_SET), 0, 1);
    esi_runner_stop(f.runner);
    summary = expect_end(&f, ESI_SCRIPT_ABORTED);
    cr_assert_eq(summary->code, RT_CANCELLED);
    esi_runner_stop(f.runner);
    cr_assert_eq(summary->state, ESI_SCRIPT_ABORTED);
    finish(&f);
}

Test(runner, stop_while_opening)
{
    struct fixture f;

    start(&f, "GET k\n");
    esi_runner_stop(f.runner);
    cr_assert(esi_runner_is_done(f.runner));
    scripted_open(&f.scripted);
    (void)expect_end(&f, ESI_SCRIPT_ABORTED);
    finish(&f);
}

Test(runner, a_coordinator_that_is_gone_at_the_end_does_not_spoil_the_result)
{
    struct fixture f;

    start(&f, "GET k\n");
    scripted_open(&f.scripted);
    scripted_done(&f.scripted, take(&f, MODEL_STATEMENT_GET), 7, 0);
    expect_result(&f, 1, ESI_OUTCOME_OK);
    scripted_fail_plain(&f.scripted, scripted_take(&f.scripted, MODEL_CALL_CLOSE_SESSION),
                        RT_UNIMPLEMENTED);
    cr_assert_eq(expect_end(&f, ESI_SCRIPT_OK)->code, RT_OK);
    finish(&f);
}

Test(runner, free_in_the_middle_and_state_names)
{
    struct fixture f;

    start(&f, "GET k\nGET j\n");
    scripted_open(&f.scripted);
    scripted_done(&f.scripted, take(&f, MODEL_STATEMENT_GET), 7, 0);
    finish(&f);
    cr_assert_null(esi_runner_free(NULL));
    cr_assert_str_eq(esi_script_state_name(ESI_SCRIPT_RUNNING), "running");
    cr_assert_str_eq(esi_script_state_name((enum esi_script_state)99), "?");
}
