/*
 * Where does a key live: see direct_state.h. Operations that need the route of one key wait for one
 * request to the coordinator. A route serves all of them, whoever it is for: its owner checks it.
 * Another answer may be older than an operation that came later, so that one asks again. Invariant:
 * a fetch has a waiter, and a live attempt, a pause, or a place in the queue, where none is while
 * fewer than ESI_DIRECT_FETCHES_MAX are outside. The core's lock.
 */
#include "esi-client/direct_state.h"

/* NOLINTNEXTLINE(readability-function-size): the macros of uthash nest */
static struct esi_fetch *find(const struct esi_direct *direct, struct rt_bytes key)
{
    struct esi_fetch *fetch;

    HASH_FIND(hh, direct->fetches, key.data, key.size, fetch);
    return fetch;
}

/* NOLINTNEXTLINE(readability-function-size): the macros of uthash nest */
static struct esi_fetch *add(struct esi_direct *direct, struct rt_bytes key)
{
    struct esi_fetch *fetch = rt_xalloc(sizeof(*fetch));

    fetch->key = rt_bytes_of(rt_xmemdup(key.data, key.size), key.size);
    fetch->exchange = esi_exchange_begin(direct->config.coordinator_address, 0);
    rt_list_init(&fetch->waiters);
    rt_list_init(&fetch->queue_link);
    HASH_ADD_KEYPTR(hh, direct->fetches, fetch->key.data, fetch->key.size, fetch);
    return fetch;
}

/* Those that write a value, for which a key is placed. */
static bool places(enum model_statement_kind statement)
{
    return statement == MODEL_STATEMENT_SET || statement == MODEL_STATEMENT_PUT;
}

static struct esi_operation *waiter_of(struct rt_list *node)
{
    return RT_LIST_ENTRY(node, struct esi_operation, fetch_link);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* For the one that has waited longest. */
static void fill(const struct esi_direct *direct, struct esi_fetch *fetch,
                 struct model_route_request *request)
{
    const struct esi_operation *operation = waiter_of(fetch->waiters.next);
    const struct model_request *asked = &operation->call->request;

    fetch->statement = esi_direct_statement(operation);
    fetch->value_size = places(fetch->statement) ? asked->data.value.size : 0;
    fetch->session = operation->lock_token == 0 ? (struct model_id){0} : direct->lease.id;

