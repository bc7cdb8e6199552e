/*
 * Checks of the whole history: see world.h. Invariant: an operation counts as the client had to
 * understand it. One thread.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "tests/sim/linearizability.h"
#include "tests/sim/world.h"

enum {
    STEP_CAP = 300000
};

static int compare_acks(const void *a, const void *b)
{
    return model_version_compare(&((const struct sim_ack *)a)->version,
                                 &((const struct sim_ack *)b)->version);
}

/* I1, I6: acknowledged writes have versions of their own, and tokens rise along them. */
static void check_acks(struct sim_checker *checker, uint8_t key)
{
    struct sim_key_state *state = &checker->keys[key];
    uint64_t highest_token = 0;

    qsort(state->acks, state->n_acks, sizeof(*state->acks), compare_acks);
    for (size_t i = 0; i < state->n_acks; i++) {
        const struct sim_ack *ack = &state->acks[i];

        if (ack->version.seq == 0)
            continue;
        if (i > 0 && model_version_compare(&ack->version, &state->acks[i - 1].version) == 0)
            sim_world_violation(checker->world, "I1", key,
                                "two writes became version (%" PRIu64 ", %" PRIu64 ", %" PRIu64 ")",
                                ack->version.epoch, ack->version.incarnation, ack->version.seq);
        if (ack->token != 0 && ack->token < highest_token &&
            checker->world->plan.locking != MODEL_LOCKING_NONE)
            sim_world_violation(checker->world, "I6", key,
                                "token %" PRIu64 " wrote after token %" PRIu64, ack->token,
                                highest_token);
        if (ack->token > highest_token)
            highest_token = ack->token;
    }
}

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

/* The owner's life ended in between, and that may take what `first` saw or did: only forgetting
 * takes what was stored. */
static bool may_be_gone(const struct sim_history *history, const struct sim_op *first,
                        const struct sim_op *second)
{
    bool is_durable = first->kind == SIM_OP_PUT || first->kind == SIM_OP_STORE;

    for (uint32_t i = 0; i < history->n_ops; i++) {
        const struct sim_op *op = &history->ops[i];

        if ((op->kind == SIM_OP_FORGET || (op->kind == SIM_OP_REVERT && !is_durable)) &&
            op->key == first->key && op->invoke_us >= first->invoke_us &&
            op->invoke_us <= second->return_us)
            return true;
    }
    return false;
}

/* Versions extend real time. A read may fall back behind a SET when its owner's life ended. */
static bool is_in_order(const struct sim_history *history, const struct sim_op *first,
                        const struct sim_op *second)
{
    int order = model_version_compare(&first->version, &second->version);

    if (order < 0 || (order == 0 && (first->kind == SIM_OP_READ || second->kind == SIM_OP_READ)))
        return true;
    return second->kind == SIM_OP_READ && may_be_gone(history, first, second);
}

static bool has_place(const struct sim_op *op, uint8_t key)
{
    return op->key == key && op->result == SIM_RESULT_OK && op->has_version;
}

/* I5, white-box: also where the search gives up. */
static void check_order(struct sim_world *world, uint8_t key)
{
    const struct sim_history *history = &world->history;

    for (uint32_t i = 0; i < history->n_ops; i++)
        for (uint32_t j = 0; has_place(&history->ops[i], key) && j < history->n_ops; j++) {
            const struct sim_op *first = &history->ops[i];
            const struct sim_op *second = &history->ops[j];

            if (has_place(second, key) && first->return_us < second->invoke_us &&
                !is_in_order(history, first, second))
                sim_world_violation(world, "I5", key,
                                    "operation %u returned before %u began and has a later version",
                                    first->number, second->number);
        }
}

/* The owner's process ended while the SET was under way: a first attempt may have been seen and
 * then lost, and the retry in the next life does it again. */
static bool may_repeat(const struct sim_history *history, const struct sim_op *set)
{
    if (set->kind != SIM_OP_SET || sim_op_effective_result(set) == SIM_RESULT_NO)
        return false;
    for (uint32_t i = 0; i < history->n_ops; i++) {
        const struct sim_op *revert = &history->ops[i];

        if (revert->kind == SIM_OP_REVERT && revert->key == set->key &&
            revert->invoke_us >= set->invoke_us &&
            (set->tainted || set->result != SIM_RESULT_OK || revert->invoke_us <= set->return_us))
            return true;
    }
    return false;
}

static void add_repeats(struct sim_history *history)
{
    uint32_t n_ops = history->n_ops;

    for (uint32_t number = 1; number <= n_ops; number++) {
        const struct sim_op set = *sim_history_op(history, number);

        if (may_repeat(history, &set)) {
            uint32_t again =
                sim_history_invoke(history, set.client, set.key, SIM_OP_SET, set.invoke_us);

            sim_history_op(history, again)->value = set.value;
        }
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
    for (uint8_t key = 0; key < world->plan.n_keys; key++)
        check_acks(&world->checker, key);
    for (uint32_t i = 0; i < world->history.n_ops && !world->is_failed; i++)
        check_seen(world, &world->history.ops[i]);
    for (uint8_t key = 0; key < world->plan.n_keys && !world->is_failed; key++)
        check_order(world, key);
    add_repeats(&world->history);
    for (uint8_t key = 0; key < world->plan.n_keys && !world->is_failed; key++)
        check_key(world, key);
}
