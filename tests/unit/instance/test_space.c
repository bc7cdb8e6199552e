/*
 * Room for values: order of a placement that does not fit, replacement, compaction, and values that
 * are in the store only. Ten entries of ten bytes, or eight as in the course's cases.
 */
#include "instance/state.h"
#include "tests/unit/instance/driver.h"

TestSuite(space, .fini = test_alloc_expect_none);

/* A serving instance that owns keys "a" to "j". */
static struct driver *serving(uint64_t n_entries, enum inst_policy policy)
{
    struct driver *driver = driver_new();

    driver->config.entries_total = n_entries;
    driver->config.policy = policy;
    driver_serve(driver);
    for (char key[2] = "a"; key[0] <= 'j'; key[0]++)
        driver_place(driver, key);
    return driver;
}

static void set(struct driver *driver, const char *key, const char *value)
{
    driver_expect_ok(driver, driver_set(driver, key, value, 0));
}

static void put(struct driver *driver, const char *key, const char *value)
{
    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_PUT, key, value));
}

/* The contents of all entries, '|' between them, "." for a free one. */
static const char *map_of(const struct driver *driver)
{
    static char text[512];
    const struct inst_core *core = driver->core;
    size_t size = 0;

    for (uint64_t at = 0; at < core->entries.total;) {
        const struct inst_row *row = core->owners[at];
        uint64_t n = row ? row->run.n : 1;

        for (uint64_t i = 0; i < n; i++) {
            size_t from = i * core->entries.entry_size;
            int n_bytes = !row ? 1
                          : row->size - from < core->entries.entry_size
                              ? (int)(row->size - from)
                              : (int)core->entries.entry_size;

            size += (size_t)snprintf(
                text + size, sizeof(text) - size, "%s%.*s", at + i == 0 ? "" : "|", n_bytes,
                row ? (const char *)core->entries.slab + (at + i) * core->entries.entry_size : ".");
        }
        at += n;
    }
    return text;
}

static bool is_in_memory(struct driver *driver, const char *key)
{
    return inst_rows_find(&driver->core->rows, rt_bytes_of_string(key))->run.n > 0;
}

/* ---- the course's cases ---- */

/* As many entries, in the same order, as ESI_MultiReemplazo. */
Test(space, c56_c59_circ)
{
    struct driver *driver = serving(8, INST_POLICY_CIRC);

    set(driver, "a", "Pampa");
    set(driver, "b", "Patagonia!");
    set(driver, "c", "Andes07");
    set(driver, "d", "CataratasDelIguazu1");
    set(driver, "e", "PerezMoreno");
    set(driver, "e", "PerezMoreno2");
    set(driver, "f", "Sur");
    cr_assert_str_eq(map_of(driver),
                     "Pampa|Patagonia!|Andes07|CataratasD|elIguazu1|PerezMoren|o2|Sur");
    set(driver, "c", "Andes1234");
    cr_assert(is_in_memory(driver, "a"), "C59: nothing was replaced yet");
    set(driver, "g", "Rio");
    cr_assert_not(is_in_memory(driver, "a"), "C59");
    cr_assert_eq(driver->core->replacement.pointer, 1);
    set(driver, "c", "Andes123");
    set(driver, "h", "Quebrada");
    set(driver, "g", "Mar");
    set(driver, "i", "Lago");
    cr_assert_str_eq(map_of(driver), "Mar|Quebrada|Lago|CataratasD|elIguazu1|PerezMoren|o2|Sur");
    driver_expect_value(driver, "a", "Pampa");
    driver_expect_value(driver, "b", "Patagonia!");
    driver_expect_value(driver, "c", "Andes123");
    driver_free(driver);
}

