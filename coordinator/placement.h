/*
 * On which instance a new key is put. Pure: a function of the view, the request and the random
 * numbers; it changes nothing, so a dry run is the real thing without its commit.
 *
 * Equitable load: one instance after the other in registration order, starting behind the cursor,
 * which is the instance that received the last committed placement.
 */
#ifndef COORD_PLACEMENT_H
#define COORD_PLACEMENT_H

#include "runtime/base/bytes.h"
#include "runtime/base/error.h"
#include "runtime/base/rng.h"

struct coord_candidate {
    uint32_t ordinal; /* registration order, from 1 */
    uint64_t entries_free;
};

/* Borrowed from the live state. */
struct coord_view {
    const struct coord_candidate *candidates; /* alive instances by rising ordinal */
    size_t n_candidates;
    uint32_t cursor; /* ordinal; 0 = nothing was ever placed */
};

struct coord_request {
    struct rt_bytes key;
    uint64_t value_size; /* bytes */
};

struct coord_choice {
    uint32_t ordinal;
};

/* UNAVAILABLE NO_INSTANCE without candidates. */
RT_MUST_USE enum rt_code coord_placement_choose(const struct coord_view *view,
                                                const struct coord_request *request,
                                                struct rt_rng *rng, struct coord_choice *ret_choice,
                                                struct rt_error *err);

#endif
