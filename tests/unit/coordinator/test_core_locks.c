/*
 * Locks and waiting through the whole core: the course's cases, order, turns, fencing.
 */
#include "tests/unit/coordinator/driver.h"

TestSuite(core_locks, .fini = test_alloc_expect_none);

static struct driver d;
static struct driver_session a;
static struct driver_session b;
static struct driver_session c;

static void begin(void)
{
    driver_init(&d);
    driver_restart(&d, false);
    (void)driver_join(&d, "A", 1);
    a = driver_open(&d, "esi-a");
    b = driver_open(&d, "esi-b");
    c = driver_open(&d, "esi-c");
}

static enum model_reason set(struct driver_session *session, const char *key)
{
    return driver_run(&d, session, MODEL_STATEMENT_SET, key, "v");
}

static enum model_reason store(struct driver_session *session, const char *key)
{
    return driver_run(&d, session, MODEL_STATEMENT_STORE, key, NULL);
}

static void expect_get(struct driver_session *session, const char *key, enum model_outcome outcome)
{
    enum model_outcome got = driver_get(&d, session, key);

    cr_assert_eq(got, outcome);
}

static bool is_ready(const struct model_call *call)
{
    return driver_is_answered(call) && call->response.code == RT_OK &&
           call->response.execute.outcome == MODEL_OUTCOME_READY;
}

static void sleep_alive_ms(uint64_t ms)
{
    for (uint64_t i = 0; i < ms; i += 100) {
        driver_keep_alive(&d, &a);
        driver_keep_alive(&d, &b);
        driver_keep_alive(&d, &c);
        (void)driver_renew(&d, "A", 1);
        driver_sleep_ms(&d, 100);
    }
}

Test(core_locks, C39_get_creates_and_locks_and_does_not_place)
{
    struct model_call *call;

    begin();
    call = driver_execute(&d, &a, MODEL_STATEMENT_GET, "k", NULL);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    cr_assert_eq(call->response.execute.outcome, MODEL_OUTCOME_DONE);
    cr_assert_neq(call->response.execute.lock_token, 0);
    cr_assert_str_eq(call->response.execute.instance, "");
    cr_assert_not(call->response.execute.data.has_value);
    driver_expect_owner(&d, "k", "");
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_locks, C40_unknown_key)
{
    begin();
    driver_expect(set(&a, "k"), MODEL_REASON_KEY_NOT_IDENTIFIED);
    driver_expect(store(&a, "k"), MODEL_REASON_KEY_NOT_IDENTIFIED);
    driver_expect(driver_run(&d, &a, MODEL_STATEMENT_READ, "k", NULL),
                  MODEL_REASON_KEY_NOT_IDENTIFIED);
    driver_expect(driver_run(&d, &a, MODEL_STATEMENT_DELETE, "k", NULL),
                  MODEL_REASON_KEY_NOT_IDENTIFIED);
    driver_expect_owner(&d, "k", "?");
    driver_deinit(&d);
}

Test(core_locks, C41_a_key_of_another_or_free)
{
    begin();
    expect_get(&a, "k", MODEL_OUTCOME_DONE);
    driver_expect(set(&b, "k"), MODEL_REASON_KEY_NOT_LOCKED);
    driver_expect(store(&b, "k"), MODEL_REASON_KEY_NOT_LOCKED);
    driver_expect(store(&a, "k"), MODEL_REASON_NONE);
    driver_expect(set(&b, "k"), MODEL_REASON_KEY_NOT_LOCKED);
    driver_deinit(&d);
}

