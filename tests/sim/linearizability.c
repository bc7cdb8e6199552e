/*
 * Linearizability search: see linearizability.h. Invariant: `entries` is the list of calls and
 * returns in time order from which exactly the operations on `stack` have been lifted. One thread.
 */
#include "tests/sim/linearizability.h"

#include <stdlib.h>

#include "runtime/base/alloc.h"
#include "runtime/base/env.h"
#include "runtime/base/map.h"

struct state {
    uint32_t visible;
    uint32_t durable;
};

/* A call has its return in `match`; a return has none. Optional operations have no return. */
struct entry {
    struct entry *next;
    struct entry *previous;
    struct entry *match;
    const struct sim_op *op;
    size_t index; /* of the operation among those searched */
    uint64_t at_us;
    bool is_return;
    bool is_optional;
};

struct memo {
    UT_hash_handle hh;
    struct state state;
    uint64_t done[];
};

struct frame {
    struct entry *call;
    struct state before;
};

struct search {
    struct entry *entries; /* owned */
    struct entry head;     /* of the list */
    size_t n_entries;
    size_t n_required_left;
    struct memo *memo;    /* owned */
    struct memo *scratch; /* owned */
    size_t done_size;     /* bytes */
    struct frame *stack;  /* owned */
    size_t depth;
    size_t deepest;
    uint32_t blocked;
    struct state state;
};

static bool apply(const struct sim_op *op, struct state *state)
{
    switch (op->kind) {
    case SIM_OP_SET:
        state->visible = op->value;
        return true;
    case SIM_OP_STORE:
        state->durable = state->visible;
        return true;
    case SIM_OP_PUT:
        *state = (struct state){op->value, op->value};
        return true;
    case SIM_OP_DELETE:
    case SIM_OP_FORGET:
        *state = (struct state){0, 0};
        return true;
    case SIM_OP_READ:
        return state->visible == op->value;
    case SIM_OP_DUMP:
        if (state->visible == op->value)
            state->durable = state->visible;
        return true;
    case SIM_OP_REVERT:
        state->visible = state->durable;
        return true;
    }
    return false;
}

static bool is_seen(const struct sim_op *ops, size_t n_ops, uint32_t value)
{
    for (size_t i = 0; i < n_ops; i++)
        if (ops[i].kind == SIM_OP_READ && ops[i].result == SIM_RESULT_OK && ops[i].value == value)
            return true;
    return false;
}

/* false: the operation cannot matter. */
static bool matters(const struct sim_op *ops, size_t n_ops, const struct sim_op *op)
{
    enum sim_result result = sim_op_effective_result(op);

    if (result == SIM_RESULT_OK)
        return true;
    if (result == SIM_RESULT_NO || op->kind == SIM_OP_READ)
        return false;
    if (op->kind == SIM_OP_SET || op->kind == SIM_OP_PUT || op->kind == SIM_OP_DUMP)
        return is_seen(ops, n_ops, op->value);
    return true;
}

static int compare_entries(const void *a, const void *b)
{
    const struct entry *left = a;
    const struct entry *right = b;

    if (left->at_us != right->at_us)
        return left->at_us < right->at_us ? -1 : 1;
    if (left->is_return != right->is_return)
        return left->is_return ? 1 : -1;
    return left->op->number < right->op->number ? -1 : left->op->number > right->op->number;
}

static void collect(struct search *search, const struct sim_op *ops, size_t n_ops, uint8_t key)
{
    size_t n = 0;

    search->entries = rt_xalloc((2 * n_ops + 1) * sizeof(*search->entries));
    for (size_t i = 0; i < n_ops; i++) {
        bool is_required = ops[i].result == SIM_RESULT_OK && ops[i].kind != SIM_OP_REVERT &&
                           ops[i].kind != SIM_OP_FORGET;

        if (ops[i].key != key || !matters(ops, n_ops, &ops[i]))
            continue;
        search->entries[n++] =
            (struct entry){.op = &ops[i], .at_us = ops[i].invoke_us, .is_optional = !is_required};
        if (is_required)
            search->entries[n++] =
                (struct entry){.op = &ops[i], .at_us = ops[i].return_us, .is_return = true};
        search->n_required_left += is_required;
    }
    search->n_entries = n;
    qsort(search->entries, n, sizeof(*search->entries), compare_entries);
}

