#include "tests/sim/queue.h"

#include <criterion/criterion.h>

#include "runtime/base/compiler.h"
#include "tests/support/check.h"

TestSuite(queue, .fini = test_alloc_expect_none);

static unsigned n_run;
static unsigned n_dropped;

static void on_run(void *ctx)
{
    n_run++;
}

static void on_drop(void *ctx)
{
    n_dropped++;
}

Test(queue, gives_events_by_time_and_then_by_insertion)
{
    static const uint64_t times[] = {5, 3, 9, 3, 1, 5, 3, 700, 2};
    struct sim_queue queue = {0};
    struct sim_event event;
    struct sim_event last = {0};
    unsigned n = 0;

    for (size_t i = 0; i < RT_ARRAY_SIZE(times); i++)
        sim_queue_push(&queue, times[i], on_run, NULL, NULL);
    for (; sim_queue_pop(&queue, &event); n++) {
        cr_expect(event.at_us > last.at_us || n == 0 ||
                  (event.at_us == last.at_us && event.order > last.order));
        last = event;
    }
    cr_expect_eq(n, RT_ARRAY_SIZE(times));
    sim_queue_deinit(&queue);
}

Test(queue, keeps_order_across_growth)
{
    struct sim_queue queue = {0};
    struct sim_event event;

    for (uint64_t i = 0; i < 5000; i++)
        sim_queue_push(&queue, (i * 7919) % 5000, on_run, NULL, NULL);
    for (uint64_t i = 0; i < 5000; i++) {
        cr_assert(sim_queue_pop(&queue, &event));
        cr_assert_eq(event.at_us, i);
    }
    cr_expect_not(sim_queue_pop(&queue, &event));
    sim_queue_deinit(&queue);
}

Test(queue, drops_what_is_left)
{
    struct sim_queue queue = {0};

    sim_queue_push(&queue, 1, on_run, on_drop, NULL);
    sim_queue_push(&queue, 2, on_run, NULL, NULL);
    sim_queue_deinit(&queue);
    cr_expect_eq(n_dropped, 1);
    cr_expect_eq(n_run, 0);
    cr_expect_eq(queue.n_events, 0);
}
