/*
 * Option table: every type, layer, origin and message.
 */
#include "runtime/base/option.h"

#include <signal.h>
#include <stdlib.h>

#include "runtime/base/alloc.h"
#include "tests/support/check.h"

enum color {
    RED,
    GREEN,
    BLUE,
};

struct config {
    const char *name;
    const char *label;
    enum color color;
    bool verbose;
    bool careful;
    uint64_t count;
    uint64_t lease_ms;
    uint64_t entry_size;
};

struct own {
    uint64_t port;
};

static const char *const color_names[] = {"red", "green", "blue", NULL};

static const struct rt_option options_of_config[] = {
    {.name = "name",
     .letter = 'n',
     .type = RT_OPTION_STRING,
     .help = "What to call it.",
     .initial = "anon",
     .offset = offsetof(struct config, name)},
    {.name = "label",
     .type = RT_OPTION_STRING,
     .help = "A label.",
     .offset = offsetof(struct config, label)},
    {.name = "color",
     .letter = 'c',
     .type = RT_OPTION_ENUM,
     .names = color_names,
     .initial = "green",
     .help = "The color.",
     .offset = offsetof(struct config, color)},
    {.name = "verbose",
     .letter = 'v',
     .type = RT_OPTION_FLAG,
     .help = "Say more.",
     .offset = offsetof(struct config, verbose)},
    {.name = "careful",
     .type = RT_OPTION_FLAG,
     .initial = "true",
     .help = "Be careful.",
     .offset = offsetof(struct config, careful)},
    {.name = "count",
     .letter = 'k',
     .type = RT_OPTION_U64,
     .initial = "5",
     .min = 1,
     .max = 10,
     .group = "Limits",
     .help = "How many.",
     .offset = offsetof(struct config, count)},
    {.name = "lease",
     .type = RT_OPTION_DURATION,
     .initial = "10s",
     .min = 100,
     .max = 3600000,
     .group = "Limits",
     .help = "How long a lease lasts, counted from the moment in which the request for it was sent "
             "and not from the answer, so that a late answer can only shorten it.",
     .offset = offsetof(struct config, lease_ms)},
    {.name = "entry-size",
     .type = RT_OPTION_SIZE,
     .initial = "64KiB",
     .min = 512,
     .group = "Limits",
     .help = "Bytes of an entry.",
     .offset = offsetof(struct config, entry_size)},
};

static const struct rt_option options_of_own[] = {
    {.name = "port",
     .type = RT_OPTION_U64,
     .max = 65535,
     .help = "The port.",
     .offset = offsetof(struct own, port)},
};

static struct config config;
static struct own own;
static struct rt_options *options;
static struct rt_error err;
static enum rt_option_action action;
static char *output;

static struct rt_option_table tables[] = {
    {options_of_config, RT_ARRAY_SIZE(options_of_config), NULL},
    {options_of_own, RT_ARRAY_SIZE(options_of_own), "cli.own"},
};

static struct rt_option_command command = {
    .name = "prog",
    .section = "instance",
    .usage = "[WORD...]",
    .description = "Does things.",
    .tables = tables,
    .n_tables = RT_ARRAY_SIZE(tables),
};

static void *configs[] = {&config, &own};

static struct rt_option_setup setup = {
    .command = &command,
    .configs = configs,
    .version = "1.2.3",
};

static void tear_down(void)
{
    options = rt_option_free(options);
    free(output);
    test_alloc_expect_none();
}

TestSuite(option, .fini = tear_down);

/* Words end with NULL; "prog" is put before them. */
static enum rt_code parse(const char *first, ...)
{
    char *argv[32] = {(char *)"prog"};
    size_t output_size;
    enum rt_code code;
    va_list words;
    int argc = 1;

    va_start(words, first);
    for (const char *word = first; word; word = va_arg(words, const char *))
        argv[argc++] = (char *)word;
    va_end(words);

