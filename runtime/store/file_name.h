/*
 * Names of files that belong to keys. Pure; any thread.
 *
 * A key's bytes stand for themselves but for '/', '%', control bytes (0..31, 127) and a '.' at the
 * beginning, which are written as %XX. A name that would be longer than a file system takes is cut
 * into directories: each part but the last one ends with a '%' of its own. No two keys have the
 * same name, no part is "." or ".." or hidden, and no name of a file is the name of a directory.
 */
#ifndef STORE_FILE_NAME_H
#define STORE_FILE_NAME_H

#include "runtime/base/bytes.h"
#include "runtime/base/store.h"

enum {
    STORE_FILE_PART_MAX = 255, /* bytes of one part: NAME_MAX */
    /* Three for each byte of the key, and two for each end of a part that is as short as it can. */
    STORE_FILE_NAME_MAX = 3 * STORE_KEY_MAX + 2 * (3 * STORE_KEY_MAX / 252 + 1),
};

/* key.size 1..STORE_KEY_MAX. Returns the length. */
size_t store_file_name(struct rt_bytes key, char ret_name[STORE_FILE_NAME_MAX + 1]);

#endif