/* As many entries, in the same order, as ESI_Compactador1. */
Test(space, c66_compaction_before_any_replacement)
{
    struct driver *driver = serving(8, INST_POLICY_CIRC);

    set(driver, "a", "CerroFitzRoyElChalten1");
    set(driver, "b", "SalinasGrandes1");
    set(driver, "c", "ValleDeLaLunaIschigualasto");
    cr_assert_eq(driver->core->entries.n_free, 0);
    set(driver, "a", "CerroFitzRoy1234");
    set(driver, "c", "ValleDeLaLuna123");
    cr_assert_str_eq(map_of(driver), "CerroFitzR|oy1234|.|SalinasGra|ndes1|ValleDeLaL|una123|.");
    set(driver, "d", "QuebradaHumahuaca");
    cr_assert_str_eq(map_of(driver),
                     "CerroFitzR|oy1234|SalinasGra|ndes1|ValleDeLaL|una123|QuebradaHu|mahuaca");
    cr_assert_eq(driver->core->replacement.pointer, 0);
    driver_expect_value(driver, "b", "SalinasGrandes1");
    driver_free(driver);
}

Test(space, c60_two_victims)
{
    struct driver *driver = serving(3, INST_POLICY_CIRC);

    set(driver, "a", "1");
    set(driver, "b", "2");
    set(driver, "c", "0123456789012345678901234");
    cr_assert_str_eq(map_of(driver), "0123456789|0123456789|01234");
    cr_assert_not(is_in_memory(driver, "a"));
    cr_assert_not(is_in_memory(driver, "b"));
    driver_expect_value(driver, "a", "1");
    driver_expect_value(driver, "b", "2");
    driver_free(driver);
}

Test(space, d12_c61_c62_nothing_is_evicted_for_a_value_that_cannot_fit)
{
    struct driver *driver = serving(5, INST_POLICY_CIRC);
    struct model_call *call;

    set(driver, "a", "012345678901");
    set(driver, "b", "012345678901");
    set(driver, "c", "atom");
    driver_expect(driver, driver_set(driver, "d", "012345678901", 0), MODEL_REASON_NO_ENTRIES);
    cr_assert(is_in_memory(driver, "c"), "one victim would not be enough");
    driver_expect(driver, driver_data(driver, MODEL_CALL_PUT, "d", "012345678901"),
                  MODEL_REASON_NO_ENTRIES);
    driver_expect(driver,
                  driver_set(driver, "d", "012345678901234567890123456789012345678901234567890", 0),
                  MODEL_REASON_NO_ENTRIES);
    call = driver_activate(driver, "new", DRIVER_EPOCH);
    call->request.activate.value_size = 12;
    driver_expect(driver, call, MODEL_REASON_NO_ENTRIES);
    call = driver_activate(driver, "new", DRIVER_EPOCH);
    call->request.activate.value_size = 10;
    driver_expect_ok(driver, call);
    cr_assert(is_in_memory(driver, "c"));
    set(driver, "d", "x");
    cr_assert_not(is_in_memory(driver, "c"));
    driver_free(driver);
}

Test(space, c52_growth_rejected_leaves_the_old_value)
{
    struct driver *driver = driver_new();

    driver->config.growth = INST_GROWTH_REJECT;
    driver_serve(driver);
    driver_place(driver, "a");
    set(driver, "a", "01234567890");
    driver_expect(driver, driver_set(driver, "a", "012345678901234567890", 0),
                  MODEL_REASON_NO_ENTRIES);
    driver_expect(driver, driver_data(driver, MODEL_CALL_PUT, "a", "012345678901234567890"),
                  MODEL_REASON_NO_ENTRIES);
    driver_expect_value(driver, "a", "01234567890");
    set(driver, "a", "01234567890123456789");
    set(driver, "a", "x");
    driver_expect(driver, driver_set(driver, "a", "01234567890", 0), MODEL_REASON_NO_ENTRIES);
    driver_expect_value(driver, "a", "x");
    driver_free(driver);
}

Test(space, d11_growth_relocates_also_where_only_the_own_entries_make_it_fit)
{
    struct driver *driver = serving(4, INST_POLICY_CIRC);

    set(driver, "a", "1");
    set(driver, "b", "01234567890");
    set(driver, "a", "abcdefghijk");
    cr_assert_str_eq(map_of(driver), "0123456789|0|abcdefghij|k");
    driver_expect_value(driver, "a", "abcdefghijk");
    driver_expect_value(driver, "b", "01234567890");
    driver_free(driver);
}

