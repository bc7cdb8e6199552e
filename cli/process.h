/*
 * One child process of this project: started with its stderr in a log file, watched until it says
 * "ready ADDRESS" on its descriptor 3 and until it ends.
 *
 * The child's stdin is a pipe that this process holds open, so a child started with
 * --exit-with-stdin ends when this process does, however it ends. It has a session of its own: a
 * Ctrl-C in the terminal reaches this process only, which then stops its children in order.
 *
 * Not thread safe: everything on the loop's thread. Callbacks are never called from inside a
 * function of this header.
 */
#ifndef CLI_PROCESS_H
#define CLI_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#include "runtime/base/buffer.h"
#include "runtime/base/error.h"

enum {
    CLI_PROCESS_READY_FD = 3,
    CLI_PROCESS_READY_LINE_MAX = 511, /* bytes before the newline */
};

struct cli_process;

struct cli_process_options {
    const char *name;         /* copied */
    const char *const *argv;  /* NULL-terminated, argv[0] is the program's path; copied */
    char *const *environment; /* borrowed during the call; NULL: this process's */
    const char *log_path;     /* appended to; copied */
    /* The child serves: cli_process_address() is set. At most once. */
    void (*on_ready)(struct cli_process *process, void *ctx);
    /* The child has ended. Exactly once. */
    void (*on_exit)(struct cli_process *process, void *ctx);
    void *ctx;
};

/* The caller owns *ret_process and ends it with cli_process_close(). Fails with what opening the
 * log or starting the program reports; NOT_FOUND when there is no such program. */
RT_MUST_USE enum rt_code cli_process_spawn(uv_loop_t *loop,
                                           const struct cli_process_options *options,
                                           struct cli_process **ret_process, struct rt_error *err);

/* Does nothing when the child has ended. */
void cli_process_kill(struct cli_process *process, int signum);

/* Only after on_exit. The memory goes when the loop has closed the handles. */
void cli_process_close(struct cli_process *process);

const char *cli_process_name(const struct cli_process *process);
pid_t cli_process_pid(const struct cli_process *process);
/* NULL until ready. */
const char *cli_process_address(const struct cli_process *process);
/* Ended by itself with status 0. */
bool cli_process_exited_cleanly(const struct cli_process *process);
/* The exit status, or -1 when a signal ended it. After on_exit. */
int cli_process_exit_status(const struct cli_process *process);

/* "exited with status 2" or "was killed by signal 9 (Killed)". After on_exit. */
void cli_process_describe_end(const struct cli_process *process, struct rt_buffer *buffer);

/* The last `n_lines` of what this child logged, each behind "  ". Says so when there is none. */
void cli_process_append_log_tail(const struct cli_process *process, unsigned n_lines,
                                 struct rt_buffer *buffer);

#endif
