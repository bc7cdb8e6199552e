/*
 * Replacement: see replacement.h. Invariant: each level holds the lowest ranks of the 16 below, so
 * the one rank of the top level is the next victim's. Under the lock of the core that owns it.
 */
#include "instance/replacement.h"

#include "runtime/base/alloc.h"

enum {
    FAN = 16
};

#define NONE INST_REPLACEMENT_NONE

const char *inst_policy_name(enum inst_policy policy)
{
    switch (policy) {
    case INST_POLICY_CIRC:
        break;
    case INST_POLICY_LRU:
        return "LRU";
    case INST_POLICY_BSU:
        return "BSU";
    }
    return "CIRC";
}

/* Ranks of a level, rounded up to whole groups; the top level is one group with one rank. */
static uint64_t level_size(uint64_t n)
{
    return (n + FAN - 1) / FAN * FAN;
}

enum rt_code inst_replacement_init(struct inst_replacement *replacement, enum inst_policy policy,
                                   uint64_t total, struct rt_error *err)
{
    uint64_t sizes[INST_REPLACEMENT_LEVELS_MAX];
    uint64_t n_ranks = 0;
    uint64_t n = total;
    size_t n_levels = 0;
    uint64_t *ranks;

    rt_assert(total >= 1 && total <= UINT32_MAX);
    do {
        sizes[n_levels] = level_size(n);
        n_ranks += sizes[n_levels++];
        n = (n + FAN - 1) / FAN;
    } while (n > 1);
    sizes[n_levels] = 1;
    n_ranks += sizes[n_levels++];
    *replacement = (struct inst_replacement){.policy = policy, .total = total};
    ranks = n_ranks <= SIZE_MAX / sizeof(*ranks) ? rt_alloc(n_ranks * sizeof(*ranks)) : NULL;
    if (!ranks)
        return rt_fail(err, RT_RESOURCE_EXHAUSTED, "no memory to choose among %llu entries",
                       (unsigned long long)total);
    memset(ranks, 0xff, n_ranks * sizeof(*ranks));
    replacement->n_levels = n_levels;
    for (size_t i = 0; i < n_levels; i++) {
        replacement->levels[i] = ranks;
        ranks += sizes[i];
    }
    return RT_OK;
}

void inst_replacement_deinit(struct inst_replacement *replacement)
{
    replacement->levels[0] = rt_free(replacement->levels[0]);
}

/* ---- ranks ---- */

static uint64_t lowest(const uint64_t *group)
{
    uint64_t rank = NONE;

    for (size_t i = 0; i < FAN; i++)
        rank = group[i] < rank ? group[i] : rank;
    return rank;
}

static uint64_t put_rank(struct inst_replacement *replacement, uint64_t index, uint64_t rank)
{
    uint64_t before = replacement->levels[0][index];

    rt_assert(index < replacement->total);
    if (before == rank)
        return before;
    replacement->n_candidates += rank != NONE;
    replacement->n_candidates -= before != NONE;
    replacement->levels[0][index] = rank;
    for (size_t level = 1; level < replacement->n_levels; level++) {
        index /= FAN;
        rank = lowest(&replacement->levels[level - 1][index * FAN]);
        if (replacement->levels[level][index] == rank)
            break;
        replacement->levels[level][index] = rank;
    }
    return before;
}

static uint64_t rank_of(const struct inst_replacement *replacement, uint64_t bytes, uint64_t use)
{
    switch (replacement->policy) {
    case INST_POLICY_CIRC:
        break;
    case INST_POLICY_LRU:
        return use;
    case INST_POLICY_BSU:
        return NONE - 1 - bytes;
    }
    return 0;
}

void inst_replacement_use(struct inst_replacement *replacement, uint32_t index, uint64_t bytes)
{
    replacement->clock++;
    put_rank(replacement, index, rank_of(replacement, bytes, replacement->clock));
}

void inst_replacement_add(struct inst_replacement *replacement, uint32_t index, uint64_t bytes)
{
    put_rank(replacement, index, rank_of(replacement, bytes, 0));
}

bool inst_replacement_is_candidate(const struct inst_replacement *replacement, uint32_t index)
{
    return replacement->levels[0][index] != NONE;
}

uint64_t inst_replacement_take(struct inst_replacement *replacement, uint32_t index)
{
    return put_rank(replacement, index, NONE);
}

void inst_replacement_give_back(struct inst_replacement *replacement, uint32_t index, uint64_t rank)
{
    if (rank != NONE)
        put_rank(replacement, index, rank);
}

/* ---- victims ---- */

/* The first candidate of that rank, the lowest of all, at or after `from`. */
static bool find_rank(const struct inst_replacement *replacement, uint64_t from, uint64_t rank,
                      uint64_t *ret_index)
{
    size_t level = 0;
    uint64_t at = from;
    uint64_t end;

    /* Up, to the first group that has one at or after `at`. */
    for (;; level++, at = end / FAN) {
        if (level + 1 == replacement->n_levels ||
            at >= (uint64_t)(replacement->levels[level + 1] - replacement->levels[level]))
            return false;
        end = at / FAN * FAN + FAN;
        while (at < end && replacement->levels[level][at] != rank)
            at++;
        if (at < end)
            break;
    }
    while (level-- > 0)
        for (at *= FAN; replacement->levels[level][at] != rank; at++)
            ;
    *ret_index = at;
    return true;
}

bool inst_replacement_choose(const struct inst_replacement *replacement, uint32_t *ret_index)
{
    uint64_t rank = *replacement->levels[replacement->n_levels - 1];
    uint64_t index;

    if (rank == NONE)
        return false;
    if (!find_rank(replacement, replacement->pointer, rank, &index) &&
        !find_rank(replacement, 0, rank, &index))
        return false;
    *ret_index = (uint32_t)index;
    return true;
}

static bool is_tie(const struct inst_replacement *replacement, uint64_t index, uint64_t rank)
{
    uint64_t other;

    return (find_rank(replacement, index + 1, rank, &other) ||
            (find_rank(replacement, 0, rank, &other) && other != index));
}

uint64_t inst_replacement_evict(struct inst_replacement *replacement, uint32_t index)
{
    uint64_t rank = replacement->levels[0][index];

    if (replacement->policy == INST_POLICY_CIRC || is_tie(replacement, index, rank))
        replacement->pointer = (uint32_t)((index + (uint64_t)1) % replacement->total);
    return put_rank(replacement, index, NONE);
}
