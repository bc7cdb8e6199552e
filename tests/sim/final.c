/*
 * Checks of the whole history: see world.h. Invariant: an operation counts as the client had to
 * understand it. One thread.
 */
#include <inttypes.h>

#include "tests/sim/linearizability.h"
#include "tests/sim/world.h"

enum {
    STEP_CAP = 300000
};

/* I8, I16: what was seen was written by an operation on this key that was not refused. */
static void check_seen(struct sim_world *world, const struct sim_op *read)
{
    const struct sim_history *history = &world->history;
    const struct sim_op *write;

    if (read->kind != SIM_OP_READ || read->result != SIM_RESULT_OK || read->value == 0)
        return;
    if (read->value > history->n_ops) {
        sim_world_violation(world, "I16", read->key, "operation %u saw what nobody wrote",
                            read->number);
        return;
    }
    write = sim_history_op(history, read->value);
    if (write->key != read->key)
        sim_world_violation(world, "I16", read->key, "operation %u saw a value of key k%u",
                            read->number, write->key);
    else if (sim_op_effective_result(write) == SIM_RESULT_NO)
        sim_world_violation(world, "I8", read->key,
                            "operation %u saw value %u, which was refused as not applied",
                            read->number, read->value);
}

static void print_history(const struct sim_world *world, uint8_t key)
{
    static const char *const results[] = {"pending", "ok", "no", "maybe"};
    FILE *out = world->options.out;

    for (uint32_t i = 0; out && i < world->history.n_ops; i++) {
        const struct sim_op *op = &world->history.ops[i];

        if (op->key == key)
            (void)fprintf(out,
                          "  op %u %s by %s, %.6f..%.6f, value %u, %s%s, version (%" PRIu64
                          ", %" PRIu64 ", %" PRIu64 "), token %" PRIu64 "\n",
                          op->number, sim_op_kind_name(op->kind),
                          op->client == SIM_NO_NODE ? "-" : world->nodes[op->client].name,
                          (double)op->invoke_us / 1e6,
                          op->return_us == RT_NEVER ? -1.0 : (double)op->return_us / 1e6, op->value,
                          results[op->result], op->tainted ? " (tainted)" : "", op->version.epoch,
                          op->version.incarnation, op->version.seq, op->token);
    }
}

static void check_key(struct sim_world *world, uint8_t key)
{
    uint32_t blocked = 0;
    enum sim_verdict verdict = sim_linearizability_check(world->history.ops, world->history.n_ops,
                                                         key, STEP_CAP, &blocked);

    world->stats.n_histories++;
    if (verdict == SIM_VERDICT_UNDECIDED)
        world->stats.n_undecided++;
    if (verdict != SIM_VERDICT_VIOLATED)
        return;
    sim_world_violation(world, "I5", key,
                        "the history is not linearizable; the longest attempt stops at "
                        "operation %u",
                        blocked);
    print_history(world, key);
}

void sim_final_check(struct sim_world *world)
{
    sim_network_taint_pending(&world->network);
    sim_checker_finish(&world->checker);
    for (uint32_t i = 0; i < world->history.n_ops && !world->is_failed; i++)
        check_seen(world, &world->history.ops[i]);
    for (uint8_t key = 0; key < world->plan.n_keys && !world->is_failed; key++)
        check_key(world, key);
}
