/*
 * Entries: see entries.h. Invariants: n_free is the number of clear bits; parts[i] tells the free
 * runs of the words below it, for every i in [1, n_leaves). Under the lock of the core that owns
 * it.
 */
#include "instance/entries.h"

#include "runtime/base/alloc.h"

enum {
    WORD_BITS = 64,
    CACHE_LINE = 64,
    EXPECTED_MAX = 256, /* bytes that are fetched ahead; the processor goes on by itself */
};

/* Lengths of free runs: at the lower end of a part, at its upper end, and the longest. */
struct inst_entries_part {
    uint32_t first;
    uint32_t last;
    uint32_t longest;
};

static const uint64_t ALL_BITS = UINT64_MAX;

/* ---- one word ---- */

/* The lowest index from which `n` bits are set, 1 <= n <= 64; WORD_BITS when there is none. */
static uint64_t first_run(uint64_t bits, uint64_t n)
{
    uint64_t have = 1;

    while (have < n && bits != 0) {
        uint64_t step = have < n - have ? have : n - have;

        bits &= bits >> step;
        have += step;
    }
    return bits == 0 ? WORD_BITS : (uint64_t)__builtin_ctzll(bits);
}

static uint32_t longest_run(uint64_t bits)
{
    uint32_t n = 0;

    for (; bits != 0; n++)
        bits &= bits >> 1;
    return n;
}

static struct inst_entries_part part_of_word(uint64_t used)
{
    if (used == ALL_BITS)
        return (struct inst_entries_part){0};
    if (used == 0)
        return (struct inst_entries_part){WORD_BITS, WORD_BITS, WORD_BITS};
    return (struct inst_entries_part){
        .first = (uint32_t)__builtin_ctzll(used),
        .last = (uint32_t)__builtin_clzll(used),
        .longest = longest_run(~used),
    };
}

/* ---- the tree ---- */

static struct inst_entries_part part_at(const struct inst_entries *entries, uint64_t node)
{
    if (node < entries->n_leaves)
        return entries->parts[node];
    node -= entries->n_leaves;
    return part_of_word(node < entries->n_words ? entries->used[node] : ALL_BITS);
}

/* `size`: entries of each half. No sum overflows: no run is longer than all entries. */
static struct inst_entries_part join(struct inst_entries_part low, struct inst_entries_part high,
                                     uint64_t size)
{
    struct inst_entries_part both = {
        .first = low.first == size ? low.first + high.first : low.first,
        .last = high.last == size ? high.last + low.last : high.last,
        .longest = low.last + high.first,
    };

    if (low.longest > both.longest)
        both.longest = low.longest;
    if (high.longest > both.longest)
        both.longest = high.longest;
    return both;
}

/* The words [from, to] have changed. */
static void update(struct inst_entries *entries, uint64_t from, uint64_t to)
{
    uint64_t size = WORD_BITS;

    from += entries->n_leaves;
    to += entries->n_leaves;
    while (from > 1) {
        from /= 2;
        to /= 2;
        for (uint64_t node = from; node <= to; node++)
            entries->parts[node] =
                join(part_at(entries, 2 * node), part_at(entries, 2 * node + 1), size);
        size *= 2;
    }
}

/* The lowest index from which `n` entries are free; longest of the root must be at least n. */
static uint64_t find(const struct inst_entries *entries, uint64_t n)
{
    uint64_t size = entries->n_leaves * WORD_BITS;
    uint64_t node = 1;
    uint64_t at = 0;

    while (node < entries->n_leaves) {
        struct inst_entries_part low = part_at(entries, 2 * node);

        node *= 2;
        size /= 2;
        if (low.longest >= n)
            continue;
        if (low.last + (uint64_t)part_at(entries, node + 1).first >= n)
            return at + size - low.last;
        node++;
        at += size;
    }
    return at + first_run(~entries->used[node - entries->n_leaves], n);
}

/* ---- life ---- */

static bool reserve_memory(struct inst_entries *entries)
{
    uint64_t n_bytes;

    if (__builtin_mul_overflow(entries->total, entries->entry_size, &n_bytes) || n_bytes > SIZE_MAX)
        return false;
    entries->slab = rt_alloc(n_bytes);
    if (entries->slab)
        entries->used = rt_alloc(entries->n_words * sizeof(*entries->used));
    if (entries->used)
        entries->parts = rt_alloc(entries->n_leaves * sizeof(*entries->parts));
    return entries->parts != NULL;
}

static void clear(struct inst_entries *entries)
{
    memset(entries->used, 0, entries->n_words * sizeof(*entries->used));
    if (entries->total % WORD_BITS != 0)
        entries->used[entries->n_words - 1] = ALL_BITS << (entries->total % WORD_BITS);
}

enum rt_code inst_entries_init(struct inst_entries *entries, uint64_t total, uint64_t entry_size,
                               struct rt_error *err)
{
    *entries = (struct inst_entries){.total = total, .entry_size = entry_size, .n_leaves = 2};
    if (total < 1 || total > UINT32_MAX || entry_size < 1)
        return rt_fail(err, RT_INVALID_ARGUMENT, "%llu entries of %llu bytes",
                       (unsigned long long)total, (unsigned long long)entry_size);
    entries->n_words = (total + WORD_BITS - 1) / WORD_BITS;
    while (entries->n_leaves < entries->n_words)
        entries->n_leaves *= 2;
    if (!reserve_memory(entries)) {
        inst_entries_deinit(entries);
        return rt_fail(err, RT_RESOURCE_EXHAUSTED, "no memory for %llu entries of %llu bytes",
                       (unsigned long long)total, (unsigned long long)entry_size);
    }
    clear(entries);
    update(entries, 0, entries->n_leaves - 1);
    entries->n_free = total;
    return RT_OK;
}

