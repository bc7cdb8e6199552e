/*
 * D15, C68: all instances compact together. The doubles answer; one of them refuses a write first.
 */
#include "tests/unit/coordinator/driver.h"

TestSuite(core_compaction, .fini = test_alloc_expect_none);

enum {
    PHASE_MS = 1500 /* half a membership lease */
};

static struct driver d;
static struct driver_session a;
static struct driver_session b;
static uint64_t incarnation_of_c;

static void begin(enum coord_compaction_mode mode)
{
    driver_init(&d);
    d.config.compaction = mode;
    driver_restart(&d, false);
    (void)driver_join(&d, "A", 1);
    (void)driver_join(&d, "B", 1);
    incarnation_of_c = driver_join(&d, "C", 1);
    a = driver_open(&d, "esi-a");
    b = driver_open(&d, "esi-b");
}

static void make_key(struct driver_session *session, const char *key)
{
    driver_expect(driver_run(&d, session, MODEL_STATEMENT_GET, key, NULL), MODEL_REASON_NONE);
    driver_expect(driver_run(&d, session, MODEL_STATEMENT_SET, key, "v"), MODEL_REASON_NONE);
}

/* A SET of `key` has been refused by its owner; from here on nothing is answered by itself. */
static struct model_call *refused_set(struct driver_session *session, const char *key)
{
    struct model_call *set;
    struct model_call *call;

    d.auto_answer = false;
    set = driver_execute(&d, session, MODEL_STATEMENT_SET, key, "w");
    call = driver_find_call(&d, MODEL_CALL_SET);
    cr_assert_not_null(call);
    cr_assert(call->request.data.header.no_compaction);
    driver_refuse(&d, call, MODEL_REASON_COMPACTION_NEEDED);
    return set;
}

static struct model_call *compact_of(const char *address)
{
    rt_list_for_each (node, &d.calls) {
        struct model_call *call = RT_LIST_ENTRY(node, struct model_call, link);

        if (call->request.kind == MODEL_CALL_COMPACT && strcmp(call->address, address) == 0)
            return call;
    }
    cr_assert_fail("no Compact for %s", address);
    abort();
}

/* They answer, and from here on everybody does. */
static void answer_all(void)
{
    d.auto_answer = true;
    driver_answer(&d, compact_of("A"));
}

static void expect_held(const struct model_call *call)
{
    cr_assert_null(driver_find_call(&d, MODEL_CALL_SET));
    cr_assert_not(driver_is_answered(call));
}

static void expect_done(struct model_call *call)
{
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    (void)driver_free_call(call);
}

Test(core_compaction, c68_every_instance_compacts_once_and_no_statement_runs_meanwhile)
{
    struct model_call *asker;
    struct model_call *other;

    begin(COORD_COMPACT_GLOBAL);
    make_key(&a, "k");
    make_key(&b, "other");
    asker = refused_set(&a, "k");
    other = driver_execute(&d, &b, MODEL_STATEMENT_SET, "other", "w");
    cr_assert_eq(d.n_sent[MODEL_CALL_COMPACT], 3);
    cr_assert_eq(compact_of("C")->request.compact.incarnation, incarnation_of_c);
    cr_assert_eq(compact_of("A")->request.compact.round, 1);
    driver_answer(&d, compact_of("B"));
    expect_held(other);
    driver_answer(&d, compact_of("A"));
    expect_held(other);
    expect_held(asker);
    d.auto_answer = true;
    driver_answer(&d, compact_of("C"));
    expect_done(asker);
    expect_done(other);
    cr_assert_eq(d.n_sent[MODEL_CALL_COMPACT], 3);
    cr_assert_eq(driver_n_events(&d, RT_LOG_INFO, "compacted"), 1);
    driver_deinit(&d);
}

Test(core_compaction, c68_who_asked_goes_first_and_asks_once)
{
    struct model_call *asker;
    struct model_call *other;
    struct model_call *set;

    begin(COORD_COMPACT_GLOBAL);
    make_key(&a, "k");
    make_key(&b, "other");
    asker = refused_set(&a, "k");
    other = driver_execute(&d, &b, MODEL_STATEMENT_SET, "other", "w");
    for (char name[2] = "A"; name[0] <= 'C'; name[0]++)
        driver_answer(&d, compact_of(name));
    set = driver_find_call(&d, MODEL_CALL_SET);
    cr_assert(rt_bytes_equal(set->request.data.header.key, RT_BYTES_LITERAL("k")));
    cr_assert_not(set->request.data.header.no_compaction, "its owner may compact now");
    d.auto_answer = true;
    driver_answer(&d, set);
    expect_done(asker);
    expect_done(other);
    driver_deinit(&d);
}

