/*
 * Operations of the direct client: see direct.h. They enter, go on, pause and are answered here;
 * the other files say what each kind does next. Invariant: every submitted operation is answered
 * exactly once, and its attempts all carry the same request_id. The core's lock.
 */
#include "esi-client/direct_state.h"

enum {
    /* Attempts end at multiples of it: those that begin together do, and can share a message. */
    DEADLINE_GRAIN_US = 64 * 1024
};

/* ---- ends ------------------------------------------------------------------------------------ */

static void reply(struct esi_direct *direct, struct model_call *call)
{
    rt_list_push_back(&direct->post.effects.replies, &call->link);
}

void esi_direct_answer(struct esi_direct *direct, struct esi_operation *operation)
{
    struct model_call *call = operation->call;

    esi_exchange_give_up(&operation->exchange);
    esi_direct_leave_fetch(direct, operation);
    rt_list_remove(&operation->link);
    rt_list_remove(&operation->id_link);
    direct->n_operations--;
    call->state = NULL;
    if (operation->is_cleanup) {
        direct->n_cleanups--;
        (void)model_call_free(call);
    } else {
        reply(direct, call);
    }
    (void)rt_free(operation);
}

void esi_direct_fail(struct esi_direct *direct, struct esi_operation *operation,
                     const struct model_response *failure)
{
    struct model_response *response = &operation->call->response;
    bool maybe;

    esi_exchange_give_up(&operation->exchange);
    maybe = operation->exchange.maybe && operation->call->request.kind != MODEL_CALL_READ;
    if (operation->is_releasing) {
        esi_direct_release_later(direct, operation);
    } else {
        response->code = failure->code;
        response->responder = failure->responder;
        response->error = failure->error;
        response->error.key = operation->key;
        response->error.applied = maybe ? MODEL_APPLIED_MAYBE : MODEL_APPLIED_NO;
    }
    if (maybe && operation->call->request.kind == MODEL_CALL_LOCK)
        esi_direct_abandon(direct, operation);
    esi_direct_answer(direct, operation);
}

static void fail_with(struct esi_direct *direct, struct esi_operation *operation,
                      enum model_reason reason)
{
    struct model_response failure;

    failure.responder = (struct model_responder){0};
    model_response_fail(&failure, reason, "%s", model_reason_meaning(reason));
    esi_direct_fail(direct, operation, &failure);
}

/* ---- attempts -------------------------------------------------------------------------------- */

void esi_direct_send(struct esi_direct *direct, struct esi_operation *operation,
                     const struct model_request *request)
{
    struct esi_exchange *exchange = &operation->exchange;
    uint64_t now_us = esi_direct_now_us(direct);
    uint64_t timeout_us = ESI_DIRECT_ATTEMPT_US - now_us % DEADLINE_GRAIN_US;
    struct rt_error err;

    if (esi_post_send(&direct->post, exchange, request, now_us, timeout_us, &err) != RT_OK)
        fail_with(direct, operation, MODEL_REASON_LIMIT_REACHED);
    else
        esi_direct_arm(direct, esi_exchange_wakeup_us(exchange));
}

/* What the core wants for itself goes on as long as its session; waiting in line is bounded by the
 * deadline alone. */
static bool may_retry(struct esi_direct *direct, const struct esi_operation *operation,
                      uint64_t at_us)
{
    const struct esi_exchange *exchange = &operation->exchange;

    if (operation->is_cleanup)
        return true;
    if (at_us >= exchange->deadline_us)
        return false;
    return operation->is_in_line ||
           (exchange->n_attempts < ESI_RETRY_ATTEMPTS_MAX &&
            esi_retry_budget_spend(&direct->budget, esi_direct_now_us(direct)));
}

bool esi_direct_pause(struct esi_direct *direct, struct esi_operation *operation,
                      const struct model_error *error, bool at_once)
{
    struct esi_exchange *exchange = &operation->exchange;
    uint64_t at_us = esi_direct_now_us(direct);

    if (!at_once)
        at_us += esi_retry_delay_us(exchange->n_attempts, error->retry_after_ms,
                                    rt_env_random(&direct->env));
    if (!may_retry(direct, operation, at_us))
        return false;
    if (!at_once) {
        exchange->send_at_us = at_us;
        esi_direct_arm(direct, at_us);
    }
    return true;
}

