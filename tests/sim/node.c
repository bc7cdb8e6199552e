/*
 * Lives of simulated processes: see node.h. Invariant: a core is stepped only while its node is up
 * and not paused, and its effects are taken after every step. One thread.
 */
#include "tests/sim/node.h"

#include <stdio.h>

#include "runtime/base/alloc.h"
#include "tests/sim/world.h"

enum {
    SUPERVISOR_DELAY_US = 500000,
    TICK_WINDOW_US = 10000,
    TICKS_MAX = 1000,
};

struct work {
    struct rt_list link;
    struct sim_node *node;
    uint64_t life;
    sim_event_fn run;
    sim_event_fn drop; /* may be NULL */
    void *ctx;
};

static void drop_work(void *ctx)
{
    struct work *work = ctx;

    if (work->drop)
        work->drop(work->ctx);
    (void)rt_free(work);
}

static void run_work(struct work *work)
{
    struct sim_node *node = work->node;
    sim_event_fn run = work->run;
    void *ctx = work->ctx;

    (void)rt_free(work);
    run(ctx);
    sim_node_settle(node);
}

static void on_work(void *ctx)
{
    struct work *work = ctx;
    struct sim_node *node = work->node;

    if (!node->is_up || node->life != work->life)
        drop_work(work);
    else if (node->is_paused)
        rt_list_push_back(&node->inbox, &work->link);
    else
        run_work(work);
}

static struct work *work_new(struct sim_node *node, sim_event_fn run, sim_event_fn drop, void *ctx)
{
    struct work *work = rt_xalloc(sizeof(*work));

    rt_list_init(&work->link);
    work->node = node;
    work->life = node->life;
    work->run = run;
    work->drop = drop;
    work->ctx = ctx;
    return work;
}

void sim_node_happen(struct sim_node *node, sim_event_fn run, sim_event_fn drop, void *ctx)
{
    on_work(work_new(node, run, drop, ctx));
}

void sim_node_later(struct sim_node *node, uint64_t at_us, sim_event_fn run, sim_event_fn drop,
                    void *ctx)
{
    /* What is overdue happens now. */
    if (at_us < node->world->now_us)
        at_us = node->world->now_us;
    sim_queue_push(&node->world->queue, at_us, on_work, drop_work, work_new(node, run, drop, ctx));
}

static uint64_t node_now(void *ctx)
{
    return sim_node_now_us(ctx);
}

static uint64_t node_random(void *ctx)
{
    struct sim_node *node = ctx;

    return rt_rng_next(&node->rng);
}

uint64_t sim_node_now_us(const struct sim_node *node)
{
    return sim_clock_local(&node->clock, node->world->now_us);
}

void sim_node_init(struct sim_node *node, struct sim_world *world, enum sim_node_kind kind,
                   unsigned ordinal)
{
    static const struct sim_core_ops *const ops[] = {
        [SIM_NODE_COORDINATOR] = &sim_coordinator_ops, [SIM_NODE_INSTANCE] = &sim_instance_ops,
        [SIM_NODE_CLIENT] = &sim_client_ops,           [SIM_NODE_DIRECT] = &sim_direct_ops,
        [SIM_NODE_LIBRARY] = &sim_library_ops,
    };
    static const char *const names[] = {"C", "I", "E", "D", "L"};

    *node = (struct sim_node){.world = world, .ops = ops[kind], .kind = kind};
    node->index = (uint8_t)(node - world->nodes);
    (void)snprintf(node->name, sizeof(node->name), "%s%u", names[kind], ordinal % 1000);
    rt_rng_seed(&node->rng, rt_rng_next(&world->rng));
    node->env = (struct rt_env){.now_us = node_now, .random = node_random, .ctx = node};
    node->wake_at_us = RT_NEVER;
    rt_list_init(&node->inbox);
    sim_world_random_id(world, &node->store_id);
    if (kind == SIM_NODE_COORDINATOR || kind == SIM_NODE_INSTANCE)
        node->disk = sim_disk_new(node);
}

void sim_node_deinit(struct sim_node *node)
{
    if (node->is_up)
        sim_node_crash(node);
    node->disk = sim_disk_free(node->disk);
}

void sim_node_start(struct sim_node *node)
{
    struct sim_world *world = node->world;
    uint64_t range_ppm = world->plan.clock_error_ppm;

    if (node->is_up)
        return;
    node->is_up = true;
    node->is_doomed = false;
    node->n_heartbeats = 0;
    node->n_renews = 0;
    node->life++;
    node->wake_at_us = RT_NEVER;
    node->clock.offset_us = 1000000 + rt_rng_below(&world->rng, 1000000000000u);
    node->clock.rate_ppm =
        (int64_t)rt_rng_below(&world->rng, 2 * range_ppm + 1) - (int64_t)range_ppm;
    sim_world_trace(world, SIM_TRACE_START, node, SIM_NO_KEY, node->life);
    node->ops->create(node);
    sim_node_settle(node);
}

