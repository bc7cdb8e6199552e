/*
 * Planner: the order of lines under each policy, what becomes of those that wait, and what a person
 * may order. A little world plays the coordinator: a GET succeeds when nobody holds the key.
 */
#include "esi-client/planner.h"

#include <stdarg.h>

#include "runtime/base/alloc.h"
#include "tests/support/check.h"

TestSuite(planner, .fini = test_alloc_expect_none);

enum {
    N_SCRIPTS = 8,
    TRACE_MAX = 512
};

/* One letter a script in the trace; lines are "G key", "T key" (STORE) or "S" (SET). */
struct play {
    struct esi_planner *planner;
    const char *const *lines[N_SCRIPTS + 1]; /* by id, NULL-terminated */
    size_t at[N_SCRIPTS + 1];
    char trace[TRACE_MAX]; /* who ran, one letter a line */
    size_t n_trace;
};

static struct rt_bytes key_of(const char *text)
{
    return rt_bytes_of_string(text);
}

static void play_init(struct play *play, enum esi_policy policy, double estimate)
{
    const struct esi_planner_config config = {policy, 0.5, estimate};

    *play = (struct play){.planner = esi_planner_new(&config)};
}

static uint32_t add_script(struct play *play, const char *const *lines)
{
    uint32_t id = 0;

    cr_assert_eq(esi_planner_add(play->planner, &id, NULL), RT_OK);
    cr_assert_leq(id, N_SCRIPTS);
    play->lines[id] = lines;
    esi_planner_opened(play->planner, id);
    return id;
}

static void run_line(struct play *play, uint32_t id)
{
    const char *line = play->lines[id][play->at[id]];
    struct esi_line done = {.kind = ESI_LINE_DONE};
    uint32_t holder;

    if (line[0] != 'S')
        done.key = key_of(line + 2);
    if (line[0] == 'T')
        done.kind = ESI_LINE_FREED;
    else if (line[0] == 'G' && esi_planner_holder(play->planner, done.key, &holder) && holder != id)
        done.kind = ESI_LINE_BLOCKED;
    else if (line[0] == 'G')
        done.kind = ESI_LINE_GOT;
    play->at[id] += done.kind != ESI_LINE_BLOCKED;
    done.is_last = !play->lines[id][play->at[id]];
    play->trace[play->n_trace++] = (char)('A' + id - 1);
    cr_assert_lt(play->n_trace, TRACE_MAX - 1);
    esi_planner_line_done(play->planner, id, &done);
    if (done.is_last)
        esi_planner_ended(play->planner, id);
}

/* Until there is nothing to do or `max` lines were run. */
static void run_lines(struct play *play, size_t max)
{
    struct esi_order order;

    for (size_t n = 0; n < max && esi_planner_next(play->planner, &order);) {
        if (order.kind == ESI_ORDER_END) {
            esi_planner_ended(play->planner, order.id);
            continue;
        }
        run_line(play, order.id);
        n++;
    }
}

/* One line of everybody who may run one, all at once. */
static void run_round(struct play *play)
{
    struct esi_order orders[N_SCRIPTS];
    size_t n = 0;

    while (esi_planner_next(play->planner, &orders[n]))
        n++;
    for (size_t i = 0; i < n; i++)
        run_line(play, orders[i].id);
}

static void expect_trace(struct play *play, const char *expected)
{
    run_lines(play, SIZE_MAX);
    cr_expect_str_eq(play->trace, expected, "%s instead of %s", play->trace, expected);
}

static void play_deinit(struct play *play)
{
    play->planner = esi_planner_free(play->planner);
}

static struct esi_plan plan_of(const struct play *play, uint32_t id)
{
    struct esi_plan plan = {0};

    cr_assert(esi_planner_find(play->planner, id, &plan));
    return plan;
}

static double remainder_of(const struct play *play, uint32_t id)
{
    struct esi_plan plan = plan_of(play, id);

    return plan.estimate - (double)plan.burst;
}

static uint32_t unblock(struct play *play, const char *key)
{
    uint32_t id = UINT32_MAX;

    cr_assert_eq(esi_planner_unblock(play->planner, key_of(key), &id, NULL), RT_OK, "%s", key);
    return id;
}

static void block_at_start(struct play *play, const char *key)
{
    cr_assert_eq(esi_planner_block_at_start(play->planner, key_of(key), NULL), RT_OK);
}

static void expect_state(const struct play *play, uint32_t id, enum esi_plan_state state)
{
    cr_expect_str_eq(esi_plan_state_name(plan_of(play, id).state), esi_plan_state_name(state));
}

/* The ids, then 0. */
static void expect_ids(size_t n, const uint32_t *ids, const uint32_t *expected)
{
    size_t i = 0;

    for (; expected[i] != 0; i++)
        cr_expect(i < n && ids[i] == expected[i], "%zu ids, at %zu: %u", n, i,
                  i < n ? (unsigned)ids[i] : 0);
    cr_expect_eq(n, i);
}

#define expect_waiters(play, key, ...)                                                             \
    do {                                                                                           \
        uint32_t ids[N_SCRIPTS];                                                                   \
        size_t n = esi_planner_waiters((play)->planner, key_of(key), ids, N_SCRIPTS);              \
                                                                                                   \
        expect_ids(n, ids, (const uint32_t[]){__VA_ARGS__});                                       \
    } while (0)

