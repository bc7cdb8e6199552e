/*
 * Rows in memory: see rows.h. Invariant: every row is in the index, in `all`, and counted once
 * under its phase. Under the lock of the core that owns it.
 */
#include "instance/rows.h"

#include "runtime/base/alloc.h"

enum {
    CACHE_LINE = 64
};

void inst_rows_init(struct inst_rows *rows, uint64_t seed)
{
    *rows = (struct inst_rows){0};
    inst_index_init(&rows->index, seed);
    rt_list_init(&rows->all);
}

void inst_rows_deinit(struct inst_rows *rows)
{
    struct rt_list *node;

    while ((node = rt_list_pop_front(&rows->all)))
        (void)rt_free(RT_LIST_ENTRY(node, struct inst_row, link));
    inst_index_deinit(&rows->index);
}

void inst_rows_expect(const struct inst_rows *rows, const struct rt_bytes *keys, size_t n_keys,
                      const struct inst_row **ret_rows)
{
    for (size_t i = 0; i < n_keys; i++)
        inst_index_expect(&rows->index, keys[i]);
    for (size_t i = 0; i < n_keys; i++) {
        const struct inst_row *row = inst_index_guess(&rows->index, keys[i]);

        ret_rows[i] = row;
        for (size_t at = 0; row && at < sizeof(*row) + keys[i].size; at += CACHE_LINE)
            __builtin_prefetch((const uint8_t *)row + at);
    }
}

struct inst_row *inst_rows_get(struct inst_rows *rows, struct rt_bytes key)
{
    struct inst_row *row = inst_rows_find(rows, key);

    if (row)
        return row;
    rt_assert(key.size >= 1 && key.size <= MODEL_KEY_MAX);
    row = rt_alloc(sizeof(*row) + key.size);
    if (!row)
        return NULL;
    *row = (struct inst_row){.phase = INST_ROW_ABSENT, .key_size = (uint8_t)key.size};
    memcpy(row->key, key.data, key.size);
    if (!inst_index_add(&rows->index, row))
        return rt_free(row);
    rt_list_init(&row->dump_link);
    rt_list_init(&row->waits);
    rt_list_init(&row->dedup);
    rt_list_init(&row->dedup_volatile);
    rt_list_push_back(&rows->all, &row->link);
    rows->n[INST_ROW_ABSENT]++;
    return row;
}

void inst_rows_set_phase(struct inst_rows *rows, struct inst_row *row, enum inst_row_phase phase)
{
    rows->n[row->phase]--;
    rows->n[phase]++;
    row->phase = phase;
}

void inst_rows_reap(struct inst_rows *rows, struct inst_row *row)
{
    if (row->phase != INST_ROW_ABSENT || row->op || row->on_disk || row->row_corrupt ||
        row->value_corrupt || !rt_list_is_empty(&row->waits) || !rt_list_is_empty(&row->dedup) ||
        !rt_list_is_empty(&row->dedup_volatile))
        return;
    rt_assert(row->run.n == 0);
    rows->n[INST_ROW_ABSENT]--;
    rt_list_remove(&row->link);
    rt_list_remove(&row->dump_link);
    inst_index_remove(&rows->index, row);
    (void)rt_free(row);
}
