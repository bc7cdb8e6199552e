/*
 * What a profile makes of the services' options: see rules.h. Pure.
 */
#include "cli/rules.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/compiler.h"

struct rule {
    const char *name;
    const char *by_default;
    const char *classic;
};

static const struct rule rules[] = {
    {"key-max", "255", "40"},
    {"locking", "optional", "required"},
    {"on-owner-down", "keep", "forget"},
    {"compaction", "local", "global"},
    {"growth", "relocate", "reject"},
    {"eviction", "spill", "drop"},
    {"store", "lmdb", "files"},
    {"dump-interval", "0ms", "10s"},
};

_Static_assert(RT_ARRAY_SIZE(rules) == CLI_RULES, "one for each");

static void set_value(struct cli_rule *rule, const char *value)
{
    (void)snprintf(rule->value, sizeof(rule->value), "%s", value);
}

/* NULL: not given. */
static void override(struct cli_rule *found, const char *name, const char *value)
{
    for (size_t i = 0; i < CLI_RULES && value; i++)
        if (strcmp(found[i].name, name) == 0)
            set_value(&found[i], value);
}

void cli_rules_fill(const struct cli_command_options *options, struct cli_rule *ret_rules)
{
    bool is_classic = strcmp(options->profile, "classic") == 0;
    char interval[CLI_RULE_VALUE_SIZE];

    for (size_t i = 0; i < CLI_RULES; i++) {
        ret_rules[i].name = rules[i].name;
        set_value(&ret_rules[i], is_classic ? rules[i].classic : rules[i].by_default);
    }
    (void)snprintf(interval, sizeof(interval), "%" PRIu64 "ms", options->dump_interval_ms);
    override(ret_rules, "compaction", options->compaction);
    override(ret_rules, "store", options->store);
    override(ret_rules, "dump-interval", options->dump_interval_ms > 0 ? interval : NULL);
}
