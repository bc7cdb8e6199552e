/*
 * A client's memory of its locks: see locks.h. Invariants: a token once known for a key is only
 * ever replaced by that of a later GET; what is held is never in `released`, and n_released is what
 * is. Pure; the core's lock.
 */
#include "esi-client/locks.h"

#include "runtime/base/map.h"

struct esi_lock {
    UT_hash_handle hh;
    struct esi_lock_state state;
    struct rt_bytes key;     /* owned */
    struct rt_list released; /* in locks->released, or in none */
};

/* NOLINTNEXTLINE(readability-function-size): the macros of uthash nest */
static struct esi_lock *find(const struct esi_locks *locks, struct rt_bytes key)
{
    struct esi_lock *lock;

    HASH_FIND(hh, locks->by_key, key.data, key.size, lock);
    return lock;
}

/* NOLINTNEXTLINE(readability-function-size): the macros of uthash nest */
static struct esi_lock *add(struct esi_locks *locks, struct rt_bytes key)
{
    struct esi_lock *lock = rt_xalloc(sizeof(*lock));

    rt_list_init(&lock->released);
    lock->key = rt_bytes_of(rt_xmemdup(key.data, key.size), key.size);
    HASH_ADD_KEYPTR(hh, locks->by_key, lock->key.data, lock->key.size, lock);
    return lock;
}

static void unrelease(struct esi_locks *locks, struct esi_lock *lock)
{
    if (rt_list_is_empty(&lock->released))
        return;
    rt_list_remove(&lock->released);
    locks->n_released--;
}

static void drop(struct esi_locks *locks, struct esi_lock *lock)
{
    unrelease(locks, lock);
    HASH_DEL(locks->by_key, lock);
    (void)rt_free((void *)lock->key.data);
    (void)rt_free(lock);
}

/* NOLINTNEXTLINE(readability-function-size): the macros of uthash nest */
void esi_locks_deinit(struct esi_locks *locks)
{
    struct esi_lock *lock, *next;

    HASH_ITER (hh, locks->by_key, lock, next)
        drop(locks, lock);
}

void esi_locks_lose_all(struct esi_locks *locks)
{
    for (struct esi_lock *lock = locks->by_key; lock; lock = lock->hh.next) {
        lock->state.held = false;
        lock->state.lost = true;
    }
}

void esi_locks_forget(struct esi_locks *locks, struct rt_bytes key, uint64_t token)
{
    struct esi_lock *lock = find(locks, key);

    if (lock && lock->state.token == token)
        drop(locks, lock);
}

struct esi_lock_state esi_locks_find(const struct esi_locks *locks, struct rt_bytes key)
{
    const struct esi_lock *lock = find(locks, key);

    return lock ? lock->state : (struct esi_lock_state){0};
}

/* STORE and PUT. */
static void release(struct esi_locks *locks, struct esi_lock *lock)
{
    lock->state.held = false;
    lock->state.has_last_set = false;
    unrelease(locks, lock);
    if (!locks->released.next)
        rt_list_init(&locks->released);
    rt_list_push_back(&locks->released, &lock->released);
    if (++locks->n_released > ESI_LOCKS_RELEASED_MAX)
        drop(locks, RT_LIST_ENTRY(locks->released.next, struct esi_lock, released));
}

static void note_set(struct esi_lock *lock, const struct model_version *version)
{
    if (lock->state.has_last_set && model_version_compare(version, &lock->state.last_set) < 0)
        return;
    lock->state.has_last_set = true;
    lock->state.last_set = *version;
}

void esi_locks_note(struct esi_locks *locks, enum model_statement_kind kind, struct rt_bytes key,
                    uint64_t token, const struct model_version *version)
{
    struct esi_lock *lock = find(locks, key);

    switch (kind) {
    case MODEL_STATEMENT_GET:
        if (!lock)
            lock = add(locks, key);
        /* The holder's second GET keeps its SETs: they are still owed to the next STORE. */
        if (!lock->state.held)
            lock->state = (struct esi_lock_state){.held = true};
        lock->state.token = token;
        unrelease(locks, lock);
        break;
    case MODEL_STATEMENT_SET:
        if (lock && lock->state.held)
            note_set(lock, version);
        break;
    case MODEL_STATEMENT_DELETE:
        if (lock)
            lock->state.has_last_set = false;
        break;
    case MODEL_STATEMENT_STORE:
    case MODEL_STATEMENT_PUT:
        if (lock)
            release(locks, lock);
        break;
    case MODEL_STATEMENT_READ:
    case MODEL_STATEMENT_AWAIT:
        break;
    }
}