#define expect_deadlock(play, ...)                                                                 \
    do {                                                                                           \
        uint32_t ids[N_SCRIPTS];                                                                   \
        size_t n = esi_planner_deadlock((play)->planner, ids, N_SCRIPTS);                          \
                                                                                                   \
        expect_ids(n, ids, (const uint32_t[]){__VA_ARGS__});                                       \
    } while (0)

static const char *const one[] = {"S", NULL};
static const char *const three[] = {"S", "S", "S", NULL};
static const char *const five[] = {"S", "S", "S", "S", "S", NULL};

/* ---- policies -------------------------------------------------------------------------------- */

/* Three scripts of the shape of the course's planning test. */
static const char *const films[] = {
    "G film1", "G film2", "S", "S", "T film1", "G film3", "G film1", "S",       "S", "S",
    "S",       "S",       "S", "S", "T film2", "S",       "S",       "T film3", NULL};
static const char *const series[] = {
    "G lead1", "G lead2", "S",       "S", "S",       "G lead3", "T lead1", "S",       "T lead2",
    "G lead4", "S",       "G lead1", "S", "T lead4", "G lead2", "S",       "T lead3", NULL};
static const char *const winter[] = {"G lead1", "G lead2", "S", "S", "T lead1", "T lead2", NULL};

static void unblock_twice(struct play *play, const char *key, uint32_t waiter)
{
    cr_expect_eq(unblock(play, key), waiter);
    cr_expect_eq(unblock(play, key), ESI_PLANNER_SYSTEM);
}

Test(planner, c87_sjf_cd_trace)
{
    struct play play;

    play_init(&play, ESI_POLICY_SJF_CD, 3);
    for (size_t i = 0; i < 4; i++)
        block_at_start(&play, (const char *const[]){"film2", "lead3", "film3", "lead4"}[i]);
    (void)add_script(&play, films);
    (void)add_script(&play, series);
    (void)add_script(&play, winter);
    expect_trace(&play, "AABBBBBBC");
    for (uint32_t id = 1; id <= 3; id++)
        expect_state(&play, id, ESI_PLAN_BLOCKED);

    esi_planner_pause(play.planner, true);
    unblock_twice(&play, "film2", 1);
    unblock_twice(&play, "lead3", 2);
    cr_expect_eq(plan_of(&play, 1).estimate, 2.5);
    cr_expect_eq(plan_of(&play, 2).estimate, 4.5);
    expect_trace(&play, "AABBBBBBC");
    esi_planner_pause(play.planner, false);
    run_lines(&play, 7);
    cr_expect_str_eq(play.trace, "AABBBBBBCAAAAABB");
    cr_expect_eq(remainder_of(&play, 2), 2.5);
    run_lines(&play, 1);
    cr_expect_str_eq(play.trace, "AABBBBBBCAAAAABBC");
    expect_state(&play, 2, ESI_PLAN_READY);
    cr_expect_eq(remainder_of(&play, 2), 2.5, "a preempted one keeps its remainder");
    cr_expect_eq(plan_of(&play, 3).estimate, 2);
    run_lines(&play, 3);
    cr_expect_str_eq(play.trace, "AABBBBBBCAAAAABBCCBB");
    cr_expect_eq(remainder_of(&play, 2), 0.5);
    expect_state(&play, 3, ESI_PLAN_READY);
    run_lines(&play, 1);
    cr_expect_str_eq(play.trace, "AABBBBBBCAAAAABBCCBBB", "at 0.5 it keeps running");
    expect_trace(&play, "AABBBBBBCAAAAABBCCBBBCCCCC");
    expect_state(&play, 3, ESI_PLAN_FINISHED);

    unblock_twice(&play, "film3", 1);
    unblock_twice(&play, "lead4", 2);
    cr_expect_eq(plan_of(&play, 1).estimate, 3.75);
    cr_expect_eq(plan_of(&play, 2).estimate, 4.75);
    expect_trace(&play, "AABBBBBBCAAAAABBCCBBBCCCCCAAAAAAAAAAAAABBBBBBBB");
    play_deinit(&play);
}

/* Without preemption the same scripts run otherwise from where one became ready. */
Test(planner, sjf_sd_of_the_same_scripts)
{
    struct play play;

    play_init(&play, ESI_POLICY_SJF_SD, 3);
    for (size_t i = 0; i < 4; i++)
        block_at_start(&play, (const char *const[]){"film2", "lead3", "film3", "lead4"}[i]);
    (void)add_script(&play, films);
    (void)add_script(&play, series);
    (void)add_script(&play, winter);
    expect_trace(&play, "AABBBBBBC");
    unblock_twice(&play, "film2", 1);
    unblock_twice(&play, "lead3", 2);
    expect_trace(&play, "AABBBBBBCAAAAABBBBBCCCCCC");
    play_deinit(&play);
}

Test(planner, fifo_runs_each_to_its_end_in_order)
{
    struct play play;

    play_init(&play, ESI_POLICY_FIFO, 5);
    (void)add_script(&play, five);
    (void)add_script(&play, one);
    (void)add_script(&play, three);
    expect_trace(&play, "AAAAABCCC");
    cr_expect_eq(esi_planner_clock(play.planner), 9);
    play_deinit(&play);
}

