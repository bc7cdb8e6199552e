/*
 * Scripts under a planner: see planned.h. The keeper steps on both threads, so what it came to is
 * under `lock`; the drive makes no calls and steps on the loop thread alone.
 */
#include "esi-client/planned.h"

#include <pthread.h>
#include <stdio.h>

#include "esi-client/keeper.h"
#include "runtime/base/alloc.h"

struct esi_planned {
    struct esi_planned_setup setup;
    struct rt_bytes *blocked; /* owned array; into the options */
    size_t n_blocked;
    struct esi_drive *drive;   /* owned */
    struct host *drive_host;   /* owned */
    struct esi_keeper *keeper; /* owned; NULL without blocked keys */
    struct host *keeper_host;  /* owned */
    bool has_begun;
    bool is_ending;
    struct rt_list orders; /* esi_drive_order.link */
    char failure[MODEL_ERROR_MESSAGE_MAX + 1];
    pthread_mutex_t lock;
    enum esi_keeper_state keeper_state; /* under lock, as the next */
    char keeper_failure[MODEL_ERROR_MESSAGE_MAX + 1];
};

/* ---- the drive ------------------------------------------------------------------------------- */

static void drive_tick(void *drive)
{
    esi_drive_tick(drive);
}

static uint64_t drive_next_wakeup_us(const void *drive)
{
    return esi_drive_next_wakeup_us(drive);
}

static struct model_effects *drive_effects(void *drive)
{
    return esi_drive_effects(drive);
}

static const struct host_core_ops drive_ops = {
    .tick = drive_tick,
    .next_wakeup_us = drive_next_wakeup_us,
    .effects = drive_effects,
};

static void after_drive_step(void *ctx)
{
    struct esi_planned *planned = ctx;
    struct esi_drive_order *order;

    while ((order = esi_drive_take_order(planned->drive)))
        rt_list_push_back(&planned->orders, &order->link);
    planned->setup.wake(planned->setup.ctx);
}

static void begin(void *drive, void *argument)
{
    (void)argument;
    esi_drive_begin(drive);
}

struct telling {
    size_t number;
    const struct esi_drive_note *note;
};

static void tell(void *drive, void *argument)
{
    const struct telling *telling = argument;

    esi_drive_take_note(drive, telling->number, telling->note);
}

/* ---- the keeper ------------------------------------------------------------------------------ */

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
    struct esi_planned *planned = ctx;
    enum esi_keeper_state state = esi_keeper_state(planned->keeper);
    const char *failure = esi_keeper_failure(planned->keeper);
    bool has_news;

    (void)pthread_mutex_lock(&planned->lock);
    has_news = state != planned->keeper_state;
    planned->keeper_state = state;
    (void)snprintf(planned->keeper_failure, sizeof(planned->keeper_failure), "%s",
                   failure ? failure : "");
    (void)pthread_mutex_unlock(&planned->lock);
    if (has_news)
        planned->setup.wake(planned->setup.ctx);
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

static void unlock(void *keeper, void *argument)
{
    const struct rt_bytes *key = argument;

    esi_keeper_unlock(keeper, *key);
}

static enum esi_keeper_state keeper_state(struct esi_planned *planned)
{
    enum esi_keeper_state state;

    (void)pthread_mutex_lock(&planned->lock);
    state = planned->keeper_state;
    memcpy(planned->failure, planned->keeper_failure, sizeof(planned->failure));
    (void)pthread_mutex_unlock(&planned->lock);
    return state;
}

static void open_keeper(struct esi_planned *planned)
{
    const struct esi_options *options = planned->setup.options;
    const struct rt_env *env = rpc_runtime_env(planned->setup.runtime);
    struct esi_session_config config = {
        .name = "system",
        .statement_timeout_us = options->statement_timeout_ms * 1000,
    };
    struct host_options host = {.runtime = planned->setup.runtime,
                                .ops = &keeper_ops,
                                .after_step = after_keeper_step,
                                .ctx = planned};
    uint64_t client[2] = {rt_env_random(env), rt_env_random(env)};

    (void)snprintf(config.coordinator_address, sizeof(config.coordinator_address), "%s",
                   options->coordinator);
    memcpy(config.client_id.bytes, client, sizeof(config.client_id.bytes));
    planned->keeper = esi_keeper_new(&config, env, planned->blocked, planned->n_blocked);
    host.core = planned->keeper;
    planned->keeper_host = host_new(&host);
    host_step(planned->keeper_host, start_keeper, NULL);
}

/* ---- both ------------------------------------------------------------------------------------ */

