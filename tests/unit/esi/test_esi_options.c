/*
 * The option table of redistinto-esi: defaults, ranges, the words after the options, environment,
 * --print-config as a config file.
 */
#include "esi-client/options.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/alloc.h"
#include "runtime/model/limits.h"
#include "tests/support/check.h"
#include "tests/support/command_line.h"

TestSuite(options, .fini = test_alloc_expect_none);

static struct esi_options esi;
static struct rt_options *options;
static enum rt_option_action action;
static struct rt_error err;
static struct test_words words;

static enum rt_code parse_with(const char *line, char *const *environment)
{
    options = rt_option_free(options);
    test_words_init(&words, line);
    memset(&esi, 0, sizeof(esi));
    return esi_options_parse(words.argc, words.argv, environment, &esi, &action, &options, &err);
}

static void parse_ok(const char *line)
{
    cr_assert_eq(parse_with(line, NULL), RT_OK, "%s: %s", line, err.message);
    cr_assert_eq(action, RT_OPTION_RUN);
}

static void parse_fails(const char *line, const char *what)
{
    cr_assert_eq(parse_with(line, NULL), RT_INVALID_ARGUMENT, "%s", line);
    cr_assert_not_null(strstr(err.message, what), "%s: %s", line, err.message);
    cr_assert_null(options);
}

static void finish(void)
{
    options = rt_option_free(options);
}

Test(options, defaults)
{
    parse_ok("run a.esi");
    cr_assert_str_eq(esi.coordinator, "127.0.0.1:7400");
    cr_assert_eq(esi.format, ESI_FORMAT_TEXT);
    cr_assert_not(esi.check);
    cr_assert_eq(esi.statement_timeout_ms, 30000);
    cr_assert_eq(esi.log_level, RT_LOG_WARNING);
    cr_assert_eq(esi.dialect, MODEL_DIALECT_EXTENDED);
    cr_assert_eq(esi.seed, 0);
    cr_assert_null(esi.report);
    cr_assert_null(esi.junit);
    cr_assert_eq(esi.n_scripts, 1);
    cr_assert_str_eq(esi.scripts[0], "a.esi");
    finish();
}

Test(options, every_value)
{
    parse_ok("--coordinator c:1 -o json --check --timeout 5s --log-level debug --seed 7 "
             "--profile classic --report r.json --junit j.xml run a b -");
    cr_assert_str_eq(esi.report, "r.json");
    cr_assert_str_eq(esi.junit, "j.xml");
    cr_assert_eq(esi.dialect, MODEL_DIALECT_CLASSIC);
    cr_assert_eq(esi.seed, 7);
    cr_assert_str_eq(esi.coordinator, "c:1");
    cr_assert_eq(esi.format, ESI_FORMAT_JSON);
    cr_assert(esi.check);
    cr_assert_eq(esi.statement_timeout_ms, 5000);
    cr_assert_eq(esi.log_level, RT_LOG_DEBUG);
    cr_assert_eq(esi.n_scripts, 3);
    cr_assert_str_eq(esi.scripts[2], "-");
    finish();
}

Test(options, serve)
{
    parse_ok("serve");
    cr_assert_eq(esi.command, ESI_COMMAND_SERVE);
    cr_assert_str_eq(esi.service.listen, "127.0.0.1:7470");
    cr_assert_null(esi.service.data_dir);
    cr_assert_eq(esi.service.drain_ms, 5000);
    cr_assert_eq(esi.service.log_level, RT_LOG_INFO);
    cr_assert_eq(esi.planner.policy, ESI_POLICY_PARALLEL);
    cr_assert_float_eq(esi.planner.alpha, 0.5, 0);
    cr_assert_float_eq(esi.planner.initial_estimate, 5, 0);
    cr_assert_null(esi.blocked);
    cr_assert_not(esi.is_paused);
    parse_ok("serve --listen 127.0.0.1:0 --planner hrrn --alpha 0.25 --initial-estimate 2.5 "
             "--blocked a,b --paused --log-level error --ready-fd 3 --exit-with-stdin");
    cr_assert_eq(esi.planner.policy, ESI_POLICY_HRRN);
    cr_assert_float_eq(esi.planner.alpha, 0.25, 0);
    cr_assert_float_eq(esi.planner.initial_estimate, 2.5, 0);
    cr_assert_str_eq(esi.blocked, "a,b");
    cr_assert(esi.is_paused);
    cr_assert_eq(esi.service.log_level, RT_LOG_ERROR);
    cr_assert_eq(esi.service.ready_fd, 3);
    parse_ok("run a.esi");
    cr_assert_eq(esi.command, ESI_COMMAND_RUN);
    finish();
}