Test(space, c64_a_hole_is_taken_before_anything_is_replaced)
{
    struct driver *driver = serving(3, INST_POLICY_CIRC);

    set(driver, "a", "1");
    set(driver, "b", "2");
    set(driver, "c", "3");
    set(driver, "d", "4");
    cr_assert_eq(driver->core->replacement.pointer, 1);
    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_DELETE, "b", NULL));
    set(driver, "e", "5");
    cr_assert_str_eq(map_of(driver), "4|5|3");
    cr_assert_eq(driver->core->replacement.pointer, 1);
    driver_free(driver);
}

Test(space, c65_lru_counts_set_and_store_and_no_read)
{
    struct driver *driver = serving(3, INST_POLICY_LRU);

    set(driver, "a", "1");
    set(driver, "b", "2");
    set(driver, "c", "3");
    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_STORE, "a", NULL));
    driver_expect_value(driver, "b", "2");
    set(driver, "d", "4");
    cr_assert_not(is_in_memory(driver, "b"), "a was STOREd, reading b is no use");
    set(driver, "e", "5");
    cr_assert_not(is_in_memory(driver, "c"));
    driver_free(driver);
}

Test(space, bsu_evicts_the_largest)
{
    struct driver *driver = serving(3, INST_POLICY_BSU);

    set(driver, "a", "1");
    set(driver, "b", "22222");
    set(driver, "c", "333");
    set(driver, "d", "4");
    cr_assert_str_eq(map_of(driver), "1|4|333");
    driver_free(driver);
}

/* ---- values that are in the store only ---- */

Test(space, a_durable_value_is_not_written_again)
{
    struct driver *driver = serving(1, INST_POLICY_CIRC);
    struct model_call *call;

    put(driver, "a", "durable");
    set(driver, "b", "1"); /* its row says dirty from now on */
    set(driver, "a", "durable");
    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_STORE, "a", NULL));
    call = driver_submit(driver, driver_set(driver, "b", "2", 0));
    cr_assert(driver_is_answered(driver, call), "a goes at once");
    driver_finish_ok(driver, call);
    cr_assert_null(driver_find(driver, "a/s"));
    call = driver_submit(driver, driver_data(driver, MODEL_CALL_READ, "a", NULL));
    cr_assert_not(driver_is_answered(driver, call));
    driver_commit_all(driver);
    cr_assert(call->response.data.stored);
    driver_finish_ok(driver, call);
    driver_free(driver);
}

Test(space, rule_14_a_set_value_goes_only_after_its_spill_has_committed)
{
    struct driver *driver = serving(1, INST_POLICY_CIRC);
    struct model_call *call;

    set(driver, "b", "0");
    set(driver, "a", "volatile");
    cr_assert_not_null(driver_find(driver, "b/s"));
    call = driver_submit(driver, driver_set(driver, "b", "1", 0));
    cr_assert_not(driver_is_answered(driver, call));
    cr_assert_eq(driver_n_txns(driver), 1);
    cr_assert(is_in_memory(driver, "a"));
    driver_commit(driver, STORE_COMMITTED);
    driver_finish_ok(driver, call);
    cr_assert_not(is_in_memory(driver, "a"));
    cr_assert_not_null(driver_find(driver, "a/s"));
    cr_assert_null(driver_find(driver, "a/v"));

    call = driver_submit(driver, driver_data(driver, MODEL_CALL_READ, "a", NULL));
    driver_commit_all(driver);
    cr_assert_not(call->response.data.stored);
    cr_assert(call->response.data.has_value);
    driver_finish_ok(driver, call);
    driver_free(driver);
}

Test(space, rule_14_a_spill_that_fails_evicts_nothing)
{
    static const enum store_outcome outcomes[] = {STORE_FULL, STORE_UNKNOWN};
    static const enum model_reason reasons[] = {MODEL_REASON_DISK_FULL, MODEL_REASON_STORE_ERROR};

    for (size_t i = 0; i < 2; i++) {
        struct driver *driver = serving(1, INST_POLICY_CIRC);
        struct model_call *call;

        put(driver, "b", "0");
        set(driver, "a", "volatile");
        set(driver, "a", "volatile2");
        call = driver_submit(driver, driver_data(driver, MODEL_CALL_PUT, "b", "1"));
        driver_commit(driver, outcomes[i]);
        cr_assert_eq(call->response.error.applied, MODEL_APPLIED_NO);
        driver_finish(driver, call, reasons[i]);
        cr_assert(is_in_memory(driver, "a"));
        driver_expect_value(driver, "a", "volatile2");
        driver_expect_value(driver, "b", "0");
        cr_assert(rt_list_is_empty(&driver->core->space));
        cr_assert_eq(driver->core->n_leaving, 0);
        driver_free(driver);
    }
}

