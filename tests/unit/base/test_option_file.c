/*
 * The configuration file of an option table: sections, order of layers, where it is found, limits,
 * and what the messages name.
 */
#include "runtime/base/option.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "tests/support/check.h"

struct config {
    const char *name;
    const char *label;
    uint64_t count;
    uint64_t timeout_ms;
    bool verbose;
};

struct own {
    uint64_t port;
};

static const struct rt_option options_of_config[] = {
    {.name = "name",
     .type = RT_OPTION_STRING,
     .initial = "anon",
     .help = "Its name.",
     .offset = offsetof(struct config, name)},
    {.name = "label",
     .type = RT_OPTION_STRING,
     .help = "A label.",
     .offset = offsetof(struct config, label)},
    {.name = "count",
     .letter = 'k',
     .type = RT_OPTION_U64,
     .initial = "5",
     .min = 1,
     .max = 10,
     .help = "How many.",
     .offset = offsetof(struct config, count)},
    {.name = "timeout",
     .type = RT_OPTION_DURATION,
     .initial = "10s",
     .help = "How long.",
     .offset = offsetof(struct config, timeout_ms)},
    {.name = "verbose",
     .type = RT_OPTION_FLAG,
     .help = "Say more.",
     .offset = offsetof(struct config, verbose)},
};

static const struct rt_option options_of_own[] = {
    {.name = "port",
     .type = RT_OPTION_U64,
     .max = 65535,
     .help = "The port.",
     .offset = offsetof(struct own, port)},
};

static const struct rt_option_table tables[] = {
    {options_of_config, RT_ARRAY_SIZE(options_of_config), NULL},
    {options_of_own, RT_ARRAY_SIZE(options_of_own), "cli.own"},
};

static const struct rt_option_command command = {
    .name = "prog",
    .section = "instance",
    .usage = "",
    .description = "Does things.",
    .tables = tables,
    .n_tables = RT_ARRAY_SIZE(tables),
};

static const char *const more_sections[] = {"cli.own", "cli.other", NULL};

static struct config config;
static struct own own;
static void *configs[] = {&config, &own};
static struct rt_option_setup setup = {
    .command = &command,
    .configs = configs,
    .version = "1.2.3",
    .sections = more_sections,
};
static struct rt_options *options;
static struct rt_error err;
static enum rt_option_action action;
static char *output;
static char directory[64];
static char path[128];

static void set_up(void)
{
    (void)snprintf(directory, sizeof(directory), "/tmp/redistinto-option-XXXXXX");
    cr_assert_not_null(mkdtemp(directory));
    (void)snprintf(path, sizeof(path), "%s/file", directory);
}

static void tear_down(void)
{
    char command_line[96];

    options = rt_option_free(options);
    free(output);
    (void)snprintf(command_line, sizeof(command_line), "rm -rf %s", directory);
    cr_assert_eq(system(command_line), 0);
    test_alloc_expect_none();
}

TestSuite(option_file, .init = set_up, .fini = tear_down);

/* Words end with NULL; "prog" is put before them. */
static enum rt_code parse(const char *first, ...)
{
    char *argv[16] = {(char *)"prog"};
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
    return code;
}

static void write_bytes(const char *to, const char *text, size_t size)
{
    FILE *file = fopen(to, "w");

    cr_assert_not_null(file);
    cr_assert_eq(fwrite(text, 1, size, file), size);
    (void)fclose(file);
}

static const char *write_file(const char *text)
{
    write_bytes(path, text, strlen(text));
    return path;
}

#define EXPECT_OK(...)  cr_assert_eq(parse(__VA_ARGS__, NULL), RT_OK, "%s", err.message)
#define EXPECT_BAD(...) cr_assert_eq(parse(__VA_ARGS__, NULL), RT_INVALID_ARGUMENT)
#define EXPECT_MESSAGE(text)                                                                       \
    cr_assert_not_null(strstr(err.message, text), "\"%s\" not in \"%s\"", text, err.message)
#define EXPECT_OUTPUT(text)                                                                        \
    cr_assert_not_null(strstr(output, text), "\"%s\" not in:\n%s", text, output)

