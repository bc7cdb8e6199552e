/*
 * Paces: see pace.h. Invariant: the time of operation i depends on i alone. Pure.
 */
#include "cli/pace.h"

void cli_pace_init(struct cli_pace *pace, uint64_t start_us, uint64_t rate)
{
    *pace = (struct cli_pace){.start_us = start_us, .rate = rate};
}

uint64_t cli_pace_next_us(const struct cli_pace *pace)
{
    uint64_t seconds;
    uint64_t rest;

    if (pace->rate == 0)
        return 0;
    seconds = pace->n_taken / pace->rate;
    rest = pace->n_taken % pace->rate;
    return pace->start_us + seconds * 1000000 + rest * 1000000 / pace->rate;
}

uint64_t cli_pace_n_due(const struct cli_pace *pace, uint64_t before_us)
{
    uint64_t length_us = before_us - pace->start_us;
    uint64_t rest_us = length_us % 1000000;

    return length_us / 1000000 * pace->rate + (rest_us * pace->rate + 999999) / 1000000;
}

bool cli_pace_take(struct cli_pace *pace, uint64_t now_us, uint64_t *ret_intended_us)
{
    uint64_t next_us = cli_pace_next_us(pace);

    if (next_us > now_us)
        return false;
    pace->n_taken++;
    *ret_intended_us = pace->rate == 0 ? now_us : next_us;
    return true;
}
