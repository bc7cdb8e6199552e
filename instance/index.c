/*
 * Key index: see index.h. Invariant: between the home slot of a row and its slot there is no free
 * slot. Under the lock of the core that owns it.
 */
#include "instance/index.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "instance/rows.h"
#include "runtime/base/alloc.h"

enum {
    FIRST_SLOTS = 64
};

void inst_index_init(struct inst_index *index, uint64_t seed)
{
    *index = (struct inst_index){.seed = seed};
}

void inst_index_deinit(struct inst_index *index)
{
    index->slots = rt_free(index->slots);
    index->n_slots = 0;
    index->n_rows = 0;
}

static uint64_t hash_of(const struct inst_index *index, struct rt_bytes key)
{
    return XXH3_64bits_withSeed(key.data, key.size, index->seed);
}

void inst_index_expect(const struct inst_index *index, struct rt_bytes key)
{
    if (index->n_slots > 0)
        __builtin_prefetch(&index->slots[hash_of(index, key) & (index->n_slots - 1)]);
}

const struct inst_row *inst_index_guess(const struct inst_index *index, struct rt_bytes key)
{
    size_t mask = index->n_slots - 1;
    uint64_t hash;

    if (index->n_slots == 0)
        return NULL;
    hash = hash_of(index, key);
    for (size_t i = hash & mask; index->slots[i].row; i = (i + 1) & mask)
        if (index->slots[i].hash == hash)
            return index->slots[i].row;
    return NULL;
}

struct inst_row *inst_index_find(const struct inst_index *index, struct rt_bytes key)
{
    size_t mask = index->n_slots - 1;
    uint64_t hash;

    if (index->n_slots == 0)
        return NULL;
    hash = hash_of(index, key);
    for (size_t i = hash & mask; index->slots[i].row; i = (i + 1) & mask) {
        const struct inst_index_slot *slot = &index->slots[i];

        if (slot->hash == hash && rt_bytes_equal(inst_row_key(slot->row), key))
            return slot->row;
    }
    return NULL;
}

static void put(struct inst_index_slot *slots, size_t n_slots, const struct inst_index_slot *slot)
{
    size_t i = slot->hash & (n_slots - 1);

    while (slots[i].row)
        i = (i + 1) & (n_slots - 1);
    slots[i] = *slot;
}

static bool grow(struct inst_index *index)
{
    size_t n_slots = index->n_slots ? index->n_slots * 2 : FIRST_SLOTS;
    struct inst_index_slot *slots = rt_alloc(n_slots * sizeof(*slots));

    if (!slots)
        return false;
    memset(slots, 0, n_slots * sizeof(*slots));
    for (size_t i = 0; i < index->n_slots; i++)
        if (index->slots[i].row)
            put(slots, n_slots, &index->slots[i]);
    (void)rt_free(index->slots);
    index->slots = slots;
    index->n_slots = n_slots;
    return true;
}

bool inst_index_add(struct inst_index *index, struct inst_row *row)
{
    struct inst_index_slot slot = {hash_of(index, inst_row_key(row)), row};

    if (index->n_rows + 1 > index->n_slots / 4 * 3 && !grow(index))
        return false;
    put(index->slots, index->n_slots, &slot);
    index->n_rows++;
    return true;
}

void inst_index_remove(struct inst_index *index, const struct inst_row *row)
{
    size_t mask = index->n_slots - 1;
    size_t hole = hash_of(index, inst_row_key(row)) & mask;

    while (index->slots[hole].row != row) {
        rt_assert(index->slots[hole].row);
        hole = (hole + 1) & mask;
    }
    for (size_t i = (hole + 1) & mask; index->slots[i].row; i = (i + 1) & mask) {
        size_t home = index->slots[i].hash & mask;

        if (((i - home) & mask) < ((i - hole) & mask))
            continue;
        index->slots[hole] = index->slots[i];
        hole = i;
    }
    index->slots[hole].row = NULL;
    index->n_rows--;
}
