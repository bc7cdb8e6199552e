/*
 * ESIs under a planner: see service.h. Invariants: the planner has a line out for an ESI exactly
 * while `has_line`; `waits` says what the session does with a GET that was not granted at once; an
 * ESI is live until the note that its runner is done. The service's lock.
 */
#include "esi-client/service.h"

#include <stdio.h>

#include "esi-client/service_state.h"

/* ---- ESIs ------------------------------------------------------------------------------------ */

struct esi_job *esi_service_find(const struct esi_service *service, uint64_t id)
{
    struct esi_job *job = NULL;
    uint32_t narrow = (uint32_t)id;

    if (id == narrow)
        HASH_FIND(hh, service->jobs, &narrow, sizeof(narrow), job);
    return job;
}

static void free_job(struct esi_service *service, struct esi_job *job)
{
    HASH_DEL(service->jobs, job);
    (void)rt_free(job->message);
    (void)rt_free(job);
}

static struct esi_service_order *push_order(struct esi_service *service,
                                            enum esi_service_order_kind kind, uint32_t id)
{
    struct esi_service_order *order = rt_xalloc(sizeof(*order));

    order->kind = kind;
    order->id = id;
    rt_list_push_back(&service->orders, &order->link);
    return order;
}

void esi_service_push_key_order(struct esi_service *service, enum esi_service_order_kind kind,
                                uint32_t id, struct rt_bytes key)
{
    struct esi_service_order *order = push_order(service, kind, id);

    memcpy(order->key, key.data, key.size);
    order->key_size = key.size;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void grant(struct esi_service *service, struct esi_job *job)
{
    job->is_pending = false;
    job->waits = ESI_WAITS_NOT;
    job->runs = ESI_RUNS_LINE;
    (void)push_order(service, ESI_SERVICE_GRANT, job->id);
}

static void tell_planner(struct esi_service *service, struct esi_job *job,
                         const struct esi_line *line)
{
    if (!job->has_line)
        return;
    job->has_line = false;
    esi_planner_line_done(service->planner, job->id, line);
}

static void tell_blocked(struct esi_service *service, struct esi_job *job)
{
    const struct esi_line line = {.kind = ESI_LINE_BLOCKED,
                                  .key = rt_bytes_of(job->key, job->key_size)};

    job->is_pending = false;
    tell_planner(service, job, &line);
}

/* The planner ordered a line. */
static void run_line(struct esi_service *service, struct esi_job *job)
{
    uint32_t holder;

    job->has_line = true;
    if (job->runs == ESI_RUNS_LOCK) {
        job->is_pending = true;
        job->turn_until_us = RT_NEVER;
    } else if (job->waits == ESI_WAITS_LONGER &&
               esi_planner_holder(service->planner, rt_bytes_of(job->key, job->key_size),
                                  &holder)) {
        tell_blocked(service, job);
    } else if (job->waits == ESI_WAITS_LONGER) {
        job->is_pending = true;
        job->turn_until_us = rt_env_now_us(&service->env) + ESI_SERVICE_TURN_US;
    } else {
        grant(service, job);
    }
}

void esi_service_plan(struct esi_service *service)
{
    struct esi_order order;
    struct esi_event *event;

    while (service->has_begun && esi_planner_next(service->planner, &order)) {
        struct esi_job *job = esi_service_find(service, order.id);

        rt_assert(job);
        if (order.kind == ESI_ORDER_LINE)
            run_line(service, job);
        else
            (void)push_order(service, ESI_SERVICE_STOP, job->id);
    }
    while ((event = esi_planner_take_event(service->planner)))
        (void)rt_free(event);
}

/* ---- notes ----------------------------------------------------------------------------------- */

/* PUT gives its lock back when it has one. */
static enum esi_line_kind kind_of_put(const struct esi_service *service, const struct esi_job *job,
                                      const struct esi_result *result)
{
    uint32_t holder;

    return esi_planner_holder(service->planner, result->statement.key, &holder) && holder == job->id
               ? ESI_LINE_FREED
               : ESI_LINE_DONE;
}

static struct esi_line line_of(const struct esi_service *service, const struct esi_job *job,
                               const struct esi_result *result, bool is_last)
{
    struct esi_line line = {.key = result->statement.key, .is_last = is_last};

    if (result->outcome != ESI_OUTCOME_OK)
        return (struct esi_line){.kind = ESI_LINE_DONE, .is_last = true};
    line.kind = ESI_LINE_DONE;
    if (result->statement.target != ESI_TARGET_COORDINATOR)
        return line;
    switch (result->statement.kind) {
    case MODEL_STATEMENT_GET:
        line.kind = ESI_LINE_GOT;
        break;
    case MODEL_STATEMENT_STORE:
        line.kind = ESI_LINE_FREED;
        break;
    case MODEL_STATEMENT_PUT:
        line.kind = kind_of_put(service, job, result);
        break;
    case MODEL_STATEMENT_SET:
    case MODEL_STATEMENT_READ:
    case MODEL_STATEMENT_DELETE:
    case MODEL_STATEMENT_AWAIT:
        break;
    }
    return line;
}

static void note_waiting(struct esi_job *job, struct rt_bytes key)
{
    job->waits = ESI_WAITS_LONGER;
    job->runs = ESI_RUNS_NOT;
    memcpy(job->key, key.data, key.size);
    job->key_size = key.size;
}

/* A line of the script, or a GET that a person ordered and that waited. */
static void on_line_result(struct esi_service *service, struct esi_job *job,
                           const struct esi_result *result, bool is_last)
{
    struct esi_line line;

    if (result->outcome == ESI_OUTCOME_WAITING) {
        note_waiting(job, result->statement.key);
        tell_blocked(service, job);
        return;
    }
    job->runs = ESI_RUNS_NOT;
    job->n_ok += result->outcome == ESI_OUTCOME_OK && result->statement.line > 0;
    line = line_of(service, job, result, is_last);
    tell_planner(service, job, &line);
}

/* The GET of a person's order. */
static void on_lock_result(struct esi_service *service, struct esi_job *job,
                           const struct esi_result *result)
{
    bool is_pending = job->is_pending;

    if (result->outcome == ESI_OUTCOME_WAITING)
        note_waiting(job, result->statement.key);
    job->runs = ESI_RUNS_NOT;
    esi_service_answer_block(service, job, result);
    if (is_pending && job->waits == ESI_WAITS_LONGER)
        tell_blocked(service, job);
    else if (is_pending)
        grant(service, job);
}

static void on_result(struct esi_service *service, struct esi_job *job,
                      const struct esi_result *result, bool is_last)
{
    if (result->statement.line > 0)
        job->line = result->statement.line;
    if (job->runs == ESI_RUNS_LOCK)
        on_lock_result(service, job, result);
    else
        on_line_result(service, job, result, is_last);
}

static enum model_esi_end end_of(enum esi_script_state state)
{
    switch (state) {
    case ESI_SCRIPT_OK:
        return MODEL_ESI_END_OK;
    case ESI_SCRIPT_FAILED:
        return MODEL_ESI_END_FAILED;
    case ESI_SCRIPT_UNKNOWN:
        return MODEL_ESI_END_UNKNOWN;
    case ESI_SCRIPT_ABORTED:
        return MODEL_ESI_END_KILLED;
    case ESI_SCRIPT_SESSION_LOST:
    case ESI_SCRIPT_RUNNING:
        break;
    }
    return MODEL_ESI_END_SESSION_LOST;
}

/* Only so many that have ended stay known. */
static void forget_oldest(struct esi_service *service)
{
    struct esi_job *oldest;

    if (service->n_finished <= ESI_SERVICE_FINISHED_MAX)
        return;
    oldest = RT_LIST_ENTRY(rt_list_pop_front(&service->finished), struct esi_job, finished_link);
    service->n_finished--;
    esi_planner_forget(service->planner, oldest->id);
    free_job(service, oldest);
}

static void finish(struct esi_service *service, struct esi_job *job,
                   const struct esi_summary *summary)
{
    job->is_finished = true;
    job->end = end_of(summary->state);
    job->line = summary->line;
    if (summary->code != RT_OK) {
        job->reason = summary->error.reason;
        job->message = rt_xstrdup(summary->error.message);
    } else if (summary->lock_lost) {
        job->reason = MODEL_REASON_LOCK_FENCED;
        job->message = rt_xstrdup("stored, but its lock had been lost");
    }
    service->n_live--;
    service->text_size -= job->text_size;
    rt_list_push_back(&service->finished, &job->finished_link);
    service->n_finished++;
    esi_planner_ended(service->planner, job->id);
    esi_service_answer_end(service, job);
    forget_oldest(service);
}

void esi_service_take_note(struct esi_service *service, uint32_t id,
                           const struct esi_service_note *note)
{
    struct esi_job *job = esi_service_find(service, id);

    rt_assert(job && !job->is_finished);
    if (note->is_open && !job->is_open) {
        job->is_open = true;
        esi_planner_opened(service->planner, id);
    }
    rt_list_for_each (node, note->results)
        on_result(service, job, RT_LIST_ENTRY(node, struct esi_result, link), note->is_last);
    if (note->has_turn && job->waits == ESI_WAITS_LONGER) {
        job->waits = ESI_WAITS_TURN;
        if (job->is_pending)
            grant(service, job);
        else
            esi_planner_woken(service->planner, id);
    }
    if (note->summary)
        finish(service, job, note->summary);
    else
        esi_service_block_now(service, job);
    esi_service_plan(service);
}

/* ---- time ------------------------------------------------------------------------------------ */

void esi_service_tick(struct esi_service *service)
{
    uint64_t now_us = rt_env_now_us(&service->env);

    for (struct esi_job *job = service->jobs; job; job = job->hh.next)
        if (job->is_pending && job->turn_until_us <= now_us)
            tell_blocked(service, job);
    esi_service_plan(service);
}

uint64_t esi_service_next_wakeup_us(const struct esi_service *service)
{
    uint64_t next_us = RT_NEVER;

    for (const struct esi_job *job = service->jobs; job; job = job->hh.next)
        if (job->is_pending && job->turn_until_us < next_us)
            next_us = job->turn_until_us;
    return next_us;
}

/* ---- life ------------------------------------------------------------------------------------ */

void esi_service_begin(struct esi_service *service)
{
    service->has_begun = true;
    esi_service_plan(service);
}

void esi_service_drain(struct esi_service *service)
{
    service->is_draining = true;
    for (struct esi_job *job = service->jobs; job; job = job->hh.next)
        if (!job->is_finished)
            (void)push_order(service, ESI_SERVICE_STOP, job->id);
}

bool esi_service_is_drained(const struct esi_service *service)
{
    return service->is_draining && service->n_live == 0;
}

struct esi_job *esi_service_add(struct esi_service *service, uint32_t id, const char *name,
                                struct esi_script *script, size_t text_size)
{
    struct esi_job *job = rt_xalloc(sizeof(*job));
    struct esi_service_order *order = push_order(service, ESI_SERVICE_START, id);

    job->id = id;
    job->n_statements = script->n_executed;
    job->text_size = text_size;
    rt_list_init(&job->finished_link);
    (void)snprintf(job->name, sizeof(job->name), "%s", name);
    HASH_ADD(hh, service->jobs, id, sizeof(job->id), job);
    service->n_live++;
    service->text_size += text_size;
    order->script = script;
    (void)snprintf(order->name, sizeof(order->name), "%s", name);
    return job;
}

struct esi_service_order *esi_service_take_order(struct esi_service *service)
{
    struct rt_list *node = rt_list_pop_front(&service->orders);

    return node ? RT_LIST_ENTRY(node, struct esi_service_order, link) : NULL;
}

struct esi_service_order *esi_service_order_free(struct esi_service_order *order)
{
    if (!order)
        return NULL;
    order->script = esi_script_free(order->script);
    return rt_free(order);
}

size_t esi_service_n_live(const struct esi_service *service)
{
    return service->n_live;
}

struct model_effects *esi_service_effects(struct esi_service *service)
{
    return &service->effects;
}

struct esi_service *esi_service_new(const struct esi_service_config *config,
                                    const struct rt_env *env)
{
    struct esi_service *service = rt_xalloc(sizeof(*service));

    service->env = *env;
    service->policy = config->planner.policy;
    service->dialect = config->dialect;
    service->planner = esi_planner_new(&config->planner);
    esi_planner_pause(service->planner, config->is_paused);
    model_effects_init(&service->effects);
    rt_list_init(&service->orders);
    rt_list_init(&service->finished);
    rt_list_init(&service->calls);
    for (size_t i = 0; i < config->n_blocked; i++) {
        enum rt_code code = esi_planner_block_at_start(service->planner, config->blocked[i], NULL);

        rt_assert(code == RT_OK);
    }
    return service;
}

struct esi_service *esi_service_free(struct esi_service *service)
{
    struct esi_service_order *order;

    if (!service)
        return NULL;
    while ((order = esi_service_take_order(service)))
        (void)esi_service_order_free(order);
    while (service->jobs)
        free_job(service, service->jobs);
    service->planner = esi_planner_free(service->planner);
    return rt_free(service);
}
