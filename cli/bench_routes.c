/*
 * Routes of a load: see bench_routes.h. Invariant: n_waiting is the sum over the owners. Pure.
 */
#include "cli/bench_routes.h"

#include "runtime/base/alloc.h"

void cli_bench_routes_init(struct cli_bench_routes *routes, uint64_t n_keys, uint32_t batch)
{
    *routes = (struct cli_bench_routes){
        .keys = rt_xalloc(n_keys * sizeof(*routes->keys)),
        .n_keys = n_keys,
        .batch = batch,
    };
}

void cli_bench_routes_deinit(struct cli_bench_routes *routes)
{
    for (uint32_t i = 0; i < routes->n_owners; i++) {
        (void)rt_free(routes->owners[i]->waiting);
        (void)rt_free(routes->owners[i]);
    }
    (void)rt_free(routes->owners);
    (void)rt_free(routes->keys);
    *routes = (struct cli_bench_routes){0};
}

struct cli_bench_owner *cli_bench_routes_find(const struct cli_bench_routes *routes, uint32_t key)
{
    uint32_t owner = routes->keys[key].owner;

    return owner == 0 ? NULL : routes->owners[owner - 1];
}

static bool is_same(const struct model_route *a, const struct model_route *b)
{
    return a->incarnation == b->incarnation && strcmp(a->owner, b->owner) == 0 &&
           strcmp(a->address, b->address) == 0 && model_id_equal(&a->cluster_id, &b->cluster_id);
}

/* Index + 1. Few owners: newest first, since the routes of now name those. */
static uint32_t owner_of(struct cli_bench_routes *routes, const struct model_route *route)
{
    struct cli_bench_owner *owner;

    for (uint32_t i = routes->n_owners; i > 0; i--)
        if (is_same(&routes->owners[i - 1]->route, route))
            return i;
    owner = rt_xalloc(sizeof(*owner));
    owner->route = *route;
    owner->waiting = rt_xalloc(routes->batch * sizeof(*owner->waiting));
    routes->owners =
        rt_xrealloc(routes->owners, (routes->n_owners + 1) * sizeof(struct cli_bench_owner *));
    routes->owners[routes->n_owners++] = owner;
    return routes->n_owners;
}

struct cli_bench_owner *cli_bench_routes_learn(struct cli_bench_routes *routes, uint32_t key,
                                               const struct model_route *route)
{
    routes->keys[key] = (struct cli_bench_key){route->epoch, owner_of(routes, route)};
    return cli_bench_routes_find(routes, key);
}

void cli_bench_routes_forget(struct cli_bench_routes *routes, uint32_t key)
{
    routes->keys[key] = (struct cli_bench_key){0};
}

bool cli_bench_routes_add(struct cli_bench_routes *routes, struct cli_bench_owner *owner,
                          const struct cli_bench_operation *operation)
{
    struct cli_bench_operation *added;

    rt_assert(owner->n_waiting < routes->batch);
    added = &owner->waiting[owner->n_waiting++];
    *added = *operation;
    added->epoch = routes->keys[operation->key].epoch;
    routes->n_waiting++;
    return owner->n_waiting == routes->batch;
}

uint32_t cli_bench_routes_take(struct cli_bench_routes *routes, struct cli_bench_owner *owner,
                               struct cli_bench_operation *ret_operations)
{
    uint32_t n = owner->n_waiting;

    memcpy(ret_operations, owner->waiting, n * sizeof(*ret_operations));
    owner->n_waiting = 0;
    routes->n_waiting -= n;
    return n;
}

struct cli_bench_owner *cli_bench_routes_next(const struct cli_bench_routes *routes)
{
    for (uint32_t i = 0; routes->n_waiting > 0 && i < routes->n_owners; i++)
        if (routes->owners[i]->n_waiting > 0)
            return routes->owners[i];
    return NULL;
}
