/*
 * Bump arena with a hard limit. Its own code and no library: message decoding needs one free a
 * call and a cap on what a peer can make us allocate. Not thread safe; belongs to one call.
 *
 * A zeroed struct is a valid empty arena whose limit is RT_ARENA_DEFAULT_LIMIT. Where there are
 * many arenas with little in each, a small first block is cheaper.
 */
#ifndef RT_BASE_ARENA_H
#define RT_BASE_ARENA_H

#include <stddef.h>

#include "runtime/base/bytes.h"
#include "runtime/base/compiler.h"

enum {
    RT_ARENA_DEFAULT_LIMIT = 64 * 1024 * 1024
};

struct rt_arena_block;

struct rt_arena {
    struct rt_arena_block *blocks; /* owned, newest first */
    size_t limit;                  /* bytes; 0 = RT_ARENA_DEFAULT_LIMIT */
    size_t first_block;            /* bytes of the first block; 0 = 4 KiB */
    size_t used;                   /* bytes handed out, rounding included */
};

/* Frees every block; the arena is empty and usable again, its limit kept. */
void rt_arena_reset(struct rt_arena *arena);

/* The same, but keeps one small block, so that an arena that is used again and again for small
 * things allocates nothing. */
void rt_arena_rewind(struct rt_arena *arena);

/* 16-byte aligned, not zeroed; NULL past the limit or out of memory. */
RT_MUST_USE void *rt_arena_alloc(struct rt_arena *arena, size_t size);

/* Copies with a NUL behind; on failure returns false and leaves *ret_copy alone. */
RT_MUST_USE bool rt_arena_copy(struct rt_arena *arena, struct rt_bytes source,
                               struct rt_bytes *ret_copy);

#endif
