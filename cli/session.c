/*
 * A session in the background: see session.h. The loop runs on a thread of its own; after each step
 * of the machine what came of it is copied under `lock`, which nests inside the host's, and which
 * is all that the user's thread looks at.
 */
#include "cli/session.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cli/condition.h"
#include "runtime/base/alloc.h"
#include "runtime/host/host.h"

struct cli_session {
    struct rpc_runtime *runtime;
    struct host *host;
    struct esi_session *machine; /* under the host's lock */
    pthread_t loop_thread;
    int news_fd;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct rt_list results; /* esi_result.link */
    enum esi_session_state state;
    bool is_over;                  /* CLOSED, and the coordinator said so */
    struct model_response failure; /* code RT_OK: none */
    struct model_open_session_response opened;
    int signum; /* not yet taken */
};

/* ---- the machine's side ---------------------------------------------------------------------- */

/* The id is in the answer, which the machine keeps to itself. */
static void core_call_done(void *core, struct model_call *call)
{
    struct cli_session *session = core;

    if (call->request.kind == MODEL_CALL_OPEN_SESSION && call->response.code == RT_OK) {
        (void)pthread_mutex_lock(&session->lock);
        session->opened = call->response.open_session;
        (void)pthread_mutex_unlock(&session->lock);
    }
    esi_session_call_done(session->machine, call);
}

static void core_tick(void *core)
{
    esi_session_tick(((struct cli_session *)core)->machine);
}

static uint64_t core_next_wakeup_us(const void *core)
{
    return esi_session_next_wakeup_us(((const struct cli_session *)core)->machine);
}

static struct model_effects *core_effects(void *core)
{
    return esi_session_effects(((struct cli_session *)core)->machine);
}

static const struct host_core_ops core_ops = {
    .call_done = core_call_done,
    .tick = core_tick,
    .next_wakeup_us = core_next_wakeup_us,
    .effects = core_effects,
};

static void step_open(void *core, void *argument)
{
    (void)argument;
    esi_session_open(((struct cli_session *)core)->machine);
}

static void step_close(void *core, void *argument)
{
    (void)argument;
    esi_session_close(((struct cli_session *)core)->machine);
}

struct start {
    const struct esi_statement *statement;
    bool is_started;
};

static void step_execute(void *core, void *argument)
{
    struct cli_session *session = core;
    struct start *start = argument;

    start->is_started = esi_session_state(session->machine) == ESI_SESSION_OPEN;
    if (start->is_started)
        esi_session_execute(session->machine, start->statement);
}

/* Under the lock. */
static void tell_news(struct cli_session *session)
{
    (void)eventfd_write(session->news_fd, 1);
    (void)pthread_cond_broadcast(&session->changed);
}

static void after_step(void *ctx)
{
    struct cli_session *session = ctx;
    const struct model_error *failure = esi_session_failure(session->machine);
    enum esi_session_state state = esi_session_state(session->machine);
    struct esi_result *result;

    (void)pthread_mutex_lock(&session->lock);
    while ((result = esi_session_take_result(session->machine)) != NULL)
        rt_list_push_back(&session->results, &result->link);
    if (state == ESI_SESSION_CLOSED && session->state != ESI_SESSION_CLOSED) {
        session->is_over = esi_session_is_over(session->machine);
        session->failure.code = esi_session_failure_code(session->machine);
        if (failure != NULL)
            session->failure.error = *failure;
        tell_news(session);
    }
    session->state = state;
    (void)pthread_cond_broadcast(&session->changed);
    (void)pthread_mutex_unlock(&session->lock);
}

static void on_signal(int signum, void *ctx)
{
    struct cli_session *session = ctx;

    (void)pthread_mutex_lock(&session->lock);
    session->signum = signum;
    tell_news(session);
    (void)pthread_mutex_unlock(&session->lock);
}

static void *run_loop(void *ctx)
{
    rpc_runtime_run(((struct cli_session *)ctx)->runtime);
    return NULL;
}

/* ---- the object ------------------------------------------------------------------------------ */

static struct esi_session *new_machine(const struct cli_context *context, const char *name,
                                       const struct rt_env *env)
{
    uint64_t client[2] = {rt_env_random(env), rt_env_random(env)};
    struct esi_session_config config = {.statement_timeout_us = context->common.timeout_ms * 1000};

    (void)snprintf(config.name, sizeof(config.name), "%s", name);
    (void)snprintf(config.coordinator_address, sizeof(config.coordinator_address), "%s",
                   context->common.coordinator);
    memcpy(config.client_id.bytes, client, sizeof(config.client_id.bytes));
    return esi_session_new(&config, env);
}

struct cli_session *cli_session_new(struct cli_context *context, const char *name)
{
    struct cli_session *session = rt_xalloc(sizeof(*session));
    struct host_options host = {
        .ops = &core_ops, .core = session, .after_step = after_step, .ctx = session};
    int result;

    (void)pthread_mutex_init(&session->lock, NULL);
    cli_condition_init(&session->changed);
    rt_list_init(&session->results);
    session->news_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    rt_assert(session->news_fd >= 0);
    session->runtime = rpc_runtime_new(NULL);
    session->machine = new_machine(context, name, rpc_runtime_env(session->runtime));
    host.runtime = session->runtime;
    session->host = host_new(&host);
    if (rpc_runtime_on_interrupt(session->runtime, on_signal, session, NULL) != RT_OK)
        rt_assert(!"these signals can be caught");
    host_step(session->host, step_open, NULL);
    result = pthread_create(&session->loop_thread, NULL, run_loop, session);
    rt_assert(result == 0);
    return session;
}

struct cli_session *cli_session_free(struct cli_session *session)
{
    struct rt_list *node;