/* What is at an instance or at the store ends before anybody compacts. */
Test(core_compaction, c68_statements_under_way_end_first)
{
    struct model_call *asker;
    struct model_call *under_way;
    struct model_call *set_k;

    begin(COORD_COMPACT_GLOBAL);
    make_key(&a, "k");
    make_key(&b, "other");
    d.auto_answer = false;
    asker = driver_execute(&d, &a, MODEL_STATEMENT_SET, "k", "w");
    set_k = driver_find_call(&d, MODEL_CALL_SET);
    under_way = driver_execute(&d, &b, MODEL_STATEMENT_STORE, "other", NULL);
    driver_refuse(&d, set_k, MODEL_REASON_COMPACTION_NEEDED);
    cr_assert_eq(d.n_sent[MODEL_CALL_COMPACT], 0);
    d.auto_commit = false;
    driver_answer(&d, driver_find_call(&d, MODEL_CALL_STORE));
    cr_assert_eq(d.n_sent[MODEL_CALL_COMPACT], 0, "its lock is not released yet");
    d.auto_answer = true;
    d.auto_commit = true;
    driver_commit(&d, STORE_COMMITTED);
    cr_assert_eq(d.n_sent[MODEL_CALL_COMPACT], 3);
    expect_done(under_way);
    expect_done(asker);
    driver_deinit(&d);
}

Test(core_compaction, c68_sessions_and_status_are_served_meanwhile)
{
    struct model_call *asker;
    struct driver_session late;
    struct model_call *get;

    begin(COORD_COMPACT_GLOBAL);
    make_key(&a, "k");
    asker = refused_set(&a, "k");
    late = driver_open(&d, "late");
    driver_keep_alive(&d, &late);
    get = driver_execute(&d, &late, MODEL_STATEMENT_GET, "new", NULL);
    cr_assert_not(driver_is_answered(get));
    driver_expect_owner(&d, "new", "?");
    answer_all();
    expect_done(get);
    expect_done(asker);
    driver_deinit(&d);
}

Test(core_compaction, a_lost_answer_is_asked_for_again_in_the_same_round)
{
    struct model_call *asker;

    begin(COORD_COMPACT_GLOBAL);
    make_key(&a, "k");
    asker = refused_set(&a, "k");
    driver_answer(&d, compact_of("A"));
    driver_answer(&d, compact_of("B"));
    driver_lose(&d, compact_of("C"));
    expect_held(asker);
    driver_sleep_ms(&d, 20);
    cr_assert_eq(compact_of("C")->request.compact.round, 1);
    cr_assert_eq(d.n_sent[MODEL_CALL_COMPACT], 4);
    d.auto_answer = true;
    driver_answer(&d, compact_of("C"));
    expect_done(asker);
    driver_deinit(&d);
}

Test(core_compaction, an_instance_that_does_not_answer_in_time_is_left_out)
{
    struct model_call *asker;

    begin(COORD_COMPACT_GLOBAL);
    make_key(&a, "k");
    asker = refused_set(&a, "k");
    driver_answer(&d, compact_of("A"));
    driver_answer(&d, compact_of("B"));
    while (driver_find_call(&d, MODEL_CALL_COMPACT)) {
        driver_lose(&d, driver_find_call(&d, MODEL_CALL_COMPACT));
        driver_sleep_ms(&d, 500);
    }
    d.auto_answer = true;
    if (!driver_is_answered(asker))
        driver_answer(&d, driver_find_call(&d, MODEL_CALL_SET));
    expect_done(asker);
    driver_deinit(&d);
}

Test(core_compaction, an_instance_that_leaves_or_refuses_is_left_out)
{
    struct model_call *asker;

    begin(COORD_COMPACT_GLOBAL);
    make_key(&a, "k");
    asker = refused_set(&a, "k");
    driver_leave(&d, "C", incarnation_of_c);
    driver_lose(&d, compact_of("C"));
    driver_refuse(&d, compact_of("B"), MODEL_REASON_STALE_TERM);
    driver_answer(&d, compact_of("A"));
    driver_sleep_ms(&d, 20);
    cr_assert_eq(d.n_sent[MODEL_CALL_COMPACT], 3);
    d.auto_answer = true;
    driver_answer(&d, driver_find_call(&d, MODEL_CALL_SET));
    expect_done(asker);
    driver_deinit(&d);
}

