/*
 * Verbs: see verb.h. The common options may stand on either side of the verb, its own ones behind
 * it; so the verb is the first word that is neither an option nor an option's value, and is taken
 * out before everything is parsed as one. Main thread, before others start.
 */
#include "cli/verb.h"

#include <getopt.h>
#include <string.h>

#include "cli/admin.h"
#include "cli/bench.h"
#include "cli/completion.h"
#include "cli/data.h"
#include "cli/dev.h"
#include "cli/esi.h"
#include "cli/query.h"
#include "cli/report.h"
#include "cli/session_verb.h"
#include "cli/shell.h"
#include "runtime/base/alloc.h"
#include "runtime/base/option_describe.h"

#define SECTION "cli" /* of the configuration file */

static const char *const output_names[] = {"text", "json", NULL};

static const struct rt_option common_options[] = {
    {.name = "coordinator",
     .type = RT_OPTION_ADDRESS,
     .min = 1,
     .group = "Common",
     .help = "Where the coordinator is.",
     .argument = "ADDRESS",
     .initial = "127.0.0.1:7400",
     .offset = offsetof(struct cli_common, coordinator)},
    {.name = "output",
     .letter = 'o',
     .type = RT_OPTION_ENUM,
     .group = "Common",
     .help = "Form of results and errors.",
     .names = output_names,
     .initial = "text",
     .offset = offsetof(struct cli_common, output)},
    {.name = "timeout",
     .type = RT_OPTION_DURATION,
     .group = "Common",
     .help = "Give up after this long.",
     .initial = "5s",
     .min = 1,
     .max = 3600000,
     .offset = offsetof(struct cli_common, timeout_ms)},
};

static const char *const common_examples[] = {
    "redistinto dev                          # a cluster on this machine",
    "redistinto put orders/17 paid           # a durable value",
    "redistinto read orders/17 -o json",
    "redistinto --coordinator 10.0.0.1:7400 keys --prefix orders/",
    NULL,
};

static const struct rt_option_table common_table = {common_options, RT_ARRAY_SIZE(common_options),
                                                    NULL};

const struct rt_option_command cli_verb_common = {
    .name = "redistinto",
    .section = SECTION,
    .usage = "VERB [ARGUMENT...]",
    .summary = "look at, change and start clusters",
    .description = "The command for people of Redistinto, a sharded key-value store with explicit "
                   "placement.",
    .examples = common_examples,
    .tables = &common_table,
    .n_tables = 1,
};

const struct cli_verb *const cli_verbs[] = {
    &cli_dev_verb,       &cli_get_verb,     &cli_set_verb,          &cli_store_verb,
    &cli_put_verb,       &cli_read_verb,    &cli_del_verb,          &cli_session_verb,
    &cli_shell_verb,     &cli_esi_verb,     &cli_status_verb,       &cli_keys_verb,
    &cli_instances_verb, &cli_entries_verb, &cli_distribution_verb, &cli_unlock_verb,
    &cli_health_verb,    &cli_bench_verb,   &cli_completion_verb,
};
const size_t cli_n_verbs = RT_ARRAY_SIZE(cli_verbs);

const struct cli_verb *cli_verb_find(const char *name)
{
    for (size_t i = 0; i < cli_n_verbs; i++)
        if (strcmp(cli_verbs[i]->name, name) == 0)
            return cli_verbs[i];
    return NULL;
}

void cli_verb_describe(const struct cli_verb *verb, struct cli_verb_command *ret_command)
{
    (void)snprintf(ret_command->name, sizeof(ret_command->name), "redistinto %s", verb->name);
    (void)snprintf(ret_command->section, sizeof(ret_command->section), "%s.%s", SECTION,
                   verb->name);
    ret_command->tables[0] =
        (struct rt_option_table){verb->options, verb->n_options, ret_command->section};
    ret_command->tables[1] = common_table;
    ret_command->command = (struct rt_option_command){
        .name = ret_command->name,
        .section = SECTION,
        .usage = verb->arguments,
        .summary = verb->summary,
        .description = verb->description,
        .examples = verb->examples,
        .tables = ret_command->tables,
        .n_tables = RT_ARRAY_SIZE(ret_command->tables),
    };
}

