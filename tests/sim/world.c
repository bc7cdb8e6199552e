/*
 * The life of a simulated cluster: see world.h. Invariant: simulated time never falls, and nothing
 * happens outside the queue's events once the nodes have started. One thread.
 */
#include "tests/sim/world.h"

#include "runtime/base/alloc.h"

enum {
    SECOND_US = 1000000
};

/* ---- small services -------------------------------------------------------------------------- */

bool sim_world_chance(struct sim_world *world, uint32_t ppm)
{
    return ppm > 0 && rt_rng_below(&world->rng, 1000000) < ppm;
}

void sim_world_random_id(struct sim_world *world, struct model_id *ret_id)
{
    for (size_t i = 0; i < 2; i++) {
        uint64_t word = rt_rng_next(&world->rng);

        memcpy(&ret_id->bytes[i * sizeof(word)], &word, sizeof(word));
    }
}

uint64_t sim_world_pause_us(struct sim_world *world)
{
    uint64_t lease_us = world->plan.member_lease.duration_us;

    switch (rt_rng_below(&world->rng, 4)) {
    case 0:
        return 1 + rt_rng_below(&world->rng, 20000);
    case 1:
        return 1 + rt_rng_below(&world->rng, lease_us);
    default:
        return lease_us * 2 / 3 + rt_rng_below(&world->rng, 2 * lease_us);
    }
}

struct sim_node *sim_world_coordinator(struct sim_world *world)
{
    return &world->nodes[0];
}

struct sim_node *sim_world_node_at(struct sim_world *world, const char *address)
{
    for (unsigned i = 0; i < world->n_nodes; i++)
        if (strcmp(world->nodes[i].name, address) == 0)
            return &world->nodes[i];
    rt_assert(!"a node has this address");
    return NULL;
}

static const char *const keys[SIM_KEYS_MAX] = {"k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"};

struct rt_bytes sim_world_key(uint8_t index)
{
    rt_assert(index < SIM_KEYS_MAX);
    return rt_bytes_of_string(keys[index]);
}

uint8_t sim_world_key_index(struct rt_bytes key)
{
    if (key.size != 2 || key.data[0] != 'k' || key.data[1] < '0' ||
        key.data[1] >= '0' + SIM_KEYS_MAX)
        return SIM_NO_KEY;
    return (uint8_t)(key.data[1] - '0');
}

static const char *name_of(void *ctx, uint8_t node)
{
    const struct sim_world *world = ctx;

    return node < world->n_nodes ? world->nodes[node].name : "--";
}

/* ---- phases ---------------------------------------------------------------------------------- */

static void add_nodes(struct sim_world *world, enum sim_node_kind kind, unsigned n)
{
    rt_assert(world->n_nodes + n <= SIM_NODES_MAX);
    for (unsigned i = 0; i < n; i++)
        sim_node_init(&world->nodes[world->n_nodes++], world, kind, i);
}

static void begin(struct sim_world *world)
{
    const struct sim_plan *plan = &world->plan;

    add_nodes(world, SIM_NODE_COORDINATOR, 1);
    rt_assert(plan->n_instances < SIM_INSTANCES_MAX);
    add_nodes(world, SIM_NODE_INSTANCE, plan->n_instances);
    add_nodes(world, SIM_NODE_CLIENT, plan->n_clients);
    add_nodes(world, SIM_NODE_DIRECT, plan->n_directs);
    add_nodes(world, SIM_NODE_LIBRARY, plan->n_libraries);
    sim_faults_start(world);
    for (unsigned i = 0; i < world->n_nodes; i++)
        sim_node_start(&world->nodes[i]);
}

/* Runs events up to that time, or until the condition holds. */
static void advance(struct sim_world *world, uint64_t until_us,
                    bool (*is_enough)(struct sim_world *world))
{
    struct sim_event event;

    while (!world->is_failed && world->queue.n_events > 0 &&
           world->queue.heap[0].at_us <= until_us && !(is_enough && is_enough(world)) &&
           sim_queue_pop(&world->queue, &event)) {
        rt_assert(event.at_us >= world->now_us);
        world->now_us = event.at_us;
        world->stats.n_events++;
        event.run(event.ctx);
    }
    if (!world->is_failed && !(is_enough && is_enough(world)))
        world->now_us = until_us;
}

