/*
 * Batches (Pipeline): results in the order of operations and of batches, one bad operation alone,
 * what is under way and its limits, clients that vanish or do not read.
 */
#include "runtime/host/batch.h"

#include <stdatomic.h>

#include "redistinto/v1/instance.pb-c.h"
#include "runtime/host/inbound.h"
#include "runtime/model/limits.h"
#include "runtime/wire/response.h"
#include "tests/support/check.h"
#include "tests/unit/host/rig.h"

TestSuite(batch, .fini = test_alloc_expect_none, .timeout = 50);

enum {
    RESULTS_MAX = 9, /* that are kept of an answer */
    ANSWERS_MAX = 512,
};

/* What came for one operation. */
struct seen {
    enum rt_code code;
    enum model_reason reason;
    enum model_applied applied;
    uint64_t tag;
    size_t value_size;
    size_t n_evicted;
};

struct batch_answer {
    uint64_t id;
    enum rt_code code; /* of the batch as a whole */
    enum model_reason reason;
    enum model_applied applied;
    char responder[MODEL_NAME_MAX + 1];
    size_t n;
    struct seen results[RESULTS_MAX];
};

static struct host_rig rig;
static struct host_node *const node = &rig.nodes[0];

/* The client's end of one stream. */
static struct {
    struct rpc_client_stream *rpc; /* owned */
    struct latch messages;
    struct latch done;
    struct batch_answer answers[ANSWERS_MAX];
    size_t n_refused; /* results with LIMIT_REACHED */
    enum rt_code code;
    enum model_reason reason;
    char responder[MODEL_NAME_MAX + 1]; /* of the end */
    bool is_reading_paused;
} client;

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's --wrap prescribes these names. */
enum rt_code __real_rpc_call_send(struct rpc_call *call, const ProtobufCMessage *message);
enum rt_code __wrap_rpc_call_send(struct rpc_call *call, const ProtobufCMessage *message);

/* The next answer finds no room, and there is room again before the host has noted that. */
static atomic_bool refuses_next;

