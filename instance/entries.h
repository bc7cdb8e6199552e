/*
 * The instance's memory for values: N entries of B bytes in one slab. A value takes
 * max(1, ceil(size / B)) contiguous entries, found first fit from index 0, never around the end.
 * Own code: placement of entries is what the product is about.
 *
 * A change of a value is a reservation first: `reserve` finds and marks the new run while the old
 * one stays readable, then `commit` gives back what only the old run used, or `cancel` what only
 * the new one did. The two may overlap, so nothing is written between reserve and commit.
 * A smaller or equal run always keeps its first index; shrinking frees the tail.
 *
 * Finding, marking and freeing cost the logarithm of N, and the words of the run: above the bitmap
 * is a tree that knows the free runs of each part.
 *
 * Not thread safe; belongs to one core.
 */
#ifndef INST_ENTRIES_H
#define INST_ENTRIES_H

#include <stdint.h>

#include "runtime/base/bytes.h"
#include "runtime/base/compiler.h"
#include "runtime/base/error.h"

struct inst_entries_part;

struct inst_entries {
    uint8_t *slab;                   /* owned */
    uint64_t *used;                  /* owned, one bit an entry; bits past the last are set */
    struct inst_entries_part *parts; /* owned, a heap: the children of i are 2i and 2i + 1 */
    uint64_t total;
    uint64_t entry_size;
    uint64_t n_words;
    uint64_t n_leaves; /* words, rounded up to a power of two; at least 2 */
    uint64_t n_free;
};

/* Entries first … first + n - 1; n = 0 is no run. */
struct inst_run {
    uint32_t first;
    uint32_t n;
};

/* total 1..2^32-1, entry_size >= 1; RESOURCE_EXHAUSTED when they do not fit into memory,
 * INVALID_ARGUMENT outside the ranges. */
RT_MUST_USE enum rt_code inst_entries_init(struct inst_entries *entries, uint64_t total,
                                           uint64_t entry_size, struct rt_error *err);
void inst_entries_deinit(struct inst_entries *entries);

/* Entries that a value of `size` bytes takes: at least one. */
uint64_t inst_entries_needed(const struct inst_entries *entries, uint64_t size);

/* Whether `n` contiguous entries are free. */
bool inst_entries_fits(const struct inst_entries *entries, uint64_t n);

/* The longest run of free entries. */
uint64_t inst_entries_largest_hole(const struct inst_entries *entries);

/* A first-fit run of n >= 1 entries; false when there is none, and then nothing changed. */
RT_MUST_USE bool inst_entries_alloc(struct inst_entries *entries, uint64_t n,
                                    struct inst_run *ret_run);

/* Gives the run back and empties it. */
void inst_entries_release(struct inst_entries *entries, struct inst_run *run);

/* A run of n >= 1 entries to replace `old`, whose own entries count as free; false when there is
 * none, and then nothing changed. */
RT_MUST_USE bool inst_entries_reserve(struct inst_entries *entries, const struct inst_run *old,
                                      uint64_t n, struct inst_run *ret_run);
void inst_entries_commit(struct inst_entries *entries, const struct inst_run *old,
                         const struct inst_run *reserved);
void inst_entries_cancel(struct inst_entries *entries, const struct inst_run *old,
                         const struct inst_run *reserved);

/* The first used entry at or after `from`; total when there is none. */
uint64_t inst_entries_next_used(const struct inst_entries *entries, uint64_t from);

/* For a compaction: moves the content of the run down to `to`, which may overlap it, without
 * marking; then pack() marks entries 0 … n - 1 as the used ones, as many as before. */
void inst_entries_move(struct inst_entries *entries, const struct inst_run *run, uint64_t to);
void inst_entries_pack(struct inst_entries *entries, uint64_t n);

/* Fetches the beginning of a value that is about to be read or written. */
void inst_entries_expect(const struct inst_entries *entries, const struct inst_run *run,
                         size_t size);

/* The value must fit into the run. */
void inst_entries_write(struct inst_entries *entries, const struct inst_run *run,
                        struct rt_bytes value);

/* A view of the first `size` bytes, valid until the run is written or released. */
struct rt_bytes inst_entries_read(const struct inst_entries *entries, const struct inst_run *run,
                                  size_t size);

#endif
