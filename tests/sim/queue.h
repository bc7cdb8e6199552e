/*
 * The simulation's event queue: a binary heap ordered by time, then by the order of insertion, so
 * that equal times never depend on addresses. Every event is run or dropped exactly once.
 */
#ifndef SIM_QUEUE_H
#define SIM_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void (*sim_event_fn)(void *ctx);

struct sim_event {
    uint64_t at_us; /* global simulated time */
    uint64_t order;
    sim_event_fn run;
    sim_event_fn drop; /* instead of run when the queue ends; NULL = nothing to release */
    void *ctx;
};

/* A zeroed struct is an empty queue. */
struct sim_queue {
    struct sim_event *heap; /* owned */
    size_t n_events;
    size_t capacity;
    uint64_t next_order;
};

/* Drops what is left. */
void sim_queue_deinit(struct sim_queue *queue);

void sim_queue_push(struct sim_queue *queue, uint64_t at_us, sim_event_fn run, sim_event_fn drop,
                    void *ctx);

/* false when empty. */
bool sim_queue_pop(struct sim_queue *queue, struct sim_event *ret_event);

#endif
