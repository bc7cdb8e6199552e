/*
 * When operations begin. In an open loop each has its time, whatever became of the ones before: one
 * that starts late, because those before it took long, is late from its own time on, so that no
 * wait is left out of the latencies. In a closed loop each begins when there is somebody to do it.
 * Pure.
 */
#ifndef CLI_PACE_H
#define CLI_PACE_H

#include <stdbool.h>
#include <stdint.h>

#define CLI_PACE_RATE_MAX 100000000u

/* Fields are private. */
struct cli_pace {
    uint64_t start_us;
    uint64_t rate; /* operations a second; 0 = closed loop */
    uint64_t n_taken;
};

/* rate: 0..CLI_PACE_RATE_MAX. */
void cli_pace_init(struct cli_pace *pace, uint64_t start_us, uint64_t rate);

/* Takes the next operation, if its time has come; its latency counts from *ret_intended_us. */
bool cli_pace_take(struct cli_pace *pace, uint64_t now_us, uint64_t *ret_intended_us);

/* Open loop: how many operations have their time before this one, whether taken or not. */
uint64_t cli_pace_n_due(const struct cli_pace *pace, uint64_t before_us);

/* When the next operation may be taken; 0 in a closed loop. */
uint64_t cli_pace_next_us(const struct cli_pace *pace);

#endif