    options = rt_option_free(options);
    free(output);
    setup.out = open_memstream(&output, &output_size);
    err = (struct rt_error)RT_ERROR_INIT;
    code = rt_option_parse(&setup, argc, argv, &action, &options, &err);
    (void)fclose(setup.out);
    if (code == RT_OK && action == RT_OPTION_EXIT_OK)
        cr_assert_null(options);
    return code;
}

#define EXPECT_OK(...)  cr_assert_eq(parse(__VA_ARGS__, NULL), RT_OK, "%s", err.message)
#define EXPECT_BAD(...) cr_assert_eq(parse(__VA_ARGS__, NULL), RT_INVALID_ARGUMENT)
#define EXPECT_MESSAGE(text)                                                                       \
    cr_assert_not_null(strstr(err.message, text), "\"%s\" not in \"%s\"", text, err.message)
#define EXPECT_OUTPUT(text)                                                                        \
    cr_assert_not_null(strstr(output, text), "\"%s\" not in:\n%s", text, output)

Test(option, defaults)
{
    cr_assert_eq(parse(NULL), RT_OK);
    cr_assert_eq(action, RT_OPTION_RUN);
    cr_assert_str_eq(config.name, "anon");
    cr_assert_null(config.label);
    cr_assert_eq(config.color, GREEN);
    cr_assert_not(config.verbose);
    cr_assert(config.careful);
    cr_assert_eq(config.count, 5);
    cr_assert_eq(config.lease_ms, 10000);
    cr_assert_eq(config.entry_size, 65536);
    cr_assert_eq(own.port, 0);
    cr_assert_eq(options->n_positional, 0);
    cr_assert_null(options->positional[0]);
    cr_assert_eq(rt_option_origin(options, "name"), RT_OPTION_FROM_DEFAULT);
}

Test(option, long_forms)
{
    EXPECT_OK("--name=x", "--label", "", "--color", "blue", "--verbose", "--careful=false",
              "--count", "10", "--lease=1h", "--entry-size=1MiB", "--port", "65535");
    cr_assert_str_eq(config.name, "x");
    cr_assert_str_eq(config.label, "");
    cr_assert_eq(config.color, BLUE);
    cr_assert(config.verbose);
    cr_assert_not(config.careful);
    cr_assert_eq(config.count, 10);
    cr_assert_eq(config.lease_ms, 3600000);
    cr_assert_eq(config.entry_size, 1 << 20);
    cr_assert_eq(own.port, 65535);
    cr_assert_eq(rt_option_origin(options, "port"), RT_OPTION_FROM_FLAG);
}

Test(option, short_forms)
{
    EXPECT_OK("-vn", "x", "-k7", "-c", "red");
    cr_assert(config.verbose);
    cr_assert_str_eq(config.name, "x");
    cr_assert_eq(config.count, 7);
    cr_assert_eq(config.color, RED);
}

Test(option, last_one_wins)
{
    EXPECT_OK("--count=1", "-k", "2");
    cr_assert_eq(config.count, 2);
}

Test(option, words_before_between_and_after)
{
    (void)setenv("POSIXLY_CORRECT", "1", 1);
    EXPECT_OK("one", "--count=2", "two", "-v", "three", "--", "--count=3", "-x");
    cr_assert_eq(options->n_positional, 5);
    cr_assert_str_eq(options->positional[0], "one");
    cr_assert_str_eq(options->positional[1], "two");
    cr_assert_str_eq(options->positional[2], "three");
    cr_assert_str_eq(options->positional[3], "--count=3");
    cr_assert_str_eq(options->positional[4], "-x");
    cr_assert_null(options->positional[5]);
    cr_assert_eq(config.count, 2);
    cr_assert(config.verbose);
}

Test(option, single_dash_is_a_word)
{
    EXPECT_OK("-");
    cr_assert_eq(options->n_positional, 1);
}

