/*
 * Finding and running verbs: options on both sides, help, refusals.
 */
#include "cli/verb.h"

#include <ctype.h>

#include "runtime/base/alloc.h"
#include "runtime/base/option_describe.h"
#include "tests/support/check.h"
#include "tests/unit/cli/streams.h"

TestSuite(verb, .fini = test_alloc_expect_none);

enum {
    WORDS_MAX = 12,
    HELP_COLUMNS = 100,
};

/* Splits at blanks and runs `redistinto WORDS`. */
static enum model_exit run(struct streams *streams, const char *words)
{
    char text[256];
    char *argv[WORDS_MAX + 2] = {text};
    int argc = 0;
    enum model_exit result;

    (void)snprintf(text, sizeof(text), "redistinto %s", words);
    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " "))
        argv[argc++] = word;
    argv[argc] = NULL;
    result = cli_verb_run(&streams->context, argc, argv);
    streams_flush(streams);
    return result;
}

static void expect(const char *words, enum model_exit expected, const char *out, const char *err)
{
    struct streams streams;

    streams_open(&streams);
    cr_assert_eq(run(&streams, words), expected, "%s", words);
    cr_assert_not_null(strstr(streams.out, out), "%s: out: %s", words, streams.out);
    cr_assert_not_null(strstr(streams.err, err), "%s: err: %s", words, streams.err);
    cr_assert(*out != '\0' || *streams.out == '\0', "%s: out: %s", words, streams.out);
    cr_assert(*err != '\0' || *streams.err == '\0', "%s: err: %s", words, streams.err);
    streams_close(&streams);
}

Test(verb, table_is_complete)
{
    for (size_t i = 0; i < cli_n_verbs; i++) {
        const struct cli_verb *verb = cli_verbs[i];

        cr_assert_eq(cli_verb_find(verb->name), verb, "%s: two of this name", verb->name);
        cr_assert_not_null(verb->run);
        cr_assert_eq(verb->config_size > 0, verb->n_options > 0, "%s", verb->name);
        cr_assert_eq(verb->n_arguments + verb->n_optional > 0, *verb->arguments != '\0', "%s",
                     verb->name);
        cr_assert_neq(verb->summary[strlen(verb->summary) - 1], '.', "%s", verb->name);
        cr_assert_eq(verb->description[strlen(verb->description) - 1], '.', "%s", verb->name);
    }
    cr_assert_null(cli_verb_find("devel"));
    cr_assert_null(cli_verb_find(""));
}

Test(verb, list_and_help)
{
    expect("", MODEL_EXIT_OK, "\nVerbs:\n  dev ", "");
    expect("--help", MODEL_EXIT_OK, "\nVerbs:\n  dev ", "");
    expect("-h -o json", MODEL_EXIT_OK, "\nVerbs:\n  dev ", "");
    expect("--version", MODEL_EXIT_OK, "redistinto 1.2.3\n", "");
    expect("-V", MODEL_EXIT_OK, "redistinto 1.2.3\n", "");
    expect("dev --version", MODEL_EXIT_OK, "redistinto 1.2.3\n", "");
    expect("--print-config", MODEL_EXIT_OK, "timeout = 5s", "");
}

Test(verb, help_of_every_verb)
{
    for (size_t i = 0; i < cli_n_verbs; i++) {
        char words[64];
        char usage[96];

        (void)snprintf(words, sizeof(words), "%s --help", cli_verbs[i]->name);
        (void)snprintf(usage, sizeof(usage), "Usage: redistinto %s [OPTION...]%s%s\n",
                       cli_verbs[i]->name, *cli_verbs[i]->arguments == '\0' ? "" : " ",
                       cli_verbs[i]->arguments);
        expect(words, MODEL_EXIT_OK, usage, "");
    }
}

/* ---- help ------------------------------------------------------------------------------------ */

/* All blanks become one, as the help breaks lines anywhere. */
static void squeeze(char *text)
{
    char *end = text;

    for (char *c = text; *c != '\0'; c++)
        if (!isspace((unsigned char)*c))
            *end++ = *c;
        else if (end > text && end[-1] != ' ')
            *end++ = ' ';
    *end = '\0';
}

static void expect_short_lines(const char *text, const char *verb)
{
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1)
        cr_assert_leq(strcspn(line, "\n"), HELP_COLUMNS, "%s: %.200s", verb, line);
}

