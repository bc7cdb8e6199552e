/*
 * On which instance a new key is put. Pure: a function of the view, the request and the random
 * numbers; it changes nothing, so a dry run is the real thing without its commit.
 *
 *   equitable load     one instance after the other in registration order, starting behind the
 *                      cursor, which is the instance that received the last committed placement by
 *                      any rule
 *   least space used   the one with the most free entries; among equals, equitable load
 *   key explicit       by the key's first letter, upper or lower case: the alphabet is cut into as
 *                      many ranges as there are instances. What sorts before the letters goes to
 *                      the first instance, what sorts behind them (all of UTF-8 too) to the last
 */
#ifndef COORD_PLACEMENT_H
#define COORD_PLACEMENT_H

#include "runtime/base/bytes.h"
#include "runtime/base/error.h"
#include "runtime/base/rng.h"
#include "runtime/model/message.h"

/* How key explicit cuts the alphabet for n instances. */
enum coord_ranges {
    COORD_RANGES_EVEN, /* letter · n / 26: no instance goes without while n <= 26 */
    COORD_RANGES_CEIL, /* chunks of ceil(26 / n) letters: from n = 8 on some get none */
};

struct coord_candidate {
    uint32_t ordinal;      /* registration order, from 1 */
    uint64_t entries_free; /* less those that placements under way will take */
};

/* Borrowed from the live state. */
struct coord_view {
    enum model_distribution distribution;
    enum coord_ranges ranges;
    const struct coord_candidate *candidates; /* alive instances by rising ordinal */
    size_t n_candidates;
    uint32_t cursor; /* ordinal; 0 = nothing was ever placed */
};

struct coord_request {
    struct rt_bytes key; /* at least 1 byte */
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
