/*
 * Option table: see option.h. Invariant: a layer only overwrites values of the layers below it, so
 * the origin of an entry is the layer that set its value. The main thread, before others start.
 */
#include "runtime/base/option.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/option_describe.h"
#include "runtime/base/option_internal.h"

enum {
    FIRST_LONG = 256, /* getopt_long: values of long options, above any letter */
};

/* Config of the options that every binary has. */
struct general {
    const char *config;
    int output;
    bool help;
    bool print_config;
    bool version;
};

static const char *const output_names[] = {"text", "json", NULL};

const struct rt_option rt_option_general[RT_OPTION_N_GENERAL] = {
    {.name = "config",
     .type = RT_OPTION_STRING,
     .group = "General",
     .help = "Read options from this file instead of the first there is of "
             "$XDG_CONFIG_HOME/redistinto/redistinto.ini and " RT_OPTION_SYSTEM_FILE
             "; /dev/null: from none.",
     .argument = "FILE",
     .offset = offsetof(struct general, config)},
    {.name = "help",
     .letter = 'h',
     .type = RT_OPTION_FLAG,
     .group = "General",
     .help = "Show this text and exit.",
     .offset = offsetof(struct general, help)},
    {.name = "print-config",
     .type = RT_OPTION_FLAG,
     .group = "General",
     .help = "Show every value and where it comes from, as a configuration file, and exit.",
     .offset = offsetof(struct general, print_config)},
    {.name = "version",
     .letter = 'V',
     .type = RT_OPTION_FLAG,
     .group = "General",
     .help = "Show the version and exit.",
     .offset = offsetof(struct general, version)},
    {.name = "output",
     .letter = 'o',
     .type = RT_OPTION_ENUM,
     .names = output_names,
     .initial = "text",
     .group = "General",
     .help = "Form of the version and of the configuration shown.",
     .offset = offsetof(struct general, output)},
};

/* What one call works with. The entries of general options point into it and are not used later. */
struct parse {
    const struct rt_option_setup *setup;
    struct rt_options *options;
    struct general general;
    const char **arguments; /* owned array: an entry's text on the command line, borrowed */
};

struct rt_option_entry *rt_option_find(const struct rt_options *options, const char *section,
                                       const char *name)
{
    for (size_t i = 0; i < options->n_entries; i++) {
        struct rt_option_entry *entry = &options->entries[i];

        if (strcmp(entry->option->name, name) == 0 &&
            (!section || strcmp(entry->section, section) == 0))
            return entry;
    }
    return NULL;
}

static void add(struct rt_options *options, const struct rt_option *option, const char *section,
                void *config)
{
    rt_assert(!rt_option_find(options, NULL, option->name));
    for (size_t i = 0; option->letter && i < options->n_entries; i++)
        rt_assert(options->entries[i].option->letter != option->letter);
    options->entries[options->n_entries++] = (struct rt_option_entry){
        .option = option, .section = section, .field = (char *)config + option->offset};
}

static void add_general(struct parse *parse)
{
    struct rt_options *options = parse->options;

    for (size_t i = 0; i < RT_OPTION_N_GENERAL; i++) {
        const struct rt_option *option = &rt_option_general[i];

        if (strcmp(option->name, "output") == 0 && rt_option_find(options, NULL, option->name))
            continue;
        add(options, option, "", &parse->general);
        options->entries[options->n_entries - 1].is_general = true;
    }
}

