/*
 * The page of reasons as Markdown, from the table of runtime/model.
 */
#ifndef DOCS_REFERENCE_H
#define DOCS_REFERENCE_H

#include "runtime/base/buffer.h"

/* Every reason with its code. */
void docs_reference_append_reasons(struct rt_buffer *page);

#endif
