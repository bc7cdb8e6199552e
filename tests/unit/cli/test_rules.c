/*
 * What `dev` says that a profile sets; that it is so, tests/integration/test_dev.py checks.
 */
#include "cli/rules.h"

#include <string.h>

#include "tests/support/check.h"

TestSuite(rules, .fini = test_alloc_expect_none);

static void expect(const struct cli_command_options *options, const char *name, const char *value)
{
    struct cli_rule found[CLI_RULES];

    cli_rules_fill(options, found);
    for (size_t i = 0; i < CLI_RULES; i++) {
        if (strcmp(found[i].name, name) == 0) {
            cr_assert_str_eq(found[i].value, value);
            return;
        }
    }
    cr_assert_fail("no rule %s", name);
}

Test(rules, of_the_profiles)
{
    const struct cli_command_options classic = {.profile = "classic"};
    const struct cli_command_options by_default = {.profile = "default"};

    expect(&by_default, "compaction", "local");
    expect(&by_default, "dump-interval", "0ms");
    expect(&classic, "key-max", "40");
    expect(&classic, "compaction", "global");
    expect(&classic, "store", "files");
    expect(&classic, "dump-interval", "10s");
}

Test(rules, what_is_given_wins)
{
    const struct cli_command_options options = {
        .profile = "classic",
        .compaction = "local",
        .store = "lmdb",
        .dump_interval_ms = 86400000,
    };

    expect(&options, "compaction", "local");
    expect(&options, "store", "lmdb");
    expect(&options, "dump-interval", "86400000ms");
    expect(&options, "eviction", "drop");
}
