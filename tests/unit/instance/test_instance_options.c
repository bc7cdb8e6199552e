/*
 * The instance's option table: defaults, ranges, names and addresses, environment, refused words,
 * --print-config as a config file.
 */
#include "instance/options.h"
#include "runtime/model/ids.h"
#include "runtime/model/limits.h"
#include "tests/support/check.h"
#include "tests/support/command_line.h"

TestSuite(options, .fini = test_alloc_expect_none);

static struct inst_options instance;
static struct host_service_config service;
static struct rt_options *options;
static enum rt_option_action action;
static struct rt_error err;
static struct test_words words;

static enum rt_code parse_with(const char *line, char *const *environment)
{
    options = rt_option_free(options);
    test_words_init(&words, line);
    memset(&instance, 0, sizeof(instance));
    memset(&service, 0, sizeof(service));
    return inst_options_parse(words.argc, words.argv, environment, &instance, &service, &action,
                              &options, &err);
}

static void parse_ok(const char *line)
{
    char whole[1000];

    (void)snprintf(whole, sizeof(whole), "--data-dir d --name i1 %s", line);
    cr_assert_eq(parse_with(whole, NULL), RT_OK, "%s: %s", line, err.message);
    cr_assert_eq(action, RT_OPTION_RUN);
}

static void parse_fails(const char *line, const char *what)
{
    char whole[1000];

    (void)snprintf(whole, sizeof(whole), "--data-dir d --name i1 %s", line);
    cr_assert_eq(parse_with(whole, NULL), RT_INVALID_ARGUMENT, "%s", line);
    cr_assert_not_null(strstr(err.message, what), "%s: %s", line, err.message);
    cr_assert_null(options);
}

static void finish(void)
{
    options = rt_option_free(options);
}

Test(options, defaults)
{
    parse_ok("");
    cr_assert_str_eq(instance.name, "i1");
    cr_assert_str_eq(instance.listen, "127.0.0.1:7410");
    cr_assert_null(instance.advertise);
    cr_assert_str_eq(instance.coordinator, "127.0.0.1:7400");
    cr_assert_eq(instance.entries, 65536);
    cr_assert_eq(instance.entry_size, 128);
    cr_assert_eq(instance.replacement, INST_POLICY_CIRC);
    cr_assert_eq(instance.growth, INST_GROWTH_RELOCATE);
    cr_assert_eq(instance.eviction, INST_EVICTION_SPILL);
    cr_assert_eq(instance.store, INST_STORE_LMDB);
    cr_assert_null(instance.mount);
    cr_assert_eq(instance.dump_interval_ms, 0);
    cr_assert_str_eq(service.listen, instance.listen);
    cr_assert_str_eq(service.data_dir, "d");
    cr_assert_eq(service.drain_ms, 5000);
    finish();
}

Test(options, every_value)
{
    parse_ok("--listen [::]:0 --advertise host:1 --coordinator unix:/c --entries 3 "
             "--entry-size 4KiB --replacement BSU --growth reject --log-level error "
             "--exit-with-stdin");
    cr_assert_eq(instance.replacement, INST_POLICY_BSU);
    cr_assert_eq(instance.growth, INST_GROWTH_REJECT);
    cr_assert_str_eq(service.listen, "[::]:0");
    cr_assert_str_eq(instance.advertise, "host:1");
    cr_assert_str_eq(instance.coordinator, "unix:/c");
    cr_assert_eq(instance.entries, 3);
    cr_assert_eq(instance.entry_size, 4096);
    cr_assert_eq(service.log_level, RT_LOG_ERROR);
    cr_assert(service.exit_with_stdin);
    finish();
}

