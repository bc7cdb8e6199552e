/*
 * Calls of the ESI service: see service.h. Invariant: a call that is held is in service->calls or
 * is the `block` of one job. The service's lock.
 */
#include <stdio.h>

#include "esi-client/service_state.h"

static void answer(struct esi_service *service, struct model_call *call)
{
    call->response.responder = (struct model_responder){0};
    rt_list_push_back(&service->effects.replies, &call->link);
}

static void refuse(struct esi_service *service, struct model_call *call, enum model_reason reason,
                   const char *message)
{
    model_response_fail(&call->response, reason, "%s", message);
    answer(service, call);
}

/* NULL: it was refused. */
static struct esi_job *find_or_refuse(struct esi_service *service, struct model_call *call)
{
    uint64_t id = call->request.esi.id;
    struct esi_job *job = esi_service_find(service, id);

    if (job)
        return job;
    model_response_fail(&call->response, MODEL_REASON_ESI_UNKNOWN, "no ESI has the number %llu",
                        (unsigned long long)id);
    answer(service, call);
    return NULL;
}

/* ---- what an ESI is -------------------------------------------------------------------------- */

static enum model_esi_state state_of(const struct esi_plan *plan)
{
    if (plan->is_ending)
        return MODEL_ESI_ENDING;
    switch (plan->state) {
    case ESI_PLAN_NEW:
        return MODEL_ESI_NEW;
    case ESI_PLAN_READY:
        return MODEL_ESI_READY;
    case ESI_PLAN_RUNNING:
        return MODEL_ESI_RUNNING;
    case ESI_PLAN_BLOCKED:
        return MODEL_ESI_BLOCKED;
    case ESI_PLAN_FINISHED:
        break;
    }
    return MODEL_ESI_FINISHED;
}

static bool has_estimates(enum esi_policy policy)
{
    return policy == ESI_POLICY_SJF_SD || policy == ESI_POLICY_SJF_CD || policy == ESI_POLICY_HRRN;
}

/* False when the arena is full. */
static bool describe(const struct esi_service *service, const struct esi_job *job,
                     struct rt_arena *arena, struct model_esi_info *ret_esi)
{
    struct esi_plan plan = {.state = ESI_PLAN_FINISHED};
    struct rt_bytes message = rt_bytes_of_string(job->message ? job->message : "");

    (void)esi_planner_find(service->planner, job->id, &plan);
    *ret_esi = (struct model_esi_info){
        .id = job->id,
        .state = state_of(&plan),
        .end = job->end,
        .line = job->line,
        .n_statements = job->n_statements,
        .n_ok = job->n_ok,
        .reason = job->reason,
    };
    (void)snprintf(ret_esi->name, sizeof(ret_esi->name), "%s", job->name);
    if (has_estimates(service->policy) && !job->is_finished)
        ret_esi->estimate_milli = (uint64_t)(plan.estimate * 1000 + 0.5);
    if (message.size > MODEL_ESI_MESSAGE_MAX)
        message.size = MODEL_ESI_MESSAGE_MAX;
    return rt_arena_copy(arena, message, &ret_esi->message) &&
           (!plan.is_waiting || rt_arena_copy(arena, plan.key, &ret_esi->waits_for));
}

static void answer_job(struct esi_service *service, const struct esi_job *job,
                       struct model_call *call)
{
    model_response_ok(&call->response, call->request.kind);
    if (describe(service, job, &call->arena, &call->response.esi.esi))
        answer(service, call);
    else
        refuse(service, call, MODEL_REASON_LIMIT_REACHED, "no memory for the answer");
}

/* ---- SUBMIT ---------------------------------------------------------------------------------- */

static struct esi_job *find_request(const struct esi_service *service,
                                    const struct model_request_id *id)
{
    for (struct esi_job *job = service->jobs; job && id->seq > 0; job = job->hh.next)
        if (job->request_id.seq == id->seq && model_id_equal(&job->request_id.client, &id->client))
            return job;
    return NULL;
}

/* The first error of the script, as the message of the failure. */
static void refuse_script(struct esi_service *service, struct model_call *call,
                          const struct esi_script_errors *errors, const struct rt_error *err)
{
    const struct esi_script_error *first = &errors->items[0];

    if (errors->n_errors > 0)
        model_response_fail(&call->response, MODEL_REASON_INVALID_FIELD,
                            "script:%u:%zu: expected %s; %zu errors in all", (unsigned)first->line,
                            first->column, first->expected, errors->n_errors);
    else
        model_response_fail(&call->response, MODEL_REASON_LIMIT_REACHED, "%s", err->message);
    answer(service, call);
}

