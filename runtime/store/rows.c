/*
 * Skip list of rows: see rows.h. Invariant: every level is sorted by key and is a sublist of the
 * level below. The owner's thread.
 */
#include "runtime/store/rows.h"

#include "runtime/base/alloc.h"

/* For each level the link that leads to the first row not less than the key. */
struct path {
    struct store_row **links[STORE_ROWS_HEIGHT_MAX];
};

void store_rows_init(struct store_rows *rows)
{
    *rows = (struct store_rows){0};
    rt_rng_seed(&rows->rng, 1);
}

static struct store_row *row_free(struct store_row *row)
{
    (void)rt_free((void *)row->value.data);
    return rt_free(row);
}

void store_rows_deinit(struct store_rows *rows)
{
    struct store_row *row = rows->first[0];

    while (row) {
        struct store_row *next = row->next[0];

        (void)row_free(row);
        row = next;
    }
    store_rows_init(rows);
}

static void find_path(struct store_rows *rows, struct rt_bytes key, struct path *ret_path)
{
    struct store_row **level = rows->first;

    for (size_t height = STORE_ROWS_HEIGHT_MAX; height-- > 0;) {
        while (level[height] && rt_bytes_compare(level[height]->key, key) < 0)
            level = level[height]->next;
        ret_path->links[height] = &level[height];
    }
}

struct store_row *store_rows_seek(const struct store_rows *rows, struct rt_bytes key)
{
    struct store_row *const *level = rows->first;

    for (size_t height = STORE_ROWS_HEIGHT_MAX; height-- > 0;)
        while (level[height] && rt_bytes_compare(level[height]->key, key) < 0)
            level = level[height]->next;
    return level[0];
}

struct store_row *store_rows_find(const struct store_rows *rows, struct rt_bytes key)
{
    struct store_row *row = store_rows_seek(rows, key);

    return row && rt_bytes_equal(row->key, key) ? row : NULL;
}

/* One more level with probability 1/4. */
static size_t choose_height(struct store_rows *rows)
{
    uint64_t bits = rt_rng_next(&rows->rng);
    size_t height = 1;

    while (height < STORE_ROWS_HEIGHT_MAX && (bits & 3) == 0) {
        bits >>= 2;
        height++;
    }
    return height;
}

static struct store_row *row_new(struct rt_bytes key, size_t height)
{
    size_t links_size = height * sizeof(struct store_row *);
    struct store_row *row = rt_xalloc(sizeof(*row) + links_size + key.size);
    uint8_t *copy = (uint8_t *)row->next + links_size;

    memcpy(copy, key.data, key.size);
    row->key = rt_bytes_of(copy, key.size);
    return row;
}

void store_rows_put(struct store_rows *rows, struct rt_bytes key, struct rt_bytes value)
{
    struct path path;
    struct store_row *row;

    find_path(rows, key, &path);
    row = *path.links[0];
    if (!row || !rt_bytes_equal(row->key, key)) {
        size_t height = choose_height(rows);

        row = row_new(key, height);
        for (size_t i = 0; i < height; i++) {
            row->next[i] = *path.links[i];
            *path.links[i] = row;
        }
        rows->n_rows++;
        rows->n_bytes += key.size;
    }
    rows->n_bytes += value.size;
    rows->n_bytes -= row->value.size;
    (void)rt_free((void *)row->value.data);
    row->value = rt_bytes_of(rt_xmemdup(value.data, value.size), value.size);
    row->corrupt = false;
}

bool store_rows_delete(struct store_rows *rows, struct rt_bytes key)
{
    struct path path;
    struct store_row *row;

    find_path(rows, key, &path);
    row = *path.links[0];
    if (!row || !rt_bytes_equal(row->key, key))
        return false;
    for (size_t i = 0; i < STORE_ROWS_HEIGHT_MAX && *path.links[i] == row; i++)
        *path.links[i] = row->next[i];
    rows->n_rows--;
    rows->n_bytes -= row->key.size + row->value.size;
    (void)row_free(row);
    return true;
}

void store_rows_copy(struct store_rows *target, const struct store_rows *source)
{
    for (struct store_row *row = source->first[0]; row; row = row->next[0]) {
        store_rows_put(target, row->key, row->value);
        store_rows_find(target, row->key)->corrupt = row->corrupt;
    }
}
