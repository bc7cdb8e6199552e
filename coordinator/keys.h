/*
 * The key table: what the coordinator knows of each key.
 *
 * An open-addressing table of its own (uthash costs 56 bytes a handle): one pointer and one byte of
 * hash a slot, one block of 32 bytes and the key's own bytes a key. What only few keys have at a
 * time (a lock, waiters, an operation under way) is in `extra`.
 *
 * Keys do not move: a pointer is good until the key is removed. A key that does not exist (yet, or
 * any more) stays in the table while it has an extra. Not thread safe.
 */
#ifndef COORD_KEYS_H
#define COORD_KEYS_H

#include "coordinator/rows.h"
#include "coordinator/timers.h"
#include "runtime/base/bytes.h"
#include "runtime/base/list.h"

struct coord_session;
struct coord_task;
struct coord_waiter;

struct coord_key_extra {
    struct coord_key *key;
    struct coord_session *holder; /* NULL = free */
    uint64_t token;               /* of the holder */
    struct rt_list held_link;     /* in the holder's list of keys */
    struct rt_list waiters;       /* coord_waiter.key_link, first to be woken first */
    size_t n_waiters;
    struct coord_waiter *turn; /* woken and not back yet; NULL = nobody */
    struct coord_timer turn_timer;
    struct coord_task *latch; /* the operation that may change the key now */
    size_t n_shared;          /* operations that rely on it as it is; never together with latch */
    struct rt_list queue;     /* coord_task.wait_link: operations that wait for the latch */
    size_t n_queue;
    bool committing; /* a transaction that writes this key's row is under way */
};

struct coord_key {
    uint64_t epoch;
    uint64_t newest_token;
    struct coord_key_extra *extra; /* owned; NULL for most keys */
    uint32_t reconcile_mark;       /* round of its owner's reconcile that reported it */
    uint16_t owner;                /* ordinal; 0 while unplaced */
    uint8_t phase : 2;             /* enum coord_phase */
    uint8_t exists : 1;            /* there is a row */
    uint8_t maybe_stored : 1;
    uint8_t key_lost : 1;
    uint8_t release_pending : 1;
    uint8_t dropping : 1; /* a Drop of this epoch may have reached the owner */
    uint8_t deleted : 1;  /* its value was deleted under a lock: unplace it when it is free */
    uint8_t size;
    uint8_t bytes[];
};

struct coord_keys {
    struct coord_key **slots; /* owned */
    uint8_t *tags;            /* owned; empty, removed, or some bits of the hash */
    size_t n_slots;           /* 0 or a power of two */
    size_t n_keys;            /* in the table, existing or not */
    size_t n_used;            /* keys and removed slots */
    size_t n_existing;
    uint64_t layout; /* changes whenever keys change their slots */
    uint64_t seed;   /* of the hash: peers choose the keys */
};

void coord_keys_init(struct coord_keys *keys, uint64_t seed);

/* Frees all keys and their extras, which must be idle. */
void coord_keys_deinit(struct coord_keys *keys);

/* NULL when it is not in the table. */
struct coord_key *coord_keys_find(const struct coord_keys *keys, struct rt_bytes name);

/* Finds it, or adds it as one that does not exist. NULL when memory is out. `name` has
 * 1..MODEL_KEY_MAX bytes. */
struct coord_key *coord_keys_obtain(struct coord_keys *keys, struct rt_bytes name);

void coord_keys_set_exists(struct coord_keys *keys, struct coord_key *key, bool exists);

struct coord_key_extra *coord_keys_obtain_extra(struct coord_key *key);

/* Frees the extra if nothing is in it, and removes the key if it does not exist either: the pointer
 * is void afterwards. */
void coord_keys_tidy(struct coord_keys *keys, struct coord_key *key);

/* Existing or not, in no order; `*position` starts at 0. NULL at the end. A walk over several steps
 * of the core has to start again when keys->layout has changed. At most `n_slots_max` slots are
 * looked at: then NULL is returned with *position < keys->n_slots. */
struct coord_key *coord_keys_next(const struct coord_keys *keys, size_t *position,
                                  size_t n_slots_max);

static inline struct rt_bytes coord_key_name(const struct coord_key *key)
{
    return rt_bytes_of(key->bytes, key->size);
}

/* A client may be told where to write it: what it stores there is not forgotten. */
static inline bool coord_key_has_route(const struct coord_key *key)
{
    return key->exists && key->phase == COORD_PHASE_ACTIVE && key->maybe_stored;
}

static inline struct coord_session *coord_key_holder(const struct coord_key *key)
{
    return key->extra ? key->extra->holder : NULL;
}

#endif
