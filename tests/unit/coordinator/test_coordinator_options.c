/*
 * The coordinator's option table: defaults, ranges, what the classic profile implies and what
 * overrides it, environment, refused words, --print-config as a config file.
 */
#include "coordinator/options.h"
#include "tests/support/check.h"
#include "tests/support/command_line.h"

TestSuite(options, .fini = test_alloc_expect_none);

static struct coord_config core;
static struct host_service_config service;
static struct rt_options *options;
static enum rt_option_action action;
static struct rt_error err;
static struct test_words words;

static enum rt_code parse_with(const char *line, char *const *environment)
{
    options = rt_option_free(options);
    test_words_init(&words, line);
    memset(&core, 0, sizeof(core));
    memset(&service, 0, sizeof(service));
    return coord_options_parse(words.argc, words.argv, environment, &core, &service, &action,
                               &options, &err);
}

static void parse_ok(const char *line)
{
    char with_directory[512];

    (void)snprintf(with_directory, sizeof(with_directory), "--data-dir d %s", line);
    cr_assert_eq(parse_with(with_directory, NULL), RT_OK, "%s: %s", line, err.message);
    cr_assert_eq(action, RT_OPTION_RUN);
}

/* The message says what is wrong. */
static void parse_fails(const char *line, const char *what)
{
    char with_directory[512];

    (void)snprintf(with_directory, sizeof(with_directory), "--data-dir d %s", line);
    cr_assert_eq(parse_with(with_directory, NULL), RT_INVALID_ARGUMENT, "%s", line);
    cr_assert_not_null(strstr(err.message, what), "%s: %s", line, err.message);
    cr_assert_null(options);
}

static void finish(void)
{
    options = rt_option_free(options);
}

static void check_rules(uint32_t key_max, enum model_locking locking, enum coord_owner_down down)
{
    cr_assert_eq(core.key_max, key_max);
    cr_assert_eq(core.locking, locking);
    cr_assert_eq(core.owner_down, down);
}

Test(options, defaults)
{
    parse_ok("");
    check_rules(255, MODEL_LOCKING_OPTIONAL, COORD_OWNER_DOWN_KEEP);
    cr_assert_eq(core.member_lease.duration_us, 10000000);
    cr_assert_eq(core.session_lease.duration_us, 10000000);
    cr_assert_eq(core.wake_hold_us, 2000000);
    cr_assert_str_eq(service.listen, "127.0.0.1:7400");
    cr_assert_str_eq(service.data_dir, "d");
    cr_assert_eq(service.log_level, RT_LOG_INFO);
    cr_assert_eq(service.drain_ms, 5000);
    cr_assert_eq(service.store_limit, (uint64_t)64 << 30);
    cr_assert_eq(service.ready_fd, 0);
    cr_assert_not(service.exit_with_stdin);
    finish();
}

Test(options, delay_and_operation_log)
{
    parse_ok("");
    cr_assert_eq(core.delay_us, 0);
    cr_assert_null(core.operation_log);
    cr_assert_str_eq(core.profile, "default");
    parse_ok("--delay-ms 250 --operation-log o.log --profile classic");
    cr_assert_eq(core.delay_us, 250000);
    cr_assert_str_eq(core.operation_log, "o.log");
    cr_assert_str_eq(core.profile, "classic");
    parse_ok("--delay-ms 10000");
    parse_fails("--delay-ms 10001", "delay-ms");
    finish();
}

Test(options, every_distribution)
{
    parse_ok("");
    cr_assert_eq(core.distribution, MODEL_DISTRIBUTION_EQUITABLE_LOAD);
    cr_assert_eq(core.ranges, COORD_RANGES_EVEN);
    parse_ok("--distribution least-space-used");
    cr_assert_eq(core.distribution, MODEL_DISTRIBUTION_LEAST_SPACE_USED);
    parse_ok("--distribution key-explicit --key-ranges ceil");
    cr_assert_eq(core.distribution, MODEL_DISTRIBUTION_KEY_EXPLICIT);
    cr_assert_eq(core.ranges, COORD_RANGES_CEIL);
    parse_fails("--key-ranges odd", "even");
    finish();
}

