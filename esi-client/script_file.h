/*
 * A script in a file, read and parsed. Blocking; before the loop's thread begins.
 */
#ifndef ESI_SCRIPT_FILE_H
#define ESI_SCRIPT_FILE_H

#include "esi-client/script.h"
#include "runtime/base/buffer.h"

/* "-" is standard input. A failure appends what to tell the user, as complete lines: each error of
 * the script with its place (INVALID_ARGUMENT), that it is larger than ESI_SCRIPT_SIZE_MAX
 * (INVALID_ARGUMENT), or what the system said. The script is the caller's. */
RT_MUST_USE enum rt_code esi_script_file_load(const char *path, enum model_dialect dialect,
                                              struct esi_script **ret_script,
                                              struct rt_buffer *failure);

#endif
