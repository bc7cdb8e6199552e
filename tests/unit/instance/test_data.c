/*
 * SET, STORE, PUT, READ, DELETE through the core: what they change, when they need a transaction,
 * and what they refuse.
 */
#include "tests/unit/instance/driver.h"

TestSuite(data, .fini = test_alloc_expect_none);

static struct driver *serving(const char *key)
{
    struct driver *driver = driver_new();

    driver_serve(driver);
    driver_place(driver, key);
    return driver;
}

static struct model_call *with_token(struct model_call *call, uint64_t token)
{
    call->request.data.header.lock_token = token;
    return call;
}

Test(data, the_first_set_without_a_lock_makes_dirty_durable_once)
{
    struct driver *driver = serving("k");
    struct model_call *call = driver_submit(driver, driver_set(driver, "k", "v", 0));

    cr_assert_eq(driver_n_txns(driver), 1);
    cr_assert_not(driver_is_answered(driver, call));
    driver_commit_all(driver);
    driver_finish_ok(driver, call);
    call = driver_submit(driver, driver_set(driver, "k", "w", 0));
    cr_assert_eq(driver_n_txns(driver), 0);
    cr_assert_eq(call->response.data.version.epoch, DRIVER_EPOCH);
    cr_assert_eq(call->response.data.version.incarnation, driver->incarnation);
    cr_assert_eq(call->response.data.version.seq, 2);
    cr_assert_eq(call->response.data.entries_free, 9);
    driver_finish_ok(driver, call);
    driver_expect_value(driver, "k", "w");
    driver_free(driver);
}

Test(data, set_allocates_nothing_once_it_is_warm)
{
    struct driver *driver = serving("k");
    struct model_call *call = driver_set(driver, "k", "v", 0);
    size_t before;

    driver_expect_ok(driver, driver_set(driver, "k", "v", 0));
    before = test_alloc_total();
    (void)driver_submit(driver, call);
    cr_assert_eq(test_alloc_total(), before);
    driver_finish_ok(driver, call);
    driver_free(driver);
}

Test(data, post_check_of_set)
{
    struct driver *driver = serving("k");
    struct model_call *call;

    driver_expect_ok(driver, driver_set(driver, "k", "v", 0));
    driver->step_us = DRIVER_FENCE_US / 2 + 1;
    call = driver_submit(driver, driver_set(driver, "k", "w", 0));
    driver->step_us = 0;
    cr_assert_eq(call->response.code, RT_ABORTED);
    cr_assert_eq(call->response.error.applied, MODEL_APPLIED_MAYBE);
    driver_finish(driver, call, MODEL_REASON_OUTCOME_UNKNOWN);
    driver_free(driver);
}

Test(data, post_check_of_a_linearizable_read)
{
    struct driver *driver = serving("k");

    driver->step_us = DRIVER_FENCE_US / 2 + 1;
    driver_expect(driver, driver_data(driver, MODEL_CALL_READ, "k", NULL),
                  MODEL_REASON_LEASE_EXPIRED);
    driver_free(driver);
}

Test(data, post_check_of_store_between_submit_and_commit)
{
    static const enum model_call_kind kinds[] = {MODEL_CALL_STORE, MODEL_CALL_PUT,
                                                 MODEL_CALL_DELETE};

    for (size_t i = 0; i < RT_ARRAY_SIZE(kinds); i++) {
        for (int late = 0; late < 2; late++) {
            struct driver *driver = serving("k");
            struct model_call *call = driver_data(driver, kinds[i], "k", "v");

            (void)driver_submit(driver, call);
            test_env_advance_us(&driver->env, DRIVER_FENCE_US - 1 + (uint64_t)late);
            driver_commit(driver, STORE_COMMITTED);
            if (late)
                driver_finish(driver, call, MODEL_REASON_OUTCOME_UNKNOWN);
            else
                driver_finish_ok(driver, call);
            driver_free(driver);
        }
    }
}

