/*
 * Small files that are read and replaced whole. Blocking; any thread.
 */
#ifndef STORE_FILE_H
#define STORE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/bytes.h"
#include "runtime/base/compiler.h"
#include "runtime/base/error.h"

/* Up to `capacity` bytes of `name` in the directory. That there is no such file is no error: then
 * *ret_exists is false and *ret_size 0. */
RT_MUST_USE enum rt_code store_file_read(int directory_fd, const char *name, void *ret_content,
                                         size_t capacity, size_t *ret_size, bool *ret_exists,
                                         struct rt_error *err);

/* Durable and atomic: temporary file, fsync, rename, fsync of the directory. After a failure the
 * old content stands, or the new one when only the last fsync failed. */
RT_MUST_USE enum rt_code store_file_replace(int directory_fd, const char *name,
                                            struct rt_bytes content, struct rt_error *err);

/* Whether the directory's disk, or the quota on it, has no room for `size` more bytes. false when
 * that cannot be found out. */
bool store_file_disk_is_full(int directory_fd, size_t size);

/* Whether the open file still has a name in some directory; false also when that cannot be found
 * out. */
bool store_file_is_linked(int fd);

#endif