Test(core_locks, C42_store_then_set_with_the_old_token)
{
    struct model_call *call;
    uint64_t token;

    begin();
    call = driver_execute(&d, &a, MODEL_STATEMENT_GET, "k", NULL);
    token = call->response.execute.lock_token;
    (void)driver_free_call(call);
    driver_expect(set(&a, "k"), MODEL_REASON_NONE);
    driver_expect(store(&a, "k"), MODEL_REASON_NONE);
    driver_expect(set(&a, "k"), MODEL_REASON_KEY_NOT_LOCKED);
    call = driver_new_call(&d, MODEL_CALL_EXECUTE);
    call->request.execute = (struct model_execute_request){
        .session_id = a.id,
        .kind = MODEL_STATEMENT_SET,
        .key = RT_BYTES_LITERAL("k"),
        .lock_token = token,
    };
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_KEY_NOT_LOCKED);
    call->context = NULL;
    expect_get(&b, "k", MODEL_OUTCOME_DONE);
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_LOCK_FENCED);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_locks, C43_get_twice_by_the_holder)
{
    struct model_call *first;
    struct model_call *second;

    begin();
    expect_get(&a, "k", MODEL_OUTCOME_DONE);
    driver_expect(set(&a, "k"), MODEL_REASON_NONE);
    first = driver_execute(&d, &a, MODEL_STATEMENT_GET, "k", NULL);
    second = driver_execute(&d, &a, MODEL_STATEMENT_GET, "k", NULL);
    cr_assert_eq(first->response.execute.lock_token, second->response.execute.lock_token);
    cr_assert(second->response.execute.data.has_value);
    driver_expect(store(&a, "k"), MODEL_REASON_NONE);
    expect_get(&b, "k", MODEL_OUTCOME_DONE);
    (void)driver_free_call(first);
    (void)driver_free_call(second);
    driver_deinit(&d);
}

Test(core_locks, C44_key_of_40_and_41_bytes)
{
    static const char key[] = "0123456789012345678901234567890123456789x";
    char shorter[sizeof(key) - 1] = {0};
    struct model_call *call;

    begin();
    memcpy(shorter, key, sizeof(shorter) - 1);
    expect_get(&a, shorter, MODEL_OUTCOME_DONE);
    call = driver_execute(&d, &a, MODEL_STATEMENT_GET, key, NULL);
    driver_expect(driver_reason(call), MODEL_REASON_KEY_TOO_LONG);
    cr_assert_str_eq(call->response.error.message, "key has 41 bytes, valid are 1 to 40");
    (void)driver_free_call(call);
    driver_expect(driver_run(&d, &a, MODEL_STATEMENT_GET, "", NULL), MODEL_REASON_KEY_EMPTY);
    driver_deinit(&d);
}

Test(core_locks, C45_keys_before_one_that_is_too_long_are_set)
{
    begin();
    expect_get(&a, "consola:nueva", MODEL_OUTCOME_DONE);
    driver_expect(set(&a, "consola:nueva"), MODEL_REASON_NONE);
    driver_expect(set(&a, "consola:con:un:nombre:que:pasa:el:limite:x45"),
                  MODEL_REASON_KEY_TOO_LONG);
    driver_expect_owner(&d, "consola:nueva", "A");
    driver_deinit(&d);
}

Test(core_locks, keys_and_values_longer_than_any_limit)
{
    static uint8_t bytes[MODEL_VALUE_MAX + 1];
    struct model_call *call;

    begin();
    call = driver_new_call(&d, MODEL_CALL_EXECUTE);
    call->request.execute.session_id = a.id;
    call->request.execute.kind = MODEL_STATEMENT_SET;
    call->request.execute.key = rt_bytes_of(bytes, 1000);
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_KEY_TOO_LONG);
    call->context = NULL;
    call->request.execute.key = RT_BYTES_LITERAL("k");
    call->request.execute.value = rt_bytes_of(bytes, MODEL_VALUE_MAX + 1);
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_VALUE_TOO_LARGE);
    call->context = NULL;
    call->request.execute.value = rt_bytes_of(bytes, MODEL_VALUE_MAX);
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_KEY_NOT_IDENTIFIED);
    call->context = NULL;
    call->request.execute.kind = (enum model_statement_kind)99;
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_INVALID_FIELD);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_locks, C46_D10_store_without_set_releases_and_contacts_nobody)
{
    begin();
    expect_get(&a, "k", MODEL_OUTCOME_DONE);
    driver_expect(store(&a, "k"), MODEL_REASON_NONE);
    cr_assert_eq(d.n_sent[MODEL_CALL_STORE], 0);
    cr_assert_eq(d.n_sent[MODEL_CALL_ACTIVATE], 0);
    expect_get(&b, "k", MODEL_OUTCOME_DONE);
    driver_deinit(&d);
}

