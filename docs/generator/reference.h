/*
 * Reference pages as Markdown, from the tables of runtime/model.
 */
#ifndef DOCS_REFERENCE_H
#define DOCS_REFERENCE_H

#include "runtime/base/buffer.h"

/* Every reason with its code. */
void docs_reference_append_reasons(struct rt_buffer *page);

void docs_reference_append_limits(struct rt_buffer *page);

#endif
