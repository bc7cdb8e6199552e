/*
 * Drive: who may run a statement, from what runners came to; runners are played by hand.
 */
#include "esi-client/drive.h"

#include "runtime/base/alloc.h"
#include "tests/support/check.h"
#include "tests/support/fake_env.h"

TestSuite(drive, .fini = test_alloc_expect_none);

enum {
    N_MAX = 4
};

struct rig {
    struct test_env fake;
    struct esi_drive *drive;
};

static void rig_init(struct rig *rig, enum esi_policy policy, size_t n_scripts, size_t n_blocked)
{
    static const struct rt_bytes blocked[] = {RT_BYTES_LITERAL("x"), RT_BYTES_LITERAL("y")};
    const struct esi_drive_config config = {
        .planner = {policy, 0.5, 5},
        .n_scripts = n_scripts,
        .blocked = blocked,
        .n_blocked = n_blocked,
    };

    test_env_init(&rig->fake, 1);
    rig->drive = esi_drive_new(&config, &rig->fake.env);
}

static void rig_deinit(struct rig *rig)
{
    struct esi_event *event;

    while ((event = esi_drive_take_event(rig->drive)))
        (void)rt_free(event);
    rig->drive = esi_drive_free(rig->drive);
}

static void note(struct rig *rig, size_t number, struct esi_drive_note note)
{
    struct rt_list none = RT_LIST_INIT(none);

    note.is_open = true;
    if (!note.results)
        note.results = &none;
    esi_drive_take_note(rig->drive, number, &note);
}

static void open_all(struct rig *rig, size_t n_scripts)
{
    esi_drive_begin(rig->drive);
    for (size_t i = 0; i < n_scripts; i++)
        note(rig, i, (struct esi_drive_note){0});
}

static void result(struct rig *rig, size_t number, enum model_statement_kind kind, const char *key,
                   enum esi_outcome outcome, bool is_last)
{
    struct rt_list results = RT_LIST_INIT(results);
    struct esi_result result = {
        .statement = {.kind = kind, .key = rt_bytes_of_string(key), .line = 1},
        .outcome = outcome,
    };

    rt_list_push_back(&results, &result.link);
    note(rig, number, (struct esi_drive_note){.is_last = is_last, .results = &results});
}

static void ok(struct rig *rig, size_t number, enum model_statement_kind kind, const char *key)
{
    result(rig, number, kind, key, ESI_OUTCOME_OK, false);
}

static void waits(struct rig *rig, size_t number, const char *key)
{
    result(rig, number, MODEL_STATEMENT_GET, key, ESI_OUTCOME_WAITING, false);
}

static void has_turn(struct rig *rig, size_t number)
{
    note(rig, number, (struct esi_drive_note){.has_turn = true});
}

static void is_done(struct rig *rig, size_t number)
{
    note(rig, number, (struct esi_drive_note){.is_last = true, .is_done = true});
}

static void expect_order(struct rig *rig, enum esi_drive_order_kind kind, size_t number)
{
    struct esi_drive_order *order = esi_drive_take_order(rig->drive);

    cr_assert_not_null(order, "no order for %zu", number);
    cr_expect_eq(order->kind, kind);
    cr_expect_eq(order->number, number, "%zu instead of %zu", order->number, number);
    (void)rt_free(order);
}

static void expect_grant(struct rig *rig, size_t number)
{
    expect_order(rig, ESI_DRIVE_GRANT, number);
}

static void expect_none(struct rig *rig)
{
    struct esi_drive_order *order = esi_drive_take_order(rig->drive);

    cr_expect_null(order);
    (void)rt_free(order);
}

Test(drive, begins_when_keys_are_locked_and_all_have_a_session_or_ended)
{
    struct rig rig;

    rig_init(&rig, ESI_POLICY_FIFO, 3, 1);
    note(&rig, 1, (struct esi_drive_note){0});
    is_done(&rig, 2);
    expect_none(&rig);
    esi_drive_begin(rig.drive);
    expect_none(&rig);
    note(&rig, 0, (struct esi_drive_note){0});
    expect_grant(&rig, 0); /* the first of them, not the first that was open */
    expect_none(&rig);
    rig_deinit(&rig);

    rig_init(&rig, ESI_POLICY_FIFO, 1, 1);
    note(&rig, 0, (struct esi_drive_note){0});
    expect_none(&rig);
    esi_drive_begin(rig.drive);
    expect_grant(&rig, 0);
    rig_deinit(&rig);
}

