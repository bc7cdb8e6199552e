/*
 * Manual pages in section 1, one a binary, in the man macros of roff.
 */
#ifndef DOCS_MANUAL_H
#define DOCS_MANUAL_H

#include "runtime/base/buffer.h"
#include "runtime/base/option.h"

/* Of one of docs_commands_binaries. */
void docs_manual_append(const struct rt_option_command *command, struct rt_buffer *page);

#endif
