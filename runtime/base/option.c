/*
 * Option table: see option.h. Invariant: a layer only overwrites values of the layers below it, so
 * the origin of an entry is the layer that set its value. The main thread, before others start.
 */
#include "runtime/base/option.h"

#include <errno.h>
#include <getopt.h>
#include <ini.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/option_internal.h"

enum {
    FIRST_LONG = 256, /* getopt_long: values of long options, above any letter */
    VARIABLE_MAX = 128,
};

/* Config of the options that every binary has. */
struct builtin {
    const char *config;
    bool help;
    bool print_config;
    bool version;
};

static const struct rt_option builtin_options[] = {
    {.name = "config",
     .type = RT_OPTION_STRING,
     .group = "General",
     .help = "Read options from this file.",
     .argument = "FILE",
     .offset = offsetof(struct builtin, config)},
    {.name = "help",
     .letter = 'h',
     .type = RT_OPTION_FLAG,
     .group = "General",
     .help = "Show this text and exit.",
     .offset = offsetof(struct builtin, help)},
    {.name = "print-config",
     .type = RT_OPTION_FLAG,
     .group = "General",
     .help = "Show every value and where it comes from, as a configuration file, and exit.",
     .offset = offsetof(struct builtin, print_config)},
    {.name = "version",
     .letter = 'V',
     .type = RT_OPTION_FLAG,
     .group = "General",
     .help = "Show the version and exit.",
     .offset = offsetof(struct builtin, version)},
};

/* What one call works with. The entries of builtin options point into it and are not used later. */
struct parse {
    const struct rt_option_setup *setup;
    struct rt_options *options;
    struct builtin builtin;
    const char **arguments; /* owned array: an entry's text on the command line, borrowed */
};

static struct rt_option_entry *find(const struct rt_options *options, const char *name)
{
    for (size_t i = 0; i < options->n_entries; i++)
        if (strcmp(options->entries[i].option->name, name) == 0)
            return &options->entries[i];
    return NULL;
}

static void add_table(struct rt_options *options, const struct rt_option_table *table,
                      bool is_builtin)
{
    for (size_t i = 0; i < table->n_options; i++) {
        const struct rt_option *option = &table->options[i];
        struct rt_option_entry *entry = &options->entries[options->n_entries];

        rt_assert(!find(options, option->name));
        for (size_t k = 0; option->letter && k < options->n_entries; k++)
            rt_assert(options->entries[k].option->letter != option->letter);
        *entry = (struct rt_option_entry){.option = option,
                                          .field = (char *)table->config + option->offset,
                                          .is_builtin = is_builtin};
        options->n_entries++;
    }
}

static size_t size_of_field(enum rt_option_type type)
{
    switch (type) {
    case RT_OPTION_STRING:
        return sizeof(const char *);
    case RT_OPTION_ENUM:
        return sizeof(int);
    case RT_OPTION_FLAG:
        return sizeof(bool);
    case RT_OPTION_U64:
    case RT_OPTION_DURATION:
    case RT_OPTION_SIZE:
        return sizeof(uint64_t);
    }
    return 0;
}

static void set_defaults(struct rt_options *options)
{
    for (size_t i = 0; i < options->n_entries; i++) {
        struct rt_option_entry *entry = &options->entries[i];

        memset(entry->field, 0, size_of_field(entry->option->type));
        if (entry->option->initial &&
            rt_option_value_set(entry, entry->option->initial, NULL) != RT_OK)
            rt_assert(false);
    }
}

static void start(struct parse *parse, int argc)
{
    const struct rt_option_setup *setup = parse->setup;
    struct rt_option_table builtin = {builtin_options, RT_ARRAY_SIZE(builtin_options),
                                      &parse->builtin};
    size_t n = builtin.n_options;

    for (size_t i = 0; i < setup->n_tables; i++)
        n += setup->tables[i].n_options;
    parse->options = rt_xalloc(sizeof(*parse->options));
    parse->options->entries = rt_xalloc(n * sizeof(struct rt_option_entry));
    parse->options->positional = rt_xalloc(((size_t)argc + 1) * sizeof(const char *));
    parse->arguments = rt_xalloc(n * sizeof(const char *));
    for (size_t i = 0; i < setup->n_tables; i++)
        add_table(parse->options, &setup->tables[i], false);
    add_table(parse->options, &builtin, true);
    set_defaults(parse->options);
}

