/*
 * A temporary directory with "redistinto-coordinator" and "redistinto-instance" in it, both the
 * stand-in of fake_service.c, found through the environment variable FAKE_SERVICE.
 */
#ifndef TESTS_UNIT_CLI_SERVICE_DIR_H
#define TESTS_UNIT_CLI_SERVICE_DIR_H

#include <unistd.h>

#include "cli/file.h"
#include "runtime/base/alloc.h"
#include "tests/support/check.h"

static char *service_dir;

static inline void service_dir_link(const char *name)
{
    char *path = rt_xasprintf("%s/%s", service_dir, name);

    cr_assert_not_null(getenv("FAKE_SERVICE"));
    cr_assert_eq(symlink(getenv("FAKE_SERVICE"), path), 0);
    rt_free(path);
}

static inline void service_dir_make(void)
{
    cr_assert_eq(cli_file_make_temporary_directory("/tmp", &service_dir, NULL), RT_OK);
    service_dir_link("redistinto-coordinator");
    service_dir_link("redistinto-instance");
    service_dir_link("redistinto-esi");
}

static inline void service_dir_remove(void)
{
    cr_assert_eq(cli_file_remove_directory(service_dir, NULL), RT_OK);
    service_dir = rt_free(service_dir);
    test_alloc_expect_none();
}

#endif
