/*
 * Batches of calls to one owner: what goes together, what does not, and how answers come apart.
 */
#include "esi-client/batch.h"

#include <stdio.h>

#include "tests/support/check.h"

TestSuite(batch, .fini = test_alloc_expect_none);

struct rig {
    struct esi_batches batches;
    struct rt_list calls;
    struct rt_list done;
    struct rt_list again;
    struct rt_list alone;
};

static const uint8_t bytes[MODEL_VALUE_MAX];

static void init(struct rig *rig)
{
    esi_batches_init(&rig->batches);
    rt_list_init(&rig->calls);
    rt_list_init(&rig->done);
    rt_list_init(&rig->again);
    rt_list_init(&rig->alone);
}

static void free_all(struct rt_list *calls)
{
    struct rt_list *node;

    while ((node = rt_list_pop_front(calls)))
        (void)model_call_free(RT_LIST_ENTRY(node, struct model_call, link));
}

static void deinit(struct rig *rig)
{
    free_all(&rig->calls);
    free_all(&rig->done);
    free_all(&rig->again);
    free_all(&rig->alone);
    esi_batches_deinit(&rig->batches);
}

static struct model_call *add(struct rig *rig, enum model_call_kind kind, const char *owner,
                              uint64_t seq, size_t value_size)
{
    struct model_call *call = model_call_new(kind);

    call->request.data = (struct model_data_request){
        .header = {.key = RT_BYTES_LITERAL("k"),
                   .epoch = 5,
                   .incarnation = 3,
                   .done_below = seq,
                   .first_epoch = 4,
                   .lock_token = 7},
        .value = {bytes, value_size},
    };
    if (seq > 0)
        call->request.data.header.request_id = (struct model_request_id){{{0xc1}}, seq};
    (void)snprintf(call->request.data.header.owner, sizeof(call->request.data.header.owner), "%s",
                   owner);
    call->address = owner;
    call->deadline_us = 1000;
    rt_list_push_back(&rig->calls, &call->link);
    return call;
}

static size_t count(const struct rt_list *list)
{
    size_t n = 0;

    rt_list_for_each (node, list)
        n++;
    return n;
}

static struct model_call *take(struct rt_list *calls)
{
    struct rt_list *node = rt_list_pop_front(calls);

    cr_assert_not_null(node);
    return RT_LIST_ENTRY(node, struct model_call, link);
}

static struct model_call *take_batch(struct rig *rig, size_t n_operations)
{
    struct model_call *call = take(&rig->calls);

    cr_assert_eq(call->request.kind, MODEL_CALL_PIPELINE);
    cr_assert_eq(call->request.pipeline.n_operations, n_operations);
    return call;
}

static void answer(struct rig *rig, struct model_call *batch, struct model_pipeline_result *results,
                   size_t n_results)
{
    model_response_ok(&batch->response, MODEL_CALL_PIPELINE);
    batch->response.responder = (struct model_responder){.name = "i1", .incarnation = 3};
    batch->response.pipeline.results = results;
    batch->response.pipeline.n_results = n_results;
    batch->response.pipeline.entries_free = 77;
    esi_batches_scatter(batch, &rig->done, &rig->again, &rig->alone);
}

Test(batch, one_call_stays_as_it_is)
{
    struct rig rig;
    struct model_call *call;

    init(&rig);
    call = add(&rig, MODEL_CALL_SET, "i1", 1, 1);
    esi_batches_gather(&rig.batches, &rig.calls);
    cr_assert_eq(count(&rig.calls), 1);
    cr_assert_eq(rig.calls.next, &call->link);
    deinit(&rig);
}

