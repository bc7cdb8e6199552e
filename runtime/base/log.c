/*
 * Logging: see log.h. The only mutable globals of the project outside main.c; set before threads
 * start.
 */
#include "runtime/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    LINE_MAX_BYTES = 2048
};

static const char *log_name = "redistinto";
static enum rt_log_level log_level = RT_LOG_WARNING;

const char *const rt_log_level_names[] = {
    [RT_LOG_ERROR] = "error",
    [RT_LOG_WARNING] = "warning",
    [RT_LOG_INFO] = "info",
    [RT_LOG_DEBUG] = "debug",
    NULL,
};

void rt_log_init(const char *name, enum rt_log_level level)
{
    log_name = name;
    log_level = level;
}

bool rt_log_enabled(enum rt_log_level level)
{
    return level <= log_level;
}

void rt_log(enum rt_log_level level, const char *format, ...)
{
    char line[LINE_MAX_BYTES];
    struct timespec now;
    struct tm utc;
    va_list arguments;
    size_t used;
    int size;

    if (!rt_log_enabled(level))
        return;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &utc);
    used = strftime(line, sizeof(line), "%Y-%m-%dT%H:%M:%S", &utc);
    size = snprintf(line + used, sizeof(line) - used, ".%03ldZ level=%s service=%s pid=%d ",
                    now.tv_nsec / 1000000, rt_log_level_names[level], log_name, (int)getpid());
    used += (size_t)size;

    va_start(arguments, format);
    size = vsnprintf(line + used, sizeof(line) - used - 1, format, arguments);
    va_end(arguments);
    used += (size_t)size < sizeof(line) - used - 1 ? (size_t)size : sizeof(line) - used - 2;
    line[used++] = '\n';
    (void)!write(STDERR_FILENO, line, used);
}
