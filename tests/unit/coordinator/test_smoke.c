#include "tests/unit/coordinator/driver.h"

TestSuite(core, .fini = test_alloc_expect_none);

Test(core, smoke)
{
    struct driver d;
    struct driver_session s;
    struct model_call *call;

    driver_init(&d);
    driver_restart(&d, false);
    cr_assert(coord_core_is_serving(d.core));
    (void)driver_join(&d, "A", 1);
    (void)driver_join(&d, "B", 1);
    s = driver_open(&d, "esi1");
    cr_assert_eq(driver_get(&d, &s, "k"), MODEL_OUTCOME_DONE);
    driver_expect_owner(&d, "k", "");
    driver_expect(driver_run(&d, &s, MODEL_STATEMENT_SET, "k", "v"), MODEL_REASON_NONE);
    driver_expect_owner(&d, "k", "A");
    driver_expect(driver_run(&d, &s, MODEL_STATEMENT_STORE, "k", NULL), MODEL_REASON_NONE);
    driver_expect(driver_run(&d, &s, MODEL_STATEMENT_SET, "k", "v"), MODEL_REASON_KEY_NOT_LOCKED);
    cr_assert_eq(driver_get(&d, &s, "k"), MODEL_OUTCOME_DONE);
    driver_expect(driver_run(&d, &s, MODEL_STATEMENT_DELETE, "k", NULL), MODEL_REASON_NONE);
    call = driver_execute(&d, &s, MODEL_STATEMENT_READ, "k", NULL);
    driver_expect(driver_reason(call), MODEL_REASON_NONE);
    cr_assert_not(call->response.execute.data.has_value);
    (void)driver_free_call(call);
    driver_close(&d, &s);
    driver_expect_owner(&d, "k", "?");
    driver_deinit(&d);
}