Test(core_locks, C48_store_wakes_only_the_first_waiter)
{
    struct model_call *await_b;
    struct model_call *await_c;

    begin();
    expect_get(&a, "k", MODEL_OUTCOME_DONE);
    driver_expect(set(&a, "k"), MODEL_REASON_NONE);
    expect_get(&b, "k", MODEL_OUTCOME_WAITING);
    expect_get(&c, "k", MODEL_OUTCOME_WAITING);
    await_c = driver_execute(&d, &c, MODEL_STATEMENT_AWAIT, "k", NULL);
    await_b = driver_execute(&d, &b, MODEL_STATEMENT_AWAIT, "k", NULL);
    driver_expect(store(&a, "k"), MODEL_REASON_NONE);
    cr_assert(is_ready(await_b));
    cr_assert_not(driver_is_answered(await_c));
    expect_get(&b, "k", MODEL_OUTCOME_DONE);
    cr_assert_not(driver_is_answered(await_c));
    driver_expect(store(&b, "k"), MODEL_REASON_NONE);
    cr_assert(is_ready(await_c));
    expect_get(&c, "k", MODEL_OUTCOME_DONE);
    (void)driver_free_call(await_b);
    (void)driver_free_call(await_c);
    driver_deinit(&d);
}

Test(core_locks, waiting_names_the_holder_and_queues_once)
{
    struct model_call *call;

    begin();
    expect_get(&a, "k", MODEL_OUTCOME_DONE);
    expect_get(&b, "k", MODEL_OUTCOME_WAITING);
    call = driver_execute(&d, &b, MODEL_STATEMENT_GET, "k", NULL);
    cr_assert_str_eq(call->response.execute.holder, "esi-a");
    (void)driver_free_call(call);
    call = driver_new_call(&d, MODEL_CALL_KEY_STATUS);
    call->request.key_status.key = RT_BYTES_LITERAL("k");
    driver_submit(&d, call);
    cr_assert_str_eq(call->response.key_status.holder, "esi-a");
    cr_assert_eq(call->response.key_status.n_waiters, 1);
    cr_assert(rt_bytes_equal(call->response.key_status.waiters[0], RT_BYTES_LITERAL("esi-b")));
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_locks, a_woken_waiter_keeps_its_turn)
{
    begin();
    expect_get(&a, "k", MODEL_OUTCOME_DONE);
    expect_get(&b, "k", MODEL_OUTCOME_WAITING);
    driver_expect(store(&a, "k"), MODEL_REASON_NONE);
    expect_get(&c, "k", MODEL_OUTCOME_WAITING);
    expect_get(&a, "k", MODEL_OUTCOME_WAITING);
    sleep_alive_ms(900);
    expect_get(&c, "k", MODEL_OUTCOME_WAITING);
    expect_get(&b, "k", MODEL_OUTCOME_DONE);
    driver_deinit(&d);
}

Test(core_locks, a_turn_that_passes_goes_to_the_next)
{
    struct model_call *await_c;

    begin();
    expect_get(&a, "k", MODEL_OUTCOME_DONE);
    expect_get(&b, "k", MODEL_OUTCOME_WAITING);
    expect_get(&c, "k", MODEL_OUTCOME_WAITING);
    driver_expect(store(&a, "k"), MODEL_REASON_NONE);
    await_c = driver_execute(&d, &c, MODEL_STATEMENT_AWAIT, "k", NULL);
    sleep_alive_ms(1100);
    cr_assert(is_ready(await_c));
    expect_get(&b, "k", MODEL_OUTCOME_WAITING);
    sleep_alive_ms(1100);
    expect_get(&b, "k", MODEL_OUTCOME_DONE);
    driver_expect(store(&b, "k"), MODEL_REASON_NONE);
    expect_get(&a, "k", MODEL_OUTCOME_WAITING);
    expect_get(&c, "k", MODEL_OUTCOME_DONE);
    (void)driver_free_call(await_c);
    driver_deinit(&d);
}

static size_t n_waiters(const char *key)
{
    struct model_call *call = driver_new_call(&d, MODEL_CALL_KEY_STATUS);
    size_t n;

    call->request.key_status.key = rt_bytes_of_string(key);
    driver_submit(&d, call);
    n = call->response.key_status.n_waiters;
    (void)driver_free_call(call);
    return n;
}