Test(option, flag_words)
{
    static const char *const yes[] = {"--verbose=true", "--verbose=yes", "--verbose=on",
                                      "--verbose=1"};
    static const char *const no[] = {"--verbose=false", "--verbose=no", "--verbose=off",
                                     "--verbose=0"};

    for (size_t i = 0; i < RT_ARRAY_SIZE(yes); i++) {
        EXPECT_OK(yes[i]);
        cr_assert(config.verbose);
        EXPECT_OK(no[i]);
        cr_assert_not(config.verbose);
    }
    EXPECT_BAD("--verbose=maybe");
    EXPECT_MESSAGE("option '--verbose': 'maybe' is not true or false");
}

Test(option, durations)
{
    static const struct {
        const char *text;
        uint64_t ms;
    } good[] = {{"--lease=100ms", 100},
                {"--lease=1s", 1000},
                {"--lease=2m", 120000},
                {"--lease=1h", 3600000}};

    for (size_t i = 0; i < RT_ARRAY_SIZE(good); i++) {
        EXPECT_OK(good[i].text);
        cr_assert_eq(config.lease_ms, good[i].ms);
    }
    EXPECT_BAD("--lease=99ms");
    EXPECT_MESSAGE("option '--lease': '99ms' is out of range (100ms..1h)");
    EXPECT_BAD("--lease=3600001ms");
    EXPECT_BAD("--lease=1d");
    EXPECT_BAD("--lease=0");
    EXPECT_BAD("--lease=10");
    EXPECT_MESSAGE("'10' is not a duration like 500ms, 10s, 5m, 2h or 1d (100ms..1h)");
    EXPECT_BAD("--lease=s");
    EXPECT_BAD("--lease=1 s");
    EXPECT_BAD("--lease=-1s");
    EXPECT_BAD("--lease=1.5s");
    EXPECT_BAD("--lease=1sec");
    EXPECT_BAD("--lease=99999999999999999999s");
    EXPECT_BAD("--lease=18446744073709551615d");
}

Test(option, sizes)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        {"--entry-size=512", 512},         {"--entry-size=513B", 513},
        {"--entry-size=1KiB", 1024},       {"--entry-size=3GiB", 3ull << 30},
        {"--entry-size=1TiB", 1ull << 40}, {"--entry-size=18446744073709551615", UINT64_MAX}};

    for (size_t i = 0; i < RT_ARRAY_SIZE(good); i++) {
        EXPECT_OK(good[i].text);
        cr_assert_eq(config.entry_size, good[i].bytes);
    }
    EXPECT_BAD("--entry-size=511");
    EXPECT_MESSAGE("'511' is out of range (512B or more)");
    EXPECT_BAD("--entry-size=1KB");
    EXPECT_MESSAGE("'1KB' is not a size like 4096, 64KiB or 1MiB (512B or more)");
    EXPECT_BAD("--entry-size=18446744073709551616");
    EXPECT_BAD("--entry-size=18014398509481984KiB");
    EXPECT_BAD("--entry-size=");
}

Test(option, numbers_at_their_limits)
{
    EXPECT_OK("--count=1");
    EXPECT_OK("--count=10");
    EXPECT_BAD("--count=0");
    EXPECT_MESSAGE("option '--count': '0' is out of range (1..10)");
    EXPECT_BAD("--count=11");
    EXPECT_BAD("--count=x");
    EXPECT_MESSAGE("'x' is not a whole number (1..10)");
    EXPECT_BAD("--count=5x");
    EXPECT_BAD("--count=");
    EXPECT_BAD("--port=65536");
    EXPECT_MESSAGE("out of range (0..65535)");
}

/* ---- addresses ---- */

static const struct rt_option address_options[] = {{.name = "address",
                                                    .type = RT_OPTION_ADDRESS,
                                                    .initial = "127.0.0.1:7400",
                                                    .min = 1,
                                                    .help = "Where it is.",
                                                    .offset = 0},
                                                   {.name = "any-port",
                                                    .type = RT_OPTION_ADDRESS,
                                                    .help = "Where it listens.",
                                                    .offset = sizeof(const char *)}};

