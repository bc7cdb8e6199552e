/*
 * What an option table says, for whoever describes a command: help, manual pages, completion.
 * Everything is const and borrowed; any thread.
 */
#ifndef RT_BASE_OPTION_DESCRIBE_H
#define RT_BASE_OPTION_DESCRIBE_H

#include "runtime/base/buffer.h"
#include "runtime/base/option.h"

enum {
    RT_OPTION_COMMAND_OPTIONS_MAX = 128
};

/* All options of the command, the general ones at the end; how many they are. More than the maximum
 * is a programmer error. */
size_t rt_option_command_list(const struct rt_option_command *command,
                              const struct rt_option *ret_list[RT_OPTION_COMMAND_OPTIONS_MAX]);

/* Word for its value, "" for a flag. */
const char *rt_option_argument(const struct rt_option *option);

/* Its heading. */
const char *rt_option_group(const struct rt_option *option);

/* Whether none before this one in the list has its heading. */
bool rt_option_begins_group(const struct rt_option *const *list, size_t index);

/* Whether environment and file can set it: the general ones but --config are for the command line
 * only. */
bool rt_option_has_variable(const struct rt_option *option);

/* REDISTINTO_ENTRY_SIZE */
void rt_option_format_variable(const struct rt_option *option, struct rt_buffer *buffer);

/* "64KiB..1MiB", "a | b | c", or nothing. */
void rt_option_format_range(const struct rt_option *option, struct rt_buffer *buffer);

/* "required; 1..10; REDISTINTO_COUNT", "default 5; 1..10; REDISTINTO_COUNT" or less. */
void rt_option_format_facts(const struct rt_option *option, struct rt_buffer *buffer);

#endif
