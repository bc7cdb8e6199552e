/*
 * WatchRoutes through the whole core: what a watch is told first and later, what it is told again
 * when it comes back, and what happens to one that is slow.
 */
#include "coordinator/watch.h"

#include "tests/unit/coordinator/driver.h"

TestSuite(core_watch, .fini = test_alloc_expect_none);

static struct driver d;
static struct driver_session a;
static uint64_t incarnation;

static void begin(void)
{
    driver_init(&d);
    d.config.locking = MODEL_LOCKING_NONE;
    d.config.owner_down = COORD_OWNER_DOWN_KEEP;
    driver_restart(&d, false);
    incarnation = driver_join(&d, "A", 1);
    a = driver_open(&d, "esi-a");
}

static void put(const char *key)
{
    driver_expect(driver_run(&d, &a, MODEL_STATEMENT_PUT, key, "v"), MODEL_REASON_NONE);
}

static struct model_call *new_watch(const char *prefix, uint64_t after_version)
{
    struct model_call *call = driver_new_call(&d, MODEL_CALL_WATCH_ROUTES);

    call->deadline_us = RT_NEVER;
    call->request.watch_routes = (struct model_watch_routes_request){
        .prefix = rt_bytes_of_string(prefix),
        .after_version = after_version,
    };
    return call;
}

/* Submitted; answered when there is something to tell. */
static struct model_call *watch(const char *prefix, uint64_t after_version)
{
    struct model_call *call = new_watch(prefix, after_version);

    driver_submit(&d, call);
    return call;
}

/* As a shell does with the answer. */
static void go_on(struct model_call *call)
{
    cr_assert(driver_is_answered(call));
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    call->request.watch_routes.cursor = call->response.watch_routes.next;
    call->context = NULL;
    driver_submit(&d, call);
}

static const struct model_watch_routes_response *told(const struct model_call *call)
{
    cr_assert(driver_is_answered(call));
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    return &call->response.watch_routes;
}

static const struct model_watched_key *find_key(const struct model_call *call, const char *key)
{
    const struct model_watch_routes_response *watch = told(call);

    for (size_t i = 0; i < watch->n_keys; i++)
        if (rt_bytes_equal(watch->keys[i].key, rt_bytes_of_string(key)))
            return &watch->keys[i];
    return NULL;
}