Test(option, addresses)
{
    static const char *const good[] = {"host:1", "1.2.3.4:65535", "[::1]:7400", "unix:/s",
                                       "unix:relative/socket"};
    static const char *const bad[] = {"",         "host",    ":1",   "host:",  "host:x",
                                      "::1:7400", "a b:1",   "[]:1", "[:1",    "[a]b]:1",
                                      "unix:",    "ho[st:1", "h:-1", "h:\x7f", "h:+1"};
    const char *addresses[2];

    tables[1] = (struct rt_option_table){address_options, 2, NULL};
    configs[1] = addresses;
    for (size_t i = 0; i < RT_ARRAY_SIZE(good); i++) {
        EXPECT_OK("--address", good[i]);
        cr_assert_str_eq(addresses[0], good[i]);
    }
    cr_assert_null(addresses[1]);
    for (size_t i = 0; i < RT_ARRAY_SIZE(bad); i++) {
        EXPECT_BAD("--address", bad[i]);
        EXPECT_MESSAGE("is not an address like 127.0.0.1:7400, [::1]:7400 or unix:/path");
    }
    EXPECT_BAD("--address", "host:0");
    EXPECT_MESSAGE("the port of 'host:0' is out of range (1..65535)");
    EXPECT_BAD("--address", "host:65536");
    EXPECT_OK("--any-port", "host:0");
    EXPECT_OK("--help");
    EXPECT_OUTPUT("--address ADDRESS ");
}

Test(option, longest_address)
{
    char text[RT_OPTION_ADDRESS_MAX + 2] = {0};
    const char *addresses[2];

    tables[1] = (struct rt_option_table){address_options, 2, NULL};
    configs[1] = addresses;
    memset(text, 'x', RT_OPTION_ADDRESS_MAX);
    memcpy(text, "unix:", 5);
    EXPECT_OK("--address", text);
    text[RT_OPTION_ADDRESS_MAX] = 'x';
    EXPECT_BAD("--address", text);
    EXPECT_MESSAGE("an address has at most 255 bytes");
}

Test(option, enums_list_their_names)
{
    EXPECT_BAD("-c", "pink");
    EXPECT_MESSAGE("option '--color': 'pink' is not one of the names (red | green | blue)");
}

Test(option, unknown_and_incomplete_options)
{
    EXPECT_BAD("--nothing");
    EXPECT_MESSAGE("unknown or ambiguous option '--nothing'");
    EXPECT_BAD("--nothing=5", "word");
    EXPECT_MESSAGE("'--nothing=5'");
    EXPECT_BAD("--c");
    EXPECT_MESSAGE("ambiguous option '--c'");
    EXPECT_BAD("-vx");
    EXPECT_MESSAGE("unknown option '-x'");
    EXPECT_BAD("-\xc3\xa9", "word");
    EXPECT_MESSAGE("unknown option '-\xc3'");
    EXPECT_BAD("--count");
    EXPECT_MESSAGE("option '--count' needs a value");
    EXPECT_BAD("-k");
    EXPECT_MESSAGE("option '--count' needs a value");
    cr_assert_eq(action, RT_OPTION_RUN, "left alone");
}

Test(option, works_without_an_error)
{
    char *argv[] = {(char *)"prog", (char *)"--count=0", NULL};

    cr_assert_eq(rt_option_parse(&setup, 2, argv, &action, &options, NULL), RT_INVALID_ARGUMENT);
    argv[1] = (char *)"--config=/nonexistent/file";
    cr_assert_eq(rt_option_parse(&setup, 2, argv, &action, &options, NULL), RT_INVALID_ARGUMENT);
}

Test(option, environment)
{
    char *environment[] = {(char *)"REDISTINTO_ENTRY_SIZE=2KiB", (char *)"REDISTINTO_VERBOSE=yes",
                           (char *)"REDISTINTO_LABEL=",          (char *)"REDISTINTO_PORTS=1",
                           (char *)"REDISTINTO_HELP=true",       NULL};

    setup.environment = environment;
    EXPECT_OK("--verbose=no");
    cr_assert_eq(config.entry_size, 2048);
    cr_assert_not(config.verbose, "the command line wins");
    cr_assert_null(config.label, "empty counts as unset");
    cr_assert_eq(own.port, 0);
    cr_assert_eq(rt_option_origin(options, "entry-size"), RT_OPTION_FROM_ENV);
}