Test(batch, calls_to_one_owner_go_together_in_their_order)
{
    struct rig rig;
    struct model_call *batch;
    const struct model_pipeline_request *pipeline;

    init(&rig);
    (void)add(&rig, MODEL_CALL_SET, "i1", 8, 1);
    (void)add(&rig, MODEL_CALL_READ, "i1", 0, 0);
    (void)add(&rig, MODEL_CALL_STORE, "i1", 6, 0);
    esi_batches_gather(&rig.batches, &rig.calls);
    cr_assert_eq(count(&rig.calls), 1);
    batch = take_batch(&rig, 3);
    pipeline = &batch->request.pipeline;
    cr_assert_str_eq(batch->address, "i1");
    cr_assert_eq(batch->deadline_us, 1000);
    cr_assert_str_eq(pipeline->owner, "i1");
    cr_assert_eq(pipeline->incarnation, 3);
    cr_assert_eq(pipeline->client.bytes[0], 0xc1);
    cr_assert_eq(pipeline->done_below, 6, "the lowest that is unfinished");
    cr_assert_eq(pipeline->operations[0].kind, MODEL_CALL_SET);
    cr_assert_eq(pipeline->operations[0].seq, 8);
    cr_assert_eq(pipeline->operations[0].epoch, 5);
    cr_assert_eq(pipeline->operations[0].first_epoch, 4);
    cr_assert_eq(pipeline->operations[0].lock_token, 7);
    cr_assert_eq(pipeline->operations[0].value.size, 1);
    cr_assert_eq(pipeline->operations[1].kind, MODEL_CALL_READ);
    cr_assert_eq(pipeline->operations[1].seq, 0);
    cr_assert_eq(pipeline->operations[2].kind, MODEL_CALL_STORE);
    model_response_fail(&batch->response, MODEL_REASON_DRAINING, "going");
    esi_batches_scatter(batch, &rig.done, &rig.again, &rig.alone);
    deinit(&rig);
}

Test(batch, reads_alone_have_no_client)
{
    struct rig rig;
    struct model_call *batch;

    init(&rig);
    (void)add(&rig, MODEL_CALL_READ, "i1", 0, 0);
    (void)add(&rig, MODEL_CALL_READ, "i1", 0, 0);
    esi_batches_gather(&rig.batches, &rig.calls);
    batch = take_batch(&rig, 2);
    cr_assert(model_id_is_none(&batch->request.pipeline.client));
    cr_assert_eq(batch->request.pipeline.done_below, 0);
    model_response_fail(&batch->response, MODEL_REASON_DRAINING, "going");
    esi_batches_scatter(batch, &rig.done, &rig.again, &rig.alone);
    deinit(&rig);
}

Test(batch, what_differs_goes_apart)
{
    struct rig rig;

    init(&rig);
    (void)add(&rig, MODEL_CALL_SET, "i1", 1, 1);
    (void)add(&rig, MODEL_CALL_SET, "i2", 2, 1);
    add(&rig, MODEL_CALL_SET, "i1", 3, 1)->deadline_us = 1001;
    add(&rig, MODEL_CALL_SET, "i1", 4, 1)->address = "elsewhere";
    add(&rig, MODEL_CALL_SET, "i1", 5, 1)->request.data.header.incarnation = 4;
    add(&rig, MODEL_CALL_SET, "i1", 6, 1)->request.data.header.term = 4;
    add(&rig, MODEL_CALL_SET, "i1", 7, 1)->request.data.header.cluster_id.bytes[0] = 4;
    rt_list_push_back(&rig.calls, &model_call_new(MODEL_CALL_KEEP_ALIVE)->link);
    esi_batches_gather(&rig.batches, &rig.calls);
    cr_assert_eq(count(&rig.calls), 8);
    rt_list_for_each (node, &rig.calls)
        cr_assert_neq(RT_LIST_ENTRY(node, struct model_call, link)->request.kind,
                      MODEL_CALL_PIPELINE);
    deinit(&rig);
}

static void fail_batch(struct rig *rig, size_t n_operations)
{
    struct model_call *batch = take_batch(rig, n_operations);

    model_response_fail(&batch->response, MODEL_REASON_DRAINING, "going");
    esi_batches_scatter(batch, &rig->done, &rig->again, &rig->alone);
}

Test(batch, at_the_limit_of_operations_and_past_it)
{
    struct rig rig;

    init(&rig);
    for (size_t i = 0; i < MODEL_PIPELINE_OPERATIONS_MAX; i++)
        (void)add(&rig, MODEL_CALL_SET, "i1", i + 1, 1);
    esi_batches_gather(&rig.batches, &rig.calls);
    cr_assert_eq(count(&rig.calls), 1);
    fail_batch(&rig, MODEL_PIPELINE_OPERATIONS_MAX);
    for (size_t i = 0; i < MODEL_PIPELINE_OPERATIONS_MAX + 2; i++)
        (void)add(&rig, MODEL_CALL_SET, "i1", i + 1, 1);
    esi_batches_gather(&rig.batches, &rig.calls);
    cr_assert_eq(count(&rig.calls), 2);
    fail_batch(&rig, MODEL_PIPELINE_OPERATIONS_MAX);
    fail_batch(&rig, 2);
    cr_assert_eq(count(&rig.done), 2 * MODEL_PIPELINE_OPERATIONS_MAX + 2);
    deinit(&rig);
}

