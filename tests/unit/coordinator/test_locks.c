/*
 * The rules by which a statement may touch a key, as a table.
 */
#include "coordinator/locks.h"

#include "runtime/base/alloc.h"
#include "tests/support/check.h"
#include "tests/support/fake_env.h"

TestSuite(locks, .fini = test_alloc_expect_none);

enum key_state {
    UNKNOWN,
    FREE,  /* newest token 10 */
    MINE,  /* token 10 */
    OTHER, /* token 10 */
};

struct rule {
    enum model_locking locking;
    enum key_state state;
    enum model_statement_kind kind;
    uint64_t lock_token;
    enum model_reason reason;
    uint64_t token;
};

#define R(locking, state, kind, given, reason, token)                                              \
    {                                                                                              \
        MODEL_LOCKING_##locking, state, MODEL_STATEMENT_##kind, given, MODEL_REASON_##reason,      \
            token                                                                                  \
    }

static const struct rule rules[] = {
    R(REQUIRED, UNKNOWN, SET, 0, KEY_NOT_IDENTIFIED, 0),
    R(REQUIRED, UNKNOWN, STORE, 0, KEY_NOT_IDENTIFIED, 0),
    R(REQUIRED, UNKNOWN, PUT, 0, KEY_NOT_IDENTIFIED, 0),
    R(REQUIRED, UNKNOWN, DELETE, 0, KEY_NOT_IDENTIFIED, 0),
    R(REQUIRED, FREE, SET, 0, KEY_NOT_LOCKED, 0),
    R(REQUIRED, FREE, PUT, 0, KEY_NOT_LOCKED, 0),
    R(REQUIRED, OTHER, STORE, 0, KEY_NOT_LOCKED, 0),
    R(REQUIRED, OTHER, DELETE, 0, KEY_NOT_LOCKED, 0),
    R(REQUIRED, MINE, SET, 0, NONE, 10),
    R(REQUIRED, MINE, STORE, 10, NONE, 10),
    R(OPTIONAL, UNKNOWN, SET, 0, KEY_NOT_IDENTIFIED, 0),
    R(OPTIONAL, UNKNOWN, STORE, 0, KEY_NOT_IDENTIFIED, 0),
    R(OPTIONAL, UNKNOWN, PUT, 0, NONE, 0),
    R(OPTIONAL, UNKNOWN, DELETE, 0, KEY_NOT_IDENTIFIED, 0),
    R(OPTIONAL, FREE, SET, 0, NONE, 0),
    R(OPTIONAL, OTHER, SET, 0, KEY_NOT_LOCKED, 0),
    R(OPTIONAL, OTHER, PUT, 0, KEY_NOT_LOCKED, 0),
    R(OPTIONAL, MINE, PUT, 0, NONE, 10),
    R(NONE, UNKNOWN, SET, 0, NONE, 0),
    R(NONE, UNKNOWN, PUT, 0, NONE, 0),
    R(NONE, UNKNOWN, STORE, 0, KEY_NOT_IDENTIFIED, 0),
    R(NONE, OTHER, SET, 0, NONE, 0),
    R(NONE, MINE, SET, 0, NONE, 10),
    /* A token that is given is a claim, whatever the policy. */
    R(REQUIRED, FREE, SET, 10, KEY_NOT_LOCKED, 0),
    R(REQUIRED, FREE, SET, 9, LOCK_FENCED, 0),
    R(REQUIRED, OTHER, SET, 9, LOCK_FENCED, 0),
    R(REQUIRED, OTHER, SET, 10, KEY_NOT_LOCKED, 0),
    R(REQUIRED, MINE, SET, 9, LOCK_FENCED, 0),
    R(REQUIRED, MINE, SET, 11, KEY_NOT_LOCKED, 0),
    R(OPTIONAL, FREE, PUT, 10, KEY_NOT_LOCKED, 0),
    R(NONE, OTHER, SET, 9, LOCK_FENCED, 0),
    R(REQUIRED, UNKNOWN, SET, 9, KEY_NOT_IDENTIFIED, 0),
};

static void check_rule(const struct rule *rule, size_t i)
{
    static struct coord_session me;
    static struct coord_session other;
    struct coord_key *key = rt_xalloc(sizeof(*key) + 1);
    struct coord_key_extra *extra = coord_keys_obtain_extra(key);
    struct coord_lock_check check;

    key->exists = rule->state != UNKNOWN;
    key->newest_token = key->exists ? 10 : 0;
    if (rule->state == MINE || rule->state == OTHER) {
        extra->holder = rule->state == MINE ? &me : &other;
        extra->token = 10;
    }
    check = coord_locks_check(rule->locking, key, &me, rule->kind, rule->lock_token);
    cr_assert_eq(check.reason, rule->reason, "rule %zu: %s", i, model_reason_name(check.reason));
    if (check.reason == MODEL_REASON_NONE) {
        cr_assert_eq(check.token, rule->token, "rule %zu", i);
        cr_assert_eq(check.is_holder, rule->state == MINE, "rule %zu", i);
    }
    (void)rt_free(extra);
    (void)rt_free(key);
}

Test(locks, rules)
{
    for (size_t i = 0; i < RT_ARRAY_SIZE(rules); i++)
        check_rule(&rules[i], i);
}

Test(locks, a_key_that_is_not_in_the_table_is_unknown)
{
    struct coord_lock_check check =
        coord_locks_check(MODEL_LOCKING_REQUIRED, NULL, NULL, MODEL_STATEMENT_SET, 0);

    cr_assert_eq(check.reason, MODEL_REASON_KEY_NOT_IDENTIFIED);
}

Test(locks, waiters_at_the_limit_and_one_more)
{
    static struct coord_session sessions[MODEL_WAITERS_MAX + 1];
    static struct coord_core core;
    struct test_env fake;
    struct coord_key *key = rt_xalloc(sizeof(*key) + 1);
    struct rt_list *node;

    test_env_init(&fake, 1);
    core.env = fake.env;
    for (size_t i = 0; i <= MODEL_WAITERS_MAX; i++)
        rt_list_init(&sessions[i].waits);
    for (size_t i = 0; i < MODEL_WAITERS_MAX; i++)
        cr_assert_not_null(coord_locks_add_waiter(&core, key, &sessions[i]));
    cr_assert_null(coord_locks_add_waiter(&core, key, &sessions[MODEL_WAITERS_MAX]));
    cr_assert_eq(coord_locks_find_waiter(key, &sessions[5])->session, &sessions[5]);
    cr_assert_null(coord_locks_find_waiter(key, &sessions[MODEL_WAITERS_MAX]));
    cr_assert_null(coord_locks_find_waiter(NULL, &sessions[0]));
    while ((node = rt_list_pop_front(&key->extra->waiters)))
        (void)rt_free(RT_LIST_ENTRY(node, struct coord_waiter, key_link));
    (void)rt_free(key->extra);
    (void)rt_free(key);
}
