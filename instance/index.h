/*
 * Key index: from a key's bytes to its row. An open-addressing table of its own (linear probing,
 * deletion by shifting back, at most 3/4 full): 16 bytes a slot against uthash's 56 a handle, and
 * one cache line for a lookup. The hash is seeded, since peers choose the keys.
 *
 * Rows are borrowed. Not thread safe; belongs to one core.
 */
#ifndef INST_INDEX_H
#define INST_INDEX_H

#include <stdint.h>

#include "runtime/base/bytes.h"
#include "runtime/base/compiler.h"

struct inst_row;

struct inst_index_slot {
    uint64_t hash;
    struct inst_row *row; /* NULL: free */
};

struct inst_index {
    struct inst_index_slot *slots; /* owned */
    size_t n_slots;                /* power of two, or 0 while empty */
    size_t n_rows;
    uint64_t seed;
};

void inst_index_init(struct inst_index *index, uint64_t seed);
void inst_index_deinit(struct inst_index *index);

/* Fetches what finding the key will look at first. */
void inst_index_expect(const struct inst_index *index, struct rt_bytes key);

/* Nearly always what finding the key would give, without a look at the row. For fetching only. */
const struct inst_row *inst_index_guess(const struct inst_index *index, struct rt_bytes key);

/* NULL when the key is not there. */
struct inst_row *inst_index_find(const struct inst_index *index, struct rt_bytes key);

/* The key of `row` must not be there yet. false when memory is out, and then nothing changed. */
RT_MUST_USE bool inst_index_add(struct inst_index *index, struct inst_row *row);

/* The key of `row` must be there. */
void inst_index_remove(struct inst_index *index, const struct inst_row *row);

#endif