Test(data, store_makes_the_value_durable_and_spends_the_token)
{
    struct driver *driver = serving("k");
    struct model_call *call;

    driver_expect_ok(driver, driver_fence(driver, "k", 60, true));
    driver_expect_ok(driver, driver_set(driver, "k", "hello", 60));
    cr_assert_null(driver_find(driver, "k/v"));
    call = driver_submit(driver, with_token(driver_data(driver, MODEL_CALL_STORE, "k", NULL), 60));
    driver_commit_all(driver);
    cr_assert(call->response.data.stored);
    cr_assert_eq(call->response.data.version.seq, 2);
    cr_assert_eq(call->response.data.entries_free, 9, "C10: STORE frees no entries");
    driver_finish_ok(driver, call);
    cr_assert_eq(driver_find(driver, "k/v")->value_size, 25 + 5);
    driver_expect(driver, driver_set(driver, "k", "x", 60), MODEL_REASON_KEY_NOT_LOCKED);
    driver_expect(driver, with_token(driver_data(driver, MODEL_CALL_STORE, "k", NULL), 60),
                  MODEL_REASON_KEY_NOT_LOCKED);
    driver_expect_ok(driver, driver_set(driver, "k", "free", 0));
    driver_expect_value(driver, "k", "free");
    driver_free(driver);
}

Test(data, store_without_a_value_spends_the_token_only)
{
    struct driver *driver = serving("k");

    driver_expect_ok(driver, driver_fence(driver, "k", 60, true));
    driver_expect_ok(driver, with_token(driver_data(driver, MODEL_CALL_STORE, "k", NULL), 60));
    cr_assert_null(driver_find(driver, "k/v"));
    driver_expect_value(driver, "k", NULL);
    driver_expect(driver, driver_set(driver, "k", "x", 60), MODEL_REASON_KEY_NOT_LOCKED);
    driver_free(driver);
}

Test(data, put_is_visible_only_after_its_commit)
{
    struct driver *driver = serving("k");
    struct model_call *read;
    struct model_call *put;

    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_PUT, "k", "old"));
    put = driver_submit(driver, driver_data(driver, MODEL_CALL_PUT, "k", "new"));
    read = driver_data(driver, MODEL_CALL_READ, "k", NULL);
    read->request.data.consistency = MODEL_READ_STALE_OK;
    (void)driver_submit(driver, read);
    cr_assert(rt_bytes_equal(read->response.data.value, RT_BYTES_LITERAL("old")));
    driver_finish_ok(driver, read);
    read = driver_submit(driver, driver_data(driver, MODEL_CALL_READ, "k", NULL));
    cr_assert_not(driver_is_answered(driver, read), "waits behind the transaction");
    driver_commit_all(driver);
    driver_finish_ok(driver, put);
    cr_assert(rt_bytes_equal(read->response.data.value, RT_BYTES_LITERAL("new")));
    cr_assert(read->response.data.stored);
    driver_finish_ok(driver, read);
    driver_free(driver);
}

Test(data, if_version)
{
    struct driver *driver = serving("k");
    struct model_call *call = driver_data(driver, MODEL_CALL_PUT, "k", "v");
    struct model_version version;

    call->request.data.has_if_version = true;
    driver_expect_ok(driver, call);
    call = driver_submit(driver, driver_data(driver, MODEL_CALL_READ, "k", NULL));
    version = call->response.data.version;
    driver_finish_ok(driver, call);
    for (int right = 0; right < 2; right++) {
        for (int i = 0; i < 2; i++) {
            call = driver_data(driver, i ? MODEL_CALL_DELETE : MODEL_CALL_PUT, "k", "w");
            call->request.data.has_if_version = true;
            call->request.data.if_version = version;
            call->request.data.if_version.seq += right ? (uint64_t)i : 7;
            if (right)
                driver_expect_ok(driver, call);
            else
                driver_expect(driver, call, MODEL_REASON_VERSION_MISMATCH);
        }
    }
    driver_expect_value(driver, "k", NULL);
    driver_free(driver);
}

Test(data, delete_removes_value_and_entries_and_seq_goes_on)
{
    struct driver *driver = serving("k");
    struct model_call *call;

    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_PUT, "k", "v"));
    call = driver_submit(driver, driver_data(driver, MODEL_CALL_DELETE, "k", NULL));
    driver_commit_all(driver);
    cr_assert_eq(call->response.data.version.epoch, 0, "no value, no version");
    cr_assert_eq(call->response.data.entries_free, 10);
    driver_finish_ok(driver, call);
    cr_assert_null(driver_find(driver, "k/v"));
    cr_assert_not_null(driver_find(driver, "k/r"));
    call = driver_submit(driver, driver_data(driver, MODEL_CALL_PUT, "k", "v"));
    driver_commit_all(driver);
    cr_assert_eq(call->response.data.version.seq, 3);
    driver_finish_ok(driver, call);
    driver_free(driver);
}

