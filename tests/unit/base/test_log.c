/*
 * Log lines: form, level, cutting, one write each.
 */
#include "runtime/base/log.h"

#include <fcntl.h>
#include <regex.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/check.h"

static int pipe_ends[2];
static char line[8192];

/* Standard error goes into a pipe that keeps packets apart. */
static void set_up(void)
{
    cr_assert_eq(pipe2(pipe_ends, O_DIRECT | O_NONBLOCK), 0);
    cr_assert_eq(dup2(pipe_ends[1], STDERR_FILENO), STDERR_FILENO);
    rt_log_init("unit", RT_LOG_INFO);
}

TestSuite(log, .init = set_up, .fini = test_alloc_expect_none);

/* The next packet; "" when there is none. */
static const char *read_packet(void)
{
    ssize_t size = read(pipe_ends[0], line, sizeof(line) - 1);

    line[size > 0 ? size : 0] = 0;
    return line;
}

static bool matches(const char *text, const char *pattern)
{
    regex_t regex;
    bool is_match;

    cr_assert_eq(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
    is_match = regexec(&regex, text, 0, NULL, 0) == 0;
    regfree(&regex);
    return is_match;
}

Test(log, line_has_time_level_service_and_pid)
{
    rt_log(RT_LOG_WARNING, "event=%s n=%d", "tested", 3);
    cr_assert(matches(read_packet(), "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
                                     "\\.[0-9]{3}Z level=warning service=unit pid=[0-9]+ "
                                     "event=tested n=3\n$"),
              "%s", line);
    cr_assert_str_eq(read_packet(), "", "one write");
}

Test(log, level_decides)
{
    cr_assert(rt_log_enabled(RT_LOG_ERROR));
    cr_assert(rt_log_enabled(RT_LOG_INFO));
    cr_assert_not(rt_log_enabled(RT_LOG_DEBUG));
    rt_log(RT_LOG_DEBUG, "hidden");
    cr_assert_str_eq(read_packet(), "");
    rt_log(RT_LOG_INFO, "shown");
    cr_assert_not_null(strstr(read_packet(), "level=info"));
    rt_log_init("unit", RT_LOG_ERROR);
    rt_log(RT_LOG_WARNING, "hidden");
    cr_assert_str_eq(read_packet(), "");
    rt_log(RT_LOG_ERROR, "shown");
    cr_assert_not_null(strstr(read_packet(), "level=error"));
}

Test(log, long_lines_are_cut_and_still_end)
{
    char text[4000];

    for (size_t size = 1800; size < 2200; size++) {
        size_t length;

        memset(text, 'x', size);
        text[size] = 0;
        rt_log(RT_LOG_INFO, "%s", text);
        length = strlen(read_packet());
        cr_assert_leq(length, 2048);
        cr_assert_eq(line[length - 1], '\n');
        cr_assert_eq(line[length - 2], 'x');
    }
}

Test(log, levels_have_the_names_that_an_option_table_wants)
{
    cr_assert_str_eq(rt_log_level_names[RT_LOG_ERROR], "error");
    cr_assert_str_eq(rt_log_level_names[RT_LOG_WARNING], "warning");
    cr_assert_str_eq(rt_log_level_names[RT_LOG_INFO], "info");
    cr_assert_str_eq(rt_log_level_names[RT_LOG_DEBUG], "debug");
    cr_assert_null(rt_log_level_names[RT_LOG_DEBUG + 1]);
}
