/*
 * The keys that a planner knows of: who holds each and who waits for it. Private to the planner.
 *
 * A key is there while somebody holds it, waits for it, or was woken for it and has not run yet.
 * Pure; one thread.
 */
#ifndef ESI_PLANNER_KEYS_H
#define ESI_PLANNER_KEYS_H

#include "runtime/base/bytes.h"
#include "runtime/base/list.h"
#include "runtime/base/map.h"

enum {
    ESI_KEY_NOBODY = UINT32_MAX /* no ESI's id, nor the system owner's */
};

struct esi_key {
    UT_hash_handle hh;
    uint32_t holder;        /* ESI_KEY_NOBODY: none that the planner knows of */
    struct rt_list held;    /* in the list of an ESI that holds it */
    uint32_t woken;         /* waiter that the free key is for; ESI_KEY_NOBODY = none */
    struct rt_list waiters; /* esi_wait.link, by ticket */
    size_t size;
    uint8_t name[];
};

/* One ESI's waiting. */
struct esi_wait {
    struct rt_list link;
    struct esi_key *key; /* NULL: it waits for none */
    uint32_t id;
    uint64_t ticket; /* rises with each first wait for a key */
};

struct esi_keys {
    struct esi_key *by_name; /* uthash, owned */
};

void esi_keys_deinit(struct esi_keys *keys);

/* NULL when it is not known. */
struct esi_key *esi_keys_find(const struct esi_keys *keys, struct rt_bytes name);

/* Adds it if need be. */
struct esi_key *esi_keys_obtain(struct esi_keys *keys, struct rt_bytes name);

/* Frees it if nothing is to be known of it any more. */
void esi_keys_tidy(struct esi_keys *keys, struct esi_key *key);

/* `wait` waits for no key. Its place is by its ticket. */
void esi_keys_wait(struct esi_key *key, struct esi_wait *wait);

/* Waits for no key any more; the key stays. */
void esi_keys_leave(struct esi_wait *wait);

/* NULL when nobody waits. */
struct esi_wait *esi_keys_first(const struct esi_key *key);

struct rt_bytes esi_key_name(const struct esi_key *key);

#endif