void esi_direct_go_on(struct esi_direct *direct, struct esi_operation *operation)
{
    enum model_call_kind kind = operation->call->request.kind;

    if (kind == MODEL_CALL_UNLOCK || operation->is_releasing)
        esi_direct_unlock_go_on(direct, operation);
    else if (kind == MODEL_CALL_LOCK)
        esi_direct_lock_go_on(direct, operation);
    else
        esi_direct_data_go_on(direct, operation);
}

/* ---- beginnings ------------------------------------------------------------------------------ */

static struct rt_bytes key_of(const struct model_request *request)
{
    if (request->kind == MODEL_CALL_LOCK)
        return request->lock.key;
    if (request->kind == MODEL_CALL_UNLOCK)
        return request->unlock.key;
    return request->data.header.key;
}

static enum model_reason check(const struct esi_direct *direct, const struct model_call *call)
{
    const struct model_request *request = &call->request;
    struct rt_bytes key = key_of(request);
    bool has_value = request->kind == MODEL_CALL_SET || request->kind == MODEL_CALL_PUT;

    if (direct->is_closing)
        return MODEL_REASON_CANCELLED;
    if (key.size == 0)
        return MODEL_REASON_KEY_EMPTY;
    if (key.size > MODEL_KEY_MAX)
        return MODEL_REASON_KEY_TOO_LONG;
    if (has_value && request->data.value.size > MODEL_VALUE_MAX)
        return MODEL_REASON_VALUE_TOO_LARGE;
    if (direct->n_operations >= ESI_DIRECT_OPERATIONS_MAX)
        return MODEL_REASON_LIMIT_REACHED;
    return MODEL_REASON_NONE;
}

static void give_id(struct esi_sequence *sequence, struct esi_operation *operation)
{
    operation->id = (struct model_request_id){sequence->client, ++sequence->last};
    rt_list_push_back(&sequence->unfinished, &operation->id_link);
}

struct esi_operation *esi_direct_begin(struct esi_direct *direct, struct model_call *call)
{
    struct esi_operation *operation = rt_xalloc(sizeof(*operation));
    enum model_call_kind kind = call->request.kind;

    operation->call = call;
    operation->key = key_of(&call->request);
    operation->exchange = esi_exchange_begin(direct->config.coordinator_address, call->deadline_us);
    rt_list_init(&operation->id_link);
    rt_list_init(&operation->fetch_link);
    rt_list_push_back(&direct->operations, &operation->link);
    direct->n_operations++;
    if (kind == MODEL_CALL_LOCK)
        give_id(&direct->session_ids, operation);
    else if (kind != MODEL_CALL_UNLOCK && kind != MODEL_CALL_READ)
        give_id(&direct->owner_ids, operation);
    if (kind != MODEL_CALL_LOCK && kind != MODEL_CALL_READ)
        operation->lock_token = esi_locks_find(&direct->locks, operation->key).token;
    call->state = operation;
    return operation;
}

void esi_direct_submit(struct esi_direct *direct, struct model_call *call)
{
    enum model_reason reason = check(direct, call);
    struct esi_operation *operation;

    call->response.responder = (struct model_responder){0};
    if (reason != MODEL_REASON_NONE) {
        model_response_fail(&call->response, reason, "%s", model_reason_meaning(reason));
        reply(direct, call);
        return;
    }
    operation = esi_direct_begin(direct, call);
    esi_retry_budget_earn(&direct->budget);
    esi_direct_arm(direct, call->deadline_us);
    esi_direct_go_on(direct, operation);
}

void esi_direct_cancel(struct esi_direct *direct, struct model_call *call)
{
    fail_with(direct, call->state, MODEL_REASON_CANCELLED);
}

/* ---- answers and time ------------------------------------------------------------------------ */

static void take_answer(struct esi_direct *direct, struct esi_operation *operation,
                        const struct model_response *response)
{
    enum model_call_kind kind = operation->call->request.kind;

    if (kind == MODEL_CALL_UNLOCK || operation->is_releasing)
        esi_direct_unlock_answer(direct, operation, response);
    else if (kind == MODEL_CALL_LOCK)
        esi_direct_lock_answer(direct, operation, response);
    else
        esi_direct_data_answer(direct, operation, response);
}

void esi_direct_call_done(struct esi_direct *direct, struct model_call *call)
{
    uint64_t sent_us;
    struct esi_exchange *exchange = esi_post_take_back(call, &sent_us);

    if (exchange && call->request.kind == MODEL_CALL_ROUTE)
        esi_direct_fetch_answer(direct, RT_CONTAINER_OF(exchange, struct esi_fetch, exchange),
                                &call->response);
    else if (exchange && !esi_lease_take(&direct->lease, exchange, call, sent_us))
        take_answer(direct, RT_CONTAINER_OF(exchange, struct esi_operation, exchange),
                    &call->response);
    (void)model_call_free(call);
    esi_direct_follow_lease(direct);
}

