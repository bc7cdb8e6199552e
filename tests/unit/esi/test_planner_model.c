/*
 * Planner against a naive model: arrays that are searched from one end to the other, no lists, no
 * graph walk. Any sequence of numbers is a sequence of steps.
 */
#include <math.h>

#include "esi-client/planner.h"
#include "runtime/base/alloc.h"
#include "tests/support/check.h"
#include "tests/support/property.h"

TestSuite(planner_model, .fini = test_alloc_expect_none);

enum {
    N_ESIS = 9, /* ids from 1 */
    N_KEYS = 4,
    NOBODY = -1,
    SYSTEM = 0
};

struct naive_esi {
    enum esi_plan_state state;
    double estimate;
    uint64_t burst;
    uint64_t lines;
    bool has_line;
    bool is_ending;
    bool ends;
    int waits_for; /* key; NOBODY = none */
    bool by_line;
    bool repeats;
    int woken_for;
    bool is_called;       /* woken while the holder's line was under way */
    uint64_t ticket;      /* of the wait */
    uint64_t line_ticket; /* of the GET that waits or waited last */
    uint64_t turn;        /* place among those that are ready, idle or to be ended */
    uint64_t ready_at;
};

struct naive_key {
    int holder;
    uint64_t got; /* when the holder got it, to free in order */
};

struct naive {
    struct esi_planner_config config;
    struct naive_esi esis[N_ESIS + 1];
    struct naive_key keys[N_KEYS];
    int n_esis;
    bool is_paused;
    uint64_t clock;
    uint64_t counter;
};

static struct rt_bytes name_of(int key)
{
    static const char names[] = "klmn";

    return rt_bytes_of(names + key, 1);
}

/* ---- the model ------------------------------------------------------------------------------- */

static bool is_live(const struct naive *m, int id)
{
    return id >= 1 && id <= m->n_esis && m->esis[id].state != ESI_PLAN_FINISHED &&
           !m->esis[id].is_ending;
}

static int woken_of(const struct naive *m, int key)
{
    for (int id = 1; id <= m->n_esis; id++)
        if (m->esis[id].woken_for == key)
            return id;
    return NOBODY;
}

/* The waiter with the lowest ticket above `above`. */
static int waiter_after(const struct naive *m, int key, uint64_t above)
{
    int found = NOBODY;

    for (int id = 1; id <= m->n_esis; id++) {
        const struct naive_esi *esi = &m->esis[id];

        if (esi->waits_for == key && esi->ticket > above &&
            (found == NOBODY || esi->ticket < m->esis[found].ticket))
            found = id;
    }
    return found;
}

static void make_ready(struct naive *m, int id)
{
    m->esis[id].state = ESI_PLAN_READY;
    m->esis[id].turn = ++m->counter;
    m->esis[id].ready_at = m->clock;
}

static void stop_waiting(struct naive_esi *esi)
{
    if (esi->waits_for != NOBODY)
        esi->repeats = esi->repeats || esi->by_line;
    esi->waits_for = NOBODY;
    esi->is_called = false;
}

static void model_wake(struct naive *m, int id)
{
    struct naive_esi *esi = &m->esis[id];

    if (esi->by_line && woken_of(m, esi->waits_for) == NOBODY)
        esi->woken_for = esi->waits_for;
    stop_waiting(esi);
    if (esi->state != ESI_PLAN_BLOCKED)
        return;
    esi->estimate = m->config.alpha * (double)esi->burst + (1 - m->config.alpha) * esi->estimate;
    esi->burst = 0;
    make_ready(m, id);
}

static void offer_key(struct naive *m, int key)
{
    int first = waiter_after(m, key, 0);

    if (first != NOBODY && m->keys[key].holder == NOBODY && woken_of(m, key) == NOBODY)
        model_wake(m, first);
}

static void pass_on(struct naive *m, int id)
{
    int key = m->esis[id].woken_for;

    m->esis[id].woken_for = NOBODY;
    if (key != NOBODY)
        offer_key(m, key);
}

