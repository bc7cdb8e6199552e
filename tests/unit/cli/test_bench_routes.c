/*
 * Routes of a load: who owns which key, and batches that fill up to exactly their size.
 */
#include "cli/bench_routes.h"

#include <stdio.h>

#include "tests/support/check.h"

TestSuite(bench_routes, .fini = test_alloc_expect_none);

enum {
    N_KEYS = 10,
    BATCH = 3,
};

static struct model_route route_to(const char *owner, uint64_t incarnation, uint64_t epoch)
{
    struct model_route route = {.epoch = epoch, .incarnation = incarnation};

    (void)snprintf(route.owner, sizeof(route.owner), "%s", owner);
    (void)snprintf(route.address, sizeof(route.address), "127.0.0.1:1");
    return route;
}

static struct cli_bench_owner *learn(struct cli_bench_routes *routes, uint32_t key,
                                     const char *owner, uint64_t incarnation)
{
    struct model_route route = route_to(owner, incarnation, 100 + key);

    return cli_bench_routes_learn(routes, key, &route);
}

Test(bench_routes, nothing_is_known_at_first)
{
    struct cli_bench_routes routes;

    cli_bench_routes_init(&routes, N_KEYS, BATCH);
    for (uint32_t key = 0; key < N_KEYS; key++)
        cr_assert_null(cli_bench_routes_find(&routes, key));
    cr_assert_null(cli_bench_routes_next(&routes));
    cli_bench_routes_deinit(&routes);
}

Test(bench_routes, keys_of_one_life_share_their_owner)
{
    struct cli_bench_routes routes;
    struct cli_bench_owner *a;

    cli_bench_routes_init(&routes, N_KEYS, BATCH);
    a = learn(&routes, 0, "a", 1);
    cr_assert_eq(learn(&routes, N_KEYS - 1, "a", 1), a);
    cr_assert_neq(learn(&routes, 1, "b", 1), a, "another name");
    cr_assert_neq(learn(&routes, 2, "a", 2), a, "another life");
    cr_assert_eq(routes.n_owners, 3);
    cr_assert_eq(cli_bench_routes_find(&routes, 0), a, "owners stay where they are");
    cr_assert_eq(cli_bench_routes_find(&routes, N_KEYS - 1), a);
    cli_bench_routes_deinit(&routes);
}

Test(bench_routes, addresses_and_clusters_tell_owners_apart)
{
    struct cli_bench_routes routes;
    struct model_route route = route_to("a", 1, 7);
    struct cli_bench_owner *first;

    cli_bench_routes_init(&routes, N_KEYS, BATCH);
    first = cli_bench_routes_learn(&routes, 0, &route);
    (void)snprintf(route.address, sizeof(route.address), "127.0.0.1:2");
    cr_assert_neq(cli_bench_routes_learn(&routes, 1, &route), first);
    route = route_to("a", 1, 7);
    route.cluster_id.bytes[0] = 1;
    cr_assert_neq(cli_bench_routes_learn(&routes, 2, &route), first);
    cli_bench_routes_deinit(&routes);
}

Test(bench_routes, forgets_one_key_and_learns_it_again)
{
    struct cli_bench_routes routes;

    cli_bench_routes_init(&routes, N_KEYS, BATCH);
    (void)learn(&routes, 0, "a", 1);
    (void)learn(&routes, 1, "a", 1);
    cli_bench_routes_forget(&routes, 0);
    cr_assert_null(cli_bench_routes_find(&routes, 0));
    cr_assert_not_null(cli_bench_routes_find(&routes, 1));
    cr_assert_str_eq(learn(&routes, 0, "b", 1)->route.owner, "b");
    cli_bench_routes_deinit(&routes);
}

Test(bench_routes, batches_are_complete_at_their_size)
{
    struct cli_bench_operation taken[BATCH];
    struct cli_bench_routes routes;
    struct cli_bench_owner *a;

    cli_bench_routes_init(&routes, N_KEYS, BATCH);
    for (uint32_t key = 0; key < BATCH; key++)
        a = learn(&routes, key, "a", 1);
    for (uint32_t key = 0; key < BATCH; key++) {
        struct cli_bench_operation operation = {.intended_us = 50 + key, .key = key};

        cr_assert_eq(cli_bench_routes_add(&routes, a, &operation), key == BATCH - 1);
        cr_assert_eq(routes.n_waiting, key + 1);
    }
    cr_assert_eq(cli_bench_routes_take(&routes, a, taken), BATCH);
    for (uint32_t key = 0; key < BATCH; key++) {
        cr_assert_eq(taken[key].key, key, "in the order they came");
        cr_assert_eq(taken[key].epoch, 100 + key);
        cr_assert_eq(taken[key].intended_us, 50 + key);
    }
    cr_assert_eq(routes.n_waiting, 0);
    cr_assert_eq(cli_bench_routes_take(&routes, a, taken), 0);
    cli_bench_routes_deinit(&routes);
}

/* What waits keeps the epoch it was drawn with: the owner refuses it when that is stale. */
Test(bench_routes, what_waits_for_an_owner_outlives_the_route)
{
    struct cli_bench_operation operation = {.key = 4};
    struct cli_bench_operation taken[BATCH];
    struct cli_bench_routes routes;
    struct cli_bench_owner *a;

    cli_bench_routes_init(&routes, N_KEYS, BATCH);
    (void)learn(&routes, 0, "b", 1);
    a = learn(&routes, 4, "a", 1);
    (void)cli_bench_routes_add(&routes, a, &operation);
    cli_bench_routes_forget(&routes, 4);
    cr_assert_eq(cli_bench_routes_next(&routes), a);
    cr_assert_eq(cli_bench_routes_take(&routes, a, taken), 1);
    cr_assert_eq(taken[0].epoch, 104);
    cr_assert_null(cli_bench_routes_next(&routes));
    cli_bench_routes_deinit(&routes);
}

Test(bench_routes, one_operation_is_a_batch_of_one)
{
    struct cli_bench_operation operation = {.key = 0};
    struct cli_bench_routes routes;
    struct cli_bench_owner *a;

    cli_bench_routes_init(&routes, 1, 1);
    a = learn(&routes, 0, "a", 1);
    cr_assert(cli_bench_routes_add(&routes, a, &operation));
    cr_assert_eq(cli_bench_routes_take(&routes, a, &operation), 1);
    cli_bench_routes_deinit(&routes);
}