/* B waits with this call and gives up, by its deadline of 5 s or by going away; C is behind it. */
static void give_up(struct model_call *call, bool goes_away)
{
    cr_assert_not(driver_is_answered(call));
    expect_get(&c, "k", MODEL_OUTCOME_WAITING);
    cr_assert_eq(n_waiters("k"), 2);
    if (goes_away)
        coord_core_cancel(d.core, call);
    else
        sleep_alive_ms(5000);
    sleep_alive_ms(300);
    driver_expect(driver_reason(call),
                  goes_away ? MODEL_REASON_CANCELLED : MODEL_REASON_DEADLINE_EXCEEDED);
    (void)driver_free_call(call);
    cr_assert_eq(n_waiters("k"), 1);
}

static struct model_call *new_lock(struct driver_session *session, const char *key)
{
    struct model_call *call = driver_new_call(&d, MODEL_CALL_LOCK);

    call->request.lock.session_id = session->id;
    call->request.lock.request_id = (struct model_request_id){session->client, ++session->seq};
    call->request.lock.key = rt_bytes_of_string(key);
    driver_submit(&d, call);
    return call;
}

Test(core_locks, a_waiter_that_gave_up_holds_up_nobody)
{
    begin();
    for (int i = 0; i < 4; i++) {
        expect_get(&a, "k", MODEL_OUTCOME_DONE);
        if (i % 2 == 0) {
            give_up(new_lock(&b, "k"), i / 2);
        } else {
            expect_get(&b, "k", MODEL_OUTCOME_WAITING);
            give_up(driver_execute(&d, &b, MODEL_STATEMENT_AWAIT, "k", NULL), i / 2);
        }
        driver_expect(store(&a, "k"), MODEL_REASON_NONE);
        expect_get(&c, "k", MODEL_OUTCOME_DONE);
        driver_expect(store(&c, "k"), MODEL_REASON_NONE);
        /* And nobody who comes later. */
    }
    driver_deinit(&d);
}

/* It may be on its way back, but not for long. */
Test(core_locks, a_turn_of_one_that_has_just_given_up_is_short)
{
    struct model_call *await_b;

    begin();
    expect_get(&a, "k", MODEL_OUTCOME_DONE);
    expect_get(&b, "k", MODEL_OUTCOME_WAITING);
    await_b = driver_execute(&d, &b, MODEL_STATEMENT_AWAIT, "k", NULL);
    coord_core_cancel(d.core, await_b);
    driver_settle(&d);
    driver_expect(store(&a, "k"), MODEL_REASON_NONE);
    driver_sleep_ms(&d, 240);
    expect_get(&c, "k", MODEL_OUTCOME_WAITING);
    driver_sleep_ms(&d, 20);
    expect_get(&c, "k", MODEL_OUTCOME_DONE);
    (void)driver_free_call(await_b);
    driver_deinit(&d);
}

Test(core_locks, a_waiter_that_waits_in_pieces_keeps_its_place)
{
    struct model_call *await_b;

    begin();
    expect_get(&a, "k", MODEL_OUTCOME_DONE);
    expect_get(&b, "k", MODEL_OUTCOME_WAITING);
    give_up(driver_execute(&d, &b, MODEL_STATEMENT_AWAIT, "k", NULL), false);
    await_b = driver_execute(&d, &b, MODEL_STATEMENT_AWAIT, "k", NULL);
    cr_assert_eq(n_waiters("k"), 2);
    driver_expect(store(&a, "k"), MODEL_REASON_NONE);
    cr_assert(is_ready(await_b));
    expect_get(&c, "k", MODEL_OUTCOME_WAITING);
    expect_get(&b, "k", MODEL_OUTCOME_DONE);
    (void)driver_free_call(await_b);
    driver_deinit(&d);
}

Test(core_locks, rule17_a_woken_waiter_that_ends_makes_room_for_the_next)
{
    struct model_call *await_c;

    begin();
    expect_get(&a, "k", MODEL_OUTCOME_DONE);
    expect_get(&b, "k", MODEL_OUTCOME_WAITING);
    expect_get(&c, "k", MODEL_OUTCOME_WAITING);
    await_c = driver_execute(&d, &c, MODEL_STATEMENT_AWAIT, "k", NULL);
    driver_expect(store(&a, "k"), MODEL_REASON_NONE);
    cr_assert_not(driver_is_answered(await_c));
    driver_close(&d, &b);
    cr_assert(is_ready(await_c));
    expect_get(&c, "k", MODEL_OUTCOME_DONE);
    (void)driver_free_call(await_c);
    driver_deinit(&d);
}

