/*
 * Serving: see serve.h. The service's core has a host of its own, and so has each place for an ESI:
 * a stream to the coordinator runs one statement at a time. What steps of the places came to is
 * noted under their locks; the loop thread prints it, tells the service, and carries out what the
 * service orders. Places are used again, once every call of their last ESI has come back.
 */
#include "esi-client/serve.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "esi-client/agent.h"
#include "esi-client/keeper.h"
#include "esi-client/report.h"
#include "esi-client/service.h"
#include "redistinto/v1/esi.pb-c.h"
#include "runtime/base/alloc.h"
#include "runtime/base/map.h"
#include "runtime/host/service.h"
#include "runtime/model/exit.h"

#define NAME "redistinto-esi"

struct serve;

/* A place for one ESI after the other. */
struct place {
    UT_hash_handle hh;        /* by id, while it has an ESI */
    struct rt_list link;      /* serve.places */
    struct rt_list free_link; /* serve.free */
    struct serve *serve;
    struct esi_agent agent;          /* under the host's lock */
    struct host *host;               /* owned */
    uint32_t id;                     /* of its ESI; 0 = free, or about to be */
    bool is_random;                  /* its script draws */
    char label[MODEL_NAME_MAX + 12]; /* of its results */
    /* Under serve.lock: what steps came to. */
    struct rt_list news_link; /* serve.news */
    struct rt_list results;   /* esi_result.link */
    bool is_open;
    bool has_turn;
    bool is_last;
    bool is_done;
    struct esi_summary summary; /* is_done */
};

/* What no comment says otherwise of belongs to the loop thread. */
struct serve {
    const struct esi_options *options;
    struct host_service service;
    struct esi_service *core; /* owned; under its host's lock */
    struct rt_bytes *blocked; /* owned array */
    size_t n_blocked;
    struct esi_keeper *keeper; /* owned; under its host's lock; NULL without blocked keys */
    struct host *keeper_host;  /* owned */
    struct rt_list places;     /* owned */
    struct rt_list free;       /* place.free_link */
    struct place *by_id;
    struct rpc_job job;
    pthread_mutex_t lock;
    struct rt_list news;   /* place.news_link; under lock, as what follows */
    struct rt_list orders; /* esi_service_order.link */
    enum esi_keeper_state keeper_state;
    char keeper_failure[MODEL_ERROR_MESSAGE_MAX + 1];
    bool is_drained;
    bool has_begun; /* of the loop thread again */
    bool is_stopping;
    bool is_finishing;
    bool is_keeper_lost;
    bool has_output_failed;
    uint64_t seed; /* of what scripts draw */
};

static void work(struct rpc_job *job);

static void post(struct serve *serve)
{
    rpc_runtime_post(serve->service.runtime, &serve->job, work);
}

/* ---- the service's core ---- */

static void core_responder(const void *core, struct model_responder *ret_responder)
{
    (void)core;
    *ret_responder = (struct model_responder){0};
}

static void core_submit(void *core, struct model_call *call)
{
    esi_service_submit(core, call);
}

static void core_cancel(void *core, struct model_call *call)
{
    esi_service_cancel(core, call);
}

static void core_tick(void *core)
{
    esi_service_tick(core);
}

static uint64_t core_next_wakeup_us(const void *core)
{
    return esi_service_next_wakeup_us(core);
}

static struct model_effects *core_effects(void *core)
{
    return esi_service_effects(core);
}

static const struct host_core_ops core_ops = {
    .responder = core_responder,
    .submit = core_submit,
    .cancel = core_cancel,
    .tick = core_tick,
    .next_wakeup_us = core_next_wakeup_us,
    .effects = core_effects,
};

static void after_core_step(void *ctx)
{
    struct serve *serve = ctx;
    struct esi_service_order *order;
    bool has_news;

    (void)pthread_mutex_lock(&serve->lock);
    has_news = serve->is_drained != esi_service_is_drained(serve->core);
    serve->is_drained = esi_service_is_drained(serve->core);
    while ((order = esi_service_take_order(serve->core))) {
        rt_list_push_back(&serve->orders, &order->link);
        has_news = true;
    }
    (void)pthread_mutex_unlock(&serve->lock);
    if (has_news)
        post(serve);
}

static void begin_core(void *core, void *argument)
{
    (void)argument;
    esi_service_begin(core);
}

static void drain_core(void *core, void *argument)
{
    (void)argument;
    esi_service_drain(core);
}

/* ---- places ---- */

static void place_call_done(void *agent, struct model_call *call)
{
    esi_agent_call_done(agent, call);
}

