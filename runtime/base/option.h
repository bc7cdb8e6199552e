/*
 * One table of options per binary: the command line, the REDISTINTO_* environment, an INI file,
 * --help, --version, --print-config, manual pages and completion all come from it. Own code:
 * getopt_long and inih each know one of these, and neither knows types, ranges, origins or help.
 *
 *   precedence   default < profile < file < environment < command line
 *   file         sections [common], [coordinator], [instance], [esi], [cli] and [cli.VERB], in them
 *                name = value; comments after ; or #, so a text cannot contain " ;". The section of
 *                the option beats [common], which takes only what several binaries have. A line has
 *                at most RT_OPTION_FILE_LINE_MAX bytes, a file RT_OPTION_FILE_LINES_MAX lines.
 *   which file   --config FILE, else REDISTINTO_CONFIG, else the first there is of
 *                $XDG_CONFIG_HOME/redistinto/redistinto.ini ($HOME/.config without the variable)
 *                and RT_OPTION_SYSTEM_FILE. Only one is read; /dev/null means none.
 *   names        --entry-size on the command line, REDISTINTO_ENTRY_SIZE in the environment (an
 *                empty one counts as unset), entry-size in the file (once a section)
 *   words        options may come before or after positional words; "--" ends them
 *   flags        --flag or --flag=false; true, yes, on, 1 and false, no, off, 0
 *   durations    500ms, 10s, 5m, 2h, 1d, or 0; kept in milliseconds
 *   sizes        4096, 512B, 64KiB, 1MiB, 2GiB, 1TiB; kept in bytes
 *   addresses    host:port, [v6]:port or unix:/path; printable ASCII without blanks
 *
 * --help and --version win over everything but a wrong command line. Values are checked in every
 * layer, also in one that is overridden; in the file, those that are for this binary. Where no
 * table has an option "output", a general one (-o) chooses the form of --version and
 * --print-config. Call from main() before threads start: getopt_long has global state.
 */
#ifndef RT_BASE_OPTION_H
#define RT_BASE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/base/compiler.h"
#include "runtime/base/error.h"

#define RT_OPTION_SYSTEM_FILE "/etc/redistinto/redistinto.ini"

enum {
    RT_OPTION_FILE_LINE_MAX = 198, /* bytes, the end of the line aside: what inih takes */
    RT_OPTION_FILE_LINES_MAX = 10000,
    RT_OPTION_ADDRESS_MAX = 255, /* bytes */
};

/* With the type of the field in the config structure. */
enum rt_option_type {
    RT_OPTION_STRING,   /* const char *: NULL without default; valid until rt_option_free() */
    RT_OPTION_ADDRESS,  /* as STRING; min and max are those of the port */
    RT_OPTION_ENUM,     /* int or an enum: index in `names` */
    RT_OPTION_FLAG,     /* bool */
    RT_OPTION_U64,      /* uint64_t */
    RT_OPTION_DURATION, /* uint64_t, milliseconds */
    RT_OPTION_SIZE,     /* uint64_t, bytes */
};

enum rt_option_origin {
    RT_OPTION_FROM_DEFAULT,
    RT_OPTION_FROM_PROFILE, /* rt_option_set_default() */
    RT_OPTION_FROM_FILE,
    RT_OPTION_FROM_ENV,
    RT_OPTION_FROM_FLAG,
};

struct rt_option {
    const char *name;     /* "entry-size" */
    const char *group;    /* heading in the help; NULL = "Options" */
    const char *help;     /* one sentence; wrapped as needed */
    const char *argument; /* word for the value in the help; NULL = by type; completion knows FILE
                           * and DIR */
    const char *initial;  /* the default as a user would type it; NULL = none, 0, false, first */
    const char *const *names; /* ENUM only, NULL-terminated */
    uint64_t min;             /* U64, DURATION, SIZE, in the unit of the field; ADDRESS: the port */
    uint64_t max;             /* 0 = no limit */
    size_t offset;            /* offsetof(struct config, field) */
    enum rt_option_type type;
    char letter;      /* short form, 0 = none; h and V are taken */
    bool is_required; /* some layer must give it; then it has no default */
};

struct rt_option_table {
    const struct rt_option *options;
    size_t n_options;
    const char *section; /* of the file; NULL = the command's */
};

/* What a command takes. Its tables have different names and letters; anything else is a programmer
 * error. */
struct rt_option_command {
    const char *name;        /* as it is called: "redistinto dev" */
    const char *section;     /* of the file: "cli" */
    const char *usage;       /* positional words for the help, "" when there are none; completion
                              * knows FILE, SCRIPT, DIR, and words in lower case: a|b */
    const char *summary;     /* one line, without full stop */
    const char *description; /* a paragraph for the help */
    const char *const
        *examples; /* command lines, "# why" may follow; NULL-terminated; NULL: none */
    const struct rt_option_table *tables;
    size_t n_tables;
};

struct rt_option_entry;

struct rt_options {
    const char **positional; /* owned array, borrowed words of argv; NULL-terminated */
    size_t n_positional;
    struct rt_option_entry *entries; /* owned */
    size_t n_entries;
    char *file; /* owned; the configuration file that was read, NULL = none */
};

struct rt_option_setup {
    const struct rt_option_command *command;
    void *const *configs; /* for each table the structure that `offset` counts from */
    const char *version;
    const char *const *sections; /* [cli.VERB] that there are, NULL-terminated; NULL = any */
    char *const *environment;    /* environ; NULL = no variables, and no file unless --config */
    /* Called with all layers applied, before --print-config: sets what a profile implies and checks
     * what options mean together. Then required options may be missing. May be NULL. */
    enum rt_code (*adjust)(struct rt_options *options, void *ctx, struct rt_error *err);
    void *adjust_ctx;
    FILE *out; /* for help, version and configuration; NULL = stdout */
};

enum rt_option_action {
    RT_OPTION_RUN,
    RT_OPTION_EXIT_OK, /* something was printed; *ret_options is NULL */
};

/* Fills the config structures. INVALID_ARGUMENT: what the user gave is wrong, and the message says
 * what, where (option, variable, or file and line), and what would be right; exit with 2. What was
 * to be printed and could not be gives what the system said. On failure the config structures are
 * undefined. */
RT_MUST_USE enum rt_code rt_option_parse(const struct rt_option_setup *setup, int argc, char **argv,
                                         enum rt_option_action *ret_action,
                                         struct rt_options **ret_options, struct rt_error *err);

/* Strings in the config structures go with it. NULL is fine; returns NULL. */
struct rt_options *rt_option_free(struct rt_options *options);

/* Of an option that exists. */
enum rt_option_origin rt_option_origin(const struct rt_options *options, const char *name);

/* Changes a value that no user has given, as if the default were another. `name` must exist and
 * `text` must be valid. */
void rt_option_set_default(struct rt_options *options, const char *name, const char *text);

#endif