Test(options, classic_profile)
{
    parse_ok("--profile classic");
    cr_assert_eq(instance.growth, INST_GROWTH_REJECT);
    cr_assert_eq(instance.eviction, INST_EVICTION_DROP);
    cr_assert_eq(instance.store, INST_STORE_FILES);
    cr_assert_eq(instance.dump_interval_ms, 10000);
    parse_ok("--profile classic --store lmdb --dump-interval 0");
    cr_assert_eq(instance.store, INST_STORE_LMDB);
    cr_assert_eq(instance.dump_interval_ms, 0);
    parse_ok("--profile classic --eviction spill --growth relocate");
    cr_assert_eq(instance.growth, INST_GROWTH_RELOCATE);
    cr_assert_eq(instance.eviction, INST_EVICTION_SPILL);
    parse_ok("--eviction drop");
    cr_assert_eq(instance.eviction, INST_EVICTION_DROP);
    cr_assert_eq(instance.growth, INST_GROWTH_RELOCATE);
    parse_fails("--profile modern", "profile");
    parse_fails("--eviction keep", "eviction");
    finish();
}

Test(options, files)
{
    parse_ok("--store files");
    cr_assert_eq(instance.store, INST_STORE_FILES);
    cr_assert_null(instance.mount);
    parse_ok("--store files --mount m");
    cr_assert_str_eq(instance.mount, "m");
    parse_ok("--profile classic --mount m");
    parse_fails("--mount m", "--mount m: there are no files with --store lmdb");
    parse_fails("--profile classic --store lmdb --mount m", "only with --store files");
    parse_fails("--store files --mount=", "--mount is empty");
    parse_fails("--store tape", "store");
    parse_ok("--dump-interval 24h");
    cr_assert_eq(instance.dump_interval_ms, 86400000);
    parse_fails("--dump-interval 86400001ms", "dump-interval");
    parse_fails("--dump-interval -1s", "dump-interval");
    finish();
}

Test(options, ranges)
{
    parse_ok("--replacement LRU");
    cr_assert_eq(instance.replacement, INST_POLICY_LRU);
    parse_fails("--replacement FIFO", "replacement");
    parse_fails("--growth never", "growth");
    parse_ok("--entries 1");
    parse_fails("--entries 0", "entries");
    parse_ok("--entries 4294967295");
    cr_assert_eq(instance.entries, UINT32_MAX);
    parse_fails("--entries 4294967296", "entries");
    parse_ok("--entry-size 1");
    parse_fails("--entry-size 0", "entry-size");
    parse_ok("--entry-size 1MiB");
    cr_assert_eq(instance.entry_size, MODEL_VALUE_MAX);
    parse_fails("--entry-size 1048577", "entry-size");
    finish();
}

/* ---- names and addresses ---- */

static const char *letters(size_t n)
{
    static char text[600];

    memset(text, 'n', n);
    text[n] = '\0';
    return text;
}

static void check_name(const char *name, bool is_good)
{
    char line[400];

    (void)snprintf(line, sizeof(line), "--data-dir d --name=%s", name);
    if (is_good) {
        cr_assert_eq(parse_with(line, NULL), RT_OK, "%s: %s", name, err.message);
    } else {
        cr_assert_eq(parse_with(line, NULL), RT_INVALID_ARGUMENT, "%s", name);
        cr_assert_not_null(strstr(err.message, "--name"), "%s", err.message);
    }
    finish();
}

Test(options, names)
{
    check_name("a", true);
    check_name("A-Z_a.z9", true);
    check_name(letters(MODEL_NAME_MAX), true);
    check_name(letters(MODEL_NAME_MAX + 1), false);
    check_name("", false);
    check_name("a/b", false);
    check_name("\xc3\xa4", false);
}

/* Of n bytes. */
static const char *address_of(size_t n)
{
    static const char scheme[] = "unix:";
    static char text[600];

    memcpy(text, scheme, sizeof(scheme));
    memcpy(text + strlen(scheme), letters(n - strlen(scheme)), n - strlen(scheme) + 1);
    return text;
}

static void check_address(const char *option, const char *address, bool is_good)
{
    char line[600];

    (void)snprintf(line, sizeof(line), "--%s=%s", option, address);
    if (is_good)
        parse_ok(line);
    else
        parse_fails(line, option);
    finish();
}

