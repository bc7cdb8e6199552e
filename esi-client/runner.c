/*
 * Script runner: see runner.h. Invariant: a statement is begun only when the one before it has
 * succeeded, and none after the state has left RUNNING; `current` is under way while the session is
 * BUSY or `is_own`. The runner's lock.
 */
#include "esi-client/runner.h"

#include "esi-client/text.h"
#include "runtime/base/alloc.h"

enum {
    /* Of those that need nobody: then others get their turn, and the results are taken. */
    OWN_STATEMENTS_MAX = 64,
    EXPECT_QUOTE_MAX = 60, /* bytes of a value in the message of a mismatch */
};

struct esi_runner {
    const struct esi_script *script; /* borrowed */
    struct esi_session *session;     /* owned */
    struct rt_env env;
    struct rt_list results; /* esi_result.link: counted, not taken yet */
    struct esi_cursor cursor;
    struct esi_statement current; /* handed out last */
    bool is_own;                  /* it is a SLEEP or EXPECT that has not ended */
    uint64_t own_since_us;
    uint64_t own_until_us;
    struct rt_buffer answered; /* by the last GET or READ, where the script has an EXPECT */
    bool has_answered;         /* there was one, and its key had a value */
    bool is_planned;
    bool is_held;
    bool is_granted;           /* the next statement may begin */
    struct rt_buffer lock_key; /* of a GET that is not in the script */
    uint64_t started_us;
    bool done;
    struct esi_summary summary;
};

const char *esi_script_state_name(enum esi_script_state state)
{
    static const char *const names[] = {
        [ESI_SCRIPT_RUNNING] = "running", [ESI_SCRIPT_OK] = "ok",
        [ESI_SCRIPT_FAILED] = "failed",   [ESI_SCRIPT_UNKNOWN] = "unknown",
        [ESI_SCRIPT_ABORTED] = "aborted", [ESI_SCRIPT_SESSION_LOST] = "session_lost",
    };

    return (size_t)state < RT_ARRAY_SIZE(names) ? names[state] : "?";
}

/* The first reason to stop stays. */
static void end_script(struct esi_runner *runner, enum esi_script_state state)
{
    if (runner->summary.state == ESI_SCRIPT_RUNNING)
        runner->summary.state = state;
}

static void note_failure(struct esi_summary *summary, enum rt_code code,
                         const struct model_error *error)
{
    summary->code = code;
    summary->error = *error;
    summary->error.key = (struct rt_bytes){0};
}

/* ---- results --------------------------------------------------------------------------------- */

static void keep_answer(struct esi_runner *runner, const struct esi_result *result)
{
    const struct model_data_response *data = &result->response.data;
    struct rt_error err;

    if (!runner->script->has_expect || (result->statement.kind != MODEL_STATEMENT_GET &&
                                        result->statement.kind != MODEL_STATEMENT_READ))
        return;
    rt_buffer_reset(&runner->answered);
    rt_buffer_append(&runner->answered, data->value);
    runner->has_answered = data->has_value;
    if (rt_buffer_check(&runner->answered, &err) != RT_OK)
        runner->has_answered = false;
}

static void count_ok(struct esi_runner *runner, const struct esi_result *result)
{
    struct esi_summary *summary = &runner->summary;

    summary->n_ok++;
    if (result->statement.target != ESI_TARGET_COORDINATOR)
        return;
    keep_answer(runner, result);
    if (result->response.data.sets_lost)
        summary->n_sets_lost++;
    if (result->response.lock_lost) {
        summary->lock_lost = true;
        summary->line = result->statement.line;
        summary->round = result->statement.round;
        end_script(runner, ESI_SCRIPT_FAILED);
    }
}

static void count(struct esi_runner *runner, const struct esi_result *result)
{
    struct esi_summary *summary = &runner->summary;
    bool is_in_script = result->statement.line > 0;

    summary->n_attempts += result->attempts;
    if (!is_in_script && !esi_session_failure(runner->session))
        return;
    switch (result->outcome) {
    case ESI_OUTCOME_OK:
        count_ok(runner, result);
        return;
    case ESI_OUTCOME_WAITING:
        summary->n_waits++;
        return;
    case ESI_OUTCOME_FAILED:
    case ESI_OUTCOME_UNKNOWN:
        summary->line = result->statement.line;
        summary->round = result->statement.round;
        note_failure(summary, result->code, &result->error);
        if (esi_session_failure(runner->session))
            end_script(runner, ESI_SCRIPT_SESSION_LOST);
        else
            end_script(runner, result->outcome == ESI_OUTCOME_FAILED ? ESI_SCRIPT_FAILED
                                                                     : ESI_SCRIPT_UNKNOWN);
        return;
    }
}

/* The memory of a statement is the next one's, results live longer. Without memory for its own a
 * result shows the statement as the script has it, or no key where the script has none. */