static void give_key(struct naive *m, int key, int id)
{
    int woken = woken_of(m, key);

    if (woken != NOBODY)
        m->esis[woken].woken_for = NOBODY;
    if (m->keys[key].holder != id)
        m->keys[key] = (struct naive_key){id, ++m->counter};
}

static void start_waiting(struct naive *m, int id, int key, bool by_line)
{
    struct naive_esi *esi = &m->esis[id];

    stop_waiting(esi);
    if (by_line && !esi->repeats)
        esi->line_ticket = ++m->counter;
    esi->ticket = by_line ? esi->line_ticket : ++m->counter;
    esi->waits_for = key;
    esi->by_line = by_line;
}

static double left(const struct naive_esi *esi)
{
    return esi->estimate - (double)esi->burst;
}

static double ratio(const struct naive *m, const struct naive_esi *esi)
{
    double waited = (double)(m->clock - esi->ready_at);

    if (m->clock == esi->ready_at)
        return 1;
    return esi->estimate > 0 ? 1 + waited / esi->estimate : INFINITY;
}

/* Whether a goes before b by the policy; by turn when neither does. */
static bool is_before(const struct naive *m, const struct naive_esi *a, const struct naive_esi *b)
{
    double x = 0;
    double y = 0;

    if (m->config.policy == ESI_POLICY_SJF_SD || m->config.policy == ESI_POLICY_SJF_CD) {
        x = left(a);
        y = left(b);
    } else if (m->config.policy == ESI_POLICY_HRRN) {
        x = -ratio(m, a);
        y = -ratio(m, b);
    }
    return x != y ? x < y : a->turn < b->turn;
}

static int best_ready(const struct naive *m)
{
    int best = NOBODY;

    for (int id = 1; id <= m->n_esis; id++) {
        const struct naive_esi *esi = &m->esis[id];

        if (esi->state == ESI_PLAN_READY && !esi->is_ending &&
            (best == NOBODY || is_before(m, esi, &m->esis[best])))
            best = id;
    }
    return best;
}

static int first_by_turn(const struct naive *m, bool is_to_end)
{
    int first = NOBODY;

    for (int id = 1; id <= m->n_esis; id++) {
        const struct naive_esi *esi = &m->esis[id];
        bool fits = is_to_end ? esi->is_ending && !esi->ends && !esi->has_line
                              : esi->state == ESI_PLAN_RUNNING && !esi->has_line && !esi->is_ending;

        if (fits && esi->state != ESI_PLAN_FINISHED &&
            (first == NOBODY || esi->turn < m->esis[first].turn))
            first = id;
    }
    return first;
}

static void model_choose(struct naive *m)
{
    int best = best_ready(m);
    int running = NOBODY;

    if (best == NOBODY)
        return;
    for (int id = 1; id <= m->n_esis && m->config.policy != ESI_POLICY_PARALLEL; id++)
        if (m->esis[id].state == ESI_PLAN_RUNNING)
            running = id;
    if (running != NOBODY) {
        if (m->config.policy != ESI_POLICY_SJF_CD || m->esis[running].has_line ||
            m->esis[running].is_ending || left(&m->esis[best]) >= left(&m->esis[running]))
            return;
        make_ready(m, running);
    }
    m->esis[best].state = ESI_PLAN_RUNNING;
    m->esis[best].turn = ++m->counter;
}

static bool model_next(struct naive *m, struct esi_order *ret_order)
{
    int id = first_by_turn(m, true);

    if (id != NOBODY) {
        m->esis[id].ends = true;
        *ret_order = (struct esi_order){ESI_ORDER_END, (uint32_t)id};
        return true;
    }
    if (m->is_paused)
        return false;
    model_choose(m);
    id = first_by_turn(m, false);
    if (id == NOBODY)
        return false;
    m->esis[id].has_line = true;
    *ret_order = (struct esi_order){ESI_ORDER_LINE, (uint32_t)id};
    return true;
}

static void model_woken(struct naive *m, int id)
{
    int key = id <= m->n_esis ? m->esis[id].waits_for : NOBODY;
    int holder = key == NOBODY ? NOBODY : m->keys[key].holder;

    if (key == NOBODY || !m->esis[id].by_line || (holder == NOBODY && woken_of(m, key) != NOBODY))
        return;
    if (holder > 0 && (m->esis[holder].has_line || m->esis[holder].is_ending))
        m->esis[id].is_called = true;
    else
        model_wake(m, id);
}

