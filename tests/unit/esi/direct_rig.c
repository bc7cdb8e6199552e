/*
 * Direct client's rig: see direct_rig.h. The test's thread.
 */
#include "tests/unit/esi/direct_rig.h"

#include <criterion/criterion.h>
#include <stdio.h>

void direct_rig_init(struct direct_rig *rig)
{
    struct esi_direct_config config = {
        .name = "direct-1",
        .coordinator_address = "coordinator:7400",
        .client_id = {.bytes = {0xc1}},
        .session_client_id = {.bytes = {0x51}},
    };

    test_env_init(&rig->fake, 1);
    rt_list_init(&rig->calls);
    rt_list_init(&rig->answered);
    rig->answer_keep_alives = true;
    rig->direct = esi_direct_new(&config, &rig->fake.env);
}

static void collect(struct direct_rig *rig)
{
    struct model_effects taken;
    struct rt_list *node;

    model_effects_take(esi_direct_effects(rig->direct), &taken);
    cr_assert(rt_list_is_empty(&taken.txns));
    rt_list_splice_back(&rig->answered, &taken.replies);
    while ((node = rt_list_pop_front(&taken.calls))) {
        struct model_call *call = RT_LIST_ENTRY(node, struct model_call, link);

        rt_list_push_back(&rig->calls, node);
        if (call->request.kind != MODEL_CALL_KEEP_ALIVE || !rig->answer_keep_alives)
            continue;
        rt_list_remove(node);
        direct_rig_ok(rig, call, 0);
    }
}

static void free_all(struct rt_list *calls)
{
    struct rt_list *node;

    while ((node = rt_list_pop_front(calls)))
        (void)model_call_free(RT_LIST_ENTRY(node, struct model_call, link));
}

void direct_rig_deinit(struct direct_rig *rig)
{
    esi_direct_close(rig->direct);
    collect(rig);
    rig->direct = esi_direct_free(rig->direct);
    free_all(&rig->answered);
}

struct model_call *direct_rig_submit(struct direct_rig *rig, enum model_call_kind kind,
                                     const char *key)
{
    struct model_call *call = model_call_new(kind);

    call->deadline_us = rig->fake.now_us + DIRECT_RIG_TIMEOUT_US;
    if (kind == MODEL_CALL_LOCK)
        call->request.lock.key = rt_bytes_of_string(key);
    else if (kind == MODEL_CALL_UNLOCK)
        call->request.unlock.key = rt_bytes_of_string(key);
    else
        call->request.data.header.key = rt_bytes_of_string(key);
    if (kind == MODEL_CALL_SET || kind == MODEL_CALL_PUT)
        call->request.data.value = RT_BYTES_LITERAL("v");
    esi_direct_submit(rig->direct, call);
    return call;
}

struct model_call *direct_rig_take(struct direct_rig *rig, enum model_call_kind kind)
{
    collect(rig);
    rt_list_for_each (node, &rig->calls) {
        struct model_call *call = RT_LIST_ENTRY(node, struct model_call, link);

        if (call->request.kind != kind)
            continue;
        rt_list_remove(node);
        return call;
    }
    cr_assert_fail("no %s was sent", model_call_kind_name(kind));
    return NULL;
}

size_t direct_rig_n_calls(struct direct_rig *rig)
{
    size_t n = 0;

    collect(rig);
    rt_list_for_each (node, &rig->calls)
        n++;
    return n;
}

void direct_rig_route(struct direct_rig *rig, const char *owner, uint64_t epoch,
                      uint64_t incarnation)
{
    struct model_call *call = direct_rig_take(rig, MODEL_CALL_ROUTE);
    struct model_route *route = &call->response.route.route;

    cr_assert_str_eq(call->address, "coordinator:7400");
    model_response_ok(&call->response, MODEL_CALL_ROUTE);
    call->response.responder = (struct model_responder){.term = 2};
    call->response.route.has_route = true;
    (void)snprintf(route->owner, sizeof(route->owner), "%s", owner);
    (void)snprintf(route->address, sizeof(route->address), "%s:1", owner);
    route->epoch = epoch;
    route->incarnation = incarnation;
    route->cluster_id.bytes[0] = 0xcc;
    esi_direct_call_done(rig->direct, call);
}

struct model_call *direct_rig_attempt(struct direct_rig *rig, enum model_call_kind kind,
                                      struct model_call **ret_operation)
{
    *ret_operation = direct_rig_submit(rig, kind, "k");
    direct_rig_route(rig, "i1", 5, 3);
    return direct_rig_take(rig, kind);
}

static void say_who(struct model_call *call)
{
    call->response.responder = (struct model_responder){0};
    if (call->request.kind < MODEL_CALL_SET || call->request.kind > MODEL_CALL_DELETE)
        return;
    call->response.responder.incarnation = call->request.data.header.incarnation;
    memcpy(call->response.responder.name, call->request.data.header.owner,
           sizeof(call->response.responder.name));
}

