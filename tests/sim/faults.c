/*
 * The weather: one fault after the other, each on random nodes for a random time. Invariant: every
 * fault that lasts queues its own end, and sim_faults_heal() ends all of them at once. One thread.
 */
#include "runtime/base/alloc.h"
#include "tests/sim/world.h"

/* The end of a fault that lasts. */
struct remedy {
    struct sim_world *world;
    enum sim_fault fault;
    uint8_t from;
    uint8_t to;
};

static struct sim_node *pick(struct sim_world *world, enum sim_node_kind kind)
{
    unsigned n = 0;

    for (unsigned i = 0; i < world->n_nodes; i++)
        n += world->nodes[i].kind == kind;
    rt_assert(n > 0);
    n = (unsigned)rt_rng_below(&world->rng, n);
    for (unsigned i = 0; i < world->n_nodes; i++)
        if (world->nodes[i].kind == kind && n-- == 0)
            return &world->nodes[i];
    rt_assert_failed("a node of the kind", __FILE__, __LINE__);
}

static struct sim_node *pick_any(struct sim_world *world)
{
    return &world->nodes[rt_rng_below(&world->rng, world->n_nodes)];
}

/* A part of a lease, or several. */
static uint64_t duration_us(struct sim_world *world)
{
    uint64_t lease_us = world->plan.member_lease.duration_us;

    if (rt_rng_below(&world->rng, 2) == 0)
        return 1000 + rt_rng_below(&world->rng, lease_us / 2);
    return lease_us / 2 + rt_rng_below(&world->rng, 3 * lease_us);
}

static struct sim_link *link_of(struct sim_world *world, uint8_t from, uint8_t to)
{
    return &world->network.links[from][to];
}

static void reset_link(struct sim_world *world, uint8_t from, uint8_t to)
{
    *link_of(world, from, to) = (struct sim_link){
        .loss_ppm = world->plan.loss_ppm,
        .duplicate_ppm = world->plan.duplicate_ppm,
    };
}

static void cut_all(struct sim_world *world, uint8_t node, bool is_cut)
{
    for (uint8_t other = 0; other < world->n_nodes; other++) {
        link_of(world, node, other)->is_cut = is_cut;
        link_of(world, other, node)->is_cut = is_cut;
    }
}

static void on_remedy(void *ctx)
{
    struct remedy remedy = *(struct remedy *)ctx;
    struct sim_world *world = remedy.world;
    struct sim_node *from = &world->nodes[remedy.from];

    (void)rt_free(ctx);
    if (world->is_healed)
        return;
    switch (remedy.fault) {
    case SIM_FAULT_LOSS:
    case SIM_FAULT_DELAY:
    case SIM_FAULT_CUT:
        reset_link(world, remedy.from, remedy.to);
        break;
    case SIM_FAULT_ISOLATION:
        reset_link(world, remedy.from, remedy.to);
        reset_link(world, remedy.to, remedy.from);
        break;
    case SIM_FAULT_PARTITION:
        cut_all(world, remedy.from, false);
        break;
    case SIM_FAULT_INSTANCE_CRASH:
    case SIM_FAULT_COORDINATOR_CRASH:
    case SIM_FAULT_CLIENT_CRASH:
        sim_node_start(from);
        break;
    case SIM_FAULT_DISK_FULL:
        sim_disk_set_full(from->disk, false);
        break;
    case SIM_FAULT_DUPLICATE:
    case SIM_FAULT_RESET:
    case SIM_FAULT_PAUSE:
    case SIM_FAULT_COMMIT_PAUSE:
    case SIM_FAULT_RENEW_PAUSE:
    case SIM_FAULT_COORDINATOR_PAUSE:
    case SIM_FAULT_DISK_STALL:
    case SIM_FAULT_DISK_UNKNOWN:
    case SIM_FAULT_HEARTBEAT_STALL:
    case SIM_N_FAULTS:
        break;
    }
}

static void drop_remedy(void *ctx)
{
    (void)rt_free(ctx);
}

static void remedy_later(struct sim_world *world, enum sim_fault fault, uint8_t from, uint8_t to)
{
    struct remedy *remedy = rt_xalloc(sizeof(*remedy));

    *remedy = (struct remedy){.world = world, .fault = fault, .from = from, .to = to};
    sim_queue_push(&world->queue, world->now_us + duration_us(world), on_remedy, drop_remedy,
                   remedy);
}

static void note(struct sim_world *world, enum sim_fault fault, const struct sim_node *node)
{
    sim_stats_fault(&world->stats, fault);
    sim_world_trace(world, SIM_TRACE_FAULT, node, SIM_NO_KEY, (uint64_t)fault);
}

static void crash(struct sim_world *world, enum sim_fault fault, struct sim_node *node)
{
    if (!node->is_up)
        return;
    note(world, fault, node);
    sim_node_crash(node);
    if (rt_rng_below(&world->rng, 3) == 0)
        sim_node_start(node);
    else
        remedy_later(world, fault, node->index, 0);
}

static void pause(struct sim_world *world, enum sim_fault fault, struct sim_node *node)
{
    note(world, fault, node);
    sim_node_pause(node, sim_world_pause_us(world));
}

