/*
 * The entries of an instance under any sequence of changes, against a plain array: first fit, what
 * is free, the longest hole, and values that survive being moved together. Two bytes a step.
 * libFuzzer target; replay_main.c runs the corpus through it as an ordinary test.
 */
#include <stdlib.h>
#include <string.h>

#include "instance/entries.h"
#include "tests/fuzz/fuzz.h"

enum {
    N_ENTRIES = 200, /* several words of the bitmap */
    N_RUNS = 12,
    ENTRY_SIZE = 2,
    FREE = -1,
};

struct world {
    struct inst_entries entries;
    struct inst_run runs[N_RUNS];
    int owners[N_ENTRIES];
};

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* The lowest n entries next to each other that are free or `self`'s; -1 when there are none. */
static int first_fit(const struct world *world, int self, uint32_t n)
{
    uint32_t length = 0;

    for (int i = 0; i < N_ENTRIES; i++) {
        length = world->owners[i] == FREE || world->owners[i] == self ? length + 1 : 0;
        if (length == n)
            return i + 1 - (int)n;
    }
    return -1;
}

static void mark(struct world *world, const struct inst_run *run, int owner)
{
    for (uint32_t i = 0; i < run->n; i++)
        world->owners[run->first + i] = owner;
}

static void write(struct world *world, int self)
{
    uint8_t value[N_ENTRIES * ENTRY_SIZE];
    const struct inst_run *run = &world->runs[self];

    memset(value, 'a' + self, sizeof(value));
    inst_entries_write(&world->entries, run, rt_bytes_of(value, (size_t)run->n * ENTRY_SIZE));
}

static void change(struct world *world, int self, uint32_t n, bool cancels)
{
    struct inst_run *run = &world->runs[self];
    int expected = n <= run->n ? (int)run->first : first_fit(world, self, n);
    struct inst_run reserved;

    if (!inst_entries_reserve(&world->entries, run, n, &reserved)) {
        check(expected == -1);
        return;
    }
    check((int)reserved.first == expected && reserved.n == n);
    if (cancels) {
        inst_entries_cancel(&world->entries, run, &reserved);
        return;
    }
    inst_entries_commit(&world->entries, run, &reserved);
    mark(world, run, FREE);
    mark(world, &reserved, self);
    *run = reserved;
    write(world, self);
}

static void compact(struct world *world)
{
    uint64_t at = 0;
    uint64_t to = 0;

    while ((at = inst_entries_next_used(&world->entries, at)) < N_ENTRIES) {
        struct inst_run *run = &world->runs[world->owners[at]];

        check(run->first == at);
        inst_entries_move(&world->entries, run, to);
        run->first = (uint32_t)to;
        at += run->n;
        to += run->n;
    }
    inst_entries_pack(&world->entries, to);
    memset(world->owners, FREE, sizeof(world->owners));
    for (int i = 0; i < N_RUNS; i++)
        mark(world, &world->runs[i], i);
}

static void check_all(const struct world *world)
{
    uint64_t n_free = 0;
    uint64_t length = 0;
    uint64_t longest = 0;

    for (int i = 0; i < N_ENTRIES; i++) {
        n_free += world->owners[i] == FREE;
        length = world->owners[i] == FREE ? length + 1 : 0;
        longest = length > longest ? length : longest;
    }
    check(world->entries.n_free == n_free);
    check(inst_entries_largest_hole(&world->entries) == longest);
    for (int i = 0; i < N_RUNS; i++) {
        const struct inst_run *run = &world->runs[i];
        struct rt_bytes value =
            inst_entries_read(&world->entries, run, (size_t)run->n * ENTRY_SIZE);

        for (size_t j = 0; run->n > 0 && j < value.size; j++)
            check(value.data[j] == 'a' + i);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world world = {0};

    check(inst_entries_init(&world.entries, N_ENTRIES, ENTRY_SIZE, NULL) == RT_OK);
    memset(world.owners, FREE, sizeof(world.owners));
    for (size_t i = 0; i + 1 < size; i += 2) {
        int self = data[i] % N_RUNS;
        unsigned verb = data[i] / N_RUNS % 8;

        if (verb == 0) {
            mark(&world, &world.runs[self], FREE);
            inst_entries_release(&world.entries, &world.runs[self]);
        } else if (verb == 1) {
            compact(&world);
        } else {
            change(&world, self, 1 + data[i + 1] % N_ENTRIES, verb == 2);
        }
        check_all(&world);
    }
    inst_entries_deinit(&world.entries);
    return 0;
}
