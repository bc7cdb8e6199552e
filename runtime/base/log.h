/*
 * Log lines of key=value pairs on standard error. The level is set once in main(); below it a call
 * costs one comparison. Values of keys that users store are never logged. Any thread; a line is
 * written with one write(2).
 */
#ifndef RT_BASE_LOG_H
#define RT_BASE_LOG_H

#include <stdbool.h>

#include "runtime/base/compiler.h"

enum rt_log_level {
    RT_LOG_ERROR,
    RT_LOG_WARNING,
    RT_LOG_INFO,
    RT_LOG_DEBUG,
};

/* `name` is shown in every line (the binary's name) and must outlive the process' logging. */
void rt_log_init(const char *name, enum rt_log_level level);

/* "error", "warning", "info", "debug", NULL: by level, as an option table wants them. */
extern const char *const rt_log_level_names[];

bool rt_log_enabled(enum rt_log_level level);

/* rt_log(RT_LOG_INFO, "event=started address=%s", address) */
void rt_log(enum rt_log_level level, const char *format, ...) RT_PRINTF(2, 3);

#endif
