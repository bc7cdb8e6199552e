/*
 * Inspection through the whole core: pages, order, one key.
 */
#include "tests/unit/coordinator/driver.h"

TestSuite(core_admin, .fini = test_alloc_expect_none);

static struct driver d;
static struct driver_session s;

static void begin(void)
{
    driver_init(&d);
    driver_restart(&d, false);
    (void)driver_join(&d, "B", 1);
    (void)driver_join(&d, "A", 1);
    (void)driver_join(&d, "C", 1);
    s = driver_open(&d, "esi");
}

static struct model_call *list(enum model_call_kind kind, const char *prefix, const char *after,
                               uint32_t page_size)
{
    struct model_call *call = driver_new_call(&d, kind);

    call->request.page.prefix = rt_bytes_of_string(prefix);
    call->request.page.after = rt_bytes_of_string(after);
    call->request.page.page_size = page_size;
    driver_submit(&d, call);
    return call;
}

static void get(const char *key)
{
    cr_assert_eq(driver_get(&d, &s, key), MODEL_OUTCOME_DONE);
}

Test(core_admin, instances_in_registration_order_and_pages)
{
    struct model_call *call;

    begin();
    call = list(MODEL_CALL_LIST_INSTANCES, "", "", 0);
    cr_assert_eq(call->response.list_instances.n_instances, 3);
    cr_assert_not(call->response.list_instances.more);
    cr_assert_str_eq(call->response.list_instances.instances[0].name, "B");
    cr_assert_eq(call->response.list_instances.instances[0].ordinal, 1);
    cr_assert_eq(call->response.list_instances.instances[0].entries_total, 100);
    cr_assert_str_eq(call->response.list_instances.instances[2].address, "C");
    (void)driver_free_call(call);
    call = list(MODEL_CALL_LIST_INSTANCES, "", "", 2);
    cr_assert_eq(call->response.list_instances.n_instances, 2);
    cr_assert(call->response.list_instances.more);
    (void)driver_free_call(call);
    call = list(MODEL_CALL_LIST_INSTANCES, "", "A", 2);
    cr_assert_eq(call->response.list_instances.n_instances, 1);
    cr_assert_str_eq(call->response.list_instances.instances[0].name, "C");
    (void)driver_free_call(call);
    call = list(MODEL_CALL_LIST_INSTANCES, "", "nobody", 2);
    driver_expect(driver_reason(call), MODEL_REASON_INVALID_FIELD);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_admin, keys_of_an_instance_are_counted)
{
    struct model_call *call;

    begin();
    get("k1");
    driver_expect(driver_run(&d, &s, MODEL_STATEMENT_SET, "k1", "v"), MODEL_REASON_NONE);
    for (int i = 0; i < 2; i++) {
        call = list(MODEL_CALL_LIST_INSTANCES, "", "", 0);
        cr_assert_eq(call->response.list_instances.instances[0].n_keys, 1);
        cr_assert_eq(call->response.list_instances.instances[1].n_keys, 0);
        (void)driver_free_call(call);
        driver_restart(&d, false);
    }
    driver_deinit(&d);
}

Test(core_admin, keys_sorted_by_prefix_and_page)
{
    static const char *const keys[] = {"b", "a2", "c", "a10", "a1", "a"};
    static const char *const sorted[] = {"a", "a1", "a10", "a2", "b", "c"};
    struct model_call *call;

    begin();
    for (size_t i = 0; i < RT_ARRAY_SIZE(keys); i++)
        get(keys[i]);
    for (uint32_t page = 1; page <= 7; page++) {
        size_t n = 0;
        const char *after = "";
        bool more = true;

        while (more) {
            call = list(MODEL_CALL_LIST_KEYS, "", after, page);
            cr_assert_leq(call->response.list_keys.n_keys, page);
            for (size_t i = 0; i < call->response.list_keys.n_keys; i++, n++)
                cr_assert(rt_bytes_equal(call->response.list_keys.keys[i].key,
                                         rt_bytes_of_string(sorted[n])));
            more = call->response.list_keys.more;
            cr_assert_eq(more, n < RT_ARRAY_SIZE(sorted));
            after = sorted[n - 1];
            (void)driver_free_call(call);
        }
        cr_assert_eq(n, RT_ARRAY_SIZE(sorted));
    }
    call = list(MODEL_CALL_LIST_KEYS, "a1", "", 0);
    cr_assert_eq(call->response.list_keys.n_keys, 2);
    cr_assert_str_eq(call->response.list_keys.keys[0].holder, "esi");
    cr_assert_str_eq(call->response.list_keys.keys[0].owner, "");
    (void)driver_free_call(call);
    driver_deinit(&d);
}

