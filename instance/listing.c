/*
 * ListEntries: see state.h. Invariant: it changes nothing, and what it says is of one moment. Under
 * the core's lock.
 */
#include "instance/state.h"

/* A used entry belongs to the run that begins at it or before it. */
static const struct inst_row *owner_of(const struct inst_core *core, uint64_t at)
{
    while (!core->owners[at])
        at--;
    return core->owners[at];
}

static void describe(const struct inst_core *core, const struct inst_row *row, uint64_t at,
                     struct model_entry_info *ret_entry)
{
    uint64_t first = row->run.first;

    *ret_entry = (struct model_entry_info){.index = (uint32_t)at};
    if (row->run.n == 0 || at < first || at >= first + row->run.n)
        return; /* reserved for the value of a PUT */
    ret_entry->offset = (at - first) * core->entries.entry_size;
    ret_entry->bytes_used = row->size - ret_entry->offset;
    if (ret_entry->bytes_used > core->entries.entry_size)
        ret_entry->bytes_used = core->entries.entry_size;
    ret_entry->atomic = row->run.n == 1;
}

/* false when memory is out. */
static bool fill_page(const struct inst_core *core, struct model_call *call, size_t page_size)
{
    struct model_list_entries_response *list = &call->response.list_entries;
    uint64_t at = call->request.list_entries.first_index;
    const struct inst_row *row = NULL;
    struct rt_bytes key = {0};

    list->entries = rt_arena_alloc(&call->arena, page_size * sizeof(*list->entries));
    if (!list->entries)
        return false;
    while ((at = inst_entries_next_used(&core->entries, at)) < core->entries.total) {
        const struct inst_row *owner = row && !core->owners[at] ? row : owner_of(core, at);

        rt_assert(owner);
        if (list->n_entries == page_size) {
            list->more = true;
            break;
        }
        if (owner != row && !rt_arena_copy(&call->arena, inst_row_key(owner), &key))
            return false;
        row = owner;
        describe(core, row, at, &list->entries[list->n_entries]);
        list->entries[list->n_entries++].key = key;
        at++;
    }
    return true;
}

void inst_listing_answer(struct inst_core *core, struct model_call *call)
{
    struct model_list_entries_response *list = &call->response.list_entries;
    uint32_t page_size = call->request.list_entries.page_size;

    model_response_ok(&call->response, MODEL_CALL_LIST_ENTRIES);
    if (page_size > MODEL_PAGE_MAX) {
        inst_answer_refuse(core, call, NULL, MODEL_REASON_INVALID_FIELD);
        return;
    }
    if (!fill_page(core, call, page_size == 0 ? MODEL_PAGE_MAX : page_size)) {
        inst_answer_fail(core, call, NULL, MODEL_REASON_LIMIT_REACHED,
                         "no memory for a page of entries");
        inst_answer_send(core, call);
        return;
    }
    list->pointer = core->replacement.pointer;
    list->entries_free = core->entries.n_free;
    list->entries_total = core->entries.total;
    list->entry_size = core->entries.entry_size;
    inst_answer_send(core, call);
}