static void place_tick(void *agent)
{
    esi_agent_tick(agent);
}

static uint64_t place_next_wakeup_us(const void *agent)
{
    return esi_agent_next_wakeup_us(agent);
}

static struct model_effects *place_effects(void *agent)
{
    return esi_agent_effects(agent);
}

static const struct host_core_ops place_ops = {
    .call_done = place_call_done,
    .tick = place_tick,
    .next_wakeup_us = place_next_wakeup_us,
    .effects = place_effects,
};

/* Under the place's lock and this file's. */
static void note_runner(struct place *place, struct esi_runner *runner)
{
    const struct esi_summary *summary = esi_runner_summary(runner);
    struct esi_result *result;

    while ((result = esi_runner_take_result(runner)))
        rt_list_push_back(&place->results, &result->link);
    place->is_open = summary->opened;
    place->has_turn = esi_runner_has_turn(runner);
    place->is_last = summary->state != ESI_SCRIPT_RUNNING;
    if (esi_runner_is_done(runner) && !place->is_done) {
        place->is_done = true;
        place->summary = *summary;
    }
}

static void after_place_step(void *ctx)
{
    struct place *place = ctx;
    struct serve *serve = place->serve;

    if (!place->agent.runner)
        return;
    (void)pthread_mutex_lock(&serve->lock);
    note_runner(place, place->agent.runner);
    rt_list_remove(&place->news_link);
    rt_list_push_back(&serve->news, &place->news_link);
    (void)pthread_mutex_unlock(&serve->lock);
    post(serve);
}

static struct place *obtain_place(struct serve *serve)
{
    struct rt_list *node = rt_list_pop_front(&serve->free);
    struct host_options options = {
        .runtime = serve->service.runtime, .ops = &place_ops, .after_step = after_place_step};
    struct place *place;

    if (node)
        return RT_LIST_ENTRY(node, struct place, free_link);
    place = rt_xalloc(sizeof(*place));
    place->serve = serve;
    rt_list_init(&place->free_link);
    rt_list_init(&place->news_link);
    rt_list_init(&place->results);
    esi_agent_init(&place->agent);
    options.core = &place->agent;
    options.ctx = place;
    place->host = host_new(&options);
    rt_list_push_back(&serve->places, &place->link);
    return place;
}

static void vacate(void *agent, void *ret_is_free)
{
    *(bool *)ret_is_free = esi_agent_vacate(agent);
}

/* Once nothing of its ESI will come back. */
static void free_if_quiet(struct serve *serve, struct place *place)
{
    bool is_free = false;

    if (place->id != 0 || !rt_list_is_empty(&place->free_link))
        return;
    host_step(place->host, vacate, &is_free);
    if (is_free)
        rt_list_push_back(&serve->free, &place->free_link);
}

static struct place *find_place(const struct serve *serve, uint32_t id)
{
    struct place *place;

    HASH_FIND(hh, serve->by_id, &id, sizeof(id), place);
    return place;
}

/* ---- output ---- */

/* A reader that went away is no reason to stop what others wait for; one that does not read is: the
 * loop waits for it. */
static void print(struct serve *serve, struct rt_buffer *line)
{
    if (!serve->has_output_failed &&
        (fwrite(line->data, 1, line->size, stdout) != line->size || fflush(stdout) != 0)) {
        serve->has_output_failed = true;
        rt_log(RT_LOG_WARNING, "event=output_failed errno=%d", errno);
    }
    rt_buffer_reset(line);
}

static void print_results(struct serve *serve, const struct place *place,
                          const struct rt_list *results)
{
    struct rt_buffer line = {0};

    rt_list_for_each (node, results) {
        const struct esi_result *result = RT_LIST_ENTRY(node, struct esi_result, link);

        if (serve->options->format == ESI_FORMAT_JSON)
            esi_report_json(place->label, result, &line);
        else
            esi_report_text(place->label, result, &line);
        print(serve, &line);
    }
    rt_buffer_deinit(&line);
}

static void print_end(struct serve *serve, const struct place *place,
                      const struct esi_summary *summary)
{
    struct rt_buffer line = {0};

    if (serve->options->format == ESI_FORMAT_TEXT) {
        esi_report_summary_text(place->label, summary, place->is_random ? &serve->seed : NULL,
                                &line);
        print(serve, &line);
    }
    rt_buffer_deinit(&line);
}

/* ---- news ---- */

struct telling {
    uint32_t id;
    struct esi_service_note note;
};

static void tell_core(void *core, void *argument)
{
    const struct telling *telling = argument;

    esi_service_take_note(core, telling->id, &telling->note);
}