/* Whether there is room for it, and its number then. */
static enum rt_code admit(struct esi_service *service, const struct esi_script *script,
                          size_t text_size, uint32_t *ret_id, struct rt_error *err)
{
    if (script->n_statements == 0)
        return rt_fail(err, RT_INVALID_ARGUMENT, "the script has no statement");
    if (script->n_statements > ESI_SERVICE_STATEMENTS_MAX)
        return rt_fail(err, RT_RESOURCE_EXHAUSTED,
                       "the script has %zu statements, valid are 1 to %d", script->n_statements,
                       ESI_SERVICE_STATEMENTS_MAX);
    if (text_size > ESI_SERVICE_TEXT_MAX - service->text_size)
        return rt_fail(err, RT_RESOURCE_EXHAUSTED, "the scripts that run have %zu of %d bytes",
                       service->text_size, ESI_SERVICE_TEXT_MAX);
    return esi_planner_add(service->planner, ret_id, err);
}

static void take_script(struct esi_service *service, struct model_call *call,
                        struct esi_script *script)
{
    const struct model_esi_submit_request *submit = &call->request.esi_submit;
    struct rt_error err = RT_ERROR_INIT;
    struct esi_job *job;
    uint32_t id = 0;
    enum rt_code code = admit(service, script, submit->script.size, &id, &err);

    if (code != RT_OK) {
        (void)esi_script_free(script);
        refuse(service, call,
               code == RT_INVALID_ARGUMENT ? MODEL_REASON_INVALID_FIELD
                                           : MODEL_REASON_LIMIT_REACHED,
               err.message);
        return;
    }
    job = esi_service_add(service, id, submit->name, script, submit->script.size);
    job->request_id = submit->request_id;
    answer_job(service, job, call);
}

static void on_submit(struct esi_service *service, struct model_call *call)
{
    const struct model_esi_submit_request *submit = &call->request.esi_submit;
    const struct esi_job *known = find_request(service, &submit->request_id);
    struct esi_script_errors *errors;
    struct esi_script *script = NULL;
    struct rt_error err = RT_ERROR_INIT;

    if (known) {
        answer_job(service, known, call);
        return;
    }
    errors = rt_xalloc(sizeof(*errors));
    if (esi_script_parse(submit->name, submit->script, service->dialect, &script, errors, &err) ==
        RT_OK)
        take_script(service, call, script);
    else
        refuse_script(service, call, errors, &err);
    (void)rt_free(errors);
}

/* ---- STATUS, KILL ---------------------------------------------------------------------------- */

static void on_status(struct esi_service *service, struct model_call *call)
{
    struct esi_job *job = find_or_refuse(service, call);

    if (!job)
        return;
    if (call->request.esi.wait && !job->is_finished)
        rt_list_push_back(&service->calls, &call->link);
    else
        answer_job(service, job, call);
}

static void on_kill(struct esi_service *service, struct model_call *call)
{
    struct esi_job *job = find_or_refuse(service, call);
    struct esi_plan plan = {.is_ending = false};
    enum rt_code code = RT_OK;

    if (!job)
        return;
    (void)esi_planner_find(service->planner, job->id, &plan);
    if (job->is_finished) {
        refuse(service, call, MODEL_REASON_ESI_STATE, "the ESI has ended");
        return;
    }
    rt_list_push_back(&service->calls, &call->link);
    if (!plan.is_ending)
        code = esi_planner_kill(service->planner, job->id, NULL);
    rt_assert(code == RT_OK);
    /* A line that has not begun is none to wait for. */
    if (job->is_pending && job->runs == ESI_RUNS_NOT)
        job->turn_until_us = rt_env_now_us(&service->env);
}

void esi_service_answer_end(struct esi_service *service, struct esi_job *job)
{
    struct model_call *block = job->block;

    job->block = NULL;
    if (block)
        refuse(service, block, MODEL_REASON_ESI_STATE, "the ESI has ended");
    rt_list_for_each_safe (node, &service->calls) {
        struct model_call *call = RT_LIST_ENTRY(node, struct model_call, link);

        if (call->request.esi.id != job->id)
            continue;
        rt_list_remove(&call->link);
        answer_job(service, job, call);
    }
}

