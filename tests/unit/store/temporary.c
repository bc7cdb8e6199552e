/*
 * Temporary directory: see temporary.h. One a process.
 */
#include "tests/unit/store/temporary.h"

#include <criterion/criterion.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char directory[256];

const char *temporary_directory(void)
{
    const char *parent = getenv("TMPDIR");

    if (directory[0])
        return directory;
    (void)snprintf(directory, sizeof(directory), "%s/redistinto-test-XXXXXX",
                   parent ? parent : "/tmp");
    cr_assert_not_null(mkdtemp(directory));
    return directory;
}

const char *temporary_path(const char *name)
{
    static char paths[64][512];
    static size_t next;
    char *path = paths[next++ % 64];

    (void)snprintf(path, sizeof(paths[0]), "%s/%s", temporary_directory(), name);
    return path;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    return remove(path);
}

void temporary_remove(void)
{
    if (directory[0])
        (void)nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    directory[0] = 0;
}