static void break_link(struct sim_world *world, enum sim_fault fault)
{
    struct sim_node *from = pick_any(world);
    struct sim_node *to = pick_any(world);
    struct sim_link *link = link_of(world, from->index, to->index);

    note(world, fault, from);
    if (fault == SIM_FAULT_RESET) {
        sim_network_reset(&world->network, from, to);
        return;
    }
    if (fault == SIM_FAULT_LOSS)
        link->loss_ppm = 300000;
    else if (fault == SIM_FAULT_DELAY)
        link->delay_us = rt_rng_below(&world->rng, world->plan.member_lease.duration_us);
    else
        link->is_cut = true;
    remedy_later(world, fault, from->index, to->index);
}

/* Clients still reach the instance; its renewals, or the answers to them, do not get through. */
static void isolate(struct sim_world *world)
{
    struct sim_node *instance = pick(world, SIM_NODE_INSTANCE);
    struct sim_node *coordinator = sim_world_coordinator(world);
    uint64_t ways = 1 + rt_rng_below(&world->rng, 3);

    note(world, SIM_FAULT_ISOLATION, instance);
    if (ways & 1)
        link_of(world, instance->index, coordinator->index)->is_cut = true;
    if (ways & 2)
        link_of(world, coordinator->index, instance->index)->is_cut = true;
    remedy_later(world, SIM_FAULT_ISOLATION, instance->index, coordinator->index);
}

static void hurt_disk(struct sim_world *world, enum sim_fault fault)
{
    struct sim_node *node = rt_rng_below(&world->rng, 5) == 0 && fault != SIM_FAULT_HEARTBEAT_STALL
                                ? sim_world_coordinator(world)
                                : pick(world, SIM_NODE_INSTANCE);

    note(world, fault, node);
    if (fault == SIM_FAULT_DISK_FULL) {
        sim_disk_set_full(node->disk, true);
        remedy_later(world, fault, node->index, 0);
    } else if (fault == SIM_FAULT_DISK_UNKNOWN) {
        sim_disk_fail_next(node->disk);
    } else {
        sim_disk_stall(node->disk, world->now_us + duration_us(world),
                       fault == SIM_FAULT_HEARTBEAT_STALL);
    }
}

static void strike(struct sim_world *world, enum sim_fault fault)
{
    struct sim_node *node;

    switch (fault) {
    case SIM_FAULT_LOSS:
    case SIM_FAULT_DELAY:
    case SIM_FAULT_RESET:
    case SIM_FAULT_CUT:
        break_link(world, fault);
        break;
    case SIM_FAULT_PARTITION:
        node = pick_any(world);
        note(world, fault, node);
        cut_all(world, node->index, true);
        remedy_later(world, fault, node->index, 0);
        break;
    case SIM_FAULT_PAUSE:
    case SIM_FAULT_DUPLICATE:
    case SIM_FAULT_COMMIT_PAUSE:
    case SIM_FAULT_RENEW_PAUSE:
        pause(world, SIM_FAULT_PAUSE, pick(world, SIM_NODE_INSTANCE));
        break;
    case SIM_FAULT_COORDINATOR_PAUSE:
        pause(world, fault, sim_world_coordinator(world));
        break;
    case SIM_FAULT_INSTANCE_CRASH:
        crash(world, fault, pick(world, SIM_NODE_INSTANCE));
        break;
    case SIM_FAULT_COORDINATOR_CRASH:
        crash(world, fault, sim_world_coordinator(world));
        break;
    case SIM_FAULT_CLIENT_CRASH:
        crash(world, fault,
              pick(world, rt_rng_below(&world->rng, 3) == 0 ? SIM_NODE_LIBRARY : SIM_NODE_CLIENT));
        break;
    case SIM_FAULT_ISOLATION:
        isolate(world);
        break;
    case SIM_FAULT_DISK_FULL:
    case SIM_FAULT_DISK_STALL:
    case SIM_FAULT_DISK_UNKNOWN:
    case SIM_FAULT_HEARTBEAT_STALL:
        hurt_disk(world, fault);
        break;
    case SIM_N_FAULTS:
        break;
    }
}

static void on_fault(void *ctx)
{
    struct sim_world *world = ctx;

    if (world->is_healed)
        return;
    strike(world, (enum sim_fault)rt_rng_below(&world->rng, SIM_N_FAULTS));
    sim_queue_push(&world->queue,
                   world->now_us + 1 + rt_rng_below(&world->rng, 2 * world->plan.fault_gap_us),
                   on_fault, NULL, world);
}

void sim_faults_start(struct sim_world *world)
{
    for (uint8_t from = 0; from < world->n_nodes; from++)
        for (uint8_t to = 0; to < world->n_nodes; to++)
            reset_link(world, from, to);
    sim_queue_push(&world->queue, world->now_us + world->plan.member_lease.duration_us, on_fault,
                   NULL, world);
}

/* A disk that gave an unknown outcome stays unusable until its process is restarted. */
void sim_faults_heal(struct sim_world *world)
{
    world->is_healed = true;
    sim_network_heal(&world->network);
    for (unsigned i = 0; i < world->n_nodes; i++) {
        struct sim_node *node = &world->nodes[i];

        if (node->disk)
            sim_disk_heal(node->disk);
        sim_node_resume(node);
        if (node->disk && node->is_up && sim_disk_is_failed(node->disk))
            sim_node_crash(node);
        sim_node_start(node);
    }
}
