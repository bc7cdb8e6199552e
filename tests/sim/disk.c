/*
 * Simulated disks: see disk.h. Invariant: one commit event is queued whenever the engine has
 * queued transactions, and it belongs to the node's present life. One thread.
 */
#include "tests/sim/disk.h"

#include "instance/core.h"
#include "instance/record.h"
#include "runtime/base/alloc.h"
#include "runtime/store/memory.h"
#include "tests/sim/world.h"

struct sim_disk {
    struct sim_node *node;
    struct store *store; /* owned */
    uint64_t stalled_until_us;
    uint64_t heartbeats_stalled_until_us;
    bool is_committing; /* an event is queued */
    bool is_failed;
};

struct heartbeat {
    struct sim_disk *disk;
    uint64_t number;
};

static void on_txn_done(struct store_txn *txn, void *ctx)
{
    struct sim_disk *disk = ctx;

    if (txn->outcome == STORE_UNKNOWN)
        disk->is_failed = true;
    disk->node->world->stats.n_commits++;
    sim_world_trace(disk->node->world, SIM_TRACE_DURABLE, disk->node, SIM_NO_KEY,
                    (uint64_t)txn->outcome);
    disk->node->ops->txn_done(disk->node, txn);
}

struct sim_disk *sim_disk_new(struct sim_node *node)
{
    struct sim_disk *disk = rt_xalloc(sizeof(*disk));

    disk->node = node;
    disk->store = store_memory_new(on_txn_done, disk);
    return disk;
}

struct sim_disk *sim_disk_free(struct sim_disk *disk)
{
    if (!disk)
        return NULL;
    disk->store = store_memory_free(disk->store);
    return rt_free(disk);
}

struct store *sim_disk_store(struct sim_disk *disk)
{
    return disk->store;
}

static void on_deliver(void *ctx)
{
    struct sim_disk *disk = ctx;

    (void)store_memory_deliver(disk->store, 1);
}

static void schedule_commit(struct sim_disk *disk);

/* The moment a pause hurts most: the write is durable, and nobody knows yet. */
static void maybe_pause(struct sim_node *node)
{
    struct sim_world *world = node->world;

    if (!world->is_healed && sim_world_chance(world, world->plan.commit_pause_ppm)) {
        sim_stats_fault(&world->stats, SIM_FAULT_COMMIT_PAUSE);
        sim_node_pause(node, sim_world_pause_us(world));
    }
}

static void on_commit(void *ctx)
{
    struct sim_node *node = ctx;
    struct sim_disk *disk = node->disk;
    struct sim_world *world = node->world;

    disk->is_committing = false;
    if (world->now_us >= disk->stalled_until_us && store_memory_commit(disk->store, 1) == 1) {
        sim_world_trace(world, SIM_TRACE_COMMIT, node, SIM_NO_KEY, 0);
        maybe_pause(node);
        sim_node_later(node, world->now_us + rt_rng_below(&world->rng, 200), on_deliver, NULL,
                       disk);
    }
    schedule_commit(disk);
}

/* Commits go on while the process is paused, but not after its life. */
struct commit {
    struct sim_node *node;
    uint64_t life;
};

static void on_commit_event(void *ctx)
{
    struct commit commit = *(struct commit *)ctx;

    (void)rt_free(ctx);
    if (commit.node->is_up && commit.node->life == commit.life)
        on_commit(commit.node);
}

static void drop_commit(void *ctx)
{
    (void)rt_free(ctx);
}

static void schedule_commit(struct sim_disk *disk)
{
    struct sim_world *world = disk->node->world;
    uint64_t at_us = world->now_us + 50 + rt_rng_below(&world->rng, world->plan.commit_us);
    struct commit *commit;

    if (disk->is_committing || store_memory_n_queued(disk->store) == 0)
        return;
    commit = rt_xalloc(sizeof(*commit));
    commit->node = disk->node;
    commit->life = disk->node->life;
    disk->is_committing = true;
    if (at_us < disk->stalled_until_us)
        at_us = disk->stalled_until_us;
    sim_queue_push(&world->queue, at_us, on_commit_event, drop_commit, commit);
}

static bool has_suffix(struct rt_bytes bytes, struct rt_bytes suffix)
{
    return bytes.size >= suffix.size &&
           memcmp(bytes.data + bytes.size - suffix.size, suffix.data, suffix.size) == 0;
}

/* The key's row goes: to make room, or as the coordinator said of a key without value. */
static void note_drop(struct sim_world *world, struct rt_bytes row)
{
    uint8_t key = sim_world_key_index(rt_bytes_of(row.data, row.size - 2));

    world->stats.n_drops++;
    if (world->plan.eviction == INST_EVICTION_DROP && key != SIM_NO_KEY)
        (void)sim_history_invoke(&world->history, SIM_NO_NODE, key, SIM_OP_FORGET, world->now_us);
}

