/*
 * The one durable counter that epochs, incarnations and lock tokens come from.
 *
 * Numbers are handed out from memory; a number may appear in a transaction only if that
 * transaction, or a committed one, says that everything up to it is used up. coord_counter_mark()
 * tells what to write. A restart goes on at the mark: what was left of a block is never used.
 */
#ifndef COORD_COUNTER_H
#define COORD_COUNTER_H

#include <stdint.h>

enum {
    COORD_COUNTER_BLOCK = 1000
};

struct coord_counter {
    uint64_t last;   /* newest number handed out */
    uint64_t marked; /* durable: no number above it is in any committed transaction */
};

/* `marked` as stored, 0 at the very first start; `generation` in the top 16 bits of every number.
 */
void coord_counter_start(struct coord_counter *counter, uint64_t marked, uint16_t generation);

/* Never returns a number twice, and never 0. */
uint64_t coord_counter_take(struct coord_counter *counter);

/* The mark to write together with `number`; 0 when the durable one covers it. */
uint64_t coord_counter_mark(const struct coord_counter *counter, uint64_t number);

/* A transaction that wrote `mark` has committed. */
void coord_counter_marked(struct coord_counter *counter, uint64_t mark);

#endif
