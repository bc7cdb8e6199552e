/*
 * Streams into a core (Execute, KeepAlive, Reconcile): one message at a time in order, failures
 * inside, half-close, clients that vanish or do not read.
 */
#include "redistinto/v1/coordinator.pb-c.h"
#include "runtime/host/inbound.h"
#include "runtime/model/limits.h"
#include "runtime/wire/request.h"
#include "tests/support/check.h"
#include "tests/unit/host/rig.h"

TestSuite(stream, .fini = test_alloc_expect_none, .timeout = 50);

static struct host_rig rig;
static struct host_node *const node = &rig.nodes[0];
static struct client_stream stream;

static void set_up(enum fake_mode mode, enum model_call_kind kind)
{
    host_rig_init(&rig, 1);
    node->core.mode = mode;
    client_stream_open(&rig, &stream, kind);
}

static void tear_down(void)
{
    host_rig_stop(&rig);
    latch_wait(&stream.done, 1);
    client_stream_deinit(&stream);
    host_rig_deinit(&rig);
}

static void post(uint64_t id, uint64_t tag)
{
    cr_assert_eq(client_stream_send(&stream, id, tag, 0, 16), RT_OK);
}

static void check_answers(unsigned n, unsigned first_id)
{
    cr_assert_eq(stream.n_answers, n);
    for (unsigned i = 0; i < n; i++) {
        cr_assert_eq(stream.answers[i].id, first_id + i);
        cr_assert_eq(stream.answers[i].code, RT_OK);
        if (stream.kind != MODEL_CALL_RECONCILE)
            cr_assert_eq(stream.answers[i].tag, i + 1);
        cr_assert_eq(node->core.tags[i], i + 1);
    }
    cr_assert_eq(node->core.most_inside, 1);
}

/* All sent before the first is answered. */
static void check_order(enum fake_mode mode, enum model_call_kind kind)
{
    set_up(mode, kind);
    for (unsigned i = 1; i <= 50; i++)
        post(1000 + i, i);
    latch_wait(&stream.messages, 50);
    rpc_client_stream_finish_writes(stream.rpc);
    latch_wait(&stream.done, 1);
    cr_assert_eq(stream.code, RT_OK);
    check_answers(50, 1001);
    tear_down();
    cr_assert_eq(latch_count(&node->core.cancels), 0);
}

Test(stream, execute_is_answered_in_order)
{
    check_order(FAKE_NOW, MODEL_CALL_EXECUTE);
}

Test(stream, execute_is_answered_in_order_from_the_loop)
{
    check_order(FAKE_TICK, MODEL_CALL_EXECUTE);
}

Test(stream, keep_alive_is_answered_in_order)
{
    check_order(FAKE_NOW, MODEL_CALL_KEEP_ALIVE);
}

Test(stream, reconcile_is_answered_in_order)
{
    check_order(FAKE_NOW, MODEL_CALL_RECONCILE);
}

Test(stream, the_next_message_waits_for_the_answer)
{
    set_up(FAKE_HOLD, MODEL_CALL_EXECUTE);
    for (unsigned i = 1; i <= 3; i++)
        post(i, i);
    for (unsigned i = 1; i <= 3; i++) {
        latch_wait(&node->core.submits, i);
        host_node_step(node, fake_answer_one, NULL);
        latch_wait(&stream.messages, i);
    }
    check_answers(3, 1);
    tear_down();
}

Test(stream, a_failure_does_not_end_it)
{
    set_up(FAKE_HOLD, MODEL_CALL_EXECUTE);
    node->core.fails = true;
    post(1, 1);
    latch_wait(&node->core.submits, 1);
    host_node_step(node, fake_answer_one, NULL);
    latch_wait(&stream.messages, 1);
    cr_assert_eq(stream.answers[0].code, RT_FAILED_PRECONDITION);
    cr_assert_eq(stream.answers[0].reason, MODEL_REASON_KEY_LOST);
    cr_assert_eq(stream.answers[0].id, 1);
    node->core.fails = false;
    post(2, 2);
    latch_wait(&node->core.submits, 2);
    host_node_step(node, fake_answer_one, NULL);
    latch_wait(&stream.messages, 2);
    cr_assert_eq(stream.answers[1].code, RT_OK);
    tear_down();
}

Test(stream, an_invalid_message_is_answered_and_the_stream_goes_on)
{
    struct wire_exchange header = {.id = 77};
    Redistinto__V1__ExecuteRequest empty;

    set_up(FAKE_NOW, MODEL_CALL_EXECUTE);
    redistinto__v1__execute_request__init(&empty);
    wire_request_set_exchange(&empty.base, &header);
    cr_assert_eq(rpc_client_stream_send(stream.rpc, &empty.base), RT_OK);
    post(78, 1);
    latch_wait(&stream.messages, 2);
    cr_assert_eq(stream.answers[0].id, 77);
    cr_assert_eq(stream.answers[0].code, RT_INVALID_ARGUMENT);
    cr_assert_eq(stream.answers[0].reason, MODEL_REASON_INVALID_FIELD);
    cr_assert_eq(stream.answers[1].id, 78);
    cr_assert_eq(stream.answers[1].code, RT_OK);
    cr_assert_eq(latch_count(&node->core.submits), 1);
    tear_down();
}

