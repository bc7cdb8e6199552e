/*
 * Placement: see placement.h. Pure.
 */
#include "coordinator/placement.h"

/* Index of the first candidate behind the cursor, going round. */
static size_t behind_cursor(const struct coord_view *view)
{
    size_t low = 0;
    size_t high = view->n_candidates;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (view->candidates[middle].ordinal > view->cursor)
            high = middle;
        else
            low = middle + 1;
    }
    return low == view->n_candidates ? 0 : low;
}

enum rt_code coord_placement_choose(const struct coord_view *view,
                                    const struct coord_request *request, struct rt_rng *rng,
                                    struct coord_choice *ret_choice, struct rt_error *err)
{
    (void)request;
    (void)rng;
    if (view->n_candidates == 0)
        return rt_fail_reason(err, RT_UNAVAILABLE, "NO_INSTANCE", "no instance is alive");
    ret_choice->ordinal = view->candidates[behind_cursor(view)].ordinal;
    return RT_OK;
}
