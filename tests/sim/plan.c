/*
 * What a seed stands for: sizes, leases, modes and how bad the weather is. Invariant: every value
 * is drawn in a fixed order from one generator. Pure.
 */
#include "tests/sim/world.h"

static uint64_t between(struct rt_rng *rng, uint64_t least, uint64_t most)
{
    return least + rt_rng_below(rng, most - least + 1);
}

static void draw_modes(struct sim_plan *plan, struct rt_rng *rng)
{
    uint64_t locking = rt_rng_below(rng, 10);

    plan->locking = locking < 6   ? MODEL_LOCKING_OPTIONAL
                    : locking < 9 ? MODEL_LOCKING_REQUIRED
                                  : MODEL_LOCKING_NONE;
    plan->distribution = (enum model_distribution)rt_rng_below(rng, MODEL_N_DISTRIBUTIONS);
    plan->ranges = rt_rng_below(rng, 2) == 0 ? COORD_RANGES_EVEN : COORD_RANGES_CEIL;
    plan->owner_down = rt_rng_below(rng, 10) < 7 ? COORD_OWNER_DOWN_KEEP : COORD_OWNER_DOWN_FORGET;
}

static void draw_leases(struct sim_plan *plan, struct rt_rng *rng)
{
    uint64_t member_ms = rt_rng_below(rng, 2) == 0 ? 1000 : 3000;
    uint64_t other_ms = rt_rng_below(rng, 4) == 0 ? 4000 - member_ms : member_ms;
    uint64_t session_ms = rt_rng_below(rng, 2) == 0 ? 1000 : 3000;
    enum rt_code code;

    code = model_lease_init(&plan->member_lease, member_ms, NULL);
    rt_assert(code == RT_OK);
    code = model_lease_init(&plan->other_lease, other_ms, NULL);
    rt_assert(code == RT_OK);
    code = model_lease_init(&plan->session_lease, session_ms, NULL);
    rt_assert(code == RT_OK);
    plan->fault_phase_us = plan->member_lease.duration_us * between(rng, 6, 12);
}

/* Half of the seeds have room for everything. In the others each value takes one entry and there
 * are one or two, or values take up to four entries, all of them at one instance, and just fit in
 * when they are moved together. */
static void draw_entries(struct sim_plan *plan, struct rt_rng *rng)
{
    uint64_t kind = rt_rng_below(rng, 6);

    plan->policy = (enum inst_policy)rt_rng_below(rng, 3);
    plan->eviction = rt_rng_below(rng, 2) == 0 && plan->owner_down == COORD_OWNER_DOWN_FORGET
                         ? INST_EVICTION_DROP
                         : INST_EVICTION_SPILL;
    plan->entry_size = SIM_VALUE_MAX;
    plan->n_entries = 512;
    if (kind == 5) {
        plan->entry_size = SIM_VALUE_MAX / 4;
        plan->n_entries = 4 * (uint64_t)plan->n_keys;
        plan->distribution = MODEL_DISTRIBUTION_KEY_EXPLICIT;
    } else if (kind > 2) {
        plan->n_entries = between(rng, 1, 2);
    }
}

void sim_plan_draw(struct sim_plan *ret_plan, struct rt_rng *rng)
{
    struct sim_plan *plan = ret_plan;

    *plan = (struct sim_plan){0};
    plan->n_instances = rt_rng_below(rng, 2) == 0 ? 3 : (unsigned)between(rng, 2, 5);
    plan->n_clients = (unsigned)between(rng, 2, 5);
    plan->n_directs = (unsigned)between(rng, 1, 3);
    plan->n_libraries = (unsigned)between(rng, 1, 2);
    plan->n_keys = (uint8_t)between(rng, 1, 5);
    draw_modes(plan, rng);
    draw_leases(plan, rng);
    plan->fault_gap_us = plan->member_lease.duration_us / between(rng, 2, 8);
    plan->think_us = plan->fault_phase_us / between(rng, 60, 200);
    plan->delay_us = between(rng, 1, 4) == 4 ? 20000 : 500;
    plan->commit_us = between(rng, 1, 4) == 4 ? 20000 : 1000;
    plan->clock_error_ppm = MODEL_LEASE_RATE_ERROR_PPM;
    plan->straggler_ppm = (uint32_t)between(rng, 0, 5) * 1000;
    plan->loss_ppm = (uint32_t)between(rng, 0, 2) * 5000;
    plan->duplicate_ppm = (uint32_t)between(rng, 0, 4) * 10000;
    plan->renew_pause_ppm = (uint32_t)between(rng, 0, 3) * 10000;
    plan->commit_pause_ppm = (uint32_t)between(rng, 0, 4) * 5000;
    draw_entries(plan, rng);
    if (rt_rng_below(rng, 3) == 0)
        plan->dump_us =
            between(rng, plan->member_lease.duration_us / 20, 2 * plan->member_lease.duration_us);
    plan->compaction = rt_rng_below(rng, 2) == 0 ? COORD_COMPACT_GLOBAL : COORD_COMPACT_LOCAL;
}
