/*
 * Mirrors in tests: see mirror.h.
 */
#include "tests/unit/store/mirror.h"

#include <criterion/criterion.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/store/file_name.h"
#include "tests/unit/store/temporary.h"

static char difference[4096];
static size_t n_rows;
static size_t n_files;
static size_t n_prepared;

/* Five digits: of the largest transaction, whose files would take as many fsyncs. */
static bool is_one_of_very_many(struct rt_bytes row)
{
    return row.size == 5 && row.data[0] >= '0' && row.data[0] <= '9' &&
           memcmp(row.data + 3, "00", 2) != 0;
}

bool mirror_row(struct rt_bytes row, struct rt_bytes value, struct rt_bytes *ret_key,
                struct rt_bytes *ret_content)
{
    *ret_key = row;
    *ret_content = value;
    return !is_one_of_very_many(row);
}

const struct store_files_options *mirror_options(void)
{
    static struct store_files_options options;
    static char mount[512];
    static char reserved[512];

    (void)snprintf(mount, sizeof(mount), "%s", temporary_path("mount"));
    (void)snprintf(reserved, sizeof(reserved), "%s", temporary_path("store"));
    options = (struct store_files_options){
        .mount = mount, .id = "0123456789abcdef", .reserved = {reserved}, .row = mirror_row};
    return &options;
}

static bool on_row(struct rt_bytes row, struct rt_bytes value, void *ctx)
{
    char name[STORE_FILE_NAME_MAX + 1];
    char path[STORE_FILE_NAME_MAX + 512];
    FILE *file;
    char *content;
    size_t size = 0;

    if (is_one_of_very_many(row))
        return true;
    content = calloc(1, value.size + 1);
    n_rows++;
    (void)store_file_name(row, name);
    (void)snprintf(path, sizeof(path), "%s/%s", temporary_path("mount"), name);
    file = fopen(path, "r");
    if (file) {
        size = fread(content, 1, value.size + 1, file);
        (void)fclose(file);
    }
    if (!file || !rt_bytes_equal(rt_bytes_of(content, size), value))
        (void)snprintf(difference, sizeof(difference), "%s: %s", name,
                       file ? "holds something else" : "is missing");
    free(content);
    return difference[0] == 0;
}

static bool on_corrupt(struct rt_bytes row, struct rt_bytes value, void *ctx)
{
    n_rows++;
    return true;
}

static int count(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    bool is_prepared = strstr(path, "/.redistinto-") != NULL;

    if (kind == FTW_D || kind == FTW_DP)
        return 0;
    n_files += !is_prepared;
    n_prepared += is_prepared;
    return 0;
}

const char *mirror_differs(struct store *store, size_t n_others)
{
    struct rt_error err = RT_ERROR_INIT;

    difference[0] = 0;
    n_rows = 0;
    n_files = 0;
    n_prepared = 0;
    cr_assert_eq(store_range(store, (struct rt_bytes){0}, on_row, on_corrupt, NULL, &err), RT_OK,
                 "%s", err.message);
    cr_assert_eq(nftw(temporary_path("mount"), count, 16, FTW_PHYS), 0);
    if (difference[0] == 0 && (n_files != n_rows + n_others || n_prepared > 0))
        (void)snprintf(difference, sizeof(difference), "%zu rows, %zu files, %zu prepared", n_rows,
                       n_files, n_prepared);
    return difference[0] ? difference : NULL;
}