Test(batch, at_the_limit_of_bytes_and_past_it)
{
    struct rig rig;
    struct model_call *call;

    init(&rig);
    (void)add(&rig, MODEL_CALL_SET, "i1", 1, MODEL_VALUE_MAX);
    (void)add(&rig, MODEL_CALL_SET, "i1", 2, ESI_BATCH_BYTES_MAX - MODEL_VALUE_MAX - 2);
    esi_batches_gather(&rig.batches, &rig.calls);
    cr_assert_eq(count(&rig.calls), 1);
    fail_batch(&rig, 2);
    (void)add(&rig, MODEL_CALL_SET, "i1", 1, MODEL_VALUE_MAX);
    (void)add(&rig, MODEL_CALL_SET, "i1", 2, ESI_BATCH_BYTES_MAX - MODEL_VALUE_MAX - 1);
    /* Small enough for the first, but it must not overtake the second. */
    (void)add(&rig, MODEL_CALL_SET, "i1", 3, 0);
    esi_batches_gather(&rig.batches, &rig.calls);
    cr_assert_eq(count(&rig.calls), 2);
    call = take(&rig.calls);
    cr_assert_eq(call->request.data.header.request_id.seq, 1);
    rt_list_push_back(&rig.done, &call->link);
    fail_batch(&rig, 2);
    deinit(&rig);
}

Test(batch, results_go_to_their_calls)
{
    struct model_error refused = {.reason = MODEL_REASON_STALE_EPOCH,
                                  .applied = MODEL_APPLIED_NO,
                                  .message = "old",
                                  .has_hint = true,
                                  .hint = {.name = "i2", .epoch = 9}};
    struct model_pipeline_result results[3] = {
        {.data = {.version = {5, 3, 1}}},
        {.code = RT_FAILED_PRECONDITION, .error = &refused},
        {.data = {.has_value = true, .value = RT_BYTES_LITERAL("there")}},
    };
    struct rig rig;
    struct model_call *calls[3], *batch;

    init(&rig);
    calls[0] = add(&rig, MODEL_CALL_SET, "i1", 1, 1);
    calls[1] = add(&rig, MODEL_CALL_PUT, "i1", 2, 1);
    calls[2] = add(&rig, MODEL_CALL_READ, "i1", 0, 0);
    esi_batches_gather(&rig.batches, &rig.calls);
    batch = take_batch(&rig, 3);
    answer(&rig, batch, results, 3);
    cr_assert_eq(count(&rig.done), 3);
    cr_assert_eq(rig.done.next, &calls[0]->link);
    cr_assert_eq(calls[0]->response.code, RT_OK);
    cr_assert_eq(calls[0]->response.data.version.seq, 1);
    cr_assert_eq(calls[0]->response.data.entries_free, 77);
    cr_assert_str_eq(calls[0]->response.responder.name, "i1");
    cr_assert_eq(calls[1]->response.code, RT_FAILED_PRECONDITION);
    cr_assert_eq(calls[1]->response.error.reason, MODEL_REASON_STALE_EPOCH);
    cr_assert_eq(calls[1]->response.error.hint.epoch, 9);
    cr_assert_eq(calls[1]->response.responder.incarnation, 3);
    cr_assert(rt_bytes_equal(calls[2]->response.data.value, RT_BYTES_LITERAL("there")));
    deinit(&rig);
}

static const struct model_error full = {
    .reason = MODEL_REASON_LIMIT_REACHED,
    .applied = MODEL_APPLIED_NO,
};

Test(batch, a_read_without_room_goes_again)
{
    struct model_pipeline_result results[2] = {
        {.code = RT_RESOURCE_EXHAUSTED, .error = &full},
        {.code = RT_RESOURCE_EXHAUSTED, .error = &full},
    };
    struct rig rig;
    struct model_call *read, *put;

    init(&rig);
    read = add(&rig, MODEL_CALL_READ, "i1", 0, 0);
    put = add(&rig, MODEL_CALL_PUT, "i1", 1, 1);
    esi_batches_gather(&rig.batches, &rig.calls);
    answer(&rig, take_batch(&rig, 2), results, 2);
    cr_assert_eq(rig.again.next, &read->link);
    cr_assert(rt_list_is_empty(&rig.alone));
    cr_assert_eq(rig.done.next, &put->link);
    cr_assert_eq(put->response.code, RT_RESOURCE_EXHAUSTED);
    deinit(&rig);
}

