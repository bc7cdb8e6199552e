/*
 * The numbered checks: each reason, at its number, and the order of all of them.
 */
#include "instance/checks.h"

#include "tests/support/check.h"

TestSuite(checks, .fini = test_alloc_expect_none);

enum {
    NOW = 1000,
    FENCE = 5000,
    EPOCH = 50,
    INCARNATION = 100,
};

struct world {
    struct model_call call;
    struct model_id cluster_id;
    struct inst_membership membership;
    struct inst_rows rows;
    struct inst_dedup dedup;
    struct inst_row *row;
    struct inst_view view;
};

static void world_init(struct world *world, enum model_call_kind kind)
{
    struct model_header *header;

    *world = (struct world){.cluster_id = {{9}}};
    model_call_init(&world->call, kind);
    inst_membership_init(&world->membership);
    world->membership.state = INST_MEMBERSHIP_SERVING;
    world->membership.incarnation = INCARNATION;
    world->membership.fence_at_us = FENCE;
    inst_rows_init(&world->rows, 1);
    inst_dedup_init(&world->dedup);
    world->row = inst_rows_get(&world->rows, RT_BYTES_LITERAL("k"));
    inst_rows_set_phase(&world->rows, world->row, INST_ROW_ACTIVE);
    world->row->live = (struct inst_record){.epoch = EPOCH, .dedup_since = EPOCH};
    header = &world->call.request.data.header;
    header->cluster_id = world->cluster_id;
    header->key = RT_BYTES_LITERAL("k");
    header->epoch = EPOCH;
    header->owner[0] = 'a';
    header->incarnation = INCARNATION;
    world->view = (struct inst_view){
        .call = &world->call,
        .name = "a",
        .cluster_id = &world->cluster_id,
        .membership = &world->membership,
        .row = world->row,
        .dedup = &world->dedup,
        .now_us = NOW,
        .key_max = 40,
        .access = inst_checks_access(&world->call.request),
    };
}

static void world_deinit(struct world *world)
{
    inst_dedup_deinit(&world->dedup);
    inst_rows_deinit(&world->rows);
    model_call_deinit(&world->call);
}

static struct inst_verdict run(const struct world *world)
{
    struct inst_verdict verdict;

    inst_checks_run(&world->view, INST_CHECK_FIRST, INST_CHECK_LAST, &verdict);
    return verdict;
}

static void expect(const struct world *world, unsigned number, enum model_reason reason)
{
    struct inst_verdict verdict = run(world);

    cr_assert_eq(verdict.reason, reason, "%s instead of %s", model_reason_name(verdict.reason),
                 model_reason_name(reason));
    cr_assert_eq(verdict.number, number, "check %u instead of %u", verdict.number, number);
}

static void expect_pass(const struct world *world)
{
    cr_assert_eq(run(world).result, INST_CHECK_PASS);
    expect(world, INST_CHECK_LAST + 1, MODEL_REASON_NONE);
}

/* From the last check to the first, each made to fail on top of the ones after it: the earlier one
 * must always be the one that answers. */
Test(checks, earlier_checks_answer_first)
{
    struct world world;
    struct model_header *header = &world.call.request.data.header;

    world_init(&world, MODEL_CALL_SET);
    expect_pass(&world);
    world.row->live.locking = MODEL_LOCKING_REQUIRED;
    expect(&world, 8, MODEL_REASON_KEY_NOT_LOCKED);
    header->request_id = (struct model_request_id){{{1}}, 4};
    header->first_epoch = EPOCH - 1;
    expect(&world, 7, MODEL_REASON_OUTCOME_UNKNOWN);
    inst_rows_set_phase(&world.rows, world.row, INST_ROW_ACTIVATING);
    expect(&world, 6, MODEL_REASON_MOVING);
    header->epoch = EPOCH - 1;
    expect(&world, 5, MODEL_REASON_STALE_EPOCH);
    world.view.now_us = FENCE;
    expect(&world, 4, MODEL_REASON_LEASE_EXPIRED);
    world.view.read_only = true;
    expect(&world, 3, MODEL_REASON_READ_ONLY);
    header->incarnation = INCARNATION - 1;
    expect(&world, 2, MODEL_REASON_STALE_INCARNATION);
    header->cluster_id.bytes[0]++;
    expect(&world, 1, MODEL_REASON_WRONG_CLUSTER);
    world.call.deadline_us = FENCE;
    expect(&world, 0, MODEL_REASON_DEADLINE_EXCEEDED);
    world.call.cancelled = true;
    expect(&world, 0, MODEL_REASON_CANCELLED);
    world_deinit(&world);
}

