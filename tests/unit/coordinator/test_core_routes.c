/*
 * Route, Lock and Unlock through the whole core: when a key is placed, what is durable before a
 * route is given out, who waits for a lock and how it is given back.
 */
#include "tests/unit/coordinator/driver.h"

TestSuite(core_routes, .fini = test_alloc_expect_none);

static struct driver d;
static struct driver_session a;
static struct driver_session b;
static uint64_t incarnation;

static void begin_with(enum model_locking locking, enum coord_owner_down owner_down)
{
    driver_init(&d);
    d.config.locking = locking;
    d.config.owner_down = owner_down;
    driver_restart(&d, false);
    incarnation = driver_join(&d, "A", 1);
    a = driver_open(&d, "esi-a");
    b = driver_open(&d, "esi-b");
}

static void begin(void)
{
    begin_with(MODEL_LOCKING_OPTIONAL, COORD_OWNER_DOWN_KEEP);
}

static struct model_call *new_route(enum model_statement_kind operation, const char *key)
{
    struct model_call *call = driver_new_call(&d, MODEL_CALL_ROUTE);

    call->request.route = (struct model_route_request){
        .operation = operation,
        .key = rt_bytes_of_string(key),
    };
    return call;
}

/* Without session; it must be answered. Frees the call. */
static enum model_reason route(enum model_statement_kind operation, const char *key,
                               struct model_route_response *ret_route)
{
    struct model_call *call = new_route(operation, key);
    enum model_reason reason;

    driver_submit(&d, call);
    cr_assert(driver_is_answered(call));
    reason = driver_reason(call);
    if (reason == MODEL_REASON_NONE && ret_route)
        *ret_route = call->response.route;
    (void)driver_free_call(call);
    return reason;
}

static struct model_call *new_lock(const struct driver_session *session, const char *key)
{
    struct model_call *call = driver_new_call(&d, MODEL_CALL_LOCK);

    call->request.lock = (struct model_lock_request){
        .session_id = session->id,
        .key = rt_bytes_of_string(key),
    };
    return call;
}

/* It must be granted. */
static struct model_lock_response lock(const struct driver_session *session, const char *key)
{
    struct model_call *call = new_lock(session, key);
    struct model_lock_response response;

    driver_submit(&d, call);
    cr_assert(driver_is_answered(call));
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    response = call->response.lock;
    cr_assert_eq(response.outcome, MODEL_OUTCOME_DONE);
    cr_assert_neq(response.lock_token, 0);
    (void)driver_free_call(call);
    return response;
}

static struct model_call *new_unlock(const struct driver_session *session, const char *key,
                                     uint64_t token)
{
    struct model_call *call = driver_new_call(&d, MODEL_CALL_UNLOCK);

    call->request.unlock = (struct model_unlock_request){
        .session_id = session->id,
        .key = rt_bytes_of_string(key),
        .lock_token = token,
    };
    return call;
}

static enum model_reason unlock(const struct driver_session *session, const char *key,
                                uint64_t token)
{
    struct model_call *call = new_unlock(session, key, token);
    enum model_reason reason;

    driver_submit(&d, call);
    cr_assert(driver_is_answered(call));
    reason = driver_reason(call);
    (void)driver_free_call(call);
    return reason;
}

/* ---- Route ------------------------------------------------------------------------------------
 */

Test(core_routes, put_places_and_names_the_owner)
{
    struct model_route_response got;

    begin();
    driver_expect(route(MODEL_STATEMENT_PUT, "k", &got), MODEL_REASON_NONE);
    cr_assert(got.has_route);
    cr_assert_str_eq(got.route.owner, "A");
    cr_assert_str_eq(got.route.address, "A");
    cr_assert_eq(got.route.incarnation, incarnation);
    cr_assert_neq(got.route.epoch, 0);
    cr_assert(model_id_equal(&got.route.cluster_id, coord_core_cluster_id(d.core)));
    driver_expect_owner(&d, "k", "A");
    driver_deinit(&d);
}

Test(core_routes, second_route_is_the_same_and_commits_nothing)
{
    struct model_route_response first;
    struct model_route_response second;
    uint64_t n_txns;

    begin();
    driver_expect(route(MODEL_STATEMENT_PUT, "k", &first), MODEL_REASON_NONE);
    n_txns = d.n_txns;
    driver_expect(route(MODEL_STATEMENT_STORE, "k", &second), MODEL_REASON_NONE);
    cr_assert_eq(memcmp(&first.route, &second.route, sizeof(first.route)), 0);
    cr_assert_eq(d.n_txns, n_txns);
    driver_deinit(&d);
}

