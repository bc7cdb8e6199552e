/*
 * Remembered requests: found by key and id, limits at the limit and one past it, what is forgotten.
 */
#include "instance/dedup.h"

#include "instance/limits.h"
#include "tests/support/check.h"

TestSuite(dedup, .fini = test_alloc_expect_none);

struct world {
    struct inst_rows rows;
    struct inst_dedup dedup;
    struct inst_row *row;
};

static void world_init(struct world *world)
{
    inst_rows_init(&world->rows, 1);
    inst_dedup_init(&world->dedup);
    world->row = inst_rows_get(&world->rows, RT_BYTES_LITERAL("k"));
}

static void world_deinit(struct world *world)
{
    inst_dedup_deinit(&world->dedup);
    inst_rows_deinit(&world->rows);
}

static struct model_request_id id_of(uint32_t client, uint64_t seq)
{
    struct model_request_id id = {.seq = seq};

    id.client.bytes[0] = 1;
    memcpy(&id.client.bytes[1], &client, sizeof(client));
    return id;
}

static void record(struct world *world, uint32_t client, uint64_t seq, bool durable)
{
    struct model_request_id id = id_of(client, seq);
    struct inst_dedup_result result = {.version = {1, 2, seq}};
    struct inst_dedup_entry *entry = inst_dedup_prepare(&world->dedup);

    cr_assert_not_null(entry);
    inst_dedup_record(&world->dedup, entry, world->row, &id, &result, durable);
}

static bool is_known(const struct world *world, uint32_t client, uint64_t seq)
{
    struct model_request_id id = id_of(client, seq);

    return inst_dedup_find(&world->dedup, world->row, &id) != NULL;
}

static bool is_forgotten(const struct world *world, uint32_t client, uint64_t seq)
{
    struct model_request_id id = id_of(client, seq);

    return inst_dedup_is_forgotten(&world->dedup, &id);
}

Test(dedup, found_by_key_client_and_seq)
{
    struct world world;
    struct inst_row *other;
    struct model_request_id id = id_of(1, 5);

    world_init(&world);
    other = inst_rows_get(&world.rows, RT_BYTES_LITERAL("other"));
    cr_assert_not(is_known(&world, 1, 5), "empty");
    record(&world, 1, 5, false);
    cr_assert(is_known(&world, 1, 5));
    cr_assert_not(is_known(&world, 2, 5));
    cr_assert_not(is_known(&world, 1, 6));
    cr_assert_null(inst_dedup_find(&world.dedup, other, &id));
    cr_assert(inst_dedup_is_anothers(&world.dedup, other, &id));
    cr_assert_not(inst_dedup_is_anothers(&world.dedup, world.row, &id));
    id.seq = 6;
    cr_assert_not(inst_dedup_is_anothers(&world.dedup, other, &id));
    cr_assert_not(is_forgotten(&world, 1, 4));
    world_deinit(&world);
}

Test(dedup, per_client_limit_and_one_past_it)
{
    struct world world;

    world_init(&world);
    for (uint64_t seq = 1; seq <= INST_DEDUP_PER_CLIENT_MAX; seq++)
        record(&world, 1, seq, false);
    cr_assert(is_known(&world, 1, 1));
    cr_assert_not(is_forgotten(&world, 1, 1));
    record(&world, 1, INST_DEDUP_PER_CLIENT_MAX + 1, false);
    cr_assert_not(is_known(&world, 1, 1));
    cr_assert(is_forgotten(&world, 1, 1));
    cr_assert_not(is_forgotten(&world, 1, 2));
    cr_assert(is_known(&world, 1, 2));
    cr_assert_eq(world.row->n_volatile, INST_DEDUP_PER_CLIENT_MAX);
    world_deinit(&world);
}

Test(dedup, clients_limit_and_one_past_it)
{
    struct world world;

    world_init(&world);
    for (uint32_t client = 0; client < INST_DEDUP_CLIENTS_MAX; client++)
        record(&world, client, 1, false);
    record(&world, 0, 2, false);
    cr_assert(is_known(&world, 1, 1));
    record(&world, INST_DEDUP_CLIENTS_MAX, 1, false);
    cr_assert_not(is_known(&world, 1, 1), "the least recently used goes");
    cr_assert(is_known(&world, 0, 1));
    cr_assert_eq(world.dedup.n_clients, INST_DEDUP_CLIENTS_MAX);
    world_deinit(&world);
}