struct esi_planned *esi_planned_new(const struct esi_planned_setup *setup)
{
    struct esi_planned *planned = rt_xalloc(sizeof(*planned));
    struct esi_drive_config config = {.planner = setup->options->planner,
                                      .n_scripts = setup->options->n_scripts};
    struct host_options host = {.runtime = setup->runtime,
                                .ops = &drive_ops,
                                .after_step = after_drive_step,
                                .ctx = planned};

    planned->setup = *setup;
    (void)pthread_mutex_init(&planned->lock, NULL);
    rt_list_init(&planned->orders);
    /* The options were checked. */
    (void)!esi_options_split(setup->options->blocked, &planned->blocked, &planned->n_blocked, NULL);
    config.blocked = planned->blocked;
    config.n_blocked = planned->n_blocked;
    planned->drive = esi_drive_new(&config, rpc_runtime_env(setup->runtime));
    host.core = planned->drive;
    planned->drive_host = host_new(&host);
    planned->keeper_state = planned->n_blocked > 0 ? ESI_KEEPER_LOCKING : ESI_KEEPER_READY;
    if (planned->n_blocked > 0)
        open_keeper(planned);
    setup->wake(setup->ctx);
    return planned;
}

struct esi_planned *esi_planned_free(struct esi_planned *planned)
{
    struct rt_list *node;

    if (!planned)
        return NULL;
    planned->drive_host = host_free(planned->drive_host);
    planned->drive = esi_drive_free(planned->drive);
    planned->keeper_host = host_free(planned->keeper_host);
    planned->keeper = esi_keeper_free(planned->keeper);
    while ((node = rt_list_pop_front(&planned->orders)))
        (void)rt_free(RT_LIST_ENTRY(node, struct esi_drive_order, link));
    (void)rt_free(planned->blocked);
    (void)pthread_mutex_destroy(&planned->lock);
    return rt_free(planned);
}

void esi_planned_note(struct esi_planned *planned, size_t number, const struct esi_drive_note *note)
{
    struct telling telling = {number, note};

    host_step(planned->drive_host, tell, &telling);
}

void esi_planned_work(struct esi_planned *planned)
{
    struct rt_list *node;

    if (!planned->has_begun && keeper_state(planned) == ESI_KEEPER_READY) {
        planned->has_begun = true;
        host_step(planned->drive_host, begin, NULL);
    }
    while ((node = rt_list_pop_front(&planned->orders))) {
        struct esi_drive_order *order = RT_LIST_ENTRY(node, struct esi_drive_order, link);

        if (order->kind == ESI_DRIVE_GRANT)
            planned->setup.grant(planned->setup.ctx, order->number);
        else
            host_step(planned->keeper_host, unlock, &planned->blocked[order->number]);
        (void)rt_free(order);
    }
}

enum esi_planned_state esi_planned_state(struct esi_planned *planned)
{
    switch (keeper_state(planned)) {
    case ESI_KEEPER_LOCKING:
        return ESI_PLANNED_LOCKING;
    case ESI_KEEPER_READY:
        return planned->is_ending && !planned->keeper ? ESI_PLANNED_ENDED : ESI_PLANNED_READY;
    case ESI_KEEPER_LOST:
        return planned->is_ending ? ESI_PLANNED_ENDED : ESI_PLANNED_LOST;
    case ESI_KEEPER_STOPPED:
        break;
    }
    return ESI_PLANNED_ENDED;
}

const char *esi_planned_failure(const struct esi_planned *planned)
{
    return planned->failure;
}

struct taking {
    struct esi_event *event;
    size_t *numbers;
    size_t n;
};

static void take_event(void *drive, void *argument)
{
    ((struct taking *)argument)->event = esi_drive_take_event(drive);
}

struct esi_event *esi_planned_take_event(struct esi_planned *planned)
{
    struct taking taking = {0};

    host_read(planned->drive_host, take_event, &taking);
    return taking.event;
}

static void take_deadlock(void *drive, void *argument)
{
    struct taking *taking = argument;

    taking->n = esi_drive_take_deadlock(drive, taking->numbers);
}

size_t esi_planned_take_deadlock(struct esi_planned *planned, size_t *numbers)
{
    struct taking taking = {.numbers = numbers};

    host_read(planned->drive_host, take_deadlock, &taking);
    return taking.n;
}

void esi_planned_end(struct esi_planned *planned)
{
    if (planned->is_ending)
        return;
    planned->is_ending = true;
    if (planned->keeper)
        host_step(planned->keeper_host, stop_keeper, NULL);
    planned->setup.wake(planned->setup.ctx);
}

void esi_planned_halt(struct esi_planned *planned)
{
    host_stop(planned->drive_host);
    if (planned->keeper_host)
        host_stop(planned->keeper_host);
}