Test(options, ranges_of_serve)
{
    parse_ok("serve --alpha 0");
    parse_ok("serve --alpha 1");
    parse_fails("serve --alpha 1.01", "--alpha: '1.01' is out of range, valid are 0 to 1");
    parse_fails("serve --alpha -0.1", "--alpha: '-0.1' is out of range");
    parse_fails("serve --alpha 1e-3", "--alpha");
    parse_fails("serve --alpha .", "--alpha");
    parse_ok("serve --initial-estimate 1000000");
    parse_fails("serve --initial-estimate 1000001", "valid are 0 to 1e+06");
    parse_fails("serve --planner lifo", "sjf-cd");
    parse_fails("serve a.esi", "unexpected word 'a.esi' after serve");
    finish();
}

/* "k0,k1,…" */
static char *many_keys(size_t n)
{
    char *text = malloc(n * 8);
    size_t size = 0;

    for (size_t i = 0; i < n; i++)
        size += (size_t)sprintf(text + size, "%sk%zu", i > 0 ? "," : "", i);
    return text;
}

static enum rt_code split(const char *text, size_t n_keys)
{
    struct rt_bytes *keys = NULL;
    size_t n = 0;
    enum rt_code code = esi_options_split(text, &keys, &n, &err);

    if (code == RT_OK)
        cr_assert_eq(n, n_keys);
    (void)rt_free(keys);
    return code;
}

Test(options, keys_that_are_blocked_at_the_start)
{
    char text[MODEL_KEY_MAX + 2];
    char *many = many_keys(ESI_OPTIONS_BLOCKED_MAX);

    cr_assert_eq(split(NULL, 0), RT_OK);
    cr_assert_eq(split("a:1,b", 2), RT_OK);
    parse_fails("serve --blocked a,,b", "--blocked: a key has 0 bytes, valid are 1 to 255");
    parse_fails("serve --blocked a,", "--blocked: a key has 0 bytes");
    parse_fails("serve --blocked a,b,a", "--blocked: 'a' is there twice");
    memset(text, 'k', sizeof(text));
    text[MODEL_KEY_MAX] = '\0';
    cr_assert_eq(split(text, 1), RT_OK);
    text[MODEL_KEY_MAX] = 'k';
    text[MODEL_KEY_MAX + 1] = '\0';
    cr_assert_eq(split(text, 1), RT_INVALID_ARGUMENT);
    cr_assert_eq(split(many, ESI_OPTIONS_BLOCKED_MAX), RT_OK);
    free(many);
    many = many_keys(ESI_OPTIONS_BLOCKED_MAX + 1);
    cr_assert_eq(split(many, 0), RT_INVALID_ARGUMENT);
    cr_assert_str_eq(err.message, "--blocked: valid are at most 1000 keys");
    free(many);
}

Test(options, ranges)
{
    parse_ok("--timeout 1ms run a");
    parse_fails("--timeout 0 run a", "timeout");
    parse_ok("--timeout 1h run a");
    cr_assert_eq(esi.statement_timeout_ms, 3600000);
    parse_fails("--timeout 3600001ms run a", "timeout");
    parse_ok("--seed 9007199254740991 run a");
    cr_assert_eq(esi.seed, ESI_SEED_MAX);
    parse_fails("--seed 9007199254740992 run a", "seed");
    parse_fails("--seed x run a", "seed");
    parse_fails("--profile strict run a", "classic");
    finish();
}

