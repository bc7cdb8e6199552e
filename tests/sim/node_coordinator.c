/*
 * The coordinator's process: its core, loaded from the disk. After each commit the simulator asks
 * it who is alive, as an operator would, and the checker compares; once all is quiet it is asked
 * for the status of every key. Invariant: at most one probe of each of these is inside. One thread.
 */
#include <inttypes.h>

#include "coordinator/core.h"
#include "runtime/base/alloc.h"
#include "tests/sim/world.h"

struct coordinator {
    struct coord_core *core;
    struct model_call probe;
    bool is_probing;
    struct model_call looks[SIM_KEYS_MAX];
    unsigned n_looks; /* not answered */
};

static struct coordinator *coordinator_of(struct sim_node *node)
{
    return node->core;
}

static bool load_row(struct rt_bytes key, struct rt_bytes value, void *ctx)
{
    struct coordinator *coordinator = ctx;
    struct rt_error err = RT_ERROR_INIT;

    rt_assert(coord_core_load(coordinator->core, key, value, &err) == RT_OK);
    return true;
}

static void coordinator_create(struct sim_node *node)
{
    const struct sim_plan *plan = &node->world->plan;
    struct coordinator *coordinator = rt_xalloc(sizeof(*coordinator));
    struct coord_config config = {
        .member_lease = rt_rng_below(&node->world->rng, 2) ? plan->member_lease : plan->other_lease,
        .session_lease = plan->session_lease,
        .key_max = MODEL_KEY_MAX,
        .locking = plan->locking,
        .owner_down = plan->owner_down,
        .compaction = plan->compaction,
        .distribution = plan->distribution,
        .ranges = plan->ranges,
        .wake_hold_us = plan->session_lease.duration_us / 4,
    };
    enum rt_code code;

    node->core = coordinator;
    coordinator->core = coord_core_new(&config, &node->env);
    code = store_range(sim_disk_store(node->disk), (struct rt_bytes){0}, load_row, NULL,
                       coordinator, NULL);
    rt_assert(code == RT_OK);
    coord_core_start(coordinator->core);
}

static void coordinator_destroy(struct sim_node *node)
{
    struct coordinator *coordinator = coordinator_of(node);

    coordinator->core = coord_core_free(coordinator->core);
    model_call_deinit(&coordinator->probe);
    for (unsigned i = 0; i < SIM_KEYS_MAX; i++)
        model_call_deinit(&coordinator->looks[i]);
    (void)rt_free(coordinator);
}

static void coordinator_submit(struct sim_node *node, struct model_call *call)
{
    coord_core_submit(coordinator_of(node)->core, call);
}

static void coordinator_cancel(struct sim_node *node, struct model_call *call)
{
    coord_core_cancel(coordinator_of(node)->core, call);
}

static void coordinator_call_done(struct sim_node *node, struct model_call *call)
{
    coord_core_call_done(coordinator_of(node)->core, call);
}

static void coordinator_txn_done(struct sim_node *node, struct store_txn *txn)
{
    struct coordinator *coordinator = coordinator_of(node);

    coord_core_txn_done(coordinator->core, txn);
    if (coordinator->is_probing || !coord_core_is_serving(coordinator->core))
        return;
    node->world->cluster_id = *coord_core_cluster_id(coordinator->core);
    coordinator->is_probing = true;
    model_call_init(&coordinator->probe, MODEL_CALL_LIST_INSTANCES);
    coordinator->probe.request.page = (struct model_page_request){0};
    coord_core_submit(coordinator->core, &coordinator->probe);
}

static void on_look(void *ctx)
{
    struct sim_node *node = ctx;
    struct coordinator *coordinator = coordinator_of(node);

    coordinator->n_looks = node->world->plan.n_keys;
    for (uint8_t key = 0; key < node->world->plan.n_keys; key++) {
        struct model_call *call = &coordinator->looks[key];

        model_call_init(call, MODEL_CALL_KEY_STATUS);
        call->request.key_status.key = sim_world_key(key);
        coord_core_submit(coordinator->core, call);
    }
}

static void on_down(void *ctx)
{
    (void)ctx;
}

void sim_coordinator_look(struct sim_node *node)
{
    sim_node_happen(node, on_look, on_down, node);
}

bool sim_coordinator_has_looked(struct sim_node *node)
{
    return coordinator_of(node)->n_looks == 0;
}

/* Everything works and everybody had time to tell: what the table says of a key is so. */
static void looked(struct sim_node *node, struct model_call *call)
{
    const struct model_key_status_response *status = &call->response.key_status;
    uint8_t key = sim_world_key_index(call->request.key_status.key);

    if (call->response.code != RT_OK)
        sim_world_violation(node->world, "liveness", key, "its status was refused: %s",
                            call->response.error.message);
    else if (status->known && status->value_unavailable)
        sim_world_violation(node->world, "evicted", key,
                            "%s is said to own it at epoch %" PRIu64 ", and does not",
                            status->owner, status->epoch);
    coordinator_of(node)->n_looks--;
}

void sim_coordinator_probed(struct sim_node *node, struct model_call *call)
{
    struct coordinator *coordinator = coordinator_of(node);

    if (call != &coordinator->probe) {
        looked(node, call);
        return;
    }
    rt_assert(call == &coordinator->probe);
    if (call->response.code == RT_OK)
        sim_checker_on_members(&node->world->checker, &call->response.list_instances);
    model_call_deinit(call);
    coordinator->is_probing = false;
}

static void coordinator_tick(struct sim_node *node)
{
    coord_core_tick(coordinator_of(node)->core);
}

static uint64_t coordinator_next_wakeup_us(struct sim_node *node)
{
    return coord_core_next_wakeup_us(coordinator_of(node)->core);
}

static struct model_effects *coordinator_effects(struct sim_node *node)
{
    return coord_core_effects(coordinator_of(node)->core);
}

static void coordinator_settled(struct sim_node *node)
{
    if (sim_disk_is_failed(node->disk))
        sim_node_restart_soon(node);
}

const struct sim_core_ops sim_coordinator_ops = {
    .create = coordinator_create,
    .destroy = coordinator_destroy,
    .submit = coordinator_submit,
    .cancel = coordinator_cancel,
    .call_done = coordinator_call_done,
    .txn_done = coordinator_txn_done,
    .tick = coordinator_tick,
    .next_wakeup_us = coordinator_next_wakeup_us,
    .effects = coordinator_effects,
    .settled = coordinator_settled,
};
