/*
 * The scripted core: see fake_core.h. Everything happens under the host's lock.
 */
#include "tests/unit/host/fake_core.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/alloc.h"

struct fake_out {
    struct rt_list link;
    struct model_call *call; /* owned */
    struct model_call *inbound;
    unsigned id;
};

/* ---- messages ---- */

static const char key[] = "fake-key";

static struct rt_bytes filler(uint32_t size, struct rt_arena *arena)
{
    uint8_t *bytes = rt_arena_alloc(arena, size);

    rt_assert(bytes);
    memset(bytes, 'v', size);
    return rt_bytes_of(bytes, size);
}

static void fill_data(struct model_data_request *data, enum model_call_kind kind, uint64_t tag,
                      struct rt_bytes value)
{
    data->header = (struct model_header){
        .key = rt_bytes_of_string(key),
        .epoch = 1,
        .owner = "i1",
        .incarnation = 1,
        .request_id = {.client.bytes = {1}, .seq = 1},
        .first_epoch = 1,
        .lock_token = tag,
    };
    data->header.cluster_id.bytes[0] = 1;
    if (kind == MODEL_CALL_SET || kind == MODEL_CALL_PUT)
        data->value = value;
}

void fake_request(struct model_request *ret_request, enum model_call_kind kind, uint64_t tag,
                  uint32_t value_size, struct rt_arena *arena)
{
    struct rt_bytes value = filler(value_size, arena);

    *ret_request = (struct model_request){.kind = kind};
    switch ((unsigned)kind) {
    case MODEL_CALL_SET:
    case MODEL_CALL_PUT:
    case MODEL_CALL_READ:
        fill_data(&ret_request->data, kind, tag, value);
        break;
    case MODEL_CALL_EXECUTE:
        ret_request->execute = (struct model_execute_request){
            .session_id.bytes = {1},
            .request_id = {.client.bytes = {1}, .seq = 1},
            .done_below = tag,
            .kind = MODEL_STATEMENT_SET,
            .key = rt_bytes_of_string(key),
            .value = value,
        };
        break;
    case MODEL_CALL_KEEP_ALIVE:
        ret_request->session.session_id.bytes[0] = 1;
        ret_request->session.session_id.bytes[15] = (uint8_t)tag;
        break;
    case MODEL_CALL_RECONCILE:
        ret_request->reconcile =
            (struct model_reconcile_request){.name = "i1", .incarnation = 1, .part = tag};
        break;
    default:
        rt_assert(false);
    }
}

uint64_t fake_tag_of_request(const struct model_request *request)
{
    switch ((unsigned)request->kind) {
    case MODEL_CALL_EXECUTE:
        return request->execute.done_below;
    case MODEL_CALL_KEEP_ALIVE:
        return request->session.session_id.bytes[15];
    case MODEL_CALL_RECONCILE:
        return request->reconcile.part;
    default:
        return request->data.header.lock_token;
    }
}

static void check_key(const struct model_request *request)
{
    struct rt_bytes seen =
        request->kind == MODEL_CALL_EXECUTE ? request->execute.key : request->data.header.key;

    if (request->kind != MODEL_CALL_KEEP_ALIVE && request->kind != MODEL_CALL_RECONCILE)
        rt_assert(seen.size == sizeof(key) - 1 && memcmp(seen.data, key, seen.size) == 0);
}

static void fill_version(struct model_data_response *data, uint64_t tag)
{
    data->version = (struct model_version){.epoch = 1, .incarnation = 1, .seq = tag};
}

static void fill_evicted(const struct fake_core *core, struct model_call *call)
{
    struct model_data_response *data = &call->response.data;

    if (core->n_evicted == 0)
        return;
    data->evicted = rt_arena_alloc(&call->arena, core->n_evicted * sizeof(*data->evicted));
    rt_assert(data->evicted);
    for (; data->n_evicted < core->n_evicted; data->n_evicted++)
        data->evicted[data->n_evicted] = filler(MODEL_KEY_MAX, &call->arena);
}