void sim_node_crash(struct sim_node *node)
{
    struct rt_list *link;

    if (!node->is_up)
        return;
    sim_world_trace(node->world, SIM_TRACE_CRASH, node, SIM_NO_KEY, node->life);
    node->is_up = false;
    node->is_paused = false;
    while ((link = rt_list_pop_front(&node->inbox)) != NULL)
        drop_work(RT_LIST_ENTRY(link, struct work, link));
    sim_checker_on_crash(&node->world->checker, node);
    sim_network_forget_calls(&node->world->network, node);
    node->ops->destroy(node);
    node->core = NULL;
    sim_network_abandon_inbound(&node->world->network, node);
    if (node->disk)
        sim_disk_crash(node->disk);
}

static void on_restart(void *ctx)
{
    struct sim_node *node = ctx;

    if (!node->is_up || !node->is_doomed)
        return;
    sim_node_crash(node);
    sim_node_start(node);
}

void sim_node_restart_soon(struct sim_node *node)
{
    struct sim_world *world = node->world;

    if (node->is_doomed)
        return;
    node->is_doomed = true;
    sim_queue_push(&world->queue,
                   world->now_us + SUPERVISOR_DELAY_US +
                       rt_rng_below(&world->rng, SUPERVISOR_DELAY_US),
                   on_restart, NULL, node);
}

static void on_pause_over(void *ctx)
{
    struct sim_node *node = ctx;

    if (node->is_up && node->is_paused && node->world->now_us >= node->pause_until_us)
        sim_node_resume(node);
}

void sim_node_pause(struct sim_node *node, uint64_t duration_us)
{
    uint64_t until_us = node->world->now_us + duration_us;

    if (!node->is_up || (node->is_paused && until_us <= node->pause_until_us))
        return;
    if (!node->is_paused)
        sim_world_trace(node->world, SIM_TRACE_PAUSE, node, SIM_NO_KEY, duration_us);
    node->is_paused = true;
    node->pause_until_us = until_us;
    sim_queue_push(&node->world->queue, until_us, on_pause_over, NULL, node);
}

void sim_node_resume(struct sim_node *node)
{
    struct rt_list *link;

    if (!node->is_up || !node->is_paused)
        return;
    node->is_paused = false;
    sim_world_trace(node->world, SIM_TRACE_RESUME, node, SIM_NO_KEY, 0);
    while (!node->is_paused && node->is_up && (link = rt_list_pop_front(&node->inbox)) != NULL)
        run_work(RT_LIST_ENTRY(link, struct work, link));
}

/* A core that asks to be woken for nothing keeps a processor busy in a real server. */
static void check_busy(struct sim_node *node)
{
    struct sim_world *world = node->world;

    if (world->now_us >= node->tick_window_us + TICK_WINDOW_US) {
        node->tick_window_us = world->now_us;
        node->n_ticks = 0;
    }
    if (++node->n_ticks > TICKS_MAX)
        sim_world_violation(world, "busy", SIM_NO_KEY, "%s asks to be woken %u times in %u us",
                            node->name, (unsigned)node->n_ticks, (unsigned)TICK_WINDOW_US);
}

static void on_wake(void *ctx)
{
    struct sim_node *node = ctx;

    if (node->wake_at_us > node->world->now_us)
        return; /* an earlier wake-up has asked for a later one */
    node->wake_at_us = RT_NEVER;
    check_busy(node);
    node->ops->tick(node);
}

static void schedule_wake(struct sim_node *node)
{
    uint64_t at_us = sim_clock_global(&node->clock, node->ops->next_wakeup_us(node));

    if (at_us == RT_NEVER)
        return;
    if (at_us <= node->world->now_us)
        at_us = node->world->now_us + 1;
    if (at_us >= node->wake_at_us)
        return;
    node->wake_at_us = at_us;
    sim_node_later(node, at_us, on_wake, NULL, node);
}

static void carry_out(struct sim_node *node)
{
    struct model_effects taken;
    struct rt_list *link;

    model_effects_take(node->ops->effects(node), &taken);
    while ((link = rt_list_pop_front(&taken.txns)) != NULL)
        sim_disk_submit(node->disk, RT_LIST_ENTRY(link, struct store_txn, link));
    while ((link = rt_list_pop_front(&taken.replies)) != NULL)
        sim_network_reply(node, RT_LIST_ENTRY(link, struct model_call, link));
    while ((link = rt_list_pop_front(&taken.calls)) != NULL)
        sim_network_call(node, RT_LIST_ENTRY(link, struct model_call, link));
}

void sim_node_settle(struct sim_node *node)
{
    carry_out(node);
    if (node->ops->settled)
        node->ops->settled(node);
    if (!model_effects_is_empty(node->ops->effects(node)))
        carry_out(node);
    schedule_wake(node);
}