Test(stream, an_idle_one_ends_when_all_are_ended)
{
    set_up(FAKE_NOW, MODEL_CALL_EXECUTE);
    post(1, 1);
    latch_wait(&stream.messages, 1);
    host_end_streams(node->host);
    latch_wait(&stream.done, 1);
    cr_assert_eq(stream.code, RT_UNAVAILABLE);
    cr_assert_eq(stream.reason, MODEL_REASON_DRAINING);
    cr_assert_eq(stream.applied, MODEL_APPLIED_NO);
    tear_down();
}

Test(stream, a_busy_one_ends_after_its_answer)
{
    set_up(FAKE_HOLD, MODEL_CALL_EXECUTE);
    post(1, 1);
    post(2, 2);
    latch_wait(&node->core.submits, 1);
    host_end_streams(node->host);
    cr_assert_eq(latch_count(&stream.done), 0);
    host_node_step(node, fake_answer_one, NULL);
    latch_wait(&stream.done, 1);
    cr_assert_eq(stream.code, RT_UNAVAILABLE);
    cr_assert_eq(stream.applied, MODEL_APPLIED_NO);
    check_answers(1, 1);
    cr_assert_eq(latch_count(&node->core.submits), 1);
    tear_down();
}

Test(stream, a_half_close_and_the_end_of_all_at_the_same_moment)
{
    for (int i = 0; i < 20; i++) {
        set_up(FAKE_NOW, MODEL_CALL_EXECUTE);
        post(1, 1);
        latch_wait(&stream.messages, 1);
        rpc_client_stream_finish_writes(stream.rpc);
        host_end_streams(node->host);
        latch_wait(&stream.done, 1);
        cr_assert(stream.code == RT_OK || stream.code == RT_UNAVAILABLE);
        tear_down();
        memset(&rig, 0, sizeof(rig));
        memset(&stream, 0, sizeof(stream));
    }
}

Test(stream, one_that_comes_later_is_ended)
{
    host_rig_init(&rig, 1);
    host_end_streams(node->host);
    client_stream_open(&rig, &stream, MODEL_CALL_KEEP_ALIVE);
    latch_wait(&stream.done, 1);
    cr_assert_eq(stream.code, RT_UNAVAILABLE);
    tear_down();
}

Test(stream, an_undecodable_message_ends_it)
{
    Redistinto__V1__OpenSessionRequest other;
    Redistinto__V1__RequestId id;

    set_up(FAKE_NOW, MODEL_CALL_EXECUTE);
    redistinto__v1__open_session_request__init(&other);
    redistinto__v1__request_id__init(&id);
    other.name = (char *)"where a number is expected";
    other.request_id = &id;
    cr_assert_eq(rpc_client_stream_send(stream.rpc, &other.base), RT_OK);
    latch_wait(&stream.done, 1);
    cr_assert_eq(stream.code, RT_INVALID_ARGUMENT);
    tear_down();
    cr_assert_eq(latch_count(&node->core.submits), 0);
}

Test(stream, each_message_has_its_deadline)
{
    uint64_t before;

    set_up(FAKE_NOW, MODEL_CALL_KEEP_ALIVE);
    before = rt_env_now_us(node->core.env);
    cr_assert_eq(client_stream_send(&stream, 1, 1, 0, 0), RT_OK);
    latch_wait(&stream.messages, 1);
    cr_assert_geq(node->core.last_deadline_us, before + 10000000);
    cr_assert_leq(node->core.last_deadline_us, rt_env_now_us(node->core.env) + 10000000);
    before = rt_env_now_us(node->core.env);
    cr_assert_eq(client_stream_send(&stream, 2, 2, 300, 0), RT_OK);
    latch_wait(&stream.messages, 2);
    cr_assert_geq(node->core.last_deadline_us, before + 300000);
    cr_assert_leq(node->core.last_deadline_us, rt_env_now_us(node->core.env) + 300000);
    tear_down();
}

Test(stream, half_closed_at_once_ends_well)
{
    set_up(FAKE_NOW, MODEL_CALL_EXECUTE);
    rpc_client_stream_finish_writes(stream.rpc);
    latch_wait(&stream.done, 1);
    cr_assert_eq(stream.code, RT_OK);
    tear_down();
}