Test(core_routes, only_put_and_set_place)
{
    static const enum model_statement_kind others[] = {MODEL_STATEMENT_READ, MODEL_STATEMENT_STORE,
                                                       MODEL_STATEMENT_DELETE};
    struct model_route_response got;

    begin();
    for (size_t i = 0; i < RT_ARRAY_SIZE(others); i++)
        driver_expect(route(others[i], "k", NULL), MODEL_REASON_KEY_NOT_IDENTIFIED);
    driver_expect(route(MODEL_STATEMENT_SET, "k", NULL), MODEL_REASON_KEY_NOT_IDENTIFIED);
    driver_expect_owner(&d, "k", "?");

    (void)lock(&a, "k");
    driver_expect(route(MODEL_STATEMENT_READ, "k", &got), MODEL_REASON_NONE);
    cr_assert_not(got.has_route);
    driver_expect_owner(&d, "k", "");
    driver_deinit(&d);
}

Test(core_routes, set_places_without_locking)
{
    begin_with(MODEL_LOCKING_NONE, COORD_OWNER_DOWN_KEEP);
    driver_expect(route(MODEL_STATEMENT_SET, "k", NULL), MODEL_REASON_NONE);
    driver_expect_owner(&d, "k", "A");
    driver_deinit(&d);
}

Test(core_routes, locks_are_obeyed)
{
    struct model_call *call;
    uint64_t token;

    begin_with(MODEL_LOCKING_REQUIRED, COORD_OWNER_DOWN_KEEP);
    driver_expect(route(MODEL_STATEMENT_PUT, "k", NULL), MODEL_REASON_KEY_NOT_IDENTIFIED);
    token = lock(&a, "k").lock_token;
    driver_expect(route(MODEL_STATEMENT_PUT, "k", NULL), MODEL_REASON_KEY_NOT_LOCKED);

    call = new_route(MODEL_STATEMENT_SET, "k");
    call->request.route.session_id = b.id;
    call->request.route.lock_token = token;
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_KEY_NOT_LOCKED);
    call->context = NULL;
    call->request.route.session_id = a.id;
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    cr_assert(call->response.route.has_route);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_routes, session_that_is_over)
{
    struct model_call *call;

    begin();
    driver_close(&d, &a);
    call = new_route(MODEL_STATEMENT_PUT, "k");
    call->request.route.session_id = a.id;
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_SESSION_UNKNOWN);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

/* Of a key that was only SET the coordinator may forget; not once a client has its route. */
Test(core_routes, mark_is_durable_before_the_route_is_given_out)
{
    struct model_call *call;

    begin_with(MODEL_LOCKING_NONE, COORD_OWNER_DOWN_KEEP);
    driver_expect(driver_run(&d, &a, MODEL_STATEMENT_SET, "k", "v"), MODEL_REASON_NONE);
    d.auto_commit = false;
    call = new_route(MODEL_STATEMENT_READ, "k");
    driver_submit(&d, call);
    cr_assert_not(driver_is_answered(call));
    cr_assert_eq(driver_n_txns(&d), 1);
    driver_commit(&d, STORE_COMMITTED);
    cr_assert(driver_is_answered(call));
    cr_assert(call->response.route.has_route);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_routes, placement_and_mark_survive_a_restart)
{
    struct model_call *call;

    begin();
    driver_expect(route(MODEL_STATEMENT_PUT, "k", NULL), MODEL_REASON_NONE);
    driver_leave(&d, "A", incarnation);
    driver_restart(&d, true);
    call = new_route(MODEL_STATEMENT_PUT, "k");
    driver_submit(&d, call);
    driver_sleep_ms(&d, 6000);
    driver_expect(driver_reason(call), MODEL_REASON_OWNER_DOWN);
    (void)driver_free_call(call);
    driver_expect_owner(&d, "k", "A");
    driver_deinit(&d);
}

Test(core_routes, owner_down_is_forgotten_only_by_rule)
{
    begin_with(MODEL_LOCKING_NONE, COORD_OWNER_DOWN_FORGET);
    driver_expect(route(MODEL_STATEMENT_PUT, "k", NULL), MODEL_REASON_NONE);
    driver_leave(&d, "A", incarnation);
    driver_expect(route(MODEL_STATEMENT_READ, "k", NULL), MODEL_REASON_KEY_INACCESSIBLE);
    driver_expect_owner(&d, "k", "?");
    driver_deinit(&d);
}