Test(option_file, values_and_comments)
{
    EXPECT_OK("--config", write_file("# comment\n; comment\n\n[instance]\nname = from file\n"
                                     "count=7 ; seven\nverbose = on\nlabel =\n"
                                     "[cli.own]\nport: 80\r\n"));
    cr_assert_str_eq(config.name, "from file");
    cr_assert_str_eq(config.label, "");
    cr_assert_eq(config.count, 7);
    cr_assert(config.verbose);
    cr_assert_eq(own.port, 80);
    cr_assert_eq(rt_option_origin(options, "name"), RT_OPTION_FROM_FILE);
    cr_assert_eq(rt_option_origin(options, "timeout"), RT_OPTION_FROM_DEFAULT);
}

Test(option_file, flag_beats_variable_beats_file_beats_default)
{
    char *environment[] = {(char *)"REDISTINTO_COUNT=3", (char *)"REDISTINTO_TIMEOUT=3s",
                           (char *)"REDISTINTO_CONFIG=/nonexistent/file", NULL};

    setup.environment = environment;
    EXPECT_OK("--count=4", "--config",
              write_file("[instance]\nname = file\ncount = 2\ntimeout = 2s\n"));
    cr_assert_eq(config.count, 4);
    cr_assert_eq(config.timeout_ms, 3000);
    cr_assert_str_eq(config.name, "file");
    cr_assert_null(config.label);
}

/* Whichever stands first. */
Test(option_file, own_section_beats_common)
{
    EXPECT_OK("--config", write_file("[common]\ntimeout = 1s\n[instance]\ntimeout = 2s\n"));
    cr_assert_eq(config.timeout_ms, 2000);
    EXPECT_OK("--config", write_file("[instance]\ntimeout = 2s\n[common]\ntimeout = 1s\n"));
    cr_assert_eq(config.timeout_ms, 2000);
    EXPECT_OK("--config", write_file("[common]\ntimeout = 1s\n"));
    cr_assert_eq(config.timeout_ms, 1000);
}

Test(option_file, other_sections_are_for_others)
{
    EXPECT_OK("--config", write_file("[common]\nlog-level = loud\ncoordinator = x\n"
                                     "[coordinator]\ncount = 99\ncount = 99\n[esi]\nname = x\n"
                                     "[cli]\nname = x\n[cli.other]\nnope = 1\n"));
    cr_assert_str_eq(config.name, "anon");
    cr_assert_eq(config.count, 5);
}

/* Who does not know the verbs does not judge them. */
Test(option_file, any_verb)
{
    setup.sections = NULL;
    EXPECT_OK("--config", write_file("[cli.nope]\nport = 1\n[cli.own]\nport = 2\n"));
    cr_assert_eq(own.port, 2);
    EXPECT_BAD("--config", write_file("[clip.nope]\nport = 1\n"));
}

Test(option_file, sections_may_be_continued)
{
    EXPECT_OK("--config",
              write_file("[instance]\nname = a\n[esi]\nname = x\n[instance]\ncount = 6\n"));
    cr_assert_str_eq(config.name, "a");
    cr_assert_eq(config.count, 6);
}

Test(option_file, lines_may_be_indented)
{
    EXPECT_OK("--config", write_file("  [instance]\n  name = a b\n\t count = 6\n \t\n"
                                     "  ; comment\n  timeout = 2s\n  [cli.own]\n    port = 80"));
    cr_assert_str_eq(config.name, "a b");
    cr_assert_eq(config.count, 6);
    cr_assert_eq(config.timeout_ms, 2000);
    cr_assert_eq(own.port, 80);
}

static void expect_bad_line(const char *text, int line, const char *message)
{
    RT_CLEANUP(rt_freep) char *place = rt_xasprintf("%s:%d: ", write_file(text), line);

    EXPECT_BAD("--config", path);
    cr_assert_eq(strncmp(err.message, place, strlen(place)), 0, "%s", err.message);
    EXPECT_MESSAGE(message);
}