Test(space, what_waits_for_entries_is_checked_again)
{
    struct driver *driver = serving(1, INST_POLICY_CIRC);
    struct model_call *late;
    struct model_call *gone;

    set(driver, "b", "0");
    set(driver, "a", "volatile");
    gone = driver_submit(driver, driver_set(driver, "b", "1", 0));
    late = driver_set(driver, "c", "2", 0);
    late->deadline_us = driver->env.now_us + 1000;
    (void)driver_submit(driver, late);
    inst_core_cancel(driver->core, gone);
    driver->env.now_us += 1000;
    driver_commit_all(driver);
    driver_finish(driver, gone, MODEL_REASON_CANCELLED);
    driver_finish(driver, late, MODEL_REASON_DEADLINE_EXCEEDED);
    driver_expect_value(driver, "a", "volatile");
    driver_expect_value(driver, "b", "0");
    driver_free(driver);
}

Test(space, operations_on_one_key_keep_their_order_while_one_waits_for_entries)
{
    struct driver *driver = serving(2, INST_POLICY_CIRC);
    struct model_call *first;
    struct model_call *second;
    struct model_call *read;

    set(driver, "c", "0");
    set(driver, "a", "1");
    set(driver, "b", "2");
    first = driver_submit(driver, driver_set(driver, "c", "0123456789abc", 0));
    second = driver_submit(driver, driver_set(driver, "c", "x", 0));
    read = driver_submit(driver, driver_data(driver, MODEL_CALL_READ, "c", NULL));
    cr_assert_not(driver_is_answered(driver, second));
    driver_commit_all(driver);
    driver_finish_ok(driver, first);
    driver_finish_ok(driver, second);
    cr_assert(rt_bytes_equal(read->response.data.value, RT_BYTES_LITERAL("x")));
    driver_finish_ok(driver, read);
    driver_free(driver);
}

Test(space, who_came_first_gets_the_entries)
{
    struct driver *driver = serving(2, INST_POLICY_CIRC);
    struct model_call *large;
    struct model_call *small;

    set(driver, "c", "0");
    set(driver, "d", "0");
    set(driver, "a", "1");
    set(driver, "b", "2");
    large = driver_submit(driver, driver_set(driver, "c", "0123456789abc", 0));
    small = driver_submit(driver, driver_set(driver, "d", "x", 0));
    driver_finish(driver, small, MODEL_REASON_NO_ENTRIES);
    driver_commit(driver, STORE_COMMITTED);
    cr_assert_not(driver_is_answered(driver, large), "one entry of two");
    driver_commit(driver, STORE_COMMITTED);
    driver_finish_ok(driver, large);
    driver_expect_value(driver, "c", "0123456789abc");
    driver_free(driver);
}

Test(space, a_value_with_a_transaction_in_flight_is_waited_for)
{
    struct driver *driver = serving(1, INST_POLICY_CIRC);
    struct model_call *put_a;
    struct model_call *set_b;

    set(driver, "b", "0");
    put(driver, "a", "1");
    put_a = driver_submit(driver, driver_data(driver, MODEL_CALL_PUT, "a", "2"));
    set_b = driver_submit(driver, driver_set(driver, "b", "3", 0));
    cr_assert_not(driver_is_answered(driver, set_b));
    cr_assert_eq(driver_n_txns(driver), 1);
    driver_commit_all(driver);
    driver_finish_ok(driver, put_a);
    driver_finish_ok(driver, set_b);
    driver_expect_value(driver, "a", "2");
    driver_expect_value(driver, "b", "3");
    driver_free(driver);
}

