/*
 * Where a run of a script is: hands out one statement after the other, as the script's REPEATs and
 * expansions have it, without unrolling anything. Equal seeds give equal statements.
 *
 * Pure, one thread a cursor; its memory is one statement's.
 */
#ifndef ESI_CURSOR_H
#define ESI_CURSOR_H

#include "esi-client/script.h"
#include "runtime/base/rng.h"

struct esi_loop {
    uint32_t repeat; /* its step */
    uint32_t round;  /* from 1 */
};

/* Fields are private. */
struct esi_cursor {
    const struct esi_script *script; /* borrowed */
    size_t at;                       /* a statement, or the end */
    struct esi_loop loops[ESI_SCRIPT_DEPTH_MAX];
    size_t depth;
    struct rt_rng rng;
    size_t last;           /* the step that was handed out last */
    struct rt_buffer text; /* of the statement that was handed out last */
};

/* The seed of a script that is the n-th, from 0, of a run with this seed. */
uint64_t esi_cursor_seed(uint64_t run_seed, size_t n);

/* `script` outlives the cursor. */
void esi_cursor_init(struct esi_cursor *cursor, const struct esi_script *script, uint64_t seed);
void esi_cursor_deinit(struct esi_cursor *cursor);

/* No statement is left. */
bool esi_cursor_is_done(const struct esi_cursor *cursor);

/* The next statement; only when there is one. Key and value are views into the script or the
 * cursor, until the next call. RESOURCE_EXHAUSTED: no memory for them, and the cursor stays where
 * it is. */
RT_MUST_USE enum rt_code esi_cursor_next(struct esi_cursor *cursor,
                                         struct esi_statement *ret_statement, struct rt_error *err);

/* Whether what was handed out last has key and value in the cursor. */
bool esi_cursor_is_expanded(const struct esi_cursor *cursor);

/* The same as the script has it. */
const struct esi_statement *esi_cursor_as_written(const struct esi_cursor *cursor);

#endif