Test(drive, grants_line_after_line_to_one_and_then_to_the_next)
{
    struct rig rig;

    rig_init(&rig, ESI_POLICY_FIFO, 2, 0);
    open_all(&rig, 2);
    expect_grant(&rig, 0);
    ok(&rig, 0, MODEL_STATEMENT_GET, "k");
    expect_grant(&rig, 0);
    result(&rig, 0, MODEL_STATEMENT_STORE, "k", ESI_OUTCOME_OK, true);
    expect_none(&rig); /* its session is not closed yet */
    is_done(&rig, 0);
    expect_grant(&rig, 1);
    result(&rig, 1, MODEL_STATEMENT_SET, "k", ESI_OUTCOME_FAILED, true);
    is_done(&rig, 1);
    expect_none(&rig);
    rig_deinit(&rig);
}

Test(drive, c48_the_first_waiter_runs_its_get_again)
{
    struct rig rig;

    rig_init(&rig, ESI_POLICY_PARALLEL, 3, 0);
    open_all(&rig, 3);
    for (size_t i = 0; i < 3; i++)
        expect_grant(&rig, i);
    ok(&rig, 0, MODEL_STATEMENT_GET, "k");
    expect_grant(&rig, 0);
    waits(&rig, 1, "k");
    waits(&rig, 2, "k");
    ok(&rig, 0, MODEL_STATEMENT_STORE, "k");
    expect_grant(&rig, 0);
    expect_none(&rig); /* it has a line, but the coordinator has not said so */
    has_turn(&rig, 1);
    expect_grant(&rig, 1);
    ok(&rig, 1, MODEL_STATEMENT_GET, "k");
    expect_grant(&rig, 1);
    expect_none(&rig);
    rig_deinit(&rig);
}

Test(drive, the_word_may_come_before_the_line)
{
    struct rig rig;

    rig_init(&rig, ESI_POLICY_FIFO, 2, 0);
    open_all(&rig, 2);
    expect_grant(&rig, 0);
    waits(&rig, 0, "k"); /* somebody else has it */
    expect_grant(&rig, 1);
    has_turn(&rig, 0);
    expect_none(&rig);
    result(&rig, 1, MODEL_STATEMENT_SET, "l", ESI_OUTCOME_OK, true);
    is_done(&rig, 1);
    expect_grant(&rig, 0);
    ok(&rig, 0, MODEL_STATEMENT_GET, "k");
    expect_grant(&rig, 0);
    rig_deinit(&rig);
}

/* A key that one of the others freed goes to a session that is none of these. */
static void wait_for_a_foreign_turn(struct rig *rig)
{
    rig_init(rig, ESI_POLICY_FIFO, 2, 0);
    open_all(rig, 2);
    expect_grant(rig, 0);
    ok(rig, 0, MODEL_STATEMENT_GET, "k");
    expect_grant(rig, 0);
    waits(rig, 0, "l");
    expect_grant(rig, 1);
    waits(rig, 1, "k");
    has_turn(rig, 0);
    expect_grant(rig, 0);
    result(rig, 0, MODEL_STATEMENT_STORE, "k", ESI_OUTCOME_OK, true);
    is_done(rig, 0);
    expect_none(rig);
}

Test(drive, a_turn_that_does_not_come_blocks_again)
{
    struct rig rig;

    wait_for_a_foreign_turn(&rig);
    cr_expect_eq(esi_drive_next_wakeup_us(rig.drive),
                 rt_env_now_us(&rig.fake.env) + ESI_DRIVE_TURN_US);
    test_env_advance_us(&rig.fake, ESI_DRIVE_TURN_US - 1);
    esi_drive_tick(rig.drive);
    cr_expect_neq(esi_drive_next_wakeup_us(rig.drive), RT_NEVER);
    test_env_advance_us(&rig.fake, 1);
    esi_drive_tick(rig.drive);
    cr_expect_eq(esi_drive_next_wakeup_us(rig.drive), RT_NEVER);
    expect_none(&rig);
    has_turn(&rig, 1);
    expect_grant(&rig, 1);
    rig_deinit(&rig);
}