static void model_calls(struct naive *m)
{
    for (int id = 1; id <= m->n_esis; id++) {
        bool is_called = m->esis[id].is_called;

        m->esis[id].is_called = false;
        if (is_called)
            model_woken(m, id);
    }
}

static void model_line(struct naive *m, int id, enum esi_line_kind kind, int key, bool is_last)
{
    struct naive_esi *esi = &m->esis[id];

    esi->has_line = false;
    esi->burst++;
    esi->lines++;
    m->clock++;
    if (kind == ESI_LINE_DONE || key != esi->woken_for)
        pass_on(m, id);
    esi->woken_for = NOBODY;
    if (kind == ESI_LINE_GOT)
        give_key(m, key, id);
    if (kind == ESI_LINE_FREED) {
        m->keys[key].holder = NOBODY;
        offer_key(m, key);
    }
    if (kind == ESI_LINE_BLOCKED) {
        if (m->keys[key].holder == id)
            m->keys[key].holder = NOBODY;
        start_waiting(m, id, key, true);
    }
    esi->repeats = esi->repeats && kind == ESI_LINE_BLOCKED;
    esi->ends = esi->ends || is_last;
    esi->is_ending = esi->is_ending || is_last;
    esi->turn = ++m->counter;
    if (esi->is_ending)
        stop_waiting(esi);
    else if (esi->waits_for != NOBODY)
        esi->state = ESI_PLAN_BLOCKED;
    model_calls(m);
}

static void model_ended(struct naive *m, int id)
{
    struct naive_esi *esi = &m->esis[id];
    bool found;

    if (id > m->n_esis || esi->state == ESI_PLAN_FINISHED)
        return;
    esi->state = ESI_PLAN_FINISHED;
    esi->is_ending = false;
    esi->has_line = false;
    stop_waiting(esi);
    pass_on(m, id);
    do {
        int oldest = NOBODY;

        for (int key = 0; key < N_KEYS; key++)
            if (m->keys[key].holder == id &&
                (oldest == NOBODY || m->keys[key].got < m->keys[oldest].got))
                oldest = key;
        found = oldest != NOBODY;
        if (found) {
            m->keys[oldest].holder = NOBODY;
            offer_key(m, oldest);
        }
    } while (found);
    model_calls(m);
}

static bool model_kill(struct naive *m, int id)
{
    if (!is_live(m, id))
        return false;
    m->esis[id].is_ending = true;
    stop_waiting(&m->esis[id]);
    pass_on(m, id);
    m->esis[id].turn = ++m->counter;
    return true;
}

static bool model_block(struct naive *m, int key, int id, enum esi_block *ret_effect)
{
    int woken = woken_of(m, key);

    if (!is_live(m, id) || m->esis[id].waits_for != NOBODY)
        return false;
    *ret_effect = ESI_BLOCK_ASSIGNED;
    if (m->keys[key].holder == id)
        return true;
    if (m->keys[key].holder == NOBODY && waiter_after(m, key, 0) == NOBODY &&
        (woken == NOBODY || woken == id)) {
        give_key(m, key, id);
        return true;
    }
    start_waiting(m, id, key, false);
    *ret_effect = m->esis[id].has_line ? ESI_BLOCK_AT_BOUNDARY : ESI_BLOCK_QUEUED;
    if (*ret_effect == ESI_BLOCK_QUEUED) {
        m->esis[id].state = ESI_PLAN_BLOCKED;
        pass_on(m, id);
    }
    return true;
}

static bool model_unblock(struct naive *m, int key, uint32_t *ret_id)
{
    int first = waiter_after(m, key, 0);

    if (first == NOBODY && m->keys[key].holder != SYSTEM)
        return false;
    *ret_id = first == NOBODY ? ESI_PLANNER_SYSTEM : (uint32_t)first;
    if (first == NOBODY)
        m->keys[key].holder = NOBODY;
    else
        model_wake(m, first);
    return true;
}

