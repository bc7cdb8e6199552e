/*
 * The client library: see client.h. The direct client's core runs in a host, over a runtime whose
 * loop has a thread of its own. Operations enter in one step a batch; what the core has answered is
 * collected under its lock, and handed over outside it: to the thread that waits, or on the loop's
 * thread to a callback. Invariant: a batch is in the core while an operation of it is, and ends
 * exactly once.
 *
 * Two locks: the host's, and `lock` for what is handed over; the second may be taken under the
 * first, never the other way.
 */
#include "esi-client/client.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "esi-client/batch.h"
#include "esi-client/direct.h"
#include "runtime/base/alloc.h"
#include "runtime/host/host.h"

_Static_assert((int)ESI_CLIENT_KEY_MAX == (int)MODEL_KEY_MAX, "as the services have it");
_Static_assert((int)ESI_CLIENT_VALUE_MAX == (int)MODEL_VALUE_MAX, "as the services have it");
_Static_assert(MODEL_ADDRESS_MAX == 255 && MODEL_NAME_MAX == 63, "as the problems' texts have it");
_Static_assert(ESI_CLIENT_TIMEOUT_MS_MAX == 86400000, "as the problems' texts have it");
_Static_assert((int)ESI_CLIENT_OPERATIONS_MAX == (int)ESI_DIRECT_OPERATIONS_MAX, "as the core");

enum {
    TIMEOUT_MS = 5000
};

struct operation {
    struct model_call call;
    struct run *run;
};

/* Operations that were started together, and what becomes of them. */
struct run {
    struct esi_client_results results; /* first: this is what its owner holds */
    struct rt_list link;               /* in client->ended */
    struct esi_client *client;
    struct operation *operations;    /* owned */
    struct esi_client_result *items; /* owned */
    size_t n_unanswered;             /* under the host's lock */
    bool is_ended;                   /* under client->lock */
    esi_client_cb cb;                /* NULL when a thread waits */
    void *ctx;
};

struct esi_client {
    uint32_t timeout_ms;
    struct rpc_runtime *runtime; /* owned */
    struct esi_direct *direct;   /* owned */
    struct host *host;           /* owned */
    pthread_t loop_thread;
    /* Under the host's lock. */
    struct esi_batches batches;
    struct rt_list again;    /* model_call.link: to be sent */
    struct rt_list alone;    /* the same, and not in a batch */
    struct rt_list answered; /* model_call.link */
    /* Under `lock`. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct rt_list ended; /* run.link: for callbacks */
    size_t n_runs;        /* whose callback has not returned, or whose thread still waits */
    bool is_closed;
    struct rpc_job deliver_job;
};

/* ---- results --------------------------------------------------------------------------------- */

static struct esi_client_bytes bytes_of(struct rt_bytes bytes)
{
    return (struct esi_client_bytes){bytes.data, bytes.size};
}

static void fill_data(const struct model_data_response *data, struct esi_client_result *result)
{
    result->version = (struct esi_client_version){
        .epoch = data->version.epoch,
        .incarnation = data->version.incarnation,
        .seq = data->version.seq,
    };
    result->has_value = data->has_value;
    result->value = bytes_of(data->value);
    result->stored = data->stored;
    result->sets_lost = data->sets_lost;
    result->replayed = data->replayed;
    result->stale = data->stale;
}

static void fill_result(const struct model_call *call, struct esi_client_result *result)
{
    const struct model_response *response = &call->response;

    *result = (struct esi_client_result){.reason = "", .message = ""};
    if (response->code != RT_OK) {
        result->outcome =
            response->error.applied == MODEL_APPLIED_NO ? ESI_CLIENT_FAILED : ESI_CLIENT_UNKNOWN;
        result->code = (int)response->code;
        result->reason = model_reason_name(response->error.reason);
        result->message = response->error.message;
    } else if (call->request.kind == MODEL_CALL_LOCK) {
        fill_data(&response->lock.data, result);
    } else if (call->request.kind != MODEL_CALL_UNLOCK) {
        fill_data(&response->data, result);
    }
}

static struct run *run_of(struct esi_client_results *results)
{
    return RT_CONTAINER_OF(results, struct run, results);
}