static bool is_flag(const struct rt_option_entry *entry)
{
    return entry->option->type == RT_OPTION_FLAG;
}

static struct option *make_long_options(const struct rt_options *options)
{
    struct option *list = rt_xalloc((options->n_entries + 1) * sizeof(*list));

    for (size_t i = 0; i < options->n_entries; i++)
        list[i] = (struct option){.name = options->entries[i].option->name,
                                  .has_arg = is_flag(&options->entries[i]) ? optional_argument
                                                                           : required_argument,
                                  .val = FIRST_LONG + (int)i};
    return list;
}

/* "-" gives positional words in place, whatever POSIXLY_CORRECT says; ":" tells a missing value
 * from an unknown option. */
static void format_letters(const struct rt_options *options, struct rt_buffer *letters)
{
    rt_buffer_append_string(letters, "-:");
    for (size_t i = 0; i < options->n_entries; i++) {
        const struct rt_option_entry *entry = &options->entries[i];

        if (entry->option->letter)
            rt_buffer_printf(letters, "%c%s", entry->option->letter, is_flag(entry) ? "" : ":");
    }
}

static size_t index_of_letter(const struct rt_options *options, int letter)
{
    size_t i = 0;

    while (options->entries[i].option->letter != letter)
        i++;
    return i;
}

static enum rt_code fail_unknown(char **argv, struct rt_error *err)
{
    if (optopt > 0 && optopt < FIRST_LONG)
        return rt_fail(err, RT_INVALID_ARGUMENT, "unknown option '-%c' (see --help)", optopt);
    return rt_fail(err, RT_INVALID_ARGUMENT, "unknown or ambiguous option '%s' (see --help)",
                   argv[optind - 1]);
}

static enum rt_code fail_missing(const struct parse *parse, struct rt_error *err)
{
    size_t index = optopt >= FIRST_LONG ? (size_t)(optopt - FIRST_LONG)
                                        : index_of_letter(parse->options, optopt);

    return rt_fail(err, RT_INVALID_ARGUMENT, "option '--%s' needs a value",
                   parse->options->entries[index].option->name);
}

static void add_positional(struct rt_options *options, const char *word)
{
    options->positional[options->n_positional++] = word;
}

/* Only collects: what --config names has to be read first. */
static enum rt_code read_arguments(struct parse *parse, int argc, char **argv, const char *letters,
                                   const struct option *long_options, struct rt_error *err)
{
    int found;

    optind = 0;
    opterr = 0;
    while ((found = getopt_long(argc, argv, letters, long_options, NULL)) != -1) {
        size_t index;

        if (found == '?')
            return fail_unknown(argv, err);
        if (found == ':')
            return fail_missing(parse, err);
        if (found == 1) {
            add_positional(parse->options, optarg);
            continue;
        }
        index = found >= FIRST_LONG ? (size_t)(found - FIRST_LONG)
                                    : index_of_letter(parse->options, found);
        parse->arguments[index] = optarg ? optarg : "true";
    }
    for (; optind < argc; optind++)
        add_positional(parse->options, argv[optind]);
    return RT_OK;
}

static enum rt_code collect_arguments(struct parse *parse, int argc, char **argv,
                                      struct rt_error *err)
{
    RT_CLEANUP(rt_freep) struct option *long_options = make_long_options(parse->options);
    struct rt_buffer letters = {0};
    enum rt_code code;

    format_letters(parse->options, &letters);
    code = read_arguments(parse, argc, argv, rt_buffer_string(&letters), long_options, err);
    rt_buffer_deinit(&letters);
    return code;
}

static enum rt_code set_from(struct rt_option_entry *entry, const char *text,
                             enum rt_option_origin origin, struct rt_error *err)
{
    enum rt_code code = rt_option_value_set(entry, text, err);

    if (code == RT_OK)
        entry->origin = origin;
    return code;
}

static enum rt_code apply_arguments(struct parse *parse, bool builtin_only, struct rt_error *err)
{
    for (size_t i = 0; i < parse->options->n_entries; i++) {
        struct rt_option_entry *entry = &parse->options->entries[i];
        enum rt_code code;

        if (!parse->arguments[i] || entry->is_builtin != builtin_only)
            continue;
        code = set_from(entry, parse->arguments[i], RT_OPTION_FROM_FLAG, err);
        if (code != RT_OK)
            return err ? rt_wrap(err, "option '--%s'", entry->option->name) : code;
    }
    return RT_OK;
}