Test(planner, fifo_puts_those_that_were_woken_behind_the_others)
{
    static const char *const gets[] = {"G k", "S", NULL};
    struct play play;

    play_init(&play, ESI_POLICY_FIFO, 5);
    block_at_start(&play, "k");
    (void)add_script(&play, gets);
    run_lines(&play, 1);
    (void)add_script(&play, one);
    unblock_twice(&play, "k", 1);
    expect_trace(&play, "ABAA");
    play_deinit(&play);
}

Test(planner, sjf_ties_are_first_come_first_served)
{
    for (size_t i = 0; i < 2; i++) {
        struct play play;

        play_init(&play, i == 0 ? ESI_POLICY_SJF_SD : ESI_POLICY_SJF_CD, 4);
        (void)add_script(&play, three);
        (void)add_script(&play, one);
        (void)add_script(&play, three);
        expect_trace(&play, "AAABCCC");
        play_deinit(&play);
    }
}

/* A had bursts of 1 and is estimated short; B, which came first, is estimated as anybody new. */
static void play_short_one(struct play *play, enum esi_policy policy)
{
    static const char *const gets[] = {"G k", "G k2", "S", "S", NULL};

    play_init(play, policy, 4);
    block_at_start(play, "k");
    (void)add_script(play, gets);
    run_lines(play, 1);
    (void)add_script(play, five);
    run_lines(play, 1);
    unblock_twice(play, "k", 1);
    cr_expect_eq(plan_of(play, 1).estimate, 2.5);
}

Test(planner, sjf_cd_preempts_at_the_next_line_and_sd_does_not)
{
    struct play play;

    play_short_one(&play, ESI_POLICY_SJF_CD);
    expect_trace(&play, "ABAAAABBBB");
    play_deinit(&play);
    play_short_one(&play, ESI_POLICY_SJF_SD);
    expect_trace(&play, "ABBBBBAAAA");
    play_deinit(&play);
}

Test(planner, sjf_cd_does_not_preempt_for_an_equal_remainder)
{
    static const char *const gets[] = {"G k", "S", NULL};
    struct play play;

    play_init(&play, ESI_POLICY_SJF_CD, 3);
    block_at_start(&play, "k");
    (void)add_script(&play, gets);
    run_lines(&play, 1);
    (void)add_script(&play, three);
    run_lines(&play, 1);
    unblock_twice(&play, "k", 1);
    cr_expect_eq(plan_of(&play, 1).estimate, 2);
    cr_expect_eq(remainder_of(&play, 2), 2);
    expect_trace(&play, "ABBBAA");
    play_deinit(&play);
}

/* When B ends, A has waited 1 line, (2 + 1) / 2, and C 5 of them, (3 + 5) / 3: the shorter estimate
 * does not decide. */
Test(planner, hrrn_prefers_who_waited_long_for_its_size)
{
    static const char *const gets[] = {"G k", "S", "S", NULL};
    struct play play;

    play_init(&play, ESI_POLICY_HRRN, 3);
    block_at_start(&play, "k");
    (void)add_script(&play, gets);
    run_lines(&play, 1);
    (void)add_script(&play, five);
    (void)add_script(&play, three);
    run_lines(&play, 1);
    cr_expect_eq(plan_of(&play, 3).waited, 1);
    run_lines(&play, 3);
    unblock_twice(&play, "k", 1);
    cr_expect_eq(plan_of(&play, 1).estimate, 2);
    run_lines(&play, 1);
    expect_trace(&play, "ABBBBBCCCAAA");
    play_deinit(&play);
}

Test(planner, hrrn_prefers_the_shorter_of_equal_waits)
{
    static const char *const gets[] = {"G k", "S", NULL};
    struct play play;

    play_init(&play, ESI_POLICY_HRRN, 4);
    block_at_start(&play, "k");
    (void)add_script(&play, gets);
    (void)add_script(&play, five);
    run_lines(&play, 2);
    (void)add_script(&play, one);
    unblock_twice(&play, "k", 1);
    cr_expect_eq(plan_of(&play, 1).estimate, 2.5);
    expect_trace(&play, "ABBBBBAAC");
    play_deinit(&play);
}

Test(planner, an_estimate_of_nothing_has_no_remainder_to_divide_by)
{
    static const char *const gets[] = {"G k", "S", NULL};
    const struct esi_planner_config config = {ESI_POLICY_HRRN, 0, 0};
    struct play play = {.planner = esi_planner_new(&config)};

    block_at_start(&play, "k");
    (void)add_script(&play, gets);
    (void)add_script(&play, three);
    (void)add_script(&play, one);
    run_lines(&play, 2);
    unblock_twice(&play, "k", 1);
    expect_trace(&play, "ABBBCAA");
    play_deinit(&play);
}

Test(planner, parallel_runs_all_that_can)
{
    struct esi_order order;
    struct play play;

    play_init(&play, ESI_POLICY_PARALLEL, 5);
    (void)add_script(&play, three);
    (void)add_script(&play, one);
    for (uint32_t id = 1; id <= 2; id++) {
        cr_assert(esi_planner_next(play.planner, &order));
        cr_expect_eq(order.kind, ESI_ORDER_LINE);
        cr_expect_eq(order.id, id);
    }
    cr_expect_not(esi_planner_next(play.planner, &order), "all have their line");
    run_line(&play, 2);
    run_line(&play, 1);
    expect_trace(&play, "BAAA");
    play_deinit(&play);
}

