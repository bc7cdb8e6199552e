/*
 * Placement: see placement.h. Invariant: the choice is one of the candidates. Pure.
 */
#include "coordinator/placement.h"

enum {
    N_LETTERS = 26
};

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

/* Of equals the first one behind the cursor. Two passes without a branch that depends on more than
 * one candidate: 1,000 instances take about a microsecond, and their answers, which change what
 * is free much more often, cost nothing but a store. */
static size_t most_free(const struct coord_view *view)
{
    const struct coord_candidate *candidates = view->candidates;
    size_t i = behind_cursor(view);
    uint64_t most = 0;

    for (size_t k = 0; k < view->n_candidates; k++)
        most = candidates[k].entries_free > most ? candidates[k].entries_free : most;
    while (candidates[i].entries_free != most)
        i = i + 1 == view->n_candidates ? 0 : i + 1;
    return i;
}

static size_t by_letter(const struct coord_view *view, struct rt_bytes key)
{
    size_t n = view->n_candidates;
    uint8_t first = key.data[0];
    size_t index;

    if (first >= 'A' && first <= 'Z')
        first = (uint8_t)(first - 'A' + 'a');
    if (first < 'a')
        return 0;
    if (first > 'z')
        return n - 1;
    index = (size_t)(first - 'a');
    if (view->ranges == COORD_RANGES_EVEN)
        return index * n / N_LETTERS;
    return index / ((N_LETTERS + n - 1) / n);
}

static size_t choose(const struct coord_view *view, const struct coord_request *request)
{
    switch (view->distribution) {
    case MODEL_DISTRIBUTION_EQUITABLE_LOAD:
        return behind_cursor(view);
    case MODEL_DISTRIBUTION_LEAST_SPACE_USED:
        return most_free(view);
    case MODEL_DISTRIBUTION_KEY_EXPLICIT:
        return by_letter(view, request->key);
    case MODEL_N_DISTRIBUTIONS:
        break;
    }
    rt_assert(false);
}

enum rt_code coord_placement_choose(const struct coord_view *view,
                                    const struct coord_request *request, struct rt_rng *rng,
                                    struct coord_choice *ret_choice, struct rt_error *err)
{
    (void)rng;
    if (view->n_candidates == 0)
        return rt_fail_reason(err, RT_UNAVAILABLE, "NO_INSTANCE", "no instance is alive");
    ret_choice->ordinal = view->candidates[choose(view, request)].ordinal;
    return RT_OK;
}