void esi_client_results_free(struct esi_client_results *results)
{
    struct run *run;

    if (!results)
        return;
    run = run_of(results);
    for (size_t i = 0; i < results->n_items; i++)
        model_call_deinit(&run->operations[i].call);
    (void)rt_free(run->operations);
    (void)rt_free(run->items);
    (void)rt_free(run);
}

/* ---- the face of the core -------------------------------------------------------------------- */

static void core_call_done(void *core, struct model_call *call)
{
    struct esi_client *client = core;
    struct rt_list done = RT_LIST_INIT(done);
    struct rt_list *node;

    if (call->request.kind != MODEL_CALL_PIPELINE) {
        esi_direct_call_done(client->direct, call);
        return;
    }
    esi_batches_scatter(call, &done, &client->again, &client->alone);
    while ((node = rt_list_pop_front(&done)))
        esi_direct_call_done(client->direct, RT_LIST_ENTRY(node, struct model_call, link));
}

static void core_tick(void *core)
{
    struct esi_client *client = core;

    esi_direct_tick(client->direct);
}

static uint64_t core_next_wakeup_us(const void *core)
{
    const struct esi_client *client = core;

    return esi_direct_next_wakeup_us(client->direct);
}

/* What the core answers goes to its operations, what it sends to one owner goes together. */
static struct model_effects *core_effects(void *core)
{
    struct esi_client *client = core;
    struct model_effects *effects = esi_direct_effects(client->direct);

    rt_list_splice_back(&client->answered, &effects->replies);
    rt_list_splice_back(&effects->calls, &client->again);
    esi_batches_gather(&client->batches, &effects->calls);
    rt_list_splice_back(&effects->calls, &client->alone);
    return effects;
}

static const struct host_core_ops core_ops = {
    .call_done = core_call_done,
    .tick = core_tick,
    .next_wakeup_us = core_next_wakeup_us,
    .effects = core_effects,
};

/* ---- endings --------------------------------------------------------------------------------- */

/* Loop thread. */
static void deliver(struct rpc_job *job)
{
    struct esi_client *client = RT_CONTAINER_OF(job, struct esi_client, deliver_job);
    struct rt_list *node;

    (void)pthread_mutex_lock(&client->lock);
    while ((node = rt_list_pop_front(&client->ended))) {
        struct run *run = RT_LIST_ENTRY(node, struct run, link);

        (void)pthread_mutex_unlock(&client->lock);
        run->cb(&run->results, run->ctx);
        (void)pthread_mutex_lock(&client->lock);
        client->n_runs--;
    }
    (void)pthread_cond_broadcast(&client->changed);
    (void)pthread_mutex_unlock(&client->lock);
}

/* Under `lock`. */
static void end_run(struct run *run)
{
    struct esi_client *client = run->client;

    for (size_t i = 0; i < run->results.n_items; i++)
        fill_result(&run->operations[i].call, &run->items[i]);
    run->is_ended = true;
    if (!run->cb) {
        (void)pthread_cond_broadcast(&client->changed);
        return;
    }
    rt_list_push_back(&client->ended, &run->link);
    rpc_runtime_post(client->runtime, &client->deliver_job, deliver);
}

/* After each step, under the host's lock. */
static void after_step(void *ctx)
{
    struct esi_client *client = ctx;
    struct rt_list *node;
    bool is_closed = esi_direct_is_closed(client->direct);

    if (rt_list_is_empty(&client->answered) && !is_closed)
        return;
    (void)pthread_mutex_lock(&client->lock);
    while ((node = rt_list_pop_front(&client->answered))) {
        struct model_call *call = RT_LIST_ENTRY(node, struct model_call, link);
        struct run *run = RT_CONTAINER_OF(call, struct operation, call)->run;

        if (--run->n_unanswered == 0)
            end_run(run);
    }
    if (is_closed && !client->is_closed) {
        client->is_closed = true;
        (void)pthread_cond_broadcast(&client->changed);
    }
    (void)pthread_mutex_unlock(&client->lock);
}

/* ---- beginnings ------------------------------------------------------------------------------ */