void direct_rig_ok(struct direct_rig *rig, struct model_call *call, uint64_t seq)
{
    enum model_call_kind kind = call->request.kind;

    model_response_ok(&call->response, kind);
    say_who(call);
    if (kind == MODEL_CALL_KEEP_ALIVE)
        call->response.keep_alive.lease_ms = DIRECT_RIG_LEASE_MS;
    else if (kind >= MODEL_CALL_SET && kind <= MODEL_CALL_DELETE)
        call->response.data.version =
            (struct model_version){.epoch = call->request.data.header.epoch,
                                   .incarnation = call->request.data.header.incarnation,
                                   .seq = seq};
    esi_direct_call_done(rig->direct, call);
}

void direct_rig_fail(struct direct_rig *rig, struct model_call *call, enum model_reason reason)
{
    say_who(call);
    model_response_fail(&call->response, reason, "as the test says");
    call->response.error.refresh_required =
        reason == MODEL_REASON_NOT_OWNER || reason == MODEL_REASON_STALE_EPOCH ||
        reason == MODEL_REASON_STALE_INCARNATION || reason == MODEL_REASON_SUPERSEDED;
    esi_direct_call_done(rig->direct, call);
}

void direct_rig_fail_plain(struct direct_rig *rig, struct model_call *call, enum rt_code code)
{
    call->response.responder = (struct model_responder){0};
    call->response.code = code;
    call->response.error = (struct model_error){.message = "connection reset"};
    esi_direct_call_done(rig->direct, call);
}

void direct_rig_hint(struct direct_rig *rig, struct model_call *call, enum model_reason reason,
                     const char *owner, uint64_t epoch, uint64_t incarnation)
{
    struct model_hint *hint = &call->response.error.hint;

    say_who(call);
    model_response_fail(&call->response, reason, "as the test says");
    call->response.error.refresh_required = true;
    call->response.error.has_hint = true;
    (void)snprintf(hint->name, sizeof(hint->name), "%s", owner);
    (void)snprintf(hint->address, sizeof(hint->address), "%s:1", owner);
    hint->epoch = epoch;
    hint->incarnation = incarnation;
    esi_direct_call_done(rig->direct, call);
}

uint64_t direct_rig_wake(struct direct_rig *rig)
{
    uint64_t before = rig->fake.now_us;
    uint64_t wakeup;

    collect(rig);
    wakeup = esi_direct_next_wakeup_us(rig->direct);
    cr_assert_neq(wakeup, RT_NEVER);
    if (wakeup > before)
        rig->fake.now_us = wakeup;
    esi_direct_tick(rig->direct);
    return rig->fake.now_us - before;
}

void direct_rig_pass(struct direct_rig *rig, uint64_t us)
{
    uint64_t end = rig->fake.now_us + us;

    collect(rig);
    while (esi_direct_next_wakeup_us(rig->direct) <= end) {
        (void)direct_rig_wake(rig);
        collect(rig);
    }
    rig->fake.now_us = end;
}

bool direct_rig_is_answered(struct direct_rig *rig, const struct model_call *operation)
{
    collect(rig);
    rt_list_for_each (node, &rig->answered)
        if (node == &operation->link)
            return true;
    return false;
}

void direct_rig_expect_ok(struct direct_rig *rig, const struct model_call *operation)
{
    cr_assert(direct_rig_is_answered(rig, operation));
    cr_assert_eq(operation->response.code, RT_OK, "%s", operation->response.error.message);
}

void direct_rig_expect_failure(struct direct_rig *rig, const struct model_call *operation,
                               enum model_reason reason, enum model_applied applied)
{
    const struct model_error *error = &operation->response.error;

    cr_assert(direct_rig_is_answered(rig, operation));
    cr_assert_neq(operation->response.code, RT_OK);
    cr_assert_str_eq(model_reason_name(error->reason), model_reason_name(reason));
    cr_assert_eq(error->applied, applied);
}

void direct_rig_lock(struct direct_rig *rig, const char *key, uint64_t token)
{
    struct model_call *operation = direct_rig_submit(rig, MODEL_CALL_LOCK, key);
    struct model_call *call;

    collect(rig);
    rt_list_for_each_safe (node, &rig->calls) {
        call = RT_LIST_ENTRY(node, struct model_call, link);
        if (call->request.kind != MODEL_CALL_OPEN_SESSION)
            continue;
        rt_list_remove(node);
        model_response_ok(&call->response, MODEL_CALL_OPEN_SESSION);
        call->response.open_session.lease_ms = DIRECT_RIG_LEASE_MS;
        call->response.open_session.session_id.bytes[0] =
            (uint8_t)call->request.open_session.request_id.seq;
        esi_direct_call_done(rig->direct, call);
    }
    call = direct_rig_take(rig, MODEL_CALL_LOCK);
    cr_assert_str_eq(call->address, "coordinator:7400");
    model_response_ok(&call->response, MODEL_CALL_LOCK);
    call->response.lock.outcome = MODEL_OUTCOME_DONE;
    call->response.lock.lock_token = token;
    esi_direct_call_done(rig->direct, call);
    direct_rig_expect_ok(rig, operation);
}
