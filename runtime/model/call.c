/*
 * Calls and effects: see call.h. Pure; callers hold the lock of the core that owns the lists.
 */
#include "runtime/model/call.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
    effects->n_events = 0;
    effects->n_events_dropped = 0;
}

bool model_effects_is_empty(const struct model_effects *effects)
{
    return rt_list_is_empty(&effects->replies) && rt_list_is_empty(&effects->calls) &&
           rt_list_is_empty(&effects->txns) && effects->n_events == 0;
}

void model_effects_tell(struct model_effects *effects, enum rt_log_level level, const char *format,
                        ...)
{
    struct model_event *event = &effects->events[effects->n_events];
    va_list arguments;

    if (effects->n_events == MODEL_EVENTS_MAX) {
        effects->n_events_dropped++;
        return;
    }
    effects->n_events++;
    event->level = level;
    va_start(arguments, format);
    (void)vsnprintf(event->text, sizeof(event->text), format, arguments);
    va_end(arguments);
}

void model_effects_take(struct model_effects *effects, struct model_effects *ret_taken)
{
    model_effects_init(ret_taken);
    rt_list_splice_back(&ret_taken->replies, &effects->replies);
    rt_list_splice_back(&ret_taken->calls, &effects->calls);
    rt_list_splice_back(&ret_taken->txns, &effects->txns);
    memcpy(ret_taken->events, effects->events, effects->n_events * sizeof(effects->events[0]));
    ret_taken->n_events = effects->n_events;
    ret_taken->n_events_dropped = effects->n_events_dropped;
    effects->n_events = 0;
    effects->n_events_dropped = 0;
}