/* A statement at an instance that hangs holds the others up for half a lease, not for ever. */
Test(core_compaction, a_statement_that_does_not_end_is_not_waited_for)
{
    struct model_call *asker;
    struct model_call *hangs;
    struct model_call *set_k;

    begin(COORD_COMPACT_GLOBAL);
    make_key(&a, "k");
    make_key(&b, "other");
    d.auto_answer = false;
    asker = driver_execute(&d, &a, MODEL_STATEMENT_SET, "k", "w");
    set_k = driver_find_call(&d, MODEL_CALL_SET);
    hangs = driver_execute(&d, &b, MODEL_STATEMENT_STORE, "other", NULL);
    driver_refuse(&d, set_k, MODEL_REASON_COMPACTION_NEEDED);
    driver_sleep_ms(&d, PHASE_MS - 10);
    cr_assert_eq(d.n_sent[MODEL_CALL_COMPACT], 0);
    driver_sleep_ms(&d, 20);
    cr_assert_eq(d.n_sent[MODEL_CALL_COMPACT], 3);
    answer_all();
    expect_done(asker);
    expect_done(hangs);
    driver_deinit(&d);
}

Test(core_compaction, whoever_asks_meanwhile_shares_the_round)
{
    struct model_call *first;
    struct model_call *second;
    struct model_call *calls[2];

    begin(COORD_COMPACT_GLOBAL);
    make_key(&a, "k");
    make_key(&b, "other");
    d.auto_answer = false;
    first = driver_execute(&d, &a, MODEL_STATEMENT_SET, "k", "w");
    calls[0] = driver_find_call(&d, MODEL_CALL_SET);
    rt_list_remove(&calls[0]->link);
    second = driver_execute(&d, &b, MODEL_STATEMENT_SET, "other", "w");
    calls[1] = driver_find_call(&d, MODEL_CALL_SET);
    rt_list_push_back(&d.calls, &calls[0]->link);
    driver_refuse(&d, calls[0], MODEL_REASON_COMPACTION_NEEDED);
    cr_assert_eq(d.n_sent[MODEL_CALL_COMPACT], 0);
    d.auto_answer = true;
    driver_refuse(&d, calls[1], MODEL_REASON_COMPACTION_NEEDED);
    cr_assert_eq(d.n_sent[MODEL_CALL_COMPACT], 3);
    expect_done(first);
    expect_done(second);
    driver_deinit(&d);
}

Test(core_compaction, a_held_statement_can_be_cancelled)
{
    struct model_call *asker;
    struct model_call *held;

    begin(COORD_COMPACT_GLOBAL);
    make_key(&a, "k");
    make_key(&b, "other");
    asker = refused_set(&a, "k");
    held = driver_execute(&d, &b, MODEL_STATEMENT_SET, "other", "w");
    coord_core_cancel(d.core, held);
    driver_settle(&d);
    driver_expect(driver_reason(held), MODEL_REASON_CANCELLED);
    cr_assert_eq(held->response.error.applied, MODEL_APPLIED_NO);
    coord_core_cancel(d.core, asker);
    driver_settle(&d);
    driver_expect(driver_reason(asker), MODEL_REASON_CANCELLED);
    (void)driver_free_call(held);
    (void)driver_free_call(asker);
    answer_all();
    driver_expect(driver_run(&d, &b, MODEL_STATEMENT_SET, "other", "x"), MODEL_REASON_NONE);
    driver_deinit(&d);
}

/* B gave up waiting, and came back while statements were held: its turn is not another's. */
Test(core_compaction, whoever_is_held_has_not_given_up_its_place)
{
    struct driver_session c;
    struct model_call *asker;
    struct model_call *await;
    struct model_call *get;

    begin(COORD_COMPACT_GLOBAL);
    c = driver_open(&d, "esi-c");
    make_key(&a, "k");
    make_key(&a, "z");
    cr_assert_eq(driver_get(&d, &b, "k"), MODEL_OUTCOME_WAITING);
    cr_assert_eq(driver_get(&d, &c, "k"), MODEL_OUTCOME_WAITING);
    await = driver_execute(&d, &b, MODEL_STATEMENT_AWAIT, "k", NULL);
    coord_core_cancel(d.core, await);
    driver_settle(&d);
    (void)driver_free_call(await);
    asker = refused_set(&a, "z");
    get = driver_execute(&d, &b, MODEL_STATEMENT_GET, "k", NULL);
    driver_sleep_ms(&d, 300);
    driver_close(&d, &a);
    (void)driver_free_call(asker);
    answer_all();
    driver_expect(driver_reason(get), MODEL_REASON_NONE);
    cr_assert_eq(get->response.execute.outcome, MODEL_OUTCOME_DONE);
    (void)driver_free_call(get);
    driver_deinit(&d);
}