/* REDISTINTO_ENTRY_SIZE for entry-size. */
static void format_variable(const char *name, char *ret_variable)
{
    int length = snprintf(ret_variable, VARIABLE_MAX, "REDISTINTO_%s", name);

    rt_assert(length > 0 && length < VARIABLE_MAX);
    for (char *c = ret_variable; *c; c++) {
        if (*c == '-')
            *c = '_';
        else if (*c >= 'a' && *c <= 'z')
            *c ^= 'a' ^ 'A';
    }
}

static const char *look_up(char *const *environment, const char *variable)
{
    size_t length = strlen(variable);

    for (; environment && *environment; environment++)
        if (strncmp(*environment, variable, length) == 0 && (*environment)[length] == '=')
            return *environment + length + 1;
    return "";
}

/* Of the options that every binary has only --config has a variable. */
static enum rt_code apply_environment(struct parse *parse, bool builtin_only, struct rt_error *err)
{
    for (size_t i = 0; i < parse->options->n_entries; i++) {
        struct rt_option_entry *entry = &parse->options->entries[i];
        char variable[VARIABLE_MAX];
        const char *text;
        enum rt_code code;

        if (entry->is_builtin != builtin_only || (builtin_only && is_flag(entry)))
            continue;
        format_variable(entry->option->name, variable);
        text = look_up(parse->setup->environment, variable);
        if (!*text)
            continue;
        code = set_from(entry, text, RT_OPTION_FROM_ENV, err);
        if (code != RT_OK)
            return err ? rt_wrap(err, "%s", variable) : code;
    }
    return RT_OK;
}

/* State of one file; the first failure wins, later lines are read and ignored. */
struct file {
    struct parse *parse;
    FILE *stream;
    int line;
    enum rt_code code;
    struct rt_error *err;
};

/* As fgets; counts lines for messages. */
static char *read_line(char *text, int size, void *stream)
{
    struct file *file = stream;

    if (file->code != RT_OK || !fgets(text, size, file->stream))
        return NULL;
    file->line++;
    if (!strchr(text, '\n') && !feof(file->stream)) {
        file->code =
            rt_fail(file->err, RT_INVALID_ARGUMENT, "the line is longer than %d bytes", size - 2);
        return NULL;
    }
    return text;
}

static enum rt_code set_from_file(const struct file *file, const char *section, const char *name,
                                  const char *text)
{
    struct rt_option_entry *entry = find(file->parse->options, name);
    enum rt_code code;

    if (*section)
        return rt_fail(file->err, RT_INVALID_ARGUMENT, "there are no sections like [%s]", section);
    if (!entry || entry->is_builtin)
        return rt_fail(file->err, RT_INVALID_ARGUMENT, "unknown option '%s'", name);
    if (entry->origin == RT_OPTION_FROM_FILE)
        return rt_fail(file->err, RT_INVALID_ARGUMENT, "option '%s' is set twice", name);
    code = set_from(entry, text, RT_OPTION_FROM_FILE, file->err);
    if (code != RT_OK && file->err)
        (void)rt_wrap(file->err, "option '%s'", name);
    return code;
}

static int on_setting(void *ctx, const char *section, const char *name, const char *text)
{
    struct file *file = ctx;

    if (file->code == RT_OK)
        file->code = set_from_file(file, section, name, text);
    return file->code == RT_OK;
}

static enum rt_code apply_file(struct parse *parse, const char *path, struct rt_error *err)
{
    struct file file = {.parse = parse, .err = err, .stream = fopen(path, "re")};
    int bad_line;

    if (!file.stream)
        return rt_fail_errno(err, errno, "opening configuration file '%s'", path);
    bad_line = ini_parse_stream(read_line, &file, on_setting, &file);
    if (file.code == RT_OK && ferror(file.stream))
        file.code = rt_fail(err, RT_UNAVAILABLE, "cannot be read");
    if (file.code == RT_OK && bad_line != 0) {
        file.line = bad_line;
        file.code = rt_fail(err, RT_INVALID_ARGUMENT, "not of the form 'name = value'");
    }
    (void)fclose(file.stream);
    if (file.code != RT_OK && err)
        (void)rt_wrap(err, "%s:%d", path, file.line);
    return file.code;
}