static void fill_response(struct fake_core *core, struct model_call *call)
{
    uint64_t tag = fake_tag_of_request(&call->request);
    struct model_response *response = &call->response;

    model_response_ok(response, call->request.kind);
    switch ((unsigned)call->request.kind) {
    case MODEL_CALL_EXECUTE:
        fill_version(&response->execute.data, tag);
        response->execute.data.has_value = core->value_size > 0;
        response->execute.data.value = filler(core->value_size, &call->arena);
        break;
    case MODEL_CALL_KEEP_ALIVE:
        response->keep_alive.lease_ms = tag;
        break;
    case MODEL_CALL_RECONCILE:
        response->reconcile.done = true;
        break;
    case MODEL_CALL_SET:
    case MODEL_CALL_PUT:
        fill_version(&response->data, tag);
        fill_evicted(core, call);
        break;
    case MODEL_CALL_READ:
        response->data.has_value = core->value_size > 0;
        response->data.value = filler(core->value_size, &call->arena);
        fill_version(&response->data, tag);
        break;
    default:
        fill_version(&response->data, tag);
    }
}

uint64_t fake_tag_of_response(const struct model_response *response, enum model_call_kind kind)
{
    switch ((unsigned)kind) {
    case MODEL_CALL_EXECUTE:
        return response->execute.data.version.seq;
    case MODEL_CALL_KEEP_ALIVE:
        return response->keep_alive.lease_ms;
    case MODEL_CALL_RECONCILE:
        return 0;
    default:
        return response->data.version.seq;
    }
}

/* ---- answers ---- */

static void answer(struct fake_core *core, struct model_call *call)
{
    rt_list_remove(&call->link);
    core->n_inside--;
    check_key(&call->request);
    if (core->fills_arena)
        call->arena.limit = 1;
    call->state = NULL;
    rt_list_push_back(&core->effects.replies, &call->link);
    latch_add(&core->answers);
}

static void answer_by_policy(struct fake_core *core, struct model_call *call)
{
    if (core->fails) {
        model_response_fail(&call->response, MODEL_REASON_KEY_LOST, "as the test says");
        call->response.error.current_epoch = 7;
        call->response.error.has_hint = true;
        call->response.error.hint =
            (struct model_hint){.name = "i2", .address = "h:1", .incarnation = 3, .epoch = 7};
    } else {
        fill_response(core, call);
    }
    answer(core, call);
}

void fake_answer_one(void *pointer, void *argument)
{
    struct fake_core *core = pointer;

    (void)argument;
    if (!rt_list_is_empty(&core->held))
        answer_by_policy(core, RT_LIST_ENTRY(core->held.next, struct model_call, link));
}

void fake_answer_newest(void *pointer, void *argument)
{
    struct fake_core *core = pointer;

    (void)argument;
    if (!rt_list_is_empty(&core->held))
        answer_by_policy(core, RT_LIST_ENTRY(core->held.previous, struct model_call, link));
}

void fake_set_mode(void *pointer, void *mode)
{
    struct fake_core *core = pointer;

    core->mode = *(const enum fake_mode *)mode;
}

void fake_answer_all(void *pointer, void *argument)
{
    struct fake_core *core = pointer;

    while (!rt_list_is_empty(&core->held))
        fake_answer_one(core, argument);
}

/* ---- what the core makes ---- */

static void send_out(struct fake_core *core, struct model_call *call, struct model_call *inbound)
{
    struct fake_out *out = rt_xalloc(sizeof(*out));

    out->call = call;
    out->inbound = inbound;
    out->id = ++core->last_id;
    call->state = out;
    rt_list_push_back(&core->out, &out->link);
    rt_list_push_back(&core->effects.calls, &call->link);
}

static void set_address(struct model_call *call, const char *address)
{
    struct rt_bytes copy;

    rt_assert(rt_arena_copy(&call->arena, rt_bytes_of_string(address), &copy));
    call->address = (const char *)copy.data;
}

void fake_make_call(void *pointer, void *argument)
{
    struct fake_core *core = pointer;
    struct fake_order *order = argument;
    struct model_call *call = model_call_new(order->kind);

    set_address(call, order->address);
    fake_request(&call->request, order->kind, order->tag, order->value_size, &call->arena);
    if (order->is_late)
        call->deadline_us = rt_env_now_us(core->env);
    else if (order->timeout_us != 0)
        call->deadline_us = rt_env_now_us(core->env) + order->timeout_us;
    if (order->arena_limit != 0)
        call->arena.limit = call->arena.used + order->arena_limit;
    send_out(core, call, NULL);
    order->ret_id = core->last_id;
}

