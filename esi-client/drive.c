/*
 * Drive: see drive.h. Invariants: the planner has a line out for a script exactly while `has_line`;
 * `waits` says what its session does with a GET that was not granted at once. The drive's lock.
 */
#include "esi-client/drive.h"

#include "runtime/base/alloc.h"

/* A GET that was not granted at once. */
enum waits {
    WAITS_NOT,
    WAITS_LONGER,
    WAITS_TURN, /* the lock may be had */
};

struct driven {
    bool is_open;
    bool is_done;
    bool has_line;          /* the planner ordered one and is not told of it */
    bool is_pending;        /* has_line, and it is not begun yet */
    uint64_t turn_until_us; /* is_pending: the planner is told that it is blocked then */
    enum waits waits;
    uint8_t key[MODEL_KEY_MAX]; /* that it waits for */
    size_t key_size;
    bool is_told; /* it is in a cycle that was told of */
};

struct esi_drive {
    struct rt_env env;
    struct model_effects effects;
    struct esi_planner *planner; /* owned */
    struct driven *scripts;      /* owned; number + 1 is the planner's id */
    size_t n_scripts;
    const struct rt_bytes *blocked; /* owned array of borrowed names */
    bool *is_blocked;               /* owned; of each key: not given back yet */
    size_t n_blocked;
    bool has_begun;
    bool is_planning;
    struct rt_list orders; /* esi_drive_order.link */
};

static uint32_t id_of(size_t number)
{
    return (uint32_t)number + 1;
}