Test(option, environment_errors_name_the_variable)
{
    char *environment[] = {(char *)"REDISTINTO_COUNT=99", NULL};

    setup.environment = environment;
    EXPECT_BAD("--count=5");
    EXPECT_MESSAGE("REDISTINTO_COUNT: '99' is out of range (1..10)");
}

Test(option, required)
{
    static const struct rt_option required[] = {{.name = "needed",
                                                 .type = RT_OPTION_U64,
                                                 .is_required = true,
                                                 .help = "It must be there.",
                                                 .offset = offsetof(struct own, port)}};

    tables[1] = (struct rt_option_table){required, 1, NULL};
    cr_assert_eq(parse(NULL), RT_INVALID_ARGUMENT);
    EXPECT_MESSAGE("option '--needed' is required");
    EXPECT_OK("--needed=3");
    cr_assert_eq(own.port, 3);
    EXPECT_OK("--help");
    EXPECT_OUTPUT("--needed N                  It must be there. [required; REDISTINTO_NEEDED]\n");
    EXPECT_OK("--print-config");
    EXPECT_OUTPUT("; needed = ; unset (required)\n");
    EXPECT_OK("--print-config", "-o", "json");
    EXPECT_OUTPUT("{\"section\":\"instance\",\"name\":\"needed\",\"value\":null,\"required\":true,"
                  "\"origin\":\"unset\"}");
}

Test(option, help)
{
    char *environment[] = {(char *)"REDISTINTO_COUNT=99", NULL};

    setup.environment = environment;
    EXPECT_OK("--help", "--config=/nonexistent/file");
    cr_assert_eq(action, RT_OPTION_EXIT_OK);
    EXPECT_OUTPUT("Usage: prog [OPTION...] [WORD...]\n\nDoes things.\n\nOptions:\n");
    EXPECT_OUTPUT(
        "\n  -n, --name TEXT                 What to call it. [default anon; REDISTINTO_NAME]\n");
    EXPECT_OUTPUT("\n      --label TEXT                A label. [REDISTINTO_LABEL]\n");
    EXPECT_OUTPUT("\n  -c, --color NAME                The color. [default green; red | green | "
                  "blue; REDISTINTO_COLOR]\n");
    EXPECT_OUTPUT("\n  -v, --verbose                   Say more. [REDISTINTO_VERBOSE]\n");
    EXPECT_OUTPUT(
        "\n      --careful                   Be careful. [default true; REDISTINTO_CAREFUL]\n");
    EXPECT_OUTPUT("\nLimits:\n  -k, --count N                   How many. [default 5; 1..10; "
                  "REDISTINTO_COUNT]\n");
    EXPECT_OUTPUT("Bytes of an entry. [default 64KiB; 512B or more;\n                              "
                  "    REDISTINTO_ENTRY_SIZE]\n");
    EXPECT_OUTPUT("\nGeneral:\n      --config FILE ");
    EXPECT_OUTPUT("\n  -h, --help                      Show this text and exit.\n");
    EXPECT_OUTPUT("\n  -o, --output NAME ");
    EXPECT_OUTPUT("[REDISTINTO_CONFIG]\n");
    EXPECT_OUTPUT("in a section: [instance], [cli.own],");
    EXPECT_OK("-h");
    cr_assert_eq(action, RT_OPTION_EXIT_OK);
}

Test(option, help_fits_into_100_columns)
{
    static const struct rt_option wide[] = {{.name = "an-option-with-a-rather-long-name",
                                             .type = RT_OPTION_STRING,
                                             .argument = "SOMETHING",
                                             .help = "Its text starts on a line of its own.",
                                             .offset = 0}};
    const char *config_name = NULL;

    tables[1] = (struct rt_option_table){wide, 1, NULL};
    configs[1] = &config_name;
    EXPECT_OK("--help");
    for (const char *line = output; *line; line += strcspn(line, "\n") + 1)
        cr_assert_leq(strcspn(line, "\n"), 100, "%.120s", line);
    EXPECT_OUTPUT("      --an-option-with-a-rather-long-name SOMETHING\n"
                  "                                  Its text starts");
}