/* Whether it comes back to itself within as many steps as there are ESIs. */
static bool is_deadlocked(const struct naive *m, int id)
{
    int at = id;

    for (int i = 0; i < m->n_esis; i++) {
        const struct naive_esi *esi = &m->esis[at];

        if (esi->state != ESI_PLAN_BLOCKED || esi->waits_for == NOBODY ||
            m->keys[esi->waits_for].holder < 1)
            return false;
        at = m->keys[esi->waits_for].holder;
        if (at == id)
            return true;
    }
    return false;
}

/* ---- both ------------------------------------------------------------------------------------ */

struct pair {
    struct naive m;
    struct esi_planner *planner;
};

static bool agree_on_esi(const struct pair *pair, int id)
{
    const struct naive_esi *esi = &pair->m.esis[id];
    struct esi_plan plan = {0};
    uint64_t waited = esi->state == ESI_PLAN_READY ? pair->m.clock - esi->ready_at : 0;

    if (!esi_planner_find(pair->planner, (uint32_t)id, &plan) || plan.state != esi->state ||
        plan.is_ending != esi->is_ending || plan.estimate != esi->estimate ||
        plan.burst != esi->burst || plan.lines != esi->lines || plan.waited != waited)
        return false;
    return plan.is_waiting == (esi->waits_for != NOBODY) &&
           (!plan.is_waiting || rt_bytes_equal(plan.key, name_of(esi->waits_for)));
}

static bool agree_on_key(const struct pair *pair, int key)
{
    uint32_t ids[N_ESIS];
    size_t n = esi_planner_waiters(pair->planner, name_of(key), ids, N_ESIS);
    uint32_t holder = UINT32_MAX;
    uint64_t ticket = 0;
    int waiter;

    if (!esi_planner_holder(pair->planner, name_of(key), &holder))
        holder = UINT32_MAX;
    if (holder != (uint32_t)pair->m.keys[key].holder)
        return false;
    for (size_t i = 0; i < n; i++) {
        waiter = waiter_after(&pair->m, key, ticket);
        if (waiter == NOBODY || ids[i] != (uint32_t)waiter)
            return false;
        ticket = pair->m.esis[waiter].ticket;
    }
    return waiter_after(&pair->m, key, ticket) == NOBODY;
}

static bool agree(const struct pair *pair)
{
    uint32_t ids[N_ESIS];
    size_t n = esi_planner_deadlock(pair->planner, ids, N_ESIS);
    size_t at = 0;

    for (int id = 1; id <= pair->m.n_esis; id++) {
        if (!agree_on_esi(pair, id))
            return false;
        if (is_deadlocked(&pair->m, id) && (at >= n || ids[at++] != (uint32_t)id))
            return false;
    }
    for (int key = 0; key < N_KEYS; key++)
        if (!agree_on_key(pair, key))
            return false;
    return at == n && esi_planner_clock(pair->planner) == pair->m.clock;
}

static bool add(struct pair *pair)
{
    struct naive *m = &pair->m;
    uint32_t id = 0;

    if (m->n_esis == N_ESIS)
        return true;
    m->esis[++m->n_esis] = (struct naive_esi){
        .estimate = m->config.initial_estimate, .waits_for = NOBODY, .woken_for = NOBODY};
    return esi_planner_add(pair->planner, &id, NULL) == RT_OK && id == (uint32_t)m->n_esis;
}

static void open_session(struct pair *pair, int id)
{
    esi_planner_opened(pair->planner, (uint32_t)id);
    if (id <= pair->m.n_esis && pair->m.esis[id].state == ESI_PLAN_NEW &&
        !pair->m.esis[id].is_ending)
        make_ready(&pair->m, id);
}

static bool ask_for_order(struct pair *pair)
{
    struct esi_order expected = {0};
    struct esi_order order = {0};
    bool is_expected = model_next(&pair->m, &expected);

    if (esi_planner_next(pair->planner, &order) != is_expected)
        return false;
    return order.kind == expected.kind && order.id == expected.id;
}