/* A PUT, or a later version than the SET became: a client has asked for it. */
static bool is_asked_for(const struct sim_history *history, uint32_t number,
                         const struct model_version *version)
{
    const struct sim_op *op =
        number >= 1 && number <= history->n_ops ? sim_history_op(history, number) : NULL;

    return !op || op->kind != SIM_OP_SET ||
           (op->has_version && op->version.incarnation == version->incarnation &&
            op->version.seq < version->seq);
}

/* A value that nobody asked to store may be a SET that outlives its process. */
static void note_stored(struct sim_node *node, const struct store_operation *operation)
{
    struct sim_world *world = node->world;
    uint8_t key = sim_world_key_index(rt_bytes_of(operation->key.data, operation->key.size - 2));
    struct model_version version;
    struct rt_bytes value;
    uint32_t number;

    if (world->plan.dump_us == 0 || key == SIM_NO_KEY ||
        inst_record_decode_value(operation->value, &version, &value, NULL) != RT_OK)
        return;
    if (world->checker.keys[key].n_durable[node->index] == 0)
        world->stats.n_dumps++;
    number = sim_value_decode(value);
    if (is_asked_for(&world->history, number, &version))
        return;
    number = sim_history_invoke(&world->history, SIM_NO_NODE, key, SIM_OP_DUMP, world->now_us);
    sim_history_op(&world->history, number)->value = sim_value_decode(value);
}

static void note_operation(struct sim_node *node, const struct store_operation *operation)
{
    struct sim_world *world = node->world;

    if (operation->kind == STORE_PUT && has_suffix(operation->key, RT_BYTES_LITERAL("/v")))
        note_stored(node, operation);
    if (operation->kind == STORE_PUT && has_suffix(operation->key, RT_BYTES_LITERAL("/s")))
        world->stats.n_spills++;
    if (operation->kind == STORE_READ)
        world->stats.n_readbacks++;
    if (operation->kind == STORE_DELETE && has_suffix(operation->key, RT_BYTES_LITERAL("/r")))
        note_drop(world, operation->key);
}

void sim_disk_submit(struct sim_disk *disk, struct store_txn *txn)
{
    if (disk->node->ops == &sim_instance_ops)
        for (size_t i = 0; i < txn->n_operations; i++)
            note_operation(disk->node, &txn->operations[i]);
    store_submit(disk->store, txn);
    schedule_commit(disk);
}

static void on_heartbeat(void *ctx)
{
    struct heartbeat heartbeat = *(struct heartbeat *)ctx;
    struct sim_node *node = heartbeat.disk->node;

    (void)rt_free(ctx);
    node->n_heartbeats++;
    inst_core_heartbeat_done(node->core, heartbeat.number, true);
}

static void drop_heartbeat(void *ctx)
{
    (void)rt_free(ctx);
}

void sim_disk_write_heartbeat(struct sim_disk *disk, uint64_t number)
{
    struct sim_world *world = disk->node->world;
    struct heartbeat *heartbeat = rt_xalloc(sizeof(*heartbeat));
    uint64_t at_us = world->now_us + 50 + rt_rng_below(&world->rng, world->plan.commit_us);

    heartbeat->disk = disk;
    heartbeat->number = number;
    if (at_us < disk->heartbeats_stalled_until_us)
        at_us = disk->heartbeats_stalled_until_us;
    sim_node_later(disk->node, at_us, on_heartbeat, drop_heartbeat, heartbeat);
}

void sim_disk_crash(struct sim_disk *disk)
{
    size_t n_queued = store_memory_n_queued(disk->store);

    if (n_queued > 0)
        (void)store_memory_commit(disk->store,
                                  (size_t)rt_rng_below(&disk->node->world->rng, n_queued + 1));
    store_memory_crash(disk->store);
    disk->is_committing = false;
    disk->is_failed = false;
}

void sim_disk_set_full(struct sim_disk *disk, bool is_full)
{
    store_memory_fail_after(disk->store, STORE_MEMORY_FULL, 0, is_full ? STORE_MEMORY_FOREVER : 0);
}

void sim_disk_stall(struct sim_disk *disk, uint64_t until_us, bool only_heartbeats)
{
    disk->heartbeats_stalled_until_us = until_us;
    if (!only_heartbeats)
        disk->stalled_until_us = until_us;
}

void sim_disk_fail_next(struct sim_disk *disk)
{
    bool is_applied = rt_rng_below(&disk->node->world->rng, 2) == 0;

    store_memory_fail_after(
        disk->store, is_applied ? STORE_MEMORY_UNKNOWN_APPLIED : STORE_MEMORY_UNKNOWN_NOT_APPLIED,
        0, 1);
}

void sim_disk_heal(struct sim_disk *disk)
{
    sim_disk_set_full(disk, false);
    sim_disk_stall(disk, 0, false);
    disk->is_committing = false;
    schedule_commit(disk);
    store_memory_fail_after(disk->store, STORE_MEMORY_UNKNOWN_APPLIED, 0, 0);
    store_memory_fail_after(disk->store, STORE_MEMORY_UNKNOWN_NOT_APPLIED, 0, 0);
}

bool sim_disk_is_failed(const struct sim_disk *disk)
{
    return disk->is_failed;
}
