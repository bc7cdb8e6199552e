/*
 * What is due when: a binary heap of timers that live inside their owners. Own code: a core needs
 * nothing but "the earliest" and "cancel this one", with the core's clock.
 *
 * A zeroed heap and a zeroed timer are valid and empty. Timers with equal times fire in no
 * particular, but reproducible, order. Not thread safe.
 */
#ifndef COORD_TIMERS_H
#define COORD_TIMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct coord_core;
struct coord_timer;

/* The timer is idle when this runs; it may be set again, or freed. */
typedef void (*coord_timer_fn)(struct coord_core *core, struct coord_timer *timer);

struct coord_timer {
    uint64_t due_us;
    size_t slot; /* place in the heap, from 1; 0 = idle */
    coord_timer_fn on_due;
};

struct coord_timers {
    struct coord_timer **heap; /* owned; slot 1 is at index 0 */
    size_t n_timers;
    size_t capacity;
};

/* The timers themselves are their owners' business. */
void coord_timers_deinit(struct coord_timers *timers);

/* Sets an idle timer, or moves one that is set. */
void coord_timers_set(struct coord_timers *timers, struct coord_timer *timer, uint64_t due_us);

/* Harmless on an idle timer. */
void coord_timers_cancel(struct coord_timers *timers, struct coord_timer *timer);

/* Takes out the earliest timer that is due at `now_us`; NULL when there is none. */
struct coord_timer *coord_timers_pop_due(struct coord_timers *timers, uint64_t now_us);

/* UINT64_MAX when nothing is set. */
uint64_t coord_timers_next_us(const struct coord_timers *timers);

static inline bool coord_timer_is_set(const struct coord_timer *timer)
{
    return timer->slot != 0;
}

#endif