Test(planner, alpha_weighs_the_last_burst)
{
    static const struct {
        double alpha, estimate;
    } cases[] = {{0, 4}, {0.25, 3.25}, {0.5, 2.5}, {1, 1}};
    static const char *const gets[] = {"G k", "S", NULL};

    for (size_t i = 0; i < RT_ARRAY_SIZE(cases); i++) {
        const struct esi_planner_config config = {ESI_POLICY_SJF_SD, cases[i].alpha, 4};
        struct play play = {.planner = esi_planner_new(&config)};

        block_at_start(&play, "k");
        (void)add_script(&play, gets);
        cr_expect_eq(plan_of(&play, 1).estimate, 4, "a new one has the initial estimate");
        run_lines(&play, 1);
        cr_expect_eq(plan_of(&play, 1).burst, 1, "the GET that blocked counts");
        cr_expect_eq(unblock(&play, "k"), 1);
        cr_expect_eq(plan_of(&play, 1).estimate, cases[i].estimate);
        cr_expect_eq(plan_of(&play, 1).burst, 0);
        run_lines(&play, 1);
        cr_expect_eq(plan_of(&play, 1).burst, 1, "and again when it is run again");
        play_deinit(&play);
    }
}

/* ---- locks ----------------------------------------------------------------------------------- */

static const char *const holds[] = {"G k", "S", "S", "T k", "S", NULL};
static const char *const wants[] = {"G k", "S", "T k", NULL};

/* A holds k and has run two lines; B, C, D wait for it. */
static void play_three_waiters(struct play *play)
{
    play_init(play, ESI_POLICY_PARALLEL, 5);
    (void)add_script(play, holds);
    run_lines(play, 1);
    for (size_t i = 0; i < 3; i++)
        (void)add_script(play, wants);
    while (plan_of(play, 4).state != ESI_PLAN_BLOCKED)
        run_lines(play, 1);
    expect_waiters(play, "k", 2, 3, 4, 0);
}

Test(planner, c48_a_store_readies_only_the_first_waiter)
{
    struct play play;

    play_three_waiters(&play);
    while (play.at[1] < 4)
        run_lines(&play, 1);
    cr_expect_neq(plan_of(&play, 2).state, ESI_PLAN_BLOCKED);
    expect_state(&play, 3, ESI_PLAN_BLOCKED);
    expect_state(&play, 4, ESI_PLAN_BLOCKED);
    expect_waiters(&play, "k", 3, 4, 0);
    cr_expect_eq(play.at[2], 0, "its GET is to be run again");
    run_lines(&play, SIZE_MAX);
    for (uint32_t id = 1; id <= 4; id++)
        expect_state(&play, id, ESI_PLAN_FINISHED);
    play_deinit(&play);
}

Test(planner, an_end_frees_all_keys_and_readies_the_first_waiter_of_each)
{
    static const char *const takes[] = {"G k", "G l", "S", NULL};
    static const char *const wants_l[] = {"G l", "S", NULL};
    struct play play;

    play_init(&play, ESI_POLICY_PARALLEL, 5);
    (void)add_script(&play, takes);
    run_lines(&play, 2);
    (void)add_script(&play, wants);
    (void)add_script(&play, wants_l);
    (void)add_script(&play, wants_l);
    esi_planner_pause(play.planner, true);
    cr_assert_eq(esi_planner_kill(play.planner, 1, NULL), RT_OK);
    esi_planner_pause(play.planner, false);
    for (uint32_t id = 2; id <= 4; id++) {
        struct esi_line blocked = {.kind = ESI_LINE_BLOCKED, .key = key_of(id == 2 ? "k" : "l")};
        struct esi_order order;

        do
            cr_assert(esi_planner_next(play.planner, &order));
        while (order.kind == ESI_ORDER_END);
        cr_assert_eq(order.id, id);
        esi_planner_line_done(play.planner, id, &blocked);
    }
    esi_planner_ended(play.planner, 1);
    expect_state(&play, 2, ESI_PLAN_READY);
    expect_state(&play, 3, ESI_PLAN_READY);
    expect_state(&play, 4, ESI_PLAN_BLOCKED);
    play_deinit(&play);
}

Test(planner, the_word_of_the_coordinator_wakes_those_of_foreign_keys)
{
    const struct esi_line blocked = {.kind = ESI_LINE_BLOCKED, .key = key_of("k")};
    struct esi_order order;
    struct play play;

    play_init(&play, ESI_POLICY_FIFO, 5);
    (void)add_script(&play, wants);
    (void)add_script(&play, wants);
    for (uint32_t id = 1; id <= 2; id++) {
        cr_assert(esi_planner_next(play.planner, &order));
        esi_planner_line_done(play.planner, id, &blocked);
    }
    esi_planner_woken(play.planner, 1);
    expect_state(&play, 1, ESI_PLAN_READY);
    esi_planner_woken(play.planner, 2);
    expect_state(&play, 2, ESI_PLAN_BLOCKED);
    cr_assert(esi_planner_next(play.planner, &order));
    esi_planner_line_done(play.planner, 1, &blocked);
    expect_waiters(&play, "k", 1, 2, 0);
    esi_planner_woken(play.planner, 2);
    expect_state(&play, 2, ESI_PLAN_READY);
    esi_planner_woken(play.planner, 2);
    esi_planner_woken(play.planner, 7);
    play_deinit(&play);
}