Test(option_file, mistakes_name_file_and_line)
{
    expect_bad_line("[instance]\ncount = 1\n\ncount = 11\n", 4,
                    "option 'count' is set twice in [instance], first in line 2");
    expect_bad_line("[common]\ntimeout = 1s\ntimeout = 1s\n", 3, "set twice in [common]");
    expect_bad_line("[instance]\n\ncount = 11\nnope = 1\n", 3,
                    "option 'count': '11' is out of range (1..10)");
    expect_bad_line("[instance]\nnope = 1\n", 2, "unknown option 'nope' in [instance]");
    expect_bad_line("[cli.own]\ncount = 1\n", 2, "unknown option 'count' in [cli.own]");
    expect_bad_line("[instance]\nport = 1\n", 2, "unknown option 'port' in [instance]");
    expect_bad_line("[common]\ncount = 1\n", 2, "[common] takes no option 'count' (it takes coo");
    expect_bad_line("[instance]\nname = x\n\n[instances]\n\nnope = 1\n", 4,
                    "unknown section [instances] (there are [common], [coordinator], [instance],");
    expect_bad_line("[cli.nope]\nport = 1\n", 1, "unknown section [cli.nope]");
    expect_bad_line("name = x\n", 1, "option 'name' stands before the first section");
    expect_bad_line("[instance]\nname = x\nnonsense\n", 3, "not of the form 'name = value'");
    expect_bad_line("[instance\nname = x\n", 1, "not of the form");
    expect_bad_line("[instance]\nhelp = true\n", 2, "unknown option 'help'");
    expect_bad_line("[instance]\nconfig = /x\n", 2, "unknown option 'config'");
    expect_bad_line("[instance]\n  name = x\n\n  [instances]\n  nope = 1\n", 4,
                    "unknown section [instances]");
    expect_bad_line("[instance]\ntimeout = soon\n", 2, "'soon' is not a duration");
}

Test(option_file, nothing_but_a_comment_follows_a_section)
{
    static const char message[] =
        "only a comment, ';' behind a blank, may follow the section's ']'";

    EXPECT_OK("--config", write_file("[instance] ; comment\ncount = 7\n[esi]\t\t\n[cli] \r\n"));
    cr_assert_eq(config.count, 7);
    expect_bad_line("[instance] count = 7\n", 1, message);
    expect_bad_line("\n  [instance]]\n", 2, message);
    expect_bad_line("[instance];comment\n", 1, message);
    expect_bad_line("[instance] # comment\n", 1, message);
    expect_bad_line("\xef\xbb\xbf[instance] x\n", 1, message);
    expect_bad_line("[instance][esi]", 1, message);
}

/* They would be one long comment, or value. */
Test(option_file, lines_do_not_end_with_a_carriage_return_alone)
{
    static const char message[] = "a carriage return stands inside the line; lines end with a "
                                  "newline";

    EXPECT_OK("--config", write_file("\r\n[instance]\r\n\r\ncount = 7\r\n; comment\r"));
    cr_assert_eq(config.count, 7);
    expect_bad_line("[instance]\rcount = 7\r", 1, message);
    expect_bad_line("\r[instance]\rcount = 7\r", 1, message);
    expect_bad_line("; comment\r[instance]\r", 1, message);
    expect_bad_line("[instance]\nname = a\rb\n", 2, message);
}

/* Also where another layer wins. */
Test(option_file, overridden_values_are_checked)
{
    EXPECT_BAD("--count=3", "--config", write_file("[instance]\ncount = 11\n"));
    EXPECT_MESSAGE("out of range");
    EXPECT_BAD("--config", write_file("[common]\ntimeout = x\n[instance]\ntimeout = 2s\n"));
    EXPECT_MESSAGE(":2: option 'timeout'");
}