Test(data, c62_no_entries_names_the_figures_and_changes_nothing)
{
    struct driver *driver = serving("k");
    struct model_call *call;
    char big[102];

    memset(big, 'x', 100);
    big[100] = '\0';
    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_PUT, "k", big));
    driver_expect_value(driver, "k", big);
    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_PUT, "k", "small"));
    driver_place(driver, "l");
    driver_expect_ok(driver, driver_set(driver, "l", "v", 0));
    memset(big, 'x', 101);
    big[101] = '\0';
    call = driver_submit(driver, driver_set(driver, "l", big, 0));
    cr_assert_eq(call->response.code, RT_RESOURCE_EXHAUSTED);
    cr_assert_eq(call->response.error.applied, MODEL_APPLIED_NO);
    cr_assert_str_eq(call->response.error.message,
                     "11 entries needed of 10, 8 free, 2 that could be evicted");
    driver_finish(driver, call, MODEL_REASON_NO_ENTRIES);
    call = driver_set(driver, "l", big, 0);
    call->request.data.header.request_id = (struct model_request_id){driver->client, 1};
    driver_expect(driver, call, MODEL_REASON_NO_ENTRIES);
    driver_expect(driver, driver_data(driver, MODEL_CALL_PUT, "l", big), MODEL_REASON_NO_ENTRIES);
    driver_expect_value(driver, "l", "v");
    driver_expect_value(driver, "k", "small");
    driver_free(driver);
}

Test(data, c51_set_shrinking_frees_the_tail)
{
    struct driver *driver = serving("k");
    struct model_call *call;

    driver_expect_ok(driver, driver_set(driver, "k", "012345678901234567890", 0));
    call = driver_submit(driver, driver_set(driver, "k", "01234567890123456789", 0));
    cr_assert_eq(call->response.data.entries_free, 8);
    driver_finish_ok(driver, call);
    driver_expect_value(driver, "k", "01234567890123456789");
    driver_free(driver);
}

Test(data, a_failed_put_gives_its_reservation_back)
{
    struct driver *driver = serving("k");
    struct model_call *call;

    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_PUT, "k", "v"));
    call = driver_submit(driver, driver_data(driver, MODEL_CALL_PUT, "k", "0123456789abc"));
    driver_commit(driver, STORE_FULL);
    driver_finish(driver, call, MODEL_REASON_DISK_FULL);
    call = driver_submit(driver, driver_data(driver, MODEL_CALL_READ, "k", NULL));
    cr_assert_eq(call->response.data.entries_free, 9);
    driver_finish_ok(driver, call);
    driver_expect_value(driver, "k", "v");
    driver_free(driver);
}

static struct model_call *store_after(struct driver *driver, uint64_t epoch, uint64_t incarnation,
                                      uint64_t seq)
{
    struct model_call *call = driver_data(driver, MODEL_CALL_STORE, "k", NULL);

    call->request.data.has_last_set = true;
    call->request.data.last_set = (struct model_version){epoch, incarnation, seq};
    return call;
}

Test(data, set_lost_tells_what_this_life_knows)
{
    struct driver *driver = serving("k");

    driver_expect_ok(driver, driver_set(driver, "k", "v", 0));
    driver_expect(driver, store_after(driver, DRIVER_EPOCH, driver->incarnation, 2),
                  MODEL_REASON_SET_LOST);
    driver_expect(driver, store_after(driver, DRIVER_EPOCH, driver->incarnation - 1, 1),
                  MODEL_REASON_SET_LOST);
    driver_expect(driver, store_after(driver, DRIVER_EPOCH - 1, driver->incarnation, 1),
                  MODEL_REASON_SET_LOST);
    driver_expect_ok(driver, store_after(driver, DRIVER_EPOCH, driver->incarnation, 1));
    driver_free(driver);
}

