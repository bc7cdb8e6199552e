/*
 * Is one key's history linearizable? A black-box search after Wing and Gong with Lowe's memo:
 * operations that may come next are tried one by one, and configurations (set of operations done,
 * state) that led nowhere are remembered. The state of a key is {visible, durable}:
 *
 *   SET v visible := v          STORE durable := visible        PUT v both := v
 *   DELETE both := none         READ v only when visible == v
 *   REVERT visible := durable   FORGET both := none   DUMP durable := visible if that is its value
 *                                                               (these may also not happen)
 *
 * MAYBE writes may happen at any time after their invocation, or never. A write that may not have
 * happened and whose value nobody saw cannot explain anything and is left out.
 */
#ifndef SIM_LINEARIZABILITY_H
#define SIM_LINEARIZABILITY_H

#include <stddef.h>

#include "tests/sim/history.h"

enum sim_verdict {
    SIM_VERDICT_LINEARIZABLE,
    SIM_VERDICT_VIOLATED,
    SIM_VERDICT_UNDECIDED, /* the step cap was reached: not a pass */
};

/* Operations of other keys in `ops` are ignored; the array is not changed. `ret_blocked`, on a
 * violation: the number of an operation at which the longest attempt got stuck (0 if none). */
enum sim_verdict sim_linearizability_check(const struct sim_op *ops, size_t n_ops, uint8_t key,
                                           size_t step_cap, uint32_t *ret_blocked);

#endif