enum rt_code __wrap_rpc_call_send(struct rpc_call *call, const ProtobufCMessage *message)
{
    if (!atomic_exchange(&refuses_next, false))
        return __real_rpc_call_send(call, message);
    host_batch_handlers.on_writable(call, node->host);
    return RT_RESOURCE_EXHAUSTED;
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* The batch that is being built. */
static struct rt_arena arena;
static struct model_request next;
static uint64_t last_tag;

static void keep_result(struct seen *seen, const struct model_pipeline_result *result)
{
    seen->code = result->code;
    seen->tag = result->data.version.seq;
    seen->value_size = result->data.value.size;
    seen->n_evicted = result->data.n_evicted;
    if (!result->error)
        return;
    seen->reason = result->error->reason;
    seen->applied = result->error->applied;
}

static void on_message(struct rpc_client_stream *rpc, const ProtobufCMessage *message, void *ctx)
{
    struct batch_answer *answer = &client.answers[latch_count(&client.messages) % ANSWERS_MAX];
    struct rt_arena memory = {0};
    struct model_response response = {0};
    const struct model_pipeline_response *pipeline = &response.pipeline;

    (void)ctx;
    wire_response_decode(MODEL_CALL_PIPELINE, message, NULL, &memory, &response);
    *answer =
        (struct batch_answer){.id = wire_response_exchange_id(message), .code = response.code};
    memcpy(answer->responder, response.responder.name, sizeof(answer->responder));
    if (response.code != RT_OK) {
        answer->reason = response.error.reason;
        answer->applied = response.error.applied;
    } else {
        answer->n = pipeline->n_results;
        for (size_t i = 0; i < pipeline->n_results && i < RESULTS_MAX; i++)
            keep_result(&answer->results[i], &pipeline->results[i]);
        for (size_t i = 0; i < pipeline->n_results; i++)
            if (pipeline->results[i].error &&
                pipeline->results[i].error->reason == MODEL_REASON_LIMIT_REACHED)
                client.n_refused++;
    }
    rt_arena_reset(&memory);
    rpc_client_stream_read_next(rpc);
    latch_add(&client.messages);
}

static void on_done(struct rpc_client_stream *rpc, const struct rt_error *err, void *ctx)
{
    struct rt_arena memory = {0};
    struct model_response response = {0};

    (void)rpc;
    (void)ctx;
    client.code = err ? err->code : RT_OK;
    if (err) {
        wire_response_decode(MODEL_CALL_PIPELINE, NULL, err, &memory, &response);
        client.reason = response.error.reason;
        memcpy(client.responder, response.responder.name, sizeof(client.responder));
    }
    rt_arena_reset(&memory);
    latch_add(&client.done);
}

static void open_stream(void)
{
    static const struct rpc_client_stream_handlers handlers = {.on_message = on_message,
                                                               .on_done = on_done};
    struct rpc_client_options options = {.timeout_ms = RPC_NO_TIMEOUT};
    struct rpc_client_method target;

    latch_init(&client.messages);
    latch_init(&client.done);
    rpc_client_method_of(&redistinto__v1__instance_service__descriptor, "Pipeline", &target);
    client.rpc = rpc_client_stream_open(rig.channel, &target, &options, &handlers, NULL);
    if (!client.is_reading_paused)
        rpc_client_stream_read_next(client.rpc);
}

static void set_up(enum fake_mode mode)
{
    host_rig_init(&rig, 1);
    node->core.mode = mode;
    open_stream();
}

static void tear_down(void)
{
    host_rig_stop(&rig);
    latch_wait(&client.done, 1);
    client.rpc = rpc_client_stream_unref(client.rpc);
    host_rig_deinit(&rig);
    rt_arena_reset(&arena);
}

/* ---- building batches ---- */

static struct model_pipeline_request *begin(size_t n)
{
    rt_arena_reset(&arena);
    next = (struct model_request){
        .kind = MODEL_CALL_PIPELINE,
        .pipeline = {.cluster_id.bytes = {1},
                     .owner = "i1",
                     .incarnation = 1,
                     .client.bytes = {2},
                     .operations = rt_arena_alloc(&arena, n * sizeof(*next.pipeline.operations)),
                     .n_operations = n},
    };
    cr_assert_not_null(next.pipeline.operations);
    for (size_t i = 0; i < n; i++)
        next.pipeline.operations[i] = (struct model_pipeline_operation){
            .kind = MODEL_CALL_SET,
            .key = RT_BYTES_LITERAL("fake-key"),
            .epoch = 1,
            .lock_token = ++last_tag,
        };
    return &next.pipeline;
}

static ProtobufCMessage *encode_batch(uint64_t id, uint32_t timeout_ms)
{
    struct wire_exchange exchange = {.id = id, .timeout_ms = timeout_ms};
    ProtobufCMessage *message;

    cr_assert_eq(wire_request_encode(&next, &arena, &message, NULL), RT_OK);
    wire_request_set_exchange(message, &exchange);
    return message;
}

static enum rt_code send_batch(uint64_t id, uint32_t timeout_ms)
{
    return rpc_client_stream_send(client.rpc, encode_batch(id, timeout_ms));
}

/* `n` SETs without values. */
static void post(uint64_t id, size_t n)
{
    (void)begin(n);
    cr_assert_eq(send_batch(id, 0), RT_OK);
}

static void begin_reads(size_t n)
{
    struct model_pipeline_request *pipeline = begin(n);

    for (size_t i = 0; i < n; i++)
        pipeline->operations[i].kind = MODEL_CALL_READ;
}

static void post_reads(uint64_t id, size_t n)
{
    begin_reads(n);
    cr_assert_eq(send_batch(id, 0), RT_OK);
}

static void set_mode(enum fake_mode mode)
{
    host_node_step(node, fake_set_mode, &mode);
}

/* Unary calls take their turns behind what the stream has to do; returns how many. */
static unsigned let_the_server_work(void)
{
    enum {
        N_CALLS = 20
    };

    for (uint64_t tag = 1; tag <= N_CALLS; tag++)
        cr_assert_eq(client_call_now(&rig, MODEL_CALL_SET, tag), RT_OK);
    return N_CALLS;
}

/* ---- order ---- */

static void check_answer(unsigned index, uint64_t id, size_t n, uint64_t first_tag)
{
    const struct batch_answer *answer = &client.answers[index];

    cr_assert_eq(answer->id, id);
    cr_assert_eq(answer->code, RT_OK, "%s", model_reason_name(answer->reason));
    cr_assert_eq(answer->n, n);
    for (size_t i = 0; i < n && i < RESULTS_MAX; i++) {
        cr_assert_eq(answer->results[i].code, RT_OK);
        cr_assert_eq(answer->results[i].tag, first_tag + i);
    }
}

static void check_order(enum fake_mode mode)
{
    set_up(mode);
    for (unsigned i = 0; i < 20; i++)
        post(100 + i, 3);
    latch_wait(&client.messages, 20);
    for (unsigned i = 0; i < 20; i++)
        check_answer(i, 100 + i, 3, 3 * i + 1);
    for (unsigned i = 0; i < 60; i++)
        cr_assert_eq(node->core.tags[i], i + 1);
    rpc_client_stream_finish_writes(client.rpc);
    latch_wait(&client.done, 1);
    cr_assert_eq(client.code, RT_OK);
    tear_down();
}

Test(batch, results_are_in_order)
{
    check_order(FAKE_NOW);
}

Test(batch, results_are_in_order_from_the_loop)
{
    check_order(FAKE_TICK);
}

Test(batch, an_empty_one_is_answered)
{
    set_up(FAKE_NOW);
    post(7, 0);
    latch_wait(&client.messages, 1);
    check_answer(0, 7, 0, 0);
    cr_assert_str_eq(client.answers[0].responder, FAKE_NAME);
    tear_down();
}

Test(batch, every_kind_reaches_the_core)
{
    struct model_pipeline_request *pipeline;

    set_up(FAKE_NOW);
    node->core.value_size = 10;
    pipeline = begin(5);
    pipeline->operations[1].kind = MODEL_CALL_STORE;
    pipeline->operations[2].kind = MODEL_CALL_PUT;
    pipeline->operations[3].kind = MODEL_CALL_READ;
    pipeline->operations[4].kind = MODEL_CALL_DELETE;
    cr_assert_eq(send_batch(1, 0), RT_OK);
    latch_wait(&client.messages, 1);
    check_answer(0, 1, 5, 1);
    for (unsigned i = 0; i < 5; i++)
        cr_assert_eq(client.answers[0].results[i].value_size, i == 3 ? 10 : 0);
    tear_down();
}

Test(batch, answers_wait_for_the_batches_before_them)
{
    set_up(FAKE_HOLD);
    post(1, 2);
    post(2, 2);
    post(3, 1);
    latch_wait(&node->core.submits, 5);
    for (unsigned i = 0; i < 3; i++)
        host_node_step(node, fake_answer_newest, NULL);
    host_node_step(node, fake_answer_one, NULL);
    cr_assert_eq(latch_count(&client.messages), 0);
    host_node_step(node, fake_answer_one, NULL);
    latch_wait(&client.messages, 3);
    check_answer(0, 1, 2, 1);
    check_answer(1, 2, 2, 3);
    check_answer(2, 3, 1, 5);
    tear_down();
}

/* ---- failures ---- */

Test(batch, a_bad_operation_fails_alone)
{
    struct model_pipeline_request *pipeline;
    const struct seen *results = client.answers[0].results;

    set_up(FAKE_NOW);
    pipeline = begin(5);
    pipeline->operations[0].key = (struct rt_bytes){0};
    pipeline->operations[2].kind = MODEL_N_CALL_KINDS;
    cr_assert_eq(send_batch(1, 0), RT_OK);
    latch_wait(&client.messages, 1);
    cr_assert_eq(client.answers[0].n, 5);
    cr_assert_eq(results[0].code, RT_INVALID_ARGUMENT);
    cr_assert_eq(results[0].reason, MODEL_REASON_KEY_EMPTY);
    cr_assert_eq(results[0].applied, MODEL_APPLIED_NO);
    cr_assert_eq(results[2].reason, MODEL_REASON_INVALID_FIELD);
    for (unsigned i = 1; i < 5; i += i == 1 ? 2 : 1) {
        cr_assert_eq(results[i].code, RT_OK);
        cr_assert_eq(results[i].tag, i + 1);
    }
    cr_assert_eq(latch_count(&node->core.submits), 3);
    tear_down();
}

Test(batch, what_the_core_refuses_is_a_result)
{
    set_up(FAKE_NOW);
    node->core.fails = true;
    post(1, 2);
    latch_wait(&client.messages, 1);
    cr_assert_eq(client.answers[0].n, 2);
    for (unsigned i = 0; i < 2; i++) {
        cr_assert_eq(client.answers[0].results[i].code, RT_FAILED_PRECONDITION);
        cr_assert_eq(client.answers[0].results[i].reason, MODEL_REASON_KEY_LOST);
    }
    tear_down();
}

Test(batch, bad_shared_fields_refuse_all_of_it_and_the_stream_goes_on)
{
    set_up(FAKE_NOW);
    memset(begin(2)->owner, 0, sizeof(next.pipeline.owner));
    cr_assert_eq(send_batch(1, 0), RT_OK);
    post(2, 1);
    latch_wait(&client.messages, 2);
    cr_assert_eq(client.answers[0].id, 1);
    cr_assert_eq(client.answers[0].code, RT_INVALID_ARGUMENT);
    cr_assert_eq(client.answers[0].applied, MODEL_APPLIED_NO);
    cr_assert_str_eq(client.answers[0].responder, FAKE_NAME);
    check_answer(1, 2, 1, 3);
    cr_assert_eq(latch_count(&node->core.submits), 1);
    tear_down();
}

Test(batch, an_undecodable_message_ends_the_stream)
{
    Redistinto__V1__PipelineOperation other;

    set_up(FAKE_NOW);
    redistinto__v1__pipeline_operation__init(&other);
    other.key.data = (uint8_t *)"where a number is expected";
    other.key.len = 20;
    cr_assert_eq(rpc_client_stream_send(client.rpc, &other.base), RT_OK);
    latch_wait(&client.done, 1);
    cr_assert_eq(client.code, RT_INVALID_ARGUMENT);
    tear_down();
}

/* Whatever memory is short of: an answer, or an end, and nothing is left behind. */
Test(batch, memory_that_does_not_come)
{
    for (size_t countdown = 0; countdown < 30; countdown++) {
        ProtobufCMessage *message;

        memset(&client, 0, sizeof(client));
        memset(&rig, 0, sizeof(rig));
        set_up(FAKE_HOLD);
        node->core.value_size = 100;
        begin_reads(64);
        message = encode_batch(1, 0);
        test_alloc_fail_after(countdown, 3);
        cr_assert_eq(rpc_client_stream_send(client.rpc, message), RT_OK);
        rpc_client_stream_finish_writes(client.rpc);
        while (latch_count(&client.done) == 0)
            host_node_step(node, fake_answer_all, NULL);
        test_alloc_fail_never();
        tear_down();
    }
}

/* ---- limits ---- */

Test(batch, operations_of_one)
{
    set_up(FAKE_NOW);
    post(1, MODEL_PIPELINE_OPERATIONS_MAX);
    post(2, MODEL_PIPELINE_OPERATIONS_MAX + 1);
    post(3, 1);
    latch_wait(&client.messages, 3);
    check_answer(0, 1, MODEL_PIPELINE_OPERATIONS_MAX, 1);
    cr_assert_eq(node->core.n_expected, MODEL_PIPELINE_OPERATIONS_MAX + 1);
    cr_assert_eq(client.answers[1].code, RT_RESOURCE_EXHAUSTED);
    cr_assert_eq(client.answers[1].reason, MODEL_REASON_LIMIT_REACHED);
    cr_assert_eq(client.answers[1].applied, MODEL_APPLIED_NO);
    cr_assert_eq(client.answers[2].code, RT_OK);
    cr_assert_eq(latch_count(&node->core.submits), MODEL_PIPELINE_OPERATIONS_MAX + 1);
    tear_down();
}

Test(batch, batches_under_way)
{
    unsigned n_others;

    set_up(FAKE_HOLD);
    for (unsigned i = 1; i <= MODEL_PIPELINE_BATCHES_MAX + 1; i++)
        post(i, 1);
    latch_wait(&node->core.submits, MODEL_PIPELINE_BATCHES_MAX);
    set_mode(FAKE_NOW);
    n_others = let_the_server_work();
    cr_assert_eq(latch_count(&node->core.submits), MODEL_PIPELINE_BATCHES_MAX + n_others);
    host_node_step(node, fake_answer_one, NULL);
    latch_wait(&node->core.submits, MODEL_PIPELINE_BATCHES_MAX + n_others + 1);
    host_node_step(node, fake_answer_all, NULL);
    latch_wait(&client.messages, MODEL_PIPELINE_BATCHES_MAX + 1);
    tear_down();
}

enum {
    KEY = 8,
    /* Of memory for each operation, its key and value aside. */
    FIXED = sizeof(struct model_pipeline_operation) + sizeof(struct model_pipeline_result),
};

/* Four batches of two values; `spare` bytes less than the limit in all. */
static void fill_bytes(unsigned spare)
{
    enum {
        PER_OPERATION = MODEL_PIPELINE_BYTES_MAX / 8,
    };
    static uint8_t value[PER_OPERATION];

    for (unsigned i = 0; i < 4; i++) {
        struct model_pipeline_request *pipeline = begin(2);

        for (unsigned k = 0; k < 2; k++)
            pipeline->operations[k].value =
                rt_bytes_of(value, PER_OPERATION - FIXED - KEY - (i + k == 0 ? spare : 0));
        cr_assert_eq(send_batch(i, 0), RT_OK);
        latch_wait(&node->core.submits, 2 * (i + 1));
    }
    post(4, 1);
}

Test(batch, bytes_under_way)
{
    unsigned n_others;

    set_up(FAKE_HOLD);
    fill_bytes(0);
    set_mode(FAKE_NOW);
    n_others = let_the_server_work();
    cr_assert_eq(latch_count(&node->core.submits), 8 + n_others);
    host_node_step(node, fake_answer_all, NULL);
    latch_wait(&client.messages, 5);
    tear_down();
}

Test(batch, bytes_under_way_below_the_limit)
{
    set_up(FAKE_HOLD);
    fill_bytes(1);
    latch_wait(&node->core.submits, 9);
    tear_down();
}

/* Of each batch one operation is held, and all others have a bad field. */
Test(batch, failures_are_among_the_bytes_under_way)
{
    enum {
        N_SENT = MODEL_PIPELINE_BATCHES_MAX / 2,
        N_OPERATIONS = MODEL_PIPELINE_OPERATIONS_MAX
    };
    size_t n_bytes = (size_t)N_OPERATIONS * (FIXED + KEY) +
                     (size_t)(N_OPERATIONS - 1) * sizeof(struct model_error);
    unsigned n_expected = (unsigned)((MODEL_PIPELINE_BYTES_MAX + n_bytes - 1) / n_bytes);
    unsigned n_others;

    set_up(FAKE_HOLD);
    for (unsigned i = 0; i < N_SENT; i++) {
        struct model_pipeline_request *pipeline = begin(N_OPERATIONS);

        for (unsigned k = 1; k < N_OPERATIONS; k++)
            pipeline->operations[k].kind = MODEL_N_CALL_KINDS;
        cr_assert_eq(send_batch(i, 0), RT_OK);
    }
    latch_wait(&node->core.submits, n_expected);
    set_mode(FAKE_NOW);
    n_others = let_the_server_work();
    cr_assert_eq(latch_count(&node->core.submits), n_expected + n_others);
    host_node_step(node, fake_answer_all, NULL);
    latch_wait(&client.messages, N_SENT);
    tear_down();
}

Test(batch, values_in_a_response)
{
    const struct seen *results = client.answers[0].results;

    set_up(FAKE_NOW);
    node->core.value_size = MODEL_PIPELINE_VALUES_MAX / 2;
    post_reads(1, 3);
    latch_wait(&client.messages, 1);
    cr_assert_eq(client.answers[0].n, 3);
    for (unsigned i = 0; i < 2; i++) {
        cr_assert_eq(results[i].code, RT_OK);
        cr_assert_eq(results[i].value_size, MODEL_PIPELINE_VALUES_MAX / 2);
    }
    cr_assert_eq(results[2].code, RT_RESOURCE_EXHAUSTED);
    cr_assert_eq(results[2].reason, MODEL_REASON_LIMIT_REACHED);
    cr_assert_eq(results[2].applied, MODEL_APPLIED_NO);
    tear_down();
}

Test(batch, evicted_keys_in_a_response)
{
    const struct seen *results = client.answers[0].results;
    size_t room = MODEL_PIPELINE_VALUES_MAX / MODEL_KEY_MAX;

    set_up(FAKE_NOW);
    node->core.n_evicted = MODEL_EVICTED_MAX;
    post(1, 9);
    latch_wait(&client.messages, 1);
    cr_assert_eq(client.answers[0].n, 9);
    for (unsigned i = 0; i < 9; i++) {
        size_t expected = room < MODEL_EVICTED_MAX ? room : MODEL_EVICTED_MAX;

        cr_assert_eq(results[i].code, RT_OK);
        cr_assert_eq(results[i].n_evicted, expected, "the rest has no room in the response");
        room -= expected;
    }
    tear_down();
}

Test(batch, operations_of_all_streams)
{
    enum {
        N_BATCHES = HOST_BATCH_OPERATIONS_MAX / MODEL_PIPELINE_OPERATIONS_MAX
    };

    struct rpc_client_stream *first;

    set_up(FAKE_HOLD);
    for (unsigned i = 0; i < N_BATCHES / 2; i++)
        post(i, MODEL_PIPELINE_OPERATIONS_MAX);
    latch_wait(&node->core.submits, HOST_BATCH_OPERATIONS_MAX / 2);
    first = client.rpc;
    open_stream();
    for (unsigned i = N_BATCHES / 2; i < N_BATCHES; i++)
        post(i, MODEL_PIPELINE_OPERATIONS_MAX);
    post(N_BATCHES, 1);
    post(N_BATCHES + 1, 1);
    latch_wait(&node->core.submits, HOST_BATCH_OPERATIONS_MAX);
    set_mode(FAKE_NOW);
    (void)let_the_server_work();
    host_node_step(node, fake_answer_all, NULL);
    latch_wait(&client.messages, N_BATCHES + 2);
    cr_assert_eq(client.n_refused, 2);
    for (unsigned i = 0; i < N_BATCHES + 2; i++) {
        const struct batch_answer *answer = &client.answers[i];

        if (answer->n != 1)
            continue;
        cr_assert_eq(answer->results[0].reason, MODEL_REASON_LIMIT_REACHED);
        cr_assert_eq(answer->results[0].applied, MODEL_APPLIED_NO);
    }
    rpc_client_stream_finish_writes(first);
    latch_wait(&client.done, 1);
    (void)rpc_client_stream_unref(first);
    tear_down();
}

/* It costs what its queue and its batches may hold, and it is served as soon as it reads. */
Test(batch, a_client_that_does_not_read_is_not_read)
{
    enum {
        QUEUE = 4,
        N_SENT = 200
    };

    rig.queue_messages = QUEUE;
    client.is_reading_paused = true;
    set_up(FAKE_NOW);
    node->core.value_size = MODEL_VALUE_MAX; /* core's windows grow to 16 MiB */
    for (unsigned i = 0; i < N_SENT; i++)
        post_reads(i, 1);
    latch_wait(&node->core.submits, QUEUE + 1);
    (void)let_the_server_work();
    cr_assert_lt(latch_count(&node->core.submits), N_SENT / 2);
    rpc_client_stream_read_next(client.rpc);
    latch_wait(&client.messages, N_SENT);
    for (unsigned i = 0; i < N_SENT; i++)
        check_answer(i, i, 1, i + 1);
    tear_down();
}

Test(batch, room_that_comes_back_at_once)
{
    set_up(FAKE_NOW);
    atomic_store(&refuses_next, true);
    post(1, 1);
    latch_wait(&client.messages, 1);
    check_answer(0, 1, 1, 1);
    cr_assert_not(atomic_load(&refuses_next));
    tear_down();
}

/* ---- time and ends ---- */

Test(batch, each_has_its_deadline)
{
    uint64_t before;

    set_up(FAKE_NOW);
    before = rt_env_now_us(node->core.env);
    post(1, 1);
    latch_wait(&client.messages, 1);
    cr_assert_geq(node->core.last_deadline_us, before + 10000000);
    cr_assert_leq(node->core.last_deadline_us, rt_env_now_us(node->core.env) + 10000000);
    before = rt_env_now_us(node->core.env);
    (void)begin(1);
    cr_assert_eq(send_batch(2, 300), RT_OK);
    latch_wait(&client.messages, 2);
    cr_assert_geq(node->core.last_deadline_us, before + 300000);
    cr_assert_leq(node->core.last_deadline_us, rt_env_now_us(node->core.env) + 300000);
    tear_down();
}

Test(batch, half_closed_with_batches_under_way_ends_after_their_answers)
{
    set_up(FAKE_HOLD);
    post(1, 2);
    post(2, 1);
    rpc_client_stream_finish_writes(client.rpc);
    latch_wait(&node->core.submits, 3);
    cr_assert_eq(latch_count(&client.done), 0);
    host_node_step(node, fake_answer_all, NULL);
    latch_wait(&client.done, 1);
    cr_assert_eq(client.code, RT_OK);
    cr_assert_eq(latch_count(&client.messages), 2);
    tear_down();
    cr_assert_eq(latch_count(&node->core.cancels), 0);
}

Test(batch, a_drain_ends_an_idle_stream)
{
    set_up(FAKE_NOW);
    post(1, 1);
    latch_wait(&client.messages, 1);
    host_end_streams(node->host);
    latch_wait(&client.done, 1);
    cr_assert_eq(client.code, RT_UNAVAILABLE);
    cr_assert_eq(client.reason, MODEL_REASON_DRAINING);
    cr_assert_str_eq(client.responder, FAKE_NAME);
    tear_down();
}

Test(batch, a_drain_ends_a_stream_after_what_is_under_way)
{
    set_up(FAKE_HOLD);
    post(1, 1);
    latch_wait(&node->core.submits, 1);
    host_end_streams(node->host);
    post(2, 1);
    host_node_settle(node);
    cr_assert_eq(latch_count(&client.done), 0);
    host_node_step(node, fake_answer_one, NULL);
    latch_wait(&client.done, 1);
    cr_assert_eq(client.code, RT_UNAVAILABLE);
    cr_assert_eq(client.reason, MODEL_REASON_DRAINING);
    cr_assert_eq(latch_count(&client.messages), 1);
    cr_assert_eq(latch_count(&node->core.submits), 1);
    tear_down();
}

/* The core still reads the operations when their client and the stream are long gone. */
Test(batch, a_client_that_vanishes_is_told_to_the_core_once_an_operation)
{
    set_up(FAKE_HOLD);
    post(1, 2);
    post(2, 1);
    latch_wait(&node->core.submits, 3);
    rpc_client_stream_cancel(client.rpc);
    latch_wait(&node->core.cancels, 3);
    latch_wait(&client.done, 1);
    host_node_down(node, 1);
    host_node_step(node, fake_answer_all, NULL);
    tear_down();
    cr_assert_eq(latch_count(&node->core.cancels), 3);
}

Test(batch, may_be_answered_inside_the_cancellation)
{
    set_up(FAKE_HOLD);
    node->core.answers_cancelled = true;
    post(1, 2);
    latch_wait(&node->core.submits, 2);
    rpc_client_stream_cancel(client.rpc);
    latch_wait(&node->core.answers, 2);
    tear_down();
}

Test(batch, cancellations_race_with_answers)
{
    host_rig_init(&rig, 1);
    node->core.mode = FAKE_HOLD;
    for (unsigned round = 1; round <= 100; round++) {
        memset(&client, 0, sizeof(client));
        open_stream();
        post(1, 2);
        latch_wait(&node->core.submits, 2 * round);
        rpc_client_stream_cancel(client.rpc);
        host_node_step(node, fake_answer_all, NULL);
        latch_wait(&client.done, 1);
        if (round < 100)
            client.rpc = rpc_client_stream_unref(client.rpc);
    }
    tear_down();
    cr_assert_eq(node->core.n_inside, 0);
}

Test(batch, with_operations_inside_it_is_released_at_the_end)
{
    set_up(FAKE_HOLD);
    post(1, 2);
    latch_wait(&node->core.submits, 2);
    tear_down();
    cr_assert_eq(latch_count(&node->core.cancels), 2);
}