Test(option, version)
{
    char *environment[] = {(char *)"REDISTINTO_OUTPUT=json", NULL};

    EXPECT_OK("-V");
    cr_assert_eq(action, RT_OPTION_EXIT_OK);
    cr_assert_str_eq(output, "prog 1.2.3\n");
    command.name = "prog verb";
    EXPECT_OK("--version");
    cr_assert_str_eq(output, "prog 1.2.3\n");
    EXPECT_OK("--version", "-o", "json", "--config=/nonexistent/file");
    EXPECT_OUTPUT("{\"name\":\"prog\",\"version\":\"1.2.3\",\"protocol\":\"redistinto.v1\","
                  "\"compiler\":\"");
    EXPECT_OK("-ojson", "-V");
    EXPECT_OUTPUT("{\"name\":\"prog\"");
    setup.environment = environment;
    EXPECT_OK("--version");
    EXPECT_OUTPUT("{\"name\":\"prog\"");
    EXPECT_OK("--version", "--output=text");
    cr_assert_str_eq(output, "prog 1.2.3\n");
    EXPECT_BAD("--version", "-o", "xml");
    EXPECT_MESSAGE("option '--output': 'xml' is not one of the names (text | json)");
}

static const char *const forms[] = {"text", "json", NULL};

/* A binary with an option of this name keeps its own. */
Test(option, output_of_its_own)
{
    static const struct rt_option own_output[] = {{.name = "output",
                                                   .letter = 'o',
                                                   .type = RT_OPTION_ENUM,
                                                   .names = forms,
                                                   .initial = "json",
                                                   .help = "How results look.",
                                                   .offset = 0}};
    int form = -1;

    tables[1] = (struct rt_option_table){own_output, 1, NULL};
    configs[1] = &form;
    EXPECT_OK("-o", "text");
    cr_assert_eq(form, 0);
    EXPECT_OK("--help");
    EXPECT_OUTPUT("How results look.");
    cr_assert_null(strstr(output, "Form of the version"));
    EXPECT_OK("--print-config");
    EXPECT_OUTPUT("{\"section\":\"instance\",\"name\":\"output\",\"value\":\"json\"");
    EXPECT_OK("--version", "-o", "json");
    EXPECT_OUTPUT("\"version\":\"1.2.3\"");
}

Test(option, print_config)
{
    char *environment[] = {(char *)"REDISTINTO_LEASE=90s", NULL};

    setup.environment = environment;
    EXPECT_OK("--print-config", "--name=n", "--config=/dev/null");
    cr_assert_eq(action, RT_OPTION_EXIT_OK);
    cr_assert_str_eq(output, "; prog 1.2.3, configuration file: /dev/null\n"
                             "\n[instance]\n"
                             "name = n ; flag\n"
                             "; label = ; unset\n"
                             "color = green ; default\n"
                             "verbose = false ; default\n"
                             "careful = true ; default\n"
                             "count = 5 ; default\n"
                             "lease = 90s ; environment REDISTINTO_LEASE\n"
                             "entry-size = 64KiB ; default\n"
                             "\n[cli.own]\n"
                             "port = 0 ; default\n");
    setup.environment = NULL;
    EXPECT_OK("--print-config");
    EXPECT_OUTPUT("; prog 1.2.3, configuration file: none\n");
}

Test(option, print_config_as_json)
{
    char *environment[] = {(char *)"REDISTINTO_LEASE=90s", NULL};

    setup.environment = environment;
    EXPECT_OK("--print-config", "-o", "json", "--name=a\nb", "--config=/dev/null");
    EXPECT_OUTPUT("{\"name\":\"prog\",\"config_file\":\"/dev/null\",\"options\":["
                  "{\"section\":\"instance\",\"name\":\"name\",\"value\":\"a\\nb\","
                  "\"required\":false,\"origin\":\"flag\"},"
                  "{\"section\":\"instance\",\"name\":\"label\",\"value\":null,"
                  "\"required\":false,\"origin\":\"unset\"},");
    EXPECT_OUTPUT("\"value\":\"90s\",\"required\":false,\"origin\":\"environment\","
                  "\"variable\":\"REDISTINTO_LEASE\"}");
    EXPECT_OUTPUT("{\"section\":\"cli.own\",\"name\":\"port\",\"value\":\"0\",\"required\":false,"
                  "\"origin\":\"default\"}]}\n");
}