Test(core_locks, await_of_a_session_that_does_not_wait_is_ready)
{
    struct model_call *call;

    begin();
    expect_get(&a, "k", MODEL_OUTCOME_DONE);
    call = driver_execute(&d, &b, MODEL_STATEMENT_AWAIT, "k", NULL);
    cr_assert(is_ready(call));
    (void)driver_free_call(call);
    call = driver_execute(&d, &b, MODEL_STATEMENT_AWAIT, "unknown", NULL);
    cr_assert(is_ready(call));
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_locks, await_keeps_its_place_when_its_deadline_passes)
{
    struct model_call *call;

    begin();
    expect_get(&a, "k", MODEL_OUTCOME_DONE);
    expect_get(&b, "k", MODEL_OUTCOME_WAITING);
    call = driver_execute(&d, &b, MODEL_STATEMENT_AWAIT, "k", NULL);
    sleep_alive_ms(5100);
    driver_expect(driver_reason(call), MODEL_REASON_DEADLINE_EXCEEDED);
    cr_assert_eq(call->response.error.applied, MODEL_APPLIED_NO);
    (void)driver_free_call(call);
    expect_get(&c, "k", MODEL_OUTCOME_WAITING);
    driver_expect(store(&a, "k"), MODEL_REASON_NONE);
    expect_get(&c, "k", MODEL_OUTCOME_WAITING);
    expect_get(&b, "k", MODEL_OUTCOME_DONE);
    driver_deinit(&d);
}

Test(core_locks, a_drain_answers_what_only_waits)
{
    struct model_call *call;

    begin();
    expect_get(&a, "k", MODEL_OUTCOME_DONE);
    expect_get(&b, "k", MODEL_OUTCOME_WAITING);
    call = driver_execute(&d, &b, MODEL_STATEMENT_AWAIT, "k", NULL);
    cr_assert_not(driver_is_answered(call));
    coord_core_drain(d.core);
    driver_settle(&d);
    driver_expect(driver_reason(call), MODEL_REASON_DRAINING);
    cr_assert_eq(call->response.error.applied, MODEL_APPLIED_NO);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_locks, a_cancelled_await_is_answered_and_keeps_its_place)
{
    struct model_call *call;

    begin();
    expect_get(&a, "k", MODEL_OUTCOME_DONE);
    expect_get(&b, "k", MODEL_OUTCOME_WAITING);
    call = driver_execute(&d, &b, MODEL_STATEMENT_AWAIT, "k", NULL);
    coord_core_cancel(d.core, call);
    driver_settle(&d);
    driver_expect(driver_reason(call), MODEL_REASON_CANCELLED);
    coord_core_cancel(d.core, call);
    driver_settle(&d);
    (void)driver_free_call(call);
    driver_expect(store(&a, "k"), MODEL_REASON_NONE);
    expect_get(&c, "k", MODEL_OUTCOME_WAITING);
    driver_deinit(&d);
}

/* ---- the queue of the latch ------------------------------------------------------------------ */

Test(core_locks, operations_on_one_key_run_one_after_the_other)
{
    struct model_call *first;
    struct model_call *second;
    struct model_call *other;

    begin();
    d.auto_commit = false;
    first = driver_execute(&d, &a, MODEL_STATEMENT_GET, "k", NULL);
    second = driver_execute(&d, &b, MODEL_STATEMENT_GET, "k", NULL);
    other = driver_execute(&d, &c, MODEL_STATEMENT_GET, "k2", NULL);
    cr_assert_eq(driver_n_txns(&d), 2, "one a key");
    cr_assert_not(driver_is_answered(first));
    driver_commit(&d, STORE_COMMITTED);
    cr_assert_eq(first->response.execute.outcome, MODEL_OUTCOME_DONE);
    cr_assert_eq(second->response.execute.outcome, MODEL_OUTCOME_WAITING);
    driver_commit(&d, STORE_COMMITTED);
    cr_assert(driver_is_answered(other));
    (void)driver_free_call(first);
    (void)driver_free_call(second);
    (void)driver_free_call(other);
    driver_deinit(&d);
}