static enum model_call_kind kind_of(enum esi_client_kind kind)
{
    switch (kind) {
    case ESI_CLIENT_SET:
        return MODEL_CALL_SET;
    case ESI_CLIENT_STORE:
        return MODEL_CALL_STORE;
    case ESI_CLIENT_PUT:
        return MODEL_CALL_PUT;
    case ESI_CLIENT_READ:
        return MODEL_CALL_READ;
    case ESI_CLIENT_DELETE:
        return MODEL_CALL_DELETE;
    case ESI_CLIENT_LOCK:
        return MODEL_CALL_LOCK;
    case ESI_CLIENT_UNLOCK:
        return MODEL_CALL_UNLOCK;
    }
    rt_assert(!"a kind of operation");
}

static struct model_data_request data_of(const struct esi_client_operation *asked)
{
    return (struct model_data_request){
        .header.key = {asked->key.data, asked->key.size},
        .value = {asked->value.data, asked->value.size},
        .has_if_version = asked->has_if_version,
        .if_version = {.epoch = asked->if_version.epoch,
                       .incarnation = asked->if_version.incarnation,
                       .seq = asked->if_version.seq},
        .consistency = asked->stale_ok ? MODEL_READ_STALE_OK : MODEL_READ_LINEARIZABLE,
    };
}

static void init_call(const struct esi_client *client, const struct esi_client_operation *asked,
                      uint64_t now_us, struct model_call *call)
{
    uint64_t timeout_ms = asked->timeout_ms == 0 ? client->timeout_ms : asked->timeout_ms;

    if (timeout_ms > ESI_CLIENT_TIMEOUT_MS_MAX)
        timeout_ms = ESI_CLIENT_TIMEOUT_MS_MAX;
    model_call_init(call, kind_of(asked->kind));
    call->deadline_us = now_us + timeout_ms * 1000;
    if (asked->kind == ESI_CLIENT_LOCK)
        call->request.lock = (struct model_lock_request){
            .key = {asked->key.data, asked->key.size},
        };
    else if (asked->kind == ESI_CLIENT_UNLOCK)
        call->request.unlock = (struct model_unlock_request){
            .key = {asked->key.data, asked->key.size},
        };
    else
        call->request.data = data_of(asked);
}

static struct run *run_new(struct esi_client *client, const struct esi_client_operation *operations,
                           size_t n_operations)
{
    struct run *run = rt_xalloc(sizeof(*run));
    uint64_t now_us = rt_env_now_us(rpc_runtime_env(client->runtime));

    run->client = client;
    rt_list_init(&run->link);
    run->operations = rt_xalloc(n_operations * sizeof(*run->operations));
    run->items = rt_xalloc(n_operations * sizeof(*run->items));
    run->results = (struct esi_client_results){n_operations, run->items};
    run->n_unanswered = n_operations;
    for (size_t i = 0; i < n_operations; i++) {
        run->operations[i].run = run;
        init_call(client, &operations[i], now_us, &run->operations[i].call);
    }
    return run;
}

static void submit(void *core, void *argument)
{
    struct esi_client *client = core;
    struct run *run = argument;

    for (size_t i = 0; i < run->results.n_items; i++)
        esi_direct_submit(client->direct, &run->operations[i].call);
}

/* A run without operations is at its end from the start. One with a callback may be gone when this
 * returns. */
static void start(struct run *run)
{
    struct esi_client *client = run->client;
    bool is_empty = run->results.n_items == 0;

    (void)pthread_mutex_lock(&client->lock);
    client->n_runs++;
    if (is_empty)
        end_run(run);
    (void)pthread_mutex_unlock(&client->lock);
    if (!is_empty)
        host_step(client->host, submit, run);
}

void esi_client_start(struct esi_client *client, const struct esi_client_operation *operations,
                      size_t n_operations, esi_client_cb cb, void *ctx)
{
    struct run *run = run_new(client, operations, n_operations);

    run->cb = cb;
    run->ctx = ctx;
    start(run);
}

struct esi_client_results *esi_client_run(struct esi_client *client,
                                          const struct esi_client_operation *operations,
                                          size_t n_operations)
{
    struct run *run = run_new(client, operations, n_operations);

    rt_assert(!rpc_runtime_is_loop_thread(client->runtime));
    start(run);
    (void)pthread_mutex_lock(&client->lock);
    while (!run->is_ended)
        (void)pthread_cond_wait(&client->changed, &client->lock);
    client->n_runs--;
    (void)pthread_cond_broadcast(&client->changed);
    (void)pthread_mutex_unlock(&client->lock);
    return &run->results;
}