/* ---- LIST, DEADLOCK -------------------------------------------------------------------------- */

/* Those of these numbers, as many as there are. */
static void answer_list(struct esi_service *service, struct model_call *call, const uint32_t *ids,
                        size_t n_ids, bool more)
{
    struct model_esi_list_response *list = &call->response.esi_list;
    struct model_esi_info *esis =
        n_ids > 0 ? rt_arena_alloc(&call->arena, n_ids * sizeof(*esis)) : NULL;
    bool is_complete = n_ids == 0 || esis;

    model_response_ok(&call->response, call->request.kind);
    for (size_t i = 0; is_complete && i < n_ids; i++)
        is_complete = describe(service, esi_service_find(service, ids[i]), &call->arena, &esis[i]);
    if (!is_complete) {
        refuse(service, call, MODEL_REASON_LIMIT_REACHED, "no memory for the answer");
        return;
    }
    list->esis = esis;
    list->n_esis = n_ids;
    list->more = more;
    list->paused = esi_planner_is_paused(service->planner);
    (void)snprintf(list->planner, sizeof(list->planner), "%s", esi_policy_names[service->policy]);
    answer(service, call);
}

/* One page of those that wait for the key, in their order, behind `after`; from the first when that
 * one waits no more. Returns how many it has. */
static size_t page_of_waiters(const struct esi_service *service,
                              const struct model_esi_list_request *request, size_t max,
                              uint32_t *ret_ids, bool *ret_more)
{
    uint32_t ids[MODEL_PAGE_MAX];
    size_t n_ids = esi_planner_waiters(service->planner, request->waits_for, ids, MODEL_PAGE_MAX);
    size_t first = 0;
    size_t n;

    for (size_t i = 0; i < n_ids && first == 0; i++)
        if (ids[i] == request->after)
            first = i + 1;
    *ret_more = n_ids - first > max;
    n = *ret_more ? max : n_ids - first;
    memcpy(ret_ids, ids + first, n * sizeof(*ids));
    return n;
}

static void on_list(struct esi_service *service, struct model_call *call)
{
    const struct model_esi_list_request *request = &call->request.esi_list;
    size_t max = request->page_size > 0 ? request->page_size : MODEL_PAGE_MAX;
    uint32_t ids[MODEL_PAGE_MAX];
    size_t n = 0;
    bool more = false;

    if (request->waits_for.size > 0) {
        n = page_of_waiters(service, request, max, ids, &more);
    } else {
        for (const struct esi_job *job = service->jobs; job && !more; job = job->hh.next) {
            if (job->id <= request->after)
                continue;
            more = n == max;
            if (!more)
                ids[n++] = job->id;
        }
    }
    answer_list(service, call, ids, n, more);
}

static void on_deadlock(struct esi_service *service, struct model_call *call)
{
    uint32_t ids[MODEL_PAGE_MAX];
    size_t n = esi_planner_deadlock(service->planner, ids, MODEL_PAGE_MAX);

    answer_list(service, call, ids, n < MODEL_PAGE_MAX ? n : MODEL_PAGE_MAX, false);
}

_Static_assert((int)ESI_PLANNER_LIVE_MAX <= (int)MODEL_PAGE_MAX, "all that wait fit into one page");

/* ---- PAUSE, RESUME --------------------------------------------------------------------------- */

static void on_pause(struct esi_service *service, struct model_call *call)
{
    esi_planner_pause(service->planner, call->request.kind == MODEL_CALL_ESI_PAUSE);
    model_response_ok(&call->response, MODEL_CALL_ESI_PAUSE);
    answer(service, call);
}

/* ---- BLOCK, UNBLOCK -------------------------------------------------------------------------- */

/* An ESI that has no session yet, runs a line or asks for a lock is blocked after it. */
static bool is_between_lines(const struct esi_job *job)
{
    return job->is_open && !job->has_line && job->runs == ESI_RUNS_NOT;
}

static void refuse_block(struct esi_service *service, struct model_call *call,
                         const struct rt_error *err)
{
    refuse(service, call, MODEL_REASON_ESI_STATE, err->message);
}