Test(options, addresses)
{
    check_address("coordinator", address_of(MODEL_ADDRESS_MAX), true);
    check_address("coordinator", address_of(MODEL_ADDRESS_MAX + 1), false);
    check_address("coordinator", "", false);
    check_address("advertise", address_of(MODEL_ADDRESS_MAX), true);
    check_address("advertise", address_of(MODEL_ADDRESS_MAX + 1), false);
    check_address("advertise", "", false);
    check_address("coordinator", "host", false);
    check_address("coordinator", "host:0", false);
    check_address("advertise", "host:0", false);
    check_address("advertise", "tab\there:1", false);
    check_address("advertise", "h\xc3\xb6st:1", false);
    check_address("advertise", "~!:1", true);
}

/* Others would be told to come to 0.0.0.0. */
Test(options, every_interface_needs_an_address_to_advertise)
{
    parse_fails("--listen 0.0.0.0:7410", "--advertise");
    parse_fails("--listen 0.0.0.0:0", "--advertise");
    parse_fails("--listen [::]:7410", "--advertise");
    parse_ok("--listen 0.0.0.0:7410 --advertise here:7410");
    parse_ok("--listen [::]:7410 --advertise here:7410");
    parse_ok("--listen 10.0.0.0:7410");
    finish();
}

/* ---- layers ---- */

Test(options, the_environment_loses_to_the_command_line)
{
    char *const environment[] = {(char *)"REDISTINTO_NAME=from-there",
                                 (char *)"REDISTINTO_DATA_DIR=there",
                                 (char *)"REDISTINTO_ENTRIES=9", NULL};

    cr_assert_eq(parse_with("", environment), RT_OK, "%s", err.message);
    cr_assert_str_eq(instance.name, "from-there");
    cr_assert_str_eq(service.data_dir, "there");
    cr_assert_eq(instance.entries, 9);
    cr_assert_eq(parse_with("--entries 10", environment), RT_OK, "%s", err.message);
    cr_assert_eq(instance.entries, 10);
    cr_assert_eq(rt_option_origin(options, "entries"), RT_OPTION_FROM_FLAG);
    cr_assert_eq(rt_option_origin(options, "name"), RT_OPTION_FROM_ENV);
    finish();
}

Test(options, name_and_data_directory_are_required)
{
    cr_assert_eq(parse_with("--data-dir d", NULL), RT_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(err.message, "name"), "%s", err.message);
    cr_assert_eq(parse_with("--name i1", NULL), RT_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(err.message, "data-dir"), "%s", err.message);
}

Test(options, wrong_words_are_refused)
{
    parse_fails("extra", "'extra'");
    parse_fails("--unheard-of", "unheard-of");
    parse_fails("--lease 10s", "lease");
    parse_fails("--entries some", "entries");
    parse_fails("--entry-size 1KB", "entry-size");
}

/* ---- printing ---- */

Test(options, the_printed_configuration_is_a_config_file)
{
    struct test_output output;
    enum rt_code code;
    char *printed;
    const char *path;
    char line[128];

    test_output_begin(&output);
    code = parse_with("--data-dir d --name i7 --entries 77 --entry-size 2KiB --print-config", NULL);
    printed = test_output_end(&output);
    cr_assert_eq(code, RT_OK, "%s", err.message);
    cr_assert_eq(action, RT_OPTION_EXIT_OK);
    path = test_file(printed);
    (void)snprintf(line, sizeof(line), "--config %s", path);
    cr_assert_eq(parse_with(line, NULL), RT_OK, "%s\n%s", err.message, printed);
    cr_assert_str_eq(instance.name, "i7");
    cr_assert_eq(instance.entries, 77);
    cr_assert_eq(instance.entry_size, 2048);
    cr_assert_null(instance.advertise);
    (void)unlink(path);
    free(printed);
    finish();
}
