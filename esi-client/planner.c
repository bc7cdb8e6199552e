/*
 * Planner: see planner.h; planner_state.h has the invariants. Who runs next, what comes of a line,
 * and what a person orders. One thread.
 */
#include "esi-client/planner.h"

#include <math.h>

#include "esi-client/planner_state.h"

/* ---- orders ---------------------------------------------------------------------------------- */

/* The longer it has waited for its size, the greater. */
static double response_ratio(const struct esi_planner *planner, const struct esi *esi)
{
    double waited = (double)(planner->clock - esi->ready_at);

    if (waited <= 0)
        return 1;
    return esi->plan.estimate > 0 ? 1 + waited / esi->plan.estimate : INFINITY;
}

static bool goes_before(const struct esi_planner *planner, const struct esi *a, const struct esi *b)
{
    switch (planner->config.policy) {
    case ESI_POLICY_PARALLEL:
    case ESI_POLICY_FIFO:
        return false;
    case ESI_POLICY_SJF_SD:
    case ESI_POLICY_SJF_CD:
        return esi_plan_remainder(a) < esi_plan_remainder(b);
    case ESI_POLICY_HRRN:
        return response_ratio(planner, a) > response_ratio(planner, b);
    }
    return false;
}

static struct esi *choose(const struct esi_planner *planner)
{
    struct esi *best = NULL;

    rt_list_for_each (node, &planner->ready) {
        struct esi *esi = RT_LIST_ENTRY(node, struct esi, place);

        if (!best || goes_before(planner, esi, best))
            best = esi;
    }
    return best;
}

static void choose_who_runs(struct esi_planner *planner)
{
    struct esi *running = planner->running;
    struct esi *best;

    if (running && planner->config.policy != ESI_POLICY_SJF_CD)
        return;
    if (running && (running->has_line || running->plan.is_ending))
        return;
    best = choose(planner);
    if (!best || (running && esi_plan_remainder(best) >= esi_plan_remainder(running)))
        return;
    if (running)
        esi_plan_enter_ready(planner, running, ESI_EVENT_PREEMPTED);
    esi_plan_enter_running(planner, best);
}

bool esi_planner_next(struct esi_planner *planner, struct esi_order *ret_order)
{
    struct rt_list *node = rt_list_pop_front(&planner->to_end);
    struct esi *esi;

    if (node) {
        esi = RT_LIST_ENTRY(node, struct esi, place);
        esi->ends = true;
        *ret_order = (struct esi_order){ESI_ORDER_END, esi->plan.id};
        return true;
    }
    if (planner->is_paused)
        return false;
    choose_who_runs(planner);
    node = rt_list_pop_front(&planner->idle);
    if (!node)
        return false;
    esi = RT_LIST_ENTRY(node, struct esi, place);
    esi->has_line = true;
    *ret_order = (struct esi_order){ESI_ORDER_LINE, esi->plan.id};
    return true;
}

/* ---- what came of them ----------------------------------------------------------------------- */

static void block_line(struct esi_planner *planner, struct esi *esi, struct esi_key *key)
{
    if (key->holder == esi->plan.id)
        esi_plan_set_holder(key, ESI_KEY_NOBODY, NULL);
    /* What a line asks for comes before what a person asked. */
    if (esi->wait.key == key)
        esi_plan_end_wait(esi);
    else
        esi_plan_drop_wait(planner, esi);
    esi_plan_wait_for(planner, key, esi, true);
}

static void follow_locks(struct esi_planner *planner, struct esi *esi, const struct esi_line *line)
{
    struct esi_key *was_for = esi->woken_for;

    /* It has not asked for that key again: it failed before. */
    if (was_for &&
        (line->kind == ESI_LINE_DONE || !rt_bytes_equal(line->key, esi_key_name(was_for))))
        esi_plan_pass_on(planner, esi);
    esi_plan_forget_woken(esi);
    switch (line->kind) {
    case ESI_LINE_DONE:
        break;
    case ESI_LINE_GOT:
        esi_plan_take_key(planner, esi_keys_obtain(&planner->keys, line->key), esi);
        break;
    case ESI_LINE_FREED:
        esi_plan_free_key(planner, esi_keys_obtain(&planner->keys, line->key));
        break;
    case ESI_LINE_BLOCKED:
        block_line(planner, esi, esi_keys_obtain(&planner->keys, line->key));
        break;
    }
    esi->repeats = esi->repeats && line->kind == ESI_LINE_BLOCKED;
}

/* Its line, or its end, will tell who gets the key. */
static bool will_tell(const struct esi_planner *planner, const struct esi_key *key)
{
    const struct esi *holder =
        key->holder == ESI_KEY_NOBODY ? NULL : esi_plan_find(planner, key->holder);

    return holder && (holder->has_line || holder->plan.is_ending);
}