Test(space, a_compaction_takes_reserved_entries_along)
{
    struct driver *driver = serving(8, INST_POLICY_LRU);
    struct model_call *call;

    put(driver, "a", "A");
    put(driver, "b", "B");
    put(driver, "c", "0123456789abc");
    put(driver, "d", "D");
    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_DELETE, "a", NULL));
    call = driver_submit(driver, driver_data(driver, MODEL_CALL_PUT, "d", "0123456789def"));
    cr_assert_eq(driver->core->entries.n_free, 3);
    set(driver, "e", "abcdefghijklmnopqrstuv");
    driver_commit_all(driver);
    driver_finish_ok(driver, call);
    driver_expect_value(driver, "b", "B");
    driver_expect_value(driver, "c", "0123456789abc");
    driver_expect_value(driver, "d", "0123456789def");
    driver_expect_value(driver, "e", "abcdefghijklmnopqrstuv");
    driver_free(driver);
}

Test(space, store_and_fence_read_back)
{
    struct driver *driver = serving(1, INST_POLICY_CIRC);
    struct model_call *call;

    set(driver, "a", "volatile");
    set(driver, "b", "other");
    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_STORE, "a", NULL));
    cr_assert_not_null(driver_find(driver, "a/v"));
    cr_assert_null(driver_find(driver, "a/s"));
    call = driver_submit(driver, driver_fence(driver, "a", 5, true));
    driver_commit_all(driver);
    cr_assert(rt_bytes_equal(call->response.data.value, RT_BYTES_LITERAL("volatile")));
    cr_assert(call->response.data.stored);
    driver_finish_ok(driver, call);
    driver_free(driver);
}

Test(space, what_is_read_back_takes_entries_that_are_free)
{
    struct driver *driver = serving(1, INST_POLICY_CIRC);

    set(driver, "a", "volatile");
    set(driver, "b", "other");
    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_DELETE, "b", NULL));
    driver_expect_value(driver, "a", "volatile");
    cr_assert(is_in_memory(driver, "a"));
    set(driver, "b", "again");
    driver_expect_value(driver, "a", "volatile");
    driver_free(driver);
}

Test(space, a_later_process_knows_nothing_of_a_spilled_set)
{
    struct driver *driver = serving(1, INST_POLICY_CIRC);
    struct model_call *call;

    put(driver, "a", "durable");
    set(driver, "a", "volatile");
    set(driver, "b", "other");
    cr_assert_not_null(driver_find(driver, "a/s"));
    driver_tell(driver, "a", DRIVER_EPOCH);
    driver_serve(driver);
    call = driver_submit(driver, driver_data(driver, MODEL_CALL_READ, "a", NULL));
    cr_assert(call->response.data.sets_lost);
    cr_assert(rt_bytes_equal(call->response.data.value, RT_BYTES_LITERAL("durable")));
    driver_finish_ok(driver, call);
    put(driver, "a", "new");
    cr_assert_null(driver_find(driver, "a/s"), "what was left goes with the next transaction");
    driver_free(driver);
}

Test(space, drop_takes_the_spilled_value_along)
{
    struct driver *driver = serving(1, INST_POLICY_CIRC);

    set(driver, "a", "volatile");
    set(driver, "b", "other");
    driver_expect(driver, driver_drop(driver, "a", DRIVER_EPOCH), MODEL_REASON_VERSION_MISMATCH);
    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_DELETE, "a", NULL));
    cr_assert_null(driver_find(driver, "a/s"));
    driver_expect_value(driver, "a", NULL);
    driver_expect_ok(driver, driver_drop(driver, "a", DRIVER_EPOCH));
    driver_free(driver);
}

Test(space, a_durable_value_that_cannot_be_read_back_is_a_lost_key)
{
    struct driver *driver = serving(1, INST_POLICY_CIRC);
    struct model_call *call;

    put(driver, "a", "durable");
    put(driver, "b", "other");
    driver_find(driver, "a/v")->corrupt = true;
    call = driver_submit(driver, driver_data(driver, MODEL_CALL_READ, "a", NULL));
    driver_commit_all(driver);
    driver_finish(driver, call, MODEL_REASON_KEY_LOST);
    driver_expect(driver, driver_set(driver, "a", "x", 0), MODEL_REASON_KEY_LOST);
    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_DELETE, "a", NULL));
    put(driver, "a", "again");
    driver_expect_value(driver, "a", "again");
    driver_free(driver);
}

