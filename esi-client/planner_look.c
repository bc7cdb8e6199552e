/*
 * Looking at a planner, and the names of what is seen: see planner.h. Changes nothing but the marks
 * of the search for cycles. The planner's thread.
 */
#include "esi-client/planner_state.h"

const char *const esi_policy_names[] = {
    [ESI_POLICY_PARALLEL] = "parallel", [ESI_POLICY_FIFO] = "fifo", [ESI_POLICY_SJF_SD] = "sjf-sd",
    [ESI_POLICY_SJF_CD] = "sjf-cd",     [ESI_POLICY_HRRN] = "hrrn", NULL,
};

const char *esi_plan_state_name(enum esi_plan_state state)
{
    static const char *const names[] = {
        [ESI_PLAN_NEW] = "new",           [ESI_PLAN_READY] = "ready",
        [ESI_PLAN_RUNNING] = "running",   [ESI_PLAN_BLOCKED] = "blocked",
        [ESI_PLAN_FINISHED] = "finished",
    };

    return (size_t)state < RT_ARRAY_SIZE(names) ? names[state] : "?";
}

const char *esi_event_kind_name(enum esi_event_kind kind)
{
    static const char *const names[] = {
        [ESI_EVENT_READY] = "ready",         [ESI_EVENT_RUNNING] = "running",
        [ESI_EVENT_PREEMPTED] = "preempted", [ESI_EVENT_BLOCKED] = "blocked",
        [ESI_EVENT_FINISHED] = "finished",
    };

    return (size_t)kind < RT_ARRAY_SIZE(names) ? names[kind] : "?";
}

bool esi_planner_find(const struct esi_planner *planner, uint32_t id, struct esi_plan *ret_plan)
{
    const struct esi *esi = esi_plan_find(planner, id);

    if (!esi)
        return false;
    *ret_plan = esi->plan;
    ret_plan->waited = esi->plan.state == ESI_PLAN_READY ? planner->clock - esi->ready_at : 0;
    ret_plan->is_waiting = esi->wait.key != NULL;
    ret_plan->key = esi->wait.key ? esi_key_name(esi->wait.key) : (struct rt_bytes){0};
    return true;
}

size_t esi_planner_list(const struct esi_planner *planner, uint32_t *ids, size_t max)
{
    size_t n = 0;

    for (const struct esi *esi = planner->by_id; esi; esi = esi->hh.next, n++)
        if (n < max)
            ids[n] = esi->plan.id;
    return n;
}

size_t esi_planner_waiters(const struct esi_planner *planner, struct rt_bytes name, uint32_t *ids,
                           size_t max)
{
    const struct esi_key *key = esi_keys_find(&planner->keys, name);
    size_t n = 0;

    if (!key)
        return 0;
    rt_list_for_each (node, &key->waiters) {
        if (n < max)
            ids[n] = RT_LIST_ENTRY(node, struct esi_wait, link)->id;
        n++;
    }
    return n;
}

bool esi_planner_holder(const struct esi_planner *planner, struct rt_bytes name, uint32_t *ret_id)
{
    const struct esi_key *key = esi_keys_find(&planner->keys, name);

    if (!key || key->holder == ESI_KEY_NOBODY)
        return false;
    *ret_id = key->holder;
    return true;
}

static struct esi *waits_for(const struct esi_planner *planner, const struct esi *esi)
{
    const struct esi_key *key = esi->wait.key;

    if (!key || esi->plan.state != ESI_PLAN_BLOCKED || key->holder == ESI_KEY_NOBODY)
        return NULL;
    return esi_plan_find(planner, key->holder);
}

/* Everybody waits for at most one: a walk that comes back to itself has found a cycle, and no step
 * is walked twice. */
static void mark_cycles(const struct esi_planner *planner)
{
    size_t visit = 0;

    for (struct esi *esi = planner->by_id; esi; esi = esi->hh.next) {
        esi->visit = 0;
        esi->is_in_cycle = false;
    }
    for (struct esi *from = planner->by_id; from; from = from->hh.next) {
        struct esi *esi = from;

        visit++;
        for (; esi && esi->visit == 0; esi = waits_for(planner, esi))
            esi->visit = visit;
        for (; esi && esi->visit == visit && !esi->is_in_cycle; esi = waits_for(planner, esi))
            esi->is_in_cycle = true;
    }
}

size_t esi_planner_deadlock(const struct esi_planner *planner, uint32_t *ids, size_t max)
{
    size_t n = 0;

    mark_cycles(planner);
    for (const struct esi *esi = planner->by_id; esi; esi = esi->hh.next) {
        if (esi->is_in_cycle && n < max)
            ids[n] = esi->plan.id;
        n += esi->is_in_cycle;
    }
    return n;
}

uint64_t esi_planner_clock(const struct esi_planner *planner)
{
    return planner->clock;
}

struct esi_event *esi_planner_take_event(struct esi_planner *planner)
{
    struct rt_list *node = rt_list_pop_front(&planner->events);

    return node ? RT_LIST_ENTRY(node, struct esi_event, link) : NULL;
}
