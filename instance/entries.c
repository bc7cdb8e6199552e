/*
 * Entries: see entries.h. Invariant: n_free is the number of clear bits, and no entry below
 * lowest_free is free. Under the lock of the core that owns it.
 */
#include "instance/entries.h"

#include "runtime/base/alloc.h"

enum {
    WORD_BITS = 64,
    CACHE_LINE = 64,
    EXPECTED_MAX = 256, /* bytes that are fetched ahead; the processor goes on by itself */
};

static const uint64_t ALL_BITS = UINT64_MAX;

enum rt_code inst_entries_init(struct inst_entries *entries, uint64_t total, uint64_t entry_size,
                               struct rt_error *err)
{
    uint64_t n_words = (total + WORD_BITS - 1) / WORD_BITS;
    uint64_t n_bytes;

    *entries = (struct inst_entries){0};
    if (total < 1 || total > UINT32_MAX || entry_size < 1)
        return rt_fail(err, RT_INVALID_ARGUMENT, "%llu entries of %llu bytes",
                       (unsigned long long)total, (unsigned long long)entry_size);
    if (__builtin_mul_overflow(total, entry_size, &n_bytes))
        n_bytes = UINT64_MAX;
    entries->slab = n_bytes < SIZE_MAX ? rt_alloc(n_bytes) : NULL;
    entries->used = entries->slab ? rt_alloc(n_words * sizeof(*entries->used)) : NULL;
    if (!entries->used) {
        inst_entries_deinit(entries);
        return rt_fail(err, RT_RESOURCE_EXHAUSTED, "no memory for %llu entries of %llu bytes",
                       (unsigned long long)total, (unsigned long long)entry_size);
    }
    memset(entries->used, 0, n_words * sizeof(*entries->used));
    entries->total = total;
    entries->entry_size = entry_size;
    entries->n_free = total;
    return RT_OK;
}

void inst_entries_deinit(struct inst_entries *entries)
{
    entries->slab = rt_free(entries->slab);
    entries->used = rt_free(entries->used);
}

uint64_t inst_entries_needed(const struct inst_entries *entries, uint64_t size)
{
    if (size <= entries->entry_size)
        return 1;
    return (size - 1) / entries->entry_size + 1;
}

/* First index in [from, end) whose bit is `set`; `end` when there is none. */
static uint64_t next_bit(const struct inst_entries *entries, uint64_t from, uint64_t end, bool set)
{
    uint64_t flip = set ? 0 : ALL_BITS;

    while (from < end) {
        uint64_t word = (entries->used[from / WORD_BITS] ^ flip) >> (from % WORD_BITS);

        if (word != 0) {
            from += (uint64_t)__builtin_ctzll(word);
            return from < end ? from : end;
        }
        from += WORD_BITS - from % WORD_BITS;
    }
    return end;
}

static void mark(struct inst_entries *entries, const struct inst_run *run, bool set)
{
    uint64_t at = run->first;
    uint64_t end = at + run->n;

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
    if (!set && run->n > 0 && run->first < entries->lowest_free)
        entries->lowest_free = run->first;
    if (set && run->first <= entries->lowest_free && end > entries->lowest_free)
        entries->lowest_free = end;
}

static bool find(const struct inst_entries *entries, uint64_t n, uint64_t *ret_first)
{
    uint64_t at = entries->lowest_free;

    if (n > entries->n_free)
        return false;
    for (;;) {
        uint64_t end;

        at = next_bit(entries, at, entries->total, false);
        if (at == entries->total || n > entries->total - at)
            return false;
        end = next_bit(entries, at, at + n, true);
        if (end == at + n) {
            *ret_first = at;
            return true;
        }
        at = end;
    }
}

bool inst_entries_fits(const struct inst_entries *entries, uint64_t n)
{
    uint64_t first;

    return find(entries, n, &first);
}

uint64_t inst_entries_largest_hole(const struct inst_entries *entries)
{
    uint64_t largest = 0;
    uint64_t at = 0;

    while (at < entries->total) {
        uint64_t begin = next_bit(entries, at, entries->total, false);

        at = next_bit(entries, begin, entries->total, true);
        if (at - begin > largest)
            largest = at - begin;
    }
    return largest;
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
    uint64_t lowest_free = entries->lowest_free;
    struct inst_run run;
    uint64_t first;
    bool found;

    rt_assert(n >= 1);
    if (n <= old->n) {
        *ret_run = (struct inst_run){old->first, (uint32_t)n};
        return true;
    }
    mark(entries, old, false);
    found = find(entries, n, &first);
    mark(entries, old, true);
    entries->lowest_free = lowest_free;
    if (!found)
        return false;
    run = (struct inst_run){(uint32_t)first, (uint32_t)n};
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
