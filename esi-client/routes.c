/*
 * The route cache: see routes.h. Invariant: every owner has the keys that point to it and at least
 * one; epochs of a key and incarnations of an owner only rise. Pure; the core's lock.
 */
#include "esi-client/routes.h"

#include "runtime/base/map.h"

struct esi_routes_owner {
    UT_hash_handle hh;
    char *name;    /* owned */
    char *address; /* owned */
    uint64_t incarnation;
    size_t n_keys;
    bool is_suspect;
};

struct esi_routes_key {
    UT_hash_handle hh;
    struct rt_list link;
    struct rt_bytes key; /* owned */
    struct esi_routes_owner *owner;
    uint64_t epoch;
    bool for_writes;
    bool is_doubted;
};

/* ---- owners ---------------------------------------------------------------------------------- */

static struct esi_routes_owner *find_owner(const struct esi_routes *routes, const char *name)
{
    struct esi_routes_owner *owner;

    HASH_FIND_STR(routes->by_owner, name, owner);
    return owner;
}

static void set_address(struct esi_routes_owner *owner, const char *address)
{
    if (owner->address && strcmp(owner->address, address) == 0)
        return;
    (void)rt_free(owner->address);
    owner->address = rt_xstrdup(address);
}

/* NOLINTNEXTLINE(readability-function-size): the macros of uthash nest */
static struct esi_routes_owner *add_owner(struct esi_routes *routes, const struct esi_route *route)
{
    struct esi_routes_owner *owner = rt_xalloc(sizeof(*owner));

    owner->name = rt_xstrdup(route->owner);
    owner->incarnation = route->incarnation;
    set_address(owner, route->address);
    HASH_ADD_KEYPTR(hh, routes->by_owner, owner->name, strlen(owner->name), owner);
    return owner;
}

static void leave_owner(struct esi_routes *routes, struct esi_routes_owner *owner)
{
    if (--owner->n_keys > 0)
        return;
    HASH_DEL(routes->by_owner, owner);
    (void)rt_free(owner->name);
    (void)rt_free(owner->address);
    (void)rt_free(owner);
}

static void see_life(struct esi_routes_owner *owner, const char *address, uint64_t incarnation)
{
    if (incarnation <= owner->incarnation)
        return;
    owner->incarnation = incarnation;
    owner->is_suspect = false;
    if (address)
        set_address(owner, address);
}

void esi_routes_see_owner(struct esi_routes *routes, const char *name, const char *address,
                          uint64_t incarnation)
{
    struct esi_routes_owner *owner = find_owner(routes, name);

    if (owner)
        see_life(owner, address, incarnation);
}

