/*
 * Runs child.c from a test.
 */
#ifndef TESTS_STORE_PROCESS_H
#define TESTS_STORE_PROCESS_H

#include <stdio.h>
#include <sys/types.h>

struct process {
    pid_t pid;
    int in;    /* its standard input */
    FILE *out; /* its standard output */
};

void process_start(struct process *process, const char *mode, const char *path);

/* Closes its input, reads the rest of its output and waits; its exit status, or -signal. */
int process_finish(struct process *process);

#endif