Test(checks, deadline_boundary)
{
    struct world world;

    world_init(&world, MODEL_CALL_SET);
    world.call.deadline_us = NOW + 1;
    expect_pass(&world);
    world.call.deadline_us = NOW;
    expect(&world, 0, MODEL_REASON_DEADLINE_EXCEEDED);
    world_deinit(&world);
}

Test(checks, key_and_value_at_the_limit_and_one_past_it)
{
    struct world world;
    struct model_data_request *data = &world.call.request.data;
    uint8_t key[41] = {0};

    world_init(&world, MODEL_CALL_PUT);
    data->header.key = rt_bytes_of(key, 0);
    expect(&world, 1, MODEL_REASON_KEY_EMPTY);
    data->header.key = rt_bytes_of(key, 40);
    expect_pass(&world);
    data->header.key = rt_bytes_of(key, 41);
    expect(&world, 1, MODEL_REASON_KEY_TOO_LONG);
    data->header.key = RT_BYTES_LITERAL("k");
    data->value.size = MODEL_VALUE_MAX;
    expect_pass(&world);
    data->value.size = MODEL_VALUE_MAX + 1;
    expect(&world, 1, MODEL_REASON_VALUE_TOO_LARGE);
    world_deinit(&world);
}

Test(checks, request_id_must_make_sense)
{
    struct world world;
    struct model_header *header = &world.call.request.data.header;

    world_init(&world, MODEL_CALL_SET);
    header->request_id = (struct model_request_id){{{0}}, 4};
    expect(&world, 1, MODEL_REASON_INVALID_FIELD);
    header->request_id.client.bytes[0] = 1;
    header->done_below = 4;
    expect_pass(&world);
    header->done_below = 5;
    expect(&world, 1, MODEL_REASON_INVALID_FIELD);
    world_deinit(&world);
}

Test(checks, owner_name_and_incarnation)
{
    struct world world;
    struct model_header *header = &world.call.request.data.header;

    world_init(&world, MODEL_CALL_SET);
    header->owner[0] = 'b';
    expect(&world, 2, MODEL_REASON_NOT_OWNER);
    header->owner[0] = 'a';
    header->incarnation = INCARNATION + 1;
    expect(&world, 2, MODEL_REASON_SUPERSEDED);
    cr_assert(run(&world).renew_now);
    header->incarnation = INCARNATION - 1;
    expect(&world, 2, MODEL_REASON_STALE_INCARNATION);
    cr_assert_not(run(&world).renew_now);
    world_deinit(&world);
}

Test(checks, only_serving_serves)
{
    struct world world;

    world_init(&world, MODEL_CALL_SET);
    for (int state = INST_MEMBERSHIP_NEW; state < INST_N_MEMBERSHIP_STATES; state++) {
        world.membership.state = (enum inst_membership_state)state;
        if (state == INST_MEMBERSHIP_SERVING)
            expect_pass(&world);
        else if (state < INST_MEMBERSHIP_SERVING)
            expect(&world, 3, MODEL_REASON_NOT_SERVING);
        else
            expect(&world, 3, MODEL_REASON_DRAINING);
    }
    world_deinit(&world);
}

Test(checks, read_only_refuses_writes_only)
{
    struct world world;

    world_init(&world, MODEL_CALL_READ);
    world.view.read_only = true;
    expect_pass(&world);
    world_deinit(&world);
}

Test(checks, lease_boundary)
{
    struct world world;

    world_init(&world, MODEL_CALL_SET);
    world.view.now_us = FENCE - 1;
    expect_pass(&world);
    cr_assert(inst_checks_post(&world.membership, INCARNATION, FENCE - 1));
    world.view.now_us = FENCE;
    expect(&world, 4, MODEL_REASON_LEASE_EXPIRED);
    cr_assert_not(inst_checks_post(&world.membership, INCARNATION, FENCE));
    world_deinit(&world);
}