void esi_planner_woken(struct esi_planner *planner, uint32_t id)
{
    struct esi *esi = esi_plan_find(planner, id);
    struct esi_key *key = esi ? esi->wait.key : NULL;

    if (!key || !esi->waits_by_line ||
        (key->holder == ESI_KEY_NOBODY && key->woken != ESI_KEY_NOBODY))
        return;
    if (will_tell(planner, key)) {
        esi->is_called = true;
        return;
    }
    esi_plan_wake(planner, esi);
    esi_keys_tidy(&planner->keys, key);
}

/* A line or an ESI ended, and did not free what the coordinator says is free. */
static void hear_calls(struct esi_planner *planner)
{
    for (struct esi *esi = planner->by_id; esi; esi = esi->hh.next) {
        bool is_called = esi->is_called;

        esi->is_called = false;
        if (is_called)
            esi_planner_woken(planner, esi->plan.id);
    }
}

void esi_planner_line_done(struct esi_planner *planner, uint32_t id, const struct esi_line *line)
{
    struct esi *esi = esi_plan_find(planner, id);

    rt_assert(esi && esi->has_line);
    esi->has_line = false;
    planner->clock++;
    esi->plan.burst++;
    esi->plan.lines++;
    follow_locks(planner, esi, line);
    if (line->is_last) {
        esi->plan.is_ending = true;
        esi->ends = true;
    }
    if (esi->plan.is_ending) {
        esi_plan_drop_wait(planner, esi);
        if (!esi->ends)
            rt_list_push_back(&planner->to_end, &esi->place);
    } else if (esi->wait.key) {
        esi_plan_enter_blocked(planner, esi);
    } else {
        rt_list_push_back(&planner->idle, &esi->place);
    }
    hear_calls(planner);
}

void esi_planner_opened(struct esi_planner *planner, uint32_t id)
{
    struct esi *esi = esi_plan_find(planner, id);

    if (esi && esi->plan.state == ESI_PLAN_NEW && !esi->plan.is_ending)
        esi_plan_enter_ready(planner, esi, ESI_EVENT_READY);
}

void esi_planner_ended(struct esi_planner *planner, uint32_t id)
{
    struct esi *esi = esi_plan_find(planner, id);
    struct rt_list *node;

    if (!esi || esi->plan.state == ESI_PLAN_FINISHED)
        return;
    esi->plan.state = ESI_PLAN_FINISHED;
    esi->plan.is_ending = false;
    esi->has_line = false;
    rt_list_remove(&esi->place);
    if (planner->running == esi)
        planner->running = NULL;
    planner->n_live--;
    esi_plan_tell(planner, esi, ESI_EVENT_FINISHED);
    esi_plan_drop_wait(planner, esi);
    esi_plan_pass_on(planner, esi);
    while ((node = rt_list_pop_front(&esi->held)))
        esi_plan_free_key(planner, RT_LIST_ENTRY(node, struct esi_key, held));
    hear_calls(planner);
}

void esi_planner_forget(struct esi_planner *planner, uint32_t id)
{
    struct esi *esi = esi_plan_find(planner, id);

    if (!esi || esi->plan.state != ESI_PLAN_FINISHED)
        return;
    HASH_DEL(planner->by_id, esi);
    (void)rt_free(esi);
}

/* ---- what a person orders -------------------------------------------------------------------- */

void esi_planner_pause(struct esi_planner *planner, bool is_paused)
{
    planner->is_paused = is_paused;
}

bool esi_planner_is_paused(const struct esi_planner *planner)
{
    return planner->is_paused;
}

/* NULL: there is none, and *ret_code says why. */
static struct esi *find_live(const struct esi_planner *planner, uint32_t id, enum rt_code *ret_code,
                             struct rt_error *err)
{
    struct esi *esi = esi_plan_find(planner, id);

    *ret_code = RT_OK;
    if (!esi)
        *ret_code = rt_fail(err, RT_NOT_FOUND, "there is no ESI %u", (unsigned)id);
    else if (esi->plan.state == ESI_PLAN_FINISHED || esi->plan.is_ending)
        *ret_code = rt_fail(err, RT_FAILED_PRECONDITION, "ESI %u %s", (unsigned)id,
                            esi->plan.is_ending ? "is ending" : "has finished");
    else
        return esi;
    return NULL;
}

enum rt_code esi_planner_kill(struct esi_planner *planner, uint32_t id, struct rt_error *err)
{
    enum rt_code code;
    struct esi *esi = find_live(planner, id, &code, err);

    if (!esi)
        return code;
    esi->plan.is_ending = true;
    esi_plan_drop_wait(planner, esi);
    esi_plan_pass_on(planner, esi);
    if (esi->has_line)
        return RT_OK;
    rt_list_remove(&esi->place);
    rt_list_push_back(&planner->to_end, &esi->place);
    return RT_OK;
}

static bool is_free_for(const struct esi_key *key, const struct esi *esi)
{
    return key->holder == ESI_KEY_NOBODY && rt_list_is_empty(&key->waiters) &&
           (key->woken == ESI_KEY_NOBODY || key->woken == esi->plan.id);
}

