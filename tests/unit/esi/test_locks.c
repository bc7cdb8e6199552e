/*
 * Remembered locks: what each statement means for its key, and how many are kept.
 */
#include "esi-client/locks.h"

#include <stdio.h>

#include "tests/support/check.h"

TestSuite(locks, .fini = test_alloc_expect_none);

static struct esi_locks locks;

static void note(enum model_statement_kind kind, const char *key, uint64_t token)
{
    struct model_version version = {.epoch = 1, .incarnation = 1, .seq = token};

    esi_locks_note(&locks, kind, rt_bytes_of_string(key), token, &version);
}

static struct esi_lock_state of(const char *key)
{
    return esi_locks_find(&locks, rt_bytes_of_string(key));
}

static const char *name(size_t number)
{
    static char text[32];

    (void)snprintf(text, sizeof(text), "key-%zu", number);
    return text;
}

Test(locks, a_token_stays_when_its_lock_is_released)
{
    note(MODEL_STATEMENT_GET, "k", 7);
    note(MODEL_STATEMENT_SET, "k", 1);
    cr_assert(of("k").held && of("k").has_last_set);
    note(MODEL_STATEMENT_STORE, "k", 0);
    cr_assert_eq(of("k").token, 7);
    cr_assert_not(of("k").held || of("k").has_last_set);
    note(MODEL_STATEMENT_PUT, "k", 0); /* released already */
    cr_assert_eq(of("k").token, 7);
    note(MODEL_STATEMENT_GET, "k", 9);
    cr_assert(of("k").held);
    cr_assert_eq(of("k").token, 9);
    cr_assert_eq(of("other").token, 0);
    esi_locks_deinit(&locks);
}

Test(locks, released_ones_at_the_limit_and_past_it)
{
    note(MODEL_STATEMENT_GET, "held", 1);
    for (size_t i = 0; i < ESI_LOCKS_RELEASED_MAX; i++) {
        note(MODEL_STATEMENT_GET, name(i), 100 + i);
        note(MODEL_STATEMENT_STORE, name(i), 0);
    }
    cr_assert_eq(of(name(0)).token, 100);
    cr_assert_eq(of(name(1)).token, 101);
    /* Locked again, and the first to go is another. */
    note(MODEL_STATEMENT_GET, name(0), 7);
    note(MODEL_STATEMENT_STORE, name(0), 0);
    cr_assert_eq(of(name(1)).token, 101);
    note(MODEL_STATEMENT_GET, "one more", 8);
    cr_assert_eq(of(name(1)).token, 101);
    note(MODEL_STATEMENT_PUT, "one more", 0);
    cr_assert_eq(of(name(1)).token, 0);
    cr_assert_eq(of(name(2)).token, 102);
    cr_assert_eq(of(name(0)).token, 7);
    cr_assert_eq(of("held").token, 1);
    cr_assert(of("held").held);
    esi_locks_deinit(&locks);
}

Test(locks, forgotten_and_lost)
{
    note(MODEL_STATEMENT_GET, "a", 1);
    note(MODEL_STATEMENT_GET, "b", 2);
    note(MODEL_STATEMENT_STORE, "b", 0);
    esi_locks_forget(&locks, RT_BYTES_LITERAL("b"), 1);
    cr_assert_eq(of("b").token, 2);
    esi_locks_forget(&locks, RT_BYTES_LITERAL("b"), 2);
    cr_assert_eq(of("b").token, 0);
    esi_locks_lose_all(&locks);
    cr_assert(of("a").lost && !of("a").held);
    note(MODEL_STATEMENT_GET, "a", 3);
    cr_assert(!of("a").lost && of("a").held);
    esi_locks_deinit(&locks);
}
