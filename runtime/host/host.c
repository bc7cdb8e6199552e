/*
 * Steps of a core: see host.h. Every step has the same form: lock, step, take the effects, submit
 * transactions, unlock, answer and call. A call is marked as out of the core under the lock, so
 * that a late cancellation finds it answered.
 */
#include "runtime/host/host.h"

#include "runtime/base/alloc.h"
#include "runtime/host/batch.h"
#include "runtime/host/internal.h"
#include "runtime/host/lane.h"
#include "runtime/wire/response.h"

void host_lock(struct host *host)
{
    int result = pthread_mutex_lock(&host->lock);

    rt_assert(result == 0);
}

void host_unlock(struct host *host)
{
    int result = pthread_mutex_unlock(&host->lock);

    rt_assert(result == 0);
}

/* What a step leaves to do after it. */
struct step {
    struct model_effects effects;
    struct rt_list ready; /* streams of batches */
    uint64_t wakeup_us;
};

/* Under the lock: the bookkeeping of answered calls. */
static void note_replies(struct rt_list *replies)
{
    rt_list_for_each_safe (reply, replies) {
        struct host_inbound *inbound =
            host_inbound_of(RT_LIST_ENTRY(reply, struct model_call, link));

        inbound->is_in_core = false;
        rt_list_remove(&inbound->host_link);
        if (!inbound->note)
            continue;
        rt_list_remove(reply);
        inbound->note(inbound);
    }
}

/* Under the lock: everything that must keep its order. */
static void collect(struct host *host, struct step *ret_step)
{
    struct rt_list *node;

    model_effects_take(host->options.ops->effects(host->options.core), &ret_step->effects);
    note_replies(&ret_step->effects.replies);
    rt_list_init(&ret_step->ready);
    rt_list_splice_back(&ret_step->ready, &host->ready);
    if (host->is_store_dropped)
        rt_list_splice_back(&host->lost_txns, &ret_step->effects.txns);
    while ((node = rt_list_pop_front(&ret_step->effects.txns))) {
        rt_assert(host->store);
        store_submit(host->store, RT_LIST_ENTRY(node, struct store_txn, link));
    }
    if (host->options.after_step)
        host->options.after_step(host->options.ctx);
    ret_step->wakeup_us = host->options.ops->next_wakeup_us(host->options.core);
}

static void write_events(const struct model_effects *effects)
{
    for (size_t i = 0; i < effects->n_events; i++)
        rt_log(effects->events[i].level, "%s", effects->events[i].text);
    if (effects->n_events_dropped > 0)
        rt_log(RT_LOG_WARNING, "event=events_dropped n=%zu", effects->n_events_dropped);
}

static void carry_out(struct host *host, struct step *step)
{
    struct rt_list *node;

    write_events(&step->effects);
    while ((node = rt_list_pop_front(&step->effects.replies))) {
        struct host_inbound *inbound =
            host_inbound_of(RT_LIST_ENTRY(node, struct model_call, link));

        inbound->answer(inbound);
    }
    host_batch_go_on(&step->ready);
    while ((node = rt_list_pop_front(&step->effects.calls)))
        host_outbound_start(host, RT_LIST_ENTRY(node, struct model_call, link));
    rpc_wakeup_at(&host->wakeup, step->wakeup_us);
}

void host_step_end(struct host *host)
{
    struct step step;

    collect(host, &step);
    host_unlock(host);
    carry_out(host, &step);
}

bool host_submit(struct host *host, struct host_inbound *inbound)
{
    struct step step;
    bool is_answered;

    host_lock(host);
    inbound->is_in_core = true;
    rt_list_push_back(&host->inbound, &inbound->host_link);
    host->options.ops->submit(host->options.core, &inbound->call);
    collect(host, &step);
    is_answered = !inbound->is_in_core;
    host_unlock(host);
    carry_out(host, &step);
    return is_answered;
}

void host_responder(const struct host *host, struct model_responder *ret_responder)
{
    if (host->options.ops->responder)
        host->options.ops->responder(host->options.core, ret_responder);
}

void host_refuse(struct host *host, struct model_response *response, const struct rt_error *err)
{
    wire_response_refuse(response, err);
    host_lock(host);
    host_responder(host, &response->responder);
    host_unlock(host);
}