static enum rt_code check_required(const struct rt_options *options, struct rt_error *err)
{
    for (size_t i = 0; i < options->n_entries; i++)
        if (options->entries[i].option->is_required && !options->entries[i].text)
            return rt_fail(err, RT_INVALID_ARGUMENT, "option '--%s' is required",
                           options->entries[i].option->name);
    return RT_OK;
}

static enum rt_code apply_layers(struct parse *parse, struct rt_error *err)
{
    const struct rt_option_setup *setup = parse->setup;
    enum rt_code code = RT_OK;

    if (parse->builtin.config)
        code = apply_file(parse, parse->builtin.config, err);
    if (code == RT_OK)
        code = apply_environment(parse, false, err);
    if (code == RT_OK)
        code = apply_arguments(parse, false, err);
    if (code == RT_OK)
        code = check_required(parse->options, err);
    if (code == RT_OK && setup->adjust)
        code = setup->adjust(parse->options, setup->adjust_ctx, err);
    return code;
}

static enum rt_code print(const struct parse *parse, struct rt_buffer *text, struct rt_error *err)
{
    FILE *out = parse->setup->out ? parse->setup->out : stdout;
    enum rt_code code = rt_buffer_check(text, err);

    if (code == RT_OK && (fwrite(text->data, 1, text->size, out) != text->size || fflush(out) != 0))
        code = rt_fail_errno(err, errno, "writing the text asked for");
    rt_buffer_deinit(text);
    return code;
}

static enum rt_code run(struct parse *parse, int argc, char **argv,
                        enum rt_option_action *ret_action, struct rt_error *err)
{
    struct rt_buffer text = {0};
    enum rt_code code = collect_arguments(parse, argc, argv, err);

    if (code == RT_OK)
        code = apply_environment(parse, true, err);
    if (code == RT_OK)
        code = apply_arguments(parse, true, err);
    if (code != RT_OK)
        return code;

    *ret_action = RT_OPTION_EXIT_OK;
    if (parse->builtin.help) {
        rt_option_help_format(parse->setup, parse->options, &text);
        return print(parse, &text, err);
    }
    if (parse->builtin.version) {
        rt_buffer_printf(&text, "%s %s\n", parse->setup->program, parse->setup->version);
        return print(parse, &text, err);
    }
    code = apply_layers(parse, err);
    if (code == RT_OK && parse->builtin.print_config) {
        rt_option_help_format_config(parse->options, &text);
        return print(parse, &text, err);
    }
    *ret_action = RT_OPTION_RUN;
    return code;
}

enum rt_code rt_option_parse(const struct rt_option_setup *setup, int argc, char **argv,
                             enum rt_option_action *ret_action, struct rt_options **ret_options,
                             struct rt_error *err)
{
    struct parse parse = {.setup = setup};
    enum rt_option_action action = RT_OPTION_RUN;
    enum rt_code code;

    start(&parse, argc);
    code = run(&parse, argc, argv, &action, err);
    (void)rt_free(parse.arguments);
    if (code != RT_OK || action == RT_OPTION_EXIT_OK)
        parse.options = rt_option_free(parse.options);
    if (code != RT_OK)
        return code;
    *ret_action = action;
    *ret_options = parse.options;
    return RT_OK;
}

struct rt_options *rt_option_free(struct rt_options *options)
{
    if (!options)
        return NULL;
    for (size_t i = 0; i < options->n_entries; i++)
        (void)rt_free(options->entries[i].text);
    (void)rt_free(options->entries);
    (void)rt_free((void *)options->positional);
    return rt_free(options);
}

enum rt_option_origin rt_option_origin(const struct rt_options *options, const char *name)
{
    const struct rt_option_entry *entry = find(options, name);

    rt_assert(entry);
    return entry->origin;
}

void rt_option_set_default(struct rt_options *options, const char *name, const char *text)
{
    struct rt_option_entry *entry = find(options, name);

    rt_assert(entry);
    if (entry->origin != RT_OPTION_FROM_DEFAULT && entry->origin != RT_OPTION_FROM_PROFILE)
        return;
    if (set_from(entry, text, RT_OPTION_FROM_PROFILE, NULL) != RT_OK)
        rt_assert(false);
}
