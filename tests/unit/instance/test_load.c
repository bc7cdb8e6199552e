/*
 * Loading a store: what is found, what is damaged, what does not fit.
 */
#include <stdlib.h>

#include "tests/unit/instance/driver.h"

TestSuite(load, .fini = test_alloc_expect_none);

/* One key with a durable value and a remembered request. */
static struct driver *stored(void)
{
    struct driver *driver = driver_new();
    struct model_call *call;

    driver_serve(driver);
    driver_place(driver, "k");
    call = driver_data(driver, MODEL_CALL_PUT, "k", "value");
    call->request.data.header.request_id = (struct model_request_id){driver->client, 1};
    driver_expect_ok(driver, call);
    driver_tell(driver, "k", DRIVER_EPOCH);
    return driver;
}

static struct model_call *repeat(struct driver *driver)
{
    struct model_call *call = driver_data(driver, MODEL_CALL_PUT, "k", "value");

    call->request.data.header.request_id = (struct model_request_id){driver->client, 1};
    return call;
}

static struct driver_row *row_of(struct driver *driver, const char *suffix)
{
    for (size_t i = 0; i < driver->n_disk; i++)
        if (driver_row_ends_with(&driver->disk[i], suffix))
            return &driver->disk[i];
    return NULL;
}

static void remove_row(struct driver *driver, const char *suffix)
{
    struct driver_row *row = row_of(driver, suffix);

    free(row->value);
    driver->n_disk--;
    memmove(row, row + 1, (size_t)(&driver->disk[driver->n_disk] - row) * sizeof(*row));
}

static void expect_lost(struct driver *driver)
{
    driver_expect(driver, driver_data(driver, MODEL_CALL_READ, "k", NULL), MODEL_REASON_KEY_LOST);
    driver_expect(driver, driver_set(driver, "k", "x", 0), MODEL_REASON_KEY_LOST);
    driver_expect(driver, driver_data(driver, MODEL_CALL_STORE, "k", NULL), MODEL_REASON_KEY_LOST);
    driver_expect(driver, driver_data(driver, MODEL_CALL_PUT, "k", "x"), MODEL_REASON_KEY_LOST);
    driver_expect(driver, driver_fence(driver, "k", 900, true), MODEL_REASON_KEY_LOST);
    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_DELETE, "k", NULL));
    driver_expect_value(driver, "k", NULL);
    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_PUT, "k", "again"));
    driver_serve(driver);
    driver_expect_value(driver, "k", "again");
}

Test(load, a_corrupt_value_is_a_lost_key_until_delete)
{
    struct driver *driver = stored();

    row_of(driver, "/v")->corrupt = true;
    driver_serve(driver);
    cr_assert_eq(driver->n_held, 1);
    cr_assert_not(driver->held[0].has_value);
    expect_lost(driver);
    driver_free(driver);
}

Test(load, a_missing_value_is_a_lost_key)
{
    struct driver *driver = stored();

    remove_row(driver, "/v");
    driver_serve(driver);
    cr_assert_not(driver->held[0].has_value);
    expect_lost(driver);
    driver_free(driver);
}

Test(load, a_corrupt_row_is_a_lost_key_whatever_the_coordinator_says)
{
    struct driver *driver = stored();

    row_of(driver, "/r")->corrupt = true;
    driver_serve(driver);
    cr_assert_eq(driver->n_held, 0);
    expect_lost(driver);
    driver_free(driver);
}

Test(load, a_value_without_its_row_is_a_lost_key)
{
    struct driver *driver = stored();

    remove_row(driver, "/r");
    driver_serve(driver);
    cr_assert_eq(driver->n_held, 0);
    expect_lost(driver);
    driver_free(driver);
}

Test(load, a_corrupt_row_may_be_dropped_or_placed_anew)
{
    for (int drop = 0; drop < 2; drop++) {
        struct driver *driver = stored();

        row_of(driver, "/r")->corrupt = true;
        driver->n_told = 0;
        driver_serve(driver);
        driver_expect(driver, driver_data(driver, MODEL_CALL_READ, "k", NULL),
                      MODEL_REASON_NOT_OWNER);
        if (drop) {
            driver_expect_ok(driver, driver_drop(driver, "k", DRIVER_EPOCH));
            cr_assert_null(row_of(driver, "/r"));
        } else {
            driver_place(driver, "k");
            driver_expect_value(driver, "k", NULL);
        }
        cr_assert_null(row_of(driver, "/v"));
        driver_free(driver);
    }
}

Test(load, a_corrupt_request_is_neither_repeated_nor_answered)
{
    struct driver *driver = stored();

    row_of(driver, "/d")->corrupt = true;
    driver_serve(driver);
    driver_expect_value(driver, "k", "value");
    driver_expect(driver, repeat(driver), MODEL_REASON_OUTCOME_UNKNOWN);
    driver_free(driver);
}

