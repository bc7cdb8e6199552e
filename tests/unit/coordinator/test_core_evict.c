/*
 * D8: keys whose values their owner has dropped to make room. The instance double reports them.
 */
#include "tests/unit/coordinator/driver.h"

TestSuite(core_evict, .fini = test_alloc_expect_none);

static struct driver d;
static struct driver_session a;
static struct driver_session b;
static struct rt_bytes victims[2];
static uint64_t incarnation;

static void begin(void)
{
    driver_init(&d);
    driver_restart(&d, false);
    incarnation = driver_join(&d, "A", 1);
    a = driver_open(&d, "esi-a");
    b = driver_open(&d, "esi-b");
}

static enum model_reason run(struct driver_session *session, enum model_statement_kind kind,
                             const char *key)
{
    return driver_run(&d, session, kind, key,
                      kind == MODEL_STATEMENT_SET || kind == MODEL_STATEMENT_PUT ? "v" : NULL);
}

static void make_key(struct driver_session *session, const char *key, bool stores)
{
    driver_expect(run(session, MODEL_STATEMENT_GET, key), MODEL_REASON_NONE);
    driver_expect(run(session, MODEL_STATEMENT_SET, key), MODEL_REASON_NONE);
    if (stores)
        driver_expect(run(session, MODEL_STATEMENT_STORE, key), MODEL_REASON_NONE);
}

/* The double forgets the key, as an owner does that evicts it. */
static void forget(const char *name)
{
    for (size_t i = 0; i < d.n_keys; i++)
        if (strcmp(d.keys[i].name, name) == 0)
            d.keys[i].epoch = 0;
}

/* The write's answer from the owner says that it evicted them. */
static void answer_evicting(enum model_call_kind kind, const char *first, const char *second)
{
    struct model_call *call = driver_find_call(&d, kind);

    cr_assert_not_null(call);
    victims[0] = rt_bytes_of_string(first);
    victims[1] = rt_bytes_of_string(second ? second : "");
    forget(first);
    if (second)
        forget(second);
    d.evicted = victims;
    d.n_evicted = second ? 2 : 1;
    d.auto_answer = true;
    driver_answer(&d, call);
}

static struct model_call *write_evicting(struct driver_session *session,
                                         enum model_statement_kind kind, const char *key,
                                         const char *first, const char *second)
{
    struct model_call *call;

    d.auto_answer = false;
    call = driver_execute(&d, session, kind, key, "v");
    answer_evicting(kind == MODEL_STATEMENT_PUT ? MODEL_CALL_PUT : MODEL_CALL_SET, first, second);
    return call;
}

Test(core_evict, D8_evicted_keys_are_said_and_deleted)
{
    struct model_call *call;
    const struct model_data_response *data;

    begin();
    make_key(&a, "k", false);
    make_key(&a, "v1", true);
    make_key(&a, "v2", false);
    call = write_evicting(&a, MODEL_STATEMENT_SET, "k", "v1", "v2");
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    data = &call->response.execute.data;
    cr_assert_eq(data->n_evicted, 2);
    cr_assert(rt_bytes_equal(data->evicted[0], RT_BYTES_LITERAL("v1")));
    cr_assert(rt_bytes_equal(data->evicted[1], RT_BYTES_LITERAL("v2")));
    driver_expect_owner(&d, "v1", "?");
    driver_expect_owner(&d, "v2", "?");
    driver_expect_owner(&d, "k", "A");
    driver_restart(&d, false);
    driver_expect_owner(&d, "v1", "?");
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_evict, C54_set_and_store_of_an_evicted_key_that_the_caller_holds)
{
    begin();
    make_key(&a, "k", false);
    make_key(&b, "v", false);
    (void)driver_free_call(write_evicting(&a, MODEL_STATEMENT_SET, "k", "v", NULL));
    driver_expect(run(&b, MODEL_STATEMENT_SET, "v"), MODEL_REASON_KEY_NOT_IDENTIFIED);
    driver_expect(run(&b, MODEL_STATEMENT_STORE, "v"), MODEL_REASON_KEY_NOT_IDENTIFIED);
    driver_deinit(&d);
}

