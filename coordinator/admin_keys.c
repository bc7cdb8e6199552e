/*
 * LIST_KEYS: see admin.h. The table has no order, so a page is the smallest names of all that are
 * behind its start, found in one walk. The walk is cut into slices between which the core does
 * other work: it may be long, and leases must not wait for it. Invariant: the page holds the
 * smallest of the names seen since the walk began, as copies. Runs under the core's lock.
 */
#include "coordinator/admin.h"

enum {
    SLICE_SLOTS = 16384 /* of the key table */
};

struct name {
    uint8_t size;
    uint8_t bytes[MODEL_KEY_MAX];
};

/* In the call's arena. names[0..n_names) is a heap with the largest on top; behind it is room. */
struct listing {
    struct name **names;
    size_t n_names;
    size_t size_max; /* one more than the page: is there more? */
    size_t position; /* of the walk */
    uint64_t layout; /* of the key table when it began */
};

static struct rt_bytes bytes_of(const struct name *name)
{
    return rt_bytes_of(name->bytes, name->size);
}

static bool is_less(const struct name *a, const struct name *b)
{
    return rt_bytes_compare(bytes_of(a), bytes_of(b)) < 0;
}

static void sift_down(struct name **names, size_t n_names)
{
    struct name *name = names[0];
    size_t i = 0;

    for (size_t child; (child = 2 * i + 1) < n_names; i = child) {
        if (child + 1 < n_names && is_less(names[child], names[child + 1]))
            child++;
        if (!is_less(name, names[child]))
            break;
        names[i] = names[child];
    }
    names[i] = name;
}

static void sift_up(struct name **names, size_t i)
{
    struct name *name = names[i];

    for (; i > 0 && is_less(names[(i - 1) / 2], name); i = (i - 1) / 2)
        names[i] = names[(i - 1) / 2];
    names[i] = name;
}

static void copy_key(struct name *name, const struct coord_key *key)
{
    name->size = key->size;
    memcpy(name->bytes, key->bytes, key->size);
}

static void take_key(struct listing *listing, const struct coord_key *key)
{
    if (listing->n_names < listing->size_max) {
        copy_key(listing->names[listing->n_names], key);
        sift_up(listing->names, listing->n_names++);
    } else if (rt_bytes_compare(coord_key_name(key), bytes_of(listing->names[0])) < 0) {
        copy_key(listing->names[0], key);
        sift_down(listing->names, listing->n_names);
    }
}

/* Heap to ascending order. */
static void sort(struct listing *listing)
{
    for (size_t n = listing->n_names; n > 1; n--) {
        struct name *largest = listing->names[0];

        listing->names[0] = listing->names[n - 1];
        listing->names[n - 1] = largest;
        sift_down(listing->names, n - 1);
    }
}

/* ---- answer ---------------------------------------------------------------------------------- */

static bool describe(const struct coord_core *core, struct model_call *call,
                     const struct coord_key *key, struct model_key_info *info)
{
    const struct coord_member *owner = coord_members_at(&core->members, key->owner);
    const struct coord_session *holder = coord_key_holder(key);

    *info = (struct model_key_info){.epoch = key->epoch};
    if (owner)
        coord_admin_copy_name(info->owner, owner->name);
    if (holder)
        coord_admin_copy_name(info->holder, holder->row.name);
    return rt_arena_copy(&call->arena, coord_key_name(key), &info->key);
}

/* Keys that have gone since they were seen are left out. */
static void reply(struct coord_core *core, struct coord_task *task, struct listing *listing)
{
    struct model_list_keys_response *list = &task->call->response.list_keys;
    size_t page_size = listing->size_max - 1;
    struct model_key_info *infos =
        rt_arena_alloc(&task->call->arena, page_size * sizeof(struct model_key_info));

    sort(listing);
    model_response_ok(&task->call->response, MODEL_CALL_LIST_KEYS);
    for (size_t i = 0; infos && i < listing->n_names && i < page_size; i++) {
        const struct coord_key *key = coord_keys_find(&core->keys, bytes_of(listing->names[i]));

        if (!key || !key->exists)
            continue;
        if (describe(core, task->call, key, &infos[list->n_keys]))
            list->n_keys++;
        else
            infos = NULL;
    }
    if (!infos) {
        coord_admin_fail_memory(core, task);
        return;
    }
    list->keys = infos;
    list->more = listing->n_names > page_size;
    coord_task_reply(core, task);
    coord_task_finish(core, task);
}

/* ---- walk ------------------------------------------------------------------------------------ */

static void walk(struct coord_core *core, struct coord_task *task)
{
    const struct model_page_request *request = &task->call->request.page;
    struct listing *listing = task->work;
    const struct coord_key *key;
    size_t end;

    if (listing->layout != core->keys.layout) {
        listing->layout = core->keys.layout;
        listing->position = 0;
        listing->n_names = 0;
    }
    end = listing->position + SLICE_SLOTS;
    while ((key = coord_keys_next(&core->keys, &listing->position, end - listing->position))) {
        struct rt_bytes name = coord_key_name(key);

        if (key->exists && rt_bytes_has_prefix(name, request->prefix) &&
            rt_bytes_compare(name, request->after) > 0)
            take_key(listing, key);
    }
    if (listing->position >= core->keys.n_slots)
        reply(core, task, listing);
    else
        coord_task_wait_until(core, task, NULL, MODEL_REASON_DEADLINE_EXCEEDED,
                              coord_now_us(core) + 1, walk);
}

static struct listing *new_listing(struct coord_core *core, struct rt_arena *arena, size_t size_max)
{
    struct listing *listing = rt_arena_alloc(arena, sizeof(*listing));
    struct name **names = rt_arena_alloc(arena, size_max * sizeof(struct name *));
    struct name *room = rt_arena_alloc(arena, size_max * sizeof(struct name));

    if (!listing || !names || !room)
        return NULL;
    for (size_t i = 0; i < size_max; i++)
        names[i] = &room[i];
    *listing = (struct listing){
        .names = names,
        .size_max = size_max,
        .layout = core->keys.layout,
    };
    return listing;
}

void coord_admin_list_keys(struct coord_core *core, struct coord_task *task)
{
    size_t page_size;

    if (!coord_admin_check_page(core, task, &page_size))
        return;
    task->work = new_listing(core, &task->call->arena, page_size + 1);
    if (task->work)
        walk(core, task);
    else
        coord_admin_fail_memory(core, task);
}