/* The word and the end of the line that freed the key come in any order. */
Test(planner, the_word_of_the_coordinator_waits_for_the_line_that_freed_the_key)
{
    const struct esi_line blocked = {.kind = ESI_LINE_BLOCKED, .key = key_of("k")};
    const struct esi_line freed = {.kind = ESI_LINE_FREED, .key = key_of("k")};
    const struct esi_line done = {.kind = ESI_LINE_DONE};

    for (size_t i = 0; i < 2; i++) {
        struct esi_order order;
        struct play play;

        play_init(&play, ESI_POLICY_PARALLEL, 5);
        (void)add_script(&play, holds);
        run_lines(&play, 1);
        (void)add_script(&play, wants);
        while (esi_planner_next(play.planner, &order))
            cr_assert_eq(order.kind, ESI_ORDER_LINE);
        esi_planner_line_done(play.planner, 2, &blocked);
        esi_planner_woken(play.planner, 2);
        expect_state(&play, 2, ESI_PLAN_BLOCKED);
        esi_planner_line_done(play.planner, 1, i == 0 ? &freed : &done);
        expect_state(&play, 2, ESI_PLAN_READY);
        cr_expect_eq(plan_of(&play, 2).waited, 0);
        play_deinit(&play);
    }
}

Test(planner, a_key_given_back_is_for_its_first_waiter)
{
    uint32_t holder;
    struct play play;

    play_init(&play, ESI_POLICY_FIFO, 5);
    block_at_start(&play, "k");
    (void)add_script(&play, wants);
    (void)add_script(&play, wants);
    run_lines(&play, 2);
    esi_planner_give_back(play.planner, key_of("k"));
    cr_expect_not(esi_planner_holder(play.planner, key_of("k"), &holder));
    expect_state(&play, 1, ESI_PLAN_READY);
    expect_state(&play, 2, ESI_PLAN_BLOCKED);
    run_lines(&play, 1);
    esi_planner_give_back(play.planner, key_of("k"));
    cr_expect(esi_planner_holder(play.planner, key_of("k"), &holder), "it is an ESI's by now");
    esi_planner_give_back(play.planner, key_of("l"));
    expect_trace(&play, "ABAAABBB");
    play_deinit(&play);
}

Test(planner, a_woken_one_that_ends_passes_the_key_on)
{
    struct esi_order order;
    struct play play;

    play_three_waiters(&play);
    esi_planner_pause(play.planner, true);
    while (play.at[1] < 4) {
        esi_planner_pause(play.planner, false);
        run_lines(&play, 1);
    }
    esi_planner_pause(play.planner, true);
    expect_state(&play, 2, ESI_PLAN_READY);
    cr_assert_eq(esi_planner_kill(play.planner, 2, NULL), RT_OK);
    expect_state(&play, 3, ESI_PLAN_READY);
    cr_assert(esi_planner_next(play.planner, &order), "an end is ordered while paused");
    cr_expect_eq(order.kind, ESI_ORDER_END);
    cr_expect_eq(order.id, 2);
    play_deinit(&play);
}

Test(planner, one_that_asked_for_another_key_of_its_own_leaves_the_first)
{
    const struct esi_line failed = {.kind = ESI_LINE_DONE, .is_last = true};
    struct esi_order order;
    struct play play;

    play_init(&play, ESI_POLICY_FIFO, 5);
    block_at_start(&play, "k");
    (void)add_script(&play, wants);
    (void)add_script(&play, wants);
    run_lines(&play, 2);
    cr_expect_eq(unblock(&play, "k"), 1);
    cr_assert(esi_planner_next(play.planner, &order));
    cr_expect_eq(unblock(&play, "k"), 2);
    cr_expect_eq(unblock(&play, "k"), ESI_PLANNER_SYSTEM);
    esi_planner_line_done(play.planner, 1, &failed);
    esi_planner_ended(play.planner, 1);
    expect_trace(&play, "ABBBB");
    play_deinit(&play);
}

/* ---- what a person orders -------------------------------------------------------------------- */

Test(planner, c76_a_free_key_is_assigned_and_does_not_block)
{
    enum esi_block effect = ESI_BLOCK_QUEUED;
    uint32_t holder = 0;
    struct play play;

    play_init(&play, ESI_POLICY_FIFO, 5);
    (void)add_script(&play, one);
    cr_assert_eq(esi_planner_block(play.planner, key_of("k"), 1, &effect, NULL), RT_OK);
    cr_expect_eq(effect, ESI_BLOCK_ASSIGNED);
    expect_state(&play, 1, ESI_PLAN_READY);
    cr_expect(esi_planner_holder(play.planner, key_of("k"), &holder));
    cr_expect_eq(holder, 1);
    expect_waiters(&play, "k", 0);
    play_deinit(&play);
}

