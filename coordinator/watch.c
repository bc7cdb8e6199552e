/*
 * WatchRoutes: see watch.h. Invariant: change number n is at ring[n % COORD_WATCH_CHANGES_MAX]
 * while first <= n < next; whoever was told everything below n, and the table up to its position,
 * misses only what the changes from n on name. Runs under the core's lock.
 */
#include "coordinator/watch.h"

#include "coordinator/execute.h"
#include "runtime/base/alloc.h"

enum {
    SLICE_SLOTS = 16384 /* of the key table, looked at in one step */
};

void coord_watch_init(struct coord_watch *watch)
{
    *watch = (struct coord_watch){.first = 1, .next = 1};
    rt_list_init(&watch->waiting);
}

void coord_watch_deinit(struct coord_watch *watch)
{
    watch->ring = rt_free(watch->ring);
}

/* ---- changes --------------------------------------------------------------------------------- */

static struct coord_change *change_at(const struct coord_watch *watch, uint64_t number)
{
    return &watch->ring[number % COORD_WATCH_CHANGES_MAX];
}

static struct coord_change *add_change(struct coord_core *core)
{
    struct coord_watch *watch = &core->watch;
    struct coord_change *change = change_at(watch, watch->next);

    if (watch->next - watch->first == COORD_WATCH_CHANGES_MAX) {
        watch->lost_version = change->version;
        watch->first++;
    }
    watch->next++;
    change->version = core->route;
    coord_tasks_wake(core, &watch->waiting);
    return change;
}

void coord_watch_key_changed(struct coord_core *core, const struct coord_key *key)
{
    struct coord_change *change;

    if (!core->watch.ring)
        return;
    change = add_change(core);
    change->ordinal = 0;
    change->size = key->size;
    memcpy(change->key, key->bytes, key->size);
}

/* A member whose registration has not been committed yet is no member. */
static bool is_known(const struct coord_member *member)
{
    return member && member->row.incarnation != 0;
}

void coord_watch_member_changed(struct coord_core *core, const struct coord_member *member)
{
    if (core->watch.ring && is_known(member))
        add_change(core)->ordinal = member->row.ordinal;
}

/* ---- what is told ---------------------------------------------------------------------------- */

/* One answer in the making. Its arrays are in the call's arena, and are made when there is
 * something to be put into them: a watch may look at any number of changes that do not concern it
 * before it has an answer. */
struct batch {
    struct model_watch_routes_response told;
    size_t keys_max;
    size_t instances_max;
    bool is_first; /* of its stream */
    bool is_full;  /* memory is out */
};

static void tell_member(struct model_call *call, struct batch *batch,
                        const struct coord_member *member)
{
    struct model_watched_instance *instance;

    if (!batch->told.instances)
        batch->told.instances =
            rt_arena_alloc(&call->arena, batch->instances_max * sizeof(*instance));
    if (!batch->told.instances) {
        batch->is_full = true;
        return;
    }
    instance = &batch->told.instances[batch->told.n_instances++];
    *instance = (struct model_watched_instance){
        .incarnation = member->row.incarnation,
        .state = member->row.state,
    };
    memcpy(instance->name, member->name, sizeof(instance->name));
    memcpy(instance->address, member->row.address, sizeof(instance->address));
}

static void tell_all_members(const struct coord_core *core, struct model_call *call,
                             struct batch *batch)
{
    for (uint32_t ordinal = 1; ordinal <= core->members.last_ordinal; ordinal++) {
        const struct coord_member *member = coord_members_at(&core->members, ordinal);

        if (is_known(member))
            tell_member(call, batch, member);
    }
}

/* `key` NULL: it is not in the table. */
static void tell_key(const struct coord_core *core, struct model_call *call, struct batch *batch,
                     struct rt_bytes name, const struct coord_key *key)
{
    struct model_watched_key *told;
    struct model_route route;

    if (!batch->told.keys)
        batch->told.keys = rt_arena_alloc(&call->arena, batch->keys_max * sizeof(*told));
    if (!batch->told.keys) {
        batch->is_full = true;
        return;
    }
    told = &batch->told.keys[batch->told.n_keys++];
    *told = (struct model_watched_key){0};
    batch->is_full |= !rt_arena_copy(&call->arena, name, &told->key);
    if (!coord_execute_fill_route(core, key, &route))
        return;
    memcpy(told->owner, route.owner, sizeof(told->owner));
    told->epoch = route.epoch;
}

static void tell_changes(const struct coord_core *core, struct model_call *call,
                         struct batch *batch)
{
    struct model_watch_routes_request *request = &call->request.watch_routes;

    while (request->cursor.change < core->watch.next && batch->told.n_keys < batch->keys_max &&
           batch->told.n_instances < batch->instances_max) {
        const struct coord_change *change = change_at(&core->watch, request->cursor.change++);
        struct rt_bytes name = rt_bytes_of(change->key, change->size);

        if (change->ordinal != 0)
            tell_member(call, batch, coord_members_at(&core->members, change->ordinal));
        else if (rt_bytes_has_prefix(name, request->prefix))
            tell_key(core, call, batch, name, coord_keys_find(&core->keys, name));
    }
}

