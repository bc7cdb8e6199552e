/*
 * Keys that were dropped to make room: see state.h. Invariant: at most one entry a key, at most
 * MODEL_EVICTED_MAX in all, and none of a key that is owned again. Each is told twice: in the
 * answer to a write, which may get lost, and in every Renew until the coordinator says that it
 * knows. Whatever is left out, for want of memory or past the limit, it finds at the key's next
 * access. Under the core's lock.
 */
#include "instance/state.h"
#include "runtime/base/alloc.h"

static struct inst_evicted *entry_of(struct rt_list *node)
{
    return RT_LIST_ENTRY(node, struct inst_evicted, link);
}

static struct rt_bytes key_of(const struct inst_evicted *evicted)
{
    return rt_bytes_of(evicted->key, evicted->key_size);
}

struct inst_evicted *inst_evicted_find(const struct inst_core *core, struct rt_bytes key)
{
    rt_list_for_each (node, &core->evicted)
        if (rt_bytes_equal(key_of(entry_of(node)), key))
            return entry_of(node);
    return NULL;
}

const struct inst_evicted *inst_evicted_oldest(const struct inst_core *core, size_t n_before)
{
    size_t n = core->n_evicted + n_before;

    if (n < MODEL_EVICTED_MAX)
        return NULL;
    n -= MODEL_EVICTED_MAX;
    rt_list_for_each (node, &core->evicted)
        if (n-- == 0)
            return entry_of(node);
    return NULL;
}

static void forget(struct inst_core *core, struct inst_evicted *evicted)
{
    rt_list_remove(&evicted->link);
    core->n_evicted--;
    core->n_untold -= !evicted->is_told;
    core->n_unknown -= !evicted->is_known;
    (void)rt_free(evicted);
}

void inst_evicted_forget(struct inst_core *core, struct rt_bytes key)
{
    struct inst_evicted *evicted = core->n_evicted > 0 ? inst_evicted_find(core, key) : NULL;

    if (evicted)
        forget(core, evicted);
}

void inst_evicted_forget_all(struct inst_core *core)
{
    while (core->n_evicted > 0)
        forget(core, entry_of(core->evicted.next));
}

void inst_evicted_add(struct inst_core *core, struct rt_bytes key, uint64_t epoch, bool is_told)
{
    struct inst_evicted *evicted;

    inst_evicted_forget(core, key);
    if (core->n_evicted == MODEL_EVICTED_MAX)
        forget(core, entry_of(core->evicted.next));
    evicted = rt_alloc(sizeof(*evicted) + key.size);
    if (!evicted)
        return;
    *evicted = (struct inst_evicted){.epoch = epoch, .is_told = is_told, .key_size = key.size};
    memcpy(evicted->key, key.data, key.size);
    rt_list_push_back(&core->evicted, &evicted->link);
    core->n_evicted++;
    core->n_untold += !is_told;
    core->n_unknown++;
}

void inst_evicted_tell(struct inst_core *core, struct model_call *call)
{
    struct model_data_response *data = &call->response.data;

    if (core->n_untold == 0)
        return;
    data->evicted = rt_arena_alloc(&call->arena, core->n_untold * sizeof(*data->evicted));
    if (!data->evicted)
        return;
    rt_list_for_each (node, &core->evicted) {
        struct inst_evicted *evicted = entry_of(node);

        if (evicted->is_told)
            continue;
        if (!rt_arena_copy(&call->arena, key_of(evicted), &data->evicted[data->n_evicted]))
            break;
        data->n_evicted++;
        evicted->is_told = true;
        core->n_untold--;
    }
}

void inst_evicted_repeat(const struct inst_core *core, struct model_call *call)
{
    struct model_renew_request *renew = &call->request.renew;

    if (core->n_unknown == 0)
        return;
    renew->evicted = rt_arena_alloc(&call->arena, core->n_unknown * sizeof(*renew->evicted));
    if (!renew->evicted)
        return;
    rt_list_for_each (node, &core->evicted) {
        const struct inst_evicted *evicted = entry_of(node);
        struct model_evicted *told = &renew->evicted[renew->n_evicted];

        if (evicted->is_known)
            continue;
        if (!rt_arena_copy(&call->arena, key_of(evicted), &told->key))
            break;
        told->epoch = evicted->epoch;
        renew->n_evicted++;
    }
}

void inst_evicted_known(struct inst_core *core, const uint64_t *epochs, size_t n_epochs)
{
    size_t i = 0;

    /* Both are in the order in which they were told. */
    rt_list_for_each (node, &core->evicted) {
        struct inst_evicted *evicted = entry_of(node);
        size_t at = i;

        while (at < n_epochs && epochs[at] != evicted->epoch)
            at++;
        if (at == n_epochs)
            continue;
        core->n_unknown -= !evicted->is_known;
        evicted->is_known = true;
        i = at + 1;
    }
}
