/*
 * Moves of one ESI: see planner_state.h, which has the invariants. The planner's thread.
 */
#include "esi-client/planner_state.h"

struct esi *esi_plan_find(const struct esi_planner *planner, uint32_t id)
{
    struct esi *esi;

    HASH_FIND(hh, planner->by_id, &id, sizeof(id), esi);
    return esi;
}

double esi_plan_remainder(const struct esi *esi)
{
    return esi->plan.estimate - (double)esi->plan.burst;
}

void esi_plan_tell(struct esi_planner *planner, const struct esi *esi, enum esi_event_kind kind)
{
    const struct esi_key *key = kind == ESI_EVENT_BLOCKED ? esi->wait.key : NULL;
    size_t size = key ? key->size : 0;
    struct esi_event *event = rt_xalloc(sizeof(*event) + size);

    event->kind = kind;
    event->id = esi->plan.id;
    event->clock = planner->clock;
    event->estimate = esi_plan_remainder(esi);
    if (key)
        event->key = rt_bytes_of(memcpy(event + 1, key->name, size), size);
    rt_list_push_back(&planner->events, &event->link);
}

/* ---- states ---------------------------------------------------------------------------------- */

void esi_plan_enter_ready(struct esi_planner *planner, struct esi *esi, enum esi_event_kind kind)
{
    esi->plan.state = ESI_PLAN_READY;
    esi->ready_at = planner->clock;
    rt_list_remove(&esi->place);
    rt_list_push_back(&planner->ready, &esi->place);
    if (planner->running == esi)
        planner->running = NULL;
    esi_plan_tell(planner, esi, kind);
}

void esi_plan_enter_blocked(struct esi_planner *planner, struct esi *esi)
{
    esi->plan.state = ESI_PLAN_BLOCKED;
    rt_list_remove(&esi->place);
    if (planner->running == esi)
        planner->running = NULL;
    esi_plan_tell(planner, esi, ESI_EVENT_BLOCKED);
}

void esi_plan_enter_running(struct esi_planner *planner, struct esi *esi)
{
    esi->plan.state = ESI_PLAN_RUNNING;
    rt_list_remove(&esi->place);
    rt_list_push_back(&planner->idle, &esi->place);
    if (planner->config.policy != ESI_POLICY_PARALLEL)
        planner->running = esi;
    esi_plan_tell(planner, esi, ESI_EVENT_RUNNING);
}

void esi_plan_end_wait(struct esi *esi)
{
    esi_keys_leave(&esi->wait);
    esi->repeats = esi->repeats || esi->waits_by_line;
    esi->waits_by_line = false;
    esi->is_called = false;
}

void esi_plan_wake(struct esi_planner *planner, struct esi *esi)
{
    struct esi_key *key = esi->wait.key;

    if (esi->waits_by_line && key->woken == ESI_KEY_NOBODY) {
        key->woken = esi->plan.id;
        esi->woken_for = key;
    }
    esi_plan_end_wait(esi);
    if (esi->plan.state != ESI_PLAN_BLOCKED)
        return;
    esi->plan.estimate = planner->config.alpha * (double)esi->plan.burst +
                         (1 - planner->config.alpha) * esi->plan.estimate;
    esi->plan.burst = 0;
    esi_plan_enter_ready(planner, esi, ESI_EVENT_READY);
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* A free key is for its first waiter. */
static void offer(struct esi_planner *planner, struct esi_key *key)
{
    struct esi_wait *first = esi_keys_first(key);

    if (first && key->holder == ESI_KEY_NOBODY && key->woken == ESI_KEY_NOBODY)
        esi_plan_wake(planner, RT_CONTAINER_OF(first, struct esi, wait));
    esi_keys_tidy(&planner->keys, key);
}

void esi_plan_forget_woken(struct esi *esi)
{
    if (esi->woken_for)
        esi->woken_for->woken = ESI_KEY_NOBODY;
    esi->woken_for = NULL;
}

void esi_plan_pass_on(struct esi_planner *planner, struct esi *esi)
{
    struct esi_key *key = esi->woken_for;

    esi_plan_forget_woken(esi);
    if (key)
        offer(planner, key);
}

void esi_plan_set_holder(struct esi_key *key, uint32_t id, struct rt_list *held)
{
    rt_list_remove(&key->held);
    key->holder = id;
    if (held)
        rt_list_push_back(held, &key->held);
}

void esi_plan_take_key(struct esi_planner *planner, struct esi_key *key, struct esi *esi)
{
    struct esi *woken = key->woken == ESI_KEY_NOBODY ? NULL : esi_plan_find(planner, key->woken);

    if (woken)
        esi_plan_forget_woken(woken);
    if (key->holder != esi->plan.id)
        esi_plan_set_holder(key, esi->plan.id, &esi->held);
}

void esi_plan_free_key(struct esi_planner *planner, struct esi_key *key)
{
    esi_plan_set_holder(key, ESI_KEY_NOBODY, NULL);
    offer(planner, key);
}

void esi_plan_wait_for(struct esi_planner *planner, struct esi_key *key, struct esi *esi,
                       bool by_line)
{
    if (by_line && !esi->repeats)
        esi->line_ticket = ++planner->last_ticket;
    esi->wait.ticket = by_line ? esi->line_ticket : ++planner->last_ticket;
    esi->waits_by_line = by_line;
    esi_keys_wait(key, &esi->wait);
}

void esi_plan_drop_wait(struct esi_planner *planner, struct esi *esi)
{
    struct esi_key *key = esi->wait.key;

    if (!key)
        return;
    esi_plan_end_wait(esi);
    esi_keys_tidy(&planner->keys, key);
}
