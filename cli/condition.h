/*
 * Condition variables that wait for a time of the monotonic clock, so that nobody who sets the wall
 * clock makes a wait longer or shorter. Any thread.
 */
#ifndef CLI_CONDITION_H
#define CLI_CONDITION_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* The caller's memory; pthread_cond_destroy() ends it. */
void cli_condition_init(pthread_cond_t *condition);

/* The time that is so long away, for pthread_cond_timedwait(). */
struct timespec cli_condition_time_in(uint64_t duration_us);

#endif