static size_t size_of_field(enum rt_option_type type)
{
    switch (type) {
    case RT_OPTION_STRING:
    case RT_OPTION_ADDRESS:
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
    const struct rt_option_command *command = parse->setup->command;
    size_t n = RT_OPTION_N_GENERAL;

    for (size_t i = 0; i < command->n_tables; i++)
        n += command->tables[i].n_options;
    parse->options = rt_xalloc(sizeof(*parse->options));
    parse->options->entries = rt_xalloc(n * sizeof(struct rt_option_entry));
    parse->options->positional = rt_xalloc(((size_t)argc + 1) * sizeof(const char *));
    parse->arguments = rt_xalloc(n * sizeof(const char *));
    for (size_t i = 0; i < command->n_tables; i++) {
        const struct rt_option_table *table = &command->tables[i];

        for (size_t k = 0; k < table->n_options; k++)
            add(parse->options, &table->options[k],
                table->section ? table->section : command->section, parse->setup->configs[i]);
    }
    add_general(parse);
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
    /* A byte past ASCII is negative. */
    if (optopt != 0 && optopt < FIRST_LONG)
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

static enum rt_code apply_arguments(struct parse *parse, bool is_general, struct rt_error *err)
{
    for (size_t i = 0; i < parse->options->n_entries; i++) {
        struct rt_option_entry *entry = &parse->options->entries[i];
        enum rt_code code;

        if (!parse->arguments[i] || entry->is_general != is_general)
            continue;
        code = set_from(entry, parse->arguments[i], RT_OPTION_FROM_FLAG, err);
        if (code != RT_OK)
            return err ? rt_wrap(err, "option '--%s'", entry->option->name) : code;
    }
    return RT_OK;
}

const char *rt_option_look_up(char *const *environment, const char *variable)
{
    size_t length = strlen(variable);

    for (; environment && *environment; environment++)
        if (strncmp(*environment, variable, length) == 0 && (*environment)[length] == '=')
            return *environment + length + 1;
    return "";
}

static enum rt_code apply_variable(struct rt_option_entry *entry, char *const *environment,
                                   struct rt_error *err)
{
    struct rt_buffer variable = {0};
    const char *text;
    enum rt_code code = RT_OK;

    rt_option_format_variable(entry->option, &variable);
    text = rt_option_look_up(environment, rt_buffer_string(&variable));
    if (*text)
        code = set_from(entry, text, RT_OPTION_FROM_ENV, err);
    if (code != RT_OK && err)
        (void)rt_wrap(err, "%s", rt_buffer_string(&variable));
    rt_buffer_deinit(&variable);
    return code;
}

static enum rt_code apply_environment(struct parse *parse, bool is_general, struct rt_error *err)
{
    for (size_t i = 0; i < parse->options->n_entries; i++) {
        struct rt_option_entry *entry = &parse->options->entries[i];
        enum rt_code code;

        if (entry->is_general != is_general || !rt_option_has_variable(entry->option))
            continue;
        code = apply_variable(entry, parse->setup->environment, err);
        if (code != RT_OK)
            return code;
    }
    return RT_OK;
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
    enum rt_code code = rt_option_file_apply(parse->options, setup, parse->general.config, err);

    if (code == RT_OK)
        code = apply_environment(parse, false, err);
    if (code == RT_OK)
        code = apply_arguments(parse, false, err);
    if (code == RT_OK && !parse->general.print_config)
        code = check_required(parse->options, err);
    if (code == RT_OK && setup->adjust)
        code = setup->adjust(parse->options, setup->adjust_ctx, err);
    return code;
}

/* What --output will say, before the layers are applied; a wrong value is not looked at. */
static bool wants_json(const struct parse *parse)
{
    const struct rt_option_entry *entry = rt_option_find(parse->options, NULL, "output");
    const char *text = parse->arguments[entry - parse->options->entries];

    if (!text)
        text = rt_option_look_up(parse->setup->environment, "REDISTINTO_OUTPUT");
    return strcmp(text, "json") == 0;
}

static bool has_json(const struct parse *parse)
{
    return strcmp(rt_option_find(parse->options, NULL, "output")->text, "json") == 0;
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
    if (parse->general.help) {
        rt_option_help_format(parse->setup->command, &text);
        return print(parse, &text, err);
    }
    if (parse->general.version) {
        rt_option_show_version(parse->setup, wants_json(parse), &text);
        return print(parse, &text, err);
    }
    code = apply_layers(parse, err);
    if (code == RT_OK && parse->general.print_config) {
        rt_option_show_config(parse->setup, parse->options, has_json(parse), &text);
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
    (void)rt_free(options->file);
    return rt_free(options);
}

enum rt_option_origin rt_option_origin(const struct rt_options *options, const char *name)
{
    const struct rt_option_entry *entry = rt_option_find(options, NULL, name);

    rt_assert(entry);
    return entry->origin;
}

void rt_option_set_default(struct rt_options *options, const char *name, const char *text)
{
    struct rt_option_entry *entry = rt_option_find(options, NULL, name);

    rt_assert(entry);
    if (entry->origin != RT_OPTION_FROM_DEFAULT && entry->origin != RT_OPTION_FROM_PROFILE)
        return;
    if (set_from(entry, text, RT_OPTION_FROM_PROFILE, NULL) != RT_OK)
        rt_assert(false);
}
