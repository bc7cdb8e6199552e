/*
 * Key index and rows: random work against a plain array, growth, failing memory.
 */
#include "instance/index.h"

#include <stdio.h>

#include "instance/rows.h"
#include "runtime/base/rng.h"
#include "tests/support/check.h"

TestSuite(index, .fini = test_alloc_expect_none);

enum {
    N_KEYS = 500
};

static struct rt_bytes key_of(int i, char text[16])
{
    (void)snprintf(text, 16, "key%d", i);
    return rt_bytes_of_string(text);
}

Test(index, random_work_agrees_with_a_plain_array)
{
    struct inst_row *expected[N_KEYS] = {0};
    struct inst_rows rows;
    struct rt_rng rng;
    char text[16];

    rt_rng_seed(&rng, 7);
    inst_rows_init(&rows, 99);
    for (int step = 0; step < 100000; step++) {
        int i = (int)rt_rng_below(&rng, N_KEYS);
        struct rt_bytes key = key_of(i, text);

        cr_assert_eq(inst_rows_find(&rows, key), expected[i]);
        if (!expected[i]) {
            expected[i] = inst_rows_get(&rows, key);
            cr_assert_eq(inst_rows_get(&rows, key), expected[i]);
        } else if (rt_rng_below(&rng, 2) == 0) {
            inst_rows_reap(&rows, expected[i]);
            expected[i] = NULL;
        }
    }
    inst_rows_deinit(&rows);
}

Test(index, expected_keys_change_nothing)
{
    struct rt_bytes keys[2] = {RT_BYTES_LITERAL("there"), RT_BYTES_LITERAL("not there")};
    const struct inst_row *seen[2];
    struct inst_rows rows;
    struct inst_row *row;

    inst_rows_init(&rows, 3);
    inst_rows_expect(&rows, keys, 2, seen);
    cr_assert_null(inst_index_guess(&rows.index, keys[0]));
    row = inst_rows_get(&rows, keys[0]);
    cr_assert_not_null(row);
    inst_rows_expect(&rows, keys, 2, seen);
    cr_assert_eq(seen[0], row);
    cr_assert_null(seen[1]);
    cr_assert_eq(inst_rows_find(&rows, keys[0]), row);
    cr_assert_null(inst_rows_find(&rows, keys[1]));
    cr_assert_eq(rows.index.n_rows, 1);
    inst_rows_deinit(&rows);
}

Test(index, keys_are_bytes_of_any_length)
{
    uint8_t zeros[MODEL_KEY_MAX] = {0};
    struct inst_rows rows;

    inst_rows_init(&rows, 1);
    cr_assert_null(inst_rows_find(&rows, rt_bytes_of(zeros, 1)));
    for (size_t size = 1; size <= MODEL_KEY_MAX; size++)
        cr_assert_not_null(inst_rows_get(&rows, rt_bytes_of(zeros, size)));
    cr_assert_eq(rows.index.n_rows, MODEL_KEY_MAX);
    cr_assert_null(inst_rows_find(&rows, rt_bytes_of(zeros, 0)));
    inst_rows_deinit(&rows);
}

Test(index, no_memory_changes_nothing)
{
    struct inst_rows rows;
    char text[16];

    inst_rows_init(&rows, 1);
    for (size_t i = 0; i < 2; i++) {
        test_alloc_fail_after(i, 1);
        cr_assert_null(inst_rows_get(&rows, key_of(0, text)));
    }
    test_alloc_fail_never();
    for (int i = 0; i < 48; i++)
        cr_assert_not_null(inst_rows_get(&rows, key_of(i, text)));
    test_alloc_fail_after(1, 1);
    cr_assert_null(inst_rows_get(&rows, key_of(48, text)), "the table does not grow");
    test_alloc_fail_never();
    cr_assert_not_null(inst_rows_get(&rows, key_of(48, text)));
    cr_assert_eq(rows.n[INST_ROW_ABSENT], 49);
    inst_rows_deinit(&rows);
}

Test(index, only_unused_placeholders_are_reaped)
{
    struct inst_rows rows;
    struct inst_row *row;

    inst_rows_init(&rows, 1);
    row = inst_rows_get(&rows, RT_BYTES_LITERAL("k"));
    inst_rows_set_phase(&rows, row, INST_ROW_ACTIVE);
    inst_rows_reap(&rows, row);
    inst_rows_set_phase(&rows, row, INST_ROW_ABSENT);
    row->on_disk = true;
    inst_rows_reap(&rows, row);
    cr_assert_eq(inst_rows_find(&rows, RT_BYTES_LITERAL("k")), row);
    row->on_disk = false;
    inst_rows_reap(&rows, row);
    cr_assert_null(inst_rows_find(&rows, RT_BYTES_LITERAL("k")));
    cr_assert_eq(rows.n[INST_ROW_ABSENT], 0);
    inst_rows_deinit(&rows);
}