/* What steps of one place came to; false when there is none. */
static bool take_news(struct serve *serve, struct place **ret_place, struct rt_list *results,
                      struct esi_service_note *ret_note, bool *ret_is_done)
{
    struct rt_list *node;
    struct place *place = NULL;

    (void)pthread_mutex_lock(&serve->lock);
    node = rt_list_pop_front(&serve->news);
    if (node) {
        place = RT_LIST_ENTRY(node, struct place, news_link);
        rt_list_splice_back(results, &place->results);
        *ret_note = (struct esi_service_note){.is_open = place->is_open,
                                              .has_turn = place->has_turn,
                                              .is_last = place->is_last,
                                              .results = results};
        *ret_is_done = place->is_done;
    }
    (void)pthread_mutex_unlock(&serve->lock);
    *ret_place = place;
    return place != NULL;
}

/* The summary of a runner that is done does not change any more. */
static void on_news(struct serve *serve, struct place *place, struct esi_service_note *note,
                    bool is_done)
{
    struct telling telling = {.id = place->id};

    if (place->id == 0)
        return;
    note->summary = is_done ? &place->summary : NULL;
    telling.note = *note;
    print_results(serve, place, note->results);
    if (is_done) {
        print_end(serve, place, &place->summary);
        HASH_DEL(serve->by_id, place);
        place->id = 0;
    }
    host_step(serve->service.host, tell_core, &telling);
}

static void hear_news(struct serve *serve)
{
    struct rt_list results = RT_LIST_INIT(results);
    struct esi_service_note note;
    struct place *place;
    struct rt_list *node;
    bool is_done;

    while (take_news(serve, &place, &results, &note, &is_done)) {
        on_news(serve, place, &note, is_done);
        while ((node = rt_list_pop_front(&results)))
            (void)esi_result_free(RT_LIST_ENTRY(node, struct esi_result, link));
        free_if_quiet(serve, place);
    }
}

/* ---- orders ---- */

struct starting {
    struct esi_script *script;
    struct esi_session_config config;
    uint64_t seed;
    const struct rt_env *env;
};

static void start_agent(void *agent, void *argument)
{
    const struct starting *starting = argument;

    esi_agent_start(agent, starting->script, &starting->config, starting->seed, starting->env);
}

static void fill_session(const struct serve *serve, const char *name,
                         struct esi_session_config *ret_config)
{
    const struct rt_env *env = rpc_runtime_env(serve->service.runtime);
    uint64_t client[2] = {rt_env_random(env), rt_env_random(env)};

    *ret_config = (struct esi_session_config){.statement_timeout_us =
                                                  serve->options->statement_timeout_ms * 1000};
    (void)snprintf(ret_config->name, sizeof(ret_config->name), "%s", name);
    (void)snprintf(ret_config->coordinator_address, sizeof(ret_config->coordinator_address), "%s",
                   serve->options->coordinator);
    memcpy(ret_config->client_id.bytes, client, sizeof(ret_config->client_id.bytes));
}

static void start_esi(struct serve *serve, struct esi_service_order *order)
{
    struct place *place = obtain_place(serve);
    struct starting starting = {.script = order->script,
                                .env = rpc_runtime_env(serve->service.runtime)};

    starting.seed = esi_cursor_seed(serve->seed, order->id);
    place->is_random = order->script->is_random;
    order->script = NULL;
    fill_session(serve, order->name, &starting.config);
    (void)pthread_mutex_lock(&serve->lock);
    place->is_open = place->has_turn = place->is_last = place->is_done = false;
    (void)pthread_mutex_unlock(&serve->lock);
    place->id = order->id;
    (void)snprintf(place->label, sizeof(place->label), "%u/%s", (unsigned)order->id, order->name);
    HASH_ADD(hh, serve->by_id, id, sizeof(place->id), place);
    host_step(place->host, start_agent, &starting);
}

static void grant(void *agent, void *argument)
{
    (void)argument;
    esi_runner_grant(((struct esi_agent *)agent)->runner);
}

static void lock(void *agent, void *argument)
{
    const struct esi_service_order *order = argument;

    esi_runner_lock(((struct esi_agent *)agent)->runner, rt_bytes_of(order->key, order->key_size));
}

static void stop(void *agent, void *argument)
{
    (void)argument;
    esi_runner_stop(((struct esi_agent *)agent)->runner);
}

static void unlock(void *keeper, void *argument)
{
    const struct esi_service_order *order = argument;

    esi_keeper_unlock(keeper, rt_bytes_of(order->key, order->key_size));
}