Test(data, c27_crash_before_store_is_set_lost_and_after_it_is_not)
{
    struct driver *driver = serving("k");
    uint64_t first = driver->incarnation;

    driver_expect_ok(driver, driver_set(driver, "k", "stored", 0));
    driver_expect_ok(driver, store_after(driver, DRIVER_EPOCH, first, 1));
    driver_tell(driver, "k", DRIVER_EPOCH);
    driver_serve(driver);
    driver_expect_value(driver, "k", "stored");
    driver_expect_ok(driver, store_after(driver, DRIVER_EPOCH, first, 1));
    driver_expect_ok(driver, driver_set(driver, "k", "volatile", 0));
    driver_serve(driver);
    driver_expect(driver, store_after(driver, DRIVER_EPOCH, first + DRIVER_INCARNATION, 4),
                  MODEL_REASON_SET_LOST);
    driver_expect_value(driver, "k", "stored");
    driver_expect_ok(driver, driver_set(driver, "k", "new", 0));
    driver_free(driver);
}

Test(data, lost_sets_are_said_once)
{
    struct driver *driver = serving("k");
    struct model_call *call;

    driver_expect_ok(driver, driver_set(driver, "k", "v", 0));
    driver_tell(driver, "k", DRIVER_EPOCH);
    driver_serve(driver);
    for (int i = 0; i < 2; i++) {
        call = driver_submit(driver, driver_data(driver, MODEL_CALL_READ, "k", NULL));
        cr_assert_eq(call->response.data.sets_lost, i == 0);
        cr_assert_not(call->response.data.has_value);
        driver_finish_ok(driver, call);
    }
    driver_free(driver);
}

Test(data, a_stale_read_hears_of_lost_sets_and_leaves_the_word_to_the_next_access)
{
    struct driver *driver = serving("k");
    struct model_call *call;

    driver_expect_ok(driver, driver_set(driver, "k", "v", 0));
    driver_tell(driver, "k", DRIVER_EPOCH);
    driver_serve(driver);
    for (int i = 0; i < 2; i++) {
        call = driver_data(driver, MODEL_CALL_READ, "k", NULL);
        call->request.data.consistency = MODEL_READ_STALE_OK;
        call = driver_submit(driver, call);
        cr_assert(call->response.data.sets_lost);
        driver_finish_ok(driver, call);
    }
    call = driver_submit(driver, driver_data(driver, MODEL_CALL_READ, "k", NULL));
    cr_assert(call->response.data.sets_lost);
    driver_finish_ok(driver, call);
    driver_free(driver);
}

Test(data, no_sets_lost_after_store_or_put)
{
    struct driver *driver = serving("k");
    struct model_call *call;

    driver_expect_ok(driver, driver_set(driver, "k", "v", 0));
    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_PUT, "k", "w"));
    driver_tell(driver, "k", DRIVER_EPOCH);
    driver_serve(driver);
    call = driver_submit(driver, driver_data(driver, MODEL_CALL_READ, "k", NULL));
    cr_assert_not(call->response.data.sets_lost);
    driver_finish_ok(driver, call);
    driver_free(driver);
}

/* ---- errors say what to do ---- */

Test(data, errors_carry_key_epochs_and_hint)
{
    struct driver *driver = serving("k");
    struct model_call *call = driver_set(driver, "k", "v", 0);
    const struct model_error *error = &call->response.error;

    call->request.data.header.epoch = DRIVER_EPOCH - 1;
    (void)driver_submit(driver, call);
    cr_assert(rt_bytes_equal(error->key, RT_BYTES_LITERAL("k")));
    cr_assert_eq(error->request_epoch, DRIVER_EPOCH - 1);
    cr_assert_eq(error->current_epoch, DRIVER_EPOCH);
    cr_assert(error->has_hint);
    cr_assert_str_eq(error->hint.name, "a");
    cr_assert_str_eq(error->hint.address, "a:1");
    cr_assert_eq(error->hint.incarnation, driver->incarnation);
    cr_assert_eq(error->hint.epoch, DRIVER_EPOCH);
    cr_assert(error->refresh_required);
    cr_assert_eq(call->response.responder.term, DRIVER_TERM);
    driver_finish(driver, call, MODEL_REASON_STALE_EPOCH);

    call = driver_set(driver, "other", "v", 0);
    (void)driver_submit(driver, call);
    cr_assert_not(call->response.error.has_hint);
    cr_assert(call->response.error.refresh_required);
    driver_finish(driver, call, MODEL_REASON_NOT_OWNER);

    test_env_advance_us(&driver->env, DRIVER_FENCE_US);
    call = driver_submit(driver, driver_set(driver, "k", "v", 0));
    cr_assert_gt(call->response.error.retry_after_ms, 0);
    driver_finish(driver, call, MODEL_REASON_LEASE_EXPIRED);
    driver_free(driver);
}

