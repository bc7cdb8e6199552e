/*
 * Shared by the parts of the option table only: option.c (layers), option_value.c (text and
 * values), option_help.c (what is printed).
 */
#ifndef RT_BASE_OPTION_INTERNAL_H
#define RT_BASE_OPTION_INTERNAL_H

#include "runtime/base/buffer.h"
#include "runtime/base/option.h"

/* One option with its field. Fields of strings point to `text`. */
struct rt_option_entry {
    const struct rt_option *option;
    void *field;
    enum rt_option_origin origin;
    char *text; /* owned, what was set last; NULL = nothing */
    bool is_builtin;
};

/* Checks `text` and writes the field. The message is only about the value: the caller knows where
 * it came from. */
RT_MUST_USE enum rt_code rt_option_value_set(struct rt_option_entry *entry, const char *text,
                                             struct rt_error *err);

/* As a user would type it; nothing for a string that is not set. */
void rt_option_value_format(const struct rt_option_entry *entry, struct rt_buffer *buffer);

/* "64KiB..1MiB", "a | b | c", or nothing. */
void rt_option_value_format_range(const struct rt_option *option, struct rt_buffer *buffer);

void rt_option_help_format(const struct rt_option_setup *setup, const struct rt_options *options,
                           struct rt_buffer *buffer);

/* A file that --config accepts; the origin of each value is in a comment. */
void rt_option_help_format_config(const struct rt_options *options, struct rt_buffer *buffer);

#endif