Test(core_routes, commit_that_fails_gives_no_route)
{
    begin();
    d.outcomes[0] = STORE_FULL;
    d.n_outcomes = 1;
    driver_expect(route(MODEL_STATEMENT_PUT, "k", NULL), MODEL_REASON_DISK_FULL);
    driver_expect_owner(&d, "k", "?");
    d.outcomes[0] = STORE_UNKNOWN;
    d.n_outcomes = 1;
    driver_expect(route(MODEL_STATEMENT_PUT, "k", NULL), MODEL_REASON_STORE_ERROR);
    driver_expect(route(MODEL_STATEMENT_PUT, "k", NULL), MODEL_REASON_READ_ONLY);
    driver_deinit(&d);
}

Test(core_routes, mark_that_fails_gives_no_route)
{
    begin_with(MODEL_LOCKING_NONE, COORD_OWNER_DOWN_KEEP);
    driver_expect(driver_run(&d, &a, MODEL_STATEMENT_SET, "k", "v"), MODEL_REASON_NONE);
    d.outcomes[0] = STORE_FULL;
    d.n_outcomes = 1;
    driver_expect(route(MODEL_STATEMENT_DELETE, "k", NULL), MODEL_REASON_DISK_FULL);
    driver_expect(route(MODEL_STATEMENT_DELETE, "k", NULL), MODEL_REASON_NONE);
    driver_deinit(&d);
}

Test(core_routes, no_room_at_the_owner_takes_the_key_back)
{
    struct model_call *call;

    begin();
    call = new_route(MODEL_STATEMENT_PUT, "k");
    call->request.route.value_size = 61;
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_NO_ENTRIES);
    driver_expect_owner(&d, "k", "?");
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_routes, limits_of_the_request)
{
    char key[MODEL_KEY_MAX_CLASSIC + 2];
    struct model_call *call;

    begin();
    memset(key, 'k', sizeof(key));
    key[MODEL_KEY_MAX_CLASSIC + 1] = '\0';
    driver_expect(route(MODEL_STATEMENT_PUT, key, NULL), MODEL_REASON_KEY_TOO_LONG);
    key[MODEL_KEY_MAX_CLASSIC] = '\0';
    driver_expect(route(MODEL_STATEMENT_PUT, key, NULL), MODEL_REASON_NONE);
    driver_expect(route(MODEL_STATEMENT_PUT, "", NULL), MODEL_REASON_KEY_EMPTY);
    driver_expect(route(MODEL_STATEMENT_GET, "k", NULL), MODEL_REASON_INVALID_FIELD);
    driver_expect(route(MODEL_STATEMENT_AWAIT, "k", NULL), MODEL_REASON_INVALID_FIELD);

    call = new_route(MODEL_STATEMENT_PUT, "k");
    call->request.route.value_size = MODEL_VALUE_MAX + 1;
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_VALUE_TOO_LARGE);
    call->context = NULL;
    call->request.route.value_size = MODEL_VALUE_MAX;
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_NO_ENTRIES);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_routes, version_from_the_future)
{
    struct model_call *call;

    begin();
    call = new_route(MODEL_STATEMENT_PUT, "k");
    driver_submit(&d, call);
    call->context = NULL;
    call->request.route.min_placement_version = call->response.responder.placement_version;
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    call->context = NULL;
    call->request.route.min_placement_version++;
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_EPOCH_AHEAD);
    cr_assert_eq(call->response.code, RT_UNAVAILABLE);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

