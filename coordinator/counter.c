/*
 * The durable counter: see counter.h. Runs under the core's lock.
 */
#include "coordinator/counter.h"

#include "runtime/model/ids.h"

void coord_counter_start(struct coord_counter *counter, uint64_t marked, uint16_t generation)
{
    uint64_t first = model_counter_first(generation);

    counter->last = marked > first ? marked : first;
    counter->marked = counter->last;
}

uint64_t coord_counter_take(struct coord_counter *counter)
{
    return ++counter->last;
}

uint64_t coord_counter_mark(const struct coord_counter *counter, uint64_t number)
{
    if (number <= counter->marked)
        return 0;
    return (number + COORD_COUNTER_BLOCK - 1) / COORD_COUNTER_BLOCK * COORD_COUNTER_BLOCK;
}

void coord_counter_marked(struct coord_counter *counter, uint64_t mark)
{
    if (mark > counter->marked)
        counter->marked = mark;
}
