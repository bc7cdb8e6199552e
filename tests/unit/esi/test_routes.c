/*
 * The route cache: what is taken, what is refused, what is used, what goes first.
 */
#include "esi-client/routes.h"

#include <stdio.h>

#include "tests/support/check.h"

TestSuite(routes, .fini = test_alloc_expect_none);

static const struct rt_bytes key = {(const uint8_t *)"k\0y", 3};

static struct esi_route route_of(const char *owner, uint64_t epoch, uint64_t incarnation)
{
    return (struct esi_route){.owner = owner,
                              .address = "here:1",
                              .epoch = epoch,
                              .incarnation = incarnation,
                              .for_writes = true};
}

static void learn(struct esi_routes *routes, struct rt_bytes name, const char *owner,
                  uint64_t epoch, uint64_t incarnation)
{
    struct esi_route route = route_of(owner, epoch, incarnation);

    esi_routes_learn(routes, name, &route);
}

static bool hint(struct esi_routes *routes, const char *owner, uint64_t epoch, uint64_t incarnation)
{
    struct model_hint hint = {.epoch = epoch, .incarnation = incarnation, .address = "there:2"};

    (void)snprintf(hint.name, sizeof(hint.name), "%s", owner);
    return esi_routes_take_hint(routes, key, &hint);
}

static void expect(struct esi_routes *routes, const char *owner, uint64_t epoch,
                   uint64_t incarnation)
{
    struct esi_route route;

    cr_assert(esi_routes_find(routes, key, &route));
    cr_assert_str_eq(route.owner, owner);
    cr_assert_eq(route.epoch, epoch);
    cr_assert_eq(route.incarnation, incarnation);
}

static bool is_usable(struct esi_routes *routes)
{
    struct esi_route route;

    return esi_routes_find(routes, key, &route);
}

Test(routes, an_unknown_key_has_no_route)
{
    struct esi_routes routes;

    esi_routes_init(&routes, 4);
    cr_assert_not(is_usable(&routes));
    cr_assert_eq(esi_routes_epoch(&routes, key), 0);
    esi_routes_doubt(&routes, key, 9, 9);
    esi_routes_suspect(&routes, "i1", 9);
    esi_routes_see_owner(&routes, "i1", "here:1", 9);
    cr_assert_eq(esi_routes_count(&routes), 0);
    esi_routes_deinit(&routes);
}

Test(routes, a_lower_epoch_is_ignored)
{
    struct esi_routes routes;

    esi_routes_init(&routes, 4);
    learn(&routes, key, "i2", 7, 3);
    learn(&routes, key, "i1", 6, 9);
    expect(&routes, "i2", 7, 3);
    learn(&routes, key, "i1", 8, 9);
    expect(&routes, "i1", 8, 9);
    cr_assert_eq(esi_routes_epoch(&routes, key), 8);
    esi_routes_deinit(&routes);
}

Test(routes, a_doubted_route_keeps_its_epoch_and_waits_for_the_coordinator)
{
    struct esi_routes routes;

    esi_routes_init(&routes, 4);
    learn(&routes, key, "i1", 7, 3);
    esi_routes_doubt(&routes, key, 7, 3);
    cr_assert_not(is_usable(&routes));
    cr_assert_eq(esi_routes_epoch(&routes, key), 7);
    learn(&routes, key, "i1", 6, 3);
    cr_assert_not(is_usable(&routes), "an older answer confirms nothing");
    learn(&routes, key, "i1", 7, 2);
    cr_assert_not(is_usable(&routes), "nor does one about an earlier life");
    learn(&routes, key, "i1", 7, 3);
    expect(&routes, "i1", 7, 3);
    esi_routes_deinit(&routes);
}

Test(routes, a_refusal_of_an_older_route_raises_no_doubt)
{
    struct esi_routes routes;

    esi_routes_init(&routes, 4);
    learn(&routes, key, "i1", 7, 3);
    esi_routes_doubt(&routes, key, 6, 3);
    expect(&routes, "i1", 7, 3);
    esi_routes_doubt(&routes, key, 7, 2);
    expect(&routes, "i1", 7, 3);
    esi_routes_deinit(&routes);
}

Test(routes, a_hint_is_taken_only_when_it_is_newer)
{
    struct esi_routes routes;

    esi_routes_init(&routes, 4);
    learn(&routes, key, "i1", 7, 3);
    cr_assert_not(hint(&routes, "i2", 6, 9));
    cr_assert_not(hint(&routes, "i1", 7, 3));
    cr_assert_not(hint(&routes, "i1", 7, 2));
    cr_assert_not(hint(&routes, "i2", 7, 9), "one epoch has one owner");
    expect(&routes, "i1", 7, 3);
    cr_assert(hint(&routes, "i1", 7, 4));
    expect(&routes, "i1", 7, 4);
    cr_assert(hint(&routes, "i2", 8, 1));
    expect(&routes, "i2", 8, 1);
    esi_routes_deinit(&routes);
}

