/*
 * Coordinator played by hand: see scripted_coordinator.h. The test's thread.
 */
#include "tests/unit/esi/scripted_coordinator.h"

#include <criterion/criterion.h>

void scripted_init(struct scripted_coordinator *scripted)
{
    test_env_init(&scripted->fake, 1);
    rt_list_init(&scripted->calls);
    scripted->answer_keep_alives = true;
}

static void collect(struct scripted_coordinator *scripted)
{
    struct model_effects taken;
    struct rt_list *node;

    model_effects_take(scripted->effects(scripted->object), &taken);
    cr_assert(rt_list_is_empty(&taken.replies) && rt_list_is_empty(&taken.txns));
    while ((node = rt_list_pop_front(&taken.calls)) != NULL) {
        struct model_call *call = RT_LIST_ENTRY(node, struct model_call, link);

        if (call->request.kind == MODEL_CALL_KEEP_ALIVE && scripted->answer_keep_alives)
            scripted_ok(scripted, call);
        else
            rt_list_push_back(&scripted->calls, node);
    }
}

struct model_call *scripted_take(struct scripted_coordinator *scripted, enum model_call_kind kind)
{
    collect(scripted);
    rt_list_for_each (node, &scripted->calls) {
        struct model_call *call = RT_LIST_ENTRY(node, struct model_call, link);

        if (call->request.kind != kind)
            continue;
        rt_list_remove(node);
        cr_assert_str_eq(call->address, "coordinator:7400");
        return call;
    }
    cr_assert_fail("no %s was sent", model_call_kind_name(kind));
    return NULL;
}

struct model_call *scripted_take_execute(struct scripted_coordinator *scripted,
                                         enum model_statement_kind kind)
{
    struct model_call *call = scripted_take(scripted, MODEL_CALL_EXECUTE);

    cr_assert_eq(call->request.execute.kind, kind);
    return call;
}

size_t scripted_n_calls(struct scripted_coordinator *scripted)
{
    size_t n = 0;

    collect(scripted);
    rt_list_for_each (node, &scripted->calls)
        n++;
    return n;
}

void scripted_ok(struct scripted_coordinator *scripted, struct model_call *call)
{
    enum model_call_kind kind = call->request.kind;

    model_response_ok(&call->response, kind);
    if (kind == MODEL_CALL_KEEP_ALIVE)
        call->response.keep_alive.lease_ms = SCRIPTED_LEASE_MS;
    scripted->call_done(scripted->object, call);
}

void scripted_fail(struct scripted_coordinator *scripted, struct model_call *call,
                   enum model_reason reason)
{
    model_response_fail(&call->response, reason, "as the test says");
    scripted->call_done(scripted->object, call);
}

void scripted_fail_plain(struct scripted_coordinator *scripted, struct model_call *call,
                         enum rt_code code)
{
    call->response.code = code;
    call->response.error = (struct model_error){.message = "connection reset"};
    scripted->call_done(scripted->object, call);
}

void scripted_open(struct scripted_coordinator *scripted)
{
    struct model_call *call = scripted_take(scripted, MODEL_CALL_OPEN_SESSION);

    model_response_ok(&call->response, MODEL_CALL_OPEN_SESSION);
    call->response.open_session.lease_ms = SCRIPTED_LEASE_MS;
    call->response.open_session.session_id.bytes[0] = 0x5e;
    scripted->call_done(scripted->object, call);
}

void scripted_done(struct scripted_coordinator *scripted, struct model_call *call,
                   uint64_t lock_token, uint64_t seq)
{
    struct model_execute_response *response = &call->response.execute;

    model_response_ok(&call->response, MODEL_CALL_EXECUTE);
    response->outcome = MODEL_OUTCOME_DONE;
    response->lock_token = lock_token;
    response->epoch = 5;
    memcpy(response->instance, "i1", sizeof("i1"));
    response->data.version = (struct model_version){.epoch = 5, .incarnation = 3, .seq = seq};
    scripted->call_done(scripted->object, call);
}

uint64_t scripted_wake(struct scripted_coordinator *scripted)
{
    uint64_t before = scripted->fake.now_us;
    uint64_t wakeup;

    collect(scripted);
    wakeup = scripted->next_wakeup_us(scripted->object);
    cr_assert_neq(wakeup, RT_NEVER);
    if (wakeup > before)
        scripted->fake.now_us = wakeup;
    scripted->tick(scripted->object);
    return scripted->fake.now_us - before;
}

void scripted_pass(struct scripted_coordinator *scripted, uint64_t us)
{
    uint64_t end = scripted->fake.now_us + us;

    collect(scripted);
    while (scripted->next_wakeup_us(scripted->object) <= end) {
        (void)scripted_wake(scripted);
        collect(scripted);
    }
    scripted->fake.now_us = end;
}