/* The name, and what it is by default and within which range. */
static void expect_described(const struct rt_option *option, const char *help, const char *verb)
{
    bool is_number = option->type == RT_OPTION_U64 || option->type == RT_OPTION_DURATION ||
                     option->type == RT_OPTION_SIZE;
    struct rt_buffer facts = {0};
    struct rt_buffer entry = {0};

    rt_option_format_facts(option, &facts);
    rt_buffer_printf(&entry, "--%s%s%s %s [%s]", option->name,
                     option->type == RT_OPTION_FLAG ? "" : " ", rt_option_argument(option),
                     option->help, rt_buffer_string(&facts));
    cr_assert_not_null(strstr(help, rt_buffer_string(&entry)), "%s: not in the help: %s", verb,
                       rt_buffer_string(&entry));
    cr_assert_eq(option->help[strlen(option->help) - 1], '.', "%s --%s", verb, option->name);
    if (is_number || option->type == RT_OPTION_ENUM)
        cr_assert(option->is_required || option->initial != NULL, "%s --%s: no default", verb,
                  option->name);
    if (is_number)
        cr_assert_gt(option->max, 0, "%s --%s: no range", verb, option->name);
    rt_buffer_deinit(&facts);
    rt_buffer_deinit(&entry);
}

Test(verb, help_tells_examples_defaults_and_ranges)
{
    for (size_t i = 0; i < cli_n_verbs; i++) {
        const struct cli_verb *verb = cli_verbs[i];
        struct streams streams;
        char words[64];

        streams_open(&streams);
        (void)snprintf(words, sizeof(words), "%s --help", verb->name);
        cr_assert_eq(run(&streams, words), MODEL_EXIT_OK);
        expect_short_lines(streams.out, verb->name);
        cr_assert_not_null(strstr(streams.out, "\nExamples:\n  redistinto "), "%s", verb->name);
        for (size_t k = 0; verb->examples[k] != NULL; k++)
            cr_assert_not_null(strstr(streams.out, verb->examples[k]), "%s", verb->examples[k]);
        squeeze(streams.out);
        for (size_t k = 0; k < verb->n_options; k++)
            expect_described(&verb->options[k], streams.out, verb->name);
        streams_close(&streams);
    }
}

/* The words of the command itself: neither what the shell does with it nor remarks, nor quotes,
 * within which examples have no blanks. */
static int split_example(char *text, char **argv)
{
    int argc = 0;

    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " ")) {
        size_t size = strlen(word);

        if (strchr("#|<>", *word) != NULL)
            break;
        cr_assert_lt(argc, WORDS_MAX);
        argv[argc++] = *word == '\'' ? word + 1 : word;
        if (*word == '\'')
            word[size - 1] = '\0';
    }
    argv[argc] = NULL;
    return argc;
}

static void expect_understood(const struct cli_verb *verb, int argc, char **argv)
{
    struct cli_verb_command description;
    struct cli_common common;
    void *config = rt_xalloc(verb->config_size);
    void *const configs[] = {config, &common};
    struct rt_option_setup setup = {
        .command = &description.command, .configs = configs, .version = "1.2.3"};
    struct rt_error err = RT_ERROR_INIT;
    enum rt_option_action action;
    struct rt_options *options;

    cli_verb_describe(verb, &description);
    cr_assert_eq(rt_option_parse(&setup, argc, argv, &action, &options, &err), RT_OK, "%s: %s",
                 verb->name, err.message);
    cr_assert_eq(action, RT_OPTION_RUN);
    cr_assert_geq(options->n_positional, verb->n_arguments, "%s", verb->name);
    cr_assert_leq(options->n_positional, verb->n_arguments + verb->n_optional, "%s", verb->name);
    (void)rt_option_free(options);
    (void)rt_free(config);
}

Test(verb, examples_can_be_typed)
{
    for (size_t i = 0; i < cli_n_verbs; i++) {
        for (size_t k = 0; cli_verbs[i]->examples[k] != NULL; k++) {
            char text[HELP_COLUMNS + 1];
            char *argv[WORDS_MAX + 1];
            int argc;

            (void)snprintf(text, sizeof(text), "%s", cli_verbs[i]->examples[k]);
            argc = split_example(text, argv);
            cr_assert_geq(argc, 2, "%s", cli_verbs[i]->name);
            cr_assert_str_eq(argv[0], "redistinto");
            cr_assert_str_eq(argv[1], cli_verbs[i]->name);
            expect_understood(cli_verbs[i], argc - 1, argv + 1);
        }
    }
}

/* ---- refusals -------------------------------------------------------------------------------- */

Test(verb, unknown_verb_comes_with_the_list)
{
    expect("devel", MODEL_EXIT_USAGE, "", "unknown verb 'devel' (INVALID_ARGUMENT)\n\nVerbs:\n");
    expect("-o json devel", MODEL_EXIT_USAGE, "\"message\":\"unknown verb 'devel'\"", "\nVerbs:\n");
    expect("devel --output json", MODEL_EXIT_USAGE, "{\"error\":{", "\nVerbs:\n");
}

