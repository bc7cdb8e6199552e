/*
 * The console of the ESI service: actions line by line, from a terminal or a pipe.
 */
#ifndef CLI_ESI_CONSOLE_H
#define CLI_ESI_CONSOLE_H

#include "cli/esi_action.h"

enum {
    CLI_ESI_CONSOLE_WORDS_MAX = 8 /* of one line; no action takes more */
};

/* Cuts the line into words, in place: at blanks. Quotes mean nothing; a byte that cannot be typed
 * is written as the keys are (is_escaped). Returns how many there are, at most
 * CLI_ESI_CONSOLE_WORDS_MAX + 1; NULL stands behind them. */
size_t cli_esi_console_cut(char *line, const char *ret_words[CLI_ESI_CONSOLE_WORDS_MAX + 2]);

/* Reads lines until the end of the input, `quit`, SIGTERM or SIGHUP. Exit codes: 1 when a line of a
 * pipe failed, 130 interrupted. */
enum model_exit cli_esi_console_run(const struct cli_esi *esi);

#endif
