/*
 * Bump arena: see arena.h. Blocks double from the first one's size to 64 KiB; a larger request gets
 * a block of its own size.
 */
#include "runtime/base/arena.h"

#include <stdint.h>

#include "runtime/base/alloc.h"

enum {
    ALIGNMENT = 16,
    FIRST_BLOCK = 4 * 1024,
    LARGEST_BLOCK = 64 * 1024,
};

struct rt_arena_block {
    struct rt_arena_block *next;
    size_t size;
    size_t used;
    _Alignas(ALIGNMENT) uint8_t data[];
};

static size_t first_size(const struct rt_arena *arena)
{
    return arena->first_block ? arena->first_block : FIRST_BLOCK;
}

void rt_arena_reset(struct rt_arena *arena)
{
    while (arena->blocks) {
        struct rt_arena_block *block = arena->blocks;

        arena->blocks = block->next;
        (void)rt_free(block);
    }
    arena->used = 0;
}

void rt_arena_rewind(struct rt_arena *arena)
{
    struct rt_arena_block *kept = NULL;

    while (arena->blocks) {
        struct rt_arena_block *block = arena->blocks;

        arena->blocks = block->next;
        if (!block->next && block->size == first_size(arena))
            kept = block;
        else
            (void)rt_free(block);
    }
    if (kept)
        kept->used = 0;
    arena->blocks = kept;
    arena->used = 0;
}

static struct rt_arena_block *add_block(struct rt_arena *arena, size_t needed)
{
    struct rt_arena_block *block;
    size_t size = first_size(arena);

    if (arena->blocks && arena->blocks->size < LARGEST_BLOCK)
        size = arena->blocks->size * 2;
    else if (arena->blocks)
        size = LARGEST_BLOCK;
    if (size < needed)
        size = needed;

    block = rt_alloc(sizeof(*block) + size);
    if (!block)
        return NULL;
    block->next = arena->blocks;
    block->size = size;
    block->used = 0;
    arena->blocks = block;
    return block;
}

void *rt_arena_alloc(struct rt_arena *arena, size_t size)
{
    size_t limit = arena->limit ? arena->limit : RT_ARENA_DEFAULT_LIMIT;
    struct rt_arena_block *block = arena->blocks;
    size_t rounded;
    void *pointer;

    if (size > limit || size > SIZE_MAX / 2)
        return NULL;
    rounded = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (rounded == 0)
        rounded = ALIGNMENT;
    if (rounded > limit - arena->used)
        return NULL;

    if (!block || block->size - block->used < rounded) {
        block = add_block(arena, rounded);
        if (!block)
            return NULL;
    }
    pointer = block->data + block->used;
    block->used += rounded;
    arena->used += rounded;
    return pointer;
}

bool rt_arena_copy(struct rt_arena *arena, struct rt_bytes source, struct rt_bytes *ret_copy)
{
    uint8_t *copy = rt_arena_alloc(arena, source.size + 1);

    if (!copy)
        return false;
    if (source.size > 0)
        memcpy(copy, source.data, source.size);
    copy[source.size] = 0;
    *ret_copy = (struct rt_bytes){copy, source.size};
    return true;
}
