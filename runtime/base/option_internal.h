/*
 * Shared by the parts of the option table only: option.c (layers), option_file.c (the configuration
 * file), option_value.c (text and values), option_help.c and option_show.c (what is printed).
 */
#ifndef RT_BASE_OPTION_INTERNAL_H
#define RT_BASE_OPTION_INTERNAL_H

#include "runtime/base/buffer.h"
#include "runtime/base/option.h"

/* Of the file: in [common], in the option's own section. */
enum rt_option_rank {
    RT_OPTION_COMMON,
    RT_OPTION_OWN,
    RT_OPTION_N_RANKS,
};

/* One option with its field. Fields of strings point to `text`. */
struct rt_option_entry {
    const struct rt_option *option;
    const char *section;
    void *field;
    enum rt_option_origin origin;
    int lines[RT_OPTION_N_RANKS]; /* of the file, 0 = not there */
    int line;                     /* of the file, where the value comes from */
    char *text;                   /* owned, what was set last; NULL = nothing */
    bool is_general;
};

/* The options that every binary has; `output` is not for those with one of their own. */
enum {
    RT_OPTION_N_GENERAL = 5
};
extern const struct rt_option rt_option_general[RT_OPTION_N_GENERAL];

/* NULL when there is none of this name, or in this section (NULL = any). */
struct rt_option_entry *rt_option_find(const struct rt_options *options, const char *section,
                                       const char *name);

/* Value of a variable, "" when it is not set. */
const char *rt_option_look_up(char *const *environment, const char *variable);

/* Checks `text` and writes the field. The message is only about the value: the caller knows where
 * it came from. */
RT_MUST_USE enum rt_code rt_option_value_set(struct rt_option_entry *entry, const char *text,
                                             struct rt_error *err);

/* Only checks. */
RT_MUST_USE enum rt_code rt_option_value_check(const struct rt_option *option, const char *text,
                                               struct rt_error *err);

/* As a user would type it; nothing for a string that is not set. */
void rt_option_value_format(const struct rt_option_entry *entry, struct rt_buffer *buffer);

/* Sets what the file says, wherever it is found, and options->file. `path` NULL: the default
 * places. INVALID_ARGUMENT with file and line. */
RT_MUST_USE enum rt_code rt_option_file_apply(struct rt_options *options,
                                              const struct rt_option_setup *setup, const char *path,
                                              struct rt_error *err);

void rt_option_help_format(const struct rt_option_command *command, struct rt_buffer *buffer);

/* Name, version, and with what it was built. */
void rt_option_show_version(const struct rt_option_setup *setup, bool is_json,
                            struct rt_buffer *buffer);

/* Every value and its origin. As text it is a file that --config accepts, the origins in comments;
 * a value that no line of a file can hold is in a comment too. */
void rt_option_show_config(const struct rt_option_setup *setup, const struct rt_options *options,
                           bool is_json, struct rt_buffer *buffer);

#endif