static void append_list(struct rt_buffer *buffer)
{
    rt_buffer_append_string(buffer, "\nVerbs:\n");
    for (size_t i = 0; i < cli_n_verbs; i++)
        rt_buffer_printf(buffer, "  %-13s %s\n", cli_verbs[i]->name, cli_verbs[i]->summary);
    rt_buffer_append_string(buffer, "\n`redistinto VERB --help` tells more.\n");
}

static enum model_exit print_list(struct cli_context *context, FILE *stream)
{
    struct rt_buffer buffer = {0};
    enum model_exit result = MODEL_EXIT_OK;

    append_list(&buffer);
    if (stream == context->out)
        result = cli_report_result(context, &buffer);
    else
        (void)fwrite(buffer.data, 1, buffer.size, stream);
    rt_buffer_deinit(&buffer);
    return result;
}

/* ---- looking for the verb -------------------------------------------------------------------- */

/* The last one on the command line; NULL without any. */
static const char *find_output(char **argv)
{
    static const char option[] = "--output=";
    const char *found = NULL;

    for (; *argv != NULL && strcmp(*argv, "--") != 0; argv++) {
        const char *word = *argv;

        if ((strcmp(word, "-o") == 0 || strcmp(word, "--output") == 0) && argv[1] != NULL)
            found = argv[1];
        else if (strncmp(word, option, sizeof(option) - 1) == 0)
            found = word + sizeof(option) - 1;
        else if (strncmp(word, "-o", 2) == 0)
            found = word + 2;
    }
    return found;
}

/* For the form of what is wrong with the options, hence before they are understood. */
static bool asks_for_json(char **argv, char *const *environment)
{
    const char *output = find_output(argv);

    if (output != NULL)
        return strcmp(output, "json") == 0;
    for (; environment != NULL && *environment != NULL; environment++)
        if (strcmp(*environment, "REDISTINTO_OUTPUT=json") == 0)
            return true;
    return false;
}

static enum model_exit refuse(struct cli_context *context, char **argv, const struct rt_error *err)
{
    bool is_json = asks_for_json(argv, context->environment);

    context->common.output = is_json ? CLI_OUTPUT_JSON : CLI_OUTPUT_TEXT;
    return cli_report_usage(context, err);
}

struct found {
    int index; /* of the first word that is no option and no common option's value, else argc */
    bool wants_help; /* before it */
};

/* What may stand before the verb, for getopt_long(), which stops at the first other word ("+"). */
static void list_options(struct option ret_list[RT_OPTION_COMMAND_OPTIONS_MAX + 1],
                         struct rt_buffer *letters)
{
    const struct rt_option *list[RT_OPTION_COMMAND_OPTIONS_MAX];
    size_t n_list = rt_option_command_list(&cli_verb_common, list);

    rt_buffer_append_byte(letters, '+');
    for (size_t i = 0; i < n_list; i++) {
        bool is_flag = list[i]->type == RT_OPTION_FLAG;

        if (list[i]->letter)
            rt_buffer_printf(letters, "%c%s", list[i]->letter, is_flag ? "" : ":");
        ret_list[i] = (struct option){
            .name = list[i]->name,
            .has_arg = is_flag ? optional_argument : required_argument,
            .val = list[i]->letter,
        };
    }
    ret_list[n_list] = (struct option){0};
}

/* Unknown options are left to whoever parses them all. */
static struct found find_verb(int argc, char **argv)
{
    struct option list[RT_OPTION_COMMAND_OPTIONS_MAX + 1];
    struct rt_buffer letters = {0};
    struct found found = {0};
    int letter;

    list_options(list, &letters);
    optind = 0;
    opterr = 0;
    while ((letter = getopt_long(argc, argv, rt_buffer_string(&letters), list, NULL)) != -1)
        found.wants_help |= letter == 'h';
    found.index = optind;
    rt_buffer_deinit(&letters);
    return found;
}

/* ---- running it ------------------------------------------------------------------------------ */

static enum rt_code check_arguments(const struct cli_verb *verb, const struct rt_options *options,
                                    struct rt_error *err)
{
    size_t n_most = verb->n_arguments + verb->n_optional;

    if (options->n_positional < verb->n_arguments)
        return rt_fail(err, RT_INVALID_ARGUMENT, "%s is missing (see --help)", verb->arguments);
    if (options->n_positional > n_most)
        return rt_fail(err, RT_INVALID_ARGUMENT, "unexpected argument '%s' (see --help)",
                       options->positional[n_most]);
    return RT_OK;
}