/* Together they would have no room for ever. */
Test(batch, reads_without_room_for_any_go_alone)
{
    struct model_pipeline_result results[2] = {
        {.code = RT_RESOURCE_EXHAUSTED, .error = &full},
        {.code = RT_RESOURCE_EXHAUSTED, .error = &full},
    };
    struct rig rig;

    init(&rig);
    (void)add(&rig, MODEL_CALL_READ, "i1", 0, 0);
    (void)add(&rig, MODEL_CALL_READ, "i1", 0, 0);
    esi_batches_gather(&rig.batches, &rig.calls);
    answer(&rig, take_batch(&rig, 2), results, 2);
    cr_assert_eq(count(&rig.alone), 2);
    cr_assert(rt_list_is_empty(&rig.again));
    cr_assert(rt_list_is_empty(&rig.done));
    deinit(&rig);
}

Test(batch, a_failure_of_the_batch_is_that_of_each_call)
{
    struct rig rig;
    struct model_call *call, *batch;

    init(&rig);
    call = add(&rig, MODEL_CALL_SET, "i1", 1, 1);
    (void)add(&rig, MODEL_CALL_SET, "i1", 2, 1);
    esi_batches_gather(&rig.batches, &rig.calls);
    batch = take_batch(&rig, 2);
    batch->response.code = RT_UNAVAILABLE;
    batch->response.error = (struct model_error){.message = "reset"};
    esi_batches_scatter(batch, &rig.done, &rig.again, &rig.alone);
    cr_assert_eq(count(&rig.done), 2);
    cr_assert_eq(call->response.code, RT_UNAVAILABLE);
    cr_assert_eq(call->response.error.applied, MODEL_APPLIED_MAYBE);
    cr_assert(rt_bytes_equal(call->response.error.key, RT_BYTES_LITERAL("k")));
    deinit(&rig);
}

Test(batch, a_wrong_number_of_results_says_nothing)
{
    struct model_pipeline_result results[1] = {{.data = {.version = {5, 3, 1}}}};
    struct rig rig;
    struct model_call *call;

    init(&rig);
    call = add(&rig, MODEL_CALL_SET, "i1", 1, 1);
    (void)add(&rig, MODEL_CALL_SET, "i1", 2, 1);
    esi_batches_gather(&rig.batches, &rig.calls);
    answer(&rig, take_batch(&rig, 2), results, 1);
    cr_assert_eq(call->response.code, RT_INTERNAL);
    cr_assert_eq(call->response.error.applied, MODEL_APPLIED_MAYBE);
    deinit(&rig);
}

Test(batch, an_answer_that_finds_no_memory_is_unclear)
{
    struct model_pipeline_result results[2] = {
        {.data = {.has_value = true, .value = RT_BYTES_LITERAL("there")}},
        {.data = {.has_value = true, .value = RT_BYTES_LITERAL("there")}},
    };
    struct rig rig;
    struct model_call *call, *batch;

    init(&rig);
    call = add(&rig, MODEL_CALL_READ, "i1", 0, 0);
    (void)add(&rig, MODEL_CALL_READ, "i1", 0, 0);
    esi_batches_gather(&rig.batches, &rig.calls);
    batch = take_batch(&rig, 2);
    test_alloc_fail_after(0, 1);
    answer(&rig, batch, results, 2);
    test_alloc_fail_never();
    cr_assert_eq(call->response.code, RT_RESOURCE_EXHAUSTED);
    cr_assert_eq(call->response.error.applied, MODEL_APPLIED_MAYBE);
    cr_assert_str_eq(call->response.responder.name, "i1");
    deinit(&rig);
}

Test(batch, what_is_under_way_at_the_end_is_freed)
{
    struct rig rig;
    struct model_call *a, *b;

    init(&rig);
    a = add(&rig, MODEL_CALL_SET, "i1", 1, 1);
    b = add(&rig, MODEL_CALL_SET, "i1", 2, 1);
    esi_batches_gather(&rig.batches, &rig.calls);
    (void)take_batch(&rig, 2);
    esi_batches_deinit(&rig.batches);
    (void)model_call_free(a);
    (void)model_call_free(b);
}
