/*
 * Files and directories that commands make, replace and remove. Blocking; any thread.
 */
#ifndef CLI_FILE_H
#define CLI_FILE_H

#include <sys/types.h>

#include "runtime/base/buffer.h"
#include "runtime/base/bytes.h"
#include "runtime/base/error.h"

/* 0700; that it is there already is no error. Its parent must exist. NOT_FOUND when that does not,
 * FAILED_PRECONDITION when something else than a directory has the name. */
RT_MUST_USE enum rt_code cli_file_make_directory(const char *path, struct rt_error *err);

/* A new directory of a name of its own below `parent`. *ret_path is owned by the caller. */
RT_MUST_USE enum rt_code cli_file_make_temporary_directory(const char *parent, char **ret_path,
                                                           struct rt_error *err);

/* The directory with all that is in it; follows no symbolic link and stays on its file system. */
RT_MUST_USE enum rt_code cli_file_remove_directory(const char *path, struct rt_error *err);

/* Readers see the old content or the new, never a part: a temporary file beside it is renamed. */
RT_MUST_USE enum rt_code cli_file_replace(const char *path, struct rt_bytes content,
                                          struct rt_error *err);

/* The absolute path without symbolic links, owned by the caller. The file must exist. */
RT_MUST_USE enum rt_code cli_file_resolve(const char *path, char **ret_path, struct rt_error *err);

/* Appends all of a file, or of standard input when the path is "-". OUT_OF_RANGE when there are
 * more than `max` bytes: no more than that and one are read. On failure the buffer has any part. */
RT_MUST_USE enum rt_code cli_file_read(const char *path, size_t max, struct rt_buffer *buffer,
                                       struct rt_error *err);

/* Where the running program lies; owned by the caller. */
RT_MUST_USE enum rt_code cli_file_program_dir(char **ret_path, struct rt_error *err);

/* The last `n_lines` lines at or after `offset`, each behind two blanks. Of very long ones only the
 * end is looked at. Says so when there is nothing or when it cannot be read. */
void cli_file_append_tail(const char *path, off_t offset, unsigned n_lines,
                          struct rt_buffer *buffer);

#endif