Test(dedup, entries_limit_and_one_past_it, .timeout = 30)
{
    struct world world;
    uint32_t client = 0;

    world_init(&world);
    for (size_t n = 0; n < INST_DEDUP_ENTRIES_MAX; n++) {
        client = (uint32_t)(n / 1000);
        record(&world, client, n % 1000 + 1, false);
    }
    cr_assert(is_known(&world, 0, 1));
    record(&world, client, 5000, false);
    cr_assert_not(is_known(&world, 0, 1));
    cr_assert(is_forgotten(&world, 0, 1));
    cr_assert_eq(world.dedup.n_entries, INST_DEDUP_ENTRIES_MAX);
    world_deinit(&world);
}

Test(dedup, no_memory_is_told_before_anything_is_recorded)
{
    struct world world;

    world_init(&world);
    test_alloc_fail_after(0, 1);
    cr_assert_null(inst_dedup_prepare(&world.dedup), "no buckets");
    test_alloc_fail_after(1, 1);
    cr_assert_null(inst_dedup_prepare(&world.dedup), "no entries");
    test_alloc_fail_never();
    record(&world, 1, 1, false);
    cr_assert(is_known(&world, 1, 1));
    world_deinit(&world);
}

Test(dedup, chains_grow_longer_when_buckets_cannot)
{
    struct world world;

    world_init(&world);
    for (uint64_t seq = 1; seq <= 256; seq++)
        record(&world, 1, seq, false);
    test_alloc_fail_after(0, 1);
    record(&world, 1, 257, false);
    test_alloc_fail_never();
    cr_assert(is_known(&world, 1, 1));
    cr_assert(is_known(&world, 1, 257));
    world_deinit(&world);
}

Test(dedup, done_below_forgets_and_condemns_what_reached_the_disk)
{
    struct world world;
    struct model_request_id id = id_of(1, 0);
    struct inst_row *row;

    world_init(&world);
    record(&world, 1, 1, true);
    record(&world, 1, 2, false);
    record(&world, 1, 3, false);
    inst_dedup_done_below(&world.dedup, &id.client, 3);
    cr_assert_not(is_known(&world, 1, 1));
    cr_assert_not(is_known(&world, 1, 2));
    cr_assert(is_known(&world, 1, 3));
    cr_assert(is_forgotten(&world, 1, 2));
    cr_assert_not(is_forgotten(&world, 1, 3));
    cr_assert_eq(world.row->n_volatile, 1);
    cr_assert_eq(world.dedup.n_condemned, 1);
    cr_assert(inst_dedup_take_condemned(&world.dedup, &row, &id));
    cr_assert_eq(row, world.row);
    cr_assert_eq(id.seq, 1);
    cr_assert_not(inst_dedup_take_condemned(&world.dedup, &row, &id));
    world_deinit(&world);
}

Test(dedup, an_entry_in_a_transaction_is_condemned_not_dropped)
{
    struct world world;
    struct model_request_id id = id_of(1, 0);

    world_init(&world);
    record(&world, 1, 1, false);
    inst_dedup_row_written(world.row);
    inst_dedup_done_below(&world.dedup, &id.client, 2);
    cr_assert_eq(world.dedup.n_condemned, 1);
    inst_dedup_row_committed(world.row);
    cr_assert_eq(world.row->n_volatile, 0);
    world_deinit(&world);
}

Test(dedup, a_row_is_forgotten_whole_or_below_its_epoch)
{
    struct world world;

    world_init(&world);
    record(&world, 1, 1, true);
    record(&world, 1, 2, false);
    world.row->live.dedup_since = 1;
    inst_dedup_forget_older(&world.dedup, world.row);
    cr_assert(is_known(&world, 1, 1));
    world.row->live.dedup_since = 2;
    inst_dedup_forget_older(&world.dedup, world.row);
    cr_assert_not(is_known(&world, 1, 1));
    cr_assert_not(is_forgotten(&world, 1, 1), "watermarks are of clients, not of rows");
    inst_dedup_forget_row(&world.dedup, world.row);
    cr_assert_not(is_known(&world, 1, 2));
    cr_assert_eq(world.dedup.n_entries, 1, "the condemned one");
    world_deinit(&world);
}