enum rt_code esi_planner_block(struct esi_planner *planner, struct rt_bytes name, uint32_t id,
                               enum esi_block *ret_effect, struct rt_error *err)
{
    struct esi_key *key;
    enum rt_code code;
    struct esi *esi = find_live(planner, id, &code, err);

    if (!esi)
        return code;
    if (esi->wait.key)
        return rt_fail(err, RT_FAILED_PRECONDITION, "ESI %u waits for a key already", (unsigned)id);
    key = esi_keys_obtain(&planner->keys, name);
    /* Asked for again, as by a GET: nobody waits for itself. */
    if (key->holder == esi->plan.id) {
        *ret_effect = ESI_BLOCK_ASSIGNED;
        return RT_OK;
    }
    if (is_free_for(key, esi)) {
        esi_plan_take_key(planner, key, esi);
        *ret_effect = ESI_BLOCK_ASSIGNED;
        return RT_OK;
    }
    esi_plan_wait_for(planner, key, esi, false);
    *ret_effect = esi->has_line ? ESI_BLOCK_AT_BOUNDARY : ESI_BLOCK_QUEUED;
    if (esi->has_line)
        return RT_OK;
    esi_plan_enter_blocked(planner, esi);
    esi_plan_pass_on(planner, esi);
    return RT_OK;
}

enum rt_code esi_planner_block_at_start(struct esi_planner *planner, struct rt_bytes name,
                                        struct rt_error *err)
{
    struct esi_key *key = esi_keys_obtain(&planner->keys, name);

    if (key->holder != ESI_KEY_NOBODY)
        return rt_fail(err, RT_FAILED_PRECONDITION, "the key is held already");
    esi_plan_set_holder(key, ESI_PLANNER_SYSTEM, NULL);
    return RT_OK;
}

enum rt_code esi_planner_unblock(struct esi_planner *planner, struct rt_bytes name,
                                 uint32_t *ret_id, struct rt_error *err)
{
    struct esi_key *key = esi_keys_find(&planner->keys, name);
    struct esi_wait *first = key ? esi_keys_first(key) : NULL;

    if (!key || (!first && key->holder != ESI_PLANNER_SYSTEM))
        return rt_fail(err, RT_NOT_FOUND, "nobody waits for the key, and it was not blocked");
    *ret_id = first ? first->id : ESI_PLANNER_SYSTEM;
    if (!first) {
        esi_plan_free_key(planner, key);
        return RT_OK;
    }
    esi_plan_wake(planner, RT_CONTAINER_OF(first, struct esi, wait));
    esi_keys_tidy(&planner->keys, key);
    return RT_OK;
}

void esi_planner_give_back(struct esi_planner *planner, struct rt_bytes name)
{
    struct esi_key *key = esi_keys_find(&planner->keys, name);

    if (key && key->holder == ESI_PLANNER_SYSTEM)
        esi_plan_free_key(planner, key);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct esi_planner *esi_planner_new(const struct esi_planner_config *config)
{
    struct esi_planner *planner = rt_xalloc(sizeof(*planner));

    planner->config = *config;
    rt_list_init(&planner->ready);
    rt_list_init(&planner->idle);
    rt_list_init(&planner->to_end);
    rt_list_init(&planner->events);
    return planner;
}

struct esi_planner *esi_planner_free(struct esi_planner *planner)
{
    struct esi *esi;
    struct esi *next;
    struct esi_event *event;

    if (!planner)
        return NULL;
    while ((event = esi_planner_take_event(planner)))
        (void)rt_free(event);
    esi_keys_deinit(&planner->keys);
    HASH_ITER (hh, planner->by_id, esi, next) {
        HASH_DEL(planner->by_id, esi);
        (void)rt_free(esi);
    }
    return rt_free(planner);
}

enum rt_code esi_planner_add(struct esi_planner *planner, uint32_t *ret_id, struct rt_error *err)
{
    struct esi *esi;

    if (planner->n_live >= ESI_PLANNER_LIVE_MAX)
        return rt_fail(err, RT_RESOURCE_EXHAUSTED, "%d ESIs are running", ESI_PLANNER_LIVE_MAX);
    if (planner->last_id >= ESI_KEY_NOBODY - 1)
        return rt_fail(err, RT_RESOURCE_EXHAUSTED, "no more ids");
    esi = rt_xalloc(sizeof(*esi));
    esi->plan.id = ++planner->last_id;
    esi->plan.estimate = planner->config.initial_estimate;
    esi->wait.id = esi->plan.id;
    rt_list_init(&esi->place);
    rt_list_init(&esi->held);
    rt_list_init(&esi->wait.link);
    planner->n_live++;
    HASH_ADD(hh, planner->by_id, plan.id, sizeof(esi->plan.id), esi);
    *ret_id = esi->plan.id;
    return RT_OK;
}