static void keep_statement(struct esi_runner *runner, struct esi_result *result)
{
    struct esi_statement *statement = &result->statement;
    bool is_in_script = statement->line > 0;
    struct rt_bytes key, value;

    if (is_in_script && !esi_cursor_is_expanded(&runner->cursor))
        return;
    if (!rt_arena_copy(&result->arena, statement->key, &key) ||
        !rt_arena_copy(&result->arena, statement->value, &value)) {
        key = is_in_script ? esi_cursor_as_written(&runner->cursor)->key : (struct rt_bytes){0};
        value = is_in_script ? esi_cursor_as_written(&runner->cursor)->value : (struct rt_bytes){0};
    }
    statement->key = key;
    statement->value = value;
    if (result->code != RT_OK)
        result->error.key = key;
}

static void push(struct esi_runner *runner, struct esi_result *result)
{
    keep_statement(runner, result);
    count(runner, result);
    rt_list_push_back(&runner->results, &result->link);
}

static void collect(struct esi_runner *runner)
{
    struct esi_result *result;

    while ((result = esi_session_take_result(runner->session)) != NULL)
        push(runner, result);
}

/* ---- the runner's own statements ------------------------------------------------------------- */

/* `failure` is NULL when it succeeded. */
static void end_own(struct esi_runner *runner, const struct model_response *failure)
{
    struct esi_result *result = rt_xalloc(sizeof(*result));

    runner->is_own = false;
    result->statement = runner->current;
    result->outcome = failure ? ESI_OUTCOME_FAILED : ESI_OUTCOME_OK;
    result->latency_us = rt_env_now_us(&runner->env) - runner->own_since_us;
    if (failure) {
        result->code = failure->code;
        result->error = failure->error;
        result->error.key = runner->current.key;
    }
    push(runner, result);
}

static void mismatch(struct esi_runner *runner)
{
    struct rt_buffer text = {0};
    struct model_response failure;

    rt_buffer_append_string(&text, "expected ");
    esi_text_append_quoted(&text, runner->current.value, EXPECT_QUOTE_MAX);
    if (runner->has_answered) {
        rt_buffer_append_string(&text, ", the last GET or READ answered ");
        esi_text_append_quoted(&text, rt_buffer_bytes(&runner->answered), EXPECT_QUOTE_MAX);
    } else {
        rt_buffer_append_string(&text, ", but no GET or READ has answered a value");
    }
    model_response_fail(&failure, MODEL_REASON_EXPECTATION_FAILED, "%s", rt_buffer_string(&text));
    rt_buffer_deinit(&text);
    end_own(runner, &failure);
}

static void finish_own(struct esi_runner *runner)
{
    bool is_expect = runner->current.target == ESI_TARGET_EXPECT;

    if (is_expect && (!runner->has_answered ||
                      !rt_bytes_equal(runner->current.value, rt_buffer_bytes(&runner->answered))))
        mismatch(runner);
    else
        end_own(runner, NULL);
}

static void begin_own(struct esi_runner *runner)
{
    runner->is_own = true;
    runner->own_since_us = rt_env_now_us(&runner->env);
    runner->own_until_us = runner->own_since_us + runner->current.sleep_ms * 1000;
}

/* ---- order ----------------------------------------------------------------------------------- */

static void on_closed(struct esi_runner *runner)
{
    const struct model_error *failure = esi_session_failure(runner->session);

    if (failure && runner->is_own) {
        struct model_response response = {.code = esi_session_failure_code(runner->session),
                                          .error = *failure};

        end_own(runner, &response);
    }
    if (failure && runner->summary.state == ESI_SCRIPT_RUNNING)
        note_failure(&runner->summary, esi_session_failure_code(runner->session), failure);
    end_script(runner, ESI_SCRIPT_SESSION_LOST);
    runner->done = true;
    runner->summary.duration_us = rt_env_now_us(&runner->env) - runner->started_us;
}

static void begin_next(struct esi_runner *runner)
{
    struct rt_error err = RT_ERROR_INIT;
    struct model_response failure;

    if (esi_cursor_next(&runner->cursor, &runner->current, &err) != RT_OK) {
        model_response_fail(&failure, MODEL_REASON_LIMIT_REACHED, "the next statement: %s",
                            err.message);
        note_failure(&runner->summary, failure.code, &failure.error);
        end_script(runner, ESI_SCRIPT_FAILED);
    } else if (runner->current.target == ESI_TARGET_COORDINATOR) {
        esi_session_execute(runner->session, &runner->current);
    } else {
        begin_own(runner);
    }
}

/* Whether the next statement may begin. */
static bool takes_grant(struct esi_runner *runner)
{
    bool is_granted = runner->is_granted || !runner->is_planned;

    runner->is_granted = false;
    return is_granted;
}

