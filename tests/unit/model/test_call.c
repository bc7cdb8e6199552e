/*
 * Calls and effects: what a fresh call holds, remaining time, handing effects over, how many and
 * how long events may be.
 */
#include "runtime/model/call.h"

#include "tests/support/check.h"

TestSuite(call, .fini = test_alloc_expect_none);

Test(call, a_new_call_has_no_deadline_and_is_in_no_list)
{
    struct model_call *call = model_call_new(MODEL_CALL_EXECUTE);

    cr_assert_eq(call->request.kind, MODEL_CALL_EXECUTE);
    cr_assert_eq(call->deadline_us, RT_NEVER);
    cr_assert(rt_list_is_empty(&call->link));
    cr_assert_not(call->cancelled);
    cr_assert_not_null(rt_arena_alloc(&call->arena, 10));
    cr_assert_null(model_call_free(call));
    cr_assert_null(model_call_free(NULL));
}

Test(call, remaining_time)
{
    struct model_call call;

    model_call_init(&call, MODEL_CALL_SET);
    cr_assert_eq(model_call_remaining_us(&call, 5), RT_NEVER);
    call.deadline_us = 100;
    cr_assert_eq(model_call_remaining_us(&call, 99), 1);
    cr_assert_eq(model_call_remaining_us(&call, 100), 0);
    cr_assert_eq(model_call_remaining_us(&call, 101), 0);
    model_call_deinit(&call);
}

Test(call, effects_are_taken_in_order_and_once)
{
    struct model_effects effects, taken;
    struct model_call *first = model_call_new(MODEL_CALL_SET);
    struct model_call *second = model_call_new(MODEL_CALL_STORE);

    model_effects_init(&effects);
    cr_assert(model_effects_is_empty(&effects));
    rt_list_push_back(&effects.calls, &first->link);
    rt_list_push_back(&effects.calls, &second->link);
    cr_assert_not(model_effects_is_empty(&effects));
    model_effects_take(&effects, &taken);
    cr_assert(model_effects_is_empty(&effects));
    cr_assert_eq(rt_list_pop_front(&taken.calls), &first->link);
    cr_assert_eq(rt_list_pop_front(&taken.calls), &second->link);
    cr_assert(model_effects_is_empty(&taken));
    (void)model_call_free(first);
    (void)model_call_free(second);
}

Test(call, events_are_taken_in_order_and_once)
{
    struct model_effects effects, taken;

    model_effects_init(&effects);
    model_effects_tell(&effects, RT_LOG_ERROR, "event=%s", "first");
    model_effects_tell(&effects, RT_LOG_INFO, "event=second n=%d", 2);
    cr_assert_not(model_effects_is_empty(&effects));
    model_effects_take(&effects, &taken);
    cr_assert(model_effects_is_empty(&effects));
    cr_assert_eq(taken.n_events, 2);
    cr_assert_eq(taken.events[0].level, RT_LOG_ERROR);
    cr_assert_str_eq(taken.events[0].text, "event=first");
    cr_assert_eq(taken.events[1].level, RT_LOG_INFO);
    cr_assert_str_eq(taken.events[1].text, "event=second n=2");
    cr_assert_eq(taken.n_events_dropped, 0);
}

Test(call, events_past_the_limit_are_counted)
{
    struct model_effects effects, taken;

    model_effects_init(&effects);
    for (int i = 0; i < MODEL_EVENTS_MAX; i++)
        model_effects_tell(&effects, RT_LOG_INFO, "event=number n=%d", i);
    cr_assert_eq(effects.n_events_dropped, 0);
    model_effects_tell(&effects, RT_LOG_ERROR, "event=too_many");
    model_effects_take(&effects, &taken);
    cr_assert_eq(taken.n_events, MODEL_EVENTS_MAX);
    cr_assert_str_eq(taken.events[MODEL_EVENTS_MAX - 1].text, "event=number n=7");
    cr_assert_eq(taken.n_events_dropped, 1);
    model_effects_take(&effects, &taken);
    cr_assert_eq(taken.n_events, 0);
    cr_assert_eq(taken.n_events_dropped, 0);
}

Test(call, a_long_event_is_cut)
{
    struct model_effects effects;
    char text[MODEL_EVENT_TEXT_MAX + 2];

    memset(text, 'x', sizeof(text));
    text[MODEL_EVENT_TEXT_MAX] = '\0';
    model_effects_init(&effects);
    model_effects_tell(&effects, RT_LOG_INFO, "%s", text);
    text[MODEL_EVENT_TEXT_MAX] = 'x';
    text[MODEL_EVENT_TEXT_MAX + 1] = '\0';
    model_effects_tell(&effects, RT_LOG_INFO, "%s", text);
    cr_assert_eq(strlen(effects.events[0].text), MODEL_EVENT_TEXT_MAX);
    cr_assert_str_eq(effects.events[1].text, effects.events[0].text);
}