static void operation_tick(struct esi_direct *direct, struct esi_operation *operation)
{
    struct esi_exchange *exchange = &operation->exchange;
    uint64_t now_us = esi_direct_now_us(direct);
    struct model_response failure;

    if (now_us >= exchange->deadline_us) {
        fail_with(direct, operation, MODEL_REASON_DEADLINE_EXCEEDED);
    } else if (esi_exchange_expire(exchange, now_us, &failure)) {
        failure.responder = (struct model_responder){0};
        take_answer(direct, operation, &failure);
    } else if (exchange->send_at_us <= now_us) {
        exchange->send_at_us = RT_NEVER;
        if (!operation->fetch)
            esi_direct_go_on(direct, operation);
    }
}

/* Everything that is due from now on; what was due has been done. */
static void rearm(struct esi_direct *direct)
{
    rt_list_for_each (node, &direct->operations) {
        const struct esi_operation *operation = RT_LIST_ENTRY(node, struct esi_operation, link);

        esi_direct_arm(direct, operation->exchange.deadline_us);
        esi_direct_arm(direct, esi_exchange_wakeup_us(&operation->exchange));
    }
}

void esi_direct_tick(struct esi_direct *direct)
{
    esi_lease_tick(&direct->lease);
    esi_direct_follow_lease(direct);
    if (esi_direct_now_us(direct) < direct->next_us)
        return;
    direct->next_us = RT_NEVER;
    rt_list_for_each_safe (node, &direct->operations)
        operation_tick(direct, RT_LIST_ENTRY(node, struct esi_operation, link));
    esi_direct_fetch_tick(direct);
    rearm(direct);
}

uint64_t esi_direct_next_wakeup_us(const struct esi_direct *direct)
{
    uint64_t lease_us = esi_lease_wakeup_us(&direct->lease);

    return lease_us < direct->next_us ? lease_us : direct->next_us;
}

struct model_effects *esi_direct_effects(struct esi_direct *direct)
{
    return &direct->post.effects;
}

/* ---- the core -------------------------------------------------------------------------------- */

struct esi_direct *esi_direct_new(const struct esi_direct_config *config, const struct rt_env *env)
{
    struct esi_direct *direct = rt_xalloc(sizeof(*direct));

    direct->config = *config;
    direct->env = *env;
    esi_post_init(&direct->post);
    esi_routes_init(&direct->routes,
                    config->n_routes_max == 0 ? ESI_DIRECT_ROUTES_MAX : config->n_routes_max);
    esi_lease_init(&direct->lease, &direct->post, env, direct->config.name,
                   direct->config.coordinator_address);
    esi_retry_budget_init(&direct->budget, esi_direct_now_us(direct));
    direct->owner_ids.client = config->client_id;
    rt_list_init(&direct->owner_ids.unfinished);
    direct->session_ids.client = config->session_client_id;
    rt_list_init(&direct->session_ids.unfinished);
    rt_list_init(&direct->operations);
    rt_list_init(&direct->queued_fetches);
    direct->next_us = RT_NEVER;
    return direct;
}

struct esi_direct *esi_direct_free(struct esi_direct *direct)
{
    struct rt_list *node;

    if (!direct)
        return NULL;
    esi_direct_free_fetches(direct);
    while ((node = rt_list_pop_front(&direct->operations))) {
        struct esi_operation *operation = RT_LIST_ENTRY(node, struct esi_operation, link);

        if (operation->is_cleanup)
            (void)model_call_free(operation->call);
        (void)rt_free(operation);
    }
    esi_post_deinit(&direct->post);
    esi_locks_deinit(&direct->locks);
    esi_routes_deinit(&direct->routes);
    return rt_free(direct);
}

void esi_direct_close(struct esi_direct *direct)
{
    if (direct->is_closing)
        return;
    direct->is_closing = true;
    while (!rt_list_is_empty(&direct->operations))
        fail_with(direct, RT_LIST_ENTRY(direct->operations.next, struct esi_operation, link),
                  MODEL_REASON_CANCELLED);
    esi_lease_close(&direct->lease);
}

bool esi_direct_is_closed(const struct esi_direct *direct)
{
    return direct->is_closing && direct->lease.state == ESI_LEASE_ENDED;
}
