/*
 * Calls and effects: see call.h. Pure; callers hold the lock of the core that owns the lists.
 */
#include "runtime/model/call.h"

#include "runtime/base/alloc.h"

void model_call_init(struct model_call *call, enum model_call_kind kind)
{
    rt_list_init(&call->link);
    call->arena = (struct rt_arena){0};
    call->request.kind = kind;
    call->response.code = RT_OK;
    call->deadline_us = RT_NEVER;
    call->cancelled = false;
    call->address = NULL;
    call->state = NULL;
    call->context = NULL;
}

void model_call_deinit(struct model_call *call)
{
    rt_arena_reset(&call->arena);
}

struct model_call *model_call_new(enum model_call_kind kind)
{
    struct model_call *call = rt_xalloc(sizeof(*call));

    model_call_init(call, kind);
    return call;
}

struct model_call *model_call_free(struct model_call *call)
{
    if (!call)
        return NULL;
    model_call_deinit(call);
    return rt_free(call);
}

void model_effects_init(struct model_effects *effects)
{
    rt_list_init(&effects->replies);
    rt_list_init(&effects->calls);
    rt_list_init(&effects->txns);
}

bool model_effects_is_empty(const struct model_effects *effects)
{
    return rt_list_is_empty(&effects->replies) && rt_list_is_empty(&effects->calls) &&
           rt_list_is_empty(&effects->txns);
}

void model_effects_take(struct model_effects *effects, struct model_effects *ret_taken)
{
    model_effects_init(ret_taken);
    rt_list_splice_back(&ret_taken->replies, &effects->replies);
    rt_list_splice_back(&ret_taken->calls, &effects->calls);
    rt_list_splice_back(&ret_taken->txns, &effects->txns);
}
