/*
 * Expansions in the keys and values of scripts:
 *
 *   ${i}          the round of the innermost REPEAT, from 1
 *   ${rand a b}   a number from a to b, both included, each equally likely
 *   ${zipf n}     a number from 1 to n, k with a probability ~ 1 / k^0.99
 *   ${$}          a dollar sign: ${$}{i} stands for the four bytes ${i}
 *
 * Only the two bytes "${" begin one; a dollar sign before anything else is itself. Numbers are
 * decimal digits without sign. Names are in lower case; blanks stand between a name and its numbers
 * and nowhere else.
 *
 * Pure, re-entrant, allocates nothing.
 */
#ifndef MODEL_TEMPLATE_H
#define MODEL_TEMPLATE_H

#include <stdbool.h>

#include "runtime/base/bytes.h"

enum {
    MODEL_TEMPLATE_EXPANSION_MAX = 64 /* bytes from the dollar sign to the closing brace */
};

/* Of ${rand a b}: 18 digits. */
#define MODEL_TEMPLATE_NUMBER_MAX UINT64_C(999999999999999999)
#define MODEL_TEMPLATE_RANKS_MAX  UINT64_C(1000000000)

enum model_part_kind {
    MODEL_PART_TEXT,
    MODEL_PART_ROUND,
    MODEL_PART_RANDOM,
    MODEL_PART_ZIPF,
};

struct model_part {
    enum model_part_kind kind;
    struct rt_bytes text; /* TEXT: a view into the template */
    uint64_t low;         /* RANDOM, ZIPF: least and */
    uint64_t high;        /* greatest number */
};

struct model_template_error {
    const uint8_t *at;    /* in the template, or its end */
    const char *expected; /* static */
};

/* Where the next "${" is, or the end. */
const uint8_t *model_template_find(struct rt_bytes text);

/* Takes the next part off *rest, which is not empty. False and *ret_error when it is none. */
bool model_template_next(struct rt_bytes *rest, struct model_part *ret_part,
                         struct model_template_error *ret_error);

/* Decimal digits and nothing else, at most `max`; `max` has at most 18 digits. */
bool model_template_parse_number(struct rt_bytes text, uint64_t max, uint64_t *ret_number);

#endif
