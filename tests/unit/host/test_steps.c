/*
 * What a step leaves behind: log lines, transactions in order, wake-ups, readers under the lock;
 * and what is lost when the store goes first.
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/store/memory.h"
#include "tests/support/check.h"
#include "tests/unit/host/rig.h"

TestSuite(steps, .fini = test_alloc_expect_none, .timeout = 50);

static struct host_rig rig;
static struct host_node *const node = &rig.nodes[0];
static struct store *store;

static void set_up(enum fake_mode mode)
{
    host_rig_init(&rig, 1);
    node->core.mode = mode;
    store = store_memory_new(host_txn_done, node->host);
    host_set_store(node->host, store);
}

static void tear_down(void)
{
    host_rig_stop(&rig);
    host_rig_deinit(&rig);
    store = store_memory_free(store);
}

static bool note_row(struct rt_bytes key, struct rt_bytes value, void *ctx)
{
    (void)key;
    (void)value;
    (*(unsigned *)ctx)++;
    return true;
}

static unsigned n_rows(void)
{
    unsigned n = 0;

    cr_assert_eq(store_range(store, (struct rt_bytes){0}, note_row, NULL, &n, NULL), RT_OK);
    return n;
}

/* ---- events ---- */

struct telling {
    unsigned n;
    enum rt_log_level level;
};

static void tell(void *pointer, void *argument)
{
    const struct telling *telling = argument;
    struct fake_core *core = pointer;

    for (unsigned i = 1; i <= telling->n; i++)
        model_effects_tell(&core->effects, telling->level, "event=told percent=100%%s n=%u", i);
}

/* The lines that a step with these events writes; in static memory. */
static const char *lines_of(unsigned n, enum rt_log_level level)
{
    static char text[65536];
    struct telling telling = {.n = n, .level = level};
    int kept = dup(STDERR_FILENO);
    int ends[2];
    ssize_t size;

    cr_assert_eq(pipe2(ends, O_NONBLOCK), 0);
    cr_assert_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    host_node_step(node, tell, &telling);
    cr_assert_eq(dup2(kept, STDERR_FILENO), STDERR_FILENO);
    size = read(ends[0], text, sizeof(text) - 1);
    text[size > 0 ? size : 0] = '\0';
    (void)close(kept);
    (void)close(ends[0]);
    (void)close(ends[1]);
    return text;
}

static unsigned count(const char *text, const char *part)
{
    unsigned n = 0;

    for (const char *found = text; (found = strstr(found, part)) != NULL; found++)
        n++;
    return n;
}

Test(steps, events_are_log_lines_in_order)
{
    const char *lines;

    set_up(FAKE_NOW);
    rt_log_init("unit", RT_LOG_WARNING);
    lines = lines_of(2, RT_LOG_ERROR);
    cr_assert_eq(count(lines, "\n"), 2, "%s", lines);
    cr_assert_eq(count(lines, "level=error service=unit"), 2, "%s", lines);
    cr_assert_lt(strstr(lines, "event=told percent=100%s n=1\n"),
                 strstr(lines, "event=told percent=100%s n=2\n"));
    cr_assert_str_eq(lines_of(2, RT_LOG_INFO), "", "below the level");
    cr_assert_str_eq(lines_of(0, RT_LOG_ERROR), "");
    tear_down();
}

Test(steps, events_past_the_limit_are_counted)
{
    const char *lines;

    set_up(FAKE_NOW);
    rt_log_init("unit", RT_LOG_WARNING);
    lines = lines_of(MODEL_EVENTS_MAX, RT_LOG_WARNING);
    cr_assert_eq(count(lines, "event=told"), MODEL_EVENTS_MAX, "%s", lines);
    cr_assert_eq(count(lines, "event=events_dropped"), 0);
    lines = lines_of(MODEL_EVENTS_MAX + 3, RT_LOG_WARNING);
    cr_assert_eq(count(lines, "event=told"), MODEL_EVENTS_MAX, "%s", lines);
    cr_assert_eq(count(lines, "level=warning"), MODEL_EVENTS_MAX + 1);
    cr_assert_eq(count(lines, "event=events_dropped n=3\n"), 1, "%s", lines);
    tear_down();
}

/* ---- transactions ---- */

