/*
 * An instance's process: its core, loaded from the disk; a new boot_id each time, the same store.
 * One that stops for good, or whose disk gave an unknown outcome, is restarted by its supervisor
 * after a while. Invariant: node->core is the inst_core. One thread.
 */
#include <stdio.h>

#include "instance/core.h"
#include "tests/sim/world.h"

static bool load_row(struct rt_bytes key, struct rt_bytes value, void *ctx)
{
    struct rt_error err = RT_ERROR_INIT;

    rt_assert(inst_core_load(ctx, key, value, &err) == RT_OK);
    return true;
}

static void instance_create(struct sim_node *node)
{
    struct sim_world *world = node->world;
    struct inst_config config = {
        .store_id = node->store_id,
        .machine_id = node->store_id,
        .local_store = true,
        .entries_total = world->plan.n_entries,
        .entry_size = world->plan.entry_size,
        .policy = world->plan.policy,
        .eviction = world->plan.eviction,
        .dump_interval_us = world->plan.dump_us,
    };
    struct inst_core *core;
    enum rt_code code;

    (void)snprintf(config.name, sizeof(config.name), "%s", node->name);
    (void)snprintf(config.address, sizeof(config.address), "%s", node->name);
    (void)snprintf(config.coordinator_address, sizeof(config.coordinator_address), "%s",
                   sim_world_coordinator(world)->name);
    sim_world_random_id(world, &config.boot_id);
    code = inst_core_new(&config, &node->env, &core, NULL);
    rt_assert(code == RT_OK);
    node->core = core;
    code =
        store_range(sim_disk_store(node->disk), (struct rt_bytes){0}, load_row, NULL, core, NULL);
    rt_assert(code == RT_OK);
    inst_core_start(core);
}

static void instance_destroy(struct sim_node *node)
{
    (void)inst_core_free(node->core);
}

static void instance_submit(struct sim_node *node, struct model_call *call)
{
    inst_core_submit(node->core, call);
}

static void instance_cancel(struct sim_node *node, struct model_call *call)
{
    inst_core_cancel(node->core, call);
}

static void instance_call_done(struct sim_node *node, struct model_call *call)
{
    inst_core_call_done(node->core, call);
}

static void instance_txn_done(struct sim_node *node, struct store_txn *txn)
{
    inst_core_txn_done(node->core, txn);
}

static void instance_tick(struct sim_node *node)
{
    inst_core_tick(node->core);
}

static uint64_t instance_next_wakeup_us(struct sim_node *node)
{
    return inst_core_next_wakeup_us(node->core);
}

static struct model_effects *instance_effects(struct sim_node *node)
{
    return inst_core_effects(node->core);
}

static void instance_settled(struct sim_node *node)
{
    uint64_t number;

    while (inst_core_take_heartbeat(node->core, &number))
        sim_disk_write_heartbeat(node->disk, number);
    if (sim_disk_is_failed(node->disk) || inst_core_state(node->core) == INST_STATE_STOPPED)
        sim_node_restart_soon(node);
}

const struct sim_core_ops sim_instance_ops = {
    .create = instance_create,
    .destroy = instance_destroy,
    .submit = instance_submit,
    .cancel = instance_cancel,
    .call_done = instance_call_done,
    .txn_done = instance_txn_done,
    .tick = instance_tick,
    .next_wakeup_us = instance_next_wakeup_us,
    .effects = instance_effects,
    .settled = instance_settled,
};