Test(core_locks, a_queued_call_is_answered_when_cancelled_or_out_of_time)
{
    struct model_call *first;
    struct model_call *second;
    struct model_call *third;

    begin();
    d.auto_commit = false;
    first = driver_execute(&d, &a, MODEL_STATEMENT_GET, "k", NULL);
    second = driver_execute(&d, &b, MODEL_STATEMENT_GET, "k", NULL);
    third = driver_execute(&d, &c, MODEL_STATEMENT_GET, "k", NULL);
    coord_core_cancel(d.core, first);
    coord_core_cancel(d.core, second);
    driver_settle(&d);
    cr_assert_not(driver_is_answered(first), "its transaction is under way");
    driver_expect(driver_reason(second), MODEL_REASON_CANCELLED);
    d.env.now_us += 5000000;
    coord_core_tick(d.core);
    driver_settle(&d);
    driver_expect(driver_reason(third), MODEL_REASON_DEADLINE_EXCEEDED);
    cr_assert_eq(third->response.error.applied, MODEL_APPLIED_NO);
    while (driver_n_txns(&d) > 0)
        driver_commit(&d, STORE_COMMITTED);
    cr_assert(driver_is_answered(first));
    (void)driver_free_call(first);
    (void)driver_free_call(second);
    (void)driver_free_call(third);
    driver_deinit(&d);
}

/* ---- fencing --------------------------------------------------------------------------------- */

Test(core_locks, I7_the_owner_is_fenced_before_a_get_is_answered)
{
    struct model_call *call;
    struct model_call *fence;

    begin();
    expect_get(&a, "k", MODEL_OUTCOME_DONE);
    driver_expect(set(&a, "k"), MODEL_REASON_NONE);
    driver_expect(store(&a, "k"), MODEL_REASON_NONE);
    d.auto_answer = false;
    d.auto_commit = false;
    call = driver_execute(&d, &b, MODEL_STATEMENT_GET, "k", NULL);
    cr_assert_null(driver_find_call(&d, MODEL_CALL_FENCE), "commit, then speak");
    driver_commit(&d, STORE_COMMITTED);
    fence = driver_find_call(&d, MODEL_CALL_FENCE);
    cr_assert(fence->request.fence.locked);
    cr_assert_not(driver_is_answered(call));
    driver_answer(&d, fence);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    cr_assert(call->response.execute.data.has_value);
    cr_assert(rt_bytes_equal(call->response.execute.data.value, RT_BYTES_LITERAL("v")));
    cr_assert_str_eq(call->response.execute.instance, "A");
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_locks, rule17_a_grant_whose_fence_fails_belongs_to_the_session)
{
    struct model_call *call;
    struct model_call *again;
    uint64_t token;

    begin();
    expect_get(&a, "k", MODEL_OUTCOME_DONE);
    driver_expect(set(&a, "k"), MODEL_REASON_NONE);
    driver_expect(store(&a, "k"), MODEL_REASON_NONE);
    d.auto_answer = false;
    call = driver_execute(&d, &b, MODEL_STATEMENT_GET, "k", NULL);
    token = driver_find_call(&d, MODEL_CALL_FENCE)->request.fence.token;
    for (int i = 0; i < 60 && !driver_is_answered(call); i++)
        sleep_alive_ms(100);
    driver_expect(driver_reason(call), MODEL_REASON_OWNER_UNREACHABLE);
    cr_assert_eq(call->response.error.applied, MODEL_APPLIED_MAYBE);
    expect_get(&c, "k", MODEL_OUTCOME_WAITING);
    d.auto_answer = true;
    again = driver_execute(&d, &b, MODEL_STATEMENT_GET, "k", NULL);
    driver_expect(driver_reason(again), MODEL_REASON_NONE);
    cr_assert_eq(again->response.execute.lock_token, token);
    (void)driver_free_call(call);
    (void)driver_free_call(again);
    driver_deinit(&d);
}

