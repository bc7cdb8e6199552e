/*
 * ListEntries: what is told of each entry, pages, and that nothing changes.
 */
#include "instance/state.h"
#include "tests/unit/instance/driver.h"

TestSuite(listing, .fini = test_alloc_expect_none);

static struct driver *serving(uint64_t n_entries)
{
    struct driver *driver = driver_new();

    driver->config.entries_total = n_entries;
    driver->config.policy = INST_POLICY_LRU;
    driver_serve(driver);
    for (char key[2] = "a"; key[0] <= 'd'; key[0]++)
        driver_place(driver, key);
    return driver;
}

static void set(struct driver *driver, const char *key, const char *value)
{
    driver_expect_ok(driver, driver_set(driver, key, value, 0));
}

static struct model_call *list(struct driver *driver, uint32_t first, uint32_t page_size)
{
    struct model_call *call = model_call_new(MODEL_CALL_LIST_ENTRIES);

    call->request.list_entries.first_index = first;
    call->request.list_entries.page_size = page_size;
    return driver_submit(driver, call);
}

static void expect_entry(const struct model_entry_info *entry, uint32_t index, const char *key,
                         uint64_t offset, uint64_t bytes_used, bool is_atomic)
{
    cr_assert_eq(entry->index, index);
    cr_assert(rt_bytes_equal(entry->key, rt_bytes_of_string(key)), "index %u", index);
    cr_assert_eq(entry->offset, offset, "index %u", index);
    cr_assert_eq(entry->bytes_used, bytes_used, "index %u", index);
    cr_assert_eq(entry->atomic, is_atomic, "index %u", index);
}

Test(listing, entries_are_listed)
{
    struct driver *driver = serving(10);
    const struct model_list_entries_response *page;
    struct model_call *put_d;
    struct model_call *call;

    set(driver, "a", "");
    set(driver, "b", "gone");
    set(driver, "c", "012345678901234567890");
    driver_expect_ok(driver, driver_data(driver, MODEL_CALL_DELETE, "b", NULL));
    put_d = driver_submit(driver, driver_data(driver, MODEL_CALL_PUT, "d", "0123456789a"));
    call = list(driver, 0, 0);
    page = &call->response.list_entries;
    cr_assert_eq(page->n_entries, 6);
    cr_assert_not(page->more);
    expect_entry(&page->entries[0], 0, "a", 0, 0, true);
    expect_entry(&page->entries[1], 2, "c", 0, 10, false);
    expect_entry(&page->entries[2], 3, "c", 10, 10, false);
    expect_entry(&page->entries[3], 4, "c", 20, 1, false);
    expect_entry(&page->entries[4], 5, "d", 0, 0, false);
    expect_entry(&page->entries[5], 6, "d", 0, 0, false);
    cr_assert_eq(page->entries_free, 4);
    cr_assert_eq(page->entries_total, 10);
    cr_assert_eq(page->entry_size, 10);
    cr_assert_eq(page->pointer, 0);
    driver_finish_ok(driver, call);
    driver_commit_all(driver);
    driver_finish_ok(driver, put_d);
    driver_free(driver);
}

Test(listing, entries_are_listed_page_by_page)
{
    struct driver *driver = serving(10);
    struct model_call *call;

    set(driver, "a", "012345678901234567890");
    call = list(driver, 0, 2);
    cr_assert_eq(call->response.list_entries.n_entries, 2);
    cr_assert(call->response.list_entries.more);
    driver_finish_ok(driver, call);
    call = list(driver, 2, 2);
    cr_assert_eq(call->response.list_entries.n_entries, 1);
    cr_assert_not(call->response.list_entries.more);
    expect_entry(&call->response.list_entries.entries[0], 2, "a", 20, 1, false);
    driver_finish_ok(driver, call);
    call = list(driver, UINT32_MAX, MODEL_PAGE_MAX);
    cr_assert_eq(call->response.list_entries.n_entries, 0);
    driver_finish_ok(driver, call);
    driver_finish(driver, list(driver, 0, MODEL_PAGE_MAX + 1), MODEL_REASON_INVALID_FIELD);
    driver_free(driver);
}

Test(listing, listing_entries_is_no_use_of_them)
{
    struct driver *driver = serving(2);

    set(driver, "a", "1");
    set(driver, "b", "2");
    driver_finish_ok(driver, list(driver, 0, 1));
    set(driver, "c", "3");
    cr_assert_eq(inst_rows_find(&driver->core->rows, RT_BYTES_LITERAL("a"))->run.n, 0);
    driver_free(driver);
}

Test(listing, entries_without_memory_for_the_page)
{
    struct driver *driver = serving(2);
    struct model_call *call = model_call_new(MODEL_CALL_LIST_ENTRIES);

    set(driver, "a", "1");
    call->arena.limit = 1;
    driver_finish(driver, driver_submit(driver, call), MODEL_REASON_LIMIT_REACHED);
    driver_free(driver);
}
