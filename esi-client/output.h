/*
 * A file that comes to be at once: what is written goes beside it, and takes its name at the end.
 * Readers see the old file or the new one, never a part. Blocking; one thread an output.
 */
#ifndef ESI_OUTPUT_H
#define ESI_OUTPUT_H

#include "runtime/base/buffer.h"

/* Fields are private; zeroed = not open. */
struct esi_output {
    char *path;      /* owned */
    char *temporary; /* owned */
    int fd;
};

/* Makes the temporary file, so that what cannot be written is known before there is anything to
 * write. The name must be a regular file's, or free. */
RT_MUST_USE enum rt_code esi_output_open(struct esi_output *output, const char *path,
                                         struct rt_error *err);

RT_MUST_USE enum rt_code esi_output_write(struct esi_output *output, struct rt_bytes bytes,
                                          struct rt_error *err);

/* The file has its name, or does not and the temporary one is gone; closed either way. */
RT_MUST_USE enum rt_code esi_output_commit(struct esi_output *output, struct rt_error *err);

/* Without a trace. Nothing happens to one that is not open. */
void esi_output_discard(struct esi_output *output);

bool esi_output_is_open(const struct esi_output *output);

#endif
