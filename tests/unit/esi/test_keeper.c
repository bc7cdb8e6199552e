/*
 * Keeper: locks its keys in order, gives them back when it is told to, says why it could not.
 */
#include "esi-client/keeper.h"

#include "tests/support/check.h"
#include "tests/unit/esi/scripted_coordinator.h"

TestSuite(keeper, .fini = test_alloc_expect_none);

struct fixture {
    struct scripted_coordinator scripted;
    struct esi_keeper *keeper;
};

static struct model_effects *keeper_effects(void *object)
{
    return esi_keeper_effects(object);
}

static void keeper_call_done(void *object, struct model_call *call)
{
    esi_keeper_call_done(object, call);
}

static void keeper_tick(void *object)
{
    esi_keeper_tick(object);
}

static uint64_t keeper_next_wakeup_us(void *object)
{
    return esi_keeper_next_wakeup_us(object);
}

/* Of keys "k" and "l". */
static void start(struct fixture *f)
{
    const struct esi_session_config config = {
        .name = "system",
        .coordinator_address = "coordinator:7400",
        .client_id = {.bytes = {0xc1}},
        .statement_timeout_us = 8000000,
    };
    const struct rt_bytes keys[] = {RT_BYTES_LITERAL("k"), RT_BYTES_LITERAL("l")};

    scripted_init(&f->scripted);
    f->keeper = esi_keeper_new(&config, &f->scripted.fake.env, keys, RT_ARRAY_SIZE(keys));
    f->scripted.object = f->keeper;
    f->scripted.effects = keeper_effects;
    f->scripted.call_done = keeper_call_done;
    f->scripted.tick = keeper_tick;
    f->scripted.next_wakeup_us = keeper_next_wakeup_us;
    esi_keeper_start(f->keeper);
}

static struct model_call *take(struct fixture *f, enum model_statement_kind kind, const char *key)
{
    struct model_call *call = scripted_take_execute(&f->scripted, kind);

    cr_assert(rt_bytes_equal(call->request.execute.key, rt_bytes_of_string(key)));
    return call;
}

static void lock_both(struct fixture *f)
{
    start(f);
    cr_assert_eq(esi_keeper_state(f->keeper), ESI_KEEPER_LOCKING);
    scripted_open(&f->scripted);
    scripted_done(&f->scripted, take(f, MODEL_STATEMENT_GET, "k"), 7, 0);
    cr_assert_eq(esi_keeper_state(f->keeper), ESI_KEEPER_LOCKING);
    scripted_done(&f->scripted, take(f, MODEL_STATEMENT_GET, "l"), 8, 0);
    cr_assert_eq(esi_keeper_state(f->keeper), ESI_KEEPER_READY);
    cr_assert_eq(scripted_n_calls(&f->scripted), 0);
}

static void finish(struct fixture *f)
{
    f->keeper = esi_keeper_free(f->keeper);
}

Test(keeper, locks_all_and_gives_back_the_one_it_is_told)
{
    struct fixture f;

    lock_both(&f);
    esi_keeper_unlock(f.keeper, RT_BYTES_LITERAL("m"));
    cr_assert_eq(scripted_n_calls(&f.scripted), 0);
    esi_keeper_unlock(f.keeper, RT_BYTES_LITERAL("l"));
    scripted_done(&f.scripted, take(&f, MODEL_STATEMENT_STORE, "l"), 0, 0);
    esi_keeper_unlock(f.keeper, RT_BYTES_LITERAL("l"));
    cr_assert_eq(scripted_n_calls(&f.scripted), 0, "it has none to give back");
    cr_assert_eq(esi_keeper_state(f.keeper), ESI_KEEPER_READY);
    finish(&f);
}

Test(keeper, gives_back_one_after_the_other)
{
    struct fixture f;

    lock_both(&f);
    esi_keeper_unlock(f.keeper, RT_BYTES_LITERAL("k"));
    esi_keeper_unlock(f.keeper, RT_BYTES_LITERAL("l"));
    scripted_done(&f.scripted, take(&f, MODEL_STATEMENT_STORE, "k"), 0, 0);
    scripted_done(&f.scripted, take(&f, MODEL_STATEMENT_STORE, "l"), 0, 0);
    finish(&f);
}

Test(keeper, a_stop_closes_the_session)
{
    struct fixture f;

    lock_both(&f);
    esi_keeper_stop(f.keeper);
    scripted_ok(&f.scripted, scripted_take(&f.scripted, MODEL_CALL_CLOSE_SESSION));
    cr_assert_eq(esi_keeper_state(f.keeper), ESI_KEEPER_STOPPED);
    cr_assert_null(esi_keeper_failure(f.keeper));
    finish(&f);
}

Test(keeper, a_key_that_cannot_be_locked_ends_it)
{
    struct fixture f;

    start(&f);
    scripted_open(&f.scripted);
    scripted_fail(&f.scripted, take(&f, MODEL_STATEMENT_GET, "k"), MODEL_REASON_KEY_TOO_LONG);
    cr_assert_eq(esi_keeper_state(f.keeper), ESI_KEEPER_LOCKING);
    scripted_ok(&f.scripted, scripted_take(&f.scripted, MODEL_CALL_CLOSE_SESSION));
    cr_assert_eq(esi_keeper_state(f.keeper), ESI_KEEPER_LOST);
    cr_assert_not_null(esi_keeper_failure(f.keeper));
    finish(&f);
}

Test(keeper, a_session_that_is_lost_says_so)
{
    struct fixture f;

    lock_both(&f);
    esi_keeper_unlock(f.keeper, RT_BYTES_LITERAL("k"));
    scripted_fail(&f.scripted, take(&f, MODEL_STATEMENT_STORE, "k"), MODEL_REASON_SESSION_UNKNOWN);
    cr_assert_eq(esi_keeper_state(f.keeper), ESI_KEEPER_LOST);
    cr_assert_not_null(esi_keeper_failure(f.keeper));
    finish(&f);
}
