/*
 * The key table: against a plain array, under failing memory, and its size a key.
 */
#include "coordinator/keys.h"

#include "runtime/base/rng.h"
#include "tests/support/check.h"

TestSuite(keys, .fini = test_alloc_expect_none);

static struct rt_bytes name_of(uint64_t number, char buffer[24])
{
    int size = snprintf(buffer, 24, "key:%llu", (unsigned long long)number);

    return rt_bytes_of(buffer, (size_t)size);
}

static struct coord_key *add(struct coord_keys *keys, uint64_t number)
{
    char buffer[24];
    struct coord_key *key = coord_keys_obtain(keys, name_of(number, buffer));

    cr_assert_not_null(key);
    coord_keys_set_exists(keys, key, true);
    return key;
}

static void drop(struct coord_keys *keys, uint64_t number)
{
    char buffer[24];
    struct coord_key *key = coord_keys_find(keys, name_of(number, buffer));

    cr_assert_not_null(key);
    coord_keys_set_exists(keys, key, false);
    coord_keys_tidy(keys, key);
}

Test(keys, agree_with_a_plain_array)
{
    enum {
        N = 1000
    };
    static bool there[N];
    struct coord_keys keys;
    struct rt_rng rng;
    size_t n_there = 0;
    char buffer[24];

    rt_rng_seed(&rng, 3);
    coord_keys_init(&keys, 4);
    for (size_t step = 0; step < 100000; step++) {
        uint64_t number = rt_rng_below(&rng, N);

        cr_assert_eq(coord_keys_find(&keys, name_of(number, buffer)) != NULL, there[number]);
        if (there[number])
            drop(&keys, number);
        else
            add(&keys, number);
        there[number] = !there[number];
        n_there += there[number] ? 1 : (size_t)-1;
        cr_assert_eq(keys.n_existing, n_there);
    }
    coord_keys_deinit(&keys);
}

Test(keys, walk_meets_every_key_once)
{
    struct coord_keys keys;
    struct coord_key *key;
    size_t position = 0;
    size_t n = 0;

    coord_keys_init(&keys, 1);
    cr_assert_null(coord_keys_next(&keys, &position, SIZE_MAX));
    for (uint64_t i = 0; i < 500; i++)
        add(&keys, i);
    while ((key = coord_keys_next(&keys, &position, SIZE_MAX))) {
        cr_assert_eq(key->newest_token, 0);
        key->newest_token = 1;
        n++;
    }
    cr_assert_eq(n, 500);
    position = 0;
    while (position < keys.n_slots) {
        size_t before = position;

        (void)coord_keys_next(&keys, &position, 3);
        cr_assert_leq(position - before, 3);
    }
    coord_keys_deinit(&keys);
}

Test(keys, layout_changes_when_slots_do)
{
    struct coord_keys keys;
    uint64_t layout;

    coord_keys_init(&keys, 1);
    add(&keys, 0);
    layout = keys.layout;
    for (uint64_t i = 1; i < 50; i++)
        add(&keys, i);
    cr_assert_eq(keys.layout, layout, "room for 56");
    for (uint64_t i = 50; i < 60; i++)
        add(&keys, i);
    cr_assert_neq(keys.layout, layout);
    coord_keys_deinit(&keys);
}

Test(keys, an_extra_keeps_a_key_that_does_not_exist)
{
    struct coord_keys keys;
    struct coord_key *key;
    struct coord_key_extra *extra;

    coord_keys_init(&keys, 1);
    key = coord_keys_obtain(&keys, RT_BYTES_LITERAL("k"));
    extra = coord_keys_obtain_extra(key);
    cr_assert_eq(coord_keys_obtain_extra(key), extra);
    extra->n_shared = 1;
    coord_keys_tidy(&keys, key);
    cr_assert_eq(coord_keys_find(&keys, RT_BYTES_LITERAL("k")), key);
    extra->n_shared = 0;
    coord_keys_tidy(&keys, key);
    cr_assert_null(coord_keys_find(&keys, RT_BYTES_LITERAL("k")));
    coord_keys_deinit(&keys);
}

Test(keys, lengths)
{
    uint8_t name[MODEL_KEY_MAX] = {0};
    struct coord_keys keys;
    struct coord_key *key;

    coord_keys_init(&keys, 1);
    key = coord_keys_obtain(&keys, rt_bytes_of(name, sizeof(name)));
    cr_assert_eq(coord_key_name(key).size, MODEL_KEY_MAX);
    cr_assert_neq(coord_keys_obtain(&keys, rt_bytes_of(name, 1)), key);
    cr_assert_eq(coord_keys_obtain(&keys, rt_bytes_of(name, sizeof(name))), key);
    coord_keys_deinit(&keys);
}

Test(keys, no_memory_leaves_the_table_as_it_was)
{
    struct coord_keys keys;
    char buffer[24];

    coord_keys_init(&keys, 1);
    for (size_t failing = 0; failing < 3; failing++) {
        test_alloc_fail_after(failing, 1);
        cr_assert_null(coord_keys_obtain(&keys, RT_BYTES_LITERAL("k")));
        cr_assert_eq(keys.n_keys, 0);
    }
    test_alloc_fail_never();
    for (uint64_t i = 0; i < 56; i++)
        add(&keys, i);
    test_alloc_fail_after(0, TEST_ALLOC_FOREVER);
    cr_assert_null(coord_keys_obtain(&keys, name_of(56, buffer)));
    for (uint64_t i = 0; i < 56; i++)
        cr_assert_not_null(coord_keys_find(&keys, name_of(i, buffer)));
    test_alloc_fail_never();
    coord_keys_deinit(&keys);
}

/* What a block costs in glibc's heap. */
static size_t heap_bytes(size_t size)
{
    return size + 8 < 32 ? 32 : (size + 8 + 15) / 16 * 16;
}

/* Right after growing, when the table is emptiest: the worst case. Key bytes are not counted, what
 * rounding adds to them is. */
Test(keys, at_most_96_heap_bytes_a_key)
{
    enum {
        N = 57345
    };
    struct coord_keys keys;
    size_t total;
    char buffer[24];

    coord_keys_init(&keys, 1);
    for (uint64_t i = 0; i < N; i++)
        add(&keys, i);
    total = heap_bytes(keys.n_slots * sizeof(struct coord_key *)) + heap_bytes(keys.n_slots);
    for (uint64_t i = 0; i < N; i++) {
        size_t size = name_of(i, buffer).size;

        total += heap_bytes(sizeof(struct coord_key) + size) - size;
    }
    cr_log_info("%zu bytes a key", total / N);
    cr_assert_geq(keys.n_slots, 2 * (size_t)N, "just grown");
    cr_assert_leq(total / N, 96);
    coord_keys_deinit(&keys);
}