Test(planner, c76_a_key_of_its_own_stays_its_own)
{
    enum esi_block effect = ESI_BLOCK_QUEUED;
    uint32_t holder = 0;
    uint32_t circle[1] = {0};
    struct play play;

    play_init(&play, ESI_POLICY_FIFO, 5);
    (void)add_script(&play, holds);
    run_lines(&play, 1);
    cr_assert_eq(esi_planner_block(play.planner, key_of("k"), 1, &effect, NULL), RT_OK);
    cr_expect_eq(effect, ESI_BLOCK_ASSIGNED);
    expect_state(&play, 1, ESI_PLAN_RUNNING);
    cr_expect(esi_planner_holder(play.planner, key_of("k"), &holder));
    cr_expect_eq(holder, 1);
    expect_waiters(&play, "k", 0);
    cr_expect_eq(esi_planner_deadlock(play.planner, circle, 1), 0);
    play_deinit(&play);
}

Test(planner, c77_a_held_key_queues_one_that_runs_at_its_next_boundary)
{
    const struct esi_line done = {.kind = ESI_LINE_DONE};
    enum esi_block effect = ESI_BLOCK_ASSIGNED;
    struct esi_order order;
    struct play play;

    play_init(&play, ESI_POLICY_FIFO, 5);
    block_at_start(&play, "k");
    (void)add_script(&play, three);
    (void)add_script(&play, three);
    cr_assert(esi_planner_next(play.planner, &order));
    cr_assert_eq(esi_planner_block(play.planner, key_of("k"), 1, &effect, NULL), RT_OK);
    cr_expect_eq(effect, ESI_BLOCK_AT_BOUNDARY);
    expect_state(&play, 1, ESI_PLAN_RUNNING);
    cr_assert_eq(esi_planner_block(play.planner, key_of("k"), 2, &effect, NULL), RT_OK);
    cr_expect_eq(effect, ESI_BLOCK_QUEUED);
    expect_state(&play, 2, ESI_PLAN_BLOCKED);
    expect_waiters(&play, "k", 1, 2, 0);
    esi_planner_line_done(play.planner, 1, &done);
    expect_state(&play, 1, ESI_PLAN_BLOCKED);
    play.at[1] = 1;
    cr_expect_eq(unblock(&play, "k"), 1);
    expect_trace(&play, "AA");
    play_deinit(&play);
}

Test(planner, a_wait_that_ended_before_the_boundary_does_not_block)
{
    const struct esi_line done = {.kind = ESI_LINE_DONE};
    enum esi_block effect;
    struct esi_order order;
    struct play play;

    play_init(&play, ESI_POLICY_FIFO, 5);
    block_at_start(&play, "k");
    (void)add_script(&play, three);
    cr_assert(esi_planner_next(play.planner, &order));
    cr_assert_eq(esi_planner_block(play.planner, key_of("k"), 1, &effect, NULL), RT_OK);
    cr_expect_eq(unblock(&play, "k"), 1);
    esi_planner_line_done(play.planner, 1, &done);
    expect_state(&play, 1, ESI_PLAN_RUNNING);
    play_deinit(&play);
}

Test(planner, what_a_line_asks_for_comes_before_what_a_person_asked)
{
    const struct esi_line blocked = {.kind = ESI_LINE_BLOCKED, .key = key_of("l")};
    enum esi_block effect;
    struct esi_order order;
    struct play play;

    play_init(&play, ESI_POLICY_FIFO, 5);
    block_at_start(&play, "k");
    (void)add_script(&play, three);
    cr_assert(esi_planner_next(play.planner, &order));
    cr_assert_eq(esi_planner_block(play.planner, key_of("k"), 1, &effect, NULL), RT_OK);
    esi_planner_line_done(play.planner, 1, &blocked);
    expect_waiters(&play, "k", 0);
    expect_waiters(&play, "l", 1, 0);
    play_deinit(&play);
}

static void expect_refusal(struct play *play, uint32_t id, enum rt_code code, const char *said)
{
    struct rt_error err = RT_ERROR_INIT;
    enum esi_block effect;

    cr_expect_eq(esi_planner_block(play->planner, key_of("k"), id, &effect, &err), code);
    cr_expect(strstr(err.message, said), "%s", err.message);
}

Test(planner, c78_block_of_unknown_finished_blocked_or_ending)
{
    struct play play;

    play_init(&play, ESI_POLICY_FIFO, 5);
    block_at_start(&play, "k");
    (void)add_script(&play, one);
    (void)add_script(&play, wants);
    run_lines(&play, 2);
    expect_refusal(&play, 9, RT_NOT_FOUND, "no ESI 9");
    expect_refusal(&play, 0, RT_NOT_FOUND, "no ESI 0");
    expect_refusal(&play, 1, RT_FAILED_PRECONDITION, "ESI 1 has finished");
    expect_refusal(&play, 2, RT_FAILED_PRECONDITION, "ESI 2 waits");
    expect_waiters(&play, "k", 2, 0);
    (void)add_script(&play, three);
    cr_assert_eq(esi_planner_kill(play.planner, 3, NULL), RT_OK);
    expect_refusal(&play, 3, RT_FAILED_PRECONDITION, "ESI 3 is ending");
    cr_expect_eq(esi_planner_kill(play.planner, 3, NULL), RT_FAILED_PRECONDITION);
    cr_expect_eq(esi_planner_kill(play.planner, 1, NULL), RT_FAILED_PRECONDITION);
    cr_expect_eq(esi_planner_kill(play.planner, 9, NULL), RT_NOT_FOUND);
    play_deinit(&play);
}

