/*
 * Completion for shells, from the option tables: one script for all binaries.
 */
#ifndef DOCS_COMPLETION_H
#define DOCS_COMPLETION_H

#include "runtime/base/buffer.h"

/* For bash 4 and later, with or without the package bash-completion. */
void docs_completion_append_bash(struct rt_buffer *script);

/* C source that defines cli_completion_bash with this script. */
void docs_completion_append_source(struct rt_buffer *source);

#endif