/* A walk of several slices: other work is done in between, keys come and go, the table grows. */
Test(core_admin, a_long_walk_lets_other_work_through)
{
    struct model_call *call;
    char key[16];
    int n = 0;

    driver_init(&d);
    d.auto_commit = false;
    d.config.session_lease.duration_us = 3600000000;
    driver_restart(&d, false);
    driver_forget_rows(&d);
    call = driver_new_call(&d, MODEL_CALL_OPEN_SESSION);
    (void)snprintf(call->request.open_session.name, MODEL_NAME_MAX, "esi");
    call->request.open_session.request_id.client = driver_id("esi", 1);
    driver_submit(&d, call);
    driver_forget_rows(&d);
    s = (struct driver_session){.id = call->response.open_session.session_id};
    (void)driver_free_call(call);
    for (; n < 20000; n++) {
        (void)snprintf(key, sizeof(key), "k%05d", n);
        call = driver_execute(&d, &s, MODEL_STATEMENT_GET, key, NULL);
        driver_forget_rows(&d);
        (void)driver_free_call(call);
    }
    call = list(MODEL_CALL_LIST_KEYS, "k", "k00001", 3);
    cr_assert_not(driver_is_answered(call));
    cr_assert_leq(coord_core_next_wakeup_us(d.core), d.env.now_us + 1);
    driver_expect(driver_renew(&d, "X", 1), MODEL_REASON_INCARNATION_DEAD);
    for (; n < 30000; n++) {
        struct model_call *get;

        (void)snprintf(key, sizeof(key), "k%05d", n);
        get = driver_execute(&d, &s, MODEL_STATEMENT_GET, key, NULL);
        driver_forget_rows(&d);
        (void)driver_free_call(get);
    }
    driver_sleep_ms(&d, 100);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    cr_assert_eq(call->response.list_keys.n_keys, 3);
    cr_assert(call->response.list_keys.more);
    cr_assert(rt_bytes_equal(call->response.list_keys.keys[0].key, RT_BYTES_LITERAL("k00002")));
    cr_assert(rt_bytes_equal(call->response.list_keys.keys[2].key, RT_BYTES_LITERAL("k00004")));
    (void)driver_free_call(call);
    call = list(MODEL_CALL_LIST_KEYS, "", "", 1);
    coord_core_cancel(d.core, call);
    driver_settle(&d);
    driver_expect(driver_reason(call), MODEL_REASON_CANCELLED);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_admin, a_listing_without_memory_is_refused)
{
    struct model_call *call;

    begin();
    get("k");
    for (size_t failing = 0; failing < 3; failing++) {
        call = driver_new_call(&d, MODEL_CALL_LIST_KEYS);
        test_alloc_fail_after(failing, TEST_ALLOC_FOREVER);
        driver_submit(&d, call);
        test_alloc_fail_never();
        cr_assert(driver_is_answered(call));
        if (failing == 0)
            driver_expect(driver_reason(call), MODEL_REASON_LIMIT_REACHED);
        (void)driver_free_call(call);
        call = driver_new_call(&d, MODEL_CALL_LIST_INSTANCES);
        test_alloc_fail_after(0, TEST_ALLOC_FOREVER);
        driver_submit(&d, call);
        test_alloc_fail_never();
        driver_expect(driver_reason(call), MODEL_REASON_LIMIT_REACHED);
        (void)driver_free_call(call);
    }
    driver_deinit(&d);
}

