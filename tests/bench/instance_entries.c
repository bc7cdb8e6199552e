/*
 * What finding an entry and finding a victim cost at 1,000 and at 1,000,000 entries of which 90 %
 * are in use: a first fit and its release, a change of a value in place, and the next victim of
 * each policy with its successor. Sizes take turns, and each works on as many entries as the other,
 * so that what is compared is the structure and not the processor's caches. Prints nanoseconds and
 * their ratio; judges nothing. One thread.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "instance/entries.h"
#include "instance/replacement.h"

enum {
    N_SIZES = 2,
    N_ROUNDS = 21,
    N_OPERATIONS = 200000,
    N_TOUCHED = 900, /* entries that are worked on, at each size */
    STRIDE = 7919,
    ENTRY_SIZE = 128,
};

static const uint64_t sizes[N_SIZES] = {1000, 1000000};

struct memory {
    uint64_t total;
    struct inst_entries entries;
    struct inst_replacement replacement[3]; /* by policy */
};

typedef void (*operation_fn)(struct memory *memory, uint64_t i);

static uint64_t clock_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Every tenth entry is free; the others hold a value of one entry each, used in their order. */
static bool memory_init(struct memory *memory, uint64_t total)
{
    *memory = (struct memory){.total = total};
    if (inst_entries_init(&memory->entries, total, ENTRY_SIZE, NULL) != RT_OK)
        return false;
    for (unsigned policy = 0; policy < 3; policy++)
        if (inst_replacement_init(&memory->replacement[policy], (enum inst_policy)policy, total,
                                  NULL) != RT_OK)
            return false;
    for (uint64_t i = 0; i < total; i++) {
        struct inst_run run;

        if (!inst_entries_alloc(&memory->entries, 1, &run))
            return false;
    }
    for (uint64_t i = 0; i < total; i++) {
        struct inst_run run = {(uint32_t)i, 1};

        if (i % 10 == 9)
            inst_entries_release(&memory->entries, &run);
        for (unsigned policy = 0; policy < 3 && i % 10 != 9; policy++)
            inst_replacement_use(&memory->replacement[policy], (uint32_t)i, i % 100);
    }
    return true;
}

static void memory_deinit(struct memory *memory)
{
    for (unsigned policy = 0; policy < 3; policy++)
        inst_replacement_deinit(&memory->replacement[policy]);
    inst_entries_deinit(&memory->entries);
}

/* One of the entries that are worked on, spread over all of them; never a free one. */
static uint32_t touched(const struct memory *memory, uint64_t i)
{
    uint64_t n = i * STRIDE % N_TOUCHED * (memory->total / 1000);

    return (uint32_t)(n % 10 == 9 ? n - 1 : n);
}

static void first_fit(struct memory *memory, uint64_t i)
{
    struct inst_run run;

    (void)i;
    if (inst_entries_alloc(&memory->entries, 1, &run))
        inst_entries_release(&memory->entries, &run);
}

static void first_fit_of_none(struct memory *memory, uint64_t i)
{
    struct inst_run run;

    (void)i;
    if (inst_entries_alloc(&memory->entries, 2, &run))
        abort();
}

static void change_in_place(struct memory *memory, uint64_t i)
{
    static const uint8_t value[100];
    struct inst_run old = {touched(memory, i), 1};
    struct inst_run run;

    if (!inst_entries_reserve(&memory->entries, &old, 1, &run))
        abort();
    inst_entries_commit(&memory->entries, &old, &run);
    inst_entries_write(&memory->entries, &run, rt_bytes_of(value, sizeof(value)));
}

/* The victim goes, and another value takes its entry. */
static void replace(struct inst_replacement *replacement, uint64_t i)
{
    uint32_t victim;

    if (!inst_replacement_choose(replacement, &victim))
        abort();
    (void)inst_replacement_evict(replacement, victim);
    inst_replacement_use(replacement, victim, i % 100);
}

static void replace_circ(struct memory *memory, uint64_t i)
{
    replace(&memory->replacement[INST_POLICY_CIRC], i);
}

static void replace_lru(struct memory *memory, uint64_t i)
{
    replace(&memory->replacement[INST_POLICY_LRU], i);
}

static void replace_bsu(struct memory *memory, uint64_t i)
{
    replace(&memory->replacement[INST_POLICY_BSU], i);
}

static void use_lru(struct memory *memory, uint64_t i)
{
    inst_replacement_use(&memory->replacement[INST_POLICY_LRU], touched(memory, i), 100);
}

static int compare_doubles(const void *a, const void *b)
{
    double difference = *(const double *)a - *(const double *)b;

    return (difference > 0) - (difference < 0);
}

static void measure(struct memory memories[N_SIZES], const char *what, operation_fn operation)
{
    double ns[N_SIZES][N_ROUNDS];

    for (size_t round = 0; round < (size_t)N_SIZES * N_ROUNDS; round++) {
        struct memory *memory = &memories[round % N_SIZES];
        uint64_t started_ns = clock_ns();

        for (uint64_t i = 0; i < N_OPERATIONS; i++)
            operation(memory, i);
        ns[round % N_SIZES][round / N_SIZES] =
            (double)(clock_ns() - started_ns) / (double)N_OPERATIONS;
    }
    for (size_t i = 0; i < N_SIZES; i++)
        qsort(ns[i], N_ROUNDS, sizeof(ns[i][0]), compare_doubles);
    (void)printf("%-28s %8.1f ns %8.1f ns   ratio %.2f\n", what, ns[0][N_ROUNDS / 2],
                 ns[1][N_ROUNDS / 2], ns[1][N_ROUNDS / 2] / ns[0][N_ROUNDS / 2]);
}

int main(void)
{
    static struct memory memories[N_SIZES];
    bool is_ready = true;

    for (size_t i = 0; i < N_SIZES; i++)
        is_ready = is_ready && memory_init(&memories[i], sizes[i]);
    if (!is_ready) {
        (void)fprintf(stderr, "bench_instance_entries: not enough memory\n");
        return 1;
    }
    (void)printf("%-28s %11s %11s\n", "entries, 90 % in use", "1,000", "1,000,000");
    measure(memories, "first fit, and its release", first_fit);
    measure(memories, "no fit", first_fit_of_none);
    measure(memories, "change in place", change_in_place);
    measure(memories, "use, LRU", use_lru);
    measure(memories, "victim and successor, CIRC", replace_circ);
    measure(memories, "victim and successor, LRU", replace_lru);
    measure(memories, "victim and successor, BSU", replace_bsu);
    for (size_t i = 0; i < N_SIZES; i++)
        memory_deinit(&memories[i]);
    return 0;
}