Test(core_watch, begins_with_all_instances_and_keys)
{
    struct model_call *call;

    begin();
    put("k");
    call = watch("", 0);
    cr_assert(told(call)->reset);
    cr_assert_not(told(call)->more);
    cr_assert_neq(told(call)->version, 0);
    cr_assert_eq(told(call)->version, call->response.responder.placement_version);
    cr_assert_eq(told(call)->n_instances, 1);
    cr_assert_str_eq(told(call)->instances[0].name, "A");
    cr_assert_str_eq(told(call)->instances[0].address, "A");
    cr_assert_eq(told(call)->instances[0].incarnation, incarnation);
    cr_assert_eq(told(call)->instances[0].state, MODEL_MEMBER_ALIVE);
    cr_assert_eq(told(call)->n_keys, 1);
    cr_assert_str_eq(find_key(call, "k")->owner, "A");
    cr_assert_neq(find_key(call, "k")->epoch, 0);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_watch, begins_with_nothing)
{
    struct model_call *call;

    driver_init(&d);
    driver_restart(&d, false);
    call = watch("", 0);
    cr_assert(told(call)->reset);
    cr_assert_eq(told(call)->n_keys, 0);
    cr_assert_eq(told(call)->n_instances, 0);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_watch, waits_for_a_change_and_tells_it)
{
    struct model_call *call;
    uint64_t version;

    begin();
    call = watch("", 0);
    version = told(call)->version;
    go_on(call);
    cr_assert_not(driver_is_answered(call));
    put("k");
    cr_assert_not(told(call)->reset);
    cr_assert_str_eq(find_key(call, "k")->owner, "A");
    cr_assert_eq(told(call)->n_instances, 0);
    cr_assert_gt(told(call)->version, version);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

/* No deadline of its own: a watch may wait for hours. */
Test(core_watch, waits_without_end)
{
    struct model_call *call;

    begin();
    call = watch("", 0);
    go_on(call);
    for (int i = 0; i < 30; i++) {
        driver_keep_alive(&d, &a);
        (void)driver_renew(&d, "A", incarnation);
        driver_sleep_ms(&d, 1000);
    }
    cr_assert_not(driver_is_answered(call));
    put("k");
    cr_assert_not_null(find_key(call, "k"));
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_watch, tells_that_a_key_has_no_route_any_more)
{
    struct model_call *call;

    begin();
    put("k");
    call = watch("", 0);
    go_on(call);
    driver_expect(driver_run(&d, &a, MODEL_STATEMENT_DELETE, "k", NULL), MODEL_REASON_NONE);
    cr_assert_str_eq(find_key(call, "k")->owner, "");
    cr_assert_eq(find_key(call, "k")->epoch, 0);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

/* What is told may be written to: only what will not be forgotten. */
Test(core_watch, key_that_was_only_set_has_no_route_yet)
{
    struct model_call *call;

    begin();
    driver_expect(driver_run(&d, &a, MODEL_STATEMENT_SET, "k", "v"), MODEL_REASON_NONE);
    call = watch("", 0);
    cr_assert_null(find_key(call, "k"));
    go_on(call);
    driver_expect(driver_run(&d, &a, MODEL_STATEMENT_STORE, "k", NULL), MODEL_REASON_NONE);
    cr_assert_str_eq(find_key(call, "k")->owner, "A");
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_watch, tells_changes_of_instances)
{
    struct model_call *call;

    begin();
    call = watch("", 0);
    go_on(call);
    driver_leave(&d, "A", incarnation);
    cr_assert_eq(told(call)->n_instances, 1);
    cr_assert_eq(told(call)->instances[0].state, MODEL_MEMBER_LEFT);
    go_on(call);
    incarnation = driver_join(&d, "A", 2);
    cr_assert_eq(told(call)->instances[0].incarnation, incarnation);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_watch, only_keys_with_the_prefix)
{
    struct model_call *call;

    begin();
    put("user:1");
    put("item:1");
    call = watch("user:", 0);
    cr_assert_eq(told(call)->n_keys, 1);
    go_on(call);
    put("item:2");
    cr_assert_not(driver_is_answered(call));
    put("user:2");
    cr_assert_eq(told(call)->n_keys, 1);
    cr_assert_not_null(find_key(call, "user:2"));
    (void)driver_free_call(call);
    driver_deinit(&d);
}

/* A watch may wait for long, while everything else changes. */
Test(core_watch, changes_of_other_keys_take_no_memory)
{
    struct model_call *call;
    size_t used;

    begin();
    call = watch("user:", 0);
    go_on(call);
    used = call->arena.used;
    for (int i = 0; i < 10; i++) {
        put("item");
        driver_expect(driver_run(&d, &a, MODEL_STATEMENT_DELETE, "item", NULL), MODEL_REASON_NONE);
    }
    cr_assert_not(driver_is_answered(call));
    cr_assert_eq(call->arena.used, used);
    put("user:1");
    cr_assert_not_null(find_key(call, "user:1"));
    (void)driver_free_call(call);
    driver_deinit(&d);
}

/* For the instances, for the keys, for the name of one; and just enough. */
Test(core_watch, memory_that_does_not_suffice)
{
    const size_t instances = MODEL_MEMBERS_MAX * sizeof(struct model_watched_instance);
    const size_t keys = MODEL_WATCH_KEYS_MAX * sizeof(struct model_watched_key);
    const size_t limits[] = {instances - 1, instances + keys - 1, instances + keys + 15,
                             instances + keys + 16};

    begin();
    put("k");
    for (size_t i = 0; i < RT_ARRAY_SIZE(limits); i++) {
        struct model_call *call = new_watch("", 0);
        bool suffices = i + 1 == RT_ARRAY_SIZE(limits);

        call->arena.limit = limits[i];
        driver_submit(&d, call);
        cr_assert(driver_is_answered(call));
        driver_expect(driver_reason(call),
                      suffices ? MODEL_REASON_NONE : MODEL_REASON_LIMIT_REACHED);
        (void)driver_free_call(call);
    }
    driver_deinit(&d);
}

Test(core_watch, comes_back_and_gets_what_it_missed)
{
    struct model_call *first;
    struct model_call *second;

    begin();
    put("old");
    first = watch("", 0);
    put("seen");
    go_on(first);
    cr_assert_not_null(find_key(first, "seen"));
    put("missed");
    second = watch("", told(first)->version);
    cr_assert_not(told(second)->reset);
    cr_assert_not_null(find_key(second, "missed"));
    cr_assert_null(find_key(second, "old"));
    cr_assert_eq(told(second)->n_instances, 1, "all of them at the beginning");
    (void)driver_free_call(first);
    (void)driver_free_call(second);
    driver_deinit(&d);
}

Test(core_watch, comes_back_to_another_coordinator)
{
    struct model_call *call;
    uint64_t version;

    begin();
    put("k");
    call = watch("", 0);
    version = told(call)->version;
    (void)driver_free_call(call);
    driver_restart(&d, true);
    call = watch("", version);
    cr_assert(told(call)->reset);
    cr_assert_not_null(find_key(call, "k"));
    (void)driver_free_call(call);
    call = watch("", version + 1000);
    cr_assert(told(call)->reset, "a version that was never given out");
    (void)driver_free_call(call);
    driver_deinit(&d);
}

/* Names "k0000" … placed by Route, which the double's table of keys need not hold. */
static void place(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        char name[16];
        struct model_call *call = driver_new_call(&d, MODEL_CALL_ROUTE);

        (void)snprintf(name, sizeof(name), "k%06u", i);
        call->request.route = (struct model_route_request){.operation = MODEL_STATEMENT_PUT,
                                                           .key = rt_bytes_of_string(name)};
        d.n_keys = 0;
        driver_submit(&d, call);
        driver_forget_rows(&d);
        driver_expect(driver_reason(call), MODEL_REASON_NONE);
        (void)driver_free_call(call);
    }
}

static size_t collect(struct model_call *call, size_t *ret_n_messages)
{
    size_t n_keys = 0;

    *ret_n_messages = 0;
    for (;;) {
        driver_sleep_ms(&d, 1);
        n_keys += told(call)->n_keys;
        (*ret_n_messages)++;
        cr_assert_leq(told(call)->n_keys, MODEL_WATCH_KEYS_MAX);
        if (!told(call)->more)
            return n_keys;
        cr_assert_eq(told(call)->version, 0, "not complete yet");
        go_on(call);
    }
}

Test(core_watch, many_keys_come_in_parts)
{
    for (unsigned extra = 0; extra <= 1; extra++) {
        unsigned n_keys = MODEL_WATCH_KEYS_MAX + extra;
        struct model_call *call;
        size_t n_messages;

        begin();
        d.auto_commit = false;
        place(n_keys);
        call = watch("", 0);
        cr_assert_eq(collect(call, &n_messages), n_keys);
        /* The table is read to its end in the last message, or in one more. */
        cr_assert(n_messages == 1 + extra || n_messages == 2);
        (void)driver_free_call(call);
        driver_deinit(&d);
    }
}

/* Deletes a key that place() made: the double is told of it first. */
static void delete_placed(struct rt_bytes key, uint64_t epoch)
{
    char name[16];

    (void)snprintf(name, sizeof(name), "%.*s", (int)key.size, (const char *)key.data);
    d.n_keys = 1;
    d.keys[0] = (struct driver_key){.address = "A", .epoch = epoch};
    (void)snprintf(d.keys[0].name, sizeof(d.keys[0].name), "%s", name);
    driver_expect(driver_run(&d, &a, MODEL_STATEMENT_DELETE, name, NULL), MODEL_REASON_NONE);
}

/* A change behind the place that the listing has reached is told too. */
Test(core_watch, change_while_keys_are_listed)
{
    struct model_call *call;
    struct model_watched_key first;
    const struct model_watched_key *again;

    begin();
    d.auto_commit = false;
    place(MODEL_WATCH_KEYS_MAX * 2);
    d.auto_commit = true;
    call = watch("", 0);
    cr_assert(told(call)->more);
    first = told(call)->keys[0];
    delete_placed(first.key, first.epoch);
    go_on(call);
    again = &told(call)->keys[0];
    cr_assert(rt_bytes_equal(again->key, first.key));
    cr_assert_str_eq(again->owner, "");
    (void)driver_free_call(call);
    driver_deinit(&d);
}

/* A watch may be COORD_WATCH_CHANGES_MAX changes behind, and begins anew with one more. */
Test(core_watch, slow_one_begins_anew)
{
    for (unsigned extra = 0; extra <= 1; extra++) {
        struct model_call *call;
        bool was_reset = false;
        size_t n_keys = 0;

        begin();
        d.auto_commit = false;
        call = watch("", 0);
        cr_assert(told(call)->reset);
        place(COORD_WATCH_CHANGES_MAX + extra);
        do {
            go_on(call);
            driver_sleep_ms(&d, 1);
            was_reset = was_reset || told(call)->reset;
            n_keys += told(call)->n_keys;
        } while (told(call)->more);
        cr_assert_eq(was_reset, extra == 1);
        cr_assert_geq(n_keys, COORD_WATCH_CHANGES_MAX + extra);
        (void)driver_free_call(call);
        driver_deinit(&d);
    }
}

/* The same for one that comes back on another stream. */
Test(core_watch, comes_back_too_late)
{
    struct model_call *call;
    uint64_t version;

    begin();
    d.auto_commit = false;
    call = watch("", 0);
    (void)driver_free_call(call);
    place(1);
    call = watch("", 0);
    version = told(call)->version;
    (void)driver_free_call(call);
    call = watch("", version);
    cr_assert_not(told(call)->reset);
    (void)driver_free_call(call);
    place(COORD_WATCH_CHANGES_MAX + 1);
    call = watch("", version);
    cr_assert(told(call)->reset);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_watch, is_cancelled)
{
    struct model_call *call;

    begin();
    call = watch("", 0);
    go_on(call);
    coord_core_cancel(d.core, call);
    driver_settle(&d);
    driver_expect(driver_reason(call), MODEL_REASON_CANCELLED);
    put("k");
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_watch, is_drained)
{
    struct model_call *call;

    begin();
    call = watch("", 0);
    go_on(call);
    coord_core_drain(d.core);
    driver_settle(&d);
    driver_expect(driver_reason(call), MODEL_REASON_DRAINING);
    (void)driver_free_call(call);
    driver_deinit(&d);
}
