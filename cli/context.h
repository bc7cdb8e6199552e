/*
 * What every verb gets: where it writes, for whom, and what the options that all verbs have say.
 * Borrowed by the verb; one thread.
 */
#ifndef CLI_CONTEXT_H
#define CLI_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum cli_output {
    CLI_OUTPUT_TEXT,
    CLI_OUTPUT_JSON,
};

struct cli_common {
    const char *coordinator; /* address */
    enum cli_output output;
    uint64_t timeout_ms; /* for the whole verb */
};

struct cli_context {
    FILE *out;
    FILE *err;
    bool out_is_terminal;
    bool is_utf8; /* the locale's encoding, for lines of boxes */
    const char *version;
    const char *completion_bash; /* what `completion bash` prints */
    const char *completion_zsh;
    const char *completion_fish;
    const char *binaries_dir;  /* where this program and its siblings lie */
    const char *temporary_dir; /* below it temporary directories are made */
    char *const *environment;

    /* Set by cli_verb_run(). */
    const char *verb; /* NULL before one is known */
    struct cli_common common;
};

#endif