/* An ESI may have ended by itself meanwhile. */
static void step_esi(struct serve *serve, struct esi_service_order *order,
                     void (*fn)(void *agent, void *argument))
{
    struct place *place = find_place(serve, order->id);

    if (place)
        host_step(place->host, fn, order);
}

static void carry_out(struct serve *serve, struct esi_service_order *order)
{
    switch (order->kind) {
    case ESI_SERVICE_START:
        start_esi(serve, order);
        return;
    case ESI_SERVICE_GRANT:
        step_esi(serve, order, grant);
        return;
    case ESI_SERVICE_LOCK:
        step_esi(serve, order, lock);
        return;
    case ESI_SERVICE_STOP:
        step_esi(serve, order, stop);
        return;
    case ESI_SERVICE_UNLOCK:
        host_step(serve->keeper_host, unlock, order);
        return;
    }
}

static void carry_out_orders(struct serve *serve)
{
    struct rt_list orders = RT_LIST_INIT(orders);
    struct rt_list *node;

    (void)pthread_mutex_lock(&serve->lock);
    rt_list_splice_back(&orders, &serve->orders);
    (void)pthread_mutex_unlock(&serve->lock);
    while ((node = rt_list_pop_front(&orders))) {
        struct esi_service_order *order = RT_LIST_ENTRY(node, struct esi_service_order, link);

        carry_out(serve, order);
        (void)esi_service_order_free(order);
    }
}

/* ---- the keeper ---- */

static void keeper_call_done(void *keeper, struct model_call *call)
{
    esi_keeper_call_done(keeper, call);
}

static void keeper_tick(void *keeper)
{
    esi_keeper_tick(keeper);
}

static uint64_t keeper_next_wakeup_us(const void *keeper)
{
    return esi_keeper_next_wakeup_us(keeper);
}

static struct model_effects *keeper_effects(void *keeper)
{
    return esi_keeper_effects(keeper);
}

static const struct host_core_ops keeper_ops = {
    .call_done = keeper_call_done,
    .tick = keeper_tick,
    .next_wakeup_us = keeper_next_wakeup_us,
    .effects = keeper_effects,
};

static void after_keeper_step(void *ctx)
{
    struct serve *serve = ctx;
    enum esi_keeper_state state = esi_keeper_state(serve->keeper);
    const char *failure = esi_keeper_failure(serve->keeper);
    bool has_news;

    (void)pthread_mutex_lock(&serve->lock);
    has_news = state != serve->keeper_state;
    serve->keeper_state = state;
    (void)snprintf(serve->keeper_failure, sizeof(serve->keeper_failure), "%s",
                   failure ? failure : "");
    (void)pthread_mutex_unlock(&serve->lock);
    if (has_news)
        post(serve);
}

static void start_keeper(void *keeper, void *argument)
{
    (void)argument;
    esi_keeper_start(keeper);
}

static void stop_keeper(void *keeper, void *argument)
{
    (void)argument;
    esi_keeper_stop(keeper);
}

static void open_keeper(struct serve *serve)
{
    struct host_options host = {.runtime = serve->service.runtime,
                                .ops = &keeper_ops,
                                .after_step = after_keeper_step,
                                .ctx = serve};
    struct esi_session_config config;

    fill_session(serve, "system", &config);
    serve->keeper = esi_keeper_new(&config, rpc_runtime_env(serve->service.runtime), serve->blocked,
                                   serve->n_blocked);
    host.core = serve->keeper;
    serve->keeper_host = host_new(&host);
    host_step(serve->keeper_host, start_keeper, NULL);
}

/* ---- begin and end ---- */

static void begin(struct serve *serve)
{
    serve->has_begun = true;
    host_step(serve->service.host, begin_core, NULL);
    host_service_ready(&serve->service);
}

static void on_keeper_lost(struct serve *serve, const char *failure)
{
    if (serve->has_begun || serve->is_stopping) {
        rt_log(RT_LOG_ERROR, "event=blocked_keys_lost error=\"%s\"", failure);
        return;
    }
    (void)fprintf(stderr, NAME ": --blocked: %s\n", failure);
    host_service_stop(&serve->service, MODEL_EXIT_UNAVAILABLE);
}

static void follow_keeper(struct serve *serve)
{
    char failure[sizeof(serve->keeper_failure)];
    enum esi_keeper_state state;
    bool is_drained;

    (void)pthread_mutex_lock(&serve->lock);
    state = serve->keeper_state;
    memcpy(failure, serve->keeper_failure, sizeof(failure));
    is_drained = serve->is_drained;
    (void)pthread_mutex_unlock(&serve->lock);

    if (!serve->has_begun && !serve->is_stopping && state == ESI_KEEPER_READY)
        begin(serve);
    if (state == ESI_KEEPER_LOST && !serve->is_keeper_lost) {
        serve->is_keeper_lost = true;
        on_keeper_lost(serve, failure);
    }
    if (!serve->is_stopping || !is_drained || serve->is_finishing)
        return;
    if (state == ESI_KEEPER_STOPPED || state == ESI_KEEPER_LOST) {
        serve->is_finishing = true;
        host_service_finish(&serve->service);
    } else {
        host_step(serve->keeper_host, stop_keeper, NULL);
    }
}