Test(space, a_fence_whose_value_is_lost_may_have_been_applied)
{
    struct driver *driver = serving(1, INST_POLICY_CIRC);
    struct model_call *call;

    put(driver, "a", "durable");
    put(driver, "b", "other");
    driver_find(driver, "a/v")->corrupt = true;
    call = driver_submit(driver, driver_fence(driver, "a", 5, true));
    driver_commit_all(driver);
    cr_assert_eq(call->response.error.applied, MODEL_APPLIED_MAYBE);
    driver_finish(driver, call, MODEL_REASON_KEY_LOST);
    driver_free(driver);
}

Test(space, a_spilled_set_that_cannot_be_read_back_is_said)
{
    struct driver *driver = serving(1, INST_POLICY_CIRC);
    struct model_call *call;

    put(driver, "a", "durable");
    set(driver, "a", "volatile");
    set(driver, "b", "other");
    driver_find(driver, "a/s")->corrupt = true;
    call = driver_submit(driver, driver_data(driver, MODEL_CALL_READ, "a", NULL));
    driver_commit_all(driver);
    cr_assert(call->response.data.sets_lost);
    cr_assert(rt_bytes_equal(call->response.data.value, RT_BYTES_LITERAL("durable")));
    driver_finish_ok(driver, call);

    set(driver, "c", "only set");
    set(driver, "b", "other");
    driver_find(driver, "c/s")->corrupt = true;
    call = driver_submit(driver, driver_data(driver, MODEL_CALL_READ, "c", NULL));
    driver_commit_all(driver);
    cr_assert(call->response.data.sets_lost);
    cr_assert_not(call->response.data.has_value);
    driver_finish_ok(driver, call);
    driver_free(driver);
}

Test(space, a_read_back_that_fails_is_an_error)
{
    struct driver *driver = serving(1, INST_POLICY_CIRC);
    struct model_call *call;

    put(driver, "a", "durable");
    put(driver, "b", "other");
    call = driver_submit(driver, driver_data(driver, MODEL_CALL_READ, "a", NULL));
    driver_commit(driver, STORE_UNKNOWN);
    cr_assert_eq(call->response.error.applied, MODEL_APPLIED_NO);
    driver_finish(driver, call, MODEL_REASON_STORE_ERROR);
    driver_expect_value(driver, "a", "durable");
    driver_free(driver);
}

Test(space, a_value_that_an_unknown_commit_may_have_replaced_is_not_told)
{
    struct driver *driver = serving(1, INST_POLICY_CIRC);
    struct model_call *call;
    struct driver_row *row;

    put(driver, "a", "durable");
    put(driver, "b", "other");
    call = driver_submit(driver, driver_data(driver, MODEL_CALL_STORE, "a", NULL));
    driver_commit(driver, STORE_COMMITTED);
    driver_commit(driver, STORE_UNKNOWN);
    driver_finish(driver, call, MODEL_REASON_STORE_ERROR);
    row = driver_find(driver, "a/v");
    row->value[24]++; /* it was applied: the last byte of the version's seq */
    call = driver_submit(driver, driver_data(driver, MODEL_CALL_READ, "a", NULL));
    driver_commit_all(driver);
    cr_assert_eq(call->response.error.applied, MODEL_APPLIED_NO);
    driver_finish(driver, call, MODEL_REASON_STORE_ERROR);
    row->value[24]--;
    driver_expect_value(driver, "a", "durable");
    driver_free(driver);
}

Test(space, a_stale_read_waits_for_the_value_too)
{
    struct driver *driver = serving(1, INST_POLICY_CIRC);
    struct model_call *first;
    struct model_call *second;

    put(driver, "a", "durable");
    put(driver, "b", "other");
    first = driver_data(driver, MODEL_CALL_READ, "a", NULL);
    second = driver_data(driver, MODEL_CALL_READ, "a", NULL);
    first->request.data.consistency = MODEL_READ_STALE_OK;
    second->request.data.consistency = MODEL_READ_STALE_OK;
    (void)driver_submit(driver, first);
    (void)driver_submit(driver, second);
    cr_assert_not(driver_is_answered(driver, second));
    driver_commit_all(driver);
    cr_assert(rt_bytes_equal(second->response.data.value, RT_BYTES_LITERAL("durable")));
    driver_finish_ok(driver, first);
    driver_finish_ok(driver, second);
    driver_free(driver);
}