Test(routes, a_hint_is_taken_for_a_key_without_route)
{
    struct esi_routes routes;

    esi_routes_init(&routes, 4);
    cr_assert(hint(&routes, "i2", 8, 1));
    expect(&routes, "i2", 8, 1);
    esi_routes_deinit(&routes);
}

Test(routes, a_hint_of_a_new_epoch_is_not_for_writes)
{
    struct esi_routes routes;
    struct esi_route route;

    esi_routes_init(&routes, 4);
    learn(&routes, key, "i1", 7, 3);
    cr_assert(hint(&routes, "i1", 7, 4));
    cr_assert(esi_routes_find(&routes, key, &route));
    cr_assert(route.for_writes, "the same epoch: the coordinator has given it out");
    cr_assert_str_eq(route.address, "there:2");
    cr_assert(hint(&routes, "i1", 8, 4));
    cr_assert(esi_routes_find(&routes, key, &route));
    cr_assert_not(route.for_writes);
    learn(&routes, key, "i1", 8, 4);
    cr_assert(esi_routes_find(&routes, key, &route));
    cr_assert(route.for_writes);
    esi_routes_deinit(&routes);
}

Test(routes, a_suspect_owner_serves_no_key_until_it_is_confirmed)
{
    static const struct rt_bytes other = RT_BYTES_LITERAL("other");
    struct esi_routes routes;

    esi_routes_init(&routes, 4);
    learn(&routes, key, "i1", 7, 3);
    learn(&routes, other, "i1", 8, 3);
    esi_routes_suspect(&routes, "i1", 2);
    expect(&routes, "i1", 7, 3);
    esi_routes_suspect(&routes, "i1", 3);
    cr_assert_not(is_usable(&routes));
    learn(&routes, other, "i1", 8, 3);
    expect(&routes, "i1", 7, 3);
    esi_routes_deinit(&routes);
}

Test(routes, a_new_life_of_an_owner_corrects_all_its_keys)
{
    struct esi_routes routes;
    struct esi_route route;

    esi_routes_init(&routes, 4);
    learn(&routes, key, "i1", 7, 3);
    esi_routes_suspect(&routes, "i1", 3);
    esi_routes_see_owner(&routes, "i1", NULL, 2);
    cr_assert_not(is_usable(&routes));
    esi_routes_see_owner(&routes, "i1", "moved:3", 4);
    expect(&routes, "i1", 7, 4);
    cr_assert(esi_routes_find(&routes, key, &route));
    cr_assert_str_eq(route.address, "moved:3");
    esi_routes_see_owner(&routes, "i1", NULL, 5);
    cr_assert(esi_routes_find(&routes, key, &route));
    cr_assert_str_eq(route.address, "moved:3");
    esi_routes_deinit(&routes);
}

static struct rt_bytes numbered(char text[16], int number)
{
    (void)snprintf(text, 16, "key-%d", number);
    return rt_bytes_of_string(text);
}

Test(routes, at_the_limit_and_past_it_the_least_recently_used_goes)
{
    struct esi_routes routes;
    struct esi_route route;
    char text[16];

    esi_routes_init(&routes, 3);
    for (int i = 0; i < 3; i++)
        learn(&routes, numbered(text, i), "i1", 7, 3);
    cr_assert_eq(esi_routes_count(&routes), 3);
    cr_assert(esi_routes_find(&routes, numbered(text, 0), &route));
    learn(&routes, numbered(text, 3), "i1", 7, 3);
    cr_assert_eq(esi_routes_count(&routes), 3);
    cr_assert(esi_routes_find(&routes, numbered(text, 0), &route));
    cr_assert_not(esi_routes_find(&routes, numbered(text, 1), &route));
    cr_assert(esi_routes_find(&routes, numbered(text, 3), &route));
    esi_routes_deinit(&routes);
}

Test(routes, one_route_at_most_is_kept_when_one_is_allowed)
{
    struct esi_routes routes;
    char text[16];

    esi_routes_init(&routes, 1);
    for (int i = 0; i < 10; i++)
        learn(&routes, numbered(text, i), i % 2 ? "i1" : "i2", 7, 3);
    cr_assert_eq(esi_routes_count(&routes), 1);
    esi_routes_deinit(&routes);
}