Test(checks, post_check_asks_for_the_same_life)
{
    struct world world;

    world_init(&world, MODEL_CALL_SET);
    cr_assert_not(inst_checks_post(&world.membership, INCARNATION - 1, NOW));
    cr_assert_not(inst_checks_post(&world.membership, 0, NOW));
    world.membership.state = INST_MEMBERSHIP_LEAVING;
    cr_assert(inst_checks_post(&world.membership, INCARNATION, NOW), "before Leave is sent");
    world.membership.state = INST_MEMBERSHIP_STOPPED;
    cr_assert_not(inst_checks_post(&world.membership, INCARNATION, NOW));
    world_deinit(&world);
}

Test(checks, row_and_epoch)
{
    struct world world;
    struct model_header *header = &world.call.request.data.header;

    world_init(&world, MODEL_CALL_SET);
    world.view.row = NULL;
    expect(&world, 5, MODEL_REASON_NOT_OWNER);
    world.view.row = world.row;
    inst_rows_set_phase(&world.rows, world.row, INST_ROW_QUARANTINED);
    expect(&world, 5, MODEL_REASON_NOT_OWNER);
    inst_rows_set_phase(&world.rows, world.row, INST_ROW_ACTIVE);
    header->epoch = EPOCH + 1;
    expect(&world, 5, MODEL_REASON_EPOCH_AHEAD);
    cr_assert_eq(run(&world).result, INST_CHECK_PULL);
    world.view.pulled = true;
    cr_assert_eq(run(&world).result, INST_CHECK_REFUSE);
    world_deinit(&world);
}

Test(checks, lost_key_refuses_all_but_delete)
{
    static const enum model_call_kind kinds[] = {MODEL_CALL_SET, MODEL_CALL_STORE, MODEL_CALL_PUT,
                                                 MODEL_CALL_READ};
    struct world world;

    for (size_t i = 0; i < RT_ARRAY_SIZE(kinds); i++) {
        world_init(&world, kinds[i]);
        world.row->live.key_lost = true;
        expect(&world, 6, MODEL_REASON_KEY_LOST);
        world_deinit(&world);
    }
    world_init(&world, MODEL_CALL_DELETE);
    world.row->live.key_lost = true;
    expect_pass(&world);
    world_deinit(&world);
}

Test(checks, seen_requests_are_replayed_before_the_token_is_looked_at)
{
    struct world world;
    struct model_header *header = &world.call.request.data.header;
    struct inst_dedup_result result = {.version = {EPOCH, INCARNATION, 3}};

    world_init(&world, MODEL_CALL_SET);
    header->request_id = (struct model_request_id){{{1}}, 4};
    header->lock_token = 5;
    inst_dedup_record(&world.dedup, inst_dedup_prepare(&world.dedup), world.row,
                      &header->request_id, &result, false);
    cr_assert_eq(run(&world).result, INST_CHECK_REPLAY);
    cr_assert_eq(run(&world).number, 7);
    cr_assert_eq(run(&world).recorded.version.seq, 3);
    header->request_id.seq = 3;
    inst_dedup_done_below(&world.dedup, &header->request_id.client, 4);
    expect(&world, 7, MODEL_REASON_OUTCOME_UNKNOWN);
    header->request_id.seq = 5;
    result.unknown = true;
    inst_dedup_record(&world.dedup, inst_dedup_prepare(&world.dedup), world.row,
                      &header->request_id, &result, false);
    expect(&world, 7, MODEL_REASON_OUTCOME_UNKNOWN);
    world_deinit(&world);
}

Test(checks, an_id_of_another_key_is_refused)
{
    struct world world;
    struct model_header *header = &world.call.request.data.header;
    struct inst_dedup_result result = {.version = {EPOCH, INCARNATION, 3}};

    world_init(&world, MODEL_CALL_SET);
    header->request_id = (struct model_request_id){{{1}}, 4};
    inst_dedup_record(&world.dedup, inst_dedup_prepare(&world.dedup),
                      inst_rows_get(&world.rows, RT_BYTES_LITERAL("another")), &header->request_id,
                      &result, false);
    expect(&world, 7, MODEL_REASON_INVALID_FIELD);
    header->request_id.seq = 5;
    cr_assert_neq(run(&world).reason, MODEL_REASON_INVALID_FIELD);
    world_deinit(&world);
}

