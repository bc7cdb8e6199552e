/*
 * Compaction: see state.h. Invariant: values keep their order and move towards entry 0, and with
 * them what is reserved for their next ones; nothing about a key changes. Under the core's lock.
 */
#include "instance/state.h"

/* The entries from `at` on that move as one: the row's value, what is reserved for its next one, or
 * both where they overlap. */
static uint64_t block_size(const struct inst_row *row, uint64_t at)
{
    struct inst_run runs[2] = {row->run};
    uint64_t end = at + 1;

    if (row->op && row->op->has_run)
        runs[1] = row->op->run;
    for (size_t i = 0; i < 4; i++) {
        const struct inst_run *run = &runs[i % 2];

        if (run->n > 0 && run->first >= at && run->first < end && run->first + run->n > end)
            end = run->first + (uint64_t)run->n;
    }
    return end - at;
}

static bool is_inside(const struct inst_run *run, const struct inst_run *block)
{
    return run->n > 0 && run->first >= block->first && run->first - block->first < block->n;
}

static void move_block(struct inst_core *core, struct inst_row *row, const struct inst_run *block,
                       uint32_t to)
{
    struct inst_run *runs[2] = {&row->run, row->op && row->op->has_run ? &row->op->run : NULL};
    uint64_t rank = INST_REPLACEMENT_NONE;
    bool moves[2];

    inst_entries_move(&core->entries, block, to);
    if (row->run.n == 1 && row->run.first == block->first)
        rank = inst_replacement_take(&core->replacement, block->first);
    for (size_t i = 0; i < 2; i++) {
        moves[i] = runs[i] && is_inside(runs[i], block);
        if (moves[i])
            core->owners[runs[i]->first] = NULL;
    }
    for (size_t i = 0; i < 2; i++) {
        if (!moves[i])
            continue;
        runs[i]->first -= block->first - to;
        core->owners[runs[i]->first] = row;
    }
    inst_replacement_give_back(&core->replacement, to, rank);
}

void inst_compact(struct inst_core *core)
{
    uint64_t at = 0;
    uint64_t to = 0;

    core->n_compactions++;
    while ((at = inst_entries_next_used(&core->entries, at)) < core->entries.total) {
        struct inst_row *row = core->owners[at];
        struct inst_run block = {(uint32_t)at, (uint32_t)block_size(row, at)};

        if (to < at)
            move_block(core, row, &block, (uint32_t)to);
        at += block.n;
        to += block.n;
    }
    inst_entries_pack(&core->entries, to);
}

bool inst_compact_round(struct inst_core *core, uint64_t term, uint64_t round)
{
    if (term < core->compacted_term ||
        (term == core->compacted_term && round <= core->compacted_round))
        return false;
    core->compacted_term = term;
    core->compacted_round = round;
    inst_compact(core);
    return true;
}