Test(option_file, longest_line)
{
    char text[512] = "[instance]\nname=";
    size_t start = strlen("[instance]\n");

    memset(text + strlen(text), 'x', sizeof(text) - strlen(text) - 1);
    text[start + RT_OPTION_FILE_LINE_MAX] = '\n';
    text[start + RT_OPTION_FILE_LINE_MAX + 1] = '\0';
    EXPECT_OK("--config", write_file(text));
    cr_assert_eq(strlen(config.name), RT_OPTION_FILE_LINE_MAX - strlen("name="));
    text[start + RT_OPTION_FILE_LINE_MAX] = '\0';
    EXPECT_OK("--config", write_file(text));
    cr_assert_eq(strlen(config.name), RT_OPTION_FILE_LINE_MAX - strlen("name="));

    text[start + RT_OPTION_FILE_LINE_MAX] = 'x';
    expect_bad_line(text, 2, "the line is longer than 198 bytes; a longer value can be given on");
    text[start + RT_OPTION_FILE_LINE_MAX + 1] = '\n';
    text[start + RT_OPTION_FILE_LINE_MAX + 2] = '\0';
    expect_bad_line(text, 2, "longer than 198 bytes");
}

Test(option_file, most_lines)
{
    char *text = malloc(RT_OPTION_FILE_LINES_MAX + 64);

    cr_assert_not_null(text);
    memset(text, '\n', RT_OPTION_FILE_LINES_MAX + 1);
    memcpy(text + RT_OPTION_FILE_LINES_MAX - 1, "[esi]", sizeof("[esi]"));
    EXPECT_OK("--config", write_file(text));
    memcpy(text + RT_OPTION_FILE_LINES_MAX, "[esi]", sizeof("[esi]"));
    text[RT_OPTION_FILE_LINES_MAX - 1] = '\n';
    expect_bad_line(text, RT_OPTION_FILE_LINES_MAX + 1, "the file has too many lines");
    free(text);
}

Test(option_file, no_text)
{
    write_bytes(path, "[instance]\nname = a\0b\n", 22);
    EXPECT_BAD("--config", path);
    EXPECT_MESSAGE(":2: the file is no text");
    EXPECT_BAD("--config=/dev/zero");
    EXPECT_MESSAGE("/dev/zero:1: the file is no text");
}

Test(option_file, empty_and_without_end_of_line)
{
    EXPECT_OK("--config", write_file(""));
    EXPECT_OK("--config=/dev/null");
    EXPECT_OK("--config", write_file("[instance]\ncount = 9"));
    cr_assert_eq(config.count, 9);
}

Test(option_file, unreadable)
{
    EXPECT_BAD("--config=/nonexistent/file");
    EXPECT_MESSAGE("opening configuration file '/nonexistent/file': No such file or directory");
    EXPECT_BAD("--config", directory);
    EXPECT_MESSAGE(":1: it cannot be read: Is a directory");
    EXPECT_BAD("--config=");
    EXPECT_MESSAGE("opening configuration file ''");
}

Test(option_file, works_without_an_error)
{
    char *argv[] = {(char *)"prog", NULL, NULL};

    argv[1] = (char *)"--config=/nonexistent/file";
    cr_assert_eq(rt_option_parse(&setup, 2, argv, &action, &options, NULL), RT_INVALID_ARGUMENT);
    argv[1] = rt_xasprintf("--config=%s", write_file("[instance]\ncount = 11\n"));
    cr_assert_eq(rt_option_parse(&setup, 2, argv, &action, &options, NULL), RT_INVALID_ARGUMENT);
    (void)rt_free(argv[1]);
    argv[1] = rt_xasprintf("--config=%s", directory);
    cr_assert_eq(rt_option_parse(&setup, 2, argv, &action, &options, NULL), RT_INVALID_ARGUMENT);
    (void)rt_free(argv[1]);
}

/* ---- where it is found ---- */

/* <directory>/<below>/redistinto/redistinto.ini */
static void make_user_file(const char *below, const char *text)
{
    char command_line[192];
    char file[192];

    (void)snprintf(command_line, sizeof(command_line), "mkdir -p %s/%s/redistinto", directory,
                   below);
    cr_assert_eq(system(command_line), 0);
    (void)snprintf(file, sizeof(file), "%s/%s/redistinto/redistinto.ini", directory, below);
    write_bytes(file, text, strlen(text));
}

Test(option_file, named_in_the_environment)
{
    char variable[192];
    char *environment[] = {variable, NULL};

    (void)snprintf(variable, sizeof(variable), "REDISTINTO_CONFIG=%s",
                   write_file("[instance]\ncount = 2\n"));
    setup.environment = environment;
    EXPECT_OK("--verbose");
    cr_assert_eq(config.count, 2);
    EXPECT_OK("--config=/dev/null");
    cr_assert_eq(config.count, 5);
}