    *request = (struct model_route_request){
        .key = fetch->key,
        .operation = fetch->statement,
        .value_size = fetch->value_size,
        .session_id = fetch->session,
        .lock_token = operation->lock_token,
        .min_placement_version = esi_routes_epoch(&direct->routes, fetch->key),
    };
}

static void pause_fetch(struct esi_direct *direct, struct esi_fetch *fetch, uint32_t retry_after_ms)
{
    fetch->exchange.send_at_us =
        esi_direct_now_us(direct) +
        esi_retry_delay_us(fetch->exchange.n_attempts, retry_after_ms, rt_env_random(&direct->env));
    esi_direct_arm(direct, fetch->exchange.send_at_us);
}

static void send(struct esi_direct *direct, struct esi_fetch *fetch)
{
    struct model_request request = {.kind = MODEL_CALL_ROUTE};

    fill(direct, fetch, &request.route);
    rt_list_for_each (node, &fetch->waiters)
        waiter_of(node)->was_asked_for = true;
    if (esi_post_send(&direct->post, &fetch->exchange, &request, esi_direct_now_us(direct),
                      ESI_DIRECT_ATTEMPT_US, NULL) == RT_OK)
        esi_direct_arm(direct, esi_exchange_wakeup_us(&fetch->exchange));
    else
        pause_fetch(direct, fetch, 0);
}

static void begin(struct esi_direct *direct, struct esi_fetch *fetch)
{
    if (direct->n_asking == ESI_DIRECT_FETCHES_MAX) {
        rt_list_push_back(&direct->queued_fetches, &fetch->queue_link);
        return;
    }
    direct->n_asking++;
    send(direct, fetch);
}

/* Its place goes to the next one. */
static void leave(struct esi_direct *direct, struct esi_fetch *fetch)
{
    struct rt_list *node;

    if (!rt_list_is_empty(&fetch->queue_link)) {
        rt_list_remove(&fetch->queue_link);
        return;
    }
    direct->n_asking--;
    node = direct->is_closing ? NULL : rt_list_pop_front(&direct->queued_fetches);
    if (node)
        begin(direct, RT_LIST_ENTRY(node, struct esi_fetch, queue_link));
}

static void release(struct esi_direct *direct, struct esi_fetch *fetch)
{
    rt_assert(direct->fetches);
    HASH_DEL(direct->fetches, fetch);
    (void)rt_free((void *)fetch->key.data);
    (void)rt_free(fetch);
}

static void end(struct esi_direct *direct, struct esi_fetch *fetch)
{
    esi_exchange_give_up(&fetch->exchange);
    leave(direct, fetch);
    release(direct, fetch);
}

void esi_direct_fetch(struct esi_direct *direct, struct esi_operation *operation)
{
    struct esi_fetch *fetch = find(direct, operation->key);
    bool is_new = !fetch;

    if (is_new)
        fetch = add(direct, operation->key);
    if (fetch->exchange.deadline_us < operation->exchange.deadline_us)
        fetch->exchange.deadline_us = operation->exchange.deadline_us;
    operation->fetch = fetch;
    operation->was_asked_for = false;
    rt_list_push_back(&fetch->waiters, &operation->fetch_link);
    if (is_new)
        begin(direct, fetch);
}

void esi_direct_leave_fetch(struct esi_direct *direct, struct esi_operation *operation)
{
    struct esi_fetch *fetch = operation->fetch;

    if (!fetch)
        return;
    operation->fetch = NULL;
    rt_list_remove(&operation->fetch_link);
    if (rt_list_is_empty(&fetch->waiters))
        end(direct, fetch);
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Ends the fetch; its waiters are the caller's. */
static void take_waiters(struct esi_direct *direct, struct esi_fetch *fetch,
                         struct rt_list *ret_waiters)
{
    rt_list_init(ret_waiters);
    rt_list_splice_back(ret_waiters, &fetch->waiters);
    rt_list_for_each (node, ret_waiters)
        waiter_of(node)->fetch = NULL;
    end(direct, fetch);
}

static void go_on_unless_paused(struct esi_direct *direct, struct esi_operation *operation)
{
    if (operation->exchange.send_at_us == RT_NEVER)
        esi_direct_go_on(direct, operation);
}

static void on_route(struct esi_direct *direct, struct esi_fetch *fetch)
{
    struct rt_list waiters;
    struct rt_list *node;

    take_waiters(direct, fetch, &waiters);
    while ((node = rt_list_pop_front(&waiters)))
        go_on_unless_paused(direct, waiter_of(node));
}

/* SET and PUT would have placed the key: they ask for themselves. */
static void on_unplaced(struct esi_direct *direct, struct esi_fetch *fetch)
{
    struct rt_list waiters;
    struct rt_list *node;

    esi_routes_doubt(&direct->routes, fetch->key, UINT64_MAX, UINT64_MAX);
    take_waiters(direct, fetch, &waiters);
    while ((node = rt_list_pop_front(&waiters))) {
        struct esi_operation *operation = waiter_of(node);

        if (places(esi_direct_statement(operation)) || !operation->was_asked_for)
            go_on_unless_paused(direct, operation);
        else
            esi_direct_data_unplaced(direct, operation);
    }
}

/* A refusal counts for those that asked the same. */
static bool is_meant(const struct esi_operation *operation, enum model_statement_kind statement,
                     size_t value_size)
{
    const struct model_request *request = &operation->call->request;

    return operation->was_asked_for && esi_direct_statement(operation) == statement &&
           (!places(statement) || request->data.value.size >= value_size);
}

static void on_refused(struct esi_direct *direct, struct esi_fetch *fetch,
                       const struct model_response *failure, bool is_final_for_all)
{
    enum model_statement_kind statement = fetch->statement;
    size_t value_size = fetch->value_size;
    struct rt_list waiters;
    struct rt_list *node;

    take_waiters(direct, fetch, &waiters);
    while ((node = rt_list_pop_front(&waiters))) {
        struct esi_operation *operation = waiter_of(node);

        if (is_final_for_all || is_meant(operation, statement, value_size))
            esi_direct_fail(direct, operation, failure);
        else
            go_on_unless_paused(direct, operation);
    }
}

static void on_failure(struct esi_direct *direct, struct esi_fetch *fetch,
                       const struct model_response *failure)
{
    bool may_retry = esi_retry_reaction(failure->code, &failure->error) == ESI_REACTION_RETRY;

    if (failure->error.reason == MODEL_REASON_SESSION_UNKNOWN)
        esi_direct_lose_session(direct, &fetch->session, failure);
    if (may_retry && fetch->exchange.n_attempts < ESI_RETRY_ATTEMPTS_MAX &&
        esi_retry_budget_spend(&direct->budget, esi_direct_now_us(direct)))
        pause_fetch(direct, fetch, failure->error.retry_after_ms);
    else
        on_refused(direct, fetch, failure, may_retry);
}

void esi_direct_learn(struct esi_direct *direct, struct rt_bytes key,
                      const struct model_route *told, uint64_t term)
{
    struct esi_route route = {
        .owner = told->owner,
        .address = told->address,
        .incarnation = told->incarnation,
        .epoch = told->epoch,
        .for_writes = true,
    };

    direct->cluster_id = told->cluster_id;
    if (term > direct->term)
        direct->term = term;
    esi_routes_learn(&direct->routes, key, &route);
}

/* False when what is remembered is newer, so that the answer is of no use. */
static bool learn(struct esi_direct *direct, const struct esi_fetch *fetch,
                  const struct model_response *response)
{
    struct esi_route route;

    if (!response->route.has_route)
        return false;
    esi_direct_learn(direct, fetch->key, &response->route.route, response->responder.term);
    return esi_routes_find(&direct->routes, fetch->key, &route);
}

void esi_direct_fetch_answer(struct esi_direct *direct, struct esi_fetch *fetch,
                             const struct model_response *response)
{
    struct model_response behind;

    if (response->code != RT_OK) {
        on_failure(direct, fetch, response);
    } else if (!response->route.has_route && !places(fetch->statement)) {
        on_unplaced(direct, fetch);
    } else if (learn(direct, fetch, response)) {
        on_route(direct, fetch);
    } else {
        behind.responder = response->responder;
        model_response_fail(&behind, MODEL_REASON_EPOCH_AHEAD,
                            "the coordinator has no route, or an older one than is known");
        on_failure(direct, fetch, &behind);
    }
}

/* ---- time ------------------------------------------------------------------------------------ */

static void fetch_tick(struct esi_direct *direct, struct esi_fetch *fetch)
{
    uint64_t now_us = esi_direct_now_us(direct);
    struct model_response failure = {.code = RT_OK};

    if (esi_exchange_expire(&fetch->exchange, now_us, &failure))
        on_failure(direct, fetch, &failure);
    else if (fetch->exchange.send_at_us <= now_us)
        send(direct, fetch);
}

/* NOLINTNEXTLINE(readability-function-size): the macros of uthash nest */
void esi_direct_fetch_tick(struct esi_direct *direct)
{
    struct esi_fetch *fetch, *next;

    HASH_ITER (hh, direct->fetches, fetch, next)
        fetch_tick(direct, fetch);
    for (fetch = direct->fetches; fetch; fetch = fetch->hh.next)
        esi_direct_arm(direct, esi_exchange_wakeup_us(&fetch->exchange));
}

/* NOLINTNEXTLINE(readability-function-size): the macros of uthash nest */
void esi_direct_free_fetches(struct esi_direct *direct)
{
    struct esi_fetch *fetch, *next;

    HASH_ITER (hh, direct->fetches, fetch, next)
        release(direct, fetch);
}
