/*
 * One line of the shell: a statement of the script language (runtime/model/statement.h), READ key,
 * PUT key value… or DEL key, which are written like GET and SET, or a word to the shell itself.
 * Pure.
 */
#ifndef CLI_SHELL_LINE_H
#define CLI_SHELL_LINE_H

#include "runtime/base/buffer.h"
#include "runtime/model/message.h"
#include "runtime/model/statement.h"

enum {
    CLI_SHELL_LINE_MAX = MODEL_STATEMENT_SIZE_MAX + 1024 /* bytes; the rest is for blanks */
};

enum cli_shell_line_kind {
    CLI_SHELL_LINE_EMPTY, /* or a comment */
    CLI_SHELL_LINE_STATEMENT,
    CLI_SHELL_LINE_SESSION,
    CLI_SHELL_LINE_HELP,
    CLI_SHELL_LINE_QUIT,
};

/* A zeroed struct is a valid empty one, and may be used for one line after the other. */
struct cli_shell_line {
    enum cli_shell_line_kind kind;
    enum model_statement_kind statement;
    struct rt_bytes key;   /* borrowed from the line or from the buffers */
    struct rt_bytes value; /* likewise */
    struct rt_buffer text;
    struct rt_buffer unescaped_key;
    struct rt_buffer unescaped_value;
};

/* `line` without its newline, alive as long as the result is used. With `is_escaped` key and value
 * are read as cli/escape.h writes them. INVALID_ARGUMENT says where and what was expected. */
RT_MUST_USE enum rt_code cli_shell_line_parse(struct cli_shell_line *result, struct rt_bytes line,
                                              bool is_escaped, struct rt_error *err);

void cli_shell_line_deinit(struct cli_shell_line *line);

/* What the beginning of a line may go on to: calls `add` for each first word that begins with it,
 * whatever the case. */
void cli_shell_line_complete(struct rt_bytes beginning, void (*add)(const char *word, void *ctx),
                             void *ctx);

#endif