Test(planner, c79_unblock_readies_the_first_and_the_key_stays_held)
{
    uint32_t holder = 7;
    struct play play;

    play_init(&play, ESI_POLICY_FIFO, 5);
    block_at_start(&play, "k");
    (void)add_script(&play, wants);
    (void)add_script(&play, wants);
    run_lines(&play, 2);
    cr_expect_eq(unblock(&play, "k"), 1);
    expect_state(&play, 1, ESI_PLAN_READY);
    expect_state(&play, 2, ESI_PLAN_BLOCKED);
    cr_expect(esi_planner_holder(play.planner, key_of("k"), &holder));
    cr_expect_eq(holder, ESI_PLANNER_SYSTEM);
    expect_trace(&play, "ABA");
    expect_state(&play, 1, ESI_PLAN_BLOCKED);
    expect_waiters(&play, "k", 1, 2, 0);
    play_deinit(&play);
}

Test(planner, c81_unblock_of_an_unknown_key)
{
    struct rt_error err = RT_ERROR_INIT;
    uint32_t id = 7;
    struct play play;

    play_init(&play, ESI_POLICY_FIFO, 5);
    cr_expect_eq(esi_planner_unblock(play.planner, key_of("k"), &id, &err), RT_NOT_FOUND);
    cr_expect(strstr(err.message, "nobody waits"), "%s", err.message);
    (void)add_script(&play, holds);
    run_lines(&play, 1);
    cr_expect_eq(esi_planner_unblock(play.planner, key_of("k"), &id, NULL), RT_NOT_FOUND,
                 "held by an ESI, and nobody waits");
    cr_expect_eq(id, 7);
    expect_trace(&play, "AAAAA");
    play_deinit(&play);
}

Test(planner, c82_kill_of_a_running_one_after_its_line)
{
    const struct esi_line done = {.kind = ESI_LINE_DONE};
    struct esi_order order;
    struct play play;

    play_init(&play, ESI_POLICY_FIFO, 5);
    (void)add_script(&play, holds);
    (void)add_script(&play, wants);
    run_lines(&play, 1);
    cr_assert(esi_planner_next(play.planner, &order));
    cr_assert_eq(esi_planner_kill(play.planner, 1, NULL), RT_OK);
    cr_expect_not(esi_planner_next(play.planner, &order), "its line is under way");
    esi_planner_line_done(play.planner, 1, &done);
    cr_assert(esi_planner_next(play.planner, &order));
    cr_expect_eq(order.kind, ESI_ORDER_END);
    cr_expect_eq(order.id, 1);
    cr_expect_not(esi_planner_next(play.planner, &order), "its locks are not free yet");
    esi_planner_ended(play.planner, 1);
    cr_expect_not(esi_planner_holder(play.planner, key_of("k"), &order.id));
    expect_trace(&play, "ABBB");
    play_deinit(&play);
}

Test(planner, kill_of_one_that_waits_leaves_the_queue)
{
    struct esi_order order;
    struct play play;

    play_three_waiters(&play);
    cr_assert_eq(esi_planner_kill(play.planner, 3, NULL), RT_OK);
    expect_waiters(&play, "k", 2, 4, 0);
    cr_assert(esi_planner_next(play.planner, &order));
    cr_expect_eq(order.kind, ESI_ORDER_END);
    esi_planner_ended(play.planner, 3);
    run_lines(&play, SIZE_MAX);
    for (uint32_t id = 1; id <= 4; id++)
        expect_state(&play, id, ESI_PLAN_FINISHED);
    play_deinit(&play);
}

Test(planner, pause_begins_no_line_and_continue_goes_on)
{
    struct play play;

    play_init(&play, ESI_POLICY_FIFO, 5);
    esi_planner_pause(play.planner, true);
    (void)add_script(&play, one);
    expect_trace(&play, "");
    cr_expect(esi_planner_is_paused(play.planner));
    esi_planner_pause(play.planner, false);
    expect_trace(&play, "A");
    play_deinit(&play);
}

Test(planner, c95_planning_begins_when_an_esi_has_its_session)
{
    struct esi_order order;
    uint32_t id = 0;
    struct play play;

    play_init(&play, ESI_POLICY_FIFO, 5);
    cr_expect_not(esi_planner_next(play.planner, &order));
    cr_assert_eq(esi_planner_add(play.planner, &id, NULL), RT_OK);
    expect_state(&play, id, ESI_PLAN_NEW);
    cr_expect_not(esi_planner_next(play.planner, &order));
    esi_planner_opened(play.planner, id);
    cr_expect(esi_planner_next(play.planner, &order));
    play_deinit(&play);
}

/* ---- deadlock -------------------------------------------------------------------------------- */

static const char *const left[] = {"G drink1", "G drink2", "S", NULL};
static const char *const right[] = {"G drink2", "G drink1", "S", NULL};
static const char *const first_dish[] = {"G dish1", "G dish2", "S", NULL};
static const char *const second_dish[] = {"G dish2", "G dish1", "S", NULL};
static const char *const wants_drink[] = {"G drink1", NULL};

