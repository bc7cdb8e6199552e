/*
 * Event queue: see queue.h. Invariant: the heap property holds over (at_us, order) after every
 * call. One thread.
 */
#include "tests/sim/queue.h"

#include "runtime/base/alloc.h"

static bool is_before(const struct sim_event *a, const struct sim_event *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}

static void swap(struct sim_event *a, struct sim_event *b)
{
    struct sim_event copy = *a;

    *a = *b;
    *b = copy;
}

static void sink(struct sim_queue *queue)
{
    size_t i = 0;

    for (;;) {
        size_t least = i;

        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < queue->n_events; child++)
            if (is_before(&queue->heap[child], &queue->heap[least]))
                least = child;
        if (least == i)
            return;
        swap(&queue->heap[i], &queue->heap[least]);
        i = least;
    }
}

void sim_queue_push(struct sim_queue *queue, uint64_t at_us, sim_event_fn run, sim_event_fn drop,
                    void *ctx)
{
    size_t i = queue->n_events++;

    if (queue->n_events > queue->capacity) {
        queue->capacity = queue->capacity ? queue->capacity * 2 : 256;
        queue->heap = rt_xrealloc(queue->heap, queue->capacity * sizeof(*queue->heap));
    }
    queue->heap[i] = (struct sim_event){
        .at_us = at_us, .order = queue->next_order++, .run = run, .drop = drop, .ctx = ctx};
    for (; i > 0 && is_before(&queue->heap[i], &queue->heap[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&queue->heap[i], &queue->heap[(i - 1) / 2]);
}

bool sim_queue_pop(struct sim_queue *queue, struct sim_event *ret_event)
{
    if (queue->n_events == 0)
        return false;
    *ret_event = queue->heap[0];
    queue->heap[0] = queue->heap[--queue->n_events];
    sink(queue);
    return true;
}

void sim_queue_deinit(struct sim_queue *queue)
{
    struct sim_event event;

    while (sim_queue_pop(queue, &event))
        if (event.drop)
            event.drop(event.ctx);
    queue->heap = rt_free(queue->heap);
    *queue = (struct sim_queue){0};
}