static bool are_clients_idle(struct sim_world *world)
{
    for (unsigned i = 0; i < world->n_nodes; i++) {
        const struct sim_node *node = &world->nodes[i];

        if (node->kind == SIM_NODE_CLIENT && !sim_client_is_idle(node))
            return false;
        if (node->kind == SIM_NODE_DIRECT && !sim_direct_is_idle(node))
            return false;
        if (node->kind == SIM_NODE_LIBRARY && !sim_library_is_idle(node))
            return false;
    }
    return true;
}

static struct sim_node *verifier(struct sim_world *world)
{
    return &world->nodes[1 + world->plan.n_instances];
}

static bool is_verified(struct sim_world *world)
{
    return sim_client_is_verified(verifier(world));
}

/* Time for leases that ran when the weather cleared to end, and a few seconds. */
static uint64_t recovery_us(const struct sim_world *world)
{
    return 2 * (model_lease_dead_at(&world->plan.member_lease, 0) +
                model_lease_dead_at(&world->plan.other_lease, 0) +
                model_lease_dead_at(&world->plan.session_lease, 0)) +
           8 * (uint64_t)SECOND_US;
}

static bool has_looked(struct sim_world *world)
{
    return sim_coordinator_has_looked(sim_world_coordinator(world));
}

/* What an operator sees now. */
static void look(struct sim_world *world)
{
    sim_coordinator_look(sim_world_coordinator(world));
    advance(world, world->now_us + 8 * (uint64_t)SECOND_US, has_looked);
    if (!world->is_failed && !has_looked(world))
        sim_world_violation(world, "liveness", SIM_NO_KEY, "the status of a key was not answered");
}

static void rest(struct sim_world *world)
{
    world->is_stopping = true;
    advance(world, world->now_us + recovery_us(world), are_clients_idle);
    if (!world->is_failed && !are_clients_idle(world))
        sim_world_violation(world, "liveness", SIM_NO_KEY, "a statement or a session never ended");
    advance(world, world->now_us + recovery_us(world), NULL);
    for (unsigned i = 0; i <= world->plan.n_instances; i++) {
        unsigned n = sim_network_n_unanswered(&world->network, &world->nodes[i]);

        if (n > 0)
            sim_world_violation(world, "I13", SIM_NO_KEY, "%s never answered %u calls",
                                world->nodes[i].name, n);
    }
    if (!world->is_failed)
        look(world);
}

static void verify(struct sim_world *world)
{
    uint64_t limit_us = world->now_us + 8 * (uint64_t)SECOND_US;

    if (world->is_failed)
        return;
    sim_client_verify(verifier(world));
    advance(world, limit_us, is_verified);
    if (!world->is_failed && !is_verified(world))
        sim_world_violation(world, "liveness", SIM_NO_KEY,
                            "a key could not be locked, read, set and stored after everything "
                            "had recovered");
}

static void live(struct sim_world *world)
{
    begin(world);
    advance(world, world->plan.fault_phase_us, NULL);
    if (!world->is_failed)
        sim_faults_heal(world);
    advance(world, world->now_us + world->plan.member_lease.duration_us, NULL);
    if (!world->is_failed)
        rest(world);
    verify(world);
    if (!world->is_failed)
        sim_final_check(world);
}

static void end(struct sim_world *world)
{
    for (unsigned i = 0; i < world->n_nodes; i++)
        sim_node_deinit(&world->nodes[i]);
    sim_queue_deinit(&world->queue);
    sim_network_deinit(&world->network);
    sim_checker_deinit(&world->checker);
    sim_history_deinit(&world->history);
    sim_trace_deinit(&world->trace);
}

void sim_world_run(const struct sim_options *options, struct sim_stats *ret_stats,
                   uint64_t *ret_hash)
{
    struct sim_world *world = rt_xalloc(sizeof(*world));

    world->options = *options;
    rt_rng_seed(&world->rng, options->seed);
    sim_plan_draw(&world->plan, &world->rng);
    sim_trace_init(&world->trace);
    world->trace.name_of = name_of;
    world->trace.ctx = world;
    if (options->trace)
        world->trace.live = options->out;
    sim_history_init(&world->history);
    sim_checker_init(&world->checker, world);
    sim_network_init(&world->network, world);
    live(world);
    world->stats.n_seeds = 1;
    *ret_stats = world->stats;
    *ret_hash = world->trace.hash;
    end(world);
    (void)rt_free(world);
}