Test(data, no_memory_for_the_answer_of_a_read)
{
    struct driver *driver = serving("k");
    struct model_call *call = driver_data(driver, MODEL_CALL_READ, "k", NULL);

    driver_expect_ok(driver, driver_set(driver, "k", "v", 0));
    test_alloc_fail_after(0, 1);
    driver_expect(driver, call, MODEL_REASON_LIMIT_REACHED);
    test_alloc_fail_never();
    driver_expect_value(driver, "k", "v");
    driver_free(driver);
}

/* ---- repeated requests ---- */

static struct model_call *with_id(struct driver *driver, struct model_call *call, uint64_t seq)
{
    call->request.data.header.request_id =
        (struct model_request_id){.client = driver->client, .seq = seq};
    return call;
}

Test(data, a_repeated_set_changes_nothing_and_gets_the_first_answer)
{
    struct driver *driver = serving("k");
    struct model_call *call;

    driver_expect_ok(driver, with_id(driver, driver_set(driver, "k", "first", 0), 1));
    driver_expect_ok(driver, with_id(driver, driver_set(driver, "k", "second", 0), 2));
    call = driver_submit(driver, with_id(driver, driver_set(driver, "k", "first", 0), 1));
    cr_assert(call->response.data.replayed);
    cr_assert_eq(call->response.data.version.seq, 1);
    driver_finish_ok(driver, call);
    driver_expect_value(driver, "k", "second");
    driver_free(driver);
}

Test(data, a_repeated_request_joins_the_one_in_flight)
{
    struct driver *driver = serving("k");
    struct model_call *first;
    struct model_call *second;

    first =
        driver_submit(driver, with_id(driver, driver_data(driver, MODEL_CALL_PUT, "k", "v"), 1));
    second =
        driver_submit(driver, with_id(driver, driver_data(driver, MODEL_CALL_PUT, "k", "v"), 1));
    cr_assert_eq(driver_n_txns(driver), 1);
    driver_commit(driver, STORE_COMMITTED);
    cr_assert_eq(driver_n_txns(driver), 0);
    cr_assert_not(first->response.data.replayed);
    driver_finish_ok(driver, first);
    cr_assert(second->response.data.replayed);
    cr_assert_eq(second->response.data.version.seq, 1);
    driver_finish_ok(driver, second);
    driver_free(driver);
}

Test(data, a_request_that_failed_is_not_remembered)
{
    struct driver *driver = serving("k");
    struct model_call *call;

    call = driver_submit(driver, with_id(driver, driver_data(driver, MODEL_CALL_PUT, "k", "v"), 1));
    driver_commit(driver, STORE_FULL);
    driver_finish(driver, call, MODEL_REASON_DISK_FULL);
    call = driver_submit(driver, with_id(driver, driver_data(driver, MODEL_CALL_PUT, "k", "v"), 1));
    driver_commit(driver, STORE_COMMITTED);
    cr_assert_not(call->response.data.replayed);
    driver_finish_ok(driver, call);
    driver_free(driver);
}

Test(data, durable_requests_are_remembered_across_a_restart_with_the_sets_before_them)
{
    struct driver *driver = serving("k");
    struct model_call *call;

    driver_expect_ok(driver, with_id(driver, driver_set(driver, "k", "one", 0), 1));
    driver_expect_ok(driver, with_id(driver, driver_data(driver, MODEL_CALL_PUT, "k", "two"), 2));
    cr_assert_eq(driver_count(driver, "/d"), 2);
    driver_expect_ok(driver, with_id(driver, driver_set(driver, "k", "three", 0), 3));
    driver_tell(driver, "k", DRIVER_EPOCH);
    driver_serve(driver);
    for (uint64_t seq = 1; seq <= 2; seq++) {
        call = driver_submit(driver, with_id(driver, driver_set(driver, "k", "again", 0), seq));
        cr_assert(call->response.data.replayed);
        driver_finish_ok(driver, call);
    }
    driver_expect_value(driver, "k", "two");
    call = driver_submit(driver, with_id(driver, driver_set(driver, "k", "three", 0), 3));
    cr_assert_not(call->response.data.replayed, "it was lost with its effect");
    driver_finish_ok(driver, call);
    driver_free(driver);
}

