/*
 * Completion for shells, from the option tables: one script for all binaries and each shell.
 */
#ifndef DOCS_COMPLETION_H
#define DOCS_COMPLETION_H

#include "runtime/base/buffer.h"
#include "runtime/base/option.h"

/* For bash 4 and later, with or without the package bash-completion. */
void docs_completion_append_bash(struct rt_buffer *script);

/* For zsh 5: in a directory of $fpath as _redistinto, or read with `source`. */
void docs_completion_append_zsh(struct rt_buffer *script);

/* For fish 3. */
void docs_completion_append_fish(struct rt_buffer *script);

/* C source that defines cli_completion_bash, _zsh and _fish with these scripts. */
void docs_completion_append_source(struct rt_buffer *source);

/* ---- what the scripts are made of ------------------------------------------------------------ */

/* What completes the value of an option, or a word of a command line: words with blanks between
 * them, "@files", "@directories" or nothing. */
void docs_completion_append_kind(const struct rt_option *option, struct rt_buffer *kind);
void docs_completion_append_kind_of_word(const char *word, size_t size, struct rt_buffer *kind);

/* All verbs, with blanks between them. */
void docs_completion_append_verbs(struct rt_buffer *script);

#endif