void inst_entries_deinit(struct inst_entries *entries)
{
    entries->slab = rt_free(entries->slab);
    entries->used = rt_free(entries->used);
    entries->parts = rt_free(entries->parts);
}

uint64_t inst_entries_needed(const struct inst_entries *entries, uint64_t size)
{
    if (size <= entries->entry_size)
        return 1;
    return (size - 1) / entries->entry_size + 1;
}

/* ---- runs ---- */

static void mark(struct inst_entries *entries, const struct inst_run *run, bool set)
{
    uint64_t at = run->first;
    uint64_t end = at + run->n;

    if (run->n == 0)
        return;
    while (at < end) {
        uint64_t offset = at % WORD_BITS;
        uint64_t n = WORD_BITS - offset < end - at ? WORD_BITS - offset : end - at;
        uint64_t mask = (ALL_BITS >> (WORD_BITS - n)) << offset;
        uint64_t *word = &entries->used[at / WORD_BITS];
        uint64_t before = (uint64_t)__builtin_popcountll(*word & mask);

        *word = set ? *word | mask : *word & ~mask;
        entries->n_free += before;
        entries->n_free -= set ? n : 0;
        at += n;
    }
    update(entries, run->first / WORD_BITS, (end - 1) / WORD_BITS);
}

bool inst_entries_fits(const struct inst_entries *entries, uint64_t n)
{
    return n <= entries->parts[1].longest;
}

uint64_t inst_entries_largest_hole(const struct inst_entries *entries)
{
    return entries->parts[1].longest;
}

bool inst_entries_alloc(struct inst_entries *entries, uint64_t n, struct inst_run *ret_run)
{
    static const struct inst_run none;

    return inst_entries_reserve(entries, &none, n, ret_run);
}

void inst_entries_release(struct inst_entries *entries, struct inst_run *run)
{
    mark(entries, run, false);
    *run = (struct inst_run){0};
}

bool inst_entries_reserve(struct inst_entries *entries, const struct inst_run *old, uint64_t n,
                          struct inst_run *ret_run)
{
    struct inst_run run = {.first = old->first, .n = (uint32_t)n};
    bool found;

    rt_assert(n >= 1);
    if (n <= old->n) {
        *ret_run = run;
        return true;
    }
    mark(entries, old, false);
    found = inst_entries_fits(entries, n);
    if (found)
        run.first = (uint32_t)find(entries, n);
    mark(entries, old, true);
    if (!found)
        return false;
    mark(entries, &run, true);
    *ret_run = run;
    return true;
}

void inst_entries_commit(struct inst_entries *entries, const struct inst_run *old,
                         const struct inst_run *reserved)
{
    if (old->first == reserved->first && old->n == reserved->n)
        return;
    mark(entries, old, false);
    mark(entries, reserved, true);
}

void inst_entries_cancel(struct inst_entries *entries, const struct inst_run *old,
                         const struct inst_run *reserved)
{
    mark(entries, reserved, false);
    mark(entries, old, true);
}

uint64_t inst_entries_next_used(const struct inst_entries *entries, uint64_t from)
{
    while (from < entries->total) {
        uint64_t bits = entries->used[from / WORD_BITS] >> (from % WORD_BITS);

        if (bits != 0) {
            from += (uint64_t)__builtin_ctzll(bits);
            return from < entries->total ? from : entries->total;
        }
        from += WORD_BITS - from % WORD_BITS;
    }
    return entries->total;
}

void inst_entries_move(struct inst_entries *entries, const struct inst_run *run, uint64_t to)
{
    memmove(entries->slab + to * entries->entry_size,
            entries->slab + run->first * entries->entry_size, run->n * entries->entry_size);
}

void inst_entries_pack(struct inst_entries *entries, uint64_t n)
{
    rt_assert(n == entries->total - entries->n_free);
    clear(entries);
    for (uint64_t i = 0; i < n / WORD_BITS; i++)
        entries->used[i] = ALL_BITS;
    if (n % WORD_BITS != 0)
        entries->used[n / WORD_BITS] |= ALL_BITS >> (WORD_BITS - n % WORD_BITS);
    update(entries, 0, entries->n_words - 1);
}

void inst_entries_expect(const struct inst_entries *entries, const struct inst_run *run,
                         size_t size)
{
    const uint8_t *value = entries->slab + run->first * entries->entry_size;

    for (size_t at = 0; at < size && at < EXPECTED_MAX; at += CACHE_LINE)
        __builtin_prefetch(value + at, 1);
}

void inst_entries_write(struct inst_entries *entries, const struct inst_run *run,
                        struct rt_bytes value)
{
    rt_assert(value.size <= run->n * entries->entry_size);
    if (value.size > 0)
        memcpy(entries->slab + run->first * entries->entry_size, value.data, value.size);
}

struct rt_bytes inst_entries_read(const struct inst_entries *entries, const struct inst_run *run,
                                  size_t size)
{
    rt_assert(size <= run->n * entries->entry_size);
    return rt_bytes_of(entries->slab + run->first * entries->entry_size, size);
}