Test(data, requests_that_left_no_value_are_remembered_across_a_restart_too)
{
    struct driver *driver = serving("k");
    struct model_call *call;

    driver_expect_ok(driver, with_id(driver, driver_data(driver, MODEL_CALL_STORE, "k", NULL), 1));
    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_PUT, "k", "old"));
    driver_expect_ok(driver, with_id(driver, driver_data(driver, MODEL_CALL_DELETE, "k", NULL), 2));
    driver_tell(driver, "k", DRIVER_EPOCH);
    driver_serve(driver);
    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_PUT, "k", "new"));
    for (uint64_t seq = 1; seq <= 2; seq++) {
        call = with_id(driver, driver_data(driver, MODEL_CALL_DELETE, "k", NULL), seq);
        call = driver_submit(driver, call);
        cr_assert(call->response.data.replayed);
        cr_assert_not(call->response.data.has_value);
        cr_assert_eq(call->response.data.version.epoch, 0);
        driver_finish_ok(driver, call);
    }
    driver_expect_value(driver, "k", "new");
    driver_free(driver);
}

Test(data, done_below_prunes_memory_at_once_and_the_disk_later)
{
    struct driver *driver = serving("k");
    struct model_call *call;

    for (uint64_t seq = 1; seq <= 3; seq++)
        driver_expect_ok(driver,
                         with_id(driver, driver_data(driver, MODEL_CALL_PUT, "k", "v"), seq));
    cr_assert_eq(driver_count(driver, "/d"), 3);
    call = with_id(driver, driver_data(driver, MODEL_CALL_PUT, "k", "w"), 4);
    call->request.data.header.done_below = 3;
    driver_expect_ok(driver, call);
    driver_expect(driver, with_id(driver, driver_data(driver, MODEL_CALL_PUT, "k", "x"), 2),
                  MODEL_REASON_OUTCOME_UNKNOWN);
    test_env_advance_ms(&driver->env, 1000);
    driver_tick(driver);
    driver_commit_all(driver);
    cr_assert_eq(driver_count(driver, "/d"), 2);
    driver_expect_value(driver, "k", "w");
    driver_free(driver);
}

Test(data, too_many_volatile_requests_are_written_without_their_values)
{
    struct driver *driver = serving("k");
    size_t n_txns = 0;

    driver_expect_ok(driver, driver_set(driver, "k", "v", 0));
    for (uint64_t seq = 1; seq <= 4097; seq++) {
        struct model_call *call =
            driver_submit(driver, with_id(driver, driver_set(driver, "k", "v", 0), seq));

        n_txns += driver_n_txns(driver);
        cr_assert_eq(n_txns, seq == 4097, "at %llu", (unsigned long long)seq);
        driver_commit_all(driver);
        driver_finish_ok(driver, call);
    }
    cr_assert_eq(driver_count(driver, "/d"), 4096);
    cr_assert_null(driver_find(driver, "k/v"));
    driver_free(driver);
}

Test(data, no_memory_to_remember_refuses_before_anything_changes)
{
    struct driver *driver = serving("k");

    driver_expect_ok(driver, driver_set(driver, "k", "v", 0));
    for (int put = 0; put < 2; put++) {
        struct model_call *call = with_id(driver,
                                          driver_data(driver, put ? MODEL_CALL_PUT : MODEL_CALL_SET,
                                                      "k", "a value of three entries"),
                                          1);

        /* A PUT has its transaction by then. */
        test_alloc_fail_after(put, 1);
        driver_expect(driver, call, MODEL_REASON_LIMIT_REACHED);
        test_alloc_fail_never();
    }
    driver_expect_value(driver, "k", "v");
    driver_expect_ok(driver, with_id(driver, driver_set(driver, "k", "w", 0), 1));
    driver_free(driver);
}
