/*
 * Planner under any sequence of events: orders go only to those that can carry them out, one at a
 * time but under PARALLEL, and whoever waits is in exactly one queue. Four bytes are one event.
 * libFuzzer target; replay_main.c runs the corpus through it as an ordinary test.
 */
#include <stdlib.h>

#include "esi-client/planner.h"
#include "runtime/base/alloc.h"
#include "tests/fuzz/fuzz.h"

enum {
    N_ESIS = 24,
    N_KEYS = 6
};

struct world {
    struct esi_planner *planner;
    enum esi_policy policy;
    bool has_line[N_ESIS + 1]; /* by id */
    uint32_t n_esis;
};

static void check(bool holds)
{
    if (!holds)
        abort();
}

static struct rt_bytes key_of(uint8_t number)
{
    static const char names[N_KEYS + 1] = "klmnop";

    return rt_bytes_of(names + number % N_KEYS, 1);
}

static void check_world(const struct world *world)
{
    uint32_t ids[N_ESIS];
    size_t n_running = 0;
    size_t n_waiting = 0;
    size_t n_queued = 0;

    check(esi_planner_list(world->planner, ids, N_ESIS) == world->n_esis);
    for (uint32_t id = 1; id <= world->n_esis; id++) {
        struct esi_plan plan;

        check(esi_planner_find(world->planner, id, &plan));
        check(!world->has_line[id] || plan.state == ESI_PLAN_RUNNING);
        check(plan.state != ESI_PLAN_BLOCKED || plan.is_waiting || plan.is_ending);
        check(!plan.is_waiting ||
              (!plan.is_ending && (plan.state == ESI_PLAN_BLOCKED || world->has_line[id])));
        n_running += plan.state == ESI_PLAN_RUNNING;
        n_waiting += plan.is_waiting;
    }
    check(n_running <= 1 || world->policy == ESI_POLICY_PARALLEL);
    for (uint8_t key = 0; key < N_KEYS; key++)
        n_queued += esi_planner_waiters(world->planner, key_of(key), ids, N_ESIS);
    check(n_queued == n_waiting);
    check(esi_planner_deadlock(world->planner, ids, N_ESIS) <= n_waiting);
}

static void take_order(struct world *world)
{
    struct esi_order order;

    if (!esi_planner_next(world->planner, &order))
        return;
    check(order.id >= 1 && order.id <= world->n_esis && !world->has_line[order.id]);
    if (order.kind == ESI_ORDER_END)
        return;
    check(!esi_planner_is_paused(world->planner));
    world->has_line[order.id] = true;
}

static void do_line(struct world *world, uint32_t id, const uint8_t *event)
{
    struct esi_line line = {.kind = (enum esi_line_kind)(event[3] % 4)};

    if (id > world->n_esis || !world->has_line[id])
        return;
    if (line.kind != ESI_LINE_DONE)
        line.key = key_of(event[2]);
    line.is_last = event[3] >= 224 && line.kind != ESI_LINE_BLOCKED;
    world->has_line[id] = false;
    esi_planner_line_done(world->planner, id, &line);
}

static void add(struct world *world)
{
    uint32_t id = 0;

    if (world->n_esis == N_ESIS)
        return;
    check(esi_planner_add(world->planner, &id, NULL) == RT_OK);
    check(id == ++world->n_esis);
}

/* By a person. */
static void command(struct world *world, uint32_t id, const uint8_t *event)
{
    enum esi_block effect;
    uint32_t woken;

    switch (event[3] % 4) {
    case 0:
        esi_planner_pause(world->planner, event[2] % 2 == 0);
        break;
    case 1:
        (void)!esi_planner_kill(world->planner, id, NULL);
        break;
    case 2:
        (void)!esi_planner_block(world->planner, key_of(event[2]), id, &effect, NULL);
        break;
    default:
        (void)!esi_planner_unblock(world->planner, key_of(event[2]), &woken, NULL);
        break;
    }
}

static void carry_out(struct world *world, const uint8_t *event)
{
    uint32_t id = 1 + event[1] % N_ESIS;

    switch (event[0] % 8) {
    case 0:
        add(world);
        break;
    case 1:
        esi_planner_opened(world->planner, id);
        break;
    case 2:
        command(world, id, event);
        break;
    case 3:
        esi_planner_woken(world->planner, id);
        break;
    case 4:
        esi_planner_ended(world->planner, id);
        if (id <= world->n_esis)
            world->has_line[id] = false;
        break;
    case 5:
        take_order(world);
        break;
    default:
        do_line(world, id, event);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct esi_planner_config config = {.alpha = 0.5, .initial_estimate = 3};
    struct world world = {.policy = size > 0 ? (enum esi_policy)(data[0] % 5) : 0};
    struct esi_event *event;

    config.policy = world.policy;
    world.planner = esi_planner_new(&config);
    (void)!esi_planner_block_at_start(world.planner, key_of(0), NULL);
    for (size_t at = 1; at + 4 <= size; at += 4) {
        carry_out(&world, data + at);
        check_world(&world);
        while ((event = esi_planner_take_event(world.planner)))
            (void)rt_free(event);
    }
    world.planner = esi_planner_free(world.planner);
    return 0;
}