void host_cancel(struct host *host, struct host_inbound *inbound)
{
    host_lock(host);
    if (!inbound->is_in_core || inbound->call.cancelled) {
        host_unlock(host);
        return;
    }
    inbound->call.cancelled = true;
    host->options.ops->cancel(host->options.core, &inbound->call);
    host_step_end(host);
}

void host_call_done(struct host *host, struct model_call *call)
{
    host_lock(host);
    host->options.ops->call_done(host->options.core, call);
    host_step_end(host);
}

void host_txn_done(struct store_txn *txn, void *context)
{
    struct host *host = context;

    host_lock(host);
    host->options.ops->txn_done(host->options.core, txn);
    host_step_end(host);
}

void host_step(struct host *host, void (*fn)(void *core, void *argument), void *argument)
{
    host_lock(host);
    fn(host->options.core, argument);
    host_step_end(host);
}

void host_read(struct host *host, void (*fn)(void *core, void *argument), void *argument)
{
    host_lock(host);
    fn(host->options.core, argument);
    host_unlock(host);
}

static void on_due(struct rpc_wakeup *wakeup, void *ctx)
{
    struct host *host = ctx;

    (void)wakeup;
    host_lock(host);
    host->options.ops->tick(host->options.core);
    host_step_end(host);
}

static void on_lane_due(struct rpc_wakeup *wakeup, void *ctx)
{
    struct host *host = ctx;

    rpc_wakeup_at(wakeup,
                  host_lane_expire(host, rt_env_now_us(rpc_runtime_env(host->options.runtime))));
}

struct host *host_new(const struct host_options *options)
{
    struct host *host = rt_xalloc(sizeof(*host));

    host->options = *options;
    rt_list_init(&host->lost_txns);
    rt_list_init(&host->inbound);
    rt_list_init(&host->streams);
    rt_list_init(&host->ready);
    rt_list_init(&host->idle_operations);
    rt_list_init(&host->lanes);
    rt_list_init(&host->refused);
    (void)pthread_mutex_init(&host->lock, NULL);
    (void)pthread_mutex_init(&host->outbound_lock, NULL);
    host->peers = host_peers_new(options->runtime, rpc_runtime_env(options->runtime));
    rpc_wakeup_init(&host->wakeup, options->runtime, on_due, host);
    rpc_wakeup_init(&host->lane_wakeup, options->runtime, on_lane_due, host);
    return host;
}

void host_set_store(struct host *host, struct store *store)
{
    host->store = store;
}

void host_drop_store(struct host *host)
{
    host_lock(host);
    host->store = NULL;
    host->is_store_dropped = true;
    host_unlock(host);
}

void host_stop(struct host *host)
{
    (void)pthread_mutex_lock(&host->outbound_lock);
    host->is_stopping = true;
    (void)pthread_mutex_unlock(&host->outbound_lock);
}

/* Calls that the core never answered: their clients are gone with the runtime. */
static void release_inbound(struct host *host)
{
    struct rt_list *node;

    while ((node = rt_list_pop_front(&host->inbound))) {
        struct host_inbound *inbound = RT_LIST_ENTRY(node, struct host_inbound, host_link);

        model_response_fail(&inbound->call.response, MODEL_REASON_DRAINING, "the service stopped");
        inbound->call.response.error.applied = MODEL_APPLIED_MAYBE;
        inbound->is_in_core = false;
        if (inbound->note)
            inbound->note(inbound);
        else
            inbound->answer(inbound);
    }
    host_batch_go_on(&host->ready);
}

struct host *host_free(struct host *host)
{
    struct rt_list *node;

    if (!host)
        return NULL;
    rt_assert(rt_list_is_empty(&host->refused));
    release_inbound(host);
    host_batch_free_all(host);
    while ((node = rt_list_pop_front(&host->lost_txns)))
        (void)store_txn_free(RT_LIST_ENTRY(node, struct store_txn, link));
    host_lane_free_all(host);
    host->peers = host_peers_free(host->peers);
    (void)pthread_mutex_destroy(&host->outbound_lock);
    (void)pthread_mutex_destroy(&host->lock);
    return rt_free(host);
}