Test(core_admin, page_size_at_the_limit_and_one_more)
{
    struct model_call *call;

    begin();
    for (int i = 0; i <= MODEL_PAGE_MAX; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "%d", i);
        get(key);
    }
    call = list(MODEL_CALL_LIST_KEYS, "", "", MODEL_PAGE_MAX);
    cr_assert_eq(call->response.list_keys.n_keys, MODEL_PAGE_MAX);
    cr_assert(call->response.list_keys.more);
    (void)driver_free_call(call);
    call = list(MODEL_CALL_LIST_KEYS, "", "", MODEL_PAGE_MAX + 1);
    driver_expect(driver_reason(call), MODEL_REASON_INVALID_FIELD);
    (void)driver_free_call(call);
    call = list(MODEL_CALL_LIST_INSTANCES, "", "", MODEL_PAGE_MAX + 1);
    driver_expect(driver_reason(call), MODEL_REASON_INVALID_FIELD);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

static struct model_call *status(const char *key)
{
    struct model_call *call = driver_new_call(&d, MODEL_CALL_KEY_STATUS);

    call->request.key_status.key = rt_bytes_of_string(key);
    driver_submit(&d, call);
    return call;
}

Test(core_admin, C84_status_of_an_unplaced_key)
{
    struct model_call *call;

    begin();
    get("k");
    call = status("k");
    cr_assert(call->response.key_status.known);
    cr_assert_not(call->response.key_status.has_value);
    cr_assert_not(call->response.key_status.value_unavailable);
    cr_assert_str_eq(call->response.key_status.owner, "");
    cr_assert_str_eq(call->response.key_status.would_place, "B");
    cr_assert_str_eq(call->response.key_status.holder, "esi");
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_admin, C83_status_gives_the_value_and_waits_for_no_lock_or_latch)
{
    struct model_call *store;
    struct model_call *call;

    begin();
    get("k");
    driver_expect(driver_run(&d, &s, MODEL_STATEMENT_SET, "k", "v"), MODEL_REASON_NONE);
    d.auto_commit = false;
    store = driver_execute(&d, &s, MODEL_STATEMENT_STORE, "k", NULL);
    call = status("k");
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    cr_assert(call->response.key_status.has_value);
    cr_assert(rt_bytes_equal(call->response.key_status.value, RT_BYTES_LITERAL("v")));
    cr_assert_str_eq(call->response.key_status.owner, "B");
    cr_assert_eq(call->response.key_status.owner_state, MODEL_MEMBER_ALIVE);
    cr_assert_str_eq(call->response.key_status.would_place, "A");
    cr_assert_neq(call->response.key_status.epoch, 0);
    (void)driver_free_call(call);
    driver_deinit(&d);
    (void)driver_free_call(store);
}

Test(core_admin, status_says_when_the_owner_cannot_be_asked)
{
    struct model_call *call;

    begin();
    get("k");
    driver_expect(driver_run(&d, &s, MODEL_STATEMENT_SET, "k", "v"), MODEL_REASON_NONE);
    d.silent = "B";
    call = status("k");
    cr_assert_not(driver_is_answered(call));
    driver_sleep_ms(&d, 1000);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    cr_assert(call->response.key_status.value_unavailable);
    cr_assert_str_eq(call->response.key_status.owner, "B");
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_admin, status_checks_its_key)
{
    static uint8_t bytes[MODEL_KEY_MAX + 1];
    struct model_call *call;

    begin();
    call = status("");
    driver_expect(driver_reason(call), MODEL_REASON_KEY_EMPTY);
    call->context = NULL;
    call->request.key_status.key = rt_bytes_of(bytes, sizeof(bytes));
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_KEY_TOO_LONG);
    call->context = NULL;
    call->request.key_status.key.size--;
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    (void)driver_free_call(call);
    driver_deinit(&d);
}