Test(option_file, found_in_the_user_s_configuration)
{
    char xdg[192];
    char home[128];
    char no_file[] = "REDISTINTO_CONFIG=/dev/null";
    char *environment[] = {home, xdg, NULL, NULL};

    make_user_file("xdg", "[instance]\ncount = 2\n");
    make_user_file(".config", "[instance]\ncount = 3\n");
    (void)snprintf(xdg, sizeof(xdg), "XDG_CONFIG_HOME=%s/xdg", directory);
    (void)snprintf(home, sizeof(home), "HOME=%s", directory);
    setup.environment = environment;
    EXPECT_OK("--verbose");
    cr_assert_eq(config.count, 2);
    EXPECT_OK("--print-config");
    EXPECT_OUTPUT("count = 2 ; /tmp/");
    EXPECT_OUTPUT("/xdg/redistinto/redistinto.ini:2\n");

    (void)snprintf(xdg, sizeof(xdg), "XDG_CONFIG_HOME=relative");
    EXPECT_OK("--verbose");
    cr_assert_eq(config.count, 3);
    environment[2] = no_file;
    EXPECT_OK("--verbose");
    cr_assert_eq(config.count, 5);
    setup.environment = NULL;
    EXPECT_OK("--verbose");
    cr_assert_eq(config.count, 5);
}

/* None is there: no mistake. What is there and cannot be read is one. */
Test(option_file, default_places_without_a_file)
{
    char xdg[192];
    char *environment[] = {xdg, NULL};

    (void)snprintf(xdg, sizeof(xdg), "XDG_CONFIG_HOME=%s/absent", directory);
    setup.environment = environment;
    EXPECT_OK("--verbose");
    (void)snprintf(xdg, sizeof(xdg), "XDG_CONFIG_HOME=%s", write_file("a file"));
    EXPECT_OK("--verbose");
    (void)snprintf(xdg, sizeof(xdg), "XDG_CONFIG_HOME=%s/xdg", directory);
    make_user_file("xdg/redistinto/redistinto.ini", "not read");
    EXPECT_BAD("--verbose");
    EXPECT_MESSAGE("/xdg/redistinto/redistinto.ini:1: it cannot be read");
}

/* ---- printing ---- */

Test(option_file, origins_are_shown)
{
    RT_CLEANUP(rt_freep) char *common = NULL;
    RT_CLEANUP(rt_freep) char *both = NULL;

    EXPECT_OK("--print-config", "--config",
              write_file("[common]\ntimeout = 1s\n[instance]\ncount = 6\n"));
    common = rt_xasprintf("timeout = 1s ; %s:2\n", path);
    both = rt_xasprintf("count = 6 ; %s:4\n", path);
    EXPECT_OUTPUT(common);
    EXPECT_OUTPUT(both);
    EXPECT_OK("--print-config", "-o", "json", "--config", path);
    (void)rt_free(common);
    common = rt_xasprintf("\"value\":\"1s\",\"required\":false,\"origin\":\"file\",\"file\":\"%s\","
                          "\"line\":2}",
                          path);
    EXPECT_OUTPUT(common);
}

Test(option_file, what_is_printed_can_be_read)
{
    RT_CLEANUP(rt_freep) char *first = NULL;

    EXPECT_OK("--print-config", "--name=n", "--count=3", "--verbose", "--timeout=90s", "--port=8");
    first = rt_xstrdup(output);
    EXPECT_OK("--config", write_file(first));
    cr_assert_eq(config.count, 3);
    cr_assert_eq(config.timeout_ms, 90000);
    cr_assert(config.verbose);
    cr_assert_str_eq(config.name, "n");
    cr_assert_null(config.label);
    cr_assert_eq(own.port, 8);
}

Test(option_file, wrong_files_are_not_shown)
{
    EXPECT_BAD("--print-config", "--config", write_file("[instance]\ncount = 0\n"));
    EXPECT_OK("--version", "--config", path);
    EXPECT_OK("--help", "--config", path);
}