Test(steps, a_call_waits_for_its_transaction)
{
    struct client_call call;

    set_up(FAKE_STORE);
    client_call_start(&rig, &call, MODEL_CALL_SET, 1, 20000);
    latch_wait(&node->core.submits, 1);
    host_node_settle(node);
    cr_assert_eq(latch_count(&call.done), 0);
    cr_assert_eq(store_memory_n_queued(store), 1);
    cr_assert_eq(store_memory_run(store), 1);
    client_call_wait(&call);
    cr_assert_eq(call.response.code, RT_OK);
    client_call_deinit(&call);
    cr_assert_eq(node->core.n_committed, 1);
    tear_down();
}

/* From the queue thread and from this one; the core checks the order. */
Test(steps, transactions_reach_the_store_in_order)
{
    struct client_call calls[20];

    set_up(FAKE_STORE);
    for (unsigned i = 0; i < 20; i++)
        client_call_start(&rig, &calls[i], MODEL_CALL_SET, i + 1, 20000);
    for (unsigned i = 0; i < 20; i++)
        host_node_step(node, fake_make_txn, NULL);
    latch_wait(&node->core.submits, 20);
    host_node_settle(node);
    cr_assert_eq(store_memory_n_queued(store), 40);
    cr_assert_eq(store_memory_run(store), 40);
    cr_assert_eq(n_rows(), 40);
    cr_assert_eq(node->core.n_committed, 40);
    for (unsigned i = 0; i < 20; i++) {
        client_call_wait(&calls[i]);
        cr_assert_eq(calls[i].response.code, RT_OK);
        client_call_deinit(&calls[i]);
    }
    tear_down();
}

Test(steps, a_failed_commit_reaches_the_core)
{
    set_up(FAKE_NOW);
    store_memory_fail_after(store, STORE_MEMORY_UNKNOWN_NOT_APPLIED, 0, 1);
    host_node_step(node, fake_make_txn, NULL);
    cr_assert_eq(store_memory_run(store), 1);
    cr_assert_eq(node->core.n_not_committed, 1);
    tear_down();
}

Test(steps, transactions_after_the_store_was_dropped_are_lost)
{
    set_up(FAKE_NOW);
    node->core.n_chained_txns = 3;
    host_node_step(node, fake_make_txn, NULL);
    host_drop_store(node->host);
    cr_assert_eq(store_memory_run(store), 1);
    host_node_step(node, fake_make_txn, NULL);
    cr_assert_eq(store_memory_n_queued(store), 0);
    cr_assert_eq(n_rows(), 1);
    tear_down();
}

Test(steps, the_core_is_woken_when_it_asked)
{
    uint64_t now_us;
    uint64_t when_us;

    set_up(FAKE_NOW);
    now_us = rt_env_now_us(node->core.env);
    when_us = now_us + 3600000000;
    host_node_step(node, fake_wake_at, &when_us);
    when_us = now_us + 20000;
    host_node_step(node, fake_wake_at, &when_us);
    latch_wait(&node->core.ticks, 1);
    host_node_settle(node);
    cr_assert_geq(node->core.last_tick_us, when_us);
    when_us = now_us; /* already past */
    host_node_step(node, fake_wake_at, &when_us);
    latch_wait(&node->core.ticks, 2);
    tear_down();
}

/* The timer is still armed for the time that nobody wants any more. */
Test(steps, a_wakeup_that_was_put_off_comes_at_its_new_time)
{
    uint64_t now_us;
    uint64_t when_us;

    set_up(FAKE_NOW);
    now_us = rt_env_now_us(node->core.env);
    when_us = now_us + 20000;
    host_node_step(node, fake_wake_at, &when_us);
    when_us = now_us + 60000;
    host_node_step(node, fake_wake_at, &when_us);
    latch_wait(&node->core.ticks, 1);
    host_node_settle(node);
    cr_assert_geq(node->core.last_tick_us, when_us);
    tear_down();
}

static void count_steps(void *core, void *argument)
{
    (void)core;
    *(unsigned *)argument = latch_count(&node->steps);
}

Test(steps, after_step_runs_after_steps_and_not_after_reads)
{
    unsigned before;
    unsigned after;
    uint64_t never = RT_NEVER;

    set_up(FAKE_NOW);
    host_read(node->host, count_steps, &before);
    host_read(node->host, count_steps, &after);
    cr_assert_eq(before, after);
    host_node_step(node, fake_wake_at, &never);
    host_read(node->host, count_steps, &after);
    cr_assert_eq(after, before + 1);
    tear_down();
}

Test(steps, nothing_is_freed_twice)
{
    cr_assert_null(host_free(NULL));
}
