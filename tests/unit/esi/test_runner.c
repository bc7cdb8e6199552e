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

static void start_as(struct fixture *f, const char *text, bool is_planned)
{
    struct esi_session_config config = {
        .holds_turn = is_planned,
        .name = "esi-1",
        .coordinator_address = "coordinator:7400",
        .client_id = {.bytes = {0xc1}},
        .statement_timeout_us = 8000000,
    };

    scripted_init(&f->scripted);
    cr_assert_eq(esi_script_parse("a.esi", rt_bytes_of_string(text), MODEL_DIALECT_EXTENDED,
                                  &f->script, &f->errors, NULL),
                 RT_OK);
    f->runner = esi_runner_new(f->script, &config, 1, &f->scripted.fake.env);
    f->scripted.object = f->runner;
    f->scripted.effects = runner_effects;
    f->scripted.call_done = runner_call_done;
    f->scripted.tick = runner_tick;
    f->scripted.next_wakeup_us = runner_next_wakeup_us;
    if (is_planned)
        esi_runner_plan(f->runner);
    esi_runner_start(f->runner);
}

static void start(struct fixture *f, const char *text)
{
    start_as(f, text, false);
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

/* ---- extensions ------------------------------------------------------------------------------ */

static void answer_value(struct fixture *f, enum model_statement_kind kind, const char *value)
{
    struct model_call *call = take(f, kind);

    model_response_ok(&call->response, MODEL_CALL_EXECUTE);
    call->response.execute.lock_token = kind == MODEL_STATEMENT_GET ? 7 : 0;
    call->response.execute.data.has_value = value != NULL;
    if (value)
        call->response.execute.data.value = rt_bytes_of_string(value);
    esi_runner_call_done(f->runner, call);
}

static struct esi_result *take_result(struct fixture *f)
{
    struct esi_result *result = esi_runner_take_result(f->runner);

    cr_assert_not_null(result);
    return result;
}

Test(runner, read_put_and_del)
{
    struct fixture f;

    start(&f, "READ k\nPUT k v\nDEL k\n");
    scripted_open(&f.scripted);
    answer_value(&f, MODEL_STATEMENT_READ, "old");
    scripted_done(&f.scripted, take(&f, MODEL_STATEMENT_PUT), 0, 1);
    scripted_done(&f.scripted, take(&f, MODEL_STATEMENT_DELETE), 0, 2);
    for (uint32_t line = 1; line <= 3; line++)
        expect_result(&f, line, ESI_OUTCOME_OK);
    (void)expect_end(&f, ESI_SCRIPT_OK);
    finish(&f);
}

Test(runner, rounds_are_counted_and_results_keep_what_they_executed)
{
    static const char *const keys[] = {"k1", "k2", "k3"};
    struct esi_result *results[RT_ARRAY_SIZE(keys)];
    struct fixture f;

    start(&f, "REPEAT 3\nGET k${i}\nEND\n");
    scripted_open(&f.scripted);
    for (size_t i = 0; i < RT_ARRAY_SIZE(keys); i++) {
        struct model_call *call = take(&f, MODEL_STATEMENT_GET);

        cr_assert(rt_bytes_equal(call->request.execute.key, rt_bytes_of_string(keys[i])));
        scripted_done(&f.scripted, call, 7 + i, 0);
    }
    for (size_t i = 0; i < RT_ARRAY_SIZE(keys); i++)
        results[i] = take_result(&f);
    cr_assert_eq(expect_end(&f, ESI_SCRIPT_OK)->n_ok, 3);
    cr_assert_eq(esi_runner_summary(f.runner)->n_statements, 3);
    for (size_t i = 0; i < RT_ARRAY_SIZE(keys); i++) {
        cr_assert_eq(results[i]->statement.line, 2);
        cr_assert_eq(results[i]->statement.round, i + 1);
        cr_assert(rt_bytes_equal(results[i]->statement.key, rt_bytes_of_string(keys[i])));
        (void)esi_result_free(results[i]);
    }
    finish(&f);
}

Test(runner, c44_an_expanded_key_that_is_too_long_fails_as_a_written_one)
{
    char text[64 + MODEL_KEY_MAX] = "REPEAT 10\nGET ";
    const struct esi_summary *summary;
    struct esi_result *result;
    struct fixture f;

    memset(text + strlen(text), 'k', MODEL_KEY_MAX - 1);
    (void)strcat(text, "${i}\nEND\n");
    start(&f, text);
    scripted_open(&f.scripted);
    for (uint32_t round = 1; round <= 10; round++) {
        struct model_call *call = take(&f, MODEL_STATEMENT_GET);

        cr_assert_eq(call->request.execute.key.size, MODEL_KEY_MAX + (round == 10));
        if (round < 10)
            scripted_done(&f.scripted, call, round, 0);
        else
            scripted_fail(&f.scripted, call, MODEL_REASON_KEY_TOO_LONG);
    }
    for (uint32_t round = 1; round < 10; round++)
        expect_result(&f, 2, ESI_OUTCOME_OK);
    result = take_result(&f);
    cr_assert_eq(result->error.key.size, MODEL_KEY_MAX + 1);
    summary = expect_end(&f, ESI_SCRIPT_FAILED);
    cr_assert_eq(summary->error.reason, MODEL_REASON_KEY_TOO_LONG);
    cr_assert_eq(summary->round, 10);
    (void)esi_result_free(result);
    finish(&f);
}

Test(runner, held_it_begins_nothing)
{
    struct fixture f;

    start(&f, "GET k\nSLEEP 0\nGET l\n");
    scripted_open(&f.scripted);
    esi_runner_hold(f.runner, true);
    scripted_done(&f.scripted, take(&f, MODEL_STATEMENT_GET), 7, 0);
    expect_result(&f, 1, ESI_OUTCOME_OK);
    scripted_pass(&f.scripted, 3 * SCRIPTED_LEASE_MS * UINT64_C(1000));
    cr_assert_eq(scripted_n_calls(&f.scripted), 0);
    cr_assert_null(esi_runner_take_result(f.runner));
    esi_runner_hold(f.runner, false);
    expect_result(&f, 2, ESI_OUTCOME_OK);
    scripted_done(&f.scripted, take(&f, MODEL_STATEMENT_GET), 8, 0);
    expect_result(&f, 3, ESI_OUTCOME_OK);
    (void)expect_end(&f, ESI_SCRIPT_OK);
    finish(&f);
}

Test(runner, held_it_can_be_stopped)
{
    struct fixture f;

    start(&f, "GET k\nGET l\n");
    scripted_open(&f.scripted);
    esi_runner_hold(f.runner, true);
    scripted_done(&f.scripted, take(&f, MODEL_STATEMENT_GET), 7, 0);
    esi_runner_stop(f.runner);
    expect_result(&f, 1, ESI_OUTCOME_OK);
    (void)expect_end(&f, ESI_SCRIPT_ABORTED);
    finish(&f);
}

Test(runner, a_lock_beside_the_script_has_a_result_of_its_own)
{
    static const char *const keys[] = {"first", "second"};
    struct esi_result *results[RT_ARRAY_SIZE(keys)];
    struct fixture f;

    start(&f, "GET k\nEXPECT of k\n");
    esi_runner_plan(f.runner);
    scripted_open(&f.scripted);
    esi_runner_grant(f.runner);
    answer_value(&f, MODEL_STATEMENT_GET, "of k");
    expect_result(&f, 1, ESI_OUTCOME_OK);
    for (size_t i = 0; i < RT_ARRAY_SIZE(keys); i++) {
        esi_runner_lock(f.runner, rt_bytes_of_string(keys[i]));
        answer_value(&f, MODEL_STATEMENT_GET, "of another");
        results[i] = take_result(&f);
    }
    for (size_t i = 0; i < RT_ARRAY_SIZE(keys); i++) {
        cr_assert_eq(results[i]->statement.line, 0);
        cr_assert(rt_bytes_equal(results[i]->statement.key, rt_bytes_of_string(keys[i])),
                  "the key of result %zu is the next one's", i);
        (void)esi_result_free(results[i]);
    }
    /* What it answers is no answer to the script. */
    esi_runner_grant(f.runner);
    expect_result(&f, 2, ESI_OUTCOME_OK);
    cr_assert_eq(expect_end(&f, ESI_SCRIPT_OK)->n_ok, 2);
    finish(&f);
}

Test(runner, without_memory_a_result_shows_what_is_written)
{
    struct esi_result *result;
    struct fixture f;

    start(&f, "REPEAT 1\nGET k${i}\nEND\n");
    scripted_open(&f.scripted);
    struct model_call *call = take(&f, MODEL_STATEMENT_GET);

    model_response_ok(&call->response, MODEL_CALL_EXECUTE);
    call->response.execute.lock_token = 7;
    call->arena.limit = 1;
    esi_runner_call_done(f.runner, call);
    result = take_result(&f);
    cr_assert(rt_bytes_equal(result->statement.key, RT_BYTES_LITERAL("k${i}")));
    (void)expect_end(&f, ESI_SCRIPT_OK);
    (void)esi_result_free(result);
    finish(&f);
}

Test(runner, sleep_takes_its_time_and_the_session_lives_on)
{
    struct fixture f;
    struct esi_result *result;

    start(&f, "SLEEP 20000\nGET k\n");
    scripted_open(&f.scripted);
    scripted_pass(&f.scripted, 19999999);
    cr_assert_null(esi_runner_take_result(f.runner));
    cr_assert_eq(scripted_n_calls(&f.scripted), 0);
    scripted_pass(&f.scripted, 1);
    result = take_result(&f);
    cr_assert_eq(result->outcome, ESI_OUTCOME_OK);
    cr_assert_eq(result->latency_us, 20000000);
    cr_assert_eq(result->attempts, 0);
    (void)esi_result_free(result);
    scripted_done(&f.scripted, take(&f, MODEL_STATEMENT_GET), 7, 0);
    expect_result(&f, 2, ESI_OUTCOME_OK);
    cr_assert_eq(expect_end(&f, ESI_SCRIPT_OK)->n_ok, 2);
    finish(&f);
}

Test(runner, sleep_zero_is_over_at_once)
{
    struct fixture f;

    start(&f, "SLEEP 0\n");
    scripted_open(&f.scripted);
    expect_result(&f, 1, ESI_OUTCOME_OK);
    (void)expect_end(&f, ESI_SCRIPT_OK);
    finish(&f);
}

Test(runner, stopped_in_a_sleep)
{
    struct fixture f;
    struct esi_result *result;
    const struct esi_summary *summary;

    start(&f, "SLEEP 5000\nGET k\n");
    scripted_open(&f.scripted);
    test_env_advance_us(&f.scripted.fake, 2000);
    esi_runner_stop(f.runner);
    result = take_result(&f);
    cr_assert_eq(result->outcome, ESI_OUTCOME_FAILED);
    cr_assert_eq(result->error.reason, MODEL_REASON_CANCELLED);
    cr_assert_eq(result->latency_us, 2000);
    (void)esi_result_free(result);
    summary = expect_end(&f, ESI_SCRIPT_ABORTED);
    cr_assert_eq(summary->line, 1);
    finish(&f);
}

Test(runner, session_lost_in_a_sleep)
{
    struct fixture f;
    const struct esi_summary *summary;

    start(&f, "SLEEP 60000\n");
    f.scripted.answer_keep_alives = false;
    scripted_open(&f.scripted);
    while (!esi_runner_is_done(f.runner))
        (void)scripted_wake(&f.scripted);
    expect_result(&f, 1, ESI_OUTCOME_FAILED);
    summary = esi_runner_summary(f.runner);
    cr_assert_eq(summary->state, ESI_SCRIPT_SESSION_LOST);
    cr_assert_eq(summary->line, 1);
    finish(&f);
}

Test(runner, expect_compares_with_the_last_get_or_read)
{
    struct fixture f;

    start(&f, "GET a\nEXPECT one\nREAD b\nEXPECT two words\nSET a x\nEXPECT two words\n");
    scripted_open(&f.scripted);
    answer_value(&f, MODEL_STATEMENT_GET, "one");
    answer_value(&f, MODEL_STATEMENT_READ, "two words");
    scripted_done(&f.scripted, take(&f, MODEL_STATEMENT_SET), 0, 1);
    for (uint32_t line = 1; line <= 6; line++)
        expect_result(&f, line, ESI_OUTCOME_OK);
    cr_assert_eq(expect_end(&f, ESI_SCRIPT_OK)->n_ok, 6);
    finish(&f);
}

/* A script that ends at this line because its EXPECT does not hold. */
static void expect_mismatch(struct fixture *f, uint32_t line, const char *message)
{
    const struct esi_summary *summary;

    expect_result(f, line, ESI_OUTCOME_FAILED);
    summary = expect_end(f, ESI_SCRIPT_FAILED);
    cr_assert_eq(summary->line, line);
    cr_assert_eq(summary->code, RT_FAILED_PRECONDITION);
    cr_assert_eq(summary->error.reason, MODEL_REASON_EXPECTATION_FAILED);
    cr_assert_str_eq(summary->error.message, message);
    finish(f);
}

Test(runner, a_mismatch_ends_the_script)
{
    struct fixture f;

    start(&f, "READ a\nEXPECT one\nSET a never\n");
    scripted_open(&f.scripted);
    answer_value(&f, MODEL_STATEMENT_READ, "on\x01");
    expect_result(&f, 1, ESI_OUTCOME_OK);
    expect_mismatch(&f, 2, "expected \"one\", the last GET or READ answered \"on\\x01\"");
}

Test(runner, nothing_matches_no_value)
{
    struct fixture f;

    start(&f, "EXPECT one\n");
    scripted_open(&f.scripted);
    expect_mismatch(&f, 1, "expected \"one\", but no GET or READ has answered a value");

    start(&f, "GET a\nGET b\nEXPECT one\n");
    scripted_open(&f.scripted);
    answer_value(&f, MODEL_STATEMENT_GET, "one");
    answer_value(&f, MODEL_STATEMENT_GET, NULL);
    expect_result(&f, 1, ESI_OUTCOME_OK);
    expect_result(&f, 2, ESI_OUTCOME_OK);
    expect_mismatch(&f, 3, "expected \"one\", but no GET or READ has answered a value");
}

Test(runner, many_statements_that_need_nobody_give_way)
{
    struct fixture f;
    size_t n_results = 0, most = 0;

    start(&f, "GET a\nREPEAT 1000\nEXPECT v\nEND\n");
    scripted_open(&f.scripted);
    answer_value(&f, MODEL_STATEMENT_GET, "v");
    for (;;) {
        struct esi_result *result;
        size_t n = 0;

        while ((result = esi_runner_take_result(f.runner)) != NULL) {
            (void)esi_result_free(result);
            n++;
        }
        n_results += n;
        most = n > most ? n : most;
        if (n_results == 1001)
            break;
        cr_assert_eq(scripted_wake(&f.scripted), 0);
    }
    cr_assert_leq(most, 65);
    (void)expect_end(&f, ESI_SCRIPT_OK);
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

/* ---- planned --------------------------------------------------------------------------------- */

static void answer(struct fixture *f, enum model_statement_kind kind, enum model_outcome outcome)
{
    struct model_call *call = take(f, kind);

    model_response_ok(&call->response, MODEL_CALL_EXECUTE);
    call->response.execute.outcome = outcome;
    esi_runner_call_done(f->runner, call);
}

Test(runner, a_planned_one_begins_a_statement_for_each_grant)
{
    struct fixture f;

    start_as(&f, "GET k\nSTORE k\n", true);
    esi_runner_grant(f.runner);
    scripted_open(&f.scripted);
    scripted_done(&f.scripted, take(&f, MODEL_STATEMENT_GET), 7, 0);
    expect_result(&f, 1, ESI_OUTCOME_OK);
    cr_assert_eq(scripted_n_calls(&f.scripted), 0, "a grant is for one statement");
    esi_runner_grant(f.runner);
    scripted_done(&f.scripted, take(&f, MODEL_STATEMENT_STORE), 0, 1);
    expect_result(&f, 2, ESI_OUTCOME_OK);
    (void)expect_end(&f, ESI_SCRIPT_OK);
    finish(&f);
}

Test(runner, a_planned_get_that_waited_runs_again_with_a_grant)
{
    struct fixture f;

    start_as(&f, "GET k\n", true);
    scripted_open(&f.scripted);
    esi_runner_grant(f.runner);
    answer(&f, MODEL_STATEMENT_GET, MODEL_OUTCOME_WAITING);
    expect_result(&f, 1, ESI_OUTCOME_WAITING);
    cr_assert_not(esi_runner_has_turn(f.runner));
    answer(&f, MODEL_STATEMENT_AWAIT, MODEL_OUTCOME_READY);
    cr_assert(esi_runner_has_turn(f.runner));
    cr_assert_eq(scripted_n_calls(&f.scripted), 0);
    esi_runner_grant(f.runner);
    cr_assert_not(esi_runner_has_turn(f.runner));
    answer(&f, MODEL_STATEMENT_GET, MODEL_OUTCOME_WAITING);
    expect_result(&f, 1, ESI_OUTCOME_WAITING);
    answer(&f, MODEL_STATEMENT_AWAIT, MODEL_OUTCOME_READY);
    esi_runner_grant(f.runner);
    scripted_done(&f.scripted, take(&f, MODEL_STATEMENT_GET), 7, 0);
    expect_result(&f, 1, ESI_OUTCOME_OK);
    cr_assert_eq(expect_end(&f, ESI_SCRIPT_OK)->n_waits, 2);
    finish(&f);
}

Test(runner, a_planned_one_that_has_its_turn_can_be_stopped)
{
    struct fixture f;

    start_as(&f, "GET k\n", true);
    scripted_open(&f.scripted);
    esi_runner_grant(f.runner);
    answer(&f, MODEL_STATEMENT_GET, MODEL_OUTCOME_WAITING);
    answer(&f, MODEL_STATEMENT_AWAIT, MODEL_OUTCOME_READY);
    esi_runner_stop(f.runner);
    cr_assert_not(esi_runner_has_turn(f.runner));
    expect_result(&f, 1, ESI_OUTCOME_WAITING);
    expect_result(&f, 1, ESI_OUTCOME_FAILED);
    (void)expect_end(&f, ESI_SCRIPT_ABORTED);
    cr_assert(esi_runner_is_quiet(f.runner));
    finish(&f);
}

Test(runner, a_planned_one_locks_a_key_that_is_not_in_the_script)
{
    struct fixture f;
    char key[] = "extra";

    start_as(&f, "GET k\n", true);
    esi_runner_lock(f.runner, rt_bytes_of_string(key));
    scripted_open(&f.scripted);
    cr_assert_eq(scripted_n_calls(&f.scripted), 0, "it had no session yet");
    esi_runner_lock(f.runner, rt_bytes_of_string(key));
    memset(key, 'x', sizeof(key));
    scripted_fail(&f.scripted, take(&f, MODEL_STATEMENT_GET), MODEL_REASON_KEY_INACCESSIBLE);
    expect_result(&f, 0, ESI_OUTCOME_FAILED);
    esi_runner_grant(f.runner);
    scripted_done(&f.scripted, take(&f, MODEL_STATEMENT_GET), 7, 0);
    expect_result(&f, 1, ESI_OUTCOME_OK);
    cr_assert_eq(expect_end(&f, ESI_SCRIPT_OK)->n_ok, 1);
    finish(&f);
}