Test(options, options_may_come_after_the_words)
{
    parse_ok("run a.esi --output json b.esi");
    cr_assert_eq(esi.format, ESI_FORMAT_JSON);
    cr_assert_eq(esi.n_scripts, 2);
    cr_assert_str_eq(esi.scripts[1], "b.esi");
    parse_ok("run -- --check");
    cr_assert_not(esi.check);
    cr_assert_str_eq(esi.scripts[0], "--check");
    finish();
}

Test(options, wrong_words_are_refused)
{
    parse_fails("", "run SCRIPT");
    parse_fails("walk a.esi", "'walk'");
    parse_fails("run", "at least one script");
    parse_fails("--output xml run a", "json");
    parse_fails("--unheard-of run a", "unheard-of");
    parse_fails("--log-level loud run a", "warning");
}

Test(options, the_environment_loses_to_the_command_line)
{
    char *const environment[] = {(char *)"REDISTINTO_COORDINATOR=there:1",
                                 (char *)"REDISTINTO_OUTPUT=json", NULL};

    cr_assert_eq(parse_with("run a", environment), RT_OK, "%s", err.message);
    cr_assert_str_eq(esi.coordinator, "there:1");
    cr_assert_eq(esi.format, ESI_FORMAT_JSON);
    cr_assert_eq(parse_with("-o text run a", environment), RT_OK, "%s", err.message);
    cr_assert_eq(esi.format, ESI_FORMAT_TEXT);
    cr_assert_eq(rt_option_origin(options, "coordinator"), RT_OPTION_FROM_ENV);
    finish();
}

Test(options, the_printed_configuration_is_a_config_file)
{
    struct test_output output;
    enum rt_code code;
    char *printed;
    const char *path;
    char line[128];

    test_output_begin(&output);
    code = parse_with("--coordinator c:1 --timeout 1500ms --print-config -o text", NULL);
    printed = test_output_end(&output);
    cr_assert_eq(code, RT_OK, "%s", err.message);
    cr_assert_eq(action, RT_OPTION_EXIT_OK);
    path = test_file(printed);
    (void)snprintf(line, sizeof(line), "--config %s run a", path);
    parse_ok(line);
    cr_assert_str_eq(esi.coordinator, "c:1");
    cr_assert_eq(esi.format, ESI_FORMAT_TEXT);
    cr_assert_eq(esi.statement_timeout_ms, 1500);
    (void)unlink(path);
    free(printed);
    finish();
}

Test(options, help_is_printed_without_a_script)
{
    struct test_output output;
    enum rt_code code;
    char *help;

    test_output_begin(&output);
    code = parse_with("--help", NULL);
    help = test_output_end(&output);
    cr_assert_eq(code, RT_OK);
    cr_assert_eq(action, RT_OPTION_EXIT_OK);
    cr_assert_not_null(strstr(help, "run|serve [SCRIPT...]"));
    free(help);
}

/* ---- the planner ----------------------------------------------------------------------------- */

Test(options, without_a_planner_all_run_at_once)
{
    parse_ok("run a.esi");
    cr_expect_eq(esi.planner.policy, ESI_POLICY_PARALLEL);
    cr_expect_eq(esi.planner.alpha, 0.5);
    cr_expect_eq(esi.planner.initial_estimate, 5);
    cr_expect_null(esi.blocked);
    cr_expect_not(esi.is_planned);
    finish();
}

Test(options, each_of_planner_blocked_and_trace_plans)
{
    parse_ok("run a.esi --planner hrrn --alpha 0.25 --initial-estimate 3.5");
    cr_expect_eq(esi.planner.policy, ESI_POLICY_HRRN);
    cr_expect_eq(esi.planner.alpha, 0.25);
    cr_expect_eq(esi.planner.initial_estimate, 3.5);
    cr_expect(esi.is_planned);
    parse_ok("run a.esi --blocked k,l");
    cr_expect(esi.is_planned);
    parse_ok("run a.esi --trace");
    cr_expect(esi.is_planned && esi.shows_plan);
    finish();
}