Test(option, values_that_no_file_can_hold_are_shown_in_comments)
{
    static const char *const texts[] = {"a ;b", ";b", " b", "b ", "a\tb", "a\nb"};
    char longest[RT_OPTION_FILE_LINE_MAX + 1];
    RT_CLEANUP(rt_freep) char *line = NULL;

    for (size_t i = 0; i < RT_ARRAY_SIZE(texts); i++) {
        EXPECT_OK("--print-config", "--name", texts[i]);
        EXPECT_OUTPUT("\n; no line of a file can hold: name = \"");
    }
    EXPECT_OK("--print-config", "--name", "a;b # c");
    EXPECT_OUTPUT("\nname = a;b # c ; flag\n");

    memset(longest, 'x', sizeof(longest));
    longest[RT_OPTION_FILE_LINE_MAX - strlen("name = ")] = '\0';
    line = rt_xasprintf("\nname = %s\n", longest);
    EXPECT_OK("--print-config", "--name", longest);
    EXPECT_OUTPUT(line);
    longest[strlen(longest)] = 'x';
    longest[RT_OPTION_FILE_LINE_MAX - strlen("name = ") + 1] = '\0';
    EXPECT_OK("--print-config", "--name", longest);
    EXPECT_OUTPUT("\n; no line of a file can hold: name = \"");
}

Test(option, print_config_checks_first)
{
    EXPECT_BAD("--print-config", "--count=0");
}

static enum rt_code adjust(struct rt_options *adjusted, void *ctx, struct rt_error *error)
{
    struct config *values = ctx;

    if (values->color == BLUE)
        return rt_fail(error, RT_INVALID_ARGUMENT, "blue is out");
    rt_option_set_default(adjusted, "count", "9");
    rt_option_set_default(adjusted, "name", "first");
    rt_option_set_default(adjusted, "name", "second");
    return RT_OK;
}

Test(option, adjust_changes_defaults_only)
{
    setup.adjust = adjust;
    setup.adjust_ctx = &config;
    EXPECT_OK("--count=2");
    cr_assert_eq(config.count, 2);
    cr_assert_str_eq(config.name, "second");
    cr_assert_eq(rt_option_origin(options, "name"), RT_OPTION_FROM_PROFILE);
    EXPECT_OK("--print-config");
    EXPECT_OUTPUT("name = second ; profile\n");
    EXPECT_OUTPUT("count = 9 ; profile\n");
    EXPECT_BAD("--color=blue");
    EXPECT_MESSAGE("blue is out");
}

Test(option, output_that_cannot_be_written)
{
    char *argv[] = {(char *)"prog", (char *)"--version", NULL};

    setup.out = fopen("/dev/full", "w");
    cr_assert_neq(rt_option_parse(&setup, 2, argv, &action, &options, &err), RT_OK);
    EXPECT_MESSAGE("writing the text asked for");
    (void)fclose(setup.out);
}

Test(option, name_in_two_tables, .signal = SIGABRT)
{
    tables[1] = tables[0];
    (void)parse(NULL);
}

Test(option, bad_default, .signal = SIGABRT)
{
    static const struct rt_option bad[] = {
        {.name = "bad", .type = RT_OPTION_U64, .initial = "x", .help = "", .offset = 0}};

    tables[1] = (struct rt_option_table){bad, 1, NULL};
    (void)parse(NULL);
}

Test(option, unknown_name_in_the_program, .signal = SIGABRT)
{
    cr_assert_eq(parse(NULL), RT_OK);
    (void)rt_option_origin(options, "nothing");
}
