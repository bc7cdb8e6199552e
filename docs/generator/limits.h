/*
 * The page of limits as Markdown, from the constants that enforce them.
 */
#ifndef DOCS_LIMITS_H
#define DOCS_LIMITS_H

#include "runtime/base/buffer.h"

void docs_limits_append(struct rt_buffer *page);

#endif
