/*
 * Replacement: which value goes when another one needs its entry. Candidates are values that take
 * exactly one entry, known by its index; the owner says when there is one, when it was used and
 * when it went. A victim is found in logarithmic time, and so is every change.
 *
 *   CIRC  the first candidate at or after the pointer
 *   LRU   the candidate that was used (SET or STOREd) longest ago
 *   BSU   the candidate with the most bytes
 *
 * Ties are CIRC's. The pointer goes on to the entry after a victim only when it decided about that
 * victim; it goes around the end. Candidates loaded or read back count as not used yet.
 *
 * Own code: replacement is what the product is about. Pure; belongs to one core.
 */
#ifndef INST_REPLACEMENT_H
#define INST_REPLACEMENT_H

#include <stdint.h>

#include "runtime/base/compiler.h"
#include "runtime/base/error.h"

enum inst_policy {
    INST_POLICY_CIRC,
    INST_POLICY_LRU,
    INST_POLICY_BSU,
};

/* The rank of no candidate. */
#define INST_REPLACEMENT_NONE UINT64_MAX

/* "CIRC", "LRU", "BSU" */
const char *inst_policy_name(enum inst_policy policy);

enum {
    INST_REPLACEMENT_LEVELS_MAX = 9 /* 16^8 = 2^32 entries */
};

struct inst_replacement {
    /* Of each entry the rank of its candidate, the lowest goes first, or none; above that the
     * lowest of each 16. levels[0] owns the memory of all. */
    uint64_t *levels[INST_REPLACEMENT_LEVELS_MAX];
    size_t n_levels;
    uint64_t total;
    uint64_t n_candidates;
    uint64_t clock; /* LRU: of the latest use */
    uint32_t pointer;
    enum inst_policy policy;
};

/* total 1..2^32-1; RESOURCE_EXHAUSTED when memory is out. */
RT_MUST_USE enum rt_code inst_replacement_init(struct inst_replacement *replacement,
                                               enum inst_policy policy, uint64_t total,
                                               struct rt_error *err);
void inst_replacement_deinit(struct inst_replacement *replacement);

/* The entry holds a whole value of `bytes`, used right now. It may have held one before. */
void inst_replacement_use(struct inst_replacement *replacement, uint32_t index, uint64_t bytes);

/* Like that, and not used yet. */
void inst_replacement_add(struct inst_replacement *replacement, uint32_t index, uint64_t bytes);

bool inst_replacement_is_candidate(const struct inst_replacement *replacement, uint32_t index);

/* The entry holds no candidate any more. Returns its rank, for give_back(): NONE if it held none.
 */
uint64_t inst_replacement_take(struct inst_replacement *replacement, uint32_t index);

/* The candidate that was taken is back, at this entry or, after a compaction, at another one.
 * Nothing happens when the rank is NONE. */
void inst_replacement_give_back(struct inst_replacement *replacement, uint32_t index,
                                uint64_t rank);

/* The candidate that goes next; false when there is none. Changes nothing. */
RT_MUST_USE bool inst_replacement_choose(const struct inst_replacement *replacement,
                                         uint32_t *ret_index);

/* The chosen candidate goes: takes it, and moves the pointer where that decided. */
uint64_t inst_replacement_evict(struct inst_replacement *replacement, uint32_t index);

#endif
