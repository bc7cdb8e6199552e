/*
 * Script runner: see runner.h. Invariant: a statement is begun only when the one before it has
 * succeeded, and none after the state has left RUNNING. The runner's lock.
 */
#include "esi-client/runner.h"

#include "runtime/base/alloc.h"

struct esi_runner {
    const struct esi_script *script; /* borrowed */
    struct esi_session *session;     /* owned */
    struct rt_env env;
    struct rt_list results; /* esi_result.link: counted, not taken yet */
    size_t next;            /* statement */
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

static void count_ok(struct esi_runner *runner, const struct esi_result *result)
{
    struct esi_summary *summary = &runner->summary;

    summary->n_ok++;
    if (result->response.data.sets_lost)
        summary->n_sets_lost++;
    if (result->response.lock_lost) {
        summary->lock_lost = true;
        summary->line = result->statement.line;
        end_script(runner, ESI_SCRIPT_FAILED);
    }
}

static void count(struct esi_runner *runner, const struct esi_result *result)
{
    struct esi_summary *summary = &runner->summary;

    summary->n_attempts += result->attempts;
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
        note_failure(summary, result->code, &result->error);
        if (esi_session_failure(runner->session))
            end_script(runner, ESI_SCRIPT_SESSION_LOST);
        else
            end_script(runner, result->outcome == ESI_OUTCOME_FAILED ? ESI_SCRIPT_FAILED
                                                                     : ESI_SCRIPT_UNKNOWN);
        return;
    }
}

static void collect(struct esi_runner *runner)
{
    struct esi_result *result;

    while ((result = esi_session_take_result(runner->session)) != NULL) {
        count(runner, result);
        rt_list_push_back(&runner->results, &result->link);
    }
}

static void on_closed(struct esi_runner *runner)
{
    const struct model_error *failure = esi_session_failure(runner->session);

    if (failure && runner->summary.state == ESI_SCRIPT_RUNNING)
        note_failure(&runner->summary, esi_session_failure_code(runner->session), failure);
    end_script(runner, ESI_SCRIPT_SESSION_LOST);
    runner->done = true;
    runner->summary.duration_us = rt_env_now_us(&runner->env) - runner->started_us;
}

/* After every step of the session: takes its results and does what comes next. */
static void advance(struct esi_runner *runner)
{
    collect(runner);
    while (!runner->done) {
        switch (esi_session_state(runner->session)) {
        case ESI_SESSION_OPENING:
        case ESI_SESSION_BUSY:
        case ESI_SESSION_CLOSING:
            return;
        case ESI_SESSION_OPEN:
            runner->summary.opened = true;
            if (runner->next == runner->script->n_statements)
                end_script(runner, ESI_SCRIPT_OK);
            if (runner->summary.state == ESI_SCRIPT_RUNNING)
                esi_session_execute(runner->session, &runner->script->statements[runner->next++]);
            else
                esi_session_close(runner->session);
            break;
        case ESI_SESSION_CLOSED:
            on_closed(runner);
            break;
        }
        collect(runner);
    }
}

struct esi_runner *esi_runner_new(const struct esi_script *script,
                                  const struct esi_session_config *config, const struct rt_env *env)
{
    struct esi_runner *runner = rt_xalloc(sizeof(*runner));

    runner->script = script;
    runner->session = esi_session_new(config, env);
    runner->env = *env;
    rt_list_init(&runner->results);
    runner->summary.n_statements = script->n_statements;
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
    return rt_free(runner);
}

void esi_runner_start(struct esi_runner *runner)
{
    runner->started_us = rt_env_now_us(&runner->env);
    esi_session_open(runner->session);
    advance(runner);
}

void esi_runner_stop(struct esi_runner *runner)
{
    end_script(runner, ESI_SCRIPT_ABORTED);
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
    return esi_session_next_wakeup_us(runner->session);
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

bool esi_runner_is_done(const struct esi_runner *runner)
{
    return runner->done;
}

const struct esi_summary *esi_runner_summary(const struct esi_runner *runner)
{
    return &runner->summary;
}