/* ---- the object ------------------------------------------------------------------------------ */

static const char *problem_of(const struct esi_client_options *options)
{
    const char *name = options->name ? options->name : "client";
    struct rt_bytes name_bytes = rt_bytes_of_string(name);

    if (!options->coordinator || options->coordinator[0] == '\0')
        return "coordinator: an address is required";
    if (strlen(options->coordinator) > MODEL_ADDRESS_MAX)
        return "coordinator: an address has at most 255 bytes";
    if (model_name_check("name", name_bytes, NULL) != RT_OK)
        return "name: 1 to 63 of A-Z a-z 0-9 . _ -";
    if (options->timeout_ms > ESI_CLIENT_TIMEOUT_MS_MAX)
        return "timeout_ms: at most 86400000";
    return NULL;
}

static struct model_id draw_id(const struct rt_env *env)
{
    uint64_t halves[2] = {rt_env_random(env), rt_env_random(env)};
    struct model_id id;

    memcpy(id.bytes, halves, sizeof(id.bytes));
    return id;
}

static void init_core(struct esi_client *client, const struct esi_client_options *options)
{
    const struct rt_env *env = rpc_runtime_env(client->runtime);
    struct esi_direct_config config = {
        .client_id = draw_id(env),
        .session_client_id = draw_id(env),
        .n_routes_max = options->routes_max,
    };

    (void)snprintf(config.name, sizeof(config.name), "%s",
                   options->name ? options->name : "client");
    (void)snprintf(config.coordinator_address, sizeof(config.coordinator_address), "%s",
                   options->coordinator);
    client->direct = esi_direct_new(&config, env);
}

static void *run_loop(void *ctx)
{
    struct esi_client *client = ctx;

    rpc_runtime_run(client->runtime);
    return NULL;
}

/* Signals are the program's: no thread that begins here takes one. */
static void start_threads(struct esi_client *client, const struct esi_client_options *options)
{
    sigset_t all;
    sigset_t before;
    int result;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    client->runtime = rpc_runtime_new(NULL);
    init_core(client, options);
    client->host = host_new(&(struct host_options){
        .runtime = client->runtime,
        .ops = &core_ops,
        .core = client,
        .after_step = after_step,
        .ctx = client,
    });
    result = pthread_create(&client->loop_thread, NULL, run_loop, client);
    rt_assert(result == 0);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

struct esi_client *esi_client_new(const struct esi_client_options *options,
                                  const char **ret_problem)
{
    const char *problem = problem_of(options);
    struct esi_client *client;

    if (problem) {
        if (ret_problem)
            *ret_problem = problem;
        return NULL;
    }
    client = rt_xalloc(sizeof(*client));
    client->timeout_ms = options->timeout_ms == 0 ? TIMEOUT_MS : options->timeout_ms;
    esi_batches_init(&client->batches);
    rt_list_init(&client->again);
    rt_list_init(&client->alone);
    rt_list_init(&client->answered);
    rt_list_init(&client->ended);
    (void)pthread_mutex_init(&client->lock, NULL);
    (void)pthread_cond_init(&client->changed, NULL);
    start_threads(client, options);
    return client;
}

static void close_core(void *core, void *argument)
{
    struct esi_client *client = core;

    (void)argument;
    esi_direct_close(client->direct);
}

void esi_client_free(struct esi_client *client)
{
    if (!client)
        return;
    rt_assert(!rpc_runtime_is_loop_thread(client->runtime));
    host_step(client->host, close_core, NULL);
    (void)pthread_mutex_lock(&client->lock);
    while (!client->is_closed || client->n_runs > 0)
        (void)pthread_cond_wait(&client->changed, &client->lock);
    (void)pthread_mutex_unlock(&client->lock);

    host_stop(client->host);
    rpc_runtime_stop(client->runtime);
    (void)pthread_join(client->loop_thread, NULL);
    (void)host_free(client->host);
    esi_batches_deinit(&client->batches);
    (void)esi_direct_free(client->direct);
    (void)rpc_runtime_free(client->runtime);
    (void)pthread_cond_destroy(&client->changed);
    (void)pthread_mutex_destroy(&client->lock);
    (void)rt_free(client);
}