Test(options, ranges_of_alpha_and_estimate)
{
    static const char *const wrong[] = {"-0.1", "1.1", "x", "0x1", "1e0", "nan", "0.5.5", "."};
    char line[128];

    parse_ok("run a.esi --alpha 0 --initial-estimate 0");
    parse_ok("run a.esi --alpha 1 --initial-estimate 1000000");
    for (size_t i = 0; i < RT_ARRAY_SIZE(wrong); i++) {
        (void)snprintf(line, sizeof(line), "run a.esi --alpha=%s", wrong[i]);
        parse_fails(line, "--alpha: ");
        cr_expect_not_null(strstr(err.message, "valid are 0 to 1"), "%s", err.message);
    }
    parse_fails("run a.esi --initial-estimate 1000001", "valid are 0 to 1e+06");
    parse_fails("run a.esi --planner sjf", "sjf-cd");
    finish();
}

static void expect_keys(const char *text, size_t n_keys)
{
    struct rt_bytes *keys = NULL;
    size_t n = 0;

    cr_assert_eq(esi_options_split(text, &keys, &n, &err), RT_OK, "%s", err.message);
    cr_expect_eq(n, n_keys);
    (void)rt_free(keys);
}

static void expect_no_keys(const char *text, const char *what)
{
    struct rt_bytes *keys = NULL;
    size_t n = 0;

    cr_assert_eq(esi_options_split(text, &keys, &n, &err), RT_INVALID_ARGUMENT, "%s", text);
    cr_expect_not_null(strstr(err.message, what), "%s", err.message);
    cr_expect_null(keys);
}

Test(options, blocked_keys_and_their_limits)
{
    char text[ESI_OPTIONS_BLOCKED_MAX * 8] = "";
    char longest[MODEL_KEY_MAX + 2];
    size_t size = 0;

    expect_keys(NULL, 0);
    expect_keys("k", 1);
    expect_keys("a:b,c d", 2);
    expect_no_keys("", "0 bytes");
    expect_no_keys("k,", "0 bytes");
    expect_no_keys("k,l,k", "'k' is there twice");
    memset(longest, 'k', sizeof(longest));
    longest[MODEL_KEY_MAX] = '\0';
    expect_keys(longest, 1);
    longest[MODEL_KEY_MAX] = 'k';
    longest[MODEL_KEY_MAX + 1] = '\0';
    expect_no_keys(longest, "valid are 1 to");
    for (int i = 0; i < ESI_OPTIONS_BLOCKED_MAX; i++)
        size += (size_t)snprintf(text + size, sizeof(text) - size, "%sk%d", i ? "," : "", i);
    expect_keys(text, ESI_OPTIONS_BLOCKED_MAX);
    (void)snprintf(text + size, sizeof(text) - size, ",more");
    expect_no_keys(text, "at most 1000 keys");
    parse_fails("run a.esi --blocked k,k", "there twice");
}

Test(options, a_thousand_scripts_under_a_planner_and_no_more)
{
    static char words_used[][16] = {"program", "run", "--planner", "fifo", "a.esi", "parallel"};
    static char *argv[ESI_PLANNER_LIVE_MAX + 6];
    int argc = 0;

    while (argc < 4) {
        argv[argc] = words_used[argc];
        argc++;
    }
    while (argc < ESI_PLANNER_LIVE_MAX + 4)
        argv[argc++] = words_used[4];
    cr_assert_eq(esi_options_parse(argc, argv, NULL, &esi, &action, &options, &err), RT_OK);
    options = rt_option_free(options);
    argv[argc++] = words_used[4];
    cr_assert_eq(esi_options_parse(argc, argv, NULL, &esi, &action, &options, &err),
                 RT_INVALID_ARGUMENT);
    cr_expect_not_null(strstr(err.message, "1001 scripts, valid are 1 to 1000"), "%s", err.message);
    argv[3] = words_used[5];
    cr_expect_eq(esi_options_parse(argc, argv, NULL, &esi, &action, &options, &err), RT_OK);
    finish();
}