void esi_service_block_now(struct esi_service *service, struct esi_job *job)
{
    struct model_call *call = job->block;
    struct rt_error err = RT_ERROR_INIT;
    enum esi_block effect = ESI_BLOCK_QUEUED;

    if (!call || !is_between_lines(job))
        return;
    job->block = NULL;
    if (job->waits != ESI_WAITS_NOT) {
        refuse(service, call, MODEL_REASON_ESI_STATE, "the ESI waits for a key already");
    } else if (esi_planner_block(service->planner, call->request.esi.key, job->id, &effect, &err) !=
               RT_OK) {
        refuse_block(service, call, &err);
    } else if (effect == ESI_BLOCK_ASSIGNED) {
        job->block = call;
        job->runs = ESI_RUNS_LOCK;
        esi_service_push_key_order(service, ESI_SERVICE_LOCK, job->id, call->request.esi.key);
    } else {
        answer_job(service, job, call);
    }
}

void esi_service_answer_block(struct esi_service *service, struct esi_job *job,
                              const struct esi_result *result)
{
    struct model_call *call = job->block;

    job->block = NULL;
    if (!call)
        return;
    if (result->code == RT_OK) {
        answer_job(service, job, call);
        return;
    }
    call->response.code = result->code;
    call->response.error = result->error;
    call->response.error.key = call->request.esi.key;
    answer(service, call);
}

static void on_block(struct esi_service *service, struct model_call *call)
{
    struct esi_job *job = find_or_refuse(service, call);
    struct esi_plan plan = {.is_waiting = false};

    if (!job)
        return;
    (void)esi_planner_find(service->planner, job->id, &plan);
    if (job->is_finished || plan.is_ending) {
        refuse(service, call, MODEL_REASON_ESI_STATE, "the ESI has ended, or is about to");
    } else if (plan.is_waiting || job->block) {
        refuse(service, call, MODEL_REASON_ESI_STATE, "the ESI waits for a key already");
    } else {
        job->block = call;
        esi_service_block_now(service, job);
    }
}

static void on_unblock(struct esi_service *service, struct model_call *call)
{
    struct rt_bytes key = call->request.esi.key;
    struct rt_error err = RT_ERROR_INIT;
    uint32_t id = 0;

    if (esi_planner_unblock(service->planner, key, &id, &err) != RT_OK) {
        refuse(service, call, MODEL_REASON_KEY_NOT_IDENTIFIED, err.message);
        return;
    }
    if (id == ESI_PLANNER_SYSTEM)
        esi_service_push_key_order(service, ESI_SERVICE_UNLOCK, 0, key);
    model_response_ok(&call->response, MODEL_CALL_ESI_UNBLOCK);
    call->response.esi_unblock.woken = id;
    call->response.esi_unblock.n_waiting = esi_planner_waiters(service->planner, key, NULL, 0);
    answer(service, call);
}

/* ---- any ------------------------------------------------------------------------------------- */

void esi_service_submit(struct esi_service *service, struct model_call *call)
{
    static void (*const steps[MODEL_N_CALL_KINDS])(struct esi_service * service,
                                                   struct model_call * call) = {
        [MODEL_CALL_ESI_SUBMIT] = on_submit,     [MODEL_CALL_ESI_STATUS] = on_status,
        [MODEL_CALL_ESI_LIST] = on_list,         [MODEL_CALL_ESI_KILL] = on_kill,
        [MODEL_CALL_ESI_PAUSE] = on_pause,       [MODEL_CALL_ESI_RESUME] = on_pause,
        [MODEL_CALL_ESI_BLOCK] = on_block,       [MODEL_CALL_ESI_UNBLOCK] = on_unblock,
        [MODEL_CALL_ESI_DEADLOCK] = on_deadlock,
    };
    size_t kind = (size_t)call->request.kind;

    if (kind >= MODEL_N_CALL_KINDS || !steps[kind]) {
        refuse(service, call, MODEL_REASON_INVALID_FIELD, "this service does not answer that");
        return;
    }
    if (service->is_draining && call->request.kind == MODEL_CALL_ESI_SUBMIT) {
        refuse(service, call, MODEL_REASON_DRAINING, "the service is shutting down");
        return;
    }
    steps[kind](service, call);
    esi_service_plan(service);
}

void esi_service_cancel(struct esi_service *service, struct model_call *call)
{
    struct esi_job *job = NULL;

    if (call->request.kind == MODEL_CALL_ESI_BLOCK)
        job = esi_service_find(service, call->request.esi.id);
    if (job && job->block == call)
        job->block = NULL;
    rt_list_remove(&call->link);
    refuse(service, call, MODEL_REASON_CANCELLED, "the caller went away");
}
