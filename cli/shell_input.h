/*
 * Where the shell's lines come from: a terminal, with editing, history and completion (libedit), or
 * a pipe or file, line by line. Waiting for a line also looks at a descriptor that tells news.
 *
 * Used by one thread.
 */
#ifndef CLI_SHELL_INPUT_H
#define CLI_SHELL_INPUT_H

#include <stdbool.h>

#include "cli/context.h"
#include "runtime/base/bytes.h"
#include "runtime/base/error.h"

struct cli_shell_input;

enum cli_shell_event {
    CLI_SHELL_LINE,     /* *ret_line is set, without newline, valid until the next call */
    CLI_SHELL_TOO_LONG, /* a line of more than CLI_SHELL_LINE_MAX bytes was skipped */
    CLI_SHELL_NEWS,     /* on the descriptor; of a terminal's line nothing is lost */
    CLI_SHELL_END,      /* of the input */
    CLI_SHELL_FAILED,   /* *err says why it can be read no more */
};

/* All static. */
struct cli_shell_input_options {
    const char *prompt;
    const char *history; /* name of the file */
    /* Calls `add` for each first word that begins with it. */
    void (*complete)(struct rt_bytes beginning, void (*add)(const char *word, void *ctx),
                     void *ctx);
    bool is_caseless; /* words are completed in the case in which they were begun */
};

/* Standard input. A terminal if both it and the context's output are one; then lines are kept in
 * $XDG_STATE_HOME/redistinto, by default ~/.local/state/redistinto, for the next time. Without such
 * a directory they are not. `options` is borrowed. */
struct cli_shell_input *cli_shell_input_new(struct cli_context *context,
                                            const struct cli_shell_input_options *options);

/* Accepts NULL, returns NULL. */
struct cli_shell_input *cli_shell_input_free(struct cli_shell_input *input);

bool cli_shell_input_is_terminal(const struct cli_shell_input *input);

/* Blocks. `news_fd` may differ from call to call. */
enum cli_shell_event cli_shell_input_next(struct cli_shell_input *input, int news_fd,
                                          struct rt_bytes *ret_line, struct rt_error *err);

/* What was typed so far is no line: the next one begins empty. */
void cli_shell_input_discard(struct cli_shell_input *input);

#endif