/* Of the first from `from` on that has one. */
static void do_line(struct pair *pair, int from, enum esi_line_kind kind, int key, bool is_last)
{
    for (int i = 0; i < pair->m.n_esis; i++) {
        int id = 1 + (from + i) % pair->m.n_esis;
        struct esi_line line = {.kind = kind, .is_last = is_last && kind != ESI_LINE_BLOCKED};

        if (!pair->m.esis[id].has_line)
            continue;
        if (kind != ESI_LINE_DONE)
            line.key = name_of(key);
        esi_planner_line_done(pair->planner, (uint32_t)id, &line);
        model_line(&pair->m, id, kind, key, line.is_last);
        return;
    }
}

static bool block(struct pair *pair, int key, int id)
{
    enum esi_block expected = ESI_BLOCK_ASSIGNED;
    enum esi_block effect = ESI_BLOCK_ASSIGNED;
    bool is_ok = model_block(&pair->m, key, id, &expected);
    enum rt_code code = esi_planner_block(pair->planner, name_of(key), (uint32_t)id, &effect, NULL);

    return (code == RT_OK) == is_ok && effect == expected;
}

static bool unblock(struct pair *pair, int key)
{
    uint32_t expected = 0;
    uint32_t id = 0;
    bool is_ok = model_unblock(&pair->m, key, &expected);

    return (esi_planner_unblock(pair->planner, name_of(key), &id, NULL) == RT_OK) == is_ok &&
           id == expected;
}

static bool kill_one(struct pair *pair, int id)
{
    return (esi_planner_kill(pair->planner, (uint32_t)id, NULL) == RT_OK) ==
           model_kill(&pair->m, id);
}

static bool carry_out(struct pair *pair, uint64_t step)
{
    int id = 1 + (int)((step >> 8) % N_ESIS);
    int key = (int)((step >> 16) % N_KEYS);
    enum esi_line_kind kind = (enum esi_line_kind)((step >> 24) % 4);
    bool is_last = (step >> 32) % 16 == 0;

    switch (step % 32) {
    case 0:
        return add(pair);
    case 1:
    case 2:
        open_session(pair, id);
        return true;
    case 3:
        pair->m.is_paused = (step >> 32) % 4 == 1;
        esi_planner_pause(pair->planner, pair->m.is_paused);
        return true;
    case 4:
        return kill_one(pair, id);
    case 5:
        esi_planner_ended(pair->planner, (uint32_t)id);
        model_ended(&pair->m, id);
        return true;
    case 6:
    case 7:
        return block(pair, key, id);
    case 8:
    case 9:
        return unblock(pair, key);
    case 10:
    case 11:
        esi_planner_woken(pair->planner, (uint32_t)id);
        model_woken(&pair->m, id);
        return true;
    default:
        do_line(pair, id, kind, key, is_last);
        return ask_for_order(pair);
    }
}

/* The first step chooses policy and alpha, and the keys that are blocked at start. */
static bool agrees_with_the_model(const uint64_t *steps, size_t n_steps)
{
    uint64_t setup = n_steps > 0 ? steps[0] : 0;
    struct pair pair = {
        .m.config = {.policy = (enum esi_policy)(setup % 5),
                     .alpha = (double)(setup / 8 % 5) / 4,
                     .initial_estimate = (double)(setup / 64 % 6)},
    };
    bool is_ok = true;

    pair.planner = esi_planner_new(&pair.m.config);
    for (int key = 0; key < N_KEYS; key++) {
        bool is_blocked = (setup >> (16 + key)) % 2 == 1;

        pair.m.keys[key].holder = is_blocked ? SYSTEM : NOBODY;
        if (is_blocked)
            is_ok = is_ok && esi_planner_block_at_start(pair.planner, name_of(key), NULL) == RT_OK;
    }
    for (size_t i = 1; i < n_steps && is_ok; i++)
        is_ok = carry_out(&pair, steps[i]) && agree(&pair);
    pair.planner = esi_planner_free(pair.planner);
    return is_ok;
}

Test(planner_model, random_orders_agree_with_a_naive_planner)
{
    const char *failed = test_property_fails(agrees_with_the_model, 8, 3000);

    cr_assert_null(failed, "%s", failed);
}