Test(drive, one_that_ends_while_its_turn_does_not_come)
{
    struct rig rig;

    wait_for_a_foreign_turn(&rig);
    is_done(&rig, 1);
    cr_expect_eq(esi_drive_next_wakeup_us(rig.drive), RT_NEVER);
    expect_none(&rig);
    rig_deinit(&rig);
}

Test(drive, blocked_keys_are_given_back_when_all_wait)
{
    struct rig rig;

    rig_init(&rig, ESI_POLICY_FIFO, 3, 2);
    open_all(&rig, 3);
    expect_grant(&rig, 0);
    waits(&rig, 0, "y");
    expect_grant(&rig, 1);
    waits(&rig, 1, "y");
    expect_grant(&rig, 2);
    expect_none(&rig);
    waits(&rig, 2, "x");
    expect_order(&rig, ESI_DRIVE_UNLOCK, 0); /* x, then y: as they were named */
    expect_order(&rig, ESI_DRIVE_UNLOCK, 1);
    expect_none(&rig); /* 2 is first, its turn has not come */
    has_turn(&rig, 2);
    expect_grant(&rig, 2);
    result(&rig, 2, MODEL_STATEMENT_GET, "x", ESI_OUTCOME_OK, true);
    is_done(&rig, 2);
    has_turn(&rig, 0);
    expect_grant(&rig, 0);
    result(&rig, 0, MODEL_STATEMENT_GET, "y", ESI_OUTCOME_OK, true);
    is_done(&rig, 0);
    has_turn(&rig, 1);
    expect_grant(&rig, 1);
    rig_deinit(&rig);
}

Test(drive, a_deadlock_is_told_once)
{
    size_t numbers[N_MAX];
    struct rig rig;

    rig_init(&rig, ESI_POLICY_PARALLEL, 3, 0);
    open_all(&rig, 3);
    for (size_t i = 0; i < 3; i++)
        expect_grant(&rig, i);
    ok(&rig, 0, MODEL_STATEMENT_GET, "k");
    ok(&rig, 1, MODEL_STATEMENT_GET, "l");
    waits(&rig, 0, "l");
    waits(&rig, 1, "k");
    cr_expect_eq(esi_drive_take_deadlock(rig.drive, numbers), 0, "the third still runs");
    is_done(&rig, 2);
    cr_assert_eq(esi_drive_take_deadlock(rig.drive, numbers), 2);
    cr_expect_eq(numbers[0], 0);
    cr_expect_eq(numbers[1], 1);
    cr_expect_eq(esi_drive_take_deadlock(rig.drive, numbers), 0);
    rig_deinit(&rig);
}

Test(drive, a_put_frees_the_lock_that_it_had)
{
    struct rig rig;

    rig_init(&rig, ESI_POLICY_PARALLEL, 2, 0);
    open_all(&rig, 2);
    expect_grant(&rig, 0);
    expect_grant(&rig, 1);
    ok(&rig, 0, MODEL_STATEMENT_GET, "k");
    expect_grant(&rig, 0);
    waits(&rig, 1, "k");
    ok(&rig, 0, MODEL_STATEMENT_PUT, "l");
    expect_grant(&rig, 0);
    ok(&rig, 0, MODEL_STATEMENT_PUT, "k");
    expect_grant(&rig, 0);
    has_turn(&rig, 1);
    expect_grant(&rig, 1);
    rig_deinit(&rig);
}

Test(drive, statements_of_the_runner_lock_nothing)
{
    struct rt_list results = RT_LIST_INIT(results);
    struct esi_result slept = {.statement = {.target = ESI_TARGET_SLEEP, .line = 1}};
    struct rig rig;

    rig_init(&rig, ESI_POLICY_FIFO, 1, 0);
    open_all(&rig, 1);
    expect_grant(&rig, 0);
    rt_list_push_back(&results, &slept.link);
    note(&rig, 0, (struct esi_drive_note){.results = &results});
    expect_grant(&rig, 0);
    rig_deinit(&rig);
}
