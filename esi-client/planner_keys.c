/*
 * Keys of a planner: see planner_keys.h. Invariant: a wait is in the list of the key that it names,
 * and lists are in the order of tickets. The planner's thread.
 */
#include "esi-client/planner_keys.h"

void esi_keys_deinit(struct esi_keys *keys)
{
    struct esi_key *key;
    struct esi_key *next;

    HASH_ITER (hh, keys->by_name, key, next) {
        HASH_DEL(keys->by_name, key);
        (void)rt_free(key);
    }
}

struct esi_key *esi_keys_find(const struct esi_keys *keys, struct rt_bytes name)
{
    struct esi_key *key = NULL;

    if (name.size > 0)
        HASH_FIND(hh, keys->by_name, name.data, name.size, key);
    return key;
}

struct esi_key *esi_keys_obtain(struct esi_keys *keys, struct rt_bytes name)
{
    struct esi_key *key = esi_keys_find(keys, name);

    if (key)
        return key;
    rt_assert(name.size > 0);
    key = rt_xalloc(sizeof(*key) + name.size);
    key->holder = ESI_KEY_NOBODY;
    key->woken = ESI_KEY_NOBODY;
    rt_list_init(&key->held);
    rt_list_init(&key->waiters);
    key->size = name.size;
    memcpy(key->name, name.data, name.size);
    HASH_ADD_KEYPTR(hh, keys->by_name, key->name, key->size, key);
    return key;
}

void esi_keys_tidy(struct esi_keys *keys, struct esi_key *key)
{
    if (key->holder != ESI_KEY_NOBODY || key->woken != ESI_KEY_NOBODY ||
        !rt_list_is_empty(&key->waiters))
        return;
    HASH_DEL(keys->by_name, key);
    (void)rt_free(key);
}

void esi_keys_wait(struct esi_key *key, struct esi_wait *wait)
{
    struct rt_list *before = key->waiters.previous;

    rt_assert(!wait->key);
    while (before != &key->waiters &&
           RT_LIST_ENTRY(before, struct esi_wait, link)->ticket > wait->ticket)
        before = before->previous;
    rt_list_insert_before(before->next, &wait->link);
    wait->key = key;
}

void esi_keys_leave(struct esi_wait *wait)
{
    rt_list_remove(&wait->link);
    wait->key = NULL;
}

struct esi_wait *esi_keys_first(const struct esi_key *key)
{
    return rt_list_is_empty(&key->waiters)
               ? NULL
               : RT_LIST_ENTRY(key->waiters.next, struct esi_wait, link);
}

struct rt_bytes esi_key_name(const struct esi_key *key)
{
    return rt_bytes_of(key->name, key->size);
}