static void relay(struct fake_core *core, struct model_call *inbound)
{
    struct model_call *call = model_call_new(inbound->request.kind);
    enum rt_code code = model_request_copy(&call->request, &inbound->request, &call->arena, NULL);

    rt_assert(code == RT_OK);
    set_address(call, core->relay_address);
    if (core->relay_timeout_us != 0)
        call->deadline_us = rt_env_now_us(core->env) + core->relay_timeout_us;
    send_out(core, call, inbound);
}

static void make_txn(struct fake_core *core, struct model_call *inbound)
{
    struct store_txn *txn = store_txn_new();
    char row[32];

    (void)snprintf(row, sizeof(row), "row%u", ++core->n_txn_rows);
    store_txn_put(txn, rt_bytes_of_string(row), rt_bytes_of_string("value"));
    txn->ctx = inbound;
    rt_list_push_back(&core->effects.txns, &txn->link);
}

void fake_make_txn(void *pointer, void *argument)
{
    (void)argument;
    make_txn(pointer, NULL);
}

void fake_wake_at(void *pointer, void *when_us)
{
    struct fake_core *core = pointer;

    core->wakeup_us = *(const uint64_t *)when_us;
}

/* ---- the face of a core ---- */

static void enter(struct fake_core *core)
{
    rt_assert(!core->is_in_step);
    core->is_in_step = true;
}

static void leave(struct fake_core *core)
{
    core->is_in_step = false;
}

static void note_submit(struct fake_core *core, struct model_call *call)
{
    rt_assert(!call->state && !call->cancelled);
    call->state = core;
    rt_list_push_back(&core->held, &call->link);
    core->tags[core->n_tags++ % FAKE_LOG_MAX] = fake_tag_of_request(&call->request);
    core->last_deadline_us = call->deadline_us;
    if (++core->n_inside > core->most_inside)
        core->most_inside = core->n_inside;
}

/* The hint changes nothing in a core; this one counts what it is told. */
static void expect(const void *pointer, const struct rt_bytes *keys, size_t n_keys)
{
    struct fake_core *core = (struct fake_core *)pointer;

    rt_assert(!core->is_in_step && n_keys >= 1 && n_keys <= HOST_EXPECT_MAX);
    for (size_t i = 0; i < n_keys; i++)
        core->n_expected += keys[i].size > 0;
}

static void submit(void *pointer, struct model_call *call)
{
    struct fake_core *core = pointer;

    enter(core);
    note_submit(core, call);
    switch (core->mode) {
    case FAKE_NOW:
        answer_by_policy(core, call);
        break;
    case FAKE_TICK:
        core->wakeup_us = rt_env_now_us(core->env);
        break;
    case FAKE_HOLD:
        break;
    case FAKE_STORE:
        make_txn(core, call);
        break;
    case FAKE_RELAY:
        relay(core, call);
        break;
    }
    latch_add(&core->submits);
    leave(core);
}

static bool is_held(const struct fake_core *core, const struct model_call *call)
{
    rt_list_for_each (node, &core->held)
        if (node == &call->link)
            return true;
    return false;
}

static void cancel(void *pointer, struct model_call *call)
{
    struct fake_core *core = pointer;

    enter(core);
    rt_assert(is_held(core, call));
    rt_assert(call->cancelled && call->state == core);
    call->state = &core->cancels; /* a second cancellation is noticed */
    if (core->answers_cancelled) {
        model_response_fail(&call->response, MODEL_REASON_CANCELLED, "cancelled");
        answer(core, call);
    }
    latch_add(&core->cancels);
    leave(core);
}