Test(checks, first_epoch_boundary)
{
    struct world world;
    struct model_header *header = &world.call.request.data.header;

    world_init(&world, MODEL_CALL_SET);
    header->request_id = (struct model_request_id){{{1}}, 4};
    expect_pass(&world);
    header->first_epoch = EPOCH;
    expect_pass(&world);
    header->first_epoch = EPOCH - 1;
    expect(&world, 7, MODEL_REASON_OUTCOME_UNKNOWN);
    world_deinit(&world);
}

struct token_case {
    enum model_locking locking;
    uint64_t floor;
    uint64_t closed;
    uint64_t released;
    bool locked;
    uint64_t token;
    enum model_reason reason;
};

Test(checks, lock_tokens)
{
    static const struct token_case cases[] = {
        {MODEL_LOCKING_OPTIONAL, 0, 0, 0, false, 0, MODEL_REASON_NONE},
        {MODEL_LOCKING_OPTIONAL, 60, 0, 0, true, 0, MODEL_REASON_KEY_NOT_LOCKED},
        {MODEL_LOCKING_OPTIONAL, 60, 60, 0, true, 0, MODEL_REASON_NONE},
        {MODEL_LOCKING_OPTIONAL, 60, 0, 60, true, 0, MODEL_REASON_NONE},
        {MODEL_LOCKING_REQUIRED, 0, 0, 0, false, 0, MODEL_REASON_KEY_NOT_LOCKED},
        {MODEL_LOCKING_NONE, 60, 0, 0, true, 0, MODEL_REASON_NONE},
        {MODEL_LOCKING_OPTIONAL, 60, 0, 0, true, 60, MODEL_REASON_NONE},
        {MODEL_LOCKING_REQUIRED, 60, 0, 0, true, 60, MODEL_REASON_NONE},
        {MODEL_LOCKING_OPTIONAL, 60, 0, 0, true, 59, MODEL_REASON_LOCK_FENCED},
        {MODEL_LOCKING_NONE, 60, 0, 0, true, 59, MODEL_REASON_LOCK_FENCED},
        {MODEL_LOCKING_OPTIONAL, 60, 0, 0, true, 61, MODEL_REASON_TOKEN_AHEAD},
        {MODEL_LOCKING_OPTIONAL, 60, 60, 0, true, 60, MODEL_REASON_KEY_NOT_LOCKED},
        {MODEL_LOCKING_OPTIONAL, 60, 59, 0, true, 59, MODEL_REASON_KEY_NOT_LOCKED},
        {MODEL_LOCKING_OPTIONAL, 60, 0, 60, false, 60, MODEL_REASON_KEY_NOT_LOCKED},
        {MODEL_LOCKING_NONE, 60, 60, 60, false, 60, MODEL_REASON_NONE},
    };

    for (size_t i = 0; i < RT_ARRAY_SIZE(cases); i++) {
        struct world world;

        world_init(&world, MODEL_CALL_SET);
        world.row->live.locking = cases[i].locking;
        world.row->live.floor = cases[i].floor;
        world.row->live.closed = cases[i].closed;
        world.row->live.released = cases[i].released;
        world.row->live.locked = cases[i].locked;
        world.call.request.data.header.lock_token = cases[i].token;
        cr_assert_eq(run(&world).reason, cases[i].reason, "case %zu: %s", i,
                     model_reason_name(run(&world).reason));
        world_deinit(&world);
    }
}

Test(checks, stale_reads_ask_for_little)
{
    struct world world;
    struct model_header *header = &world.call.request.data.header;

    world_init(&world, MODEL_CALL_READ);
    world.call.request.data.consistency = MODEL_READ_STALE_OK;
    world.view.access = inst_checks_access(&world.call.request);
    world.view.now_us = FENCE;
    header->owner[0] = 'b';
    header->epoch = 1;
    expect_pass(&world);
    inst_rows_set_phase(&world.rows, world.row, INST_ROW_QUARANTINED);
    expect(&world, 5, MODEL_REASON_NOT_OWNER);
    world.membership.state = INST_MEMBERSHIP_RECONCILING;
    expect(&world, 3, MODEL_REASON_NOT_SERVING);
    world_deinit(&world);
}