/* "cli.dev" for each verb, NULL-terminated. */
static char **make_sections(void)
{
    char **sections = rt_xalloc((cli_n_verbs + 1) * sizeof(*sections));

    for (size_t i = 0; i < cli_n_verbs; i++)
        sections[i] = rt_xasprintf("%s.%s", SECTION, cli_verbs[i]->name);
    return sections;
}

static void free_sections(char **sections)
{
    for (size_t i = 0; sections[i] != NULL; i++)
        (void)rt_free(sections[i]);
    (void)rt_free(sections);
}

/* Reading of one command line. */
struct reading {
    const struct rt_option_command *command;
    void *const *configs;
    enum rt_option_action action;
    struct rt_options *options; /* owned */
    struct rt_error err;
};

static enum rt_code read_options(struct cli_context *context, struct reading *reading, int argc,
                                 char **argv)
{
    char **sections = make_sections();
    struct rt_option_setup setup = {
        .command = reading->command,
        .configs = reading->configs,
        .version = context->version,
        .sections = (const char *const *)sections,
        .environment = context->environment,
        .out = context->out,
    };
    enum rt_code code =
        rt_option_parse(&setup, argc, argv, &reading->action, &reading->options, &reading->err);

    free_sections(sections);
    return code;
}

static enum model_exit run_verb(struct cli_context *context, const struct cli_verb *verb, int argc,
                                char **argv)
{
    RT_CLEANUP(rt_freep) void *config = rt_xalloc(verb->config_size);
    void *const configs[] = {config, &context->common};
    struct cli_verb_command description;
    struct reading reading = {.command = &description.command, .configs = configs};
    enum model_exit result = MODEL_EXIT_OK;

    context->verb = verb->name;
    cli_verb_describe(verb, &description);
    if (read_options(context, &reading, argc, argv) != RT_OK)
        return refuse(context, argv, &reading.err);
    if (reading.action == RT_OPTION_RUN) {
        if (check_arguments(verb, reading.options, &reading.err) != RT_OK)
            result = cli_report_usage(context, &reading.err);
        else
            result = verb->run(context, reading.options->positional, config);
    }
    (void)rt_option_free(reading.options);
    return result;
}

/* Options only: what is left to do is to say something about the command itself. */
static enum model_exit run_without_verb(struct cli_context *context, int argc, char **argv)
{
    void *const configs[] = {&context->common};
    struct reading reading = {.command = &cli_verb_common, .configs = configs};

    if (read_options(context, &reading, argc, argv) != RT_OK)
        return refuse(context, argv, &reading.err);
    (void)rt_option_free(reading.options);
    if (reading.action == RT_OPTION_EXIT_OK)
        return MODEL_EXIT_OK;
    (void)rt_fail(&reading.err, RT_INVALID_ARGUMENT, "a verb is missing (see --help)");
    return refuse(context, argv, &reading.err);
}

static enum model_exit print_help(struct cli_context *context)
{
    char program[] = "redistinto";
    char option[] = "--help";
    char *words[] = {program, option, NULL};
    enum model_exit result = run_without_verb(context, 2, words);

    if (result == MODEL_EXIT_OK)
        result = print_list(context, context->out);
    return result;
}

static enum model_exit refuse_unknown_verb(struct cli_context *context, char **argv,
                                           const char *name)
{
    struct rt_error err = RT_ERROR_INIT;
    enum model_exit result;

    (void)rt_fail(&err, RT_INVALID_ARGUMENT, "unknown verb '%s'", name);
    result = refuse(context, argv, &err);
    (void)print_list(context, context->err);
    return result;
}

enum model_exit cli_verb_run(struct cli_context *context, int argc, char **argv)
{
    struct found found = find_verb(argc, argv);
    const struct cli_verb *verb;

    if (found.index >= argc)
        return argc == 1 || found.wants_help ? print_help(context)
                                             : run_without_verb(context, argc, argv);
    verb = cli_verb_find(argv[found.index]);
    if (verb == NULL)
        return refuse_unknown_verb(context, argv, argv[found.index]);
    for (int i = found.index; i < argc; i++)
        argv[i] = argv[i + 1];
    return run_verb(context, verb, argc - 1, argv);
}