Test(core_locks, a_token_spent_by_a_store_is_replaced_on_the_next_get)
{
    struct model_call *store_call;
    struct model_call *call;
    uint64_t token;

    begin();
    expect_get(&a, "k", MODEL_OUTCOME_DONE);
    driver_expect(set(&a, "k"), MODEL_REASON_NONE);
    driver_expect(store(&a, "k"), MODEL_REASON_NONE);
    call = driver_execute(&d, &a, MODEL_STATEMENT_GET, "k", NULL);
    token = call->response.execute.lock_token;
    (void)driver_free_call(call);
    d.auto_commit = false;
    store_call = driver_execute(&d, &a, MODEL_STATEMENT_STORE, "k", NULL);
    cr_assert_eq(d.n_sent[MODEL_CALL_STORE], 2);
    driver_restart(&d, false);
    driver_commit(&d, STORE_COMMITTED);
    d.auto_commit = true;
    driver_settle(&d);
    call = driver_execute(&d, &a, MODEL_STATEMENT_GET, "k", NULL);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    cr_assert_gt(call->response.execute.lock_token, token);
    driver_expect(set(&a, "k"), MODEL_REASON_NONE);
    (void)driver_free_call(call);
    (void)driver_free_call(store_call);
    driver_deinit(&d);
}

/* ---- limits ---------------------------------------------------------------------------------- */

Test(core_locks, waiters_at_the_limit_and_one_more)
{
    struct driver_session session;
    char name[16];

    begin();
    expect_get(&a, "k", MODEL_OUTCOME_DONE);
    for (int i = 0; i < MODEL_WAITERS_MAX; i++) {
        (void)snprintf(name, sizeof(name), "w%d", i);
        session = driver_open(&d, name);
        expect_get(&session, "k", MODEL_OUTCOME_WAITING);
    }
    driver_expect(driver_run(&d, &b, MODEL_STATEMENT_GET, "k", NULL), MODEL_REASON_LIMIT_REACHED);
    driver_close(&d, &session);
    expect_get(&b, "k", MODEL_OUTCOME_WAITING);
    driver_deinit(&d);
}

Test(core_locks, one_that_gave_up_makes_room_at_the_limit)
{
    struct driver_session session;
    struct model_call *call;
    char name[16];

    begin();
    expect_get(&a, "k", MODEL_OUTCOME_DONE);
    for (int i = 0; i < MODEL_WAITERS_MAX; i++) {
        (void)snprintf(name, sizeof(name), "w%d", i);
        session = driver_open(&d, name);
        expect_get(&session, "k", MODEL_OUTCOME_WAITING);
    }
    call = driver_execute(&d, &session, MODEL_STATEMENT_AWAIT, "k", NULL);
    coord_core_cancel(d.core, call);
    driver_settle(&d);
    (void)driver_free_call(call);
    driver_expect(driver_run(&d, &b, MODEL_STATEMENT_GET, "k", NULL), MODEL_REASON_LIMIT_REACHED);
    driver_sleep_ms(&d, 260);
    expect_get(&b, "k", MODEL_OUTCOME_WAITING);
    driver_expect(driver_run(&d, &c, MODEL_STATEMENT_GET, "k", NULL), MODEL_REASON_LIMIT_REACHED);
    driver_deinit(&d);
}

Test(core_locks, operations_that_wait_for_one_key_at_the_limit_and_one_more)
{
    static struct model_call *calls[MODEL_WAITERS_MAX + 2];

    begin();
    d.auto_commit = false;
    for (int i = 0; i < MODEL_WAITERS_MAX + 2; i++)
        calls[i] = driver_execute(&d, &a, MODEL_STATEMENT_GET, "k", NULL);
    driver_expect(driver_reason(calls[MODEL_WAITERS_MAX + 1]), MODEL_REASON_LIMIT_REACHED);
    cr_assert_not(driver_is_answered(calls[MODEL_WAITERS_MAX]));
    d.auto_commit = true;
    driver_settle(&d);
    for (int i = 0; i < MODEL_WAITERS_MAX + 2; i++) {
        cr_assert(driver_is_answered(calls[i]));
        (void)driver_free_call(calls[i]);
    }
    driver_deinit(&d);
}

Test(core_locks, no_memory_for_a_key_is_said)
{
    struct model_call *call;

    begin();
    call = driver_new_call(&d, MODEL_CALL_EXECUTE);
    call->request.execute.session_id = a.id;
    call->request.execute.kind = MODEL_STATEMENT_GET;
    call->request.execute.key = RT_BYTES_LITERAL("k");
    test_alloc_fail_after(0, 1);
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_LIMIT_REACHED);
    call->context = NULL;
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    (void)driver_free_call(call);
    driver_deinit(&d);
}
