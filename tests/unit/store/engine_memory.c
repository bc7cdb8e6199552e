/*
 * The memory engine for the conformance suite. Reopening is closing and opening a copy.
 */
#include <criterion/criterion.h>

#include "runtime/store/memory.h"
#include "tests/unit/store/harness.h"

static struct store *saved; /* owned; what the "disk" holds */

static struct store *open_memory(store_done_cb on_done, void *ctx, bool is_small)
{
    struct store *store = store_memory_new(on_done, ctx);

    if (is_small)
        store_memory_set_capacity(store, SMALL_STORE_BYTES);
    return store;
}

static void drive(struct store *store)
{
    /* A store that is being closed is gone after this, so the copy comes first. */
    saved = store_memory_free(saved);
    saved = store_memory_clone(store, NULL, NULL);
    (void)store_memory_step(store, 1);
}

static struct store *reopen(store_done_cb on_done, void *ctx)
{
    return store_memory_clone(saved, on_done, ctx);
}

static struct store *corrupt(struct store *store, struct rt_bytes key)
{
    cr_assert(store_memory_corrupt(store, key));
    return store;
}

static void clean_up(void)
{
    saved = store_memory_free(saved);
}

const struct engine engine = {
    .is_durable = false,
    .open = open_memory,
    .drive = drive,
    .reopen = reopen,
    .corrupt = corrupt,
    .clean_up = clean_up,
};