Test(options, every_value)
{
    parse_ok("--listen=[::1]:0 --distribution equitable-load --key-max 7 --locking none "
             "--on-owner-down forget --lease 2s --session-lease 3s --wake-hold 4s");
    check_rules(7, MODEL_LOCKING_NONE, COORD_OWNER_DOWN_FORGET);
    cr_assert_str_eq(service.listen, "[::1]:0");
    cr_assert_eq(core.member_lease.duration_us, 2000000);
    cr_assert_eq(core.session_lease.duration_us, 3000000);
    cr_assert_eq(core.wake_hold_us, 4000000);
    parse_ok("--locking required --on-owner-down keep --log-level debug --drain-timeout 1m "
             "--store-limit 1GiB --ready-fd 5 --exit-with-stdin");
    check_rules(255, MODEL_LOCKING_REQUIRED, COORD_OWNER_DOWN_KEEP);
    cr_assert_eq(service.log_level, RT_LOG_DEBUG);
    cr_assert_eq(service.drain_ms, 60000);
    cr_assert_eq(service.store_limit, (uint64_t)1 << 30);
    cr_assert_eq(service.ready_fd, 5);
    cr_assert(service.exit_with_stdin);
    finish();
}

/* At the limits and one past them. */
static void check_range(const char *name, const char *below, const char *lowest,
                        const char *highest, const char *above)
{
    const char *const good[] = {lowest, highest};
    const char *const bad[] = {below, above};
    char line[128];

    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(line, sizeof(line), "--%s=%s", name, good[i]);
        parse_ok(line);
        if (!bad[i])
            continue;
        (void)snprintf(line, sizeof(line), "--%s=%s", name, bad[i]);
        parse_fails(line, name);
    }
    finish();
}

Test(options, ranges)
{
    check_range("key-max", "0", "1", "255", "256");
    check_range("lease", "999ms", "1s", "1h", "3600001ms");
    check_range("session-lease", "999ms", "1s", "1h", "3600001ms");
    check_range("wake-hold", "0", "1ms", "10m", "600001ms");
    check_range("drain-timeout", "0", "1ms", "10m", "600001ms");
    check_range("store-limit", "1048575", "1MiB", "16TiB", "17592186044417");
    check_range("ready-fd", NULL, "0", "1023", "1024");
}

Test(options, limits_arrive_as_they_are)
{
    parse_ok("--key-max 1 --lease 1h --session-lease 1s --wake-hold 10m");
    cr_assert_eq(core.key_max, 1);
    cr_assert_eq(core.member_lease.duration_us, UINT64_C(3600000000));
    cr_assert_eq(core.session_lease.duration_us, 1000000);
    cr_assert_eq(core.wake_hold_us, 600000000);
    finish();
}

/* ---- profiles ---- */

Test(options, classic_implies_the_rules_of_the_course)
{
    parse_ok("--profile classic");
    check_rules(40, MODEL_LOCKING_REQUIRED, COORD_OWNER_DOWN_FORGET);
    cr_assert_eq(core.compaction, COORD_COMPACT_GLOBAL);
    cr_assert_eq(rt_option_origin(options, "key-max"), RT_OPTION_FROM_PROFILE);
    cr_assert_eq(core.member_lease.duration_us, 10000000);
    parse_ok("--profile default");
    check_rules(255, MODEL_LOCKING_OPTIONAL, COORD_OWNER_DOWN_KEEP);
    cr_assert_eq(core.compaction, COORD_COMPACT_LOCAL);
    cr_assert_eq(rt_option_origin(options, "key-max"), RT_OPTION_FROM_DEFAULT);
    parse_ok("--profile classic --compaction local");
    cr_assert_eq(core.compaction, COORD_COMPACT_LOCAL);
    parse_ok("--compaction global");
    cr_assert_eq(core.compaction, COORD_COMPACT_GLOBAL);
    finish();
}

Test(options, what_a_user_gives_wins_over_the_profile)
{
    parse_ok("--key-max 41 --profile classic");
    check_rules(41, MODEL_LOCKING_REQUIRED, COORD_OWNER_DOWN_FORGET);
    parse_ok("--profile classic --locking optional");
    check_rules(40, MODEL_LOCKING_OPTIONAL, COORD_OWNER_DOWN_FORGET);
    parse_ok("--on-owner-down keep --profile classic");
    check_rules(40, MODEL_LOCKING_REQUIRED, COORD_OWNER_DOWN_KEEP);
    /* Also where it is the default. */
    parse_ok("--profile classic --key-max 255");
    check_rules(255, MODEL_LOCKING_REQUIRED, COORD_OWNER_DOWN_FORGET);
    finish();
}

