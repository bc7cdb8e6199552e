/*
 * The key table: see keys.h. Invariant: following a key's probe sequence from its hash one meets it
 * before the first empty slot; slots of removed keys do not end the sequence. Runs under the core's
 * lock.
 */
#include "coordinator/keys.h"

#include <xxhash.h>

#include "runtime/base/alloc.h"

enum {
    TAG_EMPTY,
    TAG_REMOVED,
    TAG_FIRST, /* tags of keys start here */

    FIRST_SLOTS = 64,
};

void coord_keys_init(struct coord_keys *keys, uint64_t seed)
{
    *keys = (struct coord_keys){.seed = seed};
}

void coord_keys_deinit(struct coord_keys *keys)
{
    for (size_t i = 0; i < keys->n_slots; i++) {
        if (keys->tags[i] < TAG_FIRST)
            continue;
        (void)rt_free(keys->slots[i]->extra);
        (void)rt_free(keys->slots[i]);
    }
    (void)rt_free(keys->slots);
    (void)rt_free(keys->tags);
    *keys = (struct coord_keys){0};
}

static uint64_t hash_of(const struct coord_keys *keys, struct rt_bytes name)
{
    return XXH3_64bits_withSeed(name.data, name.size, keys->seed);
}

/* The top byte: the slot comes from the low bits. */
static uint8_t tag_of(uint64_t hash)
{
    uint8_t tag = (uint8_t)(hash >> 56);

    return tag < TAG_FIRST ? (uint8_t)(tag + TAG_FIRST) : tag;
}

/* Slot of the key, or n_slots. */
static size_t locate(const struct coord_keys *keys, struct rt_bytes name, uint64_t hash)
{
    uint8_t tag = tag_of(hash);
    size_t mask = keys->n_slots - 1;

    if (keys->n_slots == 0)
        return 0;
    for (size_t i = hash & mask; keys->tags[i] != TAG_EMPTY; i = (i + 1) & mask) {
        if (keys->tags[i] == tag && rt_bytes_equal(coord_key_name(keys->slots[i]), name))
            return i;
    }
    return keys->n_slots;
}

struct coord_key *coord_keys_find(const struct coord_keys *keys, struct rt_bytes name)
{
    size_t slot = locate(keys, name, hash_of(keys, name));

    return slot < keys->n_slots ? keys->slots[slot] : NULL;
}

/* The key is not in the table and there is an empty slot. */
static void insert(struct coord_keys *keys, struct coord_key *key, uint64_t hash)
{
    size_t mask = keys->n_slots - 1;
    size_t i = hash & mask;

    while (keys->tags[i] >= TAG_FIRST)
        i = (i + 1) & mask;
    if (keys->tags[i] == TAG_EMPTY)
        keys->n_used++;
    keys->tags[i] = tag_of(hash);
    keys->slots[i] = key;
    keys->n_keys++;
}

/* Gives the keys a table in which they use at most half; false when memory is out. */
static bool rebuild(struct coord_keys *keys)
{
    struct coord_keys grown = *keys;
    size_t n_slots = FIRST_SLOTS;

    while (n_slots / 2 < keys->n_keys + 1)
        n_slots *= 2;
    grown.slots = rt_alloc(n_slots * sizeof(struct coord_key *));
    grown.tags = rt_alloc(n_slots);
    if (!grown.slots || !grown.tags) {
        (void)rt_free(grown.slots);
        (void)rt_free(grown.tags);
        return false;
    }
    memset(grown.tags, TAG_EMPTY, n_slots);
    grown.n_slots = n_slots;
    grown.n_keys = 0;
    grown.n_used = 0;
    grown.layout++;
    for (size_t i = 0; i < keys->n_slots; i++) {
        if (keys->tags[i] >= TAG_FIRST)
            insert(&grown, keys->slots[i], hash_of(keys, coord_key_name(keys->slots[i])));
    }
    (void)rt_free(keys->slots);
    (void)rt_free(keys->tags);
    *keys = grown;
    return true;
}

struct coord_key *coord_keys_obtain(struct coord_keys *keys, struct rt_bytes name)
{
    uint64_t hash = hash_of(keys, name);
    size_t slot = locate(keys, name, hash);
    struct coord_key *key;

    rt_assert(name.size >= 1 && name.size <= MODEL_KEY_MAX);
    if (slot < keys->n_slots)
        return keys->slots[slot];
    if ((keys->n_used + 1) * 8 > keys->n_slots * 7 && !rebuild(keys))
        return NULL;
    key = rt_alloc(sizeof(*key) + name.size);
    if (!key)
        return NULL;
    *key = (struct coord_key){.size = (uint8_t)name.size};
    memcpy(key->bytes, name.data, name.size);
    insert(keys, key, hash);
    return key;
}

void coord_keys_set_exists(struct coord_keys *keys, struct coord_key *key, bool exists)
{
    if (exists && !key->exists)
        keys->n_existing++;
    if (!exists && key->exists)
        keys->n_existing--;
    key->exists = exists;
}

struct coord_key_extra *coord_keys_obtain_extra(struct coord_key *key)
{
    struct coord_key_extra *extra = key->extra;

    if (extra)
        return extra;
    extra = rt_xalloc(sizeof(*extra));
    extra->key = key;
    rt_list_init(&extra->held_link);
    rt_list_init(&extra->waiters);
    rt_list_init(&extra->queue);
    key->extra = extra;
    return extra;
}

static bool extra_is_idle(const struct coord_key_extra *extra)
{
    return !extra->holder && !extra->latch && extra->n_shared == 0 && extra->n_queue == 0 &&
           extra->n_waiters == 0 && !extra->committing && !coord_timer_is_set(&extra->turn_timer);
}

static void remove_key(struct coord_keys *keys, struct coord_key *key)
{
    struct rt_bytes name = coord_key_name(key);
    size_t slot = locate(keys, name, hash_of(keys, name));

    keys->tags[slot] = TAG_REMOVED;
    keys->slots[slot] = NULL;
    keys->n_keys--;
    (void)rt_free(key);
}

void coord_keys_tidy(struct coord_keys *keys, struct coord_key *key)
{
    if (key->extra && extra_is_idle(key->extra))
        key->extra = rt_free(key->extra);
    if (!key->extra && !key->exists)
        remove_key(keys, key);
}

struct coord_key *coord_keys_next(const struct coord_keys *keys, size_t *position,
                                  size_t n_slots_max)
{
    size_t end = keys->n_slots;

    if (*position < end && n_slots_max < end - *position)
        end = *position + n_slots_max;
    while (*position < end) {
        size_t i = (*position)++;

        if (keys->tags[i] >= TAG_FIRST)
            return keys->slots[i];
    }
    return NULL;
}