/* A part of the table; from its start again when keys have moved in it. */
static void tell_table(const struct coord_core *core, struct model_call *call, struct batch *batch)
{
    const struct model_watch_routes_request *request = &call->request.watch_routes;
    struct model_watch_cursor *cursor = &call->request.watch_routes.cursor;
    size_t position = cursor->layout == core->keys.layout ? cursor->position : 0;
    size_t end = position + SLICE_SLOTS;
    const struct coord_key *key;

    while (batch->told.n_keys < batch->keys_max && position < end &&
           (key = coord_keys_next(&core->keys, &position, end - position))) {
        if (coord_key_has_route(key) && rt_bytes_has_prefix(coord_key_name(key), request->prefix))
            tell_key(core, call, batch, coord_key_name(key), key);
    }
    cursor->layout = core->keys.layout;
    cursor->position = position;
    cursor->is_snapshot = position < core->keys.n_slots;
}

/* ---- the cursor ------------------------------------------------------------------------------ */

static uint64_t first_change_since(const struct coord_watch *watch, uint64_t version)
{
    uint64_t number = watch->next;

    while (number > watch->first && change_at(watch, number - 1)->version >= version)
        number--;
    return number;
}

static void begin_anew(const struct coord_core *core, struct model_watch_cursor *cursor)
{
    *cursor = (struct model_watch_cursor){
        .has_begun = true,
        .is_snapshot = true,
        .change = core->watch.next,
        .layout = core->keys.layout,
    };
}

/* True when what the client was told is void. A version names all changes that were committed up to
 * it, but others may have the same: they are told again. */
static bool place_cursor(const struct coord_core *core, struct model_watch_routes_request *request)
{
    const struct coord_watch *watch = &core->watch;
    struct model_watch_cursor *cursor = &request->cursor;

    if (cursor->has_begun && cursor->change >= watch->first)
        return false;
    if (!cursor->has_begun && request->after_version > watch->lost_version &&
        request->after_version <= core->route) {
        cursor->has_begun = true;
        cursor->change = first_change_since(watch, request->after_version);
        cursor->version = request->after_version;
        return false;
    }
    begin_anew(core, cursor);
    return true;
}

/* How much there may be to tell. */
static void set_limits(const struct coord_core *core, const struct model_watch_cursor *cursor,
                       struct batch *batch)
{
    uint64_t n_changes = core->watch.next - cursor->change;
    bool all_members = batch->is_first || batch->told.reset;

    batch->keys_max = MODEL_WATCH_KEYS_MAX;
    if (!cursor->is_snapshot && n_changes < MODEL_WATCH_KEYS_MAX)
        batch->keys_max = n_changes;
    batch->instances_max = MODEL_MEMBERS_MAX;
    if (!all_members && n_changes < MODEL_MEMBERS_MAX)
        batch->instances_max = n_changes;
}

static void fill(const struct coord_core *core, struct model_call *call, struct batch *batch)
{
    struct model_watch_cursor *cursor = &call->request.watch_routes.cursor;

    if (batch->is_first || batch->told.reset)
        tell_all_members(core, call, batch);
    tell_changes(core, call, batch);
    if (cursor->is_snapshot)
        tell_table(core, call, batch);
    batch->told.more = cursor->is_snapshot || cursor->change < core->watch.next;
    if (!batch->told.more)
        cursor->version = core->route;
    batch->told.version = cursor->version;
}

/* There is something in it, or it says for the first time that the state is complete. */
static bool is_worth_sending(const struct batch *batch, bool was_complete)
{
    return batch->is_first || batch->told.reset || batch->told.n_keys > 0 ||
           batch->told.n_instances > 0 || (!batch->told.more && !was_complete);
}

static void advance(struct coord_core *core, struct coord_task *task)
{
    struct model_call *call = task->call;
    struct model_watch_cursor *cursor = &call->request.watch_routes.cursor;
    struct batch batch = {.is_first = !cursor->has_begun};
    bool was_complete = cursor->is_complete;

    batch.told.reset = place_cursor(core, &call->request.watch_routes);
    set_limits(core, cursor, &batch);
    fill(core, call, &batch);
    cursor->is_complete = !batch.told.more;
    if (batch.is_full) {
        coord_execute_refuse(core, task, MODEL_REASON_LIMIT_REACHED);
    } else if (is_worth_sending(&batch, was_complete)) {
        model_response_ok(&call->response, MODEL_CALL_WATCH_ROUTES);
        call->response.watch_routes = batch.told;
        call->response.watch_routes.next = *cursor;
        coord_task_reply(core, task);
        coord_task_finish(core, task);
    } else if (batch.told.more) {
        coord_task_wait_until(core, task, NULL, MODEL_REASON_DEADLINE_EXCEEDED,
                              coord_now_us(core) + 1, advance);
    } else {
        coord_task_wait(core, task, &core->watch.waiting, MODEL_REASON_DEADLINE_EXCEEDED, advance);
    }
}

void coord_watch_routes(struct coord_core *core, struct coord_task *task)
{
    struct coord_watch *watch = &core->watch;

    if (!watch->ring) {
        watch->ring = rt_xalloc(COORD_WATCH_CHANGES_MAX * sizeof(struct coord_change));
        watch->lost_version = core->route;
    }
    advance(core, task);
}