void esi_routes_suspect(struct esi_routes *routes, const char *name, uint64_t incarnation)
{
    struct esi_routes_owner *owner = find_owner(routes, name);

    if (owner && owner->incarnation <= incarnation)
        owner->is_suspect = true;
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* NOLINTNEXTLINE(readability-function-size): the macros of uthash nest */
static struct esi_routes_key *find_key(const struct esi_routes *routes, struct rt_bytes key)
{
    struct esi_routes_key *entry;

    HASH_FIND(hh, routes->by_key, key.data, key.size, entry);
    return entry;
}

static void forget(struct esi_routes *routes, struct esi_routes_key *entry)
{
    HASH_DEL(routes->by_key, entry);
    rt_list_remove(&entry->link);
    leave_owner(routes, entry->owner);
    (void)rt_free((void *)entry->key.data);
    (void)rt_free(entry);
}

static void forget_oldest(struct esi_routes *routes)
{
    forget(routes, RT_LIST_ENTRY(routes->by_use.next, struct esi_routes_key, link));
}

/* NOLINTNEXTLINE(readability-function-size): the macros of uthash nest */
static struct esi_routes_key *add_key(struct esi_routes *routes, struct rt_bytes key)
{
    struct esi_routes_key *entry = rt_xalloc(sizeof(*entry));

    if (esi_routes_count(routes) >= routes->n_max)
        forget_oldest(routes);
    entry->key = rt_bytes_of(rt_xmemdup(key.data, key.size), key.size);
    rt_list_push_back(&routes->by_use, &entry->link);
    HASH_ADD_KEYPTR(hh, routes->by_key, entry->key.data, entry->key.size, entry);
    return entry;
}

static void set_owner(struct esi_routes *routes, struct esi_routes_key *entry,
                      const struct esi_route *route)
{
    struct esi_routes_owner *owner = find_owner(routes, route->owner);

    if (!owner)
        owner = add_owner(routes, route);
    see_life(owner, route->address, route->incarnation);
    owner->n_keys++;
    if (entry->owner)
        leave_owner(routes, entry->owner);
    entry->owner = owner;
}

/* `entry` is NULL for a key that is not remembered. */
static struct esi_routes_key *replace(struct esi_routes *routes, struct rt_bytes key,
                                      struct esi_routes_key *entry, const struct esi_route *route)
{
    if (!entry)
        entry = add_key(routes, key);
    set_owner(routes, entry, route);
    entry->epoch = route->epoch;
    entry->for_writes = route->for_writes;
    entry->is_doubted = false;
    return entry;
}

void esi_routes_init(struct esi_routes *routes, size_t n_max)
{
    rt_assert(n_max > 0);
    *routes = (struct esi_routes){.n_max = n_max};
    rt_list_init(&routes->by_use);
}

void esi_routes_deinit(struct esi_routes *routes)
{
    while (!rt_list_is_empty(&routes->by_use))
        forget_oldest(routes);
}

size_t esi_routes_count(const struct esi_routes *routes)
{
    return HASH_COUNT(routes->by_key);
}

bool esi_routes_find(struct esi_routes *routes, struct rt_bytes key, struct esi_route *ret_route)
{
    struct esi_routes_key *entry = find_key(routes, key);

    if (!entry || entry->is_doubted || entry->owner->is_suspect)
        return false;
    rt_list_remove(&entry->link);
    rt_list_push_back(&routes->by_use, &entry->link);
    *ret_route = (struct esi_route){
        .owner = entry->owner->name,
        .address = entry->owner->address,
        .incarnation = entry->owner->incarnation,
        .epoch = entry->epoch,
        .for_writes = entry->for_writes,
    };
    return true;
}

uint64_t esi_routes_epoch(const struct esi_routes *routes, struct rt_bytes key)
{
    const struct esi_routes_key *entry = find_key(routes, key);

    return entry ? entry->epoch : 0;
}

void esi_routes_learn(struct esi_routes *routes, struct rt_bytes key, const struct esi_route *route)
{
    struct esi_routes_key *entry = find_key(routes, key);

    if (entry && route->epoch < entry->epoch)
        return;
    if (entry && route->epoch == entry->epoch) {
        see_life(entry->owner, route->address, route->incarnation);
        entry->for_writes |= route->for_writes;
    } else {
        entry = replace(routes, key, entry, route);
    }
    if (route->incarnation < entry->owner->incarnation)
        return;
    entry->is_doubted = false;
    entry->owner->is_suspect = false;
}

bool esi_routes_take_hint(struct esi_routes *routes, struct rt_bytes key,
                          const struct model_hint *hint)
{
    struct esi_routes_key *entry = find_key(routes, key);
    struct esi_route route = {
        .owner = hint->name,
        .address = hint->address,
        .incarnation = hint->incarnation,
        .epoch = hint->epoch,
    };

    if (entry && hint->epoch < entry->epoch)
        return false;
    if (entry && hint->epoch == entry->epoch) {
        if (strcmp(entry->owner->name, hint->name) != 0 ||
            hint->incarnation <= entry->owner->incarnation)
            return false;
        see_life(entry->owner, hint->address, hint->incarnation);
        entry->is_doubted = false;
        return true;
    }
    (void)replace(routes, key, entry, &route);
    return true;
}

void esi_routes_doubt(struct esi_routes *routes, struct rt_bytes key, uint64_t epoch,
                      uint64_t incarnation)
{
    struct esi_routes_key *entry = find_key(routes, key);

    if (entry && entry->epoch <= epoch && entry->owner->incarnation <= incarnation)
        entry->is_doubted = true;
}