static void note_result(struct fake_core *core, const struct fake_out *out)
{
    struct fake_result *result = &core->results[core->n_results++ % FAKE_LOG_MAX];
    const struct model_response *response = &out->call->response;

    *result = (struct fake_result){
        .id = out->id,
        .code = response->code,
        .was_loop_thread = rpc_runtime_is_loop_thread(core->runtime),
    };
    if (response->code == RT_OK)
        result->tag = fake_tag_of_response(response, out->call->request.kind);
    else
        result->error = response->error;
    result->error.key = (struct rt_bytes){0};
}

static void call_done(void *pointer, struct model_call *call)
{
    struct fake_core *core = pointer;
    struct fake_out *out = call->state;
    enum rt_code code = RT_OK;

    enter(core);
    rt_assert(out && out->call == call);
    note_result(core, out);
    if (out->inbound) {
        struct model_call *inbound = out->inbound;

        rt_assert(is_held(core, inbound));
        code = model_response_copy(&inbound->response, &call->response, call->request.kind,
                                   &inbound->arena, NULL);
        rt_assert(code == RT_OK);
        answer(core, inbound);
    }
    rt_list_remove(&out->link);
    (void)rt_free(out);
    (void)model_call_free(call);
    latch_add(&core->dones);
    leave(core);
}

/* Rows are numbered in the order in which they were made. */
static void check_txn_order(struct fake_core *core, const struct store_txn *txn)
{
    char row[32];

    (void)snprintf(row, sizeof(row), "row%u", ++core->n_txns_back);
    rt_assert(rt_bytes_equal(txn->operations[0].key, rt_bytes_of_string(row)));
}

static void txn_done(void *pointer, struct store_txn *txn)
{
    struct fake_core *core = pointer;
    struct model_call *inbound = txn->ctx;

    enter(core);
    check_txn_order(core, txn);
    if (txn->outcome == STORE_COMMITTED)
        core->n_committed++;
    else
        core->n_not_committed++;
    (void)store_txn_free(txn);
    if (inbound)
        answer_by_policy(core, inbound);
    if (core->n_chained_txns > 0) {
        core->n_chained_txns--;
        make_txn(core, NULL);
    }
    latch_add(&core->txns);
    leave(core);
}

static void tick(void *pointer)
{
    struct fake_core *core = pointer;

    enter(core);
    core->last_tick_us = rt_env_now_us(core->env);
    if (core->wakeup_us <= core->last_tick_us) {
        core->wakeup_us = RT_NEVER;
        if (core->mode == FAKE_TICK)
            fake_answer_all(core, NULL);
        latch_add(&core->ticks);
    }
    leave(core);
}

static uint64_t next_wakeup_us(const void *pointer)
{
    return ((const struct fake_core *)pointer)->wakeup_us;
}

static struct model_effects *effects(void *pointer)
{
    return &((struct fake_core *)pointer)->effects;
}

static void responder(const void *pointer, struct model_responder *ret_responder)
{
    rt_assert(!((const struct fake_core *)pointer)->is_in_step);
    *ret_responder = (struct model_responder){.name = FAKE_NAME, .incarnation = 3, .term = 4};
}

const struct host_core_ops fake_core_ops = {
    .responder = responder,
    .expect = expect,
    .submit = submit,
    .cancel = cancel,
    .call_done = call_done,
    .txn_done = txn_done,
    .tick = tick,
    .next_wakeup_us = next_wakeup_us,
    .effects = effects,
};

void fake_core_init(struct fake_core *core, struct rpc_runtime *runtime)
{
    memset(core, 0, sizeof(*core));
    model_effects_init(&core->effects);
    core->runtime = runtime;
    core->env = rpc_runtime_env(runtime);
    core->wakeup_us = RT_NEVER;
    rt_list_init(&core->held);
    rt_list_init(&core->out);
    latch_init(&core->submits);
    latch_init(&core->cancels);
    latch_init(&core->answers);
    latch_init(&core->dones);
    latch_init(&core->txns);
    latch_init(&core->ticks);
}

void fake_core_deinit(struct fake_core *core)
{
    rt_assert(model_effects_is_empty(&core->effects));
    rt_list_for_each_safe (node, &core->out) {
        struct fake_out *out = RT_LIST_ENTRY(node, struct fake_out, link);

        (void)model_call_free(out->call);
        (void)rt_free(out);
    }
}