static void link_entries(struct search *search, size_t n_ops)
{
    struct entry **calls = rt_xalloc((n_ops + 2) * sizeof(struct entry *));
    struct entry *tail = &search->head;
    const struct sim_op *base = NULL;
    size_t n_calls = 0;

    for (size_t i = 0; i < search->n_entries; i++)
        if (!base || search->entries[i].op < base)
            base = search->entries[i].op;
    for (size_t i = 0; i < search->n_entries; i++) {
        struct entry *entry = &search->entries[i];

        tail->next = entry;
        entry->previous = tail;
        tail = entry;
        if (entry->is_return) {
            calls[entry->op - base]->match = entry;
        } else {
            entry->index = n_calls++;
            calls[entry->op - base] = entry;
        }
    }
    search->done_size = (n_calls / 64 + 1) * sizeof(uint64_t);
    search->scratch = rt_xalloc(sizeof(*search->scratch) + search->done_size);
    search->stack = rt_xalloc((n_calls + 1) * sizeof(*search->stack));
    (void)rt_free(calls);
}

static void lift(struct entry *entry)
{
    entry->previous->next = entry->next;
    if (entry->next)
        entry->next->previous = entry->previous;
}

static void put_back(struct entry *entry)
{
    entry->previous->next = entry;
    if (entry->next)
        entry->next->previous = entry;
}

/* true when the configuration is new; remembers it. */
static bool remember(struct search *search)
{
    size_t key_size = sizeof(struct state) + search->done_size;
    struct memo *known;

    search->scratch->state = search->state;
    HASH_FIND(hh, search->memo, &search->scratch->state, key_size, known);
    if (known)
        return false;
    known = rt_xmemdup(search->scratch, sizeof(*known) + search->done_size);
    HASH_ADD(hh, search->memo, state, key_size, known);
    return true;
}

static void flip(struct search *search, size_t index)
{
    search->scratch->done[index / 64] ^= 1ull << index % 64;
}

static bool try_call(struct search *search, struct entry *call)
{
    struct state before = search->state;

    if (!apply(call->op, &search->state))
        return false;
    flip(search, call->index);
    if (!remember(search)) {
        flip(search, call->index);
        search->state = before;
        return false;
    }
    search->stack[search->depth++] = (struct frame){call, before};
    lift(call);
    if (call->match)
        lift(call->match);
    search->n_required_left -= !call->is_optional;
    return true;
}

/* The entry after the one taken back; NULL when nothing is left to take back. */
static struct entry *backtrack(struct search *search)
{
    struct frame *frame;

    if (search->depth == 0)
        return NULL;
    frame = &search->stack[--search->depth];
    if (frame->call->match)
        put_back(frame->call->match);
    put_back(frame->call);
    flip(search, frame->call->index);
    search->state = frame->before;
    search->n_required_left += !frame->call->is_optional;
    return frame->call;
}

static void note_blocked(struct search *search, const struct entry *entry)
{
    if (search->depth < search->deepest)
        return;
    search->deepest = search->depth;
    search->blocked = entry->op->number;
}

static enum sim_verdict run(struct search *search, size_t step_cap)
{
    struct entry *entry = search->head.next;

    while (search->n_required_left > 0) {
        if (step_cap-- == 0)
            return SIM_VERDICT_UNDECIDED;
        if (entry && !entry->is_return) {
            entry = try_call(search, entry) ? search->head.next : entry->next;
            continue;
        }
        if (entry)
            note_blocked(search, entry);
        entry = backtrack(search);
        if (!entry)
            return SIM_VERDICT_VIOLATED;
        entry = entry->next;
    }
    return SIM_VERDICT_LINEARIZABLE;
}

static void release(struct search *search)
{
    struct memo *memo;
    struct memo *next;

    HASH_ITER (hh, search->memo, memo, next) {
        HASH_DEL(search->memo, memo);
        (void)rt_free(memo);
    }
    (void)rt_free(search->entries);
    (void)rt_free(search->scratch);
    (void)rt_free(search->stack);
}

enum sim_verdict sim_linearizability_check(const struct sim_op *ops, size_t n_ops, uint8_t key,
                                           size_t step_cap, uint32_t *ret_blocked)
{
    struct search search = {0};
    enum sim_verdict verdict;

    collect(&search, ops, n_ops, key);
    link_entries(&search, n_ops);
    verdict = run(&search, step_cap);
    if (verdict == SIM_VERDICT_VIOLATED && ret_blocked)
        *ret_blocked = search.blocked;
    release(&search);
    return verdict;
}
