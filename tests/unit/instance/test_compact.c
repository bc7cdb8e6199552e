/*
 * Compaction that the coordinator asks for, and writes that may not compact by themselves.
 */
#include "instance/state.h"
#include "tests/unit/instance/driver.h"

TestSuite(compact, .fini = test_alloc_expect_none);

/* Ten entries of which 1, 3, 5, 7 and 9 are free; the values are of one entry each. */
static struct driver *with_holes(void)
{
    struct driver *driver = driver_new();

    driver_serve(driver);
    for (char key[2] = "a"; key[0] <= 'k'; key[0]++)
        driver_place(driver, key);
    for (char key[2] = "a"; key[0] <= 'j'; key[0]++)
        driver_expect_ok(driver, driver_set(driver, key, key, 0));
    for (char key[2] = "b"; key[0] <= 'j'; key[0] += 2)
        driver_expect_ok(driver, driver_data(driver, MODEL_CALL_DELETE, key, NULL));
    cr_assert_eq(driver->core->entries.n_free, 5);
    return driver;
}

static struct model_call *write(struct driver *driver, enum model_call_kind kind, const char *value)
{
    struct model_call *call = kind == MODEL_CALL_SET ? driver_set(driver, "k", value, 0)
                                                     : driver_data(driver, kind, "k", value);

    call->request.data.header.no_compaction = true;
    return call;
}

static struct model_call *compact(const struct driver *driver, uint64_t term, uint64_t round)
{
    struct model_call *call = model_call_new(MODEL_CALL_COMPACT);

    call->request.compact = (struct model_compact_request){
        .term = term, .incarnation = driver->incarnation, .round = round};
    return call;
}

Test(compact, d15_a_write_that_may_not_compact_is_refused_and_changes_nothing)
{
    static const enum model_call_kind kinds[] = {MODEL_CALL_SET, MODEL_CALL_PUT};

    for (size_t i = 0; i < RT_ARRAY_SIZE(kinds); i++) {
        struct driver *driver = with_holes();

        driver_expect(driver, write(driver, kinds[i], "0123456789abc"),
                      MODEL_REASON_COMPACTION_NEEDED);
        cr_assert_eq(driver->core->n_compactions, 0);
        cr_assert_eq(driver->core->entries.n_free, 5);
        driver_expect_ok(driver, write(driver, kinds[i], "fits"));
        driver_expect_value(driver, "k", "fits");
        driver_free(driver);
    }
}

Test(compact, c68_the_coordinator_asks_and_the_write_fits)
{
    struct driver *driver = with_holes();

    driver_expect(driver, write(driver, MODEL_CALL_SET, "0123456789abc"),
                  MODEL_REASON_COMPACTION_NEEDED);
    driver_expect_ok(driver, compact(driver, DRIVER_TERM, 1));
    cr_assert_eq(driver->core->n_compactions, 1);
    for (char key[2] = "a"; key[0] <= 'i'; key[0] += 2)
        driver_expect_value(driver, key, key);
    driver_expect_ok(driver, write(driver, MODEL_CALL_SET, "0123456789abc"));
    driver_expect_value(driver, "k", "0123456789abc");
    cr_assert_eq(driver->core->n_compactions, 1);
    driver_free(driver);
}

Test(compact, c68_once_a_round)
{
    struct driver *driver = with_holes();

    driver_expect_ok(driver, compact(driver, DRIVER_TERM, 2));
    driver_expect_ok(driver, compact(driver, DRIVER_TERM, 2));
    driver_expect_ok(driver, compact(driver, DRIVER_TERM, 1));
    cr_assert_eq(driver->core->n_compactions, 1);
    driver_expect_ok(driver, compact(driver, DRIVER_TERM, 3));
    cr_assert_eq(driver->core->n_compactions, 2);
    driver_expect_ok(driver, compact(driver, DRIVER_TERM + 1, 1));
    cr_assert_eq(driver->core->n_compactions, 3);
    driver_expect(driver, compact(driver, DRIVER_TERM, 4), MODEL_REASON_STALE_TERM);
    cr_assert_eq(driver->core->n_compactions, 3);
    driver_free(driver);
}

Test(compact, who_may_not_ask)
{
    struct driver *driver = with_holes();
    struct model_call *call = compact(driver, DRIVER_TERM, 1);

    call->request.compact.incarnation--;
    driver_expect(driver, call, MODEL_REASON_STALE_INCARNATION);
    call = compact(driver, DRIVER_TERM, 1);
    call->request.compact.incarnation++;
    driver_expect(driver, call, MODEL_REASON_SUPERSEDED);
    call = compact(driver, DRIVER_TERM, 1);
    call->request.compact.incarnation = 0;
    driver_expect(driver, call, MODEL_REASON_INVALID_FIELD);
    driver_expect(driver, compact(driver, DRIVER_TERM, 0), MODEL_REASON_INVALID_FIELD);
    call = compact(driver, DRIVER_TERM, 1);
    call->deadline_us = 1;
    driver_expect(driver, call, MODEL_REASON_DEADLINE_EXCEEDED);
    cr_assert_eq(driver->core->n_compactions, 0);
    driver_free(driver);
}

/* The entry of its own old value is as good as free, once the other one is moved. */
Test(compact, d15_a_value_that_needs_its_own_entries_too)
{
    struct driver *driver = driver_new();

    driver_serve(driver);
    for (char key[2] = "h"; key[0] <= 'l'; key[0]++)
        driver_place(driver, key);
    for (char key[2] = "h"; key[0] <= 'k'; key[0]++)
        driver_expect_ok(driver, driver_set(driver, key, key, 0));
    driver_expect_ok(
        driver,
        driver_set(driver, "l", "012345678901234567890123456789012345678901234567890123456789", 0));
    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_DELETE, "i", NULL));
    driver_expect(driver, write(driver, MODEL_CALL_SET, "0123456789abc"),
                  MODEL_REASON_COMPACTION_NEEDED);
    driver_expect_value(driver, "k", "k");
    driver_expect_ok(driver, compact(driver, DRIVER_TERM, 1));
    driver_expect_ok(driver, driver_set(driver, "k", "0123456789abc", 0));
    driver_expect_value(driver, "h", "h");
    driver_expect_value(driver, "j", "j");
    driver_expect_value(driver, "k", "0123456789abc");
    driver_free(driver);
}
