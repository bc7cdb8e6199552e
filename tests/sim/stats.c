/*
 * Sums over runs: see stats.h. Invariant: every field but the fault names is a plain counter. Pure.
 */
#include "tests/sim/stats.h"

#include <stddef.h>

_Static_assert(sizeof(struct sim_stats) % sizeof(uint64_t) == 0, "counters only");

const char *sim_fault_field(enum sim_fault fault)
{
    static const char *const fields[] = {
#define SIM_FAULT_FIELD(name, field) [SIM_FAULT_##name] = (field),
        SIM_FAULTS(SIM_FAULT_FIELD)
#undef SIM_FAULT_FIELD
    };

    return fields[fault];
}

void sim_stats_add(struct sim_stats *total, const struct sim_stats *other)
{
    uint64_t *to = (uint64_t *)total;
    const uint64_t *from = (const uint64_t *)other;

    for (size_t i = 0; i < sizeof(*total) / sizeof(uint64_t); i++)
        to[i] += from[i];
}