Test(stream, half_closed_with_a_message_inside_it_ends_after_the_answer)
{
    set_up(FAKE_HOLD, MODEL_CALL_EXECUTE);
    post(1, 1);
    rpc_client_stream_finish_writes(stream.rpc);
    latch_wait(&node->core.submits, 1);
    cr_assert_eq(latch_count(&stream.done), 0);
    host_node_step(node, fake_answer_one, NULL);
    latch_wait(&stream.done, 1);
    cr_assert_eq(stream.code, RT_OK);
    check_answers(1, 1);
    tear_down();
    cr_assert_eq(latch_count(&node->core.cancels), 0);
}

/* The core still reads the message when its client and the stream are long gone. */
Test(stream, a_client_that_vanishes_is_told_to_the_core_once)
{
    set_up(FAKE_HOLD, MODEL_CALL_EXECUTE);
    post(1, 1);
    post(2, 2);
    latch_wait(&node->core.submits, 1);
    rpc_client_stream_cancel(stream.rpc);
    latch_wait(&node->core.cancels, 1);
    latch_wait(&stream.done, 1);
    host_node_down(node, 1);
    host_node_step(node, fake_answer_all, NULL);
    tear_down();
    cr_assert_eq(latch_count(&node->core.cancels), 1);
    cr_assert_eq(latch_count(&node->core.submits), 1);
}

Test(stream, may_be_answered_inside_the_cancellation)
{
    set_up(FAKE_HOLD, MODEL_CALL_EXECUTE);
    node->core.answers_cancelled = true;
    post(1, 1);
    latch_wait(&node->core.submits, 1);
    rpc_client_stream_cancel(stream.rpc);
    latch_wait(&node->core.answers, 1);
    tear_down();
}

Test(stream, cancellations_race_with_answers)
{
    host_rig_init(&rig, 1);
    node->core.mode = FAKE_HOLD;
    for (unsigned round = 1; round <= 100; round++) {
        memset(&stream, 0, sizeof(stream));
        client_stream_open(&rig, &stream, MODEL_CALL_EXECUTE);
        post(1, 1);
        latch_wait(&node->core.submits, round);
        rpc_client_stream_cancel(stream.rpc);
        host_node_step(node, fake_answer_all, NULL);
        latch_wait(&stream.done, 1);
        if (round < 100)
            client_stream_deinit(&stream);
    }
    tear_down();
    cr_assert_eq(node->core.n_inside, 0);
}

Test(stream, a_vanished_client_without_a_message_is_no_news)
{
    set_up(FAKE_NOW, MODEL_CALL_EXECUTE);
    post(1, 1);
    latch_wait(&stream.messages, 1);
    rpc_client_stream_cancel(stream.rpc);
    latch_wait(&stream.done, 1);
    tear_down();
    cr_assert_eq(latch_count(&node->core.cancels), 0);
}

Test(stream, with_a_message_inside_it_is_released_at_the_end)
{
    set_up(FAKE_HOLD, MODEL_CALL_RECONCILE);
    post(1, 1);
    latch_wait(&node->core.submits, 1);
    tear_down();
    cr_assert_eq(latch_count(&node->core.cancels), 1);
}

Test(stream, an_answer_that_does_not_fit_its_arena_ends_it)
{
    set_up(FAKE_NOW, MODEL_CALL_EXECUTE);
    node->core.fills_arena = true;
    post(1, 1);
    latch_wait(&stream.done, 1);
    cr_assert_eq(stream.code, RT_RESOURCE_EXHAUSTED);
    tear_down();
}

enum {
    N_OTHER = 50
};

/* Unary calls take their turns behind what the stream has to do. */
static void let_the_server_work(void)
{
    for (uint64_t tag = 1; tag <= N_OTHER; tag++)
        cr_assert_eq(client_call_now(&rig, MODEL_CALL_SET, tag), RT_OK);
}

Test(stream, a_client_that_never_reads_is_ended)
{
    enum {
        N_SENT = 64,
        QUEUE = 4
    };

    rig.queue_messages = QUEUE;
    stream.is_reading_paused = true;
    set_up(FAKE_NOW, MODEL_CALL_EXECUTE);
    node->core.value_size = MODEL_VALUE_MAX; /* core's windows grow to 16 MiB */
    for (unsigned i = 1; i <= N_SENT; i++)
        post(i, i);
    latch_wait(&node->core.submits, QUEUE + 1);
    let_the_server_work();
    cr_assert_eq(rpc_server_n_streams(node->server), 0);
    rpc_client_stream_read_next(stream.rpc);
    latch_wait(&stream.done, 1);
    cr_assert_eq(stream.code, RT_RESOURCE_EXHAUSTED);
    cr_assert_lt(stream.n_answers, N_SENT);
    cr_assert_lt(latch_count(&node->core.submits), N_SENT + N_OTHER);
    tear_down();
}