/* The Drop of a deleted key is under way: the route waits for what becomes of it. */
Test(core_routes, waits_for_a_drop)
{
    struct model_route_response before;
    struct model_call *deletion;
    struct model_call *call;

    begin();
    driver_expect(route(MODEL_STATEMENT_PUT, "k", &before), MODEL_REASON_NONE);
    deletion = driver_execute(&d, &a, MODEL_STATEMENT_PUT, "k", "v");
    (void)driver_free_call(deletion);
    d.auto_answer = false;
    deletion = driver_execute(&d, &a, MODEL_STATEMENT_DELETE, "k", NULL);
    driver_answer(&d, driver_find_call(&d, MODEL_CALL_DELETE));
    cr_assert_not_null(driver_find_call(&d, MODEL_CALL_DROP));
    call = new_route(MODEL_STATEMENT_PUT, "k");
    driver_submit(&d, call);
    cr_assert_not(driver_is_answered(call));
    driver_answer(&d, driver_find_call(&d, MODEL_CALL_DROP));
    driver_answer(&d, driver_find_call(&d, MODEL_CALL_ACTIVATE));
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    cr_assert_gt(call->response.route.route.epoch, before.route.epoch);
    (void)driver_free_call(deletion);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

/* A direct PUT came before the Drop: the owner keeps the key, and so does the table. */
Test(core_routes, drop_that_is_refused_keeps_the_route)
{
    struct model_route_response before;
    struct model_route_response after;
    struct model_call *deletion;

    begin();
    driver_expect(route(MODEL_STATEMENT_PUT, "k", &before), MODEL_REASON_NONE);
    d.auto_answer = false;
    deletion = driver_execute(&d, &a, MODEL_STATEMENT_DELETE, "k", NULL);
    driver_answer(&d, driver_find_call(&d, MODEL_CALL_DELETE));
    driver_refuse(&d, driver_find_call(&d, MODEL_CALL_DROP), MODEL_REASON_VERSION_MISMATCH);
    driver_expect(driver_reason(deletion), MODEL_REASON_NONE);
    driver_expect(route(MODEL_STATEMENT_READ, "k", &after), MODEL_REASON_NONE);
    cr_assert_eq(after.route.epoch, before.route.epoch);
    (void)driver_free_call(deletion);
    driver_deinit(&d);
}

/* ---- Lock -------------------------------------------------------------------------------------
 */

Test(core_routes, lock_of_a_new_key_has_no_route)
{
    begin();
    cr_assert_not(lock(&a, "k").has_route);
    driver_expect_owner(&d, "k", "");
    driver_deinit(&d);
}

Test(core_routes, lock_answers_value_route_and_token)
{
    struct model_lock_response got;

    begin();
    driver_expect(driver_run(&d, &a, MODEL_STATEMENT_PUT, "k", "v"), MODEL_REASON_NONE);
    got = lock(&a, "k");
    cr_assert(got.has_route);
    cr_assert_str_eq(got.route.owner, "A");
    cr_assert_eq(got.route.incarnation, incarnation);
    cr_assert(got.data.has_value);
    driver_deinit(&d);
}

Test(core_routes, lock_again_gives_the_same_token)
{
    uint64_t token;

    begin();
    token = lock(&a, "k").lock_token;
    cr_assert_eq(lock(&a, "k").lock_token, token);
    driver_deinit(&d);
}

Test(core_routes, lock_gives_a_route_only_after_the_mark)
{
    begin_with(MODEL_LOCKING_NONE, COORD_OWNER_DOWN_KEEP);
    driver_expect(driver_run(&d, &a, MODEL_STATEMENT_SET, "k", "v"), MODEL_REASON_NONE);
    cr_assert(lock(&a, "k").has_route);
    driver_leave(&d, "A", incarnation);
    driver_restart(&d, true);
    driver_expect_owner(&d, "k", "A");
    driver_deinit(&d);
}

/* Granted by a GET, which gives no route out. */
Test(core_routes, lock_of_a_holder_marks_too)
{
    struct model_call *call;

    begin_with(MODEL_LOCKING_NONE, COORD_OWNER_DOWN_KEEP);
    driver_expect(driver_run(&d, &a, MODEL_STATEMENT_SET, "k", "v"), MODEL_REASON_NONE);
    cr_assert_eq(driver_get(&d, &a, "k"), MODEL_OUTCOME_DONE);
    d.auto_commit = false;
    call = new_lock(&a, "k");
    driver_submit(&d, call);
    cr_assert_not(driver_is_answered(call));
    driver_commit(&d, STORE_COMMITTED);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    cr_assert(call->response.lock.has_route);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_routes, lock_waits_for_its_turn)
{
    struct model_call *call;
    uint64_t token;

    begin();
    token = lock(&a, "k").lock_token;
    call = new_lock(&b, "k");
    driver_submit(&d, call);
    cr_assert_not(driver_is_answered(call));
    driver_expect(unlock(&a, "k", token), MODEL_REASON_NONE);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    cr_assert_eq(call->response.lock.outcome, MODEL_OUTCOME_DONE);
    cr_assert_gt(call->response.lock.lock_token, token);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_routes, lock_without_waiting)
{
    struct model_call *call;

    begin();
    (void)lock(&a, "k");
    call = new_lock(&b, "k");
    call->request.lock.no_wait = true;
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    cr_assert_eq(call->response.lock.outcome, MODEL_OUTCOME_WAITING);
    cr_assert_str_eq(call->response.lock.holder, "esi-a");
    cr_assert_not(call->response.lock.has_route);
    cr_assert_eq(call->response.lock.lock_token, 0);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

/* The place in the queue outlives the call: the next Lock is before those that came later. */
Test(core_routes, deadline_keeps_the_place)
{
    struct driver_session c;
    struct model_call *late;
    struct model_call *second;
    struct model_call *third;
    uint64_t token;

    begin();
    c = driver_open(&d, "esi-c");
    token = lock(&a, "k").lock_token;
    late = new_lock(&b, "k");
    late->deadline_us = rt_env_now_us(&d.env.env) + 500000;
    driver_submit(&d, late);
    driver_sleep_ms(&d, 600);
    driver_expect(driver_reason(late), MODEL_REASON_DEADLINE_EXCEEDED);
    cr_assert_eq(late->response.error.applied, MODEL_APPLIED_NO);
    third = new_lock(&c, "k");
    driver_submit(&d, third);
    second = new_lock(&b, "k");
    driver_submit(&d, second);
    driver_expect(unlock(&a, "k", token), MODEL_REASON_NONE);
    cr_assert(driver_is_answered(second));
    cr_assert_not(driver_is_answered(third));
    driver_expect(unlock(&b, "k", second->response.lock.lock_token), MODEL_REASON_NONE);
    cr_assert(driver_is_answered(third));
    (void)driver_free_call(late);
    (void)driver_free_call(second);
    (void)driver_free_call(third);
    driver_deinit(&d);
}

Test(core_routes, waiting_lock_of_a_session_that_ends)
{
    struct model_call *call;

    begin();
    (void)lock(&a, "k");
    call = new_lock(&b, "k");
    driver_submit(&d, call);
    driver_close(&d, &b);
    driver_expect(driver_reason(call), MODEL_REASON_SESSION_UNKNOWN);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_routes, waiting_lock_is_cancelled)
{
    struct model_call *call;
    uint64_t token;

    begin();
    token = lock(&a, "k").lock_token;
    call = new_lock(&b, "k");
    driver_submit(&d, call);
    coord_core_cancel(d.core, call);
    driver_settle(&d);
    driver_expect(driver_reason(call), MODEL_REASON_CANCELLED);
    driver_expect(unlock(&a, "k", token), MODEL_REASON_NONE);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_routes, waiting_lock_is_drained)
{
    struct model_call *call;

    begin();
    (void)lock(&a, "k");
    call = new_lock(&b, "k");
    driver_submit(&d, call);
    coord_core_drain(d.core);
    driver_settle(&d);
    driver_expect(driver_reason(call), MODEL_REASON_DRAINING);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

/* A copy of a Lock whose client has gone on must not lock the key again. */
Test(core_routes, late_copy_of_a_lock)
{
    struct model_call *call;
    struct model_call *copy;

    begin();
    call = new_lock(&a, "k");
    call->request.lock.request_id = (struct model_request_id){a.client, 5};
    call->request.lock.done_below = 5;
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    driver_expect(unlock(&a, "k", call->response.lock.lock_token), MODEL_REASON_NONE);
    copy = new_lock(&a, "other");
    copy->request.lock.request_id = (struct model_request_id){a.client, 6};
    copy->request.lock.done_below = 6;
    driver_submit(&d, copy);
    call->context = NULL;
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_OUTCOME_UNKNOWN);
    (void)driver_free_call(copy);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

/* ---- Unlock -----------------------------------------------------------------------------------
 */

Test(core_routes, unlock_tells_the_owner_and_keeps_the_value)
{
    uint64_t token;

    begin();
    driver_expect(driver_run(&d, &a, MODEL_STATEMENT_PUT, "k", "v"), MODEL_REASON_NONE);
    token = lock(&a, "k").lock_token;
    driver_expect(driver_run(&d, &a, MODEL_STATEMENT_SET, "k", "w"), MODEL_REASON_NONE);
    cr_assert(d.keys[0].locked);
    driver_expect(unlock(&a, "k", token), MODEL_REASON_NONE);
    cr_assert_not(d.keys[0].locked);
    cr_assert_str_eq(d.keys[0].value, "w");
    cr_assert_not(d.keys[0].stored);
    driver_expect(driver_run(&d, &b, MODEL_STATEMENT_PUT, "k", "x"), MODEL_REASON_NONE);
    driver_deinit(&d);
}

Test(core_routes, unlock_again_or_with_another_token)
{
    uint64_t token;

    begin();
    token = lock(&a, "k").lock_token;
    driver_expect(unlock(&a, "k", token - 1), MODEL_REASON_NONE);
    driver_expect(unlock(&b, "k", token), MODEL_REASON_NONE);
    cr_assert_eq(driver_get(&d, &b, "k"), MODEL_OUTCOME_WAITING);
    driver_expect(unlock(&a, "k", token), MODEL_REASON_NONE);
    driver_expect(unlock(&a, "k", token), MODEL_REASON_NONE);
    driver_expect(unlock(&a, "never-seen", token), MODEL_REASON_NONE);
    cr_assert_eq(driver_get(&d, &b, "k"), MODEL_OUTCOME_DONE);
    driver_deinit(&d);
}

Test(core_routes, unlock_after_the_session)
{
    uint64_t token;

    begin();
    token = lock(&a, "k").lock_token;
    driver_close(&d, &a);
    driver_expect(unlock(&a, "k", token), MODEL_REASON_NONE);
    driver_deinit(&d);
}

Test(core_routes, unlock_of_a_bad_key)
{
    char key[MODEL_KEY_MAX_CLASSIC + 2];
    struct model_call *call;

    begin();
    memset(key, 'k', sizeof(key));
    key[MODEL_KEY_MAX_CLASSIC + 1] = '\0';
    driver_expect(unlock(&a, key + 1, 1), MODEL_REASON_NONE);
    driver_expect(unlock(&a, "", 1), MODEL_REASON_KEY_EMPTY);
    call = new_unlock(&a, key, 1);
    driver_submit(&d, call);
    driver_expect(driver_reason(call), MODEL_REASON_KEY_TOO_LONG);
    cr_assert_str_eq(call->response.error.message, "key has 41 bytes, valid are 1 to 40");
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_routes, unlock_is_durable_before_it_is_answered)
{
    struct model_call *call;
    uint64_t token;

    begin();
    token = lock(&a, "k").lock_token;
    d.auto_commit = false;
    call = new_unlock(&a, "k", token);
    driver_submit(&d, call);
    cr_assert_not(driver_is_answered(call));
    driver_commit(&d, STORE_FULL);
    driver_expect(driver_reason(call), MODEL_REASON_DISK_FULL);
    call->context = NULL;
    driver_submit(&d, call);
    driver_commit(&d, STORE_COMMITTED);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_routes, unlock_while_the_owner_is_silent)
{
    struct model_call *call;
    uint64_t token;

    begin();
    driver_expect(driver_run(&d, &a, MODEL_STATEMENT_PUT, "k", "v"), MODEL_REASON_NONE);
    token = lock(&a, "k").lock_token;
    d.auto_answer = false;
    call = new_unlock(&a, "k", token);
    driver_submit(&d, call);
    cr_assert_not(driver_is_answered(call));
    driver_lose(&d, driver_find_call(&d, MODEL_CALL_FENCE));
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    cr_assert(d.keys[0].locked);

    /* It is told until it knows. */
    d.auto_answer = true;
    driver_sleep_ms(&d, 600);
    cr_assert_not(d.keys[0].locked);
    (void)driver_free_call(call);
    driver_deinit(&d);
}

Test(core_routes, unlock_while_the_owner_is_down)
{
    uint64_t token;

    begin();
    driver_expect(driver_run(&d, &a, MODEL_STATEMENT_PUT, "k", "v"), MODEL_REASON_NONE);
    token = lock(&a, "k").lock_token;
    driver_leave(&d, "A", incarnation);
    driver_expect(unlock(&a, "k", token), MODEL_REASON_NONE);
    driver_deinit(&d);
}

Test(core_routes, unlock_of_a_deleted_key_unplaces_it)
{
    uint64_t token;

    begin();
    driver_expect(driver_run(&d, &a, MODEL_STATEMENT_PUT, "k", "v"), MODEL_REASON_NONE);
    token = lock(&a, "k").lock_token;
    driver_expect(driver_run(&d, &a, MODEL_STATEMENT_DELETE, "k", NULL), MODEL_REASON_NONE);
    driver_expect(unlock(&a, "k", token), MODEL_REASON_NONE);
    driver_sleep_ms(&d, 10);
    driver_expect_owner(&d, "k", "?");
    driver_deinit(&d);
}