Test(core_evict, C55_get_creates_it_anew_and_it_may_go_elsewhere)
{
    begin();
    make_key(&a, "k", false);
    make_key(&b, "v", false);
    (void)driver_join(&d, "B", 1);
    (void)driver_free_call(write_evicting(&a, MODEL_STATEMENT_SET, "k", "v", NULL));
    make_key(&b, "v", true);
    driver_expect_owner(&d, "v", "B");
    driver_deinit(&d);
}

/* Who waits for an evicted key is woken: there is no lock any more. */
Test(core_evict, D8_waiters_of_an_evicted_key_are_woken)
{
    struct model_call *await;
    struct driver_session c;

    begin();
    c = driver_open(&d, "esi-c");
    make_key(&a, "k", false);
    make_key(&b, "v", false);
    cr_assert_eq(driver_get(&d, &c, "v"), MODEL_OUTCOME_WAITING);
    await = driver_execute(&d, &c, MODEL_STATEMENT_AWAIT, "v", NULL);
    cr_assert_not(driver_is_answered(await));
    (void)driver_free_call(write_evicting(&a, MODEL_STATEMENT_SET, "k", "v", NULL));
    driver_expect(driver_reason(await), MODEL_REASON_NONE);
    cr_assert_eq(driver_get(&d, &c, "v"), MODEL_OUTCOME_DONE);
    (void)driver_free_call(await);
    driver_deinit(&d);
}