static void push_order(struct esi_drive *drive, enum esi_drive_order_kind kind, size_t number)
{
    struct esi_drive_order *order = rt_xalloc(sizeof(*order));

    order->kind = kind;
    order->number = number;
    rt_list_push_back(&drive->orders, &order->link);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void tell_planner(struct esi_drive *drive, size_t number, const struct esi_line *line)
{
    struct driven *script = &drive->scripts[number];

    if (!script->has_line)
        return;
    script->has_line = false;
    script->is_pending = false;
    esi_planner_line_done(drive->planner, id_of(number), line);
}

static struct rt_bytes key_of(const struct driven *script)
{
    return rt_bytes_of(script->key, script->key_size);
}

static void tell_blocked(struct esi_drive *drive, size_t number)
{
    const struct esi_line line = {.kind = ESI_LINE_BLOCKED, .key = key_of(&drive->scripts[number])};

    tell_planner(drive, number, &line);
}

static void grant(struct esi_drive *drive, size_t number)
{
    drive->scripts[number].is_pending = false;
    drive->scripts[number].waits = WAITS_NOT;
    push_order(drive, ESI_DRIVE_GRANT, number);
}

/* The planner ordered a line. */
static void run_line(struct esi_drive *drive, size_t number)
{
    struct driven *script = &drive->scripts[number];
    uint32_t holder;

    script->has_line = true;
    if (script->waits != WAITS_LONGER) {
        grant(drive, number);
    } else if (esi_planner_holder(drive->planner, key_of(script), &holder)) {
        tell_blocked(drive, number);
    } else {
        script->is_pending = true;
        script->turn_until_us = rt_env_now_us(&drive->env) + ESI_DRIVE_TURN_US;
    }
}

/* ---- all wait -------------------------------------------------------------------------------- */

static bool do_all_wait(const struct esi_drive *drive)
{
    size_t n_waiting = 0;

    for (size_t i = 0; i < drive->n_scripts; i++) {
        struct esi_plan plan;

        if (!esi_planner_find(drive->planner, id_of(i), &plan) || plan.state == ESI_PLAN_FINISHED)
            continue;
        if (plan.state != ESI_PLAN_BLOCKED)
            return false;
        n_waiting++;
    }
    return n_waiting > 0;
}

/* Whether there was one that is waited for. */
static bool give_keys_back(struct esi_drive *drive)
{
    bool is_any = false;

    for (size_t i = 0; i < drive->n_blocked; i++) {
        if (!drive->is_blocked[i] ||
            esi_planner_waiters(drive->planner, drive->blocked[i], NULL, 0) == 0)
            continue;
        drive->is_blocked[i] = false;
        is_any = true;
        push_order(drive, ESI_DRIVE_UNLOCK, i);
        esi_planner_give_back(drive->planner, drive->blocked[i]);
    }
    return is_any;
}

static void carry_on(struct esi_drive *drive)
{
    struct esi_order order;

    if (!drive->is_planning)
        return;
    do {
        while (esi_planner_next(drive->planner, &order)) {
            rt_assert(order.kind == ESI_ORDER_LINE); /* nobody is killed here */
            run_line(drive, order.id - 1);
        }
    } while (do_all_wait(drive) && give_keys_back(drive));
}

size_t esi_drive_take_deadlock(struct esi_drive *drive, size_t *numbers)
{
    uint32_t *ids = rt_xalloc(drive->n_scripts * sizeof(*ids));
    size_t n_ids = 0;
    size_t n = 0;

    if (drive->is_planning && do_all_wait(drive))
        n_ids = esi_planner_deadlock(drive->planner, ids, drive->n_scripts);
    for (size_t i = 0; i < n_ids; i++) {
        struct driven *script = &drive->scripts[ids[i] - 1];

        if (!script->is_told)
            numbers[n++] = ids[i] - 1;
        script->is_told = true;
    }
    (void)rt_free(ids);
    return n;
}

/* ---- notes ----------------------------------------------------------------------------------- */

/* PUT gives its lock back when it has one. */
static enum esi_line_kind kind_of_put(const struct esi_drive *drive, size_t number,
                                      const struct esi_result *result)
{
    uint32_t holder;

    return esi_planner_holder(drive->planner, result->statement.key, &holder) &&
                   holder == id_of(number)
               ? ESI_LINE_FREED
               : ESI_LINE_DONE;
}

static struct esi_line line_of(const struct esi_drive *drive, size_t number,
                               const struct esi_result *result, bool is_last)
{
    struct esi_line line = {.kind = ESI_LINE_DONE, .is_last = is_last};

    if (result->outcome != ESI_OUTCOME_OK || result->statement.target != ESI_TARGET_COORDINATOR)
        return line;
    line.key = result->statement.key;
    switch (result->statement.kind) {
    case MODEL_STATEMENT_GET:
        line.kind = ESI_LINE_GOT;
        break;
    case MODEL_STATEMENT_STORE:
        line.kind = ESI_LINE_FREED;
        break;
    case MODEL_STATEMENT_PUT:
        line.kind = kind_of_put(drive, number, result);
        break;
    case MODEL_STATEMENT_SET:
    case MODEL_STATEMENT_READ:
    case MODEL_STATEMENT_DELETE:
    case MODEL_STATEMENT_AWAIT:
        break;
    }
    return line;
}

static void on_result(struct esi_drive *drive, size_t number, const struct esi_result *result,
                      bool is_last)
{
    struct driven *script = &drive->scripts[number];
    struct esi_line line;

    if (result->outcome == ESI_OUTCOME_WAITING) {
        script->waits = WAITS_LONGER;
        script->key_size = result->statement.key.size;
        memcpy(script->key, result->statement.key.data, script->key_size);
        tell_blocked(drive, number);
        return;
    }
    line = line_of(drive, number, result, is_last);
    tell_planner(drive, number, &line);
}

/* In the order of the scripts, whichever session was opened first. */
static void start_planning(struct esi_drive *drive)
{
    if (drive->is_planning || !drive->has_begun)
        return;
    for (size_t i = 0; i < drive->n_scripts; i++)
        if (!drive->scripts[i].is_open && !drive->scripts[i].is_done)
            return;
    drive->is_planning = true;
    for (size_t i = 0; i < drive->n_scripts; i++)
        if (!drive->scripts[i].is_done)
            esi_planner_opened(drive->planner, id_of(i));
}

void esi_drive_take_note(struct esi_drive *drive, size_t number, const struct esi_drive_note *note)
{
    struct driven *script = &drive->scripts[number];

    script->is_open = script->is_open || note->is_open;
    rt_list_for_each (node, note->results)
        on_result(drive, number, RT_LIST_ENTRY(node, struct esi_result, link), note->is_last);
    if (note->has_turn && script->waits == WAITS_LONGER) {
        script->waits = WAITS_TURN;
        if (script->is_pending)
            grant(drive, number);
        else
            esi_planner_woken(drive->planner, id_of(number));
    }
    if (note->is_done) {
        script->is_done = true;
        script->has_line = false;
        script->is_pending = false;
        esi_planner_ended(drive->planner, id_of(number));
    }
    start_planning(drive);
    carry_on(drive);
}

void esi_drive_begin(struct esi_drive *drive)
{
    drive->has_begun = true;
    start_planning(drive);
    carry_on(drive);
}

/* ---- time ------------------------------------------------------------------------------------ */

void esi_drive_tick(struct esi_drive *drive)
{
    uint64_t now_us = rt_env_now_us(&drive->env);

    for (size_t i = 0; i < drive->n_scripts; i++)
        if (drive->scripts[i].is_pending && drive->scripts[i].turn_until_us <= now_us)
            tell_blocked(drive, i);
    carry_on(drive);
}

uint64_t esi_drive_next_wakeup_us(const struct esi_drive *drive)
{
    uint64_t next_us = RT_NEVER;

    for (size_t i = 0; i < drive->n_scripts; i++)
        if (drive->scripts[i].is_pending && drive->scripts[i].turn_until_us < next_us)
            next_us = drive->scripts[i].turn_until_us;
    return next_us;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct model_effects *esi_drive_effects(struct esi_drive *drive)
{
    return &drive->effects;
}

struct esi_drive_order *esi_drive_take_order(struct esi_drive *drive)
{
    struct rt_list *node = rt_list_pop_front(&drive->orders);

    return node ? RT_LIST_ENTRY(node, struct esi_drive_order, link) : NULL;
}

struct esi_event *esi_drive_take_event(struct esi_drive *drive)
{
    return esi_planner_take_event(drive->planner);
}

static void add_all(struct esi_drive *drive)
{
    uint32_t id = 0;

    for (size_t i = 0; i < drive->n_scripts; i++) {
        enum rt_code code = esi_planner_add(drive->planner, &id, NULL);

        rt_assert(code == RT_OK && id == id_of(i));
    }
    for (size_t i = 0; i < drive->n_blocked; i++) {
        enum rt_code code = esi_planner_block_at_start(drive->planner, drive->blocked[i], NULL);

        rt_assert(code == RT_OK);
        drive->is_blocked[i] = true;
    }
}

struct esi_drive *esi_drive_new(const struct esi_drive_config *config, const struct rt_env *env)
{
    struct esi_drive *drive = rt_xalloc(sizeof(*drive));

    drive->env = *env;
    model_effects_init(&drive->effects);
    rt_list_init(&drive->orders);
    drive->planner = esi_planner_new(&config->planner);
    drive->n_scripts = config->n_scripts;
    drive->scripts = rt_xalloc(config->n_scripts * sizeof(*drive->scripts));
    drive->n_blocked = config->n_blocked;
    drive->is_blocked = rt_xalloc(config->n_blocked * sizeof(*drive->is_blocked));
    if (config->n_blocked > 0)
        drive->blocked = rt_xmemdup(config->blocked, config->n_blocked * sizeof(*config->blocked));
    add_all(drive);
    return drive;
}

struct esi_drive *esi_drive_free(struct esi_drive *drive)
{
    struct esi_drive_order *order;

    if (!drive)
        return NULL;
    while ((order = esi_drive_take_order(drive)))
        (void)rt_free(order);
    drive->planner = esi_planner_free(drive->planner);
    (void)rt_free(drive->scripts);
    (void)rt_free((void *)drive->blocked);
    (void)rt_free(drive->is_blocked);
    return rt_free(drive);
}