Test(verb, verb_is_missing)
{
    expect("-o text", MODEL_EXIT_USAGE, "", "redistinto: a verb is missing");
    expect("-ojson --timeout 1s", MODEL_EXIT_USAGE, "a verb is missing", "");
}

Test(verb, options_on_both_sides)
{
    expect("--timeout 7s dev --print-config -o text --entries 5", MODEL_EXIT_OK,
           "timeout = 7s ; flag\n", "");
    expect("dev --print-config --timeout 7s", MODEL_EXIT_OK, "timeout = 7s ; flag\n", "");
    expect("--coordinator c:1 -o text --config /dev/null --print-config dev", MODEL_EXIT_OK,
           "coordinator = c:1 ; flag\n", "");
    expect("--coordinator=c:1 dev --print-config", MODEL_EXIT_OK, "coordinator = c:1 ; flag\n", "");
    expect("--print-config dev --entries 5", MODEL_EXIT_OK, "entries = 5 ; flag\n", "");
}

Test(verb, environment)
{
    static char coordinator[] = "REDISTINTO_COORDINATOR=c:7";
    static char output[] = "REDISTINTO_OUTPUT=json";
    static char *const environment[] = {coordinator, output, NULL};
    struct streams streams;

    streams_open(&streams);
    streams.context.environment = environment;
    cr_assert_eq(run(&streams, "dev --print-config -o text"), MODEL_EXIT_OK);
    cr_assert_not_null(
        strstr(streams.out, "coordinator = c:7 ; environment REDISTINTO_COORDINATOR\n"));
    streams_close(&streams);

    streams_open(&streams);
    streams.context.environment = environment;
    cr_assert_eq(run(&streams, "devel"), MODEL_EXIT_USAGE);
    cr_assert_eq(strncmp(streams.out, "{\"error\":", 9), 0);
    streams_close(&streams);

    streams_open(&streams);
    streams.context.environment = environment;
    cr_assert_eq(run(&streams, "dev --bogus -o text"), MODEL_EXIT_USAGE);
    cr_assert_str_eq(streams.out, "");
    streams_close(&streams);
}

Test(verb, refusals_name_what_is_valid)
{
    expect("dev --instances 0", MODEL_EXIT_USAGE, "", "redistinto: dev: option '--instances': '0'");
    expect("dev --instances 60 --print-config", MODEL_EXIT_OK, "instances = 60 ; flag", "");
    expect("dev --instances 61", MODEL_EXIT_USAGE, "", "(1..60)");
    expect("dev --base-port 65465 --print-config", MODEL_EXIT_OK, "base-port = 65465 ; flag", "");
    expect("dev --base-port 65466", MODEL_EXIT_USAGE, "", "(0..65465)");
    expect("dev --entry-size 1MiB --print-config", MODEL_EXIT_OK, "entry-size = 1MiB ; flag", "");
    expect("dev --entry-size 1048577", MODEL_EXIT_USAGE, "", "1MiB");
    expect("dev --replacement BSU --print-config", MODEL_EXIT_OK, "replacement = BSU ; flag", "");
    expect("dev --replacement FIFO", MODEL_EXIT_USAGE, "", "CIRC");
    expect("dev --distribution nearest", MODEL_EXIT_USAGE, "", "equitable-load");
    expect("dev --profile modern", MODEL_EXIT_USAGE, "", "classic");
    expect("dev --lease 999ms", MODEL_EXIT_USAGE, "", "1s..1h");
    expect("dev -o json --lease 999ms", MODEL_EXIT_USAGE, "\"code\":\"INVALID_ARGUMENT\"", "");
    expect("session --ttl 30d --print-config open", MODEL_EXIT_OK, "ttl = 30d ; flag", "");
    expect("session --ttl 2592000001ms open", MODEL_EXIT_USAGE, "", "(0ms..30d)");
    expect("bench --operations 1000000000000 --print-config", MODEL_EXIT_OK, "; flag", "");
    expect("bench --operations 1000000000001", MODEL_EXIT_USAGE, "", "(0..1000000000000)");
    expect("dev -o yaml", MODEL_EXIT_USAGE, "", "json");
    expect("dev --bogus", MODEL_EXIT_USAGE, "", "--bogus");
    expect("--bogus dev", MODEL_EXIT_USAGE, "", "--bogus");
    expect("status", MODEL_EXIT_USAGE, "", "KEY is missing");
    expect("status a b -o json", MODEL_EXIT_USAGE, "unexpected argument 'b'", "");
    expect("dev --bogus --output=json -o text", MODEL_EXIT_USAGE, "", "--bogus");
    expect("dev --bogus -otext --output json", MODEL_EXIT_USAGE, "--bogus", "");
    expect("dev --bogus -- -o json", MODEL_EXIT_USAGE, "", "--bogus");
    expect("dev one", MODEL_EXIT_USAGE, "", "unexpected argument 'one'");
}
