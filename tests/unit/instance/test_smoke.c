/*
 * The way of a core from its start to serving, and one key's life.
 */
#include "tests/unit/instance/driver.h"

TestSuite(smoke, .fini = test_alloc_expect_none);

Test(smoke, registers_reconciles_renews_and_serves_a_key)
{
    struct driver *driver = driver_new();
    struct model_call *call;

    driver_serve(driver);
    driver_place(driver, "k");
    driver_expect_value(driver, "k", NULL);

    call = driver_submit(driver, driver_fence(driver, "k", 60, true));
    cr_assert_eq(driver_n_txns(driver), 1);
    cr_assert_not(driver_is_answered(driver, call));
    driver_commit_all(driver);
    cr_assert_not(call->response.data.has_value);
    driver_finish_ok(driver, call);

    call = driver_submit(driver, driver_set(driver, "k", "hello", 60));
    cr_assert_eq(driver_n_txns(driver), 0, "a SET after a grant needs no transaction");
    cr_assert_eq(call->response.data.version.seq, 1);
    cr_assert_not(call->response.data.stored);
    driver_finish_ok(driver, call);
    driver_expect_value(driver, "k", "hello");

    call = driver_data(driver, MODEL_CALL_STORE, "k", NULL);
    call->request.data.header.lock_token = 60;
    (void)driver_submit(driver, call);
    driver_commit_all(driver);
    cr_assert(call->response.data.stored);
    driver_finish_ok(driver, call);

    driver_expect(driver, driver_set(driver, "k", "again", 60), MODEL_REASON_KEY_NOT_LOCKED);
    driver_expect_ok(driver, driver_fence(driver, "k", 60, false));

    driver_tell(driver, "k", DRIVER_EPOCH);
    driver_serve(driver);
    cr_assert_eq(driver->n_held, 1);
    cr_assert(driver->held[0].has_value);
    driver_expect_value(driver, "k", "hello");
    driver_free(driver);
}