/* Nobody waits for the round of a process that ends, and the round ends too. */
Test(core_compaction, a_shutdown_in_the_middle_answers_who_waits)
{
    struct model_call *asker;
    struct model_call *held;

    begin(COORD_COMPACT_GLOBAL);
    make_key(&a, "k");
    make_key(&b, "other");
    asker = refused_set(&a, "k");
    held = driver_execute(&d, &b, MODEL_STATEMENT_SET, "other", "w");
    coord_core_drain(d.core);
    driver_settle(&d);
    driver_expect(driver_reason(asker), MODEL_REASON_DRAINING);
    driver_expect(driver_reason(held), MODEL_REASON_DRAINING);
    (void)driver_free_call(asker);
    (void)driver_free_call(held);
    answer_all();
    cr_assert_eq(driver_n_events(&d, RT_LOG_INFO, "compacted"), 1);
    driver_deinit(&d);
}

/* Both sessions end: their statements do, their locks are free before the round is over. */
Test(core_compaction, a_session_that_ends_in_the_middle_leaves_nothing_behind)
{
    struct driver_session *sessions[] = {&a, &b};
    struct model_call *statements[2];
    struct driver_session late;

    begin(COORD_COMPACT_GLOBAL);
    make_key(&a, "k");
    make_key(&b, "other");
    statements[0] = refused_set(&a, "k");
    statements[1] = driver_execute(&d, &b, MODEL_STATEMENT_SET, "other", "w");
    for (size_t i = 0; i < RT_ARRAY_SIZE(statements); i++) {
        struct model_call *close = driver_new_call(&d, MODEL_CALL_CLOSE_SESSION);

        close->request.session.session_id = sessions[i]->id;
        driver_submit(&d, close);
        expect_done(close);
        driver_expect(driver_reason(statements[i]), MODEL_REASON_SESSION_UNKNOWN);
        (void)driver_free_call(statements[i]);
    }
    answer_all();
    late = driver_open(&d, "late");
    make_key(&late, "k");
    make_key(&late, "other");
    driver_deinit(&d);
}

/* What ends first may end with a full disk; what goes on after its commit waits for the round. */
Test(core_compaction, statements_at_the_store_when_the_round_begins)
{
    struct model_call *asker;
    struct model_call *fails;
    struct model_call *get;

    begin(COORD_COMPACT_GLOBAL);
    make_key(&a, "k");
    make_key(&b, "placed");
    driver_expect(driver_run(&d, &b, MODEL_STATEMENT_STORE, "placed", NULL), MODEL_REASON_NONE);
    d.auto_commit = false;
    fails = driver_execute(&d, &b, MODEL_STATEMENT_GET, "new", NULL);
    get = driver_execute(&d, &b, MODEL_STATEMENT_GET, "placed", NULL);
    asker = refused_set(&a, "k");
    cr_assert_eq(d.n_sent[MODEL_CALL_COMPACT], 0);
    driver_commit(&d, STORE_FULL);
    driver_expect(driver_reason(fails), MODEL_REASON_DISK_FULL);
    (void)driver_free_call(fails);
    cr_assert_eq(d.n_sent[MODEL_CALL_COMPACT], 0);
    driver_commit(&d, STORE_COMMITTED);
    cr_assert_eq(d.n_sent[MODEL_CALL_COMPACT], 3);
    cr_assert_not(driver_is_answered(get), "its owner is not told before the round is over");
    d.auto_commit = true;
    answer_all();
    expect_done(get);
    expect_done(asker);
    driver_deinit(&d);
}

Test(core_compaction, a_restart_in_the_middle_blocks_nobody)
{
    struct model_call *asker;

    begin(COORD_COMPACT_GLOBAL);
    make_key(&a, "k");
    make_key(&b, "other");
    asker = refused_set(&a, "k");
    d.auto_answer = true;
    driver_restart(&d, true);
    (void)driver_free_call(asker);
    driver_expect(driver_run(&d, &b, MODEL_STATEMENT_SET, "other", "w"), MODEL_REASON_NONE);
    driver_deinit(&d);
}

Test(core_compaction, local_is_the_owners_business)
{
    struct model_call *set;

    begin(COORD_COMPACT_LOCAL);
    make_key(&a, "k");
    d.auto_answer = false;
    set = driver_execute(&d, &a, MODEL_STATEMENT_SET, "k", "w");
    cr_assert_not(driver_find_call(&d, MODEL_CALL_SET)->request.data.header.no_compaction);
    d.auto_answer = true;
    driver_answer(&d, driver_find_call(&d, MODEL_CALL_SET));
    expect_done(set);
    cr_assert_eq(d.n_sent[MODEL_CALL_COMPACT], 0);
    driver_deinit(&d);
}