/* The answer goes on when the deletion is durable, and not before. */
Test(core_evict, D8_commit_then_speak)
{
    struct model_call *call;

    begin();
    make_key(&a, "k", false);
    make_key(&a, "v1", false);
    make_key(&a, "v2", false);
    d.auto_commit = false;
    call = write_evicting(&a, MODEL_STATEMENT_SET, "k", "v1", "v2");
    cr_assert_eq(driver_n_txns(&d), 2);
    cr_assert_not(driver_is_answered(call));
    driver_commit(&d, STORE_COMMITTED);
    cr_assert_not(driver_is_answered(call));
    driver_commit(&d, STORE_COMMITTED);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

/* The holder of the evicted key has a SET on its way, which the owner refuses. */
Test(core_evict, D8_a_write_under_way_to_the_evicted_key)
{
    struct model_call *set_v;
    struct model_call *set_k;

    begin();
    make_key(&a, "k", false);
    make_key(&b, "v", false);
    d.auto_answer = false;
    set_v = driver_execute(&d, &b, MODEL_STATEMENT_SET, "v", "w");
    set_k = driver_execute(&d, &a, MODEL_STATEMENT_SET, "k", "w");
    {
        struct model_call *late = driver_find_call(&d, MODEL_CALL_SET);
        struct model_call *second;

        rt_list_remove(&late->link);
        second = driver_find_call(&d, MODEL_CALL_SET);
        cr_assert_not_null(second);
        rt_list_push_back(&d.calls, &late->link);
        cr_assert(rt_bytes_equal(second->request.data.header.key, RT_BYTES_LITERAL("k")));
        answer_evicting(MODEL_CALL_SET, "v", NULL);
    }
    driver_settle(&d);
    driver_expect(driver_reason(set_k), MODEL_REASON_NONE);
    driver_expect(driver_reason(set_v), MODEL_REASON_KEY_NOT_IDENTIFIED);
    (void)driver_free_call(set_v);
    (void)driver_free_call(set_k);
    driver_deinit(&d);
}

Test(core_evict, D8_put_of_the_holder_evicts_too)
{
    struct model_call *call;

    begin();
    make_key(&a, "k", false);
    make_key(&a, "v", false);
    call = write_evicting(&a, MODEL_STATEMENT_PUT, "k", "v", NULL);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    cr_assert_eq(call->response.execute.data.n_evicted, 1);
    driver_expect_owner(&d, "v", "?");
    driver_expect(run(&a, MODEL_STATEMENT_SET, "k"), MODEL_REASON_KEY_NOT_LOCKED);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

/* Names that mean nothing here: unknown, empty, too long, the written key, another instance's. */
Test(core_evict, what_is_not_the_owners_is_left_alone)
{
    static const char long_name[] =
        "1234567890123456789012345678901234567890123456789012345678901234567890123456789012345678"
        "1234567890123456789012345678901234567890123456789012345678901234567890123456789012345678"
        "1234567890123456789012345678901234567890123456789012345678901234567890123456789012345678";
    static const char *const names[] = {"unknown", "", long_name, "k", "other"};

    begin();
    make_key(&a, "k", false);
    (void)driver_join(&d, "B", 1);
    make_key(&a, "other", false);
    driver_expect_owner(&d, "other", "B");
    for (size_t i = 0; i < RT_ARRAY_SIZE(names); i++) {
        struct model_call *call;

        d.auto_answer = false;
        call = driver_execute(&d, &a, MODEL_STATEMENT_SET, "k", "v");
        victims[0] = rt_bytes_of_string(names[i]);
        d.evicted = victims;
        d.n_evicted = 1;
        d.auto_answer = true;
        driver_answer(&d, driver_find_call(&d, MODEL_CALL_SET));
        driver_expect(driver_reason(call), MODEL_REASON_NONE);
        (void)driver_free_call(call);
    }
    driver_expect_owner(&d, "k", "A");
    driver_expect_owner(&d, "other", "B");
    driver_deinit(&d);
}

/* The key was found gone and placed anew while the answer was on its way: it says nothing of that
 * ownership. */
Test(core_evict, an_answer_says_nothing_of_a_newer_ownership)
{
    struct model_call *set_k;
    struct model_call *held;

    begin();
    make_key(&a, "k", false);
    make_key(&b, "v", true);
    d.auto_answer = false;
    set_k = driver_execute(&d, &a, MODEL_STATEMENT_SET, "k", "w");
    held = driver_find_call(&d, MODEL_CALL_SET);
    rt_list_remove(&held->link);
    d.auto_answer = true;
    forget("v");
    make_key(&b, "v", false);
    driver_expect_owner(&d, "v", "A");
    rt_list_push_back(&d.calls, &held->link);
    victims[0] = RT_BYTES_LITERAL("v");
    d.evicted = victims;
    d.n_evicted = 1;
    driver_answer(&d, held);
    driver_expect(driver_reason(set_k), MODEL_REASON_NONE);
    driver_expect_owner(&d, "v", "A");
    driver_expect(run(&b, MODEL_STATEMENT_SET, "v"), MODEL_REASON_NONE);
    (void)driver_free_call(set_k);
    driver_deinit(&d);
}

/* ---- evictions that were not heard of -------------------------------------------------------- */

Test(core_evict, C54_C55_found_gone_at_the_next_access)
{
    begin();
    make_key(&a, "v1", false);
    make_key(&a, "v2", false);
    make_key(&a, "v3", true);
    forget("v1");
    forget("v2");
    forget("v3");
    driver_expect(run(&a, MODEL_STATEMENT_SET, "v1"), MODEL_REASON_KEY_NOT_IDENTIFIED);
    driver_expect(run(&a, MODEL_STATEMENT_STORE, "v2"), MODEL_REASON_KEY_NOT_IDENTIFIED);
    driver_expect(run(&a, MODEL_STATEMENT_READ, "v3"), MODEL_REASON_KEY_NOT_IDENTIFIED);
    driver_expect_owner(&d, "v1", "?");
    driver_expect_owner(&d, "v2", "?");
    driver_expect_owner(&d, "v3", "?");
    make_key(&b, "v1", true);
    driver_deinit(&d);
}

Test(core_evict, C55_get_of_a_key_that_is_found_gone)
{
    struct model_call *call;

    begin();
    make_key(&a, "v", true);
    forget("v");
    call = driver_execute(&d, &b, MODEL_STATEMENT_GET, "v", NULL);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    cr_assert_not(call->response.execute.data.has_value);
    cr_assert_neq(call->response.execute.lock_token, 0);
    (void)driver_free_call(call);
    driver_expect(run(&b, MODEL_STATEMENT_SET, "v"), MODEL_REASON_NONE);
    driver_deinit(&d);
}

/* What must be kept is never evicted without a word: this is something else, and is said. */
Test(core_evict, what_may_be_stored_is_kept_in_the_default_profile)
{
    begin();
    d.config.owner_down = COORD_OWNER_DOWN_KEEP;
    driver_restart(&d, false);
    make_key(&a, "v", true);
    forget("v");
    driver_expect(run(&a, MODEL_STATEMENT_GET, "v"), MODEL_REASON_NOT_OWNER);
    driver_expect_owner(&d, "v", "A");
    driver_deinit(&d);
}

Test(core_evict, a_full_disk_leaves_the_rest_to_the_next_access)
{
    struct model_call *call;

    begin();
    make_key(&a, "k", false);
    make_key(&a, "v", false);
    d.auto_commit = false;
    call = write_evicting(&a, MODEL_STATEMENT_SET, "k", "v", NULL);
    driver_commit(&d, STORE_FULL);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    driver_expect_owner(&d, "v", "A");
    d.auto_commit = true;
    driver_expect(run(&a, MODEL_STATEMENT_SET, "v"), MODEL_REASON_KEY_NOT_IDENTIFIED);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

/* The write's deadline passes before the deletion is durable. */
Test(core_evict, a_write_whose_deadline_passes_meanwhile)
{
    struct model_call *call;

    begin();
    make_key(&a, "k", false);
    make_key(&a, "v", false);
    d.auto_commit = false;
    call = write_evicting(&a, MODEL_STATEMENT_SET, "k", "v", NULL);
    driver_sleep_ms(&d, 5000);
    driver_expect(driver_reason(call), MODEL_REASON_DEADLINE_EXCEEDED);
    cr_assert_eq(call->response.error.applied, MODEL_APPLIED_MAYBE);
    d.auto_commit = true;
    driver_settle(&d);
    driver_expect_owner(&d, "v", "?");
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_evict, an_end_in_the_middle_frees_everything)
{
    struct model_call *call;

    begin();
    make_key(&a, "k", false);
    make_key(&a, "v1", false);
    make_key(&a, "v2", false);
    d.auto_commit = false;
    call = write_evicting(&a, MODEL_STATEMENT_SET, "k", "v1", "v2");
    driver_deinit(&d);
    (void)driver_free_call(call);
}

/* ---- told again in Renew --------------------------------------------------------------------- */

/* Renews, saying that the key's ownership was dropped; gives the epochs that the answer names. */
static struct model_call *renew_evicting(const char *key, uint64_t epoch)
{
    static struct model_evicted evicted;
    struct model_call *call = driver_new_call(&d, MODEL_CALL_RENEW);

    driver_renew_begin(&d, "A", incarnation, &call->request.renew);
    evicted = (struct model_evicted){rt_bytes_of_string(key), epoch};
    call->request.renew.evicted = &evicted;
    call->request.renew.n_evicted = 1;
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    return call;
}

static void expect_known(const char *key, uint64_t epoch, bool is_known)
{
    struct model_call *call = renew_evicting(key, epoch);

    cr_assert_eq(call->response.renew.n_evicted_epochs, is_known ? 1 : 0);
    if (is_known)
        cr_assert_eq(call->response.renew.evicted_epochs[0], epoch);
    (void)driver_free_call(call);
}

static uint64_t epoch_of(const char *name)
{
    uint64_t epoch = 0;

    for (size_t i = 0; i < d.n_keys; i++)
        if (strcmp(d.keys[i].name, name) == 0)
            epoch = d.keys[i].epoch;
    cr_assert_neq(epoch, 0, "%s is nowhere", name);
    return epoch;
}

Test(core_evict, D8_renew_tells_what_no_answer_told)
{
    uint64_t epoch;

    begin();
    make_key(&a, "v", true);
    epoch = epoch_of("v");
    forget("v");
    expect_known("v", epoch, false);
    driver_expect_owner(&d, "v", "?");
    expect_known("v", epoch, true);
    driver_restart(&d, false);
    driver_expect_owner(&d, "v", "?");
    driver_expect(run(&b, MODEL_STATEMENT_STORE, "v"), MODEL_REASON_KEY_NOT_IDENTIFIED);
    make_key(&b, "v", true);
    driver_deinit(&d);
}

/* Without it such a key would be its owner's for ever. */
Test(core_evict, renew_also_tells_of_what_may_be_stored_in_the_default_profile)
{
    uint64_t epoch;

    begin();
    d.config.owner_down = COORD_OWNER_DOWN_KEEP;
    driver_restart(&d, false);
    make_key(&a, "v", true);
    epoch = epoch_of("v");
    forget("v");
    expect_known("v", epoch, false);
    driver_expect_owner(&d, "v", "?");
    driver_deinit(&d);
}

Test(core_evict, renew_says_nothing_of_a_newer_ownership_or_of_another_key)
{
    uint64_t epoch;

    begin();
    make_key(&a, "v", false);
    epoch = epoch_of("v");
    expect_known("v", epoch - 1, true);
    expect_known("v", epoch + 1, true);
    expect_known("unknown", epoch, true);
    expect_known("", epoch, true);
    (void)driver_join(&d, "B", 1);
    make_key(&a, "other", false);
    driver_expect_owner(&d, "other", "B");
    expect_known("other", epoch_of("other"), true);
    driver_settle(&d);
    driver_expect_owner(&d, "v", "A");
    driver_expect_owner(&d, "other", "B");
    driver_deinit(&d);
}

/* One deletion at a time, and the lease does not wait for it. */
Test(core_evict, renew_does_not_wait_for_the_deletion_and_repeats_none)
{
    uint64_t epoch;

    begin();
    make_key(&a, "v", false);
    epoch = epoch_of("v");
    d.auto_commit = false;
    expect_known("v", epoch, false);
    expect_known("v", epoch, false);
    cr_assert_eq(driver_n_txns(&d), 1);
    driver_commit(&d, STORE_FULL);
    driver_expect_owner(&d, "v", "A");
    expect_known("v", epoch, false);
    cr_assert_eq(driver_n_txns(&d), 1);
    driver_commit(&d, STORE_COMMITTED);
    expect_known("v", epoch, true);
    driver_expect_owner(&d, "v", "?");
    driver_deinit(&d);
}

Test(core_evict, renew_with_as_many_as_there_may_be)
{
    static struct model_evicted evicted[MODEL_EVICTED_MAX];
    struct model_call *call;

    begin();
    make_key(&a, "v", false);
    for (size_t i = 0; i < MODEL_EVICTED_MAX; i++)
        evicted[i] = (struct model_evicted){RT_BYTES_LITERAL("gone"), i + 1};
    evicted[MODEL_EVICTED_MAX - 1] = (struct model_evicted){RT_BYTES_LITERAL("v"), epoch_of("v")};
    call = driver_new_call(&d, MODEL_CALL_RENEW);
    driver_renew_begin(&d, "A", incarnation, &call->request.renew);
    call->request.renew.evicted = evicted;
    call->request.renew.n_evicted = MODEL_EVICTED_MAX;
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    cr_assert_eq(call->response.renew.n_evicted_epochs, MODEL_EVICTED_MAX - 1);
    driver_expect_owner(&d, "v", "?");
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_evict, renew_without_memory_for_its_answer_names_none)
{
    struct model_evicted evicted = {RT_BYTES_LITERAL("gone"), 1};
    struct model_call *call;

    begin();
    call = driver_new_call(&d, MODEL_CALL_RENEW);
    driver_renew_begin(&d, "A", incarnation, &call->request.renew);
    call->request.renew.evicted = &evicted;
    call->request.renew.n_evicted = 1;
    call->arena.limit = 1;
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    cr_assert_eq(call->response.renew.n_evicted_epochs, 0);
    (void)driver_free_call(call);
    driver_deinit(&d);
}
