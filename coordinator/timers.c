/*
 * Timers: see timers.h. Invariant: heap[timer->slot - 1] == timer for every timer that is set, and
 * no timer is due before its parent. Runs under the core's lock.
 */
#include "coordinator/timers.h"

#include "runtime/base/alloc.h"

enum {
    FIRST_CAPACITY = 16
};

void coord_timers_deinit(struct coord_timers *timers)
{
    (void)rt_free(timers->heap);
    *timers = (struct coord_timers){0};
}

static void place(struct coord_timers *timers, struct coord_timer *timer, size_t slot)
{
    timers->heap[slot - 1] = timer;
    timer->slot = slot;
}

static void sift_up(struct coord_timers *timers, struct coord_timer *timer)
{
    size_t slot = timer->slot;

    while (slot > 1 && timers->heap[slot / 2 - 1]->due_us > timer->due_us) {
        place(timers, timers->heap[slot / 2 - 1], slot);
        slot /= 2;
    }
    place(timers, timer, slot);
}

static void sift_down(struct coord_timers *timers, struct coord_timer *timer)
{
    size_t slot = timer->slot;

    for (;;) {
        size_t child = slot * 2;

        if (child > timers->n_timers)
            break;
        if (child < timers->n_timers &&
            timers->heap[child]->due_us < timers->heap[child - 1]->due_us)
            child++;
        if (timers->heap[child - 1]->due_us >= timer->due_us)
            break;
        place(timers, timers->heap[child - 1], slot);
        slot = child;
    }
    place(timers, timer, slot);
}

void coord_timers_set(struct coord_timers *timers, struct coord_timer *timer, uint64_t due_us)
{
    if (timer->slot == 0) {
        if (timers->n_timers == timers->capacity) {
            timers->capacity = timers->capacity == 0 ? FIRST_CAPACITY : timers->capacity * 2;
            timers->heap =
                rt_xrealloc(timers->heap, timers->capacity * sizeof(struct coord_timer *));
        }
        timers->n_timers++;
        place(timers, timer, timers->n_timers);
    }
    timer->due_us = due_us;
    sift_up(timers, timer);
    sift_down(timers, timer);
}

void coord_timers_cancel(struct coord_timers *timers, struct coord_timer *timer)
{
    size_t slot = timer->slot;
    struct coord_timer *last;

    if (slot == 0)
        return;
    last = timers->heap[timers->n_timers - 1];
    timers->n_timers--;
    timer->slot = 0;
    if (last == timer)
        return;
    place(timers, last, slot);
    sift_up(timers, last);
    sift_down(timers, last);
}

struct coord_timer *coord_timers_pop_due(struct coord_timers *timers, uint64_t now_us)
{
    struct coord_timer *timer;

    if (timers->n_timers == 0 || timers->heap[0]->due_us > now_us)
        return NULL;
    timer = timers->heap[0];
    coord_timers_cancel(timers, timer);
    return timer;
}

uint64_t coord_timers_next_us(const struct coord_timers *timers)
{
    return timers->n_timers == 0 ? UINT64_MAX : timers->heap[0]->due_us;
}