/* The session is OPEN. Whether there is more to do at once. */
static bool step(struct esi_runner *runner, size_t *n_own)
{
    runner->summary.opened = true;
    if (runner->is_own) {
        if (*n_own == OWN_STATEMENTS_MAX || rt_env_now_us(&runner->env) < runner->own_until_us)
            return false;
        (*n_own)++;
        finish_own(runner);
        return true;
    }
    if (esi_cursor_is_done(&runner->cursor))
        end_script(runner, ESI_SCRIPT_OK);
    if (runner->summary.state == ESI_SCRIPT_RUNNING && (runner->is_held || !takes_grant(runner)))
        return false;
    if (runner->summary.state == ESI_SCRIPT_RUNNING)
        begin_next(runner);
    else
        esi_session_close(runner->session);
    return true;
}

/* After every step of the session: takes its results and does what comes next. */
static void advance(struct esi_runner *runner)
{
    size_t n_own = 0;

    collect(runner);
    while (!runner->done) {
        switch (esi_session_state(runner->session)) {
        case ESI_SESSION_OPENING:
        case ESI_SESSION_BUSY:
        case ESI_SESSION_CLOSING:
            return;
        case ESI_SESSION_OPEN:
            if (!step(runner, &n_own))
                return;
            break;
        case ESI_SESSION_CLOSED:
            on_closed(runner);
            break;
        }
        collect(runner);
    }
}

/* ---- public ---------------------------------------------------------------------------------- */

struct esi_runner *esi_runner_new(const struct esi_script *script,
                                  const struct esi_session_config *config, uint64_t seed,
                                  const struct rt_env *env)
{
    struct esi_runner *runner = rt_xalloc(sizeof(*runner));

    runner->script = script;
    runner->session = esi_session_new(config, env);
    runner->env = *env;
    rt_list_init(&runner->results);
    esi_cursor_init(&runner->cursor, script, seed);
    runner->summary.n_statements = script->n_executed;
    return runner;
}

struct esi_runner *esi_runner_free(struct esi_runner *runner)
{
    struct esi_result *result;

    if (!runner)
        return NULL;
    while ((result = esi_runner_take_result(runner)) != NULL)
        (void)esi_result_free(result);
    runner->session = esi_session_free(runner->session);
    esi_cursor_deinit(&runner->cursor);
    rt_buffer_deinit(&runner->answered);
    rt_buffer_deinit(&runner->lock_key);
    return rt_free(runner);
}

void esi_runner_start(struct esi_runner *runner)
{
    runner->started_us = rt_env_now_us(&runner->env);
    esi_session_open(runner->session);
    advance(runner);
}

void esi_runner_plan(struct esi_runner *runner)
{
    runner->is_planned = true;
}

bool esi_runner_has_turn(const struct esi_runner *runner)
{
    return esi_session_has_turn(runner->session);
}

void esi_runner_grant(struct esi_runner *runner)
{
    if (esi_runner_has_turn(runner))
        esi_session_go_on(runner->session);
    else
        runner->is_granted = true;
    advance(runner);
}

void esi_runner_lock(struct esi_runner *runner, struct rt_bytes key)
{
    struct esi_statement statement = {.kind = MODEL_STATEMENT_GET};

    if (esi_session_state(runner->session) != ESI_SESSION_OPEN || runner->is_own)
        return;
    rt_buffer_reset(&runner->lock_key);
    rt_buffer_append(&runner->lock_key, key);
    statement.key = rt_buffer_bytes(&runner->lock_key);
    esi_session_execute(runner->session, &statement);
    advance(runner);
}

void esi_runner_hold(struct esi_runner *runner, bool held)
{
    runner->is_held = held;
    if (!held)
        advance(runner);
}

void esi_runner_stop(struct esi_runner *runner)
{
    end_script(runner, ESI_SCRIPT_ABORTED);
    if (runner->is_own) {
        struct model_response failure;

        model_response_fail(&failure, MODEL_REASON_CANCELLED, "the statement was given up");
        end_own(runner, &failure);
    }
    esi_session_close(runner->session);
    advance(runner);
}

void esi_runner_call_done(struct esi_runner *runner, struct model_call *call)
{
    esi_session_call_done(runner->session, call);
    advance(runner);
}

void esi_runner_tick(struct esi_runner *runner)
{
    esi_session_tick(runner->session);
    advance(runner);
}

uint64_t esi_runner_next_wakeup_us(const struct esi_runner *runner)
{
    uint64_t session_us = esi_session_next_wakeup_us(runner->session);

    return runner->is_own && runner->own_until_us < session_us ? runner->own_until_us : session_us;
}

struct model_effects *esi_runner_effects(struct esi_runner *runner)
{
    return esi_session_effects(runner->session);
}

struct esi_result *esi_runner_take_result(struct esi_runner *runner)
{
    struct rt_list *node = rt_list_pop_front(&runner->results);

    return node ? RT_LIST_ENTRY(node, struct esi_result, link) : NULL;
}

bool esi_runner_is_quiet(const struct esi_runner *runner)
{
    return runner->done && esi_session_is_quiet(runner->session);
}

bool esi_runner_is_done(const struct esi_runner *runner)
{
    return runner->done;
}

const struct esi_summary *esi_runner_summary(const struct esi_runner *runner)
{
    return &runner->summary;
}