static void work(struct rpc_job *job)
{
    struct serve *serve = RT_CONTAINER_OF(job, struct serve, job);

    hear_news(serve);
    carry_out_orders(serve);
    follow_keeper(serve);
}

static void on_stop(void *ctx)
{
    struct serve *serve = ctx;

    serve->is_stopping = true;
    host_step(serve->service.host, drain_core, NULL);
    post(serve);
}

/* No call is begun any more. */
static void on_end(void *ctx)
{
    struct serve *serve = ctx;

    rt_list_for_each (node, &serve->places)
        host_stop(RT_LIST_ENTRY(node, struct place, link)->host);
    if (serve->keeper_host)
        host_stop(serve->keeper_host);
}

static enum rt_code start(struct serve *serve, struct rt_error *err)
{
    const struct esi_options *options = serve->options;
    const struct esi_service_config config = {
        .planner = options->planner,
        .is_paused = options->is_paused,
        .dialect = options->dialect,
        .blocked = serve->blocked,
        .n_blocked = serve->n_blocked,
    };
    struct host_options host = {.ops = &core_ops, .after_step = after_core_step, .ctx = serve};
    enum rt_code code;

    code = host_service_open(&serve->service, NAME, &options->service, err);

    if (code != RT_OK)
        return code;
    serve->service.on_end = on_end;
    serve->seed = options->seed;
    while (serve->seed == 0)
        serve->seed = rt_env_random(rpc_runtime_env(serve->service.runtime)) & ESI_SEED_MAX;
    serve->core = esi_service_new(&config, rpc_runtime_env(serve->service.runtime));
    host.runtime = serve->service.runtime;
    host.core = serve->core;
    code = host_service_attach(&serve->service, &host, err);
    if (code == RT_OK)
        code = host_service_serve(&serve->service, &redistinto__v1__esi_service__descriptor, err);
    if (code != RT_OK)
        return code;
    if (serve->n_blocked > 0)
        open_keeper(serve);
    else
        begin(serve);
    return RT_OK;
}

static void close_places(struct serve *serve)
{
    struct rt_list *node;

    HASH_CLEAR(hh, serve->by_id);
    while ((node = rt_list_pop_front(&serve->places))) {
        struct place *place = RT_LIST_ENTRY(node, struct place, link);

        place->host = host_free(place->host);
        esi_agent_deinit(&place->agent);
        while ((node = rt_list_pop_front(&place->results)))
            (void)esi_result_free(RT_LIST_ENTRY(node, struct esi_result, link));
        (void)rt_free(place);
    }
}

static void close_serve(struct serve *serve)
{
    struct rt_list *node;

    serve->keeper_host = host_free(serve->keeper_host);
    serve->keeper = esi_keeper_free(serve->keeper);
    close_places(serve);
    while ((node = rt_list_pop_front(&serve->orders)))
        (void)esi_service_order_free(RT_LIST_ENTRY(node, struct esi_service_order, link));
}

int esi_serve(const struct esi_options *options)
{
    struct serve *serve = rt_xalloc(sizeof(*serve));
    struct rt_error err = RT_ERROR_INIT;
    int exit_code;

    serve->options = options;
    (void)pthread_mutex_init(&serve->lock, NULL);
    rt_list_init(&serve->places);
    rt_list_init(&serve->free);
    rt_list_init(&serve->news);
    rt_list_init(&serve->orders);
    /* The options were checked. */
    (void)esi_options_split(options->blocked, &serve->blocked, &serve->n_blocked, NULL);
    serve->keeper_state = serve->n_blocked > 0 ? ESI_KEEPER_LOCKING : ESI_KEEPER_STOPPED;
    if (start(serve, &err) == RT_OK)
        exit_code = host_service_run(&serve->service, on_stop, serve);
    else
        exit_code = host_service_fail(NAME, &err);
    close_serve(serve);
    host_service_close(&serve->service);
    serve->core = esi_service_free(serve->core);
    (void)pthread_mutex_destroy(&serve->lock);
    (void)rt_free(serve->blocked);
    (void)rt_free(serve);
    return exit_code;
}