Test(planner, c86_deadlock_is_exactly_the_esis_in_cycles)
{
    struct play play;

    play_init(&play, ESI_POLICY_PARALLEL, 5);
    (void)add_script(&play, left);
    (void)add_script(&play, right);
    (void)add_script(&play, first_dish);
    (void)add_script(&play, second_dish);
    run_round(&play);
    expect_deadlock(&play, 0);
    (void)add_script(&play, wants_drink);
    (void)add_script(&play, three);
    run_lines(&play, SIZE_MAX);
    expect_state(&play, 6, ESI_PLAN_FINISHED);
    expect_state(&play, 5, ESI_PLAN_BLOCKED);
    expect_deadlock(&play, 1, 2, 3, 4, 0);
    cr_assert_eq(esi_planner_kill(play.planner, 3, NULL), RT_OK);
    run_lines(&play, SIZE_MAX);
    expect_deadlock(&play, 1, 2, 0);
    expect_state(&play, 4, ESI_PLAN_FINISHED);
    play_deinit(&play);
}

Test(planner, a_chain_to_the_system_owner_is_no_deadlock)
{
    struct play play;

    play_init(&play, ESI_POLICY_PARALLEL, 5);
    block_at_start(&play, "drink2");
    (void)add_script(&play, left);
    run_lines(&play, SIZE_MAX);
    (void)add_script(&play, wants_drink);
    run_lines(&play, SIZE_MAX);
    expect_state(&play, 2, ESI_PLAN_BLOCKED);
    expect_deadlock(&play, 0);
    play_deinit(&play);
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void expect_event(struct esi_planner *planner, enum esi_event_kind kind, uint32_t id,
                         double estimate, const char *key)
{
    struct esi_event *event = esi_planner_take_event(planner);

    cr_assert_not_null(event, "%s", esi_event_kind_name(kind));
    cr_expect_str_eq(esi_event_kind_name(event->kind), esi_event_kind_name(kind));
    cr_expect_eq(event->id, id);
    cr_expect_eq(event->estimate, estimate, "%g", event->estimate);
    cr_expect(rt_bytes_equal(event->key, rt_bytes_of_string(key)));
    (void)rt_free(event);
}

Test(planner, events_tell_every_change_of_state)
{
    struct play play;

    play_short_one(&play, ESI_POLICY_SJF_CD);
    run_lines(&play, SIZE_MAX);
    expect_event(play.planner, ESI_EVENT_READY, 1, 4, "");
    expect_event(play.planner, ESI_EVENT_RUNNING, 1, 4, "");
    expect_event(play.planner, ESI_EVENT_BLOCKED, 1, 3, "k");
    expect_event(play.planner, ESI_EVENT_READY, 2, 4, "");
    expect_event(play.planner, ESI_EVENT_RUNNING, 2, 4, "");
    expect_event(play.planner, ESI_EVENT_READY, 1, 2.5, "");
    expect_event(play.planner, ESI_EVENT_PREEMPTED, 2, 3, "");
    expect_event(play.planner, ESI_EVENT_RUNNING, 1, 2.5, "");
    expect_event(play.planner, ESI_EVENT_FINISHED, 1, -1.5, "");
    expect_event(play.planner, ESI_EVENT_RUNNING, 2, 3, "");
    expect_event(play.planner, ESI_EVENT_FINISHED, 2, -1, "");
    cr_expect_null(esi_planner_take_event(play.planner));
    play_deinit(&play);
}

Test(planner, a_thousand_live_and_no_more)
{
    struct rt_error err = RT_ERROR_INIT;
    uint32_t ids[2];
    uint32_t id = 0;
    struct play play;

    play_init(&play, ESI_POLICY_SJF_CD, 5);
    for (size_t i = 0; i < ESI_PLANNER_LIVE_MAX; i++)
        cr_assert_eq(esi_planner_add(play.planner, &id, NULL), RT_OK);
    cr_expect_eq(id, ESI_PLANNER_LIVE_MAX);
    cr_expect_eq(esi_planner_add(play.planner, &id, &err), RT_RESOURCE_EXHAUSTED);
    cr_expect(strstr(err.message, "1000 ESIs"), "%s", err.message);
    esi_planner_forget(play.planner, 5);
    esi_planner_ended(play.planner, 5);
    esi_planner_ended(play.planner, 5);
    cr_expect_eq(esi_planner_add(play.planner, &id, NULL), RT_OK);
    cr_expect_eq(id, ESI_PLANNER_LIVE_MAX + 1);
    cr_expect_eq(esi_planner_list(play.planner, ids, 2), ESI_PLANNER_LIVE_MAX + 1);
    cr_expect_eq(ids[1], 2);
    esi_planner_forget(play.planner, 5);
    cr_expect_eq(esi_planner_list(play.planner, ids, 2), ESI_PLANNER_LIVE_MAX);
    play_deinit(&play);
}

Test(planner, names)
{
    for (int i = ESI_POLICY_PARALLEL; i <= ESI_POLICY_HRRN; i++)
        cr_expect_str_eq(esi_policy_names[i], ((const char *const[]){"parallel", "fifo", "sjf-sd",
                                                                     "sjf-cd", "hrrn"})[i]);
    cr_expect_null(esi_policy_names[ESI_POLICY_HRRN + 1]);
    cr_expect_str_eq(esi_plan_state_name((enum esi_plan_state)99), "?");
    cr_expect_str_eq(esi_event_kind_name((enum esi_event_kind)99), "?");
}