Test(options, file_environment_and_command_line_win_in_this_order)
{
    char *const environment[] = {(char *)"REDISTINTO_LOCKING=none",
                                 (char *)"REDISTINTO_ON_OWNER_DOWN=keep", NULL};
    const char *path =
        test_file("[coordinator]\nprofile = classic\nkey-max = 50\nlocking = optional\n"
                  "on-owner-down = forget\nlease = 3s\n");
    char line[128];

    (void)snprintf(line, sizeof(line), "--data-dir d --config %s --on-owner-down forget", path);
    cr_assert_eq(parse_with(line, environment), RT_OK, "%s", err.message);
    check_rules(50, MODEL_LOCKING_NONE, COORD_OWNER_DOWN_FORGET);
    cr_assert_eq(core.member_lease.duration_us, 3000000);
    cr_assert_eq(rt_option_origin(options, "key-max"), RT_OPTION_FROM_FILE);
    cr_assert_eq(rt_option_origin(options, "locking"), RT_OPTION_FROM_ENV);
    cr_assert_eq(rt_option_origin(options, "on-owner-down"), RT_OPTION_FROM_FLAG);
    (void)unlink(path);
    finish();
}

Test(options, the_profile_may_come_from_the_environment)
{
    char *const environment[] = {(char *)"REDISTINTO_PROFILE=classic",
                                 (char *)"REDISTINTO_DATA_DIR=there", NULL};

    cr_assert_eq(parse_with("", environment), RT_OK, "%s", err.message);
    check_rules(40, MODEL_LOCKING_REQUIRED, COORD_OWNER_DOWN_FORGET);
    cr_assert_str_eq(service.data_dir, "there");
    cr_assert_eq(parse_with("--profile default", environment), RT_OK, "%s", err.message);
    check_rules(255, MODEL_LOCKING_OPTIONAL, COORD_OWNER_DOWN_KEEP);
    finish();
}

Test(options, the_environment_is_checked)
{
    char *const environment[] = {(char *)"REDISTINTO_KEY_MAX=256", NULL};

    cr_assert_eq(parse_with("--data-dir d", environment), RT_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(err.message, "REDISTINTO_KEY_MAX"), "%s", err.message);
}

/* ---- what is refused ---- */

Test(options, a_data_directory_is_required)
{
    cr_assert_eq(parse_with("", NULL), RT_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(err.message, "data-dir"), "%s", err.message);
}

Test(options, wrong_words_are_refused)
{
    parse_fails("extra", "'extra'");
    parse_fails("-- --lease", "'--lease'");
    parse_fails("--unheard-of", "unheard-of");
    parse_fails("--profile modern", "classic");
    parse_fails("--locking sometimes", "required");
    parse_fails("--on-owner-down panic", "forget");
    parse_fails("--compaction everywhere", "global");
    parse_fails("--distribution random", "equitable-load");
    parse_fails("--key-max many", "key-max");
    parse_fails("--lease 10", "lease");
    parse_fails("--log-level loud", "warning");
}

/* ---- printing ---- */

static char *print(const char *line)
{
    struct test_output output;
    enum rt_code code;

    test_output_begin(&output);
    code = parse_with(line, NULL);
    cr_assert_eq(code, RT_OK, "%s", err.message);
    cr_assert_eq(action, RT_OPTION_EXIT_OK);
    cr_assert_null(options);
    return test_output_end(&output);
}

Test(options, the_printed_configuration_is_a_config_file)
{
    char *printed = print("--data-dir d --profile classic --lease 3s --listen unix:/s "
                          "--store-limit 2MiB --print-config");
    const char *path = test_file(printed);
    char line[128];
    char *again;

    (void)snprintf(line, sizeof(line), "--config %s", path);
    cr_assert_eq(parse_with(line, NULL), RT_OK, "%s", err.message);
    check_rules(40, MODEL_LOCKING_REQUIRED, COORD_OWNER_DOWN_FORGET);
    cr_assert_eq(core.member_lease.duration_us, 3000000);
    cr_assert_str_eq(service.listen, "unix:/s");
    cr_assert_eq(service.store_limit, 2 << 20);
    (void)snprintf(line, sizeof(line), "--config %s --print-config", path);
    again = print(line);
    (void)unlink(path);
    path = test_file(again);
    (void)snprintf(line, sizeof(line), "--config %s", path);
    cr_assert_eq(parse_with(line, NULL), RT_OK, "%s", err.message);
    check_rules(40, MODEL_LOCKING_REQUIRED, COORD_OWNER_DOWN_FORGET);
    (void)unlink(path);
    free(printed);
    free(again);
    finish();
}

Test(options, help_and_version_are_printed)
{
    char *help = print("--help");
    char *version = print("--version");

    cr_assert_not_null(strstr(help, "--on-owner-down"));
    cr_assert_not_null(strstr(help, "--store-limit"));
    cr_assert_not_null(strstr(version, "redistinto-coordinator"));
    free(help);
    free(version);
}