    if (session == NULL)
        return NULL;
    cli_session_close(session);
    host_stop(session->host);
    rpc_runtime_stop(session->runtime);
    (void)pthread_join(session->loop_thread, NULL);
    session->host = host_free(session->host);
    session->machine = esi_session_free(session->machine);
    session->runtime = rpc_runtime_free(session->runtime);
    while ((node = rt_list_pop_front(&session->results)) != NULL)
        (void)esi_result_free(RT_LIST_ENTRY(node, struct esi_result, link));
    (void)close(session->news_fd);
    (void)pthread_cond_destroy(&session->changed);
    (void)pthread_mutex_destroy(&session->lock);
    return rt_free(session);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void wait_closed(struct cli_session *session)
{
    (void)pthread_mutex_lock(&session->lock);
    while (session->state != ESI_SESSION_CLOSED)
        (void)pthread_cond_wait(&session->changed, &session->lock);
    (void)pthread_mutex_unlock(&session->lock);
}

void cli_session_close(struct cli_session *session)
{
    host_step(session->host, step_close, NULL);
    wait_closed(session);
}

bool cli_session_wait_open(struct cli_session *session)
{
    bool is_open;

    (void)pthread_mutex_lock(&session->lock);
    while (session->state == ESI_SESSION_OPENING && session->signum == 0)
        (void)pthread_cond_wait(&session->changed, &session->lock);
    is_open = session->state == ESI_SESSION_OPEN;
    (void)pthread_mutex_unlock(&session->lock);
    return is_open;
}

void cli_session_wait(struct cli_session *session, uint64_t timeout_ms)
{
    struct timespec until = cli_condition_time_in(timeout_ms * 1000);
    int result = 0;

    (void)pthread_mutex_lock(&session->lock);
    while (session->state != ESI_SESSION_CLOSED && session->signum == 0 && result == 0) {
        if (timeout_ms == 0)
            (void)pthread_cond_wait(&session->changed, &session->lock);
        else
            result = pthread_cond_timedwait(&session->changed, &session->lock, &until);
    }
    (void)pthread_mutex_unlock(&session->lock);
}

/* The next event of the statement under way, or NULL: interrupted. */
static struct esi_result *next_result(struct cli_session *session)
{
    struct rt_list *node;

    (void)pthread_mutex_lock(&session->lock);
    while ((node = rt_list_pop_front(&session->results)) == NULL && session->signum == 0)
        (void)pthread_cond_wait(&session->changed, &session->lock);
    (void)pthread_mutex_unlock(&session->lock);
    return node == NULL ? NULL : RT_LIST_ENTRY(node, struct esi_result, link);
}

/* The last event of a statement that was given up is there once the session is closed. */
static struct esi_result *last_result(struct cli_session *session)
{
    struct esi_result *last = NULL;
    struct rt_list *node;

    cli_session_close(session);
    (void)pthread_mutex_lock(&session->lock);
    while ((node = rt_list_pop_front(&session->results)) != NULL) {
        (void)esi_result_free(last);
        last = RT_LIST_ENTRY(node, struct esi_result, link);
    }
    (void)pthread_mutex_unlock(&session->lock);
    return last;
}

struct esi_result *cli_session_execute(struct cli_session *session,
                                       const struct esi_statement *statement,
                                       void (*on_waiting)(const char *holder, void *ctx), void *ctx)
{
    struct start start = {.statement = statement};
    struct esi_result *result;

    host_step(session->host, step_execute, &start);
    if (!start.is_started)
        return NULL;
    while ((result = next_result(session)) != NULL && result->outcome == ESI_OUTCOME_WAITING) {
        on_waiting(result->response.holder, ctx);
        (void)esi_result_free(result);
    }
    return result == NULL ? last_result(session) : result;
}

/* ---- looking --------------------------------------------------------------------------------- */

enum cli_session_end cli_session_end(struct cli_session *session)
{
    enum cli_session_end end = CLI_SESSION_LIVES;

    (void)pthread_mutex_lock(&session->lock);
    if (session->state == ESI_SESSION_CLOSED)
        end = session->failure.code == RT_OK ? CLI_SESSION_CLOSED : CLI_SESSION_LOST;
    (void)pthread_mutex_unlock(&session->lock);
    return end;
}

bool cli_session_is_over(struct cli_session *session)
{
    bool is_over;

    (void)pthread_mutex_lock(&session->lock);
    is_over = session->is_over;
    (void)pthread_mutex_unlock(&session->lock);
    return is_over;
}

struct model_response cli_session_failure(struct cli_session *session)
{
    struct model_response failure;

    (void)pthread_mutex_lock(&session->lock);
    failure = session->failure;
    (void)pthread_mutex_unlock(&session->lock);
    return failure;
}

static struct model_open_session_response opened(struct cli_session *session)
{
    struct model_open_session_response copy;

    (void)pthread_mutex_lock(&session->lock);
    copy = session->opened;
    (void)pthread_mutex_unlock(&session->lock);
    return copy;
}

struct model_id cli_session_id(struct cli_session *session)
{
    return opened(session).session_id;
}

uint64_t cli_session_lease_ms(struct cli_session *session)
{
    return opened(session).lease_ms;
}

int cli_session_take_interrupt(struct cli_session *session)
{
    eventfd_t count;
    int signum;

    (void)pthread_mutex_lock(&session->lock);
    signum = session->signum;
    session->signum = 0;
    (void)eventfd_read(session->news_fd, &count);
    (void)pthread_mutex_unlock(&session->lock);
    return signum;
}

int cli_session_news_fd(const struct cli_session *session)
{
    return session->news_fd;
}