Test(load, a_corrupt_directory_row_stops)
{
    struct driver *driver = stored();

    row_of(driver, "meta")->corrupt = true;
    driver_boot(driver);
    cr_assert_eq(inst_core_state(driver->core), INST_STATE_STOPPED);
    cr_assert_eq(inst_core_failure(driver->core)->reason, MODEL_REASON_STORE_ERROR);
    driver_free(driver);
}

Test(load, rows_that_cannot_be_decoded_are_data_loss)
{
    static const char *const suffixes[] = {"meta", "/r", "/v", "/d"};
    struct driver *driver = stored();
    struct inst_core *core;

    for (size_t i = 0; i < RT_ARRAY_SIZE(suffixes); i++) {
        const struct driver_row *row = row_of(driver, suffixes[i]);

        cr_assert_eq(inst_core_new(&driver->config, &driver->env.env, &core, NULL), RT_OK);
        cr_assert_eq(inst_core_load(core, rt_bytes_of(row->key, row->key_size),
                                    RT_BYTES_LITERAL("\x63"), NULL),
                     RT_DATA_LOSS);
        cr_assert_eq(inst_core_load(core, RT_BYTES_LITERAL("z"), RT_BYTES_LITERAL(""), NULL),
                     RT_DATA_LOSS);
        inst_core_load_corrupt(core, RT_BYTES_LITERAL("z"));
        (void)inst_core_free(core);
    }
    driver_free(driver);
}

Test(load, another_instances_directory)
{
    struct driver *driver = stored();
    const struct driver_row *row = row_of(driver, "meta");
    struct inst_core *core;

    driver->config.name[0] = 'b';
    cr_assert_eq(inst_core_new(&driver->config, &driver->env.env, &core, NULL), RT_OK);
    cr_assert_eq(inst_core_load(core, rt_bytes_of(row->key, row->key_size),
                                rt_bytes_of(row->value, row->value_size), NULL),
                 RT_FAILED_PRECONDITION);
    (void)inst_core_free(core);
    driver_free(driver);
}

Test(load, no_memory)
{
    struct driver *driver = stored();
    struct inst_core *core;

    cr_assert_eq(inst_core_new(&driver->config, &driver->env.env, &core, NULL), RT_OK);
    for (size_t i = 0; i < driver->n_disk; i++) {
        const struct driver_row *row = &driver->disk[i];
        size_t failures = test_alloc_failures();

        for (size_t countdown = 0;; countdown++) {
            enum rt_code code;

            test_alloc_fail_after(countdown, 1);
            code = inst_core_load(core, rt_bytes_of(row->key, row->key_size),
                                  rt_bytes_of(row->value, row->value_size), NULL);
            if (code == RT_OK)
                break;
            cr_assert_eq(code, RT_RESOURCE_EXHAUSTED);
            failures++;
        }
        test_alloc_fail_never();
        cr_assert_eq(test_alloc_failures(), failures);
    }
    (void)inst_core_free(core);
    test_alloc_fail_after(0, 1);
    cr_assert_eq(inst_core_new(&driver->config, &driver->env.env, &core, NULL),
                 RT_RESOURCE_EXHAUSTED);
    test_alloc_fail_never();
    driver_free(driver);
}

Test(load, values_that_do_not_fit_any_more_stay_in_the_store)
{
    struct driver *driver = stored();

    driver_place(driver, "l");
    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_PUT, "l", "0123456789012345"));
    driver->config.entries_total = 1;
    driver_tell(driver, "k", DRIVER_EPOCH);
    driver_tell(driver, "l", DRIVER_EPOCH);
    driver_serve(driver);
    driver_expect_value(driver, "k", "value");
    driver_expect_value(driver, "l", "0123456789012345");
    driver_free(driver);
}

Test(load, requests_of_a_dropped_row_are_removed)
{
    struct driver *driver = stored();

    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_DELETE, "k", NULL));
    driver_expect_ok(driver, driver_drop(driver, "k", DRIVER_EPOCH));
    cr_assert_eq(driver_count(driver, "/d"), 1, "the crash comes before the pruning");
    driver->n_told = 0;
    driver_serve(driver);
    cr_assert_eq(driver->n_held, 0);
    test_env_advance_ms(&driver->env, 1000);
    driver_tick(driver);
    driver_commit_all(driver);
    cr_assert_eq(driver_count(driver, "/d"), 0);
    driver_free(driver);
}

Test(load, requests_of_an_earlier_epoch_are_removed)
{
    struct driver *driver = stored();
    struct model_call *call;

    driver_expect_ok(driver, driver_activate(driver, "k", DRIVER_EPOCH + 1));
    driver->told[0].epoch = DRIVER_EPOCH + 1;
    driver_serve(driver);
    test_env_advance_ms(&driver->env, 1000);
    driver_tick(driver);
    driver_commit_all(driver);
    cr_assert_eq(driver_count(driver, "/d"), 0);
    call = repeat(driver);
    call->request.data.header.epoch = DRIVER_EPOCH + 1;
    call->request.data.header.first_epoch = DRIVER_EPOCH;
    driver_expect(driver, call, MODEL_REASON_OUTCOME_UNKNOWN);
    driver_free(driver);
}
